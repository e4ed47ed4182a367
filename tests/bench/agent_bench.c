/* SPDX-License-Identifier: MIT */
/*
 * What a turn costs beside its CLI, how long until an agent can be talked with, and
 * five agents at once against the slowest of them alone.
 *
 * usage: agent_bench PROGRAM AGENT IMAGE
 */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sandbox-agent/agent.h>

#include "support/bench.h"

extern char **environ;

static struct sba_engine *engine;

/* ---- one turn ---- */

/* A CLI that says when it began and when it is about to end, a third of a second
 * later, by the clock that this process has too. */
static const char *const timed_cli[] = {
	"bash", "-c", "s=$EPOCHREALTIME; cat >/dev/null; sleep 0.3; echo $s $EPOCHREALTIME", NULL
};

/* "1700000000.250000 1700000000.550000" in ms. */
static double own_time(const char *text)
{
	double began = 0, ended = 0;
	if (sscanf(text, "%lf %lf", &began, &ended) != 2)
		bench_die("the CLI said '%s'", text);
	return (ended - began) * 1000;
}

static void turn(struct sba_agent *a, struct bench_series *above)
{
	const struct sba_turn_options o = { .prompt = "hi" };
	struct sba_turn *t = NULL;
	struct sba_turn_result r;
	struct sba_error err;
	double began = bench_now_ms();
	bench_must(sba_turn_begin(a, &o, &t, &err), &err);
	sba_turn_result(t, &r);
	double took = bench_now_ms() - began;
	bench_must(r.error.code, &r.error);
	bench_add(above, took - own_time(r.text));
	sba_turn_free(t);
}

/* A program's stdout, as far as it goes into buf; the program has to succeed. */
static void output_of(const char *const *argv, char *buf, size_t size)
{
	posix_spawn_file_actions_t actions;
	int ends[2], status;
	pid_t pid;
	size_t len = 0;
	ssize_t n;
	if (pipe2(ends, O_CLOEXEC) < 0 || posix_spawn_file_actions_init(&actions))
		bench_die("no pipe");
	posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
	if (posix_spawn(&pid, argv[0], &actions, NULL, (char **)(uintptr_t)argv, environ))
		bench_die("%s cannot be run", argv[0]);
	close(ends[1]);
	while (len + 1 < size && (n = read(ends[0], buf + len, size - len - 1)) > 0)
		len += (size_t)n;
	buf[len] = '\0';
	close(ends[0]);
	posix_spawn_file_actions_destroy(&actions);
	if (waitpid(pid, &status, 0) != pid || status != 0)
		bench_die("%s %s failed", argv[0], argv[1]);
}

static void chat(const char *program, const char *name, struct bench_series *above)
{
	const char *const argv[] = { program, "--prefix", BENCH_PREFIX, "-q",
				     "chat",  name,       "hi",         NULL };
	char text[256];
	double began = bench_now_ms();
	output_of(argv, text, sizeof(text));
	bench_add(above, bench_now_ms() - began - own_time(text));
}

static void measure_turns(const char *program, const char *image)
{
	static struct bench_series kept = { .name = "turn.kept", .unit = "ms" };
	static struct bench_series whole = { .name = "turn.program", .unit = "ms" };
	const struct sba_sandbox_options options = { .prefix = BENCH_PREFIX,
						     .image = image,
						     .agent = "command",
						     .program = timed_cli,
						     .provider = "scripted" };
	const struct sba_agent_options ao = { .offline = true };
	struct sba_sandbox *s = NULL;
	struct sba_agent *a = NULL;
	struct sba_error err;
	bench_must(sba_sandbox_create(engine, &options, &s, &err), &err);
	bench_must(sba_agent_open(s, &ao, &a, &err), &err);
	turn(a, &(struct bench_series){ .name = "warm" });
	for (int i = 2 * bench_rounds(); i > 0; i--) {
		bench_settle();
		turn(a, &kept);
	}
	sba_agent_close(a);
	for (int i = bench_rounds(); i > 0; i--) {
		bench_settle();
		chat(program, sba_sandbox_info(s)->name, &whole);
	}
	bench_sandbox_end(s);
	bench_print(&kept);
	bench_print(&whole);
}

/* ---- ready to be talked with ---- */

static void round_ours(const char *agent, const char *image, struct bench_series *ours)
{
	const struct sba_sandbox_options options = {
		.prefix = BENCH_PREFIX, .image = image, .agent = agent, .provider = "scripted"
	};
	const struct sba_agent_options ao = { .offline = true };
	struct sba_sandbox *s = NULL;
	struct sba_agent *a = NULL;
	struct sba_error err;
	bench_settle();
	double step = bench_now_ms();
	bench_must(sba_sandbox_create(engine, &options, &s, &err), &err);
	bench_must(sba_agent_open(s, &ao, &a, &err), &err);
	struct sba_process *p = bench_first_byte(s);
	bench_add_step(ours, &step);
	bench_process_end(p);
	sba_agent_close(a);
	bench_sandbox_end(s);
}

static void round_bare(const char *image, struct bench_series *bare)
{
	struct bench_raw raw;
	char id[BENCH_ID_MAX];
	bench_raw_open(&raw);
	bench_settle();
	double step = bench_now_ms();
	bench_bare_create(&raw, image, NULL, id);
	bench_bare_start(&raw, id);
	bench_raw_first_byte(&raw, id);
	bench_add_step(bare, &step);
	bench_bare_remove(&raw, id);
	bench_raw_close(&raw);
}

static void measure_ready(const struct sba_images *images, const char *agent)
{
	static struct bench_series ours = { .name = "agent_ready.ours", .unit = "ms" };
	static struct bench_series bare = { .name = "agent_ready.bare", .unit = "ms" };
	for (int i = (bench_rounds() + 1) / 2; i > 0; i--) {
		round_ours(agent, sba_images_ref(images, agent), &ours);
		round_bare(sba_images_ref(images, agent), &bare);
	}
	bench_print(&ours);
	bench_print(&bare);
}

/* ---- five at once ---- */

static const char *const five[] = { "claude", "codex", "dsh", "opencode", "pi" };
enum { FIVE = sizeof(five) / sizeof(five[0]), FIVE_ROUNDS_MAX = 3 };

/* A turn of a model's pace, which takes longer than any CLI takes to begin: 120 pieces,
 * ten a second. Answers that come at once would measure how many of the CLIs fit on this
 * machine's processors. */
static const char paced[] =
	"{\"v\":1,\"rules\":[{\"match\":{\"any\":true},\"steps\":[{\"text\":\"word \","
	"\"fill\":\"600\",\"chunk\":5,\"delay_ms\":100}]}]}";

static char script[] = "/tmp/sbabench-script-XXXXXX";

static void write_script(void)
{
	int fd = mkstemp(script);
	if (fd < 0 || write(fd, paced, strlen(paced)) != (ssize_t)strlen(paced))
		bench_die("%s cannot be written", script);
	close(fd);
}

static pid_t start_run(const char *program, const char *agent)
{
	const char *const argv[] = { program,     "--prefix", BENCH_PREFIX, "-q", "run", agent,
				     "--offline", "--script", script,       "hi", NULL };
	posix_spawn_file_actions_t actions;
	pid_t pid;
	if (posix_spawn_file_actions_init(&actions))
		bench_die("no memory");
	posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
	if (posix_spawn(&pid, program, &actions, NULL, (char **)(uintptr_t)argv, environ))
		bench_die("%s cannot be run", program);
	posix_spawn_file_actions_destroy(&actions);
	return pid;
}

static void end_run(pid_t pid)
{
	int status;
	if (waitpid(pid, &status, 0) != pid || status != 0)
		bench_die("a run failed");
}

static double alone(const char *program, const char *agent)
{
	bench_settle();
	double began = bench_now_ms();
	end_run(start_run(program, agent));
	return bench_now_ms() - began;
}

/* It also brings the files of all five from the disk into the page cache. */
static const char *slowest(const char *program)
{
	const char *agent = five[0];
	double most = 0;
	for (int i = 0; i < FIVE; i++) {
		double took = alone(program, five[i]);
		agent = took > most ? five[i] : agent;
		most = took > most ? took : most;
	}
	return agent;
}

static void measure_five(const char *program)
{
	static struct bench_series together = { .name = "five.ours", .unit = "ms" };
	static struct bench_series one = { .name = "five.slowest", .unit = "ms" };
	int rounds = bench_rounds() < FIVE_ROUNDS_MAX ? bench_rounds() : FIVE_ROUNDS_MAX;
	write_script();
	const char *last = slowest(program);
	for (; rounds > 0; rounds--) {
		pid_t pids[FIVE];
		bench_add(&one, alone(program, last));
		bench_settle();
		double step = bench_now_ms();
		for (int i = 0; i < FIVE; i++)
			pids[i] = start_run(program, five[i]);
		for (int i = 0; i < FIVE; i++)
			end_run(pids[i]);
		bench_add_step(&together, &step);
	}
	unlink(script);
	bench_print(&together);
	bench_print(&one);
}

int main(int argc, char **argv)
{
	struct sba_images *images = NULL;
	struct sba_error err;
	if (argc != 4)
		bench_die("usage: agent_bench PROGRAM AGENT IMAGE");
	bench_must(sba_engine_open(NULL, &engine, &err), &err);
	bench_must(sba_images_open(NULL, "versions.json", &images, &err), &err);
	measure_turns(argv[1], argv[3]);
	measure_ready(images, argv[2]);
	measure_five(argv[1]);
	sba_images_close(images);
	sba_engine_close(engine);
	return 0;
}
