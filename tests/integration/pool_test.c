/* SPDX-License-Identifier: MIT */
/* The pool: sandboxes made before anybody wants them, and who gets which. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/live.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LABEL "io.sandbox-agent."

enum { COMMAND_LINE_MAX = 1 << 20 };

static struct sba_sandbox_options kind(void)
{
	return (struct sba_sandbox_options){ .prefix = live.prefix,
					     .image = live.image,
					     .keepalive_ms = 60 * 1000,
					     .max_sandboxes = -1 };
}

static void fill(struct sba_sandbox_options o, size_t count, size_t expected)
{
	struct sba_error err = { 0 };
	size_t made = 99;
	if (sba_pool_fill(live.engine, &o, count, &made, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(made, expected);
}

static struct sba_sandbox *claim(struct sba_sandbox_options o)
{
	struct sba_sandbox *s = NULL;
	struct sba_error err = { 0 };
	if (sba_pool_claim(live.engine, &o, &s, &err) < 0)
		fail_msg("%s", err.text);
	return s;
}

static int claim_code(struct sba_sandbox_options o, struct sba_error *err)
{
	struct sba_sandbox *s = NULL;
	int rc = sba_pool_claim(live.engine, &o, &s, err);
	assert_true(rc < 0);
	assert_null(s);
	return rc;
}

static size_t count(struct sba_list_options o)
{
	struct sba_sandbox_list *l = NULL;
	struct sba_error err = { 0 };
	o.prefix = live.prefix;
	if (sba_sandbox_list(live.engine, &o, &l, &err) < 0)
		fail_msg("%s", err.text);
	size_t n = sba_sandbox_list_count(l);
	sba_sandbox_list_free(l);
	return n;
}

static size_t ready(void)
{
	return count((struct sba_list_options){ .ready = true });
}

static void drain(int expected)
{
	struct sba_error err = { 0 };
	int removed = -1;
	assert_int_equal(sba_pool_drain(live.engine, live.prefix, NULL, &removed, &err), 0);
	assert_int_equal(removed, expected);
}

static void name_of_the_ready_one(char ret[64])
{
	struct sba_list_options o = { .prefix = live.prefix, .ready = true };
	struct sba_sandbox_list *l = NULL;
	assert_int_equal(sba_sandbox_list(live.engine, &o, &l, NULL), 0);
	assert_int_equal(sba_sandbox_list_count(l), 1);
	snprintf(ret, 64, "%s", sba_sandbox_list_at(l, 0)->name);
	sba_sandbox_list_free(l);
}

/* ---- one client ---- */

static void a_claimed_one_is_a_sandbox_as_any_other(void **state)
{
	(void)state;
	struct sba_sandbox_options o = kind();
	struct sba_error err = { 0 };
	fill(o, 1, 1);
	assert_int_equal(count((struct sba_list_options){ 0 }), 0);
	assert_int_equal(ready(), 1);
	o.name = "mine";
	struct sba_sandbox *s = claim(o), *other = NULL;
	assert_string_equal(sba_sandbox_info(s)->name, "mine");
	assert_int_equal(strlen(sba_sandbox_info(s)->pool), 32);
	assert_int_equal(ready(), 0);
	assert_int_equal(count((struct sba_list_options){ .name = "mine" }), 1);
	assert_int_equal(sba_sandbox_open(live.engine, live.prefix, "mine", &other, &err), 0);
	assert_string_equal(sba_sandbox_info(other)->id, sba_sandbox_info(s)->id);
	assert_string_equal(sba_sandbox_info(other)->state, "idle");
	SBA_FREE char *said = live_sh_out(other, "echo hello");
	assert_string_equal(said, "hello\n");
	SBA_JSON json_t *j = live_inspect(sba_sandbox_container(s));
	assert_true(sba_ends_with(sba_json_str(j, "Name"), "-mine"));
	sba_sandbox_close(other);
	live_remove(s);
}

static void a_full_pool_is_left_as_it_is(void **state)
{
	(void)state;
	fill(kind(), 1, 1);
	fill(kind(), 1, 0);
	fill(kind(), 2, 1);
	assert_int_equal(ready(), 2);
	drain(2);
}

static void only_who_wants_the_same_gets_it(void **state)
{
	(void)state;
	static const char *const env[] = { "A=b", NULL }, *const rules[] = { "a.example", NULL };
	struct sba_sandbox_options others[] = { kind(), kind(), kind(), kind(), kind(), kind() };
	struct sba_error err;
	others[0].memory = 64 << 20;
	others[1].env = env;
	others[2].tag = "t";
	others[3].user = "0";
	others[4].allow = rules;
	others[5].agent = "claude";
	fill(kind(), 1, 1);
	for (size_t i = 0; i < SBA_ARRAY_LEN(others); i++)
		assert_int_equal(claim_code(others[i], &err), SBA_ENOTFOUND);
	assert_int_equal(ready(), 1);
	live_remove(claim(kind()));
}

static void who_finds_none_makes_one(void **state)
{
	(void)state;
	struct sba_sandbox_options o = kind();
	o.pool = true;
	struct sba_sandbox *made = live_sandbox(o);
	assert_string_equal(sba_sandbox_info(made)->pool, "");
	fill(kind(), 1, 1);
	struct sba_sandbox *claimed = live_sandbox(o);
	assert_string_not_equal(sba_sandbox_info(claimed)->pool, "");
	free(live_sh_out(claimed, "true"));
	live_remove(made);
	live_remove(claimed);
}

static void a_taken_name_costs_no_member(void **state)
{
	(void)state;
	struct sba_sandbox_options o = kind();
	struct sba_error err;
	o.name = "taken";
	struct sba_sandbox *s = live_sandbox(o);
	fill(kind(), 1, 1);
	assert_int_equal(claim_code(o, &err), SBA_EEXIST);
	assert_non_null(strstr(err.text, "'taken'"));
	assert_int_equal(ready(), 1);
	live_remove(s);
	/* The other way round: the name of a claimed one is taken. */
	s = claim(o);
	struct sba_sandbox *none = NULL;
	assert_int_equal(sba_sandbox_create(live.engine, &o, &none, &err), SBA_EEXIST);
	free(live_sh_out(s, "true"));
	live_remove(s);
}

static void a_claim_counts_to_the_limit_and_readiness_does_not(void **state)
{
	(void)state;
	struct sba_sandbox_options o = kind();
	struct sba_error err;
	o.max_sandboxes = 1;
	fill(o, 2, 2);
	struct sba_sandbox *s = claim(o), *none = NULL;
	assert_int_equal(claim_code(o, &err), SBA_ELIMIT);
	assert_int_equal(sba_sandbox_create(live.engine, &o, &none, &err), SBA_ELIMIT);
	assert_int_equal(ready(), 1);
	live_remove(s);
	s = claim(o);
	live_remove(s);
}

static void nobody_uses_one_that_is_not_claimed(void **state)
{
	(void)state;
	static const char *const argv[] = { "true", NULL };
	struct sba_sandbox *s = NULL;
	struct sba_process *p = NULL;
	struct sba_error err = { 0 };
	char name[64];
	fill(kind(), 1, 1);
	name_of_the_ready_one(name);
	assert_int_equal(sba_sandbox_open(live.engine, live.prefix, name, &s, &err), 0);
	assert_string_equal(sba_sandbox_info(s)->state, "ready");
	assert_int_equal(sba_sandbox_exec(s, &(struct sba_exec_options){ .argv = argv }, &p, &err),
			 SBA_EREFUSED);
	assert_int_equal(sba_sandbox_upload(s, "/etc/hostname", "/tmp", NULL, NULL, &err),
			 SBA_EREFUSED);
	live_remove(s);
	struct sba_sandbox_options o = kind();
	o.name = name;
	assert_int_equal(sba_sandbox_create(live.engine, &o, &s, &err), SBA_EINVAL);
}

static void no_environment_comes_into_the_pool(void **state)
{
	(void)state;
	static const char *const env[] = { "TOKEN=s3cret", NULL };
	struct sba_sandbox_options o = kind();
	struct sba_error err = { 0 };
	o.env = env;
	assert_int_equal(sba_pool_fill(live.engine, &o, 1, NULL, &err), SBA_EINVAL);
	o.env = NULL;
	assert_int_equal(sba_pool_fill(live.engine, &o, 0, NULL, &err), SBA_EINVAL);
	assert_int_equal(sba_pool_fill(live.engine, &o, SBA_POOL_MAX + 1, NULL, &err), SBA_EINVAL);
	assert_int_equal(live_container_count(), 0);
}

/* ---- what ends, what is not ours ---- */

static void what_has_ended_is_passed_over(void **state)
{
	(void)state;
	fill(kind(), 2, 2);
	struct sba_list_options lo = { .prefix = live.prefix, .ready = true };
	struct sba_sandbox_list *l = NULL;
	struct sba_sandbox *dead = NULL;
	struct sba_error err = { 0 };
	assert_int_equal(sba_sandbox_list(live.engine, &lo, &l, &err), 0);
	assert_int_equal(sba_sandbox_open(live.engine, live.prefix, sba_sandbox_list_at(l, 0)->name,
					  &dead, &err),
			 0);
	live_kill_container(sba_sandbox_container(dead));
	struct sba_sandbox *s = claim(kind());
	assert_string_not_equal(sba_sandbox_info(s)->id, sba_sandbox_info(dead)->id);
	free(live_sh_out(s, "true"));
	sba_sandbox_list_free(l);
	sba_sandbox_close(dead);
	live_remove(s);
	live_await_no_containers(10000);
}

static void the_unused_end_themselves(void **state)
{
	(void)state;
	struct sba_sandbox_options o = kind();
	o.keepalive_ms = 3000;
	o.tag = "unused";
	fill(o, 1, 1);
	live_await_no_containers(40000);
	/* What nobody had is no news. */
	assert_int_equal(count((struct sba_list_options){ .all = true, .tag = o.tag }), 0);
}

static void a_claimed_one_that_ended_is_told_by_its_name(void **state)
{
	(void)state;
	struct sba_sandbox_options o = kind();
	struct sba_sandbox *none = NULL;
	struct sba_error err = { 0 };
	o.keepalive_ms = 15000;
	o.name = "short";
	fill(o, 1, 1);
	sba_sandbox_close(claim(o));
	live_await_no_containers(40000);
	assert_int_equal(count((struct sba_list_options){ .all = true, .name = "short" }), 1);
	assert_int_equal(sba_sandbox_open(live.engine, live.prefix, "short", &none, &err),
			 SBA_ENOTFOUND);
	assert_non_null(strstr(err.text, "keepalive"));
}

static void gc_leaves_the_ready_and_the_claimed(void **state)
{
	(void)state;
	struct sba_error err = { 0 };
	int removed = -1;
	fill(kind(), 2, 2);
	struct sba_sandbox *s = claim(kind());
	assert_int_equal(sba_gc(live.engine, live.prefix, &removed, &err), 0);
	assert_int_equal(removed, 0);
	assert_int_equal(ready(), 1);
	free(live_sh_out(s, "true"));
	live_remove(s);
	drain(1);
}

static void commit(struct sba_sandbox *s)
{
	char path[256];
	snprintf(path, sizeof(path), "/commit?container=%s&repo=%s-member&tag=1",
		 sba_sandbox_container(s), live.prefix);
	SBA_JSON json_t *body = json_object();
	struct sba_request request = {
		.method = "POST", .path = path, .json = body, .tried = "commit"
	};
	struct sba_error err = { 0 };
	if (sba_engine_call(live.engine, &request, sba_until_in(60000), NULL, &err) < 0)
		fail_msg("%s", err.text);
}

static void run_committed(const char *name, char ret_id[SBA_ID_MAX])
{
	char image[64], whole[128];
	struct sba_error err = { 0 };
	snprintf(image, sizeof(image), "%s-member:1", live.prefix);
	snprintf(whole, sizeof(whole), "%s-%s", live.prefix, name);
	SBA_JSON json_t *spec =
		json_pack("{s:s, s:[ss]}", "Image", image, "Entrypoint", "sleep", "6062");
	if (sba_container_create(live.engine, whole, spec, sba_until_in(30000), ret_id, &err) < 0 ||
	    sba_container_start(live.engine, ret_id, sba_until_in(30000), &err) < 0)
		fail_msg("%s", err.text);
}

static void what_was_made_of_a_member_s_image_is_nobody_s(void **state)
{
	(void)state;
	char member[64], forged[SBA_ID_MAX], twin[SBA_ID_MAX];
	struct sba_sandbox_options o = kind();
	struct sba_error err = { 0 };
	int removed = -1;
	o.name = "parent";
	o.tag = "committed";
	fill(o, 1, 1);
	name_of_the_ready_one(member);
	struct sba_sandbox *s = claim(o);
	commit(s);
	run_committed("forged", forged);
	run_committed(member, twin);
	assert_int_equal(count((struct sba_list_options){ .all = true, .tag = o.tag }), 1);
	assert_int_equal(count((struct sba_list_options){ .name = "parent" }), 1);
	assert_int_equal(claim_code(o, &err), SBA_ENOTFOUND);
	live_remove(s);
	assert_int_equal(sba_gc(live.engine, live.prefix, &removed, &err), 0);
	assert_int_equal(removed, 0);
	SBA_JSON json_t *j = live_inspect(forged);
	SBA_JSON json_t *k = live_inspect(twin);
	assert_true(sba_json_bool(j, "State.Running", false));
	assert_true(sba_json_bool(k, "State.Running", false));
	/* A sandbox made of the image is none of the pool. */
	char image[64];
	snprintf(image, sizeof(image), "%s-member:1", live.prefix);
	s = live_sandbox((struct sba_sandbox_options){ .name = "own", .image = image });
	assert_int_equal(count((struct sba_list_options){ .name = "own" }), 1);
	sba_sandbox_close(s);
	assert_int_equal(sba_sandbox_open(live.engine, live.prefix, "own", &s, &err), 0);
	assert_string_equal(sba_sandbox_info(s)->pool, "");
	live_remove(s);
	live_remove_container(forged);
	live_remove_container(twin);
}

/* ---- many at once ---- */

enum { CLIENTS = 50, MEMBERS = 10, ID = 33 };

/* In a process of its own; what it has got is written in one piece: the id, or why not. */
static pid_t client(int out, const struct sba_sandbox_options *o)
{
	pid_t pid = fork();
	if (pid != 0)
		return pid;
	struct sba_engine *e = NULL;
	struct sba_sandbox *s = NULL;
	struct sba_error err = { 0 };
	char told[ID] = "";
	int rc = sba_engine_open(NULL, &e, &err);
	if (rc == 0)
		rc = sba_pool_claim(e, o, &s, &err);
	if (rc == 0)
		memcpy(told, sba_sandbox_info(s)->id, ID);
	else
		snprintf(told, sizeof(told), "%d %.24s", rc, err.text);
	_exit(write(out, told, sizeof(told)) != sizeof(told));
}

static void of_many_that_claim_each_has_its_own(void **state)
{
	(void)state;
	struct sba_sandbox_options o = kind();
	pid_t pids[CLIENTS];
	char told[CLIENTS][ID];
	int ends[2];
	size_t got = 0;
	fill(o, MEMBERS, MEMBERS);
	assert_int_equal(pipe(ends), 0);
	for (int i = 0; i < CLIENTS; i++)
		assert_true((pids[i] = client(ends[1], &o)) > 0);
	for (int i = 0; i < CLIENTS; i++)
		assert_int_equal(read(ends[0], told[i], ID), ID);
	for (int i = 0; i < CLIENTS; i++)
		waitpid(pids[i], NULL, 0);
	close(ends[0]);
	close(ends[1]);
	for (int i = 0; i < CLIENTS; i++) {
		if (told[i][0] == '-') {
			assert_int_equal(strtol(told[i], NULL, 10), SBA_ENOTFOUND);
			continue;
		}
		got++;
		for (int k = 0; k < i; k++)
			assert_string_not_equal(told[i], told[k]);
	}
	assert_int_equal(got, MEMBERS);
	assert_int_equal(ready(), 0);
	assert_int_equal(count((struct sba_list_options){ 0 }), MEMBERS);
	for (int i = 0; i < CLIENTS; i++) {
		struct sba_sandbox *s = NULL;
		if (told[i][0] != '-' &&
		    sba_sandbox_open(live.engine, live.prefix, told[i], &s, NULL) == 0)
			live_remove(s);
	}
}

struct filler {
	pthread_t thread;
	size_t made;
	int rc;
};

static void *fill_too(void *user)
{
	struct filler *f = user;
	struct sba_engine *e = NULL;
	struct sba_sandbox_options o = kind();
	f->rc = sba_engine_open(NULL, &e, NULL);
	if (f->rc == 0)
		f->rc = sba_pool_fill(e, &o, 2, &f->made, NULL);
	sba_engine_close(e);
	return NULL;
}

static void who_fill_at_once_do_not_make_too_many(void **state)
{
	(void)state;
	struct filler fillers[3] = { 0 };
	size_t made = 0;
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&fillers[i].thread, NULL, fill_too, &fillers[i]),
				 0);
	for (int i = 0; i < 3; i++) {
		pthread_join(fillers[i].thread, NULL);
		assert_int_equal(fillers[i].rc, 0);
		made += fillers[i].made;
	}
	assert_int_equal(made, 2);
	assert_int_equal(ready(), 2);
	drain(2);
}

/* ---- a claimer that dies ---- */

static void a_claimer_killed_at_any_moment_leaves_nothing_for_long(void **state)
{
	(void)state;
	struct sba_sandbox_options o = kind();
	o.keepalive_ms = 6000;
	for (int i = 0; i < 12; i++) {
		int ends[2], status;
		fill(o, 1, 1);
		assert_int_equal(pipe(ends), 0);
		pid_t pid = client(ends[1], &o);
		assert_true(pid > 0);
		usleep((useconds_t)(rand() % 60) * 1000);
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		close(ends[0]);
		close(ends[1]);
		/* Nobody gets what was another's, wherever that has stopped. */
		struct sba_sandbox *s = NULL;
		struct sba_error err;
		int rc = sba_pool_claim(live.engine, &o, &s, &err);
		assert_true(rc == 0 || rc == SBA_ENOTFOUND);
		if (rc == 0)
			live_remove(s);
	}
	live_await_no_containers(40000);
}

/* ---- the program ---- */

static void the_program_fills_shows_and_drains(void **state)
{
	(void)state;
	LIVE_CHILD env, name, first, again, ls, ps, up, drain_it;
	const char *image = live.image;
	RUN(&env, "pool", "fill", "claude", "--offline", "--image", image, "-e", "A=b");
	live_assert_says(&env, 2, "environment");
	RUN(&name, "pool", "fill", "claude", "--offline", "--name", "x");
	live_assert_says(&name, 2, "--name");
	RUN(&first, "pool", "fill", "claude", "--offline", "--image", image, "-n", "2");
	live_assert_says(&first, 0, "made 2");
	RUN(&again, "pool", "fill", "claude", "--offline", "--image", image, "-n", "2");
	live_assert_says(&again, 0, "enough");
	RUN(&ps, "-q", "ps");
	assert_int_equal(ps.out.len, 0);
	RUN(&up, "up", "claude", "--offline", "--image", image, "--name", "calm-fox");
	live_assert_says(&up, 0, NULL);
	assert_string_equal(up.out.data, "calm-fox\n");
	RUN(&ls, "--json", "pool", "ls");
	SBA_JSON json_t *lines = live_json_lines(&ls);
	assert_int_equal(json_array_size(lines), 1);
	assert_string_equal(sba_json_str(lines, "#0.state"), "ready");
	RUN(&drain_it, "--json", "pool", "drain", "claude");
	SBA_JSON json_t *told = live_json_lines(&drain_it);
	assert_int_equal(sba_json_int(told, "#0.removed", -1), 1);
	struct sba_sandbox *s = NULL;
	assert_int_equal(sba_sandbox_open(live.engine, live.prefix, "calm-fox", &s, NULL), 0);
	live_remove(s);
}

static bool two_are_ready(void *user)
{
	(void)user;
	return ready() == 2;
}

/* What fills again outlives the command that began it, and is known by its --config. */
static bool nobody_fills(void *user)
{
	const char *config = user;
	bool found = false;
	DIR *dir = opendir("/proc");
	const struct dirent *entry;
	assert_non_null(dir);
	while (!found && (entry = readdir(dir)) != NULL) {
		char path[300];
		struct sba_buf line = SBA_BUF_INIT(COMMAND_LINE_MAX);
		snprintf(path, sizeof(path), "/proc/%s/cmdline", entry->d_name);
		found = sba_read_file(path, COMMAND_LINE_MAX, &line, NULL) == 0 && line.len > 0 &&
			memmem(line.data, line.len, config, strlen(config));
		sba_buf_fini(&line);
	}
	closedir(dir);
	return !found;
}

static void what_the_configuration_wants_is_filled_again_after_a_claim(void **state)
{
	(void)state;
	LIVE_CHILD fill_all, up, other;
	char text[512];
	char path[128];
	snprintf(path, sizeof(path), "%s", live_path("config.json"));
	snprintf(text, sizeof(text),
		 "{\"offline\": true, \"image\": \"%s\", \"pool\": {\"mine\": "
		 "{\"agent\": \"claude\", \"count\": 2}}}",
		 live.image);
	live_write_file(path, text, strlen(text), 0600);
	RUN(&fill_all, "--config", path, "pool", "fill");
	live_assert_says(&fill_all, 0, "made 2 for mine");
	RUN(&up, "--config", path, "up", "claude", "--name", "claimed");
	live_assert_says(&up, 0, NULL);
	struct sba_sandbox *s = NULL;
	assert_int_equal(sba_sandbox_open(live.engine, live.prefix, "claimed", &s, NULL), 0);
	assert_string_not_equal(sba_sandbox_info(s)->pool, "");
	live_await(two_are_ready, NULL, 60000);
	live_remove(s);
	/* What differs is made, and takes none. */
	RUN(&other, "--config", path, "up", "claude", "--name", "other", "--memory", "256m");
	live_assert_says(&other, 0, NULL);
	assert_int_equal(sba_sandbox_open(live.engine, live.prefix, "other", &s, NULL), 0);
	assert_string_equal(sba_sandbox_info(s)->pool, "");
	live_remove(s);
	live_await(nobody_fills, path, 60000);
	drain(2);
}

/* ---- Podman ---- */

static void podman_is_refused_and_makes_one_instead(void **state)
{
	(void)state;
	struct sba_sandbox_options o = kind();
	struct sba_error err = { 0 };
	assert_int_equal(sba_pool_fill(live.engine, &o, 1, NULL, &err), SBA_EUNSUPPORTED);
	assert_non_null(strstr(err.text, "Podman"));
	assert_int_equal(claim_code(o, &err), SBA_ENOTFOUND);
	o.pool = true;
	live_remove(live_sandbox(o));
}

static bool on_podman(void)
{
	struct sba_engine *e = NULL;
	bool podman = sba_engine_open(NULL, &e, NULL) == 0 && sba_engine_podman(e);
	sba_engine_close(e);
	return podman;
}

int main(void)
{
	const struct CMUnitTest podman_tests[] = {
		LIVE_TEST(podman_is_refused_and_makes_one_instead),
		LIVE_TEST(live_nothing_is_left),
	};
	if (on_podman())
		return live_run(podman_tests, live_begin, live_end);
	const struct CMUnitTest tests[] = {
		LIVE_TEST(a_claimed_one_is_a_sandbox_as_any_other),
		LIVE_TEST(a_full_pool_is_left_as_it_is),
		LIVE_TEST(only_who_wants_the_same_gets_it),
		LIVE_TEST(who_finds_none_makes_one),
		LIVE_TEST(a_taken_name_costs_no_member),
		LIVE_TEST(a_claim_counts_to_the_limit_and_readiness_does_not),
		LIVE_TEST(nobody_uses_one_that_is_not_claimed),
		LIVE_TEST(no_environment_comes_into_the_pool),
		LIVE_TEST(what_has_ended_is_passed_over),
		LIVE_TEST(the_unused_end_themselves),
		LIVE_TEST(a_claimed_one_that_ended_is_told_by_its_name),
		LIVE_TEST(gc_leaves_the_ready_and_the_claimed),
		LIVE_TEST(what_was_made_of_a_member_s_image_is_nobody_s),
		LIVE_TEST(of_many_that_claim_each_has_its_own),
		LIVE_TEST(who_fill_at_once_do_not_make_too_many),
		LIVE_TEST(a_claimer_killed_at_any_moment_leaves_nothing_for_long),
		LIVE_TEST(the_program_fills_shows_and_drains),
		LIVE_TEST(what_the_configuration_wants_is_filled_again_after_a_claim),
		LIVE_TEST(live_nothing_is_left),
	};
	return live_run(tests, live_begin, live_end);
}
