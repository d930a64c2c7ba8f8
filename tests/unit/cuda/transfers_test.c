/* COPY and FILL of transfer.inc, and the kernels of the probe, compiled for the host. AddressSanitizer bounds what COPY
 * and FILL touch to the byte. */
#include "unit/support/test.h"
#include "unit/support/chance.h"
#include "unit/support/gates_host.h"
#include "gk.h"

static struct { uint64_t handle; uint32_t value; } set[64];
static uint32_t set_count;

static void cudaGraphSetConditional(unsigned long long handle, unsigned value) {
  assert_true(set_count < GK_COUNT(set));
  set[set_count].handle = handle;
  set[set_count++].value = value;
}
static int32_t host_consult(const char *at, int32_t value) {
  assert_non_null(at);
  return value;
}

enum { MOST = 400 };

typedef struct mover {
  _Alignas(16) gki_transfer record;
  uint64_t guard;
  gki_cuda_control control;
  gki_bad_count posts[GKI_LAUNCH_RING];
  gki_task task;
} mover;

static void mover_begin(mover *m, const void *to, const void *from) {
  *m = (mover){.control.number = 7, .guard = 6,
               .record = {.count = 1, .element = 1, .node = 5, .to = (uint64_t)to, .from = (uint64_t)from}};
  m->control.failures = (uint64_t)m->posts;
  m->task = (gki_task){.record = (uint64_t)&m->record, .number = (uint64_t)&m->control};
}

/* `count` elements from one offset to another. */
static void mover_begin_items(mover *m, unsigned char *to, unsigned char *from, uint32_t element, uint32_t count) {
  mover_begin(m, to, from);
  m->record.element = element;
  m->record.count = count;
}

/* Memory of exactly that many bytes, from an address with that remainder; free `whole`. */
static unsigned char *ragged(unsigned char **whole, size_t bytes, size_t remainder, uint64_t seed) {
  *whole = malloc(bytes + remainder); /* at a multiple of 16 */
  assert_non_null(*whole);
  for (size_t k = 0; k < bytes + remainder; ++k) (*whole)[k] = (unsigned char)mix(seed + k);
  return *whole + remainder;
}

static void run(mover *m, void (*entry)(const gki_task task), uint64_t *random) {
  const unsigned grid = 1 + pick(random, 3), block = 1 + pick(random, 40);
  HOST_RUN(grid, block, entry(m->task));
}

TEST(test_copy) {
  uint64_t random = 1;
  for (int trial = 0; trial < 20000; ++trial) {
    const uint32_t element = 1 + pick(&random, 20), count = pick(&random, MOST / element), bytes = element * count;
    const uint32_t to_offset = pick(&random, 3) * 16 + pick(&random, 20), from_offset = pick(&random, 40);
    const bool alike = pick(&random, 2); /* so that whole lines are copied */
    const uint32_t at = pick(&random, 16);
    const uint32_t from_at = alike ? (at + to_offset + 64 - from_offset) % 16 : pick(&random, 16);
    unsigned char *to_whole, *from_whole, wanted[MOST + 64];
    unsigned char *to = ragged(&to_whole, to_offset + bytes, at, 5), *from = ragged(&from_whole, from_offset + bytes,
                                                                                    from_at, 99);
    mover m;
    mover_begin_items(&m, to + to_offset, from + from_offset, element, count);
    memcpy(wanted, to, to_offset + bytes);
    memcpy(wanted + to_offset, from + from_offset, bytes);
    run(&m, gki_copy, &random);
    assert_memory_equal(to, wanted, to_offset + bytes);
    free(to_whole);
    free(from_whole);
  }
}

/* Like memmove: by one thread, and by several that wait for each other. */
TEST(test_copy_onto_itself) {
  uint64_t random = 2;
  for (int trial = 0; trial < 3000; ++trial) {
    const uint32_t unit = pick(&random, 3) == 0 ? 1 : pick(&random, 2) ? 4 : 16;
    const uint32_t count = 1 + pick(&random, 20), element = unit * (1 + pick(&random, 2)), bytes = element * count;
    const uint32_t to_offset = unit * pick(&random, 12), from_offset = unit * pick(&random, 12);
    const uint32_t all = bytes + (to_offset > from_offset ? to_offset : from_offset);
    unsigned char *whole, wanted[2 * MOST + 600];
    unsigned char *memory = ragged(&whole, all, 0, (uint64_t)trial);
    mover m;
    mover_begin_items(&m, memory + to_offset, memory + from_offset, element, count);
    memcpy(wanted, memory, all);
    memmove(wanted + to_offset, wanted + from_offset, bytes);
    if (trial % 10) HOST_RUN(1 + pick(&random, 3), 1, gki_copy(m.task));
    else host_run_threads(1 + pick(&random, 2), 1 + pick(&random, 8), gki_copy, &m.task);
    assert_memory_equal(memory, wanted, all);
    free(whole);
  }
}

TEST(test_fill) {
  uint64_t random = 3;
  for (int trial = 0; trial < 20000; ++trial) {
    const uint32_t element = 4 * (1 + pick(&random, 5)), count = pick(&random, MOST / element), bytes = element * count;
    const uint32_t offset = 4 * pick(&random, 12), at = pick(&random, 4) ? 4 * pick(&random, 4) : pick(&random, 16);
    unsigned char *whole, wanted[MOST + 64];
    unsigned char *to = ragged(&whole, offset + bytes, at, 5);
    mover m;
    mover_begin_items(&m, to + offset, NULL, element, count);
    m.record.pattern = (uint32_t)mix((uint64_t)trial);
    memcpy(wanted, to, offset + bytes);
    for (uint32_t k = 0; k < bytes; k += 4) memcpy(wanted + offset + k, &m.record.pattern, 4);
    run(&m, gki_fill, &random);
    assert_memory_equal(to, wanted, offset + bytes);
    free(whole);
  }
}

/* How many elements of one byte are copied. */
static uint32_t copied(mover *m) {
  unsigned char to[64] = {0}, from[64];
  memset(from, 1, sizeof from);
  m->record.to = (uint64_t)to;
  m->record.from = (uint64_t)from;
  HOST_RUN(2, 3, gki_copy(m->task));
  uint32_t count = 0;
  while (count < sizeof to && to[count]) ++count;
  for (size_t k = count; k < sizeof to; ++k) assert_int_equal(to[k], 0);
  return count;
}

/* The only post, with that many elements; it is forgotten then. */
static void expect_post(mover *m, uint64_t number, int64_t count) {
  const gki_bad_count *post = &m->posts[(number - 1) % GKI_LAUNCH_RING];
  assert_int_equal(post->number, number);
  assert_int_equal(post->node, 5);
  assert_true(post->extent[0] == count && post->extent[1] == 1 && post->extent[2] == 1);
  for (uint64_t k = 0; k < GKI_LAUNCH_RING; ++k)
    assert_true(k == (number - 1) % GKI_LAUNCH_RING || !m->posts[k].number);
  memset(m->posts, 0, sizeof m->posts);
}

static void expect_none(const mover *m) {
  for (uint64_t k = 0; k < GKI_LAUNCH_RING; ++k) assert_int_equal(m->posts[k].number, 0);
}

TEST(test_counts) {
  static const uint32_t counts[] = {1, 0, 60};
  static const int32_t read[][2] = {{33, 33}, {0, 0}, {-3, 0}, {INT32_MIN, 0}}; /* on the device, and copied */
  mover m;
  int32_t count;
  mover_begin(&m, NULL, NULL);
  for (size_t k = 0; k < GK_COUNT(counts); ++k) {
    m.record.count = counts[k];
    assert_int_equal(copied(&m), counts[k]);
  }
  m.record.count = GKI_UNCOUNTED | 1;
  m.record.count_at = (uint64_t)&count;
  m.record.to_room = m.record.from_room = UINT64_MAX;
  for (size_t k = 0; k < GK_COUNT(read); ++k) {
    count = read[k][0];
    assert_int_equal(copied(&m), read[k][1]);
  }
  expect_none(&m);
  m.record.count = GKI_UNCOUNTED; /* the host knows that it is bad */
  for (uint64_t number = 16; number < 20; ++number) { /* round the ring */
    m.control.number = number;
    host_fences = 0;
    assert_int_equal(copied(&m), 0);
    assert_int_equal(host_fences, 1); /* before the host is told */
    assert_int_equal(m.control.failed, number);
    expect_post(&m, number, 0);
  }
}

/* One element too many at either end. */
TEST(test_room) {
  enum { ROOM = 24 };
  mover m;
  int32_t count;
  unsigned char to[64] = {0};
  mover_begin(&m, to, to);
  m.record.count = GKI_UNCOUNTED | 1;
  m.record.count_at = (uint64_t)&count;
  for (int from = 0; from < 2; ++from) {
    m.record.to_room = from ? UINT64_MAX : ROOM;
    m.record.from_room = from ? ROOM : UINT64_MAX;
    m.control.number += 1;
    count = ROOM + 1;
    HOST_RUN(2, 3, gki_copy(m.task));
    expect_post(&m, m.control.number, ROOM + 1);
    count = ROOM + 2; /* only the first of a launch is told */
    HOST_RUN(2, 3, gki_copy(m.task));
    if (!from) HOST_RUN(2, 3, gki_fill(m.task));
    expect_none(&m);
    m.control.number += 1;
    for (count = ROOM; count >= -1; --count) HOST_RUN(2, 3, gki_copy(m.task));
    expect_none(&m);
  }
  m.record.to_room = 0; /* also if the offset lies behind all of it */
  count = 1;
  m.control.number += 1;
  HOST_RUN(1, 3, gki_fill(m.task));
  expect_post(&m, m.control.number, 1);
}

/* In graphs of others a launch posts under its arming's number, or not at all. */
TEST(test_posts_by_arming) {
  mover m;
  mover_begin(&m, NULL, NULL);
  m.record.count = GKI_UNCOUNTED;
  m.control.arms = 1;
  m.control.posts_as = 3;
  assert_int_equal(copied(&m), 0);
  expect_post(&m, 3, 0);
  m.control.number += 1;
  m.control.posts_as = 0;
  assert_int_equal(copied(&m), 0);
  assert_int_equal(m.control.failed, m.control.number);
  expect_none(&m);
}

TEST(test_word) {
  mover m;
  mover_begin(&m, NULL, NULL);
  m.task.guard = (uint64_t)&m.guard;
  assert_int_equal(copied(&m), 1); /* closed in another launch */
  m.guard = m.control.number;
  assert_int_equal(copied(&m), 0);
  unsigned char to[4] = {1, 2, 3, 4};
  m.record.to = (uint64_t)to;
  m.record.element = 4;
  HOST_RUN(1, 2, gki_fill(m.task));
  assert_int_equal(to[0], 1);
  m.guard = 0;
  HOST_RUN(1, 2, gki_fill(m.task));
  assert_int_equal(to[0], 0);
}

TEST(test_set_list) {
  static const gki_cuda_setting list[] = {{10, 0, 1}, {11, 1, 0}, {12, GKI_CUDA_NONE, 4}, {10, 2, 0}};
  static const uint64_t wanted[] = {10, 12, 11, 12, 12, 10, 10, 12};
  uint32_t runs = 0;
  set_count = 0;
  HOST_RUN(1, 32, gki_set_list(&runs, 0, list, 4));
  HOST_RUN(1, 32, gki_set_list(&runs, 0, list, 4));
  HOST_RUN(1, 32, gki_set_list(&runs, 0, list, 4)); /* in its third run 12, then 10 */
  HOST_RUN(1, 32, gki_set_list(&runs, 3, list, 4));
  assert_int_equal(runs, 4);
  assert_int_equal(set_count, GK_COUNT(wanted));
  for (size_t k = 0; k < GK_COUNT(wanted); ++k) assert_int_equal(set[k].handle, wanted[k]);
}

TEST(test_set_beside) {
  uint32_t at[3] = {0};
  set_count = 0;
  HOST_RUN(1, 32, gki_set_beside(at, 9, 1, 5));
  assert_int_equal(set_count, 5);
  for (uint32_t k = 0; k < 5; ++k) assert_int_equal(set[k].value, k % 2 == 0);
  assert_int_equal(at[0], 1);
  assert_int_equal(at[1], 1);
  assert_int_equal(at[2], 0);
  at[0] = 2; /* another launch came and isn't over */
  HOST_RUN(1, 32, gki_set_beside(at, 9, 1, 1));
  assert_int_equal(at[2], 1);
}

int main(void) { return run_all_tests(); }
