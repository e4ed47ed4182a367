/* SPDX-License-Identifier: MIT */
/*
 * IP addresses, prefixes, and which addresses are not the public internet. It
 * knows no rules.
 */
#include "proxy/private.h"

#include <arpa/inet.h>
#include <string.h>

/* IANA's special-purpose registries, narrower ranges before wider ones. The last
 * three are all that is not 2000::/3, the only global unicast space there is. */
static const struct sba_proxy_range ranges[] = {
	{ { { AF_INET, { 0 } }, 8 }, "an unspecified address" },
	{ { { AF_INET, { 10 } }, 8 }, "a private address" },
	{ { { AF_INET, { 100, 64 } }, 10 }, "a shared (carrier) address" },
	{ { { AF_INET, { 127 } }, 8 }, "a loopback address" },
	{ { { AF_INET, { 169, 254 } }, 16 }, "a link-local address" },
	{ { { AF_INET, { 172, 16 } }, 12 }, "a private address" },
	{ { { AF_INET, { 192, 0, 0 } }, 24 }, "a reserved address" },
	{ { { AF_INET, { 192, 0, 2 } }, 24 }, "a documentation address" },
	{ { { AF_INET, { 192, 88, 99 } }, 24 }, "a 6to4 relay address" },
	{ { { AF_INET, { 192, 168 } }, 16 }, "a private address" },
	{ { { AF_INET, { 198, 18 } }, 15 }, "a benchmarking address" },
	{ { { AF_INET, { 198, 51, 100 } }, 24 }, "a documentation address" },
	{ { { AF_INET, { 203, 0, 113 } }, 24 }, "a documentation address" },
	{ { { AF_INET, { 224 } }, 4 }, "a multicast address" },
	{ { { AF_INET, { 255, 255, 255, 255 } }, 32 }, "the broadcast address" },
	{ { { AF_INET, { 240 } }, 4 }, "a reserved address" },

	{ { { AF_INET6, { 0 } }, 128 }, "an unspecified address" },
	{ { { AF_INET6, { [15] = 1 } }, 128 }, "a loopback address" },
	{ { { AF_INET6, { [10] = 0xFF, 0xFF } }, 96 }, "a mapped IPv4 address" },
	{ { { AF_INET6, { 0 } }, 96 }, "a compatible IPv4 address" },
	{ { { AF_INET6, { 0, 0x64, 0xFF, 0x9B } }, 96 }, "a translated (NAT64) address" },
	{ { { AF_INET6, { 0, 0x64, 0xFF, 0x9B, 0, 1 } }, 48 }, "a translated (NAT64) address" },
	{ { { AF_INET6, { 0x20, 0x01, 0, 0 } }, 32 }, "a tunnelled (Teredo) address" },
	{ { { AF_INET6, { 0x20, 0x01, 0x0D, 0xB8 } }, 32 }, "a documentation address" },
	{ { { AF_INET6, { 0x20, 0x01, 0 } }, 23 }, "a reserved address" },
	{ { { AF_INET6, { 0x20, 0x02 } }, 16 }, "a tunnelled (6to4) address" },
	{ { { AF_INET6, { 0x3F, 0xFF } }, 20 }, "a documentation address" },
	{ { { AF_INET6, { 0xFC } }, 7 }, "a private address" },
	{ { { AF_INET6, { 0xFE, 0x80 } }, 10 }, "a link-local address" },
	{ { { AF_INET6, { 0xFE, 0xC0 } }, 10 }, "a site-local address" },
	{ { { AF_INET6, { 0xFF } }, 8 }, "a multicast address" },
	{ { { AF_INET6, { 0 } }, 3 }, "a reserved address" },
	{ { { AF_INET6, { 0x40 } }, 2 }, "a reserved address" },
	{ { { AF_INET6, { 0x80 } }, 1 }, "a reserved address" },
};

bool sba_proxy_ip_parse(const char *text, struct sba_proxy_ip *ret)
{
	struct sba_proxy_ip ip = { .family = strchr(text, ':') ? AF_INET6 : AF_INET };
	if (inet_pton(ip.family, text, ip.bytes) != 1)
		return false;
	*ret = ip;
	return true;
}

bool sba_proxy_ip_of(const struct sockaddr *address, struct sba_proxy_ip *ret)
{
	struct sba_proxy_ip ip = { .family = address->sa_family };
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	if (ip.family == AF_INET) {
		memcpy(&v4, address, sizeof(v4));
		memcpy(ip.bytes, &v4.sin_addr, sizeof(v4.sin_addr));
	} else if (ip.family == AF_INET6) {
		memcpy(&v6, address, sizeof(v6));
		memcpy(ip.bytes, &v6.sin6_addr, sizeof(v6.sin6_addr));
	} else {
		return false;
	}
	*ret = ip;
	return true;
}

void sba_proxy_ip_text(const struct sba_proxy_ip *ip, char ret[INET6_ADDRSTRLEN])
{
	if (!inet_ntop(ip->family, ip->bytes, ret, INET6_ADDRSTRLEN))
		ret[0] = '\0';
}

bool sba_proxy_net_has(const struct sba_proxy_net *net, const struct sba_proxy_ip *ip)
{
	unsigned whole = net->bits / 8, rest = net->bits % 8;
	if (net->ip.family != ip->family || memcmp(net->ip.bytes, ip->bytes, whole) != 0)
		return false;
	return rest == 0 || (net->ip.bytes[whole] ^ ip->bytes[whole]) >> (8 - rest) == 0;
}

bool sba_proxy_net_exact(const struct sba_proxy_net *net)
{
	for (unsigned bit = net->bits; bit < 8 * sizeof(net->ip.bytes); bit++) {
		if (net->ip.bytes[bit / 8] & (0x80 >> bit % 8))
			return false;
	}
	return true;
}

const struct sba_proxy_range *sba_proxy_range_of(const struct sba_proxy_ip *ip)
{
	for (size_t i = 0; i < SBA_ARRAY_LEN(ranges); i++) {
		if (sba_proxy_net_has(&ranges[i].net, ip))
			return &ranges[i];
	}
	return NULL;
}
