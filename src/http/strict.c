/* SPDX-License-Identifier: MIT */
/*
 * What libmicrohttpd 0.9.75 lets through of a request's head and a careful
 * server does not: it takes the first of two lengths, a coding beside a length,
 * lines that end in a bare LF, folded lines (whose text it glues to the name),
 * NUL and CR in values, spaces before the colon.
 */
#include "http/http.h"
#include "http/private.h"

#include <string.h>
#include <strings.h>

struct walk {
	uintptr_t next; /* where the next line must begin */
	const char *fault;
	unsigned lengths, codings, hosts;
	bool chunked;
};

static bool is_name(const char *s, size_t len)
{
	static const char allowed[] = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
				      "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	return len && strlen(s) == len && strspn(s, allowed) == len;
}

static bool is_value(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)s[i];
		if ((c < ' ' && c != '\t') || c == 0x7f)
			return false;
	}
	return true;
}

static void count(struct walk *w, const char *name, const char *value)
{
	w->lengths += !strcasecmp(name, MHD_HTTP_HEADER_CONTENT_LENGTH);
	w->hosts += !strcasecmp(name, MHD_HTTP_HEADER_HOST);
	if (!strcasecmp(name, MHD_HTTP_HEADER_TRANSFER_ENCODING)) {
		w->codings++;
		w->chunked = !strcasecmp(value, "chunked");
	}
}

/* Versions before 0.9.77 show no raw bytes, but parse in place: names and
 * values point into what was received, so the gaps between them tell how lines
 * ended. Later versions refuse such lines themselves (discipline level 1). */
static bool follows(struct walk *w, const char *name, const char *value, size_t value_len)
{
#if MHD_VERSION < 0x00097701
	bool ok = (uintptr_t)name == w->next && (uintptr_t)value > w->next;
	w->next = (uintptr_t)value + value_len + strlen("\r\n");
	return ok;
#else
	(void)w;
	(void)name;
	(void)value;
	(void)value_len;
	return true;
#endif
}

static enum MHD_Result on_line(void *cls, enum MHD_ValueKind kind, const char *name,
			       size_t name_len, const char *value, size_t value_len)
{
	struct walk *w = cls;
	(void)kind;
	if (!value || !is_name(name, name_len))
		w->fault = "a header's name is malformed";
	else if (!is_value(value, value_len))
		w->fault = "a header's value has control characters";
	else if (!follows(w, name, value, value_len))
		w->fault = "a header line is folded or does not end in CRLF";
	else
		count(w, name, value);
	return w->fault ? MHD_NO : MHD_YES;
}

static bool ends_well(const struct walk *w, const struct sba_http_connection *c, const char *method)
{
#if MHD_VERSION < 0x00097701
	const union MHD_ConnectionInfo *info =
		c->mhd->get_connection_info(c->c, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
	return info && w->next + strlen("\r\n") == (uintptr_t)method + info->header_size;
#else
	(void)w;
	(void)c;
	(void)method;
	return true;
#endif
}

const char *sba_http_irregular(const struct sba_http_connection *c, const char *method,
			       const char *version)
{
	struct walk w = { .next = (uintptr_t)version + strlen(version) + strlen("\r\n") };
	if (strcmp(version, MHD_HTTP_VERSION_1_1) != 0)
		return "only HTTP/1.1 is spoken here";
	c->mhd->get_connection_values_n(c->c, MHD_HEADER_KIND, on_line, &w);
	if (w.fault)
		return w.fault;
	if (!ends_well(&w, c, method))
		return "a header line does not end in CRLF";
	if (w.lengths > 1 || w.codings > 1 || w.hosts != 1)
		return "a header that says it once is there twice, or Host is missing";
	if (w.codings && (w.lengths || !w.chunked))
		return "a length beside a transfer coding, or a coding other than chunked";
	return NULL;
}
