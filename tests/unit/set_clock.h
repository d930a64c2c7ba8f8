/* A clock that the test sets: CLOCK_MONOTONIC, as the library and the test read it, in a program that is linked with
 * -Wl,--wrap=clock_gettime. It stands still until the test lets time pass. Other clocks, and other libraries, aren't
 * concerned. */
#ifndef SET_CLOCK_H
#define SET_CLOCK_H
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

int __real_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time);

static _Atomic uint64_t passed_ns = 1000000000;  /* for all threads */
static _Thread_local uint64_t passed_here_ns;    /* for this thread alone, beyond that */
static _Thread_local uint64_t reading_ns;        /* what reading the clock takes on this thread */

static inline void let_pass(uint64_t ns) { atomic_fetch_add(&passed_ns, ns); }
static inline void let_pass_here(uint64_t ns) { passed_here_ns += ns; }

int __wrap_clock_gettime(clockid_t clock, struct timespec *time) {
  if (clock != CLOCK_MONOTONIC) return __real_clock_gettime(clock, time);
  const uint64_t now = atomic_load(&passed_ns) + passed_here_ns;
  passed_here_ns += reading_ns;
  *time = (struct timespec){(time_t)(now / 1000000000), (long)(now % 1000000000)};
  return 0;
}
#endif
