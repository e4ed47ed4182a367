/* SPDX-License-Identifier: MIT */
/* The audit as the configuration wants it, and what commands record in it. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int cli_audit_root(struct cli *cli, const char **ret, struct sba_error *err)
{
	int rc = cli_config(cli, err);
	if (rc < 0)
		return rc;
	const char *root = sba_config_text(cli->config, "audit_root", NULL);
	const char *tmp = getenv("TMPDIR");
	if (root && root[0]) {
		*ret = root;
		return 0;
	}
	if (!cli->audit_root && asprintf(&cli->audit_root, "%s/sandbox-agent-%u",
					 tmp && tmp[0] == '/' ? tmp : "/tmp", geteuid()) < 0) {
		cli->audit_root = NULL;
		return cli_fail_nomem(err);
	}
	*ret = cli->audit_root;
	return 0;
}

bool cli_audit_options(struct cli *cli, const char *agent, struct sba_audit_options *ret)
{
	struct sba_error err;
	const struct sba_config_scope scope = { .agent = agent[0] ? agent : NULL };
	if (cli->no_audit || cli_audit_root(cli, &ret->root, &err) < 0 ||
	    !sba_config_number(cli->config, "audit", &scope))
		return false;
	ret->retention_days = sba_config_number(cli->config, "retention_days", NULL);
	return true;
}

/* Once: what cannot be written now cannot a moment later. */
static void warn(struct cli *cli, const struct sba_error *err)
{
	cli->no_audit = true;
	cli_note(cli, "warning: %s; nothing is recorded", err->text);
}

struct sba_audit *cli_record_open(struct cli *cli, struct sba_sandbox *s)
{
	struct sba_audit_options o = { 0 };
	struct sba_audit *a = NULL;
	struct sba_error err;
	if (cli_audit_options(cli, sba_sandbox_info(s)->agent, &o) &&
	    sba_audit_open(&o, s, &a, &err) < 0)
		warn(cli, &err);
	return a;
}

void cli_record(struct cli *cli, struct sba_audit *a, const char *kind, json_t *take_payload)
{
	CLI_FREE char *text = a && take_payload ? json_dumps(take_payload, JSON_COMPACT) : NULL;
	struct sba_error err;
	json_decref(take_payload);
	if (text && sba_audit_record(a, kind, text, &err) < 0)
		warn(cli, &err);
}

void cli_record_once(struct cli *cli, struct sba_sandbox *s, const char *kind, json_t *take_payload)
{
	struct sba_audit *a = s ? cli_record_open(cli, s) : NULL;
	cli_record(cli, a, kind, take_payload);
	sba_audit_close(a);
}

char *cli_audit_argv(const json_t *payload)
{
	size_t i, len = 0;
	const json_t *word;
	char *line = NULL;
	FILE *f = open_memstream(&line, &len);
	if (!f)
		return NULL;
	json_array_foreach(json_object_get(payload, "argv"), i, word) fprintf(
		f, "%s%s", i ? " " : "", json_string_value(word) ? json_string_value(word) : "?");
	fclose(f);
	return line;
}

/* Paths are bytes. One of ours says where it is, whatever folder we were in. */
static void put_path(json_t *j, const char *key, const char *path, bool here)
{
	CLI_FREE char *real = here && path ? realpath(path, NULL) : NULL;
	path = real ? real : path ? path : "-";
	CLI_FREE char *visible = sba_visible(path, strlen(path), true);
	if (visible)
		json_object_set_new(j, key, json_string(visible));
}

json_t *cli_record_transfer(const struct cli_moved *m)
{
	json_t *j = json_pack("{s:s}", "direction", m->in ? "in" : "out");
	if (!j)
		return NULL;
	put_path(j, "from", m->from, m->in);
	put_path(j, "to", m->to, !m->in);
	if (m->report) {
		json_object_set_new(j, "files", json_integer((json_int_t)m->report->files));
		json_object_set_new(j, "directories",
				    json_integer((json_int_t)m->report->directories));
		json_object_set_new(j, "bytes", json_integer((json_int_t)m->report->bytes));
		json_object_set_new(j, "refused_count",
				    json_integer((json_int_t)m->report->refused));
	}
	if (json_array_size(m->refused))
		json_object_set(j, "refused", m->refused);
	if (m->error)
		json_object_set_new(j, "error", json_string(m->error->text));
	return j;
}
