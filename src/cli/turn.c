/* SPDX-License-Identifier: MIT */
/* One turn, from the prompt to the exit status, shown as it happens. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
	PROMPT_MAX = 256 << 20,
	TICK_MS = 1000,
	TIMEOUT_MS = 30 * 60 * 1000, /* the library's, where none is asked for */
};

int cli_turn_prompt(const char *word, const char *example, char **ret, size_t *ret_len,
		    struct sba_error *err)
{
	char hint[256];
	snprintf(hint, sizeof(hint), "as in:  %s", example);
	CLI_FREE char *prompt = NULL;
	size_t len = 0;
	if (!word)
		return cli_fail(err, SBA_EINVAL, hint,
				"give a prompt (or - to read it from stdin)");
	int rc = cli_read_text(word, PROMPT_MAX, &prompt, &len, err);
	if (rc < 0)
		return rc;
	if (strspn(prompt, " \t\r\n") == len)
		return cli_fail(err, SBA_EINVAL, hint, "the prompt is empty");
	*ret = prompt;
	*ret_len = len;
	prompt = NULL;
	return 0;
}

static int64_t now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void header(struct cli *cli, const struct cli_way *way, const struct sba_sandbox_info *i)
{
	char version[64], bold[16];
	const struct cli_look *look = &cli->look;
	if (cli->quiet)
		return;
	const char *dot = cli_mark(look, CLI_MARK_DOT);
	cli_ref_version(i->image, i->agent, version, sizeof(version));
	CLI_FREE char *model = cli_way_model(way, i->agent);
	fprintf(stderr, "%s%s%s%s%s %s %s model %s sandbox %s\n",
		cli_sgr(look->err_colour, "1", bold), i->agent, look->err_colour ? "\033[0m" : "",
		version[0] ? " " : "", version, dot, model ? model : "a", dot, i->name);
}

static void header_json(const struct cli_way *way, const struct sba_sandbox_info *i)
{
	const char *provider = way->offline ? "scripted" : way->provider ? way->provider : "";
	cli_json_line(json_pack("{s:i, s:s, s:s, s:s, s:s, s:s}", "v", 1, "type", "start", "agent",
				i->agent, "sandbox", i->name, "image", i->image, "provider",
				provider));
}

/* A reader who has gone away needs no more: the turn ends. */
static void show_event(struct cli *cli, struct cli_render *r, struct sba_turn *t,
		       const struct sba_event *e)
{
	if (cli->json)
		cli_json_line(cli_json_event(e));
	else
		cli_render_event(r, e);
	if (ferror(stdout))
		sba_turn_cancel(t);
}

static int follow(struct cli *cli, struct cli_render *r, struct sba_turn *t, struct sba_error *err)
{
	int64_t wait = cli->status.to ? TICK_MS : -1;
	for (;;) {
		const struct sba_event *e;
		int rc = sba_turn_next(t, wait, &e, err);
		if (rc == 1)
			show_event(cli, r, t, e);
		else if (rc == SBA_ETIMEOUT)
			cli_render_tick(r, now_ms());
		else
			return rc;
	}
}

/* How to have more of the time that was over. */
static void explain_timeout(struct sba_error *err, enum sba_verdict verdict,
			    const struct cli_turn *o)
{
	bool idle = verdict == SBA_VERDICT_IDLE_TIMEOUT;
	char time[32];
	size_t len = strlen(err->text);
	cli_time(o->timeout > 0 ? o->timeout : TIMEOUT_MS, time, sizeof(time));
	if (!idle)
		snprintf(err->text + len, sizeof(err->text) - len, " after %s", time);
	snprintf(err->hint, sizeof(err->hint),
		 "--%stimeout TIME gives it longer, 0 all that it takes", idle ? "idle-" : "");
}

/* "upstream" is the relay's word: the provider gave it no answer. */
static void explain_silence(struct sba_error *err)
{
	if (!err->hint[0] && strstr(err->text, "upstream: "))
		snprintf(err->hint, sizeof(err->hint),
			 "another address:  --base-url URL, --provider NAME; no network:  "
			 "--offline");
}

/* What the user can say otherwise, by what the model's provider said. */
static void explain_status(const struct cli_turn *o, const struct sba_agent *a, int status,
			   struct sba_error *err)
{
	if (status == 401 || status == 403)
		cli_way_hint_key(o->way, sba_agent_name(a), err);
	else if (status == 404 && !err->hint[0])
		snprintf(err->hint, sizeof(err->hint), "another model:  -m MODEL");
	else if (status == 502 || status == 504)
		explain_silence(err);
}

static int conclude(struct cli *cli, struct cli_render *r, const struct sba_agent *a,
		    struct cli_turn *o, struct sba_turn *t)
{
	struct sba_turn_result result;
	sba_turn_result(t, &result);
	if (result.error.code)
		cli_render_forget(r, result.error.text);
	cli_render_end(r);
	if (cli->json && o->hold_result)
		o->result = cli_json_result(&result);
	else if (cli->json)
		cli_json_line(cli_json_result(&result));
	else if (cli->quiet)
		cli_render_answer(r, result.text);
	else if (!cli->quiet && !ferror(stdout))
		cli_render_result(r, &result);
	if (cli->verbose && result.audit[0])
		cli_note(cli, "record: %s", result.audit);
	fflush(stdout);
	if (result.verdict != SBA_VERDICT_OK && *result.text)
		cli_note(cli, "partial: the answer above is not whole");
	if (result.verdict == SBA_VERDICT_OK)
		return ferror(stdout) ? 1 : 0;
	if (cli_signals_caught() || ferror(stdout))
		return 1;
	if (!result.error.code)
		cli_fail(&result.error, sba_verdict_code(result.verdict), NULL, "%s",
			 sba_verdict_name(result.verdict));
	if (result.verdict == SBA_VERDICT_TIMEOUT || result.verdict == SBA_VERDICT_IDLE_TIMEOUT)
		explain_timeout(&result.error, result.verdict, o);
	explain_status(o, a, result.http_status, &result.error);
	/* The code says that it may help; the model's answer knows better. */
	return result.verdict == SBA_VERDICT_MODEL_ERROR
		       ? cli_report_retry(cli, &result.error, result.retryable)
		       : cli_report(cli, &result.error);
}

static int begin(struct cli *cli, struct sba_agent *a, const struct cli_turn *o,
		 const struct sba_turn_options *to, struct sba_turn **ret, struct sba_error *err)
{
	struct sba_turn_options waiting = *to;
	int rc = sba_turn_begin(a, to, ret, err);
	if (rc != SBA_EBUSY || !o->wait)
		return rc;
	cli_note(cli, "a turn is under way; this one waits for its end");
	waiting.wait_ms = -1;
	return sba_turn_begin(a, &waiting, ret, err);
}

static int one_turn(struct cli *cli, struct sba_agent *a, struct cli_turn *o,
		    const struct sba_turn_options *to, int *ret_status, struct sba_error *err)
{
	struct cli_render r = {
		.look = &cli->look,
		.status = &cli->status,
		.out = stdout,
		.err = stderr,
		.verbose = cli->verbose,
		.quiet = cli->quiet,
		.last_ms = now_ms(),
	};
	struct sba_turn *t = NULL;
	if (!cli->look.out_tty && cli->look.err_tty)
		setvbuf(stdout, NULL, _IOLBF, 0);
	int rc = begin(cli, a, o, to, &t, err);
	if (rc < 0)
		return rc;
	o->begun = true;
	cli_signals_turn(t);
	rc = follow(cli, &r, t, err);
	if (rc == 0)
		*ret_status = conclude(cli, &r, a, o, t);
	else
		cli_render_end(&r);
	cli_signals_turn(NULL);
	cli_render_fini(&r);
	sba_turn_free(t);
	return rc;
}

int cli_turn_run(struct cli *cli, struct sba_sandbox *s, struct cli_turn *o)
{
	struct sba_turn_options to = {
		.prompt = o->prompt,
		.prompt_len = o->prompt_len,
		.timeout_ms = o->timeout,
		.idle_timeout_ms = o->idle_timeout,
		.aside = o->aside,
	};
	struct sba_agent *a = NULL;
	struct sba_error err;
	int status = 0;
	int rc = cli_way_open(cli, o->way, s, o->one_turn, &a, &err);
	if (rc == 0 && cli->json)
		header_json(o->way, sba_sandbox_info(s));
	else if (rc == 0)
		header(cli, o->way, sba_sandbox_info(s));
	if (rc == 0)
		rc = one_turn(cli, a, o, &to, &status, &err);
	sba_agent_close(a);
	if (rc == 0)
		return status;
	return cli_signals_caught() ? 1 : cli_report(cli, &err);
}
