/* SPDX-License-Identifier: MIT */
#include "support/bench.h"

#include <fcntl.h>
#include <jansson.h>
#include <spawn.h>
#include <stdarg.h>
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

int bench_rounds(void)
{
	const char *text = getenv("SBA_BENCH_ROUNDS");
	long n = text ? strtol(text, NULL, 10) : 15;
	if (n < 1 || n > BENCH_ROUNDS_MAX)
		bench_die("SBA_BENCH_ROUNDS: 1 to %d", BENCH_ROUNDS_MAX);
	return (int)n;
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

static void start_to_end(const char *path)
{
	struct bench_raw stream;
	bench_raw_open(&stream);
	put_request(&stream, "POST", path, "{\"Detach\":false,\"Tty\":false}",
		    "Connection: Upgrade\r\nUpgrade: tcp\r\n");
	get_head(&stream, path);
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
