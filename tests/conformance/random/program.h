/* The parts of printed random lists: each call does on a device what the story did, and compares the result with what
 * the contract wants. main ends with `return finish();`: 0, if all was right. */
#ifndef RANDOM_PROGRAM_H
#define RANDOM_PROGRAM_H
#include "kernels.h"
#include <stdio.h>
#include <stdlib.h>

#define INTS(...) (const int[]){__VA_ARGS__}, GK_COUNT(((const int[]){__VA_ARGS__}))

static gk_device *device;
static gk_graph *graph;
static const gk_status *status;
static unsigned launches;
static random_stops stops;
static stay_door *door;
static random_host hosts[64];
static void *brought[256];
static size_t host_count, brought_count;
static int wrong;

static inline void must(gk_result result, const char *what) {
  if (result == GK_OK) return;
  printf("%s: %s\n", what, gk_error());
  exit(2);
}

/* Of tests/device, where that is linked with the program; as main.c has it. */
void test_device_register(void) __attribute__((weak));
void test_device_seed(uint64_t seed) __attribute__((weak));

static inline void begin(const char *backend, const gk_list *list, uint32_t bits) {
  if (test_device_register && test_device_seed) {
    test_device_register();
    test_device_seed(SEED / 250 % 8 ? 0 : (uint64_t)SEED + 1);
  }
  must(gk_device_open(&(gk_device_desc){.backend = backend}, &device), "gk_device_open");
  must(gk_graph_create(device, list, bits, &graph), "gk_graph_create");
  sem_init(&stops.reached, 0, 0);
  sem_init(&stops.go, 0, 0);
}

static inline void put(const char *slot, size_t at, const int *ints, size_t count) {
  int *memory = (int *)gk_bound(graph, gk_find_slot(graph, slot));
  must(gk_upload(device, memory + at, ints, count * sizeof *ints), slot);
}

static inline void bring(const char *slot, size_t ints, gk_memory kind) {
  void *memory = brought[brought_count++ % 256] = gk_alloc(device, ints * sizeof(int), kind);
  must(gk_bind(graph, gk_find_slot(graph, slot), memory), slot);
}

static inline void bring_host(const char *slot) {
  random_host *host = &hosts[host_count++ % 64];
  void *memory = gk_alloc(device, 4, GK_DEVICE_MEMORY);
  *host = (random_host){.near = gk_host_address(device, memory) == memory, .stops = &stops};
  gk_free(device, memory);
  must(gk_bind(graph, gk_find_slot(graph, slot), host), slot);
}

static inline void bring_door(const char *slot) {
  if (!door) door = (stay_door *)gk_alloc(device, sizeof *door, GK_HOST_MEMORY);
  if (door) stay_at(door, 0);
  must(gk_bind(graph, gk_find_slot(graph, slot), door), slot);
}

static inline void give_pair(const char *slot, int a, int b) {
  must(gk_bind_bytes(graph, gk_find_slot(graph, slot), &(pair){a, b}, sizeof(pair)), slot);
}
static inline void give_int(const char *slot, int64_t value) {
  must(gk_bind_int(graph, gk_find_slot(graph, slot), value), slot);
}
static inline void give_float(const char *slot, int value) {
  must(gk_bind_float(graph, gk_find_slot(graph, slot), value), slot);
}
static inline void resize(const char *slot, size_t count) {
  must(gk_resize(graph, gk_find_slot(graph, slot), count), slot);
}

static inline void launch(int32_t label) {
  must(gk_launch(graph, label), "gk_launch");
  ++launches;
}
static inline void stop_at(int countdown) {
  if (door) stay_at(door, countdown);
  else stops.countdown = countdown;
}
static inline void cancel(void) {
  if (door) stay_await(door, graph);
  else while (sem_wait(&stops.reached)) continue;
  must(gk_cancel(graph), "gk_cancel");
  if (door) stay_open(door);
  else sem_post(&stops.go);
}

static inline void ended(gk_state state, int32_t yielded) {
  must(gk_wait(graph, &status), "gk_wait");
  if (status->state == state && status->yielded == yielded) return;
  printf("launch %llu: state %d, yielded %d; by the contract %d, %d\n", (unsigned long long)status->launch,
         (int)status->state, (int)status->yielded, (int)state, (int)yielded);
  wrong = 1;
}

/* The launch fails by a count; what the host counted of calls begins anew. */
static inline void fails(void) {
  const gk_result result = gk_wait(graph, NULL);
  for (size_t k = 0; k < host_count && k < 64; ++k) hosts[k].calls = 0, hosts[k].trail = 0;
  if (result == GK_ERROR_INVALID) return;
  printf("%s, by the contract %s\n", gk_result_name(result), gk_result_name(GK_ERROR_INVALID));
  wrong = 1;
}

static inline void made(size_t loop, uint64_t passes, bool hit_bound) {
  const gk_loop_status *is = &status->loops[loop];
  if (is->passes == passes && is->hit_bound == hit_bound) return;
  printf("launch %llu: loop %zu (%s) made %llu passes, bound %d; by the contract %llu, %d\n",
         (unsigned long long)status->launch, loop, is->name, (unsigned long long)is->passes, is->hit_bound,
         (unsigned long long)passes, hit_bound);
  wrong = 1;
}

static inline void holds(const char *slot, const int *ints, size_t count) {
  int is[256];
  must(gk_download(device, is, gk_bound(graph, gk_find_slot(graph, slot)), count * sizeof *is), slot);
  for (size_t k = 0; k < count; ++k)
    if (is[k] != ints[k]) {
      printf("launch %u: %s[%zu] is %d, by the contract %d\n", launches, slot, k, is[k], ints[k]);
      wrong = 1;
    }
}

static inline int finish(void) {
  gk_graph_destroy(graph);
  for (size_t k = 0; k < brought_count && k < 256; ++k) gk_free(device, brought[k]);
  gk_free(device, door);
  gk_device_close(device);
  puts(wrong ? "not what the contract wants" : "as the contract wants");
  return wrong;
}
#endif
