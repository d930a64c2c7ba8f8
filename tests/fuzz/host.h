/* What the host does with a graph that was made from arbitrary bytes: binds, resizes, launches, resumes, cancels, in
 * any order. Kernels touch only memory that is surely there, which is more than gk could promise a user's. */
#ifndef HOST_H
#define HOST_H
#include "runtime/graph.h"
#include "world.h"
#include <sched.h>
#include <time.h>

enum { ARENA = 4096, REGIONS = 128, MAX_OWNED = 1 << 16 };

/* Memory that kernels may touch; changed only while nothing runs. */
typedef struct region { const char *at; size_t bytes; } region;
static region regions[REGIONS];
static uint32_t region_count;
static _Alignas(64) char arena[ARENA];
static atomic_int fuel; /* a value that a kernel writes becomes 0 after its use, so that most loops end */
static atomic_int call_answer;

static inline size_t bytes_behind(const void *at) {
  for (uint32_t k = 0; k < region_count; ++k)
    if ((const char *)at >= regions[k].at && (const char *)at < regions[k].at + regions[k].bytes)
      return regions[k].bytes - (size_t)((const char *)at - regions[k].at);
  return 0;
}

/* An int per item, as far as there are any; 0 in the end, so that it may be a flag. */
static inline void write_items(int32_t *at, gk_range items) {
  const int left = atomic_fetch_sub(&fuel, 1);
  const size_t there = bytes_behind(at) / sizeof *at;
  REQUIRE(items.begin <= items.end && items.end <= 0x7fffffff);
  for (size_t k = items.begin; k < items.end && k < there; ++k) at[k] = left > 0 ? (left ^ (int)k) & 3 : 0;
}

void fuzz_first(const gk_value *args, gk_range items) { write_items(args[0].ptr, items); }
void fuzz_second(const gk_value *args, gk_range items) { write_items(args[1].ptr, items); }
void fuzz_fourth(const gk_value *args, gk_range items) { write_items(args[3].ptr, items); }
void fuzz_idle(const gk_value *args, gk_range items) {
  (void)args;
  REQUIRE(items.begin <= items.end && items.end <= 0x7fffffff);
}

void fuzz_atomic(const gk_value *args, gk_range items) {
  const bool there = bytes_behind(args[0].ptr) >= sizeof(int32_t);
  if (there) __atomic_fetch_add((int32_t *)args[0].ptr, (int32_t)((items.end - items.begin) & 3), __ATOMIC_RELAXED);
}

void fuzz_sum(const gk_value *args, gk_range items) {
  atomic_fetch_sub(&fuel, 1);
  *(int32_t *)args[1].ptr += (int32_t)((items.end - items.begin) & 3);
}

gk_result fuzz_call(const gk_value *args, void *native) {
  (void)args, (void)native;
  atomic_fetch_sub(&fuel, 1);
  const int answer = atomic_load(&call_answer);
  return answer > 0 && answer <= GK_ERROR_BUSY ? gk_fail((gk_result)answer, "the call says so") : GK_OK;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static inline size_t unit_of(const gk_slot_desc *slot) { return slot->element_bytes ? slot->element_bytes : 1; }

/* Whether so much can be given in no time, or surely can't be given at all. */
static inline bool is_affordable(size_t count, size_t unit) {
  return count <= MAX_OWNED / unit || count > (SIZE_MAX >> 16) / unit;
}

static inline void find_regions(const gk_graph *graph) {
  region_count = 0;
  regions[region_count++] = (region){arena, sizeof arena};
  for (uint32_t k = 1; k < graph->planned.plan.slot_count && region_count < REGIONS; ++k)
    if (graph->slots[k].owned)
      regions[region_count++] = (region){graph->slots[k].owned,
                                         graph->slots[k].owned_count * unit_of(&graph->planned.plan.slots[k])};
}

/* Slots that only kernels and calls use may be bound to the arena: other uses of it would be the user's error. */
static inline bool only_kernels_use(const gk_plan *plan, uint32_t slot) {
  for (uint32_t k = 0; k < plan->node_count; ++k) {
    const gk_node *n = &plan->nodes[k];
    bool moves = n->op == GK_OP_COPY || n->op == GK_OP_FILL;
    if (n->flag == slot || n->items[0] == slot || n->items[1] == slot || n->items[2] == slot) return false;
    for (uint32_t a = 0; a < n->arg_count && moves; ++a)
      if (plan->args[n->args + a] == slot) return false;
  }
  return true;
}

static inline bool is_cancellable(const gk_graph *graph) { return graph->planned.plan.bits & GK_CANCELLABLE; }

static inline double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Loops that don't end by themselves are cancelled: those graphs were made cancellable. */
static inline gk_result wait_for_end(gk_graph *graph, const gk_status **status) {
  const double begun = seconds();
  gk_result result = gk_poll(graph, status);
  for (int turn = 0; result == GK_NOT_READY; ++turn) {
    if (turn > 20) sched_yield();
    if (is_cancellable(graph) && seconds() - begun > 0.002) {
      REQUIRE(gk_cancel(graph) == GK_OK);
      return gk_wait(graph, status);
    }
    result = gk_poll(graph, status);
  }
  return result;
}

/* Launches that were not waited for go on beside what follows, unless they may never end. */
static inline gk_result resize(gk_graph *graph, gk_slot slot, size_t count) {
  const gk_plan *plan = &graph->planned.plan;
  if (slot > 0 && (uint32_t)slot < plan->slot_count && !is_affordable(count, unit_of(&plan->slots[slot]))) return GK_OK;
  if (plan->loop_count) wait_for_end(graph, &(const gk_status *){NULL});
  gk_result result = gk_resize(graph, slot, count);
  wait_for_end(graph, &(const gk_status *){NULL});
  find_regions(graph);
  return result;
}

/* What isn't bound yet, so that most launches are possible. */
static inline void bind_rest(gk_graph *graph) {
  const gk_plan *plan = &graph->planned.plan;
  const int64_t bits[32] = {0};
  for (uint32_t k = 1; k < plan->slot_count; ++k) {
    if (graph->slots[k].bound) continue;
    const gk_slot slot = (gk_slot)k;
    switch (plan->slots[k].type) {
    case GK_PTR: resize(graph, slot, 40); break;
    case GK_HOST_PTR: gk_bind(graph, slot, arena); break;
    case GK_F32: case GK_F64: gk_bind_float(graph, slot, 0.5); break;
    case GK_BYTES:
      if (plan->slots[k].element_bytes <= sizeof bits) gk_bind_bytes(graph, slot, bits, plan->slots[k].element_bytes);
      break;
    case GK_NO_TYPE: break;
    default: gk_bind_int(graph, slot, 2);
    }
  }
}

/* ---- launches ---------------------------------------------------------------------------------------------------- */

static inline void check_status(const gk_graph *graph, const gk_status *status) {
  const gk_plan *plan = &graph->planned.plan;
  REQUIRE(status->loop_count == plan->loop_count && status->checkpoint_count == plan->checkpoint_count);
  REQUIRE((status->state == GK_YIELDED) == (status->yielded != 0));
  REQUIRE(status->state != GK_CANCELLED || is_cancellable(graph));
  REQUIRE(status->yielded_name && (plan->can_yield || !status->yielded));
  for (uint32_t k = 0; k < status->loop_count; ++k) REQUIRE(status->loops[k].name);
  REQUIRE(gk_passes(status, 0) >= (status->limit ? 1 : 0));
}

static inline int32_t label_of(const gk_graph *graph, uint8_t which, uint8_t how) {
  const gk_plan *plan = &graph->planned.plan;
  if (how & 128) return (int32_t)number_of(which);
  return plan->checkpoint_count ? plan->nodes[plan->checkpoints[which % plan->checkpoint_count]].label : 0;
}

static inline void launch(gk_graph *graph, int32_t label, int32_t *yielded) {
  const gk_status *status = NULL;
  *yielded = 0;
  atomic_store(&fuel, 40);
  if (gk_launch(graph, label) != GK_OK) {
    REQUIRE(*gk_error());
    return;
  }
  if (wait_for_end(graph, &status) != GK_OK) {
    REQUIRE(*gk_error());
    return;
  }
  check_status(graph, status);
  *yielded = status->yielded;
}

/* Writes a flag, or another int in memory that the graph owns. */
static inline void poke(gk_graph *graph, record r) {
  const gk_plan *plan = &graph->planned.plan;
  const gk_slot slot = (gk_slot)(1 + r.a % (plan->slot_count ? plan->slot_count : 1));
  wait_for_end(graph, &(const gk_status *){NULL});
  char *memory = gk_bound(graph, slot);
  size_t at = 4u * (r.b % 16u);
  if (memory && bytes_behind(memory) >= at + 4) memcpy(memory + at, &(int32_t){(int8_t)r.c}, 4);
}

static inline void act(gk_graph *graph, record r) {
  static const char *const formats[] = {"text", "dot", "json", NULL, "xml"};
  const gk_plan *plan = &graph->planned.plan;
  const gk_slot slot = r.a == 255 ? -1 : (gk_slot)(r.a % (plan->slot_count + 1));
  const uint32_t value = number_of(r.b) ^ (uint32_t)r.c << 8;
  const gk_status *status = NULL;
  int32_t yielded = 0;
  switch (r.kind & 15) {
  case 0: launch(graph, 0, &yielded); break;
  case 1: launch(graph, label_of(graph, r.a, r.b), &yielded); break;
  case 2:
    for (int k = 0; k < 6 && (k == 0 || yielded); ++k) launch(graph, yielded, &yielded);
    break;
  case 3:
    if (slot <= 0 || only_kernels_use(plan, (uint32_t)slot)) gk_bind(graph, slot, r.b == 255 ? NULL : arena + r.b * 8);
    break;
  case 4: resize(graph, slot, value); break;
  case 5: gk_bind_int(graph, slot, r.c & 1 ? (int64_t)number_of(r.b) : -(int64_t)number_of(r.b)); break;
  case 6: gk_bind_float(graph, slot, (double)value); break;
  case 7: {
    static const char raw[8192];
    if (r.c & 1) gk_bind_bytes(graph, slot, raw, number_of(r.b) % sizeof raw);
    else if (slot > 0 && (uint32_t)slot < plan->slot_count && plan->slots[slot].element_bytes <= sizeof raw)
      gk_bind_bytes(graph, slot, raw, plan->slots[slot].element_bytes);
    break;
  }
  case 8: poke(graph, r); break;
  case 9: REQUIRE(is_cancellable(graph) == (gk_cancel(graph) == GK_OK)); break;
  case 10: atomic_store(&fuel, 40); gk_launch(graph, label_of(graph, r.a, r.b)); break; /* not waited for */
  case 11: wait_for_end(graph, &status); break;
  case 12: gk_poll(graph, &status); break;
  case 13:
    if (plan->loop_count) wait_for_end(graph, &status);
    gk_free_text(gk_dump(NULL, graph, formats[r.a % GK_COUNT(formats)]));
    break;
  case 14:
    gk_find_slot(graph, name_of(r.a));
    gk_bound(graph, slot);
    break;
  default: atomic_store(&call_answer, r.a & 15); break;
  }
}

/* All that the input says, or, if it says nothing, a launch that is resumed as often as it yields. */
static inline void host_run(gk_graph *graph, const world *w) {
  memset(arena, 0, sizeof arena);
  atomic_store(&call_answer, 0);
  find_regions(graph);
  for (uint32_t k = 0; k < w->action_count; ++k) act(graph, w->actions[k]);
  wait_for_end(graph, &(const gk_status *){NULL});
  atomic_store(&call_answer, 0);
  bind_rest(graph);
  act(graph, (record){.kind = 0xc2});
}
#endif
