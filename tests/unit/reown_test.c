/* SPDX-License-Identifier: MIT */
/* A tar that goes through with other owners: what changes, and that nothing else does. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/tar_builder.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK = 512, OUT_MAX = 4 << 20 };

/* Gives all to 12:34, and keeps the names. */
struct told {
	struct sba_buf names;
	uint32_t uid, gid;
	uint32_t was_uid;
};

static void tell(void *user, const char *name, uint32_t *uid, uint32_t *gid)
{
	struct told *t = user;
	sba_buf_puts(&t->names, name);
	sba_buf_putc(&t->names, '|');
	t->was_uid = *uid;
	*uid = t->uid;
	*gid = t->gid;
}

static int reown_piece(const struct sba_buf *tar, size_t piece, size_t size, struct told *t,
		       struct sba_buf *ret, struct sba_error *err)
{
	struct tar_feed feed = tar_feed_of(tar);
	struct sba_reown *r = NULL;
	char buf[4096];
	ssize_t n;
	feed.piece = piece;
	sba_buf_reset(&t->names);
	sba_buf_reset(ret);
	assert_int_equal(sba_reown_new(tar_feed_read, &feed, tell, t, &r, err), 0);
	while ((n = sba_reown_read(r, buf, size, err)) > 0)
		sba_buf_put(ret, buf, (size_t)n);
	sba_reown_free(r);
	return (int)n;
}

/* In pieces of every kind: the same each time. */
static void reown(const struct sba_buf *tar, struct told *t, struct sba_buf *ret)
{
	SBA_BUF struct sba_buf again = SBA_BUF_INIT(OUT_MAX);
	struct sba_error err = { 0 };
	if (reown_piece(tar, 0, 4096, t, ret, &err) < 0)
		fail_msg("%s", err.text);
	for (size_t piece = 1; piece < 2000; piece = piece * 3 + 1) {
		assert_int_equal(reown_piece(tar, piece, piece, t, &again, &err), 0);
		assert_int_equal(again.len, ret->len);
		assert_memory_equal(again.data, ret->data, ret->len);
	}
}

static struct told told_of(uint32_t uid, uint32_t gid)
{
	return (struct told){ .names = SBA_BUF_INIT(OUT_MAX), .uid = uid, .gid = gid };
}

static uint32_t octal_at(const struct sba_buf *tar, size_t at)
{
	return (uint32_t)strtoul(tar->data + at, NULL, 8);
}

static void owners_change_and_nothing_else_does(void **state)
{
	(void)state;
	struct told t = told_of(12, 34);
	SBA_BUF struct sba_buf in = SBA_BUF_INIT(OUT_MAX), out = SBA_BUF_INIT(OUT_MAX);
	tar_dir(&in, "./");
	tar_file(&in, "./a", "content");
	tar_add(&in, &(struct tar_entry){ .type = '2', .name = "l", .link = "a", .size = 7 });
	tar_add(&in, &(struct tar_entry){ .type = '6', .name = "fifo" });
	tar_file(&in, "end", "");
	tar_end(&in);
	reown(&in, &t, &out);
	assert_string_equal(t.names.data, "|a|l|fifo|end|");
	assert_int_equal(out.len, in.len);
	assert_int_equal(octal_at(&out, 108), 12);
	assert_int_equal(octal_at(&out, 116), 34);
	for (size_t i = 0; i < in.len; i++) {
		size_t at = i % BLOCK;
		bool may = (at >= 108 && at < 124) || (at >= 148 && at < 156);
		assert_true(may || in.data[i] == out.data[i]);
	}
	sba_buf_fini(&t.names);
}

static void its_headers_are_whole_again(void **state)
{
	(void)state;
	struct told t = told_of(77, 88), second = told_of(1, 2);
	SBA_BUF struct sba_buf in = SBA_BUF_INIT(OUT_MAX), out = SBA_BUF_INIT(OUT_MAX),
			       twice = SBA_BUF_INIT(OUT_MAX);
	tar_file(&in, "f", "x");
	tar_end(&in);
	reown(&in, &t, &out);
	reown(&out, &second, &twice);
	assert_int_equal(second.was_uid, 77);
	sba_buf_fini(&t.names);
	sba_buf_fini(&second.names);
}

static void a_name_is_that_of_the_headers_before(void **state)
{
	(void)state;
	struct told t = told_of(1, 2);
	SBA_BUF struct sba_buf in = SBA_BUF_INIT(OUT_MAX), out = SBA_BUF_INIT(OUT_MAX);
	tar_pax(&in, "path", "a/very/long/name/");
	tar_dir(&in, "a/ve");
	tar_add(&in,
		&(struct tar_entry){ .type = 'L', .name = "x", .data = "gnu/name", .size = 9 });
	tar_file(&in, "gnu/na", "x");
	tar_file(&in, "plain", "x");
	tar_end(&in);
	reown(&in, &t, &out);
	assert_string_equal(t.names.data, "a/very/long/name|gnu/name|plain|");
	sba_buf_fini(&t.names);
}

static void a_record_of_an_owner_is_written_over(void **state)
{
	(void)state;
	struct told t = told_of(3, 4);
	SBA_BUF struct sba_buf in = SBA_BUF_INIT(OUT_MAX), out = SBA_BUF_INIT(OUT_MAX);
	struct sba_error err = { 0 };
	tar_pax(&in, "uid", "3000000");
	tar_file(&in, "f", "x");
	tar_end(&in);
	reown(&in, &t, &out);
	assert_non_null(memmem(out.data, out.len, "uid=0000003\n", 12));
	t.uid = 30000000;
	assert_int_equal(reown_piece(&in, 0, 4096, &t, &out, &err), SBA_EUNSUPPORTED);
	sba_buf_fini(&t.names);
}

static void ids_beyond_seven_digits_are_binary(void **state)
{
	(void)state;
	struct told t = told_of(4294967294, 2097152), second = told_of(1, 2);
	SBA_BUF struct sba_buf in = SBA_BUF_INIT(OUT_MAX), out = SBA_BUF_INIT(OUT_MAX),
			       twice = SBA_BUF_INIT(OUT_MAX);
	tar_file(&in, "f", "x");
	tar_end(&in);
	reown(&in, &t, &out);
	assert_memory_equal(out.data + 108, "\x80\0\0\0\xff\xff\xff\xfe\x80\0\0\0\0\x20\0\0", 16);
	reown(&out, &second, &twice);
	assert_int_equal(second.was_uid, 4294967294);
	sba_buf_fini(&t.names);
	sba_buf_fini(&second.names);
}

static void a_size_in_a_record_is_the_size(void **state)
{
	(void)state;
	struct told t = told_of(1, 2);
	SBA_BUF struct sba_buf in = SBA_BUF_INIT(OUT_MAX), out = SBA_BUF_INIT(OUT_MAX);
	char content[BLOCK];
	memset(content, 'c', sizeof(content));
	tar_pax(&in, "size", "512");
	tar_file(&in, "f", "");
	sba_buf_put(&in, content, sizeof(content));
	tar_file(&in, "g", "x");
	tar_end(&in);
	reown(&in, &t, &out);
	assert_string_equal(t.names.data, "f|g|");
	sba_buf_fini(&t.names);
}

/* It is for its reader to say so. */
static void a_tar_that_is_cut_goes_through_as_far_as_it_came(void **state)
{
	(void)state;
	struct told t = told_of(1, 2);
	SBA_BUF struct sba_buf in = SBA_BUF_INIT(OUT_MAX), out = SBA_BUF_INIT(OUT_MAX);
	struct sba_error err = { 0 };
	tar_pax(&in, "path", "long");
	tar_file(&in, "f", "content");
	tar_end(&in);
	for (size_t len = in.len; len > 0; len--) {
		in.len = len - 1;
		assert_int_equal(reown_piece(&in, 0, 4096, &t, &out, &err), 0);
		assert_int_equal(out.len, in.len);
	}
	sba_buf_fini(&t.names);
}

static void what_is_no_tar_is_an_error_that_stays(void **state)
{
	(void)state;
	struct told t = told_of(1, 2);
	struct sba_reown *r = NULL;
	struct sba_error err = { 0 };
	SBA_BUF struct sba_buf in = SBA_BUF_INIT(OUT_MAX), out = SBA_BUF_INIT(OUT_MAX);
	char buf[BLOCK];
	tar_file(&in, "f", "content");
	tar_end(&in);
	in.data[3] ^= 1;
	struct tar_feed feed = tar_feed_of(&in);
	assert_int_equal(sba_reown_new(tar_feed_read, &feed, tell, &t, &r, &err), 0);
	for (int i = 0; i < 2; i++) {
		err = (struct sba_error){ 0 };
		assert_int_equal(sba_reown_read(r, buf, sizeof(buf), &err), SBA_EPROTO);
		assert_string_equal(err.text, "broken tar: a header whose sum is wrong");
	}
	sba_reown_free(r);
	static const char *const records[] = { "8 path=\n", "999 path=x\n", "x",
					       "11 path=a", "0 a=b\n",      "6 path\n" };
	for (size_t i = 0; i < SBA_ARRAY_LEN(records); i++) {
		sba_buf_reset(&in);
		tar_add(&in, &(struct tar_entry){ .type = 'x',
						  .name = "pax",
						  .data = records[i],
						  .size = strlen(records[i]) });
		tar_file(&in, "f", "content");
		tar_end(&in);
		int rc = reown_piece(&in, 0, 4096, &t, &out, &err);
		if (rc != (i == 0 ? 0 : SBA_EPROTO))
			fail_msg("'%s': %d", records[i], rc);
	}
	sba_buf_fini(&t.names);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(owners_change_and_nothing_else_does),
		cmocka_unit_test(its_headers_are_whole_again),
		cmocka_unit_test(a_name_is_that_of_the_headers_before),
		cmocka_unit_test(a_record_of_an_owner_is_written_over),
		cmocka_unit_test(ids_beyond_seven_digits_are_binary),
		cmocka_unit_test(a_size_in_a_record_is_the_size),
		cmocka_unit_test(a_tar_that_is_cut_goes_through_as_far_as_it_came),
		cmocka_unit_test(what_is_no_tar_is_an_error_that_stays),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
