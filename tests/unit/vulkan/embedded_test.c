/* What the program contains as SPIR-V needs no compiler: here there is none in PATH. Skipped where there is no Vulkan
 * device. */
#include "unit/support/test.h"
#include "gk_kernel.h"
#include <stdlib.h>

extern const unsigned char gki_vulkan_copy[];

enum { X = 1, Y, MORE, COUNT, FIRST = 1 };
static const gk_slot_desc slots[] = {GK_OWN(X, int, 4), GK_BUFFER(Y, int), GK_OWN(MORE, int, 1),
                                     GK_DEFAULT(COUNT, int, 4)};
static const gk_task tasks[] = {
    GK_FILL(X, COUNT, 27), GK_FILL(MORE, GK_ONE, 1), GK_CHECKPOINT(FIRST, MORE), GK_COPY(Y, X, COUNT), GK_END};
static const gk_list transfers = GK_LIST(transfers, tasks, slots);

static gk_device *open_vulkan(void) {
  gk_device *device;
  const gk_result result = gk_device_open(&(gk_device_desc){.backend = "vulkan"}, &device);
  if (result == GK_ERROR_NO_DEVICE) skip();
  assert_ok(result);
  return device;
}

TEST(gk_itself_needs_no_compiler) {
  if (gki_vulkan_copy[0] == '#') skip(); /* gk was built without one */
  gk_device *device = open_vulkan();
  gk_graph *graph;
  const gk_status *status;
  int y[4] = {0};
  int *memory = gk_alloc(device, sizeof y, GK_DEVICE_MEMORY);
  assert_non_null(memory);
  assert_ok(gk_graph_create(device, &transfers, 0, &graph));
  assert_ok(gk_bind(graph, Y, memory));
  assert_ok(gk_launch(graph, 0));
  assert_ok(gk_wait(graph, &status));
  assert_ok(gk_download(device, y, memory, sizeof y));
  for (int k = 0; k < 4; ++k) assert_int_equal(y[k], 27);
  assert_int_equal(status->yielded, FIRST);
  gk_graph_destroy(graph);
  gk_free(device, memory);
  gk_device_close(device);
}

int main(void) {
  setenv("PATH", "/nowhere", 1);
  return run_all_tests();
}
