/* SPDX-License-Identifier: MIT */
/*
 * Shared libraries that are loaded when they are needed: linked to, they would load
 * all of their own at every start of the program, which takes longer than many commands.
 */
#include "base/base.h"

#include <dlfcn.h>
#include <string.h>

static int missing(const struct sba_library *l, struct sba_error *err)
{
	const char *why = dlerror();
	int rc = sba_fail(err, SBA_EUNSUPPORTED, "loading %s: %s", l->file,
			  why ? why : "unknown reason");
	return sba_hint(err, rc, "%s", l->remedy);
}

/* It is never unloaded: what it has loaded may have threads and hooks at the end. */
int sba_library_load(const struct sba_library *l, void *ret, struct sba_error *err)
{
	void *library = dlopen(l->file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	int rc = library ? 0 : missing(l, err);
	for (size_t i = 0; rc == 0 && i < l->n; i++) {
		void *function = dlsym(library, l->functions[i].name);
		if (function)
			memcpy((char *)ret + l->functions[i].at, &function, sizeof(function));
		else
			rc = missing(l, err);
	}
	if (library)
		dlclose(library);
	return rc;
}
