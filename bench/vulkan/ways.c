#include "bench/vulkan/ways.h"
#include "base/registry.h"
#include "gk_info.h"
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

vulkan_way bench_ways[WAYS] = {{"gk"}, {"gk, gated by empty grids"}, {"gk, gated by guards"},
                               {"gk, host-gated", .bits = GK_HOST_GATED}, {"gk, counted"}};

/* ---- counting ---------------------------------------------------------------------------------------------------- */

static gk_backend real;
static unsigned waits;

static gk_result open_real(void *device, const gk_device_desc *desc) {
  gk_device_desc as_real = *desc;
  as_real.backend = real.name;
  return real.open(device, &as_real);
}

static gk_result count_state(void *graph, const uint32_t **words) {
  waits += words != NULL; /* without: the end of a launch, whose tapes were all waited for */
  return real.state(graph, words);
}

static gk_result count_flag(void *graph, uint32_t node, int32_t *flag) {
  ++waits;
  return real.read_flag(graph, node, flag);
}

static void register_counted(void) {
  static gk_backend counted;
  counted = real = *gki_backend_named("vulkan");
  counted.name = "counted";
  counted.open = open_real;
  counted.state = count_state;
  counted.read_flag = count_flag;
  bench_must(gk_backend_register(&counted));
}

unsigned bench_waits(gk_graph *graph, const gk_status **status) {
  waits = 0;
  bench_launch(graph, 0, status);
  return waits;
}

/* ---- devices ----------------------------------------------------------------------------------------------------- */

/* The last core that the process may use. */
static int use_one_core(void) {
  cpu_set_t all, one;
  size_t core = CPU_SETSIZE - 1;
  CPU_ZERO(&all);
  CPU_ZERO(&one);
  if (sched_getaffinity(0, sizeof all, &all) != 0) return -1;
  while (core > 0 && !CPU_ISSET(core, &all)) --core;
  CPU_SET(core, &one);
  return sched_setaffinity(0, sizeof one, &one) == 0 ? (int)core : -1;
}

static void report(int core) {
  const gk_device_info *info = gk_device_describe(bench_ways[WAY_GK].device);
  char pinned[40];
  snprintf(pinned, sizeof pinned, core < 0 ? "all" : "%d alone", core);
  bench_fact(strstr(info->name, "(this machine's CPU)") ? "vulkan" : "gpu", info->name);
  bench_fact("driver", info->driver);
  bench_fact("core", pinned);
}

bool bench_ways_open(const char **why) {
  static const char *const gates[WAYS] = {[WAY_GRID] = "grid", [WAY_GUARD] = "guard"};
  const int core = use_one_core(); /* before a driver starts threads */
  for (int k = 0; k < WAYS; ++k) {
    if (gates[k]) setenv("GK_VULKAN_GATE", gates[k], 1);
    else unsetenv("GK_VULKAN_GATE");
    if (k == WAY_COUNTED) register_counted();
    const char *backend = k == WAY_COUNTED ? "counted" : "vulkan";
    if (gk_device_open(&(gk_device_desc){.backend = backend}, &bench_ways[k].device) == GK_OK) continue;
    *why = gk_error();
    return false;
  }
  report(core);
  return true;
}

void bench_ways_close(void) {
  for (int k = 0; k < WAYS; ++k) gk_device_close(bench_ways[k].device);
}

double bench_launch(gk_graph *graph, int32_t from, const gk_status **status) {
  const double begin = bench_now();
  bench_must(gk_launch(graph, from));
  bench_must(gk_wait(graph, status));
  return bench_now() - begin;
}
