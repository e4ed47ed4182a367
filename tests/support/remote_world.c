/* SPDX-License-Identifier: MIT */
/* See remote_world.h. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/folder.h"
#include "support/remote_world.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *const remote_services[2] = { "opensandbox", "e2b" };

static bool is_meant(const struct remote_lie *l, const struct sba_http_request *r)
{
	return !strcmp(r->method, l->method) &&
	       (sba_starts_with(r->path, l->path) || sba_ends_with(r->path, l->path));
}

struct cut {
	struct sba_buf text;
	size_t at;
};

static ssize_t cut_read(void *user, char *buf, size_t size, int stop_fd)
{
	struct cut *c = user;
	size_t n = c->text.len - c->at < size ? c->text.len - c->at : size;
	(void)stop_fd;
	if (n == 0)
		return -1;
	memcpy(buf, c->text.data + c->at, n);
	c->at += n;
	return (ssize_t)n;
}

static void cut_free(void *user)
{
	sba_buf_fini(&((struct cut *)user)->text);
	free(user);
}

/* The beginning of a command's stream, as each of them says it. */
static void put_cut(struct remote_world *w, struct sba_http_answer *a)
{
	struct cut *c = calloc(1, sizeof(*c));
	static const char execd[] = "{\"type\":\"init\",\"text\":\"x\"}\n\n"
				    "{\"type\":\"stdout\",\"text\":\":YmVndW4K\"}\n\n";
	static const char *const envd[] = { "{\"event\":{\"start\":{\"pid\":7}}}",
					    "{\"event\":{\"data\":{\"stdout\":\"YmVndW4K\"}}}" };
	sba_buf_init(&c->text, 1 << 16);
	if (!strcmp(w->service, "opensandbox"))
		sba_buf_puts(&c->text, execd);
	for (size_t i = 0; !strcmp(w->service, "e2b") && i < 2; i++)
		sba_envelope_put(&c->text, envd[i], strlen(envd[i]));
	a->status = 200;
	a->stream = cut_read;
	a->stream_free = cut_free;
	a->stream_user = c;
}

static void put_lie(struct remote_world *w, const struct remote_lie *l, struct sba_http_answer *a)
{
	a->hang_up = l->hang_up;
	if (l->cut) {
		put_cut(w, a);
		return;
	}
	a->status = l->status;
	a->content_type = "application/json";
	sba_buf_init(&a->body, 1 << 16);
	sba_buf_puts(&a->body, l->body ? l->body : "");
	if (l->header)
		assert_int_equal(sba_strv_add(&a->headers, l->header, NULL), 0);
}

/* Where the key may be: at the control plane alone. */
static void look_for_key(struct remote_world *w, const struct sba_http_request *r)
{
	bool inside = sba_starts_with(r->path, "/x/") || sba_starts_with(r->path, "/process") ||
		      sba_starts_with(r->path, "/files") || sba_starts_with(r->path, "/health");
	SBA_STRV struct sba_strv all = { 0 };
	if (!inside || sba_http_request_headers(r, &all, NULL) < 0)
		return;
	for (size_t i = 0; i < all.n; i++)
		w->leaked = w->leaked || strstr(all.v[i], FAKE_KEY);
}

static bool lie(void *user, const struct sba_http_request *r, struct sba_http_answer *a)
{
	struct remote_world *w = user;
	bool lied = false;
	pthread_mutex_lock(&w->fake.lock);
	look_for_key(w, r);
	if (!strcmp(r->method, "POST") && sba_ends_with(r->path, "/sandboxes")) {
		sba_buf_reset(&w->body);
		sba_buf_put(&w->body, r->body, r->body_len);
	}
	for (size_t i = 0; w->lies && w->lies[i].method && !lied; i++) {
		if (!is_meant(&w->lies[i], r))
			continue;
		atomic_fetch_add(&w->seen, 1);
		lied = w->lies[i].times < 0 || w->lied[i]++ < w->lies[i].times;
		if (lied)
			put_lie(w, &w->lies[i], a);
	}
	pthread_mutex_unlock(&w->fake.lock);
	return lied;
}

static void spoil(void *user, const struct sba_http_request *r, struct sba_http_answer *a)
{
	struct remote_world *w = user;
	if (w->spoilt && is_meant(w->spoilt, r))
		a->hang_up = true;
}

void remote_world_open(struct remote_world *w, const char *key, const char *key_from)
{
	char url[80];
	bool os = !strcmp(w->service, "opensandbox");
	snprintf(url, sizeof(url), "%s%s", w->fake.url, os ? "/v1/" : "");
	const struct sba_remote_options o = { .url = url,
					      .sandbox_url = w->fake.url,
					      .key = key,
					      .key_from = key_from,
					      .workdir = w->folder,
					      .ready_ms = 20000 };
	assert_int_equal(sba_remote_open(w->service, &o, &w->remote, &w->err), 0);
}

void remote_world_begin(struct remote_world *w, const char *service, const struct remote_lie *lies)
{
	alarm(120);
	*w = (struct remote_world){ .service = service,
				    .lies = lies,
				    .body = SBA_BUF_INIT(1 << 20) };
	test_folder(w->folder, sizeof(w->folder), "remote");
	fake_remote_start(&w->fake, w->folder);
	w->fake.lie = lie;
	w->fake.spoil = spoil;
	w->fake.user = w;
	remote_world_open(w, FAKE_KEY, NULL);
}

void remote_world_end(struct remote_world *w)
{
	sba_remote_close(w->remote);
	fake_remote_stop(&w->fake);
	sba_buf_fini(&w->body);
	test_folder_remove(w->folder);
}

struct sba_sandbox_options remote_world_wish(void)
{
	return (struct sba_sandbox_options){ .name = "one", .image = "debian" };
}

int remote_world_create(struct remote_world *w, struct sba_sandbox **ret)
{
	const struct sba_sandbox_options o = remote_world_wish();
	return sba_remote_create(w->remote, &o, ret, &w->err);
}

struct sba_sandbox *remote_world_made(struct remote_world *w)
{
	struct sba_sandbox *s = NULL;
	if (remote_world_create(w, &s) < 0)
		fail_msg("%s", w->err.text);
	return s;
}
