/* SPDX-License-Identifier: MIT */
/* Attackers inside and beside a sandbox: see live_attack.h. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "archive/archive.h"
#include "support/live_attack.h"

#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* What is beside a sandbox is not confined by us: a bomb there would be the host's. */
enum { PIDS_BESIDE = 200, MEMORY_BESIDE = 256 * 1024 * 1024 };

enum { STEP_MS = 30 * 1000, WORDS_MAX = 1024 * 1024 };

extern char **environ;

static struct sba_until soon(void)
{
	return sba_until_in(STEP_MS);
}

const char *attacker_program(void)
{
	static char path[128];
	int status;
	pid_t pid;
	if (*path)
		return path;
	snprintf(path, sizeof(path), "%s/attacker", live.dir);
	const char *const argv[] = { "gcc",
				     "-std=c11",
				     "-D_GNU_SOURCE",
				     "-O1",
				     "-static",
				     "-o",
				     path,
				     "tests/fixtures/attacker/attacker.c",
				     NULL };
	assert_int_equal(posix_spawnp(&pid, "gcc", NULL, NULL, (char **)(uintptr_t)argv, environ),
			 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	return path;
}

struct sba_sandbox *attacked_sandbox(struct sba_sandbox_options o)
{
	const char *program = attacker_program();
	struct sba_sandbox *s = live_sandbox(o);
	struct sba_error err = { 0 };
	if (sba_sandbox_upload(s, program, ATTACKER, NULL, NULL, &err) < 0)
		fail_msg("%s", err.text);
	return s;
}

struct sba_process *attack_start(struct sba_sandbox *s, const char *const *argv)
{
	struct sba_process *p = NULL;
	struct sba_error err = { 0 };
	const struct sba_exec_options o = { .argv = argv, .signal_others = true };
	if (sba_sandbox_exec(s, &o, &p, &err) < 0)
		fail_msg("%s", err.text);
	return p;
}

char *attack_words(struct sba_process *p, int64_t ms)
{
	struct sba_buf out = SBA_BUF_INIT(WORDS_MAX);
	int64_t deadline = sba_now_ms() + ms;
	ssize_t n;
	do {
		enum sba_output which;
		const char *data;
		int64_t left = deadline - sba_now_ms();
		n = sba_process_read(p, left > 0 ? left : 0, &which, &data, NULL);
		if (n > 0)
			sba_buf_put(&out, data, (size_t)n);
	} while (n > 0);
	sba_process_free(p);
	char *text = sba_buf_take(&out);
	return text ? text : strdup("");
}

char *attack_run(struct sba_sandbox *s, const char *const *argv, int64_t ms)
{
	return attack_words(attack_start(s, argv), ms);
}

/* ---- beside it ---- */

static int put_attacker(const char *container, struct sba_error *err)
{
	const struct sba_pack_options options = { .fixed_mtime = 0 };
	struct sba_pack *pack = NULL;
	size_t len;
	SBA_FREE char *program = live_read_file(attacker_program(), &len);
	assert_non_null(program);
	int rc = sba_pack_new(&options, &pack, err);
	if (rc == 0)
		rc = sba_pack_bytes(pack, "attacker", program, len, 0755, err);
	if (rc == 0)
		rc = sba_container_put(live.engine, container, "/tmp", sba_pack_read, pack, soon(),
				       err);
	sba_pack_free(pack);
	return rc;
}

void attack_join(struct sba_sandbox *s, char ret_id[SBA_ID_MAX])
{
	char sidecar[SBA_ID_MAX], join[SBA_ID_MAX + 16], prefix[64];
	struct sba_error err = { 0 };
	live_sidecar_of(s, sidecar);
	snprintf(join, sizeof(join), "container:%s", sidecar);
	snprintf(prefix, sizeof(prefix), "%s", live.prefix);
	SBA_JSON json_t *spec = json_pack("{s:s, s:[ss], s:{s:s}, s:{s:s, s:s, s:b, s:i, s:i}}",
					  "Image", live.image, "Entrypoint", ATTACKER, "pause",
					  "Labels", "io.sandbox-agent.prefix", prefix, "HostConfig",
					  "PidMode", join, "NetworkMode", join, "AutoRemove", 1,
					  "PidsLimit", PIDS_BESIDE, "Memory", MEMORY_BESIDE);
	assert_non_null(spec);
	int rc = sba_container_create(live.engine, NULL, spec, soon(), ret_id, &err);
	if (rc == 0)
		rc = put_attacker(ret_id, &err);
	if (rc == 0)
		rc = sba_container_start(live.engine, ret_id, soon(), &err);
	if (rc < 0)
		fail_msg("%s", err.text);
}

char *attack_raw(const char *container, const char *const *argv)
{
	const struct sba_exec_spec spec = { .container = container,
					    .argv = argv,
					    .no_stdin = true };
	struct sba_buf out = SBA_BUF_INIT(WORDS_MAX);
	struct sba_exec *x = NULL;
	struct sba_error err = { 0 };
	if (sba_exec_open(live.engine, &spec, soon(), &x, &err) < 0)
		fail_msg("%s", err.text);
	ssize_t n;
	do {
		enum sba_exec_stream stream;
		const char *data;
		n = sba_exec_read(x, &stream, &data, soon(), NULL);
		if (n > 0)
			sba_buf_put(&out, data, (size_t)n);
	} while (n > 0);
	sba_exec_close(x);
	char *text = sba_buf_take(&out);
	return text ? text : strdup("");
}

/* ---- what became of it ---- */

const char *attacked_reason(const char *name)
{
	static char reason[64];
	const struct sba_list_options o = { .prefix = live.prefix, .all = true, .name = name };
	struct sba_sandbox_list *l = NULL;
	struct sba_error err = { 0 };
	if (sba_sandbox_list(live.engine, &o, &l, &err) < 0)
		fail_msg("%s", err.text);
	*reason = '\0';
	for (size_t i = 0; i < sba_sandbox_list_count(l); i++) {
		const struct sba_sandbox_info *info = sba_sandbox_list_at(l, i);
		if (strcmp(info->state, "gone") == 0)
			snprintf(reason, sizeof(reason), "%s", info->reason);
	}
	sba_sandbox_list_free(l);
	return reason;
}

/* The events of its two ends come one after the other: a reason may still change. */
static size_t still_there(const struct attacked *a, bool *ended)
{
	size_t left = 0;
	for (size_t i = 0; i < a->n; i++) {
		ended[i] = ended[i] || strcmp(attacked_reason(a->names[i]), a->reason) == 0;
		left += !ended[i];
	}
	return left;
}

void attacked_all_end_(const struct attacked *a, int64_t ms, const char *file, int line)
{
	bool ended[ATTACKED_MAX] = { false };
	int64_t deadline = sba_now_ms() + ms;
	assert_true(a->n <= ATTACKED_MAX);
	while (still_there(a, ended) > 0) {
		for (size_t i = 0; sba_now_ms() > deadline && i < a->n; i++) {
			if (ended[i])
				continue;
			print_error("'%s' did not end within %lld ms by '%s'; it is: '%s'\n",
				    a->names[i], (long long)ms, a->reason,
				    attacked_reason(a->names[i]));
			_fail(file, line);
		}
		nanosleep(&(struct timespec){ .tv_nsec = 50 * 1000 * 1000 }, NULL);
	}
}

void attacked_ends_(const char *name, const char *reason, int64_t ms, const char *file, int line)
{
	char names[1][ATTACKED_NAME_MAX];
	snprintf(names[0], sizeof(names[0]), "%s", name);
	attacked_all_end_(&(struct attacked){ names, 1, reason }, ms, file, line);
}
