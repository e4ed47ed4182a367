/* SPDX-License-Identifier: MIT */
/* What the files of the HTTP server share with each other, and those of the client. */
#ifndef SBA_HTTP_PRIVATE_H
#define SBA_HTTP_PRIVATE_H

#include "base/base.h"

#include <curl/curl.h>
#include <microhttpd.h>

/* ---- server ---- */

/* Why the head of c's request is irregular (http.h), or NULL. Good only before
 * its body is read. */
const char *sba_http_irregular(struct MHD_Connection *c, const char *method, const char *version);

/* ---- client ---- */

/* One lane: a curl handle with the one connection it keeps, in use by one call
 * or idle in the client's list. A multi handle of its own, because a wait must
 * be able to end by a descriptor, and connections shared by threads are not
 * safe in libcurl. */
struct sba_http_response {
	struct sba_http_client *client;
	struct sba_http_response *next; /* in the idle list */
	CURLM *multi;
	CURL *easy;
	char error[CURL_ERROR_SIZE];

	struct curl_slist *sent_headers;
	const char *body; /* what is left of it to send; lent */
	size_t body_left;
	ssize_t (*body_read)(void *body_user, char *buf, size_t size); /* instead of it */
	void *body_user;

	int status;
	bool has_head;
	struct sba_strv headers;
	size_t head_size;

	struct sba_buf in; /* arrived */
	size_t fetched;    /* of in */
	bool paused;
	bool over;
	CURLcode result; /* once over */
	int failed;      /* why one of our callbacks refused to go on, or 0 */
};

/* The callbacks of an answer, its first wait, and the way back to a clean lane. */
void sba_http_response_prepare(struct sba_http_response *r);
int sba_http_response_await_head(struct sba_http_response *r, struct sba_until until,
				 struct sba_error *err) SBA_MUST_CHECK;
void sba_http_response_reset(struct sba_http_response *r);

/* Puts a lane back or frees it. */
void sba_http_client_put(struct sba_http_client *c, struct sba_http_response *lane);

#endif
