/* SPDX-License-Identifier: MIT */
/* One sandbox of a service: what a handle on it knows, and its end. */
#include "base/limits.h"
#include "remote/private.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { REMOVE_MS = 60 * 1000, LOOK_MS = 10 * 1000 };

struct sba_remote_box *sba_remote_box_of(const struct sba_sandbox *s)
{
	return sba_sandbox_self(s);
}

const char *sba_remote_workdir(const struct sba_sandbox *s)
{
	return sba_remote_box_of(s)->workdir;
}

static int64_t number_of(const json_t *marks, const char *name)
{
	int64_t n = 0;
	return sba_parse_int(sba_marks_get(marks, name), 0, INT64_MAX / 2000, &n) == 0 ? n : 0;
}

static int fill(struct sba_remote_box *b, const char *id, struct sba_error *err)
{
	int64_t lifetime = number_of(b->marks, "max-lifetime");
	b->id = strdup(id);
	b->workdir = strdup("/");
	b->closed_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	b->lease_stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	b->keepalive_ms = number_of(b->marks, "keepalive");
	b->dies_at = lifetime ? number_of(b->marks, "created") + lifetime / 1000 : 0;
	if (!b->id || !b->workdir)
		return sba_fail_nomem(err);
	return b->closed_fd < 0 || b->lease_stop_fd < 0 ? sba_fail(err, SBA_EIO, "eventfd") : 0;
}

int sba_remote_box_new(struct sba_remote *r, const char *id, const json_t *marks,
		       struct sba_remote_box **ret, struct sba_error *err)
{
	/* It goes into URLs and host names. */
	if (!sba_is_word(id, "_-", 128))
		return sba_fail(err, SBA_EPROTO, "%s: a sandbox's id that is none",
				r->kind->backend->name);
	struct sba_remote_box *b = calloc(1, sizeof(*b));
	if (!b)
		return sba_fail_nomem(err);
	pthread_mutex_init(&b->lock, NULL);
	b->remote = r;
	b->marks = json_deep_copy(marks);
	int rc = fill(b, id, err);
	if (rc < 0) {
		sba_remote_box_free(b);
		return rc;
	}
	*ret = b;
	return 0;
}

void sba_remote_box_free(struct sba_remote_box *b)
{
	if (!b)
		return;
	sba_remote_lease_stop(b);
	if (b->secret)
		explicit_bzero(b->secret, strlen(b->secret));
	free(b->secret);
	sba_strv_fini(&b->headers);
	json_decref(b->marks);
	sba_cleanup_close(&b->closed_fd);
	sba_cleanup_close(&b->lease_stop_fd);
	pthread_mutex_destroy(&b->lock);
	free(b->workdir);
	free(b->base);
	free(b->id);
	free(b);
}

int sba_remote_inside(const struct sba_remote_box *b, char **ret, struct sba_error *err,
		      const char *fmt, ...)
{
	char *path = NULL;
	va_list ap;
	va_start(ap, fmt);
	int n = vasprintf(&path, fmt, ap);
	va_end(ap);
	if (n < 0)
		return sba_fail_nomem(err);
	n = asprintf(ret, "%s%s", b->base, path);
	free(path);
	return n < 0 ? sba_fail_nomem(err) : 0;
}

bool sba_remote_box_is_closed(struct sba_remote_box *b)
{
	pthread_mutex_lock(&b->lock);
	bool closed = b->closed;
	pthread_mutex_unlock(&b->lock);
	return closed;
}

/* Goes on although the cancel token was fired: nothing is left behind. */
int sba_remote_box_close(struct sba_sandbox *s, struct sba_error *err)
{
	struct sba_remote_box *b = sba_remote_box_of(s);
	if (sba_remote_box_is_closed(b))
		return 0;
	sba_remote_lease_stop(b);
	int rc = sba_remote_remove(b->remote, b->id, sba_until_in(REMOVE_MS), err);
	if (rc < 0)
		return rc;
	pthread_mutex_lock(&b->lock);
	b->closed = true;
	pthread_mutex_unlock(&b->lock);
	sba_event_fire(b->closed_fd);
	return 0;
}

void sba_remote_box_release(struct sba_sandbox *s)
{
	sba_remote_box_free(sba_remote_box_of(s));
}

int sba_remote_explain(struct sba_remote_box *b, int rc, struct sba_error *err)
{
	struct sba_error why;
	if (rc != SBA_ELOST && rc != SBA_ENOTFOUND && rc != SBA_EENGINE && rc != SBA_ECONNECT)
		return rc;
	if (sba_remote_box_is_closed(b))
		return sba_fail(err, SBA_EBROKEN, "the sandbox is closed");
	if (b->remote->kind->look(b->remote, b->id, sba_until_in(LOOK_MS), &why) != SBA_ENOTFOUND)
		return rc;
	return sba_hint(err,
			sba_fail(err, SBA_EBROKEN,
				 "sandbox '%s/%s' is gone: its time was over, or somebody ended it",
				 b->remote->kind->backend->name, sba_marks_get(b->marks, "name")),
			"--keepalive says how long one lives that nobody uses");
}
