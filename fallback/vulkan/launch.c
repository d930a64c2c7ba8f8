#include "vulkan/graph.h"
#include "plan/walk.inc"
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { BATCH = 64, NAME_BYTES = 300, TRANSFER_BYTES = 16 /* that an item moves */, UNKNOWN_GROUPS = 64 };

/* ---- before a launch --------------------------------------------------------------------------------------------- */

/* Workgroups take further items in steps. Those of a count that only the device knows may be too few or too many. */
static uint32_t groups_of(const gki_vulkan_graph *g, uint32_t node) {
  const unsigned char *record = g->slots.image + g->slots.records[node];
  uint32_t count, element;
  memcpy(&count, record, sizeof count); /* the first field of both kinds of records */
  if (count >= GKI_UNCOUNTED) return count == GKI_UNCOUNTED ? 1 : UNKNOWN_GROUPS;
  uint64_t items = count;
  if (g->plan->nodes[node].op != GK_OP_KERNEL) {
    memcpy(&element, record + offsetof(gki_transfer, element), sizeof element);
    items = (items * element + TRANSFER_BYTES - 1) / TRANSFER_BYTES;
  }
  const uint64_t groups = (items + GKI_VULKAN_GROUP - 1) / GKI_VULKAN_GROUP;
  return groups < GKI_VULKAN_MOST_GROUPS ? (uint32_t)groups : GKI_VULKAN_MOST_GROUPS;
}

gk_result gki_vulkan_launch(void *graph, const gk_launch_args *launch) {
  gki_vulkan_graph *g = graph;
  size_t begin, end;
  g->launch = *launch;
  g->head->control = (gki_task_control){.number = g->points ? GKW_CLOSED : launch->launch,
                                        .failures = g->head->control.failures, .posts_as = launch->launch, .arms = 1};
  (void)gki_slot_table_changed(&g->slots, launch, 0, &begin, &end);
  for (uint32_t k = 0; k < g->plan->node_count && begin < end; ++k)
    if (g->slots.records[k]) g->grids[k] = (VkDispatchIndirectCommand){groups_of(g, k), 1, 1};
  if (!g->points) return GK_OK;
  g->under_way = false;
  memcpy(g->state, launch->state, g->points->state_count * sizeof *g->state);
  __atomic_store_n(&g->head->cancelled, 0, __ATOMIC_SEQ_CST);
  if (__atomic_load_n(launch->cancel, __ATOMIC_SEQ_CST)) (void)gki_vulkan_cancel(g);
  return GK_OK;
}

/* Common has written the launch's own word. So a launch that begins now sees that word or clears this one before. */
gk_result gki_vulkan_cancel(void *graph) {
  gki_vulkan_graph *g = graph;
  atomic_thread_fence(memory_order_seq_cst);
  __atomic_store_n(&g->head->cancelled, 1, __ATOMIC_SEQ_CST);
  return GK_OK;
}

/* ---- while it runs ----------------------------------------------------------------------------------------------- */

static gk_result nowhere(const gki_vulkan_graph *g, const gk_node *node, uint32_t slot) {
  return gk_fail(GK_ERROR_INVALID, "task %u (%s): slot %u (%s) holds %p, which is no memory of this device; bind "
                 "memory of gk_alloc", (unsigned)node->source, node->name, (unsigned)slot, g->plan->slots[slot].name,
                 g->launch.values[slot].ptr);
}

/* The first bad count that a task has posted, if any. */
static gk_result check_counts(const gki_vulkan_graph *g) {
  const uint64_t number = g->launch.launch;
  const gki_bad_count *post = &g->head->failures[(number - 1) % GKI_LAUNCH_RING];
  if (post->number != number) return GK_OK;
  if (post->node >= g->plan->node_count)
    return gk_fail(GK_ERROR_DEVICE, "graph %s: a launch posted a bad count of a task that can't be (%u), so something "
                   "wrote over gk's memory on the device: look for a kernel that writes beyond its own, and close the "
                   "device", g->plan->name, (unsigned)post->node);
  const gk_node *node = &g->plan->nodes[post->node];
  int64_t extent[3];
  for (int axis = 0; axis < 3; ++axis) {
    const uint32_t slot = node->items[axis];
    extent[axis] = !slot                                 ? 1
                   : g->plan->slots[slot].type == GK_PTR ? post->extent[axis]
                                                         : gki_slot_table_number(&g->slots, slot, g->launch.values);
  }
  uint64_t items;
  return gk_check_count(g->plan, post->node, &g->launch, extent, &items);
}

static gk_result wait(const gki_vulkan_graph *g) {
  char what[NAME_BYTES];
  snprintf(what, sizeof what, "waiting for graph %.200s", g->plan->name);
  const gk_result result = gki_vulkan_wait(g->device, what);
  return result == GK_OK ? check_counts(g) : result;
}

/* The function gets addresses that the host can use. */
static gk_result call(const gki_vulkan_graph *g, const gk_node *node) {
  gk_value args[GK_MAX_ARGS];
  gk_result result = wait(g);
  for (uint32_t k = 0; k < node->arg_count && result == GK_OK; ++k) {
    const uint32_t slot = g->plan->args[node->args + k];
    args[k] = g->launch.values[slot];
    if (g->plan->slots[slot].type != GK_PTR) continue;
    args[k].ptr = gki_vulkan_here(g->device, args[k].ptr, 1);
    if (!args[k].ptr) result = nowhere(g, node, slot);
  }
  if (result != GK_OK) return result;
  result = node->call(args, NULL);
  if (result == GK_OK) return GK_OK;
  return gk_fail(result, "task %u (%s): the call answered %s", (unsigned)node->source, node->name,
                 gk_result_name(result));
}

/* Commands on their way to the queue. */
typedef struct batch { VkCommandBuffer commands[BATCH]; uint32_t count, node; } batch;

static gk_result flush(const gki_vulkan_graph *g, batch *b) {
  if (b->count == 0) return GK_OK;
  const gk_node *node = &g->plan->nodes[b->node];
  char what[NAME_BYTES];
  snprintf(what, sizeof what, "vkQueueSubmit of task %u (%.200s) and behind it", (unsigned)node->source, node->name);
  const uint32_t count = b->count;
  b->count = 0;
  return gki_vulkan_submit(g->device, b->commands, count, what);
}

static gk_result add(const gki_vulkan_graph *g, batch *b, const gki_vulkan_part *part) {
  gk_result result = GK_OK;
  if (!part->commands || b->count == BATCH) result = flush(g, b);
  if (result != GK_OK) return result;
  if (!part->commands) return call(g, &g->plan->nodes[part->node]);
  if (b->count == 0) b->node = part->node < g->plan->node_count ? part->node : 0;
  b->commands[b->count++] = part->commands;
  return GK_OK;
}

/* run: run_count for the control shader alone */
static gk_result add_run(const gki_vulkan_graph *g, batch *b, uint32_t run) {
  gk_result result = GK_OK;
  for (uint32_t k = g->parts_at[run]; k < g->parts_at[run + 1] && result == GK_OK; ++k)
    result = add(g, b, &g->parts[k]);
  return result;
}

gk_result gki_vulkan_submit_run(void *graph, uint32_t run) {
  batch b = {.count = 0};
  const gk_result result = add_run(graph, &b, run);
  return result == GK_OK ? flush(graph, &b) : result;
}

/* ---- ahead ------------------------------------------------------------------------------------------------------- */

/* GK_AHEAD_BESIDE is ignored: runs go one after the other. */
gk_result gki_vulkan_ahead(void *graph, const uint32_t *runs, uint32_t count) {
  gki_vulkan_graph *g = graph;
  if (g->under_way) return GK_NOT_READY;
  batch b = {.count = 0};
  gk_result result = GK_OK;
  for (uint32_t k = 0; k < count && result == GK_OK; ++k)
    result = add_run(g, &b, runs[k] == GK_NONE ? g->plan->run_count : runs[k] & ~GK_AHEAD_BESIDE);
  if (result == GK_OK) result = flush(g, &b);
  g->under_way = result == GK_OK;
  return result;
}

/* The host reads the state itself, since no other tape is under way. */
gk_result gki_vulkan_state(void *graph, const uint32_t **state) {
  gki_vulkan_graph *g = graph;
  g->under_way = false;
  if (state) *state = g->state;
  return wait(g);
}

/* ---- flags ------------------------------------------------------------------------------------------------------- */

gk_result gki_vulkan_read_flag(void *graph, uint32_t at, int32_t *flag) {
  const gki_vulkan_graph *g = graph;
  const gk_node *node = &g->plan->nodes[at];
  const gk_result result = wait(g);
  if (result != GK_OK || at == 0) return result;
  const char *from = g->launch.values[node->flag].ptr;
  const void *here = gki_vulkan_here(g->device, from + node->offset, sizeof *flag);
  if (!here) return nowhere(g, node, node->flag);
  memcpy(flag, here, sizeof *flag);
  return GK_OK;
}
