/* SPDX-License-Identifier: MIT */
/* A command carried by an exec of the engine; see link.h. */
#include "sandbox/link.h"

#include <stdlib.h>

#include "channel/protocol.h"

enum { RUN_ID_BYTES = 8 };

struct exec_link {
	struct sba_link link;
	struct sba_exec *exec;
};

static struct sba_exec *exec_of(const struct sba_link *l)
{
	return ((const struct exec_link *)l)->exec;
}

static ssize_t exec_read(struct sba_link *l, int *stream, const char **data, struct sba_until until,
			 struct sba_error *err)
{
	enum sba_exec_stream which = SBA_EXEC_STDOUT;
	ssize_t n = sba_exec_read(exec_of(l), &which, data, until, err);
	*stream = which == SBA_EXEC_STDERR ? SBA_STDERR : SBA_STDOUT;
	return n;
}

static ssize_t exec_write(struct sba_link *l, const void *data, size_t len, struct sba_error *err)
{
	return sba_exec_write(exec_of(l), data, len, err);
}

static int exec_fd(const struct sba_link *l)
{
	return sba_exec_fd(exec_of(l));
}

static bool exec_wants_write(const struct sba_link *l)
{
	return sba_exec_wants_write(exec_of(l));
}

static int exec_explain(struct sba_link *l, struct sba_until until, int *ret_code,
			struct sba_error *err)
{
	return sba_exec_exit_code(exec_of(l), until, ret_code, err);
}

static void exec_close(struct sba_link *l)
{
	sba_exec_close(exec_of(l));
	free(l);
}

static const struct sba_link_ops exec_ops = {
	.read = exec_read,
	.write = exec_write,
	.fd = exec_fd,
	.wants_write = exec_wants_write,
	.explain = exec_explain,
	.close = exec_close,
};

int sba_link_exec(struct sba_sandbox *s, const char *user, struct sba_link **ret,
		  struct sba_error *err)
{
	char id[2 * RUN_ID_BYTES + 1];
	int rc = sba_random_hex(id, RUN_ID_BYTES, err);
	if (rc < 0)
		return rc;
	struct exec_link *l = calloc(1, sizeof(*l));
	if (!l)
		return sba_fail_nomem(err);
	l->link.ops = &exec_ops;
	const char *const argv[] = { SBA_GUEST_PATH, "run", id, NULL };
	const struct sba_exec_spec spec = { .container = s->container, .argv = argv, .user = user };
	rc = sba_exec_open(s->engine, &spec, sba_engine_until(s->engine, SBA_ENGINE_STEP_MS),
			   &l->exec, err);
	if (rc < 0) {
		free(l);
		return rc;
	}
	*ret = &l->link;
	return 0;
}
