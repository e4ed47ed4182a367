/* SPDX-License-Identifier: MIT */
/*
 * `run` and `chat` without a prompt: the CLI's own screen on our terminal, its size,
 * its keys, its end.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/live.h"

#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

/* A `claude` with a screen of lines: says its size when that changes. */
static const char screen_claude[] = "#!/usr/bin/perl\n"
				    "$| = 1;\n"
				    "$SIG{WINCH} = sub { print 'size ', `stty size`; };\n"
				    "system 'stty raw';\n"
				    "print \"ready $ENV{TERM} \", `stty size`, \"\\e[?1049h\";\n"
				    "exit 9 if grep { $_ eq '-p' } @ARGV;\n"
				    "while (1) {\n"
				    "  next unless sysread STDIN, my $key, 1;\n"
				    "  exit 0 if $key eq 'q';\n"
				    "  exit 3 if $key eq 'x';\n"
				    "  print 'interrupted' if $key eq \"\\x03\";\n"
				    "}\n";

static const char *image(void)
{
	static const char *ref;
	if (!ref)
		ref = live_image("screen", "COPY claude /usr/local/bin/claude\nWORKDIR /workspace",
				 "claude", screen_claude);
	return ref;
}

static void start(struct live_child *c, const char *const *argv, struct termios *ret)
{
	static const char *const env[] = { "TERM=xterm-color", NULL };
	live_start(c, &(struct live_start){ .argv = argv, .env = env, .screen = true });
	assert_int_equal(tcgetattr(c->screen_fd, ret), 0);
	live_child_await(c, "ready xterm-color 24 80", 60000);
}

static void press(struct live_child *c, char key)
{
	assert_int_equal(write(c->screen_fd, &key, 1), 1);
}

static void assert_as_it_was(const struct live_child *c, const struct termios *before)
{
	struct termios now;
	assert_int_equal(tcgetattr(c->screen_fd, &now), 0);
	assert_int_equal(now.c_lflag, before->c_lflag);
	assert_int_equal(now.c_iflag, before->c_iflag);
	assert_int_equal(now.c_oflag, before->c_oflag);
}

static void the_screen_has_our_keys_and_our_size(void **state)
{
	LIVE_CHILD c;
	struct termios before;
	const struct winsize larger = { .ws_row = 40, .ws_col = 100 };
	(void)state;
	const char *const argv[] = { "run", "claude", "--offline", "--image", image(), NULL };
	start(&c, argv, &before);
	press(&c, 3);
	live_child_await(&c, "interrupted", 30000);
	assert_int_equal(ioctl(c.screen_fd, TIOCSWINSZ, &larger), 0);
	live_child_await(&c, "size 40 100", 30000);
	press(&c, 'q');
	live_child_end(&c, 60000);
	assert_int_equal(c.status, 0);
	assert_as_it_was(&c, &before);
	assert_int_equal(live_container_count(), 0);
}

static void an_end_in_the_middle_puts_the_terminal_right(void **state)
{
	LIVE_CHILD failed, killed;
	struct termios before;
	(void)state;
	const char *const argv[] = { "run", "claude", "--offline", "--image", image(), NULL };
	start(&failed, argv, &before);
	press(&failed, 'x');
	live_child_end(&failed, 60000);
	assert_int_equal(failed.status, 3);
	assert_non_null(strstr(failed.out.data, "\033[?1047l"));
	assert_as_it_was(&failed, &before);
	start(&killed, argv, &before);
	kill(killed.pid, SIGTERM);
	live_child_end(&killed, 60000);
	assert_int_equal(killed.status, 143);
	assert_as_it_was(&killed, &before);
	assert_int_equal(live_container_count(), 0);
}

static void a_chats_screen_keeps_turns_away_and_the_sandbox_alive(void **state)
{
	LIVE_CHILD up, screen, turn, ps, rm;
	struct termios before;
	(void)state;
	RUN(&up, "up", "claude", "--offline", "--image", image(), "--name", "standing");
	live_assert_says(&up, 0, NULL);
	const char *const argv[] = { "chat", "standing", NULL };
	start(&screen, argv, &before);
	RUN(&turn, "chat", "standing", "hi");
	live_assert_says(&turn, 1, "is under way");
	press(&screen, 'q');
	live_child_end(&screen, 60000);
	assert_int_equal(screen.status, 0);
	assert_as_it_was(&screen, &before);
	RUN(&ps, "-q", "ps");
	assert_string_equal(ps.out.data, "standing\n");
	RUN(&rm, "rm", "standing");
	live_assert_says(&rm, 0, NULL);
}

static void who_has_no_screen_says_so(void **state)
{
	LIVE_CHILD c, none;
	(void)state;
	const char *const argv[] = { "run", "dsh", "--offline", "--image", live.image, NULL };
	live_start(&c, &(struct live_start){ .argv = argv, .screen = true });
	live_child_end(&c, 60000);
	assert_int_not_equal(c.status, 0);
	assert_non_null(strstr(c.out.data, "dsh has no screen"));
	RUN(&none, "run", "claude", "--offline");
	live_assert_says(&none, 2, "give a prompt");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE_TEST(the_screen_has_our_keys_and_our_size),
		LIVE_TEST(an_end_in_the_middle_puts_the_terminal_right),
		LIVE_TEST(a_chats_screen_keeps_turns_away_and_the_sandbox_alive),
		LIVE_TEST(who_has_no_screen_says_so),
		LIVE_TEST(live_nothing_is_left),
	};
	return live_run(tests, live_begin, live_end);
}
