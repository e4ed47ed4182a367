/* SPDX-License-Identifier: MIT */
/*
 * What an agent keeps in its sandbox between turns: its session, what sessions have used,
 * what drivers keep. The sandbox is one file in memory that counts how often it is written.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/private.h"
#include "sandbox/private.h"
#include "sandbox/session.h"

static struct {
	struct sba_buf file;
	int writes;
	int fails; /* of the writes that are to come */
} world;

static int no_exec(struct sba_sandbox *s, const struct sba_exec_options *o,
		   struct sba_process **ret, struct sba_error *err)
{
	(void)s;
	(void)o;
	(void)ret;
	return sba_fail(err, SBA_EUNSUPPORTED, "no commands here");
}

static int read_file(struct sba_sandbox *s, const char *path, int64_t timeout_ms,
		     sba_write_fn *write, void *user, struct sba_error *err)
{
	(void)s;
	(void)timeout_ms;
	if (!world.file.data)
		return sba_fail(err, SBA_ENOTFOUND, "%s: no such file", path);
	return write(user, world.file.data, world.file.len, err);
}

static int write_file(struct sba_sandbox *s, const char *path, sba_read_fn *read, void *user,
		      const struct sba_write_options *options, struct sba_error *err)
{
	char piece[4096];
	ssize_t n;
	(void)s;
	(void)path;
	(void)options;
	world.writes++;
	if (world.fails > 0) {
		world.fails--;
		return sba_fail(err, SBA_EIO, "no space left");
	}
	sba_buf_reset(&world.file);
	while ((n = read(user, piece, sizeof(piece), err)) > 0)
		sba_buf_put(&world.file, piece, (size_t)n);
	return (int)n;
}

static int close_it(struct sba_sandbox *s, struct sba_error *err)
{
	(void)s;
	(void)err;
	return 0;
}

static const struct sba_backend backend = {
	.version = SBA_BACKEND_VERSION,
	.name = "memory",
	.exec = no_exec,
	.read = read_file,
	.write = write_file,
	.close = close_it,
};

static struct sba_sandbox *sandbox;

static int begin(void **state)
{
	struct sba_error err;
	(void)state;
	alarm(60);
	sba_buf_init(&world.file, 1 << 20);
	world.writes = world.fails = 0;
	if (sba_sandbox_adopt(&backend, NULL, "box", &sandbox, &err) < 0)
		fail_msg("%s", err.text);
	sandbox->root = strdup("");
	return 0;
}

static int end(void **state)
{
	(void)state;
	sba_sandbox_close(sandbox);
	sba_buf_fini(&world.file);
	return 0;
}

/* An agent as a process that has just begun knows it. */
static void open_agent(struct sba_agent *a, const char *driver)
{
	struct sba_error err = { 0 };
	*a = (struct sba_agent){ .sandbox = sandbox, .driver = sba_driver_find(driver) };
	if (sba_agent_load_state(a, &err) < 0)
		fail_msg("%s", err.text);
}

static void close_agent(struct sba_agent *a)
{
	sba_early_save_end(&a->early);
	json_decref(a->memory);
}

static void must(int rc, const struct sba_error *err)
{
	if (rc < 0)
		fail_msg("%s", err->text);
}

/* A turn of codex's, by its stream: what it has used, of the session's running total. */
static void codex_turn(struct sba_agent *a, const char *session, int total)
{
	struct sba_error err = { 0 };
	struct sba_stream *s = NULL;
	struct sba_outcome o;
	struct sba_memory m = { 0 };
	char line[256];
	must(sba_agent_recall(a, a->session, &m, &err), &err);
	const struct sba_stream_options options = { .driver = a->driver,
						    .resumes = *a->session ? a->session : NULL,
						    .kept = m.kept };
	must(sba_stream_new(&options, &s, &err), &err);
	snprintf(line, sizeof(line), "{\"type\":\"thread.started\",\"thread_id\":\"%s\"}", session);
	sba_stream_line(s, line, strlen(line));
	must(sba_agent_save_state(a, sba_stream_session(s), sba_stream_kept(s), &err), &err);
	snprintf(line, sizeof(line),
		 "{\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":%d,"
		 "\"cached_input_tokens\":%d,\"output_tokens\":%d}}",
		 total, total / 2, total / 10);
	sba_stream_line(s, line, strlen(line));
	sba_agent_save_early(a, a->turns, sba_stream_kept(s), sba_stream_used(s));
	must(sba_stream_finish(s, 0, "", &o), &err);
	must(sba_agent_save_turn(a, sba_stream_kept(s), &o.usage, &err), &err);
	free(m.kept);
	sba_stream_free(s);
}

static void assert_used(const struct sba_agent *a, const char *session, int64_t turns,
			int64_t input)
{
	struct sba_memory m = { 0 };
	struct sba_error err = { 0 };
	must(sba_agent_recall(a, session, &m, &err), &err);
	assert_int_equal(m.turns, turns);
	assert_int_equal(m.usage.input, input);
	assert_int_equal(m.usage.cached_input, input / 2);
	assert_int_equal(m.usage.output, input / 10);
	free(m.kept);
}

/* ---- what sessions have used ---- */

static void a_sessions_tokens_are_the_sum_of_its_turns_whatever_process_had_them(void **state)
{
	struct sba_agent a;
	(void)state;
	for (int turn = 1; turn <= 3; turn++) {
		open_agent(&a, "codex");
		assert_int_equal(a.turns, turn - 1);
		codex_turn(&a, "t-1", 100 * turn);
		assert_used(&a, "t-1", turn, 100 * turn);
		close_agent(&a);
	}
}

/* A copy begins with what its past has used; what it says is its own alone. */
static void a_copy_counts_on_from_its_past_and_knows_its_parent(void **state)
{
	struct sba_agent a;
	struct sba_memory m = { 0 };
	struct sba_error err = { 0 };
	(void)state;
	open_agent(&a, "codex");
	codex_turn(&a, "t-1", 300);
	must(sba_agent_recall(&a, "t-1", &m, &err), &err);
	snprintf(m.parent, sizeof(m.parent), "t-1");
	must(sba_agent_set_session(&a, "t-2", &m, &err), &err);
	free(m.kept);
	close_agent(&a);
	open_agent(&a, "codex");
	assert_string_equal(a.session, "t-2");
	codex_turn(&a, "t-2", 340);
	assert_used(&a, "t-2", 2, 340);
	assert_used(&a, "t-1", 1, 300);
	must(sba_agent_recall(&a, "t-2", &m, &err), &err);
	assert_string_equal(m.parent, "t-1");
	free(m.kept);
	close_agent(&a);
}

/* The total goes on from what was used before it; that is not this turn's. */
static void tokens_of_a_past_that_nobody_knows_are_not_counted(void **state)
{
	struct sba_agent a;
	struct sba_error err = { 0 };
	(void)state;
	open_agent(&a, "codex");
	must(sba_agent_set_session(&a, "t-9", NULL, &err), &err);
	codex_turn(&a, "t-9", 1000);
	assert_used(&a, "t-9", 1, 0);
	codex_turn(&a, "t-9", 1040);
	assert_used(&a, "t-9", 2, 40);
	close_agent(&a);
}

static void sums_of_hostile_counts_do_not_overflow(void **state)
{
	const struct sba_usage most = { .input = INT64_MAX, .output = INT64_MAX };
	struct sba_agent a;
	struct sba_error err = { 0 };
	(void)state;
	open_agent(&a, "pi");
	must(sba_agent_save_state(&a, "s", NULL, &err), &err);
	must(sba_agent_save_turn(&a, NULL, &(struct sba_usage){ .input = 7 }, &err), &err);
	must(sba_agent_save_turn(&a, NULL, &most, &err), &err);
	close_agent(&a);
	open_agent(&a, "pi");
	assert_int_equal(a.turns, 1);
	close_agent(&a);
}

static void what_the_driver_kept_of_a_new_session_outlives_a_killed_client(void **state)
{
	struct sba_agent a;
	struct sba_memory m = { 0 };
	struct sba_error err = { 0 };
	(void)state;
	open_agent(&a, "codex");
	must(sba_agent_save_state(&a, "t", "{}", &err), &err);
	close_agent(&a);
	open_agent(&a, "codex");
	must(sba_agent_recall(&a, "t", &m, &err), &err);
	assert_string_equal(m.kept, "{}");
	free(m.kept);
	close_agent(&a);
}

/* ---- writing early ---- */

static struct sba_usage used = { .input = 10, .cached_input = 5, .output = 1 };

static void what_was_written_early_is_not_written_again(void **state)
{
	struct sba_agent a;
	struct sba_error err = { 0 };
	(void)state;
	open_agent(&a, "claude");
	must(sba_agent_save_state(&a, "s", NULL, &err), &err);
	assert_int_equal(world.writes, 1);
	sba_agent_save_early(&a, a.turns, NULL, &used);
	must(sba_agent_save_turn(&a, NULL, &used, &err), &err);
	assert_int_equal(world.writes, 2);
	close_agent(&a);
	open_agent(&a, "claude");
	assert_used(&a, "s", 1, 10);
	close_agent(&a);
}

static void what_came_after_it_is_written(void **state)
{
	struct sba_agent a;
	struct sba_error err = { 0 };
	struct sba_usage more = { .input = 20, .cached_input = 10, .output = 2 };
	(void)state;
	open_agent(&a, "claude");
	must(sba_agent_save_state(&a, "s", NULL, &err), &err);
	sba_agent_save_early(&a, a.turns, NULL, &used);
	must(sba_agent_save_turn(&a, NULL, &more, &err), &err);
	assert_int_equal(world.writes, 3);
	close_agent(&a);
	open_agent(&a, "claude");
	assert_used(&a, "s", 1, 20);
	close_agent(&a);
}

static void what_could_not_be_written_early_is_written_at_the_end(void **state)
{
	struct sba_agent a;
	struct sba_error err = { 0 };
	(void)state;
	open_agent(&a, "claude");
	must(sba_agent_save_state(&a, "s", NULL, &err), &err);
	world.fails = 1;
	sba_agent_save_early(&a, a.turns, NULL, &used);
	must(sba_agent_save_turn(&a, NULL, &used, &err), &err);
	assert_int_equal(world.writes, 3);
	world.fails = 2;
	sba_agent_save_early(&a, a.turns, NULL, &used);
	assert_int_equal(sba_agent_save_turn(&a, NULL, &used, &err), SBA_EIO);
	assert_used(&a, "s", 1, 10);
	close_agent(&a);
}

/* The same words twice, and others between them. */
static void only_what_is_there_now_counts_as_written(void **state)
{
	struct sba_agent a;
	struct sba_error err = { 0 };
	(void)state;
	open_agent(&a, "claude");
	must(sba_agent_save_state(&a, "s", NULL, &err), &err);
	sba_agent_save_early(&a, a.turns, NULL, &used);
	must(sba_agent_set_session(&a, "other", NULL, &err), &err);
	must(sba_agent_set_session(&a, "s", NULL, &err), &err);
	must(sba_agent_save_turn(&a, NULL, &used, &err), &err);
	close_agent(&a);
	open_agent(&a, "claude");
	assert_string_equal(a.session, "s");
	assert_used(&a, "s", 1, 10);
	close_agent(&a);
}

static void a_sandbox_that_ends_with_its_turn_keeps_nothing(void **state)
{
	struct sba_agent a;
	struct sba_error err = { 0 };
	(void)state;
	open_agent(&a, "claude");
	a.one_turn = true;
	must(sba_agent_save_state(&a, "s", NULL, &err), &err);
	sba_agent_save_early(&a, a.turns, NULL, &used);
	must(sba_agent_save_turn(&a, NULL, &used, &err), &err);
	assert_int_equal(world.writes, 0);
	close_agent(&a);
}

int main(void)
{
#define STATE_TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
	const struct CMUnitTest tests[] = {
		STATE_TEST(a_sessions_tokens_are_the_sum_of_its_turns_whatever_process_had_them),
		STATE_TEST(a_copy_counts_on_from_its_past_and_knows_its_parent),
		STATE_TEST(tokens_of_a_past_that_nobody_knows_are_not_counted),
		STATE_TEST(sums_of_hostile_counts_do_not_overflow),
		STATE_TEST(what_the_driver_kept_of_a_new_session_outlives_a_killed_client),
		STATE_TEST(what_was_written_early_is_not_written_again),
		STATE_TEST(what_came_after_it_is_written),
		STATE_TEST(what_could_not_be_written_early_is_written_at_the_end),
		STATE_TEST(only_what_is_there_now_counts_as_written),
		STATE_TEST(a_sandbox_that_ends_with_its_turn_keeps_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
