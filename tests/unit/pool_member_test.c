/* SPDX-License-Identifier: MIT */
/* What a member of the pool is for, and whether a container is that member. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "sandbox/making.h"

#include <string.h>
#include <unistd.h>

#define LABEL "io.sandbox-agent."

/* ---- the hash ---- */

static const char *const mounts[] = { "/srv:/data", NULL };
static const char *const rules[] = { "a.example", "b.example", NULL };

static struct sba_making making(void)
{
	return (struct sba_making){
		.image_id = "sha256:1",
		.guest = { .hash = "0123456789ab" },
		.o = { .image = "i:1",
		       .network = "open",
		       .memory = 1,
		       .pids = 2,
		       .keepalive_ms = 3 },
	};
}

static void spec_of(const struct sba_making *m, char ret[SBA_POOL_SPEC_LEN + 1])
{
	struct sba_error err = { 0 };
	if (sba_member_spec(m, ret, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(strlen(ret), SBA_POOL_SPEC_LEN);
}

static void assert_differs(const struct sba_making *m)
{
	struct sba_making plain = making();
	char one[SBA_POOL_SPEC_LEN + 1], other[SBA_POOL_SPEC_LEN + 1];
	spec_of(&plain, one);
	spec_of(m, other);
	assert_string_not_equal(one, other);
}

#define DIFFERS(field, value)                                                                      \
	do {                                                                                       \
		struct sba_making m = making();                                                    \
		m.field = value;                                                                   \
		assert_differs(&m);                                                                \
	} while (0)

static void all_that_makes_a_sandbox_what_it_is_counts(void **state)
{
	(void)state;
	DIFFERS(o.image, "i:2");
	DIFFERS(o.user, "1000");
	DIFFERS(o.tag, "t");
	DIFFERS(o.agent, "claude");
	DIFFERS(o.provider, "scripted");
	DIFFERS(o.base_url, "https://a.example");
	DIFFERS(o.key_env, "KEY");
	DIFFERS(o.network, "sealed");
	DIFFERS(o.allow, rules);
	DIFFERS(o.mounts, mounts);
	DIFFERS(o.runtime, "crun");
	DIFFERS(o.keepalive_ms, 4);
	DIFFERS(o.max_lifetime_ms, 4);
	DIFFERS(o.memory, 2);
	DIFFERS(o.pids, 3);
	DIFFERS(o.cpus, 0.5);
	DIFFERS(o.ca_file, "/any");
	struct sba_making m = making();
	m.image_id[7] = '2';
	assert_differs(&m);
}

static void a_certificate_counts_by_what_it_holds(void **state)
{
	(void)state;
	char one[SBA_POOL_SPEC_LEN + 1], other[SBA_POOL_SPEC_LEN + 1];
	struct sba_making m = making();
	m.o.ca_file = "/one";
	m.ca = (struct sba_buf){ .data = (char[]){ "pem" }, .len = 3 };
	spec_of(&m, one);
	m.o.ca_file = "/other";
	spec_of(&m, other);
	assert_string_equal(one, other);
	m.ca.len = 2;
	spec_of(&m, other);
	assert_string_not_equal(one, other);
}

static void its_name_and_the_limit_do_not_count(void **state)
{
	(void)state;
	char one[SBA_POOL_SPEC_LEN + 1], other[SBA_POOL_SPEC_LEN + 1];
	struct sba_making m = making();
	spec_of(&m, one);
	m.o.name = "n";
	m.o.max_sandboxes = 3;
	m.o.pool = true;
	spec_of(&m, other);
	assert_string_equal(one, other);
}

static void what_is_no_text_is_refused(void **state)
{
	(void)state;
	char spec[SBA_POOL_SPEC_LEN + 1];
	struct sba_error err;
	struct sba_making m = making();
	m.o.user = "\xff";
	assert_int_equal(sba_member_spec(&m, spec, &err), SBA_EINVAL);
}

/* ---- names ---- */

static void names_of_members_are_told_from_others(void **state)
{
	(void)state;
	assert_true(sba_member_name("pool-0123abcd"));
	assert_true(sba_member_name("pool-0123abcd-claimed"));
	assert_false(sba_member_name("pool-0123abc"));
	assert_false(sba_member_name("pool-party-hat"));
	assert_false(sba_member_name("pool"));
	assert_false(sba_member_name(""));
}

/* ---- whose a container is ---- */

#define SIDECAR "5555"

static json_t *container(const char *id, const char *name, const char *role, const char *box,
			 const char *network)
{
	return json_pack("{s:s, s:[s], s:{s:s, s:s, s:s, s:s, s:s}, s:{s:s}}", "Id", id, "Names",
			 name, "Labels", LABEL "id", box, LABEL "role", role, LABEL "prefix", "p",
			 LABEL "name", "pool-0123abcd", LABEL "pool", "spec", "HostConfig",
			 "NetworkMode", network);
}

static bool is_ours(const char *name, const char *network, const char *sidecar_name,
		    const char *sidecar_box)
{
	SBA_JSON json_t *one = container("1111", name, "sandbox", "box", network);
	SBA_JSON json_t *list = json_pack("[O]", one);
	const char *ret = "";
	if (sidecar_name)
		json_array_append_new(
			list, container(SIDECAR, sidecar_name, "sidecar", sidecar_box, "default"));
	bool ours = sba_ours_main(list, one, &ret);
	assert_true(!ours || sba_ends_with(name, ret));
	return ours;
}

#define READY   "/p-pool-0123abcd-sidecar"
#define CLAIMED "/p-pool-0123abcd-claimed-sidecar"
#define JOIN    "container:" SIDECAR

static void a_member_is_known_by_the_sidecar_that_it_joins(void **state)
{
	(void)state;
	assert_true(is_ours("/p-pool-0123abcd", JOIN, READY, "box"));
	assert_true(is_ours("/p-mine", JOIN, CLAIMED, "box"));
	/* Its sidecar has gone. */
	assert_true(is_ours("/p-mine", JOIN, NULL, NULL));
}

static void one_that_joins_none_of_ours_is_not(void **state)
{
	(void)state;
	assert_false(is_ours("/p-mine", "default", CLAIMED, "box"));
	assert_false(is_ours("/p-pool-0123abcd", "bridge", READY, "box"));
	assert_false(is_ours("/q-mine", JOIN, CLAIMED, "box"));
	assert_false(is_ours("/p-mine", JOIN, CLAIMED, "another box"));
	assert_false(is_ours("/p-mine", JOIN, "/p-strange-sidecar", "box"));
	assert_false(is_ours("/mine", JOIN, CLAIMED, "box"));
	assert_false(is_ours("/p-", JOIN, CLAIMED, "box"));
	assert_false(is_ours("/p--x", JOIN, CLAIMED, "box"));
}

static void a_sidecar_s_name_says_whether_it_is_claimed(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		bool ours, claimed;
	} cases[] = {
		{ READY, true, false },
		{ CLAIMED, true, true },
		{ "/p-mine-sidecar", false, false },
		{ "/p-pool-0123abcd", false, false },
	};
	for (size_t i = 0; i < SBA_ARRAY_LEN(cases); i++) {
		bool claimed = false;
		SBA_JSON json_t *c = container("1", cases[i].name, "sidecar", "box", "default");
		assert_int_equal(sba_ours_sidecar(c, &claimed), cases[i].ours);
		assert_int_equal(claimed, cases[i].claimed);
	}
	/* Only members are claimed. */
	bool claimed;
	SBA_JSON json_t *plain = container("1", CLAIMED, "sidecar", "box", "default");
	json_object_set_new(json_object_get(plain, "Labels"), LABEL "pool", json_string(""));
	assert_false(sba_ours_sidecar(plain, &claimed));
}

static int prepare(void **state)
{
	(void)state;
	alarm(60);
	return 0;
}

#define TEST(f) cmocka_unit_test_setup(f, prepare)

/* ---- events ---- */

static bool event_is_ours(const char *name, const char *role, const char *label, const char *pool)
{
	SBA_JSON json_t *j = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "name", name,
				       LABEL "prefix", "p", LABEL "role", role, LABEL "name", label,
				       LABEL "id", "1", LABEL "pool", pool);
	return sba_ours_event(j);
}

static void an_event_of_a_committed_image_s_container_is_not_ours(void **state)
{
	(void)state;
	assert_true(event_is_ours("p-calm-fox", "sandbox", "calm-fox", ""));
	assert_true(event_is_ours("p-calm-fox-sidecar", "sidecar", "calm-fox", ""));
	assert_false(event_is_ours("p-child", "sandbox", "calm-fox", ""));
	assert_false(event_is_ours("wild_name", "sandbox", "calm-fox", ""));
	assert_false(event_is_ours("calm-fox", "sandbox", "calm-fox", ""));
	assert_false(event_is_ours("p-calm-fox", "sidecar", "calm-fox", ""));
	assert_true(event_is_ours("p-mine", "sandbox", "pool-0123abcd", "spec"));
	assert_true(event_is_ours("p-pool-0123abcd-claimed-sidecar", "sidecar", "pool-0123abcd",
				  "spec"));
	assert_false(event_is_ours("p-calm-fox-claimed-sidecar", "sidecar", "calm-fox", ""));
}

/* ---- mounts ---- */

static bool hold(const char *source, const char *path, bool writable)
{
	SBA_JSON json_t *wanted =
		json_pack("[{s:s, s:s, s:b}]", "Source", "/srv", "Target", "/data", "ReadOnly", 1);
	SBA_JSON json_t *made =
		json_pack("[{s:s, s:s}, {s:s, s:s, s:b}]", "Type", "volume", "Destination",
			  "/other", "Source", source, "Destination", path, "RW", writable);
	return sba_mounts_hold(wanted, made);
}

static void a_mount_that_the_engine_made_otherwise_does_not_hold(void **state)
{
	(void)state;
	assert_true(hold("/srv", "/data", false));
	assert_false(hold("/srv", "/data", true));
	assert_false(hold("/", "/data", false));
	assert_false(hold("/srv", "/date", false));
	assert_true(sba_mounts_hold(NULL, NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(all_that_makes_a_sandbox_what_it_is_counts),
		TEST(a_certificate_counts_by_what_it_holds),
		TEST(its_name_and_the_limit_do_not_count),
		TEST(what_is_no_text_is_refused),
		TEST(names_of_members_are_told_from_others),
		TEST(a_member_is_known_by_the_sidecar_that_it_joins),
		TEST(one_that_joins_none_of_ours_is_not),
		TEST(a_sidecar_s_name_says_whether_it_is_claimed),
		TEST(an_event_of_a_committed_image_s_container_is_not_ours),
		TEST(a_mount_that_the_engine_made_otherwise_does_not_hold),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
