/* SPDX-License-Identifier: MIT */
/* OpenSandbox's code interpreter: execd's, over a Jupyter server in the sandbox. */
#include "base/limits.h"
#include "remote/opensandbox.h"

#include <string.h>

static int way(const struct sba_remote_box *b, const char *path, char **ret_url,
	       struct sba_strv *ret_headers, struct sba_error *err)
{
	int rc = sba_remote_inside(b, ret_url, err, "%s", path);
	for (size_t i = 0; rc == 0 && i < b->headers.n; i++)
		rc = sba_strv_add(ret_headers, b->headers.v[i], err);
	return rc;
}

/* Without a language it would be run as a shell's, whatever its context is. */
static int compose(const struct sba_code_options *o, json_t **ret, struct sba_error *err)
{
	if (o->env && *o->env)
		return sba_fail(err, SBA_EUNSUPPORTED,
				"opensandbox: code has no environment of its own");
	*ret = json_pack("{s:s, s:{s:s*, s:s}}", "code", o->code, "context", "id", o->context,
			 "language", o->language);
	return *ret ? 0 : sba_fail_nomem(err);
}

static const char *type_of(const char *form, char buf[SBA_REMOTE_TYPE_MAX])
{
	(void)buf;
	return strcmp(form, "text") ? form : "text/plain";
}

static int take_error(struct sba_remote_code *c, const json_t *error, struct sba_error *err)
{
	SBA_BUF struct sba_buf text = SBA_BUF_INIT(SBA_REMOTE_CODE_EVENT_MAX);
	const json_t *line;
	size_t i;
	json_array_foreach(json_object_get(error, "traceback"), i, line) sba_buf_printf(
		&text, "%s%s", i ? "\n" : "", json_is_string(line) ? json_string_value(line) : "");
	int rc = sba_buf_check(&text, "a traceback", err);
	return rc < 0 ? rc
		      : sba_remote_tell_error(c, json_object_get(error, "ename"),
					      json_object_get(error, "evalue"),
					      text.data ? text.data : "", err);
}

/* What has no type is a refusal that came after the answer had begun. */
static int take_refusal(const json_t *event, struct sba_error *err)
{
	const char *said = sba_json_str(event, "message");
	return sba_fail(err, SBA_EENGINE, "opensandbox: run code: %.300s", said ? said : "refused");
}

static int take(struct sba_remote_code *c, const json_t *event, struct sba_error *err)
{
	const char *type = sba_json_str(event, "type");
	const json_t *text = json_object_get(event, "text");
	if (!type)
		return take_refusal(event, err);
	if (!strcmp(type, "init") && json_is_string(text) &&
	    sba_is_word(json_string_value(text), "_-", sizeof(c->session) - 1))
		snprintf(c->session, sizeof(c->session), "%s", json_string_value(text));
	if (!strcmp(type, "stdout"))
		return sba_remote_tell_output(c, SBA_CODE_STDOUT, text, err);
	if (!strcmp(type, "stderr"))
		return sba_remote_tell_output(c, SBA_CODE_STDERR, text, err);
	if (!strcmp(type, "result"))
		return sba_remote_tell_value(c, json_object_get(event, "results"), true, type_of,
					     err);
	if (!strcmp(type, "execution_count"))
		return sba_remote_tell_number(c, json_object_get(event, "execution_count"), err);
	if (!strcmp(type, "error"))
		return take_error(c, json_object_get(event, "error"), err);
	return 0;
}

/* It goes on although nobody listens. */
static int stop(struct sba_remote_code *c, struct sba_until until, struct sba_error *err)
{
	char path[128];
	if (!*c->session)
		return 0;
	snprintf(path, sizeof(path), "/code?id=%s", c->session);
	return sba_remote_code_call(c->box, "DELETE", path, NULL, until, NULL, err);
}

const struct sba_remote_code_kind sba_execd_code = {
	.run = "/code",
	.contexts = "/code/context",
	.context = "/code/contexts/",
	.image = "opensandbox/code-interpreter:v1.1.0",
	.way = way,
	.compose = compose,
	.take = take,
	.stop = stop,
};
