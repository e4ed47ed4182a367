/* SPDX-License-Identifier: MIT */
/*
 * Commits of somebody else, packed by git, taken into a repository of this host. Nothing
 * of the bundle is believed: its header is read here, its objects are checked by git as
 * those of a hostile server are, and no branch leads to them before.
 */
#ifndef SBA_SANDBOX_BUNDLE_H
#define SBA_SANDBOX_BUNDLE_H

#include "base/base.h"
#include "base/limits.h"

enum { SBA_OBJECT_NAME = 65 }; /* SHA-256 in hex, and a NUL */

/* 40 or 64 lower-case hex digits. */
bool sba_object_name_ok(const char *s, size_t len);

/* Of the first bytes of a bundle of one reference: what that is, and where the pack
 * begins. SBA_EPROTO. */
struct sba_bundle_head {
	char tip[SBA_OBJECT_NAME];
	size_t len;
};
int sba_bundle_head(const char *data, size_t len, struct sba_bundle_head *ret,
		    struct sba_error *err) SBA_MUST_CHECK;

/* A repository of this host, and the branch that is to lead to the commits. */
struct sba_home {
	const char *dir;
	const char *branch;
	struct sba_until until;
	char old[SBA_OBJECT_NAME]; /* what the branch is; "": there is none */
};
/* SBA_EREFUSED: dir is in no repository, the branch cannot be so called, or is checked
 * out. */
int sba_home_open(struct sba_home *h, struct sba_error *err) SBA_MUST_CHECK;
/* Lines for `git rev-list --stdin`: without what is here. */
int sba_home_haves(const struct sba_home *h, struct sba_buf *ret,
		   struct sba_error *err) SBA_MUST_CHECK;
/* Whether a commit is in a branch or tag here, "HEAD" where in what is checked out alone:
 * its name, which the caller frees; NULL: in none. */
int sba_home_holder(const struct sba_home *h, const char *commit, char **ret,
		    struct sba_error *err) SBA_MUST_CHECK;
/* Takes the objects of a bundle, at most max bytes of it, and tells how many commits of
 * its tip are in no branch here. SBA_EPROTO: it is none, or not whole. */
int sba_home_take(const struct sba_home *h, int bundle_fd, uint64_t max,
		  struct sba_bundle_head *ret, uint64_t *ret_commits,
		  struct sba_error *err) SBA_MUST_CHECK;
/* Lets the branch lead to a commit that was taken. SBA_ECONFLICT: it has commits that
 * that one is not built on, and force is not given. */
int sba_home_move(const struct sba_home *h, const char *commit, bool force,
		  struct sba_error *err) SBA_MUST_CHECK;

#endif
