/* SPDX-License-Identifier: MIT */
/*
 * Building the pinned images from the recipes that the library carries,
 * through the engine's build endpoint. Same inputs, same context bytes, so
 * that the engine's cache answers a rebuild.
 */
#include "archive/archive.h"
#include "base/limits.h"
#include "image/private.h"

#include <stdlib.h>
#include <string.h>

#define LABEL "org.opencontainers.image."

enum { KEPT_OUTPUT = 4 * SBA_KIB };

struct build {
	struct sba_engine *engine;
	const struct sba_images *images;
	const char *name;
	const struct sba_image_options *options;
	/* The end of the running step's output, told when the step fails. */
	char step[160];
	struct sba_buf output;
};

/* What the builder says of itself between the lines of a step. */
static bool is_builders_own(const char *line)
{
	return sba_starts_with(line, " --->") || sba_starts_with(line, "Removing intermediate");
}

static void keep_output(struct build *b, const char *line)
{
	size_t len = strlen(line);
	if (b->output.len + len + 1 > KEPT_OUTPUT)
		sba_buf_drop(&b->output, b->output.len / 2 + len);
	if (b->output.len > 0)
		sba_buf_putc(&b->output, '\n');
	sba_buf_put(&b->output, line, len);
}

static void output_line(struct build *b, const char *line)
{
	if (sba_starts_with(line, "Step ")) {
		snprintf(b->step, sizeof(b->step), "%.150s", line);
		sba_buf_reset(&b->output);
		sba_image_tell(b->options, b->name, line, false);
		return;
	}
	if (!is_builders_own(line))
		keep_output(b, line);
	sba_image_tell(b->options, b->name, line, true);
}

/* Without the colours in which the builder wraps what comes on stderr, ends of lines
 * included. */
static void copy_plain(char *to, size_t size, const char *from, size_t len)
{
	size_t n = 0;
	for (size_t i = 0; i < len && n + 1 < size; i++) {
		if (from[i] == '\x1b' && i + 1 < len && from[i + 1] == '[')
			i += 2 + strcspn(from + i + 2, "mK\n");
		else if (from[i] != '\r')
			to[n++] = from[i];
	}
	to[n] = '\0';
}

static int build_line(void *user, const json_t *line)
{
	const char *text = sba_json_str(line, "stream");
	while (text && *text) {
		char plain[512];
		size_t len = strcspn(text, "\n");
		copy_plain(plain, sizeof(plain), text, len);
		if (*plain)
			output_line(user, plain);
		text += len + (text[len] == '\n');
	}
	return 0;
}

/* The one that ci/bootstrap makes where no registry can be reached; its name
 * says what it is. */
static void local_debian(const char *pinned, char ret[SBA_REF_MAX])
{
	struct sba_reference ref = { 0 };
	const char *codename =
		sba_reference_parse(pinned, &ref, NULL) == 0 && *ref.tag ? ref.tag : "stable";
	snprintf(ret, SBA_REF_MAX, SBA_OWN_REPOSITORY ":debian-%.*s-local",
		 (int)strcspn(codename, "-"), codename);
}

static int pull_debian(struct build *b, const char *ref, struct sba_error *err)
{
	int rc = sba_image_ref_has_registry(ref)
			 ? sba_image_fetch(b->engine, ref, ref, b->options, err)
			 : sba_image_pull(b->engine, ref, NULL, NULL, NULL,
					  sba_engine_until(b->engine, SBA_IMAGE_WORK_MS), err);
	if (rc == 0)
		return 0;
	return strchr(ref, '@')
		       ? sba_hint(err, rc, "base_image in versions.json pins it by its digest")
		       : sba_hint(
				 err, rc,
				 "no registry within reach?  ci/bootstrap makes a base of its own");
}

/* 1: `ret` is here. */
static int try_debian(struct build *b, const char *ref, char ret[SBA_REF_MAX],
		      struct sba_error *err)
{
	int here = sba_image_present(b->engine, ref, err);
	if (here > 0)
		snprintf(ret, SBA_REF_MAX, "%s", ref);
	return here;
}

/* Nothing stands in for what is pinned by its digest, and the digest is all of its name
 * then: Podman takes none with a tag beside it. Else the local one is as good. */
static int find_debian(struct build *b, char ret[SBA_REF_MAX], struct sba_error *err)
{
	const char *pinned = sba_json_str(b->images->json, "base_image");
	const char *digest = strchr(pinned, '@');
	char name[SBA_REF_MAX], local[SBA_REF_MAX];
	snprintf(name, sizeof(name), "%s", pinned);
	local_debian(pinned, local);
	int rc = digest ? sba_image_by_digest(pinned, digest + 1, name, err) : 0;
	if (rc == 0)
		rc = try_debian(b, name, ret, err);
	if (rc == 0 && !digest)
		rc = try_debian(b, local, ret, err);
	if (rc != 0)
		return rc < 0 ? rc : 0;
	rc = pull_debian(b, name, err);
	if (rc == 0)
		memcpy(ret, name, sizeof(name));
	return rc;
}

/* The files of images/FOLDER. */
static int pack_folder(struct sba_pack *pack, const char *folder, struct sba_error *err)
{
	char start[128];
	int len = snprintf(start, sizeof(start), "images/%s/", folder), rc = 0;
	const struct sba_embedded *f = NULL;
	while (rc == 0 && (f = sba_embedded_next(f))) {
		if (sba_starts_with(f->name, start))
			rc = sba_pack_bytes(pack, f->name + len, f->data, f->len, 0644, err);
	}
	return rc;
}

static const struct sba_embedded *find_recipe(const struct build *b)
{
	char name[128];
	snprintf(name, sizeof(name), "images/%s/Dockerfile", b->name);
	return sba_embedded_find(name);
}

/* An argument that a recipe does not take makes the builder complain. */
static bool recipe_takes(const struct build *b, const char *arg)
{
	const struct sba_embedded *recipe = find_recipe(b);
	char line[64];
	int len = snprintf(line, sizeof(line), "\nARG %s\n", arg);
	return recipe && memmem(recipe->data, recipe->len, line, (size_t)len);
}

/* A hash that is not pinned is no hash that anything could have. */
static int add_integrity(const struct build *b, json_t *args, const char *arg, const char *what,
			 struct sba_error *err)
{
	const char *arch;
	if (!recipe_takes(b, arg))
		return 0;
	int rc = sba_engine_arch(b->engine, &arch, err);
	if (rc < 0)
		return rc;
	const char *hash = sba_images_integrity(b->images, what, arch);
	if (!hash) {
		rc = sba_fail(err, SBA_ECONFIG,
			      "versions.json pins no hash of the package of %s %s for %s", what,
			      sba_images_version(b->images, what), arch);
		return sba_hint(err, rc,
				"npm view PACKAGE@VERSION dist.integrity tells it; it belongs to "
				"integrity, as \"%s-%s\"",
				what, arch);
	}
	return json_object_set_new(args, arg, json_string(hash)) < 0 ? sba_fail_nomem(err) : 0;
}

static int add_version(const struct build *b, json_t *args, const char *arg, const char *what,
		       struct sba_error *err)
{
	if (!recipe_takes(b, arg))
		return 0;
	const char *version = sba_images_version(b->images, what);
	if (!version)
		return sba_fail(err, SBA_ECONFIG, "versions.json: %s_version is missing", what);
	return json_object_set_new(args, arg, json_string(version)) < 0 ? sba_fail_nomem(err) : 0;
}

static int make_args(struct build *b, const char *debian, json_t **ret, struct sba_error *err)
{
	SBA_JSON json_t *args = json_pack("{s:s}", "BASE", debian);
	if (!args)
		return sba_fail_nomem(err);
	if (recipe_takes(b, "SANDBOX_BASE") &&
	    json_object_set_new(args, "SANDBOX_BASE",
				json_string(sba_images_ref(b->images, "base"))) < 0)
		return sba_fail_nomem(err);
	int rc = add_version(b, args, "VERSION", b->name, err);
	if (rc == 0)
		rc = add_version(b, args, "NODE_VERSION", "node", err);
	if (rc == 0)
		rc = add_integrity(b, args, "INTEGRITY", b->name, err);
	if (rc == 0)
		rc = add_integrity(b, args, "NODE_INTEGRITY", "node", err);
	if (rc == 0)
		*ret = sba_move(&args);
	return rc;
}

/* The OCI annotation set, as far as versions.json knows it: nothing of today, or no
 * build would be like the one before. */
static int make_labels(const struct build *b, const char *debian, json_t **ret,
		       struct sba_error *err)
{
	bool base = strcmp(b->name, "base") == 0;
	const char *digest = base ? strchr(debian, '@') : NULL;
	const char *date = sba_json_str(b->images->json, "image_date");
	const char *version = base ? date : sba_images_version(b->images, b->name);
	char created[32], title[128], about[256];
	snprintf(created, sizeof(created), "%.4s-%.2s-%.2sT00:00:00Z", date, date + 4, date + 6);
	snprintf(title, sizeof(title), "sandbox-agent %.64s", b->name);
	if (base)
		snprintf(about, sizeof(about), "What every sandbox has");
	else
		snprintf(about, sizeof(about), "A sandbox with %.64s %.64s", b->name, version);
	*ret = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", LABEL "title", title,
			 LABEL "description", about, LABEL "version", version, LABEL "created",
			 created, LABEL "ref.name", sba_images_ref(b->images, b->name),
			 LABEL "base.name", base ? debian : sba_images_ref(b->images, "base"));
	if (*ret && digest &&
	    json_object_set_new(*ret, LABEL "base.digest", json_string(digest + 1)) < 0) {
		json_decref(*ret);
		*ret = NULL;
	}
	return *ret ? 0 : sba_fail_nomem(err);
}

static int make_context(struct build *b, struct sba_pack **ret, struct sba_error *err)
{
	if (!find_recipe(b))
		return sba_fail(err, SBA_EINVAL, "no recipe for an image '%s'", b->name);
	SBA_BUF struct sba_buf ca = SBA_BUF_INIT(SBA_CONFIG_MAX);
	int rc = 0;
	if (b->options && b->options->ca_file)
		rc = sba_read_file(b->options->ca_file, SBA_CONFIG_MAX, &ca, err);
	const struct sba_pack_options options = { .fixed_mtime = 0 };
	struct sba_pack *pack = NULL;
	if (rc == 0)
		rc = sba_pack_new(&options, &pack, err);
	if (rc == 0)
		rc = pack_folder(pack, b->name, err);
	if (rc == 0)
		rc = pack_folder(pack, "shared", err);
	if (rc == 0)
		rc = sba_pack_bytes(pack, "ca.crt", ca.data ? ca.data : "", ca.len, 0644, err);
	if (rc < 0) {
		sba_pack_free(pack);
		return rc;
	}
	*ret = pack;
	return 0;
}

/* The engine's words are the whole command and its exit status; why it failed is in
 * what it printed last. */
static int step_failed(const struct build *b, struct sba_error *err)
{
	const char *all = b->output.data, *last = strrchr(all, '\n');
	size_t from =
		b->output.len > SBA_ERROR_HINT_MAX / 2 ? b->output.len - SBA_ERROR_HINT_MAX / 2 : 0;
	const char *colon = strstr(b->step, " :");
	if (colon)
		sba_fail(err, SBA_EIMAGE, "%.*s fails: %s", (int)(colon - b->step), b->step,
			 last ? last + 1 : all);
	return last ? sba_hint(err, SBA_EIMAGE, "%s", all + from) : SBA_EIMAGE;
}

static int run_build(struct build *b, const char *ref, const char *target, struct sba_error *err)
{
	char debian[SBA_REF_MAX];
	SBA_JSON json_t *args = NULL;
	SBA_JSON json_t *labels = NULL;
	struct sba_pack *context = NULL;
	int rc = find_debian(b, debian, err);
	if (rc == 0)
		rc = make_args(b, debian, &args, err);
	if (rc == 0 && !target)
		rc = make_labels(b, debian, &labels, err);
	if (rc == 0)
		rc = make_context(b, &context, err);
	if (rc < 0)
		return rc;
	const struct sba_image_build spec = {
		.tag = target ? NULL : ref,
		.target = target,
		.build_args = args,
		.labels = labels,
		.no_cache = b->options && b->options->no_cache,
	};
	rc = sba_image_build(b->engine, &spec, sba_pack_read, context, build_line, b,
			     sba_engine_until(b->engine, SBA_IMAGE_WORK_MS), err);
	sba_pack_free(context);
	return rc == SBA_EIMAGE && b->output.len > 0 ? step_failed(b, err) : rc;
}

static int build_one(struct sba_engine *e, const struct sba_images *i, const char *name,
		     const char *target, const struct sba_image_options *options,
		     struct sba_error *err)
{
	const char *ref = sba_images_ref(i, name);
	struct build b = { .engine = e, .images = i, .name = name, .options = options };
	sba_buf_init(&b.output, KEPT_OUTPUT + SBA_KIB);
	int rc = run_build(&b, ref, target, err);
	sba_buf_fini(&b.output);
	return rc < 0 ? sba_wrap(err, rc, "build image '%s'", ref) : 0;
}

static int make_one(struct sba_engine *e, const struct sba_images *i, const char *name,
		    const struct sba_image_options *options, struct sba_error *err)
{
	const char *ref = sba_images_ref(i, name);
	int here = options && options->rebuild ? 0 : sba_image_present(e, ref, err);
	if (here > 0)
		sba_image_tell(options, name, "is there", false);
	if (here != 0)
		return here < 0 ? here : 0;
	return build_one(e, i, name, NULL, options, err);
}

int sba_image_warm(struct sba_engine *e, const struct sba_images *i, const char *name,
		   const struct sba_image_options *options, struct sba_error *err)
{
	struct build b = { .images = i, .name = name };
	return sba_images_ref(i, name) && recipe_takes(&b, "NPM_REGISTRY=")
		       ? build_one(e, i, name, "npm", options, err)
		       : 0;
}

int sba_image_make(struct sba_engine *e, const struct sba_images *i, const char *name,
		   const struct sba_image_options *options, struct sba_error *err)
{
	if (!sba_images_ref(i, name))
		return sba_fail(err, SBA_EINVAL, "there is no image for '%s'", name);
	if (strcmp(name, "base") != 0) {
		struct sba_image_options base =
			options ? *options : (struct sba_image_options){ 0 };
		base.rebuild = false;
		int rc = make_one(e, i, "base", &base, err);
		if (rc < 0)
			return rc;
	}
	return make_one(e, i, name, options, err);
}
