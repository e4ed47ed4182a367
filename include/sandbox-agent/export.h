/* SPDX-License-Identifier: MIT */
/* The one marker of what the library exports; everything else is hidden. */
#ifndef SANDBOX_AGENT_EXPORT_H
#define SANDBOX_AGENT_EXPORT_H

#define SBA_API __attribute__((visibility("default")))

#endif
