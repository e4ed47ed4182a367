/* SPDX-License-Identifier: MIT */
/*
 * What a guest answers to requests for files: any bytes, in whole frames. The first
 * byte says what is asked for. What comes out of it is bounded and ended, and the
 * channel outlives it.
 */
#include "channel/private.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
	ANSWER_MAX = 8 * 1024, /* within the first window */
	ZEROS_MAX = 1024 * 1024,
	FRAME_HEAD = 9,
	END_STREAM = 1,
	END_HEADERS = 4,
	ACK = 1,
	ROOM = 64 * 1024,
};

#define DIGITS_(n) #n
#define DIGITS(n)  DIGITS_(n)

/* ---- the guest ---- */

static struct {
	int fd;
	const uint8_t *answer;
	size_t len;
} guest;

static void put_frame(uint8_t type, uint8_t flags, const uint8_t id[4], const void *data,
		      size_t len)
{
	uint8_t frame[FRAME_HEAD + ANSWER_MAX] = { 0, (uint8_t)(len >> 8), (uint8_t)len, type,
						   flags };
	memcpy(frame + 5, id, 4);
	if (len > 0)
		memcpy(frame + FRAME_HEAD, data, len);
	(void)!send(guest.fd, frame, FRAME_HEAD + len, MSG_NOSIGNAL);
}

/* ":status: 200" of HPACK's static table. */
static void answer(const uint8_t id[4], const void *data, size_t len)
{
	put_frame(NGHTTP2_HEADERS, END_HEADERS, id, "\x88", 1);
	put_frame(NGHTTP2_DATA, END_STREAM, id, data, len);
}

static void *play(void *arg)
{
	static const char hello[] = DIGITS(SBA_PROTOCOL_VERSION) "\n";
	static const uint8_t none[4];
	uint8_t head[FRAME_HEAD];
	char in[ROOM];
	bool greeted = false;
	(void)arg;
	if (recv(guest.fd, in, 24, MSG_WAITALL) != 24)
		return NULL;
	put_frame(NGHTTP2_SETTINGS, 0, none, NULL, 0);
	while (recv(guest.fd, head, sizeof(head), MSG_WAITALL) == (ssize_t)sizeof(head)) {
		size_t len = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
		if (len > sizeof(in) ||
		    (len > 0 && recv(guest.fd, in, len, MSG_WAITALL) != (ssize_t)len))
			break;
		if (head[3] == NGHTTP2_PING && !(head[4] & ACK))
			put_frame(NGHTTP2_PING, ACK, none, in, len);
		if (head[3] != NGHTTP2_HEADERS)
			continue;
		if (greeted)
			answer(head + 5, guest.answer, guest.len);
		else
			answer(head + 5, hello, sizeof(hello) - 1);
		greeted = true;
	}
	return NULL;
}

static struct sba_channel *open_channel(void)
{
	int fds[2];
	struct sba_link *link;
	struct sba_channel *c = NULL;
	pthread_t thread;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		abort();
	guest.fd = fds[1];
	if (pthread_create(&thread, NULL, play, NULL) != 0 ||
	    sba_link_socket(fds[0], &link, NULL) < 0 ||
	    sba_channel_new(link, sba_until_in(20000), NULL, &c, NULL) < 0)
		abort();
	pthread_detach(thread);
	return c;
}

/* ---- what is asked for ---- */

static struct sba_until soon(void)
{
	return sba_until_in(10000);
}

static int sink(void *user, const void *data, size_t len, struct sba_error *err)
{
	size_t *all = user;
	(void)data;
	(void)err;
	*all += len;
	assert(*all <= ANSWER_MAX);
	return 0;
}

static ssize_t nothing(void *user, void *buf, size_t size, struct sba_error *err)
{
	(void)user;
	(void)buf;
	(void)size;
	(void)err;
	return 0;
}

static void note(void *user, const char *name, int why)
{
	(void)user;
	(void)why;
	assert(strlen(name) < ANSWER_MAX);
}

static int ask_names(struct sba_channel *c, bool census)
{
	SBA_BUF struct sba_buf names = SBA_BUF_INIT(ROOM);
	struct sba_channel_census all;
	struct sba_channel_ask *a;
	int rc = census ? sba_channel_census_begin(c, "/x", ROOM, &a, NULL)
			: sba_channel_file_list(c, "/x", ROOM, soon(), &names, NULL);
	if (census && rc == 0)
		rc = sba_channel_census_end(a, soon(), &all, &names, NULL);
	assert(rc < 0 || names.len == 0 || names.data[names.len - 1] == '\0');
	return rc;
}

static int ask_place(struct sba_channel *c)
{
	struct sba_channel_place place;
	int rc = sba_channel_place(c, "/x", soon(), &place, NULL);
	assert(rc < 0 || (place.path[0] == '/' && strlen(place.path) < sizeof(place.path)));
	return rc;
}

static int ask_content(struct sba_channel *c)
{
	SBA_BUF struct sba_buf content = SBA_BUF_INIT(ROOM);
	return sba_channel_file_read(c, "/x", ROOM, soon(), &content, NULL);
}

static int ask_tar(struct sba_channel *c)
{
	const struct sba_channel_tar_options o = { .path = "/x", .note = note };
	struct sba_channel_tar *t;
	char buf[512];
	size_t all = 0;
	ssize_t n = sba_channel_tar_open(c, &o, soon(), &t, NULL);
	if (n < 0)
		return (int)n;
	/* Few bytes may tell of many zeros. */
	while ((n = sba_channel_tar_read(t, buf, sizeof(buf), NULL)) > 0 && all < ZEROS_MAX)
		all += (size_t)n;
	sba_channel_tar_close(t);
	return n < 0 ? (int)n : 0;
}

static int ask_put(struct sba_channel *c, bool by_tar)
{
	const struct sba_channel_put_options o = { .folder = "/x", .make = true };
	struct sba_channel_put *p;
	bool flag;
	uint64_t kept;
	int rc = sba_channel_put_open(c, &o, soon(), &p, NULL);
	if (rc < 0)
		return rc;
	assert(sba_channel_put_stage(p, &flag)[0] == '/');
	if (by_tar)
		rc = sba_channel_put_tar(p, nothing, NULL, soon(), NULL);
	if (rc == 0)
		rc = sba_channel_put_commit(p, soon(), &flag, &kept, NULL);
	sba_channel_put_close(p);
	return rc;
}

static int ask(struct sba_channel *c, uint8_t what)
{
	struct sba_channel_stat st;
	size_t all = 0;
	bool asked;
	const struct sba_channel_write w = { .path = "/x", .source = nothing };
	const struct sba_channel_get get = { .path = "/x", .sink = sink, .user = &all };
	switch (what % 9) {
	case 0:
		return sba_channel_file_stat(c, "/x", true, soon(), &st, NULL);
	case 1:
		return ask_place(c);
	case 2:
		return ask_names(c, false);
	case 3:
		return ask_names(c, true);
	case 4:
		return ask_content(c);
	case 5:
		return sba_channel_file_get(c, &get, soon(), NULL);
	case 6:
		return ask_tar(c);
	case 7:
		return sba_channel_file_write(c, &w, soon(), &asked, NULL);
	default:
		return ask_put(c, what >= 0x80);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct sba_channel *c;
	if (size < 2 || size > ANSWER_MAX)
		return 0;
	if (c && sba_channel_check(c, NULL) < 0) {
		sba_channel_close(c);
		close(guest.fd);
		c = NULL;
	}
	if (!c)
		c = open_channel();
	guest.answer = data + 1;
	guest.len = size - 1;
	int rc = ask(c, data[0]);
	assert(rc <= 0 && rc != SBA_ETIMEOUT);
	assert(sba_channel_check(c, NULL) == 0);
	return 0;
}
