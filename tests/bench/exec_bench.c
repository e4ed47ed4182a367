/* SPDX-License-Identifier: MIT */
/*
 * What a command costs: `true` through a kept handle by its channel, through
 * the same handle by an engine's exec of its own, the same by three raw
 * requests, and by `docker exec`, in one container, in turns.
 *
 * usage: exec_bench IMAGE
 */
#include <stdio.h>

#include "engine/engine.h"
#include "sandbox/sandbox.h"
#include "support/bench.h"

enum { WARM_UP = 3, IN_A_ROW = 8 };
enum { OURS, ENGINE, RAW, DOCKER, OURS_ROW, ENGINE_ROW, RAW_ROW, DOCKER_ROW, FIRST, SERIES };

static struct bench_series series[SERIES] = {
	[OURS] = { .name = "exec.ours", .unit = "ms" },
	[ENGINE] = { .name = "exec.engine", .unit = "ms" },
	[RAW] = { .name = "exec.raw", .unit = "ms" },
	[DOCKER] = { .name = "exec.docker", .unit = "ms" },
	/* of several, each right after the one before */
	[OURS_ROW] = { .name = "exec_row.ours", .unit = "ms" },
	[ENGINE_ROW] = { .name = "exec_row.engine", .unit = "ms" },
	[RAW_ROW] = { .name = "exec_row.raw", .unit = "ms" },
	[DOCKER_ROW] = { .name = "exec_row.docker", .unit = "ms" },
	[FIRST] = { .name = "exec_first.ours", .unit = "ms" },
};

struct world {
	struct sba_sandbox *sandbox;
	char user[128]; /* the image's own, so that nothing but the way differs */
	struct bench_raw raw;
};

static void by_channel(struct world *w)
{
	bench_true(w->sandbox);
}

/* A user that is named makes an exec of its own. */
static void by_engine(struct world *w)
{
	static const char *const argv[] = { "true", NULL };
	const struct sba_exec_options options = { .argv = argv, .user = w->user };
	struct sba_process *p = NULL;
	struct sba_error err;
	bench_must(sba_sandbox_exec(w->sandbox, &options, &p, &err), &err);
	bench_process_end(p);
}

static void by_hand(struct world *w)
{
	bench_raw_exec_true(&w->raw, sba_sandbox_container(w->sandbox));
}

static void by_docker(struct world *w)
{
	const char *const argv[] = { "docker", "exec", sba_sandbox_container(w->sandbox), "true",
				     NULL };
	bench_spawn(argv);
}

static const struct way {
	void (*exec)(struct world *w);
	size_t series, row_series;
} ways[] = {
	{ by_channel, OURS, OURS_ROW },
	{ by_engine, ENGINE, ENGINE_ROW },
	{ by_hand, RAW, RAW_ROW },
	{ by_docker, DOCKER, DOCKER_ROW },
};

/* Each way once, another one first in each round; `times` in a row make a sample. */
static void round_of(struct world *w, int number, int times)
{
	for (size_t i = 0; i < SBA_ARRAY_LEN(ways); i++) {
		const struct way *way = &ways[((size_t)number + i) % SBA_ARRAY_LEN(ways)];
		bench_settle();
		double began = bench_now_ms();
		for (int n = 0; n < times; n++)
			way->exec(w);
		bench_add(&series[times > 1 ? way->row_series : way->series],
			  (bench_now_ms() - began) / times);
	}
}

static void first_byte(struct world *w)
{
	double step = bench_now_ms();
	struct sba_process *p = bench_first_byte(w->sandbox);
	bench_add_step(&series[FIRST], &step);
	bench_process_end(p);
}

static void measure(struct world *w)
{
	for (int i = 0; i < WARM_UP; i++) {
		by_channel(w);
		by_engine(w);
		by_hand(w);
	}
	/* The goal against `docker exec` leaves little room: more samples. */
	for (int i = 3 * bench_rounds() / 2; i > 0; i--)
		round_of(w, i, 1);
	for (int i = bench_rounds() / 3; i >= 0; i--)
		round_of(w, i, IN_A_ROW);
	bench_settle();
	for (int i = 4 * bench_rounds(); i > 0; i--)
		first_byte(w);
	for (size_t i = 0; i < SERIES; i++)
		bench_print(&series[i]);
}

static void find_user(struct world *w, struct sba_engine *e, const char *image)
{
	SBA_JSON json_t *j = NULL;
	struct sba_error err;
	bench_must(sba_image_inspect(e, image, sba_until_in(60 * 1000), &j, &err), &err);
	const char *user = sba_json_str(j, "Config.User");
	snprintf(w->user, sizeof(w->user), "%s", user && *user ? user : "0");
}

int main(int argc, char **argv)
{
	static struct world w;
	struct sba_engine *e;
	struct sba_error err;
	if (argc != 2)
		bench_die("usage: exec_bench IMAGE");
	bench_must(sba_engine_open(NULL, &e, &err), &err);
	find_user(&w, e, argv[1]);
	w.sandbox = bench_sandbox(e, argv[1]);
	bench_raw_open(&w.raw);
	measure(&w);
	bench_raw_close(&w.raw);
	bench_sandbox_end(w.sandbox);
	sba_engine_close(e);
	return 0;
}
