/* SPDX-License-Identifier: MIT */
/*
 * Many agents on the same task, each in a sandbox of its own; the best answer wins:
 * of those whose work passes a check, the one that took the fewest tokens. Its file is
 * brought home.
 *
 * usage: best_of AGENT COUNT PROMPT CHECK FILE
 *   best_of claude 50 "write a quicksort in Python to /workspace/qs.py" \
 *           "python3 /workspace/qs.py" /workspace/qs.py
 *
 * With the agent's key in the environment (ANTHROPIC_API_KEY, OPENAI_API_KEY ...) a real
 * model answers, else the scripted one.
 */
#define _POSIX_C_SOURCE 200809L
#include <sandbox-agent/sandbox-agent.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct task {
	struct sba_engine *engine; /* may be shared between threads */
	const char *agent, *image, *key, *prompt, *check;
};

/* One attempt: its thread's alone until that is joined. */
struct attempt {
	const struct task *task;
	pthread_t thread;
	bool started, passed;
	struct sba_sandbox *sandbox; /* NULL: it failed, as err says */
	int64_t tokens;
	char *answer;
	struct sba_error err;
};

static int make_sandbox(struct attempt *a)
{
	const struct sba_sandbox_options options = { .agent = a->task->agent,
						     .image = a->task->image,
						     .prefix = getenv("SANDBOX_AGENT_PREFIX"),
						     .keepalive_ms = 60 * 1000,
						     .max_sandboxes = -1 };
	return sba_sandbox_create(a->task->engine, &options, &a->sandbox, &a->err);
}

static int do_turn(struct attempt *a, struct sba_agent *agent)
{
	const struct sba_turn_options options = { .prompt = a->task->prompt };
	struct sba_turn_result result;
	struct sba_turn *turn;
	int rc = sba_turn_begin(agent, &options, &turn, &a->err);
	if (rc < 0)
		return rc;
	sba_turn_result(turn, &result); /* drains the events, which nobody wants here */
	if (result.verdict == SBA_VERDICT_OK) {
		a->tokens = result.usage.input + result.usage.output;
		a->answer = strdup(result.text);
	} else {
		a->err = result.error;
		rc = result.error.code;
	}
	sba_turn_free(turn);
	return rc;
}

static int let_agent_work(struct attempt *a)
{
	const struct sba_agent_options options = { .offline = !a->task->key, .key = a->task->key };
	struct sba_agent *agent;
	int rc = sba_agent_open(a->sandbox, &options, &agent, &a->err);
	if (rc < 0)
		return rc;
	rc = do_turn(a, agent);
	sba_agent_close(agent);
	return rc;
}

/* The agent's word for it does not count: the check runs in its sandbox. */
static int check_work(struct attempt *a)
{
	const char *const argv[] = { "sh", "-c", a->task->check, NULL };
	const struct sba_exec_options options = { .argv = argv, .timeout_ms = 60 * 1000 };
	struct sba_process *process;
	struct sba_exit end;
	int rc = sba_sandbox_exec(a->sandbox, &options, &process, &a->err);
	if (rc < 0)
		return rc;
	rc = sba_process_wait(process, -1, &end, &a->err);
	sba_process_free(process);
	a->passed = rc == 0 && sba_exit_status(&end) == 0;
	return rc;
}

static void end_sandbox(struct attempt *a)
{
	sba_sandbox_remove(a->sandbox, NULL);
	sba_sandbox_close(a->sandbox);
	a->sandbox = NULL;
}

static void *attempt_thread(void *attempt)
{
	struct attempt *a = attempt;
	int rc = make_sandbox(a);
	if (rc < 0)
		return NULL;
	rc = let_agent_work(a);
	if (rc == 0)
		rc = check_work(a);
	if (rc < 0)
		end_sandbox(a);
	return NULL;
}

static struct attempt *pick(struct attempt *attempts, size_t n)
{
	struct attempt *best = NULL;
	for (struct attempt *a = attempts; a < attempts + n; a++) {
		if (!a->sandbox)
			fprintf(stderr, "one failed: %s\n", a->err.text);
		else if (a->passed && (!best || a->tokens < best->tokens))
			best = a;
	}
	return best;
}

static int show(struct attempt *best, const char *file, struct sba_error *err)
{
	const struct sba_transfer_options options = { .replace = true };
	printf("%s, %lld tokens: %s\n", sba_sandbox_info(best->sandbox)->name,
	       (long long)best->tokens, best->answer ? best->answer : "");
	return sba_sandbox_download(best->sandbox, file, ".", &options, NULL, err);
}

static int compete(const struct task *task, size_t n, const char *file, struct sba_error *err)
{
	struct attempt *attempts = calloc(n, sizeof(*attempts));
	if (!attempts)
		return SBA_ENOMEM;
	for (size_t i = 0; i < n; i++) {
		struct attempt *a = &attempts[i];
		a->task = task;
		a->started = pthread_create(&a->thread, NULL, attempt_thread, a) == 0;
	}
	for (size_t i = 0; i < n; i++) {
		if (attempts[i].started)
			pthread_join(attempts[i].thread, NULL);
	}
	struct attempt *best = pick(attempts, n);
	int rc = best ? show(best, file, err) : 0;
	if (!best)
		fprintf(stderr, "none of %zu passed the check\n", n);
	for (size_t i = 0; i < n; i++) {
		if (attempts[i].sandbox)
			end_sandbox(&attempts[i]);
		free(attempts[i].answer);
	}
	free(attempts);
	return best ? rc : SBA_EAGENT;
}

int main(int argc, char **argv)
{
	struct sba_error err = { .text = "" };
	struct sba_images *images = NULL;
	struct task task = { 0 };
	int rc;
	if (argc != 6) {
		fputs("usage: best_of AGENT COUNT PROMPT CHECK FILE\n", stderr);
		return 2;
	}
	const char *key_name = sba_provider_key_env(argv[1], NULL);
	task.agent = argv[1];
	task.prompt = argv[3];
	task.check = argv[4];
	task.key = key_name ? getenv(key_name) : NULL;
	rc = sba_engine_open(NULL, &task.engine, &err);
	if (rc == 0)
		rc = sba_images_open(NULL, NULL, &images, &err);
	if (rc == 0) {
		task.image = sba_images_ref(images, task.agent);
		rc = compete(&task, strtoul(argv[2], NULL, 10), argv[5], &err);
	}
	if (rc < 0 && err.text[0])
		fprintf(stderr, "best_of: %s\n%s\n", err.text, err.hint);
	sba_images_close(images);
	sba_engine_close(task.engine);
	return rc < 0;
}
