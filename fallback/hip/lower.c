#include "base/error.h"
#include "hip/graph.h"
#include "plan/node.h"
#include <string.h>

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static gk_result make_event(gki_hip_graph *g, hipEvent_t *event) {
  enum { FLAGS = GKI_HIP_EVENT_BLOCKING_SYNC | GKI_HIP_EVENT_DISABLE_TIMING };
  const hipError_t answer = g->device->driver->hipEventCreateWithFlags(event, FLAGS);
  if (answer != hipSuccess) *event = NULL;
  return gki_hip_result(g->device->driver, answer, "hipEventCreateWithFlags for graph %s", g->plan->name);
}

/* The host's side of `block` begins zeroed but for the table of points, which stays the same. */
static gk_result make_memory(gki_hip_graph *g) {
  const size_t state = g->points ? g->points->state_count * sizeof(uint32_t) : 0;
  const size_t points = g->points ? g->points->word_count * sizeof(uint32_t) : 0;
  const size_t head = gki_struct_align(sizeof *g->shared), states = gki_struct_align(GKI_HIP_TAPES * state);
  size_t table_bytes;
  void *shared;
  gk_result result = gki_slot_table_make(&g->slots, g->plan, 1, &g->arena, &table_bytes);
  if (result != GK_OK) return result;
  g->control_at = gki_struct_align(state);
  g->table_at = gki_struct_align(g->control_at + sizeof(gki_task_control));
  g->points_at = gki_struct_align(g->table_at + table_bytes);
  g->bytes = g->points_at + points;
  result = gki_hip_alloc_raw(g->device, g->bytes, GK_DEVICE_MEMORY, &g->block);
  if (result == GK_OK) result = gki_hip_alloc_raw(g->device, head + states + g->bytes, GK_HOST_MEMORY, &shared);
  if (result != GK_OK) return result;
  g->shared = memset(shared, 0, head + states + g->bytes);
  g->states = (uint32_t *)(void *)((unsigned char *)g->shared + head);
  g->image = (unsigned char *)g->shared + head + states;
  if (g->points) memcpy(g->image + g->points_at, g->points->table, points);
  g->slots.control = (uintptr_t)g->block + g->control_at;
  g->slots.at = (uintptr_t)g->block + g->table_at;
  g->slots.ring = g->image + g->table_at;
  result = make_event(g, &g->event);
  for (int k = 0; g->points && k < GKI_HIP_TAPES && result == GK_OK; ++k) result = make_event(g, &g->ends[k]);
  return result;
}

/* ---- tasks ------------------------------------------------------------------------------------------------------- */

static gk_result find_kernels(gki_hip_graph *g, void *const *code) {
  const gk_plan *plan = g->plan;
  g->kernels = gki_arena_alloc(&g->arena, plan->node_count, sizeof *g->kernels);
  if (!g->kernels) return gki_fail_memory("a graph's kernels", plan->node_count * sizeof *g->kernels);
  for (uint32_t k = 0; k < plan->node_count; ++k) {
    const gk_node *node = &plan->nodes[k];
    if (node->op == GK_OP_KERNEL) g->kernels[k] = code[k];
    if (node->op == GK_OP_COPY) g->kernels[k] = &g->device->copy;
    if (node->op == GK_OP_FILL) g->kernels[k] = &g->device->fill;
  }
  const gk_result result = gki_param_make(&g->params, &g->slots, NULL, &g->arena);
  for (uint32_t n = 0; n < g->params.count; ++n) {
    const gki_hip_kernel *kernel = g->kernels[g->params.tasks[n].node];
    g->params.tasks[n].per_block = kernel->per_block;
    g->params.tasks[n].most_blocks = kernel->most;
  }
  return result;
}

gk_result gki_hip_lower(void *device, void *graph, const gk_plan *plan, void *const *code, gk_mode *mode) {
  gki_hip_graph *g = graph;
  gki_hip_before before;
  g->device = device;
  g->plan = plan;
  g->last = GK_NONE;
  g->stream = g->device->stream;
  gk_result result = gki_may_go_ahead(plan) ? gk_plan_points(plan, &g->points) : GK_OK;
  *mode = g->points ? GK_MODE_AHEAD : GK_MODE_BATCHED;
  if (result != GK_OK) return result;
  result = gki_hip_enter(g->device, &before);
  if (result == GK_OK) result = make_memory(g);
  if (result == GK_OK) result = find_kernels(g, code);
  if (result == GK_OK) result = gki_hip_make_execs(g);
  return gki_hip_leave(g->device, before, result);
}

void gki_hip_drop(void *graph) {
  gki_hip_graph *g = graph;
  gki_hip_before before;
  if (g->device && gki_hip_enter_to_free(g->device, &before)) {
    const gki_hip_driver *driver = g->device->driver;
    (void)gki_hip_drain(g);
    gki_hip_drop_execs(g);
    if (g->event) (void)driver->hipEventDestroy(g->event);
    for (int k = 0; k < GKI_HIP_TAPES; ++k)
      if (g->ends[k]) (void)driver->hipEventDestroy(g->ends[k]);
    gki_hip_free_raw(g->device, GK_DEVICE_MEMORY, g->block);
    gki_hip_free_raw(g->device, GK_HOST_MEMORY, g->shared);
    (void)gki_hip_leave(g->device, before, GK_OK);
  }
  gki_arena_free(&g->arena);
}

void *gki_hip_pass(void *graph, uint32_t node) {
  const gki_hip_graph *g = graph;
  return (uint32_t *)g->block + gk_points_pass(g->points, node);
}
