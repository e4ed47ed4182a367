/* SPDX-License-Identifier: MIT */
/* `cp`: files into a sandbox and out of it. */
#include "cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct cp_options {
	bool no_clobber, gitignore, set_id, container;
	struct cli_list exclude;
	int64_t max_size, max_files, timeout;
};
#define FIELD(f) offsetof(struct cp_options, f)

static const struct cli_option cp_options[] = {
	{ "no-clobber", 'n', CLI_FLAG, NULL, "files that are there stay as they are",
	  FIELD(no_clobber), 0 },
	{ "exclude", 0, CLI_LIST, "PATTERN", "stays behind, as a line of a .gitignore",
	  FIELD(exclude), 0 },
	{ "gitignore", 0, CLI_FLAG, NULL, "in: what git ignores stays behind, and .git",
	  FIELD(gitignore), 0 },
	{ "set-id", 0, CLI_FLAG, NULL, "in: keeps set-user-id and set-group-id bits", FIELD(set_id),
	  0 },
	{ "max-size", 0, CLI_SIZE, "SIZE", "out: at most so much (64g)", FIELD(max_size), 1 },
	{ "max-files", 0, CLI_INT, "N", "out: at most so many entries (4 million)",
	  FIELD(max_files), 1 },
	{ "timeout", 0, CLI_DURATION, "TIME", "for all of it (transfer_timeout: 5m)",
	  FIELD(timeout), 0 },
	CLI_CONTAINER_OPTION(FIELD(container)),
	{ 0 },
};

/* One side of a copy: NAME:PATH, a path here, or "-". */
struct side {
	char *name;        /* NULL: here */
	char *path;        /* without slashes at its end; NULL: a tar stream */
	const char *given; /* of an inside one: as it was said */
	bool contents;     /* it ended in "/.": what is in the folder */
	bool is_folder;    /* it ended in "/": so it was said */
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
	s->contents = !strcmp(s->path, ".") || (n > 1 && !strcmp(s->path + n - 2, "/."));
	if (!s->contents || n == 1)
		return;
	s->path[n > 2 ? n - 2 : 1] = '\0';
	strip_slashes(s->path);
}

/* As docker has it: what begins with / or . is here, else a colon ends a name. */
static int side_parse(const char *arg, struct side *ret, struct sba_error *err)
{
	size_t service = cli_remote_prefix(arg), len = service + strcspn(arg + service, ":/");
	bool inside = arg[0] != '.' && len > 0 && arg[len] == ':';
	if (!strcmp(arg, "-"))
		return 0;
	if (!*arg)
		return cli_fail(err, SBA_EINVAL, NULL, "a path is empty");
	if (inside)
		ret->name = strndup(arg, len);
	ret->given = inside ? arg + len + 1 : "/";
	ret->path = inside ? cli_inside_path(arg + len + 1) : strdup(arg);
	if (!ret->path || (inside && !ret->name))
		return cli_fail_nomem(err);
	take_end(ret);
	return 0;
}

struct copy {
	struct cli *cli;
	const struct cp_options *options;
	struct side *from, *to;
	struct sba_sandbox *sandbox;
	char *dest; /* in full, as it is shown */
	struct cli_transfer shown;
	struct cli_stream stream;
};

static void told(struct copy *c, const struct sba_transfer_report *r)
{
	char size[32], files[32], kept[64] = "";
	sba_format_size((int64_t)r->bytes, size, sizeof(size));
	if (c->cli->json) {
		cli_json_line(json_pack("{s:i, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:O}", "v", 1,
					"dest", c->dest, "files", (json_int_t)r->files,
					"directories", (json_int_t)r->directories, "bytes",
					(json_int_t)r->bytes, "symlinks", (json_int_t)r->symlinks,
					"kept", (json_int_t)r->kept, "refused_count",
					(json_int_t)r->refused, "refused", c->shown.refused));
		return;
	}
	if (r->kept)
		snprintf(kept, sizeof(kept), "  %llu kept", (unsigned long long)r->kept);
	const char *from = c->from->path ? c->from->path : "-";
	cli_note(c->cli, "%s%s%s%s -> %s  %s file%s  %s%s", c->from->name ? c->from->name : "",
		 c->from->name ? ":" : "", from, c->from->contents ? "/." : "", c->dest,
		 cli_thousands(r->files, files), r->files == 1 ? "" : "s", size, kept);
	cli_transfer_tell_refused(&c->shown, r->refused);
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

/* 1 a folder, 0 something else, or why not. */
static int inside_is_folder(struct sba_sandbox *s, const char *path, struct sba_error *err)
{
	struct sba_file_stat st;
	int rc = sba_sandbox_stat(s, path, &st, err);
	return rc < 0 ? rc : S_ISDIR(st.mode);
}

static int look_inside(struct sba_sandbox *s, const char *path, struct place *ret,
		       struct sba_error *err)
{
	CLI_FREE char *parent = parent_of(path);
	if (!parent)
		return cli_fail_nomem(err);
	int folder = inside_is_folder(s, path, err);
	if (folder < 0 && folder != SBA_ENOTFOUND)
		return folder;
	int in = folder >= 0 ? 1 : inside_is_folder(s, parent, err);
	if (in < 0 && in != SBA_ENOTFOUND)
		return in;
	*ret = (struct place){ .there = folder >= 0, .folder = folder == 1, .parent = in == 1 };
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
	if (!p->folder && (to->is_folder || to->contents) && !folder_comes)
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

static struct sba_transfer_options options_of(struct copy *c)
{
	const struct cp_options *o = c->options;
	return (struct sba_transfer_options){
		.timeout_ms = o->timeout,
		.contents = c->from->contents,
		.replace = true,
		.no_clobber = o->no_clobber,
		.set_id = o->set_id,
		.gitignore = o->gitignore,
		.exclude = (const char *const *)o->exclude.v,
		.max_bytes = (uint64_t)o->max_size,
		.max_entries = (uint64_t)o->max_files,
		.progress = c->cli->status.to ? cli_transfer_progress : NULL,
		.refused = cli_transfer_refused,
		.user = &c->shown,
	};
}

/* Whether a folder comes; what is inside is asked only where it matters. */
static int comes_folder(struct copy *c, const struct place *p, struct sba_error *err)
{
	const struct side *from = c->from;
	if (!from->name)
		return is_folder(from->path);
	bool matters = p->there ? !p->folder : c->to->is_folder;
	return from->contents || (matters && inside_is_folder(c->sandbox, from->path, err) == 1);
}

static int copy_paths(struct copy *c, struct sba_transfer_report *report, struct sba_error *err)
{
	const struct side *from = c->from, *to = c->to;
	const struct sba_transfer_options o = options_of(c);
	struct place p = { 0 };
	if (!from->name && access(from->path, F_OK) < 0)
		return cli_fail(err, SBA_ENOTFOUND, NULL, "%s: %s", from->path, strerror(errno));
	int rc = look(c->sandbox, to, &p, err);
	if (rc == 0)
		rc = check_place(to, &p, comes_folder(c, &p, err), err);
	if (rc == 0)
		rc = name_dest(c, p.folder && !from->contents, err);
	if (rc < 0)
		return rc;
	return from->name ? sba_sandbox_download(c->sandbox, from->path, to->path, &o, report, err)
			  : sba_sandbox_upload(c->sandbox, from->path, to->path, &o, report, err);
}

static int copy_tar(struct copy *c, struct sba_transfer_report *report, struct sba_error *err)
{
	const struct sba_transfer_options o = options_of(c);
	if (c->from->path)
		return sba_sandbox_download_tar(c->sandbox, c->from->path, cli_stream_write,
						&c->stream, &o, err);
	c->dest = NULL;
	if (asprintf(&c->dest, "%s:%s", c->to->name, c->to->path) < 0)
		return cli_fail_nomem(err);
	return sba_sandbox_upload_tar(c->sandbox, cli_stream_read, &c->stream, c->to->path, &o,
				      report, err);
}

static void record(struct copy *c, const struct sba_transfer_report *r, const struct sba_error *why)
{
	const struct side *from = c->from, *to = c->to;
	const struct cli_moved m = {
		.in = to->name,
		.from = from->path,
		.to = to->path,
		.report = r,
		.refused = c->shown.refused,
		.error = why,
	};
	cli_record_once(c->cli, c->sandbox, "transfer", cli_record_transfer(&m));
}

static int transfer(struct copy *c, struct sba_transfer_report *report, struct sba_error *err)
{
	struct side *inside = c->from->name ? c->from : c->to;
	int rc = cli_sandbox_or_container(c->cli, inside->name, c->options->container, &c->sandbox,
					  err);
	if (rc == 0)
		rc = cli_inside_settle(c->sandbox, inside->given, &inside->path, err);
	if (rc == 0)
		rc = c->from->path && c->to->path ? copy_paths(c, report, err)
						  : copy_tar(c, report, err);
	rc = cli_settings_timeout(c->cli, "transfer_timeout", rc, err);
	record(c, report, rc < 0 ? err : NULL);
	sba_sandbox_close(c->sandbox);
	cli_status_clear(&c->cli->status);
	return rc;
}

static int copy(struct cli *cli, const struct cp_options *o, struct side *from, struct side *to)
{
	struct sba_error err;
	struct sba_transfer_report report = { 0 };
	struct copy c = {
		.cli = cli, .options = o, .from = from, .to = to, .stream = { .hurry = true }
	};
	cli_transfer_init(&c.shown, cli, from->path ? from->path : "-");
	int rc = transfer(&c, &report, &err);
	/* A tar on stdout speaks for itself, but for what is not in it. */
	if (rc == 0 && to->path)
		told(&c, &report);
	else if (rc == 0)
		cli_transfer_tell_refused(&c.shown, json_array_size(c.shown.refused));
	cli_transfer_fini(&c.shown);
	free(c.dest);
	if (cli_signals_caught())
		return cli_signals_exit(cli, 1, "nothing of it is in place");
	if (c.stream.deaf)
		return EXIT_FAILURE;
	if (rc == SBA_ELIMIT && !*err.hint)
		snprintf(err.hint, sizeof(err.hint), "more of it:  --max-size, --max-files");
	return rc < 0 ? cli_report(cli, &err) : 0;
}

static int check_sides(struct cli *cli, const struct cp_options *o, const struct side *from,
		       const struct side *to)
{
	if (from->name && to->name)
		return cli_usage(cli,
				 "by way of here:  sandbox-agent cp A:PATH - | sandbox-agent cp - "
				 "B:PATH",
				 "both sides are in a sandbox");
	if (!from->name && !to->name)
		return cli_usage(cli, "as in:  sandbox-agent cp calm-fox:/data ./data",
				 "one side is NAME:PATH, the other is here");
	if (from->name && (o->gitignore || o->set_id))
		return cli_usage(cli, NULL, "--%s is for copies into a sandbox",
				 o->gitignore ? "gitignore" : "set-id");
	if (!from->path && o->gitignore)
		return cli_usage(cli, NULL, "--gitignore is for folders, not for a tar");
	if (!from->name && (o->max_size || o->max_files))
		return cli_usage(cli, NULL, "--%s is for copies out of a sandbox",
				 o->max_size ? "max-size" : "max-files");
	if (!to->path && o->exclude.n)
		return cli_usage(cli, "tar's own --exclude, where it is unpacked",
				 "--exclude is not for a tar on stdout");
	if (!to->path && isatty(STDOUT_FILENO))
		return cli_usage(cli, "as in:  sandbox-agent cp calm-fox:/data - | tar -t",
				 "a tar does not go to a terminal");
	return 0;
}

static int cp(struct cli *cli, const void *options, const struct cli_args *args)
{
	struct side from = { 0 }, to = { 0 };
	struct sba_error err;
	int status = 0;
	int rc = side_parse(args->v[0], &from, &err);
	if (rc == 0)
		rc = side_parse(args->v[1], &to, &err);
	if (rc < 0)
		status = cli_report(cli, &err);
	if (status == 0)
		status = check_sides(cli, options, &from, &to);
	if (status == 0)
		status = copy(cli, options, &from, &to);
	side_fini(&from);
	side_fini(&to);
	return status;
}

const struct cli_command cli_command_cp = {
	.name = "cp",
	.args = "SRC DST",
	.help = "files in or out; one side is NAME:PATH, the other may be - for a tar",
	.more = "A PATH inside that does not begin with / is beneath /workspace. A folder that\n"
		"is there receives what comes under its own name, from DIR/. only what is in it;\n"
		"one of that name is merged into. A folder never replaces a file, nor the "
		"reverse.\n"
		"No folder is made to hold a copy; a destination that ends in / must be one.\n"
		"All of it is put in place at the end, or nothing. Out of a sandbox come files "
		"and\n"
		"folders only; a link inside is copied by what it leads to: NAME:LINK/.",
	.example = "sandbox-agent cp calm-fox:/workspace/out ./out",
	.tables = { cp_options },
	.options_size = sizeof(struct cp_options),
	.min_args = 2,
	.max_args = 2,
	.run = cp,
};
