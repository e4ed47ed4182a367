/* SPDX-License-Identifier: MIT */
/*
 * versions.json: strict reading, the tags derived from it, and the hashes of what is
 * fetched. A name that cannot be derived is an error here, never a guess elsewhere.
 */
#include "base/limits.h"
#include "image/private.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static const char *const known_keys[] = {
	"docker_repository", "image_date",    "base_image", "node_version", "claude_version",
	"opencode_version",  "codex_version", "pi_version", "dsh_version",  "integrity",
};

enum { SHA512_BASE64 = 88 };

static bool is_date(const char *s)
{
	static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	if (strlen(s) != 8 || strspn(s, "0123456789") != 8)
		return false;
	int n = (int)strtol(s, NULL, 10);
	int year = n / 10000, month = n / 100 % 100, day = n % 100;
	if (year < 2000 || month < 1 || month > 12 || day < 1)
		return false;
	bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
	return day <= days[month - 1] + (month == 2 && leap);
}

/* What docker takes in a repository (lower case) or, without '/' and ':', in a tag. */
static bool is_ref_part(const char *s, bool repository)
{
	if (!*s || strlen(s) > 128 || !isalnum((unsigned char)*s))
		return false;
	for (; *s; s++) {
		bool ok = repository ? islower((unsigned char)*s) || isdigit((unsigned char)*s) ||
					       strchr("._-/:", *s)
				     : isalnum((unsigned char)*s) || strchr("._-", *s);
		if (!ok)
			return false;
	}
	return true;
}

/* NAME:TAG, and behind it @sha256:… where it is pinned by digest. */
static int check_base(const char *file, const char *value, struct sba_error *err)
{
	struct sba_reference ref;
	struct sba_error why;
	return sba_reference_parse(value, &ref, &why) == 0 && *ref.tag
		       ? 0
		       : sba_fail(err, SBA_ECONFIG,
				  "%s: base_image: '%s' is not NAME:TAG or NAME:TAG@sha256:DIGEST",
				  file, value);
}

static int check_value(const char *file, const char *key, const char *value, struct sba_error *err)
{
	if (!value)
		return sba_fail(err, SBA_ECONFIG, "%s: %s: not a string", file, key);
	if (strcmp(key, "image_date") == 0 && !is_date(value))
		return sba_fail(err, SBA_ECONFIG, "%s: image_date: '%s' is no date (YYYYMMDD)",
				file, value);
	if (strcmp(key, "base_image") == 0)
		return check_base(file, value, err);
	bool repository = strcmp(key, "docker_repository") == 0;
	if (!is_ref_part(value, repository))
		return sba_fail(err, SBA_ECONFIG, "%s: %s: '%s' cannot be part of an image's name",
				file, key, value);
	return 0;
}

/* As npm writes it: "sha512-" and the padded base64 of the hash. */
static bool is_integrity(const char *s)
{
	SBA_BUF struct sba_buf hash = SBA_BUF_INIT(SBA_KIB);
	return s && sba_starts_with(s, "sha512-") && strlen(s) == 7 + SHA512_BASE64 &&
	       sba_base64_decode(s + 7, SHA512_BASE64, false, &hash) == 0 && hash.len == 64;
}

/* Whether "claude-amd64", or "pi", is of something that has a version. */
static bool is_fetched(const char *name)
{
	char key[64];
	size_t len = strcspn(name, "-");
	if (name[len] && strcmp(name + len, "-amd64") != 0 && strcmp(name + len, "-arm64") != 0)
		return false;
	snprintf(key, sizeof(key), "%.*s_version", (int)(len < 32 ? len : 32), name);
	for (size_t i = 0; i < SBA_ARRAY_LEN(known_keys); i++) {
		if (strcmp(known_keys[i], key) == 0)
			return true;
	}
	return false;
}

static int check_integrity(const char *file, const json_t *hashes, struct sba_error *err)
{
	const char *name;
	json_t *hash;
	if (!json_is_object(hashes))
		return sba_fail(err, SBA_ECONFIG, "%s: integrity: not an object", file);
	json_object_foreach((json_t *)(uintptr_t)hashes, name, hash)
	{
		if (!is_fetched(name))
			return sba_fail(err, SBA_ECONFIG,
					"%s: integrity.%s: not NAME, NAME-amd64 or NAME-arm64 of "
					"a NAME_version",
					file, name);
		if (!is_integrity(json_string_value(hash)))
			return sba_fail(
				err, SBA_ECONFIG,
				"%s: integrity.%s: not \"sha512-\" and 88 characters of base64",
				file, name);
	}
	return 0;
}

static int check_keys(const json_t *j, const char *file, struct sba_error *err)
{
	const char *key;
	json_t *value;
	json_object_foreach((json_t *)(uintptr_t)j, key, value)
	{
		size_t i = 0;
		while (i < SBA_ARRAY_LEN(known_keys) && strcmp(known_keys[i], key) != 0)
			i++;
		if (i == SBA_ARRAY_LEN(known_keys)) {
			int near = sba_nearest(key, known_keys, SBA_ARRAY_LEN(known_keys));
			return sba_fail(err, SBA_ECONFIG, "%s: unknown key '%s'%s%s%s", file, key,
					near < 0 ? "" : " (did you mean '",
					near < 0 ? "" : known_keys[near], near < 0 ? "" : "'?)");
		}
		int rc = strcmp(key, "integrity") == 0
				 ? check_integrity(file, value, err)
				 : check_value(file, key, json_string_value(value), err);
		if (rc < 0)
			return rc;
	}
	static const char *const required[] = { "docker_repository", "image_date", "base_image" };
	for (size_t i = 0; i < SBA_ARRAY_LEN(required); i++) {
		if (!json_object_get(j, required[i]))
			return sba_fail(err, SBA_ECONFIG, "%s: %s is missing", file, required[i]);
	}
	return 0;
}

const char *sba_images_version(const struct sba_images *i, const char *name)
{
	char key[64];
	snprintf(key, sizeof(key), "%s_version", name);
	return sba_json_str(i->json, key);
}

const char *sba_images_integrity(const struct sba_images *i, const char *name, const char *arch)
{
	char key[64];
	const json_t *hashes = json_object_get(i->json, "integrity");
	snprintf(key, sizeof(key), "%s-%s", name, arch);
	const char *hash = json_string_value(json_object_get(hashes, key));
	return hash ? hash : json_string_value(json_object_get(hashes, name));
}

/* An agent without a version there has no image; a key that is misspelt was
 * refused before. */
static int derive_refs(struct sba_images *i, struct sba_error *err)
{
	static const char *const names[] = { "base", "claude", "codex", "dsh", "opencode", "pi" };
	for (size_t n = 0; n < SBA_ARRAY_LEN(names); n++) {
		bool base = n == 0;
		const char *version = base ? "" : sba_images_version(i, names[n]);
		if (!version)
			continue;
		int rc = sba_strv_add(&i->names, names[n], err);
		if (rc == 0)
			rc = sba_strv_addf(&i->refs, err, "%s:%s%s%s-%s", i->repository, names[n],
					   base ? "" : "-", version,
					   sba_json_str(i->json, "image_date"));
		if (rc < 0)
			return rc;
	}
	return 0;
}

int sba_images_open(const char *json, const char *name, struct sba_images **ret,
		    struct sba_error *err)
{
	const struct sba_embedded *own = sba_embedded_find("versions.json");
	const char *file = json ? name : "versions.json (built in)";
	if (!json && !own)
		return sba_fail(err, SBA_ECONFIG, "versions.json is not built in");
	struct sba_images *i = calloc(1, sizeof(*i));
	if (!i)
		return sba_fail_nomem(err);
	int rc = sba_json_parse(json ? json : own->data, json ? strlen(json) : own->len, file,
				&i->json, err);
	if (rc < 0 && rc != SBA_ENOMEM)
		rc = err ? (err->code = SBA_ECONFIG) : SBA_ECONFIG;
	if (rc == 0 && !json_is_object(i->json))
		rc = sba_fail(err, SBA_ECONFIG, "%s: not an object", file);
	if (rc == 0)
		rc = check_keys(i->json, file, err);
	if (rc == 0) {
		i->repository = sba_json_str(i->json, "docker_repository");
		rc = derive_refs(i, err);
	}
	if (rc < 0) {
		sba_images_close(i);
		return rc;
	}
	*ret = i;
	return 0;
}

int sba_images_set_repository(struct sba_images *i, const char *repository, struct sba_error *err)
{
	struct sba_images moved = { .json = i->json };
	json_t *value = is_ref_part(repository, true) ? json_string(repository) : NULL;
	if (!is_ref_part(repository, true))
		return sba_fail(err, SBA_EINVAL, "'%.300s' cannot be a repository of images",
				repository);
	if (!value || json_object_set_new(i->json, "docker_repository", value) < 0)
		return sba_fail_nomem(err);
	i->repository = moved.repository = json_string_value(value);
	int rc = derive_refs(&moved, err);
	struct sba_images *waste = rc == 0 ? i : &moved;
	sba_strv_fini(&waste->names);
	sba_strv_fini(&waste->refs);
	if (rc == 0)
		*i = moved;
	return rc;
}

void sba_images_close(struct sba_images *i)
{
	if (!i)
		return;
	sba_strv_fini(&i->names);
	sba_strv_fini(&i->refs);
	json_decref(i->json);
	free(i);
}

const char *sba_images_ref(const struct sba_images *i, const char *name)
{
	for (size_t n = 0; n < i->names.n; n++) {
		if (strcmp(i->names.v[n], name) == 0)
			return i->refs.v[n];
	}
	return NULL;
}

const char *const *sba_images_names(const struct sba_images *i)
{
	return (const char *const *)i->names.v;
}
