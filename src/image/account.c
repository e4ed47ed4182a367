/* SPDX-License-Identifier: MIT */
/*
 * Who we are to a registry, and what can be done about what an engine says of one: its
 * words are Go's, and no user has met them before.
 */
#include "image/private.h"

#include <string.h>

int sba_image_account_open(const char *ref, const struct sba_image_options *options,
			   struct sba_image_account *a, struct sba_error *err)
{
	*a = (struct sba_image_account){ 0 };
	int rc = sba_reference_parse(ref, &a->ref, err);
	if (rc < 0)
		return rc;
	if (!*a->ref.host) {
		rc = sba_fail(err, SBA_EINVAL, "image '%s' is in no registry", ref);
		return sba_hint(err, rc,
				"docker_repository in versions.json says which, as "
				"HOST/TEAM/NAME; without one:  sandbox-agent image save, load");
	}
	if (options && options->docker_config)
		rc = sba_credentials_find(options->docker_config, a->ref.host,
					  sba_until_in(SBA_IMAGE_ASK_MS), &a->credentials, err);
	const struct sba_registry_options ro = {
		.credentials = &a->credentials,
		.ca_file = options ? options->ca_file : NULL,
	};
	return rc == 0 ? sba_registry_open(a->ref.host, &ro, &a->registry, err) : rc;
}

void sba_image_account_close(struct sba_image_account *a)
{
	sba_registry_close(a->registry);
	a->registry = NULL;
	sba_credentials_fini(&a->credentials);
}

static const struct {
	const char *words;
	const char *hint; /* a %s is the registry's host */
} advice[] = {
	{ "x509:", "its CA belongs to /etc/docker/certs.d/%s/ca.crt on the engine's host" },
	{ "HTTP response to HTTPS client",
	  "it speaks no TLS; the engine allows that for what its insecure-registries has: %s" },
	{ "no basic auth credentials", "log in:  docker login %s" },
	{ "unauthorized", "log in:  docker login %s" },
	{ "authentication required", "log in:  docker login %s" },
	{ "toomanyrequests", "it is asked too often: wait a while, or docker login %s" },
	{ "429 Too Many", "it is asked too often: wait a while, or docker login %s" },
	{ "denied", "this account may not do that; another one:  docker login %s" },
	{ "403 Forbidden", "this account may not do that; another one:  docker login %s" },
	{ "manifest unknown",
	  "what it has there:  sandbox-agent image tag; it is put there by push" },
	{ "name unknown", "what it has there:  sandbox-agent image tag; it is put there by push" },
	{ "unexpected HTTP status: 5", "the registry %s is in trouble: try again later" },
	{ "unexpected EOF", "it broke off: again, and what has arrived whole is kept" },
	{ "connection reset", "it broke off: again, and what has arrived whole is kept" },
	{ "does not exist locally", "make it first:  sandbox-agent image build" },
	{ "no space left", "there is no room on the engine's disk: sandbox-agent image rm --old" },
	{ "no such host", "the engine cannot find %s" },
	{ "connection refused", "nothing answers at %s: is it up?" },
	{ "i/o timeout", "the engine cannot reach %s" },
	{ "EOF", "it broke off: again, and what has arrived whole is kept" },
};

int sba_image_advise(const char *ref, int rc, struct sba_error *err)
{
	struct sba_reference parts = { 0 };
	if (rc != SBA_EIMAGE || !err || sba_reference_parse(ref, &parts, NULL) < 0)
		return rc;
	for (size_t i = 0; i < SBA_ARRAY_LEN(advice); i++) {
		if (!strstr(err->text, advice[i].words))
			continue;
		const char *hint = advice[i].hint, *at = strstr(hint, "%s");
		if (!at)
			return sba_hint(err, rc, "%s", hint);
		return sba_hint(err, rc, "%.*s%s%s", (int)(at - hint), hint, parts.host, at + 2);
	}
	return rc;
}
