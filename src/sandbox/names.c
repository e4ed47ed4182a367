/* SPDX-License-Identifier: MIT */
/* Names of sandboxes: what is allowed, and made-up ones that can be said aloud. */
#include "sandbox/private.h"

#include <string.h>

int sba_name_check(const char *what, const char *name, struct sba_error *err)
{
	if (sba_is_word(name, "._-", SBA_NAME_MAX - 1) && !strchr("._", name[0]))
		return 0;
	return sba_fail(
		err, SBA_EINVAL,
		"%s '%.80s': letters, digits, '.', '_' and '-' only, at most %d, and a letter or "
		"digit first",
		what, name, SBA_NAME_MAX - 1);
}

int sba_name_make(char ret[SBA_NAME_MAX], struct sba_error *err)
{
	static const char *const first[] = {
		"amber",  "bold",  "brave", "brisk", "calm",  "clever", "cool",   "deft",  "eager",
		"early",  "fair",  "fast",  "fond",  "free",  "fresh",  "gentle", "glad",  "grand",
		"green",  "happy", "keen",  "kind",  "light", "lively", "lucid",  "mild",  "neat",
		"noble",  "plain", "proud", "quick", "quiet", "ready",  "red",    "sharp", "shy",
		"silver", "small", "smart", "snug",  "soft",  "solid",  "still",  "sunny", "swift",
		"tall",   "tidy",  "true",  "vivid", "warm",  "white",  "wild",   "wise",  "young",
	};
	static const char *const second[] = {
		"badger", "bear", "beaver", "bison",  "crane", "crow",  "deer",  "dove",  "eagle",
		"egret",  "elk",  "finch",  "fox",    "gecko", "goose", "gull",  "hare",  "hawk",
		"heron",  "ibex", "ibis",   "jay",    "kite",  "koala", "lark",  "lemur", "lion",
		"llama",  "lynx", "magpie", "mole",   "moose", "mouse", "newt",  "otter", "owl",
		"panda",  "pony", "puma",   "quail",  "raven", "robin", "seal",  "shrew", "sparrow",
		"stork",  "swan", "tern",   "thrush", "tiger", "toad",  "trout", "viper", "walrus",
		"weasel", "wolf", "wren",   "yak",    "zebra",
	};
	unsigned char r[3];
	int rc = sba_random(r, sizeof(r), err);
	if (rc < 0)
		return rc;
	snprintf(ret, SBA_NAME_MAX, "%s-%s-%02x", first[r[0] % SBA_ARRAY_LEN(first)],
		 second[r[1] % SBA_ARRAY_LEN(second)], r[2]);
	return 0;
}
