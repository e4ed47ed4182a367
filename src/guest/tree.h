/* SPDX-License-Identifier: MIT */
/*
 * The processes of one command: reaps them and ends them. The supervisor is
 * their child subreaper, so every process of the tree hangs below it, and the
 * tree is empty exactly when wait says that there are no children.
 */
#ifndef SBA_GUEST_TREE_H
#define SBA_GUEST_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { SBA_GUEST_KILL_LONG_MS = 15 * 1000 };

struct sba_guest_tree {
	int proc;    /* of sba_guest_proc_open() */
	bool scoped; /* we are in a signal scope that holds nothing but us and the tree */
	pid_t main;  /* the command itself; also its process group and session */
	bool main_ended;
	int status; /* of the command, once main_ended */
	bool empty;
};

/* Buries all that has ended so far. Returns how many that were. */
size_t sba_guest_tree_reap(struct sba_guest_tree *tree);

/* Signals the command's process group. False if nobody is in it any more. */
bool sba_guest_tree_signal(const struct sba_guest_tree *tree, int signo);

/*
 * Kills the tree until it is empty or limit_ms have passed: by the scope first,
 * if there is one, then in passes over /proc. A tree that leaves us too little of the
 * processor for that gets up to SBA_GUEST_KILL_LONG_MS. sigfd is a signalfd of SIGCHLD.
 * Returns how many processes are left.
 */
size_t sba_guest_tree_kill(struct sba_guest_tree *tree, int sigfd, int64_t limit_ms);

#endif
