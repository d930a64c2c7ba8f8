/* The gates of plans: run on a device that knows nothing else, against the contract on random lists; their shape, their
 * size, and what they cost. GK_SEED=n runs the one list of a failure again, GK_LISTS=n as many as you like. */
#include "dump/dump.h"
#include "unit/support/oracle.h"
#include "unit/support/gates_bench.h"
#include "unit/support/own_memory.h"
#include "unit/support/planned.h"
#include "unit/support/sheet.h"
#include "unit/support/work.h"

enum { LAUNCHES = 6, MOST_TASKS = 4096 };

/* ---- the shape: what a backend may rely on ----------------------------------------------------------------------- */

static uint32_t child_count(const gk_gates *g, uint32_t at, gk_gate_kind kind) {
  uint32_t count = 0;
  for (uint32_t k = at + 1; k < g->nodes[at].end; k = g->nodes[k].end, ++count)
    assert_int_equal(g->nodes[k].kind, kind);
  return count;
}

static void check_node(const gk_gates *g, uint32_t at, uint32_t *handles_seen) {
  const gk_gate_node *n = &g->nodes[at];
  const bool conditional = n->kind == GK_GATE_SEGMENT || n->kind == GK_GATE_IF || n->kind == GK_GATE_SWITCH ||
                           n->kind == GK_GATE_WHILE;
  assert_int_equal(conditional, n->handle != GK_NONE);
  if (conditional) {
    assert_int_equal(g->handles[n->handle].node, at);
    ++*handles_seen;
  }
  const bool holds = conditional || n->kind == GK_GATE_PARALLEL || n->kind == GK_GATE_BRANCH;
  assert_int_equal(holds, n->end > at + 1); /* an empty body hangs old drivers */
  if (n->kind == GK_GATE_SWITCH) {
    const uint32_t bodies = child_count(g, at, GK_GATE_BRANCH);
    assert_true(bodies > 1 && (g->bits & GK_WITH_SWITCH));
    assert_int_equal(g->handles[n->handle].off, bodies);
  }
  if (n->kind == GK_GATE_PARALLEL) {
    child_count(g, at, GK_GATE_BRANCH);
    for (uint32_t b = at + 1; b < n->end; b = g->nodes[b].end) {
      bool decides = false;
      for (uint32_t k = b; k < g->nodes[b].end; ++k) decides = decides || g->nodes[k].kind == GK_GATE_CONTROL;
      assert_int_equal(g->nodes[b].decides, decides);
    }
  }
  if (n->kind == GK_GATE_CONTROL) assert_true(n->point < g->point_count);
  if (n->kind == GK_GATE_PROLOGUE) assert_int_equal(at, 0);
  if (n->kind == GK_GATE_EPILOGUE) assert_int_equal(at, g->node_count - 1);
}

/* Nothing but guards closes anything, and each loop is ended by the kernel that is last in it. */
static void check_plain(const gk_gates *g) {
  assert_int_equal(g->reenable_count, 0);
  assert_int_equal(g->close_count, g->guard_count);
  for (uint32_t k = 0; k < g->close_count; ++k) assert_int_equal(g->closes[k].kind, GK_CLOSE_GUARD);
  for (uint32_t k = 0; k < g->node_count; ++k) {
    if (g->nodes[k].kind != GK_GATE_WHILE) continue;
    uint32_t last = k + 1;
    while (g->nodes[last].end < g->nodes[k].end) last = g->nodes[last].end;
    assert_int_equal(g->nodes[last].kind, GK_GATE_CONTROL);
    assert_int_equal(g->points[g->nodes[last].point].kind, GK_POINT_LOOP_END);
    assert_int_equal(g->points[g->nodes[last].point].handle, g->nodes[k].handle);
  }
}

static void check_shape(const gk_gates *g) {
  const gk_plan *plan = g->plan;
  uint32_t handles = 0, controls = 0;
  for (uint32_t k = 0; k < g->node_count; ++k) {
    check_node(g, k, &handles);
    controls += g->nodes[k].kind == GK_GATE_CONTROL;
    if (g->nodes[k].kind != GK_GATE_TASK) continue;
    const gk_node *at = &plan->nodes[g->nodes[k].node];
    if (at->op == GK_OP_CALL || (at->op == GK_OP_KERNEL && at->kernel->cuda))
      assert_int_equal(g->nodes[k].guard, GK_NONE);
  }
  check_tasks(g);
  assert_int_equal(handles, g->handle_count);
  assert_int_equal(handles, g->conditional_count);
  assert_int_equal(controls, g->control_count);
  const bool decides = plan->loop_count || plan->checkpoint_count;
  assert_int_equal(decides, g->node_count && g->nodes[g->node_count - 1].kind == GK_GATE_EPILOGUE);
  for (uint32_t k = 0; k < g->point_count; ++k) {
    const gk_gate_point *p = &g->points[k]; /* nothing is behind a loop end in its body */
    if (p->kind == GK_POINT_LOOP_END) assert_int_equal(p->close, g->blocks[p->block].end);
  }
  uint32_t closes = 0;
  for (uint32_t b = 0; b < g->block_count; ++b) {
    assert_int_equal(g->blocks[b].begin, closes);
    closes = g->blocks[b].end;
    if (b == 0) continue;
    const gk_gate_block *around = &g->blocks[g->blocks[b].around];
    assert_true(around->begin <= g->blocks[b].before && g->blocks[b].before <= g->blocks[b].after);
    assert_true(g->blocks[b].after <= around->end);
  }
  assert_int_equal(closes, g->close_count);
  if (g->bits & GK_WITH_PLAIN) check_plain(g);
}

/* ---- side by side with the contract ------------------------------------------------------------------------------ */

static const char *compare(const device *d, const bench *b, const oracle *o) {
  const gk_plan *plan = d->plan;
  const char *wrong = compare_traces(b, o, d->interleave != NULL);
  if (wrong) return wrong;
  const bool stopped = d->stopped == d->number, limited = d->limited == d->number;
  if (stopped != o->stopped) return stopped ? "it stopped" : "it did not stop";
  const int32_t label = stopped && d->stopped_at != GK_NONE ? plan->nodes[d->stopped_at].label : 0;
  if (label != o->yielded) return "another label";
  if (limited != (o->limit >= 0)) return limited ? "a loop hit its bound" : "no loop hit its bound";
  if (limited && !d->interleave && (int64_t)plan->nodes[d->limit].source != o->limit) return "another limit";
  for (uint32_t k = 0; k < plan->loop_count; ++k) {
    const uint64_t passes = d->loops[k].launch == d->number ? d->loops[k].passes : 0;
    if (passes != o->passes[plan->nodes[plan->loops[k]].source]) return "other passes";
  }
  for (uint32_t k = 0; k < plan->checkpoint_count; ++k)
    if ((d->ran[k] == d->number) != o->ran[plan->nodes[plan->checkpoints[k]].source]) return "other checkpoints ran";
  return NULL;
}

static uint64_t device_pass(const void *user, uint32_t loop) {
  const device *d = user;
  return d->loops[loop_number(d->plan, loop)].entry;
}

static struct {
  long lists, launches, resumed, yielded, cancelled, limited, interleaved, tasks, kernels, conditionals;
} sum;

/* Code by hand, which reads no guard, in some of the lists. */
static void put_by_hand(gk_task *tasks, uint32_t count, uint64_t random) {
  static const gk_code code = {.text = ""};
  static const gk_kernel by_hand = {.name = "by hand", .cuda = &code};
  for (uint32_t k = 0; k < count && random % 3 == 0; ++k)
    if (tasks[k].op == GK_OP_KERNEL && random >> (k % 32 + 8) & 1) tasks[k].kernel = &by_hand;
}

static void run_list(const gk_task *given, uint32_t count, uint64_t seed, uint64_t random) {
  static oracle o;
  static bench b;
  static gk_task tasks[MOST_TASKS];
  assert_true(count <= MOST_TASKS);
  memcpy(tasks, given, count * sizeof *tasks);
  put_by_hand(tasks, count, random);
  planned_list planned;
  const gk_plan *plan = plan_tasks(&planned, tasks, count, slots, GK_COUNT(slots));
  device d;
  memset(&b, 0, sizeof b);
  oracle_begin(&o, tasks, count, seed);
  read_numbers(&b.t, &o, plan, device_pass, &d);
  const bool cancelling = pick(&random, 3) == 0, interleave = pick(&random, 2) != 0;
  const uint32_t bits = (cancelling ? GK_WITH_CANCEL : 0u) | (pick(&random, 2) ? GK_WITH_SWITCH : 0u) |
                        (pick(&random, 2) ? GK_WITH_GUARDS : 0u) | (pick(&random, 2) ? GK_WITH_PLAIN : 0u);
  device_graph graphs[2];
  for (uint32_t k = 0; k < 2; ++k) {
    const gk_gates *gates;
    assert_ok(gk_gates_make(plan, bits | (k ? GK_WITH_RESUME : 0u), &gates));
    check_shape(gates);
    graph_begin(&graphs[k], gates);
  }
  device_begin(&d, plan);
  b.plan = plan;
  b.t.seed = seed;
  b.t.tasks = tasks;
  b.t.cancel = &b.cancel;
  d.user = &b;
  d.execute = bench_execute;
  d.read = bench_read;
  d.cancelled = bench_cancelled;
  uint64_t chance = random;
  if (interleave) d.interleave = &chance;
  int32_t target = 0;
  for (int launch = 0; launch < LAUNCHES; ++launch) {
    if (plan->checkpoint_count && pick(&random, 10) < 3)
      target = plan->nodes[plan->checkpoints[pick(&random, plan->checkpoint_count)]].label;
    const bool cancel = cancelling && pick(&random, 2);
    /* What a cancel in mid-flight meets in sections depends on their order. */
    o.t.until_cancel = b.t.until_cancel = cancel && !interleave ? 1 + pick(&random, 20) : 0;
    b.cancel = o.cancel = cancel && interleave;
    b.t.log_count = 0;
    const uint32_t checkpoint = target ? plan->nodes[gki_plan_label(plan, target)].checkpoint : GK_NONE;
    oracle_launch(&o, target);
    device_launch(&d, &graphs[target || pick(&random, 4) == 0], checkpoint);
    const char *wrong = compare(&d, &b, &o);
    if (wrong) {
      char *text = gki_plan_dump(plan, "text");
      fprintf(stderr, "%s", text ? text : "");
      gk_host_free(text);
      fail_msg("GK_SEED=%llu, bits %u, launch %d to %d%s: %s", (unsigned long long)seed, (unsigned)bits, launch, target,
               interleave ? ", interleaved" : "", wrong);
    }
    ++sum.launches;
    sum.resumed += target != 0;
    sum.yielded += o.yielded != 0;
    sum.cancelled += o.stopped && !o.yielded;
    sum.limited += o.limit >= 0;
    sum.interleaved += interleave;
    device_next(&d);
    target = o.yielded && pick(&random, 10) ? o.yielded : 0;
  }
  ++sum.lists;
  sum.tasks += d.tasks;
  sum.kernels += d.kernels;
  sum.conditionals += d.conditionals;
  device_end(&d);
  graph_end(&graphs[0]);
  graph_end(&graphs[1]);
  free_planned(&planned);
}

static void run_generated(uint64_t seed, uint64_t mixed, uint32_t budget, void (*put_all)(generator *)) {
  static gk_task tasks[MAX_TASKS];
  generator g = {.random = mix(mixed), .tasks = tasks, .budget = budget};
  put_all(&g);
  run_list(tasks, g.count, seed, g.random);
}

static void random_list(uint64_t seed) { run_generated(seed, seed, 24, put_some); }

TEST(test_contract) {
  memset(&sum, 0, sizeof sum);
  each_list(random_list, 20000);
  print_message("%ld lists, %ld launches: %ld resumed, %ld yielded, %ld cancelled, %ld hit a bound, %ld interleaved; "
                "%ld tasks, %ld control kernels, %ld conditional nodes\n", sum.lists, sum.launches, sum.resumed,
                sum.yielded, sum.cancelled, sum.limited, sum.interleaved, sum.tasks, sum.kernels, sum.conditionals);
  if (getenv("GK_SEED")) return;
  assert_true(sum.yielded > sum.launches / 50 && sum.cancelled > sum.launches / 100); /* the lists are worth it */
  assert_true(sum.limited > sum.launches / 50 && sum.resumed > sum.launches / 10);
}

static void waiting_list(uint64_t seed) { run_generated(seed, seed ^ 0x3a17, 0, put_waiting); }
TEST(test_waiting) { each_list(waiting_list, 10000); }

static void repeats_list(uint64_t seed) { run_generated(seed, seed ^ 0xc091, 0, put_repeats); }
TEST(test_repeats) { each_list(repeats_list, 5000); }

TEST(test_deep) {
  for (uint64_t seed = 0; seed < 300; ++seed) run_generated(seed, seed ^ 0xdee9, 0, put_deep);
}

/* ---- what it costs ----------------------------------------------------------------------------------------------- */

static void add_checkpoint(sheet *l, int32_t label, uint32_t tasks) {
  add(l, (gk_task){.op = GK_OP_CHECKPOINT, .flag = FLAG, .label = label});
  add_tasks(l, tasks);
  add(l, (gk_task)GK_END);
}

static void add_ten_passes(sheet *l) {
  add_tasks(l, 1);
  add(l, (gk_task)GK_DO_WHILE(FLAG, .max_iterations = 10));
  for (int32_t k = 1; k <= 3; ++k) add_checkpoint(l, k, 1);
  add(l, (gk_task)GK_END);
}

static void add_soft_body(sheet *l) {
  add_tasks(l, 1);
  add(l, (gk_task)GK_DO_WHILE(FLAG, .max_iterations = 4));
  add_checkpoint(l, 1, 3);
  add(l, (gk_task)GK_PARALLEL);
  for (uint32_t k = 1; k <= 3; ++k) {
    add(l, (gk_task)GK_SECTION);
    add_tasks(l, k);
    add(l, (gk_task)GK_END);
  }
  add(l, (gk_task)GK_END);
  add(l, (gk_task)GK_DO_WHILE(FLAG, .max_iterations = 5));
  add_tasks(l, 3);
  add(l, (gk_task)GK_END);
  add_tasks(l, 3);
  add(l, (gk_task)GK_END);
}

/* The body begins with a decision: made once before the loop and then by the loop's end. */
static void add_decision_first(sheet *l) {
  add_tasks(l, 1);
  add(l, (gk_task)GK_DO_WHILE(FLAG, .max_iterations = 10));
  add_checkpoint(l, 1, 0);
  add_tasks(l, 1);
  add(l, (gk_task)GK_END);
}

static void add_straight(sheet *l) {
  for (int32_t k = 1; k <= 20; ++k) add_checkpoint(l, k, 1);
}

static void add_repeat(sheet *l) {
  add(l, (gk_task)GK_REPEAT(GK_ITEMS(67)));
  add_tasks(l, 2);
  add(l, (gk_task)GK_END);
}

static int64_t loops_only(void *user, uint32_t node) {
  const gk_plan *plan = user;
  return plan->nodes[node].op == GK_OP_DO_WHILE; /* on to its bound */
}

/* Control kernels and conditional nodes that a launch from the top executes. */
typedef struct cost { long kernels[2], conditionals[2]; } cost; /* of the fresh graph, of the one to resume with */

static void check_cost(uint32_t bits, void (*fill)(sheet *), cost want) {
  sheet l = {.count = 0};
  fill(&l);
  const gk_plan *plan = plan_of(&l);
  for (uint32_t resume = 0; resume < 2; ++resume) {
    const executed e = launch(plan, bits | (resume ? GK_WITH_RESUME : 0u), loops_only, GK_NONE);
    assert_int_equal(e.kernels, want.kernels[resume]);
    assert_int_equal(e.conditionals, want.conditionals[resume]);
  }
  free_planned(&l.planned);
}

/* A kernel more for each gate, and for each node in a loop. */
TEST(test_plain_costs) {
  check_cost(GK_WITH_PLAIN, add_ten_passes, (cost){{60, 71}, {21, 32}});
  check_cost(GK_WITH_PLAIN | GK_WITH_GUARDS, add_ten_passes, (cost){{40, 40}, {1, 1}});
  check_cost(GK_WITH_PLAIN, add_soft_body, (cost){{36, 37}, {9, 10}});
  check_cost(GK_WITH_PLAIN, add_decision_first, (cost){{30, 31}, {11, 12}});
  check_cost(GK_WITH_PLAIN, add_straight, (cost){{39, 40}, {19, 20}});
}

TEST(test_costs) {
  check_cost(0, add_ten_passes, (cost){{30, 30}, {21, 32}});
  check_cost(0, add_soft_body, (cost){{28, 28}, {9, 10}});
  check_cost(0, add_decision_first, (cost){{11, 20}, {11, 12}});
  check_cost(0, add_straight, (cost){{20, 20}, {19, 20}});
  check_cost(0, add_repeat, (cost){{67, 67}, {1, 1}}); /* a kernel per pass, and nothing sets the handle elsewhere */
}

/* A YIELD at the beginning of a loop's body needs no kernel of its own: a resumed launch comes to it by the loop's end,
 * which is the only kernel here. */
TEST(test_cost_of_a_yield_first) {
  sheet l = {.count = 0};
  add_tasks(&l, 1);
  add(&l, (gk_task)GK_DO_WHILE(FLAG, .max_iterations = 10));
  add(&l, (gk_task)GK_YIELD(1));
  add_tasks(&l, 1);
  add(&l, (gk_task)GK_END);
  const executed e = launch(plan_of(&l), GK_WITH_RESUME, loops_only, 0);
  assert_int_equal(e.tasks, 1);
  assert_int_equal(e.kernels, 1);
  free_planned(&l.planned);
}

/* A list that can't stop costs nothing. */
TEST(test_straight_lists_are_free) {
  for (uint32_t count = 0; count < 4; ++count) {
    sheet l = {.count = 0};
    add_tasks(&l, count);
    const gk_gates *gates;
    assert_ok(gk_gates_make(plan_of(&l), GK_WITH_RESUME | GK_WITH_CANCEL | GK_WITH_SWITCH, &gates));
    check_shape(gates);
    assert_int_equal(gates->node_count, count); /* neither prologue nor epilogue */
    assert_int_equal(gates->handle_count + gates->point_count + gates->close_count + gates->guard_count, 0);
    gk_gates_free(gates);
    free_planned(&l.planned);
  }
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static size_t bytes_taken;
static void *sum_alloc(void *user, size_t bytes) {
  bytes_taken += bytes;
  return counting_alloc(user, bytes);
}

/* Lists whose gates would be quadratic if anything were written out per pair. Each fills `room` tasks, or a few less.
 * */
typedef uint32_t (*shape)(gk_task *tasks, uint32_t room);

static const gk_task plain = {.op = GK_OP_KERNEL, .kernel = &kernel, .args = {FLAG}}, end = GK_END;

static uint32_t checkpoints(gk_task *tasks, uint32_t at, uint32_t room, gk_slot flag) {
  for (; at + 3 <= room; at += 3) {
    tasks[at] = (gk_task){.op = GK_OP_CHECKPOINT, .flag = flag, .label = (int32_t)at + 1};
    tasks[at + 1] = plain;
    tasks[at + 2] = end;
  }
  return at;
}

/* Each stop closes all that is behind it. */
static uint32_t straight(gk_task *tasks, uint32_t room) { return checkpoints(tasks, 0, room, FLAG); }

/* Many ways lead to many marks. */
static uint32_t ways_to_marks(gk_task *tasks, uint32_t room) {
  uint32_t at = 0;
  tasks[at++] = (gk_task)GK_SWITCH(FLAG);
  tasks[at++] = (gk_task)GK_CASE;
  tasks[at++] = (gk_task)GK_CHECKPOINT(-1, FLAG);
  tasks[at++] = end;
  tasks[at++] = end;
  while (at < room / 2) {
    tasks[at++] = (gk_task)GK_CASE;
    tasks[at++] = end;
  }
  tasks[at++] = end;
  tasks[at++] = plain;
  return checkpoints(tasks, at, room, 0);
}

/* A loop end re-enables many loops, in loops as deep as may be; each stop ends all of those. */
static uint32_t many_in_deep(gk_task *tasks, uint32_t room) {
  enum { depth = 60 };
  uint32_t at = 0;
  while (at < depth) tasks[at++] = (gk_task)GK_DO_WHILE(FLAG);
  while (at < room / 2) {
    tasks[at++] = (gk_task)GK_DO_WHILE(FLAG);
    tasks[at++] = plain;
    tasks[at++] = end;
  }
  at = checkpoints(tasks, at, room - depth, FLAG);
  for (uint32_t k = 0; k < depth; ++k) tasks[at++] = end;
  return at;
}

typedef struct effort { size_t bytes; uint64_t work; } effort;

static effort effort_of(shape fill, uint32_t room, uint32_t bits) {
  gk_task *tasks = calloc(room, sizeof *tasks);
  const uint32_t count = fill(tasks, room);
  planned_list planned;
  const gk_plan *plan = plan_tasks(&planned, tasks, count, slots, GK_COUNT(slots));
  assert_ok(gk_set_allocator(&(gk_allocator){&own_memory, sum_alloc, counting_resize, counting_free}));
  bytes_taken = 0;
  const gk_gates *gates;
  const uint64_t before = work_done;
  assert_ok(gk_gates_make(plan, bits, &gates));
  const uint64_t work = work_done - before;
  assert_true(work > 0);
  if (fill == straight && !(bits & GK_WITH_PLAIN)) {
    const uint32_t resume = (bits & GK_WITH_RESUME) != 0, n = plan->checkpoint_count;
    assert_int_equal(gates->conditional_count, n - 1 + resume);
    assert_int_equal(gates->control_count, n);
    assert_int_equal(gates->close_count, n - 1 + resume);
    for (uint32_t k = 0; k < n; ++k) assert_int_equal(gates->points[k].close, k + resume); /* all that comes after */
  }
  gk_gates_free(gates);
  assert_ok(gk_set_allocator(NULL));
  assert_int_equal(atomic_load(&own_memory.live), 0);
  free_planned(&planned);
  free(tasks);
  assert_true(work >= count);
  return (effort){bytes_taken, work};
}

TEST(test_linear) {
  static const shape shapes[] = {straight, ways_to_marks, many_in_deep};
  for (size_t k = 0; k < GK_COUNT(shapes); ++k)
    for (uint32_t bits = 0; bits < 32; bits += bits ? 16 : 7) {
      const effort some = effort_of(shapes[k], 3000, bits), more = effort_of(shapes[k], 30000, bits);
      const effort most = effort_of(shapes[k], 300000, bits);
      assert_true(more.bytes < 11 * some.bytes && most.bytes < 11 * more.bytes);
      assert_true(more.work < 11 * some.work && most.work < 11 * more.work);
    }
}

/* Out of memory at any place: an error that says so, nothing lost. */
TEST(test_no_memory) {
  sheet l = {.count = 0};
  add_soft_body(&l);
  const gk_plan *plan = plan_of(&l);
  gk_result result = GK_ERROR_MEMORY;
  int calls = 1;
  for (; result != GK_OK; ++calls) {
    assert_int_equal(begin_counted(NULL), 0);
    const gk_gates *gates = (const gk_gates *)&l;
    fail_own_memory(calls);
    result = gk_gates_make(plan, GK_WITH_RESUME, &gates);
    assert_true(result == GK_OK ? gates != NULL : !gates && result == GK_ERROR_MEMORY && strstr(gk_error(), "memory"));
    gk_gates_free(gates);
    assert_int_equal(end_counted(NULL), 0);
  }
  assert_true(calls >= 5); /* the result, what is thrown away, what stays; and the one without */
  free_planned(&l.planned);
}

TEST(test_unknown_bit) {
  sheet l = {.count = 0};
  add_straight(&l);
  const gk_gates *gates;
  assert_fails(GK_ERROR_INVALID, "0x20", gk_gates_make(plan_of(&l), 32, &gates));
  assert_null(gates);
  gk_gates_free(gates);
  free_planned(&l.planned);
}

int main(void) { return run_all_tests(); }
