/* A task as its kernel on a device gets it: by value, with the numbers of slots in place of values. Kernels look the
 * values up in the graph's table of slots, so one copy to that table brings new bindings to all tasks.
 *
 * For C, C++ and device compilers; NVRTC and hipRTC have no headers. Composed kernels get the same structs from
 * gk_kernel.h. Every struct is the same on host and device: fields have 4 or 8 bytes and a natural alignment. */
#ifndef GKI_LOWER_TASK_H
#define GKI_LOWER_TASK_H
#if defined(__CUDACC_RTC__) || defined(__HIPCC_RTC__)
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
#else
#include <stdint.h>
#endif

/* The one parameter of a composed kernel, of COPY and of FILL. In the table integers of 32 bits are widened to 64, so
 * an extent is an int64_t whatever its slot's type. If an extent is 0 or less, there are no items. More than 2^31 - 1
 * items are a bad count, which the task posts. */
enum { GKI_TASK_ARGS = 16, GKI_TASK_ROOMS = 2 };
typedef struct gki_task {
  uint64_t slots;    /* the table: 8 bytes by slot */
  uint64_t guard;    /* uint64_t: the task does nothing while it holds the launch's number; 0: no guard */
  uint64_t number;   /* gki_task_control */
  uint32_t items[3]; /* slots of its extents; 0: one */
  uint32_t read;     /* bit k: items[k] is a PTR, and the extent is the int32 there; that of items[0] at `offset` */
  uint32_t offset;   /* bytes, for items[0]; COPY, FILL: 0 */
  uint32_t args[GKI_TASK_ARGS]; /* slots; COPY: to, from; FILL: to. COPY, FILL with a count: args[2], args[3] are the
                                 * table's indices of the bytes known behind `to`, `from`; ~0 there: unknown */
  uint32_t to_offset, from_offset; /* COPY, FILL: bytes */
  uint32_t element;  /* COPY, FILL: bytes of an element */
  uint32_t pattern;  /* FILL */
  uint32_t node;     /* the plan's, for gki_bad_count */
} gki_task;

/* What tasks use of a graph's control block, which begins with it. */
typedef struct gki_task_control {
  uint64_t number;   /* of the launch under way, from 1 */
  uint64_t failed;   /* the last launch with a bad count: its loops end */
  uint64_t failures; /* GKI_LAUNCH_RING times gki_bad_count, in the host's memory */
  uint64_t posts_as; /* if `arms`: the number under which a launch posts; 0: it posts nothing */
  uint32_t arms;     /* 1: launches post under `posts_as`; 0: under `number` */
} gki_task_control;

enum { GKI_LAUNCH_RING = 16 }; /* launches whose posts are kept: launch n posts to place (n - 1) % GKI_LAUNCH_RING */

/* The first bad count of a launch, as its task posts it. */
typedef struct gki_bad_count {
  uint64_t number; /* the launch's; written last, behind a fence */
  uint32_t node;   /* the task's */
  uint32_t reserved;
  int64_t extent[3]; /* as the task read them; only those that it read from memory count */
} gki_bad_count;
#endif
