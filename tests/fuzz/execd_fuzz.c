/* SPDX-License-Identifier: MIT */
/* What execd and envd say of a command, in pieces of a size that the first byte says. */
#include "remote/e2b.h"
#include "remote/opensandbox.h"

#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define ID "0123456789abcdef0123456789abcdef"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct sba_remote_command *command(void)
{
	struct sba_remote_command *c = calloc(1, sizeof(*c));
	assert(c);
	c->in = c->stop_fd = c->drop_fd = c->stop_watch = c->drop_watch = -1;
	c->out = open("/dev/null", O_WRONLY | O_CLOEXEC);
	c->err = open("/dev/null", O_WRONLY | O_CLOEXEC);
	c->started_fd = eventfd(0, EFD_CLOEXEC);
	c->ended_fd = eventfd(0, EFD_CLOEXEC);
	sba_buf_init(&c->line, 1 << 20);
	sba_envelopes_init(&c->envelopes);
	for (int i = 0; i < 2; i++)
		memcpy(c->scan[i].id, ID, sizeof(ID));
	return c;
}

static void feed(const char *data, size_t size, size_t cut,
		 int (*decode)(struct sba_remote_command *, const char *, size_t,
			       struct sba_error *))
{
	struct sba_remote_command *c = command();
	struct sba_error err = { 0 };
	int rc = 0;
	for (size_t at = 0; rc == 0 && at < size; at += cut)
		rc = decode(c, data + at, size - at < cut ? size - at : cut, &err);
	if (rc == 0)
		rc = decode(c, NULL, 0, &err);
	assert(rc <= 0 && (rc == 0 || err.text[0]));
	assert(!c->whole || c->over);
	sba_remote_command_free(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2)
		return 0;
	size_t cut = data[0] ? data[0] : 1;
	feed((const char *)data + 1, size - 1, cut, sba_execd_decode);
	feed((const char *)data + 1, size - 1, cut, sba_envd_decode);
	return 0;
}
