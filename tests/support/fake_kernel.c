/* SPDX-License-Identifier: MIT */
/*
 * The code interpreters of the fake services: a python program that keeps a context's code
 * in a file, runs it anew before what it is asked to run, and says what comes of that in the
 * words of E2B's server or of execd.
 */
#include "support/fake_kernel.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char kernel[] =
	"import ast, contextlib, json, os, subprocess, sys, threading, time, traceback\n"
	"form, path, code = sys.argv[1:4]\n"
	"execd = form == 'execd'\n"
	"lines = open(path).read().splitlines()\n"
	"about, past = json.loads(lines[0]), [json.loads(l) for l in lines[1:]]\n"
	"if about.get('cwd'): os.chdir(about['cwd'])\n"
	"lock = threading.Lock()\n"
	"def say(event, stamp=execd):\n"
	"    if stamp: event['timestamp'] = int(time.time() * 1000) if execd else "
	"'2026-11-29T16:25:19.496852+00:00'\n"
	"    with lock:\n"
	"        sys.__stdout__.write(json.dumps(event) + ('\\n\\n' if execd else '\\n'))\n"
	"        sys.__stdout__.flush()\n"
	"class Out:\n"
	"    def __init__(self, name): self.name = name\n"
	"    def write(self, text):\n"
	"        if text: say({'type': self.name, 'text': text}, True)\n"
	"        return len(text)\n"
	"    def flush(self): pass\n"
	"def fail(name, value, trace):\n"
	"    if execd:\n"
	"        say({'type': 'status', 'text': 'error'})\n"
	"        say({'type': 'error', 'error': {'ename': name, 'evalue': value, "
	"'traceback': trace.splitlines()}})\n"
	"    else: say({'type': 'error', 'name': name, 'value': value, 'traceback': trace})\n"
	"def count():\n"
	"    say({'type': 'execution_count' if execd else 'number_of_executions', "
	"'execution_count': len(past) + 1})\n"
	"def show(value):\n"
	"    text, html = repr(value), getattr(value, '_repr_html_', None)\n"
	"    if isinstance(value, str): text = value\n"
	"    if execd:\n"
	"        count()\n"
	"        results = {'text': text}\n"
	"        if html: results['text/html'] = html()\n"
	"        say({'type': 'result', 'results': results})\n"
	"        return\n"
	"    event = {'type': 'result', 'text': text, 'extra': {}, 'is_main_result': True}\n"
	"    if html: event['html'] = html()\n"
	"    say(event)\n"
	"def pump(stream, name):\n"
	"    for line in iter(stream.readline, b''): Out(name).write(line.decode())\n"
	"def bash():\n"
	"    p = subprocess.Popen(['bash', '-c', code], stdin=subprocess.DEVNULL, "
	"stdout=subprocess.PIPE, stderr=subprocess.PIPE)\n"
	"    t = [threading.Thread(target=pump, args=a, daemon=True) for a in "
	"((p.stdout, 'stdout'), (p.stderr, 'stderr'))]\n"
	"    try:\n"
	"        for one in t: one.start()\n"
	"        for one in t: one.join()\n"
	"        if p.wait(): fail('ExitCode', str(p.returncode), '')\n"
	"    except BaseException: p.kill(); raise\n"
	"def python():\n"
	"    g = {'__name__': '__main__'}\n"
	"    with contextlib.redirect_stdout(open(os.devnull, 'w')):\n"
	"        for old in past: exec(old, g)\n"
	"    tree = ast.parse(code)\n"
	"    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else "
	"None\n"
	"    with contextlib.redirect_stdout(Out('stdout')), "
	"contextlib.redirect_stderr(Out('stderr')):\n"
	"        exec(compile(tree, '<cell>', 'exec'), g)\n"
	"        value = eval(compile(ast.Expression(last.value), '<cell>', 'eval'), g) if last "
	"else None\n"
	"    if value is not None: show(value)\n"
	"    open(path, 'a').write(json.dumps(code) + '\\n')\n"
	/* As it was measured: its end is often told before what it printed. */
	"if execd: say({'type': 'execution_complete', 'execution_time': 92})\n"
	"else: count()\n"
	"try: bash() if about['language'] == 'bash' else python()\n"
	"except BaseException as e: fail(type(e).__name__, str(e), traceback.format_exc())\n"
	"if not execd: say({'type': 'end_of_execution'})\n";

/* ---- contexts: a file for each ---- */

static bool path_of(const struct fake_code *c, const char *id, char ret[256])
{
	snprintf(ret, 256, "%s/context-%s", c->home, id);
	return access(ret, F_OK) == 0;
}

static void put(const char *path, const char *language, const char *cwd)
{
	SBA_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	json_t *about = json_pack("{s:s, s:s*}", "language", language, "cwd", cwd);
	char *text = about ? json_dumps(about, JSON_COMPACT) : NULL;
	if (text && sba_write_all(fd, text, strlen(text), NULL) == 0)
		(void)!sba_write_all(fd, "\n", 1, NULL);
	free(text);
	json_decref(about);
}

static bool knows(const char *language)
{
	return !strcmp(language, "python") || !strcmp(language, "bash");
}

static void make(const struct fake_code *c, struct sba_http_answer *a)
{
	const char *language = sba_json_str(c->body, "language");
	char id[33], path[256];
	if (!language || sba_random_hex(id, 16, NULL) < 0) {
		a->status = 500;
		return;
	}
	(void)path_of(c, id, path);
	put(path, language, sba_json_str(c->body, "cwd"));
	fake_remote_json(a, 200, json_pack("{s:s, s:s}", "id", id, "language", language));
}

/* The file of the context that code is to run in; false: it was refused. */
static bool find(const struct fake_code *c, char ret[256], struct sba_http_answer *a)
{
	const char *id = sba_json_str(c->body, c->execd ? "context.id" : "context_id");
	const char *language = sba_json_str(c->body, c->execd ? "context.language" : "language");
	char usual[128];
	if (!language)
		language = "python";
	if (id && path_of(c, id, ret))
		return true;
	if (id || !knows(language)) {
		fake_remote_json(a,
				 c->execd ? 500
				 : id     ? 404
					  : 400,
				 json_pack("{s:s, s:s}", "code", "RUNTIME_ERROR", "message",
					   id ? "error running codes: context not found"
					      : "error running codes: unknown language: it"));
		return false;
	}
	snprintf(usual, sizeof(usual), "usual-%s-%s", c->sandbox, language);
	if (!path_of(c, usual, ret))
		put(ret, language, NULL);
	return true;
}

static void run(struct fake_remote *f, const struct fake_code *c, struct sba_http_answer *a)
{
	const char *code = sba_json_str(c->body, "code");
	char path[256], tag[33];
	if (!find(c, path, a) || sba_random_hex(tag, 16, NULL) < 0)
		return;
	const char *const argv[] = {
		"python3", "-c", kernel, c->execd ? "execd" : "e2b", path, code ? code : "", NULL
	};
	fake_remote_run(f,
			&(struct fake_remote_words){ .argv = argv,
						     .env = c->env,
						     .kernel = c->execd ? FAKE_KERNEL_EXECD
									: FAKE_KERNEL_E2B,
						     .tag = tag,
						     .sandbox = c->sandbox,
						     .ping_s = c->execd ? 3 : 5 },
			a);
}

static void interrupt(struct fake_remote *f, const char *tag)
{
	pthread_mutex_lock(&f->lock);
	struct fake_run *r = fake_remote_find(f, tag);
	if (r)
		kill(-r->pid, SIGINT);
	pthread_mutex_unlock(&f->lock);
}

static void remove_or_restart(const struct fake_code *c, const char *rest,
			      struct sba_http_answer *a)
{
	char id[64], path[256];
	size_t len = strcspn(rest, "/");
	snprintf(id, sizeof(id), "%.*s", (int)len, rest);
	if (!path_of(c, id, path))
		fake_remote_json(a, 404,
				 json_pack("{s:s, s:s}", "code", "CONTEXT_NOT_FOUND", "message",
					   "no such context"));
	else if (rest[len])
		put(path, "python", NULL);
	else
		unlink(path);
}

bool fake_kernel(struct fake_remote *f, const struct fake_code *c, const struct sba_http_request *r,
		 const char *path, struct sba_http_answer *a)
{
	const char *contexts = c->execd ? "/code/contexts/" : "/contexts/";
	if (!strcmp(path, c->execd ? "/code/context" : "/contexts"))
		make(c, a);
	else if (sba_starts_with(path, contexts))
		remove_or_restart(c, path + strlen(contexts), a);
	else if (strcmp(path, c->execd ? "/code" : "/execute") != 0)
		return false;
	else if (!strcmp(r->method, "DELETE"))
		interrupt(f, c->interrupt ? c->interrupt : "");
	else
		run(f, c, a);
	return true;
}
