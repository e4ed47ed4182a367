/* SPDX-License-Identifier: MIT */
/*
 * The sidecar's image: from scratch, holding a guest alone and named after a hash of
 * all that is in it. Each version of the guest leaves one behind, which is swept away
 * when nothing uses it.
 */
#include "archive/archive.h"
#include "channel/protocol.h"
#include "image/private.h"

#include <string.h>

#define TAG        "guest-"
#define LABEL_ROLE "io.sandbox-agent.role"
#define ROLE       "sidecar-image"

enum { TAG_MAX = sizeof(TAG) + SBA_GUEST_HASH_LEN };

enum { GUEST_MODE = 0711, GUEST_DIR_MODE = 0755 };

static const char *const changes[] = { "ENTRYPOINT [\"" SBA_GUEST_PATH "\"]",
				       "LABEL " LABEL_ROLE "=" ROLE, NULL };

/* ---- its name ---- */

/* An image of another layout is another image, although the guest is the same. */
static int tag_of(const char *guest_hash, char ret[TAG_MAX])
{
	char text[512], hash[SBA_SHA256_HEX];
	int len = snprintf(text, sizeof(text), "%s\n%s %o\n%s %o\n%s\n%s\n", guest_hash,
			   SBA_GUEST_DIR, GUEST_DIR_MODE, SBA_GUEST_PATH, GUEST_MODE, changes[0],
			   changes[1]);
	if (sba_sha256_hex(text, (size_t)len, hash) < 0)
		return SBA_ENOMEM;
	snprintf(ret, TAG_MAX, TAG "%.*s", SBA_GUEST_HASH_LEN, hash);
	return 0;
}

/* Whether a guest of this build, of any architecture, makes an image of that tag; also
 * where that cannot be told. */
static bool is_ours(const char *tag)
{
	char own[TAG_MAX];
	for (const struct sba_embedded *f = sba_embedded_next(NULL); f; f = sba_embedded_next(f)) {
		if (sba_ends_with(f->name, ".hash") &&
		    (tag_of(f->data, own) < 0 || strcmp(own, tag) == 0))
			return true;
	}
	return false;
}

/* ---- making it ---- */

static int import(struct sba_engine *e, const char *repository, const char *tag,
		  const struct sba_guest *guest, struct sba_error *err)
{
	const struct sba_pack_options options = { .fixed_mtime = 0 };
	struct sba_pack *pack = NULL;
	int rc = sba_pack_new(&options, &pack, err);
	if (rc == 0)
		rc = sba_pack_dir(pack, &SBA_GUEST_DIR[1], GUEST_DIR_MODE, err);
	if (rc == 0)
		rc = sba_pack_lent(pack, &SBA_GUEST_PATH[1], guest->data, guest->len, GUEST_MODE,
				   err);
	if (rc == 0)
		rc = sba_image_import(e, repository, tag, changes, sba_pack_read, pack,
				      sba_engine_until(e, SBA_IMAGE_LOOK_MS), err);
	sba_pack_free(pack);
	return rc;
}

/* A new guest is when old ones have become useless. */
static int import_and_sweep(struct sba_engine *e, const char *repository, const char *tag,
			    const struct sba_guest *guest, struct sba_error *err)
{
	struct sba_error why;
	int rc = import(e, repository, tag, guest, err);
	if (rc == 0 && sba_image_sweep(e, repository, SBA_SIDECAR_IMAGE_KEPT_S, NULL, &why) < 0)
		sba_log("image", "%s", why.text);
	return rc;
}

int sba_image_sidecar(struct sba_engine *e, const char *repository, const struct sba_guest *guest,
		      char ret_ref[SBA_REF_MAX], struct sba_error *err)
{
	char tag[TAG_MAX], ref[SBA_REF_MAX];
	if (tag_of(guest->hash, tag) < 0)
		return sba_fail_nomem(err);
	if ((size_t)snprintf(ref, sizeof(ref), "%s:%s", repository, tag) >= sizeof(ref))
		return sba_fail(err, SBA_EINVAL, "repository '%s': name too long", repository);
	int here = sba_image_present(e, ref, err);
	if (here == 0)
		here = import_and_sweep(e, repository, tag, guest, err);
	if (here < 0)
		return sba_wrap(err, here, "sidecar image");
	memcpy(ret_ref, ref, sizeof(ref));
	return 0;
}

/* ---- sweeping the others ---- */

/* The tag in a reference of ours; NULL if it is none. Podman puts the first of
 * these before the name of what was loaded, the second before what was imported. */
static const char *tag_in(const char *ref, const char *repository)
{
	static const char *const podmans[] = { "localhost/", "docker.io/library/" };
	size_t len = strlen(repository);
	for (size_t i = 0; i < SBA_ARRAY_LEN(podmans); i++) {
		if (sba_starts_with(ref, podmans[i]))
			ref += strlen(podmans[i]);
	}
	if (!sba_starts_with(ref, repository) || !sba_starts_with(ref + len, ":" TAG))
		return NULL;
	const char *hash = ref + len + strlen(":" TAG);
	bool good = strlen(hash) == SBA_GUEST_HASH_LEN &&
		    strspn(hash, "0123456789abcdef") == SBA_GUEST_HASH_LEN;
	return good ? ref + len + 1 : NULL;
}

static bool is_stale(const json_t *image, int64_t min_age_s)
{
	const json_t *labels = json_object_get(image, "Labels");
	const char *role = json_string_value(json_object_get(labels, LABEL_ROLE));
	int64_t created = sba_json_int(image, "Created", INT64_MAX);
	return role && strcmp(role, ROLE) == 0 && created <= sba_unix_ms() / 1000 - min_age_s;
}

/* Without force, the engine refuses what any container is made of. */
static bool remove_unused(struct sba_engine *e, const char *ref)
{
	struct sba_error why;
	int rc = sba_image_remove(e, ref, sba_engine_until(e, SBA_IMAGE_LOOK_MS), &why);
	if (rc < 0)
		sba_log("image", "%s", why.text);
	else
		sba_log("image", "%s: of another version, and unused: removed", ref);
	return rc == 0;
}

int sba_image_sweep(struct sba_engine *e, const char *repository, int64_t min_age_s,
		    int *ret_removed, struct sba_error *err)
{
	SBA_JSON json_t *list = NULL;
	char filter[SBA_REF_MAX];
	int removed = 0;
	snprintf(filter, sizeof(filter), "%s:" TAG "*", repository);
	int rc = sba_image_list(e, filter, sba_engine_until(e, SBA_IMAGE_LOOK_MS), &list, err);
	if (rc < 0)
		return sba_wrap(err, rc, "old sidecar images");
	size_t i, t;
	json_t *image, *tag;
	json_array_foreach(list, i, image)
	{
		if (!is_stale(image, min_age_s))
			continue;
		json_array_foreach(json_object_get(image, "RepoTags"), t, tag)
		{
			const char *ref = json_string_value(tag);
			const char *named = ref ? tag_in(ref, repository) : NULL;
			if (named && !is_ours(named))
				removed += remove_unused(e, ref);
		}
	}
	if (ret_removed)
		*ret_removed = removed;
	return 0;
}
