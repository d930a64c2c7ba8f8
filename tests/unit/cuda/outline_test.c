/* What gk_dump says of a graph on CUDA: golden files (--update-golden writes them anew), JSON and DOT that others read,
 * and as many nodes as the driver was asked for. */
#include "runtime/device.h"
#include "cuda/device.h"
#include "world.h"
#include "unit/support/runtime_kernels.h"

enum { NONE, X, Y, N, A, LEFT, FLAG };
enum { HERE = 5 };
static const gk_slot_desc slots[] = {GK_BUFFER(X, int), GK_BUFFER(Y, int), GK_DEFAULT(N, int, 1), GK_DEFAULT(A, int, 1),
                                     GK_BUFFER(LEFT, int), GK_BUFFER(FLAG, int)};

static gk_result put_nothing(const gk_value *args, void *stream) {
  (void)args;
  (void)stream;
  return GK_OK;
}

#define THREE GK_FILL(X, N, 1), GK_FILL(X, N, 2), GK_FILL(X, N, 3)
static const gk_task tasks[] = {
  /*  0 */ GK_RUN(add, N, X, A), {.op = GK_OP_FILL, .name = "a|{b} \"c\" <d>", .items = {N}, .args = {X}},
  /*  2 */ GK_DO_WHILE(LEFT), GK_RUN(decrease, GK_ONE, LEFT),
  /*  4 */   GK_IF(FLAG), GK_CALL(put_nothing, X), GK_FILL(X, N, 1), GK_ELSE, GK_RUN(add, N, X, A), GK_END,
  /* 10 */   GK_SWITCH(FLAG), GK_CASE, GK_FILL(X, N, 3), GK_END, GK_CASE, GK_FILL(X, N, 4), GK_END, GK_END,
  /* 18 */ GK_END,
  /* 19 */ GK_PARALLEL, GK_SECTION, GK_RUN(add, N, X, A), GK_END, GK_SECTION, GK_FILL(Y, GK_ONE, 2), GK_END, GK_END,
  /* 27 */ GK_COPY(Y, X, N),
  /* 28 */ THREE, THREE, THREE,
  /* 37 */ GK_CHECKPOINT(HERE, FLAG), GK_RUN(add, N, X, A), GK_END,
  /* 40 */ GK_RUN_ALWAYS(add, N, X, A)};
static const gk_list list = GK_LIST(list, tasks, slots);

static bool update;

static char *read_file(const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file) return NULL;
  char *text = calloc(1, 1 << 20);
  text[fread(text, 1, (1 << 20) - 1, file)] = 0;
  fclose(file);
  return text;
}

static void compare_golden(const char *name, const char *text) {
  char path[200];
  snprintf(path, sizeof path, "tests/golden/%s", name);
  if (update) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    fclose(file);
    return;
  }
  char *golden = read_file(path);
  if (!golden) fail_msg("%s is missing; --update-golden writes it", path);
  if (strcmp(golden, text) != 0) fail_msg("%s says:\n%s\nbut now it is:\n%s", path, golden, text);
  free(golden);
}

/* What follows the plan's own. */
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

static void run_from(gk_device *device, gk_graph *graph, int32_t label) {
  static const gk_slot pointers[] = {X, Y, LEFT, FLAG};
  for (size_t k = 0; k < GK_COUNT(pointers); ++k)
    if (!gk_bound(graph, pointers[k])) assert_ok(gk_bind(graph, pointers[k], int_on(device, 0)));
  set_int(device, gk_bound(graph, LEFT), 1);
  assert_ok(gk_launch(graph, label));
  assert_ok(gk_wait(graph, NULL));
}

static void free_bound(gk_device *device, gk_graph *graph) {
  for (gk_slot slot = X; slot <= FLAG; ++slot)
    if (slot != N && slot != A) gk_free(device, gk_bound(graph, slot));
}

TEST_ON_CUDA(what_the_device_decides) {
  gk_graph *graph = graph_on(device, &list, 0);
  run_from(device, graph, 0); /* a library call's slots are known by then */
  compare(graph, "text", "cuda_outline.txt");
  run_from(device, graph, HERE);
  compare(graph, "text", "cuda_outline_resumed.txt");
  compare(graph, "dot", "cuda_outline.dot");
  compare(graph, "json", "cuda_outline.json");
  free_bound(device, graph);
  gk_graph_destroy(graph);
}

TEST_ON_CUDA(what_the_host_decides) {
  gk_graph *graph = graph_on(device, &list, GK_HOST_GATED);
  run_from(device, graph, 0);
  compare(graph, "text", "cuda_outline_gated.txt");
  compare(graph, "json", "cuda_outline_gated.json");
  char *dot = lowered(graph, "dot");
  assert_int_equal(strncmp(dot, "digraph", 7), 0);
  free(dot);
  free_bound(device, graph);
  gk_graph_destroy(graph);
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

/* Of kernels with code by hand, and how it goes over where to resume. */
TEST_ON_CUDA(code_by_hand_and_targets) {
  static const gk_param params[] = {{"x", "int", 4, 4, GK_PTR, GK_ACCESS_INOUT}};
  static const gk_code code = {.text = "extern \"C\" __global__ void hand(int *x) { *x = 1; }", .block = {8, 4, 2}};
  static const gk_kernel hand = {.name = "hand", .params = params, .param_count = 1, .cuda = &code};
  static const gk_task few[] = {GK_RUN(hand, N, X), GK_CHECKPOINT(HERE, FLAG), GK_RUN(hand, N, X), GK_END};
  static const gk_list one = {GK_ABI, "one", few, 1, slots, GK_COUNT(slots)}, two = GK_LIST(two, few, slots);
  gki_cuda_device *native = device->state;
  gk_graph *graph = graph_on(device, &one, 0);
  EXPECT_SAID(graph, "\ncode by hand: 1 node, updated when",
              ": hand, blocks of 64 threads, as many as its items need\n");
  gk_graph_destroy(graph);
  graph = graph_on(device, &two, 0);
  EXPECT_SAID(graph, "\ncode by hand: 2 nodes, updated when", "where to resume: by an update of the first kernel\n");
  EXPECT_SAID_IN(graph, "json", "\"by_hand\": 2, \"calls\": false, \"target\": \"an update of the first kernel\", ");
  gk_graph_destroy(graph);
  graph = graph_on(device, &two, GK_HOST_GATED);
  EXPECT_SAID(graph, "\ncode by hand: 2 nodes, updated when");
  EXPECT_SAID_IN(graph, "json", "\"by_hand\": 2, \"calls\": false, \"target\": null, ");
  gk_graph_destroy(graph);
  static const gk_task checkpoint[] = {GK_FILL(X, N, 1), GK_CHECKPOINT(HERE, FLAG), GK_FILL(X, N, 1), GK_END};
  static const gk_list resumed = GK_LIST(resumed, checkpoint, slots);
  native->caps.quirks |= GKI_CUDA_TARGET_BY_COPY;
  graph = graph_on(device, &resumed, 0);
  EXPECT_SAID(graph, "where to resume: by a copy\n");
  gk_graph_destroy(graph);
}

/* Where the graph that resumes has the same nodes there is no other one. */
TEST_ON_CUDA(one_for_all_launches) {
  static const gk_task yielding_tasks[] = {GK_RUN(add, N, X, A), GK_CHECKPOINT(HERE, FLAG), GK_END};
  static const gk_list yielding = GK_LIST(yielding, yielding_tasks, slots);
  static const struct { const char *format, *all; } forms[] = {
    {"text", "\nall launches: 1 node of tasks, "},
    {"json", "[{\"of\": \"all launches\", \"made\": true, \"tasks\": 1, "},
    {"dot", "label=\"all launches\";\ng0n0 "}};
  gk_graph *graph = graph_on(device, &yielding, 0);
  for (size_t k = 0; k < GK_COUNT(forms); ++k) {
    char *text = lowered(graph, forms[k].format);
    if (!strstr(text, forms[k].all)) fail_msg("no \"%s\" in:\n%s", forms[k].all, text);
    if (strstr(text, "launches that resume")) fail_msg("another graph in:\n%s", text);
    free(text);
  }
  gk_graph_destroy(graph);
}

/* Kernels and conditional nodes, as many as the driver has got. */
TEST_ON_CUDA(counts_are_the_drivers) {
  static const gk_task some[] = {GK_RUN(add, N, X, A), GK_DO_WHILE(LEFT), GK_RUN(decrease, GK_ONE, LEFT), GK_IF(FLAG),
                                 GK_FILL(X, N, 1), GK_END, GK_END, GK_COPY(Y, X, N)};
  static const gk_list few = GK_LIST(few, some, slots);
  sim->mark();
  gk_graph *graph = graph_on(device, &few, 0);
  unsigned tasks_said = 0, controls = 0, conditionals = 0, bodies = 0;
  char *text = lowered(graph, "text");
  const char *at = strstr(text, "all launches: ");
  if (!at || sscanf(at, "all launches: %u nodes of tasks, %u control kernels, %u conditional nodes with %u bodies",
                    &tasks_said, &controls, &conditionals, &bodies) != 4)
    fail_msg("%s", text);
  assert_int_equal(tasks_said, 4);
  assert_int_equal(tasks_said + controls, sim->calls("cuGraphAddKernelNode"));
  assert_int_equal(conditionals, sim->calls("cuGraphAddNode"));
  assert_int_equal(bodies, conditionals);
  free(text);
  gk_graph_destroy(graph);
}

TEST(others_read_it) {
  if (system("command -v python3 >/dev/null") == 0)
    assert_int_equal(system("python3 -c 'import json, sys\nfor path in sys.argv[1:]: json.load(open(path))' "
                            "tests/golden/cuda_outline.json tests/golden/cuda_outline_gated.json"), 0);
  if (system("command -v dot >/dev/null") == 0)
    assert_int_equal(system("dot -Tsvg tests/golden/cuda_outline.dot 2>&1 >/dev/null | (! grep .)"), 0);
}

int main(int count, char **words) {
  with_simgpu(words);
  const char *wish = getenv("GK_UPDATE_GOLDEN");
  update = (wish && *wish == '1') || (count > 1 && strcmp(words[1], "--update-golden") == 0);
  return run_all_tests();
}
