/* SPDX-License-Identifier: MIT */
/*
 * opencode (measured with 1.18.33): `opencode run --format json`. Whole parts
 * only, each call once it has ended, and no line that says the turn is over.
 */
#include "drivers/opencode.h"

#include "base/limits.h"

#include <string.h>

/* A stream that was cut makes opencode ask again at once, for ever (2300
 * requests in 9 minutes); it says "unknown" each time. */
enum { UNKNOWN_MAX = 5 };

/* ---- command ---- */

/* The model is declared under our own provider, so that any name is known. */
#define PROVIDER "sandbox"
#define KEY_ENV  "SANDBOX_AGENT_MODEL_KEY"

/* It carries a catalogue of all providers' models, and takes a second of CPU to read it.
 * An empty file in its place is as good where the model is declared. */
#define MODELS_FILE SBA_DRIVER_DIR "/opencode/models.json"

static const struct sba_driver_file files[] = {
	{ MODELS_FILE, 0644, "{}\n" },
	{ NULL, 0, NULL },
};

static json_t *config_provider(const struct sba_turn_spec *spec, const char *model)
{
	/* The limits steer when opencode compacts a session and the max_tokens
	 * that it asks for: what today's models all take. */
	return json_pack("{s:s, s:s, s:{s:o, s:s}, s:{s:{s:s, s:b, s:b, s:{s:i, s:i}}}}", "npm",
			 "@ai-sdk/openai-compatible", "name", "sandbox-agent", "options", "baseURL",
			 json_sprintf("%.*s/v1", sba_turn_base_len(spec), spec->base_url), "apiKey",
			 "{env:" KEY_ENV "}", "models", model, "name", model, "reasoning", 1,
			 "tool_call", 1, "limit", "context", 128000, "output", 16384);
}

/* The rule on external_directory is one of its own; without it a write outside the
 * workspace ends the turn in silence. The last rule that fits counts; what is denied
 * for all that there is is not offered. */
static json_t *config_permission(enum sba_permissions p)
{
	json_t *rules = json_pack("{s:s}", "*", "allow");
	bool outside = p != SBA_PERMISSIONS_EDIT;
	if (!rules)
		return NULL;
	json_object_set_new(rules, "external_directory", json_string(outside ? "allow" : "deny"));
	if (p != SBA_PERMISSIONS_FULL) {
		json_object_set_new(rules, "bash", json_string("deny"));
		json_object_set_new(rules, "task", json_string("deny"));
	}
	if (p == SBA_PERMISSIONS_READ_ONLY)
		json_object_set_new(rules, "edit", json_string("deny"));
	return rules;
}

/* Everything goes by the environment: a file would outlive the turn. The title
 * would be a second request. With a login of its own the providers are those that it
 * knows. */
static json_t *config(const struct sba_turn_spec *spec, const char *model)
{
	json_t *j = json_pack("{s:b, s:s, s:{s:{s:b}}, s:o}", "autoupdate", 0, "share", "disabled",
			      "agent", "title", "disable", 1, "permission",
			      config_permission(spec->permissions));
	if (!j || spec->login)
		return j;
	SBA_JSON json_t *full = json_sprintf(PROVIDER "/%s", model);
	if (json_object_set(j, "model", full) || json_object_set(j, "small_model", full) ||
	    json_object_set_new(j, "provider",
				json_pack("{s:o}", PROVIDER, config_provider(spec, model)))) {
		json_decref(j);
		return NULL;
	}
	return j;
}

/* The name of a login's model says its provider. */
static void put_model(const struct sba_turn_spec *spec, const char *model, struct sba_command *c)
{
	if (spec->login && !spec->model)
		return;
	sba_command_arg(c, "-m");
	if (spec->login)
		sba_command_arg(c, spec->model);
	else
		sba_command_argf(c, PROVIDER "/%s", model);
}

static int opencode_command(const struct sba_turn_spec *spec, struct sba_command *ret,
			    struct sba_error *err)
{
	static const char *const headless[] = { "run",    "--format",   "json",
						"--auto", "--thinking", NULL };
	static const char *const env[] = {
		/* Without it the first request comes 10 s late where there is no network. */
		"OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_AUTOUPDATE=1",
		"OPENCODE_DISABLE_LSP_DOWNLOAD=1", NULL
	};
	const char *model = spec->model ? spec->model : sba_driver_opencode.offline_model;
	SBA_JSON json_t *j = config(spec, model);
	SBA_FREE char *text = j ? sba_json_dump(j) : NULL;
	if (!text)
		return sba_fail_nomem(err);
	sba_command_arg(ret, "opencode");
	if (!spec->screen)
		sba_command_args(ret, headless);
	put_model(spec, model, ret);
	if (spec->session) {
		sba_command_arg(ret, "-s");
		sba_command_arg(ret, spec->session);
	}
	sba_command_envs(ret, env);
	sba_command_env(ret, "OPENCODE_CONFIG_CONTENT", text);
	if (!spec->login) {
		sba_command_env(ret, KEY_ENV, spec->token);
		sba_command_env_file(ret, "OPENCODE_MODELS_PATH", spec, MODELS_FILE);
	}
	if (spec->scratch && !ret->failed &&
	    sba_strv_addf(&ret->env, NULL, "OPENCODE_DB=%s/opencode.db", spec->scratch) < 0)
		ret->failed = SBA_ENOMEM;
	if (spec->mcp)
		sba_command_env_file(ret, "OPENCODE_CONFIG", spec, sba_driver_opencode.mcp_path);
	/* It may name servers and plugins, which are commands. */
	if (spec->permissions != SBA_PERMISSIONS_FULL)
		sba_command_env(ret, "OPENCODE_DISABLE_PROJECT_CONFIG", "1");
	return 0;
}

/* ---- tools ---- */

/* Tools of MCP servers are "<server>_<tool>", which only the servers' names tell apart
 * from a tool whose name has an underscore. */
static const struct sba_tool_name tool_names[] = {
	{ "bash", "bash" },
	{ "read", "read" },
	{ "write", "write" },
	{ "edit", "edit" },
	{ "multiedit", "edit" },
	{ "patch", "edit" },
	{ "apply_patch", "edit" },
	{ "glob", "glob" },
	{ "grep", "grep" },
	{ "webfetch", "web_fetch" },
	{ "websearch", "web_search" },
	{ "task", "task" },
	{ "skill", "skill" },
	{ "todowrite", "todo" },
	{ "todoread", "todo" },
};

static int file_change(struct sba_stream *s, const char *tool, const json_t *told)
{
	const char *path = sba_json_str(told, "metadata.filepath");
	const json_t *existed = sba_json_get(told, "metadata.exists");
	if (strcmp(tool, "write") != 0 && strcmp(tool, "edit") != 0)
		return 0;
	return sba_stream_file_change(s, path ? path : sba_json_str(told, "input.filePath"),
				      !json_is_boolean(existed) ? NULL
				      : json_is_true(existed)   ? "modified"
								: "created");
}

/* Printed once, when the call has ended. */
static int on_tool_use(struct sba_stream *s, struct opencode *oc, const json_t *part)
{
	const json_t *told = sba_json_get(part, "state");
	const char *native = sba_json_str(part, "tool");
	const char *status = sba_json_str(told, "status");
	bool error = status && strcmp(status, "error") == 0;
	if (!native || !status || (!error && strcmp(status, "completed") != 0))
		return sba_stream_unknown(s, "a tool call in state '%s'", status ? status : "?");
	SBA_BUF struct sba_buf scratch = SBA_BUF_INIT(SBA_SUMMARY_MAX);
	const char *name =
		sba_tool_name_server(s, tool_names, SBA_ARRAY_LEN(tool_names), native, &scratch);
	/* What the model called and there is not; the state says "completed". */
	bool invalid = strcmp(native, "invalid") == 0;
	if (invalid && sba_json_str(told, "input.tool"))
		name = sba_json_str(told, "input.tool");
	const json_t *code = sba_json_get(told, "metadata.exit");
	int exit_code = sba_json_exit_code(told, "metadata.exit");
	struct sba_tool_use use = {
		.name = name,
		.native = native,
		.call_id = sba_json_str(part, "callID"),
		.input = sba_json_get(told, "input"),
		.output = sba_json_str(told, error ? "error" : "output"),
		.failed = error || invalid || exit_code != 0,
		.has_exit_code = json_is_number(code),
		.exit_code = exit_code,
	};
	sba_text_keep(oc->last_tool, sizeof(oc->last_tool), name);
	sba_text_keep(oc->refused, sizeof(oc->refused), error ? use.output : NULL);
	int rc = sba_stream_call(s, &use);
	if (rc == 0)
		rc = sba_stream_result(s, &use);
	return rc || error ? rc : file_change(s, native, told);
}

/* ---- lines ---- */

static int on_step_start(struct sba_stream *s, struct opencode *oc SBA_UNUSED,
			 const json_t *part SBA_UNUSED)
{
	sba_stream_answer_drop(s);
	sba_stream_set_done(s, false);
	return 0;
}

static int on_text(struct sba_stream *s, struct opencode *oc SBA_UNUSED, const json_t *part)
{
	return sba_stream_whole(s, SBA_EVENT_TEXT, sba_json_str(part, "text"));
}

static int on_reasoning(struct sba_stream *s, struct opencode *oc SBA_UNUSED, const json_t *part)
{
	return sba_stream_whole(s, SBA_EVENT_THINKING, sba_json_str(part, "text"));
}

/* Per step; input comes without the cached part, output without reasoning. */
static int step_usage(struct sba_stream *s, const json_t *part)
{
	int64_t read = sba_json_count(part, "tokens.cache.read");
	int64_t made = sba_json_count(part, "tokens.cache.write");
	int64_t reasoning = sba_json_count(part, "tokens.reasoning");
	struct sba_usage u = {
		.input = sba_json_count(part, "tokens.input"),
		.cached_input = read,
		.output = sba_json_count(part, "tokens.output"),
		.reasoning = reasoning,
		.cost_usd = json_number_value(sba_json_get(part, "cost")),
	};
	sba_usage_add(&u, &(struct sba_usage){ .input = read, .output = reasoning });
	sba_usage_add(&u, &(struct sba_usage){ .input = made });
	return sba_stream_usage(s, &u);
}

static int on_step_finish(struct sba_stream *s, struct opencode *oc, const json_t *part)
{
	const char *reason = sba_json_str(part, "reason");
	sba_text_keep(oc->reason, sizeof(oc->reason), reason ? reason : "unknown");
	bool unknown = strcmp(oc->reason, "unknown") == 0;
	oc->unknown = unknown ? oc->unknown + 1 : 0;
	int rc = step_usage(s, part);
	if (rc)
		return rc;
	if (unknown && oc->unknown >= UNKNOWN_MAX)
		sba_stream_set_stuck(s);
	if (unknown)
		return sba_stream_notice(s, "the model's stream ended without a reason");
	if (strcmp(oc->reason, "tool-calls") == 0)
		return 0;
	if (strcmp(oc->reason, "length") == 0)
		rc = sba_stream_notice(s, "the model's output limit cut the answer");
	sba_stream_error_forget(s);
	sba_stream_set_done(s, true);
	return rc ? rc : sba_stream_emit(s, (struct sba_event){ .kind = SBA_EVENT_DONE });
}

/* Retries go on in silence; an error of these kinds is the last word, though
 * the process has been seen to stay. */
static bool is_final(const char *name)
{
	return strcmp(name, "APIError") == 0 || strcmp(name, "UnknownError") == 0 ||
	       strcmp(name, "ProviderAuthError") == 0;
}

int sba_opencode_error(struct sba_stream *s, const json_t *error)
{
	const char *name = sba_json_str(error, "name");
	const char *text = sba_json_str(error, "data.message");
	int status = sba_http_status(sba_json_number(error, "data.statusCode", 0), NULL, "");
	bool model = name && strcmp(name, "UnknownError") != 0 && is_final(name);
	if (name && is_final(name))
		sba_stream_set_done(s, true);
	return sba_stream_error(
		s, &(struct sba_failure){
			   .text = text ? text : name,
			   .http_status = status,
			   .model = model || status > 0,
			   .retryable = sba_json_bool(error, "data.isRetryable", false),
		   });
}

int sba_opencode_part(struct sba_stream *s, struct opencode *oc, const char *type,
		      const json_t *part)
{
	static const struct {
		const char *type;
		int (*on)(struct sba_stream *s, struct opencode *oc, const json_t *part);
	} parts[] = {
		{ "step_start", on_step_start },   { "text", on_text },
		{ "reasoning", on_reasoning },     { "tool_use", on_tool_use },
		{ "step_finish", on_step_finish },
	};
	for (size_t i = 0; i < SBA_ARRAY_LEN(parts); i++) {
		if (strcmp(type, parts[i].type) == 0)
			return parts[i].on(s, oc, part);
	}
	return sba_stream_unknown(s, "a line of type '%s'", type);
}

static int opencode_object(struct sba_stream *s, void *state, const json_t *line)
{
	const char *type = sba_json_str(line, "type");
	if (!type)
		return sba_stream_unknown(s, "a line without a type");
	int rc = sba_stream_found_session(s, sba_json_str(line, "sessionID"));
	if (rc)
		return rc;
	if (strcmp(type, "error") == 0)
		return sba_opencode_error(s, json_object_get(line, "error"));
	return sba_opencode_part(s, state, type, json_object_get(line, "part"));
}

static void opencode_finish(struct sba_stream *s, void *state, int exit_status,
			    struct sba_outcome *outcome)
{
	const struct opencode *oc = state;
	if (sba_stream_stuck(s)) {
		sba_outcome_set(s, outcome, SBA_VERDICT_MODEL_ERROR,
				"the model's stream was cut %u times in a row", oc->unknown);
		outcome->retryable = true;
		return;
	}
	/* A call that was refused ends the turn in silence, with 0. */
	if (exit_status == 0 && !sba_stream_failed(s) && strcmp(oc->reason, "tool-calls") == 0)
		sba_outcome_set(s, outcome, SBA_VERDICT_NO_ANSWER,
				"opencode stopped after its call of %s without an answer%s%s",
				oc->last_tool[0] ? oc->last_tool : "a tool",
				oc->refused[0] ? ": " : "", oc->refused);
}

static int opencode_line(struct sba_stream *s, void *state, const char *line, size_t len)
{
	static const char sse[] = "data: ";
	if (len < strlen(sse) || memcmp(line, sse, strlen(sse)) != 0)
		return sba_stream_object(s, state, line, len, opencode_object);
	return sba_stream_object(s, state, line + strlen(sse), len - strlen(sse),
				 sba_opencode_server_object);
}

static const struct sba_login login = {
	.path = ".local/share/opencode/auth.json",
	.variable = "XDG_DATA_HOME",
	.beneath = "opencode/auth.json",
	.how = "opencode auth login",
};

const struct sba_driver sba_driver_opencode = {
	.size = sizeof(struct sba_driver),
	.name = "opencode",
	.binary = "opencode",
	.install = "an image that has it:  sandbox-agent image build opencode\n"
		   "or, inside, with node:  npm install -g opencode-ai",
	.api = SBA_API_CHAT_COMPLETIONS,
	.offline_model = "scripted",
	.needs_model = true,
	.files = files,
	.command = opencode_command,
	.state_size = sizeof(struct opencode),
	.line = opencode_line,
	.finish = opencode_finish,
	.rules = ".config/opencode/AGENTS.md",
	.skills = ".config/opencode/skills",
	.store = &sba_opencode_store,
	.keeps_read_only = true,
	.keeps_edit = true,
	.has_screen = true,
	.mcp_path = SBA_LODGING_DIR "/opencode.json",
	.mcp_form = SBA_MCP_OPENCODE,
	.login = &login,
};
