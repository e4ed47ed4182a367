/* SPDX-License-Identifier: MIT */
/*
 * Credentials where docker users have them, and programs that hand them out and may say
 * anything: nothing of a secret is in an error, nothing else is run.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "registry/registry.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HOST "127.0.0.1:5000"

static char folder[64];

static void put(const char *name, const char *text, mode_t mode)
{
	char path[256];
	struct sba_error err;
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	unlink(path);
	SBA_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
	assert_true(fd >= 0);
	assert_int_equal(sba_write_all(fd, text, strlen(text), &err), 0);
}

/* docker-credential-NAME is this script. */
static void helper(const char *name, const char *script)
{
	char file[128], text[1024];
	snprintf(file, sizeof(file), "docker-credential-%s", name);
	snprintf(text, sizeof(text), "#!/bin/sh\n%s\n", script);
	put(file, text, 0700);
}

static int begin(void **state)
{
	char path[512];
	(void)state;
	alarm(110);
	snprintf(folder, sizeof(folder), "/tmp/sba-credentials-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s:/usr/bin:/bin", folder);
	return setenv("PATH", path, 1);
}

static int end(void **state)
{
	static const char *const files[] = { "config.json", "docker-credential-box",
					     "docker-credential-other", "asked" };
	char path[256];
	(void)state;
	for (size_t i = 0; i < SBA_ARRAY_LEN(files); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, files[i]);
		unlink(path);
	}
	return rmdir(folder);
}

static struct sba_credentials found(const char *config)
{
	struct sba_credentials c = { 0 };
	struct sba_error err = { 0 };
	put("config.json", config, 0600);
	if (sba_credentials_find(folder, HOST, sba_until_in(100000), &c, &err) < 0)
		fail_msg("%s", err.text);
	return c;
}

static void is(struct sba_credentials c, const char *user, const char *password, const char *token)
{
	const char *const has[] = { c.user, c.password, c.identity_token };
	const char *const wants[] = { user, password, token };
	for (size_t i = 0; i < SBA_ARRAY_LEN(has); i++) {
		if (wants[i])
			assert_string_equal(has[i] ? has[i] : "(none)", wants[i]);
		else
			assert_null(has[i]);
	}
	sba_credentials_fini(&c);
}

static void broken_either(const char *config, const char *words, const char *other)
{
	struct sba_credentials c = { 0 };
	struct sba_error err = { 0 };
	put("config.json", config, 0600);
	assert_int_equal(sba_credentials_find(folder, HOST, sba_until_in(100000), &c, &err),
			 SBA_ECONFIG);
	assert_null(c.user);
	assert_null(c.password);
	if (!strstr(err.text, words) && !strstr(err.text, other))
		fail_msg("'%s' does not say '%s'", err.text, words);
	if (strstr(err.text, "s3cret") || strstr(err.text, "czNjcmV0"))
		fail_msg("a secret is told: %s", err.text);
}

static void broken(const char *config, const char *words)
{
	broken_either(config, words, words);
}

/* ---- config.json ---- */

static void an_entry_of_auths_is_used(void **state)
{
	(void)state;
	is(found("{\"auths\":{\"" HOST "\":{\"auth\":\"bWU6czNjcmV0OnMzY3JldA==\"}}}"), "me",
	   "s3cret:s3cret", NULL);
	is(found("{\"auths\":{\"https://" HOST "/v1/\":{\"auth\":\"bWU6czNjcmV0AA==\"}}}"), "me",
	   "s3cret", NULL);
	is(found("{\"auths\":{\"" HOST "\":{\"username\":\"me\",\"password\":\"p\"}}}"), "me", "p",
	   NULL);
	is(found("{\"auths\":{\"" HOST "\":{\"auth\":\"bWU6\",\"identitytoken\":\"t\"}}}"), "me",
	   "", "t");
}

static void nobody_is_found_where_there_is_no_entry(void **state)
{
	(void)state;
	struct sba_credentials c = { 0 };
	assert_int_equal(sba_credentials_find("/nowhere", HOST, sba_until_in(1000), &c, NULL), 0);
	is(c, NULL, NULL, NULL);
	is(found("{}"), NULL, NULL, NULL);
	is(found("{\"auths\":{}}"), NULL, NULL, NULL);
	is(found("{\"auths\":{\"" HOST "\":{}}}"), NULL, NULL, NULL);
	is(found("{\"auths\":{\"127.0.0.1:50001\":{\"auth\":\"bWU6czNjcmV0\"},"
		 "\"" HOST ".other\":{\"auth\":\"bWU6czNjcmV0\"}}}"),
	   NULL, NULL, NULL);
}

static void a_broken_config_is_named_without_a_secret(void **state)
{
	(void)state;
	broken("{\"auths\":{\"" HOST "\":{\"auth\":\"czNjcmV0", "not JSON, in line 1");
	broken("[]", "not an object");
	broken("{\"auths\":[]}", "auths: not an object");
	broken("{\"auths\":{\"" HOST "\":\"s3cret\"}}", "auths." HOST ": not an object");
	broken("{\"auths\":{\"" HOST "\":{\"auth\":\"czNjcmV0\"}}}", "not the base64 of USER");
	broken("{\"auths\":{\"" HOST "\":{\"auth\":\"!czNjcmV0\"}}}", "not the base64 of USER");
	broken("{\"auths\":{\"" HOST "\":{\"password\":[\"s3cret\"]}}}", "password: not a string");
}

/* ---- helpers ---- */

static void a_helper_is_asked_for_the_registry_by_stdin(void **state)
{
	(void)state;
	helper("box", "test \"$*\" = get && test \"$(cat)\" = " HOST
		      " && echo '{\"ServerURL\":\"x\",\"Username\":\"me\",\"Secret\":\"s3cret\"}'");
	is(found("{\"credsStore\":\"box\"}"), "me", "s3cret", NULL);
	is(found("{\"credHelpers\":{\"" HOST "\":\"box\"},\"credsStore\":\"other\"}"), "me",
	   "s3cret", NULL);
	/* A store is all there is, whatever `auths` has. */
	is(found("{\"credsStore\":\"box\",\"auths\":{\"" HOST "\":{\"auth\":\"eDp5\"}}}"), "me",
	   "s3cret", NULL);
}

static void a_helpers_token_is_an_identity_token(void **state)
{
	(void)state;
	helper("box", "echo '{\"Username\":\"<token>\",\"Secret\":\"t0ken\"}'");
	is(found("{\"credsStore\":\"box\"}"), NULL, NULL, "t0ken");
}

static void a_helper_that_knows_nothing_makes_us_nobody(void **state)
{
	(void)state;
	helper("box", "echo 'credentials not found in native keychain'; exit 1");
	is(found("{\"credsStore\":\"box\"}"), NULL, NULL, NULL);
}

static void a_helper_that_reads_nothing_is_heard(void **state)
{
	(void)state;
	helper("box", "exec 0<&-; echo '{\"Username\":\"me\",\"Secret\":\"s3cret\"}'");
	is(found("{\"credsStore\":\"box\"}"), "me", "s3cret", NULL);
}

static void a_hostile_helper_is_an_error_without_its_words(void **state)
{
	(void)state;
	helper("box", "echo 's3cret'");
	broken("{\"credsStore\":\"box\"}", "not JSON");
	helper("box", "echo '[\"s3cret\"]'");
	broken("{\"credsStore\":\"box\"}", "not an object");
	helper("box", "echo '{\"Username\":\"s3cret\"}'");
	broken("{\"credsStore\":\"box\"}", "no Secret");
	helper("box", "echo '{\"Username\":5,\"Secret\":\"s3cret\"}'");
	broken("{\"credsStore\":\"box\"}", "Username: not a string");
	helper("box", "echo s3cret; exit 3");
	broken("{\"credsStore\":\"box\"}", "exit status 3");
	helper("box", "kill -9 $$");
	broken("{\"credsStore\":\"box\"}", "signal 9");
	helper("box", ":");
	broken("{\"credsStore\":\"box\"}", "not JSON");
	/* Beneath valgrind a child that cannot be made to run ends as one of a shell does. */
	broken_either("{\"credsStore\":\"nosuch\"}", "no such program", "exit status 127");
}

static void a_helper_without_end_is_ended(void **state)
{
	(void)state;
	struct sba_credentials c = { 0 };
	struct sba_error err = { 0 };
	helper("box", "exec cat /dev/zero");
	put("config.json", "{\"credsStore\":\"box\"}", 0600);
	assert_int_equal(sba_credentials_find(folder, HOST, sba_until_in(100000), &c, &err),
			 SBA_ELIMIT);
	helper("box", "exec sleep 1000");
	assert_int_equal(sba_credentials_find(folder, HOST, sba_until_in(50), &c, &err),
			 SBA_ETIMEOUT);
	assert_non_null(strstr(err.text, "does not end"));
}

static void a_helpers_name_is_no_path_and_no_option(void **state)
{
	(void)state;
	static const char *const names[] = { "../x", "a/b", "-x", "a b", "$(id)", "a;b" };
	for (size_t i = 0; i < SBA_ARRAY_LEN(names); i++) {
		char config[128];
		snprintf(config, sizeof(config), "{\"credsStore\":\"%s\"}", names[i]);
		broken(config, "not the name of a credential helper");
	}
	broken("{\"credHelpers\":{\"" HOST "\":7}}", "not the name of a credential helper");
	broken("{\"credHelpers\":[]}", "credHelpers: not an object");
	is(found("{\"credsStore\":\"\"}"), NULL, NULL, NULL);
}

/* ---- for the engine ---- */

static void the_header_is_base64url_with_its_padding(void **state)
{
	(void)state;
	struct sba_credentials c = { .user = "me", .password = "abc>>>def???~~~" };
	SBA_FREE char *header = NULL, *nobody = NULL;
	struct sba_error err = { 0 };
	SBA_BUF struct sba_buf plain = SBA_BUF_INIT(1024);
	assert_int_equal(sba_credentials_header(&c, HOST, &header, &err), 0);
	assert_int_equal(strlen(header) % 4, 0);
	assert_null(strpbrk(header, "+/\r\n"));
	assert_non_null(strpbrk(header, "-_"));
	assert_int_equal(sba_base64_decode(header, strlen(header), true, &plain), 0);
	assert_string_equal(plain.data, "{\"username\":\"me\",\"password\":\"abc>>>def???~~~\","
					"\"serveraddress\":\"" HOST "\"}");
	assert_int_equal(
		sba_credentials_header(&(struct sba_credentials){ 0 }, HOST, &nobody, &err), 0);
	assert_string_equal(nobody, "e30=");
}

/* ---- names ---- */

static void a_reference_is_taken_apart_as_docker_does(void **state)
{
	(void)state;
#define DIGEST "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	static const struct {
		const char *ref, *host, *repository, *tag, *digest;
	} good[] = {
		{ "debian:1", "", "debian", "1", "" },
		{ "team/x:1", "", "team/x", "1", "" },
		{ "localhost/x:1", "localhost", "x", "1", "" },
		{ "h:5000/a/b:c-1.2_3", "h:5000", "a/b", "c-1.2_3", "" },
		{ "h.org/a@" DIGEST, "h.org", "a", "", DIGEST },
		{ "h.org/a:1@" DIGEST, "h.org", "a", "1", DIGEST },
		{ "[::1]:5000/a:1", "[::1]:5000", "a", "1", "" },
	};
	static const char *const bad[] = { "",
					   "x",
					   "h:5000/x",
					   "h.org/:1",
					   "h.org/A:1",
					   "h.org/../x:1",
					   "h.org/a//b:1",
					   "x:",
					   "x@sha256:1",
					   "h.org/x:a b",
					   "h.org/x?y:1",
					   "h.org/x:1@" };
	struct sba_reference r;
	for (size_t i = 0; i < SBA_ARRAY_LEN(good); i++) {
		assert_int_equal(sba_reference_parse(good[i].ref, &r, NULL), 0);
		assert_string_equal(r.host, good[i].host);
		assert_string_equal(r.repository, good[i].repository);
		assert_string_equal(r.tag, good[i].tag);
		assert_string_equal(r.digest, good[i].digest);
	}
	for (size_t i = 0; i < SBA_ARRAY_LEN(bad); i++) {
		if (sba_reference_parse(bad[i], &r, NULL) != SBA_EINVAL)
			fail_msg("'%s' is taken for a reference", bad[i]);
	}
}

static void a_challenge_tells_where_to_log_in(void **state)
{
	(void)state;
	struct sba_challenge c;
	assert_int_equal(sba_challenge_parse("Bearer realm=\"https://a/t\",service=\"s\\\"x\" , "
					     "scope=\"repository:a:pull\",error=invalid",
					     &c, NULL),
			 0);
	assert_string_equal(c.scheme, "bearer");
	assert_string_equal(c.realm, "https://a/t");
	assert_string_equal(c.service, "s\"x");
	assert_string_equal(c.scope, "repository:a:pull");
	assert_int_equal(sba_challenge_parse("BASIC realm=x", &c, NULL), 0);
	assert_string_equal(c.scheme, "basic");
	assert_int_equal(sba_challenge_parse("Basic", &c, NULL), 0);
	assert_int_equal(sba_challenge_parse("", &c, NULL), SBA_EPROTO);
	assert_int_equal(sba_challenge_parse("=", &c, NULL), SBA_EPROTO);
	assert_int_equal(sba_challenge_parse("Bearer realm=\"x\" junk", &c, NULL), SBA_EPROTO);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_entry_of_auths_is_used),
		TEST(nobody_is_found_where_there_is_no_entry),
		TEST(a_broken_config_is_named_without_a_secret),
		TEST(a_helper_is_asked_for_the_registry_by_stdin),
		TEST(a_helpers_token_is_an_identity_token),
		TEST(a_helper_that_knows_nothing_makes_us_nobody),
		TEST(a_helper_that_reads_nothing_is_heard),
		TEST(a_hostile_helper_is_an_error_without_its_words),
		TEST(a_helper_without_end_is_ended),
		TEST(a_helpers_name_is_no_path_and_no_option),
		TEST(the_header_is_base64url_with_its_padding),
		TEST(a_reference_is_taken_apart_as_docker_does),
		TEST(a_challenge_tells_where_to_log_in),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
