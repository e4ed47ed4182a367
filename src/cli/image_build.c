/* SPDX-License-Identifier: MIT */
/*
 * `image build`: the base first, then the agents' images side by side, each asked
 * for its version before it counts as built.
 */
#include "cli.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct build_options {
	const char *ca_file;
	bool no_cache, rebuild, no_check;
};

/* What all builds of one command share. */
struct crew {
	struct cli *cli;
	const struct build_options *options;
	pthread_mutex_t lock; /* of what is shown */
};

struct job {
	struct crew *crew;
	const char *name, *ref;
	struct cli_build progress;
	pthread_t thread;
	bool started;
	bool asked; /* for this one; the base is made for the others as well */
	int rc;
	struct sba_error err;
};

static void show(void *user, const struct sba_progress *p)
{
	struct job *j = user;
	pthread_mutex_lock(&j->crew->lock);
	cli_build_progress(&j->progress, p);
	pthread_mutex_unlock(&j->crew->lock);
}

static struct sba_image_options library_options(struct job *j)
{
	const struct build_options *o = j->crew->options;
	return (struct sba_image_options){
		.ca_file = o->ca_file,
		.docker_config = cli_docker_folder(j->crew->cli),
		.no_cache = o->no_cache && j->asked,
		.rebuild = (o->rebuild || o->no_cache) && j->asked,
		.progress = show,
		.user = j,
	};
}

/* One that is not what its name says must not stay under it. */
static int check(struct job *j)
{
	struct cli *cli = j->crew->cli;
	struct sba_error ignored;
	int rc = cli_image_check(cli, j->name, j->ref, &j->err);
	if (rc == SBA_EIMAGE && sba_image_delete(cli->engine, cli->images, j->ref, &ignored) == 0)
		snprintf(j->err.hint, sizeof(j->err.hint), "it was removed again");
	return rc;
}

static void work(struct job *j)
{
	struct cli *cli = j->crew->cli;
	struct sba_image_options o = library_options(j);
	char before[SBA_IMAGE_ID_MAX] = "", after[SBA_IMAGE_ID_MAX] = "";
	time_t since = time(NULL);
	(void)sba_image_id(cli->engine, j->ref, before, &j->err);
	int rc = sba_image_make(cli->engine, cli->images, j->name, &o, &j->err);
	if (rc == 0)
		rc = sba_image_id(cli->engine, j->ref, after, &j->err);
	if (rc == 0 && strcmp(before, after) != 0 && !j->crew->options->no_check)
		rc = check(j);
	j->rc = rc;
	if (rc < 0 || !j->asked)
		return;
	pthread_mutex_lock(&j->crew->lock);
	cli_image_done(cli, j->ref, "is here", since);
	pthread_mutex_unlock(&j->crew->lock);
}

static void *thread(void *job)
{
	work(job);
	return NULL;
}

/* Where no thread is to be had, one after the other. */
static void start(struct job *j)
{
	j->started = pthread_create(&j->thread, NULL, thread, j) == 0;
	if (!j->started)
		work(j);
}

/* What they have in common is made once, before them. */
static int warm(struct job *j)
{
	struct cli *cli = j->crew->cli;
	struct sba_image_options o = library_options(j);
	return sba_image_warm(cli->engine, cli->images, j->name, &o, &j->err);
}

static int report(struct cli *cli, const struct job *jobs, size_t n)
{
	int status = 0;
	cli_status_clear(&cli->status);
	for (size_t i = 0; i < n && !cli_signals_caught(); i++)
		if (jobs[i].rc < 0)
			status = cli_report(cli, &jobs[i].err);
	return cli_signals_exit(cli, status, "what was finished is kept");
}

/* jobs[0] is the base, whether or not it was asked for. */
static int run_all(struct cli *cli, struct job *jobs, size_t n)
{
	work(&jobs[0]);
	if (jobs[0].rc == 0 && n > 2)
		jobs[1].rc = warm(&jobs[1]);
	if (jobs[0].rc < 0 || jobs[1].rc < 0)
		return report(cli, jobs, 2);
	for (size_t i = 1; i < n; i++)
		start(&jobs[i]);
	for (size_t i = 1; i < n; i++)
		if (jobs[i].started)
			pthread_join(jobs[i].thread, NULL);
	return report(cli, jobs, n);
}

static int prepare(struct cli *cli, const struct build_options *o, const char *const *names,
		   struct sba_error *err)
{
	const char *ref;
	int rc = 0;
	for (size_t i = 0; rc == 0 && names[i]; i++)
		rc = cli_image_ref(cli, names[i], &ref, err);
	if (rc == 0 && o->ca_file)
		rc = cli_check_option_path("ca-file", o->ca_file, false, err);
	return rc == 0 ? cli_engine(cli, err) : rc;
}

static int build_names(struct cli *cli, struct crew *crew, const char *const *names)
{
	size_t n = 0, jobs_n = 1;
	while (names[n])
		n++;
	struct job *jobs = calloc(n + 2, sizeof(*jobs));
	struct sba_error err;
	if (!jobs) {
		cli_fail_nomem(&err);
		return cli_report(cli, &err);
	}
	jobs[0].name = "base";
	for (size_t i = 0; i < n; i++) {
		struct job *j = strcmp(names[i], "base") != 0 ? &jobs[jobs_n++] : &jobs[0];
		j->name = names[i];
		j->asked = true;
	}
	for (size_t i = 0; i < jobs_n; i++) {
		jobs[i].crew = crew;
		jobs[i].ref = sba_images_ref(cli->images, jobs[i].name);
		jobs[i].progress = (struct cli_build){ .cli = cli, .details = true };
	}
	int status = run_all(cli, jobs, jobs_n);
	free(jobs);
	return status;
}

static int build(struct cli *cli, const void *options, const struct cli_args *args)
{
	struct crew crew = { .cli = cli, .options = options };
	struct sba_error err;
	int rc = cli_images(cli, &err);
	if (rc == 0)
		rc = prepare(cli, options, cli_image_names(cli, args), &err);
	if (rc < 0)
		return cli_report(cli, &err);
	pthread_mutex_init(&crew.lock, NULL);
	int status = build_names(cli, &crew, cli_image_names(cli, args));
	pthread_mutex_destroy(&crew.lock);
	cli_sweep(cli);
	return status;
}

static const struct cli_option options[] = {
	{ "ca-file", 0, CLI_STRING, "FILE", "a CA bundle for the downloads; not in the image",
	  offsetof(struct build_options, ca_file), 0 },
	{ "rebuild", 0, CLI_FLAG, NULL, "although it is here",
	  offsetof(struct build_options, rebuild), 0 },
	{ "no-cache", 0, CLI_FLAG, NULL, "every step anew",
	  offsetof(struct build_options, no_cache), 0 },
	{ "no-check", 0, CLI_FLAG, NULL, "without asking the CLI for its version",
	  offsetof(struct build_options, no_check), 0 },
	{ 0 },
};

const struct cli_command cli_command_image_build = {
	.name = "image build",
	.args = "[AGENT...|all]",
	.help = "builds what is not here",
	.more = "The base first, then the others side by side. Each package that is fetched must "
		"have the hash that versions.json pins, and each CLI must answer with the version "
		"that is pinned.",
	.example = "sandbox-agent image build claude",
	.tables = { options },
	.options_size = sizeof(struct build_options),
	.max_args = -1,
	.run = build,
};
