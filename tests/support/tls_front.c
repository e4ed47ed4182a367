/* SPDX-License-Identifier: MIT */
/* A TLS proxy with a certificate of its own making. */
#include "support/folder.h"
#include "support/tls_front.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct tls_front {
	struct tls_front_options o;
	char dir[64], path[108];
	int listener, port, stop;
	SSL_CTX *ctx;
	pthread_t thread;
};

static const char *const files[] = { "ca.pem", "cert.pem", "key.pem" };

/* ---- the certificate ---- */

static void add_extension(X509 *x, int nid, const char *value)
{
	X509V3_CTX ctx;
	X509V3_set_ctx_nodb(&ctx);
	X509V3_set_ctx(&ctx, x, x, NULL, NULL, 0);
	X509_EXTENSION *ext = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	assert_non_null(ext);
	assert_int_equal(X509_add_ext(x, ext, -1), 1);
	X509_EXTENSION_free(ext);
}

static X509 *make_certificate(EVP_PKEY *key)
{
	X509 *x = X509_new();
	X509_set_version(x, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
	X509_gmtime_adj(X509_getm_notBefore(x), -3600);
	X509_gmtime_adj(X509_getm_notAfter(x), 3600);
	X509_set_pubkey(x, key);
	X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC,
				   (const unsigned char *)"test", -1, -1, 0);
	X509_set_issuer_name(x, X509_get_subject_name(x));
	add_extension(x, NID_basic_constraints, "critical,CA:TRUE");
	add_extension(x, NID_subject_alt_name, "IP:127.0.0.1");
	assert_true(X509_sign(x, key, EVP_sha256()) > 0);
	return x;
}

static FILE *open_file(const struct tls_front *t, const char *name)
{
	char path[128];
	snprintf(path, sizeof(path), "%s/%s", t->dir, name);
	FILE *f = fopen(path, "we");
	assert_non_null(f);
	return f;
}

static void make_identity(struct tls_front *t)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *x = make_certificate(key);
	for (size_t i = 0; i < 3; i++) {
		FILE *f = open_file(t, files[i]);
		if (i < 2)
			assert_int_equal(PEM_write_X509(f, x), 1);
		else
			assert_int_equal(PEM_write_PrivateKey(f, key, NULL, NULL, 0, NULL, NULL),
					 1);
		fclose(f);
	}
	t->ctx = SSL_CTX_new(TLS_server_method());
	assert_int_equal(SSL_CTX_use_certificate(t->ctx, x), 1);
	assert_int_equal(SSL_CTX_use_PrivateKey(t->ctx, key), 1);
	X509_STORE_add_cert(SSL_CTX_get_cert_store(t->ctx), x);
	if (t->o.ask_certificate)
		SSL_CTX_set_verify(t->ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	X509_free(x);
	EVP_PKEY_free(key);
}

/* ---- carrying bytes ---- */

static bool write_all(int fd, const char *data, size_t len)
{
	while (len > 0) {
		ssize_t n = send(fd, data, len, MSG_NOSIGNAL);
		if (n <= 0)
			return false;
		data += n;
		len -= (size_t)n;
	}
	return true;
}

/* One record inwards. False once the client has said goodbye, or is gone. */
static bool inwards(SSL *ssl, int inner)
{
	char buf[16384];
	do {
		int n = SSL_read(ssl, buf, sizeof(buf));
		if (n <= 0 || !write_all(inner, buf, (size_t)n))
			return false;
	} while (SSL_pending(ssl) > 0);
	return true;
}

static bool outwards(SSL *ssl, int inner)
{
	char buf[16384];
	ssize_t n = recv(inner, buf, sizeof(buf), 0);
	return n > 0 && SSL_write(ssl, buf, (int)n) > 0;
}

static void carry(struct tls_front *t, SSL *ssl, int outer, int inner)
{
	struct pollfd p[3] = { { t->stop, POLLIN, 0 }, { inner, POLLIN, 0 }, { outer, POLLIN, 0 } };
	while (poll(p, 3, -1) > 0 && !p[0].revents) {
		if (p[2].revents && !inwards(ssl, inner)) {
			shutdown(inner, SHUT_WR);
			p[2].fd = -1;
		}
		if (p[1].revents && !outwards(ssl, inner))
			break;
	}
	if (!t->o.no_goodbye)
		SSL_shutdown(ssl);
}

static int reach(const struct tls_front *t, int inner)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons((uint16_t)t->o.behind) };
	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	memcpy(sa.sun_path, t->path, sizeof(sa.sun_path));
	return t->o.behind ? connect(inner, (struct sockaddr *)&in, sizeof(in))
			   : connect(inner, (struct sockaddr *)&sa, sizeof(sa));
}

static void serve(struct tls_front *t, int outer)
{
	int inner = socket(t->o.behind ? AF_INET : AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	SSL *ssl = SSL_new(t->ctx);
	SSL_set_fd(ssl, outer);
	if (SSL_accept(ssl) == 1 && reach(t, inner) == 0)
		carry(t, ssl, outer, inner);
	SSL_free(ssl);
	close(inner);
	close(outer);
}

static void *run(void *arg)
{
	struct tls_front *t = arg;
	sigset_t pipe_signal;
	sigemptyset(&pipe_signal);
	sigaddset(&pipe_signal, SIGPIPE); /* OpenSSL's own BIO raises it */
	pthread_sigmask(SIG_BLOCK, &pipe_signal, NULL);
	for (;;) {
		struct pollfd p[2] = { { t->listener, POLLIN, 0 }, { t->stop, POLLIN, 0 } };
		if (poll(p, 2, -1) < 0 || p[1].revents)
			return NULL;
		int fd = accept4(t->listener, NULL, NULL, SOCK_CLOEXEC);
		if (fd >= 0)
			serve(t, fd);
	}
}

/* ---- the handle ---- */

static void listen_somewhere(struct tls_front *t)
{
	struct sockaddr_in sa = { .sin_family = AF_INET };
	socklen_t len = sizeof(sa);
	sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	t->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_return_code(bind(t->listener, (struct sockaddr *)&sa, sizeof(sa)), 0);
	assert_return_code(listen(t->listener, 8), 0);
	assert_return_code(getsockname(t->listener, (struct sockaddr *)&sa, &len), 0);
	t->port = ntohs(sa.sin_port);
}

struct tls_front *tls_front_start(const struct tls_front_options *o)
{
	struct tls_front *t = calloc(1, sizeof(*t));
	t->o = *o;
	snprintf(t->path, sizeof(t->path), "%s", o->socket_path ? o->socket_path : "");
	test_folder(t->dir, sizeof(t->dir), "tls-front");
	make_identity(t);
	listen_somewhere(t);
	t->stop = eventfd(0, EFD_CLOEXEC);
	assert_int_equal(pthread_create(&t->thread, NULL, run, t), 0);
	return t;
}

const char *tls_front_folder(const struct tls_front *t)
{
	return t->dir;
}

int tls_front_port(const struct tls_front *t)
{
	return t->port;
}

void tls_front_stop(struct tls_front *t)
{
	uint64_t one = 1;
	assert_int_equal(write(t->stop, &one, sizeof(one)), sizeof(one));
	pthread_join(t->thread, NULL);
	test_folder_remove(t->dir);
	SSL_CTX_free(t->ctx);
	close(t->listener);
	close(t->stop);
	free(t);
}
