/* SPDX-License-Identifier: MIT */
/* What a sandbox is allowed: asked of the engine, and tried from inside. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/live.h"

#include <stdlib.h>
#include <string.h>

static bool list_holds(const json_t *list, const char *what)
{
	size_t i;
	json_t *one;
	json_array_foreach((json_t *)(uintptr_t)list, i, one)
	{
		if (strcmp(json_string_value(one), what) == 0)
			return true;
	}
	return false;
}

static void assert_hard(const json_t *inspect)
{
	const json_t *host = json_object_get(inspect, "HostConfig");
	assert_true(list_holds(json_object_get(host, "CapDrop"), "ALL"));
	assert_true(list_holds(json_object_get(host, "SecurityOpt"), "no-new-privileges"));
	assert_false(sba_json_bool(host, "Privileged", true));
	assert_true(sba_json_bool(host, "AutoRemove", false));
	assert_true(sba_json_int(host, "PidsLimit", 0) > 0);
	assert_true(sba_json_int(host, "Memory", 0) > 0);
	assert_int_equal(sba_json_int(host, "MemorySwap", -1), sba_json_int(host, "Memory", 0));
	assert_int_equal(json_array_size(json_object_get(host, "Binds")), 0);
	assert_string_equal(sba_json_str(host, "LogConfig.Type"), "none");
}

static void both_containers_are_hardened(void **state)
{
	(void)state;
	struct sba_sandbox *s = live_sandbox((struct sba_sandbox_options){
		.user = "1000:1000", .pids = 77, .memory = 200 * 1024 * 1024, .cpus = 0.5 });
	char sidecar[SBA_ID_MAX];
	live_sidecar_of(s, sidecar);
	SBA_JSON json_t *main = live_inspect(sba_sandbox_container(s));
	SBA_JSON json_t *side = live_inspect(sidecar);
	assert_hard(main);
	assert_hard(side);
	assert_int_equal(sba_json_int(main, "HostConfig.PidsLimit", 0), 77);
	assert_int_equal(sba_json_int(main, "HostConfig.Memory", 0), 200 * 1024 * 1024);
	assert_int_equal(sba_json_int(main, "HostConfig.NanoCpus", 0), 500000000);
	assert_int_equal(json_array_size(sba_json_get(main, "HostConfig.CapAdd")), 0);
	assert_true(sba_json_bool(side, "HostConfig.ReadonlyRootfs", false));
	SBA_FREE char *status = live_sh_out(
		s, "grep -E 'CapEff|NoNewPrivs' /proc/self/status | tr -d '\\t'; id -u");
	assert_string_equal(status, "CapEff:0000000000000000\nNoNewPrivs:1\n1000\n");
	live_remove(s);
}

static void our_images_run_as_a_user(void **state)
{
	(void)state;
	struct sba_images *images = NULL;
	struct sba_error err = { 0 };
	unsigned looked = 0;
	assert_int_equal(sba_images_open(NULL, NULL, &images, &err), 0);
	for (const char *const *n = sba_images_names(images); *n; n++) {
		SBA_JSON json_t *there = NULL;
		const char *ref = sba_images_ref(images, *n);
		if (sba_image_inspect(live.engine, ref, sba_until_in(30000), &there, NULL) < 0)
			continue;
		looked++;
		struct sba_sandbox *s = live_sandbox((struct sba_sandbox_options){ .image = ref });
		SBA_FREE char *said = live_sh_out(
			s, "id -u; touch /workspace/x && echo writes; test -w / || echo kept; "
			   "test -w \"$HOME\" && echo home");
		assert_string_equal(said, "1000\nwrites\nkept\nhome\n");
		live_remove(s);
	}
	sba_images_close(images);
	if (!looked) {
		print_message("SKIPPED our_images_run_as_a_user: none of them is here\n");
		skip();
	}
}

static void the_inside_can_do_nothing_to_its_keepers(void **state)
{
	(void)state;
	static const char *const users[] = { "1000:1000", "0:0" };
	for (size_t i = 0; i < SBA_ARRAY_LEN(users); i++) {
		struct sba_sandbox *s =
			live_sandbox((struct sba_sandbox_options){ .user = users[i] });
		LIVE_RESULT r;
		live_sh(s,
			"for n in 1 2 9 15 19; do kill -$n 1 2>/dev/null; done; "
			"echo x 2>/dev/null >/.sandbox-agent/guest; "
			"cat /proc/1/environ >/dev/null 2>&1 && echo read; "
			"rm -f /var/lib/sandbox-agent/state.json 2>/dev/null; echo alive",
			&r);
		live_assert_exit(&r, 0);
		assert_string_equal(r.out.data, "alive\n");
		SBA_FREE char *again = live_sh_out(s, "echo again");
		assert_string_equal(again, "again\n");
		live_remove(s);
	}
}

static void killing_all_that_one_may_does_not_prolong_or_break_it(void **state)
{
	(void)state;
	struct sba_sandbox *s = live_sandbox(
		(struct sba_sandbox_options){ .user = "1000:1000", .keepalive_ms = 2000 });
	LIVE_RESULT r;
	const char *const argv[] = { "sh", "-c", "kill -9 -1; kill -STOP -1; true", NULL };
	live_exec(s, &(struct sba_exec_options){ .argv = argv, .signal_others = true }, &r);
	/* Its own supervisor is among what it may kill: that breaks its command. */
	if (r.rc < 0)
		assert_true(r.rc == SBA_EBROKEN || r.rc == SBA_ELOST);
	live_await_no_containers(30000);
	sba_sandbox_close(s);
}

static void the_engines_socket_and_the_hosts_files_are_not_inside(void **state)
{
	(void)state;
	struct sba_sandbox *s = live_sandbox((struct sba_sandbox_options){ 0 });
	SBA_FREE char *said =
		live_sh_out(s, "ls /var/run/docker.sock /run/docker.sock 2>/dev/null; "
			       "mount -t tmpfs x /mnt 2>/dev/null && echo mounted; "
			       "unshare -m true 2>/dev/null && echo unshared; "
			       "test -e /dev/mem && echo mem; echo end");
	assert_string_equal(said, "end\n");
	live_remove(s);
}

static void orphans_are_buried(void **state)
{
	(void)state;
	struct sba_sandbox *s = live_sandbox((struct sba_sandbox_options){ 0 });
	SBA_FREE char *said = live_sh_out(
		s, "i=0; while [ $i -lt 100 ]; do (true & true) & i=$((i+1)); done; wait; i=0; "
		   "while grep -qs '^State:.*Z' /proc/[0-9]*/status && [ $i -lt 100 ]; do "
		   "sleep 0.05; i=$((i+1)); done; "
		   "grep -l '^State:.*Z' /proc/[0-9]*/status 2>/dev/null | wc -l");
	assert_string_equal(said, "0\n");
	live_remove(s);
}

/* ---- certificates ---- */

#define MARKER_CA                                                                                  \
	"-----BEGIN CERTIFICATE-----\n"                                                            \
	"c2JhLW1hcmtlci1jZXJ0aWZpY2F0ZS0wMTIzNDU2Nzg5\n"                                           \
	"-----END CERTIFICATE-----\n"

static void a_ca_file_is_readable_inside_and_named_to_programs(void **state)
{
	(void)state;
	live_write_file(live_path("ca.pem"), MARKER_CA, strlen(MARKER_CA), 0600);
	struct sba_sandbox *s = live_sandbox((struct sba_sandbox_options){
		.user = "1000:1000", .ca_file = live_path("ca.pem") });
	SBA_FREE char *said = live_sh_out(
		s, "for v in SSL_CERT_FILE CURL_CA_BUNDLE REQUESTS_CA_BUNDLE NODE_EXTRA_CA_CERTS "
		   "GIT_SSL_CAINFO PIP_CERT; do eval cat \\$$v | grep -c c2JhLW1hcmtlci || echo no "
		   "$v; "
		   "done; cat $SSL_CERT_FILE");
	assert_null(strstr(said, "no "));
	assert_non_null(strstr(said, "c2JhLW1hcmtlci1jZXJ0aWZpY2F0ZS0wMTIzNDU2Nzg5"));
	live_remove(s);
}

/* Whether the bytes of GET /images/REF/get hold the text. */
static bool image_holds(const char *ref, const char *text)
{
	char path[256];
	struct sba_error err = { 0 };
	struct sba_body *body = NULL;
	struct sba_until until = sba_until_in(100 * 1000);
	size_t keep = strlen(text) - 1, have = 0;
	bool found = false;
	enum { PIECE = 1024 * 1024 };
	char *window = malloc(PIECE + 256);
	assert_non_null(window);
	snprintf(path, sizeof(path), "/images/%s/get", ref);
	struct sba_request request = { .method = "GET", .path = path, .tried = "save" };
	if (sba_engine_stream(live.engine, &request, NULL, NULL, NULL, until, &body, &err) < 0)
		fail_msg("%s", err.text);
	for (;;) {
		ssize_t n = sba_body_read(body, window + have, PIECE, until, &err);
		if (n < 0)
			fail_msg("%s", err.text);
		if (n == 0)
			break;
		have += (size_t)n;
		found = found || memmem(window, have, text, strlen(text));
		size_t tail = have < keep ? have : keep;
		memmove(window, window + have - tail, tail);
		have = tail;
	}
	sba_body_close(body);
	free(window);
	return found;
}

/* What a build with --ca-file does in the library's own base recipe; a small
 * recipe first shows that the search finds what is there. */
static void a_ca_file_of_a_build_leaves_no_trace_in_the_image(void **state)
{
	(void)state;
	char json[512], ca_path[256];
	const char *with = live_image("marked", "COPY ca.crt /ca.crt", "ca.crt", MARKER_CA);
	assert_true(image_holds(with, "c2JhLW1hcmtlci1jZXJ0aWZpY2F0ZS0wMTIzNDU2Nzg5"));

	struct sba_images *images = NULL;
	struct sba_error err = { 0 };
	snprintf(json, sizeof(json),
		 "{\"docker_repository\":\"%s-ca\",\"image_date\":\"20260101\",\"base_image\":\"%"
		 "s\","
		 "\"claude_version\":\"0\",\"opencode_version\":\"0\"}",
		 live.prefix, live.image);
	assert_int_equal(sba_images_open(json, "test", &images, &err), 0);
	/* The builder's own certificates must still do: the marker is beside them. */
	SBA_FREE char *system = live_read_file("/etc/ssl/certs/ca-certificates.crt", NULL);
	SBA_FREE char *bundle = NULL;
	const char *own = getenv("SANDBOX_AGENT_TEST_CA_FILE");
	SBA_FREE char *extra = own && *own ? live_read_file(own, NULL) : NULL;
	assert_true(asprintf(&bundle, "%s%s%s", extra ? extra : "", system ? system : "",
			     MARKER_CA) > 0);
	snprintf(ca_path, sizeof(ca_path), "%s", live_path("build-ca.pem"));
	live_write_file(ca_path, bundle, strlen(bundle), 0600);
	struct sba_image_options o = { .ca_file = ca_path };
	int rc = sba_image_make(live.engine, images, "base", &o, &err);
	if (rc < 0) {
		print_message("SKIPPED a_ca_file_of_a_build_leaves_no_trace_in_the_image: the base "
			      "cannot be built here: %.200s\n%.300s\n",
			      err.text, err.hint);
		sba_images_close(images);
		free(system);
		free(bundle);
		free(extra);
		skip();
	}
	assert_false(image_holds(sba_images_ref(images, "base"),
				 "c2JhLW1hcmtlci1jZXJ0aWZpY2F0ZS0wMTIzNDU2Nzg5"));
	sba_images_close(images);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE_TEST(both_containers_are_hardened),
		LIVE_TEST(our_images_run_as_a_user),
		LIVE_TEST(the_inside_can_do_nothing_to_its_keepers),
		LIVE_TEST(killing_all_that_one_may_does_not_prolong_or_break_it),
		LIVE_TEST(the_engines_socket_and_the_hosts_files_are_not_inside),
		LIVE_TEST(orphans_are_buried),
		LIVE_TEST(a_ca_file_is_readable_inside_and_named_to_programs),
		LIVE_TEST(a_ca_file_of_a_build_leaves_no_trace_in_the_image),
		LIVE_TEST(live_nothing_is_left),
	};
	return live_run(tests, live_begin, live_end);
}
