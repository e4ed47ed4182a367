/* SPDX-License-Identifier: MIT */
/*
 * What knows one agent CLI: its command line and environment, its stream, its
 * verdict. One table of functions per CLI (sandbox-agent/driver.h); a driver
 * does no I/O. Its heart is a pure function, line in -> events out, that no
 * line can make fail.
 */
#ifndef SBA_DRIVERS_H
#define SBA_DRIVERS_H

#include <sandbox-agent/driver.h>

#include "base/base.h"
#include "drivers/store.h"

/* ---- the table ---- */

/* NULL if there is none of that name. */
const struct sba_driver *sba_driver_find(const char *name);
/* All, NULL-terminated. */
const struct sba_driver *const *sba_driver_all(void);
/* A driver of the user's own, made into one of this version; *ret points into
 * it where it can. SBA_EINVAL: something is missing. */
int sba_driver_adopt(const struct sba_driver *own, struct sba_driver *ret,
		     struct sba_error *err) SBA_MUST_CHECK;
/* Changes when one of the files does; "" if there is none. */
enum { SBA_FILES_MARK = 17 };
void sba_driver_files_mark(const struct sba_driver *driver, char ret[SBA_FILES_MARK]);

/* ---- what it may do (modes.c) ---- */

/* "read-only", "edit", "full"; "" and NULL are full. SBA_EINVAL: no such word. */
int sba_permissions_parse(const char *word, enum sba_permissions *ret,
			  struct sba_error *err) SBA_MUST_CHECK;
/* SBA_EUNSUPPORTED: the CLI cannot be held to that. */
int sba_driver_check_permissions(const struct sba_driver *driver, enum sba_permissions p,
				 struct sba_error *err) SBA_MUST_CHECK;

/* ---- MCP servers (mcp.c) ---- */

/* Checks {"mcpServers": {...}} for that driver, and puts it as its CLI reads it into
 * ret_file, the servers' names between blanks into ret_names. SBA_ECONFIG. */
int sba_mcp_translate(const struct sba_driver *driver, const char *text, size_t len,
		      struct sba_buf *ret_file, struct sba_buf *ret_names,
		      struct sba_error *err) SBA_MUST_CHECK;

/* ---- a turn's command ---- */

struct sba_command {
	struct sba_strv argv;
	struct sba_strv env; /* "K=V" */
	int failed;          /* 0 or SBA_ENOMEM */
};
void sba_command_fini(struct sba_command *c);
/* The driver's command for a turn, checked. */
int sba_command_make(const struct sba_driver *driver, const struct sba_turn_spec *spec,
		     struct sba_command *ret, struct sba_error *err) SBA_MUST_CHECK;

/* Session ids come from inside a sandbox and go back as arguments: letters,
 * digits, '_', '-' and '.' only, no '-' first, at most SBA_SESSION_ID_MAX. */
bool sba_session_id_valid(const char *id);

/* ---- its stream ---- */

/* Receives one event; strings are lent for the call. Nonzero breaks off and
 * is returned by sba_stream_line(). */
typedef int sba_event_fn(void *user, const struct sba_event *event);

/* Every string of an event but raw, which belongs to the line: where the event has them. */
enum { SBA_EVENT_STRINGS = 13 };
void sba_event_strings(struct sba_event *e, const char **slots[static SBA_EVENT_STRINGS]);

/* Strings are copied, but for the driver's. */
struct sba_stream_options {
	const struct sba_driver *driver;
	const char *resumes;     /* a session; NULL: none */
	const char *new_session; /* what the CLI was asked to call a new one; may be NULL */
	const char *kept;        /* what the turn before it kept; NULL: nothing */
	const char *mcp;         /* names of MCP servers; lent until the stream is freed; may be
				  * NULL */
	sba_event_fn *fn;
	void *user;
};

/* A parser for one turn; every event carries its line as .raw. */
int sba_stream_new(const struct sba_stream_options *options, struct sba_stream **ret,
		   struct sba_error *err) SBA_MUST_CHECK;
void sba_stream_free(struct sba_stream *s);
/* One line without its newline. What cannot be understood (no JSON, unknown
 * type) becomes a notice that carries the raw line, never an error; bad UTF-8
 * is replaced. 0, or what the sink returned. */
int sba_stream_line(struct sba_stream *s, const char *line, size_t len);
/* After the last line. stderr_tail may be "". Call once. Strings of the outcome
 * are lent until the stream is freed. */
int sba_stream_finish(struct sba_stream *s, int exit_status, const char *stderr_tail,
		      struct sba_outcome *ret);
/* The CLI has said that the turn is over (a process that does not exit may be
 * ended after a grace). */
bool sba_stream_done(const struct sba_stream *s);
/* The CLI has fallen into a loop of failing model calls and must be ended. */
bool sba_stream_stuck(const struct sba_stream *s);
/* The session id, NULL until known. */
const char *sba_stream_session(const struct sba_stream *s);
/* Of the turn so far; lent until the next line. */
const struct sba_usage *sba_stream_used(const struct sba_stream *s);
/* Saturating; what is negative is left out. */
void sba_usage_add(struct sba_usage *sum, const struct sba_usage *more);

#endif
