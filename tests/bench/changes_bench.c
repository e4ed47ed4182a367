/* SPDX-License-Identifier: MIT */
/*
 * What changed among 50,000 files: a snapshot of them, against sha256sum by as many
 * processes as there are processors; a second one of the unchanged tree; what a turn that
 * changes ten of them costs besides; and a thousand changes taken home, against git apply.
 *
 * usage: changes_bench IMAGE
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sandbox-agent/changes.h>
#include <sandbox-agent/files.h>

#include "base/base.h"
#include "sandbox/sandbox.h"
#include "support/bench.h"

enum { FOLDERS = 500, FILES = 100, CHANGED = 1000, TEN = 10, AGAIN = 3, ROUNDS_MAX = 5 };

#define LOCAL_DIR "/dev/shm/" BENCH_PREFIX "-changes"
/* Where that is seen inside; it is on no file system of the engine's, which would have to
 * remove it again. */
#define FOLDER "/project"

static struct sba_engine *engine;

/* ---- here ---- */

static void sh_here(const char *script)
{
	const char *const argv[] = { "/bin/sh", "-c", script, NULL };
	bench_spawn(argv);
}

/* Each has another content; 10 KB on an average. */
static void write_here(int folder, int file)
{
	static char content[32 * 1024];
	char path[128];
	int len = snprintf(content, sizeof(content), "file %d of folder %d\n", file, folder);
	size_t size = (size_t)len + (size_t)file % 21 * 1000;
	for (size_t i = (size_t)len; i < size; i++)
		content[i] = i % 40 == 0 ? '\n' : (char)('a' + (i * 7 + (size_t)file) % 26);
	snprintf(path, sizeof(path), LOCAL_DIR "/project/%d/%d.txt", folder, file);
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0 || write(fd, content, size) != (ssize_t)size)
		bench_die("%s: cannot be written", path);
	close(fd);
}

static void make_project(void)
{
	char path[128];
	sh_here("rm -rf " LOCAL_DIR " && mkdir -p " LOCAL_DIR "/project");
	for (int folder = 0; folder < FOLDERS; folder++) {
		snprintf(path, sizeof(path), LOCAL_DIR "/project/%d", folder);
		if (mkdir(path, 0777) < 0)
			bench_die("%s: cannot be made", path);
		for (int file = 0; file < FILES; file++)
			write_here(folder, file);
	}
	/* A part of it, of which all content is kept. */
	sh_here("cd " LOCAL_DIR " && mkdir before && cp -a project/1?? before && "
		"cp -a before changed && chmod -R a+w project changed");
}

/* ---- inside ---- */

static struct sba_sandbox *sandbox(const char *image, const char *mount)
{
	const char *const mounts[] = { mount, NULL };
	return bench_sandbox_with(engine, image, mounts);
}

static void sh_inside(struct sba_sandbox *s, const char *script)
{
	const char *const argv[] = { "sh", "-c", script, NULL };
	const struct sba_exec_options o = { .argv = argv, .timeout_ms = 120 * 1000 };
	struct sba_process *p = NULL;
	struct sba_error err;
	bench_must(sba_sandbox_exec(s, &o, &p, &err), &err);
	bench_process_end(p);
}

/* ---- snapshots ---- */

static void snapshot(struct sba_sandbox *s, struct bench_series *to)
{
	const struct sba_snapshot_options o = { .folder = FOLDER };
	struct sba_snapshot *n = NULL;
	struct sba_error err;
	bench_settle();
	double step = bench_now_ms();
	bench_must(sba_sandbox_snapshot(s, &o, &n, &err), &err);
	bench_add_step(to, &step);
	if (sba_snapshot_count(n) != FOLDERS * FILES)
		bench_die("the snapshot has %zu files", sba_snapshot_count(n));
	sba_snapshot_free(n);
}

static void by_hand(struct sba_sandbox *s, struct bench_series *hand)
{
	bench_settle();
	double step = bench_now_ms();
	sh_inside(s, "cd " FOLDER " && find . -type f -print0 | "
		     "xargs -0 -n 500 -P $(nproc) sha256sum >/tmp/hashes");
	bench_add_step(hand, &step);
}

/* Nothing is known of it in a new sandbox. */
static void round_snapshots(const char *image, struct bench_series *first,
			    struct bench_series *again, struct bench_series *hand)
{
	struct sba_sandbox *s = sandbox(image, LOCAL_DIR "/project:" FOLDER);
	by_hand(s, hand);
	snapshot(s, first);
	for (int i = 0; i < AGAIN; i++)
		snapshot(s, again);
	bench_sandbox_end(s);
}

/* ---- a turn ---- */

static void round_turn(struct sba_sandbox *s, int turn, struct bench_series *ten)
{
	const struct sba_watch_options o = { .folder = FOLDER, .turn = turn };
	char script[200];
	struct sba_watch *w = NULL;
	struct sba_changes *c = NULL;
	struct sba_error err;
	snprintf(script, sizeof(script),
		 "for i in $(seq %d); do echo %d >>" FOLDER "/$((i * 47))/$i.txt; done", TEN, turn);
	bench_settle();
	double step = bench_now_ms();
	bench_must(sba_watch_begin(s, &o, &w, &err), &err);
	double ours = bench_now_ms() - step;
	sh_inside(s, script);
	step = bench_now_ms();
	bench_must(sba_watch_end(w, &c, &err), &err);
	bench_add(ten, ours + bench_now_ms() - step);
	if (sba_changes_count(c) != TEN)
		bench_die("%zu changes are told", sba_changes_count(c));
	sba_changes_free(c);
	sba_watch_free(w);
}

/* ---- taking it home ---- */

static int write_fd(void *user, const void *data, size_t len, struct sba_error *err)
{
	return sba_write_all(*(int *)user, data, len, err);
}

static void make_patch(struct sba_changes *c)
{
	struct sba_error err;
	int fd = open(LOCAL_DIR "/patch", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	bench_must(sba_changes_patch(c, write_fd, &fd, NULL, &err), &err);
	close(fd);
}

static void round_apply(struct sba_changes *c, struct bench_series *ours, struct bench_series *git)
{
	struct sba_apply_report r;
	struct sba_error err;
	sh_here("cd " LOCAL_DIR " && rm -rf ours git && cp -a before ours && cp -a before git");
	double step = bench_now_ms();
	bench_must(sba_changes_apply(c, LOCAL_DIR "/ours", NULL, &r, &err), &err);
	bench_add_step(ours, &step);
	if (r.written != CHANGED)
		bench_die("%llu were written", (unsigned long long)r.written);
	step = bench_now_ms();
	sh_here("cd " LOCAL_DIR "/git && GIT_CEILING_DIRECTORIES=/dev/shm git apply ../patch");
	bench_add_step(git, &step);
	sh_here("diff -r " LOCAL_DIR "/ours " LOCAL_DIR "/git");
}

static void taken_home(const char *image, int rounds, struct bench_series *ours,
		       struct bench_series *git)
{
	const struct sba_watch_options o = { .folder = FOLDER, .turn = 1 };
	struct sba_sandbox *s = sandbox(image, LOCAL_DIR "/changed:" FOLDER);
	struct sba_watch *w = NULL;
	struct sba_changes *c = NULL;
	struct sba_error err;
	bench_must(sba_watch_begin(s, &o, &w, &err), &err);
	sh_inside(s, "cd " FOLDER " && for i in $(seq 100 199); do for k in $(seq 10 19); "
		     "do echo more >>$i/$k.txt; done; done");
	bench_must(sba_watch_end(w, &c, &err), &err);
	make_patch(c);
	for (int i = 0; i < rounds; i++)
		round_apply(c, ours, git);
	sba_changes_free(c);
	sba_watch_free(w);
	bench_sandbox_end(s);
}

static void turns(const char *image, int rounds, struct bench_series *ten)
{
	struct sba_sandbox *s = sandbox(image, LOCAL_DIR "/project:" FOLDER);
	/* The first one keeps what there is. */
	struct bench_series first = { .name = "changes.first", .unit = "ms" };
	round_turn(s, 1, &first);
	for (int i = 0; i < 2 * rounds; i++)
		round_turn(s, 2 + i, ten);
	bench_sandbox_end(s);
}

int main(int argc, char **argv)
{
	static struct bench_series first = { .name = "snapshot.first", .unit = "ms" };
	static struct bench_series again = { .name = "snapshot.again", .unit = "ms" };
	static struct bench_series hand = { .name = "snapshot.hand", .unit = "ms" };
	static struct bench_series ten = { .name = "changes.ten", .unit = "ms" };
	static struct bench_series ours = { .name = "apply.ours", .unit = "ms" };
	static struct bench_series git = { .name = "apply.git", .unit = "ms" };
	struct sba_error err;
	int rounds = bench_rounds() < ROUNDS_MAX ? bench_rounds() : ROUNDS_MAX;
	if (argc != 2)
		bench_die("usage: changes_bench IMAGE");
	bench_must(sba_engine_open(NULL, &engine, &err), &err);
	make_project();
	for (int i = 0; i < rounds; i++)
		round_snapshots(argv[1], &first, &again, &hand);
	turns(argv[1], rounds, &ten);
	taken_home(argv[1], rounds, &ours, &git);
	sba_engine_close(engine);
	sh_here("rm -rf " LOCAL_DIR);
	bench_print(&first);
	bench_print(&again);
	bench_print(&hand);
	bench_print(&ten);
	bench_print(&ours);
	bench_print(&git);
	return 0;
}
