/* SPDX-License-Identifier: MIT */
/*
 * The key of a real model never enters a sandbox: turns with a marked key, after
 * which it is looked for wherever the sandbox and the engine could have it; and
 * the token that stands in for it, which is good on its own relay only.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "agent/private.h"
#include "support/http_client.h"
#include "support/live.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIECE = 1024 * 1024, KEY_MAX = 64, SCAN_MS = 100 * 1000, FILE_MAX = 4 * 1024 * 1024 };

static const char *claude_image; /* NULL: not here */
static struct sba_model *model;  /* stands for the provider, and asks for the key */
static char base_url[64];
/* Made at run time: in no command line and no environment of this process. */
static char key[KEY_MAX], control[KEY_MAX];

static int begin(void **state)
{
	static char ref[256];
	struct sba_images *images = NULL;
	struct sba_error err = { 0 };
	char hex[33];
	if (live_begin(state) < 0 || sba_random_hex(hex, 16, &err) < 0)
		return -1;
	snprintf(key, sizeof(key), "sk-marked-%s", hex);
	snprintf(control, sizeof(control), "control-%.24s", hex);
	if (sba_images_open(NULL, NULL, &images, &err) < 0)
		return -1;
	snprintf(ref, sizeof(ref), "%s", sba_images_ref(images, "claude"));
	sba_images_close(images);
	SBA_JSON json_t *there = NULL;
	if (sba_image_inspect(live.engine, ref, sba_until_in(30000), &there, NULL) == 0)
		claude_image = ref;
	const struct sba_model_options o = { .token = key };
	if (sba_model_open(&o, &model, &err) < 0)
		return -1;
	snprintf(base_url, sizeof(base_url), "http://127.0.0.1:%u",
		 (unsigned)sba_model_port(model));
	return 0;
}

static int end(void **state)
{
	sba_model_close(model);
	return live_end(state);
}

#define NEEDS_CLAUDE()                                                                             \
	do {                                                                                       \
		if (!claude_image) {                                                               \
			print_message("SKIPPED %s: no claude image is here\n", __func__);          \
			skip();                                                                    \
		}                                                                                  \
	} while (0)

/* ---- looking for it ---- */

struct search {
	bool key, control; /* found */
	uint64_t bytes;
	size_t have;
	char window[PIECE + KEY_MAX];
};

/* Across the borders of pieces too. */
static void search_piece(struct search *s, size_t n)
{
	size_t keep = KEY_MAX - 1;
	s->have += n;
	s->bytes += n;
	s->key = s->key || memmem(s->window, s->have, key, strlen(key));
	s->control = s->control || memmem(s->window, s->have, control, strlen(control));
	size_t tail = s->have < keep ? s->have : keep;
	memmove(s->window, s->window + s->have - tail, tail);
	s->have = tail;
}

/* The whole body of a GET of the engine. */
static struct search *search_engine(const char *path)
{
	struct sba_request request = { .method = "GET", .path = path, .tried = "search" };
	struct sba_until until = sba_until_in(SCAN_MS);
	struct sba_error err = { 0 };
	struct sba_body *body = NULL;
	struct search *s = calloc(1, sizeof(*s));
	assert_non_null(s);
	if (sba_engine_stream(live.engine, &request, NULL, NULL, NULL, until, &body, &err) < 0)
		fail_msg("%s", err.text);
	ssize_t n;
	while ((n = sba_body_read(body, s->window + s->have, PIECE, until, &err)) > 0)
		search_piece(s, (size_t)n);
	if (n < 0)
		fail_msg("%s", err.text);
	sba_body_close(body);
	return s;
}

static void engine_has_none(const char *path)
{
	SBA_FREE struct search *s = search_engine(path);
	assert_true(s->bytes > 0);
	if (s->key)
		fail_msg("the key is in GET %s", path);
}

static bool file_has(const char *path, const char *text)
{
	SBA_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	SBA_FREE char *data = malloc(FILE_MAX);
	size_t len = 0;
	ssize_t n;
	assert_non_null(data);
	while (fd >= 0 && len < FILE_MAX && (n = read(fd, data + len, FILE_MAX - len)) > 0)
		len += (size_t)n;
	return memmem(data, len, text, strlen(text)) != NULL;
}

/* Of all processes of this host, those of containers among them. Returns how
 * many show the control. */
static int processes_have_none(pid_t except)
{
	int controls = 0;
	DIR *d = opendir("/proc");
	const struct dirent *e;
	assert_non_null(d);
	while ((e = readdir(d))) {
		char path[300];
		if (e->d_name[0] < '0' || e->d_name[0] > '9' ||
		    strtol(e->d_name, NULL, 10) == except)
			continue;
		for (int i = 0; i < 2; i++) {
			snprintf(path, sizeof(path), "/proc/%s/%s", e->d_name,
				 i ? "environ" : "cmdline");
			if (file_has(path, key))
				fail_msg("the key is in %s", path);
			controls += file_has(path, control);
		}
	}
	closedir(d);
	return controls;
}

static void execs_have_none(const json_t *inspect)
{
	const json_t *ids = sba_json_get(inspect, "ExecIDs");
	for (size_t i = 0; i < json_array_size(ids); i++) {
		char path[160];
		snprintf(path, sizeof(path), "/exec/%s/json",
			 json_string_value(json_array_get(ids, i)));
		engine_has_none(path);
	}
}

static void containers_have_none(struct sba_sandbox *s, size_t min_execs)
{
	char sidecar[SBA_ID_MAX], path[128];
	live_sidecar_of(s, sidecar);
	SBA_JSON json_t *inspect = live_inspect(sba_sandbox_container(s));
	assert_true(json_array_size(sba_json_get(inspect, "ExecIDs")) >= min_execs);
	execs_have_none(inspect);
	snprintf(path, sizeof(path), "/containers/%s/json", sba_sandbox_container(s));
	engine_has_none(path);
	snprintf(path, sizeof(path), "/containers/%s/json", sidecar);
	engine_has_none(path);
	snprintf(path, sizeof(path), "/containers/%s/top?ps_args=-eo%%20pid,args",
		 sba_sandbox_container(s));
	engine_has_none(path);
}

static void files_have_none(struct sba_sandbox *s)
{
	char path[128];
	snprintf(path, sizeof(path), "/containers/%s/export", sba_sandbox_container(s));
	SBA_FREE struct search *found = search_engine(path);
	assert_true(found->bytes > 50 * PIECE);
	/* What is there is found: the turn's command wrote it. */
	assert_true(found->control);
	assert_false(found->key);
}

static void the_rest_has_none(struct sba_sandbox *s, int64_t since)
{
	char path[400];
	struct sba_error err = { 0 };
	SBA_FREE char *described = NULL;
	/* Podman tells nothing of a time that has passed. */
	if (sba_engine_podman(live.engine))
		snprintf(path, sizeof(path), "/events?since=%lld&stream=false", (long long)since);
	else
		snprintf(path, sizeof(path), "/events?since=%lld&until=%lld", (long long)since,
			 (long long)(sba_unix_ms() / 1000));
	engine_has_none(path);
	snprintf(path, sizeof(path), "/images/%s/json", sba_sandbox_info(s)->image);
	engine_has_none(path);
	engine_has_none("/images/json?all=1");
	engine_has_none("/containers/json?all=1");
	assert_int_equal(sba_sandbox_describe(s, &described, &err), 0);
	assert_null(strstr(described, key));
}

/* ---- a turn ---- */

static void no_text_has_it(const struct sba_event *e)
{
	const char *const texts[] = { e->text, e->input, e->summary, e->output, e->raw };
	for (size_t i = 0; i < SBA_ARRAY_LEN(texts); i++) {
		if (texts[i])
			assert_null(strstr(texts[i], key));
	}
}

static bool is_inside(void *user)
{
	return sba_container_stat(live.engine, user, "/tmp/mid", sba_until_in(10000),
				  &(struct sba_path_stat){ 0 }, NULL) == 0;
}

static struct sba_agent *open_claude(struct sba_sandbox *s)
{
	const struct sba_agent_options o = { .agent = "claude",
					     .provider = "anthropic-compatible",
					     .base_url = base_url,
					     .key = key };
	struct sba_agent *a = NULL;
	struct sba_error err = { 0 };
	if (sba_agent_open(s, &o, &a, &err) < 0)
		fail_msg("%s", err.text);
	return a;
}

static void until_a_tool_runs(struct sba_turn *t)
{
	const struct sba_event *e = NULL;
	struct sba_error err = { 0 };
	do {
		if (sba_turn_next(t, 60000, &e, &err) <= 0)
			fail_msg("no tool was called: %s", err.text);
		no_text_has_it(e);
	} while (e->kind != SBA_EVENT_TOOL_CALL);
}

static void finish(struct sba_turn *t, enum sba_verdict verdict)
{
	const struct sba_event *e;
	struct sba_error err = { 0 };
	struct sba_turn_result r;
	int rc;
	while ((rc = sba_turn_next(t, 60000, &e, &err)) > 0)
		no_text_has_it(e);
	if (rc < 0)
		fail_msg("%s", err.text);
	sba_turn_result(t, &r);
	if (r.verdict != verdict)
		fail_msg("%s: %s", sba_verdict_name(r.verdict), r.error.text);
	assert_null(strstr(r.text, key));
	assert_null(strstr(r.error.text, key));
	sba_turn_free(t);
}

static void a_marked_key_is_nowhere_during_and_after_a_turn(void **state)
{
	(void)state;
	NEEDS_CLAUDE();
	int64_t since = sba_unix_ms() / 1000;
	char prompt[512];
	struct sba_sandbox *s = live_sandbox(
		(struct sba_sandbox_options){ .image = claude_image, .agent = "claude" });
	struct sba_agent *a = open_claude(s);
	struct sba_sandbox *second = NULL;
	struct sba_turn *t = NULL;
	struct sba_error err = { 0 };
	/* Its channel is an exec; the first one's is not. */
	if (sba_sandbox_open(live.engine, live.prefix, sba_sandbox_info(s)->name, &second, &err) <
	    0)
		fail_msg("%s", err.text);
	free(live_sh_out(second, "true"));
	snprintf(prompt, sizeof(prompt),
		 "run: echo %s >/workspace/control; env; touch /tmp/mid; "
		 "while [ -e /tmp/mid ]; do sleep 0.2; done # %s",
		 control, control);
	if (sba_turn_begin(a, &(struct sba_turn_options){ .prompt = prompt }, &t, &err) < 0)
		fail_msg("%s", err.text);
	until_a_tool_runs(t);
	live_await(is_inside, (void *)(uintptr_t)sba_sandbox_container(s), 20000);
	assert_true(processes_have_none(0) > 0);
	containers_have_none(s, 1);
	files_have_none(s);
	free(live_sh_out(s, "! grep -a sk-marked- /proc/[0-9]*/environ /proc/[0-9]*/cmdline "
			    "2>/dev/null | grep -av 'grep.*sk-marked' && rm /tmp/mid"));
	finish(t, SBA_VERDICT_OK);
	assert_true(sba_model_requests(model) >= 2);
	processes_have_none(0);
	containers_have_none(s, 1);
	files_have_none(s);
	the_rest_has_none(s, since);
	sba_agent_close(a);
	sba_sandbox_close(second);
	live_remove(s);
}

/* ---- through the program ---- */

static void child_has_none(struct live_child *c)
{
	assert_null(strstr(c->out.data ? c->out.data : "", key));
	assert_null(strstr(c->err.data ? c->err.data : "", key));
}

/* ANTHROPIC_API_KEY in the program's environment; its own process has it. */
static void run_program(struct live_child *c, const char *the_key, const char *const *argv)
{
	char env[KEY_MAX + 32];
	snprintf(env, sizeof(env), "ANTHROPIC_API_KEY=%s", the_key);
	const char *const vars[] = { env, NULL };
	live_start(c, &(struct live_start){ .argv = argv, .env = vars });
}

#define PROGRAM(...)                                                                               \
	((const char *const[]){ "run", "claude", "--image", claude_image, "--provider",            \
				"anthropic-compatible", "--base-url", base_url, __VA_ARGS__,       \
				NULL })

static void the_programs_output_has_no_key(void **state)
{
	(void)state;
	NEEDS_CLAUDE();
	LIVE_CHILD c, j;
	char prompt[256];
	snprintf(prompt, sizeof(prompt), "run: env; cat /proc/[0-9]*/environ | tr '\\0' '\\n'");
	run_program(&c, key, PROGRAM("-v", prompt));
	live_child_await(&c, "cat /proc/", 60000);
	processes_have_none(c.pid);
	live_child_end(&c, 60000);
	live_assert_says(&c, 0, NULL);
	child_has_none(&c);
	run_program(&j, key, PROGRAM("--json", "hello"));
	live_child_end(&j, 60000);
	live_assert_says(&j, 0, NULL);
	child_has_none(&j);
}

/* It is in no variable of the program's, and in no command line. */
static void a_key_of_a_file_and_of_a_command_reaches_the_provider_alone(void **state)
{
	(void)state;
	NEEDS_CLAUDE();
	LIVE_CHILD file, command;
	char path[256], prints[300];
	snprintf(path, sizeof(path), "%s", live_path("key"));
	snprintf(prints, sizeof(prints), "cat %s", path);
	live_write_file(path, key, strlen(key), 0600);
	uint64_t before = sba_model_requests(model);
	live_start(&file, &(struct live_start){ .argv = PROGRAM("--api-key-file", path, "hello") });
	live_child_end(&file, 60000);
	live_assert_says(&file, 0, NULL);
	child_has_none(&file);
	live_start(&command,
		   &(struct live_start){ .argv = PROGRAM("--api-key-command", prints, "hello") });
	live_child_end(&command, 60000);
	live_assert_says(&command, 0, NULL);
	child_has_none(&command);
	assert_true(sba_model_requests(model) >= before + 2);
}

static void a_key_that_was_given_to_the_sandbox_is_not_shown_either(void **state)
{
	(void)state;
	NEEDS_CLAUDE();
	LIVE_CHILD c, j;
	char env[KEY_MAX + 16];
	snprintf(env, sizeof(env), "LEAK=%s", key);
	run_program(&c, key, PROGRAM("-v", "-e", env, "run: echo it is $LEAK."));
	live_child_end(&c, 60000);
	live_assert_says(&c, 0, "it is ***");
	child_has_none(&c);
	run_program(&j, key, PROGRAM("--json", "-e", env, "run: echo it is $LEAK."));
	live_child_end(&j, 60000);
	live_assert_says(&j, 0, NULL);
	assert_non_null(strstr(j.out.data, "it is ***"));
	child_has_none(&j);
}

static void a_key_that_the_provider_refuses_is_not_repeated(void **state)
{
	(void)state;
	NEEDS_CLAUDE();
	static const char wrong[] = "sk-wrong-0123456789abcdef0123456789";
	LIVE_CHILD c;
	run_program(&c, wrong, PROGRAM("-v", "hello"));
	live_child_end(&c, 90000);
	assert_int_not_equal(c.status, 0);
	live_assert_says(&c, c.status, "401");
	assert_null(strstr(c.err.data, wrong));
	assert_null(strstr(c.out.data ? c.out.data : "", wrong));
}

/* Runs against a provider whose every answer is this step, KEY in it the key. */
static void run_against(struct live_child *c, const char *step)
{
	char script[512], url[64], filled[256];
	struct sba_model *echo = NULL;
	struct sba_error err = { 0 };
	const char *mark = strstr(step, "KEY");
	assert_non_null(mark);
	snprintf(filled, sizeof(filled), "%.*s%s%s", (int)(mark - step), step, key, mark + 3);
	snprintf(script, sizeof(script),
		 "{\"v\":1,\"rules\":[{\"match\":{\"any\":true},\"steps\":[%s]}]}", filled);
	const struct sba_model_options o = { .token = key, .script = script };
	if (sba_model_open(&o, &echo, &err) < 0)
		fail_msg("%s", err.text);
	snprintf(url, sizeof(url), "http://127.0.0.1:%u", (unsigned)sba_model_port(echo));
	run_program(c, key,
		    (const char *const[]){ "run", "claude", "--image", claude_image, "--provider",
					   "anthropic-compatible", "--base-url", url, "hello",
					   NULL });
	live_child_end(c, 60000);
	sba_model_close(echo);
}

static void a_provider_that_repeats_the_key_is_starred(void **state)
{
	(void)state;
	NEEDS_CLAUDE();
	LIVE_CHILD said, pieces, failed;
	run_against(&said, "{\"text\":\"your key is KEY, is it not\",\"chunk\":4096}");
	live_assert_says(&said, 0, NULL);
	assert_non_null(strstr(said.out.data, "your key is *"));
	child_has_none(&said);
	run_against(&pieces, "{\"text\":\"your key is KEY, is it not\",\"chunk\":5}");
	live_assert_says(&pieces, 0, NULL);
	assert_non_null(strstr(pieces.out.data, "****, is it not"));
	child_has_none(&pieces);
	run_against(&failed, "{\"error\":{\"status\":403,\"message\":\"bad key KEY\"}}");
	assert_int_not_equal(failed.status, 0);
	live_assert_says(&failed, failed.status, "bad key *");
	child_has_none(&failed);
}

static void a_budget_of_one_request_ends_the_turn_as_such(void **state)
{
	(void)state;
	NEEDS_CLAUDE();
	LIVE_CHILD c, j;
	run_program(&c, key, PROGRAM("--max-requests", "1", "run: echo once"));
	live_child_end(&c, 90000);
	live_assert_says(&c, 5, "budget");
	run_program(&j, key, PROGRAM("--json", "--max-requests", "1", "run: echo once"));
	live_child_end(&j, 90000);
	SBA_JSON json_t *lines = live_json_lines(&j);
	assert_string_equal(sba_json_str(live_json_line(lines, "result"), "verdict"), "budget");
	child_has_none(&j);
}

/* ---- the token ---- */

static int ask(uint16_t port, const char *token)
{
	static const char body[] = "{\"model\":\"m\",\"max_tokens\":9,\"messages\":[{\"role\":"
				   "\"user\",\"content\":\"hi\"}]}";
	char headers[256];
	snprintf(headers, sizeof(headers), "%s%s%santhropic-version: 2023-06-01\r\n",
		 token ? "x-api-key: " : "", token ? token : "", token ? "\r\n" : "");
	struct reply r = client_call(port, "POST /v1/messages", headers, body);
	int status = r.status;
	assert_null(memmem(r.raw.data, r.raw.len, key, strlen(key)));
	reply_fini(&r);
	return status;
}

static void a_token_is_good_on_its_own_relay_only(void **state)
{
	(void)state;
	struct sba_sandbox *s = live_sandbox((struct sba_sandbox_options){ .agent = "claude" });
	struct sba_agent *one = open_claude(s), *two = open_claude(s);
	struct sba_relay_stats stats;
	uint64_t before = sba_model_requests(model);
	assert_int_equal(ask(one->host_port, one->token), 200);
	assert_int_equal(ask(two->host_port, two->token), 200);
	assert_int_equal(ask(one->host_port, two->token), 401);
	assert_int_equal(ask(two->host_port, one->token), 401);
	assert_int_equal(ask(one->host_port, NULL), 401);
	/* Whoever stole the key has no way in with it either. */
	assert_int_equal(ask(one->host_port, key), 401);
	assert_int_equal(sba_model_requests(model) - before, 2);
	sba_relay_stats_get(one->relay, &stats);
	assert_int_equal(stats.alarms, 1);
	assert_int_equal(stats.refused, 3);
	sba_agent_close(one);
	sba_agent_close(two);
	live_remove(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE_TEST(a_marked_key_is_nowhere_during_and_after_a_turn),
		LIVE_TEST(the_programs_output_has_no_key),
		LIVE_TEST(a_key_of_a_file_and_of_a_command_reaches_the_provider_alone),
		LIVE_TEST(a_key_that_was_given_to_the_sandbox_is_not_shown_either),
		LIVE_TEST(a_key_that_the_provider_refuses_is_not_repeated),
		LIVE_TEST(a_provider_that_repeats_the_key_is_starred),
		LIVE_TEST(a_budget_of_one_request_ends_the_turn_as_such),
		LIVE_TEST(a_token_is_good_on_its_own_relay_only),
		LIVE_TEST(live_nothing_is_left),
	};
	return live_run(tests, begin, end);
}
