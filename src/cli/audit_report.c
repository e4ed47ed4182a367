/* SPDX-License-Identifier: MIT */
/* `audit report`: one page about a session for whoever reviews it. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

enum { LABEL_COLUMNS = 10, LIST_MAX = 1000 };

/* What the page says; JSON all through, so that --json is the same page. */
struct page {
	json_t *status;   /* as it is */
	json_t *files;    /* path -> change */
	json_t *commands; /* [{"command", "exit_code", "by"}] */
	json_t *calls;    /* call id -> command, while it runs */
	json_t *hosts;    /* "host:port" -> {"reached", "refused", "sent", "received", "why"} */
	json_t *moved;    /* transfers */
	json_t *other;    /* forks, dumps, … */
	const struct sba_audit_session *session;
};

static const char *str(const json_t *j, const char *key)
{
	const char *s = json_string_value(json_object_get(j, key));
	return s ? s : "";
}

static int64_t num(const json_t *j, const char *key)
{
	return json_integer_value(json_object_get(j, key));
}

/* ---- collecting ---- */

static void add_command(struct page *p, const char *by, const char *command, json_t *take_exit)
{
	if (json_array_size(p->commands) < LIST_MAX)
		json_array_append_new(p->commands, json_pack("{s:s, s:s, s:O}", "by", by, "command",
							     command, "exit_code", take_exit));
	json_decref(take_exit);
}

static json_t *exit_of(const struct sba_event *e)
{
	if (e->has_exit_code)
		return json_integer(e->exit_code);
	/* Some CLIs say only that it failed. */
	return e->failed ? json_string("failed") : json_integer(0);
}

static void add_event(struct page *p, const struct sba_event *e)
{
	if (e->kind == SBA_EVENT_FILE_CHANGE && e->path)
		json_object_set_new(p->files, e->path,
				    json_string(e->change ? e->change : "modified"));
	if (e->kind == SBA_EVENT_TOOL_CALL && e->tool && !strcmp(e->tool, "bash"))
		json_object_set_new(p->calls, e->call_id ? e->call_id : "",
				    json_string(e->summary ? e->summary : ""));
	if (e->kind != SBA_EVENT_TOOL_RESULT)
		return;
	const char *id = e->call_id ? e->call_id : "";
	const json_t *call = json_object_get(p->calls, id);
	if (!call)
		return;
	add_command(p, "agent", json_string_value(call), exit_of(e));
	json_object_del(p->calls, id);
}

static void add_connection(struct page *p, const json_t *c)
{
	char name[320];
	bool allowed = json_is_true(json_object_get(c, "allowed"));
	snprintf(name, sizeof(name), "%.255s:%lld", str(c, "host"), (long long)num(c, "port"));
	json_t *h = json_object_get(p->hosts, name);
	if (!h) {
		h = json_pack("{s:i, s:i, s:i, s:i}", "reached", 0, "refused", 0, "sent", 0,
			      "received", 0);
		if (!h || json_object_set_new(p->hosts, name, h) < 0)
			return;
	}
	const char *key = allowed ? "reached" : "refused";
	json_object_set_new(h, key, json_integer(num(h, key) + 1));
	json_object_set_new(h, "sent", json_integer(num(h, "sent") + num(c, "sent")));
	json_object_set_new(h, "received", json_integer(num(h, "received") + num(c, "received")));
	if (*str(c, "why"))
		json_object_set(h, "why", json_object_get(c, "why"));
}

static void add_ours(struct page *p, const struct sba_audit_row *row)
{
	CLI_JSON json_t *j = json_loads(row->payload, 0, NULL);
	if (!strcmp(row->kind, "connection")) {
		add_connection(p, j);
	} else if (!strcmp(row->kind, "command")) {
		CLI_FREE char *argv = cli_audit_argv(j);
		json_t *status = json_object_get(j, "exit_status");
		add_command(p, "user", argv ? argv : "",
			    status ? json_incref(status) : json_null());
	} else if (!strcmp(row->kind, "transfer")) {
		json_array_append(p->moved, j);
	} else if (strcmp(row->kind, "prompt") != 0 && strcmp(row->kind, "result") != 0) {
		json_array_append_new(p->other,
				      json_pack("{s:s, s:O}", "kind", row->kind, "payload", j));
	}
}

static int collect(struct page *p, struct sba_error *err)
{
	struct sba_audit_reader *reader = NULL;
	const struct sba_audit_row *row;
	int rc = sba_audit_reader_open(p->session, &reader, err);
	while (rc >= 0 && (rc = sba_audit_reader_next(reader, 0, &row, err)) > 0) {
		if (row->is_event)
			add_event(p, &row->event);
		else
			add_ours(p, row);
	}
	sba_audit_reader_close(reader);
	const char *id;
	json_t *call;
	/* What never answered was begun all the same. */
	json_object_foreach(p->calls, id, call)
		add_command(p, "agent", json_string_value(call), json_null());
	return rc < 0 ? rc : 0;
}

/* ---- showing ---- */

/* "label     text", the label only where it is not the last one's. */
static void say(struct cli *cli, const char *label, const char *text)
{
	CLI_FREE char *shown = cli_line(&cli->look, text,
					cli->look.out_tty ? cli->look.columns - LABEL_COLUMNS : 0);
	printf("%-*s%s\n", LABEL_COLUMNS, label, shown ? shown : "");
}

static void say_turns(struct cli *cli, const struct page *p)
{
	size_t i;
	const json_t *t;
	json_array_foreach(json_object_get(p->status, "turns"), i, t)
	{
		char line[600], time[32];
		CLI_FREE char *prompt = cli_line(&cli->look, str(t, "prompt"), 60);
		cli_time(num(t, "duration_ms") / 100 * 100, time, sizeof(time));
		snprintf(line, sizeof(line), "%s  %s  %s%s%.300s", str(t, "verdict"), time,
			 prompt ? prompt : "", *str(t, "error") ? "  " : "", str(t, "error"));
		say(cli, i == 0 ? "turns" : "", line);
	}
}

static void say_files(struct cli *cli, const struct page *p)
{
	const char *path, *label = "files";
	json_t *change;
	json_object_foreach(p->files, path, change)
	{
		char line[1024];
		const char *how = json_string_value(change);
		char mark = how && how[0] == 'c' ? 'A' : how && how[0] == 'd' ? 'D' : 'M';
		snprintf(line, sizeof(line), "%c %.1000s", mark, path);
		say(cli, label, line);
		label = "";
	}
}

static void say_commands(struct cli *cli, const struct page *p)
{
	size_t i;
	const json_t *c;
	json_array_foreach(p->commands, i, c)
	{
		char line[1024], how[32] = "no end";
		const json_t *status = json_object_get(c, "exit_code");
		if (json_is_integer(status))
			snprintf(how, sizeof(how), "exit %lld",
				 (long long)json_integer_value(status));
		else if (json_is_string(status))
			snprintf(how, sizeof(how), "failed");
		snprintf(line, sizeof(line), "%-8s  %.900s%s", how, str(c, "command"),
			 !strcmp(str(c, "by"), "user") ? "  (by exec)" : "");
		say(cli, i == 0 ? "commands" : "", line);
	}
}

static void say_hosts(struct cli *cli, const struct page *p)
{
	const char *host, *label = "network";
	json_t *h;
	json_object_foreach(p->hosts, host, h)
	{
		char line[1024], in[32];
		size_t len = (size_t)snprintf(line, sizeof(line), "%s ", host);
		if (num(h, "reached"))
			len += (size_t)snprintf(
				line + len, sizeof(line) - len, " reached %lld times, %s received",
				(long long)num(h, "reached"),
				sba_format_size(num(h, "received"), in, sizeof(in)));
		if (num(h, "refused"))
			snprintf(line + len, sizeof(line) - len, " refused %lld times: %.300s",
				 (long long)num(h, "refused"), str(h, "why"));
		say(cli, label, line);
		label = "";
	}
}

static void say_moved(struct cli *cli, const struct page *p)
{
	size_t i;
	const json_t *m;
	json_array_foreach(p->moved, i, m)
	{
		char line[1024], size[32], refused[64] = "";
		if (num(m, "refused_count"))
			snprintf(refused, sizeof(refused), ", %lld refused",
				 (long long)num(m, "refused_count"));
		snprintf(line, sizeof(line), "%.400s -> %.400s  %s%s%s", str(m, "from"),
			 str(m, "to"), sba_format_size(num(m, "bytes"), size, sizeof(size)),
			 refused, *str(m, "error") ? ", failed" : "");
		say(cli, i == 0 ? "copied" : "", line);
	}
}

static void say_usage(struct cli *cli, const struct sba_audit_session *s)
{
	char in[32], cached[32], out[32], line[200], cost[48] = "";
	if (s->usage.cost_usd > 0)
		snprintf(cost, sizeof(cost), "  $%.4f", s->usage.cost_usd);
	snprintf(line, sizeof(line), "%s in (%s cached)  %s out%s",
		 cli_thousands((uint64_t)s->usage.input, in),
		 cli_thousands((uint64_t)s->usage.cached_input, cached),
		 cli_thousands((uint64_t)s->usage.output, out), cost);
	say(cli, "tokens", line);
}

static void print_page(struct cli *cli, const struct page *p)
{
	const struct sba_audit_session *s = p->session;
	char line[512];
	const char *version = str(p->status, "cli_version");
	snprintf(line, sizeof(line), "%.40s%s%.40s  sandbox %.80s  %.200s",
		 s->agent[0] ? s->agent : "no agent", version[0] ? " " : "", version, s->sandbox,
		 s->image);
	say(cli, "session", s->name);
	say(cli, "agent", line);
	if (s->prompt[0])
		say(cli, "task", s->prompt);
	say(cli, "verdict", s->verdict[0] ? s->verdict : "no turn");
	say_turns(cli, p);
	say_usage(cli, s);
	say_files(cli, p);
	say_commands(cli, p);
	say_hosts(cli, p);
	say_moved(cli, p);
	size_t i;
	const json_t *o;
	json_array_foreach(p->other, i, o)
	{
		CLI_FREE char *text = json_dumps(json_object_get(o, "payload"), JSON_COMPACT);
		snprintf(line, sizeof(line), "%.40s %.400s", str(o, "kind"), text ? text : "");
		say(cli, i == 0 ? "other" : "", line);
	}
	say(cli, "record", s->path);
}

static void print_json(const struct page *p)
{
	cli_json_first(json_pack("{s:s, s:s, s:s, s:s, s:O, s:O, s:O, s:O, s:O, s:O}", "name",
				 p->session->name, "path", p->session->path, "verdict",
				 p->session->verdict, "task", p->session->prompt, "status",
				 p->status, "files", p->files, "commands", p->commands, "hosts",
				 p->hosts, "transfers", p->moved, "other", p->other));
}

static void page_fini(struct page *p)
{
	json_t **all[] = { &p->status, &p->files, &p->commands, &p->calls,
			   &p->hosts,  &p->moved, &p->other };
	for (size_t i = 0; i < CLI_LEN(all); i++)
		cli_free_json(all[i]);
}

static int report(struct cli *cli, const void *options, const struct cli_args *args)
{
	(void)options;
	struct sba_audit_list *l = NULL;
	struct sba_error err;
	struct page p = { .files = json_object(),
			  .commands = json_array(),
			  .calls = json_object(),
			  .hosts = json_object(),
			  .moved = json_array(),
			  .other = json_array() };
	int rc = cli_audit_find(cli, args->v[0], &l, &p.session, &err);
	if (rc == 0) {
		p.status = json_loads(p.session->status, 0, NULL);
		rc = collect(&p, &err);
	}
	if (rc == 0 && cli->json)
		print_json(&p);
	else if (rc == 0)
		print_page(cli, &p);
	page_fini(&p);
	sba_audit_list_free(l);
	return rc < 0 ? cli_report(cli, &err) : 0;
}

const struct cli_command cli_command_audit_report = {
	.name = "audit report",
	.args = "ID",
	.help = "one page for a review: task, verdict, files, commands, hosts, tokens",
	.example = "sandbox-agent audit report 6b0d7a46",
	.min_args = 1,
	.max_args = 1,
	.run = report,
};
