/* SPDX-License-Identifier: MIT */
/* What the files of the HTTP server share with each other, and those of the client. */
#ifndef SBA_HTTP_PRIVATE_H
#define SBA_HTTP_PRIVATE_H

#include "base/base.h"

#include <curl/curl.h>
#include <microhttpd.h>

/* ---- server ---- */

/* What is used of libmicrohttpd, by its names without "MHD_" (mhd.c). */
struct sba_mhd {
	__typeof__(MHD_start_daemon) *start_daemon;
	__typeof__(MHD_stop_daemon) *stop_daemon;
	__typeof__(MHD_get_daemon_info) *get_daemon_info;
	__typeof__(MHD_get_connection_info) *get_connection_info;
	__typeof__(MHD_get_connection_values) *get_connection_values;
	__typeof__(MHD_get_connection_values_n) *get_connection_values_n;
	__typeof__(MHD_lookup_connection_value) *lookup_connection_value;
	__typeof__(MHD_create_response_from_buffer) *create_response_from_buffer;
	__typeof__(MHD_create_response_from_callback) *create_response_from_callback;
	__typeof__(MHD_add_response_header) *add_response_header;
	__typeof__(MHD_queue_response) *queue_response;
	__typeof__(MHD_destroy_response) *destroy_response;
};
/* SBA_EUNSUPPORTED: it is not installed. */
int sba_mhd_load(struct sba_mhd *ret, struct sba_error *err) SBA_MUST_CHECK;

struct sba_http_connection {
	const struct sba_mhd *mhd;
	struct MHD_Connection *c;
};

/* Why the head of a connection's request is irregular (http.h), or NULL. Good only
 * before its body is read. */
const char *sba_http_irregular(const struct sba_http_connection *c, const char *method,
			       const char *version);

/* ---- client ---- */

/* What is used of libcurl, by its names without "curl_" (curl.c). */
struct sba_curl {
	CURLcode (*global_init)(long flags);
	void (*global_cleanup)(void);
	CURL *(*easy_init)(void);
	CURLcode (*easy_setopt)(CURL *easy, CURLoption option, ...);
	CURLcode (*easy_getinfo)(CURL *easy, CURLINFO info, ...);
	CURLcode (*easy_pause)(CURL *easy, int what);
	void (*easy_reset)(CURL *easy);
	void (*easy_cleanup)(CURL *easy);
	const char *(*easy_strerror)(CURLcode code);
	CURLM *(*multi_init)(void);
	CURLMcode (*multi_add_handle)(CURLM *multi, CURL *easy);
	CURLMcode (*multi_remove_handle)(CURLM *multi, CURL *easy);
	CURLMcode (*multi_perform)(CURLM *multi, int *ret_running);
	CURLMcode (*multi_poll)(CURLM *multi, struct curl_waitfd more[], unsigned n, int ms,
				int *ret);
	CURLMsg *(*multi_info_read)(CURLM *multi, int *ret_left);
	CURLMcode (*multi_cleanup)(CURLM *multi);
	const char *(*multi_strerror)(CURLMcode code);
	struct curl_slist *(*slist_append)(struct curl_slist *list, const char *text);
	void (*slist_free_all)(struct curl_slist *list);
	CURLU *(*url)(void);
	CURLUcode (*url_set)(CURLU *url, CURLUPart part, const char *text, unsigned flags);
	CURLUcode (*url_get)(const CURLU *url, CURLUPart part, char **ret, unsigned flags);
	void (*url_cleanup)(CURLU *url);
	void (*free)(void *memory);
};
/* SBA_EUNSUPPORTED: it is not installed. */
int sba_curl_load(struct sba_curl *ret, struct sba_error *err) SBA_MUST_CHECK;

/* One lane: a curl handle with the one connection it keeps, in use by one call
 * or idle in the client's list. A multi handle of its own, because a wait must
 * be able to end by a descriptor, and connections shared by threads are not
 * safe in libcurl. */
struct sba_http_response {
	struct sba_http_client *client;
	const struct sba_curl *curl;
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
