/* SPDX-License-Identifier: MIT */
/*
 * Frames as they come in on stdin: a buffer in front of the decoder.
 */
#ifndef SBA_GUEST_INPUT_H
#define SBA_GUEST_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "guest/frame.h"

enum { SBA_GUEST_INPUT_SIZE = 64 * 1024 };

struct sba_guest_input {
	struct sba_guest_decoder decoder;
	bool ended; /* nothing more will come: the client is gone */
	size_t at;
	size_t len;
	uint8_t data[SBA_GUEST_INPUT_SIZE];
};

/* True if a read is of use: all that came has been taken, and more may come. */
bool sba_guest_input_hungry(const struct sba_guest_input *input);

/* One read() of stdin, when hungry. */
void sba_guest_input_read(struct sba_guest_input *input);

/* The next piece of what was read; see sba_guest_decoder_next(). */
enum sba_guest_decoded sba_guest_input_next(struct sba_guest_input *input, size_t data_room,
					    struct sba_guest_piece *ret);

/* Stops listening, after nonsense. */
void sba_guest_input_abandon(struct sba_guest_input *input);

#endif
