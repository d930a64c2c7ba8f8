/* libvulkan, found at run time: a table of its functions, and failures as messages. */
#ifndef GKI_VULKAN_DRIVER_H
#define GKI_VULKAN_DRIVER_H
#define VK_NO_PROTOTYPES
#include "gk_backend.h"
#include <vulkan/vulkan.h>

#define GKI_VULKAN_OF_INSTANCE(X) \
  X(EnumeratePhysicalDevices) X(GetPhysicalDeviceProperties2) X(GetPhysicalDeviceFeatures2) \
  X(GetPhysicalDeviceQueueFamilyProperties) X(GetPhysicalDeviceMemoryProperties) \
  X(EnumerateDeviceExtensionProperties) X(CreateDevice) X(GetDeviceProcAddr)
#define GKI_VULKAN_OF_DEVICE(X) \
  X(DestroyDevice) X(GetDeviceQueue) X(QueueSubmit) X(CreateSemaphore) X(DestroySemaphore) X(WaitSemaphores) \
  X(CreateBuffer) X(DestroyBuffer) X(GetBufferMemoryRequirements) X(GetBufferDeviceAddress) X(AllocateMemory) \
  X(FreeMemory) X(BindBufferMemory) X(MapMemory) X(CreateShaderModule) X(DestroyShaderModule) \
  X(CreatePipelineLayout) X(DestroyPipelineLayout) X(CreateComputePipelines) X(DestroyPipeline) X(CreateCommandPool) \
  X(CreatePipelineCache) X(DestroyPipelineCache) X(GetPipelineCacheData) \
  X(DestroyCommandPool) X(AllocateCommandBuffers) X(BeginCommandBuffer) X(EndCommandBuffer) X(CmdBindPipeline) \
  X(CmdPushConstants) X(CmdDispatch) X(CmdDispatchIndirect) X(CmdPipelineBarrier) X(CmdCopyBuffer) \
  X(FreeCommandBuffers) X(CmdFillBuffer) X(GetSemaphoreCounterValue)
#define GKI_VULKAN_OPTIONAL(X) X(CmdBeginConditionalRenderingEXT) X(CmdEndConditionalRenderingEXT) /* may be NULL */

typedef struct gki_vulkan_driver {
#define GKI_VULKAN_ENTRY(name) PFN_vk##name name;
  GKI_VULKAN_OF_INSTANCE(GKI_VULKAN_ENTRY)
  GKI_VULKAN_OF_DEVICE(GKI_VULKAN_ENTRY)
  GKI_VULKAN_OPTIONAL(GKI_VULKAN_ENTRY)
#undef GKI_VULKAN_ENTRY
  bool is_shared; /* the instance is the program's */
} gki_vulkan_driver;

/* Fills the instance's part of the table. find: NULL: that of the library, which is loaded. *instance: NULL: becomes
 * that of the process. GK_ERROR_NO_DEVICE: there is no Vulkan 1.2; GK_ERROR_INVALID: the program's instance isn't of
 * it. */
gk_result gki_vulkan_driver_open(gki_vulkan_driver *driver, PFN_vkGetInstanceProcAddr find, VkInstance *instance);

/* Fills the device's part. */
gk_result gki_vulkan_driver_find(gki_vulkan_driver *driver, VkDevice device);

/* VK_SUCCESS is GK_OK. Else a message: what was done, and the driver's result. */
gk_result gki_vulkan_result(VkResult result, const char *what);
#endif
