/* SPDX-License-Identifier: MIT */
/*
 * One document of a registry: over TLS or not, with whom it wants to see, along the
 * redirections that it may make, and what its refusals mean.
 */
#include "base/limits.h"
#include "registry/private.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CERTS_DIR "/etc/docker/certs.d"

int sba_registry_open(const char *host, const struct sba_registry_options *options,
		      struct sba_registry **ret, struct sba_error *err)
{
	char ca[512];
	snprintf(ca, sizeof(ca), "%s/%s/ca.crt",
		 options->certs_dir ? options->certs_dir : CERTS_DIR, host);
	const struct sba_http_client_options ho = {
		.ca_file = access(ca, R_OK) == 0 ? ca : options->ca_file,
	};
	struct sba_registry *r = calloc(1, sizeof(*r));
	if (!r)
		return sba_fail_nomem(err);
	snprintf(r->host, sizeof(r->host), "%s", host);
	r->may_be_plain = sba_is_this_machine(host);
	r->credentials = options->credentials;
	int rc = sba_http_client_open(&ho, &r->http, err);
	if (rc < 0) {
		free(r);
		return rc;
	}
	*ret = r;
	return 0;
}

void sba_registry_close(struct sba_registry *r)
{
	if (!r)
		return;
	sba_http_client_close(r->http);
	if (r->authorization)
		explicit_bzero(r->authorization, strlen(r->authorization));
	free(r->authorization);
	free(r);
}

/* ---- what it says ---- */

int sba_registry_read(struct sba_http_response *answer, struct sba_until until, struct sba_buf *b,
		      struct sba_error *err)
{
	char piece[8192];
	ssize_t n;
	while ((n = sba_http_response_read(answer, piece, sizeof(piece), until, err)) > 0) {
		sba_buf_put(b, piece, (size_t)n);
		int rc = sba_buf_check(b, "the registry's answer", err);
		if (rc < 0)
			return rc;
	}
	return (int)n;
}

static const struct {
	int from, to;
	int code;
	const char *what, *hint;
} refusals[] = {
	{ 401, 401, SBA_EIMAGE, "it does not know who we are", "log in:  docker login %s" },
	{ 403, 403, SBA_EIMAGE, "we may not do that there",
	  "another account may:  docker login %s" },
	{ 404, 404, SBA_ENOTFOUND, "it is not there", NULL },
	{ 429, 429, SBA_EIMAGE, "we have asked too often",
	  "wait a while, or log in for more:  docker login %s" },
	{ 500, 599, SBA_EIMAGE, "the registry is in trouble", "try again later; %s is the one" },
};

/* {"errors":[{"code":…,"message":…}]}, made fit for a terminal; "" where it is none. */
static void own_words(struct sba_http_response *answer, struct sba_until until, char *ret,
		      size_t size)
{
	SBA_BUF struct sba_buf body = SBA_BUF_INIT(SBA_REGISTRY_ERROR_MAX);
	SBA_BUF struct sba_buf words = SBA_BUF_INIT(SBA_REGISTRY_ERROR_MAX);
	struct sba_error ignored;
	SBA_JSON json_t *j = NULL;
	ret[0] = '\0';
	if (sba_registry_read(answer, until, &body, &ignored) < 0 || !body.data ||
	    sba_json_parse(body.data, body.len, "", &j, &ignored) < 0)
		return;
	const char *message = sba_json_str(j, "errors.#0.message");
	if (message)
		sba_buf_put_visible(&words, message, strlen(message), true);
	if (words.data)
		snprintf(ret, size, " ('%.200s')", words.data);
}

int sba_registry_refused(const struct sba_registry *r, struct sba_http_response *answer,
			 const char *tried, struct sba_until until, struct sba_error *err)
{
	int status = sba_http_response_status(answer);
	char words[256];
	size_t i = 0;
	own_words(answer, until, words, sizeof(words));
	while (i < SBA_ARRAY_LEN(refusals) &&
	       (status < refusals[i].from || status > refusals[i].to))
		i++;
	bool known = i < SBA_ARRAY_LEN(refusals);
	int code = known ? refusals[i].code : SBA_EIMAGE;
	int rc = sba_fail(err, code, "%s: %s: %s: %d%s", r->host, tried,
			  known ? refusals[i].what : "it answers what nobody expects", status,
			  words);
	if (err)
		err->http_status = status;
	/* The words of the table hold at most one %s. */
	const char *hint = known ? refusals[i].hint : NULL;
	const char *at = hint ? strstr(hint, "%s") : NULL;
	if (at)
		rc = sba_hint(err, rc, "%.*s%s%s", (int)(at - hint), hint, r->host, at + 2);
	return rc;
}

/* ---- asking ---- */

static int send_to(struct sba_registry *r, const char *url, const struct sba_registry_get *get,
		   bool authorized, struct sba_until until, struct sba_http_response **ret,
		   struct sba_error *err)
{
	SBA_STRV struct sba_strv headers = { 0 };
	int rc = get->accept ? sba_strv_add(&headers, get->accept, err) : 0;
	if (rc < 0)
		return rc;
	const struct sba_http_call call = { .method = "GET",
					    .url = url,
					    .headers = &headers,
					    .secret_header = authorized ? r->authorization : NULL };
	return sba_http_client_send(r->http, &call, until, ret, err);
}

static int send_first(struct sba_registry *r, const struct sba_registry_get *get,
		      struct sba_until until, struct sba_http_response **ret, struct sba_error *err)
{
	char url[1024];
	for (;;) {
		snprintf(url, sizeof(url), "%s://%s%s", r->plain ? "http" : "https", r->host,
			 get->path);
		int rc = send_to(r, url, get, true, until, ret, err);
		if (rc != SBA_ECONNECT || r->plain || !r->may_be_plain)
			return rc;
		/* Credentials that were found out over TLS do not go over anything less. */
		if (r->authorization)
			return rc;
		r->plain = true;
	}
}

/* Where layers and configs are kept elsewhere: without our credentials, and never from
 * TLS to less. */
static int follow(struct sba_registry *r, const struct sba_registry_get *get,
		  struct sba_until until, struct sba_http_response **answer, struct sba_error *err)
{
	for (int moves = 0; moves <= SBA_REGISTRY_MOVES_MAX; moves++) {
		int status = sba_http_response_status(*answer);
		if (status < 300 || status > 399)
			return 0;
		const char *to = sba_http_response_header(*answer, "Location");
		char url[4096];
		bool fits = to &&
			    (size_t)snprintf(url, sizeof(url), "%s%s%s%s",
					     *to == '/' ? (r->plain ? "http://" : "https://") : "",
					     *to == '/' ? r->host : "", to, "") < sizeof(url);
		if (!fits || (!sba_starts_with(url, "https://") &&
			      !(r->plain && sba_starts_with(url, "http://"))))
			return sba_fail(err, SBA_EPROTO, "%s: %s: it leads nowhere", r->host,
					get->tried);
		sba_http_response_close(*answer);
		*answer = NULL;
		int rc = send_to(r, url, get, false, until, answer, err);
		if (rc < 0)
			return rc;
	}
	return sba_fail(err, SBA_EPROTO, "%s: %s: it leads in circles", r->host, get->tried);
}

/* A 401 that says what it wants is answered once. */
static int open_answer(struct sba_registry *r, const struct sba_registry_get *get,
		       struct sba_until until, struct sba_http_response **ret,
		       struct sba_error *err)
{
	int rc = send_first(r, get, until, ret, err);
	if (rc == 0 && sba_http_response_status(*ret) == 401) {
		const char *wants = sba_http_response_header(*ret, "WWW-Authenticate");
		rc = wants ? sba_registry_login(r, wants, get->scope, until, err) : SBA_EPERM;
		if (rc == SBA_EPERM)
			return 0;
		if (rc == 0) {
			sba_http_response_close(*ret);
			*ret = NULL;
			rc = send_first(r, get, until, ret, err);
		}
	}
	return rc == 0 ? follow(r, get, until, ret, err) : rc;
}

int sba_registry_get(struct sba_registry *r, const struct sba_registry_get *get,
		     struct sba_until until, struct sba_buf *body, struct sba_error *err)
{
	struct sba_http_response *answer = NULL;
	int rc = open_answer(r, get, until, &answer, err);
	if (rc < 0 && !err)
		goto out;
	if (rc == SBA_ECONNECT) {
		rc = sba_wrap(err, rc, "registry %s", r->host);
		rc = sba_hint(err, err->code = SBA_EIMAGE,
			      "is it up?  a CA of its own belongs to " CERTS_DIR "/%s/ca.crt",
			      r->host);
	} else if (rc < 0) {
		rc = sba_wrap(err, rc, "registry %s", r->host);
	} else if (sba_http_response_status(answer) != 200) {
		rc = sba_registry_refused(r, answer, get->tried, until, err);
	} else {
		rc = sba_registry_read(answer, until, body, err);
		if (rc < 0)
			rc = sba_wrap(err, rc, "registry %s: %s", r->host, get->tried);
	}
out:
	sba_http_response_close(answer);
	return rc;
}
