/* SPDX-License-Identifier: MIT */
/*
 * The Docker Engine API: connections, requests, exec streams, containers,
 * files as tar, images. Its own HTTP/1.1 over a unix socket, TCP or TLS (an
 * exec turns the connection into a raw stream with half-close, which no HTTP
 * library offers on all three). It knows nothing of sandboxes.
 *
 * Every function that talks waits no longer than `until`; the handle's cancel
 * token is honoured too unless stated. All are safe to call from several
 * threads on one handle, except that a body, an exec or an event stream
 * belongs to one thread at a time.
 */
#ifndef SBA_ENGINE_H
#define SBA_ENGINE_H

#include <sandbox-agent/engine.h>

#include "base/base.h"

/* The descriptor that sba_cancel_fire() makes readable, -1 for NULL. */
int sba_cancel_fd(const struct sba_cancel *c);
/* Podman's major version, 0 where the engine is Docker: for what the two do not
 * agree on. docs/engines.md lists it all. */
int sba_engine_podman(const struct sba_engine *e);
/* The path of its socket on this machine, so that its files and its processor are most
 * likely ours; NULL if it is reached otherwise. */
const char *sba_engine_socket(const struct sba_engine *e);
/* As images name architectures: "amd64". Asks once; lent until it is closed. */
int sba_engine_arch(struct sba_engine *e, const char **ret, struct sba_error *err) SBA_MUST_CHECK;
/* A limit for work of this handle: at most ms from now, cancelled with it. */
struct sba_until sba_engine_until(const struct sba_engine *e, int64_t ms);
/* What of the kind may take how long, for sba_until_in() and its like. */
const struct sba_timeouts *sba_engine_timeouts(const struct sba_engine *e);
/* A limit that the handle's cancel token does not end: for cleaning up, and for
 * finding out what happened. */
struct sba_until sba_engine_until_regardless(int64_t ms);

/* ---- requests (request.c) ---- */

/* One request. `path` begins with '/' and carries no version; build it with
 * sba_buf_put_url(). A JSON body is lent. */
struct sba_request {
	const char *method;
	const char *path;
	const json_t *json;        /* body, or NULL */
	const char *registry_auth; /* X-Registry-Auth, or NULL */
	const char *tried;         /* for errors: "create container 'x'" */
};

/* Sends it and parses the whole JSON answer (SBA_ENGINE_BODY_MAX); ret may be
 * NULL. An empty answer yields JSON null. A status of 400 and more fails
 * with SBA_ENOTFOUND (404), SBA_EEXIST (409) or SBA_EENGINE, http_status set,
 * the engine's own words in the text. A kept connection that turns out to be
 * dead before a byte of the answer came is replaced once (GET, HEAD, DELETE
 * only; others fail with SBA_ELOST). */
int sba_engine_call(struct sba_engine *e, const struct sba_request *request, struct sba_until until,
		    json_t **ret, struct sba_error *err) SBA_MUST_CHECK;

/* A response body read as it comes. */
struct sba_body;
/* Bytes into buf; 0 at the true end (the chunked end marker, the full
 * Content-Length), SBA_ELOST where the engine closed before it. */
ssize_t sba_body_read(struct sba_body *b, void *buf, size_t size, struct sba_until until,
		      struct sba_error *err) SBA_MUST_CHECK;
/* Returns the connection to the handle if the body was read to its end, else
 * closes it at once (which frees the engine's lock on the container). */
void sba_body_close(struct sba_body *b);

/* Produces the bytes of a request body: up to `size` into buf, 0 at its end,
 * negative on failure (the request is then broken off). */
typedef ssize_t sba_source_fn(void *user, void *buf, size_t size, struct sba_error *err);

/* Sends a request whose body streams (chunked) from `source` (NULL: no body),
 * answers as sba_engine_call() does for errors, and hands out the body of a
 * success. An answer that comes before the source is exhausted stops it. */
int sba_engine_stream(struct sba_engine *e, const struct sba_request *request,
		      const char *content_type, sba_source_fn *source, void *user,
		      struct sba_until until, struct sba_body **ret,
		      struct sba_error *err) SBA_MUST_CHECK;

/* ---- containers (container.c) ---- */

enum { SBA_ID_MAX = 65 };

/* Creates from a whole /containers/create body; name may be NULL. Ignores the
 * handle's cancel token. */
int sba_container_create(struct sba_engine *e, const char *name, const json_t *spec,
			 struct sba_until until, char ret_id[SBA_ID_MAX],
			 struct sba_error *err) SBA_MUST_CHECK;
int sba_container_start(struct sba_engine *e, const char *id, struct sba_until until,
			struct sba_error *err) SBA_MUST_CHECK;
/* SIGKILL to its first process. Ignores the handle's cancel token. */
int sba_container_kill(struct sba_engine *e, const char *id, struct sba_until until,
		       struct sba_error *err) SBA_MUST_CHECK;
/* SBA_EEXIST: that name is taken, be it by itself. Ignores the handle's cancel token. */
int sba_container_rename(struct sba_engine *e, const char *id, const char *name,
			 struct sba_until until, struct sba_error *err) SBA_MUST_CHECK;
int sba_container_inspect(struct sba_engine *e, const char *id, struct sba_until until,
			  json_t **ret, struct sba_error *err) SBA_MUST_CHECK;
/* All containers, newest first, stopped ones too, that carry every label "k=v" or "k" of the
 * NULL-terminated list: the array of GET /containers/json. */
int sba_container_list(struct sba_engine *e, const char *const *labels, struct sba_until until,
		       json_t **ret, struct sba_error *err) SBA_MUST_CHECK;
/* What differs from its image: an array of {"Path", "Kind": 0 modified, 1 added, 2 deleted},
 * the directories above included. */
int sba_container_changes(struct sba_engine *e, const char *id, struct sba_until until,
			  json_t **ret, struct sba_error *err) SBA_MUST_CHECK;
/* Forced, with anonymous volumes; returns once it is truly gone: "no such
 * container" and "removal in progress" count as success and are waited for.
 * Ignores the handle's cancel token. */
int sba_container_remove(struct sba_engine *e, const char *id, struct sba_until until,
			 struct sba_error *err) SBA_MUST_CHECK;

/* ---- exec (exec.c) ---- */

/* argv and env end with NULL; env and user may be NULL. */
struct sba_exec_spec {
	const char *container;
	const char *const *argv;
	const char *const *env;
	const char *user;
	const char *workdir;
	bool no_stdin; /* do not attach stdin */
	bool tty;      /* a terminal of the engine's: all that comes is SBA_EXEC_STDOUT */
};

struct sba_exec;

/* Creates and starts an exec and hands out its raw stream. SBA_EBROKEN: the container
 * does not run. */
int sba_exec_open(struct sba_engine *e, const struct sba_exec_spec *spec, struct sba_until until,
		  struct sba_exec **ret, struct sba_error *err) SBA_MUST_CHECK;

/* The raw stream of a container's main process. Where the container was made with
 * StdinOnce, closing it closes the process's stdin for good, and the end of its output
 * is not told before the container's. It has no exit code. */
int sba_exec_attach(struct sba_engine *e, const char *container, struct sba_until until,
		    struct sba_exec **ret, struct sba_error *err) SBA_MUST_CHECK;

enum sba_exec_stream { SBA_EXEC_STDOUT = 1, SBA_EXEC_STDERR = 2 };

/* The next piece of output: > 0 its length, *stream which; the bytes are lent
 * until the next call. 0 when the stream has ended; SBA_ETIMEOUT when nothing
 * came in time (try again); SBA_EPROTO, SBA_ELOST when it is dead. While it
 * waits it also sends what sba_exec_write() queued. */
ssize_t sba_exec_read(struct sba_exec *x, enum sba_exec_stream *stream, const char **data,
		      struct sba_until until, struct sba_error *err) SBA_MUST_CHECK;
/* Queues up to len bytes for stdin and sends what goes without waiting;
 * returns how many were taken (0: full, read first). A reader that is gone
 * swallows everything: that is no failure. */
ssize_t sba_exec_write(struct sba_exec *x, const void *data, size_t len,
		       struct sba_error *err) SBA_MUST_CHECK;
/* Half-close once everything queued has been sent. */
void sba_exec_shutdown(struct sba_exec *x);
/* The descriptor to poll for reading, for callers with more to watch; and
 * whether unsent input wants POLLOUT. Decoded bytes may be waiting inside:
 * call sba_exec_read() until it times out before polling. */
int sba_exec_fd(const struct sba_exec *x);
bool sba_exec_wants_write(const struct sba_exec *x);
/* After the stream has ended: the exit code by inspect, polled until the exec
 * is no longer running, bounded by `until`. SBA_EBROKEN: the container died.
 * A runtime error (command not found, no such directory or user) came as
 * text on stdout with 126 or 127: sba_exec_runtime_error() tells it. */
int sba_exec_exit_code(struct sba_exec *x, struct sba_until until, int *ret,
		       struct sba_error *err) SBA_MUST_CHECK;
/* One look while the stream is silent, which tells neither of an end that others hold it
 * open after nor always of the container's: 1 and the exit code, 0 while it runs;
 * SBA_EBROKEN: the container died. */
int sba_exec_look(struct sba_exec *x, struct sba_until until, int *ret,
		  struct sba_error *err) SBA_MUST_CHECK;
/* The size of its terminal. */
int sba_exec_resize(struct sba_exec *x, unsigned rows, unsigned columns, struct sba_until until,
		    struct sba_error *err) SBA_MUST_CHECK;
/* With the whole stdout of an exec that ended with `code`: true if it is the
 * runtime's own error text and not the program's output. */
bool sba_exec_runtime_error(int code, const char *out, size_t len);
/* With the beginning of it: whether it may become such a text. */
bool sba_exec_runtime_words(const char *out, size_t len);
void sba_exec_close(struct sba_exec *x);
/* Whether an exec, by its id (NULL: none), runs: one that was never started does not. True
 * where the engine does not answer until then. */
bool sba_exec_runs(struct sba_engine *e, const char *id, struct sba_until until);

/* ---- files as tar (tar.c) ---- */

struct sba_path_stat {
	char name[256];
	int64_t size;
	uint32_t mode;   /* st_mode */
	int64_t mtime;   /* UNIX seconds */
	char link[4096]; /* what a symbolic link leads to in the end; "": it is none */
};

/* HEAD archive. SBA_ENOTFOUND: container or path. */
int sba_container_stat(struct sba_engine *e, const char *id, const char *path,
		       struct sba_until until, struct sba_path_stat *ret,
		       struct sba_error *err) SBA_MUST_CHECK;
/* GET archive: a tar of `path`. */
int sba_container_get(struct sba_engine *e, const char *id, const char *path,
		      struct sba_until until, struct sba_body **ret,
		      struct sba_error *err) SBA_MUST_CHECK;
/* PUT archive: unpacks the tar that `source` yields into the directory `path`;
 * never replaces a directory by a file or the reverse. */
int sba_container_put(struct sba_engine *e, const char *id, const char *path, sba_source_fn *source,
		      void *user, struct sba_until until, struct sba_error *err) SBA_MUST_CHECK;

/*
 * A body that is read ahead by a thread of its own, so that a slow reader does not
 * make the engine hold its lock: what comes is kept up to SBA_AHEAD_MAX. When
 * nothing comes for SBA_TRANSFER_STALL_MS, or nothing is taken for SBA_AHEAD_FULL_MS
 * while it is full, the connection is closed first and the reader told then.
 */
struct sba_ahead;
/* Takes the body, even on failure. */
int sba_ahead_open(struct sba_body *take_body, struct sba_until until, struct sba_ahead **ret,
		   struct sba_error *err) SBA_MUST_CHECK;
/* As sba_body_read(). */
ssize_t sba_ahead_read(struct sba_ahead *a, void *buf, size_t size, struct sba_error *err);
/* At once, also in the middle. NULL is allowed. */
void sba_ahead_close(struct sba_ahead *a);

/* ---- images (image.c) ---- */

int sba_image_inspect(struct sba_engine *e, const char *ref, struct sba_until until, json_t **ret,
		      struct sba_error *err) SBA_MUST_CHECK; /* SBA_ENOTFOUND */
/* What docker's filters let through; all if NULL. */
int sba_image_list_by(struct sba_engine *e, const json_t *filters, struct sba_until until,
		      json_t **ret, struct sba_error *err) SBA_MUST_CHECK;
/* Images whose repository is `reference` (a docker filter: "repo:*"); all if NULL. */
int sba_image_list(struct sba_engine *e, const char *reference, struct sba_until until,
		   json_t **ret, struct sba_error *err) SBA_MUST_CHECK;
/* Without force: what a container is made of stays (SBA_EENGINE, 409). */
int sba_image_remove(struct sba_engine *e, const char *ref, struct sba_until until,
		     struct sba_error *err) SBA_MUST_CHECK;
/* An image from one tar of a root file system; changes as in `docker import -c`. */
int sba_image_import(struct sba_engine *e, const char *repo, const char *tag,
		     const char *const *changes, sba_source_fn *source, void *user,
		     struct sba_until until, struct sba_error *err) SBA_MUST_CHECK;

/* One line of progress of a build or pull: the parsed object, lent. A
 * negative return breaks it off. */
typedef int sba_progress_fn(void *user, const json_t *line);

/* Success only if the engine says so in the stream (aux ID, no errorDetail);
 * `source` yields the context tar. build_args is an object of strings. */
struct sba_image_build {
	const char *tag;    /* NULL: none, for what only the cache is to have */
	const char *target; /* the stage to end with; NULL: the last one */
	const json_t *build_args;
	const json_t *labels;
	bool no_cache;
	bool pull;
};
int sba_image_build(struct sba_engine *e, const struct sba_image_build *build,
		    sba_source_fn *source, void *user, sba_progress_fn *progress,
		    void *progress_user, struct sba_until until,
		    struct sba_error *err) SBA_MUST_CHECK;
/* ref must carry a tag or digest. auth: base64url for X-Registry-Auth or NULL. */
int sba_image_pull(struct sba_engine *e, const char *ref, const char *auth,
		   sba_progress_fn *progress, void *progress_user, struct sba_until until,
		   struct sba_error *err) SBA_MUST_CHECK;
/* ---- images on their way (image_move.c) ---- */

/* ref must carry a tag. The line with an "aux" object tells the digest. */
int sba_image_push(struct sba_engine *e, const char *ref, const char *auth,
		   sba_progress_fn *progress, void *progress_user, struct sba_until until,
		   struct sba_error *err) SBA_MUST_CHECK;
/* Gives an image that is there one more name. */
int sba_image_name(struct sba_engine *e, const char *id, const char *ref, struct sba_until until,
		   struct sba_error *err) SBA_MUST_CHECK;
/* One tar of all of them, as `docker save` makes it. */
int sba_image_save(struct sba_engine *e, const char *const *refs, struct sba_until until,
		   struct sba_body **ret, struct sba_error *err) SBA_MUST_CHECK;
int sba_image_load(struct sba_engine *e, sba_source_fn *source, void *user,
		   sba_progress_fn *progress, void *progress_user, struct sba_until until,
		   struct sba_error *err) SBA_MUST_CHECK;

/* ---- volumes (volume.c) ---- */

/* Volumes with one label "k=v" that no container has: a JSON array. */
int sba_volume_unused(struct sba_engine *e, const char *label, struct sba_until until, json_t **ret,
		      struct sba_error *err) SBA_MUST_CHECK;
/* SBA_EEXIST: a container has it; one that is not there is no failure. */
int sba_volume_remove(struct sba_engine *e, const char *name, struct sba_until until,
		      struct sba_error *err) SBA_MUST_CHECK;

/* Podman only: SBA_ENOTFOUND if there is nothing at that path of the engine's machine.
 * The labels are those of a volume that is there for a moment. */
int sba_volume_look(struct sba_engine *e, const char *host_path, const json_t *labels,
		    struct sba_until until, struct sba_error *err) SBA_MUST_CHECK;

/* ---- events (events.c) ---- */

/* Past events since a UNIX time, of containers with one label "k=v", as a JSON
 * array; used to learn why something is gone. */
int sba_engine_past_events(struct sba_engine *e, const char *label, int64_t since_unix_s,
			   struct sba_until until, json_t **ret,
			   struct sba_error *err) SBA_MUST_CHECK;
/* The address of the host as containers on the default bridge see it. */
int sba_engine_bridge_address(struct sba_engine *e, struct sba_until until, char ret[64],
			      struct sba_error *err) SBA_MUST_CHECK;

/* ---- parsers, exposed to unit tests and fuzz targets (head.c, frame.c) ---- */

struct sba_http_header {
	const char *name; /* lower case */
	const char *value;
};

struct sba_http_head {
	int status;
	int minor; /* HTTP/1.minor */
	char reason[128];
	size_t n_headers;
	struct sba_http_header headers[64];
	char *text; /* owns the strings */
};

/* Parses a response head (through its blank line) if all of it is there:
 * returns its length, 0 if more bytes are needed, SBA_EPROTO if it is not one
 * or larger than SBA_HTTP_HEAD_MAX. Obsolete folding, NUL, bare CR are errors. */
ssize_t sba_http_head_parse(const char *data, size_t len, struct sba_http_head *ret,
			    struct sba_error *err) SBA_MUST_CHECK;
const char *sba_http_head_get(const struct sba_http_head *h, const char *name);
void sba_http_head_fini(struct sba_http_head *h);

/* The header by which the engine tells what a path is; NULL: there was none (tar.c). */
int sba_path_stat_parse(const char *header, struct sba_path_stat *ret,
			struct sba_error *err) SBA_MUST_CHECK;

/* Chunked transfer coding, fed in pieces. */
struct sba_chunked {
	int state;
	uint64_t left;
	size_t line_len;
	char line[32];
};
/* Consumes from data; payload and payload_len tell a span inside data (maybe
 * empty). Returns bytes consumed; *done at the end marker; SBA_EPROTO. */
ssize_t sba_chunked_feed(struct sba_chunked *c, const char *data, size_t len, const char **payload,
			 size_t *payload_len, bool *done, struct sba_error *err) SBA_MUST_CHECK;

/* The engine's stream frames: [type,0,0,0,len BE32] payload. */
struct sba_frames {
	unsigned char head[8];
	size_t head_len;
	uint32_t left; /* payload still to come */
};
/* As sba_chunked_feed(): a span of payload of stream *type, or none. */
ssize_t sba_frames_feed(struct sba_frames *f, const char *data, size_t len, int *type,
			const char **payload, size_t *payload_len,
			struct sba_error *err) SBA_MUST_CHECK;
/* True between frames: the only place where a stream may end. */
bool sba_frames_at_border(const struct sba_frames *f);

/* Where the docker CLI would find the engine (find.c). */
struct sba_endpoint {
	char host[512];
	char found_by[256];
	char api_version[16]; /* pinned by DOCKER_API_VERSION, or "" */
	bool tls;
	bool tls_verify;
	char ca[512], cert[512], key[512]; /* PEM files, or "" */
};
/* getenv_fn and home are arguments so that tests can say what is there. */
typedef const char *sba_getenv_fn(void *user, const char *name);
int sba_endpoint_find(const char *host, sba_getenv_fn *getenv_fn, void *user,
		      struct sba_endpoint *ret, struct sba_error *err) SBA_MUST_CHECK;

#endif
