/* How cost grows on OpenMP: with tasks, loops in loops, checkpoints, sections and slots (table G). */
#include "bench/apps/growth_lists.h"
#include "bench/harness/cpu_floor.h"
#include "bench/harness/must.h"
#include "gk_info.h"
#include <stdio.h>

int main(int argc, char **argv) {
  gk_device *device;
  bench_begin(argc, argv, "growth");
  bench_cpu_floor();
  bench_growth_begin();
  bench_must(gk_device_open(&(gk_device_desc){.backend = "openmp"}, &device));
  const gk_device_info *info = gk_device_describe(device);
  printf("%s; %s\n\n", info->name, info->driver);
  bench_growth_open(device);
  bench_growth_measure("G", 3, NULL, 0);
  bench_growth_close();
  gk_device_close(device);
  return bench_end();
}
