/* SPDX-License-Identifier: MIT */
/*
 * A command's stdin, given while its output is read: whoever gives all of it first
 * waits for a command that waits for him.
 */
#include "sandbox/sandbox.h"

struct input {
	const char *data;
	size_t len;
	bool open;
};

/* As much as it takes now. */
static int give(struct sba_process *p, struct input *in, struct sba_error *err)
{
	while (in->len > 0) {
		ssize_t n = sba_process_write(p, in->data, in->len, err);
		if (n <= 0)
			return (int)n;
		in->data += n;
		in->len -= (size_t)n;
	}
	in->open = false;
	return sba_process_close_stdin(p, err);
}

int sba_process_converse(struct sba_process *p, const void *data, size_t len, sba_output_fn *take,
			 void *user, struct sba_error *err)
{
	struct input in = { data, len, data != NULL };
	enum sba_output which;
	const char *output;
	for (;;) {
		int rc = in.open ? give(p, &in, err) : 0;
		if (rc < 0)
			return rc;
		ssize_t n = sba_process_read(p, -1, &which, &output, err);
		if (n == SBA_ETIMEOUT)
			continue; /* there is room for more, or output is dropped from here */
		if (n <= 0)
			return (int)n;
		rc = take(user, which, output, (size_t)n, err);
		if (rc < 0)
			return rc;
	}
}
