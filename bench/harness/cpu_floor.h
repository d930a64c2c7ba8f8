/* The floor on the CPU: the least times of simple operations, in ns. A table's .floor is a multiple of one of them.
 * They are measured before gk's first call. Of a large array only a thread's share is measured: the shares may fit into
 * nearer caches than the whole array. */
#ifndef BENCH_CPU_FLOOR_H
#define BENCH_CPU_FLOOR_H

#define CPU_CALL "a call through a pointer"
#define CPU_BARRIER "two threads that meet"
#define CPU_SMALL "one thread, a mebibyte of 4 KiB added to"
#define CPU_LARGE "one thread, a mebibyte of its share of 4 MiB added to"
#define CPU_LARGEST "one thread, a mebibyte of its share of 16 MiB added to"

/* Call it after bench_begin, before anything starts threads. */
void bench_cpu_floor(void);

/* The number of threads of a parallel region. */
int bench_cpu_threads(void);
#endif
