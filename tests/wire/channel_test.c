/* SPDX-License-Identifier: MIT */
/* The host's end against a guest that lies, floods, cuts and falls silent. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "wire/channel_peer.h"

#include <stdatomic.h>

/* ---- what tests share ---- */

/* Opens, and then waits for the channel's death; its code. */
static int open_and_die(void (*play)(struct peer *p), const void *script, size_t len,
			struct sba_error *err)
{
	struct peer p = { .play = play, .script = script, .script_len = len };
	struct sba_channel *c;
	struct sba_channel_run *r;
	const char *data;
	int stream;
	int rc = peer_open(&p, &c, err);
	if (rc == 0) {
		/* A stream that never ends by itself. */
		rc = sba_channel_run_open(c, &r, err);
		if (rc == 0) {
			do {
				rc = (int)sba_channel_run_read(r, &stream, &data,
							       sba_until_in(PEER_WAIT_MS), err);
			} while (rc > 0);
			if (rc == 0)
				fail_msg("the stream ended in peace");
			sba_channel_run_close(r);
		}
		if (rc != SBA_ETIMEOUT)
			assert_int_equal(sba_channel_check(c, NULL), rc);
		sba_channel_close(c);
	}
	peer_close(&p);
	return rc;
}

static void expect_death(void (*play)(struct peer *p), int code)
{
	struct sba_error err = { 0 };
	int rc = open_and_die(play, NULL, 0, &err);
	if (rc != code)
		fail_msg("%d instead of %d: %s", rc, code, err.text);
}

static uint32_t begin_run(struct peer *p)
{
	peer_hello(p);
	return peer_await(p, NGHTTP2_HEADERS);
}

/* ---- the hello ---- */

static void play_byte_by_byte(struct peer *p)
{
	static const char bytes[] = "\0\0\0\4\0\0\0\0\0"     /* SETTINGS */
				    "\0\0\0\4\1\0\0\0\0"     /* and the word for the host's */
				    "\0\0\1\1\4\0\0\0\1\x88" /* 200 */
				    "\0\0\2\0\1\0\0\0\1" PEER_DIGITS(SBA_PROTOCOL_VERSION) "\n";
	char magic[24];
	assert_true(peer_read(p, magic, sizeof(magic)));
	peer_await(p, NGHTTP2_HEADERS);
	for (size_t i = 0; i < sizeof(bytes) - 1; i++) {
		int left = 1;
		peer_write(p, bytes + i, 1);
		while (left > 0 && ioctl(p->fd, SIOCOUTQ, &left) == 0)
			sched_yield();
	}
	peer_drain(p);
}

static void a_hello_cut_at_every_byte_is_understood(void **state)
{
	struct peer p = { .play = play_byte_by_byte };
	struct sba_channel *c;
	struct sba_error err = { 0 };
	(void)state;
	if (peer_open(&p, &c, &err) < 0)
		fail_msg("%s", err.text);
	sba_channel_close(c);
	peer_close(&p);
}

static void play_version(struct peer *p)
{
	peer_settings(p);
	uint32_t stream = peer_await(p, NGHTTP2_HEADERS);
	peer_answer(p, stream);
	peer_frame(p, NGHTTP2_DATA, H2_END_STREAM, stream, p->script, p->script_len);
	peer_drain(p);
}

static void another_version_is_unsupported(void **state)
{
	struct sba_error err = { 0 };
	(void)state;
	assert_int_equal(open_and_die(play_version, "1\n", 2, &err), SBA_EUNSUPPORTED);
	assert_int_equal(open_and_die(play_version, "x\n", 2, &err), SBA_EPROTO);
	assert_int_equal(open_and_die(play_version, "2", 1, &err), SBA_EPROTO);
	assert_int_equal(open_and_die(play_version, "2\nx", 3, &err), SBA_EPROTO);
	assert_int_equal(open_and_die(play_version, "", 0, &err), SBA_EPROTO);
}

/* ---- notices ---- */

static void play_notices(struct peer *p)
{
	static const char pieces[][8] = { "m\0\0", "\0\3", "?\377\377\377\377q\0", "\0\1\0m",
					  "\0\0\0\2" };
	static const size_t sizes[] = { 3, 2, 7, 4, 4 };
	peer_hello(p);
	uint32_t stream = peer_await(p, NGHTTP2_HEADERS);
	peer_answer(p, stream);
	for (size_t i = 0; i < SBA_ARRAY_LEN(pieces); i++)
		peer_frame(p, NGHTTP2_DATA, 0, stream, pieces[i], sizes[i]);
	peer_drain(p);
}

static void notices_are_added_up_wherever_they_are_cut(void **state)
{
	struct peer p = { .play = play_notices };
	struct sba_channel_pressure sum = { 0 };
	struct sba_channel *c;
	struct sba_error err = { 0 };
	(void)state;
	if (peer_open(&p, &c, &err) < 0 || sba_channel_want_notices(c, &err) < 0)
		fail_msg("%s", err.text);
	for (int64_t limit = sba_now_ms() + PEER_WAIT_MS; sum.oom_kills < 5; poll(NULL, 0, 2)) {
		assert_true(sba_now_ms() < limit);
		sba_channel_pressure(c, &sum);
	}
	assert_int_equal(sum.oom_kills, 5);
	assert_int_equal(sum.pids_refused, 256);
	sba_channel_close(c);
	peer_close(&p);
}

static void play_refusing_notices(struct peer *p)
{
	peer_hello(p);
	uint32_t stream = peer_await(p, NGHTTP2_HEADERS);
	peer_frame(p, NGHTTP2_HEADERS, H2_END_HEADERS | H2_END_STREAM, stream, "\x8e", 1); /* 500 */
	peer_drain(p);
}

static void a_guest_without_notices_does_for_the_rest(void **state)
{
	struct peer p = { .play = play_refusing_notices };
	struct sba_channel *c;
	struct sba_error err = { 0 };
	size_t left = 1;
	(void)state;
	if (peer_open(&p, &c, &err) < 0 || sba_channel_want_notices(c, &err) < 0)
		fail_msg("%s", err.text);
	for (int64_t limit = sba_now_ms() + PEER_WAIT_MS; left > 0; poll(NULL, 0, 2)) {
		assert_true(sba_now_ms() < limit);
		pthread_mutex_lock(&c->lock);
		left = c->n_streams;
		pthread_mutex_unlock(&c->lock);
	}
	assert_int_equal(sba_channel_check(c, NULL), 0);
	sba_channel_close(c);
	peer_close(&p);
}

static void play_text(struct peer *p)
{
	peer_write(p, p->script, p->script_len);
}

static void text_instead_of_a_guest_is_told(void **state)
{
	static const char text[] = "OCI runtime exec failed: no such file or directory\r\n";
	struct sba_error err = { 0 };
	(void)state;
	assert_int_equal(open_and_die(play_text, text, sizeof(text) - 1, &err), SBA_ELOST);
	assert_non_null(strstr(err.text, "OCI runtime exec failed"));
	assert_int_equal(open_and_die(play_text, "", 0, &err), SBA_ELOST);
}

/* ---- floods ---- */

struct flood {
	uint8_t type, flags;
	bool on_stream;
	const char *payload;
	size_t len;
};

static void play_flood(struct peer *p)
{
	const struct flood *f = p->script;
	uint32_t stream = begin_run(p);
	for (int i = 0; i < 2 * SBA_CHANNEL_CONTROL_MAX; i++)
		peer_frame(p, f->type, f->flags, f->on_stream ? stream : 0, f->payload, f->len);
	peer_drain(p);
}

static void a_flood_of_control_frames_ends_the_channel(void **state)
{
	static const struct flood floods[] = {
		{ NGHTTP2_SETTINGS, 0, false, "", 0 },
		{ NGHTTP2_PING, 0, false, "12345678", 8 },
		{ NGHTTP2_PRIORITY, 0, true, "\0\0\0\0\1", 5 },
		{ NGHTTP2_DATA, 0, true, "", 0 },
		{ NGHTTP2_WINDOW_UPDATE, 0, false, "\0\0\0\1", 4 },
		{ NGHTTP2_WINDOW_UPDATE, 0, true, "\0\0\0\1", 4 },
		{ 0xbe, 0, false, "what is this", 12 },
	};
	(void)state;
	for (size_t i = 0; i < SBA_ARRAY_LEN(floods); i++) {
		struct sba_error err = { 0 };
		int rc = open_and_die(play_flood, &floods[i], sizeof(floods[i]), &err);
		if (rc != SBA_EPROTO)
			fail_msg("flood %zu: %d %s", i, rc, err.text);
	}
}

/* ---- header blocks ---- */

static void play_headers(struct peer *p)
{
	uint32_t stream = begin_run(p);
	peer_frame(p, NGHTTP2_HEADERS, H2_END_HEADERS, stream, p->script, p->script_len);
	peer_drain(p);
}

static void expect_headers_refused(const struct sba_buf *block)
{
	struct sba_error err = { 0 };
	int rc = open_and_die(play_headers, block->data, block->len, &err);
	if (rc != SBA_EPROTO)
		fail_msg("%d: %s", rc, err.text);
}

/* A literal field that is not added to the table. */
static void put_field(struct sba_buf *b, char name, size_t value_len)
{
	sba_buf_put(b, "\0\1", 2);
	sba_buf_putc(b, name);
	sba_buf_putc(b, 0x7f); /* the length: 127 and more */
	for (size_t rest = value_len - 127;; rest >>= 7) {
		sba_buf_putc(b, (char)(rest < 128 ? rest : (rest & 127) | 128));
		if (rest < 128)
			break;
	}
	for (size_t i = 0; i < value_len; i++)
		sba_buf_putc(b, 'v');
}

static void too_many_header_fields_end_the_channel(void **state)
{
	SBA_BUF struct sba_buf block = SBA_BUF_INIT(SBA_MIB);
	(void)state;
	sba_buf_put(&block, "\x88", 1);
	for (int i = 0; i < SBA_CHANNEL_HEADERS_MAX; i++)
		put_field(&block, 'a', 127);
	expect_headers_refused(&block);
}

static void too_large_headers_end_the_channel(void **state)
{
	SBA_BUF struct sba_buf block = SBA_BUF_INIT(SBA_MIB);
	(void)state;
	sba_buf_put(&block, "\x88", 1);
	put_field(&block, 'a', SBA_CHANNEL_HEADER_BYTES);
	expect_headers_refused(&block);
}

static void an_hpack_bomb_ends_the_channel(void **state)
{
	SBA_BUF struct sba_buf block = SBA_BUF_INIT(SBA_MIB);
	(void)state;
	sba_buf_put(&block, "\x88\x40\1x\x7f\x81\x1e", 7); /* one field of 4,000 bytes, kept */
	for (int i = 0; i < 127 + 1 + 30 * 128; i++)
		sba_buf_putc(&block, 'v');
	for (int i = 0; i < 20000; i++)
		sba_buf_putc(&block, (char)0xbe); /* that one again, a byte each */
	expect_headers_refused(&block);
}

static void play_continuations(struct peer *p)
{
	uint32_t stream = begin_run(p);
	peer_frame(p, NGHTTP2_HEADERS, 0, stream, "\x88", 1);
	for (int i = 0; i < 2 * SBA_CHANNEL_CONTROL_MAX; i++)
		peer_frame(p, NGHTTP2_CONTINUATION, 0, stream, "\0\1a\1b", 5);
	peer_drain(p);
}

static void play_two_answers(struct peer *p)
{
	uint32_t stream = begin_run(p);
	/* 103 as often as it likes, then never 200. */
	for (int i = 0; i < 3; i++)
		peer_frame(p, NGHTTP2_HEADERS, H2_END_HEADERS, stream,
			   "\x08\x03"
			   "103",
			   5);
	peer_drain(p);
}

static void endless_headers_end_the_channel(void **state)
{
	(void)state;
	expect_death(play_continuations, SBA_EPROTO);
	expect_death(play_two_answers, SBA_EPROTO);
}

/* ---- what a server may not do ---- */

static void play_push(struct peer *p)
{
	uint32_t stream = begin_run(p);
	peer_frame(p, NGHTTP2_PUSH_PROMISE, H2_END_HEADERS, stream, "\0\0\0\2\x82\x86\x84\x41\1g",
		   10);
	peer_drain(p);
}

static void play_own_stream(struct peer *p)
{
	begin_run(p);
	peer_frame(p, NGHTTP2_HEADERS, H2_END_HEADERS, 2, "\x82\x86\x84\x41\1g", 6);
	peer_drain(p);
}

static void play_idle_stream(struct peer *p)
{
	begin_run(p);
	peer_frame(p, NGHTTP2_HEADERS, H2_END_HEADERS, 99, "\x88", 1);
	peer_drain(p);
}

static void play_large_frame(struct peer *p)
{
	static const char zeros[SBA_CHANNEL_FRAME_MAX + 1];
	uint32_t stream = begin_run(p);
	peer_answer(p, stream);
	peer_frame(p, NGHTTP2_DATA, 0, stream, zeros, sizeof(zeros));
	peer_drain(p);
}

static void play_wrong_pong(struct peer *p)
{
	begin_run(p);
	peer_frame(p, NGHTTP2_PING, 1, 0, "\1\2\3\4\5\6\7\x8", 8);
	peer_drain(p);
}

static void play_goodbye(struct peer *p)
{
	begin_run(p);
	peer_frame(p, NGHTTP2_GOAWAY, 0, 0, "\0\0\0\0\0\0\0\0", 8);
	peer_drain(p);
}

static void play_bad_hpack(struct peer *p)
{
	uint32_t stream = begin_run(p);
	peer_frame(p, NGHTTP2_HEADERS, H2_END_HEADERS, stream, "\xff\xff\xff\xff\xff\xff", 6);
	peer_drain(p);
}

static void play_zero_window(struct peer *p)
{
	begin_run(p);
	peer_frame(p, NGHTTP2_WINDOW_UPDATE, 0, 0, "\0\0\0\0", 4);
	peer_drain(p);
}

static void play_window_overflow(struct peer *p)
{
	begin_run(p);
	peer_frame(p, NGHTTP2_WINDOW_UPDATE, 0, 0, "\x7f\xff\xff\xff", 4);
	peer_frame(p, NGHTTP2_WINDOW_UPDATE, 0, 0, "\x7f\xff\xff\xff", 4);
	peer_drain(p);
}

static void a_guest_that_breaks_the_rules_ends_the_channel(void **state)
{
	static void (*const plays[])(struct peer * p) = {
		play_push,        play_own_stream,  play_idle_stream,
		play_large_frame, play_wrong_pong,  play_goodbye,
		play_bad_hpack,   play_zero_window, play_window_overflow,
	};
	(void)state;
	for (size_t i = 0; i < SBA_ARRAY_LEN(plays); i++) {
		struct sba_error err = { 0 };
		int rc = open_and_die(plays[i], NULL, 0, &err);
		if (rc != SBA_EPROTO)
			fail_msg("play %zu: %d %s", i, rc, err.text);
	}
}

/* ---- windows ---- */

static void play_without_window(struct peer *p)
{
	static const char piece[SBA_CHANNEL_FRAME_MAX] = "\1\0\x7f\xfc";
	uint32_t stream = begin_run(p);
	peer_answer(p, stream);
	for (int i = 0; i < 1024; i++)
		peer_frame(p, NGHTTP2_DATA, 0, stream, piece, sizeof(piece));
	peer_drain(p);
}

/* The reader does not take anything: what came beyond the window is not kept. */
static void data_beyond_the_window_is_refused(void **state)
{
	struct peer p = { .play = play_without_window };
	struct sba_channel *c;
	struct sba_channel_run *r;
	struct sba_error err = { 0 };
	(void)state;
	assert_int_equal(peer_open(&p, &c, &err), 0);
	assert_int_equal(sba_channel_run_open(c, &r, &err), 0);
	assert_int_equal(sba_channel_run_write(r, "x", 1, &err), 1);
	for (bool over = false; !over;) {
		struct pollfd poll_fd = { sba_channel_run_fd(r), POLLIN, 0 };
		assert_true(poll(&poll_fd, 1, PEER_WAIT_MS) > 0);
		pthread_mutex_lock(&c->lock);
		assert_true(c->buffered <= SBA_CHANNEL_BUFFERED_MAX);
		over = c->failure.code || (c->streams && c->streams->ended);
		pthread_mutex_unlock(&c->lock);
	}
	sba_channel_run_close(r);
	sba_channel_close(c);
	peer_close(&p);
}

enum { MUCH = 9000, ROUNDS = 200 }; /* MUCH: beyond half of the first window */

/* Then little by little, the second always right behind the first. */
static void play_much_then_little(struct peer *p)
{
	static const char much[SBA_CHANNEL_PIECE_HEAD + MUCH] = { 1, 0, MUCH >> 8, MUCH & 0xff };
	uint32_t stream = begin_run(p);
	peer_answer(p, stream);
	peer_frame(p, NGHTTP2_DATA, 0, stream, much, sizeof(much));
	for (int i = 0; i < ROUNDS && peer_await(p, NGHTTP2_DATA) > 0; i++) {
		peer_frame(p, NGHTTP2_DATA, 0, stream, "\1\0\0\1x", 5);
		peer_frame(p, NGHTTP2_DATA, 0, stream, "\1\0\0\1y", 5);
	}
	peer_drain(p);
}

static void take_exactly(struct sba_channel_run *r, size_t len)
{
	while (len > 0) {
		int stream;
		const char *data;
		struct sba_error err;
		ssize_t n =
			sba_channel_run_read(r, &stream, &data, sba_until_in(PEER_WAIT_MS), &err);
		if (n <= 0)
			fail_msg("%zu bytes are missing: %s", len, err.text);
		assert_in_range(n, 1, len);
		len -= (size_t)n;
	}
}

/* The caller of a stream that moves much is woken less often. */
static void the_last_bytes_are_told_though_nothing_follows(void **state)
{
	struct peer p = { .play = play_much_then_little };
	struct sba_channel *c;
	struct sba_channel_run *r;
	struct sba_error err = { 0 };
	(void)state;
	assert_int_equal(peer_open(&p, &c, &err), 0);
	assert_int_equal(sba_channel_run_open(c, &r, &err), 0);
	assert_int_equal(sba_channel_run_write(r, "s", 1, &err), 1);
	take_exactly(r, MUCH);
	for (int i = 0; i < ROUNDS; i++) {
		assert_int_equal(sba_channel_run_write(r, "n", 1, &err), 1);
		take_exactly(r, 2);
	}
	sba_channel_run_close(r);
	sba_channel_close(c);
	peer_close(&p);
}

/* ---- all windows together ---- */

enum { ALL = SBA_CHANNEL_STREAMS_MAX };

/* What the host has granted, as the peer knows it. */
struct grants {
	int64_t connection, stream[2 * ALL + 8];
	atomic_bool beyond; /* the host has all that it granted, and is to get more */
};
static struct grants grants;

/* One frame of the host's; false when it is gone. */
static bool take_grant(struct peer *p, uint32_t *ret_begun)
{
	unsigned char head[9];
	static char body[1 << 16];
	uint32_t id, more;
	*ret_begun = 0;
	if (!peer_read(p, head, sizeof(head)))
		return false;
	size_t len = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
	if (len > sizeof(body) || (len > 0 && !peer_read(p, body, len)))
		return false;
	memcpy(&id, head + 5, sizeof(id));
	id = ntohl(id);
	if (head[3] == NGHTTP2_HEADERS)
		*ret_begun = id;
	if (head[3] != NGHTTP2_WINDOW_UPDATE || id >= SBA_ARRAY_LEN(grants.stream))
		return true;
	memcpy(&more, body, sizeof(more));
	*(id ? &grants.stream[id] : &grants.connection) += ntohl(more);
	return true;
}

static void send_granted(struct peer *p, uint32_t id)
{
	static const char zeros[SBA_CHANNEL_FRAME_MAX];
	while (grants.stream[id] > 0 && grants.connection > 0) {
		int64_t n = grants.stream[id] < grants.connection ? grants.stream[id]
								  : grants.connection;
		n = n < SBA_CHANNEL_FRAME_MAX ? n : SBA_CHANNEL_FRAME_MAX;
		peer_frame(p, NGHTTP2_DATA, 0, id, zeros, (size_t)n);
		grants.stream[id] -= n;
		grants.connection -= n;
	}
}

/* As much of each stream as the host lets it have; then one byte more of each. */
static void play_all_that_is_granted(struct peer *p)
{
	static const char much[SBA_CHANNEL_PIECE_HEAD + MUCH] = { 1, 0, MUCH >> 8, MUCH & 0xff };
	uint32_t begun = 0, last = 0;
	grants = (struct grants){ .connection = SBA_CHANNEL_WINDOW - (int64_t)sizeof(PEER_HELLO) };
	peer_hello(p);
	while (!atomic_load(&grants.beyond)) {
		struct pollfd poll_fd = { p->fd, POLLIN, 0 };
		if (poll(&poll_fd, 1, 5) > 0 && !take_grant(p, &begun))
			return;
		if (poll_fd.revents && begun > 0) {
			last = begun;
			peer_answer(p, begun);
			peer_frame(p, NGHTTP2_DATA, 0, begun, much, sizeof(much));
			grants.stream[begun] = SBA_CHANNEL_FIRST_WINDOW - (int64_t)sizeof(much);
			grants.connection -= (int64_t)sizeof(much);
		}
		for (uint32_t id = 1; last == 2 * ALL + 1 && id <= last; id += 2)
			send_granted(p, id);
	}
	for (uint32_t id = 3; id <= last; id += 2)
		peer_frame(p, NGHTTP2_DATA, 0, id, "!", 1);
	peer_drain(p);
}

struct sums {
	size_t buffered, windows, ended;
};

static struct sums sums_of(struct sba_channel *c)
{
	struct sums sum = { 0 };
	pthread_mutex_lock(&c->lock);
	sum.buffered = c->buffered;
	for (const struct sba_channel_stream *s = c->streams; s; s = s->next) {
		sum.windows += s->window;
		sum.ended += s->ended;
	}
	pthread_mutex_unlock(&c->lock);
	assert_true(sum.buffered <= SBA_CHANNEL_BUFFERED_MAX);
	assert_int_equal(sba_channel_check(c, NULL), 0);
	return sum;
}

/* Readers that were quick, and then read no more: all of it is kept, and no more than that;
 * what is beyond a stream's window ends that stream alone. */
static void all_streams_together_stay_below_what_may_be_buffered(void **state)
{
	struct peer p = { .play = play_all_that_is_granted };
	static struct sba_channel_run *runs[ALL];
	struct sba_channel *c;
	struct sba_error err = { 0 };
	struct sums sum = { 0 };
	int64_t limit = sba_now_ms() + 2 * PEER_WAIT_MS;
	(void)state;
	assert_int_equal(peer_open(&p, &c, &err), 0);
	for (size_t i = 0; i < ALL; i++) {
		assert_int_equal(sba_channel_run_open(c, &runs[i], &err), 0);
		assert_int_equal(sba_channel_run_write(runs[i], "s", 1, &err), 1);
		take_exactly(runs[i], MUCH);
	}
	for (; sum.windows == 0 || sum.buffered < sum.windows; poll(NULL, 0, 2)) {
		assert_true(sba_now_ms() < limit);
		sum = sums_of(c);
	}
	assert_int_equal(sum.buffered, sum.windows);
	assert_in_range(sum.windows, SBA_CHANNEL_BUFFERED_MAX - 4 * SBA_CHANNEL_FIRST_WINDOW,
			SBA_CHANNEL_BUFFERED_MAX);
	atomic_store(&grants.beyond, true);
	for (; sum.ended < ALL; poll(NULL, 0, 2)) {
		assert_true(sba_now_ms() < limit);
		sum = sums_of(c);
	}
	for (size_t i = 0; i < ALL; i++)
		sba_channel_run_close(runs[i]);
	assert_int_equal(sums_of(c).buffered, 0);
	sba_channel_close(c);
	peer_close(&p);
}

/* ---- ends ---- */

static void play_end_at_once(struct peer *p)
{
	begin_run(p);
}

static void play_end_in_a_frame(struct peer *p)
{
	uint32_t stream = begin_run(p);
	peer_answer(p, stream);
	peer_write(p, "\0\0\x64\0\0\0\0\0", 8);
}

static void the_guests_end_is_told_at_once(void **state)
{
	int64_t began = sba_now_ms();
	(void)state;
	expect_death(play_end_at_once, SBA_ELOST);
	expect_death(play_end_in_a_frame, SBA_ELOST);
	assert_true(sba_now_ms() - began < 5000);
}

static void play_cut_piece(struct peer *p)
{
	uint32_t stream = begin_run(p);
	peer_answer(p, stream);
	peer_frame(p, NGHTTP2_DATA, H2_END_STREAM, stream, "\1\0\0\5hel", 7);
	peer_drain(p);
}

static void play_reset(struct peer *p)
{
	uint32_t stream = begin_run(p);
	peer_answer(p, stream);
	peer_frame(p, NGHTTP2_RST_STREAM, 0, stream, "\0\0\0\2", 4);
	peer_drain(p);
}

static int read_to_end(struct sba_channel_run *r, struct sba_error *err)
{
	const char *data;
	int stream;
	ssize_t n;
	do {
		n = sba_channel_run_read(r, &stream, &data, sba_until_in(PEER_WAIT_MS), err);
	} while (n > 0);
	return (int)n;
}

static void expect_stream_end(void (*play)(struct peer *p), int code)
{
	struct peer p = { .play = play };
	struct sba_channel *c;
	struct sba_channel_run *r;
	struct sba_error err = { 0 };
	assert_int_equal(peer_open(&p, &c, &err), 0);
	assert_int_equal(sba_channel_run_open(c, &r, &err), 0);
	assert_int_equal(read_to_end(r, &err), code);
	sba_channel_run_close(r);
	assert_int_equal(sba_channel_check(c, &err), 0);
	sba_channel_close(c);
	peer_close(&p);
}

static void a_broken_stream_does_not_end_the_channel(void **state)
{
	(void)state;
	expect_stream_end(play_cut_piece, SBA_EPROTO);
	expect_stream_end(play_reset, SBA_ELOST);
}

static void play_silence(struct peer *p)
{
	begin_run(p);
	peer_drain(p);
}

static void a_silent_guest_is_lost(void **state)
{
	int64_t began = sba_now_ms();
	(void)state;
	expect_death(play_silence, SBA_ELOST);
	assert_in_range(sba_now_ms() - began, SBA_CHANNEL_SILENCE_MS - 500,
			SBA_CHANNEL_SILENCE_MS + 3000);
}

static void a_reason_given_from_outside_is_told(void **state)
{
	struct peer p = { .play = play_silence };
	struct sba_channel *c;
	struct sba_channel_run *r;
	struct sba_error why = { 0 }, err = { 0 };
	(void)state;
	assert_int_equal(peer_open(&p, &c, &err), 0);
	assert_int_equal(sba_channel_run_open(c, &r, &err), 0);
	sba_fail(&why, SBA_EBROKEN, "the container ran out of memory");
	sba_channel_fail(c, &why);
	assert_int_equal(read_to_end(r, &err), SBA_EBROKEN);
	assert_string_equal(err.text, why.text);
	assert_int_equal(sba_channel_run_write(r, "x", 1, &err), SBA_EBROKEN);
	sba_channel_run_close(r);
	assert_int_equal(sba_channel_run_open(c, &r, &err), SBA_EBROKEN);
	sba_channel_close(c);
	peer_close(&p);
}

static void waiting_ends_with_its_time(void **state)
{
	struct peer p = { .play = play_silence };
	struct sba_channel *c;
	struct sba_channel_run *r;
	struct sba_error err = { 0 };
	const char *data;
	int stream;
	(void)state;
	assert_int_equal(peer_open(&p, &c, &err), 0);
	assert_int_equal(sba_channel_run_open(c, &r, &err), 0);
	assert_int_equal(sba_channel_run_read(r, &stream, &data, sba_until_in(30), &err),
			 SBA_ETIMEOUT);
	sba_channel_run_close(r);
	sba_channel_close(c);
	peer_close(&p);
}

static int limit_time(void **state)
{
	(void)state;
	alarm(60);
	return 0;
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup(f, limit_time)
	static const struct CMUnitTest tests[] = {
		TEST(a_hello_cut_at_every_byte_is_understood),
		TEST(notices_are_added_up_wherever_they_are_cut),
		TEST(a_guest_without_notices_does_for_the_rest),
		TEST(another_version_is_unsupported),
		TEST(text_instead_of_a_guest_is_told),
		TEST(a_flood_of_control_frames_ends_the_channel),
		TEST(too_many_header_fields_end_the_channel),
		TEST(too_large_headers_end_the_channel),
		TEST(an_hpack_bomb_ends_the_channel),
		TEST(endless_headers_end_the_channel),
		TEST(a_guest_that_breaks_the_rules_ends_the_channel),
		TEST(data_beyond_the_window_is_refused),
		TEST(all_streams_together_stay_below_what_may_be_buffered),
		TEST(the_last_bytes_are_told_though_nothing_follows),
		TEST(the_guests_end_is_told_at_once),
		TEST(a_broken_stream_does_not_end_the_channel),
		TEST(a_silent_guest_is_lost),
		TEST(a_reason_given_from_outside_is_told),
		TEST(waiting_ends_with_its_time),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
