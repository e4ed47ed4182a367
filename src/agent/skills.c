/* SPDX-License-Identifier: MIT */
/*
 * Skills: folders with a SKILL.md, where the driver says that its CLI looks for
 * them. Those of this host are checked before any is sent; all arrive beside
 * the folder of skills and are then moved into it, so that the CLI never sees
 * half of one.
 */
#include "agent/skill.h"

#include "archive/archive.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Where they are inside. */
struct place {
	struct sba_inside in;
	struct sba_buf root;
};

static int enter(struct sba_agent *a, struct place *p, struct sba_error *err)
{
	sba_buf_init(&p->root, 2 * SBA_HOME_MAX);
	if (!a->driver->skills)
		return sba_fail(err, SBA_EUNSUPPORTED, "%s knows no skills", a->driver->name);
	int rc = sba_agent_inside(a, &p->in, err);
	if (rc == 0)
		sba_buf_printf(&p->root, "%s/%s", p->in.home, a->driver->skills);
	return rc < 0 ? rc : sba_buf_check(&p->root, "path", err);
}

static int wrap(const struct sba_agent *a, int rc, struct sba_error *err)
{
	return rc < 0 ? sba_wrap(err, rc, "sandbox '%s': skills",
				 sba_sandbox_info(a->sandbox)->name)
		      : 0;
}

/* A shell script inside, with the folder of skills as $1. */
static int run_script(const struct place *p, const char *script, const struct sba_strv *args,
		      struct sba_buf *out, struct sba_error *err)
{
	const char **argv = calloc(args->n + 6, sizeof(*argv));
	char said[SBA_SAID_MAX];
	int status;
	if (!argv)
		return sba_fail_nomem(err);
	const char *const first[] = { "sh", "-c", script, "sh", p->root.data };
	memcpy(argv, first, sizeof(first));
	for (size_t i = 0; i < args->n; i++)
		argv[SBA_ARRAY_LEN(first) + i] = args->v[i];
	const struct sba_inside_run r = { .argv = argv };
	int rc = p->in.run(&p->in, &r, out, &status, said, err);
	free(argv);
	if (rc == 0 && status != 0)
		rc = sba_fail(err, SBA_EIO, "%s", *said ? said : "a command inside failed");
	return rc;
}

/* ---- adding ---- */

/* The folders of this host, checked, and what they will be called. */
struct load {
	struct sba_strv paths, names;
	char refused[SBA_SAID_MAX]; /* what cannot come along; "": nothing */
};

static void load_fini(struct load *l)
{
	sba_strv_fini(&l->paths);
	sba_strv_fini(&l->names);
}

static int check_text(const char *real, const char *dir, struct sba_error *err)
{
	SBA_BUF struct sba_buf text = SBA_BUF_INIT(SBA_SKILL_TEXT_MAX);
	SBA_FREE char *path = NULL;
	struct sba_skill_head head = { 0 };
	struct stat st;
	if (asprintf(&path, "%s/SKILL.md", real) < 0) {
		path = NULL;
		return sba_fail_nomem(err);
	}
	if (stat(path, &st) < 0 || !S_ISREG(st.st_mode))
		return sba_hint(
			err, sba_fail(err, SBA_EINVAL, "'%s' is no skill: no SKILL.md in it", dir),
			"a skill is a folder with a SKILL.md: docs/sessions.md");
	int rc = sba_read_file(path, SBA_SKILL_TEXT_MAX, &text, err);
	if (rc == 0)
		rc = sba_skill_head_parse(text.data ? text.data : "", text.len, &head, err);
	sba_skill_head_fini(&head);
	return rc == SBA_EINVAL ? sba_wrap(err, rc, "'%s/SKILL.md'", dir) : rc;
}

static int check_one(struct load *l, const char *dir, struct sba_error *err)
{
	SBA_FREE char *real = realpath(dir, NULL);
	struct stat st;
	if (!real || stat(real, &st) < 0)
		return sba_fail_errno(err, SBA_EINVAL, errno, "'%s' is no skill", dir);
	if (!S_ISDIR(st.st_mode))
		return sba_fail(err, SBA_EINVAL, "'%s' is no skill: it is no folder", dir);
	const char *name = strrchr(real, '/') + 1;
	if (!sba_skill_name_valid(name))
		return sba_fail(err, SBA_EINVAL, "'%s': no skill can be called '%s'", dir, name);
	for (size_t i = 0; i < l->names.n; i++) {
		if (strcmp(l->names.v[i], name) == 0)
			return sba_fail(err, SBA_EINVAL, "two skills are called '%s'", name);
	}
	int rc = check_text(real, dir, err);
	if (rc == 0)
		rc = sba_strv_add(&l->paths, real, err);
	return rc == 0 ? sba_strv_add(&l->names, name, err) : rc;
}

static void left_out(void *user, const char *name, enum sba_refusal why)
{
	struct load *l = user;
	if (!l->refused[0])
		snprintf(l->refused, sizeof(l->refused), "%s: %s", name,
			 why == SBA_REFUSED_LEAVING ? "a link that leads out of it"
						    : "no file and no folder");
}

static ssize_t read_pack(void *user, void *buf, size_t size, struct sba_error *err)
{
	return sba_pack_read(user, buf, size, err);
}

/* Beside the folder of skills, in a folder that no CLI looks into. */
static int send_all(struct sba_agent *a, struct load *l, const char *stage, struct sba_error *err)
{
	const struct sba_pack_options options = {
		.fixed_mtime = -1,
		.left_out = left_out,
		.user = l,
	};
	struct sba_pack *pack = NULL;
	int rc = sba_pack_new(&options, &pack, err);
	for (size_t i = 0; rc == 0 && i < l->names.n; i++)
		rc = sba_pack_path(pack, l->names.v[i], l->paths.v[i], err);
	if (rc == 0)
		rc = sba_sandbox_upload_tar(a->sandbox, read_pack, pack, stage, NULL, NULL, err);
	sba_pack_free(pack);
	if (rc == 0 && l->refused[0])
		rc = sba_fail(err, SBA_EREFUSED, "%s", l->refused);
	return rc;
}

static int make_stage(const struct place *p, struct sba_buf *stage, struct sba_error *err)
{
	static const char script[] = "mkdir -p -- \"$1\" && mktemp -d -- \"$1.adding-XXXXXX\"";
	const struct sba_strv none = { 0 };
	int rc = run_script(p, script, &none, stage, err);
	if (rc == 0 && (stage->len < 2 || stage->data[0] != '/'))
		rc = sba_fail(err, SBA_EIO, "a folder for what is added");
	if (rc == 0)
		stage->data[--stage->len] = '\0';
	return rc;
}

/* $2 is the stage, the others are names. What is replaced is kept until all is in
 * place, and put back if that fails. */
static int move_in(const struct place *p, const struct load *l, const char *stage,
		   struct sba_error *err)
{
	static const char script[] =
		"root=$1 stage=$2; shift 2; mkdir -- \"$stage/.old\" || exit 1; bad=\n"
		"for n; do\n"
		"  if [ -e \"$root/$n\" ] || [ -L \"$root/$n\" ]; then\n"
		"    mv -- \"$root/$n\" \"$stage/.old/$n\" || { bad=1; break; }\n"
		"  fi\n"
		"  mv -- \"$stage/$n\" \"$root/$n\" && : > \"$stage/.old/.in $n\" ||\n"
		"    { bad=1; break; }\n"
		"done\n"
		"[ -z \"$bad\" ] && exit 0\n"
		"for n; do\n"
		"  [ -e \"$stage/.old/.in $n\" ] && rm -rf -- \"$root/$n\"\n"
		"  [ -e \"$stage/.old/$n\" ] && mv -- \"$stage/.old/$n\" \"$root/$n\"\n"
		"done\n"
		"exit 1\n";
	SBA_STRV struct sba_strv args = { 0 };
	SBA_BUF struct sba_buf out = SBA_BUF_INIT(SBA_KIB);
	int rc = sba_strv_add(&args, stage, err);
	for (size_t i = 0; rc == 0 && i < l->names.n; i++)
		rc = sba_strv_add(&args, l->names.v[i], err);
	return rc == 0 ? run_script(p, script, &args, &out, err) : rc;
}

static void drop_stage(const struct place *p, const char *stage)
{
	SBA_STRV struct sba_strv args = { 0 };
	SBA_BUF struct sba_buf out = SBA_BUF_INIT(SBA_KIB);
	struct sba_error why = { 0 };
	if (sba_strv_add(&args, stage, &why) < 0 ||
	    run_script(p, "exec rm -rf -- \"$2\"", &args, &out, &why) < 0)
		sba_log("agent", "%s stays in the sandbox: %s", stage, why.text);
}

static int install(struct sba_agent *a, struct load *l, struct sba_error *err)
{
	SBA_BUF struct sba_buf stage = SBA_BUF_INIT(2 * SBA_HOME_MAX);
	struct place p;
	int rc = enter(a, &p, err);
	if (rc == 0)
		rc = make_stage(&p, &stage, err);
	if (rc == 0) {
		rc = send_all(a, l, stage.data, err);
		if (rc == 0)
			rc = move_in(&p, l, stage.data, err);
		drop_stage(&p, stage.data);
	}
	sba_buf_fini(&p.root);
	return rc;
}

int sba_skills_add(struct sba_agent *a, const char *const *dirs, struct sba_error *err)
{
	struct load l = { 0 };
	int rc = dirs && dirs[0] ? 0 : sba_fail(err, SBA_EINVAL, "no folder is named");
	for (size_t i = 0; rc == 0 && dirs[i]; i++)
		rc = i < SBA_SKILLS_MAX ? check_one(&l, dirs[i], err)
					: sba_fail(err, SBA_ELIMIT, "more than %d", SBA_SKILLS_MAX);
	if (rc == 0)
		rc = wrap(a, install(a, &l, err), err);
	load_fini(&l);
	return rc;
}

/* ---- list ---- */

struct sba_skill_list {
	struct sba_skill_info *v;
	struct sba_skill_head *heads;
	struct sba_strv folders;
};

/* "NAME\0HEAD OF SKILL.md\0" each. */
static int take(struct sba_skill_list *l, const struct sba_buf *out, struct sba_error *err)
{
	const char *at = out->data, *end = out->data + out->len;
	l->v = calloc(SBA_SKILLS_MAX + 1, sizeof(*l->v));
	l->heads = calloc(SBA_SKILLS_MAX + 1, sizeof(*l->heads));
	if (!l->v || !l->heads)
		return sba_fail_nomem(err);
	while (out->len > 0 && at < end && l->folders.n < SBA_SKILLS_MAX) {
		size_t i = l->folders.n;
		const char *text = at + strlen(at) + 1;
		if (text >= end)
			break;
		int rc = sba_strv_add(&l->folders, at, err);
		if (rc == 0)
			rc = sba_skill_head_parse(text, strlen(text), &l->heads[i], err);
		if (rc < 0 && rc != SBA_EINVAL)
			return rc;
		const struct sba_skill_head *h = &l->heads[i];
		l->v[i].name = h->name ? h->name : "";
		l->v[i].description = h->description ? h->description : "";
		at = text + strlen(text) + 1;
	}
	for (size_t i = 0; i < l->folders.n; i++)
		l->v[i].folder = l->folders.v[i];
	return 0;
}

static int list(struct sba_agent *a, struct sba_skill_list *l, struct sba_error *err)
{
	static const char script[] = "cd -- \"$1\" 2>/dev/null || exit 0\n"
				     "for d in */; do\n"
				     "  [ -f \"$d/SKILL.md\" ] || continue\n"
				     "  printf '%s\\0' \"${d%/}\"\n"
				     "  head -c \"$2\" -- \"$d/SKILL.md\" | tr -d '\\0'\n"
				     "  printf '\\0'\n"
				     "done\n";
	SBA_BUF struct sba_buf out =
		SBA_BUF_INIT((size_t)SBA_SKILLS_MAX * (SBA_SKILL_LOOK + SBA_KIB));
	SBA_STRV struct sba_strv args = { 0 };
	struct place p;
	int rc = enter(a, &p, err);
	if (rc == 0)
		rc = sba_strv_addf(&args, err, "%d", SBA_SKILL_LOOK);
	if (rc == 0)
		rc = run_script(&p, script, &args, &out, err);
	sba_buf_fini(&p.root);
	return rc == 0 ? take(l, &out, err) : rc;
}

int sba_skills_list(struct sba_agent *a, struct sba_skill_list **ret, struct sba_error *err)
{
	struct sba_skill_list *l = calloc(1, sizeof(*l));
	if (!l)
		return sba_fail_nomem(err);
	int rc = list(a, l, err);
	if (rc < 0) {
		sba_skills_free(l);
		return wrap(a, rc, err);
	}
	*ret = l;
	return 0;
}

size_t sba_skills_count(const struct sba_skill_list *l)
{
	return l->folders.n;
}

const struct sba_skill_info *sba_skills_at(const struct sba_skill_list *l, size_t n)
{
	return n < l->folders.n ? &l->v[n] : NULL;
}

void sba_skills_free(struct sba_skill_list *l)
{
	if (!l)
		return;
	for (size_t i = 0; l->heads && i < l->folders.n; i++)
		sba_skill_head_fini(&l->heads[i]);
	sba_strv_fini(&l->folders);
	free(l->heads);
	free(l->v);
	free(l);
}

/* ---- removing ---- */

/* By its folder, or by the name that the CLI knows it by. */
static int find_folder(const struct sba_agent *a, const struct sba_skill_list *l, const char *skill,
		       const char **ret, struct sba_error *err)
{
	const char *sandbox = sba_sandbox_info(a->sandbox)->name;
	const char *found = NULL;
	size_t named = 0;
	for (size_t i = 0; i < l->folders.n; i++) {
		*ret = l->folders.v[i];
		if (strcmp(*ret, skill) == 0)
			return 0;
		if (strcmp(l->v[i].name, skill) == 0) {
			named++;
			found = *ret;
		}
	}
	*ret = found;
	if (named == 1)
		return 0;
	if (named > 1)
		return sba_hint(
			err, sba_fail(err, SBA_EINVAL, "%zu skills are called '%s'", named, skill),
			"say the folder of one, as it is in:  sandbox-agent skills ls %s", sandbox);
	int near = sba_nearest(skill, (const char *const *)l->folders.v, l->folders.n);
	int rc = sba_fail(err, SBA_ENOTFOUND, "there is no skill '%s'", skill);
	return near < 0 ? sba_hint(err, rc, "what there is:  sandbox-agent skills ls %s", sandbox)
			: sba_hint(err, rc, "did you mean '%s'?", l->folders.v[near]);
}

static int remove_all(struct sba_agent *a, const struct sba_skill_list *l,
		      const char *const *folders, struct sba_error *err)
{
	static const char script[] = "cd -- \"$1\" && shift && exec rm -rf -- \"$@\"";
	SBA_STRV struct sba_strv args = { 0 };
	SBA_BUF struct sba_buf out = SBA_BUF_INIT(SBA_KIB);
	struct place p;
	int rc = enter(a, &p, err);
	for (size_t i = 0; rc == 0 && folders[i]; i++) {
		const char *folder = NULL;
		rc = find_folder(a, l, folders[i], &folder, err);
		if (rc == 0)
			rc = sba_strv_add(&args, folder, err);
	}
	if (rc == 0 && args.n > 0)
		rc = run_script(&p, script, &args, &out, err);
	sba_buf_fini(&p.root);
	return rc;
}

int sba_skills_remove(struct sba_agent *a, const char *const *folders, struct sba_error *err)
{
	struct sba_skill_list *l = NULL;
	int rc = sba_skills_list(a, &l, err);
	if (rc == 0 && l)
		rc = wrap(a, remove_all(a, l, folders, err), err);
	sba_skills_free(l);
	return rc;
}
