/* SPDX-License-Identifier: MIT */
/* The changes of a workspace: what the list (change_list.c), the patch (change_patch.c)
 * and taking it home (change_apply.c) share. */
#ifndef SBA_SANDBOX_CHANGE_LIST_H
#define SBA_SANDBOX_CHANGE_LIST_H

#include <sandbox-agent/changes.h>

#include "diff/diff.h"
#include "sandbox/kept.h"

struct sba_change_item {
	struct sba_change told;
	const struct sba_record *old;   /* that tells of what was; NULL: nothing was */
	const struct sba_record *fresh; /* NULL: nothing is */
};

struct sba_changes {
	struct sba_sandbox *sandbox; /* lent */
	struct sba_kept kept;
	struct sba_records records;
	struct sba_change_item *v;
	size_t n, left_out;
};

/* Of records that were taken; what of them is kept goes over to the changes. */
int sba_changes_make(struct sba_sandbox *s, struct sba_kept *take_k, struct sba_records *take_r,
		     struct sba_changes **ret, struct sba_error *err) SBA_MUST_CHECK;

/* A side as the diff takes it. ret->content.data is heap in *ret_heap (the caller
 * frees), or lent. Of what is the same on both sides, both are empty. */
int sba_change_side(const struct sba_changes *c, const struct sba_change_item *i, bool old,
		    struct sba_diff_file *ret, char **ret_heap,
		    struct sba_error *err) SBA_MUST_CHECK;

#endif
