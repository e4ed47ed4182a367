/* SPDX-License-Identifier: MIT */
/* What the cleanup attributes of base.h call. */
#include "base/base.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

void sba_cleanup_free(void *p)
{
	free(*(void **)p);
}

void sba_cleanup_close(int *fd)
{
	if (*fd < 0)
		return;
	int e = errno;
	close(*fd);
	*fd = -1;
	errno = e;
}

void sba_cleanup_fclose(FILE **f)
{
	if (*f)
		fclose(*f);
	*f = NULL;
}

void sba_cleanup_json(json_t **j)
{
	json_decref(*j);
	*j = NULL;
}
