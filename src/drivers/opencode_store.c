/* SPDX-License-Identifier: MIT */
/*
 * opencode's sessions are rows of one database; its own commands take them
 * out and put them in (1.18.33). Ids of messages and parts are keys of that
 * database: a copy under another name needs new ones throughout.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/drivers.h"
#include "drivers/store_files.h"

enum { LIST_MAX = 16 * SBA_MIB, ID_LEN = 30, ID_END = 8 };

static int run(const struct sba_inside *in, const char *const *argv, struct sba_buf *out,
	       struct sba_error *err)
{
	static const char *const env[] = { "OPENCODE_DISABLE_MODELS_FETCH=1",
					   "OPENCODE_DISABLE_AUTOUPDATE=1", NULL };
	const struct sba_inside_run r = { .argv = argv, .env = env };
	char said[SBA_SAID_MAX] = "";
	int status = 0;
	int rc = in->run(in, &r, out, &status, said, err);
	if (rc < 0 || status == 0)
		return rc;
	bool missing = strstr(said, "not found") != NULL;
	return sba_fail(err, missing ? SBA_ENOTFOUND : SBA_EIO, "opencode %s %s: %s", argv[1],
			argv[2], *said ? said : "it failed without a word");
}

static int no_session(const char *id, struct sba_error *err)
{
	return sba_fail(err, SBA_ENOTFOUND, "opencode keeps no session '%s'", id);
}

/* ---- list ---- */

/* Its database knows more than its list: the model and the first prompt, which is the
 * title where opencode itself made one up (we turn its own request for one off). */
#define MADE_UP_TITLE "New session - "
static const char query[] =
	"select s.id, s.title, s.directory, s.time_created created, s.time_updated updated,"
	" json_extract(s.model, '$.id') model,"
	" (select substr(json_extract(p.data, '$.text'), 1, 400) from part p"
	"  where p.session_id = s.id and json_extract(p.data, '$.type') = 'text'"
	"  order by p.id limit 1) prompt"
	" from session s where s.parent_id is null";

static void take_title(const json_t *j, struct sba_kept *k)
{
	const char *title = sba_json_str(j, "title");
	if (!title || sba_starts_with(title, MADE_UP_TITLE))
		sba_kept_title(k, sba_json_str(j, "prompt"));
	sba_kept_set(&k->title, title);
}

static int take(const json_t *j, struct sba_kept *k, struct sba_error *err)
{
	snprintf(k->id, sizeof(k->id), "%s", sba_json_str(j, "id"));
	const char *dir = sba_json_str(j, "directory"), *parent = sba_json_str(j, "parentID");
	const char *model = sba_json_str(j, "model");
	k->created_ms = sba_json_int(j, "created", sba_json_int(j, "time.created", 0));
	k->updated_ms = sba_json_int(j, "updated", sba_json_int(j, "time.updated", 0));
	take_title(j, k);
	if (!k->title)
		k->title = strdup("");
	k->workdir = strdup(dir ? dir : "");
	k->parent = strdup(parent ? parent : "");
	k->model = strdup(model ? model : "");
	return k->title && k->workdir && k->parent && k->model ? 0 : sba_fail_nomem(err);
}

static int newest_first(const void *a, const void *b)
{
	const struct sba_kept *x = a, *y = b;
	return (x->updated_ms < y->updated_ms) - (x->updated_ms > y->updated_ms);
}

static int take_all(const json_t *array, struct sba_kept_list *ret, struct sba_error *err)
{
	struct sba_kept_list l = { 0 };
	size_t i;
	const json_t *j;
	int rc = 0;
	if (json_array_size(array) > 0 && !(l.v = calloc(json_array_size(array), sizeof(*l.v))))
		return sba_fail_nomem(err);
	json_array_foreach(array, i, j)
	{
		const char *id = sba_json_str(j, "id");
		if (rc == 0 && id && sba_session_id_valid(id))
			rc = take(j, &l.v[l.n++], err);
	}
	if (rc < 0) {
		sba_kept_list_fini(&l);
		return rc;
	}
	if (l.n > 0)
		qsort(l.v, l.n, sizeof(*l.v), newest_first);
	*ret = l;
	return 0;
}

static int list_by(const struct sba_inside *in, const char *const *argv, struct sba_kept_list *ret,
		   struct sba_error *err)
{
	SBA_BUF struct sba_buf out = SBA_BUF_INIT(LIST_MAX);
	SBA_JSON json_t *array = NULL;
	int rc = run(in, argv, &out, err);
	if (rc == 0 && out.len > 0)
		rc = sba_json_parse(out.data, out.len, "opencode's sessions", &array, err);
	return rc < 0 ? rc : take_all(array, ret, err);
}

/* Of another version the tables may be others; the list is its promise. */
static int list(const struct sba_store *st, const struct sba_inside *in, struct sba_kept_list *ret,
		struct sba_error *err)
{
	static const char *const ask[] = { "opencode", "db", query, "--format", "json", NULL };
	static const char *const plain[] = {
		"opencode", "session", "list", "--format", "json", NULL
	};
	struct sba_error why = { 0 };
	(void)st;
	int rc = list_by(in, ask, ret, &why);
	if (rc == SBA_EIO || rc == SBA_ENOTFOUND || rc == SBA_EPROTO)
		return list_by(in, plain, ret, err);
	if (rc < 0 && err)
		*err = why;
	return rc;
}

/* ---- out ---- */

/* It does not always say why it failed: the list knows. */
static int no_session_or(const struct sba_store *st, const struct sba_inside *in, const char *id,
			 const struct sba_error *why, struct sba_error *err)
{
	struct sba_kept_list l = { 0 };
	bool there = false;
	if (why->code == SBA_ENOTFOUND)
		return no_session(id, err);
	int rc = why->code == SBA_EIO ? list(st, in, &l, NULL) : why->code;
	for (size_t i = 0; rc == 0 && i < l.n; i++)
		there = there || strcmp(l.v[i].id, id) == 0;
	sba_kept_list_fini(&l);
	if (rc == 0 && !there)
		return no_session(id, err);
	if (err)
		*err = *why;
	return why->code;
}

static int dump(const struct sba_store *st, const struct sba_inside *in, const char *id,
		struct sba_parts *ret, struct sba_error *err)
{
	const char *const argv[] = { "opencode", "export", id, NULL };
	SBA_BUF struct sba_buf out = SBA_BUF_INIT(SBA_SESSION_MAX);
	SBA_JSON json_t *j = NULL;
	struct sba_error why = { 0 };
	if (run(in, argv, &out, &why) < 0)
		return no_session_or(st, in, id, &why, err);
	int rc = sba_json_parse(out.data ? out.data : "", out.len, "opencode's export", &j, err);
	const char *told = sba_json_str(j, "info.id");
	if (rc == 0 && (!told || strcmp(told, id) != 0))
		rc = sba_fail(err, SBA_EPROTO, "opencode's export is not of session '%s'", id);
	return rc < 0 ? rc : sba_parts_add(ret, "session", &out, err);
}

/* ---- in ---- */

/* "ses_", "msg_", "prt_" and 26 letters and digits, which begin with a time. */
static bool is_id(const char *s)
{
	static const char *const kinds[] = { "ses_", "msg_", "prt_" };
	bool known = false;
	for (size_t i = 0; i < SBA_ARRAY_LEN(kinds); i++)
		known = known || sba_starts_with(s, kinds[i]);
	if (!known || strlen(s) != ID_LEN)
		return false;
	for (s += 4; *s; s++) {
		if (!isalnum((unsigned char)*s))
			return false;
	}
	return true;
}

/* Every id gets the end of the new session's: what two ids of one session differ in
 * lies before it. */
static json_t *renamed(const json_t *j, const char *was, const char *id)
{
	const char *s = json_string_value(j);
	if (strcmp(s, was) == 0)
		return json_string(id);
	if (!is_id(s) || strncmp(s, "ses_", 4) == 0)
		return NULL;
	return json_sprintf("%.*s%s", ID_LEN - ID_END, s, id + strlen(id) - ID_END);
}

static int rename_ids(json_t *j, const char *was, const char *id)
{
	const char *key;
	json_t *value, *other;
	size_t i;
	int bad = 0;
	json_object_foreach(j, key, value)
	{
		if (!json_is_string(value))
			bad |= rename_ids(value, was, id);
		else if ((other = renamed(value, was, id)))
			bad |= json_object_set_new(j, key, other);
	}
	json_array_foreach(j, i, value)
	{
		if (!json_is_string(value))
			bad |= rename_ids(value, was, id);
		else if ((other = renamed(value, was, id)))
			bad |= json_array_set_new(j, i, other);
	}
	return bad;
}

static int import(const struct sba_inside *in, const void *data, size_t len, struct sba_error *err)
{
	char path[SBA_SCRATCH_MAX], random[17];
	SBA_BUF struct sba_buf out = SBA_BUF_INIT(SBA_MIB);
	int rc = sba_random_hex(random, 8, err);
	if (rc < 0)
		return rc;
	snprintf(path, sizeof(path), "%s/.sandbox-agent-%s.json", in->home, random);
	const char *const argv[] = { "opencode", "import", path, NULL };
	const char *const rm[] = { "rm", "-f", path, NULL };
	rc = in->write(in, path, data, len, 0600, err);
	if (rc == 0)
		rc = run(in, argv, &out, err);
	sba_buf_reset(&out);
	struct sba_error dropped;
	(void)run(in, rm, &out, &dropped);
	return rc;
}

static int remove_session(const struct sba_store *st, const struct sba_inside *in, const char *id,
			  struct sba_error *err)
{
	const char *const argv[] = { "opencode", "session", "delete", id, NULL };
	SBA_BUF struct sba_buf out = SBA_BUF_INIT(SBA_MIB);
	struct sba_error why = { 0 };
	return run(in, argv, &out, &why) < 0 ? no_session_or(st, in, id, &why, err) : 0;
}

static int load(const struct sba_store *st, const struct sba_inside *in,
		const struct sba_parts *parts, const char *was, const char *id,
		struct sba_error *err)
{
	SBA_JSON json_t *j = NULL;
	int rc = sba_json_parse(parts->v[0].data, parts->v[0].len, "the session", &j, err);
	const char *told = sba_json_str(j, "info.id");
	if (rc == 0 && (!told || strcmp(told, was) != 0 || strlen(id) < ID_END))
		rc = sba_fail(err, SBA_EPROTO, "this is no session of opencode");
	if (rc == 0 && strcmp(was, id) != 0 && rename_ids(j, was, id))
		rc = sba_fail_nomem(err);
	SBA_FREE char *text = rc == 0 ? sba_json_dump(j) : NULL;
	if (rc == 0 && !text)
		rc = sba_fail_nomem(err);
	if (rc < 0)
		return rc;
	/* An import onto one that is there keeps its later messages. */
	rc = remove_session(st, in, id, err);
	if (rc < 0 && rc != SBA_ENOTFOUND)
		return rc;
	return import(in, text, strlen(text), err);
}

/* The whole database: sessions are rows of it. Nobody writes meanwhile: a turn
 * aside has the session's lock. */
static int aside(const struct sba_store *st, const struct sba_inside *in, const char *id,
		 const char *scratch, struct sba_error *err)
{
	static const char script[] = "cp -- \"$1\"/.local/share/opencode/opencode.db* \"$2\"/";
	const char *const argv[] = { "sh", "-c", script, "sh", in->home, scratch, NULL };
	SBA_BUF struct sba_buf out = SBA_BUF_INIT(SBA_MIB);
	(void)st;
	(void)id;
	return run(in, argv, &out, err);
}

const struct sba_store sba_opencode_store = {
	.list = list,
	.dump = dump,
	.load = load,
	.remove = remove_session,
	.aside = aside,
};
