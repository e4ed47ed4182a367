/* SPDX-License-Identifier: MIT */
/* Base64 as RFC 4648 has it, and nothing that looks like it; hashes; randomness. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/base.h"

#include <string.h>

static void base64_of_the_rfcs_examples(void **state)
{
	(void)state;
	static const char *const pairs[][2] = {
		{ "", "" },
		{ "f", "Zg==" },
		{ "fo", "Zm8=" },
		{ "foo", "Zm9v" },
		{ "foob", "Zm9vYg==" },
		{ "fooba", "Zm9vYmE=" },
		{ "foobar", "Zm9vYmFy" },
	};
	for (size_t i = 0; i < SBA_ARRAY_LEN(pairs); i++) {
		SBA_BUF struct sba_buf out = SBA_BUF_INIT(100), back = SBA_BUF_INIT(100);
		sba_buf_puts(&out, "");
		sba_buf_puts(&back, "");
		sba_base64_put(&out, pairs[i][0], strlen(pairs[i][0]), false);
		assert_string_equal(out.data, pairs[i][1]);
		assert_int_equal(sba_base64_decode(out.data, out.len, false, &back), 0);
		assert_string_equal(back.data, pairs[i][0]);
	}
}

static void every_byte_survives_both_alphabets(void **state)
{
	(void)state;
	unsigned char all[257];
	for (size_t i = 0; i < sizeof(all); i++)
		all[i] = (unsigned char)i;
	for (size_t len = 254; len <= sizeof(all); len++) {
		for (int url = 0; url < 2; url++) {
			SBA_BUF struct sba_buf out = SBA_BUF_INIT(1000), back = SBA_BUF_INIT(1000);
			sba_base64_put(&out, all, len, url);
			assert_int_equal(strpbrk(out.data, "+/") != NULL, !url);
			assert_int_equal(strpbrk(out.data, "-_") != NULL, url);
			assert_int_equal(sba_base64_decode(out.data, out.len, url, &back), 0);
			assert_int_equal(back.len, len);
			assert_memory_equal(back.data, all, len);
			assert_int_equal(sba_base64_decode(out.data, out.len, !url, &back),
					 SBA_EINVAL);
		}
	}
}

static void what_is_not_strictly_base64_is_refused(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"Zg",   "Zg=",  "Z===", "====", "Zg==Zg==", "Zm9v\n", "Zm9 ",
		"Zh==", "Zm9=", "=m9v", "Zm=v", "Zm9v====", "Zm\0v",  "Zm9\xff",
	};
	for (size_t i = 0; i < SBA_ARRAY_LEN(bad); i++) {
		SBA_BUF struct sba_buf out = SBA_BUF_INIT(100);
		size_t len = bad[i][2] == '\0' && bad[i][1] == 'm' ? 4 : strlen(bad[i]);
		if (sba_base64_decode(bad[i], len, false, &out) == 0)
			fail_msg("'%s' is taken", bad[i]);
	}
}

static void more_than_there_is_room_for_is_a_limit(void **state)
{
	(void)state;
	SBA_BUF struct sba_buf out = SBA_BUF_INIT(2);
	assert_int_equal(sba_base64_decode("Zm9v", 4, false, &out), SBA_ELIMIT);
}

static void sha256_of_what_is_known(void **state)
{
	(void)state;
	char hex[SBA_SHA256_HEX];
	assert_int_equal(sba_sha256_hex("", 0, hex), 0);
	assert_string_equal(hex,
			    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	assert_int_equal(sba_sha256_hex("abc", 3, hex), 0);
	assert_string_equal(hex,
			    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

static void random_ids_have_their_shape_and_are_not_the_same(void **state)
{
	(void)state;
	char a[33], b[33], uuid[37], other[37];
	assert_int_equal(sba_random_hex(a, 16, NULL), 0);
	assert_int_equal(sba_random_hex(b, 16, NULL), 0);
	assert_int_equal(strspn(a, "0123456789abcdef"), 32);
	assert_string_not_equal(a, b);
	assert_int_equal(sba_random_uuid(uuid, NULL), 0);
	assert_int_equal(sba_random_uuid(other, NULL), 0);
	assert_string_not_equal(uuid, other);
	assert_int_equal(strlen(uuid), 36);
	for (size_t i = 0; i < 36; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;
		assert_int_equal(uuid[i] == '-', dash);
	}
	assert_int_equal(uuid[14], '4');
	assert_non_null(strchr("89ab", uuid[19]));
}

static void numbers_in_network_order_go_there_and_back(void **state)
{
	(void)state;
	unsigned char b[9] = { 0 };
	assert_ptr_equal(sba_be_put(b, 0x0102030405060708, 8), b + 8);
	assert_memory_equal(b, "\1\2\3\4\5\6\7\10\0", 9);
	assert_int_equal(sba_be_get(b, 8), 0x0102030405060708);
	assert_int_equal(sba_be_get(b + 1, 3), 0x020304);
	assert_ptr_equal(sba_be_put(b, 0x1ff, 1), b + 1);
	assert_memory_equal(b, "\xff\2", 2);
	sba_be_put(b, UINT64_MAX, 8);
	assert_true(sba_be_get(b, 8) == UINT64_MAX);
	assert_int_equal(sba_be_get(b, 4), UINT32_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_in_network_order_go_there_and_back),
		cmocka_unit_test(base64_of_the_rfcs_examples),
		cmocka_unit_test(every_byte_survives_both_alphabets),
		cmocka_unit_test(what_is_not_strictly_base64_is_refused),
		cmocka_unit_test(more_than_there_is_room_for_is_a_limit),
		cmocka_unit_test(sha256_of_what_is_known),
		cmocka_unit_test(random_ids_have_their_shape_and_are_not_the_same),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
