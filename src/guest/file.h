/* SPDX-License-Identifier: MIT */
/*
 * What the children that serve files share (session_file.c and file_*.c): one
 * request on stdin, its answer on stdout, with the ids of the sandbox's user.
 */
#ifndef SBA_GUEST_FILE_H
#define SBA_GUEST_FILE_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include "channel/protocol.h"

enum {
	SBA_FILE_STEP = 64 * 1024,
	SBA_FILE_NAME_MAX = 32 * 1024, /* a path within a tree */
	SBA_FILE_DEPTH_MAX = 1024,
	SBA_FILE_ZEROS_MAX = 1024 * 1024 * 1024,   /* told of at once */
	SBA_FILE_SYNTHETIC_MAX = 16 * 1024 * 1024, /* of a file that does not know its size */
	SBA_FILE_SWEEP_MAX = 65536,                /* names looked at for old staging folders */
	SBA_FILE_CONTENT_MAX = 64 * 1024 * 1024,   /* of one file, sent with its change */
};

struct sba_file_request {
	uint8_t op;
	uint32_t mode;
	uint64_t size;
	char path[SBA_CHANNEL_FILE_PATH_MAX + 1];
};

struct sba_file_bytes {
	uint8_t *data;
	size_t len;
	size_t size;
};

/* Room for so many more; 0 or an errno. */
int sba_file_grow(struct sba_file_bytes *bytes, size_t more);
/* All that is left in fd, at most max bytes (EFBIG). */
int sba_file_read_rest(int fd, uint64_t max, struct sba_file_bytes *ret);

/* Big endian, len being 1 to 8; where it is a constant, that is one instruction or two. */
static inline uint64_t sba_file_get(const uint8_t *from, size_t len)
{
	uint64_t number = 0;

	memcpy((uint8_t *)&number + sizeof(number) - len, from, len);
	return be64toh(number);
}

static inline uint8_t *sba_file_put(uint8_t *to, uint64_t number, size_t len)
{
	number = htobe64(number);
	memcpy(to, (uint8_t *)&number + sizeof(number) - len, len);
	return to + len;
}

uint8_t *sba_file_put_stat(uint8_t *to, const struct stat *stat);

bool sba_file_read_whole(int fd, void *to, size_t len);
bool sba_file_write_whole(int fd, const void *from, size_t len);
bool sba_file_is_zero(const uint8_t *data, size_t len);
/* Never waits for a fifo, follows no magic link. */
int sba_session_file_open(const char *path, uint64_t flags);
/* Makes the directories above the last component. 0 or an errno. */
int sba_file_make_parents(char *path);

/* ---- parts ---- */

struct sba_file_part {
	uint8_t kind;
	size_t len;
	uint8_t data[SBA_CHANNEL_PART_MAX];
};
/* False when the host is gone or talks nonsense. */
bool sba_file_part_read(struct sba_file_part *ret);
bool sba_file_part_write(uint8_t kind, const void *data, size_t len);

/* Bytes gathered into parts of data, full ones but the last. Whole parts of zeros become
 * a number. */
struct sba_file_out {
	size_t have;
	uint64_t zeros; /* before them */
	uint8_t part[SBA_CHANNEL_PART_MAX];
};
/* False when the host is gone. */
bool sba_file_out_put(struct sba_file_out *out, const void *data, size_t len);
/* What has been put into the part itself, which is full. */
bool sba_file_out_full(struct sba_file_out *out);
bool sba_file_out_flush(struct sba_file_out *out);

/* The last part: the outcome. Returns the exit code. */
int sba_file_part_end(int error, uint64_t kept, const char *text);

/* ---- trees (file_tree.c) ---- */

/* A path within a tree, grown and cut with the walk. */
struct sba_file_name {
	size_t len;
	char text[SBA_FILE_NAME_MAX];
};
/* Appends "/leaf"; *ret_before takes it back. ENAMETOOLONG. */
int sba_file_name_push(struct sba_file_name *name, const char *leaf, size_t *ret_before);
void sba_file_name_pop(struct sba_file_name *name, size_t before);

typedef int sba_file_leaf(void *user, int dir_fd, const char *leaf);
/* Calls for each name in a directory; the first errno ends it. */
int sba_file_each(int dir_fd, sba_file_leaf *each, void *user);
int sba_file_open_dir(int dir_fd, const char *leaf);
void sba_file_remove(int dir_fd, const char *leaf);

/* ---- mounts (file_place.c) ---- */

/* enum sba_place_flag of an absolute path without links in it. */
uint8_t sba_file_mounts(const char *path);
/* The same by the text of mountinfo(5), which it takes apart. */
uint8_t sba_file_judge_mounts(char *mounts, const char *path);

/* ---- operations; those that stream return the exit code ---- */

int sba_file_serve_place(const struct sba_file_request *request, struct sba_file_bytes *ret);
int sba_file_serve_census(const struct sba_file_request *request, struct sba_file_bytes *ret);
int sba_file_serve_write(struct sba_file_request *request);
int sba_file_serve_tar(const struct sba_file_request *request);
int sba_file_serve_put(struct sba_file_request *request);
int sba_file_serve_changes(const struct sba_file_request *request);

/* Unpacks the tar that comes in parts, the first of which has come, beneath a
 * directory. 0 or an errno; *ret_name is what it happened to. */
int sba_file_unpack(int dir_fd, struct sba_file_part *part, const char **ret_name);
/* Moves all that is in one directory into another: checked as a whole first. */
int sba_file_move_all(int from_fd, int to_fd, uint32_t flags, uint64_t *ret_kept,
		      const char **ret_name);

#endif
