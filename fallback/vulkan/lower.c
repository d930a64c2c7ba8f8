#include "vulkan/graph.h"
#include "base/error.h"
#include "plan/walk.inc"
#include <string.h>

/* ---- going ahead ------------------------------------------------------------------------------------------------- */

/* Without flags the host waits only at the end. */
static gk_result find_points(gki_vulkan_graph *g) {
  const gk_plan *plan = g->plan;
  if (plan->bits & (GK_HOST_GATED | GK_ISOLATE)) return GK_OK;
  for (uint32_t k = 0; k < plan->node_count; ++k)
    if (plan->nodes[k].flag) return gk_plan_points(plan, &g->points);
  return GK_OK;
}

static size_t points_bytes(const gki_vulkan_graph *g) {
  return g->points ? ((size_t)g->points->state_count + g->points->word_count) * sizeof *g->state : 0;
}

static uint64_t guard_of(const gki_vulkan_graph *g, uint32_t run) {
  if (!g->points) return 0;
  return g->state_at + (g->points->table[g->points->runs[run] + GKW_RECORD] + GKW_TASKS) * sizeof *g->state;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static size_t align(size_t at) { return (at + GKI_STRUCT_ALIGNMENT - 1) / GKI_STRUCT_ALIGNMENT * GKI_STRUCT_ALIGNMENT; }

static gk_result make_memory(gki_vulkan_graph *g) {
  size_t bytes;
  gk_result result = gki_slot_table_make(&g->slots, g->plan, 1, &g->arena, &bytes);
  if (result != GK_OK) return result;
  const size_t table_at = align(sizeof(gki_vulkan_head)), state_at = align(table_at + bytes);
  const size_t grids_at = align(state_at + points_bytes(g));
  result = gki_vulkan_alloc(g->device, grids_at + g->plan->node_count * sizeof *g->grids, GK_HOST_MEMORY, &g->block);
  if (result != GK_OK) return result;
  unsigned char *here = g->block->here;
  memset(here, 0, g->block->bytes);
  g->head = (gki_vulkan_head *)(void *)here;
  g->grids = (VkDispatchIndirectCommand *)(void *)(here + grids_at);
  g->grids_at = g->block->offset + grids_at;
  g->head->control.failures = g->block->at + offsetof(gki_vulkan_head, failures);
  g->slots.control = g->block->at;
  g->slots.at = g->block->at + table_at;
  g->slots.ring = here + table_at;
  g->state = (uint32_t *)(void *)(here + state_at);
  g->state_at = g->block->at + state_at;
  if (g->points)
    memcpy(g->state + g->points->state_count, g->points->table, g->points->word_count * sizeof *g->state);
  return GK_OK;
}

/* ---- commands ---------------------------------------------------------------------------------------------------- */

static void record_barrier(const gki_vulkan_graph *g, VkCommandBuffer commands) {
  const VkMemoryBarrier all = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER, .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT,
                               .dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT |
                                                VK_ACCESS_HOST_READ_BIT};
  g->device->driver.CmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                                       VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &all,
                                       0, NULL, 0, NULL);
}

/* Behind each task is a barrier, also behind those of sibling sections. */
static void record_task(const gki_vulkan_graph *g, VkCommandBuffer commands, uint32_t node, uint64_t guard,
                        void *code) {
  const gki_vulkan_driver *driver = &g->device->driver;
  gki_task task = gki_task_of(&g->slots, node);
  task.guard = guard;
  VkPipeline pipeline = g->device->builtin[g->plan->nodes[node].op == GK_OP_COPY ? GKI_VULKAN_COPY : GKI_VULKAN_FILL];
  if (code) memcpy(&pipeline, &code, sizeof pipeline);
  driver->CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
  driver->CmdPushConstants(commands, g->device->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof task, &task);
  driver->CmdDispatchIndirect(commands, g->block->buffer, g->grids_at + node * sizeof *g->grids);
  record_barrier(g, commands);
}

/* run: run_count for none */
static void record_control(const gki_vulkan_graph *g, VkCommandBuffer commands, uint32_t run) {
  const gki_vulkan_driver *driver = &g->device->driver;
  const gki_vulkan_control control = {g->state_at + g->points->state_count * sizeof *g->state, g->state_at, g->slots.at,
                                      g->block->at + offsetof(gki_vulkan_head, cancelled),
                                      run < g->plan->run_count ? g->points->runs[run] : GKW_NONE, 0};
  driver->CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, g->device->builtin[GKI_VULKAN_CONTROL]);
  driver->CmdPushConstants(commands, g->device->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof control, &control);
  driver->CmdDispatch(commands, 1, 1, 1);
  record_barrier(g, commands);
}

/* The tasks from part->node to `end`, and the control shader if the run ends there. */
static gk_result record(gki_vulkan_graph *g, gki_vulkan_part *part, uint32_t end, uint32_t run, void *const *code) {
  gki_vulkan_device *d = g->device;
  const VkCommandBufferAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                            .commandPool = g->pool, .commandBufferCount = 1};
  gk_result result = gki_vulkan_check(d, d->driver.AllocateCommandBuffers(d->device, &info, &part->commands),
                                      "vkAllocateCommandBuffers");
  if (result != GK_OK) return result;
  const VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                          .flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT};
  result = gki_vulkan_check(d, d->driver.BeginCommandBuffer(part->commands, &begin), "vkBeginCommandBuffer");
  if (result != GK_OK) return result;
  for (uint32_t k = part->node; k < end; ++k)
    if (g->slots.records[k]) record_task(g, part->commands, k, guard_of(g, run), code[k]);
  const bool is_last = run == g->plan->run_count || end == g->plan->runs[run].end;
  if (g->points && is_last) record_control(g, part->commands, run);
  return gki_vulkan_check(d, d->driver.EndCommandBuffer(part->commands), "vkEndCommandBuffer");
}

/* Tasks up to the next call, or a call alone; behind one that ends a run that goes ahead, no tasks. */
static gk_result add_part(gki_vulkan_graph *g, uint32_t *count, uint32_t *at, uint32_t run, void *const *code) {
  const uint32_t end = g->plan->runs[run].end;
  gki_vulkan_part *part = &g->parts[(*count)++];
  part->node = *at;
  if (g->plan->nodes[*at].op == GK_OP_CALL) {
    ++*at;
    if (*at < end || !g->points) return GK_OK;
    part = &g->parts[(*count)++];
    part->node = end;
    return record(g, part, end, run, code);
  }
  while (*at < end && g->plan->nodes[*at].op != GK_OP_CALL) ++*at;
  return record(g, part, *at, run, code);
}

static gk_result make_parts(gki_vulkan_graph *g, void *const *code) {
  const gk_plan *plan = g->plan;
  g->parts = gki_arena_alloc(&g->arena, (size_t)plan->node_count + plan->run_count + 1, sizeof *g->parts);
  g->parts_at = gki_arena_alloc(&g->arena, (size_t)plan->run_count + 2, sizeof *g->parts_at);
  if (!g->parts || !g->parts_at) return gki_fail_memory("a graph's commands", plan->node_count * sizeof *g->parts);
  uint32_t count = 0;
  gk_result result = GK_OK;
  for (uint32_t run = 0; run < plan->run_count; ++run) {
    g->parts_at[run] = count;
    uint32_t at = plan->runs[run].begin;
    while (result == GK_OK && at < plan->runs[run].end) result = add_part(g, &count, &at, run, code);
  }
  g->parts_at[plan->run_count] = count;
  if (result == GK_OK && g->points) result = record(g, &g->parts[count++], 0, plan->run_count, code);
  g->parts_at[plan->run_count + 1] = count;
  return result;
}

/* ---- lowering ---------------------------------------------------------------------------------------------------- */

gk_result gki_vulkan_lower(void *device, void *graph, const gk_plan *plan, void *const *code, gk_mode *mode) {
  gki_vulkan_graph *g = graph;
  g->device = device;
  g->plan = plan;
  gk_result result = find_points(g);
  *mode = g->points ? GK_MODE_AHEAD : GK_MODE_BATCHED;
  if (result == GK_OK) result = make_memory(g);
  const VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                        .queueFamilyIndex = g->device->family};
  if (result == GK_OK)
    result = gki_vulkan_check(g->device, g->device->driver.CreateCommandPool(g->device->device, &pool, NULL, &g->pool),
                              "vkCreateCommandPool");
  return result == GK_OK ? make_parts(g, code) : result;
}

void gki_vulkan_drop(void *graph) {
  gki_vulkan_graph *g = graph;
  if (!g->device) return;
  if (g->pool) g->device->driver.DestroyCommandPool(g->device->device, g->pool, NULL);
  gki_vulkan_free(g->device, g->block);
  gki_arena_free(&g->arena);
}
