/* SPDX-License-Identifier: MIT */
/*
 * What a sandbox may do and use, seen from inside where the engine's word is not
 * enough: capabilities, limits that bite and are told as such, the guest's file,
 * how many there may be.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/live_attack.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { MIB = 1024 * 1024, CREATORS = 12, ROOM = 5 };

/* CHOWN DAC_OVERRIDE FOWNER FSETID KILL SETGID SETUID: bits 0, 1, 3, 4, 5, 6, 7. */
#define ROOT_CAPS "00000000000000fb"
#define NO_CAPS   "0000000000000000"
/* And SETPCAP, bit 8. */
#define SESSION_CAPS "00000000000001fb"

static const char own_status[] = "for k in CapPrm CapEff CapBnd CapAmb NoNewPrivs Seccomp; do "
				 "sed -n \"s/^$k:\\t*/$k /p\" /proc/self/status; done";

static void a_user_has_no_capability_and_cannot_get_one(void **state)
{
	(void)state;
	struct sba_sandbox *s = live_sandbox((struct sba_sandbox_options){ .user = "1000:1000" });
	SBA_FREE char *said = live_sh_out(s, own_status);
	assert_string_equal(said, "CapPrm " NO_CAPS "\nCapEff " NO_CAPS "\nCapBnd " NO_CAPS
				  "\nCapAmb " NO_CAPS "\nNoNewPrivs 1\nSeccomp 2\n");
	live_remove(s);
}

static void root_has_what_package_managers_need_and_no_more(void **state)
{
	(void)state;
	struct sba_sandbox *s = live_sandbox((struct sba_sandbox_options){ .user = "root" });
	SBA_FREE char *said = live_sh_out(s, own_status);
	assert_string_equal(said, "CapPrm " ROOT_CAPS "\nCapEff " ROOT_CAPS "\nCapBnd " ROOT_CAPS
				  "\nCapAmb " NO_CAPS "\nNoNewPrivs 1\nSeccomp 2\n");
	SBA_FREE char *does = live_sh_out(
		s,
		"touch /tmp/f && chown 7:8 /tmp/f && chmod 4755 /tmp/f && stat -c '%u:%g %a' "
		"/tmp/f; mknod /tmp/d c 1 3 2>/dev/null && echo mknod; "
		"chroot / true 2>/dev/null && echo chroot; ip link add d0 type dummy 2>/dev/null "
		"&& echo link; echo 1 2>/dev/null >/proc/sys/kernel/panic && echo sysctl; "
		"hostname x 2>/dev/null && echo hostname; echo end");
	assert_string_equal(does, "7:8 4755\nend\n");
	live_remove(s);
}

/* Of all processes of the guest, by command and what they hold. */
static void the_guests_own_processes_have_no_more_than_they_need(void **state)
{
	(void)state;
	struct sba_sandbox *s = live_sandbox((struct sba_sandbox_options){ .user = "0:0" });
	SBA_FREE char *said = live_sh_out(
		s, "cd /proc; for p in [0-9]*; do w=$(tr '\\0' ' ' <$p/cmdline); case $w in "
		   "/.sandbox-agent/guest*) set -- $w; echo $2 $(sed -n 's/^CapPrm:\t*//p' "
		   "$p/status);; esac; done 2>/dev/null | sort -u");
	assert_string_equal(said,
			    "idle " NO_CAPS "\nreaper " NO_CAPS "\nsession " SESSION_CAPS "\n");
	live_remove(s);
}

static void another_user_of_a_roots_sandbox_gains_nothing(void **state)
{
	(void)state;
	struct sba_sandbox *s = live_sandbox((struct sba_sandbox_options){ .user = "0:0" });
	const char *const argv[] = { "sh", "-c", own_status, NULL };
	LIVE_RESULT r;
	live_exec(s, &(struct sba_exec_options){ .argv = argv, .user = "1000:1000" }, &r);
	live_assert_exit(&r, 0);
	assert_non_null(strstr(r.out.data, "CapPrm " NO_CAPS "\nCapEff " NO_CAPS));
	assert_non_null(strstr(r.out.data, "NoNewPrivs 1"));
	live_remove(s);
}

static void another_user_of_a_users_sandbox_gains_nothing(void **state)
{
	(void)state;
	struct sba_sandbox *s = live_sandbox((struct sba_sandbox_options){ .user = "1000:1000" });
	const char *const argv[] = { "sh", "-c", own_status, NULL };
	LIVE_RESULT r;
	live_exec(s, &(struct sba_exec_options){ .argv = argv, .user = "0:0" }, &r);
	live_assert_exit(&r, 0);
	assert_non_null(strstr(r.out.data, "CapEff " NO_CAPS));
	assert_non_null(strstr(r.out.data, "CapBnd " NO_CAPS));
	live_remove(s);
}

static bool has_word(const json_t *list, const char *word)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		if (strcmp(json_string_value(json_array_get(list, i)), word) == 0)
			return true;
	}
	return false;
}

static void the_engine_says_the_same(void **state)
{
	(void)state;
	static const char *const
		caps[] = { "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID",
			   "KILL",  "SETGID",       "SETUID", "SETPCAP" /* the session's */ };
	struct sba_sandbox *s = live_sandbox((struct sba_sandbox_options){ .user = "0:0" });
	char sidecar[SBA_ID_MAX];
	live_sidecar_of(s, sidecar);
	SBA_JSON json_t *main = live_inspect(sba_sandbox_container(s));
	SBA_JSON json_t *side = live_inspect(sidecar);
	const json_t *added = sba_json_get(main, "HostConfig.CapAdd");
	assert_int_equal(json_array_size(added), SBA_ARRAY_LEN(caps));
	for (size_t i = 0; i < SBA_ARRAY_LEN(caps); i++)
		assert_true(has_word(added, caps[i]));
	/* For three different ids; it gives them up before it looks at anything. */
	added = sba_json_get(side, "HostConfig.CapAdd");
	assert_int_equal(json_array_size(added), 2);
	assert_true(has_word(added, "SETUID") && has_word(added, "SETGID"));
	/* The guest, which root could replace otherwise. */
	const json_t *mounts = sba_json_get(main, "Mounts");
	assert_int_equal(json_array_size(mounts), 1);
	assert_string_equal(sba_json_str(json_array_get(mounts, 0), "Destination"),
			    "/.sandbox-agent");
	assert_false(sba_json_bool(json_array_get(mounts, 0), "RW", true));
	assert_int_equal(json_array_size(sba_json_get(main, "HostConfig.Devices")), 0);
	live_remove(s);
}

/* ---- limits ---- */

static void memory_has_an_end_that_is_told_as_such(void **state)
{
	(void)state;
	struct sba_sandbox *s = attacked_sandbox(
		(struct sba_sandbox_options){ .user = "1000:1000", .memory = 64 * MIB });
	const char *const argv[] = { ATTACKER, "eat", "256", NULL };
	LIVE_RESULT r;
	live_exec(s, &(struct sba_exec_options){ .argv = argv }, &r);
	assert_int_equal(r.rc, 0);
	assert_int_equal(r.exit.kind, SBA_OUT_OF_MEMORY);
	assert_int_equal(sba_exit_status(&r.exit), 137);
	/* The sandbox itself is none the worse. */
	SBA_FREE char *after = live_sh_out(s, "echo after");
	assert_string_equal(after, "after\n");
	live_remove(s);
}

/* The command went on: its own word counts, and the sandbox lives. */
static void a_child_that_ran_out_of_memory_does_not_end_its_parent(void **state)
{
	(void)state;
	struct sba_sandbox *s = attacked_sandbox(
		(struct sba_sandbox_options){ .user = "1000:1000", .memory = 64 * MIB });
	const char *const argv[] = { ATTACKER, "eat-child", "256", NULL };
	LIVE_RESULT r;
	live_exec(s, &(struct sba_exec_options){ .argv = argv }, &r);
	live_assert_exit(&r, 0);
	assert_int_equal(r.exit.kind, SBA_EXITED);
	assert_string_equal(r.out.data, "child killed\n");
	SBA_FREE char *count = live_sh_out(
		s, "cat /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control "
		   "2>/dev/null | sed -n 's/^oom_kill //p'");
	assert_string_equal(count, "1\n");
	live_remove(s);
}

static void memory_there_is_can_be_used(void **state)
{
	(void)state;
	struct sba_sandbox *s = attacked_sandbox(
		(struct sba_sandbox_options){ .user = "1000:1000", .memory = 256 * MIB });
	SBA_FREE char *out = ATTACK(s, "eat", "128");
	assert_string_equal(out, "ate\n");
	live_remove(s);
}

static void processes_have_an_end(void **state)
{
	(void)state;
	struct sba_sandbox *s =
		attacked_sandbox((struct sba_sandbox_options){ .user = "1000:1000", .pids = 40 });
	SBA_FREE char *out = ATTACK(s, "crowd", "100");
	long n = 0;
	assert_int_equal(sscanf(out, "crowd %ld", &n), 1);
	assert_in_range(n, 20, 40);
	live_remove(s);
}

/* On a machine with other work it takes a while until a tenth of a processor is to be had
 * within one period. */
static void cpu_time_has_an_end(void **state)
{
	(void)state;
	struct sba_sandbox *s = live_sandbox((struct sba_sandbox_options){ .cpus = 0.1 });
	SBA_FREE char *out =
		live_sh_out(s, "throttled() { cat /sys/fs/cgroup/cpu.stat "
			       "/sys/fs/cgroup/cpu/cpu.stat 2>/dev/null | "
			       "sed -n 's/^nr_throttled //p'; }; "
			       "timeout 50 sh -c 'while :; do :; done' & "
			       "while [ \"$(throttled)\" = 0 ] && kill -0 $! 2>/dev/null; do "
			       "sleep 0.1; done; throttled; kill $!");
	assert_true(strtol(out, NULL, 10) > 0);
	live_remove(s);
}

/* ---- the guest's file ---- */

static void a_user_can_neither_read_nor_replace_the_guest(void **state)
{
	(void)state;
	struct sba_sandbox *s = live_sandbox((struct sba_sandbox_options){ .user = "1000:1000" });
	SBA_FREE char *said = live_sh_out(
		s, "g=/.sandbox-agent/guest; stat -c '%u:%g %a' $g /.sandbox-agent; "
		   "exec 2>/dev/null; cat $g | head -c 1; cp $g /tmp/g && echo copied; "
		   "(echo x >$g) && echo written; rm -f $g && echo removed; "
		   "mv $g /tmp/g && echo moved; mv /.sandbox-agent /tmp/d && echo dir moved; "
		   "ln $g /tmp/l && echo linked; touch /.sandbox-agent/x && echo made; "
		   "chmod 777 $g && echo opened; echo end");
	assert_string_equal(said, "0:0 711\n0:0 755\nend\n");
	live_remove(s);
}

/* ---- refusals ---- */

static void a_workdir_under_proc_is_refused_however_it_is_written(void **state)
{
	(void)state;
	static const char *const dirs[] = { "/proc",        "/proc/self/fd/7", "//proc/self",
					    "/./proc/self", "/tmp/../proc/1",  "/proc/" };
	const char *const argv[] = { "pwd", NULL };
	struct sba_sandbox *s = live_sandbox((struct sba_sandbox_options){ 0 });
	for (size_t i = 0; i < SBA_ARRAY_LEN(dirs); i++) {
		struct sba_process *p = NULL;
		struct sba_error err = { 0 };
		const struct sba_exec_options o = { .argv = argv, .workdir = dirs[i] };
		int rc = sba_sandbox_exec(s, &o, &p, &err);
		if (rc != SBA_EREFUSED)
			fail_msg("'%s' was taken: %d", dirs[i], rc);
		assert_non_null(strstr(err.text, "/proc"));
	}
	live_remove(s);
}

/* The runtime would follow it before anything of ours could look. */
static void an_images_workdir_that_leads_under_proc_is_refused(void **state)
{
	(void)state;
	static const struct {
		const char *name, *workdir;
	} cases[] = { { "wd-link", "/wd" }, { "wd-way", "/self/fd/8" }, { "wd-two", "/two" } };
	for (size_t i = 0; i < SBA_ARRAY_LEN(cases); i++) {
		char lines[256];
		struct sba_sandbox *s = NULL;
		struct sba_error err = { 0 };
		snprintf(lines, sizeof(lines),
			 "RUN ln -s /proc/self/fd/8 /wd; ln -s wd /two; ln -s proc/self /self\n"
			 "WORKDIR %s",
			 cases[i].workdir);
		const struct sba_sandbox_options o = {
			.prefix = live.prefix, .image = live_image(cases[i].name, lines, NULL, NULL)
		};
		assert_int_equal(sba_sandbox_create(live.engine, &o, &s, &err), SBA_EREFUSED);
		assert_non_null(strstr(err.text, "under /proc"));
		assert_int_equal(live_container_count(), 0);
	}
}

static void a_workdir_that_is_a_link_is_entered_unless_it_leads_under_proc(void **state)
{
	(void)state;
	const char *const argv[] = { "pwd", NULL };
	struct sba_sandbox *s = live_sandbox((struct sba_sandbox_options){ 0 });
	free(live_sh_out(s, "ln -s /proc/self /tmp/in; ln -s /usr/lib /tmp/out"));
	LIVE_RESULT in = { 0 }, out = { 0 };
	live_exec(s, &(struct sba_exec_options){ .argv = argv, .workdir = "/tmp/in" }, &in);
	assert_int_equal(in.rc, 0);
	assert_int_equal(in.exit.kind, SBA_NO_WORKDIR);
	assert_int_equal(in.exit.number, EACCES);
	live_exec(s, &(struct sba_exec_options){ .argv = argv, .workdir = "/tmp/out" }, &out);
	live_assert_exit(&out, 0);
	live_remove(s);
}

static void runtimes_that_cannot_share_the_process_namespace_are_refused(void **state)
{
	(void)state;
	static const char *const names[] = { "runsc", "kata", "kata-runtime",
					     "io.containerd.kata.v2" };
	for (size_t i = 0; i < SBA_ARRAY_LEN(names); i++) {
		struct sba_sandbox *s = NULL;
		struct sba_error err = { 0 };
		struct sba_sandbox_options o = { .prefix = live.prefix,
						 .image = live.image,
						 .runtime = names[i] };
		int rc = sba_sandbox_create(live.engine, &o, &s, &err);
		if (rc != SBA_EUNSUPPORTED && rc != SBA_EREFUSED)
			fail_msg("'%s': %d %s", names[i], rc, err.text);
		assert_non_null(strstr(err.text, names[i]));
		assert_int_equal(live_container_count(), 0);
	}
}

/* ---- room ---- */

struct creator {
	pthread_t thread;
	struct sba_sandbox *sandbox;
	int rc;
	struct sba_error err;
};

static void *create_one(void *user)
{
	struct creator *c = user;
	const struct sba_sandbox_options o = { .prefix = live.prefix,
					       .image = live.image,
					       .keepalive_ms = 60 * 1000,
					       .max_sandboxes = ROOM };
	c->rc = sba_sandbox_create(live.engine, &o, &c->sandbox, &c->err);
	return NULL;
}

static void of_twelve_at_once_exactly_as_many_stay_as_there_is_room_for(void **state)
{
	(void)state;
	static struct creator creators[CREATORS];
	int made = 0;
	for (size_t i = 0; i < CREATORS; i++)
		assert_int_equal(
			pthread_create(&creators[i].thread, NULL, create_one, &creators[i]), 0);
	for (size_t i = 0; i < CREATORS; i++)
		pthread_join(creators[i].thread, NULL);
	for (size_t i = 0; i < CREATORS; i++) {
		if (creators[i].rc != 0 && creators[i].rc != SBA_ELIMIT)
			fail_msg("%d: %s", creators[i].rc, creators[i].err.text);
		made += creators[i].rc == 0;
	}
	assert_int_equal(made, ROOM);
	assert_int_equal(live_container_count(), 2 * ROOM);
	for (size_t i = 0; i < CREATORS; i++) {
		if (creators[i].rc == 0)
			live_remove(creators[i].sandbox);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE_TEST(a_user_has_no_capability_and_cannot_get_one),
		LIVE_TEST(root_has_what_package_managers_need_and_no_more),
		LIVE_TEST(the_guests_own_processes_have_no_more_than_they_need),
		LIVE_TEST(another_user_of_a_users_sandbox_gains_nothing),
		LIVE_TEST(another_user_of_a_roots_sandbox_gains_nothing),
		LIVE_TEST(the_engine_says_the_same),
		LIVE_TEST(memory_has_an_end_that_is_told_as_such),
		LIVE_TEST(a_child_that_ran_out_of_memory_does_not_end_its_parent),
		LIVE_TEST(memory_there_is_can_be_used),
		LIVE_TEST(processes_have_an_end),
		LIVE_TEST(cpu_time_has_an_end),
		LIVE_TEST(a_user_can_neither_read_nor_replace_the_guest),
		LIVE_TEST(a_workdir_under_proc_is_refused_however_it_is_written),
		LIVE_TEST(an_images_workdir_that_leads_under_proc_is_refused),
		LIVE_TEST(a_workdir_that_is_a_link_is_entered_unless_it_leads_under_proc),
		LIVE_TEST(runtimes_that_cannot_share_the_process_namespace_are_refused),
		LIVE_TEST(of_twelve_at_once_exactly_as_many_stay_as_there_is_room_for),
		LIVE_TEST(live_nothing_is_left),
	};
	return live_run(tests, live_begin, live_end);
}
