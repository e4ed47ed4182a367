/* SPDX-License-Identifier: MIT */
/* The folder of a landing test, and the check that nothing got out. */
#include "support/folder.h"
#include "support/land_world.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { TAR_MAX = 64 << 20, TIME_LIMIT_S = 60 };

void world_path(char *ret, size_t size, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(ret, size, fmt, ap);
	va_end(ap);
	assert_true(n >= 0 && (size_t)n < size);
}

static void in_root(const struct world *w, const char *path, char *ret, size_t size)
{
	world_path(ret, size, "%s/%s", w->root, path);
}

static void write_file(const struct world *w, const char *path, const char *content)
{
	char full[256];
	in_root(w, path, full, sizeof(full));
	int fd = open(full, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, content, strlen(content)), strlen(content));
	close(fd);
}

static void on_refused(void *user, const char *name, enum sba_refusal why)
{
	struct world *w = user;
	(void)why;
	w->told++;
	snprintf(w->last_refused, sizeof(w->last_refused), "%s", name);
}

void world_open(struct world *w, bool no_openat2)
{
	char path[256];
	alarm(TIME_LIMIT_S);
	*w = (struct world){ .no_openat2 = no_openat2 };
	test_folder(w->root, sizeof(w->root), "sba-land");
	in_root(w, "work", path, sizeof(path));
	assert_int_equal(mkdir(path, 0755), 0);
	in_root(w, "outside", w->outside, sizeof(w->outside));
	assert_int_equal(mkdir(w->outside, 0750), 0);
	write_file(w, "outside/victim", "untouched");
	in_root(w, "work/out", w->dest, sizeof(w->dest));
	sba_buf_init(&w->tar, TAR_MAX);
	w->options = (struct sba_land_options){
		.source_name = "s",
		.dest = w->dest,
		.no_openat2 = no_openat2,
		.refused = on_refused,
		.user = w,
	};
}

static void check_outside(const struct world *w)
{
	struct stat st;
	char path[256], content[32] = "";
	assert_int_equal(stat(w->outside, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0750);
	in_root(w, "outside/victim", path, sizeof(path));
	assert_int_equal(lstat(path, &st), 0);
	assert_int_equal(st.st_nlink, 1);
	assert_int_equal(st.st_mode, S_IFREG | 0640);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(read(fd, content, sizeof(content) - 1), 9);
	close(fd);
	assert_string_equal(content, "untouched");
}

static void check_names(const char *dir, const char *only, const char *never)
{
	DIR *d = opendir(dir);
	assert_non_null(d);
	for (const struct dirent *e; (e = readdir(d));) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (only)
			assert_string_equal(e->d_name, only);
		if (never)
			assert_null(strstr(e->d_name, never));
	}
	closedir(d);
}

void world_close(struct world *w)
{
	char work[256];
	in_root(w, "work", work, sizeof(work));
	check_outside(w);
	check_names(w->outside, "victim", NULL);
	check_names(w->root, NULL, "victim");
	if (!w->raced)
		check_names(work, NULL, ".sandbox-agent-");
	test_folder_remove(w->root);
	assert_int_equal(access(w->root, F_OK), -1);
	sba_buf_fini(&w->tar);
	alarm(0);
}

int world_land_from(struct world *w, struct tar_feed *feed)
{
	w->err = (struct sba_error){ 0 };
	w->report = (struct sba_land_report){ 0 };
	return sba_land(&w->options, tar_feed_read, feed, &w->report, &w->err);
}

int world_land(struct world *w)
{
	tar_end(&w->tar);
	struct tar_feed feed = tar_feed_of(&w->tar);
	return world_land_from(w, &feed);
}

static int in_work(const struct world *w, const char *path, struct stat *st)
{
	char full[8192];
	world_path(full, sizeof(full), "%s/work/%s", w->root, path);
	return lstat(full, st);
}

struct stat world_stat(const struct world *w, const char *path)
{
	struct stat st;
	assert_int_equal(in_work(w, path, &st), 0);
	return st;
}

bool world_has(const struct world *w, const char *path)
{
	struct stat st;
	return in_work(w, path, &st) == 0;
}

void world_assert_content(const struct world *w, const char *path, const char *content)
{
	char full[8192];
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(1 << 20);
	world_path(full, sizeof(full), "%s/work/%s", w->root, path);
	assert_int_equal(sba_read_file(full, 1 << 20, &b, NULL), 0);
	assert_int_equal(b.len, strlen(content));
	assert_memory_equal(b.data ? b.data : "", content, b.len);
}

uint64_t world_refused(const struct world *w)
{
	uint64_t n = 0;
	for (int i = 0; i < SBA_REFUSED_KINDS; i++)
		n += w->report.refused[i];
	return n;
}

void world_block_openat2(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { SBA_ARRAY_LEN(filter), filter };
	const struct open_how how = { .flags = O_PATH };
	assert_int_equal(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	assert_int_equal(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
	assert_int_equal(syscall(SYS_openat2, AT_FDCWD, "/", &how, sizeof(how)), -1);
	assert_int_equal(errno, ENOSYS);
}
