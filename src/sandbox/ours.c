/* SPDX-License-Identifier: MIT */
/*
 * Whether a container is ours: its labels and its name must agree, and the
 * sidecar's with them. A member of the pool keeps its labels when it is claimed
 * and changes its name, so there the namespaces that the two share must agree.
 */
#include "sandbox/private.h"

#include <ctype.h>
#include <string.h>

#define JOINED "container:"

bool sba_member_name(const char *name)
{
	size_t len = strlen(SBA_MEMBER), digits = 0;
	if (strncmp(name, SBA_MEMBER, len) != 0)
		return false;
	while (digits < 8 && isxdigit((unsigned char)name[len + digits]))
		digits++;
	return digits == 8;
}

/* What follows "PREFIX-" in a container's name; NULL if it does not begin so. */
static const char *after_prefix(const char *name, const json_t *labels)
{
	const char *prefix = sba_label_get(labels, "prefix");
	size_t len = strlen(prefix);
	bool agrees = name && strncmp(name, prefix, len) == 0 && name[len] == '-';
	return agrees ? name + len + 1 : NULL;
}

static const char *name_of(const json_t *container, const json_t *labels)
{
	const char *name = sba_json_str(container, "Names.#0");
	return name && name[0] == '/' ? after_prefix(name + 1, labels) : NULL;
}

static bool has_role(const json_t *labels, const char *role)
{
	return strcmp(sba_label_get(labels, "role"), role) == 0;
}

static bool names_sidecar(const char *name, const json_t *labels, bool *ret_claimed)
{
	const char *label = sba_label_get(labels, "name");
	size_t len = strlen(label);
	if (!has_role(labels, "sidecar") || !name || strncmp(name, label, len) != 0)
		return false;
	*ret_claimed =
		*sba_label_get(labels, "pool") && strcmp(name + len, SBA_CLAIMED_SUFFIX) == 0;
	return *ret_claimed || strcmp(name + len, SBA_SIDECAR_SUFFIX) == 0;
}

bool sba_ours_sidecar(const json_t *container, bool *ret_claimed)
{
	const json_t *labels = json_object_get(container, "Labels");
	return names_sidecar(name_of(container, labels), labels, ret_claimed);
}

/* Where the sidecar is gone already nothing else can be told. */
static bool joins_its_sidecar(const json_t *list, const json_t *container, const json_t *labels)
{
	const char *mode = sba_json_str(container, "HostConfig.NetworkMode");
	size_t i;
	json_t *c;
	bool claimed;
	if (!mode || !sba_starts_with(mode, JOINED))
		return false;
	json_array_foreach(list, i, c)
	{
		const char *id = sba_json_str(c, "Id");
		if (id && strcmp(id, mode + strlen(JOINED)) == 0)
			return sba_ours_sidecar(c, &claimed) &&
			       strcmp(sba_label_get(json_object_get(c, "Labels"), "id"),
				      sba_label_get(labels, "id")) == 0;
	}
	return true;
}

bool sba_ours_main(const json_t *list, const json_t *container, const char **ret_name)
{
	const json_t *labels = json_object_get(container, "Labels");
	const char *name = name_of(container, labels);
	if (!has_role(labels, "sandbox") || !name)
		return false;
	bool member = *sba_label_get(labels, "pool");
	bool ours = member ? joins_its_sidecar(list, container, labels) &&
				     sba_name_check("sandbox", name, NULL) == 0
			   : strcmp(name, sba_label_get(labels, "name")) == 0;
	if (ours)
		*ret_name = name;
	return ours;
}

bool sba_ours_event(const json_t *attributes)
{
	const char *name = after_prefix(sba_json_str(attributes, "name"), attributes);
	bool claimed;
	if (!name)
		return false;
	if (names_sidecar(name, attributes, &claimed))
		return true;
	/* An event does not tell whose namespace a claimed member shares. */
	return has_role(attributes, "sandbox") &&
	       (*sba_label_get(attributes, "pool") ||
		strcmp(name, sba_label_get(attributes, "name")) == 0);
}

bool sba_member_unclaimed(const struct sba_sandbox *s)
{
	return *s->info.pool && !s->claimed && sba_member_name(s->info.name);
}
