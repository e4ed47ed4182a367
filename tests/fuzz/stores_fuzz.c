/* SPDX-License-Identifier: MIT */
/*
 * What the CLIs keep of their sessions, as the inside shows it: the first byte says whose
 * store and what is done, the rest is what programs print there and what files hold, in
 * turns, cut at 0xff.
 */
#include "drivers/drivers.h"
#include "drivers/store.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct said {
	const uint8_t *at, *end;
};

/* The next piece; the last one again and again would never end. */
static int next(const struct sba_inside *in, struct sba_buf *ret, struct sba_error *err)
{
	struct said *s = in->user;
	if (s->at >= s->end)
		return sba_fail(err, SBA_ENOTFOUND, "no more");
	const uint8_t *cut = memchr(s->at, 0xff, (size_t)(s->end - s->at));
	const uint8_t *stop = cut ? cut : s->end;
	sba_buf_put(ret, s->at, (size_t)(stop - s->at));
	s->at = cut ? cut + 1 : s->end;
	return sba_buf_check(ret, "a piece", err);
}

static int run(const struct sba_inside *in, const struct sba_inside_run *r, struct sba_buf *ret_out,
	       int *ret_status, char ret_said[SBA_SAID_MAX], struct sba_error *err)
{
	for (size_t i = 0; r->argv[i]; i++)
		assert(strlen(r->argv[i]) < 64 * 1024);
	*ret_status = 0;
	ret_said[0] = '\0';
	return next(in, ret_out, err);
}

static int read_one(const struct sba_inside *in, const char *path, size_t max, struct sba_buf *ret,
		    struct sba_error *err)
{
	(void)max;
	if (path[0] != '/') /* as a sandbox says */
		return sba_fail(err, SBA_EINVAL, "'%s' is no absolute path", path);
	return next(in, ret, err);
}

static int write_one(const struct sba_inside *in, const char *path, const void *data, size_t len,
		     uint32_t mode, struct sba_error *err)
{
	(void)in, (void)data, (void)len, (void)mode, (void)err;
	assert(path[0] == '/' && !strstr(path, "/../"));
	return 0;
}

static void list(const struct sba_store *s, const struct sba_inside *in)
{
	struct sba_kept_list l = { 0 };
	struct sba_error err = { 0 };
	int rc = s->list(s, in, &l, &err);
	assert(rc == 0 || (rc == err.code && err.text[0] && l.n == 0));
	for (size_t i = 0; i < l.n; i++)
		assert(sba_session_id_valid(l.v[i].id) && l.v[i].title && l.v[i].workdir);
	sba_kept_list_fini(&l);
}

/* Out, and in again under another name. */
static void carry(const struct sba_store *s, const struct sba_inside *in, const char *id)
{
	struct sba_parts parts = { 0 };
	struct sba_error err = { 0 };
	char copy[SBA_SESSION_ID_MAX + 1];
	int rc = s->dump(s, in, id, &parts, &err);
	assert(rc == 0 || (rc == err.code && err.text[0]));
	if (rc == 0 && sba_store_new_id(s, id, copy, &err) == 0) {
		rc = s->load(s, in, &parts, id, copy, &err);
		assert(rc == 0 || err.text[0]);
	}
	sba_parts_fini(&parts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct sba_store *const stores[] = { &sba_claude_store, &sba_codex_store,
							  &sba_dsh_store, &sba_opencode_store,
							  &sba_pi_store };
	static const char uuid[] = "6f0e2a4c-1111-4222-8333-444455556666";
	static const char other[] = "session-6f0e2a4c-1111-4222-8333-444455556666";
	if (size == 0)
		return 0;
	struct said said = { data + 1, data + size };
	const struct sba_inside in = { .run = run,
				       .read = read_one,
				       .write = write_one,
				       .home = "/home/agent",
				       .workdir = "/workspace",
				       .user = &said };
	const struct sba_store *s = stores[(data[0] & 15) % SBA_ARRAY_LEN(stores)];
	const char *id = s == &sba_dsh_store ? other : uuid;
	struct sba_error err = { 0 };
	switch (data[0] >> 4 & 3) {
	case 0:
		list(s, &in);
		break;
	case 1:
		carry(s, &in, id);
		break;
	case 2:
		(void)!s->remove(s, &in, id, &err);
		break;
	default:
		if (s->aside)
			(void)!s->aside(s, &in, id, "/tmp/scratch", &err);
	}
	return 0;
}
