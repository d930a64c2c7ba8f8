/* A program with a VkDevice and a VkQueue of its own, which gk shares. Its tests are skipped where there is no Vulkan
 * device. */
#ifndef VULKAN_PROGRAM_H
#define VULKAN_PROGRAM_H
#include "unit/support/test.h"
#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>
#include "gk_kernel.h"
#include "gk_vulkan.h"
#include "gk_info.h"
#include <dlfcn.h>

/* ---- the program ------------------------------------------------------------------------------------------------- */

#define OF_INSTANCE(X) \
  X(EnumeratePhysicalDevices) X(GetPhysicalDeviceFeatures2) X(GetPhysicalDeviceMemoryProperties) X(CreateDevice) \
  X(GetDeviceProcAddr)
#define OF_DEVICE(X) \
  X(GetDeviceQueue) X(QueueSubmit) X(CreateBuffer) X(DestroyBuffer) X(GetBufferMemoryRequirements) X(AllocateMemory) \
  X(FreeMemory) X(BindBufferMemory) X(MapMemory) X(GetBufferDeviceAddress) X(CreateSemaphore) X(DestroySemaphore) \
  X(SignalSemaphore) X(WaitSemaphores) X(GetSemaphoreCounterValue) X(DestroyDevice)
#define ENTRY(name) static PFN_vk##name name;
OF_INSTANCE(ENTRY)
OF_DEVICE(ENTRY)

enum { NUMBERS = 100, OFFSET = 1024, BYTES = 8192 };
static PFN_vkGetInstanceProcAddr find;
static VkInstance instance;
static VkPhysicalDevice physical;
static VkDevice device;
static VkQueue queue;
static VkBuffer buffer;
static VkDeviceMemory memory;
static VkSemaphore semaphore;
static char *mapped;

static const float priority = 1.0f;
static const VkDeviceQueueCreateInfo queues = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, .queueCount = 1,
                                               .pQueuePriorities = &priority};
static VkPhysicalDeviceVulkan12Features newer;
static VkPhysicalDeviceFeatures2 all;
static VkDeviceCreateInfo created;

static void must(VkResult result) { assert_int_equal(result, VK_SUCCESS); }

/* Kept to the end: drivers that are unloaded with their last instance leave memory behind. */
static void make_instance(void) {
  if (instance) return;
  void *const library = dlopen("libvulkan.so.1", RTLD_NOW);
  if (!library) skip();
  *(void **)&find = dlsym(library, "vkGetInstanceProcAddr");
  const PFN_vkCreateInstance create = (PFN_vkCreateInstance)find(NULL, "vkCreateInstance");
  const VkApplicationInfo program = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO, .apiVersion = VK_API_VERSION_1_2};
  const VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, .pApplicationInfo = &program};
  if (create(&info, NULL, &instance) != VK_SUCCESS) skip();
#define FIND(name) name = (PFN_vk##name)find(instance, "vk" #name);
  OF_INSTANCE(FIND)
#undef FIND
  uint32_t count = 1;
  if (EnumeratePhysicalDevices(instance, &count, &physical) < 0 || count == 0) skip();
}

static void fill_created(void) {
  newer = (VkPhysicalDeviceVulkan12Features){.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
                                             .bufferDeviceAddress = 1, .scalarBlockLayout = 1, .timelineSemaphore = 1,
                                             .storageBuffer8BitAccess = 1, .shaderInt8 = 1};
  all = (VkPhysicalDeviceFeatures2){.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, .pNext = &newer,
                                    .features = {.shaderInt64 = 1}};
  created = (VkDeviceCreateInfo){.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, .pNext = &all,
                                 .queueCreateInfoCount = 1, .pQueueCreateInfos = &queues};
}

static uint32_t seen_type(uint32_t allowed) {
  VkPhysicalDeviceMemoryProperties kinds;
  const VkFlags seen = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  GetPhysicalDeviceMemoryProperties(physical, &kinds);
  for (uint32_t k = 0; k < kinds.memoryTypeCount; ++k)
    if ((allowed >> k & 1) && (kinds.memoryTypes[k].propertyFlags & seen) == seen) return k;
  fail_msg("no memory that the host sees");
  return 0;
}

static void make_buffer(void) {
  const VkBufferCreateInfo info = {
    .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .size = BYTES,
    .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT |
             VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT};
  must(CreateBuffer(device, &info, NULL, &buffer));
  VkMemoryRequirements needs;
  GetBufferMemoryRequirements(device, buffer, &needs);
  const VkMemoryAllocateFlagsInfo flags = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
                                           .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT};
  const VkMemoryAllocateInfo given = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, .pNext = &flags,
                                      .allocationSize = needs.size,
                                      .memoryTypeIndex = seen_type(needs.memoryTypeBits)};
  must(AllocateMemory(device, &given, NULL, &memory));
  must(BindBufferMemory(device, buffer, memory, 0));
  must(MapMemory(device, memory, 0, VK_WHOLE_SIZE, 0, (void **)&mapped));
}

static int begin_program(UNUSED void **state) {
  make_instance();
  fill_created();
  must(CreateDevice(physical, &created, NULL, &device));
#define FIND(name) name = (PFN_vk##name)GetDeviceProcAddr(device, "vk" #name);
  OF_DEVICE(FIND)
#undef FIND
  GetDeviceQueue(device, 0, 0, &queue);
  make_buffer();
  const VkSemaphoreTypeCreateInfo type = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                          .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
  const VkSemaphoreCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &type};
  must(CreateSemaphore(device, &info, NULL, &semaphore));
  return 0;
}

/* What gk got is the program's still. */
static int end_program(UNUSED void **state) {
  if (!device) return 0;
  DestroySemaphore(device, semaphore, NULL);
  DestroyBuffer(device, buffer, NULL);
  FreeMemory(device, memory, NULL);
  DestroyDevice(device, NULL);
  device = NULL;
  return 0;
}

#define PROGRAM_TEST(test) TEST_WITH(test, begin_program, end_program)

/* ---- its queue, between gk and the driver ------------------------------------------------------------------------ */

static unsigned locked, locks, submits;
static VkResult submit_result;
static const char *lacks = ""; /* an entry that gk doesn't find */
static uint64_t last_signal; /* the last value of the program's semaphore that a submit signals */

static void lock(void *user) {
  assert_ptr_equal(user, &locks);
  ++locked, ++locks;
}

static void unlock(void *user) {
  assert_ptr_equal(user, &locks);
  --locked;
}

static VKAPI_ATTR VkResult VKAPI_CALL submit(VkQueue to, uint32_t count, const VkSubmitInfo *what, VkFence fence) {
  assert_int_equal(locked, 1);
  ++submits;
  const VkTimelineSemaphoreSubmitInfo *numbers = what->pNext;
  if (what->signalSemaphoreCount && what->pSignalSemaphores[0] == semaphore)
    last_signal = numbers->pSignalSemaphoreValues[0];
  return submit_result != VK_SUCCESS ? submit_result : QueueSubmit(to, count, what, fence);
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL find_of_device(VkDevice of, const char *name) {
  if (strcmp(name, lacks) == 0) return NULL;
  return strcmp(name, "vkQueueSubmit") == 0 ? (PFN_vkVoidFunction)submit : GetDeviceProcAddr(of, name);
}

static PFN_vkVoidFunction find_for_gk(VkInstance of, const char *name) {
  if (strcmp(name, lacks) == 0) return NULL;
  return strcmp(name, "vkGetDeviceProcAddr") == 0 ? (PFN_vkVoidFunction)find_of_device : find(of, name);
}

static gk_vulkan_sharing sharing_of_program(void) {
  locked = locks = submits = 0;
  last_signal = 0;
  submit_result = VK_SUCCESS;
  lacks = "";
  return (gk_vulkan_sharing){GK_VULKAN_SHARE, instance, physical, device, &created, queue, 0, find_for_gk, lock, unlock,
                             &locks};
}

static gk_device *open_shared(void) {
  gk_device *shared;
  const gk_vulkan_sharing sharing = sharing_of_program();
  assert_ok(gk_device_open(&(gk_device_desc){.backend = "vulkan", .next = &sharing.base}, &shared));
  return shared;
}
#endif
