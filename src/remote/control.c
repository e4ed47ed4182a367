/* SPDX-License-Identifier: MIT */
/*
 * Requests to a service's control plane, and a sandbox's way up from made to ready: what
 * is the same of all services.
 */
#include "base/limits.h"
#include "remote/private.h"

#include <stdlib.h>
#include <string.h>

enum { POLL_MS = 200 };

/* ---- one request ---- */

static int send_json(struct sba_remote *r, struct sba_remote_call *call, const json_t *body,
		     struct sba_until until, json_t **ret, struct sba_error *err)
{
	char *text = sba_json_dump(body);
	if (!text)
		return sba_fail_nomem(err);
	call->body = text;
	call->body_len = strlen(text);
	int rc = sba_remote_call(r, call, until, ret, err);
	/* It may hold the values of variables. */
	explicit_bzero(text, call->body_len);
	free(text);
	return rc;
}

int sba_remote_control(struct sba_remote *r, const struct sba_remote_control *c,
		       struct sba_until until, json_t **ret, struct sba_error *err)
{
	SBA_FREE char *url = NULL;
	if (asprintf(&url, "%s/sandboxes%s%s%s", r->url, c->id ? "/" : "", c->id ? c->id : "",
		     c->rest ? c->rest : "") < 0) {
		url = NULL;
		return sba_fail_nomem(err);
	}
	struct sba_remote_call call = { .method = c->method,
					.url = url,
					.what = c->what,
					.secret = r->key_header,
					.again = c->again };
	return c->body ? send_json(r, &call, c->body, until, ret, err)
		       : sba_remote_call(r, &call, until, ret, err);
}

int sba_remote_remove(struct sba_remote *r, const char *id, struct sba_until until,
		      struct sba_error *err)
{
	const struct sba_remote_control c = {
		.method = "DELETE", .what = "end a sandbox", .id = id, .again = true
	};
	int rc = sba_remote_control(r, &c, until, NULL, err);
	return rc == SBA_ENOTFOUND ? 0 : rc;
}

/* ---- until it is ready ---- */

int sba_remote_greet(struct sba_remote_box *b, const char *path, const char *what,
		     struct sba_until until, struct sba_error *err)
{
	SBA_FREE char *url = NULL;
	int rc = sba_remote_inside(b, &url, err, "%s", path);
	if (rc < 0)
		return rc;
	const struct sba_remote_call call = { .method = "GET",
					      .url = url,
					      .what = what,
					      .headers = &b->headers,
					      .secret = b->secret };
	return sba_remote_call(b->remote, &call, sba_until_sooner(until, SBA_REMOTE_CALL_MS), NULL,
			       err);
}

/* What is not yet, and what is only on its way up. */
static bool may_come(int rc, const struct sba_error *why)
{
	return rc == SBA_ENOTFOUND || rc == SBA_ELOST || rc == SBA_EENGINE ||
	       (rc == SBA_ECONNECT && !sba_remote_is_distrusted(why));
}

int sba_remote_come_up(struct sba_remote_box *b, sba_remote_step_fn *const *steps,
		       struct sba_until until, struct sba_error *err)
{
	while (*steps) {
		struct sba_error why = { 0 };
		int rc = (*steps)(b, until, &why);
		if (rc == 0) {
			steps++;
			continue;
		}
		if (may_come(rc, &why) &&
		    sba_wait_fd(-1, 0, sba_until_sooner(until, POLL_MS), err) == SBA_ETIMEOUT &&
		    sba_until_left(until) != 0)
			continue;
		/* A last request that was cut short tells the same. */
		if ((may_come(rc, &why) || rc == SBA_ETIMEOUT) && sba_until_left(until) == 0)
			return sba_fail(err, SBA_ETIMEOUT,
					"%s: the sandbox is not ready in time: %.600s",
					b->remote->kind->backend->name,
					*why.text ? why.text : "nobody knows the way to it");
		if (err)
			*err = why;
		return rc;
	}
	return 0;
}
