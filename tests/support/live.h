/* SPDX-License-Identifier: MIT */
/*
 * What tests on a real engine share: a handle, this run's own prefix, an
 * image, sandboxes and commands in them, and a sweep that happens even when
 * the test program dies. One fixture per program.
 */
#ifndef SBA_TEST_LIVE_H
#define SBA_TEST_LIVE_H

#include <sandbox-agent/sandbox-agent.h>

#include <stdlib.h>

#include "base/base.h"
#include "engine/engine.h"
#include "sandbox/sandbox.h"

struct live {
	struct sba_engine *engine;
	char prefix[24]; /* "sbatest-1a2b3c4d": in the name of everything this run makes */
	char image[256]; /* a small Debian */
	char dir[48];    /* a temporary folder */
	int lifeline;    /* its end tells the janitor that we are gone */
};
extern struct live live;

/* Group setup and teardown; the setup of each test, which limits its time. */
int live_begin(void **state);
int live_end(void **state);
int live_test_begin(void **state);
/* Its teardown: no container may be left; what is left is removed, so that it
 * harms no other test. */
int live_test_end(void **state);
#define LIVE_TEST(f) cmocka_unit_test_setup_teardown(f, live_test_begin, live_test_end)
/* For tests that share a sandbox. */
#define LIVE_STEP(f) cmocka_unit_test_setup(f, live_test_begin)

/* For main(); LIVE_ONLY=NAME in the environment runs that test alone. */
#define live_run(tests, begin, end)                                                                \
	(cmocka_set_test_filter(getenv("LIVE_ONLY")), cmocka_run_group_tests(tests, begin, end))

/* The last test of each group: containers, images, volumes and networks of
 * this run's prefix are all gone. */
void live_nothing_is_left(void **state);

/* ---- waiting ---- */

typedef bool live_condition(void *user);
/* Looks every 20 ms until it holds; fails the test after so long. */
void live_await_(live_condition *holds, void *user, int64_t ms, const char *what, const char *file,
		 int line);
#define live_await(holds, user, ms) live_await_(holds, user, ms, #holds, __FILE__, __LINE__)

/* ---- sandboxes ---- */

/* Prefix, image and a keepalive of a minute are filled in where missing. */
struct sba_sandbox *live_sandbox(struct sba_sandbox_options o);
/* Removes and closes. */
void live_remove(struct sba_sandbox *s);
/* All containers with our prefix in their labels: JSON array; the caller frees. */
json_t *live_containers(void);
size_t live_container_count(void);
/* Waits until no container of the prefix is left. */
void live_await_no_containers(int64_t ms);
json_t *live_inspect(const char *container);
/* A container of the engine ended or removed behind our back. */
void live_kill_container(const char *container);
void live_remove_container(const char *container);
/* The sidecar's id of a sandbox. */
void live_sidecar_of(struct sba_sandbox *s, char ret[SBA_ID_MAX]);
/* Whether a command line in the container holds this text: asks the engine, so
 * that it does not count as use. */
bool live_runs_inside(const char *container, const char *text);
void live_await_inside(const char *container, const char *text, bool there, int64_t ms);

/* ---- commands ---- */

struct live_result {
	int rc; /* of the library; 0 if `exit` is valid */
	struct sba_error err;
	struct sba_exit exit;
	struct sba_buf out, errout;
};
void live_result_fini(struct live_result *r);
#define LIVE_RESULT __attribute__((cleanup(live_result_fini))) struct live_result

/* Runs to the end, keeping all output. */
void live_exec(struct sba_sandbox *s, const struct sba_exec_options *o, struct live_result *r);
/* sh -c SCRIPT. */
void live_sh(struct sba_sandbox *s, const char *script, struct live_result *r);
/* The same; fails the test unless it exits 0; its stdout, which the caller frees. */
char *live_sh_out(struct sba_sandbox *s, const char *script);
/* It ended with that status and printed that; NULL: anything. */
void live_assert_exit(const struct live_result *r, int status);

/* ---- files here ---- */

/* dir/name, in one of a few static buffers. */
const char *live_path(const char *name);
void live_write_file(const char *path, const void *data, size_t len, mode_t mode);
/* Whole content; the caller frees. NULL if it is not there. */
char *live_read_file(const char *path, size_t *ret_len);

/* ---- an image with a claude of ours (live_image.c) ---- */

/* FROM the test image plus these lines, with one file in the context; ref is
 * "PREFIX-NAME:1" and goes with the sweep. */
const char *live_image(const char *name, const char *lines, const char *file, const char *content);
/* Has a `claude` that does what the prompt says; see live_image.c. */
const char *live_fake_image(void);

/* ---- the program (live_child.c) ---- */

struct live_start {
	const char *program;     /* another one than ours; looked up in PATH; NULL: ours */
	const char *const *argv; /* after the program's name, NULL-ended */
	const char *input;       /* for stdin; NULL: /dev/null */
	size_t input_len;        /* 0: strlen */
	bool open_stdin;         /* stdin is a pipe in which nothing ever comes */
	const char *const *env;  /* "K=V" on top of ours; "K": not set */
	uid_t uid;               /* 0: as we are */
	const char *stdout_to;   /* a file that its stdout goes to; NULL: to us */
	bool close_stdout;       /* nobody reads its stdout */
	bool terminal;           /* its stdout and stderr are one */
	bool screen;             /* the same, and stdin too: its controlling terminal, which stays
				  * open in screen_fd; 24 x 80 */
};
struct live_child {
	pid_t pid;
	int in, out_fd, err_fd;
	int held_in;   /* open_stdin: its other end */
	int screen_fd; /* -1: none */
	const char *input;
	size_t input_left;
	int status; /* exit status, 128+n if a signal ended it; valid after _end() */
	int64_t began_ms, took_ms;
	struct sba_buf out, err;
};
void live_start(struct live_child *c, const struct live_start *o);
/* Where ours is, for a shell that starts it. */
void live_program_path(char *ret, size_t size);
/* Reads until stdout or stderr holds the text; fails the test if it ends before. */
void live_child_await(struct live_child *c, const char *text, int64_t ms);
/* Reads to the end and waits for it; fails the test after so long. */
void live_child_end(struct live_child *c, int64_t ms);
/* Reads to the end of its output, at most so long; the most anonymous memory it had. */
size_t live_child_watch_memory(struct live_child *c, int64_t ms);
void live_child_fini(struct live_child *c);
#define LIVE_CHILD __attribute__((cleanup(live_child_fini))) struct live_child

/* Start and end in one. */
void live_program(struct live_child *c, const char *const *argv);
#define RUN(c, ...) live_program(c, (const char *const[]){ __VA_ARGS__, NULL })
/* Exit status, and the words that stderr holds; both are printed if not so. */
void live_assert_says_(struct live_child *c, int status, const char *words, const char *file,
		       int line);
#define live_assert_says(c, status, words) live_assert_says_(c, status, words, __FILE__, __LINE__)
/* stdout as JSON lines, the first with "v":1: an array; the caller frees. */
json_t *live_json_lines(const struct live_child *c);
/* The last line of them whose "type" or "kind" is this, lent; fails if none. */
json_t *live_json_line(json_t *lines, const char *type);

/* ---- an engine that can go away (live_proxy.c) ---- */

struct live_proxy;
struct live_proxy *live_proxy_start(void);
const char *live_proxy_host(const struct live_proxy *p); /* "unix:///…" */
void live_proxy_cut(struct live_proxy *p);               /* every connection, and no new one */
void live_proxy_stop(struct live_proxy *p);

#endif
