/* SPDX-License-Identifier: MIT */
/* What the files of this module share: one conversation with a registry. */
#ifndef SBA_REGISTRY_PRIVATE_H
#define SBA_REGISTRY_PRIVATE_H

#include "http/http.h"
#include "registry/registry.h"

struct sba_registry {
	char host[256];
	bool plain; /* it turned out to speak no TLS */
	bool may_be_plain;
	const struct sba_credentials *credentials; /* or NULL */
	struct sba_http_client *http;
	char *authorization; /* the whole header, or NULL */
};

/* One document, whole. */
struct sba_registry_get {
	const char *path;   /* "/v2/…" */
	const char *accept; /* the whole header, or NULL */
	const char *scope;  /* "repository:team/image:pull" */
	const char *tried;  /* for errors */
};
/* SBA_ENOTFOUND, or SBA_EIMAGE with http_status: what it answers, and what to do. */
int sba_registry_get(struct sba_registry *r, const struct sba_registry_get *get,
		     struct sba_until until, struct sba_buf *body,
		     struct sba_error *err) SBA_MUST_CHECK;

/* login.c: takes what the answer's challenge asks for into r->authorization. */
int sba_registry_login(struct sba_registry *r, const char *challenge, const char *scope,
		       struct sba_until until, struct sba_error *err) SBA_MUST_CHECK;
/* The answer's body up to `max`; wipes nothing. */
int sba_registry_read(struct sba_http_response *answer, struct sba_until until, struct sba_buf *b,
		      struct sba_error *err) SBA_MUST_CHECK;
/* Turns an answer that is none into words. */
int sba_registry_refused(const struct sba_registry *r, struct sba_http_response *answer,
			 const char *tried, struct sba_until until, struct sba_error *err);

#endif
