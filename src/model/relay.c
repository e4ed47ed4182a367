/* SPDX-License-Identifier: MIT */
/*
 * The relay: who may ask what, for how much, and where it goes. The token is
 * all that a sandbox has; the key is put in here and goes to upstream alone.
 */
#include "base/limits.h"
#include "model/relay_private.h"

#include <assert.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct sba_relay_route routes[] = {
	{ "POST", "/v1/messages", &sba_model_wire_messages, SBA_RELAY_MESSAGES, true },
	{ "POST", "/v1/messages/count_tokens", &sba_model_wire_messages, SBA_RELAY_MESSAGES,
	  false },
	{ "POST", "/v1/chat/completions", &sba_model_wire_chat, SBA_RELAY_CHAT, true },
	{ "POST", "/v1/responses", &sba_model_wire_responses, SBA_RELAY_RESPONSES, true },
	{ "GET", "/v1/models", &sba_model_wire_chat, SBA_RELAY_CHAT, false },
};

/* The target as it was sent: what an escape could hide matches nothing. */
static const struct sba_relay_route *find_route(const char *target)
{
	size_t len = strcspn(target, "?");
	for (size_t i = 0; i < SBA_ARRAY_LEN(routes); i++)
		if (strlen(routes[i].path) == len && !memcmp(routes[i].path, target, len))
			return &routes[i];
	return NULL;
}

static bool is_hello(const struct sba_http_request *request)
{
	return !strcmp(request->target, "/api/hello") &&
	       (!strcmp(request->method, "HEAD") || !strcmp(request->method, "GET"));
}

static bool is_query_clean(const char *target)
{
	for (const char *p = target; *p; p++)
		if (*p <= ' ' || *p > '~' || strchr("#\"<>\\^`{|}", *p))
			return false;
	return strlen(target) <= SBA_RELAY_TARGET_MAX;
}

/* ---- tokens ---- */

static bool same_secret(const char *given, const char *token)
{
	size_t len = strlen(token);
	return given && strlen(given) == len && CRYPTO_memcmp(given, token, len) == 0;
}

static const char *bearer(const struct sba_http_request *request)
{
	static const char scheme[] = "Bearer ";
	const char *value = sba_http_request_header(request, "Authorization");
	if (!value || strncasecmp(value, scheme, sizeof(scheme) - 1) != 0)
		return NULL;
	return value + sizeof(scheme) - 1;
}

static bool has_token(struct sba_relay *r, const struct sba_http_request *request)
{
	const char *given[] = { bearer(request), sba_http_request_header(request, "x-api-key") };
	bool alarm = false;
	for (size_t i = 0; i < SBA_ARRAY_LEN(given); i++) {
		if (same_secret(given[i], r->token))
			return true;
		/* All our tokens have one length, and no provider's key has it. */
		alarm = alarm || (given[i] && strlen(given[i]) == strlen(r->token));
	}
	pthread_mutex_lock(&r->lock);
	r->stats.alarms += alarm;
	pthread_mutex_unlock(&r->lock);
	return false;
}

/* ---- refusals ---- */

static void answer_error(struct sba_http_answer *answer, const struct sba_model_wire *wire,
			 int status, const char *message)
{
	json_t *body = wire->error(status, message);
	SBA_FREE char *text = body ? sba_json_dump(body) : NULL;
	json_decref(body);
	answer->status = status;
	answer->content_type = "application/json";
	answer->hang_up = !text;
	sba_buf_init(&answer->body, SBA_MIB);
	if (text)
		sba_buf_puts(&answer->body, text);
}

static bool refuse(struct sba_relay *r, const struct sba_http_request *request,
		   struct sba_http_answer *answer, int status, const char *message)
{
	bool messages = sba_http_request_header(request, "anthropic-version") ||
			sba_starts_with(request->target, sba_model_wire_messages.path);
	answer_error(answer, messages ? &sba_model_wire_messages : &sba_model_wire_chat, status,
		     message);
	pthread_mutex_lock(&r->lock);
	r->stats.refused++;
	pthread_mutex_unlock(&r->lock);
	return true;
}

/* A coding is refused although HTTP allows it: libmicrohttpd 0.9.75 takes
 * chunk extensions and bare line ends between chunks without a word, and every
 * client of these APIs sends a length. */
static bool judge(void *user, const struct sba_http_request *head, struct sba_http_answer *answer)
{
	struct sba_relay *r = user;
	const struct sba_relay_route *route = find_route(head->target);
	if (head->irregular)
		return refuse(r, head, answer, 400, head->irregular);
	if (is_hello(head))
		return false;
	if (!has_token(r, head))
		return refuse(r, head, answer, 401, "this token is not good here");
	if (!route)
		return refuse(r, head, answer, 404, "no such endpoint");
	if (strcmp(route->method, head->method) != 0)
		return refuse(r, head, answer, 405, "no such method at this endpoint");
	if (!is_query_clean(head->target))
		return refuse(r, head, answer, 400, "the query is malformed");
	if (sba_http_request_header(head, "Transfer-Encoding"))
		return refuse(r, head, answer, 411, "a request needs a Content-Length");
	return false;
}

/* ---- budgets ---- */

static bool tokens_spent(const struct sba_relay *r)
{
	const struct sba_usage *u = &r->stats.usage;
	return r->max_tokens && u->input + u->output >= r->max_tokens;
}

static bool requests_spent(const struct sba_relay *r)
{
	return r->max_requests && r->turn_requests >= r->max_requests;
}

/* NULL, or why not. Status 400 goes with it: of all that fit, the one that all
 * five CLIs give up on at once (429 and 5xx are tried again, 401 by two). */
static const char *admit(struct sba_relay *r)
{
	const char *why = NULL;
	pthread_mutex_lock(&r->lock);
	if (tokens_spent(r))
		why = "sandbox-agent: the token budget is spent (max-tokens)";
	else if (requests_spent(r))
		why = "sandbox-agent: the request budget of this turn is spent (max-requests)";
	if (!why) {
		r->stats.requests++;
		r->turn_requests++;
	}
	pthread_mutex_unlock(&r->lock);
	return why;
}

static void add(int64_t *total, int64_t before, int64_t now)
{
	if (__builtin_add_overflow(*total, now - before, total))
		*total = INT64_MAX;
}

void sba_relay_spend(struct sba_relay *r, const struct sba_usage *before,
		     const struct sba_usage *now, bool estimated)
{
	pthread_mutex_lock(&r->lock);
	add(&r->stats.usage.input, before->input, now->input);
	add(&r->stats.usage.cached_input, before->cached_input, now->cached_input);
	add(&r->stats.usage.output, before->output, now->output);
	add(&r->stats.usage.reasoning, before->reasoning, now->reasoning);
	r->stats.estimated += estimated;
	pthread_mutex_unlock(&r->lock);
}

/* NULL: it was none. */
static void set_failure(struct sba_relay_stats *stats, const char *why)
{
	snprintf(stats->failure, sizeof(stats->failure), "%s", why ? why : "");
	stats->failures += why != NULL;
	stats->failed_ms = sba_now_ms();
}

void sba_relay_note(struct sba_relay *r, int status, bool ours)
{
	char why[32];
	snprintf(why, sizeof(why), "HTTP %d", status);
	pthread_mutex_lock(&r->lock);
	set_failure(&r->stats, ours || status < 400 ? NULL : why);
	r->stats.key_refused = !ours && status == 401;
	if (!r->stats.key_refused && !ours)
		r->stats.in_vain_ms = 0;
	else if (!r->stats.in_vain_ms)
		r->stats.in_vain_ms = sba_now_ms();
	pthread_mutex_unlock(&r->lock);
}

void sba_relay_note_silence(struct sba_relay *r, const char *why)
{
	pthread_mutex_lock(&r->lock);
	set_failure(&r->stats, why);
	r->stats.in_vain_ms = 0;
	pthread_mutex_unlock(&r->lock);
}

void sba_relay_new_turn(struct sba_relay *r)
{
	pthread_mutex_lock(&r->lock);
	r->turn_requests = 0;
	r->stats.in_vain_ms = 0;
	r->stats.failures = 0;
	r->stats.failure[0] = '\0';
	r->stats.key_refused = false;
	pthread_mutex_unlock(&r->lock);
}

void sba_relay_stats_get(struct sba_relay *r, struct sba_relay_stats *ret)
{
	pthread_mutex_lock(&r->lock);
	*ret = r->stats;
	ret->tokens_spent = tokens_spent(r);
	ret->requests_spent = requests_spent(r);
	pthread_mutex_unlock(&r->lock);
}

/* ---- requests ---- */

static int call_upstream(struct sba_relay *r, const struct sba_http_request *request,
			 struct sba_http_response **ret, struct sba_error *err)
{
	SBA_STRV struct sba_strv all = { 0 }, passing = { 0 };
	SBA_BUF struct sba_buf url = SBA_BUF_INIT(8 * SBA_KIB);
	struct sba_until until = { .deadline_ms = SBA_NEVER, .cancel_fd = request->stop_fd };
	int rc = sba_http_request_headers(request, &all, err);
	if (rc == 0)
		rc = sba_relay_request_headers(&all, &passing, err);
	sba_buf_puts(&url, r->upstream);
	sba_buf_puts(&url, request->target);
	if (rc == 0)
		rc = sba_buf_check(&url, "upstream's URL", err);
	if (rc < 0)
		return rc;
	return sba_http_client_send(r->client,
				    &(struct sba_http_call){ .method = request->method,
							     .url = url.data,
							     .headers = &passing,
							     .secret_header = r->secret_header,
							     .body = request->body,
							     .body_len = request->body_len },
				    sba_until_sooner(until, SBA_RELAY_SILENCE_MS), ret, err);
}

static void forward(struct sba_relay *r, const struct sba_relay_route *route,
		    const struct sba_http_request *request, struct sba_http_answer *answer)
{
	struct sba_error err;
	struct sba_http_response *up;
	struct sba_redact_scan scan = { .last = true };
	int rc = call_upstream(r, request, &up, &err);
	if (rc == 0)
		rc = sba_relay_answer(r, route, request->body_len, up, answer, &err);
	if (rc == 0)
		return;
	answer->hang_up = rc == SBA_ECANCELED;
	if (answer->hang_up)
		return;
	sba_wrap(&err, rc, "upstream");
	sba_redact(r->secret, err.text, strlen(err.text), &scan);
	sba_relay_note_silence(r, err.text);
	answer_error(answer, route->wire, rc == SBA_ETIMEOUT ? 504 : 502, err.text);
}

static void on_request(void *user, const struct sba_http_request *request,
		       struct sba_http_answer *answer)
{
	struct sba_relay *r = user;
	if (is_hello(request))
		return;
	const struct sba_relay_route *route = find_route(request->target);
	assert(route); /* the judge has seen to it */
	const char *why = admit(r);
	if (!why) {
		forward(r, route, request, answer);
		return;
	}
	refuse(r, request, answer, 400, why);
	sba_relay_note(r, 400, true);
}

/* ---- life ---- */

static int check_options(const struct sba_relay_options *o, struct sba_error *err)
{
	if (!o->upstream || !o->token || !*o->token)
		return sba_fail(err, SBA_EINVAL, "the relay needs an upstream and a token");
	if (o->max_tokens < 0 || o->max_requests < 0)
		return sba_fail(err, SBA_EINVAL, "a budget is negative");
	int rc = sba_http_url_check(o->upstream, err);
	return rc < 0 ? sba_wrap(err, rc, "upstream") : 0;
}

static int copy_options(struct sba_relay *r, const struct sba_relay_options *o,
			struct sba_error *err)
{
	size_t len = strlen(o->upstream);
	while (len && o->upstream[len - 1] == '/')
		len--;
	r->upstream = strndup(o->upstream, len);
	r->token = strdup(o->token);
	if (!r->upstream || !r->token)
		return sba_fail_nomem(err);
	r->max_tokens = o->max_tokens;
	r->max_requests = o->max_requests;
	int rc = o->key ? sba_relay_secret_header(o, &r->secret_header, err) : 0;
	return rc < 0 ? rc : sba_redact_new(o->key, &r->secret, err);
}

static int start(struct sba_relay *r, const struct sba_relay_options *o, struct sba_error *err)
{
	const struct sba_http_client_options client = { .ca_file = o->ca_file };
	const struct sba_http_server_options server = { .judge = judge,
							.handler = on_request,
							.user = r };
	int rc = copy_options(r, o, err);
	if (rc == 0)
		rc = sba_http_client_open(&client, &r->client, err);
	if (rc == 0)
		rc = sba_http_server_open(&server, &r->server, err);
	return rc;
}

int sba_relay_open(const struct sba_relay_options *options, struct sba_relay **ret,
		   struct sba_error *err)
{
	int rc = check_options(options, err);
	if (rc < 0)
		return rc;
	struct sba_relay *r = calloc(1, sizeof(*r));
	if (!r)
		return sba_fail_nomem(err);
	pthread_mutex_init(&r->lock, NULL);
	rc = start(r, options, err);
	if (rc < 0) {
		sba_relay_close(r);
		return rc;
	}
	*ret = r;
	return 0;
}

uint16_t sba_relay_port(const struct sba_relay *r)
{
	return sba_http_server_port(r->server);
}

const struct sba_redact *sba_relay_secret(const struct sba_relay *r)
{
	return r->secret;
}

void sba_relay_close(struct sba_relay *r)
{
	if (!r)
		return;
	sba_http_server_close(r->server);
	sba_http_client_close(r->client);
	if (r->secret_header)
		explicit_bzero(r->secret_header, strlen(r->secret_header));
	free(r->secret_header);
	sba_redact_free(r->secret);
	free(r->upstream);
	free(r->token);
	pthread_mutex_destroy(&r->lock);
	free(r);
}
