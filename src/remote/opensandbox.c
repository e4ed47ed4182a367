/* SPDX-License-Identifier: MIT */
/*
 * OpenSandbox's lifecycle server: sandboxes made, found, put off and ended, and the way to
 * execd in one of them. Measured with opensandbox-server 1.1.1.
 */
#include "base/limits.h"
#include "remote/opensandbox.h"

#include <stdlib.h>
#include <string.h>

enum {
	EXECD_PORT = 44772,
	LEAST_S = 60,
	PAGE = 100,
	CREATE_MS = 10 * 60 * 1000, /* an image may have to be pulled */
};

/* ---- making ---- */

static int check_rules(const struct sba_sandbox_options *o, struct sba_error *err)
{
	for (size_t i = 0; o->allow && o->allow[i]; i++) {
		if (strpbrk(o->allow[i], ":/"))
			return sba_fail(err, SBA_EUNSUPPORTED,
					"allow '%s': a rule of opensandbox is a host or *.suffix, "
					"without port or network",
					o->allow[i]);
	}
	return 0;
}

static int check(const struct sba_sandbox_options *o, struct sba_error *err)
{
	int rc = sba_remote_check_common(o, "opensandbox", err);
	if (rc == 0 && !o->image)
		rc = sba_hint(err, sba_fail(err, SBA_EINVAL, "opensandbox: of which image?"),
			      "as in:  --image debian:stable-slim");
	return rc == 0 ? check_rules(o, err) : rc;
}

static json_t *policy_of(const struct sba_sandbox_options *o)
{
	json_t *rules = json_array();
	for (size_t i = 0; o->allow && o->allow[i]; i++)
		json_array_append_new(
			rules, json_pack("{s:s, s:s}", "action", "allow", "target", o->allow[i]));
	return json_pack("{s:s, s:o}", "defaultAction", "deny", "egress", rules);
}

static bool is_sealed(const struct sba_sandbox_options *o)
{
	return (o->allow && *o->allow) || (o->network && strcmp(o->network, "sealed") == 0);
}

static int wish_of(const struct sba_sandbox_options *o, const json_t *marks, int64_t life_s,
		   json_t **ret, struct sba_error *err)
{
	char cpu[32] = "1", memory[32] = "2Gi";
	SBA_JSON json_t *env = NULL;
	int rc = sba_remote_env(o->env, NULL, &env, err);
	if (rc < 0)
		return rc;
	if (o->cpus > 0)
		snprintf(cpu, sizeof(cpu), "%dm", (int)(o->cpus * 1000 + 0.5));
	if (o->memory > 0)
		snprintf(memory, sizeof(memory), "%lldMi",
			 (long long)(o->memory / SBA_MIB > 0 ? o->memory / SBA_MIB : 1));
	SBA_JSON json_t *wish =
		json_pack("{s:{s:s}, s:[s,s,s], s:{s:s, s:s}, s:O, s:O}", "image", "uri", o->image,
			  "entrypoint", "tail", "-f", "/dev/null", "resourceLimits", "cpu", cpu,
			  "memory", memory, "env", env, "metadata", (json_t *)(uintptr_t)marks);
	if (!wish)
		return sba_fail(err, SBA_EINVAL, "opensandbox: the image's name is not UTF-8");
	if (life_s)
		json_object_set_new(wish, "timeout", json_integer((json_int_t)life_s));
	if (is_sealed(o))
		json_object_set_new(wish, "networkPolicy", policy_of(o));
	*ret = sba_move(&wish);
	return 0;
}

static int create(struct sba_remote *r, const struct sba_sandbox_options *o, const json_t *marks,
		  int64_t life_s, struct sba_until until, json_t **ret, struct sba_error *err)
{
	SBA_JSON json_t *wish = NULL, *answer = NULL;
	int rc = wish_of(o, marks, life_s, &wish, err);
	const struct sba_remote_control c = { .method = "POST",
					      .what = "make a sandbox",
					      .body = wish };
	if (rc == 0)
		rc = sba_remote_control(r, &c, sba_until_sooner(until, CREATE_MS), &answer, err);
	if (rc < 0)
		return rc;
	if (!sba_json_str(answer, "id"))
		return sba_fail(err, SBA_EPROTO, "opensandbox: make a sandbox: it has no id");
	*ret = sba_move(&answer);
	return 0;
}

/* ---- looking ---- */

static int get(struct sba_remote *r, const char *id, struct sba_until until, json_t **ret,
	       struct sba_error *err)
{
	const struct sba_remote_control c = {
		.method = "GET", .what = "look at a sandbox", .id = id, .again = true
	};
	return sba_remote_control(r, &c, sba_until_sooner(until, SBA_REMOTE_CALL_MS), ret, err);
}

static int look(struct sba_remote *r, const char *id, struct sba_until until, struct sba_error *err)
{
	SBA_JSON json_t *j = NULL;
	int rc = get(r, id, until, &j, err);
	const char *state = rc == 0 ? sba_json_str(j, "status.state") : NULL;
	if (state && (!strcmp(state, "Failed") || !strcmp(state, "Terminated") ||
		      !strcmp(state, "Stopping")))
		return sba_fail(err, SBA_ENOTFOUND, "opensandbox: the sandbox has ended: %.200s",
				sba_json_str(j, "status.message")
					? sba_json_str(j, "status.message")
					: state);
	return rc;
}

/* In the words of sba_sandbox_info.state. */
static const char *our_state(const char *state)
{
	static const char *const words[][2] = {
		{ "Pending", "created" },   { "Paused", "paused" },     { "Pausing", "changing" },
		{ "Resuming", "changing" }, { "Stopping", "changing" }, { "Terminated", "gone" },
		{ "Failed", "gone" },
	};
	for (size_t i = 0; state && i < SBA_ARRAY_LEN(words); i++) {
		if (strcmp(words[i][0], state) == 0)
			return words[i][1];
	}
	return "idle";
}

static int add_one(const json_t *item, const char *prefix, json_t *ret, struct sba_error *err)
{
	const json_t *metadata = json_object_get(item, "metadata");
	const char *id = sba_json_str(item, "id");
	if (!id || !sba_marks_are(metadata, prefix, NULL))
		return 0;
	SBA_JSON json_t *marks = json_deep_copy(metadata);
	int rc = marks ? sba_marks_set(marks, "image", sba_json_str(item, "image.uri"), err)
		       : sba_fail_nomem(err);
	if (rc == 0)
		rc = sba_marks_set(marks, "state", our_state(sba_json_str(item, "status.state")),
				   err);
	if (rc == 0 &&
	    json_array_append_new(ret, json_pack("{s:s, s:O}", "id", id, "marks", marks)) < 0)
		rc = sba_fail_nomem(err);
	return rc;
}

static int list(struct sba_remote *r, const char *prefix, struct sba_until until, json_t *ret,
		struct sba_error *err)
{
	bool more = true;
	int rc = 0;
	for (int page = 1; rc == 0 && more && page <= SBA_REMOTE_PAGES_MAX; page++) {
		SBA_BUF struct sba_buf query = SBA_BUF_INIT(16 * SBA_KIB);
		SBA_JSON json_t *answer = NULL;
		sba_buf_printf(&query, "?page=%d&pageSize=%d", page, PAGE);
		if (prefix)
			sba_buf_printf(&query, "&metadata=io.sandbox-agent.prefix%%3D%s", prefix);
		rc = sba_buf_check(&query, "URL", err);
		const struct sba_remote_control c = {
			.method = "GET", .what = "list sandboxes", .rest = query.data, .again = true
		};
		if (rc == 0)
			rc = sba_remote_control(r, &c, until, &answer, err);
		const json_t *items = json_object_get(answer, "items"), *item;
		size_t i;
		if (rc == 0 && !json_is_array(items))
			return sba_fail(err, SBA_EPROTO, "opensandbox: list sandboxes: no list");
		json_array_foreach((json_t *)(uintptr_t)items, i, item)
		{
			if (rc == 0)
				rc = add_one(item, prefix, ret, err);
		}
		more = sba_json_bool(answer, "pagination.hasNextPage", false);
	}
	return rc;
}

/* ---- the way inside ---- */

/* "127.0.0.1:40467/proxy/44772" and the headers that go with it. */
static int take_endpoint(struct sba_remote_box *b, const json_t *j, struct sba_error *err)
{
	const struct sba_remote *r = b->remote;
	const char *endpoint = sba_json_str(j, "endpoint"), *name;
	bool tls = sba_starts_with(r->url, "https://");
	json_t *value;
	if (!endpoint || !*endpoint)
		return SBA_ENOTFOUND;
	size_t len = strlen(endpoint);
	while (len && endpoint[len - 1] == '/')
		len--;
	if (asprintf(&b->base, "%s%.*s",
		     strstr(endpoint, "://") ? ""
		     : tls                   ? "https://"
					     : "http://",
		     (int)len, endpoint) < 0) {
		b->base = NULL;
		return sba_fail_nomem(err);
	}
	int rc = sba_http_url_check(b->base, err);
	json_object_foreach(json_object_get(j, "headers"), name, value)
	{
		if (rc == 0 && json_is_string(value))
			rc = sba_strv_addf(&b->headers, err, "%s: %s", name,
					   json_string_value(value));
	}
	/* The server takes no request of ours for what is inside without its key. */
	size_t host = strcspn(r->url + (tls ? 8 : 7), "/") + (tls ? 8 : 7);
	if (rc == 0 && r->through_server && r->key_header && !strncmp(b->base, r->url, host) &&
	    b->base[host] == '/' && !(b->secret = strdup(r->key_header)))
		rc = sba_fail_nomem(err);
	return rc;
}

static int ask_endpoint(struct sba_remote_box *b, struct sba_until until, struct sba_error *err)
{
	char rest[80];
	SBA_JSON json_t *answer = NULL;
	snprintf(rest, sizeof(rest), "/endpoints/%d?use_server_proxy=%s", EXECD_PORT,
		 b->remote->through_server ? "true" : "false");
	const struct sba_remote_control c = { .method = "GET",
					      .what = "ask the way to a sandbox",
					      .id = b->id,
					      .rest = rest,
					      .again = true };
	int rc = sba_remote_control(b->remote, &c, sba_until_sooner(until, SBA_REMOTE_CALL_MS),
				    &answer, err);
	return rc == 0 ? take_endpoint(b, answer, err) : rc;
}

static int ping(struct sba_remote_box *b, struct sba_until until, struct sba_error *err)
{
	return sba_remote_greet(b, "/ping", "greet execd", until, err);
}

/* As E2B's are by being used. */
static int wake(struct sba_remote_box *b, struct sba_until until, struct sba_error *err)
{
	const struct sba_remote_control c = {
		.method = "POST", .what = "wake a sandbox", .id = b->id, .rest = "/resume"
	};
	int rc = sba_remote_control(b->remote, &c, sba_until_sooner(until, SBA_REMOTE_CALL_MS),
				    NULL, err);
	/* Busy: somebody else was faster. */
	return rc == 0 || rc == SBA_EBUSY ? sba_fail(err, SBA_ENOTFOUND, "it is being woken") : rc;
}

static int is_running(struct sba_remote_box *b, struct sba_until until, struct sba_error *err)
{
	SBA_JSON json_t *j = NULL;
	int rc = get(b->remote, b->id, until, &j, err);
	const char *state = rc == 0 ? sba_json_str(j, "status.state") : NULL;
	const char *said = sba_json_str(j, "status.message");
	if (rc < 0)
		return rc;
	if (state && !strcmp(state, "Running"))
		return 0;
	if (state && (!strcmp(state, "Failed") || !strcmp(state, "Terminated")))
		return sba_fail(err, SBA_EBROKEN, "opensandbox: the sandbox has ended: %.300s",
				said ? said : state);
	if (state && !strcmp(state, "Paused"))
		return wake(b, until, err);
	return sba_fail(err, SBA_ENOTFOUND, "it is %.40s", state ? state : "in no known state");
}

/* The server answers when its container was started, which is before anything in it
 * answers; and it knows the way there later still. */
static int attach(struct sba_remote_box *b, const json_t *made, struct sba_until until,
		  struct sba_error *err)
{
	static sba_remote_step_fn *const steps[] = { is_running, ask_endpoint, ping, NULL };
	(void)made;
	int rc = sba_remote_come_up(b, steps, until, err);
	if (rc == SBA_ETIMEOUT && b->base && !b->remote->through_server)
		return sba_hint(err, rc,
				"is %s reached from here? opensandbox_through_server in the "
				"configuration goes by the server",
				b->base);
	return rc;
}

/* ---- its life ---- */

static int renew(struct sba_remote_box *b, int64_t ends_at, struct sba_until until,
		 struct sba_error *err)
{
	char when[32];
	sba_remote_time_put(ends_at, when);
	SBA_JSON json_t *body = json_pack("{s:s}", "expiresAt", when);
	const struct sba_remote_control c = { .method = "POST",
					      .what = "put a sandbox's end off",
					      .id = b->id,
					      .rest = "/renew-expiration",
					      .body = body,
					      .again = true };
	return body ? sba_remote_control(b->remote, &c, until, NULL, err) : sba_fail_nomem(err);
}

/* ---- the table ---- */

static const struct sba_backend backend = {
	.version = SBA_BACKEND_VERSION,
	.name = "opensandbox",
	.can = SBA_CAN_SIGNAL | SBA_CAN_TREES | SBA_CAN_RUN_CODE | SBA_CAN_CODE_STATE,
	.workdir = sba_remote_workdir,
	.exec = sba_remote_exec,
	.read = sba_remote_read,
	.write = sba_remote_write,
	.close = sba_remote_box_close,
	.free = sba_remote_box_release,
	.run_code = sba_remote_run_code,
	.context_new = sba_remote_context_new,
	.context_end = sba_remote_context_end,
};

const struct sba_remote_kind sba_remote_opensandbox = {
	.backend = &backend,
	.url = "http://localhost:8080/v1",
	.key_name = "OPEN-SANDBOX-API-KEY",
	.missing_key = "it wants a key:  OPEN_SANDBOX_API_KEY, or opensandbox_api_key_file in the "
		       "configuration",
	.least_s = LEAST_S,
	.check = check,
	.create = create,
	.list = list,
	.attach = attach,
	.renew = renew,
	.look = look,
	.compose = sba_execd_compose,
	.stream = sba_execd_stream,
	.decode = sba_execd_decode,
	.put = sba_execd_put,
	.get = sba_execd_get,
	.code = &sba_execd_code,
};
