/* SPDX-License-Identifier: MIT */
/*
 * The volume that a guest for root comes from. It has no name, so that it goes with the
 * last of the two containers. Somebody who removes them without their volumes, or
 * an engine that dies in between, leaves it behind: by its labels it is found then.
 */
#include "sandbox/making.h"

#include <string.h>

enum { ANONYMOUS_LEN = 64 };

/* Podman (4.3 to 5.4) drops the labels. */
int sba_volume_offer(const struct sba_making *m, json_t *spec)
{
	json_t *mount = json_pack("{s:s, s:s, s:{s:{s:s, s:s}}}", "Type", "volume", "Target",
				  SBA_GUEST_DIR, "VolumeOptions", "Labels", SBA_LABEL "prefix",
				  m->o.prefix, SBA_LABEL "id", m->id);
	json_t *list = json_array();
	int rc = json_array_append_new(list, mount);
	return json_object_set_new(json_object_get(spec, "HostConfig"), "Mounts", list) < 0 ? -1
											    : rc;
}

/* As an engine calls what was given no name. */
static bool is_anonymous(const char *name)
{
	return name && strlen(name) == ANONYMOUS_LEN &&
	       strspn(name, "0123456789abcdef") == ANONYMOUS_LEN;
}

int sba_volumes_sweep(struct sba_engine *e, const char *prefix, struct sba_until until,
		      int *ret_removed, struct sba_error *err)
{
	char by_prefix[SBA_FILTER_MAX];
	SBA_JSON json_t *list = NULL;
	int removed = 0;
	int rc = sba_volume_unused(e, sba_label_of_prefix(by_prefix, prefix), until, &list, err);
	size_t i;
	json_t *one;
	json_array_foreach(list, i, one)
	{
		const char *name = sba_json_str(one, "Name");
		if (rc < 0 || !is_anonymous(name) ||
		    !*sba_label_get(json_object_get(one, "Labels"), "id"))
			continue;
		rc = sba_volume_remove(e, name, until, err);
		removed += rc == 0;
		/* A container has it by now: one that is being made. */
		rc = rc == SBA_EEXIST ? 0 : rc;
	}
	if (ret_removed)
		*ret_removed = removed;
	return rc;
}
