/* SPDX-License-Identifier: MIT */
/* `image`: the pinned images; their names, builds, pulls, and what is here. */
#include "cli.h"

#include <string.h>
#include <time.h>

struct image_options {
	const char *ca_file;
	bool no_cache, rebuild;
};

/* Calls one for each image that was named; for "all" or none for every one. */
static int each(struct cli *cli, const struct cli_args *args, const void *options,
		int (*one)(struct cli *, const char *, const void *, struct sba_error *))
{
	struct sba_error err;
	int status = 0;
	if (cli_images(cli, &err) < 0)
		return cli_report(cli, &err);
	const char *const *names = sba_images_names(cli->images);
	size_t n = 0;
	if (args->n > 0 && strcmp(args->v[0], "all") != 0)
		names = (const char *const *)args->v;
	for (; names[n] && !cli_signals_caught(); n++) {
		if (one(cli, names[n], options, &err) == 0)
			continue;
		if (!cli_signals_caught())
			status = cli_report(cli, &err);
	}
	return cli_signals_exit(cli, status, "what was finished is kept");
}

static int ref_of(struct cli *cli, const char *name, const char **ret, struct sba_error *err)
{
	char hint[256] = "";
	const char *ref = sba_images_ref(cli->images, name);
	if (ref) {
		*ret = ref;
		return 0;
	}
	size_t len = 0;
	for (const char *const *n = sba_images_names(cli->images); *n && len < sizeof(hint); n++)
		len += (size_t)snprintf(hint + len, sizeof(hint) - len, "%s%s",
					len ? ", " : "there is: ", *n);
	return cli_fail(err, SBA_EINVAL, hint, "no image is pinned for '%s'", name);
}

/* ---- tag ---- */

static int tag_one(struct cli *cli, const char *name, const void *options, struct sba_error *err)
{
	(void)options;
	const char *ref;
	int rc = ref_of(cli, name, &ref, err);
	if (rc < 0)
		return rc;
	if (cli->json)
		cli_json_line(json_pack("{s:i, s:s, s:s}", "v", 1, "name", name, "ref", ref));
	else
		printf("%s\n", ref);
	return 0;
}

static int tag(struct cli *cli, const void *options, const struct cli_args *args)
{
	return each(cli, args, options, tag_one);
}

const struct cli_command cli_command_image_tag = {
	.name = "image tag",
	.args = "[AGENT...|all]",
	.help = "what the pinned images are called",
	.example = "sandbox-agent image tag claude",
	.max_args = -1,
	.run = tag,
};

/* ---- build and pull ---- */

static void done(struct cli *cli, const char *ref, const char *what, time_t since)
{
	char time_taken[32];
	cli_status_clear(&cli->status);
	if (cli->json)
		cli_json_line(json_pack("{s:i, s:s, s:s, s:s}", "v", 1, "type", "result", "ref",
					ref, "did", what));
	cli_time((time(NULL) - since) * 1000, time_taken, sizeof(time_taken));
	cli_note(cli, "%s %s  %s  %s", cli_mark(&cli->look, CLI_MARK_OK), ref, what, time_taken);
	cli_sweep(cli);
}

static int build_one(struct cli *cli, const char *name, const void *options, struct sba_error *err)
{
	const struct image_options *o = options;
	struct cli_build progress = { .cli = cli, .details = true };
	struct sba_image_options io = {
		.ca_file = o->ca_file,
		.no_cache = o->no_cache,
		.rebuild = o->rebuild || o->no_cache,
		.progress = cli_build_progress,
		.user = &progress,
	};
	time_t since = time(NULL);
	const char *ref;
	int rc = ref_of(cli, name, &ref, err);
	if (rc == 0 && o->ca_file)
		rc = cli_check_option_path("ca-file", o->ca_file, false, err);
	if (rc == 0)
		rc = cli_engine(cli, err);
	if (rc == 0)
		rc = sba_image_make(cli->engine, cli->images, name, &io, err);
	if (rc == 0)
		done(cli, ref, "is here", since);
	return rc;
}

static int build(struct cli *cli, const void *options, const struct cli_args *args)
{
	return each(cli, args, options, build_one);
}

static const struct cli_option build_options[] = {
	{ "ca-file", 0, CLI_STRING, "FILE", "a CA bundle for the downloads; not in the image",
	  offsetof(struct image_options, ca_file), 0 },
	{ "rebuild", 0, CLI_FLAG, NULL, "although it is here",
	  offsetof(struct image_options, rebuild), 0 },
	{ "no-cache", 0, CLI_FLAG, NULL, "every step anew",
	  offsetof(struct image_options, no_cache), 0 },
	{ 0 },
};

const struct cli_command cli_command_image_build = {
	.name = "image build",
	.args = "[AGENT...|all]",
	.help = "builds what is not here",
	.example = "sandbox-agent image build claude",
	.tables = { build_options },
	.options_size = sizeof(struct image_options),
	.max_args = -1,
	.run = build,
};

static int pull_one(struct cli *cli, const char *name, const void *options, struct sba_error *err)
{
	(void)options;
	struct cli_build progress = { .cli = cli, .details = true };
	struct sba_image_options io = { .progress = cli_build_progress, .user = &progress };
	time_t since = time(NULL);
	const char *ref;
	int rc = ref_of(cli, name, &ref, err);
	if (rc == 0)
		rc = cli_engine(cli, err);
	if (rc == 0)
		rc = sba_image_ensure(cli->engine, ref, SBA_PULL_ALWAYS, &io, err);
	if (rc == 0)
		done(cli, ref, "pulled", since);
	return rc;
}

static int pull(struct cli *cli, const void *options, const struct cli_args *args)
{
	return each(cli, args, options, pull_one);
}

const struct cli_command cli_command_image_pull = {
	.name = "image pull",
	.args = "[AGENT...|all]",
	.help = "pulls from the registry",
	.example = "sandbox-agent image pull claude",
	.max_args = -1,
	.run = pull,
};

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
