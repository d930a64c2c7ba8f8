/* The cache on disk: in any state of its folder, it gives back exactly the bytes that were kept, or nothing. */
#include "cache_world.h"
#include <fcntl.h>
#include <time.h>

/* In front of libc's. */
static bool rename_fails;
int __real_renameat(int from_folder, const char *from, int to_folder, const char *to);
int __wrap_renameat(int from_folder, const char *from, int to_folder, const char *to);
int __wrap_renameat(int from_folder, const char *from, int to_folder, const char *to) {
  if (!rename_fails) return __real_renameat(from_folder, from, to_folder, to);
  errno = EIO;
  return -1;
}

/* Keeps "a" in an empty folder. @return The size of its file, whose bytes and path are given. */
static size_t keep_and_read(char path[PATH_MAX], unsigned char bytes[512]) {
  keep_at(path, "a");
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  const size_t size = fread(bytes, 1, 512, file);
  fclose(file);
  assert_true(size > sizeof image && size < 512);
  return size;
}

/* A file of that name in the folder, with a byte; its path. */
static void write_inside(char path[PATH_MAX], const char *name) {
  snprintf(path, PATH_MAX, "%.2000s/%s", folder, name);
  write_file(path, "x", 1);
}

/* ---- what is kept ------------------------------------------------------------------------------------------------ */

IN_FOLDER(kept_entries_are_found) {
  assert_false(is_kept("a"));
  keep("a");
  assert_true(is_kept("a"));
  assert_true(is_kept("a"));
  assert_false(is_kept("b"));
  keep("b");
  keep("a");
  assert_int_equal(count_files(), 2);
  const gki_cache_key key = key_of("nothing");
  gki_cache_keep(&key, "", 0);
  void *bytes = NULL;
  size_t size = 1;
  assert_true(gki_cache_find(&key, &bytes, &size));
  assert_int_equal(size, 0);
  gk_host_free(bytes);
}

IN_FOLDER(keys_know_where_parts_end) {
  const gki_cache_part ab[] = {{"a", 1}, {"b", 1}}, joined[] = {{"ab", 2}}, moved[] = {{"", 0}, {"ab", 2}};
  const gki_cache_key one = gki_cache_key_of(ab, 2), two = gki_cache_key_of(joined, 1);
  const gki_cache_key three = gki_cache_key_of(moved, 2), same = gki_cache_key_of(ab, 2);
  assert_memory_not_equal(&one, &two, sizeof one);
  assert_memory_not_equal(&two, &three, sizeof one);
  assert_memory_equal(&one, &same, sizeof one);
}

IN_FOLDER(folder_is_the_users_alone) {
  char path[PATH_MAX];
  struct stat status;
  keep_at(path, "a");
  assert_int_equal(stat(folder, &status), 0);
  assert_int_equal(status.st_mode & 0777, 0700);
  assert_int_equal(stat(path, &status), 0);
  assert_int_equal(status.st_mode & 0777, 0600);
}

/* The folder that is used, and why there is none, or isn't yet. */
static void assert_described(const char *folder_wanted, const char *why_wanted) {
  char at[PATH_MAX], why[PATH_MAX + 256];
  gki_cache_describe(at, sizeof at, why, sizeof why);
  assert_string_equal(at, folder_wanted);
  if (!strstr(why, why_wanted) || !*why != !*why_wanted) fail_msg("\"%s\" isn't \"%s\"", why, why_wanted);
}

IN_FOLDER(folder_by_environment) {
  char wanted[PATH_MAX], *home = getenv("HOME") ? strdup(getenv("HOME")) : NULL;
  static const char *const off[] = {"off", "0", ""};
  for (size_t k = 0; k < GK_COUNT(off); ++k) {
    setenv("GK_CACHE", off[k], 1);
    keep("a");
    assert_false(is_kept("a"));
    assert_described("", "$GK_CACHE turns it off");
  }
  unsetenv("GK_CACHE");
  setenv("XDG_CACHE_HOME", base, 1);
  setenv("HOME", "/nowhere", 1);
  snprintf(wanted, sizeof wanted, "%s/gk", base);
  assert_described(wanted, "it isn't there yet; what is compiled first makes it");
  assert_int_not_equal(access(wanted, F_OK), 0);
  keep("b");
  assert_described(wanted, "");
  setenv("XDG_CACHE_HOME", "relative", 1);
  setenv("HOME", base, 1);
  snprintf(wanted, sizeof wanted, "%s/.cache/gk", base);
  assert_described(wanted, "it isn't there yet");
  unsetenv("XDG_CACHE_HOME");
  unsetenv("HOME");
  assert_described("", "neither $GK_CACHE nor $XDG_CACHE_HOME nor $HOME names a folder");
  if (home) setenv("HOME", home, 1);
  free(home);
}

/* ---- damage ------------------------------------------------------------------------------------------------------ */

IN_FOLDER(every_damaged_byte_is_seen) {
  unsigned char bytes[512];
  char path[PATH_MAX];
  const size_t size = keep_and_read(path, bytes);
  for (size_t k = 0; k < size; ++k)
    for (unsigned bit = 0; bit < 8; ++bit) {
      bytes[k] ^= (unsigned char)(1u << bit);
      write_file(path, bytes, size);
      assert_false(is_kept("a"));
      assert_int_equal(count_files(), 0); /* removed, so that it is replaced */
      bytes[k] ^= (unsigned char)(1u << bit);
    }
  keep("a");
  assert_true(is_kept("a"));
}

IN_FOLDER(every_cut_is_seen) {
  unsigned char bytes[512] = {0};
  char path[PATH_MAX];
  const size_t size = keep_and_read(path, bytes);
  for (size_t k = 0; k <= size + 1; ++k) {
    if (k == size) continue;
    write_file(path, bytes, k);
    assert_false(is_kept("a"));
  }
  write_file(path, bytes, size);
  chmod(path, 0600);
  assert_true(is_kept("a"));
}

IN_FOLDER(another_keys_entry_is_none) {
  unsigned char bytes[512];
  char path[PATH_MAX], other[PATH_MAX];
  const size_t size = keep_and_read(path, bytes);
  unlink(path);
  keep_at(other, "b");
  write_file(other, bytes, size);
  assert_false(is_kept("b"));
}

IN_FOLDER(odd_things_in_an_entrys_place) {
  char path[PATH_MAX], target[PATH_MAX];
  keep_at(path, "a");
  snprintf(target, sizeof target, "%s/elsewhere", base);
  assert_int_equal(rename(path, target), 0);
  assert_int_equal(symlink(target, path), 0);
  assert_false(is_kept("a"));
  keep("a");
  assert_true(is_kept("a"));
  unlink(path);
  assert_int_equal(mkfifo(path, 0600), 0);
  assert_false(is_kept("a")); /* and doesn't wait for another writer */
  for (int full = 0; full < 2; ++full) { /* a folder, empty and not */
    char inside[PATH_MAX + 8];
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(inside, sizeof inside, "%s/inside", path);
    if (full) write_file(inside, "x", 1);
    assert_false(is_kept("a"));
    keep("a");
    assert_true(is_kept("a"));
    unlink(path);
  }
  unlink(target);
}

/* ---- folders that aren't to be trusted --------------------------------------------------------------------------- */

IN_FOLDER(folder_of_others_is_left_alone) {
  keep("a");
  for (unsigned mode = 0720; mode >= 0702; mode -= 016) { /* 0720, 0702 */
    chmod(folder, mode);
    assert_false(is_kept("a"));
    keep("b");
    assert_int_equal(count_files(), 1);
    assert_described("", "can be written to by others; make it yours alone (chmod go-w)");
  }
  chmod(folder, 0755);
  assert_true(is_kept("a"));
  if (geteuid() != 0) return;
  assert_int_equal(chown(folder, 12345, (gid_t)-1), 0);
  assert_false(is_kept("a"));
  assert_described("", "belongs to another user");
}

IN_FOLDER(writable_entry_is_ignored) {
  char path[PATH_MAX];
  keep_at(path, "a");
  chmod(path, 0666);
  assert_false(is_kept("a"));
  keep("a");
  assert_true(is_kept("a"));
}

IN_FOLDER(file_in_the_folders_place) {
  keep("a");
  remove_all();
  write_file(folder, "x", 1);
  keep("a");
  assert_false(is_kept("a"));
  setenv("GK_CACHE", "/proc/no/such/folder", 1);
  keep("a");
  assert_false(is_kept("a"));
}

static void *no_memory(void *user, size_t bytes) { return (void)user, (void)bytes, NULL; }
static void *no_more(void *user, void *memory, size_t bytes) { return (void)user, (void)memory, (void)bytes, NULL; }
static void free_it(void *user, void *memory) { (void)user, free(memory); }

IN_FOLDER(entry_outlasts_a_lack_of_memory) {
  keep("a");
  const gk_allocator none = {.alloc = no_memory, .resize = no_more, .free = free_it};
  assert_ok(gk_set_allocator(&none));
  assert_false(is_kept("a"));
  keep("b"); /* what is too much then isn't seen to */
  assert_ok(gk_set_allocator(NULL));
  assert_true(is_kept("a"));
  assert_true(is_kept("b"));
}

/* ---- room -------------------------------------------------------------------------------------------------------- */

/* Makes all files a second older, so that the next one is newer, for any resolution of the system's time. */
static void age(const char *path) {
  struct stat status;
  assert_int_equal(stat(path, &status), 0);
  --status.st_mtim.tv_sec;
  const struct timespec times[2] = {status.st_atim, status.st_mtim};
  assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}
static void age_all(void) { each_file(age); }

IN_FOLDER(oldest_go_first) {
  enum { COUNT = 5, BYTES = 300 * 1024 };
  unsigned char *large = calloc(BYTES, 1);
  assert_non_null(large);
  setenv("GK_CACHE_LIMIT", "1", 1); /* three fit */
  void *bytes;
  size_t size;
  for (int k = 0; k < COUNT; ++k) {
    const gki_cache_key key = key_of_number(k), first = key_of_number(0);
    gki_cache_keep(&key, large, BYTES);
    age_all();
    assert_true(gki_cache_find(&first, &bytes, &size)); /* used, so it stays */
    gk_host_free(bytes);
    age_all();
  }
  assert_int_equal(count_files(), 3);
  for (int k = 0; k < COUNT; ++k) {
    const gki_cache_key key = key_of_number(k);
    const bool found = gki_cache_find(&key, &bytes, &size);
    assert_int_equal(found, k == 0 || k >= COUNT - 2);
    if (found) gk_host_free(bytes);
  }
  setenv("GK_CACHE_LIMIT", "0", 1);
  keep("too much");
  unsetenv("GK_CACHE_LIMIT");
  assert_false(is_kept("too much"));
  free(large);
}

/* An entry of 300 MiB, all of it a hole, stays only where a whole number says that there is room. */
IN_FOLDER(limit_is_a_whole_number) {
  static const struct { const char *limit; bool stays; } cases[] = {
      {"400", true}, {"99999999999999999999999", true}, {"", false}, {" -5", false}, {"-5", false},
      {"+400", false}, {"400x", false}, {" 400", false}, {"400 ", false}, {"256", false}};
  char path[PATH_MAX];
  for (size_t k = 0; k < GK_COUNT(cases); ++k) {
    keep("a"); /* makes the folder */
    write_inside(path, "0123456789abcdef0123456789abcdef.gk");
    assert_int_equal(truncate(path, 300 << 20), 0);
    assert_int_equal(utimensat(AT_FDCWD, path, (struct timespec[2]){{1000, 0}, {1000, 0}}, 0), 0);
    setenv("GK_CACHE_LIMIT", cases[k].limit, 1);
    keep("b");
    if ((access(path, F_OK) == 0) != cases[k].stays) fail_msg("GK_CACHE_LIMIT=\"%s\"", cases[k].limit);
    unsetenv("GK_CACHE_LIMIT");
    unlink(path);
  }
}

IN_FOLDER(half_written_files_are_removed) {
  char path[PATH_MAX], foreign[PATH_MAX];
  keep("a");
  write_inside(path, "0123456789abcdef0123456789abcdef.7.part");
  write_inside(foreign, "holiday.part"); /* of a browser, say: none of ours */
  keep("b");
  assert_int_equal(access(path, F_OK), 0); /* a process may be writing it */
  const struct timespec old[2] = {{.tv_sec = time(NULL) - 4000}, {.tv_sec = time(NULL) - 4000}};
  assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
  assert_int_equal(utimensat(AT_FDCWD, foreign, old, 0), 0);
  keep("c");
  assert_int_equal(access(path, F_OK), -1);
  assert_int_equal(access(foreign, F_OK), 0);
  assert_int_equal(count_files(), 4);
}

IN_FOLDER(entry_may_not_get_its_name) {
  rename_fails = true;
  keep("a");
  rename_fails = false;
  assert_false(is_kept("a"));
  assert_int_equal(count_files(), 0); /* nothing half made is left */
  keep("a");
  assert_true(is_kept("a"));
}

int main(void) { return run_cache_tests(); }
