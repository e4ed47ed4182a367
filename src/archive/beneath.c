/* SPDX-License-Identifier: MIT */
/*
 * Opens paths beneath a held directory without following any link: by
 * openat2(2) where the kernel has it and seccomp lets it through, else one
 * component at a time.
 */
#include "archive/private.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	AGAIN_MAX = 100,
	STEP_MAX = 4000, /* of a path, at once: the kernel takes less than PATH_MAX */
};

void sba_beneath_init(struct sba_beneath *b, int root_fd, bool no_openat2)
{
	b->root_fd = root_fd;
	b->no_openat2 = no_openat2;
	b->parent_fd = -1;
}

void sba_beneath_fini(struct sba_beneath *b)
{
	sba_cleanup_close(&b->parent_fd);
	b->root_fd = -1;
}

static int open_at(int dir_fd, const char *name, int flags)
{
	int fd = openat(dir_fd, name, flags | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int open_by_kernel(int root_fd, const char *rel, int flags)
{
	const struct open_how how = {
		.flags = (unsigned)(flags | O_NOFOLLOW | O_CLOEXEC),
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	/* EAGAIN: a rename elsewhere disturbed the check; trying again is the rule. */
	for (int i = 0;; i++) {
		int fd = (int)syscall(SYS_openat2, root_fd, rel, &how, sizeof(how));
		if (fd >= 0)
			return fd;
		if (errno != EAGAIN || i == AGAIN_MAX)
			return -errno;
	}
}

static int open_by_component(int root_fd, const char *rel, int flags)
{
	SBA_CLOSE int held = -1;
	int dir_fd = root_fd;
	for (;;) {
		char name[SBA_LAND_NAME_MAX + 1];
		size_t len = strcspn(rel, "/");
		if (len == 0 || len >= sizeof(name))
			return len == 0 ? -EINVAL : -ENAMETOOLONG;
		memcpy(name, rel, len);
		name[len] = '\0';
		if (strcmp(name, "..") == 0)
			return -EXDEV;
		if (rel[len] == '\0')
			return open_at(dir_fd, name, flags);
		int fd = open_at(dir_fd, name, O_PATH | O_DIRECTORY);
		if (fd < 0)
			return fd;
		sba_cleanup_close(&held);
		dir_fd = held = fd;
		rel += len + 1;
	}
}

static int open_step(struct sba_beneath *b, int dir_fd, const char *rel, int flags)
{
	if (!b->no_openat2) {
		int fd = open_by_kernel(dir_fd, rel, flags);
		/* Old kernels lack it; older seccomp profiles answer EPERM. */
		if (fd != -ENOSYS && fd != -EPERM)
			return fd;
		b->no_openat2 = true;
	}
	return open_by_component(dir_fd, rel, flags);
}

/* How much of a long path is opened first: up to a '/'. */
static size_t first_step(const char *rel)
{
	size_t len = STEP_MAX;
	while (len > 0 && rel[len] != '/')
		len--;
	return len;
}

int sba_beneath_open(struct sba_beneath *b, const char *rel, int flags)
{
	SBA_CLOSE int held = -1;
	int dir_fd = b->root_fd;
	if (rel[0] == '\0')
		return open_at(b->root_fd, ".", flags);
	while (strlen(rel) > STEP_MAX) {
		char step[STEP_MAX + 1];
		size_t len = first_step(rel);
		if (len == 0)
			return -ENAMETOOLONG;
		memcpy(step, rel, len);
		step[len] = '\0';
		int fd = open_step(b, dir_fd, step, O_PATH | O_DIRECTORY);
		if (fd < 0)
			return fd;
		sba_cleanup_close(&held);
		dir_fd = held = fd;
		rel += len + 1;
	}
	return open_step(b, dir_fd, rel, flags);
}

int sba_beneath_parent(struct sba_beneath *b, const char *rel, const char **leaf)
{
	const char *slash = strrchr(rel, '/');
	*leaf = slash ? slash + 1 : rel;
	if (!slash)
		return b->root_fd;
	size_t len = (size_t)(slash - rel);
	if (len >= sizeof(b->parent))
		return -ENAMETOOLONG;
	if (b->parent_fd >= 0 && strncmp(b->parent, rel, len) == 0 && b->parent[len] == '\0')
		return b->parent_fd;
	sba_cleanup_close(&b->parent_fd);
	memcpy(b->parent, rel, len);
	b->parent[len] = '\0';
	b->parent_fd = sba_beneath_open(b, b->parent, O_PATH | O_DIRECTORY);
	return b->parent_fd;
}

int sba_path_components(const char *rel)
{
	int n = 0;
	if (strnlen(rel, SBA_LAND_PATH_MAX) == SBA_LAND_PATH_MAX)
		return 0;
	for (;; rel++) {
		size_t len = strcspn(rel, "/");
		bool dots =
			(len == 1 && rel[0] == '.') || (len == 2 && rel[0] == '.' && rel[1] == '.');
		if (len == 0 || len > SBA_LAND_NAME_MAX || dots)
			return 0;
		n++;
		rel += len;
		if (*rel == '\0')
			return n;
	}
}
