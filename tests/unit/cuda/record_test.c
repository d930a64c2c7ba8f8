/* What library calls recorded, found in graphs that a program makes itself; kinds of nodes that no capture of the
 * simulated driver comes to are put in by another cuGraphNodeGetType. */
#include "cuda/record.h"
#include "base/memory.h"
#include "unit/support/runtime_kernels.h"
#include "user_driver.h"

static int on_host;
static void count_on_host(void *data) { ++*(int *)data; }

/* Kinds of nodes that no capture of these tests comes to. */
static const struct { CUgraphNodeType type; bool nowhere; const char *what; } kinds[] = {
    {CU_GRAPH_NODE_TYPE_CONDITIONAL, true, "a conditional node"},
    {CU_GRAPH_NODE_TYPE_MEM_ALLOC, true, "an allocation (give the library a workspace of its own)"},
    {CU_GRAPH_NODE_TYPE_MEM_FREE, true, "a release of memory (give the library a workspace of its own)"},
    {CU_GRAPH_NODE_TYPE_HOST, false, "a host function"},
    {CU_GRAPH_NODE_TYPE_WAIT_EVENT, false, "a wait for an event"},
    {CU_GRAPH_NODE_TYPE_EVENT_RECORD, false, "an event"},
    {(CUgraphNodeType)8, false, "a node that is none of a kernel, copy, fill or child graph"},
    {CU_GRAPH_NODE_TYPE_MEMCPY, false, NULL}, {CU_GRAPH_NODE_TYPE_MEMSET, false, NULL},
    {CU_GRAPH_NODE_TYPE_KERNEL, false, NULL}, {CU_GRAPH_NODE_TYPE_EMPTY, false, NULL}};
static CUgraphNodeType kind;
static CUresult (*get_kind)(CUgraphNode node, CUgraphNodeType *type);
static CUresult say_kind(CUgraphNode node, CUgraphNodeType *type) {
  const CUresult result = get_kind(node, type);
  if (*type == CU_GRAPH_NODE_TYPE_HOST) *type = kind;
  return result;
}

/* As of a library that puts a graph of its own on the stream. */
TEST_ON_CUDA(test_unfit_in_a_child) {
  const gki_cuda_driver *driver;
  CUcontext context;
  CUgraph inner, middle, outer;
  CUgraphNode node, child;
  const char *what;
  assert_ok(gki_cuda_driver_get(&driver));
  assert_ok(gk_cuda_context(device, &context, NULL));
  assert_int_equal(driver->cuCtxPushCurrent(context), CUDA_SUCCESS);
  assert_int_equal(driver->cuGraphCreate(&inner, 0), CUDA_SUCCESS);
  assert_int_equal(driver->cuGraphCreate(&middle, 0), CUDA_SUCCESS);
  assert_int_equal(driver->cuGraphCreate(&outer, 0), CUDA_SUCCESS);
  assert_int_equal(driver->cuGraphAddEmptyNode(&node, inner, NULL, 0), CUDA_SUCCESS);
  assert_int_equal(driver->cuGraphAddChildGraphNode(&child, outer, NULL, 0, inner), CUDA_SUCCESS);
  assert_int_equal(gki_cuda_find_unfit(driver, outer, true, &what), CUDA_SUCCESS);
  assert_null(what);
  const CUDA_HOST_NODE_PARAMS host = {count_on_host, &on_host};
  RIGHT(cu.cuGraphAddHostNode(&node, inner, NULL, 0, &host));
  assert_int_equal(driver->cuGraphAddChildGraphNode(&child, middle, NULL, 0, inner), CUDA_SUCCESS);
  assert_int_equal(driver->cuGraphAddChildGraphNode(&child, outer, NULL, 0, middle), CUDA_SUCCESS);
  assert_int_equal(gki_cuda_find_unfit(driver, outer, true, &what), CUDA_SUCCESS);
  assert_string_equal(what, "a host function");
  assert_int_equal(gki_cuda_find_unfit(driver, outer, false, &what), CUDA_SUCCESS);
  assert_null(what);
  for (size_t k = 0; k < GK_COUNT(kinds); ++k) /* of the innermost one */
    for (int in_body = 0; in_body < 2; ++in_body) {
      gki_cuda_driver odd = *driver;
      odd.cuGraphNodeGetType = say_kind;
      kind = kinds[k].type;
      get_kind = driver->cuGraphNodeGetType;
      assert_int_equal(gki_cuda_find_unfit(&odd, outer, in_body, &what), CUDA_SUCCESS);
      const char *wanted = in_body || kinds[k].nowhere ? kinds[k].what : NULL;
      if (!what != !wanted || (what && strcmp(what, wanted) != 0)) fail_msg("kind %d: %s", (int)kind, what);
    }
  assert_int_equal(driver->cuGraphDestroy(inner), CUDA_SUCCESS);
  assert_int_equal(driver->cuGraphDestroy(middle), CUDA_SUCCESS);
  assert_int_equal(driver->cuGraphDestroy(outer), CUDA_SUCCESS);
  assert_int_equal(driver->cuCtxPopCurrent(NULL), CUDA_SUCCESS);
}

static bool stops_at(const void *data, CUgraphNode node) { return node == *(const CUgraphNode *)data; }

static CUgraphNode empty_behind(CUgraph graph, const CUgraphNode *before, size_t count) {
  CUgraphNode node;
  RIGHT(cu.cuGraphAddEmptyNode(&node, graph, before, count));
  return node;
}

/* Each node once, however many ways lead to it: each diamond in a row doubles their number. */
TEST_ON_CUDA(test_recorded_is_found_once) {
  enum { DIAMONDS = 8, INSIDE = 2, ALL = 1 + 3 * DIAMONDS + 1 + INSIDE };
  const gki_cuda_driver *driver;
  CUcontext context;
  CUgraph graph, inner;
  gki_cuda_found found = {0};
  assert_ok(gki_cuda_driver_get(&driver));
  assert_ok(gk_cuda_context(device, &context, NULL));
  RIGHT(cu.cuCtxPushCurrent(context));
  RIGHT(cu.cuGraphCreate(&graph, 0));
  RIGHT(cu.cuGraphCreate(&inner, 0));
  for (int k = 0; k < INSIDE; ++k) (void)empty_behind(inner, NULL, 0);
  const CUgraphNode outside = empty_behind(graph, NULL, 0), before = empty_behind(graph, &outside, 1);
  CUgraphNode last = empty_behind(graph, &before, 1), child;
  for (int k = 0; k < DIAMONDS; ++k) {
    const CUgraphNode sides[] = {empty_behind(graph, &last, 1), empty_behind(graph, &last, 1)};
    last = empty_behind(graph, sides, 2);
  }
  RIGHT(cu.cuGraphAddChildGraphNode(&child, graph, &last, 1, inner));
  const CUgraphNode ends[] = {child, last, child};
  RIGHT(gki_cuda_find_recorded(driver, ends, GK_COUNT(ends), stops_at, &before, &found));
  assert_int_equal(found.count, ALL);
  for (size_t k = 0; k < found.count; ++k) {
    assert_ptr_not_equal(found.nodes[k], before);
    assert_ptr_not_equal(found.nodes[k], outside);
  }
  gk_host_free(found.nodes);
  CUgraph its;
  CUgraphNode inside[INSIDE];
  size_t count = INSIDE;
  RIGHT(cu.cuGraphChildGraphNodeGetGraph(child, &its));
  RIGHT(cu.cuGraphGetNodes(its, inside, &count));
  found = (gki_cuda_found){0};
  RIGHT(gki_cuda_find_recorded(driver, &child, 1, stops_at, &inside[0], &found)); /* in there, too */
  assert_int_equal(found.count, ALL + 2 - 1); /* and now to the beginning */
  gk_host_free(found.nodes);
  RIGHT(cu.cuGraphDestroy(inner));
  RIGHT(cu.cuGraphDestroy(graph));
  RIGHT(cu.cuCtxPopCurrent(NULL));
}

int main(int count, char **words) {
  (void)count;
  with_simgpu(words);
  return run_all_tests_with(find_user_driver, NULL);
}
