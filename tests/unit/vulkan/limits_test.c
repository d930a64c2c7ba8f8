/* Work that Mesa 22.3's lavapipe does only if each invocation has few enough passes of its loops. Skipped where there
 * is no Vulkan device. */
#include "unit/support/vulkan_device.h"
#include "gk_kernel.h"

GK_SOURCE(limits)
GK_KERNEL(spin, (in(int, passes), out(int, x))) {
  int odd = 0;
  for (int k = 0; k < passes[0]; ++k) odd += k & 1;
  x[i] = odd;
}
GK_SOURCE_END

enum { X = 1, TO, N, PASSES, COUNT, FROM_BYTES, TO_BYTES, ITEMS = 100000, EACH = 500, MOVED = 5 << 20,
       COPIED = (256 << 20) + 1000 };
static const gk_slot_desc slots[] = {GK_BUFFER(X, int), GK_BUFFER(TO, int), GK_SCALAR(N, int), GK_OWN(PASSES, int, 1),
                                     GK_OWN(COUNT, int, 1), GK_BUFFER(FROM_BYTES, uint8_t),
                                     GK_BUFFER(TO_BYTES, uint8_t)};
static const gk_task spins[] = {GK_FILL(PASSES, GK_ONE, EACH), GK_FILL(COUNT, GK_ONE, ITEMS),
                                GK_RUN(spin, COUNT, PASSES, X)},
                     moves[] = {GK_COPY(TO, X, N)},
                     copies[] = {GK_FILL(COUNT, GK_ONE, COPIED / 4), GK_FILL(X, COUNT, 0x07070707),
                                 GK_FILL(COUNT, GK_ONE, COPIED), GK_COPY(TO_BYTES, FROM_BYTES, COUNT)};
static const gk_list counts_there = GK_LIST(counts_there, spins, slots), moves_one = GK_LIST(moves_one, moves, slots),
                     copies_bytes = GK_LIST(copies_bytes, copies, slots);

static void launch(gk_graph *graph) {
  assert_ok(gk_launch(graph, 0));
  assert_ok(gk_wait(graph, NULL));
}

TEST(many_items_counted_on_the_device) {
  gk_device *device = open_vulkan();
  gk_graph *graph;
  int *x = gk_alloc(device, ITEMS * sizeof *x, GK_DEVICE_MEMORY), *found = calloc(ITEMS, sizeof *found);
  assert_true(x && found);
  assert_ok(gk_graph_create(device, &counts_there, 0, &graph));
  assert_ok(gk_bind(graph, X, x));
  launch(graph);
  assert_ok(gk_download(device, found, x, ITEMS * sizeof *x));
  for (int k = 0; k < ITEMS; ++k) assert_int_equal(found[k], EACH / 2);
  gk_graph_destroy(graph);
  gk_free(device, x);
  gk_device_close(device);
  free(found);
}

TEST(a_large_copy_that_overlaps) {
  gk_device *device = open_vulkan();
  gk_graph *graph;
  const size_t bytes = (MOVED + 1) * sizeof(int);
  int *x = gk_alloc(device, bytes, GK_DEVICE_MEMORY), *all = malloc(bytes);
  assert_true(x && all);
  for (int k = 0; k <= MOVED; ++k) all[k] = k;
  assert_ok(gk_upload(device, x, all, bytes));
  assert_ok(gk_graph_create(device, &moves_one, 0, &graph));
  assert_ok(gk_bind(graph, X, x));
  assert_ok(gk_bind(graph, TO, x + 1));
  assert_ok(gk_bind_int(graph, N, MOVED));
  launch(graph);
  assert_ok(gk_download(device, all, x, bytes));
  for (int k = 1; k <= MOVED; ++k) assert_int_equal(all[k], k - 1);
  gk_graph_destroy(graph);
  gk_free(device, x);
  gk_device_close(device);
  free(all);
}

/* Byte by byte, since the addresses differ by an odd number. */
TEST(a_large_copy_counted_on_the_device) {
  gk_device *device = open_vulkan();
  gk_graph *graph;
  unsigned char *from = gk_alloc(device, 2 * (size_t)COPIED + 1, GK_DEVICE_MEMORY), *to = from + COPIED + 1;
  unsigned char found[4096];
  assert_non_null(from);
  assert_int_equal((to - from) % 2, 1);
  assert_ok(gk_graph_create(device, &copies_bytes, 0, &graph));
  assert_ok(gk_bind(graph, X, from));
  assert_ok(gk_bind(graph, FROM_BYTES, from));
  assert_ok(gk_bind(graph, TO_BYTES, to));
  launch(graph);
  for (size_t at = 0; at < COPIED; at += COPIED / 64) {
    const size_t bytes = COPIED - at < sizeof found ? COPIED - at : sizeof found;
    memset(found, 0, sizeof found);
    assert_ok(gk_download(device, found, to + at, bytes));
    for (size_t k = 0; k < bytes; ++k) assert_int_equal(found[k], 7);
  }
  gk_graph_destroy(graph);
  gk_free(device, from);
  gk_device_close(device);
}

int main(void) { return run_all_tests(); }
