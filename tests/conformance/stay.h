/* A task in which a launch waits for the host, where CALLs can't as they are recorded: a kernel that looks at a word in
 * memory that it shares with the host. And what such CALLs record instead: copies and fills. CUDA's alone. */
#ifndef CONFORMANCE_STAY_H
#define CONFORMANCE_STAY_H
#undef GK_THIS_SOURCE
#define GK_THIS_SOURCE stays
#include "gk_kernel.h"
#include <dlfcn.h>
#include <string.h>
#include <time.h>
GK_SOURCE(stays)
#ifdef __CUDACC__
#define STAY_AT(word) (*(volatile int *)&(word))
#define STAY_TICKS() clock64()
#else /* the reference, for which the countdown is 0 */
#define STAY_AT(word) (word)
#define STAY_TICKS() 0
#endif
/* It gives up after so many ticks of the GPU's: some twenty seconds. */
GK_KERNEL(stay, (inout(int, door))) {
  if (STAY_AT(door[0]) == 0) return;
  STAY_AT(door[0]) = STAY_AT(door[0]) - 1;
  if (STAY_AT(door[0]) != 0) return;
  STAY_AT(door[1]) = 1;
  for (int64_t begin = STAY_TICKS(); STAY_AT(door[2]) == 0 && STAY_TICKS() - begin < 40000000000LL;) { }
}
GK_SOURCE_END

/* ---- a door ------------------------------------------------------------------------------------------------------ */

/* What `stay` gets, in GK_HOST_MEMORY: the device comes to it, the host opens it. */
typedef struct stay_door {
  int countdown; /* the n-th `stay` from now on waits; 0: none */
  int reached;   /* it is there */
  int open;
} stay_door;

static inline bool is_stay(const gk_task *task) {
  return task->op == GK_OP_KERNEL && strcmp(task->kernel->name, stay.name) == 0;
}

/* Between launches. */
static inline void stay_at(stay_door *door, int nth) {
  door->reached = door->open = 0;
  __atomic_store_n(&door->countdown, nth, __ATOMIC_RELEASE);
}
static inline bool stay_reached(const stay_door *door) { return __atomic_load_n(&door->reached, __ATOMIC_ACQUIRE); }
/* Until the launch is there, or over. */
static inline void stay_await(const stay_door *door, gk_graph *graph) {
  while (!stay_reached(door) && gk_poll(graph, NULL) == GK_NOT_READY)
    nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
}
static inline void stay_open(stay_door *door) { __atomic_store_n(&door->open, 1, __ATOMIC_RELEASE); }

/* ---- what a CALL records ----------------------------------------------------------------------------------------- */

enum { SHIFTED = 4 };

/* Moves the first ints down by one place and fills the last: each time makes a difference. Host memory. */
static inline void shift_ints(void *memory) {
  int *at = (int *)memory;
  for (int k = 0; k + 1 < SHIFTED; ++k) at[k] = at[k + 1];
  at[SHIFTED - 1] = 0x05050505;
}

static inline void *driver_entry(const char *name, int version) {
  int (*find)(const char *name, void **entry, int version, unsigned long long flags) = NULL;
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), *entry = NULL;
  if (library) *(void **)&find = dlsym(library, "cuGetProcAddress");
  if (find && find(name, &entry, version, 0) != 0) entry = NULL;
  if (library) dlclose(library); /* gk has it, too */
  return entry;
}

/* Whether a CALL is recorded, by a stream that is being captured. HIP gives it a stream that isn't, each time the task
 * runs. */
static inline bool is_recorded(void *native) {
  int (*ask)(void *stream, int *status), status = 0;
  if (!native) return false;
  *(void **)&ask = driver_entry("cuStreamIsCapturing", 10000);
  return ask && ask(native, &status) == 0 && status != 0;
}

/* The same as work on a stream of the driver's, from which CALLs are recorded. */
static inline gk_result record_shift(void *memory, void *stream) {
  int (*copy)(unsigned long long to, unsigned long long from, size_t bytes, void *stream);
  int (*fill)(unsigned long long to, unsigned char value, size_t bytes, void *stream);
  *(void **)&copy = driver_entry("cuMemcpyDtoDAsync", 3020);
  *(void **)&fill = driver_entry("cuMemsetD8Async", 3020);
  if (!copy || !fill) return GK_ERROR_NO_DEVICE;
  unsigned long long at = (unsigned long long)(uintptr_t)memory;
  for (int k = 0; k + 1 < SHIFTED; ++k, at += sizeof(int))
    if (copy(at, at + sizeof(int), sizeof(int), stream) != 0) return GK_ERROR_DEVICE;
  return fill(at, 5, sizeof(int), stream) == 0 ? GK_OK : GK_ERROR_DEVICE;
}
#endif
