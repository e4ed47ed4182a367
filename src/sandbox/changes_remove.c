/* SPDX-License-Identifier: MIT */
/* What is gone in a parent is removed in its child, by the guest: the engine has
 * no way to take a path away. */
#include "sandbox/changes.h"

#include <string.h>

#include "base/limits.h"
#include "channel/protocol.h"

enum { REMOVE_MS = 60 * 1000 };

/* A removal under way. */
struct removal {
	struct sba_process *process;
	struct sba_buf *left; /* what it says that it cannot remove */
};

/* 1: it said something; 0: it has ended. */
static int take_answer(const struct removal *r, int64_t wait_ms, struct sba_error *err)
{
	enum sba_output which;
	const char *data;
	ssize_t n = sba_process_read(r->process, wait_ms, &which, &data, err);
	if (n > 0 && which == SBA_STDOUT)
		sba_buf_put(r->left, data, (size_t)n);
	return n > 0 ? 1 : (int)n;
}

/* It answers while it is still being told. */
static int tell(const struct removal *r, const struct sba_buf *paths, struct sba_error *err)
{
	struct sba_error why;
	for (size_t at = 0; at < paths->len;) {
		ssize_t n = sba_process_write(r->process, paths->data + at, paths->len - at, err);
		if (n < 0)
			return (int)n;
		at += (size_t)n;
		if (n > 0)
			continue;
		int rc = take_answer(r, REMOVE_MS, &why);
		if (rc == 0)
			break;
		if (rc < 0 && rc != SBA_ETIMEOUT) { /* that is room for more */
			if (err)
				*err = why;
			return rc;
		}
	}
	return sba_process_close_stdin(r->process, err);
}

static int await_end(const struct removal *r, struct sba_error *err)
{
	struct sba_exit end;
	int rc;
	while ((rc = take_answer(r, -1, err)) > 0)
		;
	if (rc == 0)
		rc = sba_process_wait(r->process, -1, &end, err);
	if (rc == 0 && (end.kind != SBA_EXITED || end.number != 0))
		rc = sba_fail(err, SBA_EBROKEN, "it ended early, with %d", sba_exit_status(&end));
	return rc < 0 ? rc : sba_buf_check(r->left, "what is left", err);
}

/* What `user` (NULL: the sandbox's) cannot remove is in ret_left afterwards. */
static int remove_as(struct sba_sandbox *s, const char *user, const struct sba_buf *paths,
		     struct sba_buf *ret_left, struct sba_error *err)
{
	static const char *const argv[] = { SBA_GUEST_PATH, "remove", NULL };
	const struct sba_exec_options o = {
		.argv = argv, .user = user, .has_stdin = true, .timeout_ms = REMOVE_MS
	};
	struct removal r = { .left = ret_left };
	int rc = sba_sandbox_exec(s, &o, &r.process, err);
	if (rc == 0)
		rc = tell(&r, paths, err);
	if (rc == 0)
		rc = await_end(&r, err);
	sba_process_free(r.process);
	return rc;
}

int sba_changes_remove(struct sba_sandbox *s, const struct sba_strv *paths, struct sba_error *err)
{
	SBA_BUF struct sba_buf all = SBA_BUF_INIT(SBA_CHANGES_MAX);
	SBA_BUF struct sba_buf left = SBA_BUF_INIT(SBA_CHANGES_MAX);
	SBA_BUF struct sba_buf stay = SBA_BUF_INIT(SBA_CHANGES_MAX);
	for (size_t i = 0; i < paths->n; i++)
		sba_buf_put(&all, paths->v[i], strlen(paths->v[i]) + 1);
	int rc = sba_buf_check(&all, "paths", err);
	if (rc == 0 && all.len > 0)
		rc = remove_as(s, NULL, &all, &left, err);
	/* Neither of the two has the other's rights. */
	if (rc == 0 && left.len > 0)
		rc = remove_as(s, "0:0", &left, &stay, err);
	if (rc == 0 && stay.len > 0)
		rc = sba_fail(err, SBA_EIO, "%s cannot be removed", stay.data);
	return rc < 0 ? sba_wrap(err, rc, "remove what the parent has removed") : 0;
}
