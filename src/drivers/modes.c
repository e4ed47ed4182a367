/* SPDX-License-Identifier: MIT */
/* What an agent may do to its sandbox, and whether its CLI can be held to it. */
#include "drivers/private.h"

#include "base/limits.h"

#include <string.h>

static const char *const words[] = {
	[SBA_PERMISSIONS_FULL] = "full",
	[SBA_PERMISSIONS_EDIT] = "edit",
	[SBA_PERMISSIONS_READ_ONLY] = "read-only",
};

int sba_permissions_parse(const char *word, enum sba_permissions *ret, struct sba_error *err)
{
	if (!word || !*word) {
		*ret = SBA_PERMISSIONS_FULL;
		return 0;
	}
	for (size_t i = 0; i < SBA_ARRAY_LEN(words); i++) {
		if (strcmp(words[i], word) == 0) {
			*ret = (enum sba_permissions)i;
			return 0;
		}
	}
	return sba_fail(err, SBA_EINVAL, "permissions '%s': read-only, edit or full", word);
}

static bool keeps(const struct sba_driver *d, enum sba_permissions p)
{
	return p == SBA_PERMISSIONS_READ_ONLY ? d->keeps_read_only
	       : p == SBA_PERMISSIONS_EDIT    ? d->keeps_edit
					      : true;
}

int sba_driver_check_permissions(const struct sba_driver *driver, enum sba_permissions p,
				 struct sba_error *err)
{
	SBA_BUF struct sba_buf can = SBA_BUF_INIT(SBA_KIB);
	if (keeps(driver, p))
		return 0;
	for (const struct sba_driver *const *d = sba_driver_all(); *d; d++) {
		if (keeps(*d, p))
			sba_buf_printf(&can, "%s%s", can.len ? ", " : "", (*d)->name);
	}
	int rc = sba_fail(err, SBA_EUNSUPPORTED, "%s cannot be held to '%s' in a sandbox",
			  driver->name, words[p]);
	return sba_hint(err, rc, "who can:  %s", can.data ? can.data : "nobody");
}
