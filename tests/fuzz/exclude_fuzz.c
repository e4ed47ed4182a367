/* SPDX-License-Identifier: MIT */
/*
 * Lines: patterns, the last line a path. What is in a directory that stays behind
 * stays behind too, and "**" is as good as trying every way.
 */
#include "archive/private.h"

#include <assert.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PATTERNS_MAX = 4, INPUT_MAX = 96 };

/* Every way there is, for patterns of plain components with a '/' in them. */
static bool every_way(const char *pattern, const char *path)
{
	char p[INPUT_MAX + 1], n[INPUT_MAX + 1];
	size_t p_len = strcspn(pattern, "/"), n_len = strcspn(path, "/");
	snprintf(p, sizeof(p), "%.*s", (int)p_len, pattern);
	snprintf(n, sizeof(n), "%.*s", (int)n_len, path);
	if (strcmp(p, "**") == 0) {
		if (!pattern[p_len])
			return true;
		for (; *path; path += n_len, path += *path == '/') {
			n_len = strcspn(path, "/");
			if (every_way(pattern + p_len + 1, path))
				return true;
		}
		return false;
	}
	if (fnmatch(p, n, 0) != 0)
		return false;
	if (!pattern[p_len] || !path[n_len])
		return !pattern[p_len] && !path[n_len];
	return every_way(pattern + p_len + 1, path + n_len + 1);
}

static void check(const char *pattern, const char *path)
{
	const char *const one[] = { pattern, NULL };
	size_t len = strlen(pattern);
	if (len < 3 || pattern[0] == '/' || pattern[len - 1] == '/' || !strchr(pattern, '/'))
		return;
	assert(sba_exclude_leaf(one, path, true) == every_way(pattern, path));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *patterns[PATTERNS_MAX + 1] = { NULL };
	char text[INPUT_MAX + 1], above[INPUT_MAX + 1];
	size_t n = 0;
	if (size > INPUT_MAX || memchr(data, 0, size))
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	char *path = strrchr(text, '\n');
	if (!path)
		return 0;
	*path++ = '\0';
	for (char *rest = text, *line; n < PATTERNS_MAX && (line = strsep(&rest, "\n"));)
		patterns[n++] = line;
	if (sba_path_components(path) == 0)
		return 0;
	bool out = sba_exclude_path(patterns, path, true);
	assert(out || !sba_exclude_leaf(patterns, path, true));
	for (char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		snprintf(above, sizeof(above), "%.*s", (int)(slash - path), path);
		assert(out || !sba_exclude_leaf(patterns, above, true));
	}
	for (size_t i = 0; i < n; i++)
		check(patterns[i], path);
	return 0;
}
