#include "base/error.h"
#include "plan/node.h"
#include "plan/walk.inc"
#include "vulkan/kernels.h"
#include "vulkan/graph.h"
#include <string.h>

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* @return the size of the block */
static size_t lay_out(gki_vulkan_graph *g, size_t table_bytes) {
  const gk_plan *plan = g->plan;
  const size_t state_words = g->points ? g->points->state_count : 0;
  const size_t point_words = g->points ? g->points->word_count : 0;
  g->table_at = gki_struct_align(sizeof(gki_task_control));
  g->state_at = gki_struct_align(g->table_at + table_bytes);
  g->points_at = gki_struct_align(g->state_at + state_words * sizeof(uint32_t));
  g->grids_at = gki_struct_align(g->points_at + point_words * sizeof(uint32_t));
  g->gates_at = gki_struct_align(g->grids_at + plan->node_count * sizeof(VkDispatchIndirectCommand));
  return g->gates_at + sizeof(gki_vulkan_gates) +
         ((size_t)plan->node_count + 2 * (size_t)plan->run_count) * sizeof(uint32_t);
}

/* Writes what stays the same. */
static void write_image(gki_vulkan_graph *g) {
  const gk_plan *plan = g->plan;
  memset(g->image, 0, g->block->bytes);
  VkDispatchIndirectCommand *grids = (VkDispatchIndirectCommand *)(void *)(g->image + g->grids_at);
  for (uint32_t k = 0; k < plan->node_count; ++k) grids[k] = (VkDispatchIndirectCommand){0, 1, 1};
  if (!g->points) return;
  memcpy(g->image + g->points_at, g->points->table, g->points->word_count * sizeof(uint32_t));
  gki_vulkan_gates *gates = (gki_vulkan_gates *)(void *)(g->image + g->gates_at);
  *gates = (gki_vulkan_gates){plan->node_count, g->points->lane_count, g->block->address + g->grids_at};
  memcpy((uint32_t *)(void *)(gates + 1) + plan->node_count, plan->runs, plan->run_count * sizeof *plan->runs);
}

static gk_result make_memory(gki_vulkan_graph *g) {
  size_t table_bytes;
  gk_result result = gki_slot_table_make(&g->slots, g->plan, 1, &g->arena, &table_bytes);
  if (result != GK_OK) return result;
  const size_t bytes = lay_out(g, table_bytes);
  const size_t copies = g->points ? GKI_VULKAN_TAPES * g->points->state_count * sizeof(uint32_t) : 0;
  result = gki_vulkan_alloc(g->device, sizeof *g->shared + copies, GK_HOST_MEMORY, &g->shared_block);
  if (result == GK_OK) result = gki_vulkan_alloc(g->device, bytes, GK_DEVICE_MEMORY, &g->block);
  if (result == GK_OK && !g->block->host) result = gki_vulkan_alloc(g->device, bytes, GK_HOST_MEMORY, &g->staging);
  if (result != GK_OK) return result;
  g->image = g->staging ? g->staging->host : g->block->host;
  g->shared = (gki_vulkan_shared *)(void *)g->shared_block->host;
  memset(g->shared, 0, sizeof *g->shared);
  write_image(g);
  g->slots.control = g->block->address;
  g->slots.at = g->block->address + g->table_at;
  g->slots.ring = g->image + g->table_at;
  return GK_OK;
}

static const unsigned most_groups[3] = {GKI_VULKAN_MOST_GROUPS, GKI_VULKAN_MOST_GROUPS, GKI_VULKAN_MOST_GROUPS};

/* ---- recorded commands ------------------------------------------------------------------------------------------- */

/* None, if there is no call. Going ahead, a run that ends with a call has a part without tasks behind it. */
static void find_parts(gki_vulkan_graph *g, uint32_t run, uint32_t *count) {
  const gk_plan_run *all = &g->plan->runs[run];
  uint32_t at = all->begin, begin;
  while (at < all->end) {
    const bool is_call = g->plan->nodes[at].op == GK_OP_CALL;
    begin = at++;
    while (!is_call && at < all->end && g->plan->nodes[at].op != GK_OP_CALL) ++at;
    if (!is_call && begin == all->begin && at == all->end) return;
    g->parts[(*count)++] = (gki_vulkan_part){.begin = begin, .end = at};
    if (is_call && at == all->end && g->points) g->parts[(*count)++] = (gki_vulkan_part){.begin = at, .end = at};
  }
}

/* FILL also stands in for handwritten code without items. */
static gk_result choose_kernels(gki_vulkan_graph *g, void *const *code) {
  gk_result result = GK_OK;
  for (uint32_t k = 0; k < g->plan->node_count; ++k) {
    const gk_node *node = &g->plan->nodes[k];
    if (!g->slots.records[k]) continue;
    if (node->op == GK_OP_COPY) result = gki_vulkan_builtin(g->device, GKI_VULKAN_COPY, &g->kernels[k]);
    else if (!code[k] || node->handwritten) result = gki_vulkan_builtin(g->device, GKI_VULKAN_FILL, &g->fill);
    if (result != GK_OK) return gki_fail_with_prefix(result, "task %u (%s)", (unsigned)node->source, node->name);
    if (node->op != GK_OP_COPY) g->kernels[k] = code[k] ? code[k] : g->fill;
  }
  return result;
}

/* Shaders for one step, behind the runs for which that is enough. */
static gk_result find_steps(gki_vulkan_graph *g) {
  const gk_plan *plan = g->plan;
  gk_result result = GK_OK;
  for (uint32_t run = 0; run < plan->run_count && result == GK_OK; ++run) {
    uint32_t words[GKW_STEP_WORDS];
    if (!gk_points_step(g->points, run, words)) continue;
    uint32_t form = g->points->lane_count > 1 ? GKI_VULKAN_SECTIONS : 0;
    if (plan->always_count) form |= GKI_VULKAN_ALWAYS;
    if (words[GKW_KIND] == GKW_PASS_END && words[GKW_BOUND]) form |= GKI_VULKAN_BOUND;
    if (words[GKW_KIND] == GKW_PASS_END && words[GKW_HOW] > 1) form |= GKI_VULKAN_EVERY;
    if (plan->bits & GK_CANCELLABLE) form |= GKI_VULKAN_CANCELS;
    const uint32_t kind = words[GKW_SLOT] == GKW_NONE ? GKW_COUNT : words[GKW_KIND];
    result = gki_vulkan_control_for(g->device, kind, form, &g->steps[run]);
  }
  return result;
}

/* The shader that walks has forms for lists with one lane and without .every, since lavapipe runs all that stands in a
 * shader. */
static gk_result find_control(gki_vulkan_graph *g) {
  if (!g->points) return GK_OK;
  uint32_t form = GKI_VULKAN_ALWAYS | GKI_VULKAN_BOUND | GKI_VULKAN_CANCELS;
  if (g->points->lane_count > 1) form |= GKI_VULKAN_SECTIONS;
  for (uint32_t k = 0; k < g->plan->loop_count; ++k)
    if (g->plan->nodes[g->plan->loops[k]].every > 1) form |= GKI_VULKAN_EVERY;
  const gk_result result = gki_vulkan_control_for(g->device, GKI_VULKAN_WALK, form, &g->control);
  if (result != GK_OK) return result;
  return g->gate == GKI_VULKAN_GRID ? gki_vulkan_builtin(g->device, GKI_VULKAN_GRIDS, &g->grids) : find_steps(g);
}

static gk_result make_arrays(gki_vulkan_graph *g, void *const *code) {
  const gk_plan *plan = g->plan;
  g->piece_count = g->points ? GKI_VULKAN_KEPT : plan->run_count;
  g->pieces = gki_arena_alloc(&g->arena, g->piece_count, sizeof *g->pieces);
  g->parts = gki_arena_alloc(&g->arena, (size_t)plan->node_count + plan->run_count, sizeof *g->parts);
  g->parts_at = gki_arena_alloc(&g->arena, (size_t)plan->run_count + 1, sizeof *g->parts_at);
  g->blocks = gki_arena_alloc(&g->arena, plan->slot_count, sizeof *g->blocks);
  g->by_block = gki_arena_alloc(&g->arena, plan->slot_count, sizeof *g->by_block);
  g->kernels = gki_arena_alloc(&g->arena, plan->node_count, sizeof *g->kernels);
  g->steps = gki_arena_alloc(&g->arena, plan->run_count, sizeof *g->steps);
  if (gki_param_make(&g->params, &g->slots, most_groups, &g->arena) != GK_OK) return GK_ERROR_MEMORY;
  if (!g->pieces || !g->parts || !g->parts_at || !g->blocks || !g->by_block || !g->kernels || !g->steps)
    return gki_fail_memory("a graph's commands", plan->node_count * sizeof *g->parts);
  gk_result result = choose_kernels(g, code);
  if (result != GK_OK) return result;
  for (uint32_t n = 0; n < g->params.count; ++n)
    g->params.tasks[n].per_block = g->kernels[g->params.tasks[n].node]->per_block;
  uint32_t count = 0;
  for (uint32_t run = 0; run < plan->run_count; ++run) {
    g->parts_at[run] = count;
    find_parts(g, run, &count);
  }
  g->parts_at[plan->run_count] = count;
  result = find_control(g);
  if (result != GK_OK) return gki_fail_with_prefix(result, "graph %s", plan->name);
  return gki_levels_make(&g->levels, plan, &g->arena);
}

/* Records what doesn't depend on how a launch goes: without decisions of the device, each run. */
static gk_result record_runs(gki_vulkan_graph *g) {
  gk_result result = GK_OK;
  VkCommandBuffer commands;
  for (uint32_t run = 0; run < g->plan->run_count && result == GK_OK; ++run) {
    const bool is_whole = g->parts_at[run] == g->parts_at[run + 1];
    if (is_whole && !g->points) result = gki_vulkan_piece_of(g, &run, 1, GK_NONE, &commands);
    for (uint32_t k = g->parts_at[run]; k < g->parts_at[run + 1] && result == GK_OK; ++k)
      if (g->parts[k].begin == g->parts[k].end || g->plan->nodes[g->parts[k].begin].op != GK_OP_CALL)
        result = gki_vulkan_record_part(g, run, &g->parts[k]);
  }
  return result;
}

gk_result gki_vulkan_lower(void *device, void *graph, const gk_plan *plan, void *const *code, gk_mode *mode) {
  gki_vulkan_graph *g = graph;
  g->device = device;
  g->plan = plan;
  gk_result result = gki_may_go_ahead(plan) ? gk_plan_points(plan, &g->points) : GK_OK;
  *mode = g->points ? GK_MODE_AHEAD : GK_MODE_BATCHED;
  g->gate = g->device->gate;
  if (result == GK_OK) result = make_memory(g);
  if (result == GK_OK) result = make_arrays(g, code);
  const VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                        .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
                                        .queueFamilyIndex = g->device->family};
  if (result == GK_OK)
    result = gki_vulkan_check(g->device, g->device->driver.CreateCommandPool(g->device->device, &pool, NULL, &g->pool),
                              "vkCreateCommandPool");
  return result == GK_OK ? record_runs(g) : result;
}

void gki_vulkan_drop(void *graph) {
  gki_vulkan_graph *g = graph;
  if (!g->device) return;
  if (g->pool) {
    gki_vulkan_forget(g);
    g->device->driver.DestroyCommandPool(g->device->device, g->pool, NULL);
  }
  gki_vulkan_free(g->device, g->block);
  gki_vulkan_free(g->device, g->staging);
  gki_vulkan_free(g->device, g->shared_block);
  gki_arena_free(&g->arena);
}

void *gki_vulkan_pass(void *graph, uint32_t node) {
  const gki_vulkan_graph *g = graph;
  const uint64_t state = g->block->address + g->state_at;
  return (void *)(uintptr_t)(state + gk_points_pass(g->points, node) * sizeof(uint32_t));
}
