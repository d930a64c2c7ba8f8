/* Checks counts, with the same messages for every backend. */
#include "base/error.h"
#include "plan/node.h"
#include <stdio.h>

const char *gki_slot_title(const gk_plan *plan, uint32_t slot, char text[GKI_SLOT_TITLE_BYTES]) {
  const gk_slot_desc *desc = &plan->slots[slot];
  if (desc->slot < 0) snprintf(text, GKI_SLOT_TITLE_BYTES, "%s", desc->name);
  else snprintf(text, GKI_SLOT_TITLE_BYTES, "slot %u (%.100s)", (unsigned)slot, desc->name);
  return text;
}

/* "65536 by slot 3 (N) x 65536 by GK_ITEMS(65536)" */
static void format_extents(const gk_plan *plan, const gk_node *node, const int64_t extent[3], char *text,
                           size_t bytes) {
  size_t used = 0;
  text[0] = 0;
  for (int axis = 0; axis < 3 && used < bytes; ++axis) {
    const uint32_t slot = node->items[axis];
    char title[GKI_SLOT_TITLE_BYTES];
    if (!slot) continue;
    used += (size_t)snprintf(text + used, bytes - used, "%s%lld by %s", used ? " x " : "", (long long)extent[axis],
                             gki_slot_title(plan, slot, title));
  }
}

static gk_result refuse_many(const gk_plan *plan, const gk_node *node, const int64_t extent[3]) {
  char extents[1024];
  format_extents(plan, node, extent, extents, sizeof extents);
  return gk_fail(GK_ERROR_INVALID, "task %u (%s): more than 2147483647 items: %s; split the task, or correct the count",
                 (unsigned)node->source, node->name, extents);
}

/* Whether that many bytes, from the argument's offset on, end beyond the known memory of its slot. */
static bool is_beyond_capacity(const gk_plan *plan, const gk_node *node, uint32_t arg, const gk_launch_args *launch,
                               uint64_t bytes) {
  const size_t capacity = launch->capacity ? launch->capacity[plan->args[node->args + arg]] : SIZE_MAX;
  const uint32_t offset = arg ? node->from_offset : node->offset;
  return capacity != SIZE_MAX && (offset > capacity || bytes > capacity - offset);
}

static gk_result refuse_long(const gk_plan *plan, const gk_node *node, uint32_t arg, const gk_launch_args *launch,
                             int64_t count, uint32_t unit) {
  const uint32_t slot = plan->args[node->args + arg];
  char by[GKI_SLOT_TITLE_BYTES];
  return gk_fail(GK_ERROR_INVALID,
                 "task %u (%s): %lld element%s of %u bytes, by %s, from byte %u of slot %u (%s) on, which "
                 "has %zu bytes; correct the count, or give that slot more memory",
                 (unsigned)node->source, node->name, (long long)count, count == 1 ? "" : "s", (unsigned)unit,
                 gki_slot_title(plan, node->items[0], by), (unsigned)(arg ? node->from_offset : node->offset),
                 (unsigned)slot, plan->slots[slot].name, launch->capacity[slot]);
}

/* A COPY or FILL with a count, which is checked against the memory known behind its arguments. */
static bool is_limited(const gk_node *node) { return node->op != GK_OP_KERNEL && node->items[0]; }

static uint32_t unit_of(const gk_plan *plan, const gk_node *node) {
  const uint32_t own = plan->slots[plan->args[node->args]].element_bytes;
  return own ? own : 1;
}

/* The first argument of a COPY or FILL with a count whose memory is known to be too short; GK_NONE: none. */
static uint32_t find_short_memory(const gk_plan *plan, const gk_node *node, const gk_launch_args *launch,
                                  uint64_t count) {
  for (uint32_t arg = 0; is_limited(node) && arg < node->arg_count; ++arg)
    if (is_beyond_capacity(plan, node, arg, launch, count * unit_of(plan, node))) return arg;
  return GK_NONE;
}

bool gki_count_items(const gk_plan *plan, uint32_t at, const gk_launch_args *launch, const int64_t extent[3],
                     uint64_t *items) {
  const gk_node *node = &plan->nodes[at];
  uint64_t all = 1;
  *items = 0;
  for (int axis = 0; axis < 3; ++axis)
    if (extent[axis] <= 0) return true;
  for (int axis = 0; axis < 3; ++axis)
    if (extent[axis] > INT32_MAX || (all *= (uint64_t)extent[axis]) > INT32_MAX) return false;
  if (find_short_memory(plan, node, launch, all) != GK_NONE) return false;
  *items = all;
  return true;
}

gk_result gk_check_count(const gk_plan *plan, uint32_t at, const gk_launch_args *launch, const int64_t extent[3],
                         uint64_t *items) {
  if (gki_count_items(plan, at, launch, extent, items)) return GK_OK;
  const gk_node *node = &plan->nodes[at];
  const uint32_t arg = extent[0] > INT32_MAX ? GK_NONE : find_short_memory(plan, node, launch, (uint64_t)extent[0]);
  if (arg == GK_NONE) return refuse_many(plan, node, extent);
  return refuse_long(plan, node, arg, launch, extent[0], unit_of(plan, node));
}
