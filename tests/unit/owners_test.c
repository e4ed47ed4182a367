/* SPDX-License-Identifier: MIT */
/* Who owns what, as the guest of a sandbox has said it: the sandbox's word, taken with care. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "sandbox/image_changes.h"

#define SAID(text) text, sizeof(text)

/* All of it by root, or all of it by the sandbox's user. */
static void parse(const char *said, size_t len, bool by_root, struct sba_owners *ret)
{
	struct sba_error err = { 0 };
	if (sba_owners_parse(said, len, by_root ? len : 0, ret, &err) < 0)
		fail_msg("%s", err.text);
}

static void assert_owner(struct sba_owners *o, const char *name, uint32_t uid, uint32_t gid)
{
	uint32_t u = 7777, g = 8888;
	sba_owners_tell(o, name, &u, &g);
	if (u != uid || g != gid)
		fail_msg("%s: %u:%u", name, u, g);
}

static void a_path_that_is_not_named_belongs_as_its_folder_does(void **state)
{
	(void)state;
	struct sba_owners o;
	parse(SAID("0:0 /srv\0"
		   "1000:100 /srv/a\0"
		   "0:5 /srv/a/b/c"),
	      true, &o);
	assert_owner(&o, "srv", 0, 0);
	assert_owner(&o, "srv/other", 0, 0);
	assert_owner(&o, "srv/a", 1000, 100);
	assert_owner(&o, "srv/a/b", 1000, 100);
	assert_owner(&o, "srv/a/b/c", 0, 5);
	assert_owner(&o, "srv/a/b/c/d/e", 0, 5);
	assert_owner(&o, "srv/ab", 0, 0);
	sba_owners_fini(&o);
}

static void what_nobody_has_told_of_stays_as_it_is_said_to_be(void **state)
{
	(void)state;
	struct sba_owners o;
	parse(SAID("1:2 /srv/a"), true, &o);
	assert_owner(&o, "srv", 7777, 8888);
	assert_owner(&o, "srv/b", 7777, 8888);
	assert_owner(&o, "", 7777, 8888);
	sba_owners_fini(&o);
	parse("", 0, true, &o);
	assert_owner(&o, "srv/a", 7777, 8888);
	sba_owners_fini(&o);
}

static void the_sandboxs_user_cannot_give_a_file_to_root(void **state)
{
	(void)state;
	static const char said[] = "0:7 /srv/roots\0"
				   "0:0 /srv/forged\0"
				   "1000:0 /srv/group\0"
				   "1000:1000 /srv/own";
	struct sba_owners o;
	assert_int_equal(sba_owners_parse(said, sizeof(said), strlen(said) + 1, &o, NULL), 0);
	assert_owner(&o, "srv/roots", 0, 7);
	assert_owner(&o, "srv/forged", 7777, 8888);
	assert_owner(&o, "srv/group", 7777, 8888);
	assert_owner(&o, "srv/own", 1000, 1000);
	sba_owners_fini(&o);
}

static void what_root_has_told_is_not_told_otherwise_by_the_user(void **state)
{
	(void)state;
	static const char said[] = "5:5 /srv/a\0"
				   "1000:1000 /srv/a";
	struct sba_owners o;
	assert_int_equal(sba_owners_parse(said, sizeof(said), strlen(said) + 1, &o, NULL), 0);
	assert_owner(&o, "srv/a", 5, 5);
	sba_owners_fini(&o);
}

static void names_are_bytes_up_to_their_end(void **state)
{
	(void)state;
	struct sba_owners o;
	parse(SAID("1:1 /srv/two words\nand \xff"), true, &o);
	assert_owner(&o, "srv/two words\nand \xff", 1, 1);
	assert_owner(&o, "srv/two words\nand \xff!", 7777, 8888);
	sba_owners_fini(&o);
}

static void the_highest_id_is_one_and_what_is_none_is_refused(void **state)
{
	(void)state;
	static const char *const bad[] = { "x",       "1:1",   "1 /a",     "1:1 a",
					   "-1:1 /a", "1: /a", ":1 /a",    "1:4294967295 /a",
					   "+1:1 /a", "1:1/a", "1:1:1 /a", "99999999999:1 /a" };
	struct sba_owners o;
	struct sba_error err = { 0 };
	parse(SAID("4294967294:4294967294 /a"), true, &o);
	assert_owner(&o, "a", 4294967294, 4294967294);
	sba_owners_fini(&o);
	for (size_t i = 0; i < SBA_ARRAY_LEN(bad); i++) {
		size_t len = strlen(bad[i]) + 1;
		if (sba_owners_parse(bad[i], len, len, &o, &err) != SBA_EPROTO)
			fail_msg("'%s' is taken", bad[i]);
	}
	assert_int_equal(sba_owners_parse("1:1 /a", 6, 6, &o, &err), SBA_EPROTO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_path_that_is_not_named_belongs_as_its_folder_does),
		cmocka_unit_test(what_nobody_has_told_of_stays_as_it_is_said_to_be),
		cmocka_unit_test(the_sandboxs_user_cannot_give_a_file_to_root),
		cmocka_unit_test(what_root_has_told_is_not_told_otherwise_by_the_user),
		cmocka_unit_test(names_are_bytes_up_to_their_end),
		cmocka_unit_test(the_highest_id_is_one_and_what_is_none_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
