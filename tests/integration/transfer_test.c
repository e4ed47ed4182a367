/* SPDX-License-Identifier: MIT */
/*
 * Transfers that an engine does not tell the truth about, or that end early:
 * tmpfs and /proc, folders of root, clients that are killed, engines that go,
 * readers that stop. And one file at a time, of any size.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/limits.h"
#include "support/live.h"
#include "support/tar_builder.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BOX "near-otter"

enum { BIG = 24 << 20 };

static struct sba_sandbox *box;

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
	int rc = sba_sandbox_create(live.engine, &o, &box, &err);
	if (rc < 0)
		print_error("%s\n", err.text);
	return rc;
}

static void assert_inside(const char *script, const char *says)
{
	SBA_FREE char *said = live_sh_out(box, script);
	assert_string_equal(said, says);
}

static void assert_here(const char *path, const char *content)
{
	SBA_FREE char *text = live_read_file(path, NULL);
	if (!text)
		fail_msg("%s is not there", path);
	assert_string_equal(text, content);
}

static void must(int rc, const struct sba_error *err)
{
	if (rc < 0)
		fail_msg("%s", err->text);
}

static int keep(void *user, const void *data, size_t len, struct sba_error *err)
{
	sba_buf_put(user, data, len);
	return sba_buf_check(user, "the file", err);
}

static bool gone_inside(void *user)
{
	SBA_FREE char *said = live_sh_out(box, user);
	return strcmp(said, "0\n") == 0;
}

/* ---- what the engine does not see ---- */

static void make_tree(const char *name)
{
	char path[512];
	snprintf(path, sizeof(path), "%s", live_path(name));
	assert_int_equal(mkdir(path, 0755), 0);
	snprintf(path, sizeof(path), "%s/d", live_path(name));
	assert_int_equal(mkdir(path, 0555), 0);
	snprintf(path, sizeof(path), "%s/f", live_path(name));
	live_write_file(path, "content", 7, 0640);
}

static void a_tree_on_a_tmpfs_goes_in_and_comes_back(void **state)
{
	(void)state;
	struct sba_error err = { 0 };
	struct sba_transfer_report report;
	make_tree("shm");
	must(sba_sandbox_upload(box, live_path("shm"), "/dev/shm/new/t", NULL, &report, &err),
	     &err);
	assert_int_equal(report.files, 1);
	assert_inside("cd /dev/shm/new/t && cat f && stat -c ' %u %a' f d",
		      "content 1000 640\n 1000 555\n");
	must(sba_sandbox_download(box, "/dev/shm/new/t", live_path("shm-back"), NULL, &report,
				  &err),
	     &err);
	assert_int_equal(report.files, 1);
	assert_here(live_path("shm-back/f"), "content");
}

static void a_folder_with_a_mount_below_comes_whole(void **state)
{
	(void)state;
	struct sba_error err = { 0 };
	const struct sba_transfer_options o = { .max_entries = 5000 };
	free(live_sh_out(box, "echo here >/dev/shm/beneath"));
	must(sba_sandbox_download(box, "/dev", live_path("dev"), &o, NULL, &err), &err);
	assert_here(live_path("dev/shm/beneath"), "here\n");
}

static void a_file_of_proc_comes_with_its_content(void **state)
{
	(void)state;
	struct sba_error err = { 0 };
	must(sba_sandbox_download(box, "/proc/version", live_path("version"), NULL, NULL, &err),
	     &err);
	SBA_FREE char *text = live_read_file(live_path("version"), NULL);
	assert_non_null(strstr(text, "Linux"));
}

/* ---- what the engine cannot carry ---- */

static void make_deep(const char *name, int levels)
{
	char leaf[201];
	memset(leaf, 'd', 200);
	leaf[200] = '\0';
	assert_int_equal(mkdir(live_path(name), 0755), 0);
	int fd = open(live_path(name), O_PATH | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; i < levels; i++) {
		assert_int_equal(mkdirat(fd, leaf, 0755), 0);
		int next = openat(fd, leaf, O_PATH | O_DIRECTORY | O_CLOEXEC);
		assert_true(next >= 0);
		close(fd);
		fd = next;
	}
	int file = openat(fd, "leaf", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_int_equal(write(file, "deep", 4), 4);
	close(file);
	close(fd);
}

/* Docker refuses to unpack such a path, and leaves it out of its own tars unsaid. */
static void a_tree_beyond_path_max_goes_in_and_comes_back(void **state)
{
	(void)state;
	struct sba_error err = { 0 };
	struct sba_transfer_report in, out;
	make_deep("deep", 30);
	must(sba_sandbox_upload(box, live_path("deep"), "/tmp/deep", NULL, &in, &err), &err);
	assert_inside(
		"find /tmp/deep -name leaf -execdir cat {} +; ls -A /tmp | grep -c sandbox-agent; "
		"true",
		"deep0\n");
	must(sba_sandbox_download(box, "/tmp/deep", live_path("deep-back"), NULL, &out, &err),
	     &err);
	assert_int_equal(in.files, 1);
	assert_int_equal(out.files, 1);
	assert_int_equal(out.directories, in.directories);
	SBA_BUF struct sba_buf tar = SBA_BUF_INIT(1 << 20);
	must(sba_sandbox_download_tar(box, "/tmp/deep", keep, &tar, NULL, &err), &err);
	assert_non_null(memmem(tar.data, tar.len, "/leaf\n", 6));
}

/* A tar can be read but once: it must not be tried and given up half-way. */
static void a_tar_beyond_path_max_is_refused_with_words_and_leaves_nothing(void **state)
{
	(void)state;
	LIVE_CHILD c;
	SBA_BUF struct sba_buf tar = SBA_BUF_INIT(1 << 20), name = SBA_BUF_INIT(8192);
	for (int i = 0; i < 500; i++)
		sba_buf_puts(&name, "deeper/in/");
	sba_buf_puts(&name, "f");
	tar_file(&tar, "first", "x");
	tar_pax(&tar, "path", name.data);
	tar_file(&tar, "f", "x");
	tar_end(&tar);
	free(live_sh_out(box, "mkdir /tmp/refused"));
	live_start(&c,
		   &(struct live_start){
			   .argv = (const char *const[]){ "cp", "-", BOX ":/tmp/refused", NULL },
			   .input = tar.data,
			   .input_len = tar.len,
		   });
	live_child_end(&c, 20000);
	live_assert_says(&c, 1, "all that can be unpacked there");
	static char count[] = "ls -A /tmp/refused | wc -l";
	live_await(gone_inside, count, 20000);
}

static void holes_that_go_in_stay_holes(void **state)
{
	(void)state;
	struct sba_error err = { 0 };
	assert_int_equal(mkdir(live_path("holes"), 0755), 0);
	live_write_file(live_path("holes/first"), "x", 1, 0644);
	live_write_file(live_path("holes/sparse"), "begin", 5, 0644);
	assert_int_equal(truncate(live_path("holes/sparse"), 64 << 20), 0);
	must(sba_sandbox_upload(box, live_path("holes"), "/tmp", NULL, NULL, &err), &err);
	assert_inside("cd /tmp/holes && stat -c %s sparse && head -c 5 sparse && cat first && "
		      "du -k sparse | cut -f1 | grep -c '^.$'",
		      "67108864\nbeginx1\n");
}

/* C-22: what comes is never kept as a whole. */
static void a_download_larger_than_memory_needs_little_of_it(void **state)
{
	(void)state;
	enum { MIB = 256 };
	LIVE_CHILD c;
	struct stat st;
	char from[64] = BOX ":/tmp/vast";
	free(live_sh_out(box, "truncate -s 256M /tmp/vast"));
	live_start(&c, &(struct live_start){ .argv = (const char *const[]){
						     "cp", from, live_path("vast"), NULL } });
	size_t most = live_child_watch_memory(&c, 100 * 1000);
	live_child_end(&c, 60000);
	live_assert_says(&c, 0, "1 file");
	assert_true(most > 0 && most < (size_t)(MIB / 2) << 20);
	assert_int_equal(stat(live_path("vast"), &st), 0);
	assert_int_equal(st.st_size, (off_t)MIB << 20);
	assert_true(st.st_blocks < 64);
}

/* ---- where the sandbox's user may not write ---- */

static void a_file_and_a_folder_go_where_only_root_may_write(void **state)
{
	(void)state;
	struct sba_error err = { 0 };
	make_tree("rooted");
	must(sba_sandbox_upload(box, live_path("rooted/f"), "/usr/local/made/f", NULL, NULL, &err),
	     &err);
	for (int i = 0; i < 2; i++)
		must(sba_sandbox_upload(box, live_path("rooted"), "/opt", NULL, NULL, &err), &err);
	assert_inside("cat /usr/local/made/f /opt/rooted/f; "
		      "stat -c ' %n %u:%g %a' /opt/rooted /opt/rooted/d /opt/rooted/f; "
		      "ls -A /opt /usr/local | grep -c sandbox-agent; true",
		      "contentcontent /opt/rooted 1000:1000 755\n /opt/rooted/d 1000:1000 555\n"
		      " /opt/rooted/f 1000:1000 640\n0\n");
}

/* What is there keeps its owner and mode, what comes with it is the user's. */
static void a_tree_merges_into_folders_that_are_roots(void **state)
{
	(void)state;
	LIVE_CHILD c;
	make_tree("profile.d");
	rename(live_path("profile.d/d"), live_path("profile.d/new"));
	RUN(&c, "cp", live_path("profile.d"), BOX ":/etc");
	live_assert_says(&c, 0, "/etc/profile.d");
	assert_inside("stat -c '%n %u %a' /etc /etc/profile.d /etc/profile.d/new /etc/profile.d/f",
		      "/etc 0 755\n/etc/profile.d 0 755\n/etc/profile.d/new 1000 555\n"
		      "/etc/profile.d/f 1000 640\n");
}

/* A folder and a file of root's in what the user may write. */
static void what_cannot_all_be_moved_is_not_begun(void **state)
{
	(void)state;
	LIVE_CHILD c, root;
	SBA_BUF struct sba_buf tar = SBA_BUF_INIT(1 << 20);
	make_tree("begun");
	RUN(&root, "exec", "-u", "0", BOX, "--", "sh", "-c",
	    "mkdir -p /tmp/in && mkdir -m 1777 /tmp/in/begun && mkdir /tmp/in/begun/d && "
	    "echo >/tmp/in/begun/f");
	live_assert_says(&root, 0, "");
	tar_file(&tar, "a", "x");
	tar_file(&tar, "f", "x");
	tar_end(&tar);
	live_start(&c,
		   &(struct live_start){
			   .argv = (const char *const[]){ "cp", "-", BOX ":/tmp/in/begun", NULL },
			   .input = tar.data,
			   .input_len = tar.len,
		   });
	live_child_end(&c, 20000);
	live_assert_says(&c, 1, "'f' in '/tmp/in/begun': another's");
	live_child_fini(&c);
	unlink(live_path("begun/f"));
	live_write_file(live_path("begun/d/x"), "x", 1, 0644);
	live_write_file(live_path("begun/a"), "x", 1, 0644);
	RUN(&c, "cp", live_path("begun"), BOX ":/tmp/in");
	live_assert_says(&c, 1, "'d/x' in '/tmp/in/begun': no writing");
	assert_inside("ls -A /tmp/in/begun", "d\nf\n");
}

/* Its owner may not be the user, but the folder's owner may replace it. */
static void anothers_file_in_a_sticky_folder_is_replaced_and_keeps_its_owner(void **state)
{
	(void)state;
	LIVE_CHILD c, again;
	for (int i = 0; i < 2; i++) {
		live_start(&c, &(struct live_start){
				       .argv = (const char *const[]){ "write", "--owner", "33:34",
								      "--mode", "640", BOX,
								      "/tmp/others", NULL },
				       .input = "first",
			       });
		live_child_end(&c, 20000);
		live_assert_says(&c, 0, "");
		live_child_fini(&c);
	}
	live_start(&again,
		   &(struct live_start){
			   .argv = (const char *const[]){ "write", BOX, "/tmp/others", NULL },
			   .input = "second",
		   });
	live_child_end(&again, 20000);
	live_assert_says(&again, 0, "");
	assert_inside("stat -c '%u:%g %a %s' /tmp/others; ls -A /tmp | grep -c sandbox-agent; true",
		      "33:34 640 6\n0\n");
}

static void a_tar_without_folders_makes_them_the_users(void **state)
{
	(void)state;
	LIVE_CHILD c;
	SBA_BUF struct sba_buf tar = SBA_BUF_INIT(1 << 20);
	tar_file(&tar, "of/a/tar", "x");
	tar_end(&tar);
	static const char *const to[] = { BOX ":/tmp", BOX ":/srv", BOX ":/dev/shm" };
	for (size_t i = 0; i < SBA_ARRAY_LEN(to); i++) {
		live_start(&c, &(struct live_start){
				       .argv = (const char *const[]){ "cp", "-", to[i], NULL },
				       .input = tar.data,
				       .input_len = tar.len,
			       });
		live_child_end(&c, 20000);
		live_assert_says(&c, 0, "1 file");
		live_child_fini(&c);
	}
	assert_inside("stat -c '%u:%g %a' /tmp/of/a /srv/of /srv/of/a /srv/of/a/tar /dev/shm/of",
		      "1000:1000 755\n1000:1000 755\n1000:1000 755\n1000:1000 644\n"
		      "1000:1000 755\n");
}

static void what_only_root_may_read_comes_out(void **state)
{
	(void)state;
	struct sba_error err = { 0 };
	must(sba_sandbox_download(box, "/etc/shadow", live_path("shadow"), NULL, NULL, &err), &err);
	SBA_FREE char *text = live_read_file(live_path("shadow"), NULL);
	assert_non_null(strstr(text, "root:"));
}

/* ---- one file ---- */

struct text {
	const char *data;
	size_t left;
	bool breaks;
};

static ssize_t next_text(void *user, void *buf, size_t size, struct sba_error *err)
{
	struct text *t = user;
	size_t n = t->left < size ? t->left : size;
	if (n == 0 && t->breaks)
		return sba_fail(err, SBA_EIO, "the source broke");
	memcpy(buf, t->data, n);
	t->data += n;
	t->left -= n;
	return (ssize_t)n;
}

static int write_text(const char *path, const char *text, const struct sba_write_options *o,
		      struct sba_error *err)
{
	struct text t = { text, strlen(text), false };
	return sba_sandbox_write(box, path, next_text, &t, o, err);
}

static void assert_reads(const char *path, const char *content)
{
	struct sba_error err = { 0 };
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(SBA_MIB);
	must(sba_sandbox_read(box, path, 0, keep, &b, &err), &err);
	assert_string_equal(b.data ? b.data : "", content);
}

static void a_written_file_keeps_its_mode_and_owner(void **state)
{
	(void)state;
	struct sba_error err = { 0 };
	const struct sba_write_options run = { .set_mode = true, .mode = 0750 };
	const struct sba_write_options foreign = { .owner = "7:daemon" };
	must(write_text("/tmp/w/deep/run", "one", &run, &err), &err);
	must(write_text("/tmp/w/deep/run", "two", NULL, &err), &err);
	assert_reads("/tmp/w/deep/run", "two");
	must(write_text("/tmp/w/foreign", "x", &foreign, &err), &err);
	must(write_text("/tmp/w/foreign", "y", NULL, &err), &err);
	assert_reads("/tmp/w/foreign", "y");
	must(write_text("/etc/motd", "welcome", NULL, &err), &err);
	assert_inside("stat -c '%u:%g %a' /tmp/w/deep/run /tmp/w/foreign /etc/motd; "
		      "ls -A /tmp/w /etc | grep -c sandbox-agent; true",
		      "1000:1000 750\n7:1 644\n0:0 644\n0\n");
}

static void a_write_that_breaks_leaves_the_old_file(void **state)
{
	(void)state;
	struct sba_error err = { 0 };
	struct text half = { "half", 4, true };
	must(write_text("/tmp/kept", "whole", NULL, &err), &err);
	assert_int_equal(sba_sandbox_write(box, "/tmp/kept", next_text, &half, NULL, &err),
			 SBA_EIO);
	assert_reads("/tmp/kept", "whole");
}

static void what_is_no_file_is_neither_read_nor_written(void **state)
{
	(void)state;
	struct sba_error err = { 0 };
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(SBA_MIB);
	free(live_sh_out(box, "mkfifo /tmp/pipe"));
	assert_int_equal(sba_sandbox_read(box, "/tmp/pipe", 0, keep, &b, &err), SBA_EREFUSED);
	assert_int_equal(sba_sandbox_read(box, "/tmp", 0, keep, &b, &err), SBA_EREFUSED);
	assert_int_equal(sba_sandbox_read(box, "/tmp/none", 0, keep, &b, &err), SBA_ENOTFOUND);
	assert_int_equal(write_text("/tmp/pipe", "x", NULL, &err), SBA_EREFUSED);
	assert_int_equal(write_text("/tmp", "x", NULL, &err), SBA_EREFUSED);
	assert_int_equal(write_text("/tmp/x/", "x", NULL, &err), SBA_EINVAL);
}

/* C-29. */
static void names_are_bytes_in_the_c_locale(void **state)
{
	(void)state;
	struct sba_error err = { 0 };
	free(live_sh_out(box, "mkdir -p /tmp/names/日本 && cd /tmp/names && echo u >日本/ü.txt && "
			      "echo b >\"$(printf 'x\\377')\""));
	must(sba_sandbox_download(box, "/tmp/names", live_path("names"), NULL, NULL, &err), &err);
	assert_here(live_path("names/日本/ü.txt"), "u\n");
	assert_here(live_path("names/x\xff"), "b\n");
}

/* ---- ends that come early ---- */

static bool staged_inside(void *user)
{
	return !gone_inside(user);
}

/* A client with an upload that never ends by itself, killed in the middle. */
static void killed_upload_into(char *there, char *count, const char *list)
{
	int fds[2];
	char path[64];
	assert_int_equal(pipe(fds), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fds[0]);
	LIVE_CHILD c;
	live_start(&c, &(struct live_start){
			       .argv = (const char *const[]){ "cp", "-", there, NULL },
			       .input = "not yet a tar",
		       });
	live_await(staged_inside, count, 20000);
	kill(c.pid, SIGKILL);
	live_child_end(&c, 20000);
	live_await(gone_inside, count, 20000);
	assert_inside(list, "");
	close(fds[0]);
	close(fds[1]);
}

static void a_killed_upload_leaves_nothing_under_the_final_name(void **state)
{
	(void)state;
	static char users[] = BOX ":/tmp/up", roots[] = BOX ":/media";
	static char count[] = "ls -A /tmp/up | grep -c sandbox-agent-put; true";
	static char count_roots[] = "ls -A /media | grep -c sandbox-agent-put; true";
	free(live_sh_out(box, "mkdir -p /tmp/up"));
	killed_upload_into(users, count, "ls -A /tmp/up");
	killed_upload_into(roots, count_roots, "ls -A /media");
}

/* C-52: it holds the engine's lock for no longer than SBA_AHEAD_FULL_MS. */
static void a_reader_that_stops_does_not_lock_the_sandbox(void **state)
{
	(void)state;
	char from[64] = BOX ":/tmp/large";
	struct sba_error err = { 0 };
	free(live_sh_out(box, "head -c 50000000 /dev/urandom >/tmp/large"));
	LIVE_CHILD c;
	live_start(&c,
		   &(struct live_start){ .argv = (const char *const[]){ "cp", from, "-", NULL } });
	struct pollfd begun = { .fd = c.out_fd, .events = POLLIN };
	assert_int_equal(poll(&begun, 1, 20000), 1);
	json_t *j = NULL;
	must(sba_container_inspect(live.engine, sba_sandbox_container(box), sba_until_in(50000), &j,
				   &err),
	     &err);
	json_decref(j);
	kill(c.pid, SIGTERM);
	live_child_end(&c, 40000);
}

static void an_engine_that_goes_in_the_middle_leaves_nothing_here(void **state)
{
	(void)state;
	struct live_proxy *proxy = live_proxy_start();
	char from[64] = BOX ":/tmp/large", host[256];
	snprintf(host, sizeof(host), "%s", live_proxy_host(proxy));
	LIVE_CHILD c;
	live_start(&c,
		   &(struct live_start){ .argv = (const char *const[]){ "-H", host, "cp", from,
									live_path("cut"), NULL } });
	live_proxy_cut(proxy);
	live_child_end(&c, 40000);
	assert_true(c.status != 0);
	assert_int_equal(access(live_path("cut"), F_OK), -1);
	live_proxy_stop(proxy);
}

/* ---- the program ---- */

static void cp_takes_and_yields_tars(void **state)
{
	(void)state;
	char from[64] = BOX ":/tmp/tarred", to[64] = BOX ":/tmp/untarred";
	free(live_sh_out(box, "mkdir -p /tmp/tarred/d /tmp/untarred && echo x >/tmp/tarred/d/f && "
			      "ln -s d/f /tmp/tarred/l && ln -s /etc /tmp/tarred/out"));
	LIVE_CHILD out;
	RUN(&out, "cp", from, "-");
	live_assert_says(&out, 0, "");
	LIVE_CHILD in;
	live_start(&in, &(struct live_start){
				.argv = (const char *const[]){ "cp", "-", to, NULL },
				.input = out.out.data,
				.input_len = out.out.len,
			});
	live_child_end(&in, 30000);
	live_assert_says(&in, 0, "1 link that leads out");
	assert_inside("cd /tmp/untarred/tarred && cat d/f && readlink l && ls out 2>&1 | wc -l && "
		      "stat -c %u d/f",
		      "x\nd/f\n1\n1000\n");
}

/* "UID:GID" by the header of that name; the caller frees. */
static char *owner_in(const struct sba_buf *tar, const char *name)
{
	char *ret = NULL;
	for (size_t at = 0; at + 512 <= tar->len && !ret; at += 512) {
		const char *h = tar->data + at;
		if (memcmp(h + 257, "ustar", 5) == 0 && strcmp(h, name) == 0 &&
		    asprintf(&ret, "%ld:%ld", strtol(h + 108, NULL, 8), strtol(h + 116, NULL, 8)) <
			    0)
			fail();
	}
	if (!ret)
		fail_msg("%s is not in it", name);
	return ret;
}

static void assert_owner_in(const struct sba_buf *tar, const char *name, const char *owner)
{
	SBA_FREE char *said = owner_in(tar, name);
	assert_string_equal(said, owner);
}

static void a_tar_tells_whose_each_file_is(void **state)
{
	(void)state;
	static const char *const places[] = { "/srv/whose", "/dev/shm/whose" };
	for (size_t i = 0; i < SBA_ARRAY_LEN(places); i++) {
		struct sba_error err = { 0 };
		char script[256];
		snprintf(script, sizeof(script),
			 "umask 022; mkdir -p %s/in && cd %s && chmod 777 . in && echo r >root && "
			 "echo s >in/root",
			 places[i], places[i]);
		const char *const argv[] = { "sh", "-c", script, NULL };
		const struct sba_exec_options as_root = { .argv = argv, .user = "0:0" };
		LIVE_RESULT r = { 0 };
		live_exec(box, &as_root, &r);
		live_assert_exit(&r, 0);
		snprintf(script, sizeof(script), "cd %s && echo u >user && ln -s f in/link",
			 places[i]);
		free(live_sh_out(box, script));
		SBA_BUF struct sba_buf tar = SBA_BUF_INIT(1 << 20);
		must(sba_sandbox_download_tar(box, places[i], keep, &tar, NULL, &err), &err);
		assert_owner_in(&tar, "whose/root", "0:0");
		assert_owner_in(&tar, "whose/user", "1000:1000");
		assert_owner_in(&tar, "whose/in/root", "0:0");
		assert_owner_in(&tar, "whose/in/link", "1000:1000");
	}
}

static void a_tar_of_nothing_is_no_error(void **state)
{
	static const char nothing[1024]; /* the end of a tar */
	static const char *const to[] = { BOX ":/tmp", BOX ":/media", BOX ":/dev/shm" };
	(void)state;
	for (size_t i = 0; i < SBA_ARRAY_LEN(to); i++) {
		LIVE_CHILD c;
		live_start(&c, &(struct live_start){
				       .argv = (const char *const[]){ "cp", "-", to[i], NULL },
				       .input = nothing,
				       .input_len = sizeof(nothing),
			       });
		live_child_end(&c, 30000);
		live_assert_says(&c, 0, "0 files");
	}
}

/* As `docker cp NAME:FOLDER/. -`; on a tmpfs the guest makes the tar. */
static void a_tar_of_what_is_in_a_folder_has_not_its_name(void **state)
{
	(void)state;
	static const char *const from[] = { "/tmp/within", "/dev/shm/within" };
	const struct sba_transfer_options contents = { .contents = true };
	for (size_t i = 0; i < SBA_ARRAY_LEN(from); i++) {
		SBA_BUF struct sba_buf tar = SBA_BUF_INIT(1 << 20);
		struct sba_error err = { 0 };
		char script[128];
		snprintf(script, sizeof(script), "mkdir %s && echo x >%s/f", from[i], from[i]);
		free(live_sh_out(box, script));
		must(sba_sandbox_download_tar(box, from[i], keep, &tar, &contents, &err), &err);
		/* Podman has no entry for the folder itself, and names without "./". */
		bool podman = sba_engine_podman(live.engine) && tar.data[0] == 'f';
		if (!podman) {
			assert_memory_equal(tar.data, i == 0 ? "./" : ".\0", 2);
			assert_non_null(memmem(tar.data, tar.len, "./f\0", 4));
		}
		assert_null(memmem(tar.data, tar.len, "within", 6));
		sba_buf_reset(&tar);
		must(sba_sandbox_download_tar(box, from[i], keep, &tar, NULL, &err), &err);
		assert_memory_equal(tar.data, "within", 6);
	}
}

/* As `cat` does, by its status alone. */
static void a_reader_that_has_seen_enough_is_no_error(void **state)
{
	(void)state;
	static const char *const ways[][4] = { { "read", BOX, "/tmp/enough", NULL },
					       { "cp", BOX ":/tmp/enough", "-", NULL } };
	free(live_sh_out(box, "head -c 3000000 /dev/zero >/tmp/enough"));
	for (size_t i = 0; i < SBA_ARRAY_LEN(ways); i++) {
		LIVE_CHILD c;
		live_start(&c, &(struct live_start){ .argv = ways[i], .close_stdout = true });
		live_child_end(&c, 20000);
		assert_int_equal(c.status, 1);
		assert_int_equal(c.err.len, 0);
	}
}

static void cp_merges_and_keeps_and_excludes(void **state)
{
	(void)state;
	char to[64] = BOX ":/tmp/merge", from[256];
	make_tree("merge");
	free(live_sh_out(box, "mkdir -p /tmp/merge/merge && echo mine >/tmp/merge/merge/f"));
	LIVE_CHILD kept;
	RUN(&kept, "cp", "-n", live_path("merge"), to);
	live_assert_says(&kept, 0, "1 kept");
	assert_inside("cat /tmp/merge/merge/f", "mine\n");
	snprintf(from, sizeof(from), "%s/.", live_path("merge"));
	LIVE_CHILD some;
	RUN(&some, "cp", "--exclude", "d/", from, to);
	live_assert_says(&some, 0, "1 file");
	assert_inside("cat /tmp/merge/f; ls /tmp/merge", "contentf\nmerge\n");
	LIVE_CHILD both;
	RUN(&both, "cp", BOX ":/tmp", BOX ":/tmp/x");
	live_assert_says(&both, 2, "cp - B:PATH");
}

/* C-112 */
static void escapes_in_a_refused_name_are_shown_on_one_line(void **state)
{
	(void)state;
	LIVE_CHILD c;
	free(live_sh_out(box, "mkdir /tmp/esc && cd /tmp/esc && "
			      "ln -s /x \"$(printf 'a\\033[2K\\nerror: b')\""));
	RUN(&c, "cp", "-v", BOX ":/tmp/esc", live_path("esc"));
	live_assert_says(&c, 0, "refused: esc/a\\x1b[2K\\nerror: b (symbolic link)");
	assert_null(strchr(c.err.data, '\033'));
}

/* C-19, C-20 */
static void a_copy_to_nowhere_says_so_at_once_whatever_its_size(void **state)
{
	(void)state;
	static char large[5 << 20];
	char there[64] = BOX ":/no/dir/";
	live_write_file(live_path("tiny"), "x", 1, 0644);
	live_write_file(live_path("large"), large, sizeof(large), 0644);
	LIVE_CHILD a, b, c;
	RUN(&a, "cp", live_path("tiny"), there);
	live_assert_says(&a, 1, "no such folder: '" BOX ":/no/dir/'");
	RUN(&b, "cp", live_path("large"), there);
	live_assert_says(&b, 1, "no such folder: '" BOX ":/no/dir/'");
	RUN(&c, "cp", live_path("large"), "gone-owl:/tmp/x");
	live_assert_says(&c, 1, "gone-owl");
	assert_true(c.took_ms < 5000);
}

static void read_and_write_are_exact_and_of_any_size(void **state)
{
	(void)state;
	SBA_FREE char *data = malloc(BIG);
	for (size_t i = 0; i < BIG; i++)
		data[i] = (char)(i * 7 + i / 251);
	LIVE_CHILD in;
	live_start(&in, &(struct live_start){
				.argv = (const char *const[]){ "write", BOX, "/tmp/exact", "--mode",
							       "604", NULL },
				.input = data,
				.input_len = BIG,
			});
	live_child_end(&in, 60000);
	live_assert_says(&in, 0, "");
	LIVE_CHILD out;
	RUN(&out, "read", BOX, "/tmp/exact");
	live_assert_says(&out, 0, "");
	assert_int_equal(out.out.len, BIG);
	assert_memory_equal(out.out.data, data, BIG);
	assert_inside("stat -c %a /tmp/exact", "604\n");
	LIVE_CHILD none;
	RUN(&none, "read", BOX, "/tmp/none");
	live_assert_says(&none, 1, "no such file");
	LIVE_CHILD mode;
	RUN(&mode, "write", BOX, "/tmp/none", "--mode", "rwx");
	live_assert_says(&mode, 2, "no octal mode");
}

static void the_shared_sandbox_is_removed_and_nothing_is_left(void **state)
{
	live_remove(box);
	live_nothing_is_left(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE_STEP(a_tree_on_a_tmpfs_goes_in_and_comes_back),
		LIVE_STEP(a_folder_with_a_mount_below_comes_whole),
		LIVE_STEP(a_file_of_proc_comes_with_its_content),
		LIVE_STEP(a_tree_beyond_path_max_goes_in_and_comes_back),
		LIVE_STEP(a_tar_beyond_path_max_is_refused_with_words_and_leaves_nothing),
		LIVE_STEP(holes_that_go_in_stay_holes),
		LIVE_STEP(a_download_larger_than_memory_needs_little_of_it),
		LIVE_STEP(a_file_and_a_folder_go_where_only_root_may_write),
		LIVE_STEP(a_tree_merges_into_folders_that_are_roots),
		LIVE_STEP(what_cannot_all_be_moved_is_not_begun),
		LIVE_STEP(anothers_file_in_a_sticky_folder_is_replaced_and_keeps_its_owner),
		LIVE_STEP(a_tar_without_folders_makes_them_the_users),
		LIVE_STEP(what_only_root_may_read_comes_out),
		LIVE_STEP(a_written_file_keeps_its_mode_and_owner),
		LIVE_STEP(a_write_that_breaks_leaves_the_old_file),
		LIVE_STEP(what_is_no_file_is_neither_read_nor_written),
		LIVE_STEP(names_are_bytes_in_the_c_locale),
		LIVE_STEP(a_killed_upload_leaves_nothing_under_the_final_name),
		LIVE_STEP(a_reader_that_stops_does_not_lock_the_sandbox),
		LIVE_STEP(an_engine_that_goes_in_the_middle_leaves_nothing_here),
		LIVE_STEP(cp_takes_and_yields_tars),
		LIVE_STEP(a_tar_tells_whose_each_file_is),
		LIVE_STEP(a_tar_of_nothing_is_no_error),
		LIVE_STEP(a_tar_of_what_is_in_a_folder_has_not_its_name),
		LIVE_STEP(a_reader_that_has_seen_enough_is_no_error),
		LIVE_STEP(cp_merges_and_keeps_and_excludes),
		LIVE_STEP(escapes_in_a_refused_name_are_shown_on_one_line),
		LIVE_STEP(a_copy_to_nowhere_says_so_at_once_whatever_its_size),
		LIVE_STEP(read_and_write_are_exact_and_of_any_size),
		LIVE_STEP(the_shared_sandbox_is_removed_and_nothing_is_left),
	};
	return live_run(tests, begin, live_end);
}
