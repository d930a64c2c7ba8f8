/* The floor on the CPU, in ns: what a table's .floor is so many of. It is measured before anything of gk's. Of a large
 * array a thread is given its share: what several threads have each may lie in a nearer cache than the whole. */
#ifndef BENCH_CPU_FLOOR_H
#define BENCH_CPU_FLOOR_H

#define CPU_CALL "a call through a pointer"
#define CPU_MEETING "two threads that meet"
#define CPU_SMALL "one thread, a mebibyte of 4 KiB added to"
#define CPU_LARGE "one thread, a mebibyte of its share of 4 MiB added to"
#define CPU_LARGEST "one thread, a mebibyte of its share of 16 MiB added to"

/* To be called behind bench_begin, before anything starts threads. */
void bench_cpu_floor(void);

/* As many as a parallel region here has. */
int bench_cpu_threads(void);
#endif
