/* SPDX-License-Identifier: MIT */
/*
 * The sandbox as its stores see it: run, read, write, as the sandbox's user
 * and through commands only, so that any kind of sandbox will do.
 */
#include "agent/private.h"
#include "engine/engine.h"

#include <stdlib.h>
#include <string.h>

enum { OUTPUT_STEP = 64 * SBA_KIB };

/* The last line of what a program complained about. */
static void keep_said(struct sba_buf *tail, char ret[SBA_SAID_MAX])
{
	SBA_BUF struct sba_buf line = SBA_BUF_INIT(4 * OUTPUT_STEP);
	while (tail->len > 0 && strchr("\r\n", tail->data[tail->len - 1]))
		tail->data[--tail->len] = '\0';
	const char *last = tail->len > 0 ? strrchr(tail->data, '\n') : NULL;
	last = last ? last + 1 : tail->len > 0 ? tail->data : "";
	sba_buf_put_visible(&line, last, strlen(last), true);
	snprintf(ret, SBA_SAID_MAX, "%.*s", SBA_SAID_MAX - 1, line.data ? line.data : "");
}

struct said {
	struct sba_buf *out;
	struct sba_buf complaint; /* the end of its stderr */
};

static int collect(void *user, enum sba_output which, const char *data, size_t len,
		   struct sba_error *err)
{
	struct said *said = user;
	if (which == SBA_STDOUT) {
		sba_buf_put(said->out, data, len);
		return sba_buf_check(said->out, "what it printed", err);
	}
	if (said->complaint.len + len > OUTPUT_STEP)
		sba_buf_reset(&said->complaint);
	sba_buf_put(&said->complaint, data, len < OUTPUT_STEP ? len : OUTPUT_STEP);
	return 0;
}

struct work {
	const struct sba_inside_run *run;
	const void *input;
	size_t input_len;
};

static int perform(const struct sba_inside *in, const struct work *w, struct sba_buf *ret_out,
		   int *ret_status, char ret_said[SBA_SAID_MAX], struct sba_error *err)
{
	const struct sba_agent *a = in->user;
	int64_t ms = sba_engine_timeouts(sba_sandbox_engine(a->sandbox))->session_ms;
	const struct sba_exec_options o = { .argv = w->run->argv,
					    .env = w->run->env,
					    .workdir = in->workdir,
					    .timeout_ms = ms == SBA_NEVER ? 0 : ms,
					    .has_stdin = w->input != NULL };
	struct said said = { .out = ret_out, .complaint = SBA_BUF_INIT(2 * OUTPUT_STEP) };
	struct sba_process *p = NULL;
	struct sba_exit end = { 0 };
	char place[SBA_PLACE_MAX];
	int rc = sba_sandbox_exec(a->sandbox, &o, &p, err);
	if (rc == 0)
		rc = sba_process_converse(p, w->input, w->input_len, collect, &said, err);
	if (rc == 0)
		rc = sba_process_wait(p, -1, &end, err);
	sba_process_free(p);
	if (rc == 0 && end.kind == SBA_TIMED_OUT)
		rc = sba_fail(err, SBA_ETIMEOUT, "%s: it did not end in time", w->run->argv[0]);
	if (rc == 0 && end.kind == SBA_NOT_FOUND)
		rc = sba_hint(err,
			      sba_fail(err, SBA_ENOCLI, "there is no '%s' in %s", w->run->argv[0],
				       sba_agent_place(a->sandbox, place)),
			      "an image of your own needs it too; ours have it");
	if (rc == 0) {
		*ret_status = sba_exit_status(&end);
		keep_said(&said.complaint, ret_said);
	}
	sba_buf_fini(&said.complaint);
	return rc;
}

static int run(const struct sba_inside *in, const struct sba_inside_run *r, struct sba_buf *ret_out,
	       int *ret_status, char ret_said[SBA_SAID_MAX], struct sba_error *err)
{
	const struct work w = { .run = r };
	return perform(in, &w, ret_out, ret_status, ret_said, err);
}

static int read_file(const struct sba_inside *in, const char *path, size_t max, struct sba_buf *ret,
		     struct sba_error *err)
{
	const char *const argv[] = { "cat", "--", path, NULL };
	const struct sba_inside_run r = { .argv = argv };
	char said[SBA_SAID_MAX];
	int status;
	ret->max = max;
	int rc = run(in, &r, ret, &status, said, err);
	if (rc == 0 && status != 0)
		rc = sba_fail(err, SBA_ENOTFOUND, "%s", said);
	return rc;
}

static int write_file(const struct sba_inside *in, const char *path, const void *data, size_t len,
		      uint32_t mode, struct sba_error *err)
{
	static const char script[] = "set -e; d=\"${1%/*}\"; mkdir -p -- \"$d\"; "
				     "t=$(mktemp -- \"$d/.sandbox-agent-XXXXXX\"); "
				     "trap 'rm -f -- \"$t\"' EXIT; cat > \"$t\"; "
				     "chmod -- \"$2\" \"$t\"; mv -f -- \"$t\" \"$1\"";
	char octal[16], said[SBA_SAID_MAX];
	SBA_BUF struct sba_buf out = SBA_BUF_INIT(OUTPUT_STEP);
	int status;
	snprintf(octal, sizeof(octal), "%o", (unsigned)(mode & 07777));
	const char *const argv[] = { "sh", "-c", script, "sh", path, octal, NULL };
	const struct sba_inside_run r = { .argv = argv };
	const struct work w = { .run = &r, .input = data ? data : "", .input_len = len };
	int rc = perform(in, &w, &out, &status, said, err);
	if (rc == 0 && status != 0)
		rc = sba_fail(err, SBA_EIO, "write %s: %s", path, said);
	return rc;
}

static int find_home(struct sba_agent *a, const struct sba_inside *in, struct sba_error *err)
{
	static const char *const argv[] = { "sh", "-c", "printf %s \"$HOME\"", NULL };
	const struct sba_inside_run r = { .argv = argv };
	SBA_BUF struct sba_buf out = SBA_BUF_INIT(SBA_HOME_MAX);
	char said[SBA_SAID_MAX];
	int status;
	int rc = run(in, &r, &out, &status, said, err);
	if (rc < 0)
		return rc;
	if (status != 0 || out.len < 1 || out.data[0] != '/' || memchr(out.data, '\0', out.len))
		return sba_fail(err, SBA_EBROKEN, "the sandbox's user has no home");
	a->home = sba_buf_take(&out);
	return a->home ? 0 : sba_fail_nomem(err);
}

int sba_agent_inside(struct sba_agent *a, struct sba_inside *ret, struct sba_error *err)
{
	struct sba_inside in = { .run = run, .read = read_file, .write = write_file, .user = a };
	int rc = a->home ? 0 : find_home(a, &in, err);
	if (rc == 0)
		rc = sba_agent_workdir(a, err);
	if (rc < 0)
		return rc;
	in.home = a->home;
	in.workdir = sba_sandbox_workdir(a->sandbox);
	*ret = in;
	return 0;
}

int sba_agent_scratch(const struct sba_inside *in, char ret[SBA_SCRATCH_MAX], struct sba_error *err)
{
	static const char *const argv[] = {
		"sh", "-c", "exec mktemp -d \"${TMPDIR:-/tmp}/sandbox-agent-XXXXXXXX\"", NULL
	};
	const struct sba_inside_run r = { .argv = argv };
	SBA_BUF struct sba_buf out = SBA_BUF_INIT(SBA_KIB);
	char said[SBA_SAID_MAX];
	int status;
	int rc = run(in, &r, &out, &status, said, err);
	size_t len = out.data ? strcspn(out.data, "\n") : 0;
	if (rc == 0 && (status != 0 || len == 0 || len >= SBA_SCRATCH_MAX || out.data[0] != '/'))
		rc = sba_fail(err, SBA_EIO, "a folder for the turn: %s", said);
	if (rc == 0)
		snprintf(ret, SBA_SCRATCH_MAX, "%.*s", (int)len, out.data);
	return rc;
}

void sba_agent_scratch_drop(const struct sba_inside *in, const char *scratch)
{
	const char *const argv[] = { "rm", "-rf", "--", scratch, NULL };
	const struct sba_inside_run r = { .argv = argv };
	SBA_BUF struct sba_buf out = SBA_BUF_INIT(SBA_KIB);
	char said[SBA_SAID_MAX];
	int status;
	if (run(in, &r, &out, &status, said, NULL) < 0 || status != 0)
		sba_log("agent", "%s stays in the sandbox", scratch);
}
