/* SPDX-License-Identifier: MIT */
/*
 * Settings: what a user wants as a default, out of a JSON file and the
 * environment, each with where it came from. Nothing else in the library reads
 * them; a program asks for values and passes them on in option structs. A handle
 * never changes after sba_config_load() but by sba_config_set(), and may be
 * shared between threads as long as nobody does that.
 */
#ifndef SANDBOX_AGENT_CONFIG_H
#define SANDBOX_AGENT_CONFIG_H

#include <sandbox-agent/engine.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the table of settings ---- */

/* What a value looks like in the file; a variable is written likewise. */
enum sba_setting_type {
	SBA_SETTING_TEXT,
	SBA_SETTING_WORD,     /* letters and digits; _ . - after the first */
	SBA_SETTING_VARIABLE, /* the name of one */
	SBA_SETTING_CHOICE,   /* one of the words in `choices` */
	SBA_SETTING_URL,      /* http:// or https://, without a user or password */
	SBA_SETTING_PATH,     /* of a file here; in the file relative to the file, ~/ is known */
	SBA_SETTING_BOOL,     /* true, false */
	SBA_SETTING_COUNT,    /* a whole number */
	SBA_SETTING_NUMBER,   /* above 0 */
	SBA_SETTING_SIZE,     /* bytes; "1.5g" */
	SBA_SETTING_TIME,     /* milliseconds; "90s"; a plain number is seconds */
	SBA_SETTING_LIST,     /* strings */
	SBA_SETTING_PATHS,    /* a list of SBA_SETTING_PATH */
	SBA_SETTING_COMMAND,  /* an argument vector; a string is split at blanks, by no shell */
	SBA_SETTING_ENV,      /* variables: "K=V", or "K" to pass the caller's own on */
};

/* Where in the file a setting may stand. */
enum {
	SBA_SETTING_TOP = 1,      /* at the top */
	SBA_SETTING_AGENT = 2,    /* in agents.NAME */
	SBA_SETTING_PROVIDER = 4, /* in providers.NAME */
	SBA_SETTING_POOL = 8,     /* in pool.NAME */
};

/* One row of the one table that parser, documentation, schema and program share. */
struct sba_setting {
	const char *key;      /* "keepalive_seconds" */
	const char *alias;    /* another name of it in the file, or NULL */
	const char *variable; /* "SANDBOX_AGENT_KEEPALIVE_SECONDS", or NULL */
	const char *option;   /* on the command line, without "--", or NULL */
	const char *commands; /* that have the option: "run, up"; NULL: every one so called */
	enum sba_setting_type type;
	unsigned levels;           /* SBA_SETTING_TOP … */
	bool adds;                 /* options and sections add to it instead of replacing it */
	bool secret;               /* shown as set or unset */
	int64_t min, max;          /* of COUNT and SIZE; max 0: no other than the type's */
	const char *choices;       /* "open|sealed", or NULL */
	const char *fallback;      /* the built-in value as it would be written, or NULL */
	const char *fallback_text; /* what it is in words where it depends, or NULL */
	const char *help;          /* one line */
};

/* The n-th setting, lent for ever; NULL after the last. */
SBA_API const struct sba_setting *sba_setting_at(size_t n);
/* By key or alias; NULL: there is none. */
SBA_API const struct sba_setting *sba_setting_find(const char *key);

/* ---- loading ---- */

struct sba_config;

/* Like getenv(3): NULL if there is no such variable. */
typedef const char *sba_lookup_fn(void *user, const char *name);

/* Zero means the default everywhere. */
struct sba_config_options {
	/* The file, which must be there. NULL: SANDBOX_AGENT_CONFIG names it, else
	 * sandbox-agent/config.json in XDG_CONFIG_HOME or ~/.config, if it is there. */
	const char *file;
	const char *text; /* instead of reading a file; `file` is what errors call it */
	size_t text_len;
	/* The environment; NULL: there is none. Not called after the load. */
	sba_lookup_fn *getenv_fn;
	void *user;
	/* The names that sections may have, NULL-ended; NULL: any. */
	const char *const *agents;
	const char *const *providers;
	uint64_t reserved[8];
};

/* Reads and checks all of it. SBA_ECONFIG: an unknown or repeated key, a wrong
 * type, a bad value; the text names file (or variable), key path and, for what is
 * no JSON, the line. The caller frees. */
SBA_API int sba_config_load(const struct sba_config_options *options, struct sba_config **ret,
			    struct sba_error *err);
SBA_API void sba_config_free(struct sba_config *c); /* NULL is allowed */
/* The file that was read, or NULL; lent. */
SBA_API const char *sba_config_file(const struct sba_config *c);
/* Puts a value above file and environment, parsed as a variable's would be.
 * `origin` is what says so: "--prefix". Invalidates what was lent of this key. */
SBA_API int sba_config_set(struct sba_config *c, const char *key, const char *value,
			   const char *origin, struct sba_error *err);

/* ---- values ---- */

/* In the order in which one beats the other, the last first. */
enum sba_config_source {
	SBA_FROM_BUILT_IN,
	SBA_FROM_FILE,
	SBA_FROM_ENVIRONMENT,
	SBA_FROM_OPTION,
};

/* For whom a value is asked. NULL: that kind of section is not looked at. Within
 * the file pool.NAME beats agents.NAME, that providers.NAME, that the top. */
struct sba_config_scope {
	const char *agent, *provider, *pool;
	uint64_t reserved[4];
};

/* Lent until the handle is freed. */
struct sba_config_value {
	const struct sba_setting *setting;
	enum sba_config_source source;
	const char *origin;      /* "built in", "FILE: agents.claude.memory", the variable, … */
	const char *text;        /* as it was written, or would be; NULL: nothing is set */
	int64_t number;          /* COUNT, BOOL, SIZE in bytes, TIME in ms (0: none, never) */
	double real;             /* NUMBER */
	const char *const *list; /* LIST, PATHS, COMMAND, ENV; NULL-ended */
	uint64_t reserved[4];
};

/* The effective value. False: no such key, or nothing is set (*ret says which
 * setting and source all the same if the key is known). scope may be NULL. */
SBA_API bool sba_config_get(const struct sba_config *c, const char *key,
			    const struct sba_config_scope *scope, struct sba_config_value *ret);
/* Short ways: NULL, 0 where nothing is set. Texts are lent likewise. */
SBA_API const char *sba_config_text(const struct sba_config *c, const char *key,
				    const struct sba_config_scope *scope);
/* Milliseconds, bytes or a count, as of sba_config_value.number. */
SBA_API int64_t sba_config_number(const struct sba_config *c, const char *key,
				  const struct sba_config_scope *scope);
/* The names of the sections of a kind ("agents", "providers", "pool") in the order
 * of the file, NULL-ended, lent; never NULL. */
SBA_API const char *const *sba_config_names(const struct sba_config *c, const char *kind);
/* Whether pool.NAME (or another section) itself sets the key. */
SBA_API bool sba_config_has(const struct sba_config *c, const char *kind, const char *name,
			    const char *key);

/* ---- the key of a provider ---- */

/* Where it is: at most one of the three is not NULL. */
struct sba_config_key {
	const char *env;            /* the variable that holds it */
	const char *file;           /* the file whose first line it is */
	const char *const *command; /* the program whose first line it is */
	const char *origin;
	uint64_t reserved[4];
};

/* The nearest of api_key_env, api_key_file and key_command: an option, the
 * environment, the agent's section, the provider's, the top. False: none. */
SBA_API bool sba_config_key(const struct sba_config *c, const struct sba_config_scope *scope,
			    struct sba_config_key *ret);

/* Splits a command at blanks; quotes and backslashes group, nothing is expanded.
 * NULL-ended; the caller frees with sba_command_free(). SBA_ECONFIG: a quote that does
 * not end, or no word at all. */
SBA_API int sba_command_split(const char *text, char ***ret, struct sba_error *err);
SBA_API void sba_command_free(char **argv); /* NULL is allowed */
/* Runs a program of this host (argv NULL-ended; argv[0] is looked up in PATH) and
 * takes the first line of its stdout; stdin is empty, stderr goes where ours goes.
 * It is ended after timeout_ms (0: 30 s) or when `cancel` (may be NULL) fires.
 * Errors never quote its output. SBA_ECONFIG: it cannot be run, failed, or printed no
 * key. SBA_ELIMIT: too long. SBA_ETIMEOUT, SBA_ECANCELED. The caller wipes and frees. */
SBA_API int sba_key_command(const char *const *argv, int64_t timeout_ms, struct sba_cancel *cancel,
			    char **ret, struct sba_error *err);

#ifdef __cplusplus
}
#endif

#endif
