/* Structs that the host shares with the control kernels (gates.cu): the gates of a plan (gk_gates in gk_gates.h) as
 * tables in device memory, the control block, and the status that the device posts. For C, C++ and CUDA; NVRTC has no
 * headers. Every struct is the same on both sides: fields have 4 or 8 bytes and a natural alignment. */
#ifndef GKI_CUDA_GATES_H
#define GKI_CUDA_GATES_H
#include "lower/task.h"

#define GKI_CUDA_NONE 0xffffffffu
#define GKI_CUDA_COPIED 0xfffffffeu /* a prologue's target: `target_sent` of the control block */

/* gk_point_kind, gk_close_kind, bits of gk_gates_make and gk_state again, since NVRTC can't read their header. tables.c
 * asserts that they agree. */
enum { GKI_CUDA_YIELD, GKI_CUDA_LOOP_END, GKI_CUDA_HEAD, GKI_CUDA_BRANCH, GKI_CUDA_MARK, GKI_CUDA_ENTER,
       GKI_CUDA_AIM, GKI_CUDA_BEGIN, GKI_CUDA_PASSES };
enum { GKI_CUDA_CLOSES_GATE, GKI_CUDA_CLOSES_NODE, GKI_CUDA_CLOSES_GUARD };
enum { GKI_CUDA_WITH_CANCEL = 2, GKI_CUDA_WITH_PLAIN = 16 };
enum { GKI_CUDA_WITH_ARMING = 1 << 16 }; /* in a table's bits only: gki_arm runs before each launch */
enum { GKI_CUDA_FINISHED, GKI_CUDA_YIELDED, GKI_CUDA_CANCELLED };

/* A decision: gk_gate_point with the fields of its node that a gate reads. */
typedef struct gki_cuda_point {
  uint32_t kind;       /* gk_point_kind */
  uint32_t flag;       /* slot of its flag; 0: none */
  uint32_t offset;     /* of the int32 in that slot's memory, in bytes */
  uint32_t node;       /* the plan's: CHECKPOINT, loop, IF or SWITCH */
  uint32_t by_value;   /* BRANCH: 1 for a SWITCH; HEAD, LOOP_END: 1 for a REPEAT, 2: and its count has 64 bits */
  uint32_t bound;      /* LOOP_END: most passes of an entry; 0: no bound. PASSES: 1 if they hit it, else 0 */
  uint32_t loop;       /* HEAD, LOOP_END, BEGIN, PASSES: number of the loop */
  uint32_t checkpoint; /* the rest as in gk_gate_point */
  uint32_t exits, exit_count; /* LOOP_END, PASSES: `passes` instead of the count */
  uint32_t handle;
  uint32_t reenable, reenable_count;
  uint32_t block, close;
  uint32_t count;      /* HEAD of a REPEAT: its constant count; 0: it is read. LOOP_END with a flag: .every */
} gki_cuda_point;

typedef struct gki_cuda_exit { uint32_t next, handle, value; } gki_cuda_exit;          /* gk_gate_exit */
typedef struct gki_cuda_gate_close { uint32_t kind, at, value; } gki_cuda_gate_close;  /* gk_gate_close */
typedef struct gki_cuda_target { uint32_t block, close; } gki_cuda_target;            /* gk_gate_target */
typedef struct gki_cuda_block {                                                        /* gk_gate_block */
  uint32_t begin, end, around, before, after, loop, handle, value, in_loop, head; /* in_loop: 2: is_numbered, too */
} gki_cuda_block;

enum { GKI_CUDA_DEPTH = 64 }; /* GK_MAX_DEPTH */

/* The counts of a loop (docs/backend-author.md). Nothing resets them between launches: a record of an earlier launch is
 * brought up to date when launch n first reaches the loop's head, the end of its body, or a stop inside its body.
 *
 *   event in launch n                              launch   entry                    passes   limited
 *   it reaches the loop for the first time,        n                                 0
 *     it resumes inside this loop, and the record           kept: the entry goes on
 *     isn't older than the last fresh launch
 *     otherwise                                             0
 *   a pass ends                                             + 1                      + 1
 *   then the flag is false, or a count was bad              0
 *   then the bound is reached                               0                                 n
 *   a stop inside the body                                  kept: the entry waits */
typedef struct gki_cuda_loop {
  uint64_t launch;  /* the last launch that reached the loop */
  uint64_t entry;   /* passes of the current entry, or of the one that waits for a resume. GK_PASS is its lower half,
                     * so it is right during each pass of a loop with gk_node.is_numbered */
  uint64_t passes;  /* in `launch` */
  uint64_t limited; /* the last launch in which the loop hit its bound */
  uint64_t count;   /* REPEAT: as read by that entry, kept and reset with it; 0: no entry waits */
} gki_cuda_loop;

/* The control block: one per plan, shared by its graphs, in device memory. Before the first launch `number` is 1,
 * `target` and `target_sent` are GKI_CUDA_NONE, and the rest is zero. */
typedef struct gki_cuda_control {
  uint64_t number;     /* this and the next four as in gki_task_control; the epilogue advances `number` */
  uint64_t failed;
  uint64_t failures;
  uint64_t posts_as;
  uint32_t arms;       /* 1: GKI_CUDA_WITH_ARMING; tasks have no tables to see it */
  uint32_t target;     /* the checkpoint at which the launch under way resumes, by number; GKI_CUDA_NONE: fresh */
  uint64_t fresh;      /* the last fresh launch before the one under way */
  uint64_t reopens;    /* the launch whose first loop end must still open what the prologue closed; 0: none */
  uint64_t stopped;    /* the last launch that was stopped */
  uint64_t limited;    /* the last launch in which a loop hit its bound */
  uint32_t stopped_at; /* of `stopped`: node of the checkpoint; GKI_CUDA_NONE: cancelled */
  uint32_t limit;      /* of `limited`: node of the first loop */
  uint32_t limit_lock; /* guards `limited`, `limit` and the next two: sections may run side by side */
  uint32_t limit_block; /* of `limit`: the block that is the loop's body */
  uint64_t limit_passes[GKI_CUDA_DEPTH]; /* of `limit`: the passes of each loop around it then, from inside */
  uint64_t armed;      /* if `arms`: the number of the last arming; cancels name it */
  uint32_t target_sent; /* number of the checkpoint to resume at, or GKI_CUDA_NONE; a copy before a launch sets it */
  uint32_t reserved;
} gki_cuda_control;

/* The parameter of gki_arm: where to resume, and all slots. */
typedef struct gki_cuda_arming {
  uint64_t control;        /* gki_cuda_control */
  uint64_t number;         /* of the arming, from 1; 0: none yet */
  uint64_t from, to;       /* page-locked memory, the table of slots */
  uint32_t bytes;          /* a multiple of 16; 0: the table is up to date */
  uint32_t target;         /* for `target_sent` */
} gki_cuda_arming;

/* The status that a launch posts, in page-locked memory. Behind it are uint64_t passes[loop_count], a byte per loop (it
 * hit its bound) and a byte per checkpoint (it ran). All of this is valid when `number` is the launch's. */
typedef struct gki_cuda_status {
  uint64_t number;  /* written last, behind a fence */
  uint32_t state;   /* gk_state */
  uint32_t yielded; /* node of the checkpoint; 0: none */
  uint32_t limit;   /* node of the first loop that hit its bound; 0: none */
  uint32_t reserved;
} gki_cuda_status;

/* The tables of one graph (fresh or resume), constant, in device memory. Addresses are the device's, and have 8 bytes
 * for host and device alike. */
typedef struct gki_cuda_tables {
  uint64_t points, exits, reenables, closes, blocks, targets; /* arrays of these structs; reenables: uint32_t */
  uint64_t handles; /* CUgraphConditionalHandle by number */
  uint64_t guards;  /* uint64_t by number, of this graph alone: closed while it holds the launch's number */
  uint64_t control; /* gki_cuda_control */
  uint64_t loops;   /* gki_cuda_loop by number */
  uint64_t ran;     /* uint64_t by checkpoint: the last launch in which it ran */
  uint64_t slots;   /* gk_value by slot */
  uint64_t cancel;  /* uint64_t in page-locked memory: launches up to this number are cancelled */
  uint64_t status;  /* GKI_LAUNCH_RING times status_bytes in page-locked memory */
  uint32_t status_bytes;
  uint32_t loop_count, checkpoint_count;
  uint32_t bits;    /* of gk_gates, and GKI_CUDA_WITH_ARMING */
} gki_cuda_tables;

/* The points are right behind the tables, so a control kernel loads both at once. */
#define GKI_CUDA_POINTS_AT ((sizeof(gki_cuda_tables) + 63) / 64 * 64)

/* A handle's value that gki_set_list sets in its run number `run`, from 0; GKI_CUDA_NONE: in every run. */
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
 *   gki_arm(gki_cuda_arming)                                                <<<1, 128>>>  in graphs of callers
 * For single loops and branches in graphs of callers:
 *   gki_enter(const int32_t *flag, uint32_t *count, uint64_t handle, uint64_t other, uint32_t has_other)  <<<1, 32>>>
 *     before the node: sets the handle to 1 if the flag is NULL or true, and `other` to the opposite; sets the count of
 *     passes, unless NULL, to 0
 *   gki_repeat(const int32_t *flag, uint32_t *count, uint64_t handle, uint32_t bound)  <<<1, 32>>>
 *     at the end of a loop's body; without a bound (0) the count isn't used
 * For the probe:
 *   gki_set_list(uint32_t *runs, uint32_t period, const gki_cuda_setting *list, uint32_t count)  <<<1, 32>>>
 *     counts its runs in *runs; the number of a run is taken modulo the period, unless that is 0
 *   gki_set_beside(uint32_t *at, uint64_t handle, uint32_t value, uint32_t times)  <<<1, 32>>>
 *     waits a little for another instance, then sets the handle `times` times, to other values in turn and at last to
 *     `value`; at[0] counts instances that started, at[1] those that ended, at[2] those that ended beside another */
#endif
