/* SPDX-License-Identifier: MIT */
/*
 * What a stream is for: its path, what is started or connected for it, and
 * the head of the answer.
 */
#include "guest/session.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "guest/guest.h"
#include "guest/identity.h"
#include "guest/parse.h"

#define NV(name, value, len)                                                                       \
	{                                                                                          \
		(uint8_t *)(name), (uint8_t *)(value), sizeof(name) - 1, (len),                    \
			NGHTTP2_NV_FLAG_NONE                                                       \
	}

static void answer(struct sba_session *session, struct sba_session_stream *stream)
{
	const nghttp2_nv head[] = { NV(":status", "200", 3) };
	const nghttp2_data_provider provider = {
		.source.ptr = stream,
		.read_callback = sba_session_pump_source,
	};

	if (nghttp2_submit_response(session->h2, stream->id, head, 1, &provider) != 0)
		session->failed = true;
}

static void refuse(struct sba_session *session, struct sba_session_stream *stream, int error)
{
	char number[12];
	int len = snprintf(number, sizeof(number), "%d", error);
	const nghttp2_nv head[] = {
		NV(":status", "502", 3),
		NV(SBA_CHANNEL_ERRNO, number, (size_t)len),
	};

	if (nghttp2_submit_response(session->h2, stream->id, head, 2, NULL) != 0)
		session->failed = true;
}

/* ---- hello ---- */

static ssize_t hello_source(nghttp2_session *h2, int32_t id, uint8_t *buf, size_t length,
			    uint32_t *flags, nghttp2_data_source *source, void *user)
{
	char text[SBA_GUEST_HELLO_MAX];
	size_t len = sba_guest_hello(text);

	(void)h2;
	(void)id;
	(void)source;
	(void)user;
	if (length < len)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	*flags |= NGHTTP2_DATA_FLAG_EOF;
	memcpy(buf, text, len);
	return (ssize_t)len;
}

static void open_hello(struct sba_session *session, struct sba_session_stream *stream)
{
	const nghttp2_nv head[] = { NV(":status", "200", 3) };
	const nghttp2_data_provider provider = { .read_callback = hello_source };

	if (nghttp2_submit_response(session->h2, stream->id, head, 1, &provider) != 0)
		session->failed = true;
}

/* ---- notices ---- */

static void open_notices(struct sba_session *session, struct sba_session_stream *stream)
{
	const nghttp2_nv head[] = { NV(":status", "200", 3) };
	const nghttp2_data_provider provider = { .read_callback = sba_session_notice_source };

	stream->kind = SBA_KIND_NOTICES;
	if (!sba_session_notice_begin(session, stream))
		refuse(session, stream, EBUSY);
	else if (nghttp2_submit_response(session->h2, stream->id, head, 1, &provider) != 0)
		session->failed = true;
}

/* ---- children ---- */

static void open_child(struct sba_session *session, struct sba_session_stream *stream,
		       int (*start)(struct sba_session_stream *stream))
{
	int error = start(stream);

	stream->kind = SBA_KIND_CHILD;
	if (error)
		refuse(session, stream, error);
	else
		answer(session, stream);
}

static void open_run(struct sba_session *session, struct sba_session_stream *stream)
{
	stream->tagged = true;
	open_child(session, stream, sba_session_child_run);
}

static void open_file(struct sba_session *session, struct sba_session_stream *stream)
{
	open_child(session, stream, sba_session_child_file);
}

/* ---- connections ---- */

static int new_socket(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int on = 1;

	/* Small answers do not wait for the peer's delayed acknowledgement (40 ms). What
	 * a listener accepts inherits it. */
	if (fd >= 0)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return fd;
}

static struct sockaddr_in loopback(uint16_t port)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr = { htonl(INADDR_LOOPBACK) },
	};
}

static int start_listening(struct sba_session_stream *stream, uint16_t port)
{
	struct sockaddr_in address = loopback(port);
	socklen_t len = sizeof(address);
	int fd = new_socket(), on = 1;

	stream->source[0] = fd;
	/* Connections of the listener before may still linger at its port. */
	if (fd >= 0 && port)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    listen(fd, SBA_SESSION_BACKLOG) < 0 ||
	    getsockname(fd, (struct sockaddr *)&address, &len) < 0)
		return errno;
	stream->port = ntohs(address.sin_port);
	return 0;
}

static void listen_at(struct sba_session *session, struct sba_session_stream *stream, uint16_t port)
{
	int error = start_listening(stream, port);

	stream->kind = SBA_KIND_LISTEN;
	if (error)
		refuse(session, stream, error);
	else
		answer(session, stream);
}

static void open_listen(struct sba_session *session, struct sba_session_stream *stream)
{
	listen_at(session, stream, 0);
}

static bool number_of(const struct sba_session_stream *stream, const char *prefix, uint64_t max,
		      uint64_t *ret)
{
	const char *text = stream->path + strlen(prefix);

	return sba_guest_parse_number(text, strlen(text), max, ret) && *ret > 0;
}

static void open_listen_at(struct sba_session *session, struct sba_session_stream *stream)
{
	uint64_t port = 0;

	if (number_of(stream, SBA_CHANNEL_LISTEN_AT, UINT16_MAX, &port))
		listen_at(session, stream, (uint16_t)port);
	else
		refuse(session, stream, EINVAL);
}

static void join_socket(struct sba_session_stream *stream, int fd)
{
	stream->source[0] = fd;
	stream->sink = fd;
}

static void open_accept(struct sba_session *session, struct sba_session_stream *stream)
{
	uint64_t id = 0;
	bool good = number_of(stream, SBA_CHANNEL_ACCEPT, UINT32_MAX, &id);

	stream->kind = SBA_KIND_SOCKET;
	for (size_t i = 0; good && i < SBA_SESSION_WAITING; i++) {
		struct sba_session_waiting *waiting = &session->waiting[i];

		if (waiting->id != id)
			continue;
		join_socket(stream, waiting->fd);
		waiting->id = 0;
		answer(session, stream);
		return;
	}
	refuse(session, stream, ENOENT);
}

static int start_connecting(struct sba_session_stream *stream)
{
	struct sockaddr_in address;
	uint64_t port;
	int fd;

	if (!number_of(stream, SBA_CHANNEL_CONNECT, UINT16_MAX, &port))
		return EINVAL;
	address = loopback((uint16_t)port);
	fd = new_socket();
	if (fd < 0)
		return errno;
	join_socket(stream, fd);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
		return 0;
	stream->connecting = errno == EINPROGRESS;
	return stream->connecting ? 0 : errno;
}

static void open_connect(struct sba_session *session, struct sba_session_stream *stream)
{
	int error = start_connecting(stream);

	stream->kind = SBA_KIND_SOCKET;
	if (error)
		refuse(session, stream, error);
	else if (!stream->connecting)
		answer(session, stream);
}

void sba_session_stream_connected(struct sba_session *session, struct sba_session_stream *stream)
{
	int error = 0;
	socklen_t len = sizeof(error);

	if (getsockopt(stream->sink, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
		error = errno;
	stream->connecting = false;
	if (error) {
		refuse(session, stream, error);
		return;
	}
	answer(session, stream);
	if (stream->cut && stream->queue.at == stream->queue.len)
		sba_session_pump_cut(session, stream);
}

void sba_session_waiting_expire(struct sba_session *session, int64_t now)
{
	for (size_t i = 0; i < SBA_SESSION_WAITING; i++) {
		struct sba_session_waiting *waiting = &session->waiting[i];

		if (waiting->id == 0 || now - waiting->since < SBA_SESSION_WAITING_MS)
			continue;
		close(waiting->fd);
		waiting->id = 0;
	}
}

/* ---- all of them ---- */

static const struct {
	const char *path;
	void (*open)(struct sba_session *session, struct sba_session_stream *stream);
} purposes[] = {
	{ SBA_CHANNEL_HELLO, open_hello },   { SBA_CHANNEL_NOTICES, open_notices },
	{ SBA_CHANNEL_RUN, open_run },       { SBA_CHANNEL_FILE, open_file },
	{ SBA_CHANNEL_LISTEN, open_listen }, { SBA_CHANNEL_LISTEN_AT, open_listen_at },
	{ SBA_CHANNEL_ACCEPT, open_accept }, { SBA_CHANNEL_CONNECT, open_connect },
};

static bool is_path(const char *text, const char *path)
{
	size_t len = strlen(path);

	return strncmp(text, path, len) == 0 && (path[len - 1] == '/' || text[len] == '\0');
}

void sba_session_stream_open(struct sba_session *session, struct sba_session_stream *stream)
{
	for (size_t i = 0; i < sizeof(purposes) / sizeof(purposes[0]); i++) {
		if (is_path(stream->path, purposes[i].path)) {
			purposes[i].open(session, stream);
			return;
		}
	}
	refuse(session, stream, ENOSYS);
}
