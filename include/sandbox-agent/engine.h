/* SPDX-License-Identifier: MIT */
/*
 * A connection to a Docker Engine API: unix socket, TCP, TLS or ssh. A handle may
 * be shared between threads.
 */
#ifndef SANDBOX_AGENT_ENGINE_H
#define SANDBOX_AGENT_ENGINE_H

#include <sandbox-agent/error.h>

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Lets one thread, or a signal handler, stop what others wait for. */
struct sba_cancel;

/* SBA_EIO: no descriptor is left. The caller frees, after everything that was given it. */
SBA_API int sba_cancel_new(struct sba_cancel **ret, struct sba_error *err);
SBA_API void sba_cancel_free(struct sba_cancel *c); /* NULL is allowed */
/* Makes every wait that was given c return SBA_ECANCELED, now and later.
 * Async-signal-safe, idempotent. */
SBA_API void sba_cancel_fire(struct sba_cancel *c);

struct sba_engine;

/* How long a kind of operation may take where the call itself says nothing; in
 * milliseconds, -1: as long as it takes. */
struct sba_timeouts {
	int64_t start_ms;    /* making a sandbox, its image being there; default 120 s */
	int64_t stop_ms;     /* ending a sandbox, or what runs in it; default 30 s */
	int64_t session_ms;  /* looking up or keeping the state of sessions; default 120 s */
	int64_t transfer_ms; /* a copy in or out; default 5 min */
	uint64_t reserved[4];
};

/* Zero means the default everywhere. Strings are copied. */
struct sba_engine_options {
	/* unix:///path, tcp://host[:port], ssh://[user@]host[:port][/path] (by the ssh
	 * program, which may ask where there is a terminal), or NULL: found as the docker CLI does,
	 * by DOCKER_HOST, DOCKER_CONTEXT, the current context of config.json,
	 * the default socket; DOCKER_TLS_VERIFY, DOCKER_CERT_PATH and
	 * DOCKER_API_VERSION are respected. */
	const char *host;
	/* Stops what runs through this handle; cleaning up goes on all the
	 * same, under a deadline of its own. Lent; outlives the handle. */
	struct sba_cancel *cancel;
	struct sba_timeouts timeouts;
	uint64_t reserved[16];
};

/* Finds the engine, connects, negotiates the API version.
 * SBA_ECONNECT: nothing answers. SBA_EPERM: no permission on the socket.
 * SBA_EINVAL: no such context, malformed host. SBA_EUNSUPPORTED: no API
 * version in common. The caller closes with sba_engine_close(). */
SBA_API int sba_engine_open(const struct sba_engine_options *options, struct sba_engine **ret,
			    struct sba_error *err);
/* After everything that was opened through it. NULL is allowed. */
SBA_API void sba_engine_close(struct sba_engine *e);

/* Facts about the engine, lent until it is closed. Strings are never NULL. */
struct sba_engine_info {
	const char *host;        /* where it was found: "unix:///var/run/docker.sock" */
	const char *found_by;    /* "-H", "DOCKER_HOST", "context desktop", "default socket" */
	const char *api_version; /* in use: "1.41" */
	const char *name;        /* "Docker" or "Podman" */
	const char *version;     /* "20.10.24" */
	const char *os;          /* "linux" */
	const char *arch;        /* "amd64" */
	const char *runc;        /* version of the default runtime, "" where not told */
	int cgroup_version;      /* 1, 2; 0 where not told */
	int cpus;
	int64_t memory; /* bytes */
	/* Which limits of a sandbox it can keep. */
	bool limits_memory, limits_swap, limits_pids, limits_cpu;
};

/* Where it was found, as in sba_engine_info.host; lent until it is closed. Asks nothing. */
SBA_API const char *sba_engine_host(const struct sba_engine *e);
/* Asks the engine once and keeps the answer. SBA_ECONNECT, SBA_EENGINE, SBA_EPROTO as of
 * every call that speaks to the engine (sandbox-agent.h). */
SBA_API int sba_engine_info(struct sba_engine *e, const struct sba_engine_info **ret,
			    struct sba_error *err);

#ifdef __cplusplus
}
#endif

#endif
