/* SPDX-License-Identifier: MIT */
/* A snapshot where there is no guest: by find and sha256sum inside. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sandbox/snapshot.h"

enum { OUTPUT_MAX = 256 * SBA_MIB, NO_FOLDER = 44, NO_TOOLS = 45 };

#define SKIPPED                                                                                    \
	"-name .git -o -name node_modules -o -name .venv -o -name venv -o -name __pycache__ -o "   \
	"-name .mypy_cache -o -name .pytest_cache -o -name .ruff_cache"
/* Two lists with an empty name between: what is there, and the hashes of it. Nothing is
 * escaped where names end in NUL. */
#define SCRIPT(skipped)                                                                            \
	"cd -- \"$1\" 2>/dev/null || exit 44\n"                                                    \
	"find . -maxdepth 0 -printf '' 2>/dev/null && sha256sum -z /dev/null >/dev/null 2>&1 && "  \
	"command -v xargs >/dev/null || exit 45\n"                                                 \
	"find . -type d \\( " skipped " \\) -prune -o \\( -type f -o -type l \\) ! -name .git "    \
	"-printf '%m %s %T@ %P\\0%l\\0' 2>/dev/null\n"                                             \
	"printf '\\0'\n"                                                                           \
	"find . -type d \\( " skipped " \\) -prune -o -type f ! -name .git -size -\"$2\"c "        \
	"-print0 2>/dev/null | xargs -0 -r sha256sum -z -- 2>/dev/null\n"                          \
	"exit 0"

struct hash {
	const char *hex, *path;
};

struct list {
	struct hash *v;
	size_t n;
};

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct hash *)a)->path, ((const struct hash *)b)->path);
}

/* The string at *at, which goes behind it; NULL: there is none any more. */
static const char *next(const char **at, const char *end)
{
	const char *s = *at, *nul = s < end ? memchr(s, '\0', (size_t)(end - s)) : NULL;
	if (nul)
		*at = nul + 1;
	return nul ? s : NULL;
}

/* "HEX  ./PATH", the hex of 64 digits. */
static int take_hashes(const char *at, const char *end, struct list *ret, struct sba_error *err)
{
	enum { HEX = SBA_SHA256_HEX - 1 };
	const char *s;
	size_t n = 0;
	for (const char *c = at; c < end; c++)
		n += *c == '\0';
	ret->v = calloc(n + 1, sizeof(*ret->v));
	if (!ret->v)
		return sba_fail_nomem(err);
	while ((s = next(&at, end))) {
		if (strspn(s, "0123456789abcdef") != HEX || strncmp(s + HEX, "  ./", 4) != 0)
			return sba_fail(err, SBA_EPROTO, "sha256sum does not print what it should");
		ret->v[ret->n++] = (struct hash){ s, s + HEX + 4 };
	}
	if (ret->n)
		qsort(ret->v, ret->n, sizeof(*ret->v), by_path);
	return 0;
}

/* "MODE SIZE SECONDS.NANOSECONDS PATH"; the path, or NULL. */
static const char *take_line(const char *line, struct sba_snapshot_file *ret)
{
	char *at;
	unsigned long mode = strtoul(line, &at, 8);
	unsigned long long size = *at == ' ' ? strtoull(at + 1, &at, 10) : 0;
	long long seconds = *at == ' ' ? strtoll(at + 1, &at, 10) : 0;
	char fraction[10] = "000000000";
	size_t digits = *at == '.' ? strspn(at + 1, "0123456789") : 0;
	memcpy(fraction, digits ? at + 1 : "", digits < 9 ? digits : 9);
	at += digits ? digits + 1 : 0;
	if (*at != ' ')
		return NULL;
	*ret = (struct sba_snapshot_file){ .mode = (uint32_t)(mode & 07777),
					   .size = size,
					   .mtime_ns = sba_time_ns(seconds,
								   strtoll(fraction, NULL, 10)) };
	return at + 1;
}

struct telling {
	struct list hashes;
	uint64_t hash_max;
	sba_snapshot_fn *tell;
	void *user;
};

/* What has no hash, though it is small, could not be read. */
static int tell_file(const struct telling *t, struct sba_snapshot_file *f, struct sba_error *err)
{
	char hex[SBA_SHA256_HEX] = "";
	const struct hash key = { .path = f->path };
	const struct hash *h = t->hashes.n && !f->link ? bsearch(&key, t->hashes.v, t->hashes.n,
								 sizeof(key), by_path)
						       : NULL;
	f->mode |= f->link ? S_IFLNK : S_IFREG;
	f->sha256 = hex;
	if (h)
		memcpy(hex, h->hex, sizeof(hex) - 1);
	else if (!f->link && f->size <= t->hash_max)
		f->mode = 0;
	return t->tell(t->user, f, err);
}

static int take_files(const struct telling *t, const char *at, const char *end,
		      struct sba_error *err)
{
	const char *line, *link;
	int rc = 0;
	while (rc == 0 && (line = next(&at, end)) && (link = next(&at, end))) {
		struct sba_snapshot_file f;
		const char *path = take_line(line, &f);
		if (!path)
			return sba_fail(err, SBA_EPROTO, "find does not print what it should");
		f.path = path;
		f.link = *link ? link : NULL;
		rc = tell_file(t, &f, err);
	}
	return rc;
}

/* The empty name that ends the first list, which has two strings for each file. */
static const char *find_middle(const char *at, const char *end)
{
	const char *line = at;
	while ((line = next(&at, end)) && *line) {
		if (!next(&at, end))
			return NULL;
	}
	return line;
}

static int take_all(struct telling *t, const struct sba_run_result *r, struct sba_error *err)
{
	const char *end = r->out + r->out_len, *middle = find_middle(r->out, end);
	if (r->dropped)
		return sba_fail(err, SBA_ELIMIT, "the list of files is longer than %d MiB",
				OUTPUT_MAX / SBA_MIB);
	if (!middle)
		return sba_fail(err, SBA_EPROTO, "the list of files is cut");
	int rc = take_hashes(middle + 1, end, &t->hashes, err);
	return rc < 0 ? rc : take_files(t, r->out, middle, err);
}

static int status_of(const struct sba_exit *end, struct sba_error *err)
{
	if (end->kind == SBA_TIMED_OUT)
		return sba_fail(err, SBA_ETIMEOUT, "find and sha256sum did not end in time");
	if (end->kind == SBA_EXITED && end->number == NO_FOLDER)
		return sba_fail(err, SBA_ENOTFOUND, "no such folder");
	if (end->kind == SBA_EXITED && end->number == 0)
		return 0;
	return sba_fail(err, SBA_EUNSUPPORTED,
			"there is neither a guest inside nor find, xargs and sha256sum of GNU to "
			"look through its files");
}

int sba_commands_snapshot(struct sba_sandbox *s, const struct sba_snapshot_options *o,
			  sba_snapshot_fn *tell, void *user, struct sba_error *err)
{
	char limit[32];
	const uint64_t most = o->max_file_size ? o->max_file_size : SBA_HASHED_MAX;
	struct telling t = { .hash_max = most < INT64_MAX ? most : INT64_MAX - 1,
			     .tell = tell,
			     .user = user };
	const char *script = o->everything ? SCRIPT("-name .git") : SCRIPT(SKIPPED);
	const char *folder = o->folder ? o->folder : sba_sandbox_workdir(s);
	const char *const argv[] = { "sh", "-c", script, "sh", folder, limit, NULL };
	const struct sba_run_options run = { .argv = argv,
					     .workdir = "/",
					     .timeout_ms = sba_timeout_of(
						     sba_transfer_until(s, o->timeout_ms), -1),
					     .max_output = OUTPUT_MAX };
	struct sba_run_result r = { 0 };
	if (o->gitignore)
		return sba_fail(err, SBA_EUNSUPPORTED,
				"without a guest inside nothing reads .gitignore files");
	snprintf(limit, sizeof(limit), "%llu", (unsigned long long)t.hash_max + 1);
	int rc = sba_sandbox_run(s, &run, &r, err);
	if (rc == 0)
		rc = status_of(&r.exit, err);
	if (rc == 0)
		rc = take_all(&t, &r, err);
	free(t.hashes.v);
	sba_run_result_fini(&r);
	return rc;
}
