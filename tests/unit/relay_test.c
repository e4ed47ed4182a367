/* SPDX-License-Identifier: MIT */
/* The relay between a client that may be hostile and an upstream that may be broken. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/folder.h"
#include "support/raw_upstream.h"
#include "support/tls_front.h"
#include "base/limits.h"
#include "model/model.h"

#include <netinet/tcp.h>
#include <strings.h>

#define KEY   "sk-real-key-0123456789"
#define STARS "**********************"
#define TOKEN "00112233445566778899aabbccddeeff"
#define AUTH  "Authorization: Bearer " TOKEN "\r\n"
#define CHUNKED                                                                                    \
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/event-stream\r\n\r\n"
#define EMPTY "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"

struct world {
	struct raw_upstream up;
	struct sba_relay *relay;
	uint16_t port;
};

static struct sba_relay *open_relay(uint16_t upstream, struct sba_relay_options o)
{
	struct sba_error err = { 0 };
	struct sba_relay *r = NULL;
	char url[64];
	snprintf(url, sizeof(url), "http://127.0.0.1:%u/", (unsigned)upstream);
	o.upstream = o.upstream ? o.upstream : url;
	o.key = o.key ? o.key : KEY;
	o.token = TOKEN;
	assert_int_equal(sba_relay_open(&o, &r, &err), 0);
	return r;
}

static void begin(struct world *w, const struct raw_answer *answers, size_t n,
		  struct sba_relay_options o)
{
	alarm(60);
	*w = (struct world){ 0 };
	raw_start(&w->up, NULL, answers, n);
	w->relay = open_relay(w->up.port, o);
	w->port = sba_relay_port(w->relay);
}

/* After it, up.seen and up.requests may be looked at. */
static void stop(struct world *w)
{
	sba_relay_close(w->relay);
	raw_stop(&w->up);
}

static void end(struct world *w)
{
	stop(w);
	raw_fini(&w->up);
}

static struct sba_relay_stats stats(struct sba_relay *r)
{
	struct sba_relay_stats s;
	sba_relay_stats_get(r, &s);
	return s;
}

/* The answer of an upstream, with a length. */
static char *plain_answer(const char *status, const char *type, const char *body)
{
	struct sba_buf b = SBA_BUF_INIT(64 * SBA_MIB);
	sba_buf_printf(&b, "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n\r\n", status,
		       type, strlen(body));
	sba_buf_puts(&b, body);
	return sba_buf_take(&b);
}

/* ---- what goes up ---- */

static void only_listed_headers_and_the_real_key_go_up(void **state)
{
	static const struct raw_answer answers[] = { { EMPTY, RAW_KEEP } };
	static const char *const kept[] = { "\r\nAccept: text/event-stream\r\n",
					    "\r\nAnthropic-Version: 2023-06-01\r\n",
					    "\r\nanthropic-beta: a,b\r\n",
					    "\r\nUser-Agent: cli/1\r\n",
					    "\r\nX-Session-Id: s\r\n",
					    "\r\nIdempotency-Key: i\r\n",
					    "\r\nAccept-Encoding: identity\r\n",
					    "\r\nContent-Type: application/json\r\n",
					    "\r\nAuthorization: Bearer " KEY "\r\n" };
	static const char *const dropped[] = { TOKEN,        "cookie",   "forwarded", "proxy",
					       "gzip",       "evil",     "te:",       "upgrade",
					       "openai-org", "api-key:", "keep-alive" };
	struct world w;
	(void)state;
	begin(&w, answers, 1, (struct sba_relay_options){ 0 });
	struct reply r = client_call(
		w.port, "POST /v1/messages?beta=true&x=1",
		AUTH "Accept: text/event-stream\r\nAnthropic-Version: 2023-06-01\r\n"
		     "anthropic-beta: a,b\r\nUser-Agent: cli/1\r\nX-Session-Id: s\r\n"
		     "Idempotency-Key: i\r\nContent-Type: application/json\r\n"
		     "x-api-key: " TOKEN "\r\nCookie: a=b\r\nX-Forwarded-For: evil\r\n"
		     "Forwarded: host=evil\r\nProxy-Authorization: Basic x\r\nTE: trailers\r\n"
		     "Accept-Encoding: gzip\r\nUpgrade: websocket\r\nKeep-Alive: 5\r\n"
		     "X-HTTP-Method-Override: EVIL\r\nX-Original-URL: /evil\r\napi-key: evil\r\n"
		     "OpenAI-Organization: other\r\n",
		"{ \"model\" :\t\"m\" }\n");
	assert_int_equal(r.status, 200);
	reply_fini(&r);
	stop(&w);
	const char *seen = w.up.seen.data;
	assert_true(
		sba_starts_with(seen, "POST /v1/messages?beta=true&x=1 HTTP/1.1\r\nHost: 127."));
	for (size_t i = 0; i < SBA_ARRAY_LEN(kept); i++)
		assert_non_null(strstr(seen, kept[i]));
	for (size_t i = 0; i < SBA_ARRAY_LEN(dropped); i++)
		assert_null(strcasestr(seen, dropped[i]));
	assert_true(sba_ends_with(seen, "\r\n\r\n{ \"model\" :\t\"m\" }\n"));
	raw_fini(&w.up);
}

static void key_goes_where_the_provider_wants_it(void **state)
{
	static const struct raw_answer answers[] = { { EMPTY, RAW_KEEP } };
	static const struct {
		struct sba_relay_options o;
		const char *line;
	} cases[] = {
		{ { .key_style = SBA_KEY_BEARER }, "\r\nAuthorization: Bearer " KEY "\r\n" },
		{ { .key_style = SBA_KEY_X_API_KEY }, "\r\nx-api-key: " KEY "\r\n" },
		{ { .key_style = SBA_KEY_HEADER, .key_header = "api-key" },
		  "\r\napi-key: " KEY "\r\n" },
	};
	(void)state;
	for (size_t i = 0; i < SBA_ARRAY_LEN(cases); i++) {
		struct world w;
		begin(&w, answers, 1, cases[i].o);
		struct reply r =
			client_call(w.port, "GET /v1/models", "x-api-key: " TOKEN "\r\n", NULL);
		assert_int_equal(r.status, 200);
		reply_fini(&r);
		stop(&w);
		assert_non_null(strstr(w.up.seen.data, cases[i].line));
		assert_null(strstr(w.up.seen.data, TOKEN));
		raw_fini(&w.up);
	}
}

static void upstream_base_path_stays_in_front(void **state)
{
	static const struct raw_answer answers[] = { { EMPTY, RAW_KEEP } };
	struct raw_upstream up;
	char url[64];
	(void)state;
	alarm(20);
	raw_start(&up, NULL, answers, 1);
	snprintf(url, sizeof(url), "http://127.0.0.1:%u/base//", (unsigned)up.port);
	struct sba_relay *relay = open_relay(0, (struct sba_relay_options){ .upstream = url });
	struct reply r = client_call(sba_relay_port(relay), "GET /v1/models", AUTH, NULL);
	reply_fini(&r);
	sba_relay_close(relay);
	raw_stop(&up);
	assert_true(sba_starts_with(up.seen.data, "GET /base/v1/models HTTP/1.1\r\n"));
	raw_fini(&up);
}

static void large_body_goes_up_whole_and_one_too_large_does_not(void **state)
{
	static const struct raw_answer answers[] = { { EMPTY, RAW_KEEP } };
	struct world w;
	size_t len = 24 * SBA_MIB;
	char *body = malloc(len + 1);
	(void)state;
	for (size_t i = 0; i < len; i++)
		body[i] = (char)('a' + i * 7 % 23);
	body[len] = '\0';
	begin(&w, answers, 1, (struct sba_relay_options){ 0 });
	struct reply r = client_call(w.port, "POST /v1/responses", AUTH, body);
	assert_int_equal(r.status, 200);
	reply_fini(&r);
	r = client_call(w.port, "POST /v1/responses", AUTH "Content-Length: 67108865\r\n", NULL);
	assert_int_equal(r.status, 413);
	reply_fini(&r);
	stop(&w);
	assert_int_equal(w.up.requests, 1);
	assert_true(w.up.seen.len > len);
	assert_memory_equal(w.up.seen.data + w.up.seen.len - len, body, len);
	raw_fini(&w.up);
	free(body);
}

/* ---- who may ask what ---- */

static void wrong_token_is_refused_in_the_providers_shape(void **state)
{
	static const struct raw_answer answers[] = { { EMPTY, RAW_KEEP } };
	static const char other[] = "Authorization: Bearer ffeeddccbbaa99887766554433221100\r\n";
	struct world w;
	(void)state;
	begin(&w, answers, 1, (struct sba_relay_options){ 0 });
	struct reply r = client_call(w.port, "POST /v1/messages", "x-api-key: sk-guess\r\n", "{}");
	assert_int_equal(r.status, 401);
	assert_non_null(strstr(r.body.data, "\"type\":\"error\""));
	assert_non_null(strstr(r.body.data, "authentication_error"));
	reply_fini(&r);
	assert_int_equal(stats(w.relay).alarms, 0);
	r = client_call(w.port, "POST /v1/chat/completions", other, "{}");
	assert_int_equal(r.status, 401);
	assert_non_null(strstr(r.body.data, "{\"error\":{\"message\":"));
	assert_null(strstr(r.body.data, "ffeedd"));
	reply_fini(&r);
	r = client_call(w.port, "GET /v1/models", "", NULL);
	assert_int_equal(r.status, 401);
	reply_fini(&r);
	struct sba_relay_stats s = stats(w.relay);
	assert_int_equal(s.alarms, 1);
	assert_int_equal(s.refused, 3);
	assert_int_equal(s.requests, 0);
	stop(&w);
	assert_int_equal(w.up.connections, 0);
	raw_fini(&w.up);
}

static void only_listed_endpoints_are_reached(void **state)
{
	static const struct raw_answer answers[] = { { EMPTY, RAW_KEEP } };
	static const struct {
		const char *line;
		int status;
	} cases[] = {
		{ "POST /v1/messages", 200 },
		{ "POST /v1/messages/count_tokens?beta=true", 200 },
		{ "POST /v1/chat/completions", 200 },
		{ "POST /v1/responses", 200 },
		{ "GET /v1/models", 200 },
		{ "HEAD /api/hello", 200 },
		{ "GET /v1/messages", 405 },
		{ "DELETE /v1/models", 405 },
		{ "POST /v1/files", 404 },
		{ "POST /v1/messages/", 404 },
		{ "POST /v1/../v1/messages", 404 },
		{ "POST /v1/%6dessages", 404 },
		{ "POST //v1/messages", 404 },
		{ "POST http://127.0.0.1:1/v1/messages", 404 },
		{ "CONNECT example.com:443", 404 },
		{ "GET /v1/models?a=%22b", 200 },
		{ "GET /v1/models?a=\"b", 400 },
	};
	struct world w;
	(void)state;
	begin(&w, answers, 1, (struct sba_relay_options){ 0 });
	uint64_t good = 0;
	for (size_t i = 0; i < SBA_ARRAY_LEN(cases); i++) {
		bool post = sba_starts_with(cases[i].line, "POST");
		struct reply r = client_call(w.port, cases[i].line, AUTH, post ? "{}" : NULL);
		assert_int_equal(r.status, cases[i].status);
		good += r.status == 200 && !strstr(cases[i].line, "/api/hello");
		reply_fini(&r);
	}
	assert_int_equal(stats(w.relay).requests, good);
	stop(&w);
	assert_int_equal(w.up.requests, good);
	assert_null(strstr(w.up.seen.data, "example.com"));
	raw_fini(&w.up);
}

static void irregular_requests_are_refused_and_their_connection_ends(void **state)
{
	static const struct raw_answer answers[] = { { EMPTY, RAW_KEEP } };
	static const char *const heads[] = {
		"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"Content-Length: 2\r\nContent-Length: 40\r\n\r\n{}",
		"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
		"Content-Length : 2\r\n\r\n{}",
		"Content-Length: +2\r\n\r\n{}",
		"Content-Length: 2, 2\r\n\r\n{}",
		"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
		"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
		"Transfer-Encoding: identity\r\nContent-Length: 2\r\n\r\n{}",
		"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"X-A: 1\r\n folded\r\nContent-Length: 2\r\n\r\n{}",
		"X-A: 1\r\n\tfolded\r\nContent-Length: 2\r\n\r\n{}",
		"X-A: 1\nContent-Length: 2\r\n\r\n{}",
		"X-A: 1\r\nContent-Length: 2\n\r\n{}",
		"X-A: 1\r\nContent-Length: 2\r\n\n{}",
		"X-A:  1\nX-B: 2\r\nContent-Length: 2\r\n\r\n{}",
		"X-A: 1\rX-B: 2\r\nContent-Length: 2\r\n\r\n{}",
		"X-A: a\001b\r\nContent-Length: 2\r\n\r\n{}",
		"X A: 1\r\nContent-Length: 2\r\n\r\n{}",
		"Host: twice\r\nContent-Length: 2\r\n\r\n{}",
		"no colon\r\nContent-Length: 2\r\n\r\n{}",
	};
	static const char *const lines[] = { "POST /v1/messages HTTP/1.0\r\nHost: a\r\n",
					     "POST /v1/messages HTTP/1.1\nHost: a\r\n",
					     "POST /v1/messages HTTP/1.1\r\n" };
	struct world w;
	(void)state;
	begin(&w, answers, 1, (struct sba_relay_options){ 0 });
	for (size_t i = 0; i < SBA_ARRAY_LEN(heads) + SBA_ARRAY_LEN(lines); i++) {
		bool line = i >= SBA_ARRAY_LEN(heads);
		int fd = client_connect(w.port);
		struct sba_buf b = SBA_BUF_INIT(SBA_MIB);
		sba_buf_puts(&b, line ? lines[i - SBA_ARRAY_LEN(heads)]
				      : "POST /v1/messages HTTP/1.1\r\nHost: a\r\n");
		sba_buf_puts(&b, AUTH);
		sba_buf_puts(&b, line ? "Content-Length: 2\r\n\r\n{}" : heads[i]);
		client_send(fd, b.data, b.len);
		/* to its end: the connection is closed without being asked to */
		struct reply r = client_read_reply(fd);
		assert_int_equal(r.status, 400);
		reply_fini(&r);
		sba_buf_fini(&b);
	}
	stop(&w);
	assert_int_equal(w.up.connections, 0);
	raw_fini(&w.up);
}

/* What clients may well do: no space, several, an empty value. */
static void unusual_but_regular_heads_are_served(void **state)
{
	static const struct raw_answer answers[] = { { EMPTY, RAW_KEEP } };
	static const char *const heads[] = { "X-A:1\r\n", "X-A:   1  \r\n", "X-A:\r\n",
					     "X-A: caf\xc3\xa9\r\n", "X-A: a\tb\r\n" };
	struct world w;
	(void)state;
	begin(&w, answers, 1, (struct sba_relay_options){ 0 });
	for (size_t i = 0; i < SBA_ARRAY_LEN(heads); i++) {
		struct sba_buf b = SBA_BUF_INIT(SBA_MIB);
		sba_buf_printf(&b, "%s" AUTH, heads[i]);
		struct reply r = client_call(w.port, "POST /v1/messages", b.data, "{}");
		assert_int_equal(r.status, 200);
		reply_fini(&r);
		sba_buf_fini(&b);
	}
	end(&w);
}

static void large_head_in_any_pieces_is_served(void **state)
{
	static const struct raw_answer answers[] = { { EMPTY, RAW_KEEP } };
	static const size_t pieces[] = { 1, 7, 1000, 1 << 20 };
	struct sba_buf b = SBA_BUF_INIT(SBA_MIB);
	struct world w;
	(void)state;
	begin(&w, answers, 1, (struct sba_relay_options){ 0 });
	sba_buf_puts(&b, "POST /v1/messages?beta=true HTTP/1.1\r\nHost: a\r\n" AUTH);
	for (int i = 0; i < 60; i++)
		sba_buf_printf(&b, "X-Header-%d: %0400d\r\n", i, i);
	sba_buf_puts(&b, "Connection: close\r\nContent-Length: 2\r\n\r\n{}");
	for (size_t i = 0; i < SBA_ARRAY_LEN(pieces); i++) {
		int fd = client_connect(w.port);
		assert_int_equal(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int)),
				 0);
		for (size_t at = 0; at < b.len; at += pieces[i])
			client_send(fd, b.data + at,
				    b.len - at < pieces[i] ? b.len - at : pieces[i]);
		struct reply r = client_read_reply(fd);
		assert_int_equal(r.status, 200);
		reply_fini(&r);
	}
	end(&w);
	sba_buf_fini(&b);
}

static void chunked_request_is_asked_for_its_length(void **state)
{
	static const char chunks[] = "2;ext=1\r\n{}\r\n0\r\n\r\n";
	static const struct raw_answer answers[] = { { EMPTY, RAW_KEEP } };
	struct world w;
	(void)state;
	begin(&w, answers, 1, (struct sba_relay_options){ 0 });
	int fd = client_connect(w.port);
	client_request(fd, "POST /v1/messages",
		       "Connection: close\r\nTransfer-Encoding: chunked\r\n" AUTH, NULL);
	client_send(fd, chunks, sizeof(chunks) - 1);
	struct reply r = client_read_reply(fd);
	assert_int_equal(r.status, 411);
	reply_fini(&r);
	assert_int_equal(stats(w.relay).refused, 1);
	end(&w);
}

static void one_connection_carries_many_requests(void **state)
{
	static const struct raw_answer answers[] = { { EMPTY, RAW_KEEP } };
	struct world w;
	(void)state;
	begin(&w, answers, 1, (struct sba_relay_options){ 0 });
	int fd = client_connect(w.port);
	for (int i = 0; i < 9; i++)
		client_request(fd, "POST /v1/messages", AUTH, "{}");
	client_request(fd, "POST /v1/messages", AUTH "Connection: close\r\n", "{}");
	struct reply r = client_read_reply(fd);
	assert_int_equal(r.status, 200);
	reply_fini(&r);
	assert_int_equal(stats(w.relay).requests, 10);
	stop(&w);
	assert_int_equal(w.up.requests, 10);
	assert_int_equal(w.up.connections, 1);
	raw_fini(&w.up);
}

/* ---- what comes back ---- */

static void answer_keeps_status_and_safe_headers(void **state)
{
	static const struct raw_answer answers[] = {
		{ "HTTP/1.1 429 Slow\r\nContent-Type: application/json\r\nRetry-After: 7\r\n"
		  "request-id: req_1\r\nanthropic-ratelimit-tokens-remaining: 5\r\n"
		  "x-ratelimit-limit-requests: 6\r\nSet-Cookie: a=b\r\nLocation: http://evil/\r\n"
		  "openai-organization: org-secret\r\nanthropic-organization-id: org-secret\r\n"
		  "X-Empty:\r\nContent-Length: 4\r\n\r\nslow",
		  RAW_KEEP },
	};
	static const char *const kept[] = { "\r\nContent-Type: application/json\r\n",
					    "\r\nRetry-After: 7\r\n", "\r\nrequest-id: req_1\r\n",
					    "\r\nanthropic-ratelimit-tokens-remaining: 5\r\n",
					    "\r\nx-ratelimit-limit-requests: 6\r\n" };
	struct world w;
	(void)state;
	begin(&w, answers, 1, (struct sba_relay_options){ 0 });
	struct reply r = client_call(w.port, "POST /v1/messages", AUTH, "{}");
	assert_int_equal(r.status, 429);
	assert_true(r.whole);
	assert_string_equal(r.body.data, "slow");
	for (size_t i = 0; i < SBA_ARRAY_LEN(kept); i++)
		assert_non_null(strcasestr(r.raw.data, kept[i]));
	assert_null(strcasestr(r.raw.data, "cookie"));
	assert_null(strcasestr(r.raw.data, "evil"));
	assert_null(strcasestr(r.raw.data, "org-secret"));
	assert_int_equal(stats(w.relay).usage.output, 0);
	reply_fini(&r);
	end(&w);
}

static void redirect_is_not_followed(void **state)
{
	static const struct raw_answer answers[] = {
		{ "HTTP/1.1 307 T\r\nLocation: /v1/models\r\nContent-Length: 0\r\n\r\n", RAW_KEEP },
	};
	struct world w;
	(void)state;
	begin(&w, answers, 1, (struct sba_relay_options){ 0 });
	struct reply r = client_call(w.port, "POST /v1/messages", AUTH, "{}");
	assert_int_equal(r.status, 307);
	assert_null(strcasestr(r.raw.data, "Location"));
	reply_fini(&r);
	stop(&w);
	assert_int_equal(w.up.requests, 1);
	raw_fini(&w.up);
}

static int read_until(int fd, struct reply *r, const char *text)
{
	while (!r->raw.data || !strstr(r->raw.data, text))
		if (!client_read_some(fd, r))
			return -1;
	return 0;
}

static void first_event_comes_at_once_and_a_client_that_leaves_ends_upstream(void **state)
{
	static const struct raw_answer answers[] = {
		{ CHUNKED "d\r\ndata: first\n\n\r\n", RAW_HOLD },
	};
	struct world w;
	struct reply r = { .raw = SBA_BUF_INIT(SBA_MIB) };
	(void)state;
	begin(&w, answers, 1, (struct sba_relay_options){ 0 });
	int fd = client_connect(w.port);
	client_request(fd, "POST /v1/chat/completions", AUTH, "{\"stream\":true}");
	assert_int_equal(read_until(fd, &r, "data: first\n\n"), 0);
	assert_false(raw_told(w.up.closed_fd, 0));
	close(fd);
	assert_true(raw_told(w.up.closed_fd, 1000));
	reply_fini(&r);
	end(&w);
}

static void client_that_leaves_before_the_first_byte_ends_upstream(void **state)
{
	static const struct raw_answer answers[] = { { "", RAW_HOLD } };
	struct world w;
	(void)state;
	begin(&w, answers, 1, (struct sba_relay_options){ 0 });
	int fd = client_connect(w.port);
	client_request(fd, "POST /v1/messages", AUTH, "{}");
	assert_true(raw_told(w.up.held_fd, 5000));
	close(fd);
	assert_true(raw_told(w.up.closed_fd, 1000));
	end(&w);
}

static void answer_to_a_cancelled_request_never_reaches_the_next(void **state)
{
	static const struct raw_answer answers[] = {
		{ CHUNKED "7\r\n: for\n\n\r\n", RAW_HOLD },
		{ CHUNKED "4\r\nnext\r\n0\r\n\r\n", RAW_KEEP },
	};
	struct world w;
	struct reply r = { .raw = SBA_BUF_INIT(SBA_MIB) };
	(void)state;
	begin(&w, answers, 2, (struct sba_relay_options){ 0 });
	int fd = client_connect(w.port);
	client_request(fd, "POST /v1/messages", AUTH, "{}");
	assert_int_equal(read_until(fd, &r, ": for\n\n"), 0);
	close(fd);
	reply_fini(&r);
	assert_true(raw_told(w.up.closed_fd, 1000));
	r = client_call(w.port, "POST /v1/messages", AUTH, "{}");
	assert_string_equal(r.body.data, "next");
	reply_fini(&r);
	end(&w);
}

static void cut_upstream_cuts_the_client(void **state)
{
	static const struct raw_answer answers[] = {
		{ CHUNKED "d\r\ndata: first\n\n\r\n", RAW_CLOSE },
		{ CHUNKED "d\r\ndata: f", RAW_CLOSE },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"half\":", RAW_CLOSE },
	};
	struct world w;
	(void)state;
	begin(&w, answers, SBA_ARRAY_LEN(answers), (struct sba_relay_options){ 0 });
	for (size_t i = 0; i < SBA_ARRAY_LEN(answers); i++) {
		struct reply r = client_call(w.port, "POST /v1/chat/completions", AUTH, "{}");
		assert_int_equal(r.status, 200);
		assert_false(r.whole);
		assert_true(i == 1 || r.body.len > 0); /* half an event is none */
		reply_fini(&r);
	}
	end(&w);
	assert_int_equal(w.up.requests, SBA_ARRAY_LEN(answers));
}

static void upstream_that_answers_nothing_is_a_502_and_not_asked_again(void **state)
{
	static const struct raw_answer answers[] = { { "", RAW_CLOSE } };
	struct world w;
	(void)state;
	begin(&w, answers, 1, (struct sba_relay_options){ 0 });
	struct reply r = client_call(w.port, "POST /v1/messages", AUTH, "{}");
	assert_int_equal(r.status, 502);
	assert_non_null(strstr(r.body.data, "\"type\":\"api_error\""));
	assert_non_null(strstr(r.body.data, "upstream: "));
	reply_fini(&r);
	stop(&w);
	assert_int_equal(w.up.requests, 1);
	raw_fini(&w.up);
}

static void unreachable_upstream_is_told_in_words_without_secrets(void **state)
{
	(void)state;
	alarm(20);
	struct sba_relay *relay = open_relay(1, (struct sba_relay_options){ 0 });
	struct reply r =
		client_call(sba_relay_port(relay), "POST /v1/chat/completions", AUTH, "{}");
	assert_int_equal(r.status, 502);
	assert_non_null(strstr(r.body.data, "{\"error\":{\"message\":\"upstream: "));
	assert_non_null(strstr(r.body.data, "127.0.0.1"));
	assert_null(strstr(r.raw.data, KEY));
	assert_null(strstr(r.raw.data, TOKEN));
	reply_fini(&r);
	struct sba_relay_stats s = stats(relay);
	assert_int_equal(s.failures, 1);
	assert_true(sba_starts_with(s.failure, "upstream: "));
	assert_null(strstr(s.failure, KEY));
	sba_relay_close(relay);
}

/* The status through a TLS upstream with a certificate of its own. */
static int call_through_tls(bool trusted)
{
	static const struct raw_answer answers[] = { { EMPTY, RAW_CLOSE } };
	char folder[64], path[80], ca[512], url[64];
	struct raw_upstream up;
	test_folder(folder, sizeof(folder), "sba-relay");
	snprintf(path, sizeof(path), "%s/s", folder);
	raw_start(&up, path, answers, 1);
	struct tls_front *t = tls_front_start(&(struct tls_front_options){ .socket_path = path });
	snprintf(ca, sizeof(ca), "%s/ca.pem", tls_front_folder(t));
	snprintf(url, sizeof(url), "https://127.0.0.1:%d", tls_front_port(t));
	struct sba_relay *relay = open_relay(
		0, (struct sba_relay_options){ .upstream = url, .ca_file = trusted ? ca : NULL });
	struct reply r = client_call(sba_relay_port(relay), "POST /v1/messages", AUTH, "{}");
	int status = r.status;
	reply_fini(&r);
	sba_relay_close(relay);
	tls_front_stop(t);
	raw_stop(&up);
	if (!trusted)
		assert_null(up.seen.len ? strstr(up.seen.data, KEY) : NULL);
	raw_fini(&up);
	test_folder_remove(folder);
	return status;
}

static void upstream_is_verified_before_it_gets_the_key(void **state)
{
	(void)state;
	alarm(20);
	assert_int_equal(call_through_tls(true), 200);
	assert_int_equal(call_through_tls(false), 502);
}

/* ---- the key ---- */

static void key_in_an_answer_is_starred_out(void **state)
{
	static const struct raw_answer answers[] = {
		{ "HTTP/1.1 401 No\r\nrequest-id: for-" KEY "\r\nContent-Length: 64\r\n\r\n"
		  "{\"error\":\"no " KEY " and " KEY "\"}",
		  RAW_KEEP },
	};
	struct world w;
	(void)state;
	begin(&w, answers, 1, (struct sba_relay_options){ 0 });
	struct reply r = client_call(w.port, "POST /v1/messages", AUTH, "{}");
	assert_int_equal(r.status, 401);
	assert_string_equal(r.body.data, "{\"error\":\"no " STARS " and " STARS "\"}");
	assert_non_null(strstr(r.raw.data, "request-id: for-" STARS "\r\n"));
	assert_null(strstr(r.raw.data, KEY));
	reply_fini(&r);
	end(&w);
}

static void key_cut_by_chunk_borders_is_starred_out(void **state)
{
	static const char text[] = "data: sk-r " KEY "sk-real-key-012345678 " KEY "\n\nsk-real";
	static const char clean[] =
		"data: sk-r " STARS "sk-real-key-012345678 " STARS "\n\nsk-real";
	(void)state;
	for (size_t piece = 1; piece < sizeof(text); piece += piece < 24 ? 1 : 11) {
		struct world w;
		struct sba_buf b = SBA_BUF_INIT(SBA_MIB);
		sba_buf_puts(&b, CHUNKED);
		for (size_t at = 0; at < sizeof(text) - 1; at += piece) {
			size_t n = sizeof(text) - 1 - at < piece ? sizeof(text) - 1 - at : piece;
			sba_buf_printf(&b, "%zx\r\n%.*s\r\n", n, (int)n, text + at);
		}
		sba_buf_puts(&b, "0\r\n\r\n");
		const struct raw_answer answer = { b.data, RAW_KEEP };
		begin(&w, &answer, 1, (struct sba_relay_options){ 0 });
		struct reply r = client_call(w.port, "POST /v1/chat/completions", AUTH, "{}");
		assert_string_equal(r.body.data, clean);
		reply_fini(&r);
		end(&w);
		sba_buf_fini(&b);
	}
}

static void bad_options_are_refused_and_the_key_is_not_quoted(void **state)
{
	static const struct sba_relay_options bad[] = {
		{ .upstream = "ftp://h", .token = TOKEN },
		{ .upstream = "http://u:p@h", .token = TOKEN },
		{ .upstream = "http://h?q=1", .token = TOKEN },
		{ .upstream = "http://h" },
		{ .upstream = "http://h", .token = "" },
		{ .upstream = "http://h", .token = TOKEN, .key = "" },
		{ .upstream = "http://h", .token = TOKEN, .key = "hush\r\nX: 1" },
		{ .upstream = "http://h",
		  .token = TOKEN,
		  .key = "hush",
		  .key_style = SBA_KEY_HEADER },
		{ .upstream = "http://h",
		  .token = TOKEN,
		  .key = "hush",
		  .key_style = SBA_KEY_HEADER,
		  .key_header = "Host" },
		{ .upstream = "http://h", .token = TOKEN, .max_tokens = -1 },
		{ .token = TOKEN },
	};
	(void)state;
	for (size_t i = 0; i < SBA_ARRAY_LEN(bad); i++) {
		struct sba_error err = { 0 };
		struct sba_relay *r = NULL;
		assert_int_equal(sba_relay_open(&bad[i], &r, &err), SBA_EINVAL);
		assert_null(r);
		assert_true(err.text[0]);
		assert_null(strstr(err.text, "hush"));
	}
}

/* ---- tokens and budgets ---- */

#define MESSAGES_STREAM                                                                            \
	"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\","       \
	"\"usage\":{\"input_tokens\":10,\"cache_creation_input_tokens\":5,"                        \
	"\"cache_read_input_tokens\":100,\"output_tokens\":1}}}\n\n"                               \
	"event: content_block_delta\ndata: {\"delta\":{\"text\":\"\\\"usage\\\":{\"}}\n\n"         \
	"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{},\"usage\":"          \
	"{\"output_tokens\":42,\"output_tokens_details\":{\"thinking_tokens\":30}}}\n\n"           \
	"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
#define CHAT_USAGE                                                                                 \
	"\"usage\": {\"prompt_tokens\":115,\"completion_tokens\":42,\"prompt_tokens_details\":"    \
	"{\"cached_tokens\":100},\"completion_tokens_details\":{\"reasoning_tokens\":30}}"
#define CHAT_STREAM                                                                                \
	"data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}],\"usage\":null}\n\n"                \
	"data: {\"choices\":[]," CHAT_USAGE "}\n\ndata: [DONE]\n\n"
#define RESPONSES_USAGE                                                                            \
	"\"usage\":{\"input_tokens\":115,\"input_tokens_details\":{\"cached_tokens\":100},"        \
	"\"output_tokens\":42,\"output_tokens_details\":{\"reasoning_tokens\":30}}"
#define RESPONSES_STREAM                                                                           \
	"event: response.created\ndata: {\"response\":{\"usage\":null}}\n\n"                       \
	"event: response.completed\r\ndata: {\"response\":{\"id\":\"r\"," RESPONSES_USAGE          \
	"}}\r\n\r\n"
#define MESSAGES_WHOLE                                                                             \
	"{\"type\":\"message\",\"usage\":{\"input_tokens\":10,\"cache_creation_input_tokens\":5,"  \
	"\"cache_read_input_tokens\":100,\"output_tokens\":42,"                                    \
	"\"output_tokens_details\":{\"thinking_tokens\":30}}}"

static void tokens_of_all_three_apis_are_counted(void **state)
{
	static const struct {
		const char *line, *type, *body;
	} cases[] = {
		{ "POST /v1/messages", "text/event-stream", MESSAGES_STREAM },
		{ "POST /v1/messages?beta=true", "application/json", MESSAGES_WHOLE },
		{ "POST /v1/chat/completions", "text/event-stream; charset=utf-8", CHAT_STREAM },
		{ "POST /v1/chat/completions", "application/json", "{" CHAT_USAGE "}" },
		{ "POST /v1/responses", "text/event-stream", RESPONSES_STREAM },
		{ "POST /v1/responses", "application/json", "{\"id\":\"r\"," RESPONSES_USAGE "}" },
	};
	(void)state;
	for (size_t i = 0; i < SBA_ARRAY_LEN(cases); i++) {
		struct world w;
		SBA_FREE char *text = plain_answer("200 OK", cases[i].type, cases[i].body);
		const struct raw_answer answer = { text, RAW_KEEP };
		begin(&w, &answer, 1, (struct sba_relay_options){ 0 });
		for (int n = 1; n <= 2; n++) {
			struct reply r = client_call(w.port, cases[i].line, AUTH, "{}");
			assert_string_equal(r.body.data, cases[i].body);
			assert_true(r.whole);
			reply_fini(&r);
			struct sba_relay_stats s = stats(w.relay);
			assert_int_equal(s.usage.input, 115 * n);
			assert_int_equal(s.usage.cached_input, 100 * n);
			assert_int_equal(s.usage.output, 42 * n);
			assert_int_equal(s.usage.reasoning, 30 * n);
			assert_int_equal(s.estimated, 0);
		}
		end(&w);
	}
}

static void answer_without_usage_is_estimated_and_says_so(void **state)
{
	SBA_FREE char *text =
		plain_answer("200 OK", "text/event-stream",
			     "data: {\"a\":1}\n\ndata: {\"b\":2}\n\ndata: [DONE]\n\n");
	const struct raw_answer answer = { text, RAW_KEEP };
	struct world w;
	(void)state;
	begin(&w, &answer, 1, (struct sba_relay_options){ 0 });
	struct reply r = client_call(w.port, "POST /v1/chat/completions", AUTH,
				     "{\"stream\":true,\"x\":\"0123456789\"}");
	reply_fini(&r);
	struct sba_relay_stats s = stats(w.relay);
	assert_int_equal(s.usage.input, 32 / 4);
	assert_int_equal(s.usage.output, 3);
	assert_int_equal(s.estimated, 1);
	end(&w);
}

static void leaving_before_the_end_is_not_free(void **state)
{
	static const char events[] =
		"data: {\"message\":{\"usage\":{\"input_tokens\":77,\"output_tokens\":1}}}\n\n"
		"data: {\"a\":1}\n\ndata: {\"b\":2}\n\n";
	struct sba_buf b = SBA_BUF_INIT(SBA_MIB);
	struct world w;
	struct reply r = { .raw = SBA_BUF_INIT(SBA_MIB) };
	(void)state;
	sba_buf_printf(&b, CHUNKED "%zx\r\n%s\r\n", sizeof(events) - 1, events);
	const struct raw_answer answer = { b.data, RAW_HOLD };
	begin(&w, &answer, 1, (struct sba_relay_options){ .max_tokens = 80 });
	int fd = client_connect(w.port);
	client_request(fd, "POST /v1/messages", AUTH, "{}");
	assert_int_equal(read_until(fd, &r, "\"b\":2"), 0);
	close(fd);
	reply_fini(&r);
	assert_true(raw_told(w.up.closed_fd, 1000));
	assert_int_equal(stats(w.relay).usage.input, 77);
	assert_int_equal(stats(w.relay).usage.output, 3);
	assert_int_equal(stats(w.relay).estimated, 1);
	assert_true(stats(w.relay).tokens_spent);
	end(&w);
	sba_buf_fini(&b);
}

static void event_too_large_to_count_is_passed_on_whole(void **state)
{
	struct sba_buf body = SBA_BUF_INIT(64 * SBA_MIB);
	struct world w;
	(void)state;
	sba_buf_puts(&body, "data: {\"text\":\"");
	while (body.len < 3 * SBA_MIB)
		sba_buf_puts(&body, "0123456789abcdef");
	sba_buf_puts(&body, "\"," CHAT_USAGE "}\n\n");
	SBA_FREE char *text = plain_answer("200 OK", "text/event-stream", body.data);
	const struct raw_answer answer = { text, RAW_KEEP };
	begin(&w, &answer, 1, (struct sba_relay_options){ 0 });
	struct reply r = client_call(w.port, "POST /v1/chat/completions", AUTH, "{}");
	assert_true(r.whole);
	assert_int_equal(r.body.len, body.len);
	assert_memory_equal(r.body.data, body.data, body.len);
	reply_fini(&r);
	assert_int_equal(stats(w.relay).estimated, 1);
	assert_true(stats(w.relay).usage.output > SBA_MIB / 2);
	end(&w);
	sba_buf_fini(&body);
}

static void spent_tokens_refuse_the_next_request(void **state)
{
	SBA_FREE char *text = plain_answer("200 OK", "text/event-stream", MESSAGES_STREAM);
	const struct raw_answer answer = { text, RAW_KEEP };
	struct world w;
	(void)state;
	begin(&w, &answer, 1, (struct sba_relay_options){ .max_tokens = 300 });
	for (int i = 0; i < 4; i++) {
		struct reply r = client_call(w.port, "POST /v1/messages", AUTH, "{}");
		assert_int_equal(r.status, i < 2 ? 200 : 400);
		if (i >= 2) {
			assert_non_null(strstr(r.body.data, "\"type\":\"error\""));
			assert_non_null(strstr(r.body.data, "token budget"));
		}
		reply_fini(&r);
		assert_int_equal(stats(w.relay).tokens_spent, i > 0);
	}
	sba_relay_new_turn(w.relay);
	struct reply r = client_call(w.port, "POST /v1/responses", AUTH, "{}");
	assert_int_equal(r.status, 400);
	assert_non_null(strstr(r.body.data, "{\"error\":{\"message\":"));
	reply_fini(&r);
	assert_int_equal(stats(w.relay).refused, 3);
	stop(&w);
	assert_int_equal(w.up.requests, 2);
	raw_fini(&w.up);
}

static void requests_are_capped_turn_by_turn(void **state)
{
	static const struct raw_answer answers[] = { { EMPTY, RAW_KEEP } };
	struct world w;
	(void)state;
	begin(&w, answers, 1, (struct sba_relay_options){ .max_requests = 2 });
	for (int turn = 0; turn < 2; turn++) {
		for (int i = 0; i < 3; i++) {
			struct reply r = client_call(w.port, "POST /v1/messages", AUTH, "{}");
			assert_int_equal(r.status, i < 2 ? 200 : 400);
			reply_fini(&r);
		}
		assert_true(stats(w.relay).requests_spent);
		sba_relay_new_turn(w.relay);
		assert_false(stats(w.relay).requests_spent);
	}
	end(&w);
}

/* ---- with the scripted model ---- */

enum { STREAMS = 20 };

struct caller {
	uint16_t port;
	struct reply reply;
};

static void *call_big(void *user)
{
	struct caller *c = user;
	int fd = client_connect(c->port);
	client_request(fd, "POST /v1/messages", AUTH "Connection: close\r\n",
		       "{\"stream\":true,\"max_tokens\":9,\"messages\":[{\"role\":\"user\","
		       "\"content\":\"big 200000\"}]}");
	c->reply = client_read_reply(fd);
	return NULL;
}

static void twenty_streams_at_once_are_whole(void **state)
{
	struct caller callers[STREAMS];
	pthread_t threads[STREAMS];
	struct sba_model *model;
	(void)state;
	alarm(60);
	assert_int_equal(sba_model_open(&(struct sba_model_options){ .token = KEY }, &model, NULL),
			 0);
	struct sba_relay *relay =
		open_relay(sba_model_port(model), (struct sba_relay_options){ 0 });
	for (int i = 0; i < STREAMS; i++) {
		callers[i] = (struct caller){ .port = sba_relay_port(relay) };
		pthread_create(&threads[i], NULL, call_big, &callers[i]);
	}
	for (int i = 0; i < STREAMS; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(callers[i].reply.status, 200);
		assert_true(callers[i].reply.whole);
		assert_non_null(strstr(callers[i].reply.body.data, "event: message_stop"));
		assert_true(callers[i].reply.body.len > 200000);
		reply_fini(&callers[i].reply);
	}
	assert_int_equal(stats(relay).requests, STREAMS);
	assert_true(stats(relay).usage.output >= STREAMS * 200000 / 4);
	assert_int_equal(stats(relay).estimated, 0);
	sba_relay_close(relay);
	assert_int_equal(sba_model_requests(model), STREAMS);
	sba_model_close(model);
}

static void scripted_model_is_just_another_upstream(void **state)
{
	static const struct {
		const char *line, *body;
		int status;
		const char *text;
	} cases[] = {
		{ "POST /v1/chat/completions",
		  "{\"messages\":[{\"role\":\"user\",\"content\":\"hello\"}]}", 200,
		  "You said: hello" },
		{ "POST /v1/responses", "{\"stream\":true,\"input\":\"hello\"}", 200, "hello" },
		{ "POST /v1/messages",
		  "{\"messages\":[{\"role\":\"user\",\"content\":\"error 403\"}]}", 403,
		  "permission_error" },
		{ "POST /v1/messages",
		  "{\"messages\":[{\"role\":\"user\",\"content\":\"error 404\"}]}", 404,
		  "not_found_error" },
		{ "GET /v1/models", NULL, 200, "scripted" },
	};
	struct sba_model *model;
	(void)state;
	alarm(20);
	assert_int_equal(sba_model_open(&(struct sba_model_options){ .token = KEY }, &model, NULL),
			 0);
	struct sba_relay *relay =
		open_relay(sba_model_port(model), (struct sba_relay_options){ 0 });
	for (size_t i = 0; i < SBA_ARRAY_LEN(cases); i++) {
		struct reply r =
			client_call(sba_relay_port(relay), cases[i].line, AUTH, cases[i].body);
		assert_int_equal(r.status, cases[i].status);
		assert_true(r.whole);
		assert_non_null(strstr(r.body.data, cases[i].text));
		reply_fini(&r);
	}
	sba_relay_close(relay);
	sba_model_close(model);
}

static void close_breaks_off_what_is_under_way(void **state)
{
	static const struct raw_answer answers[] = {
		{ CHUNKED "9\r\n: begun\n\n\r\n", RAW_HOLD },
	};
	struct world w;
	struct reply r = { .raw = SBA_BUF_INIT(SBA_MIB), .body = SBA_BUF_INIT(SBA_MIB) };
	(void)state;
	begin(&w, answers, 1, (struct sba_relay_options){ 0 });
	int fd = client_connect(w.port);
	client_request(fd, "POST /v1/messages", AUTH, "{}");
	assert_int_equal(read_until(fd, &r, "begun\n\n"), 0);
	int64_t start = sba_now_ms();
	sba_relay_close(w.relay);
	assert_in_range(sba_now_ms() - start, 0, 1000);
	while (client_read_some(fd, &r))
		;
	close(fd);
	reply_parse(&r);
	assert_false(r.whole);
	reply_fini(&r);
	raw_stop(&w.up);
	raw_fini(&w.up);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_listed_headers_and_the_real_key_go_up),
		cmocka_unit_test(key_goes_where_the_provider_wants_it),
		cmocka_unit_test(upstream_base_path_stays_in_front),
		cmocka_unit_test(large_body_goes_up_whole_and_one_too_large_does_not),
		cmocka_unit_test(wrong_token_is_refused_in_the_providers_shape),
		cmocka_unit_test(only_listed_endpoints_are_reached),
		cmocka_unit_test(irregular_requests_are_refused_and_their_connection_ends),
		cmocka_unit_test(unusual_but_regular_heads_are_served),
		cmocka_unit_test(large_head_in_any_pieces_is_served),
		cmocka_unit_test(chunked_request_is_asked_for_its_length),
		cmocka_unit_test(one_connection_carries_many_requests),
		cmocka_unit_test(answer_keeps_status_and_safe_headers),
		cmocka_unit_test(redirect_is_not_followed),
		cmocka_unit_test(first_event_comes_at_once_and_a_client_that_leaves_ends_upstream),
		cmocka_unit_test(client_that_leaves_before_the_first_byte_ends_upstream),
		cmocka_unit_test(answer_to_a_cancelled_request_never_reaches_the_next),
		cmocka_unit_test(cut_upstream_cuts_the_client),
		cmocka_unit_test(upstream_that_answers_nothing_is_a_502_and_not_asked_again),
		cmocka_unit_test(unreachable_upstream_is_told_in_words_without_secrets),
		cmocka_unit_test(upstream_is_verified_before_it_gets_the_key),
		cmocka_unit_test(key_in_an_answer_is_starred_out),
		cmocka_unit_test(key_cut_by_chunk_borders_is_starred_out),
		cmocka_unit_test(bad_options_are_refused_and_the_key_is_not_quoted),
		cmocka_unit_test(tokens_of_all_three_apis_are_counted),
		cmocka_unit_test(answer_without_usage_is_estimated_and_says_so),
		cmocka_unit_test(leaving_before_the_end_is_not_free),
		cmocka_unit_test(event_too_large_to_count_is_passed_on_whole),
		cmocka_unit_test(spent_tokens_refuse_the_next_request),
		cmocka_unit_test(requests_are_capped_turn_by_turn),
		cmocka_unit_test(twenty_streams_at_once_are_whole),
		cmocka_unit_test(scripted_model_is_just_another_upstream),
		cmocka_unit_test(close_breaks_off_what_is_under_way),
	};
	return cmocka_run_group_tests_name("relay", tests, NULL, NULL);
}
