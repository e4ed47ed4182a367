/* SPDX-License-Identifier: MIT */
/* Patterns of names that stay behind, as lines of a .gitignore have them. */
#include "archive/private.h"

#include <fnmatch.h>
#include <string.h>

/* Copies one component; false if it does not fit. */
static bool component(const char *from, size_t len, char ret[SBA_LAND_NAME_MAX + 1])
{
	if (len > SBA_LAND_NAME_MAX)
		return false;
	memcpy(ret, from, len);
	ret[len] = '\0';
	return true;
}

static bool same_component(const char *pattern, size_t pattern_len, const char *name,
			   size_t name_len)
{
	char p[SBA_LAND_NAME_MAX + 1], n[SBA_LAND_NAME_MAX + 1];
	return component(pattern, pattern_len, p) && component(name, name_len, n) &&
	       fnmatch(p, n, 0) == 0;
}

/* Both without a slash at either end; the pattern's last byte is before `end`. What
 * does not match is tried again from the last "**" on, one directory further: no
 * earlier one has to be. */
static bool match_path(const char *pattern, const char *end, const char *path)
{
	const char *again = NULL, *from = NULL;
	for (;;) {
		size_t p = strcspn(pattern, "/"), n = strcspn(path, "/");
		if (p > (size_t)(end - pattern))
			p = (size_t)(end - pattern);
		bool last = pattern + p == end;
		if (p == 2 && strncmp(pattern, "**", 2) == 0) {
			if (last)
				return true;
			again = pattern = pattern + p + 1;
			from = path;
			continue;
		}
		bool same = same_component(pattern, p, path, n);
		if (same && last && !path[n])
			return true;
		if (same && !last && path[n]) {
			pattern += p + 1;
			path += n + 1;
			continue;
		}
		size_t skip = again ? strcspn(from, "/") : 0;
		if (!again || !from[skip])
			return false;
		pattern = again;
		path = from += skip + 1;
	}
}

static bool match_one(const char *pattern, const char *rel, bool is_dir)
{
	size_t len = strlen(pattern);
	bool anchored = pattern[0] == '/';
	if (len > 0 && pattern[len - 1] == '/') {
		if (!is_dir)
			return false;
		len--;
	}
	const char *end = pattern + len;
	pattern += anchored;
	if (pattern >= end)
		return false;
	if (anchored || memchr(pattern, '/', (size_t)(end - pattern)))
		return match_path(pattern, end, rel);
	const char *slash = strrchr(rel, '/');
	return match_path(pattern, end, slash ? slash + 1 : rel);
}

static bool match_any(const char *const *patterns, const char *rel, bool is_dir)
{
	for (; *patterns; patterns++) {
		if (match_one(*patterns, rel, is_dir))
			return true;
	}
	return false;
}

bool sba_exclude_leaf(const char *const *patterns, const char *rel, bool is_dir)
{
	return patterns && rel[0] != '\0' && match_any(patterns, rel, is_dir);
}

bool sba_exclude_path(const char *const *patterns, const char *rel, bool is_dir)
{
	char above[SBA_LAND_PATH_MAX];
	if (!patterns || rel[0] == '\0')
		return false;
	for (const char *s = strchr(rel, '/'); s; s = strchr(s + 1, '/')) {
		snprintf(above, sizeof(above), "%.*s", (int)(s - rel), rel);
		if (match_any(patterns, above, true))
			return true;
	}
	return match_any(patterns, rel, is_dir);
}
