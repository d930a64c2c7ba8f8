#include "vulkan/standin.h"
#include "vulkan/shuffle.h"
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))

standin_real standin;
static PFN_vkGetInstanceProcAddr find_real;

/* ---- broken rules and failures ----------------------------------------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char broken[200];
static struct {
  unsigned long calls, at;
  VkResult code;
  vulkan_standin_how how;
} fault;
static unsigned alive;

void standin_break(const char *format, ...) {
  va_list args;
  va_start(args, format);
  pthread_mutex_lock(&lock);
  if (!broken[0]) vsnprintf(broken, sizeof broken, format, args);
  pthread_mutex_unlock(&lock);
  va_end(args);
}

static void count_object(int change) { __atomic_add_fetch(&alive, (unsigned)change, __ATOMIC_SEQ_CST); }

/* VK_SUCCESS: this call isn't to fail. may_lose: it may answer that the device is lost. */
static VkResult failure_of_call(bool may_lose, bool waits) {
  pthread_mutex_lock(&lock);
  const unsigned long call = ++fault.calls;
  VkResult code = VK_SUCCESS;
  if (fault.at && fault.how == VULKAN_STANDIN_NOW && call == fault.at) code = fault.code;
  if (fault.at && fault.how == VULKAN_STANDIN_LATE && call > fault.at && waits) code = fault.code;
  if (fault.at && fault.how == VULKAN_STANDIN_LOST && call > fault.at && may_lose) code = VK_ERROR_DEVICE_LOST;
  if (code == VK_ERROR_DEVICE_LOST && !may_lose) code = VK_ERROR_UNKNOWN;
  if (code == VK_ERROR_OUT_OF_DEVICE_MEMORY && call % 2) code = VK_ERROR_OUT_OF_HOST_MEMORY;
  pthread_mutex_unlock(&lock);
  return code;
}

/* ---- entries ----------------------------------------------------------------------------------------------------- */

#define DEFINE(name, may_lose, params, args) \
  static VKAPI_ATTR VkResult VKAPI_CALL my_##name params { \
    const VkResult failure = failure_of_call(may_lose, false); \
    return failure != VK_SUCCESS ? failure : standin.name args; \
  }
STANDIN_CALLS(DEFINE)
#undef DEFINE
#define DEFINE(name, may_lose, params, args) \
  static VKAPI_ATTR VkResult VKAPI_CALL my_##name params { \
    const VkResult failure = failure_of_call(may_lose, false); \
    return failure != VK_SUCCESS ? failure : shuffle_##name args; \
  }
STANDIN_SHUFFLED(DEFINE)
#undef DEFINE

/* A driver that fails has recorded nothing: the command buffer is neither being recorded nor fit to be submitted. */
static VKAPI_ATTR VkResult VKAPI_CALL my_EndCommandBuffer(VkCommandBuffer commands) {
  const VkResult failure = failure_of_call(false, false);
  if (failure == VK_SUCCESS) return shuffle_EndCommandBuffer(commands);
  shuffle_forget(commands);
  (void)standin.ResetCommandBuffer(commands, 0);
  return failure;
}

/* A wait that fails has waited, so that nothing is under way in memory that is freed next. */
#define DEFINE(name, may_lose, params, args) \
  static VKAPI_ATTR VkResult VKAPI_CALL my_##name params { \
    shuffle_flush(a); \
    const VkResult failure = failure_of_call(may_lose, true); \
    if (failure != VK_SUCCESS) standin.DeviceWaitIdle(a); \
    return failure != VK_SUCCESS ? failure : standin.name args; \
  }
STANDIN_WAITS(DEFINE)
#undef DEFINE
#define DEFINE(name) \
  static VKAPI_ATTR VkResult VKAPI_CALL my_Create##name(VkDevice device, const Vk##name##CreateInfo *info, \
                                                        const VkAllocationCallbacks *memory, Vk##name *made) { \
    VkResult result = failure_of_call(false, false); \
    if (result == VK_SUCCESS) result = standin.Create##name(device, info, memory, made); \
    count_object(result == VK_SUCCESS); \
    return result; \
  } \
  static VKAPI_ATTR void VKAPI_CALL my_Destroy##name(VkDevice device, Vk##name object, \
                                                     const VkAllocationCallbacks *memory) { \
    count_object(object ? -1 : 0); \
    standin.Destroy##name(device, object, memory); \
  }
STANDIN_OBJECTS(DEFINE)
#undef DEFINE

static VKAPI_ATTR VkResult VKAPI_CALL my_CreateComputePipelines(
    VkDevice device, VkPipelineCache cache, uint32_t count, const VkComputePipelineCreateInfo *info,
    const VkAllocationCallbacks *memory, VkPipeline *made) {
  VkResult result = failure_of_call(false, false);
  if (result == VK_SUCCESS) result = standin.CreateComputePipelines(device, cache, count, info, memory, made);
  if (result == VK_SUCCESS) count_object((int)count);
  return result;
}

static VKAPI_ATTR void VKAPI_CALL my_DestroyPipeline(VkDevice device, VkPipeline pipeline,
                                                     const VkAllocationCallbacks *memory) {
  count_object(pipeline ? -1 : 0);
  standin.DestroyPipeline(device, pipeline, memory);
}

static VKAPI_ATTR VkResult VKAPI_CALL my_AllocateMemory(VkDevice device, const VkMemoryAllocateInfo *info,
                                                        const VkAllocationCallbacks *memory, VkDeviceMemory *made) {
  VkResult result = failure_of_call(false, false);
  if (result == VK_SUCCESS) result = standin.AllocateMemory(device, info, memory, made);
  count_object(result == VK_SUCCESS);
  return result;
}

static VKAPI_ATTR void VKAPI_CALL my_FreeMemory(VkDevice device, VkDeviceMemory block,
                                                const VkAllocationCallbacks *memory) {
  count_object(block ? -1 : 0);
  standin.FreeMemory(device, block, memory);
}

static VKAPI_ATTR void VKAPI_CALL my_FreeCommandBuffers(VkDevice device, VkCommandPool pool, uint32_t count,
                                                        const VkCommandBuffer *all) {
  for (uint32_t k = 0; k < count; ++k) shuffle_forget(all[k]);
  standin.FreeCommandBuffers(device, pool, count, all);
}

static VKAPI_ATTR void VKAPI_CALL my_GetDeviceQueue(VkDevice device, uint32_t family, uint32_t at, VkQueue *queue) {
  standin.GetDeviceQueue(device, family, at, queue);
  shuffle_add_queue(device, family, *queue);
}

static VKAPI_ATTR VkResult VKAPI_CALL my_CreateDevice(VkPhysicalDevice physical, const VkDeviceCreateInfo *info,
                                                      const VkAllocationCallbacks *memory, VkDevice *device) {
  VkResult result = failure_of_call(true, false);
  if (result == VK_SUCCESS) result = standin.CreateDevice(physical, info, memory, device);
  count_object(result == VK_SUCCESS);
  return result;
}

static VKAPI_ATTR void VKAPI_CALL my_DestroyDevice(VkDevice device, const VkAllocationCallbacks *memory) {
  if (device) shuffle_end_device(device);
  count_object(device ? -1 : 0);
  standin.DestroyDevice(device, memory);
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL my_GetDeviceProcAddr(VkDevice device, const char *name);
static VKAPI_ATTR VkResult VKAPI_CALL my_CreateInstance(const VkInstanceCreateInfo *info,
                                                        const VkAllocationCallbacks *memory, VkInstance *instance);

/* ---- finding them ------------------------------------------------------------------------------------------------ */

/* The real ones of a device come from the instance, so they are good for all devices. */
static const struct { const char *name; PFN_vkVoidFunction mine; void *real; } entries[] = {
#define MINE(name, function) {"vk" #name, (PFN_vkVoidFunction)(function), &standin.name},
#define CALL(name, ...) MINE(name, my_##name)
#define ONE(name) MINE(name, my_##name)
#define COMMAND(name, ...) MINE(name, shuffle_##name)
#define OBJECT(name) MINE(Create##name, my_Create##name) MINE(Destroy##name, my_Destroy##name)
  STANDIN_CALLS(CALL) STANDIN_SHUFFLED(CALL) STANDIN_WAITS(CALL) STANDIN_COMMANDS(COMMAND) STANDIN_OBJECTS(OBJECT)
  ONE(CreateInstance) ONE(CreateDevice) ONE(DestroyDevice) ONE(GetDeviceQueue) ONE(CreateComputePipelines)
  ONE(DestroyPipeline) ONE(AllocateMemory) ONE(FreeMemory) ONE(FreeCommandBuffers) ONE(GetDeviceProcAddr)
  ONE(EndCommandBuffer)
  {"vkGetBufferMemoryRequirements", NULL, &standin.GetBufferMemoryRequirements},
  {"vkResetCommandPool", NULL, &standin.ResetCommandPool},
  {"vkResetCommandBuffer", NULL, &standin.ResetCommandBuffer}, {"vkQueueWaitIdle", NULL, &standin.QueueWaitIdle},
};
enum { ENTRIES = sizeof entries / sizeof entries[0] };

/* STANDIN_LACKS names one that isn't found. Nothing is handed on unseen but questions and the end of a mapping. */
static PFN_vkVoidFunction mine_of(const char *name, PFN_vkVoidFunction real) {
  const char *lacks = getenv("STANDIN_LACKS");
  if (!real || (lacks && strcmp(name, lacks) == 0)) return NULL;
  for (size_t k = 0; k < ENTRIES; ++k)
    if (entries[k].mine && strcmp(name, entries[k].name) == 0) return entries[k].mine;
  if (strncmp(name, "vkGet", 5) == 0 || strcmp(name, "vkUnmapMemory") == 0 ||
      strcmp(name, "vkDestroyInstance") == 0) return real;
  standin_break("tests/vulkan/shuffle.h doesn't know %s", name);
  return NULL;
}

static void find_all(VkInstance instance) {
  for (size_t k = 0; k < ENTRIES; ++k) {
    const PFN_vkVoidFunction found = find_real(instance, entries[k].name);
    if (found) memcpy(entries[k].real, &found, sizeof found);
  }
}

static VKAPI_ATTR VkResult VKAPI_CALL my_CreateInstance(const VkInstanceCreateInfo *info,
                                                        const VkAllocationCallbacks *memory, VkInstance *instance) {
  VkResult result = failure_of_call(false, false);
  if (result == VK_SUCCESS) result = standin.CreateInstance(info, memory, instance);
  if (result == VK_SUCCESS) find_all(*instance);
  return result;
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL my_GetDeviceProcAddr(VkDevice device, const char *name) {
  return mine_of(name, standin.GetDeviceProcAddr(device, name));
}

static void load(void) {
  void *library = dlopen("libvulkan.so", RTLD_NOW | RTLD_LOCAL);
  void *found = library ? dlsym(library, "vkGetInstanceProcAddr") : NULL;
  memcpy(&find_real, &found, sizeof found);
  if (find_real) find_all(NULL);
}

EXPORTED VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL vkGetInstanceProcAddr(VkInstance instance, const char *name) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, load);
  return find_real ? mine_of(name, find_real(instance, name)) : NULL;
}

/* ---- the controls ------------------------------------------------------------------------------------------------ */

static void fail(unsigned long k, int code, vulkan_standin_how how) {
  pthread_mutex_lock(&lock);
  fault.calls = 0;
  fault.at = k;
  fault.code = (VkResult)code;
  fault.how = how;
  pthread_mutex_unlock(&lock);
}

static unsigned long calls(void) {
  pthread_mutex_lock(&lock);
  const unsigned long count = fault.calls;
  pthread_mutex_unlock(&lock);
  return count;
}

static unsigned count_alive(void) { return __atomic_load_n(&alive, __ATOMIC_SEQ_CST); }
static const char *first_broken(void) { return broken; }

extern const vulkan_standin vulkan_standin_control;
EXPORTED const vulkan_standin vulkan_standin_control = {
  .set_seed = shuffle_set_seed, .fail = fail, .calls = calls, .alive = count_alive, .broken = first_broken,
  .recorded = shuffle_recorded};
