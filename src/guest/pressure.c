/* SPDX-License-Identifier: MIT */
/*
 * Reads the counters of the cgroup; see pressure.h. Where each hierarchy is
 * mounted as engines do it, the container's own group is the mount's root; only
 * where the host's cgroup namespace is shared has it to be looked for.
 */
#include "guest/pressure.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "guest/parse.h"

enum { TEXT_MAX = 2048 };

#define UNIFIED "/sys/fs/cgroup"

/* One counter: where version 1 keeps it, and its file of version 2. */
struct counter {
	const char *v1;
	const char *v2;
	const char *key;
};

static const struct counter oom_kills = { UNIFIED "/memory/memory.oom_control", "memory.events",
					  "oom_kill" };
static const struct counter pids_refused = { UNIFIED "/pids/pids.events", "pids.events", "max" };

int64_t sba_guest_pressure_parse(const char *text, size_t len, const char *key)
{
	const char *end = text + len;
	size_t key_len = strlen(key);

	while (text < end) {
		const char *stop = memchr(text, '\n', (size_t)(end - text));
		size_t line = (size_t)((stop ? stop : end) - text);
		uint64_t count;

		if (line > key_len && memcmp(text, key, key_len) == 0 && text[key_len] == ' ')
			return sba_guest_parse_number(text + key_len + 1, line - key_len - 1,
						      INT64_MAX, &count)
				       ? (int64_t)count
				       : -1;
		text += line + 1;
	}
	return -1;
}

int sba_guest_pressure_path(const char *text, size_t len, char *ret, size_t size)
{
	static const char head[] = "0::";
	const char *end = text + len;

	while (text < end) {
		const char *stop = memchr(text, '\n', (size_t)(end - text));
		size_t line = (size_t)((stop ? stop : end) - text);

		if (line >= sizeof(head) && memcmp(text, head, sizeof(head) - 1) == 0) {
			size_t path = line - (sizeof(head) - 1);

			if (path >= size)
				return -1;
			memcpy(ret, text + sizeof(head) - 1, path);
			ret[path] = '\0';
			return 0;
		}
		text += line + 1;
	}
	return -1;
}

static ssize_t read_text(const char *path, char text[TEXT_MAX])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len;

	if (fd < 0)
		return -1;
	len = read(fd, text, TEXT_MAX);
	close(fd);
	return len;
}

static ssize_t read_unified(const struct counter *counter, char text[TEXT_MAX])
{
	char path[PATH_MAX];
	char group[PATH_MAX - 64];
	ssize_t len;

	snprintf(path, sizeof(path), UNIFIED "/%s", counter->v2);
	len = read_text(path, text);
	if (len >= 0)
		return len;
	len = read_text("/proc/self/cgroup", text);
	if (len < 0 || sba_guest_pressure_path(text, (size_t)len, group, sizeof(group)) < 0)
		return -1;
	snprintf(path, sizeof(path), UNIFIED "%s/%s", group, counter->v2);
	return read_text(path, text);
}

static int64_t look(const struct counter *counter)
{
	char text[TEXT_MAX];
	ssize_t len = read_text(counter->v1, text);

	if (len < 0)
		len = read_unified(counter, text);
	return len < 0 ? -1 : sba_guest_pressure_parse(text, (size_t)len, counter->key);
}

struct sba_guest_pressure sba_guest_pressure_now(void)
{
	return (struct sba_guest_pressure){
		.oom_kills = look(&oom_kills),
		.pids_refused = look(&pids_refused),
	};
}

static int64_t rise(int64_t before, int64_t now)
{
	return before >= 0 && now > before ? now - before : 0;
}

struct sba_guest_pressure sba_guest_pressure_since(const struct sba_guest_pressure *before)
{
	struct sba_guest_pressure now = sba_guest_pressure_now();

	return (struct sba_guest_pressure){
		.oom_kills = rise(before->oom_kills, now.oom_kills),
		.pids_refused = rise(before->pids_refused, now.pids_refused),
	};
}
