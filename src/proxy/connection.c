/* SPDX-License-Identifier: MIT */
/*
 * One connection of a program inside: its request is read, judged, and either
 * carried out or answered with what is wrong. The judgement and the connection
 * are made of one and the same look-up.
 */
#include "proxy/private.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

enum {
	ASKED_MAX = 256,   /* bytes of a target that are recorded where it was not understood */
	ANSWER_MAX = 4096, /* an answer of our own */
	REASON_MAX = INET6_ADDRSTRLEN + 64,
};

struct connection {
	const struct sba_proxy_shared *shared;
	struct sba_until stop;
	int client, server;
	struct sba_buf in;
	struct sba_proxy_head head;
	struct sba_proxy_request request;
	struct sba_lookup *lookup;
	bool understood; /* request is set */
	bool allowed;
	bool answered;                      /* bytes of an answer are on their way */
	char rule[SBA_PROXY_RULE_TEXT_MAX]; /* that would allow it; "" */
	char reason[REASON_MAX];
	uint64_t sent, received;
};

/* ---- words ---- */

static int fail_status(struct sba_error *err, int status, int rc)
{
	err->http_status = status;
	return rc;
}

static const char *reason(int status)
{
	switch (status) {
	case 400:
		return "Bad Request";
	case 403:
		return "Forbidden";
	case 405:
		return "Method Not Allowed";
	case 408:
		return "Request Timeout";
	case 431:
		return "Request Header Fields Too Large";
	case 503:
		return "Service Unavailable";
	case 504:
		return "Gateway Timeout";
	case 505:
		return "HTTP Version Not Supported";
	default:
		return "Bad Gateway";
	}
}

/* Of a failed CONNECT most clients show the status line and nothing else, so
 * that a refusal says it all there too. Its words are ours and normalised hosts. */
static void write_answer(struct sba_buf *out, int status, const char *text)
{
	sba_buf_printf(out, "HTTP/1.1 %d %s\r\n", status, status == 403 ? text : reason(status));
	sba_buf_printf(out,
		       "Content-Type: text/plain; charset=utf-8\r\n"
		       "Content-Length: %zu\r\nConnection: close\r\n\r\n%s\n",
		       strlen(text) + 1, text);
}

static int send_all(const struct connection *c, const char *data, size_t len, struct sba_error *err)
{
	struct sba_until until = sba_until_sooner(c->stop, c->shared->hooks.connect_ms);
	while (len > 0) {
		ssize_t n = send(c->client, data, len, MSG_NOSIGNAL);
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return sba_fail_errno(err, SBA_EIO, errno, "answer");
		if (n < 0) {
			int rc = sba_wait_fd(c->client, POLLOUT, until, err);
			if (rc < 0)
				return rc;
			continue;
		}
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

static void answer_failure(struct connection *c, const struct sba_error *err)
{
	SBA_BUF struct sba_buf out = SBA_BUF_INIT(ANSWER_MAX);
	int status = err->http_status;
	if (!status)
		status = err->code == SBA_ETIMEOUT ? 504 : 502;
	write_answer(&out, status, err->text);
	if (!out.failed && send_all(c, out.data, out.len, NULL) == 0)
		c->answered = true;
}

/* ---- judgement ---- */

static int refuse(struct connection *c, const char *host, const char *why, struct sba_error *err)
{
	sba_proxy_rule_for(host, c->request.authority.port, c->rule);
	sba_fail(err, SBA_EREFUSED, "refused: %s; its owner can allow it with: --allow %s", why,
		 c->rule);
	return fail_status(err, 403, SBA_EREFUSED);
}

static int judge_name(struct connection *c, struct sba_error *err)
{
	const struct sba_proxy_authority *a = &c->request.authority;
	char why[SBA_HOST_NAME_MAX + 64];
	if (sba_rules_allow_name(c->shared->rules, a->host, a->port))
		return 0;
	snprintf(why, sizeof(why),
		 strchr(a->host, ':') ? "[%s]:%u is not in the rules of this sandbox"
				      : "%s:%u is not in the rules of this sandbox",
		 a->host, a->port);
	snprintf(c->reason, sizeof(c->reason), "no rule");
	return refuse(c, a->host, why, err);
}

/* A way to 127.0.0.1 by another spelling; rules may well name it. */
static bool is_own_loopback(const struct sba_proxy_ip *ip)
{
	static const unsigned char mapped[12] = { [10] = 0xFF, 0xFF }, loop[4] = { 127, 0, 0, 1 };
	static const unsigned char zero[4];
	const unsigned char *v4 = ip->bytes;
	if (ip->family == AF_INET6) {
		if (memcmp(ip->bytes, mapped, sizeof(mapped)) != 0)
			return false;
		v4 += sizeof(mapped);
	}
	return memcmp(v4, loop, sizeof(loop)) == 0 || memcmp(v4, zero, sizeof(zero)) == 0;
}

static int refuse_address(struct connection *c, const struct sba_proxy_ip *ip,
			  struct sba_error *err)
{
	const struct sba_proxy_authority *a = &c->request.authority;
	const struct sba_proxy_range *range = sba_proxy_range_of(ip);
	char text[INET6_ADDRSTRLEN], why[SBA_HOST_NAME_MAX + INET6_ADDRSTRLEN + 128];
	sba_proxy_ip_text(ip, text);
	const char *verb = strcmp(a->host, text) == 0 ? "is" : "resolves to";
	const char *kind = range ? range->kind : "an address";
	snprintf(why, sizeof(why), "%s %s %s, %s which no rule of this sandbox names", a->host,
		 verb, text, kind);
	snprintf(c->reason, sizeof(c->reason), "it %s %s, %s", verb, text, kind);
	return refuse(c, text, why, err);
}

static int judge_address(struct connection *c, const struct sockaddr *address,
			 struct sba_error *err)
{
	uint16_t port = c->request.authority.port;
	struct sba_proxy_ip ip;
	if (!sba_proxy_ip_of(address, &ip))
		return fail_status(err, 502, sba_fail(err, SBA_ECONNECT, "not an IP address"));
	if (!sba_rules_allow_address(c->shared->rules, address, port))
		return refuse_address(c, &ip, err);
	if (port != c->shared->port || !is_own_loopback(&ip))
		return 0;
	sba_fail(err, SBA_EREFUSED, "refused: %s:%u is this proxy", c->request.authority.host,
		 port);
	return fail_status(err, 403, SBA_EREFUSED);
}

/* Keeps the addresses that may be connected to; if there are none, err says why
 * of the first. */
static int judge_addresses(struct connection *c, struct sba_addresses *all, struct sba_error *err)
{
	struct sba_error later;
	size_t kept = 0;
	if (all->n == 0)
		return sba_fail(err, SBA_ENOTFOUND, "%s has no address", c->request.authority.host);
	for (size_t i = 0; i < all->n; i++) {
		const struct sockaddr *address = (const struct sockaddr *)&all->v[i];
		if (judge_address(c, address, i == 0 ? err : &later) == 0)
			all->v[kept++] = all->v[i];
	}
	all->n = kept;
	return kept ? 0 : err->code;
}

/* ---- the steps of a connection ---- */

static int read_head(struct connection *c, struct sba_error *err)
{
	struct sba_until until = sba_until_sooner(c->stop, c->shared->hooks.head_ms);
	for (;;) {
		int rc = sba_wait_fd(c->client, POLLIN, until, err);
		if (rc == SBA_ETIMEOUT)
			return fail_status(err, 408, sba_wrap(err, rc, "waiting for a request"));
		if (rc < 0)
			return rc;
		size_t room = SBA_PROXY_HEAD_MAX - c->in.len;
		char *at = sba_buf_reserve(&c->in, room);
		if (!at)
			return sba_fail_nomem(err);
		ssize_t n = recv(c->client, at, room, 0);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (n <= 0)
			return sba_fail(err, SBA_ELOST, "the client ended before its request did");
		c->in.len += (size_t)n;
		ssize_t size = sba_proxy_head_parse(c->in.data, c->in.len, &c->head, err);
		if (size != 0)
			return size < 0 ? (int)size : 0;
	}
}

static int look_up(struct connection *c, struct sba_addresses *ret, struct sba_error *err)
{
	const struct sba_proxy_shared *s = c->shared;
	const struct sba_proxy_authority *a = &c->request.authority;
	struct sba_proxy_ip ip;
	if (sba_proxy_ip_parse(a->host, &ip))
		return sba_resolve(NULL, a->host, a->port, ret, err);
	int rc = sba_lookup_start(s->hooks.resolve, s->hooks.resolve_user, a->host, a->port,
				  &c->lookup, err);
	if (rc < 0)
		return rc;
	struct sba_until until = sba_until_sooner(c->stop, s->hooks.connect_ms);
	return sba_lookup_wait(c->lookup, until, ret, err);
}

static int find_server(struct connection *c, struct sba_error *err)
{
	struct sba_addresses addresses = { .n = 0 };
	int rc = look_up(c, &addresses, err);
	if (rc == 0)
		rc = judge_addresses(c, &addresses, err);
	c->allowed = rc != SBA_EREFUSED;
	if (rc < 0)
		return rc;
	struct sba_until until = sba_until_sooner(c->stop, c->shared->hooks.connect_ms);
	rc = sba_proxy_connect(&addresses, until, &c->server, err);
	return rc < 0 ? sba_wrap(err, rc, "%s", c->request.authority.host) : 0;
}

static int pump(struct connection *c, struct sba_proxy_pump *p, struct sba_error *err)
{
	p->client = c->client;
	p->server = c->server;
	p->stop_fd = c->stop.cancel_fd;
	p->idle_ms = c->shared->hooks.idle_ms;
	int rc = sba_proxy_pump_run(p, err);
	c->sent = p->sent;
	c->received = p->received;
	return rc;
}

static int serve_tunnel(struct connection *c, struct sba_error *err)
{
	static const char ok[] = "HTTP/1.1 200 Connection established\r\n\r\n";
	struct sba_proxy_pump p = { .first = SBA_BUF_INIT(SBA_PROXY_HEAD_MAX) };
	c->answered = true;
	int rc = send_all(c, ok, sizeof(ok) - 1, err);
	if (rc < 0)
		return rc;
	sba_buf_put(&p.first, c->in.data + c->head.size, c->in.len - c->head.size);
	rc = sba_buf_check(&p.first, "the first bytes", err);
	if (rc == 0)
		rc = pump(c, &p, err);
	sba_buf_fini(&p.first);
	return rc;
}

static int serve_request(struct connection *c, struct sba_error *err)
{
	struct sba_proxy_body body;
	struct sba_proxy_pump p = { .first = SBA_BUF_INIT(4 * SBA_PROXY_HEAD_MAX), .body = &body };
	sba_proxy_request_write(&c->head, &c->request, &p.first);
	sba_proxy_body_init(&body, &c->request);
	int rc = sba_proxy_body_feed(&body, c->in.data + c->head.size, c->in.len - c->head.size,
				     &p.first, err);
	if (rc == 0)
		rc = sba_buf_check(&p.first, "the request", err);
	if (rc == 0)
		rc = pump(c, &p, err);
	sba_buf_fini(&p.first);
	c->answered = c->received > 0;
	if (rc == 0 && !c->answered)
		return sba_fail(err, SBA_ELOST, "%s: closed without an answer",
				c->request.authority.host);
	return rc;
}

static int converse(struct connection *c, struct sba_error *err)
{
	int rc = read_head(c, err);
	if (rc == 0)
		rc = sba_proxy_request_read(&c->head, &c->request, err);
	if (rc < 0)
		return rc;
	c->understood = true;
	rc = judge_name(c, err);
	if (rc == 0)
		rc = find_server(c, err);
	if (rc < 0)
		return rc;
	return c->request.connect ? serve_tunnel(c, err) : serve_request(c, err);
}

/* ---- its end ---- */

static void record(const struct connection *c, const char *why)
{
	SBA_BUF struct sba_buf asked = SBA_BUF_INIT(8 * ASKED_MAX);
	struct sba_proxy_event e = {
		.host = "",
		.allowed = c->allowed,
		.why = why,
		.reason = c->allowed || !c->rule[0] ? NULL : c->reason,
		.rule = c->allowed || !c->rule[0] ? NULL : c->rule,
		.sent = c->sent,
		.received = c->received,
	};
	if (c->understood) {
		e.host = c->request.authority.host;
		e.port = c->request.authority.port;
	} else if (c->head.target.len > 0) {
		size_t len = c->head.target.len < ASKED_MAX ? c->head.target.len : ASKED_MAX;
		sba_buf_put_visible(&asked, c->head.target.at, len, true);
		e.host = asked.failed || !asked.data ? "" : asked.data;
	}
	c->shared->record(c->shared->proxy, &e);
}

/* Closing with bytes unread resets the connection, and a reset can overtake the
 * answer: what still comes is read and dropped for a while. */
static void linger(const struct connection *c)
{
	struct sba_until until = sba_until_sooner(c->stop, SBA_PROXY_LINGER_MS);
	char drop[4096];
	shutdown(c->client, SHUT_WR);
	while (sba_wait_fd(c->client, POLLIN, until, NULL) > 0) {
		ssize_t n = recv(c->client, drop, sizeof(drop), 0);
		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
			return;
	}
}

/* What was broken off must not look like a whole answer that ended. */
static void reset_on_close(int fd)
{
	struct linger hard = { .l_onoff = 1 };
	if (fd >= 0)
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
}

static void finish(struct connection *c, int rc, const struct sba_error *err)
{
	bool silent = c->in.len == 0; /* came and went */
	bool broken = rc < 0 && c->answered;
	/* First: whoever acts on the answer finds the record. */
	if (!silent)
		record(c, rc < 0 ? err->text : NULL);
	if (rc < 0 && !c->answered && !silent && rc != SBA_ECANCELED)
		answer_failure(c, err);
	if (broken) {
		reset_on_close(c->client);
		reset_on_close(c->server);
	} else if (c->answered && !(rc == 0 && c->request.connect)) {
		linger(c);
	}
	sba_cleanup_close(&c->server);
	sba_cleanup_close(&c->client);
}

void sba_proxy_connection_serve(const struct sba_proxy_shared *shared, int fd)
{
	struct sba_error err = { 0 };
	struct connection c = {
		.shared = shared,
		.stop = { SBA_NEVER, shared->stop_fd },
		.client = fd,
		.server = -1,
		.in = SBA_BUF_INIT(SBA_PROXY_HEAD_MAX),
	};
	int rc = converse(&c, &err);
	finish(&c, rc, &err);
	sba_buf_fini(&c.in);
	/* The place of this connection is held while its look-up goes on: the number
	 * of threads stays bounded. */
	sba_lookup_end(c.lookup, c.stop);
}

void sba_proxy_connection_turn_away(const struct sba_proxy_shared *shared, int fd)
{
	static const char why[] = "too many connections through this proxy";
	SBA_BUF struct sba_buf out = SBA_BUF_INIT(ANSWER_MAX);
	struct sba_proxy_event e = { .host = "", .why = why };
	char drop[4096];
	ssize_t n = recv(fd, drop, sizeof(drop), 0);
	write_answer(&out, 503, why);
	if (!out.failed)
		n = send(fd, out.data, out.len, MSG_NOSIGNAL);
	(void)n;
	shutdown(fd, SHUT_WR);
	close(fd);
	shared->record(shared->proxy, &e);
}
