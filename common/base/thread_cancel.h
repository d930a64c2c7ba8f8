/* A thread that is cancelled (pthread_cancel) in the middle of a call would never release its lock or graph. These
 * functions defer the cancellation to the end of the call. For every call that may wait, log, or ask a backend. */
#ifndef GKI_BASE_THREAD_CANCEL_H
#define GKI_BASE_THREAD_CANCEL_H
#include <pthread.h>

/* @return for gki_thread_cancel_restore */
static inline int gki_thread_cancel_disable(void) {
  int cancel_state;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
  return cancel_state;
}

static inline void gki_thread_cancel_restore(int cancel_state) { pthread_setcancelstate(cancel_state, NULL); }
#endif
