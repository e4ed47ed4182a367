/* SPDX-License-Identifier: MIT */
/*
 * How fast a command's output and input go through the channel, and the same
 * through the engine's own exec, in one container, in turns.
 *
 * usage: stream_bench IMAGE
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/engine.h"
#include "sandbox/sandbox.h"
#include "support/bench.h"

enum { MIB = 1024 * 1024, PIECE = 64 * 1024, LIMIT_MS = 120 * 1000 };
enum { OUT_OURS, OUT_ENGINE, IN_OURS, IN_ENGINE, SERIES };

static struct bench_series series[SERIES] = {
	[OUT_OURS] = { .name = "stdout.ours", .unit = "MB/s" },
	[OUT_ENGINE] = { .name = "stdout.engine", .unit = "MB/s" },
	[IN_OURS] = { .name = "stdin.ours", .unit = "MB/s" },
	[IN_ENGINE] = { .name = "stdin.engine", .unit = "MB/s" },
};

static const char *const count_argv[] = { "wc", "-c", NULL };
static const char zeros[PIECE];
static size_t total;
static const char *head_argv[] = { "head", "-c", NULL, "/dev/zero", NULL };

/* ---- by the channel ---- */

static struct sba_process *start(struct sba_sandbox *s, const char *const *argv, bool has_stdin)
{
	const struct sba_exec_options options = { .argv = argv, .has_stdin = has_stdin };
	struct sba_process *p = NULL;
	struct sba_error err;
	bench_must(sba_sandbox_exec(s, &options, &p, &err), &err);
	return p;
}

static void out_ours(struct sba_sandbox *s)
{
	struct sba_process *p = start(s, head_argv, false);
	size_t got = 0;
	enum sba_output which;
	const char *data;
	struct sba_error err;
	ssize_t n;
	while ((n = sba_process_read(p, LIMIT_MS, &which, &data, &err)) > 0)
		got += (size_t)n;
	bench_must((int)n, &err);
	if (got != total)
		bench_die("channel: %zu bytes of output, not %zu", got, total);
	bench_process_end(p);
}

/* Reading sends what is queued; room that it made is not told by the descriptor. */
static size_t put_some(struct sba_process *p, size_t len)
{
	struct pollfd poll_for = { .fd = sba_process_fd(p) };
	enum sba_output which;
	const char *data;
	struct sba_error err;
	ssize_t n = sba_process_write(p, zeros, len, &err);
	if (n == 0) {
		n = sba_process_read(p, 0, &which, &data, &err);
		if (n != SBA_ETIMEOUT)
			bench_die("channel: input is not taken: %s", n < 0 ? err.text : "output");
		n = sba_process_write(p, zeros, len, &err);
	}
	bench_must((int)n, &err);
	poll_for.events = sba_process_events(p);
	if (n == 0 && poll(&poll_for, 1, LIMIT_MS) != 1)
		bench_die("channel: input is stuck");
	return (size_t)n;
}

static void check_count(const char *way, const char *data, size_t len)
{
	char text[32];
	snprintf(text, sizeof(text), "%.*s", (int)len, data);
	if (strtoul(text, NULL, 10) != total)
		bench_die("%s: input of %s bytes, not %zu", way, text, total);
}

static void in_ours(struct sba_sandbox *s)
{
	struct sba_process *p = start(s, count_argv, true);
	enum sba_output which;
	const char *data;
	struct sba_error err;
	for (size_t sent = 0; sent < total;) {
		size_t left = total - sent;
		sent += put_some(p, left < PIECE ? left : PIECE);
	}
	bench_must(sba_process_close_stdin(p, &err), &err);
	ssize_t n = sba_process_read(p, LIMIT_MS, &which, &data, &err);
	bench_must((int)n, &err);
	check_count("channel", data, (size_t)n);
	bench_process_end(p);
}

/* ---- by the engine's exec ---- */

static struct sba_exec *start_exec(struct sba_sandbox *s, const char *const *argv, bool has_stdin)
{
	const struct sba_exec_spec spec = { .container = sba_sandbox_container(s),
					    .argv = argv,
					    .no_stdin = !has_stdin };
	struct sba_exec *x = NULL;
	struct sba_error err;
	bench_must(sba_exec_open(sba_sandbox_engine(s), &spec, sba_until_in(LIMIT_MS), &x, &err),
		   &err);
	return x;
}

static void end_exec(struct sba_exec *x)
{
	struct sba_error err;
	int code;
	bench_must(sba_exec_exit_code(x, sba_until_in(LIMIT_MS), &code, &err), &err);
	sba_exec_close(x);
}

static void out_engine(struct sba_sandbox *s)
{
	struct sba_exec *x = start_exec(s, head_argv, false);
	const struct sba_until until = sba_until_in(LIMIT_MS);
	size_t got = 0;
	enum sba_exec_stream which;
	const char *data;
	struct sba_error err;
	ssize_t n;
	while ((n = sba_exec_read(x, &which, &data, until, &err)) > 0)
		got += (size_t)n;
	bench_must((int)n, &err);
	if (got != total)
		bench_die("engine: %zu bytes of output, not %zu", got, total);
	end_exec(x);
}

/* Reading is what sends. */
static void push(struct sba_exec *x)
{
	struct pollfd poll_for = { .fd = sba_exec_fd(x), .events = POLLIN | POLLOUT };
	enum sba_exec_stream which;
	const char *data;
	struct sba_error err;
	if (poll(&poll_for, 1, LIMIT_MS) != 1)
		bench_die("engine: input is stuck");
	ssize_t n = sba_exec_read(x, &which, &data, sba_until_in(0), &err);
	if (n != SBA_ETIMEOUT)
		bench_die("engine: input is not taken: %s", n < 0 ? err.text : "output");
}

static void in_engine(struct sba_sandbox *s)
{
	struct sba_exec *x = start_exec(s, count_argv, true);
	enum sba_exec_stream which;
	const char *data;
	struct sba_error err;
	for (size_t sent = 0; sent < total;) {
		size_t left = total - sent;
		ssize_t n = sba_exec_write(x, zeros, left < PIECE ? left : PIECE, &err);
		bench_must((int)n, &err);
		if (n == 0)
			push(x);
		sent += (size_t)n;
	}
	sba_exec_shutdown(x);
	ssize_t n = sba_exec_read(x, &which, &data, sba_until_in(LIMIT_MS), &err);
	bench_must((int)n, &err);
	check_count("engine", data, (size_t)n);
	end_exec(x);
}

static void measure(struct sba_sandbox *s)
{
	static void (*const ways[SERIES])(struct sba_sandbox *) = {
		[OUT_OURS] = out_ours,
		[OUT_ENGINE] = out_engine,
		[IN_OURS] = in_ours,
		[IN_ENGINE] = in_engine,
	};
	for (int i = bench_rounds() / 3; i >= 0; i--) {
		for (size_t way = 0; way < SERIES; way++) {
			bench_settle();
			double began = bench_now_ms();
			ways[way](s);
			bench_add(&series[way], (double)total / 1e3 / (bench_now_ms() - began));
		}
	}
	for (size_t i = 0; i < SERIES; i++)
		bench_print(&series[i]);
}

int main(int argc, char **argv)
{
	char size[32];
	struct sba_engine *e;
	struct sba_error err;
	if (argc != 2)
		bench_die("usage: stream_bench IMAGE");
	total = (size_t)bench_number("SBA_BENCH_MIB", 256, 16 * 1024) * MIB;
	snprintf(size, sizeof(size), "%zu", total);
	head_argv[2] = size;
	bench_must(sba_engine_open(NULL, &e, &err), &err);
	struct sba_sandbox *s = bench_sandbox(e, argv[1]);
	bench_true(s);
	measure(s);
	bench_sandbox_end(s);
	sba_engine_close(e);
	return 0;
}
