/* SPDX-License-Identifier: MIT */
/*
 * Files out of a sandbox and into it by `cp`, against `docker cp` and against the
 * engine's stream read and thrown away, or a tar that is ready sent to it, in turns; one small file
 * by a kept handle against `docker exec cat`; and the anonymous memory of each.
 *
 * usage: files_bench PROGRAM IMAGE
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "engine/engine.h"
#include "sandbox/sandbox.h"
#include "support/bench.h"

extern char **environ;

enum { OUT_MIB = 512, IN_MIB = 256, MANY = 10000, SMALL = 4096, PATH_SIZE = 512 };
enum work { OUT_BIG, OUT_MANY, IN_BIG, IN_MANY, WORKS };
enum way { OURS, DOCKER, RAW, KEPT, WAYS };

static struct bench_series series[WORKS][WAYS] = {
	[OUT_BIG] = { { .name = "files_out_big.ours", .unit = "ms" },
		      { .name = "files_out_big.docker", .unit = "ms" },
		      { .name = "files_out_big.raw", .unit = "ms" },
		      { .name = "files_out_big.kept", .unit = "ms" } },
	[OUT_MANY] = { { .name = "files_out_many.ours", .unit = "ms" },
		       { .name = "files_out_many.docker", .unit = "ms" },
		       { .name = "files_out_many.raw", .unit = "ms" },
		       { .name = "files_out_many.kept", .unit = "ms" } },
	[IN_BIG] = { { .name = "files_in_big.ours", .unit = "ms" },
		     { .name = "files_in_big.docker", .unit = "ms" },
		     { .name = "files_in_big.raw", .unit = "ms" } },
	[IN_MANY] = { { .name = "files_in_many.ours", .unit = "ms" },
		      { .name = "files_in_many.docker", .unit = "ms" },
		      { .name = "files_in_many.raw", .unit = "ms" } },
};
static struct bench_series small_read = { .name = "files_read.ours", .unit = "ms" };
static struct bench_series small_write = { .name = "files_write.ours", .unit = "ms" };
static struct bench_series small_docker = { .name = "files_read.docker", .unit = "ms" };
static struct bench_series memory = { .name = "files_memory.ours", .unit = "KiB" };

struct world {
	const char *program;
	struct sba_sandbox *sandbox;
	const char *name, *container;
	char dir[64]; /* on a tmpfs */
	unsigned n;   /* a name of its own for each copy */
};

static void in_sandbox(struct world *w, const char *user, const char *script)
{
	const char *const argv[] = { "docker", "exec", "-u",   user, w->container,
				     "sh",     "-c",   script, NULL };
	bench_spawn(argv);
}

/* ---- one copy ---- */

static const char *const inside[WORKS] = { "/tmp/bench/big", "/tmp/bench/many", "/tmp/bench/in",
					   "/tmp/bench/in" };
static const char *const here[WORKS] = { NULL, NULL, "big", "many" };

static void name_sides(struct world *w, enum work work, const char *box, char from[PATH_SIZE],
		       char to[PATH_SIZE])
{
	w->n++;
	if (here[work]) {
		snprintf(from, PATH_SIZE, "%s/%s", w->dir, here[work]);
		snprintf(to, PATH_SIZE, "%s:%s/%u", box, inside[work], w->n);
	} else {
		snprintf(from, PATH_SIZE, "%s:%s", box, inside[work]);
		snprintf(to, PATH_SIZE, "%s/out/%u", w->dir, w->n);
	}
}

static void by_ours(struct world *w, enum work work)
{
	char from[PATH_SIZE], to[PATH_SIZE];
	const char *const argv[] = { w->program, "--prefix", BENCH_PREFIX, "-q",
				     "cp",       from,       to,           NULL };
	name_sides(w, work, w->name, from, to);
	bench_spawn(argv);
}

static void by_docker(struct world *w, enum work work)
{
	char from[PATH_SIZE], to[PATH_SIZE];
	const char *const argv[] = { "docker", "cp", "-q", from, to, NULL };
	name_sides(w, work, w->container, from, to);
	bench_spawn(argv);
}

static void must_write(int fd, const char *data, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, data, len);
		if (n <= 0)
			bench_die("raw request: %s", strerror(errno));
		data += n;
		len -= (size_t)n;
	}
}

/* The tar that lies ready, by the request that every client must send. */
static void raw_in(struct world *w, enum work work)
{
	static char piece[256 * 1024];
	struct bench_raw raw;
	char path[PATH_SIZE], request[PATH_SIZE];
	struct stat st;
	ssize_t n;
	snprintf(path, sizeof(path), "%s/%s.tar", w->dir, here[work]);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		bench_die("%s: %s", path, strerror(errno));
	bench_raw_open(&raw);
	int len = snprintf(request, sizeof(request),
			   "PUT /containers/%s/archive?path=%s HTTP/1.1\r\nHost: x\r\n"
			   "Connection: close\r\nContent-Length: %lld\r\n\r\n",
			   w->container, inside[work], (long long)st.st_size);
	must_write(raw.fd, request, (size_t)len);
	while ((n = read(fd, piece, sizeof(piece))) > 0)
		must_write(raw.fd, piece, (size_t)n);
	close(fd);
	n = read(raw.fd, piece, sizeof(piece));
	if (n < 12 || memcmp(piece, "HTTP/1.1 200", 12) != 0)
		bench_die("raw upload: %.*s", (int)(n > 0 ? n : 0), piece);
	bench_raw_close(&raw);
}

static void raw_out(struct world *w, enum work work)
{
	static char piece[256 * 1024];
	struct bench_raw raw;
	char request[PATH_SIZE];
	uint64_t total = 0;
	ssize_t n;
	bench_raw_open(&raw);
	int len = snprintf(request, sizeof(request),
			   "GET /containers/%s/archive?path=%s HTTP/1.1\r\nHost: x\r\n"
			   "Connection: close\r\n\r\n",
			   w->container, inside[work]);
	must_write(raw.fd, request, (size_t)len);
	while ((n = read(raw.fd, piece, sizeof(piece))) > 0)
		total += (uint64_t)n;
	if (n < 0 || total < (uint64_t)MANY * SMALL)
		bench_die("raw stream: %llu bytes", (unsigned long long)total);
	bench_raw_close(&raw);
}

static void by_hand(struct world *w, enum work work)
{
	(here[work] ? raw_in : raw_out)(w, work);
}

/* By a handle that has its channel. */
static void by_kept(struct world *w, enum work work)
{
	char from[PATH_SIZE], to[PATH_SIZE];
	struct sba_error err;
	name_sides(w, work, "", from, to);
	bench_must(sba_sandbox_download(w->sandbox, from + 1, to, NULL, NULL, &err), &err);
}

static void (*const ways[WAYS])(struct world *w, enum work work) = { by_ours, by_docker, by_hand,
								     by_kept };

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static void clean(struct world *w, enum work work)
{
	char path[PATH_SIZE];
	if (here[work]) {
		/* The ways leave files of another owner. */
		in_sandbox(w, "1000", "rm -rf /tmp/bench/in/* 2>/dev/null; true");
		in_sandbox(w, "0", "rm -rf /tmp/bench/in/*");
		return;
	}
	snprintf(path, sizeof(path), "%s/out", w->dir);
	nftw(path, remove_one, 16, FTW_PHYS | FTW_DEPTH);
	if (mkdir(path, 0755) < 0)
		bench_die("%s: %s", path, strerror(errno));
}

static int ways_of(enum work work)
{
	return here[work] ? KEPT : WAYS;
}

/* Each way once, another one first in each round. */
static void round_of(struct world *w, enum work work, int number)
{
	int n = ways_of(work);
	for (int i = 0; i < n; i++) {
		int way = (number + i) % n;
		clean(w, work);
		double began = bench_now_ms();
		ways[way](w, work);
		bench_add(&series[work][way], bench_now_ms() - began);
	}
	clean(w, work);
}

/* ---- one small file ---- */

static int drop(void *user, const void *data, size_t len, struct sba_error *err)
{
	(void)user, (void)data, (void)len, (void)err;
	return 0;
}

static ssize_t five_bytes(void *user, void *buf, size_t size, struct sba_error *err)
{
	bool *told = user;
	(void)size, (void)err;
	if (*told)
		return 0;
	*told = true;
	memcpy(buf, "12345", 5);
	return 5;
}

static void round_small(struct world *w)
{
	struct sba_error err;
	const char *const argv[] = { "docker", "exec", w->container, "cat", "/tmp/small", NULL };
	bool told = false;
	double step = bench_now_ms();
	bench_must(sba_sandbox_write(w->sandbox, "/tmp/small", five_bytes, &told, NULL, &err),
		   &err);
	bench_add_step(&small_write, &step);
	bench_must(sba_sandbox_read(w->sandbox, "/tmp/small", 0, drop, NULL, &err), &err);
	bench_add_step(&small_read, &step);
	bench_spawn(argv);
	bench_add_step(&small_docker, &step);
}

/* ---- memory ---- */

static void measure_memory(struct world *w, enum work work)
{
	const struct timespec pause = { .tv_nsec = 2 * 1000 * 1000 };
	char from[PATH_SIZE], to[PATH_SIZE];
	const char *const argv[] = { w->program, "--prefix", BENCH_PREFIX, "-q",
				     "cp",       from,       to,           NULL };
	long most = 0;
	pid_t pid;
	int status;
	name_sides(w, work, w->name, from, to);
	if (posix_spawn(&pid, w->program, NULL, NULL, (char *const *)argv, environ) != 0)
		bench_die("%s: cannot be started", w->program);
	while (waitpid(pid, &status, WNOHANG) == 0) {
		long now = bench_rss_anon(pid);
		most = now > most ? now : most;
		nanosleep(&pause, NULL);
	}
	if (status != 0)
		bench_die("%s cp: wait status %d", w->program, status);
	bench_add(&memory, (double)most);
	clean(w, work);
}

/* ---- all of it ---- */

static void make_file(const char *path, size_t size)
{
	static char random[1024 * 1024];
	int from = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (read(from, random, sizeof(random)) != (ssize_t)sizeof(random) || fd < 0)
		bench_die("%s: %s", path, strerror(errno));
	for (size_t left = size; left > 0;) {
		ssize_t n = write(fd, random, left < sizeof(random) ? left : sizeof(random));
		if (n <= 0)
			bench_die("%s: %s", path, strerror(errno));
		left -= (size_t)n;
	}
	close(from);
	close(fd);
}

static void make_tar(struct world *w, const char *name)
{
	char path[PATH_SIZE];
	const char *const argv[] = { "tar", "-C", w->dir, "-cf", path, name, NULL };
	snprintf(path, sizeof(path), "%s/%s.tar", w->dir, name);
	bench_spawn(argv);
}

static void prepare(struct world *w)
{
	char path[PATH_SIZE], script[PATH_SIZE];
	snprintf(w->dir, sizeof(w->dir), "/dev/shm/sbabench-XXXXXX");
	if (!mkdtemp(w->dir))
		bench_die("%s: %s", w->dir, strerror(errno));
	snprintf(path, sizeof(path), "%s/big", w->dir);
	make_file(path, (size_t)IN_MIB << 20);
	snprintf(path, sizeof(path), "%s/many", w->dir);
	mkdir(path, 0755);
	for (int i = 0; i < MANY; i++) {
		snprintf(path, sizeof(path), "%s/many/f%05d", w->dir, i);
		make_file(path, SMALL);
	}
	make_tar(w, "big");
	make_tar(w, "many");
	snprintf(path, sizeof(path), "%s/out", w->dir);
	mkdir(path, 0755);
	snprintf(script, sizeof(script),
		 "mkdir -p /tmp/bench/many && mkdir -m 777 /tmp/bench/in && cd /tmp/bench && "
		 "head -c %d /dev/urandom >big && head -c %d /dev/urandom | "
		 "split -b %d -a 5 - many/f",
		 OUT_MIB << 20, MANY * SMALL, SMALL);
	in_sandbox(w, "1000", script);
}

static void measure(struct world *w)
{
	int rounds = bench_rounds() / 2 + 1;
	for (int work = 0; work < WORKS; work++) {
		for (int i = 0; i < rounds; i++)
			round_of(w, (enum work)work, i);
	}
	round_small(w); /* the channel is opened once */
	small_read.n = small_write.n = small_docker.n = 0;
	for (int i = 0; i < 3 * rounds; i++)
		round_small(w);
	for (int work = 0; work < WORKS; work++)
		measure_memory(w, (enum work)work);
}

static void print(void)
{
	for (int work = 0; work < WORKS; work++) {
		for (int way = 0; way < ways_of((enum work)work); way++)
			bench_print(&series[work][way]);
	}
	bench_print(&small_read);
	bench_print(&small_write);
	bench_print(&small_docker);
	bench_print(&memory);
}

int main(int argc, char **argv)
{
	static struct world w;
	struct sba_engine *e;
	struct sba_error err;
	if (argc != 3)
		bench_die("usage: files_bench PROGRAM IMAGE");
	w.program = argv[1];
	bench_must(sba_engine_open(NULL, &e, &err), &err);
	w.sandbox = bench_sandbox(e, argv[2]);
	w.name = sba_sandbox_info(w.sandbox)->name;
	w.container = sba_sandbox_container(w.sandbox);
	bench_true(w.sandbox); /* its channel keeps the sandbox alive, whoever is at work */
	prepare(&w);
	measure(&w);
	print();
	bench_sandbox_end(w.sandbox);
	sba_engine_close(e);
	return nftw(w.dir, remove_one, 16, FTW_PHYS | FTW_DEPTH) == 0 ? 0 : 1;
}
