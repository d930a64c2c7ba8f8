/* The costs of deciding that a dump tells: against launches on a device that knows nothing but gates, and, for the
 * usual lowering, against numbers counted by hand. */
#include "dump/dump.h"
#include "unit/support/oracle.h"
#include "unit/support/gates_device.h"
#include "dump/formats.h"
#include "lowering/letters.h"
#include <stdio.h>

static const gk_slot_desc slots[] = {GK_BUFFER(FLAG, int)};

typedef struct subject {
  gki_blocks blocks;
  gki_planned planned;
  gki_gate_counts counts;
} subject;

static void subject_begin(subject *s, const gk_task *tasks, size_t count, uint32_t bits) {
  const gk_list list = {GK_ABI, "list", tasks, count, slots, GK_COUNT(slots)};
  assert_int_equal(gki_blocks_read(&s->blocks, &list), GK_OK);
  assert_int_equal(gki_plan_make(&s->planned, &s->blocks, NULL, bits), GK_OK);
  assert_int_equal(gki_dump_count(&s->planned.plan, &s->counts), GK_OK);
  assert_int_equal(s->counts.row_count, 1 + s->planned.plan.loop_count);
}
static void subject_end(subject *s) {
  gki_arena_free(&s->counts.arena);
  gki_plan_free(&s->planned);
  gki_blocks_free(&s->blocks);
}

static size_t read_letters(const char *letters, gk_task *tasks) {
  size_t count = 0;
  for (; letters[count]; ++count) assert_true(task_of(letters[count], &kernel, (int32_t)count + 1, &tasks[count]));
  return count;
}

/* ---- launches ---------------------------------------------------------------------------------------------------- */

/* Loops make `passes` each time that they are entered, by number; checkpoints don't yield. */
typedef struct flags { const gk_plan *plan; uint32_t passes[MAX_TASKS], made[MAX_TASKS]; } flags;

static void no_task(void *user, uint32_t node) { (void)user, (void)node; }
static bool never(void *user) { return (void)user, false; }
static int64_t read_flag(void *user, uint32_t node) {
  flags *f = user;
  const gk_node *n = &f->plan->nodes[node];
  if (n->op != GK_OP_DO_WHILE && n->op != GK_OP_WHILE) return 0;
  uint32_t *made = &f->made[n->loop]; /* times that its flag was read since it was entered */
  const bool again = ++*made < f->passes[n->loop] + (n->op == GK_OP_WHILE);
  if (!again) *made = 0;
  return again;
}

typedef struct executed { uint64_t passes[MAX_TASKS + 1], tasks; gki_gate_count count; } executed; /* [0]: the launch */

static executed execute(const gk_plan *plan, uint32_t bits, flags *f) {
  const gk_gates *gates;
  device d;
  device_graph graph;
  assert_int_equal(gk_gates_make(plan, bits, &gates), GK_OK);
  device_begin(&d, plan);
  f->plan = plan;
  d.execute = no_task;
  d.read = read_flag;
  d.cancelled = never;
  d.user = f;
  graph_begin(&graph, gates);
  device_launch(&d, &graph, GK_NONE);
  executed e = {.passes = {1}, .tasks = (uint64_t)d.tasks, .count = {(uint32_t)d.kernels, (uint32_t)d.conditionals}};
  for (uint32_t k = 0; k < plan->loop_count; ++k) e.passes[k + 1] = d.loops[k].passes;
  graph_end(&graph);
  device_end(&d);
  return e;
}

static const uint32_t bits_of[GKI_LOWERINGS] = {
    [GKI_FRESH] = GK_WITH_GUARDS | GK_WITH_SWITCH, [GKI_RESUME] = GK_WITH_GUARDS | GK_WITH_SWITCH | GK_WITH_RESUME,
    [GKI_PLAIN_FRESH] = GK_WITH_GUARDS | GK_WITH_PLAIN,
    [GKI_PLAIN_RESUME] = GK_WITH_GUARDS | GK_WITH_PLAIN | GK_WITH_RESUME,
    [GKI_IFS_FRESH] = GK_WITH_GUARDS, [GKI_IFS_RESUME] = GK_WITH_GUARDS | GK_WITH_RESUME};

/* A launch with so many passes, by the table. */
static gki_gate_count told(const gki_gate_counts *counts, gki_lowering how, const uint64_t *passes) {
  gki_gate_count sum = {0, 0};
  for (uint32_t k = 0; k < counts->row_count; ++k) {
    const uint32_t times = (uint32_t)(passes[k] / counts->passes[k]);
    sum.control += times * counts->rows[how][k].control;
    sum.conditional += times * counts->rows[how][k].conditional;
  }
  return sum;
}

/* Whether some loop may begin another pass without a node being left and reached again: its body ends in a WHILE that
 * goes on meanwhile, or has no task. Then a launch executes less than it is told to. */
static bool goes_round(const gk_plan *plan) {
  for (uint32_t k = 0; k < plan->loop_count; ++k) {
    const gk_node *loop = &plan->nodes[plan->loops[k]];
    bool has_task = false;
    for (uint32_t i = plan->loops[k] + 1; i < loop->end; ++i) has_task = has_task || gki_op_is_task(plan->nodes[i].op);
    if (loop->op != GK_OP_DO_WHILE || !has_task) return true;
  }
  return false;
}

static char where[40]; /* what to try again */

static void check_told(const subject *s, gki_lowering how, uint32_t cancel, flags *f, executed *e) {
  *e = execute(&s->planned.plan, bits_of[how] | cancel, f);
  const gki_gate_count sum = told(&s->counts, how, e->passes);
  uint64_t tasks = 0;
  for (uint32_t k = 0; k < s->counts.row_count; ++k) tasks += e->passes[k] / s->counts.passes[k] * s->counts.tasks[k];
  const bool same = sum.control == e->count.control && sum.conditional == e->count.conditional;
  const bool less = sum.control >= e->count.control && sum.conditional >= e->count.conditional;
  if (tasks == e->tasks && (same || (less && goes_round(&s->planned.plan)))) return;
  char *text = gki_plan_dump(&s->planned.plan, "text");
  fprintf(stderr, "%s", text ? text : "");
  gk_host_free(text);
  fail_msg("%slowering %u: %u + %u by the dump, %u + %u executed", where, (unsigned)how, (unsigned)sum.control,
           (unsigned)sum.conditional, (unsigned)e->count.control, (unsigned)e->count.conditional);
}

/* ---- lists whose cost is known ----------------------------------------------------------------------------------- */

typedef struct known {
  const char *letters;
  uint32_t passes[3];
  gki_gate_count counts[GKI_LOWERINGS]; /* of a launch; the usual one's by hand */
} known;

#define STRAIGHT "Yt.Yt.Yt.Yt.Yt.Yt.Yt.Yt.Yt.Yt.Yt.Yt.Yt.Yt.Yt.Yt.Yt.Yt.Yt.Yt."
static const known lists[] = {
    /* 10 passes with 3 checkpoints: 1 gate + 10 * (3 * 2 + 1), 1 gate + the loop + 10 * 3. */
    {"tDYt.Yt.Yt..", {10}, {{71, 32}, {30, 1}, {30, 1}, {40, 1}, {40, 1}}},
    /* A soft body's step, 4 passes of 5 inner ones. */
    {"tDYttt.PXt.Xtt.Xttt..Dttt.ttt.", {4, 5}, {{113, 86}, {28, 9}, {28, 9}, {36, 9}, {36, 9}}},
    {STRAIGHT, {0}, {{40, 20}, {20, 0}, {20, 0}, {20, 0}, {20, 0}}},
    /* A decision begins the body: it is made before the loop, and then by the loop's end. */
    {"tDY.t.", {10}, {{1 + 10 * 4, 2 + 10 * 2}, {11, 1}, {20, 1}, {20, 1}, {20, 1}}},
    /* No checkpoints: the inner loop is re-enabled by the end of the outer one, not by a kernel. */
    {"DtWtt.t.", {3, 2}, {{3 + 3 * (2 + 1), 1 + 3}, {3 + 3 * 2 + 3, 1 + 3}, {12, 4}, {12, 4}, {12, 4}}},
    {"ttt", {0}, {{0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}}},
};

TEST(test_known) {
  for (size_t k = 0; k < GK_COUNT(lists); ++k) {
    const known *list = &lists[k];
    gk_task tasks[MAX_TASKS];
    subject s;
    flags f = {0};
    executed e = {.passes = {1}};
    subject_begin(&s, tasks, read_letters(list->letters, tasks), 0);
    memcpy(f.passes, list->passes, sizeof list->passes);
    for (gki_lowering how = GKI_LOWERINGS; how-- > 0;) { /* the usual one last: with the passes that were made */
      if (how != GKI_USUAL) check_told(&s, how, 0, &f, &e);
      const gki_gate_count sum = told(&s.counts, how, e.passes);
      const gki_gate_count want = list->counts[how < GKI_IFS_FRESH ? how : how - GKI_IFS_FRESH + GKI_FRESH];
      if (sum.control != want.control || sum.conditional != want.conditional) /* no branches: no SWITCH */
        fail_msg("%s, lowering %u: %u + %u, not %u + %u", list->letters, (unsigned)how, (unsigned)sum.control,
                 (unsigned)sum.conditional, (unsigned)want.control, (unsigned)want.conditional);
    }
    subject_end(&s);
  }
}

/* What else the usual lowering has gates and kernels for, each in a list of its own. */
TEST(test_usual) {
  static const struct { const char *letters; gki_gate_count count; } usual[] = {
      {"K.", {2, 1}}, {"K.t", {3, 2}}, {"K.a", {2, 1}}, {"Kttt.", {2, 1}}, {"K.It.", {2 + 2, 1 + 2}}, {"It.", {1, 1}},
      {"ItEt.", {1, 2}}, {"SCt.Ct.Ct..", {1, 3}}, {"S.", {1, 0}}, {"PXt.Xt..", {0, 0}}, {"K.PXt.Xtt..", {3, 2}},
      {"K.PXDt..Xt..", {4, 3}}, {"KPXt.Xt..t.", {2, 1}}};
  for (size_t k = 0; k < GK_COUNT(usual); ++k) {
    gk_task tasks[MAX_TASKS];
    subject s;
    subject_begin(&s, tasks, read_letters(usual[k].letters, tasks), 0);
    const gki_gate_count total = gki_dump_total(&s.counts, GKI_USUAL);
    if (total.control != usual[k].count.control || total.conditional != usual[k].count.conditional)
      fail_msg("%s: %u + %u", usual[k].letters, (unsigned)total.control, (unsigned)total.conditional);
    subject_end(&s);
  }
}

/* A SWITCH node, or a node for each case that isn't empty. */
TEST(test_switch) {
  gk_task tasks[MAX_TASKS];
  subject s;
  subject_begin(&s, tasks, read_letters("SCt.C.Ct.Ct..", tasks), 0);
  for (gki_lowering how = GKI_FRESH; how < GKI_LOWERINGS; ++how)
    assert_int_equal(gki_dump_total(&s.counts, how).conditional, how == GKI_FRESH || how == GKI_RESUME ? 1 : 3);
  char *text = gki_plan_dump(&s.planned.plan, "text");
  assert_non_null(strstr(text, "\n2 conditional nodes more without SWITCH nodes"));
  gk_host_free(text);
  subject_end(&s);
}

/* ---- random lists ------------------------------------------------------------------------------------------------ */

static struct { uint64_t lists, loops, exact, ours[2], usual[2]; } sum;

/* Branches take one case of those that are counted: such lists are left out. */
static void random_list(uint64_t seed) {
  static gk_task tasks[MAX_TASKS];
  generator g = {.random = mix(seed ^ 0xd0b9), .tasks = tasks, .budget = 24, .never_yields = true};
  for (uint32_t items = 1 + pick(&g.random, 5); items; --items) put_item(&g, 0, false, false);
  for (uint32_t k = 0; k < g.count; ++k) {
    if (tasks[k].op == GK_OP_IF || tasks[k].op == GK_OP_SWITCH) return;
    if (tasks[k].op == GK_OP_WHILE && seed & 1) tasks[k].op = GK_OP_DO_WHILE;
  }
  subject s;
  flags f = {0};
  executed e;
  snprintf(where, sizeof where, "GK_SEED=%llu, ", (unsigned long long)seed);
  const bool cancellable = pick(&g.random, 2) != 0;
  subject_begin(&s, tasks, g.count, cancellable ? GK_CANCELLABLE : 0);
  const gk_plan *plan = &s.planned.plan;
  for (uint32_t k = 0; k < plan->loop_count; ++k)
    f.passes[k] = 1 + pick(&g.random, plan->nodes[plan->loops[k]].max_iterations ? 1 : 3);
  for (gki_lowering how = GKI_FRESH; how < GKI_LOWERINGS; ++how) {
    check_told(&s, how, cancellable ? GK_WITH_CANCEL : 0, &f, &e);
    const gki_gate_count usual = told(&s.counts, GKI_USUAL, e.passes);
    if (how > GKI_RESUME) continue;
    sum.ours[0] += e.count.control;
    sum.ours[1] += e.count.conditional;
    sum.usual[0] += usual.control;
    sum.usual[1] += usual.conditional;
  }
  ++sum.lists;
  sum.loops += plan->loop_count;
  sum.exact += plan->loop_count && !goes_round(plan);
  subject_end(&s);
}

TEST(test_random) {
  memset(&sum, 0, sizeof sum);
  each_list(random_list, 20000);
  print_message("%lu lists with %lu loops, for %lu exact; %lu of %lu control kernels, %lu of %lu conditional nodes\n",
                (unsigned long)sum.lists, (unsigned long)sum.loops, (unsigned long)sum.exact,
                (unsigned long)sum.ours[0], (unsigned long)sum.usual[0], (unsigned long)sum.ours[1],
                (unsigned long)sum.usual[1]);
  if (getenv("GK_SEED")) return;
  assert_true(sum.lists > 1000 && sum.loops > 1000 && sum.exact > 200);
  assert_true(2 * sum.ours[0] < sum.usual[0] && 2 * sum.ours[1] < sum.usual[1]); /* less than half */
}

int main(void) { return run_all_tests(); }
