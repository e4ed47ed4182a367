/* SPDX-License-Identifier: MIT */
/* `inspect`: everything about one sandbox, as JSON. */
#include "cli.h"

#include <stdlib.h>

/* Laid out for people, on one line for programs. */
static int print(struct cli *cli, const char *text, struct sba_error *err)
{
	json_error_t why;
	CLI_JSON json_t *j = json_loads(text, 0, &why);
	if (!j)
		return cli_fail(err, SBA_EPROTO, NULL, "the description is no JSON: %s", why.text);
	if (cli->json) {
		cli_json_first(json_incref(j));
		return 0;
	}
	CLI_FREE char *out = json_dumps(j, JSON_INDENT(2));
	if (!out)
		return cli_fail_nomem(err);
	printf("%s\n", out);
	return 0;
}

static int inspect(struct cli *cli, const void *options, const struct cli_args *args)
{
	(void)options;
	struct sba_sandbox *s = NULL;
	CLI_FREE char *text = NULL;
	struct sba_error err;
	int rc = cli_sandbox(cli, args->v[0], &s, &err);
	/* Of one that has ended there is still a lot to say. */
	if (rc == 0)
		(void)sba_sandbox_find_agent(s, NULL);
	if (rc == 0)
		rc = sba_sandbox_describe(s, &text, &err);
	sba_sandbox_close(s);
	if (rc == 0)
		rc = print(cli, text, &err);
	return rc < 0 ? cli_report(cli, &err) : 0;
}

const struct cli_command cli_command_inspect = {
	.name = "inspect",
	.args = "NAME",
	.help = "everything about one, as JSON",
	.example = "sandbox-agent inspect calm-fox",
	.min_args = 1,
	.max_args = 1,
	.run = inspect,
};
