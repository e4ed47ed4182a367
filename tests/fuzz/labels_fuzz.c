/* SPDX-License-Identifier: MIT */
/*
 * Labels of containers, which whoever makes one may write: read, copied and judged. Each
 * input is a JSON object of them.
 */
#include "sandbox/private.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_all(const json_t *labels)
{
	struct sba_sandbox_info info = { 0 };
	struct sba_error err = { 0 };
	SBA_STRV struct sba_strv words = { 0 };
	sba_labels_read(labels, &info);
	assert(info.name && info.tag && info.allow && info.mounts && info.agent);
	assert(sba_label_words(info.allow, &words, &err) == 0);
	for (size_t i = 0; i < words.n; i++)
		assert(*words.v[i] && !strchr(words.v[i], ' '));
	(void)!sba_label_creator_dead(labels);
}

static void copy(const json_t *labels)
{
	SBA_JSON json_t *role = sba_labels_with_role(labels, "sidecar");
	SBA_JSON json_t *name = sba_labels_with_name(labels, "another");
	assert(role && strcmp(sba_label_get(role, "role"), "sidecar") == 0);
	assert(name && strcmp(sba_label_get(name, "name"), "another") == 0);
}

/* As of two containers in a list, each the other's. */
static void judge(json_t *labels)
{
	const char *name = NULL;
	bool claimed = false;
	SBA_JSON json_t *list =
		json_pack("[{s:s, s:[s], s:O}, {s:s, s:[s], s:O}]", "Id", "1", "Names", "/p-n",
			  "Labels", labels, "Id", "2", "Names", "/p-n-sidecar", "Labels", labels);
	assert(list);
	for (size_t i = 0; i < json_array_size(list); i++) {
		(void)!sba_ours_sidecar(json_array_get(list, i), &claimed);
		(void)!sba_ours_main(list, json_array_get(list, i), &name);
	}
	(void)!sba_ours_event(labels);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	SBA_JSON json_t *j = NULL;
	if (sba_json_parse((const char *)data, size, "labels", &j, NULL) < 0)
		return 0;
	read_all(j);
	judge(j);
	if (json_is_object(j))
		copy(j);
	return 0;
}
