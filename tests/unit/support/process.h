/* A part of a test in a process of its own: a child, or the test's program once more. */
#ifndef PROCESS_H
#define PROCESS_H
#include "test.h"
#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

/* The exit code of a process in which `body` runs, which may end by exec; -1: a signal ended it. What it prints goes
 * into `text`, if that has any bytes. */
static inline int code_of_child(int (*body)(const void *data), const void *data, char *text, size_t bytes) {
  int pipes[2], status;
  size_t used = 0;
  assert_int_equal(pipe(pipes), 0);
  fflush(NULL);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    if (bytes && (dup2(pipes[1], 1) < 0 || dup2(pipes[1], 2) < 0)) _exit(99);
    close(pipes[0]);
    close(pipes[1]);
    _exit(body(data));
  }
  close(pipes[1]);
  for (ssize_t count; used + 1 < bytes && (count = read(pipes[0], text + used, bytes - used - 1)) != 0;)
    if (count > 0) used += (size_t)count;
    else if (errno != EINTR) break;
  if (bytes) text[used] = 0;
  close(pipes[0]);
  while (waitpid(child, &status, 0) < 0) assert_int_equal(errno, EINTR);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* A file beside the program. */
static inline const char *beside(const char *file) {
  static char path[4200];
  const ssize_t length = readlink("/proc/self/exe", path, 4000);
  assert_true(length > 0);
  path[length] = 0;
  strcpy(strrchr(path, '/') + 1, file);
  return path;
}

/* Runs this program again with a word, for what a process does only once. `said` gets the output of both streams.
 * @return What pclose does. */
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
