/* SPDX-License-Identifier: MIT */
/*
 * The parser of command lines. It is driven by the same tables as help and
 * completion, so that the three cannot drift apart.
 */
#include "cli.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct parser {
	const struct cli_scope *scopes;
	size_t n;
	char **next; /* the word after the one being looked at */
	struct cli_args *args;
	struct sba_error *err;
};

/* What was found: the option, and the struct that its value goes into. */
struct match {
	const struct cli_option *option;
	void *base;
};

static bool find(const struct parser *p, const char *name, size_t len, char letter,
		 struct match *ret)
{
	for (size_t i = 0; i < p->n; i++) {
		const struct cli_option *o = p->scopes[i].options;
		for (; o && o->name; o++) {
			bool same = name ? strlen(o->name) == len && !strncmp(o->name, name, len)
					 : letter && o->letter == letter;
			if (same) {
				*ret = (struct match){ o, p->scopes[i].base };
				return true;
			}
		}
	}
	return false;
}

enum { NAMES_MAX = 128, NEAR_MAX = 64 };

static const char *nearest(const struct parser *p, const char *word)
{
	const char *names[NAMES_MAX];
	size_t n = 0;
	for (size_t i = 0; i < p->n; i++) {
		const struct cli_option *o = p->scopes[i].options;
		for (; o && o->name && n < NAMES_MAX; o++)
			names[n++] = o->name;
	}
	int i = sba_nearest(word, names, n);
	return i < 0 ? NULL : names[i];
}

static bool command_has(const struct cli_command *c, const char *name)
{
	for (size_t t = 0; t < CLI_TABLES_MAX; t++) {
		for (const struct cli_option *o = c->tables[t]; o && o->name; o++) {
			if (!strcmp(o->name, name))
				return true;
		}
	}
	return false;
}

/* The commands that have an option of that name; "" where there are none. */
static void owners(const char *name, char *ret, size_t size)
{
	size_t len = 0;
	ret[0] = '\0';
	for (size_t i = 0; cli_commands[i]; i++) {
		if (len < size && command_has(cli_commands[i], name))
			len += (size_t)snprintf(ret + len, size - len, "%s%s", len ? ", " : "",
						cli_commands[i]->name);
	}
}

static int unknown_long(const struct parser *p, const char *word, size_t len)
{
	char name[NEAR_MAX];
	snprintf(name, sizeof(name), "%.*s", (int)(len < NEAR_MAX ? len : NEAR_MAX - 1), word);
	const char *near = nearest(p, name);
	char hint[160], of[96];
	owners(name, of, sizeof(of));
	if (of[0])
		snprintf(hint, sizeof(hint), "it is an option of: %s", of);
	else if (near)
		snprintf(hint, sizeof(hint), "did you mean --%s?", near);
	else
		snprintf(hint, sizeof(hint),
			 "what is not meant as an option goes after --:  -- \"--%s\"", name);
	return cli_fail(p->err, SBA_EINVAL, hint, "unknown option --%s", name);
}

static int unknown_letter(const struct parser *p, const char *word, char letter)
{
	char hint[160];
	snprintf(hint, sizeof(hint), "what is not meant as an option goes after --:  -- \"%.64s\"",
		 word);
	return cli_fail(p->err, SBA_EINVAL, hint, "unknown option -%c", letter);
}

static bool choice_allowed(const char *choices, const char *value)
{
	size_t len = strlen(value);
	for (const char *c = choices; c;) {
		size_t n = strcspn(c, "|");
		if (n == len && !strncmp(c, value, n))
			return true;
		c = c[n] ? c + n + 1 : NULL;
	}
	return false;
}

static int bad_value(const struct cli_option *o, const char *value, const char *what,
		     struct sba_error *err)
{
	return cli_fail(err, SBA_EINVAL, NULL, "--%s: '%s' is not %s", o->name, value, what);
}

static int put_string(const struct cli_option *o, const char *value, const char **field,
		      struct sba_error *err)
{
	if (strchr(o->arg, '|') && !choice_allowed(o->arg, value)) {
		char what[128];
		snprintf(what, sizeof(what), "one of %s", o->arg);
		return bad_value(o, value, what, err);
	}
	*field = value;
	return 0;
}

static int put_duration(const struct cli_option *o, const char *value, int64_t *field,
			struct sba_error *err)
{
	int64_t ms;
	if (sba_parse_duration(value, &ms) < 0)
		return bad_value(o, value, "a time (as in 90s, 30m, 1.5h; 0: none)", err);
	*field = ms == 0 ? -1 : ms;
	return 0;
}

static int put_size(const struct cli_option *o, const char *value, int64_t *field,
		    struct sba_error *err)
{
	int64_t bytes;
	if (sba_parse_size(value, &bytes) < 0)
		return bad_value(o, value, "a size (as in 512m, 2g)", err);
	if (bytes < o->min) {
		char least[32], what[64];
		snprintf(what, sizeof(what), "enough: at least %s",
			 sba_format_size(o->min, least, sizeof(least)));
		return bad_value(o, value, what, err);
	}
	*field = bytes;
	return 0;
}

static int put_int(const struct cli_option *o, const char *value, int64_t *field,
		   struct sba_error *err)
{
	char *end;
	errno = 0;
	long long v = strtoll(value, &end, 10);
	if (end == value || *end || errno || v < o->min || v > INT32_MAX) {
		char what[64];
		snprintf(what, sizeof(what), "a whole number from %lld on", (long long)o->min);
		return bad_value(o, value, what, err);
	}
	*field = v;
	return 0;
}

static int put_double(const struct cli_option *o, const char *value, double *field,
		      struct sba_error *err)
{
	char *end;
	double v = strtod(value, &end);
	if (end == value || *end || !isfinite(v) || v <= 0)
		return bad_value(o, value, "a number above 0 (as in 2 or 0.5)", err);
	*field = v;
	return 0;
}

static int put_list(const char *value, struct cli_list *list, struct sba_error *err)
{
	const char **v = realloc(list->v, (list->n + 2) * sizeof(*v));
	if (!v)
		return cli_fail_nomem(err);
	list->v = v;
	v[list->n++] = value;
	v[list->n] = NULL;
	return 0;
}

static void note_given(struct cli_args *args, const struct cli_option *o)
{
	if (!cli_given(args, o->name) && args->given_n < CLI_LEN(args->given))
		args->given[args->given_n++] = o;
}

static int put(const struct parser *p, const struct match *m, const char *value)
{
	const struct cli_option *o = m->option;
	struct sba_error *err = p->err;
	note_given(p->args, o);
	void *field = (char *)m->base + o->offset;
	switch (o->type) {
	case CLI_FLAG:
		*(bool *)field = true;
		return 0;
	case CLI_STRING:
		return put_string(o, value, field, err);
	case CLI_DURATION:
		return put_duration(o, value, field, err);
	case CLI_SIZE:
		return put_size(o, value, field, err);
	case CLI_INT:
		return put_int(o, value, field, err);
	case CLI_DOUBLE:
		return put_double(o, value, field, err);
	case CLI_LIST:
		return put_list(value, field, err);
	}
	return cli_fail(err, SBA_EINVAL, NULL, "--%s: no such type", o->name);
}

/* The value of an option: what is glued to it, else the next word. */
static const char *value_of(struct parser *p, const char *glued)
{
	if (glued)
		return glued;
	return *p->next ? *p->next++ : NULL;
}

static int missing_value(const struct cli_option *o, struct sba_error *err)
{
	return cli_fail(err, SBA_EINVAL, NULL, "--%s needs a value: %s", o->name, o->arg);
}

static int parse_long(struct parser *p, const char *word)
{
	size_t len = strcspn(word, "=");
	const char *glued = word[len] ? word + len + 1 : NULL;
	struct match m;
	if (!find(p, word, len, 0, &m))
		return unknown_long(p, word, len);
	if (m.option->type == CLI_FLAG) {
		if (glued)
			return cli_fail(p->err, SBA_EINVAL, NULL, "--%s takes no value",
					m.option->name);
		return put(p, &m, NULL);
	}
	const char *value = value_of(p, glued);
	return value ? put(p, &m, value) : missing_value(m.option, p->err);
}

/* "-it", "-eK=V", "-e K=V". */
static int parse_letters(struct parser *p, const char *word)
{
	for (const char *c = word + 1; *c; c++) {
		struct match m;
		if (!find(p, NULL, 0, *c, &m))
			return unknown_letter(p, word, *c);
		if (m.option->type == CLI_FLAG) {
			put(p, &m, NULL);
			continue;
		}
		const char *value = value_of(p, c[1] ? c + 1 : NULL);
		return value ? put(p, &m, value) : missing_value(m.option, p->err);
	}
	return 0;
}

static void take_rest(struct parser *p)
{
	while (*p->next)
		p->args->v[p->args->n++] = *p->next++;
}

/* "- a list" is a prompt: no option is called so. */
static int parse_words(struct parser *p, int verbatim_after)
{
	while (*p->next) {
		char *word = *p->next++;
		int rc = 0;
		if (!strcmp(word, "--")) {
			take_rest(p);
		} else if (!strncmp(word, "--", 2)) {
			rc = parse_long(p, word + 2);
		} else if (word[0] == '-' && word[1] && !strchr(" \t\n", word[1])) {
			rc = parse_letters(p, word);
		} else {
			p->args->v[p->args->n++] = word;
			if (p->args->n > verbatim_after)
				take_rest(p);
		}
		if (rc < 0)
			return rc;
	}
	return 0;
}

int cli_parse(const struct cli_scope *scopes, size_t n, char **argv, int verbatim_after,
	      struct cli_args *ret, struct sba_error *err)
{
	size_t words = 0;
	while (argv[words])
		words++;
	struct cli_args args = { .v = calloc(words + 1, sizeof(*args.v)) };
	if (!args.v)
		return cli_fail_nomem(err);
	struct parser p = { .scopes = scopes, .n = n, .next = argv, .args = &args, .err = err };
	int rc = parse_words(&p, verbatim_after);
	if (rc < 0)
		cli_args_free(&args);
	else
		*ret = args;
	return rc;
}

bool cli_given(const struct cli_args *args, const char *name)
{
	for (size_t i = 0; i < args->given_n; i++) {
		if (!strcmp(args->given[i]->name, name))
			return true;
	}
	return false;
}

void cli_args_free(struct cli_args *args)
{
	free(args->v);
	*args = (struct cli_args){ 0 };
}

void cli_scopes_free(const struct cli_scope *scopes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct cli_option *o = scopes[i].options;
		for (; o && o->name; o++) {
			if (o->type != CLI_LIST)
				continue;
			struct cli_list *list = (void *)((char *)scopes[i].base + o->offset);
			free(list->v);
			*list = (struct cli_list){ 0 };
		}
	}
}
