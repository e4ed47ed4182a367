/* SPDX-License-Identifier: MIT */
/*
 * What the engine is told about a sandbox's two containers, and the check that
 * it did what it was told.
 */
#include "sandbox/making.h"

#include <string.h>

#include "base/limits.h"

enum {
	/* Its scan of /proc is charged to it too: 2 kB a process, reclaimed in time or
	 * not. With 16 MiB ten thousand processes could have it killed. */
	SIDECAR_MEMORY = 64 * SBA_MIB,
	SIDECAR_PIDS = 16,
};

/* A sealed sandbox has loopback alone, and look-ups fail at once instead of
 * asking the host's name server in vain. */
static int seal(json_t *spec)
{
	json_t *host = json_object_get(spec, "HostConfig");
	/* Podman 5.4 cannot start what has no network and a line for its host. */
	return json_object_del(host, "ExtraHosts") ||
	       json_object_set_new(host, "NetworkMode", json_string("none")) ||
	       json_object_set_new(host, "Dns", json_pack("[s]", "127.0.0.1"));
}

/* Root could replace a guest that lies in its own files; out of the sidecar it
 * comes read-only. */
static int take_guest(const struct sba_making *m, json_t *spec)
{
	char from[SBA_ID_MAX + 8];
	snprintf(from, sizeof(from), "%s:ro", m->sandbox->sidecar);
	return json_object_set_new(json_object_get(spec, "HostConfig"), "VolumesFrom",
				   json_pack("[s]", from));
}

json_t *sba_spec_sidecar(const struct sba_making *m)
{
	char keepalive[32], lifetime[32], host_entry[128];
	snprintf(host_entry, sizeof(host_entry), SBA_HOST_NAME ":%s", m->host_address);
	/* Whole seconds for the reaper; less than one counts as one, 0 is never. */
	snprintf(keepalive, sizeof(keepalive), "%lld",
		 (long long)((m->o.keepalive_ms + 999) / 1000));
	snprintf(lifetime, sizeof(lifetime), "%lld",
		 (long long)((m->o.max_lifetime_ms + 999) / 1000));
	json_t *host =
		json_pack("{s:b, s:b, s:[s], s:[s,s], s:[s], s:i, s:i, s:i, s:[s], s:{s:s}}",
			  "AutoRemove", 1, "ReadonlyRootfs", 1, "CapDrop", "ALL",
			  /* To take three ids of its own; it gives both up at once. */
			  "CapAdd", "SETUID", "SETGID", "SecurityOpt", "no-new-privileges",
			  "Memory", SIDECAR_MEMORY, "MemorySwap", SIDECAR_MEMORY, "PidsLimit",
			  SIDECAR_PIDS, "ExtraHosts", host_entry, "LogConfig", "Type", "none");
	json_t *spec =
		json_pack("{s:s, s:o, s:[ssssss], s:s, s:b, s:s, s:o}", "Image", m->sidecar_ref,
			  "Labels", sba_labels_with_role(m->labels, "sidecar"), "Entrypoint",
			  SBA_GUEST_PATH, "reaper", "--keepalive", keepalive, "--max-lifetime",
			  lifetime, "Hostname", m->o.name, "AttachStdout", 0,
			  /* A PID 1 minds no other; Podman 5 asks before a forced removal
			   * and waits for ten seconds. */
			  "StopSignal", "SIGKILL", "HostConfig", host);
	bool bad = !spec || (strcmp(m->o.network, "sealed") == 0 && seal(spec));
	bad = bad || (m->as_root && sba_volume_offer(m, spec) < 0);
	if (bad) {
		json_decref(spec);
		return NULL;
	}
	return spec;
}

/* Programs look for a CA bundle in these. */
static int add_ca_env(json_t *env)
{
	static const char *const names[] = { "SSL_CERT_FILE",      "CURL_CA_BUNDLE",
					     "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS",
					     "GIT_SSL_CAINFO",     "PIP_CERT" };
	for (size_t i = 0; i < SBA_ARRAY_LEN(names); i++) {
		if (json_array_append_new(env, json_sprintf("%s=%s", names[i], SBA_CA_PATH)))
			return SBA_ENOMEM;
	}
	return 0;
}

static int make_env(const struct sba_making *m, json_t **ret, struct sba_error *err)
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

/* What package managers need, for images that run as root; nothing for others.
 * SETPCAP is the guest's alone: its commands, which lack it, cannot trace it. */
static json_t *capabilities(bool as_root)
{
	return as_root ? json_pack("[ssssssss]", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID",
				   "KILL", "SETGID", "SETUID", "SETPCAP")
		       : json_array();
}

/* Tried with Docker alone: on Podman the stream is conmon's, with ends of its own. */
bool sba_spec_attachable(const struct sba_making *m)
{
	return !sba_engine_podman(m->engine);
}

int sba_spec_sandbox(const struct sba_making *m, json_t **ret, struct sba_error *err)
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
	bool attachable = sba_spec_attachable(m);
	json_t *spec =
		json_pack("{s:s, s:o, s:[ss], s:[], s:o, s:{s:[s]}, s:o, s:b, s:b}", "Image",
			  m->o.image_id ? m->o.image_id : m->o.image, "Labels",
			  sba_labels_with_role(m->labels, "sandbox"), "Entrypoint", SBA_GUEST_PATH,
			  "idle", "Cmd", "Env", env, "Healthcheck", "Test", "NONE", "HostConfig",
			  host, "OpenStdin", attachable, "StdinOnce", attachable);
	if (!spec)
		return sba_fail_nomem(err);
	/* Docker takes it from the sidecar and refuses another, Podman makes one up. */
	if (sba_engine_podman(m->engine))
		json_object_set_new(spec, "Hostname", json_string(m->o.name));
	bool bad = m->o.user && json_object_set_new(spec, "User", json_string(m->o.user));
	bad = bad || (m->o.runtime && json_object_set_new(json_object_get(spec, "HostConfig"),
							  "Runtime", json_string(m->o.runtime)));
	if (bad) {
		json_decref(spec);
		return sba_fail(err, SBA_EINVAL, "user or runtime: not valid UTF-8");
	}
	if (m->as_root && take_guest(m, spec))
		rc = sba_fail_nomem(err);
	if (rc == 0)
		rc = sba_mounts_add(m, json_object_get(spec, "HostConfig"), err);
	if (rc < 0)
		json_decref(spec);
	else
		*ret = spec;
	return rc;
}

/* ---- did it ---- */

/* The security fields, in HostConfig unless they say otherwise. */
static const char *const must_hold[] = {
	"CapDrop",   "CapAdd", "SecurityOpt", "PidMode", "NetworkMode",
	"PidsLimit", "Memory", "NanoCpus",    "Runtime", "VolumesFrom",
};

/* "ALL" and "CAP_CHOWN" and "CHOWN" are the same to engines. */
static const char *plain_capability(const char *name)
{
	return sba_starts_with(name, "CAP_") ? name + 4 : name;
}

static bool has_all(const json_t *wanted, const json_t *got)
{
	size_t i, k;
	json_t *w, *g;
	json_array_foreach(wanted, i, w)
	{
		bool found = false;
		json_array_foreach(got, k, g) found =
			found || (json_is_string(g) &&
				  sba_starts_with(plain_capability(json_string_value(g)),
						  plain_capability(json_string_value(w))));
		if (!found)
			return false;
	}
	return true;
}

static bool holds(const char *key, const json_t *wanted, const json_t *got)
{
	if (!wanted)
		return true;
	if (strcmp(key, "CapAdd") == 0)
		return has_all(got, wanted);
	if (json_is_array(wanted))
		return has_all(wanted, got);
	return json_equal((json_t *)(uintptr_t)wanted, (json_t *)(uintptr_t)got);
}

/* Podman resolves CapDrop and CapAdd and shows the difference from a default
 * list of its own: what is left is told by its own inspect alone. */
static int set_podman_capabilities(const struct sba_making *m, const char *id, json_t *host,
				   struct sba_error *err)
{
	char path[SBA_ID_MAX + 32];
	snprintf(path, sizeof(path), "/libpod/containers/%s/json", id);
	const struct sba_request request = { .method = "GET",
					     .path = path,
					     .tried = "ask for capabilities" };
	SBA_JSON json_t *made = NULL;
	int rc = sba_engine_call(m->engine, &request, m->until, &made, err);
	if (rc < 0)
		return rc;
	const json_t *left = json_object_get(made, "BoundingCaps"); /* null: none */
	if (!left)
		return sba_fail(err, SBA_EPROTO, "the engine tells no capabilities");
	json_object_set_new(host, "CapDrop", json_pack("[s]", "ALL"));
	json_object_set(host, "CapAdd", (json_t *)(uintptr_t)left);
	return 0;
}

static int not_kept(const char *key, struct sba_error *err)
{
	return sba_fail(
		err, SBA_EUNSUPPORTED,
		"the engine did not keep %s: the sandbox would be less confined than it must "
		"be",
		key);
}

int sba_spec_verify(const struct sba_making *m, const char *id, const json_t *spec,
		    struct sba_error *err)
{
	SBA_JSON json_t *made = NULL;
	int rc = sba_container_inspect(m->engine, id, m->until, &made, err);
	const json_t *wanted = json_object_get(spec, "HostConfig");
	json_t *got = json_object_get(made, "HostConfig");
	if (rc == 0 && sba_engine_podman(m->engine))
		rc = set_podman_capabilities(m, id, got, err);
	if (rc < 0)
		return rc;
	for (size_t i = 0; i < SBA_ARRAY_LEN(must_hold); i++) {
		const char *key = must_hold[i];
		if (!holds(key, json_object_get(wanted, key), json_object_get(got, key)))
			return not_kept(key, err);
	}
	if (!sba_mounts_hold(json_object_get(wanted, "Mounts"), json_object_get(made, "Mounts")))
		return not_kept("Mounts", err);
	const char *user = sba_json_str(spec, "User"), *kept = sba_json_str(made, "Config.User");
	return user && (!kept || strcmp(user, kept) != 0) ? not_kept("User", err) : 0;
}
