/* SPDX-License-Identifier: MIT */
/* The engine and the sandboxes that a command works on. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

/* 0 is "none" in the configuration and the default in options. */
static int64_t timeout_of(const struct cli *cli, const char *key)
{
	int64_t ms = sba_config_number(cli->config, key, NULL);
	return ms ? ms : -1;
}

int cli_begin(struct cli *cli, struct sba_error *err)
{
	if (cli->cancel)
		return 0;
	int rc = sba_cancel_new(&cli->cancel, err);
	if (rc == 0)
		rc = cli_signals_init(cli->cancel, err);
	return rc == 0 ? cli_config(cli, err) : rc;
}

int cli_engine(struct cli *cli, struct sba_error *err)
{
	if (cli->engine)
		return 0;
	int rc = cli_begin(cli, err);
	if (rc < 0)
		return rc;
	const struct sba_engine_options o = {
		.host = cli->host,
		.cancel = cli->cancel,
		.timeouts = {
			.start_ms = timeout_of(cli, "start_timeout"),
			.stop_ms = timeout_of(cli, "stop_timeout"),
			.session_ms = timeout_of(cli, "session_timeout"),
			.transfer_ms = timeout_of(cli, "transfer_timeout"),
		},
	};
	rc = sba_engine_open(&o, &cli->engine, err);
	/* A way to the engine that we cannot go is trouble with the engine. */
	if (rc == SBA_EUNSUPPORTED)
		err->code = rc = SBA_EENGINE;
	/* No service manager here starts an engine that is elsewhere. */
	if (rc == SBA_ECONNECT && strstr(err->text, "tcp://"))
		snprintf(err->hint, sizeof(err->hint),
			 "does an engine listen there?  it is asked for by -H, DOCKER_HOST or "
			 "docker context use");
	return rc;
}

/* Names have a made-up end: the beginning of exactly one is taken for it. */
static void hint_by_beginning(struct cli *cli, const char *name, struct sba_error *err)
{
	struct sba_list_options lo = { .prefix = cli->prefix, .brief = true };
	struct sba_sandbox_list *l = NULL;
	struct sba_error ignored;
	const char *found = NULL;
	size_t len = strlen(name), n = 0;
	if (sba_sandbox_list(cli->engine, &lo, &l, &ignored) < 0)
		return;
	for (size_t i = 0; i < sba_sandbox_list_count(l); i++) {
		const char *whole = sba_sandbox_list_at(l, i)->name;
		if (strncmp(whole, name, len) != 0)
			continue;
		found = whole;
		n++;
	}
	if (n == 1)
		snprintf(err->hint, sizeof(err->hint), "did you mean '%s'?", found);
	sba_sandbox_list_free(l);
}

int cli_sandbox(struct cli *cli, const char *name, struct sba_sandbox **ret, struct sba_error *err)
{
	if (cli_remote_prefix(name))
		return cli_remote_find(cli, name, ret, err);
	int rc = cli_engine(cli, err);
	if (rc == 0)
		rc = sba_sandbox_open(cli->engine, cli->prefix, name, ret, err);
	if (rc == SBA_ENOTFOUND && !strstr(err->text, " is gone") &&
	    strncmp(err->hint, "did you mean", 12) != 0)
		hint_by_beginning(cli, name, err);
	return rc;
}

/* A container of exactly that name is most likely what was meant. */
static void hint_container(struct cli *cli, const char *name, struct sba_error *err)
{
	struct sba_sandbox *s = NULL;
	struct sba_error why;
	int rc = sba_sandbox_open_container(cli->engine, name, &s, &why);
	if (rc == 0 && !strcmp(sba_sandbox_info(s)->name, name))
		snprintf(err->hint, sizeof(err->hint),
			 "a container has this name, which is not ours; to use it as it is:  "
			 "--container %s",
			 name);
	sba_sandbox_close(s);
}

int cli_sandbox_or_container(struct cli *cli, const char *name, bool container,
			     struct sba_sandbox **ret, struct sba_error *err)
{
	if (container) {
		int rc = cli_engine(cli, err);
		return rc == 0 ? sba_sandbox_open_container(cli->engine, name, ret, err) : rc;
	}
	int rc = cli_sandbox(cli, name, ret, err);
	if (rc == SBA_ENOTFOUND && !cli_remote_prefix(name) && !strstr(err->text, " is gone"))
		hint_container(cli, name, err);
	return rc;
}

bool cli_is_container(const struct sba_sandbox *s)
{
	return !strcmp(sba_sandbox_backend(s), "container");
}

void cli_sweep(struct cli *cli)
{
	struct sba_list_options lo = { .prefix = cli->prefix, .brief = true };
	struct sba_sandbox_list *l = NULL;
	struct sba_error ignored;
	if (sba_sandbox_list(cli->engine, &lo, &l, &ignored) == 0)
		sba_sandbox_list_free(l);
}

int cli_agent_open(struct cli *cli, const char *name, struct cli_agent *ret, struct sba_error *err)
{
	struct sba_audit_options audit = { 0 };
	struct sba_agent_options o = { .no_turns = true };
	*ret = (struct cli_agent){ 0 };
	int rc = cli_sandbox(cli, name, &ret->sandbox, err);
	if (rc == 0 && cli_audit_options(cli, sba_sandbox_info(ret->sandbox)->agent, &audit))
		o.audit = &audit;
	return rc == 0 ? sba_agent_open(ret->sandbox, &o, &ret->agent, err) : rc;
}

void cli_agent_close(struct cli_agent *a)
{
	sba_agent_close(a->agent);
	sba_sandbox_close(a->sandbox);
	*a = (struct cli_agent){ 0 };
}

int cli_agent_end(struct cli *cli, struct cli_agent *a, int rc, struct sba_error *err)
{
	cli_agent_close(a);
	if (rc == 0)
		return 0;
	if (cli_signals_caught())
		return cli_signals_exit(cli, 1, "nothing was changed by halves");
	cli_settings_timeout(cli, "session_timeout", rc, err);
	return cli_report(cli, err);
}

/* docker's words, and Podman's: they speak of the image's files. */
bool cli_unknown_user(const struct sba_error *err)
{
	return strstr(err->text, "unable to find user") || strstr(err->text, "no matching entries");
}

int cli_check_agent(const char *agent, struct sba_error *err)
{
	const char *const *names = sba_agent_names();
	char hint[256] = "";
	size_t n = 0, len = 0;
	for (; names[n]; n++) {
		if (!strcmp(names[n], agent))
			return 0;
		if (len < sizeof(hint))
			len += (size_t)snprintf(hint + len, sizeof(hint) - len, "%s%s",
						n ? ", " : "there is: ", names[n]);
	}
	int near = sba_nearest(agent, names, n);
	if (near >= 0)
		snprintf(hint, sizeof(hint), "did you mean %s?", names[near]);
	return cli_fail(err, SBA_EINVAL, hint, "no agent '%s'", agent);
}

void cli_close(struct cli *cli)
{
	cli_status_clear(&cli->status);
	sba_images_close(cli->images);
	sba_image_lock_close(cli->lock);
	free(cli->docker_folder);
	sba_engine_close(cli->engine);
	for (size_t i = 0; i < CLI_LEN(cli->remotes); i++) {
		sba_remote_close(cli->remotes[i]);
		cli->remotes[i] = NULL;
	}
	sba_config_free(cli->config);
	free(cli->audit_root);
	cli_forget_secret(cli);
	/* The token outlives us all: a signal may still come. */
	cli->images = NULL;
	cli->lock = NULL;
	cli->docker_folder = NULL;
	cli->engine = NULL;
	cli->config = NULL;
	cli->audit_root = NULL;
}

const char *cli_short_ref(struct cli *cli, const char *ref)
{
	struct sba_error ignored;
	const char *base =
		cli_images(cli, &ignored) == 0 ? sba_images_ref(cli->images, "base") : NULL;
	const char *tag = base ? strrchr(base, ':') : NULL;
	size_t len = tag ? (size_t)(tag - base) + 1 : 0;
	return len && !strncmp(ref, base, len) ? ref + len : ref;
}

void cli_ref_version(const char *ref, const char *agent, char *buf, size_t size)
{
	buf[0] = '\0';
	const char *tag = strrchr(ref, ':');
	size_t len = strlen(agent);
	if (!tag || strncmp(tag + 1, agent, len) != 0 || tag[1 + len] != '-')
		return;
	const char *version = tag + 2 + len;
	const char *date = strrchr(version, '-');
	if (date)
		snprintf(buf, size, "%.*s", (int)(date - version), version);
}
