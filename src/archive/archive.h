/* SPDX-License-Identifier: MIT */
/*
 * Tar in both ways, in a stream and in constant memory, and the one judge of
 * what may land on the host's disk. libarchive parses. Packing is our own,
 * because its writer changes names by the locale; so is landing, by file
 * descriptor beneath a directory that is already open, because its extraction
 * flags leave devices, planted links, sizes, modes and races to the archive.
 * It knows nothing of engines: bytes come and go through functions.
 */
#ifndef SBA_ARCHIVE_H
#define SBA_ARCHIVE_H

#include <sandbox-agent/files.h>

#include "base/base.h"

/* ---- landing: a tar from a sandbox becomes files here (land.c) ---- */

/* Yields the next bytes of the tar: > 0, 0 at the end of the transport,
 * negative on failure. The end must be the transport's true end: a tar
 * without trailer looks complete to any parser. */
typedef ssize_t sba_tar_read_fn(void *user, void *buf, size_t size, struct sba_error *err);

struct sba_land_report {
	uint64_t files, directories;
	uint64_t bytes; /* of content written */
	uint64_t kept;  /* files that were there and stayed: no_clobber */
	uint64_t refused[SBA_REFUSED_KINDS];
};

/* Zero in a budget means its default. */
struct sba_land_options {
	const char *source_name;    /* every entry lies beneath this name (the base name of
				     * what was asked for), which is stripped */
	const char *dest;           /* final name: a path here */
	bool replace;               /* existing regular files may be replaced */
	bool no_clobber;            /* existing regular files stay, and that is no error */
	bool merge;                 /* an existing directory at dest receives what is in the tree */
	const char *const *exclude; /* patterns, NULL-terminated; NULL: none */
	uint64_t max_bytes;         /* default 64 GiB, logical sizes (holes count) */
	uint64_t max_entries;       /* default 4 million */
	int max_depth;              /* of directories; default SBA_LAND_DEPTH_MAX */
	bool no_openat2;            /* for tests: take the fallback */
	/* Told of each refused entry (name as bytes); may be NULL. */
	void (*refused)(void *user, const char *name, enum sba_refusal why);
	/* Told now and then how many bytes and files there are; may be NULL. */
	void (*progress)(void *user, uint64_t bytes, uint64_t files);
	void *user;
};

/*
 * Lands one file or one tree: only regular files and directories; a hard link
 * lands as a copy of the file that it names within the archive; set-id and
 * sticky bits never, other modes and mtimes kept; everything first under a
 * temporary name beside dest (within it, for a merge), then renamed: dest is
 * there whole or not at all, and nothing temporary stays on any failure. What a
 * killed client left there is removed first. A merge is checked as a whole
 * before anything moves; a directory is never replaced by a file nor the
 * reverse. An existing directory at dest without merge: SBA_EEXIST.
 * SBA_ELIMIT: a budget. SBA_EPROTO: broken or cut tar.
 *
 * Patterns of `exclude` are lines of a .gitignore without '!': one without '/'
 * matches a name anywhere, one with '/' a path from the top, '/' at its end
 * directories only, "**" any number of directories.
 */
int sba_land(const struct sba_land_options *options, sba_tar_read_fn *read, void *read_user,
	     struct sba_land_report *ret, struct sba_error *err) SBA_MUST_CHECK;

/* ---- editing: files of a folder here change, whole or not at all (edit.c) ---- */

struct sba_edit;

/* What a path beneath the folder is. */
struct sba_edit_seen {
	uint32_t mode; /* st_mode; 0: nothing is there */
	uint64_t size;
	int64_t mtime_ns;
	unsigned char sha256[SBA_SHA256_SIZE]; /* of a file, if it was asked for */
	char link[4096];                       /* a link's target */
};

/* Holds the folder open. Nothing in it changes until the commit but for a temporary
 * folder, which goes with the edit. All paths are relative, checked here, and opened
 * beneath the folder, following no link. */
int sba_edit_open(const char *dir, struct sba_edit **ret, struct sba_error *err) SBA_MUST_CHECK;
/* Undoes what was not committed. NULL is allowed. */
void sba_edit_close(struct sba_edit *e);
/* SBA_EREFUSED: a link is in the way. */
int sba_edit_look(struct sba_edit *e, const char *path, bool hash, struct sba_edit_seen *ret,
		  struct sba_error *err) SBA_MUST_CHECK;
/* Whether there is more in a folder than folders and what goes: 1, and ret (SBA_LAND_PATH_MAX
 * bytes) leads to the first that stays. */
int sba_edit_remains(struct sba_edit *e, const char *folder,
		     bool (*goes)(void *user, const char *path), void *user, char *ret,
		     struct sba_error *err) SBA_MUST_CHECK;
/* A file that will be there; the content is written to *ret_fd, which is lent until the
 * next call. mode: its permissions. A folder that removals leave without a file gives way. */
int sba_edit_file(struct sba_edit *e, const char *path, uint32_t mode, int *ret_fd,
		  struct sba_error *err) SBA_MUST_CHECK;
/* SBA_EREFUSED: it leads out of the folder. */
int sba_edit_link(struct sba_edit *e, const char *path, const char *target,
		  struct sba_error *err) SBA_MUST_CHECK;
int sba_edit_remove(struct sba_edit *e, const char *path, struct sba_error *err) SBA_MUST_CHECK;
int sba_edit_mode(struct sba_edit *e, const char *path, uint32_t mode,
		  struct sba_error *err) SBA_MUST_CHECK;
/* All of it happens, or none: what was done is undone. What is no longer as it was when
 * it was looked at is SBA_ECONFLICT. Folders that removals have left empty go too. */
int sba_edit_commit(struct sba_edit *e, struct sba_error *err) SBA_MUST_CHECK;

/* ---- removing (remove.c) ---- */

/* Removes what `name` in dir_fd is, a whole tree too, following no link. What
 * cannot be removed stays. */
void sba_remove_tree(int dir_fd, const char *name);

/* ---- packing: files here become a tar for a sandbox (pack.c) ---- */

struct sba_pack;

/* Told what is left out and why; names are bytes. */
typedef void sba_left_out_fn(void *user, const char *name, enum sba_refusal why);

struct sba_pack_options {
	const char *const *exclude; /* patterns; lent while the pack lives */
	sba_left_out_fn *left_out;  /* may be NULL */
	uint32_t uid, gid;          /* every entry's owner */
	bool set_id;                /* set-id bits come along */
	int64_t fixed_mtime;        /* for reproducible contexts; < 0: each file's own */
	const char *beneath;        /* repack: the first name of every path, which is taken off */
	/* Beyond these (0: none) reading fails with SBA_EUNSUPPORTED, and the report tells
	 * of an `unfit` entry: for one who unpacks by whole paths, and holes in full. */
	size_t name_max;   /* bytes of a path */
	uint64_t hole_max; /* bytes of a file that are holes; not for repack */
	/* For a tar of which another than its owner moves the directories: they belong to
	 * that group, which may write in them. */
	bool set_dir_gid;
	uint32_t dir_gid;
	/* Told of each directory that is sent, as it is to be in the end; may be NULL. */
	void (*directory)(void *user, const char *name, uint32_t mode, int64_t mtime);
	/* Told now and then; may be NULL. */
	void (*progress)(void *user, uint64_t bytes, uint64_t files);
	void *user;
};

int sba_pack_new(const struct sba_pack_options *options, struct sba_pack **ret,
		 struct sba_error *err) SBA_MUST_CHECK;
void sba_pack_free(struct sba_pack *p);
/* Entries are queued and read lazily, in order, as the tar is read. `name` is
 * the path in the archive, without leading '/'. */
int sba_pack_bytes(struct sba_pack *p, const char *name, const void *data, size_t len,
		   uint32_t mode, struct sba_error *err) SBA_MUST_CHECK; /* copies data */
/* The same of data that is lent until the pack is freed. */
int sba_pack_lent(struct sba_pack *p, const char *name, const void *data, size_t len, uint32_t mode,
		  struct sba_error *err) SBA_MUST_CHECK;
int sba_pack_dir(struct sba_pack *p, const char *name, uint32_t mode,
		 struct sba_error *err) SBA_MUST_CHECK;
/* mtime in UNIX seconds; < 0: now. */
int sba_pack_dir_at(struct sba_pack *p, const char *name, uint32_t mode, int64_t mtime,
		    struct sba_error *err) SBA_MUST_CHECK;
/* A file or a whole tree from the host: walked by descriptors without
 * following links; set-id bits dropped; a symlink is sent only if it stays
 * inside the tree; sockets, fifos, devices are left out and counted. Hard
 * links are sent as files. A file that shrinks while it is read is an error. */
int sba_pack_path(struct sba_pack *p, const char *name, const char *host_path,
		  struct sba_error *err) SBA_MUST_CHECK;
/* As sba_pack_path(), but only these paths (relative to host_path, NULL-terminated list;
 * their parent directories come along). */
int sba_pack_paths(struct sba_pack *p, const char *name, const char *host_path,
		   const char *const *relative, struct sba_error *err) SBA_MUST_CHECK;
/* Owner of the entries queued from now on. */
void sba_pack_owner(struct sba_pack *p, uint32_t uid, uint32_t gid);
/* The tar's bytes: fits sba_source_fn of the engine. */
ssize_t sba_pack_read(void *pack, void *buf, size_t size, struct sba_error *err);

struct sba_pack_report {
	uint64_t files, directories, symlinks, bytes;
	uint64_t left_out; /* sockets, fifos, devices, links that lead out; not what was excluded */
	bool unfit;        /* something was beyond name_max or hole_max */
};
void sba_pack_report_get(const struct sba_pack *p, struct sba_pack_report *ret);

/* ---- repacking: a tar that a user gives, for a sandbox (repack.c) ---- */

struct sba_repack;

/* What `read` yields becomes a tar of files, directories, hard links and links that
 * stay within it; names that lead out and everything special are left out. Owner,
 * patterns and bits are those of the options. Reading it asks `read`. */
int sba_repack_new(const struct sba_pack_options *options, sba_tar_read_fn *read, void *user,
		   struct sba_repack **ret, struct sba_error *err) SBA_MUST_CHECK;
void sba_repack_free(struct sba_repack *r); /* NULL is allowed */
ssize_t sba_repack_read(void *repack, void *buf, size_t size, struct sba_error *err);
void sba_repack_report_get(const struct sba_repack *r, struct sba_pack_report *ret);

/* ---- owners that a tar does not tell (reown.c) ---- */

/* Told a name, without "./" in front and '/' at the end, and what its header says, which
 * it may correct. */
typedef void sba_tar_owner_fn(void *user, const char *name, uint32_t *uid, uint32_t *gid);

/* What `read` yields with other owners in its headers, and all else as it is. Nothing is
 * judged but what must be understood for that: SBA_EPROTO. */
struct sba_reown;
int sba_reown_new(sba_tar_read_fn *read, void *read_user, sba_tar_owner_fn *owner, void *owner_user,
		  struct sba_reown **ret, struct sba_error *err) SBA_MUST_CHECK;
void sba_reown_free(struct sba_reown *r); /* NULL is allowed */
ssize_t sba_reown_read(void *reown, void *buf, size_t size, struct sba_error *err);

/* ---- carrying: what one sandbox holds, for others (carry.c) ---- */

/* Makes one tar of several, in a file. */
struct sba_carry;

/* The file is lent, empty, and must be writable at any offset. It becomes `max` bytes
 * long at most, holes included: SBA_ELIMIT beyond. */
int sba_carry_new(int fd, uint64_t max, struct sba_carry **ret,
		  struct sba_error *err) SBA_MUST_CHECK;
void sba_carry_free(struct sba_carry *c); /* NULL is allowed */
/* For tars that do not tell the truth about owners; told each name as it is carried. */
void sba_carry_set_owners(struct sba_carry *c, sba_tar_owner_fn *owner, void *user);
/* Adds every entry of a tar beneath `prefix` ("": as they are named): files,
 * directories and links with their owners and modes. Devices, fifos and names
 * that lead out are left out and counted. All of the tar or nothing of it. */
int sba_carry_tar(struct sba_carry *c, const char *prefix, sba_tar_read_fn *read, void *user,
		  struct sba_error *err) SBA_MUST_CHECK;
struct sba_carry_directory {
	const char *name;
	uint32_t mode, uid, gid;
	int64_t mtime; /* UNIX seconds */
};
/* Adds a directory without its content. */
int sba_carry_dir(struct sba_carry *c, const struct sba_carry_directory *dir,
		  struct sba_error *err) SBA_MUST_CHECK;
/* Ends the tar; *ret_size is the length of the file. */
int sba_carry_end(struct sba_carry *c, uint64_t *ret_size, struct sba_error *err) SBA_MUST_CHECK;

struct sba_carry_report {
	uint64_t files, directories, symlinks, bytes;
	uint64_t left_out;
};
void sba_carry_report_get(const struct sba_carry *c, struct sba_carry_report *ret);

/* Reads such a file from its start; several may, each with a reader of its own. */
struct sba_carry_reader {
	int fd; /* lent */
	uint64_t size, at;
};
/* Fits sba_source_fn of the engine. */
ssize_t sba_carry_read(void *reader, void *buf, size_t size, struct sba_error *err);

/* ---- one file out of a tar ---- */

/* Takes the next bytes of a content, holes as zeros. */
typedef int sba_tar_sink_fn(void *user, const void *data, size_t len, struct sba_error *err);
/* The one regular file in the tar, whatever its size, to the sink. */
int sba_tar_one_stream(sba_tar_read_fn *read, void *user, sba_tar_sink_fn *sink, void *sink_user,
		       struct sba_error *err) SBA_MUST_CHECK;

/* The content of the one regular file in the tar; SBA_EREFUSED if it is something else. */
int sba_tar_one_file(sba_tar_read_fn *read, void *user, size_t max, struct sba_buf *ret,
		     struct sba_error *err) SBA_MUST_CHECK;

/* ---- a tar, entry by entry (each.c) ---- */

struct sba_tar_seen {
	const char *name; /* bytes, as it stands there; lent for the call */
	char type;        /* '0' file, '1' hard link, '2' symlink, '5' directory; '?' else */
	uint64_t size;    /* of a file */
};
struct sba_tar_visitor {
	/* 0: its content goes to `sink`; 1: it is passed over; negative breaks off. */
	int (*entry)(void *user, const struct sba_tar_seen *seen, struct sba_error *err);
	sba_tar_sink_fn *sink; /* NULL if every entry is passed over */
	void *user;
};
/* To the end of the transport. Nothing is judged here. SBA_EPROTO: broken or cut. */
int sba_tar_each(sba_tar_read_fn *read, void *user, const struct sba_tar_visitor *v,
		 struct sba_error *err) SBA_MUST_CHECK;

#endif
