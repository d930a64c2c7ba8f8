/* A task as its kernel on a device gets it: the address of a record in the graph's memory, which holds the task's count
 * and arguments. The host writes the records of tasks whose slots were bound anew, and one copy brings them all.
 *
 * C, C++ and device compilers read this file; NVRTC and hipRTC have no headers. Composed kernels get the same structs
 * from gk_kernel.h. Fields have 4 or 8 bytes and their natural alignment, so a struct is the same everywhere. */
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

/* The one parameter of a composed kernel, of COPY and of FILL. */
typedef struct gki_task {
  uint64_t record; /* address of a gki_record or gki_transfer, a multiple of 16 */
  uint64_t guard;  /* address of a uint64_t: the task does nothing while it is the launch's number; 0: no guard */
  uint64_t number; /* address of a gki_task_control, which begins with the launch's number */
} gki_task;

/* With a count from this number on, the kernel finds the count. Bit k is set if extent k is an int32 in memory, whose
 * address the record has. If an extent is 0 or less, there are no items. If there are more than 2^31 - 1, the count is
 * bad: the task does nothing and posts it. Without any bit, the host knows that the count is bad. */
#define GKI_UNCOUNTED 0x80000000u

/* The record of a KERNEL. Its arguments follow, 8 bytes each: numbers by their bits, memory and structs by address. If
 * the kernel finds the count, the three extents or their addresses follow as int64_t, at a multiple of 16. */
typedef struct gki_record {
  uint32_t count;     /* of items */
  uint32_t extent[2]; /* along i and j */
  uint32_t node;      /* index in the plan, for gki_bad_count */
} gki_record;

/* The record of a COPY or FILL. */
typedef struct gki_transfer {
  uint32_t count;    /* of elements */
  uint32_t element;  /* bytes */
  uint32_t pattern;  /* FILL */
  uint32_t node;     /* index in the plan, for gki_bad_count */
  uint64_t to, from; /* addresses; FILL: only `to` */
  uint64_t count_at; /* if the kernel reads the count: the address of that int32 */
  uint64_t to_room, from_room; /* if it does: the size of the memory from `to` and from `from` on; ~0: not known */
  uint64_t reserved;
} gki_transfer;

/* The beginning of a graph's control block: the part that tasks use. */
typedef struct gki_task_control {
  uint64_t number;   /* of the launch under way, from 1 */
  uint64_t failed;   /* number of the last launch with a bad count; loops of this launch end */
  uint64_t failures; /* address of GKI_LAUNCH_RING structs gki_bad_count in the host's memory */
  uint64_t posts_as; /* if `arms`: the number under which a launch posts; 0: it posts nothing */
  uint32_t arms;     /* 1: launches post under `posts_as`; 0: under `number` */
} gki_task_control;

enum { GKI_LAUNCH_RING = 16 }; /* launches whose posts are kept: launch n posts to place (n - 1) % GKI_LAUNCH_RING */

/* The first bad count of a launch, as its task posts it. */
typedef struct gki_bad_count {
  uint64_t number; /* of the launch; written last, behind a fence */
  uint32_t node;   /* of the task */
  uint32_t reserved;
  int64_t extent[3]; /* only those that the task read from memory are valid; the host knows the others */
} gki_bad_count;
#endif
