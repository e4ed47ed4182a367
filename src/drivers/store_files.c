/* SPDX-License-Identifier: MIT */
/*
 * Sessions as files of JSON lines. What is in them came from inside and is
 * only looked at; it goes back as it was, but for the first line.
 */
#include "drivers/store_files.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "drivers/private.h"

enum {
	TITLE_MAX = 80,
	FOUND_MAX = 4 * SBA_MIB, /* the list of a find */
};

/* ---- for the looks ---- */

void sba_kept_set(char **to, const char *text)
{
	if (text && *text && (!*to || !**to)) {
		free(*to);
		*to = strdup(text);
	}
}

void sba_kept_title(struct sba_kept *k, const char *prompt)
{
	if (!prompt || (k->title && *k->title))
		return;
	prompt += strspn(prompt, " \t\r\n");
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(8 * SBA_KIB);
	size_t len = strcspn(prompt, "\r\n"), max = sba_text_cut(prompt, TITLE_MAX);
	sba_buf_put_utf8(&b, prompt, len < max ? len : max);
	if (len > max)
		sba_buf_puts(&b, "…");
	sba_kept_set(&k->title, b.data);
}

int64_t sba_kept_time(const char *text)
{
	struct tm tm = { 0 };
	const char *rest = text ? strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;
	int ms = 0;
	if (!rest)
		return 0;
	if (*rest == '.' && sscanf(rest, ".%3d", &ms) != 1)
		ms = 0;
	return (int64_t)timegm(&tm) * 1000 + ms;
}

void sba_kept_mangle(struct sba_buf *b, const char *workdir)
{
	for (; *workdir; workdir++)
		sba_buf_putc(b, isalnum((unsigned char)*workdir) ? *workdir : '-');
}

void sba_kept_put_folder(struct sba_buf *b, const char *workdir)
{
	sba_buf_puts(b, "--");
	for (workdir += *workdir == '/'; *workdir; workdir++)
		sba_buf_putc(b, *workdir == '/' ? '-' : *workdir);
	sba_buf_puts(b, "--/");
}

const char *sba_kept_text(const json_t *content)
{
	size_t i;
	const json_t *block;
	if (json_is_string(content))
		return json_string_value(content);
	json_array_foreach(content, i, block)
	{
		const char *text = sba_json_str(block, "text");
		if (text)
			return text;
	}
	return NULL;
}

/* ---- finding ---- */

/* A file that a find has told of. */
struct found {
	char *path; /* whole */
	int64_t mtime_ms;
	char id[SBA_SESSION_ID_MAX + 1];
};
struct found_list {
	struct found *v;
	size_t n;
};

static void found_fini(struct found_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->v[i].path);
	free(l->v);
}

static void root_of(const struct sba_file_store *f, const struct sba_inside *in, struct sba_buf *b)
{
	sba_buf_puts(b, in->home);
	sba_buf_putc(b, '/');
	sba_buf_puts(b, f->root);
}

/* "SECONDS.FRACTION PATH", as the inside says it. */
static int take_found(const struct sba_file_store *f, size_t root_len, const char *text,
		      struct found_list *l, struct sba_error *err)
{
	char *end;
	long long seconds = strtoll(text, &end, 10);
	struct found one = { .mtime_ms = seconds > 0 && seconds < INT64_MAX / 1000 ? 1000 * seconds
										   : 0 };
	const char *path = strchr(end, ' ');
	if (!path || strlen(path) < root_len + 2 || !f->id_of(path + 1 + root_len + 1, one.id) ||
	    !sba_session_id_valid(one.id) || l->n == SBA_SESSIONS_MAX)
		return 0;
	struct found *grown = realloc(l->v, (l->n + 1) * sizeof(*grown));
	if (!grown)
		return sba_fail_nomem(err);
	l->v = grown;
	one.path = strdup(path + 1);
	if (!one.path)
		return sba_fail_nomem(err);
	l->v[l->n++] = one;
	return 0;
}

static int newest_first(const void *a, const void *b)
{
	const struct found *x = a, *y = b;
	return (x->mtime_ms < y->mtime_ms) - (x->mtime_ms > y->mtime_ms);
}

/* Every session file, or only those of `id`. */
static int find(const struct sba_file_store *f, const struct sba_inside *in, const char *id,
		struct found_list *ret, struct sba_error *err)
{
	SBA_BUF struct sba_buf root = SBA_BUF_INIT(4 * SBA_KIB), out = SBA_BUF_INIT(FOUND_MAX);
	char pattern[SBA_SESSION_ID_MAX + 16] = "*.jsonl", said[SBA_SAID_MAX] = "";
	int status;
	root_of(f, in, &root);
	if (id && !f->own_folder)
		snprintf(pattern, sizeof(pattern), "*%s.jsonl", id);
	int rc = sba_buf_check(&root, "path", err);
	/* No such folder is no session: what it exits with does not matter. */
	const char *const argv[] = { "find",  root.data, "-type",     "f", "-name",
				     pattern, "-printf", "%T@ %p\\0", NULL };
	const struct sba_inside_run run = { .argv = argv };
	if (rc == 0)
		rc = in->run(in, &run, &out, &status, said, err);
	struct found_list l = { 0 };
	for (size_t at = 0; rc == 0 && at < out.len; at += strlen(out.data + at) + 1)
		rc = take_found(f, root.len, out.data + at, &l, err);
	for (size_t i = 0; id && i < l.n;) {
		if (strcmp(l.v[i].id, id) == 0) {
			i++;
			continue;
		}
		free(l.v[i].path);
		l.v[i] = l.v[--l.n];
	}
	if (rc < 0) {
		found_fini(&l);
		return rc;
	}
	if (l.n > 0)
		qsort(l.v, l.n, sizeof(*l.v), newest_first);
	*ret = l;
	return 0;
}

static int find_one(const struct sba_file_store *f, const struct sba_inside *in, const char *id,
		    struct found_list *ret, struct sba_error *err)
{
	int rc = find(f, in, id, ret, err);
	if (rc == 0 && ret->n == 0)
		rc = sba_fail(err, SBA_ENOTFOUND, "%s keeps no session '%s'", f->cli, id);
	return rc;
}

/* ---- list ---- */

static void look_at(const struct sba_file_store *f, const struct sba_buf *text, struct sba_kept *k)
{
	for (size_t at = 0; at < text->len;) {
		const char *line = text->data + at;
		const char *end = memchr(line, '\n', text->len - at);
		size_t len = end ? (size_t)(end - line) : text->len - at;
		SBA_JSON json_t *j = NULL;
		if (sba_json_parse(line, len, "line", &j, NULL) == 0 && json_is_object(j))
			f->look(k, j);
		at += len + 1;
	}
}

static int list_one(const struct sba_file_store *f, const struct sba_inside *in,
		    const struct found *one, struct sba_kept *k, struct sba_error *err)
{
	SBA_BUF struct sba_buf text = SBA_BUF_INIT(2 * SBA_SESSION_LOOK);
	char bytes[24], said[SBA_SAID_MAX] = "";
	int status;
	snprintf(bytes, sizeof(bytes), "%d", SBA_SESSION_LOOK);
	const char *const argv[] = { "head", "-c", bytes, "--", one->path, NULL };
	const struct sba_inside_run run = { .argv = argv };
	int rc = in->run(in, &run, &text, &status, said, err);
	if (rc < 0)
		return rc;
	*k = (struct sba_kept){ .updated_ms = one->mtime_ms };
	snprintf(k->id, sizeof(k->id), "%s", one->id);
	look_at(f, &text, k);
	char **const strings[] = { &k->title, &k->model, &k->parent, &k->workdir };
	for (size_t i = 0; i < SBA_ARRAY_LEN(strings); i++) {
		if (!*strings[i] && !(*strings[i] = strdup("")))
			return sba_fail_nomem(err);
	}
	return 0;
}

int sba_files_list(const struct sba_store *s, const struct sba_inside *in,
		   struct sba_kept_list *ret, struct sba_error *err)
{
	struct found_list found = { 0 };
	struct sba_kept_list l = { 0 };
	int rc = find(s->files, in, NULL, &found, err);
	if (rc == 0 && found.n > 0 && !(l.v = calloc(found.n, sizeof(*l.v))))
		rc = sba_fail_nomem(err);
	for (size_t i = 0; rc == 0 && i < found.n; i++)
		rc = list_one(s->files, in, &found.v[i], &l.v[l.n++], err);
	found_fini(&found);
	if (rc < 0) {
		sba_kept_list_fini(&l);
		return rc;
	}
	*ret = l;
	return 0;
}

/* ---- out, in, away ---- */

int sba_files_dump(const struct sba_store *s, const struct sba_inside *in, const char *id,
		   struct sba_parts *ret, struct sba_error *err)
{
	struct found_list found = { 0 };
	SBA_BUF struct sba_buf text = SBA_BUF_INIT(SBA_SESSION_MAX);
	char name[SBA_PART_NAME_MAX] = "session";
	int rc = find_one(s->files, in, id, &found, err);
	if (rc == 0)
		rc = in->read(in, found.v[0].path, SBA_SESSION_MAX, &text, err);
	if (rc == 0 && ret->n > 0)
		snprintf(name, sizeof(name), "parent:%s", id);
	if (rc == 0)
		rc = sba_parts_add(ret, name, &text, err);
	found_fini(&found);
	return rc;
}

/* The first line made to say where and what the session is now. */
static int rehead(const struct sba_file_store *f, const struct sba_inside *in,
		  const struct sba_part *part, const char *id, struct sba_buf *ret,
		  struct sba_error *err)
{
	size_t len = sba_part_head(part);
	SBA_JSON json_t *line = NULL;
	int rc = sba_json_parse(part->data, len, "the first line of the session", &line, err);
	if (rc < 0)
		return rc;
	if (f->rehead && !f->rehead(line, id, in->workdir))
		return sba_fail(err, SBA_EPROTO, "this is no session of %s", f->cli);
	SBA_FREE char *text = f->rehead ? sba_json_dump(line) : NULL;
	if (f->rehead && !text)
		return sba_fail_nomem(err);
	sba_buf_put(ret, text ? text : part->data, text ? strlen(text) : len);
	sba_buf_put(ret, part->data + len, part->len - len);
	return sba_buf_check(ret, "session", err);
}

static int remove_path(const struct sba_file_store *f, const struct sba_inside *in,
		       const char *path, struct sba_error *err)
{
	SBA_BUF struct sba_buf out = SBA_BUF_INIT(SBA_KIB);
	SBA_FREE char *what = strdup(path);
	char said[SBA_SAID_MAX] = "";
	int status = 0;
	if (!what)
		return sba_fail_nomem(err);
	if (f->own_folder)
		*strrchr(what, '/') = '\0';
	const char *const argv[] = { "rm", "-rf", "--", what, NULL };
	const struct sba_inside_run run = { .argv = argv };
	int rc = in->run(in, &run, &out, &status, said, err);
	if (rc == 0 && status != 0)
		rc = sba_fail(err, SBA_EIO, "remove %s: %s", what, said);
	return rc;
}

static int place_for(const struct sba_file_store *f, const struct sba_inside *in, const char *id,
		     const struct found_list *before, struct sba_buf *path, struct sba_error *err)
{
	if (f->keeps_path && before->n > 0) {
		sba_buf_puts(path, before->v[0].path);
	} else {
		root_of(f, in, path);
		sba_buf_putc(path, '/');
		f->put_path(path, id, in->workdir);
	}
	return sba_buf_check(path, "path", err);
}

int sba_files_load_part(const struct sba_file_store *f, const struct sba_inside *in,
			const struct sba_part *part, const char *id, struct sba_error *err)
{
	SBA_BUF struct sba_buf path = SBA_BUF_INIT(8 * SBA_KIB);
	SBA_BUF struct sba_buf text = SBA_BUF_INIT(2 * SBA_SESSION_MAX);
	struct found_list before = { 0 };
	int rc = find(f, in, id, &before, err);
	if (rc == 0)
		rc = place_for(f, in, id, &before, &path, err);
	if (rc == 0)
		rc = rehead(f, in, part, id, &text, err);
	if (rc == 0)
		rc = in->write(in, path.data, text.data, text.len, 0600, err);
	for (size_t i = 0; rc == 0 && i < before.n; i++) {
		if (strcmp(before.v[i].path, path.data) != 0)
			rc = remove_path(f, in, before.v[i].path, err);
	}
	found_fini(&before);
	return rc;
}

int sba_files_load(const struct sba_store *s, const struct sba_inside *in,
		   const struct sba_parts *parts, const char *was, const char *id,
		   struct sba_error *err)
{
	(void)was;
	return sba_files_load_part(s->files, in, &parts->v[0], id, err);
}

int sba_files_remove(const struct sba_store *s, const struct sba_inside *in, const char *id,
		     struct sba_error *err)
{
	struct found_list found = { 0 };
	int rc = find_one(s->files, in, id, &found, err);
	for (size_t i = 0; rc == 0 && i < found.n; i++)
		rc = remove_path(s->files, in, found.v[i].path, err);
	found_fini(&found);
	return rc;
}

/* A copy in a folder that the turn is told to take for the sessions' own. */
int sba_files_aside(const struct sba_store *s, const struct sba_inside *in, const char *id,
		    const char *scratch, struct sba_error *err)
{
	struct sba_parts parts = { 0 };
	SBA_BUF struct sba_buf path = SBA_BUF_INIT(8 * SBA_KIB);
	int rc = s->dump(s, in, id, &parts, err);
	sba_buf_printf(&path, "%s/", scratch);
	s->files->scratch_path(&path, id, in->workdir);
	if (rc == 0)
		rc = sba_buf_check(&path, "path", err);
	if (rc == 0)
		rc = in->write(in, path.data, parts.v[0].data, parts.v[0].len, 0600, err);
	sba_parts_fini(&parts);
	return rc;
}
