/* SPDX-License-Identifier: MIT */
/* `cp`: files into a sandbox and out of it. */
#include "cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* One side of a copy: NAME:PATH, or a path here. */
struct side {
	char *name;     /* NULL: here */
	char *path;     /* without slashes at its end */
	bool contents;  /* it ended in "/.": what is in the folder */
	bool is_folder; /* it ended in "/": so it was said */
};

static void side_fini(struct side *s)
{
	free(s->name);
	free(s->path);
}

static void strip_slashes(char *path)
{
	for (size_t n = strlen(path); n > 1 && path[n - 1] == '/'; n--)
		path[n - 1] = '\0';
}

/* "/." and "/" say how a folder is meant; the path is what remains. */
static void take_end(struct side *s)
{
	size_t n = strlen(s->path);
	s->is_folder = s->path[n - 1] == '/';
	strip_slashes(s->path);
	n = strlen(s->path);
	s->contents = n > 1 && !strcmp(s->path + n - 2, "/.");
	if (!s->contents)
		return;
	s->path[n > 2 ? n - 2 : 1] = '\0';
	strip_slashes(s->path);
}

/* As docker has it: what begins with / or . is here, else a colon ends a name. */
static int side_parse(const char *arg, struct side *ret, struct sba_error *err)
{
	size_t len = strcspn(arg, ":/");
	bool inside = arg[0] != '.' && len > 0 && arg[len] == ':';
	if (!strcmp(arg, "-"))
		return cli_fail(err, SBA_EINVAL, "copy a folder, or use exec with tar",
				"tar streams (-) are not there yet");
	if (!*arg)
		return cli_fail(err, SBA_EINVAL, NULL, "a path is empty");
	const char *path = inside ? arg + len + 1 : arg;
	if (inside)
		ret->name = strndup(arg, len);
	if (asprintf(&ret->path, "%s%s", inside && *path != '/' ? "/workspace/" : "", path) < 0)
		ret->path = NULL;
	if (!ret->path || (inside && !ret->name))
		return cli_fail_nomem(err);
	take_end(ret);
	return 0;
}

enum kind { SYMLINKS, FIFOS, DEVICES, NAMES, OTHERS, KINDS };

static const char *const kinds[KINDS][3] = {
	[SYMLINKS] = { "symbolic link", "symlink", "symlinks" },
	[FIFOS] = { "fifo", "fifo", "fifos" },
	[DEVICES] = { "device", "device", "devices" },
	[NAMES] = { "unsafe name", "unsafe name", "unsafe names" },
	[OTHERS] = { "", "of another kind", "of another kind" },
};

struct copy {
	struct cli *cli;
	const struct side *from, *to;
	char *dest; /* in full, as it is shown */
	int64_t since_ms, shown_ms;
	json_t *refused; /* names, for --json */
	unsigned by_kind[KINDS];
};

static int64_t now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void progress(void *user, uint64_t bytes, uint64_t files)
{
	enum { EVERY_MS = 100 };
	struct copy *c = user;
	char line[512], size[32], rate[32];
	int64_t now = now_ms(), took = now - c->since_ms;
	if (now - c->shown_ms < EVERY_MS)
		return;
	c->shown_ms = now;
	CLI_FREE char *what = cli_line(&c->cli->look, c->from->path, 40);
	snprintf(
		line, sizeof(line), "%s  %llu file%s  %s  %s/s", what ? what : "",
		(unsigned long long)files, files == 1 ? "" : "s",
		sba_format_size((int64_t)bytes, size, sizeof(size)),
		sba_format_size((int64_t)bytes * 1000 / (took > 0 ? took : 1), rate, sizeof(rate)));
	cli_status_set(&c->cli->status, line);
}

static void refused(void *user, const char *name, const char *why)
{
	struct copy *c = user;
	size_t kind = 0;
	while (kind < OTHERS && strcmp(kinds[kind][0], why) != 0)
		kind++;
	c->by_kind[kind]++;
	CLI_FREE char *visible = sba_visible(name, strlen(name), true);
	if (c->refused && visible)
		json_array_append_new(c->refused,
				      json_pack("{s:s, s:s}", "name", visible, "why", why));
	if (c->cli->verbose)
		cli_note(c->cli, "refused: %s (%s)", name, why);
}

/* What goes in is looked through by another part, which counts and gives no names. */
static void told_refused(const struct copy *c, uint64_t refused)
{
	char text[256] = "";
	size_t len = 0;
	if (!c->from->name) {
		cli_note(c->cli, "left out: %llu (links that lead out, sockets, fifos, devices)",
			 (unsigned long long)refused);
		return;
	}
	for (size_t k = 0; k < KINDS && len < sizeof(text); k++) {
		unsigned n = c->by_kind[k];
		if (n)
			len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%u %s",
						len ? ", " : "", n, kinds[k][1 + (n != 1)]);
	}
	cli_note(c->cli, "refused: %s%s", text, c->cli->verbose ? "" : " (names: -v, or --json)");
}

static void told(struct copy *c, const struct sba_transfer_report *r)
{
	char size[32];
	sba_format_size((int64_t)r->bytes, size, sizeof(size));
	if (c->cli->json) {
		cli_json_line(json_pack("{s:i, s:s, s:I, s:I, s:I, s:I, s:O}", "v", 1, "dest",
					c->dest, "files", (json_int_t)r->files, "directories",
					(json_int_t)r->directories, "bytes", (json_int_t)r->bytes,
					"symlinks", (json_int_t)r->symlinks, "refused",
					c->refused));
		return;
	}
	cli_note(c->cli, "%s%s%s%s -> %s  %llu file%s  %s", c->from->name ? c->from->name : "",
		 c->from->name ? ":" : "", c->from->path, c->from->contents ? "/." : "", c->dest,
		 (unsigned long long)r->files, r->files == 1 ? "" : "s", size);
	if (r->refused)
		told_refused(c, r->refused);
}

/* ---- where it goes ---- */

/* What is at a place: the same questions here and inside. */
struct place {
	bool there, folder, parent;
};

static bool is_folder(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* The folder that a path lies in; the caller frees. */
static char *parent_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	if (!slash)
		return strdup(".");
	return strndup(path, slash == path ? 1 : (size_t)(slash - path));
}

/* `test` inside: 1 yes, 0 no; where the image has none, what is likely. */
static int ask(struct sba_sandbox *s, const char *flag, const char *path, int likely,
	       struct sba_error *err)
{
	enum { ASK_MS = 30 * 1000 };
	const char *const argv[] = { "test", flag, path, NULL };
	const struct sba_exec_options o = { .argv = argv, .timeout_ms = ASK_MS };
	struct sba_process *p = NULL;
	struct sba_exit e;
	int rc = sba_sandbox_exec(s, &o, &p, err);
	if (rc == 0)
		rc = sba_process_wait(p, -1, &e, err);
	sba_process_free(p);
	if (rc < 0)
		return rc;
	return e.kind == SBA_EXITED && sba_exit_status(&e) <= 1 ? sba_exit_status(&e) == 0 : likely;
}

static int look_inside(struct sba_sandbox *s, const char *path, struct place *ret,
		       struct sba_error *err)
{
	CLI_FREE char *parent = parent_of(path);
	int there = 1, in = 1;
	if (!parent)
		return cli_fail_nomem(err);
	int folder = ask(s, "-d", path, 0, err);
	if (folder == 0)
		there = ask(s, "-e", path, 0, err);
	if (folder == 0 && there == 0)
		in = ask(s, "-d", parent, 1, err);
	if (folder < 0 || there < 0 || in < 0)
		return err->code;
	*ret = (struct place){ .there = there, .folder = folder, .parent = in };
	return 0;
}

static int look(struct sba_sandbox *s, const struct side *to, struct place *ret,
		struct sba_error *err)
{
	if (to->name)
		return look_inside(s, to->path, ret, err);
	struct stat st;
	CLI_FREE char *parent = parent_of(to->path);
	if (!parent)
		return cli_fail_nomem(err);
	*ret = (struct place){
		.there = lstat(to->path, &st) == 0,
		.folder = is_folder(to->path),
		.parent = is_folder(parent),
	};
	return 0;
}

/* docker's rule, both ways: no folder is made for a copy to go into. */
static int check_place(const struct side *to, const struct place *p, bool folder_comes,
		       struct sba_error *err)
{
	const char *name = to->name ? to->name : "", *colon = to->name ? ":" : "";
	if (p->there && !p->folder && (folder_comes || to->is_folder || to->contents))
		return cli_fail(err, SBA_EEXIST, NULL, "'%s%s%s' is a file", name, colon, to->path);
	if (!p->folder && (to->is_folder || to->contents))
		return cli_fail(err, SBA_ENOTFOUND, NULL, "no such folder: '%s%s%s/'", name, colon,
				to->path);
	CLI_FREE char *parent = parent_of(to->path);
	if (p->there || p->parent)
		return 0;
	return cli_fail(err, SBA_ENOTFOUND, NULL, "no such folder: '%s%s%s'", name, colon,
			parent ? parent : "");
}

/* In full: an existing folder receives what comes under its own name. */
static int name_dest(struct copy *c, bool beneath, struct sba_error *err)
{
	const struct side *to = c->to;
	CLI_FREE char *real = c->from->name ? NULL : realpath(c->from->path, NULL);
	const char *from = real ? real : c->from->path;
	const char *slash = strrchr(from, '/');
	if (asprintf(&c->dest, "%s%s%s%s%s", to->name ? to->name : "", to->name ? ":" : "",
		     to->path, beneath && strcmp(to->path, "/") ? "/" : "",
		     beneath ? (slash ? slash + 1 : from) : "") < 0) {
		c->dest = NULL;
		return cli_fail_nomem(err);
	}
	return 0;
}

/* ---- the copy ---- */

static int move(struct copy *c, struct sba_sandbox *s, bool into,
		struct sba_transfer_report *report, struct sba_error *err)
{
	const struct side *from = c->from, *to = c->to;
	const struct sba_transfer_options o = {
		.replace = true,
		.progress = progress,
		.refused = refused,
		.user = c,
	};
	if (from->contents && into)
		return from->name ? cli_download_contents(s, from->path, to->path, &o, report, err)
				  : cli_upload_contents(s, from->path, to->path, &o, report, err);
	return from->name ? sba_sandbox_download(s, from->path, to->path, &o, report, err)
			  : sba_sandbox_upload(s, from->path, to->path, &o, report, err);
}

/* Whether a folder comes; what is inside is asked only where it matters. */
static int comes_folder(const struct side *from, const struct place *p, struct sba_sandbox *s,
			struct sba_error *err)
{
	if (!from->name)
		return is_folder(from->path);
	return from->contents || (p->there && !p->folder && ask(s, "-d", from->path, 0, err) == 1);
}

static int transfer(struct copy *c, struct sba_transfer_report *report, struct sba_error *err)
{
	const struct side *from = c->from, *to = c->to;
	struct sba_sandbox *s = NULL;
	struct place p = { 0 };
	int rc = cli_sandbox(c->cli, from->name ? from->name : to->name, &s, err);
	if (rc == 0 && !from->name && access(from->path, F_OK) < 0)
		rc = cli_fail(err, SBA_ENOTFOUND, NULL, "%s: %s", from->path, strerror(errno));
	if (rc == 0)
		rc = look(s, to, &p, err);
	if (rc == 0)
		rc = check_place(to, &p, comes_folder(from, &p, s, err), err);
	if (rc == 0)
		rc = name_dest(c, p.folder && !from->contents, err);
	if (rc == 0)
		rc = move(c, s, p.folder, report, err);
	sba_sandbox_close(s);
	cli_status_clear(&c->cli->status);
	return rc;
}

static int copy(struct cli *cli, const struct side *from, const struct side *to)
{
	struct sba_error err;
	struct sba_transfer_report report = { 0 };
	if (!from->name == !to->name)
		return cli_usage(cli, "as in:  sandbox-agent cp calm-fox:/data ./data",
				 "one side is NAME:PATH, the other is here");
	CLI_JSON json_t *names = json_array();
	struct copy c = {
		.cli = cli,
		.from = from,
		.to = to,
		.since_ms = now_ms(),
		.refused = names,
	};
	int rc = transfer(&c, &report, &err);
	if (rc == 0)
		told(&c, &report);
	free(c.dest);
	if (cli_signals_caught())
		return cli_signals_exit(cli, 1, "the copy may be incomplete");
	return rc < 0 ? cli_report(cli, &err) : 0;
}

static int cp(struct cli *cli, const void *options, const struct cli_args *args)
{
	(void)options;
	struct side from = { 0 }, to = { 0 };
	struct sba_error err;
	int rc = side_parse(args->v[0], &from, &err);
	if (rc == 0)
		rc = side_parse(args->v[1], &to, &err);
	rc = rc < 0 ? cli_report(cli, &err) : copy(cli, &from, &to);
	side_fini(&from);
	side_fini(&to);
	return rc;
}

const struct cli_command cli_command_cp = {
	.name = "cp",
	.args = "SRC DST",
	.help = "files in or out; one side is NAME:PATH",
	.more = "A PATH inside that does not begin with / is beneath /workspace. A folder that\n"
		"is there receives what comes under its own name, from DIR/. only what is in it.\n"
		"No folder is made to hold a copy; a destination that ends in / must be one.",
	.example = "sandbox-agent cp calm-fox:/workspace/out ./out",
	.min_args = 2,
	.max_args = 2,
	.run = cp,
};
