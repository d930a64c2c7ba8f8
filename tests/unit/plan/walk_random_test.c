/* The walker against an interpreter of docs/contract.md, on random lists; and the contract's guarantee. GK_SEED=n runs
 * the one list of a failure again, GK_LISTS=n as many as you like. */
#include "dump/dump.h"
#include "unit/support/oracle.h"
#include "walk_world.h"

static void trace_execute(world *w, uint32_t node) { trace_run(w->user, w->plan->nodes[node].source); }
static int64_t trace_flag(world *w, uint32_t node) { return trace_read(w->user, w->plan->nodes[node].source); }

static void show(const world *w, uint64_t seed, int launch, const char *what) {
  char *text = gki_plan_dump(w->plan, "text");
  fprintf(stderr, "GK_SEED=%llu takes %u, launch %d: %s\n%s", (unsigned long long)seed, w->takes, launch, what,
          text ? text : "");
  gk_host_free(text);
}

static void show_log(const char *whose, const trace *t) {
  fprintf(stderr, "%s: cancelled %d;", whose, (int)*t->cancel);
  for (uint32_t k = 0; k < t->log_count; ++k)
    fprintf(stderr, t->log[k] >= READ ? " flag of %u" : " %u", (unsigned)t->log[k] % READ);
  fprintf(stderr, "\n");
}

static const char *compare(const world *w, const trace *t, const oracle *o) {
  const gk_plan *plan = w->plan;
  const gk_launch_result *r = &w->record;
  if (memcmp(t->runs, o->t.runs, sizeof t->runs) != 0) return "other tasks ran";
  if (memcmp(t->reads, o->t.reads, sizeof t->reads) != 0) return "other flags were read";
  if (t->log_count != o->t.log_count) return "more or less happened";
  if (memcmp(t->numbers, o->t.numbers, sizeof t->numbers) != 0) return "other pass numbers";
  if (!w->interleave && memcmp(t->log, o->t.log, t->log_count * sizeof *t->log) != 0) return "another order";
  gk_state state = o->yielded ? GK_YIELDED : o->stopped ? GK_CANCELLED : GK_FINISHED;
  if (r->state != state) return "another state";
  if ((r->yielded ? plan->nodes[r->yielded].label : 0) != o->yielded) return "another label yielded";
  if ((r->limit ? (int64_t)plan->nodes[r->limit].source : -1) != o->limit) return "another limit";
  for (uint32_t k = 0; k < plan->loop_count; ++k) {
    uint32_t source = plan->nodes[plan->loops[k]].source;
    if (r->passes[k] != o->passes[source]) return "other passes";
    if (r->hit_bound[k] != o->hit_bound[source]) return "another bound was hit";
  }
  for (uint32_t k = 0; k < plan->checkpoint_count; ++k)
    if (r->ran[k] != o->ran[plan->nodes[plan->checkpoints[k]].source]) return "other checkpoints ran";
  return NULL;
}

/* What tasks read as the pass number of a loop. */
static uint64_t pass_of(const void *user, uint32_t task) {
  const world *w = user;
  const uint32_t loop = loop_number(w->plan, task);
  if (w->takes & TAKES_TAPES) return w->state[gk_points_pass(w->points, w->plan->loops[loop])];
  return w->takes & TAKES_PASS ? w->numbers[loop] : w->entries[loop];
}

static bool by_tapes;
static long tapes, enqueued, executed, steps_taken;
static long launches, yields, cancels, limits, resumes, checkpoint_steps;

/* Six launches of a list on both sides; the difference, or NULL. Only tasks and seed decide what happens. */
static const char *run_list(const gk_task *tasks, uint32_t count, uint64_t seed, bool shows) {
  static const gk_slot_desc slots[] = {GK_BUFFER(FLAG, int)};
  static oracle o;
  static trace t;
  uint64_t random = mix(seed + 1);
  gk_list list = {GK_ABI, "random", tasks, count, slots, 1};
  oracle_begin(&o, tasks, count, seed);
  memset(&t, 0, sizeof t);
  t.seed = seed;
  t.tasks = tasks;
  bool cancelling = pick(&random, 3) == 0;
  world w = {.execute = trace_execute, .flag = trace_flag, .user = &t, .random = random};
  w.takes = (pick(&random, 2) ? TAKES_LOOP : 0) | (pick(&random, 2) ? TAKES_FORK : 0);
  if (pick(&random, 2)) w.takes |= TAKES_CHECKPOINT;
  if (pick(&random, 2)) w.takes |= TAKES_FLAG;
  if (pick(&random, 2)) w.takes |= TAKES_PASS;
  if (by_tapes) w.takes = TAKES_TAPES;
  w.interleave = !cancelling && (by_tapes || pick(&random, 2)); /* what a cancel meets in sections depends on their
                                                                  * order */
  t.cancel = &w.cancel;
  world_begin(&w, &list, pick(&random, 4) ? 0 : GK_ISOLATE);
  read_numbers(&t, &o, w.plan, pass_of, &w);
  const bool at_once = by_tapes && w.points->lane_count > 1; /* cancelled before it starts, or not */
  w.interleave = w.interleave || at_once;
  int32_t target = 0;
  const char *wrong = NULL;
  for (int launch = 0; launch < 6 && !wrong; ++launch) {
    if (w.plan->checkpoint_count && pick(&random, 10) < 3)
      target = w.plan->nodes[w.plan->checkpoints[pick(&random, w.plan->checkpoint_count)]].label;
    o.t.until_cancel = t.until_cancel = cancelling && pick(&random, 2) ? 1 + pick(&random, 20) : 0;
    w.cancel = o.cancel = at_once && t.until_cancel;
    if (at_once) o.t.until_cancel = t.until_cancel = 0;
    t.log_count = 0;
    oracle_launch(&o, target);
    uint32_t node = target ? gki_plan_label(w.plan, target) : 0;
    world_launch(&w, node);
    wrong = compare(&w, &t, &o);
    if (wrong && shows) {
      show(&w, seed, launch, wrong);
      show_log("contract (numbers are the list's)", &o.t);
      show_log("walker", &t);
    }
    ++launches;
    yields += w.record.state == GK_YIELDED;
    cancels += w.record.state == GK_CANCELLED;
    limits += w.record.limit != 0;
    resumes += target != 0;
    target = o.yielded && pick(&random, 10) ? o.yielded : 0;
  }
  checkpoint_steps += w.checkpoint_steps;
  tapes += w.tapes, enqueued += w.enqueued, executed += w.executed, steps_taken += w.steps_taken;
  world_end(&w);
  return wrong;
}

/* Leaves out a line, or a block without what is in it (`whole`: with it); false: that can't be left out by itself. */
static bool leave_out(const gk_task *from, uint32_t count, uint32_t line, bool whole, gk_task *to, uint32_t *to_count) {
  static oracle o; /* it knows which END is whose */
  oracle_begin(&o, from, count, 0);
  gk_op op = from[line].op;
  if (op == GK_OP_END || op == GK_OP_ELSE) return false;
  bool is_part = op == GK_OP_SWITCH || op == GK_OP_CASE || op == GK_OP_PARALLEL || op == GK_OP_SECTION;
  uint32_t end = o.mate[line] ? o.mate[line] : line;
  if (!whole && (end == line || is_part || (op == GK_OP_IF && o.otherwise[line]))) return false;
  *to_count = 0;
  for (uint32_t k = 0; k < count; ++k)
    if (whole ? k < line || k > end : k != line && k != end) to[(*to_count)++] = from[k];
  return true;
}

static void shrink(gk_task *tasks, uint32_t count, uint64_t seed) {
  static gk_task fewer[MAX_TASKS];
  for (uint32_t k = 0; k < 2 * count; ++k) {
    uint32_t left;
    if (!leave_out(tasks, count, k / 2, k % 2 == 0, fewer, &left) || !run_list(fewer, left, seed, false)) continue;
    memcpy(tasks, fewer, left * sizeof *tasks);
    count = left;
    k = UINT32_MAX; /* from the beginning */
  }
  run_list(tasks, count, seed, true);
}

static void one_list(uint64_t seed) {
  static gk_task tasks[MAX_TASKS];
  generator g = {.random = mix(seed), .tasks = tasks, .budget = 24, .has_hosts = seed % 2};
  for (uint32_t items = 1 + pick(&g.random, 5); items; --items) put_item(&g, 0, false, false);
  const char *wrong = run_list(tasks, g.count, seed, false);
  if (!wrong) return;
  shrink(tasks, g.count, seed);
  fail_msg("GK_SEED=%llu: %s; above, as short as it could be made", (unsigned long long)seed, wrong);
}

/* Memory decides here. Every loop has a counter and a limit, set by a task in front of it and counted by the last task
 * of its body; every branch has a value, set in front of it. What is set depends on the counters of the loops around. A
 * checkpoint's block sets what it uses, so it is safe to run again. A yield flag is raised by the test. */
typedef struct memory {
  uint64_t seed;
  int32_t counter[MAX_TASKS], limit[MAX_TASKS], value[MAX_TASKS]; /* by slot */
  uint32_t log[MAX_LOG][2], log_count;                            /* a task that ran, and the counters around */
  uint64_t yields;                                                /* random; 0: no yields */
  int yields_left;
} memory;

enum { SET = 1, COUNT = 2 }; /* gk_task.pattern: what a task does to the slot of its argument */

typedef struct writer {
  generator g;
  gk_slot next, around[16];
  uint32_t loops;
} writer;

static void put_work(writer *w, uint32_t kind, gk_slot slot) {
  gk_task task = {.op = GK_OP_KERNEL, .kernel = &kernel, .pattern = kind, .args = {slot ? slot : FLAG}};
  for (uint32_t k = 0; k < w->loops; ++k) task.args[k + 1] = w->around[k];
  put(&w->g, task);
}

static void put_safe_block(writer *w, uint32_t depth, bool in_section, bool in_checkpoint);

static void put_safe_item(writer *w, uint32_t depth, bool in_section, bool in_checkpoint) {
  generator *g = &w->g;
  uint32_t what = pick(&g->random, depth < 6 ? 9 : 2);
  gk_slot slot = w->next;
  if (g->budget) --g->budget;
  if (what >= 6 && (in_section || in_checkpoint)) what = 0;
  if (what < 2) {
    put_work(w, 0, 0);
    return;
  }
  if (what == 5) {
    put(g, (gk_task)GK_PARALLEL);
    for (uint32_t count = pick(&g->random, 4); count; --count) {
      put(g, (gk_task)GK_SECTION);
      put_safe_block(w, depth + 1, true, in_checkpoint);
      put_end(g);
    }
  } else if (what > 5) {
    put(g, (gk_task){.op = GK_OP_CHECKPOINT, .flag = FLAG, .label = ++g->labels});
    put_safe_block(w, depth + 1, in_section, true);
  } else {
    ++w->next;
    put_work(w, SET, slot);
    uint32_t bound = pick(&g->random, 2) ? 0 : 1 + pick(&g->random, 3), every = pick(&g->random, 4);
    if (what == 4) {
      put(g, (gk_task)GK_IF(slot));
    } else {
      put(g, (gk_task){.op = what == 2 ? GK_OP_WHILE : GK_OP_DO_WHILE, .flag = slot, .max_iterations = bound,
                       .every = every});
      w->around[w->loops++] = slot;
    }
    put_safe_block(w, depth + 1, in_section, in_checkpoint);
    if (what == 4) {
      put(g, (gk_task)GK_ELSE);
      put_safe_block(w, depth + 1, in_section, in_checkpoint);
    } else {
      put_work(w, COUNT, slot);
      --w->loops;
    }
  }
  put_end(g);
}

static void put_safe_block(writer *w, uint32_t depth, bool in_section, bool in_checkpoint) {
  for (uint32_t items = 1 + pick(&w->g.random, 3); items && w->g.budget; --items)
    put_safe_item(w, depth, in_section, in_checkpoint);
}

static void memory_execute(world *w, uint32_t node) {
  memory *m = w->user;
  const gk_node *task = &w->plan->nodes[node];
  const uint32_t *args = w->plan->args + task->args;
  uint64_t where = m->seed + args[0];
  uint32_t counters = 0;
  for (uint32_t k = 1; k < task->arg_count; ++k) {
    where = mix(where ^ mix((uint64_t)m->counter[args[k]] + args[k]));
    counters = counters * 8 + (uint32_t)m->counter[args[k]];
  }
  if (task->pattern == SET) {
    m->counter[args[0]] = 0;
    m->limit[args[0]] = (int32_t)(where % 4);
    m->value[args[0]] = where % 4 != 0;
  } else if (task->pattern == COUNT) {
    m->value[args[0]] = ++m->counter[args[0]] < m->limit[args[0]];
  }
  assert_true(m->log_count < MAX_LOG);
  m->log[m->log_count][0] = node;
  m->log[m->log_count++][1] = counters;
}

static int64_t memory_flag(world *w, uint32_t node) {
  memory *m = w->user;
  if (w->plan->nodes[node].op != GK_OP_CHECKPOINT) return m->value[w->plan->nodes[node].flag];
  if (!m->yields || !m->yields_left || pick(&m->yields, 3)) return 0;
  --m->yields_left;
  return 1;
}

static uint32_t checkpoint_around(const gk_plan *plan, uint32_t node) {
  while (node && plan->nodes[node].op != GK_OP_CHECKPOINT) node = plan->nodes[node].parent;
  return node;
}

static void start_memory(memory *m, uint64_t seed) {
  memset(m, 0, sizeof *m);
  m->seed = mix(seed);
}

static long guarantees, interruptions;

static void one_guarantee(uint64_t seed) {
  static gk_task tasks[MAX_TASKS];
  static gk_slot_desc slots[MAX_TASKS];
  static memory whole, parts;
  writer out = {.g = {.random = mix(~seed), .tasks = tasks, .budget = 16}, .next = FLAG + 1};
  put_safe_block(&out, 0, false, false);
  put_safe_block(&out, 0, false, false);
  for (gk_slot k = 1; k < out.next; ++k) slots[k] = (gk_slot_desc)GK_BUFFER(k, int);
  gk_list list = {GK_ABI, "guarantee", tasks, out.g.count, slots + 1, (size_t)out.next - 1};
  uint64_t passes[MAX_TASKS] = {0};
  world w = {.execute = memory_execute, .flag = memory_flag, .user = &whole, .random = out.g.random};
  world_begin(&w, &list, 0);
  start_memory(&whole, seed);
  assert_int_equal(world_launch(&w, 0), GK_FINISHED);
  ++guarantees;
  for (uint32_t k = 0; k < w.plan->loop_count; ++k) passes[k] = w.record.passes[k];
  bool bounds[MAX_TASKS];
  memcpy(bounds, w.record.hit_bound, w.plan->loop_count);

  start_memory(&parts, seed);
  parts.yields = mix(seed + 1);
  parts.yields_left = 30;
  w.user = &parts;
  w.takes = (seed & 1 ? TAKES_LOOP : 0) | (seed & 2 ? TAKES_FORK : 0) | (seed & 4 ? TAKES_CHECKPOINT : 0);
  uint32_t target = 0;
  for (gk_state state = GK_YIELDED; state == GK_YIELDED;) {
    state = world_launch(&w, target);
    target = w.record.yielded;
    for (uint32_t k = 0; k < w.plan->loop_count; ++k) {
      if (!checkpoint_around(w.plan, w.plan->loops[k])) passes[k] -= w.record.passes[k];
      bounds[k] = bounds[k] && !w.record.hit_bound[k];
    }
    if (state != GK_YIELDED) break;
    ++interruptions; /* what the yielding block did is done again */
    while (parts.log_count && checkpoint_around(w.plan, parts.log[parts.log_count - 1][0]) == target) --parts.log_count;
  }
  bool same = parts.log_count == whole.log_count &&
              !memcmp(parts.log, whole.log, whole.log_count * sizeof *whole.log) &&
              !memcmp(parts.counter, whole.counter, sizeof whole.counter);
  for (uint32_t k = 0; k < w.plan->loop_count; ++k)
    same &= !bounds[k] && (!passes[k] || checkpoint_around(w.plan, w.plan->loops[k]));
  if (!same) {
    show(&w, seed, 0, "the interrupted run differs");
    fail_msg("the interrupted run differs");
  }
  world_end(&w);
}

TEST(test_guarantee) {
  each_list(one_guarantee, 10000);
  print_message("%ld interruptions\n", interruptions);
  if (!getenv("GK_SEED")) assert_true(4 * interruptions > guarantees); /* or it tests nothing */
}

TEST(test_contract) {
  each_list(one_list, 20000);
  print_message("%ld launches, %ld resumed: %ld yielded, %ld cancelled, %ld hit a bound; %ld checkpoints in one step\n",
                launches, resumes, yields, cancels, limits, checkpoint_steps);
  if (getenv("GK_SEED")) return;
  assert_true(yields > launches / 50 && cancels > launches / 100 && limits > launches / 50 &&
              checkpoint_steps > launches / 50); /* or it tests nothing */
}

/* walk.inc with tapes of runs, in place of the walker. */
TEST(test_contract_by_tapes) {
  by_tapes = true;
  launches = yields = cancels = limits = resumes = 0;
  each_list(one_list, 20000);
  print_message("%ld launches, %ld resumed: %ld yielded, %ld cancelled, %ld hit a bound; %ld tapes, %ld runs enqueued, "
                "%ld executed, %ld steps\n", launches, resumes, yields, cancels, limits, tapes, enqueued,
                executed, steps_taken);
  if (getenv("GK_SEED")) return;
  assert_true(enqueued <= 4 * executed); /* guesses are good */
  assert_true(steps_taken > executed / 20);
}

int main(void) { return run_all_tests(); }
