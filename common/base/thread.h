/* How gk starts its own threads. Backends may include this file, too. */
#ifndef GKI_BASE_THREAD_H
#define GKI_BASE_THREAD_H
#include <pthread.h>
#include <signal.h>

/* Starts a thread with the program's signals blocked. A program that blocks a signal to wait for it must get it; a
 * thread of gk that was started before would receive it instead. Signals that a thread raises by its own actions aren't
 * blocked. @return as pthread_create */
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
