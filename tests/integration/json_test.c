/* SPDX-License-Identifier: MIT */
/*
 * --json is an interface: what commands really print is held to the tables of
 * docs/json.md, key by key. (That the document has every key that there is, and none that
 * there is not, is lint's.)
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/json_doc.h"
#include "support/live.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static void commands_without_a_sandbox(void **state)
{
	(void)state;
	PRINTS("version", "version");
	PRINTS("driver ls", "driver", "ls");
	PRINTS("image tag", "image", "tag");
	PRINTS("image ls", "image", "ls");
	PRINTS("config show", "config", "show");
	PRINTS("gc", "gc");
	PRINTS("audit path", "audit", "path");
}

static void errors(void **state)
{
	LIVE_CHILD c;
	(void)state;
	RUN(&c, "--json", "-q", "inspect", "no-such");
	live_assert_says(&c, 1, "not_found");
	SBA_JSON json_t *j = json_loadb(c.err.data, c.err.len, 0, NULL);
	json_doc_check("error", j);
}

static void a_sandbox(void **state)
{
	(void)state;
	PRINTS("sandbox", "create", "--image", live.image, "--name", "j", "--tag", "t");
	PRINTS("sandbox", "ps");
	PRINTS("inspect", "inspect", "j");
	PRINTS("stop", "stop", "j");
	PRINTS("rm", "rm", "j");
}

static void commands_in_a_sandbox(void **state)
{
	LIVE_CHILD c;
	(void)state;
	PRINTS("sandbox", "create", "--image", live.image, "--name", "j");
	RUN(&c, "--json", "exec", "--max-output", "6", "j", "--", "sh", "-c",
	    "printf 'ab\\377'; echo 123456 >&2; exit 3");
	live_assert_says(&c, 3, NULL);
	SBA_JSON json_t *lines = live_json_lines(&c);
	json_doc_check("exec start", json_array_get(lines, 0));
	json_doc_check("output", live_json_line(lines, "output"));
	json_doc_check("truncated", live_json_line(lines, "truncated"));
	json_doc_check("exit", live_json_line(lines, "exit"));
	LIVE_CHILD away;
	RUN(&away, "--json", "exec", "-d", "j", "--", "true");
	live_assert_says(&away, 0, NULL);
	SBA_JSON json_t *told = live_json_lines(&away);
	json_doc_check("detached", live_json_line(told, "detached"));
	PRINTS("rm", "rm", "j");
}

static void copies(void **state)
{
	(void)state;
	live_write_file(live_path("one"), "1", 1, 0644);
	PRINTS("sandbox", "create", "--image", live.image, "--name", "j");
	PRINTS("cp", "cp", live_path("one"), "j:/tmp/one");
	LIVE_CHILD ln;
	RUN(&ln, "exec", "j", "--", "sh", "-c", "mkdir /tmp/d; ln -s / /tmp/d/l");
	live_assert_says(&ln, 0, NULL);
	PRINTS("cp", "cp", "j:/tmp/d", live_path("d"));
	PRINTS("rm", "rm", "j");
}

static void turns_and_their_record(void **state)
{
	static const char turn[] = "start event result";
	const char *image = live_fake_image();
	char get[128];
	(void)state;
	snprintf(get, sizeof(get), "/etc/hostname:%s", live_path("hostname"));
	PRINTS("sandbox", "up", "claude", "--offline", "--image", image, "--name", "j");
	PRINTS_AND_EXITS(0, NULL, turn, "chat", "j", "hello");
	PRINTS_AND_EXITS(1, NULL, turn, "chat", "j", "crash");
	PRINTS_AND_EXITS(0, NULL, turn, "chat", "j", "escape");
	PRINTS_AND_EXITS(0, NULL, turn, "run", "claude", "--offline", "--image", image, "hello",
			 "--get", get);
	PRINTS("audit ls", "audit", "ls");
	PRINTS("audit report", "audit", "report", "6b0d7a46-5f3f-4a4e-9a55-0d9c1f1f0001");
	PRINTS("audit prune", "audit", "prune", "--days", "9000");
	LIVE_CHILD logs;
	RUN(&logs, "--json", "logs", "j");
	live_assert_says(&logs, 0, NULL);
	SBA_JSON json_t *rows = live_json_lines(&logs);
	json_doc_check("record", json_array_get(rows, 0));
	assert_int_equal(sba_json_int(json_array_get(rows, 0), "v", 0), 1);
	assert_non_null(sba_json_str(json_array_get(rows, 1), "kind"));
	PRINTS("rm", "rm", "j");
}

static void instructions_and_children(void **state)
{
	static const char skill[] = "---\nname: notes\ndescription: How.\n---\nSo.\n";
	(void)state;
	mkdir(live_path("notes"), 0755);
	live_write_file(live_path("notes/SKILL.md"), skill, sizeof(skill) - 1, 0644);
	PRINTS("sandbox", "up", "claude", "--offline", "--image", live_fake_image(), "--name", "j");
	PRINTS("skills add", "skills", "add", "j", live_path("notes"));
	PRINTS("skills ls", "skills", "ls", "j");
	PRINTS("gc", "skills", "rm", "j", "notes");
	PRINTS("rules set", "rules", "set", "j", live_path("notes/SKILL.md"));
	PRINTS("rules show", "rules", "show", "j");
	PRINTS("sessions ls", "sessions", "ls", "j");
	PRINTS("fork", "fork", "j", "-n", "2", "--name", "k");
	PRINTS("rm", "rm", "j", "k-1", "k-2");
}

static void what_changed_and_what_is_taken_home(void **state)
{
	const char *dir = live_path("tree"), *one = live_path("tree/one");
	LIVE_CHILD work, look;
	(void)state;
	mkdir(dir, 0755);
	live_write_file(one, "1\n", 2, 0644);
	live_write_file(live_path("tree/two"), "2\n", 2, 0644);
	PRINTS("sandbox", "create", "--image", live.image, "--name", "j", "-w", dir);
	RUN(&work, "exec", "j", "--", "sh", "-c",
	    "cd /workspace; echo 3 >one; mv two three; ln -s one \"$(printf 'l\\377')\"");
	live_assert_says(&work, 0, NULL);
	PRINTS("diff", "diff", "j");
	RUN(&look, "--json", "snapshot", "j");
	live_assert_says(&look, 0, NULL);
	SBA_JSON json_t *lines = live_json_lines(&look);
	json_doc_check("snapshot", json_array_get(lines, 0));
	json_doc_check("snapshot file", live_json_line(lines, "file"));
	json_doc_check("snapshot file", live_json_line(lines, "link"));
	live_write_file(one, "mine\n", 5, 0644);
	PRINTS_AND_EXITS(1, "apply", "", "apply", "j", dir);
	live_write_file(one, "1\n", 2, 0644);
	PRINTS("apply", "apply", "j", dir, "--check");
	PRINTS("apply", "apply", "j", dir);
	PRINTS("rm", "rm", "j");
}

static void what_is_ready_and_whether_it_works(void **state)
{
	const char *image = live_fake_image();
	LIVE_CHILD doctor;
	(void)state;
	PRINTS("pool fill", "pool", "fill", "claude", "--offline", "--image", image);
	PRINTS("sandbox", "pool", "ls");
	PRINTS("gc", "pool", "drain");
	/* Whatever it thinks of this machine. */
	RUN(&doctor, "--json", "doctor");
	json_doc_check_lines(&doctor, "doctor", "");
	assert_true(doctor.out.len > 0);
}

static void a_recorded_stream(void **state)
{
	static const char line[] =
		"{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,"
		"\"result\":\"x\",\"session_id\":\"6b0d\",\"usage\":"
		"{\"input_tokens\":5,\"output_tokens\":3}}\n";
	(void)state;
	live_write_file(live_path("stream"), line, sizeof(line) - 1, 0644);
	PRINTS_AND_EXITS(0, NULL, "event result", "driver", "parse", "claude", live_path("stream"));
}

/* It goes on until it is ended. */
static void says_where(const char *table, const char *const *argv)
{
	LIVE_CHILD c;
	live_start(&c, &(struct live_start){ .argv = argv });
	live_child_await(&c, "\n", 30000);
	SBA_JSON json_t *j = json_loadb(c.out.data, c.out.len, 0, NULL);
	json_doc_check(table, j);
}

static void servers_say_where(void **state)
{
	(void)state;
	says_where("model", (const char *const[]){ "--json", "model", NULL });
	PRINTS("sandbox", "create", "--image", live.image, "--name", "j");
	says_where("port", (const char *const[]){ "--json", "port", "j", "80", NULL });
	PRINTS("rm", "rm", "j");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE_TEST(commands_without_a_sandbox),
		LIVE_TEST(errors),
		LIVE_TEST(a_sandbox),
		LIVE_TEST(commands_in_a_sandbox),
		LIVE_TEST(copies),
		LIVE_TEST(turns_and_their_record),
		LIVE_TEST(instructions_and_children),
		LIVE_TEST(what_changed_and_what_is_taken_home),
		LIVE_TEST(what_is_ready_and_whether_it_works),
		LIVE_TEST(a_recorded_stream),
		LIVE_TEST(servers_say_where),
		LIVE_TEST(live_nothing_is_left),
	};
	return live_run(tests, live_begin, live_end);
}
