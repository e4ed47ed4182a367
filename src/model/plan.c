/* SPDX-License-Identifier: MIT */
/*
 * From a request to an answer: the rule whose match fits the user's text, the
 * step that is due, its templates filled in. It must not know any wire.
 */
#include "base/limits.h"
#include "model/private.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Near what tokenizers yield, and the same on every run. */
enum { BYTES_PER_TOKEN = 4 };

static const char *prompt_of(const struct sba_model_request *r)
{
	return r->prompt.data ? r->prompt.data : "";
}

/* All conditions must hold; case is ignored. `rest` is what follows the
 * prefix, without space around it. */
static bool matches(const json_t *match, const char *prompt, const char **rest)
{
	const char *equals = sba_json_str(match, "equals");
	const char *contains = sba_json_str(match, "contains");
	const char *prefix = sba_json_str(match, "prefix");
	if (equals && strcasecmp(prompt, equals) != 0)
		return false;
	if (contains && !strcasestr(prompt, contains))
		return false;
	if (prefix && strncasecmp(prompt, prefix, strlen(prefix)) != 0)
		return false;
	const char *after = prompt + (prefix ? strlen(prefix) : 0);
	*rest = after + strspn(after, " \t\n");
	return true;
}

static const json_t *find_rule(const json_t *script, const char *prompt, const char **rest)
{
	size_t i;
	json_t *rule;
	json_array_foreach(
		json_object_get(script, "rules"), i,
		rule) if (matches(json_object_get(rule, "match"), prompt, rest)) return rule;
	return NULL;
}

static const json_t *find_step(const json_t *rule, size_t index)
{
	const json_t *steps = json_object_get(rule, "steps");
	const char *after = sba_json_str(rule, "after");
	size_t n = json_array_size(steps);
	if (index >= n)
		index = after && !strcmp(after, "repeat") ? index % n : n - 1;
	return json_array_get(steps, index);
}

static int make_id(char *ret, size_t size, const char *prefix, struct sba_error *err)
{
	char hex[17];
	int rc = sba_random_hex(hex, sizeof(hex) / 2, err);
	if (rc < 0)
		return rc;
	snprintf(ret, size, "%s%s", prefix, hex);
	return 0;
}

static int add_part(struct sba_model_answer *a, struct sba_model_part *take, struct sba_error *err)
{
	struct sba_model_part *grown = realloc(a->parts, (a->n_parts + 1) * sizeof(*grown));
	if (!grown) {
		free(take->text);
		free(take->name);
		return sba_fail_nomem(err);
	}
	a->parts = grown;
	grown[a->n_parts++] = *take;
	struct sba_model_part *p = &grown[a->n_parts - 1];
	return make_id(p->id, sizeof(p->id), p->kind == SBA_MODEL_TOOL ? "call_" : "part_", err);
}

/* Repeats the text of b until it has `size` bytes, cut between characters. */
static void fill_up(struct sba_buf *b, size_t size)
{
	size_t unit = b->len;
	while (unit && b->len < size && !b->failed) {
		size_t n = size - b->len < unit ? size - b->len : unit;
		char *to = sba_buf_reserve(b, n);
		if (!to)
			return;
		memcpy(to, b->data, n);
		b->len += n;
	}
	if (b->len > size)
		b->len = size;
	while (b->len && !sba_utf8_valid(b->data, b->len))
		b->len--;
	if (b->data)
		b->data[b->len] = '\0';
}

static int add_text(struct sba_model_answer *a, enum sba_model_part_kind kind, struct sba_buf *take,
		    struct sba_error *err)
{
	struct sba_model_part p = { .kind = kind, .len = take->len };
	int rc = sba_buf_check(take, "an answer of the script", err);
	if (rc < 0)
		return rc;
	p.text = sba_buf_take(take);
	return p.text ? add_part(a, &p, err) : sba_fail_nomem(err);
}

static int add_step_text(struct sba_model_answer *a, const json_t *step, const char *key,
			 const struct sba_model_vars *vars, struct sba_error *err)
{
	const char *text = sba_json_str(step, key);
	const json_t *fill = json_object_get(step, "fill");
	bool is_text = !strcmp(key, "text");
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(SBA_MODEL_ANSWER_MAX);
	if (!text)
		return 0;
	int rc = sba_model_expand(text, vars, &b, err);
	if (rc < 0)
		return rc;
	if (fill && is_text) {
		int64_t size = sba_model_number(fill, vars, 0);
		if (size > SBA_MODEL_ANSWER_MAX)
			return sba_fail(err, SBA_ELIMIT, "an answer may have at most %d bytes",
					SBA_MODEL_ANSWER_MAX);
		fill_up(&b, (size_t)size);
	}
	if (!b.len)
		return 0;
	return add_text(a, is_text ? SBA_MODEL_TEXT : SBA_MODEL_THINKING, &b, err);
}

static int add_tools(struct sba_model_answer *a, const json_t *step,
		     const struct sba_model_vars *vars, struct sba_error *err)
{
	size_t i;
	json_t *tool;
	json_array_foreach(json_object_get(step, "tools"), i, tool)
	{
		SBA_JSON json_t *call = NULL;
		struct sba_model_part p = { 0 };
		int rc = sba_model_expand_json(tool, vars, &call, err);
		if (rc == 0)
			rc = sba_model_map_tool(vars->request, call, &p, err);
		if (rc == 0)
			rc = add_part(a, &p, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int set_error(struct sba_model_answer *a, const json_t *error,
		     const struct sba_model_vars *vars, struct sba_error *err)
{
	const char *message = sba_json_str(error, "message");
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(SBA_MODEL_ANSWER_MAX);
	int64_t status = sba_model_number(json_object_get(error, "status"), vars, 500);
	int rc = sba_model_expand(message ? message : "the script says so", vars, &b, err);
	if (rc < 0)
		return rc;
	a->status = status >= 400 && status <= 599 ? (int)status : 500;
	a->retry_after = sba_model_number(json_object_get(error, "retry_after"), vars, 0);
	a->message = sba_buf_take(&b);
	return a->message ? 0 : sba_fail_nomem(err);
}

static void set_usage(struct sba_model_answer *a, const json_t *usage, size_t body_len)
{
	json_int_t output = 0, thinking = 0;
	for (size_t i = 0; i < a->n_parts; i++) {
		json_int_t n = (json_int_t)a->parts[i].len;
		output += n;
		thinking += a->parts[i].kind == SBA_MODEL_THINKING ? n : 0;
	}
	output = sba_json_int(usage, "output", output / BYTES_PER_TOKEN + 1);
	thinking /= BYTES_PER_TOKEN;
	a->output_tokens = output;
	a->thinking_tokens = thinking < output ? thinking : output;
	a->input_tokens = sba_json_int(usage, "input", (json_int_t)body_len / BYTES_PER_TOKEN + 1);
	a->cached_tokens = sba_json_int(usage, "cached", 0);
}

static void set_pace(struct sba_model_answer *a, const json_t *step)
{
	a->chunk = (size_t)sba_json_int(step, "chunk", 0);
	a->delay_ms = sba_json_int(step, "delay_ms", 0);
	a->stall_ms = sba_json_int(step, "stall_ms", 0);
	a->cut_after = (size_t)sba_json_int(step, "cut_after_bytes", 0);
	a->cut_short = json_object_get(step, "stop") != NULL;
}

static int plan_step(struct sba_model_answer *a, const json_t *step,
		     const struct sba_model_vars *vars, struct sba_error *err)
{
	const json_t *error = json_object_get(step, "error");
	set_pace(a, step);
	if (error)
		return set_error(a, error, vars, err);
	int rc = add_step_text(a, step, "thinking", vars, err);
	if (rc == 0)
		rc = add_step_text(a, step, "text", vars, err);
	if (rc == 0)
		rc = add_tools(a, step, vars, err);
	if (rc < 0)
		return rc;
	set_usage(a, json_object_get(step, "usage"), vars->request->body_len);
	return 0;
}

static int plan_title(struct sba_model_answer *a, const struct sba_model_request *r,
		      struct sba_error *err)
{
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(SBA_KIB);
	sba_buf_puts(&b, "Scripted session");
	int rc = add_text(a, SBA_MODEL_TEXT, &b, err);
	set_usage(a, NULL, r->body_len);
	return rc;
}

/* Not an error that a CLI tries again. */
static int plan_no_rule(struct sba_model_answer *a, const char *prompt, struct sba_error *err)
{
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(SBA_KIB);
	sba_buf_puts(&b, "no rule of the script matches: ");
	sba_buf_put_utf8(&b, prompt, strnlen(prompt, 200));
	a->status = 400;
	a->message = sba_buf_take(&b);
	return a->message ? 0 : sba_fail_nomem(err);
}

int sba_model_plan(const json_t *script, const struct sba_model_request *r,
		   struct sba_model_answer *a, struct sba_error *err)
{
	struct sba_model_vars vars = { .request = r };
	*a = (struct sba_model_answer){
		.status = 200,
		.created = sba_unix_ms() / 1000,
		.with_usage = r->with_usage,
		.model = strdup(r->model),
	};
	if (!a->model)
		return sba_fail_nomem(err);
	int rc = make_id(a->id, sizeof(a->id), "resp_", err);
	if (rc < 0)
		return rc;
	if (r->title)
		return plan_title(a, r, err);
	const json_t *rule = find_rule(script, prompt_of(r), &vars.rest);
	if (!rule)
		return plan_no_rule(a, prompt_of(r), err);
	return plan_step(a, find_step(rule, r->step), &vars, err);
}

bool sba_model_answer_has_tools(const struct sba_model_answer *a)
{
	for (size_t i = 0; i < a->n_parts; i++)
		if (a->parts[i].kind == SBA_MODEL_TOOL)
			return true;
	return false;
}

void sba_model_answer_fini(struct sba_model_answer *a)
{
	for (size_t i = 0; i < a->n_parts; i++) {
		free(a->parts[i].text);
		free(a->parts[i].name);
	}
	free(a->parts);
	free(a->model);
	free(a->message);
	*a = (struct sba_model_answer){ 0 };
}
