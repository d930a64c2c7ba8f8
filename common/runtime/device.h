/* An open device as common sees it: the backend's state, the in-order queue of work, the blocks of memory that gk
 * allocated, and the code of prepared kernels. */
#ifndef GKI_RUNTIME_DEVICE_H
#define GKI_RUNTIME_DEVICE_H
#include "base/table.h"
#include "runtime/worker.h"

typedef struct gki_memory_block {
  uintptr_t begin;
  size_t bytes;
  const void *owner; /* a graph, or NULL */
  uint64_t number;   /* from 1; unique, also among freed blocks of the same address */
  bool bound;        /* a slot was bound to it */
  bool lent;         /* a slot of a graph other than the owner was bound to it */
} gki_memory_block;

/* How many forks led to this process. It changes only before there is a second thread. */
extern unsigned gki_forks;

struct gk_device {
  const gk_backend *backend;
  void *state;
  unsigned forks;                                      /* gki_forks when it was opened */
  gk_device_info info;
  gki_worker worker;
  pthread_mutex_t lock;                                /* for the fields below, up to code_lock */
  gki_memory_block *blocks; size_t block_count, block_capacity; /* by address */
  uint64_t block_number;                               /* of the last block */
  struct gk_graph *graphs;                             /* through their next_of_device */
  atomic_uint_fast64_t bound_freed;                    /* how many freed blocks had once been bound to a slot */
  pthread_mutex_t code_lock;                           /* held while a kernel is prepared */
  gki_table codes;                                     /* pointers, by the kernel's address */
};

/* GK_OK, or a failure with the reason: there is no device, it is closed, or its threads and its driver belong to the
 * parent process. */
gk_result gki_device_refuse(const gk_device *device, const char *call);
gk_result gki_refuse_forked(const char *call, const char *which, const char *name);
/* The kernel's code on that device, prepared at the first request. */
gk_result gki_device_code(gk_device *device, const gk_kernel *kernel, void **code);
#endif
