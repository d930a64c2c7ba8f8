/* Launches on Vulkan, in memory that the host sees and in memory that it doesn't, and after failures. Skipped where
 * there is no Vulkan device. */
#include "unit/support/test.h"
#include "gk_kernel.h"
#include "vulkan/standin.h"
#include <vulkan/vulkan.h>

GK_SOURCE(vulkan_launch)
GK_KERNEL(add_one, (inout(float, y))) { y[i] += 1.0f; }
GK_SOURCE_END

static gk_result add_first(const gk_value *args, UNUSED void *native) {
  *(float *)args[1].ptr += *(float *)args[0].ptr;
  return GK_OK;
}

static gk_result nothing(UNUSED const gk_value *args, UNUSED void *native) { return GK_OK; }

enum { Y = 1, Z, FLAG, COUNT };
static const gk_slot_desc slots[] = {GK_BUFFER(Y, float), GK_BUFFER(Z, float), GK_OWN(FLAG, int, 1),
                                     GK_SCALAR(COUNT, int64_t)};
static const gk_task add_tasks[] = {GK_RUN(add_one, GK_ONE, Y)},
                     call_tasks[] = {GK_RUN(add_one, GK_ONE, Y), GK_CALL(add_first, Y, Z), GK_RUN(add_one, GK_ONE, Z)},
                     branch_tasks[] = {GK_IF(FLAG), GK_RUN(add_one, GK_ONE, Y), GK_END},
                     around_call_tasks[] = {GK_RUN(add_one, COUNT, Y), GK_CALL(nothing, Y), GK_RUN(add_one, COUNT, Y)};
static const gk_list adds = GK_LIST(adds, add_tasks, slots), calls_it = GK_LIST(calls_it, call_tasks, slots),
                     branches = GK_LIST(branches, branch_tasks, slots),
                     around_call = GK_LIST(around_call, around_call_tasks, slots);

static gk_device *open_mapped_or_not(bool is_unmapped) {
  setenv("GK_VULKAN_UNMAPPED", is_unmapped ? "1" : "0", 1);
  gk_device *opened;
  const gk_result result = gk_device_open(&(gk_device_desc){.backend = "vulkan"}, &opened);
  if (result == GK_ERROR_NO_DEVICE) skip();
  assert_ok(result);
  return opened;
}

static void launch(gk_graph *graph) {
  assert_ok(gk_launch(graph, 0));
  assert_ok(gk_wait(graph, NULL));
}

/* A bad count makes gk record the list anew, of which each call fails in turn. Behind the stand-in for libvulkan, which
 * gk finds as what is loaded already; so this test comes first. */
TEST(recordings_that_fail) {
  const vulkan_standin *standin = NULL;
  if (dlopen("build/vulkan_standin/libvulkan.so.1", RTLD_NOW | RTLD_LOCAL)) standin = vulkan_standin_find();
  if (!standin) skip();
  gk_device *opened = open_mapped_or_not(false);
  float *y = gk_alloc(opened, sizeof *y, GK_DEVICE_MEMORY), value;
  assert_non_null(y);
  unsigned long calls = 1;
  for (unsigned long k = 1; calls >= k; ++k) {
    gk_graph *graph;
    assert_ok(gk_graph_create(opened, &around_call, 0, &graph));
    assert_ok(gk_bind(graph, Y, y));
    assert_ok(gk_bind_int(graph, COUNT, 1));
    launch(graph);
    assert_ok(gk_bind_int(graph, COUNT, (int64_t)3 << 30));
    (standin->fail)(k, VK_ERROR_OUT_OF_DEVICE_MEMORY, VULKAN_STANDIN_NOW);
    gk_result result = gk_launch(graph, 0);
    if (result == GK_OK) result = gk_wait(graph, NULL);
    calls = standin->calls();
    (standin->fail)(0, 0, VULKAN_STANDIN_NOW);
    assert_true(result != GK_OK);
    assert_ok(gk_bind_int(graph, COUNT, 1));
    value = 0.0f;
    assert_ok(gk_upload(opened, y, &value, sizeof value));
    launch(graph);
    assert_ok(gk_download(opened, &value, y, sizeof value));
    assert_true(value == 2.0f);
    gk_graph_destroy(graph);
  }
  gk_free(opened, y);
  gk_device_close(opened);
  assert_int_equal(standin->alive(), 0);
}

TEST_ON_EACH("mapped unmapped", kernels_use_memory, NULL, NULL) {
  const bool is_unmapped = strcmp(*state, "unmapped") == 0;
  gk_device *opened = open_mapped_or_not(is_unmapped);
  float *y = gk_alloc(opened, sizeof *y, GK_DEVICE_MEMORY), value = 41.0f;
  assert_non_null(y);
  assert_true((gk_host_address(opened, y) == NULL) == is_unmapped);
  gk_graph *graph;
  assert_ok(gk_graph_create(opened, &adds, 0, &graph));
  assert_ok(gk_upload(opened, y, &value, sizeof value));
  assert_ok(gk_bind(graph, Y, y));
  assert_ok(gk_launch(graph, 0));
  assert_ok(gk_wait(graph, NULL));
  assert_ok(gk_download(opened, &value, y, sizeof value));
  assert_true(value == 42.0f);
  gk_graph_destroy(graph);
  gk_free(opened, y);
  gk_device_close(opened);
}

/* Both arguments are in one block, of which the call changes one number. */
TEST_ON_EACH("mapped unmapped", library_calls_use_memory, NULL, NULL) {
  gk_device *opened = open_mapped_or_not(strcmp(*state, "unmapped") == 0);
  float values[] = {1.0f, 10.0f, 100.0f};
  float *y = gk_alloc(opened, sizeof values, GK_DEVICE_MEMORY);
  gk_graph *graph;
  assert_non_null(y);
  assert_ok(gk_graph_create(opened, &calls_it, 0, &graph));
  assert_ok(gk_upload(opened, y, values, sizeof values));
  assert_ok(gk_bind(graph, Y, y));
  assert_ok(gk_bind(graph, Z, y + 2));
  assert_ok(gk_launch(graph, 0));
  assert_ok(gk_wait(graph, NULL));
  assert_ok(gk_download(opened, values, y, sizeof values));
  assert_true(values[0] == 2.0f && values[1] == 10.0f && values[2] == 103.0f);
  gk_graph_destroy(graph);
  gk_free(opened, y);
  gk_device_close(opened);
}

/* A first launch that submits nothing leaves the graph's memory to the next one. */
TEST_ON_EACH("mapped unmapped", launches_that_submit_nothing, NULL, NULL) {
  gk_device *opened = open_mapped_or_not(strcmp(*state, "unmapped") == 0);
  float *y = gk_alloc(opened, sizeof *y, GK_DEVICE_MEMORY), value = 0.0f;
  gk_graph *graph;
  assert_non_null(y);
  assert_ok(gk_graph_create(opened, &branches, GK_HOST_GATED, &graph));
  assert_ok(gk_upload(opened, y, &value, sizeof value));
  assert_ok(gk_bind(graph, Y, y));
  for (int flag = 0; flag < 3; ++flag) {
    assert_ok(gk_upload(opened, gk_bound(graph, FLAG), &flag, sizeof flag));
    launch(graph);
  }
  assert_ok(gk_download(opened, &value, y, sizeof value));
  assert_true(value == 2.0f);
  gk_graph_destroy(graph);
  gk_free(opened, y);
  gk_device_close(opened);
}

int main(void) { return run_all_tests(); }
