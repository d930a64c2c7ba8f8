/* Kernels of parallel branches that run at once: those of gk's probe, with the driver that runs code. */
#define SIM_LIBRARY "build/simgpu/libcuda.so.1"
#include "graph_world.h"

/* The driver has the code for this name. */
static const char image[] = ".version 8.4\n.target sm_52\n.address_size 64\n"
                            ".visible .entry gki_set_beside()\n{\nret;\n}\n";

enum { BRANCHES = 2, SEEDS = 20 };
static uint32_t *met; /* pinned: begun, ended, and how often one ended while others were under way */
static CUgraphConditionalHandle handles[BRANCHES];

static int begin_branches(UNUSED void **state) {
  begin_with(image);
  met = (uint32_t *)counters;
  for (int k = 0; k < BRANCHES; ++k) handles[k] = handle_of(0);
  return 0;
}

/* The kernel counts in `met`, or at another place that is given. */
static CUgraphNode add_kernel(CUgraphNode after, unsigned blocks, void *at, CUgraphConditionalHandle handle,
                              unsigned value) {
  unsigned times = 4;
  CUgraphNodeParams asked = kernel_node("gki_set_beside", (void *[]){&at, &handle, &value, &times});
  asked.kernel.gridDimX = blocks;
  asked.kernel.blockDimX = 32;
  CUgraphNode node = NULL;
  RIGHT(try_add(&node, graph, after, &asked));
  return node;
}

/* Behind all of those nodes. */
static CUgraphExec finish(const CUgraphNode *after, size_t count) {
  for (int k = 0; k < BRANCHES; ++k) {
    CUgraphNode node, inside;
    CUgraphNodeParams asked = conditional_node(handles[k], IF, 1);
    RIGHT(cu.cuGraphAddNode(&node, graph, after, NULL, count, &asked));
    RIGHT(cu.cuGraphAddEmptyNode(&inside, asked.conditional.phGraph_out[0], NULL, 0));
  }
  return exec_of();
}

static CUgraphExec fork_of(CUgraphConditionalHandle first, unsigned one, CUgraphConditionalHandle second,
                           unsigned other) {
  const CUgraphNode nodes[] = {add_kernel(NULL, 1, met, first, one), add_kernel(NULL, 1, met, second, other)};
  return finish(nodes, BRANCHES);
}

static void start(CUgraphExec exec, uint64_t seed) {
  memset(met, 0, 3 * sizeof *met);
  sim->set_seed(seed);
  RIGHT(cu.cuGraphLaunch(exec, stream));
}

/* How often one of the kernels ended while another was under way. */
static unsigned overlaps(CUgraphExec exec, uint64_t seed) {
  start(exec, seed);
  wait_for(stream);
  assert_int_equal(met[0], BRANCHES);
  assert_int_equal(met[1], BRANCHES);
  return met[2];
}

#define BRANCHES_TEST(test) TEST_WITH(test, begin_branches, end)

BRANCHES_TEST(branches_overlap) {
  CUgraphExec exec = fork_of(handles[0], 1, handles[1], 0);
  unsigned with = 0, seen[SEEDS];
  for (uint64_t seed = 0; seed < SEEDS; ++seed) with += (seen[seed] = overlaps(exec, seed)) > 0;
  assert_in_range(with, SEEDS / 4, SEEDS - 1); /* it is left to chance, */
  for (uint64_t seed = 0; seed < SEEDS; ++seed) assert_int_equal(overlaps(exec, seed), seen[seed]); /* by the seed */
  sim->answer_no("overlap");
  for (uint64_t seed = 0; seed < SEEDS; ++seed) assert_int_equal(overlaps(exec, seed), 0);
}

/* The overlaps of a launch don't depend on other streams' work, or its time. */
BRANCHES_TEST(other_streams_change_nothing) {
  CUstream beside;
  CUdeviceptr memory;
  RIGHT(cu.cuStreamCreate(&beside, CU_STREAM_NON_BLOCKING));
  RIGHT(cu.cuMemAlloc(&memory, 64));
  CUgraphExec exec = fork_of(handles[0], 1, handles[1], 0);
  for (uint64_t seed = 0; seed < SEEDS; ++seed) {
    const unsigned alone = overlaps(exec, seed);
    memset(met, 0, 3 * sizeof *met);
    sim->set_seed(seed);
    RIGHT(cu.cuMemsetD8Async(memory, 0, 64, beside));
    wait_for(beside);
    run(exec);
    assert_int_equal(met[2], alone);
  }
  RIGHT(cu.cuMemFree(memory));
  RIGHT(cu.cuStreamDestroy(beside));
}

BRANCHES_TEST(ordered_kernels_do_not_overlap) {
  CUgraphNode node = add_kernel(add_kernel(NULL, 1, met, handles[0], 1), 1, met, handles[1], 1);
  CUgraphExec exec = finish(&node, 1);
  for (uint64_t seed = 0; seed < SEEDS; ++seed) assert_int_equal(overlaps(exec, seed), 0);
}

BRANCHES_TEST(different_values_are_found) {
  CUgraphExec exec = fork_of(handles[0], 1, handles[0], 0);
  for (uint64_t seed = 0; seed < SEEDS; ++seed) {
    overlaps(exec, seed);
    expect_broken("unordered");
  }
}

/* Thread 0 of each block sets it. */
BRANCHES_TEST(two_threads_are_found) {
  const CUgraphNode nodes[] = {add_kernel(NULL, 2, met, handles[0], 1), add_kernel(NULL, 1, met, handles[1], 1)};
  CUgraphExec exec = finish(nodes, BRANCHES);
  for (uint64_t seed = 0; seed < SEEDS; ++seed) {
    start(exec, seed);
    wait_for(stream);
    expect_broken("threads");
  }
}

/* Kernels beside one that touches freed memory are given up with it. */
BRANCHES_TEST(failure_ends_them_all) {
  for (uint64_t seed = 0; seed < SEEDS; ++seed) {
    CUdeviceptr freed;
    RIGHT(cu.cuMemAlloc(&freed, 64));
    RIGHT(cu.cuMemFree(freed));
    const CUgraphNode nodes[] = {add_kernel(NULL, 1, met, handles[0], 1),
                                 add_kernel(NULL, 1, POINTER(void, freed), handles[1], 1)};
    start(finish(nodes, BRANCHES), seed);
    BREAKS(CUDA_ERROR_ILLEGAL_ADDRESS, "memory", cu.cuStreamSynchronize(stream));
    end(state); /* a context that failed */
    begin_branches(state);
  }
  branches_overlap(state);
}

int main(void) { return run_all_tests_with(load_driver, NULL); }
