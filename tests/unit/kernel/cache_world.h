/* A cache on disk in a folder of the test's own. */
#ifndef CACHE_WORLD_H
#define CACHE_WORLD_H
#include "kernel/cache.h"
#include "unit/support/test.h"
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

static char base[] = "/tmp/gk-cache-XXXXXX", folder[PATH_MAX];
static const char image[] = "an image, not too short to be cut off somewhere";

static inline gki_cache_key key_of(const char *text) {
  const gki_cache_part part = {text, strlen(text)};
  return gki_cache_key_of(&part, 1);
}

static inline gki_cache_key key_of_number(int number) {
  char text[16];
  snprintf(text, sizeof text, "%d", number);
  return key_of(text);
}

static inline void keep(const char *text) {
  const gki_cache_key key = key_of(text);
  gki_cache_keep(&key, image, sizeof image);
}

static inline bool is_kept(const char *text) {
  const gki_cache_key key = key_of(text);
  void *bytes = NULL;
  size_t size = 0;
  if (!gki_cache_find(&key, &bytes, &size)) return false;
  assert_int_equal(size, sizeof image);
  assert_memory_equal(bytes, image, sizeof image);
  assert_int_equal(((char *)bytes)[size], 0);
  gk_host_free(bytes);
  return true;
}

static char last_file[PATH_MAX]; /* of each_file */

/* Returns their number. */
static inline size_t each_file(void (*visit)(const char *path)) {
  size_t count = 0;
  DIR *listing = opendir(folder);
  assert_non_null(listing);
  for (struct dirent *at; (at = readdir(listing));) {
    if (at->d_name[0] == '.') continue;
    snprintf(last_file, sizeof last_file, "%.2000s/%s", folder, at->d_name);
    if (visit) visit(last_file);
    ++count;
  }
  closedir(listing);
  return count;
}

static inline size_t count_files(void) { return each_file(NULL); }

/* Keeps it in an empty folder, as the file of that path. */
static inline void keep_at(char path[PATH_MAX], const char *text) {
  keep(text);
  assert_int_equal(count_files(), 1);
  memcpy(path, last_file, sizeof last_file);
}

static inline void remove_all(void) {
  char command[PATH_MAX + 32];
  snprintf(command, sizeof command, "rm -rf '%.2000s'", folder);
  assert_int_equal(system(command), 0);
}

static inline int begin(void **state) {
  (void)state;
  snprintf(folder, sizeof folder, "%s/deep/er", base);
  remove_all();
  setenv("GK_CACHE", folder, 1);
  unsetenv("GK_CACHE_LIMIT");
  return 0;
}

#define IN_FOLDER(test) TEST_WITH(test, begin, NULL)

static inline int make_base(void **state) {
  (void)state;
  umask(022);
  return mkdtemp(base) ? 0 : -1;
}
static inline int remove_base(void **state) {
  (void)state;
  snprintf(folder, sizeof folder, "%s", base);
  remove_all();
  return 0;
}

static inline void write_file(const char *path, const void *bytes, size_t size) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, size, file), size);
  fclose(file);
}

/* Built without xxHash there is nothing to try: tests/repo/configured.py sees to that. */
static inline bool is_there(void) {
  char at[PATH_MAX], why[512];
  gki_cache_describe(at, sizeof at, why, sizeof why);
  if (!strstr(why, "without xxHash")) return true;
  printf("1..0 # SKIP %s\n", why);
  return false;
}

static inline int run_cache_tests(void) { return is_there() ? run_all_tests_with(make_base, remove_base) : 0; }
#endif
