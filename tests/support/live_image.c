/* SPDX-License-Identifier: MIT */
/* Small images of the tests' own, built by the engine; see live.h. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "archive/archive.h"
#include "support/live.h"

#include <string.h>

enum { BUILD_MS = 100 * 1000 };

/* What a real claude would say, and what none should; the prompt chooses. */
static const char fake_claude[] =
	"#!/bin/sh\n"
	"init='{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":"
	"\"6b0d7a46-5f3f-4a4e-9a55-0d9c1f1f0001\",\"model\":\"fake\",\"tools\":[]}'\n"
	"say() { printf '{\"type\":\"assistant\",\"message\":{\"id\":\"m1\",\"role\":"
	"\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"%s\"}],\"usage\":"
	"{\"input_tokens\":5,\"output_tokens\":3}}}\\n' \"$1\"; }\n"
	"result() { printf '{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,"
	"\"result\":\"%s\",\"session_id\":\"6b0d7a46-5f3f-4a4e-9a55-0d9c1f1f0001\","
	"\"usage\":{\"input_tokens\":5,\"output_tokens\":3}}\\n' \"$1\"; }\n"
	"prompt=$(head -c 64)\n"
	"rest=$(wc -c)\n"
	"case $prompt in\n"
	"silent) exec sleep 4243 ;;\n"
	"compute) end=$(($(date +%s) + 6)); while [ $(date +%s) -lt $end ]; do\n"
	"  i=0; while [ $i -lt 9999 ]; do i=$((i + 1)); done; done ;;\n"
	"esac\n"
	"printf '%s\\n' \"$init\"\n"
	"case $prompt in\n"
	"linger) say kept; result kept; exec sleep 4242 ;;\n"
	"stubborn) trap '' TERM INT HUP; say working; setsid sleep 4244 & \n"
	"  while :; do sleep 4244; done ;;\n"
	"again) say one; result one; printf '%s\\n' \"$init\"; say two; sleep 12; result two ;;\n"
	"hang) say working; exec sleep 4245 ;;\n"
	"utf8) printf '\\377\\376 no line of ours \\200\\n'; say 'a\377b'; result 'a\377b' ;;\n"
	"long) printf '{\"type\":\"assistant\",\"message\":{\"id\":\"m1\",\"content\":[{\"type\":"
	"\"text\",\"text\":\"'; head -c 5242880 /dev/zero | tr '\\0' x; printf '\"}]}}\\n'\n"
	"  result done ;;\n"
	"junk) head -c 5242880 /dev/zero | tr '\\0' '{'; echo; result done ;;\n"
	"escape) printf '{\"type\":\"assistant\",\"message\":{\"id\":\"m1\",\"content\":[{\"type\":"
	"\"tool_use\",\"id\":\"t1\",\"name\":\"Bash\",\"input\":{\"command\":"
	"\"\\\\u001b]0;owned\\\\u0007\"}}]}}\\n'\n"
	"  printf '{\"type\":\"user\",\"message\":{\"content\":[{\"type\":\"tool_result\","
	"\"tool_use_id\":\"t1\",\"content\":\"\\\\u001b[2Kall \\\\u202eok\"}]}}\\n'\n"
	"  say 'red \\u001b[31m text'; result 'red \\u001b[31m text' ;;\n"
	"hog) sh -c 'a=0123456789abcdef; while :; do a=$a$a; done' 2>/dev/null\n"
	"  say survived; result survived ;;\n"
	"crash) echo 'fatal: the fake broke' >&2; exit 3 ;;\n"
	"mute) exit 0 ;;\n"
	"refused*) printf '{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":true,"
	"\"api_error_status\":%d,\"result\":\"API Error\"}\\n' ${prompt#refused }; exit 1 ;;\n"
	"--count*) say \"got $((64 + rest))\"; result \"got $((64 + rest))\" ;;\n"
	"*) say \"heard $prompt\"; result \"heard $prompt\" ;;\n"
	"esac\n";

static ssize_t read_pack(void *user, void *buf, size_t size, struct sba_error *err)
{
	return sba_pack_read(user, buf, size, err);
}

static int ignore_line(void *user, const json_t *line)
{
	(void)user;
	(void)line;
	return 0;
}

static int build(const char *ref, const char *dockerfile, const char *file, const char *content,
		 struct sba_error *err)
{
	const struct sba_pack_options options = { .fixed_mtime = 0 };
	const struct sba_image_build spec = { .tag = ref };
	struct sba_pack *pack = NULL;
	int rc = sba_pack_new(&options, &pack, err);
	if (rc == 0)
		rc = sba_pack_bytes(pack, "Dockerfile", dockerfile, strlen(dockerfile), 0644, err);
	if (rc == 0 && file)
		rc = sba_pack_bytes(pack, file, content, strlen(content), 0755, err);
	if (rc == 0)
		rc = sba_image_build(live.engine, &spec, read_pack, pack, ignore_line, NULL,
				     sba_until_in(BUILD_MS), err);
	sba_pack_free(pack);
	return rc;
}

const char *live_image(const char *name, const char *lines, const char *file, const char *content)
{
	static char refs[8][64];
	static unsigned next;
	char *ref = refs[next++ % SBA_ARRAY_LEN(refs)];
	char dockerfile[2048];
	struct sba_error err = { 0 };
	snprintf(ref, sizeof(refs[0]), "%s-%s:1", live.prefix, name);
	snprintf(dockerfile, sizeof(dockerfile), "FROM %s\n%s\n", live.image, lines);
	if (build(ref, dockerfile, file, content, &err) < 0)
		fail_msg("%s\n%s", err.text, err.hint);
	return ref;
}

const char *live_fake_image(void)
{
	static const char *ref;
	if (!ref)
		ref = live_image("fake", "COPY claude /usr/local/bin/claude\nWORKDIR /workspace",
				 "claude", fake_claude);
	return ref;
}
