/* SPDX-License-Identifier: MIT */
/* Commands of the fake services: processes of this host, and their streams as recorded. */
#include "support/fake_remote.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct stream {
	struct fake_remote *fake;
	struct fake_run *run;
	bool connect;
	enum fake_kernel_kind kernel;
	int ping_s;
	struct sba_buf out;      /* said and not yet sent */
	struct sba_buf lines[2]; /* execd: begun */
	bool over;               /* its last word was said */
};

/* ---- what is said ---- */

static void say(struct stream *s, json_t *take_j)
{
	char *text = json_dumps(take_j, JSON_COMPACT | JSON_ENSURE_ASCII);
	unsigned char head[5] = { 0 };
	s->over = s->over || !text;
	if (!text)
		return;
	if (s->connect) {
		sba_be_put(head + 1, strlen(text), 4);
		sba_buf_put(&s->out, head, sizeof(head));
	}
	sba_buf_puts(&s->out, text);
	if (!s->connect)
		sba_buf_puts(&s->out, "\n\n");
	free(text);
	json_decref(take_j);
}

static void say_line(struct stream *s, int which)
{
	struct sba_buf *l = &s->lines[which];
	say(s, json_pack("{s:s, s:o, s:I}", "type", which ? "stderr" : "stdout", "text",
			 sba_json_text(l->data ? l->data : "", l->len), "timestamp",
			 (json_int_t)sba_unix_ms()));
	sba_buf_reset(l);
}

/* execd: a line at a time, without its end. */
static void say_text(struct stream *s, int which, const char *data, size_t len)
{
	while (len > 0) {
		const char *end = memchr(data, '\n', len);
		size_t n = end ? (size_t)(end - data) : len;
		sba_buf_put(&s->lines[which], data, n);
		if (end)
			say_line(s, which);
		n += end != NULL;
		data += n;
		len -= n;
	}
}

static void say_bytes(struct stream *s, int which, const char *data, size_t len)
{
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(1 << 20);
	if (s->kernel) {
		if (which == 0)
			sba_buf_put(&s->out, data, len);
		return;
	}
	if (!s->connect) {
		say_text(s, which, data, len);
		return;
	}
	sba_base64_put(&b, data, len, false);
	say(s, json_pack("{s:{s:{s:s}}}", "event", "data", which ? "stderr" : "stdout", b.data));
}

static void say_end_connect(struct stream *s, int status)
{
	char words[64];
	bool exited = WIFEXITED(status);
	static const unsigned char end[] = { 2, 0, 0, 0, 2, '{', '}' };
	if (exited)
		snprintf(words, sizeof(words), "exit status %d", WEXITSTATUS(status));
	else
		snprintf(words, sizeof(words), "signal: %s",
			 WTERMSIG(status) == SIGKILL  ? "killed"
			 : WTERMSIG(status) == SIGINT ? "interrupt"
						      : "terminated");
	json_t *e = json_pack("{s:b, s:s}", "exited", exited, "status", words);
	if (!exited || WEXITSTATUS(status) != 0) {
		json_object_set_new(e, "exitCode", json_integer(exited ? WEXITSTATUS(status) : -1));
		json_object_set_new(e, "error", json_string(words));
	}
	say(s, json_pack("{s:{s:o}}", "event", "end", e));
	sba_buf_put(&s->out, end, sizeof(end));
}

static void say_end_execd(struct stream *s, int status)
{
	char value[16], words[64];
	for (int i = 0; i < 2; i++) {
		if (s->lines[i].len)
			say_line(s, i);
	}
	bool exited = WIFEXITED(status);
	snprintf(value, sizeof(value), "%d", exited ? WEXITSTATUS(status) : -1);
	snprintf(words, sizeof(words), "%s%s", exited ? "exit status " : "signal: killed",
		 exited ? value : "");
	if (exited && WEXITSTATUS(status) == 0)
		say(s, json_pack("{s:s, s:i, s:I}", "type", "execution_complete", "execution_time",
				 2, "timestamp", (json_int_t)sba_unix_ms()));
	else
		say(s, json_pack("{s:s, s:I, s:{s:s, s:s, s:[s]}}", "type", "error", "timestamp",
				 (json_int_t)sba_unix_ms(), "error", "ename", "CommandExecError",
				 "evalue", value, "traceback", words));
}

/* ---- its course ---- */

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void take(struct stream *s, int which)
{
	int *fd = which ? &s->run->err : &s->run->out;
	char piece[16384];
	ssize_t n = read(*fd, piece, sizeof(piece));
	if (n > 0)
		say_bytes(s, which, piece, (size_t)n);
	else if (n == 0 || errno != EAGAIN)
		close_fd(fd);
}

/* Both streams first, then its end: as Go's programs wait. False: the sandbox took it along. */
static bool end_of(struct stream *s)
{
	int status = 0;
	waitpid(s->run->pid, &status, 0);
	pthread_mutex_lock(&s->fake->lock);
	s->run->ended = true;
	s->over = s->run->gone;
	close_fd(&s->run->in);
	pthread_mutex_unlock(&s->fake->lock);
	if (s->over)
		return false;
	if (s->connect)
		say_end_connect(s, status);
	else if (!s->kernel)
		say_end_execd(s, status);
	s->over = true;
	return true;
}

static void ping(struct stream *s)
{
	if (s->kernel == FAKE_KERNEL_E2B) {
		sba_buf_puts(&s->out, "{\"type\": \"keepalive\"}\n");
		return;
	}
	say(s, s->connect ? json_pack("{s:{s:{}}}", "event", "keepalive")
			  : json_pack("{s:s, s:s, s:I}", "type", "ping", "text", "pong",
				      "timestamp", (json_int_t)sba_unix_ms()));
}

static ssize_t stream_read(void *user, char *buf, size_t size, int stop_fd)
{
	struct stream *s = user;
	while (s->out.len == 0 && !s->over) {
		struct pollfd p[] = { { s->run->out, POLLIN, 0 },
				      { s->run->err, POLLIN, 0 },
				      { stop_fd, POLLIN, 0 } };
		if (s->run->out < 0 && s->run->err < 0) {
			if (!end_of(s))
				return -1;
			continue;
		}
		int n = poll(p, 3, s->ping_s * 1000);
		if (p[2].revents)
			return -1;
		if (n == 0)
			ping(s);
		for (int i = 0; i < 2; i++) {
			if (p[i].revents)
				take(s, i);
		}
	}
	size_t n = s->out.len < size ? s->out.len : size;
	memcpy(buf, s->out.data ? s->out.data : "", n);
	sba_buf_drop(&s->out, n);
	return (ssize_t)n;
}

/* What runs goes on although nobody listens any more. */
static void stream_free(void *user)
{
	struct stream *s = user;
	pthread_mutex_lock(&s->fake->lock);
	if (s->kernel == FAKE_KERNEL_E2B && !s->run->ended)
		kill(-s->run->pid, SIGINT);
	s->run->left = !s->run->ended;
	s->run->used = s->run->left;
	pthread_mutex_unlock(&s->fake->lock);
	sba_buf_fini(&s->out);
	for (int i = 0; i < 2; i++)
		sba_buf_fini(&s->lines[i]);
	free(s);
}

/* ---- beginning ---- */

/* One that nobody listens to may have ended since. */
static void bury(struct fake_run *r)
{
	if (!r->used || !r->left || waitpid(r->pid, NULL, WNOHANG) <= 0)
		return;
	close_fd(&r->in);
	close_fd(&r->out);
	close_fd(&r->err);
	r->used = false;
}

static struct fake_run *new_run(struct fake_remote *f, const struct fake_remote_words *w)
{
	struct fake_run *run = NULL;
	pthread_mutex_lock(&f->lock);
	for (size_t i = 0; i < FAKE_RUNS && !run; i++) {
		bury(&f->runs[i]);
		if (!f->runs[i].used)
			run = &f->runs[i];
	}
	if (run) {
		*run = (struct fake_run){ .used = true, .in = -1, .out = -1, .err = -1 };
		snprintf(run->tag, sizeof(run->tag), "%s", w->tag ? w->tag : "");
		snprintf(run->sandbox, sizeof(run->sandbox), "%s", w->sandbox);
	}
	pthread_mutex_unlock(&f->lock);
	return run;
}

static bool spawn(struct fake_run *run, const struct fake_remote_words *w)
{
	int p[3][2];
	for (int i = 0; i < 3; i++) {
		if (pipe2(p[i], O_CLOEXEC) < 0)
			return false;
	}
	const struct sba_spawn s = { .argv = w->argv,
				     .env = w->env,
				     .in = w->stdin_open ? p[0][0] : SBA_SPAWN_NULL,
				     .out = p[1][1],
				     .err = p[2][1],
				     .new_session = true };
	int e = sba_child_spawn(&s, &run->pid);
	close(p[0][0]);
	close(p[1][1]);
	close(p[2][1]);
	run->in = p[0][1];
	run->out = p[1][0];
	run->err = p[2][0];
	if (!w->stdin_open)
		close_fd(&run->in);
	sba_set_nonblock(run->out, true);
	sba_set_nonblock(run->err, true);
	return e == 0;
}

void fake_remote_run(struct fake_remote *f, const struct fake_remote_words *w,
		     struct sba_http_answer *a)
{
	struct fake_run *run = new_run(f, w);
	struct stream *s = calloc(1, sizeof(*s));
	if (!run || !s || !w->argv[0] || !w->env || !spawn(run, w)) {
		free(s);
		fake_remote_json(a, 500,
				 json_pack("{s:s, s:s}", "code", "RUNTIME_ERROR", "message",
					   "cannot start it"));
		return;
	}
	*s = (struct stream){ .fake = f,
			      .run = run,
			      .connect = w->connect,
			      .kernel = w->kernel,
			      .ping_s = w->ping_s };
	sba_buf_init(&s->out, 64 << 20);
	for (int i = 0; i < 2; i++)
		sba_buf_init(&s->lines[i], 16 << 20);
	if (w->connect)
		say(s, json_pack("{s:{s:{s:i}}}", "event", "start", "pid", (int)run->pid));
	else if (w->kernel != FAKE_KERNEL_E2B)
		say(s, json_pack("{s:s, s:s, s:I}", "type", "init", "text",
				 w->tag ? w->tag : "958696cccbcf4798a84d3336aac2d5d5", "timestamp",
				 (json_int_t)sba_unix_ms()));
	/* As it was measured: E2B's answer says no type at all. */
	a->content_type = w->kernel == FAKE_KERNEL_E2B ? NULL
			  : w->connect                 ? "application/connect+json"
						       : "text/event-stream";
	a->stream = stream_read;
	a->stream_free = stream_free;
	a->stream_user = s;
}

struct fake_run *fake_remote_find(struct fake_remote *f, const char *tag)
{
	for (size_t i = 0; i < FAKE_RUNS; i++) {
		struct fake_run *r = &f->runs[i];
		if (r->used && !r->ended && *r->tag && !strcmp(r->tag, tag))
			return r;
	}
	return NULL;
}

/* ---- the end of all ---- */

static void kill_marked(const char *sandbox)
{
	char script[256];
	snprintf(
		script, sizeof(script),
		"for i in 1 2 3; do for p in $(grep -lsF FAKE_SANDBOX=%s /proc/[0-9]*/environ); do "
		"p=${p#/proc/}; kill -9 ${p%%/environ} 2>/dev/null; done; done",
		sandbox);
	const char *const argv[] = { "sh", "-c", script, NULL };
	SBA_BUF struct sba_buf out = SBA_BUF_INIT(1000);
	int status;
	(void)!sba_child_run(argv, NULL, sba_until_in(20000), &out, &status, NULL);
}

void fake_remote_end(struct fake_remote *f, const char *sandbox)
{
	bool any = false;
	pthread_mutex_lock(&f->lock);
	for (size_t i = 0; i < FAKE_RUNS; i++) {
		struct fake_run *r = &f->runs[i];
		r->gone = r->gone || (r->used && !strcmp(r->sandbox, sandbox));
		any = any || (r->used && r->gone);
	}
	pthread_mutex_unlock(&f->lock);
	if (any)
		kill_marked(sandbox);
}
