/* SPDX-License-Identifier: MIT */
/* The engine's list of changes, made into what a fork fetches, notes and removes. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "sandbox/image_changes.h"

static int parse_mounted(const char *text, const char *const *mounted,
			 struct sba_image_changes *ret)
{
	json_t *list = NULL;
	assert_int_equal(sba_json_parse(text, strlen(text), "list", &list, NULL), 0);
	int rc = sba_image_changes_parse(list, mounted, ret, NULL);
	json_decref(list);
	return rc;
}

static int parse(const char *text, struct sba_image_changes *ret)
{
	return parse_mounted(text, NULL, ret);
}

static void assert_paths(const struct sba_strv *v, const char *const *expected)
{
	size_t n = 0;
	for (; expected[n]; n++) {
		assert_true(n < v->n);
		assert_string_equal(v->v[n], expected[n]);
	}
	assert_int_equal(v->n, n);
}
#define PATHS(...) ((const char *const[]){ __VA_ARGS__ })

static void a_new_folder_is_fetched_once_with_all_that_is_in_it(void **state)
{
	(void)state;
	struct sba_image_changes c;
	assert_int_equal(parse("[{\"Path\":\"/w\",\"Kind\":0},{\"Path\":\"/w/a\",\"Kind\":1},"
			       "{\"Path\":\"/w/a/b\",\"Kind\":1},{\"Path\":\"/w/a-b\",\"Kind\":1},"
			       "{\"Path\":\"/w/a/c/d\",\"Kind\":1}]",
			       &c),
			 0);
	assert_paths(&c.fetch, PATHS("/w/a", "/w/a-b", NULL));
	assert_paths(&c.folders, PATHS("/w", NULL));
	assert_paths(&c.modified, PATHS(NULL));
	assert_paths(&c.deleted, PATHS(NULL));
	sba_image_changes_fini(&c);
}

static void a_changed_path_without_changes_below_may_be_file_or_folder(void **state)
{
	(void)state;
	struct sba_image_changes c;
	assert_int_equal(parse("[{\"Path\":\"/etc\",\"Kind\":0},{\"Path\":\"/etc/x\",\"Kind\":0},"
			       "{\"Path\":\"/etc/gone\",\"Kind\":2}]",
			       &c),
			 0);
	assert_paths(&c.folders, PATHS("/etc", NULL));
	assert_paths(&c.modified, PATHS("/etc/x", NULL));
	assert_paths(&c.deleted, PATHS("/etc/gone", NULL));
	sba_image_changes_fini(&c);
}

static void files_of_the_engine_and_of_ours_stay_behind(void **state)
{
	(void)state;
	struct sba_image_changes c;
	assert_int_equal(parse("[{\"Path\":\"/.sandbox-agent\",\"Kind\":1},"
			       "{\"Path\":\"/.sandbox-agent/guest\",\"Kind\":1},"
			       "{\"Path\":\"/var/lib/sandbox-agent/state.json\",\"Kind\":1},"
			       "{\"Path\":\"/etc/hosts\",\"Kind\":1},{\"Path\":\"/etc/"
			       "hosts.allow\",\"Kind\":1}]",
			       &c),
			 0);
	assert_paths(&c.fetch, PATHS("/etc/hosts.allow", NULL));
	sba_image_changes_fini(&c);
}

static void what_is_mounted_stays_behind_and_its_folders_are_noted(void **state)
{
	(void)state;
	struct sba_image_changes c;
	assert_int_equal(parse_mounted("[{\"Path\":\"/opt\",\"Kind\":0},"
				       "{\"Path\":\"/opt/a\",\"Kind\":1},"
				       "{\"Path\":\"/opt/a/m\",\"Kind\":1},"
				       "{\"Path\":\"/opt/a/m/x\",\"Kind\":1},"
				       "{\"Path\":\"/opt/a/mine\",\"Kind\":1},"
				       "{\"Path\":\"/data\",\"Kind\":1}]",
				       PATHS("/opt/a/m", "/data", NULL), &c),
			 0);
	assert_paths(&c.fetch, PATHS("/opt/a/mine", NULL));
	assert_paths(&c.folders, PATHS("/opt", "/opt/a", NULL));
	assert_paths(&c.deleted, PATHS(NULL));
	sba_image_changes_fini(&c);
}

static void no_change_at_all_is_an_empty_plan(void **state)
{
	(void)state;
	struct sba_image_changes c;
	assert_int_equal(parse("null", &c), 0);
	assert_int_equal(c.fetch.n + c.folders.n + c.modified.n + c.deleted.n, 0);
	sba_image_changes_fini(&c);
}

static void a_list_that_is_none_is_refused(void **state)
{
	(void)state;
	static const char *const bad[] = { "[{\"Path\":\"x\",\"Kind\":1}]", "[{\"Path\":\"/x\"}]",
					   "[{\"Path\":\"/x\",\"Kind\":3}]", "[7]" };
	for (size_t i = 0; i < SBA_ARRAY_LEN(bad); i++) {
		struct sba_image_changes c;
		assert_int_equal(parse(bad[i], &c), SBA_EPROTO);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_new_folder_is_fetched_once_with_all_that_is_in_it),
		cmocka_unit_test(a_changed_path_without_changes_below_may_be_file_or_folder),
		cmocka_unit_test(files_of_the_engine_and_of_ours_stay_behind),
		cmocka_unit_test(what_is_mounted_stays_behind_and_its_folders_are_noted),
		cmocka_unit_test(no_change_at_all_is_an_empty_plan),
		cmocka_unit_test(a_list_that_is_none_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
