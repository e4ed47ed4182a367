/* SPDX-License-Identifier: MIT */
/*
 * The frame decoder; see frame.h.
 */
#include "guest/frame.h"

static size_t take_head(struct sba_guest_decoder *decoder, const uint8_t *in, size_t len)
{
	const uint8_t *size = decoder->head + 1;
	size_t used = 0;

	while (used < len && decoder->have < SBA_RUN_FRAME_HEAD)
		decoder->head[decoder->have++] = in[used++];
	if (used > 0 && decoder->have == SBA_RUN_FRAME_HEAD) {
		decoder->length = (uint32_t)size[0] << 24 | (uint32_t)size[1] << 16 |
				  (uint32_t)size[2] << 8 | size[3];
		decoder->left = decoder->length;
	}
	return used;
}

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

enum sba_guest_decoded sba_guest_decoder_next(struct sba_guest_decoder *decoder, const uint8_t *in,
					      size_t len, size_t data_room,
					      struct sba_guest_piece *ret, size_t *ret_used)
{
	size_t used = take_head(decoder, in, len);
	struct sba_guest_piece piece = { .type = decoder->head[0], .length = decoder->length };

	*ret_used = used;
	if (decoder->have < SBA_RUN_FRAME_HEAD)
		return SBA_DECODED_NOTHING;
	if (decoder->length > SBA_RUN_FRAME_MAX) {
		*ret = piece;
		return SBA_DECODED_TOO_LONG;
	}
	piece.data = in + used;
	piece.len = smaller(len - used, decoder->left);
	if (piece.type == SBA_RUN_DATA)
		piece.len = smaller(piece.len, data_room);
	if (piece.len == 0 && decoder->left > 0)
		return SBA_DECODED_NOTHING;
	piece.first = decoder->left == decoder->length;
	decoder->left -= (uint32_t)piece.len;
	piece.last = decoder->left == 0;
	if (piece.last)
		decoder->have = 0;
	*ret_used = used + piece.len;
	*ret = piece;
	return SBA_DECODED_PIECE;
}
