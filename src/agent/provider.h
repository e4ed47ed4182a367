/* SPDX-License-Identifier: MIT */
/* The providers that the relay knows. */
#ifndef SBA_AGENT_PROVIDER_H
#define SBA_AGENT_PROVIDER_H

#include "drivers/drivers.h"
#include "model/model.h"

/* Where model calls go. */
struct sba_provider {
	const char *name;
	enum sba_model_api api;
	const char *base_url; /* NULL: the user must give one */
	const char *key_env;  /* where the program looks for the key */
	enum sba_key_style key_style;
};

/* NULL if there is none of that name. */
const struct sba_provider *sba_provider_find(const char *name);
/* What a CLI talks to if nothing else is said. */
const struct sba_provider *sba_provider_default(const struct sba_driver *driver);
bool sba_provider_speaks(const struct sba_provider *p, enum sba_model_api api);
#endif
