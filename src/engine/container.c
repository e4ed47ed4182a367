/* SPDX-License-Identifier: MIT */
/* Containers: create, start, inspect, list, and a removal that is final. */
#include "engine/private.h"

#include <stdlib.h>
#include <string.h>

/* "/containers/ID" and what follows; the id is escaped. */
static void put_container(struct sba_buf *b, const char *id, const char *what)
{
	sba_buf_puts(b, "/containers/");
	sba_buf_put_url(b, id);
	sba_buf_puts(b, what);
}

static int call(struct sba_engine *e, const struct sba_buf *path, struct sba_request *r,
		struct sba_until until, json_t **ret, struct sba_error *err)
{
	int rc = sba_buf_check(path, "the request's path", err);
	if (rc < 0)
		return rc;
	r->path = path->data;
	return sba_engine_call(e, r, until, ret, err);
}

/* The engine says 404 for a missing image as well as for a container or a
 * network that the spec names. */
static int create_failed(struct sba_error *err, int rc)
{
	if (rc == SBA_ENOTFOUND && strcasestr(err->text, "no such image")) {
		err->code = SBA_EIMAGE;
		return sba_hint(err, SBA_EIMAGE, "build or pull the image first");
	}
	/* Podman 4.3 to 5.4 answer 500 where Docker says 409. */
	if (rc == SBA_EENGINE && strstr(err->text, "that name is already in use"))
		rc = err->code = SBA_EEXIST;
	return rc;
}

int sba_container_create(struct sba_engine *e, const char *name, const json_t *spec,
			 struct sba_until until, char ret_id[SBA_ID_MAX], struct sba_error *err)
{
	SBA_JSON json_t *answer = NULL;
	SBA_BUF struct sba_buf path = SBA_BUF_INIT(SBA_KIB);
	struct sba_error why;
	char tried[160];
	snprintf(tried, sizeof(tried), "create container '%s'", name ? name : "");
	sba_buf_puts(&path, "/containers/create");
	sba_query_put(&path, "name", name);
	struct sba_request r = { .method = "POST", .json = spec, .tried = tried };
	int rc = sba_buf_check(&path, "the request's path", &why);
	r.path = path.data;
	/* The engine goes on with what it was asked for although nobody waits: the
	 * container would come after all, and nobody would know its id. */
	until.cancel_fd = -1;
	if (rc == 0)
		rc = sba_engine_call_until(e, &r, until, &answer, &why);
	if (rc < 0) {
		rc = create_failed(&why, rc);
		if (err)
			*err = why;
		return rc;
	}
	const char *id = sba_json_str(answer, "Id");
	if (!id || !*id || strlen(id) >= SBA_ID_MAX)
		return sba_fail(err, SBA_EPROTO, "%s: no id in the engine's answer", tried);
	snprintf(ret_id, SBA_ID_MAX, "%s", id);
	return 0;
}

int sba_container_start(struct sba_engine *e, const char *id, struct sba_until until,
			struct sba_error *err)
{
	SBA_BUF struct sba_buf path = SBA_BUF_INIT(SBA_KIB);
	char tried[160];
	snprintf(tried, sizeof(tried), "start container '%s'", id);
	put_container(&path, id, "/start");
	struct sba_request r = { .method = "POST", .tried = tried };
	return call(e, &path, &r, until, NULL, err);
}

int sba_container_kill(struct sba_engine *e, const char *id, struct sba_until until,
		       struct sba_error *err)
{
	SBA_BUF struct sba_buf path = SBA_BUF_INIT(SBA_KIB);
	char tried[160];
	snprintf(tried, sizeof(tried), "kill container '%s'", id);
	/* Podman 4.3's answer to the other may take twenty seconds. */
	if (e->podman)
		sba_buf_puts(&path, "/libpod");
	put_container(&path, id, "/kill");
	int rc = sba_buf_check(&path, "the request's path", err);
	struct sba_request r = { .method = "POST", .path = path.data, .tried = tried };
	return rc < 0 ? rc : sba_engine_call_until(e, &r, until, NULL, err);
}

int sba_container_rename(struct sba_engine *e, const char *id, const char *name,
			 struct sba_until until, struct sba_error *err)
{
	SBA_BUF struct sba_buf path = SBA_BUF_INIT(SBA_KIB);
	struct sba_error why;
	char tried[160];
	snprintf(tried, sizeof(tried), "rename container '%.64s'", id);
	put_container(&path, id, "/rename");
	sba_query_put(&path, "name", name);
	struct sba_request r = { .method = "POST", .path = path.data, .tried = tried };
	int rc = sba_buf_check(&path, "the request's path", &why);
	/* Whether it happened must be known. */
	until.cancel_fd = -1;
	if (rc == 0)
		rc = sba_engine_call_until(e, &r, until, NULL, &why);
	if (rc == SBA_EENGINE && strcasestr(why.text, "same name as its current"))
		rc = why.code = SBA_EEXIST;
	/* Docker 26.1, of one that it removes at the moment: its files are gone already. */
	else if (rc == SBA_EENGINE && strcasestr(why.text, "no such file or directory"))
		rc = why.code = SBA_ENOTFOUND;
	if (rc < 0 && err)
		*err = why;
	return rc;
}

static int ask(struct sba_engine *e, const char *id, const char *what, const char *about,
	       struct sba_until until, json_t **ret, struct sba_error *err)
{
	SBA_BUF struct sba_buf path = SBA_BUF_INIT(SBA_KIB);
	char tried[160];
	snprintf(tried, sizeof(tried), "%s container '%s'", about, id);
	put_container(&path, id, what);
	struct sba_request r = { .method = "GET", .tried = tried };
	return call(e, &path, &r, until, ret, err);
}

int sba_container_inspect(struct sba_engine *e, const char *id, struct sba_until until,
			  json_t **ret, struct sba_error *err)
{
	return ask(e, id, "/json", "inspect", until, ret, err);
}

int sba_container_changes(struct sba_engine *e, const char *id, struct sba_until until,
			  json_t **ret, struct sba_error *err)
{
	return ask(e, id, "/changes", "ask what changed in", until, ret, err);
}

static json_t *label_filter(const char *const *labels)
{
	SBA_JSON json_t *list = json_array();
	for (; labels && *labels; labels++) {
		if (json_array_append_new(list, json_string(*labels)) < 0)
			return NULL;
	}
	return json_pack("{s:O}", "label", list);
}

/* ---- Podman's order ---- */

/* Podman lists in no order that means anything, and tells the moment of a
 * creation to the second; its own list has the fraction. */
struct listed {
	json_t *container; /* the list's */
	int64_t created;   /* UNIX seconds */
	int64_t nanoseconds;
};

/* "2026-01-31T12:00:00.0123Z": trailing zeros are left out. */
static int64_t fraction(const char *time)
{
	const char *dot = strchr(time, '.');
	const char *at = dot ? dot + 1 : "";
	int64_t ns = 0;
	for (int i = 0; i < 9; i++)
		ns = 10 * ns + (*at >= '0' && *at <= '9' ? *at++ - '0' : 0);
	return ns;
}

/* -1: it has gone since. */
static int64_t nanoseconds_of(const json_t *own_list, const char *id)
{
	size_t i;
	json_t *c;
	json_array_foreach(own_list, i, c)
	{
		const char *its_id = sba_json_str(c, "Id"), *created = sba_json_str(c, "Created");
		if (created && its_id && id && strcmp(its_id, id) == 0)
			return fraction(created);
	}
	return -1;
}

static int newest_first(const void *a, const void *b)
{
	const struct listed *x = a, *y = b;
	if (x->created != y->created)
		return x->created < y->created ? 1 : -1;
	return (x->nanoseconds < y->nanoseconds) - (x->nanoseconds > y->nanoseconds);
}

static int sort_list(const json_t *own_list, json_t *list, struct sba_error *err)
{
	size_t n = json_array_size(list), i;
	SBA_FREE struct listed *v = calloc(n + 1, sizeof(*v));
	SBA_JSON json_t *sorted = json_array();
	if (!v || !sorted)
		return sba_fail_nomem(err);
	for (i = 0; i < n; i++) {
		json_t *c = json_array_get(list, i);
		v[i] = (struct listed){ c, sba_json_int(c, "Created", 0),
					nanoseconds_of(own_list, sba_json_str(c, "Id")) };
	}
	qsort(v, n, sizeof(*v), newest_first);
	for (i = 0; i < n; i++) {
		if (v[i].nanoseconds >= 0 && json_array_append(sorted, v[i].container) < 0)
			return sba_fail_nomem(err);
	}
	json_array_clear(list);
	return json_array_extend(list, sorted) < 0 ? sba_fail_nomem(err) : 0;
}

static int podman_order(struct sba_engine *e, const json_t *filter, json_t *list,
			struct sba_until until, struct sba_error *err)
{
	SBA_BUF struct sba_buf path = SBA_BUF_INIT(64 * (size_t)SBA_KIB);
	SBA_JSON json_t *own_list = NULL;
	if (json_array_size(list) < 2)
		return 0;
	sba_buf_puts(&path, "/libpod/containers/json?all=true");
	sba_query_put_json(&path, "filters", filter);
	struct sba_request r = { .method = "GET", .tried = "list containers" };
	int rc = call(e, &path, &r, until, &own_list, err);
	return rc < 0 ? rc : sort_list(own_list, list, err);
}

int sba_container_list(struct sba_engine *e, const char *const *labels, struct sba_until until,
		       json_t **ret, struct sba_error *err)
{
	SBA_BUF struct sba_buf path = SBA_BUF_INIT(64 * (size_t)SBA_KIB);
	SBA_JSON json_t *filter = label_filter(labels);
	SBA_JSON json_t *list = NULL;
	if (!filter)
		return sba_fail_nomem(err);
	sba_buf_puts(&path, "/containers/json?all=1");
	sba_query_put_json(&path, "filters", filter);
	struct sba_request r = { .method = "GET", .tried = "list containers" };
	int rc = call(e, &path, &r, until, &list, err);
	if (rc < 0)
		return rc;
	if (!json_is_array(list))
		return sba_fail(err, SBA_EPROTO, "list containers: not a JSON array");
	rc = e->podman ? podman_order(e, filter, list, until, err) : 0;
	if (rc < 0)
		return rc;
	*ret = sba_move(&list);
	return 0;
}

/* ---- removal ---- */

enum { GONE_POLL_MIN_MS = 5, GONE_POLL_MAX_MS = 200 };

static int request_removal(struct sba_engine *e, const char *path, const char *tried,
			   struct sba_until until, struct sba_error *err)
{
	struct sba_request r = { .method = "DELETE", .path = path, .tried = tried };
	int rc = sba_engine_call_until(e, &r, until, NULL, err);
	return rc == SBA_ENOTFOUND ? 0 : rc;
}

/* 409: a removal is in progress. 500 and so: the engine (Docker 20.10 to 26.1) has killed
 * it and does not wait more than ten seconds for the end, which on a machine with other
 * work can take longer. */
static bool is_under_way(int rc, const struct sba_error *why)
{
	return rc == SBA_EEXIST ||
	       (rc == SBA_EENGINE && strstr(why->text, "did not receive an exit event"));
}

static int pause_for(int64_t ms, const char *tried, struct sba_until until, struct sba_error *err)
{
	int rc = sba_wait_fd(-1, 0, sba_until_sooner(until, ms), err);
	if (rc == SBA_ETIMEOUT)
		rc = sba_until_check(until, err);
	return rc < 0 ? sba_wrap(err, rc, "%s", tried) : 0;
}

/* Asks again and again until the engine does not know it any more: its name
 * stays taken until then. Who else removes it makes no difference. */
int sba_container_remove(struct sba_engine *e, const char *id, struct sba_until until,
			 struct sba_error *err)
{
	SBA_BUF struct sba_buf path = SBA_BUF_INIT(SBA_KIB);
	struct sba_error why;
	char tried[160];
	snprintf(tried, sizeof(tried), "remove container '%s'", id);
	put_container(&path, id, "?force=1&v=1");
	int rc = sba_buf_check(&path, "the request's path", err);
	if (rc < 0)
		return rc;
	int64_t pause = GONE_POLL_MIN_MS;
	rc = request_removal(e, path.data, tried, until, &why);
	while (is_under_way(rc, &why)) {
		rc = pause_for(pause, tried, until, &why);
		if (rc == 0)
			rc = request_removal(e, path.data, tried, until, &why);
		pause = pause < GONE_POLL_MAX_MS ? 2 * pause : GONE_POLL_MAX_MS;
	}
	if (rc < 0 && err)
		*err = why;
	return rc;
}
