/* What the system says of the machine's cores. */
#ifndef BENCH_MACHINE_H
#define BENCH_MACHINE_H
#include <stdbool.h>
#include <stddef.h>

/* The processor's, as /proc/cpuinfo has it; "CPU" where it has none. */
void bench_machine_name(char *name, size_t bytes);
/* As the governor of each core says; where there is none, as on most virtual machines, as the processor's list does. */
void bench_machine_clocks(char *text, size_t bytes);
/* Ticks of all cores since the machine was started, and those of them in which its host had given a core to others.
 * @return whether the system says */
bool bench_machine_ticks(double *all, double *stolen);
#endif
