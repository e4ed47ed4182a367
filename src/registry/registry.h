/* SPDX-License-Identifier: MIT */
/*
 * Registries of images: the credentials that a docker user has for them, and the
 * little of their HTTP API that tells which digests a tag stands for. The bytes of
 * images go through the engine. It knows no engine, and reads no environment.
 */
#ifndef SBA_REGISTRY_H
#define SBA_REGISTRY_H

#include "base/base.h"

/* ---- names (reference.c) ---- */

enum { SBA_DIGEST_MAX = 72 }; /* "sha256:" and 64 digits */

/* "host:5000/team/image:tag@sha256:…", taken apart. */
struct sba_reference {
	char host[256]; /* with its port; "": the name has no registry */
	char repository[256];
	char tag[129];               /* "": none */
	char digest[SBA_DIGEST_MAX]; /* "": none */
};
/* SBA_EINVAL: it is none, or has neither tag nor digest. */
int sba_reference_parse(const char *ref, struct sba_reference *ret,
			struct sba_error *err) SBA_MUST_CHECK;
/* "sha256:" and 64 lower-case hex digits. */
bool sba_is_digest(const char *s);

/* ---- credentials (credentials.c) ---- */

/* Who we are to a registry; all NULL: nobody. */
struct sba_credentials {
	char *user, *password;
	char *identity_token; /* to be exchanged for one that opens something */
	char *registry_token; /* opens it as it is */
};
void sba_credentials_fini(struct sba_credentials *c); /* wipes them */

/* What the docker CLI would use for `host`, out of FOLDER/config.json: the helper of
 * that registry, else the store, else `auths`. Without the file or an entry it is
 * nobody. Helpers are programs of this host, "docker-credential-NAME get".
 * SBA_ECONFIG: the file or what the helper says is broken; what was wrong is named,
 * never a secret. */
int sba_credentials_find(const char *folder, const char *host, struct sba_until until,
			 struct sba_credentials *ret, struct sba_error *err) SBA_MUST_CHECK;
/* The value of X-Registry-Auth: base64url, padded. The caller wipes and frees. */
int sba_credentials_header(const struct sba_credentials *c, const char *host, char **ret,
			   struct sba_error *err) SBA_MUST_CHECK;

/* The parts, for tests and fuzz targets. A config.json: either *ret_helper is the name
 * of a program (the caller frees), or it is NULL and *ret is what `auths` has. */
int sba_credentials_parse(const char *text, size_t len, const char *host,
			  struct sba_credentials *ret, char **ret_helper,
			  struct sba_error *err) SBA_MUST_CHECK;
/* What a helper printed. */
int sba_credentials_parse_answer(const char *text, size_t len, struct sba_credentials *ret,
				 struct sba_error *err) SBA_MUST_CHECK;

/* ---- asking a registry (client.c, challenge.c) ---- */

struct sba_registry_options {
	const struct sba_credentials *credentials; /* lent; NULL: nobody's */
	const char *ca_file;                       /* NULL: the system's */
	const char *certs_dir; /* HOST/ca.crt in it comes first; NULL: /etc/docker/certs.d */
};

struct sba_registry;
/* TLS, but plain HTTP too on this machine's own addresses, as docker has it. */
int sba_registry_open(const char *host, const struct sba_registry_options *options,
		      struct sba_registry **ret, struct sba_error *err) SBA_MUST_CHECK;
void sba_registry_close(struct sba_registry *r); /* NULL is allowed */

struct sba_remote_platform {
	char name[64]; /* "linux/amd64" */
	char manifest[SBA_DIGEST_MAX];
	char config[SBA_DIGEST_MAX]; /* the id of the image on most engines */
};
enum { SBA_REMOTE_PLATFORMS_MAX = 32 };
struct sba_remote_image {
	char digest[SBA_DIGEST_MAX]; /* of the index, or of the only manifest */
	size_t n;
	struct sba_remote_platform v[SBA_REMOTE_PLATFORMS_MAX];
};

/* The digest that a tag stands for there, without what is behind it.
 * SBA_ENOTFOUND: no such tag or repository. */
int sba_registry_digest(struct sba_registry *r, const struct sba_reference *ref,
			struct sba_until until, char ret[SBA_DIGEST_MAX],
			struct sba_error *err) SBA_MUST_CHECK;
/* All of it. Every document is compared with the digest that it was asked by. */
int sba_registry_look(struct sba_registry *r, const struct sba_reference *ref,
		      struct sba_until until, struct sba_remote_image *ret,
		      struct sba_error *err) SBA_MUST_CHECK;

/* A WWW-Authenticate header, lower-case scheme; values that are not there are "". */
struct sba_challenge {
	char scheme[16]; /* "bearer", "basic" */
	char realm[512], service[256], scope[512];
};
/* SBA_EPROTO: it is none. */
int sba_challenge_parse(const char *header, struct sba_challenge *ret,
			struct sba_error *err) SBA_MUST_CHECK;

#endif
