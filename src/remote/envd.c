/* SPDX-License-Identifier: MIT */
/*
 * Commands and files by envd: the Connect protocol with JSON messages, and plain HTTP.
 * Measured with envd 0.6.13.
 */
#include "base/limits.h"
#include "remote/e2b.h"

#include <string.h>

enum { PING_S = 20, DEFAULT_USER_BEFORE = 400 }; /* envd 0.4.0 */

/* $1 the command's id, $2 its input ("+": as it comes), $3 its folder. Says why it does not
 * begin, and is the command else. */
static const char beginner[] =
	"i=$1 f=$2 w=$3; shift 3; x() { printf '\\001%s:%s\\n' \"$i\" \"$1\" >&2; exit 1; }; "
	"cd -- \"$w\" 2>/dev/null || x dir; "
	"[ \"$f\" = + ] || exec <\"$f\"; [ \"$f\" = + ] || [ \"$f\" = /dev/null ] || rm -f -- "
	"\"$f\"; "
	"case $1 in */*) [ -e \"$1\" ] || x none; [ -x \"$1\" ] && [ ! -d \"$1\" ] || x noexec;; "
	"*) command -v -- \"$1\" >/dev/null 2>&1 || x none;; esac; exec \"$@\"";

/* ---- starting ---- */

static int args_of(const struct sba_remote_start *s, json_t **ret, struct sba_error *err)
{
	const char *const fixed[] = { "-c",
				      beginner,
				      "sh",
				      s->id,
				      s->live_input ? "+" : s->input ? s->input : "/dev/null",
				      s->workdir };
	SBA_JSON json_t *args = json_array();
	int rc = args ? sba_remote_check_text("folder", s->workdir, err) : sba_fail_nomem(err);
	for (size_t i = 0; rc == 0 && i < SBA_ARRAY_LEN(fixed); i++) {
		if (json_array_append_new(args, json_string(fixed[i])) < 0)
			rc = sba_fail_nomem(err);
	}
	for (const char *const *a = s->options->argv; rc == 0 && *a; a++) {
		rc = sba_remote_check_text("argument", *a, err);
		if (rc == 0 && json_array_append_new(args, json_string(*a)) < 0)
			rc = sba_fail_nomem(err);
	}
	if (rc == 0)
		*ret = sba_move(&args);
	return rc;
}

int sba_envd_compose(struct sba_remote_box *b, const struct sba_remote_start *s,
		     struct sba_buf *ret, struct sba_error *err)
{
	SBA_JSON json_t *args = NULL, *env = NULL;
	const char *const mark[2] = { "SANDBOX_AGENT_COMMAND", s->id };
	(void)b;
	int rc = args_of(s, &args, err);
	if (rc == 0)
		rc = sba_remote_env(s->options->env, mark, &env, err);
	if (rc < 0)
		return rc;
	SBA_JSON json_t *j =
		json_pack("{s:{s:s, s:O, s:O, s:s}, s:b, s:s}", "process", "cmd", "/bin/sh", "args",
			  args, "envs", env, "cwd", "/", "stdin", s->live_input, "tag", s->id);
	SBA_FREE char *text = j ? sba_json_dump(j) : NULL;
	if (!text)
		return sba_fail_nomem(err);
	sba_envelope_put(ret, text, strlen(text));
	return 0;
}

/* What goes with every request: older ones have no user of their own mind. */
static int headers_of(const struct sba_remote_box *b, bool rpc, struct sba_strv *ret,
		      struct sba_error *err)
{
	int rc = 0;
	for (size_t i = 0; rc == 0 && i < b->headers.n; i++)
		rc = sba_strv_add(ret, b->headers.v[i], err);
	if (rc == 0 && b->version < DEFAULT_USER_BEFORE)
		rc = sba_strv_add(ret, "Authorization: Basic dXNlcjo=", err); /* "user:" */
	if (rc == 0 && rpc)
		rc = sba_strv_add(ret, "Connect-Protocol-Version: 1", err);
	return rc;
}

int sba_envd_stream(struct sba_remote_box *b, const struct sba_buf *request, struct sba_until until,
		    struct sba_http_response **ret, struct sba_error *err)
{
	SBA_FREE char *url = NULL;
	SBA_STRV struct sba_strv headers = { 0 };
	int rc = sba_remote_inside(b, &url, err, "/process.Process/Start");
	if (rc == 0)
		rc = headers_of(b, true, &headers, err);
	if (rc == 0)
		rc = sba_strv_addf(&headers, err, "Keepalive-Ping-Interval: %d", PING_S);
	const struct sba_remote_call call = { .method = "POST",
					      .url = url,
					      .what = "start a command",
					      .headers = &headers,
					      .secret = b->secret,
					      .type = "application/connect+json",
					      .body = request->data,
					      .body_len = request->len };
	return rc == 0 ? sba_remote_open_call(b->remote, &call, until, ret, err) : rc;
}

/* ---- what comes of it ---- */

static int pass_stderr(void *user, const char *data, size_t len)
{
	sba_remote_output(user, SBA_STDERR, data, len);
	return 0;
}

static int take_output(struct sba_remote_command *c, enum sba_output which, const char *text,
		       struct sba_error *err)
{
	SBA_BUF struct sba_buf bytes = SBA_BUF_INIT(SBA_REMOTE_EVENT_MAX);
	if (sba_base64_decode(text, strlen(text), false, &bytes) < 0)
		return sba_fail(err, SBA_EPROTO, "e2b: command: output that is not base64");
	if (which == SBA_STDOUT)
		sba_remote_output(c, which, bytes.data ? bytes.data : "", bytes.len);
	else
		return sba_shell_scan(&c->scan[1], bytes.data ? bytes.data : "", bytes.len,
				      pass_stderr, c);
	return 0;
}

/* On success it says no number: protobuf's JSON leaves zeros out. */
static void take_end(struct sba_remote_command *c, const json_t *end)
{
	const char *status = sba_json_str(end, "status");
	struct sba_exit how = { .kind = SBA_EXITED,
				.number = (int)sba_json_int(end, "exitCode", 0) & 0xff };
	(void)!sba_shell_scan(&c->scan[1], NULL, 0, pass_stderr, c);
	if (!sba_json_bool(end, "exited", false) && status)
		(void)sba_remote_status(status, &how);
	if (c->scan[1].found)
		(void)sba_shell_exit(c->scan[1].word, &how);
	sba_remote_ended(c, &how);
}

static int take_event(struct sba_remote_command *c, const json_t *event, struct sba_error *err)
{
	const char *out = sba_json_str(event, "data.stdout");
	const char *errs = sba_json_str(event, "data.stderr");
	int rc = 0;
	if (json_object_get(event, "start"))
		sba_remote_started(c);
	if (out)
		rc = take_output(c, SBA_STDOUT, out, err);
	if (rc == 0 && errs)
		rc = take_output(c, SBA_STDERR, errs, err);
	const json_t *end = json_object_get(event, "end");
	if (rc == 0 && end)
		take_end(c, end);
	return rc;
}

static const struct {
	const char *name;
	int code;
} codes[] = {
	{ "deadline_exceeded", SBA_ETIMEOUT }, { "not_found", SBA_ENOTFOUND },
	{ "invalid_argument", SBA_EINVAL },    { "unauthenticated", SBA_EPERM },
	{ "permission_denied", SBA_EPERM },    { "resource_exhausted", SBA_ELIMIT },
	{ "unavailable", SBA_ELOST },
};

static int take_last(struct sba_remote_command *c, const json_t *message, struct sba_error *err)
{
	const char *name = sba_json_str(message, "error.code");
	const char *text = sba_json_str(message, "error.message");
	int code = SBA_EENGINE;
	sba_remote_stream_ended(c, SBA_STDOUT);
	sba_remote_stream_ended(c, SBA_STDERR);
	if (!name)
		return 0;
	for (size_t i = 0; i < SBA_ARRAY_LEN(codes); i++)
		code = strcmp(codes[i].name, name) ? code : codes[i].code;
	return sba_fail(err, code, "e2b: command: %.400s (%.40s)", text ? text : "it failed", name);
}

static int take_message(struct sba_remote_command *c, int flags, const char *message, size_t len,
			struct sba_error *err)
{
	if (flags & SBA_ENVELOPE_COMPRESSED)
		return sba_fail(err, SBA_EPROTO, "e2b: command: compressed, unasked");
	SBA_JSON json_t *j = sba_json_load(message, len, 0, NULL);
	if (!j)
		return sba_fail(err, SBA_EPROTO, "e2b: command: an event that is no JSON");
	return flags & SBA_ENVELOPE_END ? take_last(c, j, err)
					: take_event(c, json_object_get(j, "event"), err);
}

int sba_envd_decode(struct sba_remote_command *c, const char *data, size_t len,
		    struct sba_error *err)
{
	const char *message;
	size_t message_len;
	int flags, rc = 0, n;
	if (!data)
		return 0;
	while (rc == 0 && (n = sba_envelopes_next(&c->envelopes, &data, &len, &flags, &message,
						  &message_len)) != 0) {
		if (n < 0)
			return sba_fail(err, n == SBA_ELIMIT ? SBA_EPROTO : n,
					"e2b: command: a message that is too large");
		rc = take_message(c, flags, message, message_len, err);
	}
	return rc;
}

/* ---- its input ---- */

int sba_envd_input(struct sba_remote_command *c, const char *data, size_t len,
		   struct sba_until until, struct sba_error *err)
{
	SBA_BUF struct sba_buf body = SBA_BUF_INIT(SBA_MIB);
	SBA_FREE char *url = NULL;
	SBA_STRV struct sba_strv headers = { 0 };
	sba_buf_printf(&body, "{\"process\":{\"tag\":\"%s\"}", c->id);
	if (data) {
		sba_buf_puts(&body, ",\"input\":{\"stdin\":\"");
		sba_base64_put(&body, data, len, false);
		sba_buf_puts(&body, "\"}");
	}
	sba_buf_puts(&body, "}");
	int rc = sba_buf_check(&body, "input", err);
	if (rc == 0)
		rc = sba_remote_inside(c->box, &url, err, "/process.Process/%s",
				       data ? "SendInput" : "CloseStdin");
	if (rc == 0)
		rc = headers_of(c->box, true, &headers, err);
	const struct sba_remote_call call = { .method = "POST",
					      .url = url,
					      .what = "send input",
					      .headers = &headers,
					      .secret = c->box->secret,
					      .body = body.data,
					      .body_len = body.len };
	if (rc == 0)
		rc = sba_remote_call(c->box->remote, &call, until, NULL, err);
	if (body.data)
		explicit_bzero(body.data, body.len);
	return rc;
}

/* ---- files ---- */

static int file_url(const struct sba_remote_box *b, const char *path, struct sba_buf *ret,
		    struct sba_error *err)
{
	return sba_remote_file_url(b, "/files", path,
				   b->version < DEFAULT_USER_BEFORE ? "&username=user" : "", ret,
				   err);
}

int sba_envd_get(struct sba_remote_box *b, const char *path, struct sba_until until,
		 struct sba_http_response **ret, struct sba_error *err)
{
	SBA_BUF struct sba_buf url = SBA_BUF_INIT(64 * SBA_KIB);
	int rc = file_url(b, path, &url, err);
	return rc == 0 ? sba_remote_fetch(b, url.data, until, ret, err) : rc;
}

int sba_envd_put(struct sba_remote_box *b, const char *path, int fd, uint64_t size,
		 struct sba_until until, struct sba_error *err)
{
	SBA_BUF struct sba_buf url = SBA_BUF_INIT(64 * SBA_KIB);
	const struct sba_remote_form form = {
		.before = "--" SBA_REMOTE_BOUNDARY "\r\nContent-Disposition: form-data; "
			  "name=\"file\"; filename=\"file\"\r\nContent-Type: "
			  "application/octet-stream\r\n\r\n",
		.after = "\r\n--" SBA_REMOTE_BOUNDARY "--\r\n",
		.fd = fd,
		.size = size,
	};
	int rc = file_url(b, path, &url, err);
	return rc == 0 ? sba_remote_send_form(b, url.data, &form, until, err) : rc;
}
