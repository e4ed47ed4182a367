/* SPDX-License-Identifier: MIT */
/*
 * Strict parsers of the short texts that come from outside: numbers, terminal
 * sizes, ids, options. Pure; each returns false for anything but the whole
 * text in the right form, and writes its outputs only on success.
 */
#ifndef SBA_GUEST_PARSE_H
#define SBA_GUEST_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>

/* Decimal digits only, not more than max. */
bool sba_guest_parse_number(const char *text, size_t len, uint64_t max, uint64_t *ret);

/* "ROWSxCOLS", each 1 to 65535. */
bool sba_guest_parse_size(const char *text, size_t len, struct winsize *ret);

/* 1 to SBA_RUN_ID_MAX of letters, digits, '.', '_', '-'; no '-' in front. */
bool sba_guest_parse_id(const char *text);

/* Seconds; 0 means never. */
struct sba_guest_limits {
	int64_t keepalive;
	int64_t max_lifetime;
};

/* argv[0] is the command's name. An option given twice counts as given last. */
bool sba_guest_parse_limits(int argc, char **argv, struct sba_guest_limits *ret);

#endif
