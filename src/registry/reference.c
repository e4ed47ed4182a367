/* SPDX-License-Identifier: MIT */
/* References of images, taken apart as docker does. */
#include "registry/registry.h"

#include <ctype.h>
#include <string.h>

bool sba_is_digest(const char *s)
{
	return s && sba_starts_with(s, "sha256:") && strlen(s) == 7 + 64 &&
	       strspn(s + 7, "0123456789abcdef") == 64;
}

/* The part before the first '/' is a host if nothing else could look like it. */
static size_t host_len(const char *ref)
{
	size_t len = strcspn(ref, "/");
	if (!ref[len])
		return 0;
	bool host = memchr(ref, '.', len) || memchr(ref, ':', len) ||
		    (len == 9 && memcmp(ref, "localhost", 9) == 0);
	return host ? len : 0;
}

static bool take(char *to, size_t size, const char *from, size_t len, const char *others)
{
	if (len == 0 || len >= size)
		return false;
	for (size_t i = 0; i < len; i++) {
		if (!isalnum((unsigned char)from[i]) && !strchr(others, from[i]))
			return false;
	}
	memcpy(to, from, len);
	to[len] = '\0';
	return true;
}

/* Empty parts, "." and ".." would be another path at the registry. */
static bool take_repository(struct sba_reference *r, const char *from, size_t len)
{
	if (!take(r->repository, sizeof(r->repository), from, len, "._-/"))
		return false;
	for (const char *part = r->repository; part; part = strchr(part, '/')) {
		part += *part == '/';
		if (!isalnum((unsigned char)*part))
			return false;
	}
	for (const char *c = r->repository; *c; c++) {
		if (isupper((unsigned char)*c))
			return false;
	}
	return true;
}

int sba_reference_parse(const char *ref, struct sba_reference *ret, struct sba_error *err)
{
	struct sba_reference r = { 0 };
	size_t host = host_len(ref);
	const char *name = ref + host + (host > 0);
	const char *digest = strchr(name, '@');
	size_t len = digest ? (size_t)(digest - name) : strlen(name);
	const char *slash = memrchr(name, '/', len);
	const char *last = slash ? slash + 1 : name;
	const char *colon = memchr(last, ':', len - (size_t)(last - name));
	size_t tag = colon ? len - (size_t)(colon + 1 - name) : 0;
	bool good = take_repository(&r, name, colon ? (size_t)(colon - name) : len);
	if (good && host)
		good = take(r.host, sizeof(r.host), ref, host, ".:-[]");
	if (good && colon)
		good = take(r.tag, sizeof(r.tag), colon + 1, tag, "._-");
	if (good && digest)
		good = sba_is_digest(digest + 1);
	if (!good || (!colon && !digest))
		return sba_fail(err, SBA_EINVAL, "'%.300s' is no image's name with a tag or digest",
				ref);
	if (digest)
		snprintf(r.digest, sizeof(r.digest), "%s", digest + 1);
	*ret = r;
	return 0;
}
