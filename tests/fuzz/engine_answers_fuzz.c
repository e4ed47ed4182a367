/* SPDX-License-Identifier: MIT */
/*
 * What an engine answers to questions about containers, images, events and itself: JSON of
 * any kind in good HTTP. The first byte says what is asked, the rest is what is answered,
 * cut at 0xff; the last piece is the answer to all that is asked after it.
 */
#include "sandbox/private.h"
#include "sandbox/sandbox.h"
#include "support/folder.h"

#include <sandbox-agent/sandbox-agent.h>

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char folder[64], host[128];
static int listener;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const uint8_t *at, *end; /* of the input; under the lock */

static void drop_folder(void)
{
	test_folder_remove(folder);
}

/* ---- the engine ---- */

static void answer(int fd, const char *type, const void *body, size_t len, bool head_only)
{
	char head[256];
	int n = snprintf(head, sizeof(head),
			 "HTTP/1.1 200 OK\r\nApi-Version: 1.41\r\nContent-Type: %s\r\n"
			 "Content-Length: %zu\r\n\r\n",
			 type, len);
	if (send(fd, head, (size_t)n, MSG_NOSIGNAL) != n || head_only)
		return;
	while (len > 0) {
		ssize_t sent = send(fd, body, len, MSG_NOSIGNAL);
		if (sent <= 0)
			return;
		body = (const char *)body + sent;
		len -= (size_t)sent;
	}
}

static void answer_piece(int fd)
{
	pthread_mutex_lock(&lock);
	const uint8_t *from = at, *cut = memchr(at, 0xff, (size_t)(end - at));
	size_t len = (size_t)((cut ? cut : end) - from);
	if (cut)
		at = cut + 1;
	answer(fd, "application/json", from, len, false);
	pthread_mutex_unlock(&lock);
}

/* One request after the other; none here has a body. */
static void serve(int fd)
{
	char text[16384];
	size_t len = 0;
	for (;;) {
		text[len] = '\0';
		char *rest = strstr(text, "\r\n\r\n");
		if (!rest) {
			ssize_t n = recv(fd, text + len, sizeof(text) - 1 - len, 0);
			if (n <= 0)
				return;
			len += (size_t)n;
			continue;
		}
		if (strstr(text, "/_ping "))
			answer(fd, "text/plain", "OK", 2, strncmp(text, "HEAD", 4) == 0);
		else
			answer_piece(fd);
		len -= (size_t)(rest + 4 - text);
		memmove(text, rest + 4, len);
	}
}

static void *serve_one(void *user)
{
	int fd = (int)(intptr_t)user;
	serve(fd);
	close(fd);
	return NULL;
}

static void *run(void *user)
{
	(void)user;
	for (int fd; (fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0;) {
		pthread_t thread;
		assert(pthread_create(&thread, NULL, serve_one, (void *)(intptr_t)fd) == 0);
		pthread_detach(thread);
	}
	return NULL;
}

static void start(void)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	pthread_t thread;
	test_folder(folder, sizeof(folder), "answers");
	atexit(drop_folder);
	snprintf(a.sun_path, sizeof(a.sun_path), "%s/s", folder);
	snprintf(host, sizeof(host), "unix://%s", a.sun_path);
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert(bind(listener, (struct sockaddr *)&a, sizeof(a)) == 0 && listen(listener, 8) == 0);
	assert(pthread_create(&thread, NULL, run, NULL) == 0);
}

/* ---- the questions ---- */

static void ask_list(struct sba_engine *e, struct sba_error *err)
{
	const struct sba_list_options o = { .prefix = "p", .all = true };
	struct sba_sandbox_list *l = NULL;
	if (sba_sandbox_list(e, &o, &l, err) < 0)
		return;
	for (size_t i = 0; i < sba_sandbox_list_count(l); i++) {
		const struct sba_sandbox_info *info = sba_sandbox_list_at(l, i);
		assert(info->name && info->state && info->image);
	}
	sba_sandbox_list_free(l);
}

static void ask_one(struct sba_engine *e, struct sba_error *err)
{
	struct sba_sandbox *s = NULL;
	char *text = NULL;
	if (sba_sandbox_open(e, "p", "n", &s, err) < 0)
		return;
	(void)!sba_sandbox_check_alive(s, "look", err);
	if (sba_sandbox_describe(s, &text, err) == 0)
		free(text);
	sba_sandbox_close(s);
}

static void ask_itself(struct sba_engine *e, struct sba_error *err)
{
	const struct sba_engine_info *info = NULL;
	char address[64];
	if (sba_engine_info(e, &info, err) == 0)
		assert(info->version && info->name && info->runc && info->arch);
	(void)!sba_engine_bridge_address(e, sba_until_in(5000), address, err);
}

static void ask_rest(struct sba_engine *e, struct sba_error *err)
{
	static const char *const labels[] = { "l", NULL };
	json_t *j = NULL;
	if (sba_engine_past_events(e, "l", 0, sba_until_in(5000), &j, err) == 0)
		json_decref(j);
	if (sba_container_changes(e, "c", sba_until_in(5000), &j, err) == 0)
		json_decref(j);
	if (sba_container_list(e, labels, sba_until_in(5000), &j, err) == 0)
		json_decref(j);
	if (sba_volume_unused(e, "l", sba_until_in(5000), &j, err) == 0)
		json_decref(j);
	if (sba_image_inspect(e, "i", sba_until_in(5000), &j, err) == 0)
		json_decref(j);
}

static void answers_are(const uint8_t *from, const uint8_t *to)
{
	pthread_mutex_lock(&lock);
	at = from;
	end = to;
	pthread_mutex_unlock(&lock);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const questions[])(struct sba_engine *,
					 struct sba_error *) = { ask_list, ask_one, ask_itself,
								 ask_rest };
	struct sba_engine *e = NULL;
	struct sba_error err = { 0 };
	if (size == 0)
		return 0;
	if (!host[0])
		start();
	answers_are(data + 1, data + size);
	const struct sba_engine_options o = { .host = host };
	assert(sba_engine_open(&o, &e, &err) == 0);
	questions[data[0] % SBA_ARRAY_LEN(questions)](e, &err);
	sba_engine_close(e);
	static const uint8_t nothing;
	answers_are(&nothing, &nothing); /* and what was being sent is out */
	return 0;
}
