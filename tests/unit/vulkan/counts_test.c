/* How many barriers are recorded: as many as tasks that depend on each other need, and none more. Behind the stand-in
 * for libvulkan, which counts them. Skipped where there is no Vulkan device. */
#include "bench/apps/bfs_app.h"
#include "bench/apps/particles_app.h"
#include "bench/apps/solver_app.h"
#include "unit/support/golden.h"
#include "vulkan/standin.h"
#undef FIRST

GK_SOURCE(counted)
GK_KERNEL(add_one, (inout(float, y))) { y[i] += 1.0f; }
GK_KERNEL(take, (in(float, x), inout(float, y))) { y[i] += x[i]; }
GK_SOURCE_END

enum { X1 = 1, X2, X3 };
static const gk_slot_desc three[] = {GK_BUFFER(X1, float), GK_BUFFER(X2, float), GK_BUFFER(X3, float)};
static const gk_task alone[] = {GK_RUN(add_one, GK_ONE, X1), GK_RUN(add_one, GK_ONE, X2), GK_RUN(add_one, GK_ONE, X3)};
static const gk_task chain[] = {GK_RUN(add_one, GK_ONE, X1), GK_RUN(take, GK_ONE, X1, X2),
                                GK_RUN(take, GK_ONE, X2, X3)};
static const gk_task readers[] = {GK_RUN(add_one, GK_ONE, X1), GK_RUN(take, GK_ONE, X1, X2),
                                  GK_RUN(take, GK_ONE, X1, X3)};
static const gk_task siblings[] = {
  GK_PARALLEL,
  GK_SECTION, GK_RUN(add_one, GK_ONE, X1), GK_RUN(add_one, GK_ONE, X1), GK_END,
  GK_SECTION, GK_RUN(add_one, GK_ONE, X2), GK_RUN(add_one, GK_ONE, X2), GK_END,
  GK_END,
};
static const gk_list lists[] = {
  GK_LIST(three tasks apart, alone, three), GK_LIST(three tasks in a chain, chain, three),
  GK_LIST(two readers of what one writes, readers, three), GK_LIST(two tasks in each of two sections, siblings, three),
};

static gk_device *device;
static const vulkan_standin *standin;
static char text[4000];

/* What has no decisions is recorded when its graph is made. */
static void count(const char *of, const gk_list *list) {
  if (!list->task_count) return;
  unsigned dispatches[2], barriers[2];
  gk_graph *graph;
  standin->recorded(&dispatches[0], &barriers[0]);
  assert_ok(gk_graph_create(device, list, 0, &graph));
  standin->recorded(&dispatches[1], &barriers[1]);
  gk_graph_destroy(graph);
  const size_t at = strlen(text);
  snprintf(text + at, sizeof text - at, "%s%s: %u dispatches, %u barriers\n", of, list->name,
           dispatches[1] - dispatches[0], barriers[1] - barriers[0]);
}

TEST(barriers_where_data_flows) {
  /* gk finds it as what is loaded already. */
  if (dlopen("build/vulkan_standin/libvulkan.so.1", RTLD_NOW | RTLD_LOCAL)) standin = vulkan_standin_find();
  if (!standin) skip();
  standin->set_seed(1);
  const gk_result result = gk_device_open(&(gk_device_desc){.backend = "vulkan"}, &device);
  if (result == GK_ERROR_NO_DEVICE) skip();
  assert_ok(result);
  for (size_t k = 0; k < GK_COUNT(lists); ++k) count("", &lists[k]);
  count("conjugate gradients, ", &bench_solver_begin);
  count("conjugate gradients, ", &bench_solver_pass);
  count("search, ", &bench_bfs_begin);
  for (int k = 0; k < BFS_STRETCHES; ++k) count("search, ", &bench_bfs_stretches[k]);
  for (int k = 0; k < PARTICLES_STRETCHES; ++k) count("particles, ", &bench_particles_stretches[k]);
  gk_device_close(device);
  assert_int_equal(standin->alive(), 0);
  assert_string_equal(standin->broken(), "");
  compare_golden("vulkan_barriers.txt", text);
}

int main(int count_of_words, char **words) {
  read_golden_wish(count_of_words, words);
  return run_all_tests();
}
