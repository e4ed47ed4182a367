/* SPDX-License-Identifier: MIT */
/* The words of the hello; see identity.h. */
#include "guest/identity.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "channel/protocol.h"
#include "guest/confine.h"
#include "guest/proc.h"

/* A file cannot hold its own hash: the build writes it over these bytes. */
static const char stamp[] = "@guest-hash@";

_Static_assert(sizeof(stamp) == SBA_GUEST_HASH_LEN + 1, "the stamp is as long as the hash");

const char *sba_guest_own_hash(void)
{
	return stamp;
}

bool sba_guest_is_sidecar(const char *cmdline, size_t len)
{
	static const char head[] = SBA_GUEST_PATH "\0reaper"; /* and its NUL */

	return len >= sizeof(head) && memcmp(cmdline, head, sizeof(head)) == 0;
}

bool sba_guest_sidecar_is_first(void)
{
	char cmdline[sizeof(SBA_GUEST_PATH) + sizeof("reaper")];
	int proc = sba_guest_proc_open();
	ssize_t len =
		proc < 0 ? -1 : sba_guest_proc_read(proc, 1, "cmdline", cmdline, sizeof(cmdline));

	if (proc >= 0)
		close(proc);
	return len > 0 && sba_guest_is_sidecar(cmdline, (size_t)len);
}

size_t sba_guest_hello(char ret[SBA_GUEST_HELLO_MAX])
{
	int len = snprintf(ret, SBA_GUEST_HELLO_MAX,
			   "%d\n" SBA_HELLO_PROGRAM " %s\n" SBA_HELLO_GUEST " %s\n" SBA_HELLO_FIRST
			   " %s\n" SBA_HELLO_LANDLOCK " %d\n",
			   SBA_PROTOCOL_VERSION, SBA_VERSION, sba_guest_own_hash(),
			   sba_guest_sidecar_is_first() ? "sidecar" : "other",
			   sba_guest_landlock_abi());

	return len < 0 ? 0 : len < SBA_GUEST_HELLO_MAX ? (size_t)len : SBA_GUEST_HELLO_MAX - 1;
}
