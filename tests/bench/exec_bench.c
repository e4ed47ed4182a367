/* SPDX-License-Identifier: MIT */
/*
 * What a command costs: `true` through a kept handle, the same by three raw
 * requests, and by `docker exec`, in one container, in turns.
 *
 * usage: exec_bench IMAGE
 */
#include <sandbox-agent/sandbox.h>

#include <stdio.h>
#include <unistd.h>

#include "sandbox/sandbox.h"
#include "support/bench.h"

enum { WAYS = 3, WARM_UP = 3, IN_A_ROW = 8 };
enum { OURS, RAW, DOCKER, OURS_ROW, RAW_ROW, DOCKER_ROW, SERIES };

static struct bench_series series[SERIES] = {
	[OURS] = { .name = "exec.ours", .unit = "ms" },
	[RAW] = { .name = "exec.raw", .unit = "ms" },
	[DOCKER] = { .name = "exec.docker", .unit = "ms" },
	/* of several, each right after the one before */
	[OURS_ROW] = { .name = "exec_row.ours", .unit = "ms" },
	[RAW_ROW] = { .name = "exec_row.raw", .unit = "ms" },
	[DOCKER_ROW] = { .name = "exec_row.docker", .unit = "ms" },
};

static void exec_true(struct sba_sandbox *s)
{
	static const char *const argv[] = { "true", NULL };
	const struct sba_exec_options options = { .argv = argv };
	struct sba_process *p;
	struct sba_exit end;
	struct sba_error err;
	if (sba_sandbox_exec(s, &options, &p, &err) < 0 ||
	    sba_process_wait(p, 60 * 1000, &end, &err) < 0)
		bench_die("%s", err.text);
	sba_process_free(p);
	if (end.kind != SBA_EXITED || end.number != 0)
		bench_die("true: kind %d, number %d", (int)end.kind, end.number);
}

static void by_us(struct sba_sandbox *s, struct bench_raw *raw)
{
	(void)raw;
	exec_true(s);
}

static void by_hand(struct sba_sandbox *s, struct bench_raw *raw)
{
	bench_raw_exec_true(raw, sba_sandbox_container(s));
}

static void by_docker(struct sba_sandbox *s, struct bench_raw *raw)
{
	const char *const argv[] = { "docker", "exec", sba_sandbox_container(s), "true", NULL };
	(void)raw;
	bench_spawn(argv);
}

static const struct way {
	void (*exec)(struct sba_sandbox *s, struct bench_raw *raw);
	size_t series, row_series;
} ways[] = {
	{ by_us, OURS, OURS_ROW },
	{ by_hand, RAW, RAW_ROW },
	{ by_docker, DOCKER, DOCKER_ROW },
};

/* Each way once, another one first in each round; `times` in a row make a sample. */
static void round_of(struct sba_sandbox *s, struct bench_raw *raw, int number, int times)
{
	for (size_t i = 0; i < WAYS; i++) {
		const struct way *way = &ways[((size_t)number + i) % WAYS];
		bench_settle();
		double began = bench_now_ms();
		for (int n = 0; n < times; n++)
			way->exec(s, raw);
		bench_add(&series[times > 1 ? way->row_series : way->series],
			  (bench_now_ms() - began) / times);
	}
}

static void measure(struct sba_sandbox *s)
{
	struct bench_raw raw;
	bench_raw_open(&raw);
	for (int i = 0; i < WARM_UP; i++) {
		by_us(s, &raw);
		by_hand(s, &raw);
	}
	/* The goal against `docker exec` leaves little room: twice the samples. */
	for (int i = 2 * bench_rounds(); i > 0; i--)
		round_of(s, &raw, i, 1);
	for (int i = bench_rounds() / 3; i >= 0; i--)
		round_of(s, &raw, i, IN_A_ROW);
	bench_raw_close(&raw);
	for (size_t i = 0; i < SERIES; i++)
		bench_print(&series[i]);
}

int main(int argc, char **argv)
{
	struct sba_engine *e;
	struct sba_sandbox *s;
	struct sba_error err;
	if (argc != 2)
		bench_die("usage: exec_bench IMAGE");
	const struct sba_sandbox_options options = {
		.prefix = BENCH_PREFIX,
		.image = argv[1],
		.keepalive_ms = 60 * 1000,
	};
	if (sba_engine_open(NULL, &e, &err) < 0 || sba_sandbox_create(e, &options, &s, &err) < 0)
		bench_die("%s", err.text);
	measure(s);
	if (sba_sandbox_remove(s, &err) < 0)
		bench_die("%s", err.text);
	sba_sandbox_close(s);
	sba_engine_close(e);
	return 0;
}
