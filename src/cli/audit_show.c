/* SPDX-License-Identifier: MIT */
/* `audit show` and `logs`: a recorded session as it was shown while it ran. */
#include "cli.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

enum { LOOK_MS = 1000 };

struct show_options {
	bool follow;
};

static const struct cli_option show_options[] = {
	{ "follow", 'f', CLI_FLAG, NULL, "goes on as more is written",
	  offsetof(struct show_options, follow), 0 },
	{ 0 },
};

/* ---- one row ---- */

static const char *str(const json_t *j, const char *key)
{
	const char *s = json_string_value(json_object_get(j, key));
	return s ? s : "";
}

static int64_t num(const json_t *j, const char *key)
{
	return json_integer_value(json_object_get(j, key));
}

/* "command: ls -l  exit 0", for what is no event of the CLI's. */
static void describe(const struct sba_audit_row *row, const json_t *p, char *line, size_t size)
{
	char bytes[32];
	if (!strcmp(row->kind, "command")) {
		CLI_FREE char *argv = cli_audit_argv(p);
		snprintf(line, size, "command: %.600s  exit %lld", argv ? argv : "",
			 (long long)num(p, "exit_status"));
	} else if (!strcmp(row->kind, "transfer")) {
		char refused[48] = "";
		if (num(p, "refused_count"))
			snprintf(refused, sizeof(refused), ", %lld refused",
				 (long long)num(p, "refused_count"));
		snprintf(line, size, "transfer: %.300s -> %.300s  %s%s%s%.200s", str(p, "from"),
			 str(p, "to"), sba_format_size(num(p, "bytes"), bytes, sizeof(bytes)),
			 refused, *str(p, "error") ? ": " : "", str(p, "error"));
	} else if (!strcmp(row->kind, "connection")) {
		bool allowed = json_is_true(json_object_get(p, "allowed"));
		snprintf(line, size, "network: %.255s:%lld %s%s%.300s", str(p, "host"),
			 (long long)num(p, "port"), allowed ? "reached" : "refused",
			 *str(p, "why") ? ": " : "", str(p, "why"));
	} else {
		snprintf(line, size, "%.40s: %.700s", row->kind, row->payload);
	}
}

static void show_result(struct cli_render *r, const json_t *p)
{
	const json_t *u = json_object_get(p, "usage");
	struct sba_turn_result t = {
		.usage = { .input = num(u, "input"),
			   .cached_input = num(u, "cached_input"),
			   .output = num(u, "output") },
		.tools = (uint64_t)num(p, "tools"),
		.duration_ms = num(p, "duration_ms"),
	};
	const char *verdict = str(p, "verdict");
	for (int v = 0; v <= SBA_VERDICT_ENGINE_LOST; v++) {
		if (!strcmp(sba_verdict_name((enum sba_verdict)v), verdict))
			t.verdict = (enum sba_verdict)v;
	}
	cli_render_end(r);
	cli_render_result(r, &t);
}

static void show_ours(struct cli *cli, struct cli_render *r, const struct sba_audit_row *row)
{
	char line[1024];
	CLI_JSON json_t *p = json_loads(row->payload, 0, NULL);
	if (!strcmp(row->kind, "result")) {
		show_result(r, p);
		return;
	}
	cli_render_end(r);
	if (!strcmp(row->kind, "prompt")) {
		CLI_FREE char *prompt = cli_line(&cli->look, str(p, "text"), 0);
		printf("> %s\n", prompt ? prompt : "");
		return;
	}
	describe(row, p, line, sizeof(line));
	CLI_FREE char *shown = cli_line(&cli->look, line, 0);
	printf("%s %s\n", cli_mark(&cli->look, CLI_MARK_DOT), shown ? shown : "");
}

static void show_row(struct cli *cli, struct cli_render *r, const struct sba_audit_row *row)
{
	if (cli->json)
		printf("%.*s\n", (int)row->len, row->text);
	else if (row->is_event)
		cli_render_event(r, &row->event);
	else
		show_ours(cli, r, row);
}

/* ---- all of them ---- */

/* True once there is nothing more to wait for. */
static bool wait_more(const struct sba_audit_reader *reader)
{
	struct pollfd p[] = { { .fd = sba_audit_reader_fd(reader), .events = POLLIN },
			      { .fd = cli_signals_fd(), .events = POLLIN } };
	poll(p, CLI_LEN(p), LOOK_MS);
	return cli_signals_caught() || ferror(stdout);
}

/* The record of a sandbox that ends with its turn is whole once that is over. */
static bool will_end(const struct sba_audit_session *s)
{
	CLI_JSON json_t *status = json_loads(s->status, 0, NULL);
	const json_t *turns = json_object_get(status, "turns");
	const json_t *last = json_array_get(turns, json_array_size(turns) - 1);
	return json_is_true(json_object_get(last, "one_turn"));
}

static int show_all(struct cli *cli, struct cli_render *r, const struct sba_audit_session *s,
		    bool follow, struct sba_error *err)
{
	struct sba_audit_reader *reader = NULL;
	const struct sba_audit_row *row;
	int rc = sba_audit_reader_open(s, &reader, err);
	bool ends = will_end(s), over = false;
	while (rc >= 0 && !over) {
		/* Asked before reading: what was written before the end is read after it. */
		bool busy = sba_audit_reader_busy(reader);
		while ((rc = sba_audit_reader_next(reader, 0, &row, err)) > 0 && !ferror(stdout))
			show_row(cli, r, row);
		fflush(stdout);
		over = rc < 0 || !follow || (ends && !busy) || wait_more(reader);
	}
	cli_render_end(r);
	if (rc >= 0 && reader && sba_audit_reader_bad(reader))
		cli_note(cli, "%llu lines are no events: passed over",
			 (unsigned long long)sba_audit_reader_bad(reader));
	sba_audit_reader_close(reader);
	return rc < 0 ? rc : 0;
}

static int show_session(struct cli *cli, const struct sba_audit_session *s, bool follow)
{
	struct cli_look look = cli->look;
	struct cli_status none = { 0 };
	struct sba_error err;
	/* All of it is data here. */
	look.err_tty = look.out_tty;
	look.err_colour = look.out_colour;
	struct cli_render r = {
		.look = &look,
		.status = &none,
		.out = stdout,
		.err = stdout,
		.verbose = cli->verbose,
	};
	/* What follows is as it was recorded, and has no version of its own. */
	if (cli->json)
		cli_json_first(json_pack("{s:s, s:s, s:s}", "type", "record", "name", s->name,
					 "path", s->path));
	else if (!cli->quiet)
		printf("%s %s %s %s sandbox %s\n", s->agent[0] ? s->agent : "no agent",
		       cli_mark(&look, CLI_MARK_DOT), s->name, cli_mark(&look, CLI_MARK_DOT),
		       s->sandbox);
	int rc = show_all(cli, &r, s, follow, &err);
	cli_render_fini(&r);
	if (rc < 0)
		return cli_report(cli, &err);
	return ferror(stdout) ? 1 : 0;
}

static int prepare(struct cli *cli, bool follow, struct sba_error *err)
{
	int rc = follow && !cli->cancel ? sba_cancel_new(&cli->cancel, err) : 0;
	return rc == 0 && follow ? cli_signals_init(cli->cancel, err) : rc;
}

static int show(struct cli *cli, const void *options, const struct cli_args *args)
{
	const struct show_options *o = options;
	const struct sba_audit_session *s = NULL;
	struct sba_audit_list *l = NULL;
	struct sba_error err;
	int rc = prepare(cli, o->follow, &err);
	if (rc == 0)
		rc = cli_audit_find(cli, args->v[0], &l, &s, &err);
	if (rc < 0 || !s)
		return cli_report(cli, &err);
	int status = show_session(cli, s, o->follow);
	sba_audit_list_free(l);
	return status;
}

const struct cli_command cli_command_audit_show = {
	.name = "audit show",
	.args = "ID",
	.help = "a recorded session, readable; --json: its events as they are",
	.more = "The beginning of an ID that no other has will do.",
	.example = "sandbox-agent audit show 6b0d7a46 --follow",
	.tables = { show_options },
	.options_size = sizeof(struct show_options),
	.min_args = 1,
	.max_args = 1,
	.run = show,
};

/* ---- logs ---- */

static int logs(struct cli *cli, const void *options, const struct cli_args *args)
{
	const struct show_options *o = options;
	const struct sba_audit_filter f = { .sandbox = args->v[0] };
	struct sba_audit_list *l = NULL;
	struct sba_error err;
	const char *root;
	int rc = prepare(cli, o->follow, &err);
	if (rc == 0)
		rc = cli_audit_root(cli, &root, &err);
	if (rc == 0)
		rc = sba_audit_list(root, &f, &l, &err);
	if (rc == 0 && sba_audit_list_count(l) == 0)
		rc = cli_fail(&err, SBA_ENOTFOUND, "what there is:  sandbox-agent audit ls",
			      "nothing is recorded of sandbox '%s'", args->v[0]);
	const struct sba_audit_session *s = rc < 0 ? NULL : sba_audit_list_at(l, 0);
	int status = s ? show_session(cli, s, o->follow) : cli_report(cli, &err);
	sba_audit_list_free(l);
	return status;
}

const struct cli_command cli_command_logs = {
	.name = "logs",
	.args = "NAME",
	.help = "what the agent in NAME said and did, also when NAME is gone",
	.example = "sandbox-agent logs calm-fox -f",
	.tables = { show_options },
	.options_size = sizeof(struct show_options),
	.min_args = 1,
	.max_args = 1,
	.run = logs,
};
