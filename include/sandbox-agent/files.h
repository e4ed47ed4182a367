/* SPDX-License-Identifier: MIT */
/*
 * Files into a sandbox and out of it: trees, single files, tar streams. All of
 * it in constant memory, whole or not at all, and no longer without progress than
 * a minute. A path inside is absolute. What lies on a tmpfs, a volume or another
 * mount goes through the sandbox's own user, all else as root, by the engine.
 *
 * Several threads may copy at once through one sandbox handle. Besides what each says:
 * SBA_EBROKEN: the sandbox does not run. SBA_EIO: a file of this host. SBA_ETIMEOUT: the
 * deadline, or a minute without progress. SBA_EINVAL: the path inside is not absolute.
 */
#ifndef SANDBOX_AGENT_FILES_H
#define SANDBOX_AGENT_FILES_H

#include <sandbox-agent/error.h>

#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sba_sandbox;

/* Lent for the call. */
struct sba_transfer_progress {
	uint64_t bytes, files; /* so far */
	uint64_t total;        /* bytes in all; 0: not known */
};

/* Why something does not go along. */
enum sba_refusal {
	SBA_REFUSED_SYMLINK, /* download: none does */
	SBA_REFUSED_LEAVING, /* upload: a symbolic link that leads out of what is copied */
	SBA_REFUSED_DEVICE,  /* character or block device */
	SBA_REFUSED_FIFO,
	SBA_REFUSED_SOCKET,
	SBA_REFUSED_NAME,      /* absolute, "..", empty, too long or deep, outside the asked name */
	SBA_REFUSED_DUPLICATE, /* another of that name came before it */
	SBA_REFUSED_UNREADABLE, /* the sandbox's user may not read it */
	SBA_REFUSED_OTHER,      /* unknown type; hard link to something that did not land */
	SBA_REFUSED_KINDS,
};
/* "symbolic link", "fifo"; lent for ever. */
SBA_API const char *sba_refusal_text(enum sba_refusal why);

/* Zero means the default everywhere. */
struct sba_transfer_options {
	int64_t timeout_ms; /* in all; default: the engine handle's */
	bool contents;      /* of a folder: what is in it goes into the destination, not the
			     * folder under its own name */
	bool replace;       /* download: existing regular files may be replaced; an upload may
			     * always do so */
	bool no_clobber;    /* existing regular files stay, which is no error: see report.kept */
	bool set_id;        /* upload: set-user-id and set-group-id bits come along */
	bool gitignore;     /* upload of a folder: only what git tracks or does not ignore */
	/* What stays behind, as lines of a .gitignore without '!'; NULL-ended, or NULL. */
	const char *const *exclude;
	uint64_t max_bytes;   /* download: default 64 GiB */
	uint64_t max_entries; /* download: default 4 million */
	int max_depth;        /* download: default 1024 directories */
	/* Told now and then; may be NULL. */
	void (*progress)(void *user, const struct sba_transfer_progress *p);
	/* Told of each entry that does not go along (bytes, not UTF-8) and why, but not of
	 * those that a pattern names; may be NULL. */
	void (*refused)(void *user, const char *name, enum sba_refusal why);
	void *user;
	uint64_t reserved[16];
};

/* What was copied. */
struct sba_transfer_report {
	uint64_t files, directories, symlinks, bytes;
	uint64_t refused; /* links, devices, sockets, unsafe names, … */
	uint64_t kept;    /* files that were there and stayed: no_clobber */
	uint64_t reserved[8];
};

/*
 * Copies a file or a tree in. An existing directory at `path` receives it under
 * its own name, as cp does; parents inside that are missing are made (which the
 * program's `cp` does not want); a directory that is there is merged into, and
 * never replaced by a file nor the reverse: SBA_EEXIST, and nothing has changed then. Owner is the
 * sandbox's user. Symlinks come along where they stay within the tree. It is in place when this
 * returns 0. *ret_report may be NULL.
 */
SBA_API int sba_sandbox_upload(struct sba_sandbox *s, const char *host_path, const char *path,
			       const struct sba_transfer_options *options,
			       struct sba_transfer_report *ret_report, struct sba_error *err);
/*
 * Copies a file or a tree out: regular files and directories only, hard links as
 * copies, whole or not at all. The folder that host_path lies in must be there. An
 * existing directory at host_path receives it under its own name; one of that name
 * is merged into, as above. SBA_ENOTFOUND:
 * no such path inside, or no such folder here. SBA_ELIMIT: a budget.
 */
SBA_API int sba_sandbox_download(struct sba_sandbox *s, const char *path, const char *host_path,
				 const struct sba_transfer_options *options,
				 struct sba_transfer_report *ret_report, struct sba_error *err);
/* Copies a project folder to `path` (NULL: /workspace). In a git work tree:
 * tracked and not-ignored files and .git, submodules' too (without hooks, credentials and
 * foreign config); elsewhere everything. *ret_report may be NULL. */
SBA_API int sba_sandbox_add_workspace(struct sba_sandbox *s, const char *host_dir, const char *path,
				      const struct sba_transfer_options *options,
				      struct sba_transfer_report *ret_report,
				      struct sba_error *err);

/* What is at a path inside, links followed, as the sandbox's user sees it. */
struct sba_file_stat {
	uint32_t mode; /* st_mode */
	uint32_t uid, gid;
	int64_t size;
	int64_t mtime_ns;
	uint64_t reserved[8];
};
/* SBA_ENOTFOUND: nothing is there. */
SBA_API int sba_sandbox_stat(struct sba_sandbox *s, const char *path, struct sba_file_stat *ret,
			     struct sba_error *err);

/* ---- streams ---- */

/* The next bytes, 0 at the end, or a negative code with err filled. It should give
 * up by itself when nothing comes. */
typedef ssize_t sba_read_fn(void *user, void *buf, size_t size, struct sba_error *err);
/* Takes all of the bytes: 0, or a negative code with err filled. */
typedef int sba_write_fn(void *user, const void *data, size_t len, struct sba_error *err);

/* A tar of a file or folder inside, exactly as the sandbox has it: whoever unpacks
 * it must distrust it. Names begin with that of the file or folder; with
 * options.contents they are those in the folder, and begin with "./". */
SBA_API int sba_sandbox_download_tar(struct sba_sandbox *s, const char *path, sba_write_fn *write,
				     void *user, const struct sba_transfer_options *options,
				     struct sba_error *err);
/* Unpacks a plain tar into a folder that is there. Names that lead out of it and
 * special files are left out; owner is the sandbox's user, whatever the tar says. */
SBA_API int sba_sandbox_upload_tar(struct sba_sandbox *s, sba_read_fn *read, void *user,
				   const char *path, const struct sba_transfer_options *options,
				   struct sba_transfer_report *ret_report, struct sba_error *err);

/* One regular file of any size; links are followed. `write` has had some of it when
 * this fails in the middle. SBA_EREFUSED: it is something else. timeout_ms: 0: the
 * engine handle's. */
SBA_API int sba_sandbox_read(struct sba_sandbox *s, const char *path, int64_t timeout_ms,
			     sba_write_fn *write, void *user, struct sba_error *err);

/* Zero means the default everywhere. */
struct sba_write_options {
	int64_t timeout_ms; /* default: the engine handle's */
	bool set_mode;      /* else that of the file which is there, or 0644 */
	uint32_t mode;
	const char *owner; /* "USER[:GROUP]" by the sandbox's own passwd, or numbers; NULL: that
			    * of the file which is there, or the sandbox's user */
	uint64_t reserved[8];
};
/* One file, whole or not at all; makes parents, follows a link. */
SBA_API int sba_sandbox_write(struct sba_sandbox *s, const char *path, sba_read_fn *read,
			      void *user, const struct sba_write_options *options,
			      struct sba_error *err);

#ifdef __cplusplus
}
#endif

#endif
