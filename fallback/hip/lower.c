#include "base/error.h"
#include "hip/graphs.h"
#include "plan/node.h"
#include <string.h>

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static gk_result make_event(gki_hip_graph *g, hipEvent_t *event) {
  hipEvent_t made;
  const gk_result result = gki_hip_result(
      g->device->driver, g->device->driver->hipEventCreateWithFlags(&made, GKI_HIP_EVENT_BLOCKING_SYNC |
                                                                       GKI_HIP_EVENT_DISABLE_TIMING),
      "hipEventCreateWithFlags for graph %s", g->plan->name);
  if (result == GK_OK) *event = made;
  return result;
}

static gk_result alloc(gki_hip_graph *g, size_t bytes, gk_memory kind, void *memory) {
  void *taken = NULL;
  const gk_result result = gki_hip_alloc_raw(g->device, bytes, kind, &taken);
  memcpy(memory, &taken, sizeof taken);
  return result;
}

/* The host's side of `block` begins zeroed but for the table of points, which stays the same. */
static void lay_out(gki_hip_graph *g, size_t table_bytes) {
  const size_t state = g->points ? g->points->state_count * sizeof(uint32_t) : 0;
  const size_t points = g->points ? g->points->word_count * sizeof(uint32_t) : 0;
  g->control_at = gki_struct_align(state);
  g->table_at = gki_struct_align(g->control_at + sizeof(gki_task_control));
  g->points_at = gki_struct_align(g->table_at + table_bytes);
  g->bytes = g->points_at + points;
}

static gk_result make_memory(gki_hip_graph *g) {
  size_t table_bytes;
  gk_result result = gki_slot_table_make(&g->slots, g->plan, 1, &g->arena, &table_bytes);
  if (result != GK_OK) return result;
  lay_out(g, table_bytes);
  const size_t states = gki_struct_align(g->points ? GKI_HIP_TAPES * g->points->state_count * sizeof(uint32_t) : 0);
  const size_t head = gki_struct_align(sizeof *g->shared), all = head + states + g->bytes;
  result = alloc(g, g->bytes, GK_DEVICE_MEMORY, &g->block);
  if (result == GK_OK) result = alloc(g, all, GK_HOST_MEMORY, &g->shared);
  if (result != GK_OK) return result;
  memset(g->shared, 0, all);
  g->states = (unsigned char *)g->shared + head;
  g->image = g->states + states;
  if (g->points) memcpy(g->image + g->points_at, g->points->table, g->points->word_count * sizeof(uint32_t));
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
  size_t most = 1;
  g->kernels = gki_arena_alloc(&g->arena, plan->node_count, sizeof *g->kernels);
  if (!g->kernels) return gki_fail_memory("a graph's kernels", plan->node_count * sizeof *g->kernels);
  for (uint32_t k = 0; k < plan->node_count; ++k) {
    const gk_node *node = &plan->nodes[k];
    if (node->op == GK_OP_KERNEL) g->kernels[k] = code[k];
    if (node->op == GK_OP_COPY) g->kernels[k] = &g->device->copy;
    if (node->op == GK_OP_FILL) g->kernels[k] = &g->device->fill;
    const uint64_t bytes = node->handwritten ? gki_param_places(node->kernel, NULL) : 0;
    if (bytes > most) most = (size_t)bytes;
  }
  g->packed = gki_arena_alloc(&g->arena, most, 1);
  if (!g->packed) return gki_fail_memory("the arguments of a kernel", most);
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
