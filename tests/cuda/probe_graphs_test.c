/* The graphs of the probe's questions: all nodes, settings and the counts that mean yes, as golden text
 * (GK_UPDATE_GOLDEN=1 writes it anew). On a right driver a question that lost half of its content is still answered
 * with yes, so only this test shows that. */
#include "cuda/probe_graphs.h"
#include "unit/support/golden.h"

enum { MEMORY = 1 << 20, LIST_KERNEL = 1, BESIDE_KERNEL, CONTEXT, FIRST_NODE = 1000, MOST_BODIES = 512 };
static char text[1 << 17];
static size_t length;
static uintptr_t graph_count, node_count, handle_count;
static gki_probe_memory memory;

__attribute__((format(printf, 1, 2)))
static void say(const char *format, ...) {
  va_list args;
  va_start(args, format);
  length += (size_t)vsnprintf(text + length, sizeof text - length, format, args);
  va_end(args);
  assert_true(length < sizeof text);
}

static CUresult create(CUgraph *made, unsigned int flags) {
  assert_int_equal(flags, 0);
  *made = (CUgraph)++graph_count;
  return CUDA_SUCCESS;
}

static CUresult create_handle(CUgraphConditionalHandle *made, CUgraph graph, CUcontext context, unsigned int initial,
                              unsigned int flags) {
  assert_int_equal((uintptr_t)graph, 1); /* the whole one */
  assert_int_equal((uintptr_t)context, CONTEXT);
  assert_int_equal(flags, GKI_CU_GRAPH_COND_ASSIGN_DEFAULT);
  *made = ++handle_count;
  say("  handle %d: %u\n", (int)handle_count, initial);
  return CUDA_SUCCESS;
}

static uint32_t counter_of(CUdeviceptr at) {
  return (uint32_t)(at - MEMORY - offsetof(gki_probe_memory, counters)) / (uint32_t)sizeof(uint32_t);
}

static void say_kernel(CUfunction function, void **values) {
  if ((uintptr_t)function == BESIDE_KERNEL) {
    say("beside: counter %u, handle %d to %u, %u times", counter_of(*(CUdeviceptr *)values[0]),
        (int)*(uint64_t *)values[1], *(uint32_t *)values[2], *(uint32_t *)values[3]);
    return;
  }
  const uint32_t period = *(uint32_t *)values[1], count = *(uint32_t *)values[3];
  say("kernel: counter %u", counter_of(*(CUdeviceptr *)values[0]));
  if (period) say(" modulo %u", period);
  const size_t first = (*(CUdeviceptr *)values[2] - MEMORY) / sizeof *memory.settings;
  for (size_t k = first; k < first + count; ++k) {
    const gki_cuda_setting *set = &memory.settings[k];
    if (set->run == GKI_CUDA_NONE) say(", %d to %d", (int)set->handle, (int)set->value);
    else say(", in %u %d to %d", set->run, (int)set->handle, (int)set->value);
  }
}

static void say_conditional(CUDA_CONDITIONAL_NODE_PARAMS *asked) {
  static CUgraph bodies[MOST_BODIES];
  static const char *const types[] = {"IF", "WHILE", "SWITCH"};
  assert_int_equal((uintptr_t)asked->ctx, CONTEXT);
  assert_true(graph_count + asked->size < MOST_BODIES);
  asked->phGraph_out = bodies + graph_count;
  say("%s by handle %d:", types[asked->type], (int)asked->handle);
  for (unsigned k = 0; k < asked->size; ++k) {
    bodies[graph_count] = (CUgraph)(graph_count + 1);
    say(" body %d", (int)++graph_count);
  }
}

static CUresult add(CUgraphNode *made, CUgraph into, const CUgraphNode *after, const CUgraphEdgeData *edges,
                    size_t count, CUgraphNodeParams *asked) {
  assert_null(edges);
  *made = (CUgraphNode)(FIRST_NODE + ++node_count);
  say("  node %d in %d", (int)node_count, (int)(uintptr_t)into);
  for (size_t k = 0; k < count; ++k) say("%s %d", k ? "" : " behind", (int)((uintptr_t)after[k] - FIRST_NODE));
  say(": ");
  if (asked->type == CU_GRAPH_NODE_TYPE_CONDITIONAL) say_conditional(&asked->conditional);
  else say_kernel(asked->kernel.func, asked->kernel.kernelParams);
  say("\n");
  return CUDA_SUCCESS;
}

static CUresult set_node(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams *asked) {
  (void)exec;
  say("  then node %d: ", (int)((uintptr_t)node - FIRST_NODE));
  say_kernel(asked->kernel.func, asked->kernel.kernelParams);
  say("\n");
  return CUDA_SUCCESS;
}

static void say_graph(const gki_probe_graph *graph) {
  static const gki_cuda_driver driver = {.cuGraphCreate = create, .cuGraphConditionalHandleCreate = create_handle,
                                         .cuGraphAddNode = add, .cuGraphExecNodeSetParams = set_node};
  gki_probe_trial t = {.driver = &driver, .context = (CUcontext)CONTEXT, .set_list = (CUfunction)LIST_KERNEL,
                       .set_beside = (CUfunction)BESIDE_KERNEL, .memory = MEMORY, .settings = memory.settings};
  graph_count = node_count = handle_count = 0;
  say("%s, from %d on, %s, unless %#x\n", graph->name, graph->since, graph->is_vital ? "vital" : "not vital",
      graph->unless);
  assert_int_equal(driver.cuGraphCreate(&t.graph, 0), CUDA_SUCCESS);
  graph->build(&t);
  gki_probe_update(&t, NULL);
  for (uint32_t k = 0; k < t.expected_count; ++k)
    say("  %s: counter %u is %u, then %u\n", gki_cuda_questions[t.expected[k].question].name, t.expected[k].counter,
        t.expected[k].first, t.expected[k].second);
  for (uint32_t k = 0; k < t.overlap_count; ++k)
    say("  %s: counter %u isn't 0\n", gki_cuda_questions[t.overlaps[k].question].name, t.overlaps[k].counter);
  assert_int_equal(t.result, CUDA_SUCCESS);
  assert_int_equal(t.node_count, node_count);
}

TEST(graphs_are_golden) {
  for (size_t k = 0; k < GKI_CUDA_PROBE_GRAPHS; ++k) say_graph(&gki_probe_graphs[k]);
  compare_golden("probe_graphs.txt", text);
}

/* The table in docs/cuda.md has all questions, in their order, with their description here. */
TEST(stands_in_the_docs) {
  static const struct { uint32_t quirk; const char *name; } ways[] = {
      {0, "nothing, gk doesn't rely on it"}, {GKI_CUDA_HOST_GATED, "host-gated"}, {GKI_CUDA_NO_SWITCH, "no SWITCH"},
      {GKI_CUDA_CHAIN_BRANCHES, "chain branches"}, {GKI_CUDA_TARGET_BY_COPY, "target by copy"},
      {GKI_CUDA_CODE_ON_HOST, "code by hand host-gated"},
      {GKI_CUDA_QUIRKS_PLAIN, "plain gates"}};
  static char docs[100000];
  FILE *file = fopen("docs/cuda.md", "r");
  assert_non_null(file);
  docs[fread(docs, 1, sizeof docs - 1, file)] = 0;
  fclose(file);
  const char *at = docs;
  for (int k = 0; k < GKI_CUDA_QUESTION_COUNT; ++k) {
    const gki_cuda_question_text *q = &gki_cuda_questions[k];
    char row[300];
    size_t w = 0;
    while (ways[w].quirk != q->quirk && !(ways[w].quirk & q->quirk)) ++w;
    snprintf(row, sizeof row, "\n| %s | %s | %s |\n", q->name, q->text, ways[w].name);
    const char *found = strstr(at, row);
    if (!found) fail_msg("docs/cuda.md lacks%s", row);
    at = found + 1;
  }
}

int main(int count, char **words) {
  read_golden_wish(count, words);
  return run_all_tests();
}
