/* SPDX-License-Identifier: MIT */
/*
 * The fixture of live tests: see live.h. A janitor process waits for the end
 * of ours, however it comes, and sweeps what carries our prefix.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/live.h"

#include "archive/archive.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { STEP_MS = 60 * 1000, TEST_S = 120, OUTPUT_MAX = 160 * 1024 * 1024 };

struct live live;

static struct sba_until soon(void)
{
	return sba_until_in(STEP_MS);
}

/* ---- sweeping ---- */

static json_t *containers_of(struct sba_engine *e)
{
	char label[80];
	snprintf(label, sizeof(label), "io.sandbox-agent.prefix=%s", live.prefix);
	const char *const labels[] = { label, NULL };
	json_t *list = NULL;
	struct sba_error err = { 0 };
	if (sba_container_list(e, labels, soon(), &list, &err) == 0)
		return list;
	print_error("%s\n", err.text);
	return NULL;
}

static json_t *images_of(struct sba_engine *e)
{
	char pattern[80];
	snprintf(pattern, sizeof(pattern), "%s*", live.prefix);
	json_t *list = NULL;
	return sba_image_list(e, pattern, soon(), &list, NULL) == 0 ? list : json_array();
}

static void sweep_containers(struct sba_engine *e)
{
	size_t i;
	json_t *one;
	SBA_JSON json_t *containers = containers_of(e);
	json_array_foreach(containers, i, one)
	{
		if (sba_container_remove(e, sba_json_str(one, "Id"), soon(), NULL) < 0)
			continue;
	}
}

static void sweep(struct sba_engine *e)
{
	size_t i, t;
	json_t *one, *tag;
	sweep_containers(e);
	SBA_JSON json_t *images = images_of(e);
	json_array_foreach(images, i, one)
	{
		json_array_foreach(json_object_get(one, "RepoTags"), t, tag)
		{
			if (sba_image_remove(e, json_string_value(tag), soon(), NULL) < 0)
				continue;
		}
	}
}

static void janitor(int lifeline)
{
	char c;
	setsid();
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = 0; fd < 3; fd++)
		dup2(null, fd);
	while (read(lifeline, &c, 1) < 0 && errno == EINTR)
		;
	struct sba_engine *e = NULL;
	if (sba_engine_open(NULL, &e, NULL) == 0)
		sweep(e);
	sba_remove_tree(AT_FDCWD, live.dir);
	_exit(0);
}

static int hire_janitor(void)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	pid_t pid = fork();
	if (pid == 0) {
		close(ends[1]);
		janitor(ends[0]);
	}
	close(ends[0]);
	live.lifeline = ends[1];
	return pid < 0 ? -1 : 0;
}

/* ---- the fixture ---- */

static bool image_is_here(const char *ref)
{
	SBA_JSON json_t *j = NULL;
	return sba_image_inspect(live.engine, ref, soon(), &j, NULL) == 0;
}

static int choose_image(void)
{
	const char *asked = getenv("SANDBOX_AGENT_TEST_IMAGE");
	const char *const choice[] = { asked && *asked ? asked : "debian:stable-slim",
				       "sandbox-agent:debian-bookworm-local",
				       "debian:bookworm-slim" };
	for (size_t i = 0; i < SBA_ARRAY_LEN(choice); i++) {
		if (!image_is_here(choice[i]))
			continue;
		snprintf(live.image, sizeof(live.image), "%s", choice[i]);
		return 0;
	}
	print_error("no image to test with: set SANDBOX_AGENT_TEST_IMAGE\n");
	return -1;
}

/* So that no test finds it on a stderr that it compares. */
static void have_said_what_is_said_once(void)
{
	LIVE_CHILD c;
	RUN(&c, "--no-audit", "create", "--pull", "never", "--image", "sbatest-none:1");
}

int live_begin(void **state)
{
	(void)state;
	char hex[9];
	struct sba_error err = { 0 };
	unsetenv("SANDBOX_AGENT_VERSIONS");
	unsetenv("SANDBOX_AGENT_IMAGE_NAME");
	/* A run that takes a census tells its own things from other runs'. */
	const char *word = getenv("SBA_TEST_WORD");
	if (!word || !*word)
		word = "sbatest";
	snprintf(live.dir, sizeof(live.dir), "/tmp/%.12s-XXXXXX", word);
	if (sba_random_hex(hex, 4, &err) < 0 || !mkdtemp(live.dir))
		return -1;
	snprintf(live.prefix, sizeof(live.prefix), "%.12s-%s", word, hex);
	setenv("SANDBOX_AGENT_RESOURCE_PREFIX", live.prefix, 1);
	/* No configuration of whoever runs the tests. */
	setenv("XDG_CONFIG_HOME", live.dir, 1);
	unsetenv("SANDBOX_AGENT_CONFIG");
	/* Nor records of ours among theirs. */
	setenv("SANDBOX_AGENT_AUDIT_ROOT", live_path("audit"), 1);
	setenv("XDG_STATE_HOME", live_path("state"), 1);
	/* Before the first thread. */
	if (hire_janitor() < 0)
		return -1;
	if (sba_engine_open(NULL, &live.engine, &err) < 0) {
		print_error("%s\n", err.text);
		return -1;
	}
	have_said_what_is_said_once();
	return choose_image();
}

int live_end(void **state)
{
	(void)state;
	alarm(STEP_MS / 1000);
	if (live.engine)
		sweep(live.engine);
	sba_engine_close(live.engine);
	close(live.lifeline);
	sba_remove_tree(AT_FDCWD, live.dir);
	return 0;
}

int live_test_begin(void **state)
{
	(void)state;
	alarm(TEST_S);
	return 0;
}

int live_test_end(void **state)
{
	(void)state;
	/* Self-removal is the engine's, a moment after the end. */
	int64_t deadline = sba_now_ms() + 3000;
	while (live_container_count() > 0 && sba_now_ms() < deadline)
		nanosleep(&(struct timespec){ .tv_nsec = 50 * 1000 * 1000 }, NULL);
	size_t left = live_container_count();
	if (left == 0)
		return 0;
	sweep_containers(live.engine);
	print_error("%zu containers were left\n", left);
	return -1;
}

/* ---- the census ---- */

static size_t named(const char *path, const char *list_key)
{
	SBA_JSON json_t *j = NULL;
	struct sba_request request = { .method = "GET", .path = path, .tried = "census" };
	if (sba_engine_call(live.engine, &request, soon(), &j, NULL) < 0)
		return 0;
	size_t i, n = 0;
	json_t *one;
	json_array_foreach(list_key ? json_object_get(j, list_key) : j, i, one)
	{
		const char *name = sba_json_str(one, "Name");
		n += name && strstr(name, live.prefix);
	}
	return n;
}

/* Those without a name, too: by their label. The engine removes them a moment after their
 * last container. */
static bool no_volumes(void *user)
{
	char label[80];
	SBA_JSON json_t *unused = NULL;
	(void)user;
	snprintf(label, sizeof(label), "io.sandbox-agent.prefix=%s", live.prefix);
	return sba_volume_unused(live.engine, label, soon(), &unused, NULL) == 0 &&
	       json_array_size(unused) == 0;
}

void live_nothing_is_left(void **state)
{
	(void)state;
	live_await_no_containers(10000);
	live_await(no_volumes, NULL, 10000);
	SBA_JSON json_t *images = images_of(live.engine);
	size_t i, t;
	json_t *one, *tag;
	json_array_foreach(images, i, one)
		json_array_foreach(json_object_get(one, "RepoTags"), t, tag) assert_int_equal(
			sba_image_remove(live.engine, json_string_value(tag), soon(), NULL), 0);
	assert_int_equal(named("/volumes", "Volumes"), 0);
	assert_int_equal(named("/networks", NULL), 0);
}

/* ---- waiting ---- */

void live_await_(live_condition *holds, void *user, int64_t ms, const char *what, const char *file,
		 int line)
{
	int64_t deadline = sba_now_ms() + ms;
	while (!holds(user)) {
		if (sba_now_ms() > deadline) {
			print_error("not within %lld ms: %s\n", (long long)ms, what);
			_fail(file, line);
		}
		nanosleep(&(struct timespec){ .tv_nsec = 20 * 1000 * 1000 }, NULL);
	}
}

/* ---- sandboxes ---- */

struct sba_sandbox *live_sandbox(struct sba_sandbox_options o)
{
	struct sba_sandbox *s = NULL;
	struct sba_error err = { 0 };
	if (!o.prefix)
		o.prefix = live.prefix;
	if (!o.image)
		o.image = live.image;
	if (!o.keepalive_ms)
		o.keepalive_ms = 60 * 1000;
	if (sba_sandbox_create(live.engine, &o, &s, &err) < 0)
		fail_msg("%s", err.text);
	return s;
}

void live_remove(struct sba_sandbox *s)
{
	struct sba_error err = { 0 };
	if (sba_sandbox_remove(s, &err) < 0)
		fail_msg("%s", err.text);
	sba_sandbox_close(s);
}

/* On Podman an ended sidecar is taken away by the next command of any kind. */
json_t *live_containers(void)
{
	struct sba_sandbox_list *l = NULL;
	const struct sba_list_options o = { .prefix = live.prefix };
	if (sba_engine_podman(live.engine) && !sba_sandbox_list(live.engine, &o, &l, NULL))
		sba_sandbox_list_free(l);
	json_t *list = containers_of(live.engine);
	/* What could not be asked for is not "none". */
	assert_non_null(list);
	return list;
}

size_t live_container_count(void)
{
	SBA_JSON json_t *list = live_containers();
	return json_array_size(list);
}

static bool no_containers(void *user)
{
	(void)user;
	return live_container_count() == 0;
}

void live_await_no_containers(int64_t ms)
{
	live_await(no_containers, NULL, ms);
}

/* Podman shows capabilities as a difference from a default list of its own; what
 * is truly left is in its own inspect. */
static void podman_capabilities(const char *container, json_t *host)
{
	char path[128];
	snprintf(path, sizeof(path), "/libpod/containers/%s/json", container);
	struct sba_request request = { .method = "GET", .path = path, .tried = "inspect" };
	SBA_JSON json_t *j = NULL;
	json_t *left = json_array();
	size_t i;
	json_t *cap;
	if (sba_engine_call(live.engine, &request, soon(), &j, NULL) < 0)
		fail_msg("Podman's own inspect");
	json_array_foreach(json_object_get(j, "BoundingCaps"), i, cap)
		json_array_append_new(left, json_string(json_string_value(cap) + strlen("CAP_")));
	json_object_set_new(host, "CapAdd", left);
	json_object_set_new(host, "CapDrop", json_pack("[s]", "ALL"));
}

json_t *live_inspect(const char *container)
{
	json_t *j = NULL;
	struct sba_error err = { 0 };
	if (sba_container_inspect(live.engine, container, soon(), &j, &err) < 0)
		fail_msg("%s", err.text);
	if (sba_engine_podman(live.engine))
		podman_capabilities(container, json_object_get(j, "HostConfig"));
	return j;
}

void live_kill_container(const char *container)
{
	char path[128];
	snprintf(path, sizeof(path), "/containers/%s/kill", container);
	struct sba_request request = { .method = "POST", .path = path, .tried = "kill" };
	struct sba_error err = { 0 };
	if (sba_engine_call(live.engine, &request, soon(), NULL, &err) < 0)
		fail_msg("%s", err.text);
}

void live_remove_container(const char *container)
{
	struct sba_error err = { 0 };
	if (sba_container_remove(live.engine, container, soon(), &err) < 0)
		fail_msg("%s", err.text);
}

void live_sidecar_of(struct sba_sandbox *s, char ret[SBA_ID_MAX])
{
	SBA_JSON json_t *j = live_inspect(sba_sandbox_container(s));
	const char *mode = sba_json_str(j, "HostConfig.PidMode");
	assert_non_null(mode);
	assert_true(sba_starts_with(mode, "container:"));
	snprintf(ret, SBA_ID_MAX, "%s", mode + strlen("container:"));
}

struct inside {
	const char *container, *text;
	bool there;
};

static bool inside_is_so(void *user)
{
	const struct inside *i = user;
	return live_runs_inside(i->container, i->text) == i->there;
}

void live_await_inside(const char *container, const char *text, bool there, int64_t ms)
{
	struct inside i = { container, text, there };
	live_await(inside_is_so, &i, ms);
}

/* ---- commands ---- */

void live_result_fini(struct live_result *r)
{
	sba_buf_fini(&r->out);
	sba_buf_fini(&r->errout);
}

void live_exec(struct sba_sandbox *s, const struct sba_exec_options *o, struct live_result *r)
{
	struct sba_process *p = NULL;
	*r = (struct live_result){ .out.max = OUTPUT_MAX, .errout.max = OUTPUT_MAX };
	r->rc = sba_sandbox_exec(s, o, &p, &r->err);
	ssize_t n = r->rc;
	while (n >= 0) {
		enum sba_output which;
		const char *data;
		n = sba_process_read(p, -1, &which, &data, &r->err);
		if (n <= 0)
			break;
		sba_buf_put(which == SBA_STDERR ? &r->errout : &r->out, data, (size_t)n);
	}
	r->rc = n < 0 ? (int)n : sba_process_wait(p, -1, &r->exit, &r->err);
	sba_process_free(p);
}

void live_sh(struct sba_sandbox *s, const char *script, struct live_result *r)
{
	const char *const argv[] = { "sh", "-c", script, NULL };
	live_exec(s, &(struct sba_exec_options){ .argv = argv, .timeout_ms = STEP_MS }, r);
}

char *live_sh_out(struct sba_sandbox *s, const char *script)
{
	LIVE_RESULT r;
	live_sh(s, script, &r);
	live_assert_exit(&r, 0);
	char *out = sba_buf_take(&r.out);
	return out ? out : strdup("");
}

void live_assert_exit(const struct live_result *r, int status)
{
	if (r->rc < 0)
		fail_msg("%s", r->err.text);
	if (sba_exit_status(&r->exit) != status)
		print_error("stdout: %s\nstderr: %s\n", r->out.data ? r->out.data : "",
			    r->errout.data ? r->errout.data : "");
	assert_int_equal(sba_exit_status(&r->exit), status);
}

/* ---- files here ---- */

const char *live_path(const char *name)
{
	static char paths[8][4096];
	static unsigned next;
	char *at = paths[next++ % SBA_ARRAY_LEN(paths)];
	snprintf(at, sizeof(paths[0]), "%s/%s", live.dir, name);
	return at;
}

void live_write_file(const char *path, const void *data, size_t len, mode_t mode)
{
	SBA_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(sba_write_all(fd, data, len, NULL), 0);
	assert_int_equal(fchmod(fd, mode), 0);
}

char *live_read_file(const char *path, size_t *ret_len)
{
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(OUTPUT_MAX);
	if (sba_read_file(path, OUTPUT_MAX, &b, NULL) < 0)
		return NULL;
	if (ret_len)
		*ret_len = b.len;
	char *text = sba_buf_take(&b);
	return text ? text : strdup("");
}
