/* SPDX-License-Identifier: MIT */
/*
 * A command's stream from its beginning to its end: what the service says of it is decoded
 * as it comes; what is to be ended is ended inside, with all that it started.
 */
#include "base/limits.h"
#include "remote/private.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	PIECE = 64 * SBA_KIB,
	END_MS = 20 * 1000,    /* for a command that was ended to be seen to end */
	SIGNAL_MS = 15 * 1000, /* for a signal to arrive */
};

/* ---- its end by force ---- */

/* Whatever has the command's id in its environment: what was started as a daemon, too. What
 * carries it goes only with KILL, which is done when nothing was found twice. */
static const char signal_script[] =
	"i=$1 s=$2 n=0 e=0; while [ $n -lt 100 ] && [ $e -lt 2 ]; do n=$((n+1)) h=; "
	"for p in $(grep -lsF -e \"SANDBOX_AGENT_COMMAND=$i\" $3 /proc/[0-9]*/environ); do "
	"p=${p#/proc/}; kill -\"$s\" \"${p%/environ}\" 2>/dev/null && h=1; done; "
	"[ \"$s\" = 9 ] || exit 0; if [ \"$h\" ]; then e=0; else e=$((e+1)); fi; done; "
	"[ $e = 2 ]";

static int run_quietly(struct sba_remote_box *b, const char *const *argv, struct sba_error *err)
{
	const struct sba_exec_options o = { .argv = argv, .workdir = "/" };
	struct sba_remote_command *c = NULL;
	int rc = sba_remote_command_new(b, &o, &c, err);
	if (rc < 0 || !c)
		return rc;
	c->deadline_ms = sba_until_in(SIGNAL_MS).deadline_ms;
	rc = sba_remote_converse(c, err);
	if (c->over)
		rc = sba_exit_status(&c->exit) == 0
			     ? 0
			     : sba_fail(err, SBA_EBROKEN, "sh: it ended with %d inside",
					sba_exit_status(&c->exit));
	sba_remote_command_free(c);
	return rc;
}

int sba_remote_signal(struct sba_remote_box *b, const char *id, int number, struct sba_error *err)
{
	char text[16], carrier[80];
	snprintf(text, sizeof(text), "%d", number);
	snprintf(carrier, sizeof(carrier), "-eSANDBOX_AGENT_CARRIER=%s", id);
	const char *const argv[] = {
		"sh", "-c", signal_script, "sh", id, text, number == SIGKILL ? carrier : "", NULL
	};
	int rc = run_quietly(b, argv, err);
	return rc < 0 ? sba_wrap(err, rc, "send signal %d", number) : 0;
}

/* ---- the stream ---- */

struct reading {
	struct sba_http_response *answer;
	bool stopping, signalled; /* it is to be ended; it was */
	int64_t end_ms;           /* then whoever waits for its end has waited long enough */
	char piece[PIECE];
};

static struct sba_until until_of(const struct sba_remote_command *c, const struct reading *r)
{
	struct sba_until u = { r->end_ms, r->stopping ? c->drop_watch : c->stop_watch };
	if (!r->stopping)
		u.deadline_ms = sba_until_in(SBA_REMOTE_SILENCE_MS).deadline_ms;
	if (u.deadline_ms > c->deadline_ms)
		u.deadline_ms = c->deadline_ms;
	return u;
}

static void end_inside(struct sba_remote_command *c, struct reading *r)
{
	struct sba_error why;
	static const struct sba_exit killed = { .kind = SBA_SIGNALED, .number = SIGKILL };
	if (r->signalled || c->over || sba_remote_box_is_closed(c->box))
		return;
	r->signalled = true;
	if (sba_remote_signal(c->box, c->id, SIGKILL, &why) < 0)
		sba_log("remote", "%s", why.text);
	else if (r->stopping)
		c->killed = killed;
}

/* Nothing came: it is to end, it was given up, or it is lost. 0: go on. */
static int on_nothing(struct sba_remote_command *c, struct reading *r, int rc,
		      struct sba_error *err)
{
	if (rc == SBA_ECANCELED && !r->stopping && !sba_remote_box_is_closed(c->box)) {
		r->stopping = true;
		r->end_ms = sba_until_in(END_MS).deadline_ms;
		return 0;
	}
	if (rc == SBA_ECANCELED)
		return sba_fail(err, SBA_EBROKEN, "command: it was given up");
	if (rc == SBA_ETIMEOUT && !r->stopping)
		return sba_fail(err, SBA_ELOST,
				"command: its stream has said nothing for %d s, and was to tell "
				"that it lives",
				SBA_REMOTE_SILENCE_MS / 1000);
	return rc;
}

static int read_on(struct sba_remote_command *c, struct reading *r, struct sba_error *err)
{
	const struct sba_remote_kind *kind = c->box->remote->kind;
	while (!c->whole) {
		/* What has not begun would not be found. */
		if (r->stopping && c->started)
			end_inside(c, r);
		ssize_t n = sba_http_response_read(r->answer, r->piece, sizeof(r->piece),
						   until_of(c, r), err);
		int rc = n > 0    ? kind->decode(c, r->piece, (size_t)n, err)
			 : n == 0 ? kind->decode(c, NULL, 0, err)
				  : on_nothing(c, r, (int)n, err);
		if (rc < 0 || n == 0)
			return rc;
	}
	return 0;
}

static int open_stream(struct sba_remote_command *c, struct reading *r, struct sba_error *err)
{
	struct sba_until until = { sba_until_in(SBA_REMOTE_CALL_MS).deadline_ms, c->drop_watch };
	if (until.deadline_ms > c->deadline_ms)
		until.deadline_ms = c->deadline_ms;
	return c->box->remote->kind->stream(c->box, &c->request, until, &r->answer, err);
}

/* What is known of its end, if anything is. */
static int settle(struct sba_remote_command *c, struct reading *r, int rc, struct sba_error *err)
{
	if (c->over)
		return 0;
	if (rc == 0)
		rc = sba_fail(err, SBA_ELOST, "command: its stream ended before it did%s%s",
			      *c->said ? ": " : "", c->said);
	/* Of one that may run on nobody would hear any more. */
	if (c->threaded &&
	    (rc == SBA_ELOST || rc == SBA_ETIMEOUT || rc == SBA_EPROTO || r->stopping))
		end_inside(c, r);
	if (c->killed.kind == SBA_SIGNALED) {
		sba_remote_ended(c, &c->killed);
		return 0;
	}
	return sba_remote_explain(c->box, rc, err);
}

int sba_remote_converse(struct sba_remote_command *c, struct sba_error *err)
{
	struct reading *r = malloc(sizeof(*r));
	if (!r)
		return sba_fail_nomem(err);
	memset(r, 0, offsetof(struct reading, piece));
	int rc = open_stream(c, r, err);
	if (rc == 0)
		rc = read_on(c, r, err);
	sba_http_response_close(r->answer);
	rc = settle(c, r, rc, err);
	free(r);
	return rc;
}

/* ---- input ---- */

void sba_remote_feed_input(struct sba_remote_command *c)
{
	const struct sba_remote_kind *kind = c->box->remote->kind;
	const struct sba_until ended = { SBA_NEVER, c->ended_fd };
	struct sba_error why = { 0 };
	char piece[PIECE];
	ssize_t n = 1;
	int rc = sba_wait_fd(c->started_fd, POLLIN, ended, &why);
	while (rc >= 0 && n > 0 && (rc = sba_wait_fd(c->in, POLLIN, ended, &why)) > 0) {
		n = read(c->in, piece, sizeof(piece));
		if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
			n = 1;
			continue;
		}
		rc = kind->input(c, n > 0 ? piece : NULL, n > 0 ? (size_t)n : 0,
				 sba_until_sooner(ended, SBA_REMOTE_CALL_MS), &why);
	}
	explicit_bzero(piece, sizeof(piece));
	if (rc < 0 && rc != SBA_ECANCELED)
		sba_log("remote", "input: %s", why.text);
	/* What is not read any more is for nobody. */
	sba_cleanup_close(&c->in);
	c->in = -1;
}

static int copy_input(struct sba_remote_command *c, int fd, uint64_t *ret_size,
		      struct sba_error *err)
{
	const struct sba_until until = { SBA_NEVER, c->stop_watch };
	char piece[PIECE];
	ssize_t n = 1;
	int rc = 0;
	*ret_size = 0;
	while (n > 0 && (rc = sba_wait_fd(c->in, POLLIN, until, err)) > 0) {
		n = read(c->in, piece, sizeof(piece));
		if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
			n = 1;
			continue;
		}
		if (n > 0 && sba_write_all(fd, piece, (size_t)n, err) < 0)
			return SBA_EIO;
		*ret_size += n > 0 ? (uint64_t)n : 0;
	}
	return rc < 0 ? rc : 0;
}

int sba_remote_keep_input(struct sba_remote_command *c, struct sba_error *err)
{
	static const struct sba_exit killed = { .kind = SBA_SIGNALED, .number = SIGKILL };
	SBA_CLOSE int fd = -1;
	uint64_t size;
	int rc = sba_open_unnamed(&fd, err);
	if (rc == 0)
		rc = copy_input(c, fd, &size, err);
	/* It was ended before it began. */
	if (rc == SBA_ECANCELED && !sba_remote_box_is_closed(c->box))
		sba_remote_ended(c, &killed);
	if (rc < 0)
		return rc;
	if (lseek(fd, 0, SEEK_SET) < 0)
		return sba_fail_errno(err, SBA_EIO, errno, "command: its input");
	const struct sba_until until = { sba_until_in(SBA_REMOTE_CALL_MS).deadline_ms,
					 c->stop_watch };
	rc = c->box->remote->kind->put(c->box, c->input, fd, size, until, err);
	return rc < 0 ? sba_remote_explain(c->box, sba_wrap(err, rc, "command: its input"), err)
		      : 0;
}
