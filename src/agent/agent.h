/* SPDX-License-Identifier: MIT */
/*
 * Agents: a driver, a sandbox and a model put together; turns as iterators of
 * events. Its public header is all that there is to it.
 */
#ifndef SBA_AGENT_H
#define SBA_AGENT_H

#include <sandbox-agent/agent.h>

#endif
