/* SPDX-License-Identifier: MIT */
/* A dump is there whole or not at all: cut anywhere, damaged anywhere, of another
 * agent or format, or made to harm. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "agent/dump.h"
#include "support/tar_builder.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ID     "6f0e2a4c-1111-4222-8333-444455556666"
#define PARENT "a91c0000-1111-4222-8333-444455556666"

static int memory_file(const struct sba_buf *content)
{
	struct sba_error err;
	int fd = memfd_create("dump", MFD_CLOEXEC);
	assert_true(fd >= 0);
	if (content)
		assert_int_equal(sba_write_all(fd, content->data, content->len, &err), 0);
	return fd;
}

static void add_part(struct sba_dump *d, const char *name, const char *text)
{
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(SBA_MIB);
	sba_buf_puts(&b, text);
	assert_int_equal(sba_parts_add(&d->parts, name, &b, NULL), 0);
}

/* A session of codex that was forked, with a workspace of two files. */
static void sample(struct sba_dump *d)
{
	SBA_BUF struct sba_buf tar = SBA_BUF_INIT(SBA_MIB);
	sba_dump_init(d);
	d->info = (struct sba_dump_info){ .agent = "codex",
					  .cli_version = "codex-cli 0.171.0",
					  .image = "sandbox-agent:codex-0.171.0-20261129",
					  .session = ID,
					  .workdir = "/workspace",
					  .created_ms = 1795953600250,
					  .files = 2 };
	d->memory = (struct sba_memory){ .kept = strdup("{\"input_tokens\":9}"),
					 .turns = 3,
					 .usage = { .input = 900, .output = 8, .cost_usd = 0.25 } };
	add_part(d, "session", "{\"type\":\"session_meta\"}\nlast line\n");
	add_part(d, "parent:" PARENT, "{\"type\":\"session_meta\"}\n");
	tar_dir(&tar, "src");
	tar_file(&tar, "src/a.c", "int a;\n");
	tar_file(&tar, "README", "read me\n");
	tar_end(&tar);
	d->workspace_fd = memory_file(&tar);
	d->workspace_size = tar.len;
}

static void written(const struct sba_dump *d, struct sba_buf *ret)
{
	struct sba_error err = { 0 };
	char path[64];
	SBA_CLOSE int fd = memory_file(NULL);
	if (sba_dump_write(d, fd, &err) < 0)
		fail_msg("%s", err.text);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_int_equal(sba_read_file(path, 16 * SBA_MIB, ret, &err), 0);
}

static void sample_bytes(struct sba_buf *ret)
{
	struct sba_dump d;
	sample(&d);
	written(&d, ret);
	sba_dump_fini(&d);
}

static int read_bytes(const void *data, size_t len, const char *agent, struct sba_dump *ret,
		      struct sba_error *err)
{
	struct tar_feed feed = { .data = data, .len = len, .piece = 700 };
	return sba_dump_read(tar_feed_read, &feed, agent, ret, err);
}

static void assert_refused_(const struct sba_buf *b, const char *agent, const char *words, int line)
{
	struct sba_dump d;
	struct sba_error err = { 0 };
	int rc = read_bytes(b->data, b->len, agent, &d, &err);
	if (rc != SBA_EREFUSED || !strstr(err.text, words))
		fail_msg("line %d: %d: '%s' does not say '%s'", line, rc, err.text, words);
}
#define assert_refused(b, agent, words) assert_refused_(b, agent, words, __LINE__)

static void what_was_written_is_read(void **state)
{
	(void)state;
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(0);
	struct sba_dump d;
	struct sba_error err = { 0 };
	sample_bytes(&b);
	if (read_bytes(b.data, b.len, "codex", &d, &err) < 0)
		fail_msg("%s", err.text);
	assert_string_equal(d.info.session, ID);
	assert_string_equal(d.info.cli_version, "codex-cli 0.171.0");
	assert_string_equal(d.info.workdir, "/workspace");
	assert_int_equal(d.info.created_ms, 1795953600250);
	assert_int_equal(d.parts.n, 2);
	assert_string_equal(d.parts.v[0].data, "{\"type\":\"session_meta\"}\nlast line\n");
	assert_string_equal(d.parts.v[1].name, "parent:" PARENT);
	assert_int_equal(d.info.parts, 2);
	assert_int_equal(d.info.bytes, d.parts.v[0].len + d.parts.v[1].len);
	assert_true(d.info.workspace && d.workspace_fd >= 0);
	assert_int_equal(d.info.files, 2);
	assert_string_equal(d.memory.kept, "{\"input_tokens\":9}");
	assert_int_equal(d.memory.turns, 3);
	assert_int_equal(d.memory.usage.input, 900);
	sba_dump_fini(&d);
}

static void a_dump_without_a_workspace_has_none(void **state)
{
	(void)state;
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(0);
	struct sba_dump d;
	struct sba_error err = { 0 };
	sample(&d);
	close(d.workspace_fd);
	d.workspace_fd = -1;
	written(&d, &b);
	sba_dump_fini(&d);
	if (read_bytes(b.data, b.len, NULL, &d, &err) < 0)
		fail_msg("%s", err.text);
	assert_false(d.info.workspace);
	assert_int_equal(d.workspace_fd, -1);
	sba_dump_fini(&d);
}

static void every_cut_is_refused(void **state)
{
	(void)state;
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(0);
	sample_bytes(&b);
	for (size_t len = 0; len < b.len; len += len % 512 == 511 || len % 512 == 0 ? 1 : 255) {
		struct sba_dump d;
		struct sba_error err = { 0 };
		/* All of it is there but the two empty blocks that end a tar: the workspace's
		 * own end looks like them. */
		if (read_bytes(b.data, len, "codex", &d, &err) == 0) {
			if (len < b.len - 1024)
				fail_msg("%zu of %zu bytes are taken for all", len, b.len);
			sba_dump_fini(&d);
			continue;
		}
		assert_int_equal(err.code, SBA_EREFUSED);
	}
}

static void every_damaged_block_is_refused(void **state)
{
	(void)state;
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(0);
	struct sba_error err = { 0 };
	struct sba_dump d;
	sample_bytes(&b);
	/* A name within the manifest is not covered by a sum; all content is. */
	const char *content[] = { "last line", "int a;", "read me", "\"session_meta\"" };
	for (size_t i = 0; i < SBA_ARRAY_LEN(content); i++) {
		char *at = memmem(b.data, b.len, content[i], strlen(content[i]));
		assert_non_null(at);
		*at ^= 1;
		assert_int_equal(read_bytes(b.data, b.len, "codex", &d, &err), SBA_EREFUSED);
		assert_non_null(strstr(err.text, "damaged"));
		*at ^= 1;
	}
	assert_int_equal(read_bytes(b.data, b.len, "codex", &d, &err), 0);
	sba_dump_fini(&d);
}

/* The bytes of the sample with one text of its manifest replaced by another of the
 * same length. */
static void replaced(struct sba_buf *b, const char *from, const char *to)
{
	assert_int_equal(strlen(from), strlen(to));
	char *at = memmem(b->data, b->len, from, strlen(from));
	assert_non_null(at);
	memcpy(at, to, strlen(to));
}

static void another_agent_a_newer_format_and_no_dump_say_so(void **state)
{
	(void)state;
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(0);
	sample_bytes(&b);
	assert_refused(&b, "claude", "the dump is of codex, and the agent here is claude");
	replaced(&b, "\"v\": 1", "\"v\": 2");
	assert_refused(&b, "codex", "format is 2");
	sba_buf_reset(&b);
	sba_buf_puts(&b, "just a text that somebody took for a dump");
	assert_refused(&b, "codex", "no dump");
	sba_buf_reset(&b);
	assert_refused(&b, "codex", "no dump");
	tar_file(&b, "README", "a tar, but none of ours");
	tar_end(&b);
	assert_refused(&b, "codex", "no dump");
}

static void a_manifest_that_makes_no_sense_is_refused(void **state)
{
	(void)state;
	static const char *const changes[][3] = {
		{ "\"session\": \"6f0e", "\"session\": \"../e", "session" },
		{ "parent:a91c", "parent:../c", "no name of a part" },
		{ "\"name\": \"session\"", "\"name\": \"sessiom\"", "no name of a part" },
		{ "\"bytes\": 34", "\"bytes\": 35", "does not tell of" },
		{ "\"bytes\": 34", "\"bytes\": -4", "bytes" },
		{ "\"sha256\": \"", "\"sha255\": \"", "sha256" },
		{ "\"workdir\"", "\"workdis\"", "workdir" },
		{ "\"parts\"", "\"partz\"", "parts" },
		{ "workspace.tar", "workspace/tar", "workspace" },
	};
	for (size_t i = 0; i < SBA_ARRAY_LEN(changes); i++) {
		SBA_BUF struct sba_buf b = SBA_BUF_INIT(0);
		sample_bytes(&b);
		replaced(&b, changes[i][0], changes[i][1]);
		assert_refused(&b, "codex", changes[i][2]);
	}
}

/* A dump whose manifest is right about a workspace that is not. */
static void with_workspace(const struct sba_buf *tar, struct sba_buf *ret)
{
	struct sba_dump d;
	sample(&d);
	close(d.workspace_fd);
	d.workspace_fd = memory_file(tar);
	d.workspace_size = tar->len;
	written(&d, ret);
	sba_dump_fini(&d);
}

static void a_workspace_that_leads_out_is_refused(void **state)
{
	(void)state;
	static const char *const names[] = { "/etc/passwd", "../x", "a/../../x", "a/..", ".." };
	for (size_t i = 0; i < SBA_ARRAY_LEN(names); i++) {
		SBA_BUF struct sba_buf tar = SBA_BUF_INIT(SBA_MIB), b = SBA_BUF_INIT(0);
		tar_file(&tar, "good", "good");
		tar_file(&tar, names[i], "bad");
		tar_end(&tar);
		with_workspace(&tar, &b);
		assert_refused(&b, "codex", "leads out");
	}
}

static void a_workspace_that_is_larger_than_its_bytes_is_refused(void **state)
{
	(void)state;
	SBA_BUF struct sba_buf tar = SBA_BUF_INIT(SBA_MIB), b = SBA_BUF_INIT(0);
	tar_sparse(&tar, "hole", 1ULL << 50, 0, "x");
	tar_end(&tar);
	with_workspace(&tar, &b);
	assert_refused(&b, "codex", "larger than it is");
}

static void a_broken_tar_as_workspace_is_refused(void **state)
{
	(void)state;
	SBA_BUF struct sba_buf tar = SBA_BUF_INIT(SBA_MIB), b = SBA_BUF_INIT(0);
	tar_file(&tar, "a", "whole");
	with_workspace(&tar, &b);
	assert_refused(&b, "codex", "broken tar");
}

static void a_part_too_many_or_too_large_is_refused(void **state)
{
	(void)state;
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(0);
	sample_bytes(&b);
	/* Before any of it is read. */
	replaced(&b, "\"bytes\": 34,\n", "\"bytes\":9e9,\n");
	assert_refused(&b, "codex", "bytes");
	struct sba_dump d;
	sample(&d);
	for (int i = 0; i < SBA_PARTS_MAX; i++) {
		char name[64];
		snprintf(name, sizeof(name), "parent:p%d", i);
		add_part(&d, name, "x");
	}
	sba_buf_fini(&b);
	written(&d, &b);
	sba_dump_fini(&d);
	assert_refused(&b, "codex", "parts, more than");
}

static void what_the_reader_says_is_told(void **state)
{
	(void)state;
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(0);
	struct sba_dump d;
	struct sba_error err = { 0 };
	sample_bytes(&b);
	struct tar_feed feed = tar_feed_of(&b);
	feed.piece = 512;
	feed.fail_at = 2048;
	assert_int_equal(sba_dump_read(tar_feed_read, &feed, "codex", &d, &err), SBA_ELOST);
}

static int begin(void **state)
{
	(void)state;
	alarm(120);
	return 0;
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup(f, begin)
	const struct CMUnitTest tests[] = {
		TEST(what_was_written_is_read),
		TEST(a_dump_without_a_workspace_has_none),
		TEST(every_cut_is_refused),
		TEST(every_damaged_block_is_refused),
		TEST(another_agent_a_newer_format_and_no_dump_say_so),
		TEST(a_manifest_that_makes_no_sense_is_refused),
		TEST(a_workspace_that_leads_out_is_refused),
		TEST(a_workspace_that_is_larger_than_its_bytes_is_refused),
		TEST(a_broken_tar_as_workspace_is_refused),
		TEST(a_part_too_many_or_too_large_is_refused),
		TEST(what_the_reader_says_is_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
