/* What the Vulkan backend refuses, with which words. Skipped where there is no Vulkan device. */
#include "unit/support/vulkan_device.h"
#include "gk_kernel.h"
#include "gk_vulkan.h"

static float host_only(float x) { return x; }

GK_SOURCE(refusals)

GK_KERNEL(add_one, (inout(float, y))) { y[i] += 1.0f; }

GK_KERNEL(calls_the_host, (inout(float, y))) {
  y[i] = host_only(y[i]); /* line 13 */
}

GK_KERNEL(add_doubles, (inout(double, y))) { gk_atomic_add(&y[0], 1.0); }
GK_SOURCE_END

enum { Y = 1, Z, N, OWN, LENGTH = 4 };
static const gk_slot_desc slots[] = {GK_BUFFER(Y, float), GK_BUFFER(Z, double), GK_SCALAR(N, int),
                                     GK_OWN(OWN, float, LENGTH)};
static const gk_task one[] = {GK_RUN(add_one, GK_ONE, Y)}, host[] = {GK_RUN(calls_the_host, GK_ONE, Y)},
                     doubles[] = {GK_RUN(add_doubles, GK_ONE, Z)},
                     counted[] = {GK_FILL(OWN, N, 0)};
static const gk_list is_fine = GK_LIST(is_fine, one, slots), calls = GK_LIST(calls, host, slots),
                     adds = GK_LIST(adds, doubles, slots), counts = GK_LIST(counts, counted, slots);

TEST(devices_that_there_are_not) {
  gk_device_close(open_vulkan());
  gk_device *device;
  const gk_extension foreign = {.id = 0xabc, .bytes = sizeof foreign};
  assert_fails(GK_ERROR_NO_DEVICE, "backend vulkan: there is no device 99; there ",
               gk_device_open(&(gk_device_desc){.backend = "vulkan", .ordinal = 99}, &device));
  assert_says(", from 0 on");
  assert_fails(GK_ERROR_INVALID, "it knows no extension 0xabc",
               gk_device_open(&(gk_device_desc){.backend = "vulkan", .next = &foreign}, &device));
}

TEST(memory_beyond_what_there_is) {
  gk_device *device = open_vulkan();
  assert_gives_null("out of device memory: 70368744177664 bytes", gk_alloc(device, (size_t)1 << 46, GK_DEVICE_MEMORY));
  void *memory = gk_alloc(device, 1000, GK_DEVICE_MEMORY);
  assert_non_null(memory);
  gk_free(device, memory);
  gk_device_close(device);
}

TEST(memory_of_the_program) {
  gk_device *device = open_vulkan();
  gk_graph *graph;
  float mine = 1.0f;
  assert_ok(gk_graph_create(device, &is_fine, 0, &graph));
  assert_fails(GK_ERROR_INVALID, "isn't memory of this device; use memory of gk_alloc", gk_bind(graph, Y, &mine));
  gk_graph_destroy(graph);
  gk_device_close(device);
}

TEST(kernels_that_do_not_compile) {
  gk_device *device = open_vulkan();
  gk_graph *graph;
  assert_fails(GK_ERROR_COMPILE, "kernel calls_the_host doesn't compile (", gk_graph_create(device, &calls, 0, &graph));
  assert_says("refusals_test.c:13");
  assert_ok(gk_graph_create(device, &is_fine, 0, &graph));
  gk_graph_destroy(graph);
  gk_device_close(device);
}

/* Some GPUs have it. */
TEST(features_that_there_are_not) {
  gk_device *device = open_vulkan();
  gk_graph *graph;
  const gk_result result = gk_graph_create(device, &adds, 0, &graph);
  if (result != GK_OK) {
    assert_int_equal(result, GK_ERROR_UNSUPPORTED);
    assert_says("kernel add_doubles: it needs atomic additions of doubles (shaderBufferFloat64AtomicAdd), and ");
  }
  gk_graph_destroy(graph);
  gk_device_close(device);
}

/* By gk_vulkan.h, which is for devices of gk_vulkan_sharing. */
TEST(devices_that_share_nothing) {
  gk_device *own = open_vulkan(), *openmp;
  gk_graph *graph;
  gk_vulkan_memory found;
  float mine;
  assert_ok(gk_device_open(&(gk_device_desc){.backend = "openmp"}, &openmp));
  assert_fails(GK_ERROR_INVALID, "doesn't share a VkDevice of yours", gk_vulkan_find_memory(own, &mine, &found));
  assert_fails(GK_ERROR_INVALID, "backend openmp", gk_vulkan_find_memory(openmp, &mine, &found));
  assert_ok(gk_graph_create(openmp, &is_fine, 0, &graph));
  assert_fails(GK_ERROR_INVALID, "one of backend openmp", gk_vulkan_launch(graph, 0, NULL, NULL));
  gk_graph_destroy(graph);
  assert_ok(gk_graph_create(own, &is_fine, 0, &graph));
  assert_ok(gk_bind(graph, Y, gk_alloc(own, sizeof(float), GK_DEVICE_MEMORY)));
  assert_ok(gk_vulkan_launch(graph, 0, NULL, NULL));
  assert_fails(GK_ERROR_INVALID, "doesn't share a VkDevice of yours", gk_wait(graph, NULL));
  gk_graph_destroy(graph);
  gk_device_close(openmp);
  gk_device_close(own);
}

/* The host knows the counts, so the device checks none until a launch has a bad one. */
TEST(counts_beyond_memory) {
  gk_device *device = open_vulkan();
  gk_graph *graph;
  assert_ok(gk_graph_create(device, &counts, 0, &graph));
  for (int k = 0; k < 2; ++k) {
    assert_ok(gk_bind_int(graph, N, LENGTH));
    assert_ok(gk_launch(graph, 0));
    assert_ok(gk_wait(graph, NULL));
    assert_ok(gk_bind_int(graph, N, LENGTH + 1));
    assert_ok(gk_launch(graph, 0));
    assert_fails(GK_ERROR_INVALID, "task 0 (OWN = 0): 5 elements of 4 bytes", gk_wait(graph, NULL));
  }
  gk_graph_destroy(graph);
  gk_device_close(device);
}

int main(void) { return run_all_tests(); }
