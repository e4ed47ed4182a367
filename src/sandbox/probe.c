/* SPDX-License-Identifier: MIT */
/*
 * Whether sandboxes work on an engine: one of nothing but the guest is made, looked at
 * from inside and removed. It needs no image, as the sidecar's serves as that.
 */
#include "channel/channel.h"
#include "sandbox/guest.h"

#include <string.h>

enum { KEEPALIVE_MS = 30 * 1000, LIFETIME_MS = 120 * 1000, MEMORY = 64 << 20 };

static int make(struct sba_engine *e, const char *prefix, struct sba_sandbox **ret,
		struct sba_error *err)
{
	const char *arch;
	struct sba_guest guest;
	char ref[SBA_REF_MAX];
	const struct sba_sandbox_options o = { .prefix = prefix,
					       .image = ref,
					       .network = "sealed",
					       .memory = MEMORY,
					       .keepalive_ms = KEEPALIVE_MS,
					       .max_lifetime_ms = LIFETIME_MS,
					       .max_sandboxes = -1 };
	int rc = sba_engine_arch(e, &arch, err);
	if (rc == 0)
		rc = sba_guest_find(arch, &guest, err);
	if (rc == 0)
		rc = sba_image_sidecar(e, SBA_OWN_REPOSITORY, &guest, ref, err);
	return rc < 0 ? rc : sba_sandbox_create(e, &o, ret, err);
}

/* That the sidecar is PID 1 in there the making of it has seen. */
static int look(struct sba_sandbox *s, struct sba_probe *ret, struct sba_error *err)
{
	struct sba_channel *c = NULL;
	struct sba_channel_hello hello = { 0 };
	int rc = sba_channel_open(s->engine, s->container, NULL,
				  sba_engine_until(s->engine, SBA_ENGINE_STEP_MS), &hello, &c, err);
	sba_channel_close(c);
	ret->landlock = (int)hello.landlock;
	return rc;
}

int sba_sandbox_probe(struct sba_engine *e, const char *prefix, struct sba_probe *ret,
		      struct sba_error *err)
{
	struct sba_sandbox *s = NULL;
	struct sba_probe probe = { 0 };
	int64_t began = sba_now_ms();
	int rc = make(e, prefix, &s, err);
	if (rc < 0)
		return rc;
	rc = look(s, &probe, err);
	int removed = sba_sandbox_remove(s, rc == 0 ? err : NULL);
	sba_sandbox_close(s);
	rc = rc < 0 ? rc : removed;
	if (rc < 0)
		return rc;
	probe.took_ms = sba_now_ms() - began;
	*ret = probe;
	return 0;
}
