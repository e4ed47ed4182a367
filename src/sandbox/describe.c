/* SPDX-License-Identifier: MIT */
/*
 * A sandbox in full, for people and programs; and ending what runs in it.
 */
#include "sandbox/private.h"

#include <string.h>

#include "channel/protocol.h"

enum { STOP_NOTHING = 3, CPU_MS = 3000 };

/* Environment values may be secrets of the user's: names only. */
static void hide_values(json_t *inspect)
{
	size_t i;
	json_t *pair, *env = sba_json_get(inspect, "Config.Env");
	json_array_foreach(env, i, pair)
	{
		const char *text = json_string_value(pair);
		if (text)
			json_array_set_new(env, i,
					   json_sprintf("%.*s", (int)strcspn(text, "="), text));
	}
}

/* Null for a container that is not there. */
static int inspect_one(struct sba_sandbox *s, const char *id, json_t **ret, struct sba_error *err)
{
	struct sba_error why = { 0 };
	int rc = !*id ? SBA_ENOTFOUND
		      : sba_container_inspect(s->engine, id,
					      sba_engine_until(s->engine, SBA_ENGINE_STEP_MS), ret,
					      &why);
	if (rc == SBA_ENOTFOUND) {
		*ret = json_null();
		return 0;
	}
	if (rc < 0 && err)
		*err = why;
	if (rc == 0)
		hide_values(*ret);
	return rc;
}

static void read_limits(const json_t *container, struct sba_sandbox_limits *ret)
{
	int64_t pids = sba_json_int(container, "HostConfig.PidsLimit", 0);
	*ret = (struct sba_sandbox_limits){
		.memory = sba_json_int(container, "HostConfig.Memory", 0),
		.pids = pids > 0 ? pids : 0,
		.cpus = (double)sba_json_int(container, "HostConfig.NanoCpus", 0) / 1e9,
	};
}

/* A client that attached shows nowhere in the engine's description, but the main process
 * has a child then that leads a process group. The engine must be told to list each
 * process by its pid. */
static bool is_attached(const struct sba_sandbox *s, int64_t main_pid, struct sba_until until)
{
	char path[SBA_ID_MAX + 64];
	SBA_JSON json_t *j = NULL;
	snprintf(path, sizeof(path), "/containers/%s/top?ps_args=-opid,ppid,pgid", s->container);
	const struct sba_request request = { .method = "GET",
					     .path = path,
					     .tried = "ask for processes" };
	if (sba_engine_call(s->engine, &request, until, &j, NULL) < 0)
		return false;
	size_t i;
	json_t *row;
	json_array_foreach(json_object_get(j, "Processes"), i, row)
	{
		const char *pid = json_string_value(json_array_get(row, 0));
		const char *parent = json_string_value(json_array_get(row, 1));
		const char *group = json_string_value(json_array_get(row, 2));
		int64_t n = 0;
		if (pid && parent && group && strcmp(pid, group) == 0 &&
		    sba_parse_int(parent, 1, INT32_MAX, &n) == 0 && n == main_pid)
			return true;
	}
	return false;
}

/* Podman (4.3 to 5.4) goes on listing execs that have ended, for five minutes; Docker
 * lists those that were never started. */
static int running_execs(const struct sba_sandbox *s, const json_t *container,
			 struct sba_until until)
{
	int n = 0;
	size_t i;
	json_t *id;
	json_array_foreach(json_object_get(container, "ExecIDs"), i, id) n +=
		sba_exec_runs(s->engine, json_string_value(id), until);
	return n;
}

int sba_sandbox_held(const struct sba_sandbox *s, const json_t *container, struct sba_until until)
{
	int held = running_execs(s, container, until);
	int64_t main_pid = sba_json_int(container, "State.Pid", 0);
	if (main_pid > 0 && sba_json_bool(container, "Config.StdinOnce", false))
		held += is_attached(s, main_pid, until);
	return held;
}

int sba_sandbox_describe(struct sba_sandbox *s, char **ret_json, struct sba_error *err)
{
	const struct sba_sandbox_info *i = &s->info;
	SBA_JSON json_t *container = NULL, *sidecar = NULL;
	int rc = sba_sandbox_need(s, SBA_CAN_INSPECT, err);
	if (rc == 0)
		rc = inspect_one(s, s->container, &container, err);
	if (rc == 0)
		rc = inspect_one(s, s->sidecar, &sidecar, err);
	if (rc < 0)
		return rc;
	int held = sba_sandbox_held(s, container, sba_engine_until(s->engine, SBA_ENGINE_STEP_MS));
	struct sba_sandbox_limits limits;
	read_limits(container, &limits);
	const char *state = held > 0 && strcmp(i->state, "idle") == 0 ? "working" : i->state;
	SBA_JSON json_t *j = json_pack(
		"{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, "
		"s:s, s:s, s:I, s:I, s:I, s:i, s:I, s:I, s:f, s:O, s:O}",
		"name", i->name, "id", i->id, "prefix", i->prefix, "tag", i->tag, "agent", i->agent,
		"program", i->program, "permissions", i->permissions, "mcp", i->mcp, "login",
		i->login, "provider", i->provider, "base_url", i->base_url, "network", i->network,
		"allow", i->allow, "mounts", i->mounts, "image", i->image, "user", i->user,
		"version", i->version, "state", state, "created", (json_int_t)i->created,
		"keepalive_ms", (json_int_t)i->keepalive_ms, "max_lifetime_ms",
		(json_int_t)i->max_lifetime_ms, "held", held, "memory", (json_int_t)limits.memory,
		"pids", (json_int_t)limits.pids, "cpus", limits.cpus, "container", container,
		"sidecar", sidecar);
	char *text = j ? json_dumps(j, JSON_INDENT(2)) : NULL;
	if (!text)
		return sba_fail_nomem(err);
	*ret_json = text;
	return 0;
}

/* Without one-shot the engine waits for a second sample, a second later. */
int sba_sandbox_cpu(struct sba_sandbox *s, int64_t *ret_ns, struct sba_error *err)
{
	char path[SBA_ID_MAX + 64];
	SBA_JSON json_t *j = NULL;
	snprintf(path, sizeof(path), "/containers/%s/stats?stream=false&one-shot=true",
		 s->container);
	const struct sba_request request = { .method = "GET",
					     .path = path,
					     .tried = "ask for use" };
	int rc = sba_sandbox_need(s, SBA_CAN_INSPECT, err);
	if (rc == 0)
		rc = sba_engine_call(s->engine, &request, sba_engine_until(s->engine, CPU_MS), &j,
				     err);
	if (rc < 0)
		return rc;
	int64_t ns = sba_json_int(j, "cpu_stats.cpu_usage.total_usage", -1);
	if (ns < 0)
		return sba_fail(err, SBA_EPROTO, "the engine tells no CPU time");
	*ret_ns = ns;
	return 0;
}

int sba_sandbox_limits(struct sba_sandbox *s, struct sba_sandbox_limits *ret, struct sba_error *err)
{
	SBA_JSON json_t *j = NULL;
	int rc = sba_sandbox_need(s, SBA_CAN_INSPECT, err);
	if (rc < 0)
		return rc;
	rc = sba_container_inspect(s->engine, s->container,
				   sba_engine_until(s->engine, SBA_ENGINE_STEP_MS), &j, err);
	if (rc < 0)
		return sba_wrap(err, rc, "limits of sandbox '%s'", s->info.name);
	read_limits(j, ret);
	return 0;
}

/* The guest's own `kill` inside, as the sandbox's user: it tells supervisors to
 * end their trees and waits until they have. */
int sba_sandbox_stop(struct sba_sandbox *s, bool *ret_ended, struct sba_error *err)
{
	static const char *const argv[] = { SBA_GUEST_PATH, "kill", "--all", NULL };
	const struct sba_exec_spec spec = { .container = s->container,
					    .argv = argv,
					    .no_stdin = true };
	struct sba_until until = sba_sandbox_until(s, sba_engine_timeouts(s->engine)->stop_ms);
	struct sba_exec *x = NULL;
	int code = 0;
	int rc = sba_sandbox_need(s, SBA_CAN_INSPECT, err);
	if (rc < 0)
		return rc;
	rc = sba_sandbox_check_whole(s, err);
	if (rc == 0)
		rc = sba_exec_open(s->engine, &spec, until, &x, err);
	while (rc == 0) {
		enum sba_exec_stream stream;
		const char *data;
		ssize_t n = sba_exec_read(x, &stream, &data, until, err);
		if (n == 0)
			break;
		rc = n < 0 ? (int)n : 0;
	}
	if (rc == 0)
		rc = sba_exec_exit_code(x, until, &code, err);
	if (x)
		sba_exec_close(x);
	if (rc == 0 && code != 0 && code != STOP_NOTHING)
		rc = sba_fail(err, SBA_EBROKEN, "the guest ended with %d", code);
	if (rc < 0)
		return sba_wrap(err, rc, "stop sandbox '%s'", s->info.name);
	if (ret_ended)
		*ret_ended = code == 0;
	return 0;
}
