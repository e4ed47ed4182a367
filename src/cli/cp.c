/* SPDX-License-Identifier: MIT */
/* `cp`: files into a sandbox and out of it. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* One side of a copy: NAME:PATH, or a path here. */
struct side {
	char *name; /* NULL: here */
	char *path;
};

static void side_fini(struct side *s)
{
	free(s->name);
	free(s->path);
}

/* As docker has it: what begins with / or . is here, else a colon ends a name. */
static int side_parse(const char *arg, struct side *ret, struct sba_error *err)
{
	size_t len = strcspn(arg, ":/");
	bool inside = arg[0] != '.' && len > 0 && arg[len] == ':';
	if (!strcmp(arg, "-"))
		return cli_fail(err, SBA_EINVAL, "copy a folder, or use exec with tar",
				"tar streams (-) are not there yet");
	if (!inside) {
		ret->path = strdup(arg);
		return ret->path ? 0 : cli_fail_nomem(err);
	}
	const char *path = arg + len + 1;
	ret->name = strndup(arg, len);
	if (asprintf(&ret->path, "%s%s", *path == '/' ? "" : "/", path) < 0)
		ret->path = NULL;
	return ret->name && ret->path ? 0 : cli_fail_nomem(err);
}

struct copy {
	struct cli *cli;
	const char *what;
	int64_t since_ms, shown_ms;
	json_t *refused; /* names, for --json */
};

static int64_t now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void progress(void *user, uint64_t bytes, uint64_t files)
{
	enum { EVERY_MS = 100 };
	struct copy *c = user;
	char line[512], size[32], rate[32];
	int64_t now = now_ms(), took = now - c->since_ms;
	if (now - c->shown_ms < EVERY_MS)
		return;
	c->shown_ms = now;
	CLI_FREE char *what = cli_line(&c->cli->look, c->what, 40);
	snprintf(
		line, sizeof(line), "%s  %llu file%s  %s  %s/s", what ? what : "",
		(unsigned long long)files, files == 1 ? "" : "s",
		sba_format_size((int64_t)bytes, size, sizeof(size)),
		sba_format_size((int64_t)bytes * 1000 / (took > 0 ? took : 1), rate, sizeof(rate)));
	cli_status_set(&c->cli->status, line);
}

static void refused(void *user, const char *name, const char *why)
{
	struct copy *c = user;
	CLI_FREE char *visible = sba_visible(name, strlen(name), true);
	if (c->refused && visible)
		json_array_append_new(c->refused,
				      json_pack("{s:s, s:s}", "name", visible, "why", why));
	if (c->cli->verbose)
		cli_note(c->cli, "refused: %s (%s)", name, why);
}

static void told(struct copy *c, const struct sba_transfer_report *r)
{
	char size[32];
	sba_format_size((int64_t)r->bytes, size, sizeof(size));
	if (c->cli->json) {
		cli_json_line(json_pack(
			"{s:i, s:I, s:I, s:I, s:I, s:O}", "v", 1, "files", (json_int_t)r->files,
			"directories", (json_int_t)r->directories, "bytes", (json_int_t)r->bytes,
			"symlinks", (json_int_t)r->symlinks, "refused", c->refused));
		return;
	}
	cli_note(c->cli, "%s  %llu file%s  %s", c->what, (unsigned long long)r->files,
		 r->files == 1 ? "" : "s", size);
	if (r->refused)
		cli_note(c->cli, "refused: %llu of another kind than file or folder%s",
			 (unsigned long long)r->refused,
			 c->cli->verbose ? "" : " (names: -v, or --json)");
}

static int transfer(struct copy *c, const struct side *from, const struct side *to,
		    struct sba_transfer_report *report, struct sba_error *err)
{
	struct sba_sandbox *s = NULL;
	struct sba_transfer_options o = {
		.replace = true,
		.progress = progress,
		.refused = refused,
		.user = c,
	};
	int rc = cli_sandbox(c->cli, from->name ? from->name : to->name, &s, err);
	if (rc == 0 && from->name)
		rc = sba_sandbox_download(s, from->path, to->path, &o, report, err);
	else if (rc == 0)
		rc = sba_sandbox_upload(s, from->path, to->path, &o, report, err);
	sba_sandbox_close(s);
	cli_status_clear(&c->cli->status);
	return rc;
}

static int copy(struct cli *cli, const struct side *from, const struct side *to)
{
	struct sba_error err;
	struct sba_transfer_report report = { 0 };
	if (!from->name == !to->name)
		return cli_usage(cli, "as in:  sandbox-agent cp calm-fox:/data ./data",
				 "one side is NAME:PATH, the other is here");
	CLI_JSON json_t *names = json_array();
	struct copy c = {
		.cli = cli,
		.what = from->path,
		.since_ms = now_ms(),
		.refused = names,
	};
	int rc = transfer(&c, from, to, &report, &err);
	if (rc == 0)
		told(&c, &report);
	if (cli_signals_caught())
		return cli_signals_exit(cli, 1, "the copy may be incomplete");
	return rc < 0 ? cli_report(cli, &err) : 0;
}

static int cp(struct cli *cli, const void *options, const struct cli_args *args)
{
	(void)options;
	struct side from = { 0 }, to = { 0 };
	struct sba_error err;
	int rc = side_parse(args->v[0], &from, &err);
	if (rc == 0)
		rc = side_parse(args->v[1], &to, &err);
	rc = rc < 0 ? cli_report(cli, &err) : copy(cli, &from, &to);
	side_fini(&from);
	side_fini(&to);
	return rc;
}

const struct cli_command cli_command_cp = {
	.name = "cp",
	.args = "SRC DST",
	.help = "files in or out; one side is NAME:PATH",
	.example = "sandbox-agent cp calm-fox:/workspace/out ./out",
	.min_args = 2,
	.max_args = 2,
	.run = cp,
};
