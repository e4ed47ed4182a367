/* SPDX-License-Identifier: MIT */
/*
 * The other end of a channel over a socketpair: a guest that is played frame
 * by frame, or the real one as a process of this host. Include after cmocka.h.
 */
#ifndef SBA_TEST_CHANNEL_PEER_H
#define SBA_TEST_CHANNEL_PEER_H

#include "channel/private.h"
#include "image/image.h"

#include <arpa/inet.h>
#include <linux/sockios.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define PEER_DIGITS_(n) #n
#define PEER_DIGITS(n)  PEER_DIGITS_(n)
#define PEER_HELLO      PEER_DIGITS(SBA_PROTOCOL_VERSION) "\nprogram 0.1.0\n"

enum { PEER_WAIT_MS = 20 * 1000, H2_END_STREAM = 1, H2_END_HEADERS = 4 };

static inline void peer_pair(int fds[2])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
}

/* ---- a guest that is played ---- */

struct peer {
	int fd;
	pthread_t thread;
	void (*play)(struct peer *p);
	const void *script; /* for play */
	size_t script_len;
};

static inline void peer_write(struct peer *p, const void *data, size_t len)
{
	/* The host may have hung up, which is what many tests want. */
	for (const char *at = data; len > 0;) {
		ssize_t n = send(p->fd, at, len, MSG_NOSIGNAL);
		if (n <= 0)
			return;
		at += n;
		len -= (size_t)n;
	}
}

static inline void peer_frame(struct peer *p, uint8_t type, uint8_t flags, uint32_t stream,
			      const void *payload, size_t len)
{
	unsigned char head[9] = { (unsigned char)(len >> 16), (unsigned char)(len >> 8),
				  (unsigned char)len, type, flags };
	uint32_t id = htonl(stream);
	memcpy(head + 5, &id, sizeof(id));
	peer_write(p, head, sizeof(head));
	peer_write(p, payload, len);
}

static inline bool peer_read(struct peer *p, void *to, size_t len)
{
	return recv(p->fd, to, len, MSG_WAITALL) == (ssize_t)len;
}

/* Reads frames until one of that type; its stream, or 0 when the host is gone. */
static inline uint32_t peer_await(struct peer *p, uint8_t type)
{
	for (;;) {
		static char nowhere[1 << 16];
		unsigned char head[9];
		uint32_t id;
		if (!peer_read(p, head, sizeof(head)))
			return 0;
		size_t len = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
		if (len > sizeof(nowhere) || (len > 0 && !peer_read(p, nowhere, len)))
			return 0;
		memcpy(&id, head + 5, sizeof(id));
		if (head[3] == type)
			return ntohl(id);
	}
}

static inline void peer_drain(struct peer *p)
{
	char nowhere[4096];
	while (recv(p->fd, nowhere, sizeof(nowhere), 0) > 0)
		;
}

/* ":status: 200" of HPACK's static table. */
static inline void peer_answer(struct peer *p, uint32_t stream)
{
	peer_frame(p, NGHTTP2_HEADERS, H2_END_HEADERS, stream, "\x88", 1);
}

static inline void peer_settings(struct peer *p)
{
	char magic[24];
	assert_true(peer_read(p, magic, sizeof(magic)));
	peer_frame(p, NGHTTP2_SETTINGS, 0, 0, NULL, 0);
	peer_frame(p, NGHTTP2_SETTINGS, 1, 0, NULL, 0);
}

static inline void peer_hello(struct peer *p)
{
	peer_settings(p);
	uint32_t stream = peer_await(p, NGHTTP2_HEADERS);
	peer_answer(p, stream);
	peer_frame(p, NGHTTP2_DATA, H2_END_STREAM, stream, PEER_HELLO, sizeof(PEER_HELLO) - 1);
}

static inline void *peer_main(void *arg)
{
	struct peer *p = arg;
	p->play(p);
	shutdown(p->fd, SHUT_RDWR);
	return NULL;
}

/* What sba_channel_new() says over it. */
static inline int peer_open(struct peer *p, struct sba_channel **ret, struct sba_error *err)
{
	int fds[2];
	struct sba_link *link;
	peer_pair(fds);
	p->fd = fds[1];
	assert_int_equal(pthread_create(&p->thread, NULL, peer_main, p), 0);
	assert_int_equal(sba_link_socket(fds[0], &link, err), 0);
	return sba_channel_new(link, sba_until_in(PEER_WAIT_MS), NULL, ret, err);
}

static inline void peer_close(struct peer *p)
{
	pthread_join(p->thread, NULL);
	close(p->fd);
}

/* ---- the real guest ---- */

static inline int peer_guest_fd(void)
{
	struct sba_guest guest;
	int fd = memfd_create("guest", MFD_CLOEXEC);
	assert_int_equal(sba_guest_find(NULL, &guest, NULL), 0);
	assert_true(fd >= 0);
	assert_int_equal(sba_write_all(fd, guest.data, guest.len, NULL), 0);
	return fd;
}

struct guest {
	pid_t pid;
	struct sba_channel *c;
	struct sba_channel_hello hello;
};

static inline void guest_start(struct guest *g)
{
	int fds[2];
	struct sba_link *link;
	int program = peer_guest_fd();
	peer_pair(fds);
	g->pid = fork();
	assert_true(g->pid >= 0);
	if (g->pid == 0) {
		char guest[] = "guest", session[] = "session";
		char *const argv[] = { guest, session, NULL };
		if (dup2(fds[1], STDIN_FILENO) >= 0 && dup2(fds[1], STDOUT_FILENO) >= 0)
			fexecve(program, argv, environ);
		_exit(127);
	}
	close(program);
	close(fds[1]);
	assert_int_equal(sba_link_socket(fds[0], &link, NULL), 0);
	struct sba_error err = { 0 };
	if (sba_channel_new(link, sba_until_in(PEER_WAIT_MS), &g->hello, &g->c, &err) < 0)
		fail_msg("%s", err.text);
}

static inline void guest_stop(struct guest *g)
{
	sba_channel_close(g->c);
	assert_int_equal(waitpid(g->pid, NULL, 0), g->pid);
}

#endif
