/* SPDX-License-Identifier: MIT */
/*
 * The built-in script: what the scripted model answers when no script is
 * given. docs/model-script.md lists its prompts. Rules are tried in order.
 */
#include "model/private.h"

#define WRITES(path, content)                                                                      \
	"\"steps\":["                                                                              \
	" {\"tools\":[{\"kind\":\"write\",\"path\":\"" path "\",\"content\":\"" content "\"}]},"   \
	" {\"text\":\"Wrote " path ".\"}]},"

const char sba_model_builtin_script[] =
	"{\"v\":1,\"rules\":["
	/* run: COMMAND */
	"{\"match\":{\"prefix\":\"run:\"},\"steps\":["
	" {\"tools\":[{\"kind\":\"bash\",\"command\":\"{{rest}}\"}]},"
	" {\"text\":\"The command printed:\\n{{tool_output}}\"}]},"
	/* write /PATH: TEXT */
	"{\"match\":{\"prefix\":\"write /\",\"contains\":\":\"}," WRITES("/{{before_colon}}",
									 "{{after_colon}}")
	/* error STATUS [RETRY-AFTER] */
	"{\"match\":{\"prefix\":\"error \"},\"steps\":["
	" {\"error\":{\"status\":\"{{word}}\",\"message\":\"the script says error {{word}}\","
	"  \"retry_after\":\"{{tail}}\"}}]},"
	/* slow: 1200 pieces, 50 ms apart */
	"{\"match\":{\"prefix\":\"slow\"},\"steps\":["
	" {\"text\":\"tick \",\"fill\":6000,\"chunk\":5,\"delay_ms\":50}]},"
	/* cut: the connection breaks in the middle */
	"{\"match\":{\"equals\":\"cut\"},\"steps\":["
	" {\"text\":\"This answer is never finished. \",\"fill\":3000,\"cut_after_bytes\":2000}]},"
	/* big BYTES */
	"{\"match\":{\"prefix\":\"big \"},\"steps\":["
	" {\"text\":\"0123456789abcde \",\"fill\":\"{{word}}\"}]},"
	/* the demonstration */
	"{\"match\":{\"contains\":\"quicksort\"},\"steps\":["
	" {\"thinking\":\"A quicksort needs a pivot and two halves; a small list shows that it "
	"works.\","
	"  \"text\":\"I'll write the file, then run it.\","
	"  \"tools\":[{\"kind\":\"write\",\"path\":\"{{path:/workspace/qs.py}}\",\"content\":\""
	"def quicksort(items):\\n"
	"    if len(items) <= 1:\\n"
	"        return list(items)\\n"
	"    pivot = items[len(items) // 2]\\n"
	"    smaller = [x for x in items if x < pivot]\\n"
	"    equal = [x for x in items if x == pivot]\\n"
	"    larger = [x for x in items if x > pivot]\\n"
	"    return quicksort(smaller) + equal + quicksort(larger)\\n"
	"\\n"
	"\\n"
	"if __name__ == '__main__':\\n"
	"    numbers = [33, 4, 21, 8, 4, -7, 0, 15]\\n"
	"    print(numbers, '->', quicksort(numbers))\\n"
	"    assert quicksort(numbers) == sorted(numbers)\\n"
	"\"}]},"
	" {\"tools\":[{\"kind\":\"bash\",\"command\":\"python3 {{path:/workspace/qs.py}}\"}]},"
	" {\"text\":\"Sorted as expected. The file is {{path:/workspace/qs.py}}.\"}]},"
	/* write PATH: TEXT */
	"{\"match\":{\"prefix\":\"write \",\"contains\":\":\"}," WRITES(
		"/workspace/{{before_colon}}", "{{after_colon}}")
	/* write NAME.py and run it */
	"{\"match\":{\"prefix\":\"write \",\"contains\":\".py\"},\"steps\":["
	" {\"text\":\"I'll write the file, then run it.\","
	"  \"tools\":[{\"kind\":\"write\",\"path\":\"{{path:/workspace/hello.py}}\",\"content\":"
	"\"print('Hello from the sandbox.')\\n\"}]},"
	" {\"tools\":[{\"kind\":\"bash\",\"command\":\"python3 {{path:/workspace/hello.py}}\"}]},"
	" {\"text\":\"It says: {{tool_output}}\"}]},"
	/* write /PATH TEXT */
	"{\"match\":{\"prefix\":\"write /\"}," WRITES("/{{word}}", "{{tail}}")
	/* anything else */
	"{\"match\":{\"any\":true},\"steps\":["
	" {\"text\":\"You said: {{prompt}} (message {{history}})\"}]}"
	"]}";
