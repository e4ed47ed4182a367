/* SPDX-License-Identifier: MIT */
/*
 * The providers that the relay can speak to: where they are, how they take
 * their key. One table; anything else is a base URL of the user's own.
 */
#include "agent/provider.h"

#include <sandbox-agent/agent.h>

#include <string.h>

static const struct sba_provider providers[] = {
	{ "anthropic", SBA_API_ANTHROPIC, "https://api.anthropic.com", "ANTHROPIC_API_KEY",
	  SBA_KEY_X_API_KEY },
	{ "deepseek", SBA_API_CHAT_COMPLETIONS, "https://api.deepseek.com", "DEEPSEEK_API_KEY",
	  SBA_KEY_BEARER },
	{ "openai", SBA_API_RESPONSES, "https://api.openai.com", "OPENAI_API_KEY", SBA_KEY_BEARER },
	{ "openai-compatible", SBA_API_CHAT_COMPLETIONS, NULL, "OPENAI_API_KEY", SBA_KEY_BEARER },
	{ "anthropic-compatible", SBA_API_ANTHROPIC, NULL, "ANTHROPIC_API_KEY", SBA_KEY_X_API_KEY },
};

const struct sba_provider *sba_provider_find(const char *name)
{
	for (size_t i = 0; i < SBA_ARRAY_LEN(providers); i++) {
		if (strcmp(providers[i].name, name) == 0)
			return &providers[i];
	}
	return NULL;
}

const struct sba_provider *sba_provider_default(const struct sba_driver *driver)
{
	if (driver->provider)
		return sba_provider_find(driver->provider);
	switch (driver->api) {
	case SBA_API_ANTHROPIC:
		return sba_provider_find("anthropic");
	case SBA_API_RESPONSES:
	case SBA_API_CHAT_COMPLETIONS:
		return sba_provider_find("openai");
	case SBA_API_ANY:
		return sba_provider_find("openai-compatible");
	}
	return NULL;
}

/* OpenAI speaks both of its wire formats. */
bool sba_provider_speaks(const struct sba_provider *p, enum sba_model_api api)
{
	if (api == SBA_API_ANY)
		return true;
	bool openai = p->api != SBA_API_ANTHROPIC;
	return openai == (api != SBA_API_ANTHROPIC);
}

const char *const *sba_provider_list(void)
{
	static const char *const names[] = {
		"anthropic", "deepseek", "openai", "openai-compatible", "anthropic-compatible", NULL
	};
	_Static_assert(SBA_ARRAY_LEN(names) == SBA_ARRAY_LEN(providers) + 1, "one name each");
	return names;
}

const char *sba_agent_provider(const char *agent)
{
	const struct sba_driver *driver = agent ? sba_driver_find(agent) : NULL;
	const struct sba_provider *p = driver ? sba_provider_default(driver) : NULL;
	return p ? p->name : NULL;
}

const char *sba_provider_key_env(const char *agent, const char *provider)
{
	const struct sba_driver *driver = agent ? sba_driver_find(agent) : NULL;
	const struct sba_provider *p = provider ? sba_provider_find(provider)
				       : driver ? sba_provider_default(driver)
						: NULL;
	return p ? p->key_env : NULL;
}

bool sba_agent_takes_program(const char *agent)
{
	const struct sba_driver *driver = sba_driver_find(agent);
	return driver && !driver->binary;
}
