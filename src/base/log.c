/* SPDX-License-Identifier: MIT */
/* The debug hook: one for the process, set before threads start. */
#include "base/base.h"

#include <stdarg.h>

static sba_log_fn *hook;
static void *hook_user;

void sba_log_set(sba_log_fn *fn, void *user)
{
	hook = fn;
	hook_user = user;
}

void sba_log(const char *module, const char *fmt, ...)
{
	if (!hook)
		return;
	char text[1024];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	hook(hook_user, module, text);
}
