/* SPDX-License-Identifier: MIT */
/*
 * Files and trees between the host and a real guest, over a socketpair: what
 * is put into a folder, tars of what is there, and how both end early.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "wire/channel_command.h"
#include "wire/channel_peer.h"

#include "archive/archive.h"
#include "support/land_world.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static struct guest guest;
static struct world world; /* work/ is the inside, and landings go there too */
static char folder[128];
static struct sba_error err;

static int set_up(void **state)
{
	(void)state;
	guest_start(&guest);
	world_open(&world, false);
	snprintf(folder, sizeof(folder), "%s/work/in", world.root);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	guest_stop(&guest);
	world_close(&world);
	return 0;
}

static struct sba_until soon(void)
{
	return sba_until_in(20 * 1000);
}

static const char *in_folder(const char *name)
{
	static char paths[8][512];
	static unsigned turn;
	char *path = paths[turn++ % 8];
	world_path(path, sizeof(paths[0]), "%s/%s", folder, name);
	return path;
}

static void make_file(const char *path, const char *content)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, content, strlen(content)), strlen(content));
	close(fd);
}

static int names_in(const char *path)
{
	DIR *d = opendir(path);
	int n = -2; /* "." and ".." */
	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

/* ---- putting ---- */

static struct sba_channel_put *begin_put(bool replace, bool no_clobber)
{
	const struct sba_channel_put_options o = {
		.folder = folder, .make = true, .replace = replace, .no_clobber = no_clobber
	};
	struct sba_channel_put *p = NULL;
	if (sba_channel_put_open(guest.c, &o, soon(), &p, &err) < 0)
		fail_msg("%s", err.text);
	return p;
}

static int commit(struct sba_channel_put *p, uint64_t *kept)
{
	bool again = false;
	uint64_t n = 0;
	int rc = sba_channel_put_commit(p, soon(), &again, kept ? kept : &n, &err);
	assert_false(again);
	sba_channel_put_close(p);
	return rc;
}

/* As the engine would have unpacked it: into the staging folder. */
static void stage_file(struct sba_channel_put *p, const char *name, const char *content)
{
	char path[512];
	bool seen;
	world_path(path, sizeof(path), "%s/%s", sba_channel_put_stage(p, &seen), name);
	make_file(path, content);
}

static int put_pack(struct sba_channel_put *p, struct sba_pack *take_pack)
{
	int rc = sba_channel_put_tar(p, sba_pack_read, take_pack, soon(), &err);
	sba_pack_free(take_pack);
	return rc;
}

static void assert_has(const char *name, const char *content)
{
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(1 << 20);
	assert_int_equal(sba_read_file(in_folder(name), 1 << 20, &b, &err), 0);
	assert_string_equal(b.data ? b.data : "", content);
}

static void what_was_staged_is_moved_in_place_and_the_stage_goes(void **state)
{
	(void)state;
	struct sba_channel_put *p = begin_put(true, false);
	bool seen;
	assert_true(strncmp(sba_channel_put_stage(p, &seen), folder, strlen(folder)) == 0);
	stage_file(p, "f", "new");
	assert_int_equal(access(in_folder("f"), F_OK), -1);
	assert_int_equal(commit(p, NULL), 0);
	assert_has("f", "new");
	assert_int_equal(names_in(folder), 1);
}

static void an_engine_that_put_nothing_there_is_found_out(void **state)
{
	(void)state;
	struct sba_channel_put *p = begin_put(true, false);
	bool again = false;
	uint64_t kept;
	assert_int_equal(sba_channel_put_commit(p, soon(), &again, &kept, &err), 0);
	assert_true(again);
	const struct sba_pack_options o = { .fixed_mtime = 1000 };
	struct sba_pack *pack;
	assert_int_equal(sba_pack_new(&o, &pack, &err), 0);
	assert_int_equal(sba_pack_bytes(pack, "f", "sent", 4, 0600, &err), 0);
	assert_int_equal(put_pack(p, pack), 0);
	assert_int_equal(commit(p, NULL), 0);
	assert_has("f", "sent");
}

static void a_tree_is_unpacked_with_modes_times_and_links(void **state)
{
	(void)state;
	struct stat st;
	char src[256], long_name[300];
	world_path(src, sizeof(src), "%s/work/src", world.root);
	assert_int_equal(mkdir(src, 0755), 0);
	memset(long_name, 'n', 255);
	long_name[255] = '\0';
	const struct sba_pack_options o = { .fixed_mtime = 123456 };
	struct sba_pack *pack;
	assert_int_equal(sba_pack_new(&o, &pack, &err), 0);
	assert_int_equal(sba_pack_dir(pack, "t", 0555, &err), 0);
	assert_int_equal(sba_pack_bytes(pack, "t/run", "#!", 2, 0755, &err), 0);
	world_path(src, sizeof(src), "t/%s", "d");
	assert_int_equal(sba_pack_dir(pack, src, 0700, &err), 0);
	char deep[600];
	world_path(deep, sizeof(deep), "t/d/%s", long_name);
	assert_int_equal(sba_pack_bytes(pack, deep, "", 0, 0640, &err), 0);
	struct sba_channel_put *p = begin_put(true, false);
	assert_int_equal(put_pack(p, pack), 0);
	if (commit(p, NULL) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(lstat(in_folder("t"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0555);
	assert_int_equal(st.st_mtim.tv_sec, 123456);
	assert_int_equal(lstat(in_folder("t/run"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0755);
	assert_int_equal(lstat(in_folder(deep), &st), 0);
}

static void zeros_that_come_become_holes(void **state)
{
	(void)state;
	enum { SIZE = 3 << 20, MIDDLE = SIZE / 2 + 100 };
	struct stat st;
	const struct sba_pack_options o = { .fixed_mtime = 1000 };
	struct sba_pack *pack;
	SBA_FREE char *data = calloc(1, SIZE);
	assert_non_null(data);
	memcpy(data + MIDDLE, "middle", 6);
	assert_int_equal(sba_pack_new(&o, &pack, &err), 0);
	assert_int_equal(sba_pack_lent(pack, "f", data, SIZE, 0600, &err), 0);
	struct sba_channel_put *p = begin_put(true, false);
	assert_int_equal(put_pack(p, pack), 0);
	assert_int_equal(commit(p, NULL), 0);
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(2 * SIZE);
	assert_int_equal(sba_read_file(in_folder("f"), 2 * SIZE, &b, &err), 0);
	assert_int_equal(b.len, SIZE);
	assert_memory_equal(b.data, data, SIZE);
	assert_int_equal(stat(in_folder("f"), &st), 0);
	assert_true(st.st_blocks <= 64);
}

struct notes {
	unsigned n;
	char last[256];
	int why;
};

static void on_note(void *user, const char *name, int why)
{
	struct notes *notes = user;
	notes->n++;
	notes->why = why;
	snprintf(notes->last, sizeof(notes->last), "%s", name);
}

static ssize_t read_tar(void *user, void *buf, size_t size, struct sba_error *e)
{
	return sba_channel_tar_read(user, buf, size, e);
}

static int land_from_guest(const char *path, struct notes *notes)
{
	const struct sba_channel_tar_options o = { path, on_note, notes };
	struct sba_channel_tar *t;
	world.options.source_name = "in";
	if (sba_channel_tar_open(guest.c, &o, soon(), &t, &err) < 0)
		fail_msg("%s", err.text);
	int rc = sba_land(&world.options, read_tar, t, &world.report, &err);
	sba_channel_tar_close(t);
	return rc;
}

/* With its end of data, which lies on no border of a part. */
static void make_sparse(const char *path, off_t hole)
{
	make_file(path, "begin");
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_int_equal(pwrite(fd, "end", 3, hole), 3);
	close(fd);
}

static void assert_sparse(const char *path, off_t hole)
{
	char begin[6] = "", end[4] = "";
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, hole + 3);
	assert_true(st.st_blocks <= 64);
	assert_int_equal(pread(fd, begin, 5, 0), 5);
	assert_int_equal(pread(fd, end, 3, hole), 3);
	close(fd);
	assert_string_equal(begin, "begin");
	assert_string_equal(end, "end");
}

static void holes_of_a_file_stay_holes_both_ways(void **state)
{
	(void)state;
	enum { HOLE = (200 << 20) + 777 };
	char src[256], out[256];
	struct notes notes = { 0 };
	struct sba_pack *pack;
	const struct sba_pack_options o = { .fixed_mtime = 1000 };
	world_path(src, sizeof(src), "%s/work/src", world.root);
	world_path(out, sizeof(out), "%s/work/out/f", world.root);
	make_sparse(src, HOLE);
	assert_int_equal(sba_pack_new(&o, &pack, &err), 0);
	assert_int_equal(sba_pack_path(pack, "f", src, &err), 0);
	assert_int_equal(sba_pack_bytes(pack, "g", "behind", 6, 0600, &err), 0);
	struct sba_channel_put *p = begin_put(true, false);
	assert_int_equal(put_pack(p, pack), 0);
	assert_int_equal(commit(p, NULL), 0);
	assert_sparse(in_folder("f"), HOLE);
	assert_has("g", "behind");
	if (land_from_guest(folder, &notes) < 0)
		fail_msg("%s", err.text);
	assert_sparse(out, HOLE);
	world_assert_content(&world, "out/g", "behind");
}

static void a_census_tells_of_holes_and_comes_without_waiting(void **state)
{
	(void)state;
	struct sba_channel_ask *ask = NULL;
	struct sba_channel_census census = { 0 };
	assert_int_equal(mkdir(folder, 0755), 0);
	make_sparse(in_folder("f"), 100 << 20);
	assert_int_equal(sba_channel_census_begin(guest.c, folder, 4096, &ask, &err), 0);
	struct sba_until until = soon();
	while (!sba_channel_census_is_there(ask))
		assert_int_equal(sba_until_check(until, &err), 0);
	assert_int_equal(sba_channel_census_end(ask, sba_until_in(0), &census, NULL, &err), 0);
	assert_int_equal(census.bytes, (100 << 20) + 3);
	assert_true(census.holes > 99 << 20 && census.holes < 100 << 20);
	assert_int_equal(census.locked, 0);
}

static void a_census_tells_the_longest_path(void **state)
{
	(void)state;
	struct sba_channel_ask *ask = NULL;
	struct sba_channel_census census = { 0 };
	assert_int_equal(mkdir(folder, 0755), 0);
	assert_int_equal(mkdir(in_folder("d"), 0755), 0);
	make_file(in_folder("d/longest"), "x");
	make_file(in_folder("f"), "x");
	assert_int_equal(sba_channel_census_begin(guest.c, folder, 4096, &ask, &err), 0);
	assert_int_equal(sba_channel_census_end(ask, soon(), &census, NULL, &err), 0);
	assert_int_equal(census.entries, 4);
	assert_int_equal(census.longest, strlen("in/d/longest"));
}

static void what_is_there_is_merged_with_and_never_replaced_by_another_kind(void **state)
{
	(void)state;
	uint64_t kept = 0;
	assert_int_equal(mkdir(folder, 0755), 0);
	make_file(in_folder("f"), "old");
	assert_int_equal(mkdir(in_folder("d"), 0755), 0);
	struct sba_channel_put *p = begin_put(false, true);
	stage_file(p, "f", "new");
	stage_file(p, "g", "new");
	assert_int_equal(commit(p, &kept), 0);
	assert_int_equal(kept, 1);
	assert_has("f", "old");
	assert_has("g", "new");
	p = begin_put(true, false);
	stage_file(p, "d", "a file");
	stage_file(p, "z", "new");
	assert_int_equal(commit(p, NULL), SBA_EEXIST);
	assert_non_null(strstr(err.text, "'d'"));
	assert_int_equal(access(in_folder("z"), F_OK), -1);
	p = begin_put(false, false);
	stage_file(p, "f", "new");
	assert_int_equal(commit(p, NULL), SBA_EEXIST);
	assert_has("f", "old");
	assert_int_equal(names_in(folder), 3);
}

static void await_names(int n)
{
	int64_t limit = sba_now_ms() + 20 * 1000;
	while (names_in(folder) != n) {
		if (sba_now_ms() > limit)
			fail_msg("%d names instead of %d", names_in(folder), n);
		poll(NULL, 0, 5);
	}
}

static void a_put_that_is_given_up_takes_everything_back(void **state)
{
	(void)state;
	struct sba_channel_put *p = begin_put(true, false);
	stage_file(p, "f", "half");
	assert_int_equal(names_in(folder), 1);
	sba_channel_put_close(p);
	await_names(0);
}

static void a_stage_whose_guest_was_killed_goes_with_the_next_put(void **state)
{
	(void)state;
	assert_int_equal(mkdir(folder, 0755), 0);
	assert_int_equal(mkdir(in_folder(".sandbox-agent-put-99999-0"), 0700), 0);
	make_file(in_folder(".sandbox-agent-put-99999-0/left"), "x");
	struct sba_channel_put *p = begin_put(true, false);
	assert_int_equal(names_in(folder), 1); /* this one's own */
	stage_file(p, "f", "x");
	assert_int_equal(commit(p, NULL), 0);
	assert_int_equal(names_in(folder), 1);
}

static void a_folder_that_leads_through_a_file_is_told(void **state)
{
	(void)state;
	make_file(folder, "in the way");
	const struct sba_channel_put_options o = { .folder = in_folder("x"), .make = true };
	struct sba_channel_put *p;
	assert_int_equal(sba_channel_put_open(guest.c, &o, soon(), &p, &err), SBA_EEXIST);
}

static ssize_t broken_source(void *user, void *buf, size_t size, struct sba_error *e)
{
	int *calls = user;
	if ((*calls)++ > 0)
		return sba_fail(e, SBA_EIO, "the source broke");
	memset(buf, 'x', size);
	return (ssize_t)size;
}

static void a_write_whose_source_breaks_changes_nothing(void **state)
{
	(void)state;
	int calls = 0;
	bool asked = false;
	assert_int_equal(mkdir(folder, 0755), 0);
	make_file(in_folder("f"), "old");
	const struct sba_channel_write w = { .path = in_folder("f"),
					     .source = broken_source,
					     .user = &calls };
	assert_int_equal(sba_channel_file_write(guest.c, &w, soon(), &asked, &err), SBA_EIO);
	assert_true(asked);
	assert_has("f", "old");
	await_names(1);
}

/* ---- tars ---- */

static void bind_socket(const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	close(fd);
}

static void a_tree_comes_out_judged_like_an_engines(void **state)
{
	(void)state;
	struct notes notes = { 0 };
	char name[256];
	assert_int_equal(mkdir(folder, 0751), 0);
	make_file(in_folder("f"), "content");
	assert_int_equal(link(in_folder("f"), in_folder("hard")), 0);
	assert_int_equal(symlink("/etc/passwd", in_folder("link")), 0);
	assert_int_equal(mkfifo(in_folder("fifo"), 0600), 0);
	bind_socket(in_folder("socket"));
	memset(name, 'x', 255);
	name[255] = '\0';
	name[0] = '\xff';
	make_file(in_folder(name), "odd");
	if (land_from_guest(folder, &notes) < 0)
		fail_msg("%s", err.text);
	world_assert_content(&world, "out/f", "content");
	world_assert_content(&world, "out/hard", "content");
	char odd[300];
	world_path(odd, sizeof(odd), "out/%s", name);
	world_assert_content(&world, odd, "odd");
	assert_int_equal(world_stat(&world, "out").st_mode & 07777, 0751);
	assert_int_equal(world.report.refused[SBA_REFUSED_SYMLINK], 1);
	assert_int_equal(world.report.refused[SBA_REFUSED_FIFO], 1);
	assert_int_equal(notes.n, 1);
	assert_string_equal(notes.last, "in/socket");
	unlink(in_folder("fifo"));
	unlink(in_folder("socket"));
}

static void files_that_say_they_are_empty_come_with_what_is_in_them(void **state)
{
	(void)state;
	struct notes notes = { 0 };
	SBA_BUF struct sba_buf b = SBA_BUF_INIT(1 << 20);
	world.options.source_name = "version";
	const struct sba_channel_tar_options o = { "/proc/version", on_note, &notes };
	struct sba_channel_tar *t;
	assert_int_equal(sba_channel_tar_open(guest.c, &o, soon(), &t, &err), 0);
	assert_int_equal(sba_tar_one_file(read_tar, t, 1 << 20, &b, &err), 0);
	sba_channel_tar_close(t);
	assert_non_null(strstr(b.data, "Linux"));
}

static void a_path_that_is_not_there_is_not_found(void **state)
{
	(void)state;
	struct notes notes = { 0 };
	assert_int_equal(land_from_guest(folder, &notes), SBA_ENOTFOUND);
	assert_false(world_has(&world, "out"));
}

static void a_guest_that_goes_in_the_middle_leaves_nothing(void **state)
{
	(void)state;
	assert_int_equal(mkdir(folder, 0755), 0);
	int fd = open(in_folder("big"), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_int_equal(ftruncate(fd, (off_t)1 << 33), 0);
	close(fd);
	const struct sba_channel_tar_options o = { folder, NULL, NULL };
	struct sba_channel_tar *t;
	char piece[4096];
	assert_int_equal(sba_channel_tar_open(guest.c, &o, soon(), &t, &err), 0);
	assert_true(sba_channel_tar_read(t, piece, sizeof(piece), &err) > 0);
	struct sba_error why = { .code = SBA_EBROKEN, .text = "it died" };
	sba_channel_fail(guest.c, &why);
	world.options.source_name = "in";
	int rc = sba_land(&world.options, read_tar, t, &world.report, &err);
	assert_true(rc < 0);
	assert_false(world_has(&world, "out"));
	sba_channel_tar_close(t);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(what_was_staged_is_moved_in_place_and_the_stage_goes),
		TEST(an_engine_that_put_nothing_there_is_found_out),
		TEST(a_tree_is_unpacked_with_modes_times_and_links),
		TEST(zeros_that_come_become_holes),
		TEST(holes_of_a_file_stay_holes_both_ways),
		TEST(a_census_tells_of_holes_and_comes_without_waiting),
		TEST(a_census_tells_the_longest_path),
		TEST(what_is_there_is_merged_with_and_never_replaced_by_another_kind),
		TEST(a_put_that_is_given_up_takes_everything_back),
		TEST(a_stage_whose_guest_was_killed_goes_with_the_next_put),
		TEST(a_folder_that_leads_through_a_file_is_told),
		TEST(a_write_whose_source_breaks_changes_nothing),
		TEST(a_tree_comes_out_judged_like_an_engines),
		TEST(files_that_say_they_are_empty_come_with_what_is_in_them),
		TEST(a_path_that_is_not_there_is_not_found),
		TEST(a_guest_that_goes_in_the_middle_leaves_nothing),
	};
	return cmocka_run_group_tests_name("channel transfers", tests, NULL, NULL);
}
