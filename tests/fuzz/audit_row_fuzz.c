/* SPDX-License-Identifier: MIT */
/* Any line as one of events.jsonl: a row whose strings can be read, or none. */
#include "audit/private.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	SBA_JSON json_t *json = NULL;
	SBA_FREE char *payload = NULL, *text = malloc(size + 1);
	struct sba_audit_row row = { 0 };
	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	if (!sba_audit_row_parse(text, size, &json, &payload, &row))
		return 0;
	const struct sba_event *e = &row.event;
	const char *const all[] = { row.kind,   row.payload, e->session,     e->text,
				    e->tool,    e->input,    e->tool_native, e->call_id,
				    e->summary, e->output,   e->path,        e->change };
	for (size_t i = 0; i < SBA_ARRAY_LEN(all); i++) {
		if (all[i] && !sba_utf8_valid(all[i], strlen(all[i])))
			abort();
	}
	/* What was read can be written, and is then the same. */
	SBA_BUF struct sba_buf line = SBA_BUF_INIT(SBA_AUDIT_LINE_MAX);
	SBA_JSON json_t *again = NULL;
	SBA_FREE char *payload_again = NULL;
	struct sba_audit_row same = { 0 };
	const struct sba_audit_place at = { .line = row.line > 0 ? row.line : 0 };
	if (!row.is_event)
		return 0;
	sba_audit_line_event(&line, &at, e);
	if (memchr(line.data, '\n', line.len - 1) ||
	    !sba_audit_row_parse(line.data, line.len - 1, &again, &payload_again, &same) ||
	    same.event.kind != e->kind || !same.event.text != !e->text ||
	    (e->text && strcmp(e->text, same.event.text) != 0))
		abort();
	return 0;
}
