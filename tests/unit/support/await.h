/* Waiting for another thread, however long that takes on a busy machine. */
#ifndef AWAIT_H
#define AWAIT_H
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

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
#endif
