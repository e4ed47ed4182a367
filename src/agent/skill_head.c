/* SPDX-License-Identifier: MIT */
/*
 * The front matter of a SKILL.md. It is YAML, of which only two plain keys are
 * looked at: whoever writes more than that is judged by the CLI.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/skill.h"

void sba_skill_head_fini(struct sba_skill_head *h)
{
	free(h->name);
	free(h->description);
	*h = (struct sba_skill_head){ 0 };
}

bool sba_skill_name_valid(const char *folder)
{
	size_t len = strlen(folder);
	if (len == 0 || len > SBA_SKILL_NAME_MAX || *folder == '.')
		return false;
	for (size_t i = 0; i < len;) {
		unsigned char c = (unsigned char)folder[i];
		size_t n = sba_utf8_seq((const unsigned char *)folder + i, len - i);
		if (n == 0 || c < 0x20 || c == 0x7f || c == '/')
			return false;
		i += n;
	}
	return true;
}

/* One line of the text, without its end. */
struct line {
	const char *at;
	size_t len;
};

static bool next_line(const char **at, const char *end, struct line *ret)
{
	if (*at >= end)
		return false;
	const char *nl = memchr(*at, '\n', (size_t)(end - *at));
	const char *stop = nl ? nl : end;
	ret->at = *at;
	ret->len = (size_t)(stop - *at);
	while (ret->len > 0 && strchr(" \t\r", ret->at[ret->len - 1]))
		ret->len--;
	*at = nl ? nl + 1 : end;
	return true;
}

static bool is_fence(const struct line *l)
{
	return l->len == 3 && memcmp(l->at, "---", 3) == 0;
}

static bool is_indented(const struct line *l)
{
	return l->len > 0 && (l->at[0] == ' ' || l->at[0] == '\t');
}

/* "key: value": the value, or NULL if it is another line. */
static const char *value_of(const struct line *l, const char *key, size_t *ret_len)
{
	size_t n = strlen(key);
	if (l->len <= n || memcmp(l->at, key, n) != 0 || l->at[n] != ':')
		return NULL;
	const char *v = l->at + n + 1, *end = l->at + l->len;
	while (v < end && (*v == ' ' || *v == '\t'))
		v++;
	*ret_len = (size_t)(end - v);
	return v;
}

/* Quotes around all of it, and the marks of a block ("|", ">-"), are not its text. */
static void put_value(struct sba_buf *b, const char *v, size_t len)
{
	if (len >= 2 && (*v == '"' || *v == '\'') && v[len - 1] == *v) {
		v++;
		len -= 2;
	} else if (len > 0 && len <= 3 && (*v == '|' || *v == '>')) {
		return;
	}
	sba_buf_put_utf8(b, v, len);
}

static void put_more(struct sba_buf *b, const struct line *l)
{
	size_t skip = 0;
	while (skip < l->len && (l->at[skip] == ' ' || l->at[skip] == '\t'))
		skip++;
	if (b->len > 0)
		sba_buf_putc(b, ' ');
	sba_buf_put_utf8(b, l->at + skip, l->len - skip);
}

static int end_value(struct sba_buf *b, char **to, struct sba_error *err)
{
	int rc = sba_buf_check(b, "front matter", err);
	if (rc == 0 && b->len > 0 && !*to && !(*to = sba_buf_take(b)))
		rc = sba_fail_nomem(err);
	return rc;
}

/* The value of one key, from the line that has it to the next that is not its. */
static int take(const char *at, const char *end, const char *key, char **to, struct sba_error *err)
{
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(4 * SBA_SKILL_TEXT_MAX);
	struct line l;
	bool within = false;
	while (next_line(&at, end, &l) && !is_fence(&l)) {
		size_t len = 0;
		const char *v = value_of(&l, key, &len);
		if (v && !within)
			put_value(&b, v, len);
		else if (within && is_indented(&l))
			put_more(&b, &l);
		else if (within)
			break;
		within = within || v;
	}
	return end_value(&b, to, err);
}

static bool has_end(const char *at, const char *end)
{
	struct line l;
	while (next_line(&at, end, &l)) {
		if (is_fence(&l))
			return true;
	}
	return false;
}

int sba_skill_head_parse(const char *text, size_t len, struct sba_skill_head *ret,
			 struct sba_error *err)
{
	const char *at = text, *end = text + len;
	struct sba_skill_head h = { 0 };
	struct line first;
	if (memchr(text, '\0', len))
		return sba_fail(err, SBA_EINVAL, "it is no text");
	if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
		at += 3;
	if (!next_line(&at, end, &first) || !is_fence(&first) || !has_end(at, end))
		return sba_hint(err,
				sba_fail(err, SBA_EINVAL, "it does not begin with front matter"),
				"---\nname: NAME\ndescription: WHAT IT IS FOR\n---");
	int rc = take(at, end, "name", &h.name, err);
	if (rc == 0)
		rc = take(at, end, "description", &h.description, err);
	if (rc == 0 && (!h.name || !h.description))
		rc = sba_hint(err,
			      sba_fail(err, SBA_EINVAL, "its front matter has no %s",
				       h.name ? "description" : "name"),
			      "---\nname: NAME\ndescription: WHAT IT IS FOR\n---");
	if (rc < 0) {
		sba_skill_head_fini(&h);
		return rc;
	}
	*ret = h;
	return 0;
}
