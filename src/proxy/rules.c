/* SPDX-License-Identifier: MIT */
/*
 * The rules of a sandbox: what they say and what they allow. Pure; it resolves
 * nothing and connects to nothing.
 */
#include "proxy/private.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

enum rule_kind { RULE_NAME, RULE_SUFFIX, RULE_NET };

struct rule {
	enum rule_kind kind;
	uint16_t port;                /* 0: 443 and 80 */
	char name[SBA_HOST_NAME_MAX]; /* of a suffix: without "*." */
	struct sba_proxy_net net;
};

struct sba_rules {
	size_t n;
	struct rule rules[];
};

/* A rule's text in its parts; port and bits may be absent (at == NULL). */
struct parts {
	struct sba_proxy_span host, bits, port;
};

static struct sba_proxy_span span(const char *from, const char *to)
{
	return (struct sba_proxy_span){ from, (size_t)(to - from) };
}

/* HOST, HOST:PORT, NET/BITS, NET/BITS:PORT, IPv6; what is in brackets
 * has colons of its own. False: the brackets are not what they are for. */
static bool split(const char *text, struct parts *ret)
{
	struct parts p = { 0 };
	const char *end = text + strlen(text), *bracket = text[0] == '[' ? strchr(text, ']') : NULL;
	const char *host_end = bracket ? bracket : end, *colon = bracket ? bracket + 1 : NULL;
	const char *host = bracket ? text + 1 : text;
	const char *slash = memchr(host, '/', (size_t)(host_end - host));
	if (bracket && !memchr(host, ':', (size_t)(host_end - host)))
		return false;
	if (!bracket)
		colon = strchr(slash ? slash : text, ':');
	if (!bracket && !slash && colon && strchr(colon + 1, ':'))
		colon = NULL; /* an IPv6 address, bare */
	if (colon && *colon) {
		if (*colon != ':')
			return false;
		p.port = span(colon + 1, end);
		host_end = bracket ? bracket : colon;
	}
	if (slash)
		p.bits = span(slash + 1, host_end);
	p.host = span(host, slash ? slash : host_end);
	*ret = p;
	return true;
}

static int parse_bits(struct sba_proxy_span s, unsigned max, unsigned *ret)
{
	char digits[4];
	int64_t bits;
	if (s.len == 0 || s.len >= sizeof(digits))
		return SBA_EINVAL;
	memcpy(digits, s.at, s.len);
	digits[s.len] = '\0';
	if (sba_parse_int(digits, 0, max, &bits) < 0)
		return SBA_EINVAL;
	*ret = (unsigned)bits;
	return 0;
}

static int parse_net(struct rule *rule, struct sba_proxy_span bits, struct sba_error *err)
{
	unsigned max = rule->net.ip.family == AF_INET ? 32 : 128;
	rule->kind = RULE_NET;
	rule->net.bits = max;
	if (bits.at && parse_bits(bits, max, &rule->net.bits) < 0)
		return sba_fail(err, SBA_EINVAL, "after '/' a number from 0 to %u", max);
	if (!sba_proxy_net_exact(&rule->net))
		return sba_fail(err, SBA_EINVAL, "the address has bits beyond the first %u",
				rule->net.bits);
	return 0;
}

static bool is_local_name(const char *host)
{
	return strcmp(host, "localhost") == 0 || sba_ends_with(host, ".localhost");
}

static int parse_host(struct rule *rule, const struct parts *p, struct sba_error *err)
{
	struct sba_proxy_span host = p->host;
	bool suffix = host.len > 2 && host.at[0] == '*' && host.at[1] == '.';
	if (suffix)
		host = span(host.at + 2, host.at + host.len);
	int rc = sba_host_normalise(host.at, host.len, rule->name, err);
	if (rc < 0)
		return rc;
	bool is_ip = sba_proxy_ip_parse(rule->name, &rule->net.ip);
	if (!suffix && is_ip)
		return parse_net(rule, p->bits, err);
	if (p->bits.at)
		return sba_fail(err, SBA_EINVAL, "'/' after what is no address");
	if (suffix && (is_ip || is_local_name(rule->name)))
		return sba_fail(err, SBA_EINVAL, "'*.' before an address or localhost");
	rule->kind = suffix ? RULE_SUFFIX : RULE_NAME;
	return 0;
}

static int parse_rule(const char *text, struct rule *rule, struct sba_error *err)
{
	struct parts p;
	if (!split(text, &p))
		return sba_fail(err, SBA_EINVAL,
				"brackets are for IPv6, with only :PORT behind them");
	if (p.port.at && sba_proxy_port_parse(p.port.at, p.port.len, &rule->port) < 0)
		return sba_fail(err, SBA_EINVAL, "a port is a number from 1 to 65535");
	return parse_host(rule, &p, err);
}

int sba_rules_new(const char *const *texts, struct sba_rules **ret, struct sba_error *err)
{
	size_t n = 0;
	while (texts && texts[n])
		n++;
	struct sba_rules *r = calloc(1, sizeof(*r) + n * sizeof(r->rules[0]));
	if (!r)
		return sba_fail_nomem(err);
	for (; r->n < n; r->n++) {
		int rc = parse_rule(texts[r->n], &r->rules[r->n], err);
		if (rc < 0) {
			sba_wrap(err, rc, "rule '%s'", texts[r->n]);
			sba_rules_free(r);
			return sba_hint(err, rc,
					"rules are HOST[:PORT], *.SUFFIX[:PORT], "
					"ADDRESS[/BITS][:PORT] or [IPv6]:PORT");
		}
	}
	*ret = r;
	return 0;
}

void sba_rules_free(struct sba_rules *r)
{
	free(r);
}

static bool has_port(const struct rule *rule, uint16_t port)
{
	return rule->port ? rule->port == port : port == 443 || port == 80;
}

static bool under(const char *host, const char *suffix)
{
	size_t len = strlen(host), tail = strlen(suffix);
	return len > tail + 1 && host[len - tail - 1] == '.' &&
	       strcmp(host + len - tail, suffix) == 0;
}

/* Names under localhost mean this host to every resolver, whatever their
 * suffix was meant to open: only a rule for the name itself counts. */
static bool names(const struct rule *rule, const char *host, const struct sba_proxy_ip *ip)
{
	switch (rule->kind) {
	case RULE_NAME:
		return !ip && strcmp(host, rule->name) == 0;
	case RULE_SUFFIX:
		return !ip && !is_local_name(host) && under(host, rule->name);
	case RULE_NET:
		return ip && sba_proxy_net_has(&rule->net, ip);
	}
	return false;
}

bool sba_rules_allow_name(const struct sba_rules *r, const char *host, uint16_t port)
{
	struct sba_proxy_ip ip;
	bool is_ip = sba_proxy_ip_parse(host, &ip);
	for (size_t i = 0; i < r->n; i++) {
		if (has_port(&r->rules[i], port) && names(&r->rules[i], host, is_ip ? &ip : NULL))
			return true;
	}
	return false;
}

/* 0.0.0.0/0 is said by those who mean the internet, and must not open this
 * host's loopback with it: a rule names a special address only from within its
 * range. */
static bool names_special(const struct rule *rule, const struct sba_proxy_range *range,
			  const struct sba_proxy_ip *ip)
{
	return rule->kind == RULE_NET && rule->net.bits >= range->net.bits &&
	       sba_proxy_net_has(&range->net, &rule->net.ip) && sba_proxy_net_has(&rule->net, ip);
}

bool sba_rules_allow_address(const struct sba_rules *r, const struct sockaddr *address,
			     uint16_t port)
{
	struct sba_proxy_ip ip;
	if (!sba_proxy_ip_of(address, &ip))
		return false;
	const struct sba_proxy_range *range = sba_proxy_range_of(&ip);
	if (!range)
		return true;
	for (size_t i = 0; i < r->n; i++) {
		if (has_port(&r->rules[i], port) && names_special(&r->rules[i], range, &ip))
			return true;
	}
	return false;
}

void sba_proxy_rule_for(const char *host, uint16_t port, char ret[SBA_PROXY_RULE_TEXT_MAX])
{
	bool v6 = strchr(host, ':');
	if (port == 443 || port == 80)
		snprintf(ret, SBA_PROXY_RULE_TEXT_MAX, "%s", host);
	else
		snprintf(ret, SBA_PROXY_RULE_TEXT_MAX, v6 ? "[%s]:%u" : "%s:%u", host, port);
}
