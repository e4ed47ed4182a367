/* SPDX-License-Identifier: MIT */
/*
 * Locks inside a sandbox: a command that does nothing while its supervisor
 * holds a name. Whatever ends the client ends the command, and lets the name go.
 * Where commands hold no names, those who share the handle exclude each other.
 */
#include <stdlib.h>
#include <string.h>

#include "sandbox/process.h"
#include "sandbox/sandbox.h"

/* A machine that is busy enough takes seconds to end a command; whoever asks next would
 * be refused for a turn that is over. */
enum { RELEASE_MS = 10 * 1000, LOOK_MS = 500 };

struct sba_lock {
	struct sba_process *process; /* NULL: held by the handle */
	struct sba_sandbox *sandbox;
	struct sba_lock *next; /* of the handle's */
	char name[SBA_RUN_LOCK_MAX + 1];
};

/* A year: longer than any sandbox lives. */
static const int64_t for_ever_ms = 365LL * 24 * 3600 * 1000;

int sba_lock_key(const char *id, char *ret, struct sba_error *err)
{
	char text[2 * SBA_NAME_MAX], hash[SBA_SHA256_HEX];
	int len = snprintf(text, sizeof(text), "lock %.*s", SBA_NAME_MAX, id);
	if (sba_sha256_hex(text, (size_t)len, hash) < 0)
		return sba_fail_nomem(err);
	snprintf(ret, SBA_LOCK_KEY_LEN + 1, "%.*s", SBA_LOCK_KEY_LEN, hash);
	return 0;
}

static int await(struct sba_process *process, struct sba_error *err)
{
	struct sba_guest_process *p = (struct sba_guest_process *)process;
	struct sba_exit end;
	int rc = sba_process_await_begin(p, err);
	if (rc < 0 || !p->over)
		return rc;
	rc = sba_process_wait(process, -1, &end, err);
	if (rc < 0)
		return rc;
	if (end.kind == SBA_LOCKED)
		return sba_fail(err, SBA_EBUSY, "another holds it");
	if (end.kind == SBA_WAS_CANCELED)
		return sba_fail(err, SBA_ECANCELED, "interrupted");
	return sba_fail(err, SBA_EBROKEN, "its holder ended at once, with %d",
			sba_exit_status(&end));
}

static int lock_inside(struct sba_lock *l, int64_t wait_ms, struct sba_error *err)
{
	static const char *const argv[] = { SBA_GUEST_PATH, "idle", NULL };
	const struct sba_exec_options o = { .argv = argv,
					    .lock = l->name,
					    .lock_wait_ms = wait_ms };
	int rc = sba_sandbox_exec(l->sandbox, &o, &l->process, err);
	return rc == 0 ? await(l->process, err) : rc;
}

/* ---- held by the handle ---- */

static bool is_held(const struct sba_sandbox *s, const char *name)
{
	const struct sba_lock *l = s->locks;
	while (l && strcmp(l->name, name) != 0)
		l = l->next;
	return l;
}

/* Woken now and then for the token that ends every wait. */
static void wait_a_little(struct sba_sandbox *s, struct sba_until until)
{
	int64_t at = sba_unix_ms() + sba_until_left(sba_until_sooner(until, LOOK_MS));
	const struct timespec t = { at / 1000, at % 1000 * 1000000 };
	pthread_cond_timedwait(&s->unlocked, &s->lock, &t);
}

static int lock_here(struct sba_lock *l, int64_t wait_ms, struct sba_error *err)
{
	struct sba_sandbox *s = l->sandbox;
	struct sba_until until = sba_sandbox_until(s, wait_ms);
	struct sba_error why = { 0 };
	int rc = 0;
	pthread_mutex_lock(&s->lock);
	while (is_held(s, l->name) && (rc = sba_until_check(until, &why)) == 0)
		wait_a_little(s, until);
	if (rc == 0) {
		l->next = s->locks;
		s->locks = l;
	}
	pthread_mutex_unlock(&s->lock);
	if (rc == SBA_ETIMEOUT)
		return sba_fail(err, SBA_EBUSY, "another holds it");
	return rc < 0 ? sba_fail(err, rc, "interrupted") : 0;
}

static void unlock_here(const struct sba_lock *l)
{
	struct sba_sandbox *s = l->sandbox;
	pthread_mutex_lock(&s->lock);
	struct sba_lock **at = &s->locks;
	while (*at && *at != l)
		at = &(*at)->next;
	if (*at)
		*at = l->next;
	pthread_cond_broadcast(&s->unlocked);
	pthread_mutex_unlock(&s->lock);
}

/* ---- both ---- */

int sba_sandbox_lock(struct sba_sandbox *s, const char *name, int64_t wait_ms,
		     struct sba_lock **ret, struct sba_error *err)
{
	struct sba_lock *l = calloc(1, sizeof(*l));
	if (!l)
		return sba_fail_nomem(err);
	l->sandbox = s;
	snprintf(l->name, sizeof(l->name), "%s", name);
	int64_t wait = wait_ms < 0 ? for_ever_ms : wait_ms;
	int rc = strlen(name) >= sizeof(l->name) ? sba_fail(err, SBA_EINVAL, "its name is too long")
		 : sba_sandbox_can(s, SBA_CAN_LOCK) ? lock_inside(l, wait, err)
						    : lock_here(l, wait, err);
	if (rc < 0) {
		sba_lock_free(l);
		return sba_wrap(err, rc, "lock '%s' in sandbox '%s'", name, s->info.name);
	}
	*ret = l;
	return 0;
}

void sba_lock_free(struct sba_lock *l)
{
	struct sba_exit end;
	if (!l)
		return;
	if (!l->process)
		unlock_here(l);
	/* The next one who asks shall find the name free. */
	else if (!((struct sba_guest_process *)l->process)->over) {
		sba_process_cancel(l->process);
		(void)sba_process_wait(l->process, RELEASE_MS, &end, &(struct sba_error){ 0 });
	}
	sba_process_free(l->process);
	free(l);
}
