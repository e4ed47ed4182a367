/* SPDX-License-Identifier: MIT */
/*
 * Landlock's signal scope and capability sets; see confine.h. By the kernel's
 * own calls: older C libraries and headers know of neither.
 */
#include "guest/confine.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* struct landlock_ruleset_attr of Linux 6.12. */
struct scope_rules {
	uint64_t files;
	uint64_t network;
	uint64_t scoped;
};

enum { SCOPE_SIGNAL = 1 << 1 };

bool sba_guest_scope_enter(void)
{
	/* Kernels that do not know the last field refuse it for not being zero. */
	const struct scope_rules rules = { .scoped = SCOPE_SIGNAL };
	int fd = (int)syscall(SYS_landlock_create_ruleset, &rules, sizeof(rules), 0);
	bool entered;
	int error;

	if (fd < 0)
		return false;
	entered = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
		  syscall(SYS_landlock_restrict_self, fd, 0) == 0;
	error = errno;
	close(fd);
	errno = error;
	return entered;
}

int sba_guest_landlock_abi(void)
{
	enum { ASK_VERSION = 1 };
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, ASK_VERSION);

	return abi > 0 ? (int)abi : 0;
}

struct sets {
	struct __user_cap_header_struct head;
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
};

static bool sets_get(struct sets *sets)
{
	*sets = (struct sets){ .head = { .version = _LINUX_CAPABILITY_VERSION_3 } };
	return syscall(SYS_capget, &sets->head, sets->data) == 0;
}

static bool has(const struct sets *sets, unsigned capability)
{
	return sets->data[CAP_TO_INDEX(capability)].effective & CAP_TO_MASK(capability);
}

bool sba_guest_capability_shed(void)
{
	struct __user_cap_data_struct *data;
	struct sets sets;

	if (!sets_get(&sets))
		return false;
	if (!has(&sets, CAP_SETPCAP))
		return true;
	if (prctl(PR_CAPBSET_DROP, CAP_SETPCAP, 0, 0, 0) < 0)
		return false;
	data = &sets.data[CAP_TO_INDEX(CAP_SETPCAP)];
	data->effective &= ~CAP_TO_MASK(CAP_SETPCAP);
	data->permitted &= ~CAP_TO_MASK(CAP_SETPCAP);
	data->inheritable &= ~CAP_TO_MASK(CAP_SETPCAP);
	return syscall(SYS_capset, &sets.head, sets.data) == 0;
}

bool sba_guest_capabilities_drop(void)
{
	struct sets sets;

	if (!sets_get(&sets))
		return false;
	for (unsigned i = 0; has(&sets, CAP_SETPCAP) && i <= CAP_LAST_CAP; i++) {
		/* EINVAL: the kernel knows fewer than our headers. */
		if (prctl(PR_CAPBSET_DROP, i, 0, 0, 0) < 0 && errno != EINVAL)
			return false;
	}
	for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
		sets.data[i] = (struct __user_cap_data_struct){ 0 };
	return syscall(SYS_capset, &sets.head, sets.data) == 0;
}
