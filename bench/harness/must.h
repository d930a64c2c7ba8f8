/* For calls of gk that can't fail here: an error ends the program with gk's message. */
#ifndef BENCH_MUST_H
#define BENCH_MUST_H
#include "bench/harness/harness.h"
#include "gk.h"

static inline void bench_must(gk_result result) {
  if (result != GK_OK) bench_fail(gk_error());
}
#endif
