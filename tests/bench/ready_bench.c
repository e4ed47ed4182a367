/* SPDX-License-Identifier: MIT */
/*
 * How long until a sandbox, a new one and one from the pool, has said its first
 * byte, against one bare container by raw requests; and its removal, against
 * that of two of them, both at once, as ours are.
 *
 * usage: ready_bench IMAGE
 */
#include <pthread.h>

#include "support/bench.h"

enum { READY_OURS, READY_POOL, READY_BARE, RM_OURS, RM_BARE, SERIES };

static struct bench_series series[SERIES] = {
	[READY_OURS] = { .name = "ready.ours", .unit = "ms" },
	[READY_POOL] = { .name = "ready.pool", .unit = "ms" },
	[READY_BARE] = { .name = "ready.bare", .unit = "ms" },
	[RM_OURS] = { .name = "rm.ours", .unit = "ms" },
	[RM_BARE] = { .name = "rm.bare", .unit = "ms" },
};

static void round_ours(struct sba_engine *e, const char *image)
{
	struct sba_error err;
	bench_settle();
	double step = bench_now_ms();
	struct sba_sandbox *s = bench_sandbox(e, image);
	struct sba_process *p = bench_first_byte(s);
	bench_add_step(&series[READY_OURS], &step);
	bench_process_end(p);
	bench_settle();
	step = bench_now_ms();
	bench_must(sba_sandbox_remove(s, &err), &err);
	bench_add_step(&series[RM_OURS], &step);
	sba_sandbox_close(s);
}

static void round_pool(struct sba_engine *e, const char *image)
{
	const struct sba_sandbox_options o = { .prefix = BENCH_PREFIX,
					       .image = image,
					       .max_sandboxes = -1 };
	struct sba_error err;
	struct sba_sandbox *s;
	bench_must(sba_pool_fill(e, &o, 1, NULL, &err), &err);
	bench_settle();
	double step = bench_now_ms();
	bench_must(sba_pool_claim(e, &o, &s, &err), &err);
	struct sba_process *p = bench_first_byte(s);
	bench_add_step(&series[READY_POOL], &step);
	bench_process_end(p);
	bench_must(sba_sandbox_remove(s, &err), &err);
	sba_sandbox_close(s);
}

struct bare {
	struct bench_raw raw;
	char id[BENCH_ID_MAX];
};

static void bare_ready(struct bare *b, const char *image)
{
	bench_bare_create(&b->raw, image, NULL, b->id);
	bench_bare_start(&b->raw, b->id);
	bench_raw_first_byte(&b->raw, b->id);
}

static void *bare_remove(void *user)
{
	struct bare *b = user;
	bench_bare_remove(&b->raw, b->id);
	return NULL;
}

static void round_bare(const char *image)
{
	static struct bare pair[2];
	pthread_t thread;
	bench_raw_open(&pair[0].raw);
	bench_raw_open(&pair[1].raw);
	bench_settle();
	double step = bench_now_ms();
	bare_ready(&pair[0], image);
	bench_add_step(&series[READY_BARE], &step);
	bare_ready(&pair[1], image);
	bench_settle();
	step = bench_now_ms();
	if (pthread_create(&thread, NULL, bare_remove, &pair[1]) != 0)
		bench_die("no thread");
	bare_remove(&pair[0]);
	pthread_join(thread, NULL);
	bench_add_step(&series[RM_BARE], &step);
	bench_raw_close(&pair[0].raw);
	bench_raw_close(&pair[1].raw);
}

int main(int argc, char **argv)
{
	struct sba_engine *e;
	struct sba_error err;
	if (argc != 2)
		bench_die("usage: ready_bench IMAGE");
	bench_must(sba_engine_open(NULL, &e, &err), &err);
	for (int i = (bench_rounds() + 1) / 2; i > 0; i--) {
		round_ours(e, argv[1]);
		round_pool(e, argv[1]);
		round_bare(argv[1]);
	}
	sba_engine_close(e);
	for (size_t i = 0; i < SERIES; i++)
		bench_print(&series[i]);
	return 0;
}
