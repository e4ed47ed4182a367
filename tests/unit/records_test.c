/* SPDX-License-Identifier: MIT */
/* What the guest tells of files: taken in any pieces, believed only as far as it can be. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/record_builder.h"

#include <stdlib.h>
#include <unistd.h>

static int feed(struct sba_records *r, const struct sba_buf *b, size_t step, struct sba_error *err)
{
	int rc = 0;
	sba_records_init(r);
	for (size_t at = 0; rc == 0 && at < b->len; at += step)
		rc = sba_records_feed(r, b->data + at, step < b->len - at ? step : b->len - at,
				      err);
	return rc < 0 ? rc : sba_records_end(r, err);
}

static void assert_content(const struct sba_records *r, size_t i, bool old, const char *expected)
{
	SBA_FREE char *content = NULL;
	struct sba_error err = { 0 };
	if (sba_records_content(r, &r->v[i], old, &content, &err) < 0)
		fail_msg("%s", err.text);
	assert_string_equal(content, expected);
}

static void records_are_the_same_in_whatever_pieces_they_come(void **state)
{
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(65536);
	struct sba_error err = { 0 };
	(void)state;
	record_modified(&b, "m", "before\n", "after\n");
	record_added(&b, "a/new", "fresh");
	record_deleted(&b, "d", "");
	record_head(&b, SBA_RECORD_ADDED, "link");
	record_side(&b, &(const struct record_side){ .link = "a/new" });
	record_head(&b, SBA_RECORD_TOUCHED, "t");
	record_entry(&b, &(const struct record_side){ .content = "same" });
	record_head(&b, SBA_RECORD_LEFT_OUT, "locked");
	record_number(&b, SBA_LEFT_UNREADABLE, 1);
	for (size_t step = 1; step <= b.len; step++) {
		struct sba_records r;
		if (feed(&r, &b, step, &err) < 0)
			fail_msg("in pieces of %zu: %s", step, err.text);
		assert_int_equal(r.n, 6);
		assert_string_equal(r.v[0].path, "a/new");
		assert_string_equal(r.v[2].path, "link");
		assert_string_equal(r.v[2].fresh.entry.link, "a/new");
		assert_string_equal(r.v[3].path, "locked");
		assert_content(&r, 0, false, "fresh");
		assert_content(&r, 1, true, "");
		assert_content(&r, 4, true, "before\n");
		assert_content(&r, 4, false, "after\n");
		assert_int_equal(r.v[5].kind, SBA_RECORD_TOUCHED);
		sba_records_fini(&r);
	}
}

static void a_cut_record_is_refused_wherever_it_is_cut(void **state)
{
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(65536);
	(void)state;
	record_modified(&b, "m", "before\n", "after\n");
	for (size_t len = 1; len < b.len; len++) {
		const struct sba_buf part = { .data = b.data, .len = len };
		struct sba_error err = { 0 };
		struct sba_records r;
		assert_int_equal(feed(&r, &part, len, &err), SBA_EPROTO);
		sba_records_fini(&r);
	}
}

static void assert_refused(const struct sba_buf *b, const char *what)
{
	struct sba_error err = { 0 };
	struct sba_records r;
	int rc = feed(&r, b, b->len, &err);
	sba_records_fini(&r);
	if (rc != SBA_EPROTO)
		fail_msg("%s: %d (%s)", what, rc, err.text);
}

static void paths_that_lead_out_are_refused(void **state)
{
	static const char *const paths[] = { "",          "/etc/passwd",
					     "..",        "../x",
					     "a/../../x", "a//b",
					     "a/",        "./a",
					     ".",         "a/.",
					     "a/..",      "/",
					     "a/./b",     ".git/hooks/post-checkout",
					     "a/.GIT",    NULL };
	char longer[300];
	(void)state;
	memset(longer, 'n', sizeof(longer));
	longer[sizeof(longer) - 1] = '\0';
	for (size_t i = 0; i < SBA_ARRAY_LEN(paths); i++) {
		SBA_BUF struct sba_buf b = SBA_BUF_INIT(65536);
		record_added(&b, paths[i] ? paths[i] : longer, "x");
		assert_refused(&b, paths[i] ? paths[i] : "a long name");
	}
}

static void a_path_with_a_nul_is_refused(void **state)
{
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(65536);
	(void)state;
	record_added(&b, "a?b", "x");
	b.data[SBA_RECORD_HEAD + 1] = '\0';
	assert_refused(&b, "a NUL");
}

static void what_contradicts_itself_is_refused(void **state)
{
	static const struct {
		const char *what;
		struct record_side side;
	} sides[] = {
		{ "another content", { .content = "x", .wrong_hash = true } },
		{ "a device", { .content = "x", .mode = S_IFBLK | 0600 } },
		{ "a folder", { .content = "x", .mode = S_IFDIR | 0755 } },
		{ "a link without target", { .content = "x", .mode = S_IFLNK | 0777 } },
		{ "a file with a target", { .link = "x", .mode = S_IFREG | 0644 } },
		{ "an unknown reason", { .content = "x", .why = 99 } },
	};
	(void)state;
	for (size_t i = 0; i < SBA_ARRAY_LEN(sides); i++) {
		SBA_BUF struct sba_buf b = SBA_BUF_INIT(65536);
		record_head(&b, SBA_RECORD_ADDED, "p");
		record_side(&b, &sides[i].side);
		assert_refused(&b, sides[i].what);
	}
}

static void a_file_that_is_told_of_twice_is_refused(void **state)
{
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(65536);
	(void)state;
	record_added(&b, "p", "x");
	record_deleted(&b, "p", "x");
	assert_refused(&b, "twice");
}

static void a_record_of_an_unknown_kind_is_refused(void **state)
{
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(65536);
	(void)state;
	record_head(&b, 'Q', "p");
	assert_refused(&b, "a kind");
}

static void a_content_larger_than_was_asked_for_is_refused_before_it_comes(void **state)
{
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(65536);
	(void)state;
	record_added(&b, "p", "x");
	/* Both sizes, the entry's and the content's. */
	size_t entry = SBA_RECORD_HEAD + 1;
	memset(b.data + entry + 4, 0x7f, 8);
	memset(b.data + entry + SBA_ENTRY_SIZE + 1, 0x7f, 8);
	assert_refused(&b, "a size");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_are_the_same_in_whatever_pieces_they_come),
		cmocka_unit_test(a_cut_record_is_refused_wherever_it_is_cut),
		cmocka_unit_test(paths_that_lead_out_are_refused),
		cmocka_unit_test(a_path_with_a_nul_is_refused),
		cmocka_unit_test(what_contradicts_itself_is_refused),
		cmocka_unit_test(a_file_that_is_told_of_twice_is_refused),
		cmocka_unit_test(a_record_of_an_unknown_kind_is_refused),
		cmocka_unit_test(a_content_larger_than_was_asked_for_is_refused_before_it_comes),
	};
	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
