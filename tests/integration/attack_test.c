/* SPDX-License-Identifier: MIT */
/*
 * Hostile code against what keeps it: nothing that it does may blind the
 * sidecar or keep the sandbox beyond its keepalive, and the reason that is told
 * afterwards is the true one. Each attack is made as the user of our images, as
 * root with what package managers need, and as root with the engine's default
 * capabilities in a container of its own beside it.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "channel/protocol.h"
#include "support/live_attack.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	KEEPALIVE_MS = 3000,
	/* For a scan to see it, for the kernel to end what is inside, for the engine
	 * to say so, on a machine that has other work. */
	LAG_MS = 30 * 1000,
	RACES = 20,
	BOMBS_S = 300, /* eight of them, one after the other */
};

struct profile {
	const char *word;
	const char *user; /* of the sandbox */
	bool beside;      /* attacks from a container that joined it */
};
static const struct profile profiles[] = {
	{ "user", "1000:1000", false },
	{ "root", "0:0", false },
	{ "beside", "1000:1000", true },
};

struct attack {
	const char *const *argv;
	const char *reason;                                      /* why the sandbox ends */
	void (*check)(const struct profile *p, const char *out); /* may be NULL */
	int64_t pids;
	double cpus;
	bool held; /* by a handle that stays open: it must not count */
};

static struct sba_sandbox *box(const struct profile *p, const struct attack *a)
{
	static unsigned n;
	char name[32];
	snprintf(name, sizeof(name), "%s-%u", p->word, n++);
	return attacked_sandbox((struct sba_sandbox_options){ .name = name,
							      .user = p->user,
							      .pids = a->pids,
							      .cpus = a->cpus,
							      .keepalive_ms = KEEPALIVE_MS });
}

static char *make_attack(const struct profile *p, const struct attack *a, struct sba_sandbox *s)
{
	char beside[SBA_ID_MAX];
	if (!p->beside)
		return attack_run(s, a->argv, a->held ? 1000 : 20000);
	attack_join(s, beside);
	char *out = attack_raw(beside, a->argv);
	live_remove_container(beside);
	return out;
}

/* All of them at once: their keepalives pass side by side. */
static void attack_from_everywhere(const struct attack *a)
{
	struct sba_sandbox *held[SBA_ARRAY_LEN(profiles)];
	char names[SBA_ARRAY_LEN(profiles)][ATTACKED_NAME_MAX];
	for (size_t i = 0; i < SBA_ARRAY_LEN(profiles); i++) {
		held[i] = box(&profiles[i], a);
		snprintf(names[i], sizeof(names[i]), "%s", sba_sandbox_info(held[i])->name);
		SBA_FREE char *out = make_attack(&profiles[i], a, held[i]);
		if (a->check)
			a->check(&profiles[i], out);
		if (!a->held)
			sba_sandbox_close(held[i]);
	}
	const struct attacked all = { names, SBA_ARRAY_LEN(profiles), a->reason };
	attacked_all_end(&all, KEEPALIVE_MS + LAG_MS);
	for (size_t i = 0; a->held && i < SBA_ARRAY_LEN(profiles); i++)
		sba_sandbox_close(held[i]);
}

#define VERBS(...) ((const char *const[]){ ATTACKER, __VA_ARGS__, NULL })

/* ---- PID 1 and the guest's own ---- */

static void shows_nothing(const struct profile *p, const char *out)
{
	if (strchr(out, ':') || !strstr(out, "looked at"))
		fail_msg("%s: %s", p->word, out);
}

static void the_keepers_cannot_be_signalled_or_looked_into(void **state)
{
	(void)state;
	attack_from_everywhere(&(struct attack){
		.argv = VERBS("signals", "look"), .reason = "keepalive", .check = shows_nothing });
}

static void limits_nobody(const struct profile *p, const char *out)
{
	if (*out)
		fail_msg("%s: %s", p->word, out);
}

/* With three descriptors at most the sidecar could not read /proc any more. */
static void the_sidecar_cannot_be_limited_whatever_ids_one_takes(void **state)
{
	(void)state;
	attack_from_everywhere(&(struct attack){
		.argv = VERBS("limit"), .reason = "keepalive", .check = limits_nobody });
}

static void stopped_keepers_keep_nothing(void **state)
{
	(void)state;
	attack_from_everywhere(&(struct attack){
		.argv = VERBS("stop-keepers"), .reason = "keepalive", .held = true });
}

static void a_stopped_main_process_keeps_nothing(void **state)
{
	(void)state;
	attack_from_everywhere(
		&(struct attack){ .argv = VERBS("stop-main"), .reason = "keepalive" });
}

static void struck_one(const struct profile *p, const char *out)
{
	if (strcmp(out, "struck 1\n") != 0)
		fail_msg("%s: %s", p->word, out);
}

static void a_killed_main_process_ends_the_sandbox_at_once(void **state)
{
	(void)state;
	const struct attack a = { .argv = VERBS("kill-main", "pause"),
				  .reason = "main process gone" };
	for (size_t i = 0; i < 2; i++) {
		struct sba_sandbox *s = box(&profiles[i], &a);
		char name[32];
		struct sba_exit end;
		struct sba_error err = { 0 };
		snprintf(name, sizeof(name), "%s", sba_sandbox_info(s)->name);
		/* The sidecar must have seen it alive. */
		free(live_sh_out(s, "sleep 0.6"));
		struct sba_process *p = attack_start(s, a.argv);
		assert_int_equal(sba_process_wait(p, LAG_MS, &end, &err), SBA_EBROKEN);
		if (!strstr(err.text, "main process was killed"))
			fail_msg("%s", err.text);
		sba_process_free(p);
		sba_sandbox_close(s);
		attacked_ends(name, a.reason, LAG_MS);
	}
}

static void a_killed_main_process_is_seen_from_beside(void **state)
{
	(void)state;
	const struct attack a = { .argv = VERBS("kill-main") };
	struct sba_sandbox *s = box(&profiles[2], &a);
	char beside[SBA_ID_MAX], name[32];
	snprintf(name, sizeof(name), "%s", sba_sandbox_info(s)->name);
	attack_join(s, beside);
	free(live_sh_out(s, "sleep 0.6"));
	SBA_FREE char *out = attack_raw(beside, a.argv);
	struck_one(&profiles[2], out);
	sba_sandbox_close(s);
	attacked_ends(name, "main process gone", LAG_MS);
	live_await_no_containers(LAG_MS);
}

static void race_with_sessions(const struct profile *profile)
{
	const struct attack a = { .argv = VERBS("race", "4000") };
	struct sba_sandbox *s = box(profile, &a);
	struct sba_error err = { 0 };
	struct sba_process *p = attack_start(s, a.argv);
	for (int i = 0; i < RACES; i++) {
		struct sba_sandbox *other = NULL;
		assert_int_equal(sba_sandbox_open(live.engine, live.prefix,
						  sba_sandbox_info(s)->name, &other, &err),
				 0);
		free(live_sh_out(other, "true"));
		sba_sandbox_close(other);
	}
	enum sba_output which;
	const char *data;
	ssize_t n = sba_process_read(p, 20000, &which, &data, &err);
	assert_true(n > 0);
	SBA_FREE char *said = strndup(data, (size_t)n);
	assert_string_equal(said, "raced well\n");
	sba_process_free(p);
	live_remove(s);
}

/* Between execve() and prctl() a process could be traced; but who may not read
 * its program never can, nor root while it lacks a capability of the other's. */
static void a_session_cannot_be_caught_at_its_start(void **state)
{
	(void)state;
	race_with_sessions(&profiles[0]);
	race_with_sessions(&profiles[1]);
}

/* Whose file it is, what is in it, and that the engine still runs it. */
static void the_guest_cannot_be_replaced(void **state)
{
	(void)state;
	static const char look[] = "stat -c '%u:%g %a %s' /.sandbox-agent/guest /.sandbox-agent; "
				   "sha256sum /.sandbox-agent/guest 2>/dev/null; echo end";
	for (size_t i = 0; i < 2; i++) {
		const struct attack a = { .argv = VERBS("replace") };
		struct sba_sandbox *s = box(&profiles[i], &a), *again = NULL;
		struct sba_error err = { 0 };
		SBA_FREE char *before = live_sh_out(s, look);
		SBA_FREE char *out = make_attack(&profiles[i], &a, s);
		assert_string_equal(out, "tried\n");
		assert_int_equal(sba_sandbox_open(live.engine, live.prefix,
						  sba_sandbox_info(s)->name, &again, &err),
				 0);
		SBA_FREE char *after = live_sh_out(again, look);
		assert_string_equal(after, before);
		sba_sandbox_close(again);
		live_remove(s);
	}
}

/* ---- what a scope keeps them from ---- */

static char *scoped_attack(struct sba_sandbox *s, const char *const *argv)
{
	struct sba_process *p = NULL;
	struct sba_error err = { 0 };
	if (sba_sandbox_exec(s, &(struct sba_exec_options){ .argv = argv }, &p, &err) < 0)
		fail_msg("%s", err.text);
	return attack_words(p, 10000);
}

static bool kernel_has_scopes(struct sba_sandbox *s)
{
	SBA_FREE char *out = live_sh_out(s, "kill -0 $PPID 2>/dev/null && echo old; true");
	return *out == '\0';
}

static void reach_for_others(struct sba_sandbox *s)
{
	SBA_FREE char *keepers =
		scoped_attack(s, VERBS("stop-keepers", "kill-keepers", "stop-main", "kill-main"));
	assert_string_equal(keepers, "struck 0\nstruck 0\nstruck 0\nstruck 0\n");
	/* Nor what another command of the same user has started. */
	const char *const argv[] = { "sleep", "6071", NULL };
	const struct sba_exec_options o = { .argv = argv };
	struct sba_process *other = NULL;
	struct sba_exit end;
	assert_int_equal(sba_sandbox_exec(s, &o, &other, NULL), 0);
	live_await_inside(sba_sandbox_container(s), "sleep 6071", true, 10000);
	SBA_FREE char *held = scoped_attack(s, VERBS("hold", "sleep"));
	assert_string_equal(held, "held 0\n");
	free(live_sh_out(s, "kill -9 -1; true"));
	assert_int_equal(sba_process_wait(other, 500, &end, NULL), SBA_ETIMEOUT);
	sba_process_free(other);
}

static void a_command_reaches_no_process_but_its_own(void **state)
{
	(void)state;
	const struct attack none = { 0 };
	bool scopes = true;
	for (size_t i = 0; i < 2 && scopes; i++) {
		struct sba_sandbox *s = box(&profiles[i], &none);
		scopes = kernel_has_scopes(s);
		if (scopes)
			reach_for_others(s);
		live_remove(s);
	}
	if (!scopes) {
		print_message("SKIPPED: the kernel has no signal scopes\n");
		skip();
	}
}

/* ---- processes that stay ---- */

static void siblings_of_a_command_keep_nothing(void **state)
{
	(void)state;
	attack_from_everywhere(&(struct attack){ .argv = VERBS("clone-parent", "kill-keepers"),
						 .reason = "keepalive" });
}

/* Its parent is outside, as a supervisor's is: no scan tells them apart. */
static void a_sibling_of_a_foreign_exec_is_bounded_by_the_lifetime(void **state)
{
	(void)state;
	struct sba_sandbox *s =
		attacked_sandbox((struct sba_sandbox_options){ .name = "foreign",
							       .user = "1000:1000",
							       .keepalive_ms = 1000,
							       .max_lifetime_ms = 5000 });
	SBA_FREE char *out = attack_raw(sba_sandbox_container(s), VERBS("clone-parent"));
	assert_string_equal(out, "cloned\n");
	sba_sandbox_close(s);
	attacked_ends("foreign", "max-lifetime", 5000 + LAG_MS);
}

static void a_name_full_of_parentheses_keeps_nothing(void **state)
{
	(void)state;
	attack_from_everywhere(&(struct attack){
		.argv = VERBS("orphan", ") 0 (x", "orphan", ") S 0 0 (", "kill-keepers"),
		.reason = "keepalive" });
}

/* So many processes take their time to die, and an engine that has other work
 * forgets its events by then: this one waits for the sidecar's own word. */
struct last_word {
	pthread_t thread;
	char path[SBA_ID_MAX + 32];
	int64_t code; /* -1: none came */
};

static void *await_last_word(void *user)
{
	struct last_word *w = user;
	SBA_JSON json_t *j = NULL;
	const struct sba_request request = { .method = "POST", .path = w->path, .tried = "wait" };
	struct sba_until until = sba_until_in(KEEPALIVE_MS + 2 * LAG_MS);
	if (sba_engine_call(live.engine, &request, until, &j, NULL) == 0)
		w->code = sba_json_int(j, "StatusCode", -1);
	return NULL;
}

static void a_crowd_hides_nothing(const struct profile *of)
{
	const struct attack a = { .argv = VERBS("crowd", "10000", "pause"), .pids = 11000 };
	struct sba_sandbox *s = box(of, &a);
	struct last_word last = { .code = -1 };
	char sidecar[SBA_ID_MAX];
	enum sba_output which;
	const char *data;
	struct sba_error err = { 0 };
	live_sidecar_of(s, sidecar);
	snprintf(last.path, sizeof(last.path), "/containers/%s/wait", sidecar);
	assert_int_equal(pthread_create(&last.thread, NULL, await_last_word, &last), 0);
	struct sba_process *p = attack_start(s, a.argv);
	ssize_t n = sba_process_read(p, 40000, &which, &data, &err);
	if (n < 0)
		fail_msg("%s", err.text);
	SBA_FREE char *said = strndup(data, (size_t)n);
	assert_string_equal(said, "crowd 10000\n");
	free(ATTACK(s, "kill-keepers"));
	sba_process_free(p);
	sba_sandbox_close(s);
	pthread_join(last.thread, NULL);
	assert_int_equal(last.code, SBA_REAPER_KEEPALIVE);
	live_await_no_containers(LAG_MS);
}

/* What is beside a sandbox has no limit of ours: a crowd there would be the machine's. */
static void ten_thousand_processes_hide_nothing(void **state)
{
	(void)state;
	a_crowd_hides_nothing(&profiles[0]);
}

static void ten_thousand_processes_of_root_hide_nothing(void **state)
{
	(void)state;
	a_crowd_hides_nothing(&profiles[1]);
}

/* A dead process that another one traces is not gone for its parent: its command
 * cannot be ended, so all of its sandbox is. */
static void what_cannot_be_ended_ends_its_sandbox(void **state)
{
	(void)state;
	const struct attack none = { 0 };
	struct sba_sandbox *s = box(&profiles[0], &none);
	const char *const argv[] = { "sleep", "6081", NULL };
	struct sba_process *held = NULL;
	struct sba_error err = { 0 };
	struct sba_exit end;
	char name[32];
	snprintf(name, sizeof(name), "%s", sba_sandbox_info(s)->name);
	const struct sba_exec_options o = { .argv = argv,
					    .timeout_ms = 3000,
					    .signal_others = true };
	assert_int_equal(sba_sandbox_exec(s, &o, &held, &err), 0);
	live_await_inside(sba_sandbox_container(s), "sleep 6081", true, 10000);
	struct sba_process *holder = attack_start(s, VERBS("hold", "sleep", "pause"));
	assert_int_equal(sba_process_wait(held, 2 * LAG_MS, &end, &err), SBA_EBROKEN);
	if (!strstr(err.text, "1 of its processes could not be ended"))
		fail_msg("%s", err.text);
	sba_process_free(held);
	sba_process_free(holder);
	sba_sandbox_close(s);
	attacked_ends(name, "main process gone", LAG_MS);
}

/* ---- bombs ---- */

static void bomb_until_deadline(const struct profile *p, const char *kind, bool signal_others)
{
	const struct attack a = { .argv = VERBS(kind, "pause"), .pids = 200, .cpus = 0.5 };
	struct sba_sandbox *s = box(p, &a);
	struct sba_process *bomb = NULL;
	struct sba_error err = { 0 };
	struct sba_exit end;
	const struct sba_exec_options o = { .argv = a.argv,
					    .timeout_ms = 1000,
					    .signal_others = signal_others };
	assert_int_equal(sba_sandbox_exec(s, &o, &bomb, &err), 0);
	if (sba_process_wait(bomb, 2 * LAG_MS, &end, &err) < 0)
		fail_msg("%s %s%s: %s", p->word, kind, signal_others ? " in passes" : "", err.text);
	assert_int_equal(end.kind, SBA_TIMED_OUT);
	sba_process_free(bomb);
	SBA_FREE char *left =
		live_sh_out(s, "cat /proc/[0-9]*/comm 2>/dev/null | grep -c attacker; true");
	assert_string_equal(left, "0\n");
	live_remove(s);
}

static void bombs_end_at_their_deadline_and_leave_a_sandbox_that_works(void **state)
{
	(void)state;
	static const char *const kinds[] = { "bomb", "bomb-sessions", "comets" };
	alarm(BOMBS_S);
	for (size_t i = 0; i < SBA_ARRAY_LEN(kinds); i++) {
		bomb_until_deadline(&profiles[0], kinds[i], false);
		bomb_until_deadline(&profiles[1], kinds[i], false);
	}
	/* As on kernels without scopes: in passes. */
	bomb_until_deadline(&profiles[0], "bomb", true);
	bomb_until_deadline(&profiles[0], "bomb-sessions", true);
}

/* Its command has ended, and only its client's channel holds it yet: it goes long
 * before the keepalive. */
static void a_bomb_left_behind_ends_with_its_client(void **state)
{
	(void)state;
	struct sba_sandbox *again = NULL;
	struct sba_error err = { 0 };
	struct sba_sandbox *s = attacked_sandbox((struct sba_sandbox_options){
		.name = "left", .user = "1000:1000", .pids = 200, .cpus = 0.5 });
	SBA_FREE char *out = attack_run(s, VERBS("bomb-sessions"), 10000);
	assert_string_equal(out, "lit\n");
	sba_sandbox_close(s);
	assert_int_equal(sba_sandbox_open(live.engine, live.prefix, "left", &again, &err), 0);
	live_await_inside(sba_sandbox_container(again), "attacker", false, 2 * LAG_MS);
	live_remove(again);
}

/* ---- bombs whose session is gone ---- */

static void bomb(const char *kind)
{
	attack_from_everywhere(&(struct attack){ .argv = VERBS(kind, "kill-keepers"),
						 .reason = "keepalive",
						 .pids = 200,
						 .cpus = 0.5 });
}

static void a_fork_bomb_keeps_nothing(void **state)
{
	(void)state;
	bomb("bomb");
}

static void a_bomb_of_sessions_keeps_nothing(void **state)
{
	(void)state;
	bomb("bomb-sessions");
}

static void comets_keep_nothing(void **state)
{
	(void)state;
	bomb("comets");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE_TEST(the_keepers_cannot_be_signalled_or_looked_into),
		LIVE_TEST(the_sidecar_cannot_be_limited_whatever_ids_one_takes),
		LIVE_TEST(stopped_keepers_keep_nothing),
		LIVE_TEST(a_stopped_main_process_keeps_nothing),
		LIVE_TEST(a_killed_main_process_ends_the_sandbox_at_once),
		LIVE_TEST(a_killed_main_process_is_seen_from_beside),
		LIVE_TEST(a_session_cannot_be_caught_at_its_start),
		LIVE_TEST(the_guest_cannot_be_replaced),
		LIVE_TEST(a_command_reaches_no_process_but_its_own),
		LIVE_TEST(siblings_of_a_command_keep_nothing),
		LIVE_TEST(a_sibling_of_a_foreign_exec_is_bounded_by_the_lifetime),
		LIVE_TEST(a_name_full_of_parentheses_keeps_nothing),
		LIVE_TEST(ten_thousand_processes_hide_nothing),
		LIVE_TEST(ten_thousand_processes_of_root_hide_nothing),
		LIVE_TEST(what_cannot_be_ended_ends_its_sandbox),
		LIVE_TEST(bombs_end_at_their_deadline_and_leave_a_sandbox_that_works),
		LIVE_TEST(a_bomb_left_behind_ends_with_its_client),
		LIVE_TEST(a_fork_bomb_keeps_nothing),
		LIVE_TEST(a_bomb_of_sessions_keeps_nothing),
		LIVE_TEST(comets_keep_nothing),
		LIVE_TEST(live_nothing_is_left),
	};
	return live_run(tests, live_begin, live_end);
}
