/* SPDX-License-Identifier: MIT */
/*
 * What changed below a folder since a kept state (channel/protocol.h). First a walk
 * in which an unchanged file costs a stat, then what may have changed is read, both
 * on several threads; records go out as they come. Nothing is written inside.
 */
#include "guest/changes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "guest/walk.h"

/* ---- what is gone ---- */

static bool is_below_failed(const struct sba_search *search, const char *path, size_t len)
{
	for (size_t i = 0; i < search->failed_count; i++) {
		const char *folder = search->failed[i];
		size_t folder_len = strlen(folder);

		if (folder_len == 0 ||
		    (folder_len <= len && memcmp(folder, path, folder_len) == 0 &&
		     (folder_len == len || path[folder_len] == '/')))
			return true;
	}
	return false;
}

static void tell_deleted(struct sba_search *search)
{
	struct sba_search_reader reader;
	bool good = sba_search_reader_init(&reader, search);

	for (size_t i = 0; good && i < search->known.count; i++) {
		const struct sba_known_file *known = &search->known.files[i];
		struct sba_search_record record = { .kind = SBA_RECORD_DELETED };
		struct sba_search_side old = { .why = SBA_CONTENT_NOT_ASKED };

		if (known->gone || atomic_load(&known->seen))
			continue;
		record.path = sba_known_path(known, &record.path_len);
		if (is_below_failed(search, record.path, record.path_len))
			continue;
		old.entry = sba_known_entry(known);
		record.old = &old;
		sba_search_fetch_old(&reader, &old);
		sba_search_put_record(search, &record);
	}
	search->out_of_memory = search->out_of_memory || !good;
	free(reader.fresh);
	free(reader.old);
}

/* ---- the request ---- */

static void name_list(const char *folder, char *ret)
{
	struct sba_guest_sha256 sha;
	uint8_t bytes[SBA_GUEST_SHA256_SIZE];

	sba_guest_sha256_init(&sha);
	sba_guest_sha256_put(&sha, folder, strlen(folder));
	sba_guest_sha256_end(&sha, bytes);
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
}

/* -1 where there is none, or, in *error, where it cannot be opened. */
static int open_state(const char *path, int *error)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 && errno != ENOENT)
		*error = errno;
	return fd;
}

/* What follows what was asked. It stays until the child ends. */
static int take_given(struct sba_search *search, struct sba_known_source *ret)
{
	uint8_t head[SBA_CHANNEL_CHANGES_GIVEN], *given;
	uint64_t len;

	if (!(search->flags & SBA_CHANGES_GIVEN))
		return 0;
	if (!sba_file_read_whole(STDIN_FILENO, head, sizeof(head)))
		return EPROTO;
	len = sba_file_get(head, sizeof(head));
	if (len > SBA_CHANNEL_GIVEN_MAX)
		return E2BIG;
	given = malloc(len + 1);
	if (!given)
		return ENOMEM;
	if (!sba_file_read_whole(STDIN_FILENO, given, len)) {
		free(given);
		return EPROTO;
	}
	ret->given = given;
	ret->given_len = len;
	return 0;
}

static int load_known(struct sba_search *search, const char *folder, uint32_t last)
{
	char name[2 * SBA_GUEST_SHA256_SIZE + 1];
	int error = 0, ignored;
	bool dir = (search->flags & (SBA_CHANGES_HASHES | SBA_CHANGES_GIVEN)) == SBA_CHANGES_HASHES;
	struct sba_known_source source = {
		.dir_fd = open_state(SBA_KEPT_DIR, &error),
		.last = last,
		.hashes_fd = dir ? open_state(SBA_HASHES_DIR, &ignored) : -1,
		.name = name,
		.folders = search->flags & SBA_CHANGES_IGNORE,
	};

	name_list(folder, name);
	if (!error)
		error = take_given(search, &source);
	if (!error)
		error = sba_known_load(&search->known, &source);
	if (source.hashes_fd >= 0)
		close(source.hashes_fd);
	return error;
}

static int begin(struct sba_search *search, const struct sba_file_request *request)
{
	uint8_t ask[SBA_CHANNEL_CHANGES_ASK];

	if (!sba_file_read_whole(STDIN_FILENO, ask, sizeof(ask)))
		return EPROTO;
	search->flags = request->mode;
	search->content_max = sba_file_get(ask + 4, 8);
	search->hash_max = sba_file_get(ask + 20, 8);
	atomic_store(&search->content_left, sba_file_get(ask + 12, 8));
	if (search->content_max > SBA_FILE_CONTENT_MAX)
		return EINVAL;
	pthread_mutex_init(&search->lock, NULL);
	pthread_mutex_init(&search->out_lock, NULL);
	search->top_fd = open(request->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (search->top_fd < 0)
		return errno;
	return load_known(search, request->path, (uint32_t)sba_file_get(ask, 4));
}

static int find_all(struct sba_search *search)
{
	int threads = sba_guest_walk_threads();
	int error = sba_search_walk(search, threads);

	if (!error && !search->out_of_memory)
		sba_guest_walk_together(threads, sba_search_look_at_all, search);
	if (!error && !search->out_of_memory && !(search->flags & SBA_CHANGES_ALL))
		tell_deleted(search);
	sba_search_flush(search);
	if (search->out_broken)
		return ECANCELED;
	return error || search->out_of_memory ? ENOMEM : 0;
}

int sba_file_serve_changes(const struct sba_file_request *request)
{
	static struct sba_search search;
	int error = begin(&search, request);

	if (!error)
		error = find_all(&search);
	return sba_file_part_end(error, atomic_load(&search.files), "");
}
