/* SPDX-License-Identifier: MIT */
/*
 * What carries a command: run frames in, output with the guest's records out.
 * Two kinds behind one table: a stream on the sandbox's channel, and an exec of
 * the engine of its own.
 */
#ifndef SBA_SANDBOX_LINK_H
#define SBA_SANDBOX_LINK_H

#include "channel/channel.h"
#include "sandbox/private.h"

struct sba_link;

struct sba_link_ops {
	/* As sba_exec_read(): waits as long as `until` says; *stream is 1 or 2. */
	ssize_t (*read)(struct sba_link *l, int *stream, const char **data, struct sba_until until,
			struct sba_error *err);
	/* Takes what it can without waiting. */
	ssize_t (*write)(struct sba_link *l, const void *data, size_t len, struct sba_error *err);
	int (*fd)(const struct sba_link *l);
	/* Whether POLLOUT is worth waiting for. */
	bool (*wants_write)(const struct sba_link *l);
	/* After the stream ended without the guest's word: what the engine says of
	 * it. *ret_code is 0 where it does not know. SBA_ETIMEOUT: it still runs. */
	int (*explain)(struct sba_link *l, struct sba_until until, int *ret_code,
		       struct sba_error *err);
	/* What the guest has told of the sandbox's limits since the command began; NULL:
	 * it tells at the end only. */
	void (*pressure)(const struct sba_link *l, struct sba_channel_pressure *ret);
	/* Closing it early is the client's death for the command. */
	void (*close)(struct sba_link *l);
	/* Whether it ends by itself, soon, when the container dies. The stream of an
	 * exec does not always. */
	bool watched;
};

struct sba_link {
	const struct sba_link_ops *ops;
};

/* A stream on the handle's channel. SBA_EUNSUPPORTED: there is none to be had. */
int sba_link_channel(struct sba_sandbox *s, struct sba_link **ret,
		     struct sba_error *err) SBA_MUST_CHECK;
/* An exec of `guest run` as `user` (NULL: the sandbox's). */
int sba_link_exec(struct sba_sandbox *s, const char *user, struct sba_link **ret,
		  struct sba_error *err) SBA_MUST_CHECK;

#endif
