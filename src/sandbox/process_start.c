/* SPDX-License-Identifier: MIT */
/* How a command begins: what it is told, and what carries it. */
#include "sandbox/files.h"
#include "sandbox/process.h"
#include "sandbox/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/limits.h"

enum { STAGING_MAX = 80 * SBA_MIB }; /* arguments, environment and queued input */

/* Programs find the way out by these; the user's own come after and win. */
static void put_proxy(struct sba_guest_process *p)
{
	static const char *const names[] = { "http_proxy", "https_proxy", "HTTP_PROXY",
					     "HTTPS_PROXY" };
	uint16_t port = sba_session_proxy_port(p->sandbox->session);
	char text[64];
	for (size_t i = 0; port && i < SBA_ARRAY_LEN(names); i++) {
		snprintf(text, sizeof(text), "%s=http://127.0.0.1:%u", names[i], (unsigned)port);
		sba_process_frame_text(p, SBA_RUN_ENV, text);
	}
	if (port) {
		sba_process_frame_text(p, SBA_RUN_ENV, "no_proxy=127.0.0.1,localhost");
		sba_process_frame_text(p, SBA_RUN_ENV, "NO_PROXY=127.0.0.1,localhost");
	}
}

static void put_lock(struct sba_guest_process *p, const struct sba_exec_options *o)
{
	char key[SBA_LOCK_KEY_LEN + 1], text[2 * SBA_RUN_LOCK_MAX + 32];
	if (sba_lock_key(p->sandbox->info.id, key, NULL) < 0) {
		p->staging.failed = SBA_ENOMEM;
		return;
	}
	snprintf(text, sizeof(text), "%lld %s %s", (long long)o->lock_wait_ms, o->lock, key);
	sba_process_frame_text(p, SBA_RUN_LOCK, text);
}

static void put_start(struct sba_guest_process *p, const struct sba_exec_options *o,
		      const char *nonce)
{
	char text[128];
	sba_process_frame(p, SBA_RUN_NONCE, nonce, SBA_RUN_NONCE_LEN);
	for (size_t i = 0; o->argv[i]; i++)
		sba_process_frame_text(p, SBA_RUN_ARG, o->argv[i]);
	put_proxy(p);
	for (size_t i = 0; o->env && o->env[i]; i++)
		sba_process_frame_text(p, SBA_RUN_ENV, o->env[i]);
	if (o->workdir)
		sba_process_frame_text(p, SBA_RUN_CWD, o->workdir);
	if (o->timeout_ms > 0) {
		snprintf(text, sizeof(text), "%lld", (long long)o->timeout_ms);
		sba_process_frame_text(p, SBA_RUN_DEADLINE, text);
	}
	if (o->tty) {
		snprintf(text, sizeof(text), "%ux%u", o->rows ? o->rows : 24U,
			 o->columns ? o->columns : 80U);
		sba_process_frame_text(p, SBA_RUN_TTY, text);
	}
	if (o->lock)
		put_lock(p, o);
	if (o->detach)
		sba_process_frame(p, SBA_RUN_DETACH, "", 0);
	if (o->signal_others)
		sba_process_frame(p, SBA_RUN_OTHERS, "", 0);
	sba_process_frame(p, SBA_RUN_GO, "", 0);
	if (!o->has_stdin)
		sba_process_frame(p, SBA_RUN_EOF, "", 0);
}

int sba_exec_options_check(const struct sba_exec_options *o, struct sba_error *err)
{
	if (!o->argv || !o->argv[0] || !*o->argv[0])
		return sba_fail(err, SBA_EINVAL, "no command to run");
	for (size_t i = 0; o->env && o->env[i]; i++) {
		if (o->env[i][0] == '=' || !strchr(o->env[i], '='))
			return sba_fail(err, SBA_EINVAL, "environment: '%.40s' is not NAME=VALUE",
					o->env[i]);
	}
	/* The guest would only say that it did not understand. */
	if (o->lock && !sba_is_word(o->lock, "._-", SBA_RUN_LOCK_MAX))
		return sba_fail(err, SBA_EINVAL,
				"lock '%.80s': letters, digits, '.', '_' and '-' only, at most %d, "
				"and no '-' first",
				o->lock, SBA_RUN_LOCK_MAX);
	if (o->workdir && sba_inside_under_proc(o->workdir))
		return sba_fail(err, SBA_EREFUSED, "working directory '%s': refused under /proc",
				o->workdir);
	return 0;
}

/* One descriptor that tells of either wish to stop; the engine's token is
 * watched until it fired once. */
static int open_watch(struct sba_guest_process *p, struct sba_error *err)
{
	int engine_fd = sba_sandbox_until(p->sandbox, 0).cancel_fd;
	struct epoll_event own = { .events = EPOLLIN, .data.fd = -1 };
	struct epoll_event other = { .events = EPOLLIN, .data.fd = engine_fd };
	p->cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	p->watch_fd = epoll_create1(EPOLL_CLOEXEC);
	if (p->cancel_fd < 0 || p->watch_fd < 0 ||
	    epoll_ctl(p->watch_fd, EPOLL_CTL_ADD, p->cancel_fd, &own) < 0 ||
	    (engine_fd >= 0 && epoll_ctl(p->watch_fd, EPOLL_CTL_ADD, engine_fd, &other) < 0))
		return sba_fail_errno(err, SBA_EIO, errno, "command: event descriptor");
	return 0;
}

/* The channel is one user's, and what it started ends with it. */
static int open_link(struct sba_guest_process *p, const struct sba_exec_options *o,
		     struct sba_error *err)
{
	struct sba_hold *way_out = NULL;
	int rc = SBA_EUNSUPPORTED;
	if (!o->user && !o->detach)
		rc = sba_link_channel(p->sandbox, &p->link, err);
	else if (*p->sandbox->info.allow && /* what the rules allow is reached by the channel */
		 (rc = sba_session_hold(p->sandbox->session, -1, &way_out, err)) == 0)
		rc = SBA_EUNSUPPORTED;
	sba_hold_release(way_out); /* the session keeps it open */
	if (rc == SBA_EUNSUPPORTED)
		rc = sba_link_exec(p->sandbox, o->user, &p->link, err);
	return rc;
}

int sba_guest_exec(struct sba_sandbox *s, const struct sba_exec_options *o,
		   struct sba_process **ret, struct sba_error *err)
{
	int rc = sba_sandbox_check_whole(s, err);
	if (rc < 0)
		return rc;
	struct sba_guest_process *p = calloc(1, sizeof(*p));
	if (!p)
		return sba_fail_nomem(err);
	*p = (struct sba_guest_process){ .process.ops = &sba_guest_process_ops,
					 .sandbox = s,
					 .cancel_fd = -1,
					 .watch_fd = -1,
					 .detach = o->detach,
					 .locks = o->lock != NULL,
					 .limit.left = o->max_output > 0 ? o->max_output : -1,
					 .stdin_closed = !o->has_stdin,
					 .give_up_ms = SBA_NEVER };
	sba_buf_init(&p->staging, STAGING_MAX);
	sba_buf_init(&p->preamble, SBA_EXEC_OOB_TEXT_MAX);
	char nonce[SBA_RUN_NONCE_LEN + 1];
	rc = sba_random_hex(nonce, SBA_RUN_NONCE_LEN / 2, err);
	if (rc == 0)
		rc = open_watch(p, err);
	if (rc == 0)
		rc = open_link(p, o, err);
	/* Podman calls it an error of its own. */
	if (rc == SBA_EBROKEN || rc == SBA_ENOTFOUND || rc == SBA_EENGINE) {
		int dead = sba_sandbox_check_alive(s, "start a command", err);
		rc = dead < 0 ? dead : rc;
	}
	if (rc == 0) {
		sba_record_scan_init(&p->scan[0], nonce);
		sba_record_scan_init(&p->scan[1], nonce);
		put_start(p, o, nonce);
		if (o->timeout_ms > 0)
			p->give_up_ms = sba_until_in(o->timeout_ms + o->lock_wait_ms +
						     SBA_PROCESS_END_GRACE_MS)
						.deadline_ms;
		rc = sba_process_flush(p, err);
	}
	if (rc < 0) {
		sba_process_free(&p->process);
		return rc;
	}
	*ret = &p->process;
	return 0;
}
