/* Random lists, and docs/contract.md read aloud: what a launch of a list must do. It walks the flat array and knows
 * nothing of plans, so that the walker and the gates can be held against it. */
#ifndef ORACLE_H
#define ORACLE_H
#include "chance.h"
#include "gk_backend.h"
#include "unit/support/test.h"

enum { MAX_TASKS = 400, MAX_LOG = 20000, FLAG = 1, READ = 1 << 20, TRUE_READS = 10 };

/* ---- random lists ------------------------------------------------------------------------------------------------ */

typedef struct generator {
  uint64_t random;
  gk_task *tasks;
  uint32_t count, budget;
  int32_t labels;
  bool has_cancel;
  bool never_yields; /* no YIELD */
  bool has_hosts;    /* CALL_HOSTs among the tasks */
} generator;

static gk_kernel kernel = {.name = "task"};

static void put(generator *g, gk_task task) {
  assert_true(g->count < MAX_TASKS);
  g->tasks[g->count++] = task;
}
static void put_end(generator *g) { put(g, (gk_task)GK_END); }
static void put_task(generator *g, uint32_t bits) {
  if (g->has_hosts && !pick(&g->random, 8)) put(g, (gk_task){.op = GK_OP_CALL_HOST, .bits = bits, .args = {FLAG}});
  else put(g, (gk_task){.op = GK_OP_KERNEL, .bits = bits, .kernel = &kernel, .args = {FLAG}});
}

static void put_block(generator *g, uint32_t depth, bool in_section, bool in_checkpoint);

static void put_item(generator *g, uint32_t depth, bool in_section, bool in_checkpoint) {
  uint32_t what = pick(&g->random, depth < 6 ? 14 : 3), count = pick(&g->random, 4);
  uint32_t bound = pick(&g->random, 3) ? 0 : 1 + pick(&g->random, 4);
  const gk_slot constant = (gk_slot)pick(&g->random, 4);
  const uint32_t every = pick(&g->random, 3) ? 0 : 1 + pick(&g->random, 4);
  if (g->budget) --g->budget;
  switch (what) {
  case 3: case 4: case 5: case 6:
    put(g, (gk_task){.op = what < 5 ? GK_OP_DO_WHILE : what == 5 ? GK_OP_WHILE : GK_OP_REPEAT,
                     .flag = FLAG, .max_iterations = bound});
    if (g->tasks[g->count - 1].op == GK_OP_REPEAT && constant) g->tasks[g->count - 1].flag = -(gk_slot)constant;
    if (g->tasks[g->count - 1].op != GK_OP_REPEAT) g->tasks[g->count - 1].every = every;
    put_block(g, depth + 1, in_section, in_checkpoint);
    break;
  case 7:
    put(g, (gk_task)GK_IF(FLAG));
    put_block(g, depth + 1, in_section, in_checkpoint);
    if (count < 2) {
      put(g, (gk_task)GK_ELSE);
      put_block(g, depth + 1, in_section, in_checkpoint);
    }
    break;
  case 8:
    put(g, (gk_task)GK_SWITCH(FLAG));
    for (; count; --count) {
      put(g, (gk_task)GK_CASE);
      put_block(g, depth + 1, in_section, in_checkpoint);
      put_end(g);
    }
    break;
  case 9: case 10:
    put(g, (gk_task)GK_PARALLEL);
    for (; count; --count) {
      put(g, (gk_task)GK_SECTION);
      put_block(g, depth + 1, true, in_checkpoint);
      put_end(g);
    }
    break;
  case 11: case 12: case 13:
    if (in_section || in_checkpoint) {
      put_task(g, 0);
      return;
    }
    if (what == 13 && !g->never_yields && pick(&g->random, 3) == 0) {
      put(g, (gk_task)GK_YIELD(++g->labels * 7 - 20));
      return;
    }
    put(g, (gk_task){.op = GK_OP_CHECKPOINT, .flag = count ? FLAG : 0, .label = ++g->labels * 7 - 20});
    put_block(g, depth + 1, in_section, true);
    break;
  default: put_task(g, depth == 0 && !pick(&g->random, 4) ? GK_ALWAYS : 0); return;
  }
  put_end(g);
}

static void put_block(generator *g, uint32_t depth, bool in_section, bool in_checkpoint) {
  for (uint32_t items = pick(&g->random, 4); items && g->budget; --items) put_item(g, depth, in_section, in_checkpoint);
}

/* ---- what both sides see of the world ---------------------------------------------------------------------------- */

typedef struct trace {
  uint64_t seed;
  const gk_task *tasks;
  uint32_t reads[MAX_TASKS];  /* of that task's flag, in all launches */
  uint32_t runs[MAX_TASKS];
  uint32_t log[MAX_LOG], log_count; /* of this launch: a task that ran, or READ + one whose flag was read */
  long until_cancel;                /* tasks to run before the launch is cancelled */
  int32_t *cancel;
  const uint32_t *around; /* by task: 1 + the loop around it whose pass number it reads; 0: none. NULL: no task does */
  uint64_t (*pass)(const void *user, uint32_t loop); /* that number now; for both sides, loops are tasks */
  const void *user;
  uint64_t numbers[MAX_TASKS]; /* by task: a digest of what it read, in all launches */
} trace;

/* What a flag says when it is read for the n-th time; in the end always false, so that every list ends. */
static int64_t trace_read(trace *t, uint32_t task) {
  uint32_t n = t->reads[task]++;
  assert_true(t->log_count < MAX_LOG);
  t->log[t->log_count++] = READ + task;
  uint64_t value = mix(t->seed ^ mix(task * UINT64_C(1000003) + n));
  if (t->tasks[task].op == GK_OP_SWITCH) return (int64_t)(value % 5) - 1;
  if (t->tasks[task].op == GK_OP_REPEAT) return n < TRUE_READS ? (int64_t)(value % 6) - 2 : 0;
  uint32_t odds = t->tasks[task].op == GK_OP_CHECKPOINT ? 5 : 2;
  return n < TRUE_READS && value % odds == 0 ? (value & 64 ? -3 : 1) : 0;
}

static void trace_run(trace *t, uint32_t task) {
  assert_true(t->log_count < MAX_LOG);
  t->log[t->log_count++] = task;
  ++t->runs[task];
  if (t->around && t->around[task]) t->numbers[task] = mix(t->numbers[task] ^ t->pass(t->user, t->around[task] - 1));
  if (t->until_cancel > 0 && --t->until_cancel == 0) *t->cancel = 1;
}

/* ---- the contract, read aloud: it walks the flat list and knows nothing of plans --------------------------------- */

typedef struct oracle {
  trace t;
  const gk_task *tasks;
  uint32_t count;
  uint32_t mate[MAX_TASKS], otherwise[MAX_TASKS]; /* END of a block; ELSE of an IF or 0 */
  uint64_t entries[MAX_TASKS];
  int64_t counts[MAX_TASKS]; /* of REPEATs */
  bool waits[MAX_TASKS];     /* whether an entry has that count */
  bool numbered[MAX_TASKS];  /* loops whose pass number tasks read */
  uint32_t around[MAX_TASKS]; /* as in trace */
  int32_t cancel;
  /* this launch */
  bool stopped;
  int32_t target, yielded;
  uint64_t passes[MAX_TASKS];
  bool ran[MAX_TASKS], hit_bound[MAX_TASKS];
  int64_t limit;
} oracle;

static bool opens(gk_op op) {
  return (op >= GK_OP_DO_WHILE && op <= GK_OP_IF) || op == GK_OP_SWITCH || op == GK_OP_CASE || op == GK_OP_CHECKPOINT ||
         op == GK_OP_PARALLEL || op == GK_OP_SECTION;
}

static uint64_t oracle_pass(const void *user, uint32_t loop) { return ((const oracle *)user)->entries[loop]; }

/* In some lists, tasks read the pass number of the innermost of those loops around them that are chosen here. */
static void number_loops(oracle *o, uint64_t seed) {
  uint32_t open[MAX_TASKS], depth = 0, now = 0;
  const bool any = mix(seed ^ 0x9a55) % 3 == 0;
  for (uint32_t k = 0; k < o->count; ++k) {
    const gk_op op = o->tasks[k].op;
    o->numbered[k] = any && op >= GK_OP_DO_WHILE && op <= GK_OP_REPEAT && mix(seed ^ mix(k)) % 4 != 0;
    if (op == GK_OP_END) now = open[--depth];
    o->around[k] = now;
    if (opens(op)) open[depth++] = now;
    if (o->numbered[k]) now = k + 1;
  }
  o->t.around = o->around;
  o->t.pass = oracle_pass;
  o->t.user = o;
}

/* The other side's trace reads the same numbers, by `pass`. plan: of the oracle's list */
static void read_numbers(trace *t, const oracle *o, const gk_plan *plan,
                         uint64_t (*pass)(const void *user, uint32_t loop), const void *user) {
  t->around = o->around;
  t->pass = pass;
  t->user = user;
  for (uint32_t k = 0; k < plan->loop_count; ++k) {
    gk_node *node = (gk_node *)(uintptr_t)&plan->nodes[plan->loops[k]];
    node->is_numbered = o->numbered[node->source];
  }
}

static uint32_t loop_number(const gk_plan *plan, uint32_t task) {
  uint32_t k = 0;
  while (plan->nodes[plan->loops[k]].source != task) ++k;
  return k;
}

static void oracle_begin(oracle *o, const gk_task *tasks, uint32_t count, uint64_t seed) {
  memset(o, 0, sizeof *o);
  o->tasks = o->t.tasks = tasks;
  o->t.seed = seed;
  o->t.cancel = &o->cancel;
  o->count = count;
  uint32_t open[MAX_TASKS], depth = 0;
  for (uint32_t k = 0; k < count; ++k) {
    if (opens(tasks[k].op)) open[depth++] = k;
    else if (tasks[k].op == GK_OP_ELSE) o->otherwise[open[depth - 1]] = k;
    else if (tasks[k].op == GK_OP_END) o->mate[open[--depth]] = k;
  }
  number_loops(o, seed);
}

/* Rules 1 and 2. */
static bool is_live(const oracle *o) { return !o->stopped && !o->target; }
static bool holds_target(const oracle *o, uint32_t from, uint32_t to) {
  for (uint32_t k = from; o->target && k < to; ++k)
    if ((o->tasks[k].op == GK_OP_CHECKPOINT || o->tasks[k].op == GK_OP_YIELD) && o->tasks[k].label == o->target)
      return true;
  return false;
}

static void oracle_block(oracle *o, uint32_t from, uint32_t to);

static bool oracle_repeats(oracle *o, uint32_t k, bool resumed) { /* rules 15, 16 */
  if (!o->waits[k]) o->counts[k] = o->tasks[k].flag < 0 ? -o->tasks[k].flag : trace_read(&o->t, k);
  return o->waits[k] = resumed || o->counts[k] > 0;
}

static void oracle_loop(oracle *o, uint32_t k) { /* rules 4, 5, 10, 11, 15 to 19 */
  const gk_task *task = &o->tasks[k];
  bool resumed = holds_target(o, k, o->mate[k]), again = true;
  if (!resumed) {
    o->entries[k] = 0;
    o->waits[k] = false;
    if (task->op == GK_OP_WHILE) again = trace_read(&o->t, k) != 0;
  }
  const bool repeats = task->op == GK_OP_REPEAT;
  if (repeats) again = oracle_repeats(o, k, resumed);
  while (again) {
    oracle_block(o, k + 1, o->mate[k]);
    if (o->stopped) return;
    ++o->passes[k];
    ++o->entries[k];
    const uint32_t bound = task->max_iterations;
    if (task->every && o->entries[k] % task->every && !(bound && o->entries[k] >= bound)) continue;
    if (o->cancel) {
      o->stopped = true;
      return;
    }
    again = repeats ? (int64_t)o->entries[k] < o->counts[k] : trace_read(&o->t, k) != 0;
    if (again && bound && o->entries[k] >= bound) {
      again = false;
      o->hit_bound[k] = true;
      if (o->limit < 0) o->limit = k;
    }
  }
  o->entries[k] = 0;
  o->waits[k] = false;
}

static void oracle_checkpoint(oracle *o, uint32_t k) { /* rules 3, 11 */
  const gk_task *task = &o->tasks[k];
  if (o->target == task->label) o->target = 0;
  oracle_block(o, k + 1, o->mate[k]);
  o->ran[k] = true;
  if (o->stopped || !task->flag) return;
  if (trace_read(&o->t, k)) {
    o->yielded = task->label;
    o->stopped = true;
  } else if (o->cancel) {
    o->stopped = true;
  }
}

static void oracle_yield(oracle *o, uint32_t k) { /* rule 13 */
  if (o->target == o->tasks[k].label) o->target = 0;
  else if (is_live(o)) {
    o->ran[k] = o->stopped = true;
    o->yielded = o->tasks[k].label;
  }
}

static void oracle_choice(oracle *o, uint32_t k) { /* rules 5, 6 */
  uint32_t end = o->mate[k], other = o->otherwise[k];
  if (o->tasks[k].op == GK_OP_IF) {
    uint32_t then_end = other ? other : end;
    bool yes = o->target ? holds_target(o, k, then_end) : trace_read(&o->t, k) != 0;
    if (yes) oracle_block(o, k + 1, then_end);
    else if (other) oracle_block(o, other + 1, end);
    return;
  }
  int64_t value = o->target ? -1 : trace_read(&o->t, k), index = 0;
  for (uint32_t one = k + 1; one < end; one = o->mate[one] + 1, ++index)
    if (o->target ? holds_target(o, one, o->mate[one]) : index == value) {
      oracle_block(o, one + 1, o->mate[one]);
      return;
    }
}

static void oracle_parallel(oracle *o, uint32_t k) { /* rules 7, 11 */
  bool any = false;
  for (uint32_t one = k + 1; one < o->mate[k]; one = o->mate[one] + 1) {
    o->stopped = false;
    oracle_block(o, one + 1, o->mate[one]);
    any |= o->stopped;
  }
  o->stopped = any;
}

static void oracle_block(oracle *o, uint32_t from, uint32_t to) {
  for (uint32_t k = from; k < to; ++k) {
    const gk_task *task = &o->tasks[k];
    if (task->op == GK_OP_YIELD) {
      oracle_yield(o, k);
      continue;
    }
    bool runs = is_live(o) || (!o->stopped && opens(task->op) && holds_target(o, k, o->mate[k]));
    if (runs || (task->bits & GK_ALWAYS)) { /* rule 8 */
      switch (task->op) {
      case GK_OP_KERNEL: case GK_OP_CALL_HOST: trace_run(&o->t, k); break;
      case GK_OP_DO_WHILE: case GK_OP_WHILE: case GK_OP_REPEAT: oracle_loop(o, k); break;
      case GK_OP_CHECKPOINT: oracle_checkpoint(o, k); break;
      case GK_OP_PARALLEL: oracle_parallel(o, k); break;
      default: oracle_choice(o, k); break;
      }
    }
    if (opens(task->op)) k = o->mate[k];
  }
}

static void oracle_launch(oracle *o, int32_t target) {
  o->stopped = false;
  o->target = target;
  o->yielded = 0;
  o->limit = -1;
  o->t.log_count = 0;
  memset(o->passes, 0, sizeof o->passes);
  memset(o->ran, 0, sizeof o->ran);
  memset(o->hit_bound, 0, sizeof o->hit_bound);
  if (!target) {
    memset(o->entries, 0, sizeof o->entries);
    memset(o->waits, 0, sizeof o->waits);
  }
  oracle_block(o, 0, o->count);
}

/* ---- many of them ------------------------------------------------------------------------------------------------ */

/* GK_SEED=n runs the one list of a failure again, GK_LISTS=n as many as you like. */
static void each_list(void (*test)(uint64_t), long lists) {
  const char *seed = getenv("GK_SEED"), *count = getenv("GK_LISTS");
  if (seed) {
    test(strtoull(seed, NULL, 10));
    return;
  }
  lists = count ? atol(count) : (long)scaled((uint64_t)lists);
  for (long k = 0; k < lists; ++k) test(first_seed() + (uint64_t)k);
}
#endif
