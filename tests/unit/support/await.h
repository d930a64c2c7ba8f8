/* Waiting for other threads, however long that takes on a busy machine. */
#ifndef AWAIT_H
#define AWAIT_H
#include <dirent.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* A wait of ten minutes and more counts as a hang. */
static inline void await_once(int tries, const char *what) {
  enum { YIELDS = 1000, NAPS = 600000 };
  if (tries < YIELDS) sched_yield();
  else nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  if (tries < YIELDS + NAPS) return;
  fprintf(stderr, "waited in vain for: %s\n", what);
  abort();
}

#define await(condition) \
  do { \
    for (int tries_ = 0; !(condition); ++tries_) await_once(tries_, #condition); \
  } while (0)

/* Whether all threads but this one sleep. */
static inline bool others_sleep(void) {
  bool all = true;
  DIR *folder = opendir("/proc/self/task");
  if (!folder) abort();
  for (struct dirent *entry; (entry = readdir(folder));) {
    char path[300], state = 0;
    snprintf(path, sizeof path, "/proc/self/task/%s/stat", entry->d_name);
    FILE *file = entry->d_name[0] != '.' && atoi(entry->d_name) != (int)syscall(SYS_gettid) ? fopen(path, "r") : NULL;
    if (!file) continue; /* this thread, or one that has ended */
    all &= fscanf(file, "%*d (%*[^)]) %c", &state) == 1 && state != 'R';
    fclose(file);
  }
  closedir(folder);
  return all;
}
#endif
