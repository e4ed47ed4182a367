/* SPDX-License-Identifier: MIT */
/* What does not go along, in words. */
#include "archive/archive.h"

const char *sba_refusal_text(enum sba_refusal why)
{
	static const char *const words[SBA_REFUSED_KINDS] = {
		[SBA_REFUSED_SYMLINK] = "symbolic link",
		[SBA_REFUSED_LEAVING] = "link that leads out",
		[SBA_REFUSED_DEVICE] = "device",
		[SBA_REFUSED_FIFO] = "fifo",
		[SBA_REFUSED_SOCKET] = "socket",
		[SBA_REFUSED_NAME] = "unsafe name",
		[SBA_REFUSED_DUPLICATE] = "appears twice",
		[SBA_REFUSED_UNREADABLE] = "not readable by the sandbox's user",
		[SBA_REFUSED_OTHER] = "neither file nor directory",
	};
	return words[why < SBA_REFUSED_KINDS ? why : SBA_REFUSED_OTHER];
}
