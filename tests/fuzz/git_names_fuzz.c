/* SPDX-License-Identifier: MIT */
/*
 * What git calls the files of a folder: of a repository that somebody made. Whatever it
 * says, nothing of elsewhere is packed.
 */
#include "archive/archive.h"
#include "sandbox/git.h"
#include "support/folder.h"

#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char outer[64], dir[96];

static void drop_world(void)
{
	test_folder_remove(outer);
}

static void touch(const char *path, const char *content)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert(fd >= 0 && write(fd, content, strlen(content)) == (ssize_t)strlen(content));
	close(fd);
}

static void make_world(void)
{
	char path[128];
	test_folder(outer, sizeof(outer), "git-names");
	atexit(drop_world);
	snprintf(path, sizeof(path), "%s/secret", outer);
	touch(path, "MARKER");
	snprintf(dir, sizeof(dir), "%s/d", outer);
	assert(mkdir(dir, 0700) == 0);
	snprintf(path, sizeof(path), "%s/f", dir);
	touch(path, "inside");
	snprintf(path, sizeof(path), "%s/e", dir);
	assert(mkdir(path, 0700) == 0);
	snprintf(path, sizeof(path), "%s/l", dir);
	assert(symlink("..", path) == 0);
}

static void pack(const struct sba_strv *names)
{
	static const char *const nothing[] = { NULL };
	const struct sba_pack_options o = { 0 };
	struct sba_pack *p = NULL;
	struct sba_error err = { 0 };
	char piece[65536];
	assert(sba_pack_new(&o, &p, &err) == 0);
	if (sba_pack_paths(p, "d", dir, names->v ? (const char *const *)names->v : nothing, &err) ==
	    0) {
		ssize_t n;
		while ((n = sba_pack_read(p, piece, sizeof(piece), &err)) > 0)
			assert(!memmem(piece, (size_t)n, "MARKER", 6));
	}
	sba_pack_free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	SBA_BUF struct sba_buf names = SBA_BUF_INIT(1 << 20);
	SBA_STRV struct sba_strv found = { 0 };
	struct sba_error err = { 0 };
	if (!dir[0])
		make_world();
	sba_buf_put(&names, data, size);
	int rc = sba_git_take_names(dir, "", &names, 0, sba_until_in(1000), &found, &err);
	assert(rc == 0 || (rc < 0 && err.text[0]));
	pack(&found);
	return 0;
}
