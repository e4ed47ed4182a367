/* SPDX-License-Identifier: MIT */
/*
 * Lands arbitrary bytes, with openat2 and without (the first byte says which
 * and how large the pieces are), and aborts if anything appears outside the
 * destination or stays behind under a temporary name.
 */
#include "support/tar_builder.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
	if (!ok)
		abort();
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)flag, (void)ftw;
	/* What has landed: files and directories, nothing special about them. */
	must(S_ISREG(st->st_mode) || S_ISDIR(st->st_mode));
	must((st->st_mode & 07000) == 0 && (S_ISDIR(st->st_mode) || st->st_nlink == 1));
	return remove(path);
}

static void check_names(const char *dir, const char *may_be)
{
	DIR *d = opendir(dir);
	must(d != NULL);
	for (const struct dirent *e; (e = readdir(d));) {
		bool known = e->d_name[0] == '.' && strlen(e->d_name) <= 2;
		must(known || strcmp(e->d_name, may_be) == 0);
	}
	closedir(d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char root[] = "/tmp/sba-fuzz-XXXXXX", work[64], dest[80];
	if (size == 0)
		return 0;
	must(mkdtemp(root) != NULL);
	snprintf(work, sizeof(work), "%s/work", root);
	snprintf(dest, sizeof(dest), "%s/out", work);
	must(mkdir(work, 0700) == 0);
	struct tar_feed feed = { .data = (const char *)data + 1, .len = size - 1 };
	feed.piece = (size_t)(data[0] >> 1) * 64;
	const struct sba_land_options options = {
		.source_name = "s",
		.dest = dest,
		.max_bytes = 1 << 20,
		.max_entries = 200,
		.no_openat2 = data[0] & 1,
	};
	struct sba_land_report report;
	struct sba_error err;
	int rc = sba_land(&options, tar_feed_read, &feed, &report, &err);
	must((rc == 0) == (access(dest, F_OK) == 0));
	must(rc != 0 || report.bytes <= options.max_bytes);
	check_names(root, "work");
	check_names(work, "out");
	must(nftw(root, remove_one, 16, FTW_PHYS | FTW_DEPTH) == 0);
	return 0;
}
