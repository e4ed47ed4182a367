/* SPDX-License-Identifier: MIT */
/*
 * What changed in a workspace: hashes of all files, the list, patches that git takes,
 * taking it home whole or not at all, events of turns, and `run` that does all in one.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/limits.h"
#include "channel/protocol.h"
#include "support/live.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define BOX "far-heron"

extern char **environ;

static struct sba_sandbox *box;

static void must(int rc, const struct sba_error *err)
{
	if (rc < 0)
		fail_msg("%s", err->text);
}

static const char *in(const char *folder, const char *name)
{
	static char path[4][600];
	static unsigned turn;
	char *to = path[turn++ % 4];
	snprintf(to, sizeof(path[0]), "%s/%s", live_path(folder), name);
	return to;
}

static void put(const char *folder, const char *name, const char *content)
{
	live_write_file(in(folder, name), content, strlen(content), 0644);
}

/* A project as it is on the host. */
static void make_project(const char *folder)
{
	char below[600];
	assert_int_equal(mkdir(live_path(folder), 0755), 0);
	snprintf(below, sizeof(below), "%s", in(folder, "src"));
	assert_int_equal(mkdir(below, 0755), 0);
	put(folder, "README", "one\ntwo\nthree\n");
	put(folder, "src/a.c", "int a;\n");
	put(folder, "src/old.c", "this one gets another name\n");
	put(folder, "gone", "x\n");
	live_write_file(in(folder, "bin"), "\0\1\2", 3, 0644);
	assert_int_equal(symlink("README", in(folder, "link")), 0);
}

static int begin(void **state)
{
	if (live_begin(state) < 0)
		return -1;
	const struct sba_sandbox_options o = { .prefix = live.prefix,
					       .name = BOX,
					       .image = live.image,
					       .user = "1000:1000",
					       .keepalive_ms = 10 * 60 * 1000 };
	struct sba_error err = { 0 };
	make_project("project");
	int rc = sba_sandbox_create(live.engine, &o, &box, &err);
	if (rc == 0)
		rc = sba_sandbox_add_workspace(box, live_path("project"), NULL, NULL, NULL, &err);
	if (rc < 0)
		print_error("%s\n", err.text);
	return rc;
}

static void change_inside(const char *script)
{
	SBA_FREE char *said = live_sh_out(box, script);
	assert_string_equal(said, "");
}

static struct sba_changes *changes_since(int64_t turn)
{
	const struct sba_changes_options o = { .turn = turn };
	struct sba_changes *c = NULL;
	struct sba_error err = { 0 };
	must(sba_sandbox_changes(box, &o, &c, &err), &err);
	return c;
}

/* "A path" for each, with a space between. */
static void assert_changes(const char *expected)
{
	static const char letters[] = "AMDRP";
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(65536);
	struct sba_changes *c = changes_since(0);
	for (size_t i = 0; i < sba_changes_count(c); i++) {
		const struct sba_change *one = sba_changes_at(c, i);
		sba_buf_printf(&b, "%s%c %s", i ? " " : "", letters[one->kind], one->path);
	}
	sba_changes_free(c);
	assert_string_equal(b.data ? b.data : "", expected);
}

/* The exit status of sh -c here. */
static int host_sh(const char *script)
{
	const char *const argv[] = { "sh", "-c", script, NULL };
	int status = -1;
	pid_t pid;
	assert_int_equal(posix_spawnp(&pid, "sh", NULL, NULL, (char **)(uintptr_t)argv, environ),
			 0);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* ---- snapshots ---- */

static void a_snapshot_tells_hash_size_mode_and_link(void **state)
{
	struct sba_snapshot *n = NULL;
	struct sba_error err = { 0 };
	char expected[SBA_SHA256_HEX];
	(void)state;
	must(sba_sandbox_snapshot(box, NULL, &n, &err), &err);
	assert_int_equal(sba_snapshot_count(n), 6);
	assert_int_equal(sba_snapshot_left_out(n), 0);
	const struct sba_snapshot_file *f = sba_snapshot_at(n, 0);
	assert_string_equal(f->path, "README");
	assert_int_equal(sba_sha256_hex("one\ntwo\nthree\n", 14, expected), 0);
	assert_string_equal(f->sha256, expected);
	assert_int_equal(f->size, 14);
	assert_int_equal(f->mode, S_IFREG | 0644);
	f = sba_snapshot_at(n, 3);
	assert_string_equal(f->path, "link");
	assert_string_equal(f->link, "README");
	assert_string_equal(f->sha256, "");
	assert_null(sba_snapshot_at(n, 6));
	sba_snapshot_free(n);
}

/* Into a pipe they are as sha256sum would have them. */
static void names_in_a_snapshot_are_shown_escaped_on_a_terminal(void **state)
{
	LIVE_CHILD shown, piped;
	const char *const argv[] = { "--color", "never", "snapshot", BOX, "/tmp/odd", NULL };
	(void)state;
	free(live_sh_out(box,
			 "mkdir /tmp/odd && echo x >\"/tmp/odd/$(printf 'a\\033]0;own\\007')\""));
	live_start(&shown, &(struct live_start){ .argv = argv, .terminal = true });
	live_child_end(&shown, 60000);
	assert_int_equal(shown.status, 0);
	assert_non_null(strstr(shown.out.data, "a\\x1b]0;own\\x07"));
	assert_null(strchr(shown.out.data, '\033'));
	live_start(&piped, &(struct live_start){ .argv = argv });
	live_child_end(&piped, 60000);
	assert_non_null(strstr(piped.out.data, "  a\033]0;own\007\n"));
}

static size_t count_in(const char *folder, const struct sba_snapshot_options *o)
{
	struct sba_snapshot_options options = *o;
	struct sba_snapshot *n = NULL;
	struct sba_error err = { 0 };
	options.folder = folder;
	must(sba_sandbox_snapshot(box, &options, &n, &err), &err);
	size_t count = sba_snapshot_count(n);
	sba_snapshot_free(n);
	return count;
}

static void a_snapshot_passes_over_what_it_shall(void **state)
{
	(void)state;
	change_inside("mkdir -p /tmp/t/node_modules /tmp/t/.git /tmp/t/out /tmp/t/sub; cd /tmp/t;"
		      "touch a node_modules/x .git/y out/z sub/keep.o sub/b.o;"
		      "printf '/out\\n*.o\\n' > .gitignore; echo '!keep.o' > sub/.gitignore");
	assert_int_equal(count_in("/tmp/t", &(struct sba_snapshot_options){ 0 }), 6);
	assert_int_equal(count_in("/tmp/t", &(struct sba_snapshot_options){ .gitignore = true }),
			 4);
	assert_int_equal(count_in("/tmp/t", &(struct sba_snapshot_options){ .everything = true }),
			 7);
}

/* ---- what the last snapshot has read ---- */

#define MANY "/tmp/many"

static const char *first_hash_of_many(void)
{
	static char hash[SBA_SHA256_HEX];
	const struct sba_snapshot_options o = { .folder = MANY };
	struct sba_snapshot *n = NULL;
	struct sba_error err = { 0 };
	must(sba_sandbox_snapshot(box, &o, &n, &err), &err);
	assert_int_equal(sba_snapshot_count(n), SBA_HASHES_MIN);
	assert_string_equal(sba_snapshot_at(n, 0)->path, "0");
	snprintf(hash, sizeof(hash), "%s", sba_snapshot_at(n, 0)->sha256);
	sba_snapshot_free(n);
	return hash;
}

static void hashes_of_many(struct sba_buf *ret_list, char ret_path[200])
{
	struct sba_error err = { 0 };
	size_t dir = sizeof(SBA_HASHES_DIR);
	memcpy(ret_path, SBA_HASHES_DIR "/", dir);
	assert_int_equal(sba_sha256_hex(MANY, strlen(MANY), ret_path + dir), 0);
	must(sba_sandbox_read_small(box, ret_path, ret_list->max, ret_list, &err), &err);
}

/* What was read right after it was written is read once more; later it is believed. */
static bool first_of_many_has_settled(void *user)
{
	SBA_BUF struct sba_buf list = SBA_BUF_INIT(SBA_MIB);
	char path[200];
	(void)user;
	first_hash_of_many();
	hashes_of_many(&list, path);
	return !(list.data[SBA_RECORD_HEAD + 1 + 36] & SBA_ENTRY_RACY);
}

static void a_second_snapshot_reads_only_what_has_changed(void **state)
{
	SBA_BUF struct sba_buf list = SBA_BUF_INIT(SBA_MIB);
	char path[200], expected[SBA_SHA256_HEX], script[400];
	struct sba_error err = { 0 };
	(void)state;
	snprintf(script, sizeof(script),
		 "mkdir " MANY " && cd " MANY " && for i in $(seq 0 %d); do echo $i >$i; done",
		 SBA_HASHES_MIN - 1);
	change_inside(script);
	live_await(first_of_many_has_settled, NULL, 60 * 1000);
	hashes_of_many(&list, path);
	/* A word of root's is believed, and shows that nothing was read. */
	memset(list.data + SBA_RECORD_HEAD + 1 + 37, 0xab, SBA_SHA256_SIZE);
	must(sba_sandbox_write_small(box, path, list.data, list.len, 0644, &err), &err);
	assert_int_equal(strspn(first_hash_of_many(), "ab"), SBA_SHA256_HEX - 1);
	change_inside("echo x >" MANY "/0");
	assert_int_equal(sba_sha256_hex("x\n", 2, expected), 0);
	assert_string_equal(first_hash_of_many(), expected);
	LIVE_RESULT r = { 0 };
	snprintf(script, sizeof(script), "echo x >>%s", path);
	live_sh(box, script, &r);
	assert_int_not_equal(r.exit.number, 0);
}

static void a_snapshot_of_nothing_is_an_error(void **state)
{
	struct sba_snapshot *n = NULL;
	struct sba_error err = { 0 };
	const struct sba_snapshot_options o = { .folder = "/no/such" };
	(void)state;
	assert_int_equal(sba_sandbox_snapshot(box, &o, &n, &err), SBA_ENOTFOUND);
	assert_non_null(strstr(err.text, "/no/such"));
}

/* ---- changes ---- */

static void what_came_in_has_not_changed(void **state)
{
	(void)state;
	assert_changes("");
}

static void what_is_kept_is_not_the_users_to_change(void **state)
{
	LIVE_RESULT r = { 0 };
	(void)state;
	live_sh(box,
		"cd /var/lib/sandbox-agent/base && ls && (echo x >> 1-0e || rm -f 1-0e || "
		"mv 1-0e x || touch new)",
		&r);
	assert_int_not_equal(sba_exit_status(&r.exit), 0);
	assert_changes("");
}

/* The size and the times that a user can set are as before. */
static void a_change_is_found_whatever_the_clock_of_the_file_says(void **state)
{
	(void)state;
	change_inside("cd /workspace; touch -r README /tmp/when; sed -i s/two/TWO/ README;"
		      "touch -r /tmp/when README");
	assert_changes("M README");
	change_inside("cd /workspace; sed -i s/TWO/two/ README");
	assert_changes("");
}

static void each_kind_of_change_is_told(void **state)
{
	(void)state;
	change_inside("cd /workspace; echo four >> README; rm gone; mv src/old.c src/new.c;"
		      "chmod +x src/a.c; mkdir -p deep/er; echo new > deep/er/file;"
		      "printf 'a\\0b' > bin; ln -sf src/a.c link");
	assert_changes("M README M bin A deep/er/file D gone M link P src/a.c R src/new.c");
	struct sba_changes *c = changes_since(0);
	const struct sba_change *one = sba_changes_at(c, 0);
	assert_int_equal(one->added, 1);
	assert_int_equal(one->removed, 0);
	assert_true(sba_changes_at(c, 1)->binary);
	assert_string_equal(sba_changes_at(c, 6)->old_path, "src/old.c");
	assert_string_equal(sba_changes_folder(c), "/workspace");
	SBA_FREE char *diff = NULL;
	struct sba_error err = { 0 };
	must(sba_change_diff(c, 0, 0, &diff, &err), &err);
	assert_non_null(strstr(diff, "@@ -1,3 +1,4 @@\n one\n two\n three\n+four\n"));
	assert_int_equal(sba_change_diff(c, 0, 10, &diff, NULL), SBA_ELIMIT);
	assert_int_equal(sba_change_diff(c, 1, 0, &diff, NULL), SBA_EREFUSED);
	sba_changes_free(c);
}

/* ---- taking it home ---- */

static void conflicts_name_all_of_them_and_change_nothing(void **state)
{
	(void)state;
	make_project("other");
	put("other", "README", "somebody was here\n");
	put("other", "gone", "and here\n");
	unlink(in("other", "src/a.c"));
	LIVE_CHILD c;
	RUN(&c, "apply", BOX, live_path("other"));
	live_assert_says(&c, 1, "3 of 7 changes do not fit; nothing was changed");
	assert_non_null(strstr(c.err.data, "README: it has changed here too"));
	assert_non_null(strstr(c.err.data, "gone: it has changed here too"));
	assert_non_null(strstr(c.err.data, "src/a.c: it is gone here"));
	assert_int_equal(access(in("other", "deep"), F_OK), -1);
	assert_int_equal(access(in("other", "src/old.c"), F_OK), 0);
}

static void assert_as_inside(const char *folder)
{
	SBA_FREE char *text = live_read_file(in(folder, "README"), NULL);
	assert_string_equal(text, "one\ntwo\nthree\nfour\n");
	assert_int_equal(access(in(folder, "gone"), F_OK), -1);
	assert_int_equal(access(in(folder, "src/old.c"), F_OK), -1);
	assert_int_equal(access(in(folder, "src/new.c"), F_OK), 0);
	assert_int_equal(access(in(folder, "src/a.c"), X_OK), 0);
	size_t len;
	SBA_FREE char *bin = live_read_file(in(folder, "bin"), &len);
	assert_int_equal(len, 3);
	assert_memory_equal(bin, "a\0b", 3);
}

static void a_folder_here_becomes_what_the_one_inside_is(void **state)
{
	(void)state;
	LIVE_CHILD check, c, again;
	RUN(&check, "apply", BOX, live_path("project"), "--check");
	live_assert_says(&check, 0, "would apply");
	assert_int_equal(access(in("project", "gone"), F_OK), 0);
	RUN(&c, "--json", "apply", BOX, live_path("project"));
	live_assert_says(&c, 0, "");
	SBA_JSON json_t *lines = live_json_lines(&c);
	const json_t *j = json_array_get(lines, 0);
	assert_true(sba_json_bool(j, "applied", false));
	assert_int_equal(sba_json_int(j, "written", -1), 4);
	assert_int_equal(sba_json_int(j, "renamed", -1), 1);
	assert_as_inside("project");
	RUN(&again, "apply", BOX, live_path("project"));
	live_assert_says(&again, 0, "7 there already");
}

static void a_file_that_became_a_folder_comes_once(void **state)
{
	(void)state;
	LIVE_CHILD c, again;
	make_project("turned");
	change_inside("cd /workspace; mv README r; mkdir README; echo in > README/in");
	RUN(&c, "apply", BOX, live_path("turned"));
	live_assert_says(&c, 0, "applied");
	SBA_FREE char *text = live_read_file(in("turned", "README/in"), NULL);
	assert_string_equal(text, "in\n");
	RUN(&again, "apply", BOX, live_path("turned"));
	live_assert_says(&again, 0, "9 there already");
	change_inside("cd /workspace; rm -r README; mv r README");
}

static void a_folder_of_folders_that_became_a_link_comes_once(void **state)
{
	(void)state;
	LIVE_CHILD more, c, again;
	make_project("linked");
	mkdir(in("linked", "src/deep"), 0755);
	put("linked", "src/deep/mine", "of nobody inside\n");
	change_inside("cd /workspace; mv src s; ln -s s src");
	RUN(&more, "apply", BOX, live_path("linked"));
	live_assert_says(&more, 1, "src: a folder is there, with src/deep/mine in it");
	live_assert_says(&more, 1, "git apply --3way");
	assert_int_equal(unlink(in("linked", "src/deep/mine")), 0);
	RUN(&c, "apply", BOX, live_path("linked"));
	live_assert_says(&c, 0, "applied");
	SBA_FREE char *text = live_read_file(in("linked", "src/a.c"), NULL);
	assert_non_null(text);
	RUN(&again, "apply", BOX, live_path("linked"));
	live_assert_says(&again, 0, ": 0 written, 0 removed, 0 renamed, 0 modes");
	change_inside("cd /workspace; rm src; mv s src");
}

static void the_patch_does_the_same_by_git(void **state)
{
	char patch[600];
	(void)state;
	make_project("patched");
	snprintf(patch, sizeof(patch), "%s", live_path("p.patch"));
	LIVE_CHILD c;
	RUN(&c, "patch", BOX, "-o", patch);
	live_assert_says(&c, 0, "");
	SBA_FREE char *text = live_read_file(patch, NULL);
	assert_non_null(strstr(text, "GIT binary patch\n"));
	assert_non_null(strstr(text, "rename from src/old.c\nrename to src/new.c\n"));
	char command[1500];
	snprintf(command, sizeof(command), "cd '%s' && git apply '%s'", live_path("patched"),
		 patch);
	assert_int_equal(host_sh(command), 0);
	assert_as_inside("patched");
}

static void a_link_that_leads_out_is_a_conflict(void **state)
{
	(void)state;
	change_inside("ln -s /etc/passwd /workspace/evil");
	LIVE_CHILD c;
	RUN(&c, "apply", BOX, live_path("project"));
	live_assert_says(&c, 1, "evil: the link leads out of the folder");
	change_inside("rm /workspace/evil");
}

static void nothing_is_told_where_nothing_is_kept(void **state)
{
	(void)state;
	struct sba_sandbox *s = live_sandbox((struct sba_sandbox_options){ .name = "empty" });
	LIVE_CHILD c;
	RUN(&c, "diff", "empty");
	live_assert_says(&c, 1, "nothing is kept of its workspace");
	live_remove(s);
}

static void a_fork_is_compared_with_what_its_parent_was(void **state)
{
	struct sba_sandbox *child = NULL, *parent = box;
	struct sba_error err = { 0 };
	(void)state;
	must(sba_sandbox_fork(box, NULL, &child, NULL, &err), &err);
	box = child;
	assert_changes("M README M bin A deep/er/file D gone M link P src/a.c R src/new.c");
	box = parent;
	live_remove(child);
}

/* ---- turns ---- */

static const json_t *change_of(json_t *lines, const char *path)
{
	size_t i;
	const json_t *line;
	json_array_foreach(lines, i, line)
	{
		const char *p = sba_json_str(line, "path");
		if (sba_json_bool(line, "measured", false) && p && !strcmp(p, path))
			return line;
	}
	fail_msg("nothing is told of %s", path);
	return NULL;
}

static void a_turn_ends_with_what_it_has_changed(void **state)
{
	(void)state;
	make_project("turn");
	LIVE_CHILD up, first, second, since;
	RUN(&up, "up", "command", "--image", live.image, "--name", "turns", "-w", live_path("turn"),
	    "--", "sh", "-c",
	    "cat >> README; echo >> README; rm -f gone; printf 'a\\0b' > bin; echo ok");
	live_assert_says(&up, 0, "");
	RUN(&first, "--json", "chat", "turns", "four");
	live_assert_says(&first, 0, "");
	SBA_JSON json_t *lines = live_json_lines(&first);
	const json_t *readme = change_of(lines, "/workspace/README");
	assert_string_equal(sba_json_str(readme, "change"), "modified");
	assert_non_null(strstr(sba_json_str(readme, "diff"), "+four"));
	assert_string_equal(sba_json_str(change_of(lines, "/workspace/gone"), "change"), "deleted");
	assert_string_equal(sba_json_str(change_of(lines, "/workspace/bin"), "without_diff"),
			    "it is binary");
	RUN(&second, "--json", "chat", "turns", "five");
	live_assert_says(&second, 0, "");
	RUN(&since, "patch", "turns", "--turn", "2");
	live_assert_says(&since, 0, "");
	assert_null(strstr(since.out.data, "+four"));
	assert_non_null(strstr(since.out.data, "five"));
	LIVE_CHILD rm;
	RUN(&rm, "rm", "turns");
}

static void run_takes_its_work_home(void **state)
{
	char patch[600];
	(void)state;
	make_project("home");
	snprintf(patch, sizeof(patch), "%s", live_path("home.patch"));
	LIVE_CHILD c;
	RUN(&c, "run", "command", "--image", live.image, "-w", live_path("home"), "--apply",
	    "--patch", patch, "x", "--", "sh", "-c", "echo done > made; rm gone; echo ok");
	live_assert_says(&c, 0, "applied to");
	SBA_FREE char *made = live_read_file(in("home", "made"), NULL);
	assert_string_equal(made, "done\n");
	assert_int_equal(access(in("home", "gone"), F_OK), -1);
	SBA_FREE char *text = live_read_file(patch, NULL);
	assert_non_null(strstr(text, "+done"));
}

static void a_run_that_fails_keeps_what_it_has_done(void **state)
{
	(void)state;
	make_project("failed");
	LIVE_CHILD c, nothing, diff, rm;
	RUN(&nothing, "--json", "run", "command", "--image", live.image, "-w", live_path("failed"),
	    "--apply", "x", "--", "sh", "-c", "exit 3");
	assert_int_equal(nothing.status, 1);
	assert_null(strstr(nothing.out.data, "\"kept\""));
	RUN(&c, "run", "command", "--image", live.image, "-w", live_path("failed"), "--name",
	    "kept", "--apply", "x", "--", "sh", "-c", "echo half > made; exit 3");
	live_assert_says(&c, 1, "kept: what it has done is in sandbox kept");
	assert_int_equal(access(in("failed", "made"), F_OK), -1);
	RUN(&diff, "diff", "kept");
	live_assert_says(&diff, 0, "1 file changed");
	assert_non_null(strstr(diff.out.data, " A made +1\n"));
	RUN(&rm, "rm", "kept");
	assert_int_equal(rm.status, 0);
}

static void end_by_signal(const char *name, const char *script, int number, int status,
			  const char *says)
{
	LIVE_CHILD c;
	const char *const argv[] = { "run",      "command", "--image",
				     live.image, "-w",      live_path("stopped"),
				     "--name",   name,      "x",
				     "--",       "sh",      "-c",
				     script,     NULL };
	live_start(&c, &(struct live_start){ .argv = argv });
	live_child_await(&c, "working", 60000);
	kill(c.pid, number);
	live_child_end(&c, 60000);
	live_assert_says(&c, status, says);
}

static void a_run_that_is_interrupted_keeps_what_it_has_done(void **state)
{
	(void)state;
	LIVE_CHILD diff, rm;
	make_project("stopped");
	end_by_signal("same", "echo working; exec sleep 4260", SIGTERM, 143,
		      "terminated; nothing is left running");
	end_by_signal("half", "echo half > made; echo working; exec sleep 4261", SIGINT, 130,
		      "interrupted; sandbox half is kept");
	RUN(&diff, "diff", "half");
	assert_non_null(strstr(diff.out.data, " A made +1\n"));
	struct sba_sandbox *s = NULL;
	assert_int_equal(sba_sandbox_open(live.engine, live.prefix, "half", &s, NULL), 0);
	assert_false(live_runs_inside(sba_sandbox_container(s), "sleep 4261"));
	assert_int_equal(sba_sandbox_open(live.engine, live.prefix, "same", &s, NULL),
			 SBA_ENOTFOUND);
	sba_sandbox_close(s);
	RUN(&rm, "rm", "half");
	assert_int_equal(rm.status, 0);
}

static void end_box(void **state)
{
	(void)state;
	live_remove(box);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE_STEP(a_snapshot_tells_hash_size_mode_and_link),
		LIVE_STEP(names_in_a_snapshot_are_shown_escaped_on_a_terminal),
		LIVE_STEP(a_snapshot_passes_over_what_it_shall),
		LIVE_STEP(a_second_snapshot_reads_only_what_has_changed),
		LIVE_STEP(a_snapshot_of_nothing_is_an_error),
		LIVE_STEP(what_came_in_has_not_changed),
		LIVE_STEP(what_is_kept_is_not_the_users_to_change),
		LIVE_STEP(a_change_is_found_whatever_the_clock_of_the_file_says),
		LIVE_STEP(each_kind_of_change_is_told),
		LIVE_STEP(conflicts_name_all_of_them_and_change_nothing),
		LIVE_STEP(the_patch_does_the_same_by_git),
		LIVE_STEP(a_folder_here_becomes_what_the_one_inside_is),
		LIVE_STEP(a_file_that_became_a_folder_comes_once),
		LIVE_STEP(a_folder_of_folders_that_became_a_link_comes_once),
		LIVE_STEP(a_link_that_leads_out_is_a_conflict),
		LIVE_STEP(nothing_is_told_where_nothing_is_kept),
		LIVE_STEP(a_fork_is_compared_with_what_its_parent_was),
		LIVE_STEP(end_box),
		LIVE_TEST(a_turn_ends_with_what_it_has_changed),
		LIVE_TEST(run_takes_its_work_home),
		LIVE_TEST(a_run_that_fails_keeps_what_it_has_done),
		LIVE_TEST(a_run_that_is_interrupted_keeps_what_it_has_done),
		LIVE_TEST(live_nothing_is_left),
	};
	return live_run(tests, begin, live_end);
}
