/* SPDX-License-Identifier: MIT */
/*
 * The guest for arm64, where this host is another, run by an emulator. That one (QEMU 7.2)
 * refuses PR_SET_CHILD_SUBREAPER, without which the guest carries no command.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "channel/protocol.h"
#include "image/image.h"
#include "support/folder.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define EMULATOR "/usr/bin/qemu-aarch64-static"

static char dir[64], path[80];

static int prepare(void **state)
{
	struct sba_guest guest;
	(void)state;
	alarm(60);
	if (sba_guest_find("arm64", &guest, NULL) < 0 || access(EMULATOR, X_OK) < 0)
		return 0;
	test_folder(dir, sizeof(dir), "sba-guest-arm64");
	snprintf(path, sizeof(path), "%s/guest", dir);
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
	int rc = fd < 0 ? -1 : sba_write_all(fd, guest.data, guest.len, NULL);
	close(fd);
	return rc;
}

static int clean(void **state)
{
	(void)state;
	if (dir[0])
		test_folder_remove(dir);
	return 0;
}

static void need_guest(void)
{
	if (access(path, X_OK) == 0)
		return;
	print_message("no guest for arm64 in this build, or no " EMULATOR ": see ci/bootstrap\n");
	skip();
}

/* Its exit status, and what it printed. */
static int emulate(const char *command, const char *argument, char *ret, size_t size)
{
	int out[2], status;
	size_t have = 0;
	ssize_t n;
	assert_int_equal(pipe(out), 0);
	pid_t pid = fork();
	if (pid == 0) {
		dup2(out[1], STDOUT_FILENO);
		close(out[0]);
		execl(EMULATOR, EMULATOR, path, command, argument, (char *)NULL);
		_exit(99);
	}
	close(out[1]);
	while (have < size - 1 && (n = read(out[0], ret + have, size - 1 - have)) > 0)
		have += (size_t)n;
	ret[have] = '\0';
	close(out[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void it_says_who_it_is(void **state)
{
	struct sba_guest guest;
	char text[256] = "", wanted[128];
	(void)state;
	need_guest();
	assert_int_equal(emulate("version", NULL, text, sizeof(text)), 0);
	assert_int_equal(sba_guest_find("arm64", &guest, NULL), 0);
	snprintf(wanted, sizeof(wanted), "%d\nprogram %s\nguest %s\n", SBA_PROTOCOL_VERSION,
		 sba_version(), guest.hash);
	assert_memory_equal(text, wanted, strlen(wanted));
}

/* For that it reads all of /proc. */
static void it_looks_at_processes(void **state)
{
	enum { NO_MATCH = 3 };
	char text[64];
	(void)state;
	need_guest();
	assert_int_equal(emulate("kill", "no-such-command", text, sizeof(text)), NO_MATCH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_says_who_it_is),
		cmocka_unit_test(it_looks_at_processes),
	};
	return cmocka_run_group_tests(tests, prepare, clean);
}
