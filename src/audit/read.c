/* SPDX-License-Identifier: MIT */
/*
 * Reading a session's events back, also while they are written. Their texts came
 * from inside a sandbox, and the file may have been cut anywhere: a line that is no
 * event is passed over.
 */
#include "audit/private.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

enum { READ_BYTES = 64 * SBA_KIB };

struct sba_audit_reader {
	int dir_fd, fd, watch_fd;
	struct sba_buf data; /* not yet handed out, but for `used` bytes of it */
	size_t used, searched;
	json_t *json;
	char *payload;
	struct sba_audit_row row;
	uint64_t bad;
};

/* ---- one line ---- */

static bool kind_of(const char *name, enum sba_event_kind *ret)
{
	for (int k = 0; k <= SBA_EVENT_DONE; k++) {
		if (!strcmp(sba_event_kind_name((enum sba_event_kind)k), name)) {
			*ret = (enum sba_event_kind)k;
			return true;
		}
	}
	return false;
}

static int small(const json_t *j, const char *name)
{
	int64_t n = sba_json_int(j, name, 0);
	return n > INT32_MAX ? INT32_MAX : n < INT32_MIN ? INT32_MIN : (int)n;
}

/* A JSON string cannot have a NUL that C would see as its end but as \u0000, which
 * jansson refuses. */
static void read_event(const json_t *p, struct sba_event *e)
{
	e->session = sba_json_str(p, "session");
	e->text = sba_json_str(p, "text");
	e->delta = sba_json_bool(p, "delta", false);
	e->tool = sba_json_str(p, "tool");
	e->tool_native = sba_json_str(p, "tool_native");
	e->call_id = sba_json_str(p, "call_id");
	e->summary = sba_json_str(p, "summary");
	e->output = sba_json_str(p, "output");
	e->failed = sba_json_bool(p, "failed", false);
	e->has_exit_code = json_is_integer(json_object_get(p, "exit_code"));
	e->exit_code = small(p, "exit_code");
	e->path = sba_json_str(p, "path");
	e->change = sba_json_str(p, "change");
	e->measured = sba_json_bool(p, "measured", false);
	e->old_path = sba_json_str(p, "old_path");
	e->diff = sba_json_str(p, "diff");
	e->without_diff = sba_json_str(p, "without_diff");
	e->http_status = small(p, "http_status");
	e->usage = (struct sba_usage){
		.input = sba_json_int(p, "usage.input", 0),
		.cached_input = sba_json_int(p, "usage.cached_input", 0),
		.output = sba_json_int(p, "usage.output", 0),
		.reasoning = sba_json_int(p, "usage.reasoning", 0),
		.cost_usd = json_number_value(sba_json_get(p, "usage.cost_usd")),
	};
}

/* The event lends its arguments from the payload's tree, as text. */
static int put_input(json_t *payload, struct sba_event *e)
{
	json_t *input = json_object_get(payload, "input");
	if (!input || json_is_string(input)) {
		e->input = json_string_value(input);
		return 0;
	}
	SBA_FREE char *text = json_dumps(input, JSON_COMPACT | JSON_ENCODE_ANY);
	json_t *kept = text ? json_string(text) : NULL;
	if (!kept || json_object_set_new(payload, "input", kept) < 0)
		return -1;
	e->input = json_string_value(kept);
	return 0;
}

bool sba_audit_row_parse(const char *text, size_t len, json_t **ret_json, char **ret_payload,
			 struct sba_audit_row *ret)
{
	SBA_JSON json_t *j = sba_json_load(text, len, 0, NULL);
	json_t *payload = json_object_get(j, "payload");
	const char *kind = sba_json_str(j, "kind");
	struct sba_audit_row r = { .kind = kind, .text = text, .len = len };
	if (!kind || !json_is_object(payload))
		return false;
	r.line = sba_json_int(j, "line", 0);
	r.offset = sba_json_int(j, "offset", 0);
	r.turn = sba_json_int(j, "turn", 0);
	r.time_ms = sba_audit_time_parse(sba_json_str(j, "time"));
	SBA_FREE char *dump = sba_json_dump(payload);
	if (!dump)
		return false;
	r.is_event = kind_of(kind, &r.event.kind);
	r.event.time_ms = r.time_ms;
	if (r.is_event) {
		read_event(payload, &r.event);
		if (put_input(payload, &r.event) < 0)
			return false;
	}
	r.payload = dump;
	*ret_payload = sba_move(&dump);
	*ret_json = sba_move(&j);
	*ret = r;
	return true;
}

/* ---- the file ---- */

int sba_audit_reader_open(const struct sba_audit_session *s, struct sba_audit_reader **ret,
			  struct sba_error *err)
{
	SBA_CLOSE int dir_fd = open(s->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	SBA_CLOSE int fd = dir_fd < 0 ? -1
				      : openat(dir_fd, SBA_AUDIT_EVENTS,
					       O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	SBA_FREE char *path = NULL;
	if (fd < 0)
		return sba_fail_errno(err, errno == ENOENT ? SBA_ENOTFOUND : SBA_EIO, errno,
				      "%s/" SBA_AUDIT_EVENTS, s->path);
	SBA_CLOSE int watch_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (asprintf(&path, "/proc/self/fd/%d", fd) < 0)
		return sba_fail_nomem(err);
	if (watch_fd < 0 || inotify_add_watch(watch_fd, path, IN_MODIFY) < 0)
		return sba_fail_errno(err, SBA_EIO, errno, "watch %s/" SBA_AUDIT_EVENTS, s->path);
	struct sba_audit_reader *r = calloc(1, sizeof(*r));
	if (!r)
		return sba_fail_nomem(err);
	sba_buf_init(&r->data, SBA_AUDIT_LINE_MAX);
	r->dir_fd = sba_move_fd(&dir_fd);
	r->fd = sba_move_fd(&fd);
	r->watch_fd = sba_move_fd(&watch_fd);
	*ret = r;
	return 0;
}

static int fill(struct sba_audit_reader *r, struct sba_error *err)
{
	sba_buf_drop(&r->data, r->used);
	r->used = 0;
	char *to = sba_buf_reserve(&r->data, READ_BYTES);
	if (!to)
		return sba_buf_check(&r->data, SBA_AUDIT_EVENTS ": a line", err);
	ssize_t n;
	do {
		n = read(r->fd, to, READ_BYTES);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return sba_fail_errno(err, SBA_EIO, errno, "read " SBA_AUDIT_EVENTS);
	r->data.len += (size_t)n;
	return n > 0;
}

/* A whole line that is in memory; NULL: none. */
static const char *take_line(struct sba_audit_reader *r, size_t *ret_len)
{
	const char *from = r->data.data ? r->data.data + r->used : NULL;
	size_t left = r->data.len - r->used;
	const char *end = from && left > r->searched
				  ? memchr(from + r->searched, '\n', left - r->searched)
				  : NULL;
	if (!end) {
		r->searched = left;
		return NULL;
	}
	*ret_len = (size_t)(end - from);
	r->used += *ret_len + 1;
	r->searched = 0;
	return from;
}

static bool next_row(struct sba_audit_reader *r)
{
	const char *line;
	size_t len;
	while ((line = take_line(r, &len))) {
		json_decref(sba_move(&r->json));
		free(sba_move(&r->payload));
		if (sba_audit_row_parse(line, len, &r->json, &r->payload, &r->row))
			return true;
		r->bad++;
	}
	return false;
}

static int wait_more(struct sba_audit_reader *r, struct sba_until until, struct sba_error *err)
{
	char events[4096];
	int rc = sba_wait_fd(r->watch_fd, POLLIN, until, err);
	if (rc < 0)
		return rc;
	while (read(r->watch_fd, events, sizeof(events)) > 0)
		;
	return 0;
}

int sba_audit_reader_next(struct sba_audit_reader *r, int64_t wait_ms,
			  const struct sba_audit_row **ret, struct sba_error *err)
{
	const struct sba_until until =
		wait_ms < 0 ? (struct sba_until){ SBA_NEVER, -1 } : sba_until_in(wait_ms);
	for (;;) {
		if (next_row(r)) {
			*ret = &r->row;
			return 1;
		}
		int rc = fill(r, err);
		if (rc == 0 && wait_ms != 0) {
			rc = wait_more(r, until, err);
			if (rc == SBA_ETIMEOUT)
				return 0;
		} else if (rc == 0) {
			return 0;
		}
		if (rc < 0)
			return rc;
	}
}

int sba_audit_reader_fd(const struct sba_audit_reader *r)
{
	return r->watch_fd;
}

uint64_t sba_audit_reader_bad(const struct sba_audit_reader *r)
{
	return r->bad;
}

bool sba_audit_reader_busy(const struct sba_audit_reader *r)
{
	return sba_audit_folder_held(r->dir_fd);
}

void sba_audit_reader_close(struct sba_audit_reader *r)
{
	if (!r)
		return;
	sba_cleanup_close(&r->dir_fd);
	sba_cleanup_close(&r->fd);
	sba_cleanup_close(&r->watch_fd);
	sba_buf_fini(&r->data);
	json_decref(r->json);
	free(r->payload);
	free(r);
}
