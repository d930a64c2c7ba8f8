/* Locks of the whole process. A thread of the parent may hold a lock while another thread forks, and the child has no
 * thread that would release it. So the lock is free in the child. A thread that holds it keeps the guarded data valid
 * at every moment. */
#ifndef GKI_BASE_FORK_H
#define GKI_BASE_FORK_H
#include "gk_backend.h"
#include <pthread.h>
#include <sys/types.h>

#define GKI_PROCESS_LOCK(name) \
  static pthread_mutex_t name = PTHREAD_MUTEX_INITIALIZER; \
  GKI_FREE_IN_CHILD(name)

#define GKI_FREE_IN_CHILD(name) \
  static void free_##name(void) { name = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER; } \
  __attribute__((constructor)) static void watch_##name(void) { (void)pthread_atfork(NULL, NULL, free_##name); }

/* Calls `start` under the lock, unless it has succeeded in this process before. *starter, 0 at first, is the process in
 * which it has. GK_ERROR_NO_DEVICE, with the message `forked`: this is a fork of that process. Thread-safe. */
gk_result gki_start_once(pthread_mutex_t *lock, pid_t *starter, gk_result (*start)(void), const char *forked);
#endif
