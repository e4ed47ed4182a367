/* SPDX-License-Identifier: MIT */
/*
 * Models that a sandbox can talk to. Here: the scripted one, whose public
 * header is all that other modules need. It knows three wire formats and a
 * script, and nothing of agents or sandboxes.
 */
#ifndef SBA_MODEL_H
#define SBA_MODEL_H

#include <sandbox-agent/model.h>

#endif
