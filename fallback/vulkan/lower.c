#include "vulkan/graph.h"
#include "base/error.h"
#include "base/op.h"
#include <string.h>

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static size_t align(size_t at) { return (at + GKI_STRUCT_ALIGNMENT - 1) / GKI_STRUCT_ALIGNMENT * GKI_STRUCT_ALIGNMENT; }

static gk_result make_memory(gki_vulkan_graph *g) {
  size_t bytes;
  gk_result result = gki_slot_table_make(&g->slots, g->plan, 1, &g->arena, &bytes);
  if (result != GK_OK) return result;
  const size_t table_at = align(sizeof(gki_vulkan_head)), grids_at = table_at + bytes;
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
static void record_task(const gki_vulkan_graph *g, VkCommandBuffer commands, uint32_t node, void *code) {
  const gki_vulkan_driver *driver = &g->device->driver;
  const gki_task task = gki_task_of(&g->slots, node);
  VkPipeline pipeline = g->device->builtin[g->plan->nodes[node].op == GK_OP_COPY ? GKI_VULKAN_COPY : GKI_VULKAN_FILL];
  if (code) memcpy(&pipeline, &code, sizeof pipeline);
  driver->CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
  driver->CmdPushConstants(commands, g->device->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof task, &task);
  driver->CmdDispatchIndirect(commands, g->block->buffer, g->grids_at + node * sizeof *g->grids);
  record_barrier(g, commands);
}

static gk_result record(gki_vulkan_graph *g, gki_vulkan_part *part, uint32_t end, void *const *code) {
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
    if (g->slots.records[k]) record_task(g, part->commands, k, code[k]);
  return gki_vulkan_check(d, d->driver.EndCommandBuffer(part->commands), "vkEndCommandBuffer");
}

/* Tasks up to the next call, or a call alone. */
static gk_result add_part(gki_vulkan_graph *g, uint32_t *count, uint32_t *at, uint32_t end, void *const *code) {
  gki_vulkan_part *part = &g->parts[(*count)++];
  part->node = (*at)++;
  if (g->plan->nodes[part->node].op == GK_OP_CALL) return GK_OK;
  while (*at < end && g->plan->nodes[*at].op != GK_OP_CALL) ++*at;
  return record(g, part, *at, code);
}

static gk_result make_parts(gki_vulkan_graph *g, void *const *code) {
  const gk_plan *plan = g->plan;
  g->parts = gki_arena_alloc(&g->arena, plan->node_count, sizeof *g->parts);
  g->parts_at = gki_arena_alloc(&g->arena, plan->run_count + 1, sizeof *g->parts_at);
  if (!g->parts || !g->parts_at) return gki_fail_memory("a graph's commands", plan->node_count * sizeof *g->parts);
  uint32_t count = 0;
  gk_result result = GK_OK;
  for (uint32_t run = 0; run < plan->run_count; ++run) {
    g->parts_at[run] = count;
    uint32_t at = plan->runs[run].begin;
    while (result == GK_OK && at < plan->runs[run].end) result = add_part(g, &count, &at, plan->runs[run].end, code);
  }
  g->parts_at[plan->run_count] = count;
  return result;
}

/* ---- lowering ---------------------------------------------------------------------------------------------------- */

gk_result gki_vulkan_lower(void *device, void *graph, const gk_plan *plan, void *const *code, gk_mode *mode) {
  gki_vulkan_graph *g = graph;
  g->device = device;
  g->plan = plan;
  *mode = GK_MODE_BATCHED;
  gk_result result = make_memory(g);
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
