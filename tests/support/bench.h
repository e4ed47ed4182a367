/* SPDX-License-Identifier: MIT */
/*
 * What benchmarks share: samples, one JSON line for each series of them, and
 * the plainest possible client of the engine to be compared with. A failure
 * ends the program; ci/bench removes what is left.
 */
#ifndef SBA_TESTS_BENCH_H
#define SBA_TESTS_BENCH_H

#include <stddef.h>

/* Every object that a benchmark makes on the engine begins with it. */
#define BENCH_PREFIX "sbabench"

enum { BENCH_ROUNDS_MAX = 80, BENCH_MAX = 3 * BENCH_ROUNDS_MAX };

struct bench_series {
	const char *name; /* "exec.ours" */
	const char *unit; /* "ms", "KiB" */
	double samples[BENCH_MAX];
	size_t n;
};

double bench_now_ms(void);
void bench_add(struct bench_series *s, double value);
/* The time since *step, which becomes now. */
void bench_add_step(struct bench_series *s, double *step);
/* {"name":…,"unit":…,"samples":[…]} on stdout. */
void bench_print(const struct bench_series *s);
/* Lets the engine finish what the sample before left it to do. */
void bench_settle(void);
/* How many rounds: SBA_BENCH_ROUNDS, else 15. */
int bench_rounds(void);
void bench_die(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
/* Runs a program to its end, output discarded; it has to succeed. */
void bench_spawn(const char *const *argv);

/* ---- the engine, by hand ---- */

struct bench_raw {
	int fd;
	size_t len;     /* of what was received */
	char in[16384]; /* an answer with its head */
};

void bench_raw_open(struct bench_raw *r);
void bench_raw_close(struct bench_raw *r);
/* A request whose answer must be a success; its body, lent until the next call. */
const char *bench_raw_call(struct bench_raw *r, const char *method, const char *path,
			   const char *json);
/* The string of "Id" in an answer, copied. */
void bench_raw_id(const char *answer, char *ret, size_t size);
/* `true` in a container, by create, start (on a connection of its own) and inspect. */
void bench_raw_exec_true(struct bench_raw *r, const char *container);

#endif
