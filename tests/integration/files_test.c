/* SPDX-License-Identifier: MIT */
/* Files into and out of a real sandbox, and a project folder copied in. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/folder.h"
#include "support/live.h"

#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

#define ODD_NAME "o\xc3\xa4 \xe6\x97\xa5 new\nline"

/* One for all tests here; its user is a number without a passwd line. */
static struct sba_sandbox *box;

static int begin(void **state)
{
	if (live_begin(state) < 0)
		return -1;
	struct sba_sandbox_options o = { .prefix = live.prefix,
					 .image = live.image,
					 .user = "1000:1000",
					 .keepalive_ms = 10 * 60 * 1000 };
	struct sba_error err = { 0 };
	int rc = sba_sandbox_create(live.engine, &o, &box, &err);
	if (rc < 0)
		print_error("%s\n", err.text);
	return rc;
}

static void upload(const char *from, const char *to, struct sba_transfer_report *report)
{
	struct sba_error err = { 0 };
	if (sba_sandbox_upload(box, from, to, NULL, report, &err) < 0)
		fail_msg("%s", err.text);
}

static void download(const char *from, const char *to, const struct sba_transfer_options *o,
		     struct sba_transfer_report *report)
{
	struct sba_error err = { 0 };
	if (sba_sandbox_download(box, from, to, o, report, &err) < 0)
		fail_msg("%s", err.text);
}

static void assert_content(const char *path, const char *content)
{
	SBA_FREE char *text = live_read_file(path, NULL);
	if (!text)
		fail_msg("%s is not there", path);
	assert_string_equal(text, content);
}

static mode_t mode_of(const char *path)
{
	struct stat st;
	if (lstat(path, &st) < 0)
		fail_msg("%s is not there", path);
	return st.st_mode;
}

static void make_tree(const char *name)
{
	char path[4096];
	assert_int_equal(mkdir(live_path(name), 0755), 0);
	snprintf(path, sizeof(path), "%s/empty", live_path(name));
	assert_int_equal(mkdir(path, 0750), 0);
	snprintf(path, sizeof(path), "%s/run.sh", live_path(name));
	live_write_file(path, "#!/bin/sh\necho ran\n", 19, 0755);
	snprintf(path, sizeof(path), "%s/" ODD_NAME, live_path(name));
	live_write_file(path, "odd\n", 4, 0640);
	snprintf(path, sizeof(path), "%s/zero", live_path(name));
	live_write_file(path, "", 0, 0600);
	snprintf(path, sizeof(path), "%s/link", live_path(name));
	assert_int_equal(symlink("run.sh", path), 0);
	snprintf(path, sizeof(path), "%s/way-out", live_path(name));
	assert_int_equal(symlink("/etc/passwd", path), 0);
}

static void a_tree_goes_in_and_comes_back_the_same(void **state)
{
	(void)state;
	struct sba_transfer_report in, out;
	char path[4096];
	make_tree("tree");
	upload(live_path("tree"), "/tmp/new/deep/tree", &in);
	assert_int_equal(in.files, 3);
	assert_int_equal(in.symlinks, 1);
	assert_int_equal(in.refused, 1);
	SBA_FREE char *said = live_sh_out(
		box,
		"cd /tmp/new/deep/tree && ./run.sh && stat -c '%u:%g %a' run.sh zero empty . .. "
		"&& readlink link && ls way-out 2>&1 | wc -l");
	assert_string_equal(said, "ran\n1000:1000 755\n1000:1000 600\n1000:1000 750\n"
				  "1000:1000 755\n1000:1000 755\nrun.sh\n1\n");
	download("/tmp/new/deep/tree", live_path("back"), NULL, &out);
	assert_int_equal(out.files, 3);
	assert_int_equal(out.refused, 1);
	assert_content(live_path("back/run.sh"), "#!/bin/sh\necho ran\n");
	assert_content(live_path("back/" ODD_NAME), "odd\n");
	assert_content(live_path("back/zero"), "");
	assert_int_equal(mode_of(live_path("back/run.sh")), S_IFREG | 0755);
	assert_int_equal(mode_of(live_path("back/empty")), S_IFDIR | 0750);
	snprintf(path, sizeof(path), "%s", live_path("back/link"));
	assert_int_equal(access(path, F_OK), -1);
}

static void an_existing_folder_receives_what_comes_under_its_own_name(void **state)
{
	(void)state;
	live_write_file(live_path("note"), "hello", 5, 0644);
	upload(live_path("note"), "/tmp", NULL);
	upload(live_path("note"), "/tmp/renamed", NULL);
	SBA_FREE char *said = live_sh_out(box, "cat /tmp/note /tmp/renamed");
	assert_string_equal(said, "hellohello");
	assert_int_equal(mkdir(live_path("into"), 0755), 0);
	download("/tmp/note", live_path("into"), NULL, NULL);
	assert_content(live_path("into/note"), "hello");
}

static void an_existing_file_here_is_replaced_only_when_asked(void **state)
{
	(void)state;
	struct sba_error err = { 0 };
	struct sba_transfer_options replace = { .replace = true };
	live_write_file(live_path("kept"), "mine", 4, 0644);
	free(live_sh_out(box, "echo theirs >/tmp/kept"));
	assert_int_equal(
		sba_sandbox_download(box, "/tmp/kept", live_path("kept"), NULL, NULL, &err),
		SBA_EEXIST);
	assert_content(live_path("kept"), "mine");
	download("/tmp/kept", live_path("kept"), &replace, NULL);
	assert_content(live_path("kept"), "theirs\n");
}

struct refusals {
	unsigned n;
	char last[256], why[64];
};

static void on_refused(void *user, const char *name, enum sba_refusal why)
{
	struct refusals *r = user;
	r->n++;
	snprintf(r->last, sizeof(r->last), "%s", name);
	snprintf(r->why, sizeof(r->why), "%s", sba_refusal_text(why));
}

static void links_and_fifos_of_the_inside_do_not_land(void **state)
{
	(void)state;
	struct refusals r = { 0 };
	struct sba_transfer_options o = { .refused = on_refused, .user = &r };
	struct sba_transfer_report report;
	struct sba_error err = { 0 };
	free(live_sh_out(box, "mkdir /tmp/bad && cd /tmp/bad && echo ok >good && mkfifo pipe && "
			      "ln -s /etc/shadow link"));
	download("/tmp/bad", live_path("bad"), &o, &report);
	assert_int_equal(r.n, 2);
	assert_int_equal(report.refused, 2);
	assert_int_equal(report.files, 1);
	assert_content(live_path("bad/good"), "ok\n");
	assert_int_equal(access(live_path("bad/link"), F_OK), -1);
	assert_int_equal(
		sba_sandbox_download(box, "/tmp/bad/link", live_path("l"), NULL, NULL, &err),
		SBA_EREFUSED);
	assert_int_equal(
		sba_sandbox_download(box, "/tmp/bad/pipe", live_path("p"), NULL, NULL, &err),
		SBA_EREFUSED);
	assert_int_equal(access(live_path("l"), F_OK), -1);
}

static void what_is_not_there_is_named(void **state)
{
	(void)state;
	struct sba_error err = { 0 };
	assert_int_equal(sba_sandbox_download(box, "/tmp/nope", live_path("n"), NULL, NULL, &err),
			 SBA_ENOTFOUND);
	assert_non_null(strstr(err.text, "/tmp/nope"));
	assert_int_equal(sba_sandbox_upload(box, live_path("nope"), "/tmp/x", NULL, NULL, &err),
			 SBA_ENOTFOUND);
	assert_int_equal(access(live_path("n"), F_OK), -1);
}

static void what_nobody_can_write_and_the_root_are_refused(void **state)
{
	(void)state;
	struct sba_error err = { 0 };
	static const char *const paths[] = { "/proc/sys/kernel/x", "/sys/x", "/proc" };
	for (size_t i = 0; i < SBA_ARRAY_LEN(paths); i++)
		assert_true(sba_sandbox_upload(box, "/etc/hostname", paths[i], NULL, NULL, &err) <
			    0);
	assert_int_equal(sba_sandbox_download(box, "/", live_path("x"), NULL, NULL, &err),
			 SBA_EREFUSED);
	assert_int_equal(sba_sandbox_upload(box, "/etc/hostname", "relative", NULL, NULL, &err),
			 SBA_EINVAL);
}

/* Inside they are made; here no folder is made to hold a copy. */
static void missing_folders_are_made_inside_only(void **state)
{
	(void)state;
	struct sba_error err = { 0 };
	char here[256];
	live_write_file(live_path("parentless"), "x", 1, 0644);
	upload(live_path("parentless"), "/tmp/no/such/folder/f", NULL);
	snprintf(here, sizeof(here), "%s", live_path("no/such"));
	assert_int_equal(sba_sandbox_download(box, "/tmp/no/such/folder/f", here, NULL, NULL, &err),
			 SBA_ENOTFOUND);
	assert_non_null(strstr(err.text, "No such file or directory"));
	char there[128];
	snprintf(there, sizeof(there), "%s:/tmp/not/there/f", sba_sandbox_info(box)->name);
	LIVE_CHILD c;
	RUN(&c, "cp", live_path("parentless"), there);
	live_assert_says(&c, 1, ":/tmp/not/there'");
}

static void a_file_in_the_way_of_a_folder_is_told(void **state)
{
	(void)state;
	struct sba_error err = { 0 };
	free(live_sh_out(box, "echo x >/tmp/inway"));
	int rc = sba_sandbox_upload(box, "/etc/hostname", "/tmp/inway/x", NULL, NULL, &err);
	if (rc != SBA_EEXIST)
		fail_msg("%s", err.text);
}

/* ---- a project ---- */

static void git(const char *dir, const char *const *words)
{
	const char *argv[16] = { "git", "-c", "user.name=t", "-c", "user.email=t@localhost",
				 "-C",  dir };
	for (size_t i = 0; words[i] && i < 8; i++)
		argv[7 + i] = words[i];
	pid_t pid;
	int status = -1;
	assert_int_equal(posix_spawnp(&pid, "git", NULL, NULL, (char **)(uintptr_t)argv, environ),
			 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

#define GIT(dir, ...) git(dir, (const char *const[]){ __VA_ARGS__, NULL })

static void make_project(const char *name)
{
	char dir[4096], path[8192];
	snprintf(dir, sizeof(dir), "%s", live_path(name));
	assert_int_equal(mkdir(dir, 0755), 0);
	GIT(dir, "init", "-q");
	snprintf(path, sizeof(path), "%s/main.c", dir);
	live_write_file(path, "int main;\n", 10, 0644);
	snprintf(path, sizeof(path), "%s/.gitignore", dir);
	live_write_file(path, "*.o\n", 4, 0644);
	snprintf(path, sizeof(path), "%s/main.o", dir);
	live_write_file(path, "obj", 3, 0644);
	snprintf(path, sizeof(path), "%s/new.c", dir);
	live_write_file(path, "new\n", 4, 0644);
	snprintf(path, sizeof(path), "%s/.git/hooks/pre-commit", dir);
	live_write_file(path, "#!/bin/sh\nfalse\n", 16, 0755);
	GIT(dir, "config", "credential.helper", "store");
	GIT(dir, "config", "http.extraheader", "Authorization: marker-secret");
	GIT(dir, "remote", "add", "origin", "https://user:marker-secret@example.com/x.git");
	GIT(dir, "add", "main.c", ".gitignore");
	GIT(dir, "commit", "-q", "--no-verify", "-m", "first");
}

static void a_work_tree_goes_in_without_what_is_the_hosts(void **state)
{
	(void)state;
	struct sba_error err = { 0 };
	struct sba_transfer_report report;
	make_project("project");
	if (sba_sandbox_add_workspace(box, live_path("project"), NULL, NULL, &report, &err) < 0)
		fail_msg("%s", err.text);
	SBA_FREE char *said = live_sh_out(
		box, "cd /workspace && ls -A && stat -c %u . main.c .git .git/HEAD && "
		     "! grep -r marker-secret . && ! ls .git/hooks/pre-commit 2>/dev/null && "
		     "cat new.c");
	assert_string_equal(said, ".git\n.gitignore\nmain.c\nnew.c\n1000\n1000\n1000\n1000\nnew\n");
}

/* C-110: its .git is a file that leads to a path of this host. */
static void a_linked_work_tree_goes_in_with_its_history(void **state)
{
	(void)state;
	struct sba_error err = { 0 };
	GIT(live_path("project"), "worktree", "add", "-q", live_path("linked"));
	if (sba_sandbox_add_workspace(box, live_path("linked"), "/srv/linked", NULL, NULL, &err) <
	    0)
		fail_msg("%s", err.text);
	SBA_FREE char *said = live_sh_out(box, "cd /srv/linked && cat main.c .git/HEAD && "
					       "test -d .git/objects && echo history");
	assert_string_equal(said, "int main;\nref: refs/heads/linked\nhistory\n");
}

/* C-110: its .git is a file that leads out of it. */
static void a_submodule_goes_in_as_a_repository_and_no_pointer(void **state)
{
	(void)state;
	struct sba_error err = { 0 };
	make_project("module");
	make_project("whole");
	GIT(live_path("whole"), "-c", "protocol.file.allow=always", "submodule", "add", "-q",
	    live_path("module"), "sub");
	if (sba_sandbox_add_workspace(box, live_path("whole"), "/srv/whole", NULL, NULL, &err) < 0)
		fail_msg("%s", err.text);
	SBA_FREE char *said = live_sh_out(box, "cd /srv/whole && cat sub/main.c && ls -A sub && "
					       "cat sub/.git/HEAD | cut -c1-5 && "
					       "! grep -r marker-secret . && ! ls .git/modules");
	assert_string_equal(said, "int main;\n.git\n.gitignore\nmain.c\nref: \n");
}

/* What `git clone --shared` has made: its objects are in a folder of this host. */
static void make_borrower(const char *name)
{
	GIT(live_path(""), "clone", "-q", "--shared", "project", name);
}

/* Of our base image; skips the test where that is not built. */
static struct sba_sandbox *box_with_git(void)
{
	struct sba_error err = { 0 };
	struct sba_images *images = NULL;
	SBA_JSON json_t *there = NULL;
	assert_int_equal(sba_images_open(NULL, NULL, &images, &err), 0);
	char base[256];
	snprintf(base, sizeof(base), "%s", sba_images_ref(images, "base"));
	sba_images_close(images);
	if (sba_image_inspect(live.engine, base, sba_until_in(30000), &there, NULL) < 0) {
		print_message("SKIPPED: no image '%s'\n", base);
		skip();
	}
	return live_sandbox((struct sba_sandbox_options){ .image = base });
}

/* Hashed by SHA-256, with files of other line ends than git keeps. */
static void make_other_format(const char *name)
{
	static const char script[] = "git init -q --object-format=sha256; "
				     "git config core.autocrlf true; printf 'a\\r\\n' >a; "
				     "git remote add 'o\"r' /nowhere; "
				     "git add a; git commit -qm first";
	assert_int_equal(mkdir(live_path(name), 0755), 0);
	test_folder_must_sh(live_path(name), script);
}

/* That has all but the content of a file of its past. */
static void make_partial_clone(const char *name)
{
	char script[512];
	test_folder_must_sh(live_path(""), "git init -q lender; cd lender; "
					   "git config uploadpack.allowFilter true; echo 1 >f; "
					   "git add f; git commit -qm first; echo 2 >f; "
					   "git commit -qam second");
	snprintf(script, sizeof(script),
		 "git clone -q --filter=blob:none \"file://$PWD/lender\" %s", name);
	test_folder_must_sh(live_path(""), script);
}

static void a_repository_is_read_inside_as_it_is_here(void **state)
{
	(void)state;
	struct sba_error err = { 0 };
	struct sba_sandbox *s = box_with_git();
	make_other_format("other");
	make_partial_clone("partial");
	if (sba_sandbox_add_workspace(s, live_path("other"), NULL, NULL, NULL, &err) < 0 ||
	    sba_sandbox_add_workspace(s, live_path("partial"), "/tmp/partial", NULL, NULL, &err) <
		    0)
		fail_msg("%s", err.text);
	SBA_FREE char *other = live_sh_out(s, "cd /workspace && git status --porcelain && "
					      "git log --format=%s && git remote");
	assert_string_equal(other, "first\no\"r\n");
	SBA_FREE char *partial = live_sh_out(
		s, "cd /tmp/partial && git status --porcelain && git log --format=%s && "
		   "git fsck 2>&1 && git show HEAD~1:f 2>&1 | grep -c promisor");
	assert_string_equal(partial, "second\nfirst\n1\n");
	live_remove(s);
}

static void git_status_works_inside(void **state)
{
	(void)state;
	struct sba_error err = { 0 };
	struct sba_sandbox *s = box_with_git();
	make_borrower("borrower");
	if (sba_sandbox_add_workspace(s, live_path("project"), NULL, NULL, NULL, &err) < 0 ||
	    sba_sandbox_add_workspace(s, live_path("whole"), "/tmp/whole", NULL, NULL, &err) < 0 ||
	    sba_sandbox_add_workspace(s, live_path("borrower"), "/tmp/borrower", NULL, NULL, &err) <
		    0)
		fail_msg("%s", err.text);
	SBA_FREE char *borrower =
		live_sh_out(s, "cd /tmp/borrower && git status --porcelain && "
			       "git log --format=%s && git fsck 2>&1 && ls .git/objects");
	assert_string_equal(borrower, "first\npack\n");
	SBA_FREE char *within = live_sh_out(s, "cd /tmp/whole && git status --porcelain && "
					       "git submodule status | cut -c1 && cd sub && "
					       "git status --porcelain && git log --format=%s");
	assert_string_equal(within, "A  .gitmodules\nA  sub\n?? new.c\n \nfirst\n");
	SBA_FREE char *said =
		live_sh_out(s, "cd /workspace && git status --porcelain && git log --format=%s && "
			       "git config user.name t && git remote");
	assert_string_equal(said, "?? new.c\nfirst\norigin\n");
	live_remove(s);
}

static void a_plain_folder_goes_in_whole_to_a_path_of_choice(void **state)
{
	(void)state;
	struct sba_error err = { 0 };
	make_tree("plain");
	if (sba_sandbox_add_workspace(box, live_path("plain"), "/srv/code", NULL, NULL, &err) < 0)
		fail_msg("%s", err.text);
	SBA_FREE char *said = live_sh_out(box, "cd /srv/code && ./run.sh && stat -c %u . zero");
	assert_string_equal(said, "ran\n1000\n1000\n");
}

static void the_shared_sandbox_is_removed_and_nothing_is_left(void **state)
{
	live_remove(box);
	live_nothing_is_left(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE_STEP(a_tree_goes_in_and_comes_back_the_same),
		LIVE_STEP(an_existing_folder_receives_what_comes_under_its_own_name),
		LIVE_STEP(an_existing_file_here_is_replaced_only_when_asked),
		LIVE_STEP(links_and_fifos_of_the_inside_do_not_land),
		LIVE_STEP(what_is_not_there_is_named),
		LIVE_STEP(what_nobody_can_write_and_the_root_are_refused),
		LIVE_STEP(missing_folders_are_made_inside_only),
		LIVE_STEP(a_file_in_the_way_of_a_folder_is_told),
		LIVE_STEP(a_work_tree_goes_in_without_what_is_the_hosts),
		LIVE_STEP(a_linked_work_tree_goes_in_with_its_history),
		LIVE_STEP(a_submodule_goes_in_as_a_repository_and_no_pointer),
		LIVE_STEP(git_status_works_inside),
		LIVE_STEP(a_repository_is_read_inside_as_it_is_here),
		LIVE_STEP(a_plain_folder_goes_in_whole_to_a_path_of_choice),
		LIVE_STEP(the_shared_sandbox_is_removed_and_nothing_is_left),
	};
	return live_run(tests, begin, live_end);
}
