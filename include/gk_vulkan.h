/** @file gk_vulkan.h
 * Sharing with Vulkan, for programs that have an instance, a device, a queue and buffers of their own.
 *
 * Needs no header of Vulkan and may be included before or after vulkan.h. Devices and graphs are those of gk.h. Its
 * rules for errors, ownership and threads hold here, too. A device or graph of another backend, or a device that isn't
 * opened with gk_vulkan_sharing, is GK_ERROR_INVALID.
 *
 * Objects that you pass to gk stay yours and must live as long as the device that got them. \since 0.2.0 */
#ifndef GK_VULKAN_H
#define GK_VULKAN_H
#include "gk.h"

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

/** @cond as in vulkan.h on 64-bit machines */
typedef struct VkInstance_T *VkInstance;
typedef struct VkPhysicalDevice_T *VkPhysicalDevice;
typedef struct VkDevice_T *VkDevice;
typedef struct VkQueue_T *VkQueue;
typedef struct VkBuffer_T *VkBuffer;
typedef struct VkSemaphore_T *VkSemaphore;
typedef struct VkDeviceCreateInfo VkDeviceCreateInfo;
/** @endcond */

/* ---- a device and a queue of yours ------------------------------------------------------------------------------- */

enum { GK_VULKAN_SHARING = 0x564b0001 /**< gk_extension.id of gk_vulkan_sharing. */ };

/** For gk_device_desc.next: the device works with a VkDevice and a VkQueue of yours. gk_device_desc.ordinal is
 * ignored. The instance and the device must be of Vulkan 1.2 or newer. The device needs the features
 * bufferDeviceAddress, scalarBlockLayout, timelineSemaphore, storageBuffer8BitAccess, shaderInt8 and shaderInt64. gk
 * uses further ones if they are enabled: see docs/vulkan.md. */
typedef struct gk_vulkan_sharing {
  gk_extension base;                 /**< Of GK_VULKAN_SHARE. */
  VkInstance instance;               /**< Of the device. */
  VkPhysicalDevice physical_device;  /**< Of the device. */
  VkDevice device;                   /**< Of Vulkan 1.2 or newer. */
  const VkDeviceCreateInfo *created; /**< The struct that vkCreateDevice made the device from: it tells which features
                                      * are enabled. Needed only while the device is opened. */
  VkQueue queue;                     /**< gk submits all its work to it. */
  uint32_t queue_family;             /**< Of the queue; it runs compute shaders. */
  void (*(*get_instance_proc_addr)(VkInstance instance, const char *name))(void);
                                     /**< Your vkGetInstanceProcAddr; NULL: that of libvulkan.so.1. */
  void (*lock)(void *user);          /**< Called in front of each vkQueueSubmit of gk, on any thread. It must lock what
                                      * your own calls with the queue lock. Don't call gk in it, nor while you hold
                                      * this lock. NULL: no call of yours with the queue runs at the same time as a call
                                      * of gk or a launch. */
  void (*unlock)(void *user);        /**< Called behind it; NULL if `lock` is NULL. */
  void *user;                        /**< Argument of both. */
} gk_vulkan_sharing;

/** Initializes a gk_vulkan_sharing: `gk_vulkan_sharing s = {GK_VULKAN_SHARE, .instance = ...}; desc.next = &s.base;` */
#define GK_VULKAN_SHARE {GK_VULKAN_SHARING, sizeof(gk_vulkan_sharing), NULL}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/** Memory as both see it. */
typedef struct gk_vulkan_memory {
  VkBuffer buffer;  /**< NULL: only the address is known. */
  uint64_t offset;  /**< Where the memory begins in the buffer, in bytes. */
  uint64_t address; /**< Of the memory, on the device (vkGetBufferDeviceAddress plus offset). */
  size_t bytes;     /**< Size of the memory. */
  void *host;       /**< Where the host has it mapped, coherently; NULL: nowhere. */
} gk_vulkan_memory;

/** Makes memory of yours memory of the device, for gk_bind, gk_upload, gk_download and so on. The buffer has the usages
 * VK_BUFFER_USAGE_STORAGE_BUFFER_BIT, _SHADER_DEVICE_ADDRESS_BIT, _TRANSFER_SRC_BIT and _TRANSFER_DST_BIT, and is of
 * VK_SHARING_MODE_CONCURRENT or used by gk's queue family alone. If `buffer` and `host` are NULL, only kernels, COPY
 * and FILL reach the memory. gk doesn't know of your own uses of it: order them by gk_vulkan_launch. Thread-safe.
 * @param memory  gk reads `address` only if `buffer` is NULL, and `offset` only if it isn't.
 * @param at      Receives the address for gk_bind.
 * @return GK_ERROR_INVALID: there is no address or no byte, or gk knows some of them already. GK_ERROR_MEMORY. */
gk_result gk_vulkan_add_memory(gk_device *device, const gk_vulkan_memory *memory, void **at);

/** Takes memory of gk_vulkan_add_memory back; without that, gk_device_close does. Waits for gk's work on the device.
 * Before, wait for the launches that use the memory; then bind other memory to their slots. Thread-safe.
 * @param at  From gk_vulkan_add_memory.
 * @return GK_ERROR_INVALID: `at` isn't from there. GK_ERROR_DEVICE: the device is lost; the memory is removed. */
gk_result gk_vulkan_remove_memory(gk_device *device, void *at);

/** The buffer behind memory of gk_alloc, gk_bound or gk_vulkan_add_memory, from that address on. One of gk may be a
 * vertex, index, indirect, storage or uniform buffer, and be copied; it is of VK_SHARING_MODE_EXCLUSIVE. It lives as
 * long as the memory. Thread-safe.
 * @param at      Any address of the memory.
 * @param memory  Receives the buffer and the rest.
 * @return GK_ERROR_INVALID: `at` isn't memory of the device. */
gk_result gk_vulkan_find_memory(gk_device *device, const void *at, gk_vulkan_memory *memory);

/* ---- order ------------------------------------------------------------------------------------------------------- */

/** A value of a timeline semaphore of yours. */
typedef struct gk_vulkan_point {
  VkSemaphore semaphore; /**< Of type VK_SEMAPHORE_TYPE_TIMELINE. */
  uint64_t value;        /**< To wait for, or to signal. */
} gk_vulkan_point;

/** gk_launch that waits for a timeline semaphore of yours and signals one, both on the device. It copies the points and
 * returns at once. The launch runs as with gk_launch; call gk_wait as usual. Threads are as in gk_launch.
 *
 * - Once the launch begins, all work that gk submits to the queue waits for `wait`, on the device. Your own later
 *   submits to this queue come behind that.
 * - `signal` is signalled behind the launch and all its writes, however it ends: also if it yields, is cancelled, or
 *   fails, unless the device is lost. Only a launch that this call refuses signals nothing.
 * - The host decides when a launch is over (gk_wait). Only then gk submits what signals. So a submit that waits for
 *   `signal` may go to *another* queue at any time, but to *this* queue only after gk_wait: the queue would wait for
 *   work that comes behind its own.
 *
 * @param label   As in gk_launch.
 * @param wait    NULL: it waits for nothing but earlier work on the queue.
 * @param signal  NULL: nothing. The semaphore's value must be smaller until then; otherwise the launch fails.
 * @return As gk_launch; also GK_ERROR_MEMORY, since it allocates. */
gk_result gk_vulkan_launch(gk_graph *graph, int32_t label, const gk_vulkan_point *wait, const gk_vulkan_point *signal);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
