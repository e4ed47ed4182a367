/* SPDX-License-Identifier: MIT */
/*
 * The HTTP server over libmicrohttpd: collects a request's body, calls the
 * handler, turns its answer into a response. It must not know what the bodies
 * mean.
 */
#include "base/limits.h"
#include "http/http.h"
#include "http/private.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
	CONNECTION_MEMORY = 64 * SBA_KIB,
	STREAM_BLOCK = 32 * SBA_KIB, /* the most that one call of a stream can yield */
};

struct sba_http_server {
	struct sba_mhd mhd;
	struct MHD_Daemon *daemon;
	sba_http_judge_fn *judge;
	sba_http_handler_fn *handler;
	void *user;
	uint16_t port;
	int stop_fd;
};

/* One request while its body arrives. */
struct exchange {
	char *target;
	bool begun;
	bool judged; /* against it: the answer is there, the body is thrown away */
	struct sba_http_answer judgement;
	struct sba_buf body;
	uint64_t received;
};

/* One streamed answer; lives as long as its response. */
struct source {
	sba_http_stream_fn *read;
	void *user;
	void (*free)(void *user);
	int stop_fd; /* its own */
};

const char *sba_http_request_header(const struct sba_http_request *r, const char *name)
{
	const struct sba_http_connection *c = r->internal;
	return c->mhd->lookup_connection_value(c->c, MHD_HEADER_KIND, name);
}

static enum MHD_Result keep_header(void *cls, enum MHD_ValueKind kind, const char *name,
				   const char *value)
{
	(void)kind;
	return sba_strv_addf(cls, NULL, "%s: %s", name, value ? value : "") == 0 ? MHD_YES : MHD_NO;
}

int sba_http_request_headers(const struct sba_http_request *r, struct sba_strv *ret,
			     struct sba_error *err)
{
	SBA_STRV struct sba_strv headers = { 0 };
	const struct sba_http_connection *c = r->internal;
	int n = c->mhd->get_connection_values(c->c, MHD_HEADER_KIND, NULL, NULL);
	c->mhd->get_connection_values(c->c, MHD_HEADER_KIND, keep_header, &headers);
	if (n < 0 || headers.n != (size_t)n)
		return sba_fail_nomem(err);
	*ret = headers;
	headers = (struct sba_strv){ 0 };
	return 0;
}

static ssize_t source_read(void *cls, uint64_t pos, char *buf, size_t max)
{
	struct source *s = cls;
	(void)pos;
	ssize_t n = s->read(s->user, buf, max, s->stop_fd);
	if (n > 0)
		return n;
	return n == 0 ? MHD_CONTENT_READER_END_OF_STREAM : MHD_CONTENT_READER_END_WITH_ERROR;
}

static void source_free(void *cls)
{
	struct source *s = cls;
	if (s->free)
		s->free(s->user);
	sba_cleanup_close(&s->stop_fd);
	free(s);
}

static struct MHD_Response *stream_response(const struct sba_mhd *mhd, struct sba_http_answer *a,
					    int *stop_fd)
{
	struct source *source = malloc(sizeof(*source));
	if (!source)
		return NULL;
	*source = (struct source){ a->stream, a->stream_user, a->stream_free, *stop_fd };
	struct MHD_Response *r = mhd->create_response_from_callback(
		MHD_SIZE_UNKNOWN, STREAM_BLOCK, source_read, source, source_free);
	if (!r) {
		free(source);
		return NULL;
	}
	a->stream_user = NULL;
	*stop_fd = -1;
	return r;
}

static struct MHD_Response *body_response(const struct sba_mhd *mhd, struct sba_http_answer *a)
{
	size_t len = a->body.len;
	if (a->body.failed)
		return NULL;
	if (!len)
		return mhd->create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
	char *data = sba_buf_take(&a->body);
	struct MHD_Response *r = mhd->create_response_from_buffer(len, data, MHD_RESPMEM_MUST_FREE);
	if (!r)
		free(data);
	return r;
}

static bool add_header(const struct sba_mhd *mhd, struct MHD_Response *r, const char *header)
{
	char name[64];
	const char *colon = strchr(header, ':');
	size_t len = colon ? (size_t)(colon - header) : 0;
	if (!len || len >= sizeof(name))
		return false;
	memcpy(name, header, len);
	name[len] = '\0';
	return mhd->add_response_header(r, name, colon + 1 + strspn(colon + 1, " ")) == MHD_YES;
}

static bool add_headers(const struct sba_mhd *mhd, struct MHD_Response *r,
			const struct sba_http_answer *a)
{
	if (a->content_type &&
	    mhd->add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, a->content_type) != MHD_YES)
		return false;
	for (size_t i = 0; i < a->headers.n; i++)
		if (!add_header(mhd, r, a->headers.v[i]))
			return false;
	return true;
}

static void answer_fini(struct sba_http_answer *a)
{
	if (a->stream_user && a->stream_free)
		a->stream_free(a->stream_user);
	sba_strv_fini(&a->headers);
	sba_buf_fini(&a->body);
}

/* MHD_NO closes the connection without an answer. A stream takes stop_fd, and
 * cannot be without one. */
static enum MHD_Result respond(const struct sba_http_connection *c, struct sba_http_answer *a,
			       int *stop_fd)
{
	if (a->hang_up || (a->stream && !stop_fd))
		return MHD_NO;
	struct MHD_Response *r =
		a->stream ? stream_response(c->mhd, a, stop_fd) : body_response(c->mhd, a);
	if (!r)
		return MHD_NO;
	enum MHD_Result rc = MHD_NO;
	if (add_headers(c->mhd, r, a))
		rc = c->mhd->queue_response(c->c, (unsigned)a->status, r);
	c->mhd->destroy_response(r);
	return rc;
}

static enum MHD_Result refuse_size(const struct sba_http_connection *c)
{
	struct sba_http_answer a = {
		.status = MHD_HTTP_CONTENT_TOO_LARGE,
		.content_type = "application/json",
		.body = SBA_BUF_INIT(SBA_KIB),
	};
	sba_buf_puts(&a.body, "{\"type\":\"error\",\"error\":{\"type\":\"request_too_large\","
			      "\"message\":\"the request body is too large\"}}");
	enum MHD_Result rc = respond(c, &a, NULL);
	answer_fini(&a);
	return rc;
}

/* One descriptor that tells of either end: the server's, and that of the
 * client, which libmicrohttpd would notice only at the next write. */
static int watch_ends(const struct sba_http_server *s, const struct sba_http_connection *c)
{
	const union MHD_ConnectionInfo *info =
		c->mhd->get_connection_info(c->c, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct epoll_event stop = { .events = EPOLLIN }, gone = { .events = EPOLLRDHUP };
	SBA_CLOSE int fd = epoll_create1(EPOLL_CLOEXEC);
	if (!info || fd < 0 || epoll_ctl(fd, EPOLL_CTL_ADD, s->stop_fd, &stop) < 0 ||
	    epoll_ctl(fd, EPOLL_CTL_ADD, info->connect_fd, &gone) < 0)
		return -1;
	return sba_move_fd(&fd);
}

static enum MHD_Result handle(const struct sba_http_server *s, const struct sba_http_connection *c,
			      const char *method, const char *path, const struct exchange *x)
{
	SBA_CLOSE int stop_fd = watch_ends(s, c);
	if (stop_fd < 0)
		return MHD_NO;
	const struct sba_http_request request = {
		.method = method,
		.path = path,
		.target = x->target,
		.body = x->body.data ? x->body.data : "",
		.body_len = x->body.len,
		.stop_fd = stop_fd,
		.internal = c,
	};
	struct sba_http_answer a = { .status = MHD_HTTP_OK };
	s->handler(s->user, &request, &a);
	enum MHD_Result rc = respond(c, &a, &stop_fd);
	answer_fini(&a);
	return rc;
}

static bool declared_too_large(const struct sba_http_connection *c)
{
	const char *text = c->mhd->lookup_connection_value(c->c, MHD_HEADER_KIND,
							   MHD_HTTP_HEADER_CONTENT_LENGTH);
	int64_t len;
	return text && sba_parse_int(text, 0, SBA_HTTP_REQUEST_MAX, &len) < 0;
}

/* True: the judge is against it. */
static bool judge(const struct sba_http_server *s, const struct sba_http_request *head,
		  struct exchange *x)
{
	if (!s->judge)
		return false;
	x->judgement.status = MHD_HTTP_BAD_REQUEST;
	x->judged = s->judge(s->user, head, &x->judgement);
	return x->judged;
}

static enum MHD_Result begin(const struct sba_http_server *s, const struct sba_http_connection *c,
			     const char *method, const char *path, const char *version,
			     struct exchange *x)
{
	const struct sba_http_request head = {
		.method = method,
		.path = path,
		.target = x->target,
		.body = "",
		.irregular = sba_http_irregular(c, method, version),
		.stop_fd = -1,
		.internal = c,
	};
	x->begun = true;
	sba_buf_init(&x->body, SBA_HTTP_REQUEST_MAX);
	/* Where an irregular request ends is anybody's guess. */
	if (judge(s, &head, x) && head.irregular)
		return respond(c, &x->judgement, NULL);
	return declared_too_large(c) ? refuse_size(c) : MHD_YES;
}

/* libmicrohttpd 0.9.75 takes a response only before and after the body, so a
 * chunked body that grows too large is read on for a while to get its 413. */
static enum MHD_Result receive(struct exchange *x, const char *data, size_t *len)
{
	x->received += *len;
	if (x->received > 2 * (uint64_t)SBA_HTTP_REQUEST_MAX)
		return MHD_NO;
	if (!x->judged)
		sba_buf_put(&x->body, data, *len);
	*len = 0;
	return MHD_YES;
}

/* Called once when the head is there, once per piece of the body, and once
 * with no piece at the end. */
static enum MHD_Result on_request(void *cls, struct MHD_Connection *connection, const char *url,
				  const char *method, const char *version, const char *data,
				  size_t *len, void **slot)
{
	const struct sba_http_server *s = cls;
	const struct sba_http_connection there = { &s->mhd, connection }, *c = &there;
	struct exchange *x = *slot;
	if (!x || !x->target)
		return MHD_NO;
	if (!x->begun)
		return begin(s, c, method, url, version, x);
	if (*len)
		return receive(x, data, len);
	if (x->judged)
		return respond(c, &x->judgement, NULL);
	if (x->body.failed == SBA_ELIMIT)
		return refuse_size(c);
	return x->body.failed ? MHD_NO : handle(s, c, method, url, x);
}

/* The only sight of the target before its query is taken out and its escapes
 * are undone; what it returns becomes the exchange. */
static void *on_target(void *cls, const char *target, struct MHD_Connection *c)
{
	struct exchange *x = calloc(1, sizeof(*x));
	(void)cls;
	(void)c;
	if (x)
		x->target = strdup(target);
	return x;
}

static void on_completed(void *cls, struct MHD_Connection *c, void **slot,
			 enum MHD_RequestTerminationCode why)
{
	struct exchange *x = *slot;
	(void)cls;
	(void)c;
	(void)why;
	if (!x)
		return;
	answer_fini(&x->judgement);
	sba_buf_fini(&x->body);
	free(x->target);
	free(x);
	*slot = NULL;
}

static int start(struct sba_http_server *s, const struct sba_http_server_options *o,
		 const struct sockaddr_in *address, struct sba_error *err)
{
	unsigned connections = o->max_connections ? o->max_connections : SBA_HTTP_CONNECTIONS_MAX;
	sigset_t all, before;
	/* Its threads inherit the mask: a signal that the program waits for would end in
	 * one of them. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	errno = 0;
	s->daemon = s->mhd.start_daemon(
		MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_ITC,
		o->port, NULL, NULL, on_request, s, MHD_OPTION_SOCK_ADDR,
		(const struct sockaddr *)address, MHD_OPTION_URI_LOG_CALLBACK, on_target, NULL,
#if MHD_VERSION >= 0x00097701
		MHD_OPTION_CLIENT_DISCIPLINE_LVL, o->judge ? 1 : 0,
#endif
		MHD_OPTION_NOTIFY_COMPLETED, on_completed, NULL, MHD_OPTION_CONNECTION_LIMIT,
		connections, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)SBA_HTTP_IDLE_S,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY, MHD_OPTION_END);
	int why = errno;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!s->daemon)
		return sba_fail_errno(err, SBA_EIO, why, "listen on %s:%u",
				      o->address ? o->address : "127.0.0.1", (unsigned)o->port);
	const union MHD_DaemonInfo *info =
		s->mhd.get_daemon_info(s->daemon, MHD_DAEMON_INFO_BIND_PORT);
	s->port = info ? info->port : o->port;
	return 0;
}

int sba_http_server_open(const struct sba_http_server_options *options,
			 struct sba_http_server **ret, struct sba_error *err)
{
	const char *text = options->address ? options->address : "127.0.0.1";
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(options->port) };
	if (inet_pton(AF_INET, text, &address.sin_addr) != 1)
		return sba_fail(err, SBA_EINVAL, "listen on '%s': not an IPv4 address", text);
	struct sba_http_server *s = calloc(1, sizeof(*s));
	if (!s)
		return sba_fail_nomem(err);
	s->judge = options->judge;
	s->handler = options->handler;
	s->user = options->user;
	s->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	int rc = s->stop_fd < 0 ? sba_fail_errno(err, SBA_EIO, errno, "eventfd")
				: sba_mhd_load(&s->mhd, err);
	if (rc == 0)
		rc = start(s, options, &address, err);
	if (rc < 0) {
		sba_http_server_close(s);
		return rc;
	}
	*ret = s;
	return 0;
}

uint16_t sba_http_server_port(const struct sba_http_server *s)
{
	return s->port;
}

void sba_http_server_close(struct sba_http_server *s)
{
	if (!s)
		return;
	if (s->stop_fd >= 0)
		eventfd_write(s->stop_fd, 1);
	if (s->daemon)
		s->mhd.stop_daemon(s->daemon);
	sba_cleanup_close(&s->stop_fd);
	free(s);
}
