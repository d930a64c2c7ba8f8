/* Arms in a process of their own. libgomp counts the threads that it has started in a process, and where they are more
 * than cores it lets them go to sleep at once when they wait: teams by hand in one process slow each other down. */
#ifndef BENCH_APART_H
#define BENCH_APART_H
#include "bench/harness/harness.h"
#include <sys/types.h>

/* An arm's settle_ms where a team works for it: libgomp lets threads spin for some milliseconds behind their work. */
enum { BENCH_SETTLE_MS = 12 };

typedef struct bench_apart {
  pid_t process;
  int to, from; /* pipes */
} bench_apart;

/* Starts the process, in which `run` will be called as an arm's is. To be called before anything in this one starts
 * threads; what the two are to share afterwards lies in memory from bench_shared. */
bench_apart bench_start_apart(bool (*run)(void *with, uint64_t times, bench_took *took), void *with);
/* An arm's `run`, its `with` being the bench_apart. */
bool bench_run_apart(void *apart, uint64_t times, bench_took *took);
void bench_end_apart(bench_apart *apart);

/* Zeroed memory that processes started later share with this one; freed when the last of them ends. */
void *bench_shared(size_t bytes);
/* What an arm by hand works on: this process's alone, and from 2 MiB on in large pages, as gk's memory on the CPU is.
 * Shared memory can't have them as a rule, and what a process began with loses them where it is written. NULL: there is
 * none; free() gives it back. */
void *bench_large(size_t bytes);
#endif
