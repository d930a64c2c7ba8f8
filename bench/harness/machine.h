/* The system's information about the machine's cores. */
#ifndef BENCH_MACHINE_H
#define BENCH_MACHINE_H
#include <stdbool.h>
#include <stddef.h>

/* The processor's name from /proc/cpuinfo, or "CPU" if it has none. */
void bench_machine_name(char *name, size_t bytes);
/* The clock rates from each core's governor, or from /proc/cpuinfo if there is no governor, as on most virtual
 * machines. */
void bench_machine_clocks(char *text, size_t bytes);
/* Ticks of all cores since the machine started, and the ticks in which its host gave a core to others.
 * @return Whether the system reports them */
bool bench_machine_ticks(double *all, double *stolen);
#endif
