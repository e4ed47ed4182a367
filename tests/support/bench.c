/* SPDX-License-Identifier: MIT */
#include "support/bench.h"

#include <fcntl.h>
#include <jansson.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

void bench_die(const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	fputs("bench: ", stderr);
	vfprintf(stderr, fmt, args);
	fputc('\n', stderr);
	va_end(args);
	exit(1);
}

/* ---- samples ---- */

double bench_now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

void bench_add(struct bench_series *s, double value)
{
	if (s->n == BENCH_MAX)
		bench_die("%s: more than %d samples", s->name, BENCH_MAX);
	s->samples[s->n++] = value;
}

void bench_add_step(struct bench_series *s, double *step)
{
	double now = bench_now_ms();
	bench_add(s, now - *step);
	*step = now;
}

void bench_print(const struct bench_series *s)
{
	json_t *list = json_array();
	for (size_t i = 0; i < s->n; i++)
		json_array_append_new(list, json_real(s->samples[i]));
	json_t *line =
		json_pack("{s:s, s:s, s:o}", "name", s->name, "unit", s->unit, "samples", list);
	if (!line || json_dumpf(line, stdout, JSON_COMPACT | JSON_REAL_PRECISION(6)) < 0)
		bench_die("%s: cannot be printed", s->name);
	putchar('\n');
	fflush(stdout);
	json_decref(line);
}

/* The guest of a command that is over stays for up to 400 ms, and the engine
 * tidies up after each exec; none of it may count against the next sample. */
void bench_settle(void)
{
	struct timespec pause = { .tv_nsec = 500 * 1000 * 1000 };
	nanosleep(&pause, NULL);
}

int bench_number(const char *name, int otherwise, int max)
{
	const char *text = getenv(name);
	long n = text ? strtol(text, NULL, 10) : otherwise;
	if (n < 1 || n > max)
		bench_die("%s: 1 to %d", name, max);
	return (int)n;
}

int bench_rounds(void)
{
	return bench_number("SBA_BENCH_ROUNDS", 10, BENCH_ROUNDS_MAX);
}

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

double bench_median(double *values, size_t n)
{
	qsort(values, n, sizeof(*values), by_value);
	return values[n / 2];
}

long bench_rss_anon(pid_t pid)
{
	char path[64], line[256];
	long kib = -1;
	snprintf(path, sizeof(path), "/proc/%ld/status", (long)pid);
	FILE *f = fopen(path, "re");
	while (f && kib < 0 && fgets(line, sizeof(line), f)) {
		if (strncmp(line, "RssAnon:", 8) == 0)
			kib = strtol(line + 8, NULL, 10);
	}
	if (f)
		fclose(f);
	return kib;
}

void bench_spawn(const char *const *argv)
{
	posix_spawn_file_actions_t files;
	pid_t pid;
	int status;
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	int rc = posix_spawnp(&pid, argv[0], &files, NULL, (char *const *)argv, environ);
	posix_spawn_file_actions_destroy(&files);
	if (rc != 0)
		bench_die("%s: %s", argv[0], strerror(rc));
	if (waitpid(pid, &status, 0) != pid || status != 0)
		bench_die("%s: failed with wait status %d", argv[0], status);
}

/* ---- the library ---- */

void bench_must(int rc, const struct sba_error *err)
{
	if (rc < 0)
		bench_die("%s", err->text);
}

struct sba_sandbox *bench_sandbox_with(struct sba_engine *e, const char *image,
				       const char *const *mounts)
{
	const struct sba_sandbox_options options = {
		.prefix = BENCH_PREFIX,
		.image = image,
		.mounts = mounts,
		.keepalive_ms = 60 * 1000,
		.max_sandboxes = -1,
	};
	struct sba_sandbox *s = NULL;
	struct sba_error err;
	bench_must(sba_sandbox_create(e, &options, &s, &err), &err);
	return s;
}

struct sba_sandbox *bench_sandbox(struct sba_engine *e, const char *image)
{
	return bench_sandbox_with(e, image, NULL);
}

void bench_sandbox_end(struct sba_sandbox *s)
{
	struct sba_error err;
	bench_must(sba_sandbox_remove(s, &err), &err);
	sba_sandbox_close(s);
}

void bench_process_end(struct sba_process *p)
{
	struct sba_exit end;
	struct sba_error err;
	bench_must(sba_process_wait(p, 60 * 1000, &end, &err), &err);
	sba_process_free(p);
	if (end.kind != SBA_EXITED || end.number != 0)
		bench_die("a command: kind %d, number %d", (int)end.kind, end.number);
}

void bench_true(struct sba_sandbox *s)
{
	static const char *const argv[] = { "true", NULL };
	const struct sba_exec_options options = { .argv = argv };
	struct sba_process *p = NULL;
	struct sba_error err;
	bench_must(sba_sandbox_exec(s, &options, &p, &err), &err);
	bench_process_end(p);
}

struct sba_process *bench_first_byte(struct sba_sandbox *s)
{
	static const char *const argv[] = { "echo", "a", NULL };
	const struct sba_exec_options options = { .argv = argv };
	struct sba_process *p = NULL;
	enum sba_output which;
	const char *data;
	struct sba_error err;
	bench_must(sba_sandbox_exec(s, &options, &p, &err), &err);
	ssize_t n = sba_process_read(p, 60 * 1000, &which, &data, &err);
	bench_must((int)n, &err);
	if (n == 0)
		bench_die("echo: no output");
	return p;
}

/* ---- the engine, by hand ---- */

void bench_raw_open(struct bench_raw *r)
{
	const struct sockaddr_un a = { .sun_family = AF_UNIX, .sun_path = "/var/run/docker.sock" };
	r->len = 0;
	r->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (r->fd < 0 || connect(r->fd, (const struct sockaddr *)&a, sizeof(a)) < 0)
		bench_die("no engine at %s", a.sun_path);
}

void bench_raw_close(struct bench_raw *r)
{
	close(r->fd);
}

static void put_request(struct bench_raw *r, const char *method, const char *path, const char *json,
			const char *headers)
{
	char text[4096];
	int n = snprintf(text, sizeof(text),
			 "%s %s HTTP/1.1\r\nHost: docker\r\n%sContent-Type: application/json\r\n"
			 "Content-Length: %zu\r\n\r\n%s",
			 method, path, headers, strlen(json), json);
	if (n >= (int)sizeof(text) || write(r->fd, text, (size_t)n) != n)
		bench_die("%s %s: cannot be sent", method, path);
}

/* More of the answer; 0 at the end of the connection. */
static size_t more(struct bench_raw *r)
{
	ssize_t n = read(r->fd, r->in + r->len, sizeof(r->in) - 1 - r->len);
	if (n < 0)
		bench_die("the engine's answer cannot be read");
	r->len += (size_t)n;
	r->in[r->len] = '\0';
	return (size_t)n;
}

/* Waits for a whole head: its length. */
static size_t get_head(struct bench_raw *r, const char *path)
{
	const char *end;
	r->len = 0;
	r->in[0] = '\0';
	while (!(end = strstr(r->in, "\r\n\r\n"))) {
		if (more(r) == 0)
			bench_die("%s: the engine closed the connection", path);
	}
	long status = strtol(r->in + strcspn(r->in, " "), NULL, 10);
	if (status != 101 && (status < 200 || status >= 300))
		bench_die("%s: %s", path, r->in);
	return (size_t)(end - r->in) + 4;
}

const char *bench_raw_call(struct bench_raw *r, const char *method, const char *path,
			   const char *json)
{
	put_request(r, method, path, json ? json : "", "");
	size_t head = get_head(r, path);
	const char *field = strcasestr(r->in, "\r\nContent-Length:");
	size_t body = field && field < r->in + head ? strtoul(field + 17, NULL, 10) : 0;
	while (r->len < head + body) {
		if (more(r) == 0)
			bench_die("%s: the answer is cut", path);
	}
	return r->in + head;
}

void bench_raw_id(const char *answer, char *ret, size_t size)
{
	const char *id = strstr(answer, "\"Id\":\"");
	if (!id)
		bench_die("no id in: %s", answer);
	id += 6;
	snprintf(ret, size, "%.*s", (int)strcspn(id, "\""), id);
}

/* Starts an exec; the length of the answer's head, after which its stream begins. */
static size_t start_stream(struct bench_raw *stream, const char *path)
{
	bench_raw_open(stream);
	put_request(stream, "POST", path, "{\"Detach\":false,\"Tty\":false}",
		    "Connection: Upgrade\r\nUpgrade: tcp\r\n");
	return get_head(stream, path);
}

static void start_to_end(const char *path)
{
	struct bench_raw stream;
	start_stream(&stream, path);
	while (more(&stream) > 0)
		stream.len = 0;
	bench_raw_close(&stream);
}

void bench_raw_exec_true(struct bench_raw *r, const char *container)
{
	char path[256], id[128];
	snprintf(path, sizeof(path), "/containers/%s/exec", container);
	bench_raw_id(bench_raw_call(r, "POST", path,
				    "{\"AttachStdin\":true,\"AttachStdout\":true,"
				    "\"AttachStderr\":true,\"Cmd\":[\"true\"]}"),
		     id, sizeof(id));
	snprintf(path, sizeof(path), "/exec/%s/start", id);
	start_to_end(path);
	snprintf(path, sizeof(path), "/exec/%s/json", id);
	if (!strstr(bench_raw_call(r, "GET", path, NULL), "\"ExitCode\":0"))
		bench_die("exec of true: not its exit code: %s", r->in);
}

void bench_raw_first_byte(struct bench_raw *r, const char *container)
{
	enum { FRAME_HEAD = 8 };
	struct bench_raw stream;
	char path[256], id[BENCH_ID_MAX];
	snprintf(path, sizeof(path), "/containers/%s/exec", container);
	bench_raw_id(bench_raw_call(r, "POST", path,
				    "{\"AttachStdin\":true,\"AttachStdout\":true,"
				    "\"AttachStderr\":true,\"Cmd\":[\"echo\",\"a\"]}"),
		     id, sizeof(id));
	snprintf(path, sizeof(path), "/exec/%s/start", id);
	size_t head = start_stream(&stream, path);
	while (stream.len <= head + FRAME_HEAD) {
		if (more(&stream) == 0)
			bench_die("exec of echo: no output");
	}
	bench_raw_close(&stream);
}

void bench_bare_create(struct bench_raw *r, const char *image, const char *network,
		       char ret_id[BENCH_ID_MAX])
{
	static atomic_int made;
	char path[256], body[512];
	snprintf(path, sizeof(path), "/containers/create?name=" BENCH_PREFIX "-bare-%ld-%d",
		 (long)getpid(), atomic_fetch_add(&made, 1));
	int n = snprintf(body, sizeof(body),
			 "{\"Image\":\"%s\",\"Entrypoint\":[\"sleep\",\"120\"],\"Cmd\":[],"
			 "\"HostConfig\":{\"NetworkMode\":\"%s\"}}",
			 image, network ? network : "default");
	if (n >= (int)sizeof(body))
		bench_die("%s: too long a name", image);
	bench_raw_id(bench_raw_call(r, "POST", path, body), ret_id, BENCH_ID_MAX);
}

void bench_bare_start(struct bench_raw *r, const char *id)
{
	char path[256];
	snprintf(path, sizeof(path), "/containers/%s/start", id);
	bench_raw_call(r, "POST", path, NULL);
}

void bench_bare_remove(struct bench_raw *r, const char *id)
{
	char path[256];
	snprintf(path, sizeof(path), "/containers/%s?force=1&v=1", id);
	bench_raw_call(r, "DELETE", path, NULL);
}
