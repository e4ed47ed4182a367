/* SPDX-License-Identifier: MIT */
/*
 * Files of a sandbox that has only commands: by sh, cat, stat, mktemp and tar inside.
 * Paths go as arguments and never into a script's text.
 */
#include "sandbox/process.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/limits.h"

enum {
	PIECE = 64 * SBA_KIB,
	SAID_MAX = 4 * SBA_KIB,
	STAT_FIELDS = 5,
	NO_SUCH = 44, /* exit statuses of our scripts */
	NO_FILE = SBA_COMMANDS_NO_FILE,
};

/* What a failed command said last, in one visible line. */
static int said(int code, const struct sba_run_result *r, const char *what, struct sba_error *err)
{
	SBA_BUF struct sba_buf line = SBA_BUF_INIT(SAID_MAX);
	size_t len = r->err_len;
	while (len > 0 && strchr("\r\n", r->err[len - 1]))
		len--;
	const char *last = len ? memrchr(r->err, '\n', len) : NULL;
	const char *from = last ? last + 1 : r->err;
	size_t rest = len - (size_t)(from - r->err);
	sba_buf_put_visible(&line, from, rest < SAID_MAX / 8 ? rest : SAID_MAX / 8, true);
	return sba_fail(err, code, "%s: %s", what,
			line.len ? line.data : "it failed, and said nothing");
}

static int missing(const struct sba_sandbox *s, const char *program, struct sba_error *err)
{
	return sba_hint(err,
			sba_fail(err, SBA_EUNSUPPORTED, "there is no '%s' in sandbox '%s'", program,
				 s->info.name),
			"files of a backend without functions for them need it");
}

/* Runs a script with these arguments ($1…); *ret_code is its exit status. */
static int script(struct sba_sandbox *s, const char *const *argv, struct sba_run_result *ret,
		  struct sba_error *err)
{
	const struct sba_run_options o = {
		.argv = argv,
		.workdir = "/",
		.timeout_ms = sba_engine_timeouts(s->engine)->session_ms,
		.max_output = SBA_MIB,
	};
	int rc = sba_sandbox_run(s, &o, ret, err);
	if (rc < 0 || ret->exit.kind == SBA_EXITED)
		return rc;
	rc = ret->exit.kind == SBA_NOT_FOUND ? missing(s, argv[0], err)
	     : ret->exit.kind == SBA_TIMED_OUT
		     ? sba_fail(err, SBA_ETIMEOUT, "%s: it did not end in time", argv[0])
		     : sba_fail(err, SBA_EBROKEN, "%s: it was ended (%d)", argv[0],
				sba_exit_status(&ret->exit));
	sba_run_result_fini(ret);
	return rc;
}

/* One line that it prints, which the caller frees; SBA_ENOTFOUND where it fails. */
static int line_of(struct sba_sandbox *s, const char *const *argv, const char *what, char **ret,
		   struct sba_error *err)
{
	struct sba_run_result r = { 0 };
	int rc = script(s, argv, &r, err);
	if (rc < 0)
		return rc;
	size_t len = strcspn(r.out, "\n");
	if (r.exit.number != 0)
		rc = said(SBA_ENOTFOUND, &r, what, err);
	else if (len == 0 || len != strlen(r.out) - (r.out[len] == '\n'))
		rc = sba_fail(err, SBA_EPROTO, "%s: it printed no line", what);
	char *line = rc == 0 ? strndup(r.out, len) : NULL;
	sba_run_result_fini(&r);
	if (rc == 0 && !line)
		return sba_fail_nomem(err);
	if (rc == 0)
		*ret = line;
	return rc;
}

int sba_commands_which(struct sba_sandbox *s, const char *program, char **ret,
		       struct sba_error *err)
{
	/* Not with 127, which dash says: some carriers take that for a missing sh. */
	static const char text[] = "command -v -- \"$1\" || exit 1";
	const char *const argv[] = { "sh", "-c", text, "sh", program, NULL };
	struct sba_error why = { 0 };
	int rc = line_of(s, argv, program, ret, &why);
	if (rc == SBA_ENOTFOUND)
		return sba_fail(err, rc, "there is no '%s' in sandbox '%s'", program, s->info.name);
	if (rc < 0 && err)
		*err = why;
	return rc;
}

int sba_commands_tempdir(struct sba_sandbox *s, char **ret, struct sba_error *err)
{
	static const char *const argv[] = { "mktemp", "-d", "/tmp/sandbox-agent-XXXXXXXX", NULL };
	return line_of(s, argv, "a folder of its own", ret, err);
}

int sba_commands_home(struct sba_sandbox *s, char **ret, struct sba_error *err)
{
	static const char *const argv[] = { "sh", "-c", "printf '%s\\n' \"${HOME:-/tmp}\"", NULL };
	return line_of(s, argv, "its home", ret, err);
}

int sba_commands_make_dir(struct sba_sandbox *s, const char *path, struct sba_error *err)
{
	const char *const argv[] = { "mkdir", "-p", "--", path, NULL };
	struct sba_run_result r = { 0 };
	int rc = script(s, argv, &r, err);
	if (rc == 0 && r.exit.number != 0)
		rc = said(SBA_EIO, &r, path, err);
	sba_run_result_fini(&r);
	return rc;
}

/* Hexadecimal mode, uid, gid, size, seconds. */
static int parse_stat(const char *text, struct sba_file_stat *ret)
{
	unsigned long long v[STAT_FIELDS];
	for (size_t i = 0; i < STAT_FIELDS; i++) {
		char *end;
		v[i] = strtoull(text, &end, i == 0 ? 16 : 10);
		if (end == text || (*end != ' ' && *end != '\0'))
			return SBA_EPROTO;
		text = end;
	}
	if (v[3] > INT64_MAX)
		return SBA_EPROTO;
	*ret = (struct sba_file_stat){ .mode = (uint32_t)v[0],
				       .uid = (uint32_t)v[1],
				       .gid = (uint32_t)v[2],
				       .size = (int64_t)v[3],
				       .mtime_ns = sba_time_ns((int64_t)v[4], 0) };
	return 0;
}

int sba_commands_stat(struct sba_sandbox *s, const char *path, struct sba_file_stat *ret,
		      struct sba_error *err)
{
	const char *const argv[] = { "stat", "-L", "-c", "%f %u %g %s %Y", "--", path, NULL };
	SBA_FREE char *line = NULL;
	int rc = line_of(s, argv, path, &line, err);
	if (rc == 0 && parse_stat(line, ret) < 0)
		rc = sba_fail(err, SBA_EPROTO, "%s: stat printed something else", path);
	return rc;
}

/* ---- content ---- */

static int keep(struct sba_buf *b, const char *data, size_t len)
{
	if (b->len + len > b->max)
		sba_buf_reset(b);
	sba_buf_put(b, data, len < b->max ? len : b->max);
	return 0;
}

/* Output to write(), the last of stderr to `complaint`, then its exit status. */
static int pass_on(struct sba_process *p, sba_write_fn *write, void *user,
		   struct sba_buf *complaint, struct sba_exit *ret, struct sba_error *err)
{
	enum sba_output which;
	const char *data;
	ssize_t n;
	int rc = 0;
	while (rc == 0 && (n = sba_process_read(p, -1, &which, &data, err)) != 0) {
		if (n < 0)
			rc = (int)n;
		else if (which == SBA_STDOUT)
			rc = write(user, data, (size_t)n, err);
		else
			rc = keep(complaint, data, (size_t)n);
	}
	return rc < 0 ? rc : sba_process_wait(p, -1, ret, err);
}

static int judge(const struct sba_sandbox *s, const char *program, const char *path,
		 const struct sba_exit *end, struct sba_buf *complaint, struct sba_error *err)
{
	struct sba_run_result r = { .err = complaint->data ? complaint->data : (char[]){ "" },
				    .err_len = complaint->len };
	if (end->kind == SBA_NOT_FOUND)
		return missing(s, program, err);
	if (end->kind == SBA_TIMED_OUT)
		return sba_fail(err, SBA_ETIMEOUT, "%s: it took too long", path);
	if (end->kind != SBA_EXITED)
		return sba_fail(err, SBA_EBROKEN, "%s: what carried it was ended", path);
	if (end->number == NO_SUCH)
		return sba_fail(err, SBA_ENOTFOUND, "%s:%s: no such file", s->info.name, path);
	if (end->number == NO_FILE)
		return sba_fail(err, SBA_EREFUSED, "%s:%s: it is no regular file", s->info.name,
				path);
	return end->number == 0 ? 0 : said(SBA_EIO, &r, path, err);
}

int sba_commands_read(struct sba_sandbox *s, const char *path, int64_t timeout_ms,
		      sba_write_fn *write, void *user, struct sba_error *err)
{
	static const char text[] = "[ -e \"$1\" ] || exit 44; [ -f \"$1\" ] || exit 45; "
				   "exec cat -- \"$1\"";
	const char *const argv[] = { "sh", "-c", text, "sh", path, NULL };
	const struct sba_exec_options o = {
		.argv = argv,
		.workdir = "/",
		.timeout_ms =
			timeout_ms > 0 ? timeout_ms : sba_engine_timeouts(s->engine)->transfer_ms,
	};
	SBA_BUF struct sba_buf complaint = SBA_BUF_INIT(SAID_MAX);
	struct sba_process *p = NULL;
	struct sba_exit end = { 0 };
	int rc = sba_sandbox_exec(s, &o, &p, err);
	if (rc == 0)
		rc = pass_on(p, write, user, &complaint, &end, err);
	sba_process_free(p);
	return rc == 0 ? judge(s, "sh", path, &end, &complaint, err) : rc;
}

struct feeding {
	struct sba_process *process;
	sba_read_fn *read;
	void *user;
	struct sba_buf *complaint;
};

/* A queue that is full: reading sends it, and comes back when there is room. */
static int make_room(struct feeding *f, struct sba_error *err)
{
	enum sba_output which;
	const char *data;
	ssize_t n = sba_process_read(f->process, -1, &which, &data, err);
	if (n > 0)
		return keep(f->complaint, data, (size_t)n);
	return n == SBA_ETIMEOUT ? 0 : n < 0 ? (int)n : 1;
}

/* 1: it reads no more. */
static int put_all(struct feeding *f, const char *data, size_t len, struct sba_error *err)
{
	while (len > 0) {
		ssize_t n = sba_process_write(f->process, data, len, err);
		int rc = n == 0 ? make_room(f, err) : n < 0 ? (int)n : 0;
		if (rc != 0)
			return rc;
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

static int feed(struct feeding *f, struct sba_error *err)
{
	SBA_FREE char *piece = malloc(PIECE);
	ssize_t n = piece ? 0 : sba_fail_nomem(err);
	int rc = (int)n;
	while (rc == 0 && (n = f->read(f->user, piece, PIECE, err)) > 0)
		rc = put_all(f, piece, (size_t)n, err);
	if (rc < 0 || n < 0)
		return rc < 0 ? rc : (int)n;
	return sba_process_close_stdin(f->process, err);
}

static int ignore(void *user, const void *data, size_t len, struct sba_error *err)
{
	(void)user;
	(void)data;
	(void)len;
	(void)err;
	return 0;
}

static int send_to(struct sba_sandbox *s, const struct sba_exec_options *o, const char *path,
		   sba_read_fn *read, void *user, struct sba_error *err)
{
	SBA_BUF struct sba_buf complaint = SBA_BUF_INIT(SAID_MAX);
	struct feeding f = { .read = read, .user = user, .complaint = &complaint };
	struct sba_exit end = { 0 };
	int rc = sba_sandbox_exec(s, o, &f.process, err);
	if (rc == 0)
		rc = feed(&f, err);
	if (rc == 0)
		rc = pass_on(f.process, ignore, NULL, &complaint, &end, err);
	sba_process_free(f.process);
	return rc == 0 ? judge(s, o->argv[0], path, &end, &complaint, err) : rc;
}

/* Content in whole first: what is cut short leaves nothing behind. */
void sba_commands_write_argv(const char *path, const char *from, const struct sba_write_options *o,
			     struct sba_commands_write_argv *ret)
{
	static const char text[] =
		"set -e; [ -z \"$4\" ] || trap 'rm -f -- \"$4\"' EXIT; "
		"[ ! -e \"$1\" ] || [ -f \"$1\" ] || exit 45; d=\"${1%/*}\"; "
		"mkdir -p -- \"$d/\"; t=$(mktemp -- \"$d/.sandbox-agent-XXXXXX\"); "
		"trap 'rm -f -- \"$t\" ${4:+\"$4\"}' EXIT; "
		"if [ \"$4\" ]; then cat -- \"$4\"; else cat; fi > \"$t\"; "
		"m=$2; [ -n \"$m\" ] || m=$(stat -L -c %a -- \"$1\" 2>/dev/null || echo 644); "
		"chmod -- \"$m\" \"$t\"; [ -z \"$3\" ] || chown -- \"$3\" \"$t\"; "
		"mv -f -- \"$t\" \"$1\"";
	ret->mode[0] = '\0';
	if (o && o->set_mode)
		snprintf(ret->mode, sizeof(ret->mode), "%o", (unsigned)(o->mode & 07777));
	const char *const argv[] = {
		"sh", "-c", text, "sh", path, ret->mode, o && o->owner ? o->owner : "", from, NULL
	};
	_Static_assert(sizeof(argv) == sizeof(ret->v), "one for each word");
	memcpy(ret->v, argv, sizeof(argv));
}

int sba_commands_write(struct sba_sandbox *s, const char *path, sba_read_fn *read, void *user,
		       const struct sba_write_options *options, struct sba_error *err)
{
	struct sba_commands_write_argv argv;
	sba_commands_write_argv(path, "", options, &argv);
	const struct sba_exec_options o = {
		.argv = argv.v,
		.workdir = "/",
		.has_stdin = true,
		.timeout_ms = options && options->timeout_ms > 0
				      ? options->timeout_ms
				      : sba_engine_timeouts(s->engine)->transfer_ms,
	};
	return send_to(s, &o, path, read, user, err);
}

/* ---- trees ---- */

int sba_commands_put(struct sba_sandbox *s, const char *folder, sba_read_fn *read, void *user,
		     const struct sba_tree_options *options, struct sba_error *err)
{
	static const char text[] =
		"set -e; mkdir -p -- \"$1\"; t=$(mktemp -d -- \"$1/.sandbox-agent-XXXXXX\"); "
		"trap 'rm -rf -- \"$t\"' EXIT; tar -x -f - -C \"$t\"; chmod 755 -- \"$t\"; "
		"cp -a $2 -- \"$t/.\" \"$1/\"";
	const char *const argv[] = { "sh", "-c",   text,
				     "sh", folder, options->no_clobber ? "-n" : "-f",
				     NULL };
	const struct sba_exec_options o = {
		.argv = argv, .workdir = "/", .has_stdin = true, .timeout_ms = options->timeout_ms
	};
	return send_to(s, &o, folder, read, user, err);
}

struct tar {
	struct sba_process *process;
	const char *rest; /* of the last piece */
	size_t left;
};

/* The next piece, 0 after a good end. */
static ssize_t next_piece(struct tar *t, struct sba_error *err)
{
	enum sba_output which = SBA_STDERR;
	struct sba_exit end = { 0 };
	ssize_t n;
	do
		n = sba_process_read(t->process, -1, &which, &t->rest, err);
	while (n > 0 && which == SBA_STDERR);
	if (n != 0)
		return n;
	int rc = sba_process_wait(t->process, -1, &end, err);
	if (rc == 0 && end.kind == SBA_NOT_FOUND)
		rc = sba_fail(err, SBA_EUNSUPPORTED, "there is no 'tar' in the sandbox");
	if (rc == 0 && sba_exit_status(&end) != 0)
		rc = sba_fail(err, SBA_EIO, "tar: it ended with %d inside", sba_exit_status(&end));
	return rc;
}

static ssize_t tar_read(void *user, void *buf, size_t size, struct sba_error *err)
{
	struct tar *t = user;
	if (t->left == 0) {
		ssize_t n = next_piece(t, err);
		if (n <= 0)
			return n;
		t->left = (size_t)n;
	}
	size_t n = t->left < size ? t->left : size;
	memcpy(buf, t->rest, n);
	t->rest += n;
	t->left -= n;
	return (ssize_t)n;
}

static void tar_close(void *user)
{
	struct tar *t = user;
	sba_process_free(t->process);
	free(t);
}

int sba_commands_tar(struct sba_sandbox *s, const char *path,
		     const struct sba_tree_options *options, struct sba_tree *ret,
		     struct sba_error *err)
{
	char parent[4096];
	const char *leaf = strrchr(path, '/') + 1;
	size_t len = (size_t)(leaf - path);
	if (len >= sizeof(parent))
		return sba_fail(err, SBA_EINVAL, "path '%.60s…': too long", path);
	memcpy(parent, path, len);
	parent[len] = '\0';
	const char *const argv[] = { "tar", "-c", "-f", "-", "-C", parent, "--", leaf, NULL };
	const struct sba_exec_options o = { .argv = argv,
					    .workdir = "/",
					    .timeout_ms = options->timeout_ms };
	SBA_FREE struct tar *t = calloc(1, sizeof(*t));
	if (!t)
		return sba_fail_nomem(err);
	int rc = sba_sandbox_exec(s, &o, &t->process, err);
	if (rc == 0)
		*ret = (struct sba_tree){ .read = tar_read,
					  .close = tar_close,
					  .user = sba_move(&t) };
	return rc;
}
