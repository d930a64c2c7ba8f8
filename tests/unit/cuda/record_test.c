/* How library calls are recorded, and nodes that they recorded, found in graphs that a program makes itself. Another
 * cuGraphNodeGetType adds kinds of nodes that no capture of the simulated driver has. */
#include "cuda/record.h"
#include "base/memory.h"
#include "odd.h"

static int on_host;
static void count_on_host(void *data) { ++*(int *)data; }

/* Kinds of nodes that no capture of these tests has. */
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
static CUresult say_kind(CUgraphNode node, CUgraphNodeType *type) {
  const CUresult result = cu.cuGraphNodeGetType(node, type);
  if (*type == CU_GRAPH_NODE_TYPE_HOST) *type = kind;
  return result;
}

/* What a library does that puts a graph of its own on the stream. */
TEST_ON_CUDA(test_unfit_in_a_child) {
  const gki_cuda_driver *driver;
  const char *what;
  assert_ok(gki_cuda_driver_get(&driver));
  (void)enter_context(device);
  CUgraph inner = new_cu_graph(), middle = new_cu_graph(), outer = new_cu_graph();
  CUgraphNode node, child;
  RIGHT(cu.cuGraphAddEmptyNode(&node, inner, NULL, 0));
  RIGHT(cu.cuGraphAddChildGraphNode(&child, outer, NULL, 0, inner));
  RIGHT(gki_cuda_find_unfit(driver, outer, true, &what));
  assert_null(what);
  const CUDA_HOST_NODE_PARAMS host = {count_on_host, &on_host};
  RIGHT(cu.cuGraphAddHostNode(&node, inner, NULL, 0, &host));
  RIGHT(cu.cuGraphAddChildGraphNode(&child, middle, NULL, 0, inner));
  RIGHT(cu.cuGraphAddChildGraphNode(&child, outer, NULL, 0, middle));
  RIGHT(gki_cuda_find_unfit(driver, outer, true, &what));
  assert_string_equal(what, "a host function");
  RIGHT(gki_cuda_find_unfit(driver, outer, false, &what));
  assert_null(what);
  gki_cuda_driver other = *driver;
  other.cuGraphNodeGetType = say_kind;
  for (size_t k = 0; k < GK_COUNT(kinds); ++k) /* of the innermost one */
    for (int in_body = 0; in_body < 2; ++in_body) {
      kind = kinds[k].type;
      RIGHT(gki_cuda_find_unfit(&other, outer, in_body, &what));
      const char *wanted = in_body || kinds[k].nowhere ? kinds[k].what : NULL;
      if (!what != !wanted || (what && strcmp(what, wanted) != 0)) fail_msg("kind %d: %s", (int)kind, what);
    }
}

static bool stops_at(const void *data, CUgraphNode node) { return node == *(const CUgraphNode *)data; }

static CUgraphNode empty_behind(CUgraph graph, const CUgraphNode *before, size_t count) {
  CUgraphNode node;
  RIGHT(cu.cuGraphAddEmptyNode(&node, graph, before, count));
  return node;
}

/* Each node is visited once, though many paths lead to it: each diamond in a row doubles their number. */
TEST_ON_CUDA(test_recorded_is_found_once) {
  enum { DIAMONDS = 8, INSIDE = 2, ALL = 1 + 3 * DIAMONDS + 1 + INSIDE };
  const gki_cuda_driver *driver;
  gki_cuda_found found = {0};
  assert_ok(gki_cuda_driver_get(&driver));
  (void)enter_context(device);
  CUgraph graph = new_cu_graph(), inner = new_cu_graph();
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
  RIGHT(gki_cuda_find_recorded(driver, &child, 1, stops_at, &inside[0], &found)); /* there, too */
  assert_int_equal(found.count, ALL + 2 - 1); /* and now at the beginning */
  gk_host_free(found.nodes);
}

/* gk's streams don't wait for the default stream. Captures of other code forbid calls to other threads. */
static int streams, captures;
static void expect_flags(int *count, unsigned flags, unsigned wanted) {
  ++*count;
  expect(flags == wanted);
}
BEFORE(create_stream, cuStreamCreate, (CUstream *stream, unsigned int flags), (stream, flags),
       expect_flags(&streams, flags, CU_STREAM_NON_BLOCKING))
BEFORE(begin_capture, cuStreamBeginCapture, (CUstream stream, CUstreamCaptureMode mode), (stream, mode),
       expect_flags(&captures, mode, CU_STREAM_CAPTURE_MODE_RELAXED))
BEFORE(begin_capture_into, cuStreamBeginCaptureToGraph,
       (CUstream stream, CUgraph graph, const CUgraphNode *before, const CUgraphEdgeData *edges, size_t count,
        CUstreamCaptureMode mode), (stream, graph, before, edges, count, mode),
       expect_flags(&captures, mode, CU_STREAM_CAPTURE_MODE_RELAXED))

static CUgraphNodeType odd_type;
static CUresult say_type(CUgraphNode node, CUgraphNodeType *type) {
  const CUresult result = right->cuGraphNodeGetType(node, type);
  if (result == CUDA_SUCCESS) *type = odd_type;
  return result;
}

LIST(nothing, GK_CALL(do_nothing, A));
LIST(filling, GK_CALL(fill_bytes, X, BYTE));

ODD_IN_MODES(test_captures_are_relaxed) {
  int *x = int_on(device, 0);
  for (int into_whole = 0; into_whole < 2; ++into_whole) {
    streams = captures = 0;
    odd.cuStreamCreate = create_stream;
    odd.cuStreamBeginCapture = begin_capture;
    odd.cuStreamBeginCaptureToGraph = begin_capture_into;
    odd_type = CU_GRAPH_NODE_TYPE_CONDITIONAL; /* as if it had recorded a node that child graphs can't hold */
    if (into_whole) odd.cuGraphNodeGetType = say_type;
    run_to_end(NEW_GRAPH(device, into_whole ? &filling : &nothing, mode_bits, {X, x}), 0);
    assert_int_equal(streams, 1);
    assert_int_equal(captures, 1 + into_whole);
    odd = *right;
  }
  assert_int_equal(int_at(device, x), 0x03030303);
}

/* Drivers before 12.3 can't record into a graph that exists. */
ODD(test_no_capture_into_a_graph) {
  gk_graph *graph = NEW_GRAPH(device, &filling, GK_HOST_GATED, {X, int_on(device, 0)});
  odd_type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
  odd.cuGraphNodeGetType = say_type;
  odd.cuStreamBeginCaptureToGraph = NULL;
  assert_fails(GK_ERROR_UNSUPPORTED, "task 0 (fill_bytes) recorded an allocation (give the library a workspace of its "
               "own), which drivers before CUDA 12.3 can't put into a larger graph", waited_for(graph, 0));
}

int main(UNUSED int count, char **words) { return run_on_simgpu(words); }
