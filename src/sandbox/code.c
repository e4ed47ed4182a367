/* SPDX-License-Identifier: MIT */
/*
 * Code run in a sandbox, whatever runs it: what comes of it is collected here, up to its
 * limit.
 */
#include "sandbox/code.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"

enum { RUN_MS = 60 * 1000, OUTPUT_MAX = 10 * SBA_MIB };

struct collecting {
	struct sba_buf out, err;
	size_t left; /* until the limit */
	struct sba_code_run run;
};

static void value_fini(struct sba_code_value *v)
{
	struct sba_code_form *forms = (struct sba_code_form *)(uintptr_t)v->forms;
	for (size_t i = 0; i < v->n; i++) {
		free((void *)(uintptr_t)forms[i].type);
		free((void *)(uintptr_t)forms[i].data);
	}
	free(forms);
}

void sba_code_run_fini(struct sba_code_run *r)
{
	for (size_t i = 0; i < r->n_values; i++)
		value_fini(&r->values[i]);
	free(r->values);
	free(r->out);
	free(r->err);
	free(r->error_name);
	free(r->error_value);
	free(r->error_traceback);
	*r = (struct sba_code_run){ 0 };
}

/* ---- what comes ---- */

/* How much of it is kept. */
static size_t allow(struct collecting *c, size_t len)
{
	size_t n = len < c->left ? len : c->left;
	c->left -= n;
	c->run.dropped += len - n;
	return n;
}

static bool allow_whole(struct collecting *c, size_t len)
{
	if (len <= c->left) {
		c->left -= len;
		return true;
	}
	c->run.dropped += len;
	return false;
}

static int keep_output(struct collecting *c, struct sba_buf *to, const struct sba_code_event *e,
		       struct sba_error *err)
{
	sba_buf_put(to, e->data, allow(c, e->len));
	return sba_buf_check(to, "what it printed", err);
}

static int copy_form(const struct sba_code_form *f, struct sba_code_form *ret,
		     struct sba_error *err)
{
	char *data = malloc(f->len + 1), *type = strdup(f->type);
	if (!data || !type) {
		free(data);
		free(type);
		return sba_fail_nomem(err);
	}
	memcpy(data, f->data, f->len);
	data[f->len] = '\0';
	*ret = (struct sba_code_form){ .type = type, .data = data, .len = f->len };
	return 0;
}

static int copy_value(const struct sba_code_value *v, struct sba_code_value *ret,
		      struct sba_error *err)
{
	struct sba_code_form *forms = calloc(v->n + 1, sizeof(*forms));
	int rc = forms ? 0 : sba_fail_nomem(err);
	*ret = (struct sba_code_value){ .forms = forms, .is_result = v->is_result };
	while (rc == 0 && ret->n < v->n) {
		rc = copy_form(&v->forms[ret->n], &forms[ret->n], err);
		ret->n += rc == 0;
	}
	if (rc < 0)
		value_fini(ret);
	return rc;
}

static int keep_value(struct collecting *c, const struct sba_code_value *v, struct sba_error *err)
{
	struct sba_code_run *r = &c->run;
	size_t len = 0;
	for (size_t i = 0; i < v->n; i++)
		len += v->forms[i].len;
	if (!allow_whole(c, len))
		return 0;
	if (r->n_values == SBA_CODE_VALUES_MAX)
		return sba_fail(err, SBA_ELIMIT, "it shows more than %d values",
				SBA_CODE_VALUES_MAX);
	struct sba_code_value *grown = realloc(r->values, (r->n_values + 1) * sizeof(*grown));
	if (!grown)
		return sba_fail_nomem(err);
	r->values = grown;
	int rc = copy_value(v, &grown[r->n_values], err);
	r->n_values += rc == 0;
	return rc;
}

/* What it is, is told whatever the limit. */
static int keep_error(struct collecting *c, const struct sba_code_event *e, struct sba_error *err)
{
	struct sba_code_run *r = &c->run;
	const char *traceback = e->traceback ? e->traceback : "";
	if (r->error_name)
		return 0;
	r->error_name = strndup(e->name ? e->name : "", SBA_CODE_ERROR_MAX);
	r->error_value = strndup(e->text ? e->text : "", SBA_CODE_ERROR_MAX);
	r->error_traceback = strndup(traceback, allow(c, strlen(traceback)));
	return r->error_name && r->error_value && r->error_traceback ? 0 : sba_fail_nomem(err);
}

static int collect(void *user, const struct sba_code_event *e, struct sba_error *err)
{
	struct collecting *c = user;
	switch (e->kind) {
	case SBA_CODE_STDOUT:
		return keep_output(c, &c->out, e, err);
	case SBA_CODE_STDERR:
		return keep_output(c, &c->err, e, err);
	case SBA_CODE_VALUE:
		return keep_value(c, e->value, err);
	case SBA_CODE_ERROR:
		return keep_error(c, e, err);
	case SBA_CODE_EXECUTION:
		c->run.execution = e->number;
		return 0;
	}
	return 0;
}

/* ---- a run ---- */

static int finish(struct collecting *c, struct sba_code_run *ret, struct sba_error *err)
{
	static const struct sba_code_event none = { .kind = SBA_CODE_ERROR };
	struct sba_code_run *r = &c->run;
	r->out_len = c->out.len;
	r->err_len = c->err.len;
	r->out = sba_buf_take(&c->out);
	r->err = sba_buf_take(&c->err);
	int rc = keep_error(c, &none, err);
	if (rc == 0 && (!r->out || !r->err))
		rc = sba_fail_nomem(err);
	if (rc == 0) {
		*ret = *r;
		*r = (struct sba_code_run){ 0 };
	}
	return rc;
}

static int check(struct sba_sandbox *s, const struct sba_code_options *o, struct sba_error *err)
{
	int rc = sba_sandbox_need(
		s, SBA_CAN_RUN_CODE | (o->context ? (unsigned)SBA_CAN_CODE_STATE : 0U), err);
	if (rc == 0 && !o->code)
		rc = sba_fail(err, SBA_EINVAL, "code: there is none");
	if (rc == 0 && o->language && !sba_is_word(o->language, "_-+#.", SBA_NAME_MAX))
		rc = sba_fail(err, SBA_EINVAL, "language '%.40s': not the name of one",
			      o->language);
	if (rc == 0 && o->context && !sba_is_word(o->context, "_-", SBA_CODE_CONTEXT_MAX))
		rc = sba_fail(err, SBA_EINVAL, "context '%.40s': not the name of one", o->context);
	return rc == 0 ? sba_sandbox_check_open(s, err) : rc;
}

int sba_sandbox_run_code(struct sba_sandbox *s, const struct sba_code_options *o,
			 struct sba_code_run *ret, struct sba_error *err)
{
	const struct sba_backend *b = sba_backend_of(s);
	struct sba_code_options asked = *o;
	struct collecting c = { .left = o->max_output ? o->max_output : (size_t)OUTPUT_MAX };
	int rc = check(s, o, err);
	if (rc < 0)
		return rc;
	asked.timeout_ms = o->timeout_ms ? o->timeout_ms : RUN_MS;
	asked.language = o->language ? o->language : SBA_CODE_LANGUAGE;
	sba_buf_init(&c.out, c.left);
	sba_buf_init(&c.err, c.left);
	rc = (b->run_code ? b->run_code : sba_commands_run_code)(s, &asked, collect, &c,
								 &c.run.exit, err);
	if (rc == 0)
		rc = finish(&c, ret, err);
	sba_buf_fini(&c.out);
	sba_buf_fini(&c.err);
	sba_code_run_fini(&c.run);
	return rc < 0 ? sba_wrap(err, rc, "sandbox '%s': run code", s->info.name) : 0;
}

/* ---- contexts ---- */

int sba_code_context_new(struct sba_sandbox *s, const char *language, char **ret,
			 struct sba_error *err)
{
	const struct sba_code_options o = { .code = "", .language = language, .context = "new" };
	int rc = check(s, &o, err);
	if (rc < 0)
		return rc;
	rc = sba_backend_of(s)->context_new(s, language ? language : SBA_CODE_LANGUAGE, ret, err);
	return rc < 0 ? sba_wrap(err, rc, "sandbox '%s': make a context for code", s->info.name)
		      : 0;
}

int sba_code_context_end(struct sba_sandbox *s, const char *context, struct sba_error *err)
{
	const struct sba_code_options o = { .code = "", .context = context };
	int rc = check(s, &o, err);
	if (rc < 0)
		return rc;
	rc = sba_backend_of(s)->context_end(s, context, err);
	return rc < 0 ? sba_wrap(err, rc, "sandbox '%s': end a context of code", s->info.name) : 0;
}
