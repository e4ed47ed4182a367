/* SPDX-License-Identifier: MIT */
/* `ps`: what exists, and when it will end. */
#include "cli.h"

#include <string.h>
#include <time.h>

struct ps_options {
	bool all;
	const char *backend;
	struct cli_list filter;
};

static const struct cli_option ps_options[] = {
	{ "all", 'a', CLI_FLAG, NULL, "also what is ready in the pool, half-made or gone",
	  offsetof(struct ps_options, all), 0 },
	{ "backend", 0, CLI_STRING, "docker|opensandbox|e2b", "those of a service (docker)",
	  offsetof(struct ps_options, backend), 0 },
	{ "filter", 0, CLI_LIST, "K=V", "only these; K is tag, agent or name",
	  offsetof(struct ps_options, filter), 0 },
	{ 0 },
};

static int filter(const struct cli_list *list, struct sba_list_options *ret, struct sba_error *err)
{
	for (size_t i = 0; i < list->n; i++) {
		const char *f = list->v[i];
		if (!strncmp(f, "tag=", 4))
			ret->tag = f + 4;
		else if (!strncmp(f, "agent=", 6))
			ret->agent = f + 6;
		else if (!strncmp(f, "name=", 5))
			ret->name = f + 5;
		else
			return cli_fail(err, SBA_EINVAL, "tag=WORD, agent=NAME or name=NAME",
					"--filter '%s' is not known", f);
	}
	return 0;
}

/* "1h idle": what comes first of the two that end it. */
static void ends(const struct sba_sandbox_info *i, int64_t now, char *buf, size_t size)
{
	char time[32];
	int64_t left = i->max_lifetime_ms - (now - i->created) * 1000;
	bool alive = !strcmp(i->state, "idle") || !strcmp(i->state, "working") ||
		     !strcmp(i->state, "ready");
	if (!alive)
		snprintf(buf, size, "-");
	else if (i->keepalive_ms && (!i->max_lifetime_ms || i->keepalive_ms < left))
		snprintf(buf, size, "%s idle", cli_time(i->keepalive_ms, time, sizeof(time)));
	else if (i->max_lifetime_ms)
		snprintf(buf, size, "in %s", cli_time(left > 0 ? left : 0, time, sizeof(time)));
	else
		snprintf(buf, size, "never");
}

static void row(struct cli *cli, struct cli_table *t, const struct sba_sandbox_info *i, int64_t now)
{
	char up[32], end[48], state[64];
	cli_time((now > i->created ? now - i->created : 0) * 1000, up, sizeof(up));
	ends(i, now, end, sizeof(end));
	/* The library counts who uses it; what they do there it does not know. */
	if (!strcmp(i->state, "working") && !i->reason[0])
		snprintf(state, sizeof(state), "in use");
	else
		snprintf(state, sizeof(state), "%s%s%s%s", i->state, i->reason[0] ? ": " : "",
			 i->reason, i->foreign_schema ? " (newer version's)" : "");
	const char *cells[] = { i->name, i->agent[0] ? i->agent : "-", state, up,
				end,     cli_short_ref(cli, i->image) };
	cli_table_add(t, cells);
}

static void print_table(struct cli *cli, const struct sba_sandbox_list *l)
{
	static const char *const head[] = { "NAME", "AGENT", "STATE", "UP", "ENDS", "IMAGE" };
	struct cli_table t = { .columns = CLI_LEN(head) };
	cli_table_add(&t, head);
	for (size_t n = 0; n < sba_sandbox_list_count(l); n++)
		row(cli, &t, sba_sandbox_list_at(l, n), time(NULL));
	cli_table_print(&t, stdout, cli->look.out_tty ? cli->look.columns : 0);
	cli_table_fini(&t);
}

static void print_json(const struct sba_sandbox_list *l)
{
	for (size_t n = 0; n < sba_sandbox_list_count(l); n++) {
		json_t *j = cli_json_sandbox(sba_sandbox_list_at(l, n));
		(n == 0 ? cli_json_first : cli_json_line)(j);
	}
}

static void print_names(const struct sba_sandbox_list *l)
{
	for (size_t n = 0; n < sba_sandbox_list_count(l); n++)
		printf("%s\n", sba_sandbox_list_at(l, n)->name);
}

void cli_ps_print(struct cli *cli, const struct sba_sandbox_list *l)
{
	if (cli->json)
		print_json(l);
	else if (cli->quiet)
		print_names(l);
	else
		print_table(cli, l);
}

static int list(struct cli *cli, const char *backend, struct sba_list_options *lo,
		struct sba_sandbox_list **ret, struct sba_error *err)
{
	struct sba_remote *r = NULL;
	bool remote = cli_remote_is(backend);
	int rc = remote ? cli_remote(cli, backend, strlen(backend), &r, err) : cli_engine(cli, err);
	if (rc < 0)
		return rc;
	return remote ? sba_remote_list(r, lo, ret, err)
		      : sba_sandbox_list(cli->engine, lo, ret, err);
}

static int ps(struct cli *cli, const void *options, const struct cli_args *args)
{
	(void)args;
	const struct ps_options *o = options;
	struct sba_list_options lo = { .prefix = cli->prefix, .all = o->all, .moved_in = true };
	struct sba_sandbox_list *l = NULL;
	struct sba_error err;
	int rc = filter(&o->filter, &lo, &err);
	lo.brief = cli->quiet && !cli->json && !lo.agent;
	if (rc == 0)
		rc = list(cli, o->backend, &lo, &l, &err);
	if (rc < 0)
		return cli_report(cli, &err);
	cli_ps_print(cli, l);
	sba_sandbox_list_free(l);
	return 0;
}

const struct cli_command cli_command_ps = {
	.name = "ps",
	.args = "",
	.help = "the sandboxes; -q names only",
	.more = "Those of a service are called SERVICE/NAME, by every other command too.",
	.example = "sandbox-agent ps --filter agent=claude",
	.tables = { ps_options },
	.options_size = sizeof(struct ps_options),
	.run = ps,
};
