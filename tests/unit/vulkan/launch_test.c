/* Launches on Vulkan, in memory that the host sees and in memory that it doesn't, and after failures. Skipped where
 * there is no Vulkan device. */
#include "unit/support/test.h"
#include "gk_kernel.h"
#include "vulkan/device.h"
#include "vulkan/standin.h"

GK_SOURCE(vulkan_launch)
GK_KERNEL(add_one, (inout(float, y))) { y[i] += 1.0f; }
GK_SOURCE_END

static gk_result add_first(const gk_value *args, UNUSED void *native) {
  *(float *)args[1].ptr += *(float *)args[0].ptr;
  return GK_OK;
}

static gk_result add_first_and_fail(const gk_value *args, void *native) {
  (void)add_first(args, native);
  return GK_ERROR_UNSUPPORTED;
}

static gk_result nothing(UNUSED const gk_value *args, UNUSED void *native) { return GK_OK; }

enum { Y = 1, Z, FLAG, COUNT, OTHER };
static const gk_slot_desc slots[] = {GK_BUFFER(Y, float), GK_BUFFER(Z, float), GK_OWN(FLAG, int, 1),
                                     GK_SCALAR(COUNT, int64_t), GK_SCALAR(OTHER, int64_t)};
static const gk_task add_tasks[] = {GK_RUN(add_one, GK_ONE, Y)},
                     call_tasks[] = {GK_RUN(add_one, GK_ONE, Y), GK_CALL(add_first, Y, Z), GK_RUN(add_one, GK_ONE, Z)},
                     skip_tasks[] = {GK_RUN(add_one, OTHER, Z), GK_IF(FLAG), GK_RUN(add_one, COUNT, Y), GK_END},
                     branch_tasks[] = {GK_IF(FLAG), GK_RUN(add_one, GK_ONE, Y), GK_END},
                     two_tasks[] = {GK_RUN(add_one, COUNT, Y), GK_RUN(add_one, COUNT, Z)},
                     around_call_tasks[] = {GK_RUN(add_one, COUNT, Y), GK_CALL(nothing, Y), GK_RUN(add_one, COUNT, Y)};
static const gk_list adds = GK_LIST(adds, add_tasks, slots), calls_it = GK_LIST(calls_it, call_tasks, slots),
                     skips = GK_LIST(skips, skip_tasks, slots), branches = GK_LIST(branches, branch_tasks, slots),
                     apart = GK_LIST(apart, two_tasks, slots),
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

/* ---- failures ---------------------------------------------------------------------------------------------------- */

/* Behind a stand-in for libvulkan, which gk finds as what is loaded already; so these tests come first. */
static const vulkan_standin *standin;
static unsigned long calls; /* of libvulkan, by the last launch_failing */

static gk_device *open_behind_standin(uint64_t seed) {
  if (dlopen("build/vulkan_standin/libvulkan.so.1", RTLD_NOW | RTLD_LOCAL)) standin = vulkan_standin_find();
  if (!standin) skip();
  standin->set_seed(seed);
  return open_mapped_or_not(false);
}

static void close_behind_standin(gk_device *opened) {
  gk_device_close(opened);
  assert_int_equal(standin->alive(), 0);
  standin->set_seed(0);
}

/* The device is destroyed whichever entry is missing. */
TEST(a_driver_that_lacks_an_entry) {
  gk_device *opened;
  close_behind_standin(open_behind_standin(0));
  setenv("STANDIN_LACKS", "vkQueueSubmit", 1);
  assert_fails(GK_ERROR_NO_DEVICE, "the driver has no vkQueueSubmit; it needs Vulkan 1.2",
               gk_device_open(&(gk_device_desc){.backend = "vulkan"}, &opened));
  unsetenv("STANDIN_LACKS");
  assert_int_equal(standin->alive(), 0);
}

/* gk's pipelines are made for the first graph that needs them. If one of the calls for it fails, the message names the
 * task, and nothing is left but what was made before. The next graph gets them. */
TEST(pipelines_of_gk_that_fail) {
  static const gk_task transfer_tasks[] = {GK_FILL(Y, COUNT, 0), GK_COPY(Z, Y, COUNT)};
  static const gk_list transfers = GK_LIST(transfers, transfer_tasks, slots);
  static const char *const prefixes[] = {"task 0 (Y = 0): backend vulkan: ", "task 1 (Z = Y): backend vulkan: "};
  unsigned failed[] = {0, 0};
  bool has_failed = true;
  for (unsigned long k = 1; has_failed; ++k) {
    gk_device *opened = open_behind_standin(0);
    const unsigned opened_with = standin->alive();
    gk_graph *graph;
    (standin->fail)(k, VK_ERROR_OUT_OF_DEVICE_MEMORY, VULKAN_STANDIN_NOW);
    gk_result result = gk_graph_create(opened, &transfers, 0, &graph);
    has_failed = standin->calls() >= k;
    if (!has_failed) assert_ok(result);
    if (result != GK_OK) assert_int_equal(result, GK_ERROR_MEMORY); /* some memory is asked for twice */
    for (size_t n = 0; n < GK_COUNT(prefixes) && result != GK_OK; ++n)
      if (strncmp(gk_error(), prefixes[n], strlen(prefixes[n])) == 0) ++failed[n];
    (standin->fail)(0, VK_SUCCESS, VULKAN_STANDIN_NOW);
    if (result != GK_OK) assert_ok(gk_graph_create(opened, &transfers, 0, &graph));
    gk_graph_destroy(graph);
    assert_int_equal(standin->alive(), opened_with + 4);
    close_behind_standin(opened);
  }
  for (size_t n = 0; n < GK_COUNT(failed); ++n) assert_int_equal(failed[n], 3); /* a module, two pipelines */
}

/* Call k of a launch fails. */
static gk_result launch_failing(gk_graph *graph, unsigned long k, VkResult code, vulkan_standin_how how) {
  (standin->fail)(k, code, how);
  gk_result result = gk_launch(graph, 0);
  if (result == GK_OK) result = gk_wait(graph, NULL);
  calls = standin->calls();
  (standin->fail)(0, 0, VULKAN_STANDIN_NOW);
  return result;
}

/* A bad count makes gk record the list anew, of which each call fails in turn. */
TEST(recordings_that_fail) {
  gk_device *opened = open_behind_standin(0);
  float *y = gk_alloc(opened, sizeof *y, GK_DEVICE_MEMORY), value;
  assert_non_null(y);
  calls = 1;
  for (unsigned long k = 1; calls >= k; ++k) {
    gk_graph *graph;
    assert_ok(gk_graph_create(opened, &around_call, 0, &graph));
    assert_ok(gk_bind(graph, Y, y));
    assert_ok(gk_bind_int(graph, COUNT, 1));
    launch(graph);
    assert_ok(gk_bind_int(graph, COUNT, (int64_t)3 << 30));
    assert_true(launch_failing(graph, k, VK_ERROR_OUT_OF_DEVICE_MEMORY, VULKAN_STANDIN_NOW) != GK_OK);
    assert_ok(gk_bind_int(graph, COUNT, 1));
    value = 0.0f;
    assert_ok(gk_upload(opened, y, &value, sizeof value));
    launch(graph);
    assert_ok(gk_download(opened, &value, y, sizeof value));
    assert_true(value == 2.0f);
    gk_graph_destroy(graph);
  }
  gk_free(opened, y);
  close_behind_standin(opened);
}

/* Each call of the driver fails in turn, behind a launch that makes what the next one needs: how often a message names
 * this slot. */
static unsigned times_named(gk_graph *graph, const char *slot) {
  unsigned times = 0;
  unsigned long k = 0;
  gk_result result;
  do {
    launch(graph);
    result = launch_failing(graph, ++k, VK_ERROR_OUT_OF_DEVICE_MEMORY, VULKAN_STANDIN_NOW);
    if (result != GK_OK && strstr(gk_error(), slot)) ++times;
  } while (result != GK_OK || calls >= k); /* a wait is tried again */
  return times;
}

/* A copy records, ends and submits commands. */
TEST(slots_that_can_not_be_copied) {
  gk_device_close(open_behind_standin(0));
  gk_device *opened = open_mapped_or_not(true);
  float *y = gk_alloc(opened, sizeof *y, GK_DEVICE_MEMORY), *z = gk_alloc(opened, sizeof *z, GK_DEVICE_MEMORY);
  gk_graph *graph, *branch;
  assert_true(y && z);
  assert_ok(gk_graph_create(opened, &calls_it, 0, &graph));
  assert_ok(gk_bind(graph, Y, y));
  assert_ok(gk_bind(graph, Z, z));
  assert_true(times_named(graph, "task 1 (add_first): slot 1 (Y): backend vulkan: ") == 2 * 3); /* there and back */
  assert_true(times_named(graph, "task 1 (add_first): slot 2 (Z): backend vulkan: ") == 2 * 3);
  assert_ok(gk_graph_create(opened, &branches, GK_HOST_GATED, &branch));
  assert_ok(gk_bind(branch, Y, y));
  assert_true(times_named(branch, "slot 3 (FLAG): backend vulkan: ") == 3);
  gk_graph_destroy(branch);
  gk_graph_destroy(graph);
  gk_free(opened, y);
  gk_free(opened, z);
  close_behind_standin(opened);
}

static gk_graph *graph_adding(gk_device *opened, float **y) {
  const float zero = 0.0f;
  gk_graph *graph;
  assert_non_null(*y = gk_alloc(opened, sizeof **y, GK_DEVICE_MEMORY));
  assert_ok(gk_upload(opened, *y, &zero, sizeof zero));
  assert_ok(gk_graph_create(opened, &adds, 0, &graph));
  assert_ok(gk_bind(graph, Y, *y));
  return graph;
}

/* The last call of a launch waits. A launch whose work goes on isn't over. */
TEST(waits_that_are_tried_again) {
  gk_device *opened = open_behind_standin(0);
  float *y, value;
  gk_graph *graph = graph_adding(opened, &y);
  assert_ok(launch_failing(graph, 0, VK_SUCCESS, VULKAN_STANDIN_NOW));
  assert_ok(launch_failing(graph, calls, VK_TIMEOUT, VULKAN_STANDIN_NOW));
  assert_ok(launch_failing(graph, calls - 1, VK_ERROR_OUT_OF_DEVICE_MEMORY, VULKAN_STANDIN_NOW));
  assert_ok(gk_download(opened, &value, y, sizeof value));
  assert_true(value == 3.0f);
  gk_graph_destroy(graph);
  gk_free(opened, y);
  close_behind_standin(opened);
}

/* A wait of each kind that ends with the loss of the device: by the driver's answer, by that to a call of another
 * thread, and as no wait has enough memory. */
TEST(waits_that_find_the_device_lost) {
  static const struct { VkResult code; vulkan_standin_how how; } ways[] = {
    {VK_ERROR_DEVICE_LOST, VULKAN_STANDIN_NOW}, {VK_TIMEOUT, VULKAN_STANDIN_LATE},
    {VK_ERROR_OUT_OF_DEVICE_MEMORY, VULKAN_STANDIN_LATE}};
  for (size_t k = 0; k < GK_COUNT(ways); ++k) {
    gk_device *opened = open_behind_standin(0);
    float *y;
    void *device;
    gk_graph *graph = graph_adding(opened, &y);
    assert_ok(launch_failing(graph, 0, VK_SUCCESS, VULKAN_STANDIN_NOW));
    (standin->fail)(calls - (ways[k].how == VULKAN_STANDIN_LATE), ways[k].code, ways[k].how);
    assert_ok(gk_launch(graph, 0));
    assert_ok(gk_device_state(opened, "vulkan", "this test", &device));
    if (ways[k].code == VK_TIMEOUT) (void)gki_vulkan_check(device, VK_ERROR_DEVICE_LOST, "a call of another thread");
    assert_fails(GK_ERROR_DEVICE, "waiting for graph adds: the device is lost; a task may have run longer than the "
                 "driver's watchdog allows", gk_wait(graph, NULL));
    assert_fails(GK_ERROR_DEVICE, "the device was lost; close it", gk_launch(graph, 0));
    (standin->fail)(0, 0, VULKAN_STANDIN_NOW);
    gk_graph_destroy(graph);
    gk_free(opened, y);
    close_behind_standin(opened);
  }
}

/* Barriers that a launch records. */
static unsigned barriers_with(gk_graph *graph, int64_t count, gk_result expected) {
  unsigned dispatches, barriers[2];
  assert_ok(gk_bind_int(graph, COUNT, count));
  standin->recorded(&dispatches, &barriers[0]);
  assert_ok(gk_launch(graph, 0));
  assert_int_equal(gk_wait(graph, NULL), expected);
  standin->recorded(&dispatches, &barriers[1]);
  return barriers[1] - barriers[0];
}

/* Of independent tasks, one follows the other only in launches with a bad count. */
TEST(counts_that_are_good_again) {
  gk_device *opened = open_behind_standin(1); /* with a seed, it counts barriers */
  const int64_t bad = (int64_t)3 << 30;
  gk_graph *graph;
  float *y = gk_alloc(opened, 2 * sizeof *y, GK_DEVICE_MEMORY), *z = gk_alloc(opened, sizeof *z, GK_DEVICE_MEMORY);
  assert_ok(gk_graph_create(opened, &apart, 0, &graph));
  assert_ok(gk_bind(graph, Y, y));
  assert_ok(gk_bind(graph, Z, z));
  for (int k = 0; k < 2; ++k) {
    assert_int_equal(barriers_with(graph, 1, GK_OK), k == 0 ? 0 : 1);
    assert_int_equal(barriers_with(graph, 1, GK_OK), 0);
    assert_int_equal(barriers_with(graph, bad, GK_ERROR_INVALID), 2);
    assert_int_equal(barriers_with(graph, bad, GK_ERROR_INVALID), 0);
  }
  assert_ok(gk_bind(graph, Z, y + 1)); /* in the block of Y, so one still follows the other */
  assert_int_equal(barriers_with(graph, bad, GK_ERROR_INVALID), 0);
  assert_int_equal(barriers_with(graph, 1, GK_OK), 2);
  gk_graph_destroy(graph);
  gk_free(opened, y);
  gk_free(opened, z);
  close_behind_standin(opened);
}

/* A launch that skips a task with a bad count succeeds. The next one, with another slot bound anew, comes to it. */
TEST(bad_counts_that_are_skipped) {
  gk_device *opened = open_behind_standin(0);
  float *y = gk_alloc(opened, 2 * sizeof *y, GK_DEVICE_MEMORY);
  gk_graph *graph;
  assert_non_null(y);
  assert_ok(gk_graph_create(opened, &skips, 0, &graph));
  assert_ok(gk_bind(graph, Y, y));
  assert_ok(gk_bind(graph, Z, y + 1));
  assert_ok(gk_bind_int(graph, COUNT, (int64_t)3 << 30));
  for (int flag = 0; flag < 2; ++flag) {
    assert_ok(gk_upload(opened, gk_bound(graph, FLAG), &flag, sizeof flag));
    assert_ok(gk_bind_int(graph, OTHER, flag));
    assert_ok(gk_launch(graph, 0));
    assert_int_equal(gk_wait(graph, NULL), flag ? GK_ERROR_INVALID : GK_OK);
  }
  gk_graph_destroy(graph);
  gk_free(opened, y);
  close_behind_standin(opened);
}

/* Handwritten code has its arguments in the commands. A slot that it doesn't use leaves them as they are. */
TEST(slots_that_handwritten_code_does_not_use) {
  static const gk_code code = {.text = "#version 460\n#extension GL_EXT_buffer_reference : require\n"
                                       "layout(local_size_x = 1) in;\n"
                                       "layout(buffer_reference) buffer floats { float at[]; };\n"
                                       "layout(push_constant) uniform parameters { floats y; };\n"
                                       "void main() { y.at[0] = 1.0; }\n"};
  static const gk_param param = {"y", "float", 4, 4, GK_PTR, GK_ACCESS_INOUT};
  static const gk_kernel set = {.name = "set", .params = &param, .param_count = 1, .vulkan = &code};
  static const gk_task set_tasks[] = {GK_FILL(Z, COUNT, 0), GK_RUN(set, GK_ONE, Y)};
  static const gk_list sets = GK_LIST(sets, set_tasks, slots);
  gk_device *opened = open_behind_standin(1); /* with a seed, it counts dispatches */
  gk_graph *graph;
  const gk_result result = gk_graph_create(opened, &sets, 0, &graph);
  if (result == GK_ERROR_UNSUPPORTED) skip(); /* there is no compiler */
  assert_ok(result);
  float *y = gk_alloc(opened, 2 * sizeof *y, GK_DEVICE_MEMORY), *z = gk_alloc(opened, 4 * sizeof *z, GK_DEVICE_MEMORY);
  assert_ok(gk_bind(graph, Z, z));
  for (int k = 1; k <= 4; ++k) {
    unsigned before, behind, barriers;
    if (k % 2) assert_ok(gk_bind(graph, Y, y + k / 2)); /* in the first and the third launch */
    assert_ok(gk_bind_int(graph, COUNT, k));
    standin->recorded(&before, &barriers);
    launch(graph);
    standin->recorded(&behind, &barriers);
    assert_int_equal(behind - before, k % 2 ? 2 : 0);
  }
  gk_graph_destroy(graph);
  gk_free(opened, y);
  gk_free(opened, z);
  close_behind_standin(opened);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

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

TEST_ON_EACH("mapped unmapped", library_calls_that_fail, NULL, NULL) {
  static const gk_task failing_tasks[] = {GK_CALL(add_first_and_fail, Y, Z), GK_RUN(add_one, GK_ONE, Z)};
  static const gk_list fails = GK_LIST(fails, failing_tasks, slots);
  gk_device *opened = open_mapped_or_not(strcmp(*state, "unmapped") == 0);
  float values[] = {1.0f, 10.0f};
  float *y = gk_alloc(opened, sizeof values, GK_DEVICE_MEMORY);
  gk_graph *graph;
  assert_non_null(y);
  assert_ok(gk_graph_create(opened, &fails, 0, &graph));
  assert_ok(gk_upload(opened, y, values, sizeof values));
  assert_ok(gk_bind(graph, Y, y));
  assert_ok(gk_bind(graph, Z, y + 1));
  assert_ok(gk_launch(graph, 0));
  assert_fails(GK_ERROR_UNSUPPORTED, "task 0 (add_first_and_fail): the call answered", gk_wait(graph, NULL));
  assert_ok(gk_download(opened, values, y, sizeof values));
  assert_true(values[0] == 1.0f && values[1] == 11.0f); /* what the call wrote stays */
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
