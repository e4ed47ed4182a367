/* SPDX-License-Identifier: MIT */
/* Lines of rules, the last line a host: normal forms are stable, and no private
 * address is ever allowed by a name. */
#include "proxy/private.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_host(const char *host, size_t len, char ret[SBA_HOST_NAME_MAX])
{
	char again[SBA_HOST_NAME_MAX];
	struct sba_error err;
	ret[0] = '\0';
	if (sba_host_normalise(host, len, ret, &err) < 0)
		return;
	assert(ret[0] && strlen(ret) <= len + 16 && strspn(ret, "0123456789.") < SBA_HOST_NAME_MAX);
	assert(sba_host_normalise(ret, strlen(ret), again, &err) == 0);
	assert(strcmp(ret, again) == 0);
}

static void check_rule(const char *text, const char *host)
{
	const char *texts[] = { text, NULL };
	struct sockaddr_in loop = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	struct sba_rules *r = NULL;
	struct sba_error err;
	if (sba_rules_new(texts, &r, &err) < 0) {
		assert(!r);
		return;
	}
	if (host[0])
		(void)sba_rules_allow_name(r, host, 443);
	if (sba_rules_allow_address(r, (struct sockaddr *)&loop, 443))
		assert(strstr(text, "127"));
	sba_rules_free(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char host[SBA_HOST_NAME_MAX], *text = malloc(size + 1);
	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	char *last = memrchr(text, '\n', size);
	last = last ? last + 1 : text;
	check_host(last, size - (size_t)(last - text), host);
	for (char *line = text, *end; line < last; line = end + 1) {
		end = strchr(line, '\n');
		if (!end || end >= last)
			break;
		*end = '\0';
		check_rule(line, host);
	}
	free(text);
	return 0;
}
