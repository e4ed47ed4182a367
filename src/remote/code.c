/* SPDX-License-Identifier: MIT */
/*
 * Code run by a service's code interpreter: one request whose answer is a line of JSON for
 * each thing that happens. What a line means is the kind's.
 */
#include "base/limits.h"
#include "remote/private.h"

#include <stdlib.h>
#include <string.h>

enum {
	PIECE = 64 * SBA_KIB,
	READY_MS = 30 * 1000, /* for an interpreter that is just starting */
	POLL_MS = 300,
	STOP_MS = 10 * 1000,
};

/* ---- what is told ---- */

static int tell(struct sba_remote_code *c, const struct sba_code_event *e, struct sba_error *err)
{
	return c->tell(c->user, e, err);
}

static int no_text(const struct sba_remote_code *c, const char *what, struct sba_error *err)
{
	return sba_fail(err, SBA_EPROTO, "%s: it tells of %s that is none",
			c->box->remote->kind->backend->name, what);
}

int sba_remote_tell_output(struct sba_remote_code *c, enum sba_code_event_kind kind,
			   const json_t *text, struct sba_error *err)
{
	const struct sba_code_event e = { .kind = kind,
					  .data = json_string_value(text),
					  .len = json_string_length(text) };
	return e.data ? tell(c, &e, err) : no_text(c, "output", err);
}

int sba_remote_tell_error(struct sba_remote_code *c, const json_t *name, const json_t *text,
			  const char *traceback, struct sba_error *err)
{
	const struct sba_code_event e = { .kind = SBA_CODE_ERROR,
					  .name = json_string_value(name),
					  .text = json_string_value(text),
					  .traceback = traceback };
	c->failed = true;
	return tell(c, &e, err);
}

int sba_remote_tell_number(struct sba_remote_code *c, const json_t *number, struct sba_error *err)
{
	const struct sba_code_event e = { .kind = SBA_CODE_EXECUTION,
					  .number = json_integer_value(number) };
	return tell(c, &e, err);
}

/* What is no string is told as its JSON, which *ret_heap is then. */
static const char *text_of(const json_t *data, char **ret_heap)
{
	if (!json_is_string(data))
		*ret_heap = sba_json_dump(data);
	return *ret_heap ? *ret_heap : json_string_value(data);
}

int sba_remote_tell_value(struct sba_remote_code *c, const json_t *all, bool is_result,
			  sba_remote_type_fn *type_of, struct sba_error *err)
{
	struct sba_code_form forms[SBA_CODE_FORMS_MAX] = { 0 };
	char *heap[SBA_CODE_FORMS_MAX] = { 0 }, types[SBA_CODE_FORMS_MAX][SBA_REMOTE_TYPE_MAX];
	struct sba_code_value value = { .forms = forms, .is_result = is_result };
	const struct sba_code_event e = { .kind = SBA_CODE_VALUE, .value = &value };
	const char *form;
	json_t *data;
	int rc = 0;
	json_object_foreach((json_t *)(uintptr_t)all, form, data)
	{
		size_t n = value.n;
		const char *type = n < SBA_CODE_FORMS_MAX && !json_is_null(data)
					   ? type_of(form, types[n])
					   : NULL;
		if (!type)
			continue;
		const char *text = text_of(data, &heap[n]);
		if (!text) {
			rc = sba_fail_nomem(err);
			break;
		}
		forms[n] = (struct sba_code_form){ .type = type,
						   .data = text,
						   .len = heap[n] ? strlen(text)
								  : json_string_length(data) };
		value.n++;
	}
	if (rc == 0 && value.n)
		rc = tell(c, &e, err);
	for (size_t i = 0; i < SBA_CODE_FORMS_MAX; i++)
		free(heap[i]);
	return rc;
}

/* ---- a request ---- */

/* What services say of code where their status says only that they are in trouble. */
static const struct {
	const char *words;
	int code;
} meanings[] = {
	{ "not configured", SBA_EUNSUPPORTED }, { "unknown language", SBA_EINVAL },
	{ "context not found", SBA_ENOTFOUND }, { "session is busy", SBA_EBUSY },
	{ "connection refused", SBA_ECONNECT },
};

static int judge(const struct sba_remote_box *b, int rc, struct sba_error *err)
{
	const struct sba_remote_kind *kind = b->remote->kind;
	for (size_t i = 0; rc == SBA_EENGINE && i < SBA_ARRAY_LEN(meanings); i++) {
		if (strstr(err->text, meanings[i].words))
			rc = err->code = meanings[i].code;
	}
	return rc == SBA_EUNSUPPORTED
		       ? sba_hint(err, rc, "use what has one:  --image %s", kind->code->image)
		       : rc;
}

/* Nothing has begun then. */
static bool is_early(int rc, const struct sba_error *why)
{
	return rc == SBA_ECONNECT ||
	       (rc == SBA_EENGINE && (why->http_status == 502 || why->http_status == 503));
}

static bool has_run(struct sba_remote_box *b)
{
	pthread_mutex_lock(&b->lock);
	bool runs = b->code_runs;
	pthread_mutex_unlock(&b->lock);
	return runs;
}

static void note_that_it_runs(struct sba_remote_box *b)
{
	pthread_mutex_lock(&b->lock);
	b->code_runs = true;
	pthread_mutex_unlock(&b->lock);
}

static int nobody_answers(const struct sba_remote_box *b, const struct sba_error *why,
			  struct sba_error *err)
{
	const struct sba_remote_kind *kind = b->remote->kind;
	int rc = sba_fail(err, SBA_EUNSUPPORTED,
			  "no code interpreter answers in the sandbox: %.500s", why->text);
	return sba_hint(err, rc, "use what has one:  --image %s", kind->code->image);
}

/* Sandboxes are there before their interpreters are: the first request waits for it. */
static int open_when_ready(struct sba_remote_box *b, const struct sba_remote_call *call,
			   struct sba_until until, struct sba_http_response **ret,
			   struct sba_error *err)
{
	const int64_t ready_ms = b->remote->ready_ms < READY_MS ? b->remote->ready_ms : READY_MS;
	const struct sba_until ready = sba_until_sooner(until, ready_ms);
	struct sba_error why = { 0 };
	bool waits = !has_run(b);
	for (;;) {
		int rc = sba_remote_open_call(b->remote, call, until, ret, &why);
		if (rc == 0) {
			note_that_it_runs(b);
			return 0;
		}
		rc = judge(b, rc, &why);
		if (waits && is_early(rc, &why) &&
		    sba_wait_fd(-1, 0, sba_until_sooner(ready, POLL_MS), NULL) == SBA_ETIMEOUT &&
		    sba_until_left(ready) != 0)
			continue;
		if (waits && is_early(rc, &why) &&
		    b->remote->kind->look(b->remote, b->id, until, NULL) == 0)
			return nobody_answers(b, &why, err);
		if (err)
			*err = why;
		return rc;
	}
}

/* Its URL and headers, and its body's text. */
struct asking {
	char *url, *text;
	struct sba_strv headers;
	struct sba_remote_call call;
};

static void asking_fini(struct asking *a)
{
	free(a->url);
	free(a->text);
	sba_strv_fini(&a->headers);
}

static int ask(struct sba_remote_box *b, const char *method, const char *path, const json_t *body,
	       struct asking *ret, struct sba_error *err)
{
	int rc = b->remote->kind->code->way(b, path, &ret->url, &ret->headers, err);
	if (rc == 0 && body && !(ret->text = sba_json_dump(body)))
		rc = sba_fail_nomem(err);
	ret->call = (struct sba_remote_call){ .method = method,
					      .url = ret->url,
					      .what = "run code",
					      .headers = &ret->headers,
					      .secret = b->secret,
					      .body = ret->text,
					      .body_len = ret->text ? strlen(ret->text) : 0 };
	return rc;
}

int sba_remote_code_call(struct sba_remote_box *b, const char *method, const char *path,
			 const json_t *body, struct sba_until until, json_t **ret,
			 struct sba_error *err)
{
	struct asking a = { 0 };
	struct sba_http_response *answer = NULL;
	int rc = ask(b, method, path, body, &a, err);
	if (rc == 0)
		rc = open_when_ready(b, &a.call, until, &answer, err);
	if (rc == 0)
		rc = sba_remote_read_json(b->remote, &a.call, answer, until, ret, err);
	sba_http_response_close(answer);
	asking_fini(&a);
	return rc < 0 ? sba_remote_explain(b, rc, err) : 0;
}

/* ---- a run ---- */

/* Some put "data: " in front. */
static int take_line(void *user, struct sba_error *err)
{
	struct sba_remote_code *c = user;
	const char *line = c->line.data;
	if (!line)
		return 0;
	if (sba_starts_with(line, "data:"))
		line += 5;
	line += strspn(line, " \r");
	if (!*line)
		return 0;
	SBA_JSON json_t *event = sba_json_load(line, strlen(line), 0, NULL);
	if (!json_is_object(event))
		return sba_fail(err, SBA_EPROTO, "%s: run code: an event that is no JSON",
				c->box->remote->kind->backend->name);
	return c->box->remote->kind->code->take(c, event, err);
}

/* To its end, for OpenSandbox tells of an execution's end before what it printed. 1: its
 * time is over. */
static int read_on(struct sba_remote_code *c, struct sba_http_response *answer,
		   struct sba_until until, struct sba_error *err)
{
	SBA_FREE char *piece = malloc(PIECE);
	ssize_t n = 0;
	int rc = piece ? 0 : sba_fail_nomem(err);
	while (rc == 0 && (n = sba_http_response_read(
				   answer, piece, PIECE,
				   sba_until_sooner(until, SBA_REMOTE_SILENCE_MS), err)) > 0)
		rc = sba_remote_cut_lines(&c->line, piece, (size_t)n, take_line, c, err);
	if (rc < 0)
		return judge(c->box, rc, err);
	if (n == SBA_ETIMEOUT)
		return sba_until_left(until) == 0
			       ? 1
			       : sba_fail(err, SBA_ELOST, "its stream has said nothing for %d s",
					  SBA_REMOTE_SILENCE_MS / 1000);
	rc = n < 0 ? (int)n : take_line(c, err);
	return rc < 0 ? judge(c->box, rc, err) : 0;
}

static void stop(struct sba_remote_code *c)
{
	struct sba_error why;
	if (c->box->remote->kind->code->stop(c, sba_until_in(STOP_MS), &why) < 0)
		sba_log("remote", "code that is to end: %s", why.text);
}

static int converse(struct sba_remote_code *c, const struct asking *a, struct sba_until until,
		    struct sba_exit *ret, struct sba_error *err)
{
	struct sba_http_response *answer = NULL;
	int rc = open_when_ready(c->box, &a->call, until, &answer, err);
	bool begun = rc == 0;
	if (rc == SBA_ETIMEOUT && sba_until_left(until) == 0)
		rc = 1;
	else if (rc == 0)
		rc = read_on(c, answer, until, err);
	sba_http_response_close(answer);
	/* What nobody listens to any more is not to go on; what made it busy is another's. */
	if (begun && rc != 0 && rc != SBA_EBUSY)
		stop(c);
	if (rc < 0)
		return sba_remote_explain(c->box, rc, err);
	*ret = rc == 1 ? (struct sba_exit){ .kind = SBA_TIMED_OUT }
		       : (struct sba_exit){ .kind = SBA_EXITED, .number = c->failed };
	return 0;
}

int sba_remote_run_code(struct sba_sandbox *s, const struct sba_code_options *o, sba_code_fn *fn,
			void *user, struct sba_exit *ret, struct sba_error *err)
{
	struct sba_remote_box *b = sba_remote_box_of(s);
	struct sba_remote_code c = { .box = b, .options = o, .tell = fn, .user = user };
	struct asking a = { 0 };
	struct sba_error why = { 0 };
	SBA_JSON json_t *body = NULL;
	struct sba_until until = sba_remote_until(b->remote, o->timeout_ms);
	if (o->timeout_ms < 0)
		until.deadline_ms = SBA_NEVER;
	sba_buf_init(&c.line, SBA_REMOTE_CODE_EVENT_MAX);
	int rc = sba_remote_check_text("code", o->code, &why);
	if (rc == 0)
		rc = b->remote->kind->code->compose(o, &body, &why);
	if (rc == 0)
		rc = ask(b, "POST", b->remote->kind->code->run, body, &a, &why);
	if (rc == 0)
		rc = converse(&c, &a, until, ret, &why);
	if (rc < 0 && err)
		*err = why;
	asking_fini(&a);
	sba_buf_fini(&c.line);
	return rc;
}

/* ---- contexts ---- */

int sba_remote_context_new(struct sba_sandbox *s, const char *language, char **ret,
			   struct sba_error *err)
{
	struct sba_remote_box *b = sba_remote_box_of(s);
	SBA_JSON json_t *answer = NULL;
	SBA_JSON json_t *body = json_pack("{s:s, s:s}", "language", language, "cwd", b->workdir);
	if (!body)
		return sba_fail(err, SBA_EINVAL, "the working directory is not UTF-8");
	int rc =
		sba_remote_code_call(b, "POST", b->remote->kind->code->contexts, body,
				     sba_remote_until(b->remote, SBA_REMOTE_CALL_MS), &answer, err);
	const char *id = rc == 0 ? sba_json_str(answer, "id") : NULL;
	if (rc == 0 && (!id || !sba_is_word(id, "_-", SBA_CODE_CONTEXT_MAX)))
		return sba_fail(err, SBA_EPROTO, "%s: a context that has no name",
				b->remote->kind->backend->name);
	if (rc == 0 && !(*ret = strdup(id)))
		rc = sba_fail_nomem(err);
	return rc;
}

int sba_remote_context_end(struct sba_sandbox *s, const char *context, struct sba_error *err)
{
	struct sba_remote_box *b = sba_remote_box_of(s);
	char path[SBA_CODE_CONTEXT_MAX + 64];
	snprintf(path, sizeof(path), "%s%s", b->remote->kind->code->context, context);
	int rc = sba_remote_code_call(b, "DELETE", path, NULL,
				      sba_remote_until(b->remote, SBA_REMOTE_CALL_MS), NULL, err);
	return rc == SBA_ENOTFOUND ? 0 : rc;
}
