/* SPDX-License-Identifier: MIT */
/*
 * What the parts of the proxy share: addresses and their judgement, a
 * request's head and body, looking up and connecting, carrying bytes. Where a
 * failure is answered to the program inside, err->http_status says with what.
 */
#ifndef SBA_PROXY_PRIVATE_H
#define SBA_PROXY_PRIVATE_H

#include "base/limits.h"
#include "proxy/proxy.h"

#include <pthread.h>

/* ---- addresses (address.c) ---- */

struct sba_proxy_ip {
	int family; /* AF_INET: the first four bytes; AF_INET6: all */
	unsigned char bytes[16];
};

struct sba_proxy_net {
	struct sba_proxy_ip ip;
	unsigned bits; /* of the prefix */
};

/* A canonical literal (inet_pton's forms). */
bool sba_proxy_ip_parse(const char *text, struct sba_proxy_ip *ret);
/* False for a family that is not IP. */
bool sba_proxy_ip_of(const struct sockaddr *address, struct sba_proxy_ip *ret);
void sba_proxy_ip_text(const struct sba_proxy_ip *ip, char ret[INET6_ADDRSTRLEN]);
bool sba_proxy_net_has(const struct sba_proxy_net *net, const struct sba_proxy_ip *ip);
/* True if no bit beyond the prefix is set. */
bool sba_proxy_net_exact(const struct sba_proxy_net *net);

/* A range that is not the public internet, the narrowest that has the
 * address; NULL for a public address. */
struct sba_proxy_range {
	struct sba_proxy_net net;
	const char *kind; /* "a loopback address" */
};
const struct sba_proxy_range *sba_proxy_range_of(const struct sba_proxy_ip *ip);

/* ---- hosts and rules (host.c, rules.c) ---- */

struct sba_proxy_authority {
	char host[SBA_HOST_NAME_MAX]; /* normalised */
	uint16_t port;
};
/* HOST[:PORT] with IPv6 in brackets. default_port 0: a port must be there. */
int sba_proxy_authority_parse(const char *text, size_t len, uint16_t default_port,
			      struct sba_proxy_authority *ret,
			      struct sba_error *err) SBA_MUST_CHECK;
/* 1..65535 in decimal without leading zeros. */
int sba_proxy_port_parse(const char *text, size_t len, uint16_t *ret) SBA_MUST_CHECK;

enum { SBA_PROXY_RULE_TEXT_MAX = SBA_HOST_NAME_MAX + 8 };
/* The rule that would allow a host (or an address) at a port. */
void sba_proxy_rule_for(const char *host, uint16_t port, char ret[SBA_PROXY_RULE_TEXT_MAX]);

/* ---- a request's head (head.c, request.c) ---- */

struct sba_proxy_span {
	const char *at;
	size_t len;
};
bool sba_proxy_span_is(struct sba_proxy_span s, const char *text); /* without case */
/* What is before c, or all; rest is behind it. */
struct sba_proxy_span sba_proxy_span_take(struct sba_proxy_span *rest, char c);
struct sba_proxy_span sba_proxy_span_trim(struct sba_proxy_span s);
/* SBA_EPROTO: "bad request: <why>", answered with status. */
int sba_proxy_bad(struct sba_error *err, int status, const char *why);

struct sba_proxy_header {
	struct sba_proxy_span name, value;
};

/* Spans point into the bytes that were parsed. */
struct sba_proxy_head {
	struct sba_proxy_span method, target;
	int minor; /* HTTP/1.minor */
	struct sba_proxy_header headers[SBA_PROXY_HEADERS_MAX];
	size_t headers_n;
	size_t size; /* of the head in bytes */
};
/* Bytes of the head once it is whole, 0 while it is not, SBA_EPROTO with
 * http_status as soon as it cannot become a good one. On failure too, method and
 * target are set as far as they were understood. */
ssize_t sba_proxy_head_parse(const char *data, size_t len, struct sba_proxy_head *ret,
			     struct sba_error *err) SBA_MUST_CHECK;

/* What a head asks for. */
struct sba_proxy_request {
	bool connect;
	struct sba_proxy_authority authority;
	struct sba_proxy_span path; /* with the query; empty: "/" or, of OPTIONS, "*" */
	bool chunked;
	uint64_t length; /* of a body that is not chunked */
	bool has_length;
};
int sba_proxy_request_read(const struct sba_proxy_head *head, struct sba_proxy_request *ret,
			   struct sba_error *err) SBA_MUST_CHECK;
/* Writes the head anew for the server itself, framing included. */
void sba_proxy_request_write(const struct sba_proxy_head *head, const struct sba_proxy_request *r,
			     struct sba_buf *out);

/* ---- a request's body (body.c) ---- */

struct sba_proxy_body {
	bool chunked;
	bool done;
	int state;
	int digits;
	uint64_t left; /* of the body, or of a chunk */
	size_t trailer;
};
void sba_proxy_body_init(struct sba_proxy_body *b, const struct sba_proxy_request *r);
/* Takes what belongs to the body and writes it anew to out; what follows its
 * end is ignored. SBA_EPROTO: a chunk that is not well-formed. */
int sba_proxy_body_feed(struct sba_proxy_body *b, const char *data, size_t len, struct sba_buf *out,
			struct sba_error *err) SBA_MUST_CHECK;

/* ---- out to the server (connect.c) ---- */

/* What tests put in place of the system's; zero means the default. */
struct sba_proxy_hooks {
	sba_resolve_fn *resolve;
	void *resolve_user; /* outlives every look-up */
	int64_t head_ms, connect_ms, idle_ms;
};
int sba_proxy_open_hooked(const struct sba_proxy_options *options,
			  const struct sba_proxy_hooks *hooks, struct sba_proxy **ret,
			  struct sba_error *err) SBA_MUST_CHECK;

/* A non-blocking connection to the first address that answers. */
int sba_proxy_connect(const struct sba_addresses *addresses, struct sba_until until, int *ret_fd,
		      struct sba_error *err) SBA_MUST_CHECK;

/* ---- carrying bytes (pump.c) ---- */

struct sba_proxy_pump {
	int client, server;          /* non-blocking */
	struct sba_proxy_body *body; /* of the one request that may pass; NULL: a tunnel */
	struct sba_buf first;        /* sent to the server before all else; taken over */
	int stop_fd;
	int64_t idle_ms;
	uint64_t sent, received; /* out: bytes to and from the server */
};
/* Until both sides have ended (a request: the server has). 0: cleanly;
 * SBA_ETIMEOUT, SBA_ECANCELED, SBA_EIO, SBA_EPROTO (a bad body). */
int sba_proxy_pump_run(struct sba_proxy_pump *p, struct sba_error *err) SBA_MUST_CHECK;

/* ---- one connection (connection.c) ---- */

/* What every connection may see of its proxy. */
struct sba_proxy_shared {
	const struct sba_rules *rules;
	struct sba_proxy_hooks hooks; /* complete */
	void (*record)(struct sba_proxy *p, const struct sba_proxy_event *event);
	struct sba_proxy *proxy;
	uint16_t port;
	int stop_fd;
};
/* Serves one request; closes fd. */
void sba_proxy_connection_serve(const struct sba_proxy_shared *shared, int fd);
/* Says in one breath that there is no place, waiting for nobody; closes fd. */
void sba_proxy_connection_turn_away(const struct sba_proxy_shared *shared, int fd);

#endif
