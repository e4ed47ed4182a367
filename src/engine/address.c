/* SPDX-License-Identifier: MIT */
/*
 * Host strings as DOCKER_HOST knows them, taken apart. Where the docker CLI
 * guesses and fails later with a misleading error (a bare path becomes a TCP
 * host, "unix://var/run/x" a relative path), this one says what to write.
 */
#include "engine/private.h"

#include <string.h>

/* The colon only gets there within brackets. */
static const char host_chars[] =
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._:";
static const char user_chars[] =
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._@+";
/* It goes through a shell at the other end. */
static const char remote_path_chars[] =
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._@+/,=";

static int parse_unix(const char *path, struct sba_address *a, struct sba_error *err)
{
	if (!*path)
		path = SBA_DEFAULT_SOCKET;
	if (*path != '/') {
		int rc = sba_fail(err, SBA_EINVAL, "engine host 'unix://%s': the path is relative",
				  path);
		return sba_hint(err, rc, "write unix:///%s", path);
	}
	if (strlen(path) >= sizeof(a->path))
		return sba_fail(err, SBA_EINVAL,
				"engine host 'unix://%s': a socket's path has at most %zu bytes, "
				"this one has %zu",
				path, sizeof(a->path) - 1, strlen(path));
	snprintf(a->path, sizeof(a->path), "%s", path);
	return 0;
}

/* Splits "host:port", "[v6]:port", "host"; *port is "" where there is none. */
static bool split_port(const char *s, const char **host, size_t *host_len, const char **port)
{
	const char *end = s + strcspn(s, ":");
	*host = s;
	if (*s == '[') {
		end = strchr(s, ']');
		if (!end || (end[1] && end[1] != ':'))
			return false;
		*host = s + 1;
		*host_len = (size_t)(end - s - 1);
		*port = end[1] ? end + 2 : "";
		return *host_len > 0 && (!end[1] || end[2]);
	}
	*host_len = (size_t)(end - s);
	*port = *end ? end + 1 : "";
	return *host_len > 0 && (!*end || end[1]);
}

static int parse_tcp(const char *rest, struct sba_address *a, struct sba_error *err)
{
	const char *host, *port;
	size_t len;
	int64_t number = 2375;
	char authority[sizeof(a->host) + 8];
	size_t rest_len = strcspn(rest, "/");
	bool ok = rest_len < sizeof(authority) && (!rest[rest_len] || !rest[rest_len + 1]);
	snprintf(authority, sizeof(authority), "%.*s", ok ? (int)rest_len : 0, rest);
	ok = ok && split_port(authority, &host, &len, &port) && len < sizeof(a->host) &&
	     strspn(host, host_chars) >= len;
	if (ok && *port)
		ok = sba_parse_int(port, 1, 65535, &number) == 0;
	if (!ok)
		return sba_fail(err, SBA_EINVAL,
				"engine host 'tcp://%s' is malformed: tcp://HOST[:PORT]", rest);
	a->tcp = true;
	snprintf(a->host, sizeof(a->host), "%.*s", (int)len, host);
	snprintf(a->port, sizeof(a->port), "%d", (int)number);
	return 0;
}

/* All of s, if it is not longer than fits and has no other character; an option of
 * ssh it cannot be. */
static bool take(char *ret, size_t size, const char *s, size_t len, const char *chars)
{
	if (len >= size || *s == '-' || strspn(s, chars) < len)
		return false;
	snprintf(ret, size, "%.*s", (int)len, s);
	return true;
}

/* As the docker CLI: a user without a password, a socket's path, nothing else. */
static int parse_ssh(const char *rest, struct sba_address *a, struct sba_error *err)
{
	const char *slash = rest + strcspn(rest, "/");
	const char *path = slash[strspn(slash, "/")] ? slash : "";
	const char *at = memrchr(rest, '@', (size_t)(slash - rest));
	const char *host = at ? at + 1 : rest, *name, *port;
	char authority[sizeof(a->host) + 8];
	int64_t number;
	size_t len;
	bool ok = take(a->path, sizeof(a->path), path, strlen(path), remote_path_chars) &&
		  (!at || (at > rest &&
			   take(a->user, sizeof(a->user), rest, (size_t)(at - rest), user_chars)));
	ok = ok && (size_t)(slash - host) < sizeof(authority);
	snprintf(authority, sizeof(authority), "%.*s", ok ? (int)(slash - host) : 0, host);
	ok = ok && split_port(authority, &name, &len, &port) &&
	     take(a->host, sizeof(a->host), name, len, host_chars);
	if (ok && *port)
		ok = sba_parse_int(port, 1, 65535, &number) == 0 &&
		     take(a->port, sizeof(a->port), port, strlen(port), "0123456789");
	if (!ok)
		return sba_fail(
			err, SBA_EINVAL,
			"engine host 'ssh://%s' is malformed: ssh://[USER@]HOST[:PORT][/PATH]",
			rest);
	a->ssh = true;
	return 0;
}

static int refuse(const char *host, struct sba_error *err)
{
	if (sba_starts_with(host, "npipe://") || sba_starts_with(host, "fd://"))
		return sba_fail(err, SBA_EUNSUPPORTED,
				"engine host '%s': only unix://, tcp:// and ssh:// are supported",
				host);
	int rc = sba_fail(err, SBA_EINVAL, "engine host '%s' is none of unix://, tcp://, ssh://",
			  host);
	if (*host == '/')
		return sba_hint(err, rc, "write unix://%s", host);
	const char *rest = strstr(host, "://");
	return sba_hint(err, rc, "write tcp://%s", rest ? rest + 3 : host);
}

int sba_address_parse(const char *host, struct sba_address *ret, struct sba_error *err)
{
	struct sba_address a = { 0 };
	int rc;
	if (sba_starts_with(host, "unix://"))
		rc = parse_unix(host + strlen("unix://"), &a, err);
	else if (sba_starts_with(host, "tcp://"))
		rc = parse_tcp(host + strlen("tcp://"), &a, err);
	else if (sba_starts_with(host, "ssh://"))
		rc = parse_ssh(host + strlen("ssh://"), &a, err);
	else
		rc = refuse(host, err);
	if (rc == 0)
		*ret = a;
	return rc;
}

void sba_address_format(const struct sba_address *a, char *buf, size_t size)
{
	bool v6 = strchr(a->host, ':') != NULL;
	const char *open = v6 ? "[" : "", *close = v6 ? "]" : "";
	if (a->ssh)
		snprintf(buf, size, "ssh://%s%s%s%s%s%s%s%s", a->user, a->user[0] ? "@" : "", open,
			 a->host, close, a->port[0] ? ":" : "", a->port, a->path);
	else if (a->tcp)
		snprintf(buf, size, "tcp://%s%s%s:%s", open, a->host, close, a->port);
	else
		snprintf(buf, size, "unix://%s", a->path);
}
