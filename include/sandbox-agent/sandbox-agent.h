/* SPDX-License-Identifier: MIT */
/*
 * All of the public headers, and what holds for all of them.
 *
 * Errors: a call that can fail returns 0 or a count, or a negative enum sba_code and
 * the reason in the struct sba_error that the caller lends last; NULL is allowed there.
 * Outputs are written on success only. The comment of a call names what is particular
 * to it. Any call may return SBA_ENOMEM; one that speaks to an engine also SBA_ECONNECT,
 * SBA_EENGINE, SBA_EPROTO, SBA_ELOST, SBA_ETIMEOUT and SBA_ECANCELED. More codes may
 * come: sba_code_info() has an answer for each.
 *
 * Threads: each header says who may use its handles. Different handles never need a
 * lock. The library has no global state, prints nothing, handles no signal and ends no
 * process; it reads no environment and no file by itself, except to find an engine when
 * it is asked to.
 *
 * Ownership: what *ret gives is the caller's to close or free, by the function that the
 * comment or the name says (_open/_close, _new/_free; free() for a char *). A pointer
 * returned directly, and the strings of a struct, are lent. Option structs and their
 * strings are lent for the call. Strings are UTF-8, NUL-ended; paths are bytes.
 *
 * Units: names end in _ms for milliseconds; bytes have no ending. A wait of -1 is for
 * ever, unless said otherwise.
 *
 * Growth: within one soname (libsandbox-agent.so.N) a program keeps working with every
 * newer library, and needs one no older than its headers.
 * - Structs in the caller's memory keep their size: what they grow by is taken from
 *   `reserved`, which is always zero and means nothing. So fill option structs by
 *   designated initialisers (or `= {}` and assignments in C++): what is not named is 0,
 *   and 0 is the default, also of what is not there yet.
 * - Structs that only the library or a callback's caller makes (sba_sandbox_info,
 *   sba_event, sba_connection, ...) grow at their end: use them where they lie, and make
 *   no arrays of them. struct sba_driver is the caller's and has a `size` instead.
 * - Enums get more values, events more kinds.
 * All else (another meaning, another size, a function that goes) is a new soname.
 */
#ifndef SANDBOX_AGENT_H
#define SANDBOX_AGENT_H

#include <sandbox-agent/agent.h>
#include <sandbox-agent/audit.h>
#include <sandbox-agent/backend.h>
#include <sandbox-agent/changes.h>
#include <sandbox-agent/code.h>
#include <sandbox-agent/config.h>
#include <sandbox-agent/driver.h>
#include <sandbox-agent/engine.h>
#include <sandbox-agent/error.h>
#include <sandbox-agent/event.h>
#include <sandbox-agent/files.h>
#include <sandbox-agent/image.h>
#include <sandbox-agent/model.h>
#include <sandbox-agent/process.h>
#include <sandbox-agent/remote.h>
#include <sandbox-agent/sandbox.h>
#include <sandbox-agent/session.h>
#include <sandbox-agent/text.h>
#include <sandbox-agent/version.h>

#endif
