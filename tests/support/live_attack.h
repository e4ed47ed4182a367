/* SPDX-License-Identifier: MIT */
/*
 * Hostile code in a sandbox: the static program of tests/fixtures/attacker,
 * compiled once, and what became of the sandbox it attacked.
 */
#ifndef SBA_TEST_LIVE_ATTACK_H
#define SBA_TEST_LIVE_ATTACK_H

#include "support/live.h"

#define ATTACKER "/tmp/attacker"

/* Compiles it; its path here. */
const char *attacker_program(void);
/* A sandbox with it inside. */
struct sba_sandbox *attacked_sandbox(struct sba_sandbox_options o);
/* Starts it with these verbs (NULL-ended, ATTACKER first). It may signal others: what
 * it achieves is what it could on a kernel without signal scopes. */
struct sba_process *attack_start(struct sba_sandbox *s, const char *const *argv);
/* Reads it to its end or for so long, and frees it; what it printed. */
char *attack_words(struct sba_process *take_process, int64_t ms);
/* Both in one. The caller frees what it printed. */
char *attack_run(struct sba_sandbox *s, const char *const *argv, int64_t ms);
#define ATTACK(s, ...) attack_run(s, (const char *const[]){ ATTACKER, __VA_ARGS__, NULL }, 10000)

/* A container of the test's own that joins the sandbox's process and network
 * namespace, as root with the engine's default capabilities, and waits. */
void attack_join(struct sba_sandbox *s, char ret_id[SBA_ID_MAX]);
/* Runs the attacker there, as an exec of the engine itself. */
char *attack_raw(const char *container, const char *const *argv);

/* Why a sandbox of this prefix went, "" while it has not; static until the next call. */
const char *attacked_reason(const char *name);
/* All of them are gone within so long, for that reason. Each is asked about all the while:
 * the engine remembers few events, and other tests make their own. */
enum { ATTACKED_NAME_MAX = 32, ATTACKED_MAX = 8 };
struct attacked {
	const char (*names)[ATTACKED_NAME_MAX];
	size_t n;
	const char *reason;
};
void attacked_all_end_(const struct attacked *a, int64_t ms, const char *file, int line);
#define attacked_all_end(a, ms) attacked_all_end_(a, ms, __FILE__, __LINE__)
void attacked_ends_(const char *name, const char *reason, int64_t ms, const char *file, int line);
#define attacked_ends(name, reason, ms) attacked_ends_(name, reason, ms, __FILE__, __LINE__)

#endif
