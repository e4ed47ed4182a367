/* SPDX-License-Identifier: MIT */
/*
 * libcurl, loaded when a call is to be made: it brings LDAP, Kerberos, SSH and two
 * more libraries of TLS.
 */
#include "http/private.h"

#include <stddef.h>

#define FUNCTION(name)                                                                             \
	{                                                                                          \
		"curl_" #name, offsetof(struct sba_curl, name)                                     \
	}

static const struct sba_library_function functions[] = {
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

int sba_curl_load(struct sba_curl *ret, struct sba_error *err)
{
	static const struct sba_library curl = { "libcurl.so.4",
						 "install libcurl (Debian: libcurl4)", functions,
						 SBA_ARRAY_LEN(functions) };
	return sba_library_load(&curl, ret, err);
}
