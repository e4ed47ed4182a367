/* SPDX-License-Identifier: MIT */
/* What services say, taken apart: recorded streams, errors of all shapes, our own record. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/limits.h"
#include "remote/e2b.h"
#include "remote/opensandbox.h"

#define ID "0123456789abcdef0123456789abcdef"

/* ---- a command's decoder, and what it makes of a stream ---- */

typedef int decode_fn(struct sba_remote_command *, const char *, size_t, struct sba_error *);

struct heard {
	struct sba_remote_command *c;
	int out, err; /* readable */
	struct sba_error why;
	int rc;
};

static void open_pipe(int *ret_read, int *ret_write)
{
	int p[2];
	assert_int_equal(pipe2(p, O_CLOEXEC | O_NONBLOCK), 0);
	*ret_read = p[0];
	*ret_write = p[1];
}

static struct heard hear(decode_fn *decode, const void *data, size_t size, size_t cut)
{
	struct heard h = { .c = calloc(1, sizeof(*h.c)) };
	struct sba_remote_command *c = h.c;
	c->in = c->stop_fd = c->drop_fd = c->stop_watch = c->drop_watch = -1;
	c->started_fd = eventfd(0, EFD_CLOEXEC);
	c->ended_fd = eventfd(0, EFD_CLOEXEC);
	open_pipe(&h.out, &c->out);
	open_pipe(&h.err, &c->err);
	sba_buf_init(&c->line, SBA_MIB);
	sba_envelopes_init(&c->envelopes);
	for (int i = 0; i < 2; i++)
		memcpy(c->scan[i].id, ID, sizeof(ID));
	for (size_t at = 0; h.rc == 0 && at < size; at += cut)
		h.rc = decode(c, (const char *)data + at, size - at < cut ? size - at : cut,
			      &h.why);
	if (h.rc == 0)
		h.rc = decode(c, NULL, 0, &h.why);
	return h;
}

static void assert_said(int fd, const char *text)
{
	char buf[4096];
	ssize_t n = read(fd, buf, sizeof(buf) - 1);
	buf[n > 0 ? n : 0] = '\0';
	assert_string_equal(buf, text);
}

static void forget(struct heard *h)
{
	close(h->out);
	close(h->err);
	sba_remote_command_free(h->c);
}

static void fixture(const char *name, struct sba_buf *ret)
{
	char path[200];
	snprintf(path, sizeof(path), "tests/fixtures/%s", name);
	assert_int_equal(sba_read_file(path, SBA_MIB, ret, NULL), 0);
}

static struct heard hear_file(decode_fn *decode, const char *name, size_t cut)
{
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(SBA_MIB);
	fixture(name, &b);
	return hear(decode, b.data, b.len, cut);
}

/* ---- E2B ---- */

static void recorded_streams_of_envd_are_understood_however_they_are_cut(void **state)
{
	(void)state;
	for (size_t cut = 1; cut < 400; cut += 7) {
		struct heard h = hear_file(sba_envd_decode, "e2b/envd-start.bin", cut);
		assert_int_equal(h.rc, 0);
		assert_true(h.c->started && h.c->over && h.c->whole);
		assert_int_equal(h.c->exit.kind, SBA_EXITED);
		assert_int_equal(h.c->exit.number, 3);
		assert_said(h.out, "out\n");
		assert_said(h.err, "err\n");
		forget(&h);
	}
}

static void a_good_end_is_one_without_a_number(void **state)
{
	(void)state;
	struct heard h = hear_file(sba_envd_decode, "e2b/envd-start-stdin.bin", 1000);
	assert_int_equal(h.rc, 0);
	assert_int_equal(h.c->exit.number, 0);
	assert_said(h.out, "hello\ndone\n");
	forget(&h);
}

static void an_error_at_the_end_of_a_stream_is_one_of_ours(void **state)
{
	(void)state;
	struct heard h = hear_file(sba_envd_decode, "e2b/envd-start-timeout.bin", 1000);
	assert_int_equal(h.rc, SBA_ETIMEOUT);
	assert_false(h.c->over);
	forget(&h);
	h = hear_file(sba_envd_decode, "e2b/envd-start-baduser.bin", 1000);
	assert_int_equal(h.rc, SBA_EPERM);
	assert_non_null(strstr(h.why.text, "invalid username: 'nouser'"));
	forget(&h);
}

static void envelope(struct sba_buf *b, const char *json)
{
	sba_envelope_put(b, json, strlen(json));
}

static void a_signal_is_told_from_a_status(void **state)
{
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(SBA_MIB);
	(void)state;
	envelope(&b, "{\"event\":{\"end\":{\"exitCode\":-1,\"status\":\"signal: interrupt\"}}}");
	struct heard h = hear(sba_envd_decode, b.data, b.len, 5);
	assert_int_equal(h.c->exit.kind, SBA_SIGNALED);
	assert_int_equal(h.c->exit.number, SIGINT);
	forget(&h);
}

static void what_did_not_begin_says_why_by_its_record(void **state)
{
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(SBA_MIB), text = SBA_BUF_INIT(SBA_MIB);
	(void)state;
	sba_buf_puts(&text, "{\"event\":{\"data\":{\"stderr\":\"");
	sba_base64_put(&text, "\001" ID ":none\n", 1 + 32 + 6, false);
	sba_buf_puts(&text, "\"}}}");
	envelope(&b, text.data);
	envelope(&b, "{\"event\":{\"end\":{\"exitCode\":1,\"exited\":true,\"status\":\"exit "
		     "status 1\"}}}");
	struct heard h = hear(sba_envd_decode, b.data, b.len, 9);
	assert_int_equal(h.c->exit.kind, SBA_NOT_FOUND);
	assert_said(h.err, "");
	forget(&h);
}

static void a_message_that_is_too_large_or_compressed_or_none_is_refused(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
	} bad[] = { { "\0\xff\xff\xff\xff{}", 7 }, { "\1\0\0\0\2{}", 7 }, { "\0\0\0\0\2{x", 7 } };
	(void)state;
	for (size_t i = 0; i < SBA_ARRAY_LEN(bad); i++) {
		struct heard h = hear(sba_envd_decode, bad[i].bytes, bad[i].len, 100);
		assert_int_equal(h.rc, SBA_EPROTO);
		forget(&h);
	}
}

/* ---- OpenSandbox ---- */

/* An event whose text is our script's line. */
static void say(struct sba_buf *b, const char *prefix, const char *stream, const char *bytes,
		size_t len)
{
	sba_buf_printf(b, "%s{\"type\":\"%s\",\"text\":\":", prefix, stream);
	sba_base64_put(b, bytes, len, false);
	sba_buf_puts(b, "\",\"timestamp\":1795968996529}\n\n");
}

static void output_of_execd_is_exact_whatever_the_framing(void **state)
{
	static const char *const prefixes[] = { "", "data: ", "data:" };
	(void)state;
	for (size_t i = 0; i < 3 * 40; i++) {
		SBA_BUF struct sba_buf b = SBA_BUF_INIT(SBA_MIB);
		const char *p = prefixes[i % 3];
		sba_buf_printf(&b, "event: x\n%s{\"type\":\"init\",\"text\":\"%s\"}\n\n", p, ID);
		say(&b, p, "stdout", "a\xff", 2);
		say(&b, p, "stderr", "no end", 6);
		say(&b, p, "stdout", "\nb\001" ID, 3 + 32);
		say(&b, p, "stdout", ":7\n", 3);
		say(&b, p, "stderr", "\001" ID ":end\n", 1 + 32 + 5);
		struct heard h = hear(sba_execd_decode, b.data, b.len, 1 + i);
		assert_int_equal(h.rc, 0);
		assert_true(h.c->started && h.c->whole);
		assert_int_equal(h.c->exit.number, 7);
		assert_said(h.out, "a\xff\nb");
		assert_said(h.err, "no end");
		forget(&h);
	}
}

static void recorded_streams_without_our_record_have_no_known_end(void **state)
{
	(void)state;
	struct heard h = hear_file(sba_execd_decode, "opensandbox/execd-cmd-fail.txt", 10);
	assert_int_equal(h.rc, 0);
	assert_true(h.c->started);
	assert_false(h.c->over);
	assert_string_equal(h.c->said, "out");
	forget(&h);
	h = hear_file(sba_execd_decode, "opensandbox/execd-cmd-timeout.txt", 10);
	assert_int_equal(h.c->killed.kind, SBA_SIGNALED);
	assert_int_equal(h.c->killed.number, SIGKILL);
	forget(&h);
}

static void a_refusal_within_the_stream_is_an_error(void **state)
{
	(void)state;
	struct heard h = hear_file(sba_execd_decode, "opensandbox/execd-code-busy.txt", 10);
	assert_int_equal(h.rc, SBA_EENGINE);
	assert_non_null(strstr(h.why.text, "session is busy"));
	forget(&h);
}

static void a_tool_that_is_missing_inside_is_named(void **state)
{
	static const char line[] = "{\"type\":\"stdout\",\"text\":\"!mkfifo\"}\n\n";
	(void)state;
	struct heard h = hear(sba_execd_decode, line, strlen(line), 100);
	assert_int_equal(h.rc, SBA_EUNSUPPORTED);
	assert_non_null(strstr(h.why.text, "'mkfifo'"));
	assert_non_null(strstr(h.why.hint, "base64"));
	forget(&h);
}

/* ---- words ---- */

static void errors_of_every_shape_have_their_words(void **state)
{
	static const struct {
		const char *file, *code, *text;
	} cases[] = {
		{ "opensandbox/life-create-noimage.txt", "DOCKER::SANDBOX_IMAGE_PULL_FAILED",
		  "Failed to pull image os-nosuch:local" },
		{ "opensandbox/life-401-bad.txt", "INVALID_API_KEY", "" },
		{ "opensandbox/life-create-badjson.txt", "", "" },
		{ "opensandbox/life-badroute.txt", "", "Not Found" },
		{ "opensandbox/execd-401.txt", "", "Unauthorized: invalid or missing header" },
		{ "e2b/envd-401-start.txt", "", "unauthorized access" },
		{ "e2b/envd-download-dir.txt", "", "path '/home/user' is a directory" },
		{ "e2b/envd-stat404.txt", "not_found", "" },
	};
	static const char *const none[2] = { NULL, NULL };
	(void)state;
	for (size_t i = 0; i < SBA_ARRAY_LEN(cases); i++) {
		SBA_BUF struct sba_buf b = SBA_BUF_INIT(SBA_MIB);
		struct sba_remote_words w;
		fixture(cases[i].file, &b);
		sba_remote_words(b.data, b.len, none, &w);
		assert_string_equal(w.code, cases[i].code);
		assert_non_null(strstr(w.text, cases[i].text));
		assert_true(w.text[0] != '{');
	}
}

static void a_key_that_a_server_says_back_is_not_told(void **state)
{
	static const char *const secrets[2] = { "e2b_0123456789abcdef", "token\"with-quote" };
	static const char body[] = "{\"code\":401,\"message\":\"no key e2b_0123456789abcdef, nor "
				   "token\\\"with-quote\\u0007\"}";
	struct sba_remote_words w;
	(void)state;
	sba_remote_words(body, strlen(body), secrets, &w);
	assert_null(strstr(w.text, "0123456789abcdef"));
	assert_null(strstr(w.text, "with-quote"));
	assert_non_null(strstr(w.text, "no key *"));
	assert_null(strchr(w.text, '\a'));
}

static void ends_in_words_are_ends_in_numbers(void **state)
{
	static const struct {
		const char *words;
		bool known;
		int kind, number;
	} cases[] = {
		{ "exit status 0", true, SBA_EXITED, 0 },
		{ "exit status 255", true, SBA_EXITED, 255 },
		{ "exit status 256", false, 0, 0 },
		{ "signal: killed", true, SBA_SIGNALED, SIGKILL },
		{ "signal: segmentation fault (core dumped)", true, SBA_SIGNALED, SIGSEGV },
		{ "signal: signal 34", true, SBA_SIGNALED, 34 },
		{ "signal: nonsense", false, 0, 0 },
		{ "", false, 0, 0 },
	};
	(void)state;
	for (size_t i = 0; i < SBA_ARRAY_LEN(cases); i++) {
		struct sba_exit how = { 0 };
		assert_int_equal(sba_remote_status(cases[i].words, &how), cases[i].known);
		assert_int_equal(how.kind, cases[i].kind);
		assert_int_equal(how.number, cases[i].number);
	}
}

static void points_in_time_are_read_and_written(void **state)
{
	char text[32];
	(void)state;
	assert_int_equal(sba_remote_time("2026-11-29T16:25:30.579160Z"), 1795969530);
	assert_int_equal(sba_remote_time("2026-11-29T17:25:30+01:00"), 1795969530);
	assert_int_equal(sba_remote_time("soon"), 0);
	sba_remote_time_put(1795969530, text);
	assert_string_equal(text, "2026-11-29T16:25:30Z");
}

/* ---- our own script ---- */

static void words_for_a_shell_stay_one_word(void **state)
{
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(1000);
	(void)state;
	sba_shell_quote(&b, "it's $(x) \"y\"\n");
	assert_string_equal(b.data, "'it'\\''s $(x) \"y\"\n'");
}

static void ends_by_a_record_are_what_a_shell_knows(void **state)
{
	static const struct {
		const char *word;
		bool known;
		int kind, number;
	} cases[] = {
		{ "0", true, SBA_EXITED, 0 },
		{ "127", true, SBA_EXITED, 127 },
		{ "137", true, SBA_SIGNALED, 9 },
		{ "255", true, SBA_EXITED, 255 },
		{ "none", true, SBA_NOT_FOUND, 0 },
		{ "noexec", true, SBA_CANNOT_RUN, EACCES },
		{ "dir", true, SBA_NO_WORKDIR, ENOENT },
		{ "end", false, 0, 0 },
		{ "-1", false, 0, 0 },
	};
	(void)state;
	for (size_t i = 0; i < SBA_ARRAY_LEN(cases); i++) {
		struct sba_exit how = { 0 };
		assert_int_equal(sba_shell_exit(cases[i].word, &how), cases[i].known);
		assert_int_equal(how.kind, cases[i].kind);
		assert_int_equal(how.number, cases[i].number);
	}
}

static int keep(void *user, const char *data, size_t len)
{
	sba_buf_put(user, data, len);
	return 0;
}

static void what_only_looks_like_a_record_passes(void **state)
{
	static const char *const texts[] = {
		"\001",
		"\001\001\001x",
		"\001" ID,
		"\001" ID ":UPPER\n",
		"\0010123\001" ID ":too-long",
		"a\001b\001" ID ":0123456789abcdefg\n",
	};
	(void)state;
	for (size_t i = 0; i < SBA_ARRAY_LEN(texts); i++) {
		for (size_t cut = 1; cut < 50; cut++) {
			SBA_BUF struct sba_buf b = SBA_BUF_INIT(1000);
			struct sba_shell_scan s = { .id = ID };
			size_t len = strlen(texts[i]);
			for (size_t at = 0; at < len; at += cut)
				sba_shell_scan(&s, texts[i] + at, len - at < cut ? len - at : cut,
					       keep, &b);
			sba_shell_scan(&s, NULL, 0, keep, &b);
			assert_false(s.found);
			assert_string_equal(b.data, texts[i]);
		}
	}
}

/* ---- hosts ---- */

static void each_sandbox_of_e2b_has_a_host_of_the_domain_that_was_said(void **state)
{
	static const struct {
		const char *url, *sandbox_url, *domain, *base;
	} cases[] = {
		{ NULL, NULL, NULL, "https://49983-i1.e2b.app" },
		{ NULL, NULL, "", "https://49983-i1.e2b.app" },
		{ NULL, NULL, "eu.e2b.test", "https://49983-i1.eu.e2b.test" },
		{ "https://api.sbx.test:8443", NULL, NULL, "https://49983-i1.sbx.test:8443" },
		{ "https://api.sbx.test/v9/", NULL, NULL, "https://49983-i1.sbx.test" },
		{ "https://api.sbx.test", NULL, "other.test", "https://49983-i1.other.test" },
		{ "http://127.0.0.1:1", "http://127.0.0.1:2/", "x.test", "http://127.0.0.1:2" },
	};
	(void)state;
	for (size_t i = 0; i < SBA_ARRAY_LEN(cases); i++) {
		const struct sba_remote_options o = { .url = cases[i].url,
						      .sandbox_url = cases[i].sandbox_url };
		SBA_JSON json_t *marks = json_object();
		SBA_JSON json_t *said =
			json_pack("{s:s, s:s, s:s*}", "envdVersion", "0.6.13", "envdAccessToken",
				  "t", "domain", cases[i].domain);
		struct sba_remote *r = NULL;
		struct sba_remote_box *b = NULL;
		struct sba_error err = { 0 };
		assert_int_equal(sba_remote_open("e2b", &o, &r, &err), 0);
		assert_int_equal(sba_remote_box_new(r, "i1", marks, &b, &err), 0);
		assert_int_equal(sba_e2b_take_way(b, said, &err), 0);
		assert_string_equal(b->base, cases[i].base);
		assert_string_equal(b->headers.v[0], "E2b-Sandbox-Id: i1");
		assert_string_equal(b->secret, "X-Access-Token: t");
		sba_remote_box_free(b);
		sba_remote_close(r);
	}
}

static void a_domain_that_would_be_more_than_a_host_is_refused(void **state)
{
	static const char *const domains[] = { "a.test/x?y", "u@a.test", "a.test\r\nX: 1",
					       "a test" };
	(void)state;
	for (size_t i = 0; i < SBA_ARRAY_LEN(domains); i++) {
		SBA_JSON json_t *marks = json_object();
		SBA_JSON json_t *said =
			json_pack("{s:s, s:s}", "envdVersion", "0.6.13", "domain", domains[i]);
		struct sba_remote *r = NULL;
		struct sba_remote_box *b = NULL;
		assert_int_equal(sba_remote_open("e2b", NULL, &r, NULL), 0);
		assert_int_equal(sba_remote_box_new(r, "i1", marks, &b, NULL), 0);
		int rc = sba_e2b_take_way(b, said, NULL);
		assert_true(rc < 0 || !strcmp(b->base, "https://49983-i1.a.test"));
		sba_remote_box_free(b);
		sba_remote_close(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(recorded_streams_of_envd_are_understood_however_they_are_cut),
		cmocka_unit_test(each_sandbox_of_e2b_has_a_host_of_the_domain_that_was_said),
		cmocka_unit_test(a_domain_that_would_be_more_than_a_host_is_refused),
		cmocka_unit_test(a_good_end_is_one_without_a_number),
		cmocka_unit_test(an_error_at_the_end_of_a_stream_is_one_of_ours),
		cmocka_unit_test(a_signal_is_told_from_a_status),
		cmocka_unit_test(what_did_not_begin_says_why_by_its_record),
		cmocka_unit_test(a_message_that_is_too_large_or_compressed_or_none_is_refused),
		cmocka_unit_test(output_of_execd_is_exact_whatever_the_framing),
		cmocka_unit_test(recorded_streams_without_our_record_have_no_known_end),
		cmocka_unit_test(a_refusal_within_the_stream_is_an_error),
		cmocka_unit_test(a_tool_that_is_missing_inside_is_named),
		cmocka_unit_test(errors_of_every_shape_have_their_words),
		cmocka_unit_test(a_key_that_a_server_says_back_is_not_told),
		cmocka_unit_test(ends_in_words_are_ends_in_numbers),
		cmocka_unit_test(points_in_time_are_read_and_written),
		cmocka_unit_test(words_for_a_shell_stay_one_word),
		cmocka_unit_test(ends_by_a_record_are_what_a_shell_knows),
		cmocka_unit_test(what_only_looks_like_a_record_passes),
	};
	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
