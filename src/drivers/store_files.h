/* SPDX-License-Identifier: MIT */
/* A store of one file of JSON lines for each session: what four of the CLIs have,
 * and how they differ. */
#ifndef SBA_DRIVERS_STORE_FILES_H
#define SBA_DRIVERS_STORE_FILES_H

#include "drivers/store.h"

struct sba_file_store {
	const char *cli;  /* for errors */
	const char *root; /* beneath the home */
	/* The id of the session at this path beneath the root; false: it is none. */
	bool (*id_of)(const char *path, char ret[SBA_SESSION_ID_MAX + 1]);
	/* Appends the path beneath the root of a session that is put in. */
	void (*put_path)(struct sba_buf *b, const char *id, const char *workdir);
	/* Changes the first line so that the session has this id and directory;
	 * false: it is not this CLI's. NULL: nothing to change. */
	bool (*rehead)(json_t *line, const char *id, const char *workdir);
	/* Takes from one line what it tells. */
	void (*look)(struct sba_kept *k, const json_t *line);
	/* The same beneath the scratch folder of a turn aside; NULL: it has none. */
	void (*scratch_path)(struct sba_buf *b, const char *id, const char *workdir);
	/* One that is there is replaced where it is: an index has its path. */
	bool keeps_path;
	bool own_folder; /* a session is a folder; its file has the same name in each */
};

/* For the table of a store that has .files. */
int sba_files_list(const struct sba_store *s, const struct sba_inside *in,
		   struct sba_kept_list *ret, struct sba_error *err) SBA_MUST_CHECK;
int sba_files_dump(const struct sba_store *s, const struct sba_inside *in, const char *id,
		   struct sba_parts *ret, struct sba_error *err) SBA_MUST_CHECK;
int sba_files_load(const struct sba_store *s, const struct sba_inside *in,
		   const struct sba_parts *parts, const char *was, const char *id,
		   struct sba_error *err) SBA_MUST_CHECK;
int sba_files_remove(const struct sba_store *s, const struct sba_inside *in, const char *id,
		     struct sba_error *err) SBA_MUST_CHECK;
int sba_files_aside(const struct sba_store *s, const struct sba_inside *in, const char *id,
		    const char *scratch, struct sba_error *err) SBA_MUST_CHECK;
/* One part of a dump, under a name of its own. */
int sba_files_load_part(const struct sba_file_store *f, const struct sba_inside *in,
			const struct sba_part *part, const char *id,
			struct sba_error *err) SBA_MUST_CHECK;

/* ---- for the looks of the CLIs ---- */

/* Sets a string of a session unless it has one; NULL and "" are nothing. */
void sba_kept_set(char **to, const char *text);
/* The title: the first line of a prompt, cut. */
void sba_kept_title(struct sba_kept *k, const char *prompt);
/* UNIX milliseconds of an RFC 3339 time; 0 if it is none. */
int64_t sba_kept_time(const char *text);
/* The directory's name with everything but letters and digits made '-'. */
void sba_kept_mangle(struct sba_buf *b, const char *workdir);
/* "--DIRECTORY--/", slashes within made '-': so dsh and pi call a folder. */
void sba_kept_put_folder(struct sba_buf *b, const char *workdir);
/* The text of a message: a string, or the first block that has a "text". */
const char *sba_kept_text(const json_t *content);

#endif
