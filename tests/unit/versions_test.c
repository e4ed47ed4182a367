/* SPDX-License-Identifier: MIT */
/* versions.json: every tag is derived from it; what is wrong in it is named. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <sandbox-agent/image.h>

#include "base/base.h"

#include <string.h>
#include <unistd.h>

#define GOOD                                                                                       \
	"{\"docker_repository\":\"my/repo\",\"image_date\":\"20240229\",\"base_image\":\"d:1\","   \
	"\"claude_version\":\"1.2.3\",\"opencode_version\":\"4.5-rc.6\"}"

static void wrong(const char *json, const char *words)
{
	struct sba_images *images = NULL;
	struct sba_error err = { 0 };
	assert_int_equal(sba_images_open(json, "file.json", &images, &err), SBA_ECONFIG);
	assert_null(images);
	if (!strstr(err.text, words) || !sba_starts_with(err.text, "file.json"))
		fail_msg("expected '%s' in: %s", words, err.text);
	assert_int_equal(err.code, SBA_ECONFIG);
}

static void with_date(const char *date, bool good)
{
	char json[512];
	struct sba_images *images = NULL;
	snprintf(json, sizeof(json),
		 "{\"docker_repository\":\"r\",\"image_date\":\"%s\",\"base_image\":\"d:1\","
		 "\"claude_version\":\"1\",\"opencode_version\":\"1\"}",
		 date);
	if (!good) {
		wrong(json, "image_date");
		return;
	}
	assert_int_equal(sba_images_open(json, "file.json", &images, NULL), 0);
	sba_images_close(images);
}

static void references_are_derived(void **state)
{
	(void)state;
	struct sba_images *images = NULL;
	struct sba_error err = { 0 };
	assert_int_equal(sba_images_open(GOOD, "file.json", &images, &err), 0);
	assert_string_equal(sba_images_ref(images, "base"), "my/repo:base-20240229");
	assert_string_equal(sba_images_ref(images, "claude"), "my/repo:claude-1.2.3-20240229");
	assert_string_equal(sba_images_ref(images, "opencode"),
			    "my/repo:opencode-4.5-rc.6-20240229");
	assert_null(sba_images_ref(images, "nothing"));
	assert_string_equal(sba_images_names(images)[0], "base");
	sba_images_close(images);
}

static void the_built_in_file_is_good(void **state)
{
	(void)state;
	struct sba_images *images = NULL;
	struct sba_error err = { 0 };
	if (sba_images_open(NULL, NULL, &images, &err) < 0)
		fail_msg("%s", err.text);
	assert_true(sba_starts_with(sba_images_ref(images, "base"), "sandbox-agent:base-"));
	sba_images_close(images);
}

static void a_date_must_be_one(void **state)
{
	(void)state;
	with_date("20261129", true);
	with_date("20240229", true);
	with_date("20000229", true);
	with_date("20250229", false);
	with_date("21000229", false);
	with_date("20261301", false);
	with_date("20261131", false);
	with_date("20260100", false);
	with_date("2026112", false);
	with_date("202611290", false);
	with_date("2026-1-1", false);
	with_date("", false);
}

static void an_unknown_key_suggests_the_nearest(void **state)
{
	(void)state;
	wrong("{\"claude_versoin\":\"1\"}", "did you mean 'claude_version'?");
	wrong("{\"zzzzzzzz\":\"1\"}", "unknown key 'zzzzzzzz'");
}

static void a_missing_key_is_named(void **state)
{
	(void)state;
	wrong("{}", "docker_repository is missing");
	wrong("{\"docker_repository\":\"r\",\"image_date\":\"20261129\"}", "base_image is missing");
}

static void an_agent_without_a_version_has_no_image(void **state)
{
	(void)state;
	struct sba_images *images = NULL;
	assert_int_equal(sba_images_open("{\"docker_repository\":\"r\",\"image_date\":\"20261129\","
					 "\"base_image\":\"d:1\",\"codex_version\":\"2\"}",
					 "file.json", &images, NULL),
			 0);
	assert_string_equal(sba_images_ref(images, "codex"), "r:codex-2-20261129");
	assert_null(sba_images_ref(images, "claude"));
	sba_images_close(images);
}

static void a_value_of_another_type_is_named(void **state)
{
	(void)state;
	wrong("{\"image_date\":20261129}", "image_date: not a string");
	wrong("{\"docker_repository\":null}", "docker_repository: not a string");
	wrong("[]", "not an object");
	wrong("\"text\"", "");
}

static void a_value_that_cannot_be_in_a_name_is_refused(void **state)
{
	(void)state;
	wrong("{\"docker_repository\":\"Upper\"}", "'Upper'");
	wrong("{\"docker_repository\":\"\"}", "''");
	wrong("{\"claude_version\":\"1 2\"}", "'1 2'");
	wrong("{\"claude_version\":\"1/2\"}", "'1/2'");
	wrong("{\"claude_version\":\"$(id)\"}", "$(id)");
	wrong("{\"base_image\":\"-x\"}", "'-x'");
}

static void broken_json_is_named_with_its_place(void **state)
{
	(void)state;
	wrong("{\"docker_repository\": \"r\",\n oops", "2");
	wrong("", "");
	wrong("{\"image_date\":\"20261129\",\"image_date\":\"20261130\"}", "image_date");
	wrong(GOOD "x", "");
}

static int prepare(void **state)
{
	(void)state;
	alarm(60);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(references_are_derived, prepare),
		cmocka_unit_test_setup(the_built_in_file_is_good, prepare),
		cmocka_unit_test_setup(a_date_must_be_one, prepare),
		cmocka_unit_test_setup(an_unknown_key_suggests_the_nearest, prepare),
		cmocka_unit_test_setup(a_missing_key_is_named, prepare),
		cmocka_unit_test_setup(an_agent_without_a_version_has_no_image, prepare),
		cmocka_unit_test_setup(a_value_of_another_type_is_named, prepare),
		cmocka_unit_test_setup(a_value_that_cannot_be_in_a_name_is_refused, prepare),
		cmocka_unit_test_setup(broken_json_is_named_with_its_place, prepare),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
