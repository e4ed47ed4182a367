/* SPDX-License-Identifier: MIT */
/* `run`: a sandbox for one turn, its work brought home, nothing left behind. */
#include "cli/changes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct run_options {
	struct cli_spawn spawn; /* first: its table counts from here */
	struct cli_list get;
	const char *patch, *branch;
	bool apply, commits, keep, keep_on_failure;
	struct cli_local local;
};

#define FIELD(name) offsetof(struct run_options, name)

static const struct cli_option run_options[] = {
	{ "get", 0, CLI_LIST, "PATH[:DEST]", "brings a file or folder home (to ./)", FIELD(get),
	  0 },
	{ "apply", 0, CLI_FLAG, NULL, "does to the --workspace folder what changed in its copy",
	  FIELD(apply), 0 },
	{ "patch", 0, CLI_STRING, "FILE", "writes what changed as a patch for git (-: stdout)",
	  FIELD(patch), 0 },
	{ "commits", 0, CLI_FLAG, NULL,
	  "takes the commits made inside into a branch of the --workspace", FIELD(commits), 0 },
	{ "branch", 0, CLI_STRING, "BRANCH", "with --commits: which one (sandbox-agent/NAME)",
	  FIELD(branch), 0 },
	{ "keep-on-failure", 0, CLI_FLAG, NULL,
	  "keeps the sandbox where it fails, whether or not its workspace has changed",
	  FIELD(keep_on_failure), 0 },
	CLI_LOCAL_OPTIONS(FIELD(local)),
	CLI_SCRIPT_OPTION(FIELD(spawn.way.script)),
	{ "keep", 0, CLI_FLAG, NULL, "keeps the sandbox, and says its name", FIELD(keep), 0 },
	{ "timeout", 0, CLI_DURATION, "TIME", "of the turn (30m; 0: none)", FIELD(spawn.timeout),
	  0 },
	{ "idle-timeout", 0, CLI_DURATION, "TIME",
	  "ends a turn that is quiet so long (10m; 0: none)", FIELD(spawn.idle_timeout), 0 },
	{ 0 },
};

/* ---- files brought home ---- */

/* *ret_made: how much of path is the first folder that was not there; 0: all were. */
static int make_parents(char *path, size_t *ret_made, struct sba_error *err)
{
	*ret_made = 0;
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		bool made = mkdir(path, 0777) == 0;
		int why = errno;
		*slash = '/';
		if (made && !*ret_made)
			*ret_made = (size_t)(slash - path);
		if (!made && why != EEXIST)
			return cli_fail(err, SBA_EIO, NULL, "make the folders of %s: %s", path,
					strerror(why));
	}
	return 0;
}

/* Takes back what make_parents() made, as far as it is still empty. */
static void unmake_parents(char *path, size_t made)
{
	char *slash;
	while (made && (slash = strrchr(path, '/')) && (size_t)(slash - path) >= made) {
		*slash = '\0';
		if (rmdir(path) < 0)
			return;
	}
}

/* PATH[:DEST] taken apart: absolute inside, and a place here. */
struct get {
	char *from;
	char *to;
};

static void get_fini(struct get *g)
{
	free(g->from);
	free(g->to);
}

static int get_parse(const char *arg, const char *workdir, struct get *ret, struct sba_error *err)
{
	size_t len = strcspn(arg, ":");
	const char *dest = arg[len] ? arg + len + 1 : "";
	struct get g = { 0 };
	if (len == 0)
		return cli_fail(err, SBA_EINVAL, "as in:  --get /workspace/qs.py:./qs.py",
				"--get '%s' names no path", arg);
	bool absolute = arg[0] == '/';
	if (asprintf(&g.from, "%s%s%.*s", absolute ? "" : workdir, absolute ? "" : "/", (int)len,
		     arg) < 0)
		return cli_fail_nomem(err);
	for (size_t n = strlen(g.from); n > 1 && g.from[n - 1] == '/'; n--)
		g.from[n - 1] = '\0';
	const char *base = strrchr(g.from, '/') + 1;
	if (asprintf(&g.to, "%s%s", *dest ? dest : "./", *dest ? "" : base) < 0) {
		free(g.from);
		return cli_fail_nomem(err);
	}
	*ret = g;
	return 0;
}

static void refused(void *user, const char *name, enum sba_refusal why)
{
	CLI_FREE char *visible = sba_visible(name, strlen(name), true);
	cli_note(user, "refused: %s (%s)", visible ? visible : "?", sba_refusal_text(why));
}

static void told_json(json_t *result, const struct get *g, const struct sba_transfer_report *r,
		      const struct sba_error *err)
{
	json_t *files = json_object_get(result, "files");
	json_t *j = json_pack("{s:s, s:s}", "path", g->from, "dest", g->to);
	if (err)
		json_object_set_new(j, "error", json_string(err->text));
	else
		json_object_set_new(j, "bytes", json_integer((json_int_t)r->bytes));
	json_array_append_new(files, j);
}

static void told(struct cli *cli, const struct get *g, const struct sba_transfer_report *r)
{
	char size[32], count[48] = "";
	const char *shown = strncmp(g->to, "./", 2) ? g->to : g->to + 2;
	if (r->files != 1)
		snprintf(count, sizeof(count), "  %llu files", (unsigned long long)r->files);
	cli_note(cli, "%s %s%s  %s", cli_mark(&cli->look, CLI_MARK_GET), shown, count,
		 sba_format_size((int64_t)r->bytes, size, sizeof(size)));
}

static int get_one(struct cli *cli, struct sba_sandbox *s, const char *arg, json_t *result,
		   struct sba_error *err)
{
	struct get g = { 0 };
	int rc = get_parse(arg, sba_sandbox_workdir(s), &g, err);
	if (rc < 0)
		return rc;
	struct sba_transfer_options to = { .replace = true, .refused = refused, .user = cli };
	struct sba_transfer_report report = { 0 };
	size_t made;
	rc = make_parents(g.to, &made, err);
	if (rc == 0)
		rc = cli_settings_timeout(cli, "transfer_timeout",
					  sba_sandbox_download(s, g.from, g.to, &to, &report, err),
					  err);
	const struct cli_moved m = {
		.from = g.from, .to = g.to, .report = &report, .error = rc < 0 ? err : NULL
	};
	cli_record_once(cli, s, "transfer", cli_record_transfer(&m));
	if (result)
		told_json(result, &g, &report, rc < 0 ? err : NULL);
	if (rc == 0)
		told(cli, &g, &report);
	else
		unmake_parents(g.to, made);
	get_fini(&g);
	return rc;
}

/* Each is tried: what is there is not held back by what is not. */
static int get_all(struct cli *cli, struct sba_sandbox *s, const struct cli_list *get,
		   json_t *result)
{
	int status = 0;
	if (result && get->n)
		json_object_set_new(result, "files", json_array());
	for (size_t i = 0; i < get->n && !cli_signals_caught(); i++) {
		struct sba_error err;
		if (get_one(cli, s, get->v[i], result, &err) < 0)
			status = cli_report(cli, &err);
	}
	return status;
}

static int check_gets(const struct cli_list *get, struct sba_error *err)
{
	int rc = 0;
	for (size_t i = 0; rc == 0 && i < get->n; i++) {
		struct get g = { 0 };
		rc = get_parse(get->v[i], "/workspace", &g, err);
		get_fini(&g);
	}
	return rc;
}

/* ---- work brought home ---- */

/* A turn whose work is to come home, and how far that came. */
struct work {
	bool done;    /* it ended well */
	bool home;    /* what changed is here: written as a patch, or applied */
	bool changed; /* something did */
};

static int patch_home(struct cli *cli, const struct run_options *o, struct sba_changes *c,
		      struct work *w, struct sba_error *err)
{
	int rc = o->patch && w->changed ? cli_changes_patch(cli, c, o->patch, err) : 0;
	w->home = w->home || (rc == 0 && o->patch);
	if (rc == 0 && o->patch && w->changed && strcmp(o->patch, "-") != 0)
		cli_note(cli, "%s %s", cli_mark(&cli->look, CLI_MARK_GET), o->patch);
	return rc;
}

/* Only what ended well is applied: half a change is no change that was asked for. */
static int apply_home(struct cli *cli, const struct run_options *o, struct sba_changes *c,
		      json_t *result, struct work *w, struct sba_error *err)
{
	const char *path;
	json_t *j = NULL;
	if (!o->apply || !w->done)
		return 0;
	CLI_FREE char *dir = cli_workspace_dir(o->spawn.workspace, &path);
	int rc = dir ? cli_changes_apply(cli, c, dir, false, &j, err) : cli_fail_nomem(err);
	w->home = w->home || rc == 0;
	if (result && j)
		json_object_set(result, "apply", j);
	json_decref(j);
	return rc;
}

/* A branch of its own harms nobody: also of what did not end well. */
static int commits_home(struct cli *cli, const struct run_options *o, struct sba_sandbox *s,
			json_t *result, struct work *w, struct sba_error *err)
{
	const char *path;
	json_t *j = NULL;
	struct sba_commits_report r;
	if (!o->commits)
		return 0;
	CLI_FREE char *dir = cli_workspace_dir(o->spawn.workspace, &path);
	const struct cli_commits c = { .dir = dir, .branch = o->branch };
	int rc = dir ? cli_changes_commits(cli, s, &c, &r, &j, err) : cli_fail_nomem(err);
	w->home = w->home || (rc == 0 && r.uncommitted == 0);
	if (result && j)
		json_object_set(result, "commits", j);
	json_decref(j);
	return rc;
}

/* After a signal every wait of ours ends at once: another handle looks. What it cannot
 * see is not thrown away. */
static bool changed_by_then(struct cli *cli, struct sba_sandbox *s)
{
	enum { LOOK_MS = 10 * 1000 };
	const struct sba_engine_options eo = {
		.host = cli->host, .timeouts = { .session_ms = LOOK_MS, .transfer_ms = LOOK_MS }
	};
	struct sba_engine *e = NULL;
	struct sba_sandbox *again = NULL;
	struct sba_changes *c = NULL;
	int rc = sba_engine_open(&eo, &e, NULL);
	if (rc == 0)
		rc = sba_sandbox_open(e, cli->prefix, sba_sandbox_info(s)->name, &again, NULL);
	if (rc == 0)
		rc = sba_sandbox_changes(again, NULL, &c, NULL);
	bool changed = rc < 0 ? rc != SBA_ENOTFOUND && rc != SBA_EBROKEN : sba_changes_count(c) > 0;
	sba_changes_free(c);
	sba_sandbox_close(again);
	sba_engine_close(e);
	return changed;
}

/* The exit status of bringing it home. */
static int bring_home(struct cli *cli, const struct run_options *o, struct sba_sandbox *s,
		      json_t *result, struct work *w)
{
	struct sba_changes *c = NULL;
	struct sba_error err;
	bool here = cli_local_wanted(&o->spawn);
	if (!(o->apply || o->patch || o->spawn.workspace) || (here && !o->patch))
		return 0;
	if (cli_signals_caught()) {
		w->changed = !here && o->spawn.workspace &&
			     (cli_remote_is(o->spawn.backend) || changed_by_then(cli, s));
		return 0;
	}
	int rc = sba_sandbox_changes(s, NULL, &c, &err);
	w->changed = rc < 0 || sba_changes_count(c) > 0;
	if (rc == 0)
		rc = patch_home(cli, o, c, w, &err);
	if (rc == 0)
		rc = apply_home(cli, o, c, result, w, &err);
	if (rc == 0)
		rc = commits_home(cli, o, s, result, w, &err);
	if (rc == 0 && w->done && w->changed && !w->home && !o->keep && o->get.n == 0)
		cli_note(cli,
			 "what %s goes with the sandbox: --apply or --patch FILE brings it home",
			 o->commits ? "no commit has" : "changed");
	sba_changes_free(c);
	/* Where the sandbox is gone there is nothing that could be kept, and what was done here
	 * stays. At a service it may be that nothing could be looked at. */
	if (here || rc == SBA_EBROKEN || (rc == SBA_ENOTFOUND && !cli_remote_is(o->spawn.backend)))
		w->changed = false;
	return rc < 0 && (o->apply || o->patch || o->commits) && !cli_signals_caught()
		       ? cli_report(cli, &err)
		       : 0;
}

static bool keeps(const struct run_options *o, const struct work *w, int status)
{
	if (o->keep)
		return true;
	if (status == 0 && !cli_signals_caught())
		return false;
	return o->keep_on_failure || (o->spawn.workspace && w->changed && !w->home);
}

/* ---- the command ---- */

/* The turn, then its files; a failed turn's files are offered too, but its
 * verdict decides. */
static int turn_and_files(struct cli *cli, const struct run_options *o, struct sba_sandbox *s,
			  const char *prompt, size_t len, struct work *w)
{
	struct cli_turn turn = {
		.prompt = prompt,
		.prompt_len = len,
		.way = &o->spawn.way,
		.one_turn = !o->keep,
		.timeout = o->spawn.timeout,
		.idle_timeout = o->spawn.idle_timeout,
		.hold_result = true,
	};
	int status = prompt ? cli_turn_run(cli, s, &turn)
			    : cli_screen_run(cli, s, &o->spawn.way, o->keep ? 0 : CLI_SCREEN_ONCE);
	w->done = status == 0;
	int home = bring_home(cli, o, s, turn.result, w);
	int files = get_all(cli, s, &o->get, turn.result);
	status = status ? status : home ? home : files;
	if (turn.result && keeps(o, w, status))
		json_object_set_new(turn.result, "kept", json_string(sba_sandbox_info(s)->name));
	if (turn.result)
		cli_json_line(turn.result);
	return status;
}

/* A failure takes nothing with it that could be of use. */
static void tell_kept(struct cli *cli, const struct run_options *o, const struct sba_sandbox *s)
{
	const char *path, *name = sba_sandbox_info(s)->name;
	if (o->keep) {
		cli_note(cli, "kept: sandbox-agent chat %s \"go on\"", name);
		return;
	}
	CLI_FREE char *dir =
		o->spawn.workspace ? cli_workspace_dir(o->spawn.workspace, &path) : NULL;
	fprintf(stderr, "kept: what it has done is in sandbox %s\n", name);
	/* What it was before is known to this process alone. */
	if (cli_remote_is(o->spawn.backend))
		fprintf(stderr,
			"  look:  sandbox-agent exec %s -- ls -la\n"
			"  take:  sandbox-agent cp %s:%s DIR\n",
			name, name, sba_sandbox_workdir(s));
	else
		fprintf(stderr,
			"  look:  sandbox-agent diff %s\n  take:  sandbox-agent apply %s %s\n",
			name, name, dir ? dir : "DIR");
	fprintf(stderr, "  end:   sandbox-agent rm %s\n", name);
}

static int end(struct cli *cli, const struct run_options *o, struct sba_sandbox *s,
	       const struct work *w, int status)
{
	char kept[256] = "nothing is left running";
	int removed = 0;
	if (keeps(o, w, status)) {
		const char *name = sba_sandbox_info(s)->name;
		snprintf(kept, sizeof(kept), "sandbox %s is kept", name);
		if (!cli->json && !(cli->quiet && o->keep))
			tell_kept(cli, o, s);
	} else {
		removed = cli_remove(cli, s);
	}
	sba_sandbox_close(s);
	if (removed)
		return status ? status : removed;
	return cli_signals_exit(cli, status, kept);
}

static int end_run(struct cli *cli, const struct run_options *o, struct sba_sandbox *s,
		   const char *prompt, size_t len, struct work *w)
{
	int status = turn_and_files(cli, o, s, prompt, len, w);
	return end(cli, o, s, w, status);
}

static int check_home(const struct run_options *o, struct sba_error *err)
{
	if (o->apply && !o->spawn.workspace)
		return cli_fail(err, SBA_EINVAL, "as in:  -w . --apply",
				"--apply: there is no --workspace to apply to");
	if (o->commits && !o->spawn.workspace)
		return cli_fail(err, SBA_EINVAL, "as in:  -w . --commits",
				"--commits: there is no --workspace to take them to");
	if (o->branch && !o->commits)
		return cli_fail(err, SBA_EINVAL, NULL, "--branch is for --commits");
	return 0;
}

static int run(struct cli *cli, const void *options, const struct cli_args *args)
{
	struct run_options o = *(const struct run_options *)options;
	CLI_FREE char *prompt = NULL;
	size_t len = 0;
	struct sba_sandbox *s = NULL;
	struct sba_error err;
	struct work work = { 0 };
	/* What may have to be kept does not end soon. */
	o.spawn.brief = !o.keep && !o.keep_on_failure && !o.spawn.workspace;
	int rc = cli_spawn_program(&o.spawn, args, 2, "run command PROMPT", &err);
	if (rc == 0 && !cli_screen_wanted(cli, args->v[1]))
		rc = cli_turn_prompt(args->v[1], cli_command_run.example, &prompt, &len, &err);
	if (rc == 0)
		rc = check_gets(&o.get, &err);
	if (rc == 0)
		rc = check_home(&o, &err);
	if (rc == 0)
		rc = cli_way_settle(cli, &o.spawn.way, args, args->v[0], NULL, &err);
	if (rc == 0)
		rc = cli_way_read(cli, &o.spawn.way, args->v[0], &err);
	if (rc == 0)
		rc = cli_spawn_anywhere(cli, &o.spawn, &o.local, args, args->v[0], &s, &err);
	if (rc == 0)
		rc = end_run(cli, &o, s, prompt, len, &work);
	else if (cli_signals_caught())
		rc = cli_signals_exit(cli, 1, "nothing is left running");
	else
		rc = cli_report(cli, &err);
	cli_way_fini(&o.spawn.way);
	return rc;
}

const struct cli_command cli_command_run = {
	.name = "run",
	.args = "AGENT [PROMPT] [-- PROGRAM ARG...]",
	.help = "a sandbox, one turn, the work brought home",
	.more = "A PROMPT of - is read from stdin; one that begins with - goes after --.\n"
		"Without a PROMPT, on a terminal: the CLI's own screen, inside the sandbox.\n"
		"The agent `command` is any PROGRAM of the image: it takes the prompt on stdin,\n"
		"and what it prints is the answer.\n"
		"Where it fails, runs out of time or is interrupted, and its --workspace has "
		"changed,\n"
		"the sandbox is kept, and it is said how to look at it.\n"
		"With --backend local it works on the folder of -w itself, as a process of this "
		"host:\n"
		"for code that you trust. It writes there and nowhere else, where the kernel has\n"
		"Landlock; keys of providers and what looks like a secret are not in its "
		"environment.\n"
		"With --backend opensandbox or e2b the sandbox is one of that service.",
	.example =
		"sandbox-agent run claude --offline \"write hello.py and run it\" --get hello.py",
	.tables = { run_options, cli_way_options, cli_spawn_options, cli_lodging_options },
	.options_size = sizeof(struct run_options),
	.min_args = 1,
	.max_args = -1,
	.run = run,
};
