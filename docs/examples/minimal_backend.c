/* A complete backend outside gk's tree: one thread, host memory, every construct. docs/backend-author.md explains it.
 *
 *   cc -std=c11 -shared -fPIC minimal_backend.c $(pkg-config --cflags --libs gk) -o libserial.so
 *   GK_MODULES=./libserial.so GK_BACKEND=serial ./a-program-of-yours */
#include <gk_backend.h>
#include <stdlib.h>
#include <string.h>

typedef struct device { int unused; } device;
typedef struct graph { const gk_plan *plan; } graph;

const gk_backend *gk_backend_export(void);

/* ---- the device -------------------------------------------------------------------------------------------------- */

static gk_result device_open(void *state, const gk_device_desc *desc) {
  (void)state;
  if (desc->next) return gk_fail(GK_ERROR_INVALID, "backend serial knows no extensions; clear gk_device_desc.next");
  if (desc->ordinal == 0) return GK_OK;
  return gk_fail(GK_ERROR_NO_DEVICE, "backend serial has one device, ordinal 0, and no %d", desc->ordinal);
}

static void device_close(void *state) { (void)state; }

static void device_describe(void *state, gk_device_info *info) {
  static const gk_capability capabilities[] = {
    {"KERNEL", GK_NATIVE, "the host function is called once with all items"},
    {"DO_WHILE", GK_NATIVE, "gk's walker reads the flag where it lies"},
    {"CHECKPOINT", GK_NATIVE, "gk's walker reads the flag where it lies"},
    {"CALL", GK_NATIVE, "called in its place"},
    {"PARALLEL", GK_IN_SERIES, "there is one thread"},
    {"LAUNCH_ON", GK_REFUSED, "there are no streams"},
  };
  (void)state;
  info->name = "one thread of the host";
  info->driver = "none";
  info->capability_count = GK_COUNT(capabilities);
  info->capabilities = capabilities;
}

static gk_result memory_alloc(void *state, size_t bytes, gk_memory kind, void **memory) {
  (void)state, (void)kind;
  *memory = bytes < PTRDIFF_MAX ? aligned_alloc(256, (bytes + 255) / 256 * 256) : NULL;
  return *memory ? GK_OK : gk_fail(GK_ERROR_MEMORY, "backend serial: malloc has no %zu bytes left", bytes);
}

static void memory_free(void *state, void *memory) {
  (void)state;
  free(memory);
}

static gk_result memory_copy(void *state, gk_direction direction, void *to, const void *from, size_t bytes) {
  (void)state;
  if (direction == GK_ZERO) memset(to, 0, bytes);
  else memmove(to, from, bytes);
  return GK_OK;
}

static void *memory_host_address(void *state, void *memory) {
  (void)state;
  return memory;
}

/* ---- tasks ------------------------------------------------------------------------------------------------------- */

static bool kernel_takes(const gk_kernel *kernel) { return kernel->host != NULL; }

/* Items along one dimension: a number, or an int32 that is read now. If it is below 1, the task does nothing. */
static int64_t extent_of(const gk_plan *plan, const gk_value *values, const gk_node *node, int dimension) {
  uint32_t slot = node->items[dimension];
  if (!slot) return 1;
  const gk_value value = values[slot];
  switch (plan->slots[slot].type) {
  case GK_I32: return value.i32;
  case GK_U32: return value.u32;
  case GK_I64: return value.i64;
  default: return *(const int32_t *)(const void *)((const char *)value.ptr + (dimension == 0 ? node->offset : 0));
  }
}

/* A sum parameter gets separate zeroed memory for one call. Its sum is then added to the user's memory. */
static void add_sum(const gk_param *param, void *to, const double *from) {
  if (strcmp(param->element, "double") == 0) *(double *)to += *from;
  else if (strcmp(param->element, "float") == 0) *(float *)to += *(const float *)(const void *)from;
  else *(uint32_t *)to += *(const uint32_t *)(const void *)from;
}

/* The number of items of a task. A bad count fails the launch. */
static gk_result count(const gk_plan *plan, const gk_launch_args *launch, uint32_t at, int64_t extent[3],
                       uint64_t *items) {
  const gk_node *node = &plan->nodes[at];
  const gk_node moves = {.items = {node->items[0]}}; /* in a COPY or FILL the offset is the memory's, not the count's */
  for (int d = 0; d < 3; ++d)
    extent[d] = extent_of(plan, launch->values, node->op == GK_OP_KERNEL ? node : &moves, d);
  return gk_check_count(plan, at, launch, extent, items);
}

static gk_result run_kernel(const gk_plan *plan, const gk_value *values, const gk_node *node, const int64_t extent[3],
                            uint64_t count) {
  const gk_kernel *kernel = node->kernel;
  gk_value args[GK_MAX_ARGS];
  double sums[GK_MAX_ARGS] = {0};
  gk_range items = {0, count, {(uint32_t)extent[0], (uint32_t)extent[1], (uint32_t)extent[2]}};
  for (uint32_t a = 0; a < node->arg_count; ++a) {
    args[a] = values[plan->args[node->args + a]];
    if (kernel->params[a].access == GK_ACCESS_SUM) args[a].ptr = &sums[a];
  }
  kernel->host(args, items);
  for (uint32_t a = 0; a < node->arg_count; ++a)
    if (kernel->params[a].access == GK_ACCESS_SUM)
      add_sum(&kernel->params[a], values[plan->args[node->args + a]].ptr, &sums[a]);
  return GK_OK;
}

static gk_result run_call(const gk_plan *plan, const gk_value *values, const gk_node *node) {
  gk_value args[GK_MAX_ARGS];
  for (uint32_t a = 0; a < node->arg_count; ++a) args[a] = values[plan->args[node->args + a]];
  gk_result result = node->call(args, NULL);
  return result == GK_OK ? GK_OK : gk_fail(result, "task %u (%s): the call failed", (unsigned)node->source, node->name);
}

/* COPY and FILL count elements of the slot that they write. */
static void run_memory(const gk_plan *plan, const gk_value *values, const gk_node *node, uint64_t count) {
  uint32_t to = plan->args[node->args];
  size_t element = plan->slots[to].element_bytes ? plan->slots[to].element_bytes : 1;
  char *at = (char *)values[to].ptr + node->offset;
  if (node->op == GK_OP_COPY)
    memmove(at, (const char *)values[plan->args[node->args + 1]].ptr + node->from_offset, count * element);
  else
    for (size_t k = 0; k < count * element; k += 4) memcpy(at + k, &node->pattern, 4);
}

/* ---- graphs ------------------------------------------------------------------------------------------------------ */

static gk_result graph_lower(void *state, void *at, const gk_plan *plan, void *const *code, gk_mode *mode) {
  (void)state, (void)code;
  ((graph *)at)->plan = plan;
  *mode = GK_MODE_IN_PROCESS;
  return GK_OK;
}

static void graph_drop(void *at) { (void)at; }

static gk_result graph_run(void *at, const gk_launch_args *launch, gk_launch_result *launch_result) {
  const gk_plan *plan = ((graph *)at)->plan;
  const gk_value *values = launch->values;
  gk_walk walk;
  gk_walk_start(&walk, plan, launch, 0, launch_result);
  gk_step step = gk_walk_next(&walk, 0);
  while (step.kind != GK_STEP_END) {
    int64_t answer = 0;
    gk_result result = GK_OK;
    if (step.kind == GK_STEP_FLAG) {
      const gk_node *node = &plan->nodes[step.at];
      answer = *(const int32_t *)(const void *)((const char *)values[node->flag].ptr + node->offset);
    } else
      for (uint32_t k = plan->runs[step.at].begin; k < plan->runs[step.at].end && result == GK_OK; ++k) {
        const gk_node *node = &plan->nodes[k];
        const bool is_counted = node->op == GK_OP_KERNEL || node->op == GK_OP_COPY || node->op == GK_OP_FILL;
        int64_t extent[3];
        uint64_t items = 0;
        if (is_counted) result = count(plan, launch, k, extent, &items);
        if (node->op == GK_OP_CALL || node->op == GK_OP_CALL_HOST) result = run_call(plan, values, node);
        else if (items > 0 && node->op == GK_OP_KERNEL) result = run_kernel(plan, values, node, extent, items);
        else if (items > 0) run_memory(plan, values, node, items);
      }
    if (result != GK_OK) return result;
    step = gk_walk_next(&walk, answer);
  }
  return GK_OK;
}

static const gk_backend serial = {
  .abi = GK_BACKEND_ABI,
  .bytes = sizeof(gk_backend),
  .name = "serial",
  .device_bytes = sizeof(device),
  .graph_bytes = sizeof(graph),
  .open = device_open,
  .close = device_close,
  .describe = device_describe,
  .alloc = memory_alloc,
  .free = memory_free,
  .copy = memory_copy,
  .host_address = memory_host_address,
  .takes = kernel_takes,
  .lower = graph_lower,
  .drop = graph_drop,
  .run = graph_run,
};

const gk_backend *gk_backend_export(void) { return &serial; }
