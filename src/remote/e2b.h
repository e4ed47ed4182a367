/* SPDX-License-Identifier: MIT */
/* The way to a sandbox of E2B, and envd, which is in each (envd.c). */
#ifndef SBA_REMOTE_E2B_H
#define SBA_REMOTE_E2B_H

#include "remote/private.h"

/* The URL of envd in it, and what goes with every request there, by what the control plane
 * has said of it (e2b.c). */
int sba_e2b_take_way(struct sba_remote_box *b, const json_t *said,
		     struct sba_error *err) SBA_MUST_CHECK;

/* Members of struct sba_remote_kind. */
int sba_envd_compose(struct sba_remote_box *b, const struct sba_remote_start *s,
		     struct sba_buf *ret, struct sba_error *err) SBA_MUST_CHECK;
int sba_envd_stream(struct sba_remote_box *b, const struct sba_buf *request, struct sba_until until,
		    struct sba_http_response **ret, struct sba_error *err) SBA_MUST_CHECK;
int sba_envd_decode(struct sba_remote_command *c, const char *data, size_t len,
		    struct sba_error *err) SBA_MUST_CHECK;
int sba_envd_input(struct sba_remote_command *c, const char *data, size_t len,
		   struct sba_until until, struct sba_error *err) SBA_MUST_CHECK;
int sba_envd_put(struct sba_remote_box *b, const char *path, int fd, uint64_t size,
		 struct sba_until until, struct sba_error *err) SBA_MUST_CHECK;
int sba_envd_get(struct sba_remote_box *b, const char *path, struct sba_until until,
		 struct sba_http_response **ret, struct sba_error *err) SBA_MUST_CHECK;

extern const struct sba_remote_code_kind sba_e2b_code; /* e2b_code.c */

#endif
