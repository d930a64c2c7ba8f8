#include "vulkan/graph.h"
#include "base/error.h"
#include "plan/node.h"
#include "plan/walk.inc"
#include "vulkan/handwritten.h"
#include <string.h>

/* ---- barriers ---------------------------------------------------------------------------------------------------- */

typedef struct scope { VkPipelineStageFlags stages; VkAccessFlags access; } scope;

enum { SHADER = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT };
static const scope task_writes = {SHADER, VK_ACCESS_SHADER_WRITE_BIT},
                   task_uses = {SHADER, VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT},
                   copy_reads = {VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_READ_BIT},
                   copy_writes = {VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT},
                   host_reads = {VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT};

static scope both(scope a, scope b) { return (scope){a.stages | b.stages, a.access | b.access}; }

/* What reads words and grids in front of a task. */
static scope gate_reads(const gki_vulkan_graph *g) {
  const scope grid = {VK_PIPELINE_STAGE_DRAW_INDIRECT_BIT, VK_ACCESS_INDIRECT_COMMAND_READ_BIT};
  const scope condition = {VK_PIPELINE_STAGE_CONDITIONAL_RENDERING_BIT_EXT,
                           VK_ACCESS_CONDITIONAL_RENDERING_READ_BIT_EXT};
  return g->gate == GKI_VULKAN_CONDITION ? both(grid, condition) : grid;
}

static void put_barrier(const gki_vulkan_graph *g, VkCommandBuffer commands, scope from, scope to) {
  const VkMemoryBarrier all = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER, .srcAccessMask = from.access,
                               .dstAccessMask = to.access};
  g->device->driver.CmdPipelineBarrier(commands, from.stages, to.stages, 0, 1, &all, 0, NULL, 0, NULL);
}

/* ---- tasks ------------------------------------------------------------------------------------------------------- */

typedef struct recorder {
  const gki_vulkan_graph *graph;
  VkCommandBuffer commands;
  bool has_tasks;  /* since the last barrier */
  bool level_began; /* tasks of one level have no barrier between them */
  bool has_step;    /* what push_step pushed is still there */
  VkPipeline bound;
} recorder;

/* Index in the state of a run's first word. */
static uint32_t words_of(const gki_vulkan_graph *g, uint32_t run) {
  return g->points->table[g->points->runs[run] + GKW_RECORD];
}

static uint64_t address_of(const gki_vulkan_graph *g, size_t offset) { return g->block->address + offset; }

/* Commands up to end_gate do nothing unless this word of the state is GKW_OPEN. */
static void begin_gate(const recorder *r, uint32_t word) {
  const gki_vulkan_graph *g = r->graph;
  if (!g->points || g->gate != GKI_VULKAN_CONDITION) return;
  const VkConditionalRenderingBeginInfoEXT info = {
    .sType = VK_STRUCTURE_TYPE_CONDITIONAL_RENDERING_BEGIN_INFO_EXT, .buffer = g->block->buffer,
    .offset = g->block->offset + g->state_at + word * sizeof(uint32_t),
    .flags = VK_CONDITIONAL_RENDERING_INVERTED_BIT_EXT};
  g->device->driver.CmdBeginConditionalRenderingEXT(r->commands, &info);
}

static void end_gate(const recorder *r) {
  const gki_vulkan_graph *g = r->graph;
  if (g->points && g->gate == GKI_VULKAN_CONDITION) g->device->driver.CmdEndConditionalRenderingEXT(r->commands);
}

static void bind(recorder *r, VkPipeline pipeline) {
  if (r->bound == pipeline) return;
  r->bound = pipeline;
  r->graph->device->driver.CmdBindPipeline(r->commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
}

static void put_task(recorder *r, uint32_t run, uint32_t node) {
  const gki_vulkan_graph *g = r->graph;
  const gki_vulkan_driver *driver = &g->device->driver;
  if (r->has_tasks && !r->level_began) put_barrier(g, r->commands, task_writes, task_uses);
  r->has_tasks = r->level_began = true;
  gki_task task = gki_task_of(&g->slots, node);
  const bool is_guarded = g->points && g->gate == GKI_VULKAN_GUARD;
  if (is_guarded)
    task.guard = address_of(g, g->state_at) + (words_of(g, run) + GKW_TASKS) * sizeof(uint32_t);
  unsigned char pushed[GKI_VULKAN_PUSHED];
  uint32_t bytes = sizeof task;
  const gki_vulkan_kernel *kernel = g->kernels[node];
  const bool is_own = g->plan->nodes[node].handwritten;
  const uint32_t number = is_own ? gki_param_number(&g->params, node) : 0;
  const bool has_items = !is_own || gki_param_has_items(&g->params, number);
  if (!has_items) { /* FILL stands in, which posts a bad count */
    kernel = g->fill;
    task = gki_param_fill(&g->params, number);
  }
  memcpy(pushed, &task, sizeof task);
  if (is_own && has_items) bytes = gki_vulkan_push(&g->params, number, pushed);
  if (bytes > sizeof task) r->has_step = false;
  const bool is_unchecked = !is_own && !gki_reads_count(g->plan, &g->plan->nodes[node]) && !is_guarded;
  bind(r, is_unchecked && !g->has_bad_count ? kernel->unchecked : kernel->pipeline);
  if (bytes)
    driver->CmdPushConstants(r->commands, g->device->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, bytes, pushed);
  driver->CmdDispatchIndirect(r->commands, g->block->buffer,
                              g->block->offset + g->grids_at + node * sizeof(VkDispatchIndirectCommand));
}

/* Levels of a run; in series, each node is one. */
static uint32_t levels_of(const gki_vulkan_graph *g, uint32_t run) {
  if (g->in_series) return g->plan->runs[run].end - g->plan->runs[run].begin;
  return g->levels.of_run[run + 1] - g->levels.of_run[run];
}

/* The tasks of a level, of those from node `begin` to `end`. */
static void put_level(recorder *r, uint32_t run, uint32_t level, uint32_t begin, uint32_t end) {
  const gki_vulkan_graph *g = r->graph;
  if (g->in_series) {
    const uint32_t node = g->plan->runs[run].begin + level;
    if (g->slots.records[node] && node >= begin && node < end) put_task(r, run, node);
    return;
  }
  const uint32_t at = g->levels.of_run[run] + level;
  for (uint32_t k = g->levels.at[at]; k < g->levels.at[at + 1]; ++k)
    if (g->levels.tasks[k] >= begin && g->levels.tasks[k] < end) put_task(r, run, g->levels.tasks[k]);
}

static void put_part(recorder *r, uint32_t run, uint32_t begin, uint32_t end) {
  const uint32_t levels = levels_of(r->graph, run);
  for (uint32_t level = 0; level < levels; ++level) {
    r->level_began = false;
    put_level(r, run, level, begin, end);
  }
}

/* Runs of sibling sections, level by level. */
static void put_runs_beside(recorder *r, const uint32_t *runs, uint32_t count) {
  const gki_vulkan_graph *g = r->graph;
  bool has_more = true;
  for (uint32_t level = 0; has_more; ++level) {
    has_more = r->level_began = false;
    for (uint32_t k = 0; k < count; ++k) {
      const uint32_t run = runs[k] & ~GK_AHEAD_BESIDE;
      if (level >= levels_of(g, run)) continue;
      has_more = true;
      begin_gate(r, words_of(g, run) + GKW_TASKS);
      put_level(r, run, level, g->plan->runs[run].begin, g->plan->runs[run].end);
      end_gate(r);
    }
  }
}

/* ---- the control shader ------------------------------------------------------------------------------------------ */

/* control: NULL for a step, which push_step has pushed */
static void dispatch(recorder *r, VkPipeline shader, const gki_vulkan_control *control) {
  const gki_vulkan_device *d = r->graph->device;
  bind(r, shader);
  if (control)
    d->driver.CmdPushConstants(r->commands, d->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof *control, control);
  d->driver.CmdDispatch(r->commands, 1, 1, 1);
}

/* In front of a run's tasks, since lavapipe takes long to bring what is pushed to a shader. */
static void push_step(recorder *r, uint32_t run) {
  const gki_vulkan_graph *g = r->graph;
  gki_vulkan_pushed_step step = {.state = address_of(g, g->state_at), .slots = g->slots.at,
                                 .cancelled = g->shared_block->address + offsetof(gki_vulkan_shared, cancelled)};
  _Static_assert(sizeof step.words == GKW_STEP_WORDS * sizeof(uint32_t), "as gk_points_step makes them");
  (void)gk_points_step(g->points, run, step.words);
  g->device->driver.CmdPushConstants(r->commands, g->device->layout, VK_SHADER_STAGE_COMPUTE_BIT, sizeof(gki_task),
                                     sizeof step, &step);
  r->has_step = true;
}

static void put_step(recorder *r, uint32_t run) {
  if (!r->has_step) push_step(r, run);
  put_barrier(r->graph, r->commands, both(task_writes, gate_reads(r->graph)), task_uses);
  dispatch(r, r->graph->steps[run], NULL);
}

/* Behind runs that were on the device together; count 0: behind none. */
static void put_walk(recorder *r, const uint32_t *runs, uint32_t count) {
  const gki_vulkan_graph *g = r->graph;
  gki_vulkan_control control = {
    .points = address_of(g, g->points_at), .state = address_of(g, g->state_at), .gates = address_of(g, g->gates_at),
    .slots = g->slots.at, .cancelled = g->shared_block->address + offsetof(gki_vulkan_shared, cancelled)};
  put_barrier(g, r->commands, both(task_writes, gate_reads(g)), task_uses);
  const uint32_t last = count ? count - 1 : 0;
  for (uint32_t k = 0; k <= last; ++k) {
    control.run = count ? g->points->runs[runs[k] & ~GK_AHEAD_BESIDE] : GKW_NONE;
    control.walks = k == last;
    dispatch(r, g->control, &control);
    if (g->gate == GKI_VULKAN_GRID) {
      put_barrier(g, r->commands, task_writes, task_uses);
      dispatch(r, g->grids->pipeline, &control);
    }
    if (!control.walks) put_barrier(g, r->commands, task_writes, task_uses);
  }
}

/* Lets all that follows see what the control shader wrote. */
static void end_control(recorder *r) {
  const gki_vulkan_graph *g = r->graph;
  put_barrier(g, r->commands, task_writes, both(both(task_uses, gate_reads(g)), copy_reads));
  r->has_tasks = false;
}

/* The nodes from `begin` to `end` of a run. Its word gates them and, behind the last, its control shader. That changes
 * the word as the last command of the gate, so it doesn't matter when a driver reads the word. */
static void put_run(recorder *r, uint32_t run, uint32_t begin, uint32_t end) {
  const gki_vulkan_graph *g = r->graph;
  const bool has_control = g->points && end == g->plan->runs[run].end;
  if (g->points) begin_gate(r, words_of(g, run) + GKW_TASKS);
  if (has_control && g->steps[run]) push_step(r, run);
  put_part(r, run, begin, end);
  if (has_control && g->steps[run]) put_step(r, run);
  else if (has_control) put_walk(r, &run, 1);
  end_gate(r);
  if (has_control) end_control(r);
}

static void put_copy(const recorder *r, uint32_t copy) {
  const gki_vulkan_graph *g = r->graph;
  const size_t bytes = g->points->state_count * sizeof(uint32_t);
  const VkBufferCopy range = {.srcOffset = g->block->offset + g->state_at, .size = bytes,
                              .dstOffset = g->shared_block->offset + sizeof(gki_vulkan_shared) + copy * bytes};
  g->device->driver.CmdCopyBuffer(r->commands, g->block->buffer, g->shared_block->buffer, 1, &range);
}

/* ---- pieces ------------------------------------------------------------------------------------------------------ */

static gk_result begin(gki_vulkan_graph *g, VkCommandBuffer *commands) {
  gki_vulkan_device *d = g->device;
  const VkCommandBufferAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                            .commandPool = g->pool, .commandBufferCount = 1};
  gk_result result = GK_OK;
  if (!*commands)
    result = gki_vulkan_check(d, d->driver.AllocateCommandBuffers(d->device, &info, commands),
                              "vkAllocateCommandBuffers");
  if (result != GK_OK) return result;
  const VkCommandBufferBeginInfo how = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                        .flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT};
  return gki_vulkan_check(d, d->driver.BeginCommandBuffer(*commands, &how), "vkBeginCommandBuffer");
}

/* Later commands, and the host, see all that these wrote. */
static gk_result end(const recorder *r) {
  const gki_vulkan_graph *g = r->graph;
  const scope later = both(both(task_uses, gate_reads(g)), both(copy_reads, copy_writes));
  put_barrier(g, r->commands, both(both(task_writes, gate_reads(g)), copy_writes), both(later, host_reads));
  return gki_vulkan_check(g->device, g->device->driver.EndCommandBuffer(r->commands), "vkEndCommandBuffer");
}

static void free_commands(const gki_vulkan_graph *g, VkCommandBuffer *commands) {
  if (*commands) g->device->driver.FreeCommandBuffers(g->device->device, g->pool, 1, commands);
  *commands = VK_NULL_HANDLE;
}

gk_result gki_vulkan_record_part(gki_vulkan_graph *g, uint32_t run, gki_vulkan_part *part) {
  gk_result result = begin(g, &part->commands);
  recorder r = {.graph = g, .commands = part->commands};
  if (result == GK_OK) {
    put_run(&r, run, part->begin, part->end);
    result = end(&r);
  }
  if (result != GK_OK) free_commands(g, &part->commands); /* else it would be submitted as it is */
  return result;
}

static gk_result record_piece(gki_vulkan_graph *g, gki_vulkan_piece *piece) {
  const gk_result result = begin(g, &piece->commands);
  if (result != GK_OK) return result;
  recorder r = {.graph = g, .commands = piece->commands};
  for (uint32_t at = 0, next; at < piece->count; at = next) {
    const uint32_t *runs = piece->entries + at;
    for (next = at + 1; next < piece->count && (piece->entries[next] & GK_AHEAD_BESIDE) &&
                        piece->entries[next] != GK_NONE;) ++next;
    const uint32_t count = runs[0] == GK_NONE ? 0 : next - at;
    if (count == 1) {
      const uint32_t run = runs[0] & ~GK_AHEAD_BESIDE;
      put_run(&r, run, g->plan->runs[run].begin, g->plan->runs[run].end);
      continue;
    }
    put_runs_beside(&r, runs, count);
    put_walk(&r, runs, count);
    end_control(&r);
  }
  if (piece->copy != GK_NONE) put_copy(&r, piece->copy);
  return end(&r);
}

static void forget_piece(const gki_vulkan_graph *g, gki_vulkan_piece *piece) {
  free_commands(g, &piece->commands);
  gk_host_free(piece->entries);
  *piece = (gki_vulkan_piece){0};
}

void gki_vulkan_forget(gki_vulkan_graph *g) {
  for (uint32_t k = 0; k < g->piece_count; ++k) forget_piece(g, &g->pieces[k]);
  for (uint32_t k = 0; g->parts && k < g->parts_at[g->plan->run_count]; ++k) free_commands(g, &g->parts[k].commands);
}

static bool is_for(const gki_vulkan_piece *piece, const uint32_t *entries, uint32_t count, uint32_t copy) {
  return piece->commands && piece->count == count && piece->copy == copy &&
         (count == 0 || memcmp(piece->entries, entries, count * sizeof *entries) == 0);
}

/* Batched: the run's own place. Ahead: the place that wasn't used for the longest time; the tapes under way are used
 * later than that. */
static gki_vulkan_piece *place_for(const gki_vulkan_graph *g, const uint32_t *entries, uint32_t count, uint32_t copy) {
  if (!g->points) return &g->pieces[entries[0]];
  gki_vulkan_piece *oldest = &g->pieces[0];
  for (uint32_t k = 0; k < g->piece_count; ++k) {
    if (is_for(&g->pieces[k], entries, count, copy)) return &g->pieces[k];
    if (g->pieces[k].used < oldest->used) oldest = &g->pieces[k];
  }
  return oldest;
}

gk_result gki_vulkan_piece_of(gki_vulkan_graph *g, const uint32_t *entries, uint32_t count, uint32_t copy,
                              VkCommandBuffer *commands) {
  gki_vulkan_piece *piece = place_for(g, entries, count, copy);
  gk_result result = GK_OK;
  if (!is_for(piece, entries, count, copy)) {
    forget_piece(g, piece);
    piece->entries = gki_array((size_t)count + 1, sizeof *entries, "the entries of a tape");
    if (!piece->entries) return GK_ERROR_MEMORY;
    if (count) memcpy(piece->entries, entries, count * sizeof *entries);
    piece->count = count;
    piece->copy = copy;
    result = record_piece(g, piece);
    if (result != GK_OK) forget_piece(g, piece);
  }
  piece->used = ++g->uses;
  *commands = piece->commands;
  return result;
}

gk_result gki_vulkan_record_upload(gki_vulkan_graph *g, const VkBufferCopy *ranges, uint32_t count) {
  gk_result result = begin(g, &g->upload);
  if (result == GK_OK) {
    g->device->driver.CmdCopyBuffer(g->upload, g->staging->buffer, g->block->buffer, count, ranges);
    result = end(&(recorder){.graph = g, .commands = g->upload});
  }
  if (result != GK_OK) free_commands(g, &g->upload);
  return result;
}
