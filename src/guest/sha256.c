/* SPDX-License-Identifier: MIT */
/* SHA-256 in C, and with the instructions of x86 for it; see sha256.h. */
#include "guest/sha256.h"

#include <stdbool.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

static const uint32_t constants[64] __attribute__((aligned(16))) = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
	0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
	0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
	0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
	0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
	0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
	0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
	0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
	0xc67178f2,
};

typedef void blocks_fn(uint32_t state[8], const uint8_t *data, size_t count);

/* ---- in C ---- */

static uint32_t turn(uint32_t x, unsigned int by)
{
	return x >> by | x << (32 - by);
}

static uint32_t load(const uint8_t *from)
{
	return (uint32_t)from[0] << 24 | (uint32_t)from[1] << 16 | (uint32_t)from[2] << 8 | from[3];
}

static void spread(uint32_t w[64], const uint8_t *data)
{
	for (size_t i = 0; i < 16; i++)
		w[i] = load(data + 4 * i);
	for (size_t i = 16; i < 64; i++) {
		uint32_t a = w[i - 15], b = w[i - 2];

		w[i] = w[i - 16] + (turn(a, 7) ^ turn(a, 18) ^ a >> 3) + w[i - 7] +
		       (turn(b, 17) ^ turn(b, 19) ^ b >> 10);
	}
}

static void one_block(uint32_t state[8], const uint8_t *data)
{
	uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
	uint32_t e = state[4], f = state[5], g = state[6], h = state[7], w[64];

	spread(w, data);
	for (size_t i = 0; i < 64; i++) {
		uint32_t one = h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) +
			       constants[i] + w[i];
		uint32_t two =
			(turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));

		h = g;
		g = f;
		f = e;
		e = d + one;
		d = c;
		c = b;
		b = a;
		a = one + two;
	}
	state[0] += a;
	state[1] += b;
	state[2] += c;
	state[3] += d;
	state[4] += e;
	state[5] += f;
	state[6] += g;
	state[7] += h;
}

static void plain_blocks(uint32_t state[8], const uint8_t *data, size_t count)
{
	for (; count > 0; count--, data += SBA_GUEST_SHA256_BLOCK)
		one_block(state, data);
}

/* ---- by the processor ---- */

#if defined(__x86_64__)
static bool has_instructions(void)
{
	unsigned int a, b = 0, c = 0, d;

	if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & 1U << 29))
		return false;
	return __get_cpuid(1, &a, &b, &c, &d) && (c & 1U << 19) && (c & 1U << 9);
}

#define FAST __attribute__((target("sha,sse4.1,ssse3")))

/* The instructions want the state as ABEF and CDGH. */
FAST static void load_state(const uint32_t state[8], __m128i *abef, __m128i *cdgh)
{
	__m128i dcba = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)state), 0xb1);
	__m128i hgfe = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(state + 4)), 0x1b);

	*abef = _mm_alignr_epi8(dcba, hgfe, 8);
	*cdgh = _mm_blend_epi16(hgfe, dcba, 0xf0);
}

FAST static void store_state(uint32_t state[8], __m128i abef, __m128i cdgh)
{
	__m128i feba = _mm_shuffle_epi32(abef, 0x1b), dchg = _mm_shuffle_epi32(cdgh, 0xb1);

	_mm_storeu_si128((__m128i *)state, _mm_blend_epi16(feba, dchg, 0xf0));
	_mm_storeu_si128((__m128i *)(state + 4), _mm_alignr_epi8(dchg, feba, 8));
}

FAST static void fast_blocks(uint32_t state[8], const uint8_t *data, size_t count)
{
	const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0bLL, 0x0405060700010203LL);
	__m128i abef, cdgh;

	load_state(state, &abef, &cdgh);
	for (; count > 0; count--, data += SBA_GUEST_SHA256_BLOCK) {
		__m128i a = abef, c = cdgh, w[4];

		for (int i = 0; i < 4; i++)
			w[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)data + i), swap);
#pragma GCC unroll 16
		for (int i = 0; i < 16; i++) {
			__m128i *now = &w[i & 3], k;

			if (i >= 4) {
				__m128i last = w[(i + 3) & 3];
				__m128i mid = _mm_alignr_epi8(last, w[(i + 2) & 3], 4);

				*now = _mm_add_epi32(_mm_sha256msg1_epu32(*now, w[(i + 1) & 3]),
						     mid);
				*now = _mm_sha256msg2_epu32(*now, last);
			}
			k = _mm_add_epi32(*now, ((const __m128i *)constants)[i]);
			c = _mm_sha256rnds2_epu32(c, a, k);
			a = _mm_sha256rnds2_epu32(a, c, _mm_shuffle_epi32(k, 0x0e));
		}
		abef = _mm_add_epi32(abef, a);
		cdgh = _mm_add_epi32(cdgh, c);
	}
	store_state(state, abef, cdgh);
}

static bool plain_only;

void sba_guest_sha256_plain(void)
{
	plain_only = true;
}

static blocks_fn *pick(void)
{
	static blocks_fn *picked;

	if (plain_only)
		return plain_blocks;
	/* Threads that find it together find the same. */
	if (!picked)
		picked = has_instructions() ? fast_blocks : plain_blocks;
	return picked;
}
#else
void sba_guest_sha256_plain(void)
{
}

static blocks_fn *pick(void)
{
	return plain_blocks;
}
#endif

/* ---- the whole ---- */

void sba_guest_sha256_init(struct sba_guest_sha256 *sha)
{
	static const uint32_t first[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
					   0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };

	*sha = (struct sba_guest_sha256){ .len = 0 };
	memcpy(sha->state, first, sizeof(first));
}

void sba_guest_sha256_put(struct sba_guest_sha256 *sha, const void *data, size_t len)
{
	const uint8_t *from = data;
	size_t step;

	sha->len += len;
	if (sha->have > 0) {
		step = SBA_GUEST_SHA256_BLOCK - sha->have < len ? SBA_GUEST_SHA256_BLOCK - sha->have
								: len;
		memcpy(sha->rest + sha->have, from, step);
		sha->have += step;
		from += step;
		len -= step;
		if (sha->have < SBA_GUEST_SHA256_BLOCK)
			return;
		pick()(sha->state, sha->rest, 1);
		sha->have = 0;
	}
	pick()(sha->state, from, len / SBA_GUEST_SHA256_BLOCK);
	sha->have = len % SBA_GUEST_SHA256_BLOCK;
	memcpy(sha->rest, from + len - sha->have, sha->have);
}

void sba_guest_sha256_end(struct sba_guest_sha256 *sha, uint8_t ret[SBA_GUEST_SHA256_SIZE])
{
	static const uint8_t padding[SBA_GUEST_SHA256_BLOCK] = { 0x80 };
	uint64_t bits = sha->len * 8;
	size_t zeros =
		(2 * SBA_GUEST_SHA256_BLOCK - 8 - sha->have - 1) % SBA_GUEST_SHA256_BLOCK + 1;
	uint8_t end[8];

	for (size_t i = 0; i < sizeof(end); i++)
		end[i] = (uint8_t)(bits >> (56 - 8 * i));
	sba_guest_sha256_put(sha, padding, zeros);
	sba_guest_sha256_put(sha, end, sizeof(end));
	for (size_t i = 0; i < SBA_GUEST_SHA256_SIZE; i++)
		ret[i] = (uint8_t)(sha->state[i / 4] >> (24 - 8 * (i % 4)));
}
