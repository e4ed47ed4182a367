/* SPDX-License-Identifier: MIT */
/* The lock file: strict reading, and which images of an engine are the locked ones. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "image/private.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define D(c)        "sha256:" c c c c c c c c
#define INDEX       D("11111111")
#define MANIFEST    D("22222222")
#define CONFIG      D("33333333")
#define OTHER       D("44444444")
#define REF         "h:5000/team/x:base-20260101"
#define PLATFORM    "\"linux/amd64\":{\"manifest\":\"" MANIFEST "\",\"config\":\"" CONFIG "\"}"
#define LOCK(image) "{\"v\":1,\"images\":{\"" REF "\":" image "}}"
#define GOOD                                                                                       \
	LOCK("{\"digest\":\"" INDEX "\",\"platforms\":{" PLATFORM                                  \
	     ",\"linux/arm64\":{\"manifest\":\"" D("55555555") "\",\"config\":\"" D(               \
		     "66666666") "\"}}}")

static struct sba_image_lock *opened(const char *text)
{
	struct sba_image_lock *l = NULL;
	struct sba_error err = { 0 };
	if (sba_image_lock_open(text, "x.lock.json", &l, &err) < 0)
		fail_msg("%s", err.text);
	return l;
}

static void wrong(const char *text, const char *words)
{
	struct sba_image_lock *l = NULL;
	struct sba_error err = { 0 };
	assert_int_equal(sba_image_lock_open(text, "x.lock.json", &l, &err), SBA_ECONFIG);
	assert_null(l);
	if (!sba_starts_with(err.text, "x.lock.json") || !strstr(err.text, words))
		fail_msg("'%s' does not say '%s'", err.text, words);
}

static void a_lock_is_written_as_it_was_read(void **state)
{
	(void)state;
	struct sba_image_lock *l = opened(GOOD);
	char *text = sba_image_lock_text(l);
	struct sba_image_lock *again = opened(text);
	char *same = sba_image_lock_text(again);
	assert_string_equal(text, same);
	assert_string_equal(sba_image_lock_digest(l, REF), INDEX);
	assert_null(sba_image_lock_digest(l, "h:5000/team/x:base-20260102"));
	assert_null(sba_image_lock_digest(NULL, REF));
	free(text);
	free(same);
	sba_image_lock_close(again);
	sba_image_lock_close(l);
}

static void what_is_set_is_there_afterwards(void **state)
{
	(void)state;
	struct sba_image_lock *l = opened(NULL);
	struct sba_remote_image image = { .digest = INDEX,
					  .n = 1,
					  .v = { { "linux/amd64", MANIFEST, CONFIG } } };
	assert_null(sba_image_lock_digest(l, REF));
	assert_int_equal(sba_image_lock_set(l, REF, &image, NULL), 0);
	assert_string_equal(sba_image_lock_digest(l, REF), INDEX);
	snprintf(image.digest, sizeof(image.digest), "%s", OTHER);
	assert_int_equal(sba_image_lock_set(l, REF, &image, NULL), 0);
	char *text = sba_image_lock_text(l);
	assert_null(strstr(text, INDEX));
	struct sba_image_lock *again = opened(text);
	assert_string_equal(sba_image_lock_digest(again, REF), OTHER);
	free(text);
	sba_image_lock_close(again);
	sba_image_lock_close(l);
}

static void a_broken_lock_is_refused_with_its_place(void **state)
{
	(void)state;
	wrong("", "");
	wrong("[]", "not a lock of version 1");
	wrong("{\"v\":2,\"images\":{}}", "not a lock of version 1");
	wrong("{\"v\":1}", "images: not an object");
	wrong("{\"v\":1,\"images\":{\"X Y\":{}}}", "images: 'X Y'");
	wrong(LOCK("[]"), "no digest");
	wrong(LOCK("{\"digest\":\"sha256:1\"}"), "no digest");
	wrong(LOCK("{\"digest\":\"" INDEX "\"}"), "no platforms");
	wrong(LOCK("{\"digest\":\"" INDEX "\",\"platforms\":{}}"), "no platforms");
	wrong(LOCK("{\"digest\":\"" INDEX
		   "\",\"platforms\":{\"linux/amd64\":{\"manifest\":\"" MANIFEST "\"}}}"),
	      "no digest 'config'");
}

static bool matches(const char *image)
{
	struct sba_image_lock *l = opened(GOOD);
	SBA_JSON json_t *j = NULL;
	assert_int_equal(sba_json_parse(image, strlen(image), "image", &j, NULL), 0);
	bool match = sba_image_lock_matches(l, REF, j);
	assert_false(sba_image_lock_matches(l, "h:5000/team/x:other", j));
	assert_false(sba_image_lock_matches(NULL, REF, j));
	sba_image_lock_close(l);
	return match;
}

static void an_image_is_known_by_whatever_digest_its_engine_keeps(void **state)
{
	(void)state;
	/* Docker's own store: loaded, then pulled; a containerd store; Podman. */
	assert_true(matches("{\"Id\":\"" CONFIG "\"}"));
	assert_true(matches("{\"Id\":\"" OTHER "\",\"RepoDigests\":[\"h:5000/a@" OTHER
			    "\",\"h:5000/team/x@" MANIFEST "\"]}"));
	assert_true(
		matches("{\"Id\":\"" OTHER "\",\"RepoDigests\":[\"h:5000/team/x@" INDEX "\"]}"));
	assert_true(matches("{\"Id\":\"" INDEX "\"}"));
	assert_true(matches("{\"Id\":\"" MANIFEST "\"}"));
	assert_true(matches(
		"{\"Id\":\"3333333333333333333333333333333333333333333333333333333333333333\"}"));
	assert_false(matches("{\"Id\":\"" OTHER "\"}"));
	assert_false(matches("{\"Id\":\"" OTHER "\",\"RepoDigests\":[\"h:5000/team/x@" OTHER
			     "\",5,\"x\"]}"));
	assert_false(matches("{}"));
}

static int begin(void **state)
{
	(void)state;
	alarm(110);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_lock_is_written_as_it_was_read, begin),
		cmocka_unit_test_setup(what_is_set_is_there_afterwards, begin),
		cmocka_unit_test_setup(a_broken_lock_is_refused_with_its_place, begin),
		cmocka_unit_test_setup(an_image_is_known_by_whatever_digest_its_engine_keeps,
				       begin),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
