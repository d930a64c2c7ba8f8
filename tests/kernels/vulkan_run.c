/* Runs a kernel of language.h on the first Vulkan device and its host function on a copy of the memory. Compares both.
 *
 *   vulkan_run              prints the names of the kernels; without a device, prints the reason and exits with 77
 *   vulkan_run NAME FILE    runs that kernel, which FILE holds as SPIR-V
 *
 * All memory of a kernel is one block: a struct task, then its parameters with gaps in between. The whole block is
 * compared, so that a write beyond a parameter is found. Every message of the validation layer is a failure.
 *
 * uses_inside of language.h isn't run. */
#include "gk_backend.h"
#include "language.h"
#include "lower/task.h"
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vulkan/vulkan.h>

enum { SKIPPED = 77, ARGUMENTS = 1024, GAP = 64, BLOCK = 1 << 18, MOST_WORDS = 1 << 18, GROUP = 64 };

/* How the result in a parameter is compared. */
typedef enum compare {
  SAME,    /* floats and doubles by value, everything else by byte */
  SORTED,  /* ints, whose order depends on the order of items */
  CLOSE,   /* floats of functions that GLSL doesn't define to the last bit */
  UNKNOWN, /* not at all: it depends on the order of items */
} compare;

/* Memory or a struct by value has `from`: its `count` elements repeat the `period` bytes there. Else it is a number. */
typedef struct argument {
  const void *from;
  size_t period, count;
  compare compare;
  gk_value number;
} argument;
#define MEMORY(n, values) {.from = (values), .period = sizeof(values), .count = (n)}
#define COMPARED(n, values, how) {.from = (values), .period = sizeof(values), .count = (n), .compare = (how)}
#define NUMBER(member, v) {.number.member = (v)}

static const int unset[] = {0x5a5a5a5a}, small[] = {5, 0, 3, 0, 11, 0, 0, 2};
static const uint words[] = {3, 1000, 1, 8, 2, 0};
static const float quarters[] = {0.25f, 1.5f, 0.0f, 100.75f, 7.0f, 2.25f, 3.5f}; /* sums are exact in any order */
static const float within_one[] = {0.125f, 0.3f, 0.5f, 0.7f, 0.999f};
static const float lefts[] = {0.0f, 0.1f, 0.49999997f, 0.5f, 0.50000006f, -1.0f, 1.5f, -2.5f, 3.0f, 7.0f,
                              8388607.5f, -8388609.0f, 16777215.0f, 1e9f, -0.3f, 1e30f, INFINITY, 123456.789f, -4.5f};
static const float rights[] = {3.0f, 0.1f, -7.0f, 1e-6f, 0.0f, 1.0f, 16777215.0f, 2.5f, 1e30f, 0.7f, INFINITY};
static const double halves[] = {0.5, 4.0, 2.25, 1e-3}, eighths[] = {0.5, 4.0, 2.25, 0.125};
static const v3 points[] = {{1.0f, 2.0f, 3.0f}, {0.5f, -1.0f, 0.25f}};
static const frame frames[] = {{{1.0f, 2.0f, 4.0f}, {{8.0f, 0.5f, 1.0f}, {3.0f, 5.0f, 7.0f}}, 3, {0.25f, 1.0f, 2.0f}}};
static const counter counters[] = {{4, 2u, 0.5f}, {1, 8u, 1.25f}};
static const outer outers[] = {{1, {2.0, 3.0f, 4.0f}, {5.0f, 6.0f, 7.0f}, {{8.0, 9.0f, 1.0f}, {2.0, 3.0f, 4.0f}}, -5}};

enum { PAIRS = GK_COUNT(lefts) * GK_COUNT(rights) };

/* No number of items is a multiple of GROUP, so the last workgroup is never full. */
static const struct run {
  const gk_kernel *kernel;
  uint32_t extent[3];
  argument arguments[8];
} runs[] = {
  {&types, {203, 1, 1}, {MEMORY(203, unset), NUMBER(i32, 7), NUMBER(u32, 9), NUMBER(i64, 5000000000), NUMBER(f32, 0.5f),
                         NUMBER(f64, 0.1)}},
  {&casts, {100, 1, 1}, {MEMORY(100, unset), MEMORY(100, quarters)}},
  {&implicit, {63, 1, 1}, {MEMORY(63, unset)}},
  {&numbers, {65, 1, 1}, {MEMORY(65, unset)}},
  {&statements, {77, 1, 1}, {MEMORY(77, unset)}},
  {&structs, {131, 1, 1}, {MEMORY(131, points), MEMORY(1, frames), MEMORY(1, quarters)}},
  {&arrays, {70, 1, 1}, {MEMORY(70, unset)}},
  {&by_value, {90, 1, 1}, {MEMORY(90, unset), MEMORY(1, frames), NUMBER(i32, -2)}},
  {&preprocessor, {67, 1, 1}, {MEMORY(67, unset)}},
  {&functions, {99, 1, 1}, {COMPARED(16 * 99, unset, CLOSE), MEMORY(99, within_one)}},
  {&exact_functions, {PAIRS, 1, 1}, {MEMORY(2 * PAIRS, unset), MEMORY(PAIRS, lefts), MEMORY(PAIRS, rights)}},
  {&doubles, {71, 1, 1}, {MEMORY(71, halves)}},
  {&atomics, {1000, 1, 1}, {MEMORY(7, small), MEMORY(6, words), MEMORY(2, counters), MEMORY(1, quarters),
                            COMPARED(1000, unset, SORTED)}},
  {&loads, {500, 1, 1}, {MEMORY(2, small), MEMORY(2, words), MEMORY(2, counters), MEMORY(1, quarters),
                         COMPARED(500, unset, UNKNOWN)}},
  {&load_of_double, {67, 1, 1}, {MEMORY(67, halves), MEMORY(67, unset)}},
  {&add_to_doubles, {1001, 1, 1}, {MEMORY(6, eighths), MEMORY(1003, unset)}},
  {&look, {66, 1, 1}, {MEMORY(2, small), MEMORY(66, unset), NUMBER(i32, 3)}},
  {&sums, {1001, 1, 1}, {MEMORY(1, small), MEMORY(1, words), MEMORY(1, quarters), MEMORY(1001, quarters)}},
  {&sum_of_doubles, {1001, 1, 1}, {MEMORY(1, halves)}},
  {&plane, {37, 29, 1}, {MEMORY(37 * 29, unset), NUMBER(i32, 37), MEMORY(1, small)}},
  {&box, {13, 11, 7}, {MEMORY(13 * 11 * 7, small), NUMBER(i32, 13), NUMBER(i32, 11), MEMORY(1, small)}},
  {&names, {75, 1, 1}, {MEMORY(75, unset), MEMORY(75, quarters), NUMBER(f32, 0.5f), MEMORY(1, small)}},
  {&our_names, {80, 1, 1}, {MEMORY(80, unset), MEMORY(80, small), MEMORY(1, small), NUMBER(i32, 4), MEMORY(80, small),
                            MEMORY(1, frames), MEMORY(1, small)}},
  {&layout, {33, 1, 1}, {MEMORY(33, outers)}},
};

/* ---- Vulkan ------------------------------------------------------------------------------------------------------ */
static VkDevice device;
static VkQueue queue;
static VkCommandBuffer commands;
static unsigned char *memory; /* of the device, as the host sees it */
static VkDeviceAddress address;
static int complaints;

static void must(const char *what, VkResult result) {
  if (result == VK_SUCCESS) return;
  printf("%s: %d\n", what, (int)result);
  exit(1);
}
#define MUST(call) must(#call, call)

static void skip(const char *why) {
  printf("%s\n", why);
  exit(SKIPPED);
}

static VKAPI_ATTR VkBool32 VKAPI_CALL complain(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                               VkDebugUtilsMessageTypeFlagsEXT type,
                                               const VkDebugUtilsMessengerCallbackDataEXT *data, void *user) {
  (void)severity, (void)type, (void)user;
  printf("%s\n", data->pMessage);
  ++complaints;
  return VK_FALSE;
}

/* Asks for the layer's messages about every call from vkCreateInstance on. */
static const VkDebugUtilsMessengerCreateInfoEXT messages = {
  .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
  .messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
  .messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT, .pfnUserCallback = complain};

static VkInstance open_instance(void) {
  VkApplicationInfo program = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO, .apiVersion = VK_API_VERSION_1_2};
  VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, .pNext = &messages,
                               .pApplicationInfo = &program, .enabledLayerCount = 1,
                               .ppEnabledLayerNames = (const char *const[]){"VK_LAYER_KHRONOS_validation"},
                               .enabledExtensionCount = 1,
                               .ppEnabledExtensionNames = (const char *const[]){VK_EXT_DEBUG_UTILS_EXTENSION_NAME}};
  VkInstance instance;
  VkResult result = vkCreateInstance(&info, NULL, &instance);
  if (result == VK_ERROR_LAYER_NOT_PRESENT) skip("there is no VK_LAYER_KHRONOS_validation");
  if (result == VK_ERROR_INCOMPATIBLE_DRIVER) skip("there is no Vulkan device");
  must("vkCreateInstance", result);
  PFN_vkCreateDebugUtilsMessengerEXT listen =
    (PFN_vkCreateDebugUtilsMessengerEXT)vkGetInstanceProcAddr(instance, "vkCreateDebugUtilsMessengerEXT");
  VkDebugUtilsMessengerEXT messenger; /* lives until the process ends */
  MUST(listen(instance, &messages, NULL, &messenger));
  return instance;
}

static VkPhysicalDevice open_device(void) {
  VkInstance instance = open_instance();
  VkPhysicalDevice physical;
  uint32_t count = 1;
  VkResult result = vkEnumeratePhysicalDevices(instance, &count, &physical);
  if (result != VK_INCOMPLETE) must("vkEnumeratePhysicalDevices", result);
  if (count == 0) skip("there is no Vulkan device");
  /* Enables all features of the device. If a shader needs others, the layer complains. */
  VkPhysicalDeviceShaderAtomicFloatFeaturesEXT floats = {
    .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_ATOMIC_FLOAT_FEATURES_EXT};
  VkPhysicalDeviceVulkan12Features newer = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
                                            .pNext = &floats};
  VkPhysicalDeviceFeatures2 features = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, .pNext = &newer};
  vkGetPhysicalDeviceFeatures2(physical, &features);
  VkDeviceQueueCreateInfo queues = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, .queueCount = 1,
                                    .pQueuePriorities = (const float[]){1.0f}};
  VkQueueFamilyProperties families[16];
  count = GK_COUNT(families);
  vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, families);
  while (queues.queueFamilyIndex < count && !(families[queues.queueFamilyIndex].queueFlags & VK_QUEUE_COMPUTE_BIT))
    ++queues.queueFamilyIndex;
  VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, .pNext = &features,
                             .queueCreateInfoCount = 1, .pQueueCreateInfos = &queues, .enabledExtensionCount = 1,
                             .ppEnabledExtensionNames =
                               (const char *const[]){VK_EXT_SHADER_ATOMIC_FLOAT_EXTENSION_NAME}};
  MUST(vkCreateDevice(physical, &info, NULL, &device));
  vkGetDeviceQueue(device, queues.queueFamilyIndex, 0, &queue);
  VkCommandPoolCreateInfo pools = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                   .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
                                   .queueFamilyIndex = queues.queueFamilyIndex};
  VkCommandPool pool;
  MUST(vkCreateCommandPool(device, &pools, NULL, &pool));
  VkCommandBufferAllocateInfo buffers = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, .commandPool = pool,
                                         .commandBufferCount = 1};
  MUST(vkAllocateCommandBuffers(device, &buffers, &commands));
  return physical;
}

static void open_memory(VkPhysicalDevice physical) {
  VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .size = BLOCK,
                             .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT};
  VkBuffer buffer;
  MUST(vkCreateBuffer(device, &info, NULL, &buffer));
  VkMemoryRequirements needs;
  vkGetBufferMemoryRequirements(device, buffer, &needs);
  VkPhysicalDeviceMemoryProperties kinds;
  vkGetPhysicalDeviceMemoryProperties(physical, &kinds);
  const VkFlags wanted = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  uint32_t kind = 0; /* Vulkan guarantees a kind of memory that this loop finds */
  while (!(needs.memoryTypeBits >> kind & 1) || (kinds.memoryTypes[kind].propertyFlags & wanted) != wanted) ++kind;
  VkMemoryAllocateFlagsInfo flags = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
                                     .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT};
  VkMemoryAllocateInfo some = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, .pNext = &flags,
                               .allocationSize = needs.size, .memoryTypeIndex = kind};
  VkDeviceMemory allocated;
  void *mapped;
  MUST(vkAllocateMemory(device, &some, NULL, &allocated));
  MUST(vkBindBufferMemory(device, buffer, allocated, 0));
  MUST(vkMapMemory(device, allocated, 0, VK_WHOLE_SIZE, 0, &mapped));
  memory = mapped;
  address = vkGetBufferDeviceAddress(
    device, &(VkBufferDeviceAddressInfo){.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO, .buffer = buffer});
}

/* What the block begins with. */
typedef struct task {
  gki_record record;
  uint64_t arguments[GK_MAX_ARGS + 4]; /* with the extents behind them */
  gki_task_control control;
  uint64_t guard;
  gki_bad_count failures[GKI_LAUNCH_RING];
  int32_t extent[2]; /* a kernel that finds its count reads [1], or, if it has no items, [0] */
} task;
_Static_assert(sizeof(task) <= ARGUMENTS, "the parameters follow it");
enum { PUSHED = sizeof(gki_task), NUMBER = 7, NODE = 5 }; /* NUMBER of the launch */
static VkPipelineLayout push_layout;

static VkPipeline load_shader(const char *path) {
  static uint32_t text[MOST_WORDS];
  FILE *file = fopen(path, "rb");
  size_t words_read = file ? fread(text, sizeof *text, MOST_WORDS, file) : 0;
  if (file) fclose(file);
  VkShaderModuleCreateInfo code = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                   .codeSize = words_read * sizeof *text, .pCode = text};
  VkPushConstantRange range = {.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT, .size = PUSHED};
  VkPipelineLayoutCreateInfo parameters = {.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                           .pushConstantRangeCount = 1, .pPushConstantRanges = &range};
  VkComputePipelineCreateInfo info = {.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
                                      .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                                                .stage = VK_SHADER_STAGE_COMPUTE_BIT, .pName = "main"}};
  VkPipeline pipeline;
  MUST(vkCreateShaderModule(device, &code, NULL, &info.stage.module));
  MUST(vkCreatePipelineLayout(device, &parameters, NULL, &push_layout));
  info.layout = push_layout;
  MUST(vkCreateComputePipelines(device, VK_NULL_HANDLE, 1, &info, NULL, &pipeline));
  return pipeline;
}

static void run_shader(VkPipeline pipeline, uint32_t groups) {
  const gki_task pushed = {address, address + offsetof(task, guard), address + offsetof(task, control)};
  VkMemoryBarrier host_reads = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER, .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT,
                                .dstAccessMask = VK_ACCESS_HOST_READ_BIT};
  MUST(vkBeginCommandBuffer(commands, &(VkCommandBufferBeginInfo){
                                        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                        .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT}));
  vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
  vkCmdPushConstants(commands, push_layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, PUSHED, &pushed);
  vkCmdDispatch(commands, groups, 1, 1);
  vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &host_reads, 0,
                       NULL, 0, NULL);
  MUST(vkEndCommandBuffer(commands));
  VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 1, .pCommandBuffers = &commands};
  MUST(vkQueueSubmit(queue, 1, &info, VK_NULL_HANDLE));
  MUST(vkQueueWaitIdle(queue));
}

/* ---- host and device --------------------------------------------------------------------------------------------- */
static _Alignas(256) unsigned char block[BLOCK]; /* the host's copy */
static gk_value values[GK_MAX_ARGS];             /* arguments of the host function */

static size_t bytes_of(const struct run *run, uint32_t k) {
  return run->arguments[k].count * run->kernel->params[k].element_bytes;
}
static size_t place_of(const struct run *run, uint32_t k) { /* of a parameter in the block */
  size_t at = ARGUMENTS;
  for (uint32_t before = 0; before < k; ++before) at += (bytes_of(run, before) / GAP + 2) * GAP;
  return at;
}

/* How many items there are, and how the kernel learns it. Only with COUNTED and READ it executes any. */
typedef enum way {
  COUNTED,  /* the host knows the count */
  READ,     /* the kernel reads an extent from memory */
  EMPTY,    /* the host knows that there are no items */
  GUARDED,  /* the guard is closed */
  NONE,     /* the kernel reads an extent below 0, so that another one doesn't matter */
  TOO_MANY, /* the kernel reads an extent and finds too many items, */
  JUST_TOO_MANY, /* though fewer than 2^32 */
  REFUSED,  /* the host knows that there are too many items */
  WAYS
} count_case;

static void set_task(const struct run *run, count_case way) {
  const uint32_t *extent = run->extent;
  task t = {.record = {extent[0] * extent[1] * extent[2], {extent[0], extent[1]}, NODE},
            .control = {.number = NUMBER, .failures = address + offsetof(task, failures)},
            .guard = way == GUARDED ? NUMBER : NUMBER - 1, .extent = {-1, (int32_t)extent[0]}};
  uint64_t *extents = t.arguments + (run->kernel->param_count + 1) / 2 * 2;
  for (uint32_t k = 0; k < run->kernel->param_count; ++k) {
    const VkDeviceAddress at = address + place_of(run, k);
    memcpy(&t.arguments[k], run->arguments[k].from ? (const void *)&at : &values[k], 8);
  }
  for (int axis = 0; axis < 3; ++axis) extents[axis] = extent[axis];
  if (way == EMPTY) t.record.count = 0;
  if (way == REFUSED) t.record.count = GKI_UNCOUNTED;
  const bool finds_many = way == TOO_MANY || way == JUST_TOO_MANY;
  if (finds_many) t.extent[1] = INT32_MAX;
  if (way == TOO_MANY || way == NONE) extents[2] = UINT64_C(1) << 32;
  if (way == JUST_TOO_MANY) extents[1] = 2, extents[2] = 1;
  if (way == READ || way == NONE || finds_many) {
    t.record = (gki_record){GKI_UNCOUNTED | 1, {0, 0}, NODE};
    extents[0] = address + offsetof(task, extent) + (way == NONE ? 0 : sizeof(int32_t));
  }
  memcpy(memory, &t, sizeof t);
  if (finds_many || way == REFUSED) { /* the kernel must post it */
    gki_bad_count *post = &t.failures[NUMBER - 1];
    *post = (gki_bad_count){.number = NUMBER, .node = NODE};
    for (int axis = 0; finds_many && axis < 3; ++axis)
      post->extent[axis] = axis ? (int64_t)extents[axis] : INT32_MAX;
    t.control.failed = NUMBER;
  }
  memcpy(block, &t, sizeof t);
}

/* Gives both sides the same memory, apart from addresses. */
static void set_memory(const struct run *run, count_case way) {
  memset(block, 0xa5, BLOCK);
  for (uint32_t k = 0; k < run->kernel->param_count; ++k) {
    const argument *given = &run->arguments[k];
    size_t at = place_of(run, k), bytes = bytes_of(run, k);
    for (size_t n = 0; n < bytes; ++n) block[at + n] = ((const unsigned char *)given->from)[n % given->period];
    values[k] = given->number;
    if (given->from) values[k].ptr = block + at;
  }
  memcpy(memory, block, BLOCK);
  set_task(run, way);
}

static int by_size(const void *a, const void *b) {
  int left = *(const int *)a, right = *(const int *)b;
  return (left > right) - (left < right);
}

static bool agree(double seen, double wanted, bool close) {
  return seen == wanted || (isnan(seen) && isnan(wanted)) ||
         (close && fabs(seen - wanted) <= 2e-3 * fmax(1.0, fabs(wanted)));
}

/* Removes the differences that are allowed in a parameter. */
static void adjust(const struct run *run, uint32_t k) {
  const argument *given = &run->arguments[k];
  const char *type = run->kernel->params[k].element;
  unsigned char *seen = memory + place_of(run, k), *wanted = block + place_of(run, k);
  if (given->compare == SORTED) qsort(seen, given->count, sizeof(int), by_size);
  if (given->compare == SORTED) qsort(wanted, given->count, sizeof(int), by_size);
  if (given->compare == UNKNOWN) memcpy(seen, wanted, bytes_of(run, k));
  for (size_t n = 0; n < given->count; ++n)
    if (strcmp(type, "float") == 0) {
      float *a = (float *)(void *)seen + n, *b = (float *)(void *)wanted + n;
      if (agree((double)*a, (double)*b, given->compare == CLOSE)) *a = *b;
    } else if (strcmp(type, "double") == 0) {
      double *a = (double *)(void *)seen + n, *b = (double *)(void *)wanted + n;
      if (agree(*a, *b, false)) *a = *b;
    }
}

static void compare_memory(const struct run *run, count_case way, uint32_t groups) {
  for (uint32_t k = 0; k < run->kernel->param_count; ++k) adjust(run, k);
  size_t at = 0;
  while (at < BLOCK && memory[at] == block[at]) ++at;
  if (at == BLOCK) return;
  uint32_t k = run->kernel->param_count - 1;
  while (k > 0 && at < place_of(run, k)) --k;
  unsigned seen, wanted;
  memcpy(&seen, memory + at / 4 * 4, 4);
  memcpy(&wanted, block + at / 4 * 4, 4);
  printf("%s, way %d, %u workgroups: byte %td of %s (%zu bytes): %#x, not %#x\n", run->kernel->name, (int)way,
         (unsigned)groups, (ptrdiff_t)at - (ptrdiff_t)place_of(run, k), run->kernel->params[k].name, bytes_of(run, k),
         seen, wanted);
  ++complaints;
}

/* READ has one workgroup more than the items need, the other ways have a single one. */
static void run_both(const struct run *run, VkPipeline pipeline) {
  const uint32_t *extent = run->extent;
  for (count_case way = COUNTED; way < WAYS; ++way) {
    const uint32_t items = way <= READ ? extent[0] * extent[1] * extent[2] : 0;
    const uint32_t groups = way == READ ? items / GROUP + 2 : 1;
    set_memory(run, way);
    run->kernel->host(values, (gk_range){0, items, {extent[0], extent[1], extent[2]}});
    run_shader(pipeline, groups);
    compare_memory(run, way, groups);
  }
}

int main(int count, char **arguments) {
  VkPhysicalDevice physical = open_device();
  for (size_t k = 0; count == 1 && k < GK_COUNT(runs); ++k) printf("%s\n", runs[k].kernel->name);
  if (count == 1) return complaints > 0;
  for (size_t k = 0; count == 3 && k < GK_COUNT(runs); ++k) {
    if (strcmp(runs[k].kernel->name, arguments[1]) != 0) continue;
    open_memory(physical);
    run_both(&runs[k], load_shader(arguments[2]));
    return complaints > 0;
  }
  return 2;
}
