/* SPDX-License-Identifier: MIT */
/* `snapshot`: the hashes of all files below a folder inside, as sha256sum prints them. */
#include "cli.h"

#include <string.h>
#include <sys/stat.h>

struct snapshot_options {
	bool gitignore, all;
};

static const struct cli_option snapshot_options[] = {
	{ "gitignore", 0, CLI_FLAG, NULL, "without what .gitignore files name",
	  offsetof(struct snapshot_options, gitignore), 0 },
	{ "all", 0, CLI_FLAG, NULL, "with node_modules, .venv and the like",
	  offsetof(struct snapshot_options, all), 0 },
	{ 0 },
};

/* As sha256sum: a name with a line's end in it is escaped, and its line marked. */
static void print_line(const struct sba_snapshot_file *f)
{
	bool escaped = strpbrk(f->path, "\\\n\r");
	printf("%s%s  ", escaped ? "\\" : "", f->sha256);
	for (const char *c = f->path; *c; c++) {
		if (escaped && *c == '\n')
			fputs("\\n", stdout);
		else if (escaped && *c == '\r')
			fputs("\\r", stdout);
		else if (escaped && *c == '\\')
			fputs("\\\\", stdout);
		else
			putchar(*c);
	}
	putchar('\n');
}

/* A terminal would obey the name. */
static void show_line(struct cli *cli, const struct sba_snapshot_file *f)
{
	CLI_FREE char *name = cli_line(&cli->look, f->path, 0);
	printf("%s  %s\n", f->sha256, name ? name : "");
}

static void print_json(const struct sba_snapshot_file *f)
{
	json_t *j = json_pack("{s:s, s:I, s:s}", "type", f->link ? "link" : "file", "size",
			      (json_int_t)f->size, "sha256", f->sha256);
	char mode[8];
	snprintf(mode, sizeof(mode), "%04o", (unsigned)(f->mode & 07777));
	json_object_set_new(j, "mode", json_string(mode));
	cli_json_path(j, "path", "path_base64", f->path);
	if (f->link)
		cli_json_path(j, "link", "link_base64", f->link);
	if (!*f->sha256)
		json_object_del(j, "sha256");
	cli_json_line(j);
}

static void print(struct cli *cli, const struct sba_snapshot *n)
{
	size_t links = 0, large = 0;
	if (cli->json)
		cli_json_first(json_pack("{s:I, s:I}", "files", (json_int_t)sba_snapshot_count(n),
					 "left_out", (json_int_t)sba_snapshot_left_out(n)));
	for (size_t i = 0; i < sba_snapshot_count(n); i++) {
		const struct sba_snapshot_file *f = sba_snapshot_at(n, i);
		links += f->link != NULL;
		large += !f->link && !*f->sha256;
		if (cli->json)
			print_json(f);
		else if (*f->sha256 && cli->look.out_tty)
			show_line(cli, f);
		else if (*f->sha256)
			print_line(f);
	}
	if (links || large)
		cli_note(cli, "without a hash: %zu link%s, %zu file%s that %s too large (--json)",
			 links, links == 1 ? "" : "s", large, large == 1 ? "" : "s",
			 large == 1 ? "is" : "are");
	if (sba_snapshot_left_out(n))
		cli_note(cli, "%zu could not be looked at", sba_snapshot_left_out(n));
}

static int run_snapshot(struct cli *cli, const void *options, const struct cli_args *args)
{
	const struct snapshot_options *o = options;
	CLI_FREE char *folder = args->n > 1 ? cli_inside_path(args->v[1]) : NULL;
	const struct sba_snapshot_options so = { .folder = folder,
						 .gitignore = o->gitignore,
						 .everything = o->all };
	struct sba_sandbox *s = NULL;
	struct sba_snapshot *n = NULL;
	struct sba_error err;
	int rc = cli_sandbox(cli, args->v[0], &s, &err);
	if (rc == 0)
		rc = cli_settings_timeout(cli, "transfer_timeout",
					  sba_sandbox_snapshot(s, &so, &n, &err), &err);
	if (rc == 0)
		print(cli, n);
	sba_snapshot_free(n);
	sba_sandbox_close(s);
	return rc < 0 ? cli_report(cli, &err) : 0;
}

const struct cli_command cli_command_snapshot = {
	.name = "snapshot",
	.args = "NAME [PATH]",
	.help = "the hashes of all files in NAME's workspace",
	.more = "As sha256sum prints them; --json tells sizes, modes and links too. PATH: another\n"
		"folder. Passed over: .git, node_modules, .venv, venv, __pycache__, .mypy_cache,\n"
		".pytest_cache, .ruff_cache. Only what changed is read again.",
	.example = "sandbox-agent snapshot calm-fox > before.sha256",
	.tables = { snapshot_options },
	.options_size = sizeof(struct snapshot_options),
	.min_args = 1,
	.max_args = 2,
	.run = run_snapshot,
};
