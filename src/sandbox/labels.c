/* SPDX-License-Identifier: MIT */
/*
 * The labels that are a sandbox's only registry: what never changes about it.
 * Never the value of an environment variable, never a token.
 */
#include "sandbox/private.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"

const char *sba_label_get(const json_t *labels, const char *name)
{
	char key[64];
	snprintf(key, sizeof(key), SBA_LABEL "%s", name);
	const char *value = json_string_value(json_object_get(labels, key));
	return value ? value : "";
}

const char *sba_label_of_prefix(char buf[SBA_FILTER_MAX], const char *prefix)
{
	snprintf(buf, SBA_FILTER_MAX, SBA_LABEL "prefix=%.*s", SBA_NAME_MAX,
		 prefix ? prefix : SBA_DEFAULT_PREFIX);
	return buf;
}

int sba_label_words(const char *value, struct sba_strv *ret, struct sba_error *err)
{
	int rc = 0;
	for (const char *at = value + strspn(value, " "); rc == 0 && *at; at += strspn(at, " ")) {
		size_t len = strcspn(at, " ");
		rc = sba_strv_addf(ret, err, "%.*s", (int)len, at);
		at += len;
	}
	return rc;
}

/* The start of a one-line file of /proc, or "-". */
static void proc_word(const char *path, char *ret, size_t size)
{
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(4 * SBA_KIB);
	snprintf(ret, size, "-");
	if (sba_read_file(path, 4 * SBA_KIB, &b, NULL) == 0 && b.len > 0)
		snprintf(ret, size, "%.*s", (int)strcspn(b.data, "\n"), b.data);
}

/* Field 22 of /proc/PID/stat: tells a process from a later one of its number. */
static void start_time(pid_t pid, char *ret, size_t size)
{
	char path[64], stat[1024];
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	proc_word(path, stat, sizeof(stat));
	const char *at = strrchr(stat, ')');
	for (int field = 2; at && field < 22; field++) {
		at = strchr(at + 1, ' ');
	}
	snprintf(ret, size, "%.*s", at ? (int)strcspn(at + 1, " ") : 1, at ? at + 1 : "-");
}

/* machine id | boot id | pid namespace: only where all three are ours does a
 * missing process mean that the creator is dead. */
static void here(char *ret, size_t size)
{
	char machine[64], boot[64];
	proc_word("/etc/machine-id", machine, sizeof(machine));
	proc_word("/proc/sys/kernel/random/boot_id", boot, sizeof(boot));
	struct stat st = { 0 };
	uintmax_t ns = stat("/proc/self/ns/pid", &st) == 0 ? (uintmax_t)st.st_ino : 0;
	snprintf(ret, size, "%.40s|%.40s|%" PRIuMAX, machine, boot, ns);
}

static void creator(char *ret, size_t size)
{
	char where[160], began[32];
	here(where, sizeof(where));
	start_time(getpid(), began, sizeof(began));
	snprintf(ret, size, "%s|%d|%s", where, (int)getpid(), began);
}

bool sba_label_creator_dead(const json_t *labels)
{
	const char *made_by = sba_label_get(labels, "creator");
	char where[160];
	here(where, sizeof(where));
	size_t len = strlen(where);
	if (strncmp(made_by, where, len) != 0 || made_by[len] != '|')
		return false;
	const char *pid_text = made_by + len + 1;
	const char *began = strchr(pid_text, '|');
	long pid = strtol(pid_text, NULL, 10);
	if (!began || pid <= 0)
		return false;
	if (kill((pid_t)pid, 0) < 0 && errno == ESRCH)
		return true;
	char now[32];
	start_time((pid_t)pid, now, sizeof(now));
	/* Where /proc hides others' processes nothing was read: not dead. */
	return now[0] != '-' && strcmp(now, began + 1) != 0;
}

static int set(json_t *labels, const char *name, const char *value)
{
	char key[64];
	snprintf(key, sizeof(key), SBA_LABEL "%s", name);
	return json_object_set_new(labels, key, json_string(value ? value : ""));
}

static int set_int(json_t *labels, const char *name, int64_t value)
{
	char text[32];
	snprintf(text, sizeof(text), "%" PRId64, value);
	return set(labels, name, text);
}

/* *ret: a JSON array of them; NULL for none. */
static int put_words(const char *const *words, char **ret)
{
	if (!words)
		return 0;
	SBA_JSON json_t *list = json_array();
	for (; *words; words++) {
		if (json_array_append_new(list, json_string(*words)) < 0)
			return -1;
	}
	*ret = sba_json_dump(list);
	return *ret ? 0 : -1;
}

int sba_labels_make(const struct sba_sandbox_options *o, const char *id, const char *pool,
		    json_t **ret, struct sba_error *err)
{
	char made_by[256];
	creator(made_by, sizeof(made_by));
	SBA_BUF struct sba_buf rules = SBA_BUF_INIT(64 * SBA_KIB);
	for (size_t i = 0; o->allow && o->allow[i]; i++)
		sba_buf_printf(&rules, "%s%s", i ? " " : "", o->allow[i]);
	int rc = sba_buf_check(&rules, "rules", err);
	if (rc < 0)
		return rc;
	SBA_JSON json_t *l = json_object();
	SBA_FREE char *program = NULL, *mounts = NULL;
	int bad = !l || put_words(o->program, &program) || put_words(o->mounts, &mounts);
	bad = bad || set_int(l, "schema", SBA_LABEL_SCHEMA) || set(l, "id", id) ||
	      set(l, "name", o->name) || set(l, "prefix", o->prefix) || set(l, "tag", o->tag) ||
	      set(l, "agent", o->agent) || set(l, "image", o->image) || set(l, "user", o->user) ||
	      set(l, "provider", o->provider) || set(l, "base-url", o->base_url) ||
	      set(l, "key-env", o->key_env) || set(l, "program", program) ||
	      set(l, "mounts", mounts) || set(l, "model", o->model) ||
	      set(l, "permissions", o->permissions) || set(l, "mcp", o->mcp) ||
	      set(l, "login", o->login) || set_int(l, "max-tokens", o->max_tokens) ||
	      set_int(l, "max-requests", o->max_requests) ||
	      set(l, "allow", rules.data ? rules.data : "") || set(l, "network", o->network) ||
	      set(l, "workspace", SBA_DEFAULT_WORKSPACE) || set(l, "version", SBA_VERSION) ||
	      set(l, "creator", made_by) || set_int(l, "created", sba_unix_ms() / 1000) ||
	      set_int(l, "keepalive", o->keepalive_ms) ||
	      set_int(l, "max-lifetime", o->max_lifetime_ms) ||
	      /* said in any case: a committed image may say something else */
	      set(l, "pool", pool);
	if (bad)
		return sba_fail(err, SBA_EINVAL, "labels: a value is not valid UTF-8");
	*ret = sba_move(&l);
	return 0;
}

json_t *sba_labels_with_role(const json_t *labels, const char *role)
{
	json_t *copy = json_copy((json_t *)(uintptr_t)labels);
	if (copy && set(copy, "role", role)) {
		json_decref(copy);
		return NULL;
	}
	return copy;
}

json_t *sba_labels_with_name(const json_t *labels, const char *name)
{
	json_t *copy = json_copy((json_t *)(uintptr_t)labels);
	if (copy && set(copy, "name", name)) {
		json_decref(copy);
		return NULL;
	}
	return copy;
}

static int64_t get_int(const json_t *labels, const char *name)
{
	int64_t value = 0;
	return sba_parse_int(sba_label_get(labels, name), 0, INT64_MAX, &value) == 0 ? value : 0;
}

void sba_labels_read(const json_t *labels, struct sba_sandbox_info *info)
{
	info->id = sba_label_get(labels, "id");
	info->name = sba_label_get(labels, "name");
	info->prefix = sba_label_get(labels, "prefix");
	info->tag = sba_label_get(labels, "tag");
	info->agent = sba_label_get(labels, "agent");
	info->provider = sba_label_get(labels, "provider");
	info->image = sba_label_get(labels, "image");
	info->user = sba_label_get(labels, "user");
	info->version = sba_label_get(labels, "version");
	info->network = sba_label_get(labels, "network");
	info->allow = sba_label_get(labels, "allow");
	info->base_url = sba_label_get(labels, "base-url");
	info->key_env = sba_label_get(labels, "key-env");
	info->program = sba_label_get(labels, "program");
	info->mounts = sba_label_get(labels, "mounts");
	info->pool = sba_label_get(labels, "pool");
	info->model = sba_label_get(labels, "model");
	info->permissions = sba_label_get(labels, "permissions");
	info->mcp = sba_label_get(labels, "mcp");
	info->login = sba_label_get(labels, "login");
	info->max_tokens = get_int(labels, "max-tokens");
	info->max_requests = get_int(labels, "max-requests");
	info->created = get_int(labels, "created");
	info->keepalive_ms = get_int(labels, "keepalive");
	info->max_lifetime_ms = get_int(labels, "max-lifetime");
	info->foreign_schema = get_int(labels, "schema") != SBA_LABEL_SCHEMA;
}
