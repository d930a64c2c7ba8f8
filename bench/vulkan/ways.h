/* The ways in which gk runs a list on Vulkan, each on a device of its own: the gate is chosen when a device is opened.
 * The process runs on one core: with more, the time at which Mesa's lavapipe wakes its threads is all that is seen. */
#ifndef BENCH_VULKAN_WAYS_H
#define BENCH_VULKAN_WAYS_H
#include "bench/harness/must.h"

/* WAY_GK: as gk chooses. WAY_HOST: the host makes all decisions. WAY_COUNTED: as WAY_GK, to count its waits. */
enum { WAY_GK, WAY_GRID, WAY_GUARD, WAY_HOST, WAY_COUNTED, WAYS, TIMED = WAY_COUNTED };

typedef struct vulkan_way {
  const char *name; /* of a variant */
  gk_device *device;
  unsigned bits; /* for gk_graph_create */
} vulkan_way;
extern vulkan_way bench_ways[WAYS];

/* Call it after bench_begin. Reports the device. @return Whether there is one; else *why has the reason */
bool bench_ways_open(const char **why);
void bench_ways_close(void);

/* Launches and waits. @return The time of both in ns */
double bench_launch(gk_graph *graph, int32_t from, const gk_status **status);

/* On the device of WAY_COUNTED: how often the host waited for the device, for flags or the state behind a tape. */
unsigned bench_waits(gk_graph *graph, const gk_status **status);
#endif
