#include "bench/harness/machine.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef BENCH_ROOT
#define BENCH_ROOT "" /* the folder of /proc and /sys; the test has another */
#endif

void bench_machine_name(char *name, size_t bytes) {
  char line[256];
  FILE *file = fopen("/proc/cpuinfo", "r");
  snprintf(name, bytes, "CPU");
  while (file && fgets(line, sizeof line, file)) {
    char *value = strchr(line, ':');
    if (strncmp(line, "model name", 10) != 0 || !value) continue;
    value += 1 + strspn(value + 1, " ");
    snprintf(name, bytes, "%.*s", (int)strcspn(value, "\n"), value);
    break;
  }
  if (file) fclose(file);
}

typedef struct clocks { int cores; double least, most; /* MHz */ } clocks;

static void add_clock(clocks *seen, double mhz) {
  if (!(mhz > 0)) return;
  if (!seen->cores || mhz < seen->least) seen->least = mhz;
  if (!seen->cores || mhz > seen->most) seen->most = mhz;
  ++seen->cores;
}

void bench_machine_clocks(char *text, size_t bytes) {
  char line[256];
  clocks seen = {0};
  const char *from = "cpufreq";
  for (long k = 0; k < sysconf(_SC_NPROCESSORS_CONF); ++k) {
    snprintf(line, sizeof line, BENCH_ROOT "/sys/devices/system/cpu/cpu%ld/cpufreq/scaling_cur_freq", k);
    FILE *file = fopen(line, "r");
    if (!file) continue;
    if (fgets(line, sizeof line, file)) add_clock(&seen, strtod(line, NULL) / 1000);
    fclose(file);
  }
  FILE *file = seen.cores ? NULL : fopen(BENCH_ROOT "/proc/cpuinfo", "r");
  while (file && fgets(line, sizeof line, file)) {
    const char *value = strchr(line, ':');
    if (strncmp(line, "cpu MHz", 7) == 0 && value) add_clock(&seen, strtod(value + 1, NULL));
    from = "/proc/cpuinfo";
  }
  if (file) fclose(file);
  char least[40] = "";
  if (seen.most - seen.least >= 0.5) snprintf(least, sizeof least, "%.0f to ", seen.least);
  if (!seen.cores) snprintf(text, bytes, "unknown: neither cpufreq nor /proc/cpuinfo has them");
  else
    snprintf(text, bytes, "%d core%s at %s%.0f MHz (%s)", seen.cores, seen.cores > 1 ? "s" : "", least, seen.most,
             from);
}

bool bench_machine_ticks(double *all, double *stolen) {
  enum { STEAL = 7, KINDS };
  double ticks[KINDS];
  FILE *file = fopen(BENCH_ROOT "/proc/stat", "r");
  const bool read = file && fscanf(file, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", &ticks[0], &ticks[1], &ticks[2],
                                   &ticks[3], &ticks[4], &ticks[5], &ticks[6], &ticks[STEAL]) == KINDS;
  if (file) fclose(file);
  if (!read) return false;
  *all = 0;
  for (int k = 0; k < KINDS; ++k) *all += ticks[k];
  *stolen = ticks[STEAL];
  return true;
}
