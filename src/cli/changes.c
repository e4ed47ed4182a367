/* SPDX-License-Identifier: MIT */
/* `diff`, `patch`, `apply`: what changed in a workspace, shown and taken home. */
#include "cli/changes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the list ---- */

static char letter(const struct sba_change *c)
{
	switch (c->kind) {
	case SBA_CHANGE_CREATED:
		return 'A';
	case SBA_CHANGE_DELETED:
		return 'D';
	case SBA_CHANGE_RENAMED:
		return 'R';
	case SBA_CHANGE_MODIFIED:
	case SBA_CHANGE_MODE:
		break;
	}
	return (c->old_mode ^ c->mode) & S_IFMT ? 'T' : 'M';
}

/* What is to be said of it at the right. */
static void facts(const struct sba_change *c, char *ret, size_t size)
{
	size_t len = 0;
	ret[0] = '\0';
	if (c->kind == SBA_CHANGE_MODE)
		snprintf(ret, size, "mode %04o -> %04o", c->old_mode & 07777, c->mode & 07777);
	else if (c->binary || c->without_content)
		snprintf(ret, size, "%s %llu -> %llu bytes", c->binary ? "Bin" : "Big",
			 (unsigned long long)c->old_size, (unsigned long long)c->size);
	if (c->added)
		len = (size_t)snprintf(ret, size, "+%llu", (unsigned long long)c->added);
	if (c->removed)
		snprintf(ret + len, size - len, "%s-%llu", len ? " " : "",
			 (unsigned long long)c->removed);
}

static char *name_of(const struct cli *cli, const struct sba_change *c)
{
	CLI_FREE char *path = cli_line(&cli->look, c->path, 0);
	CLI_FREE char *old = c->old_path ? cli_line(&cli->look, c->old_path, 0) : NULL;
	char *both = NULL;
	if (asprintf(&both, "%s%s%s", old ? old : "", old ? " -> " : "", path ? path : "") < 0)
		return NULL;
	return both;
}

static int widest(const struct cli *cli, const struct sba_changes *c)
{
	enum { WIDEST = 60 };
	int width = 0;
	for (size_t i = 0; i < sba_changes_count(c); i++) {
		CLI_FREE char *name = name_of(cli, sba_changes_at(c, i));
		int w = name ? cli_width(name) : 0;
		if (w > width && w <= WIDEST)
			width = w;
	}
	return width;
}

static void summary(struct cli *cli, const struct sba_changes *c)
{
	uint64_t added = 0, removed = 0;
	size_t n = sba_changes_count(c);
	for (size_t i = 0; i < n; i++) {
		added += sba_changes_at(c, i)->added;
		removed += sba_changes_at(c, i)->removed;
	}
	if (n == 0)
		cli_note(cli, "nothing has changed");
	else
		cli_note(cli, "%zu file%s changed, %llu line%s added, %llu removed", n,
			 n == 1 ? "" : "s", (unsigned long long)added, added == 1 ? "" : "s",
			 (unsigned long long)removed);
	if (sba_changes_left_out(c))
		cli_note(cli, "%zu could not be looked at", sba_changes_left_out(c));
}

static void show_list(struct cli *cli, const struct sba_changes *c)
{
	int width = widest(cli, c);
	for (size_t i = 0; i < sba_changes_count(c); i++) {
		const struct sba_change *one = sba_changes_at(c, i);
		char right[96];
		CLI_FREE char *name = name_of(cli, one);
		if (cli->quiet) {
			printf("%s\n", one->path);
			continue;
		}
		facts(one, right, sizeof(right));
		int pad = width - cli_width(name ? name : "");
		printf(" %c %s%*s%s%s\n", letter(one), name ? name : "",
		       *right && pad > 0 ? pad : 0, "", *right ? " " : "", right);
	}
	summary(cli, c);
}

json_t *cli_json_change(const struct sba_change *c)
{
	char mode[16];
	json_t *j = json_pack("{s:s}", "change", sba_change_kind_name(c->kind));
	cli_json_path(j, "path", "path_base64", c->path);
	if (c->old_path)
		cli_json_path(j, "old_path", "old_path_base64", c->old_path);
	if (c->old_mode) {
		snprintf(mode, sizeof(mode), "%06o", c->old_mode);
		json_object_set_new(j, "old_mode", json_string(mode));
		json_object_set_new(j, "old_size", json_integer((json_int_t)c->old_size));
	}
	if (c->mode) {
		snprintf(mode, sizeof(mode), "%06o", c->mode);
		json_object_set_new(j, "mode", json_string(mode));
		json_object_set_new(j, "size", json_integer((json_int_t)c->size));
	}
	json_object_set_new(j, "added", json_integer((json_int_t)c->added));
	json_object_set_new(j, "removed", json_integer((json_int_t)c->removed));
	json_object_set_new(j, "binary", json_boolean(c->binary));
	if (c->without_content)
		json_object_set_new(j, "without_content", json_string(c->without_content));
	return j;
}

static void show_json(const struct sba_changes *c)
{
	json_t *list = json_array();
	for (size_t i = 0; i < sba_changes_count(c); i++)
		json_array_append_new(list, cli_json_change(sba_changes_at(c, i)));
	json_t *j = json_pack("{s:I, s:o}", "left_out", (json_int_t)sba_changes_left_out(c),
			      "changes", list);
	cli_json_path(j, "folder", "folder_base64", sba_changes_folder(c));
	cli_json_first(j);
}

/* ---- a patch ---- */

static int write_fd(void *user, const void *data, size_t len, struct sba_error *err)
{
	if (cli_write(*(const int *)user, data, len))
		return 0;
	return cli_signals_caught() ? cli_fail(err, SBA_ECANCELED, NULL, "cancelled")
				    : cli_fail(err, SBA_EIO, NULL, "write: %s", strerror(errno));
}

static void tell_left_out(struct cli *cli, size_t n)
{
	if (n)
		cli_note(cli,
			 "%zu file%s not in the patch: too large, or what %s before is not "
			 "kept; `apply` takes %s along",
			 n, n == 1 ? " is" : "s are", n == 1 ? "it was" : "they were",
			 n == 1 ? "it" : "them");
}

/* Under a temporary name until it is whole. */
static int patch_to_file(struct sba_changes *c, const char *path, size_t *ret_left_out,
			 struct sba_error *err)
{
	CLI_FREE char *tmp = NULL;
	if (asprintf(&tmp, "%s.%d.tmp", path, (int)getpid()) < 0)
		return cli_fail_nomem(err);
	int fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0)
		return cli_fail(err, SBA_EIO, NULL, "write '%s': %s", path, strerror(errno));
	int rc = sba_changes_patch(c, write_fd, &fd, ret_left_out, err);
	close(fd);
	if (rc == 0 && rename(tmp, path) < 0)
		rc = cli_fail(err, SBA_EIO, NULL, "write '%s': %s", path, strerror(errno));
	if (rc < 0)
		unlink(tmp);
	return rc;
}

int cli_changes_patch(struct cli *cli, struct sba_changes *c, const char *path,
		      struct sba_error *err)
{
	size_t left_out = 0;
	int out = STDOUT_FILENO;
	fflush(stdout);
	int rc = path && strcmp(path, "-") != 0
			 ? patch_to_file(c, path, &left_out, err)
			 : sba_changes_patch(c, write_fd, &out, &left_out, err);
	if (rc == 0)
		tell_left_out(cli, left_out);
	return rc;
}

/* ---- taking it home ---- */

struct conflicts {
	struct cli *cli;
	json_t *list;
};

static void on_conflict(void *user, const char *path, const char *why)
{
	struct conflicts *c = user;
	CLI_FREE char *name = cli_line(&c->cli->look, path, 0);
	json_t *j = json_pack("{s:s}", "why", why);
	cli_json_path(j, "path", "path_base64", path);
	json_array_append_new(c->list, j);
	cli_note(c->cli, "conflict: %s: %s", name ? name : "", why);
}

static void tell_applied(struct cli *cli, const struct sba_apply_report *r, const char *dir,
			 bool check)
{
	char already[48] = "";
	if (r->already)
		snprintf(already, sizeof(already), ", %llu there already",
			 (unsigned long long)r->already);
	cli_note(cli, "%s %s: %llu written, %llu removed, %llu renamed, %llu mode%s%s",
		 check ? "would apply to" : "applied to", dir, (unsigned long long)r->written,
		 (unsigned long long)r->removed, (unsigned long long)r->renamed,
		 (unsigned long long)r->modes, r->modes == 1 ? "" : "s", already);
}

int cli_changes_apply(struct cli *cli, struct sba_changes *c, const char *dir, bool check,
		      json_t **ret_json, struct sba_error *err)
{
	struct conflicts conflicts = { cli, json_array() };
	const struct sba_apply_options o = { .check = check,
					     .conflict = on_conflict,
					     .user = &conflicts };
	struct sba_apply_report r = { 0 };
	int rc = sba_changes_apply(c, dir, &o, &r, err);
	if (rc == 0)
		tell_applied(cli, &r, dir, check);
	*ret_json = json_pack("{s:s, s:b, s:I, s:I, s:I, s:I, s:I, s:o}", "dir", dir, "applied",
			      rc == 0 && !check, "written", (json_int_t)r.written, "removed",
			      (json_int_t)r.removed, "renamed", (json_int_t)r.renamed, "modes",
			      (json_int_t)r.modes, "already", (json_int_t)r.already, "conflicts",
			      conflicts.list);
	return rc;
}

/* ---- commits ---- */

static void tell_commits(struct cli *cli, const struct cli_commits *o,
			 const struct sba_commits_report *r)
{
	char count[32];
	const char *s = r->commits == 1 ? "" : "s";
	if (r->commits)
		cli_note(cli, "%s %s commit%s into branch %s%s%s%s",
			 o->check ? "would take" : "took", cli_thousands(r->commits, count), s,
			 r->branch, *r->old ? "" : " (new)", o->check ? "" : ":  git merge ",
			 o->check ? "" : r->branch);
	else if (*r->branch)
		cli_note(cli, "no new commits: what is inside is in %s here", r->branch);
	else
		cli_note(cli, "no commit was made inside");
	if (r->uncommitted)
		cli_note(cli, "%llu uncommitted file%s inside: `apply` without --commits takes %s",
			 (unsigned long long)r->uncommitted, r->uncommitted == 1 ? "" : "s",
			 r->uncommitted == 1 ? "it" : "them");
}

int cli_changes_commits(struct cli *cli, struct sba_sandbox *s, const struct cli_commits *o,
			struct sba_commits_report *ret, json_t **ret_json, struct sba_error *err)
{
	const struct sba_commits_options co = { .branch = o->branch,
						.force = o->force,
						.check = o->check };
	struct sba_commits_report r = { 0 };
	int rc = cli_settings_timeout(cli, "transfer_timeout",
				      sba_sandbox_fetch_commits(s, o->dir, &co, &r, err), err);
	if (rc < 0)
		return rc;
	tell_commits(cli, o, &r);
	*ret = r;
	*ret_json = json_pack("{s:s, s:I, s:I, s:b}", "dir", o->dir, "commits",
			      (json_int_t)r.commits, "uncommitted", (json_int_t)r.uncommitted,
			      "fetched", r.commits > 0 && !o->check);
	if (*r.branch)
		json_object_set_new(*ret_json, "branch", json_string(r.branch));
	if (*r.commit)
		json_object_set_new(*ret_json, "commit", json_string(r.commit));
	if (*r.old)
		json_object_set_new(*ret_json, "old", json_string(r.old));
	return 0;
}

/* ---- the commands ---- */

struct changes_options {
	int64_t turn;
	const char *output, *branch;
	bool check, commits, force;
};

#define FIELD(name) offsetof(struct changes_options, name)
#define TURN_OPTION                                                                                \
	{                                                                                          \
		"turn", 0, CLI_INT, "N", "since turn N began (default: since up)", FIELD(turn), 1  \
	}

static const struct cli_option diff_options[] = { TURN_OPTION, { 0 } };

static const struct cli_option patch_options[] = {
	TURN_OPTION,
	{ "output", 'o', CLI_STRING, "FILE", "where it goes (stdout)", FIELD(output), 0 },
	{ 0 },
};

static const struct cli_option apply_options[] = {
	TURN_OPTION,
	{ "check", 0, CLI_FLAG, NULL, "only says whether it would do", FIELD(check), 0 },
	{ "commits", 0, CLI_FLAG, NULL, "takes the commits made inside into a branch instead",
	  FIELD(commits), 0 },
	{ "branch", 0, CLI_STRING, "BRANCH", "with --commits: which one (sandbox-agent/NAME)",
	  FIELD(branch), 0 },
	{ "force", 0, CLI_FLAG, NULL, "with --commits: in place of what the branch has",
	  FIELD(force), 0 },
	{ 0 },
};

static int open_changes(struct cli *cli, const char *name, const struct changes_options *o,
			struct sba_sandbox **ret_s, struct sba_changes **ret, struct sba_error *err)
{
	const struct sba_changes_options co = { .turn = o->turn };
	int rc = cli_sandbox(cli, name, ret_s, err);
	if (rc == 0)
		rc = cli_settings_timeout(cli, "transfer_timeout",
					  sba_sandbox_changes(*ret_s, &co, ret, err), err);
	return rc;
}

static int end(struct cli *cli, struct sba_sandbox *s, struct sba_changes *c, int rc,
	       const struct sba_error *err)
{
	sba_changes_free(c);
	sba_sandbox_close(s);
	if (rc < 0 && cli_signals_caught())
		return cli_signals_exit(cli, 1, "nothing was changed");
	return rc < 0 ? cli_report(cli, err) : 0;
}

static int run_diff(struct cli *cli, const void *options, const struct cli_args *args)
{
	struct sba_sandbox *s = NULL;
	struct sba_changes *c = NULL;
	struct sba_error err;
	int rc = open_changes(cli, args->v[0], options, &s, &c, &err);
	if (rc == 0 && cli->json)
		show_json(c);
	else if (rc == 0)
		show_list(cli, c);
	return end(cli, s, c, rc, &err);
}

static int run_patch(struct cli *cli, const void *options, const struct cli_args *args)
{
	const struct changes_options *o = options;
	struct sba_sandbox *s = NULL;
	struct sba_changes *c = NULL;
	struct sba_error err;
	int rc = open_changes(cli, args->v[0], o, &s, &c, &err);
	if (rc == 0)
		rc = cli_changes_patch(cli, c, o->output, &err);
	return end(cli, s, c, rc, &err);
}

static int check_apply(const struct changes_options *o, struct sba_error *err)
{
	if (o->commits && o->turn)
		return cli_fail(err, SBA_EINVAL, NULL,
				"--commits takes all that are new: no --turn");
	if (!o->commits && (o->branch || o->force))
		return cli_fail(err, SBA_EINVAL, "as in:  apply NAME --commits --branch work",
				"--%s is for --commits", o->branch ? "branch" : "force");
	return 0;
}

static int take_commits(struct cli *cli, const struct changes_options *o, const char *name,
			const char *dir)
{
	const struct cli_commits c = {
		.dir = dir, .branch = o->branch, .force = o->force, .check = o->check
	};
	struct sba_commits_report r;
	struct sba_sandbox *s = NULL;
	json_t *j = NULL;
	struct sba_error err;
	int rc = cli_sandbox(cli, name, &s, &err);
	if (rc == 0)
		rc = cli_changes_commits(cli, s, &c, &r, &j, &err);
	if (cli->json && j)
		cli_json_first(j);
	else
		json_decref(j);
	return end(cli, s, NULL, rc, &err);
}

static void hint_merge(const char *name, int64_t turn, struct sba_error *err)
{
	char since[40] = "";
	if (turn)
		snprintf(since, sizeof(since), " --turn %lld", (long long)turn);
	if (err->code == SBA_ECONFLICT && !*err->hint)
		snprintf(err->hint, sizeof(err->hint),
			 "to merge them, commit what is here, and:  sandbox-agent patch %s%s | git "
			 "apply --3way",
			 name, since);
}

static int run_apply(struct cli *cli, const void *options, const struct cli_args *args)
{
	const struct changes_options *o = options;
	const char *dir = args->n > 1 ? args->v[1] : ".";
	struct sba_sandbox *s = NULL;
	struct sba_changes *c = NULL;
	json_t *j = NULL;
	struct sba_error err;
	int rc = check_apply(o, &err);
	if (rc == 0 && o->commits)
		return take_commits(cli, o, args->v[0], dir);
	if (rc == 0)
		rc = open_changes(cli, args->v[0], o, &s, &c, &err);
	if (rc == 0)
		rc = cli_changes_apply(cli, c, dir, o->check, &j, &err);
	if (rc < 0)
		hint_merge(args->v[0], o->turn, &err);
	if (cli->json && j)
		cli_json_first(j);
	else
		json_decref(j);
	return end(cli, s, c, rc, &err);
}

const struct cli_command cli_command_diff = {
	.name = "diff",
	.args = "NAME",
	.help = "what changed in NAME's workspace: names and counts",
	.more = "Since it was copied in, or since the first turn. M modified, A added, D deleted,\n"
		"R renamed, T of another type. What .gitignore names is passed over, and .git,\n"
		"node_modules, .venv and the like. The text itself: patch.",
	.example = "sandbox-agent diff brave-otter",
	.tables = { diff_options },
	.options_size = sizeof(struct changes_options),
	.min_args = 1,
	.max_args = 1,
	.run = run_diff,
};

const struct cli_command cli_command_patch = {
	.name = "patch",
	.args = "NAME",
	.help = "the same as a patch that `git apply` takes",
	.more = "Binary files are in it. Paths begin at the workspace.",
	.example = "sandbox-agent patch brave-otter | git apply --stat",
	.tables = { patch_options },
	.options_size = sizeof(struct changes_options),
	.min_args = 1,
	.max_args = 1,
	.run = run_patch,
};

const struct cli_command cli_command_apply = {
	.name = "apply",
	.args = "NAME [DIR]",
	.help = "the same done to a folder here (default: this one)",
	.more = "All of it or nothing: where a file here is not what it was when the workspace "
		"was\n"
		"copied in, that is told, and nothing is changed. What is here already is fine.\n"
		"With --commits: the commits that were made inside, into a branch of the "
		"repository\n"
		"that DIR is in, and nothing else is touched.",
	.example = "sandbox-agent apply brave-otter .",
	.tables = { apply_options },
	.options_size = sizeof(struct changes_options),
	.min_args = 1,
	.max_args = 2,
	.run = run_apply,
};
