/* SPDX-License-Identifier: MIT */
/*
 * An exec and its raw stream: one connection of its own on which the engine's
 * frames come in and stdin goes out. Payload is lent straight out of the
 * receive buffer. How an exec ended is in exec_end.c.
 */
#include "engine/exec.h"

#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

/* ---- opening ---- */

static json_t *string_array(const char *const *v)
{
	SBA_JSON json_t *list = json_array();
	for (; v && *v; v++) {
		if (json_array_append_new(list, json_string(*v)) < 0)
			return NULL;
	}
	return sba_move(&list);
}

/* JSON carries no other bytes, and a changed argument would be worse than none. */
static int check_strings(const struct sba_exec *x, const char *const *v, struct sba_error *err)
{
	for (; v && *v; v++) {
		if (!sba_utf8_valid(*v, strlen(*v)))
			return sba_fail(err, SBA_EINVAL, "%s: an argument or variable is not UTF-8",
					x->tried);
	}
	return 0;
}

static int check_spec(const struct sba_exec *x, const struct sba_exec_spec *spec,
		      struct sba_error *err)
{
	const char *const rest[] = { spec->user ? spec->user : "", spec->workdir, NULL };
	int rc = check_strings(x, spec->argv, err);
	if (rc == 0)
		rc = check_strings(x, spec->env, err);
	return rc == 0 ? check_strings(x, rest, err) : rc;
}

static json_t *exec_body(const struct sba_exec_spec *spec)
{
	SBA_JSON json_t *argv = string_array(spec->argv);
	SBA_JSON json_t *env = string_array(spec->env);
	if (!argv || !env)
		return NULL;
	return json_pack("{s:b,s:b,s:b,s:b,s:O,s:O,s:s*,s:s*}", "AttachStdin", !spec->no_stdin,
			 "AttachStdout", 1, "AttachStderr", 1, "Tty", spec->tty, "Cmd", argv, "Env",
			 env, "User", spec->user, "WorkingDir", spec->workdir);
}

/* 409: the container is stopped or paused; Podman says 500 and so. Podman looks the user
 * up before it answers; Docker tells it in the stream. */
static int exec_failed(struct sba_error *why, int rc, struct sba_error *err)
{
	if (rc == SBA_EEXIST ||
	    (rc == SBA_EENGINE && strstr(why->text, "container state improper")))
		rc = why->code = SBA_EBROKEN;
	else if (rc == SBA_EENGINE && strstr(why->text, "unable to find user"))
		rc = why->code = SBA_ENOTFOUND;
	if (err)
		*err = *why;
	return rc;
}

static int create_exec(struct sba_exec *x, const struct sba_exec_spec *spec, struct sba_until until,
		       struct sba_error *err)
{
	SBA_JSON json_t *body = exec_body(spec);
	SBA_JSON json_t *answer = NULL;
	SBA_BUF struct sba_buf path = SBA_BUF_INIT(SBA_KIB);
	struct sba_error why;
	if (!body)
		return sba_fail_nomem(err);
	sba_buf_puts(&path, "/containers/");
	sba_buf_put_url(&path, spec->container);
	sba_buf_puts(&path, "/exec");
	int rc = sba_buf_check(&path, "the request's path", err);
	if (rc < 0)
		return rc;
	struct sba_request r = {
		.method = "POST", .path = path.data, .json = body, .tried = x->tried
	};
	rc = sba_engine_call(x->e, &r, until, &answer, &why);
	if (rc < 0)
		return exec_failed(&why, rc, err);
	const char *id = sba_json_str(answer, "Id");
	if (!id || !*id || strlen(id) >= sizeof(x->id))
		return sba_fail(err, SBA_EPROTO, "%s: no id in the engine's answer", x->tried);
	snprintf(x->id, sizeof(x->id), "%s", id);
	return 0;
}

/* Takes the connection out of the answer: from here on it is a raw stream.
 * Both 101 and 200 begin one; no stdin may be sent before either. */
static int begin_stream(struct sba_exec *x, const char *path, const json_t *json,
			struct sba_until until, struct sba_error *err)
{
	SBA_BODY struct sba_body *body = NULL;
	struct sba_error why;
	struct sba_request r = { .method = "POST", .path = path, .json = json, .tried = x->tried };
	struct sba_exchange ex = { .request = &r, .upgrade = true };
	int rc = sba_engine_exchange(x->e, &ex, sba_engine_limit(x->e, until), &body, &why);
	if (rc < 0)
		return exec_failed(&why, rc, err);
	if (body->head.status != 101 && body->framing != SBA_BODY_UNTIL_CLOSE)
		return sba_fail(err, SBA_EPROTO, "%s: the answer is no raw stream", x->tried);
	x->wire = sba_move(&body->wire);
	return 0;
}

static int start_exec(struct sba_exec *x, struct sba_until until, struct sba_error *err)
{
	SBA_BUF struct sba_buf path = SBA_BUF_INIT(SBA_KIB);
	SBA_JSON json_t *json = json_pack("{s:b,s:b}", "Detach", 0, "Tty", x->raw);
	sba_buf_puts(&path, "/exec/");
	sba_buf_put_url(&path, x->id);
	sba_buf_puts(&path, "/start");
	if (!json || path.failed)
		return sba_fail_nomem(err);
	return begin_stream(x, path.data, json, until, err);
}

static struct sba_exec *new_exec(struct sba_engine *e, const char *container, const char *tried)
{
	struct sba_exec *x = calloc(1, sizeof(*x));
	if (!x)
		return NULL;
	x->e = e;
	sba_buf_init(&x->queue, SBA_EXEC_QUEUE_MAX);
	sba_buf_init(&x->engine_error, SBA_EXEC_OOB_TEXT_MAX);
	snprintf(x->container, sizeof(x->container), "%s", container);
	snprintf(x->tried, sizeof(x->tried), "%s container '%.100s'", tried, container);
	return x;
}

/* *ret is take_x, or it is closed. */
static int opened(struct sba_exec *take_x, int rc, const struct sba_error *why,
		  struct sba_exec **ret, struct sba_error *err)
{
	if (rc == 0) {
		*ret = take_x;
		return 0;
	}
	sba_exec_close(take_x);
	if (err)
		*err = *why;
	return rc;
}

int sba_exec_open(struct sba_engine *e, const struct sba_exec_spec *spec, struct sba_until until,
		  struct sba_exec **ret, struct sba_error *err)
{
	struct sba_error why;
	struct sba_exec *x = new_exec(e, spec->container, "exec in");
	if (!x)
		return sba_fail_nomem(err);
	x->raw = spec->tty;
	int rc = check_spec(x, spec, &why);
	if (rc == 0)
		rc = create_exec(x, spec, until, &why);
	if (rc == 0)
		rc = start_exec(x, until, &why);
	return opened(x, rc, &why, ret, err);
}

int sba_exec_attach(struct sba_engine *e, const char *container, struct sba_until until,
		    struct sba_exec **ret, struct sba_error *err)
{
	SBA_BUF struct sba_buf path = SBA_BUF_INIT(SBA_KIB);
	struct sba_error why;
	struct sba_exec *x = new_exec(e, container, "attach to");
	if (!x)
		return sba_fail_nomem(err);
	sba_buf_puts(&path, "/containers/");
	sba_buf_put_url(&path, container);
	sba_buf_puts(&path, "/attach?stream=1&stdin=1&stdout=1&stderr=1");
	int rc = sba_buf_check(&path, "the request's path", &why);
	if (rc == 0)
		rc = begin_stream(x, path.data, NULL, until, &why);
	return opened(x, rc, &why, ret, err);
}

void sba_exec_close(struct sba_exec *x)
{
	if (!x)
		return;
	sba_wire_close(x->wire);
	sba_buf_fini(&x->queue);
	sba_buf_fini(&x->engine_error);
	free(x);
}

/* ---- stdin ---- */

static size_t queued(const struct sba_exec *x)
{
	return x->queue.len - x->queue_at;
}

/* Sends directly: > 0 sent, 0 nothing goes now. A reader that is gone is
 * remembered; output may still come. */
static size_t send_now(struct sba_exec *x, const char *data, size_t len)
{
	size_t done = 0;
	while (done < len && !x->deaf) {
		ssize_t n = sba_wire_write(x->wire, data + done, len - done, NULL);
		if (n == SBA_AGAIN)
			break;
		if (n < 0)
			x->deaf = true;
		else
			done += (size_t)n;
	}
	return x->deaf ? len : done;
}

static void pump_out(struct sba_exec *x)
{
	if (queued(x) > 0)
		x->queue_at += send_now(x, x->queue.data + x->queue_at, queued(x));
	if (queued(x) > 0)
		return;
	sba_buf_reset(&x->queue);
	x->queue_at = 0;
	if (x->shutdown == EXEC_SHUTDOWN_WANTED && !x->deaf &&
	    x->wire->t->ops->shutdown_write(x->wire->t) == SBA_AGAIN)
		return;
	if (x->shutdown == EXEC_SHUTDOWN_WANTED)
		x->shutdown = EXEC_SHUTDOWN_DONE;
}

/* Makes room at the end of the queue by dropping what has been sent. */
static size_t enqueue(struct sba_exec *x, const char *data, size_t len)
{
	size_t room = SBA_EXEC_QUEUE_MAX - queued(x);
	if (len > room)
		len = room;
	if (len > x->queue.max - x->queue.len) {
		sba_buf_drop(&x->queue, x->queue_at);
		x->queue_at = 0;
	}
	sba_buf_put(&x->queue, data, len);
	return len;
}

ssize_t sba_exec_write(struct sba_exec *x, const void *data, size_t len, struct sba_error *err)
{
	if (x->shutdown != EXEC_SHUTDOWN_NOT)
		return sba_fail(err, SBA_EINVAL, "%s: writing after the end of input", x->tried);
	if (len > SSIZE_MAX)
		len = SSIZE_MAX;
	pump_out(x);
	if (x->deaf)
		return (ssize_t)len;
	size_t done = queued(x) == 0 ? send_now(x, data, len) : 0;
	if (done < len)
		done += enqueue(x, (const char *)data + done, len - done);
	if (x->queue.failed)
		return sba_fail_nomem(err);
	return (ssize_t)done;
}

void sba_exec_shutdown(struct sba_exec *x)
{
	if (x->shutdown != EXEC_SHUTDOWN_NOT)
		return;
	x->shutdown = EXEC_SHUTDOWN_WANTED;
	pump_out(x);
}

int sba_exec_fd(const struct sba_exec *x)
{
	return x->wire->t->fd;
}

bool sba_exec_wants_write(const struct sba_exec *x)
{
	return queued(x) > 0 || x->shutdown == EXEC_SHUTDOWN_WANTED;
}

/* ---- output ---- */

/* Decodes the next piece: > 0 bytes of *data, 0 if nothing whole is there. */
static ssize_t decode(struct sba_exec *x, enum sba_exec_stream *stream, const char **data,
		      struct sba_error *err)
{
	struct sba_wire *w = x->wire;
	while (w->len > 0) {
		int type = SBA_EXEC_STDOUT;
		size_t len = w->len;
		const char *payload = w->room.data + w->at;
		ssize_t n = x->raw ? (ssize_t)len
				   : sba_frames_feed(&x->frames, w->room.data + w->at, w->len,
						     &type, &payload, &len, err);
		if (n < 0)
			return n;
		sba_wire_consume(w, (size_t)n);
		if (len > 0 && type == EXEC_FRAME_ENGINE_ERROR) {
			sba_buf_put(&x->engine_error, payload, len);
		} else if (len > 0) {
			*stream = type == SBA_EXEC_STDERR ? SBA_EXEC_STDERR : SBA_EXEC_STDOUT;
			*data = payload;
			return (ssize_t)len;
		}
	}
	return 0;
}

static ssize_t at_end(struct sba_exec *x, struct sba_error *err)
{
	x->ended = true;
	if (!sba_frames_at_border(&x->frames))
		return sba_fail(err, SBA_ELOST, "the engine closed the stream inside a frame");
	if (x->engine_error.data)
		return sba_fail(err, SBA_EENGINE, "%s", x->engine_error.data);
	return 0;
}

static int wait_stream(struct sba_exec *x, struct sba_until until, struct sba_error *err)
{
	const struct sba_transport *t = x->wire->t;
	short events = t->read_wants;
	if (sba_exec_wants_write(x) && !x->deaf)
		events = (short)(events | t->write_wants);
	return sba_wait_fd(t->fd, events, sba_engine_limit(x->e, until), err);
}

static ssize_t read_stream(struct sba_exec *x, enum sba_exec_stream *stream, const char **data,
			   struct sba_until until, struct sba_error *err)
{
	while (!x->ended) {
		pump_out(x);
		ssize_t n = decode(x, stream, data, err);
		if (n != 0)
			return n;
		n = sba_wire_fill(x->wire, err);
		if (n == 0)
			return at_end(x, err);
		if (n == SBA_AGAIN && until.deadline_ms == 0)
			return sba_fail(err, SBA_ETIMEOUT, "nothing has come");
		if (n == SBA_AGAIN)
			n = wait_stream(x, until, err);
		if (n < 0)
			return n;
	}
	return 0;
}

ssize_t sba_exec_read(struct sba_exec *x, enum sba_exec_stream *stream, const char **data,
		      struct sba_until until, struct sba_error *err)
{
	ssize_t n = read_stream(x, stream, data, until, err);
	return n < 0 ? sba_wrap(err, (int)n, "%s", x->tried) : n;
}
