/* SPDX-License-Identifier: MIT */
/*
 * What is the agent's and not the user's: state, the driver's files. In a container it
 * belongs to root and has a fixed place; elsewhere it lies below the home of the
 * sandbox's user, under the same names.
 */
#include "sandbox/private.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/limits.h"

#define ROOT_NAME "/.sandbox-agent"

static bool has_engine(const struct sba_sandbox *s)
{
	return !s->backend;
}

/* Whoever was first has said it. */
static void keep_root(struct sba_sandbox *s, char **take_root)
{
	pthread_mutex_lock(&s->lock);
	if (!s->root)
		s->root = sba_move(take_root);
	pthread_mutex_unlock(&s->lock);
}

static int find_root(struct sba_sandbox *s, struct sba_error *err)
{
	SBA_FREE char *home = NULL, *root = NULL;
	int rc = sba_commands_home(s, &home, err);
	if (rc < 0)
		return rc;
	if (home[0] != '/')
		return sba_fail(err, SBA_EBROKEN, "the sandbox's user has no home");
	if (asprintf(&root, "%s" ROOT_NAME, strcmp(home, "/") ? home : "") < 0)
		return sba_fail_nomem(err);
	keep_root(s, &root);
	return 0;
}

int sba_sandbox_root(struct sba_sandbox *s, const char **ret, struct sba_error *err)
{
	if (has_engine(s)) {
		*ret = "";
		return 0;
	}
	pthread_mutex_lock(&s->lock);
	const char *known = s->root;
	pthread_mutex_unlock(&s->lock);
	int rc = known ? 0 : find_root(s, err);
	if (rc == 0)
		*ret = s->root; /* it never changes again */
	return rc;
}

static int below_root(struct sba_sandbox *s, const char *path, char **ret, struct sba_error *err)
{
	const char *root = NULL;
	int rc = sba_sandbox_root(s, &root, err);
	if (rc == 0 && asprintf(ret, "%s%s", root, path) < 0)
		rc = sba_fail_nomem(err);
	return rc;
}

static int put(void *user, const void *data, size_t len, struct sba_error *err)
{
	struct sba_buf *b = user;
	sba_buf_put(b, data, len);
	return sba_buf_check(b, "file", err);
}

int sba_sandbox_read_small(struct sba_sandbox *s, const char *path, size_t max, struct sba_buf *ret,
			   struct sba_error *err)
{
	SBA_FREE char *real = NULL;
	if (has_engine(s))
		return sba_docker_read_small(s, path, max, ret, err);
	SBA_BUF struct sba_buf text = SBA_BUF_INIT(max);
	int rc = below_root(s, path, &real, err);
	if (rc == 0)
		rc = sba_sandbox_read(s, real, 0, put, &text, err);
	if (rc == 0)
		sba_buf_put(ret, text.data ? text.data : "", text.len);
	return rc == 0 ? sba_buf_check(ret, path, err) : rc;
}

struct bytes {
	const char *data;
	size_t left;
};

static ssize_t take(void *user, void *buf, size_t size, struct sba_error *err)
{
	struct bytes *b = user;
	size_t n = b->left < size ? b->left : size;
	(void)err;
	memcpy(buf, b->data, n);
	b->data += n;
	b->left -= n;
	return (ssize_t)n;
}

int sba_sandbox_write_files(struct sba_sandbox *s, const struct sba_small_file *files, size_t n,
			    struct sba_error *err)
{
	if (has_engine(s))
		return sba_docker_write_files(s, files, n, err);
	int rc = 0;
	for (size_t i = 0; rc == 0 && i < n; i++) {
		SBA_FREE char *real = NULL;
		const struct sba_write_options o = { .set_mode = true, .mode = files[i].mode };
		struct bytes b = { files[i].len ? files[i].data : "", files[i].len };
		rc = below_root(s, files[i].path, &real, err);
		if (rc == 0)
			rc = sba_sandbox_write(s, real, take, &b, &o, err);
	}
	return rc;
}

int sba_sandbox_write_small(struct sba_sandbox *s, const char *path, const void *data, size_t len,
			    uint32_t mode, struct sba_error *err)
{
	const struct sba_small_file file = { path, data, len, mode };
	int rc = sba_sandbox_write_files(s, &file, 1, err);
	return rc < 0 ? sba_wrap(err, rc, "write '%s'", path) : 0;
}

int sba_sandbox_make_dir(struct sba_sandbox *s, const char *path, struct sba_error *err)
{
	struct sba_file_stat st;
	if (has_engine(s))
		return sba_docker_make_dir(s, path, err);
	if (sba_sandbox_stat(s, path, &st, NULL) == 0 && S_ISDIR(st.mode))
		return 0;
	return sba_commands_make_dir(s, path, err);
}
