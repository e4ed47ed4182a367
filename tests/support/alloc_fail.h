/* SPDX-License-Identifier: MIT */
/*
 * Memory that runs out. Programs in tests/alloc are linked with a copy of the
 * library whose allocations, jansson's too, come here: the n-th of them fails.
 * The tests' own do not.
 */
#ifndef SBA_TEST_ALLOC_FAIL_H
#define SBA_TEST_ALLOC_FAIL_H

#include <stdbool.h>
#include <stddef.h>

/* The n-th allocation from now on fails, once; 0: none. */
void alloc_fail_arm(size_t n);
/* Whether it has; disarms. */
bool alloc_fail_disarm(void);

#endif
