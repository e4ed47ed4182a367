/* SPDX-License-Identifier: MIT */
/* Units as people write them, and untrusted bytes made fit to be shown. Any thread. */
#ifndef SANDBOX_AGENT_TEXT_H
#define SANDBOX_AGENT_TEXT_H

#include <sandbox-agent/export.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* "90", "90s", "1.5h", "30m", "2d", "250ms" to milliseconds; plain numbers are
 * seconds. 0 or SBA_EINVAL. */
SBA_API int sba_parse_duration(const char *s, int64_t *ret_ms);
/* "512", "64k", "1.5g", "2GiB" to bytes, 1024-based. 0 or SBA_EINVAL. */
SBA_API int sba_parse_size(const char *s, int64_t *ret_bytes);
/* "1h 5m", "14m", "8s" into buf, which is returned. */
SBA_API const char *sba_format_duration(int64_t ms, char *buf, size_t size);
/* "412 B", "1.2 MB" (1000-based, as docker prints) into buf, which is returned. */
SBA_API const char *sba_format_size(int64_t bytes, char *buf, size_t size);
/* Index of the candidate nearest to `word` if it is near enough to be a typo,
 * else -1. */
SBA_API int sba_nearest(const char *word, const char *const *candidates, size_t n);
/* A copy fit for a terminal: invalid UTF-8, control characters (but newline and
 * tab, unless one_line) and bidirectional overrides as visible escapes. The
 * caller frees; NULL when out of memory. */
SBA_API char *sba_visible(const void *data, size_t len, bool one_line);
/* True if the bytes are valid UTF-8. */
SBA_API bool sba_utf8_valid(const void *data, size_t len);
/* Stars a secret of 8 bytes or more out of text, in place: as it is, and as JSON,
 * URLs and base64 spell it. */
SBA_API void sba_hide_secret(char *text, const char *secret);

#ifdef __cplusplus
}
#endif

#endif
