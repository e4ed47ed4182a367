/* SPDX-License-Identifier: MIT */
/*
 * Three children of a sandbox in which 200 MB have changed, against the same work by
 * hand: what changed downloaded once, three sandboxes started, and it uploaded to each.
 *
 * usage: fork_bench IMAGE
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <sandbox-agent/files.h>

#include "support/bench.h"

enum { CHILDREN = 3, CHANGED_MB = 200, ROUNDS_MAX = 5 };

#define LOCAL_DIR "/dev/shm/" BENCH_PREFIX "-fork"

static struct sba_engine *engine;
static const char *image;

static struct sba_sandbox *parent(void)
{
	char script[200];
	struct sba_sandbox *s = bench_sandbox(engine, image);
	struct sba_process *p = NULL;
	struct sba_error err;
	/* Many small files and few large ones, which no engine could compress. */
	snprintf(script, sizeof(script),
		 "mkdir -p /workspace/work/small && cd /workspace/work && for i in $(seq 1000); do "
		 "head -c 20000 /dev/urandom > small/$i; done && head -c %d000000 /dev/urandom > "
		 "big",
		 CHANGED_MB - 20);
	const char *const argv[] = { "sh", "-c", script, NULL };
	const struct sba_exec_options o = { .argv = argv, .timeout_ms = 120 * 1000 };
	bench_must(sba_sandbox_exec(s, &o, &p, &err), &err);
	bench_process_end(p);
	return s;
}

static void remove_all(struct sba_sandbox **v)
{
	for (int i = 0; i < CHILDREN; i++)
		bench_sandbox_end(v[i]);
}

static void round_ours(struct sba_sandbox *s, struct bench_series *ours)
{
	const struct sba_fork_options o = { .count = CHILDREN };
	struct sba_sandbox *v[CHILDREN] = { NULL };
	struct sba_error err;
	bench_settle();
	double step = bench_now_ms();
	bench_must(sba_sandbox_fork(s, &o, v, NULL, &err), &err);
	bench_add_step(ours, &step);
	remove_all(v);
}

static void remove_local(void)
{
	static const char *const argv[] = { "/bin/rm", "-rf", LOCAL_DIR, NULL };
	bench_spawn(argv);
}

static void round_by_hand(struct sba_sandbox *s, struct bench_series *hand)
{
	struct sba_sandbox *v[CHILDREN];
	struct sba_error err;
	remove_local();
	bench_settle();
	double step = bench_now_ms();
	bench_must(sba_sandbox_download(s, "/workspace/work", LOCAL_DIR, NULL, NULL, &err), &err);
	for (int i = 0; i < CHILDREN; i++) {
		v[i] = bench_sandbox(engine, image);
		bench_must(sba_sandbox_upload(v[i], LOCAL_DIR, "/workspace/work", NULL, NULL, &err),
			   &err);
	}
	bench_add_step(hand, &step);
	remove_all(v);
	remove_local();
}

int main(int argc, char **argv)
{
	static struct bench_series ours = { .name = "fork.ours", .unit = "ms" };
	static struct bench_series hand = { .name = "fork.hand", .unit = "ms" };
	struct sba_error err;
	if (argc != 2)
		bench_die("usage: fork_bench IMAGE");
	image = argv[1];
	bench_must(sba_engine_open(NULL, &engine, &err), &err);
	struct sba_sandbox *s = parent();
	for (int i = bench_rounds() < ROUNDS_MAX ? bench_rounds() : ROUNDS_MAX; i > 0; i--) {
		round_ours(s, &ours);
		round_by_hand(s, &hand);
	}
	bench_sandbox_end(s);
	sba_engine_close(engine);
	bench_print(&ours);
	bench_print(&hand);
	return 0;
}
