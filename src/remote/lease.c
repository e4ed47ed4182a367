/* SPDX-License-Identifier: MIT */
/*
 * A sandbox's life at its service: it ends so long after the last handle on it. While there
 * is one its end is put off, never beyond max_lifetime.
 */
#include "base/limits.h"
#include "remote/private.h"

enum { SHARE = 3, RENEW_MS = 30 * 1000 };

int64_t sba_remote_lease_end(const struct sba_remote_box *b)
{
	int64_t end = b->keepalive_ms ? (sba_unix_ms() + b->keepalive_ms + 999) / 1000 : 0;
	if (b->dies_at && (!end || end > b->dies_at))
		end = b->dies_at;
	return end;
}

static int renew(struct sba_remote_box *b, struct sba_until until, struct sba_error *err)
{
	int64_t end = sba_remote_lease_end(b);
	if (!end || end <= sba_unix_ms() / 1000)
		return 0;
	return b->remote->kind->renew(b, end, until, err);
}

static void *keep(void *user)
{
	struct sba_remote_box *b = user;
	const struct sba_until stopped = { SBA_NEVER, b->lease_stop_fd };
	struct sba_error why;
	while (sba_wait_fd(-1, 0, sba_until_sooner(stopped, b->keepalive_ms / SHARE), &why) ==
	       SBA_ETIMEOUT) {
		int rc = renew(b, sba_until_sooner(stopped, RENEW_MS), &why);
		if (rc < 0)
			sba_log("remote", "%s", why.text);
		/* It is gone; whoever uses it next will hear of that. */
		if (rc == SBA_ENOTFOUND)
			break;
	}
	return NULL;
}

int sba_remote_lease_start(struct sba_remote_box *b, struct sba_error *err)
{
	int rc = renew(b, sba_remote_until(b->remote, RENEW_MS), err);
	if (rc < 0 || !b->keepalive_ms)
		return rc;
	rc = sba_thread_start(&b->lease, keep, b, err);
	b->leasing = rc == 0;
	return rc;
}

void sba_remote_lease_stop(struct sba_remote_box *b)
{
	if (!b->leasing)
		return;
	sba_event_fire(b->lease_stop_fd);
	pthread_join(b->lease, NULL);
	b->leasing = false;
}
