/* SPDX-License-Identifier: MIT */
/*
 * A folder goes in, a command works on it, what it made comes home: a sandbox without an
 * agent, and without a network.
 *
 * usage: round_trip IMAGE FOLDER COMMAND RESULT
 *   round_trip debian:stable-slim ./src "make > build.log" build.log
 *
 * COMMAND runs in the folder's copy, by sh; RESULT is a path in that.
 */
#include <sandbox-agent/sandbox-agent.h>

#include <stdio.h>
#include <stdlib.h>

#define INSIDE "/work"

static int upload(struct sba_sandbox *s, const char *folder, struct sba_error *err)
{
	static const char *const exclude[] = { ".git/", "*.o", NULL };
	/* What is in it, not the folder under its own name. */
	const struct sba_transfer_options options = { .contents = true, .exclude = exclude };
	struct sba_transfer_report report;
	int rc = sba_sandbox_upload(s, folder, INSIDE, &options, &report, err);
	if (rc == 0)
		fprintf(stderr, "%llu files went in\n", (unsigned long long)report.files);
	return rc;
}

/* The command's output is ours. */
static int pass_on(struct sba_process *p, struct sba_error *err)
{
	enum sba_output which;
	const char *data;
	ssize_t n;
	while ((n = sba_process_read(p, -1, &which, &data, err)) > 0)
		fwrite(data, 1, (size_t)n, which == SBA_STDOUT ? stdout : stderr);
	return (int)n;
}

static int run(struct sba_sandbox *s, const char *command, struct sba_error *err)
{
	const char *const argv[] = { "sh", "-c", command, NULL };
	const struct sba_exec_options options = { .argv = argv,
						  .workdir = INSIDE,
						  .timeout_ms = 10 * 60 * 1000 };
	struct sba_process *p;
	struct sba_exit end;
	int rc = sba_sandbox_exec(s, &options, &p, err);
	if (rc < 0)
		return rc;
	rc = pass_on(p, err);
	if (rc == 0)
		rc = sba_process_wait(p, -1, &end, err);
	sba_process_free(p);
	if (rc == 0 && sba_exit_status(&end) != 0)
		fprintf(stderr, "it ended with status %d\n", sba_exit_status(&end));
	return rc;
}

static int download(struct sba_sandbox *s, const char *result, struct sba_error *err)
{
	/* Only regular files and folders come out, whole or not at all. */
	const struct sba_transfer_options options = { .replace = true };
	char path[4096];
	snprintf(path, sizeof(path), INSIDE "/%s", result);
	return sba_sandbox_download(s, path, ".", &options, NULL, err);
}

static int work(struct sba_sandbox *s, char **argv, struct sba_error *err)
{
	int rc = upload(s, argv[2], err);
	if (rc == 0)
		rc = run(s, argv[3], err);
	if (rc == 0)
		rc = download(s, argv[4], err);
	return rc;
}

int main(int argc, char **argv)
{
	struct sba_error err = { .text = "" };
	struct sba_engine *engine;
	struct sba_sandbox *s;
	if (argc != 5) {
		fputs("usage: round_trip IMAGE FOLDER COMMAND RESULT\n", stderr);
		return 2;
	}
	const struct sba_sandbox_options options = { .image = argv[1],
						     .prefix = getenv("SANDBOX_AGENT_PREFIX"),
						     .network = "sealed",
						     .keepalive_ms = 60 * 1000 };
	int rc = sba_engine_open(NULL, &engine, &err);
	if (rc == 0) {
		rc = sba_sandbox_create(engine, &options, &s, &err);
		if (rc == 0) {
			rc = work(s, argv, &err);
			sba_sandbox_remove(s, NULL);
			sba_sandbox_close(s);
		}
		sba_engine_close(engine);
	}
	if (rc < 0)
		fprintf(stderr, "round_trip: %s\n%s\n", err.text, err.hint);
	return rc < 0;
}
