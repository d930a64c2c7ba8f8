/* A mutex that is held until a block is left. */
#ifndef SIM_LOCK_H
#define SIM_LOCK_H
#include <pthread.h>

static inline void sim_unlock(pthread_mutex_t *const *mutex) { pthread_mutex_unlock(*mutex); }
#define SIM_HOLD(mutex) \
  __attribute__((cleanup(sim_unlock))) pthread_mutex_t *const sim_locked = &(mutex); \
  pthread_mutex_lock(sim_locked)
#endif
