/* SPDX-License-Identifier: MIT */
/*
 * The docker CLI's files, which anybody may have written: the input is a
 * config.json and, behind its first NUL, the meta.json of context "c".
 */
#include "engine/engine.h"

#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char dir[64], config[256], meta[256];

/* The file and the folders above it, as far as dir. */
static void drop(void)
{
	unlink(config);
	unlink(meta);
	for (char *slash; (slash = strrchr(meta, '/')) && strlen(meta) > strlen(dir);) {
		*slash = '\0';
		rmdir(meta);
	}
}

static const char *env(void *user, const char *name)
{
	if (strcmp(name, "DOCKER_CONFIG") == 0)
		return dir;
	return strcmp(name, "DOCKER_CONTEXT") == 0 ? user : NULL;
}

static void put(const char *path, const uint8_t *data, size_t len)
{
	struct sba_error err;
	SBA_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert(fd >= 0 && sba_write_all(fd, data, len, &err) == 0);
}

static void prepare(void)
{
	char hash[SBA_SHA256_HEX];
	snprintf(dir, sizeof(dir), "/tmp/docker-config-fuzz-XXXXXX");
	assert(mkdtemp(dir) && sba_sha256_hex("c", 1, hash) == 0);
	snprintf(config, sizeof(config), "%s/config.json", dir);
	snprintf(meta, sizeof(meta), "%s/contexts/meta/%s/meta.json", dir, hash);
	for (char *p = meta + strlen(dir) + 1; (p = strchr(p, '/')) != NULL; p++) {
		*p = '\0';
		assert(mkdir(meta, 0700) == 0);
		*p = '/';
	}
	atexit(drop);
}

/* What is found is a host that can be asked for again, or an error in words. */
static void look(void *context)
{
	struct sba_endpoint ep, again;
	struct sba_error err = { 0 };
	if (sba_endpoint_find(NULL, env, context, &ep, &err) == 0)
		assert(sba_endpoint_find(ep.host, env, NULL, &again, &err) == 0 &&
		       strcmp(again.host, ep.host) == 0);
	else
		assert(err.code < 0 && err.text[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char context[] = "c";
	const uint8_t *end = size ? memchr(data, 0, size) : NULL;
	size_t len = end ? (size_t)(end - data) : size;
	if (!dir[0])
		prepare();
	put(config, data, len);
	if (end)
		put(meta, end + 1, size - len - 1);
	look(NULL);
	look(context);
	if (end)
		unlink(meta);
	return 0;
}
