/* SPDX-License-Identifier: MIT */
/* What runs in a container, as seen from outside of it; see live.h. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/live.h"

#include <ctype.h>
#include <dirent.h>
#include <string.h>

enum { TOP_MS = 60 * 1000, FILE_MAX = 256 * 1024 };

static bool engine_lists(const char *container, const char *text)
{
	char path[128];
	snprintf(path, sizeof(path), "/containers/%s/top?ps_args=-eo%%20pid,args", container);
	SBA_JSON json_t *j = NULL;
	struct sba_request request = { .method = "GET", .path = path, .tried = "top" };
	struct sba_error err = { 0 };
	int rc = sba_engine_call(live.engine, &request, sba_until_in(TOP_MS), &j, &err);
	/* It is gone, or not yet there (409); all else says nothing of what runs. */
	if (rc < 0 && err.http_status != 404 && err.http_status != 409)
		fail_msg("%s", err.text);
	if (rc < 0)
		return false;
	size_t i;
	json_t *row;
	json_array_foreach(json_object_get(j, "Processes"), i, row)
	{
		const char *line = json_string_value(json_array_get(row, 1));
		if (line && strstr(line, text))
			return true;
	}
	return false;
}

static bool proc_has(const char *pid, const char *file, const char *text)
{
	char path[300];
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(FILE_MAX);
	snprintf(path, sizeof(path), "/proc/%s/%s", pid, file);
	if (sba_read_file(path, FILE_MAX, &b, NULL) < 0 || !b.data)
		return false;
	for (size_t i = 0; i < b.len; i++)
		b.data[i] = b.data[i] ? b.data[i] : ' ';
	return strstr(b.data, text) != NULL;
}

/* The control group names the container. */
static bool machine_lists(const char *container, const char *text)
{
	bool found = false;
	DIR *d = opendir("/proc");
	for (struct dirent *e = d ? readdir(d) : NULL; e && !found; e = readdir(d))
		found = isdigit((unsigned char)e->d_name[0]) &&
			proc_has(e->d_name, "cmdline", text) &&
			proc_has(e->d_name, "cgroup", container);
	if (d)
		closedir(d);
	return found;
}

/* Podman's own way is a `ps` inside, which small images lack; its tests run on
 * the machine that it runs on. */
bool live_runs_inside(const char *container, const char *text)
{
	return sba_engine_podman(live.engine) ? machine_lists(container, text)
					      : engine_lists(container, text);
}
