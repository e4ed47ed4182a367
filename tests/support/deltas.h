/* SPDX-License-Identifier: MIT */
/*
 * A text as the deltas of a stream in each of the three formats, and back, as a
 * client would read it. Include after what defines assert().
 */
#ifndef SBA_TEST_DELTAS_H
#define SBA_TEST_DELTAS_H

#include "http/http.h"

#include <stdlib.h>
#include <string.h>

enum deltas_format { DELTAS_MESSAGES, DELTAS_CHAT, DELTAS_RESPONSES, DELTAS_TOOL, DELTAS_FORMATS };

static const struct {
	const char *before, *after;
	const char *path; /* of the text in an event */
} deltas_formats[] = {
	[DELTAS_MESSAGES] = { "event: content_block_delta\ndata: {\"type\":\"content_block_delta\","
			      "\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":",
			      "}}\n\n", "delta.text" },
	[DELTAS_CHAT] = { "data: {\"id\":\"c1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":",
			  "},\"finish_reason\":null}]}\n\n", "choices.#0.delta.content" },
	[DELTAS_RESPONSES] = { "event: response.output_text.delta\r\ndata: {\"delta\":",
			       ",\"item_id\":\"m1\",\"output_index\":0,\"content_index\":0}"
			       "\r\n\r\n",
			       "delta" },
	[DELTAS_TOOL] = { "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":1,"
			  "\"function\":{\"arguments\":",
			  "}}]},\"index\":0}]}\n\n",
			  "choices.#0.delta.tool_calls.#0.function.arguments" },
};

/* One event with this piece of text (UTF-8). */
static inline void deltas_put(struct sba_buf *b, enum deltas_format f, const char *text, size_t len)
{
	json_t *j = json_stringn(text, len);
	char *s = sba_json_dump(j);
	sba_buf_puts(b, deltas_formats[f].before);
	sba_buf_puts(b, s ? s : "\"\"");
	sba_buf_puts(b, deltas_formats[f].after);
	free(s);
	json_decref(j);
}

/* All of the text of a stream. */
static inline void deltas_join(const char *stream, size_t len, enum deltas_format f,
			       struct sba_buf *text)
{
	struct sba_sse split;
	const char *event;
	size_t event_len;
	sba_sse_init(&split);
	while (sba_sse_next(&split, &stream, &len, &event, &event_len)) {
		json_t *doc = json_loadb(event, event_len, JSON_ALLOW_NUL, NULL);
		json_t *j = sba_json_get(doc, deltas_formats[f].path);
		if (json_is_string(j))
			sba_buf_put(text, json_string_value(j), json_string_length(j));
		json_decref(doc);
	}
	sba_sse_fini(&split);
}

#endif
