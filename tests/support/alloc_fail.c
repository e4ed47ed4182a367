/* SPDX-License-Identifier: MIT */
/*
 * See alloc_fail.h. SBA_ALLOC_FAIL=N in the environment arms it from the start
 * of a program, SBA_ALLOC_EVERY=N so that each N-th fails; SBA_ALLOC_COUNT=FILE writes there how
 * many allocations it made.
 */
#include "support/alloc_fail.h"

#include <errno.h>
#include <jansson.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void *alloc_fail_malloc(size_t size);
void *alloc_fail_calloc(size_t n, size_t size);
void *alloc_fail_realloc(void *p, size_t size);
char *alloc_fail_strdup(const char *s);
char *alloc_fail_strndup(const char *s, size_t n);

static atomic_size_t count, victim;
static size_t every; /* 0: none; set once, before there are threads */
static atomic_bool hit;

static bool fails(void)
{
	size_t n = atomic_fetch_add(&count, 1) + 1;
	if (n != atomic_load(&victim) && (every == 0 || n % every != 0))
		return false;
	atomic_store(&hit, true);
	errno = ENOMEM;
	return true;
}

void *alloc_fail_malloc(size_t size)
{
	return fails() ? NULL : malloc(size);
}

void *alloc_fail_calloc(size_t n, size_t size)
{
	return fails() ? NULL : calloc(n, size);
}

void *alloc_fail_realloc(void *p, size_t size)
{
	return fails() ? NULL : realloc(p, size);
}

char *alloc_fail_strdup(const char *s)
{
	return fails() ? NULL : strdup(s);
}

char *alloc_fail_strndup(const char *s, size_t n)
{
	return fails() ? NULL : strndup(s, n);
}

void alloc_fail_arm(size_t n)
{
	json_set_alloc_funcs(alloc_fail_malloc, free);
	atomic_store(&count, 0);
	atomic_store(&hit, false);
	atomic_store(&victim, n);
}

bool alloc_fail_disarm(void)
{
	atomic_store(&victim, 0);
	return atomic_load(&hit);
}

__attribute__((constructor)) static void begin(void)
{
	const char *n = getenv("SBA_ALLOC_FAIL"), *each = getenv("SBA_ALLOC_EVERY");
	every = each ? strtoul(each, NULL, 10) : 0;
	if (n || every || getenv("SBA_ALLOC_COUNT"))
		alloc_fail_arm(n ? strtoul(n, NULL, 10) : 0);
}

__attribute__((destructor)) static void end(void)
{
	const char *path = getenv("SBA_ALLOC_COUNT");
	FILE *f = path ? fopen(path, "w") : NULL;
	if (!f)
		return;
	fprintf(f, "%zu\n", atomic_load(&count));
	fclose(f);
}
