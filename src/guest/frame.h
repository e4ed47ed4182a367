/* SPDX-License-Identifier: MIT */
/*
 * Takes the host's frames apart, in whatever pieces they arrive. Stores
 * nothing of a payload: it is handed on in pieces that point into the input.
 */
#ifndef SBA_GUEST_FRAME_H
#define SBA_GUEST_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "channel/protocol.h"

struct sba_guest_decoder {
	uint8_t head[SBA_RUN_FRAME_HEAD];
	size_t have;     /* bytes of the head */
	uint32_t length; /* of the payload, once the head is complete */
	uint32_t left;   /* of the payload, not handed on yet */
};

struct sba_guest_piece {
	uint8_t type;
	bool first;      /* the frame begins with this piece */
	bool last;       /* the frame ends with this piece */
	uint32_t length; /* of the whole payload */
	const uint8_t *data;
	size_t len;
};

enum sba_guest_decoded {
	SBA_DECODED_TOO_LONG = -1, /* ret->type says which; the stream is beyond use */
	SBA_DECODED_NOTHING = 0,   /* more input, or room for data, is needed */
	SBA_DECODED_PIECE = 1,
};

/*
 * The next piece of in. *ret_used bytes of it were consumed, whatever the
 * result. A piece of SBA_RUN_DATA is not longer than data_room: with no room
 * its payload stays in the input, while frames of other types still come out.
 */
enum sba_guest_decoded sba_guest_decoder_next(struct sba_guest_decoder *decoder, const uint8_t *in,
					      size_t len, size_t data_room,
					      struct sba_guest_piece *ret, size_t *ret_used);

#endif
