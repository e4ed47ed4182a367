/* SPDX-License-Identifier: MIT */
/* The tables of docs/json.md, and objects held to them. */
#ifndef SBA_TEST_JSON_DOC_H
#define SBA_TEST_JSON_DOC_H

#include <jansson.h>

#include "support/live.h"

/* Fails the test unless the object has every key that the table calls "always", no key that
 * is not in it, and values of its types; tables that it names included. A "v" is let
 * pass. */
void json_doc_check(const char *table, const json_t *object);

/* Every line of its stdout by the one table, or (NULL) by its "type", which must be among
 * `types`. */
void json_doc_check_lines(const struct live_child *c, const char *table, const char *types);

/* What the words of a command line print, line by line, is what the table says; it is
 * expected to print some, and to exit with that status. */
#define PRINTS_AND_EXITS(status, table, types, ...)                                                \
	do {                                                                                       \
		LIVE_CHILD child;                                                                  \
		RUN(&child, "--json", __VA_ARGS__);                                                \
		live_assert_says(&child, status, NULL);                                            \
		assert_true(child.out.len > 0);                                                    \
		json_doc_check_lines(&child, table, types);                                        \
	} while (0)
#define PRINTS(table, ...) PRINTS_AND_EXITS(0, table, "", __VA_ARGS__)

#endif
