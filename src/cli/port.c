/* SPDX-License-Identifier: MIT */
/* `port`: a loopback port here that reaches one inside, while the command runs. */
#include "cli.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

/* A whole number from 1 to 65535 that ends where `end` points; 0 if it is none. */
static uint16_t parse_port(const char *s)
{
	char *end;
	unsigned long n = strtoul(s, &end, 10);
	return *s >= '0' && *s <= '9' && !*end && n <= UINT16_MAX ? (uint16_t)n : 0;
}

/* "PORT" or "HOST:PORT", HOST a port here or ADDR:PORT. */
static int parse(char *arg, struct sba_port_options *ret, struct sba_error *err)
{
	char *inside = strrchr(arg, ':');
	if (inside)
		*inside = '\0';
	ret->port = parse_port(inside ? inside + 1 : arg);
	char *here = inside ? strrchr(arg, ':') : NULL;
	if (here) {
		*here = '\0';
		ret->host_address = arg;
	}
	const char *here_text = here ? here + 1 : arg;
	ret->host_port = inside ? parse_port(here_text) : 0;
	if (ret->port && (!inside || ret->host_port))
		return 0;
	return cli_fail(err, SBA_EINVAL, "as in:  sandbox-agent port calm-fox 8080:80",
			"that is no port");
}

static int serve(struct cli *cli, const struct sba_port_options *o, struct sba_port *p)
{
	struct pollfd stop = { .fd = cli_signals_fd(), .events = POLLIN };
	const char *address = o->host_address ? o->host_address : "127.0.0.1";
	if (cli->json)
		cli_json_line(json_pack("{s:i, s:s, s:i, s:i}", "v", 1, "address", address, "port",
					(int)sba_port_here(p), "inside", (int)o->port));
	else
		printf("%s:%u\n", address, (unsigned)sba_port_here(p));
	fflush(stdout);
	if (strncmp(address, "127.", 4) != 0)
		cli_note(cli, "note: others on the network can reach it at %s", address);
	while (poll(&stop, 1, -1) < 0)
		;
	return 0;
}

static int port(struct cli *cli, const void *options, const struct cli_args *args)
{
	(void)options;
	struct sba_port_options o = { 0 };
	struct sba_sandbox *s = NULL;
	struct sba_port *p = NULL;
	struct sba_error err;
	int status = 0;
	int rc = parse(args->v[1], &o, &err);
	if (rc == 0)
		rc = cli_sandbox(cli, args->v[0], &s, &err);
	if (rc == 0)
		rc = sba_port_open(s, &o, &p, &err);
	status = rc < 0 ? cli_report(cli, &err) : serve(cli, &o, p);
	sba_port_close(p);
	if (s)
		sba_sandbox_close(s);
	return cli_signals_exit(cli, status, "the port is closed");
}

const struct cli_command cli_command_port = {
	.name = "port",
	.args = "NAME [HOST:]PORT",
	.help = "a port here reaches PORT inside, while it runs",
	.more = "HOST is a port here, or ADDRESS:PORT; without it, any free one on 127.0.0.1.\n"
		"The address is printed. Ctrl-C ends it.",
	.example = "sandbox-agent port calm-fox 8080:80",
	.min_args = 2,
	.max_args = 2,
	.run = port,
};
