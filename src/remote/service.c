/* SPDX-License-Identifier: MIT */
/*
 * A service of sandboxes: one of ours made there, found again by its marks, listed. What is
 * made is ready when a command has run in it.
 */
#include "base/limits.h"
#include "remote/private.h"

#include <stdlib.h>
#include <string.h>

enum {
	READY_MS = 60 * 1000,
	LIST_MS = 60 * 1000,
	UNDO_MS = 30 * 1000,
	KEEPALIVE_MS = 3600 * 1000,
	LIFETIME_MS = 24 * 3600 * 1000,
};

static const struct sba_remote_kind *const kinds[] = { &sba_remote_opensandbox, &sba_remote_e2b };

const char *const *sba_remote_names(void)
{
	static const char *const names[] = { "opensandbox", "e2b", NULL };
	return names;
}

/* ---- a handle on the service ---- */

static int copy(const char *text, char **ret, struct sba_error *err)
{
	if (text && !(*ret = strdup(text)))
		return sba_fail_nomem(err);
	return 0;
}

/* Without the slash that people put there. */
static int copy_url(const char *what, const char *url, char **ret, struct sba_error *err)
{
	if (!url)
		return 0;
	int rc = sba_http_url_check(url, err);
	if (rc < 0)
		return sba_wrap(err, rc, "%s '%.200s'", what, url);
	size_t len = strlen(url);
	while (len && url[len - 1] == '/')
		len--;
	*ret = strndup(url, len);
	return *ret ? 0 : sba_fail_nomem(err);
}

static int fill(struct sba_remote *r, const struct sba_remote_options *o, struct sba_error *err)
{
	const struct sba_http_client_options ho = { .ca_file = o->ca_file };
	int rc = copy_url("URL", o->url ? o->url : r->kind->url, &r->url, err);
	if (rc == 0)
		rc = copy_url("sandbox URL", o->sandbox_url, &r->sandbox_url, err);
	if (rc == 0)
		rc = copy(o->key, &r->key, err);
	if (rc == 0)
		rc = copy(o->key_from, &r->key_from, err);
	if (rc == 0)
		rc = copy(o->workdir, &r->workdir, err);
	if (rc == 0 && r->key &&
	    asprintf(&r->key_header, "%s: %s", r->kind->key_name, r->key) < 0) {
		r->key_header = NULL;
		rc = sba_fail_nomem(err);
	}
	if (rc == 0 && o->workdir && o->workdir[0] != '/')
		rc = sba_fail(err, SBA_EINVAL, "workdir '%s': it must begin with '/'", o->workdir);
	return rc == 0 ? sba_http_client_open(&ho, &r->http, err) : rc;
}

int sba_remote_open(const char *service, const struct sba_remote_options *options,
		    struct sba_remote **ret, struct sba_error *err)
{
	static const struct sba_remote_options defaults = { 0 };
	const struct sba_remote_options *o = options ? options : &defaults;
	const struct sba_remote_kind *kind = NULL;
	for (size_t i = 0; i < SBA_ARRAY_LEN(kinds); i++) {
		if (strcmp(kinds[i]->backend->name, service) == 0)
			kind = kinds[i];
	}
	if (!kind)
		return sba_fail(err, SBA_EINVAL, "there is no service '%s'", service);
	struct sba_remote *r = calloc(1, sizeof(*r));
	if (!r)
		return sba_fail_nomem(err);
	r->kind = kind;
	r->through_server = o->through_server;
	r->ready_ms = o->ready_ms > 0 ? o->ready_ms : READY_MS;
	r->cancel = o->cancel;
	int rc = fill(r, o, err);
	if (rc < 0) {
		sba_remote_close(r);
		return sba_wrap(err, rc, "%s", service);
	}
	*ret = r;
	return 0;
}

static void wipe(char *secret)
{
	if (secret)
		explicit_bzero(secret, strlen(secret));
	free(secret);
}

void sba_remote_close(struct sba_remote *r)
{
	if (!r)
		return;
	sba_http_client_close(r->http);
	wipe(r->key);
	wipe(r->key_header);
	free(r->key_from);
	free(r->url);
	free(r->sandbox_url);
	free(r->workdir);
	free(r);
}

/* ---- what is asked for ---- */

int sba_remote_check_text(const char *what, const char *text, struct sba_error *err)
{
	if (sba_utf8_valid(text, strlen(text)))
		return 0;
	return sba_fail(err, SBA_EINVAL, "%s: only UTF-8 gets there", what);
}

int sba_remote_env(const char *const *env, const char *const more[2], json_t **ret,
		   struct sba_error *err)
{
	SBA_JSON json_t *j = json_object();
	int rc = !j || (more && json_object_set_new(j, more[0], json_string(more[1])) < 0)
			 ? sba_fail_nomem(err)
			 : 0;
	for (; rc == 0 && env && *env; env++) {
		const char *equals = strchr(*env, '=');
		SBA_FREE char *name = strndup(*env, equals ? (size_t)(equals - *env) : 0);
		if (!equals || equals == *env)
			return sba_fail(err, SBA_EINVAL, "environment: 'K=V' is wanted");
		rc = sba_remote_check_text("environment", *env, err);
		if (rc == 0 && (!name || json_object_set_new(j, name, json_string(equals + 1)) < 0))
			rc = sba_fail_nomem(err);
	}
	if (rc == 0)
		*ret = sba_move(&j);
	return rc;
}

int sba_remote_check_common(const struct sba_sandbox_options *o, const char *service,
			    struct sba_error *err)
{
	const struct {
		bool asked;
		const char *what;
	} never[] = {
		{ o->user != NULL, "another user" },
		{ o->pids > 0, "a limit of processes" },
		{ o->mounts && *o->mounts, "mounts" },
		{ o->runtime != NULL, "a runtime" },
		{ o->ca_file != NULL, "a CA bundle" },
		{ o->pool, "a pool" },
		{ o->image_id != NULL, "an image by its id" },
	};
	for (size_t i = 0; i < SBA_ARRAY_LEN(never); i++) {
		if (never[i].asked)
			return sba_fail(err, SBA_EUNSUPPORTED, "%s: %s: its sandboxes have none",
					service, never[i].what);
	}
	return 0;
}

/* With every default resolved. */
static struct sba_sandbox_options resolve(const struct sba_remote *r,
					  const struct sba_sandbox_options *o)
{
	struct sba_sandbox_options w = *o;
	if (!w.keepalive_ms)
		w.keepalive_ms = KEEPALIVE_MS;
	if (w.keepalive_ms > 0 && w.keepalive_ms < r->kind->least_s * 1000)
		w.keepalive_ms = r->kind->least_s * 1000;
	if (!w.max_lifetime_ms)
		w.max_lifetime_ms = LIFETIME_MS;
	if (w.allow && *w.allow)
		w.network = "sealed";
	else if (!w.network)
		w.network = "open";
	return w;
}

static int64_t life_of(const struct sba_remote *r, const struct sba_sandbox_options *o)
{
	int64_t ms = o->keepalive_ms > 0 ? o->keepalive_ms : 0;
	if (o->max_lifetime_ms > 0 && (!ms || ms > o->max_lifetime_ms))
		ms = o->max_lifetime_ms;
	int64_t s = (ms + 999) / 1000;
	return !s || s >= r->kind->least_s ? s : r->kind->least_s;
}

/* ---- what is there ---- */

static int list_all(struct sba_remote *r, const char *prefix, json_t **ret, struct sba_error *err)
{
	SBA_JSON json_t *all = json_array();
	int rc = all ? r->kind->list(r, prefix, sba_remote_until(r, LIST_MS), all, err)
		     : sba_fail_nomem(err);
	if (rc == 0)
		*ret = sba_move(&all);
	return rc;
}

static const json_t *find_in(const json_t *all, const char *name)
{
	const json_t *one;
	size_t i;
	json_array_foreach((json_t *)(uintptr_t)all, i, one)
	{
		if (sba_marks_are(json_object_get(one, "marks"), NULL, name))
			return one;
	}
	return NULL;
}

static int check_room(struct sba_remote *r, const struct sba_sandbox_options *o,
		      const json_t *marks, struct sba_error *err)
{
	SBA_JSON json_t *all = NULL;
	const char *name = sba_marks_get(marks, "name");
	int rc = list_all(r, sba_marks_get(marks, "prefix"), &all, err);
	if (rc < 0)
		return rc;
	if (find_in(all, name))
		return sba_hint(err,
				sba_fail(err, SBA_EEXIST, "%s: the name '%s' is taken",
					 r->kind->backend->name, name),
				"remove it:  sandbox-agent rm %s/%s", r->kind->backend->name, name);
	if (o->max_sandboxes > 0 && json_array_size(all) >= (size_t)o->max_sandboxes)
		return sba_hint(err,
				sba_fail(err, SBA_ELIMIT, "%s: there are %zu sandboxes already",
					 r->kind->backend->name, json_array_size(all)),
				"max_containers in the configuration allows more");
	return 0;
}

/* ---- a handle on one ---- */

/* Nobody else has the handle yet. */
static int set_workdir(struct sba_remote_box *b, const char *path, struct sba_error *err)
{
	char *mine = strdup(path);
	if (!mine)
		return sba_fail_nomem(err);
	free(b->workdir);
	b->workdir = mine;
	return 0;
}

/* The first command: it runs, so the sandbox is ready; and says where agents work. */
static int settle(struct sba_sandbox *s, struct sba_until until, struct sba_error *err)
{
	static const char text[] = "w=$1; if [ -z \"$w\" ]; then w=/workspace; "
				   "mkdir -p \"$w\" 2>/dev/null && [ -w \"$w\" ] || "
				   "w=${HOME:-/tmp}/workspace; fi; mkdir -p -- \"$w\" && "
				   "cd -- \"$w\" && pwd";
	struct sba_remote_box *b = sba_remote_box_of(s);
	const char *const argv[] = {
		"sh", "-c", text, "sh", b->remote->workdir ? b->remote->workdir : "", NULL
	};
	int left = sba_until_left(until);
	const struct sba_run_options o = {
		.argv = argv, .workdir = "/", .timeout_ms = left > 0 ? left : 1, .max_output = 8192
	};
	struct sba_run_result r = { 0 };
	int rc = sba_sandbox_run(s, &o, &r, err);
	if (rc < 0)
		return rc;
	r.out[strcspn(r.out, "\n")] = '\0';
	if (r.exit.kind == SBA_TIMED_OUT)
		rc = sba_fail(err, SBA_ETIMEOUT, "its first command did not end in time");
	else if (sba_exit_status(&r.exit) != 0 || r.out[0] != '/')
		rc = sba_fail(err, SBA_EBROKEN, "its first command failed: %.300s", r.err);
	else
		rc = set_workdir(b, r.out, err);
	sba_run_result_fini(&r);
	return rc;
}

static int open_box(struct sba_remote *r, const char *id, const json_t *marks, const json_t *made,
		    struct sba_sandbox **ret, struct sba_error *err)
{
	const struct sba_until until = sba_remote_until(r, r->ready_ms);
	struct sba_remote_box *b = NULL;
	struct sba_sandbox *s = NULL;
	int rc = sba_remote_box_new(r, id, marks, &b, err);
	if (rc < 0 || !b)
		return rc;
	rc = r->kind->attach(b, made, until, err);
	const struct sba_given given = {
		.backend = r->kind->backend,
		.self = b,
		.marks = b->marks,
		.cancel = r->cancel,
		.carries = r->kind->backend->can & SBA_CAN_PORT,
	};
	if (rc == 0)
		rc = sba_sandbox_give(&given, &s, err);
	if (rc < 0 || !s) {
		sba_remote_box_free(b);
		return rc;
	}
	rc = settle(s, until, err);
	if (rc == 0)
		rc = sba_remote_lease_start(b, err);
	if (rc < 0)
		sba_sandbox_close(s);
	else
		*ret = s;
	return rc;
}

/* An answer that was lost: whether it was made all the same, its mark tells. */
static void undo(struct sba_remote *r, const json_t *marks)
{
	SBA_JSON json_t *all = json_array();
	const json_t *one;
	size_t i;
	const struct sba_until until = sba_until_in(UNDO_MS);
	if (!all || r->kind->list(r, sba_marks_get(marks, "prefix"), until, all, NULL) < 0)
		return;
	json_array_foreach(all, i, one)
	{
		const json_t *theirs = json_object_get(one, "marks");
		if (strcmp(sba_marks_get(theirs, "id"), sba_marks_get(marks, "id")) == 0 &&
		    sba_remote_remove(r, sba_json_str(one, "id"), until, NULL) < 0)
			sba_log("remote", "a sandbox was left behind; it ends by itself");
	}
}

static int make(struct sba_remote *r, const struct sba_sandbox_options *o, const json_t *marks,
		struct sba_sandbox **ret, struct sba_error *err)
{
	SBA_JSON json_t *made = NULL;
	const struct sba_until until = { SBA_NEVER, sba_cancel_fd(r->cancel) };
	int rc = r->kind->create(r, o, marks, life_of(r, o), until, &made, err);
	if (rc == SBA_ELOST || rc == SBA_ECANCELED || rc == SBA_ETIMEOUT)
		undo(r, marks);
	if (rc < 0)
		return rc;
	const char *id = sba_json_str(made, "id");
	/* No name of an image is a word that metadata takes. */
	SBA_JSON json_t *known = json_deep_copy(marks);
	rc = known ? sba_marks_set(known, "image", o->image, err) : sba_fail_nomem(err);
	if (rc == 0)
		rc = open_box(r, id, known, made, ret, err);
	if (rc < 0 && sba_remote_remove(r, id, sba_until_in(UNDO_MS), NULL) < 0)
		sba_log("remote", "sandbox %s was left behind; it ends by itself", id);
	return rc;
}

int sba_remote_create(struct sba_remote *r, const struct sba_sandbox_options *options,
		      struct sba_sandbox **ret, struct sba_error *err)
{
	SBA_JSON json_t *marks = NULL;
	const struct sba_sandbox_options o = resolve(r, options);
	int rc = r->kind->check(&o, err);
	if (rc == 0)
		rc = sba_marks_make(&o, &marks, err);
	if (rc == 0)
		rc = check_room(r, &o, marks, err);
	if (rc < 0)
		return rc;
	rc = make(r, &o, marks, ret, err);
	return rc < 0 ? sba_wrap(err, rc, "sandbox '%s'", sba_marks_get(marks, "name")) : 0;
}

int sba_remote_find(struct sba_remote *r, const char *prefix, const char *name,
		    struct sba_sandbox **ret, struct sba_error *err)
{
	SBA_JSON json_t *all = NULL;
	int rc = list_all(r, prefix ? prefix : SBA_DEFAULT_PREFIX, &all, err);
	if (rc < 0)
		return rc;
	const json_t *one = find_in(all, name);
	if (!one)
		return sba_hint(err,
				sba_fail(err, SBA_ENOTFOUND, "%s: there is no sandbox '%s'",
					 r->kind->backend->name, name),
				"what there is:  sandbox-agent ps --backend %s",
				r->kind->backend->name);
	rc = open_box(r, sba_json_str(one, "id"), json_object_get(one, "marks"), NULL, ret, err);
	return rc < 0 ? sba_wrap(err, rc, "sandbox '%s'", name) : 0;
}

int sba_remote_list(struct sba_remote *r, const struct sba_list_options *options,
		    struct sba_sandbox_list **ret, struct sba_error *err)
{
	static const struct sba_list_options defaults = { 0 };
	const struct sba_list_options *o = options ? options : &defaults;
	const char *prefix = o->prefix ? o->prefix : SBA_DEFAULT_PREFIX;
	SBA_JSON json_t *all = NULL, *marks = json_array();
	const json_t *one;
	size_t i;
	int rc = list_all(r, strcmp(prefix, "*") == 0 ? NULL : prefix, &all, err);
	if (rc < 0)
		return rc;
	json_array_foreach(all, i, one)
	{
		if (json_array_append(marks, json_object_get(one, "marks")) < 0)
			return sba_fail_nomem(err);
	}
	return sba_sandbox_list_given(r->kind->backend->name, marks, o, ret, err);
}
