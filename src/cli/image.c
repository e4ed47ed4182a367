/* SPDX-License-Identifier: MIT */
/* `image tag`, and what the commands about pinned images share. */
#include "cli.h"

#include <string.h>
#include <time.h>

const char *const *cli_image_names(struct cli *cli, const struct cli_args *args)
{
	return args->n > 0 && strcmp(args->v[0], "all") != 0 ? (const char *const *)args->v
							     : sba_images_names(cli->images);
}

int cli_image_each(struct cli *cli, const struct cli_args *args, const void *options,
		   int (*one)(struct cli *, const char *, const void *, struct sba_error *))
{
	struct sba_error err;
	int status = 0;
	if (cli_images(cli, &err) < 0)
		return cli_report(cli, &err);
	const char *const *names = cli_image_names(cli, args);
	for (size_t n = 0; names[n] && !cli_signals_caught(); n++) {
		if (one(cli, names[n], options, &err) == 0)
			continue;
		if (!cli_signals_caught())
			status = cli_report(cli, &err);
	}
	return cli_signals_exit(cli, status, "what was finished is kept");
}

int cli_image_ref(struct cli *cli, const char *name, const char **ret, struct sba_error *err)
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

int cli_image_here(struct cli *cli, const char *name, const char **ret, struct sba_error *err)
{
	int rc = cli_image_ref(cli, name, ret, err);
	if (rc == 0)
		rc = cli_engine(cli, err);
	if (rc == 0)
		rc = sba_image_ensure(cli->engine, *ret, SBA_PULL_NEVER, NULL, err);
	if (rc == SBA_EIMAGE)
		snprintf(err->hint, sizeof(err->hint),
			 "make it first:  sandbox-agent image build %s", name);
	return rc;
}

/* ---- tag ---- */

static int tag_one(struct cli *cli, const char *name, const void *options, struct sba_error *err)
{
	(void)options;
	const char *ref;
	int rc = cli_image_ref(cli, name, &ref, err);
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
	return cli_image_each(cli, args, options, tag_one);
}

const struct cli_command cli_command_image_tag = {
	.name = "image tag",
	.args = "[AGENT...|all]",
	.help = "what the pinned images are called",
	.example = "sandbox-agent image tag claude",
	.max_args = -1,
	.run = tag,
};

void cli_image_done(struct cli *cli, const char *ref, const char *what, time_t since)
{
	char time_taken[32];
	cli_status_clear(&cli->status);
	if (cli->json)
		cli_json_line(json_pack("{s:i, s:s, s:s, s:s}", "v", 1, "type", "result", "ref",
					ref, "did", what));
	cli_time((time(NULL) - since) * 1000, time_taken, sizeof(time_taken));
	cli_note(cli, "%s %s  %s  %s", cli_mark(&cli->look, CLI_MARK_OK), ref, what, time_taken);
}
