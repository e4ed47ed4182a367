/* SPDX-License-Identifier: MIT */
/* The JSON that --json writes: stable names, absent where there is nothing to say. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

void cli_json_line(json_t *take_j)
{
	char *text = take_j ? json_dumps(take_j, JSON_COMPACT) : NULL;
	if (text)
		printf("%s\n", text);
	fflush(stdout);
	free(text);
	json_decref(take_j);
}

void cli_json_first(json_t *take_j)
{
	json_t *j = json_pack("{s:i}", "v", 1);
	if (j && take_j)
		json_object_update(j, take_j);
	json_decref(take_j);
	cli_json_line(j);
}

static char *base64(const unsigned char *data, size_t len)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	char *out = malloc((len + 2) / 3 * 4 + 1), *o = out;
	if (!out)
		return NULL;
	for (size_t i = 0; i < len; i += 3) {
		unsigned v = (unsigned)data[i] << 16;
		v |= i + 1 < len ? (unsigned)data[i + 1] << 8 : 0;
		v |= i + 2 < len ? data[i + 2] : 0;
		*o++ = digits[v >> 18];
		*o++ = digits[v >> 12 & 63];
		*o++ = i + 1 < len ? digits[v >> 6 & 63] : '=';
		*o++ = i + 2 < len ? digits[v & 63] : '=';
	}
	*o = '\0';
	return out;
}

void cli_json_bytes(json_t *j, const void *data, size_t len)
{
	if (sba_utf8_valid(data, len)) {
		json_object_set_new(j, "text", json_stringn(data, len));
		return;
	}
	CLI_FREE char *coded = base64(data, len);
	json_object_set_new(j, "base64", coded ? json_string(coded) : NULL);
}

void cli_json_path(json_t *j, const char *key, const char *coded_key, const char *path)
{
	size_t len = strlen(path);
	if (sba_utf8_valid(path, len)) {
		json_object_set_new(j, key, json_string(path));
		return;
	}
	CLI_FREE char *visible = sba_visible(path, len, true);
	CLI_FREE char *coded = base64((const unsigned char *)path, len);
	json_object_set_new(j, key, json_string(visible ? visible : ""));
	json_object_set_new(j, coded_key, json_string(coded ? coded : ""));
}

static void put_text(json_t *j, const char *key, const char *s)
{
	if (s && s[0])
		json_object_set_new(j, key, json_string(s));
}

static void put_count(json_t *j, const char *key, int64_t n)
{
	if (n)
		json_object_set_new(j, key, json_integer(n));
}

json_t *cli_json_usage(const struct sba_usage *u)
{
	json_t *j = json_pack("{s:I, s:I, s:I, s:I}", "input", (json_int_t)u->input, "cached_input",
			      (json_int_t)u->cached_input, "output", (json_int_t)u->output,
			      "reasoning", (json_int_t)u->reasoning);
	if (j && u->cost_usd > 0)
		json_object_set_new(j, "cost_usd", json_real(u->cost_usd));
	return j;
}

static void put_tool(json_t *j, const struct sba_event *e)
{
	put_text(j, "tool", e->tool);
	put_text(j, "tool_native", e->tool_native);
	put_text(j, "call_id", e->call_id);
	put_text(j, "summary", e->summary);
	/* The arguments are JSON where the CLI kept to it. */
	json_t *input = e->input ? json_loads(e->input, JSON_DECODE_ANY, NULL) : NULL;
	if (input)
		json_object_set_new(j, "input", input);
	else
		put_text(j, "input", e->input);
	put_text(j, "output", e->output);
	if (e->kind == SBA_EVENT_TOOL_RESULT)
		json_object_set_new(j, "failed", json_boolean(e->failed));
	if (e->has_exit_code)
		json_object_set_new(j, "exit_code", json_integer(e->exit_code));
}

json_t *cli_json_event(const struct sba_event *e)
{
	json_t *j = json_pack("{s:s, s:s, s:I}", "type", "event", "kind",
			      sba_event_kind_name(e->kind), "time_ms", (json_int_t)e->time_ms);
	if (!j)
		return NULL;
	put_text(j, "session", e->session);
	put_text(j, "text", e->text);
	if (e->delta)
		json_object_set_new(j, "delta", json_true());
	put_tool(j, e);
	put_text(j, "path", e->path);
	put_text(j, "change", e->change);
	if (e->measured)
		json_object_set_new(j, "measured", json_true());
	put_text(j, "old_path", e->old_path);
	put_text(j, "diff", e->diff);
	put_text(j, "without_diff", e->without_diff);
	if (e->kind == SBA_EVENT_USAGE)
		json_object_set_new(j, "usage", cli_json_usage(&e->usage));
	put_count(j, "http_status", e->http_status);
	return j;
}

json_t *cli_json_result(const struct sba_turn_result *r)
{
	json_t *j =
		json_pack("{s:s, s:s, s:s, s:s, s:o, s:I, s:i, s:I}", "type", "result", "verdict",
			  sba_verdict_name(r->verdict), "session", r->session, "text", r->text,
			  "usage", cli_json_usage(&r->usage), "tools", (json_int_t)r->tools,
			  "exit_status", r->exit_status, "duration_ms", (json_int_t)r->duration_ms);
	if (!j)
		return NULL;
	put_count(j, "http_status", r->http_status);
	put_count(j, "unknown_lines", (int64_t)r->unknown_lines);
	put_text(j, "audit", r->audit);
	if (r->verdict != SBA_VERDICT_OK) {
		json_object_set_new(j, "error", json_string(r->error.text));
		json_object_set_new(j, "retry", json_boolean(r->retryable));
		json_object_set_new(j, "partial", json_boolean(*r->text));
	}
	return j;
}

json_t *cli_json_sandbox(const struct sba_sandbox_info *i)
{
	json_t *j = json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:i}", "name", i->name, "id", i->id,
			      "state", i->state, "created", (json_int_t)i->created, "keepalive_ms",
			      (json_int_t)i->keepalive_ms, "max_lifetime_ms",
			      (json_int_t)i->max_lifetime_ms, "commands", i->commands);
	if (!j)
		return NULL;
	put_text(j, "prefix", i->prefix);
	put_text(j, "tag", i->tag);
	put_text(j, "agent", i->agent);
	put_text(j, "program", i->program);
	put_text(j, "mounts", i->mounts);
	put_text(j, "provider", i->provider);
	put_text(j, "login", i->login);
	put_text(j, "image", i->image);
	put_text(j, "user", i->user);
	put_text(j, "version", i->version);
	put_text(j, "pool", i->pool);
	if (i->foreign_schema)
		json_object_set_new(j, "foreign_schema", json_true());
	return j;
}
