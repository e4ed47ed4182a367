/* SPDX-License-Identifier: MIT */
/*
 * What every module stands on: errors, growing buffers, parsing of numbers
 * and units, encodings, clocks and waiting, files, JSON helpers. It knows no
 * other module.
 */
#ifndef SBA_BASE_H
#define SBA_BASE_H

#include <sandbox-agent/error.h>
#include <sandbox-agent/text.h>

#include <jansson.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/types.h>

#define SBA_PRINTF(f, a) __attribute__((format(printf, f, a)))
#define SBA_MUST_CHECK   __attribute__((warn_unused_result))
#define SBA_UNUSED       __attribute__((unused))
#define SBA_ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* ---- errors (error.c) ---- */

/* Fills err (if not NULL) and returns code. The text says what was tried, on
 * what, and why it failed. sba_fail_errno appends strerror(e) and keeps e. */
int sba_fail(struct sba_error *err, int code, const char *fmt, ...) SBA_PRINTF(3, 4);
int sba_fail_errno(struct sba_error *err, int code, int e, const char *fmt, ...) SBA_PRINTF(4, 5);
int sba_fail_nomem(struct sba_error *err);

/* Puts "…: " in front of the text that is already in err; returns rc. */
int sba_wrap(struct sba_error *err, int rc, const char *fmt, ...) SBA_PRINTF(3, 4);

/* Sets what the user can do about it; replaces an earlier hint. Returns
 * err's code, so that it can end a return statement. */
int sba_hint(struct sba_error *err, int rc, const char *fmt, ...) SBA_PRINTF(3, 4);

/* ---- cleanup on leaving scope ---- */

void sba_cleanup_free(void *p);  /* free(*(void **)p) */
void sba_cleanup_close(int *fd); /* closes when >= 0; keeps errno */
void sba_cleanup_fclose(FILE **f);
void sba_cleanup_json(json_t **j);
#define SBA_FREE   __attribute__((cleanup(sba_cleanup_free)))
#define SBA_CLOSE  __attribute__((cleanup(sba_cleanup_close)))
#define SBA_FCLOSE __attribute__((cleanup(sba_cleanup_fclose)))
#define SBA_JSON   __attribute__((cleanup(sba_cleanup_json)))
#define SBA_BUF    __attribute__((cleanup(sba_buf_fini)))

/* Takes the pointer out of a cleanup variable: *ret_x = sba_move(&x). */
#define sba_move(pp)                                                                               \
	(__extension__({                                                                           \
		__typeof__(*(pp)) moved_ = *(pp);                                                  \
		*(pp) = NULL;                                                                      \
		moved_;                                                                            \
	}))
static inline int sba_move_fd(int *fd)
{
	int f = *fd;
	*fd = -1;
	return f;
}

/* ---- bytes (buf.c) ---- */

/* A growing buffer with a ceiling given at birth. The first failure (ceiling
 * or memory) sticks: later puts do nothing, and one test at the end is enough.
 * data is NUL-terminated after len bytes whenever it is not NULL. */
struct sba_buf {
	char *data;
	size_t len;
	size_t cap;
	size_t max;
	int failed; /* 0, SBA_ENOMEM or SBA_ELIMIT */
};

#define SBA_BUF_INIT(max_)                                                                         \
	{                                                                                          \
		.max = (max_)                                                                      \
	}
void sba_buf_init(struct sba_buf *b, size_t max);
void sba_buf_fini(struct sba_buf *b);  /* frees; b may be used again */
void sba_buf_reset(struct sba_buf *b); /* empty, keeps the memory, clears failed */
void sba_buf_put(struct sba_buf *b, const void *data, size_t len);
void sba_buf_puts(struct sba_buf *b, const char *s);
void sba_buf_putc(struct sba_buf *b, char c);
void sba_buf_printf(struct sba_buf *b, const char *fmt, ...) SBA_PRINTF(2, 3);
/* Percent-encodes everything but RFC 3986 unreserved characters. */
void sba_buf_put_url(struct sba_buf *b, const char *s);
/* Invalid UTF-8 becomes U+FFFD, one per maximal bad sequence; NUL included
 * as it is. */
void sba_buf_put_utf8(struct sba_buf *b, const void *data, size_t len);
/* For a terminal: as put_utf8, and control characters (C0 but \n and \t, DEL,
 * C1) become visible escapes (\x1b); with one_line, \n and \t too. */
void sba_buf_put_visible(struct sba_buf *b, const void *data, size_t len, bool one_line);
/* Grows so that `len` more bytes fit, returns where to write them; the
 * caller adds what it wrote to b->len. What was there stays a string, also if
 * nothing comes. NULL on failure. */
char *sba_buf_reserve(struct sba_buf *b, size_t len);
void sba_buf_drop(struct sba_buf *b, size_t len); /* removes from the front */
/* 0, or b's failure told in err as "<what> …". */
int sba_buf_check(const struct sba_buf *b, const char *what, struct sba_error *err) SBA_MUST_CHECK;
/* Hands the bytes out as a string (never NULL unless failed); b is empty
 * afterwards. The caller frees. */
char *sba_buf_take(struct sba_buf *b);

/* ---- room for bytes in passing (passage.c) ---- */

/* A connection's buffer: small while little passes through it, large while much
 * does. A hundred idle connections must not cost a hundred large ones. */
struct sba_passage {
	char *data;
	size_t size; /* 0 before the first fit */
	size_t max;
	unsigned calm;
};
/* To be called now and then, with how much of it was used since: grows or shrinks
 * as that asks for. The first `used` bytes stay. Without memory it stays as it is. */
void sba_passage_fit(struct sba_passage *p, size_t used);
void sba_passage_fini(struct sba_passage *p);

/* ---- strings, numbers, units (str.c) ---- */

/* Length of the valid UTF-8 sequence at s (1..4), 0 if invalid or cut. */
size_t sba_utf8_seq(const unsigned char *s, size_t len);
/* Strict: the whole string is one decimal number within [min, max]. */
int sba_parse_int(const char *s, int64_t min, int64_t max, int64_t *ret) SBA_MUST_CHECK;
/* Digits, maybe '.' and digits, whatever the locale is. Where it ends; NULL: there
 * is no such number. */
const char *sba_parse_decimal(const char *s, double *ret) SBA_MUST_CHECK;
bool sba_starts_with(const char *s, const char *prefix);
/* 1 to max ASCII letters, digits and characters of `others`, '-' never first, where
 * it would be taken for an option. NULL is none. */
bool sba_is_word(const char *s, const char *others, size_t max);
bool sba_ends_with(const char *s, const char *suffix);
/* Whether "HOST[:PORT][/…]" is this machine's loopback: docker needs no TLS of a registry
 * there without being told, because nothing leaves the machine. */
bool sba_is_this_machine(const char *host);

/* A NULL-terminated vector of strings that owns its members. */
struct sba_strv {
	char **v; /* NULL while empty */
	size_t n;
};
int sba_strv_add(struct sba_strv *v, const char *s, struct sba_error *err) SBA_MUST_CHECK;
int sba_strv_addf(struct sba_strv *v, struct sba_error *err, const char *fmt, ...)
	SBA_PRINTF(3, 4) SBA_MUST_CHECK;
void sba_strv_fini(struct sba_strv *v);
#define SBA_STRV __attribute__((cleanup(sba_strv_fini)))

/* ---- encodings, hashes, random (codec.c) ---- */

/* Numbers of 1 to 8 bytes in network order, as every protocol here has them. Returns
 * what is behind it. */
unsigned char *sba_be_put(unsigned char *to, uint64_t n, size_t len);
uint64_t sba_be_get(const unsigned char *from, size_t len);
bool sba_is_zero(const void *data, size_t len); /* len > 0 */

enum { SBA_SHA256_SIZE = 32, SBA_SHA256_HEX = 65, SBA_GIT_NAME = 41 };
void sba_base64_put(struct sba_buf *b, const void *data, size_t len, bool url_alphabet);
/* Strict: padding required, nothing else than the alphabet. */
int sba_base64_decode(const char *s, size_t len, bool url_alphabet,
		      struct sba_buf *ret) SBA_MUST_CHECK;
int sba_sha256_hex(const void *data, size_t len, char ret[SBA_SHA256_HEX]) SBA_MUST_CHECK;
int sba_sha256(const void *data, size_t len, unsigned char ret[SBA_SHA256_SIZE]) SBA_MUST_CHECK;
/* Of all that is left in it; -1 and errno. */
int sba_sha256_file(int fd, unsigned char ret[SBA_SHA256_SIZE]) SBA_MUST_CHECK;
/* What git calls a file of that content: 40 hex digits. */
int sba_git_blob_name(const void *data, size_t len, char ret[SBA_GIT_NAME]) SBA_MUST_CHECK;
/* 2 * len lower-case hex digits and a NUL. */
void sba_hex(char *ret, const unsigned char *data, size_t len);
int sba_random(void *ret, size_t len, struct sba_error *err) SBA_MUST_CHECK;
/* 2*bytes lower-case hex digits and a NUL into ret. */
int sba_random_hex(char *ret, size_t bytes, struct sba_error *err) SBA_MUST_CHECK;
/* A random UUID, version 4. */
int sba_random_uuid(char ret[37], struct sba_error *err) SBA_MUST_CHECK;

/* ---- secrets in what others say (redact.c) ---- */

/* Knows a secret as it is, as JSON escapes it (\u0041, \/, and that again inside
 * of strings), percent-encoded, in any mixture of these; and in base64 of either
 * alphabet that is not folded. One shorter than 8 bytes, or NULL, is none. */
struct sba_redact;
int sba_redact_new(const char *secret, struct sba_redact **ret,
		   struct sba_error *err) SBA_MUST_CHECK;
void sba_redact_free(struct sba_redact *r); /* wipes it; NULL is allowed */
size_t sba_redact_len(const struct sba_redact *r);

struct sba_redact_scan {
	bool last;    /* in: nothing comes behind data */
	bool starred; /* out, kept if set: something was */
	bool split;   /* ... the value of a JSON string ends as a secret begins */
};
/* Stars it out of data in place. Returns how many bytes may pass on; the rest may
 * be the beginning of one and must be given again, in front of what follows. */
size_t sba_redact(const struct sba_redact *r, char *data, size_t len, struct sba_redact_scan *scan);

/* ---- time, waiting (clock.c) ---- */

int64_t sba_now_ms(void);  /* CLOCK_MONOTONIC */
int64_t sba_unix_ms(void); /* CLOCK_REALTIME */
/* A time in nanoseconds, or the nearest that there is: a file may have any. */
int64_t sba_time_ns(int64_t seconds, int64_t ns);

/* How long something may take: an absolute CLOCK_MONOTONIC deadline and a
 * descriptor that becomes readable when the caller wants to stop. Passed down
 * by value through everything that waits. */
struct sba_until {
	int64_t deadline_ms; /* SBA_NEVER: no deadline */
	int cancel_fd;       /* -1: cannot be cancelled */
};
#define SBA_NEVER INT64_MAX
struct sba_until sba_until_in(int64_t ms);                         /* from now, not cancellable */
struct sba_until sba_until_sooner(struct sba_until u, int64_t ms); /* u, but at most ms from now */
int sba_until_left(struct sba_until u); /* for poll(): ms, 0 when over, -1 never */
/* Waits until fd has one of `events`, the deadline passes or cancel fires.
 * Returns revents (> 0), SBA_ETIMEOUT, SBA_ECANCELED or SBA_EIO. fd may be
 * -1 to wait for deadline or cancel alone. */
int sba_wait_fd(int fd, short events, struct sba_until until, struct sba_error *err) SBA_MUST_CHECK;
/* True once cancelled or past its deadline; says which in err. */
int sba_until_check(struct sba_until until, struct sba_error *err) SBA_MUST_CHECK;

/* Makes an eventfd readable. Async-signal-safe; keeps errno. */
void sba_event_fire(int event_fd);

/* ---- threads (thread.c) ---- */

/* A joinable thread that takes none of the program's signals. */
int sba_thread_start(pthread_t *ret, void *(*run)(void *), void *arg,
		     struct sba_error *err) SBA_MUST_CHECK;

/* ---- libraries that are loaded when they are needed (library.c) ---- */

struct sba_library {
	const char *file;   /* as "libx.so.1" */
	const char *remedy; /* what to do where it is not there */
	const struct sba_library_function {
		const char *name;
		size_t at; /* of its pointer in the table */
	} * functions;
	size_t n;
};
/* Fills the table `ret` with pointers to the functions, each where it says. It stays
 * loaded. SBA_EUNSUPPORTED: it is not there, or has not all of them. */
int sba_library_load(const struct sba_library *l, void *ret, struct sba_error *err) SBA_MUST_CHECK;

/* ---- programs of this host (child.c) ---- */

enum { SBA_SPAWN_NULL = -1, SBA_SPAWN_OURS = -2 };
struct sba_spawn {
	const char *const *argv; /* NULL-ended; argv[0] is looked up in PATH */
	char *const *env;        /* NULL: ours */
	int in, out, err;        /* descriptors, lent; or /dev/null, or ours as it is */
	const int *blocked;      /* signals that it does not get, ended by 0; NULL: none */
	bool new_session;        /* without our terminal */
};
/* Starts it with every signal at its default. 0 or an errno. */
int sba_child_spawn(const struct sba_spawn *s, pid_t *ret) SBA_MUST_CHECK;
/* KILL, and waits for its end. */
void sba_child_kill(pid_t pid);
/* Waits for a child of ours; *ret_status is as waitpid() tells it. SBA_EIO: it is
 * nobody's to wait for, as where the program ignores SIGCHLD. */
int sba_child_wait(pid_t pid, struct sba_until until, int *ret_status,
		   struct sba_error *err) SBA_MUST_CHECK;
/* Runs one (argv NULL-ended; argv[0] is looked up in PATH, no shell takes part) with
 * `input` as its stdin, NULL: an empty one, and all of its stdout in `output`, whose
 * ceiling fails it; stderr goes where ours goes. SBA_ENOTFOUND: it cannot
 * be run. On failure it is ended. */
int sba_child_run(const char *const *argv, const char *input, struct sba_until until,
		  struct sba_buf *output, int *ret_status, struct sba_error *err) SBA_MUST_CHECK;

/* ---- addresses of names (lookup.c) ---- */

enum { SBA_ADDRESSES_MAX = 16 }; /* of one name; more are not tried */
struct sba_addresses {
	struct sockaddr_storage v[SBA_ADDRESSES_MAX];
	size_t n;
};
/* May block for long and cannot be stopped, as getaddrinfo(). */
typedef int sba_resolve_fn(void *user, const char *host, uint16_t port, struct sba_addresses *ret,
			   struct sba_error *err);
sba_resolve_fn sba_resolve; /* the system's */

/* SBA_ENOTFOUND: no such name. What hangs in the system's resolver is left to a
 * thread of its own that ends by itself. */
int sba_lookup(const char *host, uint16_t port, struct sba_until until, struct sba_addresses *ret,
	       struct sba_error *err) SBA_MUST_CHECK;

/* The same in steps; `user` outlives the thread. */
struct sba_lookup;
int sba_lookup_start(sba_resolve_fn *resolve, void *user, const char *host, uint16_t port,
		     struct sba_lookup **ret, struct sba_error *err) SBA_MUST_CHECK;
int sba_lookup_wait(struct sba_lookup *l, struct sba_until until, struct sba_addresses *ret,
		    struct sba_error *err) SBA_MUST_CHECK;
/* Waits for its thread until then, and leaves it to itself after that. NULL is
 * allowed. */
void sba_lookup_end(struct sba_lookup *l, struct sba_until until);

/* ---- files (file.c) ---- */

/* Reads a whole file of at most max bytes. */
int sba_read_file(const char *path, size_t max, struct sba_buf *ret,
		  struct sba_error *err) SBA_MUST_CHECK;
/* A file without a name, in /var/tmp or else /tmp. */
int sba_open_unnamed(int *ret_fd, struct sba_error *err) SBA_MUST_CHECK;
int sba_write_all(int fd, const void *data, size_t len, struct sba_error *err) SBA_MUST_CHECK;
int sba_set_nonblock(int fd, bool on);
/* A pipe of which our end does not block, whichever it is. */
int sba_pipe_open(int *ret_ours, int *ret_theirs, bool we_write,
		  struct sba_error *err) SBA_MUST_CHECK;

/* ---- JSON (json.c) ---- */

/* json_loadb() that fails where memory ran out, with errno ENOMEM; ret_where may
 * be NULL. */
json_t *sba_json_load(const char *text, size_t len, size_t flags, json_error_t *ret_where);
/* Parses one document; duplicate keys, trailing text and invalid UTF-8 are
 * errors. `what` names it in the error. */
int sba_json_parse(const char *text, size_t len, const char *what, json_t **ret,
		   struct sba_error *err) SBA_MUST_CHECK;
/* Follows "a.b.c" through objects ("#0" indexes an array: "a.#0.b"). NULL if
 * any step is missing. Lent. */
json_t *sba_json_get(const json_t *j, const char *path);
const char *sba_json_str(const json_t *j, const char *path); /* NULL if no string */
int64_t sba_json_int(const json_t *j, const char *path, int64_t otherwise);
bool sba_json_bool(const json_t *j, const char *path, bool otherwise);
/* A JSON string of bytes that need not be UTF-8 (put_utf8 rules). */
json_t *sba_json_text(const void *data, size_t len);
/* Compact dump; the caller frees. NULL when out of memory. */
char *sba_json_dump(const json_t *j);

/* ---- debug hook (log.c) ---- */

/* The library logs nothing by itself; a program may look on. */
typedef void sba_log_fn(void *user, const char *module, const char *text);
void sba_log_set(sba_log_fn *fn, void *user);
void sba_log(const char *module, const char *fmt, ...) SBA_PRINTF(2, 3);

#endif
