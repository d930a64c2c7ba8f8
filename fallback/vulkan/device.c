#include "vulkan/device.h"
#include "base/memory.h"
#include "vulkan/compile.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_DEVICES = 16, MOST_FAMILIES = 16, MOST_EXTENSIONS = 512, MOST_TRIES = 100 /* of a wait without memory */,
       WAIT_NS = 1000000000, PAUSE_NS = 1000000 };

/* ---- which device ------------------------------------------------------------------------------------------------ */

/* Discrete before integrated before virtual before the rest, the CPU last. */
static int rank(VkPhysicalDeviceType type) {
  switch (type) {
  case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU: return 0;
  case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU: return 1;
  case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU: return 2;
  case VK_PHYSICAL_DEVICE_TYPE_CPU: return 4;
  default: return 3;
  }
}

static void describe(gki_vulkan_device *d, VkPhysicalDevice physical) {
  VkPhysicalDeviceSubgroupProperties subgroups = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES};
  VkPhysicalDeviceDriverProperties driver = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES,
                                             .pNext = &subgroups};
  VkPhysicalDeviceMaintenance3Properties memory = {
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES, .pNext = &driver};
  VkPhysicalDeviceProperties2 all = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &memory};
  d->driver.GetPhysicalDeviceProperties2(physical, &all);
  d->physical = physical;
  d->properties = all.properties;
  d->most_bytes = memory.maxMemoryAllocationSize;
  d->is_cpu = d->properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
  d->group = d->is_cpu && subgroups.subgroupSize ? subgroups.subgroupSize : GKI_VULKAN_GROUP;
  d->subgroups = subgroups.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT ? subgroups.supportedOperations : 0;
  snprintf(d->name, sizeof d->name, "%s%s", d->properties.deviceName, d->is_cpu ? " (this machine's CPU)" : "");
  snprintf(d->driver_text, sizeof d->driver_text, "%.60s %.100s, Vulkan %u.%u", driver.driverName, driver.driverInfo,
           (unsigned)VK_API_VERSION_MAJOR(d->properties.apiVersion),
           (unsigned)VK_API_VERSION_MINOR(d->properties.apiVersion));
}

/* The program's own, or by the ordinal. */
static gk_result choose(gki_vulkan_device *d, int ordinal) {
  if (d->sharing.physical_device) {
    describe(d, d->sharing.physical_device);
    return GK_OK;
  }
  VkPhysicalDevice found[MOST_DEVICES];
  uint32_t count = MOST_DEVICES;
  const VkResult result = d->driver.EnumeratePhysicalDevices(d->instance, &count, found);
  if (result != VK_INCOMPLETE && result != VK_SUCCESS) count = 0; /* drivers that don't start */
  uint32_t left = (uint32_t)ordinal;
  for (int r = 0; r <= 4; ++r)
    for (uint32_t k = 0; k < count; ++k) {
      describe(d, found[k]);
      if (rank(d->properties.deviceType) == r && left-- == 0) return GK_OK;
    }
  if (count == 0)
    return gk_fail(GK_ERROR_NO_DEVICE, "backend vulkan: there is no driver that starts; install one, such as "
                   "mesa-vulkan-drivers");
  return gk_fail(GK_ERROR_NO_DEVICE, "backend vulkan: there is no device %d; there %s %u, from 0 on", ordinal,
                 count == 1 ? "is" : "are", (unsigned)count);
}

/* ---- what it has ------------------------------------------------------------------------------------------------- */

/* Enables each extension that gk uses and the device has, with the struct of its features. */
static gk_result add_extensions(gki_vulkan_device *d) {
  const struct { const char *name; void *features; } used[] = {
    {VK_EXT_SHADER_ATOMIC_FLOAT_EXTENSION_NAME, &d->features.floats},
    {VK_EXT_CONDITIONAL_RENDERING_EXTENSION_NAME, &d->features.conditions}};
  uint32_t count = MOST_EXTENSIONS;
  VkExtensionProperties *there = gki_array(count, sizeof *there, "the extensions of a device");
  if (!there) return GK_ERROR_MEMORY;
  if (d->driver.EnumerateDeviceExtensionProperties(d->physical, NULL, &count, there) < VK_SUCCESS) count = 0;
  for (size_t n = 0; n < GK_COUNT(used); ++n) {
    uint32_t k = 0;
    while (k < count && strcmp(there[k].extensionName, used[n].name) != 0) ++k;
    if (k == count) continue;
    VkBaseOutStructure *added = used[n].features;
    added->pNext = d->features.newer.pNext;
    d->features.newer.pNext = added;
    d->extensions[d->extension_count++] = used[n].name;
  }
  gk_host_free(there);
  return GK_OK;
}

/* Vulkan can't be asked what is enabled. So the struct that a device was made from tells it, by these structs in its
 * chain. VkPhysicalDeviceVulkan11Features and ...12Features have the fields of several others, in the same order. */
static void read_features(gki_vulkan_features *f, const VkDeviceCreateInfo *created) {
  const struct { VkStructureType type; void *to; size_t bytes; } parts[] = {
#define PART(NAME, name, to, first, last) {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_##NAME, &(to).first, \
    offsetof(VkPhysicalDevice##name, last) + sizeof (to).last - offsetof(VkPhysicalDevice##name, first)}
    PART(FEATURES_2, Features2, f->all, features, features),
    PART(VULKAN_1_2_FEATURES, Vulkan12Features, f->newer, samplerMirrorClampToEdge, subgroupBroadcastDynamicId),
    PART(VULKAN_1_1_FEATURES, Vulkan11Features, f->older, storageBuffer16BitAccess, shaderDrawParameters),
    PART(16BIT_STORAGE_FEATURES, 16BitStorageFeatures, f->older, storageBuffer16BitAccess, storageInputOutput16),
    PART(8BIT_STORAGE_FEATURES, 8BitStorageFeatures, f->newer, storageBuffer8BitAccess, storagePushConstant8),
    PART(SHADER_ATOMIC_INT64_FEATURES, ShaderAtomicInt64Features, f->newer, shaderBufferInt64Atomics,
         shaderSharedInt64Atomics),
    PART(SHADER_FLOAT16_INT8_FEATURES, ShaderFloat16Int8Features, f->newer, shaderFloat16, shaderInt8),
    PART(SCALAR_BLOCK_LAYOUT_FEATURES, ScalarBlockLayoutFeatures, f->newer, scalarBlockLayout, scalarBlockLayout),
    PART(TIMELINE_SEMAPHORE_FEATURES, TimelineSemaphoreFeatures, f->newer, timelineSemaphore, timelineSemaphore),
    PART(BUFFER_DEVICE_ADDRESS_FEATURES, BufferDeviceAddressFeatures, f->newer, bufferDeviceAddress,
         bufferDeviceAddressMultiDevice),
    PART(VULKAN_MEMORY_MODEL_FEATURES, VulkanMemoryModelFeatures, f->newer, vulkanMemoryModel,
         vulkanMemoryModelAvailabilityVisibilityChains),
    PART(SHADER_ATOMIC_FLOAT_FEATURES_EXT, ShaderAtomicFloatFeaturesEXT, f->floats, shaderBufferFloat32Atomics,
         sparseImageFloat32AtomicAdd),
    PART(CONDITIONAL_RENDERING_FEATURES_EXT, ConditionalRenderingFeaturesEXT, f->conditions, conditionalRendering,
         conditionalRendering),
#undef PART
  };
  if (created->pEnabledFeatures) f->all.features = *created->pEnabledFeatures;
  for (const VkBaseInStructure *at = created->pNext; at; at = at->pNext)
    for (size_t k = 0; k < GK_COUNT(parts); ++k)
      if (parts[k].type == at->sType) memcpy(parts[k].to, at + 1, parts[k].bytes);
}

void gki_vulkan_list_features(const gki_vulkan_device *d, gki_vulkan_feature found[GKI_VULKAN_FEATURES]) {
  const gki_vulkan_features *f = &d->features;
  const char *const refused = "kernels with them are refused";
#define ROW(construct, capability, part, feature, what) \
  {construct, GKI_SPIRV_##capability, (part).feature, what " (" #feature ")", refused}
  const gki_vulkan_feature all[] = {
    {NULL, GKI_SPIRV_PhysicalStorageBufferAddresses, f->newer.bufferDeviceAddress, "bufferDeviceAddress", NULL},
    {NULL, 0, f->newer.scalarBlockLayout, "scalarBlockLayout", NULL},
    {NULL, 0, f->newer.timelineSemaphore, "timelineSemaphore", NULL},
    {NULL, GKI_SPIRV_StorageBuffer8BitAccess, f->newer.storageBuffer8BitAccess, "storageBuffer8BitAccess", NULL},
    {NULL, GKI_SPIRV_Int8, f->newer.shaderInt8, "shaderInt8", NULL},
    {NULL, GKI_SPIRV_Int64, f->all.features.shaderInt64, "shaderInt64", NULL},
    ROW("KERNEL", UniformAndStorageBuffer8BitAccess, f->newer, uniformAndStorageBuffer8BitAccess,
        "bytes in uniform buffers"),
    ROW("KERNEL", StoragePushConstant8, f->newer, storagePushConstant8, "bytes as push constants"),
    ROW("KERNEL", StoragePushConstant16, f->older, storagePushConstant16, "numbers of 16 bits as push constants"),
    ROW("KERNEL", VulkanMemoryModel, f->newer, vulkanMemoryModel, "memory model of Vulkan"),
    ROW("KERNEL", Float64, f->all.features, shaderFloat64, "doubles"),
    ROW("KERNEL", Int16, f->all.features, shaderInt16, "integers of 16 bits"),
    ROW("KERNEL", Float16, f->newer, shaderFloat16, "floats of 16 bits"),
    ROW("KERNEL", StorageBuffer16BitAccess, f->older, storageBuffer16BitAccess, "numbers of 16 bits in memory"),
    ROW("KERNEL", Int64Atomics, f->newer, shaderBufferInt64Atomics, "atomics of 64 bits"),
    ROW("KERNEL", VulkanMemoryModelDeviceScope, f->newer, vulkanMemoryModelDeviceScope, "atomic loads"),
    ROW("SUM", AtomicFloat32AddEXT, f->floats, shaderBufferFloat32AtomicAdd, "atomic additions of floats"),
    {"DO_WHILE", 0, f->conditions.conditionalRendering, "conditional rendering (VK_EXT_conditional_rendering)",
     "tasks that are skipped get grids of no groups"},
    {"SUM", GKI_SPIRV_GroupNonUniformArithmetic, d->subgroups & VK_SUBGROUP_FEATURE_ARITHMETIC_BIT,
     "sums of a subgroup (VK_SUBGROUP_FEATURE_ARITHMETIC_BIT)", refused},
    {"SUM", GKI_SPIRV_AtomicFloat64AddEXT, f->floats.shaderBufferFloat64AtomicAdd,
     "atomic additions of doubles (shaderBufferFloat64AtomicAdd)",
     f->newer.shaderBufferInt64Atomics ? "gk compares and exchanges 64 bits" : refused},
#undef ROW
  };
  _Static_assert(sizeof all == GKI_VULKAN_FEATURES * sizeof *found, "each has a place");
  memcpy(found, all, sizeof all);
}

/* Of a device of gk's own all features are enabled but two: to check the bounds of buffers takes time, and protected
 * memory isn't used. */
static gk_result find_features(gki_vulkan_device *d) {
  gki_vulkan_features *f = &d->features;
  f->floats = (VkPhysicalDeviceShaderAtomicFloatFeaturesEXT){
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_ATOMIC_FLOAT_FEATURES_EXT};
  f->conditions = (VkPhysicalDeviceConditionalRenderingFeaturesEXT){
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_CONDITIONAL_RENDERING_FEATURES_EXT};
  f->older = (VkPhysicalDeviceVulkan11Features){.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES};
  f->newer = (VkPhysicalDeviceVulkan12Features){.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
                                                .pNext = &f->older};
  f->all = (VkPhysicalDeviceFeatures2){.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, .pNext = &f->newer};
  if (d->sharing.device) {
    read_features(f, d->sharing.created);
  } else {
    if (add_extensions(d) != GK_OK) return GK_ERROR_MEMORY;
    d->driver.GetPhysicalDeviceFeatures2(d->physical, &f->all);
    f->all.features.robustBufferAccess = f->older.protectedMemory = VK_FALSE;
  }
  gki_vulkan_feature all[GKI_VULKAN_FEATURES];
  gki_vulkan_list_features(d, all);
  for (size_t k = 0; k < GK_COUNT(all); ++k)
    if (!all[k].is_there && !all[k].instead)
      return d->sharing.device
                 ? gk_fail(GK_ERROR_INVALID, "backend vulkan: gk_vulkan_sharing: the VkDevice was made without %s, "
                           "which gk needs; enable it in its VkDeviceCreateInfo", all[k].name)
                 : gk_fail(GK_ERROR_NO_DEVICE, "backend vulkan: %s has no %s, which gk needs; a newer driver may have "
                           "it", d->name, all[k].name);
  return GK_OK;
}

static gk_result find_queue(gki_vulkan_device *d) {
  VkQueueFamilyProperties families[MOST_FAMILIES];
  uint32_t count = MOST_FAMILIES;
  d->driver.GetPhysicalDeviceQueueFamilyProperties(d->physical, &count, families);
  if (d->sharing.device) {
    d->family = d->sharing.queue_family;
    if (d->family < count && (families[d->family].queueFlags & VK_QUEUE_COMPUTE_BIT)) return GK_OK;
    return gk_fail(GK_ERROR_INVALID, "backend vulkan: gk_vulkan_sharing: queue family %u runs no compute shaders; give "
                   "a queue of one that does", (unsigned)d->family);
  }
  for (d->family = 0; d->family < count; ++d->family)
    if (families[d->family].queueFlags & VK_QUEUE_COMPUTE_BIT) return GK_OK;
  return gk_fail(GK_ERROR_NO_DEVICE, "backend vulkan: %s has no queue for compute shaders", d->name);
}

/* $GK_VULKAN_GATE chooses; conditional rendering needs an extension. */
static void choose_gate(gki_vulkan_device *d) {
  static const char *const names[] = {"condition", "grid", "guard"};
  const char *wanted = secure_getenv("GK_VULKAN_GATE");
  d->gate = d->features.conditions.conditionalRendering ? GKI_VULKAN_CONDITION : GKI_VULKAN_GRID;
  if (!wanted || !*wanted) return;
  size_t k = 0;
  while (k < GK_COUNT(names) && strcmp(wanted, names[k]) != 0) ++k;
  if (k == GK_COUNT(names))
    gk_log(GK_LOG_WARN, "backend vulkan: GK_VULKAN_GATE is \"%.100s\", which isn't known; give condition, grid or "
           "guard", wanted);
  else if ((gki_vulkan_gate)k >= d->gate) d->gate = (gki_vulkan_gate)k;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static gk_result make_device(gki_vulkan_device *d) {
  const float priority = 1.0f;
  const VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                         .queueFamilyIndex = d->family, .queueCount = 1, .pQueuePriorities = &priority};
  const VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, .pNext = &d->features.all,
                                   .queueCreateInfoCount = 1, .pQueueCreateInfos = &queue,
                                   .enabledExtensionCount = d->extension_count,
                                   .ppEnabledExtensionNames = d->extensions};
  return gki_vulkan_result(d->driver.CreateDevice(d->physical, &info, NULL, &d->device), "vkCreateDevice");
}

static gk_result find_device(gki_vulkan_device *d) {
  d->device = d->sharing.device;
  d->queue = d->sharing.queue;
  gk_result result = d->device ? GK_OK : make_device(d);
  if (result == GK_OK) result = gki_vulkan_driver_find(&d->driver, d->device);
  if (result != GK_OK) return result;
  if (!d->queue) d->driver.GetDeviceQueue(d->device, d->family, 0, &d->queue);
  if (!d->driver.CmdBeginConditionalRenderingEXT) d->features.conditions.conditionalRendering = VK_FALSE;
  choose_gate(d);
  const VkSemaphoreTypeCreateInfo type = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                          .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
  const VkSemaphoreCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &type};
  return gki_vulkan_result(d->driver.CreateSemaphore(d->device, &info, NULL, &d->timeline), "vkCreateSemaphore");
}

gk_result gki_vulkan_open(gki_vulkan_device *d, int ordinal, const gk_vulkan_sharing *sharing) {
  if (sharing) d->sharing = *sharing;
  d->instance = d->sharing.instance;
  gk_result result = gki_vulkan_driver_open(&d->driver, d->sharing.get_instance_proc_addr, &d->instance);
  if (result == GK_OK) result = choose(d, ordinal);
  if (result != GK_OK) return result;
  d->driver.GetPhysicalDeviceMemoryProperties(d->physical, &d->memory);
  const char *unmapped = secure_getenv("GK_VULKAN_UNMAPPED");
  d->unmapped = unmapped && strcmp(unmapped, "1") == 0;
  result = find_features(d);
  if (result == GK_OK) result = find_queue(d);
  if (result == GK_OK && pthread_mutex_init(&d->lock, NULL) != 0)
    result = gk_fail(GK_ERROR_MEMORY, "backend vulkan: there is no mutex left");
  if (result != GK_OK) return result;
  d->has_lock = true;
  return find_device(d);
}

gk_result gki_vulkan_by_default(const gk_device_desc *desc) {
  gki_vulkan_device d = {0};
  if (desc->next) return GK_OK; /* the program has a device */
  gk_result result = gki_vulkan_driver_open(&d.driver, NULL, &d.instance);
  if (result == GK_OK) result = choose(&d, desc->ordinal);
  if (result != GK_OK) return result;
  if (!d.is_cpu) return GK_OK;
  return gk_fail(GK_ERROR_NO_DEVICE, "backend vulkan: %s is no GPU; to use it nevertheless, ask for \"vulkan\" by "
                 "gk_device_desc.backend or $GK_BACKEND", d.name);
}

void gki_vulkan_close(gki_vulkan_device *d) {
  if (d->timeline) d->driver.DestroySemaphore(d->device, d->timeline, NULL);
  if (d->device && !d->sharing.device && d->driver.DestroyDevice) d->driver.DestroyDevice(d->device, NULL);
  if (d->has_lock) pthread_mutex_destroy(&d->lock);
}

/* ---- work -------------------------------------------------------------------------------------------------------- */

gk_result gki_vulkan_check(gki_vulkan_device *d, VkResult code, const char *what) {
  const gk_result result = gki_vulkan_result(code, what);
  if (code == VK_ERROR_DEVICE_LOST && !__atomic_exchange_n(&d->has_loss, true, __ATOMIC_RELAXED)) {
    snprintf(d->loss, sizeof d->loss, "backend vulkan: %.150s: the device was lost; close it", what);
    __atomic_store_n(&d->is_lost, true, __ATOMIC_RELEASE);
  }
  return result;
}

/* Under the lock. The program may use the queue, too. */
static VkResult submit(gki_vulkan_device *d, const VkCommandBuffer *commands, uint32_t count,
                       const gk_vulkan_point *wait, const gk_vulkan_point *signal) {
  const VkPipelineStageFlags all = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
  const VkTimelineSemaphoreSubmitInfo numbers = {
    .sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
    .waitSemaphoreValueCount = wait ? 1 : 0, .pWaitSemaphoreValues = wait ? &wait->value : NULL,
    .signalSemaphoreValueCount = signal ? 1 : 0, .pSignalSemaphoreValues = signal ? &signal->value : NULL};
  const VkSubmitInfo info = {
    .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .pNext = &numbers, .commandBufferCount = count, .pCommandBuffers = commands,
    .waitSemaphoreCount = wait ? 1 : 0, .pWaitSemaphores = wait ? &wait->semaphore : NULL, .pWaitDstStageMask = &all,
    .signalSemaphoreCount = signal ? 1 : 0, .pSignalSemaphores = signal ? &signal->semaphore : NULL};
  if (d->sharing.lock) d->sharing.lock(d->sharing.user);
  const VkResult result = d->driver.QueueSubmit(d->queue, 1, &info, VK_NULL_HANDLE);
  if (d->sharing.unlock) d->sharing.unlock(d->sharing.user);
  return result;
}

VkResult gki_vulkan_submit(gki_vulkan_device *d, const VkCommandBuffer *commands, uint32_t count, uint64_t *number) {
  pthread_mutex_lock(&d->lock);
  *number = d->submitted + 1;
  const VkResult result = submit(d, commands, count, NULL, &(gk_vulkan_point){d->timeline, *number});
  if (result == VK_SUCCESS) d->submitted = *number;
  pthread_mutex_unlock(&d->lock);
  return result;
}

VkResult gki_vulkan_order(gki_vulkan_device *d, const gk_vulkan_point *wait, const gk_vulkan_point *signal) {
  pthread_mutex_lock(&d->lock);
  const VkResult result = submit(d, NULL, 0, wait, signal);
  pthread_mutex_unlock(&d->lock);
  return result;
}

/* Work goes on after a wait without memory, and what it uses mustn't be freed. So such a wait is repeated. */
VkResult gki_vulkan_wait(gki_vulkan_device *d, uint64_t number) {
  pthread_mutex_lock(&d->lock);
  if (number > d->submitted) number = d->submitted;
  pthread_mutex_unlock(&d->lock);
  const VkSemaphoreWaitInfo wait = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO, .semaphoreCount = 1,
                                    .pSemaphores = &d->timeline, .pValues = &number};
  int failed = 0;
  do {
    const VkResult answer = d->driver.WaitSemaphores(d->device, &wait, WAIT_NS);
    const bool has_no_memory = answer == VK_ERROR_OUT_OF_HOST_MEMORY || answer == VK_ERROR_OUT_OF_DEVICE_MEMORY;
    if (answer != VK_TIMEOUT && !has_no_memory) return answer;
    failed = has_no_memory ? failed + 1 : 0;
    if (failed) nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
  } while (failed < MOST_TRIES && !__atomic_load_n(&d->is_lost, __ATOMIC_ACQUIRE));
  return VK_ERROR_DEVICE_LOST;
}
