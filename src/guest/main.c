/* SPDX-License-Identifier: MIT */
/*
 * Finds the command that was asked for. Everything else is in the file of
 * that command; this one is the only file that unit tests do not link.
 */
#include "guest/guest.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "guest/identity.h"

static int version(int argc, char **argv)
{
	char text[SBA_GUEST_HELLO_MAX];
	size_t len = sba_guest_hello(text);

	(void)argc;
	(void)argv;
	return write(STDOUT_FILENO, text, len) == (ssize_t)len ? SBA_GUEST_OK : SBA_GUEST_FAILED;
}

static const struct command {
	const char *name;
	const char *usage;
	int (*main)(int argc, char **argv);
} commands[] = {
	{ "reaper", "[--keepalive SECONDS] [--max-lifetime SECONDS]", sba_guest_reaper },
	{ "idle", "", sba_guest_idle },
	{ "run", "ID", sba_guest_run },
	{ "session", "", sba_guest_session },
	{ "kill", "ID|--all", sba_guest_kill },
	{ "remove", "< PATHS", sba_guest_remove },
	{ "owners", "< PATHS", sba_guest_owners },
	{ "version", "", version },
};

static void usage(void)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		dprintf(STDERR_FILENO, "usage: guest %s %s\n", commands[i].name, commands[i].usage);
}

int main(int argc, char **argv)
{
	int rc = SBA_GUEST_USAGE;

	for (size_t i = 0; argc > 1 && i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (strcmp(argv[1], commands[i].name) == 0)
			rc = commands[i].main(argc - 1, argv + 1);
	}
	if (rc == SBA_GUEST_USAGE)
		usage();
	return rc;
}
