/* SPDX-License-Identifier: MIT */
/*
 * Images published to real registries of this test's own, on loopback: one plain, one with
 * TLS and a password; and the whole pipeline of ci/, twice.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "archive/archive.h"
#include "http/http.h"
#include "support/json_doc.h"
#include "support/live.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define CERTS "/etc/docker/certs.d"
/* Its base64 has '+' and '/' in the usual alphabet. */
#define PASSWORD "abc>>>def???~~~"
#define HTPASSWD "me:$2y$05$abcdefghijklmnopqrstuud37FNrrCnGztchCOP7jP0pS72oP0m5q\n"
/* me:PASSWORD */
#define AUTH "bWU6YWJjPj4+ZGVmPz8/fn5+"

enum { SCRIPT_MS = 400 * 1000, PIPELINE_S = 800 };

static struct registry {
	pid_t pid;
	int port;
	char host[32];
} plain, locked_up;

/* ---- registries ---- */

static const char *program(void)
{
	return access("build/tools/usr/bin/docker-registry", X_OK) == 0
		       ? "build/tools/usr/bin/docker-registry"
		       : "docker-registry";
}

static int free_port(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(a);
	SBA_CLOSE int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, len), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	return ntohs(a.sin_port);
}

static bool listens(void *registry)
{
	const struct registry *r = registry;
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons((uint16_t)r->port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	SBA_CLOSE int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(waitpid(r->pid, NULL, WNOHANG), 0);
	return connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0;
}

/* It ends with us. */
static void start_registry(struct registry *r, const char *name, const char *more)
{
	char config[2048], file[64];
	r->port = free_port();
	snprintf(r->host, sizeof(r->host), "127.0.0.1:%d", r->port);
	snprintf(config, sizeof(config),
		 "version: 0.1\nlog: {level: error}\n"
		 "storage: {filesystem: {rootdirectory: %s/%s}}\n"
		 "http:\n  addr: %s\n%s",
		 live.dir, name, r->host, more);
	snprintf(file, sizeof(file), "%s.yml", name);
	const char *path = live_path(file);
	live_write_file(path, config, strlen(config), 0600);
	r->pid = fork();
	assert_true(r->pid >= 0);
	if (r->pid == 0) {
		int null = open("/dev/null", O_RDWR | O_CLOEXEC);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(null, 1);
		dup2(null, 2);
		execlp(program(), program(), "serve", path, (char *)NULL);
		_exit(127);
	}
	live_await(listens, r, 60000);
}

static void stop_registry(struct registry *r)
{
	if (r->pid <= 0)
		return;
	kill(r->pid, SIGKILL);
	waitpid(r->pid, NULL, 0);
	r->pid = 0;
}

static void run(const char *program_name, const char *const *argv)
{
	LIVE_CHILD c;
	live_start(&c, &(struct live_start){ .program = program_name, .argv = argv });
	live_child_end(&c, SCRIPT_MS);
	live_assert_says(&c, 0, NULL);
}

/* A CA of one certificate, where the engine and our program look for it. */
static void start_locked_up(void)
{
	char more[1024], dir[128], ca[160];
	const char *cert = live_path("cert.pem"), *key = live_path("key.pem");
	run("openssl",
	    (const char *const[]){ "req", "-x509", "-newkey", "ec", "-pkeyopt",
				   "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1", "-subj",
				   "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1",
				   "-keyout", key, "-out", cert, NULL });
	live_write_file(live_path("htpasswd"), HTPASSWD, strlen(HTPASSWD), 0600);
	snprintf(more, sizeof(more),
		 "  tls: {certificate: %s/cert.pem, key: %s/key.pem}\n"
		 "auth: {htpasswd: {realm: x, path: %s/htpasswd}}\n",
		 live.dir, live.dir, live.dir);
	start_registry(&locked_up, "locked", more);
	snprintf(dir, sizeof(dir), CERTS "/%s", locked_up.host);
	snprintf(ca, sizeof(ca), "%s/ca.crt", dir);
	(void)mkdir("/etc/docker", 0755);
	(void)mkdir(CERTS, 0755);
	assert_int_equal(mkdir(dir, 0755), 0);
	char *pem = live_read_file(cert, NULL);
	assert_non_null(pem);
	live_write_file(ca, pem, strlen(pem), 0644);
	free(pem);
}

static void stop_locked_up(void)
{
	char path[160];
	stop_registry(&locked_up);
	snprintf(path, sizeof(path), CERTS "/%s/ca.crt", locked_up.host);
	unlink(path);
	*strrchr(path, '/') = '\0';
	rmdir(path);
}

/* ---- images ---- */

static const char *date = "20260101";
static const char *named; /* by versions.json; NULL: the registry's repository */

static const char *repository_of(const struct registry *r)
{
	static char repository[128];
	snprintf(repository, sizeof(repository), "%s/%s/x", r->host, live.prefix);
	return repository;
}

/* "HOST/PREFIX/x:base-DATE", of one small file; `content` makes it another one. */
static void make_image(const struct registry *r, const char *content)
{
	char tag[32];
	struct sba_error err = { 0 };
	struct sba_pack *pack = NULL;
	const struct sba_pack_options options = { .fixed_mtime = 0 };
	snprintf(tag, sizeof(tag), "base-%s", date);
	assert_int_equal(sba_pack_new(&options, &pack, &err), 0);
	assert_int_equal(sba_pack_bytes(pack, "content", content, strlen(content), 0644, &err), 0);
	if (sba_image_import(live.engine, repository_of(r), tag, NULL, sba_pack_read, pack,
			     sba_until_in(60000), &err) < 0)
		fail_msg("%s", err.text);
	sba_pack_free(pack);
}

static const char *ref_of(const struct registry *r)
{
	static char ref[160];
	snprintf(ref, sizeof(ref), "%s:base-%s", repository_of(r), date);
	return ref;
}

/* It, and what was pulled by digest. */
static void drop_image(const struct registry *r)
{
	struct sba_error ignored;
	SBA_JSON json_t *list = NULL;
	if (!live.engine ||
	    sba_image_list(live.engine, repository_of(r), sba_until_in(30000), &list, &ignored) < 0)
		return;
	size_t i, n;
	json_t *image, *name;
	json_array_foreach(list, i, image)
	{
		json_array_foreach(json_object_get(image, "RepoTags"), n, name)(
			void) !sba_image_remove(live.engine, json_string_value(name),
						sba_until_in(30000), &ignored);
		json_array_foreach(json_object_get(image, "RepoDigests"), n, name)(
			void) !sba_image_remove(live.engine, json_string_value(name),
						sba_until_in(30000), &ignored);
	}
}

/* ---- the program, with a versions.json of the registry's ---- */

static void start_with(struct live_child *c, const struct registry *r, const char *script,
		       const char *const *argv)
{
	static char versions[128], docker[128], out[128], mine[512];
	char text[512];
	const char *path = live_path("versions.json");
	snprintf(text, sizeof(text),
		 "{\"docker_repository\":\"%s\",\"image_date\":\"%s\","
		 "\"base_image\":\"d:1\"}",
		 named ? named : repository_of(r), date);
	live_write_file(path, text, strlen(text), 0600);
	snprintf(versions, sizeof(versions), "SANDBOX_AGENT_VERSIONS=%s", path);
	snprintf(docker, sizeof(docker), "DOCKER_CONFIG=%s", live.dir);
	snprintf(out, sizeof(out), "OUT=%s/package", live.dir);
	ssize_t n = readlink("/proc/self/exe", mine, sizeof(mine) - 1);
	assert_true(n > 0);
	mine[n] = '\0';
	for (int up = 0; up < 3; up++)
		*strrchr(mine, '/') = '\0';
	static char variable[600];
	snprintf(variable, sizeof(variable), "PROGRAM=%s/sandbox-agent", mine);
	const char *const env[] = { versions, docker, out, variable, NULL };
	live_start(c, &(struct live_start){ .program = script, .argv = argv, .env = env });
	live_child_end(c, SCRIPT_MS);
}
#define PROGRAM(c, r, ...)      start_with(c, r, NULL, (const char *const[]){ __VA_ARGS__, NULL })
#define SCRIPT(c, r, name, ...) start_with(c, r, name, (const char *const[]){ __VA_ARGS__, NULL })

static void says(struct registry *r, int status, const char *words, const char *const *argv)
{
	LIVE_CHILD c;
	start_with(&c, r, NULL, argv);
	live_assert_says(&c, status, words);
}
#define SAYS(r, status, words, ...)                                                                \
	says(r, status, words, (const char *const[]){ __VA_ARGS__, NULL })

static char *lock_text(void)
{
	return live_read_file(live_path("versions.lock.json"), NULL);
}

static int clean(void **state)
{
	drop_image(&plain);
	drop_image(&locked_up);
	unlink(live_path("versions.lock.json"));
	unlink(live_path("config.json"));
	return live_test_begin(state);
}

/* ---- pushing and pulling ---- */

static void a_tag_is_pushed_once_unless_forced(void **state)
{
	(void)state;
	make_image(&plain, "once");
	SAYS(&plain, 1, "it is not there", "image", "lock", "base");
	SAYS(&plain, 0, "locked in", "image", "push");
	SAYS(&plain, 0, "is there as locked", "image", "verify");
	char *before = lock_text();
	assert_non_null(before);
	assert_non_null(strstr(before, ref_of(&plain)));
	make_image(&plain, "twice");
	SAYS(&plain, 1, "in the registry already", "image", "push");
	char *same = lock_text();
	assert_string_equal(same, before);
	SAYS(&plain, 0, "locked in", "image", "push", "--force");
	char *after = lock_text();
	assert_string_not_equal(after, before);
	free(before);
	free(same);
	free(after);
}

static void what_the_registry_has_is_compared_with_the_lock(void **state)
{
	(void)state;
	make_image(&plain, "one");
	SAYS(&plain, 0, NULL, "image", "push", "--force");
	char *before = lock_text();
	make_image(&plain, "another");
	SAYS(&plain, 0, NULL, "image", "push", "--force");
	live_write_file(live_path("versions.lock.json"), before, strlen(before), 0600);
	free(before);
	SAYS(&plain, 3, "is locked to", "image", "verify");
	SAYS(&plain, 0, NULL, "image", "lock");
	SAYS(&plain, 0, "is there as locked", "image", "verify");
}

static void a_password_is_needed_where_the_registry_wants_one(void **state)
{
	(void)state;
	char config[256];
	if (geteuid() != 0) {
		print_message("only root may put a CA beneath " CERTS "\n");
		skip();
	}
	make_image(&locked_up, "secret");
	SAYS(&locked_up, 3, "docker login", "image", "push");
	snprintf(config, sizeof(config), "{\"auths\":{\"%s\":{\"auth\":\"" AUTH "\"}}}",
		 locked_up.host);
	live_write_file(live_path("config.json"), config, strlen(config), 0600);
	SAYS(&locked_up, 0, "locked in", "image", "push");
	drop_image(&locked_up);
	SAYS(&locked_up, 0, "pulled", "image", "pull");
	drop_image(&locked_up);
	unlink(live_path("config.json"));
	SAYS(&locked_up, 3, "docker login", "image", "pull");
}

/* Line by line by that table, or what goes on and what came of it. */
static void prints(const char *table, const char *const *argv)
{
	size_t i;
	json_t *line;
	LIVE_CHILD c;
	start_with(&c, &plain, NULL, argv);
	live_assert_says(&c, 0, NULL);
	SBA_JSON json_t *lines = live_json_lines(&c);
	json_array_foreach(lines, i, line)
	{
		const char *type = sba_json_str(line, "type");
		bool ends = type && strcmp(type, "result") == 0;
		json_doc_check(table ? table : ends ? "done" : "progress", line);
	}
	assert_true(i > 0);
}
#define PRINTS_BY(table, ...)                                                                      \
	prints(table, (const char *const[]){ "--json", "image", __VA_ARGS__, NULL })

static void what_is_printed_as_json_is_what_the_document_says(void **state)
{
	(void)state;
	make_image(&plain, "json");
	PRINTS_BY(NULL, "push", "base", "--force");
	PRINTS_BY("done", "lock", "base");
	PRINTS_BY("done", "verify", "base");
	LIVE_CHILD save;
	PROGRAM(&save, &plain, "--json", "image", "save", "base", "-o", live_path("image.tar"));
	live_assert_says(&save, 0, NULL);
	assert_int_equal(save.out.len, 0);
	PRINTS_BY("image rm", "rm", "base");
	PRINTS_BY("image load", "load", "-i", live_path("image.tar"));
	drop_image(&plain);
	PRINTS_BY(NULL, "pull", "base");
}

/* ---- what is started ---- */

static void create_says(int status, const char *words, const char *option)
{
	LIVE_CHILD c;
	PROGRAM(&c, &plain, "--prefix", live.prefix, "create", "--network", "sealed", option);
	live_assert_says(&c, status, words);
	LIVE_CHILD rm;
	PROGRAM(&rm, &plain, "--prefix", live.prefix, "rm", "--all");
	live_assert_says(&rm, 0, NULL);
}

static void the_locked_image_is_started_however_it_came(void **state)
{
	(void)state;
	make_image(&plain, "locked");
	SAYS(&plain, 0, NULL, "image", "push", "--force");
	create_says(0, NULL, "--locked");
	SAYS(&plain, 0, NULL, "image", "save", "-o", live_path("image.tar"));
	/* Pulled, by its digest: the tag means another one by now. */
	char *lock = lock_text();
	make_image(&plain, "moved");
	SAYS(&plain, 0, NULL, "image", "push", "--force");
	live_write_file(live_path("versions.lock.json"), lock, strlen(lock), 0600);
	free(lock);
	drop_image(&plain);
	create_says(0, NULL, "--locked");
	/* Loaded: it has no digest of a repository. */
	drop_image(&plain);
	SAYS(&plain, 0, "loaded", "image", "load", "-i", live_path("image.tar"));
	create_says(0, NULL, "--locked");
}

static void another_image_under_the_locked_name_is_refused_unless_built_here(void **state)
{
	(void)state;
	make_image(&plain, "locked");
	SAYS(&plain, 0, NULL, "image", "push", "--force");
	make_image(&plain, "smuggled in");
	create_says(1, "is not the one that is locked", "--pull=missing");
	/* Built, it has the base as its parent. */
	const char *built = live_image("built", "LABEL a=b", "f", "x");
	struct sba_error err;
	assert_int_equal(
		sba_image_name(live.engine, built, ref_of(&plain), sba_until_in(30000), &err), 0);
	if (sba_engine_podman(live.engine))
		create_says(1, "Podman does not tell what was built on it", "--pull=missing");
	else
		create_says(0, "was built here", "--pull=missing");
	create_says(1, "is not the one that is locked", "--locked");
}

/* ---- where packages go: a server that keeps what is put there ---- */

static struct {
	pthread_mutex_t lock;
	struct sba_strv paths;
} packages = { .lock = PTHREAD_MUTEX_INITIALIZER };

static bool is_kept(const char *path)
{
	for (size_t i = 0; i < packages.paths.n; i++) {
		if (!strcmp(packages.paths.v[i], path))
			return true;
	}
	return false;
}

static void keep(void *user, const struct sba_http_request *r, struct sba_http_answer *a)
{
	(void)user;
	pthread_mutex_lock(&packages.lock);
	a->content_type = "text/plain";
	a->status = is_kept(r->path) ? 200 : 404;
	if (!strcmp(r->method, "PUT"))
		a->status = r->body_len && sba_strv_add(&packages.paths, r->path, NULL) == 0 ? 201
											     : 400;
	pthread_mutex_unlock(&packages.lock);
}

/* ---- the pipeline ---- */

/* Its images are where they were put, although the versions.json of here says nothing. */
static void assert_package_points_to(const char *repository)
{
	static const char script[] = "dpkg-deb --fsys-tarfile \"$0\"/package/*.deb |"
				     " tar -xO ./usr/share/sandbox-agent/versions.json >&2";
	LIVE_CHILD c;
	live_start(&c, &(struct live_start){
			       .program = "sh",
			       .argv = (const char *const[]){ "-c", script, live.dir, NULL } });
	live_child_end(&c, SCRIPT_MS);
	live_assert_says(&c, 0, repository);
}

static void the_pipeline_passes_once_then_refuses_then_is_forced(void **state)
{
	(void)state;
	char url[64], folder[64];
	struct sba_http_server *server = NULL;
	const struct sba_http_server_options so = { .handler = keep };
	alarm(PIPELINE_S); /* it makes packages */
	assert_int_equal(sba_http_server_open(&so, &server, NULL), 0);
	snprintf(url, sizeof(url), "http://127.0.0.1:%u/p", sba_http_server_port(server));
	snprintf(folder, sizeof(folder), "%s/packages", live.dir);
	date = "20260102";
	named = "of-no-registry";
	const char *to = repository_of(&plain);
	make_image(&plain, "released");
	/* The package does not come first. */
	LIVE_CHILD early;
	SCRIPT(&early, &plain, "ci/build-package", "--push", "--to", url, "--repository", to);
	live_assert_says(&early, 1, "images come first");
	for (int round = 0; round < 3; round++) {
		bool refused = round == 1;
		const char *force = round == 2 ? "--force" : NULL;
		LIVE_CHILD images, package;
		SCRIPT(&images, &plain, "ci/build-images", "--push", "--repository", to, force);
		live_assert_says(&images, refused ? 1 : 0, refused ? "already" : "locked in");
		SCRIPT(&package, &plain, "ci/build-package", "--push", "--repository", to, "--to",
		       round == 2 ? folder : url, force);
		live_assert_says(&package, refused ? 1 : 0, refused ? "is there already" : NULL);
		assert_int_equal(packages.paths.n, 3);
	}
	assert_true(sba_ends_with(packages.paths.v[2], "/SHA256SUMS"));
	assert_package_points_to(to);
	LIVE_CHILD again;
	SCRIPT(&again, &plain, "ci/build-package", "--push", "--repository", to, "--to", folder);
	live_assert_says(&again, 1, "is there already");
	named = NULL;
	/* An image that is not what the package would point to. */
	make_image(&plain, "moved");
	char *lock = lock_text();
	SAYS(&plain, 0, NULL, "image", "push", "--force");
	live_write_file(live_path("versions.lock.json"), lock, strlen(lock), 0600);
	free(lock);
	LIVE_CHILD late;
	SCRIPT(&late, &plain, "ci/build-package", "--push", "--force", "--to", url);
	live_assert_says(&late, 1, "nothing was put anywhere");
	assert_int_equal(packages.paths.n, 3);
	sba_http_server_close(server);
	sba_strv_fini(&packages.paths);
}

static int begin(void **state)
{
	int rc = live_begin(state);
	if (rc)
		return rc;
	alarm(120);
	start_registry(&plain, "plain", "");
	if (geteuid() == 0)
		start_locked_up();
	return 0;
}

static int end(void **state)
{
	drop_image(&plain);
	drop_image(&locked_up);
	stop_registry(&plain);
	stop_locked_up();
	return live_end(state);
}

#define PUBLISH_TEST(f) cmocka_unit_test_setup_teardown(f, clean, live_test_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		PUBLISH_TEST(a_tag_is_pushed_once_unless_forced),
		PUBLISH_TEST(what_the_registry_has_is_compared_with_the_lock),
		PUBLISH_TEST(a_password_is_needed_where_the_registry_wants_one),
		PUBLISH_TEST(what_is_printed_as_json_is_what_the_document_says),
		PUBLISH_TEST(the_locked_image_is_started_however_it_came),
		PUBLISH_TEST(another_image_under_the_locked_name_is_refused_unless_built_here),
		PUBLISH_TEST(the_pipeline_passes_once_then_refuses_then_is_forced),
	};
	return live_run(tests, begin, end);
}
