/* A clock that the test sets: CLOCK_MONOTONIC, as the library and the test read it, in a program that is linked with
 * -Wl,--wrap=clock_gettime. It stands still until the test lets time pass. Other clocks, and other libraries, aren't
 * concerned. */
#ifndef SET_CLOCK_H
#define SET_CLOCK_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

int __real_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time);

static atomic_bool clock_runs;                    /* by itself, as usual, except where reading it takes time */
static _Atomic uint64_t passed_ns = 1000000000;   /* for all threads */
static atomic_uint clock_settings;
static _Thread_local struct {
  unsigned setting;
  uint64_t passed_ns; /* for this thread alone, beyond that, since the clock was set */
} own_time;
static _Thread_local uint64_t reading_ns;         /* passes for this thread alone with each reading */
static _Thread_local const uint64_t *readings_ns; /* pass for all with the next readings; 0 ends them */

/* All threads read the same again. */
static inline void set_clock(void) {
  atomic_fetch_add(&clock_settings, 1);
  atomic_store(&passed_ns, 1000000000);
  readings_ns = NULL;
  reading_ns = 0;
}

static inline void let_pass(uint64_t ns) { atomic_fetch_add(&passed_ns, ns); }

static inline void let_pass_here(uint64_t ns) {
  const unsigned setting = atomic_load(&clock_settings);
  if (own_time.setting != setting) own_time.passed_ns = 0;
  own_time.setting = setting;
  own_time.passed_ns += ns;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *time) {
  if (clock != CLOCK_MONOTONIC || (atomic_load(&clock_runs) && reading_ns == 0))
    return __real_clock_gettime(clock, time);
  let_pass_here(0);
  const uint64_t now = atomic_load(&passed_ns) + own_time.passed_ns;
  if (readings_ns && *readings_ns) let_pass(*readings_ns++);
  else let_pass_here(reading_ns);
  *time = (struct timespec){(time_t)(now / 1000000000), (long)(now % 1000000000)};
  return 0;
}
#endif
