/* Which quirks of a device matter to a list: all that kernels of random lists would meet are found, and exactly those
 * of a few lists. GK_SEED=n runs the one list of a failure again, GK_LISTS=n as many as you like. */
#include "cuda/quirks.h"
#include "unit/support/gates_bench.h"
#include "unit/support/planned.h"

enum { LAUNCHES = 6, WAYS = 12, ALL_WAYS = (1 << WAYS) - 1 };
enum {
  BY_CHAINS = GKI_CUDA_PASS_ON_PER_LEVEL | GKI_CUDA_SET_AT_ENTRY | GKI_CUDA_MERGE_IN_BODY | GKI_CUDA_WRITE_ONCE |
              GKI_CUDA_CLOSE_FROM_OUTSIDE,
};

static const gk_slot_desc slots[] = {GK_BUFFER(FLAG, int)};

typedef struct watched {
  bench b; /* first: the device's user */
  const gk_gates *gates;
  const device *d;
  uint32_t seen;
  long last_set[MAX_TASKS * 4]; /* by handle: the kernel that set it last */
} watched;

static bool holds(const gk_gates *g, uint32_t outer, uint32_t inner) {
  return outer < inner && inner < g->nodes[outer].end;
}

static bool is_body(const gk_gates *g, uint32_t at) {
  const gk_gate_kind kind = g->nodes[at].kind;
  if (kind != GK_GATE_BRANCH) return kind == GK_GATE_SEGMENT || kind == GK_GATE_IF || kind == GK_GATE_WHILE;
  uint32_t around = at;
  while (!holds(g, --around, at)) {}
  return g->nodes[around].kind == GK_GATE_SWITCH;
}

/* Counts the bodies that are around one and not around the other. */
static void watch(void *user, uint32_t handle, uint32_t from) {
  watched *w = user;
  const gk_gates *g = w->gates;
  const uint32_t node = g->handles[handle].node;
  uint32_t outwards = 0, deeper = 0, innermost = GK_NONE;
  for (uint32_t k = 0; k < g->node_count; ++k) {
    if (!is_body(g, k)) continue;
    const bool around_from = holds(g, k, from), around_node = holds(g, k, node);
    outwards += around_from && !around_node;
    deeper += around_node && !around_from;
    if (around_from) innermost = k;
  }
  const bool is_loop = g->nodes[node].kind == GK_GATE_WHILE;
  if (outwards && !(is_loop && node == innermost)) w->seen |= GKI_CUDA_PASS_ON_PER_LEVEL;
  if (deeper) w->seen |= GKI_CUDA_SET_AT_ENTRY;
  if (outwards && deeper) w->seen |= GKI_CUDA_MERGE_IN_BODY;
  if (!is_loop && holds(g, node, from)) w->seen |= GKI_CUDA_CLOSE_FROM_OUTSIDE;
  const long number = w->d->kernels + 1; /* the prologue isn't counted, and comes first */
  assert_true(handle < GK_COUNT(w->last_set));
  if (w->last_set[handle] == number) w->seen |= GKI_CUDA_WRITE_ONCE;
  w->last_set[handle] = number;
}

static struct { long lists, launches, seen[WAYS]; } sum;

static void launch_some(device *d, watched *w, device_graph *graph, uint64_t *random) {
  const uint32_t targets = graph->gates->target_count;
  for (int launch = 0; launch < LAUNCHES; ++launch) {
    const bool resumes = targets && pick(random, 3);
    w->b.cancel = pick(random, 4) == 0;
    w->b.t.log_count = 0;
    memset(w->last_set, 0, sizeof w->last_set);
    d->kernels = 0;
    device_launch(d, graph, resumes ? pick(random, targets) : GK_NONE);
    device_next(d);
    ++sum.launches;
  }
}

static void check_list(const gk_plan *plan, watched *w, uint64_t seed, uint64_t *random, uint32_t plain) {
  const uint32_t bits = plain | (pick(random, 3) ? 0u : GK_WITH_CANCEL) | (pick(random, 2) ? GK_WITH_SWITCH : 0u) |
                        (pick(random, 2) ? GK_WITH_GUARDS : 0u) | (pick(random, 2) ? GK_WITH_RESUME : 0u);
  device_graph graph;
  device d;
  assert_int_equal(gk_gates_make(plan, bits, &w->gates), GK_OK);
  graph_begin(&graph, w->gates);
  device_begin(&d, plan);
  d.execute = bench_execute;
  d.read = bench_read;
  d.cancelled = bench_cancelled;
  d.sets = watch;
  d.user = w;
  w->d = &d;
  launch_some(&d, w, &graph, random);
  const uint32_t needed = gki_cuda_quirks_that_matter(w->gates, ALL_WAYS);
  if (w->seen & ~needed)
    fail_msg("GK_SEED=%llu, bits %u: seen %#x, needed %#x", (unsigned long long)seed, (unsigned)bits, (unsigned)w->seen,
             (unsigned)needed);
  for (uint32_t k = 0; k < WAYS; ++k) {
    sum.seen[k] += !plain && w->seen >> k & 1;
    assert_int_equal(gki_cuda_quirks_that_matter(w->gates, 1u << k), needed & 1u << k);
  }
  assert_int_equal(gki_cuda_quirks_that_matter(w->gates, 0), 0);
  if (plain) assert_int_equal(needed & GKI_CUDA_QUIRKS_PLAIN, 0);
  sum.lists += !plain;
  device_end(&d);
  graph_end(&graph);
}

static void random_list(uint64_t seed) {
  static gk_task tasks[MAX_TASKS];
  static watched w;
  generator g = {.random = mix(seed ^ 0x3a75), .tasks = tasks, .budget = 24};
  put_some(&g);
  planned_list p;
  const gk_plan *plan = plan_tasks(&p, tasks, g.count, slots, GK_COUNT(slots));
  for (uint32_t plain = 0; plain <= GK_WITH_PLAIN; plain += GK_WITH_PLAIN) {
    memset(&w, 0, sizeof w);
    w.b.plan = plan;
    w.b.t.seed = seed;
    w.b.t.tasks = tasks;
    w.b.t.cancel = &w.b.cancel;
    check_list(plan, &w, seed, &g.random, plain);
  }
  free_planned(&p);
}

TEST(quirks_of_random_lists_are_found) {
  memset(&sum, 0, sizeof sum);
  each_list(random_list, 4000);
  print_message("%ld lists, %ld launches; outwards %ld, deeper %ld, beside %ld, twice %ld, own %ld\n", sum.lists,
                sum.launches, sum.seen[3], sum.seen[4], sum.seen[7], sum.seen[8], sum.seen[9]);
  if (getenv("GK_SEED")) return;
  for (uint32_t k = 0; k < WAYS; ++k) /* enough of each */
    if (1u << k & BY_CHAINS) assert_true(sum.seen[k] > sum.lists / 200);
}

static uint32_t needed_by(const gk_task *tasks, size_t count, uint32_t bits) {
  planned_list p;
  (void)plan_tasks(&p, tasks, (uint32_t)count, slots, GK_COUNT(slots));
  const uint32_t needed = gki_cuda_quirks_that_matter(gates_of_planned(&p, bits), ALL_WAYS);
  free_planned(&p);
  return needed;
}
#define NEEDED(bits, ...) \
  needed_by((const gk_task[]){__VA_ARGS__}, GK_COUNT(((const gk_task[]){__VA_ARGS__})), bits)
#define T {.op = GK_OP_KERNEL, .kernel = &kernel, .args = {FLAG}}
#define LOOP GK_DO_WHILE(FLAG)
#define CHECKPOINT {.op = GK_OP_CHECKPOINT, .flag = FLAG, .label = 1}
#define LOOP_SECTION GK_SECTION, LOOP, T, GK_END, GK_END
#define IN_TWO GK_IF(FLAG), T, GK_IF(FLAG), CHECKPOINT, T, GK_END, GK_END, GK_END
#define CASES GK_SWITCH(FLAG), GK_CASE, T, GK_END, GK_CASE, T, GK_END, GK_END

TEST(some_lists) {
  enum { HOST = GKI_CUDA_HOST_GATED };
  assert_int_equal(NEEDED(0, T), HOST);
  assert_int_equal(NEEDED(0, LOOP, T, GK_END), HOST);
  /* The end of a loop re-enables the inner loop from within its own body. */
  assert_int_equal(NEEDED(0, LOOP, T, LOOP, T, GK_END, T, GK_END), HOST | GKI_CUDA_REENABLE_IN_FRONT);
  assert_int_equal(NEEDED(0, GK_PARALLEL, LOOP_SECTION, LOOP_SECTION, GK_END), HOST | GKI_CUDA_CHAIN_BRANCHES);
  assert_int_equal(NEEDED(0, GK_PARALLEL, LOOP_SECTION, GK_SECTION, T, GK_END, GK_END), HOST);
  assert_int_equal(NEEDED(GK_WITH_SWITCH, T, CASES), HOST | GKI_CUDA_NO_SWITCH);
  assert_int_equal(NEEDED(0, T, CASES), HOST);
  /* Its kernel isn't in a body, and neither is the gate that it closes. */
  assert_int_equal(NEEDED(0, CHECKPOINT, T, GK_END, T), HOST);
  assert_int_equal(NEEDED(GK_WITH_RESUME, CHECKPOINT, T, GK_END, T),
                   HOST | GKI_CUDA_TARGET_BY_COPY | GKI_CUDA_WRITE_ONCE);
  assert_int_equal(NEEDED(GK_WITH_RESUME | GK_WITH_PLAIN, CHECKPOINT, T, GK_END, T), HOST | GKI_CUDA_TARGET_BY_COPY);
  /* A launch that resumes opens an IF within an IF. */
  assert_true(NEEDED(GK_WITH_RESUME, T, IN_TWO) & GKI_CUDA_SET_AT_ENTRY);
  /* The part behind the checkpoint has a gate, in which the loop ends. */
  assert_int_equal(NEEDED(0, LOOP, CHECKPOINT, T, GK_END, T, GK_END),
                   HOST | GKI_CUDA_SET_PER_PASS | GKI_CUDA_PASS_ON_PER_LEVEL | GKI_CUDA_LOOP_END_LAST);
}

int main(void) { return run_all_tests(); }
