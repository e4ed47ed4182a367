/* SPDX-License-Identifier: MIT */
/*
 * Whole pieces of work, each with its first, second, third … allocation failing:
 * none crashes, none keeps memory or a descriptor, and none calls a result
 * right that is not.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "archive/archive.h"
#include "drivers/drivers.h"
#include "engine/engine.h"
#include "model/private.h"
#include "proxy/proxy.h"
#include "sandbox/private.h"
#include "support/alloc_fail.h"
#include "support/folder.h"

#include <sandbox-agent/config.h>
#include <sandbox-agent/image.h>

#include <dirent.h>
#include <signal.h>
#include <sanitizer/lsan_interface.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS_MAX = 100000, EVERY_ONE = 128 /* so many, then fewer and fewer */ };

/* 0 with everything right (it fails the test itself if not), or an error. Leaves
 * nothing behind either way. */
typedef int piece_of_work(struct sba_error *err);

static char dir[64];

static size_t descriptors(void)
{
	size_t n = 0;
	DIR *d = opendir("/proc/self/fd");
	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* Until a round is over before it comes to the allocation that fails. */
static void survives(piece_of_work *work)
{
	struct sba_error err = { 0 };
	assert_int_equal(work(&err), 0); /* what is made once is made here */
	size_t before = descriptors(), failures = 0;
	for (size_t n = 1; n <= ROUNDS_MAX; n += 1 + n / EVERY_ONE) {
		memset(&err, 0, sizeof(err));
		alloc_fail_arm(n);
		int rc = work(&err);
		if (!alloc_fail_disarm()) {
			assert_int_equal(rc, 0);
			break;
		}
		failures += rc < 0;
		if (rc < 0 && (err.code != rc || !err.text[0]))
			fail_msg("allocation %zu: %d without words", n, rc);
		if (descriptors() != before)
			fail_msg("allocation %zu: a descriptor is left", n);
		if (__lsan_do_recoverable_leak_check())
			fail_msg("allocation %zu: memory is left", n);
	}
	assert_true(failures > 0);
}

/* ---- the work ---- */

static int read_config(struct sba_error *err)
{
	static const char text[] =
		"{\"prefix\": \"mine\", \"agents\": {\"claude\": {\"model\": \"m\"}}}";
	struct sba_config_options o = { .text = text,
					.text_len = sizeof(text) - 1,
					.file = "config.json" };
	struct sba_config *c = NULL;
	int rc = sba_config_load(&o, &c, err);
	if (rc == 0)
		assert_string_equal(sba_config_text(c, "prefix", NULL), "mine");
	sba_config_free(c);
	return rc;
}

static void config_survives(void **state)
{
	(void)state;
	survives(read_config);
}

static const char *context_env(void *user, const char *name)
{
	(void)user;
	if (strcmp(name, "DOCKER_CONFIG") == 0)
		return dir;
	return strcmp(name, "DOCKER_CONTEXT") == 0 ? "far" : NULL;
}

static int find_endpoint(struct sba_error *err)
{
	struct sba_endpoint ep;
	int rc = sba_endpoint_find(NULL, context_env, NULL, &ep, err);
	if (rc == 0)
		assert_string_equal(ep.host, "tcp://far.example:2376");
	return rc;
}

static void put_file(const char *name, const char *text)
{
	char path[256];
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	for (char *p = path + strlen(dir) + 1; (p = strchr(p, '/')) != NULL; p++) {
		*p = '\0';
		mkdir(path, 0700);
		*p = '/';
	}
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void a_docker_context_survives(void **state)
{
	(void)state;
	char hash[SBA_SHA256_HEX], name[160];
	assert_int_equal(sba_sha256_hex("far", 3, hash), 0);
	snprintf(name, sizeof(name), "contexts/meta/%s/meta.json", hash);
	put_file(name, "{\"Endpoints\":{\"docker\":{\"Host\":\"tcp://far.example:2376\"}}}");
	survives(find_endpoint);
}

/* An engine that knows one container and one exec, as a process of its own: what
 * it needs is not ours. */
static void serve(int listener)
{
	static const char ping[] = "HTTP/1.1 200 OK\r\nApi-Version: 1.41\r\n"
				   "Content-Length: 2\r\n\r\nOK";
	static const char created[] = "HTTP/1.1 201 Created\r\nContent-Length: 13\r\n\r\n"
				      "{\"Id\":\"feed\"}";
	static const char stream[] = "HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\n"
				     "Upgrade: tcp\r\n\r\n\1\0\0\0\0\0\0\5hello";
	for (;;) {
		char in[4096];
		int fd = accept(listener, NULL, NULL);
		ssize_t n;
		while ((n = read(fd, in, sizeof(in) - 1)) > 0) {
			in[n] = '\0';
			bool start = strstr(in, "/start ") != NULL;
			const char *say = start ? stream : strstr(in, "/_ping ") ? ping : created;
			size_t len = start         ? sizeof(stream) - 1
				     : say == ping ? sizeof(ping) - 1
						   : sizeof(created) - 1;
			/* The client may have given up. */
			if (send(fd, say, len, MSG_NOSIGNAL) < 0 || start)
				break;
		}
		close(fd);
	}
}

static pid_t start_engine(char *host, size_t size)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	snprintf(at.sun_path, sizeof(at.sun_path), "%s/engine", dir);
	snprintf(host, size, "unix://%s", at.sun_path);
	assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(listener, 16), 0);
	pid_t pid = fork();
	if (pid == 0)
		serve(listener);
	close(listener);
	return pid;
}

static char engine_host[128];

static int ask_engine(struct sba_error *err)
{
	static const char *const argv[] = { "true", NULL };
	const struct sba_exec_spec spec = { .container = "c", .argv = argv };
	struct sba_engine_options o = { .host = engine_host };
	struct sba_engine *e = NULL;
	struct sba_exec *x = NULL;
	enum sba_exec_stream which;
	const char *data;
	ssize_t n = 0;
	int rc = sba_engine_open(&o, &e, err);
	if (rc == 0)
		rc = sba_exec_open(e, &spec, sba_until_in(20000), &x, err);
	if (rc == 0)
		n = sba_exec_read(x, &which, &data, sba_until_in(20000), err);
	if (rc == 0 && n >= 0) {
		assert_int_equal(n, 5);
		assert_memory_equal(data, "hello", 5);
	}
	sba_exec_close(x);
	sba_engine_close(e);
	return n < 0 ? (int)n : rc;
}

static void an_exec_survives(void **state)
{
	(void)state;
	pid_t engine = start_engine(engine_host, sizeof(engine_host));
	survives(ask_engine);
	kill(engine, SIGKILL);
	assert_int_equal(waitpid(engine, NULL, 0), engine);
}

static int land_a_tree(struct sba_error *err)
{
	static const struct sba_pack_options packing = { .fixed_mtime = 1 };
	char dest[128], file[160];
	struct sba_pack *p = NULL;
	struct sba_land_report report;
	snprintf(dest, sizeof(dest), "%s/landed", dir);
	snprintf(file, sizeof(file), "%s/a/b", dest);
	const struct sba_land_options landing = { .source_name = "s", .dest = dest };
	int rc = sba_pack_new(&packing, &p, err);
	if (rc == 0)
		rc = sba_pack_dir(p, "s", 0755, err);
	if (rc == 0)
		rc = sba_pack_dir(p, "s/a", 0755, err);
	if (rc == 0)
		rc = sba_pack_bytes(p, "s/a/b", "content", 7, 0644, err);
	if (rc == 0)
		rc = sba_land(&landing, sba_pack_read, p, &report, err);
	sba_pack_free(p);
	if (rc == 0) {
		struct stat st;
		assert_int_equal(stat(file, &st), 0);
		assert_int_equal(st.st_size, 7);
		assert_int_equal(report.files, 1);
		unlink(file);
		snprintf(file, sizeof(file), "%s/a", dest);
		rmdir(file);
		assert_int_equal(rmdir(dest), 0);
	}
	assert_int_equal(access(dest, F_OK), -1);
	return rc;
}

static void a_landing_survives(void **state)
{
	(void)state;
	survives(land_a_tree);
}

static struct sba_buf recording = SBA_BUF_INIT(16 * 1024 * 1024);

static int count_event(void *user, const struct sba_event *e)
{
	(void)e;
	++*(size_t *)user;
	return 0;
}

static int parse_stream(struct sba_error *err)
{
	struct sba_stream *s = NULL;
	struct sba_outcome end;
	size_t events = 0;
	const struct sba_stream_options options = { .driver = sba_driver_find("claude"),
						    .fn = count_event,
						    .user = &events };
	int rc = sba_stream_new(&options, &s, err);
	const char *at = recording.data;
	while (rc == 0 && *at) {
		size_t len = strcspn(at, "\n");
		rc = sba_stream_line(s, at, len);
		at += len + (at[len] == '\n');
	}
	if (rc == 0)
		rc = sba_stream_finish(s, 0, "", &end);
	/* A line that was lost may cost events, but not the truth of the verdict. */
	if (rc == 0 && end.verdict == SBA_VERDICT_OK)
		assert_string_equal(end.text, "Pong. users=1");
	sba_stream_free(s);
	return rc == SBA_ENOMEM ? sba_fail_nomem(err) : rc;
}

static void a_cli_stream_survives(void **state)
{
	(void)state;
	struct sba_error err;
	assert_int_equal(
		sba_read_file("tests/fixtures/claude/hello.jsonl", 1 << 24, &recording, &err), 0);
	survives(parse_stream);
	sba_buf_fini(&recording);
}

static int parse_script(struct sba_error *err)
{
	json_t *j = NULL;
	int rc = sba_model_script_parse(sba_model_builtin_script, &j, err);
	json_decref(j);
	return rc;
}

static void a_model_script_survives(void **state)
{
	(void)state;
	survives(parse_script);
}

static int read_versions(struct sba_error *err)
{
	struct sba_images *i = NULL;
	int rc = sba_images_open(NULL, "versions.json", &i, err);
	if (rc == 0)
		assert_non_null(sba_images_ref(i, "claude"));
	sba_images_close(i);
	return rc;
}

static void the_pinned_versions_survive(void **state)
{
	(void)state;
	survives(read_versions);
}

static int read_rules(struct sba_error *err)
{
	static const char *const texts[] = { "*.example.org:443", "pypi.org", NULL };
	struct sba_rules *r = NULL;
	int rc = sba_rules_new(texts, &r, err);
	if (rc == 0)
		assert_true(sba_rules_allow_name(r, "pypi.org", 443));
	sba_rules_free(r);
	return rc;
}

static void rules_survive(void **state)
{
	(void)state;
	survives(read_rules);
}

static int make_labels(struct sba_error *err)
{
	const struct sba_sandbox_options o = {
		.name = "n", .prefix = "p", .image = "i", .tag = "t", .user = "1000"
	};
	json_t *j = NULL;
	int rc = sba_labels_make(&o, "0123", NULL, &j, err);
	if (rc == 0)
		assert_string_equal(sba_label_get(j, "name"), "n");
	json_decref(j);
	return rc;
}

static void labels_survive(void **state)
{
	(void)state;
	survives(make_labels);
}

static int set_up(void **state)
{
	(void)state;
	alarm(170);
	test_folder(dir, sizeof(dir), "sba-alloc");
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(config_survives),
		cmocka_unit_test(a_docker_context_survives),
		cmocka_unit_test(an_exec_survives),
		cmocka_unit_test(a_landing_survives),
		cmocka_unit_test(a_cli_stream_survives),
		cmocka_unit_test(a_model_script_survives),
		cmocka_unit_test(the_pinned_versions_survive),
		cmocka_unit_test(rules_survive),
		cmocka_unit_test(labels_survive),
	};
	return cmocka_run_group_tests(tests, set_up, NULL);
}
