/* SPDX-License-Identifier: MIT */
/* All of the public headers. */
#ifndef SANDBOX_AGENT_H
#define SANDBOX_AGENT_H

#include <sandbox-agent/agent.h>
#include <sandbox-agent/audit.h>
#include <sandbox-agent/config.h>
#include <sandbox-agent/driver.h>
#include <sandbox-agent/engine.h>
#include <sandbox-agent/error.h>
#include <sandbox-agent/event.h>
#include <sandbox-agent/image.h>
#include <sandbox-agent/model.h>
#include <sandbox-agent/process.h>
#include <sandbox-agent/sandbox.h>
#include <sandbox-agent/session.h>
#include <sandbox-agent/text.h>
#include <sandbox-agent/version.h>

#endif
