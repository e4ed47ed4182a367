/* SPDX-License-Identifier: MIT */
/*
 * The body of a request: by length, or in chunks, which are parsed and written
 * anew without extensions and trailers. It never lets a byte beyond the body's
 * end through: that byte could begin a request which nobody judged.
 */
#include "proxy/private.h"

#include <string.h>

enum { CHUNK_DIGITS_MAX = 15 }; /* of hexadecimal; no overflow */

enum state {
	SIZE,
	SIZE_LF,
	DATA,
	DATA_CR,
	DATA_LF,
	LINE, /* the begin of a trailer line, or the empty line that ends all */
	TRAILER,
	TRAILER_LF,
	END_LF,
};

void sba_proxy_body_init(struct sba_proxy_body *b, const struct sba_proxy_request *r)
{
	*b = (struct sba_proxy_body){
		.chunked = r->chunked,
		.left = r->length,
		.done = !r->chunked && r->length == 0,
	};
}

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int feed_size(struct sba_proxy_body *b, char c, struct sba_error *err)
{
	int digit = hex(c);
	if (digit >= 0 && b->digits < CHUNK_DIGITS_MAX) {
		b->left = b->left * 16 + (unsigned)digit;
		b->digits++;
	} else if (c == '\r' && b->digits > 0) {
		b->state = SIZE_LF;
	} else if (c == ';' || c == ' ' || c == '\t') {
		return sba_proxy_bad(err, 400, "a chunk extension");
	} else {
		return sba_proxy_bad(err, 400, "a chunk without a size");
	}
	return 0;
}

static int feed_line(struct sba_proxy_body *b, char c, struct sba_error *err)
{
	if (c == '\r') {
		b->state = b->state == LINE ? END_LF : TRAILER_LF;
		return 0;
	}
	if (b->state == LINE && (c == ' ' || c == '\t'))
		return sba_proxy_bad(err, 400, "a folded trailer line");
	if ((unsigned char)c < ' ' && c != '\t')
		return sba_proxy_bad(err, 400, "a control character in a trailer");
	if (++b->trailer > SBA_PROXY_TRAILER_MAX)
		return sba_proxy_bad(err, 400, "a trailer larger than 8 KiB");
	b->state = TRAILER;
	return 0;
}

/* The one byte that may come next in these states, and what comes then. */
static int feed_fixed(struct sba_proxy_body *b, char c, struct sba_error *err)
{
	if (c != (b->state == DATA_CR ? '\r' : '\n'))
		return sba_proxy_bad(err, 400, "a line of a chunk that does not end");
	switch ((enum state)b->state) {
	case DATA_CR:
		b->state = DATA_LF;
		break;
	case SIZE_LF:
		b->state = b->left ? DATA : LINE;
		break;
	case TRAILER_LF:
		b->state = LINE;
		break;
	case END_LF:
		b->done = true;
		break;
	default:
		b->state = SIZE;
		b->left = 0;
		b->digits = 0;
	}
	return 0;
}

static int feed_byte(struct sba_proxy_body *b, char c, struct sba_error *err)
{
	if (b->state == SIZE)
		return feed_size(b, c, err);
	if (b->state == LINE || b->state == TRAILER)
		return feed_line(b, c, err);
	return feed_fixed(b, c, err);
}

static size_t feed_data(struct sba_proxy_body *b, const char *data, size_t len, struct sba_buf *out)
{
	size_t n = len < b->left ? len : (size_t)b->left;
	if (b->chunked)
		sba_buf_printf(out, "%zx\r\n", n);
	sba_buf_put(out, data, n);
	if (b->chunked)
		sba_buf_puts(out, "\r\n");
	b->left -= n;
	if (b->left == 0 && b->chunked)
		b->state = DATA_CR;
	else if (b->left == 0)
		b->done = true;
	return n;
}

int sba_proxy_body_feed(struct sba_proxy_body *b, const char *data, size_t len, struct sba_buf *out,
			struct sba_error *err)
{
	for (size_t i = 0; i < len && !b->done;) {
		if (!b->chunked || b->state == DATA) {
			i += feed_data(b, data + i, len - i, out);
			continue;
		}
		int rc = feed_byte(b, data[i++], err);
		if (rc < 0)
			return rc;
		if (b->done)
			sba_buf_puts(out, "0\r\n\r\n");
	}
	return 0;
}
