/* What the host and the control kernels (gates.cu) both know: the gates of a plan (gk_gates in gk_gates.h) as tables
 * in device memory, the control block, and the status that the device posts. C, C++ and CUDA, also NVRTC, which has no
 * headers. Every struct is the same on both sides: fields are 4 or 8 bytes and stand where their size asks for it. */
#ifndef GKI_CUDA_GATES_H
#define GKI_CUDA_GATES_H
#include "lower/task.h"

#define GKI_CUDA_NONE 0xffffffffu
#define GKI_CUDA_COPIED 0xfffffffeu /* a prologue's target: what stands in the control block's `target_sent` */

/* gk_point_kind, gk_close_kind, bits of gk_gates_make and gk_state, whose header NVRTC can't read; tables.c asserts
 * that they agree. */
enum { GKI_CUDA_YIELD, GKI_CUDA_LOOP_END, GKI_CUDA_HEAD, GKI_CUDA_BRANCH, GKI_CUDA_MARK, GKI_CUDA_ENTER };
enum { GKI_CUDA_CLOSES_GATE, GKI_CUDA_CLOSES_NODE, GKI_CUDA_CLOSES_GUARD };
enum { GKI_CUDA_WITH_CANCEL = 2, GKI_CUDA_WITH_PLAIN = 16 };
enum { GKI_CUDA_WITH_ARMING = 1 << 16 }; /* among a table's bits, not the gates': gki_arm comes before each launch */
enum { GKI_CUDA_FINISHED, GKI_CUDA_YIELDED, GKI_CUDA_CANCELLED };

/* A decision: gk_gate_point with all that it needs of its node. */
typedef struct gki_cuda_point {
  uint32_t kind;       /* gk_point_kind */
  uint32_t flag;       /* slot of its flag; 0: none */
  uint32_t offset;     /* bytes from there to the int32 */
  uint32_t node;       /* the plan's: CHECKPOINT, loop, IF or SWITCH */
  uint32_t by_value;   /* BRANCH: 1 for a SWITCH */
  uint32_t bound;      /* LOOP_END: most passes of an entry; 0: no bound */
  uint32_t loop;       /* HEAD, LOOP_END: number of the loop */
  uint32_t checkpoint; /* the rest as in gk_gate_point */
  uint32_t exits, exit_count;
  uint32_t handle;
  uint32_t reenable, reenable_count;
  uint32_t block, close;
  uint32_t reserved;
} gki_cuda_point;

typedef struct gki_cuda_exit { uint32_t next, handle, value; } gki_cuda_exit;          /* gk_gate_exit */
typedef struct gki_cuda_gate_close { uint32_t kind, at, value; } gki_cuda_gate_close;  /* gk_gate_close */
typedef struct gki_cuda_target { uint32_t block, close; } gki_cuda_target;            /* gk_gate_target */
typedef struct gki_cuda_block {                                                        /* gk_gate_block */
  uint32_t begin, end, around, before, after, loop, handle, value, in_loop, reserved;
} gki_cuda_block;

enum { GKI_CUDA_DEPTH = 64 }; /* GK_MAX_DEPTH */

/* A loop's count, as docs/backend-author.md says. */
typedef struct gki_cuda_loop {
  uint64_t launch;  /* in which it was last touched */
  uint64_t entry;   /* passes of the entry at hand, or that waits */
  uint64_t passes;  /* in that launch */
  uint64_t limited; /* the last launch in which it hit its bound */
} gki_cuda_loop;

/* What lasts from launch to launch: one per plan, shared by its graphs, in device memory; at first `number` is 1,
 * `target` and `target_sent` are GKI_CUDA_NONE, the rest zero. */
typedef struct gki_cuda_control {
  uint64_t number;     /* this and the next four as in gki_task_control; the epilogue advances `number` */
  uint64_t failed;
  uint64_t failures;
  uint64_t told;
  uint32_t arms;       /* 1: GKI_CUDA_WITH_ARMING; tasks have no tables to see it */
  uint32_t target;     /* of the launch under way: number of the checkpoint or GKI_CUDA_NONE */
  uint64_t fresh;      /* the last launch before it that began at the top */
  uint64_t reopens;    /* the launch whose first loop end has still to open what its target closed; 0: none */
  uint64_t stopped;    /* the last launch that was stopped, */
  uint64_t limited;    /* and in which a loop hit its bound */
  uint32_t stopped_at; /* of `stopped`: node of the checkpoint; GKI_CUDA_NONE: cancelled */
  uint32_t limit;      /* of `limited`: node of the first loop */
  uint32_t limit_lock; /* of `limited`, `limit` and what follows: sections may run side by side */
  uint32_t limit_block; /* the block that is the body of that loop, */
  uint64_t limit_passes[GKI_CUDA_DEPTH]; /* and of each loop around it, from inside, the passes at that time */
  uint64_t armed; /* `arms`: the number of the arming that the launch under way goes by, which cancels go by */
  uint32_t target_sent; /* number of the checkpoint to resume at, or GKI_CUDA_NONE; a copy before a launch sets it */
  uint32_t reserved;
} gki_cuda_control;

/* What gki_arm gets, as parameters of its node: where to resume, and all slots. */
typedef struct gki_cuda_arming {
  uint64_t control;        /* gki_cuda_control */
  uint64_t number;         /* of the arming, from 1; 0: there was none yet */
  uint64_t from, to;       /* page-locked memory, the table of slots */
  uint32_t bytes;          /* a multiple of 16; 0: the table is as it shall be */
  uint32_t target;         /* for `target_sent` */
} gki_cuda_arming;

/* What a launch posts, in pinned memory; behind it stand uint64_t passes[loop_count], then a byte per loop (it hit its
 * bound), then a byte per checkpoint (it ran). All of it is there once `number` is the launch's. */
typedef struct gki_cuda_status {
  uint64_t number;  /* written last, behind a fence */
  uint32_t state;   /* gk_state */
  uint32_t yielded; /* node of the checkpoint; 0: none */
  uint32_t limit;   /* node of the first loop that hit its bound; 0: none */
  uint32_t reserved;
} gki_cuda_status;

/* All that a control kernel needs; one per graph (fresh, resume) in device memory, constant. Addresses are the
 * device's; 8 bytes each, so that the layout is the same for host and device. */
typedef struct gki_cuda_tables {
  uint64_t points, exits, reenables, closes, blocks, targets; /* arrays of the above; reenables: uint32_t */
  uint64_t handles; /* CUgraphConditionalHandle by number */
  uint64_t guards;  /* uint64_t by number, of this graph alone: closed while it holds the launch's number */
  uint64_t control; /* gki_cuda_control, */
  uint64_t loops;   /* gki_cuda_loop by number, */
  uint64_t ran;     /* uint64_t by checkpoint: the last launch in which it ran */
  uint64_t slots;   /* gk_value by slot */
  uint64_t cancel;  /* uint64_t in pinned memory: launches up to this number are cancelled */
  uint64_t status;  /* GKI_LAUNCH_RING times status_bytes in pinned memory */
  uint32_t status_bytes;
  uint32_t loop_count, checkpoint_count;
  uint32_t bits;    /* of gk_gates */
} gki_cuda_tables;

/* The points stand right behind the tables, so that a control kernel can ask for both at once. */
#define GKI_CUDA_POINTS_AT ((sizeof(gki_cuda_tables) + 63) / 64 * 64)

/* What gki_set_list does in its run number `run`, from 0, or GKI_CUDA_NONE: in every run. */
typedef struct gki_cuda_setting {
  uint64_t handle;
  uint32_t run, value;
} gki_cuda_setting;

/* Kernels of gates.cu; all one-dimensional.
 *   gki_control(const gki_cuda_tables *t, uint32_t point, uint32_t guard)   <<<1, 32>>>
 *   gki_control_plain(const gki_cuda_tables *t, uint32_t point, uint32_t guard)  <<<1, 32>>>  with GK_WITH_PLAIN
 *   gki_prologue(const gki_cuda_tables *t, uint32_t point, uint32_t target)  <<<1, 32>>>  number, NONE or COPIED
 *   gki_epilogue(const gki_cuda_tables *t)                                  <<<1, 128>>>
 *   gki_copy(gki_task), gki_fill(gki_task)                                  any grid  in lower/transfer.inc
 *   gki_arm(gki_cuda_arming)                                                <<<1, 128>>>  in graphs of others
 * Of single loops and branches in graphs of others:
 *   gki_enter(const int32_t *flag, uint32_t *count, uint64_t handle, uint64_t other, uint32_t has_other)  <<<1, 32>>>
 *     in front of them: sets the handle to 1 if there is no flag (NULL) or it is true, `other` to the opposite; starts
 *     the count of passes, if there is one (not NULL)
 *   gki_repeat(const int32_t *flag, uint32_t *count, uint64_t handle, uint32_t bound)  <<<1, 32>>>
 *     at the end of a loop's body; the count is used with a bound alone
 * Those of the probe:
 *   gki_set_list(uint32_t *runs, uint32_t period, const gki_cuda_setting *list, uint32_t count)  <<<1, 32>>>
 *     counts its runs in *runs; period 0, or the number of the run is taken modulo it
 *   gki_set_beside(uint32_t *at, uint64_t handle, uint32_t value, uint32_t times)  <<<1, 32>>>
 *     waits a little for another one to come, sets it so often, the last time to `value` and before to other values in
 *     turn; counts in at[0] who has come, in at[1] who has gone, in at[2] how often another one was inside just then */
#endif
