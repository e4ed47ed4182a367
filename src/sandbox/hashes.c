/* SPDX-License-Identifier: MIT */
/*
 * What snapshots of a local sandbox have told, kept by its handle: lists as the guest takes
 * them, one for each of the last folders. Nothing inside can write it.
 */
#include <stdlib.h>
#include <string.h>

#include "sandbox/snapshot.h"

enum { FOLDERS_MAX = 8 };

struct known_folder {
	char *folder; /* NULL: none */
	struct sba_buf list;
	uint64_t used; /* when, by a clock that counts uses */
};

struct sba_hashes {
	pthread_mutex_t lock; /* of all below */
	struct known_folder v[FOLDERS_MAX];
	uint64_t clock;
};

int sba_hashes_new(struct sba_hashes **ret, struct sba_error *err)
{
	struct sba_hashes *h = calloc(1, sizeof(*h));
	if (!h)
		return sba_fail_nomem(err);
	pthread_mutex_init(&h->lock, NULL);
	*ret = h;
	return 0;
}

static void forget(struct known_folder *k)
{
	free(k->folder);
	if (k->folder)
		sba_buf_fini(&k->list);
	*k = (struct known_folder){ 0 };
}

void sba_hashes_free(struct sba_hashes *h)
{
	if (!h)
		return;
	for (size_t i = 0; i < FOLDERS_MAX; i++)
		forget(&h->v[i]);
	pthread_mutex_destroy(&h->lock);
	free(h);
}

/* That of the folder, else the one that was not used for longest. */
static struct known_folder *place_of(struct sba_hashes *h, const char *folder)
{
	struct known_folder *oldest = &h->v[0];
	for (size_t i = 0; i < FOLDERS_MAX; i++) {
		if (h->v[i].folder && strcmp(h->v[i].folder, folder) == 0)
			return &h->v[i];
		if (h->v[i].used < oldest->used)
			oldest = &h->v[i];
	}
	return oldest;
}

/* Whoever looks has it for himself; another who looks meanwhile reads more. */
static struct known_folder take(struct sba_hashes *h, const char *folder)
{
	struct known_folder taken = { .list = SBA_BUF_INIT(SBA_CHANNEL_GIVEN_MAX) };
	pthread_mutex_lock(&h->lock);
	struct known_folder *k = place_of(h, folder);
	if (k->folder && strcmp(k->folder, folder) == 0) {
		taken = *k;
		*k = (struct known_folder){ 0 };
	}
	pthread_mutex_unlock(&h->lock);
	return taken;
}

static void put_back(struct sba_hashes *h, const char *folder, struct known_folder *take_k)
{
	struct known_folder old = { 0 };
	if (!take_k->folder)
		take_k->folder = strdup(folder);
	if (!take_k->folder || take_k->list.failed) {
		sba_buf_fini(&take_k->list);
		free(take_k->folder);
		return;
	}
	pthread_mutex_lock(&h->lock);
	struct known_folder *k = place_of(h, folder);
	old = *k;
	*k = *take_k;
	k->used = ++h->clock;
	pthread_mutex_unlock(&h->lock);
	forget(&old);
}

int sba_hashes_snapshot(struct sba_sandbox *s, struct sba_hashes *h,
			const struct sba_snapshot_options *o, sba_snapshot_fn *tell, void *user,
			struct sba_error *err)
{
	const char *folder = o->folder ? o->folder : sba_sandbox_workdir(s);
	struct known_folder k = take(h, folder);
	struct sba_records r;
	const struct sba_look q = {
		.folder = folder,
		.flags = sba_snapshot_flags(o),
		.hash_max = o->max_file_size,
		.given = &k.list,
		.until = sba_transfer_until(s, o->timeout_ms),
	};
	int rc = sba_look(s, &q, &r, err);
	if (rc == 0 && sba_snapshot_read(&r) > 0) {
		sba_buf_reset(&k.list);
		sba_snapshot_list(&r, &k.list);
	}
	put_back(h, folder, &k);
	if (rc == 0) {
		rc = sba_snapshot_tell(&r, tell, user, err);
		sba_records_fini(&r);
	}
	return rc;
}
