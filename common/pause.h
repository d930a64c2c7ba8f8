/* What a loop that waits for another thread does in between; backends may include it, too. */
#ifndef GKI_PAUSE_H
#define GKI_PAUSE_H

/* Tells the processor that this thread spins: 10 to 40 ns on today's. */
static inline void gki_pause(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}
#endif
