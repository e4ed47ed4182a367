/* SPDX-License-Identifier: MIT */
/*
 * Codex's driver: every recording of its stream against what was measured, and
 * what no recording has. Run in the project's folder.
 */
#include "play.h"

#include "drivers/private.h"

/* clang-format off */
static struct recording rows[] = {
	/* Two turns of the other form, the second interrupted. */
	{ .name = "app-server-session", .cut_everywhere = true, .verdict = SBA_VERDICT_AGENT_FAILED, .session = "01a2282a-e06d-7870-80e6-20209ef83833", .text = "tick 0 tick 1 tick 2 tick 3 ", .said = "Thought about it: done.tick 0 tick 1 tick 2 tick 3 ", .thought = "Let me think about it.", .usage = { 30, 12, 9, 4, 0 }, .error = "interrupted" },
	{ .name = "bg-exec", .verdict = SBA_VERDICT_OK, .session = "01a2282c-61ef-7b60-b64d-579f20f4c858", .text = "Pong. users=2", .tools = "bash=open", .usage = { 60, 24, 18, 8, 0 } },
	{ .name = "bg-setsid", .verdict = SBA_VERDICT_OK, .session = "01a2282c-660d-7eb3-8b29-f639a99f5e4e", .text = "Pong. users=2", .said = "Running a command.Pong. users=2", .tools = "bash=0", .usage = { 60, 24, 18, 8, 0 } },
	/* .text is set by big_begin. */
	{ .name = "big", .verdict = SBA_VERDICT_OK, .session = "01a22816-3b18-73d1-be3a-10f1e6a7fe2a", .usage = { 30, 12, 9, 4, 0 }, .notices = 1 },
	{ .name = "builtin-baseurl", .verdict = SBA_VERDICT_OK, .session = "01a22827-4e96-7122-b74b-abfd3db0edf7", .text = "Pong. users=2", .usage = { 30, 12, 9, 4, 0 } },
	{ .name = "conc-A", .verdict = SBA_VERDICT_OK, .session = "01a22828-6a02-7072-b186-885ae342b708", .text = "tick 0 tick 1 tick 2 tick 3 ", .usage = { 60, 24, 18, 8, 0 } },
	{ .name = "conc-B", .exit_status = 1, .verdict = SBA_VERDICT_AGENT_FAILED, .error = "codex ended with exit status 1" },
	{ .name = "conc-after", .resumes = "01a22828-6a02-7072-b186-885ae342b708", .kept = "{\"input_tokens\":60,\"cached_input_tokens\":24,\"output_tokens\":18,\"reasoning_output_tokens\":8}", .verdict = SBA_VERDICT_OK, .session = "01a22828-6a02-7072-b186-885ae342b708", .text = "x", .usage = { 30, 12, 9, 4, 0 } },
	{ .name = "conc-base", .verdict = SBA_VERDICT_OK, .session = "01a22828-6a02-7072-b186-885ae342b708", .text = "b", .usage = { 30, 12, 9, 4, 0 } },
	{ .name = "dashdash", .verdict = SBA_VERDICT_OK, .session = "01a22822-31cd-7ef1-9c8a-bd4ea824162b", .text = "ok", .usage = { 30, 12, 9, 4, 0 } },
	{ .name = "env-baseurl", .exit_status = 137, .verdict = SBA_VERDICT_AGENT_FAILED, .session = "01a22827-5000-73f0-b697-2530a4101b92", .error = "codex was ended by signal 9", .notices = 7 },
	{ .name = "err-400", .exit_status = 1, .verdict = SBA_VERDICT_MODEL_ERROR, .session = "01a22820-bc6d-74c0-91bf-ee8e44a6efd5", .error = "scripted 400", .notices = 1 },
	{ .name = "err-401-r0", .exit_status = 1, .verdict = SBA_VERDICT_MODEL_ERROR, .session = "01a22820-92ae-75a0-b52e-d17b2204f0d0", .error = "unexpected status 401 Unauthorized: scripted 401, url: http://127.0.0.1:8787/v1/responses", .http_status = 401, .notices = 1 },
	{ .name = "err-401", .exit_status = 1, .verdict = SBA_VERDICT_MODEL_ERROR, .session = "01a22816-cad2-7091-a9de-98934efa9db1", .error = "unexpected status 401 Unauthorized: Incorrect API key provided, url: http://127.0.0.1:8787/v1/responses", .http_status = 401, .notices = 6 },
	{ .name = "err-429-r0", .exit_status = 1, .verdict = SBA_VERDICT_MODEL_ERROR, .session = "01a22820-9058-7d43-ab40-31472460eb00", .error = "exceeded retry limit, last status: 429 Too Many Requests", .http_status = 429, .retryable = true, .notices = 1 },
	{ .name = "err-500-r0", .exit_status = 1, .verdict = SBA_VERDICT_MODEL_ERROR, .session = "01a22820-952a-7240-900c-b38fc4434932", .error = "We’re currently experiencing high demand, which may cause temporary errors.", .retryable = true, .notices = 1 },
	{ .name = "err-500-r2s2", .exit_status = 1, .verdict = SBA_VERDICT_MODEL_ERROR, .session = "01a22820-9b09-70c3-afab-14dd871df322", .error = "We’re currently experiencing high demand, which may cause temporary errors.", .retryable = true, .notices = 3 },
	{ .name = "err-529-r0", .exit_status = 1, .verdict = SBA_VERDICT_MODEL_ERROR, .session = "01a22820-9825-7483-816e-6cb87c254f8a", .error = "unexpected status 529 <unknown status code>: scripted 529, url: http://127.0.0.1:8787/v1/responses", .http_status = 529, .retryable = true, .notices = 1 },
	{ .name = "err-drop-s0", .exit_status = 1, .verdict = SBA_VERDICT_MODEL_ERROR, .session = "01a22820-a86c-7893-9bed-9f4a348ddfec", .error = "stream disconnected before completion: Transport error: network error: error decoding response body", .retryable = true, .notices = 1 },
	{ .name = "err-failed-ctx", .exit_status = 1, .verdict = SBA_VERDICT_MODEL_ERROR, .session = "01a22820-b986-7210-85f9-ea4f7956f2ce", .error = "Codex ran out of room in the model's context window. Start a new thread or clear earlier history before retrying.", .notices = 1 },
	{ .name = "err-failed-ratelimit", .exit_status = 1, .verdict = SBA_VERDICT_MODEL_ERROR, .session = "01a22820-b640-7390-b6e3-7c12a4a19102", .error = "rate limit exceeded: scripted failure rate_limit_exceeded", .retryable = true, .notices = 1 },
	{ .name = "err-failed-server", .exit_status = 1, .verdict = SBA_VERDICT_MODEL_ERROR, .session = "01a22820-b1f9-7283-a578-f0a203533add", .error = "stream disconnected before completion: scripted failure server_error", .retryable = true, .notices = 1 },
	{ .name = "err-model404", .exit_status = 1, .verdict = SBA_VERDICT_MODEL_ERROR, .session = "01a22816-eb01-77d0-a2d6-21c86325dd1e", .error = "The model nosuch-model does not exist", .notices = 1 },
	{ .name = "err-resume-missing-args", .exit_status = 1, .verdict = SBA_VERDICT_AGENT_FAILED, .error = "codex ended with exit status 1" },
	{ .name = "err-stall-idle3s", .exit_status = 1, .verdict = SBA_VERDICT_MODEL_ERROR, .session = "01a22829-f102-75b1-8d84-7b5ad456ea9c", .error = "stream disconnected before completion: idle timeout waiting for SSE", .retryable = true },
	{ .name = "err-unreachable-nounbounded", .exit_status = 1, .verdict = SBA_VERDICT_MODEL_ERROR, .session = "01a22820-8e6f-71f0-b5d2-714b52e7c888", .error = "Connection failed: error sending request", .retryable = true, .notices = 1 },
	{ .name = "err-unreachable-r0", .exit_status = 137, .verdict = SBA_VERDICT_MODEL_ERROR, .session = "01a22816-ee88-7820-b3d5-6291e858a9c2", .error = "codex waited for the network again and again", .retryable = true, .notices = 14 },
	{ .name = "fork-after-parent-delete", .verdict = SBA_VERDICT_OK, .session = "01a22821-10ad-75b1-8c1a-3b55599640da", .text = "ok", .usage = { 150, 60, 45, 20, 0 } },
	{ .name = "fork-resume-inplace", .verdict = SBA_VERDICT_OK, .session = "01a22821-10ad-75b1-8c1a-3b55599640da", .text = "ok", .usage = { 120, 48, 36, 16, 0 } },
	{ .name = "fork-stdin", .verdict = SBA_VERDICT_OK, .session = "01a22831-2aae-7e00-b75a-3ef91d88e1f9", .text = "ok2", .usage = { 90, 36, 27, 12, 0 } },
	{ .name = "hello", .verdict = SBA_VERDICT_OK, .session = "01a22815-6550-73c3-a500-c8d83ac52f20", .text = "Pong. users=2", .usage = { 30, 12, 9, 4, 0 }, .notices = 1 },
	{ .name = "incomplete", .exit_status = 1, .verdict = SBA_VERDICT_MODEL_ERROR, .session = "01a22816-3e16-7103-a244-08f236343dc6", .text = "cut", .error = "Incomplete response returned, reason: max_output_tokens", .notices = 1 },
	{ .name = "min-1", .verdict = SBA_VERDICT_OK, .session = "01a2282f-cc48-7313-8ecc-c78aeb1009a5", .text = "minimal", .usage = { 1, 0, 1, 0, 0 } },
	{ .name = "min-2", .verdict = SBA_VERDICT_OK, .session = "01a2282f-ce1c-7ec2-9651-49ca9bf8f3e2", .text = "minimal" },
	{ .name = "min-3", .exit_status = 1, .verdict = SBA_VERDICT_MODEL_ERROR, .session = "01a2282f-cf7c-7c91-b649-cf765b93cae9", .text = "minimal", .error = "stream disconnected before completion: failed to parse ResponseCompleted: missing field `id`", .retryable = true },
	{ .name = "min-4", .verdict = SBA_VERDICT_OK, .session = "01a2282f-d0ce-7571-acf4-8f23ecc6147a", .text = "minimal" },
	{ .name = "min-5", .verdict = SBA_VERDICT_OK, .session = "01a2282f-d248-76d0-bff7-340b1ced62e7", .text = "minimal" },
	{ .name = "nodone", .verdict = SBA_VERDICT_NO_ANSWER, .session = "01a2282f-d37a-79f1-a749-66aabc0350d7", .error = "codex ended without an answer" },
	{ .name = "nokey", .exit_status = 1, .verdict = SBA_VERDICT_AGENT_FAILED, .session = "01a22829-4436-7b70-8f7c-8e6a677e178c", .error = "Missing environment variable: `DEMO_KEY`.", .notices = 1 },
	{ .name = "nonroot-config", .verdict = SBA_VERDICT_OK, .session = "01a22829-4019-7f80-9b59-cf13ffd2496b", .text = "Pong. users=2", .said = "Running a command.Pong. users=2", .tools = "bash=0", .usage = { 60, 24, 18, 8, 0 }, .notices = 1 },
	{ .name = "resume-stdin", .resumes = "01a22831-278f-7ae3-814b-38546bea43a2", .kept = "{\"input_tokens\":30,\"cached_input_tokens\":12,\"output_tokens\":9,\"reasoning_output_tokens\":4}", .verdict = SBA_VERDICT_OK, .session = "01a22831-278f-7ae3-814b-38546bea43a2", .text = "ok", .usage = { 30, 12, 9, 4, 0 } },
	{ .name = "resume-truncated", .verdict = SBA_VERDICT_OK, .session = "01a22821-079a-70a3-a66d-5cf2fb99bb55", .text = "ok", .usage = { 210, 84, 63, 28, 0 } },
	{ .name = "retry-429x2", .exit_status = 1, .verdict = SBA_VERDICT_MODEL_ERROR, .session = "01a2282a-daca-7733-b17e-401686a80a80", .error = "exceeded retry limit, last status: 429 Too Many Requests", .http_status = 429, .retryable = true },
	{ .name = "retry-500x2", .verdict = SBA_VERDICT_OK, .session = "01a2282a-dbe4-7511-80f9-44cc720185d7", .text = "Pong. users=2", .usage = { 30, 12, 9, 4, 0 } },
	{ .name = "s1-first", .verdict = SBA_VERDICT_OK, .session = "01a22821-079a-70a3-a66d-5cf2fb99bb55", .text = "one", .usage = { 30, 12, 9, 4, 0 } },
	{ .name = "s2-resume", .resumes = "01a22821-079a-70a3-a66d-5cf2fb99bb55", .kept = "{\"input_tokens\":30,\"cached_input_tokens\":12,\"output_tokens\":9,\"reasoning_output_tokens\":4}", .verdict = SBA_VERDICT_OK, .session = "01a22821-079a-70a3-a66d-5cf2fb99bb55", .text = "two", .usage = { 30, 12, 9, 4, 0 } },
	{ .name = "s3-fork", .verdict = SBA_VERDICT_OK, .session = "01a22821-10ad-75b1-8c1a-3b55599640da", .text = "three", .usage = { 90, 36, 27, 12, 0 } },
	{ .name = "s4-fork-eph", .verdict = SBA_VERDICT_OK, .session = "01a22821-1392-7753-8cb0-2c94cf48999f", .text = "four", .usage = { 90, 36, 27, 12, 0 } },
	{ .name = "s5-resume-eph", .verdict = SBA_VERDICT_OK, .session = "01a22821-079a-70a3-a66d-5cf2fb99bb55", .text = "five", .usage = { 90, 36, 27, 12, 0 } },
	{ .name = "s6-last", .verdict = SBA_VERDICT_OK, .session = "01a22821-079a-70a3-a66d-5cf2fb99bb55", .text = "six", .usage = { 120, 48, 36, 16, 0 } },
	{ .name = "s7-resume-main", .resumes = "01a22821-079a-70a3-a66d-5cf2fb99bb55", .kept = "{\"input_tokens\":120,\"cached_input_tokens\":48,\"output_tokens\":36,\"reasoning_output_tokens\":16}", .verdict = SBA_VERDICT_OK, .session = "01a22821-079a-70a3-a66d-5cf2fb99bb55", .text = "seven", .usage = { 30, 12, 9, 4, 0 } },
	{ .name = "sandbox-ww-docker", .verdict = SBA_VERDICT_OK, .session = "01a22829-4621-7763-82d3-aba1c862b52b", .text = "Pong. users=2", .said = "Running a command.Pong. users=2", .tools = "bash=1", .usage = { 60, 24, 18, 8, 0 }, .notices = 2 },
	{ .name = "sig-INT-bash-resume", .verdict = SBA_VERDICT_OK, .session = "01a22825-f731-7bf3-92cb-548c273c0182", .text = "ok", .usage = { 60, 24, 18, 8, 0 } },
	{ .name = "sig-INT-bash", .exit_status = 1, .verdict = SBA_VERDICT_AGENT_FAILED, .session = "01a22825-f731-7bf3-92cb-548c273c0182", .said = "Running a command.", .tools = "bash=open", .error = "codex ended with exit status 1" },
	{ .name = "sig-INT-text-resume", .verdict = SBA_VERDICT_OK, .session = "01a22825-bc61-7b00-a37d-90f3bd7ad52e", .text = "ok", .usage = { 30, 12, 9, 4, 0 } },
	{ .name = "sig-INT-text", .exit_status = 1, .verdict = SBA_VERDICT_AGENT_FAILED, .session = "01a22825-bc61-7b00-a37d-90f3bd7ad52e", .error = "codex ended with exit status 1" },
	{ .name = "sig-KILL-bash-resume", .verdict = SBA_VERDICT_OK, .session = "01a22826-1fc7-7170-8100-69b1af4999df", .text = "ok", .usage = { 30, 12, 9, 4, 0 } },
	{ .name = "sig-KILL-bash", .exit_status = 137, .verdict = SBA_VERDICT_AGENT_FAILED, .session = "01a22826-1fc7-7170-8100-69b1af4999df", .said = "Running a command.", .tools = "bash=open", .error = "codex was ended by signal 9" },
	{ .name = "sig-KILL-text-resume", .verdict = SBA_VERDICT_OK, .session = "01a22825-e2d0-7d00-8da4-6f7c6d2486b7", .text = "ok", .usage = { 30, 12, 9, 4, 0 } },
	{ .name = "sig-KILL-text", .exit_status = 137, .verdict = SBA_VERDICT_AGENT_FAILED, .session = "01a22825-e2d0-7d00-8da4-6f7c6d2486b7", .error = "codex was ended by signal 9" },
	{ .name = "sig-TERM-bash-resume", .verdict = SBA_VERDICT_OK, .session = "01a22826-0b7e-7fb0-a8d4-a15485c5d877", .text = "ok", .usage = { 30, 12, 9, 4, 0 } },
	{ .name = "sig-TERM-bash", .exit_status = 143, .verdict = SBA_VERDICT_AGENT_FAILED, .session = "01a22826-0b7e-7fb0-a8d4-a15485c5d877", .said = "Running a command.", .tools = "bash=open", .error = "codex was ended by signal 15" },
	{ .name = "sig-TERM-text-resume", .verdict = SBA_VERDICT_OK, .session = "01a22825-ce8a-7de1-bf61-8dab4bbd8b0f", .text = "ok", .usage = { 30, 12, 9, 4, 0 } },
	{ .name = "sig-TERM-text", .exit_status = 143, .verdict = SBA_VERDICT_AGENT_FAILED, .session = "01a22825-ce8a-7de1-bf61-8dab4bbd8b0f", .error = "codex was ended by signal 15" },
	{ .name = "skills", .verdict = SBA_VERDICT_OK, .session = "01a22821-aaa0-7653-b13b-c0d2de249f77", .text = "Pong. users=3", .usage = { 30, 12, 9, 4, 0 } },
	{ .name = "stdin-300k", .verdict = SBA_VERDICT_OK, .session = "01a22822-3510-76a3-8080-f4c251adbcd4", .text = "ok", .usage = { 30, 12, 9, 4, 0 } },
	{ .name = "stdin-badutf", .exit_status = 1, .verdict = SBA_VERDICT_AGENT_FAILED, .error = "codex ended with exit status 1" },
	{ .name = "stdin-dash", .verdict = SBA_VERDICT_OK, .session = "01a22822-2724-7752-b1fa-4ea52eb69169", .text = "ok", .usage = { 30, 12, 9, 4, 0 } },
	{ .name = "stdin-empty", .exit_status = 1, .verdict = SBA_VERDICT_AGENT_FAILED, .error = "codex ended with exit status 1" },
	{ .name = "stdin-noarg", .verdict = SBA_VERDICT_OK, .session = "01a22822-2ae7-7a41-af18-7421a1c48823", .text = "ok", .usage = { 30, 12, 9, 4, 0 } },
	{ .name = "stdin-nul", .verdict = SBA_VERDICT_OK, .session = "01a22822-37e9-7190-8bf7-26147337d2b3", .text = "ok", .usage = { 30, 12, 9, 4, 0 } },
	{ .name = "stdin-open-arg", .verdict = SBA_VERDICT_OK, .session = "01a22822-6ac0-74e2-94b7-8f6cc90eb59f", .text = "ok", .usage = { 30, 12, 9, 4, 0 } },
	{ .name = "stdin-plus-arg", .verdict = SBA_VERDICT_OK, .session = "01a22822-2e38-7491-ba31-7f7e3b93c77a", .text = "ok", .usage = { 30, 12, 9, 4, 0 } },
	{ .name = "subdir", .verdict = SBA_VERDICT_OK, .session = "01a22821-b0e0-7ec3-adc4-804c47a97e55", .text = "y", .usage = { 30, 12, 9, 4, 0 } },
	{ .name = "sys", .verdict = SBA_VERDICT_OK, .session = "01a22821-b23e-7f22-8ae6-51ef57edb2e9", .text = "y", .usage = { 30, 12, 9, 4, 0 } },
	{ .name = "think", .verdict = SBA_VERDICT_OK, .session = "01a22816-2769-75d3-b18a-f2e87129f7c1", .text = "Thought about it: done.", .usage = { 30, 12, 9, 4, 0 }, .thought = "Let me think about it.", .notices = 1 },
	{ .name = "tool-bash", .cut_everywhere = true, .verdict = SBA_VERDICT_OK, .session = "01a22816-2bd7-7cc2-987f-2a4e3748943e", .text = "Pong. users=2", .said = "Running a command.Pong. users=2", .tools = "bash=0", .usage = { 60, 24, 18, 8, 0 }, .notices = 1 },
	{ .name = "tool-fail", .verdict = SBA_VERDICT_OK, .session = "01a22816-2fed-7191-ab70-4441dc6f0876", .text = "Pong. users=2", .tools = "bash=3", .usage = { 60, 24, 18, 8, 0 }, .notices = 1 },
	{ .name = "tool-patch-unsupported", .verdict = SBA_VERDICT_OK, .session = "01a22816-3537-71b3-a4ea-4f7df8a1e70f", .text = "Pong. users=2", .usage = { 60, 24, 18, 8, 0 }, .notices = 1 },
	{ .name = "tool-unknown", .verdict = SBA_VERDICT_OK, .session = "01a22816-389d-76a1-b304-52d8adaa6d48", .text = "Pong. users=2", .usage = { 60, 24, 18, 8, 0 }, .notices = 1 },
	{ .name = "xfer-flat", .verdict = SBA_VERDICT_OK, .session = "01a22821-079a-70a3-a66d-5cf2fb99bb55", .text = "ok", .usage = { 180, 72, 54, 24, 0 } },
	{ .name = "xfer-fork-plus-parent", .verdict = SBA_VERDICT_OK, .session = "01a22821-10ad-75b1-8c1a-3b55599640da", .text = "ok", .usage = { 120, 48, 36, 16, 0 } },
	{ .name = "xfer-fork", .verdict = SBA_VERDICT_OK, .session = "01a22825-cabf-7832-889b-15ae9dd59adf", .text = "ok", .usage = { 210, 84, 63, 28, 0 } },
	{ .name = "xfer-forkfile-only", .exit_status = 1, .verdict = SBA_VERDICT_AGENT_FAILED, .error = "codex ended with exit status 1" },
	{ .name = "xfer-othercwd-last", .verdict = SBA_VERDICT_OK, .session = "01a22821-079a-70a3-a66d-5cf2fb99bb55", .text = "ok", .usage = { 210, 84, 63, 28, 0 } },
	{ .name = "xfer-othercwd", .verdict = SBA_VERDICT_OK, .session = "01a22821-079a-70a3-a66d-5cf2fb99bb55", .text = "ok", .usage = { 180, 72, 54, 24, 0 } },
	{ .name = "xfer-rollout-only", .verdict = SBA_VERDICT_OK, .session = "01a22821-079a-70a3-a66d-5cf2fb99bb55", .text = "ok", .usage = { 180, 72, 54, 24, 0 } },
};
/* clang-format on */

static void big_begin(void)
{
	static char text[200001];
	memset(text, 'x', sizeof(text) - 1);
	for (size_t i = 0; i < SBA_ARRAY_LEN(rows); i++) {
		if (strcmp(rows[i].name, "big") == 0)
			rows[i].text = text;
	}
}

static void check(void **state)
{
	recording_check("codex", *state);
}

static void cut(void **state)
{
	recording_cut("codex", *state);
}

static void every_recording_is_a_row(void **state)
{
	(void)state;
	recording_all_are_rows("codex", rows, SBA_ARRAY_LEN(rows));
}

/* Begins and feeds a NULL-terminated list. */
static void play(struct play *p, const char *const *lines)
{
	play_begin(p, "codex");
	for (; *lines; lines++)
		play_line(p, *lines);
}

#define ITEM(when, item) "{\"type\":\"item." when "\",\"item\":{\"id\":\"item_1\"," item "}}"
#define TEXT(text)       ITEM("completed", "\"type\":\"agent_message\",\"text\":\"" text "\"")
#define COMPLETED(n)                                                                               \
	"{\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":" n ",\"output_tokens\":" n "}}"
#define ERROR(text)  "{\"type\":\"error\",\"message\":\"" text "\"}"
#define FAILED(text) "{\"type\":\"turn.failed\",\"error\":{\"message\":\"" text "\"}}"

static void a_reconnect_that_was_got_over_does_not_fail_the_turn(void **state)
{
	struct play p;
	(void)state;
	play(&p, (const char *[]){ ERROR("Reconnecting... 1/5 (unexpected status 500)"), TEXT("hi"),
				   ERROR("something"), COMPLETED("5"), NULL });
	assert_true(sba_stream_done(p.stream));
	struct sba_outcome o = play_finish(&p, 0, "");
	assert_int_equal(o.verdict, SBA_VERDICT_OK);
	assert_int_equal(o.http_status, 0);
	assert_int_equal(p.n[SBA_EVENT_NOTICE], 1);
	play_end(&p);
}

static void a_failure_that_is_told_twice_is_one(void **state)
{
	struct play p;
	(void)state;
	play(&p, (const char *[]){ ERROR("unexpected status 403 Forbidden: no"),
				   FAILED("unexpected status 403 Forbidden: no"), NULL });
	assert_int_equal(p.n[SBA_EVENT_ERROR], 1);
	struct sba_outcome o = play_finish(&p, 0, "");
	assert_int_equal(o.verdict, SBA_VERDICT_MODEL_ERROR);
	assert_int_equal(o.http_status, 403);
	assert_false(o.retryable);
	play_end(&p);
}

static void waiting_for_the_network_for_ever_is_a_loop(void **state)
{
	struct play p;
	(void)state;
	play(&p, (const char *[]){ NULL });
	for (int i = 0; i < 5; i++) {
		assert_false(sba_stream_stuck(p.stream));
		play_line(&p, ERROR("Reconnecting... waiting for network (refused)"));
	}
	assert_true(sba_stream_stuck(p.stream));
	assert_int_equal(play_finish(&p, 137, "").verdict, SBA_VERDICT_MODEL_ERROR);
	play_end(&p);
}

static void the_last_message_is_the_answer(void **state)
{
	struct play p;
	(void)state;
	play(&p, (const char *[]){ TEXT("I will"), TEXT("done"), COMPLETED("1"), NULL });
	assert_string_equal(play_finish(&p, 0, "").text, "done");
	assert_string_equal(play_str(&p.said), "I willdone");
	play_end(&p);
}

static void a_turn_without_its_end_is_no_success(void **state)
{
	struct play p;
	(void)state;
	play(&p, (const char *[]){ TEXT("half"), NULL });
	assert_false(sba_stream_done(p.stream));
	assert_int_equal(play_finish(&p, 0, "").verdict, SBA_VERDICT_AGENT_FAILED);
	play_end(&p);
}

static void changes_of_files_are_told_each(void **state)
{
	struct play p;
	char tools[128];
	(void)state;
	play(&p,
	     (const char *[]){
		     ITEM("started", "\"type\":\"file_change\",\"changes\":[{\"path\":\"/w/a\","
				     "\"kind\":\"add\"}],\"status\":\"in_progress\""),
		     ITEM("completed", "\"type\":\"file_change\",\"changes\":[{\"path\":\"/w/a\","
				       "\"kind\":\"add\"}],\"status\":\"completed\""),
		     ITEM("completed", "\"type\":\"file_change\",\"changes\":[{\"path\":\"/w/b\","
				       "\"kind\":\"update\"},{\"path\":\"/w/c\",\"kind\":"
				       "\"delete\"}],\"status\":\"completed\""),
		     ITEM("completed", "\"type\":\"file_change\",\"changes\":[{\"path\":\"/w/d\","
				       "\"kind\":\"update\"}],\"status\":\"failed\""),
		     NULL });
	assert_string_equal(play_str(&p.files), "created /w/a;modified /w/b;deleted /w/c;");
	assert_string_equal(play_tools(&p, tools, sizeof(tools)), "write=ok edit=ok edit=failed");
	assert_string_equal(play_str(&p.summaries), "/w/a;/w/b;/w/d;");
	play_end(&p);
}

static void tools_have_common_names_and_keep_their_own(void **state)
{
	struct play p;
	char tools[128];
	(void)state;
	play(&p,
	     (const char *[]){
		     ITEM("started", "\"type\":\"mcp_tool_call\",\"server\":\"demo\",\"tool\":"
				     "\"ping\",\"arguments\":{\"q\":1},\"status\":\"in_progress\""),
		     ITEM("completed", "\"type\":\"mcp_tool_call\",\"server\":\"demo\",\"tool\":"
				       "\"ping\",\"arguments\":{\"q\":1},\"result\":{\"content\":[{"
				       "\"type\":\"text\",\"text\":\"pong\"}]},\"status\":"
				       "\"completed\""),
		     ITEM("completed", "\"type\":\"mcp_tool_call\",\"server\":\"demo\",\"tool\":"
				       "\"ping\",\"error\":{\"message\":\"no\"},\"status\":"
				       "\"failed\""),
		     ITEM("completed", "\"type\":\"web_search\",\"query\":\"cats\""),
		     ITEM("completed", "\"type\":\"todo_list\",\"items\":[]"), NULL });
	assert_string_equal(play_tools(&p, tools, sizeof(tools)),
			    "mcp:demo.ping=ok mcp:demo.ping=failed web_search=ok todo=ok");
	assert_string_equal(p.calls[0].native, "mcp__demo__ping");
	play_end(&p);
}

static void unknown_lines_are_noted_and_counted(void **state)
{
	struct play p;
	(void)state;
	play(&p,
	     (const char *[]){ "{\"type\":\"tomorrow\"}", "{}",
			       ITEM("completed", "\"type\":\"new\""), ITEM("completed", "\"x\":1"),
			       "no json", ERROR("\\u0000x"), "{\"type\":\"error\"}", NULL });
	assert_int_equal(play_finish(&p, 0, "").unknown_lines, 6);
	play_end(&p);
}

static void commands_are_told_without_the_shell_around_them(void **state)
{
	static const struct {
		const char *line, *script;
	} cases[] = {
		{ "/bin/bash -lc 'echo hi; exit 3'", "echo hi; exit 3" },
		{ "/bin/bash -lc \"printf 'a\\\\n' > \\\"x\\\"\"", "printf 'a\\n' > \"x\"" },
		{ "bash -lc ls", "ls" },
		{ "/usr/bin/zsh -c 'it'\\''s'", "it's" },
		{ "/bin/bash -lc 'a' b", "/bin/bash -lc 'a' b" },
		{ "/bin/bash -lc 'open", "/bin/bash -lc 'open" },
		{ "/bin/bash -lc $(x)", "/bin/bash -lc $(x)" },
		{ "/bin/bash -lc ", "/bin/bash -lc " },
		{ "python3 -c 'x'", "python3 -c 'x'" },
		{ "", "" },
	};
	(void)state;
	for (size_t i = 0; i < SBA_ARRAY_LEN(cases); i++) {
		struct sba_buf b = SBA_BUF_INIT(1000);
		sba_codex_script(&b, cases[i].line);
		assert_string_equal(play_str(&b), cases[i].script);
		sba_buf_fini(&b);
	}
}

/* ---- tokens: the CLI tells the session's, we the turn's ---- */

static void begin_resumed(struct play *p, const char *kept)
{
	play_begin_with(p, &(struct sba_stream_options){ .driver = sba_driver_find("codex"),
							 .resumes = "t-1",
							 .kept = kept });
}

static void each_turn_has_its_own_tokens(void **state)
{
	struct play p;
	char kept[1100];
	(void)state;
	play(&p, (const char *[]){ TEXT("a"), COMPLETED("100"), NULL });
	assert_int_equal(play_finish(&p, 0, "").usage.input, 100);
	snprintf(kept, sizeof(kept), "%s", sba_stream_kept(p.stream));
	play_end(&p);
	begin_resumed(&p, kept);
	play_line(&p, TEXT("b"));
	play_line(&p, COMPLETED("130"));
	struct sba_outcome o = play_finish(&p, 0, "");
	assert_int_equal(o.usage.input, 30);
	assert_int_equal(o.usage.output, 30);
	assert_int_equal(p.usage.input, 30);
	play_end(&p);
}

static void a_first_turn_that_fails_leaves_its_tokens_to_the_next(void **state)
{
	struct play p;
	char kept[1100];
	(void)state;
	play(&p,
	     (const char *[]){ "{\"type\":\"thread.started\",\"thread_id\":\"t-1\"}",
			       "{\"type\":\"turn.failed\",\"error\":{\"message\":\"no\"}}", NULL });
	assert_int_equal(play_finish(&p, 1, "").usage.input, 0);
	assert_non_null(sba_stream_kept(p.stream));
	snprintf(kept, sizeof(kept), "%s", sba_stream_kept(p.stream));
	play_end(&p);
	begin_resumed(&p, kept);
	play_line(&p, "{\"type\":\"thread.started\",\"thread_id\":\"t-1\"}");
	play_line(&p, TEXT("b"));
	play_line(&p, COMPLETED("130"));
	assert_int_equal(play_finish(&p, 0, "").usage.input, 130);
	assert_int_equal(p.n[SBA_EVENT_NOTICE], 0);
	play_end(&p);
}

static void tokens_that_nobody_can_know_are_not_made_up(void **state)
{
	static const char *const bad[] = { NULL, "no json", "[1]" };
	(void)state;
	for (size_t i = 0; i < SBA_ARRAY_LEN(bad); i++) {
		struct play p;
		begin_resumed(&p, bad[i]);
		play_line(&p, TEXT("b"));
		play_line(&p, COMPLETED("130"));
		assert_int_equal(play_finish(&p, 0, "").usage.input, 0);
		assert_int_equal(p.n[SBA_EVENT_NOTICE], 1);
		assert_non_null(strstr(sba_stream_kept(p.stream), "130"));
		play_end(&p);
	}
}

static void a_total_that_shrinks_is_no_negative_use(void **state)
{
	struct play p;
	(void)state;
	begin_resumed(&p, "{\"input_tokens\":500,\"output_tokens\":7}");
	play_line(&p, TEXT("b"));
	play_line(&p, COMPLETED("130"));
	struct sba_outcome o = play_finish(&p, 0, "");
	assert_int_equal(o.usage.input, 0);
	assert_int_equal(o.usage.output, 123);
	play_end(&p);
}

/* ---- command ---- */

static int command_of(struct sba_turn_spec spec, struct sba_command *ret)
{
	struct sba_error err;
	spec.base_url = spec.base_url ? spec.base_url : "http://h:1/";
	spec.token = "secret";
	return sba_command_make(sba_driver_find("codex"), &spec, ret, &err);
}

static void a_command_carries_all_but_the_key_as_arguments(void **state)
{
	struct sba_command c;
	bool url = false;
	(void)state;
	assert_int_equal(command_of((struct sba_turn_spec){ .model = "vendor/m-1" }, &c), 0);
	for (size_t i = 0; i < c.argv.n; i++) {
		assert_null(strstr(c.argv.v[i], "secret"));
		url = url || strstr(c.argv.v[i], "base_url=\"http://h:1/v1\"");
	}
	assert_true(url);
	assert_string_equal(c.argv.v[c.argv.n - 1], "-");
	assert_string_equal(c.argv.v[c.argv.n - 2], "vendor/m-1");
	assert_int_equal(c.env.n, 1);
	assert_string_equal(c.env.v[0], "SANDBOX_AGENT_MODEL_KEY=secret");
	sba_command_fini(&c);
}

static void a_command_resumes_behind_all_options(void **state)
{
	struct sba_command c;
	(void)state;
	assert_int_equal(command_of((struct sba_turn_spec){ .session = "t-1", .model = "m" }, &c),
			 0);
	assert_string_equal(c.argv.v[c.argv.n - 3], "resume");
	assert_string_equal(c.argv.v[c.argv.n - 2], "t-1");
	assert_string_equal(c.argv.v[c.argv.n - 1], "-");
	sba_command_fini(&c);
	assert_int_equal(command_of((struct sba_turn_spec){ .session = "--last" }, &c), SBA_EINVAL);
	assert_int_equal(command_of((struct sba_turn_spec){ .model = "a\" b" }, &c), SBA_EINVAL);
}

int main(void)
{
	static const struct CMUnitTest others[] = {
		cmocka_unit_test_setup(every_recording_is_a_row, play_limit),
		cmocka_unit_test_setup(a_reconnect_that_was_got_over_does_not_fail_the_turn,
				       play_limit),
		cmocka_unit_test_setup(a_failure_that_is_told_twice_is_one, play_limit),
		cmocka_unit_test_setup(waiting_for_the_network_for_ever_is_a_loop, play_limit),
		cmocka_unit_test_setup(the_last_message_is_the_answer, play_limit),
		cmocka_unit_test_setup(a_turn_without_its_end_is_no_success, play_limit),
		cmocka_unit_test_setup(changes_of_files_are_told_each, play_limit),
		cmocka_unit_test_setup(tools_have_common_names_and_keep_their_own, play_limit),
		cmocka_unit_test_setup(unknown_lines_are_noted_and_counted, play_limit),
		cmocka_unit_test_setup(commands_are_told_without_the_shell_around_them, play_limit),
		cmocka_unit_test_setup(each_turn_has_its_own_tokens, play_limit),
		cmocka_unit_test_setup(a_first_turn_that_fails_leaves_its_tokens_to_the_next,
				       play_limit),
		cmocka_unit_test_setup(tokens_that_nobody_can_know_are_not_made_up, play_limit),
		cmocka_unit_test_setup(a_total_that_shrinks_is_no_negative_use, play_limit),
		cmocka_unit_test_setup(a_command_carries_all_but_the_key_as_arguments, play_limit),
		cmocka_unit_test_setup(a_command_resumes_behind_all_options, play_limit),
	};
	struct CMUnitTest tests[2 * SBA_ARRAY_LEN(rows) + SBA_ARRAY_LEN(others)];
	big_begin();
	size_t n = recording_tests(tests, rows, SBA_ARRAY_LEN(rows), check, cut);
	memcpy(tests + n, others, sizeof(others));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
