/* SPDX-License-Identifier: MIT */
/*
 * Encodes tar headers (POSIX.1-2001 pax). Ours and not libarchive's: its
 * writer converts names by the process's locale, and with "hdrcharset=BINARY"
 * pays an extra kilobyte for every entry.
 */
#include "archive/private.h"

#include <string.h>

enum {
	ID_MAX = 07777777,              /* seven octal digits */
	PAX_MAX = 4 * SBA_LAND_PATH_MAX /* two paths and three numbers */
};
static const uint64_t WIDE_MAX = 077777777777; /* eleven octal digits: 8 GiB - 1 */

static void put_octal(char *field, size_t size, uint64_t n)
{
	for (size_t i = size - 1; i-- > 0; n >>= 3)
		field[i] = (char)('0' + (n & 7));
}

static uint64_t at_most(uint64_t n, uint64_t max)
{
	return n < max ? n : max;
}

static void put_text(char *field, size_t size, const char *s, size_t len)
{
	memcpy(field, s, len < size ? len : size);
}

unsigned sba_ustar_sum(const struct sba_ustar *h)
{
	struct sba_ustar blank = *h;
	unsigned sum = 0;
	memset(blank.checksum, ' ', sizeof(blank.checksum));
	for (size_t i = 0; i < sizeof(blank); i++)
		sum += ((const unsigned char *)&blank)[i];
	return sum;
}

void sba_ustar_seal(struct sba_ustar *h)
{
	put_octal(h->checksum, sizeof(h->checksum) - 1, sba_ustar_sum(h));
	h->checksum[6] = '\0';
	h->checksum[7] = ' ';
}

static void put_block(struct sba_buf *out, const struct sba_tar_entry *e, const char *name,
		      size_t name_len)
{
	struct sba_ustar h = { .type = e->type, .magic = "ustar", .version = { '0', '0' } };
	put_text(h.name, sizeof(h.name), name, name_len);
	put_text(h.link, sizeof(h.link), e->link ? e->link : "", e->link ? strlen(e->link) : 0);
	put_octal(h.mode, sizeof(h.mode), e->mode & 07777);
	put_octal(h.uid, sizeof(h.uid), at_most(e->uid, ID_MAX));
	put_octal(h.gid, sizeof(h.gid), at_most(e->gid, ID_MAX));
	put_octal(h.size, sizeof(h.size), at_most(e->size, WIDE_MAX));
	put_octal(h.mtime, sizeof(h.mtime),
		  e->mtime < 0 ? 0 : at_most((uint64_t)e->mtime, WIDE_MAX));
	sba_ustar_seal(&h);
	sba_buf_put(out, &h, sizeof(h));
}

static void put_zeros(struct sba_buf *out, size_t len)
{
	static const char zeros[SBA_TAR_BLOCK];
	sba_buf_put(out, zeros, len);
}

static size_t digits_of(size_t n)
{
	return n < 10 ? 1 : 1 + digits_of(n / 10);
}

/* "LENGTH KEY=VALUE\n", where LENGTH counts its own digits too. */
static void put_record(struct sba_buf *pax, const char *key, const char *value, size_t value_len)
{
	size_t rest = strlen(" =\n") + strlen(key) + value_len;
	size_t digits = 1;
	while (digits_of(rest + digits) != digits)
		digits++;
	sba_buf_printf(pax, "%zu %s=", rest + digits, key);
	sba_buf_put(pax, value, value_len);
	sba_buf_putc(pax, '\n');
}

static void put_number(struct sba_buf *pax, const char *key, uint64_t n, uint64_t max)
{
	char text[24];
	if (n <= max)
		return;
	int len = snprintf(text, sizeof(text), "%llu", (unsigned long long)n);
	put_record(pax, key, text, (size_t)len);
}

static void put_pax(struct sba_buf *out, const struct sba_tar_entry *e, const char *name,
		    size_t name_len)
{
	SBA_BUF struct sba_buf pax = SBA_BUF_INIT(PAX_MAX);
	if (name_len > sizeof(((struct sba_ustar *)0)->name))
		put_record(&pax, "path", name, name_len);
	if (e->link && strlen(e->link) > sizeof(((struct sba_ustar *)0)->link))
		put_record(&pax, "linkpath", e->link, strlen(e->link));
	put_number(&pax, "size", e->size, WIDE_MAX);
	put_number(&pax, "uid", e->uid, ID_MAX);
	put_number(&pax, "gid", e->gid, ID_MAX);
	if (pax.failed)
		out->failed = pax.failed;
	if (pax.len == 0)
		return;
	const struct sba_tar_entry x = { .type = 'x', .mode = 0644, .size = pax.len };
	put_block(out, &x, "PaxHeader", strlen("PaxHeader"));
	sba_buf_put(out, pax.data, pax.len);
	put_zeros(out, sba_tar_padding(pax.len));
}

void sba_tar_put_header(struct sba_buf *out, const struct sba_tar_entry *e)
{
	SBA_BUF struct sba_buf name = SBA_BUF_INIT(2 * SBA_LAND_PATH_MAX);
	sba_buf_puts(&name, e->name);
	if (e->type == '5')
		sba_buf_putc(&name, '/');
	if (name.failed) {
		out->failed = name.failed;
		return;
	}
	put_pax(out, e, name.data, name.len);
	put_block(out, e, name.data, name.len);
}

size_t sba_tar_padding(uint64_t size)
{
	return (size_t)(-size % SBA_TAR_BLOCK);
}

int sba_tar_check_name(const char *name, const struct sba_pack_options *o, bool *ret_unfit,
		       struct sba_error *err)
{
	size_t len = strlen(name);
	if (o->name_max == 0 || len <= o->name_max)
		return 0;
	*ret_unfit = true;
	return sba_fail(err, SBA_EUNSUPPORTED,
			"'%.40s…%s': a path of %zu bytes, %zu is all that can be unpacked there",
			name, name + len - 20, len, o->name_max);
}

void sba_tar_put_dressed(struct sba_buf *out, const struct sba_tar_entry *e,
			 const struct sba_pack_options *o)
{
	struct sba_tar_entry dressed = *e;
	if (e->type == '5' && o->directory)
		o->directory(o->user, e->name, e->mode, e->mtime);
	if (e->type == '5' && o->set_dir_gid) {
		dressed.gid = o->dir_gid;
		dressed.mode |= 0070;
	}
	sba_tar_put_header(out, &dressed);
}
