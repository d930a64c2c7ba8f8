/* Variants in a process of their own. libgomp counts the threads of the process. If there are more threads than cores,
 * each one sleeps as soon as it waits, so several teams in one process would slow each other down. */
#ifndef BENCH_APART_H
#define BENCH_APART_H
#include "bench/harness/harness.h"
#include <sys/types.h>

/* The idle_ms of a variant with a team: libgomp's threads spin for some milliseconds after their work. */
enum { BENCH_IDLE_MS = 12 };

typedef struct bench_apart {
  pid_t process;
  int to, from; /* pipes */
} bench_apart;

/* Starts the process, which calls `run` as the harness calls a variant's. Call this before the current process starts
 * threads. The two processes share memory from bench_shared only. */
bench_apart bench_start_apart(bool (*run)(void *with, uint64_t times, bench_took *took), void *with);
/* The `run` of a variant whose `with` is the bench_apart. */
bool bench_run_apart(void *apart, uint64_t times, bench_took *took);
void bench_end_apart(bench_apart *apart);

/* These end the program if there is no memory. */
/* Zeroed memory, shared with processes that start later. It is freed when the last of them ends. */
void *bench_shared(size_t bytes);
/* Memory for a variant by hand: private to this process, and in large pages from 2 MiB on, like gk's memory on the CPU.
 * Shared memory rarely has them, and memory from before a fork loses them when it is written. free() frees it. */
void *bench_large(size_t bytes);
void *bench_large_zeros(size_t count, size_t bytes);
#endif
