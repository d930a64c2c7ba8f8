/* Kernels with code by hand on CUDA: what they get; that what is bound anew is an update of just the nodes concerned,
 * in each graph when it is launched next; that they are skipped as other tasks are. */
#include "handwritten.h"
#include "gk_cuda.h"

CODE(all_kinds, kinds_params, .block = {0});
CODE(back, int_params, .block = {64}, .shared_bytes = 64 * 64);

/* Updates of nodes with code by hand; a graph that resumes also updates its prologue by the same call. */
static uint64_t updates(void) {
  return sim->calls("cuGraphExecNodeSetParams") + sim->calls("cuGraphExecKernelNodeSetParams");
}

static uint64_t updates_of_launch(gk_graph *graph, int32_t label, gk_applied applied) {
  sim->mark();
  assert_int_equal(run_from(graph, label)->applied, applied);
  return updates();
}

/* ---- what they get ----------------------------------------------------------------------------------------------- */

TEST_ON_CUDA(test_parameters) {
  static const gk_task tasks[] = {GK_RUN(all_kinds, GK_ONE, TO, A, U, L, F, D, LINE, MORE, SUM)};
  static const gk_list list = GK_LIST(list, tasks, slots);
  gk_graph *graph = graph_of(device, &list);
  int64_t *to = gk_alloc(device, 9 * sizeof *to, GK_DEVICE_MEMORY), have[9];
  gk_bind(graph, TO, to);
  gk_bind(graph, SUM, int_on(device, 5));
  gk_bind_int(graph, A, -3);
  gk_bind_int(graph, U, 4000000000);
  gk_bind_int(graph, L, -5000000000);
  gk_bind_float(graph, F, 1.25);
  gk_bind_float(graph, D, -2.125);
  gk_bind_bytes(graph, LINE, &(line){11, 12}, sizeof(line));
  gk_bind_bytes(graph, MORE, &(line){13, 14}, sizeof(line));
  run_from(graph, 0);
  assert_ok(gk_download(device, have, to, sizeof have));
  assert_memory_equal(have, ((const int64_t[]){-3, 4000000000, -5000000000, 5, -17, 11, 12, 13, 14}), sizeof have);
  assert_int_equal(int_at(device, gk_bound(graph, SUM)), 2);
  gk_bind_bytes(graph, LINE, &(line){21, 22}, sizeof(line));
  gk_bind_bytes(graph, MORE, &(line){23, 24}, sizeof(line));
  run_from(graph, 0);
  assert_ok(gk_download(device, have, to, sizeof have));
  assert_memory_equal(have + 5, ((const int64_t[]){21, 22, 23, 24}), 4 * sizeof *have);
  gk_graph_destroy(graph);
}

TEST_ON_CUDA(test_shape) {
  static const gk_code flat_code = {.text = text, .options = "-DSAID=7", .entry = "shape"},
                       deep_code = {.text = text, .options = "-DSAID=7", .entry = "shape", .block = {8, 4, 2},
                                    .per_block = {16, 0, 5}};
  static const gk_kernel flat = {.name = "flat", .params = int_params, .param_count = 1, .cuda = &flat_code},
                         deep = {.name = "deep", .params = int_params, .param_count = 1, .cuda = &deep_code,
                                 .dimensions = 3};
  static const gk_task tasks[] = {GK_RUN(flat, N, X), GK_RUN_3D(deep, N, A, B, Y)};
  static const gk_list list = GK_LIST(list, tasks, slots);
  gk_graph *graph = graph_of(device, &list);
  int *x = zeros(device, 6), *y = zeros(device, 6);
  gk_bind(graph, X, x);
  gk_bind(graph, Y, y);
  gk_bind_int(graph, N, 257);
  gk_bind_int(graph, A, 5);
  gk_bind_int(graph, B, 11);
  run_from(graph, 0);
  ASSERT_INTS(x, 2, 1, 1, 256, 1, 1);
  ASSERT_INTS(y, 17, 2, 3, 8, 4, 2);
  gk_bind_int(graph, N, 256);
  gk_bind_int(graph, B, 1);
  run_from(graph, 0);
  ASSERT_INTS(x, 1, 1, 1, 256, 1, 1);
  ASSERT_INTS(y, 16, 2, 1, 8, 4, 2);
  gk_bind_int(graph, N, 1);
  gk_bind_int(graph, A, 4 * 65535 + 1);
  assert_ok(gk_launch(graph, 0));
  assert_fails(GK_ERROR_INVALID, "task 1 (deep): 65536 blocks along y, by slot 4 (A), and a grid has at most 65535",
               gk_wait(graph, NULL));
  gk_bind_int(graph, A, 3);
  run_from(graph, 0); /* what else was bound before comes, too */
  ASSERT_INTS(x, 1, 1, 1, 256, 1, 1);
  ASSERT_INTS(y, 1, 1, 1, 8, 4, 2);
  gk_bind_int(graph, A, (1 << 18) - 4);
  gk_bind_int(graph, B, 1 << 14);
  assert_ok(gk_launch(graph, 0));
  assert_fails(GK_ERROR_INVALID, "more than 2147483647 items", gk_wait(graph, NULL));
  gk_graph_destroy(graph);
}

/* As many blocks as a grid may have along y and z, as many items as there may be, and more blocks along x. */
TEST_ON_CUDA(test_largest_grids) {
  static const gk_code tall_code = {.text = text, .options = "-DSAID=7", .entry = "shape", .block = {1},
                                    .per_block = {1 << 15}};
  static const gk_kernel tall = {.name = "tall", .params = int_params, .param_count = 1, .cuda = &tall_code,
                                 .dimensions = 3};
  static const gk_task tasks[] = {GK_RUN_3D(tall, N, A, B, X)};
  static const gk_list list = GK_LIST(list, tasks, slots);
  static const int turns[][6] = {{1, 65535, 1, 1, 65535, 1}, {1, 1, 65535, 1, 1, 65535},
                                 {INT32_MAX, 1, 1, 65536, 1, 1}};
  gk_graph *graph = graph_of(device, &list);
  int *x = zeros(device, 6);
  gk_bind(graph, X, x);
  for (size_t k = 0; k < GK_COUNT(turns); ++k) {
    gk_bind_int(graph, N, turns[k][0]);
    gk_bind_int(graph, A, turns[k][1]);
    gk_bind_int(graph, B, turns[k][2]);
    run_from(graph, 0);
    ASSERT_INTS(x, turns[k][3], turns[k][4], turns[k][5], 1, 1, 1);
  }
  gk_bind_int(graph, N, 1);
  gk_bind_int(graph, B, 65536);
  assert_ok(gk_launch(graph, 0));
  assert_fails(GK_ERROR_INVALID, "task 0 (tall): 65536 blocks along z, by slot 5 (B), and a grid has at most 65535",
               gk_wait(graph, NULL));
  gk_graph_destroy(graph);
  static const gk_task flat_tasks[] = {GK_RUN_3D(tall, GK_ONE, A, GK_ONE, X)}; /* whose items are along y alone */
  static const gk_list flat = GK_LIST(flat, flat_tasks, slots);
  graph = graph_of(device, &flat);
  gk_bind(graph, X, x);
  gk_bind_int(graph, A, 65536);
  assert_ok(gk_launch(graph, 0));
  assert_fails(GK_ERROR_INVALID, "task 0 (tall): 65536 blocks along y, by slot 4 (A)", gk_wait(graph, NULL));
  gk_graph_destroy(graph);
}

/* Of a task that is skipped the number isn't looked at. */
TEST_ON_CUDA(test_bad_count_is_skipped) {
  static const gk_task tasks[] = {GK_RUN(add_to, GK_ONE, X, A, A), GK_IF(FLAG), GK_RUN(add_to, L, Y, A, A), GK_END};
  static const gk_list list = GK_LIST(list, tasks, slots);
  gk_graph *graph = graph_of(device, &list);
  int *x = zeros(device, 2), *y = zeros(device, 2), *flag = int_on(device, 0);
  gk_bind(graph, X, x);
  gk_bind(graph, Y, y);
  gk_bind(graph, FLAG, flag);
  gk_bind_int(graph, A, 1);
  gk_bind_int(graph, L, (int64_t)1 << 40);
  for (int k = 0; k < 2; ++k) {
    assert_ok(gk_upload(device, flag, &(int){0}, sizeof(int)));
    run_from(graph, 0);
    assert_ok(gk_upload(device, flag, &(int){1}, sizeof(int)));
    assert_ok(gk_launch(graph, 0));
    assert_fails(GK_ERROR_INVALID, "task 2 (add_to): more than 2147483647 items: 1099511627776 by slot",
                 gk_wait(graph, NULL));
  }
  gk_bind_int(graph, L, 2);
  run_from(graph, 0);
  assert_int_equal(int_at(device, y), 1);
  gk_graph_destroy(graph);
}

TEST_ON_CUDA(test_no_items) {
  static const gk_task tasks[] = {GK_RUN(add_to, N, X, A, N), GK_RUN(add_to, B, Y, A, B)};
  static const gk_list list = GK_LIST(list, tasks, slots);
  gk_graph *graph = graph_of(device, &list);
  int *x = zeros(device, 2), *y = zeros(device, 2);
  gk_bind(graph, X, x);
  gk_bind(graph, Y, y);
  gk_bind_int(graph, N, 0);
  gk_bind_int(graph, A, 5);
  gk_bind_int(graph, B, 2);
  static const int counts[] = {0, 2, -1, 1, 0};
  static const int want[] = {0, 5, 5, 10, 10};
  for (size_t k = 0; k < GK_COUNT(counts); ++k) {
    gk_bind_int(graph, N, counts[k]);
    run_from(graph, 0);
    ASSERT_INTS(x, want[k], counts[k] == 2 || k > 1 ? 5 : 0);
    ASSERT_INTS(y, 5 * (int)(k + 1), 5 * (int)(k + 1));
  }
  gk_bind_int(graph, A, 7); /* while one has no items, its parameters don't matter */
  assert_int_equal(updates_of_launch(graph, 0, GK_BY_NODES), 1);
  gk_graph_destroy(graph);
}

static gk_result record_nothing(const gk_value *args, void *stream) {
  (void)args;
  return stream ? GK_OK : GK_ERROR_INVALID;
}

/* Beside a library call that is recorded again its node is a new one, which knows nothing of its having no items. */
static void check_new_node(gk_device *device, uint32_t bits) {
  static const gk_task tasks[] = {GK_CALL(record_nothing, A), GK_RUN(down, N, X), GK_RUN(down, B, Y)};
  static const gk_list list = GK_LIST(list, tasks, slots);
  static const int counts[] = {0, 0, 1, 1, 0, 0}, want[] = {0, 0, -1, -2, -2, -2};
  gk_graph *graph = graph_on(device, &list, bits);
  int *x = zeros(device, 1), *y = zeros(device, 1);
  gk_bind(graph, X, x);
  gk_bind(graph, Y, y);
  gk_bind_int(graph, B, 1);
  for (int k = 0; k < (int)GK_COUNT(counts); ++k) {
    gk_bind_int(graph, A, k);
    if (k == 0 || counts[k] != counts[k - 1]) gk_bind_int(graph, N, counts[k]);
    run_from(graph, 0);
    ASSERT_INTS(x, want[k]);
    ASSERT_INTS(y, -k - 1);
  }
  gk_graph_destroy(graph);
}
TEST_ON_CUDA(test_no_items_in_a_new_node) {
  check_new_node(device, BITS);
  check_new_node(device, BITS | GK_ISOLATE); /* then each task is a graph of its own, and the next one's stays */
}

TEST_ON_CUDA(test_shared_memory) {
  static const gk_code large_code = {.text = text, .options = "-DSAID=7", .entry = "back", .block = {1024},
                                     .shared_bytes = 1024 * 64};
  static const gk_kernel large = {.name = "large", .params = int_params, .param_count = 1, .cuda = &large_code};
  /* Of the same function, which keeps what the other one needs. */
  static const gk_code less_code = {.text = text, .options = "-DSAID=7", .entry = "back", .block = {832},
                                    .shared_bytes = 832 * 64};
  static const gk_kernel less = {.name = "less", .params = int_params, .param_count = 1, .cuda = &less_code};
  static const gk_task tasks[] = {GK_RUN(back, GK_ONE, X), GK_RUN(large, GK_ONE, Y), GK_RUN(less, GK_ONE, FLAG)};
  static const gk_list list = GK_LIST(list, tasks, slots);
  gk_graph *graph = graph_of(device, &list);
  int *all = calloc(1024, sizeof *all);
  for (int k = 0; k < 1024; ++k) all[k] = k;
  int *x = ints_on(device, all, 64), *y = ints_on(device, all, 1024);
  gk_bind(graph, X, x);
  gk_bind(graph, Y, y);
  gk_bind(graph, FLAG, zeros(device, 832));
  run_from(graph, 0);
  assert_ok(gk_download(device, all, y, 1024 * sizeof *all));
  for (int k = 0; k < 1024; ++k) assert_int_equal(all[k], 1023 - k);
  assert_ok(gk_download(device, all, x, 64 * sizeof *all));
  for (int k = 0; k < 64; ++k) assert_int_equal(all[k], 63 - k);
  free(all);
  gk_graph_destroy(graph);
}

/* It goes before the portable text, and both stand in one list. */
TEST_ON_CUDA(test_beside_portable_text) {
  static gk_kernel twice;
  twice = add;
  static const gk_param params[] = {{"x", "int", 4, 4, GK_PTR, GK_ACCESS_INOUT},
                                    {"a", "int", 4, 4, GK_I32, GK_ACCESS_VALUE}};
  static const gk_code code = {
    .text = "extern \"C\" __global__ void twice(int *x, int a) { if (threadIdx.x == 0) x[0] += 2 * a; }",
    .entry = "twice", .block = {32}};
  twice.params = params;
  twice.cuda = &code;
  static const gk_task tasks[] = {GK_RUN(add, GK_ONE, X, A), GK_RUN(twice, GK_ONE, X, A), GK_RUN(add, N, X, A)};
  static const gk_list list = GK_LIST(list, tasks, slots);
  gk_graph *graph = graph_of(device, &list);
  gk_bind(graph, X, int_on(device, 0));
  gk_bind_int(graph, N, 1);
  for (int a = 1, sum = 0; a < 4; ++a) {
    gk_bind_int(graph, A, a);
    run_from(graph, 0);
    assert_int_equal(int_at(device, gk_bound(graph, X)), sum += 4 * a);
  }
  gk_graph_destroy(graph);
}

/* ---- updates ----------------------------------------------------------------------------------------------------- */

TEST_ON_CUDA(test_just_the_nodes_concerned) {
  static const gk_task tasks[] = {GK_RUN(add_to, N, X, A, N), GK_RUN(add_to, N, X, A, N), GK_RUN(add_to, N, X, B, N),
                                  GK_RUN(add_to, N, Y, A, N), GK_RUN(down, GK_ONE, LEFT), GK_RUN(add, N, X, A)};
  static const gk_list list = GK_LIST(list, tasks, slots);
  gk_graph *graph = graph_of(device, &list);
  int *x = zeros(device, 200), *y = zeros(device, 100);
  gk_bind(graph, X, x);
  gk_bind(graph, Y, y);
  gk_bind(graph, LEFT, int_on(device, 0));
  gk_bind_int(graph, N, 3);
  gk_bind_int(graph, A, 1);
  gk_bind_int(graph, B, 10);
  assert_int_equal(updates_of_launch(graph, 0, GK_BY_NODES), 5);
  ASSERT_INTS(x, 13, 13, 13, 0);
  ASSERT_INTS(y, 1, 1, 1, 0);
  assert_int_equal(updates_of_launch(graph, 0, GK_UNCHANGED), 0);
  gk_bind_int(graph, B, 20);
  assert_int_equal(updates_of_launch(graph, 0, GK_BY_NODES), 1);
  ASSERT_INTS(x, 13 + 13 + 23, 49, 49, 0);
  gk_bind_int(graph, B, 20); /* the same again */
  assert_int_equal(updates_of_launch(graph, 0, GK_BY_TABLE), 0);
  gk_bind(graph, Y, x + 100);
  assert_int_equal(updates_of_launch(graph, 0, GK_BY_NODES), 1);
  gk_bind_int(graph, N, 90); /* and so many blocks */
  assert_int_equal(updates_of_launch(graph, 0, GK_BY_NODES), 4);
  gk_bind_int(graph, B, 1);
  gk_bind_int(graph, A, 2);
  assert_int_equal(updates_of_launch(graph, 0, GK_BY_NODES), 4);
  gk_bind(graph, LEFT, int_on(device, 5));
  assert_int_equal(updates_of_launch(graph, 0, GK_BY_NODES), 1);
  assert_int_equal(int_at(device, gk_bound(graph, LEFT)), 4);
  gk_graph_destroy(graph);
}

/* Launches that are queued have what was bound before each. */
TEST_ON_CUDA(test_queue) {
  static const gk_task tasks[] = {GK_RUN(add_to, N, X, A, N)};
  static const gk_list list = GK_LIST(list, tasks, slots);
  gk_graph *graph = graph_of(device, &list);
  int *memory = zeros(device, 16);
  sim->hold(true);
  for (int k = 0; k < 16; ++k) {
    gk_bind(graph, X, memory + k);
    gk_bind_int(graph, A, 100 + k);
    gk_bind_int(graph, N, k == 5 ? 0 : 1);
    assert_ok(gk_launch(graph, 0));
  }
  assert_int_equal(gk_poll(graph, NULL), GK_NOT_READY);
  sim->hold(false);
  assert_ok(gk_wait(graph, NULL));
  ASSERT_INTS(memory, 100, 101, 102, 103, 104, 0, 106, 107, 108, 109, 110, 111, 112, 113, 114, 115);
  gk_graph_destroy(graph);
}

/* ---- loops, yields, sections ------------------------------------------------------------------------------------- */

static const gk_task looping[] = {
  GK_RUN_ALWAYS(add_to, GK_ONE, SUM, A, N), GK_RUN(add_to, GK_ONE, Y, B, N),
  GK_DO_WHILE(LEFT),
    GK_RUN(add_to, GK_ONE, X, A, N), GK_CHECKPOINT(HERE, FLAG), GK_RUN(add_to, GK_ONE, Y, A, N), GK_END,
    GK_RUN(add_to, GK_ONE, X, B, N), GK_RUN(add, GK_ONE, X, A),
    GK_RUN(down, GK_ONE, LEFT), GK_END,
  GK_CHECKPOINT(THERE, FLAG), GK_RUN(add_to, GK_ONE, X, B, N), GK_END, GK_RUN(add_to, GK_ONE, Y, B, N)};
static const gk_list looping_list = GK_LIST(looping_list, looping, slots);

typedef struct world { int *x, *y, *left, *flag, *sum; } world;

static world bind_world(gk_device *device, gk_graph *graph) {
  world w = {int_on(device, 0), int_on(device, 0), int_on(device, 0), int_on(device, 0), int_on(device, 0)};
  gk_bind(graph, X, w.x);
  gk_bind(graph, Y, w.y);
  gk_bind(graph, LEFT, w.left);
  gk_bind(graph, FLAG, w.flag);
  gk_bind(graph, SUM, w.sum);
  gk_bind_int(graph, N, 1);
  gk_bind_int(graph, A, 1);
  gk_bind_int(graph, B, 100);
  return w;
}

TEST_ON_CUDA(test_yield_and_resume) {
  for (int plain = 0; plain < 2; ++plain) {
    gk_graph *graph = graph_on(device, &looping_list, BITS | (plain ? GK_CANCELLABLE : 0u));
    const world w = bind_world(device, graph);
    set_int(device, w.left, 3);
    assert_int_equal(run_from(graph, 0)->state, GK_FINISHED);
    assert_int_equal(int_at(device, w.x), 3 * 102 + 100);
    assert_int_equal(int_at(device, w.y), 3 + 200);
    set_int(device, w.left, 3);
    set_int(device, w.flag, 1);
    assert_int_equal(run_from(graph, 0)->yielded, HERE);
    assert_int_equal(int_at(device, w.x), 406 + 1);
    assert_int_equal(int_at(device, w.y), 203 + 100 + 1);
    set_int(device, w.flag, 0);
    gk_bind_int(graph, B, 200); /* the graph that resumes gets it, and the other one when it is launched next */
    assert_int_equal(run_from(graph, HERE)->state, GK_FINISHED);
    assert_int_equal(int_at(device, w.x), 407 + 201 + 2 * 202 + 200);
    assert_int_equal(int_at(device, w.y), 304 + 3 + 200);
    set_int(device, w.left, 1);
    gk_bind_int(graph, A, 5);
    assert_int_equal(run_from(graph, THERE)->state, GK_FINISHED);
    assert_int_equal(int_at(device, w.x), 1212 + 200);
    assert_int_equal(int_at(device, w.left), 1);
    assert_int_equal(run_from(graph, 0)->state, GK_FINISHED);
    assert_int_equal(int_at(device, w.x), 1412 + 5 + 200 + 5 + 200);
    assert_int_equal(int_at(device, w.y), 507 + 200 + 200 + 5 + 200);
    assert_int_equal(int_at(device, w.sum), 1 + 1 + 1 + 5 + 5);
    gk_graph_destroy(graph);
  }
}

/* In each graph when it is used next, and not before. */
TEST_ON_CUDA(test_updates_of_both_graphs) {
  gk_graph *graph = graph_of(device, &looping_list);
  const world w = bind_world(device, graph);
  set_int(device, w.left, 1);
  run_from(graph, 0);
  run_from(graph, THERE); /* both are there, and the prologue as it is to be */
  const bool answers = !strstr(NO, "P1d") && !strstr(NO, "P17");
  const bool both = atof(VERSION) >= 12.35 && !BITS && answers; /* graphs; else it is the host that gates */
  if (strstr(NO, "P17")) {
    assert_fails(GK_ERROR_UNSUPPORTED, "it has kernels with code by hand, whose parameters are in their nodes, and "
                 "this driver (CUDA 13.0) doesn't do this: ", gk_cuda_graph(graph, 0, NULL, NULL));
    assert_says(NO);
  }
  gk_bind_int(graph, B, 7); /* of four nodes */
  set_int(device, w.left, 2);
  assert_int_equal(updates_of_launch(graph, THERE, GK_BY_NODES), 4);
  assert_int_equal(updates_of_launch(graph, THERE, GK_UNCHANGED), 0);
  assert_int_equal(updates_of_launch(graph, 0, both ? GK_BY_NODES : GK_UNCHANGED), both ? 4 : 0);
  set_int(device, w.left, 1);
  assert_int_equal(updates_of_launch(graph, 0, GK_UNCHANGED), 0);
  assert_int_equal(updates_of_launch(graph, THERE, GK_UNCHANGED), 0);
  gk_graph_destroy(graph);
}

TEST_ON_CUDA(test_updates_in_blocks_are_refused) {
  if (BITS || atof(VERSION) < 12.35 || NO[0] != 0) return;
  static const gk_task tasks[] = {GK_DO_WHILE(LEFT), GK_RUN(down, GK_ONE, LEFT), GK_END};
  static const gk_list list = GK_LIST(list, tasks, slots);
  gk_graph *graph = graph_of(device, &list), *gated = graph_on(device, &list, GK_HOST_GATED);
  gk_bind(graph, LEFT, int_on(device, 3));
  gk_bind(gated, LEFT, gk_bound(graph, LEFT));
  sim->answer_no("P17a");
  assert_ok(gk_launch(graph, 0));
  assert_fails(GK_ERROR_UNSUPPORTED, "task 1 (down): this driver doesn't update the node", gk_wait(graph, NULL));
  assert_says("create graph list with GK_HOST_GATED");
  run_from(gated, 0);
  assert_int_equal(int_at(device, gk_bound(gated, LEFT)), 0);
  sim->answer_no(NULL);
  gk_graph_destroy(graph);
  gk_graph_destroy(gated);
}

TEST_ON_CUDA(test_nested_and_beside) {
  static const gk_task tasks[] = {
    GK_DO_WHILE(OUTER), GK_RUN(down, GK_ONE, OUTER), GK_IF(FLAG), GK_RUN(add_to, GK_ONE, X, A, N), GK_ELSE,
      GK_RUN(add_to, GK_ONE, X, B, N), GK_END,
    GK_PARALLEL, GK_SECTION, GK_RUN(add_to, GK_ONE, X, A, N), GK_RUN(add_to, GK_ONE, X, A, N), GK_END,
      GK_SECTION, GK_RUN(add_to, GK_ONE, Y, B, N), GK_END, GK_END,
    GK_WHILE(LEFT), GK_RUN(down, GK_ONE, LEFT), GK_RUN(add_to, GK_ONE, Y, A, N), GK_END, GK_END};
  static const gk_list list = GK_LIST(list, tasks, slots);
  gk_graph *graph = graph_of(device, &list);
  const world w = bind_world(device, graph);
  int *outer = int_on(device, 0), x = 0, y = 0;
  gk_bind(graph, OUTER, outer);
  for (int k = 0; k < 12; ++k) {
    sim->set_seed((uint64_t)k);
    gk_bind_int(graph, A, k);
    gk_bind_int(graph, B, 10 * k);
    set_int(device, outer, 3);
    set_int(device, w.left, 4);
    set_int(device, w.flag, k & 1);
    run_from(graph, 0);
    x += 3 * (k & 1 ? k : 10 * k) + 6 * k;
    y += 30 * k + 4 * k;
    assert_int_equal(int_at(device, w.x), x);
    assert_int_equal(int_at(device, w.y), y);
  }
  gk_graph_destroy(graph);
}

TEST_ON_CUDA(test_isolated) {
  static const gk_task tasks[] = {GK_RUN(add_to, GK_ONE, X, A, N), GK_RUN(down, GK_ONE, X)};
  static const gk_list list = GK_LIST(list, tasks, slots);
  gk_graph *graph = graph_on(device, &list, GK_ISOLATE);
  gk_bind(graph, X, int_on(device, 0));
  gk_bind_int(graph, N, 1);
  gk_bind_int(graph, A, 9);
  assert_int_equal(updates_of_launch(graph, 0, GK_BY_NODES), 2);
  gk_bind_int(graph, A, 8);
  assert_int_equal(updates_of_launch(graph, 0, GK_BY_NODES), 1);
  assert_int_equal(int_at(device, gk_bound(graph, X)), 8 + 7);
  gk_graph_destroy(graph);
}

/* ---- failures ---------------------------------------------------------------------------------------------------- */

static gk_result try_looping(gk_device *device, const world *w, gk_graph **graph) {
  gk_result result = gk_graph_create(device, &looping_list, BITS, graph);
  if (result != GK_OK) return result;
  gk_bind(*graph, X, w->x);
  gk_bind(*graph, Y, w->y);
  gk_bind(*graph, LEFT, w->left);
  gk_bind(*graph, FLAG, w->flag);
  gk_bind(*graph, SUM, w->sum);
  gk_bind_int(*graph, N, 1);
  gk_bind_int(*graph, A, 1);
  gk_bind_int(*graph, B, 100);
  result = gk_launch(*graph, 0);
  if (result == GK_OK) result = gk_wait(*graph, NULL);
  if (result != GK_OK) return result;
  gk_bind_int(*graph, B, 10);
  result = gk_launch(*graph, THERE);
  return result == GK_OK ? gk_wait(*graph, NULL) : result;
}

static void prepare(gk_device *device, const world *w) {
  set_int(device, w->x, 0);
  set_int(device, w->y, 0);
  set_int(device, w->left, 2);
}

TEST_ON_CUDA(test_every_call_fails) {
  const world w = {int_on(device, 0), int_on(device, 0), int_on(device, 0), int_on(device, 0), int_on(device, 0)};
  gk_graph *first = NULL;
  prepare(device, &w);
  assert_ok(try_looping(device, &w, &first)); /* its kernels stay as long as one of their graphs does */
  for (uint64_t k = 1;; ++k) {
    gk_graph *graph = NULL;
    prepare(device, &w);
    const size_t alive = alive_but_memory();
    sim->mark();
    (sim->fail)(k, CUDA_ERROR_UNKNOWN, SIMGPU_NOW);
    const gk_result result = try_looping(device, &w, &graph);
    const char *failed = sim->failed();
    sim->mark();
    if (result == GK_ERROR_UNSUPPORTED) assert_says("create it with GK_HOST_GATED"); /* it isn't instantiated */
    else if (result != GK_OK) {
      assert_int_equal(result, GK_ERROR_DEVICE);
      if (failed && strstr(failed, "NodeSetParams")) assert_says(failed);
    } else {
      assert_int_equal(int_at(device, w.x), 2 * 102 + 100 + 10);
      assert_int_equal(int_at(device, w.y), 2 + 200 + 10);
    }
    if (graph) { /* it works once the driver does */
      prepare(device, &w);
      assert_ok(gk_launch(graph, 0));
      assert_ok(gk_wait(graph, NULL));
      const int b = int_at(device, w.y) == 2 + 200 ? 100 : 10;
      assert_int_equal(int_at(device, w.y), 2 + 2 * b);
      assert_int_equal(int_at(device, w.x), 2 * (b + 2) + b);
    }
    gk_graph_destroy(graph);
    assert_int_equal(alive_but_memory(), alive);
    assert_int_equal(sim->broken(), 0);
    if (!failed) {
      assert_true(k > 30);
      break;
    }
  }
  gk_graph_destroy(first);
}

TEST_ON_CUDA(test_no_memory) {
  gk_device_close(device);
  *state = NULL;
  counting c = {0};
  const gk_allocator allocator = counting_allocator(&c);
  assert_ok(gk_set_allocator(&allocator));
  device = open_named("cuda");
  const world w = {int_on(device, 0), int_on(device, 0), int_on(device, 0), int_on(device, 0), int_on(device, 0)};
  for (int k = 1;; ++k) {
    gk_graph *graph = NULL;
    prepare(device, &w);
    atomic_store(&c.calls, 0);
    atomic_store(&c.fail_at, k);
    const gk_result result = try_looping(device, &w, &graph);
    const bool hit = atomic_load(&c.calls) >= k;
    atomic_store(&c.fail_at, 0);
    if (result != GK_OK) assert_int_equal(result, GK_ERROR_MEMORY);
    gk_graph_destroy(graph);
    if (!hit) break;
  }
  gk_device_close(device);
  assert_int_equal(atomic_load(&c.live), 0);
  assert_ok(gk_set_allocator(NULL));
}

int main(int count, char **words) {
  (void)count;
  begin_foreign(words);
  return run_all_tests();
}
