/* SPDX-License-Identifier: MIT */
/*
 * The conversations that an agent's CLI keeps in its sandbox: listed, copied,
 * taken to another sandbox, removed; children of an agent; and the instructions
 * that the CLI reads. One thread at a time, as the agent.
 *
 * All of it waits for no turn: while one is under way, what would change what
 * the CLI keeps of a session fails with SBA_EBUSY. SBA_EUNSUPPORTED: the driver
 * cannot do it. The engine handle's timeouts.session_ms bounds each.
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
	/* Of the turns that were had through this library, as far as it remembers (the
	 * last sessions that had any): those of a copy begin with its original's. */
	int64_t turns;
	struct sba_usage usage;
};
struct sba_session_list;
/* Newest first. The caller frees. */
SBA_API int sba_sessions_list(struct sba_agent *a, struct sba_session_list **ret,
			      struct sba_error *err);
SBA_API size_t sba_sessions_count(const struct sba_session_list *l);
/* Lent with the list; NULL behind its end. */
SBA_API const struct sba_session_info *sba_sessions_at(const struct sba_session_list *l, size_t n);
SBA_API void sba_sessions_free(struct sba_session_list *l); /* NULL is allowed */

/* The agent's main session; "" before its first turn. Lent until the next call. */
SBA_API int sba_sessions_main(struct sba_agent *a, const char **ret, struct sba_error *err);
/* The next turn goes on with this one. SBA_ENOTFOUND: the CLI has no such session. */
SBA_API int sba_sessions_use(struct sba_agent *a, const char *id, struct sba_error *err);

/* A copy under a new id, in the same sandbox; id NULL: of the main one. SBA_ENOTFOUND: there
 * is no such session. */
SBA_API int sba_sessions_copy(struct sba_agent *a, const char *id, char ret[SBA_SESSION_NAME_MAX],
			      struct sba_error *err);
/* The main one too: the next turn begins anew then. SBA_ENOTFOUND: no such session.
 * SBA_EREFUSED: another session could not go on without it. */
SBA_API int sba_sessions_remove(struct sba_agent *a, const char *id, struct sba_error *err);

/* ---- to another sandbox ---- */

/* Zero means the default everywhere. */
struct sba_dump_options {
	const char *session; /* NULL: the main one */
	bool workspace;      /* with the files in the agent's working directory */
	uint64_t reserved[8];
};
/* Writes one file (docs/sessions.md) to fd, which is lent, from where it stands.
 * SBA_ENOTFOUND: there is no such session. SBA_EIO: writing. */
SBA_API int sba_sessions_dump(struct sba_agent *a, const struct sba_dump_options *options, int fd,
			      struct sba_error *err);

/* What a dump says of itself. Everything in it came from a file: escape it. */
struct sba_dump_info {
	char agent[64];
	char cli_version[64]; /* as the CLI said; "": it did not */
	char image[256];
	char session[SBA_SESSION_NAME_MAX];
	char workdir[256];  /* inside, where it was made */
	int64_t created_ms; /* UNIX time */
	size_t parts;       /* the session and those that it was forked from */
	uint64_t bytes;     /* of all parts */
	bool workspace;     /* its files are in it */
	uint64_t files;     /* of the workspace */
	bool replaced;      /* by sba_sessions_load(): there was a session of that id */
	uint64_t left_out;  /* of the workspace: links that lead out, and what is no file */
	uint64_t reserved[16];
};
/* Reads a dump from fd and puts it in: all of it is read and checked before
 * anything is changed. The session keeps its id, replaces one of that id, and is
 * the main one from then on; files of the workspace replace those of the same
 * name. SBA_EREFUSED: of another agent, damaged, or of a newer format; the text
 * says which. ret_info may be NULL. */
SBA_API int sba_sessions_load(struct sba_agent *a, int fd, struct sba_dump_info *ret_info,
			      struct sba_error *err);

/* ---- instructions ---- */

/* They count from the next turn on. A skill is a folder with a SKILL.md that begins
 * with its name and description:
 *
 *     ---
 *     name: release-notes
 *     description: How this project writes them.
 *     ---
 */

/* Installs folders of this host under their own names, all or none: NULL-ended.
 * One of the same name is replaced. SBA_EINVAL: one is no skill. SBA_EREFUSED: a link
 * in one leads out of it. */
SBA_API int sba_skills_add(struct sba_agent *a, const char *const *dirs, struct sba_error *err);

/* Strings are lent with the list, never NULL. */
struct sba_skill_info {
	const char *folder; /* what it is removed by */
	const char *name;   /* as its SKILL.md says; "" where that is broken */
	const char *description;
};
struct sba_skill_list;
/* Those in the folder that sba_skills_add() installs into, by name of the folder. The
 * caller frees. */
SBA_API int sba_skills_list(struct sba_agent *a, struct sba_skill_list **ret,
			    struct sba_error *err);
SBA_API size_t sba_skills_count(const struct sba_skill_list *l);
/* Lent with the list; NULL behind its end. */
SBA_API const struct sba_skill_info *sba_skills_at(const struct sba_skill_list *l, size_t n);
SBA_API void sba_skills_free(struct sba_skill_list *l); /* NULL is allowed */

/* All or none, NULL-ended; by their folders, or the names of those whose folder is called
 * otherwise. SBA_ENOTFOUND: one is not there, SBA_EINVAL: several have that name; nothing is
 * removed then. */
SBA_API int sba_skills_remove(struct sba_agent *a, const char *const *folders,
			      struct sba_error *err);

/* What the CLI reads at the beginning of every turn; len 0 removes it. */
SBA_API int sba_rules_set(struct sba_agent *a, const void *text, size_t len, struct sba_error *err);
/* The caller frees; "" if there are none. ret_len may be NULL. */
SBA_API int sba_rules_get(struct sba_agent *a, char **ret, size_t *ret_len, struct sba_error *err);

/* ---- children ---- */

/* As sba_sandbox_fork(), and each child's main session is a copy of the
 * parent's under an id of its own; of a driver whose sessions cannot be got at each
 * begins anew. The handles are sandboxes: an agent is opened on each as on any. */
SBA_API int sba_agent_fork(struct sba_agent *a, const struct sba_fork_options *options,
			   struct sba_sandbox **ret, struct sba_fork_report *ret_report,
			   struct sba_error *err);

#ifdef __cplusplus
}
#endif

#endif
