/* SPDX-License-Identifier: MIT */
/*
 * A command at a service as a process of the library's: pipes to its reader, a thread that
 * carries its output into them, and one that carries its input.
 */
#include "base/limits.h"
#include "remote/private.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* ---- its state ---- */

static void close_fd(int *fd)
{
	sba_cleanup_close(fd);
	*fd = -1;
}

void sba_remote_command_free(struct sba_remote_command *c)
{
	int *const fds[] = { &c->in,      &c->out,     &c->err,        &c->started_fd, &c->ended_fd,
			     &c->stop_fd, &c->drop_fd, &c->stop_watch, &c->drop_watch };
	if (c->threaded) {
		sba_event_fire(c->drop_fd);
		sba_event_fire(c->stop_fd);
		pthread_join(c->thread, NULL);
	}
	if (c->feeding)
		pthread_join(c->feeder, NULL);
	for (size_t i = 0; i < SBA_ARRAY_LEN(fds); i++)
		close_fd(fds[i]);
	sba_buf_fini(&c->request);
	sba_buf_fini(&c->line);
	sba_envelopes_fini(&c->envelopes);
	free(c->input);
	free(c);
}

static void command_free(void *user)
{
	sba_remote_command_free(user);
}

static int watch_both(int a, int b)
{
	struct epoll_event e = { .events = EPOLLIN };
	SBA_CLOSE int fd = epoll_create1(EPOLL_CLOEXEC);
	if (fd < 0 || epoll_ctl(fd, EPOLL_CTL_ADD, a, &e) < 0 ||
	    epoll_ctl(fd, EPOLL_CTL_ADD, b, &e) < 0)
		return -1;
	return sba_move_fd(&fd);
}

static int open_events(struct sba_remote_command *c, struct sba_error *err)
{
	int *const events[] = { &c->started_fd, &c->ended_fd, &c->stop_fd, &c->drop_fd };
	for (size_t i = 0; i < SBA_ARRAY_LEN(events); i++) {
		*events[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (*events[i] < 0)
			return sba_fail_errno(err, SBA_EIO, errno, "command: descriptors");
	}
	c->stop_watch = watch_both(c->stop_fd, c->box->closed_fd);
	c->drop_watch = watch_both(c->drop_fd, c->box->closed_fd);
	return c->stop_watch < 0 || c->drop_watch < 0
		       ? sba_fail_errno(err, SBA_EIO, errno, "command: descriptors")
		       : 0;
}

static int compose(struct sba_remote_command *c, const struct sba_exec_options *o,
		   struct sba_error *err)
{
	const struct sba_remote_kind *kind = c->box->remote->kind;
	c->live_input = o->has_stdin && kind->live_input;
	if (o->has_stdin && !c->live_input &&
	    asprintf(&c->input, "/tmp/.sandbox-agent-%s.in", c->id) < 0) {
		c->input = NULL;
		return sba_fail_nomem(err);
	}
	const struct sba_remote_start start = {
		.options = o,
		.id = c->id,
		.workdir = o->workdir ? o->workdir : c->box->workdir,
		.input = c->input,
		.live_input = c->live_input,
	};
	int rc = kind->compose(c->box, &start, &c->request, err);
	return rc == 0 ? sba_buf_check(&c->request, "command: what starts it", err) : rc;
}

static int fill(struct sba_remote_command *c, const struct sba_exec_options *o,
		struct sba_error *err)
{
	int rc = sba_random_hex(c->id, SBA_REMOTE_ID_LEN / 2, err);
	if (rc == 0)
		rc = open_events(c, err);
	for (int i = 0; i < 2; i++)
		snprintf(c->scan[i].id, sizeof(c->scan[i].id), "%s", c->id);
	return rc == 0 ? compose(c, o, err) : rc;
}

int sba_remote_command_new(struct sba_remote_box *b, const struct sba_exec_options *o,
			   struct sba_remote_command **ret, struct sba_error *err)
{
	struct sba_remote_command *c = calloc(1, sizeof(*c));
	if (!c)
		return sba_fail_nomem(err);
	c->box = b;
	c->in = c->out = c->err = c->started_fd = c->ended_fd = -1;
	c->stop_fd = c->drop_fd = c->stop_watch = c->drop_watch = -1;
	c->deadline_ms = SBA_NEVER;
	sba_buf_init(&c->request, 2 * SBA_ARG_MAX);
	sba_buf_init(&c->line, SBA_REMOTE_EVENT_MAX);
	sba_envelopes_init(&c->envelopes);
	int rc = fill(c, o, err);
	if (rc < 0) {
		sba_remote_command_free(c);
		return rc;
	}
	*ret = c;
	return 0;
}

/* ---- what its decoder tells ---- */

void sba_remote_started(struct sba_remote_command *c)
{
	c->started = true;
	sba_event_fire(c->started_fd);
}

/* Waits for a reader that is slow, and for none that has gone. */
void sba_remote_output(struct sba_remote_command *c, enum sba_output which, const char *data,
		       size_t len)
{
	int *fd = which == SBA_STDERR ? &c->err : &c->out;
	while (len > 0 && *fd >= 0) {
		ssize_t n = write(*fd, data, len);
		if (n < 0 && errno == EAGAIN)
			n = sba_wait_fd(*fd, POLLOUT, (struct sba_until){ SBA_NEVER, c->drop_fd },
					NULL) > 0
				    ? 0
				    : -1;
		else if (n < 0 && errno == EINTR)
			n = 0;
		if (n < 0) {
			close_fd(fd);
			return;
		}
		data += n;
		len -= (size_t)n;
	}
}

void sba_remote_stream_ended(struct sba_remote_command *c, enum sba_output which)
{
	c->stream_ended[which == SBA_STDERR] = true;
	close_fd(which == SBA_STDERR ? &c->err : &c->out);
	c->whole = c->over && c->stream_ended[0] && c->stream_ended[1];
}

void sba_remote_ended(struct sba_remote_command *c, const struct sba_exit *how)
{
	if (c->over)
		return;
	c->exit = *how;
	c->over = true;
}

static void *carry(void *user)
{
	struct sba_remote_command *c = user;
	struct sba_error err = { 0 };
	int rc = c->input && c->in >= 0 ? sba_remote_keep_input(c, &err) : 0;
	if (rc == 0)
		rc = sba_remote_converse(c, &err);
	if (!c->over)
		c->failure = err;
	close_fd(&c->out);
	close_fd(&c->err);
	sba_event_fire(c->ended_fd);
	return NULL;
}

static void *feed(void *user)
{
	sba_remote_feed_input(user);
	return NULL;
}

/* ---- what the library asks of it ---- */

static int command_signal(void *user, int number, struct sba_error *err)
{
	struct sba_remote_command *c = user;
	if (sba_wait_fd(c->ended_fd, POLLIN, sba_until_in(0), NULL) > 0)
		return 0;
	return sba_remote_signal(c->box, c->id, number, err);
}

static void command_kill(void *user)
{
	sba_event_fire(((struct sba_remote_command *)user)->stop_fd);
}

static int command_wait(void *user, int64_t wait_ms, struct sba_exit *ret, struct sba_error *err)
{
	struct sba_remote_command *c = user;
	int rc = sba_pipe_ends_await(c->ended_fd, wait_ms, err);
	if (rc < 0)
		return rc;
	if (c->over) {
		*ret = c->exit;
		return 0;
	}
	if (err)
		*err = c->failure;
	return c->failure.code;
}

static const struct sba_pipes_ops command_ops = {
	.send_signal = command_signal,
	.kill = command_kill,
	.wait = command_wait,
	.free = command_free,
};

/* ---- its beginning ---- */

static int begin(struct sba_remote_command *c, const struct sba_exec_options *o,
		 struct sba_pipes *p, struct sba_error *err)
{
	const struct sba_pipe_ends ours = { o->has_stdin ? &c->in : NULL, &c->out, &c->err,
					    c->ended_fd };
	int rc = sba_pipe_ends_open(&ours, p, err);
	if (rc == 0)
		rc = sba_thread_start(&c->thread, carry, c, err);
	c->threaded = rc == 0;
	if (rc == 0 && c->live_input)
		rc = sba_thread_start(&c->feeder, feed, c, err);
	c->feeding = rc == 0 && c->live_input;
	return rc;
}

int sba_remote_exec(struct sba_sandbox *s, const struct sba_exec_options *o,
		    struct sba_process **ret, struct sba_error *err)
{
	struct sba_remote_command *c = NULL;
	int rc = sba_remote_command_new(sba_remote_box_of(s), o, &c, err);
	if (rc < 0 || !c)
		return rc;
	struct sba_pipes p = { -1, -1, -1, -1, &command_ops, c, { 0 } };
	rc = begin(c, o, &p, err);
	if (rc == 0)
		return sba_process_of_pipes(&p, o, ret, err);
	sba_remote_command_free(c);
	sba_pipe_ends_close(&p);
	return rc;
}
