/* SPDX-License-Identifier: MIT */
/*
 * What goes wrong with the real ssh on the way to an engine. Anywhere: nobody listens,
 * there is no ssh. Where DOCKER_HOST is ssh:// (`ci/engines run ssh`, and `run
 * ssh-forward`, where there is no docker program at the other end) also what a host
 * says: an unknown key of its, a key of ours that it does not take, no engine there; and
 * an ssh, or an engine behind it, that goes in the middle.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/live.h"

#include <arpa/inet.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *host; /* ssh://…; NULL: there is none */

/* ps by an ssh with that configuration of its own; NULL: as it is. */
static void ps_by(struct live_child *c, const char *to, const char *config)
{
	static char path[512], docker_host[512];
	char script[256], file[64];
	snprintf(file, sizeof(file), "%s", live_path("config"));
	snprintf(script, sizeof(script), "#!/bin/sh\nexec /usr/bin/ssh -F %s \"$@\"\n", file);
	if (config) {
		live_write_file(file, config, strlen(config), 0600);
		live_write_file(live_path("ssh"), script, strlen(script), 0700);
	}
	snprintf(path, sizeof(path), "PATH=%s%s%s", config ? live.dir : "", config ? ":" : "",
		 getenv("PATH"));
	snprintf(docker_host, sizeof(docker_host), "DOCKER_HOST=%s", to);
	const char *const env[] = { path, docker_host, "SSH_AUTH_SOCK", NULL };
	live_start(c,
		   &(struct live_start){ .argv = (const char *const[]){ "ps", NULL }, .env = env });
	live_child_end(c, 60000);
}

/* ---- anywhere ---- */

/* A port of loopback that is taken, and at which nobody listens. */
static int deaf_port(int *ret_fd)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(a);
	*ret_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(*ret_fd, (struct sockaddr *)&a, len), 0);
	assert_int_equal(getsockname(*ret_fd, (struct sockaddr *)&a, &len), 0);
	return ntohs(a.sin_port);
}

static void a_host_at_which_nobody_listens_is_said(void **state)
{
	(void)state;
	char to[64];
	LIVE_CHILD c;
	SBA_CLOSE int fd = -1;
	snprintf(to, sizeof(to), "ssh://me@127.0.0.1:%d", deaf_port(&fd));
	ps_by(&c, to, "LogLevel ERROR\n");
	live_assert_says(&c, 3, "Connection refused");
	assert_non_null(strstr(c.err.data, "ssh -l me -p "));
}

static void without_an_ssh_program_that_is_said(void **state)
{
	(void)state;
	const char *const env[] = { "PATH=/nowhere", "DOCKER_HOST=ssh://me@127.0.0.1", NULL };
	LIVE_CHILD c;
	live_start(&c,
		   &(struct live_start){ .argv = (const char *const[]){ "ps", NULL }, .env = env });
	live_child_end(&c, 60000);
	live_assert_says(&c, 3, "cannot run the ssh program");
}

/* ---- with a host ---- */

static void an_unknown_host_is_not_trusted(void **state)
{
	(void)state;
	LIVE_CHILD c;
	ps_by(&c, host,
	      "UserKnownHostsFile /dev/null\nStrictHostKeyChecking yes\nLogLevel ERROR\n");
	live_assert_says(&c, 3, "Host key verification failed");
	assert_non_null(strstr(c.err.data, "by hand ssh asks"));
}

static void a_key_that_the_host_does_not_take_is_said(void **state)
{
	(void)state;
	LIVE_CHILD c;
	ps_by(&c, host,
	      "UserKnownHostsFile /dev/null\nStrictHostKeyChecking no\nLogLevel ERROR\n"
	      "IdentityFile none\nIdentitiesOnly yes\nPreferredAuthentications publickey\n");
	live_assert_says(&c, 3, "Permission denied");
	assert_non_null(strstr(c.err.data, "ssh-add"));
}

/* The same host, and another socket there. */
static const char *to_socket(const char *path)
{
	static char to[512];
	snprintf(to, sizeof(to), "%.*s%s", (int)strcspn(host + strlen("ssh://"), "/") + 6, host,
		 path);
	return to;
}

static void a_socket_that_is_not_there_is_said(void **state)
{
	(void)state;
	LIVE_CHILD c;
	ps_by(&c, to_socket("/no/such.sock"), NULL);
	live_assert_says(&c, 3, "/no/such.sock");
	assert_null(strstr(c.err.data, ": ssh: "));
	assert_non_null(strstr(c.err.data, "start it there:  ssh "));
}

/* A long command, by that engine. */
static void start_long(struct live_child *c, const char *to)
{
	static char docker_host[512];
	const char *const argv[] = { "--prefix", live.prefix, "exec", "far-finch",
				     "--",       "sh",        "-c",   "echo begun; exec sleep 300",
				     NULL };
	snprintf(docker_host, sizeof(docker_host), "DOCKER_HOST=%s", to);
	const char *const env[] = { docker_host, NULL };
	live_start(c, &(struct live_start){ .argv = argv, .env = env });
	live_child_await(c, "begun", 60000);
}

/* The host sees our /tmp, and so the socket between us and its engine. */
static void an_engine_that_dies_behind_a_living_ssh_is_told_as_such(void **state)
{
	(void)state;
	struct sba_sandbox *s = live_sandbox((struct sba_sandbox_options){ .name = "far-finch" });
	struct live_proxy *p = live_proxy_start();
	LIVE_CHILD c;
	start_long(&c, to_socket(live_proxy_host(p) + strlen("unix://")));
	live_proxy_cut(p);
	live_child_end(&c, 90000);
	live_assert_says(&c, 125, "no engine answers at ssh://");
	assert_null(strstr(c.err.data, ": ssh: "));
	assert_non_null(strstr(c.err.data, "start it there:  ssh "));
	live_proxy_stop(p);
	live_remove(s);
}

/* Those of one process; it has no other children than ssh, of which one may be ending. */
static void kill_children(pid_t pid)
{
	char script[160];
	snprintf(script, sizeof(script),
		 "cat /proc/%d/task/*/children | tr ' ' '\\n' | grep . | xargs kill -9", (int)pid);
	LIVE_CHILD c;
	live_start(&c, &(struct live_start){ .program = "sh",
					     .argv = (const char *const[]){ "-c", script, NULL } });
	live_child_end(&c, 20000);
}

static void a_command_whose_ssh_goes_has_not_ended_well(void **state)
{
	(void)state;
	struct sba_sandbox *s = live_sandbox((struct sba_sandbox_options){ .name = "far-finch" });
	LIVE_CHILD c;
	start_long(&c, host);
	kill_children(c.pid);
	live_child_end(&c, 90000);
	live_assert_says(&c, 125, "broke: ssh: it was killed");
	live_remove(s);
}

int main(void)
{
	const struct CMUnitTest anywhere[] = {
		LIVE_TEST(a_host_at_which_nobody_listens_is_said),
		LIVE_TEST(without_an_ssh_program_that_is_said),
	};
	const struct CMUnitTest by_ssh[] = {
		LIVE_TEST(a_host_at_which_nobody_listens_is_said),
		LIVE_TEST(without_an_ssh_program_that_is_said),
		LIVE_TEST(an_unknown_host_is_not_trusted),
		LIVE_TEST(a_key_that_the_host_does_not_take_is_said),
		LIVE_TEST(a_socket_that_is_not_there_is_said),
		LIVE_TEST(an_engine_that_dies_behind_a_living_ssh_is_told_as_such),
		LIVE_TEST(a_command_whose_ssh_goes_has_not_ended_well),
		cmocka_unit_test(live_nothing_is_left),
	};
	const char *set = getenv("DOCKER_HOST");
	if (!set || !sba_starts_with(set, "ssh://"))
		return live_run(anywhere, live_begin, live_end);
	host = set;
	return live_run(by_ssh, live_begin, live_end);
}
