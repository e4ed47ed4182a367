/* SPDX-License-Identifier: MIT */
/*
 * Contents of many files by one command, one after the other. Sizes say where each begins
 * and hashes that it is the right one: where a file has changed since, it and what follows
 * stay unknown.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sandbox/states.h"

struct asked {
	struct sba_record **v;
	size_t n;
	uint64_t bytes;
	struct sba_buf names; /* each ends with NUL */
};

static bool is_wanted(const struct sba_record *r)
{
	const struct sba_file_entry *e = &r->fresh.entry;
	bool fresh = r->kind == SBA_RECORD_ADDED || r->kind == SBA_RECORD_MODIFIED;
	return fresh && r->fresh.why == SBA_CONTENT_NOT_ASKED && S_ISREG(e->mode) &&
	       e->flags & SBA_ENTRY_HASHED && e->size <= SBA_STATE_CONTENT_MAX;
}

static int ask(struct sba_records *r, struct asked *ret, struct sba_error *err)
{
	ret->v = calloc(r->n + 1, sizeof(struct sba_record *));
	if (!ret->v)
		return sba_fail_nomem(err);
	for (size_t i = 0; i < r->n; i++) {
		uint64_t size = r->v[i].fresh.entry.size;
		if (!is_wanted(&r->v[i]) || size > SBA_STATE_CONTENTS_MAX - ret->bytes)
			continue;
		ret->v[ret->n++] = &r->v[i];
		ret->bytes += size;
		sba_buf_puts(&ret->names, "./");
		sba_buf_put(&ret->names, r->v[i].path, strlen(r->v[i].path) + 1);
	}
	return sba_buf_check(&ret->names, "a list of files", err);
}

static int take(struct sba_records *r, const struct asked *asked, const struct sba_run_result *said,
		struct sba_error *err)
{
	size_t at = 0;
	for (size_t i = 0; i < asked->n; i++) {
		struct sba_record *one = asked->v[i];
		size_t size = (size_t)one->fresh.entry.size;
		if (size > said->out_len - at)
			return 0;
		int rc = sba_records_add_content(r, one, said->out + at, size, err);
		if (rc < 0)
			return rc == SBA_EPROTO ? 0 : rc;
		at += size;
	}
	return 0;
}

static int fetch(struct sba_sandbox *s, const char *folder, struct sba_until until,
		 struct sba_records *r, struct asked *asked, struct sba_error *err)
{
	static const char text[] = "cd -- \"$1\" && exec xargs -0 cat -- 2>/dev/null";
	const char *const argv[] = { "sh", "-c", text, "sh", folder, NULL };
	struct sba_run_result said = { 0 };
	int rc = ask(r, asked, err);
	if (rc < 0 || asked->n == 0)
		return rc;
	const struct sba_run_options o = {
		.argv = argv,
		.workdir = "/",
		.input = asked->names.data,
		.input_len = asked->names.len,
		.timeout_ms = sba_timeout_of(until, -1),
		.max_output = (size_t)asked->bytes + SBA_KIB,
	};
	rc = sba_sandbox_run(s, &o, &said, err);
	if (rc == 0)
		rc = take(r, asked, &said, err);
	sba_run_result_fini(&said);
	return rc;
}

int sba_contents_fetch(struct sba_sandbox *s, const char *folder, struct sba_until until,
		       struct sba_records *r, struct sba_error *err)
{
	struct asked asked = { .names = SBA_BUF_INIT(SBA_CHANGED_BYTES_MAX) };
	int rc = fetch(s, folder, until, r, &asked, err);
	sba_buf_fini(&asked.names);
	free(asked.v);
	return rc < 0 ? sba_wrap(err, rc, "sandbox '%s': contents in %s", s->info.name, folder) : 0;
}
