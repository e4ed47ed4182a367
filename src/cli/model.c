/* SPDX-License-Identifier: MIT */
/* `model`: the scripted model as a server of its own. */
#include "cli.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

enum { MODEL_SCRIPT_MAX = 16 << 20 };

struct model_options {
	const char *listen, *script, *token;
};

static const struct cli_option model_options[] = {
	{ "listen", 0, CLI_STRING, "ADDR:PORT", "where (127.0.0.1:0, a free port)",
	  offsetof(struct model_options, listen), 0 },
	{ "script", 0, CLI_STRING, "FILE", "what it says (default: built in)",
	  offsetof(struct model_options, script), 0 },
	{ "token", 0, CLI_STRING, "TOKEN", "the key it asks for (default: any)",
	  offsetof(struct model_options, token), 0 },
	{ 0 },
};

/* "ADDR:PORT", ":PORT", "PORT", "ADDR". */
static int parse_listen(const char *s, char address[INET_ADDRSTRLEN], uint16_t *ret_port,
			struct sba_error *err)
{
	struct in_addr ip;
	const char *colon = strrchr(s, ':');
	const char *port = colon ? colon + 1 : strchr(s, '.') ? "0" : s;
	size_t len = colon ? (size_t)(colon - s) : strchr(s, '.') ? strlen(s) : 0;
	char *end;
	unsigned long n = strtoul(port, &end, 10);
	if (len)
		snprintf(address, INET_ADDRSTRLEN, "%.*s", (int)len, s);
	else
		snprintf(address, INET_ADDRSTRLEN, "127.0.0.1");
	if (!strcmp(address, "localhost"))
		snprintf(address, INET_ADDRSTRLEN, "127.0.0.1");
	if (end == port || *end || n > UINT16_MAX || *port == '-' || len >= INET_ADDRSTRLEN ||
	    inet_pton(AF_INET, address, &ip) != 1)
		return cli_fail(err, SBA_EINVAL, "as in:  --listen 127.0.0.1:8080",
				"--listen '%s' is not ADDR:PORT", s);
	*ret_port = (uint16_t)n;
	return 0;
}

static int serve(struct cli *cli, const char *address, struct sba_model *m)
{
	struct pollfd stop = { .fd = cli_signals_fd(), .events = POLLIN };
	char url[64];
	snprintf(url, sizeof(url), "http://%s:%u", address, sba_model_port(m));
	if (cli->json)
		cli_json_line(json_pack("{s:i, s:s}", "v", 1, "url", url));
	else
		printf("%s\n", url);
	fflush(stdout);
	if (strncmp(address, "127.", 4) != 0)
		cli_note(cli, "this is open to the network: who reaches it may use it");
	while (!cli_signals_caught())
		poll(&stop, 1, -1);
	cli_note(cli, "%llu request%s", (unsigned long long)sba_model_requests(m),
		 sba_model_requests(m) == 1 ? "" : "s");
	return 0;
}

static int model(struct cli *cli, const void *options, const struct cli_args *args)
{
	(void)args;
	const struct model_options *o = options;
	char address[INET_ADDRSTRLEN];
	CLI_FREE char *script = NULL;
	size_t len;
	struct sba_error err;
	struct sba_model *m = NULL;
	struct sba_model_options mo = { .address = address, .token = o->token };
	int rc = parse_listen(o->listen ? o->listen : "0", address, &mo.port, &err);
	if (rc == 0)
		rc = sba_cancel_new(&cli->cancel, &err);
	if (rc == 0)
		rc = cli_signals_init(cli->cancel, &err);
	if (rc == 0 && o->script)
		rc = cli_read_option_file("script", o->script, MODEL_SCRIPT_MAX, &script, &len,
					  &err);
	mo.script = script;
	if (rc == 0)
		rc = sba_model_open(&mo, &m, &err);
	if (rc == 0)
		serve(cli, address, m);
	sba_model_close(m);
	return rc < 0 ? cli_report(cli, &err) : cli_signals_exit(cli, 0, "the model has stopped");
}

const struct cli_command cli_command_model = {
	.name = "model",
	.args = "",
	.help = "serves the scripted model; prints its URL",
	.example = "sandbox-agent model --listen 127.0.0.1:8080 --script answers.json",
	.tables = { model_options },
	.options_size = sizeof(struct model_options),
	.run = model,
};
