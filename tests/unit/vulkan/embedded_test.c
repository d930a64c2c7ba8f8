/* What the program contains as SPIR-V needs no compiler: here there is none in PATH, and no cache. Skipped where there
 * is no Vulkan device, or where there was no compiler when the test was built. */
#include "unit/support/vulkan_device.h"
#include "unit/vulkan/embedded_kernels.h"
#include "gk_info.h"
#include <stdlib.h>
#include <string.h>

extern const unsigned char gki_vulkan_copy[];
extern const gk_images vulkan_images; /* by gk-embed, of embedded_kernels.h */

enum { X = 1, Y, MORE, COUNT, FIRST = 1 };
static const gk_slot_desc slots[] = {GK_OWN(X, int, 4), GK_BUFFER(Y, int), GK_OWN(MORE, int, 1),
                                     GK_DEFAULT(COUNT, int, 4)};
static const gk_task tasks[] = {
    GK_FILL(X, COUNT, 27), GK_FILL(MORE, GK_ONE, 1), GK_CHECKPOINT(FIRST, MORE), GK_COPY(Y, X, COUNT), GK_END};
static const gk_list transfers = GK_LIST(transfers, tasks, slots);

static char heard[1 << 16];

static void hear(UNUSED void *user, UNUSED gk_log_level level, const char *line) {
  const size_t used = strlen(heard);
  snprintf(heard + used, sizeof heard - used, "%s\n", line);
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

TEST(kernels_need_no_compiler) {
  enum { SAMPLE = 1, TABLE, ALL, COLUMNS, ROWS, CELLS, W, V, NUMBERS };
  static const gk_slot_desc these[] = {
      GK_BUFFER(SAMPLE, pair),     GK_OWN(TABLE, double, 6), GK_OWN(ALL, double, 1),
      GK_DEFAULT(COLUMNS, int, 2), GK_DEFAULT(ROWS, int, 3), GK_DEFAULT(CELLS, int, 6),
      GK_STRUCT_VALUE(W, weights), GK_DEFAULT(V, int, 5),    GK_OWN(NUMBERS, int, 2)};
  static const gk_task do_them[] = {GK_FILL(NUMBERS, COLUMNS, 2), GK_RUN(add_up, COLUMNS, NUMBERS, V),
                                    GK_RUN_2D(fill_table, COLUMNS, ROWS, TABLE, W, SAMPLE, COLUMNS),
                                    GK_RUN(total, CELLS, ALL, TABLE)};
  static const gk_list list = GK_LIST(list, do_them, these);
  if (!vulkan_images.count) skip();
  gk_device *device = open_vulkan();
  gk_graph *graph;
  double all = 0.0;
  int numbers[2];
  const pair here = {0, 7};
  void *sample = gk_alloc(device, sizeof here, GK_DEVICE_MEMORY);
  const weights w = {.offset = {1.0f, 2.0f, 3.0f}, .scale = 0.5};
  assert_ok(gk_graph_create(device, &list, 0, &graph));
  assert_non_null(strstr(heard, "kernel total: SPIR-V made when the program was built"));
  assert_ok(gk_upload(device, sample, &here, sizeof here));
  assert_ok(gk_bind(graph, SAMPLE, sample));
  assert_ok(gk_bind_bytes(graph, W, &w, sizeof w));
  assert_ok(gk_launch(graph, 0));
  assert_ok(gk_wait(graph, NULL));
  assert_ok(gk_download(device, &all, gk_bound(graph, ALL), sizeof all));
  assert_ok(gk_download(device, numbers, gk_bound(graph, NUMBERS), sizeof numbers));
  assert_int_equal(numbers[1], 7);
  assert_true(all == 2.0 * 0.5 * (8.0 + 9.0 + 10.0));
  gk_graph_destroy(graph);
  gk_free(device, sample);
  gk_device_close(device);
}

TEST(image_of_another_text_is_not_used) {
  static const gk_task one[] = {GK_RUN(changed, COUNT, X)};
  static const gk_list list = GK_LIST(list, one, slots);
  if (!vulkan_images.count) skip();
  gk_device *device = open_vulkan();
  gk_graph *graph;
  assert_fails(GK_ERROR_UNSUPPORTED, "kernel changed: what was compiled when the program was built is of another text "
               "of embedded_kernels.h", gk_graph_create(device, &list, 0, &graph));
  assert_says("run gk-embed again; nor can it be compiled now: ");
  assert_says("neither glslangValidator nor glslc is in PATH");
  assert_non_null(strstr(heard, "kernel changed: what was compiled when the program was built is of another text"));
  gk_device_close(device);
}

TEST(damaged_images_are_refused) {
  static const uint32_t words[] = {0x07230203, 0}, others[] = {0x07230204, 0};
  gk_image image = {.file = "a.c", .kind = GK_IMAGE_SPIRV, .bytes = words, .size = 7};
  const gk_images images = {GK_ABI, 1, &image};
  assert_fails(GK_ERROR_INVALID, "give what gk-embed wrote as it is", gk_use_images(&images));
  image.size = sizeof others;
  image.bytes = others;
  assert_fails(GK_ERROR_INVALID, "give what gk-embed wrote as it is", gk_use_images(&images));
}

/* The first kernel's image gets the hash of another text. */
static int use_images(UNUSED void **state) {
  static gk_image each[64];
  static gk_images changed_images;
  if (vulkan_images.count > GK_COUNT(each)) return -1;
  changed_images = vulkan_images;
  changed_images.at = each;
  for (uint32_t k = 0; k < vulkan_images.count; ++k) each[k] = vulkan_images.at[k];
  each[0].text[0] ^= 1;
  gk_set_log(GK_LOG_INFO, hear, NULL);
  return gk_use_images(&changed_images) == GK_OK ? 0 : -1;
}

int main(void) {
  setenv("PATH", "/nowhere", 1);
  setenv("GK_CACHE", "off", 1);
  return run_all_tests_with(use_images, NULL);
}
