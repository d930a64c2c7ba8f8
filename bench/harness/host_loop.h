/* Whole applications with their decisions on the host, as programs do with CUDA graphs without loops. The tasks between
 * two decisions are a stretch: a list without loops, branches and checkpoints. Stretches are launched one after the
 * other. Only bench_host_read waits: it copies the 4 bytes of a flag. The kernels and the memory are those of gk's own
 * graph.
 *
 * On CUDA a stretch is an exec with only the nodes of its tasks, started by cuGraphLaunch. The first launch after a
 * bind is a gk_launch, which copies the slots to the device. On other backends a stretch is a graph of gk's. */
#ifndef BENCH_HOST_LOOP_H
#define BENCH_HOST_LOOP_H
#include "bench/cuda/hand.h"

enum { HOST_STRETCHES = 16 /* of one loop, at most */, HOST_TASKS = 64 /* of one stretch, at most */ };

typedef enum host_way {
  HOST_GRAPHS,  /* a launch per stretch */
  HOST_POLLED,  /* the same, but a kernel writes the flag to page-locked memory, which the host reads; CUDA only */
  HOST_KERNELS, /* a launch per task; CUDA only */
} host_way;

typedef struct host_stretch {
  gk_graph *graph;
  CUgraphExec exec;                               /* of the same nodes; CUDA only, like the next one */
  CUDA_KERNEL_NODE_PARAMS_v1 kernels[HOST_TASKS]; /* by task */
  const gk_list *list;
  bool is_bound;    /* the next launch is a gk_launch, which copies the slots */
  bool is_launched; /* by gk_launch, without a wait so far */
} host_stretch;

typedef struct host_loop {
  gk_device *device;
  host_way way;
  host_stretch stretches[HOST_STRETCHES];
  int count;
  const gk_slot_desc *slots; /* of all stretches */
  size_t slot_count;
  volatile int *posted; /* page-locked; CUDA only */
  int *posted_at;       /* the same on the device */
  CUfunction post;    /* writes a flag's value there */
} host_loop;

/* device: from bench_hand_open, or of another backend. */
void bench_host_begin(host_loop *loop, gk_device *device, host_way way);
void bench_host_end(host_loop *loop);

/* All stretches have the same table of slots. The list must outlive the loop.
 * @return The stretch's number, from 0 on */
int bench_host_add(host_loop *loop, const gk_list *list);

/* These bind in each stretch that uses the slot, after a wait for its launches. bench_host_share binds all memory of
 * `from`, a graph with the same table of slots. Call it again after gk_resize. */
void bench_host_share(host_loop *loop, const gk_graph *from);
void bench_host_bind(host_loop *loop, gk_slot slot, const void *memory);
void bench_host_bind_int(host_loop *loop, gk_slot slot, int64_t value);
void bench_host_bind_bytes(host_loop *loop, gk_slot slot, const void *value, size_t bytes);

/* Launches a stretch after all earlier launches. */
void bench_host_run(host_loop *loop, int stretch);
/* Waits for all launches. @return The flag's value */
int bench_host_read(host_loop *loop, const void *flag);
void bench_host_wait(host_loop *loop);
#endif
