/* SPDX-License-Identifier: MIT */
/* `doctor`: what works here and what does not, with the remedy. */
#include "cli.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

struct doctor {
	struct cli *cli;
	bool failed;
};

enum state { GOOD, NOTE, WARN, FAIL };

static void say(struct doctor *d, const char *what, enum state state, const char *fmt, ...)
	CLI_PRINTF(4, 5);

static void say(struct doctor *d, const char *what, enum state state, const char *fmt, ...)
{
	static const char *const names[] = { "ok", "-", "warn", "fail" };
	char text[SBA_ERROR_TEXT_MAX];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (state == FAIL)
		d->failed = true;
	if (d->cli->json) {
		cli_json_line(json_pack("{s:i, s:s, s:s, s:s}", "v", 1, "check", what, "state",
					names[state], "text", text));
		return;
	}
	enum { WHAT_COLUMNS = 9, STATE_COLUMNS = 4, INDENT = WHAT_COLUMNS + STATE_COLUMNS + 4 };
	CLI_FREE char *visible = sba_visible(text, strlen(text), false);
	printf("%-*s  %-*s  ", WHAT_COLUMNS, what, STATE_COLUMNS, names[state]);
	cli_wrap(stdout, visible ? visible : "", INDENT, INDENT, cli_columns_of(stdout));
	fflush(stdout);
}

static void say_error(struct doctor *d, const char *what, const struct sba_error *err)
{
	say(d, what, FAIL, "%.600s%s%.400s", err->text, err->hint[0] ? "\n" : "", err->hint);
}

static bool check_engine(struct doctor *d, const struct sba_engine_info **ret)
{
	struct sba_error err;
	const struct sba_engine_info *i;
	int rc = cli_engine(d->cli, &err);
	if (rc == 0)
		rc = sba_engine_info(d->cli->engine, &i, &err);
	if (rc < 0) {
		say_error(d, "engine", &err);
		return false;
	}
	char cgroup[32] = "";
	if (i->cgroup_version)
		snprintf(cgroup, sizeof(cgroup), ", cgroup v%d", i->cgroup_version);
	say(d, "engine", GOOD, "%s %s at %s (%s), API %s%s", i->name, i->version, i->host,
	    i->found_by, i->api_version, cgroup);
	*ret = i;
	return true;
}

static void check_machine(struct doctor *d, const struct sba_engine_info *i)
{
	char size[32];
	sba_format_size(i->memory, size, sizeof(size));
	if (strcmp(i->os, "linux") != 0)
		say(d, "machine", FAIL, "the engine runs %s containers; Linux ones are needed",
		    i->os);
	else
		say(d, "machine", GOOD, "%s %s, %d CPUs, %s", i->os, i->arch, i->cpus, size);
}

/* One is made and ended: that is the proof. */
static void check_sidecar(struct doctor *d)
{
	enum { ABI_OF_SIGNAL_SCOPES = 6 };
	struct sba_error err;
	struct sba_probe p;
	if (sba_sandbox_probe(d->cli->engine, d->cli->prefix, &p, &err) < 0) {
		say_error(d, "sidecar", &err);
		return;
	}
	say(d, "sidecar", GOOD, "starts, sees, ends in %.1f s", (double)p.took_ms / 1000);
	if (p.landlock >= ABI_OF_SIGNAL_SCOPES)
		say(d, "landlock", GOOD, "signal scopes (ABI %d)", p.landlock);
	else
		say(d, "landlock", WARN,
		    "no signal scopes (ABI %d; Linux 6.12 has them): a command can signal others "
		    "of its sandbox",
		    p.landlock);
}

static void check_limits(struct doctor *d, const struct sba_engine_info *i)
{
	char lacks[64];
	snprintf(lacks, sizeof(lacks), "%s%s%s", i->limits_memory ? "" : " --memory",
		 i->limits_cpu ? "" : " --cpus", i->limits_pids ? "" : " --pids");
	if (*lacks)
		say(d, "limits", FAIL, "the engine cannot keep%s: its kernel or its rights lack it",
		    lacks);
	else if (!i->limits_swap)
		say(d, "limits", WARN, "no swap accounting: --memory bounds memory, not swap");
	else
		say(d, "limits", GOOD, "memory, swap, CPUs, processes");
}

static void check_runc(struct doctor *d, const struct sba_engine_info *i)
{
	if (cli_runc_is_old(i))
		say(d, "runc", WARN, CLI_RUNC_OLD, i->runc);
	else if (*i->runc)
		say(d, "runc", GOOD, "%s", i->runc);
}

/* Whether each variable that a provider's key is usually in is set; each once. */
static void check_keys(struct doctor *d)
{
	const char *const *names = sba_provider_list();
	char text[512] = "";
	for (size_t n = 0, len = 0; names[n] && len < sizeof(text); n++) {
		const char *variable = sba_provider_key_env(NULL, names[n]);
		if (!variable || strstr(text, variable))
			continue;
		const char *value = getenv(variable);
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s %s", len ? ", " : "",
					variable, value && *value ? "set" : "not set");
	}
	say(d, "keys", NOTE, "%s", text);
}

static bool listed(const struct sba_image_list *l, const char *ref)
{
	for (size_t n = 0; n < sba_image_list_count(l); n++) {
		if (!strcmp(sba_image_list_at(l, n)->ref, ref))
			return true;
	}
	return false;
}

static void check_images(struct doctor *d)
{
	struct cli *cli = d->cli;
	struct sba_error err;
	struct sba_image_list *l = NULL;
	int rc = cli_images(cli, &err);
	if (rc == 0)
		rc = sba_images_list(cli->engine, cli->images, &l, &err);
	if (rc < 0) {
		say_error(d, "images", &err);
		return;
	}
	for (const char *const *n = sba_images_names(cli->images); *n; n++) {
		const char *ref = sba_images_ref(cli->images, *n);
		if (listed(l, ref))
			say(d, "image", GOOD, "%s", cli_short_ref(cli, ref));
		else
			say(d, "image", WARN, "%s is not here: sandbox-agent image build %s",
			    cli_short_ref(cli, ref), *n);
	}
	sba_image_list_free(l);
}

static void check_leftovers(struct doctor *d)
{
	struct sba_error err;
	struct sba_sandbox_list *l = NULL;
	struct sba_list_options lo = { .prefix = d->cli->prefix, .all = true, .brief = true };
	size_t alive = 0, dead = 0;
	if (sba_sandbox_list(d->cli->engine, &lo, &l, &err) < 0) {
		say_error(d, "sandboxes", &err);
		return;
	}
	for (size_t n = 0; n < sba_sandbox_list_count(l); n++) {
		const struct sba_sandbox_info *i = sba_sandbox_list_at(l, n);
		bool over = !strcmp(i->state, "gone"); /* with a reason nothing is left of it */
		bool half = !strcmp(i->state, "created") || !strcmp(i->state, "broken");
		dead += half || (over && !i->reason[0]);
		alive += !half && !over;
	}
	if (dead)
		say(d, "sandboxes", WARN, "%zu alive, %zu half-made or gone: sandbox-agent gc",
		    alive, dead);
	else
		say(d, "sandboxes", GOOD, "%zu alive, nothing left over", alive);
	sba_sandbox_list_free(l);
}

/* A machine behind a proxy that re-signs TLS is told where its CA must go. */
static void check_ca(struct doctor *d)
{
	static const char *const names[] = { "SSL_CERT_FILE", "CURL_CA_BUNDLE",
					     "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS" };
	for (size_t i = 0; i < CLI_LEN(names); i++) {
		const char *v = getenv(names[i]);
		if (!v || !v[0])
			continue;
		say(d, "ca", NOTE, "%s is set; sandboxes and builds take it with --ca-file %s",
		    names[i], v);
		return;
	}
}

static void check_local(struct doctor *d)
{
	int abi = sba_local_landlock();
	if (abi)
		say(d, "local", GOOD, "Landlock (ABI %d) keeps --backend local in its folder", abi);
	else
		say(d, "local", NOTE,
		    "no Landlock in this kernel: --backend local may write anywhere");
}

static void check_service(struct doctor *d, const char *service)
{
	const struct sba_list_options o = { .prefix = d->cli->prefix };
	struct sba_sandbox_list *l = NULL;
	struct sba_remote *r = NULL;
	struct sba_error err;
	int rc = cli_remote(d->cli, service, strlen(service), &r, &err);
	if (rc == 0)
		rc = sba_remote_list(r, &o, &l, &err);
	if (rc < 0) {
		say_error(d, "service", &err);
		return;
	}
	size_t n = sba_sandbox_list_count(l);
	say(d, "service", GOOD, "%s answers, %zu sandbox%s there", service, n, n == 1 ? "" : "es");
	sba_sandbox_list_free(l);
}

/* Of those that nobody has set up nothing is said, and nothing is asked. */
static void check_services(struct doctor *d)
{
	for (const char *const *n = sba_remote_names(); d->cli->config && *n; n++) {
		if (cli_remote_is_set_up(d->cli, *n))
			check_service(d, *n);
	}
}

static int doctor(struct cli *cli, const void *options, const struct cli_args *args)
{
	(void)options;
	(void)args;
	const struct sba_engine_info *info;
	struct doctor d = { .cli = cli };
	if (check_engine(&d, &info)) {
		check_machine(&d, info);
		check_sidecar(&d);
		check_limits(&d, info);
		check_images(&d);
		check_leftovers(&d);
		check_runc(&d, info);
	}
	check_local(&d);
	check_services(&d);
	check_keys(&d);
	check_ca(&d);
	return d.failed ? 3 : 0;
}

const struct cli_command cli_command_doctor = {
	.name = "doctor",
	.args = "",
	.help = "what works here, what does not, and the remedy",
	.example = "sandbox-agent doctor",
	.run = doctor,
};
