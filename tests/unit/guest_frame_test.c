/* SPDX-License-Identifier: MIT */
/*
 * Frames and the start they describe: cut at every byte, too long, nonsense.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "guest/frame.h"
#include "guest/start.h"

#define NONCE "0123456789abcdef0123456789abcdef"

struct wire {
	size_t len;
	uint8_t data[4096];
};

static void head(struct wire *wire, char type, uint32_t len)
{
	uint8_t bytes[] = { (uint8_t)type, (uint8_t)(len >> 24), (uint8_t)(len >> 16),
			    (uint8_t)(len >> 8), (uint8_t)len };

	memcpy(wire->data + wire->len, bytes, sizeof(bytes));
	wire->len += sizeof(bytes);
}

static void frame(struct wire *wire, char type, const char *payload)
{
	size_t len = strlen(payload);

	head(wire, type, (uint32_t)len);
	memcpy(wire->data + wire->len, payload, len);
	wire->len += len;
}

/* What came out of the decoder, as text: "A:payload;" per frame. */
struct heard {
	size_t len;
	char text[4096];
};

static void note(struct heard *heard, const struct sba_guest_piece *piece)
{
	if (piece->first) {
		heard->text[heard->len++] = (char)piece->type;
		heard->text[heard->len++] = ':';
	}
	memcpy(heard->text + heard->len, piece->data, piece->len);
	heard->len += piece->len;
	if (piece->last)
		heard->text[heard->len++] = ';';
	heard->text[heard->len] = '\0';
}

static void decode(struct sba_guest_decoder *decoder, const uint8_t *in, size_t len,
		   struct heard *heard)
{
	struct sba_guest_piece piece;
	size_t used = 0;

	for (;;) {
		enum sba_guest_decoded rc =
			sba_guest_decoder_next(decoder, in, len, SIZE_MAX, &piece, &used);

		in += used;
		len -= used;
		if (rc != SBA_DECODED_PIECE)
			break;
		note(heard, &piece);
	}
	assert_int_equal(len, 0);
}

static void frames_survive_any_two_cuts(void **state)
{
	struct wire wire = { 0 };

	(void)state;
	frame(&wire, 'A', "echo");
	frame(&wire, 'G', "");
	frame(&wire, 'I', "hello world");
	frame(&wire, 'Z', "");
	for (size_t first = 0; first <= wire.len; first++) {
		for (size_t second = first; second <= wire.len; second++) {
			struct sba_guest_decoder decoder = { 0 };
			struct heard heard = { 0 };

			decode(&decoder, wire.data, first, &heard);
			decode(&decoder, wire.data + first, second - first, &heard);
			decode(&decoder, wire.data + second, wire.len - second, &heard);
			assert_string_equal(heard.text, "A:echo;G:;I:hello world;Z:;");
		}
	}
}

static void frame_of_the_greatest_length_is_accepted(void **state)
{
	struct sba_guest_decoder decoder = { 0 };
	struct sba_guest_piece piece;
	struct wire wire = { 0 };
	size_t used;

	(void)state;
	head(&wire, 'I', SBA_RUN_FRAME_MAX);
	wire.data[wire.len++] = 'x';
	assert_int_equal(
		sba_guest_decoder_next(&decoder, wire.data, wire.len, SIZE_MAX, &piece, &used),
		SBA_DECODED_PIECE);
	assert_int_equal(piece.length, SBA_RUN_FRAME_MAX);
	assert_true(piece.first);
	assert_false(piece.last);
}

static void longer_frame_is_refused_by_its_head(void **state)
{
	static const uint32_t lengths[] = { SBA_RUN_FRAME_MAX + 1, UINT32_MAX };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct sba_guest_decoder decoder = { 0 };
		struct sba_guest_piece piece;
		struct wire wire = { 0 };
		size_t used;

		head(&wire, 'E', lengths[i]);
		assert_int_equal(sba_guest_decoder_next(&decoder, wire.data, wire.len, SIZE_MAX,
							&piece, &used),
				 SBA_DECODED_TOO_LONG);
		assert_int_equal(piece.type, 'E');
	}
}

static void data_waits_for_room_but_control_does_not(void **state)
{
	struct sba_guest_decoder decoder = { 0 };
	struct sba_guest_piece piece;
	struct wire wire = { 0 };
	size_t at = 0;
	size_t used;

	(void)state;
	frame(&wire, 'C', "");
	frame(&wire, 'I', "abcd");
	assert_int_equal(sba_guest_decoder_next(&decoder, wire.data, wire.len, 0, &piece, &used),
			 SBA_DECODED_PIECE);
	assert_int_equal(piece.type, 'C');
	at += used;
	assert_int_equal(
		sba_guest_decoder_next(&decoder, wire.data + at, wire.len - at, 0, &piece, &used),
		SBA_DECODED_NOTHING);
	at += used;
	assert_int_equal(wire.len - at, 4);
	assert_int_equal(
		sba_guest_decoder_next(&decoder, wire.data + at, wire.len - at, 3, &piece, &used),
		SBA_DECODED_PIECE);
	assert_int_equal(piece.len, 3);
	assert_true(piece.first && !piece.last);
	at += used;
	assert_int_equal(
		sba_guest_decoder_next(&decoder, wire.data + at, wire.len - at, 3, &piece, &used),
		SBA_DECODED_PIECE);
	assert_int_equal(piece.len, 1);
	assert_true(!piece.first && piece.last);
}

static enum sba_guest_step feed(struct sba_guest_start *start, const uint8_t *in, size_t len)
{
	struct sba_guest_decoder decoder = { 0 };
	enum sba_guest_step step = SBA_STEP_MORE;
	struct sba_guest_piece piece;
	size_t used;

	while (step == SBA_STEP_MORE && sba_guest_decoder_next(&decoder, in, len, SIZE_MAX, &piece,
							       &used) == SBA_DECODED_PIECE) {
		step = sba_guest_start_feed(start, &piece);
		in += used;
		len -= used;
	}
	return step;
}

static enum sba_guest_step start_of(const struct wire *wire)
{
	struct sba_guest_start start;
	enum sba_guest_step step;

	sba_guest_start_init(&start);
	step = feed(&start, wire->data, wire->len);
	sba_guest_start_fini(&start);
	return step;
}

static void start_collects_everything(void **state)
{
	struct sba_guest_start start;
	struct wire wire = { 0 };

	(void)state;
	frame(&wire, 'E', "A=1\n2");
	frame(&wire, 'A', "echo");
	frame(&wire, 'N', NONCE);
	frame(&wire, 'A', "");
	frame(&wire, 'W', "/tmp");
	frame(&wire, 'D', "1500");
	frame(&wire, 'T', "24x80");
	frame(&wire, 'B', "");
	frame(&wire, 'G', "");
	sba_guest_start_init(&start);
	assert_int_equal(feed(&start, wire.data, wire.len), SBA_STEP_GO);
	assert_string_equal(start.nonce, NONCE);
	assert_int_equal(start.args.count, 2);
	assert_string_equal(start.args.items[0], "echo");
	assert_string_equal(start.args.items[1], "");
	assert_null(start.args.items[2]);
	assert_string_equal(start.env.items[0], "A=1\n2");
	assert_string_equal(start.cwd, "/tmp");
	assert_int_equal(start.deadline_ms, 1500);
	assert_true(start.tty && start.detach);
	assert_int_equal(start.size.ws_row, 24);
	assert_int_equal(start.size.ws_col, 80);
	sba_guest_start_fini(&start);
}

static void many_arguments_are_kept_in_order(void **state)
{
	struct sba_guest_start start;
	struct wire wire = { 0 };
	char text[16];

	(void)state;
	for (int i = 0; i < 300; i++) {
		snprintf(text, sizeof(text), "%d", i);
		frame(&wire, 'A', text);
	}
	sba_guest_start_init(&start);
	assert_int_equal(feed(&start, wire.data, wire.len), SBA_STEP_MORE);
	assert_int_equal(start.args.count, 300);
	assert_string_equal(start.args.items[299], "299");
	assert_null(start.args.items[300]);
	sba_guest_start_fini(&start);
}

static void go_needs_a_nonce_and_a_program(void **state)
{
	struct wire without_nonce = { 0 };
	struct wire without_program = { 0 };

	(void)state;
	frame(&without_nonce, 'A', "echo");
	frame(&without_nonce, 'G', "");
	frame(&without_program, 'N', NONCE);
	frame(&without_program, 'G', "");
	assert_int_equal(start_of(&without_nonce), SBA_STEP_BAD);
	assert_int_equal(start_of(&without_program), SBA_STEP_BAD);
}

static void senseless_frames_are_refused(void **state)
{
	static const struct {
		char type;
		const char *payload;
	} frames[] = {
		{ 'N', "0123" },       { 'N', "0123456789ABCDEF0123456789ABCDEF" },
		{ 'E', "NOEQ" },       { 'E', "=x" },
		{ 'E', "" },           { 'W', "" },
		{ 'D', "-1" },         { 'D', "" },
		{ 'D', "1s" },         { 'D', "99999999999999999999" },
		{ 'T', "24" },         { 'T', "0x80" },
		{ 'T', "24x80x" },     { 'T', "70000x80" },
		{ 'B', "x" },          { 'G', "x" },
		{ 'I', "data early" }, { 'Z', "" },
		{ 'S', "15" },         { '?', "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(frames) / sizeof(frames[0]); i++) {
		struct wire wire = { 0 };

		frame(&wire, frames[i].type, frames[i].payload);
		assert_int_equal(start_of(&wire), SBA_STEP_BAD);
	}
}

static void second_nonce_is_refused(void **state)
{
	struct wire wire = { 0 };

	(void)state;
	frame(&wire, 'N', NONCE);
	frame(&wire, 'N', "f123456789abcdef0123456789abcdef");
	assert_int_equal(start_of(&wire), SBA_STEP_BAD);
}

static void nul_in_a_string_is_refused(void **state)
{
	(void)state;
	for (const char *type = "AEWN"; *type; type++) {
		struct wire wire = { 0 };

		head(&wire, *type, 5);
		memcpy(wire.data + wire.len, "a=\0bc", 5);
		wire.len += 5;
		assert_int_equal(start_of(&wire), SBA_STEP_BAD);
	}
}

static void start_larger_than_its_limit_is_refused(void **state)
{
	static uint8_t block[SBA_RUN_FRAME_MAX];
	struct sba_guest_piece piece = { .type = 'A',
					 .first = true,
					 .last = true,
					 .length = sizeof(block),
					 .data = block,
					 .len = sizeof(block) };
	struct sba_guest_start start;

	(void)state;
	memset(block, 'x', sizeof(block));
	sba_guest_start_init(&start);
	for (int i = 0; i < SBA_GUEST_START_MAX / SBA_RUN_FRAME_MAX; i++)
		assert_int_equal(sba_guest_start_feed(&start, &piece), SBA_STEP_MORE);
	piece.length = 1;
	piece.len = 1;
	assert_int_equal(sba_guest_start_feed(&start, &piece), SBA_STEP_BAD);
	sba_guest_start_fini(&start);
}

static void more_variables_than_the_limit_are_refused(void **state)
{
	struct sba_guest_piece piece = { .type = 'E',
					 .first = true,
					 .last = true,
					 .length = 3,
					 .data = (const uint8_t *)"A=1",
					 .len = 3 };
	struct sba_guest_start start;

	(void)state;
	sba_guest_start_init(&start);
	for (int i = 0; i < SBA_GUEST_ENV_MAX; i++)
		assert_int_equal(sba_guest_start_feed(&start, &piece), SBA_STEP_MORE);
	assert_int_equal(sba_guest_start_feed(&start, &piece), SBA_STEP_BAD);
	sba_guest_start_fini(&start);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_survive_any_two_cuts),
		cmocka_unit_test(frame_of_the_greatest_length_is_accepted),
		cmocka_unit_test(longer_frame_is_refused_by_its_head),
		cmocka_unit_test(data_waits_for_room_but_control_does_not),
		cmocka_unit_test(start_collects_everything),
		cmocka_unit_test(many_arguments_are_kept_in_order),
		cmocka_unit_test(go_needs_a_nonce_and_a_program),
		cmocka_unit_test(senseless_frames_are_refused),
		cmocka_unit_test(second_nonce_is_refused),
		cmocka_unit_test(nul_in_a_string_is_refused),
		cmocka_unit_test(start_larger_than_its_limit_is_refused),
		cmocka_unit_test(more_variables_than_the_limit_are_refused),
	};

	alarm(20);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
