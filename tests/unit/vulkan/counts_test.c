/* How many barriers are recorded: as many as tasks that depend on each other need, and none more. Behind the stand-in
 * for libvulkan, which counts them. Skipped where there is no Vulkan device. */
#include "bench/apps/bfs_app.h"
#include "bench/apps/particles_app.h"
#include "bench/apps/solver_app.h"
#include "docs/examples/softbody/step.h"
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

/* Loops with one pass. */
enum { Y1 = 1, Y2, Y3, FLAG_1, FLAG_2 };
static const gk_slot_desc looped[] = {GK_OWN(Y1, float, 1), GK_OWN(Y2, float, 1), GK_OWN(Y3, float, 1),
                                      GK_OWN(FLAG_1, int, 1), GK_OWN(FLAG_2, int, 1)};
static const gk_task one_looped[] = {GK_DO_WHILE(FLAG_1), GK_RUN(add_one, GK_ONE, Y1), GK_END};
static const gk_task alone_looped[] = {
  GK_DO_WHILE(FLAG_1),
  GK_RUN(add_one, GK_ONE, Y1), GK_RUN(add_one, GK_ONE, Y2), GK_RUN(add_one, GK_ONE, Y3),
  GK_END,
};
static const gk_task chain_looped[] = {
  GK_DO_WHILE(FLAG_1),
  GK_RUN(add_one, GK_ONE, Y1), GK_RUN(take, GK_ONE, Y1, Y2), GK_RUN(take, GK_ONE, Y2, Y3),
  GK_END,
};
static const gk_task siblings_looped[] = {
  GK_PARALLEL,
  GK_SECTION, GK_DO_WHILE(FLAG_1), GK_RUN(add_one, GK_ONE, Y1), GK_RUN(add_one, GK_ONE, Y1), GK_END, GK_END,
  GK_SECTION, GK_DO_WHILE(FLAG_2), GK_RUN(add_one, GK_ONE, Y2), GK_RUN(add_one, GK_ONE, Y2), GK_END, GK_END,
  GK_END,
};
static const gk_task section_looped[] = {
  GK_DO_WHILE(FLAG_1), GK_RUN(add_one, GK_ONE, Y1), GK_RUN(add_one, GK_ONE, Y1), GK_END,
};
static gk_result do_nothing(const gk_value *args, void *native) {
  (void)args;
  (void)native;
  return GK_OK;
}
/* The call ends a tape's piece, so the next piece begins within sections. */
static const gk_task call_beside[] = {
  GK_PARALLEL,
  GK_SECTION, GK_CALL(do_nothing, Y2), GK_END,
  GK_SECTION, GK_DO_WHILE(FLAG_1), GK_RUN(add_one, GK_ONE, Y1), GK_END, GK_END,
  GK_END,
};
static const gk_list loops[] = {
  GK_LIST(a task in a loop, one_looped, looped), GK_LIST(three tasks apart in a loop, alone_looped, looped),
  GK_LIST(three tasks in a chain in a loop, chain_looped, looped),
  GK_LIST(two tasks in a loop, section_looped, looped),
  GK_LIST(two tasks in a loop in each of two sections, siblings_looped, looped),
  GK_LIST(a call and a loop in two sections, call_beside, looped),
};

extern const gk_images softbody_images; /* softbody.ninja; else a compiler takes seconds for its kernels */
static gk_device *device;
static const vulkan_standin *standin;
static char text[4000];

/* What has no decisions of the device is recorded when its graph is made, the first tapes when it is launched. */
static void count(const char *of, const gk_list *list, uint32_t bits, bool launches) {
  if (!list->task_count) return;
  unsigned dispatches[2], barriers[2];
  gk_graph *graph;
  standin->recorded(&dispatches[0], &barriers[0]);
  assert_ok(gk_graph_create(device, list, bits, &graph));
  if (launches) assert_ok(gk_launch(graph, 0));
  if (launches) assert_ok(gk_wait(graph, NULL));
  standin->recorded(&dispatches[1], &barriers[1]);
  gk_graph_destroy(graph);
  const size_t at = strlen(text);
  snprintf(text + at, sizeof text - at, "%s%s: %u dispatches, %u barriers\n", of, list->name,
           dispatches[1] - dispatches[0], barriers[1] - barriers[0]);
}

static void open_behind_standin(void) {
  /* gk finds it as what is loaded already. */
  if (dlopen("build/vulkan_standin/libvulkan.so.1", RTLD_NOW | RTLD_LOCAL)) standin = vulkan_standin_find();
  if (!standin) skip();
  standin->set_seed(1);
  const gk_result result = gk_device_open(&(gk_device_desc){.backend = "vulkan"}, &device);
  if (result == GK_ERROR_NO_DEVICE) skip();
  assert_ok(result);
}

static void close_behind_standin(void) {
  gk_device_close(device);
  assert_int_equal(standin->alive(), 0);
  assert_string_equal(standin->broken(), "");
}

TEST(barriers_where_data_flows) {
  assert_ok(gk_use_images(&softbody_images));
  open_behind_standin();
  for (size_t k = 0; k < GK_COUNT(lists); ++k) count("", &lists[k], 0, false);
  for (size_t k = 0; k < GK_COUNT(loops); ++k) count("", &loops[k], 0, true);
  count("conjugate gradients, ", &bench_solver_begin, 0, false);
  count("conjugate gradients, ", &bench_solver_pass, 0, false);
  count("search, ", &bench_bfs_begin, 0, false);
  for (int k = 0; k < BFS_STRETCHES; ++k) count("search, ", &bench_bfs_stretches[k], 0, false);
  for (int k = 0; k < PARTICLES_STRETCHES; ++k) count("particles, ", &bench_particles_stretches[k], 0, false);
  count("soft body, host-gated ", simulation_list(), GK_HOST_GATED, false);
  close_behind_standin();
  compare_golden("vulkan_barriers.txt", text);
}

/* Barriers recorded by a launch with X3 bound to memory. */
static unsigned barriers_with(gk_graph *graph, void *memory) {
  unsigned dispatches, barriers[2];
  assert_ok(gk_bind(graph, X3, memory));
  standin->recorded(&dispatches, &barriers[0]);
  assert_ok(gk_launch(graph, 0));
  assert_ok(gk_wait(graph, NULL));
  standin->recorded(&dispatches, &barriers[1]);
  return barriers[1] - barriers[0];
}

/* Independent tasks follow one another while two of their slots are bound to memory of one block. */
TEST(slots_in_one_block) {
  float *x[3], *beside;
  gk_graph *graph;
  open_behind_standin();
  assert_ok(gk_graph_create(device, &lists[0], 0, &graph));
  for (int k = 0; k < 3; ++k) assert_non_null(x[k] = gk_alloc(device, 2 * sizeof *x[k], GK_DEVICE_MEMORY));
  beside = x[0] + 1;
  assert_ok(gk_bind(graph, X1, x[0]));
  assert_ok(gk_bind(graph, X2, x[1]));
  assert_int_equal(barriers_with(graph, x[2]), 0);
  const unsigned in_series = barriers_with(graph, beside), together = barriers_with(graph, x[2]);
  assert_int_equal(in_series, together + 2);
  assert_int_equal(barriers_with(graph, x[2]), 0);
  gk_graph_destroy(graph);
  for (int k = 0; k < 3; ++k) gk_free(device, x[k]);
  close_behind_standin();
}

int main(int count_of_words, char **words) {
  read_golden_wish(count_of_words, words);
  return run_all_tests();
}
