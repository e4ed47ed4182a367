/* SPDX-License-Identifier: MIT */
/* Strict parsing and short ways into JSON. */
#include "base/base.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

json_t *sba_json_load(const char *text, size_t len, size_t flags, json_error_t *ret_where)
{
	errno = 0;
	json_t *j = json_loadb(text, len, flags, ret_where);
	if (!j || errno != ENOMEM)
		return j;
	/* jansson 2.14 leaves out the byte of a string for which it finds no room. */
	json_decref(j);
	if (ret_where)
		snprintf(ret_where->text, sizeof(ret_where->text), "out of memory");
	errno = ENOMEM;
	return NULL;
}

int sba_json_parse(const char *text, size_t len, const char *what, json_t **ret,
		   struct sba_error *err)
{
	json_error_t e;
	json_t *j = sba_json_load(text, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &e);
	if (!j && errno == ENOMEM)
		return sba_fail_nomem(err);
	if (!j)
		return sba_fail(err, SBA_EPROTO, "%s: not JSON: line %d column %d: %s", what,
				e.line, e.column, e.text);
	*ret = j;
	return 0;
}

static json_t *step(const json_t *j, const char *name, size_t len)
{
	if (name[0] == '#')
		return json_array_get(j, (size_t)strtoul(name + 1, NULL, 10));
	char key[128];
	if (len >= sizeof(key))
		return NULL;
	memcpy(key, name, len);
	key[len] = '\0';
	return json_object_get(j, key);
}

json_t *sba_json_get(const json_t *j, const char *path)
{
	while (j) {
		size_t len = strcspn(path, ".");
		json_t *next = step(j, path, len);
		if (!path[len])
			return next;
		j = next;
		path += len + 1;
	}
	return NULL;
}

const char *sba_json_str(const json_t *j, const char *path)
{
	return json_string_value(sba_json_get(j, path));
}

int64_t sba_json_int(const json_t *j, const char *path, int64_t otherwise)
{
	const json_t *v = sba_json_get(j, path);
	return json_is_integer(v) ? json_integer_value(v) : otherwise;
}

bool sba_json_bool(const json_t *j, const char *path, bool otherwise)
{
	const json_t *v = sba_json_get(j, path);
	return json_is_boolean(v) ? json_is_true(v) : otherwise;
}

json_t *sba_json_text(const void *data, size_t len)
{
	if (sba_utf8_valid(data, len))
		return json_stringn_nocheck(data, len);
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(SIZE_MAX / 2);
	sba_buf_put_utf8(&b, data, len);
	return b.failed ? NULL : json_stringn_nocheck(b.data ? b.data : "", b.len);
}

char *sba_json_dump(const json_t *j)
{
	return json_dumps(j, JSON_COMPACT | JSON_ENCODE_ANY);
}
