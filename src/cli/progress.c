/* SPDX-License-Identifier: MIT */
/* Builds and pulls as they go on: one rewritten line on a terminal, plain lines in a log. */
#include "cli.h"

#include <string.h>

/* Without colours and line ends: what builds print is meant for a terminal of
 * their own. The caller frees. */
static char *plain(const char *text)
{
	char *out = strdup(text ? text : "");
	char *to = out;
	for (const char *c = out; c && *c; c++) {
		if (c[0] == '\033' && c[1] == '[') {
			c += 2 + strcspn(c + 2, "mKJHABCDhl");
			if (!*c)
				break;
		} else if (*c != '\r' && *c != '\n') {
			*to++ = *c;
		}
	}
	if (to)
		*to = '\0';
	return out;
}

/* "Step 4/11" stays beside the lines that the step prints. */
static void show_status(struct cli_build *b, const struct sba_progress *p, const char *text)
{
	char line[512], steps[64] = "";
	CLI_FREE char *visible = cli_line(&b->cli->look, text, 0);
	const char *shown = visible ? visible : "";
	if (!p->detail)
		snprintf(b->last, sizeof(b->last), "%.*s", (int)strcspn(shown, ":"), shown);
	if (p->total > 0 && !p->detail)
		snprintf(steps, sizeof(steps), " %lld%%", (long long)(100 * p->done / p->total));
	snprintf(line, sizeof(line), "%s%s  %s%s%.300s", cli_short_ref(b->cli, p->image), steps,
		 p->detail ? b->last : "", p->detail ? " " : "", shown);
	cli_status_set(&b->cli->status, line);
}

static void show_json(const struct sba_progress *p)
{
	json_t *j =
		json_pack("{s:i, s:s, s:s, s:s}", "v", 1, "type", p->detail ? "output" : "progress",
			  "image", p->image, "text", p->text ? p->text : "");
	if (j && p->total > 0) {
		json_object_set_new(j, "done", json_integer(p->done));
		json_object_set_new(j, "total", json_integer(p->total));
	}
	cli_json_line(j);
}

/* A log needs each line once: bytes that count up are for terminals. */
static void show_line(struct cli_build *b, const struct sba_progress *p, const char *text)
{
	if ((p->detail && !b->details) || !strncmp(b->last, text, sizeof(b->last) - 1))
		return;
	snprintf(b->last, sizeof(b->last), "%s", text);
	cli_note(b->cli, "%s  %s%s", cli_short_ref(b->cli, p->image), p->detail ? "  " : "", text);
}

void cli_build_progress(void *user, const struct sba_progress *p)
{
	struct cli_build *b = user;
	CLI_FREE char *text = plain(p->text);
	if (!text)
		return;
	if (b->cli->json && b->details)
		show_json(p);
	else if (b->cli->status.to)
		show_status(b, p, text);
	else
		show_line(b, p, text);
}
