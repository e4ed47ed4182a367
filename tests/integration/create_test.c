/* SPDX-License-Identifier: MIT */
/* `create`, and an agent that moves in later. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/live.h"

#include <pthread.h>
#include <string.h>

static void create(const char *name, const char *image)
{
	LIVE_CHILD c;
	RUN(&c, "create", "--image", image, "--name", name, "--keepalive", "60s");
	live_assert_says(&c, 0, NULL);
	assert_non_null(strstr(c.out.data, name));
}

static void down(const char *name)
{
	LIVE_CHILD c;
	RUN(&c, "rm", name);
	live_assert_says(&c, 0, NULL);
}

static struct sba_sandbox *open_box(const char *name)
{
	struct sba_sandbox *s = NULL;
	struct sba_error err = { 0 };
	if (sba_sandbox_open(live.engine, live.prefix, name, &s, &err) < 0)
		fail_msg("%s", err.text);
	return s;
}

static void a_plain_sandbox_runs_commands_and_has_no_agent(void **state)
{
	LIVE_CHILD exec, chat, json;
	(void)state;
	create("plain", live.image);
	RUN(&exec, "exec", "plain", "--", "echo", "inside");
	live_assert_says(&exec, 0, NULL);
	assert_string_equal(exec.out.data, "inside\n");
	RUN(&chat, "chat", "plain", "hi");
	live_assert_says(&chat, 2, "has no agent");
	assert_non_null(strstr(chat.err.data, "sandbox-agent up claude --in plain"));
	RUN(&json, "--json", "create", "--image", live.image, "--name", "other");
	live_assert_says(&json, 0, NULL);
	assert_non_null(strstr(json.out.data, "\"name\":\"other\""));
	down("plain");
	down("other");
}

static void an_agent_moves_into_what_was_set_up_before_it(void **state)
{
	LIVE_CHILD before, up, ps, other, chat, after, again;
	(void)state;
	create("home", live_fake_image());
	RUN(&before, "exec", "home", "--", "sh", "-c", "echo mine >/workspace/kept");
	live_assert_says(&before, 0, NULL);
	RUN(&up, "up", "claude", "--in", "home", "--offline");
	live_assert_says(&up, 0, NULL);
	assert_string_equal(up.out.data, "home\n");
	RUN(&ps, "--json", "ps", "--filter", "agent=claude");
	live_assert_says(&ps, 0, NULL);
	assert_non_null(strstr(ps.out.data, "\"name\":\"home\""));
	RUN(&other, "-q", "ps", "--filter", "agent=pi");
	live_assert_says(&other, 0, NULL);
	assert_int_equal(other.out.len, 0);
	RUN(&chat, "-q", "chat", "home", "you");
	live_assert_says(&chat, 0, NULL);
	assert_string_equal(chat.out.data, "heard you\n");
	RUN(&after, "exec", "home", "--", "cat", "/workspace/kept");
	assert_string_equal(after.out.data, "mine\n");
	RUN(&again, "up", "pi", "--in", "home");
	live_assert_says(&again, 1, "lives claude already");
	live_assert_says(&again, 1, "sandbox-agent chat home");
	down("home");
}

static void *find_the_agent(void *user)
{
	struct sba_error err = { 0 };
	return sba_sandbox_find_agent(user, &err) == 0 ? user : NULL;
}

static void threads_that_share_a_handle_all_find_the_agent(void **state)
{
	enum { THREADS = 4 };
	LIVE_CHILD up;
	pthread_t threads[THREADS];
	void *found;
	(void)state;
	create("shared", live_fake_image());
	RUN(&up, "up", "claude", "--in", "shared", "--offline");
	live_assert_says(&up, 0, NULL);
	struct sba_sandbox *s = open_box("shared");
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, find_the_agent, s), 0);
	for (size_t i = 0; i < THREADS; i++) {
		pthread_join(threads[i], &found);
		assert_ptr_equal(found, s);
	}
	assert_string_equal(sba_sandbox_info(s)->agent, "claude");
	assert_string_equal(sba_sandbox_info(s)->provider, "scripted");
	sba_sandbox_close(s);
	down("shared");
}

static void a_fork_takes_the_agent_along(void **state)
{
	LIVE_CHILD up, chat;
	struct sba_sandbox *child = NULL;
	struct sba_error err = { 0 };
	(void)state;
	create("parent", live_fake_image());
	RUN(&up, "up", "claude", "--in", "parent", "--offline");
	live_assert_says(&up, 0, NULL);
	struct sba_sandbox *s = open_box("parent");
	const struct sba_fork_options o = { .name = "child" };
	if (sba_sandbox_fork(s, &o, &child, NULL, &err) < 0)
		fail_msg("%s", err.text);
	sba_sandbox_close(child);
	sba_sandbox_close(s);
	RUN(&chat, "-q", "chat", "child", "you");
	live_assert_says(&chat, 0, NULL);
	assert_string_equal(chat.out.data, "heard you\n");
	down("child");
	down("parent");
}

static void a_missing_cli_is_named_with_how_to_get_it(void **state)
{
	LIVE_CHILD up, json;
	(void)state;
	create("bare", live.image);
	RUN(&up, "up", "claude", "--in", "bare", "--offline");
	live_assert_says(&up, 1, "there is no 'claude' in image '");
	assert_non_null(strstr(up.err.data, "image build claude"));
	assert_non_null(strstr(up.err.data, "npm install -g"));
	RUN(&json, "--json", "up", "claude", "--in", "bare", "--offline");
	live_assert_says(&json, 1, "missing_cli");
	down("bare");
}

static void what_belongs_elsewhere_is_refused(void **state)
{
	LIVE_CHILD memory, model, none;
	(void)state;
	create("strict", live.image);
	RUN(&memory, "up", "claude", "--in", "strict", "--memory", "1g");
	live_assert_says(&memory, 2, "give it to create");
	RUN(&model, "up", "claude", "--in", "strict", "-m", "x");
	live_assert_says(&model, 2, "give it to chat");
	RUN(&none, "up", "claude", "--in", "strikt");
	live_assert_says(&none, 1, "strict");
	down("strict");
}

/* In a sandbox that runs as root the agent can write it; nothing in it leads a key
 * anywhere. */
static void what_the_inside_says_of_its_agent_is_not_believed(void **state)
{
	static const char *const lies[] = {
		"{\"v\":1,\"agent\":\"claude\",\"provider\":\"openai\",\"permissions\":\"\","
		"\"mcp\":\"\",\"program\":\"\"}",
		"{\"v\":1,\"agent\":\"a\\u001b[2J\",\"provider\":\"\",\"permissions\":\"\","
		"\"mcp\":\"\",\"program\":\"\"}",
		"{\"agent\":[]}",
		"no json",
		"{\"v\":1,\"agent\":\"nobody\",\"provider\":\"\",\"permissions\":\"\",\"mcp\":\"\","
		"\"program\":\"\"}",
	};
	(void)state;
	create("liar", live.image);
	struct sba_sandbox *s = open_box("liar");
	for (size_t i = 0; i < SBA_ARRAY_LEN(lies); i++) {
		LIVE_CHILD chat;
		struct sba_error err = { 0 };
		if (sba_sandbox_write_small(s, "/etc/sandbox-agent/agent.json", lies[i],
					    strlen(lies[i]), 0644, &err) < 0)
			fail_msg("%s", err.text);
		RUN(&chat, "chat", "liar", "--offline", "hi");
		assert_int_not_equal(chat.status, 0);
		live_assert_says(&chat, chat.status, "error: ");
		assert_null(strchr(chat.err.data, '\033'));
	}
	sba_sandbox_close(s);
	down("liar");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE_TEST(a_plain_sandbox_runs_commands_and_has_no_agent),
		LIVE_TEST(an_agent_moves_into_what_was_set_up_before_it),
		LIVE_TEST(threads_that_share_a_handle_all_find_the_agent),
		LIVE_TEST(a_fork_takes_the_agent_along),
		LIVE_TEST(a_missing_cli_is_named_with_how_to_get_it),
		LIVE_TEST(what_belongs_elsewhere_is_refused),
		LIVE_TEST(what_the_inside_says_of_its_agent_is_not_believed),
		LIVE_TEST(live_nothing_is_left),
	};
	return live_run(tests, live_begin, live_end);
}
