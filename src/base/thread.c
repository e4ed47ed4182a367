/* SPDX-License-Identifier: MIT */
/* Threads of the library's own: the program's signals are not theirs. */
#include "base/base.h"

#include <signal.h>

/* Enough for the deepest of ours and the C library's resolver; a hundred sandboxes
 * must not cost a hundred times the usual 8 MiB of address space. */
enum { STACK = 512 * 1024 };

int sba_thread_start(pthread_t *ret, void *(*run)(void *), void *arg, struct sba_error *err)
{
	sigset_t all, before;
	pthread_attr_t attr;
	int e = pthread_attr_init(&attr);
	if (e)
		return sba_fail_errno(err, SBA_ENOMEM, e, "start a thread");
	pthread_attr_setstacksize(&attr, STACK);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	e = pthread_create(ret, &attr, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return e ? sba_fail_errno(err, SBA_ENOMEM, e, "start a thread") : 0;
}
