/* SPDX-License-Identifier: MIT */
/*
 * Sandboxes of a service, through its HTTP API: "opensandbox" (OpenSandbox's lifecycle
 * server and execd) and "e2b" (E2B's control plane and envd). What is made there carries
 * marks in its metadata, by which any later process finds it again; docs/backends.md says
 * what each can do. A handle may be shared between threads.
 *
 * Besides what each says, all of them: SBA_ECONNECT: nothing answers there, or with a
 * certificate that is not trusted. SBA_EPERM: it does not take the key. SBA_EENGINE: it
 * answered with an error. SBA_EPROTO: with something else than its API. SBA_ELIMIT: a quota,
 * or asked too often. SBA_EBUSY: its state does not allow it just now. SBA_ETIMEOUT.
 */
#ifndef SANDBOX_AGENT_REMOTE_H
#define SANDBOX_AGENT_REMOTE_H

#include <sandbox-agent/sandbox.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sba_remote;

/* Zero means the default everywhere. */
struct sba_remote_options {
	const char *url;      /* of the API; NULL: the service's usual one */
	const char *key;      /* NULL: none is sent */
	const char *key_from; /* where it is from, for errors: "E2B_API_KEY"; NULL: not said */
	const char *ca_file;  /* PEM bundle for both ends of TLS; NULL: the system's */
	/* opensandbox: commands and files go through the server, where sandboxes are not
	 * reached directly. */
	bool through_server;
	/* e2b: one URL for what is inside of every sandbox, told apart by headers; NULL: each
	 * has its own host. */
	const char *sandbox_url;
	/* Where agents work; NULL: /workspace, or workspace in the home where that cannot be
	 * made. */
	const char *workdir;
	int64_t ready_ms;          /* from the request to the first command that ran; 60 s */
	struct sba_cancel *cancel; /* ends every wait; lent, outlives the handle */
	uint64_t reserved[8];
};

/* The names of the services, NULL-ended; lent for ever. */
SBA_API const char *const *sba_remote_names(void);
/* Does not connect. SBA_EINVAL: no such service, or a URL that is none. All strings are
 * copied; the key is wiped at the end. */
SBA_API int sba_remote_open(const char *service, const struct sba_remote_options *options,
			    struct sba_remote **ret, struct sba_error *err);
/* After every sandbox of it was closed. NULL is allowed. */
SBA_API void sba_remote_close(struct sba_remote *r);

/* Makes one and waits until a command has run in it. Of the options count: name, prefix,
 * tag, image (of e2b: the template), env, keepalive_ms and max_lifetime_ms (its life ends so
 * long after the last handle on it; renewed while there is one), memory and cpus
 * (opensandbox), network and allow (e2b: without allow), max_sandboxes; what is asked for
 * besides fails with SBA_EUNSUPPORTED. SBA_EEXIST: the name is taken. SBA_EIMAGE: no such
 * image or template. On failure nothing is left. The name in its info is "SERVICE/NAME". */
SBA_API int sba_remote_create(struct sba_remote *r, const struct sba_sandbox_options *options,
			      struct sba_sandbox **ret, struct sba_error *err);
/* Finds one of ours by its name; prefix NULL: the default. SBA_ENOTFOUND. */
SBA_API int sba_remote_find(struct sba_remote *r, const char *prefix, const char *name,
			    struct sba_sandbox **ret, struct sba_error *err);
/* What the service has of ours, as sba_sandbox_list(). */
SBA_API int sba_remote_list(struct sba_remote *r, const struct sba_list_options *options,
			    struct sba_sandbox_list **ret, struct sba_error *err);

#ifdef __cplusplus
}
#endif

#endif
