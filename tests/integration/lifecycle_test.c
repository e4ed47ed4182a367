/* SPDX-License-Identifier: MIT */
/* How sandboxes come, are found again, and end: by us, by themselves, by others. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "channel/protocol.h"
#include "image/image.h"
#include "sandbox/guest.h"
#include "support/live.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LABEL "io.sandbox-agent."

static struct sba_process *start_in(struct sba_sandbox *s, const char *script)
{
	const char *const argv[] = { "sh", "-c", script, NULL };
	struct sba_process *p = NULL;
	struct sba_error err = { 0 };
	if (sba_sandbox_exec(s, &(struct sba_exec_options){ .argv = argv }, &p, &err) < 0)
		fail_msg("%s", err.text);
	return p;
}

static bool container_is_gone(void *user)
{
	SBA_JSON json_t *j = NULL;
	return sba_container_inspect(live.engine, user, sba_until_in(10000), &j, NULL) ==
	       SBA_ENOTFOUND;
}

/* ---- made, found, removed ---- */

static void a_sandbox_is_two_containers_and_removal_takes_both(void **state)
{
	(void)state;
	struct sba_sandbox *s = live_sandbox((struct sba_sandbox_options){ .tag = "t1" });
	assert_int_equal(live_container_count(), 2);
	SBA_FREE char *out = live_sh_out(s, "echo hello");
	assert_string_equal(out, "hello\n");
	struct sba_error err = { 0 };
	assert_int_equal(sba_sandbox_remove(s, &err), 0);
	assert_int_equal(live_container_count(), 0);
	assert_int_equal(sba_sandbox_remove(s, &err), 0);
	sba_sandbox_close(s);
}

static void another_handle_finds_it_by_name_and_by_id(void **state)
{
	(void)state;
	struct sba_sandbox *s = live_sandbox((struct sba_sandbox_options){ .name = "findme" });
	struct sba_engine *other = NULL;
	struct sba_sandbox *by_name = NULL, *by_id = NULL;
	struct sba_error err = { 0 };
	assert_int_equal(sba_engine_open(NULL, &other, &err), 0);
	assert_int_equal(sba_sandbox_open(other, live.prefix, "findme", &by_name, &err), 0);
	assert_int_equal(
		sba_sandbox_open(other, live.prefix, sba_sandbox_info(s)->id, &by_id, &err), 0);
	assert_string_equal(sba_sandbox_info(by_name)->id, sba_sandbox_info(s)->id);
	SBA_FREE char *out = live_sh_out(by_id, "echo $$ >/tmp/here; echo ok");
	assert_string_equal(out, "ok\n");
	sba_sandbox_close(by_id);
	assert_int_equal(sba_sandbox_remove(by_name, &err), 0);
	sba_sandbox_close(by_name);
	sba_engine_close(other);
	sba_sandbox_close(s);
	assert_int_equal(live_container_count(), 0);
}

static void a_taken_name_is_refused_and_its_owner_unharmed(void **state)
{
	(void)state;
	struct sba_sandbox *s = live_sandbox((struct sba_sandbox_options){ .name = "taken" });
	struct sba_sandbox *second = NULL;
	struct sba_error err = { 0 };
	struct sba_sandbox_options o = { .name = "taken",
					 .prefix = live.prefix,
					 .image = live.image };
	assert_int_equal(sba_sandbox_create(live.engine, &o, &second, &err), SBA_EEXIST);
	assert_non_null(strstr(err.text, "taken"));
	assert_non_null(strstr(err.hint, "rm taken"));
	assert_int_equal(live_container_count(), 2);
	free(live_sh_out(s, "true"));
	live_remove(s);
}

static void an_unknown_name_suggests_the_nearest(void **state)
{
	(void)state;
	struct sba_sandbox *s = live_sandbox((struct sba_sandbox_options){ .name = "calm-fox" });
	struct sba_sandbox *none = NULL;
	struct sba_error err = { 0 };
	assert_int_equal(sba_sandbox_open(live.engine, live.prefix, "clam-fox", &none, &err),
			 SBA_ENOTFOUND);
	assert_non_null(strstr(err.hint, "'calm-fox'"));
	live_remove(s);
}

static void a_failed_creation_leaves_nothing(void **state)
{
	(void)state;
	struct sba_sandbox *none = NULL;
	struct sba_error err = { 0 };
	struct sba_sandbox_options no_image = { .prefix = live.prefix, .image = "no-such:image" };
	struct sba_sandbox_options bad_name = { .prefix = live.prefix,
						.image = live.image,
						.name = "../up" };
	struct sba_sandbox_options no_user = { .prefix = live.prefix,
					       .image = live.image,
					       .user = "nobody-here" };
	struct sba_sandbox_options no_runtime = { .prefix = live.prefix,
						  .image = live.image,
						  .runtime = "no-such-runtime" };
	assert_int_equal(sba_sandbox_create(live.engine, &no_image, &none, &err), SBA_EIMAGE);
	assert_non_null(strstr(err.text, "no-such:image"));
	assert_int_equal(sba_sandbox_create(live.engine, &bad_name, &none, &err), SBA_EINVAL);
	assert_true(sba_sandbox_create(live.engine, &no_user, &none, &err) < 0);
	assert_non_null(strstr(err.text, "nobody-here"));
	assert_true(sba_sandbox_create(live.engine, &no_runtime, &none, &err) < 0);
	assert_non_null(strstr(err.text, "no-such-runtime"));
	assert_int_equal(live_container_count(), 0);
	assert_null(none);
}

struct firing {
	struct sba_cancel *cancel;
	size_t when; /* so many containers are there */
};

static bool enough_containers(void *user)
{
	return live_container_count() >= ((struct firing *)user)->when;
}

static void *fire(void *user)
{
	struct firing *f = user;
	for (int i = 0; i < 500 && !enough_containers(f); i++)
		usleep(2000);
	sba_cancel_fire(f->cancel);
	return NULL;
}

static void a_cancelled_creation_leaves_nothing(void **state)
{
	(void)state;
	for (size_t when = 0; when <= 2; when++) {
		struct firing f = { .when = when };
		struct sba_engine *e = NULL;
		struct sba_sandbox *s = NULL;
		struct sba_error err = { 0 };
		pthread_t thread;
		assert_int_equal(sba_cancel_new(&f.cancel, &err), 0);
		struct sba_engine_options eo = { .cancel = f.cancel };
		assert_int_equal(sba_engine_open(&eo, &e, &err), 0);
		struct sba_sandbox_options o = { .prefix = live.prefix, .image = live.image };
		assert_int_equal(pthread_create(&thread, NULL, fire, &f), 0);
		int rc = sba_sandbox_create(e, &o, &s, &err);
		pthread_join(thread, NULL);
		if (rc == 0)
			live_remove(s);
		else
			assert_int_equal(rc, SBA_ECANCELED);
		live_await_no_containers(5000);
		sba_engine_close(e);
		sba_cancel_free(f.cancel);
	}
}

static void the_list_tells_state_and_tag(void **state)
{
	(void)state;
	struct sba_sandbox *idle = live_sandbox((struct sba_sandbox_options){ .tag = "a" });
	struct sba_sandbox *busy = live_sandbox((struct sba_sandbox_options){ .tag = "b" });
	struct sba_process *p = start_in(busy, "sleep 6001");
	struct sba_sandbox_list *l = NULL;
	struct sba_error err = { 0 };
	struct sba_list_options o = { .prefix = live.prefix };
	live_await_inside(sba_sandbox_container(busy), "sleep 6001", true, 10000);
	assert_int_equal(sba_sandbox_list(live.engine, &o, &l, &err), 0);
	assert_int_equal(sba_sandbox_list_count(l), 2);
	sba_sandbox_list_free(l);
	o.tag = "b";
	assert_int_equal(sba_sandbox_list(live.engine, &o, &l, &err), 0);
	assert_int_equal(sba_sandbox_list_count(l), 1);
	const struct sba_sandbox_info *i = sba_sandbox_list_at(l, 0);
	assert_string_equal(i->state, "working");
	assert_int_equal(i->commands, 1);
	assert_string_equal(i->image, live.image);
	sba_sandbox_list_free(l);
	sba_process_free(p);
	live_remove(idle);
	live_remove(busy);
}

static void a_description_holds_no_value_of_the_environment(void **state)
{
	(void)state;
	const char *const env[] = { "MARKER=zz-secret-zz", NULL };
	struct sba_sandbox *s = live_sandbox((struct sba_sandbox_options){ .env = env });
	SBA_FREE char *json = NULL;
	struct sba_error err = { 0 };
	assert_int_equal(sba_sandbox_describe(s, &json, &err), 0);
	SBA_JSON json_t *j = json_loads(json, 0, NULL);
	assert_non_null(j);
	assert_null(strstr(json, "zz-secret-zz"));
	assert_non_null(strstr(json, "MARKER"));
	SBA_FREE char *out = live_sh_out(s, "echo $MARKER");
	assert_string_equal(out, "zz-secret-zz\n");
	live_remove(s);
}

/* ---- it ends by itself ---- */

static void an_idle_sandbox_ends_after_its_keepalive(void **state)
{
	(void)state;
	struct sba_sandbox *used =
		live_sandbox((struct sba_sandbox_options){ .name = "idler", .keepalive_ms = 1500 });
	struct sba_sandbox *s = NULL;
	struct sba_error err = { 0 };
	LIVE_RESULT r;
	assert_int_equal(sba_sandbox_open(live.engine, live.prefix, "idler", &s, &err), 0);
	/* The handle that made it, or ran a command, holds it until it is closed. */
	free(live_sh_out(used, "true"));
	sba_sandbox_close(used);
	live_await_no_containers(15000);
	live_sh(s, "true", &r);
	assert_int_equal(r.rc, SBA_EBROKEN);
	if (!strstr(r.err.text, "keepalive"))
		fail_msg("%s", r.err.text);
	sba_sandbox_close(s);
}

static void a_running_command_and_short_ones_keep_it_alive(void **state)
{
	(void)state;
	struct sba_sandbox *s = live_sandbox((struct sba_sandbox_options){ .keepalive_ms = 1000 });
	SBA_FREE char *out = live_sh_out(s, "sleep 4; echo done");
	assert_string_equal(out, "done\n");
	for (int64_t end = sba_now_ms() + 3000; sba_now_ms() < end;)
		free(live_sh_out(s, "sleep 0.3"));
	live_remove(s);
}

static void max_lifetime_ends_it_although_it_works(void **state)
{
	(void)state;
	struct sba_sandbox *s =
		live_sandbox((struct sba_sandbox_options){ .max_lifetime_ms = 2000 });
	LIVE_RESULT r;
	int64_t began = sba_now_ms();
	live_sh(s, "echo on; sleep 6011", &r);
	assert_int_equal(r.rc, SBA_EBROKEN);
	if (!strstr(r.err.text, "max-lifetime"))
		fail_msg("%s", r.err.text);
	assert_string_equal(r.out.data, "on\n");
	assert_true(sba_now_ms() - began < 15000);
	live_await_no_containers(5000);
	sba_sandbox_close(s);
}

/* A client of its own: makes a sandbox, runs something in it, waits to be killed. */
static void client(int tell)
{
	struct sba_engine *e = NULL;
	struct sba_sandbox *s = NULL;
	struct sba_process *p = NULL;
	const char *const argv[] = { "sh", "-c", "trap '' TERM HUP; setsid sleep 6021 & sleep 6022",
				     NULL };
	struct sba_sandbox_options o = {
		.prefix = live.prefix, .image = live.image, .name = "orphan", .keepalive_ms = 3000
	};
	if (sba_engine_open(NULL, &e, NULL) < 0 || sba_sandbox_create(e, &o, &s, NULL) < 0 ||
	    sba_sandbox_exec(s, &(struct sba_exec_options){ .argv = argv }, &p, NULL) < 0 ||
	    write(tell, "x", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

static void a_killed_client_leaves_no_command_and_soon_no_sandbox(void **state)
{
	(void)state;
	int tell[2];
	char c;
	struct sba_sandbox *s = NULL;
	struct sba_error err = { 0 };
	assert_int_equal(pipe(tell), 0);
	pid_t pid = fork();
	if (pid == 0)
		client(tell[1]);
	close(tell[1]);
	assert_int_equal(read(tell[0], &c, 1), 1);
	close(tell[0]);
	assert_int_equal(sba_sandbox_open(live.engine, live.prefix, "orphan", &s, &err), 0);
	live_await_inside(sba_sandbox_container(s), "sleep 6022", true, 10000);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	live_await_inside(sba_sandbox_container(s), "sleep 602", false, 8000);
	live_await_no_containers(15000);
	sba_sandbox_close(s);
}

static void a_client_that_died_half_way_leaves_nothing_in_the_end(void **state)
{
	(void)state;
	/* Killed as soon as its first container is there, however far it came. */
	for (size_t when = 1; when <= 2; when++) {
		int tell[2];
		assert_int_equal(pipe(tell), 0);
		pid_t pid = fork();
		if (pid == 0)
			client(tell[1]);
		struct firing f = { .when = when };
		live_await(enough_containers, &f, 20000);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		close(tell[0]);
		close(tell[1]);
		for (int i = 0; i < 750 && live_container_count() > 0; i++) {
			struct sba_error err = { 0 };
			assert_int_equal(sba_gc(live.engine, live.prefix, NULL, &err), 0);
			usleep(20000);
		}
		assert_int_equal(live_container_count(), 0);
	}
}

/* ---- others end it ---- */

static void ends_with_words(struct sba_process *p, const char *words)
{
	struct sba_exit end;
	struct sba_error err = { 0 };
	assert_int_equal(sba_process_wait(p, 30000, &end, &err), SBA_EBROKEN);
	if (!strstr(err.text, words))
		fail_msg("'%s' is not in: %s", words, err.text);
	sba_process_free(p);
}

static void a_killed_sidecar_is_told_with_the_reason(void **state)
{
	(void)state;
	struct sba_sandbox *s = live_sandbox((struct sba_sandbox_options){ 0 });
	struct sba_process *p = start_in(s, "sleep 6031");
	char sidecar[SBA_ID_MAX];
	live_sidecar_of(s, sidecar);
	live_await_inside(sba_sandbox_container(s), "sleep 6031", true, 10000);
	live_kill_container(sidecar);
	ends_with_words(p, "from outside");
	live_await_no_containers(10000);
	sba_sandbox_close(s);
}

static void a_killed_container_takes_its_sidecar_along(void **state)
{
	(void)state;
	struct sba_sandbox *s = live_sandbox((struct sba_sandbox_options){ 0 });
	struct sba_process *p = start_in(s, "sleep 6041");
	live_await_inside(sba_sandbox_container(s), "sleep 6041", true, 10000);
	live_kill_container(sba_sandbox_container(s));
	ends_with_words(p, "killed");
	live_await_no_containers(10000);
	sba_sandbox_close(s);
}

static void a_container_removed_in_the_middle_is_told(void **state)
{
	(void)state;
	struct sba_sandbox *s = live_sandbox((struct sba_sandbox_options){ .name = "removed" });
	struct sba_process *p = start_in(s, "sleep 6051");
	struct sba_error err = { 0 };
	struct sba_sandbox *other = NULL;
	live_await_inside(sba_sandbox_container(s), "sleep 6051", true, 10000);
	assert_int_equal(sba_sandbox_open(live.engine, live.prefix, "removed", &other, &err), 0);
	live_remove(other);
	ends_with_words(p, "it was removed");
	LIVE_RESULT r;
	live_sh(s, "true", &r);
	assert_int_equal(r.rc, SBA_EBROKEN);
	sba_sandbox_close(s);
}

/* ---- what is not ours ---- */

static void commit(struct sba_sandbox *s, const char *name)
{
	char path[256];
	snprintf(path, sizeof(path), "/commit?container=%s&repo=%s-%s&tag=1",
		 sba_sandbox_container(s), live.prefix, name);
	SBA_JSON json_t *body = json_object();
	struct sba_request request = {
		.method = "POST", .path = path, .json = body, .tried = "commit"
	};
	struct sba_error err = { 0 };
	if (sba_engine_call(live.engine, &request, sba_until_in(60000), NULL, &err) < 0)
		fail_msg("%s", err.text);
}

static void create_raw(const char *image, const json_t *labels, const char *name,
		       char ret_id[SBA_ID_MAX])
{
	SBA_JSON json_t *spec =
		json_pack("{s:s, s:[ss]}", "Image", image, "Entrypoint", "sleep", "6061");
	if (labels)
		json_object_set(spec, "Labels", (json_t *)(uintptr_t)labels);
	struct sba_error err = { 0 };
	if (sba_container_create(live.engine, name, spec, sba_until_in(30000), ret_id, &err) < 0)
		fail_msg("%s", err.text);
}

static void a_container_of_a_committed_image_is_not_taken_for_ours(void **state)
{
	(void)state;
	struct sba_sandbox *s = live_sandbox((struct sba_sandbox_options){ .name = "parent" });
	char image[64], child_name[64], child[SBA_ID_MAX];
	struct sba_error err = { 0 };
	int removed = -1;
	commit(s, "committed");
	snprintf(image, sizeof(image), "%s-committed:1", live.prefix);
	snprintf(child_name, sizeof(child_name), "%s-child", live.prefix);
	create_raw(image, NULL, child_name, child);
	assert_int_equal(sba_container_start(live.engine, child, sba_until_in(30000), &err), 0);

	struct sba_list_options o = { .prefix = live.prefix };
	struct sba_sandbox_list *l = NULL;
	assert_int_equal(sba_sandbox_list(live.engine, &o, &l, &err), 0);
	assert_int_equal(sba_sandbox_list_count(l), 1);
	sba_sandbox_list_free(l);
	live_remove(s);
	assert_int_equal(sba_gc(live.engine, live.prefix, &removed, &err), 0);
	assert_int_equal(removed, 0);
	SBA_JSON json_t *j = live_inspect(child);
	assert_true(sba_json_bool(j, "State.Running", false));
	live_remove_container(child);

	/* A sandbox made of it is one of its own. */
	struct sba_sandbox *own =
		live_sandbox((struct sba_sandbox_options){ .name = "own", .image = image });
	assert_string_equal(sba_sandbox_info(own)->name, "own");
	assert_int_equal(sba_sandbox_list(live.engine, &o, &l, &err), 0);
	assert_int_equal(sba_sandbox_list_count(l), 1);
	assert_string_equal(sba_sandbox_list_at(l, 0)->name, "own");
	sba_sandbox_list_free(l);
	live_remove(own);
}

static json_t *labels_like(struct sba_sandbox *s, const char *id, const char *name,
			   bool dead_creator)
{
	SBA_JSON json_t *j = live_inspect(sba_sandbox_container(s));
	json_t *labels = json_deep_copy(sba_json_get(j, "Config.Labels"));
	json_object_set_new(labels, LABEL "id", json_string(id));
	json_object_set_new(labels, LABEL "name", json_string(name));
	if (dead_creator) {
		/* The same process number, begun at another time. */
		const char *was = json_string_value(json_object_get(labels, LABEL "creator"));
		SBA_FREE char *now = strdup(was);
		*(strrchr(now, '|') + 1) = '\0';
		json_object_set_new(labels, LABEL "creator", json_sprintf("%s1", now));
	}
	return labels;
}

static void gc_takes_the_half_made_of_the_dead_and_nothing_else(void **state)
{
	(void)state;
	struct sba_sandbox *s = live_sandbox((struct sba_sandbox_options){ .name = "alive" });
	char dead[SBA_ID_MAX], fresh[SBA_ID_MAX], foreign[SBA_ID_MAX], name[64];
	SBA_JSON json_t *dead_labels = labels_like(s, "dead0", "dead", true);
	SBA_JSON json_t *fresh_labels = labels_like(s, "fresh0", "fresh", false);
	SBA_JSON json_t *foreign_labels = json_pack("{s:s}", LABEL "prefix", live.prefix);
	snprintf(name, sizeof(name), "%s-dead", live.prefix);
	create_raw(live.image, dead_labels, name, dead);
	snprintf(name, sizeof(name), "%s-fresh", live.prefix);
	create_raw(live.image, fresh_labels, name, fresh);
	snprintf(name, sizeof(name), "%s-foreign", live.prefix);
	create_raw(live.image, foreign_labels, name, foreign);

	struct sba_error err = { 0 };
	int removed = -1;
	assert_int_equal(sba_gc(live.engine, live.prefix, &removed, &err), 0);
	assert_int_equal(removed, 1);
	assert_true(container_is_gone(dead));
	assert_false(container_is_gone(fresh));
	assert_false(container_is_gone(foreign));
	free(live_sh_out(s, "true"));
	live_remove_container(fresh);
	live_remove_container(foreign);
	live_remove(s);
}

static void what_died_half_made_goes_with_a_command_of_any_kind(void **state)
{
	(void)state;
	static const char *const commands[][4] = { { "ps", "-a" },
						   { "inspect", "alive" },
						   { "exec", "alive", "--", "true" },
						   { "image", "ls" },
						   { "pool", "ls" } };
	struct sba_sandbox *s = live_sandbox((struct sba_sandbox_options){ .name = "alive" });
	char dead[SBA_ID_MAX], fresh[SBA_ID_MAX], name[64];
	SBA_JSON json_t *dead_labels = labels_like(s, "dead0", "dead", true);
	SBA_JSON json_t *fresh_labels = labels_like(s, "fresh0", "fresh", false);
	snprintf(name, sizeof(name), "%s-fresh", live.prefix);
	create_raw(live.image, fresh_labels, name, fresh);
	snprintf(name, sizeof(name), "%s-dead", live.prefix);
	for (size_t i = 0; i < SBA_ARRAY_LEN(commands); i++) {
		LIVE_CHILD c;
		const char *const *w = commands[i];
		create_raw(live.image, dead_labels, name, dead);
		RUN(&c, w[0], w[1], w[2], w[3]);
		live_assert_says(&c, 0, NULL);
		if (!container_is_gone(dead))
			fail_msg("%s %s left it", w[0], w[1]);
		assert_false(container_is_gone(fresh));
	}
	live_remove_container(fresh);
	live_remove(s);
}

/* ---- volumes ---- */

static bool volume_is_gone(void *user)
{
	char path[256];
	snprintf(path, sizeof(path), "/volumes/%s", (const char *)user);
	struct sba_request request = { .method = "GET", .path = path, .tried = "volume" };
	return sba_engine_call(live.engine, &request, sba_until_in(10000), NULL, NULL) ==
	       SBA_ENOTFOUND;
}

static void volume_of(struct sba_sandbox *s, char ret[128])
{
	SBA_JSON json_t *j = live_inspect(sba_sandbox_container(s));
	const char *name = sba_json_str(j, "Mounts.#0.Name");
	assert_non_null(name);
	snprintf(ret, 128, "%s", name);
	assert_false(volume_is_gone(ret));
}

static void anonymous_volumes_go_along_on_every_path(void **state)
{
	(void)state;
	const char *image = live_image("volume", "VOLUME /data", NULL, NULL);
	char volume[128];
	struct sba_sandbox *s = live_sandbox((struct sba_sandbox_options){ .image = image });
	volume_of(s, volume);
	live_remove(s);
	assert_true(volume_is_gone(volume));
	s = live_sandbox((struct sba_sandbox_options){ .image = image, .keepalive_ms = 1000 });
	volume_of(s, volume);
	sba_sandbox_close(s);
	live_await_no_containers(15000);
	live_await(volume_is_gone, volume, 5000);
}

/* ---- a runtime that does not do what it was told ---- */

static int place_guest(const char *container, const char *id)
{
	const struct sba_pack_options options = { .fixed_mtime = 0 };
	struct sba_pack *pack = NULL;
	struct sba_guest guest;
	assert_int_equal(sba_guest_find(NULL, &guest, NULL), 0);
	assert_int_equal(sba_pack_new(&options, &pack, NULL), 0);
	assert_int_equal(sba_guest_pack(pack, &guest, id, NULL), 0);
	int rc = sba_container_put(live.engine, container, "/", sba_pack_read, pack,
				   sba_until_in(30000), NULL);
	sba_pack_free(pack);
	return rc;
}

/* The two containers of a sandbox, each in a process namespace of its own. */
static void make_unshared(struct sba_sandbox *like, const char *name, const json_t *command)
{
	char ids[2][SBA_ID_MAX], sidecar[SBA_ID_MAX], full[96];
	struct sba_error err = { 0 };
	live_sidecar_of(like, sidecar);
	SBA_JSON json_t *first = live_inspect(sidecar);
	SBA_JSON json_t *second = live_inspect(sba_sandbox_container(like));
	json_t *models[] = { first, second };
	for (int i = 0; i < 2; i++) {
		json_t *labels = json_deep_copy(sba_json_get(models[i], "Config.Labels"));
		json_object_set_new(labels, LABEL "id", json_string(name));
		json_object_set_new(labels, LABEL "name", json_string(name));
		SBA_JSON json_t *spec = json_pack(
			"{s:s, s:o, s:O, s:{s:[ss]}}", "Image",
			sba_json_str(models[i], "Config.Image"), "Labels", labels, "Cmd",
			i ? (json_t *)(uintptr_t)command : sba_json_get(models[i], "Config.Cmd"),
			"HostConfig", "CapAdd", "SETUID", "SETGID");
		if (i == 0)
			json_object_set(spec, "Entrypoint",
					sba_json_get(models[i], "Config.Entrypoint"));
		snprintf(full, sizeof(full), "%s-%s%s", live.prefix, name, i ? "" : "-sidecar");
		if (sba_container_create(live.engine, full, spec, sba_until_in(30000), ids[i],
					 &err) < 0 ||
		    (i && place_guest(ids[i], name) < 0) ||
		    sba_container_start(live.engine, ids[i], sba_until_in(30000), &err) < 0)
			fail_msg("%s", err.text);
	}
}

static void where_no_namespace_is_shared_nothing_is_run(void **state)
{
	(void)state;
	struct sba_sandbox *like = live_sandbox((struct sba_sandbox_options){ .name = "like" });
	struct sba_sandbox *s = NULL;
	struct sba_error err = { 0 };
	SBA_JSON json_t *command = json_pack("[ss]", "sleep", "6071");
	LIVE_RESULT r;
	make_unshared(like, "unshared", command);
	if (sba_sandbox_open(live.engine, live.prefix, "unshared", &s, &err) < 0)
		fail_msg("%s", err.text);
	live_sh(s, "echo ran", &r);
	assert_int_equal(r.rc, SBA_EBROKEN);
	if (!strstr(r.err.text, "does not share the sidecar's process namespace"))
		fail_msg("%s", r.err.text);
	assert_int_equal(r.out.len, 0);
	live_remove(s);
	live_remove(like);
}

static bool has_ended_alone(void *user)
{
	SBA_JSON json_t *j = live_inspect(user);
	return sba_json_int(j, "State.ExitCode", 0) == SBA_IDLE_ALONE;
}

static void a_main_process_without_a_sidecar_ends_at_once(void **state)
{
	(void)state;
	struct sba_sandbox *like = live_sandbox((struct sba_sandbox_options){ .name = "like" });
	SBA_JSON json_t *command = json_pack("[ss]", SBA_GUEST_PATH, "idle");
	char id[96];
	make_unshared(like, "alone", command);
	snprintf(id, sizeof(id), "%s-alone", live.prefix);
	live_await(has_ended_alone, id, 5000);
	live_remove_container(id);
	snprintf(id, sizeof(id), "%s-alone-sidecar", live.prefix);
	live_remove_container(id);
	live_remove(like);
}

/* ---- images of sidecars ---- */

static void import_sidecar(const char *hash, char ret[SBA_REF_MAX])
{
	struct sba_guest guest;
	struct sba_error err = { 0 };
	char repository[64];
	assert_int_equal(sba_guest_find(NULL, &guest, &err), 0);
	guest.hash = hash;
	snprintf(repository, sizeof(repository), "%s-old", live.prefix);
	if (sba_image_sidecar(live.engine, repository, &guest, ret, &err) < 0)
		fail_msg("%s", err.text);
}

/* Named as ours are, but without our label. */
static void tag_foreign(const char *hash, char ret[SBA_REF_MAX])
{
	char path[400];
	struct sba_error err = { 0 };
	snprintf(ret, SBA_REF_MAX, "%s-old:guest-%s", live.prefix, hash);
	snprintf(path, sizeof(path), "/images/%s/tag?repo=%s-old&tag=guest-%s", live.image,
		 live.prefix, hash);
	struct sba_request request = { .method = "POST", .path = path, .tried = "tag" };
	if (sba_engine_call(live.engine, &request, sba_until_in(60000), NULL, &err) < 0)
		fail_msg("%s", err.text);
}

static bool image_is_there(const char *ref)
{
	SBA_JSON json_t *j = NULL;
	return sba_image_inspect(live.engine, ref, sba_until_in(10000), &j, NULL) == 0;
}

static int sweep(int64_t min_age_s)
{
	char repository[64];
	struct sba_error err = { 0 };
	int removed = -1;
	snprintf(repository, sizeof(repository), "%s-old", live.prefix);
	if (sba_image_sweep(live.engine, repository, min_age_s, &removed, &err) < 0)
		fail_msg("%s", err.text);
	return removed;
}

static void old_images_of_sidecars_go_when_nothing_uses_them(void **state)
{
	(void)state;
	char old[SBA_REF_MAX], used[SBA_REF_MAX], foreign[SBA_REF_MAX], ours[SBA_REF_MAX];
	char name[64], id[SBA_ID_MAX];
	struct sba_error err = { 0 };
	import_sidecar("0123456789ab", old);
	import_sidecar("0123456789ac", used);
	tag_foreign("0123456789ad", foreign);
	import_sidecar(sba_guest_hash(), ours);
	snprintf(name, sizeof(name), "%s-user", live.prefix);
	create_raw(used, NULL, name, id);
	assert_int_equal(sweep(SBA_SIDECAR_IMAGE_KEPT_S), 0); /* none is a day old */
	assert_int_equal(sweep(0), 1);
	assert_false(image_is_there(old));
	assert_true(image_is_there(used));
	assert_true(image_is_there(foreign));
	assert_true(image_is_there(ours));
	live_remove_container(id);
	assert_int_equal(sweep(0), 1);
	assert_false(image_is_there(used));
	assert_int_equal(sba_image_remove(live.engine, foreign, sba_until_in(10000), &err), 0);
	assert_int_equal(sba_image_remove(live.engine, ours, sba_until_in(10000), &err), 0);
}

/* ---- side by side ---- */

struct worker {
	pthread_t thread;
	int number;
	char problem[SBA_ERROR_TEXT_MAX + 64];
};

static void *work(void *user)
{
	struct worker *w = user;
	struct sba_sandbox *s = NULL;
	struct sba_process *p = NULL;
	struct sba_error err = { 0 };
	struct sba_exit end = { 0 };
	char script[64];
	snprintf(script, sizeof(script), "exit %d", w->number);
	const char *const argv[] = { "sh", "-c", script, NULL };
	struct sba_sandbox_options o = { .prefix = live.prefix, .image = live.image };
	int rc = sba_sandbox_create(live.engine, &o, &s, &err);
	for (int i = 0; i < 5 && rc == 0; i++) {
		rc = sba_sandbox_exec(s, &(struct sba_exec_options){ .argv = argv }, &p, &err);
		if (rc == 0)
			rc = sba_process_wait(p, 60000, &end, &err);
		if (rc == 0 && sba_exit_status(&end) != w->number)
			snprintf(w->problem, sizeof(w->problem), "status %d",
				 sba_exit_status(&end));
		if (rc == 0)
			sba_process_free(p);
	}
	if (rc == 0)
		rc = sba_sandbox_remove(s, &err);
	if (rc < 0)
		snprintf(w->problem, sizeof(w->problem), "%s", err.text);
	sba_sandbox_close(s);
	return NULL;
}

static void five_threads_share_one_handle(void **state)
{
	(void)state;
	struct worker workers[5] = { 0 };
	for (int i = 0; i < 5; i++) {
		workers[i].number = 20 + i;
		assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
	}
	for (int i = 0; i < 5; i++) {
		pthread_join(workers[i].thread, NULL);
		assert_string_equal(workers[i].problem, "");
	}
	assert_int_equal(live_container_count(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE_TEST(a_sandbox_is_two_containers_and_removal_takes_both),
		LIVE_TEST(another_handle_finds_it_by_name_and_by_id),
		LIVE_TEST(a_taken_name_is_refused_and_its_owner_unharmed),
		LIVE_TEST(an_unknown_name_suggests_the_nearest),
		LIVE_TEST(a_failed_creation_leaves_nothing),
		LIVE_TEST(a_cancelled_creation_leaves_nothing),
		LIVE_TEST(the_list_tells_state_and_tag),
		LIVE_TEST(a_description_holds_no_value_of_the_environment),
		LIVE_TEST(five_threads_share_one_handle),
		LIVE_TEST(an_idle_sandbox_ends_after_its_keepalive),
		LIVE_TEST(a_running_command_and_short_ones_keep_it_alive),
		LIVE_TEST(max_lifetime_ends_it_although_it_works),
		LIVE_TEST(a_killed_client_leaves_no_command_and_soon_no_sandbox),
		LIVE_TEST(a_client_that_died_half_way_leaves_nothing_in_the_end),
		LIVE_TEST(a_killed_sidecar_is_told_with_the_reason),
		LIVE_TEST(a_killed_container_takes_its_sidecar_along),
		LIVE_TEST(a_container_removed_in_the_middle_is_told),
		LIVE_TEST(a_container_of_a_committed_image_is_not_taken_for_ours),
		LIVE_TEST(gc_takes_the_half_made_of_the_dead_and_nothing_else),
		LIVE_TEST(what_died_half_made_goes_with_a_command_of_any_kind),
		LIVE_TEST(anonymous_volumes_go_along_on_every_path),
		LIVE_TEST(where_no_namespace_is_shared_nothing_is_run),
		LIVE_TEST(a_main_process_without_a_sidecar_ends_at_once),
		LIVE_TEST(old_images_of_sidecars_go_when_nothing_uses_them),
		LIVE_TEST(live_nothing_is_left),
	};
	return live_run(tests, live_begin, live_end);
}
