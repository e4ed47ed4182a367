/* SPDX-License-Identifier: MIT */
/* A folder of this host in the place of a sandbox: what drivers do inside. */
#ifndef SBA_TEST_INSIDE_HERE_H
#define SBA_TEST_INSIDE_HERE_H

#include "drivers/store.h"

struct inside_here {
	struct sba_inside in;
	char home[64];
};
/* The home is new and empty; the work directory is called /workspace. */
void inside_here_begin(struct inside_here *h);
void inside_here_end(struct inside_here *h);
/* home/path, with its folders. */
void inside_here_file(struct inside_here *h, const char *path, const char *content);
/* The whole content; NULL if it is not there. The caller frees. */
char *inside_here_read(struct inside_here *h, const char *path);

#endif
