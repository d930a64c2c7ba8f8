#include "bench/vulkan/by_hand.h"
#ifdef BENCH_vulkan
#include "bench/harness/must.h"
#include "runtime/device.h"
#include "vulkan/compile.h"
#include "vulkan/device.h"
#include <string.h>

enum { RECORDINGS = 2, ITEMS_OF_GROUP = 64, TASKS = 200 };

static const char add_text[] =
  "#version 460\n"
  "#extension GL_EXT_buffer_reference : require\n"
  "layout(local_size_x = 64) in;\n"
  "layout(buffer_reference, std430) buffer ints { int at[]; };\n"
  "layout(push_constant) uniform task { ints x; uint items; int by; };\n"
  "void main() { uint i = gl_GlobalInvocationID.x; if (i < items) x.at[i] += by; }\n";

static gki_vulkan_device *vulkan; /* gk's */
static VkPipeline add;
static VkCommandPool pool;
static VkCommandBuffer recordings[RECORDINGS];
static VkSemaphore timeline;
static uint64_t submitted;

static void must(VkResult result) {
  if (result != VK_SUCCESS) bench_fail("a call of Vulkan by hand failed");
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

void bench_hand_record(int which, hand_task task, int count) {
  const gki_vulkan_driver *driver = &vulkan->driver;
  const VkCommandBuffer commands = recordings[which];
  const VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  const VkMemoryBarrier barrier = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                   .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT,
                                   .dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT};
  must(driver->BeginCommandBuffer(commands, &begin));
  driver->CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, add);
  driver->CmdPushConstants(commands, vulkan->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof task, &task);
  for (int k = 0; k < count; ++k) {
    driver->CmdDispatch(commands, (task.items + ITEMS_OF_GROUP - 1) / ITEMS_OF_GROUP, 1, 1);
    driver->CmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0,
                               1, &barrier, 0, NULL, 0, NULL);
  }
  must(driver->EndCommandBuffer(commands));
}

void bench_hand_submit_and_wait(int which) {
  ++submitted;
  const VkTimelineSemaphoreSubmitInfo number = {.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
                                                .signalSemaphoreValueCount = 1, .pSignalSemaphoreValues = &submitted};
  const VkSubmitInfo submit = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .pNext = &number, .commandBufferCount = 1,
                               .pCommandBuffers = &recordings[which], .signalSemaphoreCount = 1,
                               .pSignalSemaphores = &timeline};
  const VkSemaphoreWaitInfo wait = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO, .semaphoreCount = 1,
                                    .pSemaphores = &timeline, .pValues = &submitted};
  must(vulkan->driver.QueueSubmit(vulkan->queue, 1, &submit, VK_NULL_HANDLE));
  must(vulkan->driver.WaitSemaphores(vulkan->device, &wait, UINT64_MAX));
}

/* ---- the floor --------------------------------------------------------------------------------------------------- */

static bool one_trip(void *with, uint64_t times, bench_took *took) {
  (void)with;
  bench_hand_record(0, (hand_task){0}, 0);
  const double begin = bench_now();
  for (uint64_t k = 0; k < times; ++k) bench_hand_submit_and_wait(0);
  took->all += (bench_now() - begin) * 1e-3;
  return true;
}

static double submitted_us(int which) {
  const double begin = bench_now();
  bench_hand_submit_and_wait(which);
  return (bench_now() - begin) * 1e-3;
}

/* with: memory for an int */
static bool one_task(void *with, uint64_t times, bench_took *took) {
  const hand_task task = {(uintptr_t)with, 1, 1};
  for (int k = 0; k < RECORDINGS; ++k) bench_hand_record(k, task, (k + 1) * TASKS);
  for (uint64_t k = 0; k < times; ++k) {
    took->all += submitted_us(1) / TASKS;
    took->less += submitted_us(0) / TASKS;
  }
  return true;
}

static void measure_floor(gk_device *device) {
  void *x = gk_alloc(device, sizeof(int), GK_DEVICE_MEMORY);
  if (!x) bench_fail(gk_error());
  bench_floor(&(bench_table){"floor", "what the device takes", "the least times of simple operations", "us",
    .variants = {{VULKAN_TRIP, one_trip}, {VULKAN_TASK, one_task, x}}});
  gk_free(device, x);
}

/* ---- beginning --------------------------------------------------------------------------------------------------- */

static void make_pipeline(void) {
  uint32_t *words;
  size_t bytes;
  VkShaderModule module;
  bench_must(gki_vulkan_compile("the kernel by hand", add_text, "-DBY_HAND", &words, &bytes));
  const VkShaderModuleCreateInfo shader = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, .codeSize = bytes,
                                           .pCode = words};
  must(vulkan->driver.CreateShaderModule(vulkan->device, &shader, NULL, &module));
  gk_host_free(words);
  const VkComputePipelineCreateInfo info = {
    .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO, .layout = vulkan->layout,
    .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO, .stage = VK_SHADER_STAGE_COMPUTE_BIT,
              .module = module, .pName = "main"}};
  must(vulkan->driver.CreateComputePipelines(vulkan->device, VK_NULL_HANDLE, 1, &info, NULL, &add));
  vulkan->driver.DestroyShaderModule(vulkan->device, module, NULL);
}

void bench_hand_begin(gk_device *device) {
  vulkan = device->state;
  const gki_vulkan_driver *driver = &vulkan->driver;
  const VkCommandPoolCreateInfo commands = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                            .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
                                            .queueFamilyIndex = vulkan->family};
  must(driver->CreateCommandPool(vulkan->device, &commands, NULL, &pool));
  const VkCommandBufferAllocateInfo buffers = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                               .commandPool = pool, .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                               .commandBufferCount = RECORDINGS};
  must(driver->AllocateCommandBuffers(vulkan->device, &buffers, recordings));
  const VkSemaphoreTypeCreateInfo type = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                          .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
  const VkSemaphoreCreateInfo semaphore = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &type};
  must(driver->CreateSemaphore(vulkan->device, &semaphore, NULL, &timeline));
  make_pipeline();
  measure_floor(device);
}

void bench_hand_end(void) {
  vulkan->driver.DestroyPipeline(vulkan->device, add, NULL);
  vulkan->driver.DestroySemaphore(vulkan->device, timeline, NULL);
  vulkan->driver.DestroyCommandPool(vulkan->device, pool, NULL);
}
#endif
