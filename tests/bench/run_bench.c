/* SPDX-License-Identifier: MIT */
/*
 * What `run` adds to the CLI's own time: all that it does with the engine for
 * a sandbox of one turn, against one bare container created, started and
 * removed by raw requests.
 *
 * usage: run_bench AGENT
 */
#include <sandbox-agent/agent.h>

#include "support/bench.h"

struct rows {
	struct bench_series ours, open, create, agent, exec, remove;
	struct bench_series bare, bare_create, bare_remove;
};

static const char *agent_name;
static const struct sba_images *images;

/* As `run` does: the image is looked at, then a sandbox is made of it. */
static struct sba_sandbox *create(struct sba_engine *e)
{
	const struct sba_sandbox_options options = {
		.prefix = BENCH_PREFIX,
		.image = sba_images_ref(images, agent_name),
		.agent = agent_name,
		.provider = "scripted",
		.keepalive_ms = 60 * 1000,
	};
	struct sba_sandbox *s = NULL;
	struct sba_error err;
	bench_must(sba_image_ensure(e, options.image, SBA_PULL_NEVER, NULL, &err), &err);
	bench_must(sba_sandbox_create(e, &options, &s, &err), &err);
	return s;
}

static struct sba_agent *open_agent(struct sba_sandbox *s)
{
	const struct sba_agent_options options = { .offline = true, .one_turn = true };
	struct sba_agent *a = NULL;
	struct sba_error err;
	bench_must(sba_agent_open(s, &options, &a, &err), &err);
	return a;
}

static void round_ours(struct rows *rows)
{
	struct sba_engine *e = NULL;
	struct sba_error err;
	double began = bench_now_ms(), step = began;
	bench_must(sba_engine_open(NULL, &e, &err), &err);
	bench_add_step(&rows->open, &step);
	struct sba_sandbox *s = create(e);
	bench_add_step(&rows->create, &step);
	struct sba_agent *a = open_agent(s);
	bench_add_step(&rows->agent, &step);
	bench_true(s); /* in the place of the CLI, whose own time does not count */
	bench_add_step(&rows->exec, &step);
	sba_agent_close(a);
	bench_must(sba_sandbox_remove(s, &err), &err);
	sba_sandbox_close(s);
	sba_engine_close(e);
	bench_add_step(&rows->remove, &step);
	bench_add_step(&rows->ours, &began);
}

static void round_bare(struct rows *rows)
{
	struct bench_raw raw;
	char id[BENCH_ID_MAX];
	double began = bench_now_ms(), step = began;
	bench_raw_open(&raw);
	bench_bare_create(&raw, sba_images_ref(images, agent_name), NULL, id);
	bench_bare_start(&raw, id);
	bench_add_step(&rows->bare_create, &step);
	bench_bare_remove(&raw, id);
	bench_raw_close(&raw);
	bench_add_step(&rows->bare_remove, &step);
	bench_add_step(&rows->bare, &began);
}

static void measure(void)
{
	static struct rows rows = {
		.ours = { .name = "run.ours", .unit = "ms" },
		.open = { .name = "run.open.ours", .unit = "ms" },
		.create = { .name = "run.create.ours", .unit = "ms" },
		.agent = { .name = "run.agent.ours", .unit = "ms" },
		.exec = { .name = "run.exec.ours", .unit = "ms" },
		.remove = { .name = "run.remove.ours", .unit = "ms" },
		.bare = { .name = "run.bare", .unit = "ms" },
		.bare_create = { .name = "run.create.bare", .unit = "ms" },
		.bare_remove = { .name = "run.remove.bare", .unit = "ms" },
	};
	for (int i = bench_rounds(); i > 0; i--) {
		bench_settle();
		round_ours(&rows);
		bench_settle();
		round_bare(&rows);
	}
	const struct bench_series *all[] = { &rows.ours,  &rows.open,        &rows.create,
					     &rows.agent, &rows.exec,        &rows.remove,
					     &rows.bare,  &rows.bare_create, &rows.bare_remove };
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		bench_print(all[i]);
}

int main(int argc, char **argv)
{
	struct sba_images *opened = NULL;
	struct sba_error err;
	if (argc != 2)
		bench_die("usage: run_bench AGENT");
	bench_must(sba_images_open(NULL, "versions.json", &opened, &err), &err);
	images = opened;
	agent_name = argv[1];
	if (!sba_images_ref(images, agent_name))
		bench_die("no image for '%s'", agent_name);
	measure();
	sba_images_close(opened);
	return 0;
}
