/* SPDX-License-Identifier: MIT */
/*
 * What the real CLIs may do, what they are given, and their own screens: permissions
 * and MCP servers.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/agents.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

/* How each calls what it writes with and a tool of the server `demo`. */
static const struct words {
	const char *name, *write, *path, *ping;
	bool keeps;         /* it can be held to less than everything */
	const char *screen; /* a word of its screen, which no control sequence cuts; NULL: none */
} all_words[] = {
	{ "claude", "Write", "file_path", "mcp__demo__pingtool", true, "bypass" },
	{ "codex", NULL, NULL, "mcp__demo__pingtool", false, "YOLO" },
	{ "dsh", "write", "file_path", "mcp__demo__pingtool", true, NULL },
	{ "opencode", "write", "filePath", "demo_pingtool", true, "anything" },
	{ "pi", "write", "path", "mcp__demo__pingtool", true, "scripted" },
};
static const struct words *words;

static int begin(void **state)
{
	(void)state;
	for (size_t i = 0; i < SBA_ARRAY_LEN(all_words); i++) {
		if (agent_is(all_words[i].name))
			words = &all_words[i];
	}
	return 0;
}

static const char *write_text(const char *name, const char *text, mode_t mode)
{
	const char *path = live_path(name);
	live_write_file(path, text, strlen(text), mode);
	return path;
}

/* A script whose model calls that tool. */
static const char *script_of(const char *tool, const char *input)
{
	char text[2048];
	snprintf(text, sizeof(text),
		 "{\"v\":1,\"rules\":[{\"match\":{\"any\":true},\"steps\":[{\"tools\":[{\"name\":"
		 "\"%s\",\"input\":{%s}}]},{\"text\":\"it said {{tool_output}}\"}]}]}",
		 tool, input);
	return write_text("script.json", text, 0644);
}

/* A turn with that script; whether there is a file afterwards. */
static bool writes(const char *box, const char *script)
{
	LIVE_CHILD turn, look;
	AGENT_RUN(&turn, "--json", "chat", box, "--script", script, "go");
	live_assert_says(&turn, 0, NULL);
	AGENT_RUN(&look, "exec", box, "sh", "-c", "ls /workspace; rm -f /workspace/f");
	live_assert_says(&look, 0, NULL);
	return look.out.len > 0 && strstr(look.out.data, "f\n");
}

/* By the tool for it. */
static bool writes_by_tool(const char *box)
{
	char input[256];
	snprintf(input, sizeof(input), "\"%s\":\"/workspace/f\",\"content\":\"x\"", words->path);
	return writes(box, script_of(words->write, input));
}

/* By a command; dsh's may ask for more than it has. */
static bool writes_by_shell(const char *box, bool asking)
{
	char input[256];
	snprintf(input, sizeof(input), "\"command\":\"touch /workspace/f\",\"description\":\"d\"%s",
		 asking ? ",\"sandbox_permissions\":\"danger-full-access\",\"justification\":\"j\""
			: "");
	return writes(box, script_of(agent_is("claude") ? "Bash" : "bash", input));
}

static void up(const char *name, const char *permissions)
{
	LIVE_CHILD c;
	AGENT_RUN(&c, "up", agent.name, "--offline", "--name", name, "--keepalive", "90s",
		  "--permissions", permissions);
	live_assert_says(&c, 0, NULL);
}

static void down(const char *name)
{
	LIVE_CHILD c;
	AGENT_RUN(&c, "rm", name);
	live_assert_says(&c, 0, NULL);
}

/* Codex, which cannot be, is refused before anything is made. */
static void assert_refused(const char *permissions)
{
	LIVE_CHILD c;
	AGENT_RUN(&c, "up", agent.name, "--offline", "--permissions", permissions);
	live_assert_says(&c, 2, "--permissions: codex cannot be held to '");
	assert_int_equal(live_container_count(), 0);
}

static void read_only_writes_nothing_whatever_the_model_calls(void **state)
{
	LIVE_CHILD look;
	(void)state;
	if (!words->keeps) {
		assert_refused("read-only");
		return;
	}
	up("looker", "read-only");
	assert_false(writes_by_tool("looker"));
	assert_false(writes_by_shell("looker", false));
	if (agent_is("dsh"))
		assert_false(writes_by_shell("looker", true));
	AGENT_RUN(&look, "--json", "inspect", "looker");
	live_assert_says(&look, 0, NULL);
	assert_non_null(strstr(look.out.data, "\"permissions\":\"read-only\""));
	down("looker");
}

static void edit_writes_files(void **state)
{
	(void)state;
	if (!words->keeps) {
		assert_refused("edit");
		return;
	}
	up("editor", "edit");
	assert_true(writes_by_tool("editor"));
	/* dsh has a file sandbox of its own for commands. */
	if (!agent_is("dsh"))
		assert_false(writes_by_shell("editor", false));
	down("editor");
}

static const char server[] =
	"#!/bin/sh\n"
	"while read -r line; do\n"
	" id=$(printf %s \"$line\" | sed -n 's/.*\"id\":\\([0-9]*\\).*/\\1/p')\n"
	" case $line in\n"
	" *'\"initialize\"'*) printf '{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":"
	"{\"protocolVersion\":\"2024-11-05\",\"capabilities\":{\"tools\":{}},\"serverInfo\":"
	"{\"name\":\"demo\",\"version\":\"1\"}}}\\n' \"$id\";;\n"
	" *'\"tools/list\"'*) printf '{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"tools\":[{"
	"\"name\":\"pingtool\",\"description\":\"pings\",\"inputSchema\":{\"type\":\"object\","
	"\"properties\":{\"path\":{\"type\":\"string\"}}}}]}}\\n' \"$id\";;\n"
	" *'\"tools/call\"'*) printf '{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[{"
	"\"type\":\"text\",\"text\":\"pong %s\"}]}}\\n' \"$id\" \"$WORD\";;\n"
	" *'\"id\":'*) printf '{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{}}\\n' \"$id\";;\n"
	" esac\n"
	"done\n";

static void a_server_of_the_users_is_a_tool_of_the_agents(void **state)
{
	LIVE_CHILD c;
	char mcp[256];
	(void)state;
	mkdir(live_path("ws"), 0755);
	write_text("ws/server.sh", server, 0755);
	snprintf(mcp, sizeof(mcp), "%s",
		 write_text("mcp.json",
			    "{\"mcpServers\":{\"demo\":{\"command\":\"/workspace/server.sh\","
			    "\"args\":[],\"env\":{\"WORD\":\"from-env\"}}}}",
			    0600));
	AGENT_RUN(&c, "--json", "run", agent.name, "--offline", "--mcp", mcp, "--workspace",
		  live_path("ws"), "--script", script_of(words->ping, ""), "go");
	live_assert_says(&c, 0, NULL);
	SBA_JSON json_t *lines = live_json_lines(&c);
	const json_t *call = live_json_line(lines, "tool_call");
	assert_string_equal(sba_json_str(call, "tool"), "mcp:demo.pingtool");
	const json_t *result = live_json_line(lines, "result");
	assert_non_null(strstr(sba_json_str(result, "text"), "pong from-env"));
}

static void servers_that_make_no_sense_are_refused_before_anything_is_made(void **state)
{
	LIVE_CHILD c;
	(void)state;
	AGENT_RUN(&c, "up", agent.name, "--offline", "--mcp",
		  write_text("bad.json", "{\"mcpServers\":{\"a\":{}}}", 0644));
	live_assert_says(&c, 2, "server 'a': needs either");
	assert_int_equal(live_container_count(), 0);
}

/* Presses Ctrl-C until the CLI has had enough of it: some clear the line first. */
static void leave(struct live_child *c)
{
	int64_t limit = sba_now_ms() + 60000;
	char drained[65536];
	siginfo_t info = { 0 };
	while (info.si_pid == 0 && sba_now_ms() < limit) {
		struct pollfd p = { .fd = c->out_fd, .events = POLLIN };
		assert_int_equal(write(c->screen_fd, "\003", 1), 1);
		poll(&p, 1, 500);
		if (p.revents & POLLIN)
			(void)!read(c->out_fd, drained, sizeof(drained));
		waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOHANG | WNOWAIT);
	}
	live_child_end(c, 30000);
}

/* dsh, which has none, says so. */
static void its_own_screen_opens_and_leaves_the_terminal_clean(void **state)
{
	static const char *const env[] = { "TERM=xterm-256color", NULL };
	const char *const argv[] = { "run", agent.name, "--offline", NULL };
	LIVE_CHILD c;
	struct termios before, now;
	(void)state;
	live_start(&c, &(struct live_start){ .argv = argv, .env = env, .screen = true });
	assert_int_equal(tcgetattr(c.screen_fd, &before), 0);
	if (words->screen) {
		live_child_await(&c, words->screen, 90000);
		leave(&c);
	} else {
		live_child_end(&c, 60000);
		assert_non_null(strstr(c.out.data, "has no screen of its own"));
	}
	assert_int_equal(tcgetattr(c.screen_fd, &now), 0);
	assert_int_equal(now.c_lflag, before.c_lflag);
	assert_int_equal(now.c_oflag, before.c_oflag);
	assert_int_equal(live_container_count(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CHECK(read_only_writes_nothing_whatever_the_model_calls),
		CHECK(edit_writes_files),
		CHECK(a_server_of_the_users_is_a_tool_of_the_agents),
		CHECK(servers_that_make_no_sense_are_refused_before_anything_is_made),
		CHECK(its_own_screen_opens_and_leaves_the_terminal_clean),
	};
	return agents_run(tests, begin, NULL);
}
