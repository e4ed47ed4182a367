/* SPDX-License-Identifier: MIT */
/*
 * What a registry may answer: whom it wants to see and how, its refusals in words that say
 * what to do, and documents that are not what they are called.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "http/http.h"
#include "registry/registry.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MANIFEST_TYPE "application/vnd.docker.distribution.manifest.v2+json"

/* A registry that plays one part. */
static struct world {
	struct sba_http_server *server;
	char host[32];
	const char *wants; /* WWW-Authenticate of a 401, until the header below comes */
	char unlocks[256]; /* the Authorization that opens it */
	int status;        /* of everything else; 0: 200 */
	const char *words; /* body of a refusal */
	char manifest[1024], config[256], config_digest[SBA_DIGEST_MAX];
	char digest[SBA_DIGEST_MAX];
	bool moved;      /* configs are elsewhere */
	bool lies;       /* and not what they are called */
	unsigned tokens; /* asked for */
	char token_query[512], token_body[512], token_auth[256];
	bool secret_strayed; /* an Authorization came where none belongs */
} world;

static void digest_of(const char *text, char ret[SBA_DIGEST_MAX])
{
	char hash[SBA_SHA256_HEX];
	assert_int_equal(sba_sha256_hex(text, strlen(text), hash), 0);
	snprintf(ret, SBA_DIGEST_MAX, "sha256:%s", hash);
}

static void say(struct sba_http_answer *a, int status, const char *type, const char *body)
{
	a->status = status;
	a->content_type = type;
	sba_buf_init(&a->body, 1 << 20);
	sba_buf_puts(&a->body, body);
}

static void give_token(const struct sba_http_request *r, struct sba_http_answer *a)
{
	const char *auth = sba_http_request_header(r, "Authorization");
	world.tokens++;
	snprintf(world.token_query, sizeof(world.token_query), "%s", r->target);
	snprintf(world.token_body, sizeof(world.token_body), "%.*s", (int)r->body_len, r->body);
	snprintf(world.token_auth, sizeof(world.token_auth), "%s", auth ? auth : "");
	say(a, 200, "application/json", "{\"token\":\"t0ken\"}");
}

static void give_config(const struct sba_http_request *r, struct sba_http_answer *a)
{
	bool elsewhere = sba_starts_with(r->path, "/elsewhere");
	if (elsewhere && sba_http_request_header(r, "Authorization"))
		world.secret_strayed = true;
	if (world.moved && !elsewhere) {
		say(a, 307, "text/plain", "");
		assert_int_equal(sba_strv_add(&a->headers, "Location: /elsewhere", NULL), 0);
		return;
	}
	say(a, 200, "application/json", world.lies ? "{\"os\":\"x\"}" : world.config);
}

static void handle(void *user, const struct sba_http_request *r, struct sba_http_answer *a)
{
	(void)user;
	const char *auth = sba_http_request_header(r, "Authorization");
	if (strcmp(r->path, "/token") == 0) {
		give_token(r, a);
	} else if (world.wants && strcmp(auth ? auth : "", world.unlocks) != 0 &&
		   !sba_starts_with(r->path, "/elsewhere")) {
		char header[600];
		say(a, 401, "application/json", "{\"errors\":[{\"message\":\"who\\u001b[2J?\"}]}");
		snprintf(header, sizeof(header), "WWW-Authenticate: %s", world.wants);
		assert_int_equal(sba_strv_add(&a->headers, header, NULL), 0);
	} else if (world.status) {
		say(a, world.status, "application/json", world.words ? world.words : "");
	} else if (strstr(r->path, "/manifests/")) {
		say(a, 200, MANIFEST_TYPE, world.manifest);
	} else {
		give_config(r, a);
	}
}

static int begin(void **state)
{
	(void)state;
	alarm(110);
	memset(&world, 0, sizeof(world));
	snprintf(world.config, sizeof(world.config),
		 "{\"os\":\"linux\",\"architecture\":\"amd64\"}");
	digest_of(world.config, world.config_digest);
	snprintf(world.manifest, sizeof(world.manifest), "{\"config\":{\"digest\":\"%s\"}}",
		 world.config_digest);
	digest_of(world.manifest, world.digest);
	const struct sba_http_server_options o = { .handler = handle };
	assert_int_equal(sba_http_server_open(&o, &world.server, NULL), 0);
	snprintf(world.host, sizeof(world.host), "127.0.0.1:%u",
		 sba_http_server_port(world.server));
	return 0;
}

static int end(void **state)
{
	(void)state;
	sba_http_server_close(world.server);
	return 0;
}

static int look_as(const struct sba_credentials *who, struct sba_remote_image *ret,
		   struct sba_error *err)
{
	struct sba_registry *r = NULL;
	struct sba_reference ref;
	char name[128];
	const struct sba_registry_options o = { .credentials = who, .certs_dir = "/nowhere" };
	snprintf(name, sizeof(name), "%s/team/x:1", world.host);
	assert_int_equal(sba_reference_parse(name, &ref, NULL), 0);
	assert_int_equal(sba_registry_open(world.host, &o, &r, err), 0);
	int rc = sba_registry_look(r, &ref, sba_until_in(100000), ret, err);
	sba_registry_close(r);
	return rc;
}

static void assert_fails(const struct sba_credentials *who, int code, const char *words,
			 const char *hint)
{
	struct sba_error err = { 0 };
	struct sba_remote_image image = { 0 };
	assert_int_equal(look_as(who, &image, &err), code);
	assert_int_equal(image.n, 0);
	if (!strstr(err.text, words) || !strstr(err.hint, hint))
		fail_msg("'%s' does not say '%s', or '%s' not '%s'", err.text, words, err.hint,
			 hint);
	assert_null(strchr(err.text, '\033'));
}

static void assert_found(const struct sba_credentials *who)
{
	struct sba_error err = { 0 };
	struct sba_remote_image image;
	if (look_as(who, &image, &err) < 0)
		fail_msg("%s", err.text);
	assert_string_equal(image.digest, world.digest);
	assert_int_equal(image.n, 1);
	assert_string_equal(image.v[0].name, "linux/amd64");
	assert_string_equal(image.v[0].manifest, world.digest);
	assert_string_equal(image.v[0].config, world.config_digest);
}

static void a_tag_is_its_digests(void **state)
{
	(void)state;
	assert_found(NULL);
}

/* Whatever is asked for, the same document comes: by digest that is noticed. */
static void a_manifest_of_an_index_must_have_its_digest(void **state)
{
	(void)state;
	snprintf(world.manifest, sizeof(world.manifest),
		 "{\"manifests\":[{\"digest\":\"sha256:0\",\"platform\":{\"os\":\"unknown\"}},"
		 "{\"digest\":\"%s\",\"platform\":{\"os\":\"linux\",\"architecture\":\"arm64\"}}]}",
		 world.digest);
	assert_fails(NULL, SBA_EPROTO, world.digest, "");
}

static void basic_credentials_are_shown_when_they_are_wanted(void **state)
{
	(void)state;
	struct sba_credentials me = { .user = "me", .password = "abc>>>def???~~~" };
	world.wants = "Basic realm=\"x\"";
	snprintf(world.unlocks, sizeof(world.unlocks), "Basic bWU6YWJjPj4+ZGVmPz8/fn5+");
	assert_found(&me);
	assert_fails(NULL, SBA_EIMAGE, "401 ('who\\x1b[2J?')", "docker login 127.0.0.1");
	me.password = "wrong";
	assert_fails(&me, SBA_EIMAGE, "401", "docker login");
}

static void a_token_is_fetched_where_the_challenge_says(void **state)
{
	(void)state;
	char wants[256];
	struct sba_credentials me = { .user = "me", .password = "p" };
	snprintf(wants, sizeof(wants), "Bearer realm=\"http://%s/token\",service=\"a b\"",
		 world.host);
	world.wants = wants;
	snprintf(world.unlocks, sizeof(world.unlocks), "Bearer t0ken");
	world.moved = true;
	assert_found(&me);
	assert_int_equal(world.tokens, 1);
	assert_non_null(strstr(world.token_query, "service=a%20b"));
	assert_non_null(strstr(world.token_query, "scope=repository%3Ateam%2Fx%3Apull"));
	assert_string_equal(world.token_auth, "Basic bWU6cA==");
	assert_found(NULL);
	assert_string_equal(world.token_auth, "");
	assert_false(world.secret_strayed);
}

static void an_identity_token_is_exchanged_in_a_body(void **state)
{
	(void)state;
	char wants[256];
	struct sba_credentials me = { .identity_token = "i d" };
	snprintf(wants, sizeof(wants), "Bearer realm=\"http://%s/token\"", world.host);
	world.wants = wants;
	snprintf(world.unlocks, sizeof(world.unlocks), "Bearer t0ken");
	assert_found(&me);
	assert_non_null(strstr(world.token_body, "refresh_token=i%20d"));
	assert_string_equal(world.token_query, "/token");
	me = (struct sba_credentials){ .registry_token = "t0ken" };
	world.tokens = 0;
	assert_found(&me);
	assert_int_equal(world.tokens, 0);
}

static void credentials_go_to_no_place_but_a_safe_one(void **state)
{
	(void)state;
	struct sba_credentials me = { .user = "me", .password = "p" };
	snprintf(world.unlocks, sizeof(world.unlocks), "Bearer t0ken");
	static const char *const realms[] = { "file:///etc/passwd", "ftp://x/", "", "//x/token" };
	for (size_t i = 0; i < SBA_ARRAY_LEN(realms); i++) {
		char wants[256];
		snprintf(wants, sizeof(wants), "Bearer realm=\"%s\"", realms[i]);
		world.wants = wants;
		assert_fails(&me, SBA_EREFUSED, "which is no https:// URL", "");
	}
	world.wants = "Negotiate abc";
	assert_fails(&me, SBA_EUNSUPPORTED, "'negotiate'", "");
}

static void each_refusal_says_what_to_do(void **state)
{
	(void)state;
	world.words = "{\"errors\":[{\"code\":\"X\",\"message\":\"own words\"}]}";
	world.status = 403;
	assert_fails(NULL, SBA_EIMAGE, "we may not do that there: 403 ('own words')",
		     "docker login");
	world.status = 404;
	assert_fails(NULL, SBA_ENOTFOUND, "it is not there: 404", "");
	world.status = 429;
	assert_fails(NULL, SBA_EIMAGE, "asked too often: 429", "wait a while");
	world.status = 503;
	world.words = "<html>no JSON";
	assert_fails(NULL, SBA_EIMAGE, "in trouble: 503", "try again later");
	world.status = 418;
	assert_fails(NULL, SBA_EIMAGE, "nobody expects: 418", "");
}

static void what_is_not_what_it_is_called_is_refused(void **state)
{
	(void)state;
	world.lies = true;
	assert_fails(NULL, SBA_EPROTO, "what it sends has digest", "");
	world.lies = false;
	snprintf(world.manifest, sizeof(world.manifest), "{}");
	assert_fails(NULL, SBA_EPROTO, "names no config", "");
	snprintf(world.manifest, sizeof(world.manifest), "no JSON");
	assert_fails(NULL, SBA_EPROTO, "not JSON", "");
	snprintf(world.manifest, sizeof(world.manifest), "{\"manifests\":[]}");
	assert_fails(NULL, SBA_EPROTO, "without an image", "");
}

static void a_registry_that_is_not_up_is_said_to_be_so(void **state)
{
	(void)state;
	/* Nobody listens on port 1. */
	snprintf(world.host, sizeof(world.host), "127.0.0.1:1");
	assert_fails(NULL, SBA_EIMAGE, "registry 127.0.0.1:1", "is it up?");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_tag_is_its_digests),
		TEST(a_manifest_of_an_index_must_have_its_digest),
		TEST(basic_credentials_are_shown_when_they_are_wanted),
		TEST(a_token_is_fetched_where_the_challenge_says),
		TEST(an_identity_token_is_exchanged_in_a_body),
		TEST(credentials_go_to_no_place_but_a_safe_one),
		TEST(each_refusal_says_what_to_do),
		TEST(what_is_not_what_it_is_called_is_refused),
		TEST(a_registry_that_is_not_up_is_said_to_be_so),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
