#include "base/fork.h"
#include <unistd.h>

gk_result gki_start_once(pthread_mutex_t *lock, pid_t *starter, gk_result (*start)(void), const char *forked) {
  pthread_mutex_lock(lock);
  const bool is_first = *starter == 0;
  if (is_first) *starter = getpid(); /* set first: a child that is forked meanwhile doesn't start it, too */
  const gk_result result = is_first ? start() : GK_OK;
  if (result != GK_OK) *starter = 0;
  const bool is_ours = *starter == getpid();
  pthread_mutex_unlock(lock);
  return result != GK_OK || is_ours ? result : gk_fail(GK_ERROR_NO_DEVICE, "%s", forked);
}
