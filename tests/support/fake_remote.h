/* SPDX-License-Identifier: MIT */
/*
 * A server on loopback that speaks what was recorded of OpenSandbox (lifecycle server and
 * execd) and of E2B (control plane and envd), and truly runs what it is told to, as
 * processes of this host. A test may put lies in front of it.
 */
#ifndef SBA_TEST_FAKE_REMOTE_H
#define SBA_TEST_FAKE_REMOTE_H

#include "base/base.h"
#include "http/http.h"

#define FAKE_KEY   "fake-key-0123456789abcdef"
#define FAKE_TOKEN "envd-token-0123456789abcdef"

enum { FAKE_SANDBOXES = 64, FAKE_RUNS = 256 };

struct fake_sandbox {
	char id[40];
	json_t *metadata;
	char image[64];
	int64_t ends_at; /* UNIX seconds; 0: never */
	bool paused;
};

struct fake_run {
	bool used, ended;
	bool left;    /* its stream was given up */
	bool gone;    /* with its sandbox: nobody hears how it ended */
	char tag[64]; /* "": none */
	char sandbox[40];
	pid_t pid;
	int in, out, err; /* -1: closed */
};

struct fake_remote {
	struct sba_http_server *server;
	char url[64]; /* of the server */
	char home[128];
	pthread_mutex_t lock; /* of all below */
	struct fake_sandbox sandboxes[FAKE_SANDBOXES];
	size_t n;
	struct fake_run runs[FAKE_RUNS];
	unsigned created, renewed, removed; /* requests that were served */
	/* Told of each request first; true: it has answered. */
	bool (*lie)(void *user, const struct sba_http_request *r, struct sba_http_answer *a);
	/* Told of each that was answered truly; may spoil that. */
	void (*spoil)(void *user, const struct sba_http_request *r, struct sba_http_answer *a);
	void *user;
};

/* home: a folder that commands have as HOME. */
void fake_remote_start(struct fake_remote *f, const char *home);
/* Ends all that still runs. */
void fake_remote_stop(struct fake_remote *f);
size_t fake_remote_count(struct fake_remote *f);
/* The time of all its sandboxes is over. */
void fake_remote_expire(struct fake_remote *f);

/* ---- fake_remote_run.c ---- */

enum fake_kernel_kind {
	FAKE_KERNEL_NONE,
	FAKE_KERNEL_E2B,   /* what it prints is the answer; it ends with its connection */
	FAKE_KERNEL_EXECD, /* the same behind the first words; it goes on */
};

struct fake_remote_words {
	const char *const *argv;
	char **env;
	bool stdin_open;
	bool connect; /* envd's framing; else execd's */
	enum fake_kernel_kind kernel;
	const char *tag;
	const char *sandbox;
	int ping_s;
};
/* Starts it, and makes its stream the answer. */
void fake_remote_run(struct fake_remote *f, const struct fake_remote_words *w,
		     struct sba_http_answer *a);
/* The run of that tag that still goes, or NULL; under the lock. */
struct fake_run *fake_remote_find(struct fake_remote *f, const char *tag);
/* All processes of a sandbox, whatever they did to hide. */
void fake_remote_end(struct fake_remote *f, const char *sandbox);

/* An answer with a JSON body. */
void fake_remote_json(struct sba_http_answer *a, int status, json_t *take_j);

#endif
