/* What the tests' backends watch: broken rules of gk_backend.h, memory that isn't given back, calls of one graph that
 * run at once. Each file that includes this has a watch of its own. */
#ifndef WATCH_H
#define WATCH_H
#include "tasks.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct { pthread_mutex_t lock; unsigned leaks; char broken[200]; } watch = {.lock = PTHREAD_MUTEX_INITIALIZER};
#define HOLDING(mutex, ...) (pthread_mutex_lock(mutex), (__VA_ARGS__), pthread_mutex_unlock(mutex))
#define LOCKED(...) HOLDING(&watch.lock, __VA_ARGS__)

static inline void broken_if(bool is, const char *rule) {
  LOCKED(is && !watch.broken[0] && snprintf(watch.broken, sizeof watch.broken, "%s", rule));
}
static inline void leak(int change) { LOCKED(watch.leaks += (unsigned)change); }
static inline unsigned leaks(void) {
  unsigned count;
  LOCKED(count = watch.leaks);
  return count;
}

static inline void broken_unless_zeroed(const void *state, size_t bytes, const char *rule) {
  const unsigned char *at = state;
  while (bytes > 0 && at[bytes - 1] == 0) --bytes;
  broken_if(bytes > 0, rule);
}

static inline void broken_by_args(const gk_plan *plan, const gk_launch_args *args, uint64_t launched) {
  const char *rule = device_bad_args(plan, args, launched);
  broken_if(rule, rule ? rule : "");
}

/* What alloc is asked for. */
static inline void broken_by_alloc(size_t bytes, gk_memory kind) {
  broken_if(bytes == 0, "alloc: 0 bytes");
  broken_if(kind != GK_DEVICE_MEMORY && kind != GK_HOST_MEMORY, "alloc: no such kind");
}

static inline void enter(atomic_flag *in_call) {
  broken_if(atomic_flag_test_and_set(in_call), "two entries of a graph run at once");
}
static inline gk_result leave(atomic_flag *in_call, gk_result result) {
  atomic_flag_clear(in_call);
  return result;
}

/* ---- what a launch has recorded ---------------------------------------------------------------------------------- */

static inline bool record_open(gk_launch_result *record, const gk_plan *plan) {
  record->passes = gk_host_alloc(plan->loop_count * sizeof *record->passes);
  record->hit_bound = gk_host_alloc(plan->loop_count);
  record->ran = gk_host_alloc(plan->checkpoint_count);
  return record->passes && record->hit_bound && record->ran;
}
static inline void record_close(gk_launch_result *record) {
  gk_host_free(record->passes);
  gk_host_free(record->hit_bound);
  gk_host_free(record->ran);
}
static inline void record_clear(gk_launch_result *record, const gk_plan *plan) {
  record->state = GK_FINISHED;
  record->yielded = record->limit = 0;
  for (uint32_t k = 0; k < plan->loop_count; ++k) record->passes[k] = record->hit_bound[k] = 0;
  for (uint32_t k = 0; k < plan->checkpoint_count; ++k) record->ran[k] = 0;
}

static inline void record_copy(gk_launch_result *to, const gk_launch_result *from, const gk_plan *plan) {
  to->state = from->state;
  to->yielded = from->yielded;
  to->limit = from->limit;
  memcpy(to->passes, from->passes, plan->loop_count * sizeof *to->passes);
  memcpy(to->hit_bound, from->hit_bound, plan->loop_count);
  memcpy(to->ran, from->ran, plan->checkpoint_count);
}

static inline char *dump_runs(const gk_plan *plan, const char *format) {
  char *text = NULL;
  if (strcmp(format, "dot") == 0) return NULL;
  const char *how = strcmp(format, "json") == 0 ? "{\"runs\": %u}" : "%u runs\n";
  return asprintf(&text, how, (unsigned)plan->run_count) < 0 ? NULL : text;
}
#endif
