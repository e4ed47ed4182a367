/* SPDX-License-Identifier: MIT */
/* `image ls`, `rm`, `save` and `load`: what of ours an engine has. */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- ls ---- */

static void print_table(struct cli *cli, const struct sba_image_list *l)
{
	static const char *const head[] = { "IMAGE", "ID", "SIZE", "CREATED" };
	struct cli_table t = { .columns = CLI_LEN(head) };
	cli_table_add(&t, head);
	for (size_t n = 0; n < sba_image_list_count(l); n++) {
		const struct sba_image_info *i = sba_image_list_at(l, n);
		char size[32], age[48], id[16];
		const char *digits = strncmp(i->id, "sha256:", 7) ? i->id : i->id + 7;
		snprintf(id, sizeof(id), "%.12s", digits);
		sba_format_size(i->size, size, sizeof(size));
		cli_time((time(NULL) - i->created) * 1000, age, sizeof(age) - 4);
		strncat(age, " ago", sizeof(age) - strlen(age) - 1);
		const char *cells[] = { i->ref, id, size, age };
		cli_table_add(&t, cells);
	}
	cli_table_print(&t, stdout, cli->look.out_tty ? cli->look.columns : 0);
	cli_table_fini(&t);
}

static void print_json(const struct sba_image_list *l)
{
	for (size_t n = 0; n < sba_image_list_count(l); n++) {
		const struct sba_image_info *i = sba_image_list_at(l, n);
		json_t *j = json_pack("{s:s, s:s, s:I, s:I}", "ref", i->ref, "id", i->id, "size",
				      (json_int_t)i->size, "created", (json_int_t)i->created);
		(n == 0 ? cli_json_first : cli_json_line)(j);
	}
}

static int ls(struct cli *cli, const void *options, const struct cli_args *args)
{
	(void)options;
	(void)args;
	struct sba_image_list *l = NULL;
	struct sba_error err;
	int rc = cli_images(cli, &err);
	if (rc == 0)
		rc = cli_engine(cli, &err);
	if (rc == 0)
		rc = sba_images_list(cli->engine, cli->images, &l, &err);
	if (rc < 0)
		return cli_report(cli, &err);
	if (cli->json)
		print_json(l);
	else
		print_table(cli, l);
	sba_image_list_free(l);
	cli_sweep(cli);
	return 0;
}

const struct cli_command cli_command_image_ls = {
	.name = "image ls",
	.args = "",
	.help = "what of ours is on the engine",
	.example = "sandbox-agent image ls",
	.run = ls,
};

/* ---- rm ---- */

struct rm_options {
	bool old;
};

static void removed(struct cli *cli, const char *ref)
{
	if (cli->json)
		cli_json_line(json_pack("{s:i, s:s, s:b}", "v", 1, "ref", ref, "removed", 1));
	cli_note(cli, "%s %s  removed", cli_mark(&cli->look, CLI_MARK_OK), ref);
}

static int remove_ref(struct cli *cli, const char *ref, struct sba_error *err)
{
	int rc = sba_image_delete(cli->engine, cli->images, ref, err);
	if (rc == 0)
		removed(cli, ref);
	return rc;
}

static void swept(void *cli, const struct sba_progress *p)
{
	removed(cli, p->image);
}

/* A name of versions.json, or a whole reference, as for what an older one named. */
static int remove_one(struct cli *cli, const char *name, const void *options, struct sba_error *err)
{
	(void)options;
	const char *ref = name;
	int rc = strchr(name, ':') ? 0 : cli_image_ref(cli, name, &ref, err);
	if (rc == 0)
		rc = cli_engine(cli, err);
	return rc == 0 ? remove_ref(cli, ref, err) : rc;
}

static bool is_pinned(const struct cli *cli, const char *ref)
{
	for (const char *const *n = sba_images_names(cli->images); *n; n++) {
		const char *pinned = sba_images_ref(cli->images, *n);
		size_t len = strlen(ref), tail = strlen(pinned);
		if (len >= tail && !strcmp(ref + len - tail, pinned))
			return true;
	}
	return false;
}

/* What is in use stays, and is no failure. */
static int remove_old(struct cli *cli)
{
	struct sba_image_list *l = NULL;
	struct sba_error err;
	int status = 0;
	int rc = cli_images(cli, &err);
	if (rc == 0)
		rc = cli_engine(cli, &err);
	if (rc == 0)
		rc = sba_images_list(cli->engine, cli->images, &l, &err);
	if (rc < 0)
		return cli_report(cli, &err);
	for (size_t n = 0; n < sba_image_list_count(l) && !cli_signals_caught(); n++) {
		const char *ref = sba_image_list_at(l, n)->ref;
		if (!sba_images_own(cli->images, ref) || is_pinned(cli, ref))
			continue;
		rc = remove_ref(cli, ref, &err);
		if (rc == SBA_EBUSY)
			cli_note(cli, "%s  in use, left alone", ref);
		else if (rc < 0)
			status = cli_report(cli, &err);
	}
	sba_image_list_free(l);
	const struct sba_image_options io = { .progress = swept, .user = cli };
	if (!cli_signals_caught() && sba_images_sweep(cli->engine, &io, &err) < 0)
		status = cli_report(cli, &err);
	return cli_signals_exit(cli, status, "not all was removed");
}

static int rm(struct cli *cli, const void *options, const struct cli_args *args)
{
	const struct rm_options *o = options;
	if (o->old && args->n)
		return cli_usage(cli, "one or the other", "--old and names");
	if (!o->old && !args->n)
		return cli_usage(cli, "as in:  sandbox-agent image rm claude, image rm --old",
				 "which image?");
	return o->old ? remove_old(cli) : cli_image_each(cli, args, options, remove_one);
}

static const struct cli_option rm_options[] = {
	{ "old", 0, CLI_FLAG, NULL, "all that versions.json no longer names",
	  offsetof(struct rm_options, old), 0 },
	{ 0 },
};

const struct cli_command cli_command_image_rm = {
	.name = "image rm",
	.args = "AGENT...|REF...|all",
	.help = "removes images of ours that nothing uses",
	.more = "An image that a container is made of stays, also where that has stopped. --old "
		"takes away too what builds of more than a day ago have left without a name.",
	.example = "sandbox-agent image rm --old",
	.tables = { rm_options },
	.options_size = sizeof(struct rm_options),
	.max_args = -1,
	.run = rm,
};

/* ---- save ---- */

struct save_options {
	const char *output;
};

struct out {
	struct cli *cli;
	int fd;
	int64_t bytes, shown;
};

static int write_out(void *user, const void *data, size_t len, struct sba_error *err)
{
	enum { SHOW_EVERY = 16 << 20 };
	struct out *o = user;
	char size[32], line[64];
	if (!cli_write(o->fd, data, len))
		return cli_signals_caught()
			       ? cli_fail(err, SBA_ECANCELED, NULL, "cancelled")
			       : cli_fail(err, SBA_EIO, NULL, "write: %s", strerror(errno));
	o->bytes += (int64_t)len;
	if (o->bytes - o->shown < SHOW_EVERY)
		return 0;
	o->shown = o->bytes;
	snprintf(line, sizeof(line), "saved %s", sba_format_size(o->bytes, size, sizeof(size)));
	cli_status_set(&o->cli->status, line);
	return 0;
}

/* Whole or not at all: written beside the file, then given its name. */
static int save_to(struct cli *cli, const char *path, const char *const *refs,
		   struct sba_error *err)
{
	struct out o = { .cli = cli, .fd = STDOUT_FILENO };
	CLI_FREE char *temp = NULL;
	char size[32];
	if (!path)
		return sba_images_save(cli->engine, refs, write_out, &o, err);
	if (asprintf(&temp, "%s.%d.part", path, (int)getpid()) < 0) {
		temp = NULL;
		return cli_fail_nomem(err);
	}
	o.fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (o.fd < 0)
		return cli_fail(err, SBA_EIO, NULL, "create %s: %s", temp, strerror(errno));
	int rc = sba_images_save(cli->engine, refs, write_out, &o, err);
	if (close(o.fd) < 0 && rc == 0)
		rc = cli_fail(err, SBA_EIO, NULL, "write %s: %s", temp, strerror(errno));
	if (rc == 0 && rename(temp, path) < 0)
		rc = cli_fail(err, SBA_EIO, NULL, "rename %s to %s: %s", temp, path,
			      strerror(errno));
	cli_status_clear(&cli->status);
	if (rc < 0)
		unlink(temp);
	else
		cli_note(cli, "%s %s  %s", cli_mark(&cli->look, CLI_MARK_OK), path,
			 sba_format_size(o.bytes, size, sizeof(size)));
	return rc;
}

static int refs_of(struct cli *cli, const struct cli_args *args, const char ***ret,
		   struct sba_error *err)
{
	const char *const *names = cli_image_names(cli, args);
	size_t n = 0;
	int rc = 0;
	while (names[n])
		n++;
	const char **refs = calloc(n + 1, sizeof(*refs));
	if (!refs)
		return cli_fail_nomem(err);
	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = cli_image_ref(cli, names[i], &refs[i], err);
	if (rc < 0)
		free(refs);
	else
		*ret = refs;
	return rc;
}

static int save(struct cli *cli, const void *options, const struct cli_args *args)
{
	const struct save_options *o = options;
	const char **refs = NULL;
	struct sba_error err;
	if (!o->output && isatty(STDOUT_FILENO))
		return cli_usage(cli, "as in:  sandbox-agent image save -o images.tar",
				 "a tar is nothing for a terminal");
	int rc = cli_images(cli, &err);
	if (rc == 0)
		rc = refs_of(cli, args, &refs, &err);
	if (rc == 0)
		rc = cli_engine(cli, &err);
	if (rc == 0)
		rc = save_to(cli, o->output, refs, &err);
	free(refs);
	if (cli_signals_caught())
		return cli_signals_exit(cli, 1, "nothing was saved");
	return rc < 0 ? cli_report(cli, &err) : 0;
}

static const struct cli_option save_options[] = {
	{ "output", 'o', CLI_STRING, "FILE", "where to (default: stdout)",
	  offsetof(struct save_options, output), 0 },
	{ 0 },
};

const struct cli_command cli_command_image_save = {
	.name = "image save",
	.args = "[AGENT...|all]",
	.help = "pinned images as one tar, for a host without a registry",
	.example = "sandbox-agent image save claude -o claude.tar",
	.tables = { save_options },
	.options_size = sizeof(struct save_options),
	.max_args = -1,
	.run = save,
};

/* ---- load ---- */

struct load_options {
	const char *input;
};

static void told(void *user, const struct sba_progress *p)
{
	struct cli *cli = user;
	CLI_FREE char *ref = sba_visible(p->image, strlen(p->image), true);
	if (cli->json)
		cli_json_line(
			json_pack("{s:i, s:s, s:b}", "v", 1, "ref", ref ? ref : "", "loaded", 1));
	cli_note(cli, "%s %s  loaded", cli_mark(&cli->look, CLI_MARK_OK), ref ? ref : "");
}

static ssize_t read_in(void *user, void *buf, size_t size, struct sba_error *err)
{
	const int *fd = user;
	for (;;) {
		ssize_t n = read(*fd, buf, size);
		if (n >= 0)
			return n;
		if (errno != EINTR)
			return cli_fail(err, SBA_EIO, NULL, "read: %s", strerror(errno));
		if (cli_signals_caught())
			return cli_fail(err, SBA_ECANCELED, NULL, "cancelled");
	}
}

static int load_from(struct cli *cli, const char *path, struct sba_error *err)
{
	const struct sba_image_options io = { .progress = told, .user = cli };
	struct cli_stream stream = { 0 };
	if (!path)
		return sba_images_load(cli->engine, cli_stream_read, &stream, &io, err);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return cli_fail(err, SBA_EIO, NULL, "open %s: %s", path, strerror(errno));
	int rc = sba_images_load(cli->engine, read_in, &fd, &io, err);
	close(fd);
	return rc;
}

static int load(struct cli *cli, const void *options, const struct cli_args *args)
{
	const struct load_options *o = options;
	struct sba_error err;
	(void)args;
	if (!o->input && isatty(STDIN_FILENO))
		return cli_usage(cli, "as in:  sandbox-agent image load -i images.tar",
				 "there is no tar on stdin");
	int rc = cli_engine(cli, &err);
	if (rc == 0)
		rc = load_from(cli, o->input, &err);
	if (cli_signals_caught())
		return cli_signals_exit(cli, 1, "what was loaded before stays");
	return rc < 0 ? cli_report(cli, &err) : 0;
}

static const struct cli_option load_options[] = {
	{ "input", 'i', CLI_STRING, "FILE", "where from (default: stdin)",
	  offsetof(struct load_options, input), 0 },
	{ 0 },
};

const struct cli_command cli_command_image_load = {
	.name = "image load",
	.args = "",
	.help = "takes in what image save wrote",
	.example = "sandbox-agent image load -i claude.tar",
	.tables = { load_options },
	.options_size = sizeof(struct load_options),
	.run = load,
};
