/* SPDX-License-Identifier: MIT */
/* The files of a search that may have changed, read and compared; see changes.h. */
#include "guest/changes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "guest/walk.h"

enum {
	TRIES = 3,
	/* A change less than a tick of the kernel's coarse clock after another one may
	 * have the same time. The longest tick is 10 ms. */
	RACY_NS = 50 * 1000 * 1000,
	READ_STEP = 256 * 1024,
};

/* ---- reading ---- */

static bool still_the_same(const struct stat *a, const struct stat *b)
{
	return a->st_size == b->st_size &&
	       sba_search_ns(&a->st_ctim) == sba_search_ns(&b->st_ctim) &&
	       sba_search_ns(&a->st_mtim) == sba_search_ns(&b->st_mtim);
}

static ssize_t read_some(int fd, uint8_t *to, size_t size)
{
	ssize_t got;

	do {
		got = read(fd, to, size);
	} while (got < 0 && errno == EINTR);
	return got;
}

/* What is small enough is in reader->fresh then. EAGAIN: it changed meanwhile. */
static int read_once(struct sba_search_reader *reader, int fd, struct sba_search_side *ret)
{
	const struct sba_search *search = reader->search;
	struct sba_guest_sha256 sha;
	struct timespec now;
	struct stat before, after;
	uint64_t have = 0;
	ssize_t got = 1;

	if (fstat(fd, &before) < 0 || clock_gettime(CLOCK_REALTIME, &now) < 0)
		return errno;
	ret->entry = (struct sba_entry){
		.mode = before.st_mode,
		.size = (uint64_t)before.st_size,
		.inode = before.st_ino,
		.mtime_ns = sba_search_ns(&before.st_mtim),
		.ctime_ns = sba_search_ns(&before.st_ctim),
		.flags = sba_search_ns(&before.st_ctim) + RACY_NS >= sba_search_ns(&now)
				 ? SBA_ENTRY_RACY
				 : 0,
	};
	ret->why = SBA_CONTENT_LARGE;
	if (ret->entry.size > search->hash_max)
		return 0;
	if (ret->entry.size <= search->content_max)
		ret->why = SBA_CONTENT_SENT;
	sba_guest_sha256_init(&sha);
	while (got > 0 && have <= ret->entry.size) {
		bool kept = ret->why == SBA_CONTENT_SENT;
		size_t room = kept ? (size_t)(ret->entry.size - have) : READ_STEP;

		/* One byte more than there should be: it must not come. */
		got = read_some(fd, reader->fresh + (kept ? have : 0), room ? room : 1);
		if (got < 0)
			return errno;
		sba_guest_sha256_put(&sha, reader->fresh + (kept ? have : 0), (size_t)got);
		have += (uint64_t)got;
	}
	if (fstat(fd, &after) < 0 || have != ret->entry.size || !still_the_same(&before, &after))
		return EAGAIN;
	sba_guest_sha256_end(&sha, ret->entry.sha);
	ret->entry.flags |= SBA_ENTRY_HASHED;
	ret->content = reader->fresh;
	return 0;
}

static int read_link(struct sba_search_reader *reader, const char *path,
		     struct sba_search_side *ret)
{
	char *target = (char *)reader->fresh;
	int fd = sba_guest_walk_open(reader->search->top_fd, path, O_PATH);
	struct stat stat;
	ssize_t len;
	int error = 0;

	if (fd < 0)
		return errno;
	len = fstat(fd, &stat) < 0 ? -1 : readlinkat(fd, "", target, SBA_RECORD_LINK_MAX);
	if (len < 0)
		error = errno;
	close(fd);
	if (error)
		return error;
	*ret = (struct sba_search_side){
		.entry = { .mode = stat.st_mode,
			   .size = (uint64_t)len,
			   .inode = stat.st_ino,
			   .mtime_ns = sba_search_ns(&stat.st_mtim),
			   .ctime_ns = sba_search_ns(&stat.st_ctim),
			   .link_len = (uint16_t)len,
			   .link = target },
		.why = SBA_CONTENT_LINK,
	};
	return 0;
}

static int read_file(struct sba_search_reader *reader, const char *path,
		     struct sba_search_side *ret)
{
	int fd = sba_guest_walk_open(reader->search->top_fd, path, O_RDONLY);
	struct stat stat;
	int error = EAGAIN;

	if (fd < 0)
		return errno == ELOOP ? read_link(reader, path, ret) : errno;
	if (fstat(fd, &stat) < 0 || !S_ISREG(stat.st_mode))
		error = ENOENT;
	for (int i = 0; error == EAGAIN && i < TRIES; i++) {
		if (i > 0 && lseek(fd, 0, SEEK_SET) < 0)
			break;
		error = read_once(reader, fd, ret);
	}
	close(fd);
	return error;
}

/* ---- comparing ---- */

static bool same_content(const struct sba_entry *a, const struct sba_entry *b)
{
	if (S_ISLNK(a->mode) || S_ISLNK(b->mode))
		return S_ISLNK(a->mode) && S_ISLNK(b->mode) && a->link_len == b->link_len &&
		       memcmp(a->link, b->link, a->link_len) == 0;
	if (a->flags & b->flags & SBA_ENTRY_HASHED)
		return a->size == b->size && memcmp(a->sha, b->sha, sizeof(a->sha)) == 0;
	return !((a->flags | b->flags) & SBA_ENTRY_HASHED) && a->size == b->size &&
	       a->mtime_ns == b->mtime_ns && a->inode == b->inode;
}

/* Takes its size from what is left for all. */
static bool may_send(struct sba_search *search, uint64_t size)
{
	uint64_t left = atomic_load(&search->content_left);

	while (size <= left) {
		if (atomic_compare_exchange_weak(&search->content_left, &left, left - size))
			return true;
	}
	return false;
}

static void admit(struct sba_search *search, struct sba_search_side *side)
{
	if (side->why != SBA_CONTENT_SENT)
		return;
	if (!(search->flags & SBA_CHANGES_CONTENT))
		side->why = SBA_CONTENT_NOT_ASKED;
	else if (!may_send(search, side->entry.size))
		side->why = SBA_CONTENT_MUCH;
}

void sba_search_fetch_old(struct sba_search_reader *reader, struct sba_search_side *side)
{
	const struct sba_entry *entry = &side->entry;

	if (S_ISLNK(entry->mode))
		side->why = SBA_CONTENT_LINK;
	else if (!(entry->flags & SBA_ENTRY_KEPT))
		side->why = SBA_CONTENT_NOT_KEPT;
	else if (entry->size > reader->search->content_max)
		side->why = SBA_CONTENT_LARGE;
	else
		side->why = SBA_CONTENT_SENT;
	admit(reader->search, side);
	if (side->why != SBA_CONTENT_SENT)
		return;
	side->content = reader->old;
	if (!sba_known_content(&reader->search->known, entry, reader->old))
		side->why = SBA_CONTENT_NOT_KEPT;
}

static void compare(struct sba_search_reader *reader, const struct sba_search_suspect *suspect,
		    struct sba_search_side *fresh)
{
	struct sba_search *search = reader->search;
	struct sba_search_side old = { .why = SBA_CONTENT_NOT_ASKED };
	struct sba_search_record record = { .kind = SBA_RECORD_ADDED,
					    .path = suspect->path,
					    .path_len = strlen(suspect->path),
					    .fresh = fresh };
	bool same = false;

	atomic_fetch_add(&search->files, 1);
	if (suspect->known) {
		old.entry = sba_known_entry(suspect->known);
		same = same_content(&old.entry, &fresh->entry);
	}
	if (same) {
		fresh->why = old.why = SBA_CONTENT_SAME;
		fresh->entry.flags |= old.entry.flags & SBA_ENTRY_KEPT;
		fresh->entry.pack = old.entry.pack;
		fresh->entry.offset = old.entry.offset;
	}
	if (search->flags & SBA_CHANGES_ALL) {
		fresh->why = SBA_CONTENT_NOT_ASKED;
	} else if (same && old.entry.mode == fresh->entry.mode) {
		record.kind = SBA_RECORD_TOUCHED;
	} else if (suspect->known) {
		record.kind = SBA_RECORD_MODIFIED;
		record.old = &old;
		if (!same)
			sba_search_fetch_old(reader, &old);
	}
	admit(search, fresh);
	sba_search_put_record(search, &record);
}

static void look_at(struct sba_search_reader *reader, const struct sba_search_suspect *suspect)
{
	struct sba_search_side fresh = { .why = SBA_CONTENT_LARGE };
	int error = read_file(reader, suspect->path, &fresh);

	if (!error) {
		compare(reader, suspect, &fresh);
	} else if (error == ENOENT) {
		/* It went: it is told as deleted, if it was known. */
		if (suspect->known)
			atomic_store(&suspect->known->seen, false);
	} else {
		sba_search_put_left_out(reader->search, suspect->path,
					error == EAGAIN ? SBA_LEFT_RESTLESS : SBA_LEFT_UNREADABLE);
	}
}

bool sba_search_reader_init(struct sba_search_reader *reader, struct sba_search *search)
{
	size_t size = (size_t)search->content_max + 1;

	if (size < READ_STEP)
		size = READ_STEP;
	*reader = (struct sba_search_reader){ .search = search };
	/* Only what is used of it is ever there. */
	reader->fresh = malloc(size);
	reader->old = malloc(size);
	return reader->fresh && reader->old;
}

void *sba_search_look_at_all(void *user)
{
	struct sba_search *search = user;
	struct sba_search_reader reader;
	bool good = sba_search_reader_init(&reader, search);
	size_t at;

	while (good && !search->out_broken &&
	       (at = atomic_fetch_add(&search->next, 1)) < search->count)
		look_at(&reader, &search->suspects[at]);
	if (!good) {
		pthread_mutex_lock(&search->lock);
		search->out_of_memory = true;
		pthread_mutex_unlock(&search->lock);
	}
	free(reader.fresh);
	free(reader.old);
	return NULL;
}
