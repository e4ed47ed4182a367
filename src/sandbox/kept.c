/* SPDX-License-Identifier: MIT */
/* Lists and packs of a workspace, read and written; see kept.h. */
#include "sandbox/kept.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define ABOUT_NAME "about.json"

enum { ABOUT_MAX = 2 * SBA_INSIDE_PATH_MAX, PIECE = 256 * SBA_KIB, NUMBER_MAX = 999999999 };

bool sba_kept_is_inside(const struct sba_sandbox *s)
{
	return s->engine;
}

void sba_kept_fini(struct sba_kept *k)
{
	free(k->v);
	*k = (struct sba_kept){ 0 };
}

uint32_t sba_kept_last(const struct sba_kept *k)
{
	return k->n ? k->v[k->n - 1].number : 0;
}

uint32_t sba_kept_before(const struct sba_kept *k, int64_t turn)
{
	uint32_t number = k->n ? k->v[0].number : 0;
	for (size_t i = 0; turn > 0 && i < k->n; i++) {
		const struct sba_kept_list *l = &k->v[i];
		if (l->turn < turn || (l->turn == turn && l->phase == SBA_KEPT_BEGIN))
			number = l->number;
	}
	return number;
}

/* ---- reading ---- */

/* "NUMBER-TURN" and a letter. */
static bool parse_name(const char *name, struct sba_kept_list *ret)
{
	char text[64];
	int64_t number, turn;
	size_t len = strlen(name);
	if (len < 4 || len >= sizeof(text))
		return false;
	memcpy(text, name, len + 1);
	char phase = text[len - 1], *dash = strchr(text, '-');
	text[len - 1] = '\0';
	if (!dash || (phase != SBA_KEPT_BEGIN && phase != SBA_KEPT_END))
		return false;
	*dash = '\0';
	if (sba_parse_int(text, 1, NUMBER_MAX, &number) < 0 ||
	    sba_parse_int(dash + 1, 0, NUMBER_MAX, &turn) < 0)
		return false;
	*ret = (struct sba_kept_list){ (uint32_t)number, turn, (enum sba_kept_phase)phase };
	return true;
}

static int by_number(const void *a, const void *b)
{
	uint32_t x = ((const struct sba_kept_list *)a)->number;
	uint32_t y = ((const struct sba_kept_list *)b)->number;
	return (x > y) - (x < y);
}

static int take_names(struct sba_kept *k, const struct sba_buf *names, struct sba_error *err)
{
	size_t n = 0;
	for (size_t at = 0; at < names->len; at++)
		n += names->data[at] == '\0';
	k->v = calloc(n + 1, sizeof(*k->v));
	if (!k->v)
		return sba_fail_nomem(err);
	for (size_t at = 0; at < names->len; at += strlen(names->data + at) + 1)
		k->n += parse_name(names->data + at, &k->v[k->n]);
	if (k->n)
		qsort(k->v, k->n, sizeof(*k->v), by_number);
	return 0;
}

static int take_about(struct sba_kept *k, const struct sba_buf *text, struct sba_error *err)
{
	SBA_JSON json_t *j = NULL;
	int rc = sba_json_parse(text->data ? text->data : "", text->len,
				SBA_KEPT_DIR "/" ABOUT_NAME, &j, err);
	if (rc < 0)
		return rc;
	const char *folder = sba_json_str(j, "folder");
	if (sba_json_int(j, "v", 0) != 1 || !folder || folder[0] != '/' ||
	    strlen(folder) >= sizeof(k->folder))
		return sba_fail(err, SBA_EPROTO, "%s: not what this version writes",
				SBA_KEPT_DIR "/" ABOUT_NAME);
	memcpy(k->folder, folder, strlen(folder) + 1);
	k->gitignore = sba_json_bool(j, "gitignore", false);
	return 0;
}

static int need_channel(struct sba_sandbox *s, struct sba_hold **ret_hold, struct sba_channel **ret,
			struct sba_error *err)
{
	int rc = sba_files_channel(s, ret_hold, ret, err);
	if (rc < 0 || *ret)
		return rc;
	return sba_fail(err, SBA_EUNSUPPORTED,
			"sandbox '%s': there is no guest inside to look through its files",
			s->info.name);
}

int sba_kept_load(struct sba_sandbox *s, struct sba_kept *ret, struct sba_error *err)
{
	SBA_HOLD struct sba_hold *hold = NULL;
	SBA_BUF struct sba_buf names = SBA_BUF_INIT(SBA_LISTS_MAX);
	SBA_BUF struct sba_buf about = SBA_BUF_INIT(ABOUT_MAX);
	struct sba_channel *channel = NULL;
	struct sba_kept k = { 0 };
	struct sba_error why = { 0 };
	struct sba_until until = sba_small_until(s);
	int rc = need_channel(s, &hold, &channel, err);
	if (rc < 0)
		return rc;
	rc = sba_channel_file_read(channel, SBA_KEPT_DIR "/" ABOUT_NAME, ABOUT_MAX, until, &about,
				   &why);
	if (rc == 0)
		rc = take_about(&k, &about, &why);
	if (rc == 0)
		rc = sba_channel_file_list(channel, SBA_KEPT_DIR, SBA_LISTS_MAX, until, &names,
					   &why);
	if (rc == 0)
		rc = take_names(&k, &names, &why);
	if (rc < 0 && rc != SBA_ENOTFOUND) {
		sba_kept_fini(&k);
		if (err)
			*err = why;
		return rc;
	}
	*ret = k;
	return 0;
}

int sba_kept_find(struct sba_sandbox *s, struct sba_kept *ret, bool *ret_guest,
		  struct sba_error *err)
{
	struct sba_kept k = { 0 };
	struct sba_error why = { 0 };
	int rc = sba_kept_load(s, &k, &why);
	if (rc < 0 && rc != SBA_EUNSUPPORTED) {
		if (err)
			*err = why;
		return rc;
	}
	if (!*k.folder)
		snprintf(k.folder, sizeof(k.folder), "%s", sba_sandbox_workdir(s));
	*ret_guest = rc == 0;
	*ret = k;
	return 0;
}

/* ---- looking ---- */

static int take_all(struct sba_channel_tar *t, struct sba_records *r, struct sba_error *err)
{
	SBA_FREE char *piece = malloc(PIECE);
	ssize_t n = 0;
	int rc = piece ? 0 : sba_fail_nomem(err);
	while (rc == 0 && (n = sba_channel_tar_read(t, piece, PIECE, err)) > 0)
		rc = sba_records_feed(r, piece, (size_t)n, err);
	if (rc == 0)
		rc = n < 0 ? (int)n : sba_records_end(r, err);
	return rc;
}

int sba_look(struct sba_sandbox *s, const struct sba_look *look, struct sba_records *ret,
	     struct sba_error *err)
{
	SBA_HOLD struct sba_hold *hold = NULL;
	struct sba_channel *channel = NULL;
	struct sba_channel_tar *t = NULL;
	const struct sba_channel_changes q = {
		.folder = look->folder,
		.flags = look->flags | (look->given ? SBA_CHANGES_GIVEN : 0U),
		.given = look->given,
		.last = look->last,
		.content_max = SBA_CONTENT_MAX,
		.contents_max = SBA_CONTENTS_MAX,
		.hash_max = look->hash_max ? look->hash_max : SBA_HASHED_MAX,
	};
	sba_records_init(ret);
	int rc = need_channel(s, &hold, &channel, err);
	if (rc == 0)
		rc = sba_channel_changes_open(channel, &q, look->until, &t, err);
	if (rc == 0)
		rc = take_all(t, ret, err);
	sba_channel_tar_close(t);
	if (rc < 0)
		sba_records_fini(ret);
	return rc;
}

int sba_kept_look(struct sba_sandbox *s, const struct sba_kept *k, uint32_t last,
		  struct sba_records *ret, struct sba_error *err)
{
	const struct sba_look look = {
		.folder = k->folder,
		.flags = SBA_CHANGES_CONTENT | (k->gitignore ? SBA_CHANGES_IGNORE : 0U),
		.last = last,
		.until = sba_transfer_until(s, 0),
	};
	int rc = sba_look(s, &look, ret, err);
	return rc < 0 ? sba_wrap(err, rc, "sandbox '%s': files in %s", s->info.name, k->folder) : 0;
}

/* ---- writing ---- */

static void put_list(struct sba_buf *list, uint32_t number, const struct sba_records *r)
{
	for (size_t i = 0; i < r->n; i++) {
		const struct sba_record *one = &r->v[i];
		struct sba_file_entry entry = one->fresh.entry;
		if (one->kind == SBA_RECORD_LEFT_OUT)
			continue;
		if (one->fresh.why == SBA_CONTENT_SENT && one->kind != SBA_RECORD_TOUCHED &&
		    one->kind != SBA_RECORD_DELETED) {
			entry.flags |= SBA_ENTRY_KEPT;
			entry.pack = number;
			entry.offset = one->fresh.at;
		}
		sba_record_put(list, one->path, one->kind == SBA_RECORD_DELETED ? NULL : &entry);
	}
}

static int pack_about(struct sba_pack *pack, const struct sba_kept *k, struct sba_error *err)
{
	SBA_JSON json_t *j = json_pack("{s:i, s:s, s:b}", "v", 1, "folder", k->folder, "gitignore",
				       k->gitignore);
	SBA_FREE char *text = j ? sba_json_dump(j) : NULL;
	/* A folder that is no UTF-8 has no JSON. */
	if (!text)
		return sba_fail(err, SBA_EUNSUPPORTED, "its name is not UTF-8");
	int rc = sba_pack_dir(pack, &SBA_STATE_DIR[1], 0755, err);
	if (rc == 0)
		rc = sba_pack_dir(pack, &SBA_KEPT_DIR[1], 0755, err);
	return rc < 0 ? rc
		      : sba_pack_bytes(pack, &(SBA_KEPT_DIR "/" ABOUT_NAME)[1], text, strlen(text),
				       0644, err);
}

static int pack_contents(struct sba_pack *pack, uint32_t number, const struct sba_records *r,
			 struct sba_error *err)
{
	char name[sizeof(SBA_KEPT_DIR) + 32], path[32];
	if (r->fresh_len == 0)
		return 0;
	if (fchmod(r->fresh_fd, 0644) < 0)
		return sba_fail_errno(err, SBA_EIO, errno, "set a temporary file's mode");
	snprintf(name, sizeof(name), "%s/%u.pack", &SBA_KEPT_DIR[1], number);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", r->fresh_fd);
	return sba_pack_path(pack, name, path, err);
}

/* The list comes last: with it, what it leads to is there. */
static int send_list(struct sba_sandbox *s, const struct sba_kept *k, const struct sba_kept_list *l,
		     const struct sba_buf *list, const struct sba_records *r, struct sba_error *err)
{
	const struct sba_pack_options options = { .fixed_mtime = -1 };
	char name[sizeof(SBA_KEPT_DIR) + 64];
	struct sba_pack *pack = NULL;
	int rc = sba_sandbox_check_whole(s, err);
	if (rc == 0)
		rc = sba_pack_new(&options, &pack, err);
	if (rc == 0 && k->n == 0)
		rc = pack_about(pack, k, err);
	if (rc == 0)
		rc = pack_contents(pack, l->number, r, err);
	snprintf(name, sizeof(name), "%s/%u-%lld%c", &SBA_KEPT_DIR[1], l->number,
		 (long long)l->turn, (char)l->phase);
	if (rc == 0)
		rc = sba_pack_bytes(pack, name, list->data ? list->data : "", list->len, 0644, err);
	if (rc == 0)
		rc = sba_container_put(s->engine, s->container, "/", sba_pack_read, pack,
				       sba_transfer_until(s, 0), err);
	sba_pack_free(pack);
	return rc;
}

int sba_kept_save(struct sba_sandbox *s, struct sba_kept *k, int64_t turn,
		  enum sba_kept_phase phase, const struct sba_records *r, struct sba_error *err)
{
	if (!sba_kept_is_inside(s))
		return sba_fail(err, SBA_EUNSUPPORTED,
				"sandbox '%s': there is no place that its user cannot change",
				s->info.name);
	const struct sba_kept_list l = { sba_kept_last(k) + 1, turn, phase };
	SBA_BUF struct sba_buf list = SBA_BUF_INIT(2 * (size_t)SBA_CHANGED_BYTES_MAX);
	put_list(&list, l.number, r);
	int rc = sba_buf_check(&list, "a list of files", err);
	if (rc < 0 || (list.len == 0 && k->n > 0))
		return rc;
	struct sba_kept_list *grown = realloc(k->v, (k->n + 1) * sizeof(*grown));
	if (!grown)
		return sba_fail_nomem(err);
	k->v = grown;
	rc = send_list(s, k, &l, &list, r, err);
	if (rc == 0)
		k->v[k->n++] = l;
	return rc < 0 ? sba_wrap(err, rc, "sandbox '%s': keep what its workspace is like",
				 s->info.name)
		      : 0;
}
