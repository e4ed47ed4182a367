/* SPDX-License-Identifier: MIT */
/* The table of drivers, and taking in one of the user's own. */
#include "drivers/private.h"
#include "drivers/stream.h"

#include <string.h>

static const struct sba_driver *const all[] = {
	&sba_driver_claude,
	&sba_driver_codex,
	&sba_driver_command,
	&sba_driver_dsh,
	&sba_driver_opencode,
	&sba_driver_pi,
	NULL,
};

const struct sba_driver *const *sba_driver_all(void)
{
	return all;
}

const struct sba_driver *sba_driver_find(const char *name)
{
	for (size_t i = 0; name && all[i]; i++) {
		if (strcmp(all[i]->name, name) == 0)
			return all[i];
	}
	return NULL;
}

static bool name_valid(const char *name)
{
	return sba_is_word(name, "_-", SBA_DRIVER_NAME_MAX);
}

static int check_files(const struct sba_driver *d, struct sba_error *err)
{
	for (const struct sba_driver_file *f = d->files; f && f->path; f++) {
		if (f->path[0] != '/' || strstr(f->path, "/../") || !f->content)
			return sba_fail(err, SBA_EINVAL,
					"driver '%s': file '%s' has no absolute path or no content",
					d->name, f->path);
	}
	return 0;
}

/* Written against an older header it is shorter: what it does not know is zero. */
int sba_driver_adopt(const struct sba_driver *own, struct sba_driver *ret, struct sba_error *err)
{
	struct sba_driver d = { 0 };
	if (own->size == 0)
		return sba_fail(err, SBA_EINVAL, "a driver without its size");
	memcpy(&d, own, own->size < sizeof(d) ? own->size : sizeof(d));
	if (!name_valid(d.name))
		return sba_fail(err, SBA_EINVAL, "a driver cannot be called '%s'",
				d.name ? d.name : "");
	if (!d.command || !d.line)
		return sba_fail(err, SBA_EINVAL, "driver '%s' has no command or no line", d.name);
	int rc = check_files(&d, err);
	if (rc < 0)
		return rc;
	*ret = d;
	return 0;
}

/* FNV-1a: it only tells one version of us from another. */
static uint64_t mix(uint64_t h, const char *text)
{
	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * 0x100000001B3;
	return h * 0x100000001B3;
}

void sba_driver_files_mark(const struct sba_driver *driver, char ret[SBA_FILES_MARK])
{
	uint64_t h = 0xCBF29CE484222325;
	const struct sba_driver_file *f = driver->files;
	ret[0] = '\0';
	if (!f || !f->path)
		return;
	for (; f->path; f++)
		h = mix(mix(h ^ f->mode, f->path), f->content);
	snprintf(ret, SBA_FILES_MARK, "%016llx", (unsigned long long)h);
}
