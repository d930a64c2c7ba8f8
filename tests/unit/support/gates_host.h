/* CUDA's words for a host compiler, so that gates.cu can be included: a kernel is run thread by thread, the first one
 * last, which is as good as a barrier for kernels whose other threads end at it; host_run_threads has real ones. */
#ifndef GATES_HOST_H
#define GATES_HOST_H
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

typedef struct host_place { unsigned x; } host_place;
static _Thread_local host_place threadIdx, blockIdx, blockDim = {1}, gridDim = {1};
static pthread_barrier_t *host_barrier; /* NULL: threads one after the other */
static _Thread_local unsigned host_barriers, host_fences; /* how often this thread came to one: what it orders for
                                                           * others can't be seen where threads take turns */

typedef struct uint1 { unsigned x; } uint1;
typedef struct __attribute__((aligned(16))) uint4 { unsigned x, y, z, w; } uint4;

#define __global__ static
#define __device__
#define __forceinline__ inline
#define __noinline__
#define __ldg(at) (*(at))
#define __threadfence() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#define __threadfence_system() (++host_fences, __atomic_thread_fence(__ATOMIC_SEQ_CST))
#define atomicAdd(at, v) __atomic_fetch_add(at, v, __ATOMIC_RELAXED)
#define atomicCAS(at, expected, v) host_cas(at, expected, v)
#define atomicExch(at, v) __atomic_exchange_n(at, v, __ATOMIC_RELAXED)

static inline uint32_t host_cas(uint32_t *at, uint32_t expected, uint32_t v) {
  __atomic_compare_exchange_n(at, &expected, v, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return expected;
}

static inline void __syncthreads(void) {
  ++host_barriers;
  if (host_barrier) pthread_barrier_wait(host_barrier);
}

/* The includer defines what a handle is, and what consulting a flag does. */
static void cudaGraphSetConditional(unsigned long long handle, unsigned value);
static int32_t host_consult(const char *at, int32_t value);
#define GKI_CONSULT(at, value) host_consult(at, value)

/* Strings of 4 and of 16 bytes are copied as any type: gates.cu is compiled with -fno-strict-aliasing. */
#include "cuda/gates.cu"

/* `call` once per thread of the grid. */
#define HOST_RUN(grid, block, call) \
  do { \
    gridDim.x = (grid); \
    blockDim.x = (block); \
    for (blockIdx.x = gridDim.x; blockIdx.x-- > 0;) \
      for (threadIdx.x = blockDim.x; threadIdx.x-- > 0;) call; \
    blockIdx.x = threadIdx.x = 0; \
  } while (0)

typedef struct host_thread {
  pthread_t thread;
  unsigned grid, block, at, count;
  void (*entry)(const gki_task task);
  const gki_task *task;
} host_thread;

static inline void *host_thread_main(void *user) {
  const host_thread *t = user;
  gridDim.x = t->grid;
  blockDim.x = t->count;
  blockIdx.x = t->block;
  threadIdx.x = t->at;
  t->entry(*t->task);
  return NULL;
}

/* The blocks one after the other, the threads of one at once. */
static inline void host_run_threads(unsigned grid, unsigned block, void (*entry)(const gki_task task),
                                    const gki_task *task) {
  host_thread *threads = calloc(block, sizeof *threads);
  pthread_barrier_t barrier;
  pthread_barrier_init(&barrier, NULL, block);
  host_barrier = &barrier;
  for (unsigned b = 0; threads && b < grid; ++b) {
    for (unsigned t = 0; t < block; ++t) {
      threads[t] = (host_thread){.grid = grid, .block = b, .at = t, .count = block, .entry = entry, .task = task};
      if (pthread_create(&threads[t].thread, NULL, host_thread_main, &threads[t])) abort();
    }
    for (unsigned t = 0; t < block; ++t) pthread_join(threads[t].thread, NULL);
  }
  host_barrier = NULL;
  pthread_barrier_destroy(&barrier);
  free(threads);
}
#endif
