/* SPDX-License-Identifier: MIT */
/*
 * Filling, wrapping and looking up errors, and the one table of codes: what
 * each is called in JSON and which exit status the program gives it.
 */
#include "base/base.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

static const struct sba_code_info codes[] = {
	{ SBA_EIO, "io", 1, false },
	{ SBA_OK, "ok", 0, false },
	{ SBA_EINVAL, "usage", 2, false },
	{ SBA_ENOMEM, "out_of_memory", 1, true },
	{ SBA_ECONFIG, "config", 2, false },
	{ SBA_ENOTFOUND, "not_found", 1, false },
	{ SBA_EEXIST, "exists", 1, false },
	{ SBA_EREFUSED, "refused", 1, false },
	{ SBA_EUNSUPPORTED, "unsupported", 1, false },
	{ SBA_ECONNECT, "engine_unreachable", 3, true },
	{ SBA_EPERM, "engine_permission", 3, false },
	{ SBA_EENGINE, "engine", 3, false },
	{ SBA_EPROTO, "protocol", 3, false },
	{ SBA_ELOST, "engine_lost", 3, true },
	{ SBA_EIMAGE, "image", 3, false },
	{ SBA_EBROKEN, "sandbox_broken", 4, true },
	{ SBA_ENOCLI, "missing_cli", 1, false },
	{ SBA_EAGENT, "agent_failed", 1, true },
	{ SBA_EMODEL, "model_error", 1, true },
	{ SBA_ELIMIT, "limit", 1, false },
	{ SBA_ETIMEOUT, "timeout", 124, true },
	{ SBA_ECANCELED, "canceled", 130, false },
	{ SBA_EBUDGET, "budget", 5, false },
	{ SBA_EBUSY, "busy", 1, true },
	{ SBA_ECONFLICT, "conflict", 1, false },
};

const struct sba_code_info *sba_code_info(int code)
{
	for (size_t i = 0; i < SBA_ARRAY_LEN(codes); i++) {
		if (codes[i].code == code)
			return &codes[i];
	}
	return &codes[0];
}

static void fill(struct sba_error *err, int code, int e, const char *fmt, va_list ap)
	SBA_PRINTF(4, 0);

static void fill(struct sba_error *err, int code, int e, const char *fmt, va_list ap)
{
	*err = (struct sba_error){ .code = code, .sys_errno = e };
	int n = vsnprintf(err->text, sizeof(err->text), fmt, ap);
	if (e == 0 || n < 0 || (size_t)n >= sizeof(err->text))
		return;
	char why[128];
	snprintf(err->text + n, sizeof(err->text) - (size_t)n, ": %s",
		 strerror_r(e, why, sizeof(why)));
}

int sba_fail(struct sba_error *err, int code, const char *fmt, ...)
{
	if (err) {
		va_list ap;
		va_start(ap, fmt);
		fill(err, code, 0, fmt, ap);
		va_end(ap);
	}
	return code;
}

int sba_fail_errno(struct sba_error *err, int code, int e, const char *fmt, ...)
{
	if (err) {
		va_list ap;
		va_start(ap, fmt);
		fill(err, code, e, fmt, ap);
		va_end(ap);
	}
	return code;
}

int sba_fail_nomem(struct sba_error *err)
{
	return sba_fail(err, SBA_ENOMEM, "out of memory");
}

int sba_wrap(struct sba_error *err, int rc, const char *fmt, ...)
{
	if (!err)
		return rc;
	char outer[SBA_ERROR_TEXT_MAX / 2];
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(outer, sizeof(outer) - 2, fmt, ap);
	va_end(ap);
	if (n < 0)
		return rc;
	memcpy(outer + strlen(outer), ": ", 3);
	size_t len = strlen(outer);
	memmove(err->text + len, err->text, sizeof(err->text) - len);
	memcpy(err->text, outer, len);
	err->text[sizeof(err->text) - 1] = '\0';
	return rc;
}

int sba_hint(struct sba_error *err, int rc, const char *fmt, ...)
{
	if (err) {
		va_list ap;
		va_start(ap, fmt);
		vsnprintf(err->hint, sizeof(err->hint), fmt, ap);
		va_end(ap);
	}
	return rc;
}
