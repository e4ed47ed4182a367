/* SPDX-License-Identifier: MIT */
/*
 * A handle's hold on its sandbox: the session channel, opened by the first
 * command and opened again when it was lost; the watch over the container
 * beside it; the way out that --allow opens. While it is held, the keepalive
 * clock is renewed.
 */
#ifndef SBA_SANDBOX_SESSION_H
#define SBA_SANDBOX_SESSION_H

#include "channel/channel.h"
#include "sandbox/private.h"

struct sba_session;

int sba_session_new(struct sba_sandbox *s, struct sba_session **ret,
		    struct sba_error *err) SBA_MUST_CHECK;
void sba_session_free(struct sba_session *n); /* NULL is allowed */

/* The living channel, lent until the session is freed. SBA_EUNSUPPORTED: none
 * can be had here, and the engine's exec must serve. */
int sba_session_channel(struct sba_session *n, struct sba_channel **ret,
			struct sba_error *err) SBA_MUST_CHECK;
/* The port on the sandbox's loopback where its proxy is; 0: it has none. Known
 * once there is a channel. */
uint16_t sba_session_proxy_port(struct sba_session *n);

#endif
