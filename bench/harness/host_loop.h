/* Whole applications with their decisions on the host, as one writes them with CUDA graphs that have no loops: between
 * two decisions lies a stretch, a list without loops, branches and checkpoints. Stretches are launched one behind the
 * other, and nothing waits but bench_host_read: it copies a flag's 4 bytes, and waits for them. The kernels are those
 * that gk's own graph has, and they work on the same memory.
 *
 * On CUDA a stretch is an exec of just its tasks' nodes, which cuGraphLaunch starts; but after something was bound it
 * is gk_launch once, which brings the slots to the device. On other backends it is a graph of gk's. */
#ifndef BENCH_HOST_LOOP_H
#define BENCH_HOST_LOOP_H
#include "bench/cuda/hand.h"

enum { HOST_STRETCHES = 16 /* of one loop, at most */, HOST_TASKS = 64 /* lines of one stretch */ };

typedef enum host_way {
  HOST_GRAPHS,  /* a launch per stretch */
  HOST_POLLED,  /* the same, but a kernel tells of the flag in page-locked memory, which the host watches; CUDA alone */
  HOST_KERNELS, /* a launch per task, on CUDA alone */
} host_way;

typedef struct host_stretch {
  gk_graph *graph;
  CUgraphExec exec;                               /* of the same nodes; CUDA alone, as the next one */
  CUDA_KERNEL_NODE_PARAMS_v1 kernels[HOST_TASKS]; /* by task */
  const gk_list *list;
  bool is_bound;    /* the next launch is gk's: it brings the slots */
  bool is_launched; /* by gk_launch, and nobody waited for it yet */
} host_stretch;

typedef struct host_loop {
  gk_device *device;
  host_way way;
  host_stretch stretches[HOST_STRETCHES];
  int count;
  const gk_slot_desc *slots; /* of all of them */
  size_t slot_count;
  volatile int *told; /* page-locked; CUDA alone */
  int *told_at;       /* the same on the device */
  CUfunction tell;    /* writes a flag's value there */
} host_loop;

/* Of a device from bench_hand_open, or of another backend. */
void bench_host_begin(host_loop *loop, gk_device *device, host_way way);
void bench_host_end(host_loop *loop);

/* @return Its number, from 0 on. All stretches have slots of one table; the list must last. */
int bench_host_add(host_loop *loop, const gk_list *list);

/* In the stretches that use the slot, when their launches are over. `share`: what has memory in `from`, a graph with
 * the same table, gets that; to be called again after gk_resize. */
void bench_host_share(host_loop *loop, const gk_graph *from);
void bench_host_bind(host_loop *loop, gk_slot slot, const void *memory);
void bench_host_bind_int(host_loop *loop, gk_slot slot, int64_t value);
void bench_host_bind_float(host_loop *loop, gk_slot slot, double value);
void bench_host_bind_bytes(host_loop *loop, gk_slot slot, const void *value, size_t bytes);

/* Puts a stretch behind all that was launched before. */
void bench_host_run(host_loop *loop, int stretch);
/* The flag's value, when all that was launched is over. */
int bench_host_read(host_loop *loop, const void *flag);
void bench_host_wait(host_loop *loop);
#endif
