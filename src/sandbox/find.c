/* SPDX-License-Identifier: MIT */
/*
 * Finding sandboxes again by their labels, judging whether they are ours, and
 * sweeping what died half-made.
 */
#include "image/image.h"
#include "sandbox/carried.h"
#include "sandbox/past.h"
#include "sandbox/session.h"
#include "sandbox/states.h"

#include <stdlib.h>
#include <string.h>

struct sba_sandbox *sba_found_new(struct sba_found *f, struct sba_engine *e)
{
	struct sba_sandbox *grown = realloc(f->v, (f->n + 1) * sizeof(*grown));
	if (!grown)
		return NULL;
	f->v = grown;
	f->v[f->n] = (struct sba_sandbox){ .engine = e, .info.reason = "" };
	return &f->v[f->n++];
}

static struct sba_sandbox *entry_of(struct sba_found *f, struct sba_engine *e, const char *id)
{
	for (size_t i = 0; i < f->n; i++) {
		if (strcmp(sba_label_get(f->v[i].labels, "id"), id) == 0)
			return &f->v[i];
	}
	return sba_found_new(f, e);
}

static const char *state_of(const char *engine_state)
{
	static const struct {
		const char *engine, *ours;
	} states[] = {
		{ "running", "idle" },  { "created", "created" },
		{ "paused", "paused" }, { "exited", "gone" },
		{ "dead", "gone" },     { "stopped", "gone" }, /* Podman's */
	};
	for (size_t i = 0; engine_state && i < SBA_ARRAY_LEN(states); i++) {
		if (strcmp(states[i].engine, engine_state) == 0)
			return states[i].ours;
	}
	/* On its way somewhere: nobody's to touch. */
	return "changing";
}

/* The labels, saying the name that the container has. */
static json_t *labels_of(const json_t *container, const char *name)
{
	json_t *labels = json_object_get(container, "Labels");
	if (!name || strcmp(name, sba_label_get(labels, "name")) == 0)
		return json_incref(labels);
	return sba_labels_with_name(labels, name);
}

static int add(struct sba_found *f, struct sba_engine *e, const json_t *list,
	       const json_t *container)
{
	const json_t *labels = json_object_get(container, "Labels");
	const char *id = sba_json_str(container, "Id"), *name = NULL;
	bool claimed = false, sidecar = sba_ours_sidecar(container, &claimed);
	if (!id || strlen(id) >= SBA_ID_MAX || !*sba_label_get(labels, "id") ||
	    (!sidecar && !sba_ours_main(list, container, &name)))
		return 0;
	struct sba_sandbox *s = entry_of(f, e, sba_label_get(labels, "id"));
	if (!s)
		return SBA_ENOMEM;
	memcpy(sidecar ? s->sidecar : s->container, id, strlen(id) + 1);
	if (!sidecar || !s->labels) {
		json_decref(s->labels);
		s->labels = labels_of(container, name);
		if (!s->labels)
			return SBA_ENOMEM;
		sba_labels_read(s->labels, &s->info);
	}
	s->claimed = s->claimed || claimed;
	const char *state = state_of(sba_json_str(container, "State"));
	if (sidecar)
		s->sidecar_state = state;
	else
		s->info.state = state;
	return 0;
}

/* A sandbox that has lost its sidecar is broken: nothing would end it. */
static void settle_state(struct sba_sandbox *s)
{
	if (!*s->container) {
		s->info.state =
			strcmp(s->sidecar_state, "idle") == 0 ? "created" : s->sidecar_state;
		return;
	}
	if (strcmp(s->info.state, "idle") != 0)
		return;
	if (!*s->sidecar || strcmp(s->sidecar_state, "gone") == 0)
		s->info.state = "broken";
	else if (strcmp(s->sidecar_state, "idle") != 0)
		s->info.state = s->sidecar_state;
	else if (*s->info.pool && sba_member_name(s->info.name))
		s->info.state = s->claimed ? "changing" : "ready";
}

static bool has_ended(const struct sba_sandbox *s)
{
	return strcmp(s->info.state, "gone") == 0 && !s->info.foreign_schema &&
	       (!*s->sidecar || strcmp(s->sidecar_state, "gone") == 0);
}

/* Podman (4.3 to 5.4) does not remove a sidecar that ends while the main
 * container still depends on it. What is left does not run; whoever comes next
 * takes it away. */
static void sweep_ended(struct sba_engine *e, struct sba_found *f)
{
	size_t kept = 0;
	for (size_t i = 0; i < f->n; i++) {
		struct sba_sandbox *s = &f->v[i];
		if (has_ended(s) && !sba_sandbox_remove_both(e, s->sidecar, s->container, NULL))
			json_decref(s->labels);
		else
			f->v[kept++] = *s;
	}
	f->n = kept;
}

int sba_found_get(struct sba_engine *e, const char *const *labels, struct sba_found *ret,
		  struct sba_error *err)
{
	return sba_found_get_until(e, labels, sba_engine_until(e, SBA_ENGINE_STEP_MS), ret, err);
}

int sba_found_get_until(struct sba_engine *e, const char *const *labels, struct sba_until until,
			struct sba_found *ret, struct sba_error *err)
{
	SBA_JSON json_t *list = NULL;
	int rc = sba_container_list(e, labels, until, &list, err);
	if (rc < 0)
		return rc;
	struct sba_found f = { 0 };
	size_t i;
	json_t *container;
	json_array_foreach(list, i, container)
	{
		if (add(&f, e, list, container) < 0) {
			sba_found_fini(&f);
			return sba_fail_nomem(err);
		}
	}
	for (i = 0; i < f.n; i++)
		settle_state(&f.v[i]);
	if (sba_engine_podman(e))
		sweep_ended(e, &f);
	*ret = f;
	return 0;
}

int sba_found_get_prefix(struct sba_engine *e, const char *prefix, struct sba_found *ret,
			 struct sba_error *err)
{
	char by_prefix[SBA_FILTER_MAX];
	const char *const labels[] = { sba_label_of_prefix(by_prefix, prefix), NULL };
	return sba_found_get(e, labels, ret, err);
}

enum { HALF_MADE_S = 15 * 60, SWEEP_MS = 5000 };

/* Nobody can still be at it: its maker is dead for sure, or long enough has passed. */
static bool is_half_made(const struct sba_sandbox *s)
{
	const char *state = s->info.state;
	if (s->info.foreign_schema || (strcmp(state, "gone") != 0 && strcmp(state, "created") != 0))
		return false;
	return sba_label_creator_dead(s->labels) ||
	       sba_unix_ms() / 1000 - s->info.created > HALF_MADE_S;
}

/* Neither fails for it nor waits long. */
void sba_found_sweep(struct sba_engine *e, struct sba_found *f, const char *asked_for)
{
	struct sba_until until = sba_engine_until(e, SWEEP_MS);
	size_t kept = 0;
	for (size_t i = 0; i < f->n; i++) {
		struct sba_sandbox *s = &f->v[i];
		bool asked = asked_for && (strcmp(s->info.name, asked_for) == 0 ||
					   strcmp(s->info.id, asked_for) == 0);
		if (!asked && is_half_made(s) && sba_until_check(until, NULL) == 0 &&
		    sba_sandbox_remove_both(e, s->sidecar, s->container, NULL) == 0)
			json_decref(s->labels);
		else
			f->v[kept++] = *s;
	}
	f->n = kept;
}

void sba_found_fini(struct sba_found *f)
{
	for (size_t i = 0; i < f->n; i++) {
		json_decref(f->v[i].labels);
		json_decref(f->v[i].resident);
	}
	free(f->v);
	*f = (struct sba_found){ 0 };
}

/* Takes the i-th out of the list, as a handle of its own. */
static int take(struct sba_found *f, size_t i, struct sba_sandbox **ret, struct sba_error *err)
{
	struct sba_sandbox *s = malloc(sizeof(*s));
	if (!s)
		return sba_fail_nomem(err);
	*s = f->v[i];
	int rc = sba_session_new(s, &s->session, err);
	if (rc < 0) {
		free(s);
		return rc;
	}
	f->v[i].labels = NULL;
	*ret = s;
	return 0;
}

/* Newest last: a name can have been used before. */
static const char *past_reason(struct sba_engine *e, const char *by_prefix, const char *name)
{
	enum { LOOK_BACK_S = 24 * 60 * 60 };
	struct sba_found past = { 0 };
	const char *reason = NULL;
	if (sba_past_add(e, by_prefix, sba_unix_ms() / 1000 - LOOK_BACK_S, &past, NULL) == 0) {
		for (size_t i = 0; i < past.n; i++) {
			if (strcmp(past.v[i].info.name, name) == 0)
				reason = past.v[i].info.reason; /* a literal */
		}
	}
	sba_found_fini(&past);
	return reason;
}

static int not_found(const struct sba_found *f, struct sba_engine *e, const char *prefix,
		     const char *name, struct sba_error *err)
{
	char by_prefix[SBA_FILTER_MAX];
	const char *reason = past_reason(e, sba_label_of_prefix(by_prefix, prefix), name);
	if (reason)
		return sba_hint(err,
				sba_fail(err, SBA_ENOTFOUND, "sandbox '%s' is gone: %s", name,
					 sba_past_words(reason)),
				"what there is and was:  sandbox-agent ps -a");
	int rc = sba_fail(err, SBA_ENOTFOUND, "there is no sandbox '%s'", name);
	SBA_STRV struct sba_strv names = { 0 };
	for (size_t i = 0; i < f->n; i++) {
		if (sba_strv_add(&names, f->v[i].info.name, NULL) < 0)
			return rc;
	}
	int near = sba_nearest(name, (const char *const *)names.v, names.n);
	if (near >= 0)
		return sba_hint(err, rc, "did you mean '%s'?", names.v[near]);
	return sba_hint(err, rc, "what there is:  sandbox-agent ps");
}

int sba_sandbox_open(struct sba_engine *e, const char *prefix, const char *name,
		     struct sba_sandbox **ret, struct sba_error *err)
{
	int rc = sba_name_check("sandbox", name, err);
	if (rc < 0)
		return rc;
	struct sba_found f = { 0 };
	rc = sba_found_get_prefix(e, prefix, &f, err);
	if (rc < 0)
		return rc;
	sba_found_sweep(e, &f, name);
	size_t i = 0;
	while (i < f.n && strcmp(f.v[i].info.name, name) != 0 && strcmp(f.v[i].info.id, name) != 0)
		i++;
	if (i == f.n)
		rc = not_found(&f, e, prefix, name, err);
	else if (f.v[i].info.foreign_schema)
		rc = sba_fail(
			err, SBA_EREFUSED,
			"sandbox '%s' was made by version %s, whose labels this one does not know",
			name, f.v[i].info.version);
	else
		rc = take(&f, i, ret, err);
	sba_found_fini(&f);
	return rc;
}

void sba_sandbox_close(struct sba_sandbox *s)
{
	if (!s)
		return;
	sba_session_free(s->session);
	sba_carried_free(s->carried);
	sba_states_free(s->states);
	if (s->backend && s->backend->free)
		s->backend->free(s);
	json_decref(s->labels);
	json_decref(s->resident);
	free(s->root);
	free(s);
}

/* ---- sweeping ---- */

bool sba_found_is_litter(const struct sba_sandbox *s)
{
	bool broken = strcmp(s->info.state, "broken") == 0;
	return (broken && !s->info.foreign_schema) || is_half_made(s);
}

int sba_gc(struct sba_engine *e, const char *prefix, int *ret_removed, struct sba_error *err)
{
	struct sba_found f = { 0 };
	int rc = sba_found_get_prefix(e, prefix, &f, err);
	int removed = 0, failed = 0;
	for (size_t i = 0; rc == 0 && i < f.n; i++) {
		if (!sba_found_is_litter(&f.v[i]) && !sba_claim_abandoned(&f.v[i]))
			continue;
		/* What is stuck keeps nothing else from being swept. */
		int gone = sba_sandbox_remove_both(e, f.v[i].sidecar, f.v[i].container,
						   failed ? NULL : err);
		removed += gone == 0;
		failed = failed ? failed : gone;
	}
	sba_found_fini(&f);
	if (rc == 0 && ret_removed)
		*ret_removed = removed;
	rc = rc ? rc : failed;
	if (rc == 0)
		rc = sba_volumes_sweep(e, prefix, sba_engine_until(e, SBA_ENGINE_STEP_MS), NULL,
				       err);
	if (rc == 0)
		rc = sba_image_sweep(e, SBA_OWN_REPOSITORY, SBA_SIDECAR_IMAGE_KEPT_S, NULL, err);
	return rc;
}
