/* SPDX-License-Identifier: MIT */
/*
 * What no sandbox is made of, and that an engine which does not keep what it was told
 * of a sandbox's confinement is found out.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "sandbox/making.h"
#include "support/fake_engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int prepare(void **state)
{
	(void)state;
	unsetenv("DOCKER_API_VERSION");
	alarm(60);
	return 0;
}

/* ---- what an image may not say ---- */

/* Only the image has been asked for then: nothing was made. */
static bool is_refused(const char *workdir)
{
	char body[256];
	snprintf(body, sizeof(body),
		 "{\"Id\":\"sha256:1\",\"Os\":\"linux\",\"Config\":{\"WorkingDir\":\"%s\"}}",
		 workdir);
	SBA_FREE char *answer = fake_json(body);
	const struct fake_exchange script[] = {
		{ .method = "GET", .path = "/images/evil/json ", .answer = answer },
		{ .forever = true, .then = FAKE_CLOSE },
	};
	struct fake_engine *f = fake_engine_start("1.41", script, SBA_ARRAY_LEN(script));
	const struct sba_engine_options o = { .host = fake_engine_host(f) };
	const struct sba_sandbox_options so = { .image = "evil" };
	struct sba_engine *e = NULL;
	struct sba_sandbox *s = NULL;
	struct sba_error err = { 0 };
	assert_int_equal(sba_engine_open(&o, &e, &err), 0);
	assert_true(sba_sandbox_create(e, &so, &s, &err) < 0);
	bool refused = strstr(err.text, "under /proc") != NULL;
	if (refused)
		assert_int_equal(fake_engine_requests(f), 1);
	sba_engine_close(e);
	fake_engine_stop(f);
	return refused;
}

static void an_image_whose_working_directory_is_under_proc_is_refused(void **state)
{
	(void)state;
	assert_true(is_refused("/proc/self/fd/8"));
	assert_true(is_refused("/tmp/..//proc/1"));
	assert_false(is_refused("/process"));
}

/* Nothing would end a sandbox on such a machine. */
static void an_architecture_without_a_guest_is_refused_before_anything_is_made(void **state)
{
	(void)state;
	SBA_FREE char *image =
		fake_json("{\"Id\":\"sha256:1\",\"Architecture\":\"riscv64\",\"Config\":{}}");
	SBA_FREE char *version = fake_json("{\"Arch\":\"riscv64\"}");
	const struct fake_exchange script[] = {
		{ .method = "GET", .path = "/images/other/json ", .answer = image },
		{ .method = "GET", .path = "/version ", .answer = version },
	};
	struct fake_engine *f = fake_engine_start("1.41", script, SBA_ARRAY_LEN(script));
	const struct sba_engine_options o = { .host = fake_engine_host(f) };
	const struct sba_sandbox_options so = { .image = "other" };
	struct sba_engine *e = NULL;
	struct sba_sandbox *s = NULL;
	struct sba_error err = { 0 };
	assert_int_equal(sba_engine_open(&o, &e, &err), 0);
	assert_int_equal(sba_sandbox_create(e, &so, &s, &err), SBA_EUNSUPPORTED);
	assert_non_null(strstr(err.text, "riscv64"));
	assert_non_null(strstr(err.hint, "--container"));
	sba_engine_close(e);
	fake_engine_stop(f);
}

/* A HEAD's answer about a path; NULL: it is not there. */
static char *about(const char *link)
{
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(1024);
	char json[256];
	char *answer;
	if (!link)
		return strdup("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
	snprintf(json, sizeof(json),
		 "{\"name\":\"n\",\"size\":1,\"mode\":493,\"linkTarget\":\"%s\"}", link);
	sba_base64_put(&b, json, strlen(json), false);
	assert_true(asprintf(&answer,
			     "HTTP/1.1 200 OK\r\nX-Docker-Container-Path-Stat: %s\r\n"
			     "Content-Length: 0\r\n\r\n",
			     b.data) > 0);
	return answer;
}

/* The runtime goes through each part of it. */
static void what_a_working_directory_leads_to_is_looked_at_part_by_part(void **state)
{
	static const struct {
		const char *workdir, *first, *second;
		int rc;
	} cases[] = {
		{ "/a/b", "", "", 0 },         { "/a/b", NULL, NULL, 0 },
		{ "//a//b/", "/srv", "", 0 },  { "/a/b", "", "/proc/self/fd/8", SBA_EREFUSED },
		{ "/a/b", "", "/process", 0 }, { "/proc2/b", "", "/tmp/../proc", SBA_EREFUSED },
	};
	(void)state;
	for (size_t i = 0; i < SBA_ARRAY_LEN(cases); i++) {
		SBA_FREE char *first = about(cases[i].first), *second = about(cases[i].second);
		const struct fake_exchange script[] = {
			{ .method = "HEAD", .path = "/containers/main/archive", .answer = first },
			{ .method = "HEAD", .path = "/containers/main/archive", .answer = second },
		};
		struct fake_engine *f = fake_engine_start("1.41", script, 2);
		const struct sba_engine_options o = { .host = fake_engine_host(f) };
		struct sba_sandbox here = { .container = "main" };
		struct sba_making m = { .sandbox = &here, .o.image = "evil" };
		struct sba_error err = { 0 };
		assert_int_equal(sba_engine_open(&o, &m.engine, &err), 0);
		assert_int_equal(sba_workdir_take(&m, cases[i].workdir, &err), 0);
		int rc = sba_workdir_check(&m, &err);
		if (rc != cases[i].rc)
			fail_msg("%zu: %d %s", i, rc, err.text);
		sba_engine_close(m.engine);
		fake_engine_stop(f);
	}
}

/* No more is looked at than what decides it. */
static void a_way_under_proc_is_refused_by_its_first_part(void **state)
{
	(void)state;
	SBA_FREE char *first = about("/proc/self");
	const struct fake_exchange script[] = {
		{ .method = "HEAD", .path = "/containers/main/archive", .answer = first },
	};
	struct fake_engine *f = fake_engine_start("1.41", script, 1);
	const struct sba_engine_options o = { .host = fake_engine_host(f) };
	struct sba_sandbox here = { .container = "main" };
	struct sba_making m = { .sandbox = &here, .o.image = "evil" };
	struct sba_error err = { 0 };
	assert_int_equal(sba_engine_open(&o, &m.engine, &err), 0);
	assert_int_equal(sba_workdir_take(&m, "/way/fd/8", &err), 0);
	assert_int_equal(sba_workdir_check(&m, &err), SBA_EREFUSED);
	sba_engine_close(m.engine);
	fake_engine_stop(f);
}

/* ---- what an engine must keep ---- */

static json_t *spec_of(struct sba_making *m)
{
	json_t *spec = NULL;
	struct sba_error err = { 0 };
	if (sba_spec_sandbox(m, &spec, &err) < 0)
		fail_msg("%s", err.text);
	return spec;
}

/* As an engine describes what it has made of it. */
static json_t *made_of(const json_t *spec)
{
	json_t *host = json_deep_copy(json_object_get(spec, "HostConfig"));
	return json_pack("{s:o, s:{s:O}, s:[]}", "HostConfig", host, "Config", "User",
			 json_object_get(spec, "User"), "Mounts");
}

static int verify(struct sba_making *m, const json_t *spec, const json_t *made,
		  struct sba_error *err)
{
	SBA_FREE char *text = sba_json_dump(made);
	SBA_FREE char *answer = fake_json(text);
	const struct fake_exchange script[] = {
		{ .method = "GET", .path = "/containers/main/json ", .answer = answer },
	};
	struct fake_engine *f = fake_engine_start("1.41", script, SBA_ARRAY_LEN(script));
	const struct sba_engine_options o = { .host = fake_engine_host(f) };
	assert_int_equal(sba_engine_open(&o, &m->engine, err), 0);
	int rc = sba_spec_verify(m, "main", spec, err);
	sba_engine_close(m->engine);
	m->engine = NULL;
	fake_engine_stop(f);
	return rc;
}

static void is_found_out(struct sba_making *m, const json_t *spec, json_t *take_made,
			 const char *key)
{
	SBA_JSON json_t *made = take_made;
	struct sba_error err = { 0 };
	int rc = verify(m, spec, made, &err);
	if (rc != SBA_EUNSUPPORTED || !strstr(err.text, key))
		fail_msg("%s: %d %s", key, rc, err.text);
}

static struct sba_sandbox box = { .sidecar = "5ide" };

/* It is asked about nothing while the spec is made. */
static struct sba_making making(struct sba_engine *e)
{
	return (struct sba_making){
		.engine = e,
		.until = { sba_now_ms() + 60000, -1 },
		.as_root = true,
		.sandbox = &box,
		.labels = json_object(),
		.o = { .image = "i:1",
		       .name = "one",
		       .user = "0:0",
		       .runtime = "crun",
		       .memory = 1 << 30,
		       .pids = 100,
		       .cpus = 1 },
	};
}

static void what_an_engine_drops_of_the_confinement_is_found_out(void **state)
{
	static const char *const keys[] = { "CapDrop",     "SecurityOpt", "PidMode",
					    "NetworkMode", "PidsLimit",   "Memory",
					    "NanoCpus",    "Runtime",     "VolumesFrom" };
	const struct fake_exchange none[] = { { .forever = true, .then = FAKE_CLOSE } };
	(void)state;
	struct fake_engine *f = fake_engine_start("1.41", none, 1);
	const struct sba_engine_options o = { .host = fake_engine_host(f) };
	struct sba_error err = { 0 };
	struct sba_engine *e = NULL;
	assert_int_equal(sba_engine_open(&o, &e, &err), 0);
	struct sba_making m = making(e);
	SBA_JSON json_t *labels = m.labels;
	SBA_JSON json_t *spec = spec_of(&m);
	sba_engine_close(e);
	fake_engine_stop(f);

	SBA_JSON json_t *right = made_of(spec);
	assert_int_equal(verify(&m, spec, right, &err), 0);
	for (size_t i = 0; i < SBA_ARRAY_LEN(keys); i++) {
		json_t *dropped = made_of(spec), *other = made_of(spec);
		json_object_del(json_object_get(dropped, "HostConfig"), keys[i]);
		json_object_set_new(json_object_get(other, "HostConfig"), keys[i],
				    json_string("other"));
		is_found_out(&m, spec, dropped, keys[i]);
		is_found_out(&m, spec, other, keys[i]);
	}
	json_t *more = made_of(spec), *user = made_of(spec), *mount = made_of(spec);
	json_array_append_new(sba_json_get(more, "HostConfig.CapAdd"), json_string("SYS_ADMIN"));
	is_found_out(&m, spec, more, "CapAdd");
	json_object_set_new(json_object_get(user, "Config"), "User", json_string(""));
	is_found_out(&m, spec, user, "User");
	json_object_set_new(json_object_get(spec, "HostConfig"), "Mounts",
			    json_pack("[{s:s, s:s, s:s, s:b}]", "Type", "bind", "Source", "/srv",
				      "Target", "/data", "ReadOnly", 1));
	is_found_out(&m, spec, mount, "Mounts");
}

#define TEST(name) cmocka_unit_test_setup(name, prepare)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_image_whose_working_directory_is_under_proc_is_refused),
		TEST(an_architecture_without_a_guest_is_refused_before_anything_is_made),
		TEST(what_a_working_directory_leads_to_is_looked_at_part_by_part),
		TEST(a_way_under_proc_is_refused_by_its_first_part),
		TEST(what_an_engine_drops_of_the_confinement_is_found_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
