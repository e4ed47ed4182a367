/* SPDX-License-Identifier: MIT */
/* A table of one's own: what of it is used, what its version says, and what it cannot do. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <sandbox-agent/sandbox-agent.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "support/folder.h"
#include "support/tar_builder.h"

#define HASH_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

/* No test of this file lets a command begin. */
static int no_exec(struct sba_sandbox *s, const struct sba_exec_options *o,
		   struct sba_process **ret, struct sba_error *err)
{
	(void)s;
	(void)ret;
	return sba_fail(err, SBA_EIO, "no command: %s", o->argv[0]);
}

static int close_it(struct sba_sandbox *s, struct sba_error *err)
{
	(void)s;
	(void)err;
	return 0;
}

static struct sba_sandbox *adopt(const struct sba_backend *b, void *self)
{
	struct sba_sandbox *s = NULL;
	struct sba_error err = { 0 };
	if (sba_sandbox_adopt(b, self, "calm-fox", &s, &err) < 0)
		fail_msg("%s", err.text);
	return s;
}

/* ---- versions ---- */

static int must_not_be_called(struct sba_sandbox *s, const struct sba_snapshot_options *o,
			      sba_snapshot_fn *tell, void *user, struct sba_error *err)
{
	(void)s;
	(void)o;
	(void)tell;
	(void)user;
	(void)err;
	fail_msg("what a table of version 1 has there is no member");
	return 0;
}

static void a_table_of_an_earlier_version_is_taken_as_it_was_then(void **state)
{
	/* What it never had to clear is whatever it is. */
	const struct sba_backend old = {
		.version = 1,
		.name = "old",
		.can = SBA_CAN_TREES | ~(unsigned)(SBA_CAN_HOST_URL | SBA_CAN_FORK),
		.exec = no_exec,
		.close = close_it,
		.snapshot = must_not_be_called,
	};
	struct sba_sandbox *s = adopt(&old, NULL);
	struct sba_snapshot *n = NULL;
	struct sba_error err = { 0 };
	(void)state;
	assert_string_equal(sba_sandbox_backend(s), "old");
	assert_true(sba_sandbox_can(s, SBA_CAN_TREES | SBA_CAN_INSPECT));
	assert_false(sba_sandbox_can(s, SBA_CAN_INSPECT << 1));
	assert_int_equal(sba_sandbox_snapshot(s, NULL, &n, &err), SBA_EIO);
	assert_non_null(strstr(err.text, "no command: sh"));
	sba_sandbox_close(s);
}

static void a_table_of_a_later_version_is_refused(void **state)
{
	const struct sba_backend late = { .version = SBA_BACKEND_VERSION + 1,
					  .name = "late",
					  .exec = no_exec,
					  .close = close_it };
	struct sba_sandbox *s = NULL;
	struct sba_error err = { 0 };
	(void)state;
	assert_int_equal(sba_sandbox_adopt(&late, NULL, NULL, &s, &err), SBA_EINVAL);
	assert_null(s);
	assert_non_null(strstr(err.text, "version"));
}

/* ---- a snapshot of its own ---- */

struct told {
	const struct sba_snapshot_file *v;
	size_t n;
	int64_t max_file_size; /* that was asked for */
};

static int tell_told(struct sba_sandbox *s, const struct sba_snapshot_options *o,
		     sba_snapshot_fn *tell, void *user, struct sba_error *err)
{
	struct told *t = sba_sandbox_self(s);
	int rc = 0;
	t->max_file_size = (int64_t)o->max_file_size;
	for (size_t i = 0; rc == 0 && i < t->n; i++)
		rc = tell(user, &t->v[i], err);
	return rc;
}

static const struct sba_backend telling = { .version = SBA_BACKEND_VERSION,
					    .name = "telling",
					    .exec = no_exec,
					    .close = close_it,
					    .snapshot = tell_told };

static void a_snapshot_is_the_tables_own_by_path(void **state)
{
	static const struct sba_snapshot_file files[] = {
		{ .path = "z", .sha256 = HASH_A, .size = 1, .mode = S_IFREG | 0644 },
		{ .path = "locked" },
		{ .path = "a/link", .mode = S_IFLNK | 0777, .link = "../z", .size = 4 },
		{ .path = "a/large", .mode = S_IFREG | 0600, .size = 1 << 30 },
	};
	struct told t = { files, SBA_ARRAY_LEN(files), 0 };
	const struct sba_snapshot_options o = { .max_file_size = 77 };
	struct sba_sandbox *s = adopt(&telling, &t);
	struct sba_snapshot *n = NULL;
	struct sba_error err = { 0 };
	(void)state;
	if (sba_sandbox_snapshot(s, &o, &n, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(t.max_file_size, 77);
	assert_int_equal(sba_snapshot_count(n), 3);
	assert_int_equal(sba_snapshot_left_out(n), 1);
	assert_string_equal(sba_snapshot_at(n, 0)->path, "a/large");
	assert_string_equal(sba_snapshot_at(n, 0)->sha256, "");
	assert_string_equal(sba_snapshot_at(n, 1)->link, "../z");
	assert_string_equal(sba_snapshot_at(n, 2)->sha256, HASH_A);
	assert_null(sba_snapshot_at(n, 3));
	sba_snapshot_free(n);
	sba_sandbox_close(s);
}

static void what_a_table_tells_is_checked(void **state)
{
	static const struct sba_snapshot_file wrong[] = {
		{ .path = "../out", .mode = S_IFREG },
		{ .path = "/abs", .mode = S_IFREG },
		{ .path = ".git/hooks/x", .mode = S_IFREG },
		{ .path = "pipe", .mode = S_IFIFO },
		{ .path = "a", .mode = S_IFREG, .sha256 = "abc" },
		{ .path = "a", .mode = S_IFREG, .link = "b" },
		{ .path = "a", .mode = S_IFLNK },
		{ .path = "a", .mode = S_IFREG, .size = UINT64_MAX },
	};
	static const struct sba_snapshot_file twice[] = { { .path = "a", .mode = S_IFREG },
							  { .path = "a", .mode = S_IFREG } };
	struct told t = { twice, 2, 0 };
	struct sba_sandbox *s = adopt(&telling, &t);
	struct sba_snapshot *n = NULL;
	struct sba_error err = { 0 };
	(void)state;
	assert_int_equal(sba_sandbox_snapshot(s, NULL, &n, &err), SBA_EPROTO);
	for (size_t i = 0; i < SBA_ARRAY_LEN(wrong); i++) {
		t = (struct told){ &wrong[i], 1, 0 };
		assert_int_equal(sba_sandbox_snapshot(s, NULL, &n, &err), SBA_EPROTO);
	}
	assert_null(n);
	sba_sandbox_close(s);
}

/* ---- trees of its own ---- */

struct box {
	char folder[64], path[64]; /* that were asked for */
	bool no_clobber;
	struct sba_buf tar;
	size_t at;
	unsigned closed;
	bool breaks;
};

static int take_tar(struct sba_sandbox *s, const char *folder, sba_read_fn *read, void *user,
		    const struct sba_tree_options *o, struct sba_error *err)
{
	struct box *b = sba_sandbox_self(s);
	char piece[1024];
	ssize_t n;
	snprintf(b->folder, sizeof(b->folder), "%s", folder);
	b->no_clobber = o->no_clobber;
	assert_true(o->timeout_ms > 0);
	sba_buf_reset(&b->tar);
	while ((n = read(user, piece, sizeof(piece), err)) > 0)
		sba_buf_put(&b->tar, piece, (size_t)n);
	return n < 0 ? (int)n : sba_buf_check(&b->tar, "tar", err);
}

static ssize_t next_bytes(void *user, void *buf, size_t size, struct sba_error *err)
{
	struct box *b = user;
	size_t n = b->tar.len - b->at < size ? b->tar.len - b->at : size;
	if (b->breaks && b->at > 0)
		return sba_fail(err, SBA_ELOST, "it broke");
	n = b->breaks && n > 512 ? 512 : n;
	memcpy(buf, b->tar.data + b->at, n);
	b->at += n;
	return (ssize_t)n;
}

static void closed(void *user)
{
	((struct box *)user)->closed++;
}

static int give_tar(struct sba_sandbox *s, const char *path, const struct sba_tree_options *o,
		    struct sba_tree *ret, struct sba_error *err)
{
	struct box *b = sba_sandbox_self(s);
	(void)o;
	(void)err;
	snprintf(b->path, sizeof(b->path), "%s", path);
	b->at = 0;
	*ret = (struct sba_tree){ .read = next_bytes, .close = closed, .user = b };
	return 0;
}

/* Every path that ends in "tree" is a folder. */
static int stat_it(struct sba_sandbox *s, const char *path, struct sba_file_stat *ret,
		   struct sba_error *err)
{
	(void)s;
	if (!sba_ends_with(path, "tree"))
		return sba_fail(err, SBA_ENOTFOUND, "no '%s'", path);
	*ret = (struct sba_file_stat){ .mode = S_IFDIR | 0755 };
	return 0;
}

static const struct sba_backend carrying = {
	.version = SBA_BACKEND_VERSION,
	.name = "carrying",
	.can = SBA_CAN_TREES,
	.exec = no_exec,
	.stat = stat_it,
	.close = close_it,
	.upload = take_tar,
	.download = give_tar,
};

static void trees_go_by_the_tables_own_way(void **state)
{
	struct box b = { .tar = SBA_BUF_INIT(1 << 20) };
	struct sba_sandbox *s = adopt(&carrying, &b);
	const struct sba_transfer_options o = { .no_clobber = true };
	struct sba_transfer_report report = { 0 };
	struct sba_error err = { 0 };
	char folder[200], path[256];
	(void)state;
	test_folder(folder, sizeof(folder), "table");
	snprintf(path, sizeof(path), "%s/tree", folder);
	assert_int_equal(mkdir(path, 0755), 0);
	snprintf(path, sizeof(path), "%s/tree/file", folder);
	SBA_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	assert_int_equal(write(fd, "content", 7), 7);
	snprintf(path, sizeof(path), "%s/tree", folder);
	if (sba_sandbox_upload(s, path, "/data/new", &o, &report, &err) < 0)
		fail_msg("%s", err.text);
	assert_string_equal(b.folder, "/data");
	assert_true(b.no_clobber);
	assert_int_equal(report.files, 1);
	assert_int_equal(report.bytes, 7);
	/* It was called new, and comes back so. */
	snprintf(path, sizeof(path), "%s/back", folder);
	assert_int_equal(mkdir(path, 0755), 0);
	sba_buf_reset(&b.tar);
	tar_dir(&b.tar, "tree/");
	tar_file(&b.tar, "tree/file", "content");
	tar_end(&b.tar);
	if (sba_sandbox_download(s, "/data/tree", path, NULL, &report, &err) < 0)
		fail_msg("%s", err.text);
	assert_string_equal(b.path, "/data/tree");
	assert_int_equal(b.closed, 1);
	snprintf(path, sizeof(path), "%s/back/tree/file", folder);
	assert_int_equal(access(path, R_OK), 0);
	sba_sandbox_close(s);
	sba_buf_fini(&b.tar);
	test_folder_remove(folder);
}

static void a_tree_that_breaks_leaves_nothing_and_is_closed(void **state)
{
	struct box b = { .tar = SBA_BUF_INIT(1 << 20), .breaks = true };
	struct sba_sandbox *s = adopt(&carrying, &b);
	struct sba_error err = { 0 };
	char folder[200], path[256];
	(void)state;
	test_folder(folder, sizeof(folder), "table");
	snprintf(path, sizeof(path), "%s/new", folder);
	tar_dir(&b.tar, "tree/");
	tar_file(&b.tar, "tree/file", "content");
	tar_end(&b.tar);
	assert_int_equal(sba_sandbox_download(s, "/data/tree", path, NULL, NULL, &err), SBA_ELOST);
	assert_int_equal(b.closed, 1);
	assert_int_equal(access(path, F_OK), -1);
	sba_sandbox_close(s);
	sba_buf_fini(&b.tar);
	test_folder_remove(folder);
}

/* ---- code of its own ---- */

static int run_it(struct sba_sandbox *s, const struct sba_code_options *o, sba_code_fn *tell,
		  void *user, struct sba_exit *ret, struct sba_error *err)
{
	static const struct sba_code_form forms[] = {
		{ .type = "text/plain", .data = "42", .len = 2 },
		{ .type = "image/png", .data = "AAAA", .len = 4 },
	};
	static const struct sba_code_value value = { .forms = forms, .n = 2, .is_result = true };
	const struct sba_code_event events[] = {
		{ .kind = SBA_CODE_STDOUT, .data = "out", .len = 3 },
		{ .kind = SBA_CODE_VALUE, .value = &value },
		{ .kind = SBA_CODE_STDERR, .data = "err", .len = 3 },
		{ .kind = SBA_CODE_ERROR, .name = "First", .text = o->language },
		{ .kind = SBA_CODE_ERROR, .name = "Second", .traceback = "t" },
		{ .kind = SBA_CODE_EXECUTION, .number = 7 },
		{ .kind = SBA_CODE_STDOUT, .data = "more", .len = 4 },
	};
	int rc = 0;
	(void)s;
	assert_int_equal(o->timeout_ms, 60000);
	for (size_t i = 0; rc == 0 && i < SBA_ARRAY_LEN(events); i++)
		rc = tell(user, &events[i], err);
	*ret = (struct sba_exit){ .kind = SBA_EXITED, .number = 1 };
	return rc;
}

static const struct sba_backend running = { .version = SBA_BACKEND_VERSION,
					    .name = "running",
					    .can = SBA_CAN_RUN_CODE,
					    .exec = no_exec,
					    .close = close_it,
					    .run_code = run_it };

static void what_comes_of_code_is_collected_up_to_its_limit(void **state)
{
	const struct sba_code_options all = { .code = "1" };
	const struct sba_code_options little = { .code = "1", .max_output = 5 };
	struct sba_sandbox *s = adopt(&running, NULL);
	struct sba_code_run r = { 0 };
	struct sba_error err = { 0 };
	(void)state;
	assert_int_equal(sba_sandbox_run_code(s, &all, &r, &err), 0);
	assert_string_equal(r.out, "outmore");
	assert_string_equal(r.err, "err");
	assert_int_equal(r.n_values, 1);
	assert_string_equal(r.values[0].forms[1].type, "image/png");
	assert_string_equal(r.error_name, "First");
	assert_string_equal(r.error_value, "python");
	assert_string_equal(r.error_traceback, "");
	assert_int_equal(r.execution, 7);
	assert_int_equal(r.exit.number, 1);
	assert_int_equal(r.dropped, 0);
	sba_code_run_fini(&r);
	assert_int_equal(sba_sandbox_run_code(s, &little, &r, &err), 0);
	assert_string_equal(r.out, "out");
	assert_int_equal(r.n_values, 0);
	assert_string_equal(r.err, "er");
	assert_string_equal(r.error_name, "First");
	assert_int_equal(r.dropped, 6 + 1 + 4);
	sba_code_run_fini(&r);
	sba_sandbox_close(s);
}

static void a_table_that_promises_contexts_has_them(void **state)
{
	struct sba_backend b = running;
	struct sba_sandbox *s = NULL;
	struct sba_error err = { 0 };
	(void)state;
	b.can |= SBA_CAN_CODE_STATE;
	assert_int_equal(sba_sandbox_adopt(&b, NULL, NULL, &s, &err), SBA_EINVAL);
	assert_null(s);
}

/* ---- what it cannot do ---- */

static size_t count(const char *text, const char *word)
{
	size_t n = 0;
	while ((text = strstr(text, word))) {
		n++;
		text += strlen(word);
	}
	return n;
}

static void assert_names_once(int rc, const struct sba_error *err, const char *capability)
{
	char word[32];
	snprintf(word, sizeof(word), "'%s'", capability);
	assert_int_equal(rc, SBA_EUNSUPPORTED);
	if (count(err->text, word) != 1 || count(err->text, "calm-fox") != 1)
		fail_msg("%s: %s", capability, err->text);
}

static const struct sba_backend bare = {
	.version = SBA_BACKEND_VERSION, .name = "bare", .exec = no_exec, .close = close_it
};

static void a_command_asks_for_no_more_than_it_can(void **state)
{
	static const char *const argv[] = { "true", NULL };
	const struct {
		struct sba_exec_options o;
		const char *capability;
	} asked[] = {
		{ { .argv = argv, .tty = true }, "tty" },
		{ { .argv = argv, .user = "root" }, "user" },
		{ { .argv = argv, .detach = true }, "detach" },
	};
	struct sba_sandbox *s = adopt(&bare, NULL);
	(void)state;
	for (size_t i = 0; i < SBA_ARRAY_LEN(asked); i++) {
		struct sba_process *p = NULL;
		struct sba_error err = { 0 };
		int rc = sba_sandbox_exec(s, &asked[i].o, &p, &err);
		assert_names_once(rc, &err, asked[i].capability);
	}
	sba_sandbox_close(s);
}

static void each_missing_capability_names_itself_once(void **state)
{
	struct sba_sandbox *s = adopt(&bare, NULL), *child = NULL;
	const struct sba_port_options port = { .port = 80 };
	struct sba_port *p = NULL;
	struct sba_sandbox_limits limits;
	struct sba_error err = { 0 };
	char url[64], **names = NULL, *json = NULL;
	bool ended;
	const struct sba_code_options code = { .code = "1" };
	struct sba_code_run run = { 0 };
	(void)state;
	assert_names_once(sba_sandbox_run_code(s, &code, &run, &err), &err, "run_code");
	assert_names_once(sba_code_context_new(s, NULL, &json, &err), &err, "run_code");
	assert_names_once(sba_sandbox_upload(s, "/etc/hostname", "/x", NULL, NULL, &err), &err,
			  "trees");
	assert_names_once(sba_sandbox_download(s, "/x", "/tmp", NULL, NULL, &err), &err, "trees");
	assert_names_once(sba_sandbox_host_url(s, 80, url, sizeof(url), &err), &err, "host_url");
	assert_names_once(sba_port_open(s, &port, &p, &err), &err, "port");
	assert_names_once(sba_sandbox_fork(s, NULL, &child, NULL, &err), &err, "fork");
	assert_names_once(sba_sandbox_limits(s, &limits, &err), &err, "inspect");
	assert_names_once(sba_sandbox_describe(s, &json, &err), &err, "inspect");
	assert_names_once(sba_sandbox_env_names(s, &names, &err), &err, "inspect");
	assert_names_once(sba_sandbox_stop(s, &ended, &err), &err, "inspect");
	sba_sandbox_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_table_of_an_earlier_version_is_taken_as_it_was_then),
		cmocka_unit_test(a_table_of_a_later_version_is_refused),
		cmocka_unit_test(a_snapshot_is_the_tables_own_by_path),
		cmocka_unit_test(what_a_table_tells_is_checked),
		cmocka_unit_test(trees_go_by_the_tables_own_way),
		cmocka_unit_test(a_tree_that_breaks_leaves_nothing_and_is_closed),
		cmocka_unit_test(what_comes_of_code_is_collected_up_to_its_limit),
		cmocka_unit_test(a_table_that_promises_contexts_has_them),
		cmocka_unit_test(a_command_asks_for_no_more_than_it_can),
		cmocka_unit_test(each_missing_capability_names_itself_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
