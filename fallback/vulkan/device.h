/* An open device: what it has, its queue, and waiting for its work. */
#ifndef GKI_VULKAN_DEVICE_H
#define GKI_VULKAN_DEVICE_H
#include "vulkan/driver.h"
#include <pthread.h>

enum { GKI_VULKAN_GROUP = 64 /* items per workgroup, as gk_kernel.h has it */, GKI_VULKAN_MOST_GROUPS = 65535 };

typedef enum gki_vulkan_builtin {
  GKI_VULKAN_COPY, GKI_VULKAN_FILL, GKI_VULKAN_CONTROL, GKI_VULKAN_BUILTINS
} gki_vulkan_builtin;

/* The push constants of the control shader. */
typedef struct gki_vulkan_control {
  uint64_t points, state, slots, cancelled; /* addresses */
  uint32_t run;                             /* its point; GKW_NONE: there is no run before it */
  uint32_t reserved;
} gki_vulkan_control;

typedef struct gki_vulkan_features {
  VkPhysicalDeviceFeatures2 all; /* its pNext is `newer`, whose pNext is `floats` or NULL */
  VkPhysicalDeviceVulkan12Features newer;
  VkPhysicalDeviceShaderAtomicFloatFeaturesEXT floats;
} gki_vulkan_features;

typedef struct gki_vulkan_device {
  gki_vulkan_driver driver;
  VkInstance instance;
  VkPhysicalDevice physical;
  VkDevice device;
  gki_vulkan_features features;
  bool adds_in_subgroups;
  bool is_cpu;
  VkPhysicalDeviceMemoryProperties kinds;
  uint32_t family; /* of the queue */
  VkQueue queue;
  VkSemaphore ends;    /* a timeline: the number of the last submit that is over */
  pthread_mutex_t lock;
  bool has_lock;
  uint64_t submitted;                /* under the lock: number of submits */
  struct gki_vulkan_block *blocks;   /* under the lock */
  bool lost;                         /* atomic; `why` is written before */
  char why[256];
  VkPipelineLayout layout;
  VkPipeline builtin[GKI_VULKAN_BUILTINS];
  char name[300], driver_text[200];
} gki_vulkan_device;

gk_result gki_vulkan_open(gki_vulkan_device *device, int ordinal);
void gki_vulkan_close(gki_vulkan_device *device); /* also after a failed open */

/* Like gki_vulkan_result; also notes the loss of the device. */
gk_result gki_vulkan_check(gki_vulkan_device *device, VkResult result, const char *what);

/* Submits recorded commands, in this order, behind all earlier ones. */
gk_result gki_vulkan_submit(gki_vulkan_device *device, const VkCommandBuffer *commands, uint32_t count,
                            const char *what);

/* Waits for all that was submitted. */
gk_result gki_vulkan_wait(gki_vulkan_device *device, const char *what);
#endif
