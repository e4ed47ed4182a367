/* SPDX-License-Identifier: MIT */
/* What the terminal can show, and text measured and made fit for it. */
#include "cli.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

void cli_free(void *p)
{
	free(*(void **)p);
}

void cli_free_json(json_t **j)
{
	json_decref(*j);
}

/* The first of the three that is set decides, as libc has it; looked at as
 * text, because the locale that it names need not be installed here. */
static bool locale_is_utf8(void)
{
	static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };
	for (size_t i = 0; i < CLI_LEN(names); i++) {
		const char *v = getenv(names[i]);
		if (v && v[0])
			return strcasestr(v, "UTF-8") || strcasestr(v, "UTF8");
	}
	return false;
}

static bool wants_colour(const char *color, bool tty)
{
	if (color && strcmp(color, "auto") != 0)
		return !strcmp(color, "always");
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
	return tty && !(no && no[0]) && !(term && !strcmp(term, "dumb"));
}

void cli_look_init(struct cli_look *look, const char *color)
{
	unsigned short rows, columns;
	cli_term_size(&rows, &columns);
	look->utf8 = locale_is_utf8();
	look->out_tty = isatty(STDOUT_FILENO);
	look->err_tty = isatty(STDERR_FILENO);
	look->out_colour = wants_colour(color, look->out_tty);
	look->err_colour = wants_colour(color, look->err_tty);
	look->columns = columns;
}

const char *cli_mark(const struct cli_look *look, enum cli_mark mark)
{
	static const char *const marks[][2] = {
		[CLI_MARK_TEXT] = { "*", "●" }, [CLI_MARK_TOOL] = { ">", "▸" },
		[CLI_MARK_PIPE] = { "|", "│" }, [CLI_MARK_OK] = { "ok", "✓" },
		[CLI_MARK_FAIL] = { "x", "✗" }, [CLI_MARK_GET] = { "<-", "←" },
		[CLI_MARK_DOT] = { "-", "·" },  [CLI_MARK_MORE] = { "...", "…" },
	};
	return marks[mark][look->utf8];
}

const char *cli_sgr(bool colour, const char *code, char buf[16])
{
	buf[0] = '\0';
	if (colour)
		snprintf(buf, 16, "\033[%sm", code);
	return buf;
}

static unsigned next_char(const char **s)
{
	const unsigned char *u = (const unsigned char *)*s;
	unsigned c = u[0];
	int more = c >= 0xF0 ? 3 : c >= 0xE0 ? 2 : c >= 0xC0 ? 1 : 0;
	if (more)
		c &= 0x3FU >> more;
	*s += 1;
	while (more-- && (**s & 0xC0) == 0x80) {
		c = c << 6 | (**(const unsigned char **)s & 0x3FU);
		*s += 1;
	}
	return c;
}

static bool in_range(unsigned c, const unsigned (*ranges)[2], size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (c >= ranges[i][0] && c <= ranges[i][1])
			return true;
	}
	return false;
}

/* A table of our own: wcwidth() knows only what the locale in force knows. */
static int char_width(unsigned c)
{
	static const unsigned zero[][2] = { { 0x300, 0x36F },   { 0x483, 0x489 },
					    { 0x591, 0x5BD },   { 0x610, 0x61A },
					    { 0x64B, 0x65F },   { 0x200B, 0x200F },
					    { 0x20D0, 0x20FF }, { 0xFE00, 0xFE0F } };
	static const unsigned wide[][2] = { { 0x1100, 0x115F },   { 0x2E80, 0x303E },
					    { 0x3041, 0xA4CF },   { 0xAC00, 0xD7A3 },
					    { 0xF900, 0xFAFF },   { 0xFE30, 0xFE6F },
					    { 0xFF00, 0xFF60 },   { 0xFFE0, 0xFFE6 },
					    { 0x1F300, 0x1F64F }, { 0x1F680, 0x1F6FF },
					    { 0x1F900, 0x1FAFF }, { 0x20000, 0x3FFFD } };
	if (in_range(c, zero, CLI_LEN(zero)))
		return 0;
	return in_range(c, wide, CLI_LEN(wide)) ? 2 : 1;
}

static int width_of(const char *s, size_t len)
{
	int width = 0;
	for (const char *end = s + len; s < end;)
		width += char_width(next_char(&s));
	return width;
}

int cli_width(const char *s)
{
	return width_of(s, strlen(s));
}

size_t cli_fit(const char *s, int columns)
{
	const char *c = s;
	while (*c) {
		const char *next = c;
		columns -= char_width(next_char(&next));
		if (columns < 0)
			break;
		c = next;
	}
	return (size_t)(c - s);
}

const char *cli_time(int64_t ms, char *buf, size_t size)
{
	if (ms % 1000 != 0 || ms >= 120 * 1000)
		return sba_format_duration(ms, buf, size);
	snprintf(buf, size, "%llds", (long long)ms / 1000);
	return buf;
}

const char *cli_thousands(uint64_t n, char buf[32])
{
	char digits[24];
	int len = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)n);
	size_t o = 0;
	for (int i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			buf[o++] = ',';
		buf[o++] = digits[i];
	}
	buf[o] = '\0';
	return buf;
}

const char *cli_size(int64_t bytes, char *buf, size_t size)
{
	static const char units[] = "kmgt";
	size_t unit = 0;
	while (bytes > 0 && bytes % 1024 == 0 && unit < sizeof(units) - 1) {
		bytes /= 1024;
		unit++;
	}
	snprintf(buf, size, unit ? "%lld%c" : "%lld", (long long)bytes, unit ? units[unit - 1] : 0);
	return buf;
}

char *cli_line(const struct cli_look *look, const char *s, int columns)
{
	char *line = sba_visible(s, strlen(s), true);
	if (!line || columns <= 0 || cli_width(line) <= columns)
		return line;
	const char *more = cli_mark(look, CLI_MARK_MORE);
	int room = columns - cli_width(more);
	size_t keep = cli_fit(line, room > 0 ? room : 0);
	char *cut = malloc(keep + strlen(more) + 1);
	if (cut) {
		memcpy(cut, line, keep);
		memcpy(cut + keep, more, strlen(more) + 1);
	}
	free(line);
	return cut;
}

void cli_status_set(struct cli_status *s, const char *text)
{
	if (!s->to)
		return;
	/* One column stays free: a full line would wrap and be left behind. */
	fprintf(s->to, "\r%.*s\033[K", (int)cli_fit(text, s->columns - 1), text);
	fflush(s->to);
	s->shown = true;
}

void cli_status_clear(struct cli_status *s)
{
	if (!s->to || !s->shown)
		return;
	fputs("\r\033[K", s->to);
	fflush(s->to);
	s->shown = false;
}

int cli_columns_of(FILE *to)
{
	unsigned short rows, columns;
	int fd = fileno(to);
	if (fd < 0 || !isatty(fd))
		return 0;
	cli_term_size(&rows, &columns);
	return columns;
}

void cli_wrap(FILE *to, const char *text, int at, int indent, int columns)
{
	enum { ROOM_MIN = 20 };
	if (columns > 0 && columns - indent < ROOM_MIN)
		columns = indent + ROOM_MIN;
	bool first = true; /* of its line */
	while (*text) {
		size_t len = strcspn(text, " \n");
		int width = width_of(text, len);
		if (!first && columns > 0 && at + 1 + width > columns) {
			fprintf(to, "\n%*s", indent, "");
			at = indent;
			first = true;
		}
		fprintf(to, "%s%.*s", first ? "" : " ", (int)len, text);
		at += width + !first;
		first = false;
		text += len;
		if (*text == '\n' && text[1]) {
			fprintf(to, "\n%*s", indent, "");
			at = indent;
			first = true;
		}
		text += *text != '\0';
	}
	fputc('\n', to);
}

bool cli_write(int fd, const void *data, size_t len)
{
	const char *p = data;
	while (len > 0) {
		ssize_t n = write(fd, p, len);
		if (n >= 0) {
			p += n;
			len -= (size_t)n;
		} else if (errno == EAGAIN) {
			struct pollfd pfd = { .fd = fd, .events = POLLOUT };
			poll(&pfd, 1, -1);
		} else if (errno != EINTR) {
			return false;
		}
	}
	return true;
}
