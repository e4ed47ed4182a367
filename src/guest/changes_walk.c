/* SPDX-License-Identifier: MIT */
/* The walk of a search: what is as it was known costs a stat; see changes.h. */
#include "guest/changes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "guest/ignore.h"
#include "guest/walk.h"

enum { NS = 1000000000 };

int64_t sba_search_ns(const struct timespec *time)
{
	return (int64_t)time->tv_sec * NS + time->tv_nsec;
}

/* Room for one more; the lock is held. */
static void *grow(struct sba_search *search, void *v, size_t count, size_t *size, size_t each)
{
	size_t wanted = *size ? 2 * *size : 256;
	void *grown;

	if (count < *size)
		return v;
	grown = realloc(v, wanted * each);
	if (grown)
		*size = wanted;
	else
		search->out_of_memory = true;
	return grown;
}

static void failed(void *user, const char *path, int error)
{
	struct sba_search *search = user;
	char *copy = strdup(path);
	char **grown;

	pthread_mutex_lock(&search->lock);
	grown = grow(search, search->failed, search->failed_count, &search->failed_size,
		     sizeof(*grown));
	if (grown)
		search->failed = grown;
	if (grown && copy)
		search->failed[search->failed_count++] = copy;
	search->out_of_memory = search->out_of_memory || !copy;
	pthread_mutex_unlock(&search->lock);
	sba_search_put_left_out(search, path,
				error == ENAMETOOLONG ? SBA_LEFT_LONG : SBA_LEFT_UNREADABLE);
}

static void suspect(struct sba_search *search, const char *path, struct sba_known_file *known)
{
	char *copy = strdup(path);
	struct sba_search_suspect *grown;

	pthread_mutex_lock(&search->lock);
	grown = grow(search, search->suspects, search->count, &search->size, sizeof(*grown));
	if (grown)
		search->suspects = grown;
	if (grown && copy)
		search->suspects[search->count++] = (struct sba_search_suspect){ copy, known };
	search->out_of_memory = search->out_of_memory || !copy;
	pthread_mutex_unlock(&search->lock);
}

static const void *enter(void *user, const struct sba_guest_walk_folder *folder)
{
	const struct sba_search *search = user;

	if (!(search->flags & SBA_CHANGES_IGNORE))
		return NULL;
	return sba_ignore_folder(folder->state, folder->fd, folder->path);
}

static bool is_skipped(const struct sba_search *search, const char *leaf)
{
	static const char *const skipped[] = { ".git",          "node_modules", ".venv",
					       "venv",          "__pycache__",  ".mypy_cache",
					       ".pytest_cache", ".ruff_cache" };
	size_t count =
		search->flags & SBA_CHANGES_NO_SKIPPED ? 1 : sizeof(skipped) / sizeof(skipped[0]);

	for (size_t i = 0; i < count; i++) {
		/* git itself takes .GIT for the same on some file systems. */
		if (i == 0 ? strcasecmp(leaf, skipped[i]) == 0 : strcmp(leaf, skipped[i]) == 0)
			return true;
	}
	return false;
}

/* As with git: what is known is not ignored, whatever names it. */
static bool descend(void *user, const struct sba_guest_walk_folder *in, const char *path,
		    const char *leaf)
{
	const struct sba_search *search = user;

	if (is_skipped(search, leaf))
		return false;
	return !sba_ignore_names(in->state, path, true) ||
	       sba_known_has_folder(&search->known, path, strlen(path));
}

/* Also where a folder above it is named. */
static bool is_ignored(const struct sba_guest_walk_folder *in, const char *path)
{
	char above[SBA_FILE_NAME_MAX];

	if (!in->state)
		return false;
	if (sba_ignore_names(in->state, path, false))
		return true;
	memcpy(above, path, strlen(path) + 1);
	for (char *slash = strrchr(above, '/'); slash; slash = strrchr(above, '/')) {
		*slash = '\0';
		if (sba_ignore_names(in->state, above, true))
			return true;
	}
	return false;
}

/* Nothing that was written to it since could have left all of this as it is. */
static bool is_as_known(const struct sba_entry *entry, const struct stat *stat)
{
	return !(entry->flags & SBA_ENTRY_RACY) && entry->mode == stat->st_mode &&
	       entry->inode == stat->st_ino && entry->size == (uint64_t)stat->st_size &&
	       entry->ctime_ns == sba_search_ns(&stat->st_ctim) &&
	       entry->mtime_ns == sba_search_ns(&stat->st_mtim);
}

/* What was too large for a hash when it was listed need not be so now. */
static bool has_hash(const struct sba_search *search, const struct sba_entry *entry)
{
	return entry->flags & SBA_ENTRY_HASHED || !S_ISREG(entry->mode) ||
	       entry->size > search->hash_max;
}

/* True: it is as it was known, and all is told. */
static bool tell_known(struct sba_search *search, struct sba_known_file *known,
		       const struct stat *stat)
{
	struct sba_entry entry = sba_known_entry(known);

	atomic_store_explicit(&known->seen, true, memory_order_relaxed);
	if (!is_as_known(&entry, stat))
		return false;
	if (search->flags & SBA_CHANGES_ALL) {
		if (!has_hash(search, &entry))
			return false;
		sba_search_put_known(search, known, entry.size);
	}
	atomic_fetch_add(&search->files, 1);
	return true;
}

static void file(void *user, const struct sba_guest_walk_folder *in, const char *path, size_t len,
		 const struct stat *stat)
{
	struct sba_search *search = user;
	struct sba_known_file *known = sba_known_find(&search->known, path, len);

	/* A work tree that has its repository elsewhere has a file of that name. */
	if (len >= 4 && strcasecmp(path + len - 4, ".git") == 0 &&
	    (len == 4 || path[len - 5] == '/'))
		return;
	if (len > SBA_RECORD_PATH_MAX) {
		sba_search_put_left_out(search, path, SBA_LEFT_LONG);
		return;
	}
	if ((!known || known->hashed_only) && is_ignored(in, path))
		return;
	if (known && tell_known(search, known, stat))
		return;
	suspect(search, path, known);
}

int sba_search_walk(struct sba_search *search, int threads)
{
	const struct sba_guest_walk_visitor visitor = {
		.enter = enter,
		.descend = descend,
		.file = file,
		.failed = failed,
		.user = search,
	};

	return sba_guest_walk(search->top_fd, threads, &visitor);
}
