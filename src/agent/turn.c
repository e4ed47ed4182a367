/* SPDX-License-Identifier: MIT */
/*
 * A turn: the CLI's process, its lines through the driver, events to the
 * caller, one verdict at the end. Nothing that the CLI prints can fail it;
 * how the process ended and what was said decide together.
 */
#include "agent/private.h"

#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"

enum {
	TURN_MS = 30 * 60 * 1000,
	IDLE_MS = 10 * 60 * 1000,
	/* Some CLIs do not exit after their last word. */
	DONE_GRACE_MS = 10 * 1000,
	/* For a CLI to end its turn by its own means. */
	INTERRUPT_MS = 5 * 1000,
	LOOK_MS = 1000,
};

/* Why we ended the CLI ourselves; none if it ended by itself. */
enum ended_by { BY_ITSELF, BY_CALLER, BY_IDLENESS, BY_GRACE, BY_LOOP };

struct sba_turn {
	struct sba_agent *agent;
	struct sba_process *process;
	struct sba_lock *lock; /* NULL in a sandbox that ends with the turn */
	bool aside;
	char scratch[SBA_SCRATCH_MAX]; /* of a turn aside; "": none */
	int64_t interrupted_ms;        /* when the CLI was asked to stop; 0: it was not */
	uint16_t model_port;           /* inside; 0: none yet */
	char new_session[37];
	struct sba_stream *stream;
	struct sba_event_queue events;
	struct sba_notices notices;
	struct sba_lines lines;
	struct sba_buf stderr_tail;
	const char *piece; /* of stdout, not yet cut into lines; the process lends it */
	size_t piece_len;
	char *prompt;
	size_t prompt_len, prompt_sent;
	bool stdin_closed;
	atomic_bool canceled;
	enum ended_by ended_by;
	int64_t began_ms, last_byte_ms, done_ms;
	int64_t idle_ms; /* SBA_NEVER: no limit */
	bool over;
	bool session_kept;
	int64_t oom_kills, pids_refused; /* that the caller has been told of */
	int state_rc;
	struct sba_error state_error;
	struct sba_turn_result result;
	char *answer; /* result.text, where the key had to be looked for */
};

/* ---- beginning ---- */

/* The words of the sandbox's program, lent from the agent; NULL: it has none. */
static const char **program_of(const struct sba_agent *a)
{
	size_t n = json_array_size(a->program);
	const char **v = n ? calloc(n + 1, sizeof(*v)) : NULL;
	for (size_t i = 0; v && i < n; i++) {
		v[i] = json_string_value(json_array_get(a->program, i));
		if (!v[i])
			break; /* no label of ours */
	}
	return v;
}

static int start_process(struct sba_turn *t, const struct sba_turn_options *o,
			 struct sba_error *err)
{
	struct sba_agent *a = t->agent;
	char base_url[64];
	int rc = a->host_port ? sba_sandbox_forward(a->sandbox, a->host_port, &t->model_port, err)
			      : 0;
	if (rc < 0)
		return rc;
	/* Never "localhost": it may mean ::1, which a sealed sandbox has not. */
	snprintf(base_url, sizeof(base_url), "http://127.0.0.1:%u", (unsigned)t->model_port);
	SBA_FREE const char **program = program_of(a);
	const struct sba_turn_spec spec = {
		.base_url = a->host_port ? base_url : NULL,
		.token = a->token,
		.model = a->model_name,
		.session = *a->session ? a->session : NULL,
		.new_session = t->new_session,
		.aside = t->aside,
		.scratch = *t->scratch ? t->scratch : NULL,
		.program = program,
	};
	struct sba_command command = { 0 };
	rc = sba_command_make(a->driver, &spec, &command, err);
	if (rc == 0) {
		const struct sba_exec_options exec = {
			.argv = (const char *const *)command.argv.v,
			.env = (const char *const *)command.env.v,
			.workdir = o->workdir ? o->workdir : SBA_AGENT_WORKDIR,
			.timeout_ms = o->timeout_ms < 0 ? 0
				      : o->timeout_ms   ? o->timeout_ms
							: TURN_MS,
			.has_stdin = true,
		};
		rc = sba_sandbox_exec(a->sandbox, &exec, &t->process, err);
	}
	sba_command_fini(&command);
	return rc;
}

static int start_stream(struct sba_turn *t, struct sba_error *err)
{
	const struct sba_agent *a = t->agent;
	const struct sba_stream_options options = {
		.driver = a->driver,
		.resumes = *a->session ? a->session : NULL,
		.new_session = t->new_session,
		.kept = a->kept,
		.fn = sba_event_queue_put,
		.user = &t->events,
	};
	return sba_stream_new(&options, &t->stream, err);
}

/* What the CLI keeps stays as it is: by its own means, or with a copy to work on. */
static int step_aside(struct sba_turn *t, struct sba_error *err)
{
	struct sba_agent *a = t->agent;
	const struct sba_store *store = a->driver->store;
	struct sba_inside in;
	t->aside = true;
	if (!store)
		return sba_fail(err, SBA_EUNSUPPORTED, "%s has no way to leave no trace",
				a->driver->name);
	if (!store->aside)
		return 0;
	int rc = sba_agent_inside(a, &in, err);
	if (rc == 0)
		rc = sba_agent_scratch(&in, t->scratch, err);
	if (rc == 0 && *a->session)
		rc = store->aside(store, &in, a->session, t->scratch, err);
	return rc;
}

static int begin(struct sba_turn *t, const struct sba_turn_options *o, struct sba_error *err)
{
	t->prompt_len = o->prompt_len ? o->prompt_len : strlen(o->prompt);
	t->prompt = malloc(t->prompt_len);
	if (!t->prompt)
		return sba_fail_nomem(err);
	memcpy(t->prompt, o->prompt, t->prompt_len);
	t->idle_ms = o->idle_timeout_ms < 0 ? SBA_NEVER
		     : o->idle_timeout_ms   ? o->idle_timeout_ms
					    : IDLE_MS;
	if (t->agent->relay) {
		t->events.secret = sba_relay_secret(t->agent->relay);
		sba_relay_new_turn(t->agent->relay);
	}
	int rc = t->agent->one_turn ? 0 : sba_agent_lock(t->agent, o->wait_ms, &t->lock, err);
	if (rc == 0)
		rc = sba_agent_load_state(t->agent, err);
	if (rc == 0 && !o->workdir)
		rc = sba_agent_workdir(t->agent, err);
	if (rc == 0 && o->aside)
		rc = step_aside(t, err);
	if (rc == 0)
		rc = sba_agent_place_files(t->agent, err);
	if (rc == 0)
		rc = sba_random_uuid(t->new_session, err);
	if (rc == 0)
		rc = start_stream(t, err);
	if (rc == 0)
		rc = sba_notices_open(&t->notices, t->agent->sandbox, err);
	if (rc == 0)
		rc = start_process(t, o, err);
	t->began_ms = t->last_byte_ms = sba_now_ms();
	return rc;
}

int sba_turn_begin(struct sba_agent *a, const struct sba_turn_options *o, struct sba_turn **ret,
		   struct sba_error *err)
{
	if (!o || !o->prompt || (!o->prompt_len && !*o->prompt))
		return sba_fail(err, SBA_EINVAL, "the prompt is empty");
	struct sba_turn *t = calloc(1, sizeof(*t));
	if (!t)
		return sba_fail_nomem(err);
	t->agent = a;
	sba_lines_init(&t->lines, SBA_LINE_MAX);
	sba_buf_init(&t->stderr_tail, 2 * SBA_STDERR_KEEP);
	int rc = begin(t, o, err);
	if (rc < 0) {
		sba_turn_free(t);
		return sba_wrap(err, rc, "%s: begin a turn", a->driver->name);
	}
	*ret = t;
	return 0;
}

/* ---- what the sandbox's limits take ---- */

static void give_notice(struct sba_turn *t, int64_t count, int64_t *told, const char *text)
{
	const struct sba_event event = {
		.kind = SBA_EVENT_NOTICE,
		.time_ms = sba_unix_ms(),
		.text = text,
	};
	if (count <= *told)
		return;
	*told = count;
	if (sba_event_queue_put(&t->events, &event) != 0)
		sba_log("agent", "an event was lost: out of memory");
}

/* A CLI goes on when the command that it ran is killed, and may not know why. */
static void tell_losses(struct sba_turn *t, int64_t oom_kills, int64_t pids_refused)
{
	give_notice(t, oom_kills, &t->oom_kills,
		    "something in the sandbox was killed: out of memory");
	give_notice(t, pids_refused, &t->pids_refused,
		    "something in the sandbox could not start: out of processes");
}

static void look_at_losses(struct sba_turn *t)
{
	int64_t oom_kills, pids_refused;
	sba_process_losses(t->process, &oom_kills, &pids_refused);
	tell_losses(t, oom_kills, pids_refused);
}

/* ---- the end ---- */

static void set_error(struct sba_turn *t, enum sba_verdict verdict, int code, const char *text)
{
	t->result.verdict = verdict;
	sba_fail(&t->result.error, code, "%s: %s", t->agent->driver->name, text);
}

static void lost(struct sba_turn *t, const struct sba_error *why)
{
	t->result.verdict = why->code == SBA_EBROKEN     ? SBA_VERDICT_SANDBOX_BROKEN
			    : why->code == SBA_ENOTFOUND ? SBA_VERDICT_SANDBOX_BROKEN
							 : SBA_VERDICT_ENGINE_LOST;
	t->result.error = *why;
}

static void missing_cli(struct sba_turn *t)
{
	const struct sba_driver *d = t->agent->driver;
	const char *image = sba_sandbox_info(t->agent->sandbox)->image;
	const char *binary =
		d->binary ? d->binary : json_string_value(json_array_get(t->agent->program, 0));
	t->result.verdict = SBA_VERDICT_AGENT_FAILED;
	sba_fail(&t->result.error, SBA_ENOCLI, "%s: there is no '%s' in image '%s'", d->name,
		 binary ? binary : d->name, image);
	if (d->install)
		sba_hint(&t->result.error, 0, "%s", d->install);
}

/* What the stream and the exit status say together. */
static void take_outcome(struct sba_turn *t, int status)
{
	struct sba_outcome o = { 0 };
	const char *tail = t->stderr_tail.data ? t->stderr_tail.data : "";
	sba_stream_finish(t->stream, status, tail, &o);
	t->result.verdict = o.verdict;
	t->result.session = o.session ? o.session : "";
	t->result.text = o.text ? o.text : "";
	t->result.http_status = o.http_status;
	t->result.retryable = o.retryable;
	t->result.usage = o.usage;
	t->result.tools = o.tools;
	t->result.unknown_lines = o.unknown_lines + t->lines.dropped;
	t->result.exit_status = status;
	if (o.verdict == SBA_VERDICT_OK)
		return;
	set_error(t, o.verdict, sba_verdict_code(o.verdict), o.error ? o.error : "it failed");
	t->result.error.http_status = o.http_status;
}

/* A budget that ran out is the reason, whatever the CLI made of the refusal. */
static void judge_budget(struct sba_turn *t)
{
	struct sba_relay_stats stats;
	if (!t->agent->relay || t->result.verdict == SBA_VERDICT_OK || t->ended_by == BY_CALLER)
		return;
	sba_relay_stats_get(t->agent->relay, &stats);
	if (stats.tokens_spent)
		set_error(t, SBA_VERDICT_BUDGET, SBA_EBUDGET, "its budget of tokens is spent");
	else if (stats.requests_spent)
		set_error(t, SBA_VERDICT_BUDGET, SBA_EBUDGET,
			  "its budget of requests for this turn is spent");
}

static void judge_ours(struct sba_turn *t)
{
	char span[32];
	switch (t->ended_by) {
	case BY_CALLER:
		set_error(t, SBA_VERDICT_CANCELED, SBA_ECANCELED, "interrupted");
		break;
	case BY_IDLENESS:
		sba_format_duration(t->idle_ms, span, sizeof(span));
		t->result.verdict = SBA_VERDICT_IDLE_TIMEOUT;
		sba_fail(&t->result.error, SBA_ETIMEOUT, "%s: nothing came from it for %s",
			 t->agent->driver->name, span);
		break;
	case BY_LOOP:
		set_error(t, SBA_VERDICT_MODEL_ERROR, SBA_EMODEL,
			  "it asked the model again and again; every answer broke off");
		break;
	case BY_GRACE:
	case BY_ITSELF:
		break;
	}
}

static void judge_exit(struct sba_turn *t, const struct sba_exit *e)
{
	/* A CLI that we ended after its last word has done its work. */
	bool by_grace = t->ended_by == BY_GRACE && e->kind == SBA_WAS_CANCELED;
	take_outcome(t, by_grace ? 0 : sba_exit_status(e));
	switch (e->kind) {
	case SBA_NOT_FOUND:
		missing_cli(t);
		break;
	case SBA_TIMED_OUT:
		set_error(t, SBA_VERDICT_TIMEOUT, SBA_ETIMEOUT, "its time was over");
		break;
	case SBA_OUT_OF_MEMORY:
		set_error(t, SBA_VERDICT_SANDBOX_BROKEN, SBA_EBROKEN,
			  "the sandbox ran out of memory");
		break;
	case SBA_NO_PROCESS:
		set_error(t, SBA_VERDICT_SANDBOX_BROKEN, SBA_EBROKEN,
			  "the sandbox's process limit is full");
		break;
	case SBA_NO_WORKDIR:
		set_error(t, SBA_VERDICT_AGENT_FAILED, SBA_ENOTFOUND,
			  "its working directory is not there");
		break;
	case SBA_WAS_CANCELED:
		if (t->ended_by == BY_ITSELF)
			set_error(t, SBA_VERDICT_CANCELED, SBA_ECANCELED, "ended from outside");
		break;
	case SBA_EXITED:
	case SBA_SIGNALED:
	case SBA_CANNOT_RUN:
	case SBA_DETACHED:
	case SBA_LOCKED:
		break;
	}
	judge_budget(t);
	judge_ours(t);
}

/* As soon as it is known, not at the end: whatever interrupts the turn, the next
 * one finds its conversation. */
static void keep_session(struct sba_turn *t)
{
	const char *session = sba_stream_session(t->stream);
	if (!session || t->session_kept || t->aside)
		return;
	t->session_kept = true;
	t->state_rc = sba_agent_save_state(t->agent, session, &t->state_error);
	if (t->state_rc < 0)
		sba_log("agent", "%s", t->state_error.text);
}

static void keep_state(struct sba_turn *t)
{
	if (t->result.verdict == SBA_VERDICT_SANDBOX_BROKEN ||
	    t->result.verdict == SBA_VERDICT_ENGINE_LOST || t->aside)
		return;
	keep_session(t);
	if (t->state_rc == 0)
		t->state_rc =
			sba_agent_save_kept(t->agent, sba_stream_kept(t->stream), &t->state_error);
}

/* A text that was cut may end within the key. */
static void hide_in(const struct sba_redact *secret, char *text, size_t size)
{
	size_t len = strlen(text);
	struct sba_redact_scan scan = { .last = len + 1 < size };
	size_t safe = sba_redact(secret, text, len, &scan);
	memset(text + safe, '*', len - safe);
}

static void hide_key(struct sba_turn *t)
{
	const struct sba_redact *secret = t->events.secret;
	struct sba_redact_scan scan = { .last = true };
	if (!secret)
		return;
	hide_in(secret, t->result.error.text, sizeof(t->result.error.text));
	hide_in(secret, t->result.error.hint, sizeof(t->result.error.hint));
	if (!t->result.text)
		return;
	t->answer = strdup(t->result.text);
	if (t->answer)
		sba_redact(secret, t->answer, strlen(t->answer), &scan);
	t->result.text = t->answer ? t->answer : "";
}

static void clear_up(struct sba_turn *t)
{
	struct sba_inside in;
	if (*t->scratch && sba_agent_inside(t->agent, &in, NULL) == 0)
		sba_agent_scratch_drop(&in, t->scratch);
	t->scratch[0] = '\0';
	sba_lock_free(sba_move(&t->lock));
}

static void finish(struct sba_turn *t)
{
	struct sba_exit end;
	struct sba_error why = { 0 };
	/* The process may have ended before anybody looked at the wish. */
	if (atomic_load(&t->canceled) && t->ended_by == BY_ITSELF)
		t->ended_by = BY_CALLER;
	int rc = sba_process_wait(t->process, -1, &end, &why);
	t->over = true;
	if (rc == 0) {
		tell_losses(t, end.oom_kills, end.pids_refused);
		judge_exit(t, &end);
	} else {
		take_outcome(t, -1);
		lost(t, &why);
		judge_ours(t);
	}
	t->result.duration_ms = sba_now_ms() - t->began_ms;
	keep_state(t);
	clear_up(t);
	if (t->state_rc < 0 && t->result.verdict == SBA_VERDICT_OK) {
		t->result.verdict = SBA_VERDICT_SANDBOX_BROKEN;
		t->result.error = t->state_error;
	}
	hide_key(t);
}

/* ---- the middle ---- */

static void feed_line(struct sba_turn *t, const char *line, size_t len)
{
	/* The queue's only failure is memory, which the next event meets again. */
	if (sba_stream_line(t->stream, line, len) != 0)
		sba_log("agent", "an event was lost: out of memory");
	/* Some go on after what looked like the end: a compaction, a late message. */
	if (!sba_stream_done(t->stream))
		t->done_ms = 0;
	else if (!t->done_ms)
		t->done_ms = sba_now_ms();
	keep_session(t);
}

/* Cuts the piece under way into lines until one gives events. */
static bool next_from_piece(struct sba_turn *t)
{
	while (t->piece_len > 0 && sba_event_queue_empty(&t->events)) {
		const char *line;
		size_t line_len;
		size_t n = sba_lines_feed(&t->lines, t->piece, t->piece_len, &line, &line_len);
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
	if (now - t->interrupted_ms >= INTERRUPT_MS)
		end_process(t, BY_CALLER);
	return t->interrupted_ms + INTERRUPT_MS;
}

/* Ends what must be ended; returns how long the next wait may be. */
static int64_t watch(struct sba_turn *t)
{
	int64_t now = sba_now_ms(), next = SBA_NEVER;
	if (atomic_load(&t->canceled) && t->ended_by == BY_ITSELF)
		next = interrupt(t, now);
	if (sba_stream_stuck(t->stream))
		end_process(t, BY_LOOP);
	if (next != SBA_NEVER)
		return t->ended_by != BY_ITSELF ? -1 : next > now ? next - now : 0;
	if (t->done_ms) {
		next = t->done_ms + DONE_GRACE_MS;
		if (now >= next)
			end_process(t, BY_GRACE);
	} else if (t->idle_ms != SBA_NEVER) {
		next = t->last_byte_ms + t->idle_ms;
		if (now >= next)
			end_process(t, BY_IDLENESS);
	}
	if (t->ended_by != BY_ITSELF || next == SBA_NEVER)
		return -1;
	return next > now ? next - now : 0;
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
	struct pollfd p[] = {
		{ sba_process_fd(t->process), sba_process_events(t->process), 0 },
		{ t->notices.fd, POLLIN, 0 },
	};
	poll(p, SBA_ARRAY_LEN(p), wait_ms < 0 || wait_ms > LOOK_MS ? LOOK_MS : (int)wait_ms);
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
	if (n == SBA_ETIMEOUT && callers && left == 0)
		return sba_fail(err, SBA_ETIMEOUT, "no event in time");
	if (n == SBA_ETIMEOUT) {
		wait_output(t, callers ? left : limit);
		return WAIT_AGAIN;
	}
	if (n <= 0)
		return WAIT_OVER;
	t->last_byte_ms = sba_now_ms();
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
	finish(t);
}

int sba_turn_next(struct sba_turn *t, int64_t wait_ms, const struct sba_event **ret,
		  struct sba_error *err)
{
	int64_t deadline = wait_ms < 0 ? SBA_NEVER : sba_until_in(wait_ms).deadline_ms;
	for (;;) {
		sba_notices_budget(&t->notices, t->agent);
		if (sba_notices_take(&t->notices, &t->events) < 0)
			sba_log("agent", "a notice was lost");
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
}

void sba_turn_cancel(struct sba_turn *t)
{
	atomic_store(&t->canceled, true);
	sba_event_fire(t->notices.fd);
}

void sba_turn_free(struct sba_turn *t)
{
	if (!t)
		return;
	sba_process_free(t->process);
	clear_up(t);
	if (t->model_port)
		sba_sandbox_unforward(t->agent->sandbox, t->agent->host_port);
	sba_stream_free(t->stream);
	sba_notices_close(&t->notices);
	sba_event_queue_fini(&t->events);
	sba_lines_fini(&t->lines);
	sba_buf_fini(&t->stderr_tail);
	free(t->prompt);
	free(t->answer);
	free(t);
}
