/* SPDX-License-Identifier: MIT */
/*
 * What an agent CLI keeps of its conversations, and how it is listed, taken
 * out, put in and removed. Part of the drivers' door. A store touches the
 * sandbox through three functions only, so that a test, and every kind of
 * sandbox, can stand in for them.
 */
#ifndef SBA_DRIVERS_STORE_H
#define SBA_DRIVERS_STORE_H

#include "base/base.h"
#include "base/limits.h"

/* ---- the three functions ---- */

struct sba_inside_run {
	const char *const *argv; /* NULL-ended */
	const char *const *env;  /* "K=V", NULL-ended, or NULL */
};

/* A sandbox as its user sees it. Paths are absolute. */
struct sba_inside {
	/* To its end, in `workdir`: stdout goes to ret_out (SBA_ELIMIT beyond its
	 * ceiling). Any exit status is a success of this function; the last line
	 * that it said on stderr is kept in ret_said. */
	int (*run)(const struct sba_inside *in, const struct sba_inside_run *run,
		   struct sba_buf *ret_out, int *ret_status, char ret_said[SBA_SAID_MAX],
		   struct sba_error *err);
	int (*read)(const struct sba_inside *in, const char *path, size_t max, struct sba_buf *ret,
		    struct sba_error *err); /* SBA_ENOTFOUND */
	/* Atomic; makes parents. */
	int (*write)(const struct sba_inside *in, const char *path, const void *data, size_t len,
		     uint32_t mode, struct sba_error *err);
	const char *home;    /* of its user */
	const char *workdir; /* where the agent works */
	void *user;
};

/* ---- sessions ---- */

/* One session. Strings are heap, "" where nothing is known. */
struct sba_kept {
	char id[SBA_SESSION_ID_MAX + 1];
	char *title; /* the first line of its first prompt, where the CLI has none */
	char *model;
	char *parent; /* id of the session that it was forked from */
	char *workdir;
	int64_t created_ms, updated_ms; /* UNIX time; 0: unknown */
};
struct sba_kept_list {
	struct sba_kept *v;
	size_t n;
};
void sba_kept_list_fini(struct sba_kept_list *l);

/* A session as it is taken out: parts in the CLI's own form, the session first. */
struct sba_part {
	char name[SBA_PART_NAME_MAX]; /* "session", "parent:ID" */
	char *data;
	size_t len;
};
struct sba_parts {
	struct sba_part *v;
	size_t n;
};
void sba_parts_fini(struct sba_parts *p);
/* The length of its first line. */
size_t sba_part_head(const struct sba_part *p);
/* Takes the bytes of `data`, which is empty afterwards. SBA_ELIMIT: all parts
 * together are too much. */
int sba_parts_add(struct sba_parts *p, const char *name, struct sba_buf *data,
		  struct sba_error *err) SBA_MUST_CHECK;

struct sba_store {
	const char *id_prefix; /* a new id is this and a UUID; NULL: made of the old one */
	/* Newest first. A file that makes no sense is left out. */
	int (*list)(const struct sba_store *s, const struct sba_inside *in,
		    struct sba_kept_list *ret, struct sba_error *err);
	/* Adds its parts. SBA_ENOTFOUND: there is no such session. */
	int (*dump)(const struct sba_store *s, const struct sba_inside *in, const char *id,
		    struct sba_parts *ret, struct sba_error *err);
	/* Puts a dump in, to be resumed in in->workdir under the name `id` (of `was`
	 * before). Replaces one of that name. SBA_EPROTO: it is none of this CLI's. */
	int (*load)(const struct sba_store *s, const struct sba_inside *in,
		    const struct sba_parts *parts, const char *was, const char *id,
		    struct sba_error *err);
	/* SBA_ENOTFOUND. SBA_EREFUSED: another session needs it. */
	int (*remove)(const struct sba_store *s, const struct sba_inside *in, const char *id,
		      struct sba_error *err);
	/* Copies what a turn aside needs into the folder `scratch`, which is there and
	 * empty. NULL: the CLI has a way of its own to leave no trace. */
	int (*aside)(const struct sba_store *s, const struct sba_inside *in, const char *id,
		     const char *scratch, struct sba_error *err);
	const struct sba_file_store *files; /* of those that share store_files.c */
};

extern const struct sba_store sba_claude_store;
extern const struct sba_store sba_codex_store;
extern const struct sba_store sba_dsh_store;
extern const struct sba_store sba_opencode_store;
extern const struct sba_store sba_pi_store;

/* A name for a copy of session `id`. */
int sba_store_new_id(const struct sba_store *store, const char *id,
		     char ret[SBA_SESSION_ID_MAX + 1], struct sba_error *err) SBA_MUST_CHECK;

#endif
