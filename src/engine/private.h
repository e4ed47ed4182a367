/* SPDX-License-Identifier: MIT */
/*
 * What the files of the engine module share: transports, connections and
 * their pool, one HTTP exchange, and the splitting of JSON lines. Layers, top
 * down: container/exec/tar/image/events, request, body, wire, transport.
 */
#ifndef SBA_ENGINE_PRIVATE_H
#define SBA_ENGINE_PRIVATE_H

#include "base/limits.h"
#include "engine/engine.h"

#include <pthread.h>

/* Never leaves the module: a non-blocking call must wait first. */
enum { SBA_AGAIN = -1000 };

/* ---- addresses (address.c) ---- */

#define SBA_DEFAULT_SOCKET "/var/run/docker.sock"

struct sba_address {
	bool tcp, ssh;
	char path[108]; /* unix: absolute, fits sun_path; ssh: "" is the default there */
	char user[64];  /* ssh: "" is ssh's default */
	char host[256]; /* tcp, ssh: name or address, IPv6 without brackets */
	char port[6];   /* ssh: "" is ssh's default */
};

/* unix:///path, tcp://host[:port], ssh://[user@]host[:port][/path]; everything else
 * is told apart in the error: SBA_EINVAL, or SBA_EUNSUPPORTED for npipe://. */
int sba_address_parse(const char *host, struct sba_address *ret,
		      struct sba_error *err) SBA_MUST_CHECK;
/* The canonical form: "unix:///path", "tcp://host:2375". */
void sba_address_format(const struct sba_address *a, char *buf, size_t size);

/* ---- transports (transport.c, tls.c, ssh.c) ---- */

struct sba_transport;

/* A byte stream. No call blocks; after SBA_AGAIN the transport's read_wants or
 * write_wants tell what to poll for (TLS may want the other direction). */
struct sba_transport_ops {
	/* > 0 bytes, 0 at the orderly end, SBA_AGAIN, SBA_ELOST. */
	ssize_t (*read)(struct sba_transport *t, void *buf, size_t len, struct sba_error *err);
	/* > 0 bytes, SBA_AGAIN, SBA_ELOST. Never raises SIGPIPE. */
	ssize_t (*write)(struct sba_transport *t, const void *buf, size_t len,
			 struct sba_error *err);
	/* Tells the other side that no more will come; reading goes on. 0 or
	 * SBA_AGAIN; a failure counts as done. */
	int (*shutdown_write)(struct sba_transport *t);
	/* Closes and frees, without waiting. */
	void (*close)(struct sba_transport *t);
};

struct sba_transport {
	const struct sba_transport_ops *ops;
	int fd;
	short read_wants;
	short write_wants;
};

/* Over a connected socket, for other transports to build on. */
ssize_t sba_plain_read(struct sba_transport *t, void *buf, size_t len, struct sba_error *err);
ssize_t sba_plain_write(struct sba_transport *t, const void *buf, size_t len,
			struct sba_error *err);
int sba_plain_shutdown(struct sba_transport *t);
struct sockaddr_un;
/* `a` is for the words of an error. */
int sba_connect_unix(const struct sba_address *a, const struct sockaddr_un *to,
		     struct sba_until until, int *ret_fd, struct sba_error *err) SBA_MUST_CHECK;

/* The ssh program towards one address (ssh.c). */
struct sba_ssh;
int sba_ssh_new(const struct sba_address *a, struct sba_ssh **ret,
		struct sba_error *err) SBA_MUST_CHECK;
void sba_ssh_free(struct sba_ssh *ssh); /* NULL is allowed */
/* What ssh itself cannot do shows when the connection is read. */
int sba_ssh_connect(struct sba_ssh *ssh, struct sba_until until, struct sba_transport **ret,
		    struct sba_error *err) SBA_MUST_CHECK;
/* True after a connection failed because there is no docker program over there:
 * sba_ssh_forward() makes later ones go by a forwarded socket. */
bool sba_ssh_lacks_docker(const struct sba_ssh *ssh);
int sba_ssh_forward(struct sba_ssh *ssh, struct sba_until until,
		    struct sba_error *err) SBA_MUST_CHECK;

/* The last line of its stderr, for people; nothing if it said nothing. */
void sba_ssh_last_words(const char *text, size_t len, struct sba_buf *ret);

struct sba_tls;
/* Reads the certificates that the endpoint names. */
int sba_tls_new(const struct sba_endpoint *ep, struct sba_tls **ret,
		struct sba_error *err) SBA_MUST_CHECK;
void sba_tls_free(struct sba_tls *tls);
/* Handshake over a connected socket; takes the fd, also on failure. */
int sba_tls_connect(struct sba_tls *tls, int take_fd, const char *host, struct sba_until until,
		    struct sba_transport **ret, struct sba_error *err) SBA_MUST_CHECK;

/* Connects to a unix or TCP address; tls may be NULL. */
int sba_transport_open(const struct sba_address *a, struct sba_tls *tls, struct sba_until until,
		       struct sba_transport **ret, struct sba_error *err) SBA_MUST_CHECK;

/* ---- connections (wire.c) ---- */

/* A transport with a receive buffer. */
struct sba_wire {
	struct sba_transport *t;
	bool reused;      /* has served a request before: the engine may have closed it */
	uint64_t written; /* of the request under way */
	bool heard;       /* a byte of the answer came */
	bool whole;       /* the request went out whole */
	size_t at, len;   /* the unread bytes are room.data[at .. at + len) */
	size_t used;      /* of the room, by the last fill */
	struct sba_passage room;
};

int sba_wire_open(struct sba_engine *e, struct sba_until until, struct sba_wire **ret,
		  struct sba_error *err) SBA_MUST_CHECK;
void sba_wire_close(struct sba_wire *w); /* NULL is allowed */
/* Receives what is there: > 0 bytes added, 0 at the end, SBA_AGAIN, SBA_ELOST.
 * Moves unread bytes to the front of the buffer. */
ssize_t sba_wire_fill(struct sba_wire *w, struct sba_error *err) SBA_MUST_CHECK;
/* As fill, but waits; never SBA_AGAIN. */
ssize_t sba_wire_fill_wait(struct sba_wire *w, struct sba_until until,
			   struct sba_error *err) SBA_MUST_CHECK;
ssize_t sba_wire_write(struct sba_wire *w, const void *data, size_t len,
		       struct sba_error *err) SBA_MUST_CHECK;
void sba_wire_consume(struct sba_wire *w, size_t n);

/* An idle connection that is still alive, or NULL. */
struct sba_wire *sba_pool_take(struct sba_engine *e);
/* Keeps w for the next request, or closes it when there are enough. */
void sba_pool_put(struct sba_engine *e, struct sba_wire *w);
void sba_pool_close(struct sba_engine *e);

/* ---- the handle (open.c) ---- */

struct sba_engine {
	struct sba_endpoint endpoint;
	struct sba_address address;
	struct sba_tls *tls; /* NULL: none */
	struct sba_ssh *ssh; /* NULL: none */
	int cancel_fd;
	struct sba_timeouts timeouts; /* resolved */
	char api[16];                 /* "" until negotiated: paths carry no version */
	int podman;                   /* its major version, 0 where it is Docker */

	pthread_mutex_t lock; /* guards the idle connections */
	struct sba_wire *idle[SBA_ENGINE_IDLE_CONNECTIONS];
	size_t n_idle;

	pthread_mutex_t info_lock;        /* guards what follows; taken before lock */
	json_t *version_json, *info_json; /* what info's strings are lent from */
	struct sba_engine_info info;
};

/* `until`, cancelled by the handle's token where it names none of its own. */
struct sba_until sba_engine_limit(const struct sba_engine *e, struct sba_until until);

/* ---- one exchange (request.c, send.c) ---- */

struct sba_exchange {
	const struct sba_request *request;
	const char *content_type; /* of what source yields */
	sba_source_fn *source;    /* NULL: no streaming body */
	void *user;
	bool upgrade;      /* ask for a raw stream */
	int64_t answer_ms; /* for the answer, once all is sent; 0: as long as it may take */
};

/* A request on its way out (send.c). */
struct sba_outgoing {
	struct sba_buf head; /* request head, and the JSON body if there is one */
	size_t head_at;
	sba_source_fn *source;
	void *user;
	bool expect;       /* wait for "100 Continue" before asking the source */
	bool source_used;  /* cannot be sent again */
	bool source_ended; /* its end marker is in the piece */
	char *piece;       /* one chunk, with its size line */
	size_t piece_at, piece_len;
	bool broken; /* writing failed: only the answer is left to be read */
};

int sba_outgoing_init(struct sba_outgoing *o, const struct sba_engine *e,
		      const struct sba_exchange *x, struct sba_error *err) SBA_MUST_CHECK;
void sba_outgoing_fini(struct sba_outgoing *o);
void sba_outgoing_rewind(struct sba_outgoing *o);
bool sba_outgoing_done(const struct sba_outgoing *o);
/* Sends until all is out or a final answer has come: 1 if the answer's head is
 * in *ret already, 0 if it is still to be read. A connection that breaks
 * while writing is 0 too: the engine's answer may have come before. */
int sba_outgoing_send(struct sba_outgoing *o, struct sba_wire *w, struct sba_until until,
		      struct sba_http_head *ret, struct sba_error *err) SBA_MUST_CHECK;
/* The next final head out of what has been received: 1, or 0 if it is not all
 * there. Interim answers (1xx but 101) are dropped; *continued tells of a 100. */
int sba_wire_take_head(struct sba_wire *w, struct sba_http_head *ret, bool *continued,
		       struct sba_error *err) SBA_MUST_CHECK;

/* Runs the exchange under `until` exactly as given. Success: 2xx, 304, 101. */
int sba_engine_exchange(struct sba_engine *e, const struct sba_exchange *x, struct sba_until until,
			struct sba_body **ret, struct sba_error *err) SBA_MUST_CHECK;
/* sba_engine_call() that leaves `until` as it is: not cancelled by the handle. */
int sba_engine_call_until(struct sba_engine *e, const struct sba_request *request,
			  struct sba_until until, json_t **ret,
			  struct sba_error *err) SBA_MUST_CHECK;

/* ---- bodies (body.c) ---- */

enum sba_framing { SBA_BODY_NONE, SBA_BODY_LENGTH, SBA_BODY_CHUNKED, SBA_BODY_UNTIL_CLOSE };

struct sba_body {
	struct sba_engine *e;
	struct sba_wire *wire; /* NULL once given back or taken */
	struct sba_http_head head;
	enum sba_framing framing;
	uint64_t left; /* SBA_BODY_LENGTH */
	struct sba_chunked chunked;
	bool ended;    /* the true end has been read */
	bool reusable; /* the connection may serve again after that */
	char tried[128];
};

/* Takes the wire and the head on success. */
int sba_body_new(struct sba_engine *e, struct sba_wire *take_wire, struct sba_http_head *take_head,
		 const struct sba_exchange *x, struct sba_body **ret,
		 struct sba_error *err) SBA_MUST_CHECK;
/* Everything up to its end into b, whose ceiling fails it. */
int sba_body_read_all(struct sba_body *body, struct sba_buf *b, struct sba_until until,
		      struct sba_error *err) SBA_MUST_CHECK;
void sba_cleanup_body(struct sba_body **b);
#define SBA_BODY __attribute__((cleanup(sba_cleanup_body)))

/* ---- JSON lines (lines.c) ---- */

/* Reads the body to its end and calls fn for each line that is JSON; others
 * are skipped. A negative return of fn ends it. */
typedef int sba_line_fn(void *user, const json_t *line, struct sba_error *err);
int sba_body_lines(struct sba_body *body, sba_line_fn *fn, void *user, struct sba_until until,
		   struct sba_error *err) SBA_MUST_CHECK;

/* ---- paths ---- */

/* "&name=value", value escaped ("?" for the first one); nothing for NULL. */
void sba_query_put(struct sba_buf *b, const char *name, const char *value);
/* The same for a JSON value. */
void sba_query_put_json(struct sba_buf *b, const char *name, const json_t *value);

/* ---- images (image_move.c) ---- */

/* What answers with lines of progress. */
struct sba_image_work {
	sba_progress_fn *fn;
	void *user;
	const char *tried;
	bool built; /* an image's id was told */
};
/* Sends the request, reads all lines; failing is SBA_EIMAGE however told. */
int sba_image_run(struct sba_engine *e, const struct sba_exchange *x, struct sba_image_work *w,
		  struct sba_until until, struct sba_error *err) SBA_MUST_CHECK;
/* The name of a reference, and its tag or digest. */
int sba_image_split_ref(const char *ref, struct sba_buf *name, const char **tag,
			struct sba_error *err) SBA_MUST_CHECK;
/* Whether the engine is to be told that this registry needs no TLS. */
bool sba_image_untrusted(const struct sba_engine *e, const char *name);

#endif
