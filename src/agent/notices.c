/* SPDX-License-Identifier: MIT */
/*
 * What a turn has to say that its CLI does not: refusals of the network, a budget
 * that runs out, a model that fails. Refusals come on threads of the sandbox's proxy.
 */
#include "agent/private.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
	LINE_MAX_LEN = 768,
	BUDGET_REST = 5, /* a fifth of it is left when that is told */
	SILENCE_MS = 2000,
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
static void look_at_budget(struct sba_notices *n, struct sba_agent *a,
			   const struct sba_relay_stats *stats)
{
	char line[128];
	int64_t spent = stats->usage.input + stats->usage.output;
	if (a->max_tokens <= 0 || a->budget_told || stats->tokens_spent ||
	    spent < a->max_tokens - a->max_tokens / BUDGET_REST)
		return;
	a->budget_told = true;
	snprintf(line, sizeof(line), "budget: %lld of %lld tokens are spent (%d %%)",
		 (long long)spent, (long long)a->max_tokens,
		 (int)((double)spent * 100 / (double)a->max_tokens));
	sba_notices_say(n, line);
}

/* A CLI that asks again may say so (most do, at once) or not a word for a minute. */
static void look_at_failure(struct sba_notices *n, const struct sba_agent *a,
			    const struct sba_relay_stats *stats, int64_t heard_ms)
{
	char line[LINE_MAX_LEN], count[32] = "";
	if (!*stats->failure || stats->failures <= n->failures_told ||
	    heard_ms >= stats->failed_ms || sba_now_ms() - stats->failed_ms < SILENCE_MS)
		return;
	n->failures_told = stats->failures;
	if (stats->failures > 1)
		snprintf(count, sizeof(count), ", %llu times", (unsigned long long)stats->failures);
	snprintf(line, sizeof(line), "the model's request failed (%s%s): %s has not given up",
		 stats->failure, count, a->driver->name);
	sba_notices_say(n, line);
}

void sba_notices_relay(struct sba_notices *n, struct sba_agent *a, int64_t heard_ms)
{
	struct sba_relay_stats stats;
	if (!a->relay)
		return;
	sba_relay_stats_get(a->relay, &stats);
	look_at_budget(n, a, &stats);
	look_at_failure(n, a, &stats, heard_ms);
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
