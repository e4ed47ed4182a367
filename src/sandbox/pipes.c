/* SPDX-License-Identifier: MIT */
/*
 * A command of a backend that has descriptors: the library pumps them, keeps the time
 * and the limit of output, and ends the command when it is cancelled or given up.
 */
#include <sandbox-agent/backend.h>

#include "sandbox/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/limits.h"

enum {
	PIECE = 64 * SBA_KIB,
	QUEUE_MAX = 256 * SBA_KIB, /* input taken from the caller and not yet written */
	GRACE_MS = 2000,           /* between TERM and the end */
	HELD_MS = 500,             /* for output that others hold open after its end */
	LOOK_MS = 100,             /* where nothing tells of its end */
};

struct pipes_process {
	struct sba_process process; /* first */
	struct sba_pipes pipes;
	struct sba_buf queue;
	bool closing; /* no more input comes; the rest of it is still to be written */
	bool refused; /* a write found the queue full */
	int cancel_fd, timer_fd;
	int watch_fd;                                   /* epoll over all of them */
	int64_t deadline_ms, kill_ms, held_ms, next_ms; /* SBA_NEVER: not set */
	bool ending;                                    /* for the reason in end */
	enum sba_exit_kind end;
	struct sba_output_limit limit;
	bool held;
	bool over; /* exit is known */
	struct sba_exit exit;
	char piece[PIECE];
};

static struct pipes_process *pipes_of(struct sba_process *p)
{
	return (struct pipes_process *)p;
}

static const struct pipes_process *const_pipes_of(const struct sba_process *p)
{
	return (const struct pipes_process *)p;
}

static int64_t sooner(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* ---- descriptors ---- */

static void unwatch(struct pipes_process *p, int *fd)
{
	if (*fd >= 0)
		epoll_ctl(p->watch_fd, EPOLL_CTL_DEL, *fd, NULL);
	sba_cleanup_close(fd);
	*fd = -1;
}

static int watch(struct pipes_process *p, int fd, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.fd = fd };
	return fd < 0 ? 0 : epoll_ctl(p->watch_fd, EPOLL_CTL_ADD, fd, &e);
}

static int open_watch(struct pipes_process *p, struct sba_error *err)
{
	const struct sba_pipes *s = &p->pipes;
	p->watch_fd = epoll_create1(EPOLL_CLOEXEC);
	p->cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	p->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (p->watch_fd < 0 || p->cancel_fd < 0 || p->timer_fd < 0 ||
	    watch(p, p->cancel_fd, EPOLLIN) < 0 || watch(p, p->timer_fd, EPOLLIN) < 0 ||
	    watch(p, s->out, EPOLLIN) < 0 || watch(p, s->err, EPOLLIN) < 0 ||
	    watch(p, s->ended, EPOLLIN) < 0 || watch(p, s->in, 0) < 0)
		return sba_fail_errno(err, SBA_EIO, errno, "command: descriptors");
	const int pumped[] = { s->in, s->out, s->err };
	for (size_t i = 0; i < SBA_ARRAY_LEN(pumped); i++) {
		if (pumped[i] >= 0 && sba_set_nonblock(pumped[i], true) < 0)
			return sba_fail_errno(err, SBA_EIO, errno, "command: descriptors");
	}
	return 0;
}

/* The timer makes whoever polls the process ask for output, which is when time counts. */
static void set_timer(struct pipes_process *p)
{
	int64_t next = sooner(p->deadline_ms, sooner(p->kill_ms, p->held_ms));
	struct itimerspec at = { 0 };
	uint64_t fired;
	if (next == p->next_ms)
		return;
	p->next_ms = next;
	(void)!read(p->timer_fd, &fired, sizeof(fired));
	if (next != SBA_NEVER)
		at.it_value = (struct timespec){ next / 1000, next % 1000 * 1000000 + 1 };
	timerfd_settime(p->timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
}

/* ---- its end ---- */

static void begin_end(struct pipes_process *p, enum sba_exit_kind why)
{
	if (p->ending || p->over)
		return;
	p->ending = true;
	p->end = why;
	p->deadline_ms = SBA_NEVER;
	const struct sba_pipes *s = &p->pipes;
	if (s->ops->send_signal && s->ops->send_signal(s->command, SIGTERM, NULL) == 0)
		p->kill_ms = sba_process_deadline(GRACE_MS);
	else
		s->ops->kill(s->command);
}

static void look_at_clock(struct pipes_process *p)
{
	uint64_t count;
	int64_t now = sba_now_ms();
	if (read(p->cancel_fd, &count, sizeof(count)) > 0)
		begin_end(p, SBA_WAS_CANCELED);
	if (now >= p->deadline_ms)
		begin_end(p, SBA_TIMED_OUT);
	if (now >= p->kill_ms) {
		p->kill_ms = SBA_NEVER;
		p->pipes.ops->kill(p->pipes.command);
	}
	if (now >= p->held_ms) {
		p->held_ms = SBA_NEVER;
		p->held = true;
		unwatch(p, &p->pipes.out);
		unwatch(p, &p->pipes.err);
	}
	set_timer(p);
}

/* Takes its exit if that is known by then. */
static int take_exit(struct pipes_process *p, int64_t wait_ms, struct sba_error *err)
{
	struct sba_exit exit = { 0 };
	if (p->over)
		return 0;
	int rc = p->pipes.ops->wait(p->pipes.command, wait_ms, &exit, err);
	if (rc < 0)
		return rc;
	p->over = true;
	p->exit = exit;
	if (p->ending)
		p->exit = (struct sba_exit){ .kind = p->end };
	/* What it left behind, where it had to be ended, goes with it. */
	if (p->ending)
		p->pipes.ops->kill(p->pipes.command);
	p->deadline_ms = p->kill_ms = SBA_NEVER;
	if (p->pipes.out >= 0 || p->pipes.err >= 0)
		p->held_ms = sba_process_deadline(HELD_MS);
	set_timer(p);
	return 0;
}

static void look_at_end(struct pipes_process *p)
{
	struct pollfd ended = { p->pipes.ended, POLLIN, 0 };
	if (p->over || p->pipes.ended < 0 || poll(&ended, 1, 0) <= 0)
		return;
	if (take_exit(p, 0, NULL) == 0)
		unwatch(p, &p->pipes.ended);
}

/* ---- input ---- */

/* A program's SIGPIPE is its own business, and not this library's to take or to send. */
static ssize_t write_quietly(int fd, const void *data, size_t len)
{
	sigset_t pipe_only, before, pending;
	sigemptyset(&pipe_only);
	sigaddset(&pipe_only, SIGPIPE);
	sigpending(&pending);
	pthread_sigmask(SIG_BLOCK, &pipe_only, &before);
	ssize_t n = write(fd, data, len);
	int e = errno;
	const struct timespec now = { 0 };
	if (n < 0 && e == EPIPE && !sigismember(&pending, SIGPIPE))
		sigtimedwait(&pipe_only, NULL, &now);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = e;
	return n;
}

static void flush(struct pipes_process *p)
{
	struct sba_pipes *s = &p->pipes;
	while (s->in >= 0 && p->queue.len > 0) {
		ssize_t n = write_quietly(s->in, p->queue.data, p->queue.len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		/* It reads no more: what is left is for nobody. */
		sba_buf_drop(&p->queue, n < 0 ? p->queue.len : (size_t)n);
		if (n < 0)
			unwatch(p, &s->in);
	}
	if (p->queue.len == 0 && p->closing)
		unwatch(p, &s->in);
	if (s->in >= 0) {
		struct epoll_event e = { .events = p->queue.len ? EPOLLOUT : 0, .data.fd = s->in };
		epoll_ctl(p->watch_fd, EPOLL_CTL_MOD, s->in, &e);
	}
}

static bool has_room(const struct pipes_process *p)
{
	return p->queue.len < QUEUE_MAX;
}

static ssize_t pipes_write(struct sba_process *process, const void *data, size_t len,
			   struct sba_error *err)
{
	struct pipes_process *p = pipes_of(process);
	flush(p);
	if (p->closing || p->over || p->pipes.in < 0)
		return (ssize_t)len;
	size_t room = has_room(p) ? QUEUE_MAX - p->queue.len : 0;
	size_t n = len < room ? len : room;
	p->refused = len > 0 && n == 0;
	sba_buf_put(&p->queue, data, n);
	int rc = sba_buf_check(&p->queue, "command: its input", err);
	flush(p);
	return rc < 0 ? rc : (ssize_t)n;
}

static int pipes_close_stdin(struct sba_process *process, struct sba_error *err)
{
	struct pipes_process *p = pipes_of(process);
	(void)err;
	p->closing = true;
	flush(p);
	return 0;
}

/* ---- output ---- */

/* > 0, 0 at its end, SBA_ETIMEOUT: nothing now. */
static ssize_t read_one(struct pipes_process *p, int *fd)
{
	ssize_t n;
	do
		n = read(*fd, p->piece, sizeof(p->piece));
	while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN)
		return SBA_ETIMEOUT;
	if (n <= 0)
		unwatch(p, fd);
	return n < 0 ? 0 : n;
}

static ssize_t read_any(struct pipes_process *p, enum sba_output *which)
{
	struct sba_pipes *s = &p->pipes;
	ssize_t n = s->out >= 0 ? read_one(p, &s->out) : 0;
	*which = SBA_STDOUT;
	if (n > 0)
		return n;
	n = s->err >= 0 ? read_one(p, &s->err) : 0;
	*which = SBA_STDERR;
	if (n > 0)
		return n;
	return s->out >= 0 || s->err >= 0 ? SBA_ETIMEOUT : 0;
}

/* Until something happens, or the caller's time is over. */
static int await(struct pipes_process *p, int64_t deadline_ms, struct sba_error *err)
{
	int64_t limit = deadline_ms;
	/* The end of the output may have come before, and the command go on. */
	if (p->pipes.ended < 0 && p->pipes.out < 0 && p->pipes.err < 0)
		limit = sooner(limit, sba_process_deadline(LOOK_MS));
	int rc = sba_wait_fd(p->watch_fd, POLLIN, (struct sba_until){ limit, -1 }, err);
	return rc == SBA_ETIMEOUT && sba_now_ms() >= deadline_ms ? rc : rc == SBA_EIO ? rc : 0;
}

static ssize_t pipes_read(struct sba_process *process, int64_t wait_ms, enum sba_output *which,
			  const char **data, struct sba_error *err)
{
	struct pipes_process *p = pipes_of(process);
	int64_t deadline = sba_process_deadline(wait_ms);
	for (;;) {
		look_at_clock(p);
		flush(p);
		ssize_t n = read_any(p, which);
		if (n > 0) {
			if (!sba_output_limit_cut(&p->limit, &n))
				return sba_fail(err, SBA_ETIMEOUT,
						"command: its output is cut from here");
			if (n == 0)
				continue;
			*data = p->piece;
			return n;
		}
		if (n == 0)
			return 0;
		look_at_end(p);
		if (p->refused && has_room(p))
			return sba_fail(err, SBA_ETIMEOUT,
					"command: there is room for input again");
		int rc = await(p, deadline, err);
		if (rc < 0)
			return rc == SBA_ETIMEOUT
				       ? sba_fail(err, rc, "command: nothing came in time")
				       : rc;
	}
}

static int pipes_wait(struct sba_process *process, int64_t wait_ms, struct sba_exit *ret,
		      struct sba_error *err)
{
	struct pipes_process *p = pipes_of(process);
	int64_t deadline = sba_process_deadline(wait_ms);
	enum sba_output which;
	const char *data;
	p->refused = false; /* who waits for the end writes no more */
	p->limit.told = true;
	while (p->pipes.out >= 0 || p->pipes.err >= 0) {
		int64_t left = deadline - sba_now_ms();
		ssize_t n = pipes_read(process,
				       wait_ms < 0 ? -1
				       : left > 0  ? left
						   : 0,
				       &which, &data, err);
		if (n < 0)
			return (int)n;
	}
	while (!p->over) {
		struct sba_error why = { 0 };
		look_at_clock(p);
		int rc = take_exit(p, 0, &why);
		if (rc == SBA_ETIMEOUT)
			rc = await(p, deadline, &why);
		if (rc < 0 && err)
			*err = why;
		if (rc < 0)
			return rc;
	}
	*ret = p->exit;
	return 0;
}

/* ---- the rest ---- */

static int pipes_signal(struct sba_process *process, int signal_number, struct sba_error *err)
{
	const struct sba_pipes *s = &pipes_of(process)->pipes;
	if (!s->ops->send_signal && signal_number != SIGKILL)
		return sba_fail(err, SBA_EUNSUPPORTED, "command: signals need the capability '%s'",
				sba_capability_name(SBA_CAN_SIGNAL));
	if (s->ops->send_signal)
		return s->ops->send_signal(s->command, signal_number, err);
	s->ops->kill(s->command);
	return 0;
}

static int pipes_resize(struct sba_process *process, unsigned short rows, unsigned short columns,
			struct sba_error *err)
{
	const struct sba_pipes *s = &pipes_of(process)->pipes;
	if (!s->ops->resize)
		return sba_fail(err, SBA_EUNSUPPORTED,
				"command: a terminal's size needs the capability '%s'",
				sba_capability_name(SBA_CAN_TTY));
	return s->ops->resize(s->command, rows, columns, err);
}

static int pipes_fd(const struct sba_process *process)
{
	return const_pipes_of(process)->watch_fd;
}

/* An epoll descriptor tells of room as it tells of output. */
static short pipes_events(const struct sba_process *process)
{
	const struct pipes_process *p = const_pipes_of(process);
	return p->refused && has_room(p) ? POLLIN | POLLOUT : POLLIN;
}

static uint64_t pipes_dropped(const struct sba_process *process)
{
	return const_pipes_of(process)->limit.dropped;
}

static bool pipes_output_held(const struct sba_process *process)
{
	return const_pipes_of(process)->held;
}

static void pipes_cancel(struct sba_process *process)
{
	sba_event_fire(pipes_of(process)->cancel_fd);
}

static void pipes_free(struct sba_process *process)
{
	struct pipes_process *p = pipes_of(process);
	struct sba_pipes *s = &p->pipes;
	if (!p->over)
		s->ops->kill(s->command);
	s->ops->free(s->command);
	sba_pipe_ends_close(s);
	sba_cleanup_close(&p->cancel_fd);
	sba_cleanup_close(&p->timer_fd);
	sba_cleanup_close(&p->watch_fd);
	sba_buf_fini(&p->queue);
	free(p);
}

static const struct sba_process_ops pipes_ops = {
	.read = pipes_read,
	.write = pipes_write,
	.close_stdin = pipes_close_stdin,
	.resize = pipes_resize,
	.send_signal = pipes_signal,
	.fd = pipes_fd,
	.events = pipes_events,
	.wait = pipes_wait,
	.dropped = pipes_dropped,
	.output_held = pipes_output_held,
	.cancel = pipes_cancel,
	.free = pipes_free,
};

static int give_back(const struct sba_pipes *s, struct sba_error *err)
{
	struct sba_pipes p = *s;
	p.ops->kill(p.command);
	p.ops->free(p.command);
	sba_pipe_ends_close(&p);
	return sba_fail_nomem(err);
}

int sba_process_of_pipes(const struct sba_pipes *s, const struct sba_exec_options *o,
			 struct sba_process **ret, struct sba_error *err)
{
	struct pipes_process *p = malloc(sizeof(*p));
	if (!p)
		return give_back(s, err);
	memset(p, 0, offsetof(struct pipes_process, piece));
	p->process.ops = &pipes_ops;
	p->pipes = *s;
	p->cancel_fd = p->timer_fd = p->watch_fd = -1;
	p->kill_ms = p->held_ms = p->next_ms = SBA_NEVER;
	p->deadline_ms = o->timeout_ms > 0 ? sba_process_deadline(o->timeout_ms) : SBA_NEVER;
	p->limit.left = o->max_output > 0 ? o->max_output : -1;
	sba_buf_init(&p->queue, 2 * QUEUE_MAX);
	int rc = open_watch(p, err);
	if (rc < 0) {
		pipes_free(&p->process);
		return rc;
	}
	p->closing = !o->has_stdin;
	flush(p);
	set_timer(p);
	*ret = &p->process;
	return 0;
}
