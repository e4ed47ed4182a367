/* SPDX-License-Identifier: MIT */
/*
 * Notices: what the guest tells unasked, on a stream that stays open. They are only
 * added up, so that however many come, nothing grows.
 */
#include "channel/private.h"

static void take(struct sba_channel *c, const unsigned char notice[SBA_CHANNEL_NOTICE_SIZE])
{
	uint32_t rise = (uint32_t)sba_be_get(notice + 1, 4);
	if (notice[0] == SBA_NOTICE_OOM_KILLS)
		c->pressure.oom_kills += rise;
	else if (notice[0] == SBA_NOTICE_PIDS_REFUSED)
		c->pressure.pids_refused += rise;
}

void sba_notice_put(struct sba_channel_stream *s, const char *data, size_t len)
{
	sba_h2_give_back(s, len);
	for (size_t i = 0; i < len; i++) {
		s->word[s->word_len++] = (unsigned char)data[i];
		if (s->word_len < SBA_CHANNEL_NOTICE_SIZE)
			continue;
		s->word_len = 0;
		take(s->c, s->word);
	}
}

int sba_channel_want_notices(struct sba_channel *c, struct sba_error *err)
{
	struct sba_channel_stream *s;
	int rc = sba_channel_stream_new(c, SBA_STREAM_NOTICES, SBA_CHANNEL_NOTICES, &s, err);
	if (rc < 0)
		return sba_wrap(err, rc, "notices");
	sba_channel_stream_release(s);
	return 0;
}

void sba_channel_pressure(struct sba_channel *c, struct sba_channel_pressure *ret)
{
	pthread_mutex_lock(&c->lock);
	*ret = c->pressure;
	pthread_mutex_unlock(&c->lock);
}
