/* How a status, or memory, differs from the reference's. */
#ifndef COMPARE_H
#define COMPARE_H
#include "reference/reference.h"
#include <stdio.h>
#include <string.h>

#define SAME_(equal, type, is, wanted, ...) \
  do { \
    if (equal) break; \
    const size_t used_ = (size_t)snprintf(text, bytes, __VA_ARGS__); \
    if (used_ < bytes) snprintf(text + used_, bytes - used_, " is " type ", by the contract " type, is, wanted); \
    return true; \
  } while (0)
#define SAME(is, wanted, ...) \
  SAME_((long long)(is) == (long long)(wanted), "%lld", (long long)(is), (long long)(wanted), __VA_ARGS__)
#define SAME_NAME(is, wanted, ...) SAME_(strcmp(is, wanted) == 0, "%s", is, wanted, __VA_ARGS__)

/* The text says what differs first; false: nothing. */
static inline bool status_differs(const gk_status *is, const reference_status *wanted, char *text, size_t bytes) {
  static const char *const states[] = {"finished", "yielded", "cancelled"};
  SAME_NAME(states[is->state], states[wanted->state], "state");
  SAME(is->yielded, wanted->yielded, "yielded");
  SAME_NAME(is->yielded_name, wanted->yielded_name, "yielded_name");
  SAME(is->loop_count, wanted->loop_count, "loop_count");
  for (size_t k = 0; k < wanted->loop_count; ++k) {
    const gk_loop_status *loop = &is->loops[k];
    const reference_loop *other = &wanted->loops[k];
    SAME_NAME(loop->name, other->name, "name of loop %zu", k);
    SAME(loop->label, other->label, "label of loop %zu (%s)", k, loop->name);
    SAME(loop->passes, other->passes, "passes of loop %zu (%s)", k, loop->name);
    SAME(loop->hit_bound, other->hit_bound, "hit_bound of loop %zu (%s)", k, loop->name);
    if (loop->label) SAME(gk_passes(is, loop->label), other->passes, "gk_passes of loop %zu (%s)", k, loop->name);
  }
  SAME(is->limit ? is->limit - is->loops : -1, wanted->limit ? wanted->limit - wanted->loops : -1,
       "number of the loop at its limit");
  SAME(is->checkpoint_count, wanted->checkpoint_count, "checkpoint_count");
  for (size_t k = 0; k < wanted->checkpoint_count; ++k) {
    const gk_checkpoint_status *point = &is->checkpoints[k];
    SAME_NAME(point->name, wanted->checkpoints[k].name, "name of checkpoint %zu", k);
    SAME(point->label, wanted->checkpoints[k].label, "label of checkpoint %zu (%s)", k, point->name);
    SAME(point->ran, wanted->checkpoints[k].ran, "ran of checkpoint %zu (%s)", k, point->name);
  }
  return false;
}

/* The first int that differs and its number; false: none does. */
static inline bool ints_differ(const void *is, const void *wanted, size_t bytes, size_t *at, int32_t both[2]) {
  if (memcmp(is, wanted, bytes) == 0) return false;
  for (size_t from = 0;; from += sizeof *both) {
    const size_t width = bytes - from < sizeof *both ? bytes - from : sizeof *both;
    if (memcmp((const char *)is + from, (const char *)wanted + from, width) == 0) continue;
    both[0] = both[1] = 0;
    memcpy(&both[0], (const char *)is + from, width);
    memcpy(&both[1], (const char *)wanted + from, width);
    *at = from / sizeof *both;
    return true;
  }
}
#endif
