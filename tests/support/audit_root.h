/* SPDX-License-Identifier: MIT */
/* A root of one's own in a temporary folder, and handles that write into it. */
#ifndef SBA_TEST_AUDIT_ROOT_H
#define SBA_TEST_AUDIT_ROOT_H

#include "audit/turn.h"

/* Setup and teardown of each test. */
int audit_root_begin(void **state);
int audit_root_end(void **state);

extern char audit_root[64]; /* is not made yet */

/* Of a sandbox called `box`, with these secrets; fails the test if it cannot. */
struct sba_audit *audit_open(const char *box, const char *const *secrets);
/* A turn begun; NULL session: a new one. */
struct sba_audit_turn *audit_turn(struct sba_audit *a, const char *session);
/* A line of the CLI's and one event of it. */
void audit_say(struct sba_audit_turn *t, const char *line, enum sba_event_kind kind,
	       const char *text);
/* The CLI says its session's id. */
void audit_say_session(struct sba_audit_turn *t, const char *session);
/* It ends well. */
void audit_end(struct sba_audit_turn *take_t);
/* A turn that says its id and one text. */
void audit_whole_turn(struct sba_audit *a, const char *resumes, const char *session,
		      const char *text);

/* What a file holds: PATH beneath the root, with DAY for today's; the caller frees. */
char *audit_read(const char *path);
bool audit_exists(const char *path);
/* The status of a folder of today's. */
json_t *audit_status(const char *folder);
/* The only folder of today's whose name begins so, in a static buffer. */
const char *audit_folder(const char *beginning);
size_t audit_folders(void);
/* Lines of events.jsonl, each of which must be JSON: an array. */
json_t *audit_events(const char *folder);

#endif
