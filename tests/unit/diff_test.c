/* SPDX-License-Identifier: MIT */
/*
 * Diffs and patches: hunks lead from one text to the other, are as short as they can be,
 * and the real `git apply` makes of every patch what it says.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "diff/diff.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static char dir[64];

static struct sba_diff_text text_of(const char *s)
{
	return (struct sba_diff_text){ s, strlen(s) };
}

/* ---- hunks ---- */

static void assert_hunks(const char *old, const char *fresh, const char *expected)
{
	SBA_BUF struct sba_buf out = SBA_BUF_INIT(1 << 20);
	const struct sba_diff_text a = text_of(old), b = text_of(fresh);
	assert_int_equal(sba_diff_hunks(&a, &b, &out, NULL, NULL), 0);
	assert_string_equal(out.data ? out.data : "", expected);
}

static void hunks_are_those_that_people_know(void **state)
{
	(void)state;
	assert_hunks("a\nb\nc\n", "a\nb\nc\n", "");
	assert_hunks("", "x\n", "@@ -0,0 +1 @@\n+x\n");
	assert_hunks("x\n", "", "@@ -1 +0,0 @@\n-x\n");
	assert_hunks("x", "x\n", "@@ -1 +1 @@\n-x\n\\ No newline at end of file\n+x\n");
	assert_hunks("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\n5\n6\n7\n8\nnine\n",
		     "@@ -6,4 +6,4 @@\n 6\n 7\n 8\n-9\n+nine\n");
	/* Six lines between two changes are the context of both. */
	assert_hunks("a\n1\n2\n3\n4\n5\n6\nb\n", "A\n1\n2\n3\n4\n5\n6\nB\n",
		     "@@ -1,8 +1,8 @@\n-a\n+A\n 1\n 2\n 3\n 4\n 5\n 6\n-b\n+B\n");
	assert_hunks("a\n1\n2\n3\n4\n5\n6\n7\nb\n", "A\n1\n2\n3\n4\n5\n6\n7\nB\n",
		     "@@ -1,4 +1,4 @@\n-a\n+A\n 1\n 2\n 3\n@@ -6,4 +6,4 @@\n 5\n 6\n 7\n-b\n+B\n");
}

/* Makes the new text of the old one and the hunks; fails the test where they do not fit. */
static void apply_hunks(const char *old, const char *hunks, struct sba_buf *out)
{
	const char *at = old;
	size_t line = 0;
	while (*hunks) {
		size_t from = strtoul(hunks + 4, NULL, 10), len = strcspn(hunks, "\n") + 1;
		bool empty = strstr(hunks, ",0 +") && strstr(hunks, ",0 +") < hunks + len;
		for (; line + !empty < from; line++) {
			size_t n = strcspn(at, "\n") + 1;
			sba_buf_put(out, at, n);
			at += n;
		}
		for (hunks += len; *hunks && *hunks != '@'; hunks += len) {
			len = strcspn(hunks, "\n") + 1;
			if (*hunks == '+') {
				sba_buf_put(out, hunks + 1, len - 1);
				continue;
			}
			assert_memory_equal(at, hunks + 1, len - 1);
			if (*hunks == ' ')
				sba_buf_put(out, at, len - 1);
			at += len - 1;
			line++;
		}
	}
	sba_buf_puts(out, at);
}

static unsigned next_random(unsigned *seed)
{
	*seed = *seed * 1103515245 + 12345;
	return *seed >> 16 & 0x7fff;
}

/* Lines of few kinds, so that much of it is common. */
static void random_text(struct sba_buf *b, unsigned *seed, unsigned lines, unsigned kinds)
{
	sba_buf_reset(b);
	for (unsigned i = 0; i < lines; i++)
		sba_buf_printf(b, "line %u\n", next_random(seed) % kinds);
	sba_buf_putc(b, '\0');
	b->len--;
}

static void hunks_lead_from_any_text_to_any_other(void **state)
{
	SBA_BUF struct sba_buf a = SBA_BUF_INIT(1 << 20), b = SBA_BUF_INIT(1 << 20);
	unsigned seed = 7;
	(void)state;
	for (unsigned round = 0; round < 200; round++) {
		SBA_BUF struct sba_buf hunks = SBA_BUF_INIT(1 << 22);
		SBA_BUF struct sba_buf made = SBA_BUF_INIT(1 << 22);
		random_text(&a, &seed, next_random(&seed) % 40, 2 + round % 9);
		random_text(&b, &seed, next_random(&seed) % 40, 2 + round % 9);
		const struct sba_diff_text x = { a.data, a.len }, y = { b.data, b.len };
		assert_int_equal(sba_diff_hunks(&x, &y, &hunks, NULL, NULL), 0);
		apply_hunks(a.data, hunks.data ? hunks.data : "", &made);
		assert_string_equal(made.data ? made.data : "", b.data);
	}
}

/* By the definition, with a table of all pairs of beginnings. */
static size_t longest_common(const char *a, const char *b)
{
	enum { MAX = 64 };
	size_t table[MAX][MAX] = { { 0 } }, m = strlen(a), n = strlen(b);
	for (size_t i = 1; i <= m; i++) {
		for (size_t j = 1; j <= n; j++) {
			size_t up = table[i - 1][j], left = table[i][j - 1];
			table[i][j] = a[i - 1] == b[j - 1] ? table[i - 1][j - 1] + 1
				      : up > left          ? up
							   : left;
		}
	}
	return table[m][n];
}

static void no_shorter_script_exists(void **state)
{
	unsigned seed = 99;
	(void)state;
	for (unsigned round = 0; round < 500; round++) {
		char a[64] = "", b[64] = "", x[128] = "", y[128] = "";
		size_t m = next_random(&seed) % 30, n = next_random(&seed) % 30;
		for (size_t i = 0; i < m; i++)
			a[i] = (char)('a' + next_random(&seed) % 4);
		for (size_t i = 0; i < n; i++)
			b[i] = (char)('a' + next_random(&seed) % 4);
		for (size_t i = 0; i < m; i++)
			snprintf(x + 2 * i, 3, "%c\n", a[i]);
		for (size_t i = 0; i < n; i++)
			snprintf(y + 2 * i, 3, "%c\n", b[i]);
		const struct sba_diff_text old = text_of(x), fresh = text_of(y);
		struct sba_diff_count count;
		assert_int_equal(sba_diff_hunks(&old, &fresh, NULL, &count, NULL), 0);
		assert_int_equal(count.added + count.removed, m + n - 2 * longest_common(a, b));
	}
}

static void texts_without_a_common_line_take_no_time(void **state)
{
	enum { LINES = 6000 };
	SBA_BUF struct sba_buf a = SBA_BUF_INIT(1 << 22), b = SBA_BUF_INIT(1 << 22);
	struct sba_diff_count count;
	(void)state;
	for (unsigned i = 0; i < LINES; i++) {
		sba_buf_printf(&a, "old %u\n", i);
		sba_buf_printf(&b, "new %u\n", i);
	}
	const struct sba_diff_text x = { a.data, a.len }, y = { b.data, b.len };
	assert_int_equal(sba_diff_hunks(&x, &y, NULL, &count, NULL), 0);
	assert_int_equal(count.added, LINES);
	assert_int_equal(count.removed, LINES);
}

static void a_nul_near_the_beginning_is_no_text(void **state)
{
	char far[9000];
	(void)state;
	memset(far, 'x', sizeof(far));
	far[8500] = '\0';
	assert_true(sba_diff_is_text("", 0));
	assert_true(sba_diff_is_text("\xff\xfe", 2));
	assert_false(sba_diff_is_text("a\0b", 3));
	assert_true(sba_diff_is_text(far, sizeof(far)));
}

/* ---- names ---- */

static void names_are_quoted_as_git_does(void **state)
{
	static const char *const cases[][2] = {
		{ "plain/name", "a/plain/name" },         { "with space", "a/with space" },
		{ "tab\there", "\"a/tab\\there\"" },      { "quote\"d", "\"a/quote\\\"d\"" },
		{ "back\\slash", "\"a/back\\\\slash\"" }, { "\xc3\xbc", "\"a/\\303\\274\"" },
		{ "new\nline", "\"a/new\\nline\"" },      { "\x01", "\"a/\\001\"" },
	};
	(void)state;
	for (size_t i = 0; i < SBA_ARRAY_LEN(cases); i++) {
		SBA_BUF struct sba_buf out = SBA_BUF_INIT(1000);
		sba_diff_put_name(&out, "a/", cases[i][0]);
		assert_string_equal(out.data, cases[i][1]);
	}
}

/* ---- patches, by git ---- */

static int make_dir(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/sba-diff-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static const char *in_dir(const char *name)
{
	static char path[300];
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static int run(const char *const *argv)
{
	posix_spawn_file_actions_t actions;
	int status = -1;
	pid_t pid;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	int e = posix_spawnp(&pid, argv[0], &actions, NULL, (char **)(uintptr_t)argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (e == ENOENT)
		skip(); /* there is no git here */
	assert_int_equal(e, 0);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int drop_dir(void **state)
{
	const char *const argv[] = { "rm", "-rf", dir, NULL };
	(void)state;
	return run(argv);
}

static void put_file(const char *name, const struct sba_diff_file *f)
{
	unlink(in_dir(name));
	if (S_ISLNK(f->mode)) {
		SBA_FREE char *target = strndup(f->content.data, f->content.len);
		assert_int_equal(symlink(target, in_dir(name)), 0);
		return;
	}
	int fd = open(in_dir(name), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(sba_write_all(fd, f->content.data, f->content.len, NULL), 0);
	assert_int_equal(fchmod(fd, f->mode & 0777), 0);
	close(fd);
}

static void assert_file(const char *name, const struct sba_diff_file *f)
{
	SBA_BUF struct sba_buf content = SBA_BUF_INIT(1 << 24);
	struct stat st;
	assert_int_equal(lstat(in_dir(name), &st), 0);
	assert_int_equal(st.st_mode & S_IFMT, f->mode & S_IFMT);
	if (S_ISLNK(f->mode))
		return;
	assert_int_equal(st.st_mode & S_IXUSR, f->mode & S_IXUSR);
	assert_int_equal(sba_read_file(in_dir(name), 1 << 24, &content, NULL), 0);
	assert_int_equal(content.len, f->content.len);
	if (content.len)
		assert_memory_equal(content.data, f->content.data, content.len);
}

/* git makes the new side of the old one, and the old one again in reverse. */
static void assert_git_applies(const struct sba_diff_file *old, const struct sba_diff_file *fresh)
{
	SBA_BUF struct sba_buf patch = SBA_BUF_INIT(1 << 24);
	const char *const there[] = { "git", "-C",        dir, "apply", "--whitespace=nowarn",
				      "-p1", "the patch", NULL };
	const char *const back[] = { "git", "-C",        dir, "apply", "--whitespace=nowarn",
				     "-R",  "the patch", NULL };
	const struct sba_diff_file whole = { .mode = S_IFREG | 0644 };
	assert_int_equal(sba_diff_patch(old, fresh, &patch, NULL), 0);
	assert_true(patch.len > 0);
	struct sba_diff_file file = whole;
	file.content = (struct sba_diff_text){ patch.data, patch.len };
	put_file("the patch", &file);
	if (old->path)
		put_file(old->path, old);
	assert_int_equal(run(there), 0);
	if (fresh->path)
		assert_file(fresh->path, fresh);
	else
		assert_int_equal(access(in_dir(old->path), F_OK), -1);
	assert_int_equal(run(back), 0);
	if (old->path)
		assert_file(old->path, old);
	if (old->path)
		unlink(in_dir(old->path));
}

static void git_applies_patches_of_text(void **state)
{
	const struct sba_diff_file none = { 0 };
	const struct sba_diff_file a = { "f", S_IFREG | 0644, text_of("1\n2\n3\n4\n5\n") };
	const struct sba_diff_file b = { "f", S_IFREG | 0755, text_of("1\n2\nthree\n4\n5") };
	const struct sba_diff_file odd = { "a \"b\"\xc3\xbc\tc", S_IFREG | 0644, text_of("x\n") };
	const struct sba_diff_file odder = { "a \"b\"\xc3\xbc\tc", S_IFREG | 0644, text_of("y") };
	const struct sba_diff_file empty = { "e", S_IFREG | 0755, { "", 0 } };
	const struct sba_diff_file filled = { "e", S_IFREG | 0755, text_of("1\n") };
	(void)state;
	assert_git_applies(&a, &b);
	assert_git_applies(&b, &a);
	assert_git_applies(&none, &a);
	assert_git_applies(&a, &none);
	assert_git_applies(&odd, &odder);
	assert_git_applies(&none, &odd);
	assert_git_applies(&none, &empty);
	assert_git_applies(&empty, &none);
	assert_git_applies(&empty, &filled);
}

static void git_applies_patches_of_bytes(void **state)
{
	enum { SIZE = 100000 };
	SBA_FREE char *noise = malloc(SIZE);
	unsigned seed = 3;
	const struct sba_diff_file none = { 0 };
	(void)state;
	assert_non_null(noise);
	for (size_t i = 0; i < SIZE; i++)
		noise[i] = (char)next_random(&seed);
	noise[0] = '\0';
	const struct sba_diff_file text = { "b", S_IFREG | 0644, text_of("text\n") };
	/* Every length of the last group, and of the last line. */
	for (size_t len = 1; len < 70; len += 1 + (len > 8) * 6) {
		const struct sba_diff_file f = { "b", S_IFREG | 0644, { noise, len } };
		assert_git_applies(&none, &f);
	}
	const struct sba_diff_file large = { "b", S_IFREG | 0755, { noise, SIZE } };
	assert_git_applies(&text, &large);
	assert_git_applies(&large, &none);
}

static void git_applies_renamings_modes_and_links(void **state)
{
	const struct sba_diff_file from = { "from", S_IFREG | 0644, { "", 0 } };
	const struct sba_diff_file to = { "to it", S_IFREG | 0644, { "", 0 } };
	const struct sba_diff_file plain = { "m", S_IFREG | 0644, text_of("#!\n") };
	const struct sba_diff_file runs = { "m", S_IFREG | 0755, text_of("#!\n") };
	const struct sba_diff_file link = { "m", S_IFLNK | 0777, text_of("target") };
	const struct sba_diff_file none = { 0 };
	(void)state;
	assert_git_applies(&from, &to);
	assert_git_applies(&plain, &runs);
	assert_git_applies(&none, &link);
	SBA_BUF struct sba_buf patch = SBA_BUF_INIT(1 << 20);
	assert_int_equal(sba_diff_patch(&plain, &link, &patch, NULL), 0);
	assert_non_null(strstr(patch.data, "deleted file mode 100644"));
	assert_non_null(strstr(patch.data, "new file mode 120000"));
}

static void what_git_does_not_see_has_no_patch(void **state)
{
	const struct sba_diff_file a = { "m", S_IFREG | 0644, text_of("x\n") };
	const struct sba_diff_file b = { "m", S_IFREG | 0600, text_of("x\n") };
	SBA_BUF struct sba_buf patch = SBA_BUF_INIT(1000);
	(void)state;
	assert_int_equal(sba_diff_patch(&a, &b, &patch, NULL), 0);
	assert_int_equal(patch.len, 0);
}

#define WITH_GIT(f) cmocka_unit_test_setup_teardown(f, make_dir, drop_dir)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hunks_are_those_that_people_know),
		cmocka_unit_test(hunks_lead_from_any_text_to_any_other),
		cmocka_unit_test(no_shorter_script_exists),
		cmocka_unit_test(texts_without_a_common_line_take_no_time),
		cmocka_unit_test(a_nul_near_the_beginning_is_no_text),
		cmocka_unit_test(names_are_quoted_as_git_does),
		WITH_GIT(git_applies_patches_of_text),
		WITH_GIT(git_applies_patches_of_bytes),
		WITH_GIT(git_applies_renamings_modes_and_links),
		cmocka_unit_test(what_git_does_not_see_has_no_patch),
	};
	alarm(120);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
