/* SPDX-License-Identifier: MIT */
/*
 * A folder of this host as a sandbox, for code that is trusted: the guest of containers over
 * a socketpair, so that deadlines, trees and the death of a client are the same here.
 */
#include "sandbox/local.h"
#include "sandbox/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "channel/protocol.h"
#include "image/image.h"

/* The guest's own time to end all trees, and more. */
enum { END_MS = 15 * 1000 };

struct local {
	char *folder; /* real */
	char *own;    /* its own, elsewhere */
	int own_fd;
	int rules_fd; /* of Landlock; -1: none */
	struct sba_strv env;
	struct sba_hashes *hashes;
	pthread_mutex_t lock; /* of what follows */
	pid_t guest;          /* 0: none was started */
	int guest_fd;         /* a copy of our end, to end it by */
};

static struct local *local_of(const struct sba_sandbox *s)
{
	return sba_sandbox_self(s);
}

/* ---- the guest ---- */

static int open_guest(int *ret_fd, struct sba_error *err)
{
	struct sba_guest guest = { 0 };
	int rc = sba_guest_find(NULL, &guest, err);
	if (rc < 0)
		return sba_fail(err, SBA_EBROKEN, "there is no guest for this host");
	SBA_CLOSE int fd = memfd_create("guest", MFD_CLOEXEC);
	if (fd < 0)
		return sba_fail_errno(err, SBA_EIO, errno, "a file for the guest");
	rc = sba_write_all(fd, guest.data, guest.len, err);
	if (rc == 0)
		*ret_fd = sba_move_fd(&fd);
	return rc;
}

struct birth {
	const struct local *local;
	int program, socket;
	char **env;
};

/* After fork() in a program that may have threads: system calls alone. */
_Noreturn static void become_guest(const struct birth *b)
{
	static char name[] = SBA_GUEST_PATH, command[] = "session";
	char *const argv[] = { name, command, NULL };
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (setsid() >= 0 && chdir(b->local->folder) == 0 && null >= 0 &&
	    dup2(b->socket, STDIN_FILENO) >= 0 && dup2(b->socket, STDOUT_FILENO) >= 0 &&
	    dup2(null, STDERR_FILENO) >= 0 && sba_local_confine(b->local->rules_fd))
		fexecve(b->program, argv, b->env);
	_exit(127);
}

/* Waits for the guest of before, which a lost channel has left. */
static void bury(struct local *l)
{
	int status;
	if (l->guest > 0 &&
	    sba_child_wait(l->guest, sba_until_in(END_MS), &status, NULL) == SBA_ETIMEOUT) {
		kill(l->guest, SIGKILL);
		(void)!sba_child_wait(l->guest, sba_until_in(END_MS), &status, NULL);
	}
	l->guest = 0;
	sba_cleanup_close(&l->guest_fd);
	l->guest_fd = -1;
}

static int start_guest(struct local *l, int *ret_socket, struct sba_error *err)
{
	int ends[2];
	SBA_CLOSE int program = -1;
	int rc = open_guest(&program, err);
	if (rc < 0)
		return rc;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return sba_fail_errno(err, SBA_EIO, errno, "a socket for the guest");
	SBA_CLOSE int ours = ends[0], theirs = ends[1];
	const struct birth b = { l, program, theirs, l->env.v };
	bury(l);
	l->guest_fd = fcntl(ours, F_DUPFD_CLOEXEC, 0);
	l->guest = l->guest_fd < 0 ? -1 : fork();
	if (l->guest == 0)
		become_guest(&b);
	if (l->guest < 0) {
		rc = sba_fail_errno(err, SBA_EIO, errno, "start the guest");
		l->guest = 0;
		return rc;
	}
	*ret_socket = sba_move_fd(&ours);
	return 0;
}

static int open_channel(void *sandbox, struct sba_until until, struct sba_channel **ret,
			struct sba_error *err)
{
	struct local *l = local_of(sandbox);
	int fd = -1;
	pthread_mutex_lock(&l->lock);
	int rc = start_guest(l, &fd, err);
	pthread_mutex_unlock(&l->lock);
	return rc == 0 ? sba_channel_open_socket(fd, until, NULL, ret, err) : rc;
}

/* ---- files ---- */

static bool lies_in(const char *path, const char *folder)
{
	size_t len = strlen(folder);
	return strncmp(path, folder, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

/* Where what is there of a path leads to, links followed. */
static int real_start(const char *path, char ret[PATH_MAX], struct sba_error *err)
{
	char start[PATH_MAX];
	struct stat st;
	int n = snprintf(start, sizeof(start), "%s", path);
	if (n < 0 || (size_t)n >= sizeof(start))
		return sba_fail(err, SBA_EINVAL, "path '%.60s…': too long", path);
	while (!realpath(start, ret)) {
		char *slash = strrchr(start, '/');
		/* A link that leads to nothing may lead anywhere. */
		if (!slash || lstat(start, &st) == 0)
			return sba_fail_errno(err, SBA_EREFUSED, errno, "'%s'", path);
		slash[slash == start] = '\0';
	}
	return 0;
}

/* A process inside that turns a link between this and the use gains nothing: it reads what
 * it likes, and what writes for it is confined as it is. */
static int check_path(struct sba_sandbox *s, const char *path, struct sba_error *err)
{
	const struct local *l = local_of(s);
	char real[PATH_MAX];
	if (path[0] != '/')
		return sba_fail(err, SBA_EINVAL, "path '%s': it must begin with '/'", path);
	if (strstr(path, "/../") || sba_ends_with(path, "/.."))
		return sba_fail(err, SBA_EREFUSED, "path '%s': it leads out of a folder", path);
	int rc = real_start(path, real, err);
	if (rc == 0 && !lies_in(real, l->folder) && !lies_in(real, l->own))
		rc = sba_hint(
			err,
			sba_fail(err, SBA_EREFUSED, "path '%s': it is not in the sandbox", path),
			"files of a local sandbox lie in %s", l->folder);
	return rc;
}

static int local_tempdir(struct sba_sandbox *s, char **ret, struct sba_error *err)
{
	char *path;
	if (asprintf(&path, "%s/tmp/XXXXXX", local_of(s)->own) < 0)
		return sba_fail_nomem(err);
	if (!mkdtemp(path)) {
		int e = errno;
		free(path);
		return sba_fail_errno(err, SBA_EIO, e, "a folder of its own");
	}
	*ret = path;
	return 0;
}

/* ---- the table ---- */

static const char *local_workdir(const struct sba_sandbox *s)
{
	return local_of(s)->folder;
}

static int local_exec(struct sba_sandbox *s, const struct sba_exec_options *o,
		      struct sba_process **ret, struct sba_error *err)
{
	int rc = o->workdir && strcmp(o->workdir, "/") != 0 ? check_path(s, o->workdir, err) : 0;
	return rc < 0 ? sba_wrap(err, rc, "working directory") : sba_guest_exec(s, o, ret, err);
}

static int local_host_url(struct sba_sandbox *s, uint16_t host_port, char *ret, size_t size,
			  struct sba_error *err)
{
	(void)s;
	(void)err;
	snprintf(ret, size, "http://127.0.0.1:%u", (unsigned)host_port);
	return 0;
}

static int local_snapshot(struct sba_sandbox *s, const struct sba_snapshot_options *o,
			  sba_snapshot_fn *tell, void *user, struct sba_error *err)
{
	return sba_hashes_snapshot(s, local_of(s)->hashes, o, tell, user, err);
}

/* The guest sees the end of its stdin, ends every tree, and goes. */
static int local_close(struct sba_sandbox *s, struct sba_error *err)
{
	struct local *l = local_of(s);
	(void)err;
	pthread_mutex_lock(&l->lock);
	if (l->guest_fd >= 0)
		shutdown(l->guest_fd, SHUT_RDWR);
	bury(l);
	pthread_mutex_unlock(&l->lock);
	return 0;
}

static void free_local(struct local *l)
{
	if (l->own)
		sba_local_own_close(l->own, sba_move_fd(&l->own_fd));
	sba_cleanup_close(&l->rules_fd);
	sba_strv_fini(&l->env);
	sba_hashes_free(l->hashes);
	pthread_mutex_destroy(&l->lock);
	free(l->folder);
	free(l->own);
	free(l);
}

static void local_free(struct sba_sandbox *s)
{
	(void)!local_close(s, NULL);
	free_local(local_of(s));
}

static const struct sba_backend local_backend = {
	.version = SBA_BACKEND_VERSION,
	.name = "local",
	.can = SBA_CAN_STDIN | SBA_CAN_TTY | SBA_CAN_SIGNAL | SBA_CAN_HOST_URL | SBA_CAN_PORT |
	       SBA_CAN_TREES | SBA_CAN_RUN_CODE,
	.workdir = local_workdir,
	.exec = local_exec,
	.read = sba_inside_read,
	.write = sba_inside_write,
	.stat = sba_inside_look,
	.tempdir = local_tempdir,
	.host_url = local_host_url,
	.close = local_close,
	.free = local_free,
	.snapshot = local_snapshot,
};

/* ---- opening ---- */

static int prepare(struct local *l, const char *folder, const struct sba_local_options *o,
		   struct sba_error *err)
{
	struct stat st;
	l->folder = realpath(folder, NULL);
	if (!l->folder || stat(l->folder, &st) < 0)
		return sba_fail_errno(err, SBA_EINVAL, errno, "folder '%s'", folder);
	if (!S_ISDIR(st.st_mode))
		return sba_fail(err, SBA_EINVAL, "folder '%s': not a directory", folder);
	if (strcmp(l->folder, "/") == 0)
		return sba_fail(err, SBA_EREFUSED, "folder '/': the whole host is no sandbox");
	int rc = sba_local_own_open(&l->own, &l->own_fd, err);
	if (rc == 0)
		rc = sba_hashes_new(&l->hashes, err);
	if (rc == 0 && !o->no_landlock)
		rc = sba_local_rules(l->folder, l->own, &l->rules_fd, err);
	if (rc == 0)
		rc = sba_local_env(o, l->folder, l->own, &l->env, err);
	for (size_t i = 0; rc == 0 && o->env && o->env[i]; i++)
		rc = sba_strv_add(&l->env, o->env[i], err);
	return rc;
}

static int make(const char *folder, const struct sba_local_options *o, struct local **ret,
		struct sba_error *err)
{
	struct local *l = calloc(1, sizeof(*l));
	if (!l)
		return sba_fail_nomem(err);
	l->own_fd = l->rules_fd = l->guest_fd = -1;
	pthread_mutex_init(&l->lock, NULL);
	int rc = prepare(l, folder, o, err);
	if (rc < 0)
		free_local(l);
	else
		*ret = l;
	return rc;
}

int sba_local_open(const char *folder, const struct sba_local_options *options,
		   struct sba_sandbox **ret, struct sba_error *err)
{
	static const struct sba_local_options defaults = { 0 };
	const struct sba_local_options *o = options ? options : &defaults;
	struct local *l = NULL;
	struct sba_sandbox *s = NULL;
	char *root = NULL;
	int rc = make(folder, o, &l, err);
	if (rc < 0 || !l)
		return sba_wrap(err, rc, "local sandbox");
	if (asprintf(&root, "%s/home/.sandbox-agent", l->own) < 0)
		rc = sba_fail_nomem(err);
	if (rc == 0)
		rc = sba_sandbox_new_of(&local_backend, o->name ? o->name : l->folder, open_channel,
					&s, err);
	if (rc < 0 || !s) {
		free_local(l);
		free(root);
		return sba_wrap(err, rc, "local sandbox");
	}
	s->self = l;
	s->root = root;
	s->cancel = o->cancel;
	s->check_path = check_path;
	*ret = s;
	return 0;
}
