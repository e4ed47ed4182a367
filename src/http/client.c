/* SPDX-License-Identifier: MIT */
/*
 * The HTTP client over libcurl: its lanes, and how a call becomes options of
 * curl. It must not know what the bodies mean.
 */
#include "base/limits.h"
#include "http/http.h"
#include "http/private.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

struct sba_http_client {
	struct sba_curl curl;
	pthread_mutex_t lock;
	struct sba_http_response *idle; /* the last used first: its connection is the warmest */
	unsigned n_idle;
	char *ca_file;
};

static void lane_free(struct sba_http_response *lane)
{
	if (!lane)
		return;
	if (lane->easy)
		lane->curl->easy_cleanup(lane->easy);
	if (lane->multi)
		lane->curl->multi_cleanup(lane->multi);
	sba_buf_fini(&lane->in);
	free(lane);
}

static struct sba_http_response *lane_new(struct sba_http_client *c)
{
	struct sba_http_response *lane = calloc(1, sizeof(*lane));
	if (!lane)
		return NULL;
	lane->client = c;
	lane->curl = &c->curl;
	sba_buf_init(&lane->in, SBA_HTTP_RECEIVE_BUFFER);
	lane->multi = c->curl.multi_init();
	lane->easy = c->curl.easy_init();
	if (lane->multi && lane->easy)
		return lane;
	lane_free(lane);
	return NULL;
}

static struct sba_http_response *lane_get(struct sba_http_client *c)
{
	pthread_mutex_lock(&c->lock);
	struct sba_http_response *lane = c->idle;
	if (lane) {
		c->idle = lane->next;
		c->n_idle--;
	}
	pthread_mutex_unlock(&c->lock);
	return lane ? lane : lane_new(c);
}

void sba_http_client_put(struct sba_http_client *c, struct sba_http_response *lane)
{
	pthread_mutex_lock(&c->lock);
	bool keep = c->n_idle < SBA_HTTP_CLIENT_IDLE_CONNECTIONS;
	if (keep) {
		lane->next = c->idle;
		c->idle = lane;
		c->n_idle++;
	}
	pthread_mutex_unlock(&c->lock);
	if (!keep)
		lane_free(lane);
}

int sba_http_client_open(const struct sba_http_client_options *options,
			 struct sba_http_client **ret, struct sba_error *err)
{
	struct sba_curl curl;
	int rc = sba_curl_load(&curl, err);
	if (rc < 0)
		return rc;
	/* Counted and thread-safe since libcurl 7.84. */
	if (curl.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return sba_fail(err, SBA_EIO, "libcurl cannot be initialised");
	struct sba_http_client *c = calloc(1, sizeof(*c));
	if (!c || (options->ca_file && !(c->ca_file = strdup(options->ca_file)))) {
		free(c);
		curl.global_cleanup();
		return sba_fail_nomem(err);
	}
	c->curl = curl;
	pthread_mutex_init(&c->lock, NULL);
	*ret = c;
	return 0;
}

void sba_http_client_close(struct sba_http_client *c)
{
	if (!c)
		return;
	while (c->idle) {
		struct sba_http_response *lane = c->idle;
		c->idle = lane->next;
		lane_free(lane);
	}
	pthread_mutex_destroy(&c->lock);
	free(c->ca_file);
	c->curl.global_cleanup();
	free(c);
}

static bool has_part(const struct sba_curl *curl, const CURLU *u, CURLUPart part)
{
	char *text = NULL;
	bool has = curl->url_get(u, part, &text, 0) == CURLUE_OK && text && *text;
	curl->free(text);
	return has;
}

int sba_http_url_check(const char *url, struct sba_error *err)
{
	static const CURLUPart unwanted[] = { CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_QUERY,
					      CURLUPART_FRAGMENT };
	if (strncasecmp(url, "http://", 7) != 0 && strncasecmp(url, "https://", 8) != 0)
		return sba_fail(err, SBA_EINVAL, "the URL is neither http:// nor https://");
	struct sba_curl curl;
	int rc = sba_curl_load(&curl, err);
	if (rc < 0)
		return rc;
	CURLU *u = curl.url();
	if (!u)
		return sba_fail_nomem(err);
	if (curl.url_set(u, CURLUPART_URL, url, 0) != CURLUE_OK ||
	    !has_part(&curl, u, CURLUPART_HOST))
		rc = sba_fail(err, SBA_EINVAL, "the URL is malformed");
	for (size_t i = 0; rc == 0 && i < SBA_ARRAY_LEN(unwanted); i++)
		if (has_part(&curl, u, unwanted[i]))
			rc = sba_fail(err, SBA_EINVAL,
				      "the URL may have no user, password, query or fragment");
	curl.url_cleanup(u);
	return rc;
}

static bool add_header(struct sba_http_response *lane, const char *header)
{
	struct curl_slist *list = lane->curl->slist_append(lane->sent_headers, header);
	if (list)
		lane->sent_headers = list;
	return list != NULL;
}

/* A value with a line end in it would be a header more. */
static bool header_is_clean(const char *header)
{
	for (const unsigned char *p = (const unsigned char *)header; *p; p++)
		if ((*p < ' ' && *p != '\t') || *p == 0x7f)
			return false;
	return strchr(header, ':') != NULL;
}

static int take_header(struct sba_http_response *lane, const char *header, struct sba_error *err)
{
	if (!header_is_clean(header))
		return sba_fail(err, SBA_EINVAL, "a header is malformed");
	return add_header(lane, header) ? 0 : sba_fail_nomem(err);
}

static int take_headers(struct sba_http_response *lane, const struct sba_http_call *call,
			struct sba_error *err)
{
	bool typed = false;
	int rc = 0;
	for (size_t i = 0; rc == 0 && call->headers && i < call->headers->n; i++) {
		typed = typed || !strncasecmp(call->headers->v[i], "content-type:", 13);
		rc = take_header(lane, call->headers->v[i], err);
	}
	if (rc == 0 && call->secret_header)
		rc = take_header(lane, call->secret_header, err);
	/* A name alone keeps curl from adding what nobody asked for. */
	if (rc == 0 &&
	    (!add_header(lane, "Expect:") || (!typed && !add_header(lane, "Content-Type:"))))
		rc = sba_fail_nomem(err);
	return rc;
}

static size_t on_body_wanted(char *buf, size_t size, size_t count, void *user)
{
	struct sba_http_response *lane = user;
	size_t n = size * count < lane->body_left ? size * count : lane->body_left;
	if (n && lane->body_read) {
		ssize_t got = lane->body_read(lane->body_user, buf, n);
		/* Too little of it is no body either. */
		if (got <= 0)
			return CURL_READFUNC_ABORT;
		n = (size_t)got;
	} else if (n) {
		memcpy(buf, lane->body, n);
		lane->body += n;
	}
	lane->body_left -= n;
	return n;
}

/* The body goes through a callback that cannot be rewound: so curl, which
 * sends again when a kept connection turns out dead, can do it only while no
 * byte of the body has left. */
static void take_body(struct sba_http_response *lane, const struct sba_http_call *call)
{
	lane->body = call->body;
	lane->body_left = call->body_len;
	lane->body_read = call->body_read;
	lane->body_user = call->body_user;
	lane->curl->easy_setopt(lane->easy, CURLOPT_POST, 1L);
	lane->curl->easy_setopt(lane->easy, CURLOPT_POSTFIELDSIZE_LARGE,
				(curl_off_t)call->body_len);
	lane->curl->easy_setopt(lane->easy, CURLOPT_READFUNCTION, on_body_wanted);
	lane->curl->easy_setopt(lane->easy, CURLOPT_READDATA, lane);
}

static int take_method(struct sba_http_response *lane, const struct sba_http_call *call,
		       struct sba_error *err)
{
	static const char *const bodied[] = { "POST", "PUT", "PATCH" };
	for (size_t i = 0; i < SBA_ARRAY_LEN(bodied); i++) {
		if (strcmp(call->method, bodied[i]) != 0)
			continue;
		take_body(lane, call);
		if (i > 0)
			lane->curl->easy_setopt(lane->easy, CURLOPT_CUSTOMREQUEST, bodied[i]);
		return 0;
	}
	if (!strcmp(call->method, "GET"))
		lane->curl->easy_setopt(lane->easy, CURLOPT_HTTPGET, 1L);
	else if (!strcmp(call->method, "HEAD"))
		lane->curl->easy_setopt(lane->easy, CURLOPT_NOBODY, 1L);
	else if (!strcmp(call->method, "DELETE"))
		lane->curl->easy_setopt(lane->easy, CURLOPT_CUSTOMREQUEST, "DELETE");
	else
		return sba_fail(err, SBA_EINVAL, "no HTTP method '%s'", call->method);
	return 0;
}

/* libcurl's own (7.88 at least) is inherited by whatever this program starts, and a connection
 * that somebody else holds does not close. */
static curl_socket_t open_socket(void *user, curlsocktype purpose, struct curl_sockaddr *a)
{
	(void)user;
	(void)purpose;
	return socket(a->family, a->socktype | SOCK_CLOEXEC, a->protocol);
}

static bool set_safe_options(const struct sba_http_client *c, CURL *easy)
{
	c->curl.easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	c->curl.easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
	c->curl.easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	c->curl.easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L);
	c->curl.easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L);
	c->curl.easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)SBA_HTTP_CONNECT_MS);
	c->curl.easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	c->curl.easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
	c->curl.easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
	c->curl.easy_setopt(easy, CURLOPT_BUFFERSIZE, (long)SBA_HTTP_RECEIVE_BUFFER);
#if LIBCURL_VERSION_NUM >= 0x075700
	/* A look-up that hangs in the system's resolver is left to its thread. */
	c->curl.easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
#endif
	/* Asks for no compression, and undoes what comes compressed all the same. */
	return c->curl.easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, "identity") == CURLE_OK &&
	       c->curl.easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
	       c->curl.easy_setopt(easy, CURLOPT_PROXY, "") == CURLE_OK &&
	       (!c->ca_file || c->curl.easy_setopt(easy, CURLOPT_CAINFO, c->ca_file) == CURLE_OK);
}

static int prepare(const struct sba_http_client *c, struct sba_http_response *lane,
		   const struct sba_http_call *call, struct sba_error *err)
{
	int rc = take_headers(lane, call, err);
	if (rc == 0)
		rc = take_method(lane, call, err);
	if (rc < 0)
		return rc;
	sba_http_response_prepare(lane);
	if (!set_safe_options(c, lane->easy) ||
	    lane->curl->easy_setopt(lane->easy, CURLOPT_URL, call->url) != CURLE_OK ||
	    lane->curl->easy_setopt(lane->easy, CURLOPT_HTTPHEADER, lane->sent_headers) !=
		    CURLE_OK ||
	    lane->curl->multi_add_handle(lane->multi, lane->easy) != CURLM_OK)
		return sba_fail(err, SBA_ENOMEM, "libcurl takes no call");
	return 0;
}

int sba_http_client_send(struct sba_http_client *c, const struct sba_http_call *call,
			 struct sba_until until, struct sba_http_response **ret,
			 struct sba_error *err)
{
	struct sba_http_response *lane = lane_get(c);
	if (!lane)
		return sba_fail_nomem(err);
	int rc = prepare(c, lane, call, err);
	if (rc == 0)
		rc = sba_http_response_await_head(lane, until, err);
	if (rc < 0) {
		sba_http_response_close(lane);
		return rc;
	}
	*ret = lane;
	return 0;
}
