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

static void check_answer(void **state, const char *line, const char *prompt, bool stream,
			 const char *expected)
{
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(65536);
	struct reply r = ask(state, line, prompt, stream);
	assert_int_equal(r.status, 200);
	assert_true(r.whole);
	assert_non_null(strstr(r.raw.data, stream ? "Content-Type: text/event-stream"
						  : "Content-Type: application/json"));
	put_normalised(&b, r.body.data);
	assert_string_equal(b.data, expected);
	reply_fini(&r);
}

/* ---- Chat Completions ---- */

#define CHUNK(choices)                                                                             \
	"data: {\"id\":\"resp_*\",\"object\":\"chat.completion.chunk\",\"created\":0,\"model\":"   \
	"\"m\",\"choices\":[" choices "]"
#define CHOICE(delta, finish)                                                                      \
	CHUNK("{\"index\":0,\"delta\":{" delta "},\"finish_reason\":" finish "}") "}\n\n"
#define CHAT_USAGE(in, out, sum, cached, thinking)                                                 \
	"\"usage\":{\"prompt_tokens\":" in ",\"completion_tokens\":" out ",\"total_tokens\":" sum  \
	",\"prompt_tokens_details\":{\"cached_tokens\":" cached                                    \
	"},\"completion_tokens_details\":{\"reasoning_tokens\":" thinking "}}}"
#define CHAT_TOOL(i, rest) "\"tool_calls\":[{\"index\":" i "," rest "}]"

static void chat_streams_text(void **state)
{
	check_answer(state, CHAT, "talk", true,
		     CHOICE("\"role\":\"assistant\",\"content\":\"\"",
			    "null") CHOICE("\"reasoning_content\":\"hm\"", "null")
			     CHOICE("\"content\":\"h\xc3\xa9\"", "null")
				     CHOICE("\"content\":\"llo\"", "null") CHOICE("", "\"stop\"")
					     CHUNK("") "," CHAT_USAGE("10", "5", "15", "4",
								      "0") "\n\n"
									   "data: [DONE]\n\n");
}

static void chat_streams_tool_calls(void **state)
{
	check_answer(
		state, CHAT, "call", true,
		CHOICE("\"role\":\"assistant\",\"content\":\"\"", "null") CHOICE(
			"\"content\":\"ok\"",
			"null") CHOICE(CHAT_TOOL("0", "\"id\":\"call_*\",\"type\":\"function\","
						      "\"function\":{"
						      "\"name\":\"a\",\"arguments\":\"\"}"),
				       "null")
			CHOICE(CHAT_TOOL("0", "\"function\":{\"arguments\":\"{\\\"x\\\":1}\"}"),
			       "null") CHOICE(CHAT_TOOL("1", "\"id\":\"call_*\",\"type\":"
							     "\"function\",\"function\":{"
							     "\"name\":\"b\",\"arguments\":\"\"}"),
					      "null")
				CHOICE(CHAT_TOOL("1", "\"function\":{\"arguments\":\"{}\"}"),
				       "null") CHOICE("", "\"tool_calls\"")
					CHUNK("") "," CHAT_USAGE("1", "2", "3", "0",
								 "0") "\n\n"
								      "data: [DONE]\n\n");
}

static void chat_answers_whole(void **state)
{
	check_answer(state, CHAT, "call", false,
		     "{\"id\":\"resp_*\",\"object\":\"chat.completion\",\"created\":0,\"model\":"
		     "\"m\",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\","
		     "\"content\":\"ok\",\"tool_calls\":[{\"id\":\"call_*\",\"type\":\"function\","
		     "\"function\":{\"name\":\"a\",\"arguments\":\"{\\\"x\\\":1}\"}},{\"id\":"
		     "\"call_*\",\"type\":\"function\",\"function\":{\"name\":\"b\",\"arguments\":"
		     "\"{}\"}}]},\"finish_reason\":\"tool_calls\"}]," CHAT_USAGE("1", "2", "3", "0",
										 "0"));
}

/* ---- Messages ---- */

#define EVENT(type, rest) "event: " type "\ndata: {\"type\":\"" type "\"" rest "}\n\n"
#define MESSAGE_USAGE(in, cached, out, thinking)                                                   \
	"\"usage\":{\"input_tokens\":" in ",\"cache_creation_input_tokens\":0,"                    \
	"\"cache_read_input_tokens\":" cached ",\"output_tokens\":" out                            \
	",\"output_tokens_details\":{\"thinking_tokens\":" thinking "}}"
#define START(in, cached)                                                                          \
	EVENT("message_start",                                                                     \
	      ",\"message\":{\"id\":\"resp_*\",\"type\":\"message\",\"role\":\"assistant\","       \
	      "\"model\":\"m\",\"content\":[],\"stop_reason\":null,\"stop_sequence\":"             \
	      "null," MESSAGE_USAGE(in, cached, "1", "0") "}")
#define BLOCK(i, block)                                                                            \
	EVENT("content_block_start", ",\"index\":" i ",\"content_block\":{" block "}")
#define DELTA(i, delta) EVENT("content_block_delta", ",\"index\":" i ",\"delta\":{" delta "}")
#define BLOCK_STOP(i)   EVENT("content_block_stop", ",\"index\":" i)
#define STOP(reason, usage)                                                                        \
	EVENT("message_delta",                                                                     \
	      ",\"delta\":{\"stop_reason\":\"" reason "\",\"stop_sequence\":null}," usage)         \
	EVENT("message_stop", "")

static void messages_streams_text(void **state)
{
	check_answer(
		state, MESSAGES, "talk", true,
		START("10", "4") BLOCK("0",
				       "\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"")
			DELTA("0", "\"type\":\"thinking_delta\",\"thinking\":\"hm\"") DELTA(
				"0", "\"type\":\"signature_delta\",\"signature\":\"part_*\"")
				BLOCK_STOP("0") BLOCK("1", "\"type\":\"text\",\"text\":\"\"") DELTA(
					"1", "\"type\":\"text_delta\",\"text\":\"h\xc3\xa9\"")
					DELTA("1", "\"type\":\"text_delta\",\"text\":\"llo\"")
						BLOCK_STOP("1")
							STOP("end_turn",
							     MESSAGE_USAGE("10", "4", "5", "0")));
}

static void messages_streams_tool_calls(void **state)
{
	check_answer(
		state, MESSAGES, "call", true,
		START("1", "0") BLOCK("0", "\"type\":\"text\",\"text\":\"\"") DELTA(
			"0", "\"type\":\"text_delta\",\"text\":\"ok\"") BLOCK_STOP("0")
			BLOCK("1", "\"type\":\"tool_use\",\"id\":\"call_*\",\"name\":\"a\","
				   "\"input\":{}") DELTA("1", "\"type\":\"input_json_delta\","
							      "\"partial_json\":\"{\\\"x\\\":1}\"")
				BLOCK_STOP("1") BLOCK("2", "\"type\":\"tool_use\",\"id\":\"call_*"
							   "\",\"name\":\"b\",\"input\":{}")
					DELTA("2", "\"type\":\"input_json_delta\",\"partial_json\":"
						   "\"{}\"") BLOCK_STOP("2") STOP(
						"tool_use", MESSAGE_USAGE("1", "0", "2", "0")));
}

static void messages_answers_whole(void **state)
{
	check_answer(
		state, MESSAGES, "call", false,
		"{\"id\":\"resp_*\",\"type\":\"message\",\"role\":\"assistant\",\"model\":"
		"\"m\",\"content\":[{\"type\":\"text\",\"text\":\"ok\"},{\"type\":\"tool_use\","
		"\"id\":\"call_*\",\"name\":\"a\",\"input\":{\"x\":1}},{\"type\":\"tool_use\","
		"\"id\":\"call_*\",\"name\":\"b\",\"input\":{}}],\"stop_reason\":\"tool_use\","
		"\"stop_sequence\":null," MESSAGE_USAGE("1", "0", "2", "0") "}");
}

/* ---- Responses ---- */

#define RESPONSE_EVENT(type, seq, rest)                                                            \
	"event: response." type "\ndata: {" rest ",\"type\":\"response." type                      \
	"\",\"sequence_number\":" seq "}\n\n"
#define RESPONSE(status, output, usage)                                                            \
	"{\"id\":\"resp_*\",\"object\":\"response\",\"created\":0,\"model\":\"m\",\"status\":"     \
	"\"" status "\",\"output\":[" output "],\"usage\":" usage ",\"error\":null}"
#define RESPONSE_USAGE(in, cached, out, sum)                                                       \
	"{\"input_tokens\":" in ",\"input_tokens_details\":{\"cached_tokens\":" cached             \
	"},\"output_tokens\":" out ",\"output_tokens_details\":{\"reasoning_tokens\":0},"          \
	"\"total_tokens\":" sum "}"
#define RESPONSE_START                                                                             \
	RESPONSE_EVENT("created", "0", "\"response\":" RESPONSE("in_progress", "", "null"))        \
	RESPONSE_EVENT("in_progress", "1", "\"response\":" RESPONSE("in_progress", "", "null"))
#define ITEM(i, item) "\"output_index\":" i ",\"item\":{" item "}"
#define PLACE(i)      "\"item_id\":\"part_*\",\"output_index\":" i
#define REASONING(summary)                                                                         \
	"\"id\":\"part_*\",\"type\":\"reasoning\",\"summary\":[" summary                           \
	"],\"encrypted_content\":null"
#define SUMMARY(text) "{\"type\":\"summary_text\",\"text\":\"" text "\"}"
#define MESSAGE(status, content)                                                                   \
	"\"id\":\"part_*\",\"type\":\"message\",\"role\":\"assistant\",\"status\":\"" status       \
	"\",\"content\":[" content "]"
#define OUTPUT_TEXT(text) "{\"type\":\"output_text\",\"text\":\"" text "\",\"annotations\":[]}"
#define CALL(type, status, name, rest)                                                             \
	"\"id\":\"call_*\",\"type\":\"" type "\",\"status\":\"" status                             \
	"\",\"call_id\":\"call_*\",\"name\":\"" name "\"," rest

static void responses_streams_text(void **state)
{
	check_answer(
		state, RESPONSES, "talk", true,
		RESPONSE_START RESPONSE_EVENT("output_item.added", "2", ITEM("0", REASONING(""))) RESPONSE_EVENT(
			"reasoning_summary_part.added", "3",
			"\"part\":" SUMMARY("") "," PLACE(
				"0") ",\"summary_index\":0") RESPONSE_EVENT("reasoning_summary_"
									    "text.delta",
									    "4",
									    "\"delta\":"
									    "\"hm\"," PLACE(
										    "0") ",\"summar"
											 "y_"
											 "index\":"
											 "0")
			RESPONSE_EVENT(
				"reasoning_summary_text.done", "5",
				"\"text\":\"hm\"," PLACE(
					"0") ",\"summary_index\":0") RESPONSE_EVENT("reasoning_"
										    "summary_part."
										    "done",
										    "6",
										    "\"part\""
										    ":" SUMMARY(
											    "h"
											    "m") "," PLACE("0") ","
														"\"summary_index\":0")
				RESPONSE_EVENT(
					"output_item.done", "7",
					ITEM("0",
					     REASONING(SUMMARY(
						     "hm")))) RESPONSE_EVENT("output_item.added",
									     "8",
									     ITEM("1",
										  MESSAGE("in_"
											  "progres"
											  "s",
											  "")))
					RESPONSE_EVENT(
						"content_part.added", "9",
						"\"part\""
						":" OUTPUT_TEXT("") "," PLACE(
							"1") ",\"conte"
							     "nt_"
							     "index\":"
							     "0") RESPONSE_EVENT("output_text."
										 "delta",
										 "10",
										 "\"delta\":"
										 "\"h\xc3\xa9\""
										 "," PLACE(
											 "1") ",\"c"
											      "onte"
											      "nt_"
											      "inde"
											      "x\":"
											      "0")
						RESPONSE_EVENT("output_text.delta", "11", "\"delta\":\"llo\"," PLACE("1") ",\"content_index\":0") RESPONSE_EVENT(
							"output_text.done",
							"12",
							"\"text\":\"h\xc3\xa9llo\"," PLACE(
								"1") ",\"content_index\":0")
							RESPONSE_EVENT(
								"content_part.done",
								"13",
								"\"part\""
								":" OUTPUT_TEXT(
									"h"
									"\xc3\xa9llo") "," PLACE("1") ",\"con"
												      "tent_"
												      "index"
												      "\":0")
								RESPONSE_EVENT(
									"output_item.done",
									"14",
									ITEM("1",
									     MESSAGE("compl"
										     "eted",
										     OUTPUT_TEXT(
											     "h\xc3"
											     "\xa9l"
											     "l"
											     "o"))))
									RESPONSE_EVENT(
										"completed", "15",
										"\"response"
										"\""
										":" RESPONSE(
											"co"
											"mp"
											"le"
											"te"
											"d",
											"{" REASONING(SUMMARY("hm")) "},{" MESSAGE(
												"co"
												"mp"
												"le"
												"te"
												"d",
												OUTPUT_TEXT(
													"h\xc3\xa9llo")) "}",
											RESPONSE_USAGE(
												"1"
												"0",
												"4",
												"5",
												"1"
												"5"))));
}

#define CUSTOM(status, input)                                                                      \
	CALL("custom_tool_call", status, "apply_patch", "\"input\":\"" input "\"")

static void responses_streams_free_text_calls(void **state)
{
	struct reply r = ask(state, RESPONSES, "patch", true);
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(65536);
	put_normalised(&b, r.body.data);
	assert_non_null(strstr(
		b.data,
		RESPONSE_EVENT("output_item.added", "2", ITEM("0", CUSTOM("in_progress", "")))
			RESPONSE_EVENT(
				"custom_tool_call_input.delta", "3",
				"\"delta\":\"***\",\"item_id\":\"call_*\",\"output_index\":0")
				RESPONSE_EVENT("custom_tool_call_input.done", "4",
					       "\"input\":\"***\",\"item_id\":\"call_*\",\"output_"
					       "index\":0")
					RESPONSE_EVENT("output_item.done", "5",
						       ITEM("0", CUSTOM("completed", "***")))));
	reply_fini(&r);
}

#define FUNCTION(name, status, arguments)                                                          \
	CALL("function_call", status, name, "\"arguments\":\"" arguments "\"")

static void responses_streams_tool_calls(void **state)
{
	struct reply r = ask(state, RESPONSES, "call", true);
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(65536);
	put_normalised(&b, r.body.data);
	assert_non_null(strstr(
		b.data,
		RESPONSE_EVENT("output_item.added", "8",
			       ITEM("1", FUNCTION("a", "in_progress", "")))
			RESPONSE_EVENT("function_call_arguments.delta", "9",
				       "\"delta\":\"{\\\"x\\\":1}\",\"item_id\":\"call_*\","
				       "\"output_index\":1")
				RESPONSE_EVENT(
					"function_call_arguments.done", "10",
					"\"arguments\":\"{\\\"x\\\":1}\",\"item_id\":\"call_*\","
					"\"output_index\":1")
					RESPONSE_EVENT("output_item.done", "11",
						       ITEM("1", FUNCTION("a", "completed",
									  "{\\\"x\\\":1}")))));
	reply_fini(&r);
}

static void responses_answers_whole(void **state)
{
	check_answer(state, RESPONSES, "call", false,
		     RESPONSE("completed",
			      "{" MESSAGE("completed", OUTPUT_TEXT("ok")) "},{" FUNCTION(
				      "a", "completed",
				      "{\\\"x\\\":1}") "},{" FUNCTION("b", "completed", "{}") "}",
			      RESPONSE_USAGE("1", "0", "2", "3")));
}

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
