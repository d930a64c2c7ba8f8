/* gates.cu and its tables, compiled for the host: random lists and launches against the contract, with the kernels of
 * the CUDA backend for all decisions and nothing done by the host between launches. GK_SEED=n runs the one list of a
 * failure again, GK_LISTS=n as many as you like. */
#include "dump/dump.h"
#include "unit/support/gates_bench.h"
#include "unit/support/gates_host.h"
#include "unit/support/planned.h"
#include "cuda/tables.h"

static const gk_slot_desc slots[] = {GK_BUFFER(FLAG, int)};

typedef struct rig_graph {
  device_graph model; /* gates and values of handles */
  gki_cuda_layout layout;
  char *tables;
} rig_graph;

typedef struct rig {
  bench b; /* first: it is the executor's user */
  device *d;
  gki_cuda_shared shared;
  char *control, *statuses;
  uint64_t cancel;
  rig_graph graphs[2], *running;
  uint32_t target;
  bool by_copy; /* it comes to the prologue by memory */
  unsigned threads; /* of an epilogue */
  uint32_t handle_calls;
} rig;

static rig *now; /* whose kernels run */
static int32_t flags[MAX_TASKS];

enum { HANDLES_FROM = 1000 }; /* the driver's handles have numbers of its own */

static uint64_t handle_of(const rig *r, const rig_graph *graph, uint32_t index) {
  return (uint64_t)(graph - r->graphs + 1) << 32 | (HANDLES_FROM + index);
}

static void cudaGraphSetConditional(unsigned long long handle, unsigned value) {
  const uint32_t index = (uint32_t)handle - HANDLES_FROM;
  assert_int_equal(handle >> 32, now->running - now->graphs + 1);
  device_sets(now->d, index, value);
  ++now->handle_calls;
}

static int32_t flag_of_yields = 1;

static int32_t host_consult(const char *at, int32_t value) {
  if (at == (const char *)&flag_of_yields) return value;
  const size_t task = (size_t)(at - (const char *)flags) / sizeof *flags;
  assert_true(task < MAX_TASKS && at == (const char *)&flags[task]);
  assert_int_equal(value, flags[task]);
  return (int32_t)trace_read(&now->b.t, (uint32_t)task);
}

static gki_cuda_control *control_of(const rig *r) { return (gki_cuda_control *)r->control; }

/* Memory as a driver allocates it. */
static char *piece_of(size_t bytes) {
  char *memory = aligned_alloc(256, (bytes + 255) / 256 * 256);
  assert_non_null(memory);
  memset(memory, 0xa5, bytes);
  return memory;
}

/* All writes of the threads are visible before the first thread tells the host. */
static void run_epilogue(const gki_cuda_tables *t) {
  host_barriers = host_fences = 0;
  gki_epilogue(t);
  assert_int_equal(host_barriers, 1);
  assert_int_equal(host_fences, threadIdx.x == 0);
}

static void rig_control(void *user, const gk_gate_node *n) {
  rig *r = user;
  const gki_cuda_tables *t = (const gki_cuda_tables *)r->running->tables;
  now = r;
  r->cancel = t->bits & GKI_CUDA_WITH_CANCEL ? control_of(r)->number - (r->b.cancel ? 0 : 1) : UINT64_MAX;
  switch (n->kind) {
  case GK_GATE_PROLOGUE:
    control_of(r)->target_sent = r->by_copy ? r->target : 0;
    HOST_RUN(1, 2, gki_prologue(t, n->point, r->by_copy ? GKI_CUDA_COPIED : r->target));
    break;
  case GK_GATE_EPILOGUE: HOST_RUN(1, r->threads, run_epilogue(t)); break;
  default:
    if (t->bits & GKI_CUDA_WITH_PLAIN) HOST_RUN(1, 2, gki_control_plain(t, n->point, n->guard));
    else HOST_RUN(1, 2, gki_control(t, n->point, n->guard));
    break;
  }
}

static bool rig_closed(void *user, uint32_t guard) {
  const rig *r = user;
  return ((const uint64_t *)(r->running->tables + r->running->layout.guards))[guard] == control_of(r)->number;
}

static void make_graph(rig *r, rig_graph *graph, const gk_gates *gates) {
  uint64_t *handles = calloc(gates->handle_count + 1, sizeof *handles);
  graph_begin(&graph->model, gates);
  for (uint32_t h = 0; h < gates->handle_count; ++h) handles[h] = handle_of(r, graph, h);
  graph->layout = gki_cuda_tables_lay_out(gates);
  graph->tables = piece_of(graph->layout.bytes);
  const gki_cuda_places places = {.tables = (uint64_t)graph->tables, .control = (uint64_t)r->control,
                                  .cancel = (uint64_t)&r->cancel, .status = (uint64_t)r->statuses};
  gki_cuda_tables_write(gates, &graph->layout, &r->shared, &places, (CUgraphConditionalHandle *)handles,
                        graph->tables);
  free(handles);
}

static void rig_begin(rig *r, const gk_plan *plan, uint32_t bits) {
  memset(r, 0, sizeof *r);
  r->b.plan = plan;
  assert_int_equal(gki_cuda_shared_lay_out(plan, &r->shared), GK_OK);
  r->control = piece_of(r->shared.bytes);
  r->statuses = piece_of((size_t)GKI_LAUNCH_RING * r->shared.status_bytes);
  gki_cuda_shared_write(&r->shared, 0, false, r->control);
  gk_value *values = (gk_value *)(r->control + r->shared.slots);
  values[FLAG].ptr = flags;
  values[plan->slot_count].ptr = &flag_of_yields;
  values[plan->slot_count + 1].ptr = values;
  assert_true(r->shared.slots + (plan->slot_count + 2) * sizeof *values <= r->shared.bytes);
  for (uint32_t k = 0; k < 2; ++k) {
    const gk_gates *gates;
    assert_int_equal(gk_gates_make(plan, bits | (k ? GK_WITH_RESUME : 0u), &gates), GK_OK);
    make_graph(r, &r->graphs[k], gates);
  }
}

static void rig_end(rig *r) {
  for (uint32_t k = 0; k < 2; ++k) {
    graph_end(&r->graphs[k].model);
    free(r->graphs[k].tables);
  }
  free(r->statuses);
  free(r->control);
}

/* What a launch must post; known when the last launch is over. */
typedef struct expected {
  uint64_t number, passes[MAX_TASKS];
  bool stopped, ran[MAX_TASKS], hit_bound[MAX_TASKS];
  int32_t yielded;
  int64_t limit;
} expected;

static expected expect(const oracle *o, uint64_t number) {
  expected e = {.number = number, .stopped = o->stopped, .yielded = o->yielded, .limit = o->limit};
  memcpy(e.passes, o->passes, sizeof e.passes);
  memcpy(e.ran, o->ran, sizeof e.ran);
  memcpy(e.hit_bound, o->hit_bound, sizeof e.hit_bound);
  return e;
}

static const char *judge(const rig *r, const expected *e) {
  const gk_plan *plan = r->b.plan;
  const gki_cuda_status *s =
    (const gki_cuda_status *)(r->statuses + (e->number - 1) % GKI_LAUNCH_RING * r->shared.status_bytes);
  const gk_state state = e->yielded ? GK_YIELDED : e->stopped ? GK_CANCELLED : GK_FINISHED;
  if (s->number != e->number) return "another launch's status";
  if (s->state != (uint32_t)state) return "another state";
  if ((s->yielded ? plan->nodes[s->yielded].label : 0) != e->yielded) return "another label";
  if ((s->limit != 0) != (e->limit >= 0)) return s->limit ? "a loop hit its bound" : "no loop hit its bound";
  if (s->limit && (int64_t)plan->nodes[s->limit].source != e->limit) return "another limit";
  for (uint32_t k = 0; k < plan->loop_count; ++k) {
    const uint32_t task = plan->nodes[plan->loops[k]].source;
    if (gki_cuda_status_passes(s)[k] != e->passes[task]) return "other passes";
    if (gki_cuda_status_bounds(plan, s)[k] != e->hit_bound[task]) return "other loops hit their bounds";
  }
  for (uint32_t k = 0; k < plan->checkpoint_count; ++k)
    if (gki_cuda_status_ran(plan, s)[k] != e->ran[plan->nodes[plan->checkpoints[k]].source])
      return "other checkpoints ran";
  return NULL;
}

/* As tasks do, which read the lower half. */
static uint64_t record_pass(const void *user, uint32_t loop) {
  const rig *r = user;
  uint32_t number;
  memcpy(&number, r->control + gki_cuda_entry_at(&r->shared, loop_number(r->b.plan, loop)), sizeof number);
  return number;
}

static struct {
  long lists, launches, resumed, yielded, cancelled, limited, interleaved, wrapped;
} sum;

static void fail_list(const gk_plan *plan, uint64_t seed, uint32_t bits, uint32_t launch, const char *wrong) {
  char *text = gki_plan_dump(plan, "text");
  fprintf(stderr, "%s", text ? text : "");
  gk_host_free(text);
  fail_msg("GK_SEED=%llu, bits %u, launch %u: %s", (unsigned long long)seed, (unsigned)bits, (unsigned)launch, wrong);
}

static void run_plan(const gk_plan *plan, const gk_task *tasks, uint32_t count, uint64_t seed, uint64_t random) {
  static oracle o;
  static rig r;
  static expected posted[GKI_LAUNCH_RING];
  const bool cancelling = pick(&random, 3) == 0, interleaved = pick(&random, 2) != 0;
  const uint32_t bits = (cancelling ? GK_WITH_CANCEL : 0u) | (pick(&random, 2) ? GK_WITH_SWITCH : 0u) |
                        (pick(&random, 2) ? GK_WITH_GUARDS : 0u) | (pick(&random, 2) ? GK_WITH_PLAIN : 0u);
  const uint32_t launches = pick(&random, 16) ? 6 : GKI_LAUNCH_RING + 5;
  const bool posts = plan->loop_count || plan->checkpoint_count;
  oracle_begin(&o, tasks, count, seed);
  trace numbers = {0};
  read_numbers(&numbers, &o, plan, record_pass, &r);
  rig_begin(&r, plan, bits);
  r.b.t = numbers;
  uint64_t number = pick(&random, 4) ? 1 : UINT64_C(0xfffffffb);
  control_of(&r)->number = number;
  r.b.t.seed = seed;
  r.b.t.tasks = tasks;
  r.b.t.cancel = &r.b.cancel;
  uint64_t chance = random;
  device d = {.plan = plan, .user = &r, .execute = bench_execute, .control = rig_control, .closed = rig_closed,
              .interleave = interleaved ? &chance : NULL};
  r.d = &d;
  r.by_copy = pick(&random, 2) != 0;
  int32_t target = 0;
  for (uint32_t launch = 0; launch < launches; ++launch) {
    if (plan->checkpoint_count && pick(&random, 10) < 3)
      target = plan->nodes[plan->checkpoints[pick(&random, plan->checkpoint_count)]].label;
    const bool cancel = cancelling && pick(&random, 2);
    /* How a cancel in mid-flight ends in sections depends on their order. */
    o.t.until_cancel = r.b.t.until_cancel = cancel && !interleaved ? 1 + pick(&random, 20) : 0;
    r.b.cancel = o.cancel = cancel && interleaved;
    r.b.t.log_count = 0;
    r.target = target ? plan->nodes[gki_plan_label(plan, target)].checkpoint : GK_NONE;
    r.threads = pick(&random, 2) ? 128 : 1;
    r.running = &r.graphs[target || pick(&random, 4) == 0];
    oracle_launch(&o, target);
    device_launch(&d, &r.running->model, r.target);
    const char *wrong = compare_traces(&r.b, &o, interleaved);
    if (!wrong && control_of(&r)->number != number + posts) wrong = "another number";
    if (wrong) fail_list(plan, seed, bits, launch, wrong);
    posted[(number - 1) % GKI_LAUNCH_RING] = expect(&o, number);
    number += posts;
    ++sum.launches;
    sum.resumed += target != 0;
    sum.yielded += o.yielded != 0;
    sum.cancelled += o.stopped && !o.yielded;
    sum.limited += o.limit >= 0;
    sum.interleaved += interleaved;
    target = o.yielded && pick(&random, 10) ? o.yielded : 0;
  }
  for (uint32_t k = 0; posts && k < launches && k < GKI_LAUNCH_RING; ++k) {
    const char *wrong = judge(&r, &posted[(number - 2 - k) % GKI_LAUNCH_RING]);
    if (wrong) fail_list(plan, seed, bits, launches - 1 - k, wrong);
  }
  ++sum.lists;
  sum.wrapped += launches > GKI_LAUNCH_RING;
  rig_end(&r);
}

static void run_list(gk_task *tasks, uint32_t count, uint64_t seed, uint64_t random) {
  for (uint32_t k = 0; k < count; ++k)
    if (tasks[k].flag) tasks[k].offset = (uint32_t)sizeof *flags * k;
  planned_list p;
  run_plan(plan_tasks(&p, tasks, count, slots, GK_COUNT(slots)), tasks, count, seed, random);
  free_planned(&p);
}

static void made_list(uint64_t seed, uint64_t salt, void (*put_all)(generator *g)) {
  static gk_task tasks[MAX_TASKS];
  generator g = {.random = mix(seed ^ salt), .tasks = tasks, .budget = 24};
  put_all(&g);
  run_list(tasks, g.count, seed, g.random);
}
static void random_list(uint64_t seed) { made_list(seed, 0xc0da, put_some); }
static void waiting_list(uint64_t seed) { made_list(seed, 0x3a17, put_waiting); }

TEST(test_waiting) { each_list(waiting_list, 10000); }

static void repeats_list(uint64_t seed) { made_list(seed, 0xc091, put_repeats); }
TEST(test_repeats) { each_list(repeats_list, 5000); }

TEST(test_contract) {
  memset(&sum, 0, sizeof sum);
  each_list(random_list, 20000);
  print_message("%ld lists, %ld launches: %ld resumed, %ld yielded, %ld cancelled, %ld hit a bound, %ld interleaved; "
                "%ld lists with more launches than statuses\n", sum.lists, sum.launches, sum.resumed, sum.yielded,
                sum.cancelled, sum.limited, sum.interleaved, sum.wrapped);
  if (getenv("GK_SEED")) return;
  assert_true(sum.yielded > sum.launches / 50 && sum.cancelled > sum.launches / 100); /* enough of each */
  assert_true(sum.limited > sum.launches / 50 && sum.resumed > sum.launches / 10 && sum.wrapped > sum.lists / 50);
}

TEST(test_deep) {
  for (uint64_t seed = 0; seed < 300; ++seed) made_list(seed, 0xdee9, put_deep);
}

int main(void) {
  for (size_t k = 0; k < MAX_TASKS; ++k) flags[k] = (int32_t)(mix(k) | 1);
  return run_all_tests();
}
