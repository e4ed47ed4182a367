/* SPDX-License-Identifier: MIT */
/*
 * Images on their way: a push or pull that fails says so inside of a stream that began
 * well, and the engine's words come with what can be done. And which image is started
 * where a lock file has one.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "engine/engine.h"
#include "http/http.h"
#include "image/image.h"
#include "support/fake_engine.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define D(c)     "sha256:" c c c c c c c c
#define LOCKED   D("11111111")
#define MANIFEST D("22222222")
#define CONFIG   D("33333333")
#define OTHER    D("44444444")
#define REF      "h:5000/x:base-1"
#define PUSH     "/images/h%3A5000%2Fx/push?tag=base-1 "
#define HERE     "/images/h%3A5000%2Fx%3Abase-1/json "
#define THERE                                                                                      \
	"/images/h%3A5000%2Fx%40"                                                                  \
	"sha256%3A"
#define PULL "/images/create?fromImage=h%3A5000%2Fx&tag=sha256%3A1111"

#define OK(json) .answer = FAKE_ANSWER("200 OK", json), .then = FAKE_CLOSE
#define MISSING                                                                                    \
	.answer = FAKE_ANSWER("404 Not Found", "{\"message\":\"No such image\"}"),                 \
	.then = FAKE_CLOSE

static struct fake_engine *fake;
static struct sba_engine *engine;

static void start(const struct fake_exchange *x, size_t n)
{
	alarm(110);
	fake = fake_engine_start("1.41", x, n);
	const struct sba_engine_options o = { .host = fake_engine_host(fake) };
	assert_int_equal(sba_engine_open(&o, &engine, NULL), 0);
}
#define START(...)                                                                                 \
	static const struct fake_exchange script_[] = { __VA_ARGS__ };                             \
	(void)state;                                                                               \
	start(script_, SBA_ARRAY_LEN(script_))

static void stop(void)
{
	sba_engine_close(engine);
	fake_engine_stop(fake);
}

static void assert_says(const struct sba_error *err, const char *words, const char *hint)
{
	if (!strstr(err->text, words) || !strstr(err->hint, hint))
		fail_msg("'%s' does not say '%s', or '%s' not '%s'", err->text, words, err->hint,
			 hint);
}

/* ---- push ---- */

static int note_digest(void *user, const json_t *line)
{
	const char *digest = sba_json_str(line, "aux.Digest");
	if (digest)
		snprintf(user, 80, "%s", digest);
	return 0;
}

static void a_push_tells_the_digest_and_needs_a_header_even_for_nobody(void **state)
{
	char digest[80] = "";
	START({ .method = "POST",
		.path = PUSH,
		OK("{\"status\":\"Preparing\",\"id\":\"a\"}\n"
		   "{\"progressDetail\":{},\"aux\":{\"Tag\":\"base-1\",\"Digest\":\"" LOCKED
		   "\",\"Size\":1}}\n") });
	assert_int_equal(
		sba_image_push(engine, REF, NULL, note_digest, digest, sba_until_in(60000), NULL),
		0);
	assert_string_equal(digest, LOCKED);
	assert_non_null(strstr(fake_engine_seen(fake, 0), "X-Registry-Auth: e30="));
	stop();
}

static void an_error_inside_a_push_that_began_well_is_an_error(void **state)
{
	struct sba_error err = { 0 };
	START({ .method = "POST",
		.path = PUSH,
		OK("{\"status\":\"Preparing\",\"id\":\"a\"}\n"
		   "{\"errorDetail\":{\"message\":\"denied: no\"},\"error\":\"denied: no\"}\n") },
	      { .method = "POST",
		.path = PUSH,
		.answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
			  "13\r\n{\"status\":\"Pushing\"",
		.then = FAKE_CLOSE });
	assert_int_equal(sba_image_push(engine, REF, NULL, NULL, NULL, sba_until_in(60000), &err),
			 SBA_EIMAGE);
	assert_says(&err, "push image '" REF "': denied: no", "");
	assert_int_equal(sba_image_push(engine, REF, NULL, NULL, NULL, sba_until_in(60000), &err),
			 SBA_ELOST);
	stop();
}

/* ---- pull ---- */

static void pull_fails(const char *words, const char *hint)
{
	struct sba_error err = { 0 };
	assert_int_equal(sba_image_ensure(engine, REF, SBA_PULL_ALWAYS, NULL, &err), SBA_EIMAGE);
	assert_says(&err, words, hint);
}

#define FAILS(words)                                                                               \
	{                                                                                          \
		.method = "POST", .path = "/images/create?",                                       \
		OK("{\"status\":\"Pulling\"}\n"                                                    \
		   "{\"errorDetail\":{\"message\":\"" words "\"},\"error\":\"x\"}\n")              \
	}

static void each_trouble_of_a_pull_says_what_to_do(void **state)
{
	START(FAILS("unauthorized: authentication required"), FAILS("denied: requested access"),
	      FAILS("manifest for x not found: manifest unknown"),
	      FAILS("toomanyrequests: rate exceeded"),
	      FAILS("received unexpected HTTP status: 503 Service Unavailable"),
	      FAILS("unexpected EOF"), FAILS("x509: certificate signed by unknown authority"),
	      FAILS("http: server gave HTTP response to HTTPS client"),
	      FAILS("dial tcp: connect: connection refused"),
	      FAILS("write /var/lib: no space left on device"),
	      { .method = "POST",
		.path = "/images/create?",
		.answer = FAKE_ANSWER("500 Internal Server Error",
				      "{\"message\":\"Get https://h: no basic auth credentials\"}"),
		.then = FAKE_CLOSE });
	pull_fails("unauthorized", "docker login h:5000");
	pull_fails("denied", "another one:  docker login h:5000");
	pull_fails("manifest unknown", "push");
	pull_fails("toomanyrequests", "wait a while");
	pull_fails("503", "h:5000 is in trouble");
	pull_fails("unexpected EOF", "broke off");
	pull_fails("x509", "/etc/docker/certs.d/h:5000/ca.crt");
	pull_fails("HTTP response", "insecure-registries");
	pull_fails("refused", "is it up?");
	pull_fails("no space", "image rm");
	pull_fails("no basic auth", "docker login h:5000");
	stop();
}

static void asked_too_often(void *user, const struct sba_http_request *r, struct sba_http_answer *a)
{
	(void)user;
	(void)r;
	a->status = 429;
}

static void what_the_engine_does_not_say_is_asked_of_the_registry(void **state)
{
	char ref[64];
	struct sba_error err = { 0 };
	struct sba_http_server *registry = NULL;
	const struct sba_http_server_options o = { .handler = asked_too_often };
	START(FAILS("unknown: no"));
	assert_int_equal(sba_http_server_open(&o, &registry, NULL), 0);
	snprintf(ref, sizeof(ref), "127.0.0.1:%u/x:base-1", sba_http_server_port(registry));
	assert_int_equal(sba_image_ensure(engine, ref, SBA_PULL_ALWAYS, NULL, &err), SBA_EIMAGE);
	assert_says(&err, "unknown: no", "wait a while");
	sba_http_server_close(registry);
	stop();
}

/* ---- the lock ---- */

static struct sba_image_settled settled;
static struct sba_error why;

static int settle(enum sba_pull pull, bool locked)
{
	struct sba_image_lock *lock = NULL;
	const char *text = "{\"v\":1,\"images\":{\"" REF "\":{\"digest\":\"" LOCKED
			   "\",\"platforms\":{\"linux/amd64\":{\"manifest\":\"" MANIFEST
			   "\",\"config\":\"" CONFIG "\"}}}}}";
	assert_int_equal(sba_image_lock_open(text, "lock", &lock, NULL), 0);
	const struct sba_image_wanted w = {
		.ref = REF, .pull = pull, .lock = lock, .locked = locked
	};
	settled = (struct sba_image_settled){ 0 };
	why = (struct sba_error){ 0 };
	int rc = sba_image_settle(engine, &w, &settled, &why);
	sba_image_lock_close(lock);
	return rc;
}

static void the_locked_image_is_started_by_its_id(void **state)
{
	START({ .path = HERE, OK("{\"Id\":\"" CONFIG "\",\"Parent\":\"\"}") });
	assert_int_equal(settle(SBA_PULL_MISSING, true), 0);
	assert_string_equal(settled.ref, CONFIG);
	assert_false(settled.built_here);
	stop();
}

/* Docker 20.10 to 26 after a pull and after a load, 26 with its containerd store after
 * either (the id is the index's, or of the only manifest), Podman 4.3 and 5.4. */
static void the_locked_image_is_known_in_each_engines_own_terms(void **state)
{
	START({ .path = HERE,
		OK("{\"Id\":\"" CONFIG "\",\"Parent\":\"\",\"RepoDigests\":[\"h:5000/x@" LOCKED
		   "\"]}") },
	      { .path = HERE,
		OK("{\"Id\":\"" CONFIG "\",\"Parent\":\"\",\"RepoDigests\":[],"
		   "\"GraphDriver\":{\"Name\":\"overlay2\"}}") },
	      { .path = HERE,
		OK("{\"Id\":\"" LOCKED "\",\"Parent\":\"\",\"RepoDigests\":[\"h:5000/x@" LOCKED
		   "\"],\"GraphDriver\":{\"Name\":\"overlayfs\"},\"Descriptor\":{\"digest\":"
		   "\"" LOCKED "\"}}") },
	      { .path = HERE,
		OK("{\"Id\":\"" MANIFEST "\",\"RepoDigests\":null,\"Descriptor\":"
		   "{\"digest\":\"" MANIFEST "\"}}") },
	      { .path = HERE,
		OK("{\"Id\":\"sha256:"
		   "3333333333333333333333333333333333333333333333333333333333333333"
		   "\",\"Parent\":\"" OTHER "\",\"RepoDigests\":[\"h:5000/x@" OTHER
		   "\",\"localhost/x@" MANIFEST "\"]}") },
	      { .path = HERE,
		OK("{\"Id\":\"3333333333333333333333333333333333333333333333333333333333333333\","
		   "\"RepoDigests\":[]}") },
	      { .path = HERE,
		OK("{\"Id\":\"" OTHER "\",\"RepoDigests\":[\"h:5000/x@" OTHER
		   "\"],\"Descriptor\":{\"digest\":\"" OTHER "\"}}") });
	static const char *const ids[] = { CONFIG, CONFIG, LOCKED, MANIFEST, CONFIG, "3333" };
	for (size_t i = 0; i < SBA_ARRAY_LEN(ids); i++) {
		if (settle(SBA_PULL_MISSING, true) < 0)
			fail_msg("%zu: %s", i, why.text);
		assert_true(sba_starts_with(settled.ref, ids[i]));
		assert_false(settled.built_here);
	}
	assert_int_equal(settle(SBA_PULL_MISSING, false), SBA_EREFUSED);
	stop();
}

static void what_is_missing_is_pulled_by_its_digest_and_named(void **state)
{
	START({ .path = HERE, MISSING }, { .path = THERE, MISSING },
	      { .method = "POST", .path = PULL, OK("{\"status\":\"done\"}\n") },
	      { .path = THERE,
		OK("{\"Id\":\"" OTHER "\",\"RepoDigests\":[\"h:5000/x@" LOCKED "\"]}") },
	      { .method = "POST",
		.path = "/images/h%3A5000%2Fx%40sha256%3A1111",
		.answer = "HTTP/1.1 201 Created\r\n\r\n",
		.then = FAKE_CLOSE });
	assert_int_equal(settle(SBA_PULL_MISSING, true), 0);
	assert_string_equal(settled.ref, OTHER);
	assert_non_null(strstr(fake_engine_seen(fake, 4), "/tag?repo=h%3A5000%2Fx&tag=base-1 "));
	stop();
}

static void a_pull_that_brings_another_image_is_refused(void **state)
{
	START({ .method = "POST", .path = PULL, OK("{\"status\":\"done\"}\n") },
	      { .path = THERE, OK("{\"Id\":\"" OTHER "\"}") },
	      { .method = "POST", .answer = "HTTP/1.1 201 Created\r\n\r\n", .then = FAKE_CLOSE });
	assert_int_equal(settle(SBA_PULL_ALWAYS, false), SBA_EREFUSED);
	assert_string_equal(settled.ref, "");
	stop();
}

static void another_image_is_refused_unless_it_was_built_here(void **state)
{
	START({ .path = HERE, OK("{\"Id\":\"" OTHER "\",\"Parent\":\"\"}") },
	      { .path = HERE,
		OK("{\"Id\":\"" OTHER "\",\"Parent\":\"" CONFIG
		   "\",\"RepoDigests\":[\"h:5000/x@" OTHER "\"]}") },
	      { .path = HERE, OK("{\"Id\":\"" OTHER "\",\"Parent\":\"" CONFIG "\"}") },
	      { .path = HERE, OK("{\"Id\":\"" OTHER "\",\"Parent\":\"" CONFIG "\"}") });
	assert_int_equal(settle(SBA_PULL_MISSING, false), SBA_EREFUSED);
	assert_says(&why, "is not the one that is locked", "--pull always");
	assert_int_equal(settle(SBA_PULL_MISSING, false), SBA_EREFUSED);
	assert_int_equal(settle(SBA_PULL_MISSING, false), 0);
	assert_true(settled.built_here);
	assert_string_equal(settled.ref, OTHER);
	assert_int_equal(settle(SBA_PULL_MISSING, true), SBA_EREFUSED);
	stop();
}

static void never_is_never(void **state)
{
	START({ .path = HERE, MISSING }, { .path = THERE, MISSING });
	assert_int_equal(settle(SBA_PULL_NEVER, false), SBA_EIMAGE);
	assert_says(&why, "is not on the engine", "image pull");
	stop();
}

/* ---- the base ---- */

#define BASE "/images/r%3Abase-20260101/json "

static int make_base(struct sba_error *err)
{
	struct sba_images *images = NULL;
	assert_int_equal(sba_images_open("{\"docker_repository\":\"r\",\"image_date\":\"20260101\","
					 "\"base_image\":\"h:5000/x:bookworm@" LOCKED "\"}",
					 "v", &images, NULL),
			 0);
	int rc = sba_image_make(engine, images, "base", NULL, err);
	sba_images_close(images);
	return rc;
}

static void what_is_built_on_is_the_pinned_digest(void **state)
{
	struct sba_error err = { 0 };
	START({ .path = BASE, MISSING }, { .path = THERE, OK("{\"Id\":\"" CONFIG "\"}") },
	      { .method = "POST", .path = "/build?", OK("{\"aux\":{\"ID\":\"" OTHER "\"}}\n") });
	if (make_base(&err) < 0)
		fail_msg("%s", err.text);
	const char *seen = fake_engine_seen(fake, 2);
	assert_non_null(strstr(seen, "buildargs=%7B%22BASE%22%3A%22h%3A5000%2Fx%40sha256%3A1111"));
	assert_non_null(strstr(seen, "base.digest%22%3A%22sha256%3A1111"));
	stop();
}

static void nothing_stands_in_for_a_base_pinned_by_its_digest(void **state)
{
	struct sba_error err = { 0 };
	START({ .path = BASE, MISSING }, { .path = THERE, MISSING },
	      { .method = "POST",
		.path = PULL,
		OK("{\"errorDetail\":{\"message\":\"no route\"},\"error\":\"no route\"}\n") });
	assert_int_equal(make_base(&err), SBA_EIMAGE);
	assert_says(&err, "no route", "pins it by its digest");
	stop();
}

static void a_failing_step_is_told_with_its_output(void **state)
{
	struct sba_error err = { 0 };
	START({ .path = BASE, MISSING }, { .path = THERE, OK("{\"Id\":\"" CONFIG "\"}") },
	      { .method = "POST",
		.path = "/build?",
		OK("{\"stream\":\"Step 1/9 : FROM x\\n\"}\n"
		   "{\"stream\":\"Step 2/9 : RUN make it\\n\"}\n"
		   "{\"stream\":\" ---> Running in abc\\n\"}\n"
		   "{\"stream\":\"\\u001b[91mcannot find flour\\n\\u001b[0m\"}\n"
		   "{\"stream\":\"no cake today\\n\"}\n"
		   "{\"errorDetail\":{\"code\":2,\"message\":\"The command returned 2\"},"
		   "\"error\":\"The command returned 2\"}\n") });
	assert_int_equal(make_base(&err), SBA_EIMAGE);
	assert_says(&err, "Step 2/9 fails: no cake today", "cannot find flour\nno cake today");
	stop();
}

/* ---- removing ---- */

static void only_ours_and_only_unused_are_removed(void **state)
{
	struct sba_images *images = NULL;
	struct sba_error err = { 0 };
	START({ .method = "DELETE",
		.path = "/images/r%3Aclaude-1-20250101 ",
		.answer = FAKE_ANSWER("409 Conflict", "{\"message\":\"container abc uses it\"}"),
		.then = FAKE_CLOSE },
	      { .method = "DELETE", .path = "/images/r%3Aclaude-1-20250101 ", OK("[]") });
	assert_int_equal(sba_images_open("{\"docker_repository\":\"r\",\"image_date\":\"20260101\","
					 "\"base_image\":\"d:1\",\"claude_version\":\"2\"}",
					 "v", &images, NULL),
			 0);
	static const char *const foreign[] = { "r:guest-0123", "r2:claude-1-1",  "r:claude", "d:1",
					       "r:claudex-1",  "h/r:claude-1-1", "r" };
	for (size_t i = 0; i < SBA_ARRAY_LEN(foreign); i++)
		assert_int_equal(sba_image_delete(engine, images, foreign[i], &err), SBA_EREFUSED);
	assert_int_equal(sba_image_delete(engine, images, "r:claude-1-20250101", &err), SBA_EBUSY);
	assert_says(&err, "container abc uses it", "ps -a");
	assert_int_equal(sba_image_delete(engine, images, "r:claude-1-20250101", &err), 0);
	sba_images_close(images);
	stop();
}

static void note_removed(void *user, const struct sba_progress *p)
{
	char *ids = user;
	strncat(ids, p->image + strlen("sha256:"), 2);
}

static void what_builds_left_goes_when_it_is_old_and_unused(void **state)
{
	char removed[64] = "";
	struct sba_error err = { 0 };
	const struct sba_image_options io = { .progress = note_removed, .user = removed };
	START({ .path = "/images/json?filters=%7B%22dangling%22%3A%5B%22true%22%5D%2C%22label%22%3A"
			"%5B%22io.sandbox-agent.role%3Dbuild-stage%22%5D%7D ",
		OK("[{\"Id\":\"" LOCKED "\",\"Created\":1000000000},"
		   "{\"Id\":\"" CONFIG "\",\"Created\":99999999999},"
		   "{\"Id\":\"" OTHER "\",\"Created\":1000000000},{}]") },
	      { .method = "DELETE",
		.path = "/images/sha256%3A1111",
		.answer = FAKE_ANSWER("409 Conflict", "{\"message\":\"container abc uses it\"}"),
		.then = FAKE_CLOSE },
	      { .method = "DELETE", .path = "/images/sha256%3A4444", OK("[]") });
	if (sba_images_sweep(engine, &io, &err) < 0)
		fail_msg("%s", err.text);
	assert_string_equal(removed, "44");
	stop();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_push_tells_the_digest_and_needs_a_header_even_for_nobody),
		cmocka_unit_test(an_error_inside_a_push_that_began_well_is_an_error),
		cmocka_unit_test(each_trouble_of_a_pull_says_what_to_do),
		cmocka_unit_test(what_the_engine_does_not_say_is_asked_of_the_registry),
		cmocka_unit_test(the_locked_image_is_started_by_its_id),
		cmocka_unit_test(the_locked_image_is_known_in_each_engines_own_terms),
		cmocka_unit_test(what_is_missing_is_pulled_by_its_digest_and_named),
		cmocka_unit_test(a_pull_that_brings_another_image_is_refused),
		cmocka_unit_test(another_image_is_refused_unless_it_was_built_here),
		cmocka_unit_test(never_is_never),
		cmocka_unit_test(what_is_built_on_is_the_pinned_digest),
		cmocka_unit_test(nothing_stands_in_for_a_base_pinned_by_its_digest),
		cmocka_unit_test(a_failing_step_is_told_with_its_output),
		cmocka_unit_test(only_ours_and_only_unused_are_removed),
		cmocka_unit_test(what_builds_left_goes_when_it_is_old_and_unused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
