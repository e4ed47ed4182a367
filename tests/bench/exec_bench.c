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

struct rows {
	struct bench_series ours, raw, docker;
	struct bench_series ours_row, raw_row; /* each of several without a pause */
};

enum { WARM_UP = 3, IN_A_ROW = 8 };

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

static void docker_exec_true(const char *container)
{
	const char *const argv[] = { "docker", "exec", container, "true", NULL };
	bench_spawn(argv);
}

static void round_of_one(struct rows *rows, struct sba_sandbox *s, struct bench_raw *raw)
{
	const char *container = sba_sandbox_container(s);
	bench_settle();
	double began = bench_now_ms();
	exec_true(s);
	bench_add_step(&rows->ours, &began);
	bench_settle();
	began = bench_now_ms();
	bench_raw_exec_true(raw, container);
	bench_add_step(&rows->raw, &began);
	bench_settle();
	began = bench_now_ms();
	docker_exec_true(container);
	bench_add_step(&rows->docker, &began);
}

static void round_in_a_row(struct rows *rows, struct sba_sandbox *s, struct bench_raw *raw)
{
	const char *container = sba_sandbox_container(s);
	bench_settle();
	double began = bench_now_ms();
	for (int i = 0; i < IN_A_ROW; i++)
		exec_true(s);
	bench_add(&rows->ours_row, (bench_now_ms() - began) / IN_A_ROW);
	bench_settle();
	began = bench_now_ms();
	for (int i = 0; i < IN_A_ROW; i++)
		bench_raw_exec_true(raw, container);
	bench_add(&rows->raw_row, (bench_now_ms() - began) / IN_A_ROW);
}

static void measure(struct sba_sandbox *s)
{
	static struct rows rows = {
		.ours = { .name = "exec.ours", .unit = "ms" },
		.raw = { .name = "exec.raw", .unit = "ms" },
		.docker = { .name = "exec.docker", .unit = "ms" },
		.ours_row = { .name = "exec_row.ours", .unit = "ms" },
		.raw_row = { .name = "exec_row.raw", .unit = "ms" },
	};
	struct bench_raw raw;
	bench_raw_open(&raw);
	for (int i = 0; i < WARM_UP; i++) {
		exec_true(s);
		bench_raw_exec_true(&raw, sba_sandbox_container(s));
	}
	/* The goal against `docker exec` leaves little room: twice the samples. */
	for (int i = 2 * bench_rounds(); i > 0; i--)
		round_of_one(&rows, s, &raw);
	for (int i = bench_rounds() / 3; i >= 0; i--)
		round_in_a_row(&rows, s, &raw);
	bench_raw_close(&raw);
	bench_print(&rows.ours);
	bench_print(&rows.raw);
	bench_print(&rows.docker);
	bench_print(&rows.ours_row);
	bench_print(&rows.raw_row);
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
