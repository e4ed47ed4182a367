/* SPDX-License-Identifier: MIT */
/*
 * A handle's hold on its sandbox: the session channel, opened by the first
 * command and opened again when it was lost; the watch over the container
 * beside it; the way out that --allow opens; the ports of this host that are
 * reached from inside (forward.c). While it is held, the keepalive clock is
 * renewed.
 */
#ifndef SBA_SANDBOX_SESSION_H
#define SBA_SANDBOX_SESSION_H

#include "channel/channel.h"
#include "proxy/proxy.h"
#include "sandbox/private.h"

struct sba_session;

int sba_session_new(struct sba_sandbox *s, struct sba_session **ret,
		    struct sba_error *err) SBA_MUST_CHECK;
/* The same with channels of the caller's making, which no watch goes with. */
typedef int sba_session_open_fn(void *user, struct sba_until until, struct sba_channel **ret,
				struct sba_error *err);
int sba_session_new_with(struct sba_sandbox *s, sba_session_open_fn *open, void *user,
			 struct sba_session **ret, struct sba_error *err) SBA_MUST_CHECK;
/* A handle without an engine, of a backend; open NULL: it has no channel. The session's
 * open_user is the sandbox. */
int sba_sandbox_new_of(const struct sba_backend *backend, const char *name,
		       sba_session_open_fn *open, struct sba_sandbox **ret,
		       struct sba_error *err) SBA_MUST_CHECK;
/* After every hold was released. Does not wait for an engine that hangs. NULL is
 * allowed. */
void sba_session_free(struct sba_session *n);

/* A counted hold on the living channel; a lost one is closed when nobody holds it
 * any more. One caller opens while the others wait; a wait ends when stop_fd
 * (-1: the engine's token alone) is readable and sba_session_wake() is called.
 * SBA_EUNSUPPORTED: none can be had here, and the engine's exec must serve. */
struct sba_hold;
int sba_session_hold(struct sba_session *n, int stop_fd, struct sba_hold **ret,
		     struct sba_error *err) SBA_MUST_CHECK;
struct sba_channel *sba_hold_channel(const struct sba_hold *h);
void sba_hold_release(struct sba_hold *h); /* NULL is allowed */
void sba_session_wake(struct sba_session *n);

/* The port on the sandbox's loopback where its proxy is; 0: it has none. Known
 * once there is a channel. */
uint16_t sba_session_proxy_port(struct sba_session *n);

/* SBA_EBROKEN with the reason once the sandbox is dead, whatever the engine answers before;
 * SBA_ECANCELED, or what kept it from asking. */
int sba_session_await_death(struct sba_sandbox *s, struct sba_until until,
			    struct sba_error *err) SBA_MUST_CHECK;

/* ---- what session.c and forward.c share ---- */

enum { SBA_FORWARDS_MAX = 64 };

struct sba_forward {
	uint16_t here, inside; /* inside 0: the last channel was lost with it */
	unsigned users;        /* 0: free */
};

struct sba_session {
	struct sba_sandbox *sandbox;
	sba_session_open_fn *open; /* NULL: by the engine */
	void *open_user;
	pthread_mutex_t lock; /* of all below; never held while anything waits */
	pthread_cond_t changed;
	struct sba_hold *now; /* the last channel that was opened */
	bool opening, forwarding;
	bool unsupported;
	unsigned openings;        /* that have ended */
	struct sba_error failure; /* of the last one; code 0: it went well */
	struct sba_forward forwards[SBA_FORWARDS_MAX];
	struct sba_proxy *proxy;
	uint16_t proxy_port;            /* inside */
	pthread_mutex_t observers_lock; /* of all below; held while they are told */
	struct sba_observer *observers;
};

/* An sba_proxy_event_fn; user is the session. */
void sba_session_tell(void *session, const struct sba_proxy_event *e);

/* For what is asked of the guest at once. */
struct sba_until sba_session_until(const struct sba_session *n);
/* On a new channel, under the same ports inside where they can be had. */
void sba_session_forward_again(struct sba_session *n, struct sba_channel *channel,
			       struct sba_until until);

#endif
