/* SPDX-License-Identifier: MIT */
/*
 * What the commands of the program share: the option tables that drive
 * parsing, help and completion alike, errors, output, signals. The program is
 * the library's user: nothing of the library but its public headers is known
 * here.
 */
#ifndef SBA_CLI_H
#define SBA_CLI_H

#include <sandbox-agent/sandbox-agent.h>

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#define CLI_PRINTF(f, a) __attribute__((format(printf, f, a)))
#define CLI_LEN(a)       (sizeof(a) / sizeof((a)[0]))

enum {
	CLI_EXIT_USAGE = 2,
	CLI_EXIT_EXEC = 125, /* of `exec` and `shell`: ours, not the command's */
};

/* ---- options (options.c) ---- */

enum cli_type {
	CLI_FLAG,     /* bool */
	CLI_STRING,   /* const char * */
	CLI_DURATION, /* int64_t, ms; "0" on the command line is -1: none */
	CLI_SIZE,     /* int64_t, bytes */
	CLI_INT,      /* int64_t */
	CLI_DOUBLE,   /* double, above 0 */
	CLI_LIST,     /* struct cli_list; may be given again and again */
};

/* Strings are lent from the command line. */
struct cli_list {
	const char **v; /* NULL while empty, else NULL-ended */
	size_t n;
};

struct cli_option {
	const char *name; /* long, without "--"; NULL ends a table */
	char letter;      /* 0: none */
	enum cli_type type;
	const char *arg; /* what the value is called; "a|b|c" allows only these */
	const char *help;
	size_t offset; /* of the field in the command's options */
	int64_t min;   /* of CLI_INT and CLI_SIZE */
};

/* A table of options and where their values go. */
struct cli_scope {
	const struct cli_option *options;
	void *base;
};

/* Words that are no options; lent, the array is freed by cli_args_free(). */
struct cli_args {
	char **v; /* NULL-ended */
	int n;
	const struct cli_option *given[96]; /* each once */
	size_t given_n;
};

/* Parses argv (NULL-ended). After `verbatim_after` words everything is taken
 * as it is, as after "--". */
int cli_parse(const struct cli_scope *scopes, size_t n, char **argv, int verbatim_after,
	      struct cli_args *ret, struct sba_error *err);
void cli_args_free(struct cli_args *args);
/* Whether the option stood on the command line. */
bool cli_given(const struct cli_args *args, const char *name);
/* Frees the lists in the scopes. */
void cli_scopes_free(const struct cli_scope *scopes, size_t n);

/* ---- the program's state ---- */

struct cli_look {
	bool utf8;
	bool out_tty, err_tty;
	bool out_colour, err_colour;
	int columns;
};

/* The one line at the bottom of a terminal that is rewritten. */
struct cli_status {
	FILE *to; /* NULL: no terminal, nothing is shown */
	bool shown;
	int columns;
};

struct cli {
	/* global options */
	const char *host;
	const char *config_file;
	const char *prefix;
	const char *color;
	bool json, quiet, verbose, no_audit, help, version;

	bool reported; /* cli_report() has said why it failed */

	const struct cli_command *command;
	struct cli_look look;
	struct cli_status status;
	struct sba_cancel *cancel;
	struct sba_engine *engine;     /* by cli_engine() */
	struct sba_images *images;     /* by cli_images() */
	struct sba_image_lock *lock;   /* by cli_lock(); NULL: there is none */
	char *docker_folder;           /* by cli_docker_folder() */
	struct sba_config *config;     /* by cli_config() */
	struct sba_remote *remotes[4]; /* by cli_remote(), as sba_remote_names() counts */
	char *audit_root;              /* by cli_audit_root(), where nothing names one */
	char *secret;                  /* a copy of the key that was read: no message shows it */
	/* What option values came from elsewhere than the command line. */
	struct cli_origin {
		const char *option, *origin,
			*text; /* lent from config; text NULL: not to be shown */
	} origins[64];
	size_t origins_n;
};

extern const struct cli_option cli_global_options[];

enum { CLI_TABLES_MAX = 4 };

struct cli_command {
	const char *name; /* one word or two: "image build" */
	const char *args; /* "AGENT [PROMPT]" */
	const char *help; /* one line */
	const char *more; /* further lines of --help, or NULL */
	const char *example;
	const struct cli_option *tables[CLI_TABLES_MAX]; /* all into the same struct */
	size_t options_size;
	int min_args, max_args; /* max -1: any number */
	int verbatim_after;     /* 0: options may stand anywhere */
	int failure;            /* exit status of our own failures, where it is not by code */
	bool no_config;         /* works whatever the configuration is */
	/* The exit status. */
	int (*run)(struct cli *cli, const void *options, const struct cli_args *args);
};

/* ---- the table of commands (commands.c) ---- */

/* Each is defined in the file of its name. */
extern const struct cli_command cli_command_run, cli_command_up, cli_command_chat, cli_command_ask;
extern const struct cli_command cli_command_fork;
extern const struct cli_command cli_command_sessions_ls, cli_command_sessions_use;
extern const struct cli_command cli_command_sessions_fork, cli_command_sessions_rm;
extern const struct cli_command cli_command_sessions_dump, cli_command_sessions_load;
extern const struct cli_command cli_command_skills_add, cli_command_skills_ls;
extern const struct cli_command cli_command_skills_rm;
extern const struct cli_command cli_command_rules_set, cli_command_rules_show;
extern const struct cli_command cli_command_create;
extern const struct cli_command cli_command_exec, cli_command_shell, cli_command_cp;
extern const struct cli_command cli_command_read, cli_command_write;
extern const struct cli_command cli_command_snapshot;
extern const struct cli_command cli_command_diff, cli_command_patch, cli_command_apply;
extern const struct cli_command cli_command_ps, cli_command_inspect, cli_command_stop;
extern const struct cli_command cli_command_port, cli_command_rm, cli_command_gc;
extern const struct cli_command cli_command_image_tag, cli_command_image_build;
extern const struct cli_command cli_command_image_pull, cli_command_image_ls;
extern const struct cli_command cli_command_image_check, cli_command_image_rm;
extern const struct cli_command cli_command_image_save, cli_command_image_load;
extern const struct cli_command cli_command_image_push, cli_command_image_lock;
extern const struct cli_command cli_command_image_verify;
extern const struct cli_command cli_command_pool_fill, cli_command_pool_ls, cli_command_pool_drain;
extern const struct cli_command cli_command_audit_ls, cli_command_audit_show;
extern const struct cli_command cli_command_audit_report, cli_command_audit_path;
extern const struct cli_command cli_command_audit_prune, cli_command_logs;
extern const struct cli_command cli_command_model, cli_command_doctor;
extern const struct cli_command cli_command_driver_ls, cli_command_driver_parse;
extern const struct cli_command cli_command_config_show, cli_command_config_schema;
extern const struct cli_command cli_command_config_doc;
extern const struct cli_command cli_command_completion, cli_command_version, cli_command_help;

/* In the order of help, NULL-ended. */
extern const struct cli_command *const cli_commands[];
/* Finds "run" or "image build" at words[0] (and [1]); *ret_words: how many it took. */
const struct cli_command *cli_command_find(char *const *words, int *ret_words);
/* True if the table has commands of the form "word something". */
bool cli_command_group(const char *word);
/* The nearest name of a command; NULL: none is near. Lent. */
const char *cli_command_nearest(const char *word);
/* What a word that other programs have taught people is called here; NULL: no such word. */
const char *cli_command_habit(const char *word);

/* ---- help (help.c), completion scripts (completion.c) ---- */

void cli_help_all(FILE *to);
void cli_help_group(FILE *to, const char *word);
void cli_help_command(FILE *to, const struct cli_command *c);
/* Manual pages (man.c). */
void cli_man_all(FILE *to);
void cli_man_command(FILE *to, const struct cli_command *c);
/* What they are made of. A line: `code` in bold, all else as it is. */
void cli_man_title(FILE *to, const char *title, int section);
void cli_man_heading(FILE *to, const char *text);
void cli_man_word(FILE *to, const char *word);
void cli_man_line(FILE *to, const char *s);
/* False: no script for that shell. */
bool cli_completion_write(FILE *to, const char *shell);

/* What the shells' scripts share (completion.c): what may stand where. */

/* Whether the command's words are so called in its help: "NAME", "AGENT". */
bool cli_complete_takes(const struct cli_command *c, const char *what);
/* Whether it takes the id of a recorded session. */
bool cli_complete_takes_record(const struct cli_command *c);
/* Whether its one word is one of a few. */
bool cli_complete_is_choice(const struct cli_command *c);
bool cli_complete_is_file(const char *arg);
void cli_complete_put_agents(FILE *to);
/* Branches of a shell's `case`, which print the names of sandboxes: those of a service
 * where the word so far, in that variable, begins with it. */
void cli_complete_put_names(FILE *to, const char *word);
/* The keys of settings. */
void cli_complete_put_keys(FILE *to);
/* Walks the first words of commands of two, "image " with its space; *at begins at 0.
 * False: there are no more. */
bool cli_complete_group(size_t *at, char group[32]);
/* "a|b|c" as "a b c". */
void cli_complete_put_choices(FILE *to, const char *arg);
/* Words that may stand first, or second after `group` with its space. */
void cli_complete_put_commands(FILE *to, const char *group);
/* The options of every command, then those of c (may be NULL). */
void cli_complete_each_option(FILE *to, const struct cli_command *c,
			      void (*one)(FILE *, const struct cli_option *));

void cli_complete_bash(FILE *to);

/* What all settings mean (config_doc.c); false: no such format. */
bool cli_config_doc(FILE *to, const char *format);

/* ---- errors (report.c) ---- */

/* Fills err and returns code; `hint` may be NULL. */
int cli_fail(struct sba_error *err, int code, const char *hint, const char *fmt, ...)
	CLI_PRINTF(4, 5);
int cli_fail_nomem(struct sba_error *err);
/* What cli_report() and cli_note() star out from now on; copied. */
int cli_keep_secret(struct cli *cli, const char *secret, struct sba_error *err);
void cli_forget_secret(struct cli *cli);
/* /dev/null where a standard stream was closed; before anything is opened. */
void cli_stdio_open(void);
/* What was printed has arrived, or that it has not is the failure that is reported, unless there
 * was one before; a pipe that nobody reads any more needs no words. The exit status. */
int cli_stdio_close(struct cli *cli, int rc);
/* Shows err on stderr, as JSON where that was asked for; its exit status. */
int cli_report(struct cli *cli, const struct sba_error *err);
/* The same; whether trying again may help is known better than by the code. */
int cli_report_retry(struct cli *cli, const struct sba_error *err, bool retry);
/* A usage error at once. */
int cli_usage(struct cli *cli, const char *hint, const char *fmt, ...) CLI_PRINTF(3, 4);
/* What must not be overlooked: also with -q; an object of its own with --json. */
void cli_warn(struct cli *cli, const char *fmt, ...) CLI_PRINTF(2, 3);
/* One line for people on stderr, unless -q or --json. */
void cli_note(struct cli *cli, const char *fmt, ...) CLI_PRINTF(2, 3);

/* ---- output (output.c) ---- */

void cli_free(void *p);
void cli_free_json(json_t **j);
#define CLI_FREE __attribute__((cleanup(cli_free)))
#define CLI_JSON __attribute__((cleanup(cli_free_json)))

/* `color`: auto (or NULL), always, never. */
void cli_look_init(struct cli_look *look, const char *color);

enum cli_mark {
	CLI_MARK_TEXT,
	CLI_MARK_TOOL,
	CLI_MARK_PIPE,
	CLI_MARK_OK,
	CLI_MARK_FAIL,
	CLI_MARK_GET,
	CLI_MARK_DOT,
	CLI_MARK_MORE,
};
const char *cli_mark(const struct cli_look *look, enum cli_mark mark);
/* An SGR sequence ("2": dim) or "" without colour. */
const char *cli_sgr(bool colour, const char *code, char buf[16]);

/* Columns that valid UTF-8 takes on a terminal. */
int cli_width(const char *s);
/* How many bytes of s fit into `columns`. */
size_t cli_fit(const char *s, int columns);
/* "36,312". */
const char *cli_thousands(uint64_t n, char buf[32]);
/* "60s", "1.5s", "2h": as people would have typed it. */
const char *cli_time(int64_t ms, char *buf, size_t size);
/* "512m", "2g": the same for bytes. */
const char *cli_size(int64_t bytes, char *buf, size_t size);
/* One line of untrusted text, visible, cut with a mark to `columns` (0: not cut). */
char *cli_line(const struct cli_look *look, const char *s, int columns);

void cli_status_set(struct cli_status *s, const char *text);
void cli_status_clear(struct cli_status *s);

/* Rows of cells, aligned; the last columns are dropped where a terminal is
 * too narrow. Cells are copied and made visible. */
struct cli_table {
	size_t columns;
	size_t n;
	char **cells;
};
void cli_table_add(struct cli_table *t, const char *const *cells);
void cli_table_print(const struct cli_table *t, FILE *to, int max_width);
void cli_table_fini(struct cli_table *t);

/* One JSON value on one line of stdout, flushed; takes j. */
void cli_json_line(json_t *take_j);
/* The same for the first line of a stream, or the only one: with "v":1 in front. */
void cli_json_first(json_t *take_j);
/* {"stream":…,"text" or "base64":…} added to j. */
void cli_json_bytes(json_t *j, const void *data, size_t len);
/* A name that may be any bytes: as it is, or, where it is no UTF-8, visible, and under
 * the other key once more in base 64. */
void cli_json_path(json_t *j, const char *key, const char *coded_key, const char *path);
json_t *cli_json_event(const struct sba_event *e);
json_t *cli_json_usage(const struct sba_usage *u);
json_t *cli_json_result(const struct sba_turn_result *r);
json_t *cli_json_sandbox(const struct sba_sandbox_info *i);

/* Text and a newline, broken between words where a terminal has so many
 * columns (0: never); it begins in column `at`, further lines at `indent`. */
void cli_wrap(FILE *to, const char *text, int at, int indent, int columns);
/* Columns of the terminal that `to` is; 0: it is none. */
int cli_columns_of(FILE *to);

/* All of it to a descriptor, waiting where it is slow. False: it is closed. */
bool cli_write(int fd, const void *data, size_t len);

/* ---- input (input.c) ---- */

enum { CLI_RULES_MAX = 1 << 20 };
/* A prompt or script: text itself, or "-": all of stdin. The caller frees. */
int cli_read_text(const char *text, size_t max, char **ret, size_t *ret_len, struct sba_error *err);
int cli_read_file(const char *path, size_t max, char **ret, size_t *ret_len, struct sba_error *err);

/* A file that --OPTION names: what is wrong with it is a mistake in the options. */
int cli_read_option_file(const char *option, const char *path, size_t max, char **ret,
			 size_t *ret_len, struct sba_error *err);
/* SBA_ECONFIG: what --OPTION names is not there, or not a folder or a file as `folder` says. */
int cli_check_option_path(const char *option, const char *path, bool folder, struct sba_error *err);

/* Environment for a sandbox: "K=V" strings that are owned. */
struct cli_env {
	char **v; /* NULL-ended, or NULL */
	size_t n;
};
/* Files first, then -e; "K" alone takes the value from our environment. */
int cli_env_collect(struct cli_env *env, const struct cli_list *files, const struct cli_list *vars,
		    struct sba_error *err);
/* What the configuration says for the agent (may be NULL); before the options'. */
int cli_env_collect_config(struct cli_env *env, struct cli *cli, const char *agent,
			   struct sba_error *err);
int cli_env_add(struct cli_env *env, const char *var, struct sba_error *err);
void cli_env_fini(struct cli_env *env);

/* ---- the configuration (settings.c) ---- */

/* Loads it, once. */
int cli_config(struct cli *cli, struct sba_error *err);
/* Gives options that were not given the values that the configuration has for the
 * scope, but those of cli_way_options: cli_way_settle() does them. */
int cli_settings_apply(struct cli *cli, const struct cli_command *c, const struct cli_args *args,
		       void *options, const struct sba_config_scope *scope, struct sba_error *err);
/* A value of the configuration is in use as the value of an option. */
void cli_settings_used(struct cli *cli, const struct sba_config_value *v);
/* rc; what ran into the timeout of that key is told how to have more. */
int cli_settings_timeout(const struct cli *cli, const char *key, int rc, struct sba_error *err);
/* A text that blames "--OPTION" blames what really set it. */
void cli_settings_blame(const struct cli *cli, struct sba_error *err);
/* Whether the setting is the one behind the command's option. */
bool cli_setting_is_for(const struct sba_setting *s, const struct cli_command *c,
			const char *option);

/* ---- signals and the terminal (signals.c, term.c) ---- */

int cli_signals_init(struct sba_cancel *cancel, struct sba_error *err);
/* What a signal ends besides every wait; NULL: nothing. Main thread only. */
void cli_signals_turn(struct sba_turn *t);
void cli_signals_process(struct sba_process *p);
/* The signal that asked us to stop; 0: none. */
int cli_signals_caught(void);
/* Readable once one was caught. */
int cli_signals_fd(void);
/* rc, or 128 + the signal; says on stderr what became of things. */
int cli_signals_exit(struct cli *cli, int rc, const char *what);

/* Raw mode on stdin; restored by cli_term_restore(), at exit, and when a
 * signal ends us. */
int cli_term_raw(struct sba_error *err);
void cli_term_restore(void); /* async-signal-safe */
void cli_term_size(unsigned short *ret_rows, unsigned short *ret_columns);
/* A descriptor that is readable after the window's size changed; -1: none. */
int cli_term_winch_open(void);
void cli_term_winch_drain(int fd);

/* ---- the engine and what is on it (connect.c) ---- */

/* Signals end every wait, and the configuration is loaded: what needs no engine. */
int cli_begin(struct cli *cli, struct sba_error *err);
int cli_engine(struct cli *cli, struct sba_error *err);
int cli_sandbox(struct cli *cli, const char *name, struct sba_sandbox **ret, struct sba_error *err);
/* The same for commands with --container, which an error's hint may tell of. */
#define CLI_CONTAINER_OPTION(field)                                                                \
	{                                                                                          \
		"container", 0, CLI_FLAG, NULL, "NAME is a container that is not ours", field, 0   \
	}
int cli_sandbox_or_container(struct cli *cli, const char *name, bool container,
			     struct sba_sandbox **ret, struct sba_error *err);
/* Whether it is one. */
bool cli_is_container(const struct sba_sandbox *s);
/* CVE-2024-21626: a leaked descriptor let a container out. */
#define CLI_RUNC_OLD                                                                               \
	"%s is older than 1.1.12 (CVE-2024-21626), unless your distribution patched it: update "   \
	"containerd/runc"
bool cli_runc_is_old(const struct sba_engine_info *i);
/* Says so once for each engine and version (once.c). Costs a question to the engine where
 * that is asked anyway, or was never asked this. */
void cli_warn_of_runc(struct cli *cli, bool is_asked_anyway);
/* What died half-made goes with a command of any kind: for those that look for no sandbox. */
void cli_sweep(struct cli *cli);
/* The agent in NAME, for its sessions, skills and rules. The caller ends it with
 * cli_agent_close(), also after a failure. */
struct cli_agent {
	struct sba_sandbox *sandbox;
	struct sba_agent *agent;
};
int cli_agent_open(struct cli *cli, const char *name, struct cli_agent *ret, struct sba_error *err);
void cli_agent_close(struct cli_agent *a);
/* What the library's call on it made of it: the exit status, an error being told. */
int cli_agent_end(struct cli *cli, struct cli_agent *a, int rc, struct sba_error *err);
/* SBA_EINVAL: no such agent; the nearest is hinted at. */
int cli_check_agent(const char *agent, struct sba_error *err);
/* Whether the engine says that the image has no such user. */
bool cli_unknown_user(const struct sba_error *err);
void cli_close(struct cli *cli);
/* The reference without our repository: "claude-2.1.332-20261129". Lent. */
const char *cli_short_ref(struct cli *cli, const char *ref);
/* "2.1.332" out of "sandbox-agent:claude-2.1.332-20261129"; "" where it is not so. */
void cli_ref_version(const char *ref, const char *agent, char *buf, size_t size);

/* ---- progress of builds and pulls (progress.c) ---- */

struct cli_build {
	struct cli *cli;
	bool details;   /* the build's own output goes to a log */
	char last[256]; /* a log: the line before; a terminal: the step under way */
};
void cli_build_progress(void *user, const struct sba_progress *p);

/* ---- what is pinned (pins.c) ---- */

int cli_images(struct cli *cli, struct sba_error *err);
/* The lock file, if there is one. */
int cli_lock(struct cli *cli, struct sba_error *err);
/* Where it is or belongs: as --lock (NULL: not given) says, the configuration, beside the
 * versions.json that is named there, or where the program was installed; NULL: nowhere.
 * *ret_named: somebody named it. The caller frees. */
int cli_lock_path(struct cli *cli, const char *option, char **ret, bool *ret_named,
		  struct sba_error *err);
/* *ret stays as it is where there is no file, unless there must be. */
int cli_lock_read(const char *path, bool must, struct sba_image_lock **ret, struct sba_error *err);
/* Where docker's config.json is; NULL: nowhere. Lent. */
const char *cli_docker_folder(struct cli *cli);

/* ---- the pinned images (image.c, image_check.c) ---- */

/* Those that the words name, all of them for "all" and for none; NULL-ended, lent.
 * After cli_images(). */
const char *const *cli_image_names(struct cli *cli, const struct cli_args *args);
/* Calls one for each of them; the exit status, errors being told. */
int cli_image_each(struct cli *cli, const struct cli_args *args, const void *options,
		   int (*one)(struct cli *, const char *, const void *, struct sba_error *));
/* SBA_EINVAL: none is pinned for that name. */
int cli_image_ref(struct cli *cli, const char *name, const char **ret, struct sba_error *err);
/* The same of one that has to be on the engine. */
int cli_image_here(struct cli *cli, const char *name, const char **ret, struct sba_error *err);
/* The line that says what was done with one. */
void cli_image_done(struct cli *cli, const char *ref, const char *what, time_t since);
/* SBA_EIMAGE: it is not what its name says. */
int cli_image_check(struct cli *cli, const char *name, const char *ref, struct sba_error *err);

/* ---- making sandboxes (spawn.c) ---- */

/* ---- the way to a model (way.c) ---- */

struct cli_way {
	bool offline;
	bool login; /* the CLI's own, in the sandbox: no relay, no key */
	const char *script, *model, *provider, *base_url, *key_env, *key_file, *key_command,
		*ca_file;
	int64_t max_tokens, max_requests;
	struct sba_config_key key;    /* by cli_way_settle(), where no option says */
	char *script_text, *key_text; /* by cli_way_read() */
};
/* Options of it for a table whose struct begins with a cli_way. */
extern const struct cli_option cli_way_options[];
/* Goes beside it in the commands that run a turn. */
#define CLI_SCRIPT_OPTION(offset)                                                                  \
	{                                                                                          \
		"script", 0, CLI_STRING, "FILE", "what the scripted model says", offset, 0         \
	}
/* What makes no sense together, or is not there. */
int cli_way_check(const struct cli_way *w, const char *agent, struct sba_error *err);
/* What was not given is what the sandbox was made for (made_for may be NULL), else
 * what the configuration says for the agent. */
int cli_way_settle(struct cli *cli, struct cli_way *w, const struct cli_args *args,
		   const char *agent, const struct sba_sandbox_info *made_for,
		   struct sba_error *err);
/* Checks all of it, and reads script and key, before anything is made for them. */
int cli_way_read(struct cli *cli, struct cli_way *w, const char *agent, struct sba_error *err);
/* Whose model it is, in a word: "scripted", a provider, a host. The caller frees. */
char *cli_way_model(const struct cli_way *w, const char *agent);
/* Of a refusal: which key it was. */
void cli_way_hint_key(const struct cli_way *w, const char *agent, struct sba_error *err);
void cli_way_fini(struct cli_way *w);
/* Opens the agent in s with what was read. */
int cli_way_open(struct cli *cli, const struct cli_way *w, struct sba_sandbox *s, bool one_turn,
		 struct sba_agent **ret, struct sba_error *err);

struct cli_spawn {
	struct cli_way way; /* first: its table counts from here */
	bool locked;        /* no image but what the lock file has */
	const char *image, *pull, *name, *tag, *workspace, *user, *runtime, *network;
	const char *permissions, *mcp;
	char *mcp_text, *mcp_names; /* by cli_spawn(), for as long as it works */
	size_t mcp_len;
	char *login_path, *login_text; /* the same */
	size_t login_len;
	char *rules_text; /* the same */
	size_t rules_len;
	const char *const *program; /* of an agent that takes one; NULL-ended */
	const char *rules;
	struct cli_list env, env_file, allow, mount, skill;
	int64_t memory, pids, keepalive, max_lifetime, timeout, idle_timeout;
	double cpus;
	const char *in;      /* of `up`: a sandbox that is there */
	const char *backend; /* NULL: docker */
	bool brief;          /* ends with the command: soon, where that dies */
};
extern const struct cli_option cli_spawn_options[];
/* What an agent is given in its sandbox. */
extern const struct cli_option cli_lodging_options[];
/* What of those can be known before anything is made; reads what --mcp names. */
int cli_lodging_read(struct cli_spawn *o, const char *agent, struct sba_error *err);
/* Puts it in place. */
int cli_lodging_place(struct cli *cli, struct cli_spawn *o, const char *agent,
		      struct sba_sandbox *s, struct sba_error *err);
/* The agent moves into a sandbox that is there, with it. */
int cli_lodging_move_in(struct cli *cli, struct cli_spawn *o, const char *agent,
			struct sba_sandbox *s, struct sba_error *err);
void cli_lodging_forget(struct cli_spawn *o);
/* The words behind `first` of the line are an agent's program, or a usage error. */
int cli_spawn_program(struct cli_spawn *o, const struct cli_args *args, int first,
		      const char *command, struct sba_error *err);
/* Image, sandbox (one of the pool's, if it has one like it), workspace. On failure
 * nothing is left. */
int cli_spawn(struct cli *cli, struct cli_spawn *o, const char *agent, struct sba_sandbox **ret,
	      struct sba_error *err);
/* ---- a folder of this host as the sandbox (local.c) ---- */

struct cli_local {
	bool keep_env, no_landlock;
};
#define CLI_LOCAL_OPTIONS(offset)                                                                  \
	{ "keep-env",                                                                              \
	  0,                                                                                       \
	  CLI_FLAG,                                                                                \
	  NULL,                                                                                    \
	  "local: what looks like a secret in our environment stays",                              \
	  (offset) + offsetof(struct cli_local, keep_env),                                         \
	  0 },                                                                                     \
	{                                                                                          \
		"no-landlock", 0, CLI_FLAG, NULL, "local: may write outside of the folder",        \
			(offset) + offsetof(struct cli_local, no_landlock), 0                      \
	}
bool cli_local_wanted(const struct cli_spawn *o);
/* What cli_spawn() does, in a folder of this host. */
int cli_local_spawn(struct cli *cli, struct cli_spawn *o, const struct cli_local *l,
		    const struct cli_args *args, struct sba_sandbox **ret, struct sba_error *err);

/* Whatever --backend says; local NULL: it is to outlive the command. */
int cli_spawn_anywhere(struct cli *cli, struct cli_spawn *o, const struct cli_local *local,
		       const struct cli_args *args, const char *agent, struct sba_sandbox **ret,
		       struct sba_error *err);

/* ---- sandboxes of services (remote.c) ---- */

/* Whether the word names a service. */
bool cli_remote_is(const char *backend);
/* Somebody has said where it is, or has a key for it. */
bool cli_remote_is_set_up(const struct cli *cli, const char *service);
/* How long "SERVICE/" is that a name begins with; 0: it does not. */
size_t cli_remote_prefix(const char *name);
/* The service of that name, as the configuration has it. */
int cli_remote(struct cli *cli, const char *service, size_t len, struct sba_remote **ret,
	       struct sba_error *err);
/* The sandbox that is called SERVICE/NAME. */
int cli_remote_find(struct cli *cli, const char *name, struct sba_sandbox **ret,
		    struct sba_error *err);
/* What cli_spawn() does, at the service that o->backend names. */
int cli_remote_spawn(struct cli *cli, struct cli_spawn *o, const struct cli_args *args,
		     const char *agent, struct sba_sandbox **ret, struct sba_error *err);
int cli_spawn_check_workspace(const char *arg, struct sba_error *err);
int cli_spawn_add_workspace(struct cli *cli, const char *arg, struct sba_sandbox *s,
			    struct sba_error *err);

/* The end of a command that makes one which stays: its exit status. Tells the name,
 * and on a terminal what to type next: "NEXT NAME" and the rest. */
int cli_spawned(struct cli *cli, struct sba_sandbox *take_s, const char *next, const char *rest);
int cli_not_spawned(struct cli *cli, const struct sba_error *err);
/* As many of the same into the pool as are missing of `count`. */
int cli_spawn_fill(struct cli *cli, struct cli_spawn *o, const char *agent, size_t count,
		   size_t *ret_made, struct sba_error *err);
/* The folder of "DIR" or "DIR:/PATH", which the caller frees; *ret_path points into arg,
 * or is NULL. */
char *cli_workspace_dir(const char *arg, const char **ret_path);
/* Removes it; where that fails, says what is left and how to end it. */
int cli_remove(struct cli *cli, struct sba_sandbox *s);

/* ---- turns (turn.c), how they look (render.c) ---- */

struct cli_render {
	const struct cli_look *look;
	struct cli_status *status;
	FILE *out, *err;
	bool verbose, quiet;

	bool in_text;      /* out stands in the middle of an answer */
	bool cut;          /* a silence ended the line of an answer that may go on */
	bool in_thinking;  /* err stands in the middle of thinking */
	int thinking_room; /* columns left for it; 0: what follows is folded away */
	unsigned newlines; /* of the answer, held back until more of it comes */
	struct cli_call {
		char id[64];
		char tool[32];
		char *summary; /* visible */
		char *input;
		int64_t since_ms;
	} calls[16];
	size_t calls_n;
	int64_t last_ms; /* when something last came */
	char *error;     /* the CLI's last word may be the verdict's, so it waits */
};
void cli_render_event(struct cli_render *r, const struct sba_event *e);
/* What goes on between events, on a terminal. */
void cli_render_tick(struct cli_render *r, int64_t now_ms);
/* Ends open lines; tools that never answered are told. */
void cli_render_end(struct cli_render *r);
/* An error that is about to be reported needs no line of its own. */
void cli_render_forget(struct cli_render *r, const char *reported);
/* A whole answer, and nothing else: its text ends in exactly one newline. */
void cli_render_answer(struct cli_render *r, const char *text);
void cli_render_result(struct cli_render *r, const struct sba_turn_result *t);
void cli_render_fini(struct cli_render *r);

struct cli_turn {
	const char *prompt;
	size_t prompt_len;
	const struct cli_way *way;
	bool one_turn; /* the sandbox ends with it */
	bool aside;    /* it leaves no trace in the session */
	bool wait;     /* for a turn under way */
	int64_t timeout, idle_timeout;
	bool begun;       /* told: there was a turn */
	bool hold_result; /* --json: the last object goes to `result`, not to stdout */
	json_t *result;
};
/* Checks and reads the prompt (word NULL: none was given) before anything is
 * made for it. The caller frees. */
int cli_turn_prompt(const char *word, const char *example, char **ret, size_t *ret_len,
		    struct sba_error *err);
/* One turn in s, shown as it happens; the exit status. */
int cli_turn_run(struct cli *cli, struct sba_sandbox *s, struct cli_turn *o);

/* ---- the CLI's own screen (screen.c) ---- */

/* Whether there is no prompt, and somebody at a terminal. */
bool cli_screen_wanted(const struct cli *cli, const char *prompt);
/* The sandbox ends with it; it waits for a turn that is under way. */
enum { CLI_SCREEN_ONCE = 1, CLI_SCREEN_WAITS = 2 };
/* The screen of the agent in s, until it ends; the exit status. */
int cli_screen_run(struct cli *cli, struct sba_sandbox *s, const struct cli_way *way, int flags);

/* ---- the pool (pool.c) ---- */

/* Begins to fill what the configuration says about the agent's pool, in a process
 * that nobody waits for. */
void cli_pool_refill(struct cli *cli, const char *agent);

/* ---- lists of sandboxes (ps.c) ---- */

/* As -q and --json say. */
void cli_ps_print(struct cli *cli, const struct sba_sandbox_list *l);
/* How many were removed, or the words for none; 0, the exit status. */
int cli_removed(struct cli *cli, int n, const char *none);

/* ---- files on their way (transfer.c) ---- */

/* One transfer as it is shown: a line on a terminal, what was refused. */
struct cli_transfer {
	struct cli *cli;
	const char *what; /* lent */
	int64_t since_ms, shown_ms;
	json_t *refused; /* names and reasons, for --json */
	unsigned by_kind[SBA_REFUSED_KINDS];
};
void cli_transfer_init(struct cli_transfer *t, struct cli *cli, const char *what);
void cli_transfer_fini(struct cli_transfer *t);
/* Fit sba_transfer_options, with the transfer as its user. */
void cli_transfer_progress(void *transfer, const struct sba_transfer_progress *p);
void cli_transfer_refused(void *transfer, const char *name, enum sba_refusal why);
/* One line about all that was refused. */
void cli_transfer_tell_refused(struct cli_transfer *t, uint64_t refused);

/* Our stdin and stdout as the library's streams; a stdin that yields nothing for half
 * a minute is given up where `hurry`. */
struct cli_stream {
	bool hurry;
	bool deaf; /* nobody reads what we write any more */
};
ssize_t cli_stream_read(void *stream, void *buf, size_t size, struct sba_error *err);
int cli_stream_write(void *stream, const void *data, size_t len, struct sba_error *err);

/* "NAME:PATH" with a PATH that is absolute, or beneath /workspace. The caller frees. */
char *cli_inside_path(const char *path);
/* The same once the sandbox is known: beneath the folder where agents work in it, where
 * `given` does not begin with /. */
int cli_inside_settle(const struct sba_sandbox *s, const char *given, char **path,
		      struct sba_error *err);

/* ---- the audit (record.c, audit.c) ---- */

/* Where it is: as the configuration says, else in the temporary folder. Lent. */
int cli_audit_root(struct cli *cli, const char **ret, struct sba_error *err);
/* False: none is wanted. agent "": none. */
bool cli_audit_options(struct cli *cli, const char *agent, struct sba_audit_options *ret);
/* What is done in s is recorded until it is closed, before s; NULL: nothing is. */
struct sba_audit *cli_record_open(struct cli *cli, struct sba_sandbox *s);
/* Warns where it cannot be; a NULL is let pass. */
void cli_record(struct cli *cli, struct sba_audit *a, const char *kind, json_t *take_payload);
/* Both in one; s NULL: nothing. */
void cli_record_once(struct cli *cli, struct sba_sandbox *s, const char *kind,
		     json_t *take_payload);

/* A copy in or out; lent. */
struct cli_moved {
	bool in;
	const char *from, *to; /* NULL: our stdin or stdout */
	const struct sba_transfer_report *report;
	json_t *refused;
	const struct sba_error *error;
};
json_t *cli_record_transfer(const struct cli_moved *m);

/* The session of that id, and the list that it lives in. */
int cli_audit_find(struct cli *cli, const char *id, struct sba_audit_list **ret_list,
		   const struct sba_audit_session **ret, struct sba_error *err);
/* The words of a recorded command, as one line; the caller frees. */
char *cli_audit_argv(const json_t *payload);

/* ---- commands in a sandbox (exec.c), their output (exec_show.c) ---- */

struct cli_sink {
	struct cli *cli;
	bool deaf; /* our stdout or stderr takes nothing any more: nothing is shown */
	int why;   /* ... the errno; EPIPE: who read it has gone */
	struct cli_held {
		char bytes[4];
		size_t len;
	} held[2]; /* --json: the beginning of a character */
};
void cli_sink_put(struct cli_sink *s, enum sba_output which, const char *data, size_t len);
/* Says that what comes after so many bytes is dropped. */
void cli_sink_cut(struct cli_sink *s, int64_t limit);
/* At the end of the output. */
void cli_sink_end(struct cli_sink *s);

struct cli_exec {
	bool interactive, tty, detach, signal_others, container;
	struct cli_list env, env_file;
	const char *workdir, *user;
	int64_t timeout, max_output;
};
/* Our terminal is that of a process in box, until it ends; the exit status. */
int cli_exec_attach(struct cli *cli, struct sba_sandbox *box, struct sba_process *p,
		    const char *command);
/* Runs argv with our streams; the exit status. */
int cli_exec_run(struct cli *cli, const char *name, const struct cli_exec *o,
		 const char *const *argv);

#endif
