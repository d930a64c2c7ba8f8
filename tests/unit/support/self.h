/* The test's own program once more, for what a process does only once. */
#ifndef SELF_H
#define SELF_H
#include "test.h"
#include <unistd.h>

/* A file beside the program. */
static inline const char *beside(const char *file) {
  static char path[4200];
  const ssize_t length = readlink("/proc/self/exe", path, 4000);
  assert_true(length > 0);
  path[length] = 0;
  strcpy(strrchr(path, '/') + 1, file);
  return path;
}

/* Runs it with a word; what it said on both streams. @return What pclose does. */
static inline int run_self(const char *word, char *said, size_t bytes) {
  char path[4000] = "", command[4200];
  assert_true(readlink("/proc/self/exe", path, sizeof path - 1) > 0);
  snprintf(command, sizeof command, "'%s' %s 2>&1", path, word);
  FILE *child = popen(command, "r");
  assert_non_null(child);
  said[fread(said, 1, bytes - 1, child)] = 0;
  return pclose(child);
}
#endif
