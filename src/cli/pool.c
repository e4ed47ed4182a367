/* SPDX-License-Identifier: MIT */
/* `pool`: sandboxes that are ready before anybody wants them. */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- fill ---- */

struct fill_options {
	struct cli_spawn spawn; /* first: its table counts from here */
	int64_t count;
};

static const struct cli_option fill_options[] = {
	{ "count", 'n', CLI_INT, "N", "so many shall be ready (1)",
	  offsetof(struct fill_options, count), 1 },
	{ 0 },
};

static int check_fill(const struct cli_spawn *o, struct sba_error *err)
{
	if (o->backend && strcmp(o->backend, "docker") != 0)
		return cli_fail(err, SBA_EUNSUPPORTED, "run, up and create take it",
				"--backend: only docker has a pool");
	if (o->name)
		return cli_fail(err, SBA_EINVAL, "run and up take --name", "%s",
				"--name: what is in the pool gets its name from who claims it");
	if (o->workspace)
		return cli_fail(err, SBA_EINVAL, "run and up take --workspace", "%s",
				"--workspace: a folder is copied in once a sandbox is claimed");
	if (o->way.login)
		return cli_fail(err, SBA_EINVAL, "run and up make a sandbox of its own for it",
				"%s", "--login-files: anybody may claim what is in the pool");
	if (o->skill.n || o->rules)
		return cli_fail(err, SBA_EINVAL,
				"run and up take it, and put it into what they claim",
				"--%s: what is in the pool is the same for everybody",
				o->skill.n ? "skill" : "rules");
	if (o->way.key_file || o->way.key_command)
		return cli_fail(err, SBA_EINVAL, "run and chat take it",
				"--%s: a sandbox in the pool keeps no key, nor where it is",
				o->way.key_file ? "api-key-file" : "api-key-command");
	return 0;
}

/* Which pool of the configuration, or which agent, a word means. */
static int find_scope(struct cli *cli, const char *word, struct sba_config_scope *ret,
		      struct sba_error *err)
{
	const char *const *names = sba_config_names(cli->config, "pool");
	while (*names && strcmp(*names, word) != 0)
		names++;
	if (!*names) {
		*ret = (struct sba_config_scope){ .agent = word };
		return cli_check_agent(word, err);
	}
	struct sba_config_scope scope = { .pool = word };
	scope.agent = sba_config_text(cli->config, "agent", &scope);
	if (!scope.agent)
		return cli_fail(
			err, SBA_ECONFIG, "give it an agent",
			"pool.%s: it names no agent, and without one none is made in advance",
			word);
	if (sba_config_has(cli->config, "pool", word, "env") ||
	    sba_config_has(cli->config, "pool", word, "env_file"))
		return cli_fail(
			err, SBA_ECONFIG, "run and up take -e and --env-file",
			"pool.%s: a pool takes no environment: anybody may claim its members",
			word);
	*ret = scope;
	return 0;
}

/* What was not given is what the configuration says for this pool, else agent. */
static int settle(struct cli *cli, struct fill_options *o, const struct cli_args *args,
		  const struct sba_config_scope *scope, struct sba_error *err)
{
	int rc = cli_settings_apply(cli, &cli_command_pool_fill, args, o, scope, err);
	if (!o->spawn.way.ca_file && scope->pool &&
	    sba_config_has(cli->config, "pool", scope->pool, "ca_file"))
		o->spawn.way.ca_file = sba_config_text(cli->config, "ca_file", scope);
	if (rc == 0)
		rc = cli_way_settle(cli, &o->spawn.way, args, scope->agent, NULL, err);
	if (!o->count)
		o->count = scope->pool ? sba_config_number(cli->config, "count", scope) : 1;
	return rc;
}

static void filled(struct cli *cli, const char *word, size_t made)
{
	if (cli->json)
		cli_json_line(json_pack("{s:i, s:s, s:I}", "v", 1, "pool", word, "made",
					(json_int_t)made));
	else if (made)
		cli_note(cli, "made %zu for %s", made, word);
	else
		cli_note(cli, "enough are ready for %s", word);
}

static int fill_one(struct cli *cli, const struct fill_options *given, const struct cli_args *args,
		    const char *word, struct sba_error *err)
{
	struct sba_config_scope scope;
	struct fill_options o = *given;
	size_t made = 0;
	bool rules = cli_given(args, "allow");
	/* Of several pools each has rules of its own. */
	if (!rules)
		o.spawn.allow = (struct cli_list){ 0 };
	int rc = find_scope(cli, word, &scope, err);
	if (rc == 0)
		rc = settle(cli, &o, args, &scope, err);
	if (rc == 0)
		rc = cli_spawn_fill(cli, &o.spawn, scope.agent, (size_t)o.count, &made, err);
	if (!rules)
		free(o.spawn.allow.v);
	if (rc == 0)
		filled(cli, word, made);
	return rc;
}

static int fill(struct cli *cli, const void *options, const struct cli_args *args)
{
	const struct fill_options *o = options;
	const char *const *names = sba_config_names(cli->config, "pool");
	struct sba_error err;
	int status = 0;
	if (check_fill(&o->spawn, &err) < 0)
		return cli_report(cli, &err);
	if (!args->n && !*names)
		return cli_usage(cli, cli_command_pool_fill.example,
				 "pool fill: the configuration has no pool, so it takes an agent");
	if (args->n)
		names = (const char *const *)args->v;
	/* The others have their turn although one fails. */
	for (; *names && !cli_signals_caught(); names++) {
		if (fill_one(cli, o, args, *names, &err) < 0 && !cli_signals_caught())
			status = cli_report(cli, &err);
	}
	return cli_signals_exit(cli, status, "what was made is ready");
}

const struct cli_command cli_command_pool_fill = {
	.name = "pool fill",
	.args = "[AGENT|POOL]",
	.help = "makes sandboxes that run and up with the same options claim",
	.more = "POOL is one of the configuration; without a word all of them are filled, and\n"
		"run and up fill them again. They wait for their keepalive (1h), and end as\n"
		"every other sandbox does. An environment (-e) is refused: anybody may claim.",
	.example = "sandbox-agent pool fill claude --offline -n 2",
	.tables = { fill_options, cli_way_options, cli_spawn_options, cli_lodging_options },
	.options_size = sizeof(struct fill_options),
	.max_args = 1,
	.run = fill,
};

/* ---- filling again, while nobody waits ---- */

enum { REFILL_ARGS = 12 };

/* Only what may be called between fork() and exec() in a program with threads. The
 * first child ends at once, so that the second is nobody's to collect. */
static void start_detached(char *const *argv)
{
	pid_t pid = fork();
	if (pid > 0)
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	if (pid != 0)
		return;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0 || setsid() < 0)
		_exit(1);
	for (int fd = 0; fd < 3; fd++)
		dup2(null, fd);
	if (fork() == 0)
		execv(argv[0], argv);
	_exit(0);
}

/* This very program, with the words that say where and of what. */
static void refill(struct cli *cli, const char *exe, const char *pool)
{
	const char *words[REFILL_ARGS] = { exe, "-q" };
	const struct {
		const char *option, *value;
	} given[] = { { "-H", cli->host },
		      { "--config", cli->config_file },
		      { "--prefix", cli->prefix } };
	size_t n = 2;
	for (size_t i = 0; i < CLI_LEN(given); i++) {
		if (!given[i].value)
			continue;
		words[n++] = given[i].option;
		words[n++] = given[i].value;
	}
	words[n++] = "pool";
	words[n++] = "fill";
	words[n] = pool;
	start_detached((char *const *)(uintptr_t)words);
}

void cli_pool_refill(struct cli *cli, const char *agent)
{
	char exe[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	if (len <= 0)
		return;
	exe[len] = '\0';
	for (const char *const *p = sba_config_names(cli->config, "pool"); *p; p++) {
		const struct sba_config_scope scope = { .pool = *p };
		const char *for_agent = sba_config_text(cli->config, "agent", &scope);
		if (for_agent && !strcmp(for_agent, agent))
			refill(cli, exe, *p);
	}
}

/* ---- ls ---- */

static int ls(struct cli *cli, const void *options, const struct cli_args *args)
{
	(void)options;
	(void)args;
	const struct sba_list_options lo = { .prefix = cli->prefix, .ready = true };
	struct sba_sandbox_list *l = NULL;
	struct sba_error err;
	int rc = cli_engine(cli, &err);
	if (rc == 0)
		rc = sba_sandbox_list(cli->engine, &lo, &l, &err);
	if (rc < 0)
		return cli_report(cli, &err);
	cli_ps_print(cli, l);
	sba_sandbox_list_free(l);
	return 0;
}

const struct cli_command cli_command_pool_ls = {
	.name = "pool ls",
	.args = "",
	.help = "what is ready",
	.example = "sandbox-agent pool ls",
	.run = ls,
};

/* ---- drain ---- */

static int drain(struct cli *cli, const void *options, const struct cli_args *args)
{
	(void)options;
	struct sba_error err;
	int removed = 0;
	int rc = args->n ? cli_check_agent(args->v[0], &err) : 0;
	if (rc == 0)
		rc = cli_engine(cli, &err);
	if (rc == 0)
		rc = sba_pool_drain(cli->engine, cli->prefix, args->v[0], &removed, &err);
	if (rc < 0)
		return cli_report(cli, &err);
	return cli_removed(cli, removed, "nothing was ready");
}

const struct cli_command cli_command_pool_drain = {
	.name = "pool drain",
	.args = "[AGENT]",
	.help = "removes what is ready and unclaimed",
	.example = "sandbox-agent pool drain",
	.max_args = 1,
	.run = drain,
};
