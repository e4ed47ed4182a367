/* SPDX-License-Identifier: MIT */
/*
 * Opening and closing a handle, agreeing on the API version, and what the
 * engine tells about itself.
 */
#include "engine/private.h"

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* The newest API this library was written for, and the oldest that has all it
 * needs. Docker 20.10 speaks up to 1.41; Docker 29 nothing below 1.44. */
static const char newest_api[] = "1.47";
static const char oldest_api[] = "1.40";

enum {
	START_MS = 120 * 1000,
	STOP_MS = 30 * 1000,
	SESSION_MS = 120 * 1000,
	TRANSFER_MS = 5 * 60 * 1000,
};

struct sba_until sba_engine_until(const struct sba_engine *e, int64_t ms)
{
	return sba_until_sooner((struct sba_until){ SBA_NEVER, e->cancel_fd }, ms);
}

const struct sba_timeouts *sba_engine_timeouts(const struct sba_engine *e)
{
	static const struct sba_timeouts defaults = {
		.start_ms = START_MS,
		.stop_ms = STOP_MS,
		.session_ms = SESSION_MS,
		.transfer_ms = TRANSFER_MS,
	};
	return e ? &e->timeouts : &defaults;
}

static int64_t time_or(int64_t asked_ms, int64_t otherwise_ms)
{
	return asked_ms < 0 ? SBA_NEVER : asked_ms > 0 ? asked_ms : otherwise_ms;
}

static struct sba_timeouts resolved(const struct sba_timeouts *asked)
{
	return (struct sba_timeouts){
		.start_ms = time_or(asked->start_ms, START_MS),
		.stop_ms = time_or(asked->stop_ms, STOP_MS),
		.session_ms = time_or(asked->session_ms, SESSION_MS),
		.transfer_ms = time_or(asked->transfer_ms, TRANSFER_MS),
	};
}

/* "1.41" -> 1041; 0 if it is no version. */
static int version_number(const char *v)
{
	const char *dot = strchr(v, '.');
	char major[8];
	int64_t a, b;
	if (!dot || (size_t)(dot - v) >= sizeof(major))
		return 0;
	snprintf(major, sizeof(major), "%.*s", (int)(dot - v), v);
	if (sba_parse_int(major, 0, 99, &a) < 0 || sba_parse_int(dot + 1, 0, 999, &b) < 0)
		return 0;
	return (int)(a * 1000 + b);
}

static int no_common_version(const struct sba_engine *e, const char *why, struct sba_error *err)
{
	return sba_fail(err, SBA_EUNSUPPORTED, "the engine at %s: %s", e->endpoint.host, why);
}

static int agree(struct sba_engine *e, const char *theirs, struct sba_error *err)
{
	const char *pinned = e->endpoint.api_version;
	const char *want = pinned[0] ? pinned : newest_api;
	char why[128];
	int max = theirs ? version_number(theirs) : 0;
	if (max == 0)
		return sba_fail(err, SBA_EPROTO, "what answers at %s is no Docker Engine",
				e->endpoint.host);
	if (pinned[0] && version_number(pinned) > max) {
		snprintf(why, sizeof(why), "DOCKER_API_VERSION is %s, it speaks up to %.15s",
			 pinned, theirs);
		return no_common_version(e, why, err);
	}
	const char *chosen = version_number(want) < max ? want : theirs;
	if (version_number(chosen) < version_number(oldest_api)) {
		snprintf(why, sizeof(why), "API %.15s is too old, at least %s is needed", chosen,
			 oldest_api);
		return no_common_version(e, why, err);
	}
	snprintf(e->api, sizeof(e->api), "%.15s", chosen);
	return 0;
}

int sba_engine_podman(const struct sba_engine *e)
{
	return e->podman;
}

/* Podman alone tells the version of its own API beside the Docker one's. */
static int podman_major(const struct sba_http_head *h)
{
	const char *version = sba_http_head_get(h, "libpod-api-version");
	char major[8];
	int64_t n;
	if (!version)
		return 0;
	snprintf(major, sizeof(major), "%.*s", (int)strcspn(version, "."), version);
	return sba_parse_int(major, 1, 9999, &n) == 0 ? (int)n : INT_MAX;
}

/* Unversioned: a version that the engine does not know makes even a ping fail. */
static int ping(struct sba_engine *e, struct sba_until until, struct sba_error *err)
{
	SBA_BODY struct sba_body *body = NULL;
	SBA_BUF struct sba_buf text = SBA_BUF_INIT(SBA_ENGINE_ERROR_MAX);
	struct sba_request r = { .method = "GET", .path = "/_ping", .tried = e->endpoint.host };
	struct sba_exchange x = { .request = &r };
	int rc = sba_engine_exchange(e, &x, until, &body, err);
	if (rc == 0)
		rc = sba_body_read_all(body, &text, until, err);
	if (rc < 0)
		return rc;
	e->podman = podman_major(&body->head);
	return agree(e, sba_http_head_get(&body->head, "api-version"), err);
}

static const char *process_env(void *user, const char *name)
{
	(void)user;
	return getenv(name);
}

static int prepare(struct sba_engine *e, const struct sba_engine_options *o, struct sba_error *err)
{
	int rc = sba_endpoint_find(o->host, process_env, NULL, &e->endpoint, err);
	if (rc == 0)
		rc = sba_address_parse(e->endpoint.host, &e->address, err);
	if (rc == 0 && e->endpoint.tls)
		rc = sba_tls_new(&e->endpoint, &e->tls, err);
	if (rc == 0 && e->address.ssh)
		rc = sba_ssh_new(&e->address, &e->ssh, err);
	return rc;
}

int sba_engine_open(const struct sba_engine_options *options, struct sba_engine **ret,
		    struct sba_error *err)
{
	static const struct sba_engine_options defaults;
	const struct sba_engine_options *o = options ? options : &defaults;
	struct sba_engine *e = calloc(1, sizeof(*e));
	if (!e)
		return sba_fail_nomem(err);
	pthread_mutex_init(&e->lock, NULL);
	pthread_mutex_init(&e->info_lock, NULL);
	e->cancel_fd = sba_cancel_fd(o->cancel);
	e->timeouts = resolved(&o->timeouts);
	int rc = prepare(e, o, err);
	if (rc == 0)
		rc = ping(e, sba_engine_until(e, SBA_ENGINE_OPEN_MS), err);
	if (rc == SBA_ECONNECT && e->ssh && sba_ssh_lacks_docker(e->ssh)) {
		rc = sba_ssh_forward(e->ssh, sba_engine_until(e, SBA_ENGINE_OPEN_MS), err);
		if (rc == 0)
			rc = ping(e, sba_engine_until(e, SBA_ENGINE_OPEN_MS), err);
	}
	if (rc < 0) {
		sba_engine_close(e);
		return rc;
	}
	*ret = e;
	return 0;
}

void sba_engine_close(struct sba_engine *e)
{
	if (!e)
		return;
	sba_pool_close(e);
	sba_tls_free(e->tls);
	sba_ssh_free(e->ssh);
	json_decref(e->version_json);
	json_decref(e->info_json);
	pthread_mutex_destroy(&e->info_lock);
	pthread_mutex_destroy(&e->lock);
	free(e);
}

/* ---- what it tells about itself ---- */

static const char *or_empty(const char *s)
{
	return s ? s : "";
}

/* The version of the component whose name begins so: "runc", or Podman's
 * "OCI Runtime (crun)". */
static const char *component(const json_t *version, const char *prefix)
{
	const json_t *list = json_object_get(version, "Components");
	size_t i;
	json_t *c;
	json_array_foreach(list, i, c)
	{
		const char *name = sba_json_str(c, "Name");
		if (name && sba_starts_with(name, prefix))
			return sba_json_str(c, "Version");
	}
	return NULL;
}

static void fill_info(struct sba_engine *e)
{
	const json_t *v = e->version_json, *i = e->info_json;
	const char *runc = component(v, "runc");
	const char *cgroup = or_empty(sba_json_str(i, "CgroupVersion"));
	e->info = (struct sba_engine_info){
		.host = e->endpoint.host,
		.found_by = e->endpoint.found_by,
		.api_version = e->api,
		.name = component(v, "Podman") ? "Podman" : "Docker",
		.version = or_empty(sba_json_str(v, "Version")),
		.os = or_empty(sba_json_str(v, "Os")),
		.arch = or_empty(sba_json_str(v, "Arch")),
		.runc = or_empty(runc ? runc : component(v, "OCI Runtime")),
		.cgroup_version = isdigit((unsigned char)cgroup[0]) ? cgroup[0] - '0' : 0,
		.cpus = (int)sba_json_int(i, "NCPU", 0),
		.memory = sba_json_int(i, "MemTotal", 0),
		.limits_memory = sba_json_bool(i, "MemoryLimit", false),
		.limits_swap = sba_json_bool(i, "SwapLimit", false),
		.limits_pids = sba_json_bool(i, "PidsLimit", false),
		.limits_cpu = sba_json_bool(i, "CpuCfsQuota", false),
	};
}

static int ask_object(struct sba_engine *e, const char *path, json_t **ret, struct sba_error *err)
{
	struct sba_request r = { .method = "GET", .path = path, .tried = "ask the engine" };
	SBA_JSON json_t *j = NULL;
	int rc = sba_engine_call(e, &r, sba_engine_until(e, SBA_ENGINE_OPEN_MS), &j, err);
	if (rc < 0)
		return rc;
	if (!json_is_object(j))
		return sba_fail(err, SBA_EPROTO, "%s: not a JSON object", path);
	*ret = sba_move(&j);
	return 0;
}

const char *sba_engine_socket(const struct sba_engine *e)
{
	const char *host = e->endpoint.host;
	return sba_starts_with(host, "unix://") ? host + strlen("unix://") : NULL;
}

const char *sba_engine_host(const struct sba_engine *e)
{
	return e->endpoint.host;
}

/* With the lock held. */
static int ask_version(struct sba_engine *e, struct sba_error *err)
{
	return e->version_json ? 0 : ask_object(e, "/version", &e->version_json, err);
}

int sba_engine_arch(struct sba_engine *e, const char **ret, struct sba_error *err)
{
	pthread_mutex_lock(&e->info_lock);
	int rc = ask_version(e, err);
	pthread_mutex_unlock(&e->info_lock);
	if (rc == 0)
		*ret = or_empty(sba_json_str(e->version_json, "Arch"));
	return rc;
}

int sba_engine_info(struct sba_engine *e, const struct sba_engine_info **ret, struct sba_error *err)
{
	pthread_mutex_lock(&e->info_lock);
	int rc = ask_version(e, err);
	if (rc == 0 && !e->info_json) {
		rc = ask_object(e, "/info", &e->info_json, err);
		if (rc == 0)
			fill_info(e);
	}
	pthread_mutex_unlock(&e->info_lock);
	if (rc == 0)
		*ret = &e->info;
	return rc;
}
