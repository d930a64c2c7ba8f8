/* Random lists on a device that knows nothing but gates, side by side with the contract read aloud. */
#ifndef GATES_BENCH_H
#define GATES_BENCH_H
#include "oracle.h"
#include "gates_device.h"
#include "base/op.h"

/* ---- lists ------------------------------------------------------------------------------------------------------- */

static void put_some(generator *g) {
  for (uint32_t items = 1 + pick(&g->random, 5); items; --items) put_item(g, 0, false, false);
}

/* As deep as lists may be: loops and branches in each other, with checkpoints at all levels. */
static void put_deep(generator *g) {
  const uint32_t depth = 40 + pick(&g->random, GK_MAX_DEPTH - 40);
  for (uint32_t k = 0; k < depth; ++k) {
    const uint32_t what = pick(&g->random, 6);
    if (pick(&g->random, 3) == 0) put_task(g, 0);
    if (pick(&g->random, 8) == 0) {
      put(g, (gk_task){.op = GK_OP_CHECKPOINT, .flag = FLAG, .label = ++g->labels});
      put_task(g, 0);
      put_end(g);
    }
    if (what < 4) put(g, (gk_task){.op = what < 3 ? GK_OP_DO_WHILE : GK_OP_WHILE, .flag = FLAG});
    else put(g, (gk_task)GK_IF(FLAG));
    if (what == 4) {
      put_task(g, 0);
      put(g, (gk_task)GK_ELSE);
    }
  }
  put(g, (gk_task){.op = GK_OP_CHECKPOINT, .flag = FLAG, .label = ++g->labels});
  put_task(g, 0);
  put_end(g);
  for (uint32_t k = 0; k < depth; ++k) {
    if (pick(&g->random, 4) == 0) put_task(g, 0);
    put_end(g);
  }
}

/* Counts that wait, and launches that then go elsewhere: loops with bounds, a few checkpoints in them and beside. */
static void put_waiting(generator *g) {
  const uint32_t depth = 1 + pick(&g->random, 3);
  for (uint32_t k = 0; k <= 2 * depth; ++k) { /* into the loops, and out again */
    if (pick(&g->random, 3) == 0) put_task(g, 0);
    if (pick(&g->random, 3)) {
      put(g, (gk_task){.op = GK_OP_CHECKPOINT, .flag = FLAG, .label = ++g->labels});
      put_end(g);
    }
    if (k < depth)
      put(g, (gk_task){.op = pick(&g->random, 2) ? GK_OP_DO_WHILE : GK_OP_WHILE, .flag = FLAG,
                       .max_iterations = 1 + pick(&g->random, 4), .every = pick(&g->random, 4)});
    else if (k < 2 * depth) put_end(g);
  }
}

/* Straight bodies that may stand several times, many of them with passes left for a loop. */
static void put_repeats(generator *g) {
  const bool loops = pick(&g->random, 2) != 0;
  if (loops) put(g, (gk_task){.op = pick(&g->random, 2) ? GK_OP_DO_WHILE : GK_OP_REPEAT, .flag = FLAG});
  for (uint32_t items = 1 + pick(&g->random, 4); items; --items) {
    const bool branches = !pick(&g->random, 3), forks = !pick(&g->random, 3);
    if (!pick(&g->random, 3)) put(g, (gk_task){.op = GK_OP_CHECKPOINT, .flag = FLAG, .label = ++g->labels}), put_end(g);
    if (branches) put(g, (gk_task)GK_IF(FLAG));
    const uint32_t passes = 1 + pick(&g->random, pick(&g->random, 2) ? 100 : 12), what = pick(&g->random, 4);
    gk_task loop = {.op = what < 2 ? GK_OP_REPEAT : what == 2 ? GK_OP_WHILE : GK_OP_DO_WHILE, .flag = FLAG,
                    .max_iterations = pick(&g->random, 3) ? 0 : 1 + pick(&g->random, 100)};
    if (what < 2) loop.flag = -(gk_slot)passes;
    else loop.every = passes;
    put(g, loop);
    for (uint32_t tasks = pick(&g->random, 3); tasks; --tasks) put_task(g, 0);
    for (uint32_t k = 0; forks && k < 2; ++k) {
      put(g, k ? (gk_task)GK_SECTION : (gk_task)GK_PARALLEL);
      if (k) put_task(g, 0), put_end(g), put_end(g);
    }
    put_end(g);
    if (branches) put_end(g);
  }
  if (loops) put_end(g);
}

/* ---- the tasks --------------------------------------------------------------------------------------------------- */

static inline uint32_t next_task(const gk_plan *plan, uint32_t at) {
  do ++at;
  while (at < plan->node_count && !gki_op_is_task(plan->nodes[at].op));
  return at;
}

/* The first task of the loop whose last task this is: its body stands once more. */
static inline uint32_t first_again(const gk_gates *g, uint32_t task) {
  uint32_t loop = task;
  while (loop && !gki_op_is_loop(g->plan->nodes[loop].op)) loop = g->plan->nodes[loop].parent;
  const gk_node *n = &g->plan->nodes[loop];
  assert_true(n->op == GK_OP_REPEAT ? n->count && !(g->bits & GK_WITH_CANCEL) : n->every > 1);
  assert_true(next_task(g->plan, task) >= n->end);
  return next_task(g->plan, loop);
}

/* All of them are there, in the list's order. */
static inline void check_tasks(const gk_gates *g) {
  uint32_t task = 0;
  for (uint32_t k = 0; k < g->node_count; ++k) {
    if (g->nodes[k].kind != GK_GATE_TASK) continue;
    const uint32_t next = next_task(g->plan, task);
    task = g->nodes[k].node == next ? next : first_again(g, task);
    assert_int_equal(g->nodes[k].node, task);
  }
  assert_int_equal(next_task(g->plan, task), g->plan->node_count);
}

/* ---- what happened on one side, against the other ---------------------------------------------------------------- */

typedef struct bench {
  const gk_plan *plan;
  trace t;
  int32_t cancel;
} bench;

static void bench_execute(void *user, uint32_t node) {
  bench *b = user;
  trace_run(&b->t, b->plan->nodes[node].source);
}
static int64_t bench_read(void *user, uint32_t node) {
  bench *b = user;
  return trace_read(&b->t, b->plan->nodes[node].source);
}
static bool bench_cancelled(void *user) { return ((bench *)user)->cancel != 0; }

/* Per section, what happened in it and how much had happened around it: the same for any order of sections. */
static void digest(const oracle *o, const trace *t, uint64_t sums[MAX_TASKS]) {
  uint32_t section[MAX_TASKS], around[MAX_TASKS] = {0}, open[MAX_TASKS], depth = 0, now = 0;
  uint64_t happened[MAX_TASKS] = {0};
  memset(sums, 0, MAX_TASKS * sizeof *sums);
  for (uint32_t k = 0; k < o->count; ++k) {
    section[k] = now;
    if (opens(o->tasks[k].op)) open[depth++] = now;
    if (o->tasks[k].op == GK_OP_SECTION) {
      around[k] = now;
      now = k; /* never 0: a SECTION is in a PARALLEL */
    }
    if (o->tasks[k].op == GK_OP_END) now = open[--depth];
  }
  for (uint32_t k = 0; k < t->log_count; ++k) {
    const uint32_t event = t->log[k], s = section[event >= READ ? event - READ : event];
    uint64_t sum = event;
    for (uint32_t up = s; up; up = around[up]) sum = mix(sum + happened[around[up]]);
    sums[s] = mix(sums[s] ^ sum);
    ++happened[s];
  }
}

/* NULL: the same, as far as sections have an order. */
static const char *compare_traces(const bench *b, const oracle *o, bool interleaved) {
  static uint64_t ours[MAX_TASKS], theirs[MAX_TASKS];
  if (memcmp(b->t.runs, o->t.runs, sizeof b->t.runs) != 0) return "other tasks ran";
  if (memcmp(b->t.reads, o->t.reads, sizeof b->t.reads) != 0) return "other flags were read";
  if (b->t.log_count != o->t.log_count) return "more or less happened";
  if (memcmp(b->t.numbers, o->t.numbers, sizeof b->t.numbers) != 0) return "other pass numbers";
  if (!interleaved && memcmp(b->t.log, o->t.log, b->t.log_count * sizeof *b->t.log) != 0) return "another order";
  digest(o, &b->t, ours);
  digest(o, &o->t, theirs);
  if (memcmp(ours, theirs, sizeof ours) != 0) return "another order in a section";
  return NULL;
}
#endif
