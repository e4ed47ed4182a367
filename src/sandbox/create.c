/* SPDX-License-Identifier: MIT */
/*
 * Making a sandbox: sidecar and main container, and what can overlap
 * overlapping: the sidecar's start takes the engine far longer than creating
 * the main container and placing the guest in it.
 */
#include "sandbox/files.h"
#include "sandbox/making.h"
#include "sandbox/session.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "archive/archive.h"
#include "proxy/proxy.h"
#include "base/limits.h"
#include "channel/protocol.h"

enum { DEFAULT_PIDS = 512, DEFAULT_SANDBOXES = 20 };

static const int64_t default_memory = 2LL * 1024 * SBA_MIB;
static const int64_t default_keepalive_ms = 60 * 60 * 1000;
static const int64_t default_lifetime_ms = 24 * 60 * 60 * 1000;

/* ---- what is asked for ---- */

static int64_t or_default(int64_t value, int64_t otherwise)
{
	return value < 0 ? 0 : value == 0 ? otherwise : value;
}

static int resolve_cpus(struct sba_making *m, struct sba_error *err)
{
	if (m->o.cpus > 0)
		return 0;
	const struct sba_engine_info *info;
	int rc = sba_engine_info(m->engine, &info, err);
	if (rc == 0)
		m->o.cpus = info->cpus > 0 && info->cpus < 2 ? info->cpus : 2;
	return rc;
}

/* Podman 4.3 writes the word itself into the hosts file. */
static int resolve_host(struct sba_making *m, struct sba_error *err)
{
	int podman = sba_engine_podman(m->engine);
	snprintf(m->host_address, sizeof(m->host_address), "host-gateway");
	if (podman == 0 || podman > 4)
		return 0;
	return sba_engine_bridge_address(m->engine, m->until, m->host_address, err);
}

static int check_network(struct sba_sandbox_options *o, struct sba_error *err)
{
	bool rules = o->allow && o->allow[0];
	if (!o->network)
		o->network = rules ? "sealed" : "open";
	if (strcmp(o->network, "sealed") != 0 && strcmp(o->network, "open") != 0)
		return sba_fail(err, SBA_EINVAL, "network '%s': 'open' or 'sealed'", o->network);
	if (!rules)
		return 0;
	if (strcmp(o->network, "open") == 0)
		return sba_hint(
			err,
			sba_fail(err, SBA_EINVAL,
				 "network 'open': it has no rules, and there are some to allow"),
			"with --allow alone it is sealed, and they are the way out");
	struct sba_rules *parsed = NULL;
	int rc = sba_rules_new(o->allow, &parsed, err);
	sba_rules_free(parsed);
	return rc;
}

/* These give each container a kernel of its own, so that no process namespace is
 * shared and the sidecar's end would end nothing. */
static int check_runtime(const struct sba_making *m, struct sba_error *err)
{
	const char *runtime = m->o.runtime;
	static const char *const apart[] = { "runsc", "gvisor", "kata" };
	for (size_t i = 0; runtime && i < SBA_ARRAY_LEN(apart); i++) {
		if (strstr(runtime, apart[i]))
			return sba_fail(
				err, SBA_EUNSUPPORTED,
				"runtime '%s' cannot share a process namespace: nothing would "
				"end what is left running",
				runtime);
	}
	/* Its Docker API (4.3 to 5.4) drops the field without a word. */
	if (runtime && sba_engine_podman(m->engine))
		return sba_hint(err,
				sba_fail(err, SBA_EUNSUPPORTED,
					 "runtime '%s': Podman does not let its clients choose one",
					 runtime),
				"set it in Podman's containers.conf");
	return 0;
}

static int check_reserved(const struct sba_making *m, struct sba_error *err)
{
	const char *name = m->o.name;
	if (sba_ends_with(name, SBA_SIDECAR_SUFFIX))
		return sba_fail(err, SBA_EINVAL,
				"sandbox '%s': '%s' is the end of a sidecar's name", name,
				SBA_SIDECAR_SUFFIX);
	if (!m->members && sba_member_name(name))
		return sba_fail(err, SBA_EINVAL,
				"sandbox '%s': '%s' and a hash are names of the pool's members",
				name, SBA_MEMBER);
	return 0;
}

static int make_name(struct sba_making *m, struct sba_error *err)
{
	char hash[9];
	int rc;
	if (!m->members)
		return sba_name_make(m->made_name, err);
	rc = sba_random_hex(hash, 4, err);
	if (rc == 0)
		snprintf(m->made_name, sizeof(m->made_name), SBA_MEMBER "%s", hash);
	return rc;
}

static int resolve(struct sba_making *m, struct sba_error *err)
{
	struct sba_sandbox_options *o = &m->o;
	if (!o->image || !*o->image)
		return sba_fail(err, SBA_EINVAL, "a sandbox needs an image");
	int rc = 0;
	if (!o->prefix)
		o->prefix = SBA_DEFAULT_PREFIX;
	if (!o->name || m->members) {
		rc = make_name(m, err);
		o->name = m->made_name;
	}
	if (rc == 0)
		rc = sba_name_check("sandbox", o->name, err);
	if (rc == 0)
		rc = sba_name_check("prefix", o->prefix, err);
	if (rc == 0 && o->tag)
		rc = sba_name_check("tag", o->tag, err);
	if (rc == 0)
		rc = check_network(o, err);
	if (rc == 0)
		rc = check_runtime(m, err);
	if (rc == 0)
		rc = check_reserved(m, err);
	if (rc == 0)
		rc = sba_mounts_resolve(m, err);
	o->keepalive_ms = or_default(o->keepalive_ms, default_keepalive_ms);
	o->max_lifetime_ms = or_default(o->max_lifetime_ms, default_lifetime_ms);
	o->memory = or_default(o->memory, default_memory);
	o->pids = or_default(o->pids, DEFAULT_PIDS);
	o->max_sandboxes = or_default(o->max_sandboxes, DEFAULT_SANDBOXES);
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

static int look_at_image(struct sba_making *m, struct sba_error *err)
{
	SBA_JSON json_t *image = NULL;
	int rc = sba_image_inspect(m->engine, m->o.image_id ? m->o.image_id : m->o.image, m->until,
				   &image, err);
	if (rc == SBA_ENOTFOUND) {
		rc = sba_fail(err, SBA_EIMAGE, "image '%s' is not on the engine", m->o.image);
		return sba_hint(err, rc, "see what is there:  sandbox-agent image ls");
	}
	if (rc < 0)
		return rc;
	const char *id = sba_json_str(image, "Id");
	snprintf(m->image_id, sizeof(m->image_id), "%s", id ? id : "");
	rc = sba_workdir_take(m, sba_json_str(image, "Config.WorkingDir"), err);
	if (rc < 0)
		return rc;
	rc = sba_guest_for_image(m->engine, image, &m->guest, err);
	if (rc < 0)
		return rc;
	if (!m->o.user) {
		const char *user = sba_json_str(image, "Config.User");
		m->as_root = is_root(user ? user : "");
	} else {
		m->as_root = is_root(m->o.user);
	}
	return 0;
}

/* ---- the steps ---- */

/* On Podman the sidecar of one that ended itself may hold the name yet: looking
 * for the name takes it away. */
static bool name_was_freed(struct sba_making *m)
{
	char by_prefix[SBA_FILTER_MAX], by_name[SBA_FILTER_MAX];
	snprintf(by_name, sizeof(by_name), SBA_LABEL "name=%s", m->o.name);
	const char *const labels[] = { sba_label_of_prefix(by_prefix, m->o.prefix), by_name, NULL };
	struct sba_found f = { 0 };
	if (!sba_engine_podman(m->engine) || sba_found_get(m->engine, labels, &f, NULL) < 0)
		return false;
	bool freed = f.n == 0;
	sba_found_fini(&f);
	return freed;
}

int sba_making_name_taken(const struct sba_making *m, struct sba_error *err)
{
	int rc = sba_fail(err, SBA_EEXIST, "there is already a sandbox '%s'", m->o.name);
	return sba_hint(err, rc, "end it:  sandbox-agent rm %s", m->o.name);
}

static int create_container(struct sba_making *m, const json_t *spec, bool sidecar, char *ret_id,
			    struct sba_error *err)
{
	char name[2 * SBA_NAME_MAX + 16];
	snprintf(name, sizeof(name), "%s-%s%s", m->o.prefix, m->o.name,
		 sidecar ? SBA_SIDECAR_SUFFIX : "");
	if (!spec)
		return sba_fail_nomem(err);
	int rc = sba_container_create(m->engine, name, spec, m->until, ret_id, err);
	if (rc == SBA_EEXIST && name_was_freed(m))
		rc = sba_container_create(m->engine, name, spec, m->until, ret_id, err);
	if (rc != SBA_EEXIST)
		return rc;
	return sba_making_name_taken(m, err);
}

static int ensure_sidecar_image(struct sba_making *m, struct sba_error *err)
{
	return sba_image_sidecar(m->engine, SBA_OWN_REPOSITORY, &m->guest, m->sidecar_ref, err);
}

static void *start_sidecar(void *user)
{
	struct sba_making *m = user;
	m->start_rc = sba_container_start(m->engine, m->sandbox->sidecar, m->until, &m->start_err);
	return NULL;
}

/* A link where the volume is to be could be turned elsewhere by root. */
static int check_place(struct sba_making *m, struct sba_error *err)
{
	struct sba_path_stat found = { 0 };
	if (!m->as_root)
		return 0;
	int rc = sba_container_stat(m->engine, m->sandbox->container, SBA_GUEST_DIR,
				    sba_engine_until(m->engine, SBA_ENGINE_STEP_MS), &found, err);
	if (rc == 0 && S_ISLNK(found.mode))
		rc = sba_fail(err, SBA_EREFUSED, "image '%s' has a symbolic link at %s", m->o.image,
			      SBA_GUEST_DIR);
	return rc;
}

static int pack_ca(const struct sba_making *m, struct sba_pack *pack, struct sba_error *err)
{
	int rc = sba_pack_dir(pack, &SBA_CA_DIR[1], 0755, err);
	if (rc == 0)
		rc = sba_pack_bytes(pack, &SBA_CA_PATH[1], m->ca.data ? m->ca.data : "", m->ca.len,
				    0644, err);
	return rc;
}

static int place_files(struct sba_making *m, struct sba_error *err)
{
	const struct sba_pack_options options = { .fixed_mtime = 0 };
	struct sba_pack *pack = NULL;
	if (m->as_root && !m->o.ca_file)
		return 0;
	int rc = sba_pack_new(&options, &pack, err);
	if (rc == 0 && !m->as_root)
		rc = sba_guest_pack(pack, &m->guest, m->id, err);
	if (rc == 0 && m->o.ca_file)
		rc = pack_ca(m, pack, err);
	if (rc == 0)
		rc = sba_container_put(m->engine, m->sandbox->container, "/", sba_pack_read, pack,
				       m->until, err);
	sba_pack_free(pack);
	return rc;
}

static int place_guest(struct sba_making *m, struct sba_error *err)
{
	int rc = place_files(m, err);
	if (rc == 0)
		rc = check_place(m, err);
	return rc < 0 ? sba_wrap(err, rc, "place the guest") : 0;
}

/* Everything here happens while the sidecar starts. */
static int make_main(struct sba_making *m, const json_t *sidecar, struct sba_error *err)
{
	SBA_JSON json_t *spec = NULL;
	int rc = resolve_cpus(m, err);
	if (rc == 0)
		rc = sba_spec_sandbox(m, &spec, err);
	if (rc == 0)
		rc = create_container(m, spec, false, m->sandbox->container, err);
	if (rc == 0)
		rc = sba_workdir_check(m, err);
	if (rc == 0)
		rc = place_guest(m, err);
	if (rc == 0)
		rc = sba_spec_verify(m, m->sandbox->container, spec, err);
	if (rc == 0)
		rc = sba_room_check(m, err);
	/* Last: Docker does not tell of a container while it starts it. */
	if (rc == 0)
		rc = sba_spec_verify(m, m->sandbox->sidecar, sidecar, err);
	return rc;
}

/* Another client, of another version, may just have swept the image away as unused. */
static int create_sidecar(struct sba_making *m, const json_t *spec, struct sba_error *err)
{
	struct sba_error why;
	int rc = create_container(m, spec, true, m->sandbox->sidecar, &why);
	if (rc == SBA_ENOTFOUND && (rc = ensure_sidecar_image(m, &why)) == 0)
		rc = create_container(m, spec, true, m->sandbox->sidecar, &why);
	if (rc < 0 && err)
		*err = why;
	return rc;
}

int sba_making_confirm(struct sba_making *m, struct sba_error *err)
{
	struct sba_hold *hold = NULL;
	struct sba_error why;
	int rc = sba_session_hold(m->sandbox->session, -1, &hold, &why);
	sba_hold_release(hold);
	if (rc == SBA_EUNSUPPORTED)
		return 0; /* commands go by execs; the main process alone would have ended */
	if (rc < 0 && err)
		*err = why;
	return rc;
}

static int make_both(struct sba_making *m, struct sba_error *err)
{
	SBA_JSON json_t *sidecar = sba_spec_sidecar(m);
	int rc = create_sidecar(m, sidecar, err);
	if (rc < 0)
		return rc;
	pthread_t starter;
	bool parallel = sba_thread_start(&starter, start_sidecar, m, NULL) == 0;
	rc = make_main(m, sidecar, err);
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
		rc = sba_container_start(m->engine, m->sandbox->container, m->until, err);
	/* A member of the pool is kept for its claimer. */
	m->sandbox->unattached = !m->members && sba_spec_attachable(m);
	if (rc == 0)
		rc = sba_making_confirm(m, err);
	return rc;
}

/* By label, not by what was answered: an answer can be lost after the engine has
 * done its work. */
static int roll_back(struct sba_making *m)
{
	char by_id[64];
	snprintf(by_id, sizeof(by_id), SBA_LABEL "id=%s", m->id);
	const char *const labels[] = { by_id, NULL };
	struct sba_found f = { 0 };
	int rc = sba_sandbox_remove_both(m->engine, m->sandbox->sidecar, m->sandbox->container,
					 NULL);
	if (rc == 0)
		rc = sba_found_get_until(
			m->engine, labels,
			sba_engine_until_regardless(sba_engine_timeouts(m->engine)->stop_ms), &f,
			NULL);
	for (size_t i = 0; rc == 0 && i < f.n; i++)
		rc = sba_sandbox_remove_both(m->engine, f.v[i].sidecar, f.v[i].container, NULL);
	sba_found_fini(&f);
	return rc;
}

int sba_making_make(struct sba_making *m, struct sba_error *err)
{
	int rc = resolve_host(m, err);
	if (rc == 0)
		rc = ensure_sidecar_image(m, err);
	if (rc == 0)
		rc = sba_labels_make(&m->o, m->id, m->members ? m->pool : NULL, &m->labels, err);
	if (rc < 0)
		return rc;
	m->sandbox->labels = json_incref(m->labels);
	sba_labels_read(m->sandbox->labels, &m->sandbox->info);
	rc = make_both(m, err);
	if (rc < 0 && roll_back(m) < 0)
		sba_hint(err, rc,
			 "what was half made could not be removed; later:  sandbox-agent gc");
	return rc;
}

int sba_making_init(struct sba_making *m, struct sba_engine *e,
		    const struct sba_sandbox_options *options, struct sba_error *err)
{
	m->engine = e;
	m->o = *options;
	m->until = sba_engine_until(e, sba_engine_timeouts(e)->start_ms);
	sba_buf_init(&m->ca, SBA_CONFIG_MAX);
	m->sandbox = calloc(1, sizeof(*m->sandbox));
	if (!m->sandbox)
		return sba_fail_nomem(err);
	m->sandbox->engine = e;
	m->sandbox->sidecar_state = "idle";
	m->sandbox->info.reason = "";
	m->sandbox->info.state = "idle";
	int rc = sba_session_new(m->sandbox, &m->sandbox->session, err);
	if (rc == 0)
		rc = resolve(m, err);
	if (rc == 0)
		rc = look_at_image(m, err);
	return rc;
}

void sba_making_fini(struct sba_making *m)
{
	json_decref(m->labels);
	sba_strv_fini(&m->mounts);
	sba_buf_fini(&m->ca);
	sba_sandbox_close(m->sandbox);
}

int sba_sandbox_create(struct sba_engine *e, const struct sba_sandbox_options *options,
		       struct sba_sandbox **ret, struct sba_error *err)
{
	struct sba_making m = { 0 };
	int rc = sba_making_init(&m, e, options, err);
	if (rc == 0 && options->pool)
		rc = sba_member_take(&m, err);
	if (rc == 0)
		rc = sba_making_make(&m, err);
	if (rc >= 0)
		*ret = sba_move(&m.sandbox);
	sba_making_fini(&m);
	return rc < 0 ? sba_wrap(err, rc, "make a sandbox") : 0;
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
	const struct sba_until own = { SBA_NEVER, sba_cancel_fd(s->cancel) };
	return s->engine ? sba_engine_until(s->engine, ms) : sba_until_sooner(own, ms);
}
