/* SPDX-License-Identifier: MIT */
/* Where the output of a command inside goes: our streams as it is, or JSON lines. */
#include "cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* How many bytes at the end of data begin a character whose rest has not come. */
static size_t unfinished(const char *data, size_t len)
{
	size_t most = len < 3 ? len : 3;
	for (size_t n = 1; n <= most; n++) {
		unsigned char c = (unsigned char)data[len - n];
		size_t needs = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;
		if ((c & 0xc0) == 0x80)
			continue;
		return needs > n ? n : 0;
	}
	return 0;
}

static void go_deaf(struct cli_sink *s, int e)
{
	if (!s->deaf)
		s->why = e;
	s->deaf = true;
}

static void put_line(struct cli_sink *s, enum sba_output which, const char *data, size_t len)
{
	json_t *j = json_pack("{s:s, s:s}", "type", "output", "stream",
			      which == SBA_STDERR ? "stderr" : "stdout");
	cli_json_bytes(j, data, len);
	cli_json_line(j);
	if (ferror(stdout))
		go_deaf(s, errno);
}

/* A character that two pieces share is put into the second one's line. */
static void put_json(struct cli_sink *s, enum sba_output which, const char *data, size_t len)
{
	struct cli_held *held = &s->held[which == SBA_STDERR];
	CLI_FREE char *joined = NULL;
	if (held->len > 0 && (joined = malloc(held->len + len)) != NULL) {
		memcpy(joined, held->bytes, held->len);
		memcpy(joined + held->len, data, len);
		data = joined;
		len += held->len;
	} else if (held->len > 0) {
		put_line(s, which, held->bytes, held->len);
	}
	size_t rest = unfinished(data, len);
	if (len > rest)
		put_line(s, which, data, len - rest);
	memcpy(held->bytes, data + len - rest, rest);
	held->len = rest;
}

void cli_sink_put(struct cli_sink *s, enum sba_output which, const char *data, size_t len)
{
	if (s->deaf)
		return;
	if (s->cli->json)
		put_json(s, which, data, len);
	else if (!cli_write(which == SBA_STDERR ? STDERR_FILENO : STDOUT_FILENO, data, len))
		go_deaf(s, errno);
}

void cli_sink_cut(struct cli_sink *s, int64_t limit)
{
	if (!s->cli->json) {
		cli_note(s->cli, "output truncated after %lld bytes; the rest is dropped",
			 (long long)limit);
		return;
	}
	cli_sink_end(s);
	cli_json_line(json_pack("{s:s, s:I}", "type", "truncated", "limit", (json_int_t)limit));
}

void cli_sink_end(struct cli_sink *s)
{
	for (size_t i = 0; i < CLI_LEN(s->held); i++) {
		if (s->held[i].len > 0 && !s->deaf)
			put_line(s, i ? SBA_STDERR : SBA_STDOUT, s->held[i].bytes, s->held[i].len);
		s->held[i].len = 0;
	}
}
