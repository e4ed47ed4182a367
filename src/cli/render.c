/* SPDX-License-Identifier: MIT */
/*
 * How a turn looks to a person. The answer is data and goes to `out`; who did
 * what goes to `err`. On one terminal the two read as one text, so whichever
 * writes next first ends the line of the other.
 */
#include "cli.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum {
	OUTPUT_LINES = 10,
	TOOL_COLUMNS = 6,
	WIDTH_MAX = 100,
	FACT_COLUMNS = 12,
	TIME_COLUMNS = 7,
	QUIET_MS = 5000, /* shown from here on */
	CUT_MS = 30000,  /* ends the line of an answer that has stopped */
};

static const char *reset(bool colour)
{
	return colour ? "\033[0m" : "";
}

/* ---- the answer ---- */

static void end_text(struct cli_render *r)
{
	if (r->in_text) {
		fputc('\n', r->out);
		fflush(r->out);
	}
	r->in_text = false;
	r->newlines = 0;
}

static void end_thinking(struct cli_render *r)
{
	if (r->in_thinking)
		fputc('\n', r->err);
	r->in_thinking = false;
}

static void end_line(struct cli_render *r)
{
	end_text(r);
	end_thinking(r);
	r->cut = false;
}

/* Newlines wait for what follows them, so that an answer ends in exactly one. */
static void put_text(struct cli_render *r, const char *text)
{
	bool tty = r->look->out_tty;
	CLI_FREE char *visible = tty ? sba_visible(text, strlen(text), false) : NULL;
	for (const char *c = visible ? visible : text; *c; c++) {
		if (*c == '\n') {
			r->newlines++;
			continue;
		}
		for (; r->newlines; r->newlines--)
			fputs(r->newlines == 1 && tty ? "\n  " : "\n", r->out);
		fputc(*c, r->out);
	}
	/* What reads a pipe may show it on the very terminal that our remarks go
	 * to: only whole lines leave, so that a remark begins one. */
	if (tty || !r->look->err_tty)
		fflush(r->out);
}

/* A piece may be continued by the next one, so it ends only when something
 * else begins. What a long silence has cut goes on without a mark. */
static void text(struct cli_render *r, const struct sba_event *e)
{
	const char *s = e->text;
	if (r->in_text && !e->delta)
		end_text(r);
	if (!r->in_text) {
		s += strspn(s, "\n");
		if (!*s)
			return;
		end_thinking(r);
		if (r->look->out_tty)
			fprintf(r->out, "%s ",
				r->cut && e->delta ? " " : cli_mark(r->look, CLI_MARK_TEXT));
		r->in_text = true;
		r->cut = false;
	}
	put_text(r, s);
}

/* ---- the rest ---- */

/* Folded to its first line, unless all of it was asked for. */
static void thinking(struct cli_render *r, const struct sba_event *e)
{
	char dim[16];
	bool colour = r->look->err_colour;
	const char *s = e->text;
	if (!e->delta)
		end_thinking(r);
	end_text(r);
	if (!r->in_thinking) {
		s += strspn(s, " \n");
		if (!*s)
			return;
		fputs("  ", r->err);
		r->in_thinking = true;
		r->thinking_room = r->verbose ? INT_MAX : r->look->columns - 6;
	}
	if (r->thinking_room <= 0)
		return;
	size_t len = r->verbose ? strlen(s) : strcspn(s, "\n");
	CLI_FREE char *shown = sba_visible(s, len, !r->verbose);
	size_t fits = shown ? cli_fit(shown, r->thinking_room) : 0;
	bool folded = s[len] || (shown && shown[fits]);
	fprintf(r->err, "%s%.*s%s%s", cli_sgr(colour, "2", dim), (int)fits, shown ? shown : "",
		folded ? cli_mark(r->look, CLI_MARK_MORE) : "", reset(colour));
	r->thinking_room = folded ? 0 : r->thinking_room - (shown ? cli_width(shown) : 0);
}

static void notice(struct cli_render *r, const char *what, const char *code)
{
	char sgr[16];
	bool colour = r->look->err_colour;
	end_line(r);
	CLI_FREE char *line = cli_line(r->look, what ? what : "", 0);
	fprintf(r->err, "%s%s %s%s\n", cli_sgr(colour, code, sgr), cli_mark(r->look, CLI_MARK_DOT),
		line ? line : "", reset(colour));
}

static void waiting_error(struct cli_render *r)
{
	if (r->error)
		notice(r, r->error, "31");
	free(r->error);
	r->error = NULL;
}

static void file_change(struct cli_render *r, const struct sba_event *e)
{
	/* What the CLI tells of comes once more, measured, at the end. */
	if (!r->verbose || !e->path || !e->measured)
		return;
	end_line(r);
	CLI_FREE char *path = cli_line(r->look, e->path, 0);
	fprintf(r->err, "  %s %s%s%s\n", e->change ? e->change : "changed", path ? path : "",
		e->summary ? "  " : "", e->summary ? e->summary : "");
}

/* ---- tools ---- */

static void call_fini(struct cli_call *c)
{
	free(c->summary);
	free(c->input);
	*c = (struct cli_call){ 0 };
}

static void tool_call(struct cli_render *r, const struct sba_event *e)
{
	if (r->calls_n == CLI_LEN(r->calls))
		return;
	struct cli_call *c = &r->calls[r->calls_n++];
	*c = (struct cli_call){ .since_ms = e->time_ms };
	snprintf(c->id, sizeof(c->id), "%s", e->call_id ? e->call_id : "");
	snprintf(c->tool, sizeof(c->tool), "%s", e->tool ? e->tool : "tool");
	c->summary = cli_line(r->look, e->summary ? e->summary : "", 0);
	c->input = e->input ? strdup(e->input) : NULL;
}

static bool take_call(struct cli_render *r, const char *id, struct cli_call *ret)
{
	for (size_t i = 0; i < r->calls_n; i++) {
		if (strncmp(r->calls[i].id, id ? id : "", sizeof(r->calls[i].id) - 1) != 0)
			continue;
		*ret = r->calls[i];
		r->calls_n--;
		memmove(&r->calls[i], &r->calls[i + 1], (r->calls_n - i) * sizeof(r->calls[i]));
		return true;
	}
	return false;
}

static unsigned count_lines(const char *s)
{
	unsigned n = 0;
	for (; *s; s += strcspn(s, "\n"), s += *s == '\n')
		n++;
	return n;
}

/* Lines of what was written, or of what was answered. */
static unsigned lines_of(const struct cli_call *c, const struct sba_event *e)
{
	CLI_JSON json_t *input = c->input ? json_loads(c->input, 0, NULL) : NULL;
	const char *content = json_string_value(json_object_get(input, "content"));
	if (!strcmp(c->tool, "write") && content)
		return count_lines(content);
	return e->output ? count_lines(e->output) : 0;
}

static void fact(const struct cli_call *c, const struct sba_event *e, char *buf, size_t size)
{
	unsigned lines = lines_of(c, e);
	buf[0] = '\0';
	if (e->has_exit_code)
		snprintf(buf, size, "exit %d", e->exit_code);
	else if (e->failed)
		snprintf(buf, size, "failed");
	else if (strcmp(c->tool, "bash") != 0 && lines)
		snprintf(buf, size, "%u line%s", lines, lines == 1 ? "" : "s");
}

/* The facts at the right stand in columns where there is room. Where there is
 * not, the time goes first, then a fact that says nothing bad, and only then
 * is the summary cut. */
static void tool_line(struct cli_render *r, const struct cli_call *c, const char *what, bool bad,
		      const char *time)
{
	char sgr[16];
	bool colour = r->look->err_colour;
	int width = r->look->columns < WIDTH_MAX ? r->look->columns : WIDTH_MAX;
	const char *mark = cli_mark(r->look, CLI_MARK_TOOL);
	CLI_FREE char *tool = cli_line(r->look, c->tool, 24);
	const char *name = tool ? tool : "";
	int name_pad = TOOL_COLUMNS - cli_width(name);
	if (name_pad < 0)
		name_pad = 0;
	int left = cli_width(mark) + 1 + cli_width(name) + name_pad + 2;
	int need = left + cli_width(c->summary ? c->summary : "");
	if (need + 2 + FACT_COLUMNS + TIME_COLUMNS > width)
		time = "";
	if (need + 2 + FACT_COLUMNS > width && !bad)
		what = "";
	int right = what[0] ? (int)strlen(what) + 2 : 0;
	CLI_FREE char *summary =
		cli_line(r->look, c->summary ? c->summary : "", width - left - right);
	const char *shown = summary ? summary : "";
	int gap = width - left - cli_width(shown) - FACT_COLUMNS - TIME_COLUMNS;
	if (gap < 2)
		gap = 2;
	fprintf(r->err, "%s %s%*s  %s", mark, name, name_pad, "", shown);
	if (what[0] || time[0])
		fprintf(r->err, "%*s%s%s%s", gap, "", cli_sgr(colour, bad ? "31" : "2", sgr), what,
			reset(colour));
	if (time[0])
		fprintf(r->err, "%*s", FACT_COLUMNS + TIME_COLUMNS - (int)strlen(what), time);
	fputc('\n', r->err);
}

static void tool_output(struct cli_render *r, const char *output)
{
	char dim[16];
	bool colour = r->look->err_colour;
	unsigned lines = count_lines(output), n = 0;
	const char *pipe = cli_mark(r->look, CLI_MARK_PIPE);
	cli_sgr(colour, "2", dim);
	for (const char *s = output; *s && (n < OUTPUT_LINES || r->verbose); n++) {
		size_t len = strcspn(s, "\n");
		CLI_FREE char *raw = strndup(s, len);
		CLI_FREE char *line = raw ? cli_line(r->look, raw, r->look->columns - 4) : NULL;
		fprintf(r->err, "  %s%s %s%s\n", dim, pipe, line ? line : "", reset(colour));
		s += len + (s[len] == '\n');
	}
	if (n < lines)
		fprintf(r->err, "  %s%s %s %u more lines%s\n", dim, pipe,
			cli_mark(r->look, CLI_MARK_MORE), lines - n, reset(colour));
}

static void tool_result(struct cli_render *r, const struct sba_event *e)
{
	struct cli_call c = { 0 };
	char what[32], time[32] = "";
	end_line(r);
	if (take_call(r, e->call_id, &c)) {
		/* Some CLIs tell of both at once, when all is over: no time is known then. */
		if (e->time_ms > c.since_ms)
			snprintf(time, sizeof(time), "%.1fs",
				 (double)(e->time_ms - c.since_ms) / 1000);
	} else {
		snprintf(c.tool, sizeof(c.tool), "%s", e->tool ? e->tool : "tool");
		c.summary = cli_line(r->look, e->summary ? e->summary : "", 0);
	}
	bool bad = e->failed || (e->has_exit_code && e->exit_code != 0);
	fact(&c, e, what, sizeof(what));
	tool_line(r, &c, what, bad, time);
	if (e->output && (bad || r->verbose || !strcmp(c.tool, "bash")))
		tool_output(r, e->output);
	call_fini(&c);
}

/* ---- the whole ---- */

static void render(struct cli_render *r, const struct sba_event *e)
{
	if (e->kind != SBA_EVENT_SESSION && e->kind != SBA_EVENT_USAGE && e->kind != SBA_EVENT_DONE)
		waiting_error(r);
	switch (e->kind) {
	case SBA_EVENT_TEXT:
		if (e->text)
			text(r, e);
		break;
	case SBA_EVENT_THINKING:
		if (e->text)
			thinking(r, e);
		break;
	case SBA_EVENT_TOOL_CALL:
		end_line(r);
		tool_call(r, e);
		break;
	case SBA_EVENT_TOOL_RESULT:
		tool_result(r, e);
		break;
	case SBA_EVENT_FILE_CHANGE:
		file_change(r, e);
		break;
	case SBA_EVENT_NOTICE:
		notice(r, e->text, "33");
		break;
	case SBA_EVENT_ERROR:
		free(r->error);
		r->error = e->text ? strdup(e->text) : NULL;
		break;
	case SBA_EVENT_SESSION:
	case SBA_EVENT_USAGE:
	case SBA_EVENT_DONE:
		break;
	}
}

void cli_render_event(struct cli_render *r, const struct sba_event *e)
{
	r->last_ms = e->time_ms;
	if (r->quiet)
		return;
	cli_status_clear(r->status);
	render(r, e);
	fflush(r->err);
	if (r->calls_n)
		cli_render_tick(r, e->time_ms);
}

void cli_render_tick(struct cli_render *r, int64_t now_ms)
{
	char line[512], time[32];
	int64_t quiet = now_ms - r->last_ms;
	if (!r->status->to || r->quiet)
		return;
	if (r->in_text || r->in_thinking) {
		if (quiet < CUT_MS)
			return;
		bool cut = r->in_text;
		end_line(r);
		r->cut = cut;
	}
	if (r->calls_n) {
		const struct cli_call *c = &r->calls[r->calls_n - 1];
		cli_time((now_ms - c->since_ms) / 1000 * 1000, time, sizeof(time));
		snprintf(line, sizeof(line), "%s %s  %.300s  %s", cli_mark(r->look, CLI_MARK_MORE),
			 c->tool, c->summary ? c->summary : "", time);
		cli_status_set(r->status, line);
	} else if (quiet >= QUIET_MS) {
		cli_time(quiet / 1000 * 1000, time, sizeof(time));
		snprintf(line, sizeof(line), "%s quiet for %s", cli_mark(r->look, CLI_MARK_MORE),
			 time);
		cli_status_set(r->status, line);
	}
}

void cli_render_end(struct cli_render *r)
{
	cli_status_clear(r->status);
	if (r->quiet)
		return;
	waiting_error(r);
	end_line(r);
	for (size_t i = 0; i < r->calls_n; i++)
		tool_line(r, &r->calls[i], "no result", true, "");
}

void cli_render_forget(struct cli_render *r, const char *reported)
{
	if (!r->error || !strstr(reported, r->error))
		return;
	free(r->error);
	r->error = NULL;
}

void cli_render_answer(struct cli_render *r, const char *text)
{
	CLI_FREE char *visible = r->look->out_tty ? sba_visible(text, strlen(text), false) : NULL;
	const char *shown = visible ? visible : text;
	size_t len = strlen(shown);
	while (len && shown[len - 1] == '\n')
		len--;
	if (len)
		fprintf(r->out, "%.*s\n", (int)len, shown);
}

void cli_render_result(struct cli_render *r, const struct sba_turn_result *t)
{
	char sgr[16], in[32], cached[32], out[32], time[32], verdict[64];
	bool colour = r->look->err_colour, ok = t->verdict == SBA_VERDICT_OK;
	cli_thousands((uint64_t)t->usage.input, in);
	cli_thousands((uint64_t)t->usage.cached_input, cached);
	cli_thousands((uint64_t)t->usage.output, out);
	snprintf(verdict, sizeof(verdict), "%s", sba_verdict_name(t->verdict));
	for (char *c = verdict; *c; c++)
		*c = *c == '_' ? ' ' : *c;
	/* In ASCII the mark of success is the word itself. */
	fprintf(r->err, "%s%s%s%s%s", cli_sgr(colour, ok ? "32" : "31", sgr),
		cli_mark(r->look, ok ? CLI_MARK_OK : CLI_MARK_FAIL), reset(colour),
		ok && !r->look->utf8 ? "" : " ", ok && !r->look->utf8 ? "" : verdict);
	if (t->tools)
		fprintf(r->err, "  %llu tool%s", (unsigned long long)t->tools,
			t->tools == 1 ? "" : "s");
	if (t->usage.input || t->usage.output) {
		fprintf(r->err, "  %s in", in);
		if (t->usage.cached_input)
			fprintf(r->err, " (%s cached)", cached);
		fprintf(r->err, "  %s out", out);
	}
	fprintf(r->err, "  %s\n", sba_format_duration(t->duration_ms, time, sizeof(time)));
	fflush(r->err);
}

void cli_render_fini(struct cli_render *r)
{
	for (size_t i = 0; i < r->calls_n; i++)
		call_fini(&r->calls[i]);
	r->calls_n = 0;
	free(r->error);
	r->error = NULL;
}
