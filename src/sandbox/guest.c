/* SPDX-License-Identifier: MIT */
/* The guest in a sandbox; see guest.h. */
#include "sandbox/guest.h"

#include "channel/protocol.h"

/* For the engine to see that a container has ended. */
enum { SEEN_MS = 1000, SEEN_POLL_MS = 50, ATTACH_MS = 10 * 1000 };

int sba_guest_for_image(struct sba_engine *e, const json_t *image, struct sba_guest *ret,
			struct sba_error *err)
{
	const char *arch = sba_json_str(image, "Architecture");
	struct sba_guest native, guess;
	int rc = sba_guest_find(NULL, &native, err);
	if (rc < 0)
		return rc;
	/* The usual case costs no question: it takes Docker some 8 ms to answer. */
	if (sba_engine_socket(e) && sba_guest_find(arch, &guess, NULL) == 0 &&
	    guess.data == native.data) {
		*ret = native;
		return 0;
	}
	rc = sba_engine_arch(e, &arch, err);
	if (rc == 0)
		rc = sba_guest_find(arch, ret, err);
	return rc == SBA_EUNSUPPORTED
		       ? sba_hint(err, rc,
				  "a container that was started otherwise is used as it is:  "
				  "sandbox-agent exec --container NAME")
		       : rc;
}

int sba_guest_pack(struct sba_pack *pack, const struct sba_guest *guest, const char *id,
		   struct sba_error *err)
{
	char key[SBA_LOCK_KEY_LEN + 1], file[sizeof(SBA_LOCK_DIR) + sizeof(key)];
	int rc = sba_lock_key(id, key, err);
	if (rc == 0)
		rc = sba_pack_dir(pack, &SBA_GUEST_DIR[1], 0755, err);
	if (rc == 0)
		rc = sba_pack_lent(pack, &SBA_GUEST_PATH[1], guest->data, guest->len, 0711, err);
	if (rc == 0)
		rc = sba_pack_dir(pack, &SBA_LOCK_DIR[1], 0711, err);
	if (rc < 0)
		return rc;
	snprintf(file, sizeof(file), "%s/%s", &SBA_LOCK_DIR[1], key);
	return sba_pack_bytes(pack, file, "", 0, 0666, err);
}

/* ---- an older one ---- */

/* Where it comes from a volume, that is the sidecar's, and is written there; the rest of
 * the sidecar's files is read-only. */
static int place(struct sba_sandbox *s, const json_t *container, const struct sba_guest *guest,
		 struct sba_error *err)
{
	const struct sba_pack_options options = { .fixed_mtime = 0 };
	bool volume = json_array_size(sba_json_get(container, "HostConfig.VolumesFrom")) > 0;
	struct sba_pack *pack = NULL;
	int rc = sba_pack_new(&options, &pack, err);
	if (rc == 0 && volume)
		rc = sba_pack_lent(pack, &SBA_GUEST_PATH[sizeof(SBA_GUEST_DIR)], guest->data,
				   guest->len, 0711, err);
	else if (rc == 0)
		rc = sba_guest_pack(pack, guest, s->info.id, err);
	if (rc == 0)
		rc = sba_container_put(s->engine, volume ? s->sidecar : s->container,
				       volume ? SBA_GUEST_DIR : "/", sba_pack_read, pack,
				       sba_engine_until(s->engine, SBA_ENGINE_STEP_MS), err);
	sba_pack_free(pack);
	return rc;
}

static int replace(struct sba_sandbox *s, const struct sba_channel_hello *was,
		   struct sba_error *err)
{
	SBA_JSON json_t *container = NULL, *image = NULL;
	struct sba_until until = sba_engine_until(s->engine, SBA_ENGINE_STEP_MS);
	struct sba_guest guest = { 0 };
	const char *ref = NULL;
	int rc = sba_container_inspect(s->engine, s->container, until, &container, err);
	if (rc == 0 && !(ref = sba_json_str(container, "Image")))
		rc = sba_fail(err, SBA_EPROTO, "the engine does not say of which image it is");
	if (rc == 0)
		rc = sba_image_inspect(s->engine, ref, until, &image, err);
	if (rc == 0)
		rc = sba_guest_for_image(s->engine, image, &guest, err);
	if (rc == 0)
		rc = place(s, container, &guest, err);
	if (rc < 0)
		return sba_wrap(err, rc, "renew the guest of sandbox '%s'", s->info.name);
	sba_log("sandbox", "'%s': guest %s (%s) gave way to %s (%s)", s->info.name, was->guest,
		was->program, guest.hash, sba_version());
	return 0;
}

static int refuse_newer(const struct sba_sandbox *s, const struct sba_channel_hello *hello,
			struct sba_error *err)
{
	int rc = sba_fail(err, SBA_EREFUSED,
			  "sandbox '%s' is in use by a newer sandbox-agent (%s), which this one "
			  "(%s) does not understand",
			  s->info.name, hello->program, sba_version());
	return sba_hint(err, rc, "update sandbox-agent here, or make a new sandbox");
}

/* ---- the channel ---- */

static int refuse_unshared(const struct sba_sandbox *s, struct sba_error *err)
{
	return sba_hint(err,
			sba_fail(err, SBA_EBROKEN,
				 "sandbox '%s': the engine's runtime does not share the sidecar's "
				 "process namespace; nothing would end what is left running",
				 s->info.name),
			"end it:  sandbox-agent rm %s", s->info.name);
}

/* The main process is the first to see that it is alone, and is gone then. */
static bool ended_alone(struct sba_sandbox *s)
{
	SBA_JSON json_t *j = NULL;
	struct sba_until until = sba_engine_until(s->engine, SBA_ENGINE_STEP_MS);
	return sba_container_inspect(s->engine, s->container, until, &j, NULL) == 0 &&
	       !sba_json_bool(j, "State.Running", true) &&
	       sba_json_int(j, "State.ExitCode", 0) == SBA_IDLE_ALONE;
}

/* An exec in what has ended, or just ends, says no more than that; then the engine may
 * take a moment to see the end. */
static int why_not(struct sba_sandbox *s, int rc, struct sba_until until, struct sba_error *err)
{
	struct sba_error why;
	struct sba_until seen = sba_until_sooner(until, rc == SBA_ELOST ? SEEN_MS : 0);
	int dead = sba_sandbox_check_alive(s, "channel", &why);
	while (dead == 0 &&
	       sba_wait_fd(-1, 0, sba_until_sooner(seen, SEEN_POLL_MS), NULL) == SBA_ETIMEOUT &&
	       sba_until_check(seen, NULL) == 0)
		dead = sba_sandbox_check_alive(s, "channel", &why);
	if (dead != SBA_EBROKEN)
		return rc;
	if (err)
		*err = why;
	return dead;
}

/* The first one needs no exec. */
static int open_channel(struct sba_sandbox *s, struct sba_until until,
			struct sba_channel_hello *ret_hello, struct sba_channel **ret,
			struct sba_error *err)
{
	struct sba_error why;
	bool attach = s->unattached;
	s->unattached = false;
	if (attach) {
		struct sba_until soon = sba_until_sooner(until, ATTACH_MS);
		if (sba_channel_attach(s->engine, s->container, soon, ret_hello, ret, &why) == 0)
			return 0;
		sba_log("sandbox", "%s", why.text);
	}
	return sba_channel_open(s->engine, s->container, NULL, until, ret_hello, ret, err);
}

int sba_guest_channel(struct sba_sandbox *s, struct sba_until until, struct sba_channel **ret,
		      struct sba_error *err)
{
	struct sba_channel *c = NULL;
	struct sba_channel_hello hello;
	int rc = sba_sandbox_check_whole(s, err);
	if (rc < 0)
		return rc;
	rc = open_channel(s, until, &hello, &c, err);
	/* Once: what is not ours after that is somebody else's doing. */
	if (hello.protocol && sba_channel_hello_order(&hello) < 0) {
		sba_channel_close(c);
		c = NULL;
		rc = replace(s, &hello, err);
		if (rc == 0)
			rc = sba_channel_open(s->engine, s->container, NULL, until, &hello, &c,
					      err);
	}
	if (hello.protocol > SBA_PROTOCOL_VERSION)
		rc = refuse_newer(s, &hello, err);
	else if ((rc == 0 && !hello.sidecar_first) || (rc < 0 && ended_alone(s)))
		rc = refuse_unshared(s, err);
	else if (rc == SBA_EBROKEN || rc == SBA_ENOTFOUND || rc == SBA_ELOST)
		rc = why_not(s, rc, until, err);
	if (rc < 0) {
		sba_channel_close(c);
		return rc;
	}
	*ret = c;
	return 0;
}
