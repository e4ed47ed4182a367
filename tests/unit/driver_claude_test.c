/* SPDX-License-Identifier: MIT */
/*
 * Claude Code's driver: every recording of its stream against what was
 * measured, and what no recording has. Run in the project's folder.
 */
#include "play.h"

/* What the scripted model tells per request: 11 + 5 + 7 tokens in, 9 out. */
#define ONE_REQUEST                                                                                \
	{                                                                                          \
		23, 7, 9, 0, 0.0002504                                                             \
	}
#define TWO_REQUESTS                                                                               \
	{                                                                                          \
		46, 14, 18, 0, 0.0005008                                                           \
	}

/* clang-format off */
static struct recording rows[] = {
	/* .text is set by big_begin. */
	{ .name = "big", .verdict = SBA_VERDICT_OK, .session = "8932a2b8-78f1-41c7-9431-c7653a43a941", .usage = ONE_REQUEST },
	{ .name = "authtoken", .verdict = SBA_VERDICT_OK, .session = "841b3570-fe59-4bc6-8dfa-c224a1988461", .text = "Pong. users=1", .usage = ONE_REQUEST },
	{ .name = "bare", .verdict = SBA_VERDICT_OK, .session = "379ea1d0-e47c-4630-860d-c2993f3094cd", .text = "x", .usage = ONE_REQUEST },
	{ .name = "bg-bash", .exit_status = 137, .verdict = SBA_VERDICT_OK, .session = "edfb556d-2dfe-4d67-a590-83259da68d69", .text = "Pong. users=1", .tools = "bash=ok", .usage = TWO_REQUESTS },
	{ .name = "bg-disabled", .verdict = SBA_VERDICT_OK, .session = "73bea565-acaa-4edd-8113-12596ce69bcd", .text = "Pong. users=1", .tools = "bash=failed", .usage = TWO_REQUESTS },
	{ .name = "bg-setsid", .verdict = SBA_VERDICT_OK, .session = "198ca441-210d-48c8-9586-41ab59f9ac29", .text = "Pong. users=1", .said = "Running a command.Pong. users=1", .tools = "bash=0", .usage = TWO_REQUESTS },
	{ .name = "budget", .exit_status = 1, .verdict = SBA_VERDICT_AGENT_FAILED, .session = "4ed538f7-4072-4c86-94c2-38fd8fb0e960", .said = "Running a command.", .tools = "bash=open", .usage = ONE_REQUEST, .error = "Reached maximum budget" },
	{ .name = "conc-A", .verdict = SBA_VERDICT_OK, .session = "334846bc-bfdc-4fa4-b903-71f99b2ee484", .text = "tick 0 tick 1 tick 2 tick 3 ", .usage = ONE_REQUEST },
	{ .name = "conc-B", .verdict = SBA_VERDICT_OK, .session = "334846bc-bfdc-4fa4-b903-71f99b2ee484", .text = "tick 0 tick 1 tick 2 tick 3 ", .usage = ONE_REQUEST },
	{ .name = "conc-after", .verdict = SBA_VERDICT_OK, .session = "334846bc-bfdc-4fa4-b903-71f99b2ee484", .text = "x", .usage = ONE_REQUEST },
	{ .name = "configdir", .verdict = SBA_VERDICT_OK, .session = "bfbe4ba0-93b7-488e-b849-72b9004f76cd", .text = "Pong. users=1", .said = "Running a command.Pong. users=1", .tools = "bash=0", .usage = TWO_REQUESTS },
	{ .name = "dashdash", .verdict = SBA_VERDICT_OK, .session = "9d8fa390-26c0-44ce-9d6f-998de07f3c39", .text = "ok", .usage = ONE_REQUEST },
	{ .name = "err-400", .exit_status = 1, .verdict = SBA_VERDICT_MODEL_ERROR, .session = "0468d1ac-5476-4c34-bba2-a80991caee43", .error = "API Error: 400 scripted 400", .http_status = 400 },
	{ .name = "err-401", .exit_status = 1, .verdict = SBA_VERDICT_MODEL_ERROR, .session = "c0a58512-4c86-4d3e-a582-9f4999c45775", .error = "Invalid API key", .http_status = 401, .notices = 10 },
	{ .name = "err-413", .exit_status = 1, .verdict = SBA_VERDICT_MODEL_ERROR, .session = "ecf41a28-c5cd-4213-84da-82f306844047", .error = "Request too large", .http_status = 413 },
	{ .name = "err-429-r0", .exit_status = 1, .verdict = SBA_VERDICT_MODEL_ERROR, .session = "bfe118ea-0a41-4623-b2f0-79ba7465cbd8", .error = "(429)", .http_status = 429, .retryable = true },
	{ .name = "err-429-r1", .exit_status = 1, .verdict = SBA_VERDICT_MODEL_ERROR, .session = "e6725eec-50ba-4bab-9aed-5cfeffbf35ce", .error = "(429)", .http_status = 429, .retryable = true, .notices = 1 },
	{ .name = "err-500-r0", .exit_status = 1, .verdict = SBA_VERDICT_MODEL_ERROR, .session = "83fc0cb1-a03f-4f95-ae0b-d686762e4336", .error = "API Error: 500", .http_status = 500, .retryable = true },
	{ .name = "err-529-r0", .exit_status = 1, .verdict = SBA_VERDICT_MODEL_ERROR, .session = "af6eaad0-0bdc-421a-bf45-dac489fb6931", .error = "API Error: 529", .http_status = 529, .retryable = true },
	{ .name = "err-drop-nofallback", .exit_status = 1, .verdict = SBA_VERDICT_MODEL_ERROR, .session = "0e021502-a676-4964-a029-2353a08748a6", .error = "ECONNRESET", .retryable = true },
	{ .name = "err-model404", .exit_status = 1, .verdict = SBA_VERDICT_MODEL_ERROR, .session = "a5d8df7c-ece9-496b-a639-ff1f762b89e8", .error = "nosuch-model", .http_status = 404 },
	{ .name = "err-resume-badid", .exit_status = 1, .verdict = SBA_VERDICT_AGENT_FAILED, .error = "is not a UUID" },
	{ .name = "err-resume-missing", .exit_status = 1, .verdict = SBA_VERDICT_AGENT_FAILED, .error = "No conversation found with session ID" },
	{ .name = "err-sseerr", .verdict = SBA_VERDICT_OK, .session = "24d2c89e-0b9f-4c2d-b702-423b9272ff68", .text = "x", .usage = { 46, 14, 10, 0, 0.0002504 } },
	{ .name = "err-stall-timeout", .exit_status = 137, .verdict = SBA_VERDICT_AGENT_FAILED, .session = "96d45527-b0a7-4539-8689-87cd4b438990", .error = "claude was ended by signal 9", .notices = 1 },
	{ .name = "err-stall-watchdog", .verdict = SBA_VERDICT_OK, .session = "0e671581-e880-4d74-aeda-54942932d651", .text = "x", .usage = { 46, 14, 10, 0, 0.0003408 } },
	{ .name = "err-unreachable-r2", .exit_status = 1, .verdict = SBA_VERDICT_MODEL_ERROR, .session = "34b895b1-fdc0-489d-97a0-5a92241424de", .error = "ECONNREFUSED", .retryable = true, .notices = 2 },
	{ .name = "hello", .verdict = SBA_VERDICT_OK, .session = "a14398c9-b1e2-45db-80fd-ba373a3597b3", .text = "Pong. users=1", .usage = ONE_REQUEST },
	{ .name = "maxtok", .verdict = SBA_VERDICT_OK, .session = "27719f38-3eb7-4a3f-adda-5cb75d5215fb", .text = "Pong. users=2", .said = "cut offPong. users=2", .usage = TWO_REQUESTS },
	{ .name = "maxturns1", .exit_status = 1, .verdict = SBA_VERDICT_AGENT_FAILED, .session = "f81d4e1f-1cb7-4fa0-ab82-eed36bb2223e", .said = "Running a command.", .tools = "bash=0", .usage = ONE_REQUEST, .error = "Reached maximum number of turns (1)" },
	{ .name = "mcp-project-file", .verdict = SBA_VERDICT_OK, .session = "83f9a095-d0bb-41b8-a9d5-2d14575315b3", .text = "Pong. users=1", .tools = "mcp:demo.pingtool=ok", .usage = TWO_REQUESTS },
	{ .name = "mcp", .verdict = SBA_VERDICT_OK, .session = "f7ef0b0e-5528-4efa-8f47-851e6dc94a68", .text = "Pong. users=1", .tools = "mcp:demo.pingtool=ok", .usage = TWO_REQUESTS },
	{ .name = "min-1", .verdict = SBA_VERDICT_OK, .session = "ac79492d-88fd-4974-9ab6-eec8be80aedb", .text = "minimal", .usage = { 1, 0, 1, 0, 0.000024 } },
	{ .name = "min-2", .verdict = SBA_VERDICT_OK, .session = "f23f30c7-fef1-4872-8853-15b217b03df5", .text = "Pong. users=1", .usage = ONE_REQUEST },
	{ .name = "min-3", .verdict = SBA_VERDICT_OK, .session = "ba0d4c7b-a12c-4edb-bd6e-5ee6dd776d5e", .text = "minimal", .usage = { 0, 0, 1, 0, 0.00002 } },
	{ .name = "min-4", .verdict = SBA_VERDICT_OK, .session = "5226ed4c-d3b6-404d-8c17-0f31084e0a4c", .text = "minimal", .usage = { 1, 0, 2, 0, 0.000044 } },
	{ .name = "min-5", .verdict = SBA_VERDICT_OK, .session = "f1566ad4-9026-4479-b591-cde05c4d7614", .text = "minimal", .usage = { 1, 0, 1, 0, 0.000024 } },
	{ .name = "model-alias", .verdict = SBA_VERDICT_OK, .session = "618eb92c-84f9-44f8-9b1c-237f60127f6e", .text = "Pong. users=1", .usage = { 23, 7, 9, 0, 0.0001252 } },
	{ .name = "model-custom", .verdict = SBA_VERDICT_OK, .session = "76d05f3e-323a-4501-97b9-68d45345392c", .text = "Pong. users=1", .usage = ONE_REQUEST },
	{ .name = "model-env", .verdict = SBA_VERDICT_OK, .session = "46e45da4-c4f8-4a27-afb6-c4322de49d0d", .text = "Pong. users=1", .usage = ONE_REQUEST },
	{ .name = "nohome", .verdict = SBA_VERDICT_OK, .session = "1a06b5c4-b840-4f2c-909f-014bc349c345", .text = "hi", .usage = ONE_REQUEST },
	{ .name = "nokey", .exit_status = 1, .verdict = SBA_VERDICT_MODEL_ERROR, .session = "3b1af854-5f46-4236-af69-12476bbe3d2c", .error = "Not logged in" },
	{ .name = "nonroot", .verdict = SBA_VERDICT_OK, .session = "4df6022c-08cc-4b5f-8a13-265bebf48d5d", .text = "Pong. users=1", .said = "Running a command.Pong. users=1", .tools = "bash=0", .usage = TWO_REQUESTS },
	{ .name = "nopersist", .verdict = SBA_VERDICT_OK, .session = "8a4a17a3-2f4e-4edb-a439-3ac2cb917e66", .text = "Pong. users=1", .usage = ONE_REQUEST },
	{ .name = "only-agents", .verdict = SBA_VERDICT_OK, .session = "1084b3d2-8847-4be6-a9c4-c5fcbfbaa997", .text = "x", .usage = ONE_REQUEST },
	{ .name = "perm-denied", .verdict = SBA_VERDICT_OK, .session = "93318eac-a040-4abd-a48f-8ef85783ba2e", .text = "Pong. users=1", .said = "Running a command.Pong. users=1", .tools = "bash=failed", .usage = TWO_REQUESTS, .notices = 1 },
	{ .name = "refuse", .verdict = SBA_VERDICT_OK, .session = "71cc9042-6082-4a24-bed9-88290f2e0b67", .text = "Pong. users=2", .said = "noPong. users=2", .usage = TWO_REQUESTS, .notices = 1 },
	{ .name = "resume-stdin", .verdict = SBA_VERDICT_OK, .session = "77d7bac7-9ba9-427e-8956-d7211efb1709", .text = "ok", .usage = ONE_REQUEST },
	{ .name = "resume-truncated", .verdict = SBA_VERDICT_OK, .session = "11111111-2222-4333-8444-555555555555", .text = "ok", .usage = ONE_REQUEST },
	{ .name = "retry-after3", .verdict = SBA_VERDICT_OK, .session = "1a8b6401-6d65-4953-be44-1c85748bf92f", .text = "Pong. users=1", .usage = ONE_REQUEST, .notices = 1 },
	{ .name = "root-nosandbox", .exit_status = 1, .verdict = SBA_VERDICT_AGENT_FAILED, .error = "cannot be used with root", .stderr_tail = "--dangerously-skip-permissions cannot be used with root\n" },
	{ .name = "s1-first", .verdict = SBA_VERDICT_OK, .session = "11111111-2222-4333-8444-555555555555", .text = "one", .usage = ONE_REQUEST },
	{ .name = "s2-resume", .verdict = SBA_VERDICT_OK, .session = "11111111-2222-4333-8444-555555555555", .text = "two", .usage = ONE_REQUEST },
	{ .name = "s3-fork-side", .verdict = SBA_VERDICT_OK, .session = "ed1a9ac8-498d-4f29-a2b8-da6bedbf80dc", .text = "three", .usage = ONE_REQUEST },
	{ .name = "s4-fork-nopersist", .verdict = SBA_VERDICT_OK, .session = "1f5b40bb-a280-4b74-a927-9cf97717b870", .text = "four", .usage = ONE_REQUEST },
	{ .name = "s5-resume-nopersist", .verdict = SBA_VERDICT_OK, .session = "11111111-2222-4333-8444-555555555555", .text = "five", .usage = ONE_REQUEST },
	{ .name = "s6-continue", .verdict = SBA_VERDICT_OK, .session = "ed1a9ac8-498d-4f29-a2b8-da6bedbf80dc", .text = "six", .usage = ONE_REQUEST },
	{ .name = "s7-resume-main", .verdict = SBA_VERDICT_OK, .session = "11111111-2222-4333-8444-555555555555", .text = "seven", .usage = ONE_REQUEST },
	{ .name = "s8-sameid", .exit_status = 1, .verdict = SBA_VERDICT_AGENT_FAILED, .error = "already in use", .stderr_tail = "Error: Session ID is already in use.\n" },
	{ .name = "sig-INT-bash-resume", .verdict = SBA_VERDICT_OK, .session = "9ca42b02-e90c-4276-acc6-214f3e94632c", .text = "ok", .usage = ONE_REQUEST },
	{ .name = "sig-INT-bash", .verdict = SBA_VERDICT_AGENT_FAILED, .session = "9ca42b02-e90c-4276-acc6-214f3e94632c", .said = "Running a command.", .tools = "bash=failed", .usage = ONE_REQUEST, .error = "interrupted" },
	{ .name = "sig-INT-resume", .verdict = SBA_VERDICT_OK, .session = "0bbef93b-b273-4c85-94e9-d8442c839bee", .text = "ok", .usage = ONE_REQUEST },
	{ .name = "sig-INT-text", .verdict = SBA_VERDICT_AGENT_FAILED, .session = "0bbef93b-b273-4c85-94e9-d8442c839bee", .text = "tick 0 tick 1 tick 2 tick 3 tick 4 ", .usage = { 23, 7, 12, 0, 0.0003104 }, .error = "interrupted" },
	{ .name = "sig-KILL-bash-resume", .verdict = SBA_VERDICT_OK, .session = "311613f1-4473-4ceb-b3af-29b78475ee47", .text = "ok", .usage = ONE_REQUEST },
	{ .name = "sig-KILL-bash", .exit_status = 137, .verdict = SBA_VERDICT_AGENT_FAILED, .session = "311613f1-4473-4ceb-b3af-29b78475ee47", .said = "Running a command.", .tools = "bash=open", .error = "claude was ended by signal 9" },
	{ .name = "sig-KILL-resume", .verdict = SBA_VERDICT_OK, .session = "1dc13430-271e-4d0e-b16d-c0f3626dfbad", .text = "ok", .usage = ONE_REQUEST },
	{ .name = "sig-KILL-text", .exit_status = 137, .verdict = SBA_VERDICT_AGENT_FAILED, .session = "1dc13430-271e-4d0e-b16d-c0f3626dfbad", .text = "tick 0 tick 1 tick 2 tick 3 tick 4 ", .error = "claude was ended by signal 9" },
	{ .name = "sig-TERM-bash-resume", .verdict = SBA_VERDICT_OK, .session = "365950c7-3ea9-4aea-8493-3e55e0687ea9", .text = "ok", .usage = ONE_REQUEST },
	{ .name = "sig-TERM-bash", .exit_status = 143, .verdict = SBA_VERDICT_AGENT_FAILED, .session = "365950c7-3ea9-4aea-8493-3e55e0687ea9", .said = "Running a command.", .tools = "bash=137", .error = "claude was ended by signal 15" },
	{ .name = "sig-TERM-resume", .verdict = SBA_VERDICT_OK, .session = "d3c63b6f-daff-45b4-bad2-26ca46bbc9ff", .text = "ok", .usage = ONE_REQUEST },
	{ .name = "sig-TERM-text", .exit_status = 143, .verdict = SBA_VERDICT_AGENT_FAILED, .session = "d3c63b6f-daff-45b4-bad2-26ca46bbc9ff", .text = "tick 0 tick 1 tick 2 tick 3 tick 4 ", .error = "claude was ended by signal 15" },
	{ .name = "skill-tool", .verdict = SBA_VERDICT_OK, .session = "ae12f6d9-84c8-4db6-b7c2-f77ec94fd6d6", .text = "Pong. users=2", .tools = "skill=ok", .usage = TWO_REQUESTS },
	{ .name = "skills", .verdict = SBA_VERDICT_OK, .session = "b497375e-cbb2-404c-b14b-a6bee10ba5d5", .text = "x", .usage = ONE_REQUEST },
	{ .name = "slash-skill", .verdict = SBA_VERDICT_OK, .session = "2539d97e-2f2c-46df-9f12-12df14a8fac0", .text = "x", .usage = ONE_REQUEST },
	{ .name = "stdin-300k", .verdict = SBA_VERDICT_OK, .session = "61f2de81-f959-40d0-9cbe-dfea69268b2b", .text = "ok", .usage = ONE_REQUEST },
	{ .name = "stdin-badutf", .verdict = SBA_VERDICT_OK, .session = "afacd123-e26a-442f-8e46-10d1661de693", .text = "ok", .usage = ONE_REQUEST },
	{ .name = "stdin-dashprompt", .verdict = SBA_VERDICT_OK, .session = "2842d411-5df2-4f85-86de-7e3474f7369f", .text = "ok", .usage = ONE_REQUEST },
	{ .name = "stdin-empty", .exit_status = 1, .verdict = SBA_VERDICT_AGENT_FAILED, .error = "Input must be provided", .stderr_tail = "Error: Input must be provided\n" },
	{ .name = "stdin-noarg", .verdict = SBA_VERDICT_OK, .session = "ecb3f0a4-d534-476c-9456-399d46889144", .text = "ok", .usage = ONE_REQUEST },
	{ .name = "stdin-nul", .verdict = SBA_VERDICT_OK, .session = "31db1ad2-1834-4682-b73c-5840fe132409", .text = "ok", .usage = ONE_REQUEST },
	{ .name = "stdin-open-arg", .verdict = SBA_VERDICT_OK, .session = "a094cc5f-3b0a-4145-89bd-1a7a96ba1ed4", .text = "ok", .usage = ONE_REQUEST },
	{ .name = "stdin-plus-arg", .verdict = SBA_VERDICT_OK, .session = "e77f2bc6-3cb0-47e8-920b-0464b36beb57", .text = "ok", .usage = ONE_REQUEST },
	{ .name = "stdin-slash", .verdict = SBA_VERDICT_OK, .session = "6f4d6855-e4e1-4144-8168-194e05c28b6f", .text = "ok", .usage = ONE_REQUEST },
	{ .name = "stream-json-input", .verdict = SBA_VERDICT_OK, .session = "45c4cc81-69df-4cd1-8bc7-400f29ad24fe", .text = "three", .said = "onetick 0 tick 1 tick 2 three", .usage = { 69, 21, 25, 0, 0.0007112 }, .notices = 1, .unknown_lines = 1 },
	{ .name = "subagent-fg", .verdict = SBA_VERDICT_OK, .session = "9d5f3e32-69e1-4634-a1c5-65c42e1566d4", .text = "Pong. users=1", .tools = "task=ok", .usage = { 69, 21, 27, 0, 0.0007512 } },
	{ .name = "sysprompt-replace", .verdict = SBA_VERDICT_OK, .session = "9b6531d7-9272-4cc9-ac65-b7063f0e8c13", .text = "x", .usage = ONE_REQUEST },
	{ .name = "sysprompt", .verdict = SBA_VERDICT_OK, .session = "7e719e1e-a8cd-4c67-82a3-30742fc6e817", .text = "x", .usage = ONE_REQUEST },
	{ .name = "think", .verdict = SBA_VERDICT_OK, .session = "0e1d12ab-090a-4dbd-8992-987d263ce248", .text = "Thought about it: done.", .usage = ONE_REQUEST, .thought = "Let me think about it. Step one; step two." },
	{ .name = "tool-bash", .cut_everywhere = true, .verdict = SBA_VERDICT_OK, .session = "c7edf81d-6ede-494e-b8f7-38ddbac42841", .text = "Pong. users=1", .said = "Running a command.Pong. users=1", .tools = "bash=0", .usage = TWO_REQUESTS },
	{ .name = "tool-fail", .verdict = SBA_VERDICT_OK, .session = "89596ae2-c270-4bae-b120-be74165603fd", .text = "Pong. users=1", .tools = "bash=3", .usage = TWO_REQUESTS },
	{ .name = "tool-unknown", .verdict = SBA_VERDICT_OK, .session = "4ebde0d6-6c79-4688-82ff-44d447d9a48d", .text = "Pong. users=1", .tools = "NoSuchTool=failed", .usage = TWO_REQUESTS },
	{ .name = "tool-write-read-edit", .verdict = SBA_VERDICT_OK, .session = "28b46bf1-641f-49bb-b8ae-38555ec6102d", .text = "Pong. users=1", .tools = "write=ok read=ok edit=ok", .usage = { 92, 28, 36, 0, 0.0010016 }, .files = "created /workspace/w.txt;modified /workspace/w.txt;" },
	{ .name = "tools-limited", .verdict = SBA_VERDICT_OK, .session = "883ead6a-d4cb-4580-a154-999050eb4234", .text = "Pong. users=1", .usage = ONE_REQUEST },
	{ .name = "xfer-bypath", .verdict = SBA_VERDICT_OK, .session = "481b7de0-eb29-4977-8826-734ede5cbed1", .text = "ok", .usage = ONE_REQUEST },
	{ .name = "xfer-othercwd-movedir", .verdict = SBA_VERDICT_OK, .session = "11111111-2222-4333-8444-555555555555", .text = "ok", .usage = ONE_REQUEST },
	{ .name = "xfer-othercwd-origdir", .verdict = SBA_VERDICT_OK, .session = "11111111-2222-4333-8444-555555555555", .text = "ok", .usage = ONE_REQUEST },
	{ .name = "xfer-renamed", .verdict = SBA_VERDICT_OK, .session = "99999999-2222-4333-8444-555555555555", .text = "ok", .usage = ONE_REQUEST },
	{ .name = "xfer-same-cwd", .verdict = SBA_VERDICT_OK, .session = "11111111-2222-4333-8444-555555555555", .text = "ok", .usage = ONE_REQUEST },
};
/* clang-format on */

#define INIT "{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"s-1\"}"
#define TEXT(id, text)                                                                             \
	"{\"type\":\"assistant\",\"session_id\":\"s-1\",\"message\":{\"id\":\"" id                 \
	"\",\"content\":[{\"type\":\"text\",\"text\":\"" text "\"}]}}"
#define DELTA(text)                                                                                \
	"{\"type\":\"stream_event\",\"event\":{\"type\":\"content_block_delta\",\"index\":0,"      \
	"\"delta\":{\"type\":\"text_delta\",\"text\":\"" text "\"}}}"
#define BLOCK "{\"type\":\"stream_event\",\"event\":{\"type\":\"content_block_start\"}}"
#define RESULT(text)                                                                               \
	"{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"" text       \
	"\",\"usage\":{\"input_tokens\":3,\"output_tokens\":2}}"

/* The table cannot hold a text of 200 kB. */
static char big_text[200001];

static int big_begin(void **state)
{
	(void)state;
	memset(big_text, 'x', sizeof(big_text) - 1);
	rows[0].text = big_text;
	return 0;
}

static void check(void **state)
{
	recording_check("claude", *state);
}

static void cut(void **state)
{
	recording_cut("claude", *state);
}

static void every_recording_is_a_row(void **state)
{
	(void)state;
	recording_all_are_rows("claude", rows, SBA_ARRAY_LEN(rows));
}

/* Feeds a NULL-terminated list. */
static void feed(struct play *p, const char *const *lines)
{
	for (; *lines; lines++)
		play_line(p, *lines);
}

static void whole_text_goes_on_where_its_deltas_were_cut(void **state)
{
	struct play p;
	(void)state;
	play_begin(&p, "claude");
	feed(&p, (const char *[]){ INIT, BLOCK, DELTA("ab"), DELTA("cd"), TEXT("m", "abcdef"),
				   TEXT("m", "next"), RESULT("next"), NULL });
	assert_string_equal(play_str(&p.said), "abcdefnext");
	assert_string_equal(play_finish(&p, 0, "").text, "next");
	play_end(&p);
}

static void another_text_than_the_deltas_is_told_whole(void **state)
{
	struct play p;
	(void)state;
	play_begin(&p, "claude");
	feed(&p, (const char *[]){ INIT, BLOCK, DELTA("ab"), TEXT("m", "other"), RESULT("other"),
				   NULL });
	assert_string_equal(play_str(&p.said), "abother");
	assert_string_equal(play_finish(&p, 0, "").text, "other");
	play_end(&p);
}

static void the_last_of_two_results_counts(void **state)
{
	struct play p;
	(void)state;
	play_begin(&p, "claude");
	feed(&p, (const char *[]){ INIT, TEXT("m", "one"), RESULT("one"), NULL });
	assert_true(sba_stream_done(p.stream));
	play_line(&p, INIT);
	assert_false(sba_stream_done(p.stream));
	feed(&p, (const char *[]){ TEXT("n", "two"), RESULT("two"), NULL });
	struct sba_outcome o = play_finish(&p, 0, "");
	assert_string_equal(o.text, "two");
	assert_int_equal(o.usage.input, 6);
	assert_int_equal(o.usage.output, 4);
	assert_int_equal(p.n[SBA_EVENT_SESSION], 1);
	assert_int_equal(p.n[SBA_EVENT_DONE], 2);
	play_end(&p);
}

static void a_subagents_text_is_not_the_answer(void **state)
{
	struct play p;
	char tools[128];
	(void)state;
	play_begin(&p, "claude");
	feed(&p,
	     (const char *[]){
		     INIT, TEXT("m", "mine"),
		     "{\"type\":\"stream_event\",\"parent_tool_use_id\":\"t1\",\"event\":{\"type\":"
		     "\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"sub\"}}"
		     "}",
		     "{\"type\":\"assistant\",\"parent_tool_use_id\":\"t1\",\"message\":{"
		     "\"content\":["
		     "{\"type\":\"text\",\"text\":\"sub\"},{\"type\":\"tool_use\",\"id\":\"t2\","
		     "\"name\":\"Bash\",\"input\":{\"command\":\"ls\"}}]}}",
		     "{\"type\":\"user\",\"parent_tool_use_id\":\"t1\",\"message\":{\"content\":[{"
		     "\"type\":\"tool_result\",\"tool_use_id\":\"t2\",\"content\":\"\"}]}}",
		     NULL });
	struct sba_outcome o = play_finish(&p, 1, "");
	assert_string_equal(o.text, "mine");
	assert_string_equal(play_str(&p.said), "mine");
	assert_string_equal(play_str(&p.notices), "subagent: sub;");
	assert_string_equal(play_tools(&p, tools, sizeof(tools)), "bash=0");
	assert_int_equal(o.tools, 1);
	play_end(&p);
}

static struct sba_outcome outcome_of(struct play *p, const char *line, int exit_status)
{
	play_begin(p, "claude");
	feed(p, (const char *[]){ INIT, line, NULL });
	return play_finish(p, exit_status, "");
}

static void an_error_behind_subtype_success_and_exit_0_is_an_error(void **state)
{
	struct play p;
	(void)state;
	struct sba_outcome o = outcome_of(&p,
					  "{\"type\":\"result\",\"subtype\":\"success\","
					  "\"is_error\":true,\"api_error_status\":403}",
					  0);
	assert_int_equal(o.verdict, SBA_VERDICT_MODEL_ERROR);
	assert_int_equal(o.http_status, 403);
	assert_false(o.retryable);
	play_end(&p);
}

static void an_error_that_only_the_text_tells_is_an_error_when_nothing_was_used(void **state)
{
	struct play p;
	(void)state;
	struct sba_outcome o =
		outcome_of(&p,
			   "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,"
			   "\"result\":\"API Error: 403 forbidden\",\"usage\":{\"input_tokens\":0,"
			   "\"output_tokens\":0}}",
			   0);
	assert_int_equal(o.verdict, SBA_VERDICT_MODEL_ERROR);
	assert_int_equal(o.http_status, 403);
	assert_string_equal(o.text, "");
	play_end(&p);
	o = outcome_of(&p, RESULT("API Error: is what you asked about"), 0);
	assert_int_equal(o.verdict, SBA_VERDICT_OK);
	play_end(&p);
}

static void success_without_a_word_is_no_answer(void **state)
{
	struct play p;
	(void)state;
	assert_int_equal(outcome_of(&p, RESULT(""), 0).verdict, SBA_VERDICT_NO_ANSWER);
	play_end(&p);
}

static void silence_and_exit_0_is_no_answer(void **state)
{
	struct play p;
	(void)state;
	play_begin(&p, "claude");
	struct sba_outcome o = play_finish(&p, 0, "a warning\n");
	assert_int_equal(o.verdict, SBA_VERDICT_NO_ANSWER);
	assert_string_equal(o.error, "claude ended without an answer: a warning");
	play_end(&p);
}

static void text_without_a_result_is_no_success(void **state)
{
	struct play p;
	(void)state;
	struct sba_outcome o = outcome_of(&p, TEXT("m", "half"), 0);
	assert_int_equal(o.verdict, SBA_VERDICT_AGENT_FAILED);
	assert_string_equal(o.text, "half");
	play_end(&p);
}

static void an_answer_counts_though_its_process_had_to_be_killed(void **state)
{
	struct play p;
	(void)state;
	struct sba_outcome o = outcome_of(&p, RESULT("answer"), 137);
	assert_int_equal(o.verdict, SBA_VERDICT_OK);
	assert_string_equal(o.text, "answer");
	play_end(&p);
	assert_int_equal(outcome_of(&p, RESULT("answer"), 1).verdict, SBA_VERDICT_AGENT_FAILED);
	play_end(&p);
}

static void a_failed_request_that_was_got_over_does_not_fail_the_turn(void **state)
{
	struct play p;
	(void)state;
	play_begin(&p, "claude");
	feed(&p, (const char *[]){ INIT,
				   "{\"type\":\"assistant\",\"is_api_error_message\":true,"
				   "\"api_error_status\":529,\"message\":{\"content\":[{\"type\":"
				   "\"text\",\"text\":\"API Error: 529\"}]}}",
				   TEXT("m", "well"), RESULT("well"), NULL });
	struct sba_outcome o = play_finish(&p, 0, "");
	assert_int_equal(o.verdict, SBA_VERDICT_OK);
	assert_int_equal(o.http_status, 0);
	assert_int_equal(p.n[SBA_EVENT_ERROR], 1);
	play_end(&p);
}

static void unknown_lines_are_noted_and_counted(void **state)
{
	struct play p;
	(void)state;
	play_begin(&p, "claude");
	feed(&p, (const char *[]){ INIT, "{\"type\":\"tomorrow\"}",
				   "{\"type\":\"system\",\"subtype\":\"tomorrow\"}", "{\"type\":7}",
				   "{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":"
				   "\"hologram\"}]}}",
				   RESULT("x"), NULL });
	struct sba_outcome o = play_finish(&p, 0, "");
	assert_int_equal(o.verdict, SBA_VERDICT_OK);
	assert_int_equal(o.unknown_lines, 4);
	assert_int_equal(p.n[SBA_EVENT_NOTICE], 4);
	play_end(&p);
}

static bool strv_has(const struct sba_strv *v, const char *s)
{
	for (size_t i = 0; i < v->n; i++) {
		if (strcmp(v->v[i], s) == 0)
			return true;
	}
	return false;
}

static int command_of(struct sba_turn_spec spec, struct sba_command *ret)
{
	struct sba_error err;
	spec.base_url = spec.base_url ? spec.base_url : "http://h:1/";
	spec.token = spec.token ? spec.token : "secret";
	return sba_command_make(sba_driver_find("claude"), &spec, ret, &err);
}

static void a_command_keeps_the_token_out_of_argv(void **state)
{
	struct sba_command c;
	(void)state;
	assert_int_equal(command_of((struct sba_turn_spec){ .new_session = "u-1" }, &c), 0);
	for (size_t i = 0; i < c.argv.n; i++)
		assert_null(strstr(c.argv.v[i], "secret"));
	assert_string_equal(c.argv.v[0], "claude");
	assert_true(strv_has(&c.argv, "--session-id"));
	assert_true(strv_has(&c.argv, "u-1"));
	assert_false(strv_has(&c.argv, "--resume"));
	assert_true(strv_has(&c.env, "ANTHROPIC_API_KEY=secret"));
	assert_true(strv_has(&c.env, "ANTHROPIC_BASE_URL=http://h:1"));
	assert_true(strv_has(&c.env, "CLAUDE_CODE_MAX_RETRIES=2"));
	assert_true(strv_has(&c.env, "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS=1"));
	sba_command_fini(&c);
}

static void a_command_resumes_rather_than_begins(void **state)
{
	struct sba_command c;
	(void)state;
	assert_int_equal(command_of((struct sba_turn_spec){ .session = "old",
							    .new_session = "new",
							    .model = "m/1" },
				    &c),
			 0);
	assert_true(strv_has(&c.argv, "--resume"));
	assert_true(strv_has(&c.argv, "old"));
	assert_false(strv_has(&c.argv, "new"));
	assert_true(strv_has(&c.argv, "m/1"));
	sba_command_fini(&c);
}

static void a_command_refuses_what_would_be_an_option(void **state)
{
	struct sba_command c = { 0 };
	(void)state;
	assert_int_equal(command_of((struct sba_turn_spec){ .session = "--x" }, &c), SBA_EINVAL);
	assert_int_equal(command_of((struct sba_turn_spec){ .session = "a b" }, &c), SBA_EINVAL);
	assert_int_equal(command_of((struct sba_turn_spec){ .session = "" }, &c), SBA_EINVAL);
	assert_int_equal(command_of((struct sba_turn_spec){ .model = "-m" }, &c), SBA_EINVAL);
	assert_int_equal(command_of((struct sba_turn_spec){ .model = "" }, &c), SBA_EINVAL);
	assert_null(c.argv.v);
}

int main(void)
{
	static const struct CMUnitTest others[] = {
		cmocka_unit_test_setup(every_recording_is_a_row, play_limit),
		cmocka_unit_test_setup(whole_text_goes_on_where_its_deltas_were_cut, play_limit),
		cmocka_unit_test_setup(another_text_than_the_deltas_is_told_whole, play_limit),
		cmocka_unit_test_setup(the_last_of_two_results_counts, play_limit),
		cmocka_unit_test_setup(a_subagents_text_is_not_the_answer, play_limit),
		cmocka_unit_test_setup(an_error_behind_subtype_success_and_exit_0_is_an_error,
				       play_limit),
		cmocka_unit_test_setup(
			an_error_that_only_the_text_tells_is_an_error_when_nothing_was_used,
			play_limit),
		cmocka_unit_test_setup(success_without_a_word_is_no_answer, play_limit),
		cmocka_unit_test_setup(silence_and_exit_0_is_no_answer, play_limit),
		cmocka_unit_test_setup(text_without_a_result_is_no_success, play_limit),
		cmocka_unit_test_setup(an_answer_counts_though_its_process_had_to_be_killed,
				       play_limit),
		cmocka_unit_test_setup(a_failed_request_that_was_got_over_does_not_fail_the_turn,
				       play_limit),
		cmocka_unit_test_setup(unknown_lines_are_noted_and_counted, play_limit),
		cmocka_unit_test_setup(a_command_keeps_the_token_out_of_argv, play_limit),
		cmocka_unit_test_setup(a_command_resumes_rather_than_begins, play_limit),
		cmocka_unit_test_setup(a_command_refuses_what_would_be_an_option, play_limit),
	};
	struct CMUnitTest recordings[2 * SBA_ARRAY_LEN(rows)];
	recording_tests(recordings, rows, SBA_ARRAY_LEN(rows), check, cut);
	int failed = cmocka_run_group_tests_name("claude: recordings", recordings, big_begin, NULL);
	return failed + cmocka_run_group_tests_name("claude", others, NULL, NULL);
}
