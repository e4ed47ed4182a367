/* SPDX-License-Identifier: MIT */
/*
 * What is in a folder of a sandbox, and what changed in its workspace: since that was
 * copied in or since a turn began; as a list, as a patch that `git apply` takes, and
 * taken home. What a sandbox says of its files is as good as its word; it is checked, and no
 * content is taken whose SHA-256 is another one.
 *
 * A snapshot may be read by several threads at once. Changes are for one thread at a time,
 * and the sandbox, which their contents are fetched from, outlives them.
 *
 * Files and symbolic links are looked at; folders are there for what is in them. Folders
 * called .git, node_modules, .venv, venv, __pycache__, .mypy_cache, .pytest_cache and
 * .ruff_cache are passed over. In a workspace that was a git work tree, so is what its
 * .gitignore files name, unless it was copied in.
 */
#ifndef SANDBOX_AGENT_CHANGES_H
#define SANDBOX_AGENT_CHANGES_H

#include <sandbox-agent/export.h>
#include <sandbox-agent/files.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- a snapshot ---- */

struct sba_snapshot;

/* Zero means the default everywhere. */
struct sba_snapshot_options {
	const char *folder;     /* NULL: the workspace */
	bool gitignore;         /* what .gitignore files name is left out */
	bool everything;        /* no folder is passed over for its name, but .git */
	uint64_t max_file_size; /* what is larger has no hash; default 50 MiB */
	int64_t timeout_ms;     /* default: the engine handle's */
	uint64_t reserved[8];
};

/* Strings are lent with the snapshot. */
struct sba_snapshot_file {
	const char *path;   /* from the folder; bytes, not UTF-8 */
	const char *sha256; /* of the content, 64 hex digits; "" of a link, and of what is too
			     * large */
	uint64_t size;
	uint32_t mode;    /* st_mode */
	int64_t mtime_ns; /* UNIX time */
	const char *link; /* a link's target; else NULL */
	uint64_t reserved[8];
};

/* How a backend tells of one (sba_backend.snapshot): strings are copied, sha256 may be NULL.
 * mode 0: of the path it is only known that it could not be looked at. 0, or the code that
 * the telling is to end with. */
typedef int sba_snapshot_fn(void *user, const struct sba_snapshot_file *file,
			    struct sba_error *err);

/* Every file below a folder, by path. What did not change since the last turn, or since
 * the workspace came in, or since the last snapshot of that folder, is not read again; a
 * snapshot that reads much leaves what it has found inside, where it is root's; of a local sandbox
 * the handle keeps it, of the last eight folders. Where the backend
 * has no way of its own, GNU's find, xargs and sha256sum inside look, each time anew and without
 * gitignore. SBA_EUNSUPPORTED: there are none. SBA_EREFUSED: a folder that the sandbox is not let
 * at. */
SBA_API int sba_sandbox_snapshot(struct sba_sandbox *s, const struct sba_snapshot_options *options,
				 struct sba_snapshot **ret, struct sba_error *err);
SBA_API size_t sba_snapshot_count(const struct sba_snapshot *n);
/* NULL behind its end. */
SBA_API const struct sba_snapshot_file *sba_snapshot_at(const struct sba_snapshot *n, size_t i);
/* How many files and folders could not be looked at. */
SBA_API size_t sba_snapshot_left_out(const struct sba_snapshot *n);
SBA_API void sba_snapshot_free(struct sba_snapshot *n); /* NULL is allowed */

/* ---- changes ---- */

struct sba_changes;

enum sba_change_kind {
	SBA_CHANGE_CREATED,
	SBA_CHANGE_MODIFIED,
	SBA_CHANGE_DELETED,
	SBA_CHANGE_RENAMED, /* the same content under another name */
	SBA_CHANGE_MODE,    /* the permissions and nothing else */
};
/* "created", "modified", "deleted", "renamed", "mode"; never NULL. */
SBA_API const char *sba_change_kind_name(enum sba_change_kind kind);

/* Strings are lent with the changes. */
struct sba_change {
	enum sba_change_kind kind;
	const char *path;            /* from the workspace; bytes, not UTF-8 */
	const char *old_path;        /* of SBA_CHANGE_RENAMED, else NULL */
	uint32_t old_mode, mode;     /* st_mode; 0 where it is not there */
	uint64_t old_size, size;     /* bytes; of a link its target's */
	bool binary;                 /* what is known of it is no text */
	uint64_t added, removed;     /* lines, of text */
	const char *without_content; /* why there is neither diff nor patch of it; else NULL */
	uint64_t reserved[8];
};

/* Zero means the default everywhere. */
struct sba_changes_options {
	int64_t turn;       /* since that turn began; 0: since the workspace came in */
	int64_t timeout_ms; /* default: the engine handle's */
	uint64_t reserved[8];
};

/* By path. SBA_ENOTFOUND: nothing is kept of the workspace as it was, as no folder was
 * copied in and there was no turn. Where the sandbox is no engine's, this handle keeps it:
 * as a folder was copied in by it or its first turn began, and as its last one did. */
SBA_API int sba_sandbox_changes(struct sba_sandbox *s, const struct sba_changes_options *options,
				struct sba_changes **ret, struct sba_error *err);
SBA_API size_t sba_changes_count(const struct sba_changes *c);
/* NULL behind the end. */
SBA_API const struct sba_change *sba_changes_at(const struct sba_changes *c, size_t i);
/* The folder inside that the paths begin at; lent. */
SBA_API const char *sba_changes_folder(const struct sba_changes *c);
/* How many files and folders could not be looked at. */
SBA_API size_t sba_changes_left_out(const struct sba_changes *c);
SBA_API void sba_changes_free(struct sba_changes *c); /* NULL is allowed */

/* A change as a unified diff, as git shows it, of at most max bytes (0: any number). The
 * caller frees with free(). SBA_ELIMIT: it is longer. SBA_EREFUSED: it is binary, or
 * without_content. */
SBA_API int sba_change_diff(struct sba_changes *c, size_t i, size_t max, char **ret,
			    struct sba_error *err);
/* All of them as a patch for `git apply`, binary files included. *ret_left_out (may be
 * NULL): how many are not in it, being without_content. */
SBA_API int sba_changes_patch(struct sba_changes *c, sba_write_fn *write, void *user,
			      size_t *ret_left_out, struct sba_error *err);

/* ---- taking them home ---- */

/* Zero means the default everywhere. */
struct sba_apply_options {
	bool check; /* whether it would do; nothing is changed */
	/* Told of each conflict: the path, and what is in the way; may be NULL. */
	void (*conflict)(void *user, const char *path, const char *why);
	void *user;
	uint64_t reserved[8];
};

struct sba_apply_report {
	uint64_t written, removed, renamed, modes;
	uint64_t already; /* that are so here already */
	uint64_t conflicts;
	uint64_t reserved[8];
};

/* Changes a folder of this host in the same way, whole or not at all. A file that is not
 * here what it was inside before is a conflict: SBA_ECONFLICT, all of them having been
 * told, and nothing has changed. Contents that are not in c are fetched. Set-id bits stay
 * behind. Links that lead out of the folder, and whatever would go through one, are
 * conflicts. *ret_report may be NULL. */
SBA_API int sba_changes_apply(struct sba_changes *c, const char *dir,
			      const struct sba_apply_options *options,
			      struct sba_apply_report *ret_report, struct sba_error *err);

/* ---- commits that were made inside ---- */

/* Zero means the default everywhere. */
struct sba_commits_options {
	const char *branch; /* here; NULL: "sandbox-agent/NAME", NAME the sandbox's */
	bool force;         /* in place of commits that those inside are not built on */
	bool check;         /* only tells how many there are, as the git inside says */
	uint64_t max_size;  /* bytes of all that is sent; default 1 GiB */
	int64_t timeout_ms; /* default: the engine handle's */
	uint64_t reserved[8];
};

struct sba_commits_report {
	char branch[256];     /* that leads to them; commits 0: that has them already, or "" */
	char commit[65];      /* HEAD inside, in hex; "": there is none */
	char old[65];         /* what the branch was before; "": it is new */
	uint64_t commits;     /* that were in no branch here; 0: nothing has changed */
	uint64_t uncommitted; /* files inside that are not as in the last commit */
	uint64_t reserved[8];
};

/* Takes the commits of HEAD of the workspace, as far as they are not here, into a branch of
 * the repository that dir, a folder of this host, is in. They are packed by the git inside
 * and taken by the git here, which checks every object as a hostile server's; hooks and
 * configuration stay where they are. Neither the work tree nor a branch that is checked out
 * is touched. SBA_EREFUSED: there is no repository or no git, here or inside, or the branch
 * is checked out. SBA_ECONFLICT: the branch has commits that those inside are not built on.
 * SBA_EPROTO: what came does not pass. SBA_ELIMIT. *ret_report may be NULL. Blocks. */
SBA_API int sba_sandbox_fetch_commits(struct sba_sandbox *s, const char *dir,
				      const struct sba_commits_options *options,
				      struct sba_commits_report *ret_report, struct sba_error *err);

#ifdef __cplusplus
}
#endif

#endif
