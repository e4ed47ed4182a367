/* SPDX-License-Identifier: MIT */
/* The scripted model over HTTP: what each wire says, byte by byte. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/http_client.h"
#include "model/model.h"

static const char script[] =
	"{\"v\":1,\"rules\":["
	"{\"match\":{\"equals\":\"talk\"},\"steps\":[{\"thinking\":\"hm\",\"text\":"
	"\"h\xc3\xa9llo\","
	" \"chunk\":3,\"usage\":{\"input\":10,\"output\":5,\"cached\":4}}]},"
	"{\"match\":{\"equals\":\"call\"},\"steps\":[{\"text\":\"ok\",\"tools\":["
	" {\"name\":\"a\",\"input\":{\"x\":1}},{\"name\":\"b\"}],"
	" \"usage\":{\"input\":1,\"output\":2}}]},"
	"{\"match\":{\"equals\":\"length\"},\"steps\":[{\"text\":\"t\",\"stop\":\"length\"}]},"
	"{\"match\":{\"equals\":\"patch\"},\"steps\":[{\"tools\":["
	" {\"name\":\"apply_patch\",\"input\":{\"input\":\"***\"}}]}]},"
	"{\"match\":{\"equals\":\"busy\"},\"steps\":[{\"error\":{\"status\":529,"
	" \"message\":\"try later\",\"retry_after\":7}}]},"
	"{\"match\":{\"equals\":\"cut\"},\"steps\":[{\"text\":\"x\",\"fill\":4000,"
	" \"cut_after_bytes\":1000}]},"
	"{\"match\":{\"equals\":\"stall\"},\"steps\":[{\"text\":\"late\",\"stall_ms\":120}]},"
	"{\"match\":{\"equals\":\"hang\"},\"steps\":[{\"text\":\"never\",\"stall_ms\":600000}]},"
	"{\"match\":{\"equals\":\"slow\"},\"steps\":[{\"text\":\"abcdef\",\"chunk\":1,"
	" \"delay_ms\":600000}]},"
	"{\"match\":{\"any\":true},\"steps\":[{\"text\":\"{{user_texts}}\"}]}]}";

#define CHAT      "POST /v1/chat/completions"
#define MESSAGES  "POST /v1/messages?beta=true"
#define RESPONSES "POST /v1/responses"

static int begin(void **state)
{
	struct sba_error err;
	struct sba_model *m = NULL;
	alarm(30);
	if (sba_model_open(&(struct sba_model_options){ .script = script, .token = "secret" }, &m,
			   &err) < 0) {
		print_error("%s\n", err.text);
		return -1;
	}
	*state = m;
	return 0;
}

static int end(void **state)
{
	sba_model_close(*state);
	return 0;
}

static struct reply post(void **state, const char *line, const char *body)
{
	return client_call(sba_model_port(*state), line, "Authorization: Bearer secret\r\n", body);
}

/* A request of that wire whose last user text is `prompt`. */
static struct reply ask(void **state, const char *line, const char *prompt, bool stream)
{
	char body[512];
	snprintf(body, sizeof(body),
		 "{\"model\":\"m\",\"stream\":%s,\"stream_options\":{\"include_usage\":true},"
		 "\"tools\":[{\"type\":\"custom\",\"name\":\"apply_patch\"}],"
		 "\"%s\":[{\"role\":\"user\",\"content\":\"%s\"}]}",
		 stream ? "true" : "false", !strcmp(line, RESPONSES) ? "input" : "messages",
		 prompt);
	return post(state, line, body);
}

/* Ids become "call_*", times 0, so that an answer can be compared whole. */
static void put_normalised(struct sba_buf *b, const char *s)
{
	static const char *const ids[] = { "resp_", "part_", "call_" };
	static const char created[] = "\"created", at[] = "_at";
	while (*s) {
		size_t skip = 0;
		for (size_t i = 0; i < SBA_ARRAY_LEN(ids); i++)
			if (sba_starts_with(s, ids[i]) && strspn(s + 5, "0123456789abcdef") == 16)
				skip = 5 + 16;
		if (skip)
			sba_buf_printf(b, "%.5s*", s);
		if (!skip && sba_starts_with(s, created)) {
			skip = sizeof(created) - 1;
			skip += sba_starts_with(s + skip, at) ? sizeof(at) - 1 : 0;
			skip += 2 + strspn(s + skip + 2, "0123456789");
			sba_buf_puts(b, "\"created\":0");
		}
		if (!skip)
			sba_buf_putc(b, *s);
		s += skip ? skip : 1;
	}
}

/* The whole answer, against a file that holds it. */
static void check_answer(void **state, const char *line, const char *prompt, bool stream,
			 const char *file)
{
	SBA_BUF struct sba_buf said = SBA_BUF_INIT(65536), expected = SBA_BUF_INIT(65536);
	struct reply r = ask(state, line, prompt, stream);
	assert_int_equal(r.status, 200);
	assert_true(r.whole);
	assert_non_null(strstr(r.raw.data, stream ? "Content-Type: text/event-stream"
						  : "Content-Type: application/json"));
	put_normalised(&said, r.body.data);
	assert_int_equal(sba_read_file(file, 65536, &expected, NULL), 0);
	assert_string_equal(said.data, expected.data);
	reply_fini(&r);
}

#define ANSWER(test, line, prompt, stream, file)                                                   \
	static void test(void **state)                                                             \
	{                                                                                          \
		check_answer(state, line, prompt, stream, "tests/fixtures/model/" file);           \
	}

ANSWER(chat_streams_text, CHAT, "talk", true, "chat-talk.sse")
ANSWER(chat_streams_tool_calls, CHAT, "call", true, "chat-call.sse")
ANSWER(chat_answers_whole, CHAT, "call", false, "chat-call.json")
ANSWER(messages_streams_text, MESSAGES, "talk", true, "messages-talk.sse")
ANSWER(messages_streams_tool_calls, MESSAGES, "call", true, "messages-call.sse")
ANSWER(messages_answers_whole, MESSAGES, "call", false, "messages-call.json")
ANSWER(responses_streams_text, RESPONSES, "talk", true, "responses-talk.sse")
ANSWER(responses_streams_tool_calls, RESPONSES, "call", true, "responses-call.sse")
ANSWER(responses_streams_free_text_calls, RESPONSES, "patch", true, "responses-patch.sse")
ANSWER(responses_answers_whole, RESPONSES, "call", false, "responses-call.json")

/* ---- all three ---- */

static const char *const lines[] = { CHAT, MESSAGES, RESPONSES };

static void check_contains(struct reply r, int status, const char *text)
{
	assert_int_equal(r.status, status);
	if (!strstr(r.body.data, text))
		fail_msg("no '%s' in '%s'", text, r.body.data);
	reply_fini(&r);
}

static void token_limit_is_told_in_each_wires_words(void **state)
{
	static const char *const words[][2] = {
		{ "\"finish_reason\":\"length\"", "\"finish_reason\":\"length\"" },
		{ "\"stop_reason\":\"max_tokens\"", "\"stop_reason\":\"max_tokens\"" },
		{ "event: response.incomplete\n", "{\"reason\":\"max_output_tokens\"}" },
	};
	for (size_t i = 0; i < SBA_ARRAY_LEN(lines); i++) {
		check_contains(ask(state, lines[i], "length", true), 200, words[i][0]);
		check_contains(ask(state, lines[i], "length", false), 200, words[i][1]);
	}
}

static void errors_have_the_providers_shape(void **state)
{
	static const char openai[] =
		"{\"error\":{\"message\":\"try later\",\"type\":\"server_error\",";
	static const char anthropic[] = "{\"type\":\"error\",\"error\":{\"type\":"
					"\"overloaded_error\",\"message\":\"try later\"}";
	static const char *const scripted[] = { openai, anthropic, openai };
	for (size_t i = 0; i < SBA_ARRAY_LEN(lines); i++) {
		struct reply r = ask(state, lines[i], "busy", true);
		assert_non_null(strstr(r.raw.data, "\r\nRetry-After: 7\r\n"));
		check_contains(r, 529, scripted[i]);
	}
}

static void key_is_asked_for_by_either_header(void **state)
{
	static const char *const refused[] = {
		"\"code\":\"invalid_api_key\"",
		"\"type\":\"authentication_error\"",
		"\"code\":\"invalid_api_key\"",
	};
	static const char *const wrong[] = { "", "Authorization: Bearer secre\r\n",
					     "Authorization: secret\r\n", "x-api-key: Secret\r\n" };
	uint16_t port = sba_model_port(*state);
	for (size_t i = 0; i < SBA_ARRAY_LEN(lines); i++)
		for (size_t k = 0; k < SBA_ARRAY_LEN(wrong); k++)
			check_contains(client_call(port, lines[i], wrong[k], "{}"), 401,
				       refused[i]);
	assert_int_equal(sba_model_requests(*state), 0);
	check_contains(client_call(port, MESSAGES, "x-api-key: secret\r\n", "{\"messages\":[]}"),
		       200, "\"type\":\"message\"");
	assert_int_equal(sba_model_requests(*state), 1);
}

static void garbage_is_refused_in_the_providers_shape(void **state)
{
	static const char *const garbage[] = { "",         "{",
					       "[]",       "null",
					       "{}",       "{\"messages\":1,\"input\":1}",
					       "\xff\xfe", "{\"a\":1,\"a\":2}" };
	for (size_t i = 0; i < SBA_ARRAY_LEN(lines); i++)
		for (size_t k = 0; k < SBA_ARRAY_LEN(garbage); k++)
			check_contains(post(state, lines[i], garbage[k]), 400,
				       "\"type\":\"invalid_request_error\"");
}

static void other_endpoints_are_few(void **state)
{
	check_contains(post(state, "GET /v1/models", NULL), 200, "\"id\":\"scripted\"");
	check_contains(post(state, "GET /nothing", NULL), 404, "\"code\":\"not_found\"");
	check_contains(post(state, "POST /v1/messages/count_tokens", "{}"), 404,
		       "\"type\":\"not_found_error\"");
	check_contains(post(state, "GET /v1/responses", NULL), 404, "\"code\":\"not_found\"");
	struct reply r = client_call(sba_model_port(*state), "HEAD /api/hello", "", NULL);
	assert_int_equal(r.status, 200);
	reply_fini(&r);
}

static void cut_answer_is_seen_as_cut_and_ends_at_the_byte(void **state)
{
	for (size_t i = 0; i < SBA_ARRAY_LEN(lines) * 2; i++) {
		struct reply r = ask(state, lines[i / 2], "cut", i % 2);
		assert_int_equal(r.status, 200);
		assert_false(r.whole);
		assert_int_equal(r.body.len, 1000);
		reply_fini(&r);
	}
}

static void stalled_answer_comes_late_but_whole(void **state)
{
	for (size_t i = 0; i < SBA_ARRAY_LEN(lines) * 2; i++) {
		int64_t start = sba_now_ms();
		struct reply r = ask(state, lines[i / 2], "stall", i % 2);
		assert_true(sba_now_ms() - start >= 120);
		assert_true(r.whole);
		check_contains(r, 200, "late");
	}
}

/* Before the first byte and between deltas: both wait ten minutes. */
static void close_ends_waiting_answers_at_once(void **state)
{
	static const char *const prompts[] = { "hang", "slow" };
	struct sba_model *m = *state;
	int fds[2];
	for (size_t i = 0; i < SBA_ARRAY_LEN(prompts); i++) {
		char body[128];
		struct reply head = { .raw = SBA_BUF_INIT(65536) };
		snprintf(body, sizeof(body),
			 "{\"stream\":true,\"messages\":[{\"role\":\"user\",\"content\":\"%s\"}]}",
			 prompts[i]);
		fds[i] = client_connect(sba_model_port(m));
		client_request(fds[i], CHAT, "x-api-key: secret\r\n", body);
		assert_true(client_read_some(fds[i], &head));
		reply_fini(&head);
	}
	int64_t start = sba_now_ms();
	sba_model_close(m);
	*state = NULL;
	assert_in_range(sba_now_ms() - start, 0, 2000);
	for (size_t i = 0; i < SBA_ARRAY_LEN(prompts); i++) {
		struct reply r = client_read_reply(fds[i]);
		assert_false(r.whole);
		reply_fini(&r);
	}
}

static void every_request_stands_for_itself(void **state)
{
	static const char history[] =
		"{\"messages\":[{\"role\":\"user\",\"content\":\"APPLE\"},{\"role\":\"assistant\","
		"\"content\":\"x\"},{\"role\":\"user\",\"content\":\"BANANA\"}]}";
	check_contains(post(state, CHAT, history), 200, "\"APPLE | BANANA\"");
	check_contains(post(state, MESSAGES, history), 200, "\"APPLE | BANANA\"");
	check_contains(ask(state, CHAT, "CHERRY", false), 200, "\"content\":\"CHERRY\"");
	assert_int_equal(sba_model_requests(*state), 3);
}

static void broken_script_is_told_at_open(void **state)
{
	struct sba_model *m = NULL;
	struct sba_error err;
	(void)state;
	assert_int_equal(
		sba_model_open(&(struct sba_model_options){ .script = "{\"v\":1}" }, &m, &err),
		SBA_ECONFIG);
	assert_string_equal(err.text, "script: rules: missing");
	assert_null(m);
}

static void without_a_token_any_key_is_taken(void **state)
{
	struct sba_model *m = NULL;
	struct sba_error err;
	(void)state;
	assert_int_equal(sba_model_open(NULL, &m, &err), 0);
	check_contains(client_call(sba_model_port(m), CHAT, "",
				   "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}"),
		       200, "You said: hi (message 1)");
	sba_model_close(m);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(chat_streams_text),
		TEST(chat_streams_tool_calls),
		TEST(chat_answers_whole),
		TEST(messages_streams_text),
		TEST(messages_streams_tool_calls),
		TEST(messages_answers_whole),
		TEST(responses_streams_text),
		TEST(responses_streams_tool_calls),
		TEST(responses_streams_free_text_calls),
		TEST(responses_answers_whole),
		TEST(token_limit_is_told_in_each_wires_words),
		TEST(errors_have_the_providers_shape),
		TEST(key_is_asked_for_by_either_header),
		TEST(garbage_is_refused_in_the_providers_shape),
		TEST(other_endpoints_are_few),
		TEST(cut_answer_is_seen_as_cut_and_ends_at_the_byte),
		TEST(stalled_answer_comes_late_but_whole),
		TEST(close_ends_waiting_answers_at_once),
		TEST(every_request_stands_for_itself),
		TEST(broken_script_is_told_at_open),
		TEST(without_a_token_any_key_is_taken),
	};
	return cmocka_run_group_tests_name("model_wire", tests, NULL, NULL);
}
