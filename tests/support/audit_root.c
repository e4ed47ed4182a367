/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/folder.h"
#include "support/audit_root.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LIMIT_S = 20, FILE_MAX = 64 << 20 };

char audit_root[64];
static char dir[48];

int audit_root_begin(void **state)
{
	(void)state;
	alarm(LIMIT_S);
	test_folder(dir, sizeof(dir), "sbatest-audit");
	snprintf(audit_root, sizeof(audit_root), "%s/root", dir);
	return 0;
}

int audit_root_end(void **state)
{
	(void)state;
	test_folder_remove(dir);
	alarm(0);
	return 0;
}

struct sba_audit *audit_open(const char *box, const char *const *secrets)
{
	struct sba_audit_who who = {
		.sandbox = strdup(box),
		.sandbox_id = strdup(box),
		.agent = strdup("claude"),
		.image = strdup("repo:claude-1.2.3-20261129"),
	};
	const struct sba_audit_options o = { .root = audit_root, .secrets = secrets };
	struct sba_audit *a = NULL;
	struct sba_error err = { 0 };
	if (sba_audit_new(&o, &who, &a, &err) < 0)
		fail_msg("%s", err.text);
	return a;
}

struct sba_audit_turn *audit_turn(struct sba_audit *a, const char *session)
{
	const struct sba_audit_begin b = { .session = session, .prompt = "do it", .prompt_len = 5 };
	struct sba_audit_turn *t = NULL;
	struct sba_error err = { 0 };
	if (sba_audit_turn_begin(a, &b, &t, &err) < 0)
		fail_msg("%s", err.text);
	return t;
}

void audit_say(struct sba_audit_turn *t, const char *line, enum sba_event_kind kind,
	       const char *text)
{
	sba_audit_turn_raw(t, line, strlen(line));
	const struct sba_event e = {
		.kind = kind,
		.time_ms = sba_unix_ms(),
		.text = text,
		.raw = line,
		.raw_len = strlen(line),
	};
	sba_audit_turn_event(t, &e);
}

void audit_say_session(struct sba_audit_turn *t, const char *session)
{
	static const char line[] = "{\"init\":1}\n";
	sba_audit_turn_raw(t, line, sizeof(line) - 1);
	const struct sba_event e = {
		.kind = SBA_EVENT_SESSION, .time_ms = sba_unix_ms(), .session = session, .raw = line
	};
	sba_audit_turn_event(t, &e);
	sba_audit_turn_settle(t);
}

void audit_end(struct sba_audit_turn *take_t)
{
	const struct sba_audit_end end = { .session = "",
					   .verdict = "ok",
					   .answer = "done",
					   .usage = { .input = 10, .output = 2 },
					   .duration_ms = 5 };
	sba_audit_turn_end(take_t, &end);
	sba_audit_turn_free(take_t);
}

void audit_whole_turn(struct sba_audit *a, const char *resumes, const char *session,
		      const char *text)
{
	char line[256];
	struct sba_audit_turn *t = audit_turn(a, resumes);
	if (session)
		audit_say_session(t, session);
	snprintf(line, sizeof(line), "{\"say\":\"%s\"}\n", text);
	audit_say(t, line, SBA_EVENT_TEXT, text);
	audit_end(t);
}

/* ---- looking ---- */

static const char *whole(const char *path)
{
	static char buf[512];
	char day[SBA_AUDIT_DAY];
	sba_audit_day_of(sba_unix_ms(), day);
	bool today = strncmp(path, "DAY", 3) == 0;
	snprintf(buf, sizeof(buf), "%s/%s%s", audit_root, today ? day : "", path + (today ? 3 : 0));
	return buf;
}

char *audit_read(const char *path)
{
	struct sba_buf b = SBA_BUF_INIT(FILE_MAX);
	struct sba_error err = { 0 };
	if (sba_read_file(whole(path), FILE_MAX, &b, &err) < 0)
		fail_msg("%s", err.text);
	return sba_buf_take(&b);
}

bool audit_exists(const char *path)
{
	return access(whole(path), F_OK) == 0;
}

json_t *audit_status(const char *folder)
{
	char path[300];
	json_t *j = NULL;
	snprintf(path, sizeof(path), "DAY/%s", folder);
	SBA_CLOSE int fd = open(whole(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct sba_error err = { 0 };
	if (sba_audit_status_load(fd, &j, &err) < 0)
		fail_msg("%s: %s", path, err.text);
	return j;
}

static void names(struct sba_strv *ret)
{
	SBA_CLOSE int fd = open(whole("DAY"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0)
		assert_int_equal(sba_audit_names(fd, ret, NULL), 0);
}

const char *audit_folder(const char *beginning)
{
	static char found[300];
	SBA_STRV struct sba_strv v = { 0 };
	names(&v);
	found[0] = '\0';
	for (size_t i = 0; i < v.n; i++) {
		if (!sba_starts_with(v.v[i], beginning))
			continue;
		assert_string_equal(found, "");
		snprintf(found, sizeof(found), "%s", v.v[i]);
	}
	assert_string_not_equal(found, "");
	return found;
}

size_t audit_folders(void)
{
	SBA_STRV struct sba_strv v = { 0 };
	names(&v);
	return v.n;
}

json_t *audit_events(const char *folder)
{
	char path[300];
	snprintf(path, sizeof(path), "DAY/%s/events.jsonl", folder);
	SBA_FREE char *text = audit_read(path);
	json_t *all = json_array();
	for (char *line = text; *line;) {
		char *end = strchr(line, '\n');
		assert_non_null(end);
		json_t *j = json_loadb(line, (size_t)(end - line), JSON_REJECT_DUPLICATES, NULL);
		if (!j)
			fail_msg("no JSON: %.*s", (int)(end - line), line);
		json_array_append_new(all, j);
		line = end + 1;
	}
	return all;
}
