/* SPDX-License-Identifier: MIT */
/*
 * How fast an answer goes through the relay: an endless-looking stream of
 * Chat Completions events of usual size, of which the relay reads the tokens
 * and looks for the key, against the same straight from the upstream.
 *
 * usage: relay_bench
 */
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "model/model.h"
#include "support/bench.h"

enum { MIB = 1024 * 1024, CHUNK = 16 * 1024 };
enum { OURS, DIRECT, SERIES };

#define TOKEN "00112233445566778899aabbccddeeff"
#define BODY  "{\"model\":\"m\",\"stream\":true,\"messages\":[]}"

static struct bench_series series[SERIES] = {
	[OURS] = { .name = "relay.ours", .unit = "MB/s" },
	[DIRECT] = { .name = "relay.direct", .unit = "MB/s" },
};

static const char event[] =
	"data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"model\":\"m\","
	"\"choices\":[{\"index\":0,\"delta\":{\"content\":\" some words of an answer\"},"
	"\"finish_reason\":null}]}\n\n";
static const char answer_head[] =
	"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n"
	"Connection: close\r\n\r\n";
static const char answer_end[] = "0\r\n\r\n";
static size_t total;

static void send_all(int fd, const char *data, size_t len)
{
	struct sba_error err;
	bench_must(sba_write_all(fd, data, len, &err), &err);
}

/* One HTTP chunk of whole events and a comment that fills it up. */
static void make_chunk(struct sba_buf *b)
{
	sba_buf_printf(b, "%x\r\n", CHUNK);
	size_t end = b->len + CHUNK;
	while (b->len + sizeof(event) + 3 < end)
		sba_buf_puts(b, event);
	sba_buf_putc(b, ':');
	while (b->len + 2 < end)
		sba_buf_putc(b, '-');
	sba_buf_puts(b, "\n\n\r\n");
}

static void answer_one(int fd, const struct sba_buf *chunk)
{
	char request[4096];
	size_t len = 0;
	ssize_t n = 1;
	while (n > 0 && !memmem(request, len, BODY, strlen(BODY))) {
		n = read(fd, request + len, sizeof(request) - len);
		len += n > 0 ? (size_t)n : 0;
	}
	send_all(fd, answer_head, strlen(answer_head));
	for (size_t sent = 0; sent < total; sent += CHUNK)
		send_all(fd, chunk->data, chunk->len);
	send_all(fd, answer_end, strlen(answer_end));
	close(fd);
}

/* Until the listener is shut down. */
static void *serve(void *user)
{
	SBA_BUF struct sba_buf chunk = SBA_BUF_INIT(2 * CHUNK);
	int listener = *(int *)user, fd;
	make_chunk(&chunk);
	while ((fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0)
		answer_one(fd, &chunk);
	return NULL;
}

static int listen_here(uint16_t *ret_port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&a, len) < 0 || listen(fd, 8) < 0 ||
	    getsockname(fd, (struct sockaddr *)&a, &len) < 0)
		bench_die("cannot listen");
	*ret_port = ntohs(a.sin_port);
	return fd;
}

/* One answer to its end, in MB/s. */
static double fetch(uint16_t port)
{
	static char piece[256 * 1024];
	static const char request[] =
		"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
		"Authorization: Bearer " TOKEN "\r\nContent-Type: application/json\r\n";
	const struct sockaddr_in a = { .sin_family = AF_INET,
				       .sin_port = htons(port),
				       .sin_addr = { htonl(INADDR_LOOPBACK) } };
	char length[64];
	size_t got = 0;
	ssize_t n;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	double began = bench_now_ms();
	if (fd < 0 || connect(fd, (const struct sockaddr *)&a, sizeof(a)) < 0)
		bench_die("cannot connect");
	snprintf(length, sizeof(length), "Content-Length: %zu\r\n\r\n%s", strlen(BODY), BODY);
	send_all(fd, request, strlen(request));
	send_all(fd, length, strlen(length));
	while ((n = read(fd, piece, sizeof(piece))) > 0)
		got += (size_t)n;
	close(fd);
	if (n < 0 || got < total)
		bench_die("answer of %zu bytes instead of %zu: %.200s", got, total, piece);
	return (double)total / 1e3 / (bench_now_ms() - began);
}

int main(void)
{
	uint16_t port;
	int listener = listen_here(&port);
	pthread_t server;
	char url[64];
	struct sba_relay *relay = NULL;
	struct sba_error err;
	total = (size_t)bench_number("SBA_BENCH_MIB", 256, 16 * 1024) * MIB;
	snprintf(url, sizeof(url), "http://127.0.0.1:%u", (unsigned)port);
	const struct sba_relay_options options = { .upstream = url,
						   .key = "sk-bench-0123456789",
						   .token = TOKEN };
	bench_must(sba_relay_open(&options, &relay, &err), &err);
	bench_must(sba_thread_start(&server, serve, &listener, &err), &err);
	for (int i = bench_rounds() / 3; i >= 0; i--) {
		bench_add(&series[DIRECT], fetch(port));
		bench_add(&series[OURS], fetch(sba_relay_port(relay)));
	}
	sba_relay_close(relay);
	shutdown(listener, SHUT_RDWR);
	pthread_join(server, NULL);
	close(listener);
	for (size_t i = 0; i < SERIES; i++)
		bench_print(&series[i]);
	return 0;
}
