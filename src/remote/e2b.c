/* SPDX-License-Identifier: MIT */
/* E2B's control plane: sandboxes made, found, put off and ended, and the way to envd. */
#include "base/limits.h"
#include "remote/e2b.h"

#include <stdlib.h>
#include <string.h>

#define DOMAIN   "e2b.app"
#define TEMPLATE "base"

enum {
	ENVD_PORT = 49983,
	PAGE = 100,
	LIFE_S = 300,      /* of one that does not say */
	STDIN_SINCE = 502, /* envd 0.5.2 */
};

/* ---- making ---- */

static int check(const struct sba_sandbox_options *o, struct sba_error *err)
{
	int rc = sba_remote_check_common(o, "e2b", err);
	if (rc < 0)
		return rc;
	if (o->memory || o->cpus > 0)
		return sba_fail(err, SBA_EUNSUPPORTED,
				"e2b: memory and cpus are the template's: they cannot be chosen");
	if (o->allow && *o->allow)
		return sba_fail(err, SBA_EUNSUPPORTED,
				"e2b: a sealed sandbox of it reaches nobody: no rules of allow");
	if (o->keepalive_ms < 0)
		return sba_fail(err, SBA_EUNSUPPORTED, "e2b: every sandbox of it ends sometime");
	return 0;
}

static int create(struct sba_remote *r, const struct sba_sandbox_options *o, const json_t *marks,
		  int64_t life_s, struct sba_until until, json_t **ret, struct sba_error *err)
{
	SBA_JSON json_t *env = NULL, *answer = NULL;
	bool sealed = o->network && strcmp(o->network, "sealed") == 0;
	int rc = sba_remote_env(o->env, NULL, &env, err);
	if (rc < 0)
		return rc;
	SBA_JSON json_t *wish = json_pack(
		"{s:s, s:I, s:b, s:b, s:O, s:O}", "templateID", o->image ? o->image : TEMPLATE,
		"timeout", (json_int_t)life_s, "secure", 1, "allow_internet_access", !sealed,
		"metadata", (json_t *)(uintptr_t)marks, "envVars", env);
	if (!wish)
		return sba_fail(err, SBA_EINVAL, "e2b: the template's name is not UTF-8");
	const struct sba_remote_control c = { .method = "POST",
					      .what = "make a sandbox",
					      .body = wish };
	rc = sba_remote_control(r, &c, until, &answer, err);
	/* What is not there when one is made is what it would be made of. */
	if (rc == SBA_ENOTFOUND)
		rc = sba_hint(err, err ? (err->code = SBA_EIMAGE) : SBA_EIMAGE,
			      "is there a template '%s'?", o->image ? o->image : TEMPLATE);
	if (rc < 0)
		return rc;
	const char *id = sba_json_str(answer, "sandboxID");
	if (!id)
		return sba_fail(err, SBA_EPROTO, "e2b: make a sandbox: it has no id");
	json_object_set_new(answer, "id", json_string(id));
	*ret = sba_move(&answer);
	return 0;
}

/* ---- looking ---- */

static int add_one(const json_t *item, const char *prefix, json_t *ret, struct sba_error *err)
{
	const json_t *metadata = json_object_get(item, "metadata");
	const char *id = sba_json_str(item, "sandboxID"), *state = sba_json_str(item, "state");
	const char *alias = sba_json_str(item, "alias");
	/* It may list others than those that were asked for. */
	if (!id || !sba_marks_are(metadata, prefix, NULL))
		return 0;
	SBA_JSON json_t *marks = json_deep_copy(metadata);
	int rc = marks ? sba_marks_set(marks, "image",
				       alias ? alias : sba_json_str(item, "templateID"), err)
		       : sba_fail_nomem(err);
	if (rc == 0 && state && !strcmp(state, "paused"))
		rc = sba_marks_set(marks, "state", "paused", err);
	if (rc == 0 &&
	    json_array_append_new(ret, json_pack("{s:s, s:O}", "id", id, "marks", marks)) < 0)
		rc = sba_fail_nomem(err);
	return rc;
}

/* The token of the next page, if it fits into a URL as it is. */
static void take_token(const struct sba_http_response *answer, char ret[256])
{
	const char *token = sba_http_response_header(answer, "X-Next-Token");
	ret[0] = '\0';
	if (token && strlen(token) < 256)
		snprintf(ret, 256, "%s", token);
}

static int list_page(struct sba_remote *r, const char *prefix, char token[256],
		     struct sba_until until, json_t **ret, struct sba_error *err)
{
	SBA_BUF struct sba_buf url = SBA_BUF_INIT(16 * SBA_KIB);
	struct sba_http_response *answer = NULL;
	sba_buf_printf(&url, "%s/v2/sandboxes?limit=%d", r->url, PAGE);
	if (prefix)
		sba_buf_printf(&url, "&metadata=io.sandbox-agent.prefix%%3D%s", prefix);
	if (*token) {
		sba_buf_puts(&url, "&nextToken=");
		sba_buf_put_url(&url, token);
	}
	int rc = sba_buf_check(&url, "URL", err);
	const struct sba_remote_call call = { .method = "GET",
					      .url = url.data,
					      .what = "list sandboxes",
					      .secret = r->key_header,
					      .again = true };
	if (rc == 0)
		rc = sba_remote_open_call(r, &call, until, &answer, err);
	if (rc == 0) {
		take_token(answer, token);
		rc = sba_remote_read_json(r, &call, answer, until, ret, err);
	}
	sba_http_response_close(answer);
	return rc;
}

static int list(struct sba_remote *r, const char *prefix, struct sba_until until, json_t *ret,
		struct sba_error *err)
{
	char token[256] = "";
	int rc = 0;
	for (int page = 0; rc == 0 && page < SBA_REMOTE_PAGES_MAX; page++) {
		SBA_JSON json_t *items = NULL;
		const json_t *item;
		size_t i;
		rc = list_page(r, prefix, token, until, &items, err);
		if (rc == 0 && !json_is_array(items))
			return sba_fail(err, SBA_EPROTO, "e2b: list sandboxes: no list");
		json_array_foreach(items, i, item)
		{
			if (rc == 0)
				rc = add_one(item, prefix, ret, err);
		}
		if (!*token)
			break;
	}
	return rc;
}

static int look(struct sba_remote *r, const char *id, struct sba_until until, struct sba_error *err)
{
	const struct sba_remote_control c = {
		.method = "GET", .what = "look at a sandbox", .id = id, .again = true
	};
	return sba_remote_control(r, &c, until, NULL, err);
}

/* ---- the way inside ---- */

/* "0.6.13" is 613. */
static int version_of(const char *text)
{
	int major = 0, minor = 0, patch = 0;
	if (!text || sscanf(text, "%4d.%2d.%2d", &major, &minor, &patch) < 2)
		return 0;
	return (major * 100 + minor) * 100 + patch;
}

/* Of a sandbox that says none: that of the API. */
static const char *domain_of(const struct sba_remote *r)
{
	static const char api[] = "https://api.";
	return sba_starts_with(r->url, api) ? r->url + strlen(api) : DOMAIN;
}

int sba_e2b_take_way(struct sba_remote_box *b, const json_t *said, struct sba_error *err)
{
	const struct sba_remote *r = b->remote;
	const char *said_domain = sba_json_str(said, "domain");
	const char *domain = said_domain && *said_domain ? said_domain : domain_of(r);
	const char *token = sba_json_str(said, "envdAccessToken");
	b->version = version_of(sba_json_str(said, "envdVersion"));
	if (b->version < STDIN_SINCE)
		return sba_hint(err,
				sba_fail(err, SBA_EUNSUPPORTED,
					 "e2b: envd %.20s in the sandbox is too old",
					 sba_json_str(said, "envdVersion")
						 ? sba_json_str(said, "envdVersion")
						 : "of no version"),
				"build the template anew: 0.5.2 and later will do");
	int n = r->sandbox_url ? asprintf(&b->base, "%s", r->sandbox_url)
			       : asprintf(&b->base, "https://%d-%s.%.*s", ENVD_PORT, b->id,
					  (int)strcspn(domain, "/"), domain);
	if (n < 0) {
		b->base = NULL;
		return sba_fail_nomem(err);
	}
	int rc = sba_http_url_check(b->base, err);
	if (rc == 0)
		rc = sba_strv_addf(&b->headers, err, "E2b-Sandbox-Id: %s", b->id);
	if (rc == 0)
		rc = sba_strv_addf(&b->headers, err, "E2b-Sandbox-Port: %d", ENVD_PORT);
	if (rc == 0 && token && asprintf(&b->secret, "X-Access-Token: %s", token) < 0) {
		b->secret = NULL;
		rc = sba_fail_nomem(err);
	}
	return rc;
}

static json_t *timeout_of(int64_t s)
{
	return json_pack("{s:I}", "timeout", (json_int_t)(s > 1 ? s : 1));
}

/* Also wakes one that was paused, and says what only it and create() say. */
static int connect_to(struct sba_remote_box *b, struct sba_until until, json_t **ret,
		      struct sba_error *err)
{
	int64_t end = sba_remote_lease_end(b);
	SBA_JSON json_t *body = timeout_of(end ? end - sba_unix_ms() / 1000 : LIFE_S);
	const struct sba_remote_control c = { .method = "POST",
					      .what = "open a sandbox",
					      .id = b->id,
					      .rest = "/connect",
					      .body = body,
					      .again = true };
	return body ? sba_remote_control(b->remote, &c, until, ret, err) : sba_fail_nomem(err);
}

static int greet(struct sba_remote_box *b, struct sba_until until, struct sba_error *err)
{
	return sba_remote_greet(b, "/health", "greet envd", until, err);
}

/* Its proxy may not know it yet (502), or envd not listen. */
static int attach(struct sba_remote_box *b, const json_t *made, struct sba_until until,
		  struct sba_error *err)
{
	static sba_remote_step_fn *const steps[] = { greet, NULL };
	SBA_JSON json_t *said = NULL;
	int rc = made ? 0 : connect_to(b, until, &said, err);
	if (rc == 0)
		rc = sba_e2b_take_way(b, made ? made : said, err);
	return rc == 0 ? sba_remote_come_up(b, steps, until, err) : rc;
}

/* ---- its life ---- */

static int renew(struct sba_remote_box *b, int64_t ends_at, struct sba_until until,
		 struct sba_error *err)
{
	SBA_JSON json_t *body = timeout_of(ends_at - sba_unix_ms() / 1000);
	const struct sba_remote_control c = { .method = "POST",
					      .what = "put a sandbox's end off",
					      .id = b->id,
					      .rest = "/timeout",
					      .body = body,
					      .again = true };
	return body ? sba_remote_control(b->remote, &c, until, NULL, err) : sba_fail_nomem(err);
}

/* ---- the table ---- */

/* A terminal is the guest's, as everywhere. */
static int exec(struct sba_sandbox *s, const struct sba_exec_options *o, struct sba_process **ret,
		struct sba_error *err)
{
	struct sba_exec_options there = *o;
	if (!o->tty)
		return sba_remote_exec(s, o, ret, err);
	if (!there.workdir)
		there.workdir = sba_remote_workdir(s);
	return sba_guest_exec(s, &there, ret, err);
}

static const struct sba_backend backend = {
	.version = SBA_BACKEND_VERSION,
	.name = "e2b",
	.can = SBA_CAN_STDIN | SBA_CAN_TTY | SBA_CAN_SIGNAL | SBA_CAN_HOST_URL | SBA_CAN_PORT |
	       SBA_CAN_TREES | SBA_CAN_RUN_CODE | SBA_CAN_CODE_STATE,
	.workdir = sba_remote_workdir,
	.exec = exec,
	.read = sba_remote_read,
	.write = sba_remote_write,
	.host_url = sba_guest_host_url,
	.close = sba_remote_box_close,
	.free = sba_remote_box_release,
	.run_code = sba_remote_run_code,
	.context_new = sba_remote_context_new,
	.context_end = sba_remote_context_end,
};

const struct sba_remote_kind sba_remote_e2b = {
	.backend = &backend,
	.url = "https://api." DOMAIN,
	.key_name = "X-API-Key",
	.missing_key = "it wants a key:  E2B_API_KEY, or e2b_api_key_file in the configuration",
	.live_input = true,
	.least_s = 15,
	.check = check,
	.create = create,
	.list = list,
	.attach = attach,
	.renew = renew,
	.look = look,
	.compose = sba_envd_compose,
	.stream = sba_envd_stream,
	.decode = sba_envd_decode,
	.input = sba_envd_input,
	.put = sba_envd_put,
	.get = sba_envd_get,
	.code = &sba_e2b_code,
};
