#include "backend.h"
#include "launch.h"
#include <stdio.h>
#include <string.h>

/* ---- the device -------------------------------------------------------------------------------------------------- */

static gk_result open_device(void *at, const gk_device_desc *desc) {
  if (desc->next)
    return gk_fail(GK_ERROR_INVALID, "backend cuda: it knows no extension yet (number %u was given); leave `next` NULL",
                   (unsigned)desc->next->id);
  gki_cuda_device *device = at;
  gk_result result = gki_cuda_open(device, desc->ordinal);
  if (result == GK_OK) result = gki_cuda_load_own(device);
  return result;
}

static void close_device(void *at) {
  gki_cuda_drop_own(at);
  gki_cuda_close(at);
}

static void describe(void *at, gk_device_info *info) {
  static const gk_capability native[] = {
    {"KERNEL", GK_NATIVE, "A kernel node; it finds its arguments and item counts in a table on the device, so that a slot "
                          "bound anew costs one copy, whatever uses it."},
    {"COPY", GK_NATIVE, "By a kernel of gk's, which reads its count when it runs."},
    {"FILL", GK_NATIVE, "By a kernel of gk's, as COPY."},
    {"CALL", GK_NATIVE, "Recorded into the graph by stream capture, and again when one of its slots was bound anew."},
    {"LIST", GK_NATIVE, "Written out when the graph is made."},
    {"DO_WHILE", GK_NATIVE, "A WHILE node; one small kernel at the end of the pass reads the flag and sets its handle."},
    {"WHILE", GK_NATIVE, "As DO_WHILE, and what comes before reads the flag first."},
    {"IF", GK_NATIVE, "An IF node; what comes before reads the flag and sets its handle."},
    {"SWITCH", GK_NATIVE, "A SWITCH node."},
    {"CHECKPOINT", GK_NATIVE, "One kernel at its end reads the flag; if it yields, it closes all that comes later."},
    {"PARALLEL", GK_NATIVE, "Branches of the graph, with loops and branches too."},
    {"SECTION", GK_NATIVE, "With loops and branches too."},
    {"SUM", GK_NATIVE, "Added up per warp, then by atomics: the order, and so the last bits of floats, is open."},
    {"ALWAYS", GK_NATIVE, "A node that nothing closes."},
    {"CANCEL", GK_NATIVE, "Seen at the next loop end or checkpoint, by a word in the host's memory."},
    {"LAUNCH_ON", GK_REFUSED, "Not yet: launches go on the device's own stream."},
  };
  gki_cuda_device *device = at;
  _Static_assert(GK_COUNT(native) == GKI_CUDA_CAPABILITIES, "room in the device");
  memcpy(device->capabilities, native, sizeof native);
  for (size_t k = 0; k < GK_COUNT(native); ++k) {
    gk_capability *line = &device->capabilities[k];
    if (strcmp(line->construct, "SWITCH") == 0 && device->abilities.ways & GKI_CUDA_NO_SWITCH)
      line->why = "An IF node per case: SWITCH nodes came with CUDA 12.8, and their bodies went wrong before 13.0.";
    if (strcmp(line->construct, "PARALLEL") == 0 && device->abilities.ways & GKI_CUDA_CHAIN_BRANCHES)
      line->why = "Branches of the graph; those that hold loops or branches go one after the other, as this driver was "
                  "seen to need it.";
  }
  info->name = device->name;
  info->driver = device->driver_text;
  info->ordinal = device->ordinal;
  info->capability_count = GKI_CUDA_CAPABILITIES;
  info->capabilities = device->capabilities;
}

/* ---- graphs ------------------------------------------------------------------------------------------------------ */

static gk_result lower(void *at, void *graph, const gk_plan *plan, void *const *code, gk_mode *mode) {
  gki_cuda_device *device = at;
  if (plan->bits & (GK_HOST_GATED | GK_ISOLATE))
    return gk_fail(GK_ERROR_UNSUPPORTED, "backend cuda: graphs that the host gates aren't done yet; leave the bits "
                   "GK_HOST_GATED and GK_ISOLATE out");
  if (!device->abilities.conditional)
    return gk_fail(GK_ERROR_UNSUPPORTED, "backend cuda: %s", device->abilities.why);
  gk_result result = gki_cuda_enter(device);
  if (result != GK_OK) return result;
  result = gki_cuda_graph_make(graph, device, plan, code);
  gki_cuda_leave(device);
  *mode = GK_MODE_NATIVE;
  return result;
}

static void drop(void *graph) { gki_cuda_graph_drop(graph); }
static gk_result launch(void *graph, const gk_hand_over *hand_over) { return gki_cuda_launch(graph, hand_over); }
static gk_result wait(void *graph, bool block, gk_record *record) { return gki_cuda_wait(graph, block, record); }
static gk_result cancel(void *graph) { return gki_cuda_cancel(graph); }

const gk_backend gki_cuda = {
  .abi = GK_BACKEND_ABI,
  .bytes = sizeof(gk_backend),
  .name = "cuda",
  .device_bytes = sizeof(gki_cuda_device),
  .graph_bytes = sizeof(gki_cuda_graph),
  .open = open_device,
  .close = close_device,
  .describe = describe,
  .alloc = gki_cuda_alloc,
  .free = gki_cuda_free,
  .copy = gki_cuda_copy,
  .host_address = gki_cuda_host_address,
  .takes = gki_cuda_takes,
  .load = gki_cuda_load,
  .unload = gki_cuda_unload,
  .lower = lower,
  .drop = drop,
  .launch = launch,
  .wait = wait,
  .cancel = cancel,
};
