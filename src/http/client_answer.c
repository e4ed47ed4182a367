/* SPDX-License-Identifier: MIT */
/*
 * The answer to a call: its head, its body as it arrives, its true end. Curl
 * pushes, callers pull: between them is one bounded buffer.
 */
#include "base/limits.h"
#include "http/http.h"
#include "http/private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { POLL_MS = 600 * 1000 }; /* when there is no deadline; the wait goes on after it */

static size_t refuse(struct sba_http_response *r, int code)
{
	r->failed = code;
	return 0;
}

/* The blank line: a final answer, or one of those that only come before it. */
static void end_head(struct sba_http_response *r)
{
	long status = 0;
	r->curl->easy_getinfo(r->easy, CURLINFO_RESPONSE_CODE, &status);
	r->status = (int)status;
	r->has_head = status >= 200;
	if (!r->has_head)
		sba_strv_fini(&r->headers);
}

static size_t on_header(char *line, size_t size, size_t count, void *user)
{
	struct sba_http_response *r = user;
	size_t whole = size * count, len = whole;
	if (r->has_head)
		return whole; /* a trailer */
	r->head_size += len;
	if (r->head_size > SBA_HTTP_ANSWER_HEAD_MAX || r->headers.n >= SBA_HTTP_ANSWER_HEADERS_MAX)
		return refuse(r, SBA_ELIMIT);
	while (len && (line[len - 1] == '\r' || line[len - 1] == '\n'))
		len--;
	if (!len)
		end_head(r);
	else if (memchr(line, ':', len) && strncmp(line, "HTTP/", 5) != 0 &&
		 sba_strv_addf(&r->headers, NULL, "%.*s", (int)len, line) < 0)
		return refuse(r, SBA_ENOMEM);
	return whole;
}

static size_t on_body(char *data, size_t size, size_t count, void *user)
{
	struct sba_http_response *r = user;
	size_t len = size * count;
	if (r->in.len && r->in.len + len > r->in.max) {
		r->paused = true;
		return CURL_WRITEFUNC_PAUSE;
	}
	sba_buf_put(&r->in, data, len);
	return r->in.failed ? refuse(r, r->in.failed) : len;
}

void sba_http_response_prepare(struct sba_http_response *r)
{
	r->curl->easy_setopt(r->easy, CURLOPT_ERRORBUFFER, r->error);
	r->curl->easy_setopt(r->easy, CURLOPT_HEADERFUNCTION, on_header);
	r->curl->easy_setopt(r->easy, CURLOPT_HEADERDATA, r);
	r->curl->easy_setopt(r->easy, CURLOPT_WRITEFUNCTION, on_body);
	r->curl->easy_setopt(r->easy, CURLOPT_WRITEDATA, r);
}

static const struct {
	CURLcode curl;
	int code;
} failures[] = {
	{ CURLE_COULDNT_RESOLVE_HOST, SBA_ECONNECT },
	{ CURLE_COULDNT_CONNECT, SBA_ECONNECT },
	{ CURLE_OPERATION_TIMEDOUT, SBA_ECONNECT }, /* only connecting has curl's own timer */
	{ CURLE_SSL_CONNECT_ERROR, SBA_ECONNECT },
	{ CURLE_PEER_FAILED_VERIFICATION, SBA_ECONNECT },
	{ CURLE_SSL_CACERT_BADFILE, SBA_ECONFIG },
	{ CURLE_ABORTED_BY_CALLBACK, SBA_EIO }, /* the body's reader gave up */
	{ CURLE_OUT_OF_MEMORY, SBA_ENOMEM },
	{ CURLE_URL_MALFORMAT, SBA_EINVAL },
	{ CURLE_WEIRD_SERVER_REPLY, SBA_EPROTO },
	{ CURLE_UNSUPPORTED_PROTOCOL, SBA_EPROTO }, /* HTTP/0.9: no head at all */
	{ CURLE_BAD_CONTENT_ENCODING, SBA_EPROTO },
};

static int fail_as_curl(const struct sba_http_response *r, struct sba_error *err)
{
	int code = SBA_ELOST;
	for (size_t i = 0; i < SBA_ARRAY_LEN(failures); i++)
		if (failures[i].curl == r->result)
			code = failures[i].code;
	if (r->failed == SBA_ELIMIT)
		return sba_fail(err, SBA_ELIMIT, "the head of the answer is too large");
	if (r->failed)
		return sba_fail_nomem(err);
	code = sba_fail(err, code, "%s", *r->error ? r->error : r->curl->easy_strerror(r->result));
	if (err && r->result == CURLE_PEER_FAILED_VERIFICATION) {
		err->sys_errno = EKEYREJECTED;
		return sba_hint(err, code,
				"a CA of your own is trusted by ca_file in the configuration");
	}
	return code;
}

/* Lets curl do what it can without waiting. */
static int step(struct sba_http_response *r, struct sba_error *err)
{
	int running = 0, left = 0;
	CURLMcode mc = r->curl->multi_perform(r->multi, &running);
	if (mc != CURLM_OK)
		return sba_fail(err, SBA_EIO, "%s", r->curl->multi_strerror(mc));
	const CURLMsg *m = running ? NULL : r->curl->multi_info_read(r->multi, &left);
	if (m && m->msg == CURLMSG_DONE) {
		r->result = m->data.result;
		r->over = true;
	}
	return 0;
}

static int wait_for_more(struct sba_http_response *r, struct sba_until until, struct sba_error *err)
{
	struct curl_waitfd cancel = { .fd = until.cancel_fd, .events = CURL_WAIT_POLLIN };
	int left = sba_until_left(until);
	CURLMcode mc = r->curl->multi_poll(r->multi, &cancel, until.cancel_fd >= 0 ? 1 : 0,
					   left < 0 ? POLL_MS : left, NULL);
	if (mc != CURLM_OK)
		return sba_fail(err, SBA_EIO, "%s", r->curl->multi_strerror(mc));
	return sba_until_check(until, err);
}

int sba_http_response_await_head(struct sba_http_response *r, struct sba_until until,
				 struct sba_error *err)
{
	int rc = step(r, err);
	while (rc == 0 && !r->has_head && !r->over) {
		rc = wait_for_more(r, until, err);
		if (rc == 0)
			rc = step(r, err);
	}
	if (rc == 0 && !r->has_head)
		rc = fail_as_curl(r, err);
	return rc;
}

int sba_http_response_status(const struct sba_http_response *r)
{
	return r->status;
}

const struct sba_strv *sba_http_response_headers(const struct sba_http_response *r)
{
	return &r->headers;
}

const char *sba_http_response_header(const struct sba_http_response *r, const char *name)
{
	size_t len = strlen(name);
	for (size_t i = 0; i < r->headers.n; i++) {
		const char *h = r->headers.v[i];
		if (!strncasecmp(h, name, len) && h[len] == ':')
			return h + len + 1 + strspn(h + len + 1, " \t");
	}
	return NULL;
}

static ssize_t fetch(struct sba_http_response *r, char *buf, size_t size)
{
	size_t n = r->in.len - r->fetched;
	if (n > size)
		n = size;
	memcpy(buf, r->in.data + r->fetched, n);
	r->fetched += n;
	if (r->fetched == r->in.len) {
		sba_buf_reset(&r->in);
		r->fetched = 0;
	}
	return (ssize_t)n;
}

/* What was held back arrives inside of curl_easy_pause already. */
static int advance(struct sba_http_response *r, struct sba_until until, struct sba_error *err)
{
	if (r->paused) {
		r->paused = false;
		r->curl->easy_pause(r->easy, CURLPAUSE_CONT);
		if (r->in.len)
			return 0;
	}
	int rc = step(r, err);
	if (rc == 0 && !r->in.len && !r->over)
		rc = wait_for_more(r, until, err);
	return rc;
}

ssize_t sba_http_response_read(struct sba_http_response *r, char *buf, size_t size,
			       struct sba_until until, struct sba_error *err)
{
	while (!r->in.len && !r->over) {
		int rc = advance(r, until, err);
		if (rc < 0)
			return rc;
	}
	if (r->in.len)
		return fetch(r, buf, size);
	return r->result == CURLE_OK ? 0 : fail_as_curl(r, err);
}

static void wipe_headers(const struct sba_curl *curl, struct curl_slist *list)
{
	for (const struct curl_slist *h = list; h; h = h->next)
		explicit_bzero(h->data, strlen(h->data));
	curl->slist_free_all(list);
}

/* Taking an unfinished transfer out of its multi handle closes its connection. */
void sba_http_response_reset(struct sba_http_response *r)
{
	r->curl->multi_remove_handle(r->multi, r->easy);
	r->curl->easy_reset(r->easy);
	wipe_headers(r->curl, r->sent_headers);
	r->sent_headers = NULL;
	sba_strv_fini(&r->headers);
	sba_buf_reset(&r->in);
	r->fetched = r->head_size = 0;
	r->has_head = r->paused = r->over = false;
	r->failed = 0;
	r->error[0] = '\0';
}

void sba_http_response_close(struct sba_http_response *r)
{
	if (!r)
		return;
	sba_http_response_reset(r);
	sba_http_client_put(r->client, r);
}
