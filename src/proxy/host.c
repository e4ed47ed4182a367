/* SPDX-License-Identifier: MIT */
/*
 * Hosts and ports as a request or a rule writes them, brought into the one form
 * that is compared. What could be read in two ways is refused: another reader of
 * it (the resolver, a server) would be the one to choose.
 */
#include "proxy/private.h"

#include <arpa/inet.h>
#include <string.h>

enum { LABEL_MAX = 63 };

static bool is_host_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
	       c == '.' || c == ':';
}

static const char *complaint(char c)
{
	if (c == '@')
		return "a user name in a host";
	if (c == '%')
		return "a zone or an escape in a host";
	if ((unsigned char)c >= 0x80)
		return "a host that is not ASCII (its xn-- form is)";
	return "a character that no host has";
}

static int lower(const char *host, size_t len, char ret[SBA_HOST_NAME_MAX], struct sba_error *err)
{
	if (len == 0)
		return sba_fail(err, SBA_EINVAL, "an empty host");
	if (len >= SBA_HOST_NAME_MAX)
		return sba_fail(err, SBA_EINVAL, "a host of more than %d characters",
				SBA_HOST_NAME_MAX - 1);
	for (size_t i = 0; i < len; i++) {
		char c = host[i];
		ret[i] = c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
		if (!is_host_char(ret[i]))
			return sba_fail(err, SBA_EINVAL, "%s", complaint(c));
	}
	ret[len] = '\0';
	return 0;
}

/* As browsers and resolvers see it: what ends in a number is an IPv4 address in
 * some spelling (127.1, 0x7f000001, 0177.0.0.1), never a name. */
static bool ends_in_number(const char *host)
{
	const char *dot = strrchr(host, '.');
	const char *last = dot ? dot + 1 : host;
	if (last[0] == '0' && last[1] == 'x')
		return last[2 + strspn(last + 2, "0123456789abcdef")] == '\0';
	return *last && last[strspn(last, "0123456789")] == '\0';
}

static int check_labels(const char *host, struct sba_error *err)
{
	for (const char *at = host;; at++) {
		size_t len = strcspn(at, ".");
		if (len == 0)
			return sba_fail(err, SBA_EINVAL, "an empty part in a host");
		if (len > LABEL_MAX)
			return sba_fail(err, SBA_EINVAL, "a part of more than %d characters",
					LABEL_MAX);
		if (*at == '-')
			return sba_fail(err, SBA_EINVAL, "a part that begins with '-'");
		at += len;
		if (!*at)
			return 0;
	}
}

static int canonical(char host[SBA_HOST_NAME_MAX], struct sba_error *err)
{
	struct sba_proxy_ip ip;
	char text[INET6_ADDRSTRLEN];
	if (!sba_proxy_ip_parse(host, &ip))
		return sba_fail(err, SBA_EINVAL,
				strchr(host, ':') ? "not an IPv6 address"
						  : "not an IPv4 address of four decimal numbers");
	sba_proxy_ip_text(&ip, text);
	memcpy(host, text, strlen(text) + 1);
	return 0;
}

int sba_host_normalise(const char *host, size_t len, char ret[SBA_HOST_NAME_MAX],
		       struct sba_error *err)
{
	char h[SBA_HOST_NAME_MAX];
	bool v6 = memchr(host, ':', len);
	if (v6 && host[0] == '[' && host[len - 1] == ']') {
		host++;
		len -= 2;
	} else if (!v6 && len > 0 && host[len - 1] == '.') {
		len--;
	}
	int rc = lower(host, len, h, err);
	if (rc == 0)
		rc = v6 || ends_in_number(h) ? canonical(h, err) : check_labels(h, err);
	if (rc < 0)
		return rc;
	memcpy(ret, h, strlen(h) + 1);
	return 0;
}

int sba_proxy_port_parse(const char *text, size_t len, uint16_t *ret)
{
	char digits[6];
	int64_t port;
	if (len == 0 || len >= sizeof(digits) || text[0] == '0')
		return SBA_EINVAL;
	memcpy(digits, text, len);
	digits[len] = '\0';
	if (strlen(digits) != len || sba_parse_int(digits, 1, UINT16_MAX, &port) < 0)
		return SBA_EINVAL;
	*ret = (uint16_t)port;
	return 0;
}

int sba_proxy_authority_parse(const char *text, size_t len, uint16_t default_port,
			      struct sba_proxy_authority *ret, struct sba_error *err)
{
	struct sba_proxy_authority a = { .port = default_port };
	const char *end = text + len;
	const char *bracket = len > 0 && text[0] == '[' ? memchr(text, ']', len) : NULL;
	const char *host_end = bracket ? bracket + 1 : memchr(text, ':', len);
	if (!host_end)
		host_end = end;
	int rc = sba_host_normalise(text, (size_t)(host_end - text), a.host, err);
	if (rc < 0)
		return rc;
	if (host_end == end && default_port == 0)
		return sba_fail(err, SBA_EINVAL, "a host without a port");
	if (host_end < end &&
	    (*host_end != ':' ||
	     sba_proxy_port_parse(host_end + 1, (size_t)(end - host_end - 1), &a.port) < 0))
		return sba_fail(err, SBA_EINVAL, "a port that is no number from 1 to 65535");
	*ret = a;
	return 0;
}
