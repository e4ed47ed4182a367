/* SPDX-License-Identifier: MIT */
/*
 * A command in a sandbox: the host's end of `guest run`. A link carries it;
 * what it says is split into the command's output and the guest's records.
 */
#include "sandbox/process.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/limits.h"

enum {
	QUEUE_MAX = 256 * SBA_KIB, /* input taken from the caller and not yet sent */
	BEGIN_LOOK_MS = 50,        /* how often the beginning of a detached one is looked for */
	DETACH_LOOK_MS = 300,      /* for "not found" of a detached command */
};

static struct sba_guest_process *guest_of(struct sba_process *p)
{
	return (struct sba_guest_process *)p;
}

static const struct sba_guest_process *const_guest_of(const struct sba_process *p)
{
	return (const struct sba_guest_process *)p;
}

/* ---- sending ---- */

void sba_process_frame(struct sba_guest_process *p, char type, const void *data, size_t len)
{
	uint32_t be = htonl((uint32_t)len);
	sba_buf_putc(&p->staging, type);
	sba_buf_put(&p->staging, &be, sizeof(be));
	sba_buf_put(&p->staging, data, len);
}

void sba_process_frame_text(struct sba_guest_process *p, char type, const char *text)
{
	sba_process_frame(p, type, text, strlen(text));
}

int sba_process_flush(struct sba_guest_process *p, struct sba_error *err)
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

/* ---- receiving ---- */

static void on_cancel(struct sba_guest_process *p)
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
	/* Behind the input that waits with it nobody would read the wish; the end of
	 * the stream is seen. */
	if (p->locks && !p->begun) {
		p->exit = (struct sba_exit){ .kind = SBA_WAS_CANCELED };
		p->over = true;
		return;
	}
	p->give_up_ms = sba_until_in(SBA_PROCESS_END_GRACE_MS).deadline_ms;
	sba_process_frame(p, SBA_RUN_CANCEL, "", 0);
}

/* Output out of the piece under way: > 0, or 0 if the piece is used up. */
static ssize_t next_output(struct sba_guest_process *p, enum sba_output *which, const char **data)
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
			sba_process_take_record(p, stream, &record);
		if (out_len == 0)
			continue;
		if (!p->begun) {
			/* Podman's own words come on stderr, where the command's may be
			 * early: these are told as well. */
			sba_buf_put(&p->preamble, out, out_len);
			if (stream == 0)
				continue;
		}
		*which = p->which;
		*data = out;
		return (ssize_t)out_len;
	}
	p->piece_len = 0;
	return 0;
}

/* A write took nothing before, and now it would: its caller must not be kept. */
static bool has_room_again(const struct sba_guest_process *p)
{
	return p->refused && p->staging.len + SBA_RUN_IO_CHUNK <= QUEUE_MAX;
}

/* Waits for the stream, the caller's deadline, a wish to stop; 0: look again. */
static int wait_more(struct sba_guest_process *p, int64_t deadline_ms, struct sba_error *err)
{
	struct sba_until until = { deadline_ms, p->watch_fd };
	short events = p->link->ops->wants_write(p->link) ? POLLIN | POLLOUT : POLLIN;
	bool look = !p->link->ops->watched || p->give_up_ms != SBA_NEVER;
	struct sba_until slice = look ? sba_until_sooner(until, SBA_PROCESS_LOOK_MS) : until;
	struct sba_error why;
	int rc = sba_wait_fd(p->link->ops->fd(p->link), events, slice, &why);
	if (rc == SBA_ECANCELED) {
		on_cancel(p);
		return 0;
	}
	if (rc == SBA_ETIMEOUT) {
		int gone = sba_process_still_there(p, err);
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
static int next_piece(struct sba_guest_process *p, int64_t deadline_ms, struct sba_error *err)
{
	for (;;) {
		if (p->over)
			return 0;
		int rc = sba_process_check_overdue(p, err);
		if (rc == 0)
			rc = sba_process_flush(p, err);
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
			return sba_process_explain_loss(p, &why, err);
		/* Room that came since the flush was told on the descriptor that the read
		 * has just cleared. */
		size_t waiting = p->staging.len;
		rc = sba_process_flush(p, err);
		if (rc == 0 && p->staging.len < waiting)
			continue;
		if (rc == 0 && has_room_again(p))
			rc = sba_fail(err, SBA_ETIMEOUT, "command: there is room for input again");
		if (rc == 0)
			rc = wait_more(p, deadline_ms, err);
		if (rc < 0)
			return rc;
	}
}

static ssize_t guest_read(struct sba_process *process, int64_t wait_ms, enum sba_output *which,
			  const char **data, struct sba_error *err)
{
	struct sba_guest_process *p = guest_of(process);
	int64_t deadline = sba_process_deadline(wait_ms);
	for (;;) {
		ssize_t n = next_output(p, which, data);
		if (n > 0 && !sba_output_limit_cut(&p->limit, &n))
			return sba_fail(err, SBA_ETIMEOUT, "command: its output is cut from here");
		if (n > 0)
			return n;
		if (p->piece_len > 0)
			continue;
		if (p->failure.code) {
			if (err)
				*err = p->failure;
			return p->failure.code;
		}
		if (p->over)
			return 0;
		if (p->lost)
			return sba_fail(err, SBA_ELOST, "command: its stream is lost");
		int rc = next_piece(p, deadline, err);
		if (rc == 0 && !p->over)
			rc = sba_process_explain_loss(p, &(struct sba_error){ 0 }, err);
		if (rc < 0)
			return rc;
	}
}

int sba_process_await_begin(struct sba_guest_process *p, struct sba_error *err)
{
	enum sba_output which;
	const char *data;
	while (!p->begun && !p->over) {
		int rc = p->piece_len > 0 ? 1 : next_piece(p, SBA_NEVER, err);
		if (rc == 0 && !p->over)
			rc = sba_process_explain_loss(p, &(struct sba_error){ 0 }, err);
		if (rc < 0)
			return rc;
		while (p->piece_len > 0 && next_output(p, &which, &data) > 0)
			;
	}
	return 0;
}

/* Discards output until the end is known. */
static int drain(struct sba_guest_process *p, int64_t deadline_ms, struct sba_error *err)
{
	while (!p->over) {
		enum sba_output which;
		const char *data;
		int64_t left = deadline_ms == SBA_NEVER ? -1 : deadline_ms - sba_now_ms();
		ssize_t n = guest_read(&p->process, deadline_ms == SBA_NEVER || left > 0 ? left : 0,
				       &which, &data, err);
		if (n < 0)
			return (int)n;
	}
	return 0;
}

static int64_t sooner(int64_t deadline_ms, int64_t ms)
{
	int64_t at = sba_process_deadline(ms);
	return at < deadline_ms ? at : deadline_ms;
}

/* Until it has begun, and then for what fails at once: there is no such program. */
static int drain_detached(struct sba_guest_process *p, int64_t deadline_ms, struct sba_error *err)
{
	while (!p->begun && !p->over) {
		int rc = drain(p, sooner(deadline_ms, BEGIN_LOOK_MS), err);
		if (rc < 0 && (rc != SBA_ETIMEOUT || sba_now_ms() >= deadline_ms))
			return rc;
	}
	return drain(p, sooner(deadline_ms, DETACH_LOOK_MS), err);
}

static int guest_wait(struct sba_process *process, int64_t wait_ms, struct sba_exit *ret,
		      struct sba_error *err)
{
	struct sba_guest_process *p = guest_of(process);
	int64_t deadline = sba_process_deadline(wait_ms);
	p->refused = false; /* who waits for the end writes no more */
	p->limit.told = true;
	if (p->lost)
		return sba_process_watch(p, deadline, err);
	int rc = p->detach ? drain_detached(p, deadline, err) : drain(p, deadline, err);
	if (rc == SBA_ELOST && p->lost)
		return sba_process_watch(p, deadline, err);
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

static ssize_t guest_write(struct sba_process *process, const void *data, size_t len,
			   struct sba_error *err)
{
	struct sba_guest_process *p = guest_of(process);
	int rc = sba_process_flush(p, err);
	if (rc < 0)
		return rc;
	if (p->stdin_closed || p->over)
		return (ssize_t)len;
	size_t n = len < SBA_RUN_IO_CHUNK ? len : SBA_RUN_IO_CHUNK;
	p->refused = n > 0 && p->staging.len + n > QUEUE_MAX;
	if (n == 0 || p->refused)
		return 0;
	sba_process_frame(p, SBA_RUN_DATA, data, n);
	rc = sba_process_flush(p, err);
	return rc < 0 ? rc : (ssize_t)n;
}

static int guest_close_stdin(struct sba_process *process, struct sba_error *err)
{
	struct sba_guest_process *p = guest_of(process);
	if (p->stdin_closed)
		return 0;
	p->stdin_closed = true;
	sba_process_frame(p, SBA_RUN_EOF, "", 0);
	return sba_process_flush(p, err);
}

static int guest_resize(struct sba_process *process, unsigned short rows, unsigned short columns,
			struct sba_error *err)
{
	struct sba_guest_process *p = guest_of(process);
	char text[32];
	snprintf(text, sizeof(text), "%ux%u", (unsigned)rows, (unsigned)columns);
	sba_process_frame_text(p, SBA_RUN_RESIZE, text);
	return sba_process_flush(p, err);
}

static int guest_signal(struct sba_process *process, int signal_number, struct sba_error *err)
{
	struct sba_guest_process *p = guest_of(process);
	char text[16];
	snprintf(text, sizeof(text), "%d", signal_number);
	sba_process_frame_text(p, SBA_RUN_SIGNAL, text);
	return sba_process_flush(p, err);
}

static uint64_t guest_dropped(const struct sba_process *process)
{
	const struct sba_guest_process *p = const_guest_of(process);
	return p->limit.dropped;
}

static bool guest_output_held(const struct sba_process *process)
{
	const struct sba_guest_process *p = const_guest_of(process);
	return p->held;
}

static void guest_losses(const struct sba_process *process, struct sba_channel_pressure *ret)
{
	const struct sba_guest_process *p = const_guest_of(process);
	if (p->link->ops->pressure)
		p->link->ops->pressure(p->link, ret);
}

static int guest_fd(const struct sba_process *process)
{
	const struct sba_guest_process *p = const_guest_of(process);
	return p->link->ops->fd(p->link);
}

static short guest_events(const struct sba_process *process)
{
	const struct sba_guest_process *p = const_guest_of(process);
	return has_room_again(p) || p->link->ops->wants_write(p->link) ? POLLIN | POLLOUT : POLLIN;
}

static void guest_cancel(struct sba_process *process)
{
	struct sba_guest_process *p = guest_of(process);
	sba_event_fire(p->cancel_fd);
}

static void guest_free(struct sba_process *process)
{
	struct sba_guest_process *p = guest_of(process);
	/* Closing the stream tells the guest that its client is gone. */
	if (p->link)
		p->link->ops->close(p->link);
	sba_cleanup_close(&p->cancel_fd);
	sba_cleanup_close(&p->watch_fd);
	sba_buf_fini(&p->staging);
	sba_buf_fini(&p->preamble);
	free(p);
}

const struct sba_process_ops sba_guest_process_ops = {
	.read = guest_read,
	.write = guest_write,
	.close_stdin = guest_close_stdin,
	.resize = guest_resize,
	.send_signal = guest_signal,
	.fd = guest_fd,
	.events = guest_events,
	.wait = guest_wait,
	.dropped = guest_dropped,
	.output_held = guest_output_held,
	.losses = guest_losses,
	.cancel = guest_cancel,
	.free = guest_free,
};
