/* SPDX-License-Identifier: MIT */
/* `exec`: a command inside, with our streams and our terminal. */
#include "cli.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The library looks after the sandbox's life whenever it is asked for output;
 * so it is asked now and then. */
enum { INPUT_BYTES = 65536, LOOK_MS = 1000 };

#define FIELD(name) offsetof(struct cli_exec, name)

static const struct cli_option exec_options[] = {
	{ "interactive", 'i', CLI_FLAG, NULL, "stdin goes to the command", FIELD(interactive), 0 },
	{ "tty", 't', CLI_FLAG, NULL, "a terminal", FIELD(tty), 0 },
	{ "detach", 'd', CLI_FLAG, NULL, "lets it run on", FIELD(detach), 0 },
	{ "env", 'e', CLI_LIST, "K=V", "a variable; K alone passes ours on", FIELD(env), 0 },
	{ "env-file", 0, CLI_LIST, "FILE", "variables, one a line", FIELD(env_file), 0 },
	{ "workdir", 'w', CLI_STRING, "DIR", "where it runs (default: the image's)", FIELD(workdir),
	  0 },
	{ "user", 'u', CLI_STRING, "USER", "who it runs as (default: the sandbox's)", FIELD(user),
	  0 },
	{ "signal-others", 0, CLI_FLAG, NULL, "may signal what other commands started",
	  FIELD(signal_others), 0 },
	CLI_CONTAINER_OPTION(FIELD(container)),
	{ "timeout", 0, CLI_DURATION, "TIME", "then it is ended (60s; with -t or -d none; 0: none)",
	  FIELD(timeout), 0 },
	{ "max-output", 0, CLI_SIZE, "SIZE", "shows so much of it, drops the rest (all)",
	  FIELD(max_output), 1 },
	{ 0 },
};

/* A command under way, and what of our stdin it has not taken yet. */
struct session {
	struct cli *cli;
	struct sba_sandbox *box;
	struct sba_process *process;
	const char *kind; /* "sandbox", "container" */
	const char *name, *command, *user, *workdir;
	int64_t timeout_ms, max_output;
	bool stdin_open, cut;
	char input[INPUT_BYTES];
	size_t input_at, input_len;
	int winch;
	struct cli_sink sink;
};

/* ---- output ---- */

/* True, once: from here on output is dropped. */
static bool cut_short(struct session *s)
{
	if (s->cut || sba_process_dropped(s->process) == 0)
		return false;
	s->cut = true;
	cli_sink_cut(&s->sink, s->max_output);
	return true;
}

/* All that comes within wait_ms of what came before. 1: more will come, 0: both
 * streams have ended. */
static int drain(struct session *s, int64_t wait_ms, struct sba_error *err)
{
	for (;;) {
		enum sba_output which;
		const char *data;
		ssize_t n = sba_process_read(s->process, wait_ms, &which, &data, err);
		if (n == SBA_ETIMEOUT && cut_short(s))
			continue;
		if (n == SBA_ETIMEOUT)
			return 1;
		if (n <= 0)
			return (int)n;
		cli_sink_put(&s->sink, which, data, (size_t)n);
		if (s->sink.deaf)
			sba_process_cancel(s->process);
	}
}

/* ---- input ---- */

static int give(struct session *s, struct sba_error *err)
{
	ssize_t n = sba_process_write(s->process, s->input + s->input_at,
				      s->input_len - s->input_at, err);
	if (n < 0)
		return (int)n;
	s->input_at += (size_t)n;
	return 0;
}

static int take_stdin(struct session *s, struct sba_error *err)
{
	ssize_t n = read(STDIN_FILENO, s->input, sizeof(s->input));
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	int why = n < 0 ? errno : 0;
	/* A terminal that has gone, and a stdin that was closed, are the end of it. */
	if (why && why != EBADF && !isatty(STDIN_FILENO))
		return cli_fail(err, SBA_EIO,
				"what was to read it is ended: its input was not whole",
				"read stdin for '%s': %s", s->command, strerror(why));
	if (n <= 0) {
		s->stdin_open = false;
		return sba_process_close_stdin(s->process, err);
	}
	s->input_at = 0;
	s->input_len = (size_t)n;
	return give(s, err);
}

static int resize(struct session *s, struct sba_error *err)
{
	unsigned short rows, columns;
	cli_term_winch_drain(s->winch);
	cli_term_size(&rows, &columns);
	return sba_process_resize(s->process, rows, columns, err);
}

/* ---- the loop ---- */

static int wait_and_move(struct session *s, struct sba_error *err)
{
	bool full = s->input_at < s->input_len;
	struct pollfd p[] = {
		{ .fd = sba_process_fd(s->process), .events = sba_process_events(s->process) },
		{ .fd = s->stdin_open && !full ? STDIN_FILENO : -1, .events = POLLIN },
		{ .fd = s->winch, .events = POLLIN },
	};
	int rc = 0;
	if (poll(p, CLI_LEN(p), LOOK_MS) < 0)
		return errno == EINTR ? 0
				      : cli_fail(err, SBA_EIO, NULL, "poll: %s", strerror(errno));
	if (p[2].revents)
		rc = resize(s, err);
	if (rc == 0 && full)
		rc = give(s, err);
	if (rc == 0 && p[1].revents)
		rc = take_stdin(s, err);
	return rc;
}

static int follow(struct session *s, struct sba_error *err)
{
	bool blocking = !s->stdin_open && s->winch < 0;
	for (;;) {
		int rc = drain(s, blocking ? -1 : 0, err);
		if (rc == 1)
			rc = wait_and_move(s, err) < 0 ? err->code : 1;
		if (rc != 1)
			return rc;
	}
}

/* ---- the end ---- */

static int told(struct session *s, int status, int code, const char *hint, const char *text)
{
	struct sba_error err;
	cli_term_restore();
	cli_fail(&err, code, hint, "%s", text);
	cli_report(s->cli, &err);
	return status;
}

/* What is ours and not the command's has our status. */
static int status_of(const struct sba_exit *e)
{
	return e->kind == SBA_NO_WORKDIR || e->kind == SBA_NO_PROCESS ? CLI_EXIT_EXEC
								      : sba_exit_status(e);
}

/* What the status alone would leave open is said in words. */
static int explain(struct session *s, const struct sba_exit *e)
{
	char text[SBA_ERROR_TEXT_MAX], after[32];
	const char *kind = s->kind, *name = s->name, *command = s->command;
	int status = status_of(e);
	switch (e->kind) {
	case SBA_TIMED_OUT:
		cli_time(s->timeout_ms, after, sizeof(after));
		snprintf(text, sizeof(text), "'%s' in %s '%s' did not end within %s; it was ended",
			 command, kind, name, after);
		return told(s, status, SBA_ETIMEOUT,
			    "--timeout TIME gives it longer, 0 as long as it likes", text);
	case SBA_NOT_FOUND:
		snprintf(text, sizeof(text), "%s '%s' has no command '%s'", kind, name, command);
		return told(s, status, SBA_ENOTFOUND, NULL, text);
	case SBA_CANNOT_RUN:
		snprintf(text, sizeof(text), "cannot run '%s' in %s '%s': %s", command, kind, name,
			 e->number ? strerror(e->number) : "not executable");
		return told(s, status, SBA_EREFUSED, NULL, text);
	case SBA_NO_WORKDIR:
		snprintf(text, sizeof(text), "%s '%s': cannot enter the folder '%s': %s", kind,
			 name, s->workdir ? s->workdir : "of the image", strerror(e->number));
		return told(s, status, SBA_ENOTFOUND, NULL, text);
	case SBA_NO_PROCESS:
		snprintf(text, sizeof(text), "sandbox '%s' has no room for one more process", name);
		return told(s, status, SBA_EBROKEN,
			    "sandbox-agent stop ends what runs; up --pids N allows more", text);
	case SBA_OUT_OF_MEMORY:
		snprintf(text, sizeof(text), "'%s' in sandbox '%s' ran out of memory", command,
			 name);
		return told(s, status, SBA_EBROKEN, "up --memory SIZE allows more", text);
	case SBA_EXITED:
	case SBA_SIGNALED:
	case SBA_WAS_CANCELED:
	case SBA_DETACHED:
	case SBA_LOCKED:
		break;
	}
	return status;
}

/* What died under it need not show in how it ended itself. */
static void warn(struct session *s, const struct sba_exit *e)
{
	struct sba_sandbox_limits limits = { 0 };
	char size[32];
	bool memory = e->oom_kills > 0 && e->kind != SBA_OUT_OF_MEMORY;
	bool pids = e->pids_refused > 0 && e->kind != SBA_NO_PROCESS;
	if ((!memory && !pids) || sba_sandbox_limits(s->box, &limits, NULL) < 0)
		return;
	if (memory)
		cli_note(s->cli, "warning: something in it was killed: out of memory, limit %s",
			 cli_size(limits.memory, size, sizeof(size)));
	if (pids)
		cli_note(s->cli,
			 "warning: something in it could not start: out of processes, limit %lld",
			 (long long)limits.pids);
}

static int report(struct session *s, const struct sba_error *err)
{
	struct sba_error told = *err;
	if (s->user && cli_unknown_user(err))
		cli_fail(&told, SBA_ENOTFOUND, "a number needs no name, as in -u 1000",
			 "%s '%s' has no user '%s'", s->kind, s->name, s->user);
	return cli_report(s->cli, &told);
}

/* Its output is lost, its end is not: what still runs is not left alone. */
static int watch(struct session *s, const struct sba_error *lost, struct sba_error *err)
{
	struct sba_exit e;
	int rc = sba_process_wait(s->process, 0, &e, err);
	if (rc != SBA_ETIMEOUT)
		return rc;
	cli_term_restore();
	cli_note(s->cli, "%s; watching it until it ends", lost->text);
	return sba_process_wait(s->process, -1, &e, err);
}

static void put_exit(struct session *s, int status, bool held, const struct sba_exit *e)
{
	json_t *j = json_pack("{s:s, s:i}", "type", "exit", "status", status);
	uint64_t dropped = sba_process_dropped(s->process);
	if (j && dropped)
		json_object_set_new(j, "dropped", json_integer((json_int_t)dropped));
	if (j && held)
		json_object_set_new(j, "output_held", json_true());
	if (j && e->oom_kills)
		json_object_set_new(j, "oom_kills", json_integer(e->oom_kills));
	if (j && e->pids_refused)
		json_object_set_new(j, "pids_refused", json_integer(e->pids_refused));
	cli_json_line(j);
}

static int conclude(struct session *s, struct sba_error *err)
{
	struct sba_exit e;
	struct sba_error why = { 0 };
	int rc = follow(s, &why);
	if (rc == 0)
		rc = sba_process_wait(s->process, -1, &e, &why);
	*err = why;
	if (rc == SBA_ELOST)
		rc = watch(s, &why, err);
	cut_short(s); /* what was dropped may have been the very end */
	cli_sink_end(&s->sink);
	cli_term_restore();
	if (rc == 0 && s->sink.deaf && s->sink.why != EPIPE)
		rc = cli_fail(err, SBA_EIO, NULL, "show what '%s' says: %s", s->command,
			      strerror(s->sink.why));
	if (rc < 0)
		return cli_signals_caught() ? CLI_EXIT_EXEC : report(s, err);
	int status = s->sink.deaf ? EXIT_FAILURE : status_of(&e);
	bool held = sba_process_output_held(s->process);
	if (s->cli->json)
		put_exit(s, status, held, &e);
	else if (held)
		cli_note(s->cli,
			 "'%s' has ended, but processes that it started hold its output; what "
			 "they write from now on is not shown",
			 s->command);
	warn(s, &e);
	return s->sink.deaf || cli_signals_caught() ? status : explain(s, &e);
}

static int start(struct session *s, struct sba_sandbox *box, const struct cli_exec *o,
		 const char *const *argv, struct sba_error *err)
{
	struct cli_env env = { 0 };
	const char *term = getenv("TERM");
	struct sba_exec_options eo = {
		.argv = argv,
		.workdir = o->workdir,
		.user = o->user,
		.timeout_ms = s->timeout_ms,
		.max_output = o->max_output,
		.has_stdin = o->interactive && !o->detach,
		.tty = o->tty,
		.detach = o->detach,
		.signal_others = o->signal_others,
	};
	cli_term_size(&eo.rows, &eo.columns);
	int rc = 0;
	if (o->tty && term && term[0])
		rc = cli_env_add(&env, "TERM", err);
	if (rc == 0)
		rc = cli_env_collect(&env, &o->env_file, &o->env, err);
	eo.env = (const char *const *)env.v;
	if (rc == 0)
		rc = sba_sandbox_exec(box, &eo, &s->process, err);
	cli_env_fini(&env);
	return rc;
}

static int detached(struct session *s, struct sba_error *err)
{
	struct sba_exit e;
	int rc = sba_process_wait(s->process, -1, &e, err);
	if (rc < 0)
		return report(s, err);
	if (s->cli->json)
		cli_json_line(json_pack("{s:s, s:b}", "type", "detached", "running",
					e.kind == SBA_DETACHED));
	return e.kind == SBA_DETACHED ? 0 : explain(s, &e);
}

static int attached(struct session *s, const struct cli_exec *o, struct sba_error *err)
{
	s->winch = o->tty ? cli_term_winch_open() : -1;
	s->stdin_open = o->interactive;
	int rc = o->tty && o->interactive ? cli_term_raw(err) : 0;
	if (rc < 0)
		return cli_report(s->cli, err);
	cli_signals_process(s->process);
	int status = conclude(s, err);
	cli_signals_process(NULL);
	if (s->winch >= 0)
		close(s->winch);
	return status;
}

static void record(struct session *s, struct sba_audit *a, const struct cli_exec *o,
		   const char *const *argv, int status, int64_t took_ms)
{
	json_t *words = json_array();
	for (; a && *argv; argv++) {
		CLI_FREE char *word = sba_visible(*argv, strlen(*argv), false);
		json_array_append_new(words, json_string(word ? word : ""));
	}
	json_t *j =
		json_pack("{s:o, s:i, s:I, s:b, s:b}", "argv", words, "exit_status", status,
			  "duration_ms", (json_int_t)took_ms, "tty", o->tty, "detached", o->detach);
	if (j && s->user)
		json_object_set_new(j, "user", json_string(s->user));
	if (j && s->workdir)
		json_object_set_new(j, "workdir", json_string(s->workdir));
	cli_record(s->cli, a, "command", j);
}

static int64_t now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int in_sandbox(struct cli *cli, struct sba_sandbox *box, const struct cli_exec *o,
		      const char *const *argv)
{
	struct sba_error err;
	struct session *s = calloc(1, sizeof(*s));
	if (!s)
		return CLI_EXIT_EXEC;
	s->cli = cli;
	s->sink.cli = cli;
	s->max_output = o->max_output;
	s->box = box;
	s->kind = cli_is_container(box) ? "container" : "sandbox";
	s->name = sba_sandbox_info(box)->name;
	s->command = argv[0];
	s->user = o->user;
	s->workdir = o->workdir;
	s->timeout_ms = o->timeout > 0 ? o->timeout : 0;
	struct sba_audit *audit = cli_record_open(cli, box);
	int64_t began = now_ms();
	int status;
	if (start(s, box, o, argv, &err) < 0)
		status = cli_signals_caught() ? CLI_EXIT_EXEC : report(s, &err);
	else
		status = o->detach ? detached(s, &err) : attached(s, o, &err);
	sba_process_free(s->process);
	record(s, audit, o, argv, status, now_ms() - began);
	sba_audit_close(audit);
	free(s);
	return status;
}

int cli_exec_attach(struct cli *cli, struct sba_sandbox *box, struct sba_process *p,
		    const char *command)
{
	const struct cli_exec o = { .interactive = true, .tty = true };
	struct sba_error err;
	struct session *s = calloc(1, sizeof(*s));
	if (!s)
		return EXIT_FAILURE;
	s->cli = s->sink.cli = cli;
	s->box = box;
	s->kind = cli_is_container(box) ? "container" : "sandbox";
	s->name = sba_sandbox_info(box)->name;
	s->command = command;
	s->process = p;
	int status = attached(s, &o, &err);
	free(s);
	return status;
}

/* On a thread of the sandbox's: one write, so that lines stay whole. */
static void tell_refusal(void *user, const struct sba_connection *c)
{
	char line[1024];
	const struct cli *cli = user;
	if (!sba_connection_refusal(c, line, sizeof(line)))
		return;
	CLI_FREE char *shown = cli_line(&cli->look, line, 0);
	if (shown)
		fprintf(stderr, "%s\n", shown);
}

/* What a sandbox of ours would promise. */
static void tell_lacks(struct cli *cli, const char *name)
{
	cli_note(cli,
		 "container '%s' is not ours: its commands go on if this program dies; no "
		 "keepalive, no ports, no model",
		 name);
}

static void put_start(const char *name, bool container)
{
	json_t *j = json_pack("{s:i, s:s, s:s}", "v", 1, "type", "start", "sandbox", name);
	if (j && container)
		json_object_set_new(j, "container", json_true());
	cli_json_line(j);
}

int cli_exec_run(struct cli *cli, const char *name, const struct cli_exec *o,
		 const char *const *argv)
{
	struct sba_sandbox *box = NULL;
	struct sba_error err;
	if (o->tty && o->interactive && !isatty(STDIN_FILENO))
		return cli_usage(cli, "leave -t out", "-it: stdin is no terminal");
	int rc = cli_sandbox_or_container(cli, name, o->container, &box, &err);
	if (rc < 0)
		return cli_signals_caught() ? cli_signals_exit(cli, 1, "nothing was begun")
					    : cli_report(cli, &err);
	if (cli->json)
		put_start(sba_sandbox_info(box)->name, o->container);
	if (o->container)
		tell_lacks(cli, sba_sandbox_info(box)->name);
	struct sba_observer refusals = { .connection = tell_refusal, .user = cli };
	if (cli->verbose && !cli->json && !o->tty)
		sba_sandbox_observe(box, &refusals);
	int status = in_sandbox(cli, box, o, argv);
	sba_sandbox_close(box);
	return cli_signals_exit(cli, status,
				o->container ? "the command was ended, the container lives on"
					     : "the command was ended, the sandbox lives on");
}

static int exec_command(struct cli *cli, const void *options, const struct cli_args *args)
{
	struct cli_exec o = *(const struct cli_exec *)options;
	if ((o.tty || o.detach) && !cli_given(args, "timeout"))
		o.timeout = -1;
	return cli_exec_run(cli, args->v[0], &o, (const char *const *)args->v + 1);
}

const struct cli_command cli_command_exec = {
	.name = "exec",
	.args = "NAME [--] COMMAND...",
	.help = "a command inside, with our streams",
	.more = "Its exit status becomes ours; 125 is a failure of ours, 124 its deadline,\n"
		"126 cannot be run, 127 not found, 1 if what reads our output has gone away.\n"
		"A command can signal its own processes only (kill: not permitted);\n"
		"--signal-others lets it reach those of other commands, as `shell` may.\n"
		"With --container NAME is one that something else made, used as it is: by the\n"
		"engine's own exec. Its deadline needs a shell inside, and its commands go on if\n"
		"this program dies.",
	.example = "sandbox-agent exec calm-fox -w /workspace -- git status",
	.tables = { exec_options },
	.options_size = sizeof(struct cli_exec),
	.min_args = 2,
	.max_args = -1,
	.verbatim_after = 1,
	.failure = CLI_EXIT_EXEC,
	.run = exec_command,
};
