/* An open device: what it has, its queue, and waiting for its work. */
#ifndef GKI_VULKAN_DEVICE_H
#define GKI_VULKAN_DEVICE_H
#include "gk_vulkan.h"
#include "vulkan/driver.h"
#include <pthread.h>

enum { GKI_VULKAN_GROUP = 64 /* items per workgroup on a GPU */, GKI_VULKAN_MOST_GROUPS = 65535,
       GKI_VULKAN_CAPABILITIES = 19 };

/* A kernel's code, or COPY or FILL. */
typedef struct gki_vulkan_kernel {
  VkPipeline pipeline;
  VkPipeline unchecked; /* for tasks without a guard whose count the host knows, unless it is bad: it takes less time */
  unsigned per_block[3]; /* handwritten: the items that a workgroup covers */
} gki_vulkan_kernel;

/* gk's shaders that aren't control shaders. */
enum { GKI_VULKAN_COPY, GKI_VULKAN_FILL, GKI_VULKAN_GRIDS, GKI_VULKAN_BUILTINS };

/* Control shaders: one per kind of point that a step decides at, and one that walks. Each has a form for each set of
 * these bits: the list has always-tasks, the loop a bound; the launch can be cancelled; the list has sections, the loop
 * .every. */
enum { GKI_VULKAN_WALK = 13, GKI_VULKAN_CONTROLS, GKI_VULKAN_FORMS = 32,
       GKI_VULKAN_ALWAYS = 1, GKI_VULKAN_BOUND = 2, GKI_VULKAN_CANCELS = 4, GKI_VULKAN_SECTIONS = 8,
       GKI_VULKAN_EVERY = 16 };

enum { GKI_VULKAN_PUSHED = 128 /* bytes of push constants that every device has */ };

/* The push constants of the control shader and of the one that sets grids. */
typedef struct gki_vulkan_control {
  uint64_t points, state, slots, cancelled, gates; /* addresses */
  uint32_t run;   /* the point of the run before it; GKW_NONE: there is none */
  uint32_t walks; /* 1: the shader walks; 0: it notes that the run has ended, and other runs of the group follow */
} gki_vulkan_control;

/* The push constants of a control shader that takes one step, behind those of a task, which leave them as they are. */
typedef struct gki_vulkan_pushed_step {
  uint64_t state, slots, cancelled; /* addresses */
  uint32_t words[17];               /* of gk_points_step */
} gki_vulkan_pushed_step;

/* How the tasks of a run that doesn't come are skipped. */
typedef enum gki_vulkan_gate {
  GKI_VULKAN_CONDITION, /* conditional rendering around the run */
  GKI_VULKAN_GRID,      /* indirect grids of no groups */
  GKI_VULKAN_GUARD,     /* each workgroup looks at a word in memory */
} gki_vulkan_gate;

/* Linked by pNext: `all`, `newer`, then the structs of extensions that the device has, then `older`. */
typedef struct gki_vulkan_features {
  VkPhysicalDeviceFeatures2 all;
  VkPhysicalDeviceVulkan12Features newer;
  VkPhysicalDeviceVulkan11Features older;
  VkPhysicalDeviceShaderAtomicFloatFeaturesEXT floats;
  VkPhysicalDeviceConditionalRenderingFeaturesEXT conditions;
} gki_vulkan_features;

/* Memory of one kind that the driver gave. */
enum { GKI_VULKAN_CLASSES = 40 };
typedef struct gki_vulkan_pool {
  struct gki_vulkan_block *free[GKI_VULKAN_CLASSES]; /* ranges of 2^k * 256 bytes and more, but less than twice that */
  size_t bytes;                                      /* of all chunks */
} gki_vulkan_pool;

typedef struct gki_vulkan_device {
  gki_vulkan_driver driver;
  VkInstance instance;
  VkPhysicalDevice physical;
  VkPhysicalDeviceProperties properties;
  VkDeviceSize most_bytes; /* of an allocation */
  VkDevice device;
  gki_vulkan_features features;
  gk_vulkan_sharing sharing; /* zeroed: the device is gk's own */
  const char *extensions[2]; /* enabled, of a device of gk's own */
  uint32_t extension_count;
  gki_vulkan_gate gate;
  uint32_t group; /* items per workgroup. A CPU takes time for each subgroup, so it has one subgroup there */
  VkSubgroupFeatureFlags subgroups; /* what compute shaders do in them */
  bool is_cpu;
  VkPhysicalDeviceMemoryProperties memory;
  uint32_t family; /* of the queue */
  VkQueue queue;
  VkSemaphore timeline; /* its value: the number of the last submit that is over */
  pthread_mutex_t lock;
  bool has_lock;
  uint64_t submitted;                 /* under the lock: number of submits */
  bool unmapped;                      /* the host doesn't see GK_DEVICE_MEMORY ($GK_VULKAN_UNMAPPED) */
  gki_vulkan_pool pools[2];           /* under the lock: by gk_memory */
  struct gki_vulkan_block **blocks;   /* under the lock: by address; free ranges, too */
  size_t block_count, block_capacity;
  struct gki_vulkan_staging *staging; /* atomic: not in use; NULL: there is none */
  bool has_loss;                      /* atomic: a thread writes, or has written, `loss` */
  bool is_lost;                       /* atomic; `loss` is written before */
  char loss[256];                     /* a message */
  VkPipelineLayout layout;
  gki_vulkan_kernel builtin[GKI_VULKAN_BUILTINS]; /* zeroed: not made yet; so are `controls` */
  VkShaderModule walk, step;
  VkPipelineCache pipelines; /* NULL: there is none */
  size_t pipelines_bytes;    /* of its data as it was found on disk */
  VkPipeline controls[GKI_VULKAN_CONTROLS][GKI_VULKAN_FORMS];
  char name[300], driver_text[200];
  gk_capability capabilities[GKI_VULKAN_CAPABILITIES];
  char missing[2500]; /* what the capabilities say of features that aren't there */
} gki_vulkan_device;

/* A feature that gk needs, or uses if it is enabled. */
typedef struct gki_vulkan_feature {
  const char *construct; /* of the capability report; NULL: gk needs it */
  uint32_t capability;   /* of SPIR-V (compile.h), for shaders that need the feature; 0: none does */
  bool is_there;
  const char *name, *instead; /* instead: what gk does without it; NULL: it needs the feature */
} gki_vulkan_feature;
enum { GKI_VULKAN_FEATURES = 20 };
void gki_vulkan_list_features(const gki_vulkan_device *device, gki_vulkan_feature found[GKI_VULKAN_FEATURES]);

/* sharing: NULL, or the device of the program. */
gk_result gki_vulkan_open(gki_vulkan_device *device, int ordinal, const gk_vulkan_sharing *sharing);

/* gk_backend.by_default: GK_ERROR_NO_DEVICE for a device of the CPU. */
gk_result gki_vulkan_by_default(const gk_device_desc *desc);
void gki_vulkan_close(gki_vulkan_device *device); /* also after a failed open */

/* Like gki_vulkan_result; also notes the loss of the device. */
gk_result gki_vulkan_check(gki_vulkan_device *device, VkResult result, const char *what);

/* Submits recorded commands, in this order, behind all earlier ones. number: receives the submit's, from 1. */
VkResult gki_vulkan_submit(gki_vulkan_device *device, const VkCommandBuffer *commands, uint32_t count,
                           uint64_t *number);

/* Lets all later submits wait for `wait`, and signals `signal` behind all earlier ones. Either may be NULL. */
VkResult gki_vulkan_order(gki_vulkan_device *device, const gk_vulkan_point *wait, const gk_vulkan_point *signal);

/* Waits for a submit and all before it; UINT64_MAX: for all that was submitted. There is no limit of time but the
 * driver's own. VK_ERROR_DEVICE_LOST: also if another thread has noted it meanwhile, or no wait has enough memory. */
VkResult gki_vulkan_wait(gki_vulkan_device *device, uint64_t number);
#endif
