/* SPDX-License-Identifier: MIT */
/* Which library this is. Any thread. */
#ifndef SANDBOX_AGENT_VERSION_H
#define SANDBOX_AGENT_VERSION_H

#include <sandbox-agent/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The library's version, "0.1.0"; lives for ever. */
SBA_API const char *sba_version(void);
/* The first 12 hex digits of the SHA-256 of the guest that this library
 * carries; names the sidecar's image. Lives for ever. */
SBA_API const char *sba_guest_hash(void);

#ifdef __cplusplus
}
#endif

#endif
