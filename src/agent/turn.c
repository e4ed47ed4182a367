/* SPDX-License-Identifier: MIT */
/*
 * A turn: the CLI's process, its lines through the driver, events to the
 * caller, one verdict at the end. Nothing that the CLI prints can fail it;
 * how the process ended and what was said decide together.
 */
#include "agent/turn.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum {
	/* Some CLIs do not exit after their last word. */
	DONE_GRACE_MS = 10 * 1000,
	/* For a CLI to end its turn by its own means. */
	INTERRUPT_MS = 5 * 1000,
	LOOK_MS = 1000,
};

static void feed_line(struct sba_turn *t, const char *line, size_t len)
{
	/* The queue's only failure is memory, which the next event meets again. */
	if (sba_stream_line(t->stream, line, len) != 0)
		sba_log("agent", "an event was lost: out of memory");
	sba_turn_keep_session(t);
	/* Some go on after what looked like the end: a compaction, a late message. */
	if (!sba_stream_done(t->stream)) {
		t->done_ms = 0;
	} else if (!t->done_ms) {
		t->done_ms = sba_now_ms();
		sba_turn_keep_early(t);
	}
}

/* Cuts the piece under way into lines until one gives events. */
static bool next_from_piece(struct sba_turn *t)
{
	while (t->piece_len > 0 && sba_event_queue_empty(&t->events)) {
		const char *line;
		size_t line_len;
		size_t n = sba_lines_feed(&t->lines, t->piece, t->piece_len, &line, &line_len);
		sba_audit_turn_raw(t->audit, t->piece, n);
		t->piece += n;
		t->piece_len -= n;
		if (line)
			feed_line(t, line, line_len);
	}
	return !sba_event_queue_empty(&t->events);
}

static int send_prompt(struct sba_turn *t, struct sba_error *err)
{
	while (t->prompt_sent < t->prompt_len) {
		ssize_t n = sba_process_write(t->process, t->prompt + t->prompt_sent,
					      t->prompt_len - t->prompt_sent, err);
		if (n <= 0)
			return (int)n;
		t->prompt_sent += (size_t)n;
	}
	if (t->stdin_closed)
		return 0;
	t->stdin_closed = true;
	return sba_process_close_stdin(t->process, err);
}

static void end_process(struct sba_turn *t, enum ended_by why)
{
	if (t->ended_by != BY_ITSELF)
		return;
	t->ended_by = why;
	sba_process_cancel(t->process);
}

/* First as a person would: most CLIs then say what they have, and all keep what
 * they did. When the next look is due if that does not help. */
static int64_t interrupt(struct sba_turn *t, int64_t now)
{
	const struct sba_driver *d = t->agent->driver;
	if (t->interrupted_ms == 0) {
		t->interrupted_ms = now;
		if (sba_process_signal(t->process, d->interrupt ? d->interrupt : SIGINT, NULL) < 0)
			t->interrupted_ms = now - INTERRUPT_MS;
	}
	if (now - t->interrupted_ms >= INTERRUPT_MS || atomic_load(&t->killed))
		end_process(t, BY_CALLER);
	return t->interrupted_ms + INTERRUPT_MS;
}

/* Some CLIs ask on for minutes, or for ever, when the key or the budget is refused. */
static bool asks_in_vain(const struct sba_turn *t, int64_t now)
{
	struct sba_relay_stats stats;
	if (!t->agent->relay)
		return false;
	sba_relay_stats_get(t->agent->relay, &stats);
	return stats.in_vain_ms && now - stats.in_vain_ms >= SBA_IN_VAIN_MS;
}

/* Ends what must be ended; returns how long the next wait may be. */
static int64_t watch(struct sba_turn *t)
{
	int64_t now = sba_now_ms(), next = SBA_NEVER;
	if (atomic_load(&t->canceled) && t->ended_by == BY_ITSELF)
		next = interrupt(t, now);
	if (sba_stream_stuck(t->stream))
		end_process(t, BY_LOOP);
	else if (asks_in_vain(t, now))
		end_process(t, BY_REFUSAL);
	if (next != SBA_NEVER)
		return t->ended_by != BY_ITSELF ? -1 : next > now ? next - now : 0;
	if (t->done_ms) {
		next = t->done_ms + DONE_GRACE_MS;
		if (now >= next)
			end_process(t, BY_GRACE);
	} else if (t->idle_ms != SBA_NEVER) {
		if (sba_turn_is_idle(t, now, &next))
			end_process(t, BY_IDLENESS);
	}
	if (t->ended_by != BY_ITSELF || next == SBA_NEVER)
		return -1;
	return next > now ? next - now : 0;
}

static void look_at_losses(struct sba_turn *t)
{
	int64_t oom_kills, pids_refused;
	sba_process_losses(t->process, &oom_kills, &pids_refused);
	sba_turn_tell_losses(t, oom_kills, pids_refused);
}

static void keep_stderr(struct sba_turn *t, const char *data, size_t len)
{
	if (len > SBA_STDERR_KEEP) {
		data += len - SBA_STDERR_KEEP;
		len = SBA_STDERR_KEEP;
	}
	if (t->stderr_tail.len + len > SBA_STDERR_KEEP)
		sba_buf_drop(&t->stderr_tail, t->stderr_tail.len + len - SBA_STDERR_KEEP);
	sba_buf_put(&t->stderr_tail, data, len);
}

/* Until there is output, or a notice, or a wish to end it. Now and then the
 * library must be asked for output, which is when it looks after the sandbox. */
static void wait_output(struct sba_turn *t, int64_t wait_ms)
{
	int64_t late_ms = sba_audit_turn_flush_late(t->audit);
	if (wait_ms < 0 || wait_ms > LOOK_MS)
		wait_ms = LOOK_MS;
	if (late_ms >= 0 && late_ms < wait_ms)
		wait_ms = late_ms;
	struct pollfd p[] = {
		{ sba_process_fd(t->process), sba_process_events(t->process), 0 },
		{ t->notices.fd, POLLIN, 0 },
	};
	poll(p, SBA_ARRAY_LEN(p), (int)wait_ms);
	if (p[1].revents)
		sba_notices_seen(&t->notices);
}

enum { WAIT_AGAIN = 1, WAIT_OVER = 0 };

/* Waits for bytes: WAIT_AGAIN, WAIT_OVER at the end of the process's output,
 * SBA_ETIMEOUT when the caller's time is over. */
static int wait_bytes(struct sba_turn *t, int64_t deadline_ms, struct sba_error *err)
{
	struct sba_error why = { 0 };
	if (send_prompt(t, &why) < 0)
		sba_log("agent", "prompt: %s", why.text);
	int64_t limit = watch(t);
	int64_t left = deadline_ms == SBA_NEVER ? -1 : deadline_ms - sba_now_ms();
	if (deadline_ms != SBA_NEVER && left < 0)
		left = 0;
	bool callers = left >= 0 && (limit < 0 || left < limit);
	enum sba_output which;
	const char *data;
	ssize_t n = sba_process_read(t->process, 0, &which, &data, &why);
	look_at_losses(t);
	if (n == SBA_ETIMEOUT && callers && left == 0) {
		sba_audit_turn_flush(t->audit);
		return sba_fail(err, SBA_ETIMEOUT, "no event in time");
	}
	if (n == SBA_ETIMEOUT) {
		wait_output(t, callers ? left : limit);
		return WAIT_AGAIN;
	}
	if (n <= 0)
		return WAIT_OVER;
	t->last_use_ms = sba_now_ms();
	if (which == SBA_STDERR) {
		keep_stderr(t, data, (size_t)n);
	} else {
		t->piece = data;
		t->piece_len = (size_t)n;
	}
	return WAIT_AGAIN;
}

static void on_over(struct sba_turn *t)
{
	const char *line;
	size_t len;
	if (sba_lines_rest(&t->lines, &line, &len))
		feed_line(t, line, len);
	sba_turn_finish(t);
}

/* ---- for the caller ---- */

int sba_turn_begin(struct sba_agent *a, const struct sba_turn_options *o, struct sba_turn **ret,
		   struct sba_error *err)
{
	if (!o || !o->prompt || (!o->prompt_len && !*o->prompt))
		return sba_fail(err, SBA_EINVAL, "the prompt is empty");
	if (a->no_turns)
		return sba_fail(err, SBA_EINVAL, "the agent was opened for no turns");
	struct sba_turn *t = calloc(1, sizeof(*t));
	if (!t)
		return sba_fail_nomem(err);
	t->agent = a;
	sba_lines_init(&t->lines, SBA_LINE_MAX);
	sba_buf_init(&t->stderr_tail, 2 * SBA_STDERR_KEEP);
	int rc = sba_turn_start(t, o, err);
	if (rc < 0) {
		sba_turn_audit_failed(t, err);
		sba_turn_free(t);
		return rc == SBA_EBUSY ? rc
				       : sba_wrap(err, rc, "%s: begin a turn", a->driver->name);
	}
	*ret = t;
	return 0;
}

int sba_turn_next(struct sba_turn *t, int64_t wait_ms, const struct sba_event **ret,
		  struct sba_error *err)
{
	int64_t deadline = wait_ms < 0 ? SBA_NEVER : sba_until_in(wait_ms).deadline_ms;
	for (;;) {
		sba_notices_relay(&t->notices, t->agent, t->last_use_ms);
		if (sba_notices_take(&t->notices, &t->events) < 0)
			sba_log("agent", "a notice was lost");
		sba_turn_audit_look(t);
		const struct sba_event *event = sba_event_queue_take(&t->events);
		if (event) {
			*ret = event;
			return 1;
		}
		if (next_from_piece(t))
			continue;
		if (t->over)
			return 0;
		int rc = wait_bytes(t, deadline, err);
		if (rc < 0)
			return rc;
		if (rc == WAIT_OVER)
			on_over(t);
	}
}

void sba_turn_result(struct sba_turn *t, struct sba_turn_result *ret)
{
	const struct sba_event *event;
	while (!t->over && sba_turn_next(t, -1, &event, NULL) > 0)
		;
	*ret = t->result;
	if (!ret->session)
		ret->session = "";
	if (!ret->text)
		ret->text = "";
	ret->audit = sba_audit_turn_path(t->audit);
}

void sba_turn_cancel(struct sba_turn *t)
{
	atomic_store(&t->canceled, true);
	sba_event_fire(t->notices.fd);
}

void sba_turn_kill(struct sba_turn *t)
{
	atomic_store(&t->killed, true);
	sba_turn_cancel(t);
}

void sba_turn_free(struct sba_turn *t)
{
	if (!t)
		return;
	sba_process_free(t->process);
	sba_turn_clear_up(t);
	if (t->model_open)
		sba_sandbox_unforward(t->agent->sandbox, t->agent->host_port);
	sba_stream_free(t->stream);
	sba_notices_close(&t->notices);
	sba_event_queue_fini(&t->events);
	sba_lines_fini(&t->lines);
	sba_buf_fini(&t->stderr_tail);
	sba_audit_turn_free(t->audit);
	sba_watch_free(t->watch);
	free(t->prompt);
	free(t->answer);
	free(t);
}
