/* SPDX-License-Identifier: MIT */
/*
 * What our script inside says: one record, marked by the command's id, that no output is
 * taken for by accident. Pure.
 */
#include "remote/remote.h"

#include <errno.h>
#include <string.h>

void sba_shell_quote(struct sba_buf *b, const char *word)
{
	sba_buf_putc(b, '\'');
	for (const char *end; (end = strchr(word, '\'')); word = end + 1) {
		sba_buf_put(b, word, (size_t)(end - word));
		sba_buf_puts(b, "'\\''");
	}
	sba_buf_puts(b, word);
	sba_buf_putc(b, '\'');
}

/* ---- the record: "\001ID:WORD\n" ---- */

enum { HEAD_LEN = 1 + SBA_REMOTE_ID_LEN + 1 };

/* Whether what is held may still become one; *ret_whole: it is. */
static bool may_be(const struct sba_shell_scan *s, bool *ret_whole)
{
	char head[HEAD_LEN + 1];
	size_t n = s->held_len < HEAD_LEN ? s->held_len : HEAD_LEN;
	snprintf(head, sizeof(head), "\001%s:", s->id);
	*ret_whole = false;
	if (memcmp(s->held, head, n) != 0)
		return false;
	for (size_t i = HEAD_LEN; i < s->held_len; i++) {
		char c = s->held[i];
		if (c == '\n') {
			*ret_whole = true;
			return true;
		}
		if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')))
			return false;
	}
	return s->held_len < HEAD_LEN + sizeof(s->word);
}

static void take_word(struct sba_shell_scan *s)
{
	size_t len = s->held_len - HEAD_LEN - 1;
	if (!s->found && len < sizeof(s->word)) {
		memcpy(s->word, s->held + HEAD_LEN, len);
		s->word[len] = '\0';
		s->found = true;
	}
	s->held_len = 0;
}

/* Its first byte is none of a record: on to what may be the next one. */
static int let_go(struct sba_shell_scan *s, sba_shell_pass_fn *pass, void *user)
{
	const char *next = memchr(s->held + 1, '\001', s->held_len - 1);
	size_t n = next ? (size_t)(next - s->held) : s->held_len;
	int rc = pass(user, s->held, n);
	s->held_len -= n;
	memmove(s->held, s->held + n, s->held_len);
	return rc;
}

static int hold(struct sba_shell_scan *s, char c, sba_shell_pass_fn *pass, void *user)
{
	bool whole = false;
	int rc = 0;
	s->held[s->held_len++] = c;
	while (rc == 0 && s->held_len > 0 && !may_be(s, &whole))
		rc = let_go(s, pass, user);
	if (rc == 0 && whole)
		take_word(s);
	return rc;
}

int sba_shell_scan(struct sba_shell_scan *s, const char *data, size_t len, sba_shell_pass_fn *pass,
		   void *user)
{
	int rc = 0;
	if (!data) {
		size_t n = s->held_len;
		s->held_len = 0;
		return n ? pass(user, s->held, n) : 0;
	}
	while (rc == 0 && len > 0) {
		const char *mark = s->held_len ? data : memchr(data, '\001', len);
		size_t n = mark ? (size_t)(mark - data) : len;
		if (n > 0) {
			rc = pass(user, data, n);
		} else {
			n = 1;
			rc = hold(s, *data, pass, user);
		}
		data += n;
		len -= n;
	}
	return rc;
}

bool sba_shell_exit(const char *word, struct sba_exit *ret)
{
	static const struct {
		const char *word;
		struct sba_exit exit;
	} known[] = {
		{ "none", { .kind = SBA_NOT_FOUND } },
		{ "noexec", { .kind = SBA_CANNOT_RUN, .number = EACCES } },
		{ "dir", { .kind = SBA_NO_WORKDIR, .number = ENOENT } },
	};
	int64_t status;
	for (size_t i = 0; i < SBA_ARRAY_LEN(known); i++) {
		if (strcmp(known[i].word, word) == 0) {
			*ret = known[i].exit;
			return true;
		}
	}
	if (sba_parse_int(word, 0, 255, &status) < 0)
		return false;
	/* A shell tells a signal in no other way. */
	*ret = status > 128 && status <= 128 + 64
		       ? (struct sba_exit){ .kind = SBA_SIGNALED, .number = (int)status - 128 }
		       : (struct sba_exit){ .kind = SBA_EXITED, .number = (int)status };
	return true;
}
