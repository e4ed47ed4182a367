/* SPDX-License-Identifier: MIT */
/*
 * Reads /proc; see proc.h. The peer inside chooses its comm freely, so a stat
 * line is parsed from its last ')' on.
 */
#include "guest/proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "guest/parse.h"

enum {
	STAT_MAX = 1024,     /* 22 fields and a comm need less than 600 bytes */
	ENTRIES = 32 * 1024, /* some 1,000 names per getdents */
	PGRP_TO_START = 16,  /* the fields between pgrp and starttime */
};

struct cursor {
	const char *at;
	const char *end;
};

/* The next field without the space in front of it; empty if there is none. */
static struct cursor take_field(struct cursor *line)
{
	struct cursor field = { line->at, line->at };

	if (line->at == line->end || *line->at != ' ')
		return field;
	field.at = line->at + 1;
	field.end = field.at;
	while (field.end < line->end && *field.end != ' ' && *field.end != '\n')
		field.end++;
	line->at = field.end;
	return field;
}

static bool take_pid(struct cursor *line, pid_t *ret)
{
	struct cursor field = take_field(line);
	bool negative = field.at < field.end && *field.at == '-';
	uint64_t value;

	field.at += negative;
	if (!sba_guest_parse_number(field.at, (size_t)(field.end - field.at), INT_MAX, &value))
		return false;
	*ret = negative ? -(pid_t)value : (pid_t)value;
	return true;
}

static bool take_start(struct cursor *line, uint64_t *ret)
{
	struct cursor field;

	for (int i = 0; i < PGRP_TO_START; i++)
		take_field(line);
	field = take_field(line);
	/* A number that ends with the buffer may have been cut in its middle. */
	return field.end < line->end &&
	       sba_guest_parse_number(field.at, (size_t)(field.end - field.at), UINT64_MAX, ret);
}

bool sba_guest_stat_parse(const char *text, size_t len, struct sba_guest_stat *ret)
{
	const char *open = memchr(text, '(', len);
	const char *close = memrchr(text, ')', len);
	struct sba_guest_stat stat = { 0 };
	struct cursor line;
	struct cursor state;
	uint64_t pid;

	if (!open || !close || open > close || open == text || open[-1] != ' ')
		return false;
	if (!sba_guest_parse_number(text, (size_t)(open - 1 - text), INT_MAX, &pid))
		return false;
	stat.pid = (pid_t)pid;
	line = (struct cursor){ close + 1, text + len };
	state = take_field(&line);
	if (state.end - state.at != 1)
		return false;
	stat.state = *state.at;
	if (!take_pid(&line, &stat.ppid) || !take_pid(&line, &stat.pgrp) ||
	    !take_start(&line, &stat.start))
		return false;
	*ret = stat;
	return true;
}

bool sba_guest_stat_dead(const struct sba_guest_stat *stat)
{
	return stat->state == 'Z' || stat->state == 'X' || stat->state == 'x';
}

int sba_guest_proc_open(void)
{
	int fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

ssize_t sba_guest_proc_read(int proc, pid_t pid, const char *file, char *buffer, size_t size)
{
	char path[64];
	ssize_t got;
	int fd;
	int err;

	snprintf(path, sizeof(path), "%d/%s", (int)pid, file);
	fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	do {
		got = read(fd, buffer, size);
	} while (got < 0 && errno == EINTR);
	err = errno;
	close(fd);
	return got < 0 ? -err : got;
}

int sba_guest_proc_stat(int proc, pid_t pid, struct sba_guest_stat *ret)
{
	char text[STAT_MAX];
	ssize_t got = sba_guest_proc_read(proc, pid, "stat", text, sizeof(text));

	if (got == -ENOENT || got == -ESRCH)
		return 0;
	if (got < 0)
		return (int)got;
	if (!sba_guest_stat_parse(text, (size_t)got, ret))
		return -EBADMSG;
	/* Reaped between open and read: the kernel then says ppid 0, pgrp -1. */
	return ret->pgrp < 0 ? 0 : 1;
}

static int visit_entries(int proc, const char *entries, size_t len, sba_guest_visit *visit,
			 void *arg)
{
	struct sba_guest_stat stat;
	int first_error = 0;
	uint64_t pid;

	for (size_t at = 0; at < len;) {
		const struct dirent64 *entry = (const void *)(entries + at);
		int rc;

		at += entry->d_reclen;
		if (!sba_guest_parse_number(entry->d_name, strlen(entry->d_name), INT_MAX, &pid))
			continue;
		rc = sba_guest_proc_stat(proc, (pid_t)pid, &stat);
		if (rc > 0)
			visit(&stat, arg);
		else if (rc < 0 && first_error == 0)
			first_error = rc;
	}
	return first_error;
}

int sba_guest_proc_scan(int proc, sba_guest_visit *visit, void *arg)
{
	_Alignas(struct dirent64) char entries[ENTRIES];
	int first_error = 0;
	ssize_t len;

	if (lseek(proc, 0, SEEK_SET) < 0)
		return -errno;
	while ((len = getdents64(proc, entries, sizeof(entries))) > 0) {
		int rc = visit_entries(proc, entries, (size_t)len, visit, arg);

		if (first_error == 0)
			first_error = rc;
	}
	return len < 0 ? -errno : first_error;
}
