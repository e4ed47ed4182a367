/* SPDX-License-Identifier: MIT */
/* What `run`, `up` and `pool fill` share: an image, a sandbox made of it or claimed
 * from the pool, a workspace in it. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

#define FIELD(name) offsetof(struct cli_spawn, name)

enum { BRIEF_KEEPALIVE_MS = 30 * 1000, BRIEF_LIFETIME_MS = 6 * 3600 * 1000 };

const struct cli_option cli_spawn_options[] = {
	{ "backend", 0, CLI_STRING, "docker|local|opensandbox|e2b",
	  "what it is made of; local: the folder of -w itself (docker)", FIELD(backend), 0 },
	{ "image", 0, CLI_STRING, "REF", "an image (default: the agent's pinned one)", FIELD(image),
	  0 },
	{ "pull", 0, CLI_STRING, "missing|never|always", "when to pull the image (missing)",
	  FIELD(pull), 0 },
	{ "locked", 0, CLI_FLAG, NULL, "no image but what the lock file has", FIELD(locked), 0 },
	{ "name", 0, CLI_STRING, "NAME", "the sandbox's name (default: made up)", FIELD(name), 0 },
	{ "tag", 0, CLI_STRING, "WORD", "a word for ps --filter tag=WORD", FIELD(tag), 0 },
	{ "workspace", 'w', CLI_STRING, "DIR[:PATH]", "copies a folder in (to /workspace)",
	  FIELD(workspace), 0 },
	{ "mount", 0, CLI_LIST, "HOST:PATH[:ro]", "a file or folder here is at PATH as well",
	  FIELD(mount), 0 },
	{ "env", 'e', CLI_LIST, "K=V", "a variable; K alone passes ours on", FIELD(env), 0 },
	{ "env-file", 0, CLI_LIST, "FILE", "variables, one a line", FIELD(env_file), 0 },
	{ "user", 0, CLI_STRING, "USER", "who it runs as (default: the image's)", FIELD(user), 0 },
	{ "memory", 0, CLI_SIZE, "SIZE", "at most so much memory (2g)", FIELD(memory), 1 << 20 },
	{ "cpus", 0, CLI_DOUBLE, "N", "at most so many CPUs (2)", FIELD(cpus), 0 },
	{ "pids", 0, CLI_INT, "N", "at most so many processes (512)", FIELD(pids), 1 },
	{ "network", 0, CLI_STRING, "open|sealed", "sealed: loopback only (open)", FIELD(network),
	  0 },
	{ "allow", 0, CLI_LIST, "HOST[:PORT]", "what a sealed sandbox reaches; implies sealed",
	  FIELD(allow), 0 },
	{ "runtime", 0, CLI_STRING, "NAME", "the engine's runtime to use", FIELD(runtime), 0 },
	{ "keepalive", 0, CLI_DURATION, "TIME",
	  "idle time until it ends itself (run 30s, up 1h; 0: never)", FIELD(keepalive), 0 },
	{ "max-lifetime", 0, CLI_DURATION, "TIME", "ends it in any case (run 6h, up 24h; 0: never)",
	  FIELD(max_lifetime), 0 },
	{ 0 },
};

static enum sba_pull pull_of(const char *word)
{
	if (word && !strcmp(word, "never"))
		return SBA_PULL_NEVER;
	return word && !strcmp(word, "always") ? SBA_PULL_ALWAYS : SBA_PULL_MISSING;
}

/* What a sandbox is made of: the name for people, the image itself. */
struct image {
	const char *ref;
	struct sba_image_settled settled;
};

/* The image, on the engine, as the lock file has it. */
static int settle(struct cli *cli, const struct cli_spawn *o, struct image *image,
		  struct sba_error *err)
{
	struct cli_build build = { .cli = cli };
	const struct sba_image_options io = {
		.ca_file = o->way.ca_file,
		.docker_config = cli_docker_folder(cli),
		.progress = cli->json ? NULL : cli_build_progress,
		.user = &build,
	};
	int rc = cli_lock(cli, err);
	const struct sba_image_wanted wanted = {
		.ref = image->ref,
		.pull = pull_of(o->pull),
		.lock = cli->lock,
		.locked = o->locked,
		.options = &io,
	};
	if (rc == 0)
		rc = sba_image_settle(cli->engine, &wanted, &image->settled, err);
	cli_status_clear(&cli->status);
	if (rc == 0 && image->settled.built_here)
		cli_note(cli,
			 "image %s was built here: it is not the one in the lock file "
			 "(--locked refuses it)",
			 cli_short_ref(cli, image->ref));
	return rc;
}

static int image_for(struct cli *cli, const struct cli_spawn *o, const char *agent,
		     struct image *ret, struct sba_error *err)
{
	/* Any program: what our base has. */
	const char *pinned = !agent || sba_agent_takes_program(agent) ? "base" : agent;
	ret->ref = o->image;
	int rc = ret->ref ? 0 : cli_images(cli, err);
	if (rc == 0 && !ret->ref)
		ret->ref = sba_images_ref(cli->images, pinned);
	if (rc == 0 && !ret->ref)
		rc = cli_fail(err, SBA_ECONFIG, "name one:  --image REF",
			      "no image is pinned for '%s'", agent);
	if (rc == 0)
		rc = settle(cli, o, ret, err);
	if (rc == SBA_EIMAGE && !o->image && strstr(err->text, "is not on the engine") &&
	    !(cli->lock && sba_image_lock_digest(cli->lock, ret->ref)))
		snprintf(err->hint, sizeof(err->hint), "make it:  sandbox-agent image build %s",
			 pinned);
	return rc;
}

/* The library's options, lent from o, image and env. */
static struct sba_sandbox_options options_of(const struct cli *cli, const struct cli_spawn *o,
					     const char *agent, const struct image *image,
					     const struct cli_env *env)
{
	return (struct sba_sandbox_options){
		.name = o->name,
		.prefix = cli->prefix,
		.tag = o->tag,
		.image = image->ref,
		.image_id = image->ref && strcmp(image->settled.ref, image->ref) != 0
				    ? image->settled.ref
				    : NULL,
		.user = o->user,
		.agent = agent,
		.program = o->program,
		.provider = o->way.offline ? "scripted" : o->way.provider,
		.base_url = o->way.base_url,
		.key_env = o->way.key_env,
		.model = o->way.model,
		.permissions = o->permissions,
		.mcp = o->mcp_names,
		.login = o->login_text ? sba_agent_login(agent)->path : NULL,
		.max_tokens = o->way.max_tokens,
		.max_requests = o->way.max_requests,
		.max_sandboxes = sba_config_number(cli->config, "max_containers", NULL),
		.network = o->network,
		.allow = o->allow.v,
		.mounts = o->mount.v,
		.env = (const char *const *)env->v,
		.keepalive_ms = o->keepalive,
		.max_lifetime_ms = o->max_lifetime,
		.memory = o->memory,
		.cpus = o->cpus,
		.pids = o->pids,
		.runtime = o->runtime,
		.ca_file = o->way.ca_file,
	};
}

static int explain(const struct cli_spawn *o, const char *image, int rc, struct sba_error *err)
{
	if (rc < 0 && o->user && cli_unknown_user(err))
		return cli_fail(err, SBA_ENOTFOUND, "a number needs no name, as in --user 1000",
				"--user: image %s has no user '%s'", image, o->user);
	return rc;
}

/* What is in the pool was made with the defaults of what stays. */
static int claim_or_create(struct cli *cli, const struct cli_spawn *o,
			   struct sba_sandbox_options so, struct sba_sandbox **ret,
			   struct sba_error *err)
{
	int rc = sba_pool_claim(cli->engine, &so, ret, err);
	if (rc != SBA_ENOTFOUND)
		return rc;
	if (o->brief && !so.keepalive_ms)
		so.keepalive_ms = BRIEF_KEEPALIVE_MS;
	if (o->brief && !so.max_lifetime_ms)
		so.max_lifetime_ms = BRIEF_LIFETIME_MS;
	rc = cli_settings_timeout(cli, "start_timeout",
				  sba_sandbox_create(cli->engine, &so, ret, err), err);
	return explain(o, so.image, rc, err);
}

static int create(struct cli *cli, const struct cli_spawn *o, const char *agent,
		  const struct image *image, struct sba_sandbox **ret, struct sba_error *err)
{
	struct cli_env env = { 0 };
	int rc = cli_env_collect_config(&env, cli, agent, err);
	if (rc == 0)
		rc = cli_env_collect(&env, &o->env_file, &o->env, err);
	if (rc == 0)
		rc = claim_or_create(cli, o, options_of(cli, o, agent, image, &env), ret, err);
	cli_env_fini(&env);
	return rc;
}

char *cli_workspace_dir(const char *arg, const char **ret_path)
{
	const char *colon = strrchr(arg, ':');
	*ret_path = colon && colon[1] == '/' ? colon + 1 : NULL;
	return strndup(arg, *ret_path ? (size_t)(colon - arg) : strlen(arg));
}

static int check_rules(const struct cli_list *allow, struct sba_error *err)
{
	for (size_t i = 0; i < allow->n; i++) {
		if (strstr(allow->v[i], "://"))
			return cli_fail(err, SBA_EINVAL,
					"a rule is HOST[:PORT], as in --allow example.org:443",
					"--allow: '%s' is a URL", allow->v[i]);
	}
	return 0;
}

int cli_spawn_check_workspace(const char *arg, struct sba_error *err)
{
	const char *path;
	CLI_FREE char *dir = cli_workspace_dir(arg, &path);
	return dir ? cli_check_option_path("workspace", dir, true, err) : cli_fail_nomem(err);
}

int cli_spawn_add_workspace(struct cli *cli, const char *arg, struct sba_sandbox *s,
			    struct sba_error *err)
{
	const char *path;
	CLI_FREE char *dir = cli_workspace_dir(arg, &path);
	if (!dir)
		return cli_fail_nomem(err);
	struct cli_transfer t;
	cli_transfer_init(&t, cli, dir);
	struct sba_transfer_options to = { .refused = cli_transfer_refused, .user = &t };
	struct sba_transfer_report report = { 0 };
	int rc = cli_settings_timeout(cli, "transfer_timeout",
				      sba_sandbox_add_workspace(s, dir, path, &to, &report, err),
				      err);
	const struct cli_moved m = { .in = true,
				     .from = dir,
				     .to = path ? path : sba_sandbox_workdir(s),
				     .report = &report,
				     .refused = t.refused,
				     .error = rc < 0 ? err : NULL };
	cli_record_once(cli, s, "transfer", cli_record_transfer(&m));
	cli_transfer_fini(&t);
	if (rc < 0)
		return rc;
	char size[32], left[64] = "";
	if (report.refused)
		snprintf(left, sizeof(left), ", %llu left out", (unsigned long long)report.refused);
	cli_note(cli, "workspace: %llu file%s, %s%s", (unsigned long long)report.files,
		 report.files == 1 ? "" : "s",
		 sba_format_size((int64_t)report.bytes, size, sizeof(size)), left);
	return 0;
}

static int check_agent(struct cli_spawn *o, const char *agent, struct sba_error *err)
{
	int rc = cli_check_agent(agent, err);
	if (rc == 0)
		rc = cli_way_check(&o->way, agent, err);
	return rc == 0 ? cli_lodging_read(o, agent, err) : rc;
}

/* All that can be known before anything is made, and the image. */
static int prepare(struct cli *cli, struct cli_spawn *o, const char *agent, struct image *ret_image,
		   struct sba_error *err)
{
	int rc = agent            ? check_agent(o, agent, err)
		 : o->way.ca_file ? cli_check_option_path("ca-file", o->way.ca_file, false, err)
				  : 0;
	if (rc == 0)
		rc = check_rules(&o->allow, err);
	if (rc == 0 && o->workspace)
		rc = cli_spawn_check_workspace(o->workspace, err);
	if (rc == 0)
		rc = cli_engine(cli, err);
	if (rc == 0)
		cli_warn_of_runc(cli, o->cpus <= 0); /* their default needs what it has */
	if (rc == 0)
		rc = image_for(cli, o, agent, ret_image, err);
	return rc;
}

int cli_spawn_fill(struct cli *cli, struct cli_spawn *o, const char *agent, size_t count,
		   size_t *ret_made, struct sba_error *err)
{
	struct image image = { 0 };
	struct cli_env env = { 0 };
	int rc = prepare(cli, o, agent, &image, err);
	if (rc == 0)
		rc = cli_env_collect(&env, &o->env_file, &o->env, err);
	struct sba_sandbox_options so = options_of(cli, o, agent, &image, &env);
	if (rc == 0)
		rc = explain(o, image.ref, sba_pool_fill(cli->engine, &so, count, ret_made, err),
			     err);
	cli_env_fini(&env);
	cli_lodging_forget(o);
	return rc;
}

int cli_spawn_program(struct cli_spawn *o, const struct cli_args *args, int first,
		      const char *command, struct sba_error *err)
{
	char hint[256];
	int rc = cli_check_agent(args->v[0], err);
	if (rc < 0)
		return rc;
	bool takes = sba_agent_takes_program(args->v[0]);
	if (!takes && args->n > first)
		return cli_fail(err, SBA_EINVAL,
				"quote it:  sandbox-agent run claude \"fix the tests\"",
				"the prompt is one word for the shell");
	if (!takes)
		return 0;
	if (args->n <= first) {
		snprintf(hint, sizeof(hint),
			 "it takes the prompt on stdin:  sandbox-agent %s -- PROGRAM", command);
		return cli_fail(err, SBA_EINVAL, hint, "%s: which program?", args->v[0]);
	}
	o->program = (const char *const *)args->v + first;
	return 0;
}

int cli_spawn(struct cli *cli, struct cli_spawn *o, const char *agent, struct sba_sandbox **ret,
	      struct sba_error *err)
{
	struct image image = { 0 };
	struct sba_sandbox *s = NULL;
	int rc = prepare(cli, o, agent, &image, err);
	if (rc == 0)
		rc = create(cli, o, agent, &image, &s, err);
	if (rc == 0 && agent)
		rc = cli_lodging_place(cli, o, agent, s, err);
	cli_lodging_forget(o);
	if (rc == 0 && o->workspace)
		rc = cli_spawn_add_workspace(cli, o->workspace, s, err);
	if (rc < 0 && s) {
		cli_remove(cli, s);
		sba_sandbox_close(s);
		return rc;
	}
	if (rc == 0 && agent)
		cli_pool_refill(cli, agent);
	if (rc == 0)
		*ret = s;
	return rc;
}

int cli_spawn_anywhere(struct cli *cli, struct cli_spawn *o, const struct cli_local *local,
		       const struct cli_args *args, const char *agent, struct sba_sandbox **ret,
		       struct sba_error *err)
{
	if (cli_remote_is(o->backend))
		return cli_remote_spawn(cli, o, args, agent, ret, err);
	if (!cli_local_wanted(o))
		return cli_spawn(cli, o, agent, ret, err);
	if (local)
		return cli_local_spawn(cli, o, local, args, ret, err);
	return cli_fail(
		err, SBA_EUNSUPPORTED,
		"for one turn:  sandbox-agent run AGENT --backend local -w DIR PROMPT",
		"--backend local: it has not the capability 'detach': nothing of it outlives "
		"the command");
}

int cli_remove(struct cli *cli, struct sba_sandbox *s)
{
	struct sba_error err;
	if (sba_sandbox_remove(s, &err) == 0)
		return 0;
	const char *name = sba_sandbox_info(s)->name;
	struct sba_error told = { .code = err.code };
	snprintf(told.text, sizeof(told.text), "sandbox '%s' could not be removed: %.800s", name,
		 err.text);
	snprintf(told.hint, sizeof(told.hint), "try again:  sandbox-agent rm %s", name);
	return cli_report(cli, &told);
}

int cli_not_spawned(struct cli *cli, const struct sba_error *err)
{
	return cli_signals_caught() ? cli_signals_exit(cli, 1, "nothing is left running")
				    : cli_report(cli, err);
}

int cli_spawned(struct cli *cli, struct sba_sandbox *take_s, const char *next, const char *rest)
{
	const struct sba_sandbox_info *i = sba_sandbox_info(take_s);
	if (cli->json)
		cli_json_first(cli_json_sandbox(i));
	else
		printf("%s\n", i->name);
	if (cli->look.out_tty)
		cli_note(cli, "%s %s%s", next, i->name, rest);
	sba_sandbox_close(take_s);
	return 0;
}
