/* SPDX-License-Identifier: MIT */
/*
 * How fast each driver turns recorded streams into events: all recordings of its
 * folder, again and again. Run in the project's folder.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "drivers/drivers.h"
#include "support/bench.h"

enum { RECORDINGS_MAX = 16 << 20, SAMPLE_BYTES = 32 << 20 };

static int count(void *user, const struct sba_event *event)
{
	(void)event;
	++*(size_t *)user;
	return 0;
}

static void read_recordings(const char *driver, struct sba_buf *ret)
{
	char path[300];
	snprintf(path, sizeof(path), "tests/fixtures/%s", driver);
	DIR *dir = opendir(path);
	if (!dir)
		bench_die("%s: not there (run in the project's folder)", path);
	for (struct dirent *e; (e = readdir(dir)) != NULL;) {
		SBA_BUF struct sba_buf one = { 0 };
		struct sba_error err;
		if (!sba_ends_with(e->d_name, ".jsonl"))
			continue;
		snprintf(path, sizeof(path), "tests/fixtures/%s/%s", driver, e->d_name);
		bench_must(sba_read_file(path, RECORDINGS_MAX, &one, &err), &err);
		sba_buf_put(ret, one.data, one.len);
	}
	closedir(dir);
	if (ret->len == 0 || ret->failed)
		bench_die("%s: no recordings", driver);
}

/* Of this thread: neighbours do not matter to what only computes. */
static double cpu_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* One turn that says all of it. */
static void parse(const struct sba_driver *driver, const struct sba_buf *text)
{
	size_t events = 0;
	struct sba_stream *s;
	struct sba_error err;
	struct sba_outcome o;
	const struct sba_stream_options options = { .driver = driver,
						    .fn = count,
						    .user = &events };
	bench_must(sba_stream_new(&options, &s, &err), &err);
	for (const char *at = text->data, *end = at + text->len; at < end;) {
		const char *nl = memchr(at, '\n', (size_t)(end - at));
		const char *stop = nl ? nl : end;
		sba_stream_line(s, at, (size_t)(stop - at));
		at = stop + 1;
	}
	sba_stream_finish(s, 0, "", &o);
	sba_stream_free(s);
	if (events == 0)
		bench_die("%s: no events", driver->name);
}

/* *slowest becomes this one if it is slower. */
static void measure(const struct sba_driver *driver, struct bench_series *slowest)
{
	char name[64];
	struct sba_buf text = SBA_BUF_INIT(RECORDINGS_MAX);
	snprintf(name, sizeof(name), "parse.%s", driver->name);
	struct bench_series series = { .name = name, .unit = "MB/s" };
	read_recordings(driver->name, &text);
	size_t times = SAMPLE_BYTES / text.len + 1;
	for (int i = bench_rounds(); i > 0; i--) {
		double began = cpu_ms();
		for (size_t n = 0; n < times; n++)
			parse(driver, &text);
		double rate = (double)(times * text.len) / 1e3 / (cpu_ms() - began);
		bench_add(&series, rate);
	}
	bench_print(&series);
	double rate = bench_median(series.samples, series.n);
	if (slowest->n == 0 || rate < bench_median(slowest->samples, slowest->n)) {
		memcpy(slowest->samples, series.samples, sizeof(series.samples));
		slowest->n = series.n;
	}
	sba_buf_fini(&text);
}

int main(void)
{
	static struct bench_series slowest = { .name = "parse.slowest", .unit = "MB/s" };
	for (const struct sba_driver *const *d = sba_driver_all(); *d; d++) {
		if ((*d)->binary)
			measure(*d, &slowest);
	}
	bench_print(&slowest);
	return 0;
}
