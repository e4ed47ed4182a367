/* SPDX-License-Identifier: MIT */
/*
 * `image build` killed in the middle of a step: no image of that name, no container, no
 * volume, no temporary file here; and what the engine keeps for the next build is known by
 * its label.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/live.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define STEP "sleep 4246"

enum { STEP_BEGINS_MS = 60 * 1000, ENDS_MS = 30 * 1000 };

/* A Debian where installing takes for ever. Its label comes along to whatever the builder
 * makes of it. */
static const char *slow_debian(void)
{
	char lines[256];
	snprintf(lines, sizeof(lines),
		 "LABEL io.sandbox-agent.prefix=%s\nCOPY apt-get /usr/bin/apt-get", live.prefix);
	return live_image("slow", lines, "apt-get", "#!/bin/sh\nexec " STEP "\n");
}

static void start_build(struct live_child *c)
{
	static const char *const argv[] = { "image", "build", "base", NULL };
	static char versions[128], temporary[128];
	char text[512];
	const char *path = live_path("versions.json"), *folder = live_path("temporary");
	snprintf(text, sizeof(text),
		 "{\"docker_repository\":\"%s-built\",\"image_date\":\"20260101\","
		 "\"base_image\":\"%s\"}",
		 live.prefix, slow_debian());
	live_write_file(path, text, strlen(text), 0600);
	assert_int_equal(mkdir(folder, 0700), 0);
	snprintf(versions, sizeof(versions), "SANDBOX_AGENT_VERSIONS=%s", path);
	snprintf(temporary, sizeof(temporary), "TMPDIR=%s", folder);
	const char *const env[] = { versions, temporary, NULL };
	live_start(c, &(struct live_start){ .argv = argv, .env = env });
}

static bool step_runs(void *user)
{
	size_t i;
	json_t *one;
	SBA_JSON json_t *list = live_containers();
	(void)user;
	json_array_foreach(list, i, one)
	{
		if (live_runs_inside(sba_json_str(one, "Id"), STEP))
			return true;
	}
	return false;
}

static size_t images_like(const char *pattern)
{
	SBA_JSON json_t *list = NULL;
	assert_int_equal(sba_image_list(live.engine, pattern, sba_until_in(30000), &list, NULL), 0);
	return json_array_size(list);
}

static size_t files_in(const char *folder)
{
	size_t n = 0;
	DIR *d = opendir(folder);
	assert_non_null(d);
	for (const struct dirent *e; (e = readdir(d));)
		n += e->d_name[0] != '.';
	closedir(d);
	return n;
}

/* What its first steps made is nobody's image: the cache of the next build, which sweeps
 * what is old of it (sba_images_sweep()) by this label. */
static void take_away_the_cache(void)
{
	char prefix[80];
	size_t i;
	json_t *one;
	snprintf(prefix, sizeof(prefix), "io.sandbox-agent.prefix=%s", live.prefix);
	SBA_JSON json_t *list = NULL;
	SBA_JSON json_t *filters = json_pack("{s:[s], s:[s]}", "dangling", "true", "label", prefix);
	assert_int_equal(sba_image_list_by(live.engine, filters, sba_until_in(30000), &list, NULL),
			 0);
	json_array_foreach(list, i, one)
	{
		const json_t *role =
			json_object_get(json_object_get(one, "Labels"), "io.sandbox-agent.role");
		assert_string_equal(json_string_value(role), "build-stage");
		(void)!sba_image_remove(live.engine, sba_json_str(one, "Id"), sba_until_in(30000),
					NULL);
	}
}

static void a_killed_build_leaves_no_half_image(void **state)
{
	(void)state;
	char pattern[64];
	LIVE_CHILD c, gc;
	start_build(&c);
	live_await(step_runs, NULL, STEP_BEGINS_MS);
	kill(c.pid, SIGKILL);
	live_child_end(&c, 30000);
	live_await_no_containers(ENDS_MS);
	snprintf(pattern, sizeof(pattern), "%s-built*", live.prefix);
	assert_int_equal(images_like(pattern), 0);
	assert_int_equal(files_in(live_path("temporary")), 0);
	RUN(&gc, "gc");
	assert_int_equal(gc.status, 0);
	take_away_the_cache();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE_TEST(a_killed_build_leaves_no_half_image),
		LIVE_TEST(live_nothing_is_left),
	};
	return live_run(tests, live_begin, live_end);
}
