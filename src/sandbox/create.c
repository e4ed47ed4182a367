/* SPDX-License-Identifier: MIT */
/*
 * Making a sandbox: sidecar and main container, and what can overlap
 * overlapping: the sidecar's start takes the engine far longer than creating
 * the main container and placing the guest in it.
 */
#include "sandbox/private.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "archive/archive.h"
#include "base/limits.h"
#include "channel/protocol.h"
#include "image/image.h"

#define CA_PATH SBA_GUEST_DIR "/ca.crt"

enum {
	SIDECAR_MEMORY = 16 * SBA_MIB,
	SIDECAR_PIDS = 16,
	DEFAULT_PIDS = 512,
};

static const int64_t default_memory = 2LL * 1024 * SBA_MIB;
static const int64_t default_keepalive_ms = 60 * 60 * 1000;
static const int64_t default_lifetime_ms = 24 * 60 * 60 * 1000;

struct making {
	struct sba_engine *engine;
	struct sba_sandbox_options o; /* every default resolved */
	char made_name[SBA_NAME_MAX];
	char id[SBA_SANDBOX_ID_LEN + 1];
	char sidecar_ref[SBA_REF_MAX];
	bool as_root; /* the image's user is root */
	json_t *labels;
	struct sba_buf ca;
	struct sba_sandbox *sandbox;
	/* the sidecar's start, on a thread of its own */
	int start_rc;
	struct sba_error start_err;
};

/* ---- what is asked for ---- */

static int64_t or_default(int64_t value, int64_t otherwise)
{
	return value < 0 ? 0 : value == 0 ? otherwise : value;
}

static int resolve_cpus(struct making *m, struct sba_error *err)
{
	if (m->o.cpus > 0)
		return 0;
	const struct sba_engine_info *info;
	int rc = sba_engine_info(m->engine, &info, err);
	if (rc == 0)
		m->o.cpus = info->cpus > 0 && info->cpus < 2 ? info->cpus : 2;
	return rc;
}

static int resolve(struct making *m, struct sba_error *err)
{
	struct sba_sandbox_options *o = &m->o;
	if (!o->image || !*o->image)
		return sba_fail(err, SBA_EINVAL, "a sandbox needs an image");
	int rc = 0;
	if (!o->prefix)
		o->prefix = SBA_DEFAULT_PREFIX;
	if (!o->name) {
		rc = sba_name_make(m->made_name, err);
		o->name = m->made_name;
	}
	if (rc == 0)
		rc = sba_name_check("sandbox", o->name, err);
	if (rc == 0)
		rc = sba_name_check("prefix", o->prefix, err);
	if (rc == 0 && o->tag)
		rc = sba_name_check("tag", o->tag, err);
	if (rc == 0 && sba_ends_with(o->name, SBA_SIDECAR_SUFFIX))
		rc = sba_fail(err, SBA_EINVAL, "sandbox '%s': '%s' is the end of a sidecar's name",
			      o->name, SBA_SIDECAR_SUFFIX);
	o->keepalive_ms = or_default(o->keepalive_ms, default_keepalive_ms);
	o->max_lifetime_ms = or_default(o->max_lifetime_ms, default_lifetime_ms);
	o->memory = or_default(o->memory, default_memory);
	o->pids = or_default(o->pids, DEFAULT_PIDS);
	if (rc == 0)
		rc = resolve_cpus(m, err);
	if (rc == 0)
		rc = sba_random_hex(m->id, SBA_SANDBOX_ID_LEN / 2, err);
	if (rc == 0 && o->ca_file)
		rc = sba_read_file(o->ca_file, SBA_CONFIG_MAX, &m->ca, err);
	return rc;
}

static bool is_root(const char *user)
{
	size_t len = strcspn(user, ":");
	return len == 0 || (len == 1 && user[0] == '0') ||
	       (len == 4 && memcmp(user, "root", 4) == 0);
}

static int look_at_image(struct making *m, struct sba_error *err)
{
	SBA_JSON json_t *image = NULL;
	struct sba_until until = sba_engine_until(m->engine, SBA_ENGINE_STEP_MS);
	int rc = sba_image_inspect(m->engine, m->o.image, until, &image, err);
	if (rc == SBA_ENOTFOUND) {
		rc = sba_fail(err, SBA_EIMAGE, "image '%s' is not on the engine", m->o.image);
		return sba_hint(err, rc, "see what is there:  sandbox-agent image ls");
	}
	if (rc < 0)
		return rc;
	const char *arch = sba_json_str(image, "Architecture");
	if (arch && strcmp(arch, "amd64") != 0)
		return sba_fail(err, SBA_EUNSUPPORTED,
				"image '%s': no guest for its architecture %s", m->o.image, arch);
	if (!m->o.user) {
		const char *user = sba_json_str(image, "Config.User");
		m->as_root = is_root(user ? user : "");
	} else {
		m->as_root = is_root(m->o.user);
	}
	return 0;
}

/* ---- what the engine is told ---- */

static json_t *sidecar_spec(const struct making *m)
{
	char keepalive[32], lifetime[32];
	/* Whole seconds for the reaper; less than one counts as one, 0 is never. */
	snprintf(keepalive, sizeof(keepalive), "%lld",
		 (long long)((m->o.keepalive_ms + 999) / 1000));
	snprintf(lifetime, sizeof(lifetime), "%lld",
		 (long long)((m->o.max_lifetime_ms + 999) / 1000));
	return json_pack("{s:s, s:o, s:[ssssss], s:s, s:b, s:{s:b, s:b, s:[s], s:[s,s], s:[s], "
			 "s:i, s:i, s:i, "
			 "s:[s], s:{s:s}}}",
			 "Image", m->sidecar_ref, "Labels",
			 sba_labels_with_role(m->labels, "sidecar"), "Entrypoint", SBA_SIDECAR_PATH,
			 "reaper", "--keepalive", keepalive, "--max-lifetime", lifetime, "Hostname",
			 m->o.name, "AttachStdout", 0, "HostConfig", "AutoRemove", 1,
			 "ReadonlyRootfs", 1, "CapDrop", "ALL",
			 /* To take three ids of its own; it gives both up at once. */
			 "CapAdd", "SETUID", "SETGID", "SecurityOpt", "no-new-privileges", "Memory",
			 SIDECAR_MEMORY, "MemorySwap", SIDECAR_MEMORY, "PidsLimit", SIDECAR_PIDS,
			 "ExtraHosts", SBA_HOST_NAME ":host-gateway", "LogConfig", "Type", "none");
}

/* Programs look for a CA bundle in these. */
static int add_ca_env(json_t *env)
{
	static const char *const names[] = { "SSL_CERT_FILE",      "CURL_CA_BUNDLE",
					     "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS",
					     "GIT_SSL_CAINFO",     "PIP_CERT" };
	for (size_t i = 0; i < SBA_ARRAY_LEN(names); i++) {
		if (json_array_append_new(env, json_sprintf("%s=%s", names[i], CA_PATH)))
			return SBA_ENOMEM;
	}
	return 0;
}

static int make_env(const struct making *m, json_t **ret, struct sba_error *err)
{
	SBA_JSON json_t *env = json_array();
	if (!env || (m->o.ca_file && add_ca_env(env) < 0))
		return sba_fail_nomem(err);
	for (size_t i = 0; m->o.env && m->o.env[i]; i++) {
		const char *pair = m->o.env[i];
		if (pair[0] == '=' || !strchr(pair, '='))
			return sba_fail(err, SBA_EINVAL, "environment: '%.40s' is not NAME=VALUE",
					pair);
		if (json_array_append_new(env, json_string(pair)))
			return sba_fail(err, SBA_EINVAL, "environment: '%.*s' is not valid UTF-8",
					(int)strcspn(pair, "="), pair);
	}
	*ret = sba_move(&env);
	return 0;
}

/* What package managers need, for images that run as root; nothing for others. */
static json_t *capabilities(bool as_root)
{
	return as_root ? json_pack("[sssssss]", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL",
				   "SETGID", "SETUID")
		       : json_array();
}

static int sandbox_spec(const struct making *m, json_t **ret, struct sba_error *err)
{
	json_t *env = NULL;
	int rc = make_env(m, &env, err);
	if (rc < 0)
		return rc;
	char join[SBA_ID_MAX + 16];
	snprintf(join, sizeof(join), "container:%s", m->sandbox->sidecar);
	json_t *host =
		json_pack("{s:s, s:s, s:b, s:[s], s:o, s:[s], s:I, s:I, s:I, s:I, s:{s:s}}",
			  "PidMode", join, "NetworkMode", join, "AutoRemove", 1, "CapDrop", "ALL",
			  "CapAdd", capabilities(m->as_root), "SecurityOpt", "no-new-privileges",
			  "Memory", (json_int_t)m->o.memory, "MemorySwap", (json_int_t)m->o.memory,
			  "PidsLimit", (json_int_t)m->o.pids, "NanoCpus",
			  (json_int_t)(m->o.cpus * 1e9), "LogConfig", "Type", "none");
	json_t *spec = json_pack("{s:s, s:o, s:[ss], s:[], s:o, s:{s:[s]}, s:o}", "Image",
				 m->o.image, "Labels", sba_labels_with_role(m->labels, "sandbox"),
				 "Entrypoint", SBA_GUEST_PATH, "idle", "Cmd", "Env", env,
				 "Healthcheck", "Test", "NONE", "HostConfig", host);
	if (!spec)
		return sba_fail_nomem(err);
	if (m->o.user)
		json_object_set_new(spec, "User", json_string(m->o.user));
	if (m->o.runtime)
		json_object_set_new(json_object_get(spec, "HostConfig"), "Runtime",
				    json_string(m->o.runtime));
	*ret = spec;
	return 0;
}

/* ---- the steps ---- */

static int create_container(struct making *m, const json_t *take_spec, bool sidecar, char *ret_id,
			    struct sba_error *err)
{
	char name[2 * SBA_NAME_MAX + 16];
	snprintf(name, sizeof(name), "%s-%s%s", m->o.prefix, m->o.name,
		 sidecar ? SBA_SIDECAR_SUFFIX : "");
	int rc = take_spec ? sba_container_create(m->engine, name, take_spec,
						  sba_engine_until(m->engine, SBA_ENGINE_STEP_MS),
						  ret_id, err)
			   : sba_fail_nomem(err);
	json_decref((json_t *)(uintptr_t)take_spec);
	if (rc == SBA_EEXIST)
		rc = sba_hint(
			err,
			sba_fail(err, SBA_EEXIST, "there is already a sandbox '%s'", m->o.name),
			"end it:  sandbox-agent rm %s", m->o.name);
	return rc;
}

static void *start_sidecar(void *user)
{
	struct making *m = user;
	m->start_rc =
		sba_container_start(m->engine, m->sandbox->sidecar,
				    sba_engine_until(m->engine, SBA_ENGINE_STEP_MS), &m->start_err);
	return NULL;
}

/* The guest, root-owned and not readable by others, so that a process of the
 * sandbox's user can neither replace nor trace it; over whatever the image has
 * there. */
static int place_guest(struct making *m, struct sba_error *err)
{
	const struct sba_embedded *guest = sba_embedded_find("guest");
	const struct sba_pack_options options = { .fixed_mtime = 0 };
	struct sba_pack *pack = NULL;
	int rc = sba_pack_new(&options, &pack, err);
	if (rc == 0)
		rc = sba_pack_dir(pack, &SBA_GUEST_DIR[1], 0755, err);
	if (rc == 0)
		rc = sba_pack_bytes(pack, &SBA_GUEST_PATH[1], guest->data, guest->len, 0711, err);
	if (rc == 0 && m->o.ca_file)
		rc = sba_pack_bytes(pack, &CA_PATH[1], m->ca.data ? m->ca.data : "", m->ca.len,
				    0644, err);
	if (rc == 0)
		rc = sba_container_put(m->engine, m->sandbox->container, "/", sba_pack_read, pack,
				       sba_engine_until(m->engine, SBA_ENGINE_STEP_MS), err);
	sba_pack_free(pack);
	return rc < 0 ? sba_wrap(err, rc, "place the guest") : 0;
}

static int make_main(struct making *m, struct sba_error *err)
{
	json_t *spec = NULL;
	int rc = sandbox_spec(m, &spec, err);
	if (rc == 0)
		rc = create_container(m, spec, false, m->sandbox->container, err);
	if (rc == 0)
		rc = place_guest(m, err);
	return rc;
}

static int make_both(struct making *m, struct sba_error *err)
{
	int rc = create_container(m, sidecar_spec(m), true, m->sandbox->sidecar, err);
	if (rc < 0)
		return rc;
	pthread_t starter;
	bool parallel = pthread_create(&starter, NULL, start_sidecar, m) == 0;
	rc = make_main(m, err);
	if (parallel)
		pthread_join(starter, NULL);
	else
		start_sidecar(m);
	if (m->start_rc < 0) {
		if (err)
			*err = m->start_err;
		return sba_wrap(err, m->start_rc, "start the sidecar");
	}
	if (rc == 0)
		rc = sba_container_start(m->engine, m->sandbox->container,
					 sba_engine_until(m->engine, SBA_ENGINE_STEP_MS), err);
	return rc;
}

static int make(struct making *m, struct sba_error *err)
{
	int rc = resolve(m, err);
	if (rc == 0)
		rc = look_at_image(m, err);
	if (rc == 0)
		rc = sba_image_sidecar(m->engine, SBA_OWN_REPOSITORY, m->sidecar_ref, err);
	if (rc == 0)
		rc = sba_labels_make(&m->o, m->id, &m->labels, err);
	if (rc < 0)
		return rc;
	m->sandbox->labels = json_incref(m->labels);
	sba_labels_read(m->sandbox->labels, &m->sandbox->info);
	rc = make_both(m, err);
	if (rc < 0 && sba_sandbox_remove_both(m->engine, m->sandbox->sidecar, m->sandbox->container,
					      NULL) < 0)
		sba_hint(err, rc,
			 "what was half made could not be removed; later:  sandbox-agent gc");
	return rc;
}

int sba_sandbox_create(struct sba_engine *e, const struct sba_sandbox_options *options,
		       struct sba_sandbox **ret, struct sba_error *err)
{
	struct making m = { .engine = e, .o = *options };
	sba_buf_init(&m.ca, SBA_CONFIG_MAX);
	m.sandbox = calloc(1, sizeof(*m.sandbox));
	if (!m.sandbox)
		return sba_fail_nomem(err);
	m.sandbox->engine = e;
	m.sandbox->sidecar_state = "idle";
	m.sandbox->info.reason = "";
	int rc = make(&m, err);
	json_decref(m.labels);
	sba_buf_fini(&m.ca);
	if (rc < 0) {
		sba_sandbox_close(m.sandbox);
		return sba_wrap(err, rc, "make a sandbox");
	}
	m.sandbox->info.state = "idle";
	*ret = m.sandbox;
	return 0;
}

/* ---- small things of a handle ---- */

const struct sba_sandbox_info *sba_sandbox_info(const struct sba_sandbox *s)
{
	return &s->info;
}

struct sba_engine *sba_sandbox_engine(const struct sba_sandbox *s)
{
	return s->engine;
}

const char *sba_sandbox_container(const struct sba_sandbox *s)
{
	return s->container;
}

struct sba_until sba_sandbox_until(const struct sba_sandbox *s, int64_t ms)
{
	return sba_engine_until(s->engine, ms);
}
