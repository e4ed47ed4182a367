/* SPDX-License-Identifier: MIT */
/* Bundles and branches of this host's repositories; see bundle.h. */
#include "sandbox/bundle.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sandbox/git.h"

enum { ANSWER_MAX = 4 * SBA_RUN_IO_CHUNK, REF_MAX = 512 };

bool sba_object_name_ok(const char *s, size_t len)
{
	return (len == 40 || len == 64) && strspn(s, "0123456789abcdef") >= len;
}

/* ---- the header ---- */

/* The next line without its end; NULL: there is none any more. */
static const char *next_line(const char **at, size_t *left, size_t *ret_len)
{
	const char *line = *at, *end = memchr(line, '\n', *left);
	if (!end)
		return NULL;
	*ret_len = (size_t)(end - line);
	*at = end + 1;
	*left -= *ret_len + 1;
	return line;
}

/* "@filter=…" and the like change what is in the pack; the hash is git's to know. */
static bool is_capability(const char *line, size_t len)
{
	static const char format[] = "@object-format=";
	return len > sizeof(format) - 1 && memcmp(line, format, sizeof(format) - 1) == 0;
}

static int bad_head(struct sba_error *err, const char *what)
{
	return sba_fail(err, SBA_EPROTO, "what the sandbox sends is no bundle of commits: %s",
			what);
}

/* "NAME HEAD". */
static int take_reference(const char *line, size_t len, struct sba_bundle_head *ret,
			  struct sba_error *err)
{
	const char *space = memchr(line, ' ', len);
	size_t name = space ? (size_t)(space - line) : 0;
	if (*ret->tip)
		return bad_head(err, "it has more than one reference");
	if (!space || !sba_object_name_ok(line, name))
		return bad_head(err, "its reference has no name of an object");
	memcpy(ret->tip, line, name);
	ret->tip[name] = '\0';
	return 0;
}

int sba_bundle_head(const char *data, size_t len, struct sba_bundle_head *ret,
		    struct sba_error *err)
{
	struct sba_bundle_head head = { .tip = "" };
	const char *at = data, *line;
	size_t left = len, n;
	line = next_line(&at, &left, &n);
	if (!line || n != 15 ||
	    (memcmp(line, "# v2 git bundle", n) != 0 && memcmp(line, "# v3 git bundle", n) != 0))
		return bad_head(err, "it does not begin as one");
	while ((line = next_line(&at, &left, &n)) && n > 0) {
		int rc = 0;
		if (*line == '@' && !is_capability(line, n))
			rc = bad_head(err, "it asks for what is not known here");
		else if (*line != '@' && *line != '-')
			rc = take_reference(line, n, &head, err);
		if (rc < 0)
			return rc;
	}
	if (!line || !*head.tip)
		return bad_head(err, line ? "it has no reference" : "its header does not end");
	head.len = len - left;
	*ret = head;
	return 0;
}

/* ---- asking git ---- */

/* The exit status; its answer, which is one line mostly, without that line's end. */
static int ask(const struct sba_home *h, const char *const *args, struct sba_buf *ret,
	       struct sba_error *err)
{
	sba_buf_reset(ret);
	int rc = sba_git_run(h->dir, args, h->until, ret, err);
	if (rc == SBA_ENOTFOUND)
		return sba_hint(err,
				sba_fail(err, SBA_EREFUSED,
					 "there is no git here, which commits are taken home by"),
				"install git; or take the files alone:  sandbox-agent apply");
	if (ret->len > 0 && ret->data[ret->len - 1] == '\n')
		ret->data[--ret->len] = '\0';
	return rc;
}

static const char *text_of(const struct sba_buf *b)
{
	return b->data ? b->data : "";
}

/* A failed answer in the words of an error. */
static int git_says(const struct sba_home *h, int code, const struct sba_buf *answer,
		    const char *what, struct sba_error *err)
{
	SBA_BUF struct sba_buf line = SBA_BUF_INIT(ANSWER_MAX);
	sba_buf_put_visible(&line, text_of(answer), answer->len < 300 ? answer->len : 300, true);
	return sba_fail(err, code, "git in '%s' does not %s: %s", h->dir, what, text_of(&line));
}

/* ---- the branch ---- */

static int branch_ref(const struct sba_home *h, char ret[REF_MAX], struct sba_error *err)
{
	int n = snprintf(ret, REF_MAX, "refs/heads/%s", h->branch);
	return n > 0 && n < REF_MAX ? 0
				    : sba_fail(err, SBA_EINVAL, "a branch's name that is too long");
}

static int check_name(const struct sba_home *h, const char *ref, struct sba_error *err)
{
	const char *const args[] = { "check-ref-format", ref, NULL };
	SBA_BUF struct sba_buf answer = SBA_BUF_INIT(ANSWER_MAX);
	int rc = h->branch[0] == '-' ? 1 : ask(h, args, &answer, err);
	return rc > 0 ? sba_fail(err, SBA_EINVAL, "no branch can be called '%s'", h->branch) : rc;
}

/* "OBJECT PLACE": the place is the work tree that has it checked out. */
static int take_branch(struct sba_home *h, const struct sba_buf *answer, struct sba_error *err)
{
	const char *text = text_of(answer);
	size_t len = strcspn(text, " ");
	if (answer->len == 0)
		return 0;
	if (!sba_object_name_ok(text, len))
		return git_says(h, SBA_EREFUSED, answer, "say what the branch is", err);
	if (text[len] && text[len + 1])
		return sba_hint(err,
				sba_fail(err, SBA_EREFUSED, "branch '%s' is checked out in '%s'",
					 h->branch, text + len + 1),
				"another one takes the commits:  --branch NAME");
	memcpy(h->old, text, len);
	h->old[len] = '\0';
	return 0;
}

int sba_home_open(struct sba_home *h, struct sba_error *err)
{
	static const char *const is_repository[] = { "rev-parse", "--git-dir", NULL };
	char ref[REF_MAX];
	const char *const find[] = { "for-each-ref", "--format=%(objectname) %(worktreepath)", ref,
				     NULL };
	SBA_BUF struct sba_buf answer = SBA_BUF_INIT(ANSWER_MAX);
	int rc = ask(h, is_repository, &answer, err);
	if (rc > 0)
		return sba_hint(err,
				sba_fail(err, SBA_EREFUSED, "'%s' is in no git repository", h->dir),
				"its files alone:  sandbox-agent apply NAME DIR");
	if (rc == 0)
		rc = branch_ref(h, ref, err);
	if (rc == 0)
		rc = check_name(h, ref, err);
	if (rc == 0)
		rc = ask(h, find, &answer, err);
	if (rc > 0)
		return git_says(h, SBA_EREFUSED, &answer, "list its branches", err);
	return rc < 0 ? rc : take_branch(h, &answer, err);
}

/* ---- what is here ---- */

int sba_home_haves(const struct sba_home *h, struct sba_buf *ret, struct sba_error *err)
{
	/* The newest, where there are very many: without some there is more to send. */
	static const char *const refs[] = { "for-each-ref", "--count=20000", "--sort=-creatordate",
					    "--format=^%(objectname)", NULL };
	static const char *const head[] = { "rev-parse", "--verify", "--quiet", "HEAD", NULL };
	SBA_BUF struct sba_buf answer = SBA_BUF_INIT(ANSWER_MAX);
	int rc = ask(h, refs, ret, err);
	if (rc > 0)
		return git_says(h, SBA_EREFUSED, ret, "list its branches", err);
	if (rc == 0)
		rc = ask(h, head, &answer, err);
	if (rc < 0)
		return rc;
	sba_buf_puts(ret, ret->len ? "\n" : "");
	if (rc == 0 && sba_object_name_ok(text_of(&answer), answer.len))
		sba_buf_printf(ret, "^%s\n", answer.data);
	return sba_buf_check(ret, "the list of commits", err);
}

int sba_home_holder(const struct sba_home *h, const char *commit, char **ret, struct sba_error *err)
{
	const char *const holder[] = { "for-each-ref", "--count=1", "--format=%(refname:short)",
				       "--contains",   commit,      "refs/heads",
				       "refs/remotes", "refs/tags", NULL };
	const char *const in_head[] = { "merge-base", "--is-ancestor", commit, "HEAD", NULL };
	SBA_BUF struct sba_buf answer = SBA_BUF_INIT(ANSWER_MAX);
	/* Of what is not here at all git says so, which is an answer too. */
	int rc = ask(h, holder, &answer, err);
	if (rc != 0 || answer.len == 0) {
		rc = rc < 0 ? rc : ask(h, in_head, &answer, err);
		if (rc < 0)
			return rc;
		sba_buf_reset(&answer);
		sba_buf_puts(&answer, rc == 0 ? "HEAD" : "");
	}
	*ret = answer.len ? sba_buf_take(&answer) : NULL;
	return 0;
}

/* ---- taking ---- */

static int read_head(int fd, struct sba_bundle_head *ret, struct sba_error *err)
{
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(SBA_BUNDLE_HEAD_MAX);
	char *at = sba_buf_reserve(&b, SBA_BUNDLE_HEAD_MAX / 2);
	if (!at)
		return sba_fail_nomem(err);
	ssize_t n = pread(fd, at, SBA_BUNDLE_HEAD_MAX / 2, 0);
	if (n < 0)
		return sba_fail_errno(err, SBA_EIO, errno, "read a temporary file");
	int rc = sba_bundle_head(at, (size_t)n, ret, err);
	if (rc == 0 && lseek(fd, (off_t)ret->len, SEEK_SET) < 0)
		return sba_fail_errno(err, SBA_EIO, errno, "read a temporary file");
	return rc;
}

/* As `git fetch` does with transfer.fsckObjects, which takes bundles unchecked before git
 * 2.46: objects that a checkout could be harmed by are refused. */
static int index_pack(const struct sba_home *h, int fd, uint64_t max, struct sba_error *err)
{
	char limit[48];
	const char *const args[] = { "-c",         "core.bigFileThreshold=32m",
				     "index-pack", "--stdin",
				     "--fix-thin", "--strict",
				     limit,        NULL };
	SBA_BUF struct sba_buf answer = SBA_BUF_INIT(SBA_MIB);
	snprintf(limit, sizeof(limit), "--max-input-size=%" PRIu64, max);
	int rc = sba_git_feed(h->dir, args, fd, h->until, &answer, err);
	return rc > 0 ? git_says(h, SBA_EPROTO, &answer, "take the commits", err) : rc;
}

/* Nothing that the tip leads to is missing. */
static int check_whole(const struct sba_home *h, const char *tip, struct sba_error *err)
{
	const char *const args[] = {
		"rev-list", "--objects", "--quiet", tip, "--not", "--all", NULL
	};
	SBA_BUF struct sba_buf answer = SBA_BUF_INIT(ANSWER_MAX);
	int rc = ask(h, args, &answer, err);
	return rc > 0 ? git_says(h, SBA_EPROTO, &answer, "find all of the commits", err) : rc;
}

static int count_new(const struct sba_home *h, const char *tip, uint64_t *ret,
		     struct sba_error *err)
{
	const char *const args[] = { "rev-list", "--count", tip, "--not", "--all", NULL };
	SBA_BUF struct sba_buf answer = SBA_BUF_INIT(ANSWER_MAX);
	int64_t n;
	int rc = ask(h, args, &answer, err);
	if (rc < 0)
		return rc;
	if (rc > 0 || sba_parse_int(text_of(&answer), 0, INT64_MAX, &n) < 0)
		return git_says(h, SBA_EPROTO, &answer, "count the commits", err);
	*ret = (uint64_t)n;
	return 0;
}

int sba_home_take(const struct sba_home *h, int bundle_fd, uint64_t max,
		  struct sba_bundle_head *ret, uint64_t *ret_commits, struct sba_error *err)
{
	struct sba_bundle_head head;
	uint64_t commits = 0;
	int rc = read_head(bundle_fd, &head, err);
	if (rc == 0)
		rc = index_pack(h, bundle_fd, max, err);
	if (rc == 0)
		rc = check_whole(h, head.tip, err);
	if (rc == 0)
		rc = count_new(h, head.tip, &commits, err);
	if (rc == 0) {
		*ret = head;
		*ret_commits = commits;
	}
	return rc;
}

/* ---- moving ---- */

static int check_forward(const struct sba_home *h, const char *commit, struct sba_error *err)
{
	const char *const args[] = { "merge-base", "--is-ancestor", h->old, commit, NULL };
	SBA_BUF struct sba_buf answer = SBA_BUF_INIT(ANSWER_MAX);
	int rc = *h->old ? ask(h, args, &answer, err) : 0;
	if (rc <= 0)
		return rc;
	return sba_hint(err,
			sba_fail(err, SBA_ECONFLICT,
				 "branch '%s' has commits that those of the sandbox are not built "
				 "on; nothing was changed",
				 h->branch),
			"another one takes them:  --branch NAME\n"
			"in place of what it has:  --force");
}

int sba_home_move(const struct sba_home *h, const char *commit, bool force, struct sba_error *err)
{
	char ref[REF_MAX];
	/* Somebody who moved it since is not overrun. */
	const char *const args[] = { "update-ref", "-m",   "sandbox-agent: commits of a sandbox",
				     ref,          commit, *h->old ? h->old : "",
				     NULL };
	SBA_BUF struct sba_buf answer = SBA_BUF_INIT(ANSWER_MAX);
	int rc = branch_ref(h, ref, err);
	if (rc == 0 && !force)
		rc = check_forward(h, commit, err);
	if (rc == 0)
		rc = ask(h, args, &answer, err);
	return rc > 0 ? git_says(h, SBA_ECONFLICT, &answer, "move the branch", err) : rc;
}
