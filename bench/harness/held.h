/* An allocator hook that counts the bytes of host memory that gk holds, and the most so far. A driver's memory isn't
 * included. */
#ifndef BENCH_HELD_H
#define BENCH_HELD_H
#include "gk_info.h"
#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>

static atomic_size_t bench_held, bench_most_held; /* bytes */

static inline void bench_count(size_t more) {
  const size_t now = atomic_fetch_add(&bench_held, more) + more;
  if (now > bench_most_held) bench_most_held = now;
}

static void *bench_count_alloc(void *user, size_t bytes) {
  void *at = malloc(bytes);
  (void)user;
  bench_count(malloc_usable_size(at));
  return at;
}

static void *bench_count_resize(void *user, void *at, size_t bytes) {
  const size_t before = malloc_usable_size(at);
  void *moved = realloc(at, bytes);
  (void)user;
  if (moved) bench_count(malloc_usable_size(moved) - before);
  return moved;
}

static void bench_count_free(void *user, void *at) {
  (void)user;
  bench_held -= malloc_usable_size(at);
  free(at);
}

static const gk_allocator bench_counting = {NULL, bench_count_alloc, bench_count_resize, bench_count_free};
#endif
