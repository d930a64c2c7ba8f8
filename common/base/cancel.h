/* A thread that is cancelled (pthread_cancel) in the middle of a call would never release its lock or graph. So these
 * put the cancellation off until the call is over. For every call that may wait, log, or ask a backend. */
#ifndef GKI_BASE_CANCEL_H
#define GKI_BASE_CANCEL_H
#include <pthread.h>

/* @return for gki_cancel_let_go */
static inline int gki_cancel_hold(void) {
  int before;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
  return before;
}

static inline void gki_cancel_let_go(int before) { pthread_setcancelstate(before, NULL); }
#endif
