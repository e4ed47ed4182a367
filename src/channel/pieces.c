/* SPDX-License-Identifier: MIT */
/* Takes a command's output apart into its two streams, cut anywhere. */
#include "channel/private.h"

/* Fills the head; true once it is whole. Padding is dropped. */
static size_t take_head(struct sba_pieces *p, const char *data, size_t len)
{
	size_t used = 0;
	while (used < len && p->have < SBA_CHANNEL_PIECE_HEAD) {
		unsigned char byte = (unsigned char)data[used++];
		if (p->have > 0 || byte != 0)
			p->head[p->have++] = byte;
	}
	if (used > 0 && p->have == SBA_CHANNEL_PIECE_HEAD)
		p->left = (uint32_t)sba_be_get(p->head + 1, 3);
	return used;
}

ssize_t sba_pieces_feed(struct sba_pieces *p, const char *data, size_t len, int *kind,
			const char **payload, size_t *payload_len, struct sba_error *err)
{
	size_t used = take_head(p, data, len);
	*payload_len = 0;
	if (p->have < SBA_CHANNEL_PIECE_HEAD)
		return (ssize_t)used;
	if (p->head[0] > 2 || (p->left == 0 && used > 0))
		return sba_fail(err, SBA_EPROTO, "output of kind %d and %u bytes", p->head[0],
				p->left);
	size_t n = len - used < p->left ? len - used : p->left;
	*kind = p->head[0];
	*payload = data + used;
	*payload_len = n;
	p->left -= (uint32_t)n;
	if (p->left == 0)
		p->have = 0;
	return (ssize_t)(used + n);
}

bool sba_pieces_at_border(const struct sba_pieces *p)
{
	return p->have == 0;
}
