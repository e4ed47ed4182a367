/* SPDX-License-Identifier: MIT */
/*
 * The packer, read by libarchive's judge: what is packed here lands there the
 * same, and what must not travel stays. Also the one file out of a tar.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/limits.h"
#include "support/land_world.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* A world whose work/src is to be packed. */
struct pack_world {
	struct world w;
	char src[128];
	struct sba_pack *pack;
	struct sba_error err;
};

static struct pack_world *begin(void)
{
	static struct pack_world p;
	static const struct sba_pack_options options = { .uid = 7, .gid = 8, .fixed_mtime = -1 };
	p = (struct pack_world){ 0 };
	world_open(&p.w, false);
	world_path(p.src, sizeof(p.src), "%s/work/src", p.w.root);
	assert_int_equal(mkdir(p.src, 0755), 0);
	assert_int_equal(sba_pack_new(&options, &p.pack, &p.err), 0);
	return &p;
}

static void end(struct pack_world *p)
{
	sba_pack_free(p->pack);
	world_close(&p->w);
}

static void make_dir(const struct pack_world *p, const char *name, mode_t mode)
{
	char path[512];
	world_path(path, sizeof(path), "%s/%s", p->src, name);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(chmod(path, mode), 0);
}

static void make_file(const struct pack_world *p, const char *name, const char *content,
		      mode_t mode)
{
	char path[512];
	world_path(path, sizeof(path), "%s/%s", p->src, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, content, strlen(content)), strlen(content));
	const struct timespec times[2] = { { .tv_sec = 1000 }, { .tv_sec = 123456 } };
	assert_int_equal(fchmod(fd, mode), 0);
	assert_int_equal(futimens(fd, times), 0);
	close(fd);
}

static void make_link(const struct pack_world *p, const char *name, const char *target)
{
	char path[512];
	world_path(path, sizeof(path), "%s/%s", p->src, name);
	assert_int_equal(symlink(target, path), 0);
}

/* Reads the tar in pieces of `piece` bytes into the world's tar. */
static int read_all(struct pack_world *p, size_t piece)
{
	char buf[70000];
	ssize_t n;
	sba_buf_reset(&p->w.tar);
	while ((n = sba_pack_read(p->pack, buf, piece, &p->err)) > 0) {
		assert_true((size_t)n <= piece);
		sba_buf_put(&p->w.tar, buf, (size_t)n);
	}
	if (n == 0)
		assert_int_equal(p->w.tar.len % 512, 0);
	return (int)n;
}

/* The names in the tar's headers, each followed by its type and a space. */
static void list(const struct sba_buf *tar, struct sba_buf *ret)
{
	for (size_t at = 0; at + 512 <= tar->len && tar->data[at];) {
		const char *h = tar->data + at;
		unsigned long size = strtoul(h + 124, NULL, 8);
		sba_buf_printf(ret, "%.100s:%c ", h, h[156]);
		at += 512 + (size + 511) / 512 * 512;
	}
}

static void assert_names(struct pack_world *p, const char *names)
{
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(1 << 20);
	assert_int_equal(read_all(p, 70000), 0);
	list(&p->w.tar, &b);
	assert_string_equal(b.data ? b.data : "", names);
}

static int land_read(struct pack_world *p)
{
	struct tar_feed feed = tar_feed_of(&p->w.tar);
	return world_land_from(&p->w, &feed);
}

/* ---- trees ---- */

static void a_packed_tree_lands_as_it_was(void **state)
{
	(void)state;
	struct pack_world *p = begin();
	char name[256];
	memset(name, 'n', 255);
	name[255] = '\0';
	make_dir(p, "d", 0711);
	make_dir(p, "d/e", 0755);
	make_file(p, "d/e/f", "content", 0640);
	make_file(p, "d/\xFFnew\nline", "bytes", 0600);
	make_file(p, name, "long", 0644);
	make_file(p, "exact", "", 0755);
	assert_int_equal(sba_pack_path(p->pack, "s", p->src, &p->err), 0);
	assert_int_equal(read_all(p, 1), 0);
	assert_int_equal(land_read(p), 0);
	assert_int_equal(world_refused(&p->w), 0);
	world_assert_content(&p->w, "out/d/e/f", "content");
	world_assert_content(&p->w, "out/d/\xFFnew\nline", "bytes");
	assert_int_equal(world_stat(&p->w, "out/d").st_mode, S_IFDIR | 0711);
	struct stat st = world_stat(&p->w, "out/d/e/f");
	assert_int_equal(st.st_mode, S_IFREG | 0640);
	assert_int_equal(st.st_mtim.tv_sec, 123456);
	assert_int_equal(p->w.report.files, 4);
	end(p);
}

static void names_come_sorted_and_parents_first(void **state)
{
	(void)state;
	struct pack_world *p = begin();
	make_file(p, "b", "", 0644);
	make_dir(p, "a", 0755);
	make_file(p, "a/z", "", 0644);
	make_file(p, "a/y", "", 0644);
	make_file(p, "a.txt", "", 0644);
	assert_int_equal(sba_pack_path(p->pack, "s", p->src, &p->err), 0);
	assert_names(p, "s/:5 s/a/:5 s/a/y:0 s/a/z:0 s/a.txt:0 s/b:0 ");
	end(p);
}

static void a_tree_without_a_name_is_packed_at_the_root(void **state)
{
	(void)state;
	struct pack_world *p = begin();
	make_file(p, "b", "", 0644);
	make_link(p, "l", "../b");
	assert_int_equal(sba_pack_path(p->pack, "", p->src, &p->err), 0);
	assert_names(p, "b:0 ");
	end(p);
}

/* C-31: dangling links, a fifo. */
static void symlinks_that_lead_out_and_special_files_are_left_out_and_counted(void **state)
{
	(void)state;
	struct pack_world *p = begin();
	char path[512];
	struct sba_pack_report report;
	make_dir(p, "d", 0755);
	make_link(p, "absolute", "/etc/passwd");
	make_link(p, "up", "../x");
	make_link(p, "d/up", "../../x");
	make_link(p, "d/winding", "../d/../../x");
	make_link(p, "d/inside", "../dangling");
	make_link(p, "here", "d/../here2");
	world_path(path, sizeof(path), "%s/fifo", p->src);
	assert_int_equal(mkfifo(path, 0644), 0);
	assert_int_equal(sba_pack_path(p->pack, "s", p->src, &p->err), 0);
	assert_names(p, "s/:5 s/d/:5 s/d/inside:2 s/here:2 ");
	sba_pack_report_get(p->pack, &report);
	assert_int_equal(report.left_out, 5);
	assert_int_equal(report.symlinks, 2);
	assert_int_equal(report.directories, 2);
	end(p);
}

static void set_id_bits_and_host_owners_stay_here(void **state)
{
	(void)state;
	struct pack_world *p = begin();
	make_file(p, "f", "x", 06755);
	assert_int_equal(sba_pack_path(p->pack, "s", p->src, &p->err), 0);
	sba_pack_owner(p->pack, 1000, 3000000);
	assert_int_equal(sba_pack_dir(p->pack, "late", 0700, &p->err), 0);
	assert_int_equal(read_all(p, 512), 0);
	const char *f = p->w.tar.data + 512; /* after s/ */
	assert_string_equal(f + 100, "0000755");
	assert_string_equal(f + 108, "0000007");
	assert_string_equal(f + 116, "0000010");
	assert_string_equal(f + 265, "");
	const char *pax = f + 1024;
	assert_int_equal(pax[156], 'x');
	assert_non_null(strstr(pax + 512, "gid=3000000\n"));
	assert_string_equal(pax + 1024 + 108, "0001750");
	end(p);
}

static void a_deep_tree_within_the_limit_is_packed_and_beyond_is_an_error(void **state)
{
	(void)state;
	struct pack_world *p = begin();
	char path[300] = "d";
	for (int i = 1; i < SBA_PACK_DEPTH_MAX; i++) {
		make_dir(p, path, 0755);
		memcpy(path + strlen(path), "/d", 3);
	}
	assert_int_equal(sba_pack_path(p->pack, "s", p->src, &p->err), 0);
	assert_int_equal(read_all(p, 70000), 0);
	make_dir(p, path, 0755);
	assert_int_equal(sba_pack_path(p->pack, "s", p->src, &p->err), 0);
	sba_pack_free(p->pack);
	static const struct sba_pack_options options = { .fixed_mtime = 0 };
	assert_int_equal(sba_pack_new(&options, &p->pack, &p->err), 0);
	assert_int_equal(sba_pack_path(p->pack, "s", p->src, &p->err), 0);
	assert_int_equal(read_all(p, 70000), SBA_ELIMIT);
	end(p);
}

/* ---- lists ---- */

static void listed_paths_come_with_their_parents_and_nothing_else(void **state)
{
	(void)state;
	struct pack_world *p = begin();
	static const char *const only[] = { "d/e/g", "d/e/f",  "gone",   "d/e/f", "gone/too",
					    "top",   "link/x", "file/x", NULL };
	make_dir(p, "d", 0755);
	make_dir(p, "d/e", 0700);
	make_file(p, "d/e/f", "f", 0644);
	make_file(p, "d/e/g", "g", 0644);
	make_file(p, "d/ignored", "no", 0644);
	make_file(p, "top", "t", 0644);
	make_file(p, "file", "t", 0644);
	make_link(p, "link", "d");
	assert_int_equal(sba_pack_paths(p->pack, "s", p->src, only, &p->err), 0);
	assert_names(p, "s/:5 s/d/:5 s/d/e/:5 s/d/e/f:0 s/d/e/g:0 s/top:0 ");
	end(p);
}

static void an_empty_list_packs_no_file(void **state)
{
	(void)state;
	struct pack_world *p = begin();
	static const char *const only[] = { NULL };
	make_file(p, "secret", "x", 0644);
	assert_int_equal(sba_pack_paths(p->pack, "s", p->src, only, &p->err), 0);
	assert_names(p, "s/:5 ");
	end(p);
}

static void listed_paths_that_lead_out_are_an_error(void **state)
{
	(void)state;
	struct pack_world *p = begin();
	static const char *const bad[] = { "../x", "/etc/passwd", "a/../../x", "", "a//b", "./a" };
	for (size_t i = 0; i < SBA_ARRAY_LEN(bad); i++) {
		const char *const only[] = { bad[i], NULL };
		assert_int_equal(sba_pack_paths(p->pack, "s", p->src, only, &p->err), SBA_EINVAL);
	}
	end(p);
}

/* ---- the queue ---- */

static void entries_in_memory_come_in_their_order(void **state)
{
	(void)state;
	struct pack_world *p = begin();
	char data[] = "copied";
	static const char lent[] = "lent";
	assert_int_equal(sba_pack_dir(p->pack, "s", 0755, &p->err), 0);
	assert_int_equal(sba_pack_bytes(p->pack, "s/a", data, 6, 0600, &p->err), 0);
	memset(data, 'X', 6);
	assert_int_equal(sba_pack_bytes(p->pack, "s/empty", NULL, 0, 0644, &p->err), 0);
	assert_int_equal(sba_pack_lent(p->pack, "s/lent", lent, 4, 0644, &p->err), 0);
	assert_names(p, "s/:5 s/a:0 s/empty:0 s/lent:0 ");
	assert_int_equal(land_read(p), 0);
	world_assert_content(&p->w, "out/a", "copied");
	world_assert_content(&p->w, "out/lent", "lent");
	world_assert_content(&p->w, "out/empty", "");
	end(p);
}

static void a_hundred_thousand_entries_are_no_problem(void **state)
{
	(void)state;
	struct pack_world *p = begin();
	struct sba_pack_report report;
	char name[32];
	for (int i = 0; i < 100000; i++) {
		world_path(name, sizeof(name), "s/%d", i);
		assert_int_equal(sba_pack_bytes(p->pack, name, "x", 1, 0644, &p->err), 0);
	}
	char buf[65536];
	while (sba_pack_read(p->pack, buf, sizeof(buf), &p->err) > 0)
		;
	sba_pack_report_get(p->pack, &report);
	assert_int_equal(report.files, 100000);
	assert_int_equal(report.bytes, 100000);
	end(p);
}

static void names_that_lead_out_are_not_packed(void **state)
{
	(void)state;
	struct pack_world *p = begin();
	static const char *const bad[] = { "/x", "../x", "x/../y", "x/", "", "." };
	for (size_t i = 0; i < SBA_ARRAY_LEN(bad); i++)
		assert_int_equal(sba_pack_bytes(p->pack, bad[i], "", 0, 0, &p->err), SBA_EINVAL);
	end(p);
}

/* ---- errors ---- */

static void a_file_that_shrinks_is_an_error_that_stays(void **state)
{
	(void)state;
	struct pack_world *p = begin();
	char path[512], buf[512];
	make_file(p, "f", "twelve bytes", 0644);
	world_path(path, sizeof(path), "%s/f", p->src);
	assert_int_equal(sba_pack_path(p->pack, "f", path, &p->err), 0);
	assert_int_equal(sba_pack_read(p->pack, buf, sizeof(buf), &p->err), 512);
	assert_int_equal(truncate(path, 3), 0);
	assert_int_equal(read_all(p, 512), SBA_EIO);
	assert_non_null(strstr(p->err.text, "shorter"));
	assert_int_equal(sba_pack_read(p->pack, buf, sizeof(buf), &p->err), SBA_EIO);
	end(p);
}

static void refuses_as_unfit(const struct sba_pack_options *o, const char *words)
{
	struct pack_world *p = begin();
	struct sba_pack_report report;
	char path[512];
	sba_pack_free(p->pack);
	assert_int_equal(sba_pack_new(o, &p->pack, &p->err), 0);
	make_dir(p, "of-twenty-bytes-here", 0755);
	make_file(p, "of-twenty-bytes-here/sparse", "begin", 0644);
	world_path(path, sizeof(path), "%s/of-twenty-bytes-here/sparse", p->src);
	assert_int_equal(truncate(path, 1 << 20), 0);
	assert_int_equal(sba_pack_path(p->pack, "s", p->src, &p->err), 0);
	int rc = read_all(p, 512);
	sba_pack_report_get(p->pack, &report);
	assert_int_equal(rc, words ? SBA_EUNSUPPORTED : 0);
	assert_int_equal(report.unfit, words != NULL);
	if (words)
		assert_non_null(strstr(p->err.text, words));
	end(p);
}

static void what_the_other_side_cannot_take_is_told_before_it_is_sent(void **state)
{
	(void)state;
	refuses_as_unfit(&(struct sba_pack_options){ .name_max = 28 }, "a path of 29 bytes");
	refuses_as_unfit(&(struct sba_pack_options){ .name_max = 29 }, NULL);
	refuses_as_unfit(&(struct sba_pack_options){ .hole_max = 1 << 19 }, "holes");
	refuses_as_unfit(&(struct sba_pack_options){ .hole_max = 1 << 20 }, NULL);
}

static void a_missing_path_is_told_before_anything_is_sent(void **state)
{
	(void)state;
	struct pack_world *p = begin();
	char path[512];
	world_path(path, sizeof(path), "%s/none", p->src);
	assert_int_equal(sba_pack_path(p->pack, "f", path, &p->err), SBA_ENOTFOUND);
	world_path(path, sizeof(path), "%s/fifo", p->src);
	assert_int_equal(mkfifo(path, 0644), 0);
	assert_int_equal(sba_pack_path(p->pack, "f", path, &p->err), SBA_EREFUSED);
	end(p);
}

static int read_without_root(struct pack_world *p)
{
	int status;
	assert_int_equal(chmod(p->w.root, 0755), 0);
	pid_t pid = fork();
	if (pid == 0) {
		if (geteuid() == 0 && setresuid(65534, 65534, 65534) < 0)
			_exit(99);
		int rc = read_all(p, 512);
		_exit(rc == SBA_EIO && strstr(p->err.text, "s/unreadable") ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 98;
}

/* C-31. */
static void an_unreadable_file_is_an_error_that_names_it(void **state)
{
	(void)state;
	struct pack_world *p = begin();
	make_file(p, "unreadable", "x", 0);
	assert_int_equal(sba_pack_path(p->pack, "s", p->src, &p->err), 0);
	assert_int_equal(read_without_root(p), 0);
	end(p);
}

/* ---- one file ---- */

static int one_file(struct world *w, size_t max, struct sba_buf *ret)
{
	tar_end(&w->tar);
	struct tar_feed feed = tar_feed_of(&w->tar);
	int rc = sba_tar_one_file(tar_feed_read, &feed, max, ret, &w->err);
	sba_buf_reset(&w->tar);
	return rc;
}

static void one_file_comes_into_memory_whole_or_not_at_all(void **state)
{
	(void)state;
	struct pack_world *p = begin();
	struct world *w = &p->w;
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(100);
	tar_file(&w->tar, "any", "hello");
	assert_int_equal(one_file(w, 5, &b), 0);
	assert_string_equal(b.data, "hello");
	tar_file(&w->tar, "any", "hello");
	assert_int_equal(one_file(w, 4, &b), SBA_ELIMIT);
	tar_file(&w->tar, "a", "1");
	tar_file(&w->tar, "b", "2");
	assert_int_equal(one_file(w, 5, &b), SBA_EREFUSED);
	tar_add(&w->tar, &(struct tar_entry){ .type = '2', .name = "l", .link = "/etc/passwd" });
	assert_int_equal(one_file(w, 5, &b), SBA_EREFUSED);
	tar_dir(&w->tar, "d/");
	assert_int_equal(one_file(w, 5, &b), SBA_EREFUSED);
	assert_int_equal(one_file(w, 5, &b), SBA_ENOTFOUND);
	tar_sparse(&w->tar, "holes", 20, 10, "x");
	assert_int_equal(one_file(w, 20, &b), 0);
	assert_int_equal(b.len, 25);
	assert_memory_equal(b.data, "hello\0\0\0\0\0\0\0\0\0\0x\0\0\0\0\0\0\0\0\0", 25);
	end(p);
}

static void one_file_cut_short_is_an_error(void **state)
{
	(void)state;
	struct pack_world *p = begin();
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(100);
	tar_file(&p->w.tar, "any", "hello");
	struct tar_feed feed = tar_feed_of(&p->w.tar);
	feed.len = 515;
	assert_int_equal(sba_tar_one_file(tar_feed_read, &feed, 50, &b, &p->err), SBA_EPROTO);
	assert_int_equal(b.len, 0);
	feed = tar_feed_of(&p->w.tar);
	feed.fail_at = 515;
	assert_int_equal(sba_tar_one_file(tar_feed_read, &feed, 50, &b, &p->err), SBA_ELOST);
	end(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_packed_tree_lands_as_it_was),
		cmocka_unit_test(names_come_sorted_and_parents_first),
		cmocka_unit_test(a_tree_without_a_name_is_packed_at_the_root),
		cmocka_unit_test(symlinks_that_lead_out_and_special_files_are_left_out_and_counted),
		cmocka_unit_test(set_id_bits_and_host_owners_stay_here),
		cmocka_unit_test(a_deep_tree_within_the_limit_is_packed_and_beyond_is_an_error),
		cmocka_unit_test(listed_paths_come_with_their_parents_and_nothing_else),
		cmocka_unit_test(an_empty_list_packs_no_file),
		cmocka_unit_test(listed_paths_that_lead_out_are_an_error),
		cmocka_unit_test(entries_in_memory_come_in_their_order),
		cmocka_unit_test(a_hundred_thousand_entries_are_no_problem),
		cmocka_unit_test(names_that_lead_out_are_not_packed),
		cmocka_unit_test(a_file_that_shrinks_is_an_error_that_stays),
		cmocka_unit_test(what_the_other_side_cannot_take_is_told_before_it_is_sent),
		cmocka_unit_test(a_missing_path_is_told_before_anything_is_sent),
		cmocka_unit_test(an_unreadable_file_is_an_error_that_names_it),
		cmocka_unit_test(one_file_comes_into_memory_whole_or_not_at_all),
		cmocka_unit_test(one_file_cut_short_is_an_error),
	};
	return cmocka_run_group_tests_name("pack", tests, NULL, NULL);
}
