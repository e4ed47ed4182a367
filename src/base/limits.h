/* SPDX-License-Identifier: MIT */
/* Every limit on what an outsider can make grow, in one place. */
#ifndef SBA_LIMITS_H
#define SBA_LIMITS_H

enum {
	SBA_KIB = 1024,
	SBA_MIB = 1024 * 1024,

	/* engine */
	SBA_HTTP_HEAD_MAX = 16 * SBA_KIB,          /* status line and headers */
	SBA_HTTP_HEADERS_MAX = 64,                 /* header fields kept */
	SBA_HTTP_CHUNK_LINE_MAX = 1024,            /* a chunk's size line, a trailer line */
	SBA_ENGINE_BODY_MAX = 8 * SBA_MIB,         /* JSON answers; jansson needs 17 x that */
	SBA_ENGINE_ERROR_MAX = 64 * SBA_KIB,       /* the body of an error answer */
	SBA_ENGINE_LINE_MAX = SBA_MIB,             /* one line of build or pull progress */
	SBA_ENGINE_EVENTS_MAX = 4096,              /* past events kept */
	SBA_ENGINE_IDLE_CONNECTIONS = 4,           /* kept per handle; one is the usual case */
	SBA_ENGINE_RECEIVE_BUFFER = 256 * SBA_KIB, /* per connection */
	SBA_ENGINE_UPLOAD_PIECE = 256 * SBA_KIB,   /* one chunk of a request body */
	SBA_ENGINE_OPEN_MS = 15 * 1000,            /* connecting and the first ping */
	SBA_ENGINE_CONTINUE_MS = 1000,             /* waiting for "100 Continue" */
	SBA_ENGINE_STALL_MS = 60 * 1000,           /* an upload of which nothing moves */
	SBA_EXEC_QUEUE_MAX = SBA_MIB,              /* stdin accepted and not yet sent */
	SBA_FRAME_MAX = 16 * SBA_MIB,              /* one frame of an exec stream; seen: 32 KiB */
	SBA_EXEC_OOB_TEXT_MAX = 4 * SBA_KIB,       /* runtime error text kept from a failed exec */

	/* commands in a sandbox */
	SBA_ARG_MAX = 16 * SBA_MIB, /* one argument or environment string sent to the guest */
	SBA_RUN_IO_CHUNK = 64 * SBA_KIB,

	/* channel: what the guest can make us keep or do */
	SBA_CHANNEL_CLAIMED_MAX = 224, /* streams beyond which no connection from inside is taken */
	SBA_CHANNEL_HEADERS_MAX = 64,  /* header fields of one answer */
	SBA_CHANNEL_HEADER_BYTES = 16 * SBA_KIB, /* all of them, 32 bytes added for each */
	SBA_CHANNEL_HPACK_TABLE = 4 * SBA_KIB,
	SBA_CHANNEL_BUFFERED_MAX = 8 * SBA_MIB,  /* received and not yet taken, all streams */
	SBA_CHANNEL_FIRST_WINDOW = 16 * SBA_KIB, /* a stream's, until its reader takes */
	SBA_CHANNEL_NEWS_MAX = 128 * SBA_KIB,    /* received before its reader is told at once */
	SBA_CHANNEL_CONTROL_MAX = 1000,          /* control frames in SBA_CHANNEL_CONTROL_MS */
	SBA_CHANNEL_CONTROL_MS = 10 * 1000,
	SBA_CHANNEL_SILENCE_MS = 15 * 1000,   /* without a byte: the channel is lost */
	SBA_CHANNEL_SEND_MAX = 256 * SBA_KIB, /* accepted from a caller and not yet framed */
	SBA_CHANNEL_OUT_MAX = 256 * SBA_KIB,  /* framed and not yet written */
	SBA_CHANNEL_GOODBYE_MS = 200,         /* for the last frames to go out */

	/* files in and out */
	SBA_TRANSFER_STALL_MS = 60 * 1000, /* a transfer of which nothing moves */

	SBA_AHEAD_MAX = 4 * SBA_MIB,   /* received from the engine and not yet used */
	SBA_AHEAD_FULL_MS = 30 * 1000, /* a reader that takes nothing */

	/* archive */
	SBA_LAND_NAME_MAX = 255,          /* one component */
	SBA_LAND_PATH_MAX = 32 * SBA_KIB, /* beyond PATH_MAX: nothing is opened by a whole path */
	SBA_LAND_DEPTH_MAX = 1024,
	SBA_TEMP_NAMES_MAX =
		65536, /* of a directory, looked through for what a killed client left */
	SBA_LAND_LATER_MAX = 64 * SBA_MIB, /* directories that wait for their mode */
	SBA_LAND_TRAIL_MAX = SBA_MIB,      /* zeros after a tar's end */
	SBA_TAR_HEAD_MAX = SBA_MIB,        /* all headers of one entry */
	SBA_PACK_DEPTH_MAX = 128,          /* one descriptor each */

	/* agent */
	SBA_LINE_MAX = 64 * SBA_MIB,                 /* one line of a CLI's output */
	SBA_STDERR_KEEP = 64 * SBA_KIB,              /* the end of a CLI's stderr */
	SBA_ANSWER_MAX = 16 * SBA_MIB,               /* the final answer kept of a turn */
	SBA_TURN_ERROR_MAX = 4 * SBA_KIB,            /* the words kept of why a turn failed */
	SBA_SESSION_ID_MAX = 128,                    /* a CLI's session id; seen: 36 */
	SBA_PART_NAME_MAX = SBA_SESSION_ID_MAX + 16, /* of a part of a dump */
	SBA_SAID_MAX = 512,                          /* the last words of a program that failed */
	SBA_SESSION_MAX = 256 * SBA_MIB, /* what a CLI keeps of one session, its parents included */
	SBA_SESSIONS_MAX = 10000,        /* listed of one sandbox */
	SBA_HOME_MAX = 4 * SBA_KIB,      /* the path of a home inside */
	SBA_SCRATCH_MAX = 64,            /* the path of a turn's own folder inside */
	SBA_SESSION_LOOK = 512 * SBA_KIB,     /* read of each for a list */
	SBA_PARTS_MAX = 64,                   /* of a dump: a session and its parents */
	SBA_MANIFEST_MAX = 256 * SBA_KIB,     /* of a dump */
	SBA_DUMP_FILES_MAX = 4 * 1000 * 1000, /* entries of a dump's workspace */
	SBA_REMEMBERED_MAX = 64,              /* sessions whose tokens are remembered */
	SBA_RULES_MAX = SBA_MIB,              /* instructions that are set */
	SBA_SKILL_TEXT_MAX = SBA_MIB,         /* one SKILL.md */
	SBA_SKILL_LOOK = 8 * SBA_KIB,         /* read of it for a list */
	SBA_SKILLS_MAX = 1000,                /* listed, or added at once */
	SBA_SKILL_NAME_MAX = 200,             /* the name of its folder */
	SBA_DRIVER_NAME_MAX = 40,             /* a driver's name; it goes into labels */
	SBA_KEPT_MAX = 1024,                  /* what a driver keeps from turn to turn */
	SBA_NOTICES_MAX = 32,      /* of one turn; the inside can be refused as often as it likes */
	SBA_OPEN_CALLS_MAX = 1024, /* tool calls without a result yet */
	SBA_SUMMARY_MAX = 256,     /* one line about a tool call */
	SBA_STATE_MAX = 256 * SBA_KIB, /* state.json, which the inside may have written */

	SBA_RELAY_FAILURE_MAX = 160, /* why a model call failed, in words */
	SBA_IN_VAIN_MS = 10 * 1000,  /* for a CLI to take no for an answer; a turn with a wrong
				      * key ends within 15 s */

	/* audit */
	SBA_AUDIT_BATCH = 256 * SBA_KIB,             /* of events, for one write */
	SBA_AUDIT_HAND = 256 * SBA_KIB,              /* said and not yet handed to the writer */
	SBA_AUDIT_LINE_MAX = 4 * SBA_LINE_MAX,       /* one event, escaped */
	SBA_AUDIT_STATUS_MAX = 64 * SBA_MIB,         /* status.json as it is read */
	SBA_AUDIT_PROMPT_MAX = 64 * SBA_KIB,         /* of a prompt, kept in the status */
	SBA_AUDIT_PROMPT_EVENT_MAX = 4 * SBA_MIB,    /* and among the events */
	SBA_AUDIT_NAME_MAX = SBA_SESSION_ID_MAX + 8, /* a session's folder: "ID+2" */
	SBA_AUDIT_SECRETS_MAX = 64,
	SBA_AUDIT_CONNECTIONS_MAX = 1024, /* noticed and not yet written */
	SBA_LOGIN_MAX = SBA_MIB,          /* a CLI's file */
	SBA_LOGIN_SECRETS_MAX = 32,       /* in one; they are looked for in all that is said */
	SBA_LOGIN_SECRET_MIN = 20,        /* bytes; a shorter word is no token */
	SBA_AUDIT_ASK_MS = 2000,          /* for the engine to say what a sandbox is */
	SBA_AUDIT_TWINS_MAX = 999,        /* folders of one id */

	/* files of ours that a user may edit */
	SBA_CONFIG_MAX = SBA_MIB,
	SBA_CHANGES_MAX = 16 * SBA_MIB, /* paths that a fork removes */

	/* what changed in a workspace */
	SBA_CHANGED_FILES_MAX = 2 * 1000 * 1000, /* told of at once */
	SBA_CHANGED_BYTES_MAX = 512 * SBA_MIB,   /* their paths and what is known of them */
	SBA_CONTENT_MAX = 8 * SBA_MIB,           /* of one file, to be compared */
	SBA_CONTENTS_MAX = 256 * SBA_MIB,        /* of all of them at once */
	SBA_HASHED_MAX = 50 * SBA_MIB,           /* a larger file is known by size and time */
	SBA_STATE_CONTENT_MAX = SBA_MIB,         /* of one file, kept by a handle */
	SBA_STATE_CONTENTS_MAX = 64 * SBA_MIB,   /* of all of them */
	SBA_HASHES_MIN = 1000,                   /* files read that are worth a list of them */
	SBA_CODE_VALUES_MAX = 4096,              /* that a run of code shows */
	SBA_CODE_FORMS_MAX = 64,                 /* of one of them */
	SBA_CODE_ERROR_MAX = 64 * SBA_KIB,       /* an error's name, its text */
	SBA_CODE_CONTEXT_MAX = 128,              /* a context's name */
	SBA_LISTS_MAX = 4 * SBA_MIB,             /* names of lists that are kept */
	SBA_DIFF_LINES_MAX = 1000 * 1000,        /* of both sides of a text */
	SBA_BUNDLE_MAX = 1024 * SBA_MIB,         /* commits of a sandbox, packed */
	SBA_BUNDLE_HEAD_MAX = 64 * SBA_KIB,      /* what stands in front of the pack */
	SBA_REFS_MAX = 4 * SBA_MIB,              /* names of commits that a sandbox is told */
	SBA_TURN_CHANGES_MAX = 10 * 1000,        /* files told of at the end of a turn */
	SBA_TURN_DIFF_MAX = 256 * SBA_KIB,       /* the diff of one of them */
	SBA_TURN_DIFFS_MAX = 16 * SBA_MIB,       /* and of all of them */
	SBA_KEY_MAX = 64 * SBA_KIB,              /* what a program that prints a key may print */

	/* HTTP server */
	SBA_HTTP_REQUEST_MAX = 64 * SBA_MIB, /* one request body; CLIs send whole histories */
	SBA_HTTP_CONNECTIONS_MAX = 256,      /* unless the options say otherwise */
	SBA_HTTP_IDLE_S = 600,               /* a connection on which nothing moves */

	/* HTTP client */
	SBA_HTTP_CONNECT_MS = 15 * 1000,         /* TCP and TLS */
	SBA_HTTP_ANSWER_HEAD_MAX = 64 * SBA_KIB, /* all header lines of an answer */
	SBA_HTTP_ANSWER_HEADERS_MAX = 128,       /* and their number */
	SBA_HTTP_RECEIVE_BUFFER = 128 * SBA_KIB, /* received and not yet read */
	SBA_HTTP_CLIENT_IDLE_CONNECTIONS = 16,   /* kept for the next call */
	SBA_SSE_EVENT_MAX = SBA_MIB,             /* data of one server-sent event */

	/* services that have sandboxes */
	SBA_REMOTE_ANSWER_MAX = 8 * SBA_MIB,      /* a JSON answer: a list of sandboxes */
	SBA_REMOTE_ERROR_MAX = 64 * SBA_KIB,      /* the body of an error, as far as it is read */
	SBA_REMOTE_EVENT_MAX = 4 * SBA_MIB,       /* one message of a stream of output */
	SBA_REMOTE_CODE_EVENT_MAX = 32 * SBA_MIB, /* one of code that runs: a picture */
	SBA_REMOTE_PAGES_MAX = 100,               /* of a list */
	SBA_REMOTE_CALL_MS = 60 * 1000,           /* one request that is not a stream */
	SBA_REMOTE_SILENCE_MS = 60 * 1000,        /* a command's stream, which is told to ping */
	SBA_REMOTE_TRIES = 4,                     /* of what may be asked again */
	SBA_REMOTE_RETRY_MS = 10 * 1000,          /* as long as is waited where it says how long */

	/* registries of images */
	SBA_REGISTRY_BODY_MAX = 4 * SBA_MIB, /* a manifest; what the specification allows */
	SBA_REGISTRY_ERROR_MAX = 64 * SBA_KIB,
	SBA_REGISTRY_MOVES_MAX = 3, /* redirections followed */

	/* relay */
	SBA_RELAY_SILENCE_MS = 600 * 1000,      /* an upstream that says nothing */
	SBA_RELAY_TARGET_MAX = 2048,            /* path and query of a request */
	SBA_RELAY_EVENT_MAX = 256 * SBA_KIB,    /* an event whose text is joined with the next */
	SBA_RELAY_TEXT_MAX = 2 * SBA_MIB,       /* of an answer, under way in one place */
	SBA_RELAY_OUT_MAX = 16 * SBA_MIB,       /* looked through and not yet sent */
	SBA_RELAY_HELD_MAX = 256 * SBA_KIB,     /* events that may hold half a key */
	SBA_RELAY_LANES_MAX = 32,               /* texts that grow at once in one answer */
	SBA_RELAY_COUNT_BODY_MAX = 4 * SBA_MIB, /* a JSON answer whose tokens are read */

	/* the way out of a sealed sandbox */
	SBA_PROXY_HEAD_MAX = 16 * SBA_KIB,   /* request line and headers */
	SBA_PROXY_HEADERS_MAX = 64,          /* header fields of a request */
	SBA_PROXY_TRAILER_MAX = 8 * SBA_KIB, /* after the last chunk; read and dropped */
	SBA_PROXY_CONNECTIONS_MAX = 256,     /* unless the options say otherwise */
	SBA_PROXY_HEAD_MS = 30 * 1000,       /* for a request's head to arrive */
	SBA_PROXY_CONNECT_MS = 10 * 1000,    /* for the look-up, and again for connecting */
	SBA_PROXY_IDLE_MS = 600 * 1000,      /* a connection on which nothing moves */
	SBA_PROXY_LINGER_MS = 2 * 1000,      /* for a client to read its answer */

	/* scripted model */
	SBA_MODEL_ANSWER_MAX = 16 * SBA_MIB, /* one text or argument after templates */
	SBA_MODEL_WAIT_MAX_MS = 600 * 1000,  /* one pause of a script */
};

#endif
