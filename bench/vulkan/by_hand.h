/* Plain Vulkan on gk's own device and queue: tasks x[i] += by, recorded and submitted by hand. */
#ifndef BENCH_VULKAN_BY_HAND_H
#define BENCH_VULKAN_BY_HAND_H
#include <stdint.h>
#include "gk.h"

#define VULKAN_TRIP "a submit and its wait"
#define VULKAN_TASK "a recorded task of one item and its barrier"

typedef struct hand_task {
  uint64_t x; /* address of the memory */
  uint32_t items;
  int32_t by;
} hand_task;

/* Also measures the floor. */
void bench_hand_begin(gk_device *device);
void bench_hand_end(void);

/* Records `count` equal tasks, each with a barrier behind it, in place of what was recorded before. There are two
 * recordings, 0 and 1. */
void bench_hand_record(int which, hand_task task, int count);
void bench_hand_submit_and_wait(int which);
#endif
