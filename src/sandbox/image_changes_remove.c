/* SPDX-License-Identifier: MIT */
/* What is gone in a parent is removed in its child, by the guest: the engine has
 * no way to take a path away. */
#include "sandbox/image_changes.h"

#include "base/limits.h"

int sba_image_changes_remove(struct sba_sandbox *s, const struct sba_strv *paths,
			     struct sba_error *err)
{
	SBA_BUF struct sba_buf all = SBA_BUF_INIT(SBA_CHANGES_MAX);
	SBA_BUF struct sba_buf left = SBA_BUF_INIT(SBA_CHANGES_MAX);
	SBA_BUF struct sba_buf stay = SBA_BUF_INIT(SBA_CHANGES_MAX);
	int rc = sba_guest_paths_put(&all, paths, err);
	if (rc == 0 && all.len > 0)
		rc = sba_guest_paths(s, "remove", NULL, &all, &left, err);
	/* Neither of the two has the other's rights. */
	if (rc == 0 && left.len > 0)
		rc = sba_guest_paths(s, "remove", "0:0", &left, &stay, err);
	if (rc == 0 && stay.len > 0)
		rc = sba_fail(err, SBA_EIO, "%s cannot be removed", stay.data);
	return rc < 0 ? sba_wrap(err, rc, "remove what the parent has removed") : 0;
}
