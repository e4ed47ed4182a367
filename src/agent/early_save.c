/* SPDX-License-Identifier: MIT */
/*
 * The state as it will be when the turn has ended, written early: while the CLI is still about
 * to exit: the engine takes fifty milliseconds for it, as only root may write there.
 */
#include "agent/private.h"

#include <stdlib.h>
#include <string.h>

static void *write_it(void *user)
{
	struct sba_early_save *h = user;
	struct sba_error why = { 0 };
	h->rc = sba_agent_write_state(h->sandbox, h->text, &why);
	if (h->rc < 0)
		sba_log("agent", "state, written early: %s", why.text);
	return NULL;
}

void sba_early_save_begin(struct sba_early_save *h, struct sba_sandbox *s, char *take_text)
{
	sba_early_save_end(h);
	h->sandbox = s;
	h->text = take_text;
	h->running = sba_thread_start(&h->thread, write_it, h, NULL) == 0;
	if (!h->running)
		sba_early_save_end(h);
}

bool sba_early_save_has(struct sba_early_save *h, const char *text)
{
	if (h->running)
		pthread_join(h->thread, NULL);
	h->running = false;
	bool same = h->text && h->rc == 0 && strcmp(h->text, text) == 0;
	free(h->text);
	h->text = NULL;
	return same;
}

void sba_early_save_end(struct sba_early_save *h)
{
	(void)sba_early_save_has(h, "");
}
