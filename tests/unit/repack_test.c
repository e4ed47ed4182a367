/* SPDX-License-Identifier: MIT */
/*
 * A tar that a user gives, made anew: names stay within it, owners are the
 * sandbox's, and nothing special comes along.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/limits.h"
#include "support/land_world.h"

#include <stdlib.h>
#include <string.h>

struct left_out {
	unsigned n;
	enum sba_refusal last;
};

static void on_left_out(void *user, const char *name, enum sba_refusal why)
{
	struct left_out *l = user;
	(void)name;
	l->n++;
	l->last = why;
}

/* "name:type:mode:uid " of each header. */
static void list(const struct sba_buf *tar, struct sba_buf *ret)
{
	for (size_t at = 0; at + 512 <= tar->len && tar->data[at];) {
		const char *h = tar->data + at;
		unsigned long size = strtoul(h + 124, NULL, 8);
		sba_buf_printf(ret, "%.100s:%c:%lo:%lu ", h, h[156], strtoul(h + 100, NULL, 8),
			       strtoul(h + 108, NULL, 8));
		at += 512 + (size + 511) / 512 * 512;
	}
}

static int repack(struct sba_buf *tar, size_t piece, const struct sba_pack_options *o,
		  struct sba_buf *ret, struct sba_error *err)
{
	struct tar_feed feed = tar_feed_of(tar);
	struct sba_repack *r;
	char buf[4096];
	ssize_t n;
	feed.piece = piece;
	assert_int_equal(sba_repack_new(o, tar_feed_read, &feed, &r, err), 0);
	while ((n = sba_repack_read(r, buf, sizeof(buf), err)) > 0)
		sba_buf_put(ret, buf, (size_t)n);
	sba_repack_free(r);
	return (int)n;
}

static void a_folder_around_everything_is_taken_off(void **state)
{
	(void)state;
	SBA_BUF struct sba_buf in = SBA_BUF_INIT(1 << 20), out = SBA_BUF_INIT(1 << 20),
			       names = SBA_BUF_INIT(1 << 20);
	struct sba_error err = { 0 };
	struct left_out left = { 0 };
	const struct sba_pack_options o = {
		.fixed_mtime = -1, .beneath = "work", .left_out = on_left_out, .user = &left
	};
	tar_dir(&in, "work");
	tar_file(&in, "work/a", "x");
	tar_add(&in, &(struct tar_entry){ .type = '1', .name = "work/hard", .link = "work/a" });
	tar_add(&in, &(struct tar_entry){ .type = '2', .name = "work/out", .link = "../etc" });
	tar_file(&in, "workbench", "beside it");
	tar_end(&in);
	assert_int_equal(repack(&in, 0, &o, &out, &err), 0);
	list(&out, &names);
	assert_string_equal(names.data, "a:0:644:0 hard:1:644:0 ");
	assert_int_equal(left.n, 2);
}

static void names_are_cleaned_and_owners_ours(void **state)
{
	(void)state;
	SBA_BUF struct sba_buf in = SBA_BUF_INIT(1 << 20), out = SBA_BUF_INIT(1 << 20),
			       names = SBA_BUF_INIT(1 << 20);
	struct sba_error err = { 0 };
	const struct sba_pack_options o = { .uid = 7, .gid = 8, .fixed_mtime = -1 };
	tar_dir(&in, "./");
	tar_add(&in, &(struct tar_entry){ .name = "./a", .mode = 06755, .data = "x", .size = 1 });
	tar_file(&in, "/abs/b", "y");
	tar_add(&in, &(struct tar_entry){ .type = '1', .name = "hard", .link = "./a" });
	tar_add(&in, &(struct tar_entry){ .type = '2', .name = "d/l", .link = "../a" });
	tar_end(&in);
	for (size_t piece = 0; piece < 600; piece += 97) {
		sba_buf_reset(&out);
		sba_buf_reset(&names);
		assert_int_equal(repack(&in, piece, &o, &out, &err), 0);
		assert_int_equal(out.len % 512, 0);
		list(&out, &names);
		assert_string_equal(names.data, "a:0:755:7 abs/:5:755:7 abs/b:0:644:7 hard:1:644:7 "
						"d/:5:755:7 "
						"d/l:2:644:7 ");
	}
}

/* An engine makes the others too, but as root's. */
static void directories_that_are_not_named_come_before_what_is_in_them(void **state)
{
	(void)state;
	SBA_BUF struct sba_buf in = SBA_BUF_INIT(1 << 20), out = SBA_BUF_INIT(1 << 20),
			       names = SBA_BUF_INIT(1 << 20);
	struct sba_error err = { 0 };
	const struct sba_pack_options o = { .uid = 7, .fixed_mtime = -1 };
	tar_add(&in, &(struct tar_entry){ .type = '5', .name = "own", .mode = 0700 });
	tar_file(&in, "a/b/one", "x");
	tar_file(&in, "own/two", "x");
	tar_file(&in, "a/b/three", "x");
	tar_file(&in, "a/c/four", "x");
	tar_end(&in);
	assert_int_equal(repack(&in, 0, &o, &out, &err), 0);
	list(&out, &names);
	assert_string_equal(names.data, "own/:5:700:7 a/:5:755:7 a/b/:5:755:7 a/b/one:0:644:7 "
					"own/two:0:644:7 a/b/three:0:644:7 a/c/:5:755:7 "
					"a/c/four:0:644:7 ");
}

/* More than the first table of names holds. */
static void many_directories_are_each_named_once(void **state)
{
	(void)state;
	enum { MANY = 1000 };
	SBA_BUF struct sba_buf in = SBA_BUF_INIT(8 << 20), out = SBA_BUF_INIT(8 << 20);
	struct sba_error err = { 0 };
	const struct sba_pack_options o = { .fixed_mtime = -1 };
	char name[32];
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < MANY; i++) {
			snprintf(name, sizeof(name), "d%d/%d", i, round);
			tar_file(&in, name, "x");
		}
	}
	tar_end(&in);
	assert_int_equal(repack(&in, 0, &o, &out, &err), 0);
	/* A directory is one block, a file two, and two are the end. */
	assert_int_equal(out.len, 512 * (MANY + 2 * 2 * MANY + 2));
}

static void what_leads_out_or_is_special_is_left_out_and_told(void **state)
{
	(void)state;
	SBA_BUF struct sba_buf in = SBA_BUF_INIT(1 << 20), out = SBA_BUF_INIT(1 << 20),
			       names = SBA_BUF_INIT(1 << 20);
	struct sba_error err = { 0 };
	struct left_out left = { 0 };
	static const char *const exclude[] = { "*.o", NULL };
	const struct sba_pack_options o = {
		.fixed_mtime = -1, .exclude = exclude, .left_out = on_left_out, .user = &left
	};
	tar_file(&in, "../up", "x");
	tar_file(&in, "a/../../up", "x");
	tar_add(&in, &(struct tar_entry){ .type = '2', .name = "l", .link = "/etc/passwd" });
	tar_add(&in, &(struct tar_entry){ .type = '2', .name = "m", .link = "../x" });
	tar_add(&in, &(struct tar_entry){ .type = '1', .name = "h", .link = "../x" });
	tar_add(&in, &(struct tar_entry){ .type = '3', .name = "dev" });
	tar_add(&in, &(struct tar_entry){ .type = '6', .name = "fifo" });
	tar_file(&in, "x.o", "object");
	tar_file(&in, "good", "x");
	tar_end(&in);
	assert_int_equal(repack(&in, 0, &o, &out, &err), 0);
	list(&out, &names);
	assert_string_equal(names.data, "good:0:644:0 ");
	assert_int_equal(left.n, 7);
	assert_int_equal(left.last, SBA_REFUSED_FIFO);
}

static void a_sparse_file_comes_with_its_zeros(void **state)
{
	(void)state;
	struct sba_error err = { 0 };
	static struct world w;
	const struct sba_pack_options o = { .fixed_mtime = -1 };
	world_open(&w, false);
	SBA_BUF struct sba_buf in = SBA_BUF_INIT(1 << 20);
	tar_sparse(&in, "s", 300000, 100000, "island");
	tar_end(&in);
	assert_int_equal(repack(&in, 0, &o, &w.tar, &err), 0);
	struct tar_feed feed = tar_feed_of(&w.tar);
	assert_int_equal(world_land_from(&w, &feed), 0);
	assert_int_equal(world_stat(&w, "out").st_size, 300000);
	world_close(&w);
}

static void a_cut_or_broken_tar_is_an_error_that_stays(void **state)
{
	(void)state;
	struct sba_error err = { 0 };
	const struct sba_pack_options o = { .fixed_mtime = -1 };
	SBA_BUF struct sba_buf in = SBA_BUF_INIT(1 << 20), out = SBA_BUF_INIT(1 << 20);
	tar_file(&in, "f", "content");
	tar_file(&in, "g", "content");
	in.len -= 600;
	assert_int_equal(repack(&in, 0, &o, &out, &err), SBA_EPROTO);
	SBA_BUF struct sba_buf text = SBA_BUF_INIT(1 << 20);
	sba_buf_puts(&text, "this is no tar at all, but long enough to be looked at");
	assert_int_equal(repack(&text, 0, &o, &out, &err), SBA_EPROTO);
}

static void what_does_not_fit_is_known_before_its_folders_are_made(void **state)
{
	(void)state;
	struct sba_error err = { 0 };
	const struct sba_pack_options o = { .fixed_mtime = -1, .name_max = 20 };
	SBA_BUF struct sba_buf in = SBA_BUF_INIT(1 << 20), out = SBA_BUF_INIT(1 << 20);
	tar_file(&in, "first", "");
	tar_file(&in, "a/b/c/d/e/f/g/h/i/j/k/l", "x");
	tar_end(&in);
	struct tar_feed feed = tar_feed_of(&in);
	struct sba_repack *r;
	char buf[512];
	assert_int_equal(sba_repack_new(&o, tar_feed_read, &feed, &r, &err), 0);
	assert_int_equal(sba_repack_read(r, buf, sizeof(buf), &err), sizeof(buf));
	assert_string_equal(buf, "first");
	assert_int_equal(sba_repack_read(r, buf, sizeof(buf), &err), SBA_EUNSUPPORTED);
	sba_repack_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_folder_around_everything_is_taken_off),
		cmocka_unit_test(names_are_cleaned_and_owners_ours),
		cmocka_unit_test(directories_that_are_not_named_come_before_what_is_in_them),
		cmocka_unit_test(many_directories_are_each_named_once),
		cmocka_unit_test(what_leads_out_or_is_special_is_left_out_and_told),
		cmocka_unit_test(a_sparse_file_comes_with_its_zeros),
		cmocka_unit_test(what_does_not_fit_is_known_before_its_folders_are_made),
		cmocka_unit_test(a_cut_or_broken_tar_is_an_error_that_stays),
	};
	return cmocka_run_group_tests_name("repack", tests, NULL, NULL);
}
