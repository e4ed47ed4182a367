/* SPDX-License-Identifier: MIT */
/* A command run to its end, with its output kept. */
#include "sandbox/process.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"

enum { RUN_MS = 60 * 1000, OUTPUT_MAX = 10 * SBA_MIB };

struct run {
	struct sba_process *process;
	struct sba_buf out, err;
};

void sba_run_result_fini(struct sba_run_result *r)
{
	free(r->out);
	free(r->err);
	*r = (struct sba_run_result){ 0 };
}

static int keep(void *user, enum sba_output which, const char *data, size_t len,
		struct sba_error *err)
{
	struct run *r = user;
	(void)err;
	sba_buf_put(which == SBA_STDERR ? &r->err : &r->out, data, len);
	return 0;
}

static int take(struct run *r, const struct sba_exit *end, struct sba_run_result *ret,
		struct sba_error *err)
{
	int rc = sba_buf_check(&r->out, "what it printed", err);
	if (rc == 0)
		rc = sba_buf_check(&r->err, "what it printed", err);
	if (rc < 0)
		return rc;
	struct sba_run_result result = { .out_len = r->out.len,
					 .err_len = r->err.len,
					 .dropped = sba_process_dropped(r->process),
					 .exit = *end };
	result.out = sba_buf_take(&r->out);
	result.err = sba_buf_take(&r->err);
	if (!result.out || !result.err) {
		sba_run_result_fini(&result);
		return sba_fail_nomem(err);
	}
	*ret = result;
	return 0;
}

static int run_by_exec(struct sba_sandbox *s, const struct sba_run_options *o,
		       struct sba_run_result *ret, struct sba_error *err)
{
	size_t max = o->max_output ? o->max_output : (size_t)OUTPUT_MAX;
	const struct sba_exec_options exec = {
		.argv = o->argv,
		.env = o->env,
		.workdir = o->workdir,
		.timeout_ms = o->timeout_ms < 0 ? 0
			      : o->timeout_ms   ? o->timeout_ms
						: RUN_MS,
		.has_stdin = o->input != NULL,
		.max_output = (int64_t)max,
	};
	struct run r = { 0 };
	struct sba_exit end = { 0 };
	sba_buf_init(&r.out, max);
	sba_buf_init(&r.err, max);
	int rc = sba_sandbox_exec(s, &exec, &r.process, err);
	if (rc == 0)
		rc = sba_process_converse(r.process, o->input, o->input_len, keep, &r, err);
	if (rc == 0)
		rc = sba_process_wait(r.process, -1, &end, err);
	if (rc == 0)
		rc = take(&r, &end, ret, err);
	sba_process_free(r.process);
	sba_buf_fini(&r.out);
	sba_buf_fini(&r.err);
	return rc;
}

int sba_sandbox_run(struct sba_sandbox *s, const struct sba_run_options *o,
		    struct sba_run_result *ret, struct sba_error *err)
{
	const struct sba_backend *b = sba_backend_of(s);
	int rc = sba_sandbox_check_open(s, err);
	if (rc == 0)
		rc = (b->run ? b->run : run_by_exec)(s, o, ret, err);
	return rc;
}
