/* SPDX-License-Identifier: MIT */
/* Folders that wait are a stack that the threads share; see walk.h. */
#include "guest/walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "guest/file.h"

struct waiting {
	struct waiting *next;
	const void *state; /* of the folder that it is in */
	int depth;
	char path[];
};

struct walk {
	int top_fd;
	const struct sba_guest_walk_visitor *visitor;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct waiting *stack;
	int busy; /* threads that may still find folders */
	bool out_of_memory;
};

/* A folder that one thread is in. */
struct visit {
	struct walk *walk;
	struct sba_guest_walk_folder folder;
	int depth;
	struct sba_file_name name;
};

int sba_guest_walk_threads(void)
{
	cpu_set_t set;
	int count;

	CPU_ZERO(&set);
	count = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
	return count < SBA_GUEST_WALK_THREADS_MAX ? count : SBA_GUEST_WALK_THREADS_MAX;
}

/* One folder after the other, none of which may be a link. */
static int open_by_parts(int top_fd, const char *path, int flags)
{
	int dir_fd = top_fd;

	for (;;) {
		char part[NAME_MAX + 1];
		size_t len = strcspn(path, "/");
		bool last = path[len] == '\0';
		int fd, error;

		if (len == 0 || len > NAME_MAX) {
			fd = -1;
			error = len ? ENAMETOOLONG : EINVAL;
		} else {
			memcpy(part, path, len);
			part[len] = '\0';
			fd = strcmp(part, "..") == 0
				     ? -1
				     : openat(dir_fd, part,
					      last ? flags
						   : O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
			error = strcmp(part, "..") == 0 ? EXDEV : errno;
		}
		if (dir_fd != top_fd)
			close(dir_fd);
		errno = error;
		if (fd < 0 || last)
			return fd;
		dir_fd = fd;
		path += len + 1;
	}
}

int sba_guest_walk_open(int top_fd, const char *path, int flags)
{
	/* openat2() takes no others with O_PATH. */
	int more = flags & O_PATH ? 0 : O_NONBLOCK | O_NOCTTY;
	const struct open_how how = {
		.flags = (unsigned int)(flags | more | O_NOFOLLOW | O_CLOEXEC),
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	const char *name = *path ? path : ".";
	int fd;

	do {
		fd = (int)syscall(SYS_openat2, top_fd, name, &how, sizeof(how));
	} while (fd < 0 && errno == EAGAIN);
	/* Where the kernel or its seccomp profile is too old. */
	if (fd < 0 && (errno == ENOSYS || errno == EPERM))
		fd = open_by_parts(top_fd, name, (int)how.flags);
	return fd;
}

static void wait_for(struct walk *walk, const struct visit *visit, const char *path)
{
	size_t len = strlen(path) + 1;
	struct waiting *item = malloc(sizeof(*item) + len);

	pthread_mutex_lock(&walk->lock);
	if (item) {
		*item = (struct waiting){
			.next = walk->stack,
			.state = visit ? visit->folder.state : NULL,
			.depth = visit ? visit->depth + 1 : 0,
		};
		memcpy(item->path, path, len);
		walk->stack = item;
	} else {
		walk->out_of_memory = true;
	}
	pthread_cond_signal(&walk->changed);
	pthread_mutex_unlock(&walk->lock);
}

/* ---- one folder ---- */

static void folder_found(struct visit *visit, const char *leaf)
{
	const struct sba_guest_walk_visitor *visitor = visit->walk->visitor;

	if (!visitor->descend(visitor->user, &visit->folder, visit->name.text, leaf))
		return;
	if (visit->depth == SBA_FILE_DEPTH_MAX)
		visitor->failed(visitor->user, visit->name.text, ENAMETOOLONG);
	else
		wait_for(visit->walk, visit, visit->name.text);
}

static void entry_found(struct visit *visit, const struct dirent *entry)
{
	const struct sba_guest_walk_visitor *visitor = visit->walk->visitor;
	struct stat stat;
	size_t before;

	if (sba_file_name_push(&visit->name, entry->d_name, &before)) {
		visitor->failed(visitor->user, visit->name.text, ENAMETOOLONG);
		return;
	}
	if (entry->d_type == DT_DIR) {
		folder_found(visit, entry->d_name);
	} else if (fstatat(visit->folder.fd, entry->d_name, &stat, AT_SYMLINK_NOFOLLOW) < 0) {
		if (errno != ENOENT)
			visitor->failed(visitor->user, visit->name.text, errno);
	} else if (S_ISDIR(stat.st_mode)) {
		folder_found(visit, entry->d_name);
	} else if (S_ISREG(stat.st_mode) || S_ISLNK(stat.st_mode)) {
		visitor->file(visitor->user, &visit->folder, visit->name.text, visit->name.len,
			      &stat);
	}
	sba_file_name_pop(&visit->name, before);
}

static int read_folder(struct visit *visit)
{
	DIR *dir = fdopendir(visit->folder.fd);
	const struct dirent *entry;
	int error = 0;

	if (!dir) {
		error = errno;
		close(visit->folder.fd);
		return error;
	}
	do {
		errno = 0;
		entry = readdir(dir);
		if (!entry)
			error = errno;
		else if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			entry_found(visit, entry);
	} while (entry);
	closedir(dir);
	return error;
}

static void walk_folder(struct visit *visit, const struct waiting *item)
{
	const struct sba_guest_walk_visitor *visitor = visit->walk->visitor;
	int error = 0;

	visit->depth = item->depth;
	visit->name.len = strlen(item->path);
	memcpy(visit->name.text, item->path, visit->name.len + 1);
	visit->folder = (struct sba_guest_walk_folder){
		.path = item->path,
		.fd = sba_guest_walk_open(visit->walk->top_fd, item->path, O_RDONLY | O_DIRECTORY),
		.state = item->state,
	};
	if (visit->folder.fd < 0) {
		error = errno;
	} else {
		visit->folder.state = visitor->enter(visitor->user, &visit->folder);
		error = read_folder(visit);
	}
	/* What went while we came is not there. */
	if (error && (error != ENOENT || item->depth == 0))
		visitor->failed(visitor->user, item->path, error);
}

/* ---- all of them ---- */

/* NULL: there will be none any more. */
static struct waiting *next_folder(struct walk *walk)
{
	struct waiting *item;

	pthread_mutex_lock(&walk->lock);
	walk->busy--;
	while (!walk->stack && walk->busy > 0)
		pthread_cond_wait(&walk->changed, &walk->lock);
	item = walk->stack;
	if (item) {
		walk->stack = item->next;
		walk->busy++;
	} else {
		pthread_cond_broadcast(&walk->changed);
	}
	pthread_mutex_unlock(&walk->lock);
	return item;
}

static void *walk_folders(void *user)
{
	struct walk *walk = user;
	struct visit *visit = malloc(sizeof(*visit));
	struct waiting *item;

	pthread_mutex_lock(&walk->lock);
	walk->busy++;
	walk->out_of_memory = walk->out_of_memory || !visit;
	pthread_mutex_unlock(&walk->lock);
	while ((item = next_folder(walk))) {
		if (visit) {
			visit->walk = walk;
			walk_folder(visit, item);
		}
		free(item);
	}
	free(visit);
	return NULL;
}

void sba_guest_walk_together(int threads, void *(*work)(void *user), void *user)
{
	pthread_t others[SBA_GUEST_WALK_THREADS_MAX];
	int started = 0;

	/* Where the sandbox has no room for a thread, there are fewer. */
	while (started < threads - 1 && started < SBA_GUEST_WALK_THREADS_MAX &&
	       pthread_create(&others[started], NULL, work, user) == 0)
		started++;
	work(user);
	while (started > 0)
		pthread_join(others[--started], NULL);
}

int sba_guest_walk(int top_fd, int threads, const struct sba_guest_walk_visitor *visitor)
{
	struct walk walk = { .top_fd = top_fd, .visitor = visitor };

	pthread_mutex_init(&walk.lock, NULL);
	pthread_cond_init(&walk.changed, NULL);
	wait_for(&walk, NULL, "");
	sba_guest_walk_together(threads, walk_folders, &walk);
	pthread_cond_destroy(&walk.changed);
	pthread_mutex_destroy(&walk.lock);
	return walk.out_of_memory ? ENOMEM : 0;
}
