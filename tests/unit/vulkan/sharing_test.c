/* gk_vulkan.h on a VkDevice and a VkQueue of the program. */
#include "program.h"
#include <stdatomic.h>
#include <time.h>

/* ---- a list ------------------------------------------------------------------------------------------------------ */

GK_SOURCE(sharing_test)
GK_KERNEL(halve, (inout(int, x))) { x[i] /= 2; }
GK_KERNEL(look, (in(int, x), out(int, again))) { again[i] = x[0] > 10 ? 1 : 0; }
GK_SOURCE_END

enum { X = 1, COUNT, AGAIN, ON_DEVICE, ENOUGH = 7 };
static const gk_slot_desc slots[] = {GK_BUFFER(X, int), GK_SCALAR(COUNT, int), GK_OWN(AGAIN, int, 1),
                                     GK_BUFFER(ON_DEVICE, int)};
static const gk_task tasks[] = {GK_DO_WHILE(AGAIN), GK_RUN(halve, COUNT, X), GK_RUN(look, GK_ONE, X, AGAIN), GK_END};
static const gk_task straight[] = {GK_RUN(halve, COUNT, X)};
static const gk_task pausing[] = {GK_CHECKPOINT(ENOUGH, AGAIN), GK_RUN(halve, COUNT, X),
                                  GK_RUN(look, GK_ONE, X, AGAIN), GK_END, GK_RUN(halve, COUNT, X)};
static const gk_task counted[] = {GK_FILL(AGAIN, ON_DEVICE, 0)};
static const gk_list loop = GK_LIST(loop, tasks, slots), once = GK_LIST(once, straight, slots),
                     pauses = GK_LIST(pauses, pausing, slots), counts = GK_LIST(counts, counted, slots);

static gk_graph *graph_of(gk_device *shared, const gk_list *list, const void *x) {
  gk_graph *graph;
  assert_ok(gk_graph_create(shared, list, 0, &graph));
  assert_ok(gk_bind(graph, X, x));
  assert_ok(gk_bind_int(graph, COUNT, NUMBERS));
  return graph;
}

static void *add_program_memory(gk_device *shared) {
  void *at;
  const gk_vulkan_memory whole = {.buffer = buffer, .offset = OFFSET, .bytes = NUMBERS * sizeof(int),
                                  .host = mapped + OFFSET};
  assert_ok(gk_vulkan_add_memory(shared, &whole, &at));
  return at;
}

static void put(int number) {
  for (int k = 0; k < NUMBERS; ++k) ((int *)(void *)(mapped + OFFSET))[k] = number + k;
}

static void expect(int number, int divisor) {
  const int *const x = (const int *)(const void *)(mapped + OFFSET);
  for (int k = 0; k < NUMBERS; ++k) assert_int_equal(x[k], (number + k) / divisor);
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

PROGRAM_TEST(lists_run_on_memory_of_the_program) {
  gk_device *shared = open_shared();
  gk_graph *graph = graph_of(shared, &loop, add_program_memory(shared));
  memset(mapped, 0x55, BYTES);
  put(100);
  assert_ok(gk_launch(graph, 0));
  assert_ok(gk_wait(graph, NULL));
  expect(100, 16);
  for (int k = 0; k < OFFSET; ++k) assert_int_equal(mapped[k], 0x55);
  assert_int_equal(mapped[OFFSET + NUMBERS * sizeof(int)], 0x55);
  assert_true(submits > 0);
  assert_int_equal(locks, submits);
  gk_graph_destroy(graph);
  gk_device_close(shared);
}

PROGRAM_TEST(memory_is_added_found_and_removed) {
  gk_device *shared = open_shared();
  void *const at = add_program_memory(shared);
  void *other;
  gk_vulkan_memory found;
  const VkBufferDeviceAddressInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO, .buffer = buffer};
  assert_int_equal((uintptr_t)at, GetBufferDeviceAddress(device, &info) + OFFSET);
  const gk_vulkan_memory overlaps = {.buffer = buffer, .bytes = OFFSET + 1}, empty = {.buffer = buffer},
                         nowhere = {.bytes = 1}, endless = {.address = UINT64_MAX - 1, .bytes = 4};
  assert_fails(GK_ERROR_INVALID, "are known to gk already", gk_vulkan_add_memory(shared, &overlaps, &other));
  assert_fails(GK_ERROR_INVALID, "`bytes` is 0", gk_vulkan_add_memory(shared, &empty, &other));
  assert_fails(GK_ERROR_INVALID, "neither a buffer nor an address", gk_vulkan_add_memory(shared, &nowhere, &other));
  assert_fails(GK_ERROR_INVALID, "no memory has 4 bytes from 0x", gk_vulkan_add_memory(shared, &endless, &other));
  assert_fails(GK_ERROR_INVALID, "`memory` is NULL", gk_vulkan_add_memory(shared, NULL, &other));
  assert_ok(gk_vulkan_find_memory(shared, (char *)at + 8, &found));
  assert_ptr_equal(found.buffer, buffer);
  assert_int_equal(found.offset, OFFSET + 8);
  assert_int_equal(found.bytes, NUMBERS * sizeof(int) - 8);
  assert_ptr_equal(found.host, mapped + OFFSET + 8);
  void *const of_gk = gk_alloc(shared, 1000, GK_DEVICE_MEMORY);
  assert_ok(gk_vulkan_find_memory(shared, of_gk, &found));
  const VkBufferDeviceAddressInfo theirs = {.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO,
                                            .buffer = found.buffer};
  assert_int_equal((uintptr_t)of_gk, GetBufferDeviceAddress(device, &theirs) + found.offset);
  assert_int_equal((uintptr_t)of_gk, found.address);
  assert_fails(GK_ERROR_INVALID, "isn't from gk_vulkan_add_memory", gk_vulkan_remove_memory(shared, of_gk));
  assert_fails(GK_ERROR_INVALID, "isn't from gk_vulkan_add_memory", gk_vulkan_remove_memory(shared, (char *)at + 4));
  gk_free(shared, of_gk);
  assert_ok(gk_vulkan_remove_memory(shared, at));
  assert_fails(GK_ERROR_INVALID, "isn't memory of this device", gk_vulkan_find_memory(shared, at, &found));
  assert_ptr_equal(add_program_memory(shared), at);
  gk_device_close(shared);
}

PROGRAM_TEST(an_address_without_a_buffer) {
  gk_device *shared = open_shared();
  const VkBufferDeviceAddressInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO, .buffer = buffer};
  const gk_vulkan_memory address = {.address = GetBufferDeviceAddress(device, &info) + OFFSET,
                                    .bytes = NUMBERS * sizeof(int)};
  void *at;
  int32_t number = 0;
  assert_ok(gk_vulkan_add_memory(shared, &address, &at));
  gk_graph *graph = graph_of(shared, &once, at);
  put(40);
  assert_ok(gk_launch(graph, 0));
  assert_ok(gk_wait(graph, NULL));
  expect(40, 2);
  assert_fails(GK_ERROR_INVALID, "it was added as an address alone", gk_download(shared, &number, at, sizeof number));
  assert_fails(GK_ERROR_INVALID, "it was added as an address alone", gk_upload(shared, at, &number, sizeof number));
  gk_graph_destroy(graph);
  gk_device_close(shared);
}

/* Behind gk_wait. */
static void expect_signalled(uint64_t expected) {
  uint64_t value;
  assert_int_equal(last_signal, expected);
  must(WaitSemaphores(device, &(VkSemaphoreWaitInfo){.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                                                     .semaphoreCount = 1, .pSemaphores = &semaphore,
                                                     .pValues = &expected}, UINT64_MAX));
  must(GetSemaphoreCounterValue(device, semaphore, &value));
  assert_int_equal(value, expected);
}

PROGRAM_TEST(signals_however_a_launch_ends) {
  gk_device *shared = open_shared();
  void *const at = add_program_memory(shared);
  gk_graph *graph = graph_of(shared, &pauses, at), *bad = graph_of(shared, &counts, at);
  const gk_status *status;
  put(30);
  assert_ok(gk_vulkan_launch(graph, 0, NULL, &(gk_vulkan_point){semaphore, 1}));
  assert_ok(gk_wait(graph, &status));
  assert_int_equal(status->state, GK_YIELDED);
  expect_signalled(1);
  assert_ok(gk_vulkan_launch(graph, ENOUGH, &(gk_vulkan_point){semaphore, 1}, &(gk_vulkan_point){semaphore, 5}));
  assert_ok(gk_wait(graph, &status));
  expect_signalled(5);
  expect(30, 8);
  int32_t *count = gk_alloc(shared, sizeof *count, GK_HOST_MEMORY);
  *(int32_t *)gk_host_address(shared, count) = 1000;
  assert_ok(gk_bind(bad, ON_DEVICE, count));
  assert_ok(gk_vulkan_launch(bad, 0, NULL, &(gk_vulkan_point){semaphore, 6}));
  assert_fails(GK_ERROR_INVALID, "task 0 (AGAIN = 0): 1000 elements of 4 bytes", gk_wait(bad, NULL));
  expect_signalled(6);
  assert_ok(gk_vulkan_launch(graph, 0, NULL, &(gk_vulkan_point){semaphore, 6}));
  assert_fails(GK_ERROR_INVALID, "can't signal the value 6, since the semaphore is at 6 already", gk_wait(graph, NULL));
  assert_fails(GK_ERROR_INVALID, "no checkpoint or YIELD with label 99",
               gk_vulkan_launch(graph, 99, NULL, &(gk_vulkan_point){semaphore, 7}));
  assert_fails(GK_ERROR_INVALID, "`signal` has no semaphore", gk_vulkan_launch(graph, 0, NULL, &(gk_vulkan_point){0}));
  expect_signalled(6);
  gk_graph_destroy(bad);
  gk_graph_destroy(graph);
  gk_device_close(shared);
}

static int host_saw;
static uint64_t host_saw_signal;
static atomic_int host_calls;
static gk_result see_first(const gk_value *args, void *native) {
  (void)native;
  atomic_fetch_add(&host_calls, 1);
  host_saw = *(const int *)args[0].ptr;
  host_saw_signal = last_signal;
  return GK_OK;
}

/* What the host does comes behind the program's semaphore, and before the launch signals. */
PROGRAM_TEST(host_calls_come_between_semaphores) {
  static const gk_task calling[] = {GK_CALL_HOST(see_first, X), GK_IF(AGAIN), GK_END, GK_RUN(halve, COUNT, X)};
  static const gk_list list = GK_LIST(list, calling, slots);
  gk_device *shared = open_shared();
  void *const at = add_program_memory(shared);
  for (uint32_t k = 0; k < 2; ++k) { /* ahead, and host-gated */
    gk_graph *graph;
    const gk_vulkan_point wait = {semaphore, 2 * k + 1}, signal = {semaphore, 2 * k + 2};
    assert_ok(gk_graph_create(shared, &list, k ? GK_HOST_GATED : 0, &graph));
    assert_ok(gk_bind(graph, X, at));
    assert_ok(gk_bind_int(graph, COUNT, NUMBERS));
    put(0);
    assert_ok(gk_vulkan_launch(graph, 0, &wait, &signal));
    for (int n = 0; n < 200 && atomic_load(&host_calls) == (int)k; ++n) { /* it has time to come too early */
      assert_int_equal(gk_poll(graph, NULL), GK_NOT_READY);
      nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    put(100);
    must(SignalSemaphore(device, &(VkSemaphoreSignalInfo){.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO,
                                                          .semaphore = semaphore, .value = wait.value}));
    assert_ok(gk_wait(graph, NULL));
    assert_int_equal(host_saw, 100);
    assert_int_equal(host_saw_signal, wait.value - 1);
    expect_signalled(signal.value);
    expect(100, 2);
    gk_graph_destroy(graph);
  }
  gk_device_close(shared);
}

/* The numbers are there only when the semaphore is signalled, behind the launch. */
PROGRAM_TEST(a_launch_waits_and_signals) {
  gk_device *shared = open_shared();
  gk_graph *graph = graph_of(shared, &loop, add_program_memory(shared));
  const gk_vulkan_point wait = {semaphore, 1}, signal = {semaphore, 2};
  put(0);
  assert_ok(gk_vulkan_launch(graph, 0, &wait, &signal));
  put(100);
  assert_int_equal(gk_poll(graph, NULL), GK_NOT_READY);
  must(SignalSemaphore(device, &(VkSemaphoreSignalInfo){.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO,
                                                        .semaphore = semaphore, .value = 1}));
  must(WaitSemaphores(device, &(VkSemaphoreWaitInfo){.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                                                     .semaphoreCount = 1, .pSemaphores = &semaphore,
                                                     .pValues = &signal.value}, UINT64_MAX));
  expect(100, 16);
  assert_ok(gk_wait(graph, NULL));
  assert_int_equal(locks, submits);
  gk_graph_destroy(graph);
  gk_device_close(shared);
}

PROGRAM_TEST(a_lost_device) {
  gk_device *shared = open_shared();
  gk_graph *graph = graph_of(shared, &loop, add_program_memory(shared));
  submit_result = VK_ERROR_DEVICE_LOST;
  assert_ok(gk_vulkan_launch(graph, 0, NULL, &(gk_vulkan_point){semaphore, 1}));
  assert_fails(GK_ERROR_DEVICE, "the device is lost", gk_wait(graph, NULL));
  assert_fails(GK_ERROR_DEVICE, "the device was lost; close it", gk_launch(graph, 0));
  assert_fails(GK_ERROR_DEVICE, "the device was lost; close it", gk_vulkan_launch(graph, 0, NULL, NULL));
  gk_graph_destroy(graph);
  gk_device_close(shared);
  shared = open_shared();
  graph = graph_of(shared, &once, add_program_memory(shared));
  put(10);
  assert_ok(gk_launch(graph, 0));
  assert_ok(gk_wait(graph, NULL));
  expect(10, 2);
  gk_graph_destroy(graph);
  gk_device_close(shared);
}

/* ---- refusals ---------------------------------------------------------------------------------------------------- */

static void expect_refusal(const char *says, const gk_vulkan_sharing *sharing) {
  gk_device *shared;
  assert_fails(GK_ERROR_INVALID, says,
               gk_device_open(&(gk_device_desc){.backend = "vulkan", .next = &sharing->base}, &shared));
}

PROGRAM_TEST(each_needed_feature_is_missed) {
  const struct { VkBool32 *feature; const char *name; } needed[] = {
    {&newer.bufferDeviceAddress, "without bufferDeviceAddress"},
    {&newer.scalarBlockLayout, "without scalarBlockLayout"},
    {&newer.timelineSemaphore, "without timelineSemaphore"}, {&newer.shaderInt8, "without shaderInt8"},
    {&newer.storageBuffer8BitAccess, "without storageBuffer8BitAccess"},
    {&all.features.shaderInt64, "without shaderInt64"}};
  const gk_vulkan_sharing sharing = sharing_of_program();
  for (size_t k = 0; k < GK_COUNT(needed); ++k) {
    *needed[k].feature = VK_FALSE;
    expect_refusal(needed[k].name, &sharing);
    *needed[k].feature = VK_TRUE;
  }
}

/* The structs of before Vulkan 1.2 say the same. */
PROGRAM_TEST(features_in_structs_of_their_own) {
  VkPhysicalDevice8BitStorageFeatures bytes = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES,
                                               .storageBuffer8BitAccess = 1};
  VkPhysicalDeviceShaderFloat16Int8Features small = {
    .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES, .pNext = &bytes, .shaderInt8 = 1};
  VkPhysicalDeviceScalarBlockLayoutFeatures scalar = {
    .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SCALAR_BLOCK_LAYOUT_FEATURES, .pNext = &small, .scalarBlockLayout = 1};
  VkPhysicalDeviceTimelineSemaphoreFeatures timeline = {
    .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES, .pNext = &scalar, .timelineSemaphore = 1};
  VkPhysicalDeviceBufferDeviceAddressFeatures address = {
    .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES, .pNext = &timeline,
    .bufferDeviceAddress = 1};
  const VkPhysicalDeviceFeatures basic = {.shaderInt64 = 1};
  created.pNext = &address;
  created.pEnabledFeatures = &basic;
  gk_device_close(open_shared());
  address.bufferDeviceAddress = VK_FALSE;
  address.bufferDeviceAddressMultiDevice = VK_TRUE;
  const gk_vulkan_sharing sharing = sharing_of_program();
  expect_refusal("without bufferDeviceAddress", &sharing);
}

/* A shader that does nothing, for a kernel that needs one more capability of SPIR-V. */
static gk_result create_needing(gk_device *on, uint32_t capability) {
  const uint32_t words[] = {
    0x07230203, 0x00010500, 0, 5, 0, 0x20011, 1, 0x20011, capability,       /* OpCapability: Shader, and that one */
    0x3000e, 0, 1, 0x5000f, 5, 1, 0x6e69616d, 0, 0x60010, 1, 17, 1, 1, 1,   /* its entry is main, with a size of 1 */
    0x20013, 2, 0x30021, 3, 2, 0x50036, 2, 1, 0, 3, 0x200f8, 4, 0x100fd, 0x10038};
  const gk_param param = {"x", "int", 4, 4, GK_PTR, GK_ACCESS_INOUT};
  const gk_code code = {.image = words, .image_bytes = sizeof words};
  const gk_kernel kernel = {.name = "needing", .params = &param, .param_count = 1, .vulkan = &code};
  const gk_task needing[] = {GK_RUN(kernel, GK_ONE, X)};
  const gk_list list = GK_LIST(list, needing, slots);
  gk_graph *graph;
  const gk_result result = gk_graph_create(on, &list, 0, &graph);
  gk_graph_destroy(graph);
  return result;
}

/* Opening tells gk what is enabled. ImageQuery needs no feature, but gk doesn't know that. */
PROGRAM_TEST(shaders_need_what_is_enabled) {
  enum { IMAGE_QUERY = 50, STORAGE_BUFFER_16BIT_ACCESS = 4433 };
  gk_device *own, *shared = open_shared();
  assert_fails(GK_ERROR_UNSUPPORTED, "kernel needing: it needs numbers of 16 bits in memory (storageBuffer16BitAccess)",
               create_needing(shared, STORAGE_BUFFER_16BIT_ACCESS));
  assert_ok(create_needing(shared, IMAGE_QUERY));
  gk_device_close(shared);
  assert_ok(gk_device_open(&(gk_device_desc){.backend = "vulkan"}, &own));
  assert_fails(GK_ERROR_UNSUPPORTED, "kernel needing: it needs capability 50 of SPIR-V, which ",
               create_needing(own, IMAGE_QUERY));
  gk_device_close(own);
}

PROGRAM_TEST(what_is_not_enabled_is_reported) {
  VkPhysicalDeviceVulkan11Features older = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES,
                                            .storageBuffer16BitAccess = 1};
  VkPhysicalDevice16BitStorageFeatures oldest = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES,
                                                 .storageBuffer16BitAccess = 1};
  for (int k = 0; k < 3; ++k) {
    newer.pNext = (void *[]){NULL, &older, &oldest}[k];
    gk_device *shared = open_shared();
    const gk_device_info *info = gk_device_describe(shared);
    unsigned conditions = 0, shorts = 0;
    for (size_t n = 0; n < info->capability_count; ++n) {
      conditions += strstr(info->capabilities[n].why, "no conditional rendering (VK_EXT_conditional_rendering)") != 0;
      shorts += strstr(info->capabilities[n].why, "no numbers of 16 bits in memory (storageBuffer16BitAccess)") != 0;
    }
    assert_int_equal(conditions, 1);
    assert_int_equal(shorts, k == 0);
    gk_device_close(shared);
  }
}

PROGRAM_TEST(sharing_that_is_not_whole) {
  gk_vulkan_sharing s;
#define WITH(field, value) s = sharing_of_program(), s.field = value
  WITH(instance, NULL), expect_refusal("`instance` is NULL", &s);
  WITH(physical_device, NULL), expect_refusal("`physical_device` is NULL", &s);
  WITH(device, NULL), expect_refusal("`device` is NULL", &s);
  WITH(queue, NULL), expect_refusal("`queue` is NULL", &s);
  WITH(created, NULL), expect_refusal("`created` is NULL", &s);
  WITH(lock, NULL), expect_refusal("`lock` is NULL", &s);
  WITH(unlock, NULL), expect_refusal("`unlock` is NULL", &s);
  WITH(queue_family, 1), expect_refusal("without a queue of family 1", &s);
  WITH(created, (const VkDeviceCreateInfo *)(const void *)&all);
  expect_refusal("`created` is no VkDeviceCreateInfo", &s);
  WITH(base.bytes, 8), expect_refusal("initialize it by GK_VULKAN_SHARE", &s);
  WITH(base.next, &s.base), expect_refusal("is given twice", &s);
#undef WITH
}

/* Without VkApplicationInfo an instance is of Vulkan 1.0. Some of what is newer isn't there then. */
PROGRAM_TEST(an_instance_of_an_old_version) {
  const gk_vulkan_sharing s = sharing_of_program();
  lacks = "vkGetPhysicalDeviceFeatures2";
  expect_refusal("gk_vulkan_sharing: vkGetPhysicalDeviceFeatures2 isn't there; make the VkInstance with ", &s);
  lacks = "vkWaitSemaphores";
  expect_refusal("gk_vulkan_sharing: vkWaitSemaphores isn't there; make the VkInstance with VkApplicationInfo", &s);
}

int main(void) { return run_all_tests(); }
