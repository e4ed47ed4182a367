/* SPDX-License-Identifier: MIT */
/*
 * Puts TLS in front of a unix socket or a port, on a loopback port: one connection at a
 * time, half-close carried through in both directions.
 */
#ifndef SBA_TEST_TLS_FRONT_H
#define SBA_TEST_TLS_FRONT_H

#include <stdbool.h>

struct tls_front;

struct tls_front_options {
	const char *socket_path; /* what is behind; NULL: */
	int behind;              /* a port of loopback */
	bool ask_certificate;    /* refuse clients without one of our authority's */
	bool no_goodbye;         /* end without close_notify: cut off */
};

/* Makes a folder with ca.pem, cert.pem and key.pem (one self-signed
 * certificate for the address 127.0.0.1, not for any name). */
struct tls_front *tls_front_start(const struct tls_front_options *o);
const char *tls_front_folder(const struct tls_front *t);
int tls_front_port(const struct tls_front *t);
void tls_front_stop(struct tls_front *t);

#endif
