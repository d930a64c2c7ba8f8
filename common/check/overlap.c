#include "check/overlap.h"
#include "check/races.h"
#include <inttypes.h>
#include <stdio.h>

static gki_touch_kind strongest(uint32_t kinds) {
  return kinds >> GKI_WRITES & 1   ? GKI_WRITES
         : kinds >> GKI_SUMS & 1   ? GKI_SUMS
         : kinds >> GKI_ATOMIC & 1 ? GKI_ATOMIC
                                   : GKI_READS;
}

/* One task with both slots as arguments may only read both, or only change both by atomics. */
static bool clashes_in_task(const gki_touch *touches, uint32_t args, uint32_t slot_a, uint32_t slot_b,
                            gki_touch *both) {
  uint32_t kinds_a = 0, kinds_b = 0, reads = 1u << GKI_READS, atomics = 1u << GKI_ATOMIC;
  for (uint32_t k = 0; k < args; ++k) {
    if (touches[k].slot == slot_a) kinds_a |= 1u << touches[k].kind;
    if (touches[k].slot == slot_b) kinds_b |= 1u << touches[k].kind;
  }
  if (!kinds_a || !kinds_b || (kinds_a | kinds_b) == reads || (kinds_a | kinds_b) == atomics) return false;
  both[0] = (gki_touch){slot_a, strongest(kinds_a)};
  both[1] = (gki_touch){slot_b, strongest(kinds_b)};
  return true;
}

static void describe_task(const gk_plan *plan, uint32_t node, const gki_touch *both, char *message, size_t bytes) {
  const gk_node *at = &plan->nodes[node];
  uint32_t a = both[0].slot, b = both[1].slot;
  snprintf(message, bytes,
           "task %" PRIu32 " (%.100s) %s slot %" PRIu32 " (%.100s) and %s slot %" PRIu32 " (%.100s); bind memory to "
           "them that doesn't overlap",
           at->source, at->name, gki_touch_name(both[0].kind), a, plan->slots[a].name, gki_touch_name(both[1].kind), b,
           plan->slots[b].name);
}

static void describe_sections(const gk_plan *plan, uint32_t node, gki_touch_kind kind, const gki_clash *clash,
                          char *message, size_t bytes) {
  const gk_node *earlier = &plan->nodes[clash->task], *later = &plan->nodes[node];
  snprintf(message, bytes,
           "task %" PRIu32 " (%.100s) %s there, task %" PRIu32 " (%.100s) %s there, and they are in two sections of "
           "the PARALLEL at task %" PRIu32 "; bind memory to the slots that doesn't overlap",
           earlier->source, earlier->name, gki_touch_name(clash->kind), later->source, later->name,
           gki_touch_name(kind), plan->nodes[clash->parallel].source);
}

static void enter(gki_races *races, const gk_plan *plan, uint32_t node) {
  if (plan->nodes[node].op == GK_OP_PARALLEL) gki_races_enter(races, node);
  if (plan->nodes[node].op == GK_OP_SECTION) gki_races_section(races, node);
}

/* Whether a node touches memory that a node in another section touches, too; `clash` is the first of these. */
static bool races_with(gki_races *races, gki_touch_kind kind, uint32_t node, gki_clash *clash) {
  gki_clash clashes[GK_MAX_DEPTH];
  uint32_t count = 0;
  if (!gki_races_touch(races, (gki_touch){0, kind}, node, clashes, &count) || !count) return false;
  *clash = clashes[0];
  return true;
}

/* Nodes come in the list's order, so a node's parent tells which blocks have ended. The search for races treats the two
 * slots as one. The list has passed the check, so a clash can only be between the two. The search has at most one state
 * per open PARALLEL: there is room for them here. */
bool gki_check_overlap(const gk_plan *plan, uint32_t slot_a, uint32_t slot_b, char *message, size_t bytes) {
  gki_touch touches[GKI_MAX_TOUCHES], both[2];
  gki_race_state states[GK_MAX_DEPTH];
  gki_clash clash;
  uint32_t top = 0, args, block = 0;
  gki_races races = {.tops = &top, .states = states, .capacity = GK_MAX_DEPTH};
  for (uint32_t node = 1; node < plan->node_count; ++node) {
    for (; block != plan->nodes[node].parent; block = plan->nodes[block].parent)
      if (plan->nodes[block].op == GK_OP_PARALLEL) gki_races_leave(&races);
    uint32_t count = gki_touches_of_node(plan, node, &args, touches);
    if (clashes_in_task(touches, args, slot_a, slot_b, both)) {
      describe_task(plan, node, both, message, bytes);
      return true;
    }
    for (uint32_t k = 0; k < count && races.depth; ++k) {
      if (touches[k].slot != slot_a && touches[k].slot != slot_b) continue;
      if (!races_with(&races, touches[k].kind, node, &clash)) continue;
      describe_sections(plan, node, touches[k].kind, &clash, message, bytes);
      return true;
    }
    if (plan->nodes[node].end > node + 1) {
      enter(&races, plan, node);
      block = node;
    }
  }
  return false;
}
