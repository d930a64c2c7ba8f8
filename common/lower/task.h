/* A task as its kernel on a device gets it: the address of its record, in the graph's memory, with the task's count and
 * arguments. The host writes the records whose slots were bound anew, and one copy brings them all.
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

/* The one parameter of a composed kernel, of COPY and of FILL. */
typedef struct gki_task {
  uint64_t record; /* gki_record or gki_transfer, at a multiple of 16 */
  uint64_t guard;  /* uint64_t: the task does nothing while it holds the launch's number; 0: no guard */
  uint64_t number; /* gki_task_control */
} gki_task;

/* A count from here on is for the kernel to find: bit k is set if extent k is the int32 at an address. There are no
 * items if an extent is 0 or less. More than 2^31 - 1 items are a bad count, which the task posts. If no bit is set,
 * the host knows that the count is bad. */
#define GKI_UNCOUNTED 0x80000000u

/* The record of a KERNEL. Its arguments follow, 8 bytes each: numbers by their bits, memory and structs by address.
 * Behind them, at a multiple of 16, are the three extents as int64_t, if one is read by the kernel. */
typedef struct gki_record {
  uint32_t count;     /* of items */
  uint32_t extent[2]; /* along i and j */
  uint32_t node;      /* the plan's, for gki_bad_count */
} gki_record;

/* The record of a COPY or FILL. */
typedef struct gki_transfer {
  uint32_t count;    /* of elements */
  uint32_t element;  /* bytes */
  uint32_t pattern;  /* FILL */
  uint32_t node;
  uint64_t to, from; /* addresses; FILL: only `to` */
  uint64_t count_at; /* if bit 0 of an unknown count is set: the address of the count, an int32, */
  uint64_t to_room, from_room; /* and the bytes known behind `to` and `from`; ~0: unknown */
  uint64_t reserved;
} gki_transfer;

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
