/* SPDX-License-Identifier: MIT */
/* The HTTP client: what goes out, what comes back, every way to end. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>

#include "support/folder.h"
#include "support/raw_upstream.h"
#include "support/tls_front.h"
#include "base/limits.h"
#include "http/http.h"

#include <errno.h>

#define OK_HEAD(length) "HTTP/1.1 200 OK\r\nContent-Length: " length "\r\nX-Tag: yes\r\n\r\n"
#define CHUNKED         "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

struct world {
	struct raw_upstream up;
	struct sba_http_client *client;
	char url[64];
	struct sba_error err;
};

static void begin(struct world *w, const struct raw_answer *answers, size_t n)
{
	alarm(20);
	*w = (struct world){ 0 };
	raw_start(&w->up, NULL, answers, n);
	snprintf(w->url, sizeof(w->url), "http://127.0.0.1:%u/p?q=1", (unsigned)w->up.port);
	assert_int_equal(
		sba_http_client_open(&(struct sba_http_client_options){ 0 }, &w->client, &w->err),
		0);
}

static void end(struct world *w)
{
	sba_http_client_close(w->client);
	raw_stop(&w->up);
	raw_fini(&w->up);
}

static int ask(struct world *w, const char *method, const char *body,
	       struct sba_http_response **ret)
{
	return sba_http_client_send(w->client,
				    &(struct sba_http_call){ .method = method,
							     .url = w->url,
							     .body = body,
							     .body_len = body ? strlen(body) : 0 },
				    sba_until_in(5000), ret, &w->err);
}

/* Reads to the end; returns what ended it. */
static int read_all(struct world *w, struct sba_http_response *r, struct sba_buf *ret)
{
	char buf[5];
	ssize_t n;
	while ((n = sba_http_response_read(r, buf, sizeof(buf), sba_until_in(5000), &w->err)) > 0)
		sba_buf_put(ret, buf, (size_t)n);
	sba_buf_puts(ret, "");
	return (int)n;
}

static void answer_has_status_headers_and_body(void **state)
{
	static const struct raw_answer answers[] = {
		{ "HTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 404 No\r\nX-Tag:  two words\r\n"
		  "Content-Length: 9\r\n\r\nnot there",
		  RAW_KEEP },
	};
	struct world w;
	struct sba_http_response *r;
	struct sba_buf body = SBA_BUF_INIT(SBA_MIB);
	(void)state;
	begin(&w, answers, 1);
	assert_int_equal(ask(&w, "GET", NULL, &r), 0);
	assert_int_equal(sba_http_response_status(r), 404);
	assert_string_equal(sba_http_response_header(r, "x-tag"), "two words");
	assert_null(sba_http_response_header(r, "link"));
	assert_int_equal(sba_http_response_headers(r)->n, 2);
	assert_int_equal(read_all(&w, r, &body), 0);
	assert_string_equal(body.data, "not there");
	sba_http_response_close(r);
	sba_buf_fini(&body);
	end(&w);
}

static void request_goes_out_as_asked_and_nothing_is_added(void **state)
{
	static const struct raw_answer answers[] = { { OK_HEAD("0"), RAW_KEEP } };
	struct world w;
	struct sba_strv headers = { 0 };
	struct sba_http_response *r;
	char expected[512];
	(void)state;
	begin(&w, answers, 1);
	assert_int_equal(sba_strv_add(&headers, "Accept: a/b", NULL), 0);
	const struct sba_http_call call = { .method = "POST",
					    .url = w.url,
					    .headers = &headers,
					    .secret_header = "X-Key: hush",
					    .body = "a\0b",
					    .body_len = 3 };
	assert_int_equal(sba_http_client_send(w.client, &call, sba_until_in(5000), &r, &w.err), 0);
	sba_http_response_close(r);
	sba_strv_fini(&headers);
	snprintf(expected, sizeof(expected),
		 "POST /p?q=1 HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nAccept-Encoding: identity\r\n"
		 "Accept: a/b\r\nX-Key: hush\r\nContent-Length: 3\r\n\r\n",
		 (unsigned)w.up.port);
	raw_stop(&w.up);
	assert_int_equal(w.up.seen.len, strlen(expected) + 3);
	assert_memory_equal(w.up.seen.data, expected, strlen(expected));
	assert_memory_equal(w.up.seen.data + strlen(expected), "a\0b", 3);
	sba_http_client_close(w.client);
	raw_fini(&w.up);
}

static void every_method_goes_out_with_its_body_or_none(void **state)
{
	static const struct raw_answer answers[] = { { OK_HEAD("0"), RAW_KEEP } };
	static const struct {
		const char *method, *body, *line;
	} calls[] = { { "DELETE", NULL, "DELETE /p?q=1 HTTP/1.1\r\n" },
		      { "PATCH", "{\"a\":1}", "PATCH /p?q=1 HTTP/1.1\r\n" },
		      { "PUT", "xy", "PUT /p?q=1 HTTP/1.1\r\n" },
		      { "GET", NULL, "GET /p?q=1 HTTP/1.1\r\n" } };
	struct world w;
	struct sba_http_response *r;
	(void)state;
	begin(&w, answers, 1);
	for (size_t i = 0; i < SBA_ARRAY_LEN(calls); i++) {
		assert_int_equal(ask(&w, calls[i].method, calls[i].body, &r), 0);
		sba_http_response_close(r);
	}
	raw_stop(&w.up);
	for (size_t i = 0; i < SBA_ARRAY_LEN(calls); i++) {
		const char *at = strstr(w.up.seen.data, calls[i].line);
		assert_non_null(at);
		const char *end = strstr(at, "\r\n\r\n");
		const char *length = strstr(at, "Content-Length:");
		assert_int_equal(length && length < end, calls[i].body != NULL);
		if (calls[i].body)
			assert_memory_equal(end + 4, calls[i].body, strlen(calls[i].body));
	}
	sba_http_client_close(w.client);
	raw_fini(&w.up);
}

struct giver {
	size_t left;
	bool gives_up;
};

static ssize_t give_letters(void *user, char *buf, size_t size)
{
	struct giver *g = user;
	size_t n = g->left < size ? g->left : size;
	if (g->gives_up && g->left < 1000)
		return -1;
	memset(buf, 'b', n);
	g->left -= n;
	return (ssize_t)n;
}

static int send_given(struct world *w, struct giver *g, struct sba_http_response **ret)
{
	return sba_http_client_send(w->client,
				    &(struct sba_http_call){ .method = "POST",
							     .url = w->url,
							     .body_read = give_letters,
							     .body_user = g,
							     .body_len = g->left },
				    sba_until_in(10000), ret, &w->err);
}

static void body_that_is_given_piece_by_piece_arrives_whole_or_breaks(void **state)
{
	static const struct raw_answer answers[] = { { OK_HEAD("0"), RAW_KEEP } };
	enum { SIZE = 300 * 1000 };
	struct giver good = { .left = SIZE }, bad = { .left = SIZE, .gives_up = true };
	struct world w;
	struct sba_http_response *r;
	(void)state;
	begin(&w, answers, 1);
	assert_int_equal(send_given(&w, &good, &r), 0);
	sba_http_response_close(r);
	bad.left = 900;
	assert_int_equal(send_given(&w, &bad, &r), SBA_EIO);
	raw_stop(&w.up);
	const char *body = strstr(w.up.seen.data, "\r\n\r\n") + 4;
	assert_int_equal(strspn(body, "b"), SIZE);
	sba_http_client_close(w.client);
	raw_fini(&w.up);
}

static void header_with_a_line_end_is_refused(void **state)
{
	static const struct raw_answer answers[] = { { OK_HEAD("0"), RAW_KEEP } };
	struct world w;
	struct sba_http_response *r = NULL;
	(void)state;
	begin(&w, answers, 1);
	const struct sba_http_call call = { .method = "GET",
					    .url = w.url,
					    .secret_header = "X: secret-word\r\nY: 1" };
	assert_int_equal(sba_http_client_send(w.client, &call, sba_until_in(5000), &r, &w.err),
			 SBA_EINVAL);
	assert_null(strstr(w.err.text, "secret-word"));
	assert_null(r);
	end(&w);
}

static void connection_is_used_again(void **state)
{
	static const struct raw_answer answers[] = { { OK_HEAD("2") "ok", RAW_KEEP } };
	struct world w;
	(void)state;
	begin(&w, answers, 1);
	for (int i = 0; i < 5; i++) {
		struct sba_http_response *r;
		struct sba_buf body = SBA_BUF_INIT(SBA_MIB);
		assert_int_equal(ask(&w, i % 2 ? "POST" : "GET", NULL, &r), 0);
		assert_int_equal(read_all(&w, r, &body), 0);
		assert_string_equal(body.data, "ok");
		sba_http_response_close(r);
		sba_buf_fini(&body);
	}
	assert_int_equal(w.up.connections, 1);
	end(&w);
}

static bool leads_to(int fd, uint16_t port)
{
	struct sockaddr_in peer = { 0 };
	socklen_t len = sizeof(peer);
	return getpeername(fd, (struct sockaddr *)&peer, &len) == 0 && peer.sin_family == AF_INET &&
	       ntohs(peer.sin_port) == port;
}

/* Else a program that is started meanwhile keeps it open. */
static void connection_is_nobody_elses(void **state)
{
	static const struct raw_answer answers[] = { { OK_HEAD("2") "ok", RAW_KEEP } };
	struct sba_http_response *r;
	struct world w;
	int found = 0;
	(void)state;
	begin(&w, answers, 1);
	assert_int_equal(ask(&w, "GET", NULL, &r), 0);
	for (int fd = 3; fd < 256; fd++) {
		if (!leads_to(fd, w.up.port))
			continue;
		found++;
		assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	}
	assert_int_equal(found, 1);
	sba_http_response_close(r);
	end(&w);
}

/* A kept connection that dies under a request may have delivered it. */
static void request_that_may_have_arrived_is_not_sent_again(void **state)
{
	static const struct raw_answer answers[] = { { OK_HEAD("0"), RAW_KEEP },
						     { "", RAW_CLOSE } };
	struct world w;
	struct sba_http_response *r;
	struct sba_buf body = SBA_BUF_INIT(SBA_MIB);
	(void)state;
	begin(&w, answers, 2);
	assert_int_equal(ask(&w, "POST", "one", &r), 0);
	assert_int_equal(read_all(&w, r, &body), 0);
	sba_http_response_close(r);
	assert_int_equal(ask(&w, "POST", "two", &r), SBA_ELOST);
	raw_stop(&w.up);
	assert_int_equal(w.up.requests, 2);
	sba_buf_fini(&body);
	sba_http_client_close(w.client);
	raw_fini(&w.up);
}

static void bytes_are_there_before_the_rest_is(void **state)
{
	static const struct raw_answer answers[] = { { CHUNKED "5\r\nfirst\r\n", RAW_HOLD } };
	struct world w;
	struct sba_http_response *r;
	char buf[64];
	(void)state;
	begin(&w, answers, 1);
	assert_int_equal(ask(&w, "GET", NULL, &r), 0);
	assert_int_equal(sba_http_response_read(r, buf, sizeof(buf), sba_until_in(5000), &w.err),
			 5);
	assert_memory_equal(buf, "first", 5);
	assert_int_equal(sba_http_response_read(r, buf, sizeof(buf), sba_until_in(50), &w.err),
			 SBA_ETIMEOUT);
	assert_false(raw_told(w.up.closed_fd, 0));
	sba_http_response_close(r);
	assert_true(raw_told(w.up.closed_fd, 1000));
	end(&w);
}

static void cancelled_wait_for_the_head_closes_the_connection(void **state)
{
	static const struct raw_answer answers[] = { { "", RAW_HOLD } };
	struct world w;
	struct sba_http_response *r = NULL;
	(void)state;
	begin(&w, answers, 1);
	const struct sba_http_call call = { .method = "GET", .url = w.url };
	/* held_fd is readable once the request has arrived */
	assert_int_equal(sba_http_client_send(w.client, &call,
					      (struct sba_until){ SBA_NEVER, w.up.held_fd }, &r,
					      &w.err),
			 SBA_ECANCELED);
	assert_null(r);
	assert_true(raw_told(w.up.closed_fd, 1000));
	end(&w);
}

static void cut_body_is_never_a_clean_end(void **state)
{
	static const struct raw_answer answers[] = {
		{ CHUNKED "5\r\nhello\r\n", RAW_CLOSE },
		{ CHUNKED "5\r\nhel", RAW_CLOSE },
		{ OK_HEAD("10") "hello", RAW_CLOSE },
		{ CHUNKED "5\r\nhello\r\nzz\r\n", RAW_HOLD },
	};
	struct world w;
	(void)state;
	begin(&w, answers, SBA_ARRAY_LEN(answers));
	for (size_t i = 0; i < SBA_ARRAY_LEN(answers); i++) {
		struct sba_http_response *r;
		struct sba_buf body = SBA_BUF_INIT(SBA_MIB);
		assert_int_equal(ask(&w, "GET", NULL, &r), 0);
		assert_int_equal(read_all(&w, r, &body), SBA_ELOST);
		assert_int_equal(strncmp(body.data, "hello", body.len), 0);
		sba_http_response_close(r);
		sba_buf_fini(&body);
	}
	end(&w);
}

static void answers_that_are_none_are_told(void **state)
{
	static const struct {
		struct raw_answer answer;
		int code;
	} cases[] = {
		{ { "", RAW_CLOSE }, SBA_ELOST },
		{ { "SSH-2.0-hello\r\n", RAW_CLOSE }, SBA_EPROTO },
		{ { "HTTP/1.1 200 OK\r\nA: b", RAW_CLOSE }, SBA_ELOST },
	};
	(void)state;
	for (size_t i = 0; i < SBA_ARRAY_LEN(cases); i++) {
		struct world w;
		struct sba_http_response *r = NULL;
		begin(&w, &cases[i].answer, 1);
		assert_int_equal(ask(&w, "GET", NULL, &r), cases[i].code);
		assert_true(w.err.text[0]);
		assert_null(r);
		end(&w);
	}
}

static void head_without_end_is_refused(void **state)
{
	struct world w;
	struct sba_http_response *r = NULL;
	struct sba_buf head = SBA_BUF_INIT(SBA_MIB);
	(void)state;
	sba_buf_puts(&head, "HTTP/1.1 200 OK\r\n");
	for (int i = 0; i < 200; i++)
		sba_buf_printf(&head, "H%d: v\r\n", i);
	const struct raw_answer answer = { head.data, RAW_HOLD };
	begin(&w, &answer, 1);
	assert_int_equal(ask(&w, "GET", NULL, &r), SBA_ELIMIT);
	end(&w);
	sba_buf_fini(&head);
}

static void redirect_is_an_answer_and_not_followed(void **state)
{
	static const struct raw_answer answers[] = {
		{ "HTTP/1.1 302 F\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n", RAW_KEEP },
	};
	struct world w;
	struct sba_http_response *r;
	(void)state;
	begin(&w, answers, 1);
	assert_int_equal(ask(&w, "GET", NULL, &r), 0);
	assert_int_equal(sba_http_response_status(r), 302);
	sba_http_response_close(r);
	assert_int_equal(w.up.requests, 1);
	end(&w);
}

static void server_that_is_not_there_is_told_with_words(void **state)
{
	static const struct raw_answer answers[] = { { "", RAW_CLOSE } };
	struct world w;
	struct sba_http_response *r = NULL;
	(void)state;
	begin(&w, answers, 1);
	snprintf(w.url, sizeof(w.url), "http://127.0.0.1:1/");
	assert_int_equal(ask(&w, "GET", NULL, &r), SBA_ECONNECT);
	assert_non_null(strstr(w.err.text, "127.0.0.1"));
	end(&w);
}

static void environment_names_no_proxy(void **state)
{
	static const struct raw_answer answers[] = { { OK_HEAD("0"), RAW_KEEP } };
	struct world w;
	struct sba_http_response *r;
	(void)state;
	begin(&w, answers, 1);
	setenv("http_proxy", "http://127.0.0.1:1", 1);
	setenv("ALL_PROXY", "http://127.0.0.1:1", 1);
	int rc = ask(&w, "GET", NULL, &r);
	unsetenv("http_proxy");
	unsetenv("ALL_PROXY");
	assert_int_equal(rc, 0);
	sba_http_response_close(r);
	end(&w);
}

/* Connects through TLS to `host`, trusting ca_file (NULL: the system's). */
static int ask_tls(const char *host, bool own_ca, struct sba_error *err)
{
	static const struct raw_answer answers[] = { { OK_HEAD("0"), RAW_CLOSE } };
	char folder[64], path[80], ca[512], url[64];
	struct raw_upstream up;
	struct sba_http_client *client;
	struct sba_http_response *r = NULL;
	test_folder(folder, sizeof(folder), "sba-http");
	snprintf(path, sizeof(path), "%s/s", folder);
	raw_start(&up, path, answers, 1);
	struct tls_front *t = tls_front_start(&(struct tls_front_options){ .socket_path = path });
	snprintf(ca, sizeof(ca), "%s/ca.pem", tls_front_folder(t));
	snprintf(url, sizeof(url), "https://%s:%d/", host, tls_front_port(t));
	const struct sba_http_client_options o = { .ca_file = own_ca ? ca : NULL };
	assert_int_equal(sba_http_client_open(&o, &client, err), 0);
	int rc =
		sba_http_client_send(client, &(struct sba_http_call){ .method = "GET", .url = url },
				     sba_until_in(5000), &r, err);
	sba_http_response_close(r);
	sba_http_client_close(client);
	tls_front_stop(t);
	raw_stop(&up);
	raw_fini(&up);
	test_folder_remove(folder);
	return rc;
}

static void certificates_are_verified(void **state)
{
	struct sba_error err = { 0 };
	(void)state;
	alarm(20);
	assert_int_equal(ask_tls("127.0.0.1", true, &err), 0);
	assert_int_equal(ask_tls("127.0.0.1", false, &err), SBA_ECONNECT);
	assert_non_null(strstr(err.text, "certificate"));
	assert_int_equal(err.sys_errno, EKEYREJECTED);
	assert_non_null(strstr(err.hint, "ca_file"));
	assert_int_equal(ask_tls("localhost", true, &err), SBA_ECONNECT);
}

static void url_needs_scheme_and_host_and_nothing_secret(void **state)
{
	static const char *const good[] = { "http://h", "https://h:1/base/", "HTTPS://[::1]:2" };
	static const char *const bad[] = { "",
					   "h",
					   "ftp://h",
					   "http://",
					   "https://u@h",
					   "https://u:p@h",
					   "http://h?q",
					   "http://h/#f",
					   "file:///etc/passwd",
					   "http://h:x",
					   "http://h/\r\nX:1" };
	(void)state;
	for (size_t i = 0; i < SBA_ARRAY_LEN(good); i++)
		assert_int_equal(sba_http_url_check(good[i], NULL), 0);
	for (size_t i = 0; i < SBA_ARRAY_LEN(bad); i++)
		assert_int_equal(sba_http_url_check(bad[i], NULL), SBA_EINVAL);
}

/* ---- server-sent events ---- */

static const char sse_stream[] =
	"event: a\r\ndata: one\r\n\r\n: note\n\ndata:two\ndata: lines\nid: 3\n\n"
	"data\n\ndata:\n\nretry: 1\n\ndata: half";

/* The events, each in brackets, of a stream that comes in pieces. */
static void split(const char *text, size_t len, size_t piece, struct sba_buf *ret)
{
	struct sba_sse s;
	const char *event;
	size_t event_len;
	sba_sse_init(&s);
	for (size_t at = 0; at < len; at += piece) {
		const char *p = text + at;
		size_t n = len - at < piece ? len - at : piece;
		while (sba_sse_next(&s, &p, &n, &event, &event_len))
			sba_buf_printf(ret, "[%.*s]", (int)event_len, event);
		assert_int_equal(n, 0);
	}
	sba_sse_fini(&s);
}

static void events_are_the_same_in_whatever_pieces(void **state)
{
	(void)state;
	for (size_t piece = 1; piece <= sizeof(sse_stream); piece++) {
		struct sba_buf got = SBA_BUF_INIT(SBA_MIB);
		split(sse_stream, sizeof(sse_stream) - 1, piece, &got);
		assert_string_equal(got.data, "[one][two\nlines][]");
		sba_buf_fini(&got);
	}
}

static void event_over_the_limit_is_left_out_and_the_next_is_not(void **state)
{
	size_t len = SBA_SSE_EVENT_MAX + 100;
	struct sba_buf text = SBA_BUF_INIT(4 * SBA_MIB);
	(void)state;
	sba_buf_puts(&text, "data: ");
	memset(sba_buf_reserve(&text, len), 'x', len);
	text.len += len;
	sba_buf_puts(&text, "\n\ndata: next\n\n");
	for (size_t piece = 1000; piece < 4 * SBA_MIB; piece *= 100) {
		struct sba_buf got = SBA_BUF_INIT(4 * SBA_MIB);
		split(text.data, text.len, piece, &got);
		assert_string_equal(got.data, "[next]");
		sba_buf_fini(&got);
	}
	sba_buf_fini(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answer_has_status_headers_and_body),
		cmocka_unit_test(request_goes_out_as_asked_and_nothing_is_added),
		cmocka_unit_test(every_method_goes_out_with_its_body_or_none),
		cmocka_unit_test(body_that_is_given_piece_by_piece_arrives_whole_or_breaks),
		cmocka_unit_test(header_with_a_line_end_is_refused),
		cmocka_unit_test(connection_is_used_again),
		cmocka_unit_test(connection_is_nobody_elses),
		cmocka_unit_test(request_that_may_have_arrived_is_not_sent_again),
		cmocka_unit_test(bytes_are_there_before_the_rest_is),
		cmocka_unit_test(cancelled_wait_for_the_head_closes_the_connection),
		cmocka_unit_test(cut_body_is_never_a_clean_end),
		cmocka_unit_test(answers_that_are_none_are_told),
		cmocka_unit_test(head_without_end_is_refused),
		cmocka_unit_test(redirect_is_an_answer_and_not_followed),
		cmocka_unit_test(server_that_is_not_there_is_told_with_words),
		cmocka_unit_test(environment_names_no_proxy),
		cmocka_unit_test(certificates_are_verified),
		cmocka_unit_test(url_needs_scheme_and_host_and_nothing_secret),
		cmocka_unit_test(events_are_the_same_in_whatever_pieces),
		cmocka_unit_test(event_over_the_limit_is_left_out_and_the_next_is_not),
	};
	return cmocka_run_group_tests_name("http_client", tests, NULL, NULL);
}
