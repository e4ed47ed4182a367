/* SPDX-License-Identifier: MIT */
/*
 * The bytes of one stream. Output is read from pipe or socket straight into
 * the buffer of frames, behind the place of its head: nghttp2 calls for the
 * head at once after it has asked for the bytes.
 */
#include "guest/session.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "guest/guest.h"

enum { FRAME_HEAD = 9, PIPE_WIDE = 1024 * 1024 };

static void shut(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* ---- to the host ---- */

static void put_piece_head(uint8_t *head, int which, size_t len)
{
	head[0] = (uint8_t)(which + 1);
	head[1] = (uint8_t)(len >> 16);
	head[2] = (uint8_t)(len >> 8);
	head[3] = (uint8_t)len;
}

static void break_connection(struct sba_session *session, const struct sba_session_stream *stream)
{
	if (stream->id > 0)
		nghttp2_submit_rst_stream(session->h2, NGHTTP2_FLAG_NONE, stream->id,
					  NGHTTP2_CONNECT_ERROR);
}

/*
 * A pipe that is ever full gets more room. Only then, and only some: beyond
 * pipe-user-pages-soft every new pipe of the user, whatever the sandbox,
 * would shrink to a page or two.
 */
static void widen_source(struct sba_session *session, struct sba_session_stream *stream, int which)
{
	if (stream->roomy || session->roomy >= SBA_SESSION_WIDE)
		return;
	stream->roomy = true;
	session->roomy++;
	fcntl(stream->source[which], F_SETPIPE_SZ, PIPE_WIDE);
}

/* From one source: bytes, 0 for nothing now; closes it at its end. */
static size_t read_one(struct sba_session *session, struct sba_session_stream *stream, int which,
		       uint8_t *to, size_t size)
{
	ssize_t got;

	if (stream->source[which] < 0)
		return 0;
	got = read(stream->source[which], to, size);
	if (got == (ssize_t)size && stream->kind == SBA_KIND_CHILD)
		widen_source(session, stream, which);
	if (got > 0)
		return (size_t)got;
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (stream->kind != SBA_KIND_SOCKET)
		shut(&stream->source[which]);
	else if (got < 0)
		break_connection(session, stream);
	else
		stream->source[which] = -1; /* the sink is the same socket */
	return 0;
}

static size_t read_any(struct sba_session *session, struct sba_session_stream *stream, uint8_t *to,
		       size_t size)
{
	size_t head = stream->tagged ? SBA_CHANNEL_PIECE_HEAD : 0;

	if (size <= head) {
		/* What is left of the window has no room for a piece. */
		memset(to, 0, size);
		return size;
	}
	for (int i = 0; i < 2; i++) {
		int which = stream->turn ^ i;
		size_t got = read_one(session, stream, which, to + head, size - head);

		if (got == 0)
			continue;
		stream->turn = which ^ 1;
		if (stream->tagged)
			put_piece_head(to, which, got);
		return got + head;
	}
	return 0;
}

static void put_id(uint8_t *to, uint32_t id)
{
	uint32_t wire = htonl(id);

	memcpy(to, &wire, sizeof(wire));
}

static struct sba_session_waiting *free_place(struct sba_session *session)
{
	for (size_t i = 0; i < SBA_SESSION_WAITING; i++) {
		if (session->waiting[i].id == 0)
			return &session->waiting[i];
	}
	return NULL;
}

bool sba_session_pump_accepts(struct sba_session *session)
{
	return free_place(session) != NULL;
}

/* The port first, then the id of each connection as it comes. */
static size_t accept_one(struct sba_session *session, struct sba_session_stream *stream,
			 uint8_t *to, size_t size)
{
	struct sba_session_waiting *place = free_place(session);
	int fd;

	if (size < sizeof(place->id) || !place)
		return 0;
	if (!stream->said_port) {
		stream->said_port = true;
		to[0] = (uint8_t)(stream->port >> 8);
		to[1] = (uint8_t)stream->port;
		return 2;
	}
	fd = accept4(stream->source[0], NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0)
		return 0;
	*place = (struct sba_session_waiting){
		.id = ++session->last_connection,
		.fd = fd,
		.since = sba_guest_now_ms(CLOCK_MONOTONIC),
	};
	put_id(to, place->id);
	return sizeof(place->id);
}

static void drain_later(struct sba_session *session, int fd)
{
	/* A background child may go on writing; without a reader it would get a
	 * SIGPIPE for it. */
	if (fd >= 0 && session->n_drains < SBA_SESSION_DRAINS)
		session->drains[session->n_drains++] = fd;
	else if (fd >= 0)
		close(fd);
}

static bool is_over(struct sba_session *session, struct sba_session_stream *stream)
{
	if (stream->gone) {
		for (int i = 0; i < 2; i++) {
			drain_later(session, stream->source[i]);
			stream->source[i] = -1;
		}
	}
	return stream->source[0] < 0 && stream->source[1] < 0;
}

ssize_t sba_session_pump_source(nghttp2_session *h2, int32_t id, uint8_t *buf, size_t length,
				uint32_t *flags, nghttp2_data_source *source, void *user)
{
	struct sba_session *session = user;
	struct sba_session_stream *stream = source->ptr;
	size_t room, got;
	uint8_t *tail = sba_session_out_tail(&session->out, &room);

	(void)h2;
	(void)id;
	(void)buf;
	if (room < SBA_SESSION_FRAME_ROOM)
		return NGHTTP2_ERR_PAUSE;
	if (length > room - FRAME_HEAD)
		length = room - FRAME_HEAD;
	if (stream->kind == SBA_KIND_LISTEN)
		got = accept_one(session, stream, tail + FRAME_HEAD, length);
	else
		got = read_any(session, stream, tail + FRAME_HEAD, length);
	if (got > 0) {
		session->took += got;
		*flags |= NGHTTP2_DATA_FLAG_NO_COPY;
		return (ssize_t)got;
	}
	if (is_over(session, stream)) {
		*flags |= NGHTTP2_DATA_FLAG_EOF;
		return 0;
	}
	stream->paused = true;
	return NGHTTP2_ERR_DEFERRED;
}

int sba_session_pump_send(nghttp2_session *h2, nghttp2_frame *frame, const uint8_t *head,
			  size_t length, nghttp2_data_source *source, void *user)
{
	struct sba_session *session = user;
	size_t room;
	uint8_t *tail = sba_session_out_tail(&session->out, &room);

	(void)h2;
	(void)frame;
	(void)source;
	memcpy(tail, head, FRAME_HEAD);
	session->out.len += FRAME_HEAD + length;
	return 0;
}

/* ---- from the host ---- */

static bool keep(struct sba_session_queue *queue, const uint8_t *data, size_t len)
{
	if (queue->at > 0 && queue->len + len > queue->size) {
		memmove(queue->data, queue->data + queue->at, queue->len - queue->at);
		queue->len -= queue->at;
		queue->at = 0;
	}
	if (queue->len + len > queue->size) {
		size_t size = 2 * (queue->len + len);
		uint8_t *bigger = realloc(queue->data, size);

		if (!bigger)
			return false;
		queue->data = bigger;
		queue->size = size;
	}
	memcpy(queue->data + queue->len, data, len);
	queue->len += len;
	return true;
}

static void drop_queue(struct sba_session_queue *queue)
{
	free(queue->data);
	*queue = (struct sba_session_queue){ 0 };
}

/* A stream that moves gets the full window, and its pipe room for it. */
static void widen(struct sba_session *session, struct sba_session_stream *stream)
{
	if (stream->wide || session->wide >= SBA_SESSION_WIDE || stream->id <= 0)
		return;
	stream->wide = true;
	session->wide++;
	nghttp2_session_set_local_window_size(session->h2, NGHTTP2_FLAG_NONE, stream->id,
					      SBA_CHANNEL_STREAM_WINDOW);
	if (stream->kind == SBA_KIND_CHILD)
		fcntl(stream->sink, F_SETPIPE_SZ, PIPE_WIDE);
}

static void give_back(struct sba_session *session, struct sba_session_stream *stream, size_t len)
{
	if (stream->id > 0 && len > 0)
		nghttp2_session_consume_stream(session->h2, stream->id, len);
}

static void close_sink(struct sba_session_stream *stream)
{
	if (stream->kind == SBA_KIND_SOCKET && stream->sink >= 0)
		shutdown(stream->sink, SHUT_WR);
	else
		shut(&stream->sink);
}

/* How much of data the sink took. One that is gone takes all. */
static size_t offer(struct sba_session *session, struct sba_session_stream *stream,
		    const uint8_t *data, size_t len)
{
	ssize_t put;

	if (stream->sink < 0)
		return len;
	put = write(stream->sink, data, len);
	if (put >= 0)
		return (size_t)put;
	if (errno == EAGAIN || errno == EINTR)
		return 0;
	if (stream->kind != SBA_KIND_SOCKET)
		shut(&stream->sink);
	else
		break_connection(session, stream);
	return len;
}

void sba_session_pump_put(struct sba_session *session, struct sba_session_stream *stream,
			  const uint8_t *data, size_t len)
{
	bool idle = stream->queue.at == stream->queue.len && !stream->connecting;
	size_t put = idle ? offer(session, stream, data, len) : 0;

	give_back(session, stream, put);
	if (put == len)
		return;
	if (!keep(&stream->queue, data + put, len - put))
		session->failed = true;
}

void sba_session_pump_cut(struct sba_session *session, struct sba_session_stream *stream)
{
	(void)session;
	stream->cut = true;
	if (stream->queue.at == stream->queue.len && !stream->connecting)
		close_sink(stream);
}

void sba_session_pump_flush(struct sba_session *session, struct sba_session_stream *stream)
{
	struct sba_session_queue *queue = &stream->queue;
	size_t put = offer(session, stream, queue->data + queue->at, queue->len - queue->at);

	queue->at += put;
	give_back(session, stream, put);
	if (queue->at < queue->len)
		return;
	queue->at = queue->len = 0;
	if (stream->id == SBA_SESSION_LINGERS)
		sba_session_pump_close(session, stream, false);
	else if (stream->cut)
		close_sink(stream);
	else
		widen(session, stream);
}

void sba_session_pump_close(struct sba_session *session, struct sba_session_stream *stream,
			    bool reset)
{
	static const struct linger hard = { .l_onoff = 1, .l_linger = 0 };
	bool rest = stream->queue.at < stream->queue.len;

	sba_session_notice_end(session, stream);
	if (stream->kind == SBA_KIND_SOCKET && stream->sink >= 0 && rest && !reset) {
		stream->id = SBA_SESSION_LINGERS;
		return;
	}
	if (stream->kind == SBA_KIND_SOCKET) {
		if (reset && stream->sink >= 0)
			setsockopt(stream->sink, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
	} else if (stream->kind == SBA_KIND_CHILD) {
		drain_later(session, stream->source[0]);
		drain_later(session, stream->source[1]);
	} else {
		shut(&stream->source[0]);
	}
	stream->source[0] = stream->source[1] = -1;
	shut(&stream->sink);
	drop_queue(&stream->queue);
	if (stream->wide)
		session->wide--;
	if (stream->roomy)
		session->roomy--;
	stream->wide = stream->roomy = false;
	stream->id = 0;
}
