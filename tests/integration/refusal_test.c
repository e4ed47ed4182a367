/* SPDX-License-Identifier: MIT */
/*
 * A CLI that asks its model on and on although every answer is no: of a wrong key, beyond
 * its budget, and of a port that nobody listens on. Each would go on for ever.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/live.h"

#include <string.h>

/* Never takes no for an answer. */
static const char asker[] =
	"cat >/dev/null\n"
	"host=${OPENAI_BASE_URL#http://} host=${host%%/*}\n"
	"body='{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}'\n"
	"while sleep 0.2; do\n"
	"  exec 3<>/dev/tcp/${host%:*}/${host#*:} || continue\n"
	"  printf 'POST /v1/chat/completions HTTP/1.1\\r\\nHost: m\\r\\nAuthorization: Bearer "
	"%s\\r\\nContent-Type: application/json\\r\\nContent-Length: %d\\r\\nConnection: "
	"close\\r\\n\\r\\n%s' \"$OPENAI_API_KEY\" ${#body} \"$body\" >&3\n"
	"  cat <&3 >/dev/null\n"
	"done\n";

static struct sba_model *model;
static char url[64];

static int begin(void **state)
{
	const struct sba_model_options o = { .token = "the-key-that-is-good" };
	struct sba_error err = { 0 };
	if (live_begin(state) < 0 || sba_model_open(&o, &model, &err) < 0)
		return -1;
	snprintf(url, sizeof(url), "http://127.0.0.1:%u", (unsigned)sba_model_port(model));
	return 0;
}

static int end(void **state)
{
	sba_model_close(model);
	return live_end(state);
}

static void start(struct live_child *c, const char *base_url, const char *key, const char *requests)
{
	char variable[64];
	snprintf(variable, sizeof(variable), "ASKERS_KEY=%s", key);
	const char *const env[] = { variable, NULL };
	const char *const argv[] = { "--json",
				     "run",
				     "command",
				     "--image",
				     live.image,
				     "--provider",
				     "openai-compatible",
				     "--base-url",
				     base_url,
				     "--api-key-env",
				     "ASKERS_KEY",
				     "--max-requests",
				     requests,
				     "hi",
				     "--",
				     "bash",
				     "-c",
				     asker,
				     NULL };
	live_start(c, &(struct live_start){ .argv = argv, .env = env });
}

static void assert_ended(struct live_child *c, const char *verdict, int status, int http)
{
	live_child_end(c, 90000);
	live_assert_says(c, status, NULL);
	SBA_JSON json_t *lines = live_json_lines(c);
	const json_t *result = live_json_line(lines, "result");
	assert_string_equal(sba_json_str(result, "verdict"), verdict);
	assert_int_equal(sba_json_int(result, "http_status", 0), http);
	assert_false(sba_json_bool(result, "retry", false));
}

static void who_never_takes_no_for_an_answer_is_ended(void **state)
{
	LIVE_CHILD wrong, beyond, nobody;
	(void)state;
	start(&wrong, url, "another-key-than-that", "400");
	start(&beyond, url, "the-key-that-is-good", "3");
	/* The discard port, on which nobody listens. */
	start(&nobody, "http://127.0.0.1:9", "the-key-that-is-good", "3");
	assert_ended(&wrong, "model_error", 1, 401);
	assert_non_null(strstr(wrong.err.data, "refuses the key"));
	assert_ended(&beyond, "budget", 5, 0);
	assert_non_null(strstr(beyond.err.data, "budget of requests"));
	assert_ended(&nobody, "budget", 5, 0);
	live_await_no_containers(20000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE_TEST(who_never_takes_no_for_an_answer_is_ended),
		LIVE_TEST(live_nothing_is_left),
	};
	return live_run(tests, begin, end);
}
