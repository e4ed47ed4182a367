/* SPDX-License-Identifier: MIT */
/*
 * Landlock for a local sandbox: its processes write beneath two folders and nowhere else,
 * and signal only each other. By the kernel's own calls: older headers know little of it.
 */
#include "sandbox/local.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* struct landlock_ruleset_attr and landlock_path_beneath_attr of Linux 6.12. */
struct rules {
	uint64_t files, network, scoped;
};
struct beneath {
	uint64_t allowed;
	int32_t parent_fd;
} __attribute__((packed));

enum {
	ASK_VERSION = 1,
	PATH_BENEATH = 1,
	SCOPE_ABSTRACT = 1 << 0, /* sockets without a file */
	SCOPE_SIGNAL = 1 << 1,
	ABI_REFER = 2, /* without it no file may move to another folder */
	ABI_TRUNCATE = 3,
	ABI_SCOPES = 6,
};

/* Rights on files. */
enum {
	WRITE_FILE = 1 << 1,
	REMOVE_DIR = 1 << 4,
	REMOVE_FILE = 1 << 5,
	MAKE_ANY = 0x7F << 6, /* devices, directories, files, sockets, fifos, links */
	REFER = 1 << 13,
	TRUNCATE = 1 << 14,
};

#define RULES_BEFORE_NETWORK sizeof(uint64_t)

int sba_local_landlock(void)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, ASK_VERSION);
	return abi >= ABI_REFER ? (int)abi : 0;
}

static uint64_t rights_of(int abi)
{
	return WRITE_FILE | REMOVE_DIR | REMOVE_FILE | MAKE_ANY | REFER |
	       (abi >= ABI_TRUNCATE ? (uint64_t)TRUNCATE : 0);
}

/* What is not there needs no rule. */
static int allow(int rules_fd, const char *path, uint64_t rights, struct sba_error *err)
{
	SBA_CLOSE int fd = open(path, O_PATH | O_CLOEXEC);
	const struct beneath b = { .allowed = rights, .parent_fd = fd };
	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0 || syscall(SYS_landlock_add_rule, rules_fd, PATH_BENEATH, &b, 0) < 0)
		return sba_fail_errno(err, SBA_EIO, errno, "confine writing to '%s'", path);
	return 0;
}

int sba_local_rules(const char *folder, const char *own, int *ret_fd, struct sba_error *err)
{
	static const char *const devices[] = { "/dev/null", "/dev/zero", "/dev/full",
					       "/dev/tty",  "/dev/ptmx", "/dev/pts" };
	int abi = sba_local_landlock();
	uint64_t rights = rights_of(abi);
	const struct rules rules = { .files = rights,
				     .scoped = abi >= ABI_SCOPES ? SCOPE_ABSTRACT | SCOPE_SIGNAL
								 : 0 };
	if (abi == 0) {
		*ret_fd = -1;
		return 0;
	}
	SBA_CLOSE int fd =
		(int)syscall(SYS_landlock_create_ruleset, &rules,
			     abi >= ABI_SCOPES ? sizeof(rules) : RULES_BEFORE_NETWORK, 0);
	if (fd < 0)
		return sba_fail_errno(err, SBA_EIO, errno, "Landlock");
	int rc = allow(fd, folder, rights, err);
	if (rc == 0)
		rc = allow(fd, own, rights, err);
	for (size_t i = 0; rc == 0 && i < SBA_ARRAY_LEN(devices); i++)
		rc = allow(fd, devices[i], rights & (WRITE_FILE | TRUNCATE), err);
	if (rc == 0)
		*ret_fd = sba_move_fd(&fd);
	return rc;
}

bool sba_local_confine(int rules_fd)
{
	return rules_fd < 0 || (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
				syscall(SYS_landlock_restrict_self, rules_fd, 0) == 0);
}
