/* Inside the stand-in: the real functions, and recorded commands that are handed on in another order. */
#ifndef VULKAN_SHUFFLE_H
#define VULKAN_SHUFFLE_H
#define VK_NO_PROTOTYPES
#include <stdbool.h>
#include <vulkan/vulkan.h>

/* Calls that answer a VkResult and may fail by request, and whether a lost device fails them. */
#define STANDIN_CALLS(X) \
  X(EnumeratePhysicalDevices, false, (VkInstance a, uint32_t *b, VkPhysicalDevice *c), (a, b, c)) \
  X(EnumerateDeviceExtensionProperties, false, \
    (VkPhysicalDevice a, const char *b, uint32_t *c, VkExtensionProperties *d), (a, b, c, d)) \
  X(BindBufferMemory, false, (VkDevice a, VkBuffer b, VkDeviceMemory c, VkDeviceSize d), (a, b, c, d)) \
  X(MapMemory, false, (VkDevice a, VkDeviceMemory b, VkDeviceSize c, VkDeviceSize d, VkMemoryMapFlags e, void **f), \
    (a, b, c, d, e, f)) \
  X(FlushMappedMemoryRanges, false, (VkDevice a, uint32_t b, const VkMappedMemoryRange *c), (a, b, c)) \
  X(InvalidateMappedMemoryRanges, false, (VkDevice a, uint32_t b, const VkMappedMemoryRange *c), (a, b, c)) \
  X(GetPipelineCacheData, false, (VkDevice a, VkPipelineCache b, size_t *c, void *d), (a, b, c, d)) \
  X(AllocateCommandBuffers, false, (VkDevice a, const VkCommandBufferAllocateInfo *b, VkCommandBuffer *c), (a, b, c))
/* The same, of which the shuffler must know. */
#define STANDIN_SHUFFLED(X) \
  X(BeginCommandBuffer, false, (VkCommandBuffer a, const VkCommandBufferBeginInfo *b), (a, b)) \
  X(QueueSubmit, true, (VkQueue a, uint32_t b, const VkSubmitInfo *c, VkFence d), (a, b, c, d))
/* Waits: what was submitted is handed on before. */
#define STANDIN_WAITS(X) \
  X(GetSemaphoreCounterValue, true, (VkDevice a, VkSemaphore b, uint64_t *c), (a, b, c)) \
  X(WaitSemaphores, true, (VkDevice a, const VkSemaphoreWaitInfo *b, uint64_t c), (a, b, c)) \
  X(DeviceWaitIdle, true, (VkDevice a), (a))
/* Objects that are made one at a time. */
#define STANDIN_OBJECTS(X) \
  X(Semaphore) X(Fence) X(Buffer) X(ShaderModule) X(PipelineLayout) X(CommandPool) X(PipelineCache)
#define STANDIN_COMMANDS(X) \
  X(CmdBindPipeline, (VkCommandBuffer a, VkPipelineBindPoint b, VkPipeline c), (a, b, c)) \
  X(CmdPushConstants, (VkCommandBuffer a, VkPipelineLayout b, VkShaderStageFlags c, uint32_t d, uint32_t e, \
    const void *f), (a, b, c, d, e, f)) \
  X(CmdDispatch, (VkCommandBuffer a, uint32_t b, uint32_t c, uint32_t d), (a, b, c, d)) \
  X(CmdDispatchIndirect, (VkCommandBuffer a, VkBuffer b, VkDeviceSize c), (a, b, c)) \
  X(CmdCopyBuffer, (VkCommandBuffer a, VkBuffer b, VkBuffer c, uint32_t d, const VkBufferCopy *e), (a, b, c, d, e)) \
  X(CmdFillBuffer, (VkCommandBuffer a, VkBuffer b, VkDeviceSize c, VkDeviceSize d, uint32_t e), (a, b, c, d, e)) \
  X(CmdPipelineBarrier, (VkCommandBuffer a, VkPipelineStageFlags b, VkPipelineStageFlags c, VkDependencyFlags d, \
    uint32_t e, const VkMemoryBarrier *f, uint32_t g, const VkBufferMemoryBarrier *h, uint32_t i, \
    const VkImageMemoryBarrier *j), (a, b, c, d, e, f, g, h, i, j)) \
  X(CmdBeginConditionalRenderingEXT, (VkCommandBuffer a, const VkConditionalRenderingBeginInfoEXT *b), (a, b)) \
  X(CmdEndConditionalRenderingEXT, (VkCommandBuffer a), (a))

typedef struct standin_real {
#define STANDIN_ENTRY(name, ...) PFN_vk##name name;
#define STANDIN_OBJECT(name) PFN_vkCreate##name Create##name; PFN_vkDestroy##name Destroy##name;
  STANDIN_CALLS(STANDIN_ENTRY) STANDIN_SHUFFLED(STANDIN_ENTRY) STANDIN_WAITS(STANDIN_ENTRY)
  STANDIN_COMMANDS(STANDIN_ENTRY) STANDIN_OBJECTS(STANDIN_OBJECT)
  PFN_vkCreateInstance CreateInstance;
  PFN_vkCreateDevice CreateDevice;
  PFN_vkDestroyDevice DestroyDevice;
  PFN_vkGetDeviceQueue GetDeviceQueue;
  PFN_vkCreateComputePipelines CreateComputePipelines;
  PFN_vkDestroyPipeline DestroyPipeline;
  PFN_vkAllocateMemory AllocateMemory;
  PFN_vkFreeMemory FreeMemory;
  PFN_vkFreeCommandBuffers FreeCommandBuffers;
  PFN_vkEndCommandBuffer EndCommandBuffer;
  PFN_vkResetCommandBuffer ResetCommandBuffer;
  PFN_vkGetBufferMemoryRequirements GetBufferMemoryRequirements;
  PFN_vkResetCommandPool ResetCommandPool;
  PFN_vkQueueWaitIdle QueueWaitIdle;
  PFN_vkGetDeviceProcAddr GetDeviceProcAddr;
#undef STANDIN_OBJECT
#undef STANDIN_ENTRY
} standin_real;

extern standin_real standin;

/* Notes a broken rule: the first one stays. */
void standin_break(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- shuffle.c: what the entries of these names do --------------------------------------------------------------- */

void shuffle_set_seed(uint64_t seed);
void shuffle_recorded(unsigned *dispatches, unsigned *barriers);
#define STANDIN_ENTRY(name, is_lost, params, args) VkResult shuffle_##name params;
STANDIN_SHUFFLED(STANDIN_ENTRY)
#undef STANDIN_ENTRY
#define STANDIN_ENTRY(name, params, args) VKAPI_ATTR void VKAPI_CALL shuffle_##name params;
STANDIN_COMMANDS(STANDIN_ENTRY)
#undef STANDIN_ENTRY
void shuffle_add_queue(VkDevice device, uint32_t family, VkQueue queue);
void shuffle_end_device(VkDevice device);
VkResult shuffle_EndCommandBuffer(VkCommandBuffer commands);
void shuffle_forget(VkCommandBuffer commands);
void shuffle_flush(VkDevice device); /* the host waits for its work */
#endif
