/* SPDX-License-Identifier: MIT */
/* Lists and dumps of sessions, and names for new ones. */
#include "drivers/store.h"

#include <stdlib.h>
#include <string.h>

void sba_kept_list_fini(struct sba_kept_list *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->v[i].title);
		free(l->v[i].model);
		free(l->v[i].parent);
		free(l->v[i].workdir);
	}
	free(l->v);
	*l = (struct sba_kept_list){ 0 };
}

void sba_parts_fini(struct sba_parts *p)
{
	for (size_t i = 0; i < p->n; i++)
		free(p->v[i].data);
	free(p->v);
	*p = (struct sba_parts){ 0 };
}

size_t sba_part_head(const struct sba_part *p)
{
	const char *end = memchr(p->data, '\n', p->len);
	return end ? (size_t)(end - p->data) : p->len;
}

int sba_parts_add(struct sba_parts *p, const char *name, struct sba_buf *data,
		  struct sba_error *err)
{
	size_t len = data->len, total = len;
	int rc = sba_buf_check(data, name, err);
	if (rc < 0)
		return rc;
	for (size_t i = 0; i < p->n; i++)
		total += p->v[i].len;
	if (total > SBA_SESSION_MAX)
		return sba_fail(err, SBA_ELIMIT, "session: more than %d MiB with its parents",
				SBA_SESSION_MAX / SBA_MIB);
	struct sba_part *grown = realloc(p->v, (p->n + 1) * sizeof(*grown));
	if (!grown)
		return sba_fail_nomem(err);
	p->v = grown;
	char *bytes = sba_buf_take(data);
	if (!bytes)
		return sba_fail_nomem(err);
	struct sba_part *part = &p->v[p->n++];
	*part = (struct sba_part){ .data = bytes, .len = len };
	snprintf(part->name, sizeof(part->name), "%s", name);
	return 0;
}

/* Where the CLI's ids hold a time, a copy's keeps it: only the end is made anew. */
static int renew_end(const char *id, char ret[SBA_SESSION_ID_MAX + 1], struct sba_error *err)
{
	enum { END = 8 };
	char random[END + 1];
	size_t len = strlen(id);
	int rc = sba_random_hex(random, END / 2, err);
	if (rc < 0)
		return rc;
	if (len <= END || len > SBA_SESSION_ID_MAX)
		return sba_fail(err, SBA_EPROTO, "session id '%.40s': too short", id);
	snprintf(ret, SBA_SESSION_ID_MAX + 1, "%.*s%s", (int)(len - END), id, random);
	return 0;
}

int sba_store_new_id(const struct sba_store *store, const char *id,
		     char ret[SBA_SESSION_ID_MAX + 1], struct sba_error *err)
{
	char uuid[37];
	if (!store->id_prefix)
		return renew_end(id, ret, err);
	int rc = sba_random_uuid(uuid, err);
	if (rc == 0)
		snprintf(ret, SBA_SESSION_ID_MAX + 1, "%s%s", store->id_prefix, uuid);
	return rc;
}
