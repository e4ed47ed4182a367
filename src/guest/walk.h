/* SPDX-License-Identifier: MIT */
/*
 * A walk over a tree by several threads, a folder at a time in each. By descriptors
 * beneath the top, following no link.
 */
#ifndef SBA_GUEST_WALK_H
#define SBA_GUEST_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

enum { SBA_GUEST_WALK_THREADS_MAX = 8 };

struct sba_guest_walk_folder {
	const char *path; /* from the top; "" is the top */
	int fd;
	const void *state; /* what `enter` said of it */
};

/* Called by any thread; path is lent for the call. */
struct sba_guest_walk_visitor {
	/* A folder was opened; what it returns is its state, and its children's parent's. */
	const void *(*enter)(void *user, const struct sba_guest_walk_folder *folder);
	/* Whether a folder is walked through. */
	bool (*descend)(void *user, const struct sba_guest_walk_folder *in, const char *path,
			const char *leaf);
	/* A file or a symbolic link. */
	void (*file)(void *user, const struct sba_guest_walk_folder *in, const char *path,
		     size_t len, const struct stat *stat);
	/* A folder or file that cannot be looked at: an errno. */
	void (*failed)(void *user, const char *path, int error);
	void *user;
};

/* As many as there are processors for us, at most SBA_GUEST_WALK_THREADS_MAX. */
int sba_guest_walk_threads(void);
/* Opens a path beneath top_fd; -1 and errno. */
int sba_guest_walk_open(int top_fd, const char *path, int flags);
/* 0, or ENOMEM where it could not go on. */
int sba_guest_walk(int top_fd, int threads, const struct sba_guest_walk_visitor *visitor);
/* Runs `work` on so many threads, this one among them, until all have returned. */
void sba_guest_walk_together(int threads, void *(*work)(void *user), void *user);

#endif
