/* SPDX-License-Identifier: MIT */
/* `sessions`: the conversations that the CLI in a sandbox keeps. */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- ls ---- */

enum { TITLE_COLUMNS = 40 };

static const char *when(int64_t ms, char *buf, size_t size)
{
	time_t t = (time_t)(ms / 1000);
	struct tm tm;
	buf[0] = '\0';
	if (ms > 0 && localtime_r(&t, &tm))
		strftime(buf, size, "%Y-%m-%d %H:%M", &tm);
	return ms > 0 ? buf : "-";
}

static json_t *session_json(const struct sba_session_info *i)
{
	json_t *j =
		json_pack("{s:s, s:b, s:s, s:s, s:s, s:s, s:I, s:I, s:I}", "id", i->id, "main",
			  i->main, "title", i->title, "model", i->model, "parent", i->parent,
			  "workdir", i->workdir, "created_ms", (json_int_t)i->created_ms,
			  "updated_ms", (json_int_t)i->updated_ms, "turns", (json_int_t)i->turns);
	json_object_set_new(j, "usage", cli_json_usage(&i->usage));
	return j;
}

static void print_json(const struct sba_session_list *l)
{
	json_t *array = json_array();
	for (size_t i = 0; i < sba_sessions_count(l); i++)
		json_array_append_new(array, session_json(sba_sessions_at(l, i)));
	cli_json_first(json_pack("{s:o}", "sessions", array));
}

static void add_row(struct cli *cli, struct cli_table *t, const struct sba_session_info *i)
{
	char updated[32], created[32], tokens[32] = "-";
	CLI_FREE char *title = cli_line(&cli->look, i->title, cli->verbose ? 0 : TITLE_COLUMNS);
	if (i->turns)
		cli_thousands((uint64_t)(i->usage.input + i->usage.output), tokens);
	const char *const cells[] = { i->main ? "*" : "",
				      i->id,
				      when(i->updated_ms, updated, sizeof(updated)),
				      title ? title : "",
				      *i->model ? i->model : "-",
				      tokens,
				      when(i->created_ms, created, sizeof(created)),
				      *i->parent ? i->parent : "-" };
	cli_table_add(t, cells);
}

static int ls(struct cli *cli, const void *options, const struct cli_args *args)
{
	static const char *const head[] = { "",      "SESSION", "LAST",    "TITLE",
					    "MODEL", "TOKENS",  "CREATED", "PARENT" };
	struct cli_agent a;
	struct sba_session_list *l = NULL;
	struct sba_error err;
	(void)options;
	int rc = cli_agent_open(cli, args->v[0], &a, &err);
	if (rc == 0)
		rc = sba_sessions_list(a.agent, &l, &err);
	if (rc < 0)
		return cli_agent_end(cli, &a, rc, &err);
	struct cli_table t = { .columns = CLI_LEN(head) };
	cli_table_add(&t, head);
	for (size_t i = 0; i < sba_sessions_count(l); i++)
		add_row(cli, &t, sba_sessions_at(l, i));
	if (cli->json)
		print_json(l);
	else
		cli_table_print(&t, stdout, cli_columns_of(stdout));
	cli_table_fini(&t);
	sba_sessions_free(l);
	return cli_agent_end(cli, &a, 0, &err);
}

const struct cli_command cli_command_sessions_ls = {
	.name = "sessions ls",
	.args = "NAME",
	.help = "the sessions in NAME, newest first",
	.more = "The one with a * is the main one: chat goes on with it. Tokens are those of the\n"
		"turns that were had with sandbox-agent, input and output together.",
	.example = "sandbox-agent sessions ls calm-fox",
	.min_args = 1,
	.max_args = 1,
	.run = ls,
};

/* ---- use, fork, rm ---- */

static int use(struct cli *cli, const void *options, const struct cli_args *args)
{
	struct cli_agent a;
	struct sba_error err;
	(void)options;
	int rc = cli_agent_open(cli, args->v[0], &a, &err);
	if (rc == 0)
		rc = sba_sessions_use(a.agent, args->v[1], &err);
	if (rc == 0 && cli->json)
		cli_json_first(json_pack("{s:s}", "session", args->v[1]));
	return cli_agent_end(cli, &a, rc, &err);
}

const struct cli_command cli_command_sessions_use = {
	.name = "sessions use",
	.args = "NAME SESSION",
	.help = "chat goes on with that session",
	.example = "sandbox-agent sessions use calm-fox 6f0e2a4c-1111-4222-8333-444455556666",
	.min_args = 2,
	.max_args = 2,
	.run = use,
};

struct fork_options {
	bool use;
};
static const struct cli_option fork_options[] = {
	{ "use", 0, CLI_FLAG, NULL, "chat goes on with the copy",
	  offsetof(struct fork_options, use), 0 },
	{ 0 },
};

static int copy(struct cli *cli, const void *options, const struct cli_args *args)
{
	const struct fork_options *o = options;
	char id[SBA_SESSION_NAME_MAX] = "";
	struct cli_agent a;
	struct sba_error err;
	int rc = cli_agent_open(cli, args->v[0], &a, &err);
	if (rc == 0)
		rc = sba_sessions_copy(a.agent, args->v[1], id, &err);
	if (rc == 0 && o->use)
		rc = sba_sessions_use(a.agent, id, &err);
	if (rc == 0 && cli->json)
		cli_json_first(json_pack("{s:s}", "session", id));
	else if (rc == 0)
		printf("%s\n", id);
	return cli_agent_end(cli, &a, rc, &err);
}

const struct cli_command cli_command_sessions_fork = {
	.name = "sessions fork",
	.args = "NAME [SESSION]",
	.help = "a copy of a session (the main one) in the same sandbox; prints its id",
	.more = "The two share the files. For a sandbox of its own: sandbox-agent fork.",
	.example = "sandbox-agent sessions fork calm-fox --use",
	.tables = { fork_options },
	.options_size = sizeof(struct fork_options),
	.min_args = 1,
	.max_args = 2,
	.run = copy,
};

static int rm(struct cli *cli, const void *options, const struct cli_args *args)
{
	struct cli_agent a;
	struct sba_error err;
	(void)options;
	int rc = cli_agent_open(cli, args->v[0], &a, &err);
	for (int i = 1; rc == 0 && i < args->n; i++) {
		rc = sba_sessions_remove(a.agent, args->v[i], &err);
		if (rc == 0 && !cli->json)
			printf("%s\n", args->v[i]);
	}
	if (rc == 0 && cli->json)
		cli_json_first(json_pack("{s:i}", "removed", args->n - 1));
	return cli_agent_end(cli, &a, rc, &err);
}

const struct cli_command cli_command_sessions_rm = {
	.name = "sessions rm",
	.args = "NAME SESSION...",
	.help = "removes sessions; without its main one, chat begins anew",
	.example = "sandbox-agent sessions rm calm-fox 6f0e2a4c-1111-4222-8333-444455556666",
	.min_args = 2,
	.max_args = -1,
	.run = rm,
};

/* ---- dump ---- */

struct dump_options {
	const char *session;
	bool workspace;
};
static const struct cli_option dump_options[] = {
	{ "session", 0, CLI_STRING, "ID", "another than the main one",
	  offsetof(struct dump_options, session), 0 },
	{ "workspace", 0, CLI_FLAG, NULL, "with the files in /workspace",
	  offsetof(struct dump_options, workspace), 0 },
	{ 0 },
};

/* Beside the file, so that it is there whole or not at all. */
static char *beside(const char *path)
{
	char *temp = NULL;
	return asprintf(&temp, "%s.partial-XXXXXX", path) < 0 ? NULL : temp;
}

static int dump_to_file(struct sba_agent *a, const struct sba_dump_options *o, const char *path,
			struct sba_error *err)
{
	CLI_FREE char *temp = beside(path);
	int fd = temp ? mkostemp(temp, O_CLOEXEC) : -1;
	if (!temp)
		return cli_fail_nomem(err);
	if (fd < 0)
		return cli_fail(err, SBA_EIO, NULL, "write %s: %s", path, strerror(errno));
	int rc = sba_sessions_dump(a, o, fd, err);
	bool closed = close(fd) == 0;
	if (rc == 0 && (!closed || rename(temp, path) < 0))
		rc = cli_fail(err, SBA_EIO, NULL, "write %s: %s", path, strerror(errno));
	if (rc < 0)
		unlink(temp);
	return rc;
}

static void dumped(struct cli *cli, const char *path)
{
	struct stat st = { 0 };
	char size[32];
	if (stat(path, &st) < 0)
		return;
	if (cli->json)
		cli_json_first(
			json_pack("{s:s, s:I}", "file", path, "bytes", (json_int_t)st.st_size));
	else
		cli_note(cli, "%s %s  %s", cli_mark(&cli->look, CLI_MARK_GET), path,
			 sba_format_size((int64_t)st.st_size, size, sizeof(size)));
}

static int dump(struct cli *cli, const void *options, const struct cli_args *args)
{
	const struct dump_options *o = options;
	const struct sba_dump_options to = { .session = o->session, .workspace = o->workspace };
	const char *path = args->v[1];
	bool out = !strcmp(path, "-");
	struct cli_agent a;
	struct sba_error err;
	if (out && isatty(STDOUT_FILENO))
		return cli_usage(cli, "name a file, or send it somewhere:  ... - | ssh host ...",
				 "a dump is no text for a terminal");
	int rc = cli_agent_open(cli, args->v[0], &a, &err);
	if (rc == 0)
		rc = out ? sba_sessions_dump(a.agent, &to, STDOUT_FILENO, &err)
			 : dump_to_file(a.agent, &to, path, &err);
	if (rc == 0 && !out)
		dumped(cli, path);
	return cli_agent_end(cli, &a, rc, &err);
}

const struct cli_command cli_command_sessions_dump = {
	.name = "sessions dump",
	.args = "NAME FILE",
	.help = "one file that another sandbox can go on with",
	.more = "FILE may be - for stdout. What the model was told and said is in it, and so are\n"
		"the contents of files that it looked at: keep it as you would keep those.",
	.example = "sandbox-agent sessions dump calm-fox fox.session --workspace",
	.tables = { dump_options },
	.options_size = sizeof(struct dump_options),
	.min_args = 2,
	.max_args = 2,
	.run = dump,
};

/* ---- load ---- */

static void loaded_json(const struct sba_dump_info *i)
{
	cli_json_first(json_pack(
		"{s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:b, s:I, s:b, s:I}", "session", i->session,
		"agent", i->agent, "cli_version", i->cli_version, "image", i->image, "workdir",
		i->workdir, "created_ms", (json_int_t)i->created_ms, "bytes", (json_int_t)i->bytes,
		"workspace", i->workspace, "files", (json_int_t)i->files, "replaced", i->replaced,
		"left_out", (json_int_t)i->left_out));
}

static void loaded(struct cli *cli, const struct sba_dump_info *i)
{
	char at[32];
	if (cli->json) {
		loaded_json(i);
		return;
	}
	printf("%s\n", i->session);
	CLI_FREE char *made_by = sba_visible(i->cli_version, strlen(i->cli_version), true);
	cli_note(cli, "%s of %s, made by %s", i->replaced ? "replaced by the dump" : "dump",
		 when(i->created_ms, at, sizeof(at)), made_by && *made_by ? made_by : i->agent);
	if (i->workspace)
		cli_note(cli, "workspace: %llu file%s", (unsigned long long)i->files,
			 i->files == 1 ? "" : "s");
	if (i->left_out)
		cli_note(cli, "left out: %llu links that lead out of it, or no files",
			 (unsigned long long)i->left_out);
}

static int open_dump(const char *path, struct sba_error *err)
{
	if (!strcmp(path, "-"))
		return fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return cli_fail(err, errno == ENOENT ? SBA_ENOTFOUND : SBA_EIO, NULL, "%s: %s",
				path, strerror(errno));
	return fd;
}

static int load(struct cli *cli, const void *options, const struct cli_args *args)
{
	struct cli_agent a = { 0 };
	struct sba_dump_info info;
	struct sba_error err = { 0 };
	(void)options;
	int fd = open_dump(args->v[1], &err);
	if (fd < 0)
		return cli_report(cli, &err);
	int rc = cli_agent_open(cli, args->v[0], &a, &err);
	if (rc == 0)
		rc = sba_sessions_load(a.agent, fd, &info, &err);
	close(fd);
	if (rc == 0)
		loaded(cli, &info);
	return cli_agent_end(cli, &a, rc, &err);
}

const struct cli_command cli_command_sessions_load = {
	.name = "sessions load",
	.args = "NAME FILE",
	.help = "puts a dump in: chat goes on with it",
	.more = "FILE may be - for stdin. All of it is checked before anything is changed; it "
		"must\n"
		"be of the same agent. A session of the same id is replaced, and so are files.",
	.example = "sandbox-agent sessions load old-heron fox.session",
	.min_args = 2,
	.max_args = 2,
	.run = load,
};
