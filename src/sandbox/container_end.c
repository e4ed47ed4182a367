/* SPDX-License-Identifier: MIT */
/*
 * The ends of commands in a container that is not ours. The engine has no request that
 * ends an exec, and tells a command that cannot run in the words of its runtime.
 */
#include "sandbox/container.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/limits.h"

enum { SIGNAL_MS = 10 * 1000 };

/* Nothing but a shell is needed: `read` drops the NULs between the variables. How it went is
 * said, '+' or '-': the engine (20.10) tells no exit of an exec while that of another waits for
 * its output to be read, and who signals a command does not read it meanwhile. */
static const char script[] =
	"exec 2>/dev/null; n=0\n"
	"while :; do\n"
	"  f=\n"
	"  for p in /proc/[0-9]*; do\n"
	"    while IFS= read -r l || [ -n \"$l\" ]; do\n"
	"      case $l in *\"$1\"*) f=1; kill -\"$2\" \"${p#/proc/}\"; break;; esac\n"
	"    done <\"$p/environ\"\n"
	"  done\n"
	"  n=$((n+1)); [ \"$f\" ] && [ \"$2\" = 9 ] || { echo +; exit 0; }\n"
	"  [ $n -lt 100 ] || { echo -; exit 1; }\n"
	"done\n";

/* Until it has said how it went, else to its end. */
static int finish(struct sba_exec *x, struct sba_until until, int *ret_code, struct sba_error *err)
{
	enum sba_exec_stream stream;
	const char *data;
	ssize_t n;
	while ((n = sba_exec_read(x, &stream, &data, until, err)) > 0) {
		if (*data == '+' || *data == '-') {
			*ret_code = *data == '-';
			return 0;
		}
	}
	return n < 0 ? (int)n : sba_exec_exit_code(x, until, ret_code, err);
}

int sba_container_signal(struct sba_container *c, const char *user, const char *mark, int signal,
			 struct sba_error *err)
{
	char number[16];
	snprintf(number, sizeof(number), "%d", signal);
	const char *const argv[] = { "sh", "-c", script, "sh", mark, number, NULL };
	const struct sba_exec_spec spec = {
		.container = c->id, .argv = argv, .user = user, .workdir = "/", .no_stdin = true
	};
	struct sba_until until = sba_engine_until_regardless(SIGNAL_MS);
	struct sba_exec *x = NULL;
	int code = 0;
	int rc = sba_exec_open(c->engine, &spec, until, &x, err);
	if (rc == 0)
		rc = finish(x, until, &code, err);
	sba_exec_close(x);
	if (rc == 0 && (code == 126 || code == 127))
		return sba_fail(err, SBA_EUNSUPPORTED, "there is no 'sh' inside");
	if (rc == 0 && code != 0)
		return sba_fail(err, SBA_EBROKEN, "some of its processes do not end");
	return rc;
}

static int errno_of(const char *words)
{
	static const struct {
		const char *text;
		int number;
	} known[] = {
		{ "no such file or directory", ENOENT }, { "not a directory", ENOTDIR },
		{ "permission denied", EACCES },         { "is a directory", EISDIR },
		{ "exec format error", ENOEXEC },
	};
	for (size_t i = 0; i < SBA_ARRAY_LEN(known); i++) {
		if (strcasestr(words, known[i].text))
			return known[i].number;
	}
	return 0;
}

int sba_container_explain(const char *words, struct sba_exit *ret, struct sba_error *err)
{
	int number = errno_of(words);
	if (strstr(words, "unable to find user") || strstr(words, "unable to find group") ||
	    strstr(words, "no matching entries"))
		return sba_fail(err, SBA_ENOTFOUND, "command: %.200s", words);
	if (strstr(words, "chdir to cwd") || strstr(words, "Cwd") || strstr(words, "chdir to `"))
		*ret = (struct sba_exit){ .kind = SBA_NO_WORKDIR,
					  .number = number ? number : ENOENT };
	else if (strstr(words, "not found") || number == ENOENT)
		*ret = (struct sba_exit){ .kind = SBA_NOT_FOUND };
	else if (number)
		*ret = (struct sba_exit){ .kind = SBA_CANNOT_RUN, .number = number };
	else
		return sba_fail(err, SBA_EBROKEN, "command: the engine could not start it: %.400s",
				words);
	return 0;
}
