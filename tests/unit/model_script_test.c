/* SPDX-License-Identifier: MIT */
/* The scripted model without a server: scripts, matches, steps, tools. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "model/private.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int set_alarm(void **state)
{
	(void)state;
	alarm(20);
	return 0;
}

/* ---- scripts ---- */

static const struct {
	const char *script;
	const char *error;
} broken[] = {
	{ "[]", "the document: must be an object" },
	{ "{\"v\":1,", "not JSON: line 1" },
	{ "{\"rules\":[]}", "rules: must be a list with at least one member" },
	{ "{\"v\":2,\"rules\":[]}", "v: must be 1" },
	{ "{\"v\":1}", "rules: missing" },
	{ "{\"v\":1,\"rule\":[]}", "rule: unknown key; did you mean 'rules'?" },
	{ "{\"v\":1,\"rules\":[{\"steps\":[{}]}]}", "rules[0].match: missing" },
	{ "{\"v\":1,\"rules\":[{\"match\":{},\"steps\":[{}]}]}",
	  "rules[0].match: needs a condition" },
	{ "{\"v\":1,\"rules\":[{\"match\":{\"any\":false},\"steps\":[{}]}]}",
	  "rules[0].match.any: must be true" },
	{ "{\"v\":1,\"rules\":[{\"match\":{\"any\":true},\"steps\":[]}]}",
	  "rules[0].steps: must be" },
	{ "{\"v\":1,\"rules\":[{\"match\":{\"any\":true},\"steps\":[{}],\"after\":\"stop\"}]}",
	  "rules[0].after: must be one of: 'last' 'repeat'" },
};

/* The same for one step: what goes into {"steps":[ HERE ]}. */
static const struct {
	const char *step;
	const char *error;
} broken_steps[] = {
	{ "{\"text\":1}", "text: must be a text" },
	{ "{\"txt\":\"a\"}", "txt: unknown key; did you mean 'text'?" },
	{ "{\"zzzzzzzz\":1}", "zzzzzzzz: unknown key" },
	{ "{\"text\":\"{{prompts}}\"}", "text: no template {{prompts}}; did you mean {{prompt}}?" },
	{ "{\"text\":\"{{prompt:x}}\"}", "text: {{prompt}} takes no argument" },
	{ "{\"delay_ms\":-1}", "delay_ms: must be a whole number from 0 to 600000" },
	{ "{\"stall_ms\":1.5}", "stall_ms: must be a whole number" },
	{ "{\"chunk\":0}", "chunk: must be a whole number from 1" },
	{ "{\"stop\":\"word\"}", "stop: must be one of: 'length'" },
	{ "{\"error\":{}}", "error.status: missing" },
	{ "{\"error\":{\"status\":200}}", "error.status: must be a whole number from 400 to 599" },
	{ "{\"usage\":{\"in\":1}}", "usage.in: unknown key" },
	{ "{\"tools\":[{}]}", "tools[0]: needs 'kind', or 'name' and 'input'" },
	{ "{\"tools\":[{\"kind\":\"sh\"}]}", "tools[0].kind: must be one of: 'bash'" },
	{ "{\"tools\":[{\"kind\":\"bash\"}]}", "tools[0].command: missing" },
	{ "{\"tools\":[{\"kind\":\"bash\",\"command\":\"a\",\"path\":\"b\"}]}",
	  "tools[0].path: not of this kind of tool" },
	{ "{\"tools\":[{\"name\":\"A\",\"path\":\"b\"}]}", "tools[0]: a tool by name takes only" },
	{ "{\"tools\":[{\"name\":\"A\",\"input\":{\"x\":[\"{{no}}\"]}}]}",
	  "tools[0].input.x[0]: no template {{no}}" },
};

static void check_broken(const char *script, const char *place, const char *error)
{
	json_t *j = NULL;
	struct sba_error err = { 0 };
	char expected[256];
	snprintf(expected, sizeof(expected), "script: %s%s", place, error);
	assert_int_equal(sba_model_script_parse(script, &j, &err), SBA_ECONFIG);
	assert_int_equal(err.code, SBA_ECONFIG);
	assert_null(j);
	if (strncmp(err.text, expected, strlen(expected)) != 0)
		fail_msg("'%s' is not '%s'", err.text, expected);
}

static void broken_scripts_are_refused_with_the_place(void **state)
{
	(void)state;
	for (size_t i = 0; i < SBA_ARRAY_LEN(broken); i++)
		check_broken(broken[i].script, "", broken[i].error);
	for (size_t i = 0; i < SBA_ARRAY_LEN(broken_steps); i++) {
		char script[512];
		snprintf(script, sizeof(script),
			 "{\"v\":1,\"rules\":[{\"match\":{\"any\":true},\"steps\":[{},%s]}]}",
			 broken_steps[i].step);
		check_broken(script, "rules[0].steps[1].", broken_steps[i].error);
	}
}

static void built_in_script_is_a_valid_script(void **state)
{
	struct sba_error err;
	(void)state;
	SBA_JSON json_t *j = NULL;
	assert_int_equal(sba_model_script_parse(sba_model_builtin_script, &j, &err), 0);
}

/* ---- from a request to an answer ---- */

/* Schemas as the real CLIs offer them. */
#define CLAUDE_TOOLS                                                                               \
	"[{\"name\":\"Bash\",\"input_schema\":{\"type\":\"object\",\"properties\":{"               \
	"\"command\":{\"type\":\"string\"},\"timeout\":{\"type\":\"number\"},"                     \
	"\"description\":{\"type\":\"string\"}},\"required\":[\"command\"]}},"                     \
	"{\"name\":\"Write\",\"input_schema\":{\"type\":\"object\",\"properties\":{"               \
	"\"file_path\":{\"type\":\"string\"},\"content\":{\"type\":\"string\"}},"                  \
	"\"required\":[\"file_path\",\"content\"]}},"                                              \
	"{\"name\":\"Read\",\"input_schema\":{\"properties\":{\"file_path\":{}}}},"                \
	"{\"name\":\"Edit\",\"input_schema\":{\"properties\":{\"file_path\":{},\"old_string\":{}," \
	"\"new_string\":{},\"replace_all\":{\"type\":\"boolean\"}}}}]"
#define FUNCTION(name, properties, required)                                                       \
	"{\"type\":\"function\",\"function\":{\"name\":\"" name "\",\"parameters\":{"              \
	"\"type\":\"object\",\"properties\":{" properties "},\"required\":[" required "]}}}"
#define OPENCODE_TOOLS                                                                             \
	"[" FUNCTION(                                                                              \
		"bash",                                                                            \
		"\"command\":{\"type\":\"string\"},\"timeout\":{\"type\":\"integer\"},"            \
		"\"description\":{\"type\":\"string\"}",                                           \
		"\"command\",\"description\"") "," FUNCTION("write",                               \
							    "\"content\":{\"type\":\"string\"},"   \
							    "\"filePath\":{\"type\":\"string\"}",  \
							    "\"content\",\"filePath\"") "]"
#define BASH_ONLY "[" FUNCTION("bash", "\"command\":{\"type\":\"string\"}", "\"command\"") "]"

/* An answer to `messages` of a wire, by a script of one rule for anything. */
static struct sba_model_answer answer(const struct sba_model_wire *wire, const char *script,
				      const char *body)
{
	SBA_JSON json_t *j = NULL;
	struct sba_model_request r;
	struct sba_model_answer a = { 0 };
	struct sba_error err = { 0 };
	if (sba_model_script_parse(script, &j, &err) < 0 ||
	    sba_model_request_parse(&r, wire, body, strlen(body), &err) < 0 ||
	    sba_model_plan(j, &r, &a, &err) < 0)
		fail_msg("%s", err.text);
	sba_model_request_fini(&r);
	return a;
}

static void check_text(const struct sba_model_wire *wire, const char *script, const char *body,
		       const char *text)
{
	struct sba_model_answer a = answer(wire, script, body);
	assert_int_equal(a.n_parts, 1);
	assert_int_equal(a.parts[0].kind, SBA_MODEL_TEXT);
	assert_string_equal(a.parts[0].text, text);
	sba_model_answer_fini(&a);
}

#define ANY(steps)      "{\"v\":1,\"rules\":[{\"match\":{\"any\":true},\"steps\":[" steps "]}]}"
#define TEXT(text)      "{\"text\":\"" text "\"}"
#define CHAT(messages)  "{\"messages\":[" messages "]}"
#define USER(text)      "{\"role\":\"user\",\"content\":\"" text "\"}"
#define ASSISTANT(text) "{\"role\":\"assistant\",\"content\":\"" text "\"}"

static const struct sba_model_wire *const chat = &sba_model_wire_chat;
static const struct sba_model_wire *const messages = &sba_model_wire_messages;
static const struct sba_model_wire *const responses = &sba_model_wire_responses;

static void first_rule_whose_conditions_all_hold_is_taken(void **state)
{
	static const char script[] =
		"{\"v\":1,\"rules\":["
		"{\"match\":{\"equals\":\"exact\"},\"steps\":[{\"text\":\"equals\"}]},"
		"{\"match\":{\"prefix\":\"pre\",\"contains\":\"fix\"},\"steps\":[{\"text\":"
		"\"both {{rest}}\"}]},"
		"{\"match\":{\"contains\":\"Mid\"},\"steps\":[{\"text\":\"contains\"}]}]}";
	(void)state;
	check_text(chat, script, CHAT(USER("EXACT")), "equals");
	check_text(chat, script, CHAT(USER("pre: fix it")), "both : fix it");
	check_text(chat, script, CHAT(USER("in the mid of pre")), "contains");
	struct sba_model_answer a = answer(chat, script, CHAT(USER("pre only")));
	assert_int_equal(a.status, 400);
	assert_string_equal(a.message, "no rule of the script matches: pre only");
	sba_model_answer_fini(&a);
}

#define STEPS ANY(TEXT("one") "," TEXT("two") "," TEXT("three"))

static void step_counts_the_answers_since_the_users_last_message(void **state)
{
	(void)state;
	check_text(chat, STEPS, CHAT(USER("a")), "one");
	check_text(chat, STEPS, CHAT(USER("a") "," ASSISTANT("x")), "two");
	check_text(chat, STEPS, CHAT(USER("a") "," ASSISTANT("x") "," USER("b")), "one");
	check_text(chat, STEPS,
		   CHAT(USER("a") "," ASSISTANT(
			   "x") ",{\"role\":\"tool\",\"content\":\"t\"}," ASSISTANT("y")),
		   "three");
	check_text(messages, STEPS,
		   CHAT(USER("a") "," ASSISTANT(
			   "x") ",{\"role\":\"user\",\"content\":[{\"type\":"
				"\"tool_result\",\"tool_use_id\":\"t\",\"content\":\"o\"}]}"),
		   "two");
}

/* Responses tells one answer in several items. */
static void items_of_one_answer_are_one_step(void **state)
{
	static const char call[] = "{\"type\":\"function_call\",\"call_id\":\"c\"}";
	static const char output[] = "{\"type\":\"function_call_output\",\"output\":\"o\"}";
	static const char text[] = "{\"type\":\"message\",\"role\":\"assistant\",\"content\":[]}";
	char body[1024];
	(void)state;
	snprintf(body, sizeof(body), "{\"input\":[%s,{\"type\":\"reasoning\"},%s,%s,%s,%s,%s]}",
		 USER("a"), text, call, call, output, output);
	check_text(responses, STEPS, body, "two");
	snprintf(body, sizeof(body), "{\"input\":[%s,%s,%s,%s,%s]}", USER("a"), text, call, output,
		 text);
	check_text(responses, STEPS, body, "three");
	check_text(responses, STEPS, "{\"input\":\"a\"}", "one");
}

static void steps_beyond_the_last_stay_or_start_over(void **state)
{
	static const char again[] = "{\"v\":1,\"rules\":[{\"match\":{\"any\":true},\"after\":"
				    "\"repeat\",\"steps\":[" TEXT("one") "," TEXT("two") "]}]}";
	static const char four[] = CHAT(USER("a") "," ASSISTANT("1") "," ASSISTANT(
		"2") "," ASSISTANT("3") "," ASSISTANT("4"));
	(void)state;
	check_text(chat, STEPS, four, "three");
	check_text(chat, again, four, "one");
}

static void only_the_users_own_text_counts(void **state)
{
	static const char script[] = ANY(TEXT("{{history}}:{{prompt}}"));
	(void)state;
	check_text(
		messages, script,
		CHAT("{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":"
		     "\"<system-reminder>no</system-reminder>\"},{\"type\":\"text\",\"text\":"
		     "\"<system-reminder>no</system-reminder> my \\n\"}]}," ASSISTANT("x") "," USER(
			     "[Request interrupted by user]") "," USER("<system-reminder>no</"
								       "system-reminder>")),
		"1:my");
	check_text(chat, script, CHAT(USER("mine") "," USER("Current runtime context: no")),
		   "1:mine");
	check_text(responses, script,
		   "{\"input\":[" USER("<environment_context>no</environment_context>") "," USER(
			   "mine") "]}",
		   "1:mine");
}

static void templates_tell_prompt_history_and_tool_output(void **state)
{
	static const char all[] = ANY("{},{\"text\":\"{{prompt}}/{{history}}/{{user_texts}}/"
				      "{{tool_output}}/{{ not }}/{{x\"}");
	static const char tool[] = "{\"role\":\"tool\",\"content\":[{\"type\":\"text\",\"text\":"
				   "\"out\"}]}";
	char body[512];
	(void)state;
	snprintf(body, sizeof(body), CHAT("%s,%s,%s,%s,%s"), USER("APPLE"), ASSISTANT("x"),
		 USER("{{history}}"), ASSISTANT("y"), tool);
	check_text(chat, all, body, "{{history}}/2/APPLE | {{history}}/out/{{ not }}/{{x");
}

static void a_template_tells_whether_a_text_is_anywhere_in_the_request(void **state)
{
	static const char script[] = ANY(TEXT("{{has:a rule}} {{has:no rule}} {{has:cat}}"));
	(void)state;
	check_text(chat, script,
		   CHAT("{\"role\":\"system\",\"content\":\"this is a rule\"}," USER("x")),
		   "yes no no");
	check_text(responses, script,
		   "{\"input\":[{\"role\":\"developer\",\"content\":[{\"type\":\"input_text\","
		   "\"text\":\"a rule\"}]}," USER("x") "]}",
		   "yes no no");
}

static void path_template_takes_a_fitting_path_of_the_prompt(void **state)
{
	static const char script[] = ANY(TEXT("{{path:/d/qs.py}} {{path}}"));
	(void)state;
	check_text(chat, script, CHAT(USER("no path")), "/d/qs.py ");
	check_text(chat, script, CHAT(USER("to `/w/a.py`, not /w/b.py")), "/w/a.py /w/a.py");
	check_text(chat, script, CHAT(USER("see http://x/y.py, /etc/x and /w/c.py.")),
		   "/w/c.py /etc/x");
}

static void nul_in_a_prompt_becomes_a_replacement_character(void **state)
{
	(void)state;
	check_text(chat, ANY(TEXT("{{prompt}}!")), CHAT(USER("a\\u0000b")),
		   "a\xef\xbf\xbd"
		   "b!");
}

static void fill_repeats_the_text_to_whole_characters(void **state)
{
	(void)state;
	check_text(chat, ANY("{\"text\":\"a\xc3\xbc\",\"fill\":5}"), CHAT(USER("x")),
		   "a\xc3\xbc"
		   "a");
	check_text(chat, ANY("{\"text\":\"ab\",\"fill\":\"{{prompt}}\"}"), CHAT(USER("7")),
		   "abababa");
}

static void request_for_a_title_takes_no_step(void **state)
{
	(void)state;
	check_text(chat, STEPS,
		   CHAT("{\"role\":\"system\",\"content\":\"You are a title generator. …\"}," USER(
			   "a")),
		   "Scripted session");
}

static void usage_is_the_scripts_or_follows_from_the_sizes(void **state)
{
	static const char body[] = CHAT(USER("a"));
	(void)state;
	struct sba_model_answer a = answer(
		chat, ANY("{\"text\":\"x\",\"usage\":{\"input\":7,\"output\":8,\"cached\":3}}"),
		body);
	assert_int_equal(a.input_tokens, 7);
	assert_int_equal(a.output_tokens, 8);
	assert_int_equal(a.cached_tokens, 3);
	sba_model_answer_fini(&a);
	a = answer(chat, ANY("{\"thinking\":\"12345678\",\"text\":\"1234\"}"), body);
	assert_int_equal(a.input_tokens, (sizeof(body) - 1) / 4 + 1);
	assert_int_equal(a.output_tokens, 4);
	assert_int_equal(a.thinking_tokens, 2);
	sba_model_answer_fini(&a);
}

/* ---- tools ---- */

static const struct {
	const struct sba_model_wire *wire;
	const char *tools; /* that the request offers */
	const char *call;  /* that the script wants */
	const char *name;  /* that goes out; NULL: a text */
	const char *text;
} mappings[] = {
	{ messages, CLAUDE_TOOLS, "{\"kind\":\"bash\",\"command\":\"ls {{prompt}}\"}", "Bash",
	  "{\"command\":\"ls x\"}" },
	{ messages, CLAUDE_TOOLS, "{\"kind\":\"write\",\"path\":\"/p\",\"content\":\"c\"}", "Write",
	  "{\"file_path\":\"/p\",\"content\":\"c\"}" },
	{ messages, CLAUDE_TOOLS, "{\"kind\":\"read\",\"path\":\"/p\"}", "Read",
	  "{\"file_path\":\"/p\"}" },
	{ messages, CLAUDE_TOOLS, "{\"kind\":\"edit\",\"path\":\"/p\",\"old\":\"a\",\"new\":\"b\"}",
	  "Edit", "{\"file_path\":\"/p\",\"old_string\":\"a\",\"new_string\":\"b\"}" },
	{ chat, OPENCODE_TOOLS, "{\"kind\":\"bash\",\"command\":\"ls\"}", "bash",
	  "{\"command\":\"ls\",\"description\":\"Run the command\"}" },
	{ chat, OPENCODE_TOOLS, "{\"kind\":\"write\",\"path\":\"/p\",\"content\":\"c\"}", "write",
	  "{\"filePath\":\"/p\",\"content\":\"c\"}" },
	{ chat, BASH_ONLY, "{\"kind\":\"write\",\"path\":\"/a'b\",\"content\":\"c\"}", "bash",
	  "{\"command\":\"cat > '/a'\\\\''b' <<'END_OF_FILE'\\nc\\nEND_OF_FILE\"}" },
	{ chat, BASH_ONLY, "{\"kind\":\"write\",\"path\":\"/p\",\"content\":\"END_OF_FILE\\n\"}",
	  "bash", "{\"command\":\"cat > '/p' <<'END_OF_FILE_1'\\nEND_OF_FILE\\nEND_OF_FILE_1\"}" },
	{ chat, BASH_ONLY, "{\"kind\":\"read\",\"path\":\"/p\"}", "bash",
	  "{\"command\":\"cat -- '/p'\"}" },
	{ chat, BASH_ONLY, "{\"kind\":\"edit\",\"path\":\"/p\",\"old\":\"a\",\"new\":\"b\"}", NULL,
	  "(The script wants a tool of kind edit, but the request offers none.)" },
	{ chat, "[]", "{\"kind\":\"bash\",\"command\":\"ls\"}", NULL,
	  "(The script wants a tool of kind bash, but the request offers none.)" },
	{ chat, "[]", "{\"name\":\"Odd\",\"input\":{\"a\":[\"{{prompt}}\",1]}}", "Odd",
	  "{\"a\":[\"x\",1]}" },
	{ chat, "[]", "{\"name\":\"Bare\"}", "Bare", "{}" },
	{ chat,
	  "[" FUNCTION("shell",
		       "\"command\":{\"type\":\"array\"},\"n\":{\"type\":\"integer\"},"
		       "\"m\":{\"enum\":[\"fast\"]},\"b\":{\"type\":[\"boolean\",\"null\"]}",
		       "\"command\",\"n\",\"m\",\"b\",\"unknown\"") "]",
	  "{\"kind\":\"bash\",\"command\":\"ls\"}", "shell",
	  "{\"command\":[\"bash\",\"-lc\",\"ls\"],\"n\":0,\"m\":\"fast\",\"b\":false,"
	  "\"unknown\":\"\"}" },
	{ responses,
	  "[{\"type\":\"function\",\"name\":\"exec_command\",\"parameters\":{\"properties\":"
	  "{\"cmd\":{\"type\":\"string\"}},\"required\":[\"cmd\"]}}]",
	  "{\"kind\":\"bash\",\"command\":\"ls\"}", "exec_command", "{\"cmd\":\"ls\"}" },
	{ responses, "[{\"type\":\"custom\",\"name\":\"apply_patch\"}]",
	  "{\"name\":\"apply_patch\",\"input\":{\"input\":\"*** Begin Patch\"}}", "apply_patch",
	  "*** Begin Patch" },
};

static void tools_are_those_that_the_request_offers(void **state)
{
	(void)state;
	for (size_t i = 0; i < SBA_ARRAY_LEN(mappings); i++) {
		SBA_BUF struct sba_buf script = SBA_BUF_INIT(65536), body = SBA_BUF_INIT(65536);
		sba_buf_puts(&script, "{\"v\":1,\"rules\":[{\"match\":{\"any\":true},\"steps\":[{"
				      "\"tools\":[");
		sba_buf_puts(&script, mappings[i].call);
		sba_buf_puts(&script, "]}]}]}");
		sba_buf_printf(&body, "{\"tools\":%s,\"%s\":[" USER("x") "]}", mappings[i].tools,
			       mappings[i].wire == responses ? "input" : "messages");
		struct sba_model_answer a = answer(mappings[i].wire, script.data, body.data);
		assert_int_equal(a.n_parts, 1);
		assert_string_equal(a.parts[0].text, mappings[i].text);
		if (mappings[i].name)
			assert_string_equal(a.parts[0].name, mappings[i].name);
		else
			assert_int_equal(a.parts[0].kind, SBA_MODEL_TEXT);
		sba_model_answer_fini(&a);
	}
}

static void built_in_script_writes_runs_and_tells_the_quicksort(void **state)
{
	static const char first[] = "{\"tools\":" CLAUDE_TOOLS ",\"messages\":[" USER(
		"write a quicksort in Python to /workspace/sort.py and run it") "]}";
	(void)state;
	struct sba_model_answer a = answer(messages, sba_model_builtin_script, first);
	assert_int_equal(a.n_parts, 3);
	assert_int_equal(a.parts[0].kind, SBA_MODEL_THINKING);
	assert_string_equal(a.parts[1].text, "I'll write the file, then run it.");
	assert_string_equal(a.parts[2].name, "Write");
	assert_non_null(strstr(a.parts[2].text, "{\"file_path\":\"/workspace/sort.py\""));
	assert_non_null(strstr(a.parts[2].text, "def quicksort(items):\\n"));
	sba_model_answer_fini(&a);
	check_text(messages, sba_model_builtin_script,
		   CHAT(USER("quicksort") "," ASSISTANT("1") "," ASSISTANT("2")),
		   "Sorted as expected. The file is /workspace/qs.py.");
}

static void built_in_script_answers_its_other_prompts(void **state)
{
	static const char *const b = sba_model_builtin_script;
	(void)state;
	check_text(chat, b, CHAT(USER("remember APPLE")), "You said: remember APPLE (message 1)");
	check_text(chat, b, CHAT(USER("big 20")), "0123456789abcde 0123");
	struct sba_model_answer a = answer(chat, b, CHAT(USER("error 429 3")));
	assert_int_equal(a.status, 429);
	assert_int_equal(a.retry_after, 3);
	sba_model_answer_fini(&a);
	a = answer(chat, b, CHAT(USER("error of mine")));
	assert_int_equal(a.status, 500);
	sba_model_answer_fini(&a);
	a = answer(chat, b, CHAT(USER("slow")));
	assert_int_equal(a.delay_ms, 50);
	assert_int_equal(a.parts[0].len / a.chunk * (size_t)a.delay_ms, 60000);
	sba_model_answer_fini(&a);
	a = answer(chat, b,
		   "{\"tools\":" BASH_ONLY ",\"messages\":[" USER("run: grep quicksort *") "]}");
	assert_string_equal(a.parts[0].text, "{\"command\":\"grep quicksort *\"}");
	sba_model_answer_fini(&a);
	a = answer(chat, b,
		   "{\"tools\":" OPENCODE_TOOLS ",\"messages\":[" USER("write /a/b: c d") "]}");
	assert_string_equal(a.parts[0].text, "{\"filePath\":\"/a/b\",\"content\":\"c d\"}");
	sba_model_answer_fini(&a);
}

static void check_call(const char *prompt, size_t part, const char *arguments)
{
	SBA_BUF struct sba_buf body = SBA_BUF_INIT(65536);
	sba_buf_printf(&body, "{\"tools\":" OPENCODE_TOOLS ",\"messages\":[" USER("%s") "]}",
		       prompt);
	struct sba_model_answer a = answer(chat, sba_model_builtin_script, body.data);
	assert_true(a.n_parts > part);
	assert_string_equal(a.parts[part].text, arguments);
	sba_model_answer_fini(&a);
}

static void built_in_script_writes_what_is_named_before_the_colon(void **state)
{
	(void)state;
	check_call("write a/my file.txt: c: d", 0,
		   "{\"filePath\":\"/workspace/a/my file.txt\",\"content\":\"c: d\"}");
	check_call("write /a b: c", 0, "{\"filePath\":\"/a b\",\"content\":\"c\"}");
	check_call("write /a/b c d", 0, "{\"filePath\":\"/a/b\",\"content\":\"c d\"}");
	check_call("write x.py: pass", 0,
		   "{\"filePath\":\"/workspace/x.py\",\"content\":\"pass\"}");
	check_call("write hello.py and run it", 1,
		   "{\"filePath\":\"/workspace/hello.py\",\"content\":"
		   "\"print('Hello from the sandbox.')\\n\"}");
	check_call("write /tmp/x.py and run it", 1,
		   "{\"filePath\":\"/tmp/x.py\",\"content\":"
		   "\"print('Hello from the sandbox.')\\n\"}");
}

static void message_that_was_never_answered_is_not_matched_again(void **state)
{
	static const char *const b = sba_model_builtin_script;
	static const char two[] = "{\"role\":\"user\",\"content\":["
				  "{\"type\":\"text\",\"text\":\"error 429\"},"
				  "{\"type\":\"text\",\"text\":\"hello\"},"
				  "{\"type\":\"text\",\"text\":\"<system-reminder>x"
				  "</system-reminder>\"}]}";
	(void)state;
	SBA_BUF struct sba_buf body = SBA_BUF_INIT(65536);
	sba_buf_printf(&body, "{\"messages\":[%s]}", two);
	check_text(messages, b, body.data, "You said: hello (message 2)");
	check_text(chat, b, body.data, "You said: hello (message 2)");
	sba_buf_reset(&body);
	sba_buf_printf(&body, "{\"input\":[%s]}", two);
	check_text(responses, b, body.data, "You said: hello (message 2)");
	check_text(chat, b, CHAT(USER("error 429") "," USER("hello")),
		   "You said: hello (message 2)");
}

#define TEST(f) cmocka_unit_test_setup(f, set_alarm)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(broken_scripts_are_refused_with_the_place),
		TEST(built_in_script_is_a_valid_script),
		TEST(first_rule_whose_conditions_all_hold_is_taken),
		TEST(step_counts_the_answers_since_the_users_last_message),
		TEST(items_of_one_answer_are_one_step),
		TEST(steps_beyond_the_last_stay_or_start_over),
		TEST(only_the_users_own_text_counts),
		TEST(templates_tell_prompt_history_and_tool_output),
		TEST(a_template_tells_whether_a_text_is_anywhere_in_the_request),
		TEST(path_template_takes_a_fitting_path_of_the_prompt),
		TEST(nul_in_a_prompt_becomes_a_replacement_character),
		TEST(fill_repeats_the_text_to_whole_characters),
		TEST(request_for_a_title_takes_no_step),
		TEST(usage_is_the_scripts_or_follows_from_the_sizes),
		TEST(tools_are_those_that_the_request_offers),
		TEST(built_in_script_writes_runs_and_tells_the_quicksort),
		TEST(built_in_script_answers_its_other_prompts),
		TEST(built_in_script_writes_what_is_named_before_the_colon),
		TEST(message_that_was_never_answered_is_not_matched_again),
	};
	return cmocka_run_group_tests_name("model_script", tests, NULL, NULL);
}
