/* SPDX-License-Identifier: MIT */
/*
 * Environment arrays; see env.h.
 */
#include "guest/env.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static size_t count(char *const *env)
{
	size_t n = 0;

	while (env[n])
		n++;
	return n;
}

/* The place of name in env[0..n), or n. name_len counts its '='. */
static size_t find(char *const *env, size_t n, const char *name, size_t name_len)
{
	size_t i = 0;

	while (i < n && strncmp(env[i], name, name_len) != 0)
		i++;
	return i;
}

static size_t put_all(char **env, size_t n, char *const *from)
{
	for (; *from; from++) {
		const char *mark = strchr(*from, '=');
		size_t at;

		if (!mark)
			continue;
		at = find(env, n, *from, (size_t)(mark - *from) + 1);
		env[at] = *from;
		if (at == n)
			n++;
	}
	return n;
}

char **sba_guest_env_merge(char *const *base, char *const *over)
{
	char **env = calloc(count(base) + count(over) + 1, sizeof(*env));

	if (env)
		put_all(env, put_all(env, 0, base), over);
	return env;
}

void sba_guest_env_settle_home(void)
{
	const char *home = getenv("HOME");
	struct stat stat;
	char own[64];

	if (geteuid() == 0 || (home && strcmp(home, "/") != 0) || access("/", W_OK) == 0)
		return;
	snprintf(own, sizeof(own), "/tmp/home-%u", (unsigned int)geteuid());
	if (mkdir(own, 0700) < 0 && errno != EEXIST)
		return;
	if (lstat(own, &stat) == 0 && S_ISDIR(stat.st_mode) && stat.st_uid == geteuid())
		setenv("HOME", own, 1);
}

const char *sba_guest_env_get(char *const *env, const char *name)
{
	size_t len = strlen(name);

	for (; *env; env++) {
		if (strncmp(*env, name, len) == 0 && (*env)[len] == '=')
			return *env + len + 1;
	}
	return NULL;
}
