#include "vulkan/copy.h"
#include "vulkan/embed.h"
#include "vulkan/graph.h"
#include "vulkan/kernels.h"
#include <stdlib.h>
#include <string.h>

extern const gk_backend gki_vulkan;

/* ---- the device -------------------------------------------------------------------------------------------------- */

static gk_result open_device(void *at, const gk_device_desc *desc) {
  if (desc->next)
    return gk_fail(GK_ERROR_INVALID, "backend vulkan: it knows no extension (0x%x was given); leave `next` NULL",
                   (unsigned)desc->next->id);
  gk_result result = gki_vulkan_open(at, desc->ordinal);
  if (result == GK_OK) result = gki_vulkan_load_builtin(at);
  return result == GK_ERROR_UNSUPPORTED ? GK_ERROR_NO_DEVICE : result; /* there is no compiler, or no feature */
}

static void close_device(void *at) {
  gki_vulkan_drop_builtin(at);
  gki_vulkan_drop_memory(at);
  gki_vulkan_close(at);
}

static const gk_capability capabilities[] = {
  {"KERNEL", GK_NATIVE, "A compute shader, compiled from portable text at run time; it finds its arguments and counts "
                        "in a table on the device. Handwritten code isn't taken yet."},
  {"COPY", GK_NATIVE, "By a shader of gk's, which reads its count when it runs."},
  {"FILL", GK_NATIVE, "By a shader of gk's, as COPY."},
  {"CALL", GK_ON_HOST, "The host waits for the tasks before it, then calls; memory is given by the host's address."},
  {"LIST", GK_NATIVE, "Written out when the graph is made."},
  {"DO_WHILE", GK_BATCHED, "Several passes are enqueued at once; a small shader behind each run of tasks reads the "
                           "flag, and tasks that don't come do nothing."},
  {"WHILE", GK_BATCHED, "As DO_WHILE."},
  {"IF", GK_BATCHED, "As DO_WHILE; both arms are enqueued."},
  {"SWITCH", GK_BATCHED, "As IF."},
  {"CHECKPOINT", GK_BATCHED, "As DO_WHILE."},
  {"PARALLEL", GK_IN_SERIES, "Sections go one after the other, with a barrier behind each task."},
  {"SECTION", GK_IN_SERIES, "As PARALLEL."},
  {"SUM", GK_NATIVE, "Added up per subgroup, then by atomics: the order, and so the last bits of floats, is open. Sums "
                     "of floats need a device with atomic additions of them, those of doubles one with atomics of "
                     "64 bits; elsewhere the kernel is refused."},
  {"ALWAYS", GK_NATIVE, "Commands of its own, which nothing skips."},
  {"CANCEL", GK_NATIVE, "Seen at the next loop end or checkpoint, by a word in memory that the host writes."},
  {"LAUNCH_ON", GK_REFUSED, "There are no streams."},
};

static void describe_device(void *at, gk_device_info *info) {
  const gki_vulkan_device *device = at;
  info->name = device->name;
  info->driver = device->driver_text;
  info->capability_count = GK_COUNT(capabilities);
  info->capabilities = capabilities;
}

static gk_result is_alive(void *at) {
  const gki_vulkan_device *device = at;
  return __atomic_load_n(&device->lost, __ATOMIC_ACQUIRE) ? gk_fail(GK_ERROR_DEVICE, "%s", device->why) : GK_OK;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static gk_result alloc_memory(void *at, size_t bytes, gk_memory kind, void **memory) {
  gki_vulkan_block *block;
  const gk_result result = gki_vulkan_alloc(at, bytes, kind, &block);
  if (result != GK_OK) return result;
  const uintptr_t address = (uintptr_t)block->at;
  memcpy(memory, &address, sizeof address);
  return GK_OK;
}

static void free_memory(void *at, void *memory) { gki_vulkan_free(at, gki_vulkan_block_of(at, memory, 1)); }

static void *host_address(void *at, void *memory) { return gki_vulkan_here(at, memory, 1); }

static gk_result reaches(void *at, const void *memory) {
  return gki_vulkan_block_of(at, memory, 1) ? GK_OK : gki_vulkan_nowhere(memory);
}

/* ---- what gk-info prints ----------------------------------------------------------------------------------------- */

static void of_environment(gk_fact_visit visit, void *user) {
  visit(user, &(gk_fact){"environment", "PATH", secure_getenv("PATH") ? "set" : NULL,
                         "where glslangValidator and glslc may be, which compile kernels for Vulkan"});
  visit(user, &(gk_fact){"environment", "GK_VULKAN_GATE", secure_getenv("GK_VULKAN_GATE"),
                         "how Vulkan skips tasks that don't come: condition, grid or guard"});
  visit(user, &(gk_fact){"environment", "GK_VULKAN_FAR", secure_getenv("GK_VULKAN_FAR"),
                         "1: the host copies memory of a Vulkan device as if it didn't see it"});
}

static const gk_fact_source facts = {.bytes = sizeof(gk_fact_source), .of_environment = of_environment};

static const void *query(const char *name) {
  if (strcmp(name, GKI_EMBEDDER) == 0) return &gki_vulkan_embedder;
  return strcmp(name, GK_FACTS) == 0 ? &facts : NULL;
}

const gk_backend gki_vulkan = {
  .abi = GK_BACKEND_ABI,
  .bytes = sizeof(gk_backend),
  .name = "vulkan",
  .device_bytes = sizeof(gki_vulkan_device),
  .graph_bytes = sizeof(gki_vulkan_graph),
  .open = open_device,
  .close = close_device,
  .describe = describe_device,
  .alloc = alloc_memory,
  .free = free_memory,
  .copy = gki_vulkan_copy,
  .host_address = host_address,
  .load = gki_vulkan_load,
  .unload = gki_vulkan_unload,
  .lower = gki_vulkan_lower,
  .drop = gki_vulkan_drop,
  .launch = gki_vulkan_launch,
  .submit = gki_vulkan_submit_run,
  .read_flag = gki_vulkan_read_flag,
  .cancel = gki_vulkan_cancel,
  .ahead = gki_vulkan_ahead,
  .state = gki_vulkan_state,
  .query = query,
  .reaches = reaches,
  .alive = is_alive,
};
