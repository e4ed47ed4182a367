/* SPDX-License-Identifier: MIT */
/* A command carried by a stream on the session channel; see link.h. */
#include "sandbox/link.h"
#include "sandbox/session.h"

#include <stdlib.h>

struct channel_link {
	struct sba_link link;
	struct sba_hold *hold;
	struct sba_channel_run *run;
	struct sba_channel_pressure before;
};

static struct sba_channel_run *run_of(const struct sba_link *l)
{
	return ((const struct channel_link *)l)->run;
}

static ssize_t channel_read(struct sba_link *l, int *stream, const char **data,
			    struct sba_until until, struct sba_error *err)
{
	return sba_channel_run_read(run_of(l), stream, data, until, err);
}

static ssize_t channel_write(struct sba_link *l, const void *data, size_t len,
			     struct sba_error *err)
{
	return sba_channel_run_write(run_of(l), data, len, err);
}

static int channel_fd(const struct sba_link *l)
{
	return sba_channel_run_fd(run_of(l));
}

/* Its descriptor also tells of room, and the channel's own thread sends. */
static bool channel_wants_write(const struct sba_link *l)
{
	(void)l;
	return false;
}

static int channel_explain(struct sba_link *l, struct sba_until until, int *ret_code,
			   struct sba_error *err)
{
	(void)l;
	(void)until;
	(void)err;
	*ret_code = 0;
	return 0;
}

static void channel_pressure(const struct sba_link *l, struct sba_channel_pressure *ret)
{
	const struct channel_link *c = (const struct channel_link *)l;
	sba_channel_pressure(sba_hold_channel(c->hold), ret);
	ret->oom_kills -= c->before.oom_kills;
	ret->pids_refused -= c->before.pids_refused;
}

static void channel_close(struct sba_link *l)
{
	struct sba_hold *hold = ((struct channel_link *)l)->hold;
	sba_channel_run_close(run_of(l));
	free(l);
	sba_hold_release(hold);
}

static const struct sba_link_ops channel_ops = {
	.read = channel_read,
	.write = channel_write,
	.fd = channel_fd,
	.wants_write = channel_wants_write,
	.explain = channel_explain,
	.pressure = channel_pressure,
	.close = channel_close,
	.watched = true,
};

int sba_link_channel(struct sba_sandbox *s, struct sba_link **ret, struct sba_error *err)
{
	struct sba_hold *hold;
	int rc = sba_session_hold(s->session, -1, &hold, err);
	if (rc < 0)
		return rc;
	struct channel_link *l = calloc(1, sizeof(*l));
	if (l) {
		*l = (struct channel_link){ .link.ops = &channel_ops, .hold = hold };
		rc = sba_channel_run_open(sba_hold_channel(hold), &l->run, err);
	}
	if (!l || rc < 0) {
		rc = l ? rc : sba_fail_nomem(err);
		sba_hold_release(hold);
		free(l);
		return rc;
	}
	sba_channel_pressure(sba_hold_channel(hold), &l->before);
	*ret = &l->link;
	return 0;
}
