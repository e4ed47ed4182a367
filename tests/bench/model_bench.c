/* SPDX-License-Identifier: MIT */
/*
 * What the way to the model adds to a call. One client, Python's http.client
 * on a kept connection, measures itself in three places: in a bare container
 * on this host's network, straight at the scripted model; in a sandbox, at the
 * model's port brought in by the channel; and there at the relay's.
 *
 * usage: model_bench IMAGE
 */
#include <stdio.h>
#include <stdlib.h>

#include "engine/engine.h"
#include "model/model.h"
#include "sandbox/sandbox.h"
#include "support/bench.h"

enum { CALLS = 40, LIMIT_MS = 60 * 1000 };
enum { DIRECT, TUNNEL, OURS, ABOVE, SERIES };

#define TOKEN "00112233445566778899aabbccddeeff"

static struct bench_series series[SERIES] = {
	[DIRECT] = { .name = "model.direct", .unit = "ms" },
	[TUNNEL] = { .name = "model.tunnel", .unit = "ms" },
	[OURS] = { .name = "model.ours", .unit = "ms" },
	[ABOVE] = { .name = "model.above", .unit = "ms" },
};

static const char client[] =
	"import http.client, json, sys, time\n"
	"body = json.dumps({'model': 'm', 'max_tokens': 64, 'stream': True,\n"
	"    'messages': [{'role': 'user', 'content': 'hello'}]}).encode()\n"
	"headers = {'Content-Type': 'application/json', 'x-api-key': '" TOKEN "'}\n"
	"connection = http.client.HTTPConnection('127.0.0.1', int(sys.argv[1]))\n"
	"for i in range(-5, int(sys.argv[2])):\n"
	"    began = time.perf_counter()\n"
	"    connection.request('POST', '/v1/messages', body, headers)\n"
	"    answer = connection.getresponse()\n"
	"    said = answer.read()\n"
	"    took = time.perf_counter() - began\n"
	"    assert answer.status == 200 and b'message_stop' in said, said\n"
	"    if i >= 0:\n"
	"        print(took * 1000)\n";

struct call {
	char port[8], calls[8];
	const char *argv[6];
};

static const char *const *command(struct call *c, uint16_t port)
{
	snprintf(c->port, sizeof(c->port), "%u", (unsigned)port);
	snprintf(c->calls, sizeof(c->calls), "%d", CALLS);
	c->argv[0] = "python3";
	c->argv[1] = "-c";
	c->argv[2] = client;
	c->argv[3] = c->port;
	c->argv[4] = c->calls;
	c->argv[5] = NULL;
	return c->argv;
}

/* The middle of what the client printed. */
static double middle(const struct sba_buf *said)
{
	double took[CALLS];
	const char *at = said->data ? said->data : "";
	for (size_t i = 0; i < CALLS; i++) {
		char *end;
		took[i] = strtod(at, &end);
		if (end == at)
			bench_die("model call: %s", said->data ? said->data : "no output");
		at = end;
	}
	return bench_median(took, CALLS);
}

static double call_inside(struct sba_sandbox *s, uint16_t port)
{
	SBA_BUF struct sba_buf said = SBA_BUF_INIT(1 << 16);
	struct call call;
	const struct sba_exec_options options = { .argv = command(&call, port) };
	struct sba_process *p = NULL;
	enum sba_output which;
	const char *data;
	struct sba_error err;
	ssize_t n;
	bench_must(sba_sandbox_exec(s, &options, &p, &err), &err);
	while ((n = sba_process_read(p, LIMIT_MS, &which, &data, &err)) > 0)
		sba_buf_put(&said, data, (size_t)n);
	bench_must((int)n, &err);
	sba_process_free(p);
	return middle(&said);
}

static double call_outside(struct sba_engine *e, const char *container, uint16_t port)
{
	SBA_BUF struct sba_buf said = SBA_BUF_INIT(1 << 16);
	const struct sba_until until = sba_until_in(LIMIT_MS);
	struct call call;
	const struct sba_exec_spec spec = { .container = container,
					    .argv = command(&call, port),
					    .no_stdin = true };
	struct sba_exec *x = NULL;
	enum sba_exec_stream which;
	const char *data;
	struct sba_error err;
	ssize_t n;
	bench_must(sba_exec_open(e, &spec, until, &x, &err), &err);
	while ((n = sba_exec_read(x, &which, &data, until, &err)) > 0)
		sba_buf_put(&said, data, (size_t)n);
	bench_must((int)n, &err);
	sba_exec_close(x);
	return middle(&said);
}

struct world {
	struct sba_engine *engine;
	struct sba_sandbox *sandbox;
	struct bench_raw raw;
	char bare[BENCH_ID_MAX];
	struct sba_model *model;
	struct sba_relay *relay;
	uint16_t tunnel, ours; /* inside */
};

static void open_models(struct world *w)
{
	const struct sba_model_options model = { 0 };
	struct sba_error err;
	char url[64];
	bench_must(sba_model_open(&model, &w->model, &err), &err);
	snprintf(url, sizeof(url), "http://127.0.0.1:%u", (unsigned)sba_model_port(w->model));
	const struct sba_relay_options relay = {
		.upstream = url, .key = "sk-bench", .key_style = SBA_KEY_X_API_KEY, .token = TOKEN
	};
	bench_must(sba_relay_open(&relay, &w->relay, &err), &err);
	bench_must(sba_sandbox_forward(w->sandbox, sba_model_port(w->model), &w->tunnel, &err),
		   &err);
	bench_must(sba_sandbox_forward(w->sandbox, sba_relay_port(w->relay), &w->ours, &err), &err);
}

static void measure(struct world *w)
{
	for (int i = (bench_rounds() + 1) / 2; i > 0; i--) {
		double direct = call_outside(w->engine, w->bare, sba_model_port(w->model));
		double tunnel = call_inside(w->sandbox, w->tunnel);
		double ours = call_inside(w->sandbox, w->ours);
		bench_add(&series[DIRECT], direct);
		bench_add(&series[TUNNEL], tunnel);
		bench_add(&series[OURS], ours);
		bench_add(&series[ABOVE], ours - direct);
	}
	for (size_t i = 0; i < SERIES; i++)
		bench_print(&series[i]);
}

int main(int argc, char **argv)
{
	static struct world w;
	struct sba_error err;
	if (argc != 2)
		bench_die("usage: model_bench IMAGE");
	bench_must(sba_engine_open(NULL, &w.engine, &err), &err);
	w.sandbox = bench_sandbox(w.engine, argv[1]);
	bench_raw_open(&w.raw);
	bench_bare_create(&w.raw, argv[1], "host", w.bare);
	bench_bare_start(&w.raw, w.bare);
	open_models(&w);
	measure(&w);
	bench_bare_remove(&w.raw, w.bare);
	bench_raw_close(&w.raw);
	bench_sandbox_end(w.sandbox);
	sba_relay_close(w.relay);
	sba_model_close(w.model);
	sba_engine_close(w.engine);
	return 0;
}
