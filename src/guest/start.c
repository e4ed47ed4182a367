/* SPDX-License-Identifier: MIT */
/*
 * The frames before SBA_RUN_GO; see start.h. Memory that cannot be had counts
 * as a bad frame: it is the frame that was too large for this sandbox.
 */
#include "guest/start.h"

#include <stdlib.h>
#include <string.h>

#include "guest/parse.h"

_Static_assert(SBA_RUN_LOCK_MAX >= SBA_RUN_ID_MAX, "a lock's name is parsed as an id");

/* A year; keeps sums with a clock inside int64_t. */
static const uint64_t deadline_max_ms = 366ULL * 24 * 3600 * 1000;

void sba_guest_start_init(struct sba_guest_start *start)
{
	*start = (struct sba_guest_start){ 0 };
	memset(start->nonce, '0', SBA_RUN_NONCE_LEN);
}

static void list_fini(struct sba_guest_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->items[i]);
	free(list->items);
}

void sba_guest_start_fini(struct sba_guest_start *start)
{
	list_fini(&start->args);
	list_fini(&start->env);
	free(start->cwd);
	free(start->payload);
	*start = (struct sba_guest_start){ 0 };
}

static bool list_push(struct sba_guest_list *list, char *take_item, size_t max)
{
	if (list->count + 1 >= list->room) {
		size_t room = list->room ? list->room * 2 : 16;
		char **items = realloc(list->items, room * sizeof(*items));

		if (!items)
			return false;
		list->items = items;
		list->room = room;
	}
	if (list->count >= max)
		return false;
	list->items[list->count++] = take_item;
	list->items[list->count] = NULL;
	return true;
}

static bool take_nonce(struct sba_guest_start *start)
{
	static const char none[SBA_RUN_NONCE_LEN + 1] = "00000000000000000000000000000000";

	if (strlen(start->payload) != SBA_RUN_NONCE_LEN ||
	    strspn(start->payload, "0123456789abcdef") != SBA_RUN_NONCE_LEN ||
	    strcmp(start->nonce, none) != 0 || strcmp(start->payload, none) == 0)
		return false;
	memcpy(start->nonce, start->payload, SBA_RUN_NONCE_LEN);
	return true;
}

static bool take_string(struct sba_guest_start *start, struct sba_guest_list *list, size_t max)
{
	if (!list_push(list, start->payload, max))
		return false;
	start->payload = NULL;
	return true;
}

static bool take_env(struct sba_guest_start *start)
{
	const char *mark = strchr(start->payload, '=');

	return mark && mark != start->payload && take_string(start, &start->env, SBA_GUEST_ENV_MAX);
}

static bool take_cwd(struct sba_guest_start *start)
{
	if (start->cwd || start->payload[0] == '\0')
		return false;
	start->cwd = start->payload;
	start->payload = NULL;
	return true;
}

static bool take_deadline(struct sba_guest_start *start, size_t len)
{
	uint64_t ms;

	if (!sba_guest_parse_number(start->payload, len, deadline_max_ms, &ms))
		return false;
	start->deadline_ms = (int64_t)ms;
	return true;
}

static bool take_lock(struct sba_guest_start *start)
{
	char *name = strchr(start->payload, ' ');
	char *key = name ? strchr(name + 1, ' ') : NULL;
	uint64_t ms;

	if (!key || start->lock[0] != '\0')
		return false;
	*name++ = *key++ = '\0';
	if (!sba_guest_parse_number(start->payload, strlen(start->payload), deadline_max_ms, &ms) ||
	    !sba_guest_parse_id(name) || strlen(key) != SBA_LOCK_KEY_LEN ||
	    strspn(key, "0123456789abcdef") != SBA_LOCK_KEY_LEN)
		return false;
	memcpy(start->lock, name, strlen(name) + 1);
	memcpy(start->lock_key, key, SBA_LOCK_KEY_LEN + 1);
	start->lock_wait_ms = (int64_t)ms;
	return true;
}

static bool take_frame(struct sba_guest_start *start, uint8_t type, size_t len)
{
	/* No payload before GO may hold a NUL: it would cut the string short. */
	if (strlen(start->payload) != len)
		return false;
	switch (type) {
	case SBA_RUN_NONCE:
		return take_nonce(start);
	case SBA_RUN_ARG:
		return take_string(start, &start->args, SBA_GUEST_ARGS_MAX);
	case SBA_RUN_ENV:
		return take_env(start);
	case SBA_RUN_CWD:
		return take_cwd(start);
	case SBA_RUN_DEADLINE:
		return take_deadline(start, len);
	case SBA_RUN_TTY:
		start->tty = true;
		return sba_guest_parse_size(start->payload, len, &start->size);
	case SBA_RUN_LOCK:
		return take_lock(start);
	case SBA_RUN_DETACH:
		start->detach = true;
		return len == 0;
	case SBA_RUN_OTHERS:
		start->signal_others = true;
		return len == 0;
	default:
		return false;
	}
}

static bool begin_frame(struct sba_guest_start *start, size_t len)
{
	start->total += len;
	if (start->total > SBA_GUEST_START_MAX)
		return false;
	start->payload = malloc(len + 1);
	start->have = 0;
	return start->payload != NULL;
}

static bool is_complete(const struct sba_guest_start *start)
{
	return start->args.count > 0 && strspn(start->nonce, "0") != SBA_RUN_NONCE_LEN;
}

enum sba_guest_step sba_guest_start_feed(struct sba_guest_start *start,
					 const struct sba_guest_piece *piece)
{
	bool good;

	if (piece->type == SBA_RUN_GO)
		return piece->length == 0 && is_complete(start) ? SBA_STEP_GO : SBA_STEP_BAD;
	if (piece->first && !begin_frame(start, piece->length))
		return SBA_STEP_BAD;
	memcpy(start->payload + start->have, piece->data, piece->len);
	start->have += piece->len;
	if (!piece->last)
		return SBA_STEP_MORE;
	start->payload[start->have] = '\0';
	good = take_frame(start, piece->type, start->have);
	free(start->payload);
	start->payload = NULL;
	return good ? SBA_STEP_MORE : SBA_STEP_BAD;
}
