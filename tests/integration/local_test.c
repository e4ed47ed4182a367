/* SPDX-License-Identifier: MIT */
/* What keeps a local sandbox: its environment, its folder, its end with its program. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/live.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct sba_sandbox *open_box(struct sba_local_options o)
{
	struct sba_sandbox *s = NULL;
	struct sba_error err = { 0 };
	(void)mkdir(live_path("box"), 0700);
	if (sba_local_open(live_path("box"), &o, &s, &err) < 0)
		fail_msg("%s", err.text);
	return s;
}

static char *said(struct sba_sandbox *s, const char *text)
{
	const char *const argv[] = { "sh", "-c", text, NULL };
	const struct sba_run_options o = { .argv = argv };
	struct sba_run_result r = { 0 };
	struct sba_error err = { 0 };
	if (sba_sandbox_run(s, &o, &r, &err) < 0)
		fail_msg("%s", err.text);
	char *out = r.out;
	r.out = NULL;
	sba_run_result_fini(&r);
	return out;
}

static const char *const environment[] = { "PATH=/usr/bin:/bin",
					   "ANTHROPIC_API_KEY=k",
					   "GOOGLE_API_KEY=k",
					   "AWS_REGION=r",
					   "MY_TOKEN=abcdefgh",
					   "DATABASE_URL=pg://u:p@h/d",
					   "EDITOR=vi",
					   "SSH_AUTH_SOCK=/s",
					   "TOKENIZERS_PARALLELISM=false",
					   "PLAIN=ghp_0123456789",
					   NULL };

static void what_looks_like_a_secret_is_left_out_unless_it_is_kept(void **state)
{
	(void)state;
	static const char show[] = "env | cut -d= -f1 | grep -vE '^(_|SHLVL|OLDPWD)$' | sort | "
				   "tr '\n' ' '";
	struct sba_sandbox *s = open_box((struct sba_local_options){ .environment = environment });
	SBA_FREE char *hidden = said(s, show);
	assert_string_equal(hidden, "EDITOR HOME PATH PWD TMPDIR TOKENIZERS_PARALLELISM ");
	sba_sandbox_close(s);
	static const char *const given[] = { "SSH_AUTH_SOCK=/mine", NULL };
	s = open_box((struct sba_local_options){
		.environment = environment, .keep_env = true, .env = given });
	SBA_FREE char *kept = said(s, show);
	assert_string_equal(kept, "DATABASE_URL EDITOR HOME MY_TOKEN PATH PLAIN PWD SSH_AUTH_SOCK "
				  "TMPDIR TOKENIZERS_PARALLELISM ");
	sba_sandbox_close(s);
}

static void it_writes_in_its_folder_and_its_temporary_one_alone(void **state)
{
	(void)state;
	char text[512];
	snprintf(
		text, sizeof(text),
		"echo 1 > in; echo 2 > \"$TMPDIR/t\"; echo 3 > /dev/null; mkdir -p a/b; mv in a/b/;"
		"(echo 4 > %s) 2>/dev/null; ln -s %s link; (echo 5 > link/x) 2>/dev/null; "
		"rm -rf %s 2>/dev/null; cat a/b/in \"$TMPDIR/t\"",
		live_path("outside"), live.dir, live_path("victim"));
	assert_int_equal(mkdir(live_path("victim"), 0700), 0);
	bool confined = sba_local_landlock() > 0;
	struct sba_sandbox *s = open_box((struct sba_local_options){ 0 });
	SBA_FREE char *out = said(s, text);
	assert_string_equal(out, "1\n2\n");
	assert_int_equal(access(live_path("outside"), F_OK) < 0, confined);
	assert_int_equal(access(live_path("x"), F_OK) < 0, confined);
	assert_int_equal(access(live_path("victim"), F_OK) == 0, confined);
	sba_sandbox_close(s);
	s = open_box((struct sba_local_options){ .no_landlock = true });
	SBA_FREE char *free_out = said(s, text);
	assert_int_equal(access(live_path("outside"), F_OK), 0);
	sba_sandbox_close(s);
}

static int take(void *user, const void *data, size_t len, struct sba_error *err)
{
	(void)user;
	(void)data;
	(void)len;
	(void)err;
	return 0;
}

static ssize_t nothing(void *user, void *buf, size_t size, struct sba_error *err)
{
	(void)user;
	(void)buf;
	(void)size;
	(void)err;
	return 0;
}

static void paths_that_lead_out_are_refused_links_included(void **state)
{
	(void)state;
	struct sba_sandbox *s = open_box((struct sba_local_options){ 0 });
	SBA_FREE char *made =
		said(s, "ln -s /etc out; ln -s /etc/passwd file; ln -s /nowhere gone");
	static const char *const outs[] = { "out/passwd", "file", "gone", "../victim",
					    "out/../out/passwd" };
	struct sba_error err = { 0 };
	for (size_t i = 0; i < SBA_ARRAY_LEN(outs); i++) {
		char path[256];
		snprintf(path, sizeof(path), "%s/%s", sba_sandbox_workdir(s), outs[i]);
		assert_int_equal(sba_sandbox_read(s, path, 0, take, NULL, &err), SBA_EREFUSED);
		assert_int_equal(sba_sandbox_write(s, path, nothing, NULL, NULL, &err),
				 SBA_EREFUSED);
		assert_int_equal(sba_sandbox_download(s, path, live_path("got"), NULL, NULL, &err),
				 SBA_EREFUSED);
		assert_int_equal(sba_sandbox_upload(s, "/etc/hostname", path, NULL, NULL, &err),
				 SBA_EREFUSED);
	}
	assert_int_equal(sba_sandbox_read(s, "/etc/passwd", 0, take, NULL, &err), SBA_EREFUSED);
	assert_non_null(strstr(err.hint, sba_sandbox_workdir(s)));
	sba_sandbox_close(s);
}

/* ---- large files ---- */

enum { MARK_AT = 50 * 1024 * 1024 };

struct reading {
	uint64_t len;
	uint64_t others; /* than zeros */
	bool mark;
};

static int look_at(void *user, const void *data, size_t len, struct sba_error *err)
{
	struct reading *r = user;
	(void)err;
	if (!sba_is_zero(data, len)) {
		for (size_t i = 0; i < len; i++) {
			char c = ((const char *)data)[i];
			r->others += c != 0;
			r->mark |= c == 'm' && r->len + i == MARK_AT;
		}
	}
	r->len += len;
	return 0;
}

static void large_files_are_read_exactly_with_holes_and_without(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		uint64_t len, others;
	} files[] = {
		{ "sparse", 209715200, 1 },
		{ "alias", 209715200, 1 },
		{ "dense", 70 * 1024 * 1024, 70 * 1024 * 1024 },
	};
	struct sba_sandbox *s = open_box((struct sba_local_options){ 0 });
	SBA_FREE char *made =
		said(s, "truncate -s 200M sparse; ln -s sparse alias; "
			"printf m | dd of=sparse bs=1M seek=50 conv=notrunc 2>/dev/null; "
			"head -c 70M /dev/zero | tr '\\0' m > dense");
	for (size_t i = 0; i < SBA_ARRAY_LEN(files); i++) {
		char path[256];
		struct sba_error err = { 0 };
		struct reading r = { 0 };
		snprintf(path, sizeof(path), "%s/%s", sba_sandbox_workdir(s), files[i].name);
		if (sba_sandbox_read(s, path, 0, look_at, &r, &err) < 0)
			fail_msg("%s: %s", files[i].name, err.text);
		assert_int_equal(r.len, files[i].len);
		assert_int_equal(r.others, files[i].others);
		assert_true(r.mark);
	}
	sba_sandbox_close(s);
}

static bool is_gone(void *pid)
{
	return kill(*(pid_t *)pid, 0) < 0;
}

/* Says the pid of a daemon that it has started, and stays. */
_Noreturn static void be_the_client(int out)
{
	struct sba_sandbox *s = open_box((struct sba_local_options){ .environment = environment });
	const char *const argv[] = { "sh", "-c",
				     "setsid sleep 6161 > /dev/null 2>&1 & echo $!; sleep 6161",
				     NULL };
	const struct sba_exec_options o = { .argv = argv };
	struct sba_process *p = NULL;
	enum sba_output which;
	const char *data;
	if (sba_sandbox_exec(s, &o, &p, NULL) < 0)
		_exit(1);
	ssize_t n = sba_process_read(p, -1, &which, &data, NULL);
	(void)!write(out, data, n > 0 ? (size_t)n : 0);
	pause();
	_exit(0);
}

/* ---- snapshots ---- */

struct looking {
	struct sba_sandbox *box;
	int watch;
	char hash[65]; /* of "a" */
};

/* How many files were opened since it was last asked. */
static int opened(const struct looking *l)
{
	char events[16384] __attribute__((aligned(__alignof__(struct inotify_event))));
	ssize_t len;
	int n = 0;
	while ((len = read(l->watch, events, sizeof(events))) > 0) {
		for (char *at = events; at < events + len;) {
			const struct inotify_event *e = (const struct inotify_event *)at;
			n += !(e->mask & IN_ISDIR);
			at += sizeof(*e) + e->len;
		}
	}
	return n;
}

/* How many files a snapshot has opened. */
static int look(struct looking *l)
{
	struct sba_snapshot *n = NULL;
	struct sba_error err = { 0 };
	(void)opened(l);
	if (sba_sandbox_snapshot(l->box,
				 &(struct sba_snapshot_options){ .folder = live_path("box/many") },
				 &n, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(sba_snapshot_count(n), 101);
	assert_string_equal(sba_snapshot_at(n, 100)->path, "a");
	snprintf(l->hash, sizeof(l->hash), "%s", sba_snapshot_at(n, 100)->sha256);
	sba_snapshot_free(n);
	return opened(l);
}

/* What has just changed is not trusted. */
static bool has_settled(void *looking)
{
	return look(looking) == 0;
}

static void a_second_snapshot_reads_only_what_has_changed(void **state)
{
	struct looking l = { .box = open_box((struct sba_local_options){ 0 }) };
	char expected[65];
	(void)state;
	SBA_FREE char *made = said(l.box, "mkdir many && cd many && for i in $(seq 100 199); do "
					  "echo $i >$i; done; echo 1 >a");
	l.watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	assert_true(inotify_add_watch(l.watch, live_path("box/many"), IN_OPEN) >= 0);
	assert_int_equal(look(&l), 101);
	live_await(has_settled, &l, 60 * 1000);
	SBA_FREE char *changed = said(l.box, "echo 2 >many/a");
	assert_int_equal(look(&l), 1);
	assert_int_equal(sba_sha256_hex("2\n", 2, expected), 0);
	assert_string_equal(l.hash, expected);
	/* What it was told by a handle goes with that. */
	sba_sandbox_close(l.box);
	l.box = open_box((struct sba_local_options){ 0 });
	assert_int_equal(look(&l), 101);
	sba_sandbox_close(l.box);
	close(l.watch);
}

static void all_of_it_ends_with_a_client_that_is_killed(void **state)
{
	(void)state;
	int ends[2];
	char text[32] = "";
	int64_t number;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pid_t client = fork();
	if (client == 0)
		be_the_client(ends[1]);
	assert_true(read(ends[0], text, sizeof(text) - 1) > 0);
	text[strcspn(text, "\n")] = '\0';
	assert_int_equal(sba_parse_int(text, 1, INT32_MAX, &number), 0);
	pid_t daemon = (pid_t)number;
	assert_int_equal(kill(daemon, 0), 0);
	kill(client, SIGKILL);
	assert_int_equal(waitpid(client, NULL, 0), client);
	live_await(is_gone, &daemon, 30000);
	close(ends[0]);
	close(ends[1]);
}

static void its_private_folder_goes_with_it_and_what_the_dead_left_too(void **state)
{
	(void)state;
	struct sba_sandbox *s = open_box((struct sba_local_options){ 0 });
	SBA_FREE char *home = said(s, "echo \"$HOME\"");
	home[strcspn(home, "\n")] = '\0';
	assert_int_equal(access(home, F_OK), 0);
	sba_sandbox_close(s);
	assert_true(access(home, F_OK) < 0);
	/* As a killed program leaves it. */
	const char *dead = "/tmp/sandbox-agent-local-00000000deadbeef";
	(void)mkdir(dead, 0700);
	s = open_box((struct sba_local_options){ 0 });
	assert_true(access(dead, F_OK) < 0);
	sba_sandbox_close(s);
}

static void run_works_in_the_folder_itself(void **state)
{
	LIVE_CHILD c, refused, missing;
	(void)state;
	(void)mkdir(live_path("work"), 0700);
	RUN(&c, "run", "command", "--backend", "local", "-w", live_path("work"), "hello", "--",
	    "sh", "-c", "cat > said; pwd");
	live_assert_says(&c, 0, NULL);
	assert_non_null(strstr(c.out.data, live_path("work")));
	SBA_FREE char *text = live_read_file(live_path("work/said"), NULL);
	assert_string_equal(text, "hello");
	RUN(&refused, "run", "command", "--backend", "local", "-w", live_path("work"), "--memory",
	    "1g", "hello", "--", "cat");
	live_assert_says(&refused, 2, "--memory: a local sandbox cannot keep it");
	RUN(&missing, "run", "pi", "--offline", "--backend", "local", "-w", live_path("work"),
	    "hi");
	live_assert_says(&missing, 1, "there is no 'pi' in local sandbox");
}

static void what_run_has_changed_in_the_folder_is_a_patch_too(void **state)
{
	LIVE_CHILD c, refused;
	(void)state;
	(void)mkdir(live_path("patched"), 0700);
	live_write_file(live_path("patched/a"), "one\n", 4, 0644);
	live_write_file(live_path("patched/gone"), "x\n", 2, 0644);
	SBA_FREE char *patch = strdup(live_path("a.patch"));
	RUN(&c, "run", "command", "--backend", "local", "-w", live_path("patched"), "--patch",
	    patch, "two\n", "--", "sh", "-c", "cat >>a; rm gone; exit 3");
	assert_int_equal(c.status, 1);
	SBA_FREE char *text = live_read_file(patch, NULL);
	assert_non_null(text);
	assert_non_null(strstr(text, "@@ -1 +1,2 @@\n one\n+two\n"));
	assert_non_null(strstr(text, "deleted file mode 100644"));
	RUN(&refused, "run", "command", "--backend", "local", "-w", live_path("patched"), "--apply",
	    "hello", "--", "cat");
	live_assert_says(&refused, 2, "--apply: a local sandbox cannot keep it");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE_STEP(what_looks_like_a_secret_is_left_out_unless_it_is_kept),
		LIVE_STEP(it_writes_in_its_folder_and_its_temporary_one_alone),
		LIVE_STEP(paths_that_lead_out_are_refused_links_included),
		LIVE_STEP(large_files_are_read_exactly_with_holes_and_without),
		LIVE_STEP(a_second_snapshot_reads_only_what_has_changed),
		LIVE_STEP(all_of_it_ends_with_a_client_that_is_killed),
		LIVE_STEP(its_private_folder_goes_with_it_and_what_the_dead_left_too),
		LIVE_STEP(run_works_in_the_folder_itself),
		LIVE_STEP(what_run_has_changed_in_the_folder_is_a_patch_too),
	};
	return live_run(tests, live_begin, live_end);
}
