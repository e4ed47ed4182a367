/* SPDX-License-Identifier: MIT */
/*
 * Commands and files by execd. Its stream is made of lines of text, without the ends of
 * lines and with what is no UTF-8 replaced; no input goes in; and the end is told a second
 * late. So a script of ours inside carries the command: both streams as lines of base64, its
 * input from a file, its end as a record at the end of both.
 */
#include "base/limits.h"
#include "remote/opensandbox.h"

#include <signal.h>
#include <string.h>

/* $1 the command's id, $2 its input, $3 its folder. What is started later has the pipes of
 * the first ones open only as far as it needs them: who reads them sees their end. */
static const char carrier[] =
	"i=$1 f=$2 w=$3; shift 3; "
	"for t in base64 dd mkfifo mktemp tr; do command -v $t >/dev/null 2>&1 || "
	"{ echo \"!$t\"; exit 1; }; done; "
	"d=$(mktemp -d /tmp/.sandbox-agent-XXXXXXXX) && mkfifo \"$d/o\" \"$d/e\" || "
	"{ echo '!/tmp'; exit 1; }; "
	"r() { printf '\\001%s:%s\\n' \"$i\" \"$1\"; }; "
	"p() { while c=$(dd bs=24576 count=1 2>/dev/null | base64 | tr -d '\\n'); [ \"$c\" ]; "
	"do echo \":$c\"; done; }; "
	"p <\"$d/o\" & p <\"$d/e\" >&2 & "
	"exec 3>\"$d/o\" 4>\"$d/e\" 2>/dev/null; rm -rf -- \"$d\"; "
	"( x() { r \"$1\" >&3; exit 0; }; cd -- \"$w\" || x dir; exec <\"$f\"; "
	"[ \"$f\" = /dev/null ] || rm -f -- \"$f\"; "
	"case $1 in */*) [ -e \"$1\" ] || x none; [ -x \"$1\" ] && [ ! -d \"$1\" ] || x noexec;; "
	"*) command -v -- \"$1\" >/dev/null || x none;; esac; "
	"SANDBOX_AGENT_COMMAND=$i; export SANDBOX_AGENT_COMMAND; unset SANDBOX_AGENT_CARRIER; "
	"exec \"$@\" >&3 2>&4 3>&- 4>&- ); "
	"s=$?; r $s >&3; r end >&4; exec 3>&- 4>&-; wait";

/* ---- starting ---- */

static int put_command(const struct sba_remote_start *s, struct sba_buf *b, struct sba_error *err)
{
	const char *const first[] = { "exec", "sh", "-c" };
	const char *const fixed[] = { carrier, "sh", s->id, s->input ? s->input : "/dev/null",
				      s->workdir };
	for (size_t i = 0; i < SBA_ARRAY_LEN(first); i++)
		sba_buf_printf(b, "%s ", first[i]);
	for (size_t i = 0; i < SBA_ARRAY_LEN(fixed); i++) {
		sba_shell_quote(b, fixed[i]);
		sba_buf_putc(b, ' ');
	}
	for (const char *const *a = s->options->argv; *a; a++) {
		int rc = sba_remote_check_text("argument", *a, err);
		if (rc < 0)
			return rc;
		sba_shell_quote(b, *a);
		sba_buf_putc(b, ' ');
	}
	return sba_buf_check(b, "command", err);
}

int sba_execd_compose(struct sba_remote_box *b, const struct sba_remote_start *s,
		      struct sba_buf *ret, struct sba_error *err)
{
	SBA_BUF struct sba_buf command = SBA_BUF_INIT(2 * SBA_ARG_MAX);
	SBA_JSON json_t *env = NULL;
	const char *const mark[2] = { "SANDBOX_AGENT_CARRIER", s->id };
	(void)b;
	int rc = put_command(s, &command, err);
	if (rc == 0)
		rc = sba_remote_check_text("folder", s->workdir, err);
	if (rc == 0)
		rc = sba_remote_env(s->options->env, mark, &env, err);
	if (rc < 0)
		return rc;
	SBA_JSON json_t *j =
		json_pack("{s:s, s:s, s:O}", "command", command.data, "cwd", "/", "envs", env);
	SBA_FREE char *text = j ? sba_json_dump(j) : NULL;
	if (!text)
		return sba_fail_nomem(err);
	sba_buf_puts(ret, text);
	return 0;
}

int sba_execd_stream(struct sba_remote_box *b, const struct sba_buf *request,
		     struct sba_until until, struct sba_http_response **ret, struct sba_error *err)
{
	SBA_FREE char *url = NULL;
	int rc = sba_remote_inside(b, &url, err, "/command");
	if (rc < 0)
		return rc;
	const struct sba_remote_call call = { .method = "POST",
					      .url = url,
					      .what = "start a command",
					      .headers = &b->headers,
					      .secret = b->secret,
					      .body = request->data,
					      .body_len = request->len };
	return sba_remote_open_call(b->remote, &call, until, ret, err);
}

/* ---- what comes of it ---- */

struct passing {
	struct sba_remote_command *c;
	enum sba_output which;
};

static int pass(void *user, const char *data, size_t len)
{
	const struct passing *p = user;
	sba_remote_output(p->c, p->which, data, len);
	return 0;
}

/* A record is the end of its stream. */
static void end_stream(struct sba_remote_command *c, enum sba_output which)
{
	struct sba_shell_scan *scan = &c->scan[which == SBA_STDERR];
	struct sba_exit how;
	if (!scan->found || c->stream_ended[which == SBA_STDERR])
		return;
	if (which == SBA_STDOUT && sba_shell_exit(scan->word, &how))
		sba_remote_ended(c, &how);
	sba_remote_stream_ended(c, which);
}

static int take_output(struct sba_remote_command *c, enum sba_output which, const char *text,
		       struct sba_error *err)
{
	SBA_BUF struct sba_buf bytes = SBA_BUF_INIT(SBA_REMOTE_EVENT_MAX);
	struct passing p = { c, which };
	if (*text == '!' && which == SBA_STDOUT)
		return sba_hint(err,
				sba_fail(err, SBA_EUNSUPPORTED,
					 "command: there is no '%.40s' in the sandbox", text + 1),
				"commands of opensandbox need sh, base64, dd, mkfifo, mktemp, tr");
	if (*text != ':') {
		/* The shell's own complaint. */
		snprintf(c->said, sizeof(c->said), "%.180s", text);
		return 0;
	}
	if (sba_base64_decode(text + 1, strlen(text + 1), false, &bytes) < 0)
		return sba_fail(err, SBA_EPROTO, "command: a piece of its output is damaged");
	int rc = sba_shell_scan(&c->scan[which == SBA_STDERR], bytes.data ? bytes.data : "",
				bytes.len, pass, &p);
	if (rc == 0)
		end_stream(c, which);
	return rc;
}

/* What execd itself knows of the end, for where our record did not come. */
static void take_error(struct sba_remote_command *c, const json_t *event)
{
	const char *status = sba_json_str(event, "error.traceback.#0");
	const char *value = sba_json_str(event, "error.evalue");
	struct sba_exit how;
	if (status && sba_remote_status(status, &how) && how.kind == SBA_SIGNALED)
		c->killed = how;
	if (!*c->said)
		snprintf(c->said, sizeof(c->said), "%.180s", status ? status : value ? value : "");
}

static int take_event(struct sba_remote_command *c, const json_t *event, struct sba_error *err)
{
	const char *type = sba_json_str(event, "type"), *text = sba_json_str(event, "text");
	const char *message = sba_json_str(event, "message"), *code = sba_json_str(event, "code");
	/* Once the stream has begun a refusal is a line of it. */
	if (!type && code && message)
		return sba_fail(err, SBA_EENGINE, "opensandbox: command: %.80s: %.400s", code,
				message);
	if (!type)
		return 0;
	if (!strcmp(type, "init"))
		sba_remote_started(c);
	else if (!strcmp(type, "stdout") && text)
		return take_output(c, SBA_STDOUT, text, err);
	else if (!strcmp(type, "stderr") && text)
		return take_output(c, SBA_STDERR, text, err);
	else if (!strcmp(type, "error"))
		take_error(c, event);
	return 0;
}

/* A bare object; its documentation has it with "data: " in front. */
static int take_line(void *user, struct sba_error *err)
{
	struct sba_remote_command *c = user;
	const char *line = c->line.data;
	if (!line)
		return 0;
	if (sba_starts_with(line, "data:"))
		line += 5 + strspn(line + 5, " ");
	if (*line != '{')
		return 0;
	SBA_JSON json_t *event = sba_json_load(line, strlen(line), 0, NULL);
	if (!event)
		return sba_fail(err, SBA_EPROTO, "opensandbox: command: an event that is no JSON");
	return take_event(c, event, err);
}

int sba_execd_decode(struct sba_remote_command *c, const char *data, size_t len,
		     struct sba_error *err)
{
	if (!data)
		return c->line.len ? take_line(c, err) : 0;
	return sba_remote_cut_lines(&c->line, data, len, take_line, c, err);
}

/* ---- files ---- */

int sba_execd_get(struct sba_remote_box *b, const char *path, struct sba_until until,
		  struct sba_http_response **ret, struct sba_error *err)
{
	SBA_BUF struct sba_buf url = SBA_BUF_INIT(64 * SBA_KIB);
	int rc = sba_remote_file_url(b, "/files/download", path, "", &url, err);
	return rc == 0 ? sba_remote_fetch(b, url.data, until, ret, err) : rc;
}

/* The first part is only taken for what it is where it has a file's name. */
int sba_execd_put(struct sba_remote_box *b, const char *path, int fd, uint64_t size,
		  struct sba_until until, struct sba_error *err)
{
	static const char begin[] =
		"--" SBA_REMOTE_BOUNDARY "\r\nContent-Disposition: form-data; name=\"metadata\"; "
		"filename=\"metadata\"\r\nContent-Type: application/json\r\n\r\n";
	static const char middle[] =
		"\r\n--" SBA_REMOTE_BOUNDARY "\r\nContent-Disposition: form-data; name=\"file\"; "
		"filename=\"file\"\r\nContent-Type: application/octet-stream\r\n\r\n";
	SBA_BUF struct sba_buf before = SBA_BUF_INIT(64 * SBA_KIB);
	SBA_FREE char *url = NULL, *text = NULL;
	SBA_JSON json_t *metadata = json_pack("{s:s, s:i}", "path", path, "mode", 600);
	int rc = sba_remote_inside(b, &url, err, "/files/upload");
	if (rc == 0 && (!metadata || !(text = sba_json_dump(metadata))))
		rc = sba_fail_nomem(err);
	if (rc < 0)
		return rc;
	sba_buf_printf(&before, "%s%s%s", begin, text, middle);
	rc = sba_buf_check(&before, "file", err);
	const struct sba_remote_form form = { .before = before.data,
					      .after = "\r\n--" SBA_REMOTE_BOUNDARY "--\r\n",
					      .fd = fd,
					      .size = size };
	return rc == 0 ? sba_remote_send_form(b, url, &form, until, err) : rc;
}
