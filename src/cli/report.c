/* SPDX-License-Identifier: MIT */
/* How errors and remarks are shown: for people, or as one JSON object. */
#include "cli.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

int cli_fail(struct sba_error *err, int code, const char *hint, const char *fmt, ...)
{
	*err = (struct sba_error){ .code = code };
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	if (hint)
		snprintf(err->hint, sizeof(err->hint), "%s", hint);
	return code;
}

int cli_fail_nomem(struct sba_error *err)
{
	return cli_fail(err, SBA_ENOMEM, NULL, "out of memory");
}

void cli_forget_secret(struct cli *cli)
{
	if (cli->secret)
		explicit_bzero(cli->secret, strlen(cli->secret));
	free(cli->secret);
	cli->secret = NULL;
}

int cli_keep_secret(struct cli *cli, const char *secret, struct sba_error *err)
{
	cli_forget_secret(cli);
	cli->secret = strdup(secret);
	return cli->secret ? 0 : cli_fail_nomem(err);
}

static void hide(const struct cli *cli, char *text)
{
	if (cli->secret)
		sba_hide_secret(text, cli->secret);
}

/* The library's texts may be cut within a character, and quote others. */
static json_t *json_text(const char *s)
{
	CLI_FREE char *visible = NULL;
	if (!sba_utf8_valid(s, strlen(s)))
		visible = sba_visible(s, strlen(s), false);
	return json_string(visible ? visible : s);
}

static void report_json(const struct sba_error *err, const struct sba_code_info *info, bool retry)
{
	CLI_JSON json_t *j =
		json_pack("{s:{s:s, s:o, s:o, s:b}}", "error", "code", info->name, "message",
			  json_text(err->text), "hint", json_text(err->hint), "retry", retry);
	CLI_FREE char *text = j ? json_dumps(j, JSON_COMPACT) : NULL;
	fprintf(stderr, "%s\n", text ? text : "{\"error\":{\"code\":\"out_of_memory\"}}");
}

/* Each line after the first is indented. */
static void print_lines(const char *first, const char *indent, const char *text)
{
	CLI_FREE char *visible = sba_visible(text, strlen(text), false);
	const char *line = visible ? visible : "";
	const char *lead = first;
	while (*line) {
		size_t len = strcspn(line, "\n");
		fprintf(stderr, "%s%.*s\n", lead, (int)len, line);
		line += len + (line[len] == '\n');
		lead = indent;
	}
}

static void report_text(const struct cli *cli, const struct sba_error *err)
{
	char red[16], first[64];
	bool colour = cli->look.err_colour;
	snprintf(first, sizeof(first), "%serror:%s ", cli_sgr(colour, "31", red),
		 colour ? "\033[0m" : "");
	print_lines(first, "  ", err->text[0] ? err->text : "(no more is known)");
	print_lines("  ", "  ", err->hint);
}

int cli_report(struct cli *cli, const struct sba_error *reported)
{
	return cli_report_retry(cli, reported, sba_code_info(reported->code)->retry);
}

int cli_report_retry(struct cli *cli, const struct sba_error *reported, bool retry)
{
	const struct sba_code_info *info = sba_code_info(reported->code);
	struct sba_error told = *reported, *err = &told;
	cli_settings_blame(cli, err);
	hide(cli, err->text);
	hide(cli, err->hint);
	cli_status_clear(&cli->status);
	fflush(stdout);
	cli->reported = true;
	if (cli->json)
		report_json(err, info, retry);
	else
		report_text(cli, err);
	if (cli->command && cli->command->failure)
		return cli->command->failure;
	return info->exit_status;
}

int cli_usage(struct cli *cli, const char *hint, const char *fmt, ...)
{
	struct sba_error err = { .code = SBA_EINVAL };
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(err.text, sizeof(err.text), fmt, ap);
	va_end(ap);
	if (hint)
		snprintf(err.hint, sizeof(err.hint), "%s", hint);
	return cli_report(cli, &err);
}

/* A text without secrets, and the terminal made ready for it. */
CLI_PRINTF(4, 0)
static void compose(struct cli *cli, char *text, size_t size, const char *fmt, va_list ap)
{
	vsnprintf(text, size, fmt, ap);
	hide(cli, text);
	cli_status_clear(&cli->status);
	fflush(stdout);
}

void cli_warn(struct cli *cli, const char *fmt, ...)
{
	char text[1024], yellow[16], first[64];
	va_list ap;
	va_start(ap, fmt);
	compose(cli, text, sizeof(text), fmt, ap);
	va_end(ap);
	if (cli->json) {
		CLI_JSON json_t *j = json_pack("{s:{s:o}}", "warning", "message", json_text(text));
		CLI_FREE char *line = j ? json_dumps(j, JSON_COMPACT) : NULL;
		fprintf(stderr, "%s\n", line ? line : "{}");
		return;
	}
	snprintf(first, sizeof(first), "%sWARNING:%s ",
		 cli_sgr(cli->look.err_colour, "1;33", yellow),
		 cli->look.err_colour ? "\033[0m" : "");
	print_lines(first, "  ", text);
}

void cli_note(struct cli *cli, const char *fmt, ...)
{
	if (cli->quiet || cli->json)
		return;
	char text[1024];
	va_list ap;
	va_start(ap, fmt);
	compose(cli, text, sizeof(text), fmt, ap);
	va_end(ap);
	print_lines("", "  ", text);
}
