/* Lists whose kernels count in a memory of cells, one per slot; every list with and without GK_STEP_LOOP and
 * GK_STEP_FORK, its tasks in runs and alone. */
#ifndef CELLS_H
#define CELLS_H
#include "unit/plan/walk_world.h"

enum { CELLS = 32, BIG = 4000, BY_TAPES = 16 };
enum { A = 1, B, C, D, E, F, G, H, N, M, K, X, Y, P, Q };
enum { LB = 101, LC, LP, LQ, LX, LY };

#define CELL(s) {.slot = (s), .type = GK_PTR, .name = #s, .element = "int", .element_bytes = 4}
static const gk_slot_desc slots[] = {CELL(A), CELL(B), CELL(C), CELL(D), CELL(E), CELL(F), CELL(G), CELL(H),
                                     CELL(N), CELL(M), CELL(K), CELL(X), CELL(Y), CELL(P), CELL(Q)};

static void run_tick(const gk_value *a, gk_range r) { (void)r; ++*(int32_t *)a[0].ptr; }
static void run_drop(const gk_value *a, gk_range r) { (void)r; --*(int32_t *)a[0].ptr; }
static void run_one(const gk_value *a, gk_range r) { (void)r; *(int32_t *)a[0].ptr = 1; }
static void run_two(const gk_value *a, gk_range r) { (void)r; *(int32_t *)a[0].ptr = 2; }
static void run_five(const gk_value *a, gk_range r) { (void)r; *(int32_t *)a[0].ptr = 5; }
static void run_move(const gk_value *a, gk_range r) { (void)r; *(int32_t *)a[0].ptr = *(int32_t *)a[1].ptr; }

#define KERNEL(id) static const gk_kernel id = {.name = #id, .host = run_##id}
KERNEL(tick); KERNEL(drop); KERNEL(one); KERNEL(two); KERNEL(five); KERNEL(move);
static int32_t *cancel_at; /* `halt` cancels the launch */
static void run_halt(const gk_value *a, gk_range r) { (void)a; (void)r; *cancel_at = 1; }
KERNEL(halt);
/* Raises a flag every second time: when it runs first, not when it runs again. */
static void run_ask(const gk_value *a, gk_range r) { (void)r; *(int32_t *)a[0].ptr = ++*(int32_t *)a[1].ptr & 1; }
KERNEL(ask);
#define DO(k, ...) GK_RUN(k, GK_ONE, __VA_ARGS__)

typedef struct cells {
  int32_t at[CELLS][2];
  uint32_t reads[BIG];
} cells;

static void cells_execute(world *w, uint32_t node) {
  cells *c = w->user;
  const gk_node *task = &w->plan->nodes[node];
  gk_value args[GK_MAX_ARGS];
  if (!task->kernel) return; /* a library call, which does nothing */
  for (uint32_t k = 0; k < task->arg_count; ++k) args[k].ptr = c->at[w->plan->args[task->args + k]];
  task->kernel->host(args, (gk_range){0, 1, {1, 1, 1}});
}

static int64_t cells_flag(world *w, uint32_t node) {
  cells *c = w->user;
  const gk_node *block = &w->plan->nodes[node];
  if (node < BIG) ++c->reads[node];
  return c->at[block->flag][block->offset / 4];
}

static struct {
  world w;
  cells c;
} t;

static void begin(const gk_task *tasks, size_t count, uint32_t mode) {
  memset(&t, 0, sizeof t);
  gk_list list = {GK_ABI, "test", tasks, count, slots, GK_COUNT(slots)};
  t.w = (world){.execute = cells_execute, .flag = cells_flag, .user = &t.c, .random = mode};
  t.w.takes = (mode & 1 ? TAKES_LOOP : 0) | (mode & 2 ? TAKES_FORK : 0) | (mode & 8 ? TAKES_CHECKPOINT : 0);
  if (mode & BY_TAPES) t.w.takes = TAKES_TAPES;
  cancel_at = &t.w.cancel;
  world_begin(&t.w, &list, mode & 4 ? GK_ISOLATE : 0);
}

/* Runs in all modes: loops, forks and checkpoints by steps or by the backend, tasks in runs or alone; and by tapes. */
static void walk_in_modes(const gk_task *tasks, size_t count, void (*body)(uint32_t mode)) {
  static const uint32_t by_tapes[] = {BY_TAPES, BY_TAPES | 4};
  for (uint32_t k = 0; k < 16 + GK_COUNT(by_tapes); ++k) {
    const uint32_t mode = k < 16 ? k : by_tapes[k - 16];
    begin(tasks, count, mode);
    body(mode);
    world_end(&t.w);
  }
}

/* WALK(name, tasks...) {...}: a test of a list of these tasks. */
#define WALK(name, ...) \
  static const gk_task name##_tasks[] = {__VA_ARGS__}; \
  static void name##_in(uint32_t mode); \
  TEST(name) { walk_in_modes(name##_tasks, GK_COUNT(name##_tasks), name##_in); } \
  static void name##_in(__attribute__((unused)) uint32_t mode)

#define CELL_OF(s) (t.c.at[s][0])

static gk_state launch(int32_t label) {
  uint32_t node = label ? gki_plan_label(t.w.plan, label) : 0;
  assert_true(!label || node);
  return world_launch(&t.w, node);
}
static int32_t yielded(void) { return t.w.record.yielded ? t.w.plan->nodes[t.w.record.yielded].label : 0; }

typedef struct cell_value { gk_slot slot; int32_t value; } cell_value;

static void set_cells(size_t count, const cell_value *all) {
  for (size_t k = 0; k < count; ++k) CELL_OF(all[k].slot) = all[k].value;
}
static void expect_cells(size_t count, const cell_value *all, int line) {
  for (size_t k = 0; k < count; ++k)
    if (CELL_OF(all[k].slot) != all[k].value)
      fail_msg("line %d, takes %u: %s is %d, not %d", line, t.w.takes, slots[all[k].slot - 1].name,
               CELL_OF(all[k].slot), all[k].value);
}
static void expect_state(int32_t label, gk_state wanted, int line) {
  const gk_state state = launch(label);
  if (state != wanted) fail_msg("line %d, takes %u: state %d, not %d", line, t.w.takes, (int)state, (int)wanted);
}
#define CELL_VALUES(...) GK_COUNT(((const cell_value[]){__VA_ARGS__})), (const cell_value[]){__VA_ARGS__}
/* SET({N, 2}, {F, 1}); LAUNCH(label, state, {A, 1}, {B, 0}): the cells afterwards; EXPECT({A, 1}, {B, 0}). */
#define SET(...) set_cells(CELL_VALUES(__VA_ARGS__))
#define EXPECT(...) expect_cells(CELL_VALUES(__VA_ARGS__), __LINE__)
#define LAUNCH(label, state, ...) \
  do { \
    expect_state(label, state, __LINE__); \
    EXPECT(__VA_ARGS__); \
  } while (0)
#endif
