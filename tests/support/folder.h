/* SPDX-License-Identifier: MIT */
/*
 * Temporary folders of tests. What a failed test left behind goes when its program
 * exits; where a program is killed, whoever gave it a TMPDIR of its own removes that.
 */
#ifndef SBA_TEST_FOLDER_H
#define SBA_TEST_FOLDER_H

#include <stddef.h>

/* A new folder "WORD-XXXXXX" in TMPDIR, else in /tmp; fails the test if there is none to
 * be had. Short enough for the path of a socket in it. */
void test_folder(char *ret, size_t size, const char *word);
/* Removes it with all that is in it. */
void test_folder_remove(const char *path);
/* folder/name, in one buffer. */
const char *test_folder_path(const char *folder, const char *name);

/* A script of sh there, as somebody who has an identity for git and no settings: its
 * status; and one that must succeed. */
int test_folder_sh(const char *path, const char *script);
void test_folder_must_sh(const char *path, const char *script);

#endif
