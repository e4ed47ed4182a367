/* SPDX-License-Identifier: MIT */
/*
 * Transfers by an engine that is slow, closes, goes away in the middle, or answers an
 * error and resets; the guest is a real one, on this host. Whatever happens is told in
 * words, and nothing is left half-done on either side.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "wire/channel_peer.h"
#include "sandbox/private.h"
#include "sandbox/session.h"
#include "support/fake_engine.h"
#include "support/land_world.h"

#include <dirent.h>
#include <fcntl.h>

#define CONTINUE "HTTP/1.1 100 Continue\r\n\r\n"
#define FULL                                                                                       \
	"HTTP/1.1 500 Internal Server Error\r\n\r\n"                                               \
	"{\"message\":\"write /x: no space left on device\"}\n"

enum { SHORT_MS = 1500, BIG = 4 << 20 };

static struct world world; /* work/in is the inside, work/here our side */
static struct guest guest;
static struct sba_sandbox box;
static struct fake_engine *f;
static char inside[128], here[128];
static char *answers[4];
static size_t n_answers;

static int open_guest(void *user, struct sba_until until, struct sba_channel **ret,
		      struct sba_error *err)
{
	(void)user, (void)until, (void)err;
	guest_start(&guest);
	*ret = guest.c;
	return 0;
}

/* The guest takes what lies on another mount upon itself. */
static bool is_on_the_roots_mount(const char *path)
{
	struct stat root, st;
	return stat("/", &root) == 0 && stat(path, &st) == 0 && root.st_dev == st.st_dev;
}

static int set_up(void **state)
{
	(void)state;
	unsetenv("DOCKER_API_VERSION");
	alarm(100);
	world_open(&world, false);
	snprintf(inside, sizeof(inside), "%s/work/in", world.root);
	snprintf(here, sizeof(here), "%s/work/here", world.root);
	assert_int_equal(mkdir(inside, 0755) | mkdir(here, 0755), 0);
	box = (struct sba_sandbox){
		.container = "main",
		.sidecar = "side",
		.info = { .name = "n", .allow = "", .state = "idle", .pool = "", .mounts = "" }
	};
	return sba_session_new_with(&box, open_guest, NULL, &box.session, NULL);
}

static int tear_down(void **state)
{
	(void)state;
	sba_session_free(box.session);
	sba_engine_close(box.engine);
	fake_engine_stop(f);
	while (n_answers > 0)
		free(answers[--n_answers]);
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	world_close(&world);
	return 0;
}

static void start(const struct fake_exchange *script, size_t n)
{
	struct sba_error err;
	f = fake_engine_start("1.41", script, n);
	const struct sba_engine_options o = { .host = fake_engine_host(f) };
	assert_int_equal(sba_engine_open(&o, &box.engine, &err), 0);
	if (!is_on_the_roots_mount(inside)) {
		print_message("SKIPPED: '%s' is on a mount of its own\n", inside);
		skip();
	}
}
#define START(...)                                                                                 \
	static const struct fake_exchange script_[] = { __VA_ARGS__ };                             \
	start(script_, SBA_ARRAY_LEN(script_))

static int names_in(const char *path)
{
	DIR *d = opendir(path);
	int n = -2; /* "." and ".." */
	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* The guest takes its staging folder back once it has heard. */
static void await_nothing_inside(void)
{
	int64_t limit = sba_now_ms() + PEER_WAIT_MS;
	while (names_in(inside) > 0) {
		assert_true(sba_now_ms() < limit);
		poll(NULL, 0, 5);
	}
}

static const char *make_source(void)
{
	static char path[160];
	snprintf(path, sizeof(path), "%s/work/source", world.root);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	SBA_FREE char *data = malloc(BIG);
	memset(data, 'x', BIG);
	assert_int_equal(write(fd, data, BIG), BIG);
	close(fd);
	return path;
}

static const char *below(const char *dir, const char *name)
{
	static char paths[4][160];
	static unsigned turn;
	char *path = paths[turn++ % 4];
	snprintf(path, sizeof(paths[0]), "%s/%s", dir, name);
	return path;
}

/* ---- in ---- */

static void upload_fails_with_one_of(int64_t timeout_ms, int code, const char *words,
				     const char *or_words)
{
	const struct sba_transfer_options o = { .timeout_ms = timeout_ms };
	struct sba_error err = { 0 };
	int rc = sba_sandbox_upload(&box, make_source(), below(inside, "final"), &o, NULL, &err);
	if (rc != code || !(strstr(err.text, words) || strstr(err.text, or_words)))
		fail_msg("%d: %s", rc, err.text);
	await_nothing_inside();
}

static void upload_fails(int64_t timeout_ms, int code, const char *words)
{
	upload_fails_with_one_of(timeout_ms, code, words, words);
}

static void an_error_before_the_first_byte_is_told(void **state)
{
	(void)state;
	START({ .method = "PUT", .early = true, .answer = FULL, .then = FAKE_CLOSE });
	upload_fails(20000, SBA_EENGINE, "no space left on device");
}

static void an_error_in_the_middle_is_told_though_the_connection_is_reset(void **state)
{
	(void)state;
	START({ .method = "PUT",
		.early = true,
		.answer = CONTINUE FULL,
		.first = sizeof(CONTINUE) - 1,
		.then = FAKE_CLOSE });
	upload_fails(20000, SBA_EENGINE, "no space left on device");
}

static void an_engine_that_goes_in_the_middle_of_an_upload_is_told(void **state)
{
	(void)state;
	START({ .method = "PUT", .early = true, .answer = CONTINUE, .then = FAKE_CLOSE });
	/* A close with bytes unread is a reset, where there were any yet. */
	upload_fails_with_one_of(20000, SBA_ELOST, "the engine closed the connection",
				 "the connection to the engine broke");
}

static void an_engine_that_takes_nothing_ends_at_the_deadline(void **state)
{
	(void)state;
	START({ .method = "PUT", .early = true, .answer = CONTINUE, .then = FAKE_SILENCE });
	upload_fails(SHORT_MS, SBA_ETIMEOUT, "");
}

static void an_upload_goes_over_a_new_connection_where_the_kept_one_was_closed(void **state)
{
	struct sba_error err = { 0 };
	struct stat st;
	(void)state;
	START({ .method = "GET", .answer = FAKE_EMPTY, .then = FAKE_CLOSE },
	      { .method = "PUT", .answer = FAKE_EMPTY, .then = FAKE_CLOSE });
	const struct sba_request thing = { .method = "GET", .path = "/thing" };
	assert_int_equal(sba_engine_call(box.engine, &thing, sba_until_in(20000), NULL, &err), 0);
	fake_engine_await_closed(f, 1);
	/* This engine says that it is done, and has put nothing anywhere: the guest sees it. */
	if (sba_sandbox_upload(&box, make_source(), below(inside, "final"), NULL, NULL, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(stat(below(inside, "final"), &st), 0);
	assert_int_equal(st.st_size, BIG);
	assert_int_equal(names_in(inside), 1);
}

/* ---- out ---- */

/* The engine may read an answer until it is stopped. */
static char *keep(char *take_answer)
{
	assert_in_range(n_answers, 0, SBA_ARRAY_LEN(answers) - 1);
	answers[n_answers++] = take_answer;
	return take_answer;
}

/* An answer to a GET of the folder "in", of which the last `cut` bytes are missing. */
static const char *tar_answer(size_t cut, size_t *ret_len)
{
	SBA_BUF struct sba_buf tar = SBA_BUF_INIT(1 << 20), all = SBA_BUF_INIT(1 << 20);
	tar_dir(&tar, "in/");
	tar_file(&tar, "in/first", "first");
	tar_file(&tar, "in/second", "second");
	tar_end(&tar);
	sba_buf_puts(&all, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
	sba_buf_printf(&all, "%zx\r\n", tar.len);
	sba_buf_put(&all, tar.data, tar.len);
	sba_buf_puts(&all, "\r\n0\r\n\r\n");
	assert_int_equal(all.failed, 0);
	*ret_len = all.len - cut;
	return keep(sba_buf_take(&all));
}

static int download(int64_t timeout_ms, struct sba_error *err)
{
	const struct sba_transfer_options o = { .timeout_ms = timeout_ms };
	return sba_sandbox_download(&box, inside, below(here, "final"), &o, NULL, err);
}

static void download_fails(int64_t timeout_ms, int code, const char *words)
{
	struct sba_error err = { 0 };
	int rc = download(timeout_ms, &err);
	if (rc != code || !strstr(err.text, words))
		fail_msg("%d: %s", rc, err.text);
	assert_int_equal(names_in(here), 0);
}

static void a_download_that_is_cut_leaves_nothing_here(void **state)
{
	static struct fake_exchange x[2];
	(void)state;
	x[0].answer = tar_answer(6 * 512, &x[0].answer_len);
	x[1].answer = tar_answer(5, &x[1].answer_len);
	x[0].then = x[1].then = FAKE_CLOSE;
	start(x, 2);
	download_fails(20000, SBA_ELOST, "closed the connection");
	download_fails(20000, SBA_ELOST, "closed the connection");
}

static void a_download_that_stands_still_ends_at_the_deadline_and_leaves_nothing(void **state)
{
	static struct fake_exchange x[1];
	(void)state;
	x[0].answer = tar_answer(6 * 512, &x[0].answer_len);
	x[0].then = FAKE_SILENCE;
	start(x, 1);
	download_fails(SHORT_MS, SBA_ETIMEOUT, "");
}

static void an_error_instead_of_a_download_is_told(void **state)
{
	(void)state;
	START({ .method = "GET", .early = true, .answer = FULL, .then = FAKE_CLOSE },
	      { .method = "GET", .early = true, .then = FAKE_CLOSE });
	download_fails(20000, SBA_EENGINE, "no space left on device");
	download_fails(20000, SBA_ELOST, "closed the connection unanswered");
}

static void a_slow_download_comes_whole(void **state)
{
	static struct fake_exchange x[1];
	struct sba_error err = { 0 };
	(void)state;
	x[0].answer = tar_answer(0, &x[0].answer_len);
	x[0].bytes = true;
	start(x, 1);
	if (download(60000, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(names_in(below(here, "final")), 2);
}

/* The engine was started anew since the last request. */
static void a_download_is_asked_for_again_where_the_kept_connection_was_closed(void **state)
{
	static struct fake_exchange x[3];
	struct sba_error err = { 0 };
	(void)state;
	x[2].answer = tar_answer(0, &x[2].answer_len);
	x[0] = (struct fake_exchange){ .answer = FAKE_EMPTY };
	x[1] = (struct fake_exchange){ .method = "GET", .then = FAKE_CLOSE };
	start(x, 3);
	const struct sba_request thing = { .method = "GET", .path = "/thing" };
	assert_int_equal(sba_engine_call(box.engine, &thing, sba_until_in(20000), NULL, &err), 0);
	if (download(20000, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(names_in(below(here, "final")), 2);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_error_before_the_first_byte_is_told),
		TEST(an_error_in_the_middle_is_told_though_the_connection_is_reset),
		TEST(an_engine_that_goes_in_the_middle_of_an_upload_is_told),
		TEST(an_engine_that_takes_nothing_ends_at_the_deadline),
		TEST(an_upload_goes_over_a_new_connection_where_the_kept_one_was_closed),
		TEST(a_download_that_is_cut_leaves_nothing_here),
		TEST(a_download_that_stands_still_ends_at_the_deadline_and_leaves_nothing),
		TEST(an_error_instead_of_a_download_is_told),
		TEST(a_slow_download_comes_whole),
		TEST(a_download_is_asked_for_again_where_the_kept_connection_was_closed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
