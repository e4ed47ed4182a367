/* SPDX-License-Identifier: MIT */
/* The beginning of a turn's record: its folder, where the last turn ended, its entry. */
#include "audit/turn.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int sba_audit_events_open(int folder_fd, struct sba_error *err)
{
	struct stat st;
	char last = '\n';
	int fd = openat(folder_fd, SBA_AUDIT_EVENTS,
			O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
	if (fd < 0)
		return sba_fail_errno(err, SBA_EIO, errno, "open " SBA_AUDIT_EVENTS);
	bool known =
		fstat(fd, &st) == 0 && st.st_size > 0 && pread(fd, &last, 1, st.st_size - 1) == 1;
	int rc = !known || last == '\n' ? 0 : sba_write_all(fd, "\n", 1, err);
	if (rc < 0) {
		close(fd);
		return rc;
	}
	return fd;
}

/* What the turns before this one have said, as it is counted by sed and wc. */
static int count_raw(struct sba_audit_turn *t, struct sba_error *err)
{
	char piece[16 * SBA_KIB];
	int64_t lines = 0;
	SBA_CLOSE int fd =
		openat(t->folder.fd, SBA_AUDIT_RAW, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	for (;;) {
		ssize_t n = read(fd, piece, sizeof(piece));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return sba_fail_errno(err, SBA_EIO, errno, "read " SBA_AUDIT_RAW);
		if (n == 0)
			break;
		for (const char *c = piece; (c = memchr(c, '\n', (size_t)(piece + n - c))); c++) {
			lines++;
			t->at.offset = t->bytes + (c + 1 - piece);
		}
		t->bytes += n;
		t->line_ended = piece[n - 1] == '\n';
	}
	t->at.line = lines + !t->line_ended;
	return 0;
}

/* The last turn's entry knows how much there is, unless its writer died. */
static int find_end(struct sba_audit_turn *t, struct sba_error *err)
{
	const json_t *turns = json_object_get(t->status, "turns");
	const json_t *last = json_array_get(turns, json_array_size(turns) - 1);
	int64_t end = sba_json_int(last, "offset", 0) + sba_json_int(last, "bytes", 0);
	struct stat st;
	if (fstat(t->folder.raw_fd, &st) < 0)
		return sba_fail_errno(err, SBA_EIO, errno, "%s", SBA_AUDIT_RAW);
	t->line_ended = true;
	if (st.st_size == 0 || st.st_size != end || !sba_json_bool(last, "whole_lines", false))
		return count_raw(t, err);
	t->bytes = end;
	t->at.line = sba_json_int(last, "line", 1) - 1 + sba_json_int(last, "lines", 0);
	return 0;
}

static int add_entry(struct sba_audit_turn *t, const struct sba_audit_begin *b,
		     struct sba_error *err)
{
	char now[SBA_AUDIT_TIME];
	json_t *turns = json_object_get(t->status, "turns");
	sba_audit_time(sba_unix_ms(), now);
	t->number = (int64_t)json_array_size(turns) + 1;
	t->entry = json_pack(
		"{s:I, s:s, s:o, s:I, s:s*, s:s*, s:b, s:b, s:i, s:s, s:I, s:I}", "turn",
		(json_int_t)t->number, "verdict", "running", "prompt",
		sba_audit_text(t->audit, b->prompt, b->prompt_len, SBA_AUDIT_PROMPT_MAX),
		"prompt_bytes", (json_int_t)b->prompt_len, "model", b->model, "resumes", b->session,
		"aside", b->aside, "one_turn", b->one_turn, "pid", (int)getpid(), "started", now,
		"offset", (json_int_t)t->bytes, "line", (json_int_t)(t->at.line + t->line_ended));
	if (!t->entry || json_array_append_new(turns, t->entry) < 0)
		return sba_fail_nomem(err);
	json_object_set_new(t->status, "image_digest", json_string(t->audit->who.digest));
	return 0;
}

static void put_prompt(struct sba_audit_turn *t, const struct sba_audit_begin *b)
{
	SBA_JSON json_t *j = json_pack(
		"{s:o, s:I, s:b}", "text",
		sba_audit_text(t->audit, b->prompt, b->prompt_len, SBA_AUDIT_PROMPT_EVENT_MAX),
		"bytes", (json_int_t)b->prompt_len, "aside", b->aside);
	sba_audit_turn_put(t, "prompt", j);
	sba_audit_turn_write(t);
}

int sba_audit_turn_start(struct sba_audit_turn *t, const struct sba_audit_begin *b,
			 struct sba_error *err)
{
	int rc = sba_audit_folder_for_turn(t->audit, b->session, b->aside, &t->folder, &t->status,
					   err);
	if (rc < 0)
		return rc;
	sba_audit_turn_set_path(t);
	t->events_fd = sba_audit_events_open(t->folder.fd, err);
	if (t->events_fd < 0)
		return t->events_fd;
	rc = find_end(t, err);
	if (rc == 0 && b->session && !b->aside &&
	    sba_audit_status_add_session(t->status, b->session) < 0)
		rc = sba_fail_nomem(err);
	if (rc == 0)
		rc = add_entry(t, b, err);
	if (rc == 0)
		rc = sba_audit_status_save(t->folder.fd, t->status, err);
	if (rc < 0)
		return rc;
	put_prompt(t, b);
	return sba_audit_feed_open(t, err);
}
