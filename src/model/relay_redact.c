/* SPDX-License-Identifier: MIT */
/*
 * Upstream's answer without the key. Within one event, or one body, bytes are
 * enough; a key that is spread over the deltas of one text is found by joining
 * them. An event whose text ends as the key begins waits for the next of that
 * text: it passes as it came, or with stars.
 */
#include "base/limits.h"
#include "model/relay_private.h"

#include <stdlib.h>
#include <string.h>

enum {
	DEPTH_MAX = 32,
	/* So much of a key's beginning says nothing: "sk-" is that of all keys. A text
	 * that ends with it is passed on, and remembered. */
	SHOWN_MAX = 3,
	SHOWN_PART = 8, /* of the key's length */
};

/* An event that waits, for its own text or behind one that does. */
struct sba_relay_held {
	struct sba_relay_held *next;
	json_t *doc; /* NULL: passed as it is */
	unsigned waiting;
	bool starred;
	size_t len;
	char raw[];
};

/* A part of a lane's tail: where it came from. */
struct sba_relay_piece {
	struct sba_relay_piece *next;
	struct sba_relay_held *event; /* NULL: it has passed */
	json_t *string;               /* in event->doc */
	size_t at, len;
};

void sba_relay_redact_init(struct sba_relay_redact *d, const struct sba_redact *secret, bool sse)
{
	*d = (struct sba_relay_redact){ .secret = secret, .sse = sse };
	size_t len = sba_redact_len(secret);
	d->shown = len / SHOWN_PART < SHOWN_MAX ? len / SHOWN_PART : SHOWN_MAX;
	sba_buf_init(&d->part, SBA_RELAY_TEXT_MAX);
	sba_buf_init(&d->out, SBA_RELAY_OUT_MAX);
	for (size_t i = 0; i < SBA_ARRAY_LEN(d->lanes); i++)
		sba_buf_init(&d->lanes[i].tail, SBA_RELAY_TEXT_MAX);
}

/* ---- events in their order ---- */

static void free_held(struct sba_relay_held *h)
{
	json_decref(h->doc);
	free(h);
}

static struct sba_relay_held *hold(struct sba_relay_redact *d, const char *raw, size_t len)
{
	struct sba_relay_held *h = malloc(sizeof(*h) + len);
	if (!h)
		return NULL;
	*h = (struct sba_relay_held){ .len = len };
	memcpy(h->raw, raw, len);
	*(d->last ? &d->last->next : &d->first) = h;
	d->last = h;
	d->held_bytes += len;
	return h;
}

/* The event anew: its data are the document, its other fields as they were. */
static void write_event(struct sba_buf *out, const struct sba_relay_held *h)
{
	static const char field[] = "data:";
	SBA_FREE char *text = sba_json_dump(h->doc);
	for (const char *line = h->raw, *end = h->raw + h->len; line < end;) {
		const char *nl = memchr(line, '\n', (size_t)(end - line));
		size_t n = nl ? (size_t)(nl - line) + 1 : (size_t)(end - line);
		size_t name = sizeof(field) - 1;
		bool empty = *line == '\n' || *line == '\r';
		if (!empty && (n < name || memcmp(line, field, name) != 0))
			sba_buf_put(out, line, n);
		line += n;
	}
	sba_buf_puts(out, "data: ");
	sba_buf_puts(out, text ? text : "");
	sba_buf_puts(out, "\n\n");
}

static void pass_on(struct sba_relay_redact *d)
{
	while (d->first && d->first->waiting == 0) {
		struct sba_relay_held *h = d->first;
		if (h->starred)
			write_event(&d->out, h);
		else
			sba_buf_put(&d->out, h->raw, h->len);
		d->held_bytes -= h->len;
		d->first = h->next;
		if (!d->first)
			d->last = NULL;
		free_held(h);
	}
}

/* What needs no joining, behind what waits. */
static int pass(struct sba_relay_redact *d, const char *data, size_t len)
{
	if (!d->first)
		sba_buf_put(&d->out, data, len);
	else if (len && !hold(d, data, len))
		return SBA_ENOMEM;
	return d->out.failed;
}

/* ---- texts that grow ---- */

static void drop_piece(struct sba_relay_lane *lane)
{
	struct sba_relay_piece *p = lane->pieces;
	if (p->event)
		p->event->waiting--;
	lane->pieces = p->next;
	free(p);
}

static void forget(struct sba_relay_redact *d, struct sba_relay_lane *lane)
{
	while (lane->pieces)
		drop_piece(lane);
	sba_buf_reset(&lane->tail);
	d->n_lanes--;
}

/* Puts the tail, starred by now, back to where it came from. */
static int write_back(struct sba_relay_lane *lane)
{
	size_t from = 0;
	for (struct sba_relay_piece *p = lane->pieces; p; from += p->len, p = p->next) {
		if (!p->event)
			continue;
		size_t len = json_string_length(p->string);
		SBA_FREE char *text = malloc(len + 1);
		if (!text)
			return SBA_ENOMEM;
		memcpy(text, json_string_value(p->string), len);
		memcpy(text + p->at, lane->tail.data + from, p->len);
		if (json_string_setn(p->string, text, len) < 0)
			return SBA_ENOMEM;
		p->event->starred = true;
	}
	return 0;
}

static void take_from_front(struct sba_relay_lane *lane, size_t len)
{
	sba_buf_drop(&lane->tail, len);
	while (len > 0 && lane->pieces) {
		struct sba_relay_piece *p = lane->pieces;
		size_t n = p->len < len ? p->len : len;
		p->at += n;
		p->len -= n;
		len -= n;
		if (p->len == 0)
			drop_piece(lane);
	}
}

/* Looks for the key in the tail and lets go of what it cannot be in. */
static int settle(struct sba_relay_redact *d, struct sba_relay_lane *lane, bool last)
{
	struct sba_redact_scan scan = { .last = last };
	if (lane->tail.failed)
		return SBA_ENOMEM;
	size_t safe = sba_redact(d->secret, lane->tail.data, lane->tail.len, &scan);
	if (scan.starred && write_back(lane) < 0)
		return SBA_ENOMEM;
	take_from_front(lane, safe);
	if (lane->tail.len == 0) {
		forget(d, lane);
		return 0;
	}
	bool harmless = lane->tail.len <= d->shown;
	for (struct sba_relay_piece *p = lane->pieces; harmless && p; p = p->next) {
		if (p->event)
			p->event->waiting--;
		p->event = NULL;
	}
	return 0;
}

/* Too much waits: what may be half a key is taken for one. */
static int give_up(struct sba_relay_redact *d)
{
	for (size_t i = 0; i < SBA_ARRAY_LEN(d->lanes); i++) {
		struct sba_relay_lane *lane = &d->lanes[i];
		if (lane->tail.len == 0)
			continue;
		memset(lane->tail.data, '*', lane->tail.len);
		if (write_back(lane) < 0)
			return SBA_ENOMEM;
		forget(d, lane);
	}
	return 0;
}

static struct sba_relay_lane *find_lane(struct sba_relay_redact *d, uint64_t id)
{
	for (size_t i = 0; i < SBA_ARRAY_LEN(d->lanes); i++)
		if (d->lanes[i].tail.len && d->lanes[i].id == id)
			return &d->lanes[i];
	return NULL;
}

static struct sba_relay_lane *free_lane(struct sba_relay_redact *d)
{
	for (size_t i = 0; i < SBA_ARRAY_LEN(d->lanes); i++)
		if (d->lanes[i].tail.len == 0)
			return &d->lanes[i];
	return give_up(d) < 0 ? NULL : &d->lanes[0];
}

static int grow(struct sba_relay_redact *d, struct sba_relay_held *event, json_t *string,
		uint64_t id)
{
	size_t len = json_string_length(string);
	if (len == 0)
		return 0;
	struct sba_relay_lane *lane = find_lane(d, id);
	bool begins = !lane;
	if (begins)
		lane = free_lane(d);
	struct sba_relay_piece *p = malloc(sizeof(*p)), **end;
	if (!lane || !p) {
		free(p);
		return SBA_ENOMEM;
	}
	lane->id = id;
	d->n_lanes += begins;
	*p = (struct sba_relay_piece){ .event = event, .string = string, .len = len };
	event->waiting++;
	for (end = &lane->pieces; *end; end = &(*end)->next)
		;
	*end = p;
	sba_buf_put(&lane->tail, json_string_value(string), len);
	return settle(d, lane, false);
}

/* ---- which text a string belongs to ---- */

static uint64_t mix(uint64_t id, const void *data, size_t len)
{
	const unsigned char *u = data;
	for (size_t i = 0; i < len; i++)
		id = (id ^ u[i]) * UINT64_C(0x100000001b3);
	return (id ^ len) * UINT64_C(0x100000001b3);
}

/* What tells the texts of one answer apart, in all three formats. */
static uint64_t mix_place(uint64_t id, const json_t *object)
{
	static const char *const names[] = { "index", "output_index", "content_index",
					     "summary_index" };
	for (size_t i = 0; i < SBA_ARRAY_LEN(names); i++) {
		json_int_t n = json_integer_value(json_object_get(object, names[i]));
		id = mix(id, &n, sizeof(n));
	}
	const json_t *item = json_object_get(object, "item_id");
	return mix(id, json_is_string(item) ? json_string_value(item) : "",
		   json_string_length(item));
}

/* A block of Messages begins with a text that its deltas continue. */
static bool is_growing(const char *name)
{
	return strcmp(name, "delta") == 0 || strcmp(name, "content_block") == 0;
}

struct place {
	struct sba_relay_held *event;
	uint64_t id;
	bool growing;
	int depth;
};

static int walk(struct sba_relay_redact *d, struct place at, json_t *j);

static int walk_object(struct sba_relay_redact *d, struct place at, json_t *object)
{
	const char *name;
	json_t *member;
	at.id = mix_place(at.id, object);
	json_object_foreach(object, name, member)
	{
		struct place below = at;
		below.growing = at.growing || is_growing(name);
		if (!is_growing(name))
			below.id = mix(at.id, name, strlen(name));
		int rc = walk(d, below, member);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int walk(struct sba_relay_redact *d, struct place at, json_t *j)
{
	int rc = 0;
	size_t i;
	json_t *element;
	if (++at.depth > DEPTH_MAX)
		return 0;
	if (json_is_string(j))
		return at.growing ? grow(d, at.event, j, at.id) : 0;
	if (json_is_object(j))
		return walk_object(d, at, j);
	json_array_foreach(j, i, element)
	{
		rc = walk(d, at, element);
		if (rc < 0)
			break;
	}
	return rc;
}

/* ---- events ---- */

static json_t *document_of(const char *raw, size_t len)
{
	const char *event, *blank = "\n\n";
	size_t event_len, blank_len = 2;
	struct sba_sse split;
	sba_sse_init(&split);
	json_t *doc = NULL;
	/* The last one of a stream may have no blank line behind it. */
	if (sba_sse_next(&split, &raw, &len, &event, &event_len) ||
	    sba_sse_next(&split, &blank, &blank_len, &event, &event_len))
		doc = sba_json_load(event, event_len, JSON_ALLOW_NUL, NULL);
	sba_sse_fini(&split);
	return doc;
}

static int join(struct sba_relay_redact *d, const char *raw, size_t len)
{
	json_t *doc = document_of(raw, len);
	if (!doc)
		return pass(d, raw, len);
	struct sba_relay_held *h = hold(d, raw, len);
	if (!h) {
		json_decref(doc);
		return SBA_ENOMEM;
	}
	h->doc = doc;
	int rc = walk(d, (struct place){ .event = h }, doc);
	if (rc == 0 && d->held_bytes > SBA_RELAY_HELD_MAX)
		rc = give_up(d);
	return rc;
}

static int take_event(struct sba_relay_redact *d, char *raw, size_t len)
{
	struct sba_redact_scan scan = { .last = true };
	sba_redact(d->secret, raw, len, &scan);
	int rc = scan.split || d->n_lanes ? join(d, raw, len) : pass(d, raw, len);
	pass_on(d);
	return rc < 0 ? rc : d->out.failed;
}

/* Bytes up to the end of the event that is under way; 0: it is not there. */
static size_t event_end(struct sba_relay_redact *d, const char *data, size_t len)
{
	for (size_t at = 0; at < len;) {
		const char *nl = memchr(data + at, '\n', len - at);
		size_t end = nl ? (size_t)(nl - data) : len;
		bool nothing = end == at || (end == at + 1 && data[at] == '\r');
		d->in_line = d->in_line || !nothing;
		if (nl && !d->in_line)
			return end + 1;
		if (nl)
			d->in_line = false;
		at = end + 1;
	}
	return 0;
}

static int take_plain(struct sba_relay_redact *d, const char *data, size_t len, bool last)
{
	struct sba_redact_scan scan = { .last = last };
	sba_buf_put(&d->part, data, len);
	if (d->part.failed)
		return d->part.failed;
	size_t safe = sba_redact(d->secret, d->part.data, d->part.len, &scan);
	int rc = pass(d, d->part.data, safe);
	sba_buf_drop(&d->part, safe);
	if (rc == 0 && d->held_bytes > SBA_RELAY_HELD_MAX)
		rc = give_up(d);
	pass_on(d);
	return rc;
}

static int take_piece(struct sba_relay_redact *d, char *data, size_t len, bool whole)
{
	if (d->oversized || d->part.len + len > SBA_RELAY_EVENT_MAX) {
		d->oversized = !whole;
		return take_plain(d, data, len, whole);
	}
	if (whole && d->part.len == 0)
		return take_event(d, data, len);
	sba_buf_put(&d->part, data, len);
	if (d->part.failed || !whole)
		return d->part.failed;
	int rc = take_event(d, d->part.data, d->part.len);
	sba_buf_reset(&d->part);
	return rc;
}

int sba_relay_redact_feed(struct sba_relay_redact *d, char *data, size_t len)
{
	int rc = 0;
	if (!d->sse)
		return take_plain(d, data, len, false);
	while (rc == 0 && len > 0) {
		size_t end = event_end(d, data, len), n = end ? end : len;
		rc = take_piece(d, data, n, end > 0);
		data += n;
		len -= n;
	}
	return rc;
}

int sba_relay_redact_end(struct sba_relay_redact *d)
{
	int rc = !d->sse || d->oversized ? take_plain(d, "", 0, true)
		 : d->part.len > 0       ? take_event(d, d->part.data, d->part.len)
					 : 0;
	sba_buf_reset(&d->part);
	for (size_t i = 0; rc == 0 && i < SBA_ARRAY_LEN(d->lanes); i++) {
		struct sba_relay_lane *lane = &d->lanes[i];
		if (lane->tail.len)
			rc = settle(d, lane, true);
	}
	pass_on(d);
	return rc < 0 ? rc : d->out.failed;
}

void sba_relay_redact_fini(struct sba_relay_redact *d)
{
	for (size_t i = 0; i < SBA_ARRAY_LEN(d->lanes); i++) {
		while (d->lanes[i].pieces)
			drop_piece(&d->lanes[i]);
		sba_buf_fini(&d->lanes[i].tail);
	}
	while (d->first) {
		struct sba_relay_held *h = d->first;
		d->first = h->next;
		free_held(h);
	}
	sba_buf_fini(&d->part);
	sba_buf_fini(&d->out);
}
