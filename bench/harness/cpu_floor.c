#include "bench/harness/cpu_floor.h"
#include "bench/harness/apart.h"
#include <omp.h>
#include <string.h>
#include <sys/mman.h>

int bench_cpu_threads(void) {
  const int most = omp_get_max_threads(), limit = omp_get_thread_limit();
  return most < limit ? most : limit;
}

enum { ITEMS = 1 << 22, BYTES = 4 * ITEMS, PAGE = 2 << 20 /* a large page, like those of gk's memory */ };
static int *x;

/* Vectorised with any flags of the program. */
static void add(int *to, int begin, int end) {
#pragma omp simd
  for (int i = begin; i < end; ++i) to[i] += 1;
}
static void (*volatile by_pointer)(int *, int, int) = add;

static uint64_t called;
static void nothing(void) {}
static void last(void) { ++called; }
static void (*volatile tasks[])(void) = {last, nothing};

/* No arguments, and the pointer stays in a register: no task can cost less. */
static bool a_call(void *with, uint64_t times, bench_took *took) {
  (void)with;
  void (*const empty)(void) = tasks[1];
  const uint64_t before = called;
  const double begin = bench_now();
  for (uint64_t k = 1; k < times; ++k) empty();
  tasks[0]();
  took->all += bench_now() - begin;
  return called == before + 1;
}

static bool barriers(void *with, uint64_t times, bench_took *took) {
  (void)with;
  int passed = 0;
  const double begin = bench_now();
#pragma omp parallel num_threads(2)
  {
    for (uint64_t k = 0; k < times; ++k) {
#pragma omp barrier
    }
#pragma omp atomic
    ++passed;
  }
  took->all += bench_now() - begin;
  return passed == 2 || bench_cpu_threads() == 1;
}

/* with: the items of the array. From 1 MiB on, a thread adds to its share of the array. */
static bool additions(void *with, uint64_t times, bench_took *took) {
  const int whole = *(const int *)with, n = whole < 1 << 18 ? whole : whole / bench_cpu_threads();
  const uint64_t passes = times * (uint64_t)(ITEMS / n);
  const unsigned first = (unsigned)x[0] + (unsigned)passes, last = (unsigned)x[n - 1] + (unsigned)passes;
  const double begin = bench_now();
  for (uint64_t k = 0; k < passes; ++k) by_pointer(x, 0, n);
  took->all += (bench_now() - begin) / ((double)(ITEMS / n) * n * sizeof *x / (1 << 20));
  return x[0] == (int)first && x[n - 1] == (int)last;
}

void bench_cpu_floor(void) {
  bench_apart barrier = bench_start_apart(barriers, NULL);
  /* Not from malloc: a large free() changes its thresholds, so gk would run with another malloc. */
  char *room = mmap(NULL, BYTES + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED) bench_fail("out of memory");
  x = (int *)(void *)(room + (PAGE - (uintptr_t)room % PAGE) % PAGE);
  (void)madvise(x, BYTES, MADV_HUGEPAGE);
  memset(x, 0, BYTES);
  bench_floor(&(bench_table){"floor", "what the machine takes", "what can no task be faster than?", "ns",
    .variants = {{CPU_CALL, a_call}, {CPU_BARRIER, bench_run_apart, &barrier, .idle_ms = BENCH_IDLE_MS},
                 {CPU_SMALL, additions, &(int){1024}}, {CPU_LARGE, additions, &(int){1 << 20}},
                 {CPU_LARGEST, additions, &(int){ITEMS}}}});
  bench_end_apart(&barrier);
  munmap(room, BYTES + PAGE);
}
