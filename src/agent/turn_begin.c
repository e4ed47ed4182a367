/* SPDX-License-Identifier: MIT */
/* The beginning of a turn: the lock, what is known of the session, the driver's
 * command, and the process that it becomes. */
#include "agent/turn.h"

#include <stdlib.h>
#include <string.h>

enum {
	TURN_MS = 30 * 60 * 1000,
	IDLE_MS = 10 * 60 * 1000,
};

static int start_process(struct sba_turn *t, const struct sba_turn_options *o,
			 struct sba_error *err)
{
	struct sba_agent *a = t->agent;
	struct sba_command command = { 0 };
	const struct sba_turn_spec spec = {
		.session = *a->session ? a->session : NULL,
		.new_session = t->new_session,
		.aside = t->aside,
		.scratch = *t->scratch ? t->scratch : NULL,
	};
	int rc = sba_agent_command(a, &spec, &t->model_open, &command, err);
	if (rc == 0) {
		const struct sba_exec_options exec = {
			.argv = (const char *const *)command.argv.v,
			.env = (const char *const *)command.env.v,
			.workdir = o->workdir ? o->workdir : sba_sandbox_workdir(a->sandbox),
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
	struct sba_memory m = { 0 };
	int rc = sba_agent_recall(a, a->session, &m, err);
	if (rc < 0)
		return rc;
	const struct sba_stream_options options = {
		.driver = a->driver,
		.resumes = *a->session ? a->session : NULL,
		.new_session = t->new_session,
		.kept = m.kept,
		.mcp = sba_sandbox_info(a->sandbox)->mcp,
		.fn = sba_event_queue_put,
		.user = &t->events,
	};
	rc = sba_stream_new(&options, &t->stream, err);
	free(m.kept);
	return rc;
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

int sba_turn_start(struct sba_turn *t, const struct sba_turn_options *o, struct sba_error *err)
{
	t->prompt_len = o->prompt_len ? o->prompt_len : strlen(o->prompt);
	t->prompt = malloc(t->prompt_len);
	if (!t->prompt)
		return sba_fail_nomem(err);
	memcpy(t->prompt, o->prompt, t->prompt_len);
	t->idle_ms = o->idle_timeout_ms < 0 ? SBA_NEVER
		     : o->idle_timeout_ms   ? o->idle_timeout_ms
					    : IDLE_MS;
	t->events.secrets = &t->agent->secrets;
	if (t->agent->relay)
		sba_relay_new_turn(t->agent->relay);
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
	if (rc == 0) {
		sba_turn_audit_begin(t);
		sba_turn_changes_begin(t);
		rc = start_process(t, o, err);
	}
	if (rc == 0 && !t->agent->driver->store)
		sba_turn_keep_early(t);
	t->began_ms = t->last_use_ms = sba_now_ms();
	return rc;
}
