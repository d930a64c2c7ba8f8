/* The time, to measure how long something takes, and what a loop that waits for another thread does in between.
 * Backends may include it, too. Tests put a clock of theirs in its place as they are linked:
 * tests/unit/support/set_clock.h. */
#ifndef GKI_BASE_CLOCK_H
#define GKI_BASE_CLOCK_H
#include <stdint.h>
#include <time.h>

static inline uint64_t gki_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Tells the processor that this thread spins: 10 to 40 ns on today's. */
static inline void gki_pause(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}
#endif
