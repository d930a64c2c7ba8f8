#include "process.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void *shared_memory(size_t bytes) {
  void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return at == MAP_FAILED ? NULL : at;
}

static long now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Until the child has closed its end, which it does by ending. What has no room is read and dropped. */
static bool read_all(int from, int seconds, ended *e) {
  size_t used = 0;
  long end = now_ms() + seconds * 1000L;
  for (;;) {
    char dropped[1000];
    size_t room = sizeof e->output - 1 - used;
    long left = end - now_ms();
    struct pollfd wait = {.fd = from, .events = POLLIN};
    int ready = left > 0 ? poll(&wait, 1, (int)left) : 0;
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    ssize_t got = read(from, room ? e->output + used : dropped, room ? room : sizeof dropped);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return true;
    if (room) used += (size_t)got;
  }
}

void run_apart(void (*body)(void *user), void *user, int seconds, ended *e) {
  int ends[2], status = 0;
  memset(e, 0, sizeof *e);
  fflush(NULL);
  if (pipe(ends) != 0) {
    snprintf(e->how, sizeof e->how, "the runner itself gets no pipe: %s", strerror(errno));
    return;
  }
  pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    body(user);
    exit(0);
  }
  close(ends[1]);
  if (child < 0) {
    snprintf(e->how, sizeof e->how, "the runner itself gets no process: %s", strerror(errno));
    close(ends[0]);
    return;
  }
  bool in_time = read_all(ends[0], seconds, e);
  if (!in_time) kill(child, SIGKILL);
  close(ends[0]);
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  if (!in_time) snprintf(e->how, sizeof e->how, "no end after %d seconds", seconds);
  else if (WIFSIGNALED(status)) snprintf(e->how, sizeof e->how, "killed by a signal: %s", strsignal(WTERMSIG(status)));
  else if (WEXITSTATUS(status) != 0) snprintf(e->how, sizeof e->how, "exit code %d", WEXITSTATUS(status));
  else e->well = true;
}
