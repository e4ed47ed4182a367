/* SPDX-License-Identifier: MIT */
/*
 * libcurl, loaded when a call is to be made. Linked to, it would load its own
 * libraries (LDAP, Kerberos, SSH, two more of TLS) at every start of the program,
 * which takes longer than most commands.
 */
#include "http/private.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#define LIBRARY "libcurl.so.4"

#define FUNCTION(name)                                                                             \
	{                                                                                          \
		"curl_" #name, offsetof(struct sba_curl, name)                                     \
	}

static const struct {
	const char *name;
	size_t at;
} functions[] = {
	FUNCTION(global_init),      FUNCTION(global_cleanup),
	FUNCTION(easy_init),        FUNCTION(easy_setopt),
	FUNCTION(easy_getinfo),     FUNCTION(easy_pause),
	FUNCTION(easy_reset),       FUNCTION(easy_cleanup),
	FUNCTION(easy_strerror),    FUNCTION(multi_init),
	FUNCTION(multi_add_handle), FUNCTION(multi_remove_handle),
	FUNCTION(multi_perform),    FUNCTION(multi_poll),
	FUNCTION(multi_info_read),  FUNCTION(multi_cleanup),
	FUNCTION(multi_strerror),   FUNCTION(slist_append),
	FUNCTION(slist_free_all),   FUNCTION(url),
	FUNCTION(url_set),          FUNCTION(url_get),
	FUNCTION(url_cleanup),      FUNCTION(free),
};

static int missing(struct sba_error *err)
{
	const char *why = dlerror();
	int rc = sba_fail(err, SBA_EUNSUPPORTED, "loading %s: %s", LIBRARY,
			  why ? why : "unknown reason");
	return sba_hint(err, rc, "install libcurl (Debian: libcurl4)");
}

/* It is never unloaded: what it has loaded may have threads and hooks at the end. */
int sba_curl_load(struct sba_curl *ret, struct sba_error *err)
{
	struct sba_curl curl;
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	if (!library)
		return missing(err);
	for (size_t i = 0; i < SBA_ARRAY_LEN(functions); i++) {
		void *function = dlsym(library, functions[i].name);
		if (!function) {
			dlclose(library);
			return missing(err);
		}
		memcpy((char *)&curl + functions[i].at, &function, sizeof(function));
	}
	dlclose(library);
	*ret = curl;
	return 0;
}
