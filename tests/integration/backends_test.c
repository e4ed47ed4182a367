/* SPDX-License-Identifier: MIT */
/*
 * What every backend must do, asked of each in the same words: containers, a folder of this
 * host, services (as they were recorded: support/fake_remote.h), and the example's table of
 * its own. ci/backends makes the table of docs/backends.md of what it prints.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/fake_remote.h"
#include "support/live.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#undef _GNU_SOURCE
int own_sandbox_main(int argc, char **argv);
#define main own_sandbox_main
#include "../../examples/own_sandbox.c"
#undef main

/* ---- the backends ---- */

static char folder[96]; /* of this host */

static struct sba_sandbox *open_docker(void)
{
	return live_sandbox((struct sba_sandbox_options){ .keepalive_ms = 60000 });
}

static struct sba_sandbox *open_local(void)
{
	extern char **environ;
	const struct sba_local_options o = { .name = "here",
					     .environment = (const char *const *)environ };
	struct sba_sandbox *s = NULL;
	struct sba_error err = { 0 };
	assert_int_equal(sba_local_open(folder, &o, &s, &err), 0);
	return s;
}

static struct sba_sandbox *open_own(void)
{
	struct sba_sandbox *s = NULL;
	struct sba_error err = { 0 };
	assert_int_equal(sba_sandbox_adopt(&own_sandbox, folder, "mine", &s, &err), 0);
	return s;
}

/* ---- services ---- */

static struct fake_remote fake;
static struct sba_remote *service;

static struct sba_sandbox *open_service(const char *name, const char *url)
{
	const struct sba_remote_options o = {
		.url = url, .sandbox_url = fake.url, .key = FAKE_KEY, .workdir = folder
	};
	const struct sba_sandbox_options so = { .prefix = live.prefix, .image = "debian" };
	struct sba_sandbox *s = NULL;
	struct sba_error err = { 0 };
	if (sba_remote_open(name, &o, &service, &err) < 0 ||
	    sba_remote_create(service, &so, &s, &err) < 0)
		fail_msg("%s", err.text);
	return s;
}

static struct sba_sandbox *open_opensandbox(void)
{
	char url[80];
	snprintf(url, sizeof(url), "%s/v1", fake.url);
	return open_service("opensandbox", url);
}

static struct sba_sandbox *open_e2b(void)
{
	return open_service("e2b", fake.url);
}

struct backend {
	const char *name;
	struct sba_sandbox *(*open)(void);
	struct sba_sandbox *box;
};

static int begin(void **state, struct backend *b)
{
	struct sba_error err = { 0 };
	print_message("[ backend  ] %s\n", b->name);
	snprintf(folder, sizeof(folder), "%s/%s", live.dir, b->name);
	(void)mkdir(folder, 0700);
	setenv("HOME", live.dir, 1);
	b->box = b->open();
	/* A container's is made by whoever works there first. */
	assert_int_equal(sba_sandbox_make_dir(b->box, sba_sandbox_workdir(b->box), &err), 0);
	*state = b;
	return 0;
}

static int end(void **state)
{
	struct backend *b = *state;
	sba_sandbox_remove(b->box, NULL);
	sba_sandbox_close(b->box);
	return 0;
}

static struct sba_sandbox *box_of(void **state)
{
	return ((struct backend *)*state)->box;
}

/* A path in the working directory. */
static const char *at(struct sba_sandbox *s, const char *name)
{
	static char path[4][512];
	static unsigned next;
	char *p = path[next++ % 4];
	snprintf(p, sizeof(path[0]), "%s/%s", sba_sandbox_workdir(s), name);
	return p;
}

static struct sba_run_result run(struct sba_sandbox *s, const struct sba_run_options *o)
{
	struct sba_run_result r = { 0 };
	struct sba_error err = { 0 };
	if (sba_sandbox_run(s, o, &r, &err) < 0)
		fail_msg("%s", err.text);
	return r;
}

#define RUN_SH(s, text)                                                                            \
	run(s, &(struct sba_run_options){ .argv = (const char *const[]){ "sh", "-c", text, NULL }, \
					  .workdir = sba_sandbox_workdir(s) })

/* ---- the cases ---- */

static void output_and_status_are_its_own(void **state)
{
	struct sba_run_result r = RUN_SH(box_of(state), "echo out; echo err >&2; exit 7");
	assert_string_equal(r.out, "out\n");
	assert_string_equal(r.err, "err\n");
	assert_int_equal(r.exit.kind, SBA_EXITED);
	assert_int_equal(r.exit.number, 7);
	sba_run_result_fini(&r);
}

static void input_and_environment_arrive_and_it_begins_in_the_workdir(void **state)
{
	struct sba_sandbox *s = box_of(state);
	const char *const argv[] = { "sh", "-c", "cat; printf %s \"$X\"; pwd", NULL };
	const char *const env[] = { "X=a=b c", NULL };
	const struct sba_run_options o = { .argv = argv,
					   .env = env,
					   .workdir = sba_sandbox_workdir(s),
					   .input = "in\n",
					   .input_len = 3 };
	char want[512];
	struct sba_run_result r = run(s, &o);
	snprintf(want, sizeof(want), "in\na=b c%s\n", sba_sandbox_workdir(s));
	assert_string_equal(r.out, want);
	sba_run_result_fini(&r);
}

static void more_input_than_a_pipe_holds_comes_back_whole(void **state)
{
	enum { SIZE = 3 << 20 };
	char *data = malloc(SIZE);
	const char *const argv[] = { "cat", NULL };
	memset(data, 'x', SIZE);
	const struct sba_run_options o = { .argv = argv, .input = data, .input_len = SIZE };
	struct sba_run_result r = run(box_of(state), &o);
	assert_int_equal(r.out_len, SIZE);
	assert_memory_equal(r.out, data, SIZE);
	sba_run_result_fini(&r);
	free(data);
}

static void output_beyond_its_limit_is_counted_and_dropped(void **state)
{
	const char *const argv[] = { "sh", "-c", "head -c 100000 /dev/zero | tr '\\0' x", NULL };
	const struct sba_run_options o = { .argv = argv, .max_output = 1000 };
	struct sba_run_result r = run(box_of(state), &o);
	assert_int_equal(r.out_len, 1000);
	assert_int_equal(r.dropped, 99000);
	assert_int_equal(r.exit.number, 0);
	sba_run_result_fini(&r);
}

static void a_program_that_is_not_there_is_said_to_be(void **state)
{
	const char *const argv[] = { "no-such-program", NULL };
	struct sba_run_result r = run(box_of(state), &(struct sba_run_options){ .argv = argv });
	assert_int_equal(r.exit.kind, SBA_NOT_FOUND);
	sba_run_result_fini(&r);
}

/* Whether any process of this machine has the text in its command line. */
static bool is_running(const char *text)
{
	struct sba_run_result r = { 0 };
	char script[256];
	snprintf(script, sizeof(script),
		 "for f in /proc/[0-9]*/cmdline; do tr '\\0' ' ' < $f 2>/dev/null; echo; done | "
		 "grep -c '^sleep %s'",
		 text);
	const char *const argv[] = { "sh", "-c", script, NULL };
	struct sba_sandbox *s = NULL;
	assert_int_equal(sba_sandbox_adopt(&own_sandbox, folder, "look", &s, NULL), 0);
	r = run(s, &(struct sba_run_options){ .argv = argv });
	bool found = r.exit.number == 0;
	sba_run_result_fini(&r);
	sba_sandbox_close(s);
	return found;
}

static bool is_gone(void *text)
{
	return !is_running(text);
}

static void a_deadline_ends_the_tree_and_keeps_what_was_printed(void **state)
{
	const char *const argv[] = { "sh", "-c", "echo begun; sleep 7171 & sleep 7171", NULL };
	const struct sba_run_options o = { .argv = argv, .timeout_ms = 1000 };
	struct sba_run_result r = run(box_of(state), &o);
	assert_int_equal(r.exit.kind, SBA_TIMED_OUT);
	assert_string_equal(r.out, "begun\n");
	sba_run_result_fini(&r);
	live_await(is_gone, (void *)(uintptr_t) "7171", 20000);
}

static void a_command_that_is_given_up_is_ended(void **state)
{
	const char *const argv[] = { "sh", "-c", "echo begun; sleep 7272 & exec sleep 7272", NULL };
	const struct sba_exec_options o = { .argv = argv };
	struct sba_process *p = NULL;
	struct sba_error err = { 0 };
	enum sba_output which;
	const char *data;
	assert_int_equal(sba_sandbox_exec(box_of(state), &o, &p, &err), 0);
	assert_true(sba_process_read(p, -1, &which, &data, &err) > 0);
	assert_int_equal(sba_process_read(p, 0, &which, &data, &err), SBA_ETIMEOUT);
	sba_process_free(p);
	live_await(is_gone, (void *)(uintptr_t) "7272", 20000);
}

static void cancelling_and_signals_end_it_as_they_should(void **state)
{
	const char *const argv[] = { "sh", "-c", "echo begun; exec sleep 7373", NULL };
	const struct sba_exec_options o = { .argv = argv };
	enum sba_output which;
	const char *data;
	for (int i = 0; i < 2; i++) {
		struct sba_process *p = NULL;
		struct sba_exit how = { 0 };
		assert_int_equal(sba_sandbox_exec(box_of(state), &o, &p, NULL), 0);
		assert_true(sba_process_read(p, -1, &which, &data, NULL) > 0);
		if (i == 0)
			sba_process_cancel(p);
		else
			assert_int_equal(sba_process_signal(p, SIGINT, NULL), 0);
		assert_int_equal(sba_process_wait(p, -1, &how, NULL), 0);
		assert_int_equal(how.kind, i == 0 ? SBA_WAS_CANCELED : SBA_SIGNALED);
		sba_process_free(p);
	}
}

static void a_terminal_is_one_where_it_can(void **state)
{
	struct sba_sandbox *s = box_of(state);
	const char *const argv[] = { "sh", "-c", "test -t 0 && test -t 1 && stty size && pwd",
				     NULL };
	const struct sba_exec_options o = { .argv = argv,
					    .workdir = sba_sandbox_workdir(s),
					    .tty = true,
					    .rows = 7,
					    .columns = 99 };
	LIVE_RESULT r = { 0 };
	char want[600];
	live_exec(s, &o, &r);
	if (!sba_sandbox_can(s, SBA_CAN_TTY)) {
		assert_int_equal(r.rc, SBA_EUNSUPPORTED);
		assert_non_null(strstr(r.err.text, "'tty'"));
		return;
	}
	live_assert_exit(&r, 0);
	snprintf(want, sizeof(want), "7 99\r\n%s\r\n", sba_sandbox_workdir(s));
	assert_string_equal(r.out.data, want);
}

static int listen_here(uint16_t *ret_port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, len), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	*ret_port = ntohs(a.sin_port);
	return fd;
}

static void a_port_of_this_host_is_reached_where_it_can(void **state)
{
	struct sba_sandbox *s = box_of(state);
	struct sba_error err = { 0 };
	struct sba_run_result r;
	char url[128], script[256], got[16] = "";
	uint16_t port;
	SBA_CLOSE int fd = listen_here(&port);
	int rc = sba_sandbox_host_url(s, port, url, sizeof(url), &err);
	if (!sba_sandbox_can(s, SBA_CAN_HOST_URL)) {
		assert_int_equal(rc, SBA_EUNSUPPORTED);
		assert_non_null(strstr(err.text, "'host_url'"));
		return;
	}
	if (rc < 0)
		fail_msg("%s", err.text);
	snprintf(script, sizeof(script), "exec 3<>/dev/tcp/127.0.0.1/%s; echo hello >&3",
		 strrchr(url, ':') + 1);
	const char *const argv[] = { "bash", "-c", script, NULL };
	r = run(s, &(struct sba_run_options){ .argv = argv });
	assert_int_equal(sba_exit_status(&r.exit), 0);
	sba_run_result_fini(&r);
	SBA_CLOSE int connection = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
	assert_true(connection >= 0);
	assert_int_equal(read(connection, got, sizeof(got)), 6);
	assert_string_equal(got, "hello\n");
}

/* ---- files ---- */

static ssize_t give(void *user, void *buf, size_t size, struct sba_error *err)
{
	const char **text = user;
	size_t n = strlen(*text) < size ? strlen(*text) : size;
	(void)err;
	memcpy(buf, *text, n);
	*text += n;
	return (ssize_t)n;
}

static int take(void *user, const void *data, size_t len, struct sba_error *err)
{
	sba_buf_put(user, data, len);
	return sba_buf_check(user, "file", err);
}

static void a_file_is_written_with_its_parents_and_read_back(void **state)
{
	struct sba_sandbox *s = box_of(state);
	SBA_BUF struct sba_buf text = SBA_BUF_INIT(1000);
	struct sba_error err = { 0 };
	struct sba_file_stat st;
	const char *content = "one\ntwo\n";
	const struct sba_write_options o = { .set_mode = true, .mode = 0600 };
	const char *path = at(s, "deep/er/it's");
	assert_int_equal(sba_sandbox_write(s, path, give, &content, &o, &err), 0);
	assert_int_equal(sba_sandbox_read(s, path, 0, take, &text, &err), 0);
	assert_string_equal(text.data, "one\ntwo\n");
	assert_int_equal(sba_sandbox_stat(s, path, &st, &err), 0);
	assert_int_equal(st.mode, S_IFREG | 0600);
	assert_int_equal(st.size, 8);
}

static void what_is_not_there_or_no_file_is_told_apart(void **state)
{
	struct sba_sandbox *s = box_of(state);
	SBA_BUF struct sba_buf text = SBA_BUF_INIT(1000);
	struct sba_error err = { 0 };
	assert_int_equal(sba_sandbox_read(s, at(s, "none"), 0, take, &text, &err), SBA_ENOTFOUND);
	assert_int_equal(sba_sandbox_read(s, sba_sandbox_workdir(s), 0, take, &text, &err),
			 SBA_EREFUSED);
}

static void a_tree_goes_in_and_comes_out(void **state)
{
	struct sba_sandbox *s = box_of(state);
	struct sba_error err = { 0 };
	char from[128], to[128];
	struct sba_transfer_report report = { 0 };
	snprintf(from, sizeof(from), "%s/tree-in", live.dir);
	snprintf(to, sizeof(to), "%s/tree-out", live.dir);
	const char *const make[] = {
		"sh", "-c", "rm -rf \"$1\" \"$2\"; mkdir -p \"$1/a/b\"; echo x > \"$1/a/b/c\"",
		"sh", from, to,
		NULL
	};
	struct sba_sandbox *here = open_own();
	struct sba_run_result r = run(here, &(struct sba_run_options){ .argv = make });
	sba_run_result_fini(&r);
	sba_sandbox_close(here);
	if (sba_sandbox_upload(s, from, at(s, "tree"), NULL, &report, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(report.files, 1);
	r = RUN_SH(s, "cat tree/a/b/c && echo y > tree/d");
	assert_string_equal(r.out, "x\n");
	sba_run_result_fini(&r);
	if (sba_sandbox_download(s, at(s, "tree"), to, NULL, &report, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(report.files, 2);
}

static void assert_snapshot(struct sba_sandbox *s, const char *sha256_of_a)
{
	const struct sba_snapshot_options o = { .folder = at(s, "snap") };
	struct sba_snapshot *n = NULL;
	struct sba_error err = { 0 };
	if (sba_sandbox_snapshot(s, &o, &n, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(sba_snapshot_count(n), 2);
	assert_string_equal(sba_snapshot_at(n, 0)->path, "a");
	assert_string_equal(sba_snapshot_at(n, 0)->sha256, sha256_of_a);
	assert_int_equal(sba_snapshot_at(n, 0)->mode, S_IFREG | 0600);
	assert_string_equal(sba_snapshot_at(n, 1)->link, "a");
	sba_snapshot_free(n);
}

static void a_snapshot_tells_each_file_as_it_is_now(void **state)
{
	static const char *const hashes[] = {
		"98ea6e4f216f2fb4b69fff9b3a44842c38686ca685f3f55dc48c5d3fb1107be4",
		"dc51b8c96c2d745df3bd5590d990230a482fd247123599548e0632fdbf97fc22",
	};
	struct sba_sandbox *s = box_of(state);
	struct sba_run_result r = RUN_SH(s, "mkdir -p snap/.git && cd snap && echo x > .git/x && "
					    "echo hi > a && chmod 600 a && ln -s a b");
	assert_int_equal(r.exit.number, 0);
	sba_run_result_fini(&r);
	assert_snapshot(s, hashes[0]);
	assert_snapshot(s, hashes[0]);
	r = RUN_SH(s, "echo ok > snap/a");
	sba_run_result_fini(&r);
	assert_snapshot(s, hashes[1]);
}

static void programs_and_temporary_folders_are_found(void **state)
{
	struct sba_sandbox *s = box_of(state);
	SBA_FREE char *sh = NULL, *none = NULL, *dir = NULL;
	struct sba_file_stat st;
	struct sba_error err = { 0 };
	assert_int_equal(sba_sandbox_which(s, "sh", &sh, &err), 0);
	assert_true(sba_ends_with(sh, "/sh"));
	assert_int_equal(sba_sandbox_which(s, "no-such-program", &none, &err), SBA_ENOTFOUND);
	assert_int_equal(sba_sandbox_tempdir(s, &dir, &err), 0);
	assert_int_equal(sba_sandbox_stat(s, dir, &st, &err), 0);
	assert_int_equal(st.mode, S_IFDIR | 0700);
	/* Some of them are this host. */
	struct sba_run_result r = { 0 };
	const char *const remove[] = { "rmdir", dir, NULL };
	const struct sba_run_options o = { .argv = remove };
	assert_int_equal(sba_sandbox_run(s, &o, &r, &err), 0);
	assert_int_equal(sba_exit_status(&r.exit), 0);
	sba_run_result_fini(&r);
}

/* ---- code ---- */

static struct sba_code_run run_code(struct sba_sandbox *s, const struct sba_code_options *o)
{
	struct sba_code_run r = { 0 };
	struct sba_error err = { 0 };
	if (sba_sandbox_run_code(s, o, &r, &err) < 0)
		fail_msg("%s", err.text);
	return r;
}

static void code_runs_and_tells_what_came_of_it(void **state)
{
	struct sba_sandbox *s = box_of(state);
	struct sba_code_run r = run_code(
		s, &(struct sba_code_options){ .language = "bash",
					       .code = "echo out; cat; echo err >&2; exit 3" });
	assert_string_equal(r.out, "out\n");
	assert_string_equal(r.err, "err\n");
	assert_int_equal(r.exit.kind, SBA_EXITED);
	assert_int_not_equal(r.exit.number, 0);
	sba_code_run_fini(&r);
	r = run_code(s, &(struct sba_code_options){ .language = "bash",
						    .code = "printf '%s' {1..100}",
						    .max_output = 10 });
	assert_string_equal(r.out, "1234567891");
	assert_int_equal(r.dropped, 192 - 10);
	assert_int_equal(r.exit.number, 0);
	sba_code_run_fini(&r);
}

static void code_is_ended_at_its_deadline(void **state)
{
	struct sba_code_run r = run_code(
		box_of(state), &(struct sba_code_options){ .language = "bash",
							   .code = "echo begun; exec sleep 7575",
							   .timeout_ms = 3000 });
	assert_int_equal(r.exit.kind, SBA_TIMED_OUT);
	assert_string_equal(r.out, "begun\n");
	sba_code_run_fini(&r);
	live_await(is_gone, (void *)(uintptr_t) "7575", 20000);
}

static void code_keeps_its_state_where_it_can(void **state)
{
	struct sba_sandbox *s = box_of(state);
	struct sba_error err = { 0 };
	SBA_FREE char *context = NULL;
	int rc = sba_code_context_new(s, "python", &context, &err);
	if (!sba_sandbox_can(s, SBA_CAN_CODE_STATE)) {
		assert_int_equal(rc, SBA_EUNSUPPORTED);
		assert_non_null(strstr(err.text, "'code_state'"));
		return;
	}
	assert_int_equal(rc, 0);
	struct sba_code_run r =
		run_code(s, &(struct sba_code_options){ .code = "x = 41", .context = context });
	sba_code_run_fini(&r);
	r = run_code(s, &(struct sba_code_options){ .code = "x + 1", .context = context });
	assert_int_equal(r.n_values, 1);
	assert_string_equal(r.values[0].forms[0].type, "text/plain");
	assert_string_equal(r.values[0].forms[0].data, "42");
	sba_code_run_fini(&r);
	assert_int_equal(sba_code_context_end(s, context, &err), 0);
}

static void a_missing_interpreter_or_language_is_named(void **state)
{
	struct sba_sandbox *s = box_of(state);
	struct sba_code_run r = { 0 };
	struct sba_error err = { 0 };
	SBA_FREE char *node = NULL;
	const struct sba_code_options cobol = { .code = "1", .language = "cobol" };
	const struct sba_code_options script = { .code = "1", .language = "javascript" };
	assert_int_equal(sba_sandbox_run_code(s, &cobol, &r, &err), SBA_EINVAL);
	/* A service's interpreter is not among the programs inside. */
	if (sba_sandbox_can(s, SBA_CAN_CODE_STATE) ||
	    sba_sandbox_which(s, "node", &node, NULL) == 0)
		return;
	assert_int_equal(sba_sandbox_run_code(s, &script, &r, &err), SBA_ENOCLI);
	assert_non_null(strstr(err.text, "'node'"));
	assert_non_null(strstr(err.text, *sba_sandbox_info(s)->image ? sba_sandbox_info(s)->image
								     : sba_sandbox_info(s)->name));
}

/* ---- agents ---- */

/* In a folder that is there later it changes things. */
static const char agent_program[] =
	"if cd told 2>/dev/null; then echo hello >>a; rm b; ln -s a link; chmod 755 c; fi; "
	"exec sed s/l/L/g";

static void an_agent_lives_in_it_and_leaves_it_alive(void **state)
{
	struct sba_sandbox *s = box_of(state);
	struct sba_error err = { 0 };
	struct sba_agent *a = NULL;
	const char *const program[] = { "sh", "-c", agent_program, NULL };
	const struct sba_sandbox_options lodger = { .agent = "command", .program = program };
	const struct sba_turn_options turn = { .prompt = "hello" };
	if (sba_agent_move_in(s, &lodger, &err) < 0 || sba_agent_open(s, NULL, &a, &err) < 0)
		fail_msg("%s", err.text);
	for (int i = 0; i < 2; i++) {
		struct sba_turn_result result;
		struct sba_turn *t = NULL;
		if (sba_turn_begin(a, &turn, &t, &err) < 0)
			fail_msg("%s", err.text);
		sba_turn_result(t, &result);
		assert_int_equal(result.verdict, SBA_VERDICT_OK);
		assert_string_equal(result.text, "heLLo");
		sba_turn_free(t);
	}
	sba_agent_close(a);
	struct sba_run_result r = RUN_SH(s, "echo alive");
	assert_string_equal(r.out, "alive\n");
	sba_run_result_fini(&r);
}

static void a_missing_cli_is_named_with_its_place_and_remedy(void **state)
{
	struct sba_sandbox *s = box_of(state);
	struct sba_error err = { 0 };
	const struct sba_sandbox_options lodger = { .agent = "pi" };
	assert_int_equal(sba_agent_move_in(s, &lodger, &err), SBA_ENOCLI);
	assert_non_null(strstr(err.text, "'pi'"));
	assert_non_null(strstr(err.text, *sba_sandbox_info(s)->image ? sba_sandbox_info(s)->image
								     : sba_sandbox_info(s)->name));
	assert_non_null(strstr(err.hint, "image build pi"));
}

/* Each as "CHANGE PATH\n"; the diff of told/a. */
static void read_changes(struct sba_turn *t, struct sba_buf *ret, struct sba_buf *ret_diff)
{
	const struct sba_event *event;
	struct sba_error err = { 0 };
	int rc;
	while ((rc = sba_turn_next(t, -1, &event, &err)) > 0) {
		if (event->kind != SBA_EVENT_FILE_CHANGE || !strstr(event->path, "/told/"))
			continue;
		sba_buf_printf(ret, "%s %s\n", event->change, strstr(event->path, "told/"));
		if (event->diff && strcmp(strrchr(event->path, '/'), "/a") == 0)
			sba_buf_puts(ret_diff, event->diff);
	}
	assert_int_equal(rc, 0);
}

static void what_a_turn_changes_is_told_with_its_diff(void **state)
{
	struct sba_sandbox *s = box_of(state);
	const struct sba_turn_options turn = { .prompt = "x" };
	SBA_BUF struct sba_buf told = SBA_BUF_INIT(65536), diff = SBA_BUF_INIT(65536);
	struct sba_agent *a = NULL;
	struct sba_turn *t = NULL;
	struct sba_changes *c = NULL;
	struct sba_error err = { 0 };
	struct sba_run_result r =
		RUN_SH(s, "mkdir told && cd told && echo one >a && echo two >b && echo 3 >c");
	assert_int_equal(r.exit.number, 0);
	sba_run_result_fini(&r);
	if (sba_agent_open(s, NULL, &a, &err) < 0 || sba_turn_begin(a, &turn, &t, &err) < 0)
		fail_msg("%s", err.text);
	read_changes(t, &told, &diff);
	sba_turn_free(t);
	sba_agent_close(a);
	assert_string_equal(told.data, "modified told/a\ndeleted told/b\nmode told/c\n"
				       "created told/link\n");
	assert_non_null(strstr(diff.data, "@@ -1 +1,2 @@\n one\n+hello\n"));
	/* Since the first turn, before which there was none of it. */
	if (sba_sandbox_changes(s, NULL, &c, &err) < 0)
		fail_msg("%s", err.text);
	size_t n = 0;
	for (size_t i = 0; i < sba_changes_count(c); i++) {
		const struct sba_change *one = sba_changes_at(c, i);
		n += strncmp(one->path, "told/", 5) == 0 && one->kind == SBA_CHANGE_CREATED;
	}
	sba_changes_free(c);
	assert_int_equal(n, 3);
}

/* ---- the end ---- */

static void what_it_cannot_do_is_refused_by_the_capabilitys_name(void **state)
{
	struct sba_sandbox *s = box_of(state);
	const char *const argv[] = { "true", NULL };
	const struct sba_exec_options o = { .argv = argv, .detach = true };
	struct sba_sandbox_limits limits;
	struct sba_process *p = NULL;
	struct sba_error err = { 0 };
	if (!sba_sandbox_can(s, SBA_CAN_DETACH)) {
		assert_int_equal(sba_sandbox_exec(s, &o, &p, &err), SBA_EUNSUPPORTED);
		assert_non_null(strstr(err.text, "'detach'"));
	}
	if (!sba_sandbox_can(s, SBA_CAN_INSPECT)) {
		assert_int_equal(sba_sandbox_limits(s, &limits, &err), SBA_EUNSUPPORTED);
		assert_non_null(strstr(err.text, "'inspect'"));
	}
}

static void closing_ends_what_runs_and_may_be_done_twice(void **state)
{
	struct sba_sandbox *s = box_of(state);
	const char *const argv[] = { "sh", "-c", "echo begun; exec sleep 7474", NULL };
	const struct sba_exec_options o = { .argv = argv };
	struct sba_process *p = NULL;
	struct sba_run_result r = { 0 };
	struct sba_error err = { 0 };
	enum sba_output which;
	const char *data;
	assert_int_equal(sba_sandbox_exec(s, &o, &p, &err), 0);
	assert_true(sba_process_read(p, -1, &which, &data, &err) > 0);
	assert_int_equal(sba_sandbox_remove(s, &err), 0);
	assert_int_equal(sba_sandbox_remove(s, &err), 0);
	sba_process_free(p);
	live_await(is_gone, (void *)(uintptr_t) "7474", 20000);
	assert_int_equal(sba_sandbox_run(s, &(struct sba_run_options){ .argv = argv }, &r, &err),
			 SBA_EBROKEN);
}

#define CASES                                                                                      \
	LIVE_STEP(output_and_status_are_its_own),                                                  \
		LIVE_STEP(input_and_environment_arrive_and_it_begins_in_the_workdir),              \
		LIVE_STEP(more_input_than_a_pipe_holds_comes_back_whole),                          \
		LIVE_STEP(output_beyond_its_limit_is_counted_and_dropped),                         \
		LIVE_STEP(a_program_that_is_not_there_is_said_to_be),                              \
		LIVE_STEP(a_deadline_ends_the_tree_and_keeps_what_was_printed),                    \
		LIVE_STEP(a_command_that_is_given_up_is_ended),                                    \
		LIVE_STEP(cancelling_and_signals_end_it_as_they_should),                           \
		LIVE_STEP(a_terminal_is_one_where_it_can),                                         \
		LIVE_STEP(a_port_of_this_host_is_reached_where_it_can),                            \
		LIVE_STEP(a_file_is_written_with_its_parents_and_read_back),                       \
		LIVE_STEP(what_is_not_there_or_no_file_is_told_apart),                             \
		LIVE_STEP(a_tree_goes_in_and_comes_out),                                           \
		LIVE_STEP(a_snapshot_tells_each_file_as_it_is_now),                                \
		LIVE_STEP(programs_and_temporary_folders_are_found),                               \
		LIVE_STEP(code_runs_and_tells_what_came_of_it),                                    \
		LIVE_STEP(code_is_ended_at_its_deadline),                                          \
		LIVE_STEP(code_keeps_its_state_where_it_can),                                      \
		LIVE_STEP(a_missing_interpreter_or_language_is_named),                             \
		LIVE_STEP(a_missing_cli_is_named_with_its_place_and_remedy),                       \
		LIVE_STEP(an_agent_lives_in_it_and_leaves_it_alive),                               \
		LIVE_STEP(what_a_turn_changes_is_told_with_its_diff),                              \
		LIVE_STEP(what_it_cannot_do_is_refused_by_the_capabilitys_name),                   \
		LIVE_STEP(closing_ends_what_runs_and_may_be_done_twice)

static struct backend docker = { "docker", open_docker, NULL };
static struct backend local = { "local", open_local, NULL };
static struct backend opensandbox = { "opensandbox", open_opensandbox, NULL };
static struct backend e2b = { "e2b", open_e2b, NULL };
static struct backend own = { "own", open_own, NULL };

static int begin_docker(void **state)
{
	return live_begin(state) ? -1 : begin(state, &docker);
}

static int begin_local(void **state)
{
	return begin(state, &local);
}

/* Its home is nobody else's. */
static int begin_service(void **state, struct backend *b)
{
	char home[96];
	snprintf(home, sizeof(home), "%s/home-%s", live.dir, b->name);
	(void)mkdir(home, 0700);
	fake_remote_start(&fake, home);
	return begin(state, b);
}

static int begin_opensandbox(void **state)
{
	return begin_service(state, &opensandbox);
}

static int begin_e2b(void **state)
{
	return begin_service(state, &e2b);
}

static int end_service(void **state)
{
	(void)end(state);
	sba_remote_close(service);
	bool left = fake_remote_count(&fake) > 0;
	fake_remote_stop(&fake);
	return left ? -1 : 0;
}

static int begin_own(void **state)
{
	return begin(state, &own);
}

static int end_all(void **state)
{
	(void)end(state);
	return live_end(state);
}

int main(void)
{
	const struct CMUnitTest cases[] = { CASES };
	int failed = live_run(cases, begin_docker, end);
	failed += live_run(cases, begin_local, end);
	failed += live_run(cases, begin_opensandbox, end_service);
	failed += live_run(cases, begin_e2b, end_service);
	return failed + live_run(cases, begin_own, end_all);
}
