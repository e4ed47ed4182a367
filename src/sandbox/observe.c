/* SPDX-License-Identifier: MIT */
/* Who is told of the connections that go through the rules of a sandbox. */
#include "sandbox/session.h"

#include <string.h>

void sba_sandbox_observe(struct sba_sandbox *s, struct sba_observer *o)
{
	struct sba_session *n = s->session;
	pthread_mutex_lock(&n->observers_lock);
	o->next = n->observers;
	n->observers = o;
	pthread_mutex_unlock(&n->observers_lock);
}

void sba_sandbox_unobserve(struct sba_sandbox *s, struct sba_observer *o)
{
	struct sba_session *n = s->session;
	pthread_mutex_lock(&n->observers_lock);
	struct sba_observer **at = &n->observers;
	while (*at && *at != o)
		at = &(*at)->next;
	if (*at)
		*at = o->next;
	pthread_mutex_unlock(&n->observers_lock);
}

void sba_session_tell(void *session, const struct sba_proxy_event *e)
{
	struct sba_session *n = session;
	const struct sba_connection c = {
		.host = e->host,
		.port = e->port,
		.allowed = e->allowed,
		.why = e->reason ? e->reason : e->why,
		.rule = e->rule,
		.sent = e->sent,
		.received = e->received,
	};
	pthread_mutex_lock(&n->observers_lock);
	for (const struct sba_observer *o = n->observers; o; o = o->next)
		o->connection(o->user, &c);
	pthread_mutex_unlock(&n->observers_lock);
}

bool sba_connection_refusal(const struct sba_connection *c, char *ret, size_t size)
{
	bool v6 = strchr(c->host, ':');
	if (c->allowed || !c->why)
		return false;
	int n = snprintf(ret, size,
			 v6 ? "network: [%s]:%u refused: %s" : "network: %s:%u refused: %s",
			 *c->host ? c->host : "?", (unsigned)c->port, c->why);
	if (c->rule && n >= 0 && (size_t)n < size)
		snprintf(ret + n, size - (size_t)n, "; --allow %s would allow it", c->rule);
	return true;
}
