/* SPDX-License-Identifier: MIT */
/*
 * Errors. Every call that can fail returns 0 (or a count) on success and a
 * negative enum sba_code on failure, and describes the failure in the
 * struct sba_error that the caller lends as the last argument (may be NULL).
 * The number is for programs, the text for people. Any thread.
 */
#ifndef SANDBOX_AGENT_ERROR_H
#define SANDBOX_AGENT_ERROR_H

#include <sandbox-agent/export.h>

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Which of them a call returns, its comment says; sandbox-agent.h which any may return. */
enum sba_code {
	SBA_OK = 0,
	SBA_EINVAL = -1,       /* the caller asked for something that makes no sense */
	SBA_ENOMEM = -2,       /* out of memory on this side */
	SBA_EIO = -3,          /* a local file, pipe or socket failed */
	SBA_ECONFIG = -4,      /* a configuration file or versions.json is broken */
	SBA_ENOTFOUND = -5,    /* sandbox, file, session or command is not there */
	SBA_EEXIST = -6,       /* the name is taken */
	SBA_EREFUSED = -7,     /* refused by policy: unsafe name, foreign container */
	SBA_EUNSUPPORTED = -8, /* this engine, image or backend cannot do it */
	SBA_ECONNECT = -9,     /* no engine answers */
	SBA_EPERM = -10,       /* an engine is there but will not let us in */
	SBA_EENGINE = -11,     /* the engine answered with an error */
	SBA_EPROTO = -12,      /* the other side broke its protocol */
	SBA_ELOST = -13,       /* the engine went away in the middle */
	SBA_EIMAGE = -14,      /* image missing, or its build or pull failed */
	SBA_EBROKEN = -15,     /* the sandbox broke: it died or was removed */
	SBA_ENOCLI = -16,      /* the agent's CLI is not in the image */
	SBA_EAGENT = -17,      /* the agent's CLI failed */
	SBA_EMODEL = -18,      /* the model answered with an error */
	SBA_ELIMIT = -19,      /* a size or count limit was reached */
	SBA_ETIMEOUT = -20,    /* a deadline passed */
	SBA_ECANCELED = -21,   /* cancelled by the caller */
	SBA_EBUDGET = -22,     /* a budget of tokens or requests is spent */
	SBA_EBUSY = -23,       /* another turn, or another holder of a lock, is at work */
	SBA_ECONFLICT = -24,   /* what is here is not what it was when the work began */
};

/* Bytes, with the NUL at the end; longer ones are cut. */
enum {
	SBA_ERROR_TEXT_MAX = 1024,
	SBA_ERROR_HINT_MAX = 512,
};

/* A value: nothing in it needs to be freed. Written only on failure. */
struct sba_error {
	int code;        /* enum sba_code */
	int sys_errno;   /* errno where a system call failed, else 0 */
	int http_status; /* the engine's or model's HTTP status, else 0 */
	int reserved[5];
	char text[SBA_ERROR_TEXT_MAX]; /* what was tried, on what, why it failed */
	char hint[SBA_ERROR_HINT_MAX]; /* what the user can do; may be "" */
};

/* What a code means to a program: its JSON name, the exit status that the
 * sandbox-agent program uses for it, and whether trying again can help. */
struct sba_code_info {
	int code;
	const char *name; /* "not_found" */
	int exit_status;
	bool retry;
};

/* Looks a code up in the one table of all codes. An unknown code yields the
 * entry of SBA_EIO. Never NULL; the result lives for ever. */
SBA_API const struct sba_code_info *sba_code_info(int code);

#ifdef __cplusplus
}
#endif

#endif
