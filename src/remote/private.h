/* SPDX-License-Identifier: MIT */
/* What the files of this module share: a service, one of its sandboxes, a command there. */
#ifndef SBA_REMOTE_PRIVATE_H
#define SBA_REMOTE_PRIVATE_H

#include <sandbox-agent/backend.h>

#include "engine/engine.h"
#include "http/http.h"
#include "remote/remote.h"
#include "sandbox/sandbox.h"

#include <pthread.h>

struct sba_remote_kind;

struct sba_remote {
	const struct sba_remote_kind *kind;
	struct sba_http_client *http;
	char *url; /* no slash at its end */
	char *sandbox_url, *key, *key_from, *workdir;
	char *key_header; /* with the key; NULL: there is none */
	bool through_server;
	int64_t ready_ms;
	struct sba_cancel *cancel;
};

/* At most so long, and as the handle's cancel token says. */
struct sba_until sba_remote_until(const struct sba_remote *r, int64_t ms);

/* ---- call.c: one request ---- */

struct sba_remote_call {
	const char *method, *url;
	const char *what;               /* "make a sandbox": for errors */
	const struct sba_strv *headers; /* may be NULL */
	const char *secret;             /* one more header; may be NULL */
	const char *type;               /* of the body; NULL: JSON */
	const void *body;
	size_t body_len;
	ssize_t (*body_read)(void *user, char *buf, size_t size); /* instead of body */
	void *body_user;
	bool again; /* it may be asked twice: what a busy server refuses is tried again */
};
/* Whether it is because of the other side's certificate, which waiting does not mend. */
bool sba_remote_is_distrusted(const struct sba_error *err);
/* Its answer, if it is a good one; else what the refusal means. */
int sba_remote_open_call(struct sba_remote *r, const struct sba_remote_call *c,
			 struct sba_until until, struct sba_http_response **ret,
			 struct sba_error *err) SBA_MUST_CHECK;
int sba_remote_read_json(struct sba_remote *r, const struct sba_remote_call *c,
			 struct sba_http_response *answer, struct sba_until until, json_t **ret,
			 struct sba_error *err) SBA_MUST_CHECK;
/* Both, of a call: the JSON of its body; ret NULL: it does not matter; *ret NULL: it has none. */
int sba_remote_call(struct sba_remote *r, const struct sba_remote_call *c, struct sba_until until,
		    json_t **ret, struct sba_error *err) SBA_MUST_CHECK;

/* Cuts a stream into lines: take() is called when there is a whole one in `line`, where an
 * unfinished one stays until the next call. */
int sba_remote_cut_lines(struct sba_buf *line, const char *data, size_t len,
			 int (*take)(void *user, struct sba_error *err), void *user,
			 struct sba_error *err) SBA_MUST_CHECK;

/* ---- control.c: the control plane ---- */

/* To URL/sandboxes[/ID][REST]. */
struct sba_remote_control {
	const char *method;
	const char *what;      /* as of a call */
	const char *id, *rest; /* may be NULL */
	const json_t *body;    /* lent; NULL: none */
	bool again;            /* as of a call */
};
int sba_remote_control(struct sba_remote *r, const struct sba_remote_control *c,
		       struct sba_until until, json_t **ret, struct sba_error *err) SBA_MUST_CHECK;
/* 0 also where there is none. */
int sba_remote_remove(struct sba_remote *r, const char *id, struct sba_until until,
		      struct sba_error *err) SBA_MUST_CHECK;

/* ---- a sandbox ---- */

struct sba_remote_box {
	struct sba_remote *remote;
	char *id;
	json_t *marks;
	/* What is inside: */
	char *base;              /* URL of execd or envd */
	struct sba_strv headers; /* of every request to it */
	char *secret;            /* one more */
	int version;             /* of envd: 0.6.7 is 607 */
	bool code_runs;          /* its code interpreter has answered once; under the lock */
	char *workdir;
	int closed_fd; /* readable once it was closed */
	pthread_mutex_t lock;
	bool closed;
	/* its life (lease.c) */
	int64_t keepalive_ms, dies_at; /* UNIX seconds; 0: never */
	pthread_t lease;
	bool leasing;
	int lease_stop_fd;
};
int sba_remote_box_new(struct sba_remote *r, const char *id, const json_t *marks,
		       struct sba_remote_box **ret, struct sba_error *err) SBA_MUST_CHECK;
void sba_remote_box_free(struct sba_remote_box *b);
/* A URL of what is inside. The caller frees. */
int sba_remote_inside(const struct sba_remote_box *b, char **ret, struct sba_error *err,
		      const char *fmt, ...) SBA_PRINTF(4, 5) SBA_MUST_CHECK;

/* Whether something answers inside (control.c). */
int sba_remote_greet(struct sba_remote_box *b, const char *path, const char *what,
		     struct sba_until until, struct sba_error *err) SBA_MUST_CHECK;
/* One after the other (NULL-ended), each until it succeeds, or fails for another reason than
 * that it is too early (control.c). */
typedef int sba_remote_step_fn(struct sba_remote_box *b, struct sba_until until,
			       struct sba_error *err);
int sba_remote_come_up(struct sba_remote_box *b, sba_remote_step_fn *const *steps,
		       struct sba_until until, struct sba_error *err) SBA_MUST_CHECK;

/* ---- lease.c ---- */

/* Until when it may live, from now on: UNIX seconds; 0: for ever. */
int64_t sba_remote_lease_end(const struct sba_remote_box *b);
int sba_remote_lease_start(struct sba_remote_box *b, struct sba_error *err) SBA_MUST_CHECK;
void sba_remote_lease_stop(struct sba_remote_box *b);

/* ---- command.c ---- */

struct sba_remote_command {
	struct sba_remote_box *box;
	char id[SBA_REMOTE_ID_LEN + 1];
	struct sba_buf request; /* as kind->compose() made it */
	char *input;            /* a file inside that its stdin is; NULL: none */
	bool live_input;        /* its stdin is sent while it runs */
	int in, out, err;       /* our ends; -1: closed, or none */
	int started_fd, ended_fd, stop_fd, drop_fd; /* eventfds, fired once */
	int stop_watch, drop_watch;                 /* either, or the sandbox is closed */
	pthread_t thread, feeder;
	bool threaded, feeding;
	int64_t deadline_ms; /* of all of it */
	/* Of the thread, and of others once ended_fd was fired: */
	bool started, over, whole; /* whole: nothing more comes that matters */
	struct sba_exit killed;    /* SBA_SIGNALED: we have ended it */
	struct sba_exit exit;
	struct sba_error failure; /* code != 0: how it ended is not known */
	/* Of the kind's decoder: */
	struct sba_envelopes envelopes;
	struct sba_buf line;
	struct sba_shell_scan scan[2]; /* stdout, stderr */
	bool stream_ended[2];
	char said[200]; /* the last words of what carries it */
};
/* Without descriptors: its output goes nowhere. */
int sba_remote_command_new(struct sba_remote_box *b, const struct sba_exec_options *o,
			   struct sba_remote_command **ret, struct sba_error *err) SBA_MUST_CHECK;
void sba_remote_command_free(struct sba_remote_command *c);
int sba_remote_exec(struct sba_sandbox *s, const struct sba_exec_options *o,
		    struct sba_process **ret, struct sba_error *err) SBA_MUST_CHECK;
/* What a decoder tells. */
void sba_remote_started(struct sba_remote_command *c);
void sba_remote_output(struct sba_remote_command *c, enum sba_output which, const char *data,
		       size_t len);
void sba_remote_stream_ended(struct sba_remote_command *c, enum sba_output which);
void sba_remote_ended(struct sba_remote_command *c, const struct sba_exit *how);

/* ---- conversation.c: a command's stream from its beginning to its end ---- */

/* In the caller's thread; *err, where it fails, is why its end is not known. */
int sba_remote_converse(struct sba_remote_command *c, struct sba_error *err) SBA_MUST_CHECK;
/* To all that the command of that id started; SIGKILL: until nothing of it is left. */
int sba_remote_signal(struct sba_remote_box *b, const char *id, int number,
		      struct sba_error *err) SBA_MUST_CHECK;
/* Sends what comes on c->in to the command, then the end of it. */
void sba_remote_feed_input(struct sba_remote_command *c);
/* All that comes on c->in into its file inside. */
int sba_remote_keep_input(struct sba_remote_command *c, struct sba_error *err) SBA_MUST_CHECK;

/* ---- files.c ---- */

int sba_remote_read(struct sba_sandbox *s, const char *path, int64_t timeout_ms,
		    sba_write_fn *write, void *user, struct sba_error *err) SBA_MUST_CHECK;
int sba_remote_write(struct sba_sandbox *s, const char *path, sba_read_fn *read, void *user,
		     const struct sba_write_options *options, struct sba_error *err) SBA_MUST_CHECK;
/* BASE ENDPOINT ?path=PATH MORE: of a file inside. */
int sba_remote_file_url(const struct sba_remote_box *b, const char *endpoint, const char *path,
			const char *more, struct sba_buf *ret,
			struct sba_error *err) SBA_MUST_CHECK;
int sba_remote_fetch(struct sba_remote_box *b, const char *url, struct sba_until until,
		     struct sba_http_response **ret, struct sba_error *err) SBA_MUST_CHECK;
/* A form of one file, with what comes before and after the file's bytes. */
struct sba_remote_form {
	const char *before, *after;
	int fd; /* at its beginning */
	uint64_t size;
};
#define SBA_REMOTE_BOUNDARY "sandbox-agent-7f3c9a51d2"
int sba_remote_send_form(struct sba_remote_box *b, const char *url,
			 const struct sba_remote_form *form, struct sba_until until,
			 struct sba_error *err) SBA_MUST_CHECK;

/* ---- box.c: members of both tables ---- */

struct sba_remote_box *sba_remote_box_of(const struct sba_sandbox *s);
const char *sba_remote_workdir(const struct sba_sandbox *s);
int sba_remote_box_close(struct sba_sandbox *s, struct sba_error *err);
void sba_remote_box_release(struct sba_sandbox *s);
bool sba_remote_box_is_closed(struct sba_remote_box *b);
/* What a failed stream really means: whether the sandbox is still there. */
int sba_remote_explain(struct sba_remote_box *b, int rc, struct sba_error *err) SBA_MUST_CHECK;

/* ---- code.c: members of both tables ---- */

int sba_remote_run_code(struct sba_sandbox *s, const struct sba_code_options *options,
			sba_code_fn *tell, void *user, struct sba_exit *ret,
			struct sba_error *err) SBA_MUST_CHECK;
int sba_remote_context_new(struct sba_sandbox *s, const char *language, char **ret,
			   struct sba_error *err) SBA_MUST_CHECK;
int sba_remote_context_end(struct sba_sandbox *s, const char *context,
			   struct sba_error *err) SBA_MUST_CHECK;

/* One run, while its stream lasts. */
struct sba_remote_code {
	struct sba_remote_box *box;
	const struct sba_code_options *options;
	sba_code_fn *tell;
	void *user;
	struct sba_buf line;
	char session[80]; /* that it is interrupted by; "": not told */
	bool failed;      /* an error was told */
};
int sba_remote_tell_output(struct sba_remote_code *c, enum sba_code_event_kind kind,
			   const json_t *text, struct sba_error *err) SBA_MUST_CHECK;
int sba_remote_tell_error(struct sba_remote_code *c, const json_t *name, const json_t *text,
			  const char *traceback, struct sba_error *err) SBA_MUST_CHECK;
int sba_remote_tell_number(struct sba_remote_code *c, const json_t *number,
			   struct sba_error *err) SBA_MUST_CHECK;
enum { SBA_REMOTE_TYPE_MAX = 80 };
/* A value of {"FORM": DATA}; type_of says what a form's type is (it may fill buf); NULL: it is
 * none. */
typedef const char *sba_remote_type_fn(const char *form, char buf[SBA_REMOTE_TYPE_MAX]);
int sba_remote_tell_value(struct sba_remote_code *c, const json_t *forms, bool is_result,
			  sba_remote_type_fn *type_of, struct sba_error *err) SBA_MUST_CHECK;
/* A request to the code interpreter that is not a stream. */
int sba_remote_code_call(struct sba_remote_box *b, const char *method, const char *path,
			 const json_t *body, struct sba_until until, json_t **ret,
			 struct sba_error *err) SBA_MUST_CHECK;

/* The code interpreter of a kind of service. */
struct sba_remote_code_kind {
	const char *run;      /* paths: to run code, to make a context, */
	const char *contexts; /* … to end one: with its name behind it */
	const char *context;
	const char *image; /* that has one, for words */
	/* Where it answers; headers are added. */
	int (*way)(const struct sba_remote_box *b, const char *path, char **ret_url,
		   struct sba_strv *ret_headers, struct sba_error *err);
	int (*compose)(const struct sba_code_options *o, json_t **ret, struct sba_error *err);
	int (*take)(struct sba_remote_code *c, const json_t *event, struct sba_error *err);
	/* Its stream is closed already. */
	int (*stop)(struct sba_remote_code *c, struct sba_until until, struct sba_error *err);
};

/* ---- one kind of service ---- */

struct sba_remote_start {
	const struct sba_exec_options *options;
	const char *id;
	const char *workdir;
	const char *input; /* a path inside; NULL: none */
	bool live_input;
};

struct sba_remote_kind {
	const struct sba_backend *backend;
	const char *url;         /* the usual one */
	const char *key_name;    /* of the header */
	const char *missing_key; /* what to do about a key that is not taken */
	bool live_input;         /* a command's stdin is sent while it runs */
	int64_t least_s;         /* the shortest life that it takes */
	/* SBA_EUNSUPPORTED for what it cannot; also what is not so by its rules. */
	int (*check)(const struct sba_sandbox_options *o, struct sba_error *err);
	/* *ret: {"id", …} as attach() takes it. ends_at: 0: never. */
	int (*create)(struct sba_remote *r, const struct sba_sandbox_options *o,
		      const json_t *marks, int64_t life_s, struct sba_until until, json_t **ret,
		      struct sba_error *err);
	/* Adds {"id", "marks"} of each that is of the prefix (NULL: any). */
	int (*list)(struct sba_remote *r, const char *prefix, struct sba_until until, json_t *ret,
		    struct sba_error *err);
	/* Finds the way inside and waits until something answers there. `made`: as create()
	 * said; NULL: it was found. */
	int (*attach)(struct sba_remote_box *b, const json_t *made, struct sba_until until,
		      struct sba_error *err);
	int (*renew)(struct sba_remote_box *b, int64_t ends_at, struct sba_until until,
		     struct sba_error *err);
	/* SBA_ENOTFOUND: there is none any more. */
	int (*look)(struct sba_remote *r, const char *id, struct sba_until until,
		    struct sba_error *err);
	/* The request that starts a command. */
	int (*compose)(struct sba_remote_box *b, const struct sba_remote_start *s,
		       struct sba_buf *ret, struct sba_error *err);
	int (*stream)(struct sba_remote_box *b, const struct sba_buf *request,
		      struct sba_until until, struct sba_http_response **ret,
		      struct sba_error *err);
	int (*decode)(struct sba_remote_command *c, const char *data, size_t len,
		      struct sba_error *err);
	/* data NULL: the end of it. */
	int (*input)(struct sba_remote_command *c, const char *data, size_t len,
		     struct sba_until until, struct sba_error *err);
	int (*put)(struct sba_remote_box *b, const char *path, int fd, uint64_t size,
		   struct sba_until until, struct sba_error *err);
	int (*get)(struct sba_remote_box *b, const char *path, struct sba_until until,
		   struct sba_http_response **ret, struct sba_error *err);
	const struct sba_remote_code_kind *code;
};
extern const struct sba_remote_kind sba_remote_opensandbox, sba_remote_e2b;

/* What no service of these can. */
int sba_remote_check_common(const struct sba_sandbox_options *o, const char *service,
			    struct sba_error *err) SBA_MUST_CHECK;
/* SBA_EINVAL: a text that JSON cannot carry. */
int sba_remote_check_text(const char *what, const char *text, struct sba_error *err) SBA_MUST_CHECK;
/* {"K": "V"} of "K=V"; `more` (may be NULL): one pair before them. */
int sba_remote_env(const char *const *env, const char *const more[2], json_t **ret,
		   struct sba_error *err) SBA_MUST_CHECK;

#endif
