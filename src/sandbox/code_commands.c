/* SPDX-License-Identifier: MIT */
/* Code run by the program inside that people run its language with. */
#include <string.h>

#include "base/limits.h"
#include "sandbox/code.h"

/* What reads its script as it goes would find its commands reading it too. */
#define SHELL "c=$(cat; printf x) || exit; exec </dev/null; eval \"${c%x}\""

static const struct interpreter {
	const char *language;
	const char *argv[5];
	const char *image; /* that has it */
} interpreters[] = {
	/* What a program that is ended had printed is not to be left in it. */
	{ "python", { "python3", "-u", "-" }, "python:3-slim" },
	{ "javascript", { "node", "-" }, "node:22-slim" },
	{ "bash", { "bash", "-c", SHELL, "bash" }, "bash:5" },
	{ "sh", { "sh", "-c", SHELL, "sh" }, "busybox" },
};

static const struct interpreter *find(const char *language)
{
	for (size_t i = 0; i < SBA_ARRAY_LEN(interpreters); i++) {
		if (strcmp(interpreters[i].language, language) == 0)
			return &interpreters[i];
	}
	return NULL;
}

static int unknown(const char *language, struct sba_error *err)
{
	SBA_BUF struct sba_buf known = SBA_BUF_INIT(SBA_KIB);
	for (size_t i = 0; i < SBA_ARRAY_LEN(interpreters); i++)
		sba_buf_printf(&known, "%s%s", i ? ", " : "", interpreters[i].language);
	return sba_hint(err,
			sba_fail(err, SBA_EINVAL, "language '%s': there is no way to run it here",
				 language),
			"what there is:  %s", known.data ? known.data : "");
}

static int missing(const struct sba_sandbox *s, const struct interpreter *i, struct sba_error *err)
{
	bool has_image = *s->info.image;
	int rc = sba_fail(err, SBA_ENOCLI, "language '%s': there is no '%s' in %s%s%s", i->language,
			  i->argv[0], has_image ? "image '" : "it", s->info.image,
			  has_image ? "'" : "");
	return has_image ? sba_hint(err, rc, "use an image that has it:  --image %s", i->image)
			 : sba_hint(err, rc, "install %s there", i->argv[0]);
}

struct passing {
	sba_code_fn *tell;
	void *user;
};

static int pass(void *user, enum sba_output which, const char *data, size_t len,
		struct sba_error *err)
{
	const struct passing *p = user;
	const struct sba_code_event e = { .kind = which == SBA_STDERR ? SBA_CODE_STDERR
								      : SBA_CODE_STDOUT,
					  .data = data,
					  .len = len };
	return p->tell(p->user, &e, err);
}

static int run_once(struct sba_sandbox *s, const struct sba_exec_options *exec, const char *code,
		    struct passing *p, struct sba_exit *ret, struct sba_error *err)
{
	struct sba_process *process = NULL;
	int rc = sba_sandbox_exec(s, exec, &process, err);
	if (rc == 0)
		rc = sba_process_converse(process, code, strlen(code), pass, p, err);
	if (rc == 0)
		rc = sba_process_wait(process, -1, ret, err);
	sba_process_free(process);
	return rc;
}

int sba_commands_run_code(struct sba_sandbox *s, const struct sba_code_options *o,
			  sba_code_fn *tell, void *user, struct sba_exit *ret,
			  struct sba_error *err)
{
	const struct interpreter *i = find(o->language);
	struct passing p = { tell, user };
	struct sba_exit end = { 0 };
	if (!i)
		return unknown(o->language, err);
	const struct sba_exec_options exec = { .argv = i->argv,
					       .env = o->env,
					       .workdir = sba_sandbox_workdir(s),
					       .timeout_ms = o->timeout_ms > 0 ? o->timeout_ms : 0,
					       .has_stdin = true };
	int rc = run_once(s, &exec, o->code, &p, &end, err);
	/* It is made by whoever works there first. */
	if (rc == 0 && end.kind == SBA_NO_WORKDIR) {
		rc = sba_sandbox_make_dir(s, exec.workdir, err);
		if (rc == 0)
			rc = run_once(s, &exec, o->code, &p, &end, err);
	}
	if (rc == 0 && end.kind == SBA_NOT_FOUND)
		rc = missing(s, i, err);
	if (rc == 0)
		*ret = end;
	return rc;
}
