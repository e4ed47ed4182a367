/* SPDX-License-Identifier: MIT */
/* What exec.c and exec_end.c share. */
#ifndef SBA_ENGINE_EXEC_H
#define SBA_ENGINE_EXEC_H

#include "engine/private.h"

/* A text of the engine itself in the stream (Docker 25 and later). */
enum { EXEC_FRAME_ENGINE_ERROR = 3 };

enum exec_shutdown { EXEC_SHUTDOWN_NOT, EXEC_SHUTDOWN_WANTED, EXEC_SHUTDOWN_DONE };

struct sba_exec {
	struct sba_engine *e;
	struct sba_wire *wire;
	char id[128];
	char container[256];
	char tried[160];
	struct sba_frames frames;
	struct sba_buf engine_error;
	bool raw; /* of a terminal: no frames */
	bool ended;
	bool deaf;            /* the reader of stdin is gone: input is swallowed */
	struct sba_buf queue; /* stdin not yet sent, from queue_at on */
	size_t queue_at;
	enum exec_shutdown shutdown;
};

#endif
