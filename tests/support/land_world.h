/* SPDX-License-Identifier: MIT */
/*
 * A folder of its own for each landing test: work/ to land in, and outside/
 * with a victim that nothing may touch. Leaving checks the victim and that no
 * temporary name has stayed, and removes it all.
 */
#ifndef TESTS_LAND_WORLD_H
#define TESTS_LAND_WORLD_H

#include "archive/archive.h"
#include "support/tar_builder.h"

#include <sys/stat.h>

struct world {
	char root[64];
	char dest[128]; /* work/out, not there yet */
	char outside[128];
	bool no_openat2;
	bool raced; /* temporary names may stay */
	struct sba_buf tar;
	struct sba_land_options options; /* source_name "s", dest */
	struct sba_land_report report;
	struct sba_error err;
	size_t told; /* how often refused() was called */
	char last_refused[256];
};

void world_open(struct world *w, bool no_openat2);
void world_close(struct world *w);
/* Ends the tar and lands it; returns what sba_land() returns. */
int world_land(struct world *w);
int world_land_from(struct world *w, struct tar_feed *feed);
/* lstat of a path below work/; fails the test if it is not there. */
struct stat world_stat(const struct world *w, const char *path);
bool world_has(const struct world *w, const char *path);
void world_assert_content(const struct world *w, const char *path, const char *content);
/* As snprintf, but too long a text fails the test. */
void world_path(char *ret, size_t size, const char *fmt, ...) SBA_PRINTF(3, 4);
uint64_t world_refused(const struct world *w); /* of any kind */
/* From now on openat2 answers ENOSYS in this process, by seccomp; fails the
 * test unless it is so. */
void world_block_openat2(void);

#endif
