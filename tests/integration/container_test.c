/* SPDX-License-Identifier: MIT */
/*
 * A container that is not ours: the process interface and files of the engine's own, what
 * they lack told by name, and nothing of ours in it, beside it or against it.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/limits.h"
#include "support/live.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

struct world {
	char name[64], id[SBA_ID_MAX];
	struct sba_sandbox *box;
};

/* What `docker run` makes; our label is for the sweep, and its name does not agree. */
static void make(const char *leaf, char name[64], char ret_id[SBA_ID_MAX])
{
	struct sba_error err = { 0 };
	SBA_JSON json_t *spec = json_pack("{s:s, s:[ss], s:s, s:{s:s}, s:{s:s}}", "Image",
					  live.image, "Entrypoint", "sleep", "6161", "WorkingDir",
					  "/srv", "Labels", "io.sandbox-agent.prefix", live.prefix,
					  "HostConfig", "NetworkMode", "none");
	snprintf(name, 64, "foreign-%s-%s", live.prefix, leaf);
	if (sba_container_create(live.engine, name, spec, sba_until_in(30000), ret_id, &err) < 0 ||
	    sba_container_start(live.engine, ret_id, sba_until_in(30000), &err) < 0)
		fail_msg("%s", err.text);
}

static struct sba_sandbox *borrow(const char *name)
{
	struct sba_sandbox *s = NULL;
	struct sba_error err = { 0 };
	if (sba_sandbox_open_container(live.engine, name, &s, &err) < 0)
		fail_msg("%s", err.text);
	return s;
}

static struct world web;

static int begin(void **state)
{
	if (live_begin(state))
		return -1;
	make("web", web.name, web.id);
	web.box = borrow(web.name);
	return 0;
}

static int end(void **state)
{
	sba_sandbox_close(web.box);
	return live_end(state);
}

static struct sba_error refused(const struct sba_exec_options *o, int code)
{
	struct sba_process *p = NULL;
	struct sba_error err = { 0 };
	assert_int_equal(sba_sandbox_exec(web.box, o, &p, &err), code);
	return err;
}

/* ---- commands ---- */

static void it_is_described_as_it_is(void **state)
{
	(void)state;
	const struct sba_sandbox_info *i = sba_sandbox_info(web.box);
	assert_string_equal(i->name, web.name);
	assert_string_equal(i->id, web.id);
	assert_string_equal(i->image, live.image);
	assert_string_equal(sba_sandbox_backend(web.box), "container");
	assert_string_equal(sba_sandbox_workdir(web.box), "/srv");
}

static void a_command_has_its_streams_and_status(void **state)
{
	(void)state;
	const char *const argv[] = { "sh", "-c", "pwd; echo $X; id -u; echo err >&2; exit 7",
				     NULL };
	const char *const env[] = { "X=a=b c", NULL };
	const struct sba_exec_options o = { .argv = argv, .env = env, .user = "1000" };
	LIVE_RESULT r = { 0 };
	live_exec(web.box, &o, &r);
	live_assert_exit(&r, 7);
	assert_string_equal(r.out.data, "/srv\na=b c\n1000\n");
	assert_string_equal(r.errout.data, "err\n");
}

static void more_input_than_is_queued_comes_back_whole(void **state)
{
	(void)state;
	enum { SIZE = 3 << 20 };
	SBA_FREE char *data = malloc(SIZE);
	const char *const argv[] = { "cat", NULL };
	memset(data, 'x', SIZE);
	const struct sba_run_options o = { .argv = argv, .input = data, .input_len = SIZE };
	struct sba_run_result r = { 0 };
	assert_int_equal(sba_sandbox_run(web.box, &o, &r, NULL), 0);
	assert_int_equal(r.out_len, SIZE);
	assert_memory_equal(r.out, data, SIZE);
	sba_run_result_fini(&r);
}

static void what_cannot_run_is_told_apart(void **state)
{
	(void)state;
	static const struct {
		const char *argv[2], *workdir;
		enum sba_exit_kind kind;
	} cases[] = {
		{ { "no-such-program" }, NULL, SBA_NOT_FOUND },
		{ { "/no/such" }, NULL, SBA_NOT_FOUND },
		{ { "/etc/passwd" }, NULL, SBA_CANNOT_RUN },
		{ { "true" }, "/no/such", SBA_NO_WORKDIR },
	};
	for (size_t i = 0; i < SBA_ARRAY_LEN(cases); i++) {
		const struct sba_exec_options o = { .argv = cases[i].argv,
						    .workdir = cases[i].workdir };
		LIVE_RESULT r = { 0 };
		live_exec(web.box, &o, &r);
		assert_int_equal(r.rc, 0);
		assert_int_equal(r.exit.kind, cases[i].kind);
		assert_int_equal(r.out.len, 0);
	}
	const char *const argv[] = { "true", NULL };
	const struct sba_exec_options o = { .argv = argv, .user = "nobody-of-that-name" };
	LIVE_RESULT r = { 0 };
	live_exec(web.box, &o, &r);
	assert_int_equal(r.rc, SBA_ENOTFOUND);
}

/* Words like a runtime's are the command's own where it did run. */
static void output_that_looks_like_the_runtimes_is_passed_on(void **state)
{
	(void)state;
	LIVE_RESULT r = { 0 };
	live_sh(web.box, "echo 'exec failed: really'; exit 3", &r);
	live_assert_exit(&r, 3);
	assert_string_equal(r.out.data, "exec failed: really\n");
}

static void a_deadline_ends_all_that_kept_its_environment(void **state)
{
	(void)state;
	const char *const argv[] = { "sh", "-c",
				     "trap '' TERM; echo begun; (sleep 6262 & sleep 6262) & "
				     "sleep 6262",
				     NULL };
	const struct sba_exec_options o = { .argv = argv, .timeout_ms = 3000 };
	LIVE_RESULT r = { 0 };
	live_exec(web.box, &o, &r);
	assert_int_equal(r.rc, 0);
	assert_int_equal(r.exit.kind, SBA_TIMED_OUT);
	assert_string_equal(r.out.data, "begun\n");
	live_await_inside(web.id, "sleep 6262", false, 20000);
	assert_true(live_runs_inside(web.id, "sleep 6161"));
}

/* The engine tells no end of any exec while nobody reads what this one has printed. */
static void a_deadline_ends_what_floods(void **state)
{
	(void)state;
	const char *const argv[] = { "sh", "-c", "trap '' TERM; yes & yes", NULL };
	const struct sba_exec_options o = { .argv = argv, .timeout_ms = 1000 };
	struct sba_process *p = NULL;
	struct sba_error err = { 0 };
	struct sba_exit how = { 0 };
	enum sba_output which;
	const char *data;
	assert_int_equal(sba_sandbox_exec(web.box, &o, &p, NULL), 0);
	while (sba_process_read(p, -1, &which, &data, NULL) > 0)
		;
	if (sba_process_wait(p, -1, &how, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(how.kind, SBA_TIMED_OUT);
	sba_process_free(p);
	live_await_inside(web.id, "yes", false, 20000);
}

static struct sba_process *begin_sleep(const char *script)
{
	const char *const argv[] = { "sh", "-c", script, NULL };
	const struct sba_exec_options o = { .argv = argv };
	enum sba_output which;
	const char *data;
	struct sba_process *p = NULL;
	assert_int_equal(sba_sandbox_exec(web.box, &o, &p, NULL), 0);
	assert_true(sba_process_read(p, -1, &which, &data, NULL) > 0);
	return p;
}

static void cancelling_a_signal_and_giving_up_end_it(void **state)
{
	(void)state;
	struct sba_exit how = { 0 };
	struct sba_process *p = begin_sleep("echo begun; exec sleep 6363");
	sba_process_cancel(p);
	assert_int_equal(sba_process_wait(p, -1, &how, NULL), 0);
	assert_int_equal(how.kind, SBA_WAS_CANCELED);
	sba_process_free(p);

	p = begin_sleep("echo begun; exec sleep 6363");
	assert_int_equal(sba_process_signal(p, SIGUSR1, NULL), 0);
	assert_int_equal(sba_process_wait(p, -1, &how, NULL), 0);
	assert_int_equal(how.kind, SBA_SIGNALED);
	assert_int_equal(how.number, SIGUSR1);
	sba_process_free(p);

	p = begin_sleep("echo begun; sleep 6363 & exec sleep 6363");
	sba_process_free(p);
	live_await_inside(web.id, "sleep 6363", false, 20000);
}

static void children_that_hold_its_output_do_not_keep_it(void **state)
{
	(void)state;
	struct sba_exit how = { 0 };
	struct sba_process *p = begin_sleep("echo begun; sleep 6464 & exit 5");
	assert_int_equal(sba_process_wait(p, 30000, &how, NULL), 0);
	assert_int_equal(how.kind, SBA_EXITED);
	assert_int_equal(how.number, 5);
	assert_true(sba_process_output_held(p));
	sba_process_free(p);
	assert_true(live_runs_inside(web.id, "sleep 6464"));
	LIVE_RESULT r = { 0 };
	live_sh(web.box, "kill $(pidof sleep | tr ' ' '\\n' | grep -vx 1) || exit 0", &r);
}

/* The engine sets a size only once it runs. */
static void a_terminal_is_one_and_is_resized(void **state)
{
	(void)state;
	static const char script[] = "test -t 0 && test -t 1 || exit 9; "
				     "until [ \"$(stty size)\" = '7 99' ]; do sleep 0.05; done; "
				     "echo first; "
				     "until [ \"$(stty size)\" = '9 44' ]; do sleep 0.05; done";
	const char *const argv[] = { "sh", "-c", script, NULL };
	const struct sba_exec_options o = { .argv = argv,
					    .tty = true,
					    .has_stdin = true,
					    .rows = 7,
					    .columns = 99,
					    .timeout_ms = 60000 };
	enum sba_output which;
	const char *data;
	struct sba_exit how = { 0 };
	struct sba_process *p = NULL;
	assert_int_equal(sba_sandbox_exec(web.box, &o, &p, NULL), 0);
	assert_true(sba_process_read(p, -1, &which, &data, NULL) > 0);
	assert_memory_equal(data, "first", 5);
	assert_int_equal(sba_process_resize(p, 9, 44, NULL), 0);
	assert_int_equal(sba_process_wait(p, -1, &how, NULL), 0);
	assert_int_equal(how.kind, SBA_EXITED);
	assert_int_equal(how.number, 0);
	sba_process_free(p);
}

static void a_missing_capability_is_named(void **state)
{
	(void)state;
	const char *const argv[] = { "true", NULL };
	char url[64];
	struct sba_error err = { 0 };
	struct sba_sandbox_limits limits;
	struct sba_sandbox *child = NULL;
	struct sba_port *port = NULL;
	const struct sba_port_options po = { .port = 80 };
	err = refused(&(struct sba_exec_options){ .argv = argv, .detach = true }, SBA_EUNSUPPORTED);
	assert_non_null(strstr(err.text, "'detach'"));
	err = refused(&(struct sba_exec_options){ .argv = argv, .lock = "l" }, SBA_EUNSUPPORTED);
	assert_non_null(strstr(err.text, "'lock'"));
	assert_int_equal(sba_sandbox_host_url(web.box, 80, url, sizeof(url), &err),
			 SBA_EUNSUPPORTED);
	assert_non_null(strstr(err.text, "'host_url'"));
	assert_int_equal(sba_port_open(web.box, &po, &port, &err), SBA_EUNSUPPORTED);
	assert_non_null(strstr(err.text, "'port'"));
	assert_int_equal(sba_sandbox_fork(web.box, NULL, &child, NULL, &err), SBA_EUNSUPPORTED);
	assert_non_null(strstr(err.text, "'fork'"));
	assert_int_equal(sba_sandbox_limits(web.box, &limits, &err), SBA_EUNSUPPORTED);
	assert_non_null(strstr(err.text, "'inspect'"));
}

/* ---- files ---- */

static int put(void *user, const void *data, size_t len, struct sba_error *err)
{
	(void)err;
	sba_buf_put(user, data, len);
	return 0;
}

static ssize_t get(void *user, void *buf, size_t size, struct sba_error *err)
{
	const char **text = user;
	size_t n = strlen(*text);
	(void)err;
	assert_true(n < size);
	memcpy(buf, *text, n);
	*text += n;
	return (ssize_t)n;
}

static void files_and_folders_go_in_and_out(void **state)
{
	(void)state;
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(SBA_KIB);
	const char *text = "content\n";
	struct sba_file_stat st = { 0 };
	struct sba_error err = { 0 };
	const struct sba_write_options wo = { .set_mode = true, .mode = 0640 };
	assert_int_equal(sba_sandbox_write(web.box, "/srv/a/b", get, &text, &wo, &err), 0);
	assert_int_equal(sba_sandbox_read(web.box, "/srv/a/b", 0, put, &b, &err), 0);
	assert_string_equal(b.data, "content\n");
	assert_int_equal(sba_sandbox_stat(web.box, "/srv/a/b", &st, &err), 0);
	assert_int_equal(st.mode, S_IFREG | 0640);
	assert_int_equal(
		sba_sandbox_download(web.box, "/srv/a", live_path("out"), NULL, NULL, &err), 0);
	assert_int_equal(sba_sandbox_upload(web.box, live_path("out"), "/srv/in", NULL, NULL, &err),
			 0);
	SBA_FREE char *said = live_sh_out(web.box, "cat /srv/in/b");
	assert_string_equal(said, "content\n");
	assert_int_equal(sba_sandbox_read(web.box, "/srv/nope", 0, put, &b, &err), SBA_ENOTFOUND);
	assert_int_equal(sba_sandbox_read(web.box, "/srv", 0, put, &b, &err), SBA_EREFUSED);
}

/* ---- where there is no shell ---- */

static void without_a_shell_it_is_read_and_what_it_lacks_is_told(void **state)
{
	(void)state;
	struct world w;
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(SBA_KIB);
	const char *text = "x";
	const char *const argv[] = { "sleep", "6565", NULL };
	const struct sba_exec_options o = { .argv = argv, .timeout_ms = 500 };
	struct sba_file_stat st = { 0 };
	struct sba_error err = { 0 };
	make("bare", w.name, w.id);
	w.box = borrow(w.name);
	SBA_FREE char *said = live_sh_out(w.box, "rm /bin/sh; echo content > /srv/f");
	assert_int_equal(sba_sandbox_read(w.box, "/srv/f", 0, put, &b, &err), 0);
	assert_string_equal(b.data, "content\n");
	assert_int_equal(sba_sandbox_stat(w.box, "/srv/f", &st, &err), 0);
	assert_int_equal(st.size, 8);
	assert_int_equal(sba_sandbox_read(w.box, "/srv/g", 0, put, &b, &err), SBA_ENOTFOUND);
	assert_int_equal(sba_sandbox_write(w.box, "/srv/g", get, &text, NULL, &err),
			 SBA_EUNSUPPORTED);
	assert_non_null(strstr(err.text, "'sh'"));
	LIVE_RESULT r = { 0 };
	live_exec(w.box, &o, &r);
	assert_int_equal(r.rc, SBA_ELOST);
	assert_non_null(strstr(r.err.text, "goes on: there is no 'sh'"));
	live_await_inside(w.id, "sleep 6565", true, 20000);
	sba_sandbox_close(w.box);
	live_remove_container(w.id);
}

/* ---- whose it is ---- */

static bool is_there(const char *id)
{
	SBA_JSON json_t *j = NULL;
	return sba_container_inspect(live.engine, id, sba_until_in(30000), &j, NULL) == 0 &&
	       sba_json_bool(j, "State.Running", false);
}

static void nothing_of_ours_removes_it(void **state)
{
	(void)state;
	struct sba_error err = { 0 };
	int removed = -1;
	LIVE_CHILD c;
	assert_int_equal(sba_sandbox_remove(web.box, &err), SBA_EREFUSED);
	assert_non_null(strstr(err.text, "is not ours"));
	assert_int_equal(sba_gc(live.engine, live.prefix, &removed, &err), 0);
	assert_int_equal(removed, 0);
	RUN(&c, "--prefix", live.prefix, "rm", "--all");
	assert_int_equal(c.status, 0);
	live_child_fini(&c);
	RUN(&c, "--prefix", live.prefix, "rm", web.name);
	live_assert_says(&c, 1, "there is no sandbox");
	assert_true(is_there(web.id));
	LIVE_RESULT r = { 0 };
	live_sh(web.box, "true", &r);
	live_assert_exit(&r, 0);
}

static void a_sandboxs_container_is_not_taken_for_one(void **state)
{
	(void)state;
	struct sba_sandbox *s =
		live_sandbox((struct sba_sandbox_options){ .name = "fox", .network = "sealed" });
	struct sba_sandbox *borrowed = NULL;
	struct sba_error err = { 0 };
	char sidecar[SBA_ID_MAX];
	live_sidecar_of(s, sidecar);
	const char *const halves[] = { sba_sandbox_container(s), sidecar };
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(
			sba_sandbox_open_container(live.engine, halves[i], &borrowed, &err),
			SBA_EREFUSED);
		assert_non_null(strstr(err.hint, "exec fox"));
	}
	live_remove(s);
}

static void one_that_is_not_there_does_not_run_or_dies_is_told(void **state)
{
	(void)state;
	struct sba_sandbox *s = NULL;
	struct sba_error err = { 0 };
	struct world w;
	assert_int_equal(sba_sandbox_open_container(live.engine, "no-such-container", &s, &err),
			 SBA_ENOTFOUND);
	make("dies", w.name, w.id);
	w.box = borrow(w.name);
	const char *const argv[] = { "sh", "-c", "echo begun; exec sleep 6666", NULL };
	const struct sba_exec_options o = { .argv = argv };
	enum sba_output which;
	const char *data;
	struct sba_exit how = { 0 };
	struct sba_process *p = NULL;
	assert_int_equal(sba_sandbox_exec(w.box, &o, &p, &err), 0);
	assert_true(sba_process_read(p, -1, &which, &data, &err) > 0);
	live_kill_container(w.id);
	assert_int_equal(sba_process_wait(p, 60000, &how, &err), SBA_EBROKEN);
	assert_non_null(strstr(err.text, "has ended"));
	sba_process_free(p);
	assert_int_equal(sba_sandbox_open_container(live.engine, w.name, &s, &err), SBA_EBROKEN);
	assert_non_null(strstr(err.text, "does not run"));
	sba_sandbox_close(w.box);
	live_remove_container(w.id);
}

/* ---- by hand ---- */

static void the_program_finds_it_by_its_flag_and_says_so_without(void **state)
{
	(void)state;
	LIVE_CHILD c;
	char place[96];
	RUN(&c, "--prefix", live.prefix, "exec", web.name, "--", "true");
	live_assert_says(&c, 125, "there is no sandbox");
	assert_non_null(strstr(c.err.data, "--container"));
	live_child_fini(&c);
	RUN(&c, "--prefix", live.prefix, "exec", "--container", web.name, "--", "sh", "-c",
	    "echo out; exit 4");
	live_assert_says(&c, 4, "is not ours: its commands go on");
	assert_string_equal(c.out.data, "out\n");
	live_child_fini(&c);
	RUN(&c, "--prefix", live.prefix, "exec", "--container", web.name, "--", "no-such");
	live_assert_says(&c, 127, "has no command 'no-such'");
	live_child_fini(&c);
	RUN(&c, "--prefix", live.prefix, "exec", "--container", "--timeout", "500ms", web.name,
	    "--", "sleep", "6767");
	live_assert_says(&c, 124, "it was ended");
	live_child_fini(&c);
	RUN(&c, "--prefix", live.prefix, "read", "--container", web.name, "/etc/hostname");
	assert_int_equal(c.status, 0);
	assert_memory_equal(c.out.data, web.id, 12);
	live_child_fini(&c);
	snprintf(place, sizeof(place), "%s:/srv/of-the-program", web.name);
	live_write_file(live_path("mine"), "mine", 4, 0644);
	RUN(&c, "--prefix", live.prefix, "cp", "--container", live_path("mine"), place);
	assert_int_equal(c.status, 0);
	SBA_FREE char *said = live_sh_out(web.box, "cat /srv/of-the-program");
	assert_string_equal(said, "mine");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE_STEP(it_is_described_as_it_is),
		LIVE_STEP(a_command_has_its_streams_and_status),
		LIVE_STEP(more_input_than_is_queued_comes_back_whole),
		LIVE_STEP(what_cannot_run_is_told_apart),
		LIVE_STEP(output_that_looks_like_the_runtimes_is_passed_on),
		LIVE_STEP(a_deadline_ends_all_that_kept_its_environment),
		LIVE_STEP(a_deadline_ends_what_floods),
		LIVE_STEP(cancelling_a_signal_and_giving_up_end_it),
		LIVE_STEP(children_that_hold_its_output_do_not_keep_it),
		LIVE_STEP(a_terminal_is_one_and_is_resized),
		LIVE_STEP(a_missing_capability_is_named),
		LIVE_STEP(files_and_folders_go_in_and_out),
		LIVE_STEP(without_a_shell_it_is_read_and_what_it_lacks_is_told),
		LIVE_STEP(nothing_of_ours_removes_it),
		LIVE_STEP(a_sandboxs_container_is_not_taken_for_one),
		LIVE_STEP(one_that_is_not_there_does_not_run_or_dies_is_told),
		LIVE_STEP(the_program_finds_it_by_its_flag_and_says_so_without),
	};
	return live_run(tests, begin, end);
}
