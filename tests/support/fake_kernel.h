/* SPDX-License-Identifier: MIT */
/* The code interpreters of the fake services (fake_remote.h). */
#ifndef SBA_TEST_FAKE_KERNEL_H
#define SBA_TEST_FAKE_KERNEL_H

#include "support/fake_remote.h"

struct fake_code {
	bool execd; /* else E2B's */
	const char *sandbox;
	const char *home; /* where contexts are kept */
	json_t *body;     /* or NULL */
	char **env;
	const char *interrupt; /* the run that is to end; or NULL */
};
/* False: it is no request of theirs. */
bool fake_kernel(struct fake_remote *f, const struct fake_code *c, const struct sba_http_request *r,
		 const char *path, struct sba_http_answer *a);

#endif
