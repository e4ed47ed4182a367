/* SPDX-License-Identifier: MIT */
/* The cancel token: an eventfd that, once fired, stays readable. */
#include "engine/engine.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct sba_cancel {
	int fd;
};

int sba_cancel_new(struct sba_cancel **ret, struct sba_error *err)
{
	struct sba_cancel *c = malloc(sizeof(*c));
	if (!c)
		return sba_fail_nomem(err);
	c->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (c->fd < 0) {
		int e = errno;
		free(c);
		return sba_fail_errno(err, SBA_EIO, e, "eventfd");
	}
	*ret = c;
	return 0;
}

void sba_cancel_free(struct sba_cancel *c)
{
	if (!c)
		return;
	close(c->fd);
	free(c);
}

void sba_cancel_fire(struct sba_cancel *c)
{
	sba_event_fire(c->fd);
}

int sba_cancel_fd(const struct sba_cancel *c)
{
	return c ? c->fd : -1;
}
