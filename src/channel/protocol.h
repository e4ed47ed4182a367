/* SPDX-License-Identifier: MIT */
/*
 * What host and guest say to each other; the one header that both sides
 * include. The host starts `guest run ID` by an engine exec and sends frames
 * on its stdin; arguments, environment and input travel in them, so that
 * nothing of it shows in the engine's events or inspect. The command's stdout
 * and stderr are the exec's, untouched, between records of the guest's own.
 *
 * Frame: type (1 byte), length (4 bytes, big endian), payload.
 * End of stdin at any time means that the client is gone. Before SBA_RUN_GO no
 * payload may hold a NUL, and all together are at most 64 MiB, with at most
 * 8192 variables. Data that the command does not take stays on the way once
 * the guest holds 256 KiB of it, and so does whatever comes after it: a
 * command that does not read its input is ended by `guest kill`.
 *
 * Record, each in one write():
 *   NUL "sba-run:" NONCE ":" KIND ":" NUMBER ":" NUL
 * NONCE is the 32 hex digits of the SBA_RUN_NONCE frame, zeros if none came:
 * the command does not know it and so cannot pretend to have ended. KIND is one letter of enum
 * sba_record_kind, NUMBER a decimal.
 * stdout begins with a SBA_RECORD_BEGUN, written before the command is
 * started: whatever comes before it, or instead of it, is the engine's own
 * word that it could not start the guest. A command that waits for a lock has
 * not begun; one that does not get it never does, and there is only its end.
 * Notes, on stdout alone, go in front of the end record. After the command has
 * ended the same end record is written on stdout and on stderr, since the engine
 * carries the two apart: each stream is complete when its own has come. Where
 * processes that the command left behind hold its output, what they say within a
 * moment comes before the end record; if they go on holding it, a SBA_RECORD_HELD
 * on stdout tells that, and what comes later is theirs and is dropped.
 */
#ifndef SBA_PROTOCOL_H
#define SBA_PROTOCOL_H

/* A build for the tests says another one. */
#ifndef SBA_PROTOCOL_VERSION
#define SBA_PROTOCOL_VERSION 4
#endif

/* Where the guest stands inside every sandbox, and in the sidecar's image: there
 * the engine fills a volume from it that sandboxes which run as root get. */
#define SBA_GUEST_DIR  "/.sandbox-agent"
#define SBA_GUEST_PATH "/.sandbox-agent/guest"
/* Holds an empty file that is called by a key of the sandbox's: who knows the key can lock
 * names in it. Nobody inside knows it, or may list the folder. A sandbox that runs as
 * root has none. */
#define SBA_LOCK_DIR SBA_GUEST_DIR "/lock"
/* State that changes: root-owned, so that the sandbox's user cannot forge it. */
#define SBA_STATE_DIR  "/var/lib/sandbox-agent"
#define SBA_STATE_NAME "state.json"

enum {
	SBA_RUN_FRAME_HEAD = 5,
	SBA_RUN_NONCE_LEN = 32,
	SBA_RUN_FRAME_MAX = 16 * 1024 * 1024,
	SBA_RUN_ID_MAX = 64,
	SBA_RUN_LOCK_MAX = 64, /* of a lock's name: letters, digits, '.', '_', '-' */
	SBA_LOCK_KEY_LEN = 32, /* hex digits */
};

enum sba_run_frame {
	/* before SBA_RUN_GO, in any order */
	SBA_RUN_NONCE = 'N', /* 32 hex digits; required, once */
	SBA_RUN_ARG = 'A',   /* one argument; the first is the program, looked up in PATH */
	SBA_RUN_ENV = 'E',   /* "K=V" on top of the exec's environment; the last of a name wins */
	SBA_RUN_CWD = 'W',   /* working directory; without one, the exec's */
	SBA_RUN_DEADLINE = 'D', /* milliseconds from now, decimal; 0 or absent: none */
	SBA_RUN_TTY = 'T',      /* "ROWSxCOLS": the command gets a terminal of the guest's own */
	SBA_RUN_DETACH = 'B',   /* outlive the client: end of stdin is not a reason to end */
	SBA_RUN_OTHERS = 'O',   /* may signal processes of other commands: no signal scope */
	SBA_RUN_LOCK = 'L',     /* "MS NAME KEY": not while another command holds that name, which
				 * is waited for so long; KEY as in SBA_LOCK_DIR */
	SBA_RUN_GO = 'G',       /* start */
	/* after SBA_RUN_GO */
	SBA_RUN_DATA = 'I',   /* bytes for the command's stdin */
	SBA_RUN_EOF = 'Z',    /* end of the command's stdin */
	SBA_RUN_SIGNAL = 'S', /* signal number, decimal, to the command's process group */
	SBA_RUN_RESIZE = 'R', /* "ROWSxCOLS" */
	SBA_RUN_CANCEL = 'C', /* end the whole tree: TERM, a grace, KILL */
};

#define SBA_RECORD_PREFIX "sba-run:"
enum {
	SBA_RECORD_MAX = 80, /* the longest record */
};

enum sba_record_kind {
	SBA_RECORD_BEGUN = 'b',  /* NUMBER: SBA_PROTOCOL_VERSION */
	SBA_RECORD_HELD = 'h',   /* others hold the output open; NUMBER: ms they were waited for */
	SBA_END_EXIT = 'x',      /* NUMBER: exit status */
	SBA_END_SIGNAL = 's',    /* NUMBER: the signal that ended it */
	SBA_END_DEADLINE = 'd',  /* NUMBER: milliseconds it had */
	SBA_END_CANCELED = 'c',  /* by SBA_RUN_CANCEL or `guest kill` */
	SBA_END_NOTFOUND = 'n',  /* no such program; NUMBER: errno */
	SBA_END_CANNOT = 'e',    /* program not executable and the like; NUMBER: errno */
	SBA_END_CWD = 'w',       /* working directory; NUMBER: errno */
	SBA_END_FORK = 'f',      /* no process to be had (pid limit); NUMBER: errno */
	SBA_END_PROTOCOL = 'p',  /* the host sent nonsense; NUMBER: frame type */
	SBA_END_SURVIVORS = 'v', /* the tree could not be ended, so the sandbox ends; NUMBER:
				  * processes left */
	SBA_END_LOCKED = 'l',    /* another command holds the name of SBA_RUN_LOCK */
	SBA_END_OOM = 'o',       /* ended by SIGKILL while the cgroup's oom_kill counter rose */
	/* notes, where a counter of the sandbox's cgroup rose while the command ran */
	SBA_NOTE_OOM_KILLS = 'm',    /* NUMBER: processes that the OOM killer took */
	SBA_NOTE_PIDS_REFUSED = 'q', /* NUMBER: forks that the limit of processes refused */
};

/* Exit codes of `guest reaper`: why a sandbox ended. The engine's `die` event
 * keeps them after the container is gone. */
enum sba_reaper_exit {
	SBA_REAPER_KEEPALIVE = 10,   /* nobody used it for the keepalive */
	SBA_REAPER_LIFETIME = 11,    /* max-lifetime */
	SBA_REAPER_MAIN_GONE = 12,   /* the sandbox's main process ended */
	SBA_REAPER_TAMPERED = 13,    /* /proc could not be read for ten seconds */
	SBA_REAPER_NEVER_BEGAN = 14, /* no main process came */
	SBA_REAPER_SETUP = 15,       /* it could not make itself safe */
};

/* Exit code of `guest idle` where PID 1 is not the sidecar. */
#define SBA_IDLE_ALONE 20
/* What it says on stderr when the session has ended that it started: whoever attached
 * to the container would not be told by the engine. */
#define SBA_SESSION_ENDED "session ended\n"

/*
 * The channel (docs/channel.md): HTTP/2 between the host, as client, and
 * `guest session`. Every stream is a POST of one of these paths; a number
 * follows those that end with a slash.
 */
#define SBA_CHANNEL_HELLO     "/hello"    /* answer: lines, see below */
#define SBA_CHANNEL_NOTICES   "/notices"  /* answer: notices, see below, without end */
#define SBA_CHANNEL_RUN       "/run"      /* run frames in, pieces out */
#define SBA_CHANNEL_FILE      "/file"     /* one request, one answer */
#define SBA_CHANNEL_LISTEN    "/listen"   /* answer: port (2 bytes), then ids (4 each) */
#define SBA_CHANNEL_LISTEN_AT "/listen/"  /* the same at that port inside */
#define SBA_CHANNEL_ACCEPT    "/accept/"  /* the connection of that id */
#define SBA_CHANNEL_CONNECT   "/connect/" /* a connection to that port inside */
/*
 * The hello: the protocol's version, decimal, alone on the first line, which every
 * version of the protocol has so. Then lines of a word, a space and a value; words
 * that the host does not know mean nothing to it.
 */
#define SBA_HELLO_PROGRAM  "program"  /* version of the program that carries the guest */
#define SBA_HELLO_GUEST    "guest"    /* its content: SBA_GUEST_HASH_LEN hex digits */
#define SBA_HELLO_FIRST    "first"    /* PID 1 of its namespace: "sidecar" or "other" */
#define SBA_HELLO_LANDLOCK "landlock" /* the kernel's ABI of it, decimal; 0: none */
/* Of an answer whose :status is not 200: an errno, decimal. */
#define SBA_CHANNEL_ERRNO "sba-errno"

enum {
	SBA_CHANNEL_FRAME_MAX = 32 * 1024,
	SBA_CHANNEL_WINDOW = 4 * 1024 * 1024,    /* of the connection */
	SBA_CHANNEL_STREAM_WINDOW = 1024 * 1024, /* of a stream that moves */
	SBA_CHANNEL_STREAMS_MAX = 256,
	SBA_CHANNEL_PING_MS = 5 * 1000,
	SBA_CHANNEL_GUEST_SILENCE_MS = 30 * 1000, /* then the guest gives its lease up */
	SBA_GUEST_HASH_LEN = 12,
	/* A notice: kind (1 byte), and by how much its counter rose (4, big endian). */
	SBA_CHANNEL_NOTICE_SIZE = 5,
	/*
	 * Output of a command: pieces of one kind byte (1 stdout, 2 stderr), a
	 * length of three bytes, big endian, and the bytes. A kind of 0 is padding
	 * of that one byte.
	 */
	SBA_CHANNEL_PIECE_HEAD = 4,
	/*
	 * A file's request: operation (1 byte), mode (4; all ones: none), size (8),
	 * length of the path (4), path; its answer: errno (4), size (8), content.
	 * All big endian. size is that of the content; in a request it is the most
	 * that the host will take.
	 * Operations that stream go on in parts, in both directions: kind (1 byte),
	 * length (3), bytes. docs/channel.md tells which come when.
	 */
	SBA_CHANNEL_FILE_HEAD = 17,
	SBA_CHANNEL_FILE_ANSWER = 12,
	SBA_CHANNEL_FILE_PATH_MAX = 4095,
	/* st_mode, uid, gid (4 each), size, modification time in ns (8 each) */
	SBA_CHANNEL_FILE_STAT = 28,
	/* A place's answer: a stat, enum sba_place_flag (1), the real path. */
	SBA_CHANNEL_FILE_PLACE = SBA_CHANNEL_FILE_STAT + 1,
	/* A census's answer: bytes, entries, sockets, the longest path, bytes in holes, what
	 * the user may not read (8 each), then names of sockets. */
	SBA_CHANNEL_FILE_CENSUS = 48,
	/* What follows a request to write: uid, gid (4 each), time in ns (8); all ones:
	 * none given. */
	SBA_CHANNEL_FILE_DRESS = 16,
	SBA_CHANNEL_PART_HEAD = 4,
	SBA_CHANNEL_PART_MAX = 64 * 1024,
	SBA_CHANNEL_PART_ZEROS = 8,
	/* The last part of the guest: errno (4), files kept (8), text. */
	SBA_CHANNEL_PART_END = 12,
	/* What follows a request for changes: see below. */
	SBA_CHANNEL_CHANGES_ASK = 28,
	SBA_CHANNEL_CHANGES_GIVEN = 8,
	SBA_CHANNEL_GIVEN_MAX = 256 * 1024 * 1024,
};

/*
 * Changes of the files below a folder, against what is kept of them in SBA_KEPT_DIR,
 * which is root's: lists, called NUMBER-TURN and a letter of enum sba_kept_phase, each
 * of what changed since the one before it, and packs, called NUMBER.pack, of the
 * contents that came with the list of that number. The guest reads them, the host
 * alone writes them.
 *
 * The request's mode has flags of enum sba_changes_flag. It is followed by the number
 * of the last list that counts (4; 0: none), the size (8 each) up to which a content is
 * sent, all contents together, and up to which a file is hashed: what is larger is
 * known by size, time and inode.
 *
 * The guest's parts of data hold records. A record is a kind (1 byte), the length of
 * the path (2), the path relative to the folder; then what the kind says. An entry:
 * st_mode (4), size, modification and change time in ns, inode (8 each), enum
 * sba_entry_flag (1), SHA-256 (32), number of the pack and offset in it (4, 8) where
 * its content is kept, length of a link's target (2), the target. A content: enum
 * sba_content (1), size (8), and the bytes where they are sent. Lists hold records
 * without contents, of the kinds added and deleted. All big endian.
 *
 * SBA_HASHES_DIR has one list more for each folder that was looked through whole, called
 * by the SHA-256 of the folder's path: it spares reading and means nothing else.
 */
#define SBA_KEPT_DIR   SBA_STATE_DIR "/base"
#define SBA_HASHES_DIR SBA_STATE_DIR "/hashes"

enum {
	SBA_ENTRY_SIZE = 83, /* with the length of the link's target */
	SBA_RECORD_HEAD = 3,
	SBA_CONTENT_HEAD = 9,
	SBA_RECORD_PATH_MAX = 32 * 1024 - 1,
	SBA_RECORD_LINK_MAX = 4095,
	SBA_RECORDS_LEFT_MAX = 1000, /* entries that are said to be left out */
};

enum sba_changes_flag {
	SBA_CHANGES_ALL = 1,        /* every file is told of, as if it were new */
	SBA_CHANGES_CONTENT = 2,    /* contents are sent */
	SBA_CHANGES_IGNORE = 4,     /* what a .gitignore names is left out */
	SBA_CHANGES_NO_SKIPPED = 8, /* no folder is skipped for its name, but .git */
	/* With ALL: the list in SBA_HASHES_DIR counts. What was not read, as a list has it, is
	 * said to be SBA_CONTENT_SAME. */
	SBA_CHANGES_HASHES = 16,
	/* With HASHES: what was asked is followed by a length (8) and a list of that length, which
	 * counts instead of the one in SBA_HASHES_DIR. */
	SBA_CHANGES_GIVEN = 32,
};

enum sba_kept_phase {
	SBA_KEPT_BEGIN = 'b', /* as the turn begins */
	SBA_KEPT_END = 'e',   /* as it has ended; of turn 0: as the workspace came in */
};

enum sba_change_record {
	SBA_RECORD_ADDED = 'A',    /* an entry, its content */
	SBA_RECORD_MODIFIED = 'M', /* the old entry, its content, the new one, its content */
	SBA_RECORD_DELETED = 'D',  /* the old entry, its content; in a list nothing */
	SBA_RECORD_TOUCHED = 'T',  /* the new entry of what is the same as before */
	SBA_RECORD_LEFT_OUT = 'X', /* enum sba_left_out (1) */
};

enum sba_entry_flag {
	SBA_ENTRY_HASHED = 1,
	SBA_ENTRY_RACY = 2, /* it may change once more without a new change time */
	SBA_ENTRY_KEPT = 4, /* pack and offset are its content's */
};

enum sba_content {
	SBA_CONTENT_SENT = 0,
	SBA_CONTENT_NOT_ASKED = 1,
	SBA_CONTENT_LARGE = 2,    /* beyond the size for one */
	SBA_CONTENT_MUCH = 3,     /* beyond the size for all */
	SBA_CONTENT_NOT_KEPT = 4, /* of an old entry */
	SBA_CONTENT_SAME = 5,     /* as that of the old entry */
	SBA_CONTENT_LINK = 6,     /* its target is all */
};

enum sba_left_out {
	SBA_LEFT_UNREADABLE = 1,
	SBA_LEFT_LONG = 2,     /* the path is too long, or too deep */
	SBA_LEFT_RESTLESS = 3, /* it changes while it is read */
};

/* The same counters as of the notes above. */
enum sba_channel_notice {
	SBA_NOTICE_OOM_KILLS = SBA_NOTE_OOM_KILLS,
	SBA_NOTICE_PIDS_REFUSED = SBA_NOTE_PIDS_REFUSED,
};

#define SBA_CHANNEL_FILE_NO_MODE 0xffffffffU
#define SBA_CHANNEL_FILE_NO_TIME 0xffffffffffffffffULL

enum sba_channel_file_op {
	SBA_FILE_READ = 'r',
	SBA_FILE_STAT = 's',
	SBA_FILE_LSTAT = 'S',
	SBA_FILE_LIST = 'l',
	SBA_FILE_PLACE = 'p',  /* where a path leads, and on which mount; links not followed last */
	SBA_FILE_CENSUS = 'z', /* how much lies below a path */
	SBA_FILE_WRITE = 'W',  /* one file, in parts */
	SBA_FILE_TAR = 't',    /* a tar of a path, in parts */
	SBA_FILE_PUT = 'U',    /* what is put into a folder; mode: enum sba_put_flag */
	SBA_FILE_CHANGES = 'c', /* what changed below a folder, in parts */
};

enum sba_part_kind {
	SBA_PART_GO = 'g',    /* guest: ready. PUT: enum sba_place_flag (1), the staging folder */
	SBA_PART_DATA = 'd',  /* content, or bytes of a tar */
	SBA_PART_ZEROS = 'z', /* of a tar, the same: so many bytes of zero (8) */
	SBA_PART_NOTE = 'n',  /* guest: an entry is left out: enum sba_note (1), its name */
	SBA_PART_AGAIN = 'a', /* guest: nothing has arrived in the staging folder: send it here */
	SBA_PART_END = 'e',   /* host: all has been sent; guest: the outcome */
};

enum sba_place_flag {
	SBA_PLACE_OTHER_MOUNT = 1,  /* the path lies on another mount than the root */
	SBA_PLACE_MOUNTS_BELOW = 2, /* mounted folders lie below it */
	SBA_PLACE_UNSEEN = 4,       /* the user may not look: there is no stat */
};

enum sba_put_flag {
	SBA_PUT_REPLACE = 1,    /* files that are there may be replaced */
	SBA_PUT_NO_CLOBBER = 2, /* they stay, which is no error */
	SBA_PUT_MAKE = 4,       /* the folder is made where it is missing */
};

enum sba_note {
	SBA_NOTE_UNREADABLE = 1,
	SBA_NOTE_SOCKET = 2,
};

#endif
