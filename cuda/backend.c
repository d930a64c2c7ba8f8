#include "cuda/backend.h"
#include "base/error.h"
#include "base/extension.h"
#include "cuda/compile.h"
#include "cuda/embed.h"
#include "cuda/facts.h"
#include "cuda/gated.h"
#include "cuda/handwritten.h"
#include "cuda/kernels.h"
#include "cuda/launch.h"
#include "cuda/lower.h"
#include "cuda/memory.h"
#include "cuda/open.h"
#include "cuda/outline.h"
#include "cuda/pool.h"
#include "cuda/probe.h"
#include "kernel/images.h"
#include "plan/plan.h"
#include <stdio.h>
#include <string.h>

/* ---- the device -------------------------------------------------------------------------------------------------- */

static const gki_extension_kind sharing_kind = {GK_CUDA_SHARING, sizeof(gk_cuda_sharing), "cuda", "gk_cuda_sharing",
                                                "GK_CUDA_SHARE"};

static gk_result open_device(void *at, const gk_device_desc *desc) {
  gki_cuda_device *device = at;
  const gk_extension *extension;
  gk_result result = gki_extension_find(desc->next, &sharing_kind, &extension);
  const gk_cuda_sharing *sharing = (const gk_cuda_sharing *)extension;
  if (result == GK_OK) result = gki_cuda_open(device, desc->ordinal, sharing);
  if (result == GK_OK) result = gki_cuda_enter(device);
  if (result != GK_OK) return result;
  result = gki_cuda_load_builtin(device);
  if (result == GK_OK)
    result = gki_cuda_probe(device->driver, device->device, device->context, device->builtin.module,
                            device->builtin.refused, &device->caps);
  gki_cuda_leave(device);
  return result;
}

static void close_device(void *at) {
  gki_cuda_drop_builtin(at);
  gki_cuda_close(at);
}

/* The capability report if the device decides. */
static const gk_capability native[] = {
  {"KERNEL", GK_NATIVE, "A kernel node; it finds its arguments and item counts in a table on the device, so that a "
                        "slot bound anew costs one copy, whatever uses it. One with code by hand has them in itself, "
                        "and is updated."},
  {"COPY", GK_NATIVE, "By a kernel of gk's, which reads its count when it runs."},
  {"FILL", GK_NATIVE, "By a kernel of gk's, as COPY."},
  {"CALL", GK_NATIVE, "Recorded into the graph by stream capture, and again when one of its slots was bound anew."},
  {"CALL_HOST", GK_ON_HOST, "In graphs of GK_HOST_GATED, when the work before it has ended. Others are refused, since "
                            "the device decides without the host."},
  {"LIST", GK_NATIVE, "Written out when the graph is made."},
  {"DO_WHILE", GK_NATIVE, "A WHILE node; one small kernel at the end of the pass reads the flag and sets its handle."},
  {"WHILE", GK_NATIVE, "As DO_WHILE, and what comes before reads the flag first."},
  {"REPEAT", GK_NATIVE, "As WHILE; what comes before reads the count, and the kernel at the end of the pass counts."},
  {"IF", GK_NATIVE, "An IF node; what comes before reads the flag and sets its handle."},
  {"SWITCH", GK_NATIVE, "A SWITCH node."},
  {"CHECKPOINT", GK_NATIVE, "One kernel at its end reads the flag; if it yields, it closes all that comes later."},
  {"YIELD", GK_NATIVE, "One kernel closes all that comes later."},
  {"PARALLEL", GK_NATIVE, "Branches of the graph, with loops and branches too."},
  {"SECTION", GK_NATIVE, "With loops and branches too."},
  {"SUM", GK_NATIVE, "Added up per warp, then by atomics: the order, and so the last bits of floats, is open."},
  {"ALWAYS", GK_NATIVE, "A node that nothing closes."},
  {"CANCEL", GK_NATIVE, "Seen at the next loop end or checkpoint, by a word in the host's memory."},
  {"LAUNCH_ON", GK_NATIVE, "On any stream of the device's context, with an event behind the launch."},
};
_Static_assert(GK_COUNT(native) == GKI_CUDA_CAPABILITIES, "the device has an entry for each");

/* The lines that differ if the host decides. describe_gated changes those whose `how` is GK_BATCHED. */
static const gk_capability gated[] = {
  {"DO_WHILE", GK_BATCHED, ""},
  {"CALL_HOST", GK_ON_HOST, "When the work before it has ended. A list without loops, branches and checkpoints needs "
                            "GK_HOST_GATED for it."},
  {"WHILE", GK_BATCHED, "As DO_WHILE."},
  {"REPEAT", GK_BATCHED, "As DO_WHILE; it counts its passes and reads no flag."},
  {"IF", GK_BATCHED, "As DO_WHILE; both arms are enqueued."},
  {"SWITCH", GK_BATCHED, "As IF."},
  {"CHECKPOINT", GK_BATCHED, "As DO_WHILE."},
  {"YIELD", GK_BATCHED, "As DO_WHILE."},
  {"PARALLEL", GK_IN_SERIES, "Straight sections are branches of a graph; those with loops or branches go one after the "
                             "other."},
  {"SECTION", GK_IN_SERIES, "As PARALLEL."},
  {"ALWAYS", GK_NATIVE, "A graph of its own."},
  {"CANCEL", GK_NATIVE, "Seen at the next loop end or checkpoint, by a word in the host's memory."},
  {"LAUNCH_ON", GK_ON_HOST, "The call returns when the launch is over, so that what the stream gets next follows it."},
};

static gk_capability *line_of(gki_cuda_device *device, const char *construct) {
  gk_capability *line = device->capabilities;
  while (strcmp(line->construct, construct) != 0) ++line;
  return line;
}

static void describe_gated(gki_cuda_device *device) {
  for (size_t k = 0; k < GK_COUNT(gated); ++k) {
    gk_capability *line = line_of(device, gated[k].construct);
    *line = gated[k];
    if (device->ahead || line->how != GK_BATCHED) continue;
    line->how = GK_ON_HOST;
    line->why = "As DO_WHILE.";
  }
  snprintf(device->why_loops, sizeof device->why_loops, "%s: %s.",
           device->ahead ? "Several passes are enqueued at once; a small kernel behind each run of tasks reads the "
                           "flag, and what doesn't come is skipped"
                         : "The host waits for the flag, reads it and decides",
           device->caps.why);
  line_of(device, "DO_WHILE")->why = device->why_loops;
  if (!device->ahead)
    *line_of(device, "CANCEL") =
        (gk_capability){"CANCEL", GK_ON_HOST, "Seen at the next loop end or checkpoint, by the host."};
}

static void describe_native(gki_cuda_device *device) {
  const uint32_t quirks = device->caps.quirks;
  if (quirks & GKI_CUDA_NO_SWITCH)
    line_of(device, "SWITCH")->why =
        device->driver->version < 13000
            ? "An IF node per case: SWITCH nodes came with CUDA 12.8, and their bodies went wrong before 13.0."
        : device->caps.answers[GKI_CUDA_P9A] == GKI_CUDA_DECLINED
            ? "An IF node per case: GK_CUDA_PROBE wants it so (P9a)."
            : "An IF node per case: this driver was seen to run SWITCH nodes wrongly.";
  if (quirks & GKI_CUDA_CHAIN_BRANCHES) {
    char why[GKI_CUDA_QUIRKS_BYTES];
    gki_cuda_describe_quirks(&device->caps, GKI_CUDA_CHAIN_BRANCHES, why, sizeof why);
    snprintf(device->why_chained, sizeof device->why_chained,
             "Branches of the graph; those that hold loops or branches go one after the other: %s.", why);
    line_of(device, "PARALLEL")->why = device->why_chained;
  }
  if (quirks & GKI_CUDA_CODE_ON_HOST)
    line_of(device, "KERNEL")->why = "A kernel node; it finds its arguments and item counts in a table on the device. "
                                     "Lists with code by hand that have loops, branches or checkpoints are gated by "
                                     "the host, as this driver doesn't update nodes as those need it (P17a, P17b).";
  if (quirks & GKI_CUDA_TARGET_BY_COPY)
    line_of(device, "CHECKPOINT")->why = "One kernel at its end reads the flag; if it yields, it closes all that comes "
                                         "later. Where a launch resumes is copied to the device before it, as this "
                                         "driver doesn't update nodes as gk needs it.";
  if (!(quirks & GKI_CUDA_QUIRKS_PLAIN)) return;
  char why[GKI_CUDA_QUIRKS_BYTES];
  gki_cuda_describe_quirks(&device->caps, quirks & GKI_CUDA_QUIRKS_PLAIN, why, sizeof why);
  snprintf(device->why_loops, sizeof device->why_loops, "A WHILE node; lists to which it matters get plain "
           "gates, a small kernel more in front of most conditional nodes: %s.", why);
  line_of(device, "DO_WHILE")->why = device->why_loops;
}

static void describe_kernels(gki_cuda_device *device) {
  gki_cuda_compiler compiler;
  char why[sizeof device->no_kernels - 128];
  if (gki_cuda_compiler_find(device->arch, device->driver->version, &compiler, why, sizeof why)) return;
  const bool has_images = gki_images_at(0) != NULL;
  snprintf(device->no_kernels, sizeof device->no_kernels, "%s can't be compiled here: %s.",
           has_images ? "Those that were compiled when the program was built; no others, as they" : "Kernels", why);
  *line_of(device, "KERNEL") = (gk_capability){"KERNEL", has_images ? GK_NATIVE : GK_REFUSED, device->no_kernels};
}

static void describe_transfers(gki_cuda_device *device) {
  gk_capability *copy = line_of(device, "COPY"), *fill = line_of(device, "FILL");
  if (device->transfers) {
    copy->why = "By a kernel of gk's, compiled by NVRTC here, as gk brings no image of it that this driver takes.";
  } else if (!device->builtin.module) {
    *copy = (gk_capability){"COPY", GK_REFUSED, device->no_transfers};
    *fill = (gk_capability){"FILL", GK_REFUSED, "As COPY."};
  }
}

static void describe_calls(gki_cuda_device *device) {
  const char *lacked = device->driver->lacks[GKI_CUDA_FOR_CALLS];
  if (!lacked) return;
  snprintf(device->no_calls, sizeof device->no_calls,
           "The driver has no %s, without which nothing is recorded; install NVIDIA's driver anew.", lacked);
  *line_of(device, "CALL") = (gk_capability){"CALL", GK_REFUSED, device->no_calls};
}

static void describe(void *at, gk_device_info *info) {
  gki_cuda_device *device = at;
  memcpy(device->capabilities, native, sizeof native);
  if (device->caps.conditional) describe_native(device);
  else describe_gated(device);
  describe_kernels(device);
  describe_transfers(device);
  describe_calls(device);
  info->name = device->name;
  info->driver = device->driver_text;
  info->ordinal = device->ordinal;
  info->capability_count = GKI_CUDA_CAPABILITIES;
  info->capabilities = device->capabilities;
}

/* ---- graphs ------------------------------------------------------------------------------------------------------ */

typedef struct any_graph {
  bool is_gated;
  char why[1024]; /* the reason for host-gating */
  union {
    gki_cuda_graph native;
    gki_cuda_gated gated;
  };
} any_graph;

static bool has_handwritten_code(const gk_plan *plan) {
  for (uint32_t k = 0; k < plan->node_count; ++k)
    if (plan->nodes[k].handwritten) return true;
  return false;
}

gki_cuda_graph *gki_cuda_native_of(void *state) {
  any_graph *graph = state;
  return graph->is_gated ? NULL : &graph->native;
}

static bool decides(const gk_plan *plan) {
  bool any = plan->loop_count || plan->checkpoint_count;
  for (uint32_t k = 0; k < plan->node_count && !any; ++k) any = plan->nodes[k].flag != 0;
  return any;
}

/* `why` becomes "" if the device decides, or if there is nothing to decide. */
static void describe_why_gated(const gki_cuda_device *device, const gk_plan *plan, char *why, size_t bytes) {
  why[0] = 0;
  if (plan->bits & GK_ISOLATE) snprintf(why, bytes, "GK_ISOLATE runs each task by itself");
  else if (plan->bits & GK_HOST_GATED) snprintf(why, bytes, "GK_HOST_GATED asks for it");
  else if (!device->caps.conditional && decides(plan)) snprintf(why, bytes, "%s", device->caps.why);
  else if (device->caps.quirks & GKI_CUDA_TARGET_BY_COPY && has_handwritten_code(plan))
    snprintf(why, bytes, "it has kernels with code by hand, whose parameters are in their nodes, and this driver "
             "doesn't update nodes of graphs with conditional nodes");
}

/* Refuses tasks that neither a native nor a host-gated graph can have here. */
static gk_result refuse_tasks(const gki_cuda_device *device, const gk_plan *plan) {
  const char *lacked = device->driver->lacks[GKI_CUDA_FOR_CALLS];
  for (uint32_t k = 0; k < plan->node_count; ++k) {
    const gk_node *node = &plan->nodes[k];
    if (lacked && node->op == GK_OP_CALL)
      return gk_fail(GK_ERROR_UNSUPPORTED, "task %u (%s): library calls can't be recorded, as the CUDA driver has no "
                     "%s; install NVIDIA's driver anew", (unsigned)node->source, node->name, lacked);
    if ((node->op == GK_OP_COPY && !device->copy_kernel.function) ||
        (node->op == GK_OP_FILL && !device->fill_kernel.function))
      return gk_fail(GK_ERROR_UNSUPPORTED, "task %u (%s): COPY and FILL are kernels of gk's own on a GPU, and %s",
                     (unsigned)node->source, node->name, device->no_transfers);
  }
  return GK_OK;
}

static gk_result lower_either(gki_cuda_device *device, void *state, const gk_plan *plan, void *const *code,
                              gk_mode *mode) {
  any_graph *graph = state;
  char *why = graph->why;
  describe_why_gated(device, plan, why, sizeof graph->why);
  gk_result result = refuse_tasks(device, plan);
  if (result == GK_OK) result = gki_cuda_enter(device);
  if (result != GK_OK) return result;
  bool refused = false;
  graph->is_gated = why[0] != 0;
  if (!graph->is_gated) result = gki_plan_refuse_host(plan, "cuda");
  if (!graph->is_gated && result == GK_OK) {
    result = gki_cuda_graph_make(&graph->native, device, plan, code);
    graph->is_gated = refused = result == GK_ERROR_UNSUPPORTED && graph->native.refused[0];
    if (refused) {
      snprintf(why, sizeof graph->why, "%s", graph->native.refused);
      gki_cuda_graph_drop(&graph->native);
      memset(&graph->gated, 0, sizeof graph->gated);
    }
  }
  if (graph->is_gated) {
    gk_log(refused ? GK_LOG_WARN : GK_LOG_INFO, "graph %s: gated by the host: %s", plan->name, why);
    result = gki_cuda_gated_make(&graph->gated, device, plan, code);
  }
  gki_cuda_leave(device);
  *mode = !graph->is_gated             ? GK_MODE_NATIVE
          : graph->gated.ahead.points ? GK_MODE_AHEAD
                                      : GK_MODE_BATCHED;
  return result;
}

gk_result gki_cuda_native(void *state, gki_cuda_graph **found) {
  any_graph *graph = state;
  *found = graph->is_gated ? NULL : &graph->native;
  if (!graph->is_gated) return GK_OK;
  return gk_fail(GK_ERROR_UNSUPPORTED, "graph %s has no graph of CUDA's for the whole of it, as the host gates it: %s",
                 graph->gated.plan->name, graph->why);
}

static void drop(void *state) {
  any_graph *graph = state;
  if (graph->is_gated) gki_cuda_gated_drop(&graph->gated);
  else gki_cuda_graph_drop(&graph->native);
}

/* ---- entries that may find out that the device is lost ----------------------------------------------------------- */

static gk_result alloc(void *device, size_t bytes, gk_memory kind, void **memory) {
  return gki_cuda_detect_loss(device, gki_cuda_alloc(device, bytes, kind, memory));
}

static gk_result copy(void *device, gk_direction direction, void *to, const void *from, size_t bytes) {
  return gki_cuda_detect_loss(device, gki_cuda_copy(device, direction, to, from, bytes));
}

static gk_result load(void *device, const gk_kernel *kernel, void **code) {
  return gki_cuda_detect_loss(device, gki_cuda_load(device, kernel, code));
}

static gk_result lower(void *device, void *state, const gk_plan *plan, void *const *code, gk_mode *mode) {
  return gki_cuda_detect_loss(device, lower_either(device, state, plan, code, mode));
}

static gk_result detect_loss(const any_graph *graph, gk_result result) {
  return gki_cuda_detect_loss(graph->is_gated ? graph->gated.device : graph->native.device, result);
}

static gk_result await_launches(any_graph *graph) {
  if (graph->is_gated) return gki_cuda_gated_await(&graph->gated);
  const CUresult result = gki_cuda_order_wait(graph->native.device, &graph->native.order);
  return gki_cuda_graph_result(graph->native.device, graph->native.plan, result, "waiting for the launches");
}

static gk_result own(void *state, const void *from, size_t kept, size_t bytes, void **memory) {
  any_graph *graph = state;
  gki_cuda_device *device = graph->is_gated ? graph->gated.device : graph->native.device;
  CUdeviceptr taken = 0;
  gk_result result = gki_cuda_enter(device);
  if (result == GK_OK) {
    if (from) result = await_launches(graph);
    if (result == GK_OK) result = gki_cuda_alloc_own(device, (CUdeviceptr)(uintptr_t)from, kept, bytes, &taken);
    gki_cuda_leave(device);
  }
  if (result == GK_OK) *memory = (void *)(uintptr_t)taken;
  return detect_loss(graph, result);
}

static void disown(void *at, void *memory) {
  gki_cuda_device *device = at;
  const CUdeviceptr given = (CUdeviceptr)(uintptr_t)memory;
  const bool entered = gki_cuda_enter_to_free(device), pooled = gki_cuda_free_own(device, given, false);
  if (entered) gki_cuda_leave(device);
  if (!pooled) gki_cuda_free(device, memory);
}

static gk_result launch(void *state, const gk_launch_args *args) {
  any_graph *graph = state;
  return detect_loss(graph, graph->is_gated ? gki_cuda_gated_launch(&graph->gated, args)
                                            : gki_cuda_launch(&graph->native, args));
}

static gk_result wait(void *state, bool block, gk_launch_result *launch_result) {
  any_graph *graph = state;
  return detect_loss(graph, gki_cuda_wait(&graph->native, block, launch_result));
}

static gk_result submit(void *state, uint32_t run) {
  any_graph *graph = state;
  return detect_loss(graph, gki_cuda_gated_submit(&graph->gated, run));
}

static gk_result read_flag(void *state, uint32_t node, int32_t *flag) {
  any_graph *graph = state;
  return detect_loss(graph, gki_cuda_gated_read_flag(&graph->gated, node, flag));
}

static gk_result ahead(void *state, const uint32_t *runs, uint32_t count) {
  any_graph *graph = state;
  return detect_loss(graph, gki_cuda_gated_ahead(&graph->gated, runs, count));
}

static gk_result state_behind(void *at, const uint32_t **words) {
  any_graph *graph = at;
  return detect_loss(graph, gki_cuda_gated_state(&graph->gated, words));
}

static void *pass(void *state, uint32_t node) {
  const any_graph *graph = state;
  const gki_cuda_graph *g = &graph->native;
  const gki_cuda_ahead *ahead = &graph->gated.ahead;
  const CUdeviceptr at = graph->is_gated ? ahead->state + gk_points_pass(ahead->points, node) * sizeof(uint32_t)
                                         : g->state + gki_cuda_entry_at(&g->shared, g->plan->nodes[node].loop);
  return (void *)(uintptr_t)at;
}

static char *dump(void *state, const char *format) {
  const any_graph *graph = state;
  return graph->is_gated ? gki_cuda_outline_gated(&graph->gated, graph->why, format)
                         : gki_cuda_outline_native(&graph->native, format);
}

static const void *query(const char *name) {
  if (strcmp(name, GKI_EMBEDDER) == 0) return &gki_cuda_embedder;
  return strcmp(name, GK_FACTS) == 0 ? &gki_cuda_facts : NULL;
}

static gk_result cancel(void *state) {
  any_graph *graph = state;
  if (!graph->is_gated) return gki_cuda_cancel(&graph->native);
  gki_cuda_ahead_cancel(&graph->gated.ahead);
  return GK_OK;
}

static gk_result alive(void *device) { return gki_cuda_refuse_lost(device); }

static bool shares(void *device) { return ((const gki_cuda_device *)device)->shares_stream; }

const gk_backend gki_cuda = {
  .abi = GK_BACKEND_ABI,
  .bytes = sizeof(gk_backend),
  .name = "cuda",
  .bits = GK_BACKEND_STREAMS,
  .device_bytes = sizeof(gki_cuda_device),
  .graph_bytes = sizeof(any_graph),
  .open = open_device,
  .close = close_device,
  .describe = describe,
  .alloc = alloc,
  .free = gki_cuda_free,
  .copy = copy,
  .host_address = gki_cuda_host_address,
  .load = load,
  .unload = gki_cuda_unload,
  .lower = lower,
  .drop = drop,
  .launch = launch,
  .wait = wait,
  .cancel = cancel,
  .submit = submit,
  .read_flag = read_flag,
  .ahead = ahead,
  .state = state_behind,
  .dump = dump,
  .query = query,
  .shares = shares,
  .reaches = gki_cuda_reaches,
  .alive = alive,
  .own = own,
  .disown = disown,
  .code = gki_cuda_code,
  .pass = pass,
};
