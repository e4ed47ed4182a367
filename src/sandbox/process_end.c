/* SPDX-License-Identifier: MIT */
/* How a command ended: by the guest's records, or by asking what became of it. */
#include "sandbox/process.h"

#include <string.h>

enum {
	EXPLAIN_MS = 5000,   /* for the engine to know that an exec has ended */
	DEATH_LAG_MS = 1500, /* for the engine to notice a death */
	DEATH_POLL_MS = 50,  /* between two looks for it */
};

static int fail_with(struct sba_guest_process *p, const struct sba_error *why)
{
	p->over = true;
	p->failure = *why;
	return why->code;
}

static void set_exit(struct sba_guest_process *p, const struct sba_record *r)
{
	static const struct {
		char kind;
		enum sba_exit_kind exit;
	} kinds[] = {
		{ SBA_END_EXIT, SBA_EXITED },        { SBA_END_SIGNAL, SBA_SIGNALED },
		{ SBA_END_DEADLINE, SBA_TIMED_OUT }, { SBA_END_CANCELED, SBA_WAS_CANCELED },
		{ SBA_END_NOTFOUND, SBA_NOT_FOUND }, { SBA_END_CANNOT, SBA_CANNOT_RUN },
		{ SBA_END_CWD, SBA_NO_WORKDIR },     { SBA_END_FORK, SBA_NO_PROCESS },
		{ SBA_END_OOM, SBA_OUT_OF_MEMORY },  { SBA_END_LOCKED, SBA_LOCKED },
	};
	for (size_t i = 0; i < SBA_ARRAY_LEN(kinds); i++) {
		if (kinds[i].kind == r->kind) {
			p->exit.kind = kinds[i].exit;
			p->exit.number = (int)r->number;
			return;
		}
	}
	if (r->kind == SBA_END_SURVIVORS)
		sba_fail(&p->failure, SBA_EBROKEN,
			 "command: %lld of its processes could not be ended: the sandbox ends with "
			 "them",
			 (long long)r->number);
	else
		sba_fail(&p->failure, SBA_EPROTO, "command: the guest did not understand us ('%c')",
			 r->kind);
}

void sba_process_take_record(struct sba_guest_process *p, int stream, const struct sba_record *r)
{
	if (r->kind == SBA_RECORD_BEGUN) {
		p->begun = true;
		return;
	}
	if (r->kind == SBA_RECORD_HELD) {
		p->held = true;
		return;
	}
	if (r->kind == SBA_NOTE_OOM_KILLS || r->kind == SBA_NOTE_PIDS_REFUSED) {
		*(r->kind == SBA_NOTE_OOM_KILLS ? &p->exit.oom_kills : &p->exit.pids_refused) =
			r->number;
		return;
	}
	p->stream_ended[stream] = true;
	set_exit(p, r); /* the same on both */
	p->over = p->stream_ended[0] && p->stream_ended[1];
}

/* A sandbox's death ends its streams some moments before the engine knows of it. */
static int check_death(struct sba_guest_process *p, struct sba_error *err)
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

/* Its stream is gone, and the engine says that it runs. */
static int lose(struct sba_guest_process *p, struct sba_error *err)
{
	p->lost = true;
	return sba_fail(err, SBA_ELOST,
			"command: the engine ended its stream early, and it still runs");
}

static void ended_unseen(struct sba_error *ret)
{
	sba_fail(ret, SBA_ELOST,
		 "command: the engine ended its stream early; how it ended is not known");
}

int sba_process_watch(struct sba_guest_process *p, int64_t deadline_ms, struct sba_error *err)
{
	int64_t limit = deadline_ms < p->give_up_ms ? deadline_ms : p->give_up_ms;
	const struct sba_until until = { limit, p->watch_fd };
	struct sba_error why = p->failure;
	int code;
	if (why.code == 0) {
		int rc = p->link->ops->explain(p->link, until, &code, &why);
		if (rc == SBA_ETIMEOUT && limit == deadline_ms)
			return sba_fail(err, SBA_ETIMEOUT, "command: it still runs");
		if (rc == 0)
			ended_unseen(&why);
		else if (rc == SBA_ETIMEOUT)
			sba_fail(&why, SBA_ELOST,
				 "command: its stream is lost, and it runs past its deadline");
		if (rc == SBA_ETIMEOUT || rc == SBA_ECANCELED)
			sba_hint(&why, why.code, "sandbox-agent stop ends what runs in a sandbox");
	}
	if (err)
		*err = why;
	return fail_with(p, &why);
}

int sba_process_explain_loss(struct sba_guest_process *p, const struct sba_error *lost,
			     struct sba_error *err)
{
	struct sba_error why = { 0 };
	const char *text = p->preamble.data ? p->preamble.data : "";
	size_t len = strcspn(text, "\r\n");
	bool channel = p->link->ops->watched;
	int code = 0;
	int rc = sba_sandbox_check_alive(p->sandbox, "command", &why);
	if (rc == 0)
		rc = p->link->ops->explain(p->link, sba_engine_until_regardless(EXPLAIN_MS), &code,
					   &why);
	if (rc == SBA_ETIMEOUT)
		return lose(p, err);
	if (rc == 0 && !p->begun && len > 0) {
		explain_preamble(text, len, &why);
	} else if (rc == 0 && lost->code == SBA_ELIMIT && channel) {
		p->over = true;
		p->exit = (struct sba_exit){ .kind = SBA_NO_PROCESS };
		return 0;
	} else if (rc == 0 && lost->code && channel) {
		/* The guest ends what the channel carried: nothing runs on. */
		if (check_death(p, &why) == 0) {
			why = *lost;
			sba_wrap(&why, why.code, "command");
		}
	} else if (rc == 0 && (channel || code == 137)) {
		if (check_death(p, &why) == 0)
			sba_fail(&why, SBA_EBROKEN,
				 "command: its supervisor was killed inside the sandbox");
	} else if (rc == 0) {
		ended_unseen(&why);
	}
	if (err)
		*err = why;
	return fail_with(p, &why);
}

int sba_process_check_overdue(struct sba_guest_process *p, struct sba_error *err)
{
	struct sba_error why;
	if (sba_now_ms() <= p->give_up_ms)
		return 0;
	sba_fail(&why, SBA_EBROKEN, "command: no end of it from the guest after its deadline");
	if (err)
		*err = why;
	return fail_with(p, &why);
}

int sba_process_still_there(struct sba_guest_process *p, struct sba_error *err)
{
	struct sba_error why = { 0 };
	if (p->link->ops->watched || sba_now_ms() - p->looked_ms < SBA_PROCESS_LOOK_MS)
		return 0;
	p->looked_ms = sba_now_ms();
	if (sba_sandbox_check_alive(p->sandbox, "command", &why) == 0)
		return 0;
	if (err)
		*err = why;
	return fail_with(p, &why);
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
	case SBA_LOCKED:
		return 126;
	case SBA_DETACHED:
		break;
	}
	return 0;
}
