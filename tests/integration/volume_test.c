/* SPDX-License-Identifier: MIT */
/*
 * The volume that root's guest comes from: it goes with its sandbox, however
 * that ends, and other sandboxes have none.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/live.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { END_MS = 30 * 1000, KEEPALIVE_MS = 1000, NAME_MAX_LEN = 128 };

static bool volume_is_gone(void *user)
{
	char path[NAME_MAX_LEN + 16];
	snprintf(path, sizeof(path), "/volumes/%s", (const char *)user);
	const struct sba_request request = { .method = "GET", .path = path, .tried = "volume" };
	return sba_engine_call(live.engine, &request, sba_until_in(10000), NULL, NULL) ==
	       SBA_ENOTFOUND;
}

static void volume_of(const char *container, char ret[NAME_MAX_LEN])
{
	SBA_JSON json_t *inspect = live_inspect(container);
	const json_t *mounts = json_object_get(inspect, "Mounts");
	assert_int_equal(json_array_size(mounts), 1);
	const char *name = sba_json_str(json_array_get(mounts, 0), "Name");
	assert_non_null(name);
	snprintf(ret, NAME_MAX_LEN, "%s", name);
	assert_false(volume_is_gone(ret));
}

/* A sandbox of root's and its volume, which both halves have. */
static struct sba_sandbox *box(int64_t keepalive_ms, char ret_volume[NAME_MAX_LEN])
{
	char sidecar[SBA_ID_MAX], again[NAME_MAX_LEN];
	struct sba_sandbox *s = live_sandbox(
		(struct sba_sandbox_options){ .user = "0:0", .keepalive_ms = keepalive_ms });
	live_sidecar_of(s, sidecar);
	volume_of(sidecar, ret_volume);
	volume_of(sba_sandbox_container(s), again);
	assert_string_equal(again, ret_volume);
	return s;
}

static void assert_goes(struct sba_sandbox *s, char *volume)
{
	sba_sandbox_close(s);
	live_await_no_containers(END_MS);
	live_await(volume_is_gone, volume, END_MS);
}

static void a_user_has_no_volume(void **state)
{
	(void)state;
	char sidecar[SBA_ID_MAX];
	struct sba_sandbox *s = live_sandbox((struct sba_sandbox_options){ .user = "1000:1000" });
	live_sidecar_of(s, sidecar);
	SBA_JSON json_t *main = live_inspect(sba_sandbox_container(s));
	SBA_JSON json_t *side = live_inspect(sidecar);
	assert_int_equal(json_array_size(json_object_get(main, "Mounts")), 0);
	assert_int_equal(json_array_size(json_object_get(side, "Mounts")), 0);
	live_remove(s);
}

static void it_goes_with_removal(void **state)
{
	(void)state;
	char volume[NAME_MAX_LEN];
	struct sba_error err = { 0 };
	struct sba_sandbox *s = box(0, volume);
	assert_int_equal(sba_sandbox_remove(s, &err), 0);
	assert_goes(s, volume);
}

static void it_goes_with_the_keepalive(void **state)
{
	(void)state;
	char volume[NAME_MAX_LEN];
	assert_goes(box(KEEPALIVE_MS, volume), volume);
}

static void it_goes_with_a_killed_sidecar(void **state)
{
	(void)state;
	char volume[NAME_MAX_LEN], sidecar[SBA_ID_MAX];
	struct sba_sandbox *s = box(0, volume);
	live_sidecar_of(s, sidecar);
	live_kill_container(sidecar);
	assert_goes(s, volume);
}

static void it_goes_with_a_killed_main_container(void **state)
{
	(void)state;
	char volume[NAME_MAX_LEN];
	struct sba_sandbox *s = box(0, volume);
	live_kill_container(sba_sandbox_container(s));
	assert_goes(s, volume);
}

/* ---- half made ---- */

/* Names of volumes that no container has: JSON object; the caller frees. */
static json_t *dangling(void)
{
	SBA_JSON json_t *answer = NULL;
	struct sba_error err = { 0 };
	const struct sba_request request = {
		.method = "GET",
		.path = "/volumes?filters=%7B%22dangling%22%3A%5B%22true%22%5D%7D",
		.tried = "volumes"
	};
	if (sba_engine_call(live.engine, &request, sba_until_in(10000), &answer, &err) < 0)
		fail_msg("%s", err.text);
	json_t *names = json_object();
	size_t i;
	json_t *one;
	json_array_foreach(json_object_get(answer, "Volumes"), i, one)
		json_object_set_new(names, sba_json_str(one, "Name"), json_true());
	return names;
}

/* Others may use the engine at the same time: what dangles for a moment is theirs. */
static bool no_more_dangle(void *before)
{
	SBA_JSON json_t *now = dangling();
	const char *name;
	json_t *one;
	json_object_foreach(now, name, one)
	{
		if (!json_object_get(before, name))
			return false;
	}
	return true;
}

static void it_goes_with_what_was_rolled_back(void **state)
{
	(void)state;
	struct sba_sandbox *none = NULL;
	struct sba_error err = { 0 };
	SBA_JSON json_t *before = dangling();
	/* Fails at the start of the main container; fails once both are made. */
	const struct sba_sandbox_options no_group = { .prefix = live.prefix,
						      .image = live.image,
						      .user = "root:no-such-group" };
	const struct sba_sandbox_options no_room = {
		.prefix = live.prefix, .image = live.image, .user = "root", .max_sandboxes = 1
	};
	assert_true(sba_sandbox_create(live.engine, &no_group, &none, &err) < 0);
	assert_non_null(strstr(err.text, "no-such-group"));
	live_await(no_more_dangle, before, END_MS);
	struct sba_sandbox *first = live_sandbox((struct sba_sandbox_options){ 0 });
	assert_int_equal(sba_sandbox_create(live.engine, &no_room, &none, &err), SBA_ELIMIT);
	live_remove(first);
	live_await(no_more_dangle, before, END_MS);
}

static void client(void)
{
	struct sba_engine *e = NULL;
	struct sba_sandbox *s = NULL;
	const struct sba_sandbox_options o = { .prefix = live.prefix,
					       .image = live.image,
					       .user = "root",
					       .keepalive_ms = KEEPALIVE_MS };
	if (sba_engine_open(NULL, &e, NULL) < 0 || sba_sandbox_create(e, &o, &s, NULL) < 0)
		_exit(1);
	for (;;)
		pause();
}

static bool has_containers(void *user)
{
	return live_container_count() >= *(size_t *)user;
}

static bool swept(void *user)
{
	(void)user;
	struct sba_error err = { 0 };
	assert_int_equal(sba_gc(live.engine, live.prefix, NULL, &err), 0);
	return live_container_count() == 0;
}

static void it_goes_with_what_a_dead_client_left(void **state)
{
	(void)state;
	SBA_JSON json_t *before = dangling();
	for (size_t when = 1; when <= 2; when++) {
		pid_t pid = fork();
		if (pid == 0)
			client();
		live_await(has_containers, &when, END_MS);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		live_await(swept, NULL, END_MS);
	}
	live_await(no_more_dangle, before, END_MS);
}

/* ---- left behind by others ---- */

/* As it is left where both containers were removed without their volumes. */
static void leave_a_volume(const char *name, char ret[NAME_MAX_LEN])
{
	SBA_JSON json_t *answer = NULL;
	SBA_JSON json_t *body =
		json_pack("{s:s*, s:{s:s, s:s}}", "Name", name, "Labels", "io.sandbox-agent.prefix",
			  live.prefix, "io.sandbox-agent.id", "0123456789abcdef0123456789abcdef");
	const struct sba_request request = {
		.method = "POST", .path = "/volumes/create", .json = body, .tried = "volume"
	};
	struct sba_error err = { 0 };
	if (sba_engine_call(live.engine, &request, sba_until_in(END_MS), &answer, &err) < 0)
		fail_msg("%s", err.text);
	snprintf(ret, NAME_MAX_LEN, "%s", sba_json_str(answer, "Name"));
}

/* Podman drops the labels of a container's volume without a name. */
static void its_labels_tell_whose_it_is(void **state)
{
	(void)state;
	char volume[NAME_MAX_LEN], path[NAME_MAX_LEN + 16];
	SBA_JSON json_t *j = NULL;
	struct sba_sandbox *s = box(0, volume);
	snprintf(path, sizeof(path), "/volumes/%s", volume);
	const struct sba_request request = { .method = "GET", .path = path, .tried = "volume" };
	assert_int_equal(sba_engine_call(live.engine, &request, sba_until_in(END_MS), &j, NULL), 0);
	if (!sba_engine_podman(live.engine)) {
		const json_t *labels = json_object_get(j, "Labels");
		assert_string_equal(
			json_string_value(json_object_get(labels, "io.sandbox-agent.prefix")),
			live.prefix);
		assert_string_equal(
			json_string_value(json_object_get(labels, "io.sandbox-agent.id")),
			sba_sandbox_info(s)->id);
	}
	live_remove(s);
}

static void what_is_left_goes_with_gc_and_with_the_next_one(void **state)
{
	(void)state;
	char volume[NAME_MAX_LEN], used[NAME_MAX_LEN], name[64], named[NAME_MAX_LEN];
	struct sba_error err = { 0 };
	struct sba_sandbox *s = box(0, used);
	leave_a_volume(NULL, volume);
	/* Nobody calls ours by a name. */
	snprintf(name, sizeof(name), "%s-named", live.prefix);
	leave_a_volume(name, named);
	assert_int_equal(sba_gc(live.engine, live.prefix, NULL, &err), 0);
	assert_true(volume_is_gone(volume));
	assert_false(volume_is_gone(used));
	leave_a_volume(NULL, volume);
	live_remove(live_sandbox((struct sba_sandbox_options){ .user = "0:0" }));
	assert_true(volume_is_gone(volume));
	assert_false(volume_is_gone(used));
	assert_false(volume_is_gone(named));
	assert_int_equal(sba_volume_remove(live.engine, named, sba_until_in(END_MS), &err), 0);
	live_remove(s);
}

/* ---- what is beside it ---- */

static void a_link_in_its_place_is_refused(void **state)
{
	(void)state;
	const char *image = live_image("linked", "RUN ln -s /tmp /.sandbox-agent", NULL, NULL);
	const struct sba_sandbox_options o = { .prefix = live.prefix, .image = image };
	struct sba_sandbox *s = NULL;
	struct sba_error err = { 0 };
	assert_true(sba_sandbox_create(live.engine, &o, &s, &err) < 0);
	/* Podman shows the volume, not the link: the guest finds it, and ends. */
	if (sba_engine_podman(live.engine)) {
		if (err.code != SBA_EBROKEN)
			fail_msg("%s", err.text);

	} else {
		assert_int_equal(err.code, SBA_EREFUSED);
		assert_non_null(strstr(err.text, "symbolic link at /.sandbox-agent"));
	}
	live_await_no_containers(END_MS);
}

static void root_finds_its_ca_file_too(void **state)
{
	(void)state;
	static const char text[] = "marker of a certificate\n";
	live_write_file(live_path("ca.pem"), text, strlen(text), 0600);
	struct sba_sandbox *s = live_sandbox(
		(struct sba_sandbox_options){ .user = "root", .ca_file = live_path("ca.pem") });
	SBA_FREE char *said = live_sh_out(s, "cat $SSL_CERT_FILE; stat -c %a $SSL_CERT_FILE");
	assert_string_equal(said, "marker of a certificate\n644\n");
	live_remove(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE_TEST(a_user_has_no_volume),
		LIVE_TEST(it_goes_with_removal),
		LIVE_TEST(it_goes_with_the_keepalive),
		LIVE_TEST(it_goes_with_a_killed_sidecar),
		LIVE_TEST(it_goes_with_a_killed_main_container),
		LIVE_TEST(it_goes_with_what_was_rolled_back),
		LIVE_TEST(it_goes_with_what_a_dead_client_left),
		LIVE_TEST(its_labels_tell_whose_it_is),
		LIVE_TEST(what_is_left_goes_with_gc_and_with_the_next_one),
		LIVE_TEST(a_link_in_its_place_is_refused),
		LIVE_TEST(root_finds_its_ca_file_too),
		LIVE_TEST(live_nothing_is_left),
	};
	return live_run(tests, live_begin, live_end);
}
