/* SPDX-License-Identifier: MIT */
/*
 * What is kept of a workspace inside its sandbox, for changes to be told against it:
 * lists and packs in SBA_KEPT_DIR, which are root's (channel/protocol.h). What is read
 * back is hostile input all the same: a sandbox may run as root.
 */
#ifndef SBA_SANDBOX_KEPT_H
#define SBA_SANDBOX_KEPT_H

#include "sandbox/files.h"
#include "sandbox/records.h"

struct sba_kept_list {
	uint32_t number;
	int64_t turn;
	enum sba_kept_phase phase;
};

struct sba_kept {
	char folder[SBA_INSIDE_PATH_MAX]; /* the workspace; "": nothing is kept */
	bool gitignore;                   /* what its .gitignore files name is no change */
	struct sba_kept_list *v;          /* by number */
	size_t n;
};
/* Whether a workspace's past is kept inside, where there is something of root's; else the
 * handle keeps it (states.h). */
bool sba_kept_is_inside(const struct sba_sandbox *s);
/* SBA_EUNSUPPORTED: there is no channel. Nothing kept is no failure. */
int sba_kept_load(struct sba_sandbox *s, struct sba_kept *ret,
		  struct sba_error *err) SBA_MUST_CHECK;
/* For whoever can do without: *ret_guest tells whether there is a channel, and the folder is
 * the sandbox's workdir where no workspace is kept. */
int sba_kept_find(struct sba_sandbox *s, struct sba_kept *ret, bool *ret_guest,
		  struct sba_error *err) SBA_MUST_CHECK;
void sba_kept_fini(struct sba_kept *k);
/* The number of the last list; 0: none. */
uint32_t sba_kept_last(const struct sba_kept *k);
/* Of the last one that was kept before or as the turn began; turn 0: of the first. */
uint32_t sba_kept_before(const struct sba_kept *k, int64_t turn);

/* Looks through a folder. */
struct sba_look {
	const char *folder;
	uint32_t flags, last; /* as of struct sba_channel_changes */
	uint64_t hash_max;    /* 0: SBA_HASHED_MAX */
	/* With SBA_CHANGES_HASHES: what an earlier look has told, instead of the list that is kept
	 * inside; NULL: that one. */
	const struct sba_buf *given;
	struct sba_until until;
};
int sba_look(struct sba_sandbox *s, const struct sba_look *look, struct sba_records *ret,
	     struct sba_error *err) SBA_MUST_CHECK;
/* The same with what is kept of the workspace, up to that list. */
int sba_kept_look(struct sba_sandbox *s, const struct sba_kept *k, uint32_t last,
		  struct sba_records *ret, struct sba_error *err) SBA_MUST_CHECK;

/* Keeps what differs from the last list as one more, with its contents; nothing, where
 * nothing does. k->folder and k->gitignore are kept with the first one. */
int sba_kept_save(struct sba_sandbox *s, struct sba_kept *k, int64_t turn,
		  enum sba_kept_phase phase, const struct sba_records *r,
		  struct sba_error *err) SBA_MUST_CHECK;

#endif
