/* SPDX-License-Identifier: MIT */
/*
 * The buffer in front of the frame decoder; see input.h.
 */
#include "guest/input.h"

#include <errno.h>
#include <unistd.h>

bool sba_guest_input_hungry(const struct sba_guest_input *input)
{
	return !input->ended && input->at == input->len;
}

void sba_guest_input_read(struct sba_guest_input *input)
{
	ssize_t got = read(STDIN_FILENO, input->data, sizeof(input->data));

	if (got < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	input->at = 0;
	input->len = got > 0 ? (size_t)got : 0;
	input->ended = got <= 0;
}

enum sba_guest_decoded sba_guest_input_next(struct sba_guest_input *input, size_t data_room,
					    struct sba_guest_piece *ret)
{
	size_t used = 0;
	enum sba_guest_decoded rc;

	if (input->at == input->len)
		return SBA_DECODED_NOTHING;
	rc = sba_guest_decoder_next(&input->decoder, input->data + input->at,
				    input->len - input->at, data_room, ret, &used);
	input->at += used;
	return rc;
}

void sba_guest_input_abandon(struct sba_guest_input *input)
{
	input->ended = true;
	input->at = 0;
	input->len = 0;
}
