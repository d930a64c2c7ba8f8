/* Whether a wake-up of the OpenMP backend's team can be lost: its source, with atomics on a model of memory. There a
 * thread's stores stay with it until a fence, an exchange or the kernel passes them on, as C and processors allow, and
 * each of two threads is run at every step of the other. On a real machine that takes luck. */
#include <linux/futex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>

/* ---- the model --------------------------------------------------------------------------------------------------- */

enum { THREADS = 2, STORES = 64 };

typedef struct store { void *at; uint64_t value; size_t bytes; } store;

static struct model {
  uint32_t thread;              /* that runs: 0, and within it, once, 1 */
  store stores[THREADS][STORES]; /* that no other thread sees yet, in their order */
  uint32_t count[THREADS];
  uint32_t step, at;            /* of thread 0, and the one before which thread 1 runs */
  bool ran, sleeps[THREADS], woken[THREADS];
  void *bed[THREADS];           /* the word that a thread sleeps at */
  void (*other)(void), (*last)(void); /* what thread 1 does then, and, if there is more, once thread 0 sleeps */
  jmp_buf out;                  /* of thread 1, when it sleeps */
} model;

static void pass_on(uint32_t thread) {
  for (uint32_t k = 0; k < model.count[thread]; ++k) {
    const store *s = &model.stores[thread][k];
    memcpy(s->at, &s->value, s->bytes); /* little endian, as all of the tested */
  }
  model.count[thread] = 0;
}

static void run_other(void (*other)(void)) {
  model.ran = true;
  model.thread = 1;
  if (other && setjmp(model.out) == 0) other();
  model.thread = 0;
}

/* Before each access. */
static void step(void) {
  if (model.thread == 0 && model.step++ == model.at && !model.ran) run_other(model.other);
}

static void model_store(void *at, uint64_t value, size_t bytes, memory_order order) {
  step();
  const uint32_t me = model.thread;
  assert_true(model.count[me] < STORES);
  model.stores[me][model.count[me]++] = (store){at, value, bytes};
  if (order == memory_order_seq_cst) pass_on(me);
}

static uint64_t model_load(const void *at, size_t bytes) {
  step();
  uint64_t value = 0;
  memcpy(&value, at, bytes);
  const uint32_t me = model.thread;
  for (uint32_t k = 0; k < model.count[me]; ++k)
    if (model.stores[me][k].at == at) value = model.stores[me][k].value;
  return value;
}

static void model_fence(memory_order order) {
  step();
  if (order == memory_order_seq_cst) pass_on(model.thread);
}

static uint64_t model_add(void *at, uint64_t value, size_t bytes) {
  step();
  pass_on(model.thread);
  uint64_t before = 0;
  memcpy(&before, at, bytes);
  const uint64_t after = before + value;
  memcpy(at, &after, bytes);
  return before;
}

static bool model_exchange(void *at, void *expected, uint64_t value, size_t bytes) {
  step();
  pass_on(model.thread);
  const bool same = memcmp(at, expected, bytes) == 0;
  memcpy(same ? at : expected, same ? (void *)&value : at, bytes);
  return same;
}

/* A futex: the kernel has a barrier of its own before it looks at the word. */
static void sleep_at(uint32_t *word, uint32_t value) {
  const uint32_t me = model.thread;
  pass_on(me);
  if (*word != value) return;
  model.sleeps[me] = true;
  model.bed[me] = word;
  if (me == 1) longjmp(model.out, 1);
  if (!model.ran) run_other(model.other);
  if (!model.woken[0]) run_other(model.last);
  if (!model.woken[0]) fail_msg("thread 1 ran before step %u: thread 0 sleeps for ever", model.at);
  model.sleeps[0] = false;
}

static void wake_at(const void *word) {
  step();
  pass_on(model.thread);
  const uint32_t them = 1 - model.thread;
  if (model.sleeps[them] && model.bed[them] == word) model.woken[them] = true;
}

static long model_call(long number, ...) {
  va_list list;
  va_start(list, number);
  if (number == SYS_futex) {
    uint32_t *word = va_arg(list, uint32_t *);
    const int what = va_arg(list, int);
    const uint32_t value = va_arg(list, uint32_t);
    if (what == FUTEX_WAIT_PRIVATE) sleep_at(word, value);
    else wake_at(word);
  }
  va_end(list);
  return number == SYS_gettid;
}

/* ---- the team ---------------------------------------------------------------------------------------------------- */

#undef atomic_store_explicit
#undef atomic_load_explicit
#undef atomic_thread_fence
#undef atomic_fetch_sub_explicit
#undef atomic_compare_exchange_strong_explicit
#define VALUE_OF(p, value) _Generic(*(p), unsigned: (unsigned)(value), int: (int)(value), default: (value))
#define atomic_store_explicit(p, value, order) model_store((void *)(p), (uint64_t)(value), sizeof *(p), order)
#define atomic_load_explicit(p, order) VALUE_OF(p, model_load((const void *)(p), sizeof *(p)))
#define atomic_thread_fence(order) model_fence(order)
#define atomic_fetch_sub_explicit(p, value, order) \
  VALUE_OF(p, model_add((void *)(p), 0 - (uint64_t)(value), sizeof *(p)))
#define atomic_compare_exchange_strong_explicit(p, expected, value, order, failed) \
  model_exchange((void *)(p), expected, (uint64_t)(value), sizeof *(p))
#define syscall model_call
#define gki_team_make modelled_make
#define gki_team_free modelled_free
#define gki_team_meet modelled_meet
#define gki_team_post modelled_post
#define gki_team_wait modelled_wait
#include "openmp/team.c"

static gki_seat seats[3];
static gki_team team = {.wanted = 3, .size = 3, .crowded = true, .seats = seats}; /* crowded: none spins for long */
static gki_order order;

static void post_order(void) { gki_team_post(&team, &order, 0, 2, 2); }
static void await_order(void) { (void)await_bell(&team, &seats[1], 0, 0); }
static void await_others(void) { gki_team_wait(&team, &order); }
static void serve_order(void) { serve(&team, 1); }
static void serve_last(void) { serve(&team, 2); }
static void begin_posted(void) {
  post_order();
  pass_on(0);
}
static void begin_posted_to_two(void) {
  gki_team_post(&team, &order, 0, 3, 3);
  pass_on(0);
}

/* Thread 1 is run at each step of thread 0, and behind the last. What one is to wake the other for has happened in the
 * end, so one that sleeps then sleeps for ever. last: what happens if thread 0 sleeps. */
static void check_pair(void (*before)(void), void (*first)(void), void (*other)(void), void (*last)(void)) {
  uint32_t steps = 1;
  for (uint32_t at = 0; at <= steps; ++at) {
    memset(seats, 0, sizeof seats);
    memset(&order, 0, sizeof order);
    memset(&model, 0, sizeof model);
    model.ran = true;
    if (before) before();
    model.ran = false;
    model.step = 0;
    model.at = at;
    model.other = other;
    model.last = last;
    first();
    if (!model.ran) run_other(other);
    steps = model.step;
    pass_on(0);
    pass_on(1);
    if (model.sleeps[1] && !model.woken[1])
      fail_msg("thread 1 ran before step %u of %u: it sleeps for ever", at, steps);
  }
  assert_true(steps > 3);
}

static void test_a_posted_order_is_heard(void **state) {
  (void)state;
  check_pair(NULL, post_order, await_order, NULL);
  check_pair(NULL, await_order, post_order, NULL);
}

static void test_the_last_one_done_wakes_the_waiting_one(void **state) {
  (void)state;
  check_pair(begin_posted, await_others, serve_order, NULL);
  check_pair(begin_posted, serve_order, await_others, NULL);
  check_pair(begin_posted_to_two, await_others, serve_order, serve_last);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_a_posted_order_is_heard),
    cmocka_unit_test(test_the_last_one_done_wakes_the_waiting_one),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
