/* SPDX-License-Identifier: MIT */
/*
 * The guest's unpacker, with the sandbox's rights and whatever a host sends: nothing comes
 * to be outside the folder, and nothing special within it.
 */
#include "guest/file.h"

#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FILE_MAX = 1 << 20 };

static void must(bool ok)
{
	if (!ok)
		abort();
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)flag;
	must(S_ISREG(st->st_mode) || S_ISDIR(st->st_mode) || S_ISLNK(st->st_mode));
	must((st->st_mode & 07000) == 0);
	must(ftw->level != 1 || strcmp(path + ftw->base, "in") == 0);
	return remove(path);
}

static void put_part(int fd, uint8_t kind, const uint8_t *data, size_t len)
{
	uint8_t head[SBA_CHANNEL_PART_HEAD] = { kind };

	sba_file_put(head + 1, len, 3);
	must(sba_file_write_whole(fd, head, sizeof(head)) && sba_file_write_whole(fd, data, len));
}

static void put_piece(int fd, const uint8_t *data, size_t len)
{
	uint8_t count[SBA_CHANNEL_PART_ZEROS];

	if (!sba_file_is_zero(data, len)) {
		put_part(fd, SBA_PART_DATA, data, len);
		return;
	}
	sba_file_put(count, len, sizeof(count));
	put_part(fd, SBA_PART_ZEROS, count, sizeof(count));
}

/* As a host sends them: pieces of the size that the first byte says, and a word at the end. */
static void give(const uint8_t *data, size_t size, size_t step)
{
	int fd = memfd_create("parts", MFD_CLOEXEC);

	must(fd >= 0);
	for (size_t at = 0; at < size; at += step)
		put_piece(fd, data + at, step < size - at ? step : size - at);
	put_part(fd, SBA_PART_END, data, 0);
	must(lseek(fd, 0, SEEK_SET) == 0 && dup2(fd, STDIN_FILENO) == STDIN_FILENO);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct sba_file_part part;
	const struct rlimit most = { FILE_MAX, RLIM_INFINITY };
	char root[] = "/dev/shm/sba-fuzz-XXXXXX", in[64];
	const char *name;
	int fd;

	if (size == 0)
		return 0;
	signal(SIGXFSZ, SIG_IGN);
	must(setrlimit(RLIMIT_FSIZE, &most) == 0);
	must(mkdtemp(root) != NULL);
	snprintf(in, sizeof(in), "%s/in", root);
	must(mkdir(in, 0700) == 0);
	fd = open(in, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(fd >= 0);
	give(data + 1, size - 1, 1 + (size_t)data[0] * 16);
	must(sba_file_part_read(&part));
	if (part.kind != SBA_PART_END)
		(void)!sba_file_unpack(fd, &part, &name);
	close(fd);
	must(nftw(root, remove_one, 16, FTW_PHYS | FTW_DEPTH) == 0);
	return 0;
}
