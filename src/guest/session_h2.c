/* SPDX-License-Identifier: MIT */
/*
 * HTTP/2 on stdin and stdout: callbacks of nghttp2, limits, windows. stdin is
 * always read, whatever is stuck elsewhere: the engine tells of a dead client
 * only to a guest that reads.
 */
#include "guest/session.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "guest/guest.h"

/* The host opens and closes streams as fast as it likes: it is not the peer
 * that has to be feared on this side. */
enum { RESETS_BURST = 100000, RESETS_PER_S = 10000 };

uint8_t *sba_session_out_tail(struct sba_session_out *out, size_t *ret_room)
{
	if (out->at > 0 && sizeof(out->data) - out->len < 2 * SBA_CHANNEL_FRAME_MAX) {
		memmove(out->data, out->data + out->at, out->len - out->at);
		out->len -= out->at;
		out->at = 0;
	}
	*ret_room = sizeof(out->data) - out->len;
	return out->data + out->len;
}

static ssize_t on_send(nghttp2_session *h2, const uint8_t *data, size_t len, int flags, void *user)
{
	struct sba_session *session = user;
	size_t room;
	uint8_t *tail = sba_session_out_tail(&session->out, &room);

	(void)h2;
	(void)flags;
	if (room == 0)
		return NGHTTP2_ERR_WOULDBLOCK;
	if (len > room)
		len = room;
	memcpy(tail, data, len);
	session->out.len += len;
	return (ssize_t)len;
}

static struct sba_session_stream *free_slot(struct sba_session *session)
{
	for (size_t i = 0; i < SBA_SESSION_SLOTS; i++) {
		struct sba_session_stream *stream = &session->streams[i];

		if (stream->id == 0 && stream->pid == 0)
			return stream;
	}
	return NULL;
}

static int on_begin_headers(nghttp2_session *h2, const nghttp2_frame *frame, void *user)
{
	struct sba_session_stream *stream;

	if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0;
	stream = free_slot(user);
	if (!stream)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	*stream = (struct sba_session_stream){
		.id = frame->hd.stream_id,
		.source = { -1, -1 },
		.sink = -1,
	};
	nghttp2_session_set_stream_user_data(h2, stream->id, stream);
	return 0;
}

static int on_header(nghttp2_session *h2, const nghttp2_frame *frame, const uint8_t *name,
		     size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
		     void *user)
{
	static const char path[] = ":path";
	struct sba_session_stream *stream =
		nghttp2_session_get_stream_user_data(h2, frame->hd.stream_id);

	(void)flags;
	(void)user;
	if (!stream || name_len != sizeof(path) - 1 || memcmp(name, path, name_len) != 0)
		return 0;
	if (value_len >= sizeof(stream->path))
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	memcpy(stream->path, value, value_len);
	stream->path[value_len] = '\0';
	return 0;
}

static int on_frame(nghttp2_session *h2, const nghttp2_frame *frame, void *user)
{
	struct sba_session *session = user;
	struct sba_session_stream *stream =
		nghttp2_session_get_stream_user_data(h2, frame->hd.stream_id);

	if (!stream)
		return 0;
	if (frame->hd.type == NGHTTP2_HEADERS && stream->kind == SBA_KIND_NEW)
		sba_session_stream_open(session, stream);
	if ((frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) &&
	    frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
		sba_session_pump_cut(session, stream);
	return 0;
}

static int on_data(nghttp2_session *h2, uint8_t flags, int32_t id, const uint8_t *data, size_t len,
		   void *user)
{
	struct sba_session_stream *stream = nghttp2_session_get_stream_user_data(h2, id);

	(void)flags;
	/* The connection's window is never the bound: a stream that is stuck would
	 * take it from the others. */
	nghttp2_session_consume_connection(h2, len);
	if (stream)
		sba_session_pump_put(user, stream, data, len);
	return 0;
}

static int on_stream_close(nghttp2_session *h2, int32_t id, uint32_t error, void *user)
{
	struct sba_session_stream *stream = nghttp2_session_get_stream_user_data(h2, id);

	if (!stream)
		return 0;
	nghttp2_session_set_stream_user_data(h2, id, NULL);
	sba_session_pump_close(user, stream, error != NGHTTP2_NO_ERROR);
	return 0;
}

static ssize_t frame_length(nghttp2_session *h2, uint8_t type, int32_t id, int32_t connection,
			    int32_t stream, uint32_t max_frame, void *user)
{
	int32_t length = connection < stream ? connection : stream;

	(void)h2;
	(void)type;
	(void)id;
	(void)max_frame;
	(void)user;
	return length < SBA_CHANNEL_FRAME_MAX ? length : SBA_CHANNEL_FRAME_MAX;
}

static nghttp2_session_callbacks *make_callbacks(void)
{
	nghttp2_session_callbacks *callbacks;

	if (nghttp2_session_callbacks_new(&callbacks) != 0)
		return NULL;
	nghttp2_session_callbacks_set_send_callback(callbacks, on_send);
	nghttp2_session_callbacks_set_send_data_callback(callbacks, sba_session_pump_send);
	nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
	nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
	nghttp2_session_callbacks_set_data_source_read_length_callback(callbacks, frame_length);
	return callbacks;
}

static nghttp2_option *make_options(void)
{
	nghttp2_option *options;

	if (nghttp2_option_new(&options) != 0)
		return NULL;
	nghttp2_option_set_no_auto_window_update(options, 1);
	nghttp2_option_set_no_closed_streams(options, 1);
	nghttp2_option_set_stream_reset_rate_limit(options, RESETS_BURST, RESETS_PER_S);
	return options;
}

static bool greet(nghttp2_session *h2)
{
	static const nghttp2_settings_entry settings[] = {
		{ NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, SBA_CHANNEL_STREAMS_MAX },
		{ NGHTTP2_SETTINGS_MAX_FRAME_SIZE, SBA_CHANNEL_FRAME_MAX },
		{ NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, 4096 },
	};

	return nghttp2_submit_settings(h2, NGHTTP2_FLAG_NONE, settings,
				       sizeof(settings) / sizeof(settings[0])) == 0 &&
	       nghttp2_session_set_local_window_size(h2, NGHTTP2_FLAG_NONE, 0,
						     SBA_CHANNEL_WINDOW) == 0;
}

bool sba_session_h2_open(struct sba_session *session)
{
	nghttp2_session_callbacks *callbacks = make_callbacks();
	nghttp2_option *options = make_options();
	bool good = callbacks && options &&
		    nghttp2_session_server_new2(&session->h2, callbacks, session, options) == 0 &&
		    greet(session->h2);

	nghttp2_session_callbacks_del(callbacks);
	nghttp2_option_del(options);
	return good;
}

bool sba_session_h2_feed(struct sba_session *session, const uint8_t *data, size_t len)
{
	session->heard = sba_guest_now_ms(CLOCK_MONOTONIC);
	session->greeted = true;
	return nghttp2_session_mem_recv(session->h2, data, len) == (ssize_t)len;
}

bool sba_session_h2_read(struct sba_session *session)
{
	ssize_t got = read(STDIN_FILENO, session->in, sizeof(session->in));

	if (got < 0)
		return errno == EAGAIN || errno == EINTR;
	return got > 0 && sba_session_h2_feed(session, session->in, (size_t)got);
}

/* True if something went. A host that is gone swallows everything: stdin
 * tells that it is. */
static bool flush(struct sba_session_out *out)
{
	ssize_t put;

	if (out->at == out->len)
		return false;
	put = write(STDOUT_FILENO, out->data + out->at, out->len - out->at);
	if (put < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	out->at += put < 0 ? out->len - out->at : (size_t)put;
	if (out->at == out->len)
		out->at = out->len = 0;
	return true;
}

void sba_session_h2_write(struct sba_session *session)
{
	do {
		if (nghttp2_session_send(session->h2) != 0)
			session->failed = true;
	} while (flush(&session->out) && nghttp2_session_want_write(session->h2));
	if (!nghttp2_session_want_read(session->h2) && !nghttp2_session_want_write(session->h2))
		session->failed = true;
}
