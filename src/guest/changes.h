/* SPDX-License-Identifier: MIT */
/*
 * A search for what changed below a folder: what its request (changes.c), its walk
 * (changes_walk.c), its reading (changes_read.c) and its records (changes_out.c) share.
 */
#ifndef SBA_GUEST_CHANGES_H
#define SBA_GUEST_CHANGES_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

#include "guest/file.h"
#include "guest/known.h"

/* A file that has to be read. */
struct sba_search_suspect {
	char *path;
	struct sba_known_file *known; /* NULL: it is new */
};

struct sba_search {
	uint32_t flags;
	uint64_t content_max, hash_max;
	atomic_uint_least64_t content_left;
	struct sba_known known;
	int top_fd;

	pthread_mutex_t lock; /* of the suspects, and of what follows to the next one */
	struct sba_search_suspect *suspects;
	size_t count, size;
	atomic_size_t next;
	char **failed; /* what cannot be looked at: below these nothing is deleted */
	size_t failed_count, failed_size;
	bool out_of_memory;

	pthread_mutex_t out_lock; /* of all below */
	bool out_broken;
	uint64_t left_out;
	struct sba_file_out out;
	atomic_uint_least64_t files;
};

/* What one thread reads with. */
struct sba_search_reader {
	struct sba_search *search;
	uint8_t *fresh, *old; /* content_max bytes each */
};

/* One side of a record. */
struct sba_search_side {
	struct sba_entry entry;
	enum sba_content why;
	const uint8_t *content; /* of SBA_CONTENT_SENT */
};

struct sba_search_record {
	enum sba_change_record kind;
	const char *path;
	size_t path_len;
	const struct sba_search_side *old, *fresh;
};

/* ---- changes_out.c; from any thread ---- */

void sba_search_put_record(struct sba_search *search, const struct sba_search_record *record);
/* Of a file that was not read, as a list has it. */
void sba_search_put_known(struct sba_search *search, const struct sba_known_file *known,
			  uint64_t size);
void sba_search_put_left_out(struct sba_search *search, const char *path, enum sba_left_out why);
/* The out_lock is held, or nobody else puts any. */
void sba_search_flush(struct sba_search *search);

/* ---- changes_walk.c ---- */

/* What may have changed is among the suspects then. 0, or ENOMEM. */
int sba_search_walk(struct sba_search *search, int threads);
int64_t sba_search_ns(const struct timespec *time);

/* ---- changes_read.c ---- */

bool sba_search_reader_init(struct sba_search_reader *reader, struct sba_search *search);
/* The content that is kept of an old side, or why there is none. */
void sba_search_fetch_old(struct sba_search_reader *reader, struct sba_search_side *side);
/* Reads suspects until there are none left; user is the search. */
void *sba_search_look_at_all(void *user);

#endif
