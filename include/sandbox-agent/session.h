/* SPDX-License-Identifier: MIT */
/*
 * The conversations that an agent's CLI keeps in its sandbox: listed, copied,
 * taken to another sandbox, removed; and children of an agent. One thread at a
 * time, as the agent.
 *
 * All of it waits for no turn: while one is under way, what would change what
 * the CLI keeps fails with SBA_EBUSY. SBA_EUNSUPPORTED: the driver cannot do it.
 */
#ifndef SANDBOX_AGENT_SESSION_H
#define SANDBOX_AGENT_SESSION_H

#include <sandbox-agent/agent.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { SBA_SESSION_NAME_MAX = 129 }; /* an id and its NUL */

/* Strings are lent with the list, never NULL. */
struct sba_session_info {
	const char *id;
	const char *title;
	const char *model;   /* that answered last or first, as the CLI tells; "" unknown */
	const char *parent;  /* the session that it was copied from; "" unknown */
	const char *workdir; /* inside */
	int64_t created_ms, updated_ms; /* UNIX time; 0: unknown */
	bool main;                      /* the agent's next turn goes on with it */
};
struct sba_session_list;
/* Newest first. */
SBA_API int sba_sessions_list(struct sba_agent *a, struct sba_session_list **ret,
			      struct sba_error *err);
SBA_API size_t sba_sessions_count(const struct sba_session_list *l);
SBA_API const struct sba_session_info *sba_sessions_at(const struct sba_session_list *l, size_t n);
SBA_API void sba_sessions_free(struct sba_session_list *l); /* NULL is allowed */

/* The agent's main session; "" before its first turn. Lent until the next call. */
SBA_API int sba_sessions_main(struct sba_agent *a, const char **ret, struct sba_error *err);
/* The next turn goes on with this one. SBA_ENOTFOUND. */
SBA_API int sba_sessions_use(struct sba_agent *a, const char *id, struct sba_error *err);

/* A copy under a new id, in the same sandbox; id NULL: of the main one. */
SBA_API int sba_sessions_copy(struct sba_agent *a, const char *id, char ret[SBA_SESSION_NAME_MAX],
			      struct sba_error *err);
/* The main one too: the next turn begins anew then. SBA_ENOTFOUND. */
SBA_API int sba_sessions_remove(struct sba_agent *a, const char *id, struct sba_error *err);

/* ---- children ---- */

/* As sba_sandbox_fork(), and each child's main session is a copy of the
 * parent's under an id of its own. The handles are sandboxes: an agent is opened
 * on each as on any. */
SBA_API int sba_agent_fork(struct sba_agent *a, const struct sba_fork_options *options,
			   struct sba_sandbox **ret, struct sba_fork_report *ret_report,
			   struct sba_error *err);

#ifdef __cplusplus
}
#endif

#endif
