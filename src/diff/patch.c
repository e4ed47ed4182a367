/* SPDX-License-Identifier: MIT */
/*
 * The change of one file as git writes it, for `git apply`: git's own headers, names in
 * C quotes where they need them, contents that are no text as literals.
 */
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "base/limits.h"
#include "diff/private.h"

enum { LINE_BYTES = 52, GROUP = 4, DIGITS = 5, NUL_NAMES = 40 };

#define DEV_NULL "/dev/null"

/* ---- names ---- */

static bool needs_quotes(const char *path)
{
	for (; *path; path++) {
		unsigned char c = (unsigned char)*path;
		if (c < ' ' || c >= 0x7f || c == '"' || c == '\\')
			return true;
	}
	return false;
}

static void put_quoted(struct sba_buf *out, const char *text)
{
	static const char letters[] = "\aa\bb\tt\nn\vv\ff\rr\"\"\\\\";
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;
		const char *pair = NULL;
		for (const char *p = letters; *p && !pair; p += 2)
			pair = *p == *text ? p : NULL;
		if (pair)
			sba_buf_printf(out, "\\%c", pair[1]);
		else if (c < ' ' || c >= 0x7f)
			sba_buf_printf(out, "\\%03o", c);
		else
			sba_buf_putc(out, *text);
	}
}

void sba_diff_put_name(struct sba_buf *out, const char *prefix, const char *path)
{
	bool quotes = needs_quotes(path);
	if (quotes)
		sba_buf_putc(out, '"');
	sba_buf_puts(out, prefix);
	if (quotes)
		put_quoted(out, path);
	else
		sba_buf_puts(out, path);
	if (quotes)
		sba_buf_putc(out, '"');
}

/* A name with a blank in it is followed by a tab, where a time could follow. */
static void put_side(struct sba_buf *out, const char *sign, const char *prefix,
		     const struct sba_diff_file *f)
{
	sba_buf_printf(out, "%s ", sign);
	if (f->path)
		sba_diff_put_name(out, prefix, f->path);
	else
		sba_buf_puts(out, DEV_NULL);
	sba_buf_puts(out, f->path && strchr(f->path, ' ') ? "\t\n" : "\n");
}

/* ---- binary ---- */

static void put_line(struct sba_buf *out, const unsigned char *data, size_t len)
{
	static const char digits[] =
		"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
		"!#$%&()*+-;<=>?@^_`{|}~";
	sba_buf_putc(out, (char)(len <= 26 ? 'A' + len - 1 : 'a' + len - 27));
	for (size_t at = 0; at < len; at += GROUP) {
		char group[DIGITS];
		uint32_t n = 0;
		for (size_t i = 0; i < GROUP; i++)
			n = n << 8 | (at + i < len ? data[at + i] : 0U);
		for (size_t i = DIGITS; i-- > 0; n /= 85)
			group[i] = digits[n % 85];
		sba_buf_put(out, group, DIGITS);
	}
	sba_buf_putc(out, '\n');
}

int sba_diff_literal(const struct sba_diff_text *content, struct sba_buf *out,
		     struct sba_error *err)
{
	uLong bound = compressBound((uLong)content->len), size = bound;
	SBA_BUF struct sba_buf packed = SBA_BUF_INIT((size_t)bound + 1);
	char *to = sba_buf_reserve(&packed, (size_t)bound);
	if (!to)
		return sba_buf_check(&packed, "a deflated content", err);
	if (compress2((Bytef *)to, &size, (const Bytef *)(content->len ? content->data : ""),
		      (uLong)content->len, Z_DEFAULT_COMPRESSION) != Z_OK)
		return sba_fail_nomem(err);
	sba_buf_printf(out, "literal %zu\n", content->len);
	for (size_t at = 0; at < size; at += LINE_BYTES) {
		size_t left = (size_t)size - at;
		put_line(out, (const unsigned char *)to + at,
			 left < LINE_BYTES ? left : LINE_BYTES);
	}
	sba_buf_putc(out, '\n');
	return sba_buf_check(out, "a patch", err);
}

/* ---- one file ---- */

static unsigned git_mode(uint32_t mode)
{
	if (S_ISLNK(mode))
		return 0120000;
	return mode & S_IXUSR ? 0100755 : 0100644;
}

static int name_of(const struct sba_diff_file *f, char ret[SBA_GIT_NAME], struct sba_error *err)
{
	memset(ret, '0', NUL_NAMES);
	ret[NUL_NAMES] = '\0';
	if (f->path && sba_git_blob_name(f->content.data, f->content.len, ret) < 0)
		return sba_fail_nomem(err);
	return 0;
}

static void put_modes(struct sba_buf *out, const struct sba_diff_file *old,
		      const struct sba_diff_file *fresh)
{
	if (!old->path)
		sba_buf_printf(out, "new file mode %06o\n", git_mode(fresh->mode));
	else if (!fresh->path)
		sba_buf_printf(out, "deleted file mode %06o\n", git_mode(old->mode));
	else if (git_mode(old->mode) != git_mode(fresh->mode))
		sba_buf_printf(out, "old mode %06o\nnew mode %06o\n", git_mode(old->mode),
			       git_mode(fresh->mode));
}

static void put_renaming(struct sba_buf *out, const char *from, const char *to, bool same)
{
	if (same)
		sba_buf_puts(out, "similarity index 100%\n");
	sba_buf_puts(out, "rename from ");
	sba_diff_put_name(out, "", from);
	sba_buf_puts(out, "\nrename to ");
	sba_diff_put_name(out, "", to);
	sba_buf_putc(out, '\n');
}

static int put_content(struct sba_buf *out, const struct sba_diff_file *old,
		       const struct sba_diff_file *fresh, struct sba_error *err)
{
	const struct sba_diff_text *a = &old->content, *b = &fresh->content;
	if (sba_diff_is_text(a->data, a->len) && sba_diff_is_text(b->data, b->len)) {
		size_t before = out->len;
		put_side(out, "---", "a/", old);
		put_side(out, "+++", "b/", fresh);
		int rc = sba_diff_hunks(a, b, out, NULL, err);
		if (rc != SBA_ELIMIT || out->failed)
			return rc;
		/* Too many lines to compare: whole, as what is no text. */
		out->len = before;
	}
	sba_buf_puts(out, "GIT binary patch\n");
	int rc = sba_diff_literal(b, out, err);
	return rc < 0 ? rc : sba_diff_literal(a, out, err);
}

static int put_file(struct sba_buf *out, const struct sba_diff_file *old,
		    const struct sba_diff_file *fresh, struct sba_error *err)
{
	char from[SBA_GIT_NAME], to[SBA_GIT_NAME];
	const char *a = old->path ? old->path : fresh->path;
	const char *b = fresh->path ? fresh->path : old->path;
	bool renamed = strcmp(a, b) != 0;
	int rc = name_of(old, from, err);
	if (rc == 0)
		rc = name_of(fresh, to, err);
	if (rc < 0)
		return rc;
	bool same = strcmp(from, to) == 0;
	bool both = old->path && fresh->path;
	if (both && same && !renamed && git_mode(old->mode) == git_mode(fresh->mode))
		return 0;
	sba_buf_puts(out, "diff --git ");
	sba_diff_put_name(out, "a/", a);
	sba_buf_putc(out, ' ');
	sba_diff_put_name(out, "b/", b);
	sba_buf_putc(out, '\n');
	put_modes(out, old, fresh);
	if (renamed)
		put_renaming(out, a, b, same);
	if (same)
		return sba_buf_check(out, "a patch", err);
	sba_buf_printf(out, "index %s..%s", from, to);
	if (both && git_mode(old->mode) == git_mode(fresh->mode))
		sba_buf_printf(out, " %06o", git_mode(old->mode));
	sba_buf_putc(out, '\n');
	/* An empty file has no lines to show: its mode was all. */
	if (!both && old->content.len + fresh->content.len == 0)
		return sba_buf_check(out, "a patch", err);
	return put_content(out, old, fresh, err);
}

int sba_diff_patch(const struct sba_diff_file *old, const struct sba_diff_file *fresh,
		   struct sba_buf *out, struct sba_error *err)
{
	const struct sba_diff_file none = { 0 };
	bool both = old->path && fresh->path;
	if (!both || S_ISLNK(old->mode) == S_ISLNK(fresh->mode))
		return put_file(out, old, fresh, err);
	/* A file that becomes a link, or the reverse, is another one. */
	int rc = put_file(out, old, &none, err);
	return rc < 0 ? rc : put_file(out, &none, fresh, err);
}
