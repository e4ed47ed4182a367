/* SPDX-License-Identifier: MIT */
/*
 * How many tokens an answer cost, read off it while it passes: the usage
 * objects of Chat Completions, Messages and Responses, streamed or whole. Only
 * what can hold one is parsed, and never more than a limit at once.
 */
#include "base/limits.h"
#include "model/relay_private.h"

#include <string.h>

enum {
	BYTES_PER_TOKEN = 4,
	EVENT_ENVELOPE = 256, /* of a streamed event, what is not text */
};
#define COUNT_CEILING INT64_C(1000000000000) /* a number above it is nonsense */

/* Where each wire says what. Messages tells cached input beside the input,
 * the others as a part of it. */
static const struct {
	const char *input, *cached, *cache_written, *output, *reasoning;
} names[] = {
	[SBA_RELAY_CHAT] = { "prompt_tokens", "prompt_tokens_details.cached_tokens", NULL,
			     "completion_tokens", "completion_tokens_details.reasoning_tokens" },
	[SBA_RELAY_MESSAGES] = { "input_tokens", "cache_read_input_tokens",
				 "cache_creation_input_tokens", "output_tokens",
				 "output_tokens_details.thinking_tokens" },
	[SBA_RELAY_RESPONSES] = { "input_tokens", "input_tokens_details.cached_tokens", NULL,
				  "output_tokens", "output_tokens_details.reasoning_tokens" },
};

void sba_relay_count_init(struct sba_relay_count *c, enum sba_relay_wire wire, bool sse,
			  size_t request_bytes)
{
	*c = (struct sba_relay_count){ .wire = wire, .sse = sse, .request_bytes = request_bytes };
	sba_sse_init(&c->split);
	sba_buf_init(&c->whole, SBA_RELAY_COUNT_BODY_MAX);
}

void sba_relay_count_fini(struct sba_relay_count *c)
{
	sba_sse_fini(&c->split);
	sba_buf_fini(&c->whole);
}

/* False: not said. */
static bool take_number(const json_t *usage, const char *path, int64_t *ret)
{
	const json_t *j = path ? sba_json_get(usage, path) : NULL;
	if (!json_is_integer(j))
		return false;
	int64_t n = json_integer_value(j);
	*ret = n < 0 ? 0 : n > COUNT_CEILING ? COUNT_CEILING : n;
	return true;
}

/* Numbers are totals so far: what is said again replaces what was said. */
static void take_usage(struct sba_relay_count *c, const json_t *usage)
{
	if (take_number(usage, names[c->wire].input, &c->input))
		c->has_input = true;
	take_number(usage, names[c->wire].cached, &c->cached);
	take_number(usage, names[c->wire].cache_written, &c->cache_written);
	take_number(usage, names[c->wire].output, &c->output);
	take_number(usage, names[c->wire].reasoning, &c->reasoning);
}

static void take_document(struct sba_relay_count *c, const json_t *doc)
{
	/* Of Messages' message_start; the output in it is only a beginning. */
	const json_t *begun = sba_json_get(doc, "message.usage");
	const json_t *usage = json_object_get(doc, "usage");
	if (!json_is_object(usage))
		usage = sba_json_get(doc, "response.usage");
	if (json_is_object(usage)) {
		take_usage(c, usage);
		c->complete = true;
	} else if (json_is_object(begun)) {
		take_usage(c, begun);
	}
}

/* Whether the text has "usage": {. Inside of strings its quotes would have
 * backslashes; "usage": null, which some servers say in every event, is none. */
static bool may_have_usage(const char *text, size_t len)
{
	static const char name[] = "\"usage\"";
	const char *p = text, *end = text + len;
	while ((p = memmem(p, (size_t)(end - p), name, sizeof(name) - 1))) {
		p += sizeof(name) - 1;
		while (p < end && (strchr(" \t\r\n:", *p) && *p))
			p++;
		if (p < end && *p == '{')
			return true;
	}
	return false;
}

static void take_text(struct sba_relay_count *c, const char *text, size_t len)
{
	SBA_JSON json_t *doc = NULL;
	if (may_have_usage(text, len) && sba_json_parse(text, len, "answer", &doc, NULL) == 0)
		take_document(c, doc);
}

void sba_relay_count_feed(struct sba_relay_count *c, const char *data, size_t len)
{
	const char *event;
	size_t event_len;
	c->bytes += len;
	if (!c->sse) {
		sba_buf_put(&c->whole, data, len);
		return;
	}
	while (sba_sse_next(&c->split, &data, &len, &event, &event_len)) {
		c->events++;
		take_text(c, event, event_len);
	}
}

/* A streamed delta is at least a token; in a large one the text counts. */
static int64_t estimate_output(const struct sba_relay_count *c)
{
	uint64_t envelopes = c->events * EVENT_ENVELOPE;
	uint64_t text = c->bytes > envelopes ? (c->bytes - envelopes) / BYTES_PER_TOKEN : 0;
	return (int64_t)(text > c->events ? text : c->events);
}

/* A client that leaves before the end, or asks for no usage, must not be the
 * way around a budget. */
void sba_relay_count_end(struct sba_relay_count *c)
{
	if (!c->sse && !c->whole.failed && c->whole.len)
		take_text(c, c->whole.data, c->whole.len);
	if (c->complete)
		return;
	int64_t guess = estimate_output(c);
	c->estimated = true;
	if (!c->has_input)
		c->input = (int64_t)(c->request_bytes / BYTES_PER_TOKEN);
	if (c->output < guess)
		c->output = guess;
}

struct sba_usage sba_relay_count_usage(const struct sba_relay_count *c)
{
	bool beside = c->wire == SBA_RELAY_MESSAGES;
	return (struct sba_usage){
		.input = c->input + (beside ? c->cached + c->cache_written : 0),
		.cached_input = c->cached,
		.output = c->output,
		.reasoning = c->reasoning,
	};
}
