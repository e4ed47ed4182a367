/* SPDX-License-Identifier: MIT */
/*
 * The TLS transport (OpenSSL): client certificates, host name verification,
 * half-close by close_notify. Its own BIO, because OpenSSL's socket BIO
 * writes without MSG_NOSIGNAL and a library must not raise SIGPIPE.
 */
#include "engine/private.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct sba_tls {
	SSL_CTX *ctx;
	BIO_METHOD *bio;
	bool verify;
};

struct tls_transport {
	struct sba_transport base; /* first: a transport is cast to this */
	SSL *ssl;
	BIO_METHOD *bio;
};

/* ---- the BIO over a non-blocking socket ---- */

static int bio_fd(BIO *b)
{
	return ((struct tls_transport *)BIO_get_data(b))->base.fd;
}

static int bio_read(BIO *b, char *buf, int len)
{
	BIO_clear_retry_flags(b);
	ssize_t n = recv(bio_fd(b), buf, (size_t)len, 0);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		BIO_set_retry_read(b);
	return (int)n;
}

static int bio_write(BIO *b, const char *buf, int len)
{
	BIO_clear_retry_flags(b);
	ssize_t n = send(bio_fd(b), buf, (size_t)len, MSG_NOSIGNAL);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		BIO_set_retry_write(b);
	return (int)n;
}

static long bio_ctrl(BIO *b, int cmd, long num, void *ptr)
{
	(void)b;
	(void)num;
	(void)ptr;
	return cmd == BIO_CTRL_FLUSH || cmd == BIO_CTRL_DUP;
}

static BIO_METHOD *bio_method(void)
{
	BIO_METHOD *m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "engine socket");
	if (m && BIO_meth_set_read(m, bio_read) && BIO_meth_set_write(m, bio_write) &&
	    BIO_meth_set_ctrl(m, bio_ctrl))
		return m;
	BIO_meth_free(m);
	return NULL;
}

/* ---- errors ---- */

static int tls_fail(struct sba_error *err, int code, const char *what)
{
	unsigned long e = ERR_get_error();
	const char *why = e ? ERR_reason_error_string(e) : NULL;
	ERR_clear_error();
	return sba_fail(err, code, "%s: %s", what, why ? why : "TLS failed");
}

/* What a call that returned n <= 0 means: SBA_AGAIN with *wants set, 0 at the
 * orderly end, or SBA_ELOST. */
static int tls_verdict(struct tls_transport *t, int n, short *wants, struct sba_error *err)
{
	switch (SSL_get_error(t->ssl, n)) {
	case SSL_ERROR_WANT_READ:
		*wants = POLLIN;
		return SBA_AGAIN;
	case SSL_ERROR_WANT_WRITE:
		*wants = POLLOUT;
		return SBA_AGAIN;
	case SSL_ERROR_ZERO_RETURN:
		return 0;
	default:
		return tls_fail(err, SBA_ELOST, "the TLS connection to the engine broke");
	}
}

/* ---- the transport ---- */

static int clamp(size_t len)
{
	return len < (1U << 30) ? (int)len : 1 << 30;
}

static ssize_t tls_read(struct sba_transport *base, void *buf, size_t len, struct sba_error *err)
{
	struct tls_transport *t = (struct tls_transport *)base;
	ERR_clear_error();
	int n = SSL_read(t->ssl, buf, clamp(len));
	return n > 0 ? n : tls_verdict(t, n, &t->base.read_wants, err);
}

static ssize_t tls_write(struct sba_transport *base, const void *buf, size_t len,
			 struct sba_error *err)
{
	struct tls_transport *t = (struct tls_transport *)base;
	ERR_clear_error();
	int n = SSL_write(t->ssl, buf, clamp(len));
	if (n > 0)
		return n;
	int rc = tls_verdict(t, n, &t->base.write_wants, err);
	return rc ? rc : sba_fail(err, SBA_ELOST, "the engine closed the TLS connection");
}

static int tls_shutdown(struct sba_transport *base)
{
	struct tls_transport *t = (struct tls_transport *)base;
	ERR_clear_error();
	int n = SSL_shutdown(t->ssl);
	if (n >= 0)
		return 0;
	int rc = tls_verdict(t, n, &t->base.write_wants, NULL);
	/* Once close_notify is out, it wants to read the other side's: not ours to wait for. */
	return rc == SBA_AGAIN && t->base.write_wants == POLLOUT ? SBA_AGAIN : 0;
}

static void tls_close(struct sba_transport *base)
{
	struct tls_transport *t = (struct tls_transport *)base;
	SSL_free(t->ssl);
	close(t->base.fd);
	free(t);
}

static const struct sba_transport_ops tls_ops = {
	.read = tls_read,
	.write = tls_write,
	.shutdown_write = tls_shutdown,
	.close = tls_close,
};

/* ---- the handshake ---- */

static bool expect_host(SSL *ssl, const char *host)
{
	unsigned char address[16];
	if (inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1)
		return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1;
	return SSL_set_tlsext_host_name(ssl, host) == 1 && SSL_set1_host(ssl, host) == 1;
}

static int prepare(struct tls_transport *t, const struct sba_tls *tls, const char *host,
		   struct sba_error *err)
{
	t->ssl = SSL_new(tls->ctx);
	BIO *bio = t->ssl ? BIO_new(tls->bio) : NULL;
	if (!bio)
		return sba_fail_nomem(err);
	BIO_set_data(bio, t);
	BIO_set_init(bio, 1);
	SSL_set_bio(t->ssl, bio, bio);
	if (tls->verify && !expect_host(t->ssl, host))
		return tls_fail(err, SBA_EINVAL, host);
	return 0;
}

static int handshake_failed(struct tls_transport *t, const char *host, struct sba_error *err)
{
	long verdict = SSL_get_verify_result(t->ssl);
	if (verdict != X509_V_OK)
		return sba_fail(err, SBA_ECONNECT, "the engine's certificate for '%s': %s", host,
				X509_verify_cert_error_string(verdict));
	return sba_wrap(err, SBA_ECONNECT, "TLS handshake with '%s'", host);
}

static int handshake(struct tls_transport *t, const char *host, struct sba_until until,
		     struct sba_error *err)
{
	for (;;) {
		short wants = POLLIN;
		ERR_clear_error();
		int n = SSL_connect(t->ssl);
		if (n == 1)
			return 0;
		int rc = tls_verdict(t, n, &wants, err);
		if (rc == 0)
			rc = sba_fail(err, SBA_ELOST, "the engine closed it");
		if (rc != SBA_AGAIN)
			return handshake_failed(t, host, err);
		rc = sba_wait_fd(t->base.fd, wants, until, err);
		if (rc < 0)
			return sba_wrap(err, rc, "TLS handshake with '%s'", host);
	}
}

int sba_tls_connect(struct sba_tls *tls, int take_fd, const char *host, struct sba_until until,
		    struct sba_transport **ret, struct sba_error *err)
{
	struct sba_transport *base = calloc(1, sizeof(struct tls_transport));
	if (!base) {
		close(take_fd);
		return sba_fail_nomem(err);
	}
	*base = (struct sba_transport){ &tls_ops, take_fd, POLLIN, POLLOUT };
	struct tls_transport *t = (struct tls_transport *)base;
	int rc = prepare(t, tls, host, err);
	if (rc == 0)
		rc = handshake(t, host, until, err);
	if (rc < 0) {
		tls_close(base);
		return rc;
	}
	*ret = base;
	return 0;
}

/* ---- the context ---- */

static int load_authority(SSL_CTX *ctx, const struct sba_endpoint *ep, struct sba_error *err)
{
	int ok = ep->ca[0] ? SSL_CTX_load_verify_locations(ctx, ep->ca, NULL)
			   : SSL_CTX_set_default_verify_paths(ctx);
	return ok == 1 ? 0 : tls_fail(err, SBA_ECONFIG, ep->ca[0] ? ep->ca : "the system's CAs");
}

static int load_own_certificate(SSL_CTX *ctx, const struct sba_endpoint *ep, struct sba_error *err)
{
	if (!ep->cert[0] && !ep->key[0])
		return 0;
	if (!ep->cert[0] || !ep->key[0])
		return sba_fail(err, SBA_ECONFIG, "cert.pem and key.pem must come together: %s",
				ep->cert[0] ? ep->cert : ep->key);
	if (SSL_CTX_use_certificate_chain_file(ctx, ep->cert) != 1)
		return tls_fail(err, SBA_ECONFIG, ep->cert);
	if (SSL_CTX_use_PrivateKey_file(ctx, ep->key, SSL_FILETYPE_PEM) != 1)
		return tls_fail(err, SBA_ECONFIG, ep->key);
	return 0;
}

static int configure(struct sba_tls *tls, const struct sba_endpoint *ep, struct sba_error *err)
{
	ERR_clear_error();
	SSL_CTX_set_min_proto_version(tls->ctx, TLS1_2_VERSION);
	SSL_CTX_set_options(tls->ctx, SSL_OP_NO_RENEGOTIATION);
	SSL_CTX_set_mode(tls->ctx,
			 SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	SSL_CTX_set_verify(tls->ctx, ep->tls_verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, NULL);
	int rc = ep->tls_verify ? load_authority(tls->ctx, ep, err) : 0;
	return rc < 0 ? rc : load_own_certificate(tls->ctx, ep, err);
}

int sba_tls_new(const struct sba_endpoint *ep, struct sba_tls **ret, struct sba_error *err)
{
	struct sba_tls *tls = calloc(1, sizeof(*tls));
	if (!tls)
		return sba_fail_nomem(err);
	tls->verify = ep->tls_verify;
	tls->ctx = SSL_CTX_new(TLS_client_method());
	tls->bio = bio_method();
	int rc = tls->ctx && tls->bio ? configure(tls, ep, err) : sba_fail_nomem(err);
	if (rc < 0) {
		sba_tls_free(tls);
		return rc;
	}
	*ret = tls;
	return 0;
}

void sba_tls_free(struct sba_tls *tls)
{
	if (!tls)
		return;
	SSL_CTX_free(tls->ctx);
	BIO_meth_free(tls->bio);
	free(tls);
}
