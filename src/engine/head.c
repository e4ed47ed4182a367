/* SPDX-License-Identifier: MIT */
/*
 * Parses the head of an HTTP/1 answer. Strict: what a correct server never
 * sends (folded lines, NUL, a bare CR or LF) is an error, not a guess.
 */
#include "base/limits.h"
#include "engine/engine.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static const char version[] = "HTTP/1.";

static int broken(struct sba_error *err, const char *what)
{
	return sba_fail(err, SBA_EPROTO, "not an HTTP answer: %s", what);
}

/* Length of the head with its blank line, 0 if it is not all there. */
static ssize_t find_end(const char *data, size_t len, struct sba_error *err)
{
	size_t known = len < sizeof(version) - 1 ? len : sizeof(version) - 1;
	if (memcmp(data, version, known) != 0)
		return broken(err, "it does not begin with HTTP/1");
	size_t look = len < SBA_HTTP_HEAD_MAX ? len : SBA_HTTP_HEAD_MAX;
	const char *end = memmem(data, look, "\r\n\r\n", 4);
	if (end)
		return end - data + 4;
	if (look == SBA_HTTP_HEAD_MAX)
		return sba_fail(err, SBA_EPROTO, "the answer's headers are larger than %d bytes",
				(int)SBA_HTTP_HEAD_MAX);
	return 0;
}

static bool bytes_ok(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)s[i];
		if (c == '\r' && i + 1 < len && s[i + 1] == '\n')
			i++;
		else if ((c < 0x20 && c != '\t') || c == 0x7F)
			return false;
	}
	return true;
}

/* "HTTP/1.1 200 OK" */
static int parse_status(const char *line, struct sba_http_head *h, struct sba_error *err)
{
	const char *p = line + sizeof(version) - 1;
	if (strlen(p) < 5 || !isdigit((unsigned char)p[0]) || p[1] != ' ')
		return broken(err, "no status line");
	for (int i = 2; i < 5; i++) {
		if (!isdigit((unsigned char)p[i]))
			return broken(err, "no status");
	}
	if (p[2] < '1' || p[2] > '5' || (p[5] != ' ' && p[5] != '\0'))
		return broken(err, "no status");
	h->minor = p[0] - '0';
	h->status = (p[2] - '0') * 100 + (p[3] - '0') * 10 + (p[4] - '0');
	snprintf(h->reason, sizeof(h->reason), "%s", p[5] ? p + 6 : "");
	return 0;
}

static bool is_token(char c)
{
	return isalnum((unsigned char)c) || (c && strchr("!#$%&'*+-.^_`|~", c));
}

static char *trim(char *s)
{
	s += strspn(s, " \t");
	size_t len = strlen(s);
	while (len > 0 && (s[len - 1] == ' ' || s[len - 1] == '\t'))
		len--;
	s[len] = '\0';
	return s;
}

static int parse_header(char *line, struct sba_http_head *h, struct sba_error *err)
{
	char *p = line;
	for (; is_token(*p); p++)
		*p = (char)tolower((unsigned char)*p);
	if (p == line || *p != ':')
		return broken(err, "a header without a name");
	if (h->n_headers == SBA_ARRAY_LEN(h->headers))
		return broken(err, "too many headers");
	*p = '\0';
	h->headers[h->n_headers++] = (struct sba_http_header){ line, trim(p + 1) };
	return 0;
}

/* Cuts the next line off: ends it with NUL, returns it, moves *at behind it. */
static char *next_line(char **at)
{
	char *line = *at;
	char *end = strstr(line, "\r\n");
	if (!end)
		return NULL;
	*end = '\0';
	*at = end + 2;
	return line;
}

static int parse_lines(struct sba_http_head *h, struct sba_error *err)
{
	char *at = h->text;
	char *line = next_line(&at);
	int rc = line ? parse_status(line, h, err) : broken(err, "no status line");
	while (rc == 0 && (line = next_line(&at)) != NULL)
		rc = parse_header(line, h, err);
	return rc;
}

ssize_t sba_http_head_parse(const char *data, size_t len, struct sba_http_head *ret,
			    struct sba_error *err)
{
	ssize_t end = find_end(data, len, err);
	if (end <= 0)
		return end;
	size_t text_len = (size_t)end - 2; /* without the blank line */
	if (!bytes_ok(data, text_len))
		return broken(err, "control characters in its headers");
	struct sba_http_head h = { .text = strndup(data, text_len) };
	if (!h.text)
		return sba_fail_nomem(err);
	int rc = parse_lines(&h, err);
	if (rc < 0) {
		sba_http_head_fini(&h);
		return rc;
	}
	*ret = h;
	return end;
}

const char *sba_http_head_get(const struct sba_http_head *h, const char *name)
{
	for (size_t i = 0; i < h->n_headers; i++) {
		if (strcmp(h->headers[i].name, name) == 0)
			return h->headers[i].value;
	}
	return NULL;
}

void sba_http_head_fini(struct sba_http_head *h)
{
	free(h->text);
	*h = (struct sba_http_head){ 0 };
}
