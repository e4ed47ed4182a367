/* SPDX-License-Identifier: MIT */
/* A service of sandboxes (fake_remote.h), a handle on it, and what it is told to do wrong. */
#ifndef SBA_TEST_REMOTE_WORLD_H
#define SBA_TEST_REMOTE_WORLD_H

#include <stdatomic.h>

#include "remote/private.h"
#include "support/fake_remote.h"

struct remote_lie {
	const char *method, *path; /* of the requests meant; path: its beginning or its end */
	int times;                 /* the first so many; -1: all */
	int status;
	const char *body, *header;
	bool hang_up, cut; /* cut: a stream that breaks off */
};

struct remote_world {
	char folder[64];
	struct fake_remote fake;
	struct sba_remote *remote;
	const char *service;
	const struct remote_lie *lies, *spoilt;
	int lied[4];
	atomic_int seen;     /* requests that a lie is about */
	struct sba_buf body; /* of the last that made a sandbox */
	bool leaked;         /* the key went where it does not belong */
	struct sba_error err;
};

/* With the key. */
void remote_world_begin(struct remote_world *w, const char *service, const struct remote_lie *lies);
void remote_world_end(struct remote_world *w);
/* Another handle in place of the first, which was closed. */
void remote_world_open(struct remote_world *w, const char *key, const char *key_from);

/* "one", of the image debian. */
struct sba_sandbox_options remote_world_wish(void);
int remote_world_create(struct remote_world *w, struct sba_sandbox **ret);
/* The same, which must succeed. */
struct sba_sandbox *remote_world_made(struct remote_world *w);

extern const char *const remote_services[2];
#define FOR_EACH_SERVICE(i) for (size_t i = 0; i < SBA_ARRAY_LEN(remote_services); i++)

#endif
