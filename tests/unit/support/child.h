/* A part of a test in a process of its own. */
#ifndef CHILD_H
#define CHILD_H
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
#endif
