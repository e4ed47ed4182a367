/* SPDX-License-Identifier: MIT */
/*
 * The guest in a sandbox: which one is in it, putting ours there, and a channel to it
 * that is known to be good.
 */
#ifndef SBA_SANDBOX_GUEST_H
#define SBA_SANDBOX_GUEST_H

#include "archive/archive.h"
#include "channel/channel.h"
#include "image/image.h"
#include "sandbox/private.h"

/* The guest for the engine's architecture, which for an image of another is not the image's:
 * its programs go by an emulator then, and that has no idea of much that the guest asks of
 * the kernel (QEMU 7.2 knows no PR_SET_CHILD_SUBREAPER). SBA_EUNSUPPORTED: there is none. */
int sba_guest_for_image(struct sba_engine *e, const json_t *image, struct sba_guest *ret,
			struct sba_error *err) SBA_MUST_CHECK;

/* The guest where it stands in a sandbox, root-owned and not readable by others, so that
 * a process of the sandbox's user can neither replace nor trace it; and what names are
 * locked in. */
int sba_guest_pack(struct sba_pack *pack, const struct sba_guest *guest, const char *id,
		   struct sba_error *err) SBA_MUST_CHECK;

/* A channel to the sandbox's guest. One of an older version is replaced by ours first; one
 * of a newer version, which another client has put there, stays: SBA_EREFUSED where we do
 * not speak its protocol. SBA_EBROKEN: its process namespace is not the sidecar's, and
 * nothing may run in it. */
int sba_guest_channel(struct sba_sandbox *s, struct sba_until until, struct sba_channel **ret,
		      struct sba_error *err) SBA_MUST_CHECK;

#endif
