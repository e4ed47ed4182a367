/* SPDX-License-Identifier: MIT */
/*
 * The program as a process: how long its shortest command and one command inside
 * take, and how much anonymous memory it holds during a turn and while a lot of
 * output goes through it.
 *
 * usage: program_bench PROGRAM AGENT IMAGE
 */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sandbox/sandbox.h"
#include "support/bench.h"

enum { TURNS = 3, LOOK_EVERY_MS = 20 };

extern char **environ;

static void measure_version(const char *program)
{
	static struct bench_series ours = { .name = "version.ours", .unit = "ms" };
	static struct bench_series docker = { .name = "version.docker", .unit = "ms" };
	const char *const ours_argv[] = { program, "version", NULL };
	const char *const docker_argv[] = { "docker", "--version", NULL };
	for (int i = 3 * bench_rounds(); i > 0; i--) {
		double step = bench_now_ms();
		bench_spawn(ours_argv);
		bench_add_step(&ours, &step);
		bench_spawn(docker_argv);
		bench_add_step(&docker, &step);
	}
	bench_print(&ours);
	bench_print(&docker);
}

/* What scripts ask again and again, and no engine is needed for. */
static void measure_asking(const char *program)
{
	static struct bench_series show = { .name = "config_show.ours", .unit = "ms" };
	static struct bench_series tag = { .name = "image_tag.ours", .unit = "ms" };
	const char *const show_argv[] = { program, "-q", "config", "show", NULL };
	const char *const tag_argv[] = { program, "image", "tag", NULL };
	for (int i = 3 * bench_rounds(); i > 0; i--) {
		double step = bench_now_ms();
		bench_spawn(show_argv);
		bench_add_step(&show, &step);
		bench_spawn(tag_argv);
		bench_add_step(&tag, &step);
	}
	bench_print(&show);
	bench_print(&tag);
}

/* One process for one command, the engine's own program in turns with ours. */
static void measure_exec(const char *program, struct sba_sandbox *s)
{
	static struct bench_series ours = { .name = "exec_program.ours", .unit = "ms" };
	static struct bench_series docker = { .name = "exec_program.docker", .unit = "ms" };
	const char *const ours_argv[] = {
		program, "--prefix", BENCH_PREFIX, "exec", sba_sandbox_info(s)->name,
		"--",    "true",     NULL
	};
	const char *const docker_argv[] = { "docker", "exec", sba_sandbox_container(s), "true",
					    NULL };
	for (int i = 2 * bench_rounds(); i > 0; i--) {
		bench_settle();
		double step = bench_now_ms();
		bench_spawn(ours_argv);
		bench_add_step(&ours, &step);
		bench_spawn(docker_argv);
		bench_add_step(&docker, &step);
	}
	bench_print(&ours);
	bench_print(&docker);
}

/* The most anonymous memory that it ever had. */
static long most_of(const char *program, const char *const *argv)
{
	const struct timespec pause = { .tv_nsec = LOOK_EVERY_MS * 1000000L };
	posix_spawn_file_actions_t files;
	pid_t pid;
	int status;
	long most = -1;
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	int rc = posix_spawn(&pid, program, &files, NULL, (char *const *)argv, environ);
	posix_spawn_file_actions_destroy(&files);
	if (rc != 0)
		bench_die("%s: %s", program, strerror(rc));
	while (waitpid(pid, &status, WNOHANG) == 0) {
		long now = bench_rss_anon(pid);
		most = now > most ? now : most;
		nanosleep(&pause, NULL);
	}
	if (status != 0 || most < 0)
		bench_die("%s %s: failed with wait status %d", program, argv[3], status);
	return most;
}

static void measure_turns(const char *program, const char *agent)
{
	struct bench_series memory = { .name = "memory.ours", .unit = "KiB" };
	const char *const argv[] = { program,
				     "--prefix",
				     BENCH_PREFIX,
				     "run",
				     agent,
				     "--offline",
				     "write a quicksort in Python to /workspace/qs.py and run it",
				     NULL };
	for (int i = 0; i < TURNS; i++)
		bench_add(&memory, (double)most_of(program, argv));
	bench_print(&memory);
}

static void measure_output(const char *program, struct sba_sandbox *s)
{
	struct bench_series memory = { .name = "memory_output.ours", .unit = "KiB" };
	const char *const argv[] = {
		program, "--prefix", BENCH_PREFIX, "exec", sba_sandbox_info(s)->name, "--", "head",
		"-c",    "1G",       "/dev/zero",  NULL
	};
	bench_add(&memory, (double)most_of(program, argv));
	bench_print(&memory);
}

int main(int argc, char **argv)
{
	struct sba_engine *e;
	struct sba_error err;
	if (argc != 4)
		bench_die("usage: program_bench PROGRAM AGENT IMAGE");
	measure_version(argv[1]);
	measure_asking(argv[1]);
	bench_must(sba_engine_open(NULL, &e, &err), &err);
	struct sba_sandbox *s = bench_sandbox(e, argv[3]);
	measure_exec(argv[1], s);
	measure_output(argv[1], s);
	bench_sandbox_end(s);
	sba_engine_close(e);
	measure_turns(argv[1], argv[2]);
	return 0;
}
