/* SPDX-License-Identifier: MIT */
/*
 * Services of sandboxes that refuse, are busy, are never ready, break off, say keys back;
 * and what goes out to them. tests/integration/backends_test.c has what goes well.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <sandbox-agent/backend.h>

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "remote/private.h"
#include "support/fake_remote.h"
#include "support/folder.h"

/* ---- a service, and what it is told to do wrong ---- */

struct lie {
	const char *method, *path; /* of the requests meant; path: its beginning or its end */
	int times;                 /* the first so many; -1: all */
	int status;
	const char *body, *header;
	bool hang_up, cut; /* cut: a stream that breaks off */
};

struct world {
	char folder[64];
	struct fake_remote fake;
	struct sba_remote *remote;
	const char *service;
	const struct lie *lies, *spoilt;
	int lied[4];
	atomic_int seen;     /* requests that a lie is about */
	struct sba_buf body; /* of the last that made a sandbox */
	bool leaked;         /* the key went where it does not belong */
	struct sba_error err;
};

static bool is_meant(const struct lie *l, const struct sba_http_request *r)
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
static void put_cut(struct world *w, struct sba_http_answer *a)
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

static void put_lie(struct world *w, const struct lie *l, struct sba_http_answer *a)
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
static void look_for_key(struct world *w, const struct sba_http_request *r)
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
	struct world *w = user;
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
	struct world *w = user;
	if (w->spoilt && is_meant(w->spoilt, r))
		a->hang_up = true;
}

static void open_service(struct world *w, const char *key, const char *key_from)
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

static void begin(struct world *w, const char *service, const struct lie *lies)
{
	alarm(120);
	*w = (struct world){ .service = service, .lies = lies, .body = SBA_BUF_INIT(1 << 20) };
	test_folder(w->folder, sizeof(w->folder), "remote");
	fake_remote_start(&w->fake, w->folder);
	w->fake.lie = lie;
	w->fake.spoil = spoil;
	w->fake.user = w;
	open_service(w, FAKE_KEY, NULL);
}

static void end(struct world *w)
{
	sba_remote_close(w->remote);
	fake_remote_stop(&w->fake);
	sba_buf_fini(&w->body);
	test_folder_remove(w->folder);
}

static struct sba_sandbox_options wish(void)
{
	return (struct sba_sandbox_options){ .name = "one", .image = "debian" };
}

static int create(struct world *w, struct sba_sandbox **ret)
{
	const struct sba_sandbox_options o = wish();
	return sba_remote_create(w->remote, &o, ret, &w->err);
}

static struct sba_sandbox *made(struct world *w)
{
	struct sba_sandbox *s = NULL;
	if (create(w, &s) < 0)
		fail_msg("%s", w->err.text);
	return s;
}

static const char *const services[] = { "opensandbox", "e2b" };
#define FOR_EACH_SERVICE(i) for (size_t i = 0; i < SBA_ARRAY_LEN(services); i++)

/* ---- keys ---- */

static void a_key_that_is_not_taken_is_told_by_where_it_is_from(void **state)
{
	static const char wrong[] = "wrong-key-9876543210";
	(void)state;
	FOR_EACH_SERVICE(i)
	{
		struct world w;
		struct sba_sandbox *s = NULL;
		begin(&w, services[i], NULL);
		sba_remote_close(w.remote);
		open_service(&w, wrong, "SOME_VARIABLE");
		assert_int_equal(create(&w, &s), SBA_EPERM);
		assert_int_equal(w.err.http_status, 401);
		assert_non_null(strstr(w.err.hint, "SOME_VARIABLE"));
		assert_null(strstr(w.err.text, wrong));
		sba_remote_close(w.remote);
		open_service(&w, NULL, NULL);
		assert_int_equal(create(&w, &s), SBA_EPERM);
		assert_non_null(strstr(w.err.hint, "_API_KEY"));
		end(&w);
	}
}

static void a_key_in_an_error_is_starred_and_goes_nowhere_else(void **state)
{
	static const struct lie lies[] = {
		{ .method = "POST",
		  .path = "/sandboxes",
		  .times = 1,
		  .status = 400,
		  .body = "{\"code\":\"X\",\"message\":\"bad key " FAKE_KEY " here\"}" },
		{ 0 }
	};
	(void)state;
	FOR_EACH_SERVICE(i)
	{
		struct world w;
		struct sba_sandbox *s = NULL;
		begin(&w, services[i], lies);
		assert_int_equal(create(&w, &s), SBA_EINVAL);
		assert_null(strstr(w.err.text, FAKE_KEY));
		assert_non_null(strstr(w.err.text, "bad key *"));
		s = made(&w);
		sba_sandbox_close(s);
		assert_false(w.leaked);
		end(&w);
	}
}

/* ---- busy, broken, strange ---- */

static void what_is_busy_is_asked_again_where_that_is_harmless(void **state)
{
	static const struct lie lies[] = { { .method = "GET",
					     .path = "/sandboxes",
					     .times = 2,
					     .status = 503,
					     .header = "Retry-After: 0" },
					   { 0 } };
	static const struct lie making[] = { { .method = "POST",
					       .path = "/sandboxes",
					       .times = 1,
					       .status = 429,
					       .body = "{\"message\":\"too many\"}" },
					     { 0 } };
	(void)state;
	FOR_EACH_SERVICE(i)
	{
		struct world w;
		struct sba_sandbox *s = NULL;
		begin(&w, services[i], lies);
		s = made(&w);
		sba_sandbox_close(s);
		assert_true(w.lied[0] >= 3);
		assert_int_equal(w.fake.created, 1);
		end(&w);
		begin(&w, services[i], making);
		assert_int_equal(create(&w, &s), SBA_ELIMIT);
		assert_non_null(strstr(w.err.text, "too many"));
		assert_int_equal(w.fake.created, 0);
		end(&w);
	}
}

static void what_stays_busy_is_given_up_with_words(void **state)
{
	static const struct lie lies[] = { { .method = "GET",
					     .path = "/sandboxes",
					     .times = -1,
					     .status = 502,
					     .header = "Retry-After: 0",
					     .body = "<html>Bad Gateway</html>" },
					   { 0 } };
	(void)state;
	FOR_EACH_SERVICE(i)
	{
		struct world w;
		struct sba_sandbox *s = NULL;
		begin(&w, services[i], lies);
		assert_int_equal(create(&w, &s), SBA_EENGINE);
		assert_int_equal(w.err.http_status, 502);
		assert_int_equal(w.lied[0], 0);
		assert_int_equal(atomic_load(&w.seen), SBA_REMOTE_TRIES);
		end(&w);
	}
}

static void an_answer_that_is_none_of_its_api_is_told(void **state)
{
	static const struct lie lies[] = { { .method = "GET",
					     .path = "/sandboxes",
					     .times = -1,
					     .status = 200,
					     .body = "<html>hello</html>" },
					   { 0 } };
	static const struct lie empty[] = { { .method = "POST",
					      .path = "/sandboxes",
					      .times = -1,
					      .status = 200,
					      .body = "{\"id\":\"../../etc\","
						      "\"sandboxID\":\"a/b\"}" },
					    { 0 } };
	(void)state;
	FOR_EACH_SERVICE(i)
	{
		struct world w;
		struct sba_sandbox *s = NULL;
		begin(&w, services[i], lies);
		assert_int_equal(create(&w, &s), SBA_EPROTO);
		assert_non_null(strstr(w.err.hint, "URL"));
		end(&w);
		begin(&w, services[i], empty);
		assert_int_equal(create(&w, &s), SBA_EPROTO);
		end(&w);
	}
}

static void a_server_that_is_not_there_is_named(void **state)
{
	const struct sba_remote_options o = { .url = "http://127.0.0.1:1" };
	struct sba_remote *r = NULL;
	struct sba_sandbox_list *l = NULL;
	struct sba_error err = { 0 };
	(void)state;
	assert_int_equal(sba_remote_open("e2b", &o, &r, &err), 0);
	assert_int_equal(sba_remote_list(r, NULL, &l, &err), SBA_ECONNECT);
	assert_non_null(strstr(err.hint, "http://127.0.0.1:1"));
	sba_remote_close(r);
	assert_int_equal(sba_remote_open("nowhere", &o, &r, &err), SBA_EINVAL);
}

static void no_such_image_or_template_is_an_error_of_images(void **state)
{
	const struct sba_sandbox_options o = { .image = "none" };
	(void)state;
	FOR_EACH_SERVICE(i)
	{
		struct world w;
		struct sba_sandbox *s = NULL;
		begin(&w, services[i], NULL);
		assert_int_equal(sba_remote_create(w.remote, &o, &s, &w.err), SBA_EIMAGE);
		end(&w);
	}
}

/* ---- readiness ---- */

static void readiness_is_waited_for(void **state)
{
	static const struct lie os[] = {
		{ .method = "GET",
		  .path = "/endpoints/44772",
		  .times = 2,
		  .status = 404,
		  .body = "{\"code\":\"KUBERNETES::POD_IP_NOT_AVAILABLE\"}" },
		{ .method = "GET", .path = "/ping", .times = 2, .hang_up = true },
		{ 0 }
	};
	static const struct lie e2b[] = { { .method = "GET",
					    .path = "/health",
					    .times = 3,
					    .status = 502,
					    .body = "{\"message\":\"port is not open\"}" },
					  { 0 } };
	(void)state;
	FOR_EACH_SERVICE(i)
	{
		struct world w;
		begin(&w, services[i], i ? e2b : os);
		sba_sandbox_close(made(&w));
		assert_true(w.lied[0] >= 2);
		end(&w);
	}
}

static void what_is_never_ready_is_given_up_and_nothing_is_left(void **state)
{
	static const struct lie lies[] = {
		{ .method = "GET", .path = "/ping", .times = -1, .status = 502 },
		{ .method = "GET", .path = "/health", .times = -1, .status = 502 },
		{ 0 }
	};
	(void)state;
	FOR_EACH_SERVICE(i)
	{
		struct world w;
		struct sba_sandbox *s = NULL;
		begin(&w, services[i], lies);
		w.remote->ready_ms = 700;
		assert_int_equal(create(&w, &s), SBA_ETIMEOUT);
		assert_non_null(strstr(w.err.text, "not ready"));
		assert_int_equal(w.fake.created, 1);
		assert_int_equal(fake_remote_count(&w.fake), 0);
		end(&w);
	}
}

static void one_that_was_made_though_its_answer_was_lost_is_ended(void **state)
{
	static const struct lie lost = { .method = "POST", .path = "/sandboxes" };
	(void)state;
	FOR_EACH_SERVICE(i)
	{
		struct world w;
		struct sba_sandbox *s = NULL;
		begin(&w, services[i], NULL);
		w.spoilt = &lost;
		assert_int_equal(create(&w, &s), SBA_ELOST);
		assert_int_equal(w.fake.created, 1);
		assert_int_equal(fake_remote_count(&w.fake), 0);
		end(&w);
	}
}

/* ---- commands ---- */

static struct sba_process *start(struct sba_sandbox *s, const char *script, bool has_stdin)
{
	const char *const argv[] = { "sh", "-c", script, NULL };
	struct sba_process *p = NULL;
	struct sba_error err = { 0 };
	if (sba_sandbox_exec(s, &(struct sba_exec_options){ .argv = argv, .has_stdin = has_stdin },
			     &p, &err) < 0)
		fail_msg("%s", err.text);
	return p;
}

static void a_stream_that_breaks_off_is_lost_and_what_it_said_stays(void **state)
{
	static const struct lie lies[] = {
		{ .method = "POST", .path = "/command", .times = 1, .cut = true },
		{ .method = "POST", .path = "/process.Process/Start", .times = 1, .cut = true },
		{ 0 }
	};
	(void)state;
	FOR_EACH_SERVICE(i)
	{
		struct world w;
		struct sba_exit how;
		enum sba_output which;
		const char *data;
		begin(&w, services[i], NULL);
		struct sba_sandbox *s = made(&w);
		w.lies = lies;
		struct sba_process *p = start(s, "true", false);
		assert_int_equal(sba_process_read(p, -1, &which, &data, &w.err), 6);
		assert_memory_equal(data, "begun\n", 6);
		assert_int_equal(sba_process_read(p, -1, &which, &data, &w.err), 0);
		assert_int_equal(sba_process_wait(p, -1, &how, &w.err), SBA_ELOST);
		sba_process_free(p);
		sba_sandbox_close(s);
		end(&w);
	}
}

static void a_sandbox_that_is_gone_is_said_to_be(void **state)
{
	(void)state;
	FOR_EACH_SERVICE(i)
	{
		struct world w;
		struct sba_sandbox *s, *other = NULL;
		struct sba_exit how;
		begin(&w, services[i], NULL);
		s = made(&w);
		assert_int_equal(sba_remote_find(w.remote, NULL, "one", &other, &w.err), 0);
		assert_int_equal(sba_sandbox_remove(other, &w.err), 0);
		sba_sandbox_close(other);
		struct sba_process *p = start(s, "true", false);
		assert_int_equal(sba_process_wait(p, -1, &how, &w.err), SBA_EBROKEN);
		assert_non_null(strstr(w.err.text, "/one' is gone"));
		sba_process_free(p);
		assert_int_equal(sba_sandbox_remove(s, &w.err), 0);
		sba_sandbox_close(s);
		end(&w);
	}
}

static void input_for_one_that_does_not_read_is_nobodys(void **state)
{
	enum { SIZE = 2 << 20 };
	char *data = calloc(1, SIZE);
	const char *const argv[] = { "true", NULL };
	(void)state;
	FOR_EACH_SERVICE(i)
	{
		struct world w;
		struct sba_run_result r = { 0 };
		begin(&w, services[i], NULL);
		struct sba_sandbox *s = made(&w);
		const struct sba_run_options o = { .argv = argv, .input = data, .input_len = SIZE };
		assert_int_equal(sba_sandbox_run(s, &o, &r, &w.err), 0);
		assert_int_equal(sba_exit_status(&r.exit), 0);
		sba_run_result_fini(&r);
		sba_sandbox_close(s);
		end(&w);
	}
	free(data);
}

static void bytes_of_every_kind_come_out_as_they_are(void **state)
{
	(void)state;
	FOR_EACH_SERVICE(i)
	{
		struct world w;
		struct sba_run_result r = { 0 };
		begin(&w, services[i], NULL);
		struct sba_sandbox *s = made(&w);
		const char *const argv[] = { "printf", "a\\0b\\377\\r\\n\\001no end", NULL };
		assert_int_equal(
			sba_sandbox_run(s, &(struct sba_run_options){ .argv = argv }, &r, &w.err),
			0);
		assert_int_equal(r.out_len, 13);
		assert_memory_equal(r.out, "a\0b\377\r\n\001no end", 13);
		sba_run_result_fini(&r);
		sba_sandbox_close(s);
		end(&w);
	}
}

static void how_it_could_not_begin_is_told_apart(void **state)
{
	static const struct {
		const char *program, *workdir;
		int kind;
	} cases[] = { { "no-such-program", NULL, SBA_NOT_FOUND },
		      { "/no/such/program", NULL, SBA_NOT_FOUND },
		      { "/etc/passwd", NULL, SBA_CANNOT_RUN },
		      { "/tmp", NULL, SBA_CANNOT_RUN },
		      { "true", "/no/such/folder", SBA_NO_WORKDIR } };
	(void)state;
	FOR_EACH_SERVICE(i)
	{
		struct world w;
		begin(&w, services[i], NULL);
		struct sba_sandbox *s = made(&w);
		for (size_t k = 0; k < SBA_ARRAY_LEN(cases); k++) {
			const char *const argv[] = { cases[k].program, NULL };
			struct sba_run_result r = { 0 };
			const struct sba_run_options o = { .argv = argv,
							   .workdir = cases[k].workdir };
			assert_int_equal(sba_sandbox_run(s, &o, &r, &w.err), 0);
			assert_int_equal(r.exit.kind, cases[k].kind);
			assert_string_equal(r.err, "");
			sba_run_result_fini(&r);
		}
		sba_sandbox_close(s);
		end(&w);
	}
}

/* ---- what is there ---- */

static void one_is_found_by_its_name_and_listed_by_its_prefix(void **state)
{
	(void)state;
	FOR_EACH_SERVICE(i)
	{
		struct world w;
		struct sba_sandbox *s, *found = NULL;
		struct sba_sandbox_list *l = NULL;
		begin(&w, services[i], NULL);
		s = made(&w);
		for (int n = 0; n < 3; n++) {
			const struct sba_sandbox_options o = { .prefix = "other", .image = "x" };
			struct sba_sandbox *more = NULL;
			assert_int_equal(sba_remote_create(w.remote, &o, &more, &w.err), 0);
			sba_sandbox_close(more);
		}
		assert_int_equal(create(&w, &found), SBA_EEXIST);
		assert_int_equal(sba_remote_find(w.remote, NULL, "two", &found, &w.err),
				 SBA_ENOTFOUND);
		assert_int_equal(sba_remote_find(w.remote, NULL, "one", &found, &w.err), 0);
		assert_string_equal(strchr(sba_sandbox_info(found)->name, '/'), "/one");
		assert_string_equal(sba_sandbox_info(found)->image, "debian");
		assert_string_equal(sba_sandbox_info(found)->id, sba_sandbox_info(s)->id);
		assert_string_equal(sba_sandbox_workdir(found), sba_sandbox_workdir(s));
		sba_sandbox_close(found);
		assert_int_equal(sba_remote_list(w.remote, NULL, &l, &w.err), 0);
		assert_int_equal(sba_sandbox_list_count(l), 1);
		sba_sandbox_list_free(l);
		const struct sba_list_options all = { .prefix = "*" };
		assert_int_equal(sba_remote_list(w.remote, &all, &l, &w.err), 0);
		assert_int_equal(sba_sandbox_list_count(l), 4);
		sba_sandbox_list_free(l);
		sba_sandbox_close(s);
		assert_int_equal(fake_remote_count(&w.fake), 4);
		end(&w);
	}
}

static void no_more_are_made_than_are_allowed(void **state)
{
	(void)state;
	FOR_EACH_SERVICE(i)
	{
		struct world w;
		struct sba_sandbox *s = NULL;
		begin(&w, services[i], NULL);
		sba_sandbox_close(made(&w));
		struct sba_sandbox_options o = wish();
		o.name = "two";
		o.max_sandboxes = 1;
		assert_int_equal(sba_remote_create(w.remote, &o, &s, &w.err), SBA_ELIMIT);
		assert_int_equal(w.fake.created, 1);
		end(&w);
	}
}

static void what_a_service_cannot_is_refused_before_anything_is_made(void **state)
{
	static const char *const rules[] = { "example.org:443", NULL };
	static const char *const mounts[] = { "/a:/b", NULL };
	static const struct {
		const char *service;
		struct sba_sandbox_options o;
	} cases[] = {
		{ "e2b", { .memory = 1 << 30 } },
		{ "e2b", { .cpus = 1 } },
		{ "e2b", { .allow = rules } },
		{ "e2b", { .keepalive_ms = -1 } },
		{ "e2b", { .mounts = mounts } },
		{ "opensandbox", { .image = "x", .pids = 5 } },
		{ "opensandbox", { .image = "x", .user = "root" } },
		{ "opensandbox", { .image = "x", .allow = rules } },
	};
	(void)state;
	for (size_t i = 0; i < SBA_ARRAY_LEN(cases); i++) {
		struct world w;
		struct sba_sandbox *s = NULL;
		begin(&w, cases[i].service, NULL);
		assert_int_equal(sba_remote_create(w.remote, &cases[i].o, &s, &w.err),
				 SBA_EUNSUPPORTED);
		assert_int_equal(w.fake.created, 0);
		end(&w);
	}
}

static void what_is_asked_for_goes_out_in_their_words(void **state)
{
	static const char *const env[] = { "A=b=c", NULL };
	struct sba_sandbox_options o = wish();
	(void)state;
	o.env = env;
	o.network = "sealed";
	o.keepalive_ms = 120 * 1000;
	FOR_EACH_SERVICE(i)
	{
		struct world w;
		struct sba_sandbox *s = NULL;
		begin(&w, services[i], NULL);
		assert_int_equal(sba_remote_create(w.remote, &o, &s, &w.err), 0);
		sba_sandbox_close(s);
		SBA_JSON json_t *j = json_loadb(w.body.data, w.body.len, 0, NULL);
		assert_int_equal(sba_json_int(j, "timeout", 0), 120);
		const json_t *metadata = json_object_get(j, "metadata");
		assert_true(sba_marks_are(metadata, "sandbox-agent", "one"));
		assert_string_equal(sba_json_str(j, i ? "envVars.A" : "env.A"), "b=c");
		if (i)
			assert_false(sba_json_bool(j, "allow_internet_access", true));
		else
			assert_string_equal(sba_json_str(j, "networkPolicy.defaultAction"), "deny");
		end(&w);
	}
}

static void a_life_is_put_off_while_there_is_a_handle(void **state)
{
	(void)state;
	FOR_EACH_SERVICE(i)
	{
		struct world w;
		struct sba_remote_box *b = NULL;
		begin(&w, services[i], NULL);
		struct sba_sandbox *s = made(&w);
		SBA_JSON json_t *marks = json_deep_copy(sba_remote_box_of(s)->marks);
		assert_int_equal(
			sba_remote_box_new(w.remote, sba_remote_box_of(s)->id, marks, &b, &w.err),
			0);
		b->keepalive_ms = 300;
		unsigned before = w.fake.renewed;
		assert_int_equal(sba_remote_lease_start(b, &w.err), 0);
		int64_t until = sba_now_ms() + 30000;
		unsigned now = before;
		while (now < before + 3 && sba_now_ms() < until) {
			(void)!sba_wait_fd(-1, 0, sba_until_in(20), NULL);
			pthread_mutex_lock(&w.fake.lock);
			now = w.fake.renewed;
			pthread_mutex_unlock(&w.fake.lock);
		}
		assert_true(now >= before + 3);
		sba_remote_box_free(b);
		sba_sandbox_close(s);
		end(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_key_that_is_not_taken_is_told_by_where_it_is_from),
		cmocka_unit_test(a_key_in_an_error_is_starred_and_goes_nowhere_else),
		cmocka_unit_test(what_is_busy_is_asked_again_where_that_is_harmless),
		cmocka_unit_test(what_stays_busy_is_given_up_with_words),
		cmocka_unit_test(an_answer_that_is_none_of_its_api_is_told),
		cmocka_unit_test(a_server_that_is_not_there_is_named),
		cmocka_unit_test(no_such_image_or_template_is_an_error_of_images),
		cmocka_unit_test(readiness_is_waited_for),
		cmocka_unit_test(what_is_never_ready_is_given_up_and_nothing_is_left),
		cmocka_unit_test(one_that_was_made_though_its_answer_was_lost_is_ended),
		cmocka_unit_test(a_stream_that_breaks_off_is_lost_and_what_it_said_stays),
		cmocka_unit_test(a_sandbox_that_is_gone_is_said_to_be),
		cmocka_unit_test(input_for_one_that_does_not_read_is_nobodys),
		cmocka_unit_test(bytes_of_every_kind_come_out_as_they_are),
		cmocka_unit_test(how_it_could_not_begin_is_told_apart),
		cmocka_unit_test(one_is_found_by_its_name_and_listed_by_its_prefix),
		cmocka_unit_test(no_more_are_made_than_are_allowed),
		cmocka_unit_test(what_a_service_cannot_is_refused_before_anything_is_made),
		cmocka_unit_test(what_is_asked_for_goes_out_in_their_words),
		cmocka_unit_test(a_life_is_put_off_while_there_is_a_handle),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
