/* The OpenMP backend: tasks that are large enough to be cut into chunks, which threads take that are done with their
 * own. */
#include "world.h"
#include "unit/support/await.h"
#include "gk_kernel.h"
#include "unit/support/set_clock.h"
#include <pthread.h>

enum { ITEMS = 1 << 20 /* a nanosecond each, until they are measured: several chunks of each part */,
       LAST = 8192 /* items at most in the last chunk of a part */ };
enum { X = 1, N, DOWN, UP, FLAG = DOWN, FROM = DOWN, ITEM_NS = 1000 };
static const gk_slot_desc slots[] = {GK_BUFFER(X, uint8_t), GK_SCALAR(N, int), GK_BUFFER(FROM, uint8_t)};
static const gk_slot_desc sum_slots[] = {GK_BUFFER(X, int), GK_SCALAR(N, int), GK_BUFFER(DOWN, int),
                                         GK_BUFFER(UP, uint)};
static unsigned char bytes[ITEMS + 64], from[ITEMS + 64];
static int met[ITEMS + 64];
static atomic_size_t done;
static size_t stuck_at, part_items;
static atomic_bool helped;
static const gki_team *team;
static pthread_t leader;

/* All threads except this one are done with their part of the task, and take no more. */
static bool all_others_are_through(void) {
  const uint32_t pending = atomic_load(&team->slots[1].job->pending), leader_sleeps = 1u << 31;
  return pthread_equal(pthread_self(), leader) ? pending == 0 : pending == (leader_sleeps | 1);
}

HAND_KERNEL(counting, INOUT(uint8_t)) {
  unsigned char *x = args[0].ptr;
  for (size_t i = range.begin; i < range.end; ++i) ++x[i];
}

static void assert_counted(int items, const char *what, int of) {
  for (int k = 0; k < (int)sizeof bytes; ++k)
    if (bytes[k] != (k < items)) fail_msg("item %d of %d, %s %d: done %d times", k, items, what, of, bytes[k]);
}

/* The thread with a certain item, in the first half of a part, isn't done before all others are, but for the part's
 * last chunk: that is its own. */
HAND_KERNEL(waiting, INOUT(uint8_t)) {
  const size_t mine = range.end - range.begin, others = (size_t)range.extent[0] - mine;
  counting_host(args, range);
  if (range.begin <= stuck_at && stuck_at < range.end) {
    await(atomic_load(&done) >= others - LAST || all_others_are_through());
    const size_t half = part_items / 2 + 64; /* at most, as what is left is to be shared */
    atomic_store(&helped, mine <= half && atomic_load(&done) >= others - LAST);
  }
  atomic_fetch_add(&done, mine);
}

TEST(test_chunks_of_a_slow_thread_are_taken) {
  LIST(list, GK_RUN(waiting, N, X));
  needs_threads(8);
  for (int part = 0; part < 8; ++part)
    FOR_EACH_TEAM(w, &list, 2, 3, 8) {
      if (part >= w.threads) continue;
      team = &w.device.team;
      leader = pthread_self();
      BIND(&w, {X, {.ptr = bytes}}, {N, {.i32 = ITEMS}});
      memset(bytes, 0, sizeof bytes);
      atomic_store(&done, 0);
      atomic_store(&helped, false);
      part_items = (size_t)ITEMS / (size_t)w.threads;
      stuck_at = (size_t)ITEMS * (size_t)part / (size_t)w.threads + 64 * (size_t)(part + 1);
      assert_runs(&w);
      if (!atomic_load(&helped)) fail_msg("of %d threads, no other had anything of part %d's", w.threads, part);
      assert_counted(ITEMS, "part", part);
    }
}

GK_SOURCE(openmp_chunks_test)
GK_KERNEL(count_up, (inout(int, x), sum(int, down), sum(uint, up))) {
  x[i] += 1;
  down[0] -= 1 + (int)(i & 3);
  up[0] += 0x10001u;
}
GK_SOURCE_END

/* Again and again, so that the measured costs decide how they are cut. */
TEST(test_whole_sums_of_chunks) {
  LIST_OVER(sum_slots, list, GK_RUN(count_up, N, X, DOWN, UP));
  static const int counts[] = {0, 1, 2, 7, 63, 64, 129, 100003, ITEMS - 1, ITEMS};
  atomic_store(&clock_runs, true);
  for (size_t c = 0; c < GK_COUNT(counts); ++c)
    FOR_EACH_WORLD(w, &list, 2, 3, 8) {
      enum { RUNS = 5 };
      int down = 5;
      uint32_t up = 3;
      long expected = 5;
      BIND(&w, {X, {.ptr = met}}, {N, {.i32 = counts[c]}}, {DOWN, {.ptr = &down}}, {UP, {.ptr = &up}});
      memset(met, 0, sizeof met);
      for (int run = 0; run < RUNS; ++run) assert_runs(&w);
      for (int i = 0; i < counts[c]; ++i) expected -= RUNS * (1 + (i & 3));
      assert_int_equal(down, expected);
      assert_int_equal(up, (uint32_t)(3 + RUNS * 0x10001u * (uint32_t)counts[c]));
      for (int k = 0; k < (int)GK_COUNT(met); ++k)
        if (met[k] != (k < counts[c]) * RUNS) fail_msg("item %d of %d: done %d times", k, counts[c], met[k]);
    }
  atomic_store(&clock_runs, false);
}

/* Items that are left over after parts and chunks have been cut. */
TEST(test_each_item_of_any_number) {
  enum { MOST = 4400 };
  LIST(list, GK_RUN(counting, N, X));
  static const float item_ns[] = {200, 3000, 1e9f};
  FOR_EACH_TEAM(w, &list, 2, 3) {
    bind_ptr(&w, X, bytes);
    for (int items = 60; items <= MOST; ++items) {
      bind_i32(&w, N, items);
      memset(bytes, 0, MOST + 64);
      w.program.ops[0].cost_ns = items % 32 <= 1 ? 200 : item_ns[items % 3];
      assert_runs(&w);
      for (int k = 0; k < MOST + 64; ++k)
        if (bytes[k] != (k < items)) fail_msg("item %d of %d by %d: done %d times", k, items, w.threads, bytes[k]);
    }
  }
}

static atomic_int most_here, least_here;
HOST_KERNEL(note_share) {
  const int here = (int)(range.end - range.begin);
  int most = atomic_load(&most_here), least = atomic_load(&least_here);
  while (here > most && !atomic_compare_exchange_weak(&most_here, &most, here)) continue;
  while (here < least && !atomic_compare_exchange_weak(&least_here, &least, here)) continue;
}

/* Where there are sums an item may be expensive, so all parts get as many; else parts begin where cache lines do. */
TEST(test_parts_of_sums_are_even) {
  KERNEL_OF(summing, note_share, SUM(int));
  KERNEL_OF(writing, note_share, OUT(int));
  LIST_OVER(sum_slots, sums, GK_RUN(summing, N, DOWN));
  LIST_OVER(sum_slots, others, GK_RUN(writing, N, DOWN));
  static const struct { const gk_list *list; int most, least; } cases[] = {{&sums, 65, 65}, {&others, 128, 2}};
  needs_threads(2);
  for (size_t k = 0; k < GK_COUNT(cases); ++k) {
    int total = 0;
    WORLD(w, cases[k].list, 2, SHARE_ALL);
    BIND(&w, {DOWN, {.ptr = &total}}, {N, {.i32 = 130}});
    atomic_store(&most_here, 0);
    atomic_store(&least_here, INT32_MAX);
    assert_runs(&w);
    assert_int_equal(atomic_load(&most_here), cases[k].most);
    assert_int_equal(atomic_load(&least_here), cases[k].least);
  }
}

/* Handwritten code may count on zeroes where it leaves its sum, in each call. */
HAND_KERNEL(leaving, SUM(int)) {
  const int here = (int)(range.end - range.begin);
  memcpy(args[0].ptr, &here, sizeof here);
}

TEST(test_sums_begin_at_zero_in_each_call) {
  LIST_OVER(sum_slots, list, GK_RUN(leaving, N, DOWN));
  static const int counts[] = {1, 100, 64000, ITEMS};
  for (size_t c = 0; c < GK_COUNT(counts); ++c) {
    int total = 0;
    WORLD(w, &list, 2, SHARE_ALL);
    RUN_WITH(&w, {DOWN, {.ptr = &total}}, {N, {.i32 = counts[c]}});
    assert_int_equal(total, counts[c]);
  }
}

HAND_KERNEL(toiling, INOUT(int)) { let_pass_here((range.end - range.begin) * ITEM_NS); }

/* @return the learned cost of an item of a task that a team of two shares */
static float learned_ns(const gk_list *list, int threads, int items) {
  WORLD(w, list, threads, SHARE_ALL);
  w.device.team.limit = 2;
  BIND(&w, {X, {.ptr = met}}, {N, {.i32 = items}});
  for (int run = 0; run < 5; ++run) assert_runs(&w);
  const float ns = w.program.ops[0].cost_ns;
  for (int run = 0; run < 35; ++run) {
    assert_runs(&w);
    assert_true(w.program.ops[0].cost_ns == ns);
  }
  return ns;
}

/* An item's cost is learned from all threads that took part, also from more partial sums than threads. It grows at most
 * eightfold each time. */
TEST(test_what_an_item_takes) {
  static const int counts[] = {20, 256, 1000};
  static const gk_slot_desc double_slots[] = {GK_BUFFER(X, double), GK_SCALAR(N, int)};
  KERNEL_OF(ints, toiling_host, SUM(int));
  KERNEL_OF(doubles, toiling_host, SUM(double));
  LIST_OVER(sum_slots, plain, GK_RUN(toiling, N, X));
  LIST_OVER(sum_slots, int_sums, GK_RUN(ints, N, X));
  LIST_OVER(double_slots, double_sums, GK_RUN(doubles, N, X));
  static const gk_list *const lists[] = {&plain, &int_sums, &double_sums};
  needs_threads(2);
  for (size_t l = 0; l < GK_COUNT(lists); ++l)
    for (int threads = 2; threads <= 4; threads += 2)
      for (size_t c = 0; c < GK_COUNT(counts); ++c) {
        if (l == 2 && c == 0) continue; /* too few to be cut, where the cuts decide the bits */
        const float ns = learned_ns(lists[l], threads, counts[c]);
        if (ns != ITEM_NS) fail_msg("%s, %d items: each is taken for %g ns", lists[l]->name, counts[c], (double)ns);
      }
}

static uint64_t each_ns;
HAND_KERNEL(as_said, INOUT(int)) { let_pass_here((range.end - range.begin) * each_ns); }

/* At first the measured cost counts, eightfold at most; later a quarter of it, between half and twice the known cost.
 * It is measured again soon where it grows, else ever later. */
TEST(test_how_costs_are_learned) {
  LIST_OVER(sum_slots, list, GK_RUN(as_said, N, X));
  static const struct { uint64_t seen; float cost; int timed, countdown; } steps[] = {
    {1000, 8, 1, 1}, {1000, 64, 2, 1}, {1000, 512, 3, 1}, {1000, 1000, 4, 16}, {8000, 8000, 5, 16},
    {8001, 8001, 6, 16}, {10, 10, 7, 16}, {100, 80, 8, 1}, {800, 100, 9, 1}, {640, 125, 10, 64}, {10, 109.375f, 11, 64},
    {100, 107.03125f, 12, 64}, {107, 107.0234375f, 13, 64}, {107, 107.017578125f, 14, 64},
    {107, 107.01318359375f, 15, 64}, {107, 107.0098876953125f, 15, 64}, {107, 107.007415771484375f, 15, 64},
  };
  WORLD(w, &list, 2, SHARE_NOTHING);
  w.device.clock_ns = 0;
  BIND(&w, {X, {.ptr = met}}, {N, {.i32 = 4}});
  for (size_t k = 0; k < GK_COUNT(steps); ++k) {
    gki_op *op = &w.program.ops[0];
    op->countdown = 1;
    each_ns = steps[k].seen;
    assert_runs(&w);
    if (fabsf(op->cost_ns / steps[k].cost - 1) > 1e-6f || op->timed != steps[k].timed ||
        op->countdown != steps[k].countdown)
      fail_msg("step %zu: %g ns, timed %d, again after %d", k, (double)op->cost_ns, op->timed, op->countdown);
    assert_true(op->alone_ns == 4 * op->cost_ns);
  }
}

/* A task that took no time is measured again, and its cost is learned when it takes more. */
TEST(test_nothing_is_not_for_ever) {
  LIST_OVER(sum_slots, list, GK_RUN(toiling, N, X));
  WORLD(w, &list, 2, AS_MEASURED);
  BIND(&w, {X, {.ptr = met}}, {N, {.i32 = 2}});
  gki_op *op = &w.program.ops[0];
  w.device.clock_ns = 1e9f; /* as with a clock that ticks slowly: one measures 0 */
  for (int k = 0; k < 200 && op->timed < 15; ++k) {
    op->countdown = 1;
    assert_runs(&w);
  }
  assert_true(op->cost_ns < 1);
  w.device.clock_ns = 0;
  op->countdown = 1;
  for (int k = 0; k < 3000 && op->cost_ns < 0.99f * ITEM_NS; ++k) assert_runs(&w);
  assert_true(op->cost_ns >= 0.99f * ITEM_NS && op->cost_ns <= ITEM_NS);
}

/* A task that is alone in its checkpoint is timed when it is due, as any other is. */
TEST(test_a_task_of_a_checkpoint_is_timed) {
  LIST_OVER(sum_slots, list, CHECKPOINT("first", FLAG, 1, GK_RUN(toiling, N, X)),
                             CHECKPOINT("second", FLAG, 2, GK_RUN(toiling, N, X)));
  int silent = 0;
  WORLD(w, &list, 2, AS_MEASURED);
  BIND(&w, {X, {.ptr = met}}, {N, {.i32 = 8}}, {FLAG, {.ptr = &silent}});
  for (int run = 0; run < 5; ++run) assert_runs(&w);
  for (int k = 0; k < 2; ++k)
    if (w.program.ops[k].cost_ns != ITEM_NS)
      fail_msg("task %d: an item is taken for %g ns", k, (double)w.program.ops[k].cost_ns);
}

HAND_KERNEL(idle, INOUT(int)) {}

/* Small ones are timed now and then while they are shared, so what was believed of one is mended; also of one that was
 * over a single item until now, and so not worth timing. */
TEST(test_small_tasks_go_on_being_timed) {
  enum { PASSES = 100, BELIEVED_NS = 2000 };
  LIST_OVER(sum_slots, list, GK_DO_WHILE(X, .max_iterations = PASSES), GK_RUN(idle, N, X), GK_END);
  int always = 1;
  WORLD(w, &list, 2, SHARE_ALL);
  bind_ptr(&w, X, &always);
  RUN_WITH(&w, {N, {.i32 = 4}});
  RUN_WITH(&w, {N, {.i32 = 1}});
  bind_i32(&w, N, 4);
  w.program.ops[0].cost_ns = BELIEVED_NS;
  assert_runs(&w);
  assert_true(w.program.ops[0].cost_ns < BELIEVED_NS / 2);
}

TEST(test_bytes_in_chunks) {
  LIST(list, {.op = GK_OP_COPY, .name = "copy", .items = {N}, .args = {X, FROM}, .offset = 3, .from_offset = 5},
             {.op = GK_OP_FILL, .name = "fill", .items = {N}, .args = {FROM}, .offset = 8, .pattern = 0x01020304u});
  for (int count = ITEMS - 1; count <= ITEMS; ++count)
    FOR_EACH_TEAM(w, &list, 2, 3, 8) {
      const unsigned char pattern[] = {4, 3, 2, 1};
      BIND(&w, {X, {.ptr = bytes}}, {FROM, {.ptr = from}}, {N, {.i32 = count}});
      memset(bytes, 0x55, sizeof bytes);
      for (size_t k = 0; k < sizeof from; ++k) from[k] = (unsigned char)(k * 31 % 127);
      for (uint32_t k = 0; k < w.program.op_count; ++k) w.program.ops[k].cost_ns = 1; /* else eight have no chunks */
      assert_runs(&w);
      for (int k = 0; k < (int)sizeof bytes; ++k) {
        const bool copied = k >= 3 && k < count + 3, filled = k >= 8 && k < count + 8;
        if (bytes[k] != (copied ? (k + 2) * 31 % 127 : 0x55)) fail_msg("byte %d of %d, copied", k, count);
        if (from[k] != (filled ? pattern[k % 4] : k * 31 % 127)) fail_msg("byte %d of %d, filled", k, count);
      }
    }
}

int main(void) { return run_all_tests(); }
