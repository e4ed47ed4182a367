/* SPDX-License-Identifier: MIT */
/* The Connect protocol's framing: a byte of flags, four of length, a message. */
#include "base/limits.h"
#include "remote/remote.h"

#include <string.h>

void sba_envelopes_init(struct sba_envelopes *e)
{
	*e = (struct sba_envelopes){ 0 };
	sba_buf_init(&e->message, SBA_REMOTE_EVENT_MAX);
}

void sba_envelopes_fini(struct sba_envelopes *e)
{
	sba_buf_fini(&e->message);
}

static void forget(struct sba_envelopes *e)
{
	sba_buf_reset(&e->message);
	e->head_len = 0;
	e->given = false;
}

static void take(struct sba_buf *b, size_t want, const char **data, size_t *len)
{
	size_t n = want < *len ? want : *len;
	sba_buf_put(b, *data, n);
	*data += n;
	*len -= n;
}

int sba_envelopes_next(struct sba_envelopes *e, const char **data, size_t *len, int *ret_flags,
		       const char **ret_message, size_t *ret_len)
{
	if (e->given)
		forget(e);
	while (*len > 0 && e->head_len < sizeof(e->head)) {
		e->head[e->head_len++] = (unsigned char)*(*data)++;
		(*len)--;
	}
	if (e->head_len < sizeof(e->head))
		return 0;
	size_t size = (size_t)sba_be_get(e->head + 1, 4);
	if (size > SBA_REMOTE_EVENT_MAX)
		return SBA_ELIMIT;
	take(&e->message, size - e->message.len, data, len);
	if (e->message.failed)
		return e->message.failed;
	if (e->message.len < size)
		return 0;
	e->given = true;
	*ret_flags = e->head[0];
	*ret_message = e->message.data ? e->message.data : "";
	*ret_len = e->message.len;
	return 1;
}

void sba_envelope_put(struct sba_buf *b, const char *json, size_t len)
{
	unsigned char head[5] = { 0 };
	sba_be_put(head + 1, len, 4);
	sba_buf_put(b, head, sizeof(head));
	sba_buf_put(b, json, len);
}
