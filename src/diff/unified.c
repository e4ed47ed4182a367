/* SPDX-License-Identifier: MIT */
/* Lines that changed, as hunks of a unified diff. */
#include <string.h>

#include "diff/private.h"

enum { CONTEXT = 3 };

/* Lines from..to of both sides. */
struct span {
	size_t a_from, a_to, b_from, b_to;
};

/* The next lines that changed together, from where *s ends; false: there are none. */
static bool next_change(const struct sba_diff_lines *a, const struct sba_diff_lines *b,
			struct span *s)
{
	size_t i = s->a_to, j = s->b_to;
	while (i < a->n && j < b->n && !a->changed[i] && !b->changed[j]) {
		i++;
		j++;
	}
	*s = (struct span){ i, i, j, j };
	while (s->a_to < a->n && a->changed[s->a_to])
		s->a_to++;
	while (s->b_to < b->n && b->changed[s->b_to])
		s->b_to++;
	return s->a_to > s->a_from || s->b_to > s->b_from;
}

static void put_line(struct sba_buf *out, char sign, const struct sba_diff_line *l)
{
	sba_buf_putc(out, sign);
	sba_buf_put(out, l->data, l->len);
	if (l->data[l->len - 1] != '\n')
		sba_buf_puts(out, "\n\\ No newline at end of file\n");
}

/* Of no lines the number is that of the one before. */
static void put_range(struct sba_buf *out, char sign, size_t from, size_t to)
{
	sba_buf_printf(out, " %c%zu", sign, from + (to > from));
	if (to - from != 1)
		sba_buf_printf(out, ",%zu", to - from);
}

/* The lines of a that stay are those of b. */
static void put_body(const struct sba_diff_lines *a, const struct sba_diff_lines *b,
		     const struct span *hunk, struct sba_buf *out)
{
	size_t i = hunk->a_from, j = hunk->b_from;
	while (i < hunk->a_to || j < hunk->b_to) {
		if (i < hunk->a_to && a->changed[i])
			put_line(out, '-', &a->v[i++]);
		else if (j < hunk->b_to && b->changed[j])
			put_line(out, '+', &b->v[j++]);
		else {
			put_line(out, ' ', &a->v[i++]);
			j++;
		}
	}
}

/* The hunk that begins with the change: with all that are near, and what is around
 * them. `change` is the first one that is not in it afterwards. */
static struct span gather(const struct sba_diff_lines *a, const struct sba_diff_lines *b,
			  struct span *change, bool *more)
{
	size_t before = change->a_from < CONTEXT ? change->a_from : CONTEXT;
	struct span hunk = *change;
	hunk.a_from -= before;
	hunk.b_from -= before;
	do {
		hunk.a_to = change->a_to;
		hunk.b_to = change->b_to;
		*more = next_change(a, b, change);
	} while (*more && change->a_from - hunk.a_to <= 2 * (size_t)CONTEXT);
	size_t after = a->n - hunk.a_to < CONTEXT ? a->n - hunk.a_to : CONTEXT;
	hunk.a_to += after;
	hunk.b_to += after;
	return hunk;
}

static void put_hunks(const struct sba_diff_lines *a, const struct sba_diff_lines *b,
		      struct sba_buf *out)
{
	struct span change = { 0, 0, 0, 0 };
	bool more = next_change(a, b, &change);
	while (more) {
		struct span hunk = gather(a, b, &change, &more);
		sba_buf_puts(out, "@@");
		put_range(out, '-', hunk.a_from, hunk.a_to);
		put_range(out, '+', hunk.b_from, hunk.b_to);
		sba_buf_puts(out, " @@\n");
		put_body(a, b, &hunk, out);
	}
}

int sba_diff_hunks(const struct sba_diff_text *old, const struct sba_diff_text *fresh,
		   struct sba_buf *out, struct sba_diff_count *ret, struct sba_error *err)
{
	struct sba_diff_count n = { 0 };
	struct sba_diff_lines a, b;
	int rc = sba_diff_lines_of(old, fresh, &a, &b, err);
	if (rc < 0)
		return rc;
	rc = sba_diff_compare(&a, &b, err);
	for (size_t i = 0; i < a.n; i++)
		n.removed += a.changed[i];
	for (size_t i = 0; i < b.n; i++)
		n.added += b.changed[i];
	if (rc == 0 && out) {
		put_hunks(&a, &b, out);
		rc = sba_buf_check(out, "a diff", err);
	}
	sba_diff_lines_fini(&a);
	sba_diff_lines_fini(&b);
	if (rc == 0 && ret)
		*ret = n;
	return rc;
}
