/* SPDX-License-Identifier: MIT */
/* Aligned tables for people. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

enum { TABLE_COLUMNS_MAX = 8, TABLE_GAP = 2 };

/* Out of memory shows as an empty cell: a table is for people. */
void cli_table_add(struct cli_table *t, const char *const *cells)
{
	char **grown = realloc(t->cells, (t->n + 1) * t->columns * sizeof(*grown));
	if (!grown)
		return;
	t->cells = grown;
	for (size_t c = 0; c < t->columns; c++) {
		const char *cell = cells[c] ? cells[c] : "";
		grown[t->n * t->columns + c] = sba_visible(cell, strlen(cell), true);
	}
	t->n++;
}

static const char *cell_at(const struct cli_table *t, size_t row, size_t column)
{
	const char *cell = t->cells[row * t->columns + column];
	return cell ? cell : "";
}

/* How many columns fit; their widths. */
static size_t measure(const struct cli_table *t, int max_width, int widths[TABLE_COLUMNS_MAX])
{
	int total = 0;
	size_t c;
	for (c = 0; c < t->columns && c < TABLE_COLUMNS_MAX; c++) {
		widths[c] = 0;
		for (size_t r = 0; r < t->n; r++) {
			int w = cli_width(cell_at(t, r, c));
			if (w > widths[c])
				widths[c] = w;
		}
		total += widths[c] + (c ? TABLE_GAP : 0);
		if (c && max_width > 0 && total > max_width)
			break;
	}
	return c;
}

void cli_table_print(const struct cli_table *t, FILE *to, int max_width)
{
	int widths[TABLE_COLUMNS_MAX];
	size_t columns = measure(t, max_width, widths);
	for (size_t r = 0; r < t->n; r++) {
		int gap = 0;
		for (size_t c = 0; c < columns; c++) {
			const char *cell = cell_at(t, r, c);
			if (!cell[0]) {
				gap += widths[c] + TABLE_GAP;
				continue;
			}
			fprintf(to, "%*s%s", gap, "", cell);
			gap = widths[c] - cli_width(cell) + TABLE_GAP;
		}
		fputc('\n', to);
	}
}

void cli_table_fini(struct cli_table *t)
{
	for (size_t i = 0; i < t->n * t->columns; i++)
		free(t->cells[i]);
	free(t->cells);
	*t = (struct cli_table){ 0 };
}
