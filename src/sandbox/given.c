/* SPDX-License-Identifier: MIT */
/*
 * Sandboxes that another module makes and finds again: by marks, which say of one what
 * labels say of containers, in so few and plain words that any service can keep them.
 */
#include "sandbox/carried.h"

#include <stdlib.h>
#include <string.h>

/* ---- marks ---- */

const char *sba_marks_get(const json_t *marks, const char *name)
{
	return sba_label_get(marks, name);
}

int sba_marks_set(json_t *marks, const char *name, const char *value, struct sba_error *err)
{
	char key[64];
	snprintf(key, sizeof(key), SBA_LABEL "%s", name);
	if (!value || !*value)
		return 0;
	if (json_object_set_new(marks, key, json_string(value)) < 0)
		return sba_fail(err, SBA_EINVAL, "%s: it is not UTF-8", name);
	return 0;
}

static int set_number(json_t *marks, const char *name, int64_t value, struct sba_error *err)
{
	char text[32];
	snprintf(text, sizeof(text), "%lld", (long long)value);
	return sba_marks_set(marks, name, text, err);
}

static int check_words(const struct sba_sandbox_options *o, struct sba_error *err)
{
	int rc = o->name ? sba_name_check("name", o->name, err) : 0;
	if (rc == 0 && o->prefix)
		rc = sba_name_check("prefix", o->prefix, err);
	return rc == 0 && o->tag ? sba_name_check("tag", o->tag, err) : rc;
}

/* 0 is the default, which is said. */
static int set_times(json_t *marks, const struct sba_sandbox_options *o, struct sba_error *err)
{
	int rc = set_number(marks, "created", sba_unix_ms() / 1000, err);
	if (rc == 0)
		rc = set_number(marks, "keepalive", o->keepalive_ms > 0 ? o->keepalive_ms : 0, err);
	if (rc == 0)
		rc = set_number(marks, "max-lifetime",
				o->max_lifetime_ms > 0 ? o->max_lifetime_ms : 0, err);
	return rc == 0 ? set_number(marks, "schema", SBA_LABEL_SCHEMA, err) : rc;
}

int sba_marks_make(const struct sba_sandbox_options *o, json_t **ret, struct sba_error *err)
{
	char name[SBA_NAME_MAX], id[SBA_SANDBOX_ID_LEN + 1];
	int rc = check_words(o, err);
	if (rc == 0)
		rc = sba_random_hex(id, SBA_SANDBOX_ID_LEN / 2, err);
	if (rc == 0 && !o->name)
		rc = sba_name_make(name, err);
	if (rc < 0)
		return rc;
	SBA_JSON json_t *marks = json_object();
	if (!marks)
		return sba_fail_nomem(err);
	const char *const words[][2] = {
		{ "id", id },
		{ "name", o->name ? o->name : name },
		{ "prefix", o->prefix ? o->prefix : SBA_DEFAULT_PREFIX },
		{ "tag", o->tag },
		{ "network", o->network },
		{ "version", SBA_VERSION },
	};
	for (size_t i = 0; rc == 0 && i < SBA_ARRAY_LEN(words); i++)
		rc = sba_marks_set(marks, words[i][0], words[i][1], err);
	if (rc == 0)
		rc = set_times(marks, o, err);
	if (rc == 0)
		*ret = sba_move(&marks);
	return rc;
}

bool sba_marks_are(const json_t *marks, const char *prefix, const char *name)
{
	return *sba_label_get(marks, "id") && *sba_label_get(marks, "name") &&
	       (!prefix || strcmp(sba_label_get(marks, "prefix"), prefix) == 0) &&
	       (!name || strcmp(sba_label_get(marks, "name"), name) == 0);
}

/* ---- handles, lists ---- */

/* Of a service's own words one that is ours. */
static const char *state_of(const json_t *marks)
{
	static const char *const states[] = { "created", "paused", "changing", "gone", "broken" };
	const char *state = sba_label_get(marks, "state");
	for (size_t i = 0; i < SBA_ARRAY_LEN(states); i++) {
		if (strcmp(states[i], state) == 0)
			return states[i];
	}
	return "idle";
}

/* Its name says where it is: what is asked for by it is looked for there. */
static int describe(struct sba_sandbox *s, const char *backend, const json_t *marks)
{
	char name[2 * SBA_NAME_MAX];
	snprintf(name, sizeof(name), "%s/%s", backend, sba_label_get(marks, "name"));
	json_decref(s->labels);
	s->labels = sba_labels_with_name(marks, name);
	if (!s->labels)
		return SBA_ENOMEM;
	sba_labels_read(s->labels, &s->info);
	s->info.state = state_of(s->labels);
	s->info.reason = "";
	return 0;
}

int sba_sandbox_give(const struct sba_given *g, struct sba_sandbox **ret, struct sba_error *err)
{
	struct sba_sandbox *s = NULL;
	int rc = sba_sandbox_new_of(g->backend, sba_label_get(g->marks, "name"),
				    g->carries ? sba_carried_open : NULL, &s, err);
	if (rc < 0)
		return rc;
	if (describe(s, g->backend->name, g->marks) < 0) {
		s->backend = NULL; /* self is still the caller's */
		sba_sandbox_close(s);
		return sba_fail_nomem(err);
	}
	s->self = g->self;
	s->cancel = g->cancel;
	s->carries = g->carries;
	*ret = s;
	return 0;
}

static int add(struct sba_sandbox_list *l, const char *backend, const json_t *marks,
	       const struct sba_list_options *o)
{
	struct sba_sandbox *s = sba_found_new(&l->found, NULL);
	if (!s || describe(s, backend, marks) < 0)
		return SBA_ENOMEM;
	if (sba_list_wants(s, o))
		return 0;
	json_decref(s->labels);
	l->found.n--;
	return 0;
}

int sba_sandbox_list_given(const char *backend, const json_t *all, const struct sba_list_options *o,
			   struct sba_sandbox_list **ret, struct sba_error *err)
{
	struct sba_sandbox_list *l = calloc(1, sizeof(*l));
	if (!l)
		return sba_fail_nomem(err);
	const json_t *marks;
	size_t i;
	json_array_foreach((json_t *)(uintptr_t)all, i, marks)
	{
		if (add(l, backend, marks, o) < 0) {
			sba_sandbox_list_free(l);
			return sba_fail_nomem(err);
		}
	}
	sba_list_sort(l);
	*ret = l;
	return 0;
}
