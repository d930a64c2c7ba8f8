/* A launch executes what the plan's dump says: tasks, control kernels and conditional nodes. */
#include "graphs.h"
#include "unit/support/runtime_kernels.h"
#include "unit/support/planned.h"
#include "dump/formats.h"

enum { X = 1, Y, Z, N, A, OFF, ON };
static const gk_slot_desc slots[] = {GK_BUFFER(X, int), GK_BUFFER(Y, int), GK_BUFFER(Z, int), GK_DEFAULT(N, int, 1),
                                     GK_DEFAULT(A, int, 1), GK_BUFFER(OFF, int), GK_BUFFER(ON, int)};
enum { HERE = 7, THERE, NOWHERE };
#define TASK GK_RUN(add, N, X, A)
#define ROW(label) GK_CHECKPOINT(label, OFF), TASK, GK_END

typedef struct launch { uint64_t kernels, conditionals; } launch;

/* The device counts at a launch's end, a moment after it posted the status: a download waits for that. A WHILE node
 * counts again after each pass. */
static launch executed(gk_device *device, gk_graph *graph, int32_t label) {
  sim->mark();
  assert_int_equal(run_to_end(graph, label)->state, GK_FINISHED);
  assert_int_equal(sim->counts().launches, 1);
  (void)int_at(device, gk_bound(graph, X));
  const simgpu_counts counts = sim->counts();
  return (launch){counts.kernel_nodes, counts.conditional_nodes - counts.passes};
}

/* `passes` by row of the dump: those of each loop in a launch. `around`: prologue and epilogue, which have no row. */
static launch told(const gk_list *list, uint64_t around, const uint32_t *passes, gki_lowering how) {
  planned_list p;
  gki_gate_counts counts;
  assert_ok(gki_dump_count(plan_list(&p, list), &counts));
  launch sum = {around, 0};
  for (uint32_t k = 0; k < counts.row_count; ++k) {
    const uint64_t times = passes[k] / counts.passes[k];
    sum.kernels += times * (counts.tasks[k] + counts.rows[how][k].control);
    sum.conditionals += times * counts.rows[how][k].conditional;
  }
  gki_arena_free(&counts.arena);
  free_planned(&p);
  return sum;
}

/* A launch from the top, and one that begins at the first checkpoint. Skipped nodes read a word or are closed, and
 * count all the same. one: the same graph serves both, and has a prologue. */
static void check(gk_device *device, const gk_list *list, const uint32_t *passes, bool one) {
  gk_graph *graph = NEW_GRAPH(device, list, 0, {X, int_on(device, 0)}, {Y, int_on(device, 0)}, {Z, int_on(device, 0)},
                              {OFF, int_on(device, 0)}, {ON, int_on(device, 1)});
  for (int resumes = 0; resumes < 2; ++resumes) {
    const launch got = executed(device, graph, resumes ? HERE : 0);
    const uint64_t around = resumes || one ? 2 : 1;
    const launch want = told(list, around, passes, resumes ? GKI_RESUME : GKI_FRESH);
    const launch usual = told(list, around, passes, GKI_USUAL);
    assert_int_equal(got.kernels, want.kernels);
    assert_int_equal(got.conditionals, want.conditionals);
    assert_true(got.kernels < usual.kernels && got.conditionals < usual.conditionals);
  }
}
#define CHECK(one, list, ...) check(device, &(list), (const uint32_t[]){__VA_ARGS__}, one)

TEST_ON_CUDA(test_ten_passes) {
  LIST(list, TASK, GK_DO_WHILE(ON, .max_iterations = 10), ROW(HERE), ROW(THERE), ROW(NOWHERE), GK_END);
  CHECK(true, list, 1, 10);
}

/* A step like the soft body's: the demo itself would need a mesh. */
TEST_ON_CUDA(test_step) {
  LIST(list,
       TASK, GK_DO_WHILE(ON, .max_iterations = 4), GK_CHECKPOINT(HERE, OFF), TASK, TASK, TASK, GK_END,
       GK_PARALLEL, GK_SECTION, TASK, GK_END, GK_SECTION, GK_RUN(add, N, Y, A), GK_END,
       GK_SECTION, GK_RUN(add, N, Z, A), GK_RUN(add, N, Z, A), GK_END, GK_END, TASK,
       GK_DO_WHILE(ON, .max_iterations = 5), TASK, TASK, TASK, GK_END,
       GK_DO_WHILE(ON, .max_iterations = 3), TASK, TASK, GK_END, TASK, GK_END,
       TASK, TASK, TASK, TASK, TASK, TASK, TASK, TASK, TASK);
  CHECK(true, list, 1, 4, 20, 12);
}

/* Launches from the top have a graph of their own, with as many nodes: a decision that begins the body is made once
 * before the loop and then by its end, unless a launch may begin right there. */
TEST_ON_CUDA(test_two_graphs) {
  LIST(list, TASK, GK_DO_WHILE(ON, .max_iterations = 10), GK_CHECKPOINT(HERE, OFF), GK_END, TASK, GK_END);
  CHECK(false, list, 1, 10);
}

TEST_ON_CUDA(test_straight) {
  LIST(list, ROW(HERE), ROW(THERE), ROW(NOWHERE), TASK);
  CHECK(true, list, 1);
}

/* Straight bodies stand several times in the graph: all passes, 25 at once, and those between two reads of a flag. */
TEST_ON_CUDA(test_copies) {
  LIST(list, ROW(HERE), GK_REPEAT(GK_ITEMS(64)), TASK, GK_END, GK_REPEAT(GK_ITEMS(100)), TASK, TASK, GK_END,
       GK_DO_WHILE(ON, .max_iterations = 80, .every = 8), TASK, GK_END);
  CHECK(true, list, 1, 64, 100, 80);
  static const struct { uint32_t passes, quarters; } most[] = {{0}, {64, 5}, {25, 9}, {8, 5}};
  planned_list p;
  gki_gate_counts counts;
  assert_ok(gki_dump_count(plan_list(&p, &list), &counts));
  for (uint32_t k = 1; k < counts.row_count; ++k) {
    const uint32_t nodes = counts.tasks[k] + counts.rows[GKI_FRESH][k].control;
    assert_int_equal(counts.passes[k], most[k].passes);
    assert_true(4 * nodes <= most[k].passes * most[k].quarters); /* a quarter of a node a pass more than its tasks */
  }
  gki_arena_free(&counts.arena);
  free_planned(&p);
}

/* A SWITCH node on CUDA 13.0; its case runs. */
TEST_ON_CUDA(test_branch) {
  LIST(list, ROW(HERE), GK_WHILE(ON, .max_iterations = 3), TASK, GK_SWITCH(OFF), GK_CASE, TASK,
       GK_END, GK_CASE, GK_END, GK_END, GK_END);
  CHECK(true, list, 1, 3);
}

int main(UNUSED int count, char **words) { return run_on_simgpu(words); }
