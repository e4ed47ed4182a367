/* SPDX-License-Identifier: MIT */
/*
 * What a turn has to say that its CLI does not: refusals of the network, a budget
 * that runs out. Refusals come on threads of the sandbox's proxy.
 */
#include "agent/private.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
	LINE_MAX_LEN = 768,
	BUDGET_REST = 5, /* a fifth of it is left when that is told */
};

static bool is_told(const struct sba_notices *n, const char *line)
{
	for (size_t i = 0; i < n->lines.n; i++) {
		if (strcmp(n->lines.v[i], line) == 0)
			return true;
	}
	return false;
}

void sba_notices_say(struct sba_notices *n, const char *line)
{
	pthread_mutex_lock(&n->lock);
	bool last = n->lines.n + 1 == SBA_NOTICES_MAX;
	if (n->lines.n < SBA_NOTICES_MAX && !is_told(n, line) &&
	    sba_strv_add(&n->lines, last ? "network: more was refused, which is not told" : line,
			 NULL) == 0)
		sba_event_fire(n->fd);
	pthread_mutex_unlock(&n->lock);
}

static void on_connection(void *user, const struct sba_connection *c)
{
	char line[LINE_MAX_LEN];
	if (sba_connection_refusal(c, line, sizeof(line)))
		sba_notices_say(user, line);
}

int sba_notices_open(struct sba_notices *n, struct sba_sandbox *s, struct sba_error *err)
{
	pthread_mutex_init(&n->lock, NULL);
	n->sandbox = s;
	n->observer = (struct sba_observer){ .connection = on_connection, .user = n };
	n->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (n->fd < 0)
		return sba_fail_errno(err, SBA_EIO, errno, "event descriptor");
	sba_sandbox_observe(s, &n->observer);
	return 0;
}

void sba_notices_close(struct sba_notices *n)
{
	if (!n->sandbox)
		return;
	sba_sandbox_unobserve(n->sandbox, &n->observer);
	sba_strv_fini(&n->lines);
	sba_cleanup_close(&n->fd);
	pthread_mutex_destroy(&n->lock);
	n->sandbox = NULL;
}

/* Once, while there is still time to do something about it. */
void sba_notices_budget(struct sba_notices *n, struct sba_agent *a)
{
	struct sba_relay_stats stats;
	char line[128];
	if (!a->relay || a->max_tokens <= 0 || a->budget_told)
		return;
	sba_relay_stats_get(a->relay, &stats);
	int64_t spent = stats.usage.input + stats.usage.output;
	if (stats.tokens_spent || spent < a->max_tokens - a->max_tokens / BUDGET_REST)
		return;
	a->budget_told = true;
	snprintf(line, sizeof(line), "budget: %lld of %lld tokens are spent (%d %%)",
		 (long long)spent, (long long)a->max_tokens,
		 (int)((double)spent * 100 / (double)a->max_tokens));
	sba_notices_say(n, line);
}

void sba_notices_seen(struct sba_notices *n)
{
	uint64_t count;
	while (read(n->fd, &count, sizeof(count)) < 0 && errno == EINTR)
		;
}

int sba_notices_take(struct sba_notices *n, struct sba_event_queue *to)
{
	int rc = 0;
	pthread_mutex_lock(&n->lock);
	for (; rc == 0 && n->taken < n->lines.n; n->taken++) {
		const struct sba_event event = { .kind = SBA_EVENT_NOTICE,
						 .time_ms = sba_unix_ms(),
						 .text = n->lines.v[n->taken] };
		rc = sba_event_queue_put(to, &event);
	}
	pthread_mutex_unlock(&n->lock);
	return rc;
}
