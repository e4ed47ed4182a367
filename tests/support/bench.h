/* SPDX-License-Identifier: MIT */
/*
 * What benchmarks share: samples, one JSON line for each series of them, and
 * the plainest possible client of the engine to be compared with. A failure
 * ends the program; ci/bench removes what is left.
 */
#ifndef SBA_TESTS_BENCH_H
#define SBA_TESTS_BENCH_H

#include <sandbox-agent/sandbox.h>

#include <stddef.h>

/* Every object that a benchmark makes on the engine begins with it. */
#define BENCH_PREFIX "sbabench"

enum { BENCH_ROUNDS_MAX = 80, BENCH_MAX = 4 * BENCH_ROUNDS_MAX, BENCH_ID_MAX = 128 };

struct bench_series {
	const char *name; /* "exec.ours" */
	const char *unit; /* "ms", "MB/s", "KiB" */
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
/* How many rounds: SBA_BENCH_ROUNDS, else 10. */
int bench_rounds(void);
/* A whole number from the environment, else `otherwise`. */
int bench_number(const char *name, int otherwise, int max);
/* The middle one of n values, which it sorts. */
double bench_median(double *values, size_t n);
/* Anonymous memory of a process in KiB; -1 once it has ended. */
long bench_rss_anon(pid_t pid);
void bench_die(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
/* Runs a program to its end, output discarded; it has to succeed. */
void bench_spawn(const char *const *argv);

/* ---- the library ---- */

void bench_must(int rc, const struct sba_error *err);
/* A sandbox of an image that is there. */
struct sba_sandbox *bench_sandbox(struct sba_engine *e, const char *image);
/* The same with mounts, as sba_sandbox_options.mounts. */
struct sba_sandbox *bench_sandbox_with(struct sba_engine *e, const char *image,
				       const char *const *mounts);
void bench_sandbox_end(struct sba_sandbox *s);
/* The end of a command; it has to succeed. Frees it. */
void bench_process_end(struct sba_process *p);
/* `true` by the handle's channel, to its end. */
void bench_true(struct sba_sandbox *s);
/* A command whose first byte of output is waited for. */
struct sba_process *bench_first_byte(struct sba_sandbox *s);

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
/* A command's first byte of output, by create and start (on a connection of its own). */
void bench_raw_first_byte(struct bench_raw *r, const char *container);
/* A container that sleeps; `network` as the engine names it, NULL: its default. */
void bench_bare_create(struct bench_raw *r, const char *image, const char *network,
		       char ret_id[BENCH_ID_MAX]);
void bench_bare_start(struct bench_raw *r, const char *id);
void bench_bare_remove(struct bench_raw *r, const char *id);

#endif
