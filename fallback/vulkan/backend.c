#include "base/extension.h"
#include "vulkan/compile.h"
#include "vulkan/graph.h"
#include "vulkan/handwritten.h"
#include "vulkan/kernels.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const gk_backend gki_vulkan;

/* ---- the device -------------------------------------------------------------------------------------------------- */

static const gk_capability capabilities[] = {
  {"KERNEL", GK_NATIVE, "A compute shader, compiled from portable text when the program is built or at run time; it "
                        "finds its arguments and counts in a table on the device. Handwritten code is recorded "
                        "anew when its arguments change."},
  {"COPY", GK_NATIVE, "By a shader of gk's, which reads its count when it runs."},
  {"FILL", GK_NATIVE, "By a shader of gk's, as COPY."},
  {"CALL", GK_ON_HOST, "The host waits for the tasks before it, then calls; memory is given by the host's address, or "
                       "as a copy where the host doesn't see it."},
  {"CALL_HOST", GK_ON_HOST, "When the work before it has ended, which the host waits for."},
  {"LIST", GK_NATIVE, "Written out when the graph is made."},
  {"DO_WHILE", GK_BATCHED, "Several passes are enqueued at once; a small shader behind each run of tasks reads the "
                           "flag, and tasks that don't come do nothing."},
  {"WHILE", GK_BATCHED, "As DO_WHILE."},
  {"REPEAT", GK_BATCHED, "As DO_WHILE; it counts its passes and reads no flag."},
  {"IF", GK_BATCHED, "As DO_WHILE; both arms are enqueued."},
  {"SWITCH", GK_BATCHED, "As IF."},
  {"CHECKPOINT", GK_BATCHED, "As DO_WHILE."},
  {"YIELD", GK_BATCHED, "As DO_WHILE."},
  {"PARALLEL", GK_NATIVE, "Tasks of different sections have no barrier between them, unless slots share memory."},
  {"SECTION", GK_NATIVE, "As PARALLEL."},
  {"SUM", GK_NATIVE, "Added up per subgroup, then by atomics: the order, and so the last bits of floats, is open. Sums "
                     "of floats need a device with atomic additions of them, those of doubles one with atomics of "
                     "64 bits; elsewhere the kernel is refused."},
  {"ALWAYS", GK_NATIVE, "Commands of its own, which nothing skips."},
  {"CANCEL", GK_NATIVE, "Seen at the next loop end or checkpoint, by a word in memory that the host writes."},
  {"LAUNCH_ON", GK_REFUSED, "There are no streams; gk_vulkan_launch waits for semaphores and signals them."},
};
_Static_assert(GK_COUNT(capabilities) == GKI_VULKAN_CAPABILITIES, "the device has an entry for each");

/* Behind a capability's reason come the optional features that the device doesn't have. */
static void report(gki_vulkan_device *d) {
  gki_vulkan_feature all[GKI_VULKAN_FEATURES];
  gki_vulkan_list_features(d, all);
  size_t used = 0;
  memcpy(d->capabilities, capabilities, sizeof capabilities);
  for (size_t k = 0; k < GK_COUNT(capabilities); ++k) {
    const char *const why = d->missing + used;
    bool is_whole = true;
    for (size_t n = 0; n < GK_COUNT(all) && used < sizeof d->missing; ++n) {
      if (all[n].is_there || !all[n].construct || strcmp(all[n].construct, capabilities[k].construct) != 0) continue;
      used += (size_t)snprintf(d->missing + used, sizeof d->missing - used, "%s%s %s: %s",
                               is_whole ? capabilities[k].why : ";", is_whole ? " This device has no" : " no",
                               all[n].name, all[n].instead);
      is_whole = false;
    }
    if (is_whole || used + 2 > sizeof d->missing) continue;
    memcpy(d->missing + used, ".", 2);
    used += 2;
    d->capabilities[k].why = why;
  }
}

static const gki_extension_kind sharing_kind = {GK_VULKAN_SHARING, sizeof(gk_vulkan_sharing), "vulkan",
                                                "gk_vulkan_sharing", "GK_VULKAN_SHARE"};

static gk_result refuse_sharing(const gk_vulkan_sharing *s) {
  const struct { bool is_there; const char *name; } needed[] = {
    {s->instance, "instance"}, {s->physical_device, "physical_device"}, {s->device, "device"}, {s->queue, "queue"},
    {s->created, "created"}, {s->lock || !s->unlock, "lock"}, {s->unlock || !s->lock, "unlock"}};
  for (size_t k = 0; k < GK_COUNT(needed); ++k)
    if (!needed[k].is_there)
      return gk_fail(GK_ERROR_INVALID, "backend vulkan: gk_vulkan_sharing: `%s` is NULL; give the program's own",
                     needed[k].name);
  if (s->created->sType != VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO)
    return gk_fail(GK_ERROR_INVALID, "backend vulkan: gk_vulkan_sharing: `created` is no VkDeviceCreateInfo (its sType "
                   "is %d); give the struct that the device was made from", (int)s->created->sType);
  for (uint32_t k = 0; k < s->created->queueCreateInfoCount; ++k)
    if (s->created->pQueueCreateInfos[k].queueFamilyIndex == s->queue_family) return GK_OK;
  return gk_fail(GK_ERROR_INVALID, "backend vulkan: gk_vulkan_sharing: the device was made without a queue of family "
                 "%u; give the family of `queue`", (unsigned)s->queue_family);
}

static gk_result open_device(void *at, const gk_device_desc *desc) {
  const gk_extension *extension;
  gk_result result = gki_extension_find(desc->next, &sharing_kind, &extension);
  const gk_vulkan_sharing *sharing = (const gk_vulkan_sharing *)extension;
  if (result == GK_OK && sharing) result = refuse_sharing(sharing);
  if (result == GK_OK) result = gki_vulkan_open(at, desc->ordinal, sharing);
  if (result == GK_OK) result = gki_vulkan_load_builtin(at);
  if (result == GK_OK) report(at);
  return result == GK_ERROR_UNSUPPORTED ? GK_ERROR_NO_DEVICE : result; /* there is no compiler, or no feature */
}

static void close_device(void *at) {
  gki_vulkan_device *d = at;
  gki_vulkan_drop_builtin(d);
  gki_vulkan_drop_memory(d);
  gki_vulkan_close(d);
}

static void describe_device(void *at, gk_device_info *info) {
  const gki_vulkan_device *device = at;
  info->name = device->name;
  info->driver = device->driver_text;
  info->capability_count = GK_COUNT(device->capabilities);
  info->capabilities = device->capabilities;
}

static gk_result is_alive(void *at) {
  const gki_vulkan_device *device = at;
  return __atomic_load_n(&device->is_lost, __ATOMIC_ACQUIRE) ? gk_fail(GK_ERROR_DEVICE, "%s", device->loss) : GK_OK;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static gk_result alloc_memory(void *at, size_t bytes, gk_memory kind, void **memory) {
  gki_vulkan_block *block;
  const gk_result result = gki_vulkan_alloc(at, bytes, kind, &block);
  if (result != GK_OK) return result;
  const uintptr_t address = (uintptr_t)block->address;
  memcpy(memory, &address, sizeof address);
  return GK_OK;
}

static void free_memory(void *at, void *memory) { gki_vulkan_free(at, gki_vulkan_block_of(at, memory, 1)); }

static void *host_address(void *at, void *memory) {
  const gki_vulkan_block *block = gki_vulkan_block_of(at, memory, 1);
  return block && block->host ? block->host + ((uintptr_t)memory - block->address) : NULL;
}

static gk_result reaches(void *at, const void *memory) {
  return gki_vulkan_block_of(at, memory, 1) ? GK_OK : gki_vulkan_refuse_address(memory);
}

/* ---- what gk-info prints ----------------------------------------------------------------------------------------- */

static void of_environment(gk_fact_visit visit, void *user) {
  visit(user, &(gk_fact){"environment", "PATH", secure_getenv("PATH") ? "set" : NULL,
                         "where glslangValidator and glslc may be, which compile kernels for Vulkan"});
  visit(user, &(gk_fact){"environment", "GK_VULKAN_GATE", secure_getenv("GK_VULKAN_GATE"),
                         "how Vulkan skips tasks that don't come: condition, grid or guard"});
  visit(user, &(gk_fact){"environment", "GK_VULKAN_UNMAPPED", secure_getenv("GK_VULKAN_UNMAPPED"),
                         "1: the host copies memory of a Vulkan device as if it didn't see it"});
}

static const gk_fact_source facts = {.bytes = sizeof(gk_fact_source), .of_environment = of_environment};

static const void *query(const char *name) {
  if (strcmp(name, GKI_EMBEDDER) == 0) return &gki_vulkan_embedder;
  return strcmp(name, GK_FACTS) == 0 ? &facts : NULL;
}

const gk_backend gki_vulkan = {
  .abi = GK_BACKEND_ABI, .bytes = sizeof(gk_backend), .name = "vulkan",
  .device_bytes = sizeof(gki_vulkan_device), .graph_bytes = sizeof(gki_vulkan_graph),
  .by_default = gki_vulkan_by_default, .open = open_device, .close = close_device, .describe = describe_device,
  .alive = is_alive, .query = query,
  .alloc = alloc_memory, .free = free_memory, .copy = gki_vulkan_copy_memory, .host_address = host_address,
  .reaches = reaches,
  .code = gki_vulkan_code, .load = gki_vulkan_load, .unload = gki_vulkan_unload,
  .lower = gki_vulkan_lower, .drop = gki_vulkan_drop,
  .launch = gki_vulkan_launch, .submit = gki_vulkan_submit_run, .read_flag = gki_vulkan_read_flag,
  .ahead = gki_vulkan_ahead, .state = gki_vulkan_state, .pass = gki_vulkan_pass, .cancel = gki_vulkan_cancel,
};
