/* SPDX-License-Identifier: MIT */
/* A command, whatever carries it: each call goes to its table; and what both kinds of
 * them do alike. */
#include "sandbox/process.h"

bool sba_output_limit_cut(struct sba_output_limit *l, ssize_t *n)
{
	if (l->left < 0)
		return true;
	if (*n > l->left) {
		l->dropped += (uint64_t)(*n - l->left);
		*n = (ssize_t)l->left;
	}
	l->left -= *n;
	if (*n > 0 || l->told)
		return true;
	l->told = true;
	return false;
}

int64_t sba_process_deadline(int64_t wait_ms)
{
	return wait_ms < 0 ? SBA_NEVER : sba_until_in(wait_ms).deadline_ms;
}

ssize_t sba_process_read(struct sba_process *p, int64_t wait_ms, enum sba_output *which,
			 const char **data, struct sba_error *err)
{
	return p->ops->read(p, wait_ms, which, data, err);
}

ssize_t sba_process_write(struct sba_process *p, const void *data, size_t len,
			  struct sba_error *err)
{
	return p->ops->write(p, data, len, err);
}

int sba_process_close_stdin(struct sba_process *p, struct sba_error *err)
{
	return p->ops->close_stdin(p, err);
}

int sba_process_resize(struct sba_process *p, unsigned short rows, unsigned short columns,
		       struct sba_error *err)
{
	return p->ops->resize(p, rows, columns, err);
}

int sba_process_signal(struct sba_process *p, int signal_number, struct sba_error *err)
{
	return p->ops->send_signal(p, signal_number, err);
}

int sba_process_fd(const struct sba_process *p)
{
	return p->ops->fd(p);
}

short sba_process_events(const struct sba_process *p)
{
	return p->ops->events(p);
}

int sba_process_wait(struct sba_process *p, int64_t wait_ms, struct sba_exit *ret,
		     struct sba_error *err)
{
	return p->ops->wait(p, wait_ms, ret, err);
}

uint64_t sba_process_dropped(const struct sba_process *p)
{
	return p->ops->dropped(p);
}

bool sba_process_output_held(const struct sba_process *p)
{
	return p->ops->output_held(p);
}

void sba_process_losses(const struct sba_process *p, int64_t *ret_oom_kills,
			int64_t *ret_pids_refused)
{
	struct sba_channel_pressure pressure = { 0 };
	if (p->ops->losses)
		p->ops->losses(p, &pressure);
	*ret_oom_kills = (int64_t)pressure.oom_kills;
	*ret_pids_refused = (int64_t)pressure.pids_refused;
}

void sba_process_cancel(struct sba_process *p)
{
	p->ops->cancel(p);
}

void sba_process_free(struct sba_process *p)
{
	if (p)
		p->ops->free(p);
}
