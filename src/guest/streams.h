/* SPDX-License-Identifier: MIT */
/*
 * The bytes between host and command that pass through the supervisor: the
 * command's stdin, and with a terminal its output. Without one the command
 * writes to the engine's pipes itself. Never blocks; bounded by two rings.
 */
#ifndef SBA_GUEST_STREAMS_H
#define SBA_GUEST_STREAMS_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "guest/child.h"
#include "guest/ring.h"

enum {
	SBA_GUEST_STREAM_POLLS = 3,
	SBA_GUEST_LAST_CALL = 128 * 1024, /* more than a terminal of the kernel's holds */
};

struct sba_guest_streams {
	int input;         /* -1: the command has no stdin any more */
	int terminal;      /* -1: none, or hung up and read empty */
	bool ending_input; /* no more data will come from the host */
	uint8_t last_byte; /* that went to the command */
	size_t last_call;  /* what may still be read off the terminal; 0: no limit */
	struct sba_guest_ring to_command;
	struct sba_guest_ring from_terminal;
};

void sba_guest_streams_init(struct sba_guest_streams *streams, const struct sba_guest_child *child);

/* How much data put takes; SIZE_MAX once the command does not read it anyway. */
size_t sba_guest_streams_room(const struct sba_guest_streams *streams);
void sba_guest_streams_put(struct sba_guest_streams *streams, const void *data, size_t len);
/* No more puts: the command sees the end once it has read what there is. */
void sba_guest_streams_end_input(struct sba_guest_streams *streams);

/* What to wait for, and to be called after waiting. */
void sba_guest_streams_poll(const struct sba_guest_streams *streams,
			    struct pollfd polls[SBA_GUEST_STREAM_POLLS]);
void sba_guest_streams_move(struct sba_guest_streams *streams,
			    const struct pollfd polls[SBA_GUEST_STREAM_POLLS]);

/* The command has ended: take what its terminal still holds, and no more. */
void sba_guest_streams_last_call(struct sba_guest_streams *streams);
/* True if all output has gone to the host. */
bool sba_guest_streams_drained(const struct sba_guest_streams *streams);
/* Gives the host up to limit_ms to take the rest. */
void sba_guest_streams_flush(struct sba_guest_streams *streams, int64_t limit_ms);
/* Forgets the output that the host has not taken. */
void sba_guest_streams_drop(struct sba_guest_streams *streams);

#endif
