/* SPDX-License-Identifier: MIT */
/* Changes of a workspace as git's patches. */
#include "sandbox/change_list.h"

#include <stdlib.h>
#include <string.h>

enum {
	/* Two literals of base 85, or all lines of both sides, and the headers. */
	PATCH_MAX = 4 * SBA_CONTENT_MAX + SBA_MIB,
};

static int put_patch(const struct sba_changes *c, const struct sba_change_item *i,
		     struct sba_buf *out, struct sba_error *err)
{
	SBA_FREE char *old_heap = NULL, *fresh_heap = NULL;
	struct sba_diff_file old, fresh;
	int rc = sba_change_side(c, i, true, &old, &old_heap, err);
	if (rc == 0)
		rc = sba_change_side(c, i, false, &fresh, &fresh_heap, err);
	if (rc == 0)
		rc = sba_diff_patch(&old, &fresh, out, err);
	return rc < 0 ? sba_wrap(err, rc, "'%s'", i->told.path) : 0;
}

int sba_change_diff(struct sba_changes *c, size_t n, size_t max, char **ret, struct sba_error *err)
{
	const struct sba_change_item *i = n < c->n ? &c->v[n] : NULL;
	SBA_BUF struct sba_buf out = SBA_BUF_INIT(PATCH_MAX);
	if (!i)
		return sba_fail(err, SBA_ENOTFOUND, "there is no change %zu", n);
	if (i->told.without_content || i->told.binary)
		return sba_fail(err, SBA_EREFUSED, "'%s': %s", i->told.path,
				i->told.binary ? "it is binary" : i->told.without_content);
	int rc = put_patch(c, i, &out, err);
	if (rc < 0)
		return rc;
	if (out.len > 0 && memchr(out.data, '\0', out.len))
		return sba_fail(err, SBA_EREFUSED, "'%s': it is binary", i->told.path);
	if (max && out.len > max)
		return sba_fail(err, SBA_ELIMIT, "'%s': its diff is longer than %zu bytes",
				i->told.path, max);
	*ret = sba_buf_take(&out);
	return *ret ? 0 : sba_fail_nomem(err);
}

int sba_changes_patch(struct sba_changes *c, sba_write_fn *write, void *user, size_t *ret_left_out,
		      struct sba_error *err)
{
	SBA_BUF struct sba_buf out = SBA_BUF_INIT(PATCH_MAX);
	size_t left_out = 0;
	int rc = 0;
	for (size_t i = 0; rc == 0 && i < c->n; i++) {
		if (c->v[i].told.without_content) {
			left_out++;
			continue;
		}
		sba_buf_reset(&out);
		rc = put_patch(c, &c->v[i], &out, err);
		if (rc == 0 && out.len > 0)
			rc = write(user, out.data, out.len, err);
	}
	if (rc == 0 && ret_left_out)
		*ret_left_out = left_out;
	return rc;
}
