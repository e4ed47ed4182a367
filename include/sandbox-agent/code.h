/* SPDX-License-Identifier: MIT */
/*
 * Code run in a sandbox: source in a language, by the code interpreter of a service that
 * has one, else by the program inside that people run it with. It needs the capability
 * run_code; contexts, which keep state from one run to the next, need code_state.
 *
 * By programs inside (docker, local, one's own table) there are "python" (python3),
 * "javascript" (node), "bash" and "sh"; services may know more. They begin in the sandbox's
 * working directory, with the code as their input and none besides, and tell no values and
 * no errors apart: both are in what they print.
 */
#ifndef SANDBOX_AGENT_CODE_H
#define SANDBOX_AGENT_CODE_H

#include <sandbox-agent/error.h>
#include <sandbox-agent/process.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sba_sandbox;

/* Zero means the default everywhere. */
struct sba_code_options {
	const char *code;
	const char *language; /* default: "python"; of a context the one that it was made for */
	/* Of sba_code_context_new(): what earlier runs in it have left is there. NULL: nothing
	 * is to be relied on, though a service may run it where it ran the one before. */
	const char *context;
	const char *const *env; /* "K=V", NULL-ended; SBA_EUNSUPPORTED at opensandbox */
	int64_t timeout_ms;     /* then it is ended; default: 60 s; -1: none */
	size_t max_output;      /* of all that comes of it, together; default 10 MiB */
	uint64_t reserved[8];
};

/* One form of a value: "text/plain", "text/html", "application/json" …; what is no text, as
 * "image/png", in base64. Strings are lent with the run. */
struct sba_code_form {
	const char *type;
	const char *data; /* NUL-ended */
	size_t len;
	uint64_t reserved[2];
};

/* What the code showed, or came to in its last line. */
struct sba_code_value {
	const struct sba_code_form *forms; /* of the same value */
	size_t n;
	bool is_result; /* it came to that */
	uint64_t reserved[4];
};

struct sba_code_run {
	/* SBA_EXITED with 0: it went through. Of an interpreter that is no program the number is
	 * 1 where there was an error. SBA_TIMED_OUT: what it had printed by then is there. */
	struct sba_exit exit;
	char *out, *err; /* as far as it came, NUL-ended besides; never NULL */
	size_t out_len, err_len;
	uint64_t dropped;  /* bytes beyond max_output */
	int64_t execution; /* its number in its context; 0: not told */
	struct sba_code_value *values;
	size_t n_values;
	/* Of an error that was told; "" else. */
	char *error_name, *error_value, *error_traceback;
	uint64_t reserved[8];
};
/* Runs it to its end. How it ended is no error of the call. SBA_ENOCLI: the interpreter is
 * not there. SBA_EINVAL: nobody knows the language. SBA_ENOTFOUND: nor the context. SBA_EBUSY:
 * the context runs something else. Blocks; any thread. The caller frees with
 * sba_code_run_fini(). */
SBA_API int sba_sandbox_run_code(struct sba_sandbox *s, const struct sba_code_options *options,
				 struct sba_code_run *ret, struct sba_error *err);
SBA_API void sba_code_run_fini(struct sba_code_run *r); /* all zero is allowed */

/* A context for a language (NULL: "python"), which begins in the sandbox's working directory.
 * It goes with the sandbox, and a run in it that timed out may cost it what it kept. Runs one
 * thing at a time. Blocks; the caller frees its name. */
SBA_API int sba_code_context_new(struct sba_sandbox *s, const char *language, char **ret,
				 struct sba_error *err);
/* Ends it, and what runs in it; 0 also where there is none. Blocks. */
SBA_API int sba_code_context_end(struct sba_sandbox *s, const char *context, struct sba_error *err);

/* ---- for a backend (sba_backend.run_code) ---- */

enum sba_code_event_kind {
	SBA_CODE_STDOUT,    /* data, len */
	SBA_CODE_STDERR,    /* the same */
	SBA_CODE_VALUE,     /* value */
	SBA_CODE_ERROR,     /* name, text, traceback: the first one counts */
	SBA_CODE_EXECUTION, /* number */
};

/* Lent for the call, all of it. */
struct sba_code_event {
	enum sba_code_event_kind kind;
	const char *data;
	size_t len;
	const struct sba_code_value *value;
	const char *name, *text, *traceback; /* NULL: none */
	int64_t number;
	uint64_t reserved[8];
};
/* How a backend tells of what comes; 0, or the code that the run is to end with. */
typedef int sba_code_fn(void *user, const struct sba_code_event *event, struct sba_error *err);

#ifdef __cplusplus
}
#endif

#endif
