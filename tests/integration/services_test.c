/* SPDX-License-Identifier: MIT */
/*
 * The program with sandboxes of services: what a user types, against the services as they
 * were recorded (support/fake_remote.h).
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/fake_remote.h"
#include "support/live.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct fake_remote fake;
static const char *const services[] = { "opensandbox", "e2b" };
#define FOR_EACH_SERVICE(i) for (size_t i = 0; i < SBA_ARRAY_LEN(services); i++)

/* Its own home each time: an agent that moved in stays in a home. */
static int begin(void **state)
{
	static unsigned n;
	char home[96], url[96], ws[120];
	(void)live_test_begin(state);
	snprintf(home, sizeof(home), "%s/home-%u", live.dir, n++);
	snprintf(ws, sizeof(ws), "%s/ws", home);
	assert_int_equal(mkdir(home, 0700), 0);
	fake_remote_start(&fake, home);
	snprintf(url, sizeof(url), "%s/v1", fake.url);
	setenv("OPEN_SANDBOX_API_BASE", url, 1);
	setenv("OPEN_SANDBOX_API_KEY", FAKE_KEY, 1);
	setenv("E2B_API_URL", fake.url, 1);
	setenv("E2B_SANDBOX_URL", fake.url, 1);
	setenv("E2B_API_KEY", FAKE_KEY, 1);
	setenv("SANDBOX_AGENT_SERVICE_WORKDIR", ws, 1);
	return 0;
}

static int end(void **state)
{
	(void)state;
	fake_remote_stop(&fake);
	return 0;
}

#define SERVICE_TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

static void make(const char *service, char *ret, size_t size)
{
	LIVE_CHILD c;
	RUN(&c, "create", "--backend", service, "--image", "debian", "--name", "fox");
	live_assert_says(&c, 0, "");
	snprintf(ret, size, "%s/fox", service);
	assert_memory_equal(c.out.data, ret, strlen(ret));
}

static void one_that_is_made_is_used_listed_and_removed_by_its_name(void **state)
{
	(void)state;
	FOR_EACH_SERVICE(i)
	{
		char name[40], inside[80];
		make(services[i], name, sizeof(name));
		snprintf(inside, sizeof(inside), "%s:data", name);
		LIVE_CHILD exec, in, out, ps, rm, none;
		live_write_file(live_path("note"), "there and back\n", 15, 0644);
		RUN(&exec, "exec", name, "--", "sh", "-c", "echo out; exit 3");
		assert_string_equal(exec.out.data, "out\n");
		assert_int_equal(exec.status, 3);
		RUN(&in, "cp", live_path("note"), inside);
		live_assert_says(&in, 0, "");
		RUN(&out, "read", name, "data");
		assert_string_equal(out.out.data, "there and back\n");
		RUN(&ps, "ps", "--backend", services[i], "-q");
		assert_memory_equal(ps.out.data, name, strlen(name));
		RUN(&rm, "rm", name);
		live_assert_says(&rm, 0, "");
		assert_int_equal(fake_remote_count(&fake), 0);
		RUN(&none, "exec", name, "true");
		live_assert_says(&none, 125, "there is no sandbox 'fox'");
	}
}

static void a_run_leaves_nothing_there_and_brings_its_answer(void **state)
{
	LIVE_CHILD c;
	(void)state;
	RUN(&c, "run", "command", "--backend", "opensandbox", "--image", "debian", "hello", "--",
	    "tr", "a-z", "A-Z");
	live_assert_says(&c, 0, "");
	assert_string_equal(c.out.data, "HELLO\n");
	assert_int_equal(fake.created, 1);
	assert_int_equal(fake_remote_count(&fake), 0);
}

static void a_run_on_a_copy_there_is_applied_here(void **state)
{
	LIVE_CHILD c;
	char file[200];
	(void)state;
	(void)mkdir(live_path("project"), 0700);
	snprintf(file, sizeof(file), "%s/a", live_path("project"));
	live_write_file(file, "one\n", 4, 0644);
	RUN(&c, "run", "command", "--backend", "opensandbox", "--image", "debian", "-w",
	    live_path("project"), "--apply", "two", "--", "sh", "-c",
	    "cat >>a; echo new >b; echo done");
	live_assert_says(&c, 0, "applied");
	SBA_FREE char *text = live_read_file(file, NULL);
	assert_string_equal(text, "one\ntwo");
	snprintf(file, sizeof(file), "%s/b", live_path("project"));
	assert_int_equal(access(file, F_OK), 0);
	assert_int_equal(fake_remote_count(&fake), 0);
}

static void a_run_that_fails_there_keeps_what_it_has_done(void **state)
{
	LIVE_CHILD c;
	(void)state;
	(void)mkdir(live_path("project"), 0700);
	RUN(&c, "run", "command", "--backend", "opensandbox", "--image", "debian", "-w",
	    live_path("project"), "x", "--", "sh", "-c", "echo half >made; exit 3");
	live_assert_says(&c, 1, "take:  sandbox-agent cp opensandbox/");
	assert_int_equal(fake_remote_count(&fake), 1);
}

/* The scripted model's address is one inside, which only the channel can have opened. */
static void an_agent_reaches_its_model_where_the_guest_is_carried(void **state)
{
	LIVE_CHILD up, chat, rm;
	(void)state;
	RUN(&up, "up", "command", "--backend", "e2b", "--name", "fox", "--offline", "--", "sh",
	    "-c",
	    "cat >/dev/null; a=${OPENAI_BASE_URL#http://}; a=${a%/v1}; "
	    "exec bash -c \"exec 3<>/dev/tcp/${a%:*}/${a#*:}; printf 'GET /v1/models "
	    "HTTP/1.0\\r\\n\\r\\n' >&3; head -n 1 <&3\"");
	live_assert_says(&up, 0, "");
	RUN(&chat, "chat", "e2b/fox", "hi");
	live_assert_says(&chat, 0, "");
	assert_non_null(strstr(chat.out.data, "HTTP/1."));
	RUN(&rm, "rm", "e2b/fox");
	live_assert_says(&rm, 0, "");
}

static void what_cannot_be_is_refused_by_the_capabilitys_name(void **state)
{
	LIVE_CHILD local, os, tty, model;
	char name[40];
	(void)state;
	RUN(&local, "create", "--backend", "local");
	live_assert_says(&local, 1, "'detach'");
	make("opensandbox", name, sizeof(name));
	RUN(&os, "port", name, "80");
	live_assert_says(&os, 1, "'port'");
	RUN(&tty, "exec", "-t", name, "true");
	live_assert_says(&tty, 125, "'tty'");
	RUN(&model, "run", "command", "--backend", "opensandbox", "--image", "x", "--offline", "hi",
	    "--", "cat");
	live_assert_says(&model, 1, "'host_url'");
	assert_int_equal(fake_remote_count(&fake), 1);
}

static void a_key_comes_from_a_file_too_and_is_never_shown(void **state)
{
	LIVE_CHILD good, bad, unset;
	const char *path = live_path("key");
	(void)state;
	unsetenv("E2B_API_KEY");
	RUN(&unset, "ps", "--backend", "e2b");
	live_assert_says(&unset, 2, "E2B_API_KEY is not set");
	live_write_file(path, FAKE_KEY "\n", strlen(FAKE_KEY) + 1, 0600);
	setenv("SANDBOX_AGENT_E2B_API_KEY_FILE", path, 1);
	RUN(&good, "ps", "--backend", "e2b");
	live_assert_says(&good, 0, "");
	live_write_file(path, "not-this-key-0123456789\n", 24, 0600);
	RUN(&bad, "ps", "--backend", "e2b");
	unsetenv("SANDBOX_AGENT_E2B_API_KEY_FILE");
	live_assert_says(&bad, 3, path);
	assert_null(strstr(bad.err.data, "not-this-key"));
}

/* As their own clients have it. */
static void a_domain_in_the_environment_is_as_good_as_a_url(void **state)
{
	LIVE_CHILD os, e2b;
	(void)state;
	unsetenv("OPEN_SANDBOX_API_BASE");
	unsetenv("E2B_API_URL");
	setenv("OPEN_SANDBOX_DOMAIN", fake.url + strlen("http://"), 1);
	setenv("E2B_DOMAIN", fake.url, 1);
	RUN(&os, "ps", "--backend", "opensandbox");
	RUN(&e2b, "ps", "--backend", "e2b");
	unsetenv("OPEN_SANDBOX_DOMAIN");
	unsetenv("E2B_DOMAIN");
	live_assert_says(&os, 0, "");
	live_assert_says(&e2b, 0, "");
}

static void doctor_asks_the_services_that_are_set_up(void **state)
{
	LIVE_CHILD both, refused, none;
	(void)state;
	RUN(&both, "doctor");
	assert_non_null(strstr(both.out.data, "opensandbox answers, 0 sandboxes"));
	assert_non_null(strstr(both.out.data, "e2b answers, 0 sandboxes"));
	setenv("E2B_API_KEY", "another", 1);
	RUN(&refused, "doctor");
	assert_int_equal(refused.status, 3);
	assert_non_null(strstr(refused.out.data, "E2B_API_KEY"));
	unsetenv("E2B_API_KEY");
	unsetenv("E2B_API_URL");
	unsetenv("OPEN_SANDBOX_API_KEY");
	unsetenv("OPEN_SANDBOX_API_BASE");
	RUN(&none, "doctor");
	assert_null(strstr(none.out.data, "service"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SERVICE_TEST(one_that_is_made_is_used_listed_and_removed_by_its_name),
		SERVICE_TEST(a_run_leaves_nothing_there_and_brings_its_answer),
		SERVICE_TEST(a_run_on_a_copy_there_is_applied_here),
		SERVICE_TEST(a_run_that_fails_there_keeps_what_it_has_done),
		SERVICE_TEST(an_agent_reaches_its_model_where_the_guest_is_carried),
		SERVICE_TEST(what_cannot_be_is_refused_by_the_capabilitys_name),
		SERVICE_TEST(a_key_comes_from_a_file_too_and_is_never_shown),
		SERVICE_TEST(a_domain_in_the_environment_is_as_good_as_a_url),
		SERVICE_TEST(doctor_asks_the_services_that_are_set_up),
	};
	return live_run(tests, live_begin, live_end);
}
