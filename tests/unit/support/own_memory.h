/* gk's own memory in a test: counted, not zeroed when it is given, and none on request. */
#ifndef OWN_MEMORY_H
#define OWN_MEMORY_H
#include "counting.h"
#include "test.h"

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
  assert_int_equal(atomic_load(&own_memory.live), 0);
  return gk_set_allocator(NULL) == GK_OK ? 0 : -1;
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
