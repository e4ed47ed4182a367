/* SPDX-License-Identifier: MIT */
/* A workspace before and after a turn. */
#include <stdlib.h>
#include <string.h>

#include "sandbox/sandbox.h"
#include "sandbox/states.h"

struct sba_watch {
	struct sba_sandbox *sandbox; /* lent */
	struct sba_watch_options options;
	struct sba_kept kept;
};

/* What differs from the last kept state, which is kept as the next one. */
static int look_and_keep(struct sba_watch *w, enum sba_kept_phase phase, struct sba_records *ret,
			 struct sba_error *err)
{
	int64_t turn = w->kept.n == 0 ? 0 : w->options.turn;
	int rc = sba_kept_look(w->sandbox, &w->kept, sba_kept_last(&w->kept), ret, err);
	if (rc < 0 || (phase == SBA_KEPT_END && w->options.last))
		return rc;
	/* What an aside leaves behind is what the next turn begins with. */
	if (w->options.aside)
		phase = SBA_KEPT_BEGIN;
	if (w->kept.n == 0)
		phase = SBA_KEPT_END;
	rc = sba_kept_save(w->sandbox, &w->kept, turn, phase, ret, err);
	if (rc < 0)
		sba_records_fini(ret);
	return rc;
}

static int begin_inside(struct sba_watch *w, struct sba_error *err)
{
	struct sba_records r;
	int rc = sba_kept_load(w->sandbox, &w->kept, err);
	if (rc == 0 && !*w->kept.folder)
		snprintf(w->kept.folder, sizeof(w->kept.folder), "%s", w->options.folder);
	if (rc == 0)
		rc = look_and_keep(w, SBA_KEPT_BEGIN, &r, err);
	if (rc == 0)
		sba_records_fini(&r);
	return rc;
}

int sba_watch_begin(struct sba_sandbox *s, const struct sba_watch_options *o,
		    struct sba_watch **ret, struct sba_error *err)
{
	struct sba_watch *w = calloc(1, sizeof(*w));
	if (!w)
		return sba_fail_nomem(err);
	w->sandbox = s;
	w->options = *o;
	int rc = sba_kept_is_inside(s) ? begin_inside(w, err)
				       : sba_states_keep(s, o->folder, o->turn, err);
	if (rc < 0) {
		sba_watch_free(w);
		return rc;
	}
	*ret = w;
	return 0;
}

int sba_watch_end(struct sba_watch *w, struct sba_changes **ret, struct sba_error *err)
{
	struct sba_records r;
	if (!sba_kept_is_inside(w->sandbox))
		return sba_states_changes(w->sandbox, w->options.turn, ret, err);
	int rc = look_and_keep(w, SBA_KEPT_END, &r, err);
	return rc < 0 ? rc : sba_changes_make(w->sandbox, &w->kept, &r, ret, err);
}

void sba_watch_free(struct sba_watch *w)
{
	if (!w)
		return;
	sba_kept_fini(&w->kept);
	free(w);
}
