/* SPDX-License-Identifier: MIT */
/*
 * A login of the CLI's own (made up) in a sandbox: where it comes from and goes to, what
 * it excludes, that it is hidden in records, and that no child and no dump has it.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/json_doc.h"
#include "support/live.h"

#include <string.h>
#include <sys/stat.h>

#define ACCESS "made-up-access-0123456789"
#define TOKEN  "made-up-refresh-0123456789"

static const char login[] = "{\"claudeAiOauth\":{\"accessToken\":\"" ACCESS
			    "\",\"refreshToken\":\"" TOKEN "\",\"expiresAt\":1999999999999}}";

/* Shows what it was given, and what it finds at home. */
static const char fake[] =
	"#!/bin/sh\n"
	"cat >/dev/null\n"
	"say() { printf '{\"type\":\"assistant\",\"message\":{\"id\":\"m1\",\"content\":"
	"[{\"type\":\"text\",\"text\":\"%s\"}]}}\\n' \"$1\"; printf '{\"type\":\"result\","
	"\"subtype\":\"success\",\"is_error\":false,\"result\":\"%s\"}\\n' \"$1\"; }\n"
	"id=6b0d7a46-5f3f-4a4e-9a55-0d9c1f1f0002\n"
	"printf '{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"%s\"}\\n' $id\n"
	"mkdir -p ~/.claude/projects/-workspace\n"
	"echo "
	"'{\"type\":\"user\",\"cwd\":\"/workspace\",\"message\":{\"role\":\"user\",\"content\":"
	"\"hi\"}}' > ~/.claude/projects/-workspace/$id.jsonl\n"
	"key=$(env | grep -c '^ANTHROPIC_' || true)\n"
	"token=$(sed 's/.*accessToken\":\"\\([^\"]*\\)\".*/\\1/' ~/.claude/.credentials.json "
	"2>/dev/null)\n"
	"say \"variables $key, login ${token:-none}, model $(echo \"$*\" | grep -c -e --model)\"\n";

static const char *image;
/* HOME, where the login here is. */
static char home[80];

static void write_login(const char *text)
{
	live_write_file(live_path("home/.claude/.credentials.json"), text, strlen(text), 0600);
}

static int begin(void **state)
{
	if (live_begin(state) < 0)
		return -1;
	image = live_image("login",
			   "COPY claude /usr/local/bin/claude\n"
			   "RUN useradd -m agent && mkdir /workspace && chown agent /workspace\n"
			   "USER agent\nWORKDIR /workspace",
			   "claude", fake);
	mkdir(live_path("home"), 0755);
	mkdir(live_path("home/.claude"), 0755);
	snprintf(home, sizeof(home), "HOME=%s", live_path("home"));
	write_login(login);
	return 0;
}

/* The program with that home. */
static void at_home(struct live_child *c, const char *const *argv)
{
	const char *const env[] = { home, "CLAUDE_CONFIG_DIR", "ANTHROPIC_API_KEY", NULL };
	live_start(c, &(struct live_start){ .argv = argv, .env = env });
	live_child_end(c, 90000);
}
#define HOME_RUN(c, ...) at_home(c, (const char *const[]){ __VA_ARGS__, NULL })
#define CLAUDE           "claude", "--image", image, "--login-files"

static void a_turn_has_the_login_and_no_key(void **state)
{
	LIVE_CHILD c;
	(void)state;
	HOME_RUN(&c, "-q", "--no-audit", "run", CLAUDE, "hello");
	/* Quiet is no reason not to say it. */
	live_assert_says(&c, 0, "WARNING: ");
	assert_non_null(strstr(c.err.data, "everything that runs inside can read"));
	/* Starred out of events and of the answer. */
	assert_null(strstr(c.out.data, ACCESS));
	assert_non_null(strstr(c.out.data, "variables 0, login ****"));
	assert_non_null(strstr(c.out.data, "model 0"));
}

static void the_login_of_a_moved_configuration_is_found(void **state)
{
	char moved[100];
	LIVE_CHILD c;
	(void)state;
	snprintf(moved, sizeof(moved), "CLAUDE_CONFIG_DIR=%s", live_path("home/.claude"));
	const char *const env[] = { "HOME=/nowhere", moved, NULL };
	const char *const argv[] = { "--json", "run", CLAUDE, "hello", NULL };
	live_start(&c, &(struct live_start){ .argv = argv, .env = env });
	live_child_end(&c, 90000);
	live_assert_says(&c, 0, "{\"warning\":{\"message\":");
	SBA_JSON json_t *warning =
		json_loads(strstr(c.err.data, "{\"warning\""), JSON_DISABLE_EOF_CHECK, NULL);
	json_doc_check("warning", warning);
	assert_non_null(strstr(c.out.data, "login ****"));
	assert_null(strstr(c.out.data, ACCESS));
}

static void what_needs_the_relay_is_refused_before_anything_is_made(void **state)
{
	static const struct {
		const char *option, *value, *words;
	} rows[] = {
		{ "--offline", NULL, "--login-files and --offline exclude each other" },
		{ "--provider", "anthropic", "a provider or a key exclude each other" },
		{ "--api-key-env", "PATH", "a provider or a key exclude each other" },
		{ "--max-tokens", "5", "no budget can be kept (max-tokens)" },
		{ "--max-requests", "5", "no budget can be kept (max-requests)" },
		{ "--network", "sealed", "a sealed sandbox reaches nobody" },
	};
	(void)state;
	for (size_t i = 0; i < SBA_ARRAY_LEN(rows); i++) {
		LIVE_CHILD c;
		HOME_RUN(&c, "run", CLAUDE, "hello", rows[i].option, rows[i].value);
		live_assert_says(&c, 2, rows[i].words);
	}
	LIVE_CHILD none, pool, in;
	HOME_RUN(&none, "run", "dsh", "--image", image, "--login-files", "hello");
	live_assert_says(&none, 2, "dsh keeps no login of its own");
	HOME_RUN(&pool, "pool", "fill", CLAUDE, "-n", "1");
	live_assert_says(&pool, 2, "anybody may claim");
	HOME_RUN(&in, "up", "claude", "--in", "fox", "--login-files");
	live_assert_says(&in, 2, "a sandbox that is made for it");
	assert_int_equal(live_container_count(), 0);
}

static void what_is_no_login_is_refused_before_anything_is_made(void **state)
{
	LIVE_CHILD c, missing;
	(void)state;
	write_login("{\"claudeAiOauth\":{}}");
	HOME_RUN(&c, "run", CLAUDE, "hello");
	live_assert_says(&c, 2, "there is no login of claude in it");
	write_login(login);
	HOME_RUN(&missing, "run", "codex", "--image", image, "--login-files", "hello");
	live_assert_says(&missing, 2, ".codex/auth.json");
	assert_non_null(strstr(missing.err.data, "codex login"));
	assert_int_equal(live_container_count(), 0);
}

static void assert_without_login(const char *data, size_t len)
{
	assert_non_null(data);
	assert_null(memmem(data, len, ACCESS, strlen(ACCESS)));
	assert_null(memmem(data, len, TOKEN, strlen(TOKEN)));
}

static void it_is_in_no_child_no_dump_and_no_record(void **state)
{
	LIVE_CHILD up, first, exec, logs, dump, fork, child, chat, rm;
	size_t len;
	(void)state;
	HOME_RUN(&up, "up", CLAUDE, "--name", "fox");
	live_assert_says(&up, 0, "WARNING: ");
	RUN(&first, "chat", "fox", "hello");
	live_assert_says(&first, 0, NULL);
	RUN(&exec, "exec", "fox", "sh", "-c",
	    "cat ~/.claude/.credentials.json; stat -c ' %a %U' ~/.claude/.credentials.json");
	/* A command's own output is the user's. */
	live_assert_says(&exec, 0, NULL);
	assert_non_null(strstr(exec.out.data, TOKEN));
	assert_non_null(strstr(exec.out.data, " 600 agent"));
	RUN(&logs, "--json", "logs", "fox");
	live_assert_says(&logs, 0, NULL);
	assert_non_null(strstr(logs.out.data, "login ****"));
	assert_without_login(logs.out.data, logs.out.len);
	RUN(&dump, "sessions", "dump", "fox", live_path("fox.session"), "--workspace");
	live_assert_says(&dump, 0, NULL);
	SBA_FREE char *session = live_read_file(live_path("fox.session"), &len);
	assert_without_login(session, len);
	RUN(&fork, "fork", "fox", "--name", "kit");
	live_assert_says(&fork, 0, NULL);
	RUN(&child, "exec", "kit", "sh", "-c", "ls -a ~/.claude; grep -rF made-up- ~ /workspace");
	live_assert_says(&child, 1, NULL);
	assert_null(strstr(child.out.data, "credentials"));
	HOME_RUN(&chat, "chat", "kit", "hello");
	live_assert_says(&chat, 2, "ANTHROPIC_API_KEY");
	RUN(&rm, "rm", "fox", "kit");
	live_assert_says(&rm, 0, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE_TEST(a_turn_has_the_login_and_no_key),
		LIVE_TEST(the_login_of_a_moved_configuration_is_found),
		LIVE_TEST(what_needs_the_relay_is_refused_before_anything_is_made),
		LIVE_TEST(what_is_no_login_is_refused_before_anything_is_made),
		LIVE_TEST(it_is_in_no_child_no_dump_and_no_record),
		LIVE_TEST(live_nothing_is_left),
	};
	return live_run(tests, begin, live_end);
}
