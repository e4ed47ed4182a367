/* SPDX-License-Identifier: MIT */
/* status.json: the one file of a session that is rewritten, whole or not at all. */
#include "audit/private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

json_t *sba_audit_status_new(const struct sba_audit *a)
{
	const struct sba_audit_who *w = &a->who;
	char now[SBA_AUDIT_TIME], host[256] = "";
	sba_audit_time(sba_unix_ms(), now);
	gethostname(host, sizeof(host) - 1);
	return json_pack("{s:i, s:n, s:[], s:s, s:s, s:s, s:s, s:s, s:{s:s, s:s, s:s, s:s, s:s}, "
			 "s:{s:o, s:i}, s:s, s:s, s:s, s:[]}",
			 "v", 1, "session", "sessions", "agent", w->agent, "cli_version",
			 w->version, "image", w->image, "image_digest", w->digest, "provider",
			 w->provider, "sandbox", "name", w->sandbox, "id", w->sandbox_id, "user",
			 w->user, "network", w->network, "allow", w->allow, "host", "name",
			 sba_json_text(host, strlen(host)), "uid", (int)geteuid(), "version",
			 SBA_VERSION, "created", now, "updated", now, "turns");
}

static int read_all(int fd, struct sba_buf *ret, struct sba_error *err)
{
	for (;;) {
		char *to = sba_buf_reserve(ret, 16 * SBA_KIB);
		if (!to)
			return sba_buf_check(ret, SBA_AUDIT_STATUS, err);
		ssize_t n = read(fd, to, 16 * SBA_KIB);
		if (n == 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return sba_fail_errno(err, SBA_EIO, errno, "read " SBA_AUDIT_STATUS);
		ret->len += n > 0 ? (size_t)n : 0;
	}
}

int sba_audit_status_load(int folder_fd, json_t **ret, struct sba_error *err)
{
	SBA_CLOSE int fd =
		openat(folder_fd, SBA_AUDIT_STATUS, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	SBA_BUF struct sba_buf text = SBA_BUF_INIT(SBA_AUDIT_STATUS_MAX);
	SBA_JSON json_t *j = NULL;
	if (fd < 0)
		return sba_fail_errno(err, errno == ENOENT ? SBA_ENOTFOUND : SBA_EIO, errno,
				      "read " SBA_AUDIT_STATUS);
	int rc = read_all(fd, &text, err);
	if (rc < 0)
		return rc;
	rc = sba_json_parse(text.data ? text.data : "", text.len, SBA_AUDIT_STATUS, &j, err);
	if (rc < 0)
		return rc;
	if (sba_json_int(j, "v", 0) != 1 || !json_is_array(json_object_get(j, "turns")))
		return sba_fail(err, SBA_EPROTO, SBA_AUDIT_STATUS ": not what this version writes");
	*ret = sba_move(&j);
	return 0;
}

static int write_new(int folder_fd, const char *name, const char *text, struct sba_error *err)
{
	SBA_CLOSE int fd =
		openat(folder_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return sba_fail_errno(err, SBA_EIO, errno, "make " SBA_AUDIT_STATUS);
	int rc = sba_write_all(fd, text, strlen(text), err);
	return rc == 0 ? sba_write_all(fd, "\n", 1, err) : rc;
}

int sba_audit_status_save(int folder_fd, json_t *status, struct sba_error *err)
{
	char now[SBA_AUDIT_TIME], random[17], name[48];
	sba_audit_time(sba_unix_ms(), now);
	json_object_set_new(status, "updated", json_string(now));
	SBA_FREE char *text = json_dumps(status, JSON_INDENT(1) | JSON_REAL_PRECISION(10));
	if (!text)
		return sba_fail_nomem(err);
	int rc = sba_random_hex(random, 8, err);
	if (rc < 0)
		return rc;
	snprintf(name, sizeof(name), ".status.%s", random);
	rc = write_new(folder_fd, name, text, err);
	if (rc == 0 && renameat(folder_fd, name, folder_fd, SBA_AUDIT_STATUS) < 0)
		rc = sba_fail_errno(err, SBA_EIO, errno, "put " SBA_AUDIT_STATUS " in place");
	if (rc < 0)
		unlinkat(folder_fd, name, 0);
	return rc;
}

bool sba_audit_status_is_of(const json_t *status, const char *sandbox_id)
{
	const char *id = sba_json_str(status, "sandbox.id");
	return id && strcmp(id, sandbox_id) == 0;
}

bool sba_audit_status_has(const json_t *status, const char *session)
{
	size_t i;
	const json_t *one;
	json_array_foreach(json_object_get(status, "sessions"), i, one)
	{
		const char *id = json_string_value(one);
		if (id && strcmp(id, session) == 0)
			return true;
	}
	return false;
}

/* The first is what the folder is called by; others are names that the CLI gave it
 * later. */
int sba_audit_status_add_session(json_t *status, const char *session)
{
	json_t *all = json_object_get(status, "sessions");
	if (sba_audit_status_has(status, session))
		return 0;
	if (!json_is_string(json_object_get(status, "session")) &&
	    json_object_set_new(status, "session", json_string(session)) < 0)
		return SBA_ENOMEM;
	if (!all) {
		all = json_array();
		json_object_set_new(status, "sessions", all);
	}
	return json_array_append_new(all, json_string(session)) < 0 ? SBA_ENOMEM : 0;
}
