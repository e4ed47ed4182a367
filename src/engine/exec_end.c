/* SPDX-License-Identifier: MIT */
/*
 * How an exec ended. The stream's end says nothing about it: the exit code
 * comes by inspect, which may lag behind, and a container that died under an
 * exec leaves 137, 126, or an exec that "runs" for ever.
 */
#include "engine/exec.h"

#include <string.h>

enum { POLL_MIN_MS = 2, POLL_MAX_MS = 100 };

static int container_died(const struct sba_exec *x, struct sba_error *err)
{
	return sba_fail(err, SBA_EBROKEN, "%s: the container died", x->tried);
}

/* SBA_EBROKEN if the container does not run (any more). */
static int check_container(struct sba_exec *x, struct sba_until until, struct sba_error *err)
{
	SBA_JSON json_t *j = NULL;
	int rc = sba_container_inspect(x->e, x->container, until, &j, err);
	if (rc == SBA_ENOTFOUND || (rc == 0 && !sba_json_bool(j, "State.Running", false)))
		return container_died(x, err);
	return rc;
}

/* 1 with the code, 0 while it runs. Running=false without a code means "not
 * started", which can only be a moment's view. */
static int inspect_exec(struct sba_exec *x, const char *path, struct sba_until until, int *ret,
			struct sba_error *err)
{
	SBA_JSON json_t *j = NULL;
	struct sba_request r = { .method = "GET", .path = path, .tried = x->tried };
	int rc = sba_engine_call(x->e, &r, until, &j, err);
	if (rc == SBA_ENOTFOUND || rc == SBA_EEXIST)
		return container_died(x, err);
	if (rc < 0)
		return rc;
	const json_t *code = json_object_get(j, "ExitCode");
	if (sba_json_bool(j, "Running", true) || !json_is_integer(code))
		return 0;
	*ret = (int)json_integer_value(code);
	return 1;
}

static int pause_for(struct sba_exec *x, int64_t ms, struct sba_until until, struct sba_error *err)
{
	int rc = sba_wait_fd(-1, 0, sba_until_sooner(until, ms), err);
	if (rc == SBA_ETIMEOUT)
		rc = sba_until_check(until, err);
	return rc < 0 ? sba_wrap(err, rc, "%s: it still runs", x->tried) : 0;
}

static int poll_code(struct sba_exec *x, const char *path, struct sba_until until, int *ret,
		     struct sba_error *err)
{
	for (int64_t pause = POLL_MIN_MS;;) {
		int rc = inspect_exec(x, path, until, ret, err);
		if (rc != 0)
			return rc;
		if (pause >= POLL_MAX_MS) {
			pause = POLL_MAX_MS;
			rc = check_container(x, until, err);
		}
		if (rc == 0)
			rc = pause_for(x, pause, until, err);
		if (rc < 0)
			return rc;
		pause *= 2;
	}
}

static int put_exec_path(struct sba_buf *path, const char *id, const char *end,
			 struct sba_error *err)
{
	sba_buf_puts(path, "/exec/");
	sba_buf_put_url(path, id);
	sba_buf_puts(path, end);
	return sba_buf_check(path, "the request's path", err);
}

/* What a kill looks like: only then is it worth asking about the container. */
static bool suspicious(int code)
{
	return code >= 126;
}

int sba_exec_exit_code(struct sba_exec *x, struct sba_until until, int *ret, struct sba_error *err)
{
	SBA_BUF struct sba_buf path = SBA_BUF_INIT(SBA_KIB);
	struct sba_error why;
	int code = 0;
	until = sba_engine_limit(x->e, until);
	int rc = put_exec_path(&path, x->id, "/json", &why);
	if (rc == 0)
		rc = poll_code(x, path.data, until, &code, &why);
	if (rc >= 0 && suspicious(code))
		rc = check_container(x, until, &why);
	if (rc < 0) {
		if (err)
			*err = why;
		return rc;
	}
	*ret = code;
	return 0;
}

int sba_exec_look(struct sba_exec *x, struct sba_until until, int *ret, struct sba_error *err)
{
	SBA_BUF struct sba_buf path = SBA_BUF_INIT(SBA_KIB);
	int code = 0;
	int rc = put_exec_path(&path, x->id, "/json", err);
	if (rc == 0)
		rc = inspect_exec(x, path.data, until, &code, err);
	int died = rc == 0 || (rc == 1 && suspicious(code)) ? check_container(x, until, err) : 0;
	if (rc == 1 && died == 0)
		*ret = code;
	return died < 0 ? died : rc;
}

int sba_exec_resize(struct sba_exec *x, unsigned rows, unsigned columns, struct sba_until until,
		    struct sba_error *err)
{
	char size[64];
	SBA_BUF struct sba_buf path = SBA_BUF_INIT(SBA_KIB);
	snprintf(size, sizeof(size), "/resize?h=%u&w=%u", rows, columns);
	int rc = put_exec_path(&path, x->id, size, err);
	struct sba_request r = { .method = "POST", .path = path.data, .tried = x->tried };
	return rc == 0 ? sba_engine_call(x->e, &r, until, NULL, err) : rc;
}

/* 409: its container is gone. */
bool sba_exec_runs(struct sba_engine *e, const char *id, struct sba_until until)
{
	SBA_BUF struct sba_buf path = SBA_BUF_INIT(SBA_KIB);
	SBA_JSON json_t *j = NULL;
	if (!id || put_exec_path(&path, id, "/json", NULL) < 0)
		return false;
	struct sba_request r = { .method = "GET", .path = path.data, .tried = "inspect exec" };
	int rc = sba_engine_call(e, &r, until, &j, NULL);
	if (rc == SBA_ENOTFOUND || rc == SBA_EEXIST)
		return false;
	return rc < 0 || sba_json_bool(j, "Running", true);
}

/* How runtimes begin what they say in place of the command's output. */
static const char *const marks[] = {
	"OCI runtime exec failed:", "unable to find user ", "unable to find group ",
	"Error: Exec command ",     "exec failed: ",        "OCI runtime error:",
	"Error: runc: exec failed", "Error: crun: ", /* Podman 4.3 to 5.4, on stderr */
};

bool sba_exec_runtime_words(const char *out, size_t len)
{
	for (size_t i = 0; len <= SBA_EXEC_OOB_TEXT_MAX && i < SBA_ARRAY_LEN(marks); i++) {
		size_t n = strlen(marks[i]);
		if (memcmp(out, marks[i], len < n ? len : n) == 0)
			return true;
	}
	return false;
}

bool sba_exec_runtime_error(int code, const char *out, size_t len)
{
	if ((code != 126 && code != 127) || len > SBA_EXEC_OOB_TEXT_MAX)
		return false;
	for (size_t i = 0; i < SBA_ARRAY_LEN(marks); i++) {
		size_t n = strlen(marks[i]);
		if (len >= n && memcmp(out, marks[i], n) == 0)
			return true;
	}
	return false;
}
