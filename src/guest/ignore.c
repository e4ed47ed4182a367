/* SPDX-License-Identifier: MIT */
/* Patterns of .gitignore files; see ignore.h. */
#include "guest/ignore.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	TEXT_MAX = 1024 * 1024,
	STEPS_MAX = 100 * 1000, /* of one match: a pattern of many stars is a match no more */
};

struct pattern {
	const char *text;
	bool negated, folder_only, anchored; /* anchored: to the folder of its file */
};

struct sba_ignore {
	const struct sba_ignore *above;
	size_t base_len; /* of the folder's path, with its slash */
	size_t count;
	struct pattern *patterns;
	char *text; /* they point into it */
};

/* ---- one pattern ---- */

/* Where a set ends; NULL: it is none. *ret: whether c is in it. */
static const char *match_set(const char *set, char c, bool *ret)
{
	bool negated = set[1] == '!' || set[1] == '^', in = false;
	const char *at = set + 1 + negated;

	for (const char *first = at; *at && (*at != ']' || at == first); at++) {
		if (*at == '\\' && at[1])
			at++;
		if (at[1] == '-' && at[2] && at[2] != ']') {
			in = in || ((unsigned char)*at <= (unsigned char)c &&
				    (unsigned char)c <= (unsigned char)at[2]);
			at += 2;
		} else {
			in = in || *at == c;
		}
	}
	*ret = in != negated && c != '/';
	return *at ? at + 1 : NULL;
}

/* One character that is no star; NULL: it does not match. */
static const char *match_one(const char *pattern, char c)
{
	bool in = false;
	const char *end;

	switch (*pattern) {
	case '?':
		return c != '/' ? pattern + 1 : NULL;
	case '[':
		end = match_set(pattern, c, &in);
		if (end)
			return in ? end : NULL;
		return c == '[' ? pattern + 1 : NULL;
	case '\\':
		if (pattern[1])
			pattern++;
		return *pattern == c ? pattern + 1 : NULL;
	default:
		return *pattern == c ? pattern + 1 : NULL;
	}
}

static bool match(const char *pattern, const char *text, bool at_start, unsigned int *steps);

static bool match_star(const char *pattern, const char *text, unsigned int *steps)
{
	for (;; text++) {
		if (match(pattern, text, false, steps))
			return true;
		if (!*text || *text == '/' || *steps == 0)
			return false;
	}
}

/* "**" + "/" at the beginning of a part: any folders, or none. */
static bool match_folders(const char *pattern, const char *text, unsigned int *steps)
{
	for (;;) {
		if (match(pattern, text, true, steps))
			return true;
		text = strchr(text, '/');
		if (!text || *steps == 0)
			return false;
		text++;
	}
}

static bool match(const char *pattern, const char *text, bool at_start, unsigned int *steps)
{
	while (*pattern) {
		if (*steps == 0 || --*steps == 0)
			return false;
		if (at_start && strncmp(pattern, "**", 2) == 0) {
			if (pattern[2] == '/')
				return match_folders(pattern + 3, text, steps);
			if (!pattern[2])
				return *text != '\0';
		}
		if (*pattern == '*') {
			pattern += strspn(pattern, "*");
			return match_star(pattern, text, steps);
		}
		if (!*text)
			return false;
		at_start = *text == '/';
		pattern = match_one(pattern, *text++);
		if (!pattern)
			return false;
	}
	return !*text;
}

static bool names(const struct pattern *pattern, const char *path, bool is_folder)
{
	const char *slash = strrchr(path, '/');
	unsigned int steps = STEPS_MAX;

	if (pattern->folder_only && !is_folder)
		return false;
	return match(pattern->text, pattern->anchored || !slash ? path : slash + 1, true, &steps);
}

bool sba_ignore_names(const struct sba_ignore *ignore, const char *path, bool is_folder)
{
	for (; ignore; ignore = ignore->above) {
		for (size_t i = ignore->count; i-- > 0;) {
			if (names(&ignore->patterns[i], path + ignore->base_len, is_folder))
				return !ignore->patterns[i].negated;
		}
	}
	return false;
}

/* ---- a file of them ---- */

/* Spaces at the end do not count unless the last one has a backslash before it. */
static size_t trimmed(const char *line, size_t len)
{
	if (len > 0 && line[len - 1] == '\r')
		len--;
	while (len > 0 && line[len - 1] == ' ' && !(len > 1 && line[len - 2] == '\\'))
		len--;
	return len;
}

/* Ends the line in place. False: it is no pattern. */
static bool parse(char *line, size_t len, struct pattern *ret)
{
	len = trimmed(line, len);
	line[len] = '\0';
	if (len == 0 || line[0] == '#')
		return false;
	*ret = (struct pattern){ .negated = line[0] == '!' };
	line += ret->negated;
	len -= ret->negated;
	if (len > 1 && line[len - 1] == '/') {
		ret->folder_only = true;
		line[len - 1] = '\0';
	}
	ret->anchored = strchr(line, '/') != NULL;
	ret->text = line + (line[0] == '/');
	return *ret->text != '\0';
}

static size_t count_lines(const char *text, size_t len)
{
	size_t count = 1;

	for (size_t i = 0; i < len; i++)
		count += text[i] == '\n';
	return count;
}

void sba_ignore_free(const struct sba_ignore *ignore)
{
	if (!ignore)
		return;
	free(ignore->patterns);
	free(ignore->text);
	free((void *)(uintptr_t)ignore);
}

const struct sba_ignore *sba_ignore_text(const struct sba_ignore *above, const char *base,
					 const char *text, size_t len)
{
	struct sba_ignore *ignore = calloc(1, sizeof(*ignore));
	char *copy = malloc(len + 1);

	if (ignore)
		ignore->patterns = calloc(count_lines(text, len), sizeof(*ignore->patterns));
	if (!ignore || !copy || !ignore->patterns) {
		sba_ignore_free(ignore);
		free(copy);
		return NULL;
	}
	ignore->text = copy;
	if (len > 0)
		memcpy(copy, text, len);
	copy[len] = '\0';
	ignore->above = above;
	ignore->base_len = *base ? strlen(base) + 1 : 0;
	for (size_t at = 0; at < len;) {
		char *end = memchr(copy + at, '\n', len - at);
		size_t line_len = end ? (size_t)(end - (copy + at)) : len - at;

		ignore->count += parse(copy + at, line_len, &ignore->patterns[ignore->count]);
		at += line_len + 1;
	}
	return ignore;
}

static ssize_t read_text(int fd, char *text, size_t size)
{
	size_t have = 0;
	ssize_t got;

	while (have < size && (got = read(fd, text + have, size - have)) != 0) {
		if (got < 0 && errno != EINTR)
			return -1;
		have += got > 0 ? (size_t)got : 0;
	}
	return (ssize_t)have;
}

const struct sba_ignore *sba_ignore_folder(const struct sba_ignore *above, int dir_fd,
					   const char *base)
{
	const struct sba_ignore *ignore = above;
	struct stat stat;
	int fd = openat(dir_fd, ".gitignore",
			O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (fd < 0)
		return above;
	if (fstat(fd, &stat) == 0 && S_ISREG(stat.st_mode) && stat.st_size <= TEXT_MAX) {
		char *text = malloc((size_t)stat.st_size + 1);
		ssize_t len = text ? read_text(fd, text, (size_t)stat.st_size) : -1;

		if (len > 0)
			ignore = sba_ignore_text(above, base, text, (size_t)len);
		if (!ignore)
			ignore = above;
		free(text);
	}
	close(fd);
	return ignore;
}
