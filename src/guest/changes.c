/* SPDX-License-Identifier: MIT */
/*
 * What changed below a folder since a kept state (channel/protocol.h). First a walk
 * in which an unchanged file costs a stat, then what may have changed is read, both
 * on several threads; records go out as they come. Nothing is written inside.
 */
#include "guest/file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "guest/ignore.h"
#include "guest/known.h"
#include "guest/walk.h"

enum {
	TRIES = 3,
	/* A change less than a tick of the kernel's coarse clock after another one may
	 * have the same time. The longest tick is 10 ms. */
	RACY_NS = 50 * 1000 * 1000,
	NS = 1000000000,
	READ_STEP = 256 * 1024,
};

/* A file that has to be read. */
struct suspect {
	char *path;
	struct sba_known_file *known; /* NULL: it is new */
};

struct changes {
	uint32_t flags;
	uint64_t content_max, hash_max;
	atomic_uint_least64_t content_left;
	struct sba_known known;
	int top_fd;

	pthread_mutex_t lock; /* of the suspects and of what was left out */
	struct suspect *suspects;
	size_t count, size;
	atomic_size_t next;
	char **failed; /* what cannot be looked at: below these nothing is deleted */
	size_t failed_count, failed_size;
	uint64_t left_out;
	bool out_of_memory;

	pthread_mutex_t out_lock; /* of all below */
	bool out_broken;
	size_t have;
	uint8_t part[SBA_CHANNEL_PART_MAX];
	atomic_uint_least64_t files;
};

/* What one thread reads with. */
struct reader {
	struct changes *changes;
	uint8_t *fresh, *old; /* content_max bytes each */
};

/* One side of a record. */
struct side {
	struct sba_entry entry;
	enum sba_content why;
	const uint8_t *content; /* of SBA_CONTENT_SENT */
};

/* ---- records out; the out_lock is held ---- */

static void flush(struct changes *changes)
{
	if (changes->have > 0 && !changes->out_broken)
		changes->out_broken =
			!sba_file_part_write(SBA_PART_DATA, changes->part, changes->have);
	changes->have = 0;
}

static void put(struct changes *changes, const void *data, size_t len)
{
	const uint8_t *from = data;

	while (len > 0) {
		size_t room = sizeof(changes->part) - changes->have;
		size_t step = len < room ? len : room;

		memcpy(changes->part + changes->have, from, step);
		changes->have += step;
		from += step;
		len -= step;
		if (changes->have == sizeof(changes->part))
			flush(changes);
	}
}

static void put_head(struct changes *changes, enum sba_change_record kind, const char *path,
		     size_t len)
{
	uint8_t head[SBA_RECORD_HEAD] = { (uint8_t)kind };

	sba_file_put(head + 1, len, 2);
	put(changes, head, sizeof(head));
	put(changes, path, len);
}

static void put_entry(struct changes *changes, const struct sba_entry *entry)
{
	uint8_t bytes[SBA_ENTRY_SIZE + SBA_RECORD_LINK_MAX];

	put(changes, bytes, (size_t)(sba_entry_put(bytes, entry) - bytes));
}

static void put_side(struct changes *changes, const struct side *side)
{
	uint8_t head[SBA_CONTENT_HEAD] = { (uint8_t)side->why };

	put_entry(changes, &side->entry);
	sba_file_put(head + 1, side->entry.size, 8);
	put(changes, head, sizeof(head));
	if (side->why == SBA_CONTENT_SENT)
		put(changes, side->content, (size_t)side->entry.size);
}

struct record {
	enum sba_change_record kind;
	const char *path;
	size_t path_len;
	const struct side *old, *fresh;
};

static void put_record(struct changes *changes, const struct record *record)
{
	pthread_mutex_lock(&changes->out_lock);
	put_head(changes, record->kind, record->path, record->path_len);
	if (record->kind == SBA_RECORD_TOUCHED) {
		put_entry(changes, &record->fresh->entry);
	} else {
		if (record->old)
			put_side(changes, record->old);
		if (record->fresh)
			put_side(changes, record->fresh);
	}
	pthread_mutex_unlock(&changes->out_lock);
}

static void put_left_out(struct changes *changes, const char *path, enum sba_left_out why)
{
	size_t len = strlen(path);
	uint8_t reason = (uint8_t)why;

	pthread_mutex_lock(&changes->out_lock);
	if (changes->left_out++ < SBA_RECORDS_LEFT_MAX) {
		put_head(changes, SBA_RECORD_LEFT_OUT, path,
			 len < SBA_RECORD_PATH_MAX ? len : SBA_RECORD_PATH_MAX);
		put(changes, &reason, 1);
	}
	pthread_mutex_unlock(&changes->out_lock);
}

/* ---- the walk ---- */

/* Room for one more; the lock is held. */
static void *grow(struct changes *changes, void *v, size_t count, size_t *size, size_t each)
{
	size_t wanted = *size ? 2 * *size : 256;
	void *grown;

	if (count < *size)
		return v;
	grown = realloc(v, wanted * each);
	if (grown)
		*size = wanted;
	else
		changes->out_of_memory = true;
	return grown;
}

static void failed(void *user, const char *path, int error)
{
	struct changes *changes = user;
	char *copy = strdup(path);
	char **grown;

	pthread_mutex_lock(&changes->lock);
	grown = grow(changes, changes->failed, changes->failed_count, &changes->failed_size,
		     sizeof(*grown));
	if (grown)
		changes->failed = grown;
	if (grown && copy)
		changes->failed[changes->failed_count++] = copy;
	changes->out_of_memory = changes->out_of_memory || !copy;
	pthread_mutex_unlock(&changes->lock);
	put_left_out(changes, path, error == ENAMETOOLONG ? SBA_LEFT_LONG : SBA_LEFT_UNREADABLE);
}

static void suspect(struct changes *changes, const char *path, struct sba_known_file *known)
{
	char *copy = strdup(path);
	struct suspect *grown;

	pthread_mutex_lock(&changes->lock);
	grown = grow(changes, changes->suspects, changes->count, &changes->size, sizeof(*grown));
	if (grown)
		changes->suspects = grown;
	if (grown && copy)
		changes->suspects[changes->count++] = (struct suspect){ copy, known };
	changes->out_of_memory = changes->out_of_memory || !copy;
	pthread_mutex_unlock(&changes->lock);
}

static const void *enter(void *user, const struct sba_guest_walk_folder *folder)
{
	const struct changes *changes = user;

	if (!(changes->flags & SBA_CHANGES_IGNORE))
		return NULL;
	return sba_ignore_folder(folder->state, folder->fd, folder->path);
}

static bool is_skipped(const struct changes *changes, const char *leaf)
{
	static const char *const skipped[] = { ".git",          "node_modules", ".venv",
					       "venv",          "__pycache__",  ".mypy_cache",
					       ".pytest_cache", ".ruff_cache" };
	size_t count =
		changes->flags & SBA_CHANGES_NO_SKIPPED ? 1 : sizeof(skipped) / sizeof(skipped[0]);

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
	const struct changes *changes = user;

	if (is_skipped(changes, leaf))
		return false;
	return !sba_ignore_names(in->state, path, true) ||
	       sba_known_has_folder(&changes->known, path, strlen(path));
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

static int64_t ns_of(const struct timespec *time)
{
	return (int64_t)time->tv_sec * NS + time->tv_nsec;
}

/* Nothing that was written to it since could have left all of this as it is. */
static bool is_as_known(const struct sba_entry *entry, const struct stat *stat)
{
	return !(entry->flags & SBA_ENTRY_RACY) && entry->mode == stat->st_mode &&
	       entry->inode == stat->st_ino && entry->size == (uint64_t)stat->st_size &&
	       entry->ctime_ns == ns_of(&stat->st_ctim) && entry->mtime_ns == ns_of(&stat->st_mtim);
}

static void tell_known(struct changes *changes, const char *path, const struct sba_entry *entry)
{
	const struct side side = { .entry = *entry, .why = SBA_CONTENT_NOT_ASKED };

	put_record(changes, &(struct record){ .kind = SBA_RECORD_ADDED,
					      .path = path,
					      .path_len = strlen(path),
					      .fresh = &side });
}

static void file(void *user, const struct sba_guest_walk_folder *in, const char *path,
		 const struct stat *stat)
{
	struct changes *changes = user;
	const char *slash = strrchr(path, '/');
	size_t len = strlen(path);
	struct sba_known_file *known = sba_known_find(&changes->known, path, len);

	/* A work tree that has its repository elsewhere has a file of that name. */
	if (strcasecmp(slash ? slash + 1 : path, ".git") == 0)
		return;
	if (len > SBA_RECORD_PATH_MAX) {
		put_left_out(changes, path, SBA_LEFT_LONG);
		return;
	}
	if (!known && is_ignored(in, path))
		return;
	if (known) {
		struct sba_entry entry = sba_known_entry(known);

		atomic_store(&known->seen, true);
		if (is_as_known(&entry, stat)) {
			atomic_fetch_add(&changes->files, 1);
			if (changes->flags & SBA_CHANGES_ALL)
				tell_known(changes, path, &entry);
			return;
		}
	}
	suspect(changes, path, known);
}

/* ---- reading ---- */

static bool still_the_same(const struct stat *a, const struct stat *b)
{
	return a->st_size == b->st_size && ns_of(&a->st_ctim) == ns_of(&b->st_ctim) &&
	       ns_of(&a->st_mtim) == ns_of(&b->st_mtim);
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
static int read_once(struct reader *reader, int fd, struct side *ret)
{
	const struct changes *changes = reader->changes;
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
		.mtime_ns = ns_of(&before.st_mtim),
		.ctime_ns = ns_of(&before.st_ctim),
		.flags = ns_of(&before.st_ctim) + RACY_NS >= ns_of(&now) ? SBA_ENTRY_RACY : 0,
	};
	ret->why = SBA_CONTENT_LARGE;
	if (ret->entry.size > changes->hash_max)
		return 0;
	if (ret->entry.size <= changes->content_max)
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

static int read_link(struct reader *reader, const char *path, struct side *ret)
{
	char *target = (char *)reader->fresh;
	int fd = sba_guest_walk_open(reader->changes->top_fd, path, O_PATH);
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
	*ret = (struct side){
		.entry = { .mode = stat.st_mode,
			   .size = (uint64_t)len,
			   .inode = stat.st_ino,
			   .mtime_ns = ns_of(&stat.st_mtim),
			   .ctime_ns = ns_of(&stat.st_ctim),
			   .link_len = (uint16_t)len,
			   .link = target },
		.why = SBA_CONTENT_LINK,
	};
	return 0;
}

static int read_file(struct reader *reader, const char *path, struct side *ret)
{
	int fd = sba_guest_walk_open(reader->changes->top_fd, path, O_RDONLY);
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
static bool may_send(struct changes *changes, uint64_t size)
{
	uint64_t left = atomic_load(&changes->content_left);

	while (size <= left) {
		if (atomic_compare_exchange_weak(&changes->content_left, &left, left - size))
			return true;
	}
	return false;
}

static void admit(struct changes *changes, struct side *side)
{
	if (side->why != SBA_CONTENT_SENT)
		return;
	if (!(changes->flags & SBA_CHANGES_CONTENT))
		side->why = SBA_CONTENT_NOT_ASKED;
	else if (!may_send(changes, side->entry.size))
		side->why = SBA_CONTENT_MUCH;
}

static void fetch_old(struct reader *reader, struct side *side)
{
	const struct sba_entry *entry = &side->entry;

	if (S_ISLNK(entry->mode))
		side->why = SBA_CONTENT_LINK;
	else if (!(entry->flags & SBA_ENTRY_KEPT))
		side->why = SBA_CONTENT_NOT_KEPT;
	else if (entry->size > reader->changes->content_max)
		side->why = SBA_CONTENT_LARGE;
	else
		side->why = SBA_CONTENT_SENT;
	admit(reader->changes, side);
	if (side->why != SBA_CONTENT_SENT)
		return;
	side->content = reader->old;
	if (!sba_known_content(&reader->changes->known, entry, reader->old))
		side->why = SBA_CONTENT_NOT_KEPT;
}

static void compare(struct reader *reader, const struct suspect *suspect, struct side *fresh)
{
	struct changes *changes = reader->changes;
	struct side old = { .why = SBA_CONTENT_NOT_ASKED };
	struct record record = { .kind = SBA_RECORD_ADDED,
				 .path = suspect->path,
				 .path_len = strlen(suspect->path),
				 .fresh = fresh };
	bool same = false;

	atomic_fetch_add(&changes->files, 1);
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
	if (changes->flags & SBA_CHANGES_ALL) {
		fresh->why = SBA_CONTENT_NOT_ASKED;
	} else if (same && old.entry.mode == fresh->entry.mode) {
		record.kind = SBA_RECORD_TOUCHED;
	} else if (suspect->known) {
		record.kind = SBA_RECORD_MODIFIED;
		record.old = &old;
		if (!same)
			fetch_old(reader, &old);
	}
	admit(changes, fresh);
	put_record(changes, &record);
}

static void look_at(struct reader *reader, const struct suspect *suspect)
{
	struct side fresh = { .why = SBA_CONTENT_LARGE };
	int error = read_file(reader, suspect->path, &fresh);

	if (!error) {
		compare(reader, suspect, &fresh);
	} else if (error == ENOENT) {
		/* It went: it is told as deleted, if it was known. */
		if (suspect->known)
			atomic_store(&suspect->known->seen, false);
	} else {
		put_left_out(reader->changes, suspect->path,
			     error == EAGAIN ? SBA_LEFT_RESTLESS : SBA_LEFT_UNREADABLE);
	}
}

static bool reader_init(struct reader *reader, struct changes *changes)
{
	size_t size = (size_t)changes->content_max + 1;

	if (size < READ_STEP)
		size = READ_STEP;
	*reader = (struct reader){ .changes = changes };
	/* Only what is used of it is ever there. */
	reader->fresh = malloc(size);
	reader->old = malloc(size);
	return reader->fresh && reader->old;
}

static void *look_at_all(void *user)
{
	struct changes *changes = user;
	struct reader reader;
	bool good = reader_init(&reader, changes);
	size_t at;

	while (good && !changes->out_broken &&
	       (at = atomic_fetch_add(&changes->next, 1)) < changes->count)
		look_at(&reader, &changes->suspects[at]);
	if (!good) {
		pthread_mutex_lock(&changes->lock);
		changes->out_of_memory = true;
		pthread_mutex_unlock(&changes->lock);
	}
	free(reader.fresh);
	free(reader.old);
	return NULL;
}

/* ---- what is gone ---- */

static bool is_below_failed(const struct changes *changes, const char *path, size_t len)
{
	for (size_t i = 0; i < changes->failed_count; i++) {
		const char *folder = changes->failed[i];
		size_t folder_len = strlen(folder);

		if (folder_len == 0 ||
		    (folder_len <= len && memcmp(folder, path, folder_len) == 0 &&
		     (folder_len == len || path[folder_len] == '/')))
			return true;
	}
	return false;
}

static void tell_deleted(struct changes *changes)
{
	struct reader reader;
	bool good = reader_init(&reader, changes);

	for (size_t i = 0; good && i < changes->known.size; i++) {
		const struct sba_known_file *known = &changes->known.files[i];
		struct record record = { .kind = SBA_RECORD_DELETED };
		struct side old = { .why = SBA_CONTENT_NOT_ASKED };

		if (!known->record || known->gone || atomic_load(&known->seen))
			continue;
		record.path = sba_known_path(known, &record.path_len);
		if (is_below_failed(changes, record.path, record.path_len))
			continue;
		old.entry = sba_known_entry(known);
		record.old = &old;
		fetch_old(&reader, &old);
		put_record(changes, &record);
	}
	changes->out_of_memory = changes->out_of_memory || !good;
	free(reader.fresh);
	free(reader.old);
}

/* ---- the request ---- */

static int begin(struct changes *changes, const struct sba_file_request *request)
{
	uint8_t ask[SBA_CHANNEL_CHANGES_ASK];
	uint32_t last;
	int dir_fd, error = 0;

	if (!sba_file_read_whole(STDIN_FILENO, ask, sizeof(ask)))
		return EPROTO;
	last = (uint32_t)sba_file_get(ask, 4);
	changes->flags = request->mode;
	changes->content_max = sba_file_get(ask + 4, 8);
	changes->hash_max = sba_file_get(ask + 20, 8);
	atomic_store(&changes->content_left, sba_file_get(ask + 12, 8));
	if (changes->content_max > SBA_FILE_CONTENT_MAX)
		return EINVAL;
	pthread_mutex_init(&changes->lock, NULL);
	pthread_mutex_init(&changes->out_lock, NULL);
	changes->top_fd = open(request->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (changes->top_fd < 0)
		return errno;
	dir_fd = open(SBA_KEPT_DIR, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir_fd < 0 && errno != ENOENT)
		error = errno;
	return error ? error : sba_known_load(&changes->known, dir_fd, last);
}

static int find_all(struct changes *changes)
{
	const struct sba_guest_walk_visitor visitor = {
		.enter = enter,
		.descend = descend,
		.file = file,
		.failed = failed,
		.user = changes,
	};
	int threads = sba_guest_walk_threads();
	int error = sba_guest_walk(changes->top_fd, threads, &visitor);

	if (!error && !changes->out_of_memory)
		sba_guest_walk_together(threads, look_at_all, changes);
	if (!error && !changes->out_of_memory && !(changes->flags & SBA_CHANGES_ALL))
		tell_deleted(changes);
	flush(changes);
	if (changes->out_broken)
		return ECANCELED;
	return error || changes->out_of_memory ? ENOMEM : 0;
}

int sba_file_serve_changes(const struct sba_file_request *request)
{
	static struct changes changes;
	int error = begin(&changes, request);

	if (!error)
		error = find_all(&changes);
	return sba_file_part_end(error, atomic_load(&changes.files), "");
}
