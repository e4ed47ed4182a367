/* SPDX-License-Identifier: MIT */
/*
 * The scripted model's endpoints: routes, the key, errors in the shape that
 * each provider's clients expect. Every request stands for itself.
 */
#include "base/limits.h"
#include "http/http.h"
#include "model/model.h"
#include "model/private.h"

#include <openssl/crypto.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct sba_model {
	struct sba_http_server *server;
	json_t *script; /* only read after open: shared by the threads */
	char *token;    /* NULL: any key is taken */
	_Atomic uint64_t requests;
};

static const struct sba_model_wire *const wires[] = {
	&sba_model_wire_chat,
	&sba_model_wire_messages,
	&sba_model_wire_responses,
};

static const struct sba_model_wire *find_wire(const char *path)
{
	for (size_t i = 0; i < SBA_ARRAY_LEN(wires); i++)
		if (!strcmp(wires[i]->path, path))
			return wires[i];
	return NULL;
}

static bool same_secret(const char *given, const char *token)
{
	size_t len = strlen(token);
	return given && strlen(given) == len && CRYPTO_memcmp(given, token, len) == 0;
}

static bool has_key(const struct sba_model *m, const struct sba_http_request *request)
{
	static const char scheme[] = "Bearer ";
	const char *bearer = sba_http_request_header(request, "Authorization");
	if (!m->token)
		return true;
	if (bearer && !strncasecmp(bearer, scheme, sizeof(scheme) - 1) &&
	    same_secret(bearer + sizeof(scheme) - 1, m->token))
		return true;
	return same_secret(sba_http_request_header(request, "x-api-key"), m->token);
}

static void answer_json(struct sba_http_answer *answer, int status, json_t *take_body)
{
	SBA_FREE char *text = take_body ? sba_json_dump(take_body) : NULL;
	json_decref(take_body);
	answer->status = status;
	answer->content_type = "application/json";
	answer->hang_up = !text;
	sba_buf_init(&answer->body, SBA_HTTP_REQUEST_MAX);
	if (text)
		sba_buf_puts(&answer->body, text);
}

static void answer_error(struct sba_http_answer *answer, const struct sba_model_wire *wire,
			 int status, const char *message)
{
	answer_json(answer, status, wire->error(status, message));
}

static void answer_stream(struct sba_http_answer *answer, const char *content_type,
			  struct sba_model_stream *take_stream)
{
	answer->content_type = content_type;
	answer->hang_up = !take_stream;
	answer->stream = sba_model_stream_read;
	answer->stream_user = take_stream;
	answer->stream_free = sba_model_stream_free;
}

/* An answer that is not streamed keeps the script's pace all the same. */
static void answer_whole(struct sba_http_answer *answer, const struct sba_model_wire *wire,
			 struct sba_model_answer *a)
{
	answer->status = a->status;
	json_t *body = a->status == 200 ? wire->whole(a) : wire->error(a->status, a->message);
	if (!a->stall_ms && !a->cut_after) {
		answer_json(answer, a->status, body);
		return;
	}
	answer_stream(answer, "application/json", sba_model_stream_new_whole(a, body));
	json_decref(body);
}

static void answer_plan(struct sba_http_answer *answer, const struct sba_model_request *r,
			struct sba_model_answer *a)
{
	if (a->retry_after &&
	    sba_strv_addf(&answer->headers, NULL, "Retry-After: %lld", (long long)a->retry_after)) {
		answer->hang_up = true;
		return;
	}
	if (a->status != 200 || !r->stream) {
		answer_whole(answer, r->wire, a);
		return;
	}
	if (sba_strv_add(&answer->headers, "Cache-Control: no-cache", NULL))
		answer->hang_up = true;
	answer_stream(answer, "text/event-stream", sba_model_stream_new(r->wire, a));
}

static void answer_model(struct sba_model *m, const struct sba_model_wire *wire,
			 const struct sba_http_request *request, struct sba_http_answer *answer)
{
	struct sba_error err;
	struct sba_model_request r;
	struct sba_model_answer a = { 0 };
	atomic_fetch_add(&m->requests, 1);
	int rc = sba_model_request_parse(&r, wire, request->body, request->body_len, &err);
	if (rc == 0)
		rc = sba_model_plan(m->script, &r, &a, &err);
	if (rc == 0)
		answer_plan(answer, &r, &a);
	else
		answer_error(answer, wire, rc == SBA_EPROTO || rc == SBA_ELIMIT ? 400 : 500,
			     err.text);
	sba_model_answer_fini(&a);
	sba_model_request_fini(&r);
}

/* In the shape of both providers' lists. */
static json_t *model_list(void)
{
	return json_pack("{s:s, s:[{s:s, s:s, s:s, s:s, s:i, s:s, s:s}], s:b, s:s, s:s}", "object",
			 "list", "data", "id", "scripted", "object", "model", "type", "model",
			 "display_name", "Scripted model", "created", 0, "created_at",
			 "1970-01-01T00:00:00Z", "owned_by", "sandbox-agent", "has_more", 0,
			 "first_id", "scripted", "last_id", "scripted");
}

/* Whose error shape a request expects that hits no wire. */
static const struct sba_model_wire *likely_wire(const struct sba_http_request *request)
{
	bool anthropic = sba_http_request_header(request, "anthropic-version") ||
			 sba_starts_with(request->path, sba_model_wire_messages.path);
	return anthropic ? &sba_model_wire_messages : &sba_model_wire_chat;
}

static void on_request(void *user, const struct sba_http_request *request,
		       struct sba_http_answer *answer)
{
	struct sba_model *m = user;
	const struct sba_model_wire *wire = find_wire(request->path);
	bool get = !strcmp(request->method, "GET"), post = !strcmp(request->method, "POST");
	if (!strcmp(request->path, "/api/hello") && (get || !strcmp(request->method, "HEAD")))
		return;
	if (!has_key(m, request))
		answer_error(answer, wire ? wire : likely_wire(request), 401, "invalid API key");
	else if (wire && post)
		answer_model(m, wire, request, answer);
	else if (get && !strcmp(request->path, "/v1/models"))
		answer_json(answer, 200, model_list());
	else
		answer_error(answer, likely_wire(request), 404, "no such endpoint");
}

static int open_parts(struct sba_model *m, const struct sba_model_options *o, struct sba_error *err)
{
	const char *script = o->script ? o->script : sba_model_builtin_script;
	int rc = sba_model_script_parse(script, &m->script, err);
	if (rc < 0)
		return rc;
	if (o->token && !(m->token = strdup(o->token)))
		return sba_fail_nomem(err);
	return sba_http_server_open(
		&(struct sba_http_server_options){
			.address = o->address, .port = o->port, .handler = on_request, .user = m },
		&m->server, err);
}

int sba_model_open(const struct sba_model_options *options, struct sba_model **ret,
		   struct sba_error *err)
{
	static const struct sba_model_options defaults;
	struct sba_model *m = calloc(1, sizeof(*m));
	if (!m)
		return sba_fail_nomem(err);
	int rc = open_parts(m, options ? options : &defaults, err);
	if (rc < 0) {
		sba_model_close(m);
		return rc;
	}
	*ret = m;
	return 0;
}

uint16_t sba_model_port(const struct sba_model *m)
{
	return sba_http_server_port(m->server);
}

uint64_t sba_model_requests(const struct sba_model *m)
{
	return atomic_load(&((struct sba_model *)(uintptr_t)m)->requests);
}

void sba_model_close(struct sba_model *m)
{
	if (!m)
		return;
	sba_http_server_close(m->server);
	json_decref(m->script);
	free(m->token);
	free(m);
}
