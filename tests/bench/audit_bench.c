/* SPDX-License-Identifier: MIT */
/*
 * A turn of 20,000 events with and without its record, in turns: a fake claude in a
 * sandbox says them one after another, as fast as it can.
 *
 * usage: audit_bench IMAGE
 */
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <sandbox-agent/sandbox-agent.h>

#include "base/base.h"
#include "support/bench.h"

enum { CALLS = 10000, OUTPUT_BYTES = 400, LOOK_EVERY = 500, STREAM_MAX = 64 << 20 };
enum { WITHOUT, WITH, CPU_WITHOUT, CPU_WITH, MEMORY, SERIES };

static struct bench_series series[SERIES] = {
	[WITHOUT] = { .name = "audit.without", .unit = "ms" },
	[WITH] = { .name = "audit.with", .unit = "ms" },
	/* Of this process alone, which the load of the machine changes less. */
	[CPU_WITHOUT] = { .name = "audit.cpu.without", .unit = "ms" },
	[CPU_WITH] = { .name = "audit.cpu.with", .unit = "ms" },
	[MEMORY] = { .name = "audit.memory", .unit = "KiB" },
};

static char root[] = "/tmp/sbabench-audit-XXXXXX";

/* One write for each line, as CLIs do it. */
static const char script[] = "#!/usr/bin/env python3\n"
			     "import os, sys\n"
			     "sys.stdin.buffer.read()\n"
			     "for line in open('/workspace/stream', 'rb'):\n"
			     "    os.write(1, line)\n";

/* A tool is called and answers, again and again: two events each. */
static void make_stream(struct sba_buf *b)
{
	char output[OUTPUT_BYTES + 1];
	memset(output, 'x', OUTPUT_BYTES);
	output[OUTPUT_BYTES] = '\0';
	sba_buf_puts(b, "{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":"
			"\"6b0d7a46-5f3f-4a4e-9a55-0d9c1f1f0001\",\"tools\":[]}\n");
	for (int i = 0; i < CALLS; i++) {
		sba_buf_printf(b,
			       "{\"type\":\"assistant\",\"message\":{\"id\":\"m%d\",\"content\":[{"
			       "\"type\":\"tool_use\",\"id\":\"t%d\",\"name\":\"Bash\",\"input\":{"
			       "\"command\":\"step %d\"}}]}}\n",
			       i, i, i);
		sba_buf_printf(b,
			       "{\"type\":\"user\",\"message\":{\"content\":[{\"type\":"
			       "\"tool_result\",\"tool_use_id\":\"t%d\",\"content\":\"%s\"}]}}\n",
			       i, output);
	}
	sba_buf_puts(b, "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,"
			"\"result\":\"done\",\"session_id\":"
			"\"6b0d7a46-5f3f-4a4e-9a55-0d9c1f1f0001\",\"usage\":{\"input_tokens\":5,"
			"\"output_tokens\":3}}\n");
}

struct source {
	const char *data;
	size_t left;
};

static ssize_t read_source(void *user, void *buf, size_t size, struct sba_error *err)
{
	(void)err;
	struct source *s = user;
	size_t n = s->left < size ? s->left : size;
	memcpy(buf, s->data, n);
	s->data += n;
	s->left -= n;
	return (ssize_t)n;
}

static void put(struct sba_sandbox *s, const char *path, const char *data, size_t len,
		uint32_t mode)
{
	const struct sba_write_options o = { .set_mode = true, .mode = mode };
	struct source from = { data, len };
	struct sba_error err;
	bench_must(sba_sandbox_write(s, path, read_source, &from, &o, &err), &err);
}

static double cpu_ms(void)
{
	struct rusage u;
	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e3 +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e3;
}

/* *ret_memory: the most of it. */
static void one_turn(struct sba_sandbox *s, bool recorded, bool counts, long *ret_memory)
{
	const struct sba_audit_options audit = { .root = root };
	const struct sba_agent_options ao = { .agent = "claude",
					      .offline = true,
					      .one_turn = true,
					      .audit = recorded ? &audit : NULL };
	struct sba_agent *a = NULL;
	struct sba_turn *t = NULL;
	struct sba_turn_result result;
	const struct sba_event *e;
	struct sba_error err;
	size_t events = 0;
	bench_must(sba_agent_open(s, &ao, &a, &err), &err);
	double began = bench_now_ms(), cpu = cpu_ms();
	bench_must(sba_turn_begin(a, &(struct sba_turn_options){ .prompt = "go" }, &t, &err), &err);
	*ret_memory = 0;
	while (sba_turn_next(t, -1, &e, &err) == 1) {
		if (events++ % LOOK_EVERY)
			continue;
		long now = bench_rss_anon(getpid());
		*ret_memory = now > *ret_memory ? now : *ret_memory;
	}
	sba_turn_result(t, &result);
	if (counts) {
		bench_add(&series[recorded ? WITH : WITHOUT], bench_now_ms() - began);
		bench_add(&series[recorded ? CPU_WITH : CPU_WITHOUT], cpu_ms() - cpu);
	}
	if (result.verdict != SBA_VERDICT_OK || events < 2 * CALLS)
		bench_die("a turn of %zu events: %s", events, result.error.text);
	if (!recorded != !*result.audit)
		bench_die("recorded where it should not be, or the reverse");
	sba_turn_free(t);
	sba_agent_close(a);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void measure(struct sba_sandbox *s)
{
	long without, with;
	one_turn(s, false, false, &without);
	for (int i = bench_rounds(); i > 0; i--) {
		one_turn(s, false, true, &without);
		one_turn(s, true, true, &with);
		bench_add(&series[MEMORY], with > without ? (double)(with - without) : 0);
	}
}

int main(int argc, char **argv)
{
	struct sba_engine *e = NULL;
	struct sba_error err;
	SBA_BUF struct sba_buf stream = SBA_BUF_INIT(STREAM_MAX);
	if (argc != 2)
		bench_die("usage: audit_bench IMAGE");
	if (!mkdtemp(root))
		bench_die("no temporary folder");
	bench_must(sba_engine_open(NULL, &e, &err), &err);
	struct sba_sandbox *s = bench_sandbox(e, argv[1]);
	make_stream(&stream);
	put(s, "/usr/local/bin/claude", script, sizeof(script) - 1, 0755);
	put(s, "/workspace/stream", stream.data, stream.len, 0644);
	measure(s);
	bench_sandbox_end(s);
	sba_engine_close(e);
	nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	for (size_t i = 0; i < SERIES; i++)
		bench_print(&series[i]);
	return 0;
}
