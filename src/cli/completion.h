/* SPDX-License-Identifier: MIT */
/* What the completion scripts of the shells share: what may stand where. */
#ifndef SBA_CLI_COMPLETION_H
#define SBA_CLI_COMPLETION_H

#include "cli.h"

/* Whether the command's words are so called in its help: "NAME", "AGENT". */
bool cli_complete_takes(const struct cli_command *c, const char *what);
bool cli_complete_is_file(const char *arg);
void cli_complete_put_agents(FILE *to);
/* "a|b|c" as "a b c". */
void cli_complete_put_choices(FILE *to, const char *arg);
/* Words that may stand first, or second after `group` with its space. */
void cli_complete_put_commands(FILE *to, const char *group);
/* The options of every command, then those of c (may be NULL). */
void cli_complete_each_option(FILE *to, const struct cli_command *c,
			      void (*one)(FILE *, const struct cli_option *));

void cli_complete_bash(FILE *to);

#endif
