/* Locks of the whole process. A thread of the parent's may hold one while another forks: the child has no thread that
 * would give it back. So the child finds it free, and a thread that holds it leaves what it guards sound at every
 * moment. */
#ifndef GKI_BASE_FORK_H
#define GKI_BASE_FORK_H
#include <pthread.h>

#define GKI_PROCESS_LOCK(name) \
  static pthread_mutex_t name = PTHREAD_MUTEX_INITIALIZER; \
  GKI_FREE_IN_CHILD(name)

#define GKI_FREE_IN_CHILD(name) \
  static void free_##name(void) { name = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER; } \
  __attribute__((constructor)) static void watch_##name(void) { (void)pthread_atfork(NULL, NULL, free_##name); }
#endif
