/* SPDX-License-Identifier: MIT */
/*
 * Files by the endpoints that services have for them. What those do not do (whole or not at
 * all, modes, owners, files that have no size) is done by commands inside.
 */
#include "base/limits.h"
#include "remote/private.h"

#include <string.h>
#include <unistd.h>

enum { FILE_MS = 5 * 60 * 1000, SAID_MAX = 300 };

/* ---- out ---- */

/* What came of it; SBA_ENOTFOUND: nothing did, and somebody else is to say why. */
static int pass_on(struct sba_http_response *answer, struct sba_until until, sba_write_fn *write,
		   void *user, struct sba_error *err)
{
	char piece[32 * SBA_KIB];
	uint64_t total = 0;
	ssize_t n;
	while ((n = sba_http_response_read(answer, piece, sizeof(piece), until, err)) > 0) {
		int rc = write(user, piece, (size_t)n, err);
		if (rc < 0)
			return rc;
		total += (uint64_t)n;
	}
	return n < 0 ? (int)n : total ? 0 : SBA_ENOTFOUND;
}

int sba_remote_read(struct sba_sandbox *s, const char *path, int64_t timeout_ms,
		    sba_write_fn *write, void *user, struct sba_error *err)
{
	struct sba_remote_box *b = sba_remote_box_of(s);
	struct sba_http_response *answer = NULL;
	struct sba_error why;
	const struct sba_until until =
		sba_remote_until(b->remote, timeout_ms > 0 ? timeout_ms : FILE_MS);
	int rc = b->remote->kind->get(b, path, until, &answer, &why);
	if (rc == SBA_ECANCELED || rc == SBA_ETIMEOUT || rc == SBA_EPERM || rc == SBA_ECONNECT) {
		if (err)
			*err = why;
		return rc;
	}
	/* Why it is none, and what only seems to be empty (/proc), a command tells. */
	rc = rc == 0 ? pass_on(answer, until, write, user, err) : SBA_ENOTFOUND;
	sba_http_response_close(answer);
	if (rc == SBA_ENOTFOUND)
		return sba_commands_read(s, path, timeout_ms, write, user, err);
	return rc < 0 ? sba_wrap(err, rc, "%s", path) : 0;
}

/* ---- in ---- */

/* All of it here first: what its reader breaks off has changed nothing there. */
static int spool(sba_read_fn *read, void *user, int *ret_fd, uint64_t *ret_size,
		 struct sba_error *err)
{
	SBA_CLOSE int fd = -1;
	char piece[32 * SBA_KIB];
	ssize_t n;
	uint64_t size = 0;
	int rc = sba_open_unnamed(&fd, err);
	while (rc == 0 && (n = read(user, piece, sizeof(piece), err)) != 0) {
		rc = n < 0 ? (int)n : sba_write_all(fd, piece, (size_t)n, err);
		size += n > 0 ? (uint64_t)n : 0;
	}
	if (rc < 0)
		return rc;
	if (lseek(fd, 0, SEEK_SET) < 0)
		return sba_fail(err, SBA_EIO, "its copy here");
	*ret_fd = sba_move_fd(&fd);
	*ret_size = size;
	return 0;
}

/* In its place with one stroke, from a name beside it. */
static int settle(struct sba_sandbox *s, const char *path, const char *from,
		  const struct sba_write_options *o, struct sba_error *err)
{
	struct sba_commands_write_argv argv;
	sba_commands_write_argv(path, from, o, &argv);
	struct sba_run_result r = { 0 };
	int rc = sba_sandbox_run(s,
				 &(struct sba_run_options){ .argv = argv.v,
							    .workdir = "/",
							    .timeout_ms = FILE_MS,
							    .max_output = SBA_MIB },
				 &r, err);
	if (rc < 0)
		return rc;
	if (r.exit.kind == SBA_EXITED && r.exit.number == SBA_COMMANDS_NO_FILE)
		rc = sba_fail(err, SBA_EREFUSED, "it is no regular file");
	else if (sba_exit_status(&r.exit) != 0)
		rc = sba_fail(
			err, SBA_EIO, "%.*s",
			(int)(strcspn(r.err, "\n") < SAID_MAX ? strcspn(r.err, "\n") : SAID_MAX),
			r.err);
	sba_run_result_fini(&r);
	return rc;
}

int sba_remote_write(struct sba_sandbox *s, const char *path, sba_read_fn *read, void *user,
		     const struct sba_write_options *options, struct sba_error *err)
{
	struct sba_remote_box *b = sba_remote_box_of(s);
	SBA_CLOSE int fd = -1;
	uint64_t size = 0;
	char random[17], from[64];
	int rc = sba_random_hex(random, 8, err);
	if (rc == 0)
		rc = spool(read, user, &fd, &size, err);
	if (rc < 0)
		return rc;
	snprintf(from, sizeof(from), "/tmp/.sandbox-agent-%s", random);
	int64_t ms = options && options->timeout_ms > 0 ? options->timeout_ms : FILE_MS;
	rc = b->remote->kind->put(b, from, fd, size, sba_remote_until(b->remote, ms), err);
	if (rc == 0)
		rc = settle(s, path, from, options, err);
	return rc < 0 ? sba_wrap(err, sba_remote_explain(b, rc, err), "write %s", path) : 0;
}

/* ---- an endpoint for files ---- */

int sba_remote_file_url(const struct sba_remote_box *b, const char *endpoint, const char *path,
			const char *more, struct sba_buf *ret, struct sba_error *err)
{
	sba_buf_printf(ret, "%s%s?path=", b->base, endpoint);
	sba_buf_put_url(ret, path);
	sba_buf_puts(ret, more);
	return sba_buf_check(ret, "URL", err);
}

int sba_remote_fetch(struct sba_remote_box *b, const char *url, struct sba_until until,
		     struct sba_http_response **ret, struct sba_error *err)
{
	const struct sba_remote_call call = { .method = "GET",
					      .url = url,
					      .what = "read a file",
					      .headers = &b->headers,
					      .secret = b->secret,
					      .again = true };
	return sba_remote_open_call(b->remote, &call, until, ret, err);
}

/* ---- a form ---- */

struct form_reading {
	const struct sba_remote_form *form;
	uint64_t at;
};

static size_t copy_part(const char *text, uint64_t at, char *buf, size_t size)
{
	size_t left = strlen(text) - (size_t)at, n = left < size ? left : size;
	memcpy(buf, text + at, n);
	return n;
}

static ssize_t form_read(void *user, char *buf, size_t size)
{
	struct form_reading *r = user;
	const struct sba_remote_form *f = r->form;
	uint64_t before = strlen(f->before), at = r->at;
	ssize_t n;
	if (at < before)
		n = (ssize_t)copy_part(f->before, at, buf, size);
	else if (at < before + f->size)
		n = read(f->fd, buf,
			 size < before + f->size - at ? size : (size_t)(before + f->size - at));
	else
		n = (ssize_t)copy_part(f->after, at - before - f->size, buf, size);
	r->at += n > 0 ? (uint64_t)n : 0;
	return n;
}

int sba_remote_send_form(struct sba_remote_box *b, const char *url,
			 const struct sba_remote_form *form, struct sba_until until,
			 struct sba_error *err)
{
	struct form_reading r = { form, 0 };
	const struct sba_remote_call call = {
		.method = "POST",
		.url = url,
		.what = "send a file",
		.headers = &b->headers,
		.secret = b->secret,
		.type = "multipart/form-data; boundary=" SBA_REMOTE_BOUNDARY,
		.body_read = form_read,
		.body_user = &r,
		.body_len = strlen(form->before) + (size_t)form->size + strlen(form->after),
	};
	return sba_remote_call(b->remote, &call, until, NULL, err);
}
