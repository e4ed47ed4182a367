/* SPDX-License-Identifier: MIT */
/*
 * `guest session`: the guest's end of the channel (docs/channel.md). One
 * process, one poll loop; it only moves bytes between HTTP/2 streams and the
 * descriptors of children and sockets. What a stream is for is decided in
 * session_open.c, how its bytes move in session_pump.c.
 */
#ifndef SBA_GUEST_SESSION_H
#define SBA_GUEST_SESSION_H

#include <nghttp2/nghttp2.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "channel/protocol.h"
#include "guest/pressure.h"

enum {
	SBA_SESSION_OUT_SIZE = 256 * 1024,
	SBA_SESSION_IN_SIZE = 128 * 1024,
	/* Streams that are open, and children that still end after theirs closed. */
	SBA_SESSION_SLOTS = 2 * SBA_CHANNEL_STREAMS_MAX,
	SBA_SESSION_BACKLOG = 1024,
	SBA_SESSION_WAITING = 64,           /* accepted and not yet claimed by the host */
	SBA_SESSION_WAITING_MS = 10 * 1000, /* then nobody wants the connection */
	SBA_SESSION_DRAINS = 128,           /* output that nobody reads any more */
	SBA_SESSION_WIDE = 16,              /* streams with a full window at a time */
	SBA_SESSION_END_MS = 10 * 1000,     /* for supervisors to end their trees */
	SBA_SESSION_LINGERS = -1,
	SBA_SESSION_PATH_MAX = 32,
	SBA_SESSION_FRAME_ROOM = 9 + 4 * 1024, /* less room is not worth a frame */
};

/* Frames on their way to the host. */
struct sba_session_out {
	size_t at;
	size_t len;
	uint8_t data[SBA_SESSION_OUT_SIZE];
};

/* Bytes from the host that a descriptor has not taken yet. */
struct sba_session_queue {
	uint8_t *data;
	size_t at;
	size_t len;
	size_t size;
};

enum sba_session_kind {
	SBA_KIND_NEW,    /* its request is still coming */
	SBA_KIND_CHILD,  /* a supervisor or a file child */
	SBA_KIND_SOCKET, /* a connection */
	SBA_KIND_LISTEN,
	SBA_KIND_NOTICES,
};

struct sba_session_stream {
	/* 0: closed, the slot is free once pid is 0 too; SBA_SESSION_LINGERS: closed,
	 * but its socket has not taken everything yet. */
	int32_t id;
	enum sba_session_kind kind;
	char path[SBA_SESSION_PATH_MAX];
	pid_t pid;
	int source[2]; /* what the host reads: stdout and stderr, or a socket */
	int turn;      /* the source to try first */
	int sink;      /* what the host writes to */
	bool tagged;   /* output goes in pieces */
	bool paused;   /* nghttp2 waits until a source is readable */
	bool gone;     /* the child has ended: what its pipes hold is the rest */
	bool cut;      /* nothing more will come from the host */
	bool connecting;
	bool wide;  /* has the full window */
	bool roomy; /* has a large pipe for its output */
	uint16_t port;
	bool said_port;
	struct sba_session_queue queue;
};

struct sba_session_waiting {
	uint32_t id; /* 0: free */
	int fd;
	int64_t since;
};

struct sba_session_notices {
	struct sba_session_stream *stream; /* NULL: the host does not want to know */
	struct sba_guest_pressure seen;
	uint32_t oom_kills, pids_refused; /* risen and not yet told */
	int64_t next_look;
};

struct sba_session {
	nghttp2_session *h2;
	int sigfd;
	bool greeted;       /* the host's first bytes have come */
	bool rests;         /* while sources fill */
	size_t took;        /* from sources since the last rest */
	bool failed;        /* the host broke the protocol, or memory is out */
	size_t wide, roomy; /* streams that are so */
	int64_t heard;      /* when the last byte came */
	int64_t next_ping;
	uint32_t last_connection;
	struct sba_session_notices notices;
	struct sba_session_out out;
	uint8_t in[SBA_SESSION_IN_SIZE];
	struct sba_session_stream streams[SBA_SESSION_SLOTS];
	struct sba_session_waiting waiting[SBA_SESSION_WAITING];
	int drains[SBA_SESSION_DRAINS];
	size_t n_drains;
};

/* ---- session_h2.c: nghttp2 ---- */

bool sba_session_h2_open(struct sba_session *session);
/* One read() of stdin. False at its end or when the host talks nonsense. */
bool sba_session_h2_read(struct sba_session *session);
/* What was read. */
bool sba_session_h2_feed(struct sba_session *session, const uint8_t *data, size_t len);
/* Frames what can be sent and writes what stdout takes. */
void sba_session_h2_write(struct sba_session *session);

/* ---- session_open.c: what a stream is for ---- */

void sba_session_stream_open(struct sba_session *session, struct sba_session_stream *stream);
/* A connection that was being made has been made, or not. */
void sba_session_stream_connected(struct sba_session *session, struct sba_session_stream *stream);
/* Closes and forgets the connections that the host did not claim. */
void sba_session_waiting_expire(struct sba_session *session, int64_t now);

/* ---- session_notice.c: what the host is told unasked ---- */

/* False: there is such a stream already. */
bool sba_session_notice_begin(struct sba_session *session, struct sba_session_stream *stream);
/* A stream has closed, maybe that one. */
void sba_session_notice_end(struct sba_session *session, const struct sba_session_stream *stream);
/* Looks when it is time to; returns when it will be next. */
int64_t sba_session_notice_tick(struct sba_session *session, int64_t now);
/* nghttp2's source of the data of the answer. */
ssize_t sba_session_notice_source(nghttp2_session *h2, int32_t id, uint8_t *buf, size_t length,
				  uint32_t *flags, nghttp2_data_source *source, void *user);

/* ---- session_child.c: children ---- */

/* Forks a child whose standard streams are pipes of the stream. It runs the
 * supervisor of a command, or one request for a file. 0 or an errno. */
int sba_session_child_run(struct sba_session_stream *stream);
int sba_session_child_file(struct sba_session_stream *stream);
/* Collects ended children, those of ended commands included. */
void sba_session_reap(struct sba_session *session);
/* Ends everything that was started, within SBA_SESSION_END_MS. */
void sba_session_end_all(struct sba_session *session);

/* ---- session_pump.c: bytes of one stream ---- */

/* True if there is room for one more connection that waits for the host. */
bool sba_session_pump_accepts(struct sba_session *session);
/* nghttp2's source of the data of an answer. */
ssize_t sba_session_pump_source(nghttp2_session *h2, int32_t id, uint8_t *buf, size_t length,
				uint32_t *flags, nghttp2_data_source *source, void *user);
int sba_session_pump_send(nghttp2_session *h2, nghttp2_frame *frame, const uint8_t *head,
			  size_t length, nghttp2_data_source *source, void *user);
/* Bytes from the host; what the sink does not take now waits. */
void sba_session_pump_put(struct sba_session *session, struct sba_session_stream *stream,
			  const uint8_t *data, size_t len);
/* Nothing more will come from the host. */
void sba_session_pump_cut(struct sba_session *session, struct sba_session_stream *stream);
/* The sink takes bytes again. */
void sba_session_pump_flush(struct sba_session *session, struct sba_session_stream *stream);
/* Closes what the stream has; reset: a connection ends hard. */
void sba_session_pump_close(struct sba_session *session, struct sba_session_stream *stream,
			    bool reset);
/* Where the next frame goes and how much of it fits. */
uint8_t *sba_session_out_tail(struct sba_session_out *out, size_t *ret_room);

/* ---- session_file.c: in the child ---- */

/* One request on stdin, its answer on stdout; returns the exit code. */
int sba_session_file_serve(void);

#endif
