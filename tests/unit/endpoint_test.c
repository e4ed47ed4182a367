/* SPDX-License-Identifier: MIT */
/* Where the docker CLI would find the engine, rule by rule. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/base.h"
#include "engine/engine.h"
#include "support/folder.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* An environment: "NAME=value" strings, and a home in a temporary folder. */
struct world {
	char home[64];
	const char *env[8];
};

static const char *world_env(void *user, const char *name)
{
	const struct world *w = user;
	size_t len = strlen(name);
	if (strcmp(name, "HOME") == 0)
		return w->home;
	for (size_t i = 0; i < SBA_ARRAY_LEN(w->env) && w->env[i]; i++) {
		if (strncmp(w->env[i], name, len) == 0 && w->env[i][len] == '=')
			return w->env[i] + len + 1;
	}
	return NULL;
}

static int make_world(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	alarm(10);
	*state = w;
	test_folder(w->home, sizeof(w->home), "endpoint");
	return 0;
}

static int drop_world(void **state)
{
	struct world *w = *state;
	test_folder_remove(w->home);
	free(w);
	return 0;
}

/* A file below the home, with the folders that lead to it. */
static void put_file(const struct world *w, const char *name, const char *text)
{
	char path[512];
	struct sba_error err;
	snprintf(path, sizeof(path), "%s/%s", w->home, name);
	for (char *p = path + strlen(w->home) + 1; (p = strchr(p, '/')) != NULL; p++) {
		*p = '\0';
		mkdir(path, 0700);
		*p = '/';
	}
	SBA_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(sba_write_all(fd, text, strlen(text), &err), 0);
}

static void context_file(const char *kind, const char *name, const char *file, char *ret,
			 size_t size)
{
	char hash[SBA_SHA256_HEX];
	assert_int_equal(sba_sha256_hex(name, strlen(name), hash), 0);
	snprintf(ret, size, ".docker/contexts/%s/%s/%s", kind, hash, file);
}

static void put_context(const struct world *w, const char *name, const char *endpoint)
{
	char path[256], text[512];
	context_file("meta", name, "meta.json", path, sizeof(path));
	snprintf(text, sizeof(text), "{\"Name\":\"%s\",\"Endpoints\":{\"docker\":%s}}", name,
		 endpoint);
	put_file(w, path, text);
}

static void expect(struct world *w, const char *host, const char *found, const char *by)
{
	struct sba_endpoint ep;
	struct sba_error err = { 0 };
	int rc = sba_endpoint_find(host, world_env, w, &ep, &err);
	assert_string_equal(err.text, "");
	assert_int_equal(rc, 0);
	assert_string_equal(ep.host, found);
	assert_string_equal(ep.found_by, by);
}

static void refuse(struct world *w, const char *host, int code, const char *words)
{
	struct sba_endpoint ep = { .host = "untouched" };
	struct sba_error err;
	assert_int_equal(sba_endpoint_find(host, world_env, w, &ep, &err), code);
	if (!strstr(err.text, words) && !strstr(err.hint, words))
		fail_msg("'%s' (%s) does not say '%s'", err.text, err.hint, words);
	assert_string_equal(ep.host, "untouched");
}

static void the_default_is_the_default_socket(void **state)
{
	struct world *w = *state;
	expect(w, NULL, "unix:///var/run/docker.sock", "default socket");
	w->env[0] = "DOCKER_HOST=";
	w->env[1] = "DOCKER_CONTEXT=";
	expect(w, "", "unix:///var/run/docker.sock", "default socket");
}

static void the_nearest_to_the_user_wins(void **state)
{
	struct world *w = *state;
	put_context(w, "desk", "{\"Host\":\"unix:///desk.sock\"}");
	put_context(w, "lab", "{\"Host\":\"tcp://lab:2376\"}");
	put_file(w, ".docker/config.json", "{\"currentContext\":\"desk\"}");
	expect(w, NULL, "unix:///desk.sock", "context desk");
	w->env[0] = "DOCKER_CONTEXT=lab";
	expect(w, NULL, "tcp://lab:2376", "context lab");
	w->env[0] = "DOCKER_CONTEXT=default";
	expect(w, NULL, "unix:///var/run/docker.sock", "default socket");
	w->env[1] = "DOCKER_HOST=unix:///env.sock";
	expect(w, NULL, "unix:///env.sock", "DOCKER_HOST");
	expect(w, "unix:///opt.sock", "unix:///opt.sock", "-H");
}

/* C-40. */
static void a_missing_context_is_never_replaced_by_a_default(void **state)
{
	struct world *w = *state;
	put_file(w, ".docker/config.json", "{\"currentContext\":\"gone\"}");
	refuse(w, NULL, SBA_EINVAL, "context 'gone' does not exist");
	w->env[0] = "DOCKER_CONTEXT=../../x";
	refuse(w, NULL, SBA_EINVAL, "does not exist");
}

static void a_broken_configuration_is_passed_over(void **state)
{
	struct world *w = *state;
	put_file(w, ".docker/config.json", "{\"currentContext\":");
	expect(w, NULL, "unix:///var/run/docker.sock", "default socket");
	put_file(w, ".docker/config.json", "[1]");
	expect(w, NULL, "unix:///var/run/docker.sock", "default socket");
}

static void docker_config_moves_the_configuration(void **state)
{
	struct world *w = *state;
	char dir[128];
	put_file(w, "other/config.json", "{\"currentContext\":\"gone\"}");
	snprintf(dir, sizeof(dir), "DOCKER_CONFIG=%s/other", w->home);
	w->env[0] = dir;
	refuse(w, NULL, SBA_EINVAL, "gone");
}

static void hosts_take_every_form_of_the_cli(void **state)
{
	struct world *w = *state;
	expect(w, "unix://", "unix:///var/run/docker.sock", "-H");
	expect(w, "tcp://h", "tcp://h:2375", "-H");
	expect(w, "tcp://h:99/", "tcp://h:99", "-H");
	expect(w, "tcp://[::1]:99", "tcp://[::1]:99", "-H");
	expect(w, "tcp://[::1]", "tcp://[::1]:2375", "-H");
	expect(w, "ssh://h", "ssh://h", "-H");
	expect(w, "ssh://h/", "ssh://h", "-H");
	expect(w, "ssh://me@h:22/run/d.sock", "ssh://me@h:22/run/d.sock", "-H");
	expect(w, "ssh://me@[::1]:22", "ssh://me@[::1]:22", "-H");
}

static void hosts_that_cannot_be_meant_are_explained(void **state)
{
	struct world *w = *state;
	char lng[160];
	refuse(w, "unix://var/run/x", SBA_EINVAL, "write unix:///var/run/x");
	refuse(w, "/var/run/x", SBA_EINVAL, "write unix:///var/run/x");
	refuse(w, "junk", SBA_EINVAL, "write tcp://junk");
	refuse(w, "http://h:1", SBA_EINVAL, "write tcp://h:1");
	refuse(w, "ssh://", SBA_EINVAL, "ssh://[USER@]HOST[:PORT][/PATH]");
	refuse(w, "ssh://-oProxyCommand=x", SBA_EINVAL, "malformed");
	refuse(w, "ssh://-oProxyCommand=x@h", SBA_EINVAL, "malformed");
	refuse(w, "ssh://me:secret@h", SBA_EINVAL, "malformed");
	refuse(w, "ssh://@h", SBA_EINVAL, "malformed");
	refuse(w, "ssh://h:0", SBA_EINVAL, "malformed");
	refuse(w, "ssh://h:x", SBA_EINVAL, "malformed");
	refuse(w, "ssh://h/run/$(reboot)", SBA_EINVAL, "malformed");
	refuse(w, "ssh://h/run/a b", SBA_EINVAL, "malformed");
	refuse(w, "ssh://h?x", SBA_EINVAL, "malformed");
	refuse(w, "fd://3", SBA_EUNSUPPORTED, "only unix://, tcp:// and ssh://");
	refuse(w, "tcp://", SBA_EINVAL, "tcp://HOST[:PORT]");
	refuse(w, "tcp://h:0", SBA_EINVAL, "malformed");
	refuse(w, "tcp://h:99999", SBA_EINVAL, "malformed");
	refuse(w, "tcp://h:", SBA_EINVAL, "malformed");
	refuse(w, "tcp://h/path", SBA_EINVAL, "malformed");
	refuse(w, "tcp://[::1", SBA_EINVAL, "malformed");
	refuse(w, "tcp://[[]", SBA_EINVAL, "malformed");
	refuse(w, "tcp://me@h", SBA_EINVAL, "malformed");
	refuse(w, "tcp://h\r\nX: y", SBA_EINVAL, "malformed");
	snprintf(lng, sizeof(lng), "unix:///%0107d", 1);
	refuse(w, lng, SBA_EINVAL, "at most 107 bytes, this one has 108");
	w->env[0] = "DOCKER_HOST=junk";
	refuse(w, NULL, SBA_EINVAL, "DOCKER_HOST: ");
}

static void a_path_of_107_bytes_still_fits(void **state)
{
	char host[160];
	snprintf(host, sizeof(host), "unix:///%0106d", 1);
	expect(*state, host, host, "-H");
}

static struct sba_endpoint find(struct world *w)
{
	struct sba_endpoint ep;
	struct sba_error err = { 0 };
	assert_int_equal(sba_endpoint_find(NULL, world_env, w, &ep, &err), 0);
	return ep;
}

static void tls_by_the_environment(void **state)
{
	struct world *w = *state;
	w->env[0] = "DOCKER_HOST=tcp://h:2376";
	w->env[1] = "DOCKER_CERT_PATH=/nonexistent";
	assert_false(find(w).tls);
	w->env[1] = "DOCKER_TLS_VERIFY=0"; /* any value means yes */
	refuse(w, NULL, SBA_EINVAL, "ca.pem");
	put_file(w, ".docker/ca.pem", "");
	put_file(w, ".docker/key.pem", "");
	struct sba_endpoint ep = find(w);
	assert_true(ep.tls && ep.tls_verify);
	assert_true(sba_ends_with(ep.ca, "/.docker/ca.pem"));
	assert_true(sba_ends_with(ep.key, "/.docker/key.pem"));
	assert_string_equal(ep.cert, "");
}

static void tls_by_the_context(void **state)
{
	struct world *w = *state;
	char path[256];
	w->env[0] = "DOCKER_CONTEXT=lab";
	put_context(w, "lab", "{\"Host\":\"tcp://lab:2376\"}");
	assert_false(find(w).tls);
	put_context(w, "lab", "{\"Host\":\"tcp://lab:2376\",\"SkipTLSVerify\":true}");
	assert_true(find(w).tls);
	assert_false(find(w).tls_verify);
	put_context(w, "lab", "{\"Host\":\"tcp://lab:2376\",\"SkipTLSVerify\":false}");
	context_file("tls", "lab", "docker/ca.pem", path, sizeof(path));
	put_file(w, path, "");
	assert_true(find(w).tls && find(w).tls_verify);
	assert_true(sba_ends_with(find(w).ca, "docker/ca.pem"));
}

static void a_pinned_version_must_be_one(void **state)
{
	struct world *w = *state;
	w->env[0] = "DOCKER_API_VERSION=v1.41";
	assert_string_equal(find(w).api_version, "1.41");
	static const char *const bad[] = { "DOCKER_API_VERSION=1", "DOCKER_API_VERSION=1.",
					   "DOCKER_API_VERSION=1.41/x",
					   "DOCKER_API_VERSION=1.99999" };
	for (size_t i = 0; i < SBA_ARRAY_LEN(bad); i++) {
		w->env[0] = bad[i];
		refuse(w, NULL, SBA_EINVAL, "DOCKER_API_VERSION");
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_world, drop_world)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_default_is_the_default_socket),
		TEST(the_nearest_to_the_user_wins),
		TEST(a_missing_context_is_never_replaced_by_a_default),
		TEST(a_broken_configuration_is_passed_over),
		TEST(docker_config_moves_the_configuration),
		TEST(hosts_take_every_form_of_the_cli),
		TEST(hosts_that_cannot_be_meant_are_explained),
		TEST(a_path_of_107_bytes_still_fits),
		TEST(tls_by_the_environment),
		TEST(tls_by_the_context),
		TEST(a_pinned_version_must_be_one),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
