/* SPDX-License-Identifier: MIT */
/* execd, which is in each sandbox of OpenSandbox (execd.c). */
#ifndef SBA_REMOTE_OPENSANDBOX_H
#define SBA_REMOTE_OPENSANDBOX_H

#include "remote/private.h"

/* Members of struct sba_remote_kind. */
int sba_execd_compose(struct sba_remote_box *b, const struct sba_remote_start *s,
		      struct sba_buf *ret, struct sba_error *err) SBA_MUST_CHECK;
int sba_execd_stream(struct sba_remote_box *b, const struct sba_buf *request,
		     struct sba_until until, struct sba_http_response **ret,
		     struct sba_error *err) SBA_MUST_CHECK;
int sba_execd_decode(struct sba_remote_command *c, const char *data, size_t len,
		     struct sba_error *err) SBA_MUST_CHECK;
int sba_execd_put(struct sba_remote_box *b, const char *path, int fd, uint64_t size,
		  struct sba_until until, struct sba_error *err) SBA_MUST_CHECK;
int sba_execd_get(struct sba_remote_box *b, const char *path, struct sba_until until,
		  struct sba_http_response **ret, struct sba_error *err) SBA_MUST_CHECK;

extern const struct sba_remote_code_kind sba_execd_code; /* execd_code.c */

#endif
