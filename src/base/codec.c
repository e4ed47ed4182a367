/* SPDX-License-Identifier: MIT */
/*
 * Numbers in network order, base64 (RFC 4648, strict: OpenSSL's decoder takes what it
 * should not), SHA-256, randomness.
 */
#include "base/base.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

unsigned char *sba_be_put(unsigned char *to, uint64_t n, size_t len)
{
	for (size_t i = 0; i < len; i++)
		to[i] = (unsigned char)(n >> 8 * (len - 1 - i));
	return to + len;
}

uint64_t sba_be_get(const unsigned char *from, size_t len)
{
	uint64_t n = 0;
	for (size_t i = 0; i < len; i++)
		n = n << 8 | from[i];
	return n;
}

bool sba_is_zero(const void *data, size_t len)
{
	const char *at = data;
	return at[0] == 0 && memcmp(at, at + 1, len - 1) == 0;
}

static const char std_alphabet[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char url_alphabet_[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

void sba_base64_put(struct sba_buf *b, const void *data, size_t len, bool url_alphabet)
{
	const char *abc = url_alphabet ? url_alphabet_ : std_alphabet;
	const unsigned char *s = data;
	for (size_t i = 0; i < len; i += 3) {
		size_t n = len - i < 3 ? len - i : 3;
		unsigned v = (unsigned)s[i] << 16;
		if (n > 1)
			v |= (unsigned)s[i + 1] << 8;
		if (n > 2)
			v |= s[i + 2];
		char out[4] = { abc[v >> 18], abc[v >> 12 & 63], n > 1 ? abc[v >> 6 & 63] : '=',
				n > 2 ? abc[v & 63] : '=' };
		sba_buf_put(b, out, sizeof(out));
	}
}

static int digit(const char *abc, char c)
{
	const char *at = c ? strchr(abc, c) : NULL;
	return at ? (int)(at - abc) : -1;
}

/* One group of four; returns how many bytes it holds, or -1. */
static int decode_group(const char *abc, const char *s, bool last, unsigned char out[3])
{
	int pad = 0;
	if (last && s[3] == '=')
		pad = s[2] == '=' ? 2 : 1;
	int v = 0;
	for (int i = 0; i < 4; i++) {
		int d = i >= 4 - pad ? 0 : digit(abc, s[i]);
		if (d < 0)
			return -1;
		v = v << 6 | d;
	}
	out[0] = (unsigned char)(v >> 16);
	out[1] = (unsigned char)(v >> 8);
	out[2] = (unsigned char)v;
	/* Bits that the padding says are not there must be zero. */
	if ((pad == 1 && out[2]) || (pad == 2 && (out[1] || out[2])))
		return -1;
	return 3 - pad;
}

int sba_base64_decode(const char *s, size_t len, bool url_alphabet, struct sba_buf *ret)
{
	const char *abc = url_alphabet ? url_alphabet_ : std_alphabet;
	if (len % 4)
		return SBA_EINVAL;
	for (size_t i = 0; i < len; i += 4) {
		unsigned char out[3];
		int n = decode_group(abc, s + i, i + 4 == len, out);
		if (n < 0)
			return SBA_EINVAL;
		sba_buf_put(ret, out, (size_t)n);
	}
	return ret->failed;
}

void sba_hex(char *ret, const unsigned char *bytes, size_t n)
{
	static const char digits[] = "0123456789abcdef";
	for (size_t i = 0; i < n; i++) {
		ret[2 * i] = digits[bytes[i] >> 4];
		ret[2 * i + 1] = digits[bytes[i] & 15];
	}
	ret[2 * n] = '\0';
}

int sba_sha256(const void *data, size_t len, unsigned char ret[SBA_SHA256_SIZE])
{
	unsigned n = 0;
	return EVP_Digest(data, len, ret, &n, EVP_sha256(), NULL) && n == SBA_SHA256_SIZE
		       ? 0
		       : SBA_ENOMEM;
}

int sba_sha256_hex(const void *data, size_t len, char ret[SBA_SHA256_HEX])
{
	unsigned char md[SBA_SHA256_SIZE];
	int rc = sba_sha256(data, len, md);
	if (rc == 0)
		sba_hex(ret, md, sizeof(md));
	return rc;
}

int sba_sha256_file(int fd, unsigned char ret[SBA_SHA256_SIZE])
{
	enum { PIECE = 128 * 1024 };
	SBA_FREE char *piece = malloc(PIECE);
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	unsigned n = 0;
	ssize_t got = 1;
	bool good = piece && ctx && EVP_DigestInit_ex(ctx, EVP_sha256(), NULL);
	int e = good ? 0 : ENOMEM;
	while (good && (got = read(fd, piece, PIECE)) != 0) {
		if (got < 0 && errno == EINTR)
			continue;
		e = got < 0 ? errno : 0;
		good = got > 0 && EVP_DigestUpdate(ctx, piece, (size_t)got);
	}
	good = good && EVP_DigestFinal_ex(ctx, ret, &n);
	EVP_MD_CTX_free(ctx);
	if (!good)
		errno = e ? e : ENOMEM;
	return good ? 0 : -1;
}

int sba_git_blob_name(const void *data, size_t len, char ret[SBA_GIT_NAME])
{
	char head[40];
	unsigned char md[EVP_MAX_MD_SIZE];
	unsigned n = 0;
	int head_len = snprintf(head, sizeof(head), "blob %zu", len);
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	bool done = ctx && EVP_DigestInit_ex(ctx, EVP_sha1(), NULL) &&
		    EVP_DigestUpdate(ctx, head, (size_t)head_len + 1) &&
		    (len == 0 || EVP_DigestUpdate(ctx, data, len)) &&
		    EVP_DigestFinal_ex(ctx, md, &n) && n == 20;
	EVP_MD_CTX_free(ctx);
	if (done)
		sba_hex(ret, md, n);
	return done ? 0 : SBA_ENOMEM;
}

int sba_random(void *ret, size_t len, struct sba_error *err)
{
	char *at = ret;
	while (len > 0) {
		ssize_t n = getrandom(at, len, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return sba_fail_errno(err, SBA_EIO, errno, "random bytes");
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

int sba_random_hex(char *ret, size_t bytes, struct sba_error *err)
{
	unsigned char raw[64];
	if (bytes > sizeof(raw))
		return sba_fail(err, SBA_EINVAL, "random: %zu bytes at once", bytes);
	int rc = sba_random(raw, bytes, err);
	if (rc == 0)
		sba_hex(ret, raw, bytes);
	return rc;
}

int sba_random_uuid(char ret[37], struct sba_error *err)
{
	unsigned char raw[16];
	int rc = sba_random(raw, sizeof(raw), err);
	if (rc < 0)
		return rc;
	raw[6] = (unsigned char)((raw[6] & 0x0F) | 0x40);
	raw[8] = (unsigned char)((raw[8] & 0x3F) | 0x80);
	char hex[33];
	sba_hex(hex, raw, sizeof(raw));
	snprintf(ret, 37, "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12, hex + 16, hex + 20);
	return 0;
}
