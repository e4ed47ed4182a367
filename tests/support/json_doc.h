/* SPDX-License-Identifier: MIT */
/* The tables of docs/json.md, and objects held to them. */
#ifndef SBA_TEST_JSON_DOC_H
#define SBA_TEST_JSON_DOC_H

#include <jansson.h>

/* Fails the test unless the object has every key that the table calls "always", no key that
 * is not in it, and values of its types; tables that it names included. A "v" is let
 * pass. */
void json_doc_check(const char *table, const json_t *object);

#endif
