/* SPDX-License-Identifier: MIT */
/* versions.json: every tag is derived from it; what is wrong in it is named. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <sandbox-agent/image.h>

#include "base/base.h"
#include "image/image.h"

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

static void another_repository_moves_all_references(void **state)
{
	(void)state;
	struct sba_images *images = NULL;
	struct sba_error err = { 0 };
	assert_int_equal(sba_images_open(GOOD, "file.json", &images, &err), 0);
	assert_int_equal(sba_images_set_repository(images, "Upper/x", &err), SBA_EINVAL);
	assert_string_equal(sba_images_ref(images, "base"), "my/repo:base-20240229");
	assert_int_equal(sba_images_set_repository(images, "h:5000/team/x", &err), 0);
	assert_string_equal(sba_images_ref(images, "base"), "h:5000/team/x:base-20240229");
	assert_string_equal(sba_images_ref(images, "claude"),
			    "h:5000/team/x:claude-1.2.3-20240229");
	assert_null(sba_images_ref(images, "codex"));
	assert_true(sba_images_own(images, "h:5000/team/x:claude-1-1"));
	assert_false(sba_images_own(images, "my/repo:claude-1-1"));
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

static void with_base(const char *base, bool good)
{
	char json[512];
	struct sba_images *images = NULL;
	snprintf(json, sizeof(json),
		 "{\"docker_repository\":\"r\",\"image_date\":\"20261129\",\"base_image\":\"%s\"}",
		 base);
	if (!good) {
		wrong(json, "base_image");
		return;
	}
	assert_int_equal(sba_images_open(json, "file.json", &images, NULL), 0);
	sba_images_close(images);
}

static void the_base_may_be_pinned_by_a_digest_that_can_be_one(void **state)
{
	(void)state;
	const char *digest =
		"@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
	char base[256];
	with_base("debian:bookworm-slim", true);
	snprintf(base, sizeof(base), "debian:bookworm-slim%s", digest);
	with_base(base, true);
	snprintf(base, sizeof(base), "h:5000/team/debian:bookworm-slim%s", digest);
	with_base(base, true);
	snprintf(base, sizeof(base), "debian%s", digest);
	with_base(base, false);
	base[strlen(base) - 1] = '\0';
	with_base(base, false);
	with_base("debian:x@sha256:", false);
	with_base("debian:x@md5:0123456789abcdef", false);
	with_base("debian", false);
}

#define HASH                                                                                       \
	"sha512-q/t/3p2CTxOT9y2kvjesb/LZab2+1eqlhhWA02Be6mjTtmYtNBcBsrI5yDo4Fw7ZSPBW2oyMIGMNRqiK"  \
	"QjiAWw=="
#define HASHED(hashes) "{\"integrity\":{" hashes "}}"

static void a_package_is_pinned_by_its_hash_for_one_architecture_or_for_all(void **state)
{
	(void)state;
	struct sba_images *images = NULL;
	assert_int_equal(sba_images_open("{\"docker_repository\":\"r\",\"image_date\":\"20261129\","
					 "\"base_image\":\"d:1\",\"pi_version\":\"2\","
					 "\"integrity\":{\"pi\":\"" HASH
					 "\",\"codex-arm64\":\"" HASH "\"}}",
					 "file.json", &images, NULL),
			 0);
	assert_string_equal(sba_images_integrity(images, "pi", "amd64"), HASH);
	assert_string_equal(sba_images_integrity(images, "codex", "arm64"), HASH);
	assert_null(sba_images_integrity(images, "codex", "amd64"));
	sba_images_close(images);
}

static void a_hash_that_cannot_be_one_is_refused(void **state)
{
	(void)state;
	wrong("{\"integrity\":\"" HASH "\"}", "integrity: not an object");
	wrong(HASHED("\"claud-amd64\":\"" HASH "\""), "integrity.claud-amd64");
	wrong(HASHED("\"claude-riscv\":\"" HASH "\""), "integrity.claude-riscv");
	wrong(HASHED("\"claude-amd64\":\"sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk=\""),
	      "claude-amd64: not");
	wrong(HASHED("\"claude-amd64\":\"\""), "claude-amd64: not");
	wrong(HASHED("\"claude-amd64\":5"), "claude-amd64: not");
	wrong(HASHED("\"pi\":\"sha512-!!!\""), "integrity.pi");
}

/* The hash in versions.json is that of the lock, and there is none without. */
static void lock_of(const struct sba_images *images, const char *agent, const char *package)
{
	char name[128];
	struct sba_error err;
	SBA_JSON json_t *lock = NULL;
	snprintf(name, sizeof(name), "images/%s/package-lock.json", agent);
	const struct sba_embedded *file = sba_embedded_find(name);
	assert_non_null(file);
	if (sba_json_parse(file->data, file->len, name, &lock, &err) < 0)
		fail_msg("%s", err.text);
	const char *key;
	json_t *entry, *packages = json_object_get(lock, "packages");
	json_object_foreach(packages, key, entry)
	{
		if (*key && !sba_json_str(entry, "integrity"))
			fail_msg("%s: no hash for %s", name, key);
	}
	entry = json_object_get(packages, package);
	assert_string_equal(sba_json_str(entry, "version"), sba_images_version(images, agent));
	assert_string_equal(sba_json_str(entry, "integrity"),
			    sba_images_integrity(images, agent, "amd64"));
}

static void all_that_is_built_is_pinned_by_hash(void **state)
{
	(void)state;
	struct sba_images *images = NULL;
	assert_int_equal(sba_images_open(NULL, NULL, &images, NULL), 0);
	for (const char *const *n = sba_images_names(images) + 1; *n; n++)
		assert_non_null(sba_images_integrity(images, *n, "amd64"));
	assert_non_null(sba_images_integrity(images, "node", "amd64"));
	lock_of(images, "pi", "node_modules/@earendil-works/pi-coding-agent");
	lock_of(images, "dsh", "node_modules/@deepseek-ai/dsh");
	sba_images_close(images);
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
		cmocka_unit_test_setup(another_repository_moves_all_references, prepare),
		cmocka_unit_test_setup(the_built_in_file_is_good, prepare),
		cmocka_unit_test_setup(a_date_must_be_one, prepare),
		cmocka_unit_test_setup(an_unknown_key_suggests_the_nearest, prepare),
		cmocka_unit_test_setup(a_missing_key_is_named, prepare),
		cmocka_unit_test_setup(an_agent_without_a_version_has_no_image, prepare),
		cmocka_unit_test_setup(a_value_of_another_type_is_named, prepare),
		cmocka_unit_test_setup(a_value_that_cannot_be_in_a_name_is_refused, prepare),
		cmocka_unit_test_setup(the_base_may_be_pinned_by_a_digest_that_can_be_one, prepare),
		cmocka_unit_test_setup(
			a_package_is_pinned_by_its_hash_for_one_architecture_or_for_all, prepare),
		cmocka_unit_test_setup(a_hash_that_cannot_be_one_is_refused, prepare),
		cmocka_unit_test_setup(all_that_is_built_is_pinned_by_hash, prepare),
		cmocka_unit_test_setup(broken_json_is_named_with_its_place, prepare),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
