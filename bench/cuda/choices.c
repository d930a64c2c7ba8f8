/* The costs that the library chooses by on CUDA (table P): kernels that read a guard, or an IF node around them; one
 * warp or a grid for a small copy; a thread that the driver wakes.
 * bench/tools/costs.py makes common/base/costs.h from the figures. */
#include "bench/cuda/hand.h"
#include "bench/harness/harness.h"
#include "gk.h"
#include <stdio.h>

enum { GROUPS = 40 /* of the longer of two graphs */, COPIES = 200, CHOICES = 4 /* of a table, two variants each */ };

static gk_device *device;
static int *x, *guard, *posted_at;
static volatile int *posted;

typedef struct choice {
  int kernels, groups, threads, blocks, open;
  unsigned quads;
  int *from, *to;
  CUgraphExec longer, shorter;
} choice;

static char names[2][CHOICES][60];

static double timed(CUgraphExec exec) {
  const double begin = bench_now();
  bench_hand_launch(exec);
  bench_hand_wait();
  return bench_now() - begin;
}

/* ---- a guard, or an IF node -------------------------------------------------------------------------------------- */

static CUgraphExec groups_of(const choice *c, int groups, bool by_guard) {
  const CUgraph whole = bench_hand_graph();
  CUgraphNode last = NULL;
  for (int g = 0; g < groups; ++g) {
    CUgraph body = whole;
    CUgraphNode inner = last;
    if (!by_guard) { /* no kernel sets the condition: with guards it would set the guard, at the same cost */
      inner = NULL;
      last = bench_hand_conditional(whole, last, CU_GRAPH_COND_TYPE_IF, bench_hand_handle(whole, (unsigned)c->open),
                                    &body);
    }
    for (int k = 0; k < c->kernels; ++k)
      inner = by_guard ? bench_hand_kernel(body, inner, "more_unless", 1, 1, (void *[]){&x, &guard})
                      : bench_hand_kernel(body, inner, "more", 1, 1, (void *[]){&x});
    if (by_guard) last = inner;
  }
  return bench_hand_exec(whole);
}

static bool pass_groups(void *with, uint64_t times, bench_took *took) {
  const choice *c = with;
  const int half = c->groups / 2;
  bench_hand_put(x, 0);
  bench_hand_put(guard, c->open);
  for (uint64_t k = 0; k < times; ++k) {
    took->all += timed(c->longer) / half;
    took->less += timed(c->shorter) / half;
  }
  return bench_hand_value(x) == (c->open ? (int)times * c->kernels * (c->groups + half) : 0);
}

static void gates(bool open, const int *kernels) {
  static choice choices[2][CHOICES];
  char what[60];
  bench_table table = {"P", what, "what does one more segment of so many kernels cost, which may be closed?", "ns"};
  snprintf(what, sizeof what, "%s gate, %d to %d kernels", open ? "an open" : "a closed", kernels[0],
           kernels[CHOICES - 1]);
  if (!bench_wants("P", what)) return;
  for (int k = 0; k < CHOICES; ++k)
    for (int way = 0; way < 2; ++way) {
      choice *c = &choices[way][k];
      *c = (choice){.kernels = kernels[k], .groups = bench_is_quick() ? 4 : GROUPS, .open = open};
      c->longer = groups_of(c, c->groups, way == 0);
      c->shorter = groups_of(c, c->groups / 2, way == 0);
      snprintf(names[way][k], sizeof names[way][k], "%s, %d kernel%s", way ? "IF node" : "guards", kernels[k],
               kernels[k] > 1 ? "s" : "");
      table.variants[2 * k + way] = (bench_variant){names[way][k], pass_groups, c, .x = kernels[k]};
      if (way) table.ratios[k] = (bench_ratio){names[0][k], names[0][k], {names[1][k]}, 0};
    }
  bench_measure(&table);
  for (int k = 0; k < 2 * CHOICES; ++k) {
    bench_hand_exec_end(choices[k / CHOICES][k % CHOICES].longer);
    bench_hand_exec_end(choices[k / CHOICES][k % CHOICES].shorter);
  }
}

/* ---- one warp, or a grid ----------------------------------------------------------------------------------------- */

static CUgraphExec copies_of(choice *c, int count) {
  const CUgraph whole = bench_hand_graph();
  CUgraphNode last = NULL;
  for (int k = 0; k < count; ++k)
    last = bench_hand_kernel(whole, last, "copy", (unsigned)c->blocks, (unsigned)c->threads,
                             (void *[]){&c->to, &c->from, &c->quads});
  return bench_hand_exec(whole);
}

static bool copy(void *with, uint64_t times, bench_took *took) {
  const choice *c = with;
  const int half = c->groups / 2;
  const size_t end = 4 * (size_t)c->quads - 1;
  bench_hand_put(c->from + end, 7);
  bench_hand_put(c->to + end, 0);
  for (uint64_t k = 0; k < times; ++k) {
    took->all += timed(c->longer) / half;
    took->less += timed(c->shorter) / half;
  }
  return bench_hand_value(c->to + end) == 7;
}

static void small_copies(void) {
  static const int bytes[CHOICES] = {64, 256, 1024, 4096};
  static choice choices[2][CHOICES];
  const char *what = "a small copy, 64 to 4096 bytes";
  bench_table table = {"P", what, "up to which size is a copy by one warp as fast as by a grid?", "ns",
                       .floor = {HAND_EDGE, 1}};
  if (!bench_wants("P", what)) return;
  int *from = bench_hand_ints(device, 1024), *to = bench_hand_ints(device, 1024);
  for (int k = 0; k < CHOICES; ++k)
    for (int way = 0; way < 2; ++way) {
      choice *c = &choices[way][k];
      *c = (choice){.groups = bench_is_quick() ? 4 : COPIES, .quads = (unsigned)bytes[k] / 16, .from = from, .to = to,
                    .blocks = way ? 2 : 1, .threads = way ? 256 : 32};
      c->longer = copies_of(c, c->groups);
      c->shorter = copies_of(c, c->groups / 2);
      snprintf(names[way][k], sizeof names[way][k], "%s, %d bytes", way ? "a grid" : "one warp", bytes[k]);
      table.variants[2 * k + way] = (bench_variant){names[way][k], copy, c, .x = bytes[k]};
      if (way) table.ratios[k] = (bench_ratio){names[0][k], names[0][k], {names[1][k]}, 0};
    }
  bench_measure(&table);
  for (int k = 0; k < 2 * CHOICES; ++k) {
    bench_hand_exec_end(choices[k / CHOICES][k % CHOICES].longer);
    bench_hand_exec_end(choices[k / CHOICES][k % CHOICES].shorter);
  }
  gk_free(device, from);
  gk_free(device, to);
}

/* ---- awake, or asleep -------------------------------------------------------------------------------------------- */

/* A kernel that runs until the waiting thread sleeps, and then writes. */
static bool until_known(uint64_t times, bench_took *took, CUevent sleeps) {
  int rounds = bench_is_quick() ? 3 : 20000, *room = bench_hand_ints(device, 32);
  const CUfunction mix = bench_hand_function("mix"), post = bench_hand_function("post");
  bool right = true;
  for (uint64_t k = 0; k < times; ++k) {
    *posted = -1;
    bench_hand_put(guard, 7);
    const double begin = bench_now();
    bench_hand_run(mix, 1, 32, (void *[]){&room, &rounds});
    bench_hand_run(post, 1, 1, (void *[]){&guard, &posted_at});
    if (sleeps) {
      HAND(bench_hand_driver->cuEventRecord(sleeps, bench_hand_stream));
      HAND(bench_hand_driver->cuEventSynchronize(sleeps));
    } else {
      while (*posted == -1) {}
    }
    took->all += bench_now() - begin;
    right = *posted == 7 && right;
    bench_hand_wait();
  }
  gk_free(device, room);
  return right;
}

static bool awake(void *with, uint64_t times, bench_took *took) {
  (void)with;
  return until_known(times, took, NULL);
}

static bool asleep(void *with, uint64_t times, bench_took *took) { return until_known(times, took, with); }

static bool woken(void *with, uint64_t times, bench_took *took) {
  bench_took spun = {0};
  const bool right = asleep(with, times, took) && awake(NULL, times, &spun);
  took->less += spun.all;
  return right;
}

static void waits(void) {
  CUevent event;
  HAND(bench_hand_driver->cuEventCreate(&event, CU_EVENT_DISABLE_TIMING | CU_EVENT_BLOCKING_SYNC));
  bench_measure(&(bench_table){"P", "a wait that sleeps", "what does it cost to let the driver wake a thread?", "ns",
    .variants = {{"the waking alone", woken, event}, {"asleep until an event", asleep, event},
                 {"awake, looking at pinned memory", awake, NULL}},
    .floor = {HAND_ROUND_TRIP, 1}});
  HAND(bench_hand_driver->cuEventDestroy(event));
}

int main(int argc, char **argv) {
  static const int few[CHOICES] = {1, 2, 4, 8}, many[CHOICES] = {12, 16, 24, 32};
  const char *why;
  bench_begin(argc, argv, "cuda_choices");
  device = bench_hand_open(&why);
  if (!device) return bench_missing(why);
  x = bench_hand_ints(device, 1);
  guard = bench_hand_ints(device, 1);
  posted = bench_hand_pinned(device, &posted_at);
  for (int open = 1; open >= 0; --open) {
    gates(open, few);
    gates(open, many);
  }
  small_copies();
  waits();
  gk_free(device, x);
  gk_free(device, guard);
  gk_free(device, (void *)(uintptr_t)posted);
  bench_hand_close(device);
  return bench_end();
}
