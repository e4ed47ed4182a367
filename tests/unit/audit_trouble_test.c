/* SPDX-License-Identifier: MIT */
/* What must never show, what is refused, and what may go wrong without a turn's noticing. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/audit_root.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define ID     "6b0d7a46-5f3f-4a4e-9a55-0d9c1f1f0001"
#define SECRET "sk-ant-0123456789abcdef"

/* ---- secrets ---- */

static const char *const secrets[] = { SECRET, "token-fedcba98", NULL };

static void delta(struct sba_audit_turn *t, const char *text, enum sba_event_kind kind)
{
	const struct sba_event e = { .kind = kind, .text = text, .delta = true, .raw = "x" };
	sba_audit_turn_event(t, &e);
}

/* All texts of the events of one kind, one after another. */
static char *joined(const char *kind)
{
	SBA_JSON json_t *events = audit_events(ID);
	struct sba_buf all = SBA_BUF_INIT(1 << 20);
	size_t i;
	json_t *e;
	json_array_foreach(events, i, e)
	{
		const char *text = sba_json_str(e, "payload.text");
		if (text && !strcmp(sba_json_str(e, "kind"), kind))
			sba_buf_puts(&all, text);
	}
	return sba_buf_take(&all);
}

static void assert_nothing_shows(void)
{
	SBA_FREE char *events = audit_read("DAY/" ID "/events.jsonl");
	SBA_FREE char *status = audit_read("DAY/" ID "/status.json");
	for (size_t i = 0; secrets[i]; i++) {
		assert_null(strstr(events, secrets[i]));
		assert_null(strstr(status, secrets[i]));
	}
}

static void a_secret_in_any_field_is_starred_out(void **state)
{
	(void)state;
	struct sba_audit *a = audit_open("box", secrets);
	struct sba_audit_turn *t = NULL;
	const char prompt[] = "use " SECRET " please";
	const struct sba_audit_begin b = { .session = ID,
					   .prompt = prompt,
					   .prompt_len = strlen(prompt) };
	assert_int_equal(sba_audit_turn_begin(a, &b, &t, NULL), 0);
	const struct sba_event call = { .kind = SBA_EVENT_TOOL_CALL,
					.tool = "bash",
					.summary = "echo " SECRET,
					.input = "{\"command\":\"echo token-fedcba98\"}",
					.raw = "x" };
	const struct sba_event result = { .kind = SBA_EVENT_TOOL_RESULT,
					  .output = "KEY=" SECRET "\n",
					  .path = SECRET,
					  .raw = "x" };
	sba_audit_turn_event(t, &call);
	sba_audit_turn_event(t, &result);
	assert_int_equal(sba_audit_record(a, "command", "{\"argv\":[\"" SECRET "\"]}", NULL), 0);
	const struct sba_audit_end end = { .session = ID,
					   .verdict = "model_error",
					   .error = "bad key " SECRET,
					   .answer = "it is token-fedcba98" };
	sba_audit_turn_end(t, &end);
	sba_audit_turn_free(t);
	assert_nothing_shows();
	SBA_FREE char *events = audit_read("DAY/" ID "/events.jsonl");
	assert_non_null(strstr(events, "KEY=***"));
	sba_audit_close(a);
}

static void a_secret_across_pieces_of_a_text_is_starred_out_wherever_it_is_cut(void **state)
{
	(void)state;
	static const char text[] = "it is " SECRET ", yes";
	for (size_t cut = 1; cut < sizeof(text) - 1; cut++) {
		struct sba_audit *a = audit_open("box", secrets);
		struct sba_audit_turn *t = audit_turn(a, ID);
		char first[64], second[64];
		snprintf(first, sizeof(first), "%.*s", (int)cut, text);
		snprintf(second, sizeof(second), "%s", text + cut);
		delta(t, first, SBA_EVENT_TEXT);
		delta(t, second, SBA_EVENT_TEXT);
		audit_end(t);
		SBA_FREE char *all = joined("text");
		assert_string_equal(all, "it is ***********************, yes");
		assert_nothing_shows();
		sba_audit_close(a);
		audit_root_end(NULL);
		audit_root_begin(NULL);
	}
}

static void a_secret_in_pieces_of_one_byte_is_starred_out(void **state)
{
	(void)state;
	struct sba_audit *a = audit_open("box", secrets);
	struct sba_audit_turn *t = audit_turn(a, ID);
	for (const char *c = "<" SECRET ">"; *c; c++)
		delta(t, (char[]){ *c, '\0' }, SBA_EVENT_THINKING);
	audit_end(t);
	SBA_FREE char *all = joined("thinking");
	assert_string_equal(all, "<***********************>");
	sba_audit_close(a);
}

static void what_only_looked_like_a_secret_is_all_there(void **state)
{
	(void)state;
	struct sba_audit *a = audit_open("box", secrets);
	struct sba_audit_turn *t = audit_turn(a, ID);
	delta(t, "see sk-ant-012", SBA_EVENT_TEXT);
	delta(t, "thought", SBA_EVENT_THINKING);
	delta(t, "3 and sk-ant", SBA_EVENT_TEXT);
	audit_end(t);
	SBA_FREE char *all = joined("text"), *thought = joined("thinking");
	assert_string_equal(all, "see sk-ant-0123 and sk-ant");
	assert_string_equal(thought, "thought");
	sba_audit_close(a);
}

static void variables_that_are_called_secret_are_starred_out(void **state)
{
	(void)state;
	struct sba_audit *a = audit_open("box", NULL);
	SBA_JSON json_t *env = json_pack("[s, s, s, s, s, i]", "GITHUB_TOKEN=ghp_0123456789",
					 "db_password=correct horse", "PATH=/usr/local/bin",
					 "API_KEY", "EMPTY_KEY=", 7);
	sba_audit_hide_env(a, env);
	struct sba_audit_turn *t = audit_turn(a, ID);
	delta(t, "ghp_0123456789 correct horse /usr/local/bin", SBA_EVENT_TEXT);
	audit_end(t);
	SBA_FREE char *all = joined("text");
	assert_string_equal(all, "************** ************* /usr/local/bin");
	sba_audit_close(a);
}

static void session_jsonl_stays_exact(void **state)
{
	(void)state;
	struct sba_audit *a = audit_open("box", secrets);
	struct sba_audit_turn *t = audit_turn(a, ID);
	sba_audit_turn_raw(t, SECRET "\n", sizeof(SECRET));
	audit_end(t);
	SBA_FREE char *raw = audit_read("DAY/" ID "/session.jsonl");
	assert_string_equal(raw, SECRET "\n");
	sba_audit_close(a);
}

/* ---- roots that are refused ---- */

static void assert_refused(const char *why)
{
	const struct sba_audit_begin b = { .prompt = "x", .prompt_len = 1 };
	struct sba_audit *a = audit_open("box", NULL);
	struct sba_audit_turn *t = NULL;
	struct sba_error err = { 0 };
	assert_int_equal(sba_audit_turn_begin(a, &b, &t, &err), SBA_EREFUSED);
	assert_non_null(strstr(err.text, why));
	assert_null(t);
	/* What a turn goes on to do with it. */
	sba_audit_turn_raw(t, "x\n", 2);
	sba_audit_turn_flush(t);
	assert_false(sba_audit_turn_trouble(t, &err));
	assert_string_equal(sba_audit_turn_path(t), "");
	sba_audit_turn_free(t);
	assert_int_equal(sba_audit_record(a, "command", "{}", &err), SBA_EREFUSED);
	assert_int_equal(sba_audit_prune(audit_root, 1, NULL, &err), SBA_EREFUSED);
	sba_audit_close(a);
}

static void a_root_that_is_a_link_is_refused(void **state)
{
	(void)state;
	char real[80];
	snprintf(real, sizeof(real), "%s.real", audit_root);
	assert_int_equal(mkdir(real, 0700), 0);
	assert_int_equal(symlink(real, audit_root), 0);
	assert_refused("a link");
	assert_int_equal(rmdir(real), 0);
}

static void a_root_that_is_open_to_others_is_refused(void **state)
{
	(void)state;
	static const mode_t modes[] = { 0755, 0770, 0701, 01777 };
	assert_int_equal(mkdir(audit_root, 0700), 0);
	for (size_t i = 0; i < SBA_ARRAY_LEN(modes); i++) {
		assert_int_equal(chmod(audit_root, modes[i]), 0);
		assert_refused("open to others");
	}
}

static void a_root_of_somebody_else_is_refused(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(mkdir(audit_root, 0700), 0);
	assert_int_equal(chown(audit_root, 12345, 12345), 0);
	assert_refused("somebody else");
}

static void a_root_that_is_a_file_is_refused(void **state)
{
	(void)state;
	FILE *f = fopen(audit_root, "we");
	fclose(f);
	assert_refused("a link or a file");
}

static void missing_folders_above_the_root_are_made(void **state)
{
	(void)state;
	struct stat st;
	snprintf(audit_root + strlen(audit_root), 16, "/a/b");
	struct sba_audit *a = audit_open("box", NULL);
	audit_whole_turn(a, NULL, ID, "x");
	assert_int_equal(stat(audit_root, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	sba_audit_close(a);
}

/* ---- what goes wrong ---- */

/* A thousand lines into it; what the turn was told, once. */
static int write_much(struct sba_audit_turn *t, struct sba_error *err)
{
	int told = 0;
	char line[1024];
	memset(line, 'x', sizeof(line) - 2);
	line[sizeof(line) - 2] = '\n';
	line[sizeof(line) - 1] = '\0';
	for (int i = 0; i < 1000; i++) {
		audit_say(t, line, SBA_EVENT_TEXT, line);
		sba_audit_turn_settle(t);
		told += sba_audit_turn_trouble(t, err);
	}
	return told;
}

static void a_full_disk_is_told_once_and_fails_nothing(void **state)
{
	(void)state;
	struct sba_error err = { 0 };
	assert_int_equal(mkdir(audit_root, 0700), 0);
	if (mount("tmpfs", audit_root, "tmpfs", 0, "size=256k,mode=0700") < 0)
		skip(); /* not root; the next test has a limit instead */
	struct sba_audit *a = audit_open("box", NULL);
	struct sba_audit_turn *t = audit_turn(a, ID);
	int told = write_much(t, &err);
	audit_end(t);
	sba_audit_close(a);
	/* Another turn, still without room. */
	a = audit_open("box", NULL);
	const struct sba_audit_begin b = { .session = ID, .prompt = "x", .prompt_len = 1 };
	int rc = sba_audit_turn_begin(a, &b, &t, NULL);
	if (rc == 0)
		audit_end(t);
	sba_audit_close(a);
	assert_int_equal(umount(audit_root), 0);
	assert_int_equal(told, 1);
	assert_non_null(strstr(err.text, "No space left"));
}

/* In a child: a limit cannot be had back. */
static void a_file_that_may_not_grow_is_told_once_and_fails_nothing(void **state)
{
	(void)state;
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		const struct rlimit limit = { 64 << 10, 64 << 10 };
		struct sba_error err = { 0 };
		signal(SIGXFSZ, SIG_IGN);
		setrlimit(RLIMIT_FSIZE, &limit);
		struct sba_audit *a = audit_open("box", NULL);
		struct sba_audit_turn *t = audit_turn(a, ID);
		int told = write_much(t, &err);
		audit_end(t);
		sba_audit_close(a);
		_exit(told == 1 && strstr(err.text, "too large") ? 0 : 1);
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	SBA_JSON json_t *s = audit_status(ID);
	assert_string_equal(sba_json_str(s, "turns.#0.verdict"), "ok");
	assert_true(sba_json_bool(s, "turns.#0.incomplete", false));
	/* The line that was cut does not spoil the next. */
	struct sba_audit *a = audit_open("box", NULL);
	audit_whole_turn(a, ID, ID, "afterwards");
	sba_audit_close(a);
	struct sba_audit_list *l = NULL;
	struct sba_audit_reader *r = NULL;
	const struct sba_audit_row *row;
	int found = 0;
	assert_int_equal(sba_audit_list(audit_root, NULL, &l, NULL), 0);
	assert_int_equal(sba_audit_list_count(l), 1);
	assert_int_equal(sba_audit_reader_open(sba_audit_list_at(l, 0), &r, NULL), 0);
	while (sba_audit_reader_next(r, 0, &row, NULL) == 1)
		found += row->is_event && row->event.text && !strcmp(row->event.text, "afterwards");
	assert_int_equal(found, 1);
	assert_true(sba_audit_reader_bad(r) <= 1);
	sba_audit_reader_close(r);
	sba_audit_list_free(l);
}

static void a_folder_that_is_removed_under_a_turn_is_told_once(void **state)
{
	(void)state;
	struct sba_error err = { 0 };
	struct sba_audit *a = audit_open("box", NULL);
	struct sba_audit_turn *t = audit_turn(a, ID);
	audit_say(t, "x\n", SBA_EVENT_TEXT, "x");
	pid_t pid = fork();
	if (pid == 0) {
		execlp("rm", "rm", "-rf", audit_root, NULL);
		_exit(127);
	}
	waitpid(pid, NULL, 0);
	audit_say(t, "y\n", SBA_EVENT_TEXT, "y");
	sba_audit_turn_end(t, &(struct sba_audit_end){ .session = ID, .verdict = "ok" });
	assert_true(sba_audit_turn_trouble(t, &err));
	assert_false(sba_audit_turn_trouble(t, &err));
	sba_audit_turn_free(t);
	/* The next one has a new folder. */
	audit_whole_turn(a, ID, ID, "next");
	assert_string_equal(audit_folder(""), ID);
	sba_audit_close(a);
}

static void a_root_that_cannot_be_written_is_an_error_and_nothing_else(void **state)
{
	(void)state;
	struct sba_error err = { 0 };
	struct sba_audit_turn *t = NULL;
	const struct sba_audit_begin b = { .prompt = "x", .prompt_len = 1 };
	struct sba_audit *a = audit_open("box", NULL);
	assert_int_equal(mkdir(audit_root, 0700), 0);
	bool mounted = mount("tmpfs", audit_root, "tmpfs", MS_RDONLY, "mode=0700") == 0;
	if (!mounted)
		assert_int_equal(chmod(audit_root, 0500), 0);
	int rc = sba_audit_turn_begin(a, &b, &t, &err);
	if (mounted)
		assert_int_equal(umount(audit_root), 0);
	assert_int_equal(rc, SBA_EIO);
	assert_non_null(strstr(err.text, audit_root));
	assert_null(t);
	sba_audit_close(a);
}

/* ---- connections ---- */

static const struct sba_connection refused = { .host = "x.test", .port = 443, .why = "no rule" };

static void a_connection_noticed_in_a_turn_is_of_that_turn(void **state)
{
	(void)state;
	struct sba_audit *a = audit_open("box", NULL);
	assert_int_equal(sba_audit_connections_open(a, &a->connections, NULL), 0);
	struct sba_audit_turn *t = audit_turn(a, ID);
	sba_audit_connections_tell(a->connections, &refused);
	audit_end(t);
	SBA_JSON json_t *events = audit_events(ID);
	size_t i, n = 0;
	json_t *e;
	json_array_foreach(events, i, e)
	{
		if (strcmp(sba_json_str(e, "kind"), "connection") != 0)
			continue;
		n++;
		assert_string_equal(sba_json_str(e, "payload.host"), "x.test");
		assert_int_equal(sba_json_int(e, "turn", 0), 1);
	}
	assert_int_equal(n, 1);
	sba_audit_close(a);
}

/* The lock is what a writer has who waits for its disk. */
static void connections_never_wait_for_the_record_and_what_is_left_out_is_counted(void **state)
{
	(void)state;
	enum { TOLD = 3 * SBA_AUDIT_CONNECTIONS_MAX };
	struct sba_audit *a = audit_open("box", NULL);
	assert_int_equal(sba_audit_connections_open(a, &a->connections, NULL), 0);
	struct sba_audit_turn *t = audit_turn(a, ID);
	pthread_mutex_lock(&a->lock);
	for (int i = 0; i < TOLD; i++)
		sba_audit_connections_tell(a->connections, &refused);
	pthread_mutex_unlock(&a->lock);
	audit_end(t);
	SBA_JSON json_t *events = audit_events(ID);
	size_t i;
	int64_t written = 0, left_out = 0;
	json_t *e;
	json_array_foreach(events, i, e)
	{
		const char *kind = sba_json_str(e, "kind");
		written += !strcmp(kind, "connection");
		if (!strcmp(kind, "left_out"))
			left_out += sba_json_int(e, "payload.count", 0);
	}
	assert_true(left_out >= SBA_AUDIT_CONNECTIONS_MAX);
	assert_int_equal(written + left_out, TOLD);
	sba_audit_close(a);
}

/* ---- retention ---- */

static void make_old(const char *day, const char *file)
{
	char path[256];
	const struct timespec old[2] = { { 1000000000, 0 }, { 1000000000, 0 } };
	snprintf(path, sizeof(path), "%s/%s/s/%s", audit_root, day, file);
	FILE *f = fopen(path, "we");
	assert_non_null(f);
	fclose(f);
	assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
}

static void make_day(const char *day)
{
	char path[256];
	snprintf(path, sizeof(path), "%s/%s/s", audit_root, day);
	*strrchr(path, '/') = '\0';
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/%s/s", audit_root, day);
	assert_int_equal(mkdir(path, 0700), 0);
	make_old(day, "events.jsonl");
	make_old(day, "session.jsonl");
}

static void only_days_without_activity_go(void **state)
{
	(void)state;
	int removed = 0;
	char path[256];
	static const char *const kept[] = { "00000000", "20261332", "99990101", "2020010",
					    "notes",    "20200102", "20200103x" };
	assert_int_equal(mkdir(audit_root, 0700), 0);
	make_day("20200101");
	for (size_t i = 0; i < SBA_ARRAY_LEN(kept); i++)
		make_day(kept[i]);
	/* It went on today. */
	snprintf(path, sizeof(path), "%s/20200102/s/events.jsonl", audit_root);
	assert_int_equal(utimensat(AT_FDCWD, path, NULL, 0), 0);
	assert_int_equal(sba_audit_prune(audit_root, 0, &removed, NULL), 0);
	assert_int_equal(removed, 0);
	assert_int_equal(sba_audit_prune(audit_root, 7, &removed, NULL), 0);
	assert_int_equal(removed, 1);
	assert_false(audit_exists("/20200101"));
	for (size_t i = 0; i < SBA_ARRAY_LEN(kept); i++) {
		snprintf(path, sizeof(path), "/%s/s/events.jsonl", kept[i]);
		assert_true(audit_exists(path));
	}
}

static void a_day_that_is_a_link_is_left_alone(void **state)
{
	(void)state;
	char real[96], link[96];
	int removed = -1;
	assert_int_equal(mkdir(audit_root, 0700), 0);
	make_day("elsewhere");
	snprintf(real, sizeof(real), "%s/elsewhere", audit_root);
	snprintf(link, sizeof(link), "%s/20200101", audit_root);
	assert_int_equal(symlink(real, link), 0);
	assert_int_equal(sba_audit_prune(audit_root, 7, &removed, NULL), 0);
	assert_int_equal(removed, 0);
	assert_true(audit_exists("/elsewhere/s/events.jsonl"));
}

static void a_turn_under_way_keeps_its_day_however_old(void **state)
{
	(void)state;
	int removed = -1;
	char today[128], other[128], day[SBA_AUDIT_DAY];
	struct sba_audit *a = audit_open("box", NULL);
	audit_whole_turn(a, NULL, ID, "one");
	sba_audit_day_of(sba_unix_ms(), day);
	snprintf(today, sizeof(today), "%s/%s", audit_root, day);
	snprintf(other, sizeof(other), "%s/20200101", audit_root);
	assert_int_equal(rename(today, other), 0);
	struct sba_audit_turn *t = audit_turn(a, ID);
	const struct timespec old[2] = { { 1000000000, 0 }, { 1000000000, 0 } };
	static const char *const files[] = { "events.jsonl", "session.jsonl", "status.json" };
	for (size_t i = 0; i < SBA_ARRAY_LEN(files); i++) {
		char path[256];
		snprintf(path, sizeof(path), "%s/" ID "/%s", other, files[i]);
		assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
		snprintf(path, sizeof(path), "%s/.sandbox-box", other);
		assert_int_equal(utimensat(AT_FDCWD, path, old, AT_SYMLINK_NOFOLLOW), 0);
	}
	assert_int_equal(sba_audit_prune(audit_root, 7, &removed, NULL), 0);
	assert_int_equal(removed, 0);
	sba_audit_turn_end(t, &(struct sba_audit_end){ .verdict = "ok" });
	sba_audit_turn_free(t);
	for (size_t i = 0; i < SBA_ARRAY_LEN(files); i++) {
		char path[256];
		snprintf(path, sizeof(path), "%s/" ID "/%s", other, files[i]);
		assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
	}
	assert_int_equal(sba_audit_prune(audit_root, 7, &removed, NULL), 0);
	assert_int_equal(removed, 1);
	sba_audit_close(a);
}

static void a_root_that_is_not_there_has_nothing_to_lose(void **state)
{
	(void)state;
	int removed = -1;
	struct sba_audit_list *l = NULL;
	assert_int_equal(sba_audit_prune(audit_root, 7, &removed, NULL), 0);
	assert_int_equal(removed, 0);
	assert_int_equal(sba_audit_list(audit_root, NULL, &l, NULL), 0);
	assert_int_equal(sba_audit_list_count(l), 0);
	sba_audit_list_free(l);
	assert_false(audit_exists(""));
}

#define T(f) cmocka_unit_test_setup_teardown(f, audit_root_begin, audit_root_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_secret_in_any_field_is_starred_out),
		T(a_secret_across_pieces_of_a_text_is_starred_out_wherever_it_is_cut),
		T(a_secret_in_pieces_of_one_byte_is_starred_out),
		T(what_only_looked_like_a_secret_is_all_there),
		T(variables_that_are_called_secret_are_starred_out),
		T(session_jsonl_stays_exact),
		T(a_root_that_is_a_link_is_refused),
		T(a_root_that_is_open_to_others_is_refused),
		T(a_root_of_somebody_else_is_refused),
		T(a_root_that_is_a_file_is_refused),
		T(missing_folders_above_the_root_are_made),
		T(a_full_disk_is_told_once_and_fails_nothing),
		T(a_file_that_may_not_grow_is_told_once_and_fails_nothing),
		T(a_folder_that_is_removed_under_a_turn_is_told_once),
		T(a_root_that_cannot_be_written_is_an_error_and_nothing_else),
		T(a_connection_noticed_in_a_turn_is_of_that_turn),
		T(connections_never_wait_for_the_record_and_what_is_left_out_is_counted),
		T(only_days_without_activity_go),
		T(a_day_that_is_a_link_is_left_alone),
		T(a_turn_under_way_keeps_its_day_however_old),
		T(a_root_that_is_not_there_has_nothing_to_lose),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
