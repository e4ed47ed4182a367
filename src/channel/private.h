/* SPDX-License-Identifier: MIT */
/*
 * Inside the host's end of the channel. A channel has one I/O thread (io.c);
 * nghttp2, the link and the sockets of tunnels are that thread's alone. What
 * callers and it share is guarded by the channel's lock, which is never held
 * while anything waits.
 */
#ifndef SBA_CHANNEL_PRIVATE_H
#define SBA_CHANNEL_PRIVATE_H

#include "channel/channel.h"
#include "channel/protocol.h"
#include "base/limits.h"

#include <nghttp2/nghttp2.h>
#include <poll.h>
#include <pthread.h>

/* ---- link: the bytes of the connection (link.c) ---- */

struct sba_link;

/* None of these blocks; all but close are the I/O thread's. */
struct sba_link_ops {
	/* > 0 bytes lent until the next call; 0 at the end; SBA_ETIMEOUT: none now. */
	ssize_t (*read)(struct sba_link *l, const char **data, struct sba_error *err);
	/* How many were taken, 0 for none now. */
	ssize_t (*write)(struct sba_link *l, const void *data, size_t len, struct sba_error *err);
	/* What to wait for; `pending`: there is more to write. */
	void (*poll)(const struct sba_link *l, bool pending, struct pollfd *ret);
	/* Nothing more will be written. */
	void (*shutdown)(struct sba_link *l);
	/* The stream ended or broke before the guest's hello; text is what came
	 * instead. Returns a code with the reason. May wait a moment. */
	int (*explain)(struct sba_link *l, const char *text, struct sba_error *err);
	void (*close)(struct sba_link *l);
};

struct sba_link {
	const struct sba_link_ops *ops;
};

int sba_channel_link_exec(struct sba_engine *e, const char *container, const char *user,
			  struct sba_until until, struct sba_link **ret, struct sba_error *err);
int sba_channel_link_attach(struct sba_engine *e, const char *container, struct sba_until until,
			    struct sba_link **ret, struct sba_error *err);
/* Over a connected stream socket, taken even on failure. */
int sba_link_socket(int take_fd, struct sba_link **ret, struct sba_error *err);

/* ---- frames that only cost us time (flood.c) ---- */

/* Follows the frames of the connection from head to head. */
struct sba_flood {
	unsigned char head[9 + 4]; /* of a frame, and the start of its payload */
	size_t have;
	uint32_t left; /* of its payload, beyond what is in head */
	bool whole;    /* the head has been judged */
	int64_t since;
	unsigned count;
};
/* SBA_EPROTO when there are too many of them, a frame is too large, or one
 * that a server may not send. */
int sba_flood_feed(struct sba_flood *f, const void *data, size_t len, int64_t now_ms,
		   struct sba_error *err) SBA_MUST_CHECK;

/* ---- pieces of a command's output (pieces.c) ---- */

struct sba_pieces {
	unsigned char head[SBA_CHANNEL_PIECE_HEAD];
	size_t have;
	uint32_t left;
};
/* Consumes from data: returns how much, with *payload a span inside of it (maybe
 * empty) of stream *kind, or SBA_EPROTO. */
ssize_t sba_pieces_feed(struct sba_pieces *p, const char *data, size_t len, int *kind,
			const char **payload, size_t *payload_len,
			struct sba_error *err) SBA_MUST_CHECK;
bool sba_pieces_at_border(const struct sba_pieces *p);

/* ---- the hello (hello.c) ---- */

int sba_hello_parse(const char *text, size_t len, struct sba_channel_hello *ret,
		    struct sba_error *err) SBA_MUST_CHECK;

/* ---- streams (stream.c) ---- */

enum sba_channel_stream_kind {
	SBA_STREAM_CALLER,  /* bytes for a caller */
	SBA_STREAM_TUNNEL,  /* bytes for a socket */
	SBA_STREAM_FORWARD, /* a port inside: ids of connections */
	SBA_STREAM_NOTICES, /* what the guest tells unasked */
};

struct sba_channel_stream {
	struct sba_channel *c;
	struct sba_channel_stream *prev, *next; /* of the channel's list */
	struct sba_channel_stream *next_dirty;
	enum sba_channel_stream_kind kind;
	char path[32];
	int32_t id;       /* 0: not submitted */
	bool held;        /* a caller has it; else it goes when HTTP/2 is done with it */
	bool open;        /* HTTP/2 knows it */
	bool dirty;       /* the I/O thread has something to do for it */
	bool paused;      /* nghttp2 waits for more to send */
	bool wait_socket; /* ... until the socket is readable */

	/* what came */
	struct sba_buf in;
	size_t taken;  /* by the reader, not yet given back to the window */
	size_t window; /* as the peer was told */
	int status;    /* of the answer; 0: not yet */
	int peer_errno;
	size_t fields, field_bytes;
	bool ended;     /* nothing more will come */
	uint32_t reset; /* HTTP/2's code if it ended by force */

	/* what goes */
	struct sba_buf out;
	size_t out_at;
	bool out_end;   /* nothing after that */
	bool want_room; /* a write found it full */

	int event_fd; /* readable while signalled */
	bool signalled;
	int64_t woken_ms; /* when its caller was last told of news */

	/* tunnels */
	int fd;
	bool connecting;
	bool refused;  /* the host's port: reset the stream as soon as it is open */
	uint16_t port; /* forward: of this host; then the one inside */
	uint16_t inside_port;
	/* forward: a port or an id; notices: one of them; under way */
	unsigned char word[SBA_CHANNEL_NOTICE_SIZE];
	size_t word_len;
};

/* A stream of a caller, not yet started. SBA_ELIMIT: too many are open. */
int sba_channel_stream_new(struct sba_channel *c, enum sba_channel_stream_kind kind,
			   const char *path, struct sba_channel_stream **ret,
			   struct sba_error *err) SBA_MUST_CHECK;
/* Takes bytes into *swap, which must be empty, and gives its old room back. 1 if
 * there are some, 0 at the end, SBA_ETIMEOUT, or why there will be none. */
int sba_channel_stream_take(struct sba_channel_stream *s, struct sba_buf *swap,
			    struct sba_until until, struct sba_error *err) SBA_MUST_CHECK;
ssize_t sba_channel_stream_put(struct sba_channel_stream *s, const void *data, size_t len,
			       struct sba_error *err) SBA_MUST_CHECK;
/* All of it, waiting for room. */
int sba_channel_stream_put_all(struct sba_channel_stream *s, const void *data, size_t len,
			       struct sba_until until, struct sba_error *err) SBA_MUST_CHECK;
void sba_channel_stream_end_output(struct sba_channel_stream *s);
/* Waits for the head of the answer: 0 if it is a 200. */
int sba_channel_stream_await_answer(struct sba_channel_stream *s, struct sba_until until,
				    struct sba_error *err) SBA_MUST_CHECK;
/* Waits for the port of a forward. */
int sba_channel_stream_await_port(struct sba_channel_stream *s, struct sba_until until,
				  uint16_t *ret_port, struct sba_error *err) SBA_MUST_CHECK;
/* The caller is done with it; what is unfinished is cancelled. */
void sba_channel_stream_close(struct sba_channel_stream *s);
/* The caller leaves it to the I/O thread. */
void sba_channel_stream_release(struct sba_channel_stream *s);

/* With the lock held: */
/* As sba_channel_stream_new(), of no caller. */
int sba_channel_stream_make(struct sba_channel *c, enum sba_channel_stream_kind kind,
			    const char *path, struct sba_channel_stream **ret,
			    struct sba_error *err) SBA_MUST_CHECK;
void sba_channel_stream_mark(struct sba_channel_stream *s);   /* has work for the I/O thread */
void sba_channel_stream_signal(struct sba_channel_stream *s); /* wakes its caller */
/* The same once the link has nothing more to read, or another stream has news: a
 * caller that is woken for every piece competes with the I/O thread for the lock.
 * One whose stream moves much is woken once in a millisecond, or for many bytes. */
void sba_channel_stream_news(struct sba_channel_stream *s);
/* The I/O thread has read what there was. True: a caller is still to be woken, at the
 * next millisecond. */
bool sba_channel_stream_tell_news(struct sba_channel *c);
void sba_channel_stream_free(struct sba_channel_stream *s);

/* ---- requests for files (file.c) ---- */

struct sba_file_request {
	enum sba_channel_file_op op;
	const char *path;
	uint32_t mode;
	uint64_t size;
	const char *what; /* for errors */
};
/* Opens a stream and sends the request. */
int sba_channel_file_open(struct sba_channel *c, const struct sba_file_request *q,
			  struct sba_until until, struct sba_channel_stream **ret,
			  struct sba_error *err) SBA_MUST_CHECK;
/* The whole answer, at most what ret may hold, and closes the stream. */
int sba_file_answer(struct sba_channel_stream *take_s, const struct sba_file_request *q,
		    struct sba_until until, struct sba_buf *ret,
		    struct sba_error *err) SBA_MUST_CHECK;
/* The errno is the guest's word: an unknown one is an ordinary failure. */
int sba_file_refused(const char *what, const char *path, uint64_t e, struct sba_error *err);
struct sba_channel_stat sba_file_get_stat(const unsigned char *from);

/* ---- the channel ---- */

struct sba_channel {
	struct sba_link *link;
	nghttp2_session *h2;
	pthread_t thread;
	int wake_fd;

	pthread_mutex_t lock;
	bool started, stopping, done; /* the thread has begun, shall end, has ended */
	bool awake;                   /* wake_fd has been written */
	struct sba_error failure;     /* code != 0: it is dead */
	struct sba_channel_stream *streams, *dirty;
	struct sba_channel_stream *news; /* its caller is still to be woken for what came */
	size_t n_streams;
	size_t buffered; /* in all streams' `in` */
	size_t spare;    /* window not given to any stream */
	struct sba_channel_hello hello;
	struct sba_channel_pressure pressure;

	/* the I/O thread's */
	bool greeted; /* HTTP/2 has begun */
	bool owes_news;
	bool much; /* came at once */
	struct sba_buf preamble;
	struct sba_flood flood;
	int64_t heard, next_ping;
	int64_t stood_ms;   /* for how long this thread once did not run, if that was long */
	uint64_t ping_last; /* payload of the one that is not answered yet; 0: none */
	size_t out_at, out_len;
	struct pollfd polls[2 + SBA_CHANNEL_STREAMS_MAX];
	struct sba_channel_stream *polled[2 + SBA_CHANNEL_STREAMS_MAX];
	struct sba_passage out;
};

/* One without a thread; takes the link (NULL: none), even on failure. */
int sba_channel_make(struct sba_link *take_link, struct sba_channel **ret,
		     struct sba_error *err) SBA_MUST_CHECK;
/* The same, then the thread and the hello; as sba_channel_open(). */
int sba_channel_new(struct sba_link *take_link, struct sba_until until,
		    struct sba_channel_hello *ret_hello, struct sba_channel **ret,
		    struct sba_error *err) SBA_MUST_CHECK;
void sba_channel_wake(struct sba_channel *c); /* lock held */
/* The first reason counts. Lock held. */
void sba_channel_die(struct sba_channel *c, const struct sba_error *why);
/* Where the next frame goes. */
unsigned char *sba_channel_out_tail(struct sba_channel *c, size_t *ret_room);

/* io.c */
void *sba_channel_io(void *channel);

/* h2.c; lock held */
int sba_h2_open(struct sba_channel *c, struct sba_error *err) SBA_MUST_CHECK;
int sba_h2_receive(struct sba_channel *c, const char *data, size_t len,
		   struct sba_error *err) SBA_MUST_CHECK;
int sba_h2_send(struct sba_channel *c, struct sba_error *err) SBA_MUST_CHECK;
int sba_h2_ping(struct sba_channel *c, int64_t now_ms, struct sba_error *err) SBA_MUST_CHECK;
/* What callers left to do. */
void sba_h2_work(struct sba_channel *c);
void sba_h2_give_back(struct sba_channel_stream *s, size_t len);

/* tunnel.c; lock held */
bool sba_tunnel_poll(const struct sba_channel_stream *s, struct pollfd *ret);
void sba_tunnel_serve(struct sba_channel_stream *s, short revents); /* may free it */
void sba_tunnel_put(struct sba_channel_stream *s, const char *data, size_t len);
void sba_tunnel_cut(struct sba_channel_stream *s);
/* Bytes read into `to`, 0 for none now, -1 at the end. */
ssize_t sba_tunnel_read(struct sba_channel_stream *s, void *to, size_t size);
/* HTTP/2 is done with it, and so is the socket: what the guest sent before it
 * ended may still be on its way. */
bool sba_tunnel_over(const struct sba_channel_stream *s);
void sba_tunnel_close(struct sba_channel_stream *s);
/* notice.c. Asks for notices; their bytes, lock held. */
int sba_channel_want_notices(struct sba_channel *c, struct sba_error *err) SBA_MUST_CHECK;
void sba_notice_put(struct sba_channel_stream *s, const char *data, size_t len);

/* Ids of connections inside. */
void sba_tunnel_forward(struct sba_channel_stream *s, const char *data, size_t len);

#endif
