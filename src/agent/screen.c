/* SPDX-License-Identifier: MIT */
/*
 * The CLI's own screen instead of a turn: the same command without a prompt, on a
 * terminal of the sandbox's. What happens on it is between the user and the CLI.
 */
#include "agent/private.h"

#include <stdlib.h>
#include <string.h>

enum { SETTINGS_MAX = 4 * SBA_MIB };

/* What is not there, or no object, is begun anew. */
static json_t *read_settings(const struct sba_inside *in, const char *path)
{
	SBA_BUF struct sba_buf text = SBA_BUF_INIT(SETTINGS_MAX);
	json_t *now = NULL;
	if (in->read(in, path, SETTINGS_MAX, &text, NULL) == 0 &&
	    sba_json_parse(text.data ? text.data : "", text.len, path, &now, NULL) == 0 &&
	    json_is_object(now))
		return now;
	json_decref(now);
	return json_object();
}

/* Questions that a CLI asks everybody at its first start are answered beforehand. */
static int settle_in(struct sba_agent *a, struct sba_error *err)
{
	const struct sba_driver_file *f = a->driver->screen_settings;
	SBA_JSON json_t *now = NULL, *ours = NULL;
	SBA_FREE char *path = NULL, *merged = NULL;
	struct sba_inside in;
	if (!f)
		return 0;
	int rc = sba_agent_inside(a, &in, err);
	if (rc == 0)
		rc = sba_json_parse(f->content, strlen(f->content), f->path, &ours, err);
	if (rc < 0)
		return rc;
	if (asprintf(&path, "%s/%s", in.home, f->path) < 0)
		path = NULL;
	now = path ? read_settings(&in, path) : NULL;
	if (!now || json_object_update_recursive(now, ours) || !(merged = sba_json_dump(now)))
		return sba_fail_nomem(err);
	return in.write(&in, path, merged, strlen(merged), f->mode, err);
}

static int start(struct sba_agent *a, const struct sba_screen_options *o, struct sba_process **ret,
		 struct sba_error *err)
{
	char id[37];
	struct sba_command c = { 0 };
	int rc = sba_random_uuid(id, err);
	if (rc < 0)
		return rc;
	const struct sba_turn_spec wish = { .session = *a->session ? a->session : NULL,
					    .new_session = id,
					    .screen = true };
	rc = sba_agent_command(a, &wish, &a->screen_model, &c, err);
	for (const char *const *e = o->env; rc == 0 && e && *e; e++)
		rc = sba_strv_add(&c.env, *e, err);
	const struct sba_exec_options exec = {
		.argv = (const char *const *)c.argv.v,
		.env = (const char *const *)c.env.v,
		.workdir = sba_sandbox_workdir(a->sandbox),
		.has_stdin = true,
		.tty = true,
		.rows = o->rows,
		.columns = o->columns,
	};
	if (rc == 0)
		rc = sba_sandbox_exec(a->sandbox, &exec, ret, err);
	sba_command_fini(&c);
	return rc;
}

int sba_agent_screen_open(struct sba_agent *a, const struct sba_screen_options *o,
			  struct sba_process **ret, struct sba_error *err)
{
	int rc = a->no_turns ? sba_fail(err, SBA_EINVAL, "the agent was opened for no turns") : 0;
	if (rc == 0 && !a->driver->has_screen)
		rc = sba_hint(err,
			      sba_fail(err, SBA_EUNSUPPORTED, "%s has no screen of its own",
				       a->driver->name),
			      "give it a prompt");
	if (rc == 0)
		rc = a->one_turn || a->screen_lock
			     ? 0
			     : sba_agent_lock(a, o->wait_ms, &a->screen_lock, err);
	if (rc == 0)
		rc = sba_agent_load_state(a, err);
	if (rc == 0)
		rc = sba_agent_workdir(a, err);
	if (rc == 0)
		rc = sba_agent_place_files(a, err);
	if (rc == 0)
		rc = settle_in(a, err);
	if (rc == 0)
		rc = start(a, o, ret, err);
	if (rc == 0)
		sba_agent_record(a, "screen", json_pack("{s:s}", "session", a->session));
	else
		sba_agent_screen_close(a);
	return rc < 0 ? sba_wrap(err, rc, "%s: its screen", a->driver->name) : 0;
}

/* Where there was no main line yet, the conversation on the screen is it. */
static void keep_session(struct sba_agent *a)
{
	const struct sba_store *store = a->driver->store;
	struct sba_kept_list list = { 0 };
	struct sba_error why = { 0 };
	struct sba_inside in;
	if (a->one_turn || !a->state_known || *a->session || !store)
		return;
	int rc = sba_agent_inside(a, &in, &why);
	if (rc == 0)
		rc = store->list(store, &in, &list, &why);
	if (rc == 0 && list.n > 0)
		rc = sba_agent_save_state(a, list.v[0].id, NULL, &why);
	if (rc < 0)
		sba_log("agent", "the screen's session: %s", why.text);
	sba_kept_list_fini(&list);
}

void sba_agent_screen_close(struct sba_agent *a)
{
	if (a->screen_model)
		keep_session(a);
	if (a->screen_model)
		sba_sandbox_unforward(a->sandbox, a->host_port);
	a->screen_model = false;
	sba_lock_free(a->screen_lock);
	a->screen_lock = NULL;
}
