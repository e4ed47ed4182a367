/* SPDX-License-Identifier: MIT */
/*
 * Finds the engine as the docker CLI does: the given host, DOCKER_HOST,
 * DOCKER_CONTEXT, the current context of config.json, the default socket;
 * an empty string counts as unset. Reads the environment only through the
 * caller's function.
 */
#include "engine/private.h"

#include <string.h>
#include <unistd.h>

struct finder {
	sba_getenv_fn *getenv_fn;
	void *user;
	char config_dir[400]; /* "" if there is no home either */
};

/* NULL for unset and for empty. */
static const char *env(const struct finder *f, const char *name)
{
	const char *value = f->getenv_fn(f->user, name);
	return value && *value ? value : NULL;
}

static void find_config_dir(struct finder *f)
{
	const char *dir = env(f, "DOCKER_CONFIG");
	const char *home = env(f, "HOME");
	int n = 0;
	if (dir)
		n = snprintf(f->config_dir, sizeof(f->config_dir), "%s", dir);
	else if (home)
		n = snprintf(f->config_dir, sizeof(f->config_dir), "%s/.docker", home);
	if (n < 0 || (size_t)n >= sizeof(f->config_dir))
		f->config_dir[0] = '\0';
}

static int read_json(const char *path, json_t **ret, struct sba_error *err)
{
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(SBA_CONFIG_MAX);
	int rc = sba_read_file(path, SBA_CONFIG_MAX, &b, err);
	if (rc < 0)
		return rc;
	return sba_json_parse(b.data ? b.data : "", b.len, path, ret, err);
}

/* A config.json that is missing or broken names no context: the CLI goes on
 * as well. */
static void current_context(const struct finder *f, char *name, size_t size)
{
	char path[512];
	struct sba_error err;
	SBA_JSON json_t *config = NULL;
	name[0] = '\0';
	snprintf(path, sizeof(path), "%s/config.json", f->config_dir);
	if (!f->config_dir[0])
		return;
	int rc = read_json(path, &config, &err);
	if (rc == SBA_ENOTFOUND)
		return;
	if (rc < 0)
		sba_log("engine", "going on without the docker configuration: %s", err.text);
	const char *current = sba_json_str(config, "currentContext");
	snprintf(name, size, "%s", current ? current : "");
}

/* Names the file if it is there. */
static void pem(char *ret, size_t size, const char *dir, const char *file)
{
	int n = snprintf(ret, size, "%s/%s", dir, file);
	if (n < 0 || (size_t)n >= size || access(ret, F_OK) != 0)
		ret[0] = '\0';
}

static void pem_files(struct sba_endpoint *ep, const char *dir)
{
	pem(ep->ca, sizeof(ep->ca), dir, "ca.pem");
	pem(ep->cert, sizeof(ep->cert), dir, "cert.pem");
	pem(ep->key, sizeof(ep->key), dir, "key.pem");
}

/* Any value of DOCKER_TLS_VERIFY turns verification on, "0" included, as
 * with the CLI. */
static int tls_by_environment(const struct finder *f, struct sba_endpoint *ep,
			      struct sba_error *err)
{
	ep->tls_verify = env(f, "DOCKER_TLS_VERIFY") != NULL;
	ep->tls = ep->tls_verify || env(f, "DOCKER_TLS");
	if (!ep->tls)
		return 0;
	const char *dir = env(f, "DOCKER_CERT_PATH");
	pem_files(ep, dir ? dir : f->config_dir);
	if (ep->tls_verify && !ep->ca[0])
		return sba_fail(err, SBA_EINVAL,
				"DOCKER_TLS_VERIFY is set, but there is no %s/ca.pem",
				dir ? dir : f->config_dir);
	return 0;
}

static int set_host(const struct finder *f, const char *host, const char *found_by,
		    struct sba_endpoint *ep, struct sba_error *err)
{
	struct sba_address a;
	int rc = sba_address_parse(host, &a, err);
	if (rc < 0)
		return sba_wrap(err, rc, "%s", found_by);
	sba_address_format(&a, ep->host, sizeof(ep->host));
	snprintf(ep->found_by, sizeof(ep->found_by), "%s", found_by);
	if (!a.tcp)
		return 0; /* the CLI would ask for certificates even here */
	return tls_by_environment(f, ep, err);
}

static void context_tls(const struct finder *f, const char *hash, const json_t *meta,
			struct sba_endpoint *ep)
{
	char dir[512];
	int n = snprintf(dir, sizeof(dir), "%s/contexts/tls/%s/docker", f->config_dir, hash);
	if (n > 0 && (size_t)n < sizeof(dir))
		pem_files(ep, dir);
	bool skip = sba_json_bool(meta, "Endpoints.docker.SkipTLSVerify", false);
	ep->tls = skip || ep->ca[0] || ep->cert[0] || ep->key[0];
	ep->tls_verify = ep->tls && !skip;
}

static int load_context(const struct finder *f, const char *name, json_t **meta,
			char hash[SBA_SHA256_HEX], struct sba_error *err)
{
	char path[512];
	int rc = sba_sha256_hex(name, strlen(name), hash);
	if (rc < 0)
		return sba_fail_nomem(err);
	snprintf(path, sizeof(path), "%s/contexts/meta/%s/meta.json", f->config_dir, hash);
	rc = read_json(path, meta, err);
	if (rc == SBA_ENOTFOUND) {
		rc = sba_fail(err, SBA_EINVAL, "docker context '%s' does not exist", name);
		return sba_hint(err, rc, "docker context ls shows those that do");
	}
	return rc < 0 ? sba_wrap(err, rc, "docker context '%s'", name) : 0;
}

static int use_context(const struct finder *f, const char *name, struct sba_endpoint *ep,
		       struct sba_error *err)
{
	SBA_JSON json_t *meta = NULL;
	char hash[SBA_SHA256_HEX];
	int rc = load_context(f, name, &meta, hash, err);
	if (rc < 0)
		return rc;
	const char *host = sba_json_str(meta, "Endpoints.docker.Host");
	struct sba_address a;
	rc = sba_address_parse(host && *host ? host : "unix://", &a, err);
	if (rc < 0)
		return sba_wrap(err, rc, "docker context '%s'", name);
	sba_address_format(&a, ep->host, sizeof(ep->host));
	snprintf(ep->found_by, sizeof(ep->found_by), "context %s", name);
	if (a.tcp)
		context_tls(f, hash, meta, ep);
	return 0;
}

static int find_host(const struct finder *f, const char *host, struct sba_endpoint *ep,
		     struct sba_error *err)
{
	char name[240];
	if (host && *host)
		return set_host(f, host, "-H", ep, err);
	if (env(f, "DOCKER_HOST"))
		return set_host(f, env(f, "DOCKER_HOST"), "DOCKER_HOST", ep, err);
	if (env(f, "DOCKER_CONTEXT"))
		snprintf(name, sizeof(name), "%s", env(f, "DOCKER_CONTEXT"));
	else
		current_context(f, name, sizeof(name));
	if (!name[0] || strcmp(name, "default") == 0)
		return set_host(f, "unix://", "default socket", ep, err);
	return use_context(f, name, ep, err);
}

/* "1.41" or "v1.41" */
static int pin_version(const struct finder *f, struct sba_endpoint *ep, struct sba_error *err)
{
	const char *v = env(f, "DOCKER_API_VERSION");
	if (!v)
		return 0;
	if (*v == 'v')
		v++;
	size_t major = strspn(v, "0123456789");
	size_t minor = v[major] == '.' ? strspn(v + major + 1, "0123456789") : 0;
	if (major == 0 || minor == 0 || major > 3 || minor > 4 || v[major + 1 + minor])
		return sba_fail(err, SBA_EINVAL, "DOCKER_API_VERSION '%s' is no version like 1.41",
				v);
	snprintf(ep->api_version, sizeof(ep->api_version), "%s", v);
	return 0;
}

int sba_endpoint_find(const char *host, sba_getenv_fn *getenv_fn, void *user,
		      struct sba_endpoint *ret, struct sba_error *err)
{
	struct finder f = { .getenv_fn = getenv_fn, .user = user };
	struct sba_endpoint ep = { 0 };
	find_config_dir(&f);
	int rc = find_host(&f, host, &ep, err);
	if (rc == 0)
		rc = pin_version(&f, &ep, err);
	if (rc == 0)
		*ret = ep;
	return rc;
}
