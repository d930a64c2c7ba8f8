#include "base/sort.h"
#include "lower/cancel.h"
#include "plan/node.h"
#include "plan/walk.inc"
#include "vulkan/graph.h"
#include <stdio.h>
#include <string.h>

enum { NAME_BYTES = 300, INVOCATIONS = 4096 /* for a count that only the device knows, and at least one for each: */,
       PASS_BYTES = 32768 /* of the block that a COPY or FILL writes, since Mesa 22.3's loops end (README.md) */ };

/* ---- before a launch --------------------------------------------------------------------------------------------- */

/* Workgroups take further items in steps. Those of a count that only the device knows may be too few or too many. */
static uint32_t groups_of(const gki_vulkan_graph *g, uint32_t node) {
  const gk_node *task = &g->plan->nodes[node];
  const bool is_kernel = task->op == GK_OP_KERNEL;
  const uint32_t group = is_kernel ? g->device->group : GKI_VULKAN_GROUP;
  uint64_t items = gki_slot_table_items(&g->slots, node);
  if (items == GKI_UNKNOWN_ITEMS) {
    const void *to = is_kernel ? NULL : g->launch.values[g->plan->args[task->args]].ptr;
    const gki_vulkan_block *block = gki_vulkan_block_of(g->device, to, 1);
    items = block && block->bytes / PASS_BYTES > INVOCATIONS ? block->bytes / PASS_BYTES : INVOCATIONS;
  }
  const uint64_t groups = (items + group - 1) / group;
  return groups < GKI_VULKAN_MOST_GROUPS ? (uint32_t)groups : GKI_VULKAN_MOST_GROUPS;
}

/* Two slots in one block of memory may overlap, as far as is known here. */
static bool is_before(const void *user, uint32_t a, uint32_t b) {
  const gki_vulkan_graph *g = user;
  const uintptr_t of_a = (uintptr_t)g->blocks[a], of_b = (uintptr_t)g->blocks[b];
  return of_a != of_b ? of_a < of_b : a < b;
}

static bool share_memory(gki_vulkan_graph *g, const gk_launch_args *launch) {
  uint32_t count = 0;
  for (uint32_t k = 1; k < g->plan->slot_count; ++k) {
    if (g->plan->slots[k].type != GK_PTR || !launch->values[k].ptr) continue;
    g->blocks[k] = gki_vulkan_block_of(g->device, launch->values[k].ptr, 1);
    if (g->blocks[k]) g->by_block[count++] = k;
  }
  gki_sort(g->by_block, count, is_before, g);
  for (uint32_t k = 1; k < count; ++k) {
    const uint32_t a = g->by_block[k - 1], b = g->by_block[k];
    if (g->blocks[a] == g->blocks[b] && (g->levels.written[a] || g->levels.written[b])) return true;
  }
  return false;
}

static void look_at_memory(gki_vulkan_graph *g, const gk_launch_args *launch) {
  for (uint32_t k = 0; k < launch->changed_count; ++k)
    if (g->plan->slots[launch->changed[k]].type == GK_PTR) {
      g->shares_memory = share_memory(g, launch);
      return;
    }
}

/* Grids are the gates of runs: those of a run that isn't open have no groups. */
static bool has_grid_gates(const gki_vulkan_graph *g) { return g->points && g->gate == GKI_VULKAN_GRID; }

static void note_count(gki_vulkan_graph *g, uint32_t node) {
  uint32_t count;
  memcpy(&count, g->slots.image + g->slots.records[node], sizeof count);
  const bool posts = !g->plan->nodes[node].handwritten ||
                     !gki_param_has_items(&g->params, gki_param_number(&g->params, node));
  if (count == GKI_UNCOUNTED && posts) g->has_bad_count = true;
}

/* Without items, FILL stands in for handwritten code. */
static const unsigned *handwritten_groups(const gki_vulkan_graph *g, uint32_t node) {
  static const unsigned one[3] = {1, 1, 1};
  const uint32_t number = gki_param_number(&g->params, node);
  return gki_param_has_items(&g->params, number) ? g->params.wanted.grids[number] : one;
}

static void set_grid(gki_vulkan_graph *g, uint32_t node) {
  VkDispatchIndirectCommand *grids = (VkDispatchIndirectCommand *)(void *)(g->image + g->grids_at);
  uint32_t *sizes = (uint32_t *)(void *)(g->image + g->gates_at + sizeof(gki_vulkan_gates));
  if (!g->slots.records[node]) return;
  note_count(g, node);
  const unsigned *own = g->plan->nodes[node].handwritten ? handwritten_groups(g, node) : NULL;
  *(has_grid_gates(g) ? &sizes[node] : &grids[node].x) = own ? own[0] : groups_of(g, node);
  if (!own) return;
  grids[node].y = own[1];
  grids[node].z = own[2];
}

/* The launch before may have failed in an open run. This one may begin with an open run. */
static void begin_grid_gates(gki_vulkan_graph *g, const uint32_t *state) {
  VkDispatchIndirectCommand *grids = (VkDispatchIndirectCommand *)(void *)(g->image + g->grids_at);
  const uint32_t *sizes = (uint32_t *)(void *)(g->image + g->gates_at + sizeof(gki_vulkan_gates));
  for (uint32_t run = 0; run < g->plan->run_count; ++run) {
    const uint32_t words = g->points->table[g->points->runs[run] + GKW_RECORD];
    for (uint32_t k = g->plan->runs[run].begin; k < g->plan->runs[run].end; ++k)
      grids[k].x = state[words + GKW_TASKS] == GKW_OPEN ? sizes[k] : 0;
  }
}

/* After a bad count all tasks are looked at again, since another one may have a bad count, too. */
static void set_grids(gki_vulkan_graph *g, const gk_launch_args *launch) {
  const bool had_bad_count = g->has_bad_count, sets_all = !g->is_written || had_bad_count;
  g->has_bad_count = false;
  for (uint32_t k = 0; k < g->plan->node_count && sets_all; ++k) set_grid(g, k);
  for (uint32_t k = 0; k < launch->changed_count && !sets_all; ++k) {
    const uint32_t slot = launch->changed[k];
    for (uint32_t at = g->slots.users_at[slot]; at < g->slots.users_at[slot + 1]; ++at) set_grid(g, g->slots.users[at]);
  }
  if (has_grid_gates(g)) begin_grid_gates(g, launch->state);
  if (g->has_bad_count != had_bad_count) gki_vulkan_forget(g); /* it chooses the pipelines */
}

/* Copies what the launch changed, bytes `begin` to `end` of the table among it, to the device's side of the block. */
static gk_result upload(gki_vulkan_graph *g, size_t begin, size_t end) {
  const bool is_first = !g->is_written || g->must_upload; /* a launch before may have submitted nothing */
  const bool has_grids = begin < end || has_grid_gates(g) || g->params.count;
  g->is_written = true;
  if (!g->staging) return GK_OK;
  const struct { size_t begin, end; } parts[] = {
    {0, is_first ? g->block->bytes : sizeof(gki_task_control)},
    {g->table_at + begin, is_first ? 0 : g->table_at + end},
    {g->state_at, is_first ? 0 : g->points_at},
    {g->grids_at, is_first || !has_grids ? 0 : g->block->bytes}};
  VkBufferCopy ranges[GK_COUNT(parts)];
  uint32_t count = 0;
  for (size_t k = 0; k < GK_COUNT(parts); ++k)
    if (parts[k].begin < parts[k].end)
      ranges[count++] = (VkBufferCopy){g->staging->offset + parts[k].begin, g->block->offset + parts[k].begin,
                                       parts[k].end - parts[k].begin};
  g->must_upload = true;
  return gki_vulkan_record_upload(g, ranges, count);
}

gk_result gki_vulkan_launch(void *graph, const gk_launch_args *launch) {
  gki_vulkan_graph *g = graph;
  size_t begin, end;
  gk_result result = gki_vulkan_begin_order(g, launch->stream);
  if (result != GK_OK) return gki_vulkan_end_order(g, result);
  g->launch = *launch;
  g->enqueued = g->taken = 0;
  const gki_task_control control = {.number = g->points ? GKW_CLOSED : launch->launch,
                                    .failures = g->shared_block->address + offsetof(gki_vulkan_shared, failures),
                                    .posts_as = launch->launch, .arms = 1};
  memcpy(g->image, &control, sizeof control);
  (void)gki_slot_table_changed(&g->slots, launch, 0, &begin, &end);
  look_at_memory(g, launch);
  if (gki_param_update(&g->params, launch)) gki_vulkan_forget(g); /* it has the old push constants */
  set_grids(g, launch);
  if (g->in_series != (g->shares_memory || g->has_bad_count)) gki_vulkan_forget(g);
  g->in_series = g->shares_memory || g->has_bad_count;
  if (g->points) memcpy(g->image + g->state_at, launch->state, g->points->state_count * sizeof(uint32_t));
  gki_cancel_begin(&g->shared->cancelled, launch);
  result = upload(g, begin, end);
  if (result == GK_OK) return GK_OK;
  g->slots.is_sent = g->is_written = false;
  return gki_vulkan_end_order(g, result);
}

gk_result gki_vulkan_cancel(void *graph) {
  gki_cancel_set(&((gki_vulkan_graph *)graph)->shared->cancelled);
  return GK_OK;
}

/* ---- while it runs ----------------------------------------------------------------------------------------------- */

/* Waits for a submit of the graph, and all before it. */
static gk_result wait(const gki_vulkan_graph *g, uint64_t number) {
  const VkResult answer = gki_vulkan_wait(g->device, number);
  if (answer == VK_SUCCESS) return gki_param_check_posts(&g->params, g->shared->failures, &g->launch);
  char what[NAME_BYTES];
  snprintf(what, sizeof what, "waiting for graph %.200s", g->plan->name);
  return gki_vulkan_check(g->device, answer, what);
}

/* ---- submitting -------------------------------------------------------------------------------------------------- */

/* node: the first one, for the message */
static gk_result submit(gki_vulkan_graph *g, VkCommandBuffer commands, uint32_t node) {
  const VkCommandBuffer all[] = {g->upload, commands};
  const uint32_t first = g->must_upload ? 0 : 1;
  const VkResult answer = gki_vulkan_submit(g->device, all + first, 2 - first, &g->last);
  if (answer != VK_SUCCESS) {
    char what[NAME_BYTES];
    const gk_node *at = &g->plan->nodes[node];
    if (g->must_upload) g->slots.is_sent = g->is_written = false;
    snprintf(what, sizeof what, "vkQueueSubmit of task %u (%.200s) and behind it", (unsigned)at->source, at->name);
    return gki_vulkan_check(g->device, answer, what);
  }
  g->must_upload = false;
  return GK_OK;
}

static bool has_calls(const gki_vulkan_graph *g, uint32_t entry) {
  const uint32_t run = entry & ~GK_AHEAD_BESIDE;
  return entry != GK_NONE && g->parts_at[run] < g->parts_at[run + 1];
}

/* Entries without library calls. */
static gk_result submit_piece(gki_vulkan_graph *g, const uint32_t *entries, uint32_t count, uint32_t copy) {
  VkCommandBuffer commands;
  const gk_result result = gki_vulkan_piece_of(g, entries, count, copy, &commands);
  if (result != GK_OK) return result;
  const bool has_run = count && entries[0] != GK_NONE;
  return submit(g, commands, has_run ? g->plan->runs[entries[0] & ~GK_AHEAD_BESIDE].begin : 0);
}

static gk_result submit_parts(gki_vulkan_graph *g, uint32_t run) {
  gk_result result = GK_OK;
  for (uint32_t k = g->parts_at[run]; k < g->parts_at[run + 1] && result == GK_OK; ++k) {
    gki_vulkan_part *part = &g->parts[k];
    const bool is_call = part->begin < part->end && g->plan->nodes[part->begin].op == GK_OP_CALL;
    if (!is_call && !part->commands) result = gki_vulkan_record_part(g, run, part);
    if (result == GK_OK)
      result = is_call ? wait(g, g->last)
                       : submit(g, part->commands, part->begin < g->plan->node_count ? part->begin : 0);
    if (result == GK_OK && is_call) result = gki_vulkan_call(g, &g->plan->nodes[part->begin]);
  }
  return result;
}

gk_result gki_vulkan_submit_run(void *graph, uint32_t run) {
  gki_vulkan_graph *g = graph;
  return has_calls(g, run) ? submit_parts(g, run) : submit_piece(g, &run, 1, GK_NONE);
}

/* ---- ahead ------------------------------------------------------------------------------------------------------- */

/* The last piece copies the state. It has no entries if a run with calls is last. */
gk_result gki_vulkan_ahead(void *graph, const uint32_t *runs, uint32_t count) {
  gki_vulkan_graph *g = graph;
  if (g->enqueued - g->taken == GKI_VULKAN_TAPES) return GK_NOT_READY;
  if (g->enqueued == g->taken) g->enqueued = g->taken = 0;
  const uint32_t place = g->enqueued % GKI_VULKAN_TAPES;
  gk_result result = GK_OK;
  uint32_t at = 0, end;
  do {
    for (end = at; end < count && !has_calls(g, runs[end]);) ++end;
    if (at < end || end == count) result = submit_piece(g, runs + at, end - at, end == count ? place : GK_NONE);
    if (end < count && result == GK_OK) result = submit_parts(g, runs[end] & ~GK_AHEAD_BESIDE);
    at = end + 1;
  } while (end < count && result == GK_OK);
  if (result != GK_OK) return result;
  g->ends[place] = g->last;
  ++g->enqueued;
  return GK_OK;
}

gk_result gki_vulkan_state(void *graph, const uint32_t **state) {
  gki_vulkan_graph *g = graph;
  if (!state) return gki_vulkan_end_order(g, wait(g, g->last));
  const uint32_t place = g->taken++ % GKI_VULKAN_TAPES;
  *state = (const uint32_t *)(const void *)(g->shared + 1) + place * g->points->state_count;
  return wait(g, g->ends[place]);
}

/* ---- flags ------------------------------------------------------------------------------------------------------- */

gk_result gki_vulkan_read_flag(void *graph, uint32_t at, int32_t *flag) {
  gki_vulkan_graph *g = graph;
  const gk_node *node = &g->plan->nodes[at];
  gk_result result = wait(g, g->last);
  if (at == 0) return gki_vulkan_end_order(g, result);
  if (result != GK_OK || !gki_reads_memory(g->plan, node)) return result;
  const char *from = g->launch.values[node->flag].ptr;
  result = gki_vulkan_copy_memory(g->device, GK_TO_HOST, flag, from + node->offset, sizeof *flag);
  return result == GK_OK ? GK_OK : gki_vulkan_slot_failed(g, node, node->flag, result);
}
