/* SPDX-License-Identifier: MIT */
/*
 * Plays lines through a driver and keeps what came out in a form that a test
 * can write down: what was said, which tools ran and how they ended. Holds
 * every event to what event.h promises. For the tests of drivers/ only.
 */
#ifndef TEST_PLAY_H
#define TEST_PLAY_H

#include "drivers/drivers.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PLAY_CALLS_MAX = 64 };

struct play {
	struct sba_stream *stream;
	bool cut_everywhere;
	const char *line; /* in progress */
	size_t line_len;
	struct sba_buf said;    /* every TEXT */
	struct sba_buf thought; /* every THINKING */
	struct sba_buf files;   /* "created /a;modified /b;" */
	struct sba_buf errors;  /* every ERROR, each with ";" */
	struct sba_buf notices; /* every NOTICE, each with ";" */
	struct sba_buf summaries;
	struct {
		char id[64];
		char name[64];
		char native[64];
		char end[16]; /* "open", "ok", "failed" or the exit code */
	} calls[PLAY_CALLS_MAX];
	size_t n_calls;
	unsigned n[SBA_EVENT_DONE + 1]; /* events by kind */
	struct sba_usage usage;         /* of the last USAGE */
};

static inline int play_limit(void **state)
{
	(void)state;
	alarm(60);
	return 0;
}

static inline void play_name(char *to, size_t size, const char *text)
{
	snprintf(to, size, "%s", text ? text : "?");
}

static inline void play_call(struct play *p, const struct sba_event *e)
{
	assert_non_null(e->tool);
	assert_non_null(e->tool_native);
	assert_true(p->n_calls < PLAY_CALLS_MAX);
	play_name(p->calls[p->n_calls].id, sizeof(p->calls[0].id), e->call_id);
	play_name(p->calls[p->n_calls].name, sizeof(p->calls[0].name), e->tool);
	play_name(p->calls[p->n_calls].native, sizeof(p->calls[0].native), e->tool_native);
	play_name(p->calls[p->n_calls].end, sizeof(p->calls[0].end), "open");
	p->n_calls++;
	sba_buf_printf(&p->summaries, "%s;", e->summary ? e->summary : "");
	if (e->input) {
		json_t *j = json_loads(e->input, 0, NULL);
		assert_non_null(j);
		json_decref(j);
	}
}

static inline void play_result(struct play *p, const struct sba_event *e)
{
	for (size_t i = p->n_calls; i-- > 0;) {
		char *end = p->calls[i].end;
		if (!e->call_id || strcmp(p->calls[i].id, e->call_id) != 0)
			continue;
		assert_string_equal(e->tool, p->calls[i].name);
		assert_string_equal(e->tool_native, p->calls[i].native);
		if (e->has_exit_code)
			snprintf(end, sizeof(p->calls[i].end), "%d", e->exit_code);
		else
			play_name(end, sizeof(p->calls[i].end), e->failed ? "failed" : "ok");
		if (e->has_exit_code)
			assert_int_equal(e->failed, e->exit_code != 0);
		return;
	}
}

static inline void play_utf8(const char *text)
{
	assert_true(!text || sba_utf8_valid(text, strlen(text)));
}

static inline int play_event(void *user, const struct sba_event *e)
{
	struct play *p = user;
	const char *fields[] = { e->text,  e->tool,    e->tool_native, e->call_id,
				 e->input, e->summary, e->output,      e->path };
	for (size_t i = 0; i < SBA_ARRAY_LEN(fields); i++)
		play_utf8(fields[i]);
	assert_true(e->time_ms > 0);
	assert_ptr_equal(e->raw, p->line);
	assert_int_equal(e->raw_len, p->line_len);
	assert_in_range(e->kind, SBA_EVENT_SESSION, SBA_EVENT_DONE);
	p->n[e->kind]++;
	if (e->kind == SBA_EVENT_TEXT)
		sba_buf_puts(&p->said, e->text);
	if (e->kind == SBA_EVENT_THINKING)
		sba_buf_puts(&p->thought, e->text);
	if (e->kind == SBA_EVENT_FILE_CHANGE)
		sba_buf_printf(&p->files, "%s %s;", e->change ? e->change : "?", e->path);
	if (e->kind == SBA_EVENT_ERROR)
		sba_buf_printf(&p->errors, "%s;", e->text);
	if (e->kind == SBA_EVENT_NOTICE)
		sba_buf_printf(&p->notices, "%s;", e->text);
	if (e->kind == SBA_EVENT_USAGE)
		p->usage = e->usage;
	if (e->kind == SBA_EVENT_TOOL_CALL)
		play_call(p, e);
	if (e->kind == SBA_EVENT_TOOL_RESULT)
		play_result(p, e);
	return 0;
}

/* What is not said in options is filled in. */
static inline void play_begin_with(struct play *p, const struct sba_stream_options *given)
{
	*p = (struct play){ 0 };
	struct sba_buf *bufs[] = { &p->said,   &p->thought, &p->files,
				   &p->errors, &p->notices, &p->summaries };
	for (size_t i = 0; i < SBA_ARRAY_LEN(bufs); i++)
		sba_buf_init(bufs[i], 32 << 20);
	struct sba_error err;
	struct sba_stream_options options = *given;
	options.fn = play_event;
	options.user = p;
	assert_int_equal(sba_stream_new(&options, &p->stream, &err), 0);
}

static inline void play_begin(struct play *p, const char *driver)
{
	play_begin_with(p, &(struct sba_stream_options){ .driver = sba_driver_find(driver) });
}

static inline void play_bytes(struct play *p, const char *line, size_t len)
{
	p->line = line;
	p->line_len = len;
	assert_int_equal(sba_stream_line(p->stream, line, len), 0);
}

static inline void play_line(struct play *p, const char *line)
{
	play_bytes(p, line, strlen(line));
}

static inline struct sba_outcome play_finish(struct play *p, int exit_status, const char *tail)
{
	struct sba_outcome o;
	assert_int_equal(sba_stream_finish(p->stream, exit_status, tail, &o), 0);
	play_utf8(o.text);
	play_utf8(o.error);
	assert_int_equal(o.error == NULL, o.verdict == SBA_VERDICT_OK);
	return o;
}

static inline void play_end(struct play *p)
{
	sba_stream_free(p->stream);
	sba_buf_fini(&p->said);
	sba_buf_fini(&p->thought);
	sba_buf_fini(&p->files);
	sba_buf_fini(&p->errors);
	sba_buf_fini(&p->notices);
	sba_buf_fini(&p->summaries);
}

static inline const char *play_str(const struct sba_buf *b)
{
	return b->data ? b->data : "";
}

/* "bash=0 write=ok mcp:a.b=failed"; lives in buf. */
static inline const char *play_tools(const struct play *p, char *buf, size_t size)
{
	size_t at = 0;
	buf[0] = '\0';
	for (size_t i = 0; i < p->n_calls && at < size; i++) {
		int n = snprintf(buf + at, size - at, "%s%s=%s", i ? " " : "", p->calls[i].name,
				 p->calls[i].end);
		at += n > 0 ? (size_t)n : 0;
	}
	return buf;
}

static inline void play_read(const char *path, struct sba_buf *ret)
{
	struct sba_error err;
	sba_buf_init(ret, 4 << 20);
	if (sba_read_file(path, ret->max, ret, &err) < 0)
		fail_msg("%s (tests run in the project's folder)", err.text);
}

/* Calls fn for each line of a recording. */
static inline void play_each(const struct sba_buf *text, struct play *p,
			     void (*fn)(struct play *p, const char *line, size_t len))
{
	const char *at = text->data, *end = at ? at + text->len : at;
	while (at && at < end) {
		const char *nl = memchr(at, '\n', (size_t)(end - at));
		const char *stop = nl ? nl : end;
		fn(p, at, (size_t)(stop - at));
		at = nl ? nl + 1 : end;
	}
}

/* ---- recordings ---- */

/* What the notes of the measurements, and the recording read by eye, say. */
struct recording {
	const char *name;    /* without ".jsonl" */
	bool cut_everywhere; /* its long lines too, at every byte */
	const char *resumes; /* the session that the turn was to go on with; NULL: none */
	const char *kept;    /* by the turn before it */
	int exit_status;
	enum sba_verdict verdict;
	const char *session;
	const char *text;  /* the final answer */
	const char *said;  /* all text; NULL: the same */
	const char *tools; /* NULL: none */
	struct sba_usage usage;
	const char *error; /* a part of the outcome's; NULL if it is OK */
	int http_status;
	bool retryable;
	const char *files;
	const char *thought;
	unsigned notices;
	unsigned unknown_lines;
	const char *stderr_tail;
	const char *stderr_file; /* recorded, instead of stderr_tail */
};

static inline void recording_same_usage(const struct sba_usage *a, const struct sba_usage *b)
{
	assert_int_equal(a->input, b->input);
	assert_int_equal(a->cached_input, b->cached_input);
	assert_int_equal(a->output, b->output);
	assert_int_equal(a->reasoning, b->reasoning);
	assert_true(fabs(a->cost_usd - b->cost_usd) < 1e-9);
}

static inline const char *or_empty(const char *s)
{
	return s ? s : "";
}

static inline void recording_outcome(const struct recording *r, const struct sba_outcome *o)
{
	assert_string_equal(sba_verdict_name(o->verdict), sba_verdict_name(r->verdict));
	assert_string_equal(or_empty(o->session), or_empty(r->session));
	assert_string_equal(o->text, or_empty(r->text));
	assert_int_equal(o->http_status, r->http_status);
	assert_int_equal(o->retryable, r->retryable);
	recording_same_usage(&o->usage, &r->usage);
	if (r->error && !strstr(o->error, r->error))
		fail_msg("the error is '%s', not '%s'", o->error, r->error);
}

static inline void recording_events(const struct recording *r, const struct play *p)
{
	char tools[512];
	assert_string_equal(play_tools(p, tools, sizeof(tools)), or_empty(r->tools));
	assert_string_equal(play_str(&p->said), or_empty(r->said ? r->said : r->text));
	assert_string_equal(play_str(&p->files), or_empty(r->files));
	assert_string_equal(play_str(&p->thought), or_empty(r->thought));
	assert_int_equal(p->n[SBA_EVENT_NOTICE], r->notices);
	assert_int_equal(p->n[SBA_EVENT_SESSION], r->session ? 1 : 0);
	recording_same_usage(&p->usage, &r->usage);
}

static inline void recording_path(char *buf, size_t size, const char *driver, const char *name)
{
	snprintf(buf, size, "tests/fixtures/%s/%s%s", driver, name,
		 strchr(name, '.') ? "" : ".jsonl");
}

static inline struct sba_outcome recording_finish(struct play *p, const struct recording *r)
{
	struct sba_buf tail;
	if (!r->stderr_file)
		return play_finish(p, r->exit_status, or_empty(r->stderr_tail));
	play_read(r->stderr_file, &tail);
	struct sba_outcome o = play_finish(p, r->exit_status, tail.data);
	sba_buf_fini(&tail);
	return o;
}

static inline void recording_begin(struct play *p, const char *driver, const struct recording *r)
{
	play_begin_with(p, &(struct sba_stream_options){ .driver = sba_driver_find(driver),
							 .resumes = r->resumes,
							 .kept = r->kept });
}

static inline void recording_check(const char *driver, const struct recording *r)
{
	char path[256];
	struct sba_buf text;
	struct play p;
	recording_path(path, sizeof(path), driver, r->name);
	play_read(path, &text);
	recording_begin(&p, driver, r);
	play_each(&text, &p, play_bytes);
	struct sba_outcome o = recording_finish(&p, r);
	recording_outcome(r, &o);
	recording_events(r, &p);
	assert_int_equal(o.tools, p.n_calls);
	assert_int_equal(o.unknown_lines, r->unknown_lines);
	play_end(&p);
	sba_buf_fini(&text);
}

/* Each line in pieces of ever greater length, and then whole. */
static inline void recording_cut_line(struct play *p, const char *line, size_t len)
{
	size_t step = len <= 300 || p->cut_everywhere ? 1 : len <= 8000 ? 53 : 9973;
	for (size_t i = 1; i < len; i += step)
		play_bytes(p, line, i);
	play_bytes(p, line, len);
}

/* A line that was cut costs a notice and nothing else. */
static inline void recording_cut(const char *driver, const struct recording *r)
{
	char path[256];
	struct sba_buf text;
	struct play p;
	recording_path(path, sizeof(path), driver, r->name);
	play_read(path, &text);
	recording_begin(&p, driver, r);
	p.cut_everywhere = r->cut_everywhere;
	play_each(&text, &p, recording_cut_line);
	struct sba_outcome o = recording_finish(&p, r);
	recording_outcome(r, &o);
	play_end(&p);
	sba_buf_fini(&text);
}

/* Fails for a recording in the driver's folder that is no row. */
static inline void recording_all_are_rows(const char *driver, const struct recording *rows,
					  size_t n)
{
	char path[128];
	snprintf(path, sizeof(path), "tests/fixtures/%s", driver);
	DIR *dir = opendir(path);
	assert_non_null(dir);
	size_t seen = 0;
	for (struct dirent *e; (e = readdir(dir)) != NULL;) {
		const char *dot = strrchr(e->d_name, '.');
		bool sse = dot && strcmp(dot, ".sse") == 0;
		if (!dot || (!sse && strcmp(dot, ".jsonl") != 0))
			continue;
		size_t i = 0, len = sse ? strlen(e->d_name) : (size_t)(dot - e->d_name);
		while (i < n &&
		       (strlen(rows[i].name) != len || strncmp(rows[i].name, e->d_name, len) != 0))
			i++;
		if (i == n)
			fail_msg("%s/%s is no row", path, e->d_name);
		seen++;
	}
	closedir(dir);
	assert_int_equal(seen, n);
}

/* Two tests per row: it says what it says, and cut lines change nothing. */
static inline size_t recording_tests(struct CMUnitTest *tests, struct recording *rows, size_t n,
				     CMUnitTestFunction check, CMUnitTestFunction cut)
{
	for (size_t i = 0; i < n; i++) {
		tests[2 * i] =
			(struct CMUnitTest){ rows[i].name, check, play_limit, NULL, &rows[i] };
		tests[2 * i + 1] =
			(struct CMUnitTest){ rows[i].name, cut, play_limit, NULL, &rows[i] };
	}
	return 2 * n;
}

#endif
