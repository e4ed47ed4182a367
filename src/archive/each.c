/* SPDX-License-Identifier: MIT */
/* A tar told to someone entry by entry, who judges it. */
#include "archive/private.h"

#include <archive_entry.h>

static int visit(struct sba_tar_in *in, struct archive_entry *e, const struct sba_tar_visitor *v,
		 struct sba_error *err)
{
	const char *name = archive_entry_pathname(e);
	la_int64_t size = archive_entry_size(e);
	char type = sba_tar_type(e);
	const struct sba_tar_seen seen = {
		.name = name ? name : "",
		.type = type ? type : '?',
		.size = size > 0 ? (uint64_t)size : 0,
	};
	int rc = v->entry(v->user, &seen, err);
	if (rc == 0 && seen.type == '0')
		rc = sba_tar_in_content(in, seen.size, v->sink, v->user, err);
	return rc < 0 ? rc : 0;
}

int sba_tar_each(sba_tar_read_fn *read, void *user, const struct sba_tar_visitor *v,
		 struct sba_error *err)
{
	struct sba_tar_in *in;
	struct archive_entry *e;
	int rc = sba_tar_in_new(read, user, &in, err);
	if (rc < 0)
		return rc;
	while ((rc = sba_tar_in_next(in, &e, err)) > 0 && (rc = visit(in, e, v, err)) == 0)
		;
	sba_tar_in_free(in);
	return rc;
}
