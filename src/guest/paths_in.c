/* SPDX-License-Identifier: MIT */
/* Reads the paths; see paths_in.h. */
#include "guest/paths_in.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "guest/guest.h"

/* Takes the whole paths from the front of buf; returns how much of it they were. */
static size_t take_paths(char *buf, size_t len, sba_guest_path_fn *each, bool *ok)
{
	size_t at = 0;

	for (char *end; (end = memchr(buf + at, '\0', len - at)) != NULL;) {
		const char *path = buf + at;

		if (path[0] == '/' && path[1] != '\0')
			*ok = each(path) && *ok;
		at = (size_t)(end - buf) + 1;
	}
	return at;
}

int sba_guest_each_path(sba_guest_path_fn *each)
{
	static char buf[16 * PATH_MAX];
	size_t have = 0;
	bool ok = true;

	while (have < sizeof(buf)) {
		ssize_t got = read(STDIN_FILENO, buf + have, sizeof(buf) - have);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got == 0 && have == 0 && ok ? SBA_GUEST_OK : SBA_GUEST_FAILED;
		have += (size_t)got;
		size_t used = take_paths(buf, have, each, &ok);
		have -= used;
		if (used > 0)
			memmove(buf, buf + used, have);
	}
	return SBA_GUEST_FAILED; /* no path is that long */
}
