/* SPDX-License-Identifier: MIT */
/* Records of a search, gathered into parts; see changes.h. */
#include "guest/changes.h"

#include <string.h>

void sba_search_flush(struct sba_search *search)
{
	search->out_broken = search->out_broken || !sba_file_out_flush(&search->out);
}

static void put(struct sba_search *search, const void *data, size_t len)
{
	search->out_broken = search->out_broken || !sba_file_out_put(&search->out, data, len);
}

static void put_head(struct sba_search *search, enum sba_change_record kind, const char *path,
		     size_t len)
{
	uint8_t head[SBA_RECORD_HEAD] = { (uint8_t)kind };

	sba_file_put(head + 1, len, 2);
	put(search, head, sizeof(head));
	put(search, path, len);
}

static void put_entry(struct sba_search *search, const struct sba_entry *entry)
{
	uint8_t bytes[SBA_ENTRY_SIZE + SBA_RECORD_LINK_MAX];

	put(search, bytes, (size_t)(sba_entry_put(bytes, entry) - bytes));
}

static void put_side(struct sba_search *search, const struct sba_search_side *side)
{
	uint8_t head[SBA_CONTENT_HEAD] = { (uint8_t)side->why };

	put_entry(search, &side->entry);
	sba_file_put(head + 1, side->entry.size, 8);
	put(search, head, sizeof(head));
	if (side->why == SBA_CONTENT_SENT)
		put(search, side->content, (size_t)side->entry.size);
}

void sba_search_put_record(struct sba_search *search, const struct sba_search_record *record)
{
	pthread_mutex_lock(&search->out_lock);
	put_head(search, record->kind, record->path, record->path_len);
	if (record->kind == SBA_RECORD_TOUCHED) {
		put_entry(search, &record->fresh->entry);
	} else {
		if (record->old)
			put_side(search, record->old);
		if (record->fresh)
			put_side(search, record->fresh);
	}
	pthread_mutex_unlock(&search->out_lock);
}

void sba_search_put_known(struct sba_search *search, const struct sba_known_file *known,
			  uint64_t size)
{
	uint8_t content[SBA_CONTENT_HEAD] = { SBA_CONTENT_SAME };

	sba_file_put(content + 1, size, 8);
	pthread_mutex_lock(&search->out_lock);
	put(search, known->record, sba_known_record_len(known));
	put(search, content, sizeof(content));
	pthread_mutex_unlock(&search->out_lock);
}

void sba_search_put_left_out(struct sba_search *search, const char *path, enum sba_left_out why)
{
	size_t len = strlen(path);
	uint8_t reason = (uint8_t)why;

	pthread_mutex_lock(&search->out_lock);
	if (search->left_out++ < SBA_RECORDS_LEFT_MAX) {
		put_head(search, SBA_RECORD_LEFT_OUT, path,
			 len < SBA_RECORD_PATH_MAX ? len : SBA_RECORD_PATH_MAX);
		put(search, &reason, 1);
	}
	pthread_mutex_unlock(&search->out_lock);
}
