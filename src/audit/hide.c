/* SPDX-License-Identifier: MIT */
/* Keys and tokens starred out of what people are going to read. */
#include "audit/private.h"

#include <stdlib.h>
#include <string.h>

int sba_audit_hide(struct sba_audit *a, const char *secret, struct sba_error *err)
{
	if (!secret || !*secret)
		return 0;
	if (a->secrets_n == SBA_AUDIT_SECRETS_MAX)
		return sba_fail(err, SBA_ELIMIT, "more than %d secrets", SBA_AUDIT_SECRETS_MAX);
	int rc = sba_redact_new(secret, &a->secrets[a->secrets_n], err);
	if (rc == 0)
		a->secrets_n++;
	return rc;
}

void sba_audit_hide_in(const struct sba_audit *a, char *text, size_t len)
{
	for (size_t i = 0; i < a->secrets_n; i++) {
		struct sba_redact_scan scan = { .last = true };
		sba_redact(a->secrets[i], text, len, &scan);
	}
}

size_t sba_audit_hide_part(const struct sba_audit *a, char *text, size_t len)
{
	size_t safe = len;
	for (size_t i = 0; i < a->secrets_n; i++) {
		struct sba_redact_scan scan = { 0 };
		size_t n = sba_redact(a->secrets[i], text, len, &scan);
		safe = n < safe ? n : safe;
	}
	return safe;
}

json_t *sba_audit_text(const struct sba_audit *a, const void *data, size_t len, size_t max)
{
	bool cut = len > max;
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(4 * max + 16);
	sba_buf_put_utf8(&b, data, cut ? max : len);
	if (b.failed)
		return NULL;
	/* What was cut may end within a secret. */
	size_t safe = cut && b.len ? sba_audit_hide_part(a, b.data, b.len) : b.len;
	if (!cut && b.len)
		sba_audit_hide_in(a, b.data, b.len);
	while (safe > 0 && safe < b.len && (b.data[safe] & 0xC0) == 0x80)
		safe--;
	return json_stringn(b.data ? b.data : "", safe);
}
