/* SPDX-License-Identifier: MIT */
/*
 * Volumes: those that no container has, and their removal; and what is at a path of the
 * engine's machine, as far as a volume tells.
 */
#include "engine/private.h"

#include <string.h>

int sba_volume_unused(struct sba_engine *e, const char *label, struct sba_until until, json_t **ret,
		      struct sba_error *err)
{
	SBA_BUF struct sba_buf path = SBA_BUF_INIT(4 * (size_t)SBA_KIB);
	SBA_JSON json_t *filter = json_pack("{s:[s], s:[s]}", "label", label, "dangling", "true");
	SBA_JSON json_t *answer = NULL;
	if (!filter)
		return sba_fail_nomem(err);
	sba_buf_puts(&path, "/volumes");
	sba_query_put_json(&path, "filters", filter);
	int rc = sba_buf_check(&path, "the request's path", err);
	struct sba_request r = { .method = "GET", .path = path.data, .tried = "list volumes" };
	if (rc == 0)
		rc = sba_engine_call(e, &r, until, &answer, err);
	if (rc < 0)
		return rc;
	json_t *list = json_object_get(answer, "Volumes");
	*ret = json_is_array(list) ? json_incref(list) : json_array();
	return *ret ? 0 : sba_fail_nomem(err);
}

int sba_volume_remove(struct sba_engine *e, const char *name, struct sba_until until,
		      struct sba_error *err)
{
	SBA_BUF struct sba_buf path = SBA_BUF_INIT(SBA_KIB);
	struct sba_error why;
	char tried[160];
	snprintf(tried, sizeof(tried), "remove volume '%.80s'", name);
	sba_buf_puts(&path, "/volumes/");
	sba_buf_put_url(&path, name);
	int rc = sba_buf_check(&path, "the request's path", &why);
	struct sba_request r = { .method = "DELETE", .path = path.data, .tried = tried };
	if (rc == 0)
		rc = sba_engine_call(e, &r, until, NULL, &why);
	if (rc == SBA_ENOTFOUND)
		return 0;
	if (rc < 0 && err)
		*err = why;
	return rc;
}

/* A volume that is another name of the path is refused where there is nothing. */
int sba_volume_look(struct sba_engine *e, const char *host_path, const json_t *labels,
		    struct sba_until until, struct sba_error *err)
{
	SBA_JSON json_t *answer = NULL;
	SBA_JSON json_t *body =
		json_pack("{s:s, s:{s:s, s:s, s:s}, s:O}", "Driver", "local", "DriverOpts", "type",
			  "bind", "o", "bind", "device", host_path, "Labels", labels);
	struct sba_request r = {
		.method = "POST", .path = "/volumes/create", .json = body, .tried = "look for it"
	};
	struct sba_error why;
	if (!body)
		return sba_fail(err, SBA_EINVAL, "'%s': not valid UTF-8", host_path);
	int rc = sba_engine_call(e, &r, until, &answer, &why);
	const char *name = rc == 0 ? sba_json_str(answer, "Name") : NULL;
	if (name)
		rc = sba_volume_remove(e, name, until, &why);
	if (rc == SBA_EENGINE && strcasestr(why.text, "no such file"))
		return sba_fail(err, SBA_ENOTFOUND, "%s: No such file or directory", host_path);
	if (rc < 0 && err)
		*err = why;
	return rc;
}
