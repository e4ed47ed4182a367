/* SPDX-License-Identifier: MIT */
/*
 * The way out of a sealed sandbox: an HTTP proxy (CONNECT, and plain HTTP) on
 * this host's loopback that lets through what rules allow and nothing else. A
 * name is resolved once, here; every address is judged, and the judged one is
 * connected to. It knows nothing of sandboxes: they reach it through a tunnel.
 */
#ifndef SBA_PROXY_H
#define SBA_PROXY_H

#include "base/base.h"

#include <netinet/in.h>
#include <sys/socket.h>

/* ---- rules (rules.c) ---- */

/* A set of rules out of "HOST[:PORT]", "*.suffix[:PORT]", "CIDR[:PORT]",
 * "[IPv6]:PORT". Without a port: 443 and 80. */
struct sba_rules;
/* SBA_EINVAL names the rule and what is wrong with it. */
int sba_rules_new(const char *const *texts, struct sba_rules **ret,
		  struct sba_error *err) SBA_MUST_CHECK;
void sba_rules_free(struct sba_rules *r);

enum { SBA_HOST_NAME_MAX = 254 };
/* A host of a request in normal form: lower case, no trailing dot, ASCII only
 * (the xn-- form of an IDN is), IPv4 in its canonical dotted form only (octal, decimal, short forms
 * refused), IPv6 without brackets. SBA_EINVAL for everything else. */
int sba_host_normalise(const char *host, size_t len, char ret[SBA_HOST_NAME_MAX],
		       struct sba_error *err) SBA_MUST_CHECK;
/* Whether some rule allows the host's name at this port; the addresses it
 * resolves to are judged apart. */
bool sba_rules_allow_name(const struct sba_rules *r, const char *host, uint16_t port);
/* Whether this address may be connected to for a host that the rules allow:
 * private, loopback, link-local, mapped, translated (NAT64, 6to4), shared
 * (100.64/10), multicast, broadcast, unspecified and documentation addresses only
 * where the address itself or a CIDR within its range is in a rule (0.0.0.0/0 is
 * the public internet). */
bool sba_rules_allow_address(const struct sba_rules *r, const struct sockaddr *address,
			     uint16_t port);

/* ---- the proxy (proxy.c) ---- */

/* One connection at its end, or one refusal before it is answered, for the record. Called on the
 * proxy's threads, one at a time; it must not close the proxy. */
struct sba_proxy_event {
	const char *host; /* normalised, or visible bytes of what was asked; may be "" */
	uint16_t port;
	bool allowed;
	const char *why;         /* of a refusal or a failure; NULL: all went well */
	const char *reason;      /* of a refusal by the rules: why, in a few words; else NULL */
	const char *rule;        /* ... and the rule that would allow it */
	uint64_t sent, received; /* bytes to and from the server */
};
typedef void sba_proxy_event_fn(void *user, const struct sba_proxy_event *event);

struct sba_proxy_options {
	const char *const *allow;  /* rules; NULL-ended */
	sba_proxy_event_fn *event; /* may be NULL */
	void *user;
	unsigned max_connections; /* 0: 256 */
};

struct sba_proxy;
/* Listens on 127.0.0.1, any free port. */
int sba_proxy_open(const struct sba_proxy_options *options, struct sba_proxy **ret,
		   struct sba_error *err) SBA_MUST_CHECK;
uint16_t sba_proxy_port(const struct sba_proxy *p);
/* Breaks off what is under way and waits for its threads, but not for a look-up
 * that hangs in the system's resolver: its thread ends by itself. NULL is allowed. */
void sba_proxy_close(struct sba_proxy *p);

#endif
