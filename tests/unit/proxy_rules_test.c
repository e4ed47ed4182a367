/* SPDX-License-Identifier: MIT */
/* The proxy's rules, hosts and addresses: what is allowed, what is refused. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "proxy/proxy.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct sba_rules *rules(const char *one, const char *two)
{
	const char *texts[] = { one, two, NULL };
	struct sba_rules *r = NULL;
	struct sba_error err;
	if (sba_rules_new(texts, &r, &err) < 0)
		fail_msg("%s", err.text);
	return r;
}

static bool allows_name(const char *rule, const char *host, uint16_t port)
{
	struct sba_rules *r = rules(rule, NULL);
	bool yes = sba_rules_allow_name(r, host, port);
	sba_rules_free(r);
	return yes;
}

static bool allows_address(const char *rule, const char *address, uint16_t port)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
	struct sba_rules *r = rules(rule, NULL);
	bool yes;
	if (strchr(address, ':')) {
		assert_int_equal(inet_pton(AF_INET6, address, &v6.sin6_addr), 1);
		yes = sba_rules_allow_address(r, (struct sockaddr *)&v6, port);
	} else {
		assert_int_equal(inet_pton(AF_INET, address, &v4.sin_addr), 1);
		yes = sba_rules_allow_address(r, (struct sockaddr *)&v4, port);
	}
	sba_rules_free(r);
	return yes;
}

static const char *normal(const char *host)
{
	static char ret[SBA_HOST_NAME_MAX];
	struct sba_error err;
	return sba_host_normalise(host, strlen(host), ret, &err) < 0 ? NULL : ret;
}

static void a_name_is_allowed_at_443_and_80_unless_its_rule_has_a_port(void **state)
{
	(void)state;
	assert_true(allows_name("example.org", "example.org", 443));
	assert_true(allows_name("example.org", "example.org", 80));
	assert_false(allows_name("example.org", "example.org", 22));
	assert_false(allows_name("example.org", "www.example.org", 443));
	assert_true(allows_name("example.org:22", "example.org", 22));
	assert_false(allows_name("example.org:22", "example.org", 443));
	assert_true(allows_name("EXAMPLE.org.", "example.org", 443));
	assert_false(allows_name(NULL, "example.org", 443));
}

static void a_suffix_matches_what_is_below_it_and_not_itself(void **state)
{
	(void)state;
	assert_true(allows_name("*.example.org", "a.example.org", 443));
	assert_true(allows_name("*.example.org", "a.b.example.org", 443));
	assert_false(allows_name("*.example.org", "example.org", 443));
	assert_false(allows_name("*.example.org", "evilexample.org", 443));
	assert_false(allows_name("*.example.org", "example.org.evil.test", 443));
	assert_true(allows_name("*.example.org:8443", "a.example.org", 8443));
	assert_false(allows_name("*.example.org:8443", "a.example.org", 443));
}

static void localhost_is_allowed_only_by_its_own_name(void **state)
{
	(void)state;
	assert_false(allows_name("*.org", "localhost", 80));
	assert_true(allows_name("localhost:80", "localhost", 80));
	assert_false(allows_name("localhost", "a.localhost", 80));
	assert_true(allows_name("a.localhost", "a.localhost", 80));
	assert_false(allows_address("localhost", "127.0.0.1", 80));
}

static void addresses_as_hosts_are_allowed_by_address_rules_alone(void **state)
{
	(void)state;
	assert_true(allows_name("93.184.216.34", "93.184.216.34", 443));
	assert_false(allows_name("93.184.216.34", "93.184.216.35", 443));
	assert_true(allows_name("93.184.0.0/16:8080", "93.184.1.2", 8080));
	assert_false(allows_name("93.184.0.0/16:8080", "93.184.1.2", 443));
	assert_false(allows_name("93.184.0.0/16", "93.185.1.2", 443));
	assert_true(allows_name("0.0.0.0/0", "93.185.1.2", 443));
	assert_true(allows_name("[2606:4700::1]:8443", "2606:4700::1", 8443));
	assert_true(allows_name("2606:4700::1", "2606:4700::1", 443));
	assert_true(allows_name("2606:4700::/33", "2606:4700:7fff::1", 443));
	assert_false(allows_name("2606:4700::/33", "2606:4700:8000::1", 443));
	assert_true(allows_name("[2606:4700::/32]:1", "2606:4700::2", 1));
	assert_true(allows_name("2606:4700::/32:1", "2606:4700::2", 1));
	assert_false(allows_name("10.0.0.0/8", "example.org", 443));
	assert_false(allows_name("10.0.0.1", "::ffff:10.0.0.1", 443));
}

static void what_is_no_rule_is_refused_with_the_rule_in_the_words(void **state)
{
	static const char *const bad[] = {
		"",
		"*",
		"*.",
		"*.*.org",
		"a.*.org",
		"*example.org",
		"example.org:",
		"example.org:0",
		"example.org:65536",
		"example.org:080",
		"example.org:+80",
		"example.org:80,443",
		"example.org:x",
		":80",
		"http://example.org",
		"example.org/path",
		"example.org/24",
		"user@example.org",
		"10.0.0.0/33",
		"10.0.0.1/8",
		"10.0.0.0/",
		"10.0.0.0/-1",
		"10.0.0.0/08x",
		"10.0.0.0/8:0",
		"010.0.0.1",
		"127.1",
		"0x7f000001",
		"2130706433",
		"[::1",
		"[::1]80",
		"[::1]:",
		"[::1]/128",
		"[example.org]:80",
		"::1/129",
		"fe80::1%lo",
		"*.localhost",
		"*.1.2.3.4",
		"a..b",
		".example.org",
		"-a.org",
		"z\xC3\xBCrich.example",
		"exa mple.org",
	};
	(void)state;
	for (size_t i = 0; i < SBA_ARRAY_LEN(bad); i++) {
		const char *texts[] = { "good.test", bad[i], NULL };
		struct sba_rules *r = NULL;
		struct sba_error err = { 0 };
		if (sba_rules_new(texts, &r, &err) != SBA_EINVAL)
			fail_msg("'%s' is taken for a rule", bad[i]);
		assert_null(r);
		assert_non_null(strstr(err.text, bad[i]));
		assert_true(err.hint[0] != '\0');
	}
}

static void hosts_have_one_normal_form(void **state)
{
	(void)state;
	assert_string_equal(normal("Example.ORG."), "example.org");
	assert_string_equal(normal("xn--bcher-kva.example"), "xn--bcher-kva.example");
	assert_string_equal(normal("_dmarc.a_b.example"), "_dmarc.a_b.example");
	assert_string_equal(normal("1.2.3.4"), "1.2.3.4");
	assert_string_equal(normal("1.2.3.4."), "1.2.3.4");
	assert_string_equal(normal("::FFFF:7f00:1"), "::ffff:127.0.0.1");
	assert_string_equal(normal("[0:0::1]"), "::1");
	assert_string_equal(normal("db"), "db");
	assert_string_equal(normal("3com.example"), "3com.example");
}

static void hosts_that_can_be_read_in_two_ways_are_refused(void **state)
{
	static const char *const bad[] = {
		"",
		".",
		"..",
		"a..b",
		".a",
		"a.org..",
		"0177.0.0.1",
		"127.0.0.01",
		"127.1",
		"127.0.1",
		"2130706433",
		"0x7f.0.0.1",
		"0x7f000001",
		"127.0.0.0x1",
		"017700000001",
		"1.2.3.4.5",
		"256.1.1.1",
		"a.example.1",
		"fe80::1%eth0",
		"user@example.org",
		"a%2eb",
		"a b",
		"a\tb",
		"z\xC3\xBCrich.example",
		"a/b",
		"a\\b",
		"*.example.org",
		"::1.",
		"[::1",
		"1::2::3",
		"-a.example",
		"[example.org]",
		"a:b",
		"\xE3\x80\x82org",
	};
	char label[70], name[300];
	(void)state;
	for (size_t i = 0; i < SBA_ARRAY_LEN(bad); i++) {
		if (normal(bad[i]))
			fail_msg("'%s' is taken for a host", bad[i]);
	}
	memset(label, 'a', sizeof(label));
	label[64] = '\0';
	assert_null(normal(label));
	label[63] = '\0';
	assert_non_null(normal(label));
	for (size_t i = 0; i < sizeof(name); i++)
		name[i] = i % 2 ? '.' : 'a';
	name[255] = '\0';
	assert_null(normal(name));
	name[253] = '\0';
	assert_non_null(normal(name));
	assert_int_equal(sba_host_normalise("a\0b", 3, name, NULL), SBA_EINVAL);
}

static void addresses_that_are_not_public_are_refused_unless_named(void **state)
{
	static const char *const special[] = {
		"0.0.0.0",
		"0.1.2.3",
		"10.0.0.1",
		"100.64.0.1",
		"100.127.255.255",
		"127.0.0.1",
		"127.255.255.254",
		"169.254.169.254",
		"172.16.0.1",
		"172.31.255.255",
		"192.0.0.8",
		"192.0.2.1",
		"192.88.99.1",
		"192.168.1.1",
		"198.18.0.1",
		"198.19.255.255",
		"198.51.100.7",
		"203.0.113.9",
		"224.0.0.1",
		"239.255.255.255",
		"240.0.0.1",
		"255.255.255.255",
		"::",
		"::1",
		"::ffff:8.8.8.8",
		"::ffff:127.0.0.1",
		"::8.8.8.8",
		"64:ff9b::a00:1",
		"64:ff9b:1::1",
		"100::1",
		"2001::1",
		"2001:db8::1",
		"2001:20::1",
		"2002:7f00:1::",
		"3fff::1",
		"4000::1",
		"5f00::1",
		"fc00::1",
		"fdff::1",
		"fe80::1",
		"fec0::1",
		"ff02::1",
	};
	(void)state;
	for (size_t i = 0; i < SBA_ARRAY_LEN(special); i++) {
		char rule[64];
		if (allows_address("example.org", special[i], 443) ||
		    allows_address("0.0.0.0/0", special[i], 443) ||
		    allows_address("::/0", special[i], 443))
			fail_msg("%s is allowed without its name", special[i]);
		if (!allows_address(special[i], special[i], 443))
			fail_msg("%s is refused though it is named", special[i]);
		snprintf(rule, sizeof(rule), strchr(special[i], ':') ? "[%s]:444" : "%s:444",
			 special[i]);
		assert_false(allows_address(rule, special[i], 443));
	}
}

static void public_addresses_are_allowed(void **state)
{
	static const char *const ok[] = {
		"8.8.8.8",     "100.63.255.255", "100.128.0.0", "172.15.255.255", "172.32.0.0",
		"169.253.0.1", "192.0.1.1",      "198.17.0.1",  "198.20.0.1",     "223.255.255.255",
		"9.0.0.0",     "2606:4700::1",   "2001:200::1", "2a00::1",        "2003::1",
	};
	(void)state;
	for (size_t i = 0; i < SBA_ARRAY_LEN(ok); i++) {
		if (!allows_address("example.org", ok[i], 443))
			fail_msg("%s is refused", ok[i]);
	}
}

static void a_special_address_is_named_from_within_its_range(void **state)
{
	(void)state;
	assert_true(allows_address("10.0.0.0/8", "10.9.8.7", 443));
	assert_true(allows_address("10.9.0.0/16:5432", "10.9.8.7", 5432));
	assert_false(allows_address("10.9.0.0/16:5432", "10.9.8.7", 443));
	assert_false(allows_address("10.9.0.0/16", "10.8.8.7", 443));
	assert_false(allows_address("8.0.0.0/6", "10.9.8.7", 443));
	assert_true(allows_address("fd00::/8", "fd12::1", 443));
	assert_false(allows_address("::/3", "::1", 443));
	assert_false(allows_address("127.0.0.1", "::ffff:127.0.0.1", 443));
	assert_true(allows_address("::ffff:127.0.0.1", "::ffff:127.0.0.1", 443));
}

static void only_ip_addresses_are_judged_good(void **state)
{
	struct sockaddr_storage unix_address = { .ss_family = AF_UNIX };
	struct sba_rules *r = rules("0.0.0.0/0", "::/0");
	(void)state;
	assert_false(sba_rules_allow_address(r, (struct sockaddr *)&unix_address, 443));
	sba_rules_free(r);
	sba_rules_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_is_allowed_at_443_and_80_unless_its_rule_has_a_port),
		cmocka_unit_test(a_suffix_matches_what_is_below_it_and_not_itself),
		cmocka_unit_test(localhost_is_allowed_only_by_its_own_name),
		cmocka_unit_test(addresses_as_hosts_are_allowed_by_address_rules_alone),
		cmocka_unit_test(what_is_no_rule_is_refused_with_the_rule_in_the_words),
		cmocka_unit_test(hosts_have_one_normal_form),
		cmocka_unit_test(hosts_that_can_be_read_in_two_ways_are_refused),
		cmocka_unit_test(addresses_that_are_not_public_are_refused_unless_named),
		cmocka_unit_test(public_addresses_are_allowed),
		cmocka_unit_test(a_special_address_is_named_from_within_its_range),
		cmocka_unit_test(only_ip_addresses_are_judged_good),
	};
	alarm(20);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
