/* SPDX-License-Identifier: MIT */
/* What the CLIs keep of their sessions: listed, taken out, put in under another
 * name and directory, removed. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/inside_here.h"

#define UUID  "6f0e2a4c-1111-4222-8333-444455556666"
#define OTHER "a91c0000-1111-4222-8333-444455556666"

/* A session of each CLI in its own form. */
static const struct sample {
	const struct sba_store *store;
	const char *id;
	const char *path;
	const char *content;
	const char *new_id;
	const char *new_path; /* beneath the home, up to a time; NULL: exact not known */
	const char *head;     /* what the copy's first line holds */
} samples[] = {
	{ &sba_claude_store, UUID, ".claude/projects/-old-place/" UUID ".jsonl",
	  "{\"type\":\"queue-operation\",\"timestamp\":\"2026-11-29T12:00:00.250Z\"}\n"
	  "{\"type\":\"user\",\"cwd\":\"/old/place\",\"message\":{\"content\":\"remember "
	  "APPLE\\nand more\"}}\n"
	  "{\"type\":\"assistant\",\"message\":{\"model\":\"m-1\",\"content\":[]}}\n",
	  OTHER, ".claude/projects/-workspace/" OTHER ".jsonl", "queue-operation" },
	{ &sba_codex_store, UUID,
	  ".codex/sessions/2026/11/29/rollout-2026-11-29T12-00-00-" UUID ".jsonl",
	  "{\"timestamp\":\"2026-11-29T12:00:00.250Z\",\"type\":\"session_meta\",\"payload\":"
	  "{\"id\":\"" UUID "\",\"cwd\":\"/old/place\"}}\n"
	  "{\"type\":\"turn_context\",\"payload\":{\"model\":\"m-1\"}}\n"
	  "{\"type\":\"event_msg\",\"payload\":{\"type\":\"user_message\",\"message\":"
	  "\"remember APPLE\\nand more\"}}\n",
	  OTHER, NULL, "\"id\":\"" OTHER "\",\"cwd\":\"/workspace\"" },
	{ &sba_pi_store, UUID,
	  ".pi/agent/sessions/--old-place--/2026-11-29T12-00-00-250Z_" UUID ".jsonl",
	  "{\"type\":\"session\",\"version\":3,\"id\":\"" UUID
	  "\",\"timestamp\":\"2026-11-29T12:00:00.250Z\",\"cwd\":\"/old/place\"}\n"
	  "{\"type\":\"message\",\"message\":{\"role\":\"user\",\"content\":[{\"type\":\"text\","
	  "\"text\":\"remember APPLE\\nand more\"}]}}\n"
	  "{\"type\":\"message\",\"message\":{\"role\":\"assistant\",\"model\":\"m-1\"}}\n",
	  OTHER, NULL, "\"cwd\":\"/workspace\"" },
	{ &sba_dsh_store, "session-" UUID,
	  ".dsh/sessions/--old-place--/session-" UUID "/session.jsonl",
	  "{\"type\":\"session\",\"version\":0,\"id\":\"session-" UUID
	  "\",\"createdAt\":1795953600250,\"cwd\":\"/old/place\"}\n"
	  "{\"type\":\"user/message\",\"data\":{\"content\":[{\"text\":\"remember APPLE\\nand "
	  "more\"}]}}\n"
	  "{\"type\":\"assistant/message\",\"data\":{\"message\":{\"source\":{\"model\":\"m-1\"}}}"
	  "}\n",
	  "session-" OTHER, ".dsh/sessions/--workspace--/session-" OTHER "/session.jsonl",
	  "\"cwd\":\"/workspace\"" },
};
#define each_sample(s) (const struct sample *s = samples; s < samples + SBA_ARRAY_LEN(samples); s++)

static struct inside_here here;

static int begin(void **state)
{
	(void)state;
	alarm(60);
	inside_here_begin(&here);
	return 0;
}

static int end(void **state)
{
	(void)state;
	inside_here_end(&here);
	return 0;
}

static struct sba_kept_list listed(const struct sba_store *s)
{
	struct sba_kept_list l = { 0 };
	struct sba_error err = { 0 };
	if (s->list(s, &here.in, &l, &err) < 0)
		fail_msg("%s", err.text);
	return l;
}

static struct sba_parts dumped(const struct sba_store *s, const char *id)
{
	struct sba_parts p = { 0 };
	struct sba_error err = { 0 };
	if (s->dump(s, &here.in, id, &p, &err) < 0)
		fail_msg("%s", err.text);
	return p;
}

static void no_session_at_all_is_an_empty_list(void **state)
{
	(void)state;
	for
		each_sample(s)
		{
			struct sba_kept_list l = listed(s->store);
			assert_int_equal(l.n, 0);
			sba_kept_list_fini(&l);
		}
}

static void a_list_tells_title_model_directory_and_times(void **state)
{
	(void)state;
	for
		each_sample(s)
		{
			inside_here_file(&here, s->path, s->content);
			struct sba_kept_list l = listed(s->store);
			assert_int_equal(l.n, 1);
			assert_string_equal(l.v[0].id, s->id);
			assert_string_equal(l.v[0].title, "remember APPLE");
			assert_string_equal(l.v[0].model, "m-1");
			assert_string_equal(l.v[0].workdir, "/old/place");
			assert_int_equal(l.v[0].created_ms, 1795953600250);
			assert_true(l.v[0].updated_ms > 1000000000000);
			sba_kept_list_fini(&l);
		}
}

static void files_that_are_no_session_are_not_listed(void **state)
{
	(void)state;
	inside_here_file(&here, ".claude/projects/-w/" UUID "/subagents/agent-1.jsonl", "{}\n");
	inside_here_file(&here, ".claude/projects/-w/-x.jsonl", "{}\n");
	inside_here_file(&here, ".codex/sessions/rollout-short.jsonl", "{}\n");
	inside_here_file(&here, ".pi/agent/sessions/--w--/noid.jsonl", "{}\n");
	inside_here_file(&here, ".dsh/sessions/--w--/session.jsonl", "{}\n");
	for
		each_sample(s)
		{
			struct sba_kept_list l = listed(s->store);
			assert_int_equal(l.n, 0);
			sba_kept_list_fini(&l);
		}
}

static void lines_that_make_no_sense_do_not_hide_a_session(void **state)
{
	(void)state;
	inside_here_file(&here, ".claude/projects/-w/" UUID ".jsonl",
			 "not json\n[1]\n{\"type\":7}\n{\"type\":\"user\",\"message\":{\"content\":"
			 "[{\"type\":\"image\"},{\"type\":\"text\",\"text\":\"hi\"}]}}\n{\"cut");
	struct sba_kept_list l = listed(&sba_claude_store);
	assert_int_equal(l.n, 1);
	assert_string_equal(l.v[0].title, "hi");
	assert_string_equal(l.v[0].model, "");
	sba_kept_list_fini(&l);
}

static void what_the_cli_says_in_the_models_place_is_no_model(void **state)
{
	(void)state;
	inside_here_file(&here, ".claude/projects/-w/" UUID ".jsonl",
			 "{\"type\":\"assistant\",\"message\":{\"model\":\"<synthetic>\"}}\n"
			 "{\"type\":\"assistant\",\"message\":{\"model\":\"claude-x\"}}\n");
	struct sba_kept_list l = listed(&sba_claude_store);
	assert_string_equal(l.v[0].model, "claude-x");
	sba_kept_list_fini(&l);
}

static void a_dump_is_the_file_byte_for_byte(void **state)
{
	(void)state;
	for
		each_sample(s)
		{
			inside_here_file(&here, s->path, s->content);
			struct sba_parts p = dumped(s->store, s->id);
			assert_int_equal(p.n, 1);
			assert_string_equal(p.v[0].name, "session");
			assert_int_equal(p.v[0].len, strlen(s->content));
			assert_memory_equal(p.v[0].data, s->content, p.v[0].len);
			sba_parts_fini(&p);
		}
}

static void a_dump_put_in_under_another_name_leaves_the_first_alone(void **state)
{
	(void)state;
	for
		each_sample(s)
		{
			inside_here_file(&here, s->path, s->content);
			struct sba_parts p = dumped(s->store, s->id);
			struct sba_error err = { 0 };
			if (s->store->load(s->store, &here.in, &p, s->id, s->new_id, &err) < 0)
				fail_msg("%s", err.text);
			sba_parts_fini(&p);
			SBA_FREE char *first = inside_here_read(&here, s->path);
			assert_string_equal(first, s->content);
			p = dumped(s->store, s->new_id);
			const char *rest = strchr(s->content, '\n');
			const char *line = p.v[0].data;
			assert_non_null(strstr(line, s->head));
			assert_string_equal(strchr(line, '\n'), rest);
			sba_parts_fini(&p);
			if (s->new_path) {
				SBA_FREE char *copy = inside_here_read(&here, s->new_path);
				assert_non_null(copy);
			}
			struct sba_kept_list l = listed(s->store);
			assert_int_equal(l.n, 2);
			sba_kept_list_fini(&l);
		}
}

static void putting_one_in_again_moves_it_to_where_the_agent_works(void **state)
{
	(void)state;
	for
		each_sample(s)
		{
			inside_here_file(&here, s->path, s->content);
			struct sba_parts p = dumped(s->store, s->id);
			assert_int_equal(s->store->load(s->store, &here.in, &p, s->id, s->id, NULL),
					 0);
			sba_parts_fini(&p);
			struct sba_kept_list l = listed(s->store);
			assert_int_equal(l.n, 1);
			sba_kept_list_fini(&l);
			SBA_FREE char *old = inside_here_read(&here, s->path);
			/* Codex has an index of paths. */
			assert_true((old != NULL) == (s->store == &sba_codex_store));
		}
}

static void a_dump_of_another_cli_is_refused_and_nothing_is_put_in(void **state)
{
	(void)state;
	for
		each_sample(s)
		{
			char junk[] = "{\"type\":\"something else\"}\n";
			struct sba_part part = { .name = "session",
						 .data = junk,
						 .len = strlen(junk) };
			const struct sba_parts p = { &part, 1 };
			if (s->store == &sba_claude_store)
				snprintf(junk, sizeof(junk), "no JSON");
			part.len = strlen(junk);
			assert_int_equal(s->store->load(s->store, &here.in, &p, s->id, s->id, NULL),
					 SBA_EPROTO);
			struct sba_kept_list l = listed(s->store);
			assert_int_equal(l.n, 0);
			sba_kept_list_fini(&l);
		}
}

static void removing_takes_the_one_session_and_says_what_is_not_there(void **state)
{
	(void)state;
	for
		each_sample(s)
		{
			inside_here_file(&here, s->path, s->content);
			struct sba_parts p = dumped(s->store, s->id);
			assert_int_equal(
				s->store->load(s->store, &here.in, &p, s->id, s->new_id, NULL), 0);
			sba_parts_fini(&p);
			assert_int_equal(s->store->remove(s->store, &here.in, s->id, NULL), 0);
			struct sba_kept_list l = listed(s->store);
			assert_int_equal(l.n, 1);
			assert_string_equal(l.v[0].id, s->new_id);
			sba_kept_list_fini(&l);
			struct sba_error err = { 0 };
			assert_int_equal(s->store->remove(s->store, &here.in, s->id, &err),
					 SBA_ENOTFOUND);
			assert_non_null(strstr(err.text, s->id));
		}
}

static void a_copy_for_a_turn_aside_leaves_the_session_alone(void **state)
{
	(void)state;
	for
		each_sample(s)
		{
			char scratch[128];
			if (!s->store->aside)
				continue;
			inside_here_file(&here, s->path, s->content);
			snprintf(scratch, sizeof(scratch), "%s/scratch", here.home);
			assert_int_equal(s->store->aside(s->store, &here.in, s->id, scratch, NULL),
					 0);
			SBA_FREE char *first = inside_here_read(&here, s->path);
			assert_string_equal(first, s->content);
			struct sba_kept_list l = listed(s->store);
			assert_int_equal(l.n, 1);
			sba_kept_list_fini(&l);
		}
}

static void a_codex_fork_takes_its_parents_along(void **state)
{
	(void)state;
#define ROLLOUT(id) ".codex/sessions/2026/11/29/rollout-2026-11-29T12-00-00-" id ".jsonl"
#define META(id, more)                                                                             \
	"{\"type\":\"session_meta\",\"payload\":{\"id\":\"" id "\",\"cwd\":\"/w\"" more "}}\n"
	inside_here_file(&here, ROLLOUT(UUID), META(UUID, ""));
	inside_here_file(&here, ROLLOUT(OTHER), META(OTHER, ",\"forked_from_id\":\"" UUID "\""));
	struct sba_parts p = dumped(&sba_codex_store, OTHER);
	assert_int_equal(p.n, 2);
	assert_string_equal(p.v[1].name, "parent:" UUID);
	struct inside_here first = here;
	inside_here_begin(&here);
	assert_int_equal(sba_codex_store.load(&sba_codex_store, &here.in, &p, OTHER, OTHER, NULL),
			 0);
	struct sba_kept_list l = listed(&sba_codex_store);
	assert_int_equal(l.n, 2);
	sba_kept_list_fini(&l);
	sba_parts_fini(&p);
	inside_here_end(&here);
	here = first;
}

static void a_codex_session_that_a_fork_needs_is_not_removed(void **state)
{
	(void)state;
	struct sba_error err = { 0 };
	inside_here_file(&here, ROLLOUT(UUID), META(UUID, ""));
	inside_here_file(&here, ROLLOUT(OTHER), META(OTHER, ",\"forked_from_id\":\"" UUID "\""));
	assert_int_equal(sba_codex_store.remove(&sba_codex_store, &here.in, UUID, &err),
			 SBA_EREFUSED);
	assert_non_null(strstr(err.text, OTHER));
	struct sba_parts p = dumped(&sba_codex_store, OTHER);
	assert_int_equal(p.n, 2);
	sba_parts_fini(&p);
	/* In the other order nothing is in the way. */
	assert_int_equal(sba_codex_store.remove(&sba_codex_store, &here.in, OTHER, &err), 0);
	assert_int_equal(sba_codex_store.remove(&sba_codex_store, &here.in, UUID, &err), 0);
	assert_int_equal(listed(&sba_codex_store).n, 0);
}

/* ---- opencode, whose own commands do it ---- */

struct asked {
	struct sba_buf commands;
	struct sba_buf written;
	const char *answer;
	int status;
	const char *said;
	bool no_db;
	const char *lists; /* what `session list` answers in any case */
};

static int fake_run(const struct sba_inside *in, const struct sba_inside_run *r,
		    struct sba_buf *ret_out, int *ret_status, char ret_said[SBA_SAID_MAX],
		    struct sba_error *err)
{
	struct asked *a = in->user;
	(void)err;
	for (size_t i = 0; r->argv[i]; i++)
		sba_buf_printf(&a->commands, "%s%s", i ? " " : "", r->argv[i]);
	sba_buf_putc(&a->commands, '\n');
	*ret_status = 0;
	ret_said[0] = '\0';
	if (a->no_db && strcmp(r->argv[1], "db") == 0) {
		*ret_status = 1;
		return 0;
	}
	if (a->lists && strcmp(r->argv[2], "list") == 0) {
		sba_buf_puts(ret_out, a->lists);
		return 0;
	}
	if (a->answer)
		sba_buf_puts(ret_out, a->answer);
	*ret_status = a->status;
	snprintf(ret_said, SBA_SAID_MAX, "%s", a->said ? a->said : "");
	return 0;
}

static int fake_write(const struct sba_inside *in, const char *path, const void *data, size_t len,
		      uint32_t mode, struct sba_error *err)
{
	struct asked *a = in->user;
	(void)path;
	(void)mode;
	(void)err;
	sba_buf_put(&a->written, data, len);
	return 0;
}

static struct asked asked;
static const struct sba_inside opencode = { .run = fake_run,
					    .write = fake_write,
					    .home = "/home/u",
					    .workdir = "/workspace",
					    .user = &asked };

static int begin_opencode(void **state)
{
	(void)state;
	alarm(60);
	asked = (struct asked){ .commands = SBA_BUF_INIT(1 << 20),
				.written = SBA_BUF_INIT(1 << 20) };
	return 0;
}

static int end_opencode(void **state)
{
	(void)state;
	sba_buf_fini(&asked.commands);
	sba_buf_fini(&asked.written);
	return 0;
}

static void opencode_lists_what_its_database_says(void **state)
{
	(void)state;
	struct sba_kept_list l = { 0 };
	asked.answer = "[{\"id\":\"ses_a\",\"title\":\"New session - 2026-11-30T08:07:56.128Z\","
		       "\"model\":\"m-1\",\"prompt\":\"fix it\\nall\",\"updated\":9},"
		       "{\"id\":\"ses_b\",\"title\":\"Mine\",\"model\":null,\"prompt\":\"hi\"},"
		       "{\"id\":\"ses_c\",\"title\":\"New session - x\",\"prompt\":null}]";
	assert_int_equal(sba_opencode_store.list(&sba_opencode_store, &opencode, &l, NULL), 0);
	assert_true(sba_starts_with(asked.commands.data, "opencode db select "));
	assert_int_equal(l.n, 3);
	assert_string_equal(l.v[0].title, "fix it");
	assert_string_equal(l.v[0].model, "m-1");
	for (size_t i = 1; i < l.n; i++) {
		bool titled = strcmp(l.v[i].id, "ses_b") == 0;
		assert_string_equal(l.v[i].title, titled ? "Mine" : "New session - x");
		assert_string_equal(l.v[i].model, "");
	}
	sba_kept_list_fini(&l);
}

static void opencode_lists_what_its_own_command_says(void **state)
{
	(void)state;
	struct sba_kept_list l = { 0 };
	asked.no_db = true;
	asked.answer = "[{\"id\":\"ses_a\",\"title\":\"A\",\"updated\":5,\"created\":4,"
		       "\"directory\":\"/w\"},"
		       "{\"id\":\"-bad\"},{\"id\":\"ses_b\",\"updated\":9}]";
	assert_int_equal(sba_opencode_store.list(&sba_opencode_store, &opencode, &l, NULL), 0);
	assert_int_equal(l.n, 2);
	assert_string_equal(l.v[0].id, "ses_b");
	assert_string_equal(l.v[1].title, "A");
	assert_int_equal(l.v[1].created_ms, 4);
	sba_kept_list_fini(&l);
}

static void count_ids(const json_t *j, const char *part, int *with, int *without)
{
	const char *key;
	json_t *value;
	size_t i;
	const char *s = json_string_value(j);
	if (s && strlen(s) == 30 &&
	    (!strncmp(s, "ses_", 4) || !strncmp(s, "msg_", 4) || !strncmp(s, "prt_", 4))) {
		if (strstr(s, part))
			++*with;
		else
			++*without;
	}
	json_object_foreach((json_t *)(uintptr_t)j, key, value)
		count_ids(value, part, with, without);
	json_array_foreach(j, i, value) count_ids(value, part, with, without);
}

static void an_opencode_copy_has_new_ids_throughout(void **state)
{
	(void)state;
	static const char was[] = "ses_dd7d4b4d8ffepT3An5MQeBVAYf";
	char id[SBA_SESSION_ID_MAX + 1];
	struct sba_buf text = SBA_BUF_INIT(1 << 20);
	int with = 0, without = 0;
	assert_int_equal(sba_read_file("tests/fixtures/opencode/export.json", 1 << 20, &text, NULL),
			 0);
	struct sba_part part = { .name = "session", .data = text.data, .len = text.len };
	const struct sba_parts p = { &part, 1 };
	assert_int_equal(sba_store_new_id(&sba_opencode_store, was, id, NULL), 0);
	assert_int_equal(strlen(id), strlen(was));
	assert_string_not_equal(id, was);
	assert_int_equal(sba_opencode_store.load(&sba_opencode_store, &opencode, &p, was, id, NULL),
			 0);
	SBA_JSON json_t *j = NULL;
	assert_int_equal(sba_json_parse(asked.written.data, asked.written.len, "written", &j, NULL),
			 0);
	count_ids(j, id + strlen(id) - 8, &with, &without);
	assert_true(with > 4);
	assert_int_equal(without, 0);
	assert_string_equal(sba_json_str(j, "info.id"), id);
	assert_non_null(strstr(asked.commands.data, "opencode import /home/u/.sandbox-agent-"));
	assert_non_null(strstr(asked.commands.data, "rm -f /home/u/.sandbox-agent-"));
	sba_buf_fini(&text);
}

/* A recording of what pi kept after two turns at once: two branches in one file, which
 * only pi can make sense of. */
static void a_session_of_two_branches_is_carried_as_it_is(void **state)
{
	static const char from[] = ".pi/agent/sessions/--ws--/2026-11-29T16-34-21-793Z_conc1.jsonl";
	struct sba_buf text = SBA_BUF_INIT(1 << 20);
	struct sba_kept_list l;
	struct sba_parts p;
	(void)state;
	assert_int_equal(
		sba_read_file("tests/fixtures/sessions/pi_concurrent.jsonl", 1 << 20, &text, NULL),
		0);
	inside_here_file(&here, from, text.data);
	l = listed(&sba_pi_store);
	assert_int_equal(l.n, 1);
	assert_string_equal(l.v[0].id, "conc1");
	assert_string_equal(l.v[0].title, "base [[plain]]");
	assert_string_equal(l.v[0].model, "fake-1");
	assert_string_equal(l.v[0].workdir, "/opt/rec/pi1/ws");
	assert_int_equal(l.v[0].created_ms, 1795970061793);
	sba_kept_list_fini(&l);
	p = dumped(&sba_pi_store, "conc1");
	assert_int_equal(p.n, 1);
	assert_int_equal(p.v[0].len, text.len);
	assert_memory_equal(p.v[0].data, text.data, text.len);
	assert_int_equal(sba_pi_store.load(&sba_pi_store, &here.in, &p, "conc1", UUID, NULL), 0);
	sba_parts_fini(&p);
	p = dumped(&sba_pi_store, UUID);
	const char *lines = strchr(text.data, '\n');
	assert_string_equal(strchr(p.v[0].data, '\n'), lines);
	assert_non_null(strstr(p.v[0].data, "\"id\":\"" UUID "\""));
	assert_non_null(strstr(p.v[0].data, "\"cwd\":\"/workspace\""));
	sba_parts_fini(&p);
	sba_buf_fini(&text);
}

static void a_session_that_opencode_does_not_know_is_not_found(void **state)
{
	(void)state;
	struct sba_parts p = { 0 };
	struct sba_error err = { 0 };
	asked.status = 1;
	asked.said = "Session not found";
	assert_int_equal(sba_opencode_store.dump(&sba_opencode_store, &opencode, "ses_x", &p, &err),
			 SBA_ENOTFOUND);
	assert_non_null(strstr(err.text, "ses_x"));
	assert_int_equal(sba_opencode_store.remove(&sba_opencode_store, &opencode, "ses_x", NULL),
			 SBA_ENOTFOUND);
}

static void other_trouble_of_opencodes_is_not_a_missing_session(void **state)
{
	(void)state;
	struct sba_parts p = { 0 };
	struct sba_error err = { 0 };
	asked.status = 1;
	asked.said = "database is locked";
	asked.lists = "[{\"id\":\"ses_x\"}]";
	assert_int_equal(sba_opencode_store.dump(&sba_opencode_store, &opencode, "ses_x", &p, &err),
			 SBA_EIO);
	assert_non_null(strstr(err.text, "database is locked"));
	assert_int_equal(sba_opencode_store.remove(&sba_opencode_store, &opencode, "ses_x", &err),
			 SBA_EIO);
	/* What the list does not know is not there, whatever was said. */
	assert_int_equal(sba_opencode_store.dump(&sba_opencode_store, &opencode, "ses_y", &p, &err),
			 SBA_ENOTFOUND);
	/* Without a list there is only what was said. */
	asked.lists = NULL;
	assert_int_equal(sba_opencode_store.dump(&sba_opencode_store, &opencode, "ses_y", &p, &err),
			 SBA_EIO);
}

static int tell_of_a_file(const struct sba_inside *in, const struct sba_inside_run *r,
			  struct sba_buf *ret_out, int *ret_status, char ret_said[SBA_SAID_MAX],
			  struct sba_error *err)
{
	(void)err;
	const char *time = in->user;
	if (strcmp(r->argv[0], "find") == 0)
		sba_buf_printf(ret_out, "%s /home/u/.claude/projects/-w/%s.jsonl", time, UUID);
	*ret_status = 0;
	ret_said[0] = '\0';
	return 0;
}

static void a_time_that_cannot_be_is_no_time(void **state)
{
	(void)state;
	static char times[][32] = { "99999999999999999999.0", "-5.0", "9223372036854775807" };
	for (size_t i = 0; i < SBA_ARRAY_LEN(times); i++) {
		const struct sba_inside in = { .run = tell_of_a_file,
					       .home = "/home/u",
					       .workdir = "/workspace",
					       .user = times[i] };
		struct sba_kept_list l = { 0 };
		assert_int_equal(sba_claude_store.list(&sba_claude_store, &in, &l, NULL), 0);
		assert_int_equal(l.n, 1);
		assert_int_equal(l.v[0].updated_ms, 0);
		sba_kept_list_fini(&l);
	}
}

static void the_parts_of_a_dump_are_bounded_together(void **state)
{
	(void)state;
	struct sba_parts p = { 0 };
	struct sba_error err = { 0 };
	int rc = 0;
	for (int i = 0; rc == 0 && i < 9; i++) {
		SBA_BUF struct sba_buf b = SBA_BUF_INIT(SBA_SESSION_MAX);
		assert_non_null(sba_buf_reserve(&b, SBA_SESSION_MAX / 8));
		b.len = SBA_SESSION_MAX / 8;
		rc = sba_parts_add(&p, "session", &b, &err);
	}
	assert_int_equal(rc, SBA_ELIMIT);
	assert_int_equal(p.n, 8);
	sba_parts_fini(&p);
}

#define HERE_TEST(f)     cmocka_unit_test_setup_teardown(f, begin, end)
#define OPENCODE_TEST(f) cmocka_unit_test_setup_teardown(f, begin_opencode, end_opencode)

int main(void)
{
	const struct CMUnitTest tests[] = {
		HERE_TEST(no_session_at_all_is_an_empty_list),
		HERE_TEST(a_list_tells_title_model_directory_and_times),
		HERE_TEST(files_that_are_no_session_are_not_listed),
		HERE_TEST(lines_that_make_no_sense_do_not_hide_a_session),
		HERE_TEST(what_the_cli_says_in_the_models_place_is_no_model),
		HERE_TEST(a_dump_is_the_file_byte_for_byte),
		HERE_TEST(a_session_of_two_branches_is_carried_as_it_is),
		HERE_TEST(a_dump_put_in_under_another_name_leaves_the_first_alone),
		HERE_TEST(putting_one_in_again_moves_it_to_where_the_agent_works),
		HERE_TEST(a_dump_of_another_cli_is_refused_and_nothing_is_put_in),
		HERE_TEST(removing_takes_the_one_session_and_says_what_is_not_there),
		HERE_TEST(a_copy_for_a_turn_aside_leaves_the_session_alone),
		HERE_TEST(a_codex_fork_takes_its_parents_along),
		HERE_TEST(a_codex_session_that_a_fork_needs_is_not_removed),
		cmocka_unit_test(a_time_that_cannot_be_is_no_time),
		cmocka_unit_test(the_parts_of_a_dump_are_bounded_together),
		OPENCODE_TEST(opencode_lists_what_its_database_says),
		OPENCODE_TEST(opencode_lists_what_its_own_command_says),
		OPENCODE_TEST(an_opencode_copy_has_new_ids_throughout),
		OPENCODE_TEST(a_session_that_opencode_does_not_know_is_not_found),
		OPENCODE_TEST(other_trouble_of_opencodes_is_not_a_missing_session),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
