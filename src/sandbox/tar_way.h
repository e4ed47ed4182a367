/* SPDX-License-Identifier: MIT */
/* A tar of something inside, wherever it comes from. */
#ifndef SBA_SANDBOX_TAR_WAY_H
#define SBA_SANDBOX_TAR_WAY_H

#include "sandbox/files.h"
#include "sandbox/image_changes.h"

/* Where it comes from: the engine, or the guest. */
struct sba_tar_way {
	struct sba_sandbox *sandbox;
	struct sba_hold *hold;
	struct sba_channel *channel; /* may be NULL */
	bool by_guest;
	bool unseen; /* the user may not look */
	struct sba_channel_tar *tar;
	struct sba_ahead *ahead;
	struct sba_tree tree;            /* where there is neither: the table's */
	struct sba_owners owners;        /* of an engine that does not tell them */
	char above[SBA_INSIDE_PATH_MAX]; /* the folder that its names are in */
	struct sba_reown *reown;
	uint32_t mode;
	uint64_t size;
	char path[SBA_INSIDE_PATH_MAX]; /* real */
};

struct sba_tar_find {
	const char *path; /* absolute */
	bool contents;
	/* As it is inside: names are "./…" where contents are asked for, not "FOLDER/…", and
	 * owners are told on every engine. */
	bool raw;
	void (*note)(void *user, const char *name, int why);
	void *user;
};
/* Looks for it and opens the tar. */
int sba_tar_way_open(struct sba_sandbox *s, const struct sba_tar_find *f, struct sba_until until,
		     struct sba_tar_way **ret, struct sba_error *err) SBA_MUST_CHECK;
/* Begins anew, by the guest. */
int sba_tar_way_by_guest(struct sba_tar_way *w, const struct sba_tar_find *f,
			 struct sba_until until, struct sba_error *err) SBA_MUST_CHECK;
ssize_t sba_tar_way_read(void *way, void *buf, size_t size, struct sba_error *err);
/* Ends the transfer at once, also in the middle: until then the engine locks the
 * container. */
void sba_tar_way_stop(struct sba_tar_way *w);
void sba_tar_way_close(struct sba_tar_way *w); /* NULL is allowed */

#endif
