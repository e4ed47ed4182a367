/* SPDX-License-Identifier: MIT */
/* `driver`: the agents known here, and a recorded stream turned into our events. */
#include "cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- ls ---- */

static int ls(struct cli *cli, const void *options, const struct cli_args *args)
{
	(void)options;
	(void)args;
	static const char *const head[] = { "AGENT", "IMAGE" };
	struct cli_table t = { .columns = CLI_LEN(head) };
	struct sba_error err;
	if (cli_images(cli, &err) < 0)
		return cli_report(cli, &err);
	cli_table_add(&t, head);
	for (const char *const *n = sba_agent_names(); *n; n++) {
		const char *ref = sba_images_ref(cli->images, *n);
		const char *cells[] = { *n, ref ? ref : "-" };
		cli_table_add(&t, cells);
		if (cli->json)
			cli_json_line(
				json_pack("{s:i, s:s, s:s*}", "v", 1, "agent", *n, "image", ref));
	}
	if (!cli->json)
		cli_table_print(&t, stdout, 0);
	cli_table_fini(&t);
	return 0;
}

const struct cli_command cli_command_driver_ls = {
	.name = "driver ls",
	.no_config = true,
	.args = "",
	.help = "the agents known here",
	.example = "sandbox-agent driver ls",
	.run = ls,
};

/* ---- parse ---- */

struct parse_options {
	int64_t exit_status;
};

static const struct cli_option parse_options[] = {
	{ "exit", 0, CLI_INT, "N", "how the CLI had exited (0)",
	  offsetof(struct parse_options, exit_status), 0 },
	{ 0 },
};

static void print_events(struct sba_recording *r, bool *first)
{
	const struct sba_event *e;
	while ((e = sba_recording_next(r))) {
		json_t *j = cli_json_event(e);
		(*first ? cli_json_first : cli_json_line)(j);
		*first = false;
	}
}

static int parse_file(FILE *f, struct sba_recording *r, bool *first, struct sba_error *err)
{
	char *line = NULL;
	size_t cap = 0;
	int rc = 0;
	while (rc == 0 && !ferror(stdout)) {
		ssize_t n = getline(&line, &cap, f);
		if (n < 0)
			break;
		if (n > 0 && line[n - 1] == '\n')
			n--;
		rc = sba_recording_line(r, line, (size_t)n, err);
		print_events(r, first);
	}
	if (rc == 0 && ferror(f))
		rc = cli_fail(err, SBA_EIO, NULL, "reading the recording: %s", strerror(errno));
	free(line);
	return rc;
}

static int parse_path(const char *path, struct sba_recording *r, bool *first, struct sba_error *err)
{
	if (!path || !strcmp(path, "-"))
		return parse_file(stdin, r, first, err);
	FILE *f = fopen(path, "re");
	if (!f)
		return cli_fail(err, SBA_EIO, NULL, "open %s: %s", path, strerror(errno));
	int rc = parse_file(f, r, first, err);
	fclose(f);
	return rc;
}

static int parse(struct cli *cli, const void *options, const struct cli_args *args)
{
	const struct parse_options *o = options;
	struct sba_recording *r = NULL;
	struct sba_turn_result result;
	struct sba_error err;
	bool first = true; /* of the lines */
	int rc = cli_check_agent(args->v[0], &err);
	if (rc == 0)
		rc = sba_recording_open(args->v[0], &r, &err);
	if (rc == 0)
		rc = parse_path(args->v[1], r, &first, &err);
	if (rc == 0) {
		sba_recording_result(r, (int)o->exit_status, &result);
		(first ? cli_json_first : cli_json_line)(cli_json_result(&result));
	}
	sba_recording_close(r);
	return rc < 0 ? cli_report(cli, &err) : 0;
}

const struct cli_command cli_command_driver_parse = {
	.name = "driver parse",
	.no_config = true,
	.args = "AGENT [FILE]",
	.help = "a recorded stream as our events, then the verdict",
	.example = "sandbox-agent driver parse claude recording.jsonl",
	.tables = { parse_options },
	.options_size = sizeof(struct parse_options),
	.min_args = 1,
	.max_args = 2,
	.run = parse,
};
