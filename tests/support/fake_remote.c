/* SPDX-License-Identifier: MIT */
/* The fake services' requests: sandboxes made, found and ended, files, and who may do so. */
#include "support/fake_kernel.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct ask {
	struct fake_remote *f;
	const struct sba_http_request *r;
	struct sba_http_answer *a;
	json_t *body; /* or NULL */
	char id[40];  /* of the sandbox that it is about */
};

/* ---- answers ---- */

void fake_remote_json(struct sba_http_answer *a, int status, json_t *take_j)
{
	char *text = json_dumps(take_j, JSON_COMPACT);
	/* Where the library is to run out of memory, this program does. */
	a->hang_up = !text;
	a->status = status;
	a->content_type = "application/json";
	sba_buf_init(&a->body, 16 << 20);
	sba_buf_puts(&a->body, text ? text : "");
	free(text);
	json_decref(take_j);
}

static void refuse(struct ask *k, int status, const char *code, const char *message)
{
	fake_remote_json(k->a, status, json_pack("{s:s, s:s}", "code", code, "message", message));
}

static void refuse_e2b(struct ask *k, int status, const char *message)
{
	fake_remote_json(k->a, status, json_pack("{s:i, s:s}", "code", status, "message", message));
}

static bool has_header(struct ask *k, const char *name, const char *value)
{
	const char *v = sba_http_request_header(k->r, name);
	return v && !strcmp(v, value);
}

/* A query's value, its escapes undone. */
static char *query(const struct sba_http_request *r, const char *name, char ret[4096])
{
	const char *at = strchr(r->target, '?');
	size_t len = strlen(name), n = 0;
	for (at = at ? at + 1 : ""; *at; at += strcspn(at, "&"), at += *at == '&') {
		if (strncmp(at, name, len) || at[len] != '=')
			continue;
		for (at += len + 1; *at && *at != '&' && n < 4095; n++) {
			unsigned byte;
			if (*at == '%' && sscanf(at + 1, "%2x", &byte) == 1) {
				ret[n] = (char)byte;
				at += 3;
			} else {
				ret[n] = *at++;
			}
		}
		ret[n] = '\0';
		return ret;
	}
	return NULL;
}

/* ---- sandboxes ---- */

static struct fake_sandbox *find(struct fake_remote *f, const char *id)
{
	for (size_t i = 0; i < f->n; i++) {
		if (!strcmp(f->sandboxes[i].id, id))
			return &f->sandboxes[i];
	}
	return NULL;
}

static struct fake_sandbox *make(struct ask *k, const char *image, int64_t timeout_s)
{
	struct fake_remote *f = k->f;
	char random[17];
	if (f->n == FAKE_SANDBOXES || sba_random_hex(random, 8, NULL) < 0)
		return NULL;
	struct fake_sandbox *s = &f->sandboxes[f->n++];
	*s = (struct fake_sandbox){ 0 };
	snprintf(s->id, sizeof(s->id), "i%s", random);
	snprintf(s->image, sizeof(s->image), "%s", image ? image : "");
	s->metadata = json_deep_copy(json_object_get(k->body, "metadata"));
	s->ends_at = timeout_s ? sba_unix_ms() / 1000 + timeout_s : 0;
	f->created++;
	return s;
}

static void drop(struct fake_remote *f, struct fake_sandbox *s)
{
	json_decref(s->metadata);
	*s = f->sandboxes[--f->n];
	f->removed++;
}

static bool matches(const struct fake_sandbox *s, const struct sba_http_request *r)
{
	char filter[4096];
	char *equals = query(r, "metadata", filter) ? strchr(filter, '=') : NULL;
	if (!equals)
		return true;
	*equals = '\0';
	const char *v = json_string_value(json_object_get(s->metadata, filter));
	return v && !strcmp(v, equals + 1);
}

/* ---- OpenSandbox: the lifecycle server ---- */

static json_t *os_json(const struct fake_sandbox *s)
{
	return json_pack("{s:s, s:{s:s}, s:{s:s, s:s}, s:O, s:s, s:[s]}", "id", s->id, "image",
			 "uri", s->image, "status", "state", s->paused ? "Paused" : "Running",
			 "reason", "CONTAINER_RUNNING", "metadata", s->metadata, "createdAt",
			 "2026-11-29T16:15:30.579160Z", "entrypoint", "tail");
}

/* Metadata become labels by Kubernetes' rules. */
static bool is_label(const char *s)
{
	static const char ends[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
	size_t len = strlen(s);
	return len == 0 || (len <= 63 && strchr(ends, s[0]) && strchr(ends, s[len - 1]) &&
			    strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789-_.") == len);
}

static bool are_labels(const json_t *metadata)
{
	const char *name;
	json_t *value;
	json_object_foreach((json_t *)(uintptr_t)metadata, name, value)
	{
		if (!*name || !is_label(name) || !is_label(json_string_value(value)))
			return false;
	}
	return true;
}

static void os_create(struct ask *k)
{
	const char *image = sba_json_str(k->body, "image.uri");
	int64_t timeout = sba_json_int(k->body, "timeout", 0);
	if (!image || !json_object_get(k->body, "entrypoint") ||
	    !json_object_get(k->body, "resourceLimits") || (timeout && timeout < 60)) {
		fake_remote_json(k->a, 422,
				 json_pack("{s:[{s:s, s:s}]}", "detail", "type", "missing", "msg",
					   "Field required"));
		return;
	}
	if (!are_labels(json_object_get(k->body, "metadata"))) {
		refuse(k, 400, "SANDBOX::INVALID_METADATA_LABEL", "Metadata are no labels");
		return;
	}
	if (!strcmp(image, "none")) {
		refuse(k, 500, "DOCKER::SANDBOX_IMAGE_PULL_FAILED", "Failed to pull image none");
		return;
	}
	struct fake_sandbox *s = make(k, image, timeout);
	json_t *j = s ? os_json(s) : NULL;
	json_object_del(j, "image");
	fake_remote_json(k->a, 202, j);
}

static void os_list(struct ask *k)
{
	json_t *items = json_array();
	for (size_t i = 0; i < k->f->n; i++) {
		if (matches(&k->f->sandboxes[i], k->r))
			json_array_append_new(items, os_json(&k->f->sandboxes[i]));
	}
	fake_remote_json(
		k->a, 200,
		json_pack("{s:o, s:{s:b}}", "items", items, "pagination", "hasNextPage", 0));
}

static void os_one(struct ask *k, struct fake_sandbox *s, const char *rest)
{
	char endpoint[128];
	if (!*rest && !strcmp(k->r->method, "GET")) {
		fake_remote_json(k->a, 200, os_json(s));
	} else if (!*rest && !strcmp(k->r->method, "DELETE")) {
		drop(k->f, s);
		k->a->status = 204;
	} else if (!strcmp(rest, "/endpoints/44772")) {
		/* By the server: under the name that it was asked by. */
		const char *host = sba_http_request_header(k->r, "Host");
		char through[4096] = "";
		if (query(k->r, "use_server_proxy", through) && !strcmp(through, "true"))
			snprintf(endpoint, sizeof(endpoint), "%.64s/v1/sandboxes/%s/proxy/44772",
				 host ? host : "", s->id);
		else
			snprintf(endpoint, sizeof(endpoint), "%s/x/%s",
				 k->f->url + strlen("http://"), s->id);
		fake_remote_json(k->a, 200,
				 json_pack("{s:s, s:{s:s}}", "endpoint", endpoint, "headers",
					   "X-EXECD-ACCESS-TOKEN", FAKE_TOKEN));
	} else if (!strcmp(rest, "/resume")) {
		k->a->status = s->paused ? 202 : 409;
		s->paused = false;
	} else if (!strcmp(rest, "/renew-expiration")) {
		const char *when = sba_json_str(k->body, "expiresAt");
		struct tm at = { 0 };
		k->f->renewed++;
		if (when && strptime(when, "%Y-%m-%dT%H:%M:%SZ", &at))
			s->ends_at = (int64_t)timegm(&at);
		fake_remote_json(k->a, 200, json_pack("{s:s}", "expiresAt", when ? when : ""));
	} else {
		fake_remote_json(k->a, 404, json_pack("{s:s}", "detail", "Not Found"));
	}
}

static bool has_key(struct ask *k)
{
	if (!has_header(k, "OPEN-SANDBOX-API-KEY", FAKE_KEY)) {
		bool any = sba_http_request_header(k->r, "OPEN-SANDBOX-API-KEY");
		refuse(k, 401, any ? "INVALID_API_KEY" : "MISSING_API_KEY",
		       "Authentication credentials are missing or wrong.");
		return false;
	}
	return true;
}

static void opensandbox(struct ask *k, const char *path)
{
	if (!has_key(k))
		return;
	if (!*path) {
		if (!strcmp(k->r->method, "POST"))
			os_create(k);
		else
			os_list(k);
		return;
	}
	size_t len = strcspn(path + 1, "/");
	snprintf(k->id, sizeof(k->id), "%.*s", (int)len, path + 1);
	struct fake_sandbox *s = find(k->f, k->id);
	if (s)
		os_one(k, s, path + 1 + len);
	else
		refuse(k, 404, "DOCKER::SANDBOX_NOT_FOUND", "Sandbox not found.");
}

/* ---- E2B: the control plane ---- */

static json_t *e2b_json(const struct fake_sandbox *s)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:O}", "templateID", s->image, "sandboxID",
			 s->id, "clientID", "local", "envdVersion", "0.6.13", "envdAccessToken",
			 FAKE_TOKEN, "state", s->paused ? "paused" : "running", "metadata",
			 s->metadata);
}

static void e2b_create(struct ask *k)
{
	const char *template = sba_json_str(k->body, "templateID");
	if (!template || !strcmp(template, "none")) {
		refuse_e2b(k, 404, "template 'none' not found");
		return;
	}
	struct fake_sandbox *s = make(k, template, sba_json_int(k->body, "timeout", 15));
	fake_remote_json(k->a, 201, s ? e2b_json(s) : NULL);
}

/* Two to a page, so that there is more than one. */
static void e2b_list(struct ask *k)
{
	char token[4096], next[32];
	json_t *items = json_array();
	size_t i = query(k->r, "nextToken", token) ? strtoul(token, NULL, 10) : 0;
	for (; i < k->f->n && json_array_size(items) < 2; i++) {
		if (matches(&k->f->sandboxes[i], k->r))
			json_array_append_new(items, e2b_json(&k->f->sandboxes[i]));
	}
	if (i < k->f->n) {
		snprintf(next, sizeof(next), "%zu", i);
		(void)!sba_strv_addf(&k->a->headers, NULL, "X-Next-Token: %s", next);
	}
	fake_remote_json(k->a, 200, items);
}

static void e2b_one(struct ask *k, struct fake_sandbox *s, const char *rest)
{
	if (!*rest && !strcmp(k->r->method, "GET")) {
		fake_remote_json(k->a, 200, e2b_json(s));
	} else if (!*rest && !strcmp(k->r->method, "DELETE")) {
		drop(k->f, s);
		k->a->status = 204;
	} else if (!strcmp(rest, "/connect")) {
		s->paused = false;
		fake_remote_json(k->a, 200, e2b_json(s));
	} else if (!strcmp(rest, "/timeout")) {
		k->f->renewed++;
		s->ends_at = sba_unix_ms() / 1000 + sba_json_int(k->body, "timeout", 0);
		k->a->status = 204;
	} else {
		refuse_e2b(k, 404, "not found");
	}
}

static void e2b(struct ask *k, const char *path)
{
	if (!has_header(k, "X-API-Key", FAKE_KEY)) {
		refuse_e2b(k, 401, "Invalid API key");
		return;
	}
	if (!*path) {
		if (!strcmp(k->r->method, "POST"))
			e2b_create(k);
		else
			e2b_list(k);
		return;
	}
	size_t len = strcspn(path + 1, "/");
	snprintf(k->id, sizeof(k->id), "%.*s", (int)len, path + 1);
	struct fake_sandbox *s = find(k->f, k->id);
	if (s)
		e2b_one(k, s, path + 1 + len);
	else
		refuse_e2b(k, 404, "sandbox not found");
}

/* ---- files ---- */

static void send_file(struct ask *k, const char *path)
{
	struct stat st;
	if (stat(path, &st) < 0) {
		refuse(k, 404, "FILE_NOT_FOUND", "file not found");
		return;
	}
	sba_buf_init(&k->a->body, 64 << 20);
	if (S_ISDIR(st.st_mode) || sba_read_file(path, 64 << 20, &k->a->body, NULL) < 0) {
		refuse(k, 400, "RUNTIME_ERROR", "path is a directory");
		return;
	}
	k->a->content_type = "application/octet-stream";
}

/* The last part of a form is the file. */
static void take_file(struct ask *k, const char *path)
{
	const char *type = sba_http_request_header(k->r, "Content-Type"), *mark, *data = NULL;
	char boundary[128];
	mark = type ? strstr(type, "boundary=") : NULL;
	snprintf(boundary, sizeof(boundary), "\r\n--%s--", mark ? mark + 9 : "");
	const char *end = memmem(k->r->body, k->r->body_len, boundary, strlen(boundary));
	const char *part = memmem(k->r->body, k->r->body_len, "name=\"file\"", 11);
	if (part)
		data = memmem(part, (size_t)(k->r->body + k->r->body_len - part), "\r\n\r\n", 4);
	int fd = data && end ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644) : -1;
	if (fd < 0 || sba_write_all(fd, data + 4, (size_t)(end - data - 4), NULL) < 0)
		refuse(k, 400, "INVALID_FILE_METADATA", "metadata file is missing");
	sba_cleanup_close(&fd);
}

/* ---- inside ---- */

static char **env_of(struct ask *k, const json_t *extra)
{
	struct sba_strv v = { 0 };
	const char *name;
	json_t *value;
	const char *path = getenv("PATH");
	(void)!sba_strv_addf(&v, NULL, "PATH=%s", path ? path : "/usr/bin:/bin");
	(void)!sba_strv_addf(&v, NULL, "HOME=%s", k->f->home);
	(void)!sba_strv_addf(&v, NULL, "FAKE_SANDBOX=%s", k->id);
	json_object_foreach((json_t *)(uintptr_t)extra, name, value)(void) !sba_strv_addf(
		&v, NULL, "%s=%s", name, json_string_value(value));
	return v.v;
}

static void free_env(char **env)
{
	for (size_t i = 0; env && env[i]; i++)
		free(env[i]);
	free(env);
}

/* False: it is no request for them. */
static bool code(struct ask *k, const char *path, bool is_execd)
{
	char tag[4096];
	char **env = env_of(k, json_object_get(k->body, "env_vars"));
	const struct fake_code c = { .execd = is_execd,
				     .sandbox = k->id,
				     .home = k->f->home,
				     .body = k->body,
				     .env = env,
				     .interrupt = query(k->r, "id", tag) };
	bool is_theirs = fake_kernel(k->f, &c, k->r, path, k->a);
	free_env(env);
	return is_theirs;
}

static void execd(struct ask *k, const char *path)
{
	char query_path[4096];
	const char *meta = strstr(k->r->body, "{\"path\":\"");
	pthread_mutex_lock(&k->f->lock);
	bool there = find(k->f, k->id);
	pthread_mutex_unlock(&k->f->lock);
	if (!there) {
		refuse(k, 502, "BACKEND_CONNECTION_FAILED", "Could not connect to the backend");
	} else if (!has_header(k, "X-EXECD-ACCESS-TOKEN", FAKE_TOKEN)) {
		fake_remote_json(
			k->a, 401,
			json_pack("{s:s}", "error", "Unauthorized: invalid or missing header"));
	} else if (!strcmp(path, "/command")) {
		const char *command = sba_json_str(k->body, "command");
		char **env = env_of(k, json_object_get(k->body, "envs"));
		const char *const argv[] = { "bash", "-c", command ? command : "", NULL };
		fake_remote_run(k->f,
				&(struct fake_remote_words){
					.argv = argv, .env = env, .sandbox = k->id, .ping_s = 3 },
				k->a);
		free_env(env);
	} else if (!strcmp(path, "/files/download") && query(k->r, "path", query_path)) {
		send_file(k, query_path);
	} else if (!strcmp(path, "/files/upload") && meta) {
		snprintf(query_path, sizeof(query_path), "%.*s", (int)strcspn(meta + 9, "\""),
			 meta + 9);
		take_file(k, query_path);
	} else if (strcmp(path, "/ping") != 0 && !code(k, path, true)) {
		refuse(k, 404, "NOT_FOUND", "404 page not found");
	}
}

static void envd_start(struct ask *k)
{
	const char *ping = sba_http_request_header(k->r, "Keepalive-Ping-Interval");
	json_t *j =
		k->r->body_len > 5 ? json_loadb(k->r->body + 5, k->r->body_len - 5, 0, NULL) : NULL;
	json_t *args = json_object_get(json_object_get(j, "process"), "args"), *arg;
	const char *argv[512] = { sba_json_str(j, "process.cmd") };
	size_t i;
	json_array_foreach(args, i, arg) argv[i < 510 ? i + 1 : 510] = json_string_value(arg);
	char **env = env_of(k, json_object_get(json_object_get(j, "process"), "envs"));
	fake_remote_run(
		k->f,
		&(struct fake_remote_words){ .argv = argv,
					     .env = env,
					     .stdin_open = sba_json_bool(j, "stdin", true),
					     .connect = true,
					     .tag = sba_json_str(j, "tag"),
					     .sandbox = k->id,
					     .ping_s = ping ? (int)strtol(ping, NULL, 10) : 90 },
		k->a);
	free_env(env);
	json_decref(j);
}

/* Outside of the lock: the command may not read for long. */
static void envd_input(struct ask *k, bool close_it)
{
	const char *tag = sba_json_str(k->body, "process.tag");
	const char *text = sba_json_str(k->body, "input.stdin");
	SBA_BUF struct sba_buf bytes = SBA_BUF_INIT(16 << 20);
	pthread_mutex_lock(&k->f->lock);
	struct fake_run *run = tag ? fake_remote_find(k->f, tag) : NULL;
	int fd = run && run->in >= 0 ? fcntl(run->in, F_DUPFD_CLOEXEC, 0) : -1;
	if (run && close_it && run->in >= 0) {
		close(run->in);
		run->in = -1;
	}
	pthread_mutex_unlock(&k->f->lock);
	if (fd < 0)
		fake_remote_json(k->a, 404,
				 json_pack("{s:s, s:s}", "code", "not_found", "message",
					   "process not found"));
	else if (!close_it && sba_base64_decode(text, strlen(text), false, &bytes) == 0)
		(void)!sba_write_all(fd, bytes.data, bytes.len, NULL);
	if (fd >= 0 && k->a->status == 200)
		fake_remote_json(k->a, 200, json_object());
	sba_cleanup_close(&fd);
}

static void envd(struct ask *k)
{
	char path[4096];
	const char *id = sba_http_request_header(k->r, "E2b-Sandbox-Id");
	pthread_mutex_lock(&k->f->lock);
	bool there = id && find(k->f, id);
	pthread_mutex_unlock(&k->f->lock);
	snprintf(k->id, sizeof(k->id), "%s", id ? id : "");
	if (!there)
		refuse_e2b(k, 502, "The sandbox was not found");
	else if (!strcmp(k->r->path, "/health"))
		k->a->status = 204;
	else if (!has_header(k, "X-Access-Token", FAKE_TOKEN))
		refuse_e2b(k, 401, "unauthorized access, please provide a valid access token");
	else if (has_header(k, "E2b-Sandbox-Port", "49999") && code(k, k->r->path, false))
		return;
	else if (!strcmp(k->r->path, "/process.Process/Start"))
		envd_start(k);
	else if (!strcmp(k->r->path, "/process.Process/SendInput"))
		envd_input(k, false);
	else if (!strcmp(k->r->path, "/process.Process/CloseStdin"))
		envd_input(k, true);
	else if (!strcmp(k->r->path, "/files") && query(k->r, "path", path)) {
		if (!strcmp(k->r->method, "GET"))
			send_file(k, path);
		else
			take_file(k, path);
	} else
		refuse_e2b(k, 404, "not found");
}

/* ---- the door ---- */

static void route(struct ask *k)
{
	const char *path = k->r->path;
	char removed[40] = "";
	if (sba_starts_with(path, "/x/")) {
		size_t len = strcspn(path + 3, "/");
		snprintf(k->id, sizeof(k->id), "%.*s", (int)len, path + 3);
		execd(k, path + 3 + len);
		return;
	}
	/* A server of many tenants wants its key there, too. */
	const char *proxied = strstr(path, "/proxy/44772");
	if (sba_starts_with(path, "/v1/sandboxes/") && proxied) {
		const char *id = path + strlen("/v1/sandboxes/");
		snprintf(k->id, sizeof(k->id), "%.*s", (int)strcspn(id, "/"), id);
		if (has_key(k))
			execd(k, proxied + strlen("/proxy/44772"));
		return;
	}
	bool os = sba_starts_with(path, "/v1/sandboxes");
	bool control = os || sba_starts_with(path, "/sandboxes") || !strcmp(path, "/v2/sandboxes");
	if (!control) {
		envd(k);
		return;
	}
	pthread_mutex_lock(&k->f->lock);
	if (os)
		opensandbox(k, path + strlen("/v1/sandboxes"));
	else if (sba_starts_with(path, "/sandboxes"))
		e2b(k, path + strlen("/sandboxes"));
	else
		e2b(k, "");
	if (!strcmp(k->r->method, "DELETE") && k->a->status == 204)
		snprintf(removed, sizeof(removed), "%s", k->id);
	pthread_mutex_unlock(&k->f->lock);
	if (*removed)
		fake_remote_end(k->f, removed);
}

static void handle(void *user, const struct sba_http_request *r, struct sba_http_answer *a)
{
	struct ask k = { .f = user, .r = r, .a = a };
	if (k.f->lie && k.f->lie(k.f->user, r, a))
		return;
	if (r->body_len && *r->body == '{')
		k.body = json_loadb(r->body, r->body_len, 0, NULL);
	route(&k);
	if (k.f->spoil)
		k.f->spoil(k.f->user, r, a);
	json_decref(k.body);
}

void fake_remote_start(struct fake_remote *f, const char *home)
{
	*f = (struct fake_remote){ 0 };
	snprintf(f->home, sizeof(f->home), "%s", home);
	pthread_mutex_init(&f->lock, NULL);
	const struct sba_http_server_options o = { .handler = handle, .user = f };
	if (sba_http_server_open(&o, &f->server, NULL) < 0)
		exit(EXIT_FAILURE);
	snprintf(f->url, sizeof(f->url), "http://127.0.0.1:%u",
		 (unsigned)sba_http_server_port(f->server));
}

void fake_remote_expire(struct fake_remote *f)
{
	char id[40];
	size_t left;
	do {
		*id = '\0';
		pthread_mutex_lock(&f->lock);
		if (f->n > 0) {
			snprintf(id, sizeof(id), "%s", f->sandboxes[0].id);
			drop(f, &f->sandboxes[0]);
		}
		left = f->n;
		pthread_mutex_unlock(&f->lock);
		if (*id)
			fake_remote_end(f, id);
	} while (left > 0);
}

void fake_remote_stop(struct fake_remote *f)
{
	fake_remote_expire(f);
	sba_http_server_close(f->server);
	for (size_t i = 0; i < FAKE_RUNS; i++) {
		struct fake_run *r = &f->runs[i];
		if (r->used && !r->ended)
			waitpid(r->pid, NULL, 0);
		int *const fds[] = { &r->in, &r->out, &r->err };
		for (size_t n = 0; r->used && n < 3; n++)
			sba_cleanup_close(fds[n]);
	}
	pthread_mutex_destroy(&f->lock);
}

size_t fake_remote_count(struct fake_remote *f)
{
	pthread_mutex_lock(&f->lock);
	size_t n = f->n;
	pthread_mutex_unlock(&f->lock);
	return n;
}
