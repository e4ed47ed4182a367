/* SPDX-License-Identifier: MIT */
/*
 * Starts the command; see child.h. A terminal is used by descriptor only: what
 * the image has at /dev/pts/N is not asked.
 */
#include "guest/child.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "guest/confine.h"
#include "guest/env.h"
#include "guest/path.h"

/* What the child says on the status pipe; nothing at all if the program runs. */
struct failure {
	enum sba_record_kind kind;
	int error;
};

struct plan {
	const struct sba_guest_start *start;
	char **env;
	bool scoped;
	pid_t supervisor;
	int input;       /* our end: pipe or master */
	int child_input; /* the command's: pipe or terminal */
	int status[2];
};

static bool open_terminal(struct plan *plan)
{
	int unlocked = 0;

	plan->input = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
	if (plan->input < 0 || ioctl(plan->input, TIOCSPTLCK, &unlocked) < 0 ||
	    ioctl(plan->input, TIOCSWINSZ, &plan->start->size) < 0)
		return false;
	plan->child_input = ioctl(plan->input, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	return plan->child_input >= 0;
}

static bool open_pipe(struct plan *plan)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return false;
	plan->child_input = ends[0];
	plan->input = ends[1];
	return fcntl(plan->input, F_SETFL, O_NONBLOCK) == 0;
}

static void shut(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void plan_fini(struct plan *plan)
{
	shut(&plan->input);
	shut(&plan->child_input);
	shut(&plan->status[0]);
	shut(&plan->status[1]);
	free(plan->env);
}

static bool plan_init(struct plan *plan, const struct sba_guest_start *start, bool scoped)
{
	char *none[] = { NULL };

	*plan = (struct plan){
		.start = start,
		.scoped = scoped,
		.supervisor = getpid(),
		.input = -1,
		.child_input = -1,
		.status = { -1, -1 },
	};
	sba_guest_env_settle_home();
	plan->env = sba_guest_env_merge(environ, start->env.items ? start->env.items : none);
	return plan->env && (start->tty ? open_terminal(plan) : open_pipe(plan)) &&
	       pipe2(plan->status, O_CLOEXEC) == 0;
}

/* By the kernel's own call: the C library keeps two signals for itself, which may
 * have been inherited ignored all the same. All of the kernel's struct sigaction
 * being zero is the default action. */
static void reset_signals(void)
{
	static const unsigned long action[4];
	sigset_t none;

	for (int signo = 1; signo <= SIGRTMAX; signo++)
		syscall(SYS_rt_sigaction, signo, action, NULL, SIGRTMAX / 8);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static bool join_streams(const struct plan *plan)
{
	if (setsid() < 0 || dup2(plan->child_input, STDIN_FILENO) < 0)
		return false;
	if (!plan->start->tty)
		return true;
	return ioctl(STDIN_FILENO, TIOCSCTTY, 0) == 0 && dup2(STDIN_FILENO, STDOUT_FILENO) >= 0 &&
	       dup2(STDIN_FILENO, STDERR_FILENO) >= 0;
}

static int execute(const char *file, void *arg)
{
	const struct plan *plan = arg;

	execve(file, plan->start->args.items, plan->env);
	return errno;
}

/* A link may lead where a working directory is refused by name: into /proc, or through it
 * to what is beyond the root, which has no path here. */
static int enter(const char *cwd)
{
	static const char proc[] = "/proc";
	char at[PATH_MAX];

	if (chdir(cwd) < 0)
		return errno;
	if (!getcwd(at, sizeof(at))) /* nothing under /proc is as deep */
		return errno == ERANGE || errno == ENAMETOOLONG ? 0 : errno;
	if (strncmp(at, proc, strlen(proc)) != 0)
		return 0;
	return at[strlen(proc)] == '/' || at[strlen(proc)] == '\0' ? EACCES : 0;
}

static struct failure become_command(struct plan *plan)
{
	int err;

	/* A supervisor killed by the agent or for want of memory must not leave a
	 * command behind that nobody watches. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || !join_streams(plan))
		return (struct failure){ SBA_END_CANNOT, errno };
	if (getppid() != plan->supervisor)
		_exit(EXIT_FAILURE);
	err = plan->start->cwd ? enter(plan->start->cwd) : 0;
	if (err)
		return (struct failure){ SBA_END_CWD, err };
	if (!sba_guest_capability_shed() || (plan->scoped && !sba_guest_scope_enter()))
		return (struct failure){ SBA_END_CANNOT, errno };
	reset_signals();
	err = sba_guest_path_search(plan->start->args.items[0],
				    sba_guest_env_get(plan->env, "PATH"), execute, plan);
	return (struct failure){ err == ENOENT ? SBA_END_NOTFOUND : SBA_END_CANNOT, err };
}

_Noreturn static void child_main(struct plan *plan)
{
	struct failure failure = become_command(plan);

	(void)!write(plan->status[1], &failure, sizeof(failure));
	_exit(EXIT_FAILURE);
}

/* True if the child's program runs; else it is dead and buried. */
static bool await_program(const struct plan *plan, pid_t pid, struct sba_guest_end *ret_end)
{
	struct failure failure;
	ssize_t got;

	do {
		got = read(plan->status[0], &failure, sizeof(failure));
	} while (got < 0 && errno == EINTR);
	if (got != (ssize_t)sizeof(failure))
		return true;
	waitpid(pid, NULL, 0);
	*ret_end = (struct sba_guest_end){ failure.kind, (uint64_t)failure.error };
	return false;
}

bool sba_guest_child_start(const struct sba_guest_start *start, bool scoped,
			   struct sba_guest_child *ret, struct sba_guest_end *ret_end)
{
	struct plan plan;
	bool runs = false;
	pid_t pid;

	if (!plan_init(&plan, start, scoped)) {
		*ret_end = (struct sba_guest_end){ SBA_END_CANNOT, (uint64_t)errno };
		plan_fini(&plan);
		return false;
	}
	pid = fork();
	if (pid == 0)
		child_main(&plan);
	shut(&plan.status[1]);
	if (pid < 0)
		*ret_end = (struct sba_guest_end){ SBA_END_FORK, (uint64_t)errno };
	else
		runs = await_program(&plan, pid, ret_end);
	if (runs) {
		*ret = (struct sba_guest_child){ pid, plan.input, start->tty ? plan.input : -1 };
		plan.input = -1;
	}
	plan_fini(&plan);
	return runs;
}
