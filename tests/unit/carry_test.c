/* SPDX-License-Identifier: MIT */
/* Several tars made into one: what stays as it is, what is left out, and that a
 * broken one leaves no trace. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <archive.h>
#include <archive_entry.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/tar_builder.h"

struct world {
	int fd;
	struct sba_carry *carry;
	struct sba_buf tar;
	struct sba_error err;
};

static int begin(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	assert_non_null(w);
	sba_buf_init(&w->tar, 1 << 20);
	w->fd = memfd_create("carry", MFD_CLOEXEC);
	assert_true(w->fd >= 0);
	assert_int_equal(sba_carry_new(w->fd, 8 << 20, &w->carry, NULL), 0);
	*state = w;
	alarm(60);
	return 0;
}

static int end(void **state)
{
	struct world *w = *state;
	sba_carry_free(w->carry);
	sba_buf_fini(&w->tar);
	close(w->fd);
	free(w);
	return 0;
}

static int carry(struct world *w, const char *prefix)
{
	struct tar_feed feed = tar_feed_of(&w->tar);
	feed.piece = 700;
	int rc = sba_carry_tar(w->carry, prefix, tar_feed_read, &feed, &w->err);
	sba_buf_reset(&w->tar);
	return rc;
}

/* "TYPE MODE UID NAME>LINK=CONTENT\n" of every entry. */
static void assert_holds(struct world *w, const char *expected)
{
	uint64_t size;
	struct sba_buf said = SBA_BUF_INIT(1 << 20);
	struct archive_entry *e;
	struct archive *a = archive_read_new();
	assert_int_equal(sba_carry_end(w->carry, &size, NULL), 0);
	assert_int_equal(size % 512, 0);
	assert_int_equal(lseek(w->fd, 0, SEEK_SET), 0);
	archive_read_support_format_tar(a);
	assert_int_equal(archive_read_open_fd(a, w->fd, 10240), ARCHIVE_OK);
	while (archive_read_next_header(a, &e) == ARCHIVE_OK) {
		char content[64] = "";
		const char *link = archive_entry_hardlink(e) ? archive_entry_hardlink(e)
							     : archive_entry_symlink(e);
		if (!link && archive_entry_size(e) < 64)
			archive_read_data(a, content, sizeof(content) - 1);
		sba_buf_printf(&said, "%o %lld %s>%s=%s\n", (unsigned)archive_entry_perm(e),
			       (long long)archive_entry_uid(e), archive_entry_pathname(e),
			       link ? link : "", content);
	}
	assert_string_equal(said.data ? said.data : "", expected);
	sba_buf_fini(&said);
	archive_read_free(a);
}

static void entries_keep_mode_owner_and_links_beneath_their_prefix(void **state)
{
	struct world *w = *state;
	tar_dir(&w->tar, "d");
	tar_add(&w->tar,
		&(struct tar_entry){ .name = "d/f", .mode = 04750, .data = "abc", .size = 3 });
	tar_add(&w->tar, &(struct tar_entry){ .type = '1', .name = "d/h", .link = "d/f" });
	tar_add(&w->tar, &(struct tar_entry){ .type = '2', .name = "d/s", .link = "/etc/x" });
	tar_end(&w->tar);
	assert_int_equal(carry(w, "home/u"), 0);
	tar_file(&w->tar, "g", "second");
	tar_end(&w->tar);
	assert_int_equal(carry(w, ""), 0);
	assert_holds(w, "755 0 home/u/d/>=\n4750 0 home/u/d/f>=abc\n644 0 home/u/d/h>home/u/d/f=\n"
			"644 0 home/u/d/s>/etc/x=\n644 0 g>=second\n");
}

static void a_tar_that_breaks_leaves_no_trace(void **state)
{
	struct world *w = *state;
	struct sba_carry_report r;
	tar_file(&w->tar, "whole", "1");
	tar_end(&w->tar);
	assert_int_equal(carry(w, "a"), 0);
	tar_file(&w->tar, "x", "gone");
	tar_add(&w->tar, &(struct tar_entry){ .name = "cut", .size = 4096 });
	assert_int_equal(carry(w, "a"), SBA_EPROTO);
	tar_file(&w->tar, "after", "2");
	tar_end(&w->tar);
	assert_int_equal(carry(w, "a"), 0);
	sba_carry_report_get(w->carry, &r);
	assert_int_equal(r.files, 2);
	assert_holds(w, "644 0 a/whole>=1\n644 0 a/after>=2\n");
}

static void devices_and_names_that_lead_out_stay_behind_and_are_counted(void **state)
{
	struct world *w = *state;
	struct sba_carry_report r;
	tar_add(&w->tar, &(struct tar_entry){ .type = '3', .name = "null" });
	tar_add(&w->tar, &(struct tar_entry){ .type = '6', .name = "fifo" });
	tar_file(&w->tar, "../out", "x");
	tar_file(&w->tar, "a/../../out", "x");
	tar_add(&w->tar, &(struct tar_entry){ .type = '1', .name = "h", .link = "../f" });
	tar_file(&w->tar, "in", "x");
	tar_end(&w->tar);
	assert_int_equal(carry(w, "p"), 0);
	sba_carry_report_get(w->carry, &r);
	assert_int_equal(r.left_out, 5);
	assert_holds(w, "644 0 p/in>=x\n");
}

static void holes_are_read_back_as_zeros(void **state)
{
	struct world *w = *state;
	char got[4];
	tar_sparse(&w->tar, "sparse", 1 << 20, 1 << 19, "data");
	tar_end(&w->tar);
	assert_int_equal(carry(w, ""), 0);
	uint64_t size;
	assert_int_equal(sba_carry_end(w->carry, &size, NULL), 0);
	struct sba_carry_reader r = { .fd = w->fd, .size = size };
	char *all = malloc(size);
	assert_non_null(all);
	for (uint64_t at = 0; at < size;) {
		ssize_t n = sba_carry_read(&r, all + at, 7777 < size - at ? 7777 : size - at, NULL);
		assert_true(n > 0);
		at += (uint64_t)n;
	}
	assert_int_equal(sba_carry_read(&r, got, sizeof(got), NULL), 0);
	uint64_t head = size - 1024 - (1 << 20);
	assert_memory_equal(all + head + (1 << 19), "data", 4);
	assert_int_equal(all[head + 5], 0);
	free(all);
}

static void what_would_be_too_long_is_refused_and_what_was_there_stays(void **state)
{
	struct world *w = *state;
	tar_file(&w->tar, "first", "1");
	tar_end(&w->tar);
	assert_int_equal(carry(w, ""), 0);
	tar_sparse(&w->tar, "huge", 1ULL << 40, 1ULL << 39, "data");
	tar_end(&w->tar);
	assert_int_equal(carry(w, ""), SBA_ELIMIT);
	assert_non_null(strstr(w->err.text, "more than 8.4 MB"));
	tar_file(&w->tar, "last", "2");
	tar_end(&w->tar);
	assert_int_equal(carry(w, ""), 0);
	assert_holds(w, "644 0 first>=1\n644 0 last>=2\n");
}

#define CARRY_TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CARRY_TEST(entries_keep_mode_owner_and_links_beneath_their_prefix),
		CARRY_TEST(a_tar_that_breaks_leaves_no_trace),
		CARRY_TEST(devices_and_names_that_lead_out_stay_behind_and_are_counted),
		CARRY_TEST(what_would_be_too_long_is_refused_and_what_was_there_stays),
		CARRY_TEST(holes_are_read_back_as_zeros),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
