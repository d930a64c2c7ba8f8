/* Kernels with handwritten code on CUDA: their parameters; a changed binding updates only the nodes that use it, in
 * each graph at its next launch; they are skipped like other tasks. */
#include "handwritten.h"
#include "gk_cuda.h"

CODE(all_kinds, kinds_params, .block = {0});
CODE(back, int_params, .block = {64}, .shared_bytes = 64 * 64);
CODE_AT(large, "back", int_params, SAID, 0, .block = {1024}, .shared_bytes = 1024 * 64);
CODE_AT(less, "back", int_params, SAID, 0, .block = {832}, .shared_bytes = 832 * 64);
CODE_AT(flat, "shape", int_params, SAID, 0, .block = {0});
CODE_AT(deep, "shape", int_params, SAID, 3, .block = {8, 4, 2}, .per_block = {16, 0, 5});
CODE_AT(tall, "shape", int_params, SAID, 3, .block = {1}, .per_block = {1 << 15});

/* For nodes with handwritten code. A graph that resumes also updates its prologue by the same call. */
static uint64_t updates_of_launch(gk_graph *graph, int32_t label, gk_applied applied) {
  sim->mark();
  assert_int_equal(run_to_end(graph, label)->applied, applied);
  return sim->calls("cuGraphExecNodeSetParams") + sim->calls("cuGraphExecKernelNodeSetParams");
}

TEST_ON_CUDA(test_parameters) {
  LIST(list, GK_RUN(all_kinds, GK_ONE, TO, A, U, L, F, D, LINE, MORE, SUM));
  int64_t *to = gk_alloc(device, 9 * sizeof *to, GK_DEVICE_MEMORY), have[9];
  int *sum = int_on(device, 5);
  gk_graph *graph = NEW_GRAPH(device, &list, BITS, {TO, to}, {SUM, sum});
  BIND_INTS(graph, {A, -3}, {U, 4000000000}, {L, -5000000000});
  gk_bind_float(graph, F, 1.25);
  gk_bind_float(graph, D, -2.125);
  for (int k = 1; k < 3; ++k) {
    const line in_value = {10 * k + 1, 10 * k + 2}, in_memory = {10 * k + 3, 10 * k + 4};
    gk_bind_bytes(graph, LINE, &in_value, sizeof in_value);
    gk_bind_bytes(graph, MORE, &in_memory, sizeof in_memory);
    run_to_end(graph, 0);
    assert_ok(gk_download(device, have, to, sizeof have));
    const int64_t want[] = {-3, 4000000000, -5000000000, 5, -17, 10 * k + 1, 10 * k + 2, 10 * k + 3, 10 * k + 4};
    assert_memory_equal(have, want, sizeof have);
    ASSERT_VALUES({sum, 5 - 3 * k});
  }
}

TEST_ON_CUDA(test_shape) {
  LIST(list, GK_RUN(flat, N, X), GK_RUN_3D(deep, N, A, B, Y));
  int *x = zeros(device, 6), *y = zeros(device, 6);
  gk_graph *graph = NEW_GRAPH(device, &list, BITS, {X, x}, {Y, y});
  BIND_INTS(graph, {N, 257}, {A, 5}, {B, 11});
  run_to_end(graph, 0);
  ASSERT_INTS(x, 2, 1, 1, 256, 1, 1);
  ASSERT_INTS(y, 17, 2, 3, 8, 4, 2);
  BIND_INTS(graph, {N, 256}, {B, 1});
  run_to_end(graph, 0);
  ASSERT_INTS(x, 1, 1, 1, 256, 1, 1);
  ASSERT_INTS(y, 16, 2, 1, 8, 4, 2);
  BIND_INTS(graph, {N, 1}, {A, 4 * 65535 + 1});
  assert_invalid("task 1 (deep): 65536 blocks along y, by slot 4 (A), and a grid has at most 65535",
               waited_for(graph, 0));
  gk_bind_int(graph, A, 3);
  run_to_end(graph, 0); /* the other bound values come, too */
  ASSERT_INTS(x, 1, 1, 1, 256, 1, 1);
  ASSERT_INTS(y, 1, 1, 1, 8, 4, 2);
  BIND_INTS(graph, {A, (1 << 18) - 4}, {B, 1 << 14});
  assert_invalid("more than 2147483647 items", waited_for(graph, 0));
}

/* Extents up to a grid's limit along y and z, up to the largest number of items, and beyond a grid's limit along x. */
TEST_ON_CUDA(test_largest_grids) {
  LIST(list, GK_RUN_3D(tall, N, A, B, X));
  LIST(flat_list, GK_RUN_3D(tall, GK_ONE, A, GK_ONE, X)); /* whose items are along y alone */
  static const int extents[][3] = {{1, 65535, 1}, {1, 1, 65535}, {INT32_MAX, 1, 1}};
  int *x = zeros(device, 6);
  gk_graph *graph = NEW_GRAPH(device, &list, BITS, {X, x}), *along_y = NEW_GRAPH(device, &flat_list, BITS, {X, x});
  for (size_t k = 0; k < GK_COUNT(extents); ++k) {
    const int *extent = extents[k];
    BIND_INTS(graph, {N, extent[0]}, {A, extent[1]}, {B, extent[2]});
    run_to_end(graph, 0);
    ASSERT_INTS(x, extent[0] == INT32_MAX ? 65536 : 1, extent[1], extent[2], 1, 1, 1);
  }
  BIND_INTS(graph, {N, 1}, {B, 65536});
  assert_invalid("task 0 (tall): 65536 blocks along z, by slot 5 (B), and a grid has at most 65535",
               waited_for(graph, 0));
  gk_bind_int(along_y, A, 65536);
  assert_invalid("task 0 (tall): 65536 blocks along y, by slot 4 (A)", waited_for(along_y, 0));
}

/* The number of a skipped task isn't read. */
TEST_ON_CUDA(test_bad_count_is_skipped) {
  LIST(list, GK_RUN(add_to, GK_ONE, X, A, A), GK_IF(FLAG), GK_RUN(add_to, L, Y, A, A), GK_END);
  int *x = zeros(device, 2), *y = zeros(device, 2), *flag = int_on(device, 0);
  gk_graph *graph = NEW_GRAPH(device, &list, BITS, {X, x}, {Y, y}, {FLAG, flag});
  BIND_INTS(graph, {A, 1}, {L, (int64_t)1 << 40});
  for (int k = 0; k < 2; ++k) {
    set_int(device, flag, 0);
    run_to_end(graph, 0);
    set_int(device, flag, 1);
    assert_invalid("task 2 (add_to): more than 2147483647 items: 1099511627776 by slot",
                 waited_for(graph, 0));
  }
  gk_bind_int(graph, L, 2);
  run_to_end(graph, 0);
  ASSERT_VALUES({y, 1});
}

/* A launch after one that failed to send what the device needs of slots sends all of it. */
TEST_ON_CUDA(test_bad_count_after_a_copy_that_failed) {
  LIST(list, GK_RUN(add_to, L, X, A, A));
  for (uint32_t bits = 0; bits <= GK_HOST_GATED; bits += GK_HOST_GATED) {
    gk_graph *graph = NEW_GRAPH(device, &list, bits, {X, zeros(device, 2)});
    BIND_INTS(graph, {A, 1}, {L, (int64_t)1 << 40});
    const char *failed = "";
    for (uint64_t k = 1; strcmp(failed, "cuMemcpyHtoDAsync") != 0; ++k) {
      fail_call(k, CUDA_ERROR_UNKNOWN);
      assert_int_not_equal(waited_for(graph, 0), GK_OK);
      failed = failed_call();
      assert_non_null(failed);
    }
    assert_invalid("task 0 (add_to): more than 2147483647 items", waited_for(graph, 0));
  }
}

/* However the graph's memory ends behind the record of the last one, whose number is bad. */
TEST_ON_CUDA(test_bad_count_of_the_last) {
  gk_task tasks[8];
  int *x = zeros(device, 2);
  for (uint32_t k = 0; k < GK_COUNT(tasks); ++k) {
    tasks[k] = (gk_task)GK_RUN(add_to, L, X, A, A);
    const gk_list list = {GK_ABI, "list", tasks, k + 1, slots, GK_COUNT(slots)};
    gk_graph *graph = NEW_GRAPH(device, &list, BITS, {X, x});
    BIND_INTS(graph, {A, 1}, {L, (int64_t)1 << 40});
    assert_invalid("more than 2147483647 items: 1099511627776 by slot", waited_for(graph, 0));
  }
}

TEST_ON_CUDA(test_no_items) {
  LIST(list, GK_RUN(add_to, N, X, A, N), GK_RUN(add_to, B, Y, A, B));
  static const int counts[] = {0, 2, -1, 1, 0}, want[] = {0, 5, 5, 10, 10};
  int *x = zeros(device, 2), *y = zeros(device, 2);
  gk_graph *graph = NEW_GRAPH(device, &list, BITS, {X, x}, {Y, y});
  BIND_INTS(graph, {N, 0}, {A, 5}, {B, 2});
  for (size_t k = 0; k < GK_COUNT(counts); ++k) {
    gk_bind_int(graph, N, counts[k]);
    run_to_end(graph, 0);
    ASSERT_INTS(x, want[k], k > 0 ? 5 : 0);
    ASSERT_INTS(y, 5 * (int)(k + 1), 5 * (int)(k + 1));
  }
  gk_bind_int(graph, A, 7); /* its parameters don't matter while it has no items */
  assert_int_equal(updates_of_launch(graph, 0, GK_BY_NODES), 1);
}

CALLED(record_nothing) { return stream ? GK_OK : GK_ERROR_INVALID; }

/* A call beside it that is recorded again gives it a new node, which isn't disabled although the task has no items.
 * With GK_ISOLATE each task is a graph of its own, and the next task's graph stays. */
TEST_ON_CUDA(test_no_items_in_a_new_node) {
  LIST(list, GK_CALL(record_nothing, A), GK_RUN(down, N, X), GK_RUN(down, B, Y));
  static const int counts[] = {0, 0, 1, 1, 0, 0}, want[] = {0, 0, -1, -2, -2, -2};
  for (int isolates = 0; isolates < 2; ++isolates) {
    int *x = zeros(device, 1), *y = zeros(device, 1);
    gk_graph *graph = NEW_GRAPH(device, &list, BITS | (isolates ? GK_ISOLATE : 0u), {X, x}, {Y, y});
    gk_bind_int(graph, B, 1);
    for (int k = 0; k < (int)GK_COUNT(counts); ++k) {
      gk_bind_int(graph, A, k);
      if (k == 0 || counts[k] != counts[k - 1]) gk_bind_int(graph, N, counts[k]);
      run_to_end(graph, 0);
      ASSERT_VALUES({x, want[k]}, {y, -k - 1});
    }
  }
}

/* Kernels of one function: it keeps the largest amount of shared memory that one of them asked for. */
TEST_ON_CUDA(test_shared_memory) {
  LIST(list, GK_RUN(back, GK_ONE, X), GK_RUN(large, GK_ONE, Y), GK_RUN(less, GK_ONE, FLAG));
  static int all[1024];
  for (int k = 0; k < 1024; ++k) all[k] = k;
  int *x = ints_on(device, all, 64), *y = ints_on(device, all, 1024);
  run_to_end(NEW_GRAPH(device, &list, BITS, {X, x}, {Y, y}, {FLAG, zeros(device, 832)}), 0);
  assert_ok(gk_download(device, all, y, sizeof all));
  for (int k = 0; k < 1024; ++k) assert_int_equal(all[k], 1023 - k);
  assert_ok(gk_download(device, all, x, 64 * sizeof *all));
  for (int k = 0; k < 64; ++k) assert_int_equal(all[k], 63 - k);
}

/* Handwritten code goes before the portable text, and both can be in one list. */
TEST_ON_CUDA(test_beside_portable_text) {
  static const gk_code code = {
    .text = "extern \"C\" __global__ void twice(int *x, int a) { if (threadIdx.x == 0) x[0] += 2 * a; }",
    .entry = "twice", .block = {32}};
  static gk_kernel twice;
  twice = add;
  twice.params = add_params;
  twice.cuda = &code;
  LIST(list, GK_RUN(add, GK_ONE, X, A), GK_RUN(twice, GK_ONE, X, A), GK_RUN(add, N, X, A));
  int *x = int_on(device, 0);
  gk_graph *graph = NEW_GRAPH(device, &list, BITS, {X, x});
  gk_bind_int(graph, N, 1);
  for (int a = 1, sum = 0; a < 4; ++a) {
    gk_bind_int(graph, A, a);
    run_to_end(graph, 0);
    ASSERT_VALUES({x, sum += 4 * a});
  }
}

TEST_ON_CUDA(test_just_the_nodes_concerned) {
  LIST(list, GK_RUN(add_to, N, X, A, N), GK_RUN(add_to, N, X, A, N), GK_RUN(add_to, N, X, B, N),
       GK_RUN(add_to, N, Y, A, N), GK_RUN(down, GK_ONE, LEFT), GK_RUN(add, N, X, A));
  int *x = zeros(device, 200), *y = zeros(device, 100), *left = int_on(device, 5);
  gk_graph *graph = NEW_GRAPH(device, &list, BITS, {X, x}, {Y, y}, {LEFT, int_on(device, 0)});
  BIND_INTS(graph, {N, 3}, {A, 1}, {B, 10});
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
  BIND_INTS(graph, {B, 1}, {A, 2});
  assert_int_equal(updates_of_launch(graph, 0, GK_BY_NODES), 4);
  gk_bind(graph, LEFT, left);
  assert_int_equal(updates_of_launch(graph, 0, GK_BY_NODES), 1);
  ASSERT_VALUES({left, 4});
}

/* A body that stands several times in the graph has as many nodes. */
TEST_ON_CUDA(test_copies) {
  LIST(list, GK_REPEAT(GK_ITEMS(6)), GK_RUN(add_to, N, X, A, N), GK_END,
       GK_REPEAT(GK_ITEMS(67)), GK_RUN(add_to, N, Y, B, N), GK_END);
  int *x = zeros(device, 100), *y = zeros(device, 100);
  gk_graph *graph = NEW_GRAPH(device, &list, BITS, {X, x}, {Y, y});
  char *dump = gk_dump(NULL, graph, "text");
  const uint64_t copies = strstr(dump, "decided by the device") ? 6 : 1;
  gk_free_text(dump);
  BIND_INTS(graph, {N, 2}, {A, 1}, {B, 10});
  assert_int_equal(updates_of_launch(graph, 0, GK_BY_NODES), copies + 1);
  gk_bind_int(graph, A, 100);
  assert_int_equal(updates_of_launch(graph, 0, GK_BY_NODES), copies);
  assert_int_equal(updates_of_launch(graph, 0, GK_UNCHANGED), 0);
  ASSERT_INTS(x, 1206, 1206, 0);
  ASSERT_INTS(y, 2010, 2010, 0);
  gk_bind_int(graph, N, 0);
  assert_int_equal(updates_of_launch(graph, 0, GK_BY_NODES), copies + 1);
  gk_bind_int(graph, N, 90); /* and so many blocks */
  assert_int_equal(updates_of_launch(graph, 0, GK_BY_NODES), copies + 1);
  ASSERT_INTS(x, 1806, 1806, 600);
}

/* Each queued launch has the values that were bound before it. */
TEST_ON_CUDA(test_queue) {
  LIST(list, GK_RUN(add_to, N, X, A, N));
  gk_graph *graph = new_graph(device, &list, BITS);
  int *memory = zeros(device, 16);
  sim->hold(true);
  for (int k = 0; k < 16; ++k) {
    gk_bind(graph, X, memory + k);
    BIND_INTS(graph, {A, 100 + k}, {N, k == 5 ? 0 : 1});
    assert_ok(gk_launch(graph, 0));
  }
  assert_int_equal(gk_poll(graph, NULL), GK_NOT_READY);
  sim->hold(false);
  assert_ok(gk_wait(graph, NULL));
  ASSERT_INTS(memory, 100, 101, 102, 103, 104, 0, 106, 107, 108, 109, 110, 111, 112, 113, 114, 115);
}

LIST(looping,
     GK_RUN_ALWAYS(add_to, GK_ONE, SUM, A, N), GK_RUN(add_to, GK_ONE, Y, B, N),
     GK_DO_WHILE(LEFT),
       GK_RUN(add_to, GK_ONE, X, A, N), GK_CHECKPOINT(HERE, FLAG), GK_RUN(add_to, GK_ONE, Y, A, N), GK_END,
       GK_RUN(add_to, GK_ONE, X, B, N), GK_RUN(add, GK_ONE, X, A), GK_RUN(down, GK_ONE, LEFT), GK_END,
     GK_CHECKPOINT(THERE, FLAG), GK_RUN(add_to, GK_ONE, X, B, N), GK_END, GK_RUN(add_to, GK_ONE, Y, B, N));

typedef struct memory { int *x, *y, *left, *flag, *sum; } memory;

static memory zero_memory(gk_device *device) {
  return (memory){int_on(device, 0), int_on(device, 0), int_on(device, 0), int_on(device, 0), int_on(device, 0)};
}

static gk_graph *bound_to(gk_graph *graph, const memory *m) {
  BIND(graph, {X, m->x}, {Y, m->y}, {LEFT, m->left}, {FLAG, m->flag}, {SUM, m->sum});
  BIND_INTS(graph, {N, 1}, {A, 1}, {B, 100});
  return graph;
}

TEST_ON_CUDA(test_yield_and_resume) {
  for (int plain = 0; plain < 2; ++plain) {
    const memory m = zero_memory(device);
    gk_graph *graph = bound_to(new_graph(device, &looping, BITS | (plain ? GK_CANCELLABLE : 0u)), &m);
    set_int(device, m.left, 3);
    assert_int_equal(run_to_end(graph, 0)->state, GK_FINISHED);
    ASSERT_VALUES({m.x, 3 * 102 + 100}, {m.y, 3 + 200});
    SET_VALUES({m.left, 3}, {m.flag, 1});
    assert_int_equal(run_to_end(graph, 0)->yielded, HERE);
    ASSERT_VALUES({m.x, 406 + 1}, {m.y, 203 + 100 + 1});
    set_int(device, m.flag, 0);
    gk_bind_int(graph, B, 200); /* the graph that resumes gets it, and the other one at its next launch */
    assert_int_equal(run_to_end(graph, HERE)->state, GK_FINISHED);
    ASSERT_VALUES({m.x, 407 + 201 + 2 * 202 + 200}, {m.y, 304 + 3 + 200});
    set_int(device, m.left, 1);
    gk_bind_int(graph, A, 5);
    assert_int_equal(run_to_end(graph, THERE)->state, GK_FINISHED);
    ASSERT_VALUES({m.x, 1212 + 200}, {m.left, 1});
    assert_int_equal(run_to_end(graph, 0)->state, GK_FINISHED);
    ASSERT_VALUES({m.x, 1412 + 5 + 200 + 5 + 200}, {m.y, 507 + 200 + 200 + 5 + 200}, {m.sum, 1 + 1 + 1 + 5 + 5});
  }
}

/* In each graph at its next launch, and not before. */
TEST_ON_CUDA(test_updates_of_both_graphs) {
  const memory m = zero_memory(device);
  gk_graph *graph = bound_to(new_graph(device, &looping, BITS), &m);
  set_int(device, m.left, 1);
  run_to_end(graph, 0);
  run_to_end(graph, THERE); /* both nodes exist, and the prologue has its values */
  const bool answers = !strstr(NO, "P1d") && !strstr(NO, "P17");
  const bool both = atof(VERSION) >= 12.35 && !BITS && answers; /* graphs; else the host gates */
  if (strstr(NO, "P17")) {
    assert_fails(GK_ERROR_UNSUPPORTED, "it has kernels with code by hand, whose parameters are in their nodes, and "
                 "this driver (CUDA 13.0) doesn't do this: ", gk_cuda_graph(graph, 0, NULL, NULL));
    assert_says(NO);
  }
  gk_bind_int(graph, B, 7); /* of four nodes */
  set_int(device, m.left, 2);
  assert_int_equal(updates_of_launch(graph, THERE, GK_BY_NODES), 4);
  assert_int_equal(updates_of_launch(graph, THERE, GK_UNCHANGED), 0);
  assert_int_equal(updates_of_launch(graph, 0, both ? GK_BY_NODES : GK_UNCHANGED), both ? 4 : 0);
  set_int(device, m.left, 1);
  assert_int_equal(updates_of_launch(graph, 0, GK_UNCHANGED), 0);
  assert_int_equal(updates_of_launch(graph, THERE, GK_UNCHANGED), 0);
}

TEST_ON_CUDA(test_updates_in_blocks_are_refused) {
  if (BITS || atof(VERSION) < 12.35 || NO[0] != 0) return;
  LIST(list, GK_DO_WHILE(LEFT), GK_RUN(down, GK_ONE, LEFT), GK_END);
  int *left = int_on(device, 3);
  gk_graph *graph = NEW_GRAPH(device, &list, 0, {LEFT, left});
  gk_graph *gated = NEW_GRAPH(device, &list, GK_HOST_GATED, {LEFT, left});
  sim->answer_no("P17a");
  assert_fails(GK_ERROR_UNSUPPORTED, "task 1 (down): this driver doesn't update the node", waited_for(graph, 0));
  assert_says("create graph list with GK_HOST_GATED");
  run_to_end(gated, 0);
  ASSERT_VALUES({left, 0});
  sim->answer_no(NULL);
}

TEST_ON_CUDA(test_nested_and_beside) {
  LIST(list, GK_DO_WHILE(OUTER), GK_RUN(down, GK_ONE, OUTER),
         GK_IF(FLAG), GK_RUN(add_to, GK_ONE, X, A, N), GK_ELSE, GK_RUN(add_to, GK_ONE, X, B, N), GK_END,
         GK_PARALLEL, GK_SECTION, GK_RUN(add_to, GK_ONE, X, A, N), GK_RUN(add_to, GK_ONE, X, A, N), GK_END,
           GK_SECTION, GK_RUN(add_to, GK_ONE, Y, B, N), GK_END, GK_END,
         GK_WHILE(LEFT), GK_RUN(down, GK_ONE, LEFT), GK_RUN(add_to, GK_ONE, Y, A, N), GK_END, GK_END);
  const memory m = zero_memory(device);
  gk_graph *graph = bound_to(new_graph(device, &list, BITS), &m);
  int *outer = int_on(device, 0), x = 0, y = 0;
  gk_bind(graph, OUTER, outer);
  for (int k = 0; k < 12; ++k) {
    sim->set_seed((uint64_t)k);
    BIND_INTS(graph, {A, k}, {B, 10 * k});
    SET_VALUES({outer, 3}, {m.left, 4}, {m.flag, k & 1});
    run_to_end(graph, 0);
    x += 3 * (k & 1 ? k : 10 * k) + 6 * k;
    y += 30 * k + 4 * k;
    ASSERT_VALUES({m.x, x}, {m.y, y});
  }
}

TEST_ON_CUDA(test_isolated) {
  LIST(list, GK_RUN(add_to, GK_ONE, X, A, N), GK_RUN(down, GK_ONE, X));
  int *x = int_on(device, 0);
  gk_graph *graph = NEW_GRAPH(device, &list, GK_ISOLATE, {X, x});
  BIND_INTS(graph, {N, 1}, {A, 9});
  assert_int_equal(updates_of_launch(graph, 0, GK_BY_NODES), 2);
  gk_bind_int(graph, A, 8);
  assert_int_equal(updates_of_launch(graph, 0, GK_BY_NODES), 1);
  ASSERT_VALUES({x, 8 + 7});
}

static memory tried;

static void prepare(gk_device *device) { SET_VALUES({tried.x, 0}, {tried.y, 0}, {tried.left, 2}); }

static gk_result try_looping(gk_device *device, gk_graph **graph) {
  gk_result result = gk_graph_create(device, &looping, BITS, graph);
  if (result == GK_OK) result = run_on_stream(bound_to(*graph, &tried), 0, NULL);
  if (result != GK_OK) return result;
  gk_bind_int(*graph, B, 10);
  return run_on_stream(*graph, THERE, NULL);
}

static void check_outcome(gk_device *device, gk_graph *graph, gk_result result, const char *failed) {
  if (result == GK_ERROR_UNSUPPORTED) assert_says("create it with GK_HOST_GATED"); /* it isn't instantiated */
  else if (result != GK_OK) {
    assert_int_equal(result, GK_ERROR_DEVICE);
    if (failed && strstr(failed, "NodeSetParams")) assert_says(failed);
  } else {
    ASSERT_VALUES({tried.x, 2 * 102 + 100 + 10}, {tried.y, 2 + 200 + 10});
  }
  prepare(device);
  if (!graph) return;
  run_to_end(graph, 0); /* it works once the driver does */
  const int b = int_at(device, tried.y) == 2 + 200 ? 100 : 10;
  ASSERT_VALUES({tried.y, 2 + 2 * b}, {tried.x, 2 * (b + 2) + b});
  prepare(device);
}

TEST_ON_CUDA(test_every_call_fails) {
  tried = zero_memory(device);
  prepare(device);
  gk_graph *first = bound_to(new_graph(device, &looping, BITS), &tried);
  run_to_end(first, 0);
  run_to_end(first, THERE); /* its kernels stay loaded while one of their graphs exists */
  prepare(device);
  fail_each_call(device, try_looping, check_outcome);
}

COUNTED(test_no_memory) {
  gk_device *device = open_named("cuda");
  tried = zero_memory(device);
  bool hit = true;
  for (int k = 1; hit; ++k) {
    gk_graph *graph = NULL;
    prepare(device);
    fail_own_memory(k);
    const gk_result result = try_looping(device, &graph);
    hit = own_memory_failed();
    if (result != GK_OK) assert_int_equal(result, GK_ERROR_MEMORY);
    gk_graph_destroy(graph);
  }
  gk_device_close(device);
}

int main(UNUSED int count, char **words) { return run_handwritten(words); }
