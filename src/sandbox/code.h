/* SPDX-License-Identifier: MIT */
/* Code run in a sandbox: what its two files share. */
#ifndef SBA_SANDBOX_CODE_H
#define SBA_SANDBOX_CODE_H

#include "sandbox/private.h"

#define SBA_CODE_LANGUAGE "python"

/* By the language's program inside; as the member of a table (code_commands.c). */
int sba_commands_run_code(struct sba_sandbox *s, const struct sba_code_options *options,
			  sba_code_fn *tell, void *user, struct sba_exit *ret,
			  struct sba_error *err) SBA_MUST_CHECK;

#endif
