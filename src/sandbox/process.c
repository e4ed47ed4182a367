/* SPDX-License-Identifier: MIT */
/*
 * A command in a sandbox: the host's end of `guest run`. A link carries it;
 * what it says is split into the command's output and the guest's records.
 */
#include "sandbox/link.h"
#include "sandbox/private.h"
#include "sandbox/record.h"
#include "sandbox/session.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/limits.h"

enum {
	QUEUE_MAX = 256 * SBA_KIB,  /* input taken from the caller and not yet sent */
	STAGING_MAX = 80 * SBA_MIB, /* arguments, environment and the queue */
	ALIVE_CHECK_MS = 1000,      /* how long a silent stream is trusted */
	END_GRACE_MS = 15 * 1000,   /* the guest's own time to end a tree, and more */
	DEATH_LAG_MS = 1500,        /* for the engine to notice a death */
	DEATH_POLL_MS = 50,         /* between two looks for it */
	BEGIN_LOOK_MS = 50,         /* how often the beginning of a detached one is looked for */
	DETACH_LOOK_MS = 300,       /* for "not found" of a detached command */
};

struct sba_process {
	struct sba_sandbox *sandbox;
	struct sba_link *link;
	struct sba_buf staging;         /* frames on their way */
	struct sba_record_scan scan[2]; /* stdout, stderr */
	bool stream_ended[2];
	bool begun;
	struct sba_buf preamble; /* what came instead of the guest's first word */
	enum sba_output which;   /* of the piece under way */
	const char *piece;
	size_t piece_len;
	int cancel_fd; /* eventfd: sba_process_cancel() */
	int watch_fd;  /* epoll over it and the engine's cancel token */
	bool cancel_sent, stdin_closed, detach;
	int64_t looked_ms;  /* when it was last known to live */
	int64_t give_up_ms; /* past its deadline even the guest's word is overdue */
	bool over;          /* its exit, or its failure, is known */
	struct sba_exit exit;
	struct sba_error failure; /* code != 0: no exit will come */
};

/* ---- sending ---- */

static void frame(struct sba_process *p, char type, const void *data, size_t len)
{
	uint32_t be = htonl((uint32_t)len);
	sba_buf_putc(&p->staging, type);
	sba_buf_put(&p->staging, &be, sizeof(be));
	sba_buf_put(&p->staging, data, len);
}

static void frame_text(struct sba_process *p, char type, const char *text)
{
	frame(p, type, text, strlen(text));
}

static int flush(struct sba_process *p, struct sba_error *err)
{
	size_t sent = 0;
	int rc = sba_buf_check(&p->staging, "command", err);
	while (rc == 0 && sent < p->staging.len) {
		ssize_t n = p->link->ops->write(p->link, p->staging.data + sent,
						p->staging.len - sent, err);
		if (n < 0)
			rc = (int)n;
		if (n <= 0)
			break;
		sent += (size_t)n;
	}
	sba_buf_drop(&p->staging, sent);
	return rc;
}

/* Programs find the way out by these; the user's own come after and win. */
static void put_proxy(struct sba_process *p)
{
	static const char *const names[] = { "http_proxy", "https_proxy", "HTTP_PROXY",
					     "HTTPS_PROXY" };
	uint16_t port = sba_session_proxy_port(p->sandbox->session);
	char text[64];
	for (size_t i = 0; port && i < SBA_ARRAY_LEN(names); i++) {
		snprintf(text, sizeof(text), "%s=http://127.0.0.1:%u", names[i], (unsigned)port);
		frame_text(p, SBA_RUN_ENV, text);
	}
	if (port) {
		frame_text(p, SBA_RUN_ENV, "no_proxy=127.0.0.1,localhost");
		frame_text(p, SBA_RUN_ENV, "NO_PROXY=127.0.0.1,localhost");
	}
}

static void put_start(struct sba_process *p, const struct sba_exec_options *o, const char *nonce)
{
	char text[64];
	frame(p, SBA_RUN_NONCE, nonce, SBA_RUN_NONCE_LEN);
	for (size_t i = 0; o->argv[i]; i++)
		frame_text(p, SBA_RUN_ARG, o->argv[i]);
	put_proxy(p);
	for (size_t i = 0; o->env && o->env[i]; i++)
		frame_text(p, SBA_RUN_ENV, o->env[i]);
	if (o->workdir)
		frame_text(p, SBA_RUN_CWD, o->workdir);
	if (o->timeout_ms > 0) {
		snprintf(text, sizeof(text), "%lld", (long long)o->timeout_ms);
		frame_text(p, SBA_RUN_DEADLINE, text);
	}
	if (o->tty) {
		snprintf(text, sizeof(text), "%ux%u", o->rows ? o->rows : 24U,
			 o->columns ? o->columns : 80U);
		frame_text(p, SBA_RUN_TTY, text);
	}
	if (o->detach)
		frame(p, SBA_RUN_DETACH, "", 0);
	frame(p, SBA_RUN_GO, "", 0);
	if (!o->has_stdin)
		frame(p, SBA_RUN_EOF, "", 0);
}

/* However it is written: "//proc", "/tmp/../proc/self". Links are the inside's. */
static bool is_under_proc(const char *path)
{
	size_t depth = 0;
	bool proc = false;
	while (*path) {
		path += strspn(path, "/");
		size_t len = strcspn(path, "/");
		if (len == 2 && memcmp(path, "..", 2) == 0) {
			depth -= depth > 0;
		} else if (len > 0 && !(len == 1 && *path == '.')) {
			if (depth == 0)
				proc = len == 4 && memcmp(path, "proc", 4) == 0;
			depth++;
		}
		path += len;
	}
	return proc && depth > 0;
}

static int check_options(const struct sba_exec_options *o, struct sba_error *err)
{
	if (!o->argv || !o->argv[0] || !*o->argv[0])
		return sba_fail(err, SBA_EINVAL, "no command to run");
	for (size_t i = 0; o->env && o->env[i]; i++) {
		if (o->env[i][0] == '=' || !strchr(o->env[i], '='))
			return sba_fail(err, SBA_EINVAL, "environment: '%.40s' is not NAME=VALUE",
					o->env[i]);
	}
	/* CVE-2024-21626: an older runc leaks descriptors that a working directory
	 * under /proc reaches. */
	if (o->workdir && is_under_proc(o->workdir))
		return sba_fail(err, SBA_EREFUSED, "working directory '%s': refused under /proc",
				o->workdir);
	return 0;
}

/* ---- opening ---- */

/* One descriptor that tells of either wish to stop; the engine's token is
 * watched until it fired once. */
static int open_watch(struct sba_process *p, struct sba_error *err)
{
	int engine_fd = sba_engine_until(p->sandbox->engine, 0).cancel_fd;
	struct epoll_event own = { .events = EPOLLIN, .data.fd = -1 };
	struct epoll_event other = { .events = EPOLLIN, .data.fd = engine_fd };
	p->cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	p->watch_fd = epoll_create1(EPOLL_CLOEXEC);
	if (p->cancel_fd < 0 || p->watch_fd < 0 ||
	    epoll_ctl(p->watch_fd, EPOLL_CTL_ADD, p->cancel_fd, &own) < 0 ||
	    (engine_fd >= 0 && epoll_ctl(p->watch_fd, EPOLL_CTL_ADD, engine_fd, &other) < 0))
		return sba_fail_errno(err, SBA_EIO, errno, "command: event descriptor");
	return 0;
}

static void on_cancel(struct sba_process *p)
{
	struct epoll_event event;
	while (epoll_wait(p->watch_fd, &event, 1, 0) > 0) {
		uint64_t count;
		if (event.data.fd >= 0)
			epoll_ctl(p->watch_fd, EPOLL_CTL_DEL, event.data.fd, NULL);
		else if (read(p->cancel_fd, &count, sizeof(count)) < 0)
			break;
	}
	if (p->cancel_sent)
		return;
	p->cancel_sent = true;
	p->give_up_ms = sba_until_in(END_GRACE_MS).deadline_ms;
	frame(p, SBA_RUN_CANCEL, "", 0);
}

/* The channel is one user's, and what it started ends with it. */
static int open_link(struct sba_process *p, const struct sba_exec_options *o, struct sba_error *err)
{
	struct sba_channel *way_out;
	int rc = SBA_EUNSUPPORTED;
	if (!o->user && !o->detach)
		rc = sba_link_channel(p->sandbox, &p->link, err);
	else if (*p->sandbox->info.allow && /* what the rules allow is reached by the channel */
		 (rc = sba_session_channel(p->sandbox->session, &way_out, err)) == 0)
		rc = SBA_EUNSUPPORTED;
	if (rc == SBA_EUNSUPPORTED)
		rc = sba_link_exec(p->sandbox, o->user, &p->link, err);
	return rc;
}

int sba_sandbox_exec(struct sba_sandbox *s, const struct sba_exec_options *o,
		     struct sba_process **ret, struct sba_error *err)
{
	int rc = check_options(o, err);
	if (rc == 0)
		rc = sba_sandbox_check_whole(s, err);
	if (rc < 0)
		return rc;
	struct sba_process *p = calloc(1, sizeof(*p));
	if (!p)
		return sba_fail_nomem(err);
	*p = (struct sba_process){ .sandbox = s,
				   .cancel_fd = -1,
				   .watch_fd = -1,
				   .detach = o->detach,
				   .stdin_closed = !o->has_stdin,
				   .give_up_ms = SBA_NEVER };
	sba_buf_init(&p->staging, STAGING_MAX);
	sba_buf_init(&p->preamble, SBA_EXEC_OOB_TEXT_MAX);
	char nonce[SBA_RUN_NONCE_LEN + 1];
	rc = sba_random_hex(nonce, SBA_RUN_NONCE_LEN / 2, err);
	if (rc == 0)
		rc = open_watch(p, err);
	if (rc == 0)
		rc = open_link(p, o, err);
	if (rc == SBA_EBROKEN || rc == SBA_ENOTFOUND) {
		int dead = sba_sandbox_check_alive(s, "start a command", err);
		rc = dead < 0 ? dead : rc;
	}
	if (rc == 0) {
		sba_record_scan_init(&p->scan[0], nonce);
		sba_record_scan_init(&p->scan[1], nonce);
		put_start(p, o, nonce);
		if (o->timeout_ms > 0)
			p->give_up_ms = sba_until_in(o->timeout_ms + END_GRACE_MS).deadline_ms;
		rc = flush(p, err);
	}
	if (rc < 0) {
		sba_process_free(p);
		return rc;
	}
	*ret = p;
	return 0;
}

/* ---- the end ---- */

static int fail_with(struct sba_process *p, const struct sba_error *why)
{
	p->over = true;
	p->failure = *why;
	return why->code;
}

static void set_exit(struct sba_process *p, const struct sba_record *r)
{
	static const struct {
		char kind;
		enum sba_exit_kind exit;
	} kinds[] = {
		{ SBA_END_EXIT, SBA_EXITED },        { SBA_END_SIGNAL, SBA_SIGNALED },
		{ SBA_END_DEADLINE, SBA_TIMED_OUT }, { SBA_END_CANCELED, SBA_WAS_CANCELED },
		{ SBA_END_NOTFOUND, SBA_NOT_FOUND }, { SBA_END_CANNOT, SBA_CANNOT_RUN },
		{ SBA_END_CWD, SBA_NO_WORKDIR },     { SBA_END_FORK, SBA_NO_PROCESS },
		{ SBA_END_OOM, SBA_OUT_OF_MEMORY },
	};
	for (size_t i = 0; i < SBA_ARRAY_LEN(kinds); i++) {
		if (kinds[i].kind == r->kind) {
			p->exit = (struct sba_exit){ kinds[i].exit, (int)r->number };
			return;
		}
	}
	if (r->kind == SBA_END_SURVIVORS)
		sba_fail(&p->failure, SBA_EBROKEN,
			 "command: %lld processes of it could not be ended; end the sandbox",
			 (long long)r->number);
	else
		sba_fail(&p->failure, SBA_EPROTO, "command: the guest did not understand us ('%c')",
			 r->kind);
}

static void on_record(struct sba_process *p, int stream, const struct sba_record *r)
{
	if (r->kind == SBA_RECORD_BEGUN) {
		p->begun = true;
		return;
	}
	p->stream_ended[stream] = true;
	set_exit(p, r); /* the same on both */
	p->over = p->stream_ended[0] && p->stream_ended[1];
}

/* A sandbox's death ends its streams some moments before the engine knows of it. */
static int check_death(struct sba_process *p, struct sba_error *err)
{
	struct sba_until until = sba_until_in(DEATH_LAG_MS);
	for (;;) {
		int rc = sba_sandbox_check_alive(p->sandbox, "command", err);
		if (rc < 0 || sba_until_check(until, NULL) < 0)
			return rc;
		if (sba_wait_fd(-1, 0, sba_until_sooner(until, DEATH_POLL_MS), NULL) == SBA_EIO)
			return 0;
	}
}

/* What came instead of the guest's first word is the engine's own. */
static void explain_preamble(const char *text, size_t len, struct sba_error *ret)
{
	if (strstr(text, "unable to find user"))
		sba_fail(ret, SBA_ENOTFOUND, "command: %.*s", (int)len, text);
	else
		sba_fail(ret, SBA_EBROKEN, "command: the engine could not start it: %.*s", (int)len,
			 text);
}

/* The stream ended without the guest's word. `lost` is what the link said, code 0
 * where it just ended. */
static int explain_loss(struct sba_process *p, const struct sba_error *lost, struct sba_error *err)
{
	struct sba_error why = { 0 };
	const char *text = p->preamble.data ? p->preamble.data : "";
	size_t len = strcspn(text, "\r\n");
	bool channel = p->link->ops->watched;
	int code = 0;
	int rc = sba_sandbox_check_alive(p->sandbox, "command", &why);
	if (rc == 0)
		rc = p->link->ops->explain(p->link, &code, &why);
	if (rc == 0 && !p->begun && len > 0) {
		explain_preamble(text, len, &why);
	} else if (rc == 0 && lost->code == SBA_ELIMIT && channel) {
		p->over = true;
		p->exit = (struct sba_exit){ .kind = SBA_NO_PROCESS };
		return 0;
	} else if (rc == 0 && lost->code && channel) {
		/* The guest ends what the channel carried: nothing runs on. */
		why = *lost;
		sba_wrap(&why, why.code, "command");
	} else if (rc == 0 && (channel || code == 137)) {
		if (check_death(p, &why) == 0)
			sba_fail(&why, SBA_EBROKEN,
				 "command: its supervisor was killed inside the sandbox");
	} else if (rc == 0) {
		sba_fail(&why, SBA_ELOST,
			 "command: the engine ended its stream early; it may still run");
	}
	if (err)
		*err = why;
	return fail_with(p, &why);
}

/* A guest that goes on sending is not to be believed for ever either. */
static int check_overdue(struct sba_process *p, struct sba_error *err)
{
	struct sba_error why;
	if (sba_now_ms() <= p->give_up_ms)
		return 0;
	sba_fail(&why, SBA_EBROKEN, "command: no end of it from the guest after its deadline");
	if (err)
		*err = why;
	return fail_with(p, &why);
}

static int still_there(struct sba_process *p, struct sba_error *err)
{
	struct sba_error why = { 0 };
	if (p->link->ops->watched || sba_now_ms() - p->looked_ms < ALIVE_CHECK_MS)
		return 0;
	p->looked_ms = sba_now_ms();
	if (sba_sandbox_check_alive(p->sandbox, "command", &why) == 0)
		return 0;
	if (err)
		*err = why;
	return fail_with(p, &why);
}

/* ---- receiving ---- */

/* Output out of the piece under way: > 0, or 0 if the piece is used up. */
static ssize_t next_output(struct sba_process *p, enum sba_output *which, const char **data)
{
	int stream = p->which == SBA_STDERR;
	while (p->piece_len > 0 && !p->stream_ended[stream]) {
		const char *out;
		size_t out_len;
		struct sba_record record;
		size_t n = sba_record_scan_step(&p->scan[stream], p->piece, p->piece_len, &out,
						&out_len, &record);
		p->piece += n;
		p->piece_len -= n;
		if (record.kind)
			on_record(p, stream, &record);
		if (out_len == 0)
			continue;
		if (!p->begun && stream == 0) {
			sba_buf_put(&p->preamble, out, out_len);
			continue;
		}
		*which = p->which;
		*data = out;
		return (ssize_t)out_len;
	}
	p->piece_len = 0;
	return 0;
}

/* Waits for the stream, the caller's deadline, a wish to stop; 0: look again. */
static int wait_more(struct sba_process *p, int64_t deadline_ms, struct sba_error *err)
{
	struct sba_until until = { deadline_ms, p->watch_fd };
	bool look = !p->link->ops->watched || p->give_up_ms != SBA_NEVER;
	struct sba_until slice = look ? sba_until_sooner(until, ALIVE_CHECK_MS) : until;
	struct sba_error why;
	int rc = sba_wait_fd(p->link->ops->fd(p->link), sba_process_events(p), slice, &why);
	if (rc == SBA_ECANCELED) {
		on_cancel(p);
		return 0;
	}
	if (rc == SBA_ETIMEOUT) {
		int gone = still_there(p, err);
		if (gone < 0)
			return gone;
		if (sba_now_ms() >= deadline_ms)
			return sba_fail(err, SBA_ETIMEOUT, "command: nothing came in time");
		return 0;
	}
	if (rc < 0 && err)
		*err = why;
	return rc < 0 ? rc : 0;
}

/* The next piece of the engine's stream: 1, 0 at its end, SBA_ETIMEOUT. */
static int next_piece(struct sba_process *p, int64_t deadline_ms, struct sba_error *err)
{
	for (;;) {
		int rc = check_overdue(p, err);
		if (rc == 0)
			rc = flush(p, err);
		if (rc < 0)
			return rc;
		int stream;
		struct sba_error why = { 0 };
		ssize_t n = p->link->ops->read(p->link, &stream, &p->piece,
					       (struct sba_until){ 0, p->watch_fd }, &why);
		if (n >= 0) {
			p->looked_ms = sba_now_ms();
			p->piece_len = (size_t)n;
			p->which = stream == SBA_STDERR ? SBA_STDERR : SBA_STDOUT;
			return n > 0;
		}
		if (n == SBA_ECANCELED) {
			on_cancel(p);
			continue;
		}
		if (n != SBA_ETIMEOUT)
			return explain_loss(p, &why, err);
		/* Room that came since the flush was told on the descriptor that the read
		 * has just cleared. */
		size_t waiting = p->staging.len;
		rc = flush(p, err);
		if (rc == 0 && p->staging.len < waiting)
			continue;
		if (rc == 0)
			rc = wait_more(p, deadline_ms, err);
		if (rc < 0)
			return rc;
	}
}

static int64_t deadline_of(int64_t wait_ms)
{
	return wait_ms < 0 ? SBA_NEVER : sba_until_in(wait_ms).deadline_ms;
}

ssize_t sba_process_read(struct sba_process *p, int64_t wait_ms, enum sba_output *which,
			 const char **data, struct sba_error *err)
{
	int64_t deadline = deadline_of(wait_ms);
	for (;;) {
		ssize_t n = next_output(p, which, data);
		if (n > 0)
			return n;
		if (p->failure.code) {
			if (err)
				*err = p->failure;
			return p->failure.code;
		}
		if (p->over)
			return 0;
		int rc = next_piece(p, deadline, err);
		if (rc == 0 && !p->over)
			rc = explain_loss(p, &(struct sba_error){ 0 }, err);
		if (rc < 0)
			return rc;
	}
}

/* Discards output until the end is known. */
static int drain(struct sba_process *p, int64_t deadline_ms, struct sba_error *err)
{
	while (!p->over) {
		enum sba_output which;
		const char *data;
		int64_t left = deadline_ms == SBA_NEVER ? -1 : deadline_ms - sba_now_ms();
		ssize_t n = sba_process_read(p, deadline_ms == SBA_NEVER || left > 0 ? left : 0,
					     &which, &data, err);
		if (n < 0)
			return (int)n;
	}
	return 0;
}

static int64_t sooner(int64_t deadline_ms, int64_t ms)
{
	int64_t at = deadline_of(ms);
	return at < deadline_ms ? at : deadline_ms;
}

/* Until it has begun, and then for what fails at once: there is no such program. */
static int drain_detached(struct sba_process *p, int64_t deadline_ms, struct sba_error *err)
{
	while (!p->begun && !p->over) {
		int rc = drain(p, sooner(deadline_ms, BEGIN_LOOK_MS), err);
		if (rc < 0 && (rc != SBA_ETIMEOUT || sba_now_ms() >= deadline_ms))
			return rc;
	}
	return drain(p, sooner(deadline_ms, DETACH_LOOK_MS), err);
}

int sba_process_wait(struct sba_process *p, int64_t wait_ms, struct sba_exit *ret,
		     struct sba_error *err)
{
	int64_t deadline = deadline_of(wait_ms);
	int rc = p->detach ? drain_detached(p, deadline, err) : drain(p, deadline, err);
	if (rc == SBA_ETIMEOUT && p->detach && p->begun) {
		*ret = (struct sba_exit){ .kind = SBA_DETACHED };
		return 0;
	}
	if (rc < 0)
		return rc;
	if (p->failure.code) {
		if (err)
			*err = p->failure;
		return p->failure.code;
	}
	*ret = p->exit;
	return 0;
}

/* ---- what the caller sends ---- */

ssize_t sba_process_write(struct sba_process *p, const void *data, size_t len,
			  struct sba_error *err)
{
	int rc = flush(p, err);
	if (rc < 0)
		return rc;
	if (p->stdin_closed || p->over)
		return (ssize_t)len;
	size_t n = len < SBA_RUN_IO_CHUNK ? len : SBA_RUN_IO_CHUNK;
	if (n == 0 || p->staging.len + n > QUEUE_MAX)
		return 0;
	frame(p, SBA_RUN_DATA, data, n);
	rc = flush(p, err);
	return rc < 0 ? rc : (ssize_t)n;
}

int sba_process_close_stdin(struct sba_process *p, struct sba_error *err)
{
	if (p->stdin_closed)
		return 0;
	p->stdin_closed = true;
	frame(p, SBA_RUN_EOF, "", 0);
	return flush(p, err);
}

int sba_process_resize(struct sba_process *p, unsigned short rows, unsigned short columns,
		       struct sba_error *err)
{
	char text[32];
	snprintf(text, sizeof(text), "%ux%u", (unsigned)rows, (unsigned)columns);
	frame_text(p, SBA_RUN_RESIZE, text);
	return flush(p, err);
}

int sba_process_signal(struct sba_process *p, int signal_number, struct sba_error *err)
{
	char text[16];
	snprintf(text, sizeof(text), "%d", signal_number);
	frame_text(p, SBA_RUN_SIGNAL, text);
	return flush(p, err);
}

int sba_process_fd(const struct sba_process *p)
{
	return p->link->ops->fd(p->link);
}

short sba_process_events(const struct sba_process *p)
{
	return p->link->ops->wants_write(p->link) ? POLLIN | POLLOUT : POLLIN;
}

void sba_process_cancel(struct sba_process *p)
{
	sba_event_fire(p->cancel_fd);
}

void sba_process_free(struct sba_process *p)
{
	if (!p)
		return;
	/* Closing the stream tells the guest that its client is gone. */
	if (p->link)
		p->link->ops->close(p->link);
	sba_cleanup_close(&p->cancel_fd);
	sba_cleanup_close(&p->watch_fd);
	sba_buf_fini(&p->staging);
	sba_buf_fini(&p->preamble);
	free(p);
}

int sba_exit_status(const struct sba_exit *e)
{
	switch (e->kind) {
	case SBA_EXITED:
		return e->number;
	case SBA_SIGNALED:
		return 128 + e->number;
	case SBA_OUT_OF_MEMORY:
		return 137;
	case SBA_TIMED_OUT:
		return 124;
	case SBA_WAS_CANCELED:
		return 130;
	case SBA_NOT_FOUND:
		return 127;
	case SBA_CANNOT_RUN:
	case SBA_NO_WORKDIR:
	case SBA_NO_PROCESS:
		return 126;
	case SBA_DETACHED:
		break;
	}
	return 0;
}
