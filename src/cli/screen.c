/* SPDX-License-Identifier: MIT */
/* The CLI's own screen, on our terminal: `run` and `chat` without a prompt. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool cli_screen_wanted(const struct cli *cli, const char *prompt)
{
	return !prompt && !cli->json && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
}

/* What a CLI that was ended leaves switched on: keys and pastes that are reported, the
 * mouse, a hidden cursor, the other screen. 1047 leaves the cursor where it is. */
static void put_right(void)
{
	static const char sequences[] = "\033[<u\033[?2004l\033[?1004l\033[?1000l\033[?1002l"
					"\033[?1003l\033[?1006l\033[?1047l\033[?25h\033[0m";
	cli_write(STDOUT_FILENO, sequences, strlen(sequences));
}

/* What a program looks for to know its terminal. */
static int terminal_env(struct cli_env *env, struct sba_error *err)
{
	static const char *const names[] = { "TERM", "COLORTERM" };
	int rc = 0;
	for (size_t i = 0; rc == 0 && i < CLI_LEN(names); i++) {
		const char *value = getenv(names[i]);
		if (value && *value)
			rc = cli_env_add(env, names[i], err);
	}
	return rc;
}

int cli_screen_run(struct cli *cli, struct sba_sandbox *s, const struct cli_way *way, int flags)
{
	struct sba_agent *a = NULL;
	struct sba_process *p = NULL;
	struct cli_env env = { 0 };
	struct sba_screen_options o = { .wait_ms = flags & CLI_SCREEN_WAITS ? -1 : 0 };
	struct sba_error err;
	int status = EXIT_FAILURE;
	cli_term_size(&o.rows, &o.columns);
	int rc = terminal_env(&env, &err);
	o.env = (const char *const *)env.v;
	if (rc == 0)
		rc = cli_way_open(cli, way, s, flags & CLI_SCREEN_ONCE, &a, &err);
	if (rc == 0)
		rc = sba_agent_screen_open(a, &o, &p, &err);
	if (rc == 0) {
		status = cli_exec_attach(cli, s, p, sba_agent_name(a));
		if (status)
			put_right();
	}
	sba_process_free(p);
	sba_agent_close(a);
	cli_env_fini(&env);
	if (rc < 0)
		return cli_signals_caught() ? EXIT_FAILURE : cli_report(cli, &err);
	return status;
}
