/* SPDX-License-Identifier: MIT */
/*
 * Commits that were made in a workspace, taken home: packed by the git inside, as the
 * sandbox's user, and taken into a branch by the git here (bundle.h).
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sandbox/bundle.h"
#include "sandbox/kept.h"

enum { SAID_MAX = 4 * SBA_KIB, STATUS_MAX = 4 * SBA_MIB };

#define BRANCH_FOLDER "sandbox-agent/"

struct taking {
	struct sba_sandbox *sandbox;
	char folder[SBA_INSIDE_PATH_MAX];
	struct sba_home home;
	uint64_t max;
	struct sba_buf haves;
	struct sba_commits_report report;
};

/* ---- git inside ---- */

static const char *const git_env[] = { "LC_ALL=C", "GIT_OPTIONAL_LOCKS=0", NULL };

static int64_t time_left(const struct taking *t)
{
	int64_t left = sba_until_left(t->home.until);
	return left > 0 ? left : 1;
}

static int no_git(const struct taking *t, struct sba_error *err)
{
	return sba_hint(err,
			sba_fail(err, SBA_EREFUSED,
				 "there is no git in sandbox '%s', which would pack its commits",
				 t->sandbox->info.name),
			"take its files:  sandbox-agent apply %s", t->sandbox->info.name);
}

/* Its exit status; how else it may have ended is a failure. */
static int status_of(const struct taking *t, const struct sba_exit *end, struct sba_error *err)
{
	if (end->kind == SBA_EXITED)
		return end->number;
	if (end->kind == SBA_NOT_FOUND)
		return no_git(t, err);
	if (end->kind == SBA_TIMED_OUT)
		return sba_fail(err, SBA_ETIMEOUT, "git inside did not end in time");
	if (end->kind == SBA_WAS_CANCELED)
		return sba_fail(err, SBA_ECANCELED, "cancelled");
	return sba_fail(err, SBA_EREFUSED, "git inside did not run (%d)", sba_exit_status(end));
}

/* The exit status of a git inside, and what it prints; ret is empty on failure. */
static int ask(const struct taking *t, const char *const *argv, const struct sba_buf *input,
	       struct sba_run_result *ret, struct sba_error *err)
{
	const struct sba_run_options o = {
		.argv = argv,
		.env = git_env,
		.workdir = t->folder,
		.input = input ? input->data : NULL,
		.input_len = input ? input->len : 0,
		.timeout_ms = time_left(t),
		.max_output = STATUS_MAX,
	};
	int rc = sba_sandbox_run(t->sandbox, &o, ret, err);
	if (rc == 0)
		rc = status_of(t, &ret->exit, err);
	if (rc < 0)
		sba_run_result_fini(ret);
	return rc;
}

static int git_inside_says(const struct taking *t, const char *said, size_t len, const char *what,
			   struct sba_error *err)
{
	SBA_BUF struct sba_buf line = SBA_BUF_INIT(SAID_MAX);
	sba_buf_put_visible(&line, said, len < 300 ? len : 300, true);
	return sba_fail(err, SBA_EREFUSED, "git in %s of sandbox '%s' does not %s: %s", t->folder,
			t->sandbox->info.name, what, line.data ? line.data : "it says nothing");
}

/* What HEAD is there; "": no commit was ever made. */
static int ask_tip(const struct taking *t, char ret[SBA_OBJECT_NAME], struct sba_error *err)
{
	static const char *const is_repository[] = { "git", "rev-parse", "--git-dir", NULL };
	static const char *const tip[] = { "git",     "rev-parse",     "--verify",
					   "--quiet", "HEAD^{commit}", NULL };
	struct sba_run_result r = { 0 };
	int rc = ask(t, is_repository, NULL, &r, err);
	if (rc > 0)
		rc = sba_hint(err,
			      sba_fail(err, SBA_EREFUSED,
				       "%s in sandbox '%s' is no git repository: there are no "
				       "commits to take",
				       t->folder, t->sandbox->info.name),
			      "take its files:  sandbox-agent apply %s", t->sandbox->info.name);
	sba_run_result_fini(&r);
	if (rc == 0)
		rc = ask(t, tip, NULL, &r, err);
	ret[0] = '\0';
	size_t len = rc == 0 ? strcspn(r.out, "\n") : 0;
	if (rc == 0 && !sba_object_name_ok(r.out, len))
		rc = git_inside_says(t, r.out, r.out_len, "say what HEAD is", err);
	else if (rc == 0)
		snprintf(ret, SBA_OBJECT_NAME, "%.*s", (int)len, r.out);
	sba_run_result_fini(&r);
	return rc < 0 ? rc : 0;
}

/* Files that no commit has as they are. Where git does not say, none are told. */
static void count_uncommitted(struct taking *t)
{
	static const char *const argv[] = { "git",          "status", "--porcelain",
					    "--no-renames", "-z",     NULL };
	struct sba_run_result r = { 0 };
	if (ask(t, argv, NULL, &r, NULL) == 0) {
		for (size_t i = 0; i < r.out_len; i++)
			t->report.uncommitted += r.out[i] == '\0';
	}
	sba_run_result_fini(&r);
}

/* How many there are that are not here, as the git inside says. */
static int count_commits(struct taking *t, struct sba_error *err)
{
	static const char *const argv[] = { "git",     "rev-list", "--count", "--ignore-missing",
					    "--stdin", "HEAD",     NULL };
	struct sba_run_result r = { 0 };
	int64_t n = 0;
	int rc = ask(t, argv, &t->haves, &r, err);
	if (rc > 0)
		rc = git_inside_says(t, r.err, r.err_len, "count its commits", err);
	else if (rc == 0) {
		r.out[strcspn(r.out, "\n")] = '\0';
		if (sba_parse_int(r.out, 0, INT64_MAX, &n) < 0)
			rc = git_inside_says(t, r.out, r.out_len, "count its commits", err);
	}
	t->report.commits = (uint64_t)n;
	sba_run_result_fini(&r);
	return rc;
}

/* ---- the bundle ---- */

struct sink {
	int fd;
	uint64_t left;
	struct sba_buf said;
};

static int take_output(void *user, enum sba_output which, const char *data, size_t len,
		       struct sba_error *err)
{
	struct sink *k = user;
	if (which == SBA_STDERR) {
		size_t room = SAID_MAX / 2 - k->said.len;
		sba_buf_put(&k->said, data, len < room ? len : room);
		return 0;
	}
	if (len > k->left)
		return sba_fail(err, SBA_ELIMIT, "the commits are larger than is taken");
	k->left -= len;
	return sba_write_all(k->fd, data, len, err);
}

static int receive(const struct taking *t, struct sink *k, struct sba_error *err)
{
	static const char *const argv[] = { "git",     "bundle", "create", "-", "--ignore-missing",
					    "--stdin", "HEAD",   NULL };
	const struct sba_exec_options o = { .argv = argv,
					    .env = git_env,
					    .workdir = t->folder,
					    .timeout_ms = time_left(t),
					    .has_stdin = true };
	struct sba_process *p = NULL;
	struct sba_exit end;
	int rc = sba_sandbox_exec(t->sandbox, &o, &p, err);
	if (rc == 0)
		rc = sba_process_converse(p, t->haves.data ? t->haves.data : "", t->haves.len,
					  take_output, k, err);
	if (rc == 0)
		rc = sba_process_wait(p, -1, &end, err);
	sba_process_free(p);
	if (rc == 0)
		rc = status_of(t, &end, err);
	if (rc > 0)
		rc = git_inside_says(t, k->said.data ? k->said.data : "", k->said.len,
				     "pack its commits", err);
	return rc;
}

static int take_bundle(struct taking *t, bool force, struct sba_error *err)
{
	struct sink k = { -1, t->max, SBA_BUF_INIT(SAID_MAX) };
	struct sba_bundle_head head = { .tip = "" };
	int rc = sba_open_unnamed(&k.fd, err);
	if (rc == 0)
		rc = receive(t, &k, err);
	if (rc == 0)
		rc = sba_home_take(&t->home, k.fd, t->max, &head, &t->report.commits, err);
	if (rc == 0)
		rc = sba_home_move(&t->home, head.tip, force, err);
	if (rc == 0)
		memcpy(t->report.commit, head.tip, sizeof(head.tip));
	sba_cleanup_close(&k.fd);
	sba_buf_fini(&k.said);
	return rc;
}

/* ---- all of it ---- */

/* What is kept of the workspace says where it is. */
static int find_folder(struct taking *t, struct sba_error *err)
{
	struct sba_kept k = { 0 };
	bool guest;
	int rc = sba_kept_find(t->sandbox, &k, &guest, err);
	if (rc == 0)
		snprintf(t->folder, sizeof(t->folder), "%s", k.folder);
	sba_kept_fini(&k);
	return rc;
}

/* 1: there is nothing that is not here. */
static int look_for_news(struct taking *t, struct sba_error *err)
{
	char tip[SBA_OBJECT_NAME];
	SBA_FREE char *holder = NULL;
	int rc = ask_tip(t, tip, err);
	if (rc == 0)
		count_uncommitted(t);
	if (rc < 0 || !*tip)
		return rc < 0 ? rc : 1;
	rc = sba_home_holder(&t->home, tip, &holder, err);
	if (rc < 0)
		return rc;
	memcpy(t->report.commit, tip, sizeof(tip));
	if (!holder)
		return sba_home_haves(&t->home, &t->haves, err);
	snprintf(t->report.branch, sizeof(t->report.branch), "%s", holder);
	return 1;
}

static int take_all(struct taking *t, const struct sba_commits_options *o, struct sba_error *err)
{
	int rc = sba_home_open(&t->home, err);
	if (rc == 0)
		rc = find_folder(t, err);
	if (rc == 0)
		rc = look_for_news(t, err);
	if (rc != 0)
		return rc < 0 ? rc : 0;
	snprintf(t->report.branch, sizeof(t->report.branch), "%s", t->home.branch);
	memcpy(t->report.old, t->home.old, sizeof(t->home.old));
	return o->check ? count_commits(t, err) : take_bundle(t, o->force, err);
}

int sba_sandbox_fetch_commits(struct sba_sandbox *s, const char *dir,
			      const struct sba_commits_options *options,
			      struct sba_commits_report *ret_report, struct sba_error *err)
{
	static const struct sba_commits_options none = { 0 };
	const struct sba_commits_options *o = options ? options : &none;
	char branch[sizeof(BRANCH_FOLDER) + SBA_NAME_MAX];
	snprintf(branch, sizeof(branch), BRANCH_FOLDER "%s", s->info.name);
	struct taking t = {
		.sandbox = s,
		.home = { .dir = dir,
			  .branch = o->branch ? o->branch : branch,
			  .until = sba_transfer_until(s, o->timeout_ms) },
		.max = o->max_size ? o->max_size : (uint64_t)SBA_BUNDLE_MAX,
		.haves = SBA_BUF_INIT(SBA_REFS_MAX),
	};
	int rc = take_all(&t, o, err);
	sba_buf_fini(&t.haves);
	if (rc == 0 && ret_report)
		*ret_report = t.report;
	return rc < 0 ? sba_wrap(err, rc, "commits of sandbox '%s' to '%s'", s->info.name, dir) : 0;
}
