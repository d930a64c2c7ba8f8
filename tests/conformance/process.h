/* A process of its own for each case: a crash or hang doesn't end the others. */
#ifndef PROCESS_H
#define PROCESS_H
#include <stdbool.h>
#include <stddef.h>

typedef struct ended {
  bool well;            /* it came to its end and said so by exit(0) */
  char how[200];        /* else: what became of it, in words */
  char output[8000];    /* what it printed, as far as there is room */
} ended;

/* Runs body in a child, for that many seconds at most. The child's results go into memory from shared_memory. */
void run_apart(void (*body)(void *user), void *user, int seconds, ended *e);
/* Zeroed, and seen by children; NULL: there is none. */
void *shared_memory(size_t bytes);
#endif
