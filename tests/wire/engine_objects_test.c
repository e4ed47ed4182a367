/* SPDX-License-Identifier: MIT */
/* Containers, files, images and events on the wire. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "engine/engine.h"
#include "base/limits.h"
#include "support/fake_engine.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define OK(json) .answer = FAKE_ANSWER("200 OK", json), .then = FAKE_CLOSE
#define SAYS(status, message)                                                                      \
	.answer = FAKE_ANSWER(status, "{\"message\":\"" message "\"}\n"), .then = FAKE_CLOSE

#define START(...)                                                                                 \
	static const struct fake_exchange script_[] = { __VA_ARGS__ };                             \
	struct fake_engine *f = fake_engine_start("1.41", script_, SBA_ARRAY_LEN(script_));        \
	struct sba_engine *e = open_engine(f);                                                     \
	struct sba_error err = { 0 };                                                              \
	(void)err;                                                                                 \
	(void)state

static int prepare(void **state)
{
	(void)state;
	unsetenv("DOCKER_API_VERSION");
	alarm(30);
	return 0;
}

static struct sba_engine *open_engine(struct fake_engine *f)
{
	struct sba_engine_options o = { .host = fake_engine_host(f) };
	struct sba_engine *e = NULL;
	assert_int_equal(sba_engine_open(&o, &e, NULL), 0);
	return e;
}

static void stop(struct fake_engine *f, struct sba_engine *e)
{
	sba_engine_close(e);
	fake_engine_stop(f);
}

static struct sba_until soon(void)
{
	return sba_until_in(10000);
}

static void assert_says(const struct sba_error *err, const char *words)
{
	if (!strstr(err->text, words))
		fail_msg("'%s' does not say '%s'", err->text, words);
}

/* ---- containers ---- */

static void create_tells_a_missing_image_from_a_missing_container(void **state)
{
	START({ .method = "POST",
		.path = "/containers/create?name=a%2Fb ",
		.body = "{\"Image\":\"i\"}",
		.answer = FAKE_ANSWER("201 Created", "{\"Id\":\"feed\",\"Warnings\":[]}"),
		.then = FAKE_CLOSE },
	      { SAYS("404 Not Found", "No such image: i:1") },
	      { SAYS("404 Not Found", "No such container: side") },
	      { SAYS("409 Conflict", "Conflict. The container name is already in use") },
	      { .answer = FAKE_ANSWER("201 Created", "{\"Id\":5}"), .then = FAKE_CLOSE });
	char id[SBA_ID_MAX] = "untouched";
	json_t *spec = json_pack("{s:s}", "Image", "i");
	assert_int_equal(sba_container_create(e, "a/b", spec, soon(), id, &err), 0);
	assert_string_equal(id, "feed");
	assert_int_equal(sba_container_create(e, "x", spec, soon(), id, &err), SBA_EIMAGE);
	assert_int_equal(err.code, SBA_EIMAGE);
	assert_int_equal(sba_container_create(e, "x", spec, soon(), id, &err), SBA_ENOTFOUND);
	assert_int_equal(sba_container_create(e, "x", spec, soon(), id, &err), SBA_EEXIST);
	assert_int_equal(sba_container_create(e, NULL, spec, soon(), id, &err), SBA_EPROTO);
	assert_string_equal(id, "feed");
	json_decref(spec);
	stop(f, e);
}

static void a_rename_to_any_name_that_is_taken_is_told_as_such(void **state)
{
	START({ .method = "POST",
		.path = "/containers/c/rename?name=a%2Fb ",
		.answer = "HTTP/1.1 204 No Content\r\n\r\n" },
	      { SAYS("409 Conflict", "Conflict. The container name is already in use") },
	      { SAYS("400 Bad Request",
		     "Renaming a container with the same name as its current name") },
	      { SAYS("400 Bad Request", "Invalid container name") },
	      { SAYS("404 Not Found", "No such container: c") });
	assert_int_equal(sba_container_rename(e, "c", "a/b", soon(), &err), 0);
	assert_int_equal(sba_container_rename(e, "c", "x", soon(), &err), SBA_EEXIST);
	assert_int_equal(sba_container_rename(e, "c", "x", soon(), &err), SBA_EEXIST);
	assert_int_equal(err.code, SBA_EEXIST);
	assert_int_equal(sba_container_rename(e, "c", "x", soon(), &err), SBA_EENGINE);
	assert_int_equal(sba_container_rename(e, "c", "x", soon(), &err), SBA_ENOTFOUND);
	stop(f, e);
}

static void starting_what_runs_is_no_failure(void **state)
{
	START({ .method = "POST",
		.path = "/containers/c/start ",
		.answer = "HTTP/1.1 304 Not Modified\r\n\r\n" });
	assert_int_equal(sba_container_start(e, "c", soon(), &err), 0);
	stop(f, e);
}

static void a_list_asks_for_every_label(void **state)
{
	/* {"label":["a=b","c"]} */
	START({ .method = "GET",
		.path = "/containers/json?all=1&filters=%7B%22label%22%3A%5B%22a%3Db%22%2C%22c%22"
			"%5D%7D ",
		OK("[{\"Id\":\"1\"}]") },
	      { OK("{}") });
	static const char *const labels[] = { "a=b", "c", NULL };
	json_t *list = NULL;
	assert_int_equal(sba_container_list(e, labels, soon(), &list, &err), 0);
	assert_int_equal(json_array_size(list), 1);
	json_decref(list);
	assert_int_equal(sba_container_list(e, labels, soon(), &list, &err), SBA_EPROTO);
	stop(f, e);
}

static void a_removal_returns_once_it_is_gone(void **state)
{
	START({ .method = "DELETE",
		.path = "/containers/c?force=1&v=1 ",
		SAYS("409 Conflict", "removal of container c is already in progress") },
	      { .method = "DELETE", SAYS("409 Conflict", "removal in progress") },
	      { .method = "DELETE", SAYS("404 Not Found", "No such container: c") });
	assert_int_equal(sba_container_remove(e, "c", soon(), &err), 0);
	assert_string_equal(err.text, "");
	stop(f, e);
}

static void what_was_killed_and_takes_its_time_to_end_is_removed_all_the_same(void **state)
{
	START({ SAYS("500 Internal Server Error",
		     "Could not kill running container c, cannot remove - tried to kill "
		     "container, but did not receive an exit event") },
	      { .method = "DELETE", SAYS("204 No Content", "") });
	assert_int_equal(sba_container_remove(e, "c", soon(), &err), 0);
	assert_string_equal(err.text, "");
	stop(f, e);
}

static void a_removal_that_never_ends_is_bounded(void **state)
{
	START({ SAYS("409 Conflict", "removal in progress"), .forever = true });
	assert_int_equal(sba_container_remove(e, "c", sba_until_in(100), &err), SBA_ETIMEOUT);
	assert_says(&err, "remove container 'c'");
	stop(f, e);
}

/* ---- files ---- */

static void check_stat(struct sba_engine *e, const char *name, uint32_t mode, int64_t size,
		       int64_t mtime)
{
	struct sba_path_stat st;
	struct sba_error err;
	assert_int_equal(sba_container_stat(e, "c", "/x", soon(), &st, &err), 0);
	assert_string_equal(st.name, name);
	assert_int_equal(st.mode, mode);
	assert_int_equal(st.size, size);
	assert_int_equal(st.mtime, mtime);
}

static char *stat_answer(const char *json)
{
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(SBA_KIB);
	sba_buf_puts(&b, "HTTP/1.1 200 OK\r\nX-Docker-Container-Path-Stat: ");
	sba_base64_put(&b, json, strlen(json), false);
	sba_buf_puts(&b, "\r\nTransfer-Encoding: chunked\r\n\r\n"); /* HEAD: no body follows */
	return sba_buf_take(&b);
}

static void stat_translates_gos_file_mode(void **state)
{
	static const char *const json[] = {
		"{\"name\":\"d\",\"size\":4096,\"mode\":2147484141,"
		"\"mtime\":\"1970-01-01T00:01:40.5Z\"}",
		"{\"name\":\"su\",\"size\":5,\"mode\":8389101,"
		"\"mtime\":\"1970-01-01T01:01:40+01:00\"}",
		"{\"name\":\"l\",\"size\":1,\"mode\":134218239}",
		"{\"name\":\"null\",\"size\":0,\"mode\":69206454}",
		"{\"name\":\"tmp\",\"size\":0,\"mode\":2148532735}",
	};
	struct fake_exchange script[SBA_ARRAY_LEN(json)] = { 0 };
	char *answers[SBA_ARRAY_LEN(json)];
	(void)state;
	for (size_t i = 0; i < SBA_ARRAY_LEN(json); i++) {
		answers[i] = stat_answer(json[i]);
		script[i] = (struct fake_exchange){ .method = "HEAD", .answer = answers[i] };
	}
	struct fake_engine *f = fake_engine_start("1.41", script, SBA_ARRAY_LEN(json));
	struct sba_engine *e = open_engine(f);
	check_stat(e, "d", S_IFDIR | 0755, 4096, 100);
	check_stat(e, "su", S_IFREG | S_ISUID | 0755, 5, 100);
	check_stat(e, "l", S_IFLNK | 0777, 1, 0);
	check_stat(e, "null", S_IFCHR | 0666, 0, 0);
	check_stat(e, "tmp", S_IFDIR | S_ISVTX | 0777, 0, 0);
	assert_int_equal(fake_engine_connections(f), 1);
	stop(f, e);
	for (size_t i = 0; i < SBA_ARRAY_LEN(json); i++)
		free(answers[i]);
}

static void stat_without_a_status_is_a_protocol_error(void **state)
{
	START({ .answer = "HTTP/1.1 200 OK\r\n\r\n" },
	      { .answer = "HTTP/1.1 200 OK\r\nX-Docker-Container-Path-Stat: %%%\r\n\r\n" },
	      { .answer = "HTTP/1.1 404 Not Found\r\n\r\n" });
	struct sba_path_stat st;
	assert_int_equal(sba_container_stat(e, "c", "/x", soon(), &st, &err), SBA_EPROTO);
	assert_int_equal(sba_container_stat(e, "c", "/x", soon(), &st, &err), SBA_EPROTO);
	assert_int_equal(sba_container_stat(e, "c", "/x", soon(), &st, &err), SBA_ENOTFOUND);
	assert_string_equal(err.text, "stat '/x' in container 'c': no such file or container");
	stop(f, e);
}

static void a_download_cut_short_is_lost(void **state)
{
	START({ .method = "GET",
		.path = "/containers/c/archive?path=%2Fx ",
		.answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
		.then = FAKE_CLOSE });
	struct sba_body *body;
	char buf[16];
	ssize_t n, got = 0;
	assert_int_equal(sba_container_get(e, "c", "/x", soon(), &body, &err), 0);
	while ((n = sba_body_read(body, buf, 2, soon(), &err)) > 0)
		got += n;
	assert_int_equal(got, 3);
	assert_int_equal(n, SBA_ELOST);
	sba_body_close(body);
	stop(f, e);
}

/* Closing frees the lock that the engine holds on the container. */
static void giving_up_a_download_closes_its_connection(void **state)
{
	START({ .answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
		.then = FAKE_SWALLOW });
	struct sba_body *body;
	assert_int_equal(sba_container_get(e, "c", "/x", soon(), &body, &err), 0);
	sba_body_close(body);
	fake_engine_await_closed(f, 1);
	stop(f, e);
}

/* ---- images ---- */

static ssize_t nothing(void *user, void *buf, size_t size, struct sba_error *err)
{
	(void)user;
	(void)buf;
	(void)size;
	(void)err;
	return 0;
}

static int count(void *user, const json_t *line)
{
	int *left = user;
	(void)line;
	return (*left)-- > 0 ? 0 : SBA_ECANCELED;
}

static int build(struct sba_engine *e, int *lines, struct sba_error *err)
{
	json_t *args = json_pack("{s:s}", "V", "1 2");
	struct sba_image_build b = { .tag = "r:t", .build_args = args, .no_cache = true };
	int rc = sba_image_build(e, &b, nothing, NULL, count, lines, soon(), err);
	json_decref(args);
	return rc;
}

static void a_build_succeeds_only_by_its_own_words(void **state)
{
	START({ .method = "POST",
		.path = "/build?rm=1&forcerm=1&t=r%3At&buildargs=%7B%22V%22%3A%221%202%22%7D&"
			"nocache=1 ",
		OK("{\"stream\":\"Step 1\"}\r\nnot json\r\n{\"aux\":{\"ID\":\"sha256:1\"}}\r\n") },
	      { OK("{\"stream\":\"Successfully built 1\"}\r\n") },
	      { OK("{\"aux\":{\"ID\":\"sha256:1\"}}\r\n{\"errorDetail\":{\"code\":3,\"message\":"
		   "\"RUN returned 3\"},\"error\":\"x\"}") },
	      { SAYS("400 Bad Request", "dockerfile parse error") },
	      { OK("{\"stream\":\"1\"}\n{\"stream\":\"2\"}\n") });
	int lines = 100;
	assert_int_equal(build(e, &lines, &err), 0);
	assert_int_equal(lines, 98);
	assert_int_equal(build(e, &lines, &err), SBA_EIMAGE);
	assert_says(&err, "names no image");
	assert_int_equal(build(e, &lines, &err), SBA_EIMAGE);
	assert_string_equal(err.text, "build image 'r:t': RUN returned 3");
	assert_int_equal(build(e, &lines, &err), SBA_EIMAGE);
	assert_says(&err, "dockerfile parse error");
	lines = 1;
	assert_int_equal(build(e, &lines, &err), SBA_ECANCELED);
	stop(f, e);
}

static void a_pull_fails_inside_a_good_answer(void **state)
{
	START({ .method = "POST",
		.path = "/images/create?fromImage=h%3A5000%2Fa%2Fb&tag=1 ",
		OK("{\"status\":\"Pulling\"}\r\n{\"errorDetail\":{\"message\":\"no "
		   "manifest\"}}\r\n") },
	      { .path = "/images/create?fromImage=h%3A5000%2Fa&tag=sha256%3A1 ",
		OK("{\"status\":\"done\"}\r\n") },
	      { SAYS("404 Not Found", "pull access denied") });
	assert_int_equal(sba_image_pull(e, "h:5000/a/b:1", NULL, NULL, NULL, soon(), &err),
			 SBA_EIMAGE);
	assert_says(&err, "no manifest");
	assert_int_equal(sba_image_pull(e, "h:5000/a:9@sha256:1", "e30=", NULL, NULL, soon(), &err),
			 0);
	assert_non_null(strstr(fake_engine_seen(f, 1), "\r\nX-Registry-Auth: e30=\r\n"));
	assert_int_equal(sba_image_pull(e, "a:1", NULL, NULL, NULL, soon(), &err), SBA_EIMAGE);
	assert_int_equal(sba_image_pull(e, "h:5000/a", NULL, NULL, NULL, soon(), &err), SBA_EINVAL);
	assert_int_equal(sba_image_pull(e, "a:1", "x\r\nY: z", NULL, NULL, soon(), &err),
			 SBA_EINVAL);
	stop(f, e);
}

/* As Docker has it, and Podman only if it is told. */
static void a_registry_on_this_machine_needs_no_tls_on_podman_either(void **state)
{
	static const struct fake_exchange script[] = {
		{ .method = "POST",
		  .path = "/images/127.0.0.1%3A5000%2Fa/push?tag=1&tlsVerify=false ",
		  OK("{\"status\":\"1: digest: sha256:1 size: 2\"}\n") },
		{ .method = "POST", .path = "/images/h%3A5000%2Fa/push?tag=1 ", OK("{}\n") },
		{ .method = "POST",
		  .path = "/libpod/images/pull?tlsVerify=false&reference=localhost%3A5000%2Fa%3A1 ",
		  OK("{\"stream\":\"Trying to pull\"}\n{\"error\":\"no manifest\"}\n") },
		{ .method = "POST",
		  .path = "/libpod/images/"
			  "pull?tlsVerify=false&reference=127.0.0.1%2Fa%40sha256%3A1 ",
		  OK("{\"id\":\"1\"}\n") },
		{ .method = "POST",
		  .path = "/images/create?fromImage=localhost&tag=1 ",
		  OK("{\"status\":\"done\"}\n") },
	};
	struct fake_engine *f = fake_engine_start("1.41\r\nLibpod-Api-Version: 4.3.1", script,
						  SBA_ARRAY_LEN(script));
	struct sba_engine *e = open_engine(f);
	struct sba_error err = { 0 };
	(void)state;
	assert_true(sba_engine_podman(e));
	assert_int_equal(sba_image_push(e, "127.0.0.1:5000/a:1", NULL, NULL, NULL, soon(), &err),
			 0);
	assert_int_equal(sba_image_push(e, "h:5000/a:1", NULL, NULL, NULL, soon(), &err), 0);
	assert_int_equal(sba_image_pull(e, "localhost:5000/a:1", NULL, NULL, NULL, soon(), &err),
			 SBA_EIMAGE);
	assert_says(&err, "no manifest");
	assert_int_equal(
		sba_image_pull(e, "127.0.0.1/a:2@sha256:1", NULL, NULL, NULL, soon(), &err), 0);
	assert_int_equal(sba_image_pull(e, "localhost:1", NULL, NULL, NULL, soon(), &err), 0);
	stop(f, e);
}

/* Podman 5.4: the line of a stream, with 500. */
static void a_push_that_fails_at_once_is_told_in_its_own_words(void **state)
{
	START({ .method = "POST",
		.path = "/images/h%3A5000%2Fa/push?tag=1 ",
		.answer = FAKE_ANSWER("500 Internal Server Error",
				      "{\"errorDetail\":{\"message\":\"no such host\"},"
				      "\"error\":\"no such host\"}\n"),
		.then = FAKE_CLOSE });
	assert_int_equal(sba_image_push(e, "h:5000/a:1", NULL, NULL, NULL, soon(), &err),
			 SBA_EIMAGE);
	assert_string_equal(err.text, "push image 'h:5000/a:1': no such host");
	stop(f, e);
}

static void a_line_without_end_is_refused(void **state)
{
	size_t size = 2 * (size_t)SBA_ENGINE_LINE_MAX;
	char *flood = malloc(size);
	struct sba_error err;
	(void)state;
	memset(flood, ' ', size - 1);
	flood[size - 1] = '\0';
	memcpy(flood, "HTTP/1.1 200 OK\r\n\r\n", 19);
	struct fake_exchange x = { .answer = flood, .then = FAKE_CLOSE };
	struct fake_engine *f = fake_engine_start("1.41", &x, 1);
	struct sba_engine *e = open_engine(f);
	assert_int_equal(sba_image_pull(e, "a:1", NULL, NULL, NULL, soon(), &err), SBA_ELIMIT);
	stop(f, e);
	free(flood);
}

static void an_image_in_use_is_no_name_taken(void **state)
{
	START({ .method = "DELETE", .path = "/images/r%3At ", SAYS("409 Conflict", "in use") });
	assert_int_equal(sba_image_remove(e, "r:t", soon(), &err), SBA_EENGINE);
	assert_int_equal(err.code, SBA_EENGINE);
	stop(f, e);
}

/* ---- the rest ---- */

/* C-16: events are asked for afterwards, between two times; no stream of them is held open. */
static void past_events_come_as_one_array(void **state)
{
	START({ .method = "GET",
		.path = "/events?since=7&until=",
		OK("{\"Action\":\"die\"}\n{\"Action\":\"destroy\"}\n") });
	json_t *list = NULL;
	assert_int_equal(sba_engine_past_events(e, "k=v", 7, soon(), &list, &err), 0);
	assert_int_equal(json_array_size(list), 2);
	assert_string_equal(sba_json_str(list, "#1.Action"), "destroy");
	json_decref(list);
	stop(f, e);
}

static void the_bridge_tells_the_hosts_address(void **state)
{
	START({ .path = "/networks/bridge ",
		OK("{\"IPAM\":{\"Config\":[{\"Subnet\":\"fd00::/64\",\"Gateway\":\"fd00::1\"},"
		   "{\"Subnet\":\"172.17.0.0/16\",\"Gateway\":\"172.17.0.9\"}]}}") },
	      { OK("{\"IPAM\":{\"Config\":[{\"Subnet\":\"172.18.0.0/16\"}]}}") },
	      { OK("{\"IPAM\":{\"Config\":null}}") },
	      { SAYS("404 Not Found", "network bridge not found") });
	char address[64] = "";
	assert_int_equal(sba_engine_bridge_address(e, soon(), address, &err), 0);
	assert_string_equal(address, "172.17.0.9");
	assert_int_equal(sba_engine_bridge_address(e, soon(), address, &err), 0);
	assert_string_equal(address, "172.18.0.1");
	for (int i = 0; i < 2; i++)
		assert_int_equal(sba_engine_bridge_address(e, soon(), address, &err),
				 SBA_EUNSUPPORTED);
	stop(f, e);
}

static void the_engine_is_asked_about_itself_once(void **state)
{
	START({ .path = "/version ",
		OK("{\"Version\":\"4.3.1\",\"Os\":\"linux\",\"Arch\":\"arm64\",\"Components\":["
		   "{\"Name\":\"Podman Engine\",\"Version\":\"4.3.1\"},"
		   "{\"Name\":\"OCI Runtime (crun)\",\"Version\":\"1.8\"}]}") },
	      { .path = "/info ", OK("{\"CgroupVersion\":\"2\",\"NCPU\":4,\"MemTotal\":1024}") });
	const struct sba_engine_info *info;
	for (int i = 0; i < 2; i++)
		assert_int_equal(sba_engine_info(e, &info, &err), 0);
	assert_string_equal(info->host, fake_engine_host(f));
	assert_string_equal(info->found_by, "-H");
	assert_string_equal(info->api_version, "1.41");
	assert_string_equal(info->name, "Podman");
	assert_string_equal(info->arch, "arm64");
	assert_string_equal(info->runc, "1.8");
	assert_int_equal(info->cgroup_version, 2);
	assert_int_equal(info->cpus, 4);
	assert_int_equal(info->memory, 1024);
	stop(f, e);
}

#define TEST(name) cmocka_unit_test_setup(name, prepare)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(create_tells_a_missing_image_from_a_missing_container),
		TEST(a_rename_to_any_name_that_is_taken_is_told_as_such),
		TEST(starting_what_runs_is_no_failure),
		TEST(a_list_asks_for_every_label),
		TEST(a_removal_returns_once_it_is_gone),
		TEST(what_was_killed_and_takes_its_time_to_end_is_removed_all_the_same),
		TEST(a_removal_that_never_ends_is_bounded),
		TEST(stat_translates_gos_file_mode),
		TEST(stat_without_a_status_is_a_protocol_error),
		TEST(a_download_cut_short_is_lost),
		TEST(giving_up_a_download_closes_its_connection),
		TEST(a_build_succeeds_only_by_its_own_words),
		TEST(a_pull_fails_inside_a_good_answer),
		TEST(a_registry_on_this_machine_needs_no_tls_on_podman_either),
		TEST(a_push_that_fails_at_once_is_told_in_its_own_words),
		TEST(a_line_without_end_is_refused),
		TEST(an_image_in_use_is_no_name_taken),
		TEST(past_events_come_as_one_array),
		TEST(the_bridge_tells_the_hosts_address),
		TEST(the_engine_is_asked_about_itself_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
