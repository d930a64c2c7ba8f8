/* A model of memory for two threads, in one: a thread's stores stay with it until a fence, an exchange or the kernel
 * passes them on, as C and processors allow, and each of two functions is run at every step of the other. So an order
 * that is missing shows each time, where a real machine takes luck. What isn't atomic has a moment in which it is
 * written (model_now), and the other thread knows it (model_knows) if what it read in between was released and
 * acquired. How to use it: include this, then what the file to be tested includes, then memory_model_atomics.h, then
 * that file itself. */
#ifndef MEMORY_MODEL_H
#define MEMORY_MODEL_H
#include <stdatomic.h>
#include "unit/support/test.h"

enum { MODEL_THREADS = 2, MODEL_STORES = 64, MODEL_PLACES = 64 };

typedef struct model_clock { uint64_t of[MODEL_THREADS]; } model_clock; /* up to which moment of each one knows all */
typedef struct model_stored {
  void *at;
  uint64_t value;
  size_t bytes;
  bool in_order;
  model_clock released;
} model_stored;
typedef struct model_place { const void *at; model_clock released; } model_place;

static struct model {
  uint32_t thread;              /* that runs: 0, and within it, once, 1 */
  model_stored stores[MODEL_THREADS][MODEL_STORES]; /* that no other thread sees yet, in their order */
  uint32_t count[MODEL_THREADS];
  model_clock known[MODEL_THREADS], fenced[MODEL_THREADS], read[MODEL_THREADS]; /* fenced: by its last release fence,
                                 read: by loads, and known from the next acquire fence on */
  model_place places[MODEL_PLACES]; /* what a thread that acquires there knows */
  uint32_t place_count;
  uint32_t step, at;            /* of thread 0, and the one before which thread 1 runs */
  bool ran, sleeps[MODEL_THREADS], woken[MODEL_THREADS];
  void *bed[MODEL_THREADS];     /* the word that a thread sleeps at */
  void (*other)(void), (*last)(void); /* what thread 1 does then, and, if there is more, once thread 0 sleeps */
  jmp_buf out;                  /* of thread 1, when it sleeps */
} model;

static bool model_is_eager;     /* all see a thread's stores at once instead, and thread 1 may run behind each */

static model_clock *model_released(const void *at) {
  uint32_t k = 0;
  while (k < model.place_count && model.places[k].at != at) ++k;
  assert_true(k < MODEL_PLACES);
  if (k == model.place_count) model.places[model.place_count++] = (model_place){.at = at};
  return &model.places[k].released;
}

static void model_learn(model_clock *to, const model_clock *from) {
  for (uint32_t k = 0; k < MODEL_THREADS; ++k)
    if (from->of[k] > to->of[k]) to->of[k] = from->of[k];
}

static inline bool model_acquires(memory_order order) {
  return order != memory_order_relaxed && order != memory_order_release;
}
static inline bool model_releases(memory_order order) {
  return order == memory_order_release || order == memory_order_acq_rel || order == memory_order_seq_cst;
}
static inline const model_clock *model_gives(memory_order order) {
  return model_releases(order) ? &model.known[model.thread] : &model.fenced[model.thread];
}
static inline void model_takes(memory_order order, const model_clock *released) {
  model_learn(model_acquires(order) ? &model.known[model.thread] : &model.read[model.thread], released);
}

/* What this thread writes now has this moment. */
static inline uint64_t model_now(void) { return ++model.known[model.thread].of[model.thread]; }
/* Whether this thread may read what that one wrote then. */
static inline bool model_knows(uint32_t thread, uint64_t moment) {
  return model.known[model.thread].of[thread] >= moment;
}

/* The first `count` of them. */
static void model_pass(uint32_t thread, uint32_t count) {
  model_stored *stores = model.stores[thread];
  for (uint32_t k = 0; k < count; ++k) {
    memcpy(stores[k].at, &stores[k].value, stores[k].bytes); /* little endian */
    *model_released(stores[k].at) = stores[k].released;
  }
  model.count[thread] -= count;
  memmove(stores, stores + count, model.count[thread] * sizeof *stores);
}

static void model_pass_all(uint32_t thread) { model_pass(thread, model.count[thread]); }

static void model_run_other(void (*other)(void)) {
  model.ran = true;
  model.thread = 1;
  if (other && setjmp(model.out) == 0) other();
  model.thread = 0;
}

/* Before each access. */
static void model_step(void) {
  if (model.thread == 0 && model.step++ == model.at && !model.ran) model_run_other(model.other);
}

static inline void model_store(void *at, uint64_t value, size_t bytes, memory_order order) {
  model_step();
  const uint32_t me = model.thread;
  assert_true(model.count[me] < MODEL_STORES);
  model.stores[me][model.count[me]++] =
    (model_stored){at, value, bytes, order == memory_order_seq_cst, *model_gives(order)};
  if (!model_is_eager) return;
  model_pass_all(me);
  model_step();
}

/* One that is sequentially consistent comes behind such stores, but no others. */
static inline uint64_t model_load(const void *at, size_t bytes, memory_order order) {
  model_step();
  const uint32_t me = model.thread;
  uint32_t first = order == memory_order_seq_cst ? model.count[me] : 0;
  while (first && !model.stores[me][first - 1].in_order) --first;
  model_pass(me, first);
  uint64_t value = 0;
  memcpy(&value, at, bytes);
  const model_clock *released = model_released(at);
  for (uint32_t k = 0; k < model.count[me]; ++k)
    if (model.stores[me][k].at == at) value = model.stores[me][k].value, released = &model.stores[me][k].released;
  model_takes(order, released);
  return value;
}

static inline void model_fence(memory_order order) {
  model_step();
  const uint32_t me = model.thread;
  if (model_acquires(order)) model_learn(&model.known[me], &model.read[me]);
  if (model_releases(order)) model.fenced[me] = model.known[me];
  if (order == memory_order_seq_cst) model_pass_all(me);
}

/* Reads and writes at once: what was released there before is so still. */
static inline void model_touch(const void *at, memory_order order) {
  model_clock *released = model_released(at);
  model_takes(order, released);
  model_learn(released, model_gives(order));
}

static inline uint64_t model_add(void *at, uint64_t value, size_t bytes, memory_order order) {
  model_step();
  model_pass_all(model.thread);
  uint64_t before = 0;
  memcpy(&before, at, bytes);
  const uint64_t after = before + value;
  memcpy(at, &after, bytes);
  model_touch(at, order);
  model_step(); /* what comes next needn't be an access that is seen here */
  return before;
}

static inline bool model_exchange(void *at, void *expected, uint64_t value, size_t bytes, memory_order order,
                                  memory_order failed) {
  model_step();
  model_pass_all(model.thread);
  const bool same = memcmp(at, expected, bytes) == 0;
  memcpy(same ? at : expected, same ? (void *)&value : at, bytes);
  if (same) model_touch(at, order);
  else model_takes(failed, model_released(at));
  return same;
}

/* Thread 1 is run before step `at` of thread 0, from 0 on, or behind its last; true: there is no such step any more.
 * last: what thread 1 does if thread 0 sleeps. */
static bool model_run(uint32_t at, void (*first)(void), void (*other)(void), void (*last)(void)) {
  memset(&model, 0, sizeof model);
  model.at = at;
  model.other = other;
  model.last = last;
  first();
  const bool all = model.step <= at;
  if (!model.ran) model_run_other(other);
  model_pass_all(0);
  model_pass_all(1);
  return all;
}
#endif
