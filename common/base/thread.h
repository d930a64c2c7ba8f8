/* How gk starts threads of its own. Backends may include it, too. */
#ifndef GKI_BASE_THREAD_H
#define GKI_BASE_THREAD_H
#include <pthread.h>
#include <signal.h>

/* The program's signals are for its own threads: one that it blocks, to wait for it, would else reach a thread of gk's
 * that was started before. What a thread raises by what it does stays its own affair. @return as pthread_create */
static inline int gki_thread_start(pthread_t *thread, const pthread_attr_t *how, void *(*run)(void *), void *user) {
  static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
  sigset_t others, before;
  sigfillset(&others);
  for (size_t k = 0; k < sizeof own / sizeof own[0]; ++k) sigdelset(&others, own[k]);
  pthread_sigmask(SIG_BLOCK, &others, &before);
  const int code = pthread_create(thread, how, run, user);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return code;
}
#endif
