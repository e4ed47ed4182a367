/* SPDX-License-Identifier: MIT */
/* Names that are allowed, and labels that tell a sandbox again. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "sandbox/private.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LABEL "io.sandbox-agent."

static void names_that_an_engine_takes_are_allowed(void **state)
{
	(void)state;
	static const char *const good[] = { "a", "calm-fox", "A_b.c-9", "0" };
	char longest[SBA_NAME_MAX];
	for (size_t i = 0; i < SBA_ARRAY_LEN(good); i++)
		assert_int_equal(sba_name_check("name", good[i], NULL), 0);
	memset(longest, 'x', sizeof(longest));
	longest[SBA_NAME_MAX - 1] = '\0';
	assert_int_equal(sba_name_check("name", longest, NULL), 0);
}

static void all_others_are_refused_and_named(void **state)
{
	(void)state;
	static const char *const bad[] = { "",     "-a",  ".a",       "_a",  "a b", "a/b",
					   "../a", "a\n", "\xc3\xa4", "a:b", "a=b", "a\"" };
	char longer[SBA_NAME_MAX + 1];
	struct sba_error err;
	for (size_t i = 0; i < SBA_ARRAY_LEN(bad); i++) {
		assert_int_equal(sba_name_check("thing", bad[i], &err), SBA_EINVAL);
		assert_true(sba_starts_with(err.text, "thing '"));
	}
	memset(longer, 'x', sizeof(longer));
	longer[SBA_NAME_MAX] = '\0';
	assert_int_equal(sba_name_check("name", longer, &err), SBA_EINVAL);
}

static void made_up_names_are_allowed_and_differ(void **state)
{
	(void)state;
	char name[SBA_NAME_MAX], before[SBA_NAME_MAX] = "";
	unsigned same = 0;
	for (int i = 0; i < 200; i++) {
		assert_int_equal(sba_name_make(name, NULL), 0);
		assert_int_equal(sba_name_check("name", name, NULL), 0);
		same += strcmp(name, before) == 0;
		memcpy(before, name, sizeof(name));
	}
	assert_true(same <= 1);
}

static const struct sba_sandbox_options options = { .name = "n",
						    .prefix = "p",
						    .tag = "t",
						    .image = "i:1",
						    .agent = "claude",
						    .network = "open",
						    .keepalive_ms = 1500,
						    .max_lifetime_ms = 0 };

static json_t *make(void)
{
	json_t *labels = NULL;
	struct sba_error err = { 0 };
	if (sba_labels_make(&options, "id-1", NULL, &labels, &err) < 0)
		fail_msg("%s", err.text);
	return labels;
}

static void labels_read_back_what_was_made(void **state)
{
	(void)state;
	SBA_JSON json_t *labels = make();
	struct sba_sandbox_info info = { 0 };
	sba_labels_read(labels, &info);
	assert_string_equal(info.id, "id-1");
	assert_string_equal(info.name, "n");
	assert_string_equal(info.prefix, "p");
	assert_string_equal(info.tag, "t");
	assert_string_equal(info.image, "i:1");
	assert_string_equal(info.agent, "claude");
	assert_string_equal(info.user, "");
	assert_int_equal(info.keepalive_ms, 1500);
	assert_int_equal(info.max_lifetime_ms, 0);
	assert_false(info.foreign_schema);
	assert_true(info.created > 1500000000);
}

static void a_copy_has_its_own_role(void **state)
{
	(void)state;
	SBA_JSON json_t *labels = make();
	SBA_JSON json_t *sidecar = sba_labels_with_role(labels, "sidecar");
	SBA_JSON json_t *sandbox = sba_labels_with_role(labels, "sandbox");
	assert_string_equal(sba_label_get(sidecar, "role"), "sidecar");
	assert_string_equal(sba_label_get(sandbox, "role"), "sandbox");
	assert_string_equal(sba_label_get(labels, "role"), "");
}

static void labels_of_others_are_strange_not_deadly(void **state)
{
	(void)state;
	struct sba_sandbox_info info = { 0 };
	SBA_JSON json_t *none = json_object();
	sba_labels_read(none, &info);
	assert_string_equal(info.name, "");
	assert_true(info.foreign_schema);
	SBA_JSON json_t *odd =
		json_pack("{s:s, s:i, s:s, s:s}", LABEL "schema", "2", LABEL "name", 7,
			  LABEL "keepalive", "soon", LABEL "created", "99999999999999999999");
	sba_labels_read(odd, &info);
	assert_true(info.foreign_schema);
	assert_string_equal(info.name, "");
	assert_int_equal(info.keepalive_ms, 0);
	assert_int_equal(info.created, 0);
	sba_labels_read(NULL, &info);
	assert_string_equal(info.id, "");
}

static void a_living_creator_is_not_dead(void **state)
{
	(void)state;
	SBA_JSON json_t *labels = make();
	assert_false(sba_label_creator_dead(labels));
}

/* What one that has ended wrote into the label. */
static void creator_that_ended(char text[512])
{
	int ends[2];
	memset(text, 0, 512);
	assert_int_equal(pipe(ends), 0);
	pid_t pid = fork();
	if (pid == 0) {
		json_t *labels = NULL;
		if (sba_labels_make(&options, "id", NULL, &labels, NULL) < 0)
			_exit(1);
		const char *made_by = sba_label_get(labels, "creator");
		ssize_t n = write(ends[1], made_by, strlen(made_by));
		_exit(n < 0);
	}
	close(ends[1]);
	assert_true(read(ends[0], text, 511) > 0);
	close(ends[0]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void a_creator_that_ended_is_dead(void **state)
{
	(void)state;
	char text[512];
	creator_that_ended(text);
	SBA_JSON json_t *labels = json_pack("{s:s}", LABEL "creator", text);
	assert_true(sba_label_creator_dead(labels));
}

/* On the same machine, and on the same engine's socket: its numbers are its own. */
static void of_a_neighbour_in_another_container_nothing_is_known(void **state)
{
	(void)state;
	char text[512], other[600];
	creator_that_ended(text);
	char *end = strrchr(text, '|');
	*end = '\0';
	char *pid = strrchr(text, '|');
	*pid = '\0';
	/* machine|boot|namespace, and one more digit to the last */
	snprintf(other, sizeof(other), "%s9|%s|%s", text, pid + 1, end + 1);
	SBA_JSON json_t *labels = json_pack("{s:s}", LABEL "creator", other);
	assert_false(sba_label_creator_dead(labels));
}

static void another_process_of_its_number_is_not_the_creator(void **state)
{
	(void)state;
	SBA_JSON json_t *labels = make();
	SBA_FREE char *made_by = strdup(sba_label_get(labels, "creator"));
	*(strrchr(made_by, '|') + 1) = '\0';
	json_object_set_new(labels, LABEL "creator", json_sprintf("%s1", made_by));
	assert_true(sba_label_creator_dead(labels));
}

static void of_another_machine_nothing_is_known(void **state)
{
	(void)state;
	static const char *const others[] = { "", "x", "machine|boot|1|1|1", "|||", "a|b|c|-5|1" };
	for (size_t i = 0; i < SBA_ARRAY_LEN(others); i++) {
		SBA_JSON json_t *labels = json_pack("{s:s}", LABEL "creator", others[i]);
		assert_false(sba_label_creator_dead(labels));
	}
	SBA_JSON json_t *none = json_object();
	assert_false(sba_label_creator_dead(none));
}

static int prepare(void **state)
{
	(void)state;
	alarm(60);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(names_that_an_engine_takes_are_allowed, prepare),
		cmocka_unit_test_setup(all_others_are_refused_and_named, prepare),
		cmocka_unit_test_setup(made_up_names_are_allowed_and_differ, prepare),
		cmocka_unit_test_setup(labels_read_back_what_was_made, prepare),
		cmocka_unit_test_setup(a_copy_has_its_own_role, prepare),
		cmocka_unit_test_setup(labels_of_others_are_strange_not_deadly, prepare),
		cmocka_unit_test_setup(a_living_creator_is_not_dead, prepare),
		cmocka_unit_test_setup(a_creator_that_ended_is_dead, prepare),
		cmocka_unit_test_setup(another_process_of_its_number_is_not_the_creator, prepare),
		cmocka_unit_test_setup(of_a_neighbour_in_another_container_nothing_is_known,
				       prepare),
		cmocka_unit_test_setup(of_another_machine_nothing_is_known, prepare),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
