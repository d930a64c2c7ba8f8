/* What gk_dump says of a graph on CUDA: golden files (--update-golden writes them anew), JSON and DOT that others read,
 * and as many nodes as the driver was asked for. */
#include "runtime/device.h"
#include "cuda/device.h"
#include "graphs.h"
#include "unit/support/golden.h"
#include "unit/support/runtime_kernels.h"

enum { NONE, X, Y, N, A, LEFT, FLAG };
enum { HERE = 5 };
static const gk_slot_desc slots[] = {GK_BUFFER(X, int), GK_BUFFER(Y, int), GK_DEFAULT(N, int, 1), GK_DEFAULT(A, int, 1),
                                     GK_BUFFER(LEFT, int), GK_BUFFER(FLAG, int)};

CALLED(put_nothing) { return GK_OK; }

#define THREE GK_FILL(X, N, 1), GK_FILL(X, N, 2), GK_FILL(X, N, 3)
LIST(list,
  /*  0 */ GK_RUN(add, N, X, A), {.op = GK_OP_FILL, .name = "a|{b} \"c\" <d>", .items = {N}, .args = {X}},
  /*  2 */ GK_DO_WHILE(LEFT), GK_RUN(decrease, GK_ONE, LEFT),
  /*  4 */   GK_IF(FLAG), GK_CALL(put_nothing, X), GK_FILL(X, N, 1), GK_ELSE, GK_RUN(add, N, X, A), GK_END,
  /* 10 */   GK_SWITCH(FLAG), GK_CASE, GK_FILL(X, N, 3), GK_END, GK_CASE, GK_FILL(X, N, 4), GK_END, GK_END,
  /* 18 */ GK_END,
  /* 19 */ GK_PARALLEL, GK_SECTION, GK_RUN(add, N, X, A), GK_END, GK_SECTION, GK_FILL(Y, GK_ONE, 2), GK_END, GK_END,
  /* 27 */ GK_COPY(Y, X, N),
  /* 28 */ THREE, THREE, THREE,
  /* 37 */ GK_CHECKPOINT(HERE, FLAG), GK_RUN(add, N, X, A), GK_END,
  /* 40 */ GK_RUN_ALWAYS(add, N, X, A));

/* The part behind the plan's. */
static char *lowered(gk_graph *graph, const char *format) {
  char *text = gk_dump(NULL, graph, format);
  if (!text) fail_msg("%s", gk_error());
  const char *mark = strcmp(format, "text") == 0 ? "\non cuda:\n" : strcmp(format, "json") == 0 ? "\"lowered\": " : "";
  const char *at = strstr(text, mark);
  if (!at) fail_msg("no \"%s\" in:\n%s", mark, text);
  char *part = strdup(at + strlen(mark));
  if (strcmp(format, "json") == 0) part[strlen(part) - 1] = 0; /* the brace around both */
  gk_free_text(text);
  return part;
}

static void compare(gk_graph *graph, const char *format, const char *name) {
  char *part = lowered(graph, format);
  compare_golden(name, part);
  free(part);
}

static gk_graph *list_graph(gk_device *device, uint32_t bits) {
  return NEW_GRAPH(device, &list, bits, {X, int_on(device, 0)}, {Y, int_on(device, 0)}, {LEFT, int_on(device, 0)},
                   {FLAG, int_on(device, 0)});
}

static void run_from(gk_device *device, gk_graph *graph, int32_t label) {
  set_int(device, gk_bound(graph, LEFT), 1);
  run_to_end(graph, label);
}

TEST_ON_CUDA(what_the_device_decides) {
  gk_graph *graph = list_graph(device, 0);
  run_from(device, graph, 0); /* by then the slots of library calls are known */
  compare(graph, "text", "cuda_outline.txt");
  run_from(device, graph, HERE);
  compare(graph, "text", "cuda_outline_resumed.txt");
  compare(graph, "dot", "cuda_outline.dot");
  compare(graph, "json", "cuda_outline.json");
}

TEST_ON_CUDA(what_the_host_decides) {
  gk_graph *graph = list_graph(device, GK_HOST_GATED);
  run_from(device, graph, 0);
  compare(graph, "text", "cuda_outline_gated.txt");
  compare(graph, "json", "cuda_outline_gated.json");
  char *dot = lowered(graph, "dot");
  assert_int_equal(strncmp(dot, "digraph", 7), 0);
  free(dot);
}

static void expect_said(gk_graph *graph, const char *format, const char *const *words, size_t count) {
  char *text = gk_dump(NULL, graph, format);
  assert_non_null(text);
  for (size_t k = 0; k < count; ++k)
    if (!strstr(text, words[k])) fail_msg("no \"%s\" in:\n%s", words[k], text);
  gk_free_text(text);
}
#define EXPECT_SAID_IN(graph, format, ...) \
  expect_said(graph, format, (const char *const[]){__VA_ARGS__}, GK_COUNT(((const char *const[]){__VA_ARGS__})))
#define EXPECT_SAID(graph, ...) EXPECT_SAID_IN(graph, "text", __VA_ARGS__)

/* With handwritten code: also how the graph learns where to resume. */
TEST_ON_CUDA(code_by_hand_and_targets) {
  static const gk_param params[] = {{"x", "int", 4, 4, GK_PTR, GK_ACCESS_INOUT}};
  static const gk_code code = {.text = "extern \"C\" __global__ void hand(int *x) { *x = 1; }", .block = {8, 4, 2}};
  static const gk_kernel hand = {.name = "hand", .params = params, .param_count = 1, .cuda = &code};
  static const gk_task few[] = {GK_RUN(hand, N, X), GK_CHECKPOINT(HERE, FLAG), GK_RUN(hand, N, X), GK_END};
  static const gk_list one = {GK_ABI, "one", few, 1, slots, GK_COUNT(slots)}, two = GK_LIST(two, few, slots);
  EXPECT_SAID(new_graph(device, &one, 0), "\ncode by hand: 1 node, updated when",
              ": hand, blocks of 64 threads, as many as its items need\n");
  gk_graph *graph = new_graph(device, &two, 0);
  EXPECT_SAID(graph, "\ncode by hand: 2 nodes, updated when", "where to resume: by an update of the first kernel\n");
  EXPECT_SAID_IN(graph, "json", "\"by_hand\": 2, \"calls\": false, \"target\": \"an update of the first kernel\", ");
  graph = new_graph(device, &two, GK_HOST_GATED);
  EXPECT_SAID(graph, "\ncode by hand: 2 nodes, updated when");
  EXPECT_SAID_IN(graph, "json", "\"by_hand\": 2, \"calls\": false, \"target\": null, ");
  LIST(resumed, GK_FILL(X, N, 1), GK_CHECKPOINT(HERE, FLAG), GK_FILL(X, N, 1), GK_END);
  ((gki_cuda_device *)device->state)->caps.quirks |= GKI_CUDA_TARGET_BY_COPY;
  EXPECT_SAID(new_graph(device, &resumed, 0), "where to resume: by a copy\n");
}

/* Where the graph that resumes has the same nodes there is only one graph. */
TEST_ON_CUDA(one_for_all_launches) {
  LIST(yielding, GK_RUN(add, N, X, A), GK_CHECKPOINT(HERE, FLAG), GK_END);
  static const struct { const char *format, *all; } forms[] = {
    {"text", "\nall launches: 1 node of tasks, "},
    {"json", "[{\"of\": \"all launches\", \"made\": true, \"tasks\": 1, "},
    {"dot", "label=\"all launches\";\ng0n0 "}};
  gk_graph *graph = new_graph(device, &yielding, 0);
  for (size_t k = 0; k < GK_COUNT(forms); ++k) {
    char *text = lowered(graph, forms[k].format);
    if (!strstr(text, forms[k].all)) fail_msg("no \"%s\" in:\n%s", forms[k].all, text);
    if (strstr(text, "launches that resume")) fail_msg("another graph in:\n%s", text);
    free(text);
  }
}

/* Kernels and conditional nodes, as many as the driver was given. */
TEST_ON_CUDA(counts_are_the_drivers) {
  LIST(few, GK_RUN(add, N, X, A), GK_DO_WHILE(LEFT), GK_RUN(decrease, GK_ONE, LEFT), GK_IF(FLAG), GK_FILL(X, N, 1),
       GK_END, GK_END, GK_COPY(Y, X, N));
  sim->mark();
  unsigned tasks_said = 0, controls = 0, conditionals = 0, bodies = 0;
  char *text = lowered(new_graph(device, &few, 0), "text");
  const char *said = strstr(text, "all launches: ");
  if (!said || sscanf(said, "all launches: %u nodes of tasks, %u control kernels, %u conditional nodes with %u bodies",
                      &tasks_said, &controls, &conditionals, &bodies) != 4)
    fail_msg("%s", text);
  assert_int_equal(tasks_said, 4);
  assert_int_equal(tasks_said + controls, sim->calls("cuGraphAddKernelNode"));
  assert_int_equal(conditionals, sim->calls("cuGraphAddNode"));
  assert_int_equal(bodies, conditionals);
  free(text);
}

TEST(json_and_dot_are_valid) {
  if (system("command -v python3 >/dev/null") == 0)
    assert_int_equal(system("python3 -c 'import json, sys\nfor path in sys.argv[1:]: json.load(open(path))' "
                            "tests/golden/cuda_outline.json tests/golden/cuda_outline_gated.json"), 0);
  if (system("command -v dot >/dev/null") == 0)
    assert_int_equal(system("dot -Tsvg tests/golden/cuda_outline.dot 2>&1 >/dev/null | (! grep .)"), 0);
}

int main(int count, char **words) {
  read_golden_wish(count, words);
  return run_on_simgpu(words);
}
