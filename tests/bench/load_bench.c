/* SPDX-License-Identifier: MIT */
/*
 * Many sandboxes started by one process on one engine handle, a few at a time:
 * how long it takes against twice as many bare containers, how many fail, and
 * what anonymous memory the process holds once each has run a command.
 * SBA_BENCH_SANDBOXES (20) says how many.
 *
 * usage: load_bench IMAGE
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "support/bench.h"

enum { PARALLEL = 8, SANDBOXES_MAX = 200 };

static const char *image;
static int wanted;
static struct sba_engine *engine;
static struct sba_sandbox *sandboxes[SANDBOXES_MAX];
static char bare[2 * SANDBOXES_MAX][BENCH_ID_MAX];
static atomic_int failures;

/* ---- a few at a time ---- */

struct crowd {
	void (*each)(int number, struct bench_raw *raw);
	int n;
	atomic_int next;
};

static void *work(void *user)
{
	struct crowd *c = user;
	struct bench_raw raw;
	int i;
	bench_raw_open(&raw);
	while ((i = atomic_fetch_add(&c->next, 1)) < c->n)
		c->each(i, &raw);
	bench_raw_close(&raw);
	return NULL;
}

/* How long all of them took, in ms. */
static double for_all(int n, void (*each)(int number, struct bench_raw *raw))
{
	struct crowd c = { .each = each, .n = n };
	pthread_t threads[PARALLEL];
	double began = bench_now_ms();
	for (int i = 0; i < PARALLEL; i++) {
		if (pthread_create(&threads[i], NULL, work, &c) != 0)
			bench_die("no thread");
	}
	for (int i = 0; i < PARALLEL; i++)
		pthread_join(threads[i], NULL);
	return bench_now_ms() - began;
}

/* ---- what is done to each ---- */

static void make(int i, struct bench_raw *raw)
{
	const struct sba_sandbox_options options = { .prefix = BENCH_PREFIX,
						     .image = image,
						     .max_sandboxes = -1,
						     .keepalive_ms = 120 * 1000 };
	struct sba_error err;
	(void)raw;
	if (sba_sandbox_create(engine, &options, &sandboxes[i], &err) == 0)
		return;
	atomic_fetch_add(&failures, 1);
	fprintf(stderr, "bench: %s\n", err.text);
}

static void use(int i, struct bench_raw *raw)
{
	(void)raw;
	if (sandboxes[i])
		bench_true(sandboxes[i]);
}

static void end(int i, struct bench_raw *raw)
{
	(void)raw;
	if (sandboxes[i])
		bench_sandbox_end(sandboxes[i]);
}

static void bare_make(int i, struct bench_raw *raw)
{
	bench_bare_create(raw, image, NULL, bare[i]);
	bench_bare_start(raw, bare[i]);
}

static void bare_end(int i, struct bench_raw *raw)
{
	bench_bare_remove(raw, bare[i]);
}

static double bare_wall(void)
{
	bench_settle();
	double took = for_all(wanted, bare_make);
	for_all(wanted, bare_end);
	return took;
}

/* ---- the measure ---- */

/* Half of the bare ones before ours and half after, so that a machine that gets
 * busier or slower does not decide. */
static void measure(void)
{
	struct bench_series ours = { .name = "load.ours", .unit = "ms" };
	struct bench_series theirs = { .name = "load.bare", .unit = "ms" };
	struct bench_series failed = { .name = "load.failed", .unit = "failed" };
	struct bench_series memory = { .name = "load.memory", .unit = "KiB" };
	double by_hand = bare_wall();
	bench_settle();
	bench_add(&ours, for_all(wanted, make));
	for_all(wanted, use);
	bench_add(&memory, (double)bench_rss_anon(getpid()));
	bench_add(&failed, (double)atomic_load(&failures));
	for_all(wanted, end);
	bench_add(&theirs, by_hand + bare_wall());
	bench_print(&ours);
	bench_print(&theirs);
	bench_print(&failed);
	bench_print(&memory);
}

int main(int argc, char **argv)
{
	struct sba_error err;
	if (argc != 2)
		bench_die("usage: load_bench IMAGE");
	image = argv[1];
	wanted = bench_number("SBA_BENCH_SANDBOXES", 20, SANDBOXES_MAX);
	bench_must(sba_engine_open(NULL, &engine, &err), &err);
	measure();
	sba_engine_close(engine);
	return 0;
}
