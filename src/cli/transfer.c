/* SPDX-License-Identifier: MIT */
/* Files on their way, as they are shown; our own streams as the library's. */
#include "cli.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* How one and many of a kind are counted. */
static const char *const kinds[SBA_REFUSED_KINDS][2] = {
	[SBA_REFUSED_SYMLINK] = { "symlink", "symlinks" },
	[SBA_REFUSED_LEAVING] = { "link that leads out", "links that lead out" },
	[SBA_REFUSED_DEVICE] = { "device", "devices" },
	[SBA_REFUSED_FIFO] = { "fifo", "fifos" },
	[SBA_REFUSED_SOCKET] = { "socket", "sockets" },
	[SBA_REFUSED_NAME] = { "unsafe name", "unsafe names" },
	[SBA_REFUSED_DUPLICATE] = { "name that came twice", "names that came twice" },
	[SBA_REFUSED_UNREADABLE] = { "unreadable", "unreadable" },
	[SBA_REFUSED_OTHER] = { "of another kind", "of another kind" },
};

static int64_t now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void cli_transfer_init(struct cli_transfer *t, struct cli *cli, const char *what)
{
	*t = (struct cli_transfer){
		.cli = cli,
		.what = what,
		.since_ms = now_ms(),
		.refused = json_array(),
	};
}

void cli_transfer_fini(struct cli_transfer *t)
{
	json_decref(t->refused);
	t->refused = NULL;
}

/* "412 MB of 512 MB  338 MB/s  3s left"; what is not known is left out. */
static void put_amounts(char *line, size_t size, const struct sba_transfer_progress *p,
			int64_t took_ms)
{
	char done[32], total[48] = "", rate[32], left[48] = "", time[32];
	int64_t per_s = (int64_t)p->bytes * 1000 / (took_ms > 0 ? took_ms : 1);
	if (p->total) {
		char all[32];
		snprintf(total, sizeof(total), " of %s",
			 sba_format_size((int64_t)p->total, all, sizeof(all)));
	}
	if (p->total >= p->bytes && per_s > 0)
		snprintf(left, sizeof(left), "  %s left",
			 cli_time((int64_t)(p->total - p->bytes) / per_s * 1000, time,
				  sizeof(time)));
	snprintf(line, size, "%s%s  %s/s%s", sba_format_size((int64_t)p->bytes, done, sizeof(done)),
		 total, sba_format_size(per_s, rate, sizeof(rate)), left);
}

void cli_transfer_progress(void *transfer, const struct sba_transfer_progress *p)
{
	enum { EVERY_MS = 100, WHAT_COLUMNS = 40 };
	struct cli_transfer *t = transfer;
	char line[512], amounts[256], files[32];
	int64_t now = now_ms();
	if (now - t->shown_ms < EVERY_MS)
		return;
	t->shown_ms = now;
	CLI_FREE char *what = cli_line(&t->cli->look, t->what, WHAT_COLUMNS);
	put_amounts(amounts, sizeof(amounts), p, now - t->since_ms);
	snprintf(line, sizeof(line), "%s  %s file%s  %s", what ? what : "",
		 cli_thousands(p->files, files), p->files == 1 ? "" : "s", amounts);
	cli_status_set(&t->cli->status, line);
}

void cli_transfer_refused(void *transfer, const char *name, enum sba_refusal why)
{
	enum { NAMES_MAX = 100000 };
	struct cli_transfer *t = transfer;
	const char *text = sba_refusal_text(why);
	t->by_kind[why < SBA_REFUSED_KINDS ? why : SBA_REFUSED_OTHER]++;
	CLI_FREE char *visible = sba_visible(name, strlen(name), true);
	if (visible && json_array_size(t->refused) < NAMES_MAX)
		json_array_append_new(t->refused,
				      json_pack("{s:s, s:s}", "name", visible, "why", text));
	if (t->cli->verbose && visible)
		cli_note(t->cli, "refused: %s (%s)", visible, text);
}

void cli_transfer_tell_refused(struct cli_transfer *t, uint64_t refused)
{
	char text[256] = "";
	size_t len = 0;
	if (!refused)
		return;
	for (size_t k = 0; k < SBA_REFUSED_KINDS && len < sizeof(text); k++) {
		unsigned n = t->by_kind[k];
		if (n)
			len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%u %s",
						len ? ", " : "", n, kinds[k][n != 1]);
	}
	cli_note(t->cli, "refused: %s%s", text, t->cli->verbose ? "" : " (names: -v, or --json)");
}

/* ---- our own streams ---- */

static int await_stdin(const struct cli_stream *s, struct sba_error *err)
{
	enum { HURRY_MS = 30 * 1000 };
	struct pollfd p[] = { { .fd = STDIN_FILENO, .events = POLLIN },
			      { .fd = cli_signals_fd(), .events = POLLIN } };
	int n = poll(p, CLI_LEN(p), s->hurry ? HURRY_MS : -1);
	if (cli_signals_caught())
		return cli_fail(err, SBA_ECANCELED, NULL, "cancelled");
	if (n == 0)
		return cli_fail(err, SBA_ETIMEOUT, "put what yields it into a file first",
				"nothing came on stdin for %d s, and the engine locks the sandbox "
				"meanwhile",
				HURRY_MS / 1000);
	return 0;
}

ssize_t cli_stream_read(void *stream, void *buf, size_t size, struct sba_error *err)
{
	for (;;) {
		int rc = await_stdin(stream, err);
		if (rc < 0)
			return rc;
		ssize_t n = read(STDIN_FILENO, buf, size);
		if (n >= 0)
			return n;
		if (errno != EINTR && errno != EAGAIN)
			return cli_fail(err, SBA_EIO, NULL, "read stdin: %s", strerror(errno));
	}
}

int cli_stream_write(void *stream, const void *data, size_t len, struct sba_error *err)
{
	struct cli_stream *s = stream;
	if (cli_write(STDOUT_FILENO, data, len))
		return 0;
	s->deaf = errno == EPIPE;
	return cli_signals_caught()
		       ? cli_fail(err, SBA_ECANCELED, NULL, "cancelled")
		       : cli_fail(err, SBA_EIO, NULL, "write to stdout: %s", strerror(errno));
}

#define WORKSPACE "/workspace"

char *cli_inside_path(const char *path)
{
	char *whole = NULL;
	if (asprintf(&whole, "%s%s", *path == '/' ? "" : WORKSPACE "/", path) < 0)
		return NULL;
	return whole;
}

int cli_inside_settle(const struct sba_sandbox *s, const char *given, char **path,
		      struct sba_error *err)
{
	const char *workdir = sba_sandbox_workdir(s);
	char *whole = NULL;
	if (*given == '/' || !strcmp(workdir, WORKSPACE))
		return 0;
	if (asprintf(&whole, "%s%s", workdir, *path + strlen(WORKSPACE)) < 0)
		return cli_fail_nomem(err);
	free(*path);
	*path = whole;
	return 0;
}
