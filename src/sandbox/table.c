/* SPDX-License-Identifier: MIT */
/*
 * A sandbox, whatever its backend: each call goes to the backend's table, and where that
 * has no such member, to what is made of commands.
 */
#include "sandbox/session.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* All up to "inspect". */
enum { CAPABILITIES_OF_1 = (SBA_CAN_INSPECT << 1) - 1 };

const struct sba_backend *sba_backend_of(const struct sba_sandbox *s)
{
	return s->backend ? s->backend : &sba_backend_docker;
}

/* ---- capabilities ---- */

const char *sba_capability_name(enum sba_capability one)
{
	static const char *const names[] = { "stdin",   "tty",      "signal",    "user",  "detach",
					     "lock",    "host_url", "port",      "trees", "fork",
					     "inspect", "run_code", "code_state" };
	for (size_t i = 0; i < SBA_ARRAY_LEN(names); i++) {
		if ((unsigned)one == 1U << i)
			return names[i];
	}
	return "?";
}

bool sba_sandbox_can(const struct sba_sandbox *s, unsigned capabilities)
{
	return (sba_backend_of(s)->can & capabilities) == capabilities;
}

int sba_sandbox_need(const struct sba_sandbox *s, unsigned capabilities, struct sba_error *err)
{
	unsigned missing = capabilities & ~sba_backend_of(s)->can;
	if (!missing)
		return 0;
	return sba_hint(err,
			sba_fail(err, SBA_EUNSUPPORTED,
				 "sandbox '%s': its backend '%s' has not the capability '%s'",
				 s->info.name, sba_backend_of(s)->name,
				 sba_capability_name((enum sba_capability)(missing & -missing))),
			"which backends have it:  docs/backends.md");
}

const char *sba_sandbox_backend(const struct sba_sandbox *s)
{
	return sba_backend_of(s)->name;
}

void *sba_sandbox_self(const struct sba_sandbox *s)
{
	return s->self;
}

/* ---- adopting ---- */

/* What a backend is without a channel to a guest. */
static int no_channel(void *user, struct sba_until until, struct sba_channel **ret,
		      struct sba_error *err)
{
	(void)until;
	(void)ret;
	return sba_fail(err, SBA_EUNSUPPORTED, "backend '%s' has no channel",
			sba_sandbox_backend(user));
}

static int check_table(const struct sba_backend *b, struct sba_error *err)
{
	if (b->version < 1 || b->version > SBA_BACKEND_VERSION)
		return sba_fail(err, SBA_EINVAL,
				"backend: its table is of version %d, and this library knows %d",
				b->version, SBA_BACKEND_VERSION);
	if (!sba_is_word(b->name, "_-", SBA_NAME_MAX))
		return sba_fail(err, SBA_EINVAL,
				"backend: its name is made of letters, digits, '-' and '_'");
	if (!b->exec || !b->close)
		return sba_fail(err, SBA_EINVAL, "backend '%s': it has no '%s'", b->name,
				b->exec ? "close" : "exec");
	bool keeps_state = b->version > 1 && (b->can & SBA_CAN_CODE_STATE);
	if (((b->can & SBA_CAN_HOST_URL) && !b->host_url) ||
	    ((b->can & SBA_CAN_FORK) && !b->fork) ||
	    (keeps_state && (!b->run_code || !b->context_new || !b->context_end)))
		return sba_fail(err, SBA_EINVAL,
				"backend '%s': it promises what is not in its table", b->name);
	return 0;
}

/* The table itself, or, of an earlier version, what it had then: what lies behind that was
 * nobody's to fill, and what words were made of later bits. */
static const struct sba_backend *table_as_of_today(const struct sba_backend *b,
						   struct sba_backend *ret_older)
{
	if (b->version == SBA_BACKEND_VERSION)
		return b;
	*ret_older = (struct sba_backend){ .version = SBA_BACKEND_VERSION };
	memcpy(ret_older, b, offsetof(struct sba_backend, snapshot));
	ret_older->can &= CAPABILITIES_OF_1;
	return ret_older;
}

/* Every string of it is lent from labels, as of any other. */
static int describe(struct sba_sandbox *s, const char *name, struct sba_error *err)
{
	s->labels = json_pack("{s:s}", SBA_LABEL "name", name);
	if (!s->labels)
		return sba_fail(err, SBA_EINVAL, "sandbox: its name is not UTF-8");
	sba_labels_read(s->labels, &s->info);
	s->info.reason = "";
	s->info.state = "idle";
	s->info.created = sba_unix_ms() / 1000;
	return 0;
}

int sba_sandbox_new_of(const struct sba_backend *backend, const char *name,
		       sba_session_open_fn *open, struct sba_sandbox **ret, struct sba_error *err)
{
	int rc = check_table(backend, err);
	if (rc < 0)
		return rc;
	struct sba_sandbox *s = calloc(1, sizeof(*s));
	if (!s)
		return sba_fail_nomem(err);
	s->sidecar_state = "idle";
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->unlocked, NULL);
	rc = describe(s, name ? name : backend->name, err);
	if (rc == 0)
		rc = sba_session_new_with(s, open ? open : no_channel, s, &s->session, err);
	if (rc < 0) {
		sba_sandbox_close(s);
		return rc;
	}
	s->backend = table_as_of_today(backend, &s->older);
	*ret = s;
	return 0;
}

int sba_sandbox_adopt(const struct sba_backend *backend, void *self, const char *name,
		      struct sba_sandbox **ret, struct sba_error *err)
{
	int rc = sba_sandbox_new_of(backend, name, NULL, ret, err);
	if (rc == 0)
		(*ret)->self = self;
	return rc;
}

/* ---- whether it is there, and its end ---- */

int sba_sandbox_check_open(struct sba_sandbox *s, struct sba_error *err)
{
	pthread_mutex_lock(&s->lock);
	bool closed = s->closed;
	pthread_mutex_unlock(&s->lock);
	return closed ? sba_fail(err, SBA_EBROKEN, "sandbox '%s' is closed", s->info.name) : 0;
}

int sba_sandbox_remove(struct sba_sandbox *s, struct sba_error *err)
{
	int rc = sba_backend_of(s)->close(s, err);
	if (rc < 0 || s->engine)
		return rc;
	pthread_mutex_lock(&s->lock);
	s->closed = true;
	pthread_mutex_unlock(&s->lock);
	return 0;
}

/* ---- commands ---- */

static unsigned wishes(const struct sba_exec_options *o)
{
	return (o->tty ? (unsigned)SBA_CAN_TTY : 0) | (o->user ? (unsigned)SBA_CAN_USER : 0) |
	       (o->detach ? (unsigned)SBA_CAN_DETACH : 0) | (o->lock ? (unsigned)SBA_CAN_LOCK : 0);
}

int sba_sandbox_exec(struct sba_sandbox *s, const struct sba_exec_options *o,
		     struct sba_process **ret, struct sba_error *err)
{
	int rc = sba_exec_options_check(o, err);
	if (rc == 0)
		rc = sba_sandbox_check_open(s, err);
	if (rc == 0)
		rc = sba_sandbox_need(s, wishes(o), err);
	return rc == 0 ? sba_backend_of(s)->exec(s, o, ret, err) : rc;
}

const char *sba_sandbox_workdir(const struct sba_sandbox *s)
{
	const struct sba_backend *b = sba_backend_of(s);
	return b->workdir ? b->workdir(s) : SBA_DEFAULT_WORKSPACE;
}

int sba_sandbox_which(struct sba_sandbox *s, const char *program, char **ret, struct sba_error *err)
{
	const struct sba_backend *b = sba_backend_of(s);
	int rc = sba_sandbox_check_open(s, err);
	if (rc == 0)
		rc = (b->which ? b->which : sba_commands_which)(s, program, ret, err);
	return rc;
}

/* ---- files ---- */

int sba_sandbox_check_path(struct sba_sandbox *s, const char *path, struct sba_error *err)
{
	int rc = sba_sandbox_check_open(s, err);
	return rc == 0 && s->check_path ? s->check_path(s, path, err) : rc;
}

int sba_sandbox_read(struct sba_sandbox *s, const char *path, int64_t timeout_ms,
		     sba_write_fn *write, void *user, struct sba_error *err)
{
	const struct sba_backend *b = sba_backend_of(s);
	int rc = sba_sandbox_check_path(s, path, err);
	if (rc == 0)
		rc = (b->read ? b->read : sba_commands_read)(s, path, timeout_ms, write, user, err);
	return rc;
}

int sba_sandbox_write(struct sba_sandbox *s, const char *path, sba_read_fn *read, void *user,
		      const struct sba_write_options *options, struct sba_error *err)
{
	const struct sba_backend *b = sba_backend_of(s);
	int rc = sba_sandbox_check_path(s, path, err);
	if (rc == 0)
		rc = (b->write ? b->write : sba_commands_write)(s, path, read, user, options, err);
	return rc;
}

int sba_sandbox_stat(struct sba_sandbox *s, const char *path, struct sba_file_stat *ret,
		     struct sba_error *err)
{
	const struct sba_backend *b = sba_backend_of(s);
	int rc = sba_sandbox_check_path(s, path, err);
	if (rc == 0)
		rc = (b->stat ? b->stat : sba_commands_stat)(s, path, ret, err);
	return rc;
}

int sba_sandbox_tempdir(struct sba_sandbox *s, char **ret, struct sba_error *err)
{
	const struct sba_backend *b = sba_backend_of(s);
	int rc = sba_sandbox_check_open(s, err);
	if (rc == 0)
		rc = (b->tempdir ? b->tempdir : sba_commands_tempdir)(s, ret, err);
	return rc;
}

/* ---- the rest ---- */

int sba_sandbox_host_url(struct sba_sandbox *s, uint16_t host_port, char *ret, size_t size,
			 struct sba_error *err)
{
	int rc = sba_sandbox_need(s, SBA_CAN_HOST_URL, err);
	return rc == 0 ? sba_backend_of(s)->host_url(s, host_port, ret, size, err) : rc;
}

int sba_sandbox_fork(struct sba_sandbox *parent, const struct sba_fork_options *options,
		     struct sba_sandbox **ret, struct sba_fork_report *ret_report,
		     struct sba_error *err)
{
	int rc = sba_sandbox_need(parent, SBA_CAN_FORK, err);
	return rc == 0 ? sba_backend_of(parent)->fork(parent, options, ret, ret_report, err) : rc;
}
