/* SPDX-License-Identifier: MIT */
/* Ports of this host that are reached from inside, over whatever channel there is. */
#include "sandbox/session.h"

static struct sba_forward *find(struct sba_session *n, uint16_t here)
{
	for (size_t i = 0; i < SBA_FORWARDS_MAX; i++) {
		if (n->forwards[i].users && n->forwards[i].here == here)
			return &n->forwards[i];
	}
	return NULL;
}

static struct sba_forward *find_free(struct sba_session *n)
{
	for (size_t i = 0; i < SBA_FORWARDS_MAX; i++) {
		if (n->forwards[i].users == 0)
			return &n->forwards[i];
	}
	return NULL;
}

/* With the lock held on both ends, and not between: at its place in the table, for
 * which nobody else looks meanwhile. */
static int open_one(struct sba_session *n, struct sba_hold *h, struct sba_forward *f,
		    uint16_t host_port, struct sba_error *err)
{
	uint16_t inside = f->inside;
	n->forwarding = true;
	pthread_mutex_unlock(&n->lock);
	struct sba_until until = sba_session_until(n);
	int rc = sba_channel_forward(sba_hold_channel(h), host_port, 0, until, &inside, err);
	pthread_mutex_lock(&n->lock);
	n->forwarding = false;
	pthread_cond_broadcast(&n->changed);
	if (rc == 0 && n->now != h)
		rc = sba_fail(err, SBA_ELOST, "channel: it was lost meanwhile");
	if (rc < 0)
		return rc;
	f->here = host_port;
	f->inside = inside;
	return 0;
}

/* A port that is forwarded already stays the same for all who ask. */
static int forward_locked(struct sba_session *n, struct sba_hold *h, uint16_t host_port,
			  uint16_t *ret_port, struct sba_error *err)
{
	while (n->forwarding)
		pthread_cond_wait(&n->changed, &n->lock);
	struct sba_forward *f = find(n, host_port);
	if (!f)
		f = find_free(n);
	if (!f)
		return sba_fail(err, SBA_ELIMIT, "%d ports are open already", SBA_FORWARDS_MAX);
	int rc = f->users && f->inside ? 0 : open_one(n, h, f, host_port, err);
	if (rc < 0)
		return rc;
	f->users++;
	*ret_port = f->inside;
	return 0;
}

int sba_sandbox_forward(struct sba_sandbox *s, uint16_t host_port, uint16_t *ret_port,
			struct sba_error *err)
{
	struct sba_session *n = s->session;
	struct sba_hold *h = NULL;
	int rc = sba_session_hold(n, -1, &h, err);
	if (rc == 0) {
		pthread_mutex_lock(&n->lock);
		rc = forward_locked(n, h, host_port, ret_port, err);
		pthread_mutex_unlock(&n->lock);
	}
	sba_hold_release(h);
	return rc < 0 ? sba_wrap(err, rc, "sandbox '%s': open a way to a port of this host",
				 s->info.name)
		      : 0;
}

void sba_sandbox_unforward(struct sba_sandbox *s, uint16_t host_port)
{
	struct sba_session *n = s->session;
	pthread_mutex_lock(&n->lock);
	struct sba_forward *f = find(n, host_port);
	if (f && --f->users == 0) {
		if (n->now && f->inside)
			sba_channel_unforward(sba_hold_channel(n->now), f->inside);
		f->inside = 0;
	}
	pthread_mutex_unlock(&n->lock);
}

/* ---- after a loss ---- */

/* Whoever runs on inside, detached, knows the port by its number. */
static void again(struct sba_session *n, struct sba_channel *channel, struct sba_forward was,
		  struct sba_until until)
{
	struct sba_error why;
	uint16_t inside = 0;
	int rc = sba_channel_forward(channel, was.here, was.inside, until, &inside, &why);
	if (rc < 0)
		sba_log("sandbox", "port %u of this host is not reached any more: %s",
			(unsigned)was.here, why.text);
	else if (was.inside && inside != was.inside)
		sba_log("sandbox", "port %u of this host is now %u inside, was %u",
			(unsigned)was.here, (unsigned)inside, (unsigned)was.inside);
	pthread_mutex_lock(&n->lock);
	struct sba_forward *f = find(n, was.here);
	if (f)
		f->inside = inside;
	pthread_mutex_unlock(&n->lock);
	if (!f && rc == 0)
		sba_channel_unforward(channel, inside);
}

void sba_session_forward_again(struct sba_session *n, struct sba_channel *channel,
			       struct sba_until until)
{
	for (size_t i = 0; i < SBA_FORWARDS_MAX; i++) {
		pthread_mutex_lock(&n->lock);
		struct sba_forward was = n->forwards[i];
		pthread_mutex_unlock(&n->lock);
		if (was.users)
			again(n, channel, was, until);
	}
}
