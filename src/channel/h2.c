/* SPDX-License-Identifier: MIT */
/*
 * HTTP/2 towards a peer that is not trusted: callbacks of nghttp2, windows,
 * limits. Runs in the I/O thread with the channel's lock held.
 */
#include "channel/private.h"

#include <string.h>

enum { FRAME_HEAD = 9, FRAME_ROOM = FRAME_HEAD + 4 * SBA_KIB };

static struct sba_channel_stream *stream_of(nghttp2_session *h2, int32_t id)
{
	return nghttp2_session_get_stream_user_data(h2, id);
}

/* Ends the channel; nghttp2 has to be told by the callback's result. */
__attribute__((format(printf, 2, 3))) static int broken(struct sba_channel *c, const char *fmt, ...)
{
	struct sba_error why;
	char text[160];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	sba_fail(&why, SBA_EPROTO, "channel: %s", text);
	sba_channel_die(c, &why);
	return NGHTTP2_ERR_CALLBACK_FAILURE;
}

/* ---- what comes ---- */

static int on_begin_headers(nghttp2_session *h2, const nghttp2_frame *frame, void *user)
{
	struct sba_channel_stream *s = stream_of(h2, frame->hd.stream_id);
	if (s && s->fields > 0)
		return broken(user, "the guest answers twice");
	return 0;
}

static int number(const uint8_t *value, size_t len)
{
	char text[12];
	int64_t n;
	if (len >= sizeof(text))
		return -1;
	memcpy(text, value, len);
	text[len] = '\0';
	return sba_parse_int(text, 0, INT32_MAX, &n) == 0 ? (int)n : -1;
}

static bool is_name(const uint8_t *name, size_t len, const char *want)
{
	return len == strlen(want) && memcmp(name, want, len) == 0;
}

static int on_header(nghttp2_session *h2, const nghttp2_frame *frame, const uint8_t *name,
		     size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
		     void *user)
{
	struct sba_channel_stream *s = stream_of(h2, frame->hd.stream_id);
	(void)flags;
	if (!s)
		return 0;
	s->field_bytes += name_len + value_len + 32;
	if (++s->fields > SBA_CHANNEL_HEADERS_MAX || s->field_bytes > SBA_CHANNEL_HEADER_BYTES)
		return broken(user, "an answer with more than %d header fields or %d bytes",
			      SBA_CHANNEL_HEADERS_MAX, SBA_CHANNEL_HEADER_BYTES);
	if (is_name(name, name_len, ":status"))
		s->status = number(value, value_len);
	if (s->status < 200)
		return broken(user, "an answer of status %d", s->status);
	if (is_name(name, name_len, SBA_CHANNEL_ERRNO))
		s->peer_errno = number(value, value_len);
	return 0;
}

static int on_data(nghttp2_session *h2, uint8_t flags, int32_t id, const uint8_t *data, size_t len,
		   void *user)
{
	struct sba_channel *c = user;
	struct sba_channel_stream *s = stream_of(h2, id);
	(void)flags;
	/* The connection's window bounds nothing: else a stream that nobody reads
	 * would take it from the others. The streams' own windows do. */
	nghttp2_session_consume_connection(h2, len);
	if (!s)
		return 0;
	if (s->kind == SBA_STREAM_TUNNEL) {
		sba_tunnel_put(s, (const char *)data, len);
	} else if (s->kind == SBA_STREAM_FORWARD) {
		sba_tunnel_forward(s, (const char *)data, len);
	} else if (s->kind == SBA_STREAM_NOTICES) {
		sba_notice_put(s, (const char *)data, len);
	} else if (s->held) {
		sba_buf_put(&s->in, data, len);
		c->buffered += len;
	} else {
		return 0;
	}
	if (c->buffered > SBA_CHANNEL_BUFFERED_MAX || s->in.failed)
		return broken(c, "more than %d bytes are buffered", SBA_CHANNEL_BUFFERED_MAX);
	sba_channel_stream_news(s);
	return 0;
}

static void end_input(struct sba_channel_stream *s)
{
	s->ended = true;
	if (s->kind == SBA_STREAM_TUNNEL) {
		sba_tunnel_cut(s);
		return;
	}
	/* The peer needs nothing more: the stream ends on both sides without a
	 * reset. */
	s->out_end = true;
	sba_buf_fini(&s->out);
	s->out_at = 0;
	if (s->paused)
		sba_channel_stream_mark(s);
}

static int on_frame(nghttp2_session *h2, const nghttp2_frame *frame, void *user)
{
	struct sba_channel *c = user;
	struct sba_channel_stream *s = stream_of(h2, frame->hd.stream_id);
	if (frame->hd.type == NGHTTP2_GOAWAY)
		return broken(c, "the guest says goodbye (%s)",
			      nghttp2_http2_strerror(frame->goaway.error_code));
	if (frame->hd.type == NGHTTP2_PING && frame->hd.flags & NGHTTP2_FLAG_ACK) {
		if (c->ping_last == 0 ||
		    memcmp(frame->ping.opaque_data, &c->ping_last, sizeof(c->ping_last)) != 0)
			return broken(c, "an answer to a ping that was not sent");
		c->ping_last = 0;
	}
	if (!s)
		return 0;
	if (frame->hd.type != NGHTTP2_DATA && frame->hd.type != NGHTTP2_HEADERS)
		return 0;
	bool last = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;
	if (last)
		end_input(s);
	if (last || frame->hd.type == NGHTTP2_HEADERS)
		sba_channel_stream_signal(s);
	return 0;
}

static int on_invalid(nghttp2_session *h2, const nghttp2_frame *frame, int error, void *user)
{
	(void)h2;
	return broken(user, "frame %d of stream %d: %s", frame->hd.type, frame->hd.stream_id,
		      nghttp2_strerror(error));
}

/* nghttp2 gives up on the connection by itself. */
static int on_sent(nghttp2_session *h2, const nghttp2_frame *frame, void *user)
{
	(void)h2;
	if (frame->hd.type == NGHTTP2_GOAWAY && frame->goaway.error_code != NGHTTP2_NO_ERROR)
		return broken(user, "%s", nghttp2_http2_strerror(frame->goaway.error_code));
	return 0;
}

static int on_stream_close(nghttp2_session *h2, int32_t id, uint32_t error, void *user)
{
	struct sba_channel_stream *s = stream_of(h2, id);
	(void)user;
	if (!s)
		return 0;
	s->open = false;
	s->paused = false;
	if (!s->ended) {
		s->ended = true;
		s->reset = error ? error : NGHTTP2_CANCEL;
	}
	if (s->held)
		sba_channel_stream_signal(s);
	else if (sba_tunnel_over(s))
		sba_channel_stream_free(s);
	return 0;
}

/* ---- what goes ---- */

static ssize_t on_send(nghttp2_session *h2, const uint8_t *data, size_t len, int flags, void *user)
{
	struct sba_channel *c = user;
	size_t room;
	unsigned char *tail = sba_channel_out_tail(c, &room);
	(void)h2;
	(void)flags;
	if (room == 0)
		return NGHTTP2_ERR_WOULDBLOCK;
	if (len > room)
		len = room;
	memcpy(tail, data, len);
	c->out_len += len;
	return (ssize_t)len;
}

static ssize_t take_output(struct sba_channel_stream *s, unsigned char *to, size_t size)
{
	size_t left = s->out.len - s->out_at;
	size_t n = left < size ? left : size;
	if (n > 0)
		memcpy(to, s->out.data + s->out_at, n);
	s->out_at += n;
	if (s->out_at == s->out.len) {
		sba_buf_reset(&s->out);
		s->out_at = 0;
	}
	if (s->want_room && s->out.len - s->out_at <= SBA_CHANNEL_SEND_MAX / 2) {
		s->want_room = false;
		sba_channel_stream_signal(s);
	}
	if (n == 0 && s->out_end)
		return -1;
	return (ssize_t)n;
}

/* Puts the bytes behind the place of their frame's head: nghttp2 calls for
 * that at once. */
static ssize_t source(nghttp2_session *h2, int32_t id, uint8_t *buf, size_t length, uint32_t *flags,
		      nghttp2_data_source *src, void *user)
{
	struct sba_channel *c = user;
	struct sba_channel_stream *s = src->ptr;
	size_t room;
	unsigned char *tail = sba_channel_out_tail(c, &room);
	(void)h2;
	(void)id;
	(void)buf;
	if (room < FRAME_ROOM)
		return NGHTTP2_ERR_PAUSE;
	if (length > room - FRAME_HEAD)
		length = room - FRAME_HEAD;
	ssize_t n = s->kind == SBA_STREAM_TUNNEL ? sba_tunnel_read(s, tail + FRAME_HEAD, length)
						 : take_output(s, tail + FRAME_HEAD, length);
	if (n < 0) {
		*flags |= NGHTTP2_DATA_FLAG_EOF;
		return 0;
	}
	if (n == 0) {
		s->paused = true;
		return NGHTTP2_ERR_DEFERRED;
	}
	*flags |= NGHTTP2_DATA_FLAG_NO_COPY;
	return n;
}

static int on_send_data(nghttp2_session *h2, nghttp2_frame *frame, const uint8_t *head,
			size_t length, nghttp2_data_source *src, void *user)
{
	struct sba_channel *c = user;
	(void)h2;
	(void)frame;
	(void)src;
	memcpy(c->out.data + c->out_len, head, FRAME_HEAD);
	c->out_len += FRAME_HEAD + length;
	return 0;
}

static ssize_t frame_length(nghttp2_session *h2, uint8_t type, int32_t id, int32_t connection,
			    int32_t stream, uint32_t max_frame, void *user)
{
	int32_t length = connection < stream ? connection : stream;
	(void)h2;
	(void)type;
	(void)id;
	(void)user;
	if (length > SBA_CHANNEL_FRAME_MAX)
		length = SBA_CHANNEL_FRAME_MAX;
	return (uint32_t)length < max_frame ? length : (ssize_t)max_frame;
}

/* ---- streams ---- */

#define NV(name, value, len)                                                                       \
	{                                                                                          \
		(uint8_t *)(name), (uint8_t *)(value), sizeof(name) - 1, (len),                    \
			NGHTTP2_NV_FLAG_NONE                                                       \
	}

static void submit(struct sba_channel_stream *s)
{
	struct sba_channel *c = s->c;
	const nghttp2_nv head[] = {
		NV(":method", "POST", 4),
		NV(":scheme", "http", 4),
		NV(":authority", "guest", 5),
		NV(":path", s->path, strlen(s->path)),
	};
	const nghttp2_data_provider provider = { .source.ptr = s, .read_callback = source };
	struct sba_error why;
	s->id = nghttp2_submit_request(c->h2, NULL, head, SBA_ARRAY_LEN(head), &provider, s);
	s->open = s->id > 0;
	if (s->open)
		return;
	sba_fail(&why, SBA_ELOST, "channel: no more streams (%s)", nghttp2_strerror(s->id));
	sba_channel_die(c, &why);
}

/* A stream whose bytes are taken gets more room, as long as there is some. */
static void widen(struct sba_channel_stream *s)
{
	struct sba_channel *c = s->c;
	size_t more = SBA_CHANNEL_STREAM_WINDOW - s->window;
	if (more > c->spare / 2)
		more = c->spare / 2;
	if (more < SBA_CHANNEL_FIRST_WINDOW)
		return;
	if (nghttp2_session_set_local_window_size(c->h2, NGHTTP2_FLAG_NONE, s->id,
						  (int32_t)(s->window + more)) != 0)
		return;
	s->window += more;
	c->spare -= more;
}

void sba_h2_give_back(struct sba_channel_stream *s, size_t len)
{
	if (!s->open || s->ended)
		return;
	nghttp2_session_consume_stream(s->c->h2, s->id, len);
	widen(s);
}

/* What callers took comes in steps of their own; nghttp2 itself would tell of it only from
 * half of the window on, and who sends had too little left for the time that takes. */
static void give_back_taken(struct sba_channel_stream *s)
{
	int32_t len = (int32_t)s->taken;
	s->taken = 0;
	if (s->open && !s->ended &&
	    nghttp2_submit_window_update(s->c->h2, NGHTTP2_FLAG_NONE, s->id, len) == 0)
		widen(s);
}

static void work(struct sba_channel_stream *s)
{
	struct sba_channel *c = s->c;
	bool abandoned = !s->held && s->kind == SBA_STREAM_CALLER;
	if (!s->held && !s->open && (s->id != 0 || (abandoned && !s->refused))) {
		sba_channel_stream_free(s);
		return;
	}
	if (s->id == 0)
		submit(s);
	if (!s->open)
		return;
	if (s->kind == SBA_STREAM_TUNNEL && s->ended)
		sba_tunnel_cut(s);
	if (!c->failure.code && abandoned && !s->ended)
		nghttp2_submit_rst_stream(c->h2, NGHTTP2_FLAG_NONE, s->id, NGHTTP2_CANCEL);
	if (s->taken > 0)
		give_back_taken(s);
	bool ready = s->kind == SBA_STREAM_TUNNEL || s->out.len > s->out_at || s->out_end;
	if (s->paused && ready) {
		s->paused = false;
		nghttp2_session_resume_data(c->h2, s->id);
	}
}

void sba_h2_work(struct sba_channel *c)
{
	while (c->dirty && !c->failure.code) {
		struct sba_channel_stream *s = c->dirty;
		c->dirty = s->next_dirty;
		s->dirty = false;
		work(s);
	}
}

/* ---- the connection ---- */

static nghttp2_session_callbacks *make_callbacks(void)
{
	nghttp2_session_callbacks *cb;
	if (nghttp2_session_callbacks_new(&cb) != 0)
		return NULL;
	nghttp2_session_callbacks_set_send_callback(cb, on_send);
	nghttp2_session_callbacks_set_send_data_callback(cb, on_send_data);
	nghttp2_session_callbacks_set_on_begin_headers_callback(cb, on_begin_headers);
	nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_data);
	nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame);
	nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(cb, on_invalid);
	nghttp2_session_callbacks_set_on_frame_send_callback(cb, on_sent);
	nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_stream_close);
	nghttp2_session_callbacks_set_data_source_read_length_callback(cb, frame_length);
	return cb;
}

static nghttp2_option *make_options(void)
{
	nghttp2_option *o;
	if (nghttp2_option_new(&o) != 0)
		return NULL;
	nghttp2_option_set_no_auto_window_update(o, 1);
	nghttp2_option_set_no_closed_streams(o, 1);
	nghttp2_option_set_peer_max_concurrent_streams(o, SBA_CHANNEL_STREAMS_MAX);
	nghttp2_option_set_max_deflate_dynamic_table_size(o, SBA_CHANNEL_HPACK_TABLE);
	nghttp2_option_set_max_reserved_remote_streams(o, 0);
	return o;
}

static int greet(nghttp2_session *h2)
{
	static const nghttp2_settings_entry settings[] = {
		{ NGHTTP2_SETTINGS_HEADER_TABLE_SIZE, SBA_CHANNEL_HPACK_TABLE },
		{ NGHTTP2_SETTINGS_ENABLE_PUSH, 0 },
		{ NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 0 },
		{ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, SBA_CHANNEL_FIRST_WINDOW },
		{ NGHTTP2_SETTINGS_MAX_FRAME_SIZE, SBA_CHANNEL_FRAME_MAX },
		{ NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, SBA_CHANNEL_HEADER_BYTES },
	};
	int rc = nghttp2_submit_settings(h2, NGHTTP2_FLAG_NONE, settings, SBA_ARRAY_LEN(settings));
	return rc ? rc
		  : nghttp2_session_set_local_window_size(h2, NGHTTP2_FLAG_NONE, 0,
							  SBA_CHANNEL_WINDOW);
}

int sba_h2_open(struct sba_channel *c, struct sba_error *err)
{
	nghttp2_session_callbacks *cb = make_callbacks();
	nghttp2_option *o = make_options();
	int rc = cb && o ? nghttp2_session_client_new2(&c->h2, cb, c, o) : NGHTTP2_ERR_NOMEM;
	if (rc == 0)
		rc = greet(c->h2);
	nghttp2_session_callbacks_del(cb);
	nghttp2_option_del(o);
	return rc ? sba_fail_nomem(err) : 0;
}

/* What a callback found wrong says more than nghttp2's word for it. */
static int h2_failed(struct sba_channel *c, int rc, struct sba_error *err)
{
	if (c->failure.code) {
		if (err)
			*err = c->failure;
		return c->failure.code;
	}
	return sba_fail(err, rc == NGHTTP2_ERR_NOMEM ? SBA_ENOMEM : SBA_EPROTO, "channel: %s",
			nghttp2_strerror(rc));
}

int sba_h2_receive(struct sba_channel *c, const char *data, size_t len, struct sba_error *err)
{
	int rc = sba_flood_feed(&c->flood, data, len, c->heard, err);
	if (rc < 0)
		return sba_wrap(err, rc, "channel");
	ssize_t n = nghttp2_session_mem_recv(c->h2, (const uint8_t *)data, len);
	return n == (ssize_t)len ? 0 : h2_failed(c, n < 0 ? (int)n : NGHTTP2_ERR_PROTO, err);
}

int sba_h2_send(struct sba_channel *c, struct sba_error *err)
{
	int rc = nghttp2_session_send(c->h2);
	return rc || c->failure.code ? h2_failed(c, rc, err) : 0;
}

int sba_h2_ping(struct sba_channel *c, int64_t now_ms, struct sba_error *err)
{
	c->ping_last = (uint64_t)now_ms;
	int rc = nghttp2_submit_ping(c->h2, NGHTTP2_FLAG_NONE, (const uint8_t *)&c->ping_last);
	return rc ? h2_failed(c, rc, err) : 0;
}
