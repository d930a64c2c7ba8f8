/* The time, to measure how long something takes. */
#ifndef GKI_CUDA_CLOCK_H
#define GKI_CUDA_CLOCK_H
#include <stdint.h>
#include <time.h>

static inline int64_t gki_cuda_now_ns(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return (int64_t)at.tv_sec * 1000000000 + at.tv_nsec;
}
#endif
