/* SPDX-License-Identifier: MIT */
/* `image pull`, `push`, `lock` and `verify`: the pinned images and their registry. */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct registry_options {
	const char *lock, *ca_file;
	bool force;
};

/* What a command works with from image to image. */
struct work {
	const struct registry_options *o;
	char *path; /* of the lock file, or NULL */
	struct sba_image_lock *lock;
	struct cli_build progress;
	struct sba_image_options io;
};

static void work_fini(struct work *w)
{
	sba_image_lock_close(w->lock);
	free(w->path);
}

/* `must`: the lock has to be there already. */
static int work_init(struct cli *cli, struct work *w, const struct registry_options *o, bool must,
		     struct sba_error *err)
{
	bool named;
	*w = (struct work){ .o = o, .progress = { .cli = cli, .details = true } };
	w->io = (struct sba_image_options){
		.ca_file = o->ca_file,
		.docker_config = cli_docker_folder(cli),
		.progress = cli_build_progress,
		.user = &w->progress,
	};
	int rc = o->ca_file ? cli_check_option_path("ca-file", o->ca_file, false, err) : 0;
	if (rc == 0)
		rc = cli_lock_path(cli, o->lock, &w->path, &named, err);
	if (rc == 0 && w->path)
		rc = cli_lock_read(w->path, must, &w->lock, err);
	if (rc == 0 && must && !w->lock)
		rc = cli_fail(err, SBA_EINVAL, "name it:  --lock FILE", "there is no lock file");
	if (rc == 0 && !w->lock)
		rc = sba_image_lock_open(NULL, NULL, &w->lock, err);
	return rc;
}

/* Whole or not at all, as each image is done: what was pushed is not forgotten. */
static int save_lock(const struct work *w, struct sba_error *err)
{
	CLI_FREE char *text = sba_image_lock_text(w->lock);
	CLI_FREE char *temp = NULL;
	if (!w->path)
		return 0;
	if (!text || asprintf(&temp, "%s.%d.part", w->path, (int)getpid()) < 0)
		return cli_fail_nomem(err);
	int fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	bool good = fd >= 0 && cli_write(fd, text, strlen(text)) && fsync(fd) == 0;
	int why = errno;
	if (fd >= 0)
		close(fd);
	if (good && rename(temp, w->path) == 0)
		return 0;
	why = good ? errno : why;
	if (fd >= 0)
		unlink(temp);
	return cli_fail(err, SBA_EIO, NULL, "write %s: %s", w->path, strerror(why));
}

/* As cli_image_done(), with what the lock has now. */
static void done(struct cli *cli, const struct work *w, const char *ref, const char *what)
{
	const char *digest = sba_image_lock_digest(w->lock, ref);
	cli_status_clear(&cli->status);
	if (cli->json)
		cli_json_line(json_pack("{s:i, s:s, s:s, s:s, s:s}", "v", 1, "type", "result",
					"ref", ref, "did", what, "digest", digest));
	cli_note(cli, "%s %s  %s  %s", cli_mark(&cli->look, CLI_MARK_OK), ref, what, digest);
}

/* ---- pull ---- */

static int pull_one(struct cli *cli, const char *name, const void *options, struct sba_error *err)
{
	const struct work *w = options;
	time_t since = time(NULL);
	struct sba_image_wanted wanted = { .pull = SBA_PULL_ALWAYS, .options = &w->io };
	struct sba_image_settled settled;
	int rc = cli_image_ref(cli, name, &wanted.ref, err);
	if (rc == 0)
		rc = cli_engine(cli, err);
	if (rc == 0)
		rc = cli_lock(cli, err);
	wanted.lock = cli->lock;
	if (rc == 0)
		rc = sba_image_settle(cli->engine, &wanted, &settled, err);
	if (rc == 0)
		cli_image_done(cli, wanted.ref, "pulled", since);
	return rc;
}

static int pull(struct cli *cli, const void *options, const struct cli_args *args)
{
	const struct registry_options none = { 0 };
	struct work w;
	struct sba_error err;
	(void)options;
	int rc = work_init(cli, &w, &none, false, &err);
	int status = rc < 0 ? cli_report(cli, &err) : cli_image_each(cli, args, &w, pull_one);
	work_fini(&w);
	if (cli->engine)
		cli_sweep(cli);
	return status;
}

const struct cli_command cli_command_image_pull = {
	.name = "image pull",
	.args = "[AGENT...|all]",
	.help = "pulls from the registry; what is locked, by its digest",
	.example = "sandbox-agent image pull claude",
	.max_args = -1,
	.run = pull,
};

/* ---- push ---- */

/* Before anything is pushed: no half of a set. */
static int check_free(struct cli *cli, const char *name, const void *options, struct sba_error *err)
{
	const struct work *w = options;
	char digest[SBA_IMAGE_DIGEST_MAX];
	const char *ref;
	int rc = cli_image_here(cli, name, &ref, err);
	if (rc < 0 || w->o->force)
		return rc;
	rc = sba_image_published(ref, &w->io, digest, err);
	if (rc == SBA_ENOTFOUND)
		return 0;
	return rc < 0 ? rc
		      : cli_fail(err, SBA_EEXIST,
				 "a changed image gets a new image_date in versions.json; --force "
				 "replaces what is there",
				 "image '%s' is in the registry already: %s", ref, digest);
}

static int push_one(struct cli *cli, const char *name, const void *options, struct sba_error *err)
{
	const struct work *w = options;
	const char *ref;
	int rc = cli_image_ref(cli, name, &ref, err);
	if (rc == 0)
		rc = sba_image_publish(cli->engine, ref, w->lock, w->o->force, &w->io, err);
	if (rc == 0)
		rc = save_lock(w, err);
	if (rc == 0)
		done(cli, w, ref, "pushed");
	return rc;
}

static int push(struct cli *cli, const void *options, const struct cli_args *args)
{
	struct work w;
	struct sba_error err;
	int status = 0;
	int rc = work_init(cli, &w, options, false, &err);
	if (rc < 0)
		status = cli_report(cli, &err);
	if (status == 0)
		status = cli_image_each(cli, args, &w, check_free);
	if (status == 0)
		status = cli_image_each(cli, args, &w, push_one);
	if (status == 0 && w.path)
		cli_note(cli, "locked in %s", w.path);
	work_fini(&w);
	return status;
}

#define LOCK_OPTION                                                                                \
	{                                                                                          \
		"lock", 0, CLI_STRING, "FILE",                                                     \
			"the lock file (default: versions.lock.json beside versions.json)",        \
			offsetof(struct registry_options, lock), 0                                 \
	}
#define CA_OPTION                                                                                  \
	{                                                                                          \
		"ca-file", 0, CLI_STRING, "FILE", "a CA bundle for the registry",                  \
			offsetof(struct registry_options, ca_file), 0                              \
	}

static const struct cli_option push_options[] = {
	{ "force", 0, CLI_FLAG, NULL, "although the registry has that tag",
	  offsetof(struct registry_options, force), 0 },
	LOCK_OPTION,
	CA_OPTION,
	{ 0 },
};

const struct cli_command cli_command_image_push = {
	.name = "image push",
	.args = "[AGENT...|all]",
	.help = "pushes to the registry and locks the digests",
	.more = "A tag that the registry has already is refused before anything is pushed. "
		"Credentials are docker's (docker login).",
	.example = "sandbox-agent image push --lock versions.lock.json",
	.tables = { push_options },
	.options_size = sizeof(struct registry_options),
	.max_args = -1,
	.run = push,
};

/* ---- lock and verify ---- */

static int lock_one(struct cli *cli, const char *name, const void *options, struct sba_error *err)
{
	const struct work *w = options;
	const char *ref;
	int rc = cli_image_ref(cli, name, &ref, err);
	if (rc == 0)
		rc = sba_image_lock_add(w->lock, ref, &w->io, err);
	if (rc == 0)
		rc = save_lock(w, err);
	if (rc == 0)
		done(cli, w, ref, "locked");
	return rc;
}

static int lock(struct cli *cli, const void *options, const struct cli_args *args)
{
	struct work w;
	struct sba_error err;
	int rc = work_init(cli, &w, options, false, &err);
	if (rc == 0 && !w.path)
		rc = cli_fail(&err, SBA_EINVAL, "name it:  --lock FILE", "there is no lock file");
	int status = rc < 0 ? cli_report(cli, &err) : cli_image_each(cli, args, &w, lock_one);
	work_fini(&w);
	return status;
}

static const struct cli_option lock_options[] = { LOCK_OPTION, CA_OPTION, { 0 } };

const struct cli_command cli_command_image_lock = {
	.name = "image lock",
	.args = "[AGENT...|all]",
	.help = "locks what the registry has now, for all platforms",
	.example = "sandbox-agent image lock --lock versions.lock.json",
	.tables = { lock_options },
	.options_size = sizeof(struct registry_options),
	.max_args = -1,
	.run = lock,
};

static int verify_one(struct cli *cli, const char *name, const void *options, struct sba_error *err)
{
	const struct work *w = options;
	const char *ref;
	int rc = cli_image_ref(cli, name, &ref, err);
	if (rc == 0)
		rc = sba_image_lock_verify(w->lock, ref, &w->io, err);
	if (rc == 0)
		done(cli, w, ref, "is there as locked");
	return rc;
}

static int verify(struct cli *cli, const void *options, const struct cli_args *args)
{
	struct work w;
	struct sba_error err;
	int rc = work_init(cli, &w, options, true, &err);
	int status = rc < 0 ? cli_report(cli, &err) : cli_image_each(cli, args, &w, verify_one);
	work_fini(&w);
	return status;
}

const struct cli_command cli_command_image_verify = {
	.name = "image verify",
	.args = "[AGENT...|all]",
	.help = "whether the registry has what the lock file says",
	.example = "sandbox-agent image verify --lock versions.lock.json",
	.tables = { lock_options },
	.options_size = sizeof(struct registry_options),
	.max_args = -1,
	.run = verify,
};
