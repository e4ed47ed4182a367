/* SPDX-License-Identifier: MIT */
/* What is gone in a parent is removed in its child, by the guest: the engine has
 * no way to take a path away. */
#include "sandbox/image_changes.h"

#include <string.h>

#include "base/limits.h"
#include "channel/protocol.h"

enum { REMOVE_MS = 60 * 1000 };

/* Its stdout is what it cannot remove. */
static int keep_left(void *user, enum sba_output which, const char *data, size_t len,
		     struct sba_error *err)
{
	struct sba_buf *left = user;
	if (which == SBA_STDOUT)
		sba_buf_put(left, data, len);
	return sba_buf_check(left, "what is left", err);
}

/* What `user` (NULL: the sandbox's) cannot remove is in ret_left afterwards. */
static int remove_as(struct sba_sandbox *s, const char *user, const struct sba_buf *paths,
		     struct sba_buf *ret_left, struct sba_error *err)
{
	static const char *const argv[] = { SBA_GUEST_PATH, "remove", NULL };
	const struct sba_exec_options o = {
		.argv = argv, .user = user, .has_stdin = true, .timeout_ms = REMOVE_MS
	};
	struct sba_process *p = NULL;
	struct sba_exit end;
	int rc = sba_sandbox_exec(s, &o, &p, err);
	if (rc == 0)
		rc = sba_process_converse(p, paths->data, paths->len, keep_left, ret_left, err);
	if (rc == 0)
		rc = sba_process_wait(p, -1, &end, err);
	if (rc == 0 && (end.kind != SBA_EXITED || end.number != 0))
		rc = sba_fail(err, SBA_EBROKEN, "it ended early, with %d", sba_exit_status(&end));
	sba_process_free(p);
	return rc;
}

int sba_image_changes_remove(struct sba_sandbox *s, const struct sba_strv *paths,
			     struct sba_error *err)
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
