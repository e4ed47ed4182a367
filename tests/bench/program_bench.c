/* SPDX-License-Identifier: MIT */
/*
 * The program as a process: how long its shortest command takes, and how much
 * anonymous memory it holds during a turn.
 *
 * usage: program_bench PROGRAM AGENT
 */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

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

static void measure_config(const char *program)
{
	static struct bench_series show = { .name = "config_show.ours", .unit = "ms" };
	const char *const argv[] = { program, "-q", "config", "show", NULL };
	for (int i = 3 * bench_rounds(); i > 0; i--) {
		double step = bench_now_ms();
		bench_spawn(argv);
		bench_add_step(&show, &step);
	}
	bench_print(&show);
}

static long most_of_turn(const char *program, const char *agent)
{
	const char *const argv[] = { program,
				     "--prefix",
				     BENCH_PREFIX,
				     "run",
				     agent,
				     "--offline",
				     "write a quicksort in Python to /workspace/qs.py and run it",
				     NULL };
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
		bench_die("%s run %s: failed with wait status %d", program, agent, status);
	return most;
}

int main(int argc, char **argv)
{
	struct bench_series memory = { .name = "memory.ours", .unit = "KiB" };
	if (argc != 3)
		bench_die("usage: program_bench PROGRAM AGENT");
	measure_version(argv[1]);
	measure_config(argv[1]);
	for (int i = 0; i < TURNS; i++)
		bench_add(&memory, (double)most_of_turn(argv[1], argv[2]));
	bench_print(&memory);
	return 0;
}
