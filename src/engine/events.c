/* SPDX-License-Identifier: MIT */
/* What the engine remembers: past events, and the host's address on the default bridge. */
#include "engine/private.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <string.h>

static int collect(void *user, const json_t *line, struct sba_error *err)
{
	json_t *list = user;
	if (json_array_size(list) >= SBA_ENGINE_EVENTS_MAX)
		return sba_fail(err, SBA_ELIMIT, "more than %d past events",
				(int)SBA_ENGINE_EVENTS_MAX);
	return json_array_append(list, (json_t *)line) < 0 ? sba_fail_nomem(err) : 0;
}

/* An `until` that has passed makes the engine answer and close at once; its
 * fraction lets in what happened this very second. The engine remembers a
 * few hundred events, of all containers. Podman (4.3 to 5.4) tells nothing at
 * all then, but can be asked not to stream, and finds no label without a value. */
static int events_path(struct sba_buf *b, const struct sba_engine *e, const char *label,
		       int64_t since, struct sba_error *err)
{
	SBA_JSON json_t *filter = json_pack("{s:[s]}", "type", "container");
	int64_t now = sba_unix_ms();
	if (filter && (!e->podman || strchr(label, '=')))
		json_object_set_new(filter, "label", json_pack("[s]", label));
	if (!filter)
		return sba_fail_nomem(err);
	sba_buf_printf(b, "/events?since=%" PRId64, since);
	if (e->podman)
		sba_buf_puts(b, "&stream=false");
	else
		sba_buf_printf(b, "&until=%" PRId64 ".%03d000000", now / 1000, (int)(now % 1000));
	sba_query_put_json(b, "filters", filter);
	return sba_buf_check(b, "the request's path", err);
}

int sba_engine_past_events(struct sba_engine *e, const char *label, int64_t since_unix_s,
			   struct sba_until until, json_t **ret, struct sba_error *err)
{
	SBA_BODY struct sba_body *body = NULL;
	SBA_BUF struct sba_buf path = SBA_BUF_INIT(4 * (size_t)SBA_KIB);
	SBA_JSON json_t *list = json_array();
	int rc = list ? events_path(&path, e, label, since_unix_s, err) : sba_fail_nomem(err);
	if (rc < 0)
		return rc;
	struct sba_request r = { .method = "GET", .path = path.data, .tried = "past events" };
	rc = sba_engine_stream(e, &r, NULL, NULL, NULL, until, &body, err);
	if (rc == 0)
		rc = sba_body_lines(body, collect, list, until, err);
	if (rc == 0)
		*ret = sba_move(&list);
	return rc;
}

/* The gateway; where the engine does not name it (moby issue 26799: until its
 * first restart) the first address of the subnet, which it takes by default. */
static bool host_address(const json_t *config, char ret[64])
{
	struct in_addr a;
	const char *gateway = sba_json_str(config, "Gateway");
	const char *subnet = sba_json_str(config, "Subnet");
	char base[64];
	if (gateway && inet_pton(AF_INET, gateway, &a) == 1)
		return inet_ntop(AF_INET, &a, ret, 64) != NULL;
	if (gateway || !subnet)
		return false;
	snprintf(base, sizeof(base), "%.*s", (int)strcspn(subnet, "/"), subnet);
	if (inet_pton(AF_INET, base, &a) != 1)
		return false;
	a.s_addr = htonl(ntohl(a.s_addr) + 1);
	return inet_ntop(AF_INET, &a, ret, 64) != NULL;
}

int sba_engine_bridge_address(struct sba_engine *e, struct sba_until until, char ret[64],
			      struct sba_error *err)
{
	struct sba_request r = { .method = "GET",
				 .path = "/networks/bridge",
				 .tried = "the default bridge" };
	SBA_JSON json_t *j = NULL;
	char address[64];
	int rc = sba_engine_call(e, &r, until, &j, err);
	if (rc < 0 && rc != SBA_ENOTFOUND)
		return rc;
	const json_t *list = sba_json_get(j, "IPAM.Config");
	size_t i;
	json_t *config;
	json_array_foreach(list, i, config)
	{
		if (!host_address(config, address))
			continue;
		snprintf(ret, 64, "%s", address);
		return 0;
	}
	return sba_fail(err, SBA_EUNSUPPORTED,
			"the engine's default bridge has no IPv4 address of the host");
}
