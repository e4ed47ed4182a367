/* SPDX-License-Identifier: MIT */
/* Tars byte by byte, and a transport for them. */
#include "support/tar_builder.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 512 };

static void put_padding(struct sba_buf *tar)
{
	while (tar->len % BLOCK)
		sba_buf_putc(tar, '\0');
}

static unsigned default_mode(const struct tar_entry *e)
{
	if (e->mode)
		return e->mode;
	return e->type == '5' ? 0755 : 0644;
}

void tar_add(struct sba_buf *tar, const struct tar_entry *e)
{
	char h[BLOCK] = { 0 };
	unsigned sum = 0;
	size_t name_len = strlen(e->name);
	assert(name_len <= 100);
	memcpy(h, e->name, name_len);
	snprintf(h + 100, 8, "%07o", default_mode(e) & 07777);
	memcpy(h + 108, "0000000\0000000000", 16);
	snprintf(h + 124, 12, "%011llo", e->size);
	snprintf(h + 136, 12, "%011llo", (unsigned long long)e->mtime);
	memset(h + 148, ' ', 8);
	h[156] = e->type ? e->type : '0';
	if (e->link)
		memcpy(h + 157, e->link, strlen(e->link));
	memcpy(h + 257, "ustar\00000", 8);
	for (size_t i = 0; i < BLOCK; i++)
		sum += (unsigned char)h[i];
	snprintf(h + 148, 8, "%06o", sum);
	sba_buf_put(tar, h, BLOCK);
	if (e->data)
		sba_buf_put(tar, e->data, e->size);
	put_padding(tar);
	/* No crash: memory may have run out on purpose. */
	if (tar->failed) {
		fprintf(stderr, "no room for the entry '%s'\n", e->name);
		exit(EXIT_FAILURE);
	}
}

void tar_file(struct sba_buf *tar, const char *name, const char *content)
{
	tar_add(tar, &(struct tar_entry){ .name = name, .data = content, .size = strlen(content) });
}

void tar_dir(struct sba_buf *tar, const char *name)
{
	tar_add(tar, &(struct tar_entry){ .type = '5', .name = name });
}

static void put_record(struct sba_buf *b, const char *key, const char *value)
{
	size_t rest = strlen(key) + strlen(value) + 3;
	size_t len = rest;
	for (size_t digits = 1; digits < 6; digits++) {
		char text[24];
		len = rest + digits;
		if ((size_t)snprintf(text, sizeof(text), "%zu", len) == digits)
			break;
	}
	sba_buf_printf(b, "%zu %s=%s\n", len, key, value);
}

void tar_pax(struct sba_buf *tar, const char *key, const char *value)
{
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(1 << 20);
	put_record(&b, key, value);
	tar_add(tar,
		&(struct tar_entry){ .type = 'x', .name = "pax", .data = b.data, .size = b.len });
}

void tar_sparse(struct sba_buf *tar, const char *name, unsigned long long apparent,
		unsigned long long offset, const char *data)
{
	SBA_BUF struct sba_buf pax = SBA_BUF_INIT(1 << 16);
	SBA_BUF struct sba_buf body = SBA_BUF_INIT(1 << 20);
	char size[32];
	snprintf(size, sizeof(size), "%llu", apparent);
	put_record(&pax, "GNU.sparse.major", "1");
	put_record(&pax, "GNU.sparse.minor", "0");
	put_record(&pax, "GNU.sparse.name", name);
	put_record(&pax, "GNU.sparse.realsize", size);
	tar_add(tar, &(struct tar_entry){
			     .type = 'x', .name = "pax", .data = pax.data, .size = pax.len });
	sba_buf_printf(&body, "2\n%llu\n%zu\n%llu\n0\n", offset, strlen(data), apparent);
	put_padding(&body);
	sba_buf_puts(&body, data);
	tar_add(tar, &(struct tar_entry){ .name = name, .data = body.data, .size = body.len });
}

void tar_end(struct sba_buf *tar)
{
	static const char zeros[2 * BLOCK];
	sba_buf_put(tar, zeros, sizeof(zeros));
}

struct tar_feed tar_feed_of(const struct sba_buf *tar)
{
	return (struct tar_feed){ .data = tar->data, .len = tar->len };
}

ssize_t tar_feed_read(void *feed, void *buf, size_t size, struct sba_error *err)
{
	struct tar_feed *f = feed;
	size_t n = f->len - f->at;
	if (f->fail_at && f->at + n > f->fail_at)
		n = f->fail_at - f->at;
	if (f->fail_at && n == 0)
		return sba_fail(err, SBA_ELOST, "the engine went away");
	if (n > size)
		n = size;
	if (f->piece && n > f->piece)
		n = f->piece;
	if (n > 0)
		memcpy(buf, f->data + f->at, n);
	f->at += n;
	return (ssize_t)n;
}
