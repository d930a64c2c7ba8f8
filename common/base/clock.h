/* The time, to measure durations, and the pause of a loop that waits for another thread. Backends may include this
 * file, too. Tests link their own clock in its place: tests/unit/support/set_clock.h. */
#ifndef GKI_BASE_CLOCK_H
#define GKI_BASE_CLOCK_H
#include "base/costs.h"
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

static inline uint64_t gki_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Tells the processor that this thread spins. It takes 10 to 40 ns on today's processors. */
static inline void gki_pause(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

/* Pauses a loop that polls before it sleeps, and says whether it polls again: a wake-up takes longer than work that is
 * almost done. */
static inline bool gki_spins_since(uint64_t begin_ns) {
  gki_pause();
  return gki_now_ns() - begin_ns < GKI_COST_SPIN_NS;
}
#endif
