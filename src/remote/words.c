/* SPDX-License-Identifier: MIT */
/* What services say in words: errors of several shapes, ends of commands, points in time. */
#include "base/limits.h"
#include "remote/remote.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- errors ---- */

static const char *first_of(const json_t *j, const char *const *paths, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const char *text = sba_json_str(j, paths[i]);
		if (text && *text)
			return text;
	}
	return NULL;
}

static void put_visible(const char *text, size_t len, char *ret, size_t size)
{
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(16 * SBA_REMOTE_ERROR_MAX);
	sba_buf_put_visible(&b, text, len, true);
	snprintf(ret, size, "%s", b.data ? b.data : "");
}

static void hide(char *text, const char *const secrets[2])
{
	for (size_t i = 0; i < 2; i++) {
		if (secrets[i])
			sba_hide_secret(text, secrets[i]);
	}
}

/* The lifecycle server's own and those of its framework, execd's, envd's, proxies'. */
static const char *text_in(const json_t *j)
{
	static const char *const paths[] = { "message",       "detail.message", "detail.#0.msg",
					     "error.message", "error",          "detail" };
	return first_of(j, paths, SBA_ARRAY_LEN(paths));
}

static const char *code_in(const json_t *j)
{
	static const char *const paths[] = { "code", "detail.code", "error.code", "error_code" };
	return first_of(j, paths, SBA_ARRAY_LEN(paths));
}

void sba_remote_words(const char *body, size_t len, const char *const secrets[2],
		      struct sba_remote_words *ret)
{
	*ret = (struct sba_remote_words){ 0 };
	if (len > SBA_REMOTE_ERROR_MAX)
		len = SBA_REMOTE_ERROR_MAX;
	/* Before anything is cut: half a secret would not be known. */
	SBA_FREE char *copy = strndup(body ? body : "", len);
	if (!copy)
		return;
	hide(copy, secrets);
	SBA_JSON json_t *j = sba_json_load(copy, strlen(copy), 0, NULL);
	const char *text = j ? text_in(j) : copy, *code = j ? code_in(j) : NULL;
	if (code)
		put_visible(code, strlen(code), ret->code, sizeof(ret->code));
	if (text)
		put_visible(text, strcspn(text, "\r\n"), ret->text, sizeof(ret->text));
	hide(ret->text, secrets);
}

/* ---- ends ---- */

/* As Go's package syscall calls signals on Linux. */
static const struct {
	const char *name;
	int number;
} signals[] = {
	{ "aborted", SIGABRT },
	{ "alarm clock", SIGALRM },
	{ "bad system call", SIGSYS },
	{ "broken pipe", SIGPIPE },
	{ "bus error", SIGBUS },
	{ "floating point exception", SIGFPE },
	{ "hangup", SIGHUP },
	{ "illegal instruction", SIGILL },
	{ "interrupt", SIGINT },
	{ "killed", SIGKILL },
	{ "quit", SIGQUIT },
	{ "segmentation fault", SIGSEGV },
	{ "terminated", SIGTERM },
	{ "trace/breakpoint trap", SIGTRAP },
	{ "user defined signal 1", SIGUSR1 },
	{ "user defined signal 2", SIGUSR2 },
	{ "virtual timer expired", SIGVTALRM },
	{ "CPU time limit exceeded", SIGXCPU },
	{ "file size limit exceeded", SIGXFSZ },
};

static bool signal_of(const char *words, struct sba_exit *ret)
{
	int64_t number;
	size_t len = strcspn(words, "(");
	while (len > 0 && words[len - 1] == ' ')
		len--;
	for (size_t i = 0; i < SBA_ARRAY_LEN(signals); i++) {
		if (strlen(signals[i].name) == len && !strncmp(words, signals[i].name, len)) {
			*ret = (struct sba_exit){ .kind = SBA_SIGNALED,
						  .number = signals[i].number };
			return true;
		}
	}
	/* "signal 34": one that has no name. */
	if (!sba_starts_with(words, "signal ") || sba_parse_int(words + 7, 1, 64, &number) < 0)
		return false;
	*ret = (struct sba_exit){ .kind = SBA_SIGNALED, .number = (int)number };
	return true;
}

bool sba_remote_status(const char *words, struct sba_exit *ret)
{
	int64_t number;
	if (sba_starts_with(words, "signal: "))
		return signal_of(words + 8, ret);
	if (!sba_starts_with(words, "exit status ") ||
	    sba_parse_int(words + 12, 0, 255, &number) < 0)
		return false;
	*ret = (struct sba_exit){ .kind = SBA_EXITED, .number = (int)number };
	return true;
}

/* ---- time ---- */

int64_t sba_remote_time(const char *text)
{
	struct tm tm = { 0 };
	const char *rest = text ? strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;
	if (!rest)
		return 0;
	if (*rest == '.')
		rest += 1 + strspn(rest + 1, "0123456789");
	int64_t offset = 0, at = (int64_t)timegm(&tm);
	if (*rest == '+' || *rest == '-') {
		char *end;
		long hours = strtol(rest + 1, &end, 10);
		long minutes = *end == ':' ? strtol(end + 1, NULL, 10) : 0;
		offset = (hours * 60 + minutes) * (*rest == '-' ? -60 : 60);
	}
	return at > 0 ? at - offset : 0;
}

void sba_remote_time_put(int64_t unix_s, char ret[32])
{
	struct tm tm = { 0 };
	time_t t = (time_t)unix_s;
	gmtime_r(&t, &tm);
	strftime(ret, 32, "%Y-%m-%dT%H:%M:%SZ", &tm);
}
