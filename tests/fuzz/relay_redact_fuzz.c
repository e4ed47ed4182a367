/* SPDX-License-Identifier: MIT */
/*
 * Any key in any bytes, in pieces of any size, as a body and as the deltas of a
 * stream in each format: what a client reads never has the key in it, nothing else
 * changes but into stars, and no byte is lost. The first three bytes are the
 * key's length, the pieces' size and that of deltas; the key follows.
 */
#include "model/relay_private.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "support/deltas.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEAD = 3, OUT_MAX = 16 * SBA_MIB };

struct input {
	char key[40];
	size_t key_len, piece, delta;
	char *text; /* printable, with keys in it */
	size_t len;
};

static void pass(const struct sba_redact *secret, bool sse, const char *stream, size_t len,
		 size_t piece, struct sba_buf *out)
{
	struct sba_relay_redact *d = malloc(sizeof(*d));
	char *copy = malloc(len + 1);
	assert(d && copy);
	memcpy(copy, stream, len);
	sba_relay_redact_init(d, secret, sse);
	for (size_t at = 0; at < len; at += piece) {
		size_t n = len - at < piece ? len - at : piece;
		assert(sba_relay_redact_feed(d, copy + at, n) == 0);
		assert(d->held_bytes <= SBA_RELAY_HELD_MAX);
	}
	assert(sba_relay_redact_end(d) == 0);
	sba_buf_put(out, d->out.data ? d->out.data : "", d->out.len);
	assert(!out->failed && !d->first && d->n_lanes == 0);
	sba_relay_redact_fini(d);
	free(copy);
	free(d);
}

static void check(const struct input *in, const struct sba_buf *is)
{
	/* stars may make a key of stars; any other is gone */
	assert(strchr(in->key, '*') || !is->len ||
	       !memmem(is->data, is->len, in->key, in->key_len));
	/* an escape of JSON becomes as many stars as it had bytes */
	if (is->len != in->len && (strpbrk(in->key, "\"\\") || memchr(in->text, '\\', in->len)))
		return;
	assert(is->len == in->len);
	for (size_t i = 0; i < is->len; i++)
		assert(is->data[i] == in->text[i] || is->data[i] == '*');
}

static void as_body(const struct input *in, const struct sba_redact *secret)
{
	struct sba_buf whole = SBA_BUF_INIT(OUT_MAX), pieces = SBA_BUF_INIT(OUT_MAX);
	pass(secret, false, in->text, in->len, in->len + 1, &whole);
	pass(secret, false, in->text, in->len, in->piece, &pieces);
	check(in, &whole);
	assert(whole.len == in->len);
	assert(pieces.len == whole.len &&
	       (!whole.len || !memcmp(whole.data, pieces.data, whole.len)));
	sba_buf_fini(&whole);
	sba_buf_fini(&pieces);
}

static void as_deltas(const struct input *in, const struct sba_redact *secret, enum deltas_format f)
{
	struct sba_buf stream = SBA_BUF_INIT(OUT_MAX), out = SBA_BUF_INIT(OUT_MAX);
	struct sba_buf text = SBA_BUF_INIT(OUT_MAX);
	for (size_t at = 0; at < in->len; at += in->delta) {
		size_t n = in->len - at < in->delta ? in->len - at : in->delta;
		deltas_put(&stream, f, in->text + at, n);
	}
	pass(secret, true, stream.data ? stream.data : "", stream.len, in->piece, &out);
	deltas_join(out.data ? out.data : "", out.len, f, &text);
	check(in, &text);
	sba_buf_fini(&stream);
	sba_buf_fini(&out);
	sba_buf_fini(&text);
}

/* Keys are printable, and so is this text: a byte over 127 becomes the key. */
static bool read_input(const uint8_t *data, size_t size, struct input *in)
{
	struct sba_buf text = SBA_BUF_INIT(SBA_MIB);
	if (size < HEAD)
		return false;
	*in = (struct input){ .key_len = 8 + data[0] % 24,
			      .piece = 1 + data[1],
			      .delta = 1 + data[2] % 48 };
	if (size < HEAD + in->key_len)
		return false;
	for (size_t i = 0; i < in->key_len; i++)
		in->key[i] = (char)('!' + data[HEAD + i] % 94);
	for (size_t i = HEAD + in->key_len; i < size; i++) {
		if (data[i] > 127)
			sba_buf_put(&text, in->key,
				    in->key_len - (data[i] > 191 ? data[i] % in->key_len : 0));
		else
			sba_buf_putc(&text, data[i] < ' ' ? in->key[data[i] % in->key_len]
							  : (char)data[i]);
	}
	in->len = text.len;
	in->text = sba_buf_take(&text);
	return in->text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in;
	struct sba_redact *secret;
	if (!read_input(data, size, &in))
		return 0;
	assert(sba_redact_new(in.key, &secret, NULL) == 0);
	as_body(&in, secret);
	for (int f = 0; f < DELTAS_FORMATS; f++)
		as_deltas(&in, secret, (enum deltas_format)f);
	sba_redact_free(secret);
	free(in.text);
	return 0;
}
