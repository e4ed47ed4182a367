/* SPDX-License-Identifier: MIT */
/* Whether an image is what its name says: the CLI in it is asked for its version. */
#include "cli.h"

#include <ctype.h>
#include <string.h>
#include <time.h>

enum { CHECK_MS = 60 * 1000, CHECK_LIFE_MS = 5 * 60 * 1000, ANSWER_MAX = 512 };

/* What every base must have. */
static const char *const base_argv[] = {
	"sh", "-c",
	"git --version && python3 --version && rg --version && jq --version && curl --version", NULL
};
/* pi would look for a newer one. */
static const char *const env[] = { "PI_OFFLINE=1", NULL };

/* Both streams together: not all of them tell it on stdout. */
static int listen(struct sba_process *p, char *ret, struct sba_error *err)
{
	size_t len = 0;
	enum sba_output which;
	const char *data;
	ssize_t n;
	while ((n = sba_process_read(p, CHECK_MS, &which, &data, err)) > 0) {
		size_t room = ANSWER_MAX - 1 - len;
		size_t part = (size_t)n < room ? (size_t)n : room;
		memcpy(ret + len, data, part);
		len += part;
	}
	ret[len] = '\0';
	return (int)n;
}

static int ask(struct sba_sandbox *s, const char *const *argv, char answer[ANSWER_MAX],
	       struct sba_error *err)
{
	const struct sba_exec_options o = {
		.argv = argv,
		.env = env,
		.timeout_ms = CHECK_MS,
	};
	struct sba_process *p = NULL;
	struct sba_exit end = { 0 };
	int rc = sba_sandbox_exec(s, &o, &p, err);
	if (rc == 0)
		rc = listen(p, answer, err);
	if (rc == 0)
		rc = sba_process_wait(p, CHECK_MS, &end, err);
	sba_process_free(p);
	if (rc < 0)
		return rc;
	int status = sba_exit_status(&end);
	CLI_FREE char *seen = sba_visible(answer, strcspn(answer, "\r\n"), true);
	return status ? cli_fail(err, SBA_EIMAGE, NULL, "'%s' ends with %d: %.200s", argv[0],
				 status, seen ? seen : "")
		      : 0;
}

/* As a word of its own: 1.2.3 is in 11.2.3 and in 1.2.30, and is neither. */
static bool says(const char *answer, const char *version)
{
	size_t len = strlen(version);
	for (const char *at = answer; (at = strstr(at, version)); at++) {
		bool begins = at == answer || !(isdigit((unsigned char)at[-1]) || at[-1] == '.');
		const char *end = at + len;
		bool ends = !isalnum((unsigned char)*end) && *end != '-' &&
			    !(*end == '.' && isdigit((unsigned char)end[1]));
		if (begins && ends)
			return true;
	}
	return false;
}

static int check_inside(struct cli *cli, const char *name, struct sba_sandbox *s,
			struct sba_error *err)
{
	char answer[ANSWER_MAX];
	const char *const argv[] = { name, "--version", NULL };
	const char *version = sba_images_version(cli->images, name);
	int rc = ask(s, version ? argv : base_argv, answer, err);
	if (rc < 0 || !version || says(answer, version))
		return rc;
	CLI_FREE char *seen = sba_visible(answer, strcspn(answer, "\r\n"), true);
	return cli_fail(err, SBA_EIMAGE, NULL, "%s answers '%.100s', and versions.json pins %s",
			name, seen ? seen : "", version);
}

int cli_image_check(struct cli *cli, const char *name, const char *ref, struct sba_error *err)
{
	const struct sba_sandbox_options o = {
		.prefix = cli->prefix,
		.image = ref,
		.network = "sealed",
		.keepalive_ms = CHECK_MS,
		.max_lifetime_ms = CHECK_LIFE_MS,
	};
	struct sba_sandbox *s = NULL;
	int rc = sba_sandbox_create(cli->engine, &o, &s, err);
	if (rc == 0) {
		rc = check_inside(cli, name, s, err);
		cli_remove(cli, s);
		sba_sandbox_close(s);
	}
	if (rc < 0) {
		struct sba_error why = *err;
		return cli_fail(err, rc, why.hint, "image '%s': %.800s", ref, why.text);
	}
	return 0;
}

static int check_one(struct cli *cli, const char *name, const void *options, struct sba_error *err)
{
	(void)options;
	time_t since = time(NULL);
	const char *ref;
	int rc = cli_image_here(cli, name, &ref, err);
	if (rc == 0)
		rc = cli_image_check(cli, name, ref, err);
	if (rc == 0)
		cli_image_done(cli, ref, "answers as pinned", since);
	return rc;
}

static int check(struct cli *cli, const void *options, const struct cli_args *args)
{
	return cli_image_each(cli, args, options, check_one);
}

const struct cli_command cli_command_image_check = {
	.name = "image check",
	.args = "[AGENT...|all]",
	.help = "asks each CLI for its version",
	.example = "sandbox-agent image check claude",
	.max_args = -1,
	.run = check,
};
