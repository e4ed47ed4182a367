/* SPDX-License-Identifier: MIT */
/*
 * A tar on its way, with other owners in its headers, for engines that do not tell the
 * true ones. Every other byte goes through as it came: extended attributes, devices,
 * and what a later reader will call broken.
 */
#include "archive/private.h"

#include <stdlib.h>
#include <string.h>

enum { UID, GID, IDS };

/* Where something lies in `head`, which may move as it grows. */
struct span {
	size_t at, len;
};

struct sba_reown {
	sba_tar_read_fn *read;
	void *read_user;
	sba_tar_owner_fn *owner;
	void *owner_user;
	struct sba_buf head; /* all headers of an entry, on their way out */
	size_t head_at;
	uint64_t content; /* of the entry: to go through, padding included */
	bool passes;      /* all of it does from here on: behind the last entry */
	struct sba_error failed;

	/* what the headers before an entry's last have said of it */
	struct sba_buf name; /* empty: nothing */
	struct span ids[IDS];
	struct span size;
};

int sba_reown_new(sba_tar_read_fn *read, void *read_user, sba_tar_owner_fn *owner, void *owner_user,
		  struct sba_reown **ret, struct sba_error *err)
{
	struct sba_reown *r = calloc(1, sizeof(*r));
	if (!r)
		return sba_fail_nomem(err);
	r->read = read;
	r->read_user = read_user;
	r->owner = owner;
	r->owner_user = owner_user;
	sba_buf_init(&r->head, SBA_TAR_HEAD_MAX);
	sba_buf_init(&r->name, SBA_TAR_HEAD_MAX);
	*ret = r;
	return 0;
}

void sba_reown_free(struct sba_reown *r)
{
	if (!r)
		return;
	sba_buf_fini(&r->head);
	sba_buf_fini(&r->name);
	free(r);
}

static int broken(const char *what, struct sba_error *err)
{
	return sba_fail(err, SBA_EPROTO, "broken tar: %s", what);
}

/* ---- numbers ---- */

static bool read_digits(const char *text, size_t len, unsigned base, uint64_t *ret)
{
	uint64_t n = 0;
	if (len == 0)
		return false;
	for (size_t i = 0; i < len; i++) {
		unsigned digit = (unsigned)(unsigned char)text[i] - '0';
		if (digit >= base || __builtin_mul_overflow(n, base, &n) ||
		    __builtin_add_overflow(n, digit, &n))
			return false;
	}
	*ret = n;
	return true;
}

/* Of a header: octal, or binary where the first bit is set. Empty: 0. */
static bool read_field(const char *field, size_t size, uint64_t *ret)
{
	uint64_t n = (unsigned char)field[0] & 0x7f;
	if ((unsigned char)field[0] & 0x80) {
		for (size_t i = 1; i < size; i++) {
			if (n >> 56)
				return false;
			n = n << 8 | (unsigned char)field[i];
		}
		*ret = n;
		return true;
	}
	size_t at = 0, end;
	while (at < size && field[at] == ' ')
		at++;
	for (end = at; end < size && field[end] != ' ' && field[end] != '\0';)
		end++;
	*ret = 0;
	return end == at || read_digits(field + at, end - at, 8, ret);
}

static void write_field(char field[8], uint32_t id)
{
	memset(field, 0, 8);
	if (id > 07777777) {
		field[0] = (char)0x80;
		for (int i = 7; i >= 4; i--, id >>= 8)
			field[i] = (char)(id & 0xff);
	} else {
		for (int i = 6; i >= 0; i--, id >>= 3)
			field[i] = (char)('0' + (id & 7));
	}
}

/* In the digits that are there: a record's length stays. */
static bool write_digits(char *to, size_t len, uint32_t id)
{
	while (len-- > 0) {
		to[len] = (char)('0' + id % 10);
		id /= 10;
	}
	return id == 0;
}

/* ---- what comes before an entry's last header ---- */

/* 1: a block more is in `head`; 0: the tar ends before. */
static int take_block(struct sba_reown *r, struct sba_error *err)
{
	for (size_t have = 0; have < SBA_TAR_BLOCK;) {
		char *to = sba_buf_reserve(&r->head, SBA_TAR_BLOCK - have);
		if (!to)
			return sba_buf_check(&r->head, "the headers of an entry", err);
		ssize_t n = r->read(r->read_user, to, SBA_TAR_BLOCK - have, err);
		if (n <= 0)
			return (int)n;
		have += (size_t)n;
		r->head.len += (size_t)n;
		r->head.data[r->head.len] = '\0';
	}
	return 1;
}

static void note_record(struct sba_reown *r, const char *key, struct span value)
{
	static const char *const ids[] = { "uid=", "gid=" };
	for (int i = 0; i < IDS; i++) {
		if (sba_starts_with(key, ids[i]))
			r->ids[i] = value;
	}
	if (sba_starts_with(key, "size="))
		r->size = value;
	if (sba_starts_with(key, "path=")) {
		sba_buf_reset(&r->name);
		sba_buf_put(&r->name, r->head.data + value.at, value.len);
	}
}

/* "LENGTH KEY=VALUE\n", where LENGTH counts all of it. */
static int read_records(struct sba_reown *r, struct span all, struct sba_error *err)
{
	for (size_t at = all.at, end = all.at + all.len; at < end;) {
		const char *text = r->head.data + at;
		const char *key = memchr(text, ' ', end - at);
		uint64_t len;
		if (!key++ || !read_digits(text, (size_t)(key - 1 - text), 10, &len) ||
		    len > end - at || text + len <= key || text[len - 1] != '\n')
			return broken("a record that cannot be read", err);
		const char *value = memchr(key, '=', (size_t)(text + len - key));
		if (!value++)
			return broken("a record without a value", err);
		note_record(r, key,
			    (struct span){ (size_t)(value - r->head.data),
					   (size_t)(text + len - 1 - value) });
		at += len;
	}
	return sba_buf_check(&r->name, "a name", err);
}

/* The content of a header that says something of the next one: 1, 0 or an error as above. */
static int take_extension(struct sba_reown *r, char type, uint64_t size, struct sba_error *err)
{
	const size_t at = r->head.len;
	int rc = 1;
	if (size > SBA_TAR_HEAD_MAX)
		return broken("a header that is too long", err);
	while (rc > 0 && r->head.len - at < size)
		rc = take_block(r, err);
	if (rc <= 0)
		return rc;
	if (type == 'L') {
		sba_buf_reset(&r->name);
		sba_buf_put(&r->name, r->head.data + at, strnlen(r->head.data + at, size));
	}
	if (type == 'x')
		rc = read_records(r, (struct span){ at, size }, err);
	return rc < 0 ? rc : 1;
}

/* ---- an entry ---- */

static int name_it(struct sba_reown *r, const struct sba_ustar *h, struct sba_error *err)
{
	if (r->name.len > 0)
		return 0;
	if (memcmp(h->magic, "ustar", sizeof(h->magic)) == 0 && h->prefix[0]) {
		sba_buf_put(&r->name, h->prefix, strnlen(h->prefix, sizeof(h->prefix)));
		sba_buf_putc(&r->name, '/');
	}
	sba_buf_put(&r->name, h->name, strnlen(h->name, sizeof(h->name)));
	return sba_buf_check(&r->name, "a name", err);
}

static void ask(struct sba_reown *r, uint32_t *uid, uint32_t *gid)
{
	const char *name = r->name.data ? r->name.data : "";
	while (name[0] == '/' || (name[0] == '.' && (name[1] == '/' || name[1] == '\0')))
		name++;
	for (size_t n = strlen(name); n > 0 && name[n - 1] == '/'; n--)
		r->name.data[--r->name.len] = '\0';
	r->owner(r->owner_user, name, uid, gid);
}

/* As it is said so far: a record goes before the header's own field. */
static int read_id(const struct sba_reown *r, const char field[8], const struct span *record,
		   uint32_t *ret, struct sba_error *err)
{
	uint64_t id;
	bool ok = record->len > 0 ? read_digits(r->head.data + record->at, record->len, 10, &id)
				  : read_field(field, 8, &id);
	if (!ok || id > UINT32_MAX)
		return broken("an owner that is no number", err);
	*ret = (uint32_t)id;
	return 0;
}

static int write_id(struct sba_reown *r, char field[8], const struct span *record, uint32_t id,
		    struct sba_error *err)
{
	write_field(field, id);
	if (record->len > 0 && !write_digits(r->head.data + record->at, record->len, id))
		return sba_fail(err, SBA_EUNSUPPORTED, "the owner %u has no room in a tar", id);
	return 0;
}

/* Names of owners would go before their numbers where they are known. */
static int correct(struct sba_reown *r, size_t at, struct sba_error *err)
{
	struct sba_ustar h;
	uint32_t uid = 0, gid = 0;
	memcpy(&h, r->head.data + at, sizeof(h));
	int rc = read_id(r, h.uid, &r->ids[UID], &uid, err);
	if (rc == 0)
		rc = read_id(r, h.gid, &r->ids[GID], &gid, err);
	if (rc == 0)
		rc = name_it(r, &h, err);
	if (rc < 0)
		return rc;
	ask(r, &uid, &gid);
	rc = write_id(r, h.uid, &r->ids[UID], uid, err);
	if (rc == 0)
		rc = write_id(r, h.gid, &r->ids[GID], gid, err);
	memset(h.uname, 0, sizeof(h.uname));
	memset(h.gname, 0, sizeof(h.gname));
	sba_ustar_seal(&h);
	memcpy(r->head.data + at, &h, sizeof(h));
	return rc;
}

/* Links, devices, directories and fifos have none, whatever they say. */
static int measure(struct sba_reown *r, char type, uint64_t size, struct sba_error *err)
{
	const struct span *pax = &r->size;
	if (pax->len > 0 && !read_digits(r->head.data + pax->at, pax->len, 10, &size))
		return broken("a size that is no number", err);
	if (size > INT64_MAX)
		return broken("a size that nothing has", err);
	r->content = type >= '1' && type <= '6' ? 0 : size + sba_tar_padding(size);
	return 0;
}

static void forget(struct sba_reown *r)
{
	sba_buf_reset(&r->head);
	sba_buf_reset(&r->name);
	r->head_at = 0;
	memset(r->ids, 0, sizeof(r->ids));
	r->size = (struct span){ 0 };
}

/* Whether its sum is right; *ret_size is what it says of what follows. */
static bool read_header(const struct sba_ustar *h, uint64_t *ret_size)
{
	uint64_t sum;
	return read_field(h->checksum, sizeof(h->checksum), &sum) && sum == sba_ustar_sum(h) &&
	       read_field(h->size, sizeof(h->size), ret_size);
}

static int take_headers(struct sba_reown *r, struct sba_error *err)
{
	static const struct sba_ustar zeros;
	struct sba_ustar h;
	uint64_t size;
	forget(r);
	for (;;) {
		size_t at = r->head.len;
		int rc = take_block(r, err);
		if (rc > 0)
			memcpy(&h, r->head.data + at, sizeof(h));
		if (rc == 0 || (rc > 0 && memcmp(&h, &zeros, sizeof(h)) == 0))
			r->passes = true;
		if (rc < 0 || r->passes)
			return rc < 0 ? rc : 0;
		if (!read_header(&h, &size))
			return broken("a header whose sum is wrong", err);
		if (!h.type || !strchr("xgLK", h.type)) {
			rc = correct(r, at, err);
			return rc < 0 ? rc : measure(r, h.type, size, err);
		}
		rc = take_extension(r, h.type, size, err);
		if (rc <= 0) {
			r->passes = rc == 0;
			return rc;
		}
	}
}

/* ---- reading ---- */

static ssize_t hand_out(struct sba_reown *r, void *buf, size_t size)
{
	size_t n = r->head.len - r->head_at;
	n = n < size ? n : size;
	memcpy(buf, r->head.data + r->head_at, n);
	r->head_at += n;
	return (ssize_t)n;
}

static ssize_t pass_on(struct sba_reown *r, void *buf, size_t size, struct sba_error *err)
{
	if (!r->passes && r->content < size)
		size = (size_t)r->content;
	ssize_t n = r->read(r->read_user, buf, size, err);
	if (n > 0 && !r->passes)
		r->content -= (uint64_t)n;
	return n;
}

static ssize_t next(struct sba_reown *r, void *buf, size_t size, struct sba_error *err)
{
	if (r->head_at == r->head.len && r->content == 0 && !r->passes) {
		int rc = take_headers(r, err);
		if (rc < 0)
			return rc;
	}
	return r->head_at < r->head.len ? hand_out(r, buf, size) : pass_on(r, buf, size, err);
}

ssize_t sba_reown_read(void *reown, void *buf, size_t size, struct sba_error *err)
{
	struct sba_reown *r = reown;
	ssize_t n = r->failed.code;
	if (n == 0)
		n = next(r, buf, size, &r->failed);
	if (n < 0 && err)
		*err = r->failed;
	return n;
}
