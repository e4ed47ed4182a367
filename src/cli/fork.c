/* SPDX-License-Identifier: MIT */
/* `fork`: children with the same files, and a session of their own with the same past. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

enum { CHILDREN_MAX = 64 };

struct fork_options {
	int64_t count;
	const char *name;
	struct cli_list env, env_file;
};

#define FIELD(field) offsetof(struct fork_options, field)

static const struct cli_option fork_options[] = {
	{ "count", 'n', CLI_INT, "N", "so many children (1)", FIELD(count), 1 },
	{ "name", 0, CLI_STRING, "NEW", "what one is called, or NEW-1, NEW-2... (NAME-1...)",
	  FIELD(name), 0 },
	{ "env", 'e', CLI_LIST, "K=V", "a variable for the children; K alone passes ours on",
	  FIELD(env), 0 },
	{ "env-file", 0, CLI_LIST, "FILE", "variables, one a line", FIELD(env_file), 0 },
	{ 0 },
};

/* One family: the parent, and what became of it. */
struct family {
	struct sba_sandbox *parent;
	struct sba_sandbox *v[CHILDREN_MAX];
	size_t n;
	struct sba_fork_report report;
	char **left_env; /* names that the children have not got */
};

static bool has_name(const struct cli_env *env, const char *name)
{
	size_t len = strlen(name);
	for (size_t i = 0; i < env->n; i++) {
		if (!strncmp(env->v[i], name, len) && env->v[i][len] == '=')
			return true;
	}
	return false;
}

/* Of the parent's own variables those that were not given anew. */
static int find_left(struct family *f, const struct cli_env *env, struct sba_error *err)
{
	char **names = NULL;
	size_t kept = 0;
	int rc = sba_sandbox_env_names(f->parent, &names, err);
	if (rc < 0)
		return rc;
	for (size_t i = 0; names[i]; i++) {
		char *name = names[i];
		names[i] = NULL;
		if (has_name(env, name))
			cli_free(&name);
		else
			names[kept++] = name;
	}
	f->left_env = names;
	return 0;
}

/* The session of each; one that has none says nothing. */
static void session_of(struct sba_sandbox *s, char *ret, size_t size)
{
	const struct sba_agent_options o = { .no_turns = true };
	struct sba_agent *a = NULL;
	const char *id = "";
	struct sba_error ignored;
	ret[0] = '\0';
	if (*sba_sandbox_info(s)->agent && sba_agent_open(s, &o, &a, &ignored) == 0 &&
	    sba_sessions_main(a, &id, &ignored) == 0)
		snprintf(ret, size, "%s", id);
	sba_agent_close(a);
}

static int make(struct cli *cli, struct family *f, const struct sba_fork_options *o,
		struct sba_error *err)
{
	struct sba_audit_options audit = { 0 };
	struct sba_agent_options ao = { .no_turns = true };
	struct sba_agent *a = NULL;
	if (!*sba_sandbox_info(f->parent)->agent || !sba_sandbox_can(f->parent, SBA_CAN_FORK))
		return sba_sandbox_fork(f->parent, o, f->v, &f->report, err);
	if (cli_audit_options(cli, sba_sandbox_info(f->parent)->agent, &audit))
		ao.audit = &audit;
	int rc = sba_agent_open(f->parent, &ao, &a, err);
	if (rc == 0)
		rc = sba_agent_fork(a, o, f->v, &f->report, err);
	sba_agent_close(a);
	return rc;
}

static void came_along(const struct sba_fork_report *r, char *ret, size_t size)
{
	char bytes[32], gone[48] = "", left[48] = "";
	if (r->deleted)
		snprintf(gone, sizeof(gone), ", %llu gone", (unsigned long long)r->deleted);
	if (r->left_out)
		snprintf(left, sizeof(left), ", %llu left out", (unsigned long long)r->left_out);
	snprintf(ret, size, "  %llu file%s changed come along (%s%s%s)",
		 (unsigned long long)r->files, r->files == 1 ? "" : "s",
		 sba_format_size((int64_t)r->bytes, bytes, sizeof(bytes)), gone, left);
}

static void show(struct cli *cli, const struct family *f)
{
	char along[160];
	came_along(&f->report, along, sizeof(along));
	for (size_t i = 0; i < f->n; i++) {
		char id[SBA_SESSION_NAME_MAX];
		const char *name = sba_sandbox_info(f->v[i])->name;
		session_of(f->v[i], id, sizeof(id));
		if (cli->quiet || !cli->look.out_tty) {
			printf("%s\n", name);
			continue;
		}
		printf("%s%s%s%s\n", name, *id ? "  session " : "", id, i == 0 ? along : "");
	}
	if (!cli->look.out_tty)
		cli_note(cli, "%zu of %s:%s", f->n, sba_sandbox_info(f->parent)->name, along);
	for (char **at = f->left_env; *at; at++)
		cli_note(cli, "not inherited: %s  (-e %s=...)", *at, *at);
}

static void show_json(const struct family *f)
{
	json_t *children = json_array(), *left = json_array();
	for (size_t i = 0; i < f->n; i++) {
		char id[SBA_SESSION_NAME_MAX];
		session_of(f->v[i], id, sizeof(id));
		json_t *j = cli_json_sandbox(sba_sandbox_info(f->v[i]));
		json_object_set_new(j, "session", json_string(id));
		json_array_append_new(children, j);
	}
	for (char **at = f->left_env; *at; at++)
		json_array_append_new(left, json_string(*at));
	const struct sba_fork_report *r = &f->report;
	cli_json_first(json_pack("{s:s, s:o, s:o, s:I, s:I, s:I, s:I}", "parent",
				 sba_sandbox_info(f->parent)->name, "children", children,
				 "env_not_inherited", left, "files", (json_int_t)r->files, "bytes",
				 (json_int_t)r->bytes, "deleted", (json_int_t)r->deleted,
				 "left_out", (json_int_t)r->left_out));
}

/* NAME-2 before NAME-10. */
static int by_name(const void *a, const void *b)
{
	const char *x = sba_sandbox_info(*(struct sba_sandbox *const *)a)->name;
	const char *y = sba_sandbox_info(*(struct sba_sandbox *const *)b)->name;
	size_t m = strlen(x), n = strlen(y);
	return m != n ? (m > n) - (m < n) : strcmp(x, y);
}

static int make_all(struct cli *cli, const struct fork_options *o, const char *name,
		    struct family *f, struct sba_error *err)
{
	struct cli_env env = { 0 };
	int rc = cli_sandbox(cli, name, &f->parent, err);
	if (rc == 0)
		rc = sba_sandbox_find_agent(f->parent, err);
	if (rc == 0)
		rc = cli_env_collect(&env, &o->env_file, &o->env, err);
	/* Of one that cannot be forked the fork itself says so. */
	if (rc == 0 && sba_sandbox_can(f->parent, SBA_CAN_FORK))
		rc = find_left(f, &env, err);
	f->n = o->count ? (size_t)o->count : 1;
	const struct sba_fork_options fo = {
		.count = f->n,
		.name = o->name,
		.env = (const char *const *)env.v,
		.max_sandboxes =
			cli->config ? sba_config_number(cli->config, "max_containers", NULL) : 0,
	};
	if (rc == 0)
		rc = make(cli, f, &fo, err);
	if (rc < 0)
		f->n = 0;
	qsort(f->v, f->n, sizeof(f->v[0]), by_name);
	cli_env_fini(&env);
	return rc;
}

static int run_fork(struct cli *cli, const void *options, const struct cli_args *args)
{
	const struct fork_options *o = options;
	struct family f = { 0 };
	struct sba_error err;
	int status = 0;
	if (o->count > CHILDREN_MAX)
		return cli_usage(cli, NULL, "--count: at most %d at a time", CHILDREN_MAX);
	if (make_all(cli, o, args->v[0], &f, &err) < 0)
		status = cli_signals_caught() ? cli_signals_exit(cli, 1, "no child was made")
					      : cli_report(cli, &err);
	else if (cli->json)
		show_json(&f);
	else
		show(cli, &f);
	for (size_t i = 0; i < f.n; i++)
		sba_sandbox_close(f.v[i]);
	sba_env_names_free(f.left_env);
	sba_sandbox_close(f.parent);
	return status;
}

const struct cli_command cli_command_fork = {
	.name = "fork",
	.args = "NAME",
	.help = "children of NAME: its files, its past, lives of their own",
	.more = "Each has every file as it is in NAME now, and a session that knows what NAME's\n"
		"knows. Variables (-e) are not inherited: they may be secrets. NAME goes on.",
	.example = "sandbox-agent fork calm-fox -n 3",
	.tables = { fork_options },
	.options_size = sizeof(struct fork_options),
	.min_args = 1,
	.max_args = 1,
	.run = run_fork,
};
