/* SPDX-License-Identifier: MIT */
/*
 * Records of files that the guest sends, and that the host keeps in lists
 * (channel/protocol.h). All of it is checked: the guest may be somebody else.
 */
#ifndef SBA_SANDBOX_RECORDS_H
#define SBA_SANDBOX_RECORDS_H

#include "base/base.h"
#include "base/limits.h"
#include "channel/protocol.h"

/* What is known of a file; all zero where it is not there. */
struct sba_file_entry {
	uint32_t mode; /* st_mode */
	uint64_t size, inode;
	int64_t mtime_ns, ctime_ns;
	uint8_t flags; /* enum sba_entry_flag */
	unsigned char sha[SBA_SHA256_SIZE];
	uint32_t pack;
	uint64_t offset;
	const char *link; /* lent with the records; NULL: no link */
};

struct sba_record_side {
	struct sba_file_entry entry;
	enum sba_content why;
	uint64_t at; /* of SBA_CONTENT_SENT: in the file of its side */
};

struct sba_record {
	enum sba_change_record kind;
	const char *path; /* lent with the records */
	struct sba_record_side old, fresh;
	enum sba_left_out left_out;
};

struct sba_records {
	struct sba_record *v;
	size_t n, cap;
	int old_fd, fresh_fd; /* files without a name, of contents; -1: none was sent */
	uint64_t old_len, fresh_len;
	struct sba_buf in; /* not yet taken apart */
	size_t need;       /* so much of it makes no sense to look at */
	size_t kept_bytes; /* of paths and targets */
};

void sba_records_init(struct sba_records *r);
void sba_records_fini(struct sba_records *r);
/* Takes the next bytes, in whatever pieces. SBA_EPROTO, SBA_ELIMIT. */
int sba_records_feed(struct sba_records *r, const void *data, size_t len,
		     struct sba_error *err) SBA_MUST_CHECK;
/* Appends a copy of one, without its contents. SBA_ELIMIT. */
int sba_records_add(struct sba_records *r, const struct sba_record *one,
		    struct sba_error *err) SBA_MUST_CHECK;
/* The content of a fresh side of theirs. SBA_EPROTO: it is another one. */
int sba_records_add_content(struct sba_records *r, struct sba_record *one, const char *data,
			    size_t len, struct sba_error *err) SBA_MUST_CHECK;
/* All has come: none is cut, none is there twice. They are by path then. */
int sba_records_end(struct sba_records *r, struct sba_error *err) SBA_MUST_CHECK;
/* The content of a side, ret_size = entry.size bytes; the caller frees. */
int sba_records_content(const struct sba_records *r, const struct sba_record *one, bool old,
			char **ret, struct sba_error *err) SBA_MUST_CHECK;

/* Appends what a list says of a path; entry NULL: that it is gone. */
void sba_record_put(struct sba_buf *list, const char *path, const struct sba_file_entry *entry);

/* Whether it can be a path beneath a folder: no "..", nothing empty, no .git. */
bool sba_record_path_ok(const char *path, size_t len);

#endif
