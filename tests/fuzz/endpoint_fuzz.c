/* SPDX-License-Identifier: MIT */
/* Lines: the host asked for, then the environment. */
#include "engine/engine.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[] = { "DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_API_VERSION",
				     "DOCKER_TLS",  "DOCKER_CONFIG",  "DOCKER_CERT_PATH" };

struct lines {
	const char *v[1 + SBA_ARRAY_LEN(names)];
};

static const char *line_env(void *user, const char *name)
{
	const struct lines *l = user;
	for (size_t i = 0; i < SBA_ARRAY_LEN(names); i++) {
		if (strcmp(name, names[i]) == 0)
			return l->v[i + 1];
	}
	return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct lines l = { 0 };
	struct sba_endpoint ep;
	struct sba_error err;
	char *text = strndup((const char *)data, size), *rest = text;
	for (size_t i = 0; i < SBA_ARRAY_LEN(l.v); i++)
		l.v[i] = strsep(&rest, "\n");
	int rc = sba_endpoint_find(l.v[0], line_env, &l, &ep, &err);
	if (rc == 0) {
		assert(strncmp(ep.host, "unix:///", 8) == 0 || strncmp(ep.host, "tcp://", 6) == 0 ||
		       strncmp(ep.host, "ssh://", 6) == 0);
		/* what it yields, it takes again */
		struct sba_endpoint again;
		assert(sba_endpoint_find(ep.host, line_env, &l, &again, &err) == 0);
		assert(strcmp(again.host, ep.host) == 0);
	}
	free(text);
	return 0;
}
