/* SPDX-License-Identifier: MIT */
/*
 * What of the engine's machine comes into a sandbox, and what never does; and an image
 * that says it is for another machine.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "archive/archive.h"
#include "image/image.h"
#include "support/live.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static const char *folder(const char *name)
{
	const char *path = live_path(name);
	assert_int_equal(mkdir(path, 0777), 0);
	assert_int_equal(chmod(path, 0777), 0);
	return path;
}

/* Whether a process has the same file as we by that name. */
static bool shares(pid_t pid, const char *path)
{
	char there[400];
	struct stat its, ours;
	snprintf(there, sizeof(there), "/proc/%d/root%s", (int)pid, path);
	assert_int_equal(stat(path, &ours), 0);
	return stat(there, &its) == 0 && its.st_dev == ours.st_dev && its.st_ino == ours.st_ino;
}

/* An engine in a tree of its own (ci/engines) has a socket here, and not all of our files;
 * one on another machine has none. */
static bool is_elsewhere(const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	struct ucred peer = { 0 };
	socklen_t size = sizeof(peer);
	const char *socket_path = sba_engine_socket(live.engine);
	if (!socket_path)
		return true;
	SBA_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	snprintf(a.sun_path, sizeof(a.sun_path), "%s", socket_path);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size), 0);
	return !shares(peer.pid, path);
}

static void skip_if_its_files_are_elsewhere(void)
{
	if (!is_elsewhere(live.dir))
		return;
	print_message("SKIPPED: the engine has other files than we\n");
	skip();
}

static void a_mounted_folder_is_here_and_there(void **state)
{
	(void)state;
	skip_if_its_files_are_elsewhere();
	char shared[256], both[300], only_read[300];
	snprintf(shared, sizeof(shared), "%s", folder("shared"));
	live_write_file(live_path("shared/here"), "here", 4, 0644);
	snprintf(both, sizeof(both), "%s:/data", shared);
	snprintf(only_read, sizeof(only_read), "%s/here:/opt/read/here:ro", shared);
	const char *const mounts[] = { both, only_read, NULL };
	struct sba_sandbox *child = NULL, *s = live_sandbox((struct sba_sandbox_options){
						  .mounts = mounts, .user = "1000:1000" });
	SBA_FREE char *said = live_sh_out(s, "cat /data/here; echo there >/data/there; "
					     "{ echo x >/opt/read/here; } 2>/dev/null || echo no");
	assert_string_equal(said, "hereno\n");
	SBA_FREE char *there = live_read_file(live_path("shared/there"), NULL);
	assert_string_equal(there, "there\n");
	assert_non_null(strstr(sba_sandbox_info(s)->mounts, only_read));
	/* A child has the same. */
	struct sba_error err = { 0 };
	if (sba_sandbox_fork(s, NULL, &child, NULL, &err) < 0)
		fail_msg("%s", err.text);
	SBA_FREE char *again = live_sh_out(child, "cat /data/there");
	assert_string_equal(again, "there\n");
	live_remove(child);
	live_remove(s);
}

/* Nothing is moved across mounts, so nothing at all is. */
static void a_tree_does_not_merge_into_what_is_mounted_below(void **state)
{
	(void)state;
	skip_if_its_files_are_elsewhere();
	char below[300];
	struct sba_error err = { 0 };
	snprintf(below, sizeof(below), "%s:/workspace/tree/data", folder("below"));
	const char *const mounts[] = { below, NULL };
	const struct sba_transfer_options contents = { .contents = true };
	struct sba_sandbox *s = live_sandbox((struct sba_sandbox_options){ .mounts = mounts });
	folder("tree");
	folder("tree/data");
	live_write_file(live_path("tree/a"), "a", 1, 0644);
	live_write_file(live_path("tree/data/b"), "b", 1, 0644);
	assert_int_equal(sba_sandbox_upload(s, live_path("tree"), "/workspace", NULL, NULL, &err),
			 SBA_EREFUSED);
	assert_non_null(strstr(err.text, "'data' in '/workspace/tree': it is mounted"));
	SBA_FREE char *said = live_sh_out(s, "ls -A /workspace/tree /workspace/tree/data");
	assert_string_equal(said, "/workspace/tree:\ndata\n\n/workspace/tree/data:\n");
	assert_int_equal(sba_sandbox_upload(s, live_path("tree/data"), "/workspace/tree/data",
					    &contents, NULL, &err),
			 0);
	SBA_FREE char *there = live_read_file(live_path("below/b"), NULL);
	assert_string_equal(there, "b");
	live_remove(s);
}

/* By root on the host, for whom the engine would write there as well. */
static void a_mount_that_may_not_be_written_is_told_with_a_remedy(void **state)
{
	(void)state;
	skip_if_its_files_are_elsewhere();
	static const struct {
		const char *path, *why, *remedy;
	} ways[] = {
		{ "/opt/ro/f", "Read-only file system", "':ro'" },
		{ "/opt/theirs/f", "is mounted, and the sandbox's user may not write", "mode" },
	};
	char read_only[300], theirs[300];
	struct sba_error err = { 0 };
	snprintf(read_only, sizeof(read_only), "%s:/opt/ro:ro", folder("ro"));
	snprintf(theirs, sizeof(theirs), "%s:/opt/theirs", folder("theirs"));
	assert_int_equal(chmod(live_path("theirs"), 0755), 0);
	const char *const mounts[] = { read_only, theirs, NULL };
	struct sba_sandbox *s = live_sandbox((struct sba_sandbox_options){
		.mounts = mounts, .user = "1000:1000", .network = "sealed" });
	live_write_file(live_path("lonely"), "x", 1, 0644);
	for (size_t i = 0; i < SBA_ARRAY_LEN(ways); i++) {
		int rc = sba_sandbox_upload(s, live_path("lonely"), ways[i].path, NULL, NULL, &err);
		if (rc != SBA_EREFUSED || !strstr(err.text, ways[i].why) ||
		    !strstr(err.hint, ways[i].remedy))
			fail_msg("%s: %d %s\n%s", ways[i].path, rc, err.text, err.hint);
	}
	assert_int_equal(access(live_path("theirs/f"), F_OK), -1);
	live_remove(s);
}

static int drop(void *user, const void *data, size_t len, struct sba_error *err)
{
	(void)user;
	(void)data;
	(void)len;
	(void)err;
	return 0;
}

static void make_locked(struct sba_sandbox *s)
{
	static const char *const argv[] = {
		"sh", "-c",
		"mkdir -m 700 /opt/locked && echo x >/opt/locked/f && echo x >/opt/alone && "
		"chmod 600 /opt/alone",
		NULL
	};
	LIVE_RESULT r;
	live_exec(s, &(struct sba_exec_options){ .argv = argv, .user = "0" }, &r);
	live_assert_exit(&r, 0);
}

/* Its user may not read it: an engine that sees nothing any more does not make it missing. */
static void assert_not_called_missing(struct sba_sandbox *s, const char *path, const char *mount)
{
	struct sba_error err = { 0 };
	int rc = sba_sandbox_read(s, path, 0, drop, NULL, &err);
	for (int i = 0; i < 2; i++) {
		if (rc == 0)
			return; /* some engines see it all the same */
		assert_int_equal(rc, SBA_EREFUSED);
		if (!strstr(err.text, "may not read") || !strstr(err.hint, mount))
			fail_msg("%s\n%s", err.text, err.hint);
		rc = sba_sandbox_download(s, path, live_path("locked"), NULL, NULL, &err);
	}
}

/* C-32: Docker finds nothing any more in such a container, and says "no such file". */
static void what_a_mount_led_to_may_go_and_copies_still_work(void **state)
{
	(void)state;
	skip_if_its_files_are_elsewhere();
	char mount[300];
	struct sba_error err = { 0 };
	live_write_file(live_path("led-to"), "x", 1, 0644);
	snprintf(mount, sizeof(mount), "%s:/opt/led-to", live_path("led-to"));
	const char *const mounts[] = { mount, NULL };
	struct sba_sandbox *s =
		live_sandbox((struct sba_sandbox_options){ .mounts = mounts, .user = "1000:1000" });
	make_locked(s);
	assert_int_equal(unlink(live_path("led-to")), 0);
	folder("goes");
	live_write_file(live_path("goes/f"), "content", 7, 0644);
	if (sba_sandbox_upload(s, live_path("goes"), "/tmp/came", NULL, NULL, &err) < 0 ||
	    sba_sandbox_download(s, "/tmp/came", live_path("came"), NULL, NULL, &err) < 0)
		fail_msg("%s", err.text);
	SBA_FREE char *here = live_read_file(live_path("came/f"), NULL);
	assert_string_equal(here, "content");
	assert_not_called_missing(s, "/opt/alone", mount);
	assert_not_called_missing(s, "/opt/locked/f", mount);
	/* Where only the engine gets, it is said what may be the matter. */
	if (sba_sandbox_upload(s, live_path("goes"), "/opt", NULL, NULL, &err) < 0) {
		assert_non_null(strstr(err.text, "the engine does not see '/opt'"));
		assert_non_null(strstr(err.hint, mount));
	}
	live_remove(s);
}

static void is_refused(const char *mount, int code, const char *words)
{
	const char *const mounts[] = { mount, NULL };
	const struct sba_sandbox_options o = { .prefix = live.prefix,
					       .image = live.image,
					       .mounts = mounts };
	struct sba_sandbox *s = NULL;
	struct sba_error err = { 0 };
	int rc = sba_sandbox_create(live.engine, &o, &s, &err);
	if (rc != code || !strstr(err.text, words))
		fail_msg("%s: %d %s", mount, rc, err.text);
	assert_null(s);
	assert_int_equal(live_container_count(), 0);
}

static void no_name_of_an_engines_socket_brings_it_in(void **state)
{
	(void)state;
	const char *const above[] = { "/:/x",    "/run:/x",  "/run/:/x:ro",
				      "/var:/x", "/proc:/x", "/proc/self/root/run:/x" };
	char mount[600];
	for (size_t i = 0; i < SBA_ARRAY_LEN(above); i++)
		is_refused(above[i], SBA_EREFUSED, "mount");
	const char *own = sba_engine_socket(live.engine);
	is_refused("/var/run/docker.sock:/x", SBA_EREFUSED, "socket");
	if (!own)
		return; /* its machine's links are its own */
	snprintf(mount, sizeof(mount), "%s:/run/any.sock", own);
	is_refused(mount, SBA_EREFUSED, "socket");
	/* By a link to it, and to what is above. */
	const char *link = live_path("link");
	assert_int_equal(symlink(own, link), 0);
	snprintf(mount, sizeof(mount), "%s:/x", link);
	is_refused(mount, SBA_EREFUSED, "socket");
	const char *up = live_path("up");
	assert_int_equal(symlink("/run", up), 0);
	snprintf(mount, sizeof(mount), "%s:/x", up);
	is_refused(mount, SBA_EREFUSED, "socket");
	/* One that nobody knows is asked. */
	struct live_proxy *p = live_proxy_start();
	snprintf(mount, sizeof(mount), "%s:/x", live_proxy_host(p) + strlen("unix://"));
	is_refused(mount, SBA_EREFUSED, "it is an engine's socket");
	live_proxy_stop(p);
}

static void another_socket_may_come_in(void **state)
{
	(void)state;
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	char mount[200];
	skip_if_its_files_are_elsewhere();
	SBA_CLOSE int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	snprintf(a.sun_path, sizeof(a.sun_path), "%s", live_path("any.sock"));
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	snprintf(mount, sizeof(mount), "%s:/any.sock", a.sun_path);
	const char *const mounts[] = { mount, NULL };
	struct sba_sandbox *s = live_sandbox((struct sba_sandbox_options){ .mounts = mounts });
	free(live_sh_out(s, "test -S /any.sock"));
	live_remove(s);
}

static void what_a_sandbox_needs_is_not_hidden(void **state)
{
	(void)state;
	static const char *const places[] = { "/",    "/.sandbox-agent", "/.sandbox-agent/guest",
					      "/etc", "/proc",           "/proc/self",
					      "/dev", "/sys/fs" };
	char mount[400];
	const char *from = folder("from");
	for (size_t i = 0; i < SBA_ARRAY_LEN(places); i++) {
		snprintf(mount, sizeof(mount), "%s:%s", from, places[i]);
		is_refused(mount, SBA_EREFUSED, places[i]);
	}
}

static void what_is_no_mount_is_told(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"x", ":/x", "/tmp:", "/tmp:x", "/tmp:/a/../b", "/tmp:/x:rx", "/tmp:/a//b"
	};
	for (size_t i = 0; i < SBA_ARRAY_LEN(bad); i++)
		is_refused(bad[i], SBA_EINVAL, "mount");
	LIVE_CHILD c;
	RUN(&c, "up", "claude", "--offline", "--image", live.image, "--mount",
	    "/var/run/docker.sock:/var/run/docker.sock");
	live_assert_says(&c, 1, "socket");
}

/* Podman would make a folder of it. */
static void what_is_not_there_is_refused_and_not_made(void **state)
{
	(void)state;
	struct sba_sandbox *s = NULL;
	struct sba_error err = { 0 };
	char mount[400], here[] = "/var/tmp/sbatest-XXXXXX";
	if (sba_engine_socket(live.engine))
		is_refused("/tmp/no-such-thing:/x", SBA_ENOTFOUND, "No such file");
	assert_non_null(mkdtemp(here));
	bool elsewhere = is_elsewhere(here);
	/* Twice: the first must not have made it. */
	for (int i = 0; elsewhere && i < 2; i++) {
		snprintf(mount, sizeof(mount), "%s:/x", here);
		const char *const mounts[] = { mount, NULL };
		const struct sba_sandbox_options o = { .prefix = live.prefix,
						       .image = live.image,
						       .mounts = mounts };
		assert_true(sba_sandbox_create(live.engine, &o, &s, &err) < 0);
		if (!strstr(err.text, here))
			fail_msg("%s", err.text);
		live_await_no_containers(10000);
	}
	rmdir(here);
}

/* ---- an image for another machine ---- */

static void read_all(struct sba_pack *p, struct sba_buf *ret)
{
	char piece[16384];
	ssize_t n;
	while ((n = sba_pack_read(p, piece, sizeof(piece), NULL)) > 0)
		sba_buf_put(ret, piece, (size_t)n);
	sba_pack_free(p);
	assert_int_equal(n, 0);
	assert_int_equal(sba_buf_check(ret, "tar", NULL), 0);
}

/* A program of this machine in an image that says arm64. */
static void load_image(const char *ref)
{
	const struct sba_pack_options plain = { .fixed_mtime = 0 };
	SBA_BUF struct sba_buf layer = SBA_BUF_INIT(16 * 1024 * 1024);
	char hash[SBA_SHA256_HEX];
	struct sba_guest program;
	struct sba_pack *p = NULL;
	assert_int_equal(sba_guest_find(NULL, &program, NULL), 0);
	assert_int_equal(sba_pack_new(&plain, &p, NULL), 0);
	assert_int_equal(sba_pack_bytes(p, "bin/program", program.data, program.len, 0755, NULL),
			 0);
	read_all(p, &layer);
	assert_int_equal(sba_sha256_hex(layer.data, layer.len, hash), 0);
	SBA_JSON json_t *config = json_pack("{s:s, s:s, s:{}, s:{s:s, s:[o]}}", "architecture",
					    "arm64", "os", "linux", "config", "rootfs", "type",
					    "layers", "diff_ids", json_sprintf("sha256:%s", hash));
	SBA_JSON json_t *manifest = json_pack("[{s:s, s:[s], s:[s]}]", "Config", "config.json",
					      "RepoTags", ref, "Layers", "layer.tar");
	SBA_FREE char *config_text = sba_json_dump(config), *text = sba_json_dump(manifest);
	assert_int_equal(sba_pack_new(&plain, &p, NULL), 0);
	assert_int_equal(
		sba_pack_bytes(p, "config.json", config_text, strlen(config_text), 0644, NULL), 0);
	assert_int_equal(sba_pack_bytes(p, "layer.tar", layer.data, layer.len, 0644, NULL), 0);
	assert_int_equal(sba_pack_bytes(p, "manifest.json", text, strlen(text), 0644, NULL), 0);
	struct sba_request r = { .method = "POST", .path = "/images/load", .tried = "load" };
	struct sba_body *body = NULL;
	struct sba_error err = { 0 };
	char answer[4096];
	struct sba_until until = sba_until_in(60000);
	if (sba_engine_stream(live.engine, &r, "application/x-tar", sba_pack_read, p, until, &body,
			      &err) < 0)
		fail_msg("%s", err.text);
	while (sba_body_read(body, answer, sizeof(answer), until, &err) > 0)
		;
	sba_body_close(body);
	sba_pack_free(p);
}

/* Commands of it go by an emulator where there is one; the guest never does. */
static void the_guest_is_for_the_engines_machine_not_for_the_images(void **state)
{
	(void)state;
	static const char *const argv[] = { "/bin/program", "version", NULL };
	char ref[64];
	LIVE_RESULT r;
	snprintf(ref, sizeof(ref), "%s-arm64:1", live.prefix);
	load_image(ref);
	SBA_JSON json_t *image = NULL;
	assert_int_equal(sba_image_inspect(live.engine, ref, sba_until_in(30000), &image, NULL), 0);
	assert_string_equal(sba_json_str(image, "Architecture"), "arm64");
	struct sba_sandbox *s = live_sandbox((struct sba_sandbox_options){ .image = ref });
	live_exec(s, &(struct sba_exec_options){ .argv = argv }, &r);
	live_assert_exit(&r, 0);
	assert_non_null(strstr(r.out.data, "guest "));
	live_remove(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE_TEST(a_mounted_folder_is_here_and_there),
		LIVE_TEST(a_tree_does_not_merge_into_what_is_mounted_below),
		LIVE_TEST(a_mount_that_may_not_be_written_is_told_with_a_remedy),
		LIVE_TEST(what_a_mount_led_to_may_go_and_copies_still_work),
		LIVE_TEST(no_name_of_an_engines_socket_brings_it_in),
		LIVE_TEST(another_socket_may_come_in),
		LIVE_TEST(what_a_sandbox_needs_is_not_hidden),
		LIVE_TEST(what_is_no_mount_is_told),
		LIVE_TEST(what_is_not_there_is_refused_and_not_made),
		LIVE_TEST(the_guest_is_for_the_engines_machine_not_for_the_images),
		LIVE_TEST(live_nothing_is_left),
	};
	return live_run(tests, live_begin, live_end);
}
