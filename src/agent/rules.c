/* SPDX-License-Identifier: MIT */
/* The one file of instructions that the CLI reads for every turn. */
#include "agent/private.h"

#include <sandbox-agent/session.h>

#include <stdlib.h>
#include <string.h>

static int enter(struct sba_agent *a, struct sba_inside *ret_in, struct sba_buf *ret_path,
		 struct sba_error *err)
{
	if (!a->driver->rules)
		return sba_fail(err, SBA_EUNSUPPORTED, "%s reads no file of rules",
				a->driver->name);
	int rc = sba_agent_inside(a, ret_in, err);
	if (rc == 0)
		sba_buf_printf(ret_path, "%s/%s", ret_in->home, a->driver->rules);
	return rc < 0 ? rc : sba_buf_check(ret_path, "path", err);
}

static int wrap(const struct sba_agent *a, int rc, struct sba_error *err)
{
	return rc < 0 ? sba_wrap(err, rc, "sandbox '%s': rules", sba_sandbox_info(a->sandbox)->name)
		      : 0;
}

static int remove_file(const struct sba_inside *in, const char *path, struct sba_error *err)
{
	const char *const argv[] = { "rm", "-f", "--", path, NULL };
	const struct sba_inside_run r = { .argv = argv };
	SBA_BUF struct sba_buf out = SBA_BUF_INIT(SBA_KIB);
	char said[SBA_SAID_MAX];
	int status;
	int rc = in->run(in, &r, &out, &status, said, err);
	return rc == 0 && status != 0 ? sba_fail(err, SBA_EIO, "%s", said) : rc;
}

int sba_rules_set(struct sba_agent *a, const void *text, size_t len, struct sba_error *err)
{
	SBA_BUF struct sba_buf path = SBA_BUF_INIT(2 * SBA_HOME_MAX);
	struct sba_inside in;
	if (len > SBA_RULES_MAX)
		return sba_fail(err, SBA_ELIMIT, "the rules are longer than %d bytes",
				SBA_RULES_MAX);
	int rc = enter(a, &in, &path, err);
	if (rc == 0)
		rc = len ? in.write(&in, path.data, text, len, 0644, err)
			 : remove_file(&in, path.data, err);
	return wrap(a, rc, err);
}

int sba_rules_get(struct sba_agent *a, char **ret, size_t *ret_len, struct sba_error *err)
{
	SBA_BUF struct sba_buf path = SBA_BUF_INIT(2 * SBA_HOME_MAX);
	SBA_BUF struct sba_buf text = SBA_BUF_INIT(SBA_RULES_MAX);
	struct sba_inside in;
	int rc = enter(a, &in, &path, err);
	if (rc == 0)
		rc = in.read(&in, path.data, SBA_RULES_MAX, &text, err);
	if (rc == SBA_ENOTFOUND)
		rc = 0;
	size_t len = text.len;
	char *copy = rc == 0 ? sba_buf_take(&text) : NULL;
	if (rc == 0 && !copy)
		rc = sba_fail_nomem(err);
	if (rc < 0)
		return wrap(a, rc, err);
	*ret = copy;
	if (ret_len)
		*ret_len = len;
	return 0;
}
