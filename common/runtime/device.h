/* An open device as common sees it: the backend's state, one line of work, the blocks of memory it gave out, the code
 * of the kernels made ready. */
#ifndef GKI_RUNTIME_DEVICE_H
#define GKI_RUNTIME_DEVICE_H
#include "base/memory.h"
#include "runtime/worker.h"

typedef struct gki_block {
  uintptr_t begin;
  size_t bytes;
  const void *owner; /* a graph, or NULL */
  uint64_t number;   /* from 1; no other block of the device has it, not even one at the same address later */
  bool bound;        /* a slot was bound to it */
  bool lent;         /* one of another graph than the owner */
} gki_block;
typedef struct gki_code { const gk_kernel *kernel; void *code; } gki_code;

/* How often this process came out of a fork; changes before there is a second thread. */
extern unsigned gki_forks;

struct gk_device {
  const gk_backend *backend;
  void *state;
  unsigned forks;                                      /* gki_forks when it was opened */
  gk_device_info info;
  gki_worker worker;
  pthread_mutex_t lock;                                /* guards what follows */
  gki_block *blocks; size_t block_count, block_capacity; /* by address */
  uint64_t block_number;                               /* of the last block */
  struct gk_graph *graphs;                             /* through their next_of_device */
  atomic_uint_fast64_t bound_freed;                    /* how many blocks were freed that a slot was bound to once */
  pthread_mutex_t code_lock;                           /* held while a kernel is made ready */
  gki_code *codes; size_t code_count, code_capacity;   /* a power of two; open addressing by the kernel's address */
};

/* GK_OK, or why the call can't go on: there is no device, it is closed, or its threads and its driver are the parent
 * process's. */
gk_result gki_device_refuse(const gk_device *device, const char *call);
gk_result gki_refuse_forked(const char *call, const char *which, const char *name);
/* The kernel's code on that device, made ready when first asked for. */
gk_result gki_device_code(gk_device *device, const gk_kernel *kernel, void **code);
#endif
