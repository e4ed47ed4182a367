/* SPDX-License-Identifier: MIT */
/*
 * A command in a container that is not ours, as a process of the library's: the engine's
 * own exec, which a thread carries into pipes. What the engine does not do for it (an end
 * before its own, a look at one that is silent) is done here and in container_end.c.
 */
#include "sandbox/container.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/limits.h"
#include "sandbox/process.h"

enum {
	PIECE = 64 * SBA_KIB,
	MARK_BYTES = 16,
	LOOK_MS = 1000,         /* how long a silent stream is trusted */
	ASK_MS = 10 * 1000,     /* one look */
	CANCEL_GRACE_MS = 3000, /* more than whoever cancels the process gives it */
	KILLED_MS = 5000,       /* from KILL to an end that is told */
	DEATH_LAG_MS = 500,
	DEATH_POLL_MS = 50,
};

struct command {
	struct sba_container *container;
	char *user; /* NULL: the container's */
	char mark[2 * MARK_BYTES + 1];
	struct sba_exec *exec;
	pthread_t thread;
	bool threaded;
	int in, out, err;            /* our ends; -1: none, or closed */
	int ended_fd;                /* eventfd: its end is known */
	int stop_fd, drop_fd;        /* eventfds: it is to end; nobody wants it any more */
	int cancel_fd;               /* the engine's; lent */
	int64_t kill_ms, give_up_ms; /* SBA_NEVER: not set */
	bool killed, canceled;
	atomic_int sent;      /* the last signal; the engine tells an end by one as a number only */
	struct sba_buf words; /* what may be the runtime's, and not the command's */
	bool speaks;          /* what comes is the command's */
	char piece[PIECE];    /* of its input */
	size_t piece_at, piece_len;
	bool over;
	struct sba_exit exit;
	struct sba_error failure;
};

static void close_fd(int *fd)
{
	sba_cleanup_close(fd);
	*fd = -1;
}

static bool fired(int fd)
{
	return fd >= 0 && sba_wait_fd(fd, POLLIN, sba_until_in(0), NULL) > 0;
}

/* ---- its end ---- */

static void ended(struct command *c)
{
	c->over = true;
	sba_event_fire(c->ended_fd);
}

static void fail(struct command *c, const struct sba_error *why)
{
	c->failure = *why;
	close_fd(&c->out);
	close_fd(&c->err);
	ended(c);
}

/* The one way to end it: what stays is told, for it goes on. */
static void kill_all(struct command *c)
{
	struct sba_error why = { 0 };
	bool gone = c->failure.code == SBA_EBROKEN;
	if (c->killed)
		return;
	c->killed = true;
	c->kill_ms = SBA_NEVER;
	c->give_up_ms = sba_process_deadline(KILLED_MS);
	if (gone || sba_container_signal(c->container, c->user, c->mark, SIGKILL, &why) == 0 ||
	    c->over)
		return;
	why.code = SBA_ELOST;
	sba_wrap(&why, why.code, "command: it was to end, and goes on");
	sba_hint(&why, why.code, "the engine cannot end an exec; its container's restart does");
	fail(c, &why);
}

static void take_code(struct command *c, int code)
{
	int sent = atomic_load(&c->sent);
	c->exit = (struct sba_exit){ .kind = SBA_EXITED, .number = code };
	if (c->canceled && c->killed)
		c->exit.kind = SBA_WAS_CANCELED;
	else if (sent && code == 128 + sent)
		c->exit = (struct sba_exit){ .kind = SBA_SIGNALED, .number = sent };
	ended(c);
}

/* ---- its output ---- */

static int *output_of(struct command *c, enum sba_exec_stream stream)
{
	return stream == SBA_EXEC_STDERR && c->err >= 0 ? &c->err : &c->out;
}

/* A slow reader is waited for, and none that has gone; meanwhile it may be ended. */
static void put(struct command *c, int *fd, const char *data, size_t len)
{
	while (len > 0 && *fd >= 0) {
		struct pollfd p[] = { { *fd, POLLOUT, 0 },
				      { c->drop_fd, POLLIN, 0 },
				      { c->killed ? -1 : c->stop_fd, POLLIN, 0 } };
		ssize_t n = write(*fd, data, len);
		if (n < 0 && errno == EAGAIN) {
			(void)poll(p, SBA_ARRAY_LEN(p), -1);
			if (p[2].revents)
				kill_all(c);
			n = p[1].revents ? -1 : 0;
		} else if (n < 0 && errno == EINTR) {
			n = 0;
		}
		if (n < 0) {
			close_fd(fd);
			return;
		}
		data += n;
		len -= (size_t)n;
	}
}

/* What was held back is the command's. */
static void speak(struct command *c, enum sba_exec_stream stream)
{
	c->speaks = true;
	put(c, output_of(c, stream), c->words.data ? c->words.data : "", c->words.len);
}

/* What begins as a runtime's words do waits for the end to tell whose they are. */
static void take(struct command *c, enum sba_exec_stream stream, const char *data, size_t len)
{
	if (!c->speaks && c->words.len + len <= SBA_EXEC_OOB_TEXT_MAX) {
		sba_buf_put(&c->words, data, len);
		if (!sba_exec_runtime_words(c->words.data, c->words.len))
			speak(c, stream);
		return;
	}
	if (!c->speaks)
		speak(c, stream);
	put(c, output_of(c, stream), data, len);
}

static void conclude(struct command *c, int code)
{
	const char *words = c->words.data ? c->words.data : "";
	struct sba_error why = { 0 };
	if (c->speaks || !sba_exec_runtime_error(code, words, c->words.len)) {
		if (!c->speaks)
			speak(c, SBA_EXEC_STDOUT);
		take_code(c, code);
	} else if (sba_container_explain(words, &c->exit, &why) < 0) {
		fail(c, &why);
	} else {
		ended(c);
	}
}

/* ---- the thread ---- */

static void lose(struct command *c, struct sba_error *why)
{
	if (why->code == SBA_EBROKEN)
		sba_fail(why, SBA_EBROKEN, "command: container '%s' has ended", c->container->name);
	fail(c, why);
}

/* A container's death takes its commands first, and the engine knows of it a moment later. */
static bool died(struct command *c, int code)
{
	struct sba_until until = sba_until_in(DEATH_LAG_MS);
	int ignored, rc = 0;
	while (code == 128 + SIGKILL && !c->killed && rc != SBA_EBROKEN &&
	       sba_until_check(until, NULL) == 0) {
		(void)!sba_wait_fd(-1, 0, sba_until_sooner(until, DEATH_POLL_MS), NULL);
		rc = sba_exec_look(c->exec, sba_engine_until_regardless(ASK_MS), &ignored, NULL);
	}
	return rc == SBA_EBROKEN;
}

/* Its stream has ended. */
static void finish(struct command *c, const struct sba_error *lost)
{
	struct sba_error why = { 0 };
	int code = 0;
	if (c->over)
		return;
	/* Docker 25 and later have a frame for what the runtime says. */
	if (lost->code == SBA_EENGINE && sba_container_explain(lost->text, &c->exit, &why) == 0) {
		ended(c);
		return;
	}
	if (lost->code) {
		why = why.code ? why : *lost;
		fail(c, &why);
		return;
	}
	int rc = sba_exec_exit_code(c->exec, sba_engine_until_regardless(ASK_MS), &code, &why);
	if (rc == 0 && died(c, code))
		rc = why.code = SBA_EBROKEN;
	if (rc == 0) {
		conclude(c, code);
		return;
	}
	if (rc == SBA_ETIMEOUT)
		sba_fail(&why, SBA_ELOST,
			 "command: the engine ended its stream early, and it still runs");
	lose(c, &why);
}

/* Whether others hold the stream of one that has ended, or its container has. */
static void look(struct command *c)
{
	struct sba_error why = { 0 };
	int code = 0;
	if (c->over)
		return;
	int rc = sba_exec_look(c->exec, sba_engine_until_regardless(ASK_MS), &code, &why);
	if (rc == 1) {
		conclude(c, code);
	} else if (rc == SBA_EBROKEN) {
		lose(c, &why);
	} else if (rc == 0 && sba_now_ms() >= c->give_up_ms) {
		sba_fail(&why, SBA_ELOST, "command: it was killed, and goes on");
		fail(c, &why);
	} else if (rc == 0 && c->killed) {
		/* A busy engine may not have begun it when it was killed. */
		(void)!sba_container_signal(c->container, c->user, c->mark, SIGKILL, NULL);
	}
}

static void send_input(struct command *c)
{
	ssize_t n =
		sba_exec_write(c->exec, c->piece + c->piece_at, c->piece_len - c->piece_at, NULL);
	c->piece_at = n < 0 ? c->piece_len : c->piece_at + (size_t)n;
}

static void take_input(struct command *c)
{
	ssize_t n = read(c->in, c->piece, sizeof(c->piece));
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	c->piece_at = 0;
	c->piece_len = n > 0 ? (size_t)n : 0;
	if (n > 0) {
		send_input(c);
		return;
	}
	close_fd(&c->in);
	sba_exec_shutdown(c->exec);
}

static int64_t wait_left(const struct command *c)
{
	int64_t left = c->kill_ms == SBA_NEVER ? LOOK_MS : c->kill_ms - sba_now_ms();
	return left < 0 ? 0 : left < LOOK_MS ? left : LOOK_MS;
}

static void await(struct command *c, bool *ret_silent)
{
	bool full = c->piece_at < c->piece_len;
	struct pollfd p[] = {
		{ sba_exec_fd(c->exec), POLLIN, 0 },
		{ full ? -1 : c->in, POLLIN, 0 },
		{ c->killed ? -1 : c->stop_fd, POLLIN, 0 },
		{ c->drop_fd, POLLIN, 0 },
		{ c->canceled ? -1 : c->cancel_fd, POLLIN, 0 },
	};
	if (sba_exec_wants_write(c->exec))
		p[0].events |= POLLOUT;
	*ret_silent = poll(p, SBA_ARRAY_LEN(p), (int)wait_left(c)) == 0;
	if (full)
		send_input(c);
	if (p[1].revents)
		take_input(c);
	/* Whoever cancels the engine's handle mostly cancels the process as well. */
	if (p[4].revents) {
		c->canceled = true;
		c->kill_ms = sba_process_deadline(CANCEL_GRACE_MS);
	}
	if (p[2].revents || sba_now_ms() >= c->kill_ms)
		kill_all(c);
}

static void carry_stream(struct command *c)
{
	struct sba_error why = { 0 };
	enum sba_exec_stream stream;
	const char *data;
	bool silent = false;
	while (!fired(c->drop_fd) && !(c->over && c->out < 0 && c->err < 0)) {
		ssize_t n = sba_exec_read(c->exec, &stream, &data, sba_engine_until_regardless(0),
					  &why);
		if (n > 0) {
			take(c, stream, data, (size_t)n);
		} else if (n == SBA_ETIMEOUT) {
			if (silent || sba_now_ms() >= c->give_up_ms)
				look(c);
			await(c, &silent);
		} else {
			finish(c, n < 0 ? &why : &(struct sba_error){ 0 });
			return;
		}
	}
}

static void *carry(void *user)
{
	struct command *c = user;
	carry_stream(c);
	close_fd(&c->out);
	close_fd(&c->err);
	/* After its end too: what it left behind may be to go with it. */
	while (!c->killed) {
		struct pollfd p[] = { { c->drop_fd, POLLIN, 0 }, { c->stop_fd, POLLIN, 0 } };
		(void)poll(p, SBA_ARRAY_LEN(p), -1);
		if (p[1].revents)
			kill_all(c);
		else if (p[0].revents)
			break;
	}
	return NULL;
}

/* ---- what the library asks of it ---- */

static int command_signal(void *user, int number, struct sba_error *err)
{
	struct command *c = user;
	if (fired(c->ended_fd))
		return 0;
	atomic_store(&c->sent, number);
	return sba_container_signal(c->container, c->user, c->mark, number, err);
}

static void command_kill(void *user)
{
	sba_event_fire(((struct command *)user)->stop_fd);
}

static int command_wait(void *user, int64_t wait_ms, struct sba_exit *ret, struct sba_error *err)
{
	struct command *c = user;
	int rc = sba_pipe_ends_await(c->ended_fd, wait_ms, err);
	if (rc < 0)
		return rc;
	if (c->failure.code) {
		if (err)
			*err = c->failure;
		return c->failure.code;
	}
	*ret = c->exit;
	return 0;
}

static int command_resize(void *user, unsigned short rows, unsigned short columns,
			  struct sba_error *err)
{
	struct command *c = user;
	if (fired(c->ended_fd))
		return 0;
	return sba_exec_resize(c->exec, rows, columns, sba_engine_until_regardless(ASK_MS), err);
}

static void command_free(void *user)
{
	struct command *c = user;
	sba_event_fire(c->drop_fd);
	if (c->threaded)
		pthread_join(c->thread, NULL);
	int *const fds[] = { &c->in, &c->out, &c->err, &c->ended_fd, &c->stop_fd, &c->drop_fd };
	for (size_t i = 0; i < SBA_ARRAY_LEN(fds); i++)
		close_fd(fds[i]);
	sba_exec_close(c->exec);
	sba_buf_fini(&c->words);
	free(c->user);
	free(c);
}

static const struct sba_pipes_ops piped = {
	.send_signal = command_signal,
	.kill = command_kill,
	.wait = command_wait,
	.free = command_free,
};

static const struct sba_pipes_ops on_terminal = {
	.send_signal = command_signal,
	.kill = command_kill,
	.wait = command_wait,
	.resize = command_resize,
	.free = command_free,
};

/* ---- its beginning ---- */

static int open_descriptors(struct command *c, const struct sba_exec_options *o,
			    struct sba_pipes *p, struct sba_error *err)
{
	int *const events[] = { &c->ended_fd, &c->stop_fd, &c->drop_fd };
	for (size_t i = 0; i < SBA_ARRAY_LEN(events); i++) {
		*events[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (*events[i] < 0)
			return sba_fail_errno(err, SBA_EIO, errno, "command: descriptors");
	}
	const struct sba_pipe_ends ours = { o->has_stdin ? &c->in : NULL, &c->out,
					    o->tty ? NULL : &c->err, c->ended_fd };
	return sba_pipe_ends_open(&ours, p, err);
}

static int open_exec(struct command *c, const struct sba_exec_options *o, struct sba_error *err)
{
	SBA_STRV struct sba_strv env = { 0 };
	int rc = sba_strv_addf(&env, err, SBA_EXEC_MARK "=%s", c->mark);
	for (size_t i = 0; rc == 0 && o->env && o->env[i]; i++)
		rc = sba_strv_add(&env, o->env[i], err);
	if (rc < 0)
		return rc;
	const struct sba_exec_spec spec = {
		.container = c->container->id,
		.argv = o->argv,
		.env = (const char *const *)env.v,
		.user = o->user,
		.workdir = o->workdir,
		.no_stdin = !o->has_stdin,
		.tty = o->tty,
	};
	struct sba_engine *e = c->container->engine;
	rc = sba_exec_open(e, &spec, sba_engine_until(e, SBA_ENGINE_STEP_MS), &c->exec, err);
	if (rc == 0 && o->tty && o->rows && o->columns &&
	    sba_exec_resize(c->exec, o->rows, o->columns, sba_engine_until(e, ASK_MS), NULL) < 0)
		sba_log("sandbox", "the size of a terminal could not be set");
	return rc;
}

static int begin(struct command *c, const struct sba_exec_options *o, struct sba_pipes *p,
		 struct sba_error *err)
{
	int rc = sba_random_hex(c->mark, MARK_BYTES, err);
	c->user = o->user ? strdup(o->user) : NULL;
	if (rc == 0 && o->user && !c->user)
		rc = sba_fail_nomem(err);
	if (rc == 0)
		rc = open_descriptors(c, o, p, err);
	if (rc == 0)
		rc = open_exec(c, o, err);
	if (rc == 0)
		rc = sba_thread_start(&c->thread, carry, c, err);
	c->threaded = rc == 0;
	return rc;
}

int sba_container_exec(struct sba_container *container, const struct sba_exec_options *o,
		       struct sba_process **ret, struct sba_error *err)
{
	struct command *c = calloc(1, sizeof(*c));
	if (!c)
		return sba_fail_nomem(err);
	c->container = container;
	c->in = c->out = c->err = c->ended_fd = c->stop_fd = c->drop_fd = -1;
	c->cancel_fd = sba_engine_until(container->engine, 0).cancel_fd;
	c->kill_ms = c->give_up_ms = SBA_NEVER;
	sba_buf_init(&c->words, SBA_EXEC_OOB_TEXT_MAX);
	struct sba_pipes p = { -1, -1, -1, -1, o->tty ? &on_terminal : &piped, c, { 0 } };
	int rc = begin(c, o, &p, err);
	if (rc == 0)
		return sba_process_of_pipes(&p, o, ret, err);
	command_free(c);
	sba_pipe_ends_close(&p);
	return rc;
}
