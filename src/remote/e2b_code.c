/* SPDX-License-Identifier: MIT */
/*
 * E2B's code interpreter: a server of its own in the sandbox, whose answer has a line for
 * each event. Measured with its server over a real Jupyter (ipykernel 6.31).
 */
#include "base/limits.h"
#include "remote/e2b.h"

#include <string.h>

#define ENVD_HOST "https://49983-"

enum { CODE_PORT = 49999 };

static bool is_port(const char *header)
{
	return sba_starts_with(header, "E2b-Sandbox-Port:");
}

static int way(const struct sba_remote_box *b, const char *path, char **ret_url,
	       struct sba_strv *ret_headers, struct sba_error *err)
{
	int n = b->remote->sandbox_url ? asprintf(ret_url, "%s%s", b->base, path)
				       : asprintf(ret_url, "https://%d-%s%s", CODE_PORT,
						  b->base + strlen(ENVD_HOST), path);
	if (n < 0) {
		*ret_url = NULL;
		return sba_fail_nomem(err);
	}
	int rc = 0;
	for (size_t i = 0; rc == 0 && i < b->headers.n; i++) {
		if (!is_port(b->headers.v[i]))
			rc = sba_strv_add(ret_headers, b->headers.v[i], err);
	}
	return rc < 0 ? rc : sba_strv_addf(ret_headers, err, "E2b-Sandbox-Port: %d", CODE_PORT);
}

/* A context has its language: naming both is refused. */
static int compose(const struct sba_code_options *o, json_t **ret, struct sba_error *err)
{
	SBA_JSON json_t *env = NULL;
	int rc = sba_remote_env(o->env, NULL, &env, err);
	if (rc < 0)
		return rc;
	*ret = json_pack("{s:s, s:s?, s:s?, s:O}", "code", o->code, "context_id", o->context,
			 "language", o->context ? NULL : o->language, "env_vars", env);
	return *ret ? 0 : sba_fail_nomem(err);
}

/* The short names that it gives to types. */
static const char *type_of(const char *form, char buf[SBA_REMOTE_TYPE_MAX])
{
	static const char *const types[][2] = {
		{ "text", "text/plain" },        { "html", "text/html" },
		{ "markdown", "text/markdown" }, { "svg", "image/svg+xml" },
		{ "png", "image/png" },          { "jpeg", "image/jpeg" },
		{ "pdf", "application/pdf" },    { "latex", "text/latex" },
		{ "json", "application/json" },  { "javascript", "application/javascript" },
	};
	for (size_t i = 0; i < SBA_ARRAY_LEN(types); i++) {
		if (strcmp(types[i][0], form) == 0)
			return types[i][1];
	}
	if (strcmp(form, "data") != 0 && strcmp(form, "chart") != 0)
		return NULL;
	snprintf(buf, SBA_REMOTE_TYPE_MAX, "e2b/%s", form);
	return buf;
}

static int take(struct sba_remote_code *c, const json_t *event, struct sba_error *err)
{
	const char *type = sba_json_str(event, "type");
	const json_t *text = json_object_get(event, "text");
	if (!type)
		return 0;
	if (!strcmp(type, "stdout"))
		return sba_remote_tell_output(c, SBA_CODE_STDOUT, text, err);
	if (!strcmp(type, "stderr"))
		return sba_remote_tell_output(c, SBA_CODE_STDERR, text, err);
	if (!strcmp(type, "result"))
		return sba_remote_tell_value(
			c, event, sba_json_bool(event, "is_main_result", false), type_of, err);
	if (!strcmp(type, "number_of_executions"))
		return sba_remote_tell_number(c, json_object_get(event, "execution_count"), err);
	if (!strcmp(type, "error"))
		return sba_remote_tell_error(c, json_object_get(event, "name"),
					     json_object_get(event, "value"),
					     sba_json_str(event, "traceback"), err);
	if (!strcmp(type, "unexpected_end_of_execution"))
		return sba_fail(err, SBA_ELOST, "e2b: run code: its kernel has ended");
	return 0;
}

/* The server interrupts what nobody listens to, but late: what is run next in the same
 * context may be hit by that and never end. A context of ours begins anew instead. */
static int stop(struct sba_remote_code *c, struct sba_until until, struct sba_error *err)
{
	char path[SBA_CODE_CONTEXT_MAX + 64];
	if (!c->options->context)
		return 0;
	snprintf(path, sizeof(path), "/contexts/%s/restart", c->options->context);
	SBA_JSON json_t *body = json_object();
	return body ? sba_remote_code_call(c->box, "POST", path, body, until, NULL, err)
		    : sba_fail_nomem(err);
}

const struct sba_remote_code_kind sba_e2b_code = { .run = "/execute",
						   .contexts = "/contexts",
						   .context = "/contexts/",
						   .image = "code-interpreter-v1",
						   .way = way,
						   .compose = compose,
						   .take = take,
						   .stop = stop };
