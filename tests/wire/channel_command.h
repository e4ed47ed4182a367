/* SPDX-License-Identifier: MIT */
/*
 * Commands over a channel, as a caller of channel.h has to speak: frames in,
 * records out. Include after cmocka.h.
 */
#ifndef SBA_TEST_CHANNEL_COMMAND_H
#define SBA_TEST_CHANNEL_COMMAND_H

#include "channel/channel.h"
#include "channel/protocol.h"
#include "wire/channel_peer.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

enum { COMMAND_WAIT_MS = 30 * 1000, COMMAND_OUT_MAX = 64 * 1024 * 1024 };
#define COMMAND_NONCE "0123456789abcdef0123456789abcdef"

struct command {
	struct sba_channel_run *run;
	struct sba_buf out[2]; /* stdout and stderr, records included */
	bool count_only;       /* keep only the last bytes of output */
	uint64_t bytes[2];
	uint64_t sum; /* of all of stdout, records included */
	bool ended[2];
	char kind; /* of the end record */
	int number;
	struct sba_error err;
};

static inline void command_frame(struct sba_buf *b, char type, const void *data, size_t len)
{
	uint32_t be = htonl((uint32_t)len);
	sba_buf_putc(b, type);
	sba_buf_put(b, &be, sizeof(be));
	sba_buf_put(b, data, len);
}

/* All of it; while there is no room, what comes is kept by `read`. */
static inline void command_put(struct command *k, const void *data, size_t len)
{
	for (const char *at = data; len > 0;) {
		ssize_t n = sba_channel_run_write(k->run, at, len, &k->err);
		if (n < 0)
			fail_msg("write: %s", k->err.text);
		at += n;
		len -= (size_t)n;
		if (len > 0) {
			struct pollfd p = { sba_channel_run_fd(k->run), POLLIN, 0 };
			if (poll(&p, 1, COMMAND_WAIT_MS) <= 0)
				fail_msg("no room to write");
		}
	}
}

static inline void command_send(struct command *k, char type, const void *data, size_t len)
{
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(COMMAND_OUT_MAX);
	command_frame(&b, type, data, len);
	command_put(k, b.data, b.len);
}

static inline void command_start(struct command *k, struct sba_channel *c, const char *const *argv,
				 bool input)
{
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(COMMAND_OUT_MAX);
	*k = (struct command){ .out = { SBA_BUF_INIT(COMMAND_OUT_MAX),
					SBA_BUF_INIT(COMMAND_OUT_MAX) } };
	if (sba_channel_run_open(c, &k->run, &k->err) < 0)
		fail_msg("%s", k->err.text);
	command_frame(&b, SBA_RUN_NONCE, COMMAND_NONCE, SBA_RUN_NONCE_LEN);
	for (; *argv; argv++)
		command_frame(&b, SBA_RUN_ARG, *argv, strlen(*argv));
	command_frame(&b, SBA_RUN_GO, "", 0);
	if (!input)
		command_frame(&b, SBA_RUN_EOF, "", 0);
	command_put(k, b.data, b.len);
}

static inline void command_sh(struct command *k, struct sba_channel *c, const char *script,
			      bool input)
{
	const char *const argv[] = { "sh", "-c", script, NULL };
	command_start(k, c, argv, input);
}

/* An end record at the end of what one stream said. */
static inline void command_look(struct command *k, int stream)
{
	static const char prefix[] = "sba-run:" COMMAND_NONCE ":";
	const struct sba_buf *b = &k->out[stream];
	const char *at = b->data;
	size_t left = b->len;
	if (left > SBA_RECORD_MAX) {
		at += left - SBA_RECORD_MAX;
		left = SBA_RECORD_MAX;
	}
	const char *found;
	while (left > 0 && (found = memmem(at, left, prefix, sizeof(prefix) - 1)) != NULL) {
		const char *kind = found + sizeof(prefix) - 1;
		if (*kind != SBA_RECORD_BEGUN) {
			k->kind = *kind;
			k->number = (int)strtol(kind + 2, NULL, 10);
			k->ended[stream] = true;
			return;
		}
		left -= (size_t)(kind - at);
		at = kind;
	}
}

static inline void command_keep(struct command *k, int stream, const char *data, size_t len)
{
	struct sba_buf *b = &k->out[stream];
	k->bytes[stream] += len;
	for (size_t i = 0; k->count_only && stream == 0 && i < len; i++)
		k->sum = k->sum * 31 + (unsigned char)data[i];
	if (k->count_only && b->len > 2 * SBA_RECORD_MAX)
		sba_buf_drop(b, b->len - SBA_RECORD_MAX);
	if (k->count_only && len > SBA_RECORD_MAX) {
		data += len - SBA_RECORD_MAX;
		len = SBA_RECORD_MAX;
	}
	sba_buf_put(b, data, len);
	assert_int_equal(b->failed, 0);
	command_look(k, stream);
}

/* One read: as sba_channel_run_read(). */
static inline ssize_t command_read(struct command *k, int64_t ms)
{
	const char *data;
	int stream;
	ssize_t n = sba_channel_run_read(k->run, &stream, &data, sba_until_in(ms), &k->err);
	if (n > 0)
		command_keep(k, stream == 2, data, (size_t)n);
	return n;
}

/* Reads until both streams have said that it ended; its kind. */
static inline char command_wait(struct command *k)
{
	while (!k->ended[0] || !k->ended[1]) {
		ssize_t n = command_read(k, COMMAND_WAIT_MS);
		if (n <= 0)
			fail_msg("read: %zd %s", n, n < 0 ? k->err.text : "ended");
	}
	return k->kind;
}

static inline void command_close(struct command *k)
{
	sba_channel_run_close(k->run);
	sba_buf_fini(&k->out[0]);
	sba_buf_fini(&k->out[1]);
}

/* It said that between the records. */
static inline void command_said(const struct command *k, const char *text)
{
	static const char begun[] =
		"\0sba-run:" COMMAND_NONCE ":b:" PEER_DIGITS(SBA_PROTOCOL_VERSION) ":";
	size_t len = strlen(text);
	assert_true(k->out[0].len >= sizeof(begun) + len);
	assert_memory_equal(k->out[0].data, begun, sizeof(begun));
	assert_memory_equal(k->out[0].data + sizeof(begun), text, len);
	assert_int_equal(k->out[0].data[sizeof(begun) + len], '\0');
}

/* Runs it to its end, which must be an exit with 0. */
static inline void command_ok(struct sba_channel *c, const char *script)
{
	struct command k;
	command_sh(&k, c, script, false);
	if (command_wait(&k) != SBA_END_EXIT || k.number != 0)
		fail_msg("'%s' ended with %c %d: %.*s", script, k.kind, k.number, (int)k.out[1].len,
			 k.out[1].data);
	command_close(&k);
}

#endif
