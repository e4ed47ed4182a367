/* SPDX-License-Identifier: MIT */
/*
 * Connections on their way to the record: told by the sandbox's proxy, which must not
 * wait for a disk, and written by a thread of their own. What finds no room is counted,
 * and the record says how many there were.
 */
#include "audit/private.h"

#include <stdlib.h>
#include <string.h>

struct told {
	char *payload;
	int64_t time_ms;
};

struct sba_audit_connections {
	struct sba_audit *audit;
	pthread_t thread;
	pthread_mutex_t lock; /* of all below */
	pthread_cond_t more, fewer;
	struct told queue[SBA_AUDIT_CONNECTIONS_MAX];
	size_t n;
	uint64_t taken_in, written, left_out;
	bool started, closing;
};

static char *payload_of(const struct sba_connection *c)
{
	SBA_JSON json_t *j = json_pack("{s:o, s:i, s:b, s:I, s:I}", "host",
				       sba_json_text(c->host, strlen(c->host)), "port", c->port,
				       "allowed", c->allowed, "sent", (json_int_t)c->sent,
				       "received", (json_int_t)c->received);
	if (j && c->why)
		json_object_set_new(j, "why", sba_json_text(c->why, strlen(c->why)));
	if (j && c->rule)
		json_object_set_new(j, "rule", sba_json_text(c->rule, strlen(c->rule)));
	return j ? sba_json_dump(j) : NULL;
}

/* ---- the thread ---- */

static void record(struct sba_audit *a, const char *kind, const char *payload, int64_t time_ms)
{
	struct sba_error err = { 0 };
	if (sba_audit_record_at(a, kind, payload, time_ms, &err) < 0)
		sba_log("audit", "%s", err.text);
}

static void record_left_out(struct sba_audit *a, uint64_t n)
{
	char payload[80];
	snprintf(payload, sizeof(payload), "{\"kind\":\"connection\",\"count\":%llu}",
		 (unsigned long long)n);
	record(a, "left_out", payload, sba_unix_ms());
}

static void *work(void *connections)
{
	struct sba_audit_connections *c = connections;
	struct told mine[SBA_AUDIT_CONNECTIONS_MAX];
	pthread_mutex_lock(&c->lock);
	for (;;) {
		while (!c->n && !c->left_out && !c->closing)
			pthread_cond_wait(&c->more, &c->lock);
		size_t n = c->n;
		uint64_t left_out = c->left_out;
		if (!n && !left_out)
			break;
		memcpy(mine, c->queue, n * sizeof(*mine));
		c->n = 0;
		c->left_out = 0;
		pthread_mutex_unlock(&c->lock);
		for (size_t i = 0; i < n; i++) {
			record(c->audit, "connection", mine[i].payload, mine[i].time_ms);
			free(mine[i].payload);
		}
		if (left_out)
			record_left_out(c->audit, left_out);
		pthread_mutex_lock(&c->lock);
		c->written += n + left_out;
		pthread_cond_broadcast(&c->fewer);
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

/* ---- the proxy's side ---- */

/* The first one starts the thread: most sandboxes have none. */
static bool is_written(struct sba_audit_connections *c)
{
	struct sba_error err = { 0 };
	if (!c->started && sba_thread_start(&c->thread, work, c, &err) < 0)
		sba_log("audit", "%s", err.text);
	else
		c->started = true;
	return c->started;
}

void sba_audit_connections_tell(void *connections, const struct sba_connection *told)
{
	struct sba_audit_connections *c = connections;
	struct told t = { .payload = payload_of(told), .time_ms = sba_unix_ms() };
	pthread_mutex_lock(&c->lock);
	if (is_written(c)) {
		c->taken_in++;
		if (t.payload && c->n < SBA_AUDIT_CONNECTIONS_MAX) {
			c->queue[c->n++] = t;
			t.payload = NULL;
		} else {
			c->left_out++;
		}
		pthread_cond_signal(&c->more);
	}
	pthread_mutex_unlock(&c->lock);
	free(t.payload);
}

void sba_audit_connections_settle(struct sba_audit_connections *c)
{
	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	/* Not for those that come while it waits. */
	for (uint64_t until = c->taken_in; c->written < until;)
		pthread_cond_wait(&c->fewer, &c->lock);
	pthread_mutex_unlock(&c->lock);
}

int sba_audit_connections_open(struct sba_audit *a, struct sba_audit_connections **ret,
			       struct sba_error *err)
{
	struct sba_audit_connections *c = calloc(1, sizeof(*c));
	if (!c)
		return sba_fail_nomem(err);
	c->audit = a;
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->more, NULL);
	pthread_cond_init(&c->fewer, NULL);
	*ret = c;
	return 0;
}

void sba_audit_connections_close(struct sba_audit_connections *c)
{
	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	c->closing = true;
	pthread_cond_signal(&c->more);
	pthread_mutex_unlock(&c->lock);
	if (c->started)
		pthread_join(c->thread, NULL);
	pthread_cond_destroy(&c->fewer);
	pthread_cond_destroy(&c->more);
	pthread_mutex_destroy(&c->lock);
	free(c);
}
