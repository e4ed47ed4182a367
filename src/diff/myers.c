/* SPDX-License-Identifier: MIT */
/*
 * The shortest way from one sequence of lines to another: E. W. Myers, "An O(ND)
 * Difference Algorithm and Its Variations" (1986), in linear space: the middle of the
 * way is found from both ends, then the two halves. Where the way is very long it is cut
 * at what is furthest so far: still right, no longer the shortest.
 */
#include <stdlib.h>
#include <string.h>

#include "diff/private.h"

enum {
	COST_MIN = 256, /* so many steps are always tried */
	UNREACHED = INT32_MIN / 2,
	UNREACHED_BACK = INT32_MAX / 2,
};

/* Diagonal k is where the line of a, less that of b, is k. */
struct search {
	const uint32_t *a, *b;
	bool *a_changed, *b_changed;
	int32_t *forward, *backward; /* by diagonal: the furthest line of a */
	int32_t cost_max;
};

struct box {
	int32_t a_from, a_to, b_from, b_to;
};

struct point {
	int32_t a, b;
};

/* The diagonals that a search has reached. */
struct reach {
	int32_t low, high;
};

static bool within(const struct box *x, int32_t a, int32_t b)
{
	return a >= x->a_from && a <= x->a_to && b >= x->b_from && b <= x->b_to;
}

/* One more at each end, or one less where the box ends. */
static void widen(struct reach *r, const struct box *x, int32_t *v, int32_t unreached)
{
	int32_t low = x->a_from - x->b_to, high = x->a_to - x->b_from;
	if (r->low > low)
		v[--r->low - 1] = unreached;
	else
		++r->low;
	if (r->high < high)
		v[++r->high + 1] = unreached;
	else
		--r->high;
}

/* True: it met the other search at *ret. */
static bool step_forward(const struct search *s, const struct box *x, struct reach *r,
			 const struct reach *other, struct point *ret)
{
	bool odd = ((x->a_from - x->b_from) - (x->a_to - x->b_to)) & 1;
	widen(r, x, s->forward, UNREACHED);
	for (int32_t k = r->high; k >= r->low; k -= 2) {
		int32_t left = s->forward[k - 1] + 1, above = s->forward[k + 1];
		int32_t a = left > above ? left : above, b = a - k;
		if (!within(x, a, b)) {
			s->forward[k] = UNREACHED;
			continue;
		}
		while (a < x->a_to && b < x->b_to && s->a[a] == s->b[b]) {
			a++;
			b++;
		}
		s->forward[k] = a;
		if (odd && k >= other->low && k <= other->high && s->backward[k] <= a) {
			*ret = (struct point){ a, b };
			return true;
		}
	}
	return false;
}

static bool step_backward(const struct search *s, const struct box *x, struct reach *r,
			  const struct reach *other, struct point *ret)
{
	bool odd = ((x->a_from - x->b_from) - (x->a_to - x->b_to)) & 1;
	widen(r, x, s->backward, UNREACHED_BACK);
	for (int32_t k = r->high; k >= r->low; k -= 2) {
		int32_t below = s->backward[k - 1], right = s->backward[k + 1] - 1;
		int32_t a = below < right ? below : right, b = a - k;
		if (!within(x, a, b)) {
			s->backward[k] = UNREACHED_BACK;
			continue;
		}
		while (a > x->a_from && b > x->b_from && s->a[a - 1] == s->b[b - 1]) {
			a--;
			b--;
		}
		s->backward[k] = a;
		if (!odd && k >= other->low && k <= other->high && a <= s->forward[k]) {
			*ret = (struct point){ a, b };
			return true;
		}
	}
	return false;
}

/* The point that the search from the beginning has brought furthest. */
static struct point furthest(const struct search *s, const struct box *x, const struct reach *r)
{
	struct point best = { x->a_from, x->b_from };
	for (int32_t k = r->low; k <= r->high; k += 2) {
		int32_t a = s->forward[k], b = a - k;
		if (within(x, a, b) && (int64_t)a + b > (int64_t)best.a + best.b)
			best = (struct point){ a, b };
	}
	return best;
}

static struct point find_middle(const struct search *s, const struct box *x)
{
	int32_t first = x->a_from - x->b_from, last = x->a_to - x->b_to;
	struct reach forward = { first, first }, backward = { last, last };
	struct point middle;
	s->forward[first] = x->a_from;
	s->backward[last] = x->a_to;
	for (int32_t cost = 0; cost < s->cost_max; cost++) {
		if (step_forward(s, x, &forward, &backward, &middle) ||
		    step_backward(s, x, &backward, &forward, &middle))
			return middle;
	}
	return furthest(s, x, &forward);
}

static void trim(const struct search *s, struct box *x)
{
	while (x->a_from < x->a_to && x->b_from < x->b_to && s->a[x->a_from] == s->b[x->b_from]) {
		x->a_from++;
		x->b_from++;
	}
	while (x->a_from < x->a_to && x->b_from < x->b_to &&
	       s->a[x->a_to - 1] == s->b[x->b_to - 1]) {
		x->a_to--;
		x->b_to--;
	}
}

static void mark(const struct search *s, const struct box *x)
{
	for (int32_t i = x->a_from; i < x->a_to; i++)
		s->a_changed[i] = true;
	for (int32_t i = x->b_from; i < x->b_to; i++)
		s->b_changed[i] = true;
}

static int64_t area(const struct box *x)
{
	return (int64_t)(x->a_to - x->a_from) + (x->b_to - x->b_from);
}

/* The smaller half by recursion, the larger one in the loop: so deep as the logarithm
 * of the lines. */
static void solve(const struct search *s, struct box x)
{
	for (;;) {
		trim(s, &x);
		if (x.a_from == x.a_to || x.b_from == x.b_to)
			break;
		struct point m = find_middle(s, &x);
		struct box head = { x.a_from, m.a, x.b_from, m.b };
		struct box tail = { m.a, x.a_to, m.b, x.b_to };
		if (area(&head) == 0 || area(&tail) == 0)
			break;
		bool head_first = area(&head) < area(&tail);
		solve(s, head_first ? head : tail);
		x = head_first ? tail : head;
	}
	mark(s, &x);
}

static int32_t root_of(size_t n)
{
	int32_t root = 1;
	while ((size_t)root * (size_t)root < n)
		root *= 2;
	return root;
}

int sba_diff_compare(struct sba_diff_lines *a, struct sba_diff_lines *b, struct sba_error *err)
{
	size_t diagonals = a->n + b->n + 5;
	int32_t root = root_of(a->n + b->n);
	struct search s = {
		.a = a->id,
		.b = b->id,
		.a_changed = a->changed,
		.b_changed = b->changed,
		.cost_max = root > COST_MIN ? root : COST_MIN,
	};
	SBA_FREE int32_t *forward = calloc(diagonals, sizeof(*forward));
	SBA_FREE int32_t *backward = calloc(diagonals, sizeof(*backward));
	if (!forward || !backward)
		return sba_fail_nomem(err);
	/* From one less than the lowest diagonal on. */
	s.forward = forward + b->n + 2;
	s.backward = backward + b->n + 2;
	solve(&s, (struct box){ 0, (int32_t)a->n, 0, (int32_t)b->n });
	return 0;
}
