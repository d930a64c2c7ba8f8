/* pthread_cond_wait in front of the C library's, so that a test knows when a thread is about to wait. To be included
 * once in a program. */
#ifndef WAITS_H
#define WAITS_H
#include <pthread.h>
#include <stdint.h>
#include <time.h>

static _Thread_local void (*on_wait)(void); /* called on this thread, before it waits */

int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *lock) {
  const struct timespec never = {.tv_sec = INT32_MAX};
  if (on_wait) on_wait();
  return pthread_cond_timedwait(condition, lock, &never);
}
#endif
