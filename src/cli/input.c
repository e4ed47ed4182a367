/* SPDX-License-Identifier: MIT */
/* What comes from files, stdin and our environment. */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ENV_FILE_MAX = 4 << 20 };

/* One more byte than asked for shows that there is more. */
static int read_fd(int fd, const char *what, size_t max, char **ret, size_t *ret_len,
		   struct sba_error *err)
{
	CLI_FREE char *data = NULL;
	size_t len = 0, cap = 0;
	for (;;) {
		if (cap - len < 2) {
			cap = cap ? cap * 2 : 65536;
			char *grown = realloc(data, cap);
			if (!grown)
				return cli_fail_nomem(err);
			data = grown;
		}
		ssize_t n = read(fd, data + len, cap - len - 1);
		if (n < 0 && errno == EINTR && !cli_signals_caught())
			continue;
		if (n < 0)
			return cli_fail(err, errno == EINTR ? SBA_ECANCELED : SBA_EIO, NULL,
					"reading %s: %s", what, strerror(errno));
		if (n == 0)
			break;
		len += (size_t)n;
		if (len > max)
			return cli_fail(err, SBA_ELIMIT, NULL, "%s is larger than %zu bytes", what,
					max);
	}
	data[len] = '\0';
	*ret = data;
	*ret_len = len;
	data = NULL;
	return 0;
}

int cli_read_file(const char *path, size_t max, char **ret, size_t *ret_len, struct sba_error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return cli_fail(err, SBA_EIO, NULL, "open %s: %s", path, strerror(errno));
	int rc = read_fd(fd, path, max, ret, ret_len, err);
	close(fd);
	return rc;
}

int cli_read_option_file(const char *option, const char *path, size_t max, char **ret,
			 size_t *ret_len, struct sba_error *err)
{
	int rc = cli_read_file(path, max, ret, ret_len, err);
	if (rc != SBA_EIO && rc != SBA_ELIMIT)
		return rc;
	const struct sba_error why = *err;
	return cli_fail(err, SBA_ECONFIG, NULL, "--%s: %s", option, why.text);
}

int cli_check_option_path(const char *option, const char *path, bool folder, struct sba_error *err)
{
	struct stat st;
	if (stat(path, &st) < 0)
		return cli_fail(err, SBA_ECONFIG, NULL, "--%s: '%s': %s", option, path,
				strerror(errno));
	if (S_ISDIR(st.st_mode) != folder)
		return cli_fail(err, SBA_ECONFIG, NULL, "--%s: '%s' is %s", option, path,
				folder ? "not a folder" : "a folder");
	return 0;
}

int cli_read_text(const char *text, size_t max, char **ret, size_t *ret_len, struct sba_error *err)
{
	if (!strcmp(text, "-"))
		return read_fd(STDIN_FILENO, "stdin", max, ret, ret_len, err);
	char *copy = strdup(text);
	if (!copy)
		return cli_fail_nomem(err);
	*ret = copy;
	*ret_len = strlen(text);
	return 0;
}

/* The place of a variable of that name, which the later value takes. */
static char **env_place(struct cli_env *env, const char *var)
{
	size_t len = strcspn(var, "=");
	for (size_t i = 0; i < env->n; i++) {
		if (!strncmp(env->v[i], var, len) && env->v[i][len] == '=')
			return &env->v[i];
	}
	return NULL;
}

static int env_push(struct cli_env *env, char *take_var, struct sba_error *err)
{
	char **there = take_var ? env_place(env, take_var) : NULL;
	if (there) {
		free(*there);
		*there = take_var;
		return 0;
	}
	char **v = realloc(env->v, (env->n + 2) * sizeof(*v));
	if (v)
		env->v = v;
	if (!v || !take_var) {
		free(take_var);
		return cli_fail_nomem(err);
	}
	v[env->n++] = take_var;
	v[env->n] = NULL;
	return 0;
}

int cli_env_add(struct cli_env *env, const char *var, struct sba_error *err)
{
	size_t name = strcspn(var, "=");
	if (name == 0 || strcspn(var, " \t") < name)
		return cli_fail(err, SBA_EINVAL, "-e NAME=VALUE, or -e NAME to pass ours on",
				"'%s' names no variable", var);
	if (var[name] == '=')
		return env_push(env, strdup(var), err);
	/* As docker does it: a name alone takes our value, and is left out
	 * where there is none. */
	const char *value = getenv(var);
	char *pair = NULL;
	if (!value)
		return 0;
	if (asprintf(&pair, "%s=%s", var, value) < 0)
		pair = NULL;
	return env_push(env, pair, err);
}

/* docker's format: a variable a line, nothing is unquoted, # begins a comment line. */
static int env_add_file(struct cli_env *env, const char *path, struct sba_error *err)
{
	CLI_FREE char *text = NULL;
	size_t len, number = 0;
	int rc = cli_read_option_file("env-file", path, ENV_FILE_MAX, &text, &len, err);
	char *next = text;
	while (rc == 0 && next) {
		char *line = strsep(&next, "\n");
		number++;
		line[strcspn(line, "\r")] = '\0';
		line += strspn(line, " \t");
		if (!*line || *line == '#')
			continue;
		rc = cli_env_add(env, line, err);
		if (rc == SBA_EINVAL)
			rc = cli_fail(err, SBA_EINVAL, "one NAME=VALUE a line",
				      "--env-file: %s: line %zu names no variable", path, number);
	}
	return rc;
}

int cli_env_collect(struct cli_env *env, const struct cli_list *files, const struct cli_list *vars,
		    struct sba_error *err)
{
	int rc = 0;
	for (size_t i = 0; rc == 0 && i < files->n; i++)
		rc = env_add_file(env, files->v[i], err);
	for (size_t i = 0; rc == 0 && i < vars->n; i++)
		rc = cli_env_add(env, vars->v[i], err);
	return rc;
}

/* Sections add to what is above them, so that the later value counts. */
static int env_add_setting(struct cli_env *env, const struct cli *cli, const char *key,
			   const struct sba_config_scope *scope, struct sba_error *err)
{
	struct sba_config_value v;
	int rc = 0;
	if (!sba_config_get(cli->config, key, scope, &v))
		return 0;
	for (size_t i = 0; rc == 0 && v.list[i]; i++)
		rc = v.setting->type == SBA_SETTING_ENV ? cli_env_add(env, v.list[i], err)
							: env_add_file(env, v.list[i], err);
	if (rc == SBA_ECONFIG)
		snprintf(err->hint, sizeof(err->hint), "%s names it", v.origin);
	return rc;
}

int cli_env_collect_config(struct cli_env *env, struct cli *cli, const char *agent,
			   struct sba_error *err)
{
	static const char *const keys[] = { "env_file", "env" };
	const struct sba_config_scope of_agent = { .agent = agent };
	int rc = cli_config(cli, err);
	for (size_t i = 0; rc == 0 && i < CLI_LEN(keys); i++)
		rc = env_add_setting(env, cli, keys[i], NULL, err);
	for (size_t i = 0; rc == 0 && agent && i < CLI_LEN(keys); i++)
		rc = env_add_setting(env, cli, keys[i], &of_agent, err);
	return rc;
}

void cli_env_fini(struct cli_env *env)
{
	for (size_t i = 0; i < env->n; i++)
		free(env->v[i]);
	free(env->v);
	*env = (struct cli_env){ 0 };
}
