/* SPDX-License-Identifier: MIT */
/* Children of a sandbox: the parent's files as they are now, and nothing else of it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/live.h"

#include <string.h>

static struct sba_sandbox *fork_one(struct sba_sandbox *parent, struct sba_fork_report *report)
{
	struct sba_sandbox *child = NULL;
	struct sba_error err = { 0 };
	if (sba_sandbox_fork(parent, NULL, &child, report, &err) < 0)
		fail_msg("%s", err.text);
	return child;
}

static void assert_same(struct sba_sandbox *a, struct sba_sandbox *b, const char *script)
{
	char *x = live_sh_out(a, script), *y = live_sh_out(b, script);
	assert_string_equal(x, y);
	free(x);
	free(y);
}

/* Every file of a tree with type, mode, owner, size, link and content. */
#define TREE(dir)                                                                                  \
	"cd " dir " && find . -printf '%P %y %m %U:%G %l\\n' | sort && "                           \
	"find . -type f -print0 | sort -z | xargs -0r sha256sum"

static void a_child_has_every_file_as_it_is_in_the_parent(void **state)
{
	(void)state;
	struct sba_fork_report report;
	struct sba_sandbox *parent = live_sandbox((struct sba_sandbox_options){ 0 });
	free(live_sh_out(parent,
			 "mkdir -p /workspace/a/b && cd /workspace && echo one > a/b/f && "
			 "ln a/b/f hard && ln -s a/b/f soft && chmod 4711 a/b/f && "
			 "head -c 3000000 /dev/urandom > big && truncate -s 50M holes && "
			 "touch \"$(printf 'odd\\nname')\" && mkdir empty && chmod 1770 empty && "
			 "mkdir -p deep/$(printf 'd%.0s/' $(seq 100)) && "
			 "chown -R 1000:1000 a && echo changed > /etc/issue && chmod 700 /mnt && "
			 "rm /etc/debian_version && rm -r /usr/share/base-files"));
	struct sba_sandbox *child = fork_one(parent, &report);
	assert_same(parent, child, TREE("/workspace"));
	assert_same(parent, child, "cat /etc/issue; stat -c '%a' /mnt");
	assert_same(parent, child, "ls /etc/debian_version /usr/share/base-files 2>&1; true");
	assert_same(parent, child, "stat -c '%h %n' /workspace/hard");
	assert_int_equal(report.deleted, 2);
	assert_true(report.files >= 5);
	live_remove(child);
	live_remove(parent);
}

static void what_the_user_of_a_sandbox_deleted_is_deleted_in_its_child(void **state)
{
	(void)state;
	const char *image = live_image("owned",
				       "RUN mkdir /workspace && touch /workspace/old && "
				       "chown -R 1000:1000 /workspace\n",
				       NULL, NULL);
	struct sba_sandbox *parent =
		live_sandbox((struct sba_sandbox_options){ .image = image, .user = "1000:1000" });
	free(live_sh_out(parent, "cd /workspace && rm old && echo new > new"));
	struct sba_sandbox *child = fork_one(parent, NULL);
	assert_same(parent, child, TREE("/workspace"));
	live_remove(child);
	live_remove(parent);
}

/* Neither the user nor a root without capabilities sees all of it; the engine does. */
static void what_root_owns_in_a_users_sandbox_is_roots_in_its_child_too(void **state)
{
	(void)state;
	struct sba_sandbox *parent =
		live_sandbox((struct sba_sandbox_options){ .user = "1000:1000" });
	static const char *const argv[] = {
		"sh", "-c",
		"mkdir /srv/roots /srv/open && echo r > /srv/roots/f && chmod 700 /srv/roots && "
		"echo g > /srv/open/group && chgrp 1000 /srv/open/group && chmod 1777 /srv/open",
		NULL
	};
	const struct sba_exec_options as_root = { .argv = argv, .user = "0:1000" };
	LIVE_RESULT r = { 0 };
	live_exec(parent, &as_root, &r);
	live_assert_exit(&r, 0);
	free(live_sh_out(parent, "umask 077 && mkdir -p /srv/open/own/deep && "
				 "echo o > /srv/open/own/deep/f && ln -s f /srv/open/own/link"));
	struct sba_sandbox *child = fork_one(parent, NULL);
	assert_same(parent, child, TREE("/srv/open"));
	assert_same(parent, child, "stat -c '%u:%g %a' /srv/roots /srv/open");
	static const char *const look[] = { "stat", "-c", "%u:%g %a", "/srv/roots/f", NULL };
	const struct sba_exec_options root_looks = { .argv = look, .user = "0:0" };
	LIVE_RESULT seen = { 0 };
	live_exec(child, &root_looks, &seen);
	live_assert_exit(&seen, 0);
	assert_string_equal(seen.out.data, "0:1000 644\n");
	live_remove(child);
	live_remove(parent);
}

static void thousands_of_files_that_root_deleted_are_deleted_in_the_child(void **state)
{
	(void)state;
	const char *image = live_image("many",
				       "RUN mkdir /many && cd /many && seq -f "
				       "'a-file-with-a-name-of-some-length-%06g' 12000 | "
				       "xargs touch && touch stays\n",
				       NULL, NULL);
	struct sba_sandbox *parent =
		live_sandbox((struct sba_sandbox_options){ .image = image, .user = "1000:1000" });
	const char *const argv[] = { "find", "/many", "-name", "a-*", "-delete", NULL };
	const struct sba_exec_options as_root = { .argv = argv, .user = "0:0" };
	LIVE_RESULT r = { 0 };
	live_exec(parent, &as_root, &r);
	live_assert_exit(&r, 0);
	struct sba_fork_report report;
	struct sba_sandbox *child = fork_one(parent, &report);
	assert_int_equal(report.deleted, 12000);
	char *left = live_sh_out(child, "ls /many");
	assert_string_equal(left, "stays\n");
	free(left);
	live_remove(child);
	live_remove(parent);
}

static void parent_and_children_do_not_see_each_others_later_files(void **state)
{
	(void)state;
	struct sba_sandbox *children[3] = { NULL };
	struct sba_error err = { 0 };
	struct sba_sandbox *parent =
		live_sandbox((struct sba_sandbox_options){ .name = "old-oak" });
	free(live_sh_out(parent, "mkdir -p /workspace && echo before > /workspace/f"));
	const struct sba_fork_options o = { .count = 3 };
	if (sba_sandbox_fork(parent, &o, children, NULL, &err) < 0)
		fail_msg("%s", err.text);
	free(live_sh_out(parent, "echo parent > /workspace/f"));
	free(live_sh_out(children[1], "echo child > /workspace/f"));
	for (int i = 0; i < 3; i++) {
		char *text = live_sh_out(children[i], "cat /workspace/f");
		assert_string_equal(text, i == 1 ? "child\n" : "before\n");
		free(text);
		assert_true(sba_starts_with(sba_sandbox_info(children[i])->name, "old-oak-"));
	}
	char *text = live_sh_out(parent, "cat /workspace/f");
	assert_string_equal(text, "parent\n");
	free(text);
	for (int i = 0; i < 3; i++)
		live_remove(children[i]);
	live_remove(parent);
}

static void settings_come_along_and_tag_and_environment_do_not(void **state)
{
	(void)state;
	static const char *const env[] = { "SECRET=zz-marker-7", NULL };
	static const char *const allow[] = { "example.org", "*.example.net:8443", NULL };
	struct sba_sandbox *parent =
		live_sandbox((struct sba_sandbox_options){ .env = env,
							   .allow = allow,
							   .tag = "mine",
							   .agent = "claude",
							   .user = "1000:1000",
							   .memory = 300 * 1024 * 1024,
							   .pids = 77,
							   .cpus = 1,
							   .model = "one-of-its-kind",
							   .max_tokens = 5000,
							   .max_requests = 7,
							   .keepalive_ms = 90 * 1000 });
	struct sba_sandbox *child = fork_one(parent, NULL);
	const struct sba_sandbox_info *p = sba_sandbox_info(parent), *c = sba_sandbox_info(child);
	assert_string_equal(c->agent, "claude");
	assert_string_equal(c->user, "1000:1000");
	assert_string_equal(c->allow, p->allow);
	assert_string_equal(c->network, "sealed");
	assert_string_equal(c->image, p->image);
	assert_string_equal(c->model, "one-of-its-kind");
	assert_int_equal(c->max_tokens, 5000);
	assert_int_equal(c->max_requests, 7);
	assert_string_equal(c->tag, "");
	assert_int_equal(c->keepalive_ms, 90 * 1000);
	SBA_JSON json_t *inspect = live_inspect(sba_sandbox_container(child));
	SBA_FREE char *text = sba_json_dump(inspect);
	assert_null(strstr(text, "zz-marker"));
	assert_int_equal(sba_json_int(inspect, "HostConfig.Memory", 0), 300 * 1024 * 1024);
	assert_int_equal(sba_json_int(inspect, "HostConfig.PidsLimit", 0), 77);
	live_remove(child);
	live_remove(parent);
}

static void a_name_that_is_taken_leaves_no_child_behind(void **state)
{
	(void)state;
	struct sba_sandbox *children[2] = { NULL };
	struct sba_error err = { 0 };
	struct sba_sandbox *parent = live_sandbox((struct sba_sandbox_options){ 0 });
	struct sba_sandbox *other =
		live_sandbox((struct sba_sandbox_options){ .name = "branch-2" });
	size_t before = live_container_count();
	const struct sba_fork_options o = { .count = 2, .name = "branch" };
	assert_int_equal(sba_sandbox_fork(parent, &o, children, NULL, &err), SBA_EEXIST);
	assert_non_null(strstr(err.text, "branch-2"));
	assert_int_equal(live_container_count(), before);
	assert_null(children[0]);
	live_remove(other);
	live_remove(parent);
}

static void children_that_come_later_take_the_next_names(void **state)
{
	(void)state;
	struct sba_sandbox *later[2] = { NULL };
	struct sba_error err = { 0 };
	struct sba_sandbox *parent =
		live_sandbox((struct sba_sandbox_options){ .name = "old-elm" });
	struct sba_sandbox *first = fork_one(parent, NULL);
	assert_string_equal(sba_sandbox_info(first)->name, "old-elm-1");
	const struct sba_fork_options o = { .count = 2 };
	if (sba_sandbox_fork(parent, &o, later, NULL, &err) < 0)
		fail_msg("%s", err.text);
	for (int i = 0; i < 2; i++) {
		assert_true(sba_starts_with(sba_sandbox_info(later[i])->name, "old-elm-"));
		live_remove(later[i]);
	}
	live_remove(first);
	live_remove(parent);
}

static void a_parent_that_writes_meanwhile_is_forked_all_the_same(void **state)
{
	(void)state;
	struct sba_process *p = NULL;
	struct sba_error err = { 0 };
	static const char *const argv[] = {
		"sh", "-c",
		"mkdir -p /workspace; echo kept > /workspace/kept; "
		"while :; do echo line >> /workspace/log; echo x > /workspace/t$((i=i+1)); "
		"rm -f /workspace/t$((i-5)); echo .; done",
		NULL
	};
	struct sba_sandbox *parent = live_sandbox((struct sba_sandbox_options){ .cpus = 0.2 });
	const struct sba_exec_options o = { .argv = argv };
	enum sba_output which;
	const char *data;
	assert_int_equal(sba_sandbox_exec(parent, &o, &p, &err), 0);
	assert_true(sba_process_read(p, 10000, &which, &data, &err) > 0);
	struct sba_sandbox *child = fork_one(parent, NULL);
	char *text = live_sh_out(child, "cat /workspace/kept");
	assert_string_equal(text, "kept\n");
	free(text);
	sba_process_free(p);
	live_remove(child);
	live_remove(parent);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE_TEST(a_child_has_every_file_as_it_is_in_the_parent),
		LIVE_TEST(what_the_user_of_a_sandbox_deleted_is_deleted_in_its_child),
		LIVE_TEST(what_root_owns_in_a_users_sandbox_is_roots_in_its_child_too),
		LIVE_TEST(thousands_of_files_that_root_deleted_are_deleted_in_the_child),
		LIVE_TEST(parent_and_children_do_not_see_each_others_later_files),
		LIVE_TEST(settings_come_along_and_tag_and_environment_do_not),
		LIVE_TEST(a_name_that_is_taken_leaves_no_child_behind),
		LIVE_TEST(children_that_come_later_take_the_next_names),
		LIVE_TEST(a_parent_that_writes_meanwhile_is_forked_all_the_same),
		cmocka_unit_test(live_nothing_is_left),
	};
	return live_run(tests, live_begin, live_end);
}
