#include "base/extension.h"
#include "hip/compile.h"
#include "hip/graph.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the device -------------------------------------------------------------------------------------------------- */

static const gk_capability capabilities[] = {
  {"KERNEL", GK_NATIVE, "A kernel, compiled from portable text by hipRTC; it finds its arguments and counts in a table "
                        "on the device. Handwritten code gets its arguments at each launch."},
  {"COPY", GK_NATIVE, "By a kernel of gk's, which reads its count when it runs."},
  {"FILL", GK_NATIVE, "By a kernel of gk's, as COPY."},
  {"CALL", GK_ON_HOST, "Called each time it runs, with the stream on which it puts its work. In lists with decisions "
                       "the host waits for those before it."},
  {"CALL_HOST", GK_ON_HOST, "When the work before it has ended, which the host waits for."},
  {"LIST", GK_NATIVE, "Written out when the graph is made."},
  {"DO_WHILE", GK_BATCHED, "HIP has no conditional nodes. Several passes are enqueued at once; a small kernel behind "
                           "each run of tasks reads the flag, and tasks that don't come do nothing."},
  {"WHILE", GK_BATCHED, "As DO_WHILE."},
  {"REPEAT", GK_BATCHED, "As DO_WHILE; it counts its passes and reads no flag."},
  {"IF", GK_BATCHED, "As DO_WHILE; both arms are enqueued."},
  {"SWITCH", GK_BATCHED, "As IF."},
  {"CHECKPOINT", GK_BATCHED, "As DO_WHILE."},
  {"YIELD", GK_BATCHED, "As DO_WHILE."},
  {"PARALLEL", GK_IN_SERIES, "Sections go one after the other, on one stream."},
  {"SECTION", GK_IN_SERIES, "As PARALLEL."},
  {"SUM", GK_NATIVE, "Added up per wave, then by atomics: the order, and so the last bits of floats, is open."},
  {"ALWAYS", GK_NATIVE, "A run of its own, which nothing skips."},
  {"CANCEL", GK_NATIVE, "Seen at the next loop end or checkpoint, by a word in the host's memory."},
  {"LAUNCH_ON", GK_ON_HOST, "The call returns when the launch is over, so that what the stream gets next follows it."},
};
_Static_assert(GK_COUNT(capabilities) == GKI_HIP_CAPABILITIES, "the device has an entry for each");

static const gki_extension_kind sharing_kind = {GK_HIP_SHARING, sizeof(gk_hip_sharing), "hip", "gk_hip_sharing",
                                                "GK_HIP_SHARE"};

static const char of_graphs[] = "Branches of their run's graph, if it is long enough for one. Sections with library "
                                "calls or handwritten code go one after the other.";

static gk_result open_device(void *at, const gk_device_desc *desc) {
  gki_hip_device *d = at;
  const gk_extension *extension;
  gk_result result = gki_extension_find(desc->next, &sharing_kind, &extension);
  const gk_hip_sharing *sharing = (const gk_hip_sharing *)extension;
  if (result == GK_OK) result = gki_hip_open(d, desc->ordinal, sharing);
  if (result == GK_OK) result = gki_hip_load_builtin(d);
  memcpy(d->capabilities, capabilities, sizeof capabilities);
  for (size_t k = 0; d->graphs_from && k < GK_COUNT(capabilities); ++k)
    if (capabilities[k].how == GK_IN_SERIES)
      d->capabilities[k] = (gk_capability){capabilities[k].construct, GK_NATIVE, of_graphs};
  return result == GK_ERROR_UNSUPPORTED ? GK_ERROR_NO_DEVICE : result; /* no compiler for it, or no arguments */
}

static void describe_device(void *at, gk_device_info *info) {
  const gki_hip_device *d = at;
  info->name = d->name;
  info->driver = d->driver_text;
  info->capability_count = GK_COUNT(d->capabilities);
  info->capabilities = d->capabilities;
}

static bool shares(void *at) { return ((const gki_hip_device *)at)->shares_stream; }

/* ---- what gk-info prints ----------------------------------------------------------------------------------------- */

static void of_backend(gk_fact_visit visit, void *user) {
  const gki_hip_driver *driver;
  if (gki_hip_driver_load(&driver) != GK_OK) {
    visit(user, &(gk_fact){"driver", "libamdhip64", NULL, gk_error()});
    return;
  }
  visit(user, &(gk_fact){"driver", "libamdhip64", driver->name, driver->path});
  visit(user, &(gk_fact){"compiler", "hipRTC", driver->no_compiler[0] ? NULL : driver->name,
                         driver->no_compiler[0] ? driver->no_compiler : "compiles kernels at run time"});
}

static void of_device(void *at, gk_fact_visit visit, void *user) {
  const gki_hip_device *d = at;
  char wave[16], graphs[32] = "no";
  snprintf(wave, sizeof wave, "%d", d->wave);
  if (d->graphs_from) snprintf(graphs, sizeof graphs, "from %u kernels on", (unsigned)d->graphs_from);
  visit(user, &(gk_fact){"device", "architecture", d->architecture, "what kernels are compiled for"});
  visit(user, &(gk_fact){"device", "wave", wave, "lanes of a wave"});
  visit(user, &(gk_fact){"device", "arguments", d->packs ? "extra" : "kernelParams",
                         "the form of a kernel's arguments that works here; tried when the device was opened"});
  visit(user, &(gk_fact){"device", "graphs", graphs, d->graphs_why});
}

static void of_environment(gk_fact_visit visit, void *user) {
  visit(user, &(gk_fact){"environment", "ROCM_PATH", secure_getenv("ROCM_PATH"),
                         "ROCm's folder, for libraries that the loader doesn't find (/opt/rocm)"});
  visit(user, &(gk_fact){"environment", "HIP_VISIBLE_DEVICES", secure_getenv("HIP_VISIBLE_DEVICES"),
                         "the HIP runtime's: which GPUs there are, and in which order"});
  visit(user, &(gk_fact){"environment", "GK_HIP_GRAPHS", secure_getenv("GK_HIP_GRAPHS"),
                         "whether runs are launched as graphs: 1 or 0; else what was right and faster"});
}

static const gk_fact_source facts = {.bytes = sizeof(gk_fact_source), .of_backend = of_backend, .of_device = of_device,
                                     .of_environment = of_environment};

static const void *query(const char *name) {
  if (strcmp(name, GKI_EMBEDDER) == 0) return &gki_hip_embedder;
  return strcmp(name, GK_FACTS) == 0 ? &facts : NULL;
}

extern const gk_backend gki_hip;
const gk_backend gki_hip = {
  .abi = GK_BACKEND_ABI,
  .bytes = sizeof(gk_backend),
  .name = "hip",
  .bits = GK_BACKEND_STREAMS,
  .device_bytes = sizeof(gki_hip_device),
  .graph_bytes = sizeof(gki_hip_graph),
  .open = open_device,
  .close = gki_hip_close,
  .describe = describe_device,
  .alloc = gki_hip_alloc,
  .free = gki_hip_free,
  .copy = gki_hip_copy,
  .host_address = gki_hip_host_address,
  .load = gki_hip_load,
  .unload = gki_hip_unload,
  .lower = gki_hip_lower,
  .drop = gki_hip_drop,
  .launch = gki_hip_launch,
  .submit = gki_hip_submit,
  .read_flag = gki_hip_read_flag,
  .cancel = gki_hip_cancel,
  .ahead = gki_hip_ahead,
  .state = gki_hip_state,
  .pass = gki_hip_pass,
  .query = query,
  .shares = shares,
  .reaches = gki_hip_reaches,
  .alive = gki_hip_refuse_lost,
  .code = gki_hip_code,
};
