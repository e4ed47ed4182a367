/* SPDX-License-Identifier: MIT */
/*
 * Code interpreters of services: what they tell in their own forms, one that comes up late
 * or never, refuses, says nonsense or breaks off. tests/integration/backends_test.c has what
 * holds for every backend.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <sandbox-agent/backend.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "remote/private.h"
#include "support/fake_remote.h"
#include "support/folder.h"

/* ---- a service, and what it says instead of the truth ---- */

struct world {
	char folder[64];
	struct fake_remote fake;
	struct sba_remote *remote;
	struct sba_sandbox *box;
	int lies; /* how often; -1: always */
	int status;
	const char *body;
	bool hang_up;
	struct sba_error err;
};

static const char *const services[] = { "opensandbox", "e2b" };
#define FOR_EACH_SERVICE(i) for (size_t i = 0; i < SBA_ARRAY_LEN(services); i++)

static bool lie(void *user, const struct sba_http_request *r, struct sba_http_answer *a)
{
	struct world *w = user;
	if (strcmp(r->method, "POST") != 0 || w->lies == 0 ||
	    (!sba_ends_with(r->path, "/execute") && !sba_ends_with(r->path, "/code")))
		return false;
	w->lies -= w->lies > 0;
	a->hang_up = w->hang_up;
	a->status = w->status;
	a->content_type = "application/json";
	sba_buf_init(&a->body, 1 << 16);
	sba_buf_puts(&a->body, w->body);
	return true;
}

static void begin(struct world *w, const char *service, int lies, int status, const char *body)
{
	char url[80];
	const struct sba_sandbox_options so = { .name = "one", .image = "debian" };
	alarm(120);
	*w = (struct world){ .status = status, .body = body };
	test_folder(w->folder, sizeof(w->folder), "remote");
	fake_remote_start(&w->fake, w->folder);
	w->fake.lie = lie;
	w->fake.user = w;
	snprintf(url, sizeof(url), "%s%s", w->fake.url, strcmp(service, "e2b") ? "/v1" : "");
	const struct sba_remote_options o = { .url = url,
					      .sandbox_url = w->fake.url,
					      .key = FAKE_KEY,
					      .workdir = w->folder,
					      .ready_ms = 20000 };
	if (sba_remote_open(service, &o, &w->remote, &w->err) < 0 ||
	    sba_remote_create(w->remote, &so, &w->box, &w->err) < 0)
		fail_msg("%s", w->err.text);
	w->lies = lies;
}

static void end(struct world *w)
{
	w->lies = 0;
	(void)!sba_sandbox_remove(w->box, NULL);
	sba_sandbox_close(w->box);
	sba_remote_close(w->remote);
	fake_remote_stop(&w->fake);
	test_folder_remove(w->folder);
}

static struct sba_code_run run(struct world *w, const struct sba_code_options *o)
{
	struct sba_code_run r = { 0 };
	if (sba_sandbox_run_code(w->box, o, &r, &w->err) < 0)
		fail_msg("%s", w->err.text);
	return r;
}

static int fails(struct world *w, const struct sba_code_options *o)
{
	struct sba_code_run r = { 0 };
	w->err = (struct sba_error){ 0 };
	int rc = sba_sandbox_run_code(w->box, o, &r, &w->err);
	assert_null(r.out);
	return rc;
}

static const struct sba_code_options one = { .code = "1" };

static const char *form(const struct sba_code_run *r, size_t i, const char *type)
{
	for (size_t k = 0; i < r->n_values && k < r->values[i].n; k++) {
		if (!strcmp(r->values[i].forms[k].type, type))
			return r->values[i].forms[k].data;
	}
	return "";
}

/* ---- what goes well ---- */

static void values_come_in_all_their_forms(void **state)
{
	static const char code[] = "print('caf\\u00e9')\n"
				   "class Page:\n"
				   "    def _repr_html_(self): return '<b>x</b>'\n"
				   "    def __repr__(self): return 'page'\n"
				   "Page()\n";
	(void)state;
	FOR_EACH_SERVICE(i)
	{
		struct world w;
		begin(&w, services[i], 0, 0, NULL);
		struct sba_code_run r = run(&w, &(struct sba_code_options){ .code = code });
		assert_string_equal(r.out, "caf\303\251\n");
		assert_int_equal(r.exit.kind, SBA_EXITED);
		assert_int_equal(r.exit.number, 0);
		assert_int_equal(r.execution, 1);
		assert_int_equal(r.n_values, 1);
		assert_true(r.values[0].is_result);
		assert_string_equal(form(&r, 0, "text/plain"), "page");
		assert_string_equal(form(&r, 0, "text/html"), "<b>x</b>");
		assert_string_equal(r.error_name, "");
		sba_code_run_fini(&r);
		end(&w);
	}
}

static void an_error_is_told_by_its_name_with_its_traceback(void **state)
{
	static const struct sba_code_options o = { .code = "print('begun')\n1 / 0\n" };
	(void)state;
	FOR_EACH_SERVICE(i)
	{
		struct world w;
		begin(&w, services[i], 0, 0, NULL);
		struct sba_code_run r = run(&w, &o);
		assert_string_equal(r.out, "begun\n");
		assert_int_equal(r.exit.number, 1);
		assert_string_equal(r.error_name, "ZeroDivisionError");
		assert_string_equal(r.error_value, "division by zero");
		assert_non_null(strstr(r.error_traceback, "\n"));
		assert_non_null(strstr(r.error_traceback, "<cell>"));
		sba_code_run_fini(&r);
		end(&w);
	}
}

static void contexts_keep_what_is_theirs(void **state)
{
	(void)state;
	FOR_EACH_SERVICE(i)
	{
		struct world w;
		char *a = NULL, *b = NULL;
		begin(&w, services[i], 0, 0, NULL);
		assert_int_equal(sba_code_context_new(w.box, NULL, &a, &w.err), 0);
		assert_int_equal(sba_code_context_new(w.box, NULL, &b, &w.err), 0);
		struct sba_code_run r =
			run(&w, &(struct sba_code_options){ .code = "import os; x = 41",
							    .context = a });
		sba_code_run_fini(&r);
		r = run(&w, &(struct sba_code_options){ .code = "x + 1", .context = a });
		assert_string_equal(form(&r, 0, "text/plain"), "42");
		sba_code_run_fini(&r);
		r = run(&w, &(struct sba_code_options){ .code = "os.getcwd()", .context = a });
		assert_string_equal(form(&r, 0, "text/plain"), w.folder);
		sba_code_run_fini(&r);
		r = run(&w, &(struct sba_code_options){ .code = "x", .context = b });
		assert_string_equal(r.error_name, "NameError");
		sba_code_run_fini(&r);
		assert_int_equal(sba_code_context_end(w.box, a, &w.err), 0);
		assert_int_equal(sba_code_context_end(w.box, a, &w.err), 0);
		const struct sba_code_options gone = { .code = "x", .context = a };
		assert_int_equal(fails(&w, &gone), SBA_ENOTFOUND);
		free(a);
		free(b);
		end(&w);
	}
}

static void an_environment_is_set_or_refused(void **state)
{
	static const char *const env[] = { "X=a=b", NULL };
	static const struct sba_code_options o = { .code = "import os\nos.environ['X']",
						   .env = env };
	struct world w;
	(void)state;
	begin(&w, "e2b", 0, 0, NULL);
	struct sba_code_run r = run(&w, &o);
	assert_string_equal(form(&r, 0, "text/plain"), "a=b");
	sba_code_run_fini(&r);
	end(&w);
	begin(&w, "opensandbox", 0, 0, NULL);
	assert_int_equal(fails(&w, &o), SBA_EUNSUPPORTED);
	end(&w);
}

static void what_is_beyond_the_limit_is_counted(void **state)
{
	static const struct sba_code_options o = { .code = "print('x' * 1000)\n'y' * 50",
						   .max_output = 100 };
	(void)state;
	FOR_EACH_SERVICE(i)
	{
		struct world w;
		begin(&w, services[i], 0, 0, NULL);
		struct sba_code_run r = run(&w, &o);
		assert_int_equal(r.out_len, 100);
		assert_int_equal(r.n_values, 0);
		assert_int_equal(r.dropped, 1001 - 100 + 50);
		sba_code_run_fini(&r);
		end(&w);
	}
}

/* ---- what goes wrong ---- */

static void an_interpreter_that_comes_up_late_is_waited_for(void **state)
{
	static const char *const bodies[] = {
		"{\"code\":\"RUNTIME_ERROR\",\"message\":\"dial tcp 127.0.0.1:44771: connect: "
		"connection refused\"}",
		"{\"message\":\"port is not open\",\"code\":502}",
	};
	(void)state;
	FOR_EACH_SERVICE(i)
	{
		struct world w;
		begin(&w, services[i], 2, i ? 502 : 500, bodies[i]);
		struct sba_code_run r = run(&w, &one);
		assert_int_equal(w.lies, 0);
		assert_string_equal(form(&r, 0, "text/plain"), "1");
		sba_code_run_fini(&r);
		end(&w);
	}
}

static void where_there_is_none_it_is_said_with_what_has_one(void **state)
{
	static const char *const bodies[] = {
		"{\"code\":\"RUNTIME_ERROR\",\"message\":\"language runtime server not "
		"configured\"}",
		"{\"message\":\"port is not open\",\"code\":502}",
	};
	(void)state;
	FOR_EACH_SERVICE(i)
	{
		struct world w;
		begin(&w, services[i], -1, i ? 502 : 500, bodies[i]);
		w.remote->ready_ms = 700;
		assert_int_equal(fails(&w, &one), SBA_EUNSUPPORTED);
		assert_non_null(strstr(w.err.hint, "code-interpreter"));
		end(&w);
	}
}

static void a_refusal_after_the_beginning_is_one(void **state)
{
	struct world w;
	(void)state;
	begin(&w, "opensandbox", 1, 200,
	      "{\"type\":\"init\",\"text\":\"s1\",\"timestamp\":1}\n\n"
	      "{\"code\":\"RUNTIME_ERROR\",\"message\":\"error running codes session is busy\"}");
	assert_int_equal(fails(&w, &one), SBA_EBUSY);
	end(&w);
}

static void nobody_knows_such_a_language(void **state)
{
	static const struct sba_code_options cobol = { .code = "1", .language = "cobol" };
	struct world w;
	(void)state;
	FOR_EACH_SERVICE(i)
	{
		begin(&w, services[i], 0, 0, NULL);
		assert_int_equal(fails(&w, &cobol), SBA_EINVAL);
		assert_non_null(strstr(w.err.text, "unknown language"));
		end(&w);
	}
}

static void nonsense_is_an_error_of_theirs(void **state)
{
	static const char *const nonsense[] = {
		"this is no JSON\n\n",
		"[1, 2]\n\n",
		"{\"type\":\"stdout\",\"text\":7}\n\n",
	};
	(void)state;
	for (size_t k = 0; k < SBA_ARRAY_LEN(nonsense); k++)
		FOR_EACH_SERVICE(i)
		{
			struct world w;
			begin(&w, services[i], 1, 200, nonsense[k]);
			assert_int_equal(fails(&w, &one), SBA_EPROTO);
			end(&w);
		}
}

/* Both framings, ends of lines of either kind, words of later versions. */
static void what_is_not_known_is_passed_over(void **state)
{
	static const char said[] = "data: {\"type\":\"stdout\",\"text\":\"a\"}\r\n\r\n"
				   "{\"type\":\"new-thing\",\"text\":[]}\n"
				   "{\"type\":\"keepalive\"}\n"
				   "{\"type\":\"stdout\",\"text\":\"b\"}";
	(void)state;
	FOR_EACH_SERVICE(i)
	{
		struct world w;
		begin(&w, services[i], 1, 200, said);
		struct sba_code_run r = run(&w, &one);
		assert_string_equal(r.out, "ab");
		sba_code_run_fini(&r);
		end(&w);
	}
}

static void what_breaks_off_is_lost(void **state)
{
	(void)state;
	FOR_EACH_SERVICE(i)
	{
		struct world w;
		begin(&w, services[i], 1, 200, "");
		w.hang_up = true;
		assert_int_equal(fails(&w, &one), SBA_ELOST);
		end(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_come_in_all_their_forms),
		cmocka_unit_test(an_error_is_told_by_its_name_with_its_traceback),
		cmocka_unit_test(contexts_keep_what_is_theirs),
		cmocka_unit_test(an_environment_is_set_or_refused),
		cmocka_unit_test(what_is_beyond_the_limit_is_counted),
		cmocka_unit_test(an_interpreter_that_comes_up_late_is_waited_for),
		cmocka_unit_test(where_there_is_none_it_is_said_with_what_has_one),
		cmocka_unit_test(a_refusal_after_the_beginning_is_one),
		cmocka_unit_test(nobody_knows_such_a_language),
		cmocka_unit_test(nonsense_is_an_error_of_theirs),
		cmocka_unit_test(what_is_not_known_is_passed_over),
		cmocka_unit_test(what_breaks_off_is_lost),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
