/* Kernels of parallel branches that are under way at once: those of gk's probe, with the driver that runs code. */
#define SIM_LIBRARY "build/simgpu/libcuda.so.1"
#include "sim_world.h"

/* The code comes from elsewhere. */
static const char image[] = ".version 8.4\n.target sm_52\n.address_size 64\n"
                            ".visible .entry gki_set_beside()\n{\nret;\n}\n";

enum { BRANCHES = 2, SEEDS = 20 };
static CUgraph graph;
static uint32_t *met; /* pinned: begun, ended, and how often one ended while others were under way */
static CUgraphConditionalHandle handles[BRANCHES];

static int begin(void **state) {
  (void)state;
  sim->set_version(13000);
  sim->answer_no(NULL);
  sim->allow(NULL);
  sim->mark();
  RIGHT(cu.cuDevicePrimaryCtxRetain(&context, 0));
  RIGHT(cu.cuCtxPushCurrent(context));
  RIGHT(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  RIGHT(cu.cuModuleLoadDataEx(&module, image, 0, NULL, NULL));
  RIGHT(cu.cuMemHostAlloc((void **)&met, 3 * sizeof *met, GKI_CU_MEMHOSTALLOC_DEVICEMAP));
  RIGHT(cu.cuGraphCreate(&graph, 0));
  return 0;
}

static int end(void **state) {
  cu.cuGraphDestroy(graph);
  cu.cuMemFreeHost(met);
  return close_context(state);
}

static CUgraphNode add_kernel(CUgraphNode after, unsigned blocks, CUgraphConditionalHandle handle, unsigned value) {
  unsigned times = 4;
  void *parameters[] = {&met, &handle, &value, &times};
  CUgraphNodeParams asked = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
  asked.kernel = (CUDA_KERNEL_NODE_PARAMS_v3){.func = kernel("gki_set_beside"), .gridDimX = blocks, .gridDimY = 1,
                                              .gridDimZ = 1, .blockDimX = 32, .blockDimY = 1, .blockDimZ = 1,
                                              .kernelParams = parameters};
  CUgraphNode node = NULL;
  RIGHT(cu.cuGraphAddNode(&node, graph, after ? &after : NULL, NULL, after ? 1 : 0, &asked));
  return node;
}

static void add_handles(void) {
  for (int k = 0; k < BRANCHES; ++k)
    RIGHT(cu.cuGraphConditionalHandleCreate(&handles[k], graph, context, 0, GKI_CU_GRAPH_COND_ASSIGN_DEFAULT));
}

/* Behind all of those nodes. */
static CUgraphExec finish(const CUgraphNode *after, size_t count) {
  for (int k = 0; k < BRANCHES; ++k) {
    CUgraphNode node, inside;
    CUgraphNodeParams asked = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
    asked.conditional = (CUDA_CONDITIONAL_NODE_PARAMS){.handle = handles[k], .type = CU_GRAPH_COND_TYPE_IF, .size = 1,
                                                       .ctx = context};
    RIGHT(cu.cuGraphAddNode(&node, graph, after, NULL, count, &asked));
    RIGHT(cu.cuGraphAddEmptyNode(&inside, asked.conditional.phGraph_out[0], NULL, 0));
  }
  CUDA_GRAPH_INSTANTIATE_PARAMS asked = {0};
  CUgraphExec exec;
  RIGHT(cu.cuGraphInstantiateWithParams(&exec, graph, &asked));
  return exec;
}

/* How often one of the kernels ended while another was under way. */
static unsigned overlaps(CUgraphExec exec, uint64_t seed) {
  memset(met, 0, 3 * sizeof *met);
  sim->set_seed(seed);
  RIGHT(cu.cuGraphLaunch(exec, stream));
  RIGHT(cu.cuStreamSynchronize(stream));
  assert_int_equal(met[0], BRANCHES);
  assert_int_equal(met[1], BRANCHES);
  return met[2];
}

static CUgraphExec fork_of(CUgraphConditionalHandle first, unsigned one, CUgraphConditionalHandle second,
                           unsigned other) {
  const CUgraphNode nodes[BRANCHES] = {add_kernel(NULL, 1, first, one), add_kernel(NULL, 1, second, other)};
  return finish(nodes, BRANCHES);
}

#define CASE(test) TEST_WITH(test, begin, end)

CASE(branches_overlap) {
  add_handles();
  CUgraphExec exec = fork_of(handles[0], 1, handles[1], 0);
  unsigned with = 0, seen[SEEDS];
  for (uint64_t seed = 0; seed < SEEDS; ++seed) with += (seen[seed] = overlaps(exec, seed)) > 0;
  assert_in_range(with, SEEDS / 4, SEEDS - 1); /* it is left to chance, */
  for (uint64_t seed = 0; seed < SEEDS; ++seed) assert_int_equal(overlaps(exec, seed), seen[seed]); /* by the seed */
  sim->answer_no("overlap");
  for (uint64_t seed = 0; seed < SEEDS; ++seed) assert_int_equal(overlaps(exec, seed), 0);
  RIGHT(cu.cuGraphExecDestroy(exec));
}

/* How a launch goes doesn't depend on what other streams do, or when. */
CASE(other_streams_change_nothing) {
  CUstream beside;
  CUdeviceptr memory;
  RIGHT(cu.cuStreamCreate(&beside, CU_STREAM_NON_BLOCKING));
  RIGHT(cu.cuMemAlloc(&memory, 64));
  add_handles();
  CUgraphExec exec = fork_of(handles[0], 1, handles[1], 0);
  for (uint64_t seed = 0; seed < SEEDS; ++seed) {
    const unsigned alone = overlaps(exec, seed);
    memset(met, 0, 3 * sizeof *met);
    sim->set_seed(seed);
    RIGHT(cu.cuMemsetD8Async(memory, 0, 64, beside));
    RIGHT(cu.cuStreamSynchronize(beside));
    RIGHT(cu.cuGraphLaunch(exec, stream));
    RIGHT(cu.cuStreamSynchronize(stream));
    assert_int_equal(met[2], alone);
  }
  RIGHT(cu.cuGraphExecDestroy(exec));
  RIGHT(cu.cuMemFree(memory));
  RIGHT(cu.cuStreamDestroy(beside));
}

CASE(what_is_ordered_does_not) {
  add_handles();
  CUgraphNode node = add_kernel(add_kernel(NULL, 1, handles[0], 1), 1, handles[1], 1);
  CUgraphExec exec = finish(&node, 1);
  for (uint64_t seed = 0; seed < SEEDS; ++seed) assert_int_equal(overlaps(exec, seed), 0);
  RIGHT(cu.cuGraphExecDestroy(exec));
}

CASE(different_values_are_found) {
  add_handles();
  CUgraphExec exec = fork_of(handles[0], 1, handles[0], 0);
  for (uint64_t seed = 0; seed < SEEDS; ++seed) {
    overlaps(exec, seed);
    expect_broken("unordered");
  }
  RIGHT(cu.cuGraphExecDestroy(exec));
}

/* Thread 0 of each block sets it. */
CASE(two_threads_are_found) {
  add_handles();
  const CUgraphNode nodes[BRANCHES] = {add_kernel(NULL, 2, handles[0], 1), add_kernel(NULL, 1, handles[1], 1)};
  CUgraphExec exec = finish(nodes, BRANCHES);
  for (uint64_t seed = 0; seed < SEEDS; ++seed) {
    sim->set_seed(seed);
    RIGHT(cu.cuGraphLaunch(exec, stream));
    RIGHT(cu.cuStreamSynchronize(stream));
    expect_broken("threads");
  }
  RIGHT(cu.cuGraphExecDestroy(exec));
}

/* What is under way beside a kernel that touches what it mustn't is given up with it. */
CASE(failure_ends_them_all) {
  for (uint64_t seed = 0; seed < SEEDS; ++seed) {
    uint32_t *right = met;
    CUdeviceptr freed;
    add_handles();
    RIGHT(cu.cuMemAlloc(&freed, 64));
    RIGHT(cu.cuMemFree(freed));
    CUgraphNode nodes[BRANCHES] = {add_kernel(NULL, 1, handles[0], 1), NULL};
    met = (uint32_t *)(uintptr_t)freed;
    nodes[1] = add_kernel(NULL, 1, handles[1], 1);
    met = right;
    CUgraphExec exec = finish(nodes, BRANCHES);
    sim->set_seed(seed);
    RIGHT(cu.cuGraphLaunch(exec, stream));
    WRONG(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuStreamSynchronize(stream));
    expect_broken("memory");
    (void)cu.cuGraphExecDestroy(exec);
    end(state); /* a context that failed */
    begin(state);
  }
  branches_overlap(state);
}

int main(void) { return run_all_tests_with(load_driver, NULL); }
