/* An allocator for gk's own memory that counts what is given, doesn't zero it, and gives none on request; and a
 * fixture that uses it. */
#ifndef OWN_MEMORY_H
#define OWN_MEMORY_H
#include "gk_info.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct counting {
  atomic_int live, calls;
  atomic_int fail_at; /* of calls, from 1; 0: none */
} counting;

static inline bool counting_fails(counting *c) {
  return atomic_fetch_add(&c->calls, 1) + 1 == atomic_load(&c->fail_at);
}

static inline void *counting_alloc(void *user, size_t bytes) {
  counting *c = user;
  void *memory = counting_fails(c) ? NULL : malloc(bytes);
  if (memory) {
    memset(memory, 0x5A, bytes);
    atomic_fetch_add(&c->live, 1);
  }
  return memory;
}

static inline void *counting_resize(void *user, void *at, size_t bytes) {
  counting *c = user;
  void *memory = counting_fails(c) ? NULL : realloc(at, bytes);
  if (memory && !at) atomic_fetch_add(&c->live, 1);
  return memory;
}

static inline void counting_free(void *user, void *at) {
  counting *c = user;
  if (at) atomic_fetch_sub(&c->live, 1);
  free(at);
}

static inline gk_allocator counting_allocator(counting *c) {
  return (gk_allocator){c, counting_alloc, counting_resize, counting_free};
}

/* From here on the k-th call gives none; 0: each gives some. */
static inline void counting_fail_at(counting *c, int k) {
  atomic_store(&c->calls, 0);
  atomic_store(&c->fail_at, k);
}

/* Whether there was a k-th call. */
static inline bool counting_failed(counting *c) {
  return atomic_load(&c->fail_at) > 0 && atomic_load(&c->calls) >= atomic_load(&c->fail_at);
}

/* A fixture that counts all of it in own_memory; at the end nothing of it is left. */
static counting own_memory;

static inline int begin_counted(void **state) {
  (void)state;
  const gk_allocator allocator = counting_allocator(&own_memory);
  atomic_store(&own_memory.fail_at, 0);
  return gk_set_allocator(&allocator) == GK_OK ? 0 : -1;
}
static inline int end_counted(void **state) {
  (void)state;
  const int live = atomic_load(&own_memory.live);
  if (live) fprintf(stderr, "%d blocks of gk's own memory are left\n", live);
  return gk_set_allocator(NULL) == GK_OK && !live ? 0 : -1;
}
#define COUNTED(test) TEST_WITH(test, begin_counted, end_counted)

/* From here to own_memory_failed the k-th call gives none. */
static inline void fail_own_memory(int k) { counting_fail_at(&own_memory, k); }

/* Whether there was a k-th call. */
static inline bool own_memory_failed(void) {
  const bool failed = counting_failed(&own_memory);
  atomic_store(&own_memory.fail_at, 0);
  return failed;
}
#endif
