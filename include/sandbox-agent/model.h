/* SPDX-License-Identifier: MIT */
/*
 * The scripted model: an HTTP server that speaks Chat Completions, Anthropic
 * Messages and Responses, and answers from a script instead of a mind. For
 * demonstrations and tests without key and without network. A handle may be shared
 * between threads; one closes it.
 */
#ifndef SANDBOX_AGENT_MODEL_H
#define SANDBOX_AGENT_MODEL_H

#include <sandbox-agent/error.h>

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sba_model;

/* Zero means the default everywhere. */
struct sba_model_options {
	const char *address; /* IPv4 literal to listen on; NULL: 127.0.0.1 */
	uint16_t port;       /* 0: any free one */
	const char *script;  /* JSON text (docs/model-script.md); NULL: the built-in script */
	const char *token;   /* asked of every request as key; NULL: any is taken */
	uint64_t reserved[8];
};

/* Starts to serve on threads of its own. SBA_ECONFIG: the script is broken
 * (where and why in the text). SBA_EIO: the address is taken. SBA_EINVAL: it is none.
 * The caller closes. */
SBA_API int sba_model_open(const struct sba_model_options *options, struct sba_model **ret,
			   struct sba_error *err);
/* The port that it listens on. */
SBA_API uint16_t sba_model_port(const struct sba_model *m);
/* How many model requests were answered so far. Any thread. */
SBA_API uint64_t sba_model_requests(const struct sba_model *m);
/* Ends the connections that there are. NULL is allowed. */
SBA_API void sba_model_close(struct sba_model *m);

#ifdef __cplusplus
}
#endif

#endif
