/* SPDX-License-Identifier: MIT */
/*
 * libmicrohttpd, loaded when a server is to be opened: it brings GnuTLS and all that
 * that needs.
 */
#include "http/private.h"

#include <stddef.h>

#define FUNCTION(name)                                                                             \
	{                                                                                          \
		"MHD_" #name, offsetof(struct sba_mhd, name)                                       \
	}

static const struct sba_library_function functions[] = {
	FUNCTION(start_daemon),
	FUNCTION(stop_daemon),
	FUNCTION(get_daemon_info),
	FUNCTION(get_connection_info),
	FUNCTION(get_connection_values),
	FUNCTION(get_connection_values_n),
	FUNCTION(lookup_connection_value),
	FUNCTION(create_response_from_buffer),
	FUNCTION(create_response_from_callback),
	FUNCTION(add_response_header),
	FUNCTION(queue_response),
	FUNCTION(destroy_response),
};

int sba_mhd_load(struct sba_mhd *ret, struct sba_error *err)
{
	static const struct sba_library mhd = { "libmicrohttpd.so.12",
						"install libmicrohttpd (Debian: libmicrohttpd12)",
						functions, SBA_ARRAY_LEN(functions) };
	return sba_library_load(&mhd, ret, err);
}
