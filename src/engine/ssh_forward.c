/* SPDX-License-Identifier: MIT */
/*
 * Where there is no docker program at the other end: one ssh that forwards the engine's
 * socket for all connections. Its command over there sends back what it is sent, which
 * tells a forward that lives from one whose connections only look as if they had ended.
 */
#include "engine/ssh.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
	FORWARD_NEW_S = 60,
	ECHO_MS = 5000, /* there and back */
};

const char *sba_ssh_socket(const struct sba_ssh *ssh)
{
	return ssh->address.path[0] ? ssh->address.path : SBA_DEFAULT_SOCKET;
}

/* ---- its folder ---- */

/* What a killed client left: a folder whose socket nobody listens on. One that is
 * new may be about to get its socket. */
static void sweep(void)
{
	DIR *dir = opendir(SBA_SSH_FORWARD_PARENT);
	const struct dirent *entry;
	while (dir && (entry = readdir(dir)) != NULL) {
		struct sockaddr_un at = { .sun_family = AF_UNIX };
		struct stat st;
		char path[sizeof(SBA_SSH_FORWARD_PARENT) + sizeof(entry->d_name)];
		if (!sba_starts_with(entry->d_name, SBA_SSH_FORWARD_NAME))
			continue;
		snprintf(path, sizeof(path), SBA_SSH_FORWARD_PARENT "/%s", entry->d_name);
		int n = snprintf(at.sun_path, sizeof(at.sun_path), "%s/engine", path);
		SBA_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (fd < 0 || n < 0 || (size_t)n >= sizeof(at.sun_path) || lstat(path, &st) < 0 ||
		    st.st_uid != geteuid() || time(NULL) - st.st_mtime < FORWARD_NEW_S ||
		    connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0 || errno == EAGAIN)
			continue;
		unlink(at.sun_path);
		rmdir(path);
	}
	if (dir)
		closedir(dir);
}

static int make_folder(struct sba_ssh *ssh, struct sba_error *err)
{
	sweep();
	snprintf(ssh->folder, sizeof(ssh->folder), "%s", SBA_SSH_FORWARD_TEMPLATE);
	if (!mkdtemp(ssh->folder)) {
		ssh->folder[0] = '\0';
		return sba_fail_errno(err, SBA_EIO, errno, "a folder for a forwarded socket");
	}
	ssh->forward_to.sun_family = AF_UNIX;
	snprintf(ssh->forward_to.sun_path, sizeof(ssh->forward_to.sun_path), "%s/engine",
		 ssh->folder);
	return 0;
}

void sba_ssh_forward_end(struct sba_ssh *ssh)
{
	sba_cleanup_close(&ssh->forward_fd);
	ssh->forward_fd = -1;
	sba_ssh_end(&ssh->forward);
	if (ssh->folder[0]) {
		unlink(ssh->forward_to.sun_path);
		rmdir(ssh->folder);
	}
	ssh->folder[0] = '\0';
}

/* ---- beginning one ---- */

/* The forward listens before the command at the other end is asked for. */
static int await_forward(struct sba_ssh *ssh, struct sba_until until, struct sba_error *err)
{
	char said[64];
	int rc = sba_wait_fd(ssh->forward_fd, POLLIN, until, err);
	if (rc < 0)
		return rc;
	if (recv(ssh->forward_fd, said, sizeof(said), 0) > 0)
		return 0;
	sba_ssh_wait(&ssh->forward, SBA_SSH_EXIT_MS);
	return sba_ssh_no_answer(ssh, &ssh->forward, err);
}

static int begin(struct sba_ssh *ssh, struct sba_until until, struct sba_error *err)
{
	char way[sizeof(ssh->forward_to.sun_path) + sizeof(ssh->address.path) + 2];
	const char *const options[] = { "-L", way,
					"-o", "ExitOnForwardFailure=yes",
					"-o", "StreamLocalBindMask=0177",
					"-o", "ControlPath=none",
					NULL };
	sba_ssh_forward_end(ssh);
	int rc = make_folder(ssh, err);
	if (rc < 0)
		return rc;
	snprintf(way, sizeof(way), "%s:%s", ssh->forward_to.sun_path, sba_ssh_socket(ssh));
	rc = sba_ssh_start(ssh, options, "echo; exec cat", &ssh->forward, &ssh->forward_fd, err);
	ssh->forward_number += rc == 0;
	return rc < 0 ? rc : await_forward(ssh, until, err);
}

int sba_ssh_forward(struct sba_ssh *ssh, struct sba_until until, struct sba_error *err)
{
	pthread_mutex_lock(&ssh->lock);
	int rc = begin(ssh, until, err);
	pthread_mutex_unlock(&ssh->lock);
	ssh->forwards = rc == 0;
	return rc;
}

/* ---- using it ---- */

int sba_ssh_join(struct sba_ssh *ssh, struct sba_until until, unsigned *ret_number, int *ret_fd,
		 struct sba_error *err)
{
	pthread_mutex_lock(&ssh->lock);
	int rc = sba_connect_unix(&ssh->address, &ssh->forward_to, until, ret_fd, err);
	if (rc == SBA_ECONNECT && sba_ssh_wait(&ssh->forward, SBA_SSH_EXIT_MS) != SBA_SSH_RUNS) {
		rc = begin(ssh, until, err);
		if (rc == 0)
			rc = sba_connect_unix(&ssh->address, &ssh->forward_to, until, ret_fd, err);
	}
	*ret_number = ssh->forward_number;
	pthread_mutex_unlock(&ssh->lock);
	return rc;
}

bool sba_ssh_carries(struct sba_ssh *ssh, unsigned number)
{
	struct sba_until until = sba_until_in(ECHO_MS);
	unsigned char back[64];
	ssize_t n = 0;
	if (number != ssh->forward_number || sba_ssh_wait(&ssh->forward, 0) != SBA_SSH_RUNS)
		return false;
	ssh->echo++;
	if (send(ssh->forward_fd, &ssh->echo, 1, MSG_NOSIGNAL) != 1)
		return false;
	/* One that was given up before may come back first. */
	while (n <= 0 || back[n - 1] != ssh->echo) {
		if (sba_wait_fd(ssh->forward_fd, POLLIN, until, NULL) < 0)
			return false;
		n = recv(ssh->forward_fd, back, sizeof(back), 0);
		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
			return false;
	}
	return true;
}
