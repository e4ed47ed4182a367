/* SPDX-License-Identifier: MIT */
/*
 * The state as it will be when the turn has ended, written while the CLI is still about
 * to exit: the engine takes fifty milliseconds for it, as only root may write there.
 */
#include "agent/private.h"

#include <stdlib.h>
#include <string.h>

static void *write_it(void *user)
{
	struct sba_ahead *h = user;
	struct sba_error why = { 0 };
	h->rc = sba_agent_write_state(h->sandbox, h->text, &why);
	if (h->rc < 0)
		sba_log("agent", "state, ahead of its time: %s", why.text);
	return NULL;
}

void sba_ahead_begin(struct sba_ahead *h, struct sba_sandbox *s, char *take_text)
{
	sba_ahead_end(h);
	h->sandbox = s;
	h->text = take_text;
	h->running = sba_thread_start(&h->thread, write_it, h, NULL) == 0;
	if (!h->running)
		sba_ahead_end(h);
}

bool sba_ahead_has(struct sba_ahead *h, const char *text)
{
	if (h->running)
		pthread_join(h->thread, NULL);
	h->running = false;
	bool same = h->text && h->rc == 0 && strcmp(h->text, text) == 0;
	free(h->text);
	h->text = NULL;
	return same;
}

void sba_ahead_end(struct sba_ahead *h)
{
	(void)sba_ahead_has(h, "");
}
