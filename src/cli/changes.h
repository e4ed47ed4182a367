/* SPDX-License-Identifier: MIT */
/* What `diff`, `patch`, `apply` and `run` share about changes of a workspace. */
#ifndef SBA_CLI_CHANGES_H
#define SBA_CLI_CHANGES_H

#include "cli.h"

json_t *cli_json_change(const struct sba_change *c);
/* To a file, whole or not at all; NULL or "-": stdout. */
int cli_changes_patch(struct cli *cli, struct sba_changes *c, const char *path,
		      struct sba_error *err);
/* Conflicts are told; *ret_json (the caller's, may be NULL) on failure too. */
int cli_changes_apply(struct cli *cli, struct sba_changes *c, const char *dir, bool check,
		      json_t **ret_json, struct sba_error *err);

/* Commits made inside, for the repository that dir is in. */
struct cli_commits {
	const char *dir, *branch;
	bool force, check;
};
/* What became of them is told; *ret_json is the caller's. */
int cli_changes_commits(struct cli *cli, struct sba_sandbox *s, const struct cli_commits *o,
			struct sba_commits_report *ret, json_t **ret_json, struct sba_error *err);

#endif
