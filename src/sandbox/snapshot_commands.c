/* SPDX-License-Identifier: MIT */
/*
 * A snapshot where there is no guest: by find and sha256sum inside. What they print becomes
 * records as the guest's, and is checked as those are.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sandbox/kept.h"

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

static void unhex(const char *hex, unsigned char *ret)
{
	static const char digits[] = "0123456789abcdef";
	for (size_t i = 0; i < SBA_SHA256_SIZE; i++)
		ret[i] = (unsigned char)((strchr(digits, hex[2 * i]) - digits) << 4 |
					 (strchr(digits, hex[2 * i + 1]) - digits));
}

/* "MODE SIZE SECONDS.NANOSECONDS PATH"; the path, or NULL. */
static const char *take_line(const char *line, struct sba_file_entry *ret)
{
	char *at;
	unsigned long mode = strtoul(line, &at, 8);
	unsigned long long size = *at == ' ' ? strtoull(at + 1, &at, 10) : 0;
	long long seconds = *at == ' ' ? strtoll(at + 1, &at, 10) : 0;
	char fraction[10] = "000000000";
	size_t digits = *at == '.' ? strspn(at + 1, "0123456789") : 0;
	memcpy(fraction, digits ? at + 1 : "", digits < 9 ? digits : 9);
	at += digits ? digits + 1 : 0;
	if (*at != ' ' || llabs(seconds) > INT64_MAX / 2000000000)
		return NULL;
	*ret = (struct sba_file_entry){ .mode = (uint32_t)(mode & 07777),
					.size = size,
					.mtime_ns = seconds * 1000000000 +
						    strtoll(fraction, NULL, 10) };
	return at + 1;
}

static void put_left_out(struct sba_buf *b, const char *path)
{
	unsigned char head[SBA_RECORD_HEAD] = { SBA_RECORD_LEFT_OUT };
	size_t len = strlen(path);
	sba_be_put(head + 1, len, 2);
	sba_buf_put(b, head, sizeof(head));
	sba_buf_put(b, path, len);
	sba_buf_putc(b, SBA_LEFT_UNREADABLE);
}

/* As the guest would tell of it. */
static void put_file(struct sba_buf *b, const char *path, struct sba_file_entry *e,
		     const struct list *hashes, uint64_t hash_max)
{
	unsigned char head[SBA_CONTENT_HEAD] = { SBA_CONTENT_NOT_ASKED };
	const struct hash key = { .path = path };
	const struct hash *h = hashes->n && !e->link
				       ? bsearch(&key, hashes->v, hashes->n, sizeof(key), by_path)
				       : NULL;
	e->mode |= e->link ? S_IFLNK : S_IFREG;
	if (h) {
		unhex(h->hex, e->sha);
		e->flags = SBA_ENTRY_HASHED;
	} else if (!e->link && e->size <= hash_max) {
		put_left_out(b, path);
		return;
	}
	sba_record_put(b, path, e);
	sba_be_put(head + 1, e->size, 8);
	sba_buf_put(b, head, sizeof(head));
}

static int take_files(const char *at, const char *end, const struct list *hashes, uint64_t hash_max,
		      struct sba_records *ret, struct sba_error *err)
{
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(SBA_MIB);
	const char *line, *link;
	int rc = 0;
	while (rc == 0 && (line = next(&at, end)) && (link = next(&at, end))) {
		struct sba_file_entry e;
		const char *path = take_line(line, &e);
		if (!path || strlen(path) > SBA_RECORD_PATH_MAX)
			return sba_fail(err, SBA_EPROTO, "find does not print what it should");
		e.link = *link ? link : NULL;
		sba_buf_reset(&b);
		put_file(&b, path, &e, hashes, hash_max);
		rc = sba_buf_check(&b, "a record", err);
		if (rc == 0)
			rc = sba_records_feed(ret, b.data, b.len, err);
	}
	return rc == 0 ? sba_records_end(ret, err) : rc;
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

static int take_all(const struct sba_run_result *r, uint64_t hash_max, struct sba_records *ret,
		    struct sba_error *err)
{
	struct list hashes = { .n = 0 };
	const char *end = r->out + r->out_len, *middle = find_middle(r->out, end);
	if (r->dropped)
		return sba_fail(err, SBA_ELIMIT, "the list of files is longer than %d MiB",
				OUTPUT_MAX / SBA_MIB);
	if (!middle)
		return sba_fail(err, SBA_EPROTO, "the list of files is cut");
	int rc = take_hashes(middle + 1, end, &hashes, err);
	if (rc == 0)
		rc = take_files(r->out, middle, &hashes, hash_max, ret, err);
	free(hashes.v);
	return rc;
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

int sba_commands_look(struct sba_sandbox *s, const struct sba_look *look, struct sba_records *ret,
		      struct sba_error *err)
{
	char limit[32];
	bool all = look->flags & SBA_CHANGES_NO_SKIPPED;
	uint64_t hash_max = look->hash_max ? look->hash_max : SBA_HASHED_MAX;
	const char *const argv[] = {
		"sh",  "-c", all ? SCRIPT("-name .git") : SCRIPT(SKIPPED), "sh", look->folder,
		limit, NULL
	};
	const int left = sba_until_left(look->until);
	const struct sba_run_options o = { .argv = argv,
					   .workdir = "/",
					   .timeout_ms = left > 0   ? left
							 : left < 0 ? -1
								    : 1,
					   .max_output = OUTPUT_MAX };
	struct sba_run_result r = { 0 };
	sba_records_init(ret);
	snprintf(limit, sizeof(limit), "%llu", (unsigned long long)hash_max + 1);
	int rc = look->flags & SBA_CHANGES_IGNORE
			 ? sba_fail(err, SBA_EUNSUPPORTED,
				    "without a guest inside nothing reads .gitignore files")
			 : sba_sandbox_run(s, &o, &r, err);
	if (rc == 0)
		rc = status_of(&r.exit, err);
	if (rc == 0)
		rc = take_all(&r, hash_max, ret, err);
	sba_run_result_fini(&r);
	if (rc < 0)
		sba_records_fini(ret);
	return rc < 0 ? sba_wrap(err, rc, "sandbox '%s': files in %s", s->info.name, look->folder)
		      : 0;
}
