/* SPDX-License-Identifier: MIT */
/*
 * Which images are pinned, and to what: versions.json and its lock file, of the
 * configuration, or as they were installed with the program, or built in.
 */
#include "cli.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VERSIONS "versions.json"
#define LOCK     "versions.lock.json"

enum { PINS_FILE_MAX = 1 << 20 };

/* "PREFIX/share/sandbox-agent/NAME" of the "PREFIX/bin/sandbox-agent" that runs. */
static char *installed(const char *name)
{
	char exe[PATH_MAX];
	char *path = NULL;
	ssize_t len = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	for (int up = 0; up < 2 && len > 0; up++) {
		exe[len] = '\0';
		const char *slash = strrchr(exe, '/');
		len = slash ? slash - exe : 0;
	}
	if (len <= 0 || asprintf(&path, "%.*s/share/sandbox-agent/%s", (int)len, exe, name) < 0)
		return NULL;
	if (access(path, R_OK) == 0)
		return path;
	free(path);
	return NULL;
}

/* The file that a setting names must be there, and is blamed on who named it. */
static int read_named(const struct sba_config_value *v, char **ret, struct sba_error *err)
{
	size_t len;
	int rc = cli_read_file(v->text, PINS_FILE_MAX, ret, &len, err);
	if (rc == 0)
		return 0;
	struct sba_error why = *err;
	char hint[SBA_ERROR_HINT_MAX];
	snprintf(hint, sizeof(hint), "%.400s names it", v->origin);
	return cli_fail(err, SBA_ECONFIG, hint, "%s", why.text);
}

static int set_repository(struct cli *cli, struct sba_images *images, struct sba_error *err)
{
	struct sba_config_value v = { 0 };
	struct sba_error why;
	if (!sba_config_get(cli->config, "image_repository", NULL, &v) || !v.text)
		return 0;
	int rc = sba_images_set_repository(images, v.text, &why);
	if (rc == SBA_EINVAL)
		return cli_fail(err, SBA_ECONFIG, "as in:  registry.example/team/agents", "%s: %s",
				v.origin, why.text);
	if (rc < 0)
		*err = why;
	return rc;
}

int cli_images(struct cli *cli, struct sba_error *err)
{
	struct sba_images *images = NULL;
	struct sba_config_value v = { 0 };
	CLI_FREE char *text = NULL;
	CLI_FREE char *ours = NULL;
	size_t len;
	if (cli->images)
		return 0;
	int rc = cli_config(cli, err);
	if (rc < 0)
		return rc;
	bool named = sba_config_get(cli->config, "versions", NULL, &v) && v.text;
	if (named)
		rc = read_named(&v, &text, err);
	else if ((ours = installed(VERSIONS)))
		rc = cli_read_file(ours, PINS_FILE_MAX, &text, &len, err);
	if (rc < 0)
		return rc;
	rc = sba_images_open(text, named ? v.text : ours ? ours : VERSIONS, &images, err);
	if (rc == 0)
		rc = set_repository(cli, images, err);
	if (rc < 0)
		sba_images_close(images);
	else
		cli->images = images;
	return rc;
}

/* ---- the lock ---- */

/* "DIR/versions.lock.json" for "DIR/versions.json". */
static char *beside(const char *versions)
{
	char *path = NULL;
	size_t len = strlen(versions);
	if (len > 5 && !strcmp(versions + len - 5, ".json"))
		len -= 5;
	return asprintf(&path, "%.*s.lock.json", (int)len, versions) < 0 ? NULL : path;
}

int cli_lock_path(struct cli *cli, const char *option, char **ret, bool *ret_named,
		  struct sba_error *err)
{
	struct sba_config_value lock = { 0 }, versions = { 0 };
	int rc = cli_config(cli, err);
	if (rc < 0)
		return rc;
	bool named = sba_config_get(cli->config, "image_lock", NULL, &lock) && lock.text;
	*ret_named = option || named;
	*ret = NULL;
	if (option || named)
		*ret = strdup(option ? option : lock.text);
	else if (sba_config_get(cli->config, "versions", NULL, &versions) && versions.text)
		*ret = beside(versions.text);
	else
		*ret = installed(LOCK);
	return *ret || (!option && !named && !versions.text) ? 0 : cli_fail_nomem(err);
}

int cli_lock_read(const char *path, bool must, struct sba_image_lock **ret, struct sba_error *err)
{
	CLI_FREE char *text = NULL;
	size_t len;
	if (!must && access(path, F_OK) < 0 && errno == ENOENT)
		return 0;
	int rc = cli_read_file(path, PINS_FILE_MAX, &text, &len, err);
	if (rc < 0) {
		struct sba_error why = *err;
		return cli_fail(err, SBA_ECONFIG, "sandbox-agent image lock makes one", "%s",
				why.text);
	}
	return sba_image_lock_open(text, path, ret, err);
}

int cli_lock(struct cli *cli, struct sba_error *err)
{
	CLI_FREE char *path = NULL;
	bool named;
	if (cli->lock)
		return 0;
	int rc = cli_lock_path(cli, NULL, &path, &named, err);
	return rc == 0 && path ? cli_lock_read(path, named, &cli->lock, err) : rc;
}

/* ---- credentials ---- */

const char *cli_docker_folder(struct cli *cli)
{
	const char *folder = getenv("DOCKER_CONFIG"), *home = getenv("HOME");
	if (folder && *folder)
		return folder;
	if (!cli->docker_folder && home && *home &&
	    asprintf(&cli->docker_folder, "%s/.docker", home) < 0)
		cli->docker_folder = NULL;
	return cli->docker_folder;
}
