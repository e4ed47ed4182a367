/* SPDX-License-Identifier: MIT */
/* Commands of the guest that take paths: for what the engine has no way to do. */
#include "sandbox/image_changes.h"

#include <string.h>

#include "channel/protocol.h"

enum { PATHS_MS = 60 * 1000 };

static int keep_said(void *user, enum sba_output which, const char *data, size_t len,
		     struct sba_error *err)
{
	struct sba_buf *said = user;
	if (which == SBA_STDOUT)
		sba_buf_put(said, data, len);
	return sba_buf_check(said, "what the guest says", err);
}

int sba_guest_paths(struct sba_sandbox *s, const char *verb, const char *user,
		    const struct sba_buf *paths, struct sba_buf *ret_said, struct sba_error *err)
{
	const char *const argv[] = { SBA_GUEST_PATH, verb, NULL };
	const struct sba_exec_options o = {
		.argv = argv, .user = user, .has_stdin = true, .timeout_ms = PATHS_MS
	};
	struct sba_process *p = NULL;
	struct sba_exit end;
	int rc = sba_sandbox_exec(s, &o, &p, err);
	if (rc == 0)
		rc = sba_process_converse(p, paths->data, paths->len, keep_said, ret_said, err);
	if (rc == 0)
		rc = sba_process_wait(p, -1, &end, err);
	if (rc == 0 && (end.kind != SBA_EXITED || end.number != 0))
		rc = sba_fail(err, SBA_EBROKEN, "it ended early, with %d", sba_exit_status(&end));
	sba_process_free(p);
	return rc;
}

int sba_guest_paths_put(struct sba_buf *to, const struct sba_strv *paths, struct sba_error *err)
{
	for (size_t i = 0; i < paths->n; i++)
		sba_buf_put(to, paths->v[i], strlen(paths->v[i]) + 1);
	return sba_buf_check(to, "paths", err);
}
